"""Parts of the records of each group, between two chosen places, and how the next chosen place divides them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.entropy import Bits
from pdrisk._mechanisms.exponential.choosing import chosen_points, uniform_below
from pdrisk._mechanisms.exponential.items import items_of
from pdrisk._mechanisms.exponential.weights import Score, Weights

__all__ = ["PLACE_BITS", "Part"]

PLACE_BITS = 29  # of a record's place within its point: 2**61 places between the widest bounds of whole numbers
BLOCK_BITS = 17  # of a place within its block
MANY = 2**18  # records at one point of which first only the blocks of their places are drawn


@dataclass(frozen=True, slots=True)
class Part:
    """Records of each group at places in ``[low, end)``, and the places to choose from.

    Every point has ``2**PLACE_BITS`` places. A record at a point has one of them, uniformly and independently of all
    other records; nothing else decides to which side of a chosen place it goes. So one record more or less is one more
    or less in one of the parts, and in no other.

    Attributes
    ----------
    point, count : ndarray of int64, shape (m,)
        Occupied points and their numbers of records, sorted by group, then by point.
    group : ndarray of int64, shape (m,)
    low, end : ndarray of int64, shape (G,)
    last : int
        The last place of all.
    """

    point: IntArray
    count: IntArray
    group: IntArray
    low: IntArray
    end: IntArray
    last: int

    @classmethod
    def whole(cls, cells: Cells, points: int) -> Part:
        """All records, and all places."""
        groups = len(cells.first) - 1
        group = np.repeat(np.arange(groups), np.diff(cells.first))
        places = points << PLACE_BITS
        low, end = (np.full(groups, each, dtype=np.int64) for each in (0, places))
        return cls(cells.point, cells.count, group, low, end, places - 1)

    def chosen_points(self, score: Score, weights: Weights, bits: Bits) -> IntArray:
        """For each group one of the points that have places here; records at the same point have the same rank."""
        low, high = self.low >> PLACE_BITS, self._high >> PLACE_BITS
        return low + _chosen(self.point, self.count, self.group, low, high, score, weights, bits)

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
        found = self.low + _chosen(places, counts, groups, self.low, self._high, score, weights, bits)

        split = found[spans.group]
        before = np.where(spans.start + spans.size <= split, spans.count, 0)
        through = ~near & (spans.start < split) & (split < spans.start + spans.size)
        if through.any():
            more = spans.placed(through, bits)
            at, place, several = (np.concatenate(pair) for pair in zip((at, place, several), more, strict=True))
        before[near] = 0
        np.add.at(before, at, np.where(place < split[at], several, 0))
        left = np.zeros(len(self.point), dtype=np.int64)
        np.add.at(left, spans.owner, before)
        return found, self._with(left, self.low, found), self._with(self.count - left, found, self.end)

    @property
    def _high(self) -> IntArray:
        """The last place to choose; the place that divided the records may be chosen again."""
        return np.minimum(self.end, self.last)

    def _spans(self, bits: Bits) -> _Spans:
        """Places that records of each point can have; where there are many, in blocks that are counted."""
        start = np.maximum(self.point << PLACE_BITS, self.low[self.group])
        size = np.minimum((self.point + 1) << PLACE_BITS, self.end[self.group]) - start
        few = self.count <= MANY
        parts = [(start[few], size[few], self.count[few], np.flatnonzero(few))]
        for at in np.flatnonzero(~few).tolist():
            blocks = np.arange(0, size[at], 1 << BLOCK_BITS)
            counts = np.zeros(len(blocks), dtype=np.int64)
            for drawn in range(0, int(self.count[at]), MANY):
                several = min(MANY, int(self.count[at]) - drawn)
                offset = uniform_below(np.full(several, size[at]), bits)
                counts += np.bincount(offset >> BLOCK_BITS, minlength=len(blocks))
            some = np.flatnonzero(counts)
            sizes = np.minimum(blocks[some] + (1 << BLOCK_BITS), size[at]) - blocks[some]
            parts.append((start[at] + blocks[some], sizes, counts[some], np.full(len(some), at)))
        start, size, count, owner = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((start, owner))
        return _Spans(start[order], size[order], count[order], self.group[owner[order]], owner[order])

    def _with(self, count: IntArray, low: IntArray, end: IntArray) -> Part:
        some = count > 0
        return Part(self.point[some], count[some], self.group[some], low, end, self.last)


@dataclass(frozen=True, slots=True)
class _Spans:
    """Records with independent uniform places, each within its span; in the order of their points.

    Attributes
    ----------
    start, size, count, group : ndarray of int64, shape (m,)
    owner : ndarray of int64, shape (m,)
        Number of the point among those of the part.
    """

    start: IntArray
    size: IntArray
    count: IntArray
    group: IntArray
    owner: IntArray

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
        own = np.repeat(np.arange(len(at)), self.count[at])
        offsets = uniform_below(self.size[at][own], bits)
        keys, several = np.unique((own << PLACE_BITS) + offsets, return_counts=True)
        span = at[keys >> PLACE_BITS]
        return span, self.start[span] + (keys & (2**PLACE_BITS - 1)), several.astype(np.int64)


def _chosen(
    places: IntArray,
    counts: IntArray,
    group: IntArray,
    low: IntArray,
    high: IntArray,
    score: Score,
    weights: Weights,
    bits: Bits,
) -> IntArray:
    """For each group one of the places from ``low`` to ``high``, counted from ``low``."""
    cells = Cells.of_groups(group, places - low[group], counts, len(low))
    items = items_of(cells, high - low + 1, score, weights)
    index = weights.index(score.of(items.less, items.up_to, score.target(items.n)[items.group]))
    return chosen_points(items, index, weights, bits)
