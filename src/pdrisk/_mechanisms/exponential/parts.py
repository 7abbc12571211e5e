"""Parts of the records of each group, between two chosen places, and how the next chosen place divides them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.exponential.choosing import chosen_points, uniform_below
from pdrisk._mechanisms.exponential.items import items_of
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits

PLACE_BITS = 18  # of a place within one of its point: 2**61 places between the widest bounds of whole numbers
BLOCKS = 2**12  # of a point's places
MANY = 2**18  # records at one point of which first only the blocks of their places are drawn


@dataclass(frozen=True, slots=True)
class Part:
    """Records of each group at places in ``[low, end)``, and the places to choose from.

    Every place of a point in the base measure is divided into ``2**PLACE_BITS``, which are the places here. A record at
    a point has one of them, uniformly and independently of all other records; nothing else decides to which side of a
    chosen place it goes. So one record more or less is one more or less in one of the parts, and in no other.
    """

    # `point`, `count`: occupied points and their numbers of records, sorted by group, then by point; shape (m,)
    point: IntArray
    count: IntArray
    group: IntArray  # shape (m,)
    # `low`, `end`: shape (G,)
    low: IntArray
    end: IntArray
    measure: Measure

    @classmethod
    def whole(cls, cells: Cells, measure: Measure) -> Part:
        """All records, and all places."""
        groups = len(cells.first) - 1
        group = np.repeat(np.arange(groups), np.diff(cells.first))
        low, end = (np.full(groups, place, dtype=np.int64) for place in (0, measure.total << PLACE_BITS))
        return cls(cells.point, cells.count, group, low, end, measure)

    def chosen_points(self, score: Score, weights: Weights, bits: Bits) -> IntArray:
        """For each group one of the points that have places here; records at the same point have the same rank."""
        low, high = (self.measure.point(place >> PLACE_BITS) for place in (self.low, self._high))
        cells = Cells.of_groups(self.group, self.point, self.count, len(self.low))
        return _chosen(cells, low, high + 1, score, weights, self.measure, bits)

    def chosen_places(self, score: Score, weights: Weights, bits: Bits) -> tuple[IntArray, Part, Part]:
        """For each group a place, the part before it, and the part from it on."""
        spans = self._spans(bits)
        near = spans.near(score, weights, len(self.low))
        at, place, several = spans.placed(near, bits)
        # The others are so far from the rank that their weight is the smallest one, wherever they stand.
        far = np.flatnonzero(~near)
        order = np.argsort(np.concatenate([far, at]), kind="stable")
        places = np.concatenate([spans.start[far], place])[order]
        counts = np.concatenate([spans.count[far], several])[order]
        groups = spans.group[np.concatenate([far, at])[order]]
        cells = Cells.of_groups(groups, places, counts, len(self.low))
        even = Measure(self.measure.total << PLACE_BITS)
        chosen = _chosen(cells, self.low, self._high + 1, score, weights, even, bits)

        split = chosen[spans.group]
        before = np.where(spans.start + spans.size <= split, spans.count, 0)
        through = ~near & (spans.start < split) & (split < spans.start + spans.size)
        if through.any():
            more = spans.placed(through, bits)
            at, place, several = (np.concatenate(pair) for pair in zip((at, place, several), more, strict=True))
        before[near] = 0
        np.add.at(before, at, np.where(place < split[at], several, 0))
        left = np.zeros(len(self.point), dtype=np.int64)
        np.add.at(left, spans.owner, before)
        return chosen, self._with(left, self.low, chosen), self._with(self.count - left, chosen, self.end)

    @property
    def _high(self) -> IntArray:
        """The last place to choose; the place that divided the records may be chosen again."""
        return np.minimum(self.end, (self.measure.total << PLACE_BITS) - 1)

    def _spans(self, bits: Bits) -> _Spans:
        """Places that records of each point can have; where there are many, in blocks that are counted."""
        start, end = (self.measure.before(point) << PLACE_BITS for point in (self.point, self.point + 1))
        start = np.maximum(start, self.low[self.group])
        size = np.minimum(end, self.end[self.group]) - start
        few = self.count <= MANY
        parts = [(start[few], size[few], self.count[few], np.flatnonzero(few))]
        for at in np.flatnonzero(~few).tolist():
            length = -(-int(size[at]) // BLOCKS)
            blocks = np.arange(0, size[at], length)
            counts = np.zeros(len(blocks), dtype=np.int64)
            for drawn in range(0, int(self.count[at]), MANY):
                several = min(MANY, int(self.count[at]) - drawn)
                offset = uniform_below(np.full(several, size[at]), bits)
                counts += np.bincount(offset // length, minlength=len(blocks))
            some = np.flatnonzero(counts)
            sizes = np.minimum(blocks[some] + length, size[at]) - blocks[some]
            parts.append((start[at] + blocks[some], sizes, counts[some], np.full(len(some), at)))
        start, size, count, owner = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        order = np.lexsort((start, owner))
        return _Spans(start[order], size[order], count[order], self.group[owner[order]], owner[order])

    def _with(self, count: IntArray, low: IntArray, end: IntArray) -> Part:
        some = count > 0
        return Part(self.point[some], count[some], self.group[some], low, end, self.measure)


@dataclass(frozen=True, slots=True)
class _Spans:
    """Records with independent uniform places, each within its span; in the order of their points."""

    # `start`, `size`, `count`, `group`: shape (m,)
    start: IntArray
    size: IntArray
    count: IntArray
    group: IntArray
    owner: IntArray  # number of the point among those of the part; shape (m,)

    def near(self, score: Score, weights: Weights, groups: int) -> NDArray[np.bool_]:
        """Spans of records so near the rank that their places matter, as in `items_of`."""
        n = np.zeros(groups, dtype=np.int64)
        np.add.at(n, self.group, self.count)
        up_to = np.cumsum(self.count) - (np.cumsum(n) - n)[self.group]
        scores = score.of(up_to - self.count, up_to, score.target(n)[self.group])
        return scores < (weights.cap + weights.span) * weights.coarse

    def placed(self, chosen: NDArray[np.bool_], bits: Bits) -> tuple[IntArray, IntArray, IntArray]:
        """Places of the records in these spans, in order: number of the span, place, and number of records."""
        at = np.flatnonzero(chosen)
        numbers = np.repeat(np.arange(len(at)), self.count[at])
        offsets = uniform_below(self.size[at][numbers], bits)
        order = np.lexsort((offsets, numbers))
        numbers, offsets = numbers[order], offsets[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1) | np.diff(offsets, prepend=-1))
        span = at[numbers[starts]]
        return span, self.start[span] + offsets[starts], np.diff(starts, append=len(numbers))


def _chosen(
    cells: Cells, low: IntArray, end: IntArray, score: Score, weights: Weights, measure: Measure, bits: Bits
) -> IntArray:
    """For each group one of the points, or places, from ``low`` to before ``end``."""
    items = items_of(cells, score, weights, measure, low, end)
    index = weights.index(score.of(items.less, items.up_to, score.target(items.n)[items.group]))
    return chosen_points(items, index, weights, measure, bits)
