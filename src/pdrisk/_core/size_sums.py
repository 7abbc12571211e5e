"""Public sizes that values are clipped at, and exact sums of the records between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

SIZE_PLACES = 2**50  # of the grid between the bounds: every place and a half is a float64
HALF_BITS = 25  # of a place, so that the sums of both halves of 2**37 records fit 64 bits
MANTISSAS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
DECADES = 12  # below the widest size
NARROWEST = 2.0**-19  # of the distance from 0, as of all bounds


@dataclass(frozen=True, slots=True, eq=False)
class SizePoints:
    """Round sizes on both sides of the point between two bounds that is nearest to 0, some ten for each power of ten.

    A record stands at the place ``floor((x - lo) * per_unit + .5)``: one rule in float64, so that all engines find the
    same. It grows with x, so that the bounds have the places 0 and `SIZE_PLACES`.
    """

    per_unit: float
    middle: int  # place of the point nearest to 0
    # `lower`, `upper`: the points below and above it, from the nearest to the bound; none where it is that
    # bound; shape (m,)
    lower: FloatArray
    upper: FloatArray
    # `lower_places`, `upper_places`: their places, all different; shape (m,)
    lower_places: IntArray
    upper_places: IntArray

    @classmethod
    @lru_cache(maxsize=64)
    def between(cls, lo: float, hi: float) -> SizePoints:
        """The points of two bounds."""
        per_unit, nearest = SIZE_PLACES / (hi - lo), min(max(lo, 0.0), hi)

        def place(x: float) -> int:
            return math.floor((x - lo) * per_unit + 0.5)

        def side(end: float) -> tuple[FloatArray, IntArray]:
            sign = math.copysign(1.0, end - nearest)
            points = [nearest + sign * size for size in _sizes(abs(end - nearest), abs(nearest) * NARROWEST)]
            places = {place(x): x for x in reversed(points)} | {place(end): end}
            places = {at: x for at, x in places.items() if lo <= x <= hi and at != place(nearest)}
            order = sorted(places, reverse=sign < 0)
            return np.array([places[at] for at in order]), np.array(order, dtype=np.int64)

        (lower, lower_places), (upper, upper_places) = side(lo), side(hi)
        return cls(per_unit, place(nearest), lower, upper, lower_places, upper_places)

    @property
    def bins(self) -> int:
        """Number of bins that `bin` can give, 0 included."""
        return len(self.thresholds) + 1

    @property
    def thresholds(self) -> IntArray:
        """Ascending places: the bin of a place is the number of those that are not above it.

        A bin holds the records that the same points clip: on a point, or between it and the next one nearer to 0.
        """
        return np.concatenate([self.lower_places[::-1], [self.middle], self.upper_places[:-1] + 1])

    def is_below(self, bins: IntArray, lower: int) -> NDArray[np.bool_]:
        """Whether records of these bins are below a lower point."""
        return bins < len(self.lower) - lower

    def is_above(self, bins: IntArray, upper: int) -> NDArray[np.bool_]:
        """Whether records of these bins are above an upper point."""
        return bins > len(self.lower) + 1 + upper

    def nearest_uncut(self, bins: IntArray) -> tuple[IntArray, IntArray]:
        """The number of the first lower, and upper, point that clips no record of a bin; negative on the other side."""
        return len(self.lower) - bins, bins - len(self.lower) - 1


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SizeSums:
    """Exact sums of the records of G groups in each bin of `SizePoints`, sorted by group, then by bin."""

    # `bin`, `n`: occupied bins, and their numbers of records; shape (m,)
    bin: IntArray
    n: IntArray
    # `high`, `low`: sums of both halves of the records' places, ``place >> HALF_BITS`` and what is left; shape
    # (m,)
    high: IntArray
    low: IntArray
    first: IntArray  # where each group begins, and the end; shape (G + 1,)

    @classmethod
    def of_keys(cls, keys: IntArray, n: IntArray, high: IntArray, low: IntArray, groups: int, bins: int) -> SizeSums:
        """Sums from sorted keys ``group * bins + bin``, each of which occurs once."""
        return cls(keys % bins, n, high, low, np.searchsorted(keys, np.arange(groups + 1) * bins))

    def counts(self, bins: int) -> IntArray:
        """The number of records of all groups in each bin, shape (bins,)."""
        counts = np.zeros(bins, dtype=np.int64)
        np.add.at(counts, self.bin, self.n)
        return counts

    def clipped(self, points: SizePoints, lower: int, upper: int) -> NDArray[Any]:
        """The exact sum of places, clipped at a lower and an upper point, of each group: Python's integers, shape (G,).

        A point that is not there, as its side is empty, is the bound.
        """
        ends = _at(points.lower_places, lower, points.middle), _at(points.upper_places, upper, points.middle)
        below, above = points.is_below(self.bin, lower), points.is_above(self.bin, upper)
        inside = ~(below | above)
        high, low, under, over = (
            self._of_groups(np.where(chosen, sums, 0)).astype(object)
            for chosen, sums in ((inside, self.high), (inside, self.low), (below, self.n), (above, self.n))
        )
        total: NDArray[Any] = high * 2**HALF_BITS + low + under * ends[0] + over * ends[1]
        return total

    def _of_groups(self, parts: IntArray) -> IntArray:
        running = np.concatenate([[0], np.cumsum(parts)])
        return np.diff(running[self.first])


def _at(places: IntArray, at: int, otherwise: int) -> int:
    return int(places[at]) if len(places) else otherwise


def _sizes(widest: float, least: float) -> list[float]:
    """Round numbers up to the widest size, from one trillionth of it or from the least size asked for."""
    if widest == 0:
        return []
    top = math.floor(math.log10(widest)) + 1
    sizes = [float(f"{mantissa}e{power}") for power in range(top - DECADES, top + 1) for mantissa in MANTISSAS]
    return [size for size in sizes if least <= size < widest]
