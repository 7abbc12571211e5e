"""Rounding of tables of whole numbers: each number alone, or all together so that margins stay sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntTable = NDArray[np.int64]


def with_margins(table: IntTable) -> IntTable:
    """The table with one more column and row: the sums of its rows, of its columns, and of all."""
    rows = np.column_stack([table, table.sum(axis=1)])
    return np.vstack([rows, rows.sum(axis=0)])


def nearest_multiple(table: IntTable, base: int) -> IntTable:
    """Each number as the nearest multiple of the base, halves upwards."""
    return (2 * table + base) // (2 * base) * base


def controlled_rounding(table: IntTable, base: int) -> IntTable:
    """Multiples of the base next to each number and each margin, which still add up.

    Causey, Cox & Ernst 1985 show that there is one for every table of two dimensions; found as in Cox 1987. With
    negated margins each line of remainders adds up to a multiple of the base, so no line has a single entry that is no
    multiple. Hence there is a cycle of such, from row to column to row; moving along it by turns up and down keeps
    all sums, until one becomes a multiple. Of both directions, the shorter move is taken.

    ``table``: shape (R, C). At least 0.
    ``base``: 2 or more.
    Returns: shape (R, C). Every entry, row sum, column sum and the sum of all differ by less than the base from
        those of ``table``; what was a multiple stays as it is.

    Examples
    --------
    >>> controlled_rounding(np.array([[1, 2], [4, 6]]), 5)
    array([[0, 5],
           [5, 5]])
    """
    whole = with_margins(table)
    signs = np.ones_like(whole)
    signs[-1, :] = signs[:, -1] = -1
    signs[-1, -1] = 1
    rest = (whole * signs) % base
    while len(cycle := _cycle((rest > 0) & (rest < base))):
        up, down = (tuple(np.array(cycle[at::2]).T) for at in (0, 1))
        rise, fall = (int(min((base - rest[a]).min(), rest[b].min())) for a, b in ((up, down), (down, up)))
        step = rise if rise <= fall else -fall
        rest[up] += step
        rest[down] -= step
    return (table // base * base + rest[:-1, :-1]).astype(np.int64)


def _cycle(free: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """A cycle of free entries, alternately in one row and in one column; empty if no entry is free."""
    rows = np.flatnonzero(free.any(axis=1))
    if len(rows) == 0:
        return []
    path: list[tuple[int, int]] = []
    seen: dict[tuple[int, int], int] = {}  # by which step the path left a row (0, ...) or a column (1, ...)
    line, at, before = 0, int(rows[0]), -1
    while (line, at) not in seen:
        seen[line, at] = len(path)
        others = np.flatnonzero(free[at] if line == 0 else free[:, at])
        there = next(other for other in others.tolist() if other != before)
        path.append((at, there) if line == 0 else (there, at))
        line, at, before = 1 - line, there, at
    return path[seen[line, at] :]
