"""One statistic asked for many groups, its answer of nothing and its global sensitivity; noise by a seed."""

import math

import numpy as np
import pandas as pd

from pdrisk._answer.answer import Answer

DRAWS = 20_000
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
