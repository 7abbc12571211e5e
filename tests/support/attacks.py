"""What an attacker knows and sees: the answer in each world, and real releases about it.

Attacks end to end are not seeded, because no noise is. A share of n draws is compared with its expectation within
`SIGMAS` = 7 standard deviations (false failure 3e-12 each, some 1e-9 for all of test_attack_*.py).
"""

import math

import numpy as np
import pandas as pd

from noisy_answers import with_scale
from pdrisk._mechanisms import discrete_laplace

DRAWS = 20_000
SIGMAS = 7
LO, HI = 0.0, 10.0

# name: method, parameters, the answer of a list of records by numpy, of nothing, GS (docs/numbers.md)
STATISTICS = {
    "count": ("count", {}, len, 0.0, 1.0),
    "sum": ("sum", {}, sum, 0.0, 10.0),
    "mean": ("mean", {}, np.mean, 5.0, 5.0),
    "median": ("median", {}, np.median, 5.0, 5.0),
    "quantile": ("quantile", {"q": 0.9}, lambda x: np.quantile(x, 0.9), 5.0, 9.0),
    "min": ("min", {}, min, 10.0, 10.0),
    "max": ("max", {}, max, 0.0, 10.0),
    "var0": ("var", {"ddof": 0}, np.var, 0.0, 25.0),
    "var1": ("var", {"ddof": 1}, lambda x: np.var(x, ddof=1) if len(x) > 1 else 0.0, 0.0, 50.0),
    "std0": ("std", {"ddof": 0}, np.std, 0.0, 5.0),
    "std1": ("std", {"ddof": 1}, lambda x: np.std(x, ddof=1) if len(x) > 1 else 0.0, 0.0, 10 / math.sqrt(2)),
}


def exact(name, records):
    _, _, answer, nothing, _ = STATISTICS[name]
    return float(answer(records)) if len(records) else nothing


def releases(name, worlds, eps, draws=DRAWS, mechanism="laplace"):
    """Real answers about each world, shape (worlds, draws): every group of one ``by=`` call is a copy of a world."""
    method, parameters, *_ = STATISTICS[name]
    size = [len(world) for world in worlds for _ in range(draws)]
    records = np.concatenate([np.tile(np.asarray(world, dtype=float), draws) for world in worlds])
    frame = pd.DataFrame({"g": np.repeat(np.arange(len(size)), size), "x": records})
    keys = range(len(size))
    options = {"bounds": (LO, HI), "mechanism": mechanism, "curator": True}
    table = with_scale(getattr(frame.dprisk, method)("x", **parameters, eps=eps, by="g", keys=keys, **options))
    return table["value"].to_numpy().reshape(len(worlds), draws), table.iloc[::draws]


def watch(monkeypatch):
    """What accessors draw from now on, call by call: the noisy numbers that answers are made of."""
    seen = []

    def watched(exact, change, eps):
        seen.append(discrete_laplace(exact, change, eps))
        return seen[-1]

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", watched)
    return seen


def close(share, expected, draws):
    """Whether the share of so many draws is within 7 standard deviations of its expectation."""
    return abs(share - expected) <= SIGMAS * math.sqrt(max(expected * (1 - expected), 1 / draws) / draws)
