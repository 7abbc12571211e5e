"""Exact privacy losses of the exponential mechanism on given data, from prefix sums over its items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.exponential.items import Items
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights

HIGHEST = 20.0  # nats, beyond which a loss is not told from eps: sums have to hold exp(eps) in 64 bits


@dataclass(frozen=True, slots=True)
class Losses:
    """Privacy losses between data and their neighbours.

    Parameters
    ----------
    items : Items
    score : Score
    weights : Weights
    measure : Measure

    Notes
    -----
    A record more or less at a point c changes the scores of all points left of c alike, by what it does to the target;
    of those right of it by what it does to the number of records below them, too; and c's own. With h' for h after
    it, Z and Z' for the sums of all weights, each times its point's places, and W for the weights, the loss is
    ``max_y |ln W[h'(y)] - ln W[h(y)] - ln(Z'/Z)|``: of the differences left and right of c the largest and smallest are
    running ones, and Z' is a sum of the weights left of c, c's, and those right of it.

    Within a gap, let L, O and R be the weights after it of points left of c, of c, and right of it. From c to the next
    point Z' grows by ``m(c) (L - O) + m(c + 1) (O - R)``, m their places. c itself lies on the better side of the new
    record, so that O is max(L, R) or more; if it is that, Z' rises or falls throughout the gap, and is largest and
    smallest at the ends. Else the rank asked for lies within the gap, and Z' is largest at an end of a run of points
    that weigh alike, between which it is linear. The differences are the same ones for all c that have points of the
    gap on both sides. So the first, second, last but one and last point of a gap bear the largest loss of it, and those
    at the ends of runs. Where round numbers weigh more there are too many runs: then Z' is taken for the lightest and
    the heaviest point of the gap, each at either end of it, which no point goes beyond, as Z' rises with m(c) and is
    linear in the places before c.

    ``ln W[h'] - ln W[h]`` is a whole number of units of nats, but for less than 2**-100.
    """

    items: Items
    score: Score
    weights: Weights
    measure: Measure

    def added(self) -> FloatArray:
        """Largest loss by one record more, shape (G,)."""
        return np.maximum.reduceat(self._of_items(+1), self.items.first[:-1])

    def removed(self) -> FloatArray:
        """Loss by one record less at each item, 0 where there is none, shape (m,)."""
        return np.where(self.items.holds, self._of_items(-1), 0.0) if self.items.holds.any() else np.zeros(self._m)

    def between(self) -> FloatArray:
        """Bound on the losses between two worlds that lack one record each, shape (G,).

        Worlds that lack x < z differ in the scores of points from x to z only: those right of x have one record less
        in the first world than in the second. The log-ratio of probabilities lies within the range of the differences
        of ``ln W``, 0 among them; and the range is largest for the first and last record.
        """
        items, first = self.items, self.items.first
        target = self.score.target(items.n - 1)[items.group]
        at_first, at_last = items.less == 0, items.up_to == items.n[items.group]
        beyond = (at_first | at_last) & ~items.holds  # of all records
        without_first = self._index(items.less - ~at_first, items.up_to - 1, target)
        without_last = self._index(items.less, items.up_to - at_last, target)
        moved = without_last - without_first
        moved[beyond | (items.places == 0)] = 0
        low = np.minimum(np.minimum.reduceat(moved, first[:-1]), 0)
        high = np.maximum(np.maximum.reduceat(moved, first[:-1]), 0)
        return (high - low) * (float(self.weights.unit) * (1 + 2.0**-50))

    @property
    def _m(self) -> int:
        return len(self.items.start)

    def _index(self, less: IntArray, up_to: IntArray, target: IntArray) -> IntArray:
        return self.weights.index(self.score.of(less, up_to, target))

    def _of_items(self, more: int) -> FloatArray:
        """Largest loss by one record more (1) or less (-1) at each item, shape (m,)."""
        items, shares, eps = self.items, self.weights.shares, self._eps
        if eps > HIGHEST:
            return np.where(items.places > 0, eps, 0.0)
        group, first, width, places = items.group, items.first, items.width, items.places
        target = self.score.target(items.n)
        moved = self.score.target(items.n + more)[group]
        was = self._index(items.less, items.up_to, target[group])
        left = self._index(items.less, items.up_to, moved)
        inside = self._index(items.less, items.up_to + more, moved)
        right = self._index(items.less + more, items.up_to + more, moved)

        mass = shares[was] * places
        scale = (1 / np.add.reduceat(mass, first[:-1]))[group]
        before, _ = self._sums(shares[left] * places * scale)
        _, after = self._sums(shares[right] * places * scale)
        within = [shares[index] * scale for index in (left, inside, right)]

        top, bottom = was - left, was - right  # ln W[h'] - ln W[h] in units
        empty = places == 0
        edges = []
        for sign in (1, -1):  # the largest, and the negative of the smallest
            edges.append((self._running(sign * top, empty), self._running(sign * bottom, empty, backwards=True)))
        unit = float(self.weights.unit)
        start = self.measure.before(items.start)

        def largest(low: IntArray, high: IntArray, at: Any, is_after: Any = True, is_before: Any = True) -> FloatArray:
            """Loss of a record at a point of items ``at`` whose places reach from low to high, counted in each."""
            own_parts = low * within[0][at] + (high - low) * within[1][at] + (places[at] - high) * within[2][at]
            shift = np.log(before[at] + own_parts + after[at])
            loss = np.zeros(len(shift))
            for sign, (ahead, behind) in zip((1, -1), edges, strict=True):
                most = np.maximum(np.maximum(ahead[at], behind[at]), sign * (was - inside)[at])
                most = np.maximum(most, np.where(is_after, sign * top[at], most))
                most = np.maximum(most, np.where(is_before, sign * bottom[at], most))
                loss = np.maximum(loss, most * unit - sign * shift)
            return loss

        def at_places(place: IntArray, at: Any) -> FloatArray:
            """Loss of a record at the points of items ``at``, counted from 1 in each."""
            begin, size = items.start[at], width[at]
            low = self.measure.before(begin + place - 1) - start[at]
            high = self.measure.before(begin + np.minimum(place, size)) - start[at]
            return largest(low, high, at, place > 1, place < size)

        all_items, worst = slice(None), np.zeros(self._m)
        for place in (np.ones_like(width), np.minimum(width, 2), width - 1, width):
            worst = np.maximum(worst, at_places(np.maximum(place, 1), all_items))
        around = np.flatnonzero((width > 4) & (within[1] > np.maximum(within[0], within[2])))  # the rank asked for
        if self.measure.heaps:
            for size in self.measure.lightest_and_heaviest(items.start[around], width[around]):
                for low in (np.zeros_like(size), places[around] - size):
                    worst[around] = np.maximum(worst[around], largest(low, low + size, around))
        else:
            ends = self.measure.ends
            begin, beyond = np.searchsorted(ends, [items.start[around], (items.start + width)[around]])
            counts = beyond - begin
            at = np.repeat(around, counts)
            number = np.arange(len(at)) + np.repeat(beyond - np.cumsum(counts), counts)  # of each end within an item
            np.maximum.at(worst, at, at_places(ends[number] - items.start[at] + 1, at))
        # Sums of m floats are off by m roundings; those of whole units by m units, of a total of exp(-eps) or more.
        slack = (np.diff(first) + 64)[group] * (2.0**-51 + 2 * self._unit_of_sums * math.exp(eps))
        return np.where(empty, 0.0, np.minimum(worst + slack, eps))

    @property
    def _eps(self) -> float:
        return float(self.weights.unit * self.weights.span)

    @property
    def _unit_of_sums(self) -> float:
        return 2.0 ** -(61 - math.ceil(self._eps / math.log(2)))

    def _sums(self, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each item the sum of the parts before it in its group, and of those after it.

        As integers, which are added up modulo 2**64 without any error. The parts of a group add up to
        ``Z'/Z <= exp(eps)``.
        """
        first, group = self.items.first, self.items.group
        units = (parts / self._unit_of_sums).astype(np.uint64)
        up_to = np.cumsum(units)
        padded = np.concatenate([up_to[:1] * np.uint64(0), up_to])
        before = (up_to - units - padded[first[:-1]][group]).astype(np.float64)
        after = (padded[first[1:]][group] - up_to).astype(np.float64)
        return before * self._unit_of_sums, after * self._unit_of_sums

    def _running(self, values: IntArray, empty: NDArray[np.bool_], *, backwards: bool = False) -> IntArray:
        """The largest of the values before each item of its group, or after it; very small where there is none."""
        least = -4 * (self.weights.span + 1)
        groups = len(self.items.n)
        base = self.items.group * (-2 * least)
        keys = np.where(empty, least, values)
        if backwards:
            keys, base = keys[::-1], (groups - 1) * (-2 * least) - base[::-1]
        keys = np.maximum.accumulate(keys + base)
        result = np.full(self._m, least)
        result[1:] = keys[:-1] - base[1:]
        result = np.maximum(result, least)
        return result[::-1] if backwards else result
