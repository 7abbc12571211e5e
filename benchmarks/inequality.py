"""Inequality from noisy income bins of a simulated survey: bias, error and coverage, for docs/surveys.md.

``python benchmarks/inequality.py`` prints the table of the page, from seeds; ``--draws 20`` is a quick look, and
``--write docs`` draws the picture of the page. The survey is like EU-SILC of Austria: nine regions of 226 to 1,131
households, incomes per head that are lognormal with a Gini coefficient near .26, and as weight of a household the
people that it stands for, 4,000 at most. Weights only change the scale of the noise, from 1 / eps to 4,000 / eps.
"""

import argparse
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

import pdrisk
from pdrisk._answer.arithmetic.income_estimates import IncomeBins
from pdrisk._answer.arithmetic.measured import Measurements, new_draw
from pdrisk._core.surveys.inequality import cleaned, gini, gini_range
from pdrisk._mechanisms.laws.law import Law

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from margin_tables import laplace

HOUSEHOLDS = (226, 331, 474, 502, 610, 748, 857, 1009, 1131)
LARGEST = 4000
EDGES = np.concatenate([np.arange(0, 40_001, 1000), np.arange(46_000, 70_001, 6000)])
SIZES, OF_SIZE = (1, 2, 3, 4, 5), (0.33, 0.30, 0.16, 0.13, 0.08)
STEPS = 2**16  # of the largest weight
EPS = (0.5, 1, 2)


def survey(random):
    """Incomes and weights of the households of each region."""
    regions = []
    for at, number in enumerate(HOUSEHOLDS):
        people = random.choice(SIZES, number, p=OF_SIZE)
        weight = np.minimum(random.lognormal(np.log(520), 0.4, number) * people, LARGEST)
        income = np.minimum(random.lognormal(np.log(17_500 * (1 + at / 80)), 0.47, number), EDGES[-1])
        regions.append((income, weight))
    return regions


def exact(income, weight, line):
    """Measures of people with weights, by definition."""
    order = np.argsort(income)
    y, w = income[order], weight[order]
    below, total = np.cumsum(w), w.sum()
    poor, rich = np.clip(0.2 * total - (below - w), 0, w), np.clip(below - 0.8 * total, 0, w)
    return {
        "gini": (w * y * (2 * below - w - total)).sum() / (total * (w * y).sum()),
        "poverty": w[y < line].sum() / total,
        "s80s20": (rich * y).sum() / (poor * y).sum(),
        "median": y[np.searchsorted(below, total / 2)],
    }


def study(eps, draws, regions):
    """A line of the table: over all regions and draws."""
    random = np.random.default_rng([8, int(100 * eps)])
    every = [np.concatenate(each) for each in zip(*regions, strict=True)]
    line = 0.6 * exact(*every, 0)["median"]
    goal = pd.DataFrame([exact(*each, line) for each in regions])
    cells = np.stack([np.histogram(y, EDGES, weights=np.floor(w / LARGEST * STEPS + 0.5))[0] for y, w in regions])
    law = Law(1, Fraction(LARGEST, STEPS), LARGEST / Fraction(str(eps)), top=(1.0,), least=0.0)
    in_bins = gini(cells, EDGES)
    found = {name: [] for name in goal}
    clean, covered = [], []
    for _ in range(draws):
        drawn = cells + laplace(random, STEPS / eps, cells.shape)
        bins = IncomeBins.of(Measurements.of(law, drawn.astype(np.int64).reshape(1, -1), new_draw()), EDGES, 0.6)
        for name, estimates in found.items():
            estimates.append(np.stack(getattr(bins, name)())[:, :-1])
        value, _, high = found["gini"][-1]
        own = cleaned(bins.numbers[:-1])
        reach = high - value - (gini_range(own, EDGES)[1] - gini(own, EDGES))
        clean.append(gini(own, EDGES) - in_bins)
        covered.append(np.isnan(value) | (np.abs(value - in_bins) <= reach))
    shown = {name: np.stack(estimates, axis=1) for name, estimates in found.items()}
    error = {name: each[0] - goal[name].to_numpy() for name, each in shown.items()}
    held = {name: ((low <= goal[name].to_numpy()) & (goal[name].to_numpy() <= high)).mean()
            for name, (_, low, high) in shown.items()}  # fmt: skip
    of_bins = shown["gini"][0] - in_bins

    def root(errors):
        return np.nanmean(np.square(errors)) ** 0.5

    return {
        "eps": eps,
        "Gini bias (cleaned)": f"{np.nanmean(of_bins):+.3f} ({np.mean(clean):+.3f})",
        "rmse (cleaned)": f"{root(of_bins):.3f} ({root(clean):.3f})",
        "noise alone": f"{np.mean(covered):.3f}",
        "with bins, ±": f"{held['gini']:.3f}, {np.nanmedian(shown['gini'][2] - shown['gini'][1]) / 2:.3f}",
        "poverty rmse": f"{root(error['poverty']):.3f}",
        "covered, ±": f"{held['poverty']:.3f}, {np.nanmedian(shown['poverty'][2] - shown['poverty'][1]) / 2:.3f}",
        "median": f"{held['median']:.3f}",
        "S80/S20 rmse": f"{root(error['s80s20']):.2f}",
        "covered": f"{held['s80s20']:.3f}",
    }


def picture():
    """Lorenz curves of the synthetic survey, for the page."""
    rows = pdrisk.datasets.soep_like(missing="nan")
    edges = [*range(0, 6001, 200), 7000, 8000, 10_000, 15_000]
    schema = pdrisk.datasets.soep_like_schema()
    return rows.pipe(schema.validate).dprisk.inequality("income", edges, eps=1, by="sex").plot()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    chosen = parser.parse_args()
    if chosen.write:
        picture().savefig(chosen.write / "inequality.png")
    else:
        people = survey(np.random.default_rng(2011))
        table = pd.DataFrame([study(eps, chosen.draws, people) for eps in EPS])
        print(" | ".join(["", *table.columns, ""]).strip())
        for row in table.itertuples(index=False):
            print("| " + " | ".join(map(str, row)) + " |")
