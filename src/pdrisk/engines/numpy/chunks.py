"""Clamped, non-missing records in pieces small enough for the processor's cache."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import square_of_place
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._core.universe import Universe

# Pieces of 2**15 floats stay in the second-level cache: four times faster than pieces of 1e6. The error bound
# in core.statistics counts on this size, and on LARGE of single.
SIZE = 2**15


class Piece(NamedTuple):
    """Some of a column's records."""

    start: int  # position of the piece in the column
    records: FloatArray  # valid until the next piece; shape (m,)
    codes: NDArray[np.intp]  # their groups; empty without groups; shape (m,)
    ends: tuple[float, float] | None = None  # the smallest and the largest of them, where that is known


def clamped(
    values: NDArray[np.generic],
    universe: Universe,
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    moved: IntArray | None = None,
    size: int | None = None,
) -> Iterator[Piece]:
    """Yield the pieces of a column that hold a record, clamped and without missing values.

    ``values``: shape (N,). NaN is missing and left out; infinities are clamped like any other value.
    ``selected``: shape (N,). Which rows count.
    ``codes``: shape (N,). The group of each row.
    ``moved``: shape (bins,). To which the number of records moved to an end is added, by group; one bin without
        ``codes``. The records must not be overwritten then: a piece of which none is moved or missing is the
        column's own memory.
    ``size``: rows of a piece, `SIZE` unless given.
    """
    size = SIZE if size is None else size
    buffer = np.empty(min(size, len(values)))
    same_type = values.dtype == buffer.dtype
    none = np.empty(0, dtype=np.intp)
    lo, hi = universe.lo, universe.hi
    for start in range(0, len(values), size):
        piece = values[start : start + size]
        group = none if codes is None else codes[start : start + size].astype(np.intp)
        if selected is not None:
            chosen = selected[start : start + size]
            piece = piece[chosen]
            group = group if codes is None else group[chosen]
        records = buffer[: len(piece)]
        if not len(piece):
            continue
        if not same_type:
            records[:] = piece  # clipping in the column's own type would round the bounds to it
            piece = records
        if moved is None:
            np.clip(piece, lo, hi, out=records)
            is_missing = math.isnan(float(records.sum()))  # clamped values are finite: only a missing one makes it NaN
            ends = None
        else:
            low, high = float(piece.min()), float(piece.max())
            is_missing = math.isnan(low)
            _count_moved(moved, piece, group, universe, low, high)
            if lo <= low and high <= hi:
                if same_type:
                    records = piece.view(np.float64)
                    records.flags.writeable = False
            else:
                np.clip(piece, lo, hi, out=records)
            ends = None if is_missing else (min(max(low, lo), hi), max(min(high, hi), lo))
        if is_missing:
            present = ~np.isnan(records)
            records = records[present]
            group = group if codes is None else group[present]
        if len(records):
            yield Piece(start, records, group, ends)


def _count_moved(
    moved: IntArray, piece: NDArray[np.generic], group: NDArray[np.intp], universe: Universe, low: float, high: float
) -> None:
    """Add the numbers of records outside the universe to their groups' counts; NaN ends count nothing."""
    for is_inside, outside, end in (
        (low >= universe.lo, np.less, universe.lo),
        (high <= universe.hi, np.greater, universe.hi),
    ):
        if is_inside:
            continue
        changed = outside(piece, end)
        if len(moved) == 1:
            moved += np.count_nonzero(changed)
        elif len(moved) > SIZE:  # a fresh array of all groups for every piece costs more than scattered additions
            np.add.at(moved, group[changed], 1)
        else:
            moved += np.bincount(group[changed], minlength=len(moved))


def squares_of_places(places: FloatArray) -> IntArray:
    """``floor(k**2 / PLACES)`` of places: by integers, as floats would round k**2."""
    k = places.astype(np.int64)
    return square_of_place(k, out=k)
