"""Statistics of two columns: covariance, correlation and the slope of a regression.

All are made of means, squares and the product of the two columns, which the sums of `products_of_places` tell. What one
record can move them by depends on the data in ways that no formula here gives, so their local sensitivity is NaN: they
are answered by mechanisms whose noise does not ask for it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import PLACES
from pdrisk._core.products import Degrees
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Rectangle, Universe

VARIES = 2.0**-26  # of the squared width: a column of smaller variance counts as constant, as rounding may have made it


@dataclass(frozen=True, slots=True)
class Moments:
    """Means, variances and covariance of w and v, the columns on [0, 1], from the sums of products of places."""

    degrees: Degrees
    n: FloatArray  # number of records; of noisy sums, any number; shape (G,)
    # `mean`, `other_mean`, `cov`: 0 where n is not above 0; shape (G,)
    mean: FloatArray
    other_mean: FloatArray
    cov: FloatArray
    # `var`, `other_var`: NaN where the degree of the column is 1, which does not tell it; shape (G,)
    var: FloatArray
    other_var: FloatArray

    @classmethod
    def of(cls, sums: FloatArray, degrees: Degrees) -> Moments:
        """Those of sums in units of one record, shape (m, G)."""
        first, second = (degree + 1 for degree in degrees)
        parts = sums.reshape(first, second, -1)
        n = parts.sum(axis=(0, 1))
        some = np.where(n > 0, n, np.inf)
        shares, other = parts.sum(axis=1) / some, parts.sum(axis=0) / some
        at, beside = (np.arange(degree + 1)[:, None] / degree for degree in degrees)
        mean, other_mean = (at * shares).sum(axis=0), (beside * other).sum(axis=0)
        product = (at[:, None] * beside[None] * parts).sum(axis=(0, 1)) / some
        unknown = np.full(n.shape, np.nan)
        var = shares[2] - mean**2 if degrees[0] == 2 else unknown
        other_var = other[2] - other_mean**2 if degrees[1] == 2 else unknown
        return cls(degrees, n, mean, other_mean, product - mean * other_mean, var, other_var)

    def influence_of_mean(self) -> FloatArray:
        """How far a unit more in each sum moves n times the mean, shape (m, G)."""
        return np.repeat(self._off(0), self.degrees[1] + 1, axis=0)

    def influence_of_other_mean(self) -> FloatArray:
        """The same of the other mean."""
        return np.tile(self._off(1), (self.degrees[0] + 1, 1))

    def influence_of_cov(self) -> FloatArray:
        """The same of the covariance."""
        return self.influence_of_mean() * self.influence_of_other_mean() - self.cov

    def influence_of_var(self) -> FloatArray:
        """The same of the variance of the first column, whose degree is 2."""
        return np.repeat(_of_var(self.mean, self.var), self.degrees[1] + 1, axis=0)

    def influence_of_other_var(self) -> FloatArray:
        """The same of the variance of the other one."""
        return np.tile(_of_var(self.other_mean, self.other_var), (self.degrees[0] + 1, 1))

    def _off(self, axis: int) -> FloatArray:
        mean, degree = (self.mean, self.other_mean)[axis], self.degrees[axis]
        return np.arange(degree + 1)[:, None] / degree - mean


def _of_var(mean: FloatArray, var: FloatArray) -> FloatArray:
    """Influence of the three sums of one column on n times its variance; see `Bernstein`."""
    return np.stack([mean**2 - var, -mean * (1 - mean) - var, (1 - mean) ** 2 - var])


@dataclass(frozen=True, slots=True)
class OfTwoColumns(Statistic):
    """A statistic of two columns, of the records in which both have a value.

    Its universe is a `Rectangle`: that of the first column, and beside it that of the other.
    """

    degrees: ClassVar[Degrees]

    @property
    def needs(self) -> Needs:
        return Needs(products=frozenset({self.degrees}), ends=True)

    def value_of_nothing(self, universe: Universe) -> float:
        return 0.0

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        """NaN: it is not known."""
        return np.full(summary.n.shape, np.nan)

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, np.nan)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(records.shape, np.nan)

    def rounding(self, universe: Universe) -> float:
        return 0.0  # sums of whole numbers are released


@dataclass(frozen=True, slots=True)
class PairStatistic(OfTwoColumns):
    """A statistic of how two columns go together, by their means, squares and product."""

    @abstractmethod
    def of_moments(self, moments: Moments, universe: Rectangle) -> FloatArray:
        """The answer that exact or noisy moments give, within `value_range`."""

    def global_sensitivity(self, universe: Universe) -> float:
        low, high = self.value_range(universe)
        return high - low

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        assert isinstance(universe, Rectangle)
        sums = summary.products[self.degrees].astype(np.float64) / PLACES
        return self.of_moments(Moments.of(sums, self.degrees), universe)

    def local_sensitivity(self, summary: Summary, universe: Universe) -> FloatArray:
        """NaN: it is not known."""
        return self.largest_change(summary, universe)


@dataclass(frozen=True, slots=True)
class Cov(PairStatistic):
    """Covariance, the sum of products of both distances from the means over n - ddof; 0 where n <= ddof."""

    ddof: int = 1
    name: ClassVar[str] = "cov"
    degrees: ClassVar[Degrees] = (1, 1)

    @property
    def label(self) -> str:
        return self.name if self.ddof == 1 else f"{self.name}(ddof={self.ddof})"

    def value_range(self, universe: Universe) -> tuple[float, float]:
        most = self.global_sensitivity(universe)  # two records in opposite corners are next to one, which has none
        return -most, most

    def global_sensitivity(self, universe: Universe) -> float:
        assert isinstance(universe, Rectangle)
        return universe.width * universe.other.width / (4 if self.ddof == 0 else 2)

    def of_moments(self, moments: Moments, universe: Rectangle) -> FloatArray:
        return self.scaled(np.clip(moments.cov, -0.25, 0.25) * self.factor(moments.n), universe)

    def factor(self, n: FloatArray) -> FloatArray:
        """``n / (n - ddof)`` of an uncertain number of records: at most 2, 0 where nobody is left."""
        if self.ddof == 0:
            return (n > 0).astype(np.float64)
        return np.where(n > 1, np.minimum(n / np.maximum(n - 1, 0.5), 2.0), 0.0)

    def scaled(self, cov: FloatArray, universe: Rectangle) -> FloatArray:
        """A covariance on [0, 1] in the units of the columns, within its range."""
        return np.clip(cov * universe.width * universe.other.width, *self.value_range(universe))


@dataclass(frozen=True, slots=True)
class Corr(PairStatistic):
    """Pearson's correlation; 0 where a column does not vary: see `VARIES`.

    Its global sensitivity is the width of its range: of two records in a line one more can turn nearly all.
    """

    name: ClassVar[str] = "corr"
    degrees: ClassVar[Degrees] = (2, 2)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return -1.0, 1.0

    def of_moments(self, moments: Moments, universe: Rectangle) -> FloatArray:
        varies = (moments.n > 0) & (moments.var > VARIES) & (moments.other_var > VARIES)
        spread = np.sqrt(np.where(varies, moments.var, 1.0)) * np.sqrt(np.where(varies, moments.other_var, 1.0))
        return np.where(varies, np.clip(moments.cov / spread, -1.0, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class CorrAmong(Corr):
    """The correlation of two columns among several, over the records that have values in all of them.

    Parameters
    ----------
    first, second : int
        Which of the columns they are, counted from 0, the first one before the second.
    columns : int
        How many there are, 3 or more.
    """

    first: int
    second: int
    columns: int

    @classmethod
    def all_of(cls, columns: int) -> list[CorrAmong]:
        """Those of every two of so many columns."""
        return [cls(*pair, columns) for pair in combinations(range(columns), 2)]


@dataclass(frozen=True, slots=True)
class Slope(PairStatistic):
    """Slope of the regression of the first column on the other, the explaining one; 0 where that does not vary.

    A slope is at most the ratio of the standard deviations: half a width over the square root of `VARIES`, 4096 times
    that of the diagonal of the rectangle.
    """

    name: ClassVar[str] = "slope"
    degrees: ClassVar[Degrees] = (1, 2)

    def value_range(self, universe: Universe) -> tuple[float, float]:
        assert isinstance(universe, Rectangle)
        most = 0.5 / math.sqrt(VARIES) * (universe.width / universe.other.width)
        return -most, most

    def of_moments(self, moments: Moments, universe: Rectangle) -> FloatArray:
        varies = (moments.n > 0) & (moments.other_var > VARIES)
        var = np.where(varies, moments.other_var, 1.0)
        # By Cauchy and Schwarz: a covariance of noise is held to what the variances allow.
        most = np.sqrt(var * np.clip(moments.mean * (1 - moments.mean), 0.0, 0.25))
        slope = np.where(varies, np.clip(moments.cov, -most, most) / var, 0.0)
        return np.clip(slope * (universe.width / universe.other.width), *self.value_range(universe))
