"""Histogram of records over public points: ragged run-lengths of many groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
PART = 2**15  # things of groups that are looked at together, so that they stay in the processor's cache


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Cells:
    """Occupied points of G groups and their numbers of records, sorted by group, then by point."""

    point: IntArray  # index among `Points`; shape (m,)
    count: IntArray  # at least 1; shape (m,)
    first: IntArray  # where each group begins, and the end; shape (G + 1,)
    # of a summary of rows, the group of each; see `Summary.of_rows`; shape (R,)
    rows: NDArray[np.integer] | None = None
    # what mechanisms computed of these cells, so that they need not do so again
    derived: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of_keys(cls, keys: IntArray, counts: IntArray, groups: int, size: int) -> Cells:
        """Cells from sorted keys ``group * size + point``, each of which occurs once."""
        group, point = np.divmod(keys, size) if groups > 1 else (np.zeros_like(keys), keys)
        return cls.of_groups(group, point, counts, groups)

    @classmethod
    def of_groups(cls, group: IntArray, point: IntArray, count: IntArray, groups: int) -> Cells:
        """Cells from sorted groups and points."""
        return cls(point, count, np.searchsorted(group, np.arange(groups + 1)))

    @classmethod
    def one_after_another(cls, parts: Sequence[Cells]) -> Cells:
        """Cells of some groups, of those that follow, and so on."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.diff(part.first) for part in parts])
        first = np.concatenate([[0], np.cumsum(sizes)])
        point, count = (
            np.concatenate(arrays) for arrays in zip(*((part.point, part.count) for part in parts), strict=True)
        )
        return cls(point, count, first)

    @classmethod
    def of_ranks(cls, group: IntArray, rank: IntArray, point: IntArray, n: IntArray, size: int) -> Cells:
        """Cells from records of known ranks in any order, among them the first and last of each group.

        Each other record stands at the point of the next known one below. A record may be listed twice.
        """
        if not len(rank):
            return cls.of_keys(rank, rank, len(n), size)
        order = (group * (int(n.max()) + 1) + rank).argsort(kind="stable")  # fast if they are sorted
        group, rank, point = group[order], rank[order], point[order]
        ends = np.concatenate([group[1:] != group[:-1], [True]])  # a group's last record, whose rank is n
        count = np.where(ends, 1, np.concatenate([rank[1:], [0]]) - rank)
        assert (rank[ends] == n[group[ends]]).all()
        keys = group * size + point
        starts = np.concatenate([[True], keys[1:] > keys[:-1]]).nonzero()[0]
        return cls.of_groups(group[starts], point[starts], np.add.reduceat(count, starts), len(n))

    def parts(self) -> Iterator[Cells]:
        """Cells of some groups after another, as `runs_of_groups`; these themselves if they are few."""
        if len(self.point) <= PART:
            yield self
            return
        for groups in runs_of_groups(self.first):
            first = self.first[groups.start : groups.stop + 1]
            span = slice(first[0], first[-1])
            yield Cells(self.point[span], self.count[span], first - first[0])

    def of_rows(self, rows: NDArray[np.integer]) -> Cells:
        """The same cells for records that stand in these groups."""
        return replace(self, rows=rows)


def runs_of_groups(first: IntArray) -> Iterator[slice]:
    """Groups that follow one another and together have few things, or one group; slice(0, 0) where there are none.

    ``first``: shape (G + 1,). Where the things of each group begin, and the end.
    """
    begin, groups = 0, len(first) - 1
    while True:
        end = int(first.searchsorted(first[begin] + PART, side="right")) - 1
        yield slice(begin, end := min(max(end, begin + 1), groups))
        if end == groups:
            return
        begin = end
