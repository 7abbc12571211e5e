"""Numbers of records at each public point, for one or many groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.summary import Needs, Ranks
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import clamped
from pdrisk.engines.numpy.looks import Ranked

MOST_BINS = 2**22  # that are counted in an array; of more, or of few records, records are sorted
BINS_OF_A_ROW = 4
ROWS = 2**20  # counted at once
RANKED = 2  # times as many records as are told apart: of fewer, all are counted


def cells(
    values: NDArray[np.generic],
    universe: Universe,
    needs: Needs,
    ranked: Ranked | None = None,
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
) -> dict[str, Cells]:
    """The cells that are needed, by their name in `Summary`.

    ``values``: shape (N,)
    ``ranked``: the records that are to be told apart; without, all are.
    ``selected``: shape (N,)
    ``codes``: shape (N,). The group of each row; ``groups`` marks the rows of no group.
    """
    if ranked is None:
        return {
            name: _cells(values, universe, points, selected, codes, groups)
            for name, points in needs.points(universe).items()
        }
    return {name: ranked.cells(points) for name, points in needs.points(universe).items()}


def told_apart(needs: Needs, universe: Universe, rows: int, groups: int) -> frozenset[Ranks]:
    """Ranks whose records are looked for to make cells; none if counting all records is faster."""
    width = sum(rows if rank.width is None else rank.width for rank in needs.ranks)
    if not needs.at_points or RANKED * width * groups <= rows:
        return needs.ranks
    by_counting = any(_is_counted(points.size * groups, rows) for points in needs.points(universe).values())
    return frozenset() if by_counting or not needs.windows else needs.ranks


def _is_counted(bins: int, rows: int) -> bool:
    return bins <= min(MOST_BINS, BINS_OF_A_ROW * rows)


def _cells(
    values: NDArray[np.generic],
    universe: Universe,
    points: Points,
    selected: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    groups: int,
) -> Cells:
    size = points.size
    counted = _is_counted(groups * size, len(values))
    bins = groups * size if counted else 0
    counts = np.zeros(bins, dtype=np.int64)
    keys = np.empty(min(ROWS, len(values)) if counted else len(values), dtype=np.int64)
    filled = 0
    for _, records, code, *_ in clamped(values, universe, selected=selected, codes=codes):
        if codes is not None and not (inside := code < groups).all():
            records, code = records[inside], code[inside]
        if counted and filled + len(records) > len(keys):
            counts += np.bincount(keys[:filled], minlength=bins)
            filled = 0
        place = keys[filled : filled + len(records)]
        np.copyto(place, points.index(records), casting="unsafe")
        if codes is not None:
            place += code * size
        filled += len(records)
    keys = keys[:filled]
    if counted:
        counts += np.bincount(keys, minlength=bins)
        occupied = np.flatnonzero(counts)
        return Cells.of_keys(occupied, counts[occupied], groups, size)
    keys.sort()
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] > keys[:-1]])) if filled else np.empty(0, dtype=np.int64)
    return Cells.of_keys(keys[begins], np.diff(begins, append=filled), groups, size)
