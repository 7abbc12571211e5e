"""Statistics of a public number of records: neighbours differ by the value of one record; none is added or removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import LARGEST_STEPS, PLACES
from pdrisk._core.statistics import Mean, Proportion, Statistic, Sum, WholeStatistic
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe


@dataclass(frozen=True, slots=True)
class OfSize(Statistic):
    """Sum or mean of a public number of records.

    A missing record, of which there should be none, counts as the middle of the universe: so another value of one
    record moves the sum by the width of the universe at most, whatever the data are.
    """

    size: int = field(repr=False)  # how many records there are, at least 1

    replaces: ClassVar[bool] = True
    is_mean: ClassVar[bool] = False

    @property
    def needs(self) -> Needs:
        return Needs(places=True, ends=True)

    @property
    def times(self) -> int:
        """What a mean is multiplied by to make the answer."""
        return 1 if self.is_mean else self.size

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return self.times * universe.lo, self.times * universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return self.times * universe.mid

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width * self.times / self.size

    def whole_places(self, summary: Summary) -> IntArray:
        """The sum of all records' places, in units of `PLACES` between the bounds."""
        assert summary.places is not None
        return summary.places + np.maximum(self.size - summary.n, 0) * (PLACES // 2)

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return (universe.lo + universe.width * (self.whole_places(summary) / (PLACES * self.size))) * self.times

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        """Largest change: by the largest record moved to lo or the smallest to hi; half the width if none is there."""
        assert summary.lowest is not None and summary.highest is not None
        moved = np.maximum(summary.highest[0] - universe.lo, universe.hi - summary.lowest[0])
        return np.where(summary.n > 0, moved, universe.width / 2) * (self.times / self.size)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        """Not defined: no world lacks a record."""
        return np.full(summary.n.shape, np.nan)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        """Not defined: no world lacks a record."""
        return np.full(records.shape, np.nan)

    def influence(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        """The most that another value of each record moves the answer."""
        return np.maximum(records - universe.lo, universe.hi - records) * (self.times / self.size)

    def rounding(self, universe: Universe) -> float:
        return 0.0  # what is released is the sum of places, which is exact


@dataclass(frozen=True, slots=True)
class MeanOfSize(OfSize):
    """Mean of a public number of records."""

    name: ClassVar[str] = "mean"
    is_mean: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ProportionOfSize(MeanOfSize):
    """Share of a public number of records for which something holds."""

    name: ClassVar[str] = "proportion"


@dataclass(frozen=True, slots=True)
class SumOfSize(OfSize):
    """Sum of a public number of records."""

    name: ClassVar[str] = "sum"


@dataclass(frozen=True, slots=True)
class WholeSumOfSize(SumOfSize, WholeStatistic):
    """Sum of a public number of whole numbers; others are rounded first. The ends are whole numbers."""

    middle: int = field(default=0, repr=False)  # what a missing record counts as, in the middle of the universe

    @property
    def needs(self) -> Needs:
        return Needs(whole=True, ends=True)

    def whole(self, summary: Summary) -> IntArray:
        assert summary.whole is not None
        missing = np.maximum(self.size - summary.n, 0)
        return np.clip(summary.whole + missing * self.middle, -LARGEST_STEPS, LARGEST_STEPS)

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self.whole(summary).astype(np.float64)


def of_size(statistic: Statistic, size: int) -> OfSize | None:
    """The variant of a statistic for a public number of records; None if it has none."""
    kinds: dict[type[Statistic], type[OfSize]] = {Sum: SumOfSize, Mean: MeanOfSize, Proportion: ProportionOfSize}
    kind = kinds.get(type(statistic))
    return None if kind is None else kind(size)
