"""Order statistics: median, quantiles, min and max."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary, whole_and_part, window_start
from pdrisk._core.universe import Universe

INTERPOLATION_ERROR = 2.0**-50  # of the largest absolute value: four roundings


@dataclass(frozen=True, slots=True)
class Quantile(Statistic):
    """Quantile q by linear interpolation, the default of numpy and pandas.

    Of n sorted records it stands at the position (n - 1) q between the first (0) and the last (n - 1). The result is
    monotone in a value added and in the rank removed, so adding lo or hi and removing x_1 or x_n are the extremes.
    """

    q: float
    # whether values are declared to be whole numbers
    whole: bool = field(default=False, repr=False)  # not in canonical texts, which `Needs` tells it
    name: ClassVar[str] = "quantile"

    @property
    def label(self) -> str:
        return f"quantile({repr(self.q).removesuffix('.0')})"

    @property
    def needs(self) -> Needs:
        return Needs(windows=frozenset({self.q}))

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return universe.mid

    def global_sensitivity(self, universe: Universe) -> float:
        return max(self.q, 1 - self.q) * universe.width

    def rows_weight(self, rows: int) -> Fraction:
        one = Fraction(max(self.q, 1 - self.q))
        return min(Fraction(1), rows * one) / one

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        at_own = self._interpolated(summary, summary.n - 1, 1)
        return np.where(summary.n > 0, at_own, self.value_of_nothing(universe))

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        n, value = summary.n, self.value(summary, universe)
        without_first = np.where(n > 1, self._interpolated(summary, n - 2, 2), self.value_of_nothing(universe))
        without_last = np.where(n > 1, self._interpolated(summary, n - 2, 1), self.value_of_nothing(universe))
        with_lo = self._interpolated(summary, n, 0)
        with_hi = self._interpolated(summary, n, 1)
        neighbours = np.stack([with_lo, with_hi, without_first, without_last])
        return np.where(n > 0, np.abs(neighbours - value).max(axis=0), universe.width / 2)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        left = summary.n - 2
        spread = self._interpolated(summary, left, 2) - self._interpolated(summary, left, 1)
        return np.where(summary.n > 1, spread, 0.0)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        window = summary.windows[self.q]
        whole, part = whole_and_part(summary.n - 2, self.q)
        first = np.clip(whole + 1 - window_start(summary.n, self.q), 0, 2)
        group = np.arange(len(summary.n))
        # Removing any of several equal records leaves the same set, so the value tells what its rank would.
        below, middle, above = (window[np.minimum(first + step, 3), group] for step in range(3))
        after = [low + part * (high - low) for low, high in ((middle, above), (below, above), (below, middle))]
        left = np.where(records <= below, after[0], np.where(records <= middle, after[1], after[2]))
        return np.where(summary.n > 1, left, self.value_of_nothing(universe))

    def rounding(self, universe: Universe) -> float:
        return INTERPOLATION_ERROR * universe.magnitude

    def _interpolated(self, summary: Summary, length: NDArray[np.int64], offset: int) -> FloatArray:
        """The value at rank ``length * q + offset``, ranks counted from 1."""
        window = summary.windows[self.q]
        whole, part = whole_and_part(length, self.q)
        place = np.clip(whole + offset - window_start(summary.n, self.q), 0, 3)
        group = np.arange(len(summary.n))
        low = window[place, group]
        high = window[np.minimum(place + 1, 3), group]
        return low + part * (high - low)


@dataclass(frozen=True, slots=True)
class Median(Quantile):
    """The middle record, or the mid-point of the two middle ones: quantile 1/2."""

    q: float = 0.5
    name: ClassVar[str] = "median"

    @property
    def label(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Extreme(Statistic):
    """The record at one end. Adding that end of the universe moves it there, removing it moves it to the next."""

    # whether records are declared to lie at this end of the universe
    bounds_reached: bool = field(default=False, repr=False)
    whole: bool = field(default=False, repr=False)  # whether values are declared to be whole numbers

    @property
    def label(self) -> str:
        return f"{self.name}(bounds_reached=True)" if self.bounds_reached else self.name

    @abstractmethod
    def _ends(self, universe: Universe) -> tuple[float, float]:
        """The end of the universe that it can reach, and the opposite one."""

    @abstractmethod
    def _first_two(self, summary: Summary) -> FloatArray:
        """The record at the end and the next, padded by the opposite end, shape (2, G)."""

    def rows_weight(self, rows: int) -> Fraction:
        return Fraction(1)  # one record can move it across the universe

    @property
    def needs(self) -> Needs:
        return Needs(ends=True, seconds=True)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return self._ends(universe)[1]

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self._first_two(summary)[0]

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        first, second = self._first_two(summary)
        return np.maximum(np.abs(first - self._ends(universe)[0]), np.abs(second - first))

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        first, second = self._first_two(summary)
        return np.where(summary.n > 1, np.abs(second - first), 0.0)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        first, second = self._first_two(summary)
        return np.where(records == first, second, first)

    def rounding(self, universe: Universe) -> float:
        return 0.0  # it is one of the records


@dataclass(frozen=True, slots=True)
class Min(_Extreme):
    """Smallest record, hi for the empty set."""

    name: ClassVar[str] = "min"

    def _ends(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def _first_two(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None
        return summary.lowest


@dataclass(frozen=True, slots=True)
class Max(_Extreme):
    """Largest record, lo for the empty set."""

    name: ClassVar[str] = "max"

    def _ends(self, universe: Universe) -> tuple[float, float]:
        return universe.hi, universe.lo

    def _first_two(self, summary: Summary) -> FloatArray:
        assert summary.highest is not None
        return summary.highest
