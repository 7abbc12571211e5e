"""Numbers of records at each public point, for one or many groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import clamped

__all__ = ["cells"]

MOST_BINS = 2**22  # that are counted in an array; of more, or of few records, records are sorted
BINS_OF_A_ROW = 4
ROWS = 2**20  # counted at once


def cells(
    values: NDArray[np.generic],
    universe: Universe,
    needs: Needs,
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
) -> dict[str, Cells]:
    """The cells that are needed, by their name in `Summary`.

    Parameters
    ----------
    values : ndarray of bool, int or float, shape (N,)
    universe : Universe
    needs : Needs
    selected : ndarray of bool, shape (N,), optional
    codes : ndarray of int32, shape (N,), optional
        The group of each row; ``groups`` marks the rows of no group.
    groups : int
    """
    wanted = [(name, whole) for name, whole in (("cells", False), ("whole_cells", True)) if getattr(needs, name)]
    return {
        name: _cells(values, universe, Points.between(universe.lo, universe.hi, whole), selected, codes, groups)
        for name, whole in wanted
    }


def _cells(
    values: NDArray[np.generic],
    universe: Universe,
    points: Points,
    selected: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    groups: int,
) -> Cells:
    size = points.size
    counted = groups * size <= min(MOST_BINS, BINS_OF_A_ROW * len(values))
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
        found = np.flatnonzero(counts)
        return Cells.of_keys(found, counts[found], groups, size)
    keys.sort()
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] > keys[:-1]])) if filled else np.empty(0, dtype=np.int64)
    return Cells.of_keys(keys[begins], np.diff(begins, append=filled), groups, size)
