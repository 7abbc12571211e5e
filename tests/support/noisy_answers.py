"""One statistic asked for many groups, its answer of nothing and its global sensitivity; noise and its law."""

import math

import numpy as np
import pandas as pd
import scipy.stats

from pdrisk._answer.answers.answer import Answer

DRAWS = 20_000
WIDTH = 0.05  # of the scale: what `Claim` allows the mean absolute noise to be off
DISTANCE = 4.0  # of the distribution functions, times sqrt(DRAWS)
LO, HI = 1.0, 7.0
# statistic: method, parameters, answer of nothing, global sensitivity: docs/numbers.md
STATISTICS = {
    "count": ("count", {}, 0.0, 1.0),
    "sum": ("sum", {}, 0.0, 7.0),
    "mean": ("mean", {}, 4.0, 3.0),
    "median": ("median", {}, 4.0, 3.0),
    "quantile": ("quantile", {"q": 0.9}, 4.0, 5.4),
    "min": ("min", {}, 7.0, 6.0),
    "max": ("max", {}, 1.0, 6.0),
    "var0": ("var", {"ddof": 0}, 0.0, 9.0),
    "var1": ("var", {"ddof": 1}, 0.0, 18.0),
    "std0": ("std", {"ddof": 0}, 0.0, 3.0),
    "std1": ("std", {"ddof": 1}, 0.0, 6 / math.sqrt(2)),
}


def with_scale(table):
    """A table of answers, with the scale of each line's noise as a column."""
    lines = Answer.from_attrs(table.attrs).lines
    return table.assign(scale=[line.scale for line in lines for _ in range(len(table) // len(lines))])


def answers(name, eps, *, keys=DRAWS, bounds=(LO, HI), data=None, mechanism="laplace"):
    """The frame of answers of one statistic for many groups, all empty but those in ``data`` (key: records)."""
    method, parameters, _, _ = STATISTICS[name]
    data = data or {}
    rows = [(key, float(x)) for key, records in data.items() for x in records]
    frame = pd.DataFrame({"g": [g for g, _ in rows], "x": [x for _, x in rows]}).astype({"g": "int64", "x": "float64"})
    options = {"mechanism": mechanism, "curator": True} | ({} if method == "count" else {"bounds": bounds})
    return with_scale(getattr(frame.dprisk, method)("x", **parameters, eps=eps, by="g", keys=range(keys), **options))


def seeded(seed):
    """A sampler of the same distribution, fast and the same again."""
    generator = np.random.default_rng(seed)

    def sampler(numbers, change, eps):
        p = -math.expm1(-float(eps) / change)
        return numbers + np.subtract(*generator.geometric(p, size=(2, *numbers.shape)))

    return sampler


class Claim:
    """Whether draws look like Laplace noise of one scale around a centre.

    *Scale*: the mean of n absolute values over the scale is Gamma(n)/n, whatever the shape of the rest, and must be
    within 5 % of 1. For 20,000 draws that is 7 standard deviations: false failure 2e-12 (`TestThresholds` computes
    it). A scale off by a tenth is missed with a probability below 1e-9.
    *Shape and centre*: sqrt(n) times the Kolmogorov-Smirnov distance must be below 4; by Massart's inequality
    a true claim fails with a probability of at most 2 exp(-32) = 3e-14, however the distribution looks.
    """

    def __init__(self, centre, scale):
        self.centre, self.scale = centre, float(scale)

    def right_scale(self, draws):
        return abs(np.abs(draws - self.centre).mean() / self.scale - 1) < WIDTH

    def right_shape(self, draws):
        ordered = np.sort(draws)
        below = scipy.stats.laplace(self.centre, self.scale).cdf(ordered)
        rank = np.arange(len(ordered))
        distance = max((below - rank / len(ordered)).max(), ((rank + 1) / len(ordered) - below).max())
        return math.sqrt(len(ordered)) * distance < DISTANCE

    def accepts(self, draws):
        return bool(self.right_scale(draws) and self.right_shape(draws))
