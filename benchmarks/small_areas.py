"""Shrunk means of small areas over simulated people: errors before and after, and whom it hurts.

``python benchmarks/small_areas.py`` prints the table of docs/groups.md, from seeds, in half a minute.

14,734 distances (1 to 675, as in the SOEP paper) fall into areas at random, and are answered with noise of eps 1. Areas
differ by a factor whose logarithm is normal; one in ten is an outlier. The error is the mean distance of areas' values
from the exact means of their people.
"""

import argparse

import numpy as np

import pdrisk
from pdrisk._core.surveys.shrinkage import shrinkage

LOW, HIGH, EPS = 1.0, 675.0, 1.0
#: Areas, standard deviation of the factor's and of the sizes' logarithms, share of outliers; and error before over
#: after, of all areas and of the tenth that differs most, as the design of `shrink` found them in another simulation.
CASES = {
    "1,000 of 15": (1000, 0.0, 0.0, 0.0, 6.5, None),
    "1,000 of 15, areas differ": (1000, 0.3, 0.0, 0.0, 4.7, None),
    "1,000, skewed sizes": (1000, 0.0, 0.5, 0.0, 7.0, None),
    "200 of 74, areas differ": (200, 0.3, 0.0, 0.0, 1.9, 0.89),
    "200 of 74, areas differ more": (200, 0.7, 0.0, 0.0, None, 0.57),
    "200 of 74, outliers": (200, 0.3, 0.0, 0.1, None, 0.53),
    "50 of 295, areas differ": (50, 0.3, 0.0, 0.0, 1.1, None),
}
TIMES = 3.0  # an outlier's distances


def errors(random, distances, areas, differ, skewed, outliers):
    """Mean errors of one draw, before and after: of all areas, and of the tenth that differs most."""
    n = len(distances)
    sizes = random.lognormal(0, skewed, areas)
    of = random.choice(areas, n, p=sizes / sizes.sum())
    outside = np.where(random.random(areas) < outliers, TIMES, 1.0)
    factor = outside * np.exp(random.normal(-(differ**2) / 2, differ, areas))
    place = (np.clip(random.permutation(distances) * factor[of], LOW, HIGH) - LOW) / (HIGH - LOW)
    size, above = np.bincount(of, minlength=areas), np.bincount(of, place, areas)
    noisy = above + random.laplace(0, 1 / EPS, areas), size - above + random.laplace(0, 1 / EPS, areas)
    both = noisy[0] + noisy[1]
    before = np.clip(np.divide(noisy[0], both, out=np.full(areas, 0.5), where=both > 0), 0, 1)
    after = shrinkage(*noisy, 2 / EPS**2).share
    some = size > 0
    exact = above[some] / size[some]
    own = np.abs(before[some] - exact), np.abs(after[some] - exact)
    far = np.argsort(-np.abs(exact - place.mean()))[: len(exact) // 10]
    return [each.mean() * (HIGH - LOW) for each in (*own, own[0][far], own[1][far])]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    draws = parser.parse_args().draws
    found = pdrisk.datasets.soep_like(seed=0)["distance"]
    distances = found[found >= LOW].to_numpy(dtype=float)
    print("| areas | error before, km | after | before / after (design) | the tenth that differs most (design) |")
    print("|---|---|---|---|---|")
    for name, (*case, design, design_of_tenth) in CASES.items():
        means = np.mean([errors(np.random.default_rng([at, case[0]]), distances, *case) for at in range(draws)], axis=0)
        ratios = means[0] / means[1], means[2] / means[3]
        shown = [
            f"{ratio:.2f}" + ("" if other is None else f" ({other})")
            for ratio, other in zip(ratios, (design, design_of_tenth), strict=True)
        ]
        print(f"| {name} | {means[0]:.1f} | {means[1]:.1f} | {shown[0]} | {shown[1]} |")


if __name__ == "__main__":
    main()
