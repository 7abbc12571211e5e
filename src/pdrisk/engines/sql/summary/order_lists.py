"""Order statistics and cells from the lists that an engine returns: records around pivots, records at an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.size_sums import SizeSums
from pdrisk._core.summary import FloatArray, IntArray, window_start
from pdrisk.engines.sql.summary.summary_plan import Summarised, sides_of

Columns = dict[str, Any]
Part = tuple[IntArray, IntArray, FloatArray]  # groups, ranks and records


class BandMissedError(Exception):
    """The records read around a quantile do not include those that are needed."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Ragged lists of records, one for each of G groups."""

    values: NDArray[Any]  # shape (m,)
    first: IntArray  # where each group begins, and the end; shape (G + 1,)

    @classmethod
    def of(cls, column: NDArray[Any] | Lists) -> Lists:
        """Lists from a column of lists, masked where there is no record; or from single records."""
        if isinstance(column, Lists):
            return column
        masked, data = np.ma.getmaskarray(column), np.ma.getdata(column)
        if data.dtype != object:
            lengths = (~masked).astype(np.int64)
            return cls(data[~masked], np.concatenate([[0], np.cumsum(lengths)]))
        lengths = np.array(
            [0 if empty else len(records) for records, empty in zip(data, masked, strict=True)], dtype=np.int64
        )
        some = [records for records, length in zip(data, lengths, strict=True) if length]
        return cls(np.concatenate(some) if some else np.empty(0), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.first) - 1

    def ascending(self) -> Lists:
        """The same with each list in order, as servers mostly give it."""
        in_order = self.values[1:] >= self.values[:-1]
        begins = self.first[(self.first > 0) & (self.first < len(self.values))]
        in_order[begins - 1] = True
        if in_order.all():
            return self
        return Lists(self.values[np.lexsort((self.values, self.group))], self.first)

    @property
    def group(self) -> IntArray:
        """The group of each value."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def place(self) -> IntArray:
        """Position of each value in its group's list, from 0."""
        return np.arange(len(self.values)) - self.first[self.group]

    def at(self, place: IntArray) -> FloatArray:
        """Values at these positions of each group's list, shape (..., G); any value where there is none."""
        if not len(self.values):
            return np.zeros(place.shape)
        values: FloatArray = self.values[np.clip(self.first[:-1] + place, 0, len(self.values) - 1)]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """Records around a pivot, which is the record of quantile q or next to it."""

    q: float
    pivot: FloatArray
    # `less`, `equal`: numbers of records below the pivot, and equal to it; shape (G,)
    less: IntArray
    equal: IntArray
    # `below`, `above`: the nearest records on each side, the nearest first
    below: Lists
    above: Lists

    @classmethod
    def of(cls, columns: Columns, i: int, k: int, q: float, n: IntArray, part: Summarised) -> Around:
        """Records around the k-th pivot of part i, from its columns."""
        pivot = np.ma.filled(np.ma.asarray(columns[f"pivot_{i}_{k}"], dtype=np.float64), 0.0)
        less, equal = (
            np.ma.filled(np.ma.asarray(columns[f"{name}_{i}_{k}"], dtype=np.int64), 0) for name in ("less", "equal")
        )
        below, above = (Lists.of(columns[f"{side}_{i}_{k}"]) for side in ("below", "above"))
        assert pivot.shape == less.shape == equal.shape == n.shape
        lowest, highest = less - np.diff(below.first) + 1, less + equal + np.diff(above.first)
        for rank in part.ranks:
            first, last = rank.first(n), rank.last(n)
            if rank.q == q and ((first <= last) & ((first < lowest) | (last > highest))).any():
                raise BandMissedError
        return cls(q, pivot, less, equal, below, above)

    def at(self, rank: IntArray) -> FloatArray:
        """Records at these ranks, shape (..., G); any value too far from the pivot."""
        beyond = rank - self.less - self.equal - 1
        return np.where(
            rank <= self.less,
            self.below.at(self.less - rank),
            np.where(beyond < 0, self.pivot, self.above.at(beyond)),
        )

    def known(self) -> list[Part]:
        """The records and their ranks."""
        some = np.flatnonzero(self.less + self.equal)
        below, above = self.below, self.above
        return [
            (below.group, self.less[below.group] - below.place, below.values),
            (some, self.less[some] + 1, self.pivot[some]),
            (above.group, (self.less + self.equal + 1)[above.group] + above.place, above.values),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Records of one group in a band that a sample located."""

    q: float
    ranks: IntArray
    records: FloatArray  # in ascending order; of those at an end of the band the first alone

    @classmethod
    def of(cls, columns: Columns, i: int, k: int, q: float, n: IntArray, part: Summarised) -> Band:
        """Records of the k-th band of part i, from its columns."""
        numbers = (np.ma.filled(columns[f"{name}_{i}_{k}"], 0) for name in ("less", "at_lower", "at_upper"))
        less, at_lower, at_upper = (int(number[0]) for number in numbers)  # NULL where there is no row
        lower, upper = (float(columns[f"{name}_{i}_{k}"][0]) for name in ("lower", "upper"))
        inside = np.sort(Lists.of(columns[f"inside_{i}_{k}"]).values.astype(np.float64))
        start = less + at_lower + 1
        spans = [(rank.first(n), rank.last(n)) for rank in part.ranks if rank.q == q]
        if q in part.needs.windows:
            begin = window_start(n, q)
            spans.append((begin, begin + (2 if q == 0.5 else 3)))
        first = max(1, min(int(begin[0]) for begin, _ in spans))
        last = min(int(n[0]), max(int(end[0]) for _, end in spans))
        if first <= last and (first <= less or last >= start + len(inside) + at_upper):
            raise BandMissedError
        kept = slice(max(first - start, 0), max(last - start + 1, 0))
        ranks, records = np.arange(start, start + len(inside))[kept], inside[kept]
        if at_lower:
            ranks, records = np.append(less + 1, ranks), np.append(lower, records)
        if at_upper:
            ranks, records = np.append(ranks, start + len(inside)), np.append(records, upper)
        return cls(q, ranks, records)

    def at(self, rank: IntArray) -> FloatArray:
        """Records at these ranks, shape (..., 1); any value where they are not wanted."""
        if not len(self.ranks):
            return np.zeros(rank.shape)
        return self.records[np.maximum(np.searchsorted(self.ranks, rank, side="right") - 1, 0)]

    def known(self) -> list[Part]:
        """The records and their ranks."""
        return [(np.zeros_like(self.ranks), self.ranks, self.records)]


@dataclass(frozen=True, slots=True, eq=False)
class Spanned:
    """Records of G groups at consecutive ranks."""

    q: float | None  # the quantile whose window is among them
    first: IntArray  # the rank of each group's first one; shape (G,)
    records: Lists  # in ascending order

    def at(self, rank: IntArray) -> FloatArray:
        """Records at these ranks, shape (..., G); any value beyond."""
        return self.records.at(rank - self.first)

    def known(self) -> list[Part]:
        """The records and their ranks."""
        group = self.records.group
        return [(group, self.first[group] + self.records.place, self.records.values)]


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Records of G groups of known ranks in any order; the arguments of `Cells.of_ranks`."""

    group: IntArray
    rank: IntArray
    records: FloatArray
    n: IntArray

    @classmethod
    def of(cls, known: list[Part], n: IntArray, lowest: FloatArray, highest: FloatArray) -> Listed:
        """Records from some, and from the first and last of each group."""
        some = np.flatnonzero(n)
        ends = [(some, np.ones_like(some), lowest[some]), (some, n[some], highest[some])]
        group, rank, records = (np.concatenate(arrays) for arrays in zip(*ends, *known, strict=True))
        return cls(group, rank, records, n)

    def cells(self, points: Points) -> Cells:
        """Cells of these records."""
        point = points.index(np.clip(self.records, points.lo, points.hi)).astype(np.int64)
        return Cells.of_ranks(self.group, self.rank, point, self.n, points.size)


def listed(
    columns: Columns,
    i: int,
    part: Summarised,
    around: list[Around | Band],
    n: IntArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> Listed:
    """Records of part i that are listed one by one, with the first and last of each group."""
    known = [one for near in around for one in near.known()]
    for j, ranks in enumerate(part.ranks):
        below_, above_ = sides_of(ranks)
        if below_ and above_:
            continue
        ends = Lists.of(columns[f"end_{i}_{j}"])
        rank = n[ends.group] - ends.place if below_ else ends.place + 1
        known.append((ends.group, rank, ends.values))
    return Listed.of(known, n, lowest, highest)


def counted(column: NDArray[Any], points: Points, size: int) -> Cells:
    """Numbers of records at public points, from a list for each group of point times a power of two, plus number."""
    lists = Lists.of(column)
    packed, group = lists.values.astype(np.int64), lists.group
    point, count = packed >> (size.bit_length() - 1), packed & (size - 1)
    order = np.argsort(group * points.size + point)
    return Cells.of_groups(group, point[order], count[order], len(lists))


def summed(*columns: NDArray[Any]) -> SizeSums:
    """Sums of records by their sizes, from lists of bins, of numbers and of both sums for each group."""
    lists = [Lists.of(column) for column in columns]
    bins, n, high, low = (ragged.values.astype(np.int64) for ragged in lists)
    return SizeSums(bins, n, high, low, lists[0].first)
