"""Variance and standard deviation.

With ``d`` the distance of the record from the mean, adding or removing one changes the variance by an amount monotone
in d**2, so the farthest and the nearest record are the extremes. The paper's own rule tries the farthest only: on
[0, 1] with the records 0, 0, 1, 1 it gives 1/36, where adding 0.5 gives 1/20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pdrisk._core.statistics import SUMMATION_ERROR, Statistic, mean_of
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Universe


@dataclass(frozen=True, slots=True)
class Var(Statistic):
    """Variance, the sum of squared distances from the mean over n - ddof; 0 where n <= ddof.

    The empty set and, for ddof=1, the single record have variance 0.
    """

    ddof: int = 1
    # how many records there are declared to be at the least; 0 where nothing is
    n_at_least: int = field(default=0, repr=False)
    name: ClassVar[str] = "var"

    @property
    def label(self) -> str:
        return self.name if self.ddof == 1 else f"{self.name}(ddof={self.ddof})"

    @property
    def needs(self) -> Needs:
        return Needs(total=True, ends=True, squares=True)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return 0.0, self.global_sensitivity(universe)  # {lo, hi} is the most spread and next to {lo}, which has none

    def value_of_nothing(self, universe: Universe) -> float:
        return 0.0

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width**2 / (4 if self.ddof == 0 else 2)

    def rows_weight(self, rows: int) -> Fraction:
        return Fraction(1)  # one record can move it across its range

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.squares is not None
        return summary.squares / np.maximum(summary.n - self.ddof, 1)

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.abs(self._changes(summary, universe)).max(axis=0)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        *_, without_low, without_high, without_nearest = self._changes(summary, universe)
        return without_nearest - np.minimum(without_low, without_high)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        left = summary.n - 1 - self.ddof
        rest = _rest(summary, records - mean_of(summary, universe), universe)
        return np.where(left > 0, rest / np.maximum(left, 1), 0.0)

    def rounding(self, universe: Universe) -> float:
        return SUMMATION_ERROR / 2 * universe.width**2 + (SUMMATION_ERROR * universe.magnitude) ** 2

    def _changes(self, summary: Summary, universe: Universe) -> FloatArray:
        """Changes of the variance by the six candidates, shape (6, G).

        Rows: add lo, add hi, add the mean itself, remove x_1, remove x_n, remove the record nearest the mean.
        """
        assert summary.lowest is not None and summary.highest is not None and summary.nearest is not None
        mu = mean_of(summary, universe)
        n = summary.n.astype(np.float64)
        variance = self.value(summary, universe)
        added = np.stack([mu - universe.lo, universe.hi - mu, np.zeros_like(mu)]) ** 2
        removed = np.stack([mu - summary.lowest[0], summary.highest[0] - mu, summary.nearest]) ** 2
        if self.ddof == 0:
            add = -variance / (n + 1) + n * added / (n + 1) ** 2
            left = np.maximum(n - 1, 1)
            remove = np.where(n > 1, variance / left - n * removed / left**2, 0.0)
        else:
            add = np.where(n > 0, -variance / np.maximum(n, 1) + added / (n + 1), 0.0)
            left = np.maximum(n - 2, 1)
            remove = variance / left - n * removed / (np.maximum(n - 1, 1) * left)
            remove = np.where(n > 2, remove, -variance)  # one record left has no variance
        # Only the end of the records can be what all spread is due to: the nearest never is, of three or more.
        ends = np.stack([mu - summary.lowest[0], summary.highest[0] - mu])
        remove[:2] = np.where(_rest(summary, ends, universe) > 0, remove[:2], -variance)
        # A variance cannot fall below zero; rounding could say so where it falls to zero.
        return np.maximum(np.concatenate([add, remove]), -variance)


def _rest(summary: Summary, distance: FloatArray, universe: Universe) -> FloatArray:
    """The sum of squares without a record at such a distance from the mean.

    Zero where rounding alone may have left it: the root of that would not be small at all. Zero makes the change, and
    the range of worlds, larger.
    """
    assert summary.squares is not None
    n = summary.n.astype(np.float64)
    rest = summary.squares - n / np.maximum(n - 1, 1) * distance**2
    # Each of n additions is off by 2**-53 of what it gives, a mean by as much of itself; see SUMMATION_ERROR.
    error = np.minimum(n * 2.0**-52, SUMMATION_ERROR)
    error = error * (summary.squares + 2 * np.abs(distance * mean_of(summary, universe)))
    return np.where(rest > error, rest, 0.0)


@dataclass(frozen=True, slots=True)
class Std(Var):
    """Standard deviation, the square root of the variance."""

    name: ClassVar[str] = "std"

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width / (2 if self.ddof == 0 else math.sqrt(2))

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.sqrt(Var(self.ddof).value(summary, universe))

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.sqrt(Var(self.ddof).leave_one_out(records, summary, universe))

    def rounding(self, universe: Universe) -> float:
        # sqrt(s**2 + e**2) <= s + e: the error of the mean enters undiminished when all records are equal.
        return 2 * SUMMATION_ERROR * (universe.width + universe.magnitude)

    def _changes(self, summary: Summary, universe: Universe) -> FloatArray:
        variance = Var(self.ddof)
        change = variance._changes(summary, universe)
        before = variance.value(summary, universe)
        # sqrt(b) - sqrt(a) = (b - a) / (sqrt(b) + sqrt(a)) loses no digits when b is close to a.
        both = np.sqrt(before + change) + np.sqrt(before)
        return np.divide(change, both, out=np.zeros_like(change), where=both > 0)
