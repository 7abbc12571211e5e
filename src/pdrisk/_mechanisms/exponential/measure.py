"""Base measure of the exponential mechanism: public weights of the points, heavier near zero."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pdrisk._core.lattice import Points
from pdrisk._core.summary import IntArray

__all__ = ["Measure"]

EVEN = Fraction(1, 2)  # of the whole weight, spread evenly
RATIO = 4  # of the distances from zero at the two ends of a shell, whose points weigh alike
FINE = 4  # bits of the even part of a weight, at least


@dataclass(frozen=True, slots=True)
class Measure:
    """Numbers of places that the points have: all places are equally likely before any record is read.

    Parameters
    ----------
    size : int
        Number of points M.
    zero : int or None
        The point near which weights are large; None: all points have one place.

    Notes
    -----
    Half of the places are spread evenly. The others go in equal shares to shells of points on either side of ``zero``:
    those at a distance d from it with ``4**j <= d + 1 < 4**(j + 1)``, about in proportion to ``1 / (d + 1)``. All this
    depends on the bounds and the step alone, so that it cancels in ratios of probabilities: see docs/numbers.md.
    """

    size: int
    zero: int | None = None

    @classmethod
    def of(cls, points: Points) -> Measure:
        """The measure of public points: heavier near 0, or near the bound that is nearest to it."""
        return cls(points.size, min(max(-points.first, 0), points.size - 1))

    @property
    def total(self) -> int:
        """Number of all places."""
        return self.size if self.zero is None else _segments(self.size, self.zero).total

    @property
    def least(self) -> int:
        """Smallest number of places of a point."""
        return 1 if self.zero is None else _segments(self.size, self.zero).least

    @property
    def spread(self) -> int:
        """Sum of all weights over the least, rounded up: the number of points, as far as one of them can be missed."""
        return -(-self.total // self.least)

    def before(self, points: IntArray) -> IntArray:
        """Number of places of all points before each of these, 0 to ``size``."""
        if self.zero is None:
            return points
        segments = _segments(self.size, self.zero)
        at = np.searchsorted(segments.first, points, side="right") - 1
        found: IntArray = segments.before[at] + (points - segments.first[at]) * segments.weight[at]
        return found

    def point(self, places: IntArray) -> IntArray:
        """The point that each place belongs to."""
        if self.zero is None:
            return places
        segments = _segments(self.size, self.zero)
        at = np.searchsorted(segments.before, places, side="right") - 1
        found: IntArray = segments.first[at] + (places - segments.before[at]) // segments.weight[at]
        return found

    @property
    def ends(self) -> tuple[int, ...]:
        """The first and last points of the runs of points that weigh alike."""
        if self.zero is None:
            return (0, self.size - 1)
        first = _segments(self.size, self.zero).first.tolist()
        return tuple(sorted({*first, *(each - 1 for each in first[1:]), self.size - 1}))


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """Runs of points that weigh alike: their first points, the weight of each, and the places before them."""

    first: IntArray
    weight: IntArray
    before: IntArray
    total: int
    least: int


@lru_cache(maxsize=64)
def _segments(size: int, zero: int) -> _Segments:
    largest = 1 << (size.bit_length() + FINE)
    below: list[tuple[int, int]] = []  # first points, and the places of each point beside the even ones
    above: list[tuple[int, int]] = []
    nearest, end = 0, RATIO - 1  # a shell's distances
    while nearest < size:
        share = largest // (nearest + 1)
        if zero + nearest < size:
            above.append((zero + nearest, share))
        if zero >= max(nearest, 1):
            below.append((max(zero - end + 1, 0), share))
        nearest, end = end, RATIO * (end + 1) - 1
    first, near = (np.array(each, dtype=np.int64) for each in zip(*below[::-1], *above, strict=True))
    counts = np.diff(np.append(first, size))
    even = max(1, round(int((counts * near).sum()) * EVEN / (1 - EVEN) / size))
    weight = near + even
    weight //= np.gcd.reduce(weight)
    before = np.concatenate([[0], np.cumsum(counts * weight)])
    return _Segments(first, weight, before[:-1], int(before[-1]), int(weight.min()))
