"""Order statistics of all records, by counting records in cells, then again inside the cells that hold a wanted rank.

    [lo, hi] ──> number, smallest and largest of each cell ──> the cells of the ranks asked for ──> the same in each

A cell is ``floor((x - a) / (b - a) * CELLS)``: it grows with x, so that what lies between its smallest and its largest
record is its own, however divisions are rounded. A rank is found where its cell holds one value, or where it is the
first or the last there. Each look tells the ends of its cell apart, so that few are needed. No engine sorts records for
that, and no record that is not an end of a cell leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._core.universe import Universe
from pdrisk.engines.sql.dialects.dialect import Dialect

CELLS: Final = 2**16  # of each look


class Look(NamedTuple):
    """Interval, with both ends, whose records are counted by cells."""

    lo: float
    hi: float


class _Open(NamedTuple):
    look: Look
    before: int  # records below it
    n: int  # records in it
    ranks: IntArray  # that lie in it


def counted_in(looks: Sequence[Look], dialect: Dialect, x: str, universe: Universe, records: str) -> str:
    """SELECT that counts clamped records by cells of some looks, with the ends of each cell.

    ``looks``: that do not meet.
    ``x``: column of type DOUBLE.
    ``records``: what holds it, as it stands in FROM.
    """
    call, infix, number = dialect.call, dialect.infix, dialect.number
    which, cells = [], []
    for at, (lo, hi) in enumerate(looks):
        share = dialect.scaled(infix("v", "-", number(lo)), hi - lo, divides=True)
        which.append(f"WHEN v BETWEEN {number(lo)} AND {number(hi)} THEN {at}")
        cells.append(f"WHEN {at} THEN CAST({call('FLOOR', infix(share, '*', number(float(CELLS))))} AS BIGINT)")
    values = f"(SELECT {dialect.clamped(x, number(universe.lo), number(universe.hi))} AS v FROM {records}) AS clamped"
    looked = f"(SELECT v, CASE {' '.join(which)} END AS look FROM {values}) AS looked"
    placed = f"(SELECT v, look, CASE look {' '.join(cells)} END AS cell FROM {looked} WHERE look IS NOT NULL) AS placed"
    ends = f"{call('MIN', 'v')} AS lowest, {call('MAX', 'v')} AS highest"
    return f"SELECT look, cell, {call('COUNT', '*')} AS n, {ends} FROM {placed} GROUP BY look, cell"


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Clamped records of one group whose ranks are known."""

    ranks: IntArray  # in ascending order; none where there is no record; shape (m,)
    records: FloatArray  # shape (m,)

    @classmethod
    def of(
        cls, counted: Callable[[Sequence[Look]], dict[str, Any]], universe: Universe, n: int, ranks: IntArray
    ) -> Looked:
        """The records, by looking until all are found.

        ``counted``: takes looks, and gives what `counted_in` selects.
        ``n``: number of records.
        ``ranks``: from 1; those beyond are left out.
        """
        wanted = np.unique(ranks[(ranks >= 1) & (ranks <= n)])
        records = np.empty(len(wanted))
        opened = [_Open(Look(universe.lo, universe.hi), 0, n, wanted)] if len(wanted) else []
        while opened:
            columns = counted([open_look.look for open_look in opened])
            look, cell, size = (np.ma.getdata(columns[name]).astype(np.int64) for name in ("look", "cell", "n"))
            lowest, highest = (np.ma.getdata(columns[name]).astype(np.float64) for name in ("lowest", "highest"))
            order = np.lexsort((cell, look))
            first = np.searchsorted(look[order], np.arange(len(opened) + 1))
            left = []
            for at, open_look in enumerate(opened):
                rows = order[first[at] : first[at + 1]]
                ends = open_look.before + np.cumsum(size[rows])
                if not len(ends) or ends[-1] != open_look.before + open_look.n:
                    raise RuntimeError("the records of a table changed while they were read")
                cells = np.searchsorted(ends, open_look.ranks)
                here, starts = rows[cells], (ends - size[rows])[cells]
                is_last = open_look.ranks == ends[cells]
                is_known = is_last | (open_look.ranks == starts + 1) | (lowest[here] == highest[here])
                records[np.searchsorted(wanted, open_look.ranks)] = np.where(is_last, highest[here], lowest[here])
                for one in np.unique(cells[~is_known]):
                    inside, within = rows[one], ~is_known & (cells == one)
                    again = Look(float(lowest[inside]), float(highest[inside]))
                    left.append(_Open(again, int(ends[one] - size[inside]), int(size[inside]), open_look.ranks[within]))
            opened = left
        return cls(wanted, records)

    def at(self, rank: IntArray) -> FloatArray:
        """Records at these ranks, of any shape; any value where they are not known."""
        if not len(self.ranks):
            return np.zeros(rank.shape)
        return self.records[np.clip(np.searchsorted(self.ranks, rank), 0, len(self.ranks) - 1)]
