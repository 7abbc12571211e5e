"""Sums of different values: a value that several records share counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pdrisk._core.statistics import Total, WholeStatistic
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe


@dataclass(frozen=True, slots=True)
class DistinctSum(Total):
    """Sum of the different clamped values: SUM(DISTINCT x) of SQL.

    A record brings a value that nobody else has, or changes nothing. In `leave_one_out` a record is its value where it
    alone has it, else 0. ``Summary.other`` tells of the values that one record alone has.
    """

    name: ClassVar[str] = "sum"  # to whoever rules over statistics

    @property
    def label(self) -> str:
        return "sum_distinct"

    @property
    def needs(self) -> Needs:
        return Needs(steps=True, distinct=True)

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.steps is not None
        return summary.steps.astype(np.float64) * self.lattice(universe).step

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        """Range of the worlds: a world lacks a value if one record alone has it, and nothing if others share it."""
        alone = summary.other
        assert alone is not None and alone.lowest is not None and alone.highest is not None
        lowest, highest = (self._counted(ends[0]) for ends in (alone.lowest, alone.highest))
        shared = alone.n < summary.n
        some, none = alone.n > 0, np.zeros(summary.n.shape)
        high = np.where(some, np.where(shared, np.maximum(highest, 0), highest), none)
        low = np.where(some, np.where(shared, np.minimum(lowest, 0), lowest), none)
        return high - low

    def _counted(self, values: FloatArray) -> FloatArray:
        """What values bring to the sum."""
        return values


@dataclass(frozen=True, slots=True)
class DistinctWholeSum(DistinctSum, WholeStatistic):
    """Sum of the different values declared to be whole numbers; others are rounded, each on its own."""

    @property
    def needs(self) -> Needs:
        return Needs(whole=True, distinct=True)

    def whole(self, summary: Summary) -> IntArray:
        assert summary.whole is not None
        return summary.whole

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self.whole(summary).astype(np.float64)

    def _counted(self, values: FloatArray) -> FloatArray:
        return np.floor(values + 0.5)
