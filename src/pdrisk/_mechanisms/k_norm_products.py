"""K-norm mechanism for the correlations of several columns: means, squares and products with one noise for all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import LARGEST_PLACES, PLACES
from pdrisk._core.pairs import CorrAmong, Moments
from pdrisk._core.risks.gaussian_dp import mu_of_pure
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms.bernstein_products import BernsteinProducts
from pdrisk._mechanisms.contract.base import Drawn, check_smallest
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.cube import LARGEST_SCALE, cube_noise
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk.errors import ParameterError

# Of each number by one record. The middle share of a place is at most half of S = `PLACES`. Divided among the shares of
# another column, each end may lose 2 by rounding, which the middle gets: so squares may lie 16 below -S.
CHANGE = PLACES + 16
LARGEST_EPS = Fraction(2**16)  # beyond, noise stays as it is then: a hundred-thousandth of a record
FEWEST = 2.0  # standard deviations of the noise, below which a number of records says nothing
POINTS = 4000  # at which the law of the size of a cube is added up

SIGNS = np.array([-1, 0, 1])  # of a column on [-1, 1] in its three Bernstein polynomials
SQUARES = np.array([1, -3, 1])  # of 2 x**2 - 1
EVEN = np.ones(3, dtype=np.int64)
NUMBERS = np.stack(  # of one pair in the nine sums of products: n, both columns, both squares, the product
    [
        np.multiply.outer(one, other).ravel()
        for one, other in ((EVEN, EVEN), (SIGNS, EVEN), (EVEN, SIGNS), (SQUARES, EVEN), (EVEN, SQUARES), (SIGNS, SIGNS))
    ]
)
BACK = np.linalg.pinv(NUMBERS)  # nine sums that have given numbers, shape (9, 6)


@dataclass(frozen=True, slots=True)
class KNormProducts(BernsteinProducts):
    """Correlations of every two of k columns from one draw about all of them.

    Notes
    -----
    With the values of each column on [-1, 1], a record adds 1 to the number of records, x to the sum of a column,
    ``2 x**2 - 1`` to that of its squares, and x y to that of the products of two: d = 1 + 2 k + k (k - 1) / 2 numbers,
    none of which it moves by more than 1. Noise of the K-norm mechanism of Hardt & Talwar (2010) for the largest norm,
    `cube_noise`, then costs eps for all of them together. Its standard deviation is ``(d + 2) / sqrt(3) / eps``, where
    Laplace noise, with eps shared by the pairs, has ``sqrt(2) k (k - 1) / 2 / eps`` on each of nine sums.

    Every record bears eps, and that somebody loses it is as likely as it can be (`mu_of_pure`): by the best test, one
    answer tells as much as randomized response. Where a budget counts success, shares of it add up by their squares,
    and single pairs are more accurate.

    All numbers come from the nine sums of products that engines compute for every pair: whole numbers of 2**-30.
    """

    statistic: CorrAmong

    is_of_all_lines: ClassVar[bool] = True
    name: ClassVar[str] = "k_norm_products"
    noise: ClassVar[str] = (
        "one vector of K-norm noise (the largest norm) on the numbers, sums, squares and products of all columns"
    )

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, CorrAmong)

    def check(self) -> None:
        check_smallest(self.eps)
        if CHANGE / self.eps > LARGEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} leaves nothing of correlations of several columns: ask with "
                f"eps={CHANGE / LARGEST_SCALE:.2g} or more."
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        exact = self.exact(summary)
        numbers, groups = exact.shape
        return exact + cube_noise(numbers, groups, CHANGE, min(self.eps, LARGEST_EPS), sampler, bits)

    def exact(self, summary: Summary) -> IntArray:
        """The numbers without noise, shape (d, G); of a summary of this pair alone those of others are 0."""
        columns = self.statistic.columns
        pairs = CorrAmong.all_of(columns)
        summaries = zip(pairs, summary.together, strict=True) if summary.together else ((self.statistic, summary),)
        numbers = np.zeros((1 + 2 * columns + len(pairs), len(summary.n)), dtype=np.int64)
        for pair, pair_summary in summaries:
            # What leaves 64 bits on the way comes back.
            numbers[_rows(pair)] = NUMBERS @ pair_summary.products[pair.degrees]
        return np.clip(numbers, -LARGEST_PLACES, LARGEST_PLACES)

    def noise95(self, summary: Summary) -> FloatArray:
        return self.noise95_of(self.exact(summary))

    def loss_between(self, first: Summary, second: Summary) -> float:
        """Largest log-ratio of the probabilities of any draw about these two."""
        apart = np.abs(self.exact(first) - self.exact(second)).max(axis=0)
        return float(apart.sum() * min(self.eps, LARGEST_EPS) / CHANGE)

    def law(self, drawn: Drawn) -> Law | None:
        return None  # its numbers are not independent

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return np.where(summary.n > 0, 2 * float(self.eps), 0.0)

    @property
    def fewest(self) -> float:
        return FEWEST * math.sqrt((self._size + 1) * (self._size + 2) / 3)

    @property
    def _size(self) -> int:
        """Numbers d that are drawn together."""
        columns = self.statistic.columns
        return 1 + 2 * columns + columns * (columns - 1) // 2

    def critical(self, influences: FloatArray, level: float) -> FloatArray:
        weights = np.tensordot(BACK.T, influences, axes=1)
        return np.sqrt((weights**2).sum(axis=0) / 3) * _critical(self._size, level)

    def _moments(self, drawn: Drawn) -> Moments:
        numbers = drawn[_rows(self.statistic)].astype(np.float64) / PLACES
        return Moments.of(BACK @ numbers, self.statistic.degrees)

    def _success(self, eps: float) -> float:
        return 1 / (1 + math.exp(-eps))

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_pure(eps)


def _rows(pair: CorrAmong) -> list[int]:
    """Where the numbers of a pair stand among all: n, both columns, both squares, the product."""
    k = pair.columns
    at = pair.first * (2 * k - pair.first - 1) // 2 + pair.second - pair.first - 1
    return [0, 1 + pair.first, 1 + pair.second, 1 + k + pair.first, 1 + k + pair.second, 1 + 2 * k + at]


@lru_cache(maxsize=64)
def _critical(size: int, level: float) -> float:
    """Bound that a weighted sum of the noise keeps with probability ``level``, over its root of the summed variances.

    In units of a side of the cube, each number is uniform with variance 1/3, and the side is the sum of ``size + 1``
    exponential variables. A sum of uniforms lies between one of them and a normal variable: the wider bound of both.
    """
    reach = size + 1 + 12 * math.sqrt(size + 1)
    side = (np.arange(POINTS) + 0.5) * (reach / POINTS)
    share = np.exp(size * np.log(side) - side - math.lgamma(size + 1))
    share /= share.sum()
    normal = NormalDist()

    def beyond(t: float) -> float:
        uniform = np.maximum(1 - t / (side * math.sqrt(3)), 0.0)
        smooth = np.array([math.erfc(distance) for distance in (t / side / math.sqrt(2))])
        return float(max(share @ uniform, share @ smooth))

    low, high = 0.0, reach * -normal.inv_cdf((1 - level) / 2)
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if beyond(t) > 1 - level else (low, t)
    return high
