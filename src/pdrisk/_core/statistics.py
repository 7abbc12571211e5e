"""The statistics pdrisk answers: what each one is, and how far one record can move it.

Neighbours differ by one record, added anywhere in the universe or removed. `R` is the universe's width, `mu` the mean,
`x_k` the k-th smallest record, padded by the universe (see `Summary`). Proofs: docs/numbers.md.

This file holds the interface and the statistics that are sums; `order` and `spread` hold the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import LARGEST_STEPS, Lattice, PlaceGrid
from pdrisk._core.summary import Bins, FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe

# Engines add at most 2**18 floats one after another (pieces of 2**15, at most 2**17 pieces; or pieces of 2**18, and
# their sums exactly), so a computed mean is off by at most 2**18 * 2**-53 of the largest absolute value (Higham 2002,
# eq. 4.4). Those that add integers on a grid of 2**51 steps to it or more are off by half a step and the roundings of
# the quotient, 2**-50 together.
SUMMATION_ERROR = 2.0**-35


@dataclass(frozen=True, slots=True)
class Statistic(ABC):
    """One statistic as pure functions of a batch of G groups.

    Every method takes a `Summary` that holds what `needs` asks for, and the column's `Universe`; arrays have shape
    (G,).
    """

    name: ClassVar[str]
    bounded: ClassVar[bool] = True  # whether the answer depends on the universe at all
    replaces: ClassVar[bool] = False  # whether neighbours differ by another value of one record, not by one record

    @property
    def label(self) -> str:
        """The name with the parameters that differ from the default, as in ``quantile(0.9)``."""
        return self.name

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The parts of a `Summary` the methods below read."""

    @abstractmethod
    def value_range(self, universe: Universe) -> tuple[float, float]:
        """Interval that holds the answer for any data; infinite where it grows with the number of records."""

    @abstractmethod
    def value_of_nothing(self, universe: Universe) -> float:
        """The answer for the empty set, chosen so that the global sensitivity is what it is without it."""

    @abstractmethod
    def global_sensitivity(self, universe: Universe) -> float:
        """Largest change between any two neighbours in the universe."""

    def rows_weight(self, rows: int) -> Fraction:
        """Largest change by so many records at once, as a multiple of the global sensitivity, or a little above."""
        return Fraction(rows)

    @abstractmethod
    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        """The exact answer."""

    @abstractmethod
    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        """Largest absolute change over the candidate neighbours of these very data."""

    @abstractmethod
    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        """W: largest minus smallest answer over the sets that lack one record; 0 for n <= 1."""

    @abstractmethod
    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        """The answers without each of these records.

        Parameters
        ----------
        records : ndarray of float64, shape (n,)
            Clamped and not missing.
        summary : Summary
            Of the one group that they belong to, or for each record of its own group, as `Summary.of_rows` gives it.

        Returns
        -------
        ndarray of float64, shape (n,)
        """

    @abstractmethod
    def rounding(self, universe: Universe) -> float:
        """Bound on the floating-point error of `value`, for any data."""

    def local_sensitivity(self, summary: Summary, universe: Universe) -> FloatArray:
        """LS: largest change between these data and any neighbour; never above the global sensitivity."""
        return np.minimum(self.largest_change(summary, universe), self.global_sensitivity(universe))

    def influence(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        """Change of the answer if each record is removed, shape (n,)."""
        return np.abs(self.leave_one_out(records, summary, universe) - self.value(summary, universe))

    def lattice(self, universe: Universe) -> Lattice:
        """The public grid the answer is rounded to before noise is added."""
        return Lattice.around(self.global_sensitivity(universe), self.rounding(universe))

    def steps(self, summary: Summary, universe: Universe) -> IntArray:
        """The answer in steps of `lattice`, clamped to its public range first: a cast never overflows."""
        bounded = np.clip(self.value(summary, universe), *self.value_range(universe))
        return np.rint(bounded / self.lattice(universe).step).astype(np.int64)


@dataclass(frozen=True, slots=True)
class WholeStatistic(Statistic):
    """A statistic whose answers are whole numbers, and stay so under whole noise."""

    @abstractmethod
    def whole(self, summary: Summary) -> IntArray:
        """The exact answer, shape (G,)."""


@dataclass(frozen=True, slots=True)
class Count(WholeStatistic):
    """Number of records. One record changes it by exactly 1, whatever the data."""

    name: ClassVar[str] = "count"
    bounded: ClassVar[bool] = False

    @property
    def needs(self) -> Needs:
        return Needs()

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return 0.0, np.inf

    def value_of_nothing(self, universe: Universe) -> float:
        return 0.0

    def global_sensitivity(self, universe: Universe) -> float:
        return 1.0

    def whole(self, summary: Summary) -> IntArray:
        return summary.n

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self.whole(summary).astype(np.float64)

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.ones(summary.n.shape)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.zeros(summary.n.shape)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.broadcast_to(summary.n - 1.0, records.shape)

    def rounding(self, universe: Universe) -> float:
        return 0.0

    def lattice(self, universe: Universe) -> Lattice:
        return Lattice.of_records(1.0)

    def steps(self, summary: Summary, universe: Universe) -> IntArray:
        one = self.lattice(universe).sensitivity
        return np.minimum(self.whole(summary), LARGEST_STEPS // one) * one


@dataclass(frozen=True, slots=True)
class Distinct(Count):
    """Number of different values. A new value adds 1; a record takes 1 away if nobody shares its value."""

    name: ClassVar[str] = "nunique"

    @property
    def needs(self) -> Needs:
        return Needs(distinct=True)

    def whole(self, summary: Summary) -> IntArray:
        assert summary.distinct is not None
        return summary.distinct

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.singles is not None
        return ((summary.singles > 0) & (summary.singles < summary.n)).astype(np.float64)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        """As for every statistic; a record is 1 where it alone has its value, else 0."""
        return self.whole(summary) - records


@dataclass(frozen=True, slots=True)
class Histogram(Count):
    """Numbers of records between edges: counts of disjoint groups."""

    edges: tuple[float, ...] = (0.0, 1.0)  # ascending; each bin holds its left edge, the last one both
    clamps: bool = False  # whether records beyond the edges count in the first and last bin, instead of not at all
    name: ClassVar[str] = "hist"

    @property
    def needs(self) -> Needs:
        return Needs(bins=Bins(self.edges, self.clamps))

    @property
    def label(self) -> str:
        few = self.edges if len(self.edges) <= 5 else (*self.edges[:2], "...", *self.edges[-2:])
        edges = ", ".join(edge if isinstance(edge, str) else f"{edge:g}" for edge in few)
        return f"hist({len(self.edges) - 1} bins: {edges})"


@dataclass(frozen=True, slots=True)
class Total(Statistic):
    """Sum of one number for each record; data farther from zero are always possible."""

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return (-np.inf if universe.lo < 0 else 0.0), (np.inf if universe.hi > 0 else 0.0)

    def value_of_nothing(self, universe: Universe) -> float:
        return 0.0

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.magnitude

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.total is not None
        return summary.total

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, universe.magnitude)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return self.value(summary, universe) - records

    def influence(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.abs(records)

    def rounding(self, universe: Universe) -> float:
        return 0.0  # what is released is the sum over the lattice, which is exact

    def lattice(self, universe: Universe) -> Lattice:
        return Lattice.of_records(universe.magnitude)

    def steps(self, summary: Summary, universe: Universe) -> IntArray:
        assert summary.steps is not None
        return np.clip(summary.steps, -LARGEST_STEPS, LARGEST_STEPS)


@dataclass(frozen=True, slots=True)
class Sum(Total):
    """Sum of the records."""

    name: ClassVar[str] = "sum"

    @property
    def needs(self) -> Needs:
        return Needs(total=True, steps=True, ends=True)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        return _spread(summary)


@dataclass(frozen=True, slots=True)
class WholeSum(Sum, WholeStatistic):
    """Sum of records that are declared to be whole numbers; others are rounded first. The ends are whole numbers."""

    @property
    def needs(self) -> Needs:
        return Needs(whole=True, ends=True)

    def whole(self, summary: Summary) -> IntArray:
        assert summary.whole is not None
        return summary.whole

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self.whole(summary).astype(np.float64)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        return np.where(summary.n > 0, np.floor(summary.highest[0] + 0.5) - np.floor(summary.lowest[0] + 0.5), 0.0)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return self.value(summary, universe) - np.floor(records + 0.5)

    def influence(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.abs(np.floor(records + 0.5))


@dataclass(frozen=True, slots=True)
class Mean(Statistic):
    """Arithmetic mean. Adding u moves it by (u - mu)/(n + 1), removing x by (mu - x)/(n - 1).

    Attributes
    ----------
    n_at_least : int
        How many records there are declared to be at the least; 0 where nothing is.
    """

    n_at_least: int = field(default=0, repr=False)

    name: ClassVar[str] = "mean"

    @property
    def needs(self) -> Needs:
        return Needs(total=True, ends=True)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return universe.mid

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width / 2

    def rows_weight(self, rows: int) -> Fraction:
        return Fraction(2 * rows, rows + 1)  # k records at one end beside one at the other: R k / (k + 1)

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        mu = mean_of(summary, universe)
        # Rounding can carry the mean of equal records one float past them.
        return np.where(summary.n > 0, np.clip(mu, universe.lo, universe.hi), self.value_of_nothing(universe))

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        n, mu = summary.n, self.value(summary, universe)
        add = np.maximum(universe.hi - mu, mu - universe.lo) / (n + 1)
        remove = np.maximum(summary.highest[0] - mu, mu - summary.lowest[0]) / np.maximum(n - 1, 1)
        # Of one record, removing it leads to the middle, which is never farther than adding an end.
        return np.where(n > 0, np.maximum(add, np.where(n > 1, remove, 0)), universe.width / 2)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        return _spread(summary) / np.maximum(summary.n - 1, 1)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        mu = self.value(summary, universe)
        left = mu + (mu - records) / np.maximum(summary.n - 1, 1)
        return np.where(summary.n > 1, left, self.value_of_nothing(universe))

    def influence(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        if np.any(summary.n < 2):
            return np.abs(self.leave_one_out(records, summary, universe) - self.value(summary, universe))
        change = self.value(summary, universe) - records
        np.abs(change, out=change)
        change *= 1 / (summary.n - 1.0)
        return change

    def rounding(self, universe: Universe) -> float:
        return SUMMATION_ERROR * universe.magnitude


@dataclass(frozen=True, slots=True)
class Proportion(Mean):
    """Mean of truth values: the share of records for which something holds."""

    name: ClassVar[str] = "proportion"


def mean_of(summary: Summary, universe: Universe) -> FloatArray:
    """The mean of each group, from the sum of its records or of their places; 0 where there is no record."""
    n = np.maximum(summary.n, 1)
    if summary.total is not None:
        return summary.total / n
    assert summary.places is not None
    return np.where(summary.n > 0, universe.lo + summary.places / n / PlaceGrid.of(universe).per_unit, 0.0)


def _spread(summary: Summary) -> FloatArray:
    """x_n - x_1; 0 where n = 0."""
    assert summary.lowest is not None and summary.highest is not None
    return np.where(summary.n > 0, summary.highest[0] - summary.lowest[0], 0.0)
