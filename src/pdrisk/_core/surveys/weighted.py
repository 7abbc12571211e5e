"""Weighted statistics of surveys: each record of a column counts with its weight, which another column holds.

A weight w from 0 to W has the place ``Q = floor(w/W S + 1/2)``, from 0 to S = `PLACES`, and a record divides Q, instead
of S, among the Bernstein polynomials of its own place: see `products_of_places`. So it adds Q to all sums together.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from pdrisk._core.lattice import PLACES, Points
from pdrisk._core.order import Median, Quantile
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.products import Degrees
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean, Proportion, Statistic, Sum
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.surveys.mean_change import MeanChange
from pdrisk._core.universe import Rectangle, Universe

WEIGHTED: Final = "weighted "  # how the names of these statistics begin
OF_ANYTHING: Final = ("weighted proportion", "weighted count")  # whose values need no bounds


@dataclass(frozen=True, slots=True)
class SumOfWeights(Sum):
    """Weighted number of records: the sum of the column of weights."""

    name: ClassVar[str] = "weighted count"


@dataclass(frozen=True, slots=True)
class Weighted(OfTwoColumns):
    """A statistic of the first column in which each record counts with its weight, from the other one.

    Its universe is a `Rectangle`, and the interval of the weights begins at 0.
    """


@dataclass(frozen=True, slots=True)
class WeightedMoment(Weighted):
    """A weighted statistic that is made of weighted sums."""

    degrees: ClassVar[Degrees] = (1, 0)

    def weighted_sums(self, summary: Summary) -> IntArray:
        """Weighted sums of the Bernstein polynomials, in places of the weight, shape (degree + 1, G)."""
        return summary.products[self.degrees]

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        sums = self.weighted_sums(summary).astype(np.float64) / PLACES * largest_weight(universe)
        return np.clip(self.of_sums(sums, universe), *self.value_range(universe))

    @abstractmethod
    def of_sums(self, sums: FloatArray, universe: Universe) -> FloatArray:
        """The answer that the sums give, in units of weight."""


@dataclass(frozen=True, slots=True)
class WeightedMean(WeightedMoment):
    """Weighted mean: ``sum(w x) / sum(w)``; the middle of the bounds without any weight.

    Its local sensitivity is that of adding a record at a bound with the largest weight, or a bound on what the record
    with the largest weight could change if it had the most extreme value, whichever is more.
    """

    name: ClassVar[str] = "weighted mean"

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return universe.mid

    def global_sensitivity(self, universe: Universe) -> float:
        """The width: beside a record of hardly any weight one of the largest decides nearly alone."""
        return universe.width

    def of_sums(self, sums: FloatArray, universe: Universe) -> FloatArray:
        low, high = sums
        weight = low + high
        share = np.divide(high, weight, out=np.full(weight.shape, 0.5), where=weight > 0)
        return universe.lo + universe.width * share

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        assert summary.other is not None and summary.lowest is not None
        assert summary.highest is not None and summary.other.highest is not None
        mean, most = self.value(summary, universe), largest_weight(universe)
        weight = self.weighted_sums(summary).sum(axis=0) / PLACES * most
        add = np.maximum(universe.hi - mean, mean - universe.lo) * most / (weight + most)
        heaviest = np.minimum(summary.other.highest[0], weight)
        far = np.maximum(summary.highest[0] - mean, mean - summary.lowest[0])
        left = weight - heaviest
        remove = np.divide(far * heaviest, left, out=np.full(left.shape, universe.width), where=left > 0)
        return np.where(summary.n > 0, np.maximum(add, remove), universe.width / 2)


@dataclass(frozen=True, slots=True)
class WeightedChange(WeightedMean):
    """Weighted mean difference of people's numbers between two waves: a person has the weight of the later wave."""

    change: MeanChange  # the same without weights
    name: ClassVar[str] = "weighted change"

    @property
    def label(self) -> str:
        return f"{WEIGHTED}{self.change.label}"


@dataclass(frozen=True, slots=True)
class WeightedProportion(WeightedMean):
    """Weighted share of the records for which something holds."""

    name: ClassVar[str] = "weighted proportion"


@dataclass(frozen=True, slots=True)
class WeightedSum(WeightedMoment):
    """Weighted sum: ``sum(w x)``, the estimate of a population's total."""

    name: ClassVar[str] = "weighted sum"

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return (-np.inf if universe.lo < 0 else 0.0), (np.inf if universe.hi > 0 else 0.0)

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.magnitude * largest_weight(universe)

    def of_sums(self, sums: FloatArray, universe: Universe) -> FloatArray:
        low, high = sums
        return universe.lo * low + universe.hi * high

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, self.global_sensitivity(universe))


@dataclass(frozen=True, slots=True)
class WeightedCount(WeightedMoment):
    """Weighted number of the records that have a value: ``sum(w)``."""

    name: ClassVar[str] = "weighted count"

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return 0.0, np.inf

    def global_sensitivity(self, universe: Universe) -> float:
        return largest_weight(universe)

    def of_sums(self, sums: FloatArray, universe: Universe) -> FloatArray:
        return sums.sum(axis=0)

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, self.global_sensitivity(universe))


@dataclass(frozen=True, slots=True)
class WeightedSpread(WeightedMoment):
    """Weighted variance or standard deviation, with the sum of the weights as denominator."""

    degrees: ClassVar[Degrees] = (2, 0)
    plain: ClassVar[Var]

    @property
    def label(self) -> str:
        return f"{self.name}(ddof=0)"

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return self.plain.value_range(universe)

    def global_sensitivity(self, universe: Universe) -> float:
        """The whole range: beside records of hardly any weight two of the largest decide nearly alone."""
        low, high = self.value_range(universe)
        return high - low

    def of_sums(self, sums: FloatArray, universe: Universe) -> FloatArray:
        weight = sums.sum(axis=0)
        some = np.where(weight > 0, weight, np.inf)
        mean, square = (sums[1] / 2 + sums[2]) / some, sums[2] / some
        var = np.clip(square - mean**2, 0.0, 0.25)
        return self._answer(var, universe)

    @abstractmethod
    def _answer(self, var: FloatArray, universe: Universe) -> FloatArray:
        """The answer for a variance on [0, 1]."""


@dataclass(frozen=True, slots=True)
class WeightedVar(WeightedSpread):
    """Weighted variance: ``sum(w (x - mean)**2) / sum(w)``."""

    name: ClassVar[str] = "weighted var"
    plain: ClassVar[Var] = Var(0)

    def _answer(self, var: FloatArray, universe: Universe) -> FloatArray:
        return var * universe.width**2


@dataclass(frozen=True, slots=True)
class WeightedStd(WeightedSpread):
    """Weighted standard deviation: the root of `WeightedVar`."""

    name: ClassVar[str] = "weighted std"
    plain: ClassVar[Var] = Std(0)

    def _answer(self, var: FloatArray, universe: Universe) -> FloatArray:
        return np.sqrt(var) * universe.width


@dataclass(frozen=True, slots=True)
class WeightedQuantile(Weighted):
    """Weighted quantile: the smallest point up to which records have at least a share q of the weight.

    Records are rounded to `Points`, and their weights to steps of which the largest has ``2**WEIGHT_BITS``.
    """

    q: float = 0.5
    name: ClassVar[str] = "weighted quantile"

    @property
    def label(self) -> str:
        return f"{self.name}({repr(self.q).removesuffix('.0')})"

    @property
    def needs(self) -> Needs:
        return Needs(cells=True, ends=True)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return universe.lo, universe.hi

    def value_of_nothing(self, universe: Universe) -> float:
        return universe.mid

    def global_sensitivity(self, universe: Universe) -> float:
        return universe.width

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        cells = summary.cells
        assert cells is not None
        points = Points.between(universe.lo, universe.hi)
        before = np.append(0, np.cumsum(cells.count))
        start, end = before[cells.first[:-1]], before[cells.first[1:]]
        rank = np.maximum(start + np.ceil((end - start) * self.q), start + 1)
        at = np.searchsorted(before[1:], rank, side="left")
        known = end > start
        values = points.value(cells.point[np.minimum(at, max(len(cells.point) - 1, 0))]) if len(cells.point) else 0.0
        return np.where(known, values, universe.mid)


@dataclass(frozen=True, slots=True)
class WeightedMedian(WeightedQuantile):
    """Weighted median: the weighted quantile 1/2."""

    name: ClassVar[str] = "weighted median"

    @property
    def label(self) -> str:
        return self.name


def weighted(statistic: Statistic) -> Weighted | None:
    """The weighted statistic in the place of a plain one; None where there is none."""
    if isinstance(statistic, MeanChange):
        return WeightedChange(statistic)
    if isinstance(statistic, Quantile):
        return WeightedMedian() if type(statistic) is Median else WeightedQuantile(statistic.q)
    kinds: dict[type[Statistic], type[WeightedMoment]] = {
        Mean: WeightedMean, Proportion: WeightedProportion, Sum: WeightedSum, Count: WeightedCount,
        Var: WeightedVar, Std: WeightedStd,
    }  # fmt: skip
    kind = None if isinstance(statistic, Var) and statistic.ddof else kinds.get(type(statistic))
    return None if kind is None else kind()


def change_of(statistic: Statistic) -> MeanChange | None:
    """The change between two waves that a statistic is, with or without weights; None for others."""
    if isinstance(statistic, WeightedChange):
        return statistic.change
    return statistic if isinstance(statistic, MeanChange) else None


def largest_weight(universe: Universe) -> float:
    """W, the upper bound of the weights."""
    assert isinstance(universe, Rectangle)
    return universe.other.hi
