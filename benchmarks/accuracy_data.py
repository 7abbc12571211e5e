"""Shapes of data, statistics and goals of the accuracy benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import pdrisk
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean, Statistic, Sum

__all__ = [
    "CLIPPED",
    "EXACT",
    "GOALS",
    "GROUPED_GOALS",
    "GROUPED_ROWS",
    "LEVELS",
    "SAMPLES",
    "SHAPES",
    "STATISTICS",
    "Shape",
    "survey",
]

FloatArray = NDArray[np.float64]
SAMPLES = 20  # of each shape and size, drawn anew
LEVELS = {"quantile 0.05": 0.05, "median": 0.5, "quantile 0.9": 0.9, "min": 0.0, "max": 1.0}
CLIPPED = "clipped mean"
GROUPED_ROWS = 14_734  # of the survey's distances


@dataclass(frozen=True)
class Shape:
    """Data of one shape in any number, with what their owner would declare of them.

    ``reaches`` names the extremes that are declared to lie at the bounds, ``whole`` says that values are declared to be
    whole numbers.
    """

    name: str
    bounds: tuple[float, float]
    made: Callable[[np.random.Generator, int], FloatArray] = field(repr=False)
    whole: bool = False
    reaches: frozenset[str] = frozenset()

    def values(self, n: int, sample: int = 0) -> FloatArray:
        """The n values of a sample, the same on every call, within the bounds."""
        return np.clip(self.made(np.random.default_rng([n, sample]), n), *self.bounds)


@cache
def survey() -> pd.DataFrame:
    """The synthetic survey."""
    return pdrisk.datasets.soep_like(missing="nan")


def _resampled(column: str) -> Callable[[np.random.Generator, int], FloatArray]:
    """Answers to one of its questions, drawn with replacement."""
    return lambda rng, n: rng.choice(survey()[column].dropna().to_numpy(dtype=float), n)


def _nearly_constant(rng: np.random.Generator, n: int) -> FloatArray:
    return np.where(rng.random(n) < 0.01, rng.uniform(0, 100, n), 50.0)


ENDS = frozenset({"min", "max"})
SHAPES = (
    Shape(
        "distance", (1.0, 675.0), _resampled("distance"), whole=True,
        reaches=frozenset({"min"}),
    ),
    Shape("income", (0.0, 2_700_000.0), _resampled("income"), whole=True),
    Shape("uniform", (0.0, 100.0), lambda rng, n: rng.uniform(0, 100, n), reaches=ENDS),
    Shape("loose bounds", (0.0, 1000.0), lambda rng, n: rng.normal(400, 30, n)),
    Shape("0 or 1", (0.0, 1.0), lambda rng, n: (rng.random(n) < 0.3).astype(float), whole=True, reaches=ENDS),
    Shape("nearly constant", (0.0, 100.0), _nearly_constant),
    Shape("heaped", (0.0, 20_000.0), lambda rng, n: np.round(rng.lognormal(7.6, 0.6, n) / 500) * 500),
    Shape("ages", (0.0, 120.0), lambda rng, n: np.floor(18 + 75 * rng.beta(1.3, 1.6, n)), whole=True),
    Shape("balances", (-1000.0, 1000.0), lambda rng, n: rng.laplace(20, 60, n)),
)  # fmt: skip

STATISTICS: dict[str, Statistic] = {
    "count": Count(),
    "sum": Sum(),
    "mean": Mean(),
    CLIPPED: Mean(),
    "var": Var(),
    "std": Std(),
    "median": Median(),
    "quantile 0.05": Quantile(0.05),
    "quantile 0.9": Quantile(0.9),
    "min": Min(),
    "max": Max(),
}

EXACT: dict[str, Callable[[FloatArray], float]] = {
    "count": lambda x: float(len(x)),
    "sum": lambda x: float(x.sum()),
    "mean": lambda x: float(x.mean()),
    CLIPPED: lambda x: float(x.mean()),  # of the values that an answer says it clipped
    "var": lambda x: float(x.var(ddof=1)),
    "std": lambda x: float(x.std(ddof=1)),
    "median": lambda x: float(np.median(x)),
    "quantile 0.05": lambda x: float(np.quantile(x, 0.05)),
    "quantile 0.9": lambda x: float(np.quantile(x, 0.9)),
    "min": lambda x: float(x.min()),
    "max": lambda x: float(x.max()),
}
"""By numpy alone, of values within the bounds."""

GOALS: dict[tuple[str, str, int], float] = {
    ("mean", "distance", 300): 2.25,
    ("mean", "distance", 1000): 0.66,
    ("mean", "distance", 10_000): 0.067,
    ("mean", "income", 10_000): 272,
    (CLIPPED, "income", 10_000): 42,
    ("var", "distance", 1000): 333,
    ("var", "distance", 10_000): 43.9,
    ("var", "uniform", 1000): 4.3,
    ("std", "distance", 1000): 10.2,
    ("std", "distance", 10_000): 1.12,
    ("median", "distance", 1000): 0,
    ("median", "distance", 10_000): 0,
    ("median", "income", 10_000): 0.93,
    ("quantile 0.9", "distance", 1000): 0.44,
    ("quantile 0.9", "distance", 10_000): 0.16,
    ("max", "uniform", 1000): 0.135,
    ("max", "loose bounds", 1000): 31,
}
"""Mean absolute error at eps 1 that a prototype reached, by statistic, shape and n: of the median of 20 samples."""

GROUPED_GOALS = {16: 0.80, 1000: 33.0}
"""The same for the mean of `GROUPED_ROWS` distances in so many groups."""
