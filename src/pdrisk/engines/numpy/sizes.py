"""Sums of records by their sizes, for one or many groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import PlaceGrid
from pdrisk._core.size_sums import HALF_BITS, SizePoints, SizeSums
from pdrisk._core.summary import IntArray
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import SIZE, clamped

ROWS = 2**20  # added up at once
DENSE = 4  # times as many bins as rows: of more, rows are sorted

Sums = tuple[IntArray, IntArray, IntArray, IntArray]  # keys, and of each the records, and both halves of their places


def size_sums(
    values: NDArray[np.generic],
    universe: Universe,
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
) -> SizeSums:
    """Sums of the non-missing, clamped values in each bin of `SizePoints`; arguments as for `cells`."""
    points = SizePoints.between(universe.lo, universe.hi)
    thresholds, bins = points.thresholds, points.bins
    grid = PlaceGrid(universe.lo, points.per_unit, 0.5)
    spare, none = np.empty(SIZE), np.empty(0, dtype=np.int64)
    parts: list[Sums] = [(none, none, none, none)]
    waiting: list[tuple[IntArray, IntArray]] = []
    for _, records, code, *_ in clamped(values, universe, selected=selected, codes=codes):
        if codes is not None and not (inside := code < groups).all():
            records, code = records[inside], code[inside]
        places = grid.placed(records, spare).astype(np.int64)
        keys = np.searchsorted(thresholds, places, side="right")
        waiting.append((keys if codes is None else keys + code * bins, places))
        if len(waiting) * SIZE >= ROWS:
            parts.append(_sums_of(waiting, groups * bins))
            waiting = []
    if waiting:
        parts.append(_sums_of(waiting, groups * bins))
    return SizeSums.of_keys(*_merged(parts), groups, bins)


def _sums_of(waiting: list[tuple[IntArray, IntArray]], size: int) -> Sums:
    """The sums of some rows' places by key."""
    keys, places = (np.concatenate(pieces) for pieces in zip(*waiting, strict=True))
    halves = places >> HALF_BITS, places & (2**HALF_BITS - 1)
    if size <= DENSE * len(keys):
        n = np.bincount(keys, minlength=size)
        some = np.flatnonzero(n)
        # Sums of whole numbers below 2**25: of 2**20 rows exact as floats.
        high, low = (np.bincount(keys, half, minlength=size)[some].astype(np.int64) for half in halves)
        return some, n[some], high, low
    return _merged([(keys, np.ones_like(keys), *halves)])


def _merged(parts: list[Sums]) -> Sums:
    """The sums of equal keys, sorted by key."""
    keys, *sums = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    n, high, low = (np.add.reduceat(column[order], starts) if len(starts) else column for column in sums)
    return keys[starts], n, high, low
