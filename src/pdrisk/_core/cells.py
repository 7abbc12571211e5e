"""Histogram of records over public points: ragged run-lengths of many groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Cells:
    """Occupied points of G groups and their numbers of records, sorted by group, then by point.

    Attributes
    ----------
    point : ndarray of int64, shape (m,)
        Index among `Points`.
    count : ndarray of int64, shape (m,)
        At least 1.
    first : ndarray of int64, shape (G + 1,)
        Where each group begins, and the end.
    rows : ndarray of int, shape (R,), or None
        Of a summary of rows, the group of each; see `Summary.of_rows`.
    derived : dict
        What mechanisms computed of these cells, so that they need not do so again.
    """

    point: IntArray
    count: IntArray
    first: IntArray
    rows: NDArray[np.integer] | None = None
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
    def of_ranks(cls, group: IntArray, rank: IntArray, point: IntArray, n: IntArray, size: int) -> Cells:
        """Cells from records of known ranks in any order, among them the first and last of each group.

        Each other record stands at the point of the next known one below. A record may be listed twice.
        """
        if not len(rank):
            return cls.of_keys(rank, rank, len(n), size)
        order = np.lexsort((rank, group))
        group, rank, point = group[order], rank[order], point[order]
        ends = np.append(group[1:] != group[:-1], True)  # a group's last record, whose rank is n
        count = np.where(ends, 1, np.append(rank[1:], 0) - rank)
        assert (rank[ends] == n[group[ends]]).all()
        keys = group * size + point
        starts = np.flatnonzero(np.append(True, keys[1:] > keys[:-1]))
        return cls.of_groups(group[starts], point[starts], np.add.reduceat(count, starts), len(n))

    def of_rows(self, rows: NDArray[np.integer]) -> Cells:
        """The same cells for records that stand in these groups."""
        return replace(self, rows=rows)
