"""Order of all records of many groups by one sort of integers: group, cell of the universe, and row.

Only the records of one cell may stand in a wrong order. Where they do, the wanted ones of the group are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import runs_of_groups
from pdrisk._core.summary import FloatArray, IntArray, Ranks
from pdrisk.engines.numpy.chunks import SIZE, clamped
from pdrisk.engines.numpy.looks import BandLook, GroupedRows, sorted_by_group, span_of

CELL_BITS = 46  # of a cell's number at most


@dataclass(frozen=True, slots=True, eq=False)
class OrderedGroups:
    """All records of many groups in the order of their groups and cells, so that those of a cell stand together."""

    rows: GroupedRows
    keys: IntArray  # group, cell and row of each record, in this order from the highest bits on; sorted
    # `of_row`, `of_cell`: bits of each
    of_row: int
    of_cell: int
    per_unit: float  # cells to one unit of the records

    @classmethod
    def of(cls, rows: GroupedRows, moved: IntArray | None) -> OrderedGroups:
        """The places of all records; ``moved`` as for `clamped`."""
        assert rows.selected is None  # rows that do not count are in no group
        values, groups, lo = rows.values, rows.groups, rows.universe.lo
        of_row = len(values).bit_length()
        of_cell = max(min(63 - of_row - groups.bit_length(), CELL_BITS), 0)
        per_unit = 2.0**of_cell * (1 - 2.0**-50) / rows.universe.width  # no rounding leaves the cells
        keys = np.empty(len(values), dtype=np.int64)
        numbers, filled = np.arange(SIZE), 0
        for start, records, code, *_ in clamped(values, rows.universe, codes=rows.codes, moved=moved, size=SIZE):
            piece = values[start : start + SIZE]
            row = numbers[: len(piece)] if len(records) == len(piece) else np.flatnonzero(piece == piece)
            piece_keys = keys[filled : filled + len(records)]
            np.multiply(records - lo, per_unit, out=piece_keys, casting="unsafe")
            piece_keys += code << of_cell
            piece_keys <<= of_row
            piece_keys += row
            piece_keys += start
            if not (inside := code < groups).all():
                piece_keys = piece_keys[inside]
                keys[filled : filled + len(piece_keys)] = piece_keys
            filled += len(piece_keys)
        keys = keys[:filled]
        keys.sort()
        return cls(rows, keys, of_row, of_cell, per_unit)

    def look(self, wanted: Ranks | float) -> BandLook:
        """The records of all cells from that of the first wanted one to that of the last.

        Where the next record may be at the same point as a wanted one of ranks, all on that side of it are looked at.
        """
        keys, of_row, groups = self.keys, self.of_row, self.rows.groups
        starts = np.searchsorted(keys, np.arange(groups + 1) << (self.of_cell + of_row))
        n = np.diff(starts)
        first, last = span_of(wanted, n)
        some = np.flatnonzero(first <= last)
        begin, end = starts[:-1].copy(), starts[:-1].copy()
        begin[some] = np.searchsorted(keys, keys[(begin + first - 1)[some]] >> of_row << of_row)
        end[some] = np.searchsorted(keys, ((keys[(end + last - 1)[some]] >> of_row) + 1) << of_row)
        if isinstance(wanted, Ranks):
            at = some[begin[some] > starts[some]]
            at = at[self._may_share_a_point(begin[at])]
            begin[at] = starts[at]
            at = some[end[some] < starts[some + 1]]
            at = at[self._may_share_a_point(end[at])]
            end[at] = starts[at + 1]
        m = end - begin
        first = np.concatenate([[0], np.cumsum(m)])
        ordered = np.empty(first[-1])
        for run in runs_of_groups(first):
            ordered[first[run.start] : first[run.stop]] = self._records(begin[run], m[run])
        return BandLook(wanted, n, begin - starts[:-1], m, ordered)

    def _may_share_a_point(self, place: IntArray) -> NDArray[np.bool_]:
        """Whether the record at a place among the keys may be at the same one of the points as the record before it."""
        lo, hi = self.rows.universe.lo, self.rows.universe.hi
        before, after = ((self.keys[at] >> self.of_row) & ((1 << self.of_cell) - 1) for at in (place - 1, place))
        # A cell ends before the next one but one begins, and after the one before it does, however these are rounded.
        largest, least = (np.clip(lo + cell / self.per_unit, lo, hi) for cell in (before + 2, after - 1))
        may_share = np.zeros(len(place), dtype=bool)
        for point in self.rows.points:
            may_share |= point.index(largest) >= point.index(least)
        return may_share

    def _records(self, begin: IntArray, m: IntArray) -> FloatArray:
        """So many records of each group, from the place where they begin on, in order."""
        group = np.repeat(np.arange(len(m), dtype=np.int32), m)
        place = np.arange(len(group)) + np.repeat(begin - np.cumsum(m) + m, m)
        records = self.rows.values[self.keys[place] & ((1 << self.of_row) - 1)].astype(np.float64)
        np.clip(records, self.rows.universe.lo, self.rows.universe.hi, out=records)
        unordered = np.flatnonzero((records[1:] < records[:-1]) & (group[1:] == group[:-1]))
        if len(unordered):
            again = np.zeros(len(m), dtype=bool)
            again[group[unordered]] = True
            at = np.flatnonzero(again[group])
            records[at], _ = sorted_by_group(records[at], group[at])
        return records
