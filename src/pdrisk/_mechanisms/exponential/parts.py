"""Parts of the records of each group, between two places that were chosen before, and how a place parts them again."""

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


@dataclass(frozen=True, slots=True)
class Part:
    """Records of each group whose places lie within ``[low, end)``, and the places to choose from.

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
        near = self._near(score, weights)
        cell, place, several = self._placed(near, bits)
        # The others are so far from the rank that their weight is the smallest one, wherever they stand.
        far = np.flatnonzero(~near)
        order = np.argsort(np.concatenate([far, cell]), kind="stable")
        places = np.concatenate([self._starts[far], place])[order]
        counts = np.concatenate([self.count[far], several])[order]
        groups = self.group[np.concatenate([far, cell])[order]]
        found = self.low + _chosen(places, counts, groups, self.low, self._high, score, weights, bits)

        left = np.where(self._starts < found[self.group], self.count, 0)
        through = ~near & (self.point == (found >> PLACE_BITS)[self.group])
        if through.any():
            more = self._placed(through, bits)
            cell, place, several = (np.concatenate(pair) for pair in zip((cell, place, several), more, strict=True))
        placed = near | through
        before = np.zeros(len(self.point), dtype=np.int64)
        np.add.at(before, cell, np.where(place < found[self.group[cell]], several, 0))
        left = np.where(placed, before, left)
        return found, self._with(left, self.low, found), self._with(self.count - left, found, self.end)

    @property
    def _high(self) -> IntArray:
        """The last place to choose: the one that parted the records may be chosen again."""
        return np.minimum(self.end, self.last)

    @property
    def _starts(self) -> IntArray:
        """The first place of each point that records of this part can have."""
        return np.maximum(self.point << PLACE_BITS, self.low[self.group])

    def _near(self, score: Score, weights: Weights) -> NDArray[np.bool_]:
        """Points whose records are so near the rank that their places matter; as in `items_of`."""
        groups = len(self.low)
        n = np.bincount(self.group, weights=self.count, minlength=groups).astype(np.int64)
        up_to = np.cumsum(self.count) - (np.cumsum(n) - n)[self.group]
        scores = score.of(up_to - self.count, up_to, score.target(n)[self.group])
        return scores < (weights.cap + weights.span) * weights.coarse

    def _placed(self, chosen: NDArray[np.bool_], bits: Bits) -> tuple[IntArray, IntArray, IntArray]:
        """Places of the records at these points, in their order: number of the point, place, and how many are there."""
        at = np.flatnonzero(chosen)
        starts = self._starts[at]
        sizes = np.minimum((self.point[at] + 1) << PLACE_BITS, self.end[self.group[at]]) - starts
        own = np.repeat(np.arange(len(at)), self.count[at])
        offsets = starts[own] - (self.point[at][own] << PLACE_BITS) + uniform_below(sizes[own], bits)
        keys, several = np.unique((own << PLACE_BITS) + offsets, return_counts=True)
        cell = at[keys >> PLACE_BITS]
        place = (self.point[cell] << PLACE_BITS) + (keys & (2**PLACE_BITS - 1))
        return cell, place, several.astype(np.int64)

    def _with(self, count: IntArray, low: IntArray, end: IntArray) -> Part:
        some = count > 0
        return Part(self.point[some], count[some], self.group[some], low, end, self.last)


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
