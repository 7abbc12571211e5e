"""Base measure of the exponential mechanism: public weights of the points, heavier near zero and at round numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.summary import IntArray

ROUND = Fraction(1, 4)  # of the whole weight, at round numbers
HEAPS = 10, 1000  # steps from one round number to the next that lie between the bounds, at least and at most
PARTS = 5, 5, 0  # of the rest, in tenths: spread evenly, near zero, in the middle half
OUTER_PARTS = 1, 2, 7  # the same, for quantiles near the end whose half of the points zero lies in
RATIO = 4  # of the distances from zero at the two ends of a shell, whose points weigh alike
FINE = 4  # bits of the even part of a weight, at least
FEWEST = 100  # steps between the bounds, or more, of those that extremes are chosen among; ten times as many at most
DIGITS = 10, 100  # of distances from zero that the other points for extremes lie at: the first two, and zeros


@dataclass(frozen=True, slots=True)
class Measure:
    """Numbers of places that the points have: all places are equally likely before any record is read.

    Parameters
    ----------
    size : int
        Number of points M.
    zero : int or None
        The point near which weights are large; None: all points have one place.
    first, unit : int
        If ``unit`` is more than 1, a point i has places only if it is round: ``first + i`` is a multiple of the unit,
        or i is one of the ends, or lies at a distance of two digits, and zeros, from ``zero``.
    heaps : tuple of int
        Units of round numbers: points with ``first + i`` a multiple of one weigh more.
    outer : bool
        Whether the middle half of the points weighs more, and zero less.

    Notes
    -----
    A quarter of the places goes to round numbers, where what people say heaps: half of it in equal shares to the
    multiples of 10, 100, ... steps, of each of which 10 to 1,000 lie between the bounds, half in equal shares to the
    numbers of steps from ``zero`` that have two digits and one zero, two zeros, ... Half of the rest is spread evenly.
    The others go in equal shares to shells of points on either side of ``zero``: those at a distance d from it with
    ``4**j <= d + 1 < 4**(j + 1)``, about in proportion to ``1 / (d + 1)``. For a quantile near an end, a tenth of the
    rest is spread evenly, two tenths go to the shells, and seven to the middle half of the points: with few records,
    the answer lies between the end and them, where zero should not attract it. If others have none, round points have
    one place each. All this depends on the bounds, the step and the quantile alone, so that it cancels in ratios of
    probabilities: see docs/numbers.md.
    """

    size: int
    zero: int | None = None
    first: int = 0
    unit: int = 1
    heaps: tuple[int, ...] = ()
    outer: bool = False

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, points: Points, end: int = 0) -> Measure:
        """The measure of public points: heavier near 0, or the bound that is nearest to it, and at round numbers.

        For a quantile near the lower (``end`` -1) or upper end (1) of the records, if 0 lies in this half of the
        points, heavier in their middle instead.
        """
        units = (10**digits for digits in range(1, len(str(points.size))))
        heaps = tuple(unit for unit in units if unit * HEAPS[0] <= points.size - 1 <= unit * HEAPS[1])
        last = points.size - 1
        zero = min(max(-points.first, 0), last)
        return cls(points.size, zero, points.first, heaps=heaps, outer=end != 0 and end * (2 * zero - last) >= 0)

    @classmethod
    @lru_cache(maxsize=64)
    def round_ones(cls, points: Points) -> Measure:
        """The measure of which only some hundreds of points have places, one each; of all points if these are few."""
        unit = 1
        while points.size - 1 > unit * 10 * FEWEST:
            unit *= 10
        return cls(points.size) if unit == 1 else replace(cls.of(points), unit=unit, heaps=())

    @property
    def total(self) -> int:
        """Number of all places."""
        return self.size if self.zero is None else self._segments.total

    @property
    def least(self) -> int:
        """Smallest number of places of a point."""
        return 1 if self.zero is None else self._segments.least

    @property
    def spread(self) -> int:
        """Sum of all weights over the least, rounded up: the number of points, as far as one of them can be missed."""
        return -(-self.total // self.least)

    def before(self, points: IntArray) -> IntArray:
        """Number of places of all points before each of these, 0 to ``size``."""
        if self.zero is None:
            return points
        segments = self._segments
        at = segments.first.searchsorted(points, side="right") - 1
        numbers: IntArray = segments.before[at] + (points - segments.first[at]) * segments.weight[at]
        return numbers

    def point(self, places: IntArray) -> IntArray:
        """The point that each place belongs to."""
        if self.zero is None:
            return places
        segments = self._segments
        at = segments.before.searchsorted(places, side="right") - 1
        points: IntArray = segments.first[at] + (places - segments.before[at]) // segments.weight[at]
        return points

    def nearest(self, points: IntArray) -> IntArray:
        """The points nearest to these that have places."""
        if self.unit == 1:
            return points
        ones = self._round
        neighbours: IntArray = ones[np.searchsorted((ones[1:] + ones[:-1] + 1) // 2, points, side="right")]
        return neighbours

    def rounded(self, cells: Cells) -> Cells:
        """The cells of records that are rounded to the nearest points with places."""
        if self.unit == 1:
            return cells
        if self not in cells.derived:
            groups = len(cells.first) - 1
            group = np.repeat(np.arange(groups), np.diff(cells.first))
            point = self.nearest(cells.point)
            starts = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(point, prepend=-1) != 0))
            count = np.add.reduceat(cells.count, starts) if len(starts) else cells.count
            cells.derived[self] = Cells.of_groups(group[starts], point[starts], count, groups)
        rounded_cells: Cells = cells.derived[self]
        return replace(rounded_cells, rows=cells.rows)

    def around(self, points: IntArray) -> tuple[IntArray, IntArray]:
        """First and last of the points that these are nearest to."""
        if self.unit == 1:
            return points, points
        ones = self._round
        middles = (ones[1:] + ones[:-1] + 1) // 2
        at = np.searchsorted(middles, points, side="right")
        return np.append(0, middles)[at], np.append(middles - 1, self.size - 1)[at]

    @property
    def _segments(self) -> _Segments:
        assert self.zero is not None
        return _segments(self) if self.unit == 1 else _round_segments(self)

    def lightest_and_heaviest(self, start: IntArray, width: IntArray) -> tuple[IntArray, IntArray]:
        """The least and the most places of a point in runs of points, of which each has one at least."""
        if self.zero is None:
            return np.ones_like(start), np.ones_like(start)
        first, weight = self._segments.first, np.append(self._segments.weight, 0)
        runs = np.stack([np.searchsorted(first, start, side="right") - 1, np.searchsorted(first, start + width)])
        least, most = (extreme.reduceat(weight, runs.T.ravel())[::2] for extreme in (np.minimum, np.maximum))
        return least, most

    @property
    def _round(self) -> IntArray:
        segments = self._segments
        return segments.first[segments.weight > 0]

    @property
    def ends(self) -> IntArray:
        """The first and last points of the runs of points that weigh alike."""
        return _ends(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """Runs of points that weigh alike: their first points, the weight of each, and the places before them."""

    first: IntArray
    weight: IntArray
    before: IntArray
    total: int
    least: int


@lru_cache(maxsize=64)
def _ends(measure: Measure) -> IntArray:
    first = np.zeros(1, dtype=np.int64) if measure.zero is None else measure._segments.first
    ends: IntArray = np.unique(np.concatenate([first, first[1:] - 1, [measure.size - 1]]))
    return ends


@lru_cache(maxsize=64)
def _segments(measure: Measure) -> _Segments:
    size, zero = measure.size, measure.zero
    assert zero is not None
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
    first, near = (np.array(numbers, dtype=np.int64) for numbers in zip(*below[::-1], *above, strict=True))
    counts = np.diff(np.append(first, size))
    even, shells, middle = OUTER_PARTS if measure.outer else PARTS
    tenth = Fraction(int((counts * near).sum()), shells)
    weight = near + max(1, round(tenth * even / size))
    if measure.outer:
        begin, end = size // 4, size - size // 4
        starts = np.unique(np.concatenate([first, [begin], [end] if end < size else []])).astype(np.int64)
        weight = weight[np.searchsorted(first, starts, side="right") - 1]
        weight[(begin <= starts) & (starts < end)] += round(tenth * middle / (end - begin))
        first, counts = starts, np.diff(np.append(starts, size))
    if measure.heaps:
        all_heaps = int((counts * weight).sum()) * ROUND / (1 - ROUND)
        heaps = _heaps(measure)
        ones = np.unique(np.concatenate([points for points, _ in heaps]))
        starts = np.unique(np.concatenate([first, ones, ones[ones + 1 < size] + 1]))
        weight = weight[np.searchsorted(first, starts, side="right") - 1]
        for points, part in heaps:
            weight = weight + np.isin(starts, points) * max(1, round(all_heaps * part / len(points)))
        first, counts = starts, np.diff(np.append(starts, size))
    weight //= np.gcd.reduce(weight)
    before = np.concatenate([[0], np.cumsum(counts * weight)])
    return _Segments(first, weight, before[:-1], int(before[-1]), int(weight.min()))


def _heaps(measure: Measure) -> list[tuple[IntArray, Fraction]]:
    """Round numbers of each kind, and their parts of the weight of all."""
    size, zero = measure.size, measure.zero
    assert zero is not None
    even = [np.arange(-measure.first % unit, size, unit) for unit in measure.heaps]
    away = [np.arange(*DIGITS) * 10**zeros for zeros in range(1, len(str(size)) - 1)]
    near = [np.unique(np.concatenate([zero - distances, zero + distances])) for distances in away]
    near = [kept for points in near if len(kept := points[(points >= 0) & (points < size)])]
    kinds = [kind for kind in (even, near) if kind]
    return [(points, Fraction(1, len(kinds) * len(kind))) for kind in kinds for points in kind]


@lru_cache(maxsize=64)
def _round_segments(measure: Measure) -> _Segments:
    size, zero = measure.size, measure.zero
    assert zero is not None
    even = np.arange(-measure.first % measure.unit, size, measure.unit)
    far = [np.arange(DIGITS[1])]
    while far[-1][0] < size:
        far.append(np.arange(*DIGITS) * 10 ** len(far))
    away = np.concatenate(far)
    ones = np.unique(np.concatenate([[0, size - 1], even, zero + away, zero - away]))
    ones = ones[(ones >= 0) & (ones < size)]
    first = np.unique(np.append(ones, ones[:-1] + 1))
    weight = np.isin(first, ones).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(weight)])  # runs of round points are one long, the others weigh nothing
    return _Segments(first, weight, before[:-1], len(ones), 1)
