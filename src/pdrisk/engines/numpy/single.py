"""The summary of one group: a whole column, or the rows a filter selects."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Lattice, PlaceGrid
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.cells import cells, told_apart
from pdrisk.engines.numpy.chunks import SIZE, Piece, clamped, squares_of_places
from pdrisk.engines.numpy.ranks import windows
from pdrisk.engines.numpy.sizes import size_sums

WORTH_THREADS = 2**20  # records; of fewer, making threads costs more than it saves
THREADS = 4  # at most: reading memory is what takes the time
LARGE = 2**18  # records of a piece then: threads wait for the interpreter lock after each look at one
PLACES_AND_ENDS = Needs(places=True, ends=True)

Pieces = Callable[[], Iterator[Piece]]


def summary_of_one(
    values: NDArray[np.generic], universe: Universe, needs: Needs, selected: NDArray[np.bool_] | None = None
) -> Summary:
    """Summarise the selected, non-missing, clamped values of a column as a batch of one group.

    ``values``: shape (N,)
    ``selected``: shape (N,)
    """

    def pieces() -> Iterator[Piece]:
        return clamped(values, universe, selected=selected)

    moved = np.zeros(1, dtype=np.int64)
    ranks = told_apart(needs, universe, len(values), 1)
    scan = needs.moments or not (needs.windows or ranks)
    sums = _together(_moments_of_blocks(values, universe, needs, selected)) if scan else _Moments()
    n, by_quantile, ranked = sums.n, dict[float, FloatArray](), None
    if needs.windows or ranks:
        points, counted = tuple(needs.points(universe).values()), None if scan else moved
        numbers, by_quantile, ranked = windows(
            values, universe, needs.windows, ranks, points, selected=selected, moved=counted
        )
        n = n or int(numbers[0])
    moved += sums.moved
    total = math.fsum(sums.totals)
    lowest, highest = (universe.hi, universe.hi), (universe.lo, universe.lo)
    if needs.ends and n:
        lowest, highest = (min(sums.lows), math.nan), (max(sums.highs), math.nan)
    if needs.seconds and n:
        lowest, highest = _seconds(values, universe, selected, sums.starts, sums.lows, sums.highs)
    squares, nearest = _distances(pieces, total / n) if needs.squares and n else (0.0, 0.0)
    at_points = cells(values, universe, needs, ranked, selected=selected) if needs.at_points else {}
    has_ends = needs.ends or needs.seconds
    return Summary(
        n=np.array([n], dtype=np.int64),
        total=np.array([total]) if needs.total or needs.squares else None,  # places tell the mean, too
        steps=_held(sums.steps),
        lowest=np.array(lowest).reshape(2, 1) if has_ends else None,
        highest=np.array(highest).reshape(2, 1) if has_ends else None,
        squares=np.array([squares]) if needs.squares else None,
        nearest=np.array([nearest]) if needs.squares else None,
        windows=by_quantile,
        places=_held(sums.places),
        place_squares=_held(sums.place_squares),
        whole=_held(sums.whole),
        clamped=moved,
        cells=at_points.get("cells"),
        whole_cells=at_points.get("whole_cells"),
        size_sums=size_sums(values, universe, selected=selected) if needs.size_sums else None,
    )


@dataclass(slots=True)
class _Moments:
    """Sums over a block of rows, and about each of its pieces."""

    n: int = 0
    steps: int = 0
    places: int = 0
    place_squares: int = 0
    whole: int = 0
    starts: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    moved: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest record, where that is asked for and there is one."""
        return (min(self.lows), max(self.highs)) if self.lows else None


def _together(blocks: list[_Moments]) -> _Moments:
    """The moments of all blocks, in their order."""
    sums, *others = blocks
    for other in others:
        for name in ("n", "steps", "places", "place_squares", "whole", "starts", "totals", "lows", "highs", "moved"):
            setattr(sums, name, getattr(sums, name) + getattr(other, name))
    return sums


def _moments_of_blocks(
    values: NDArray[np.generic],
    universe: Universe,
    needs: Needs,
    selected: NDArray[np.bool_] | None,
) -> list[_Moments]:
    """Moments of each block, from pieces that do not depend on the blocks, so that sums are the same."""

    def moments(start: int) -> list[_Moments]:
        rows = slice(start, start + block)
        chosen = None if selected is None else selected[rows]
        with np.errstate(all="ignore"):  # a warning would depend on the data, and threads know nothing of the caller's
            if needs == PLACES_AND_ENDS and chosen is None and values.dtype == np.float64:
                return _places_and_ends(values[rows], universe, start, size)
            return [_moments(values[rows], universe, needs, chosen, start, size)]

    many = len(values) >= WORTH_THREADS
    size, most = (LARGE, min(cores(), THREADS)) if many else (SIZE, 1)
    block = max(-(-len(values) // (most * size)) * size, 1)
    if most == 1:
        return moments(0)
    # numpy lets go of the interpreter lock. Were this thread only to wait, two new ones might share its processor.
    with ThreadPoolExecutor(most - 1) as threads:
        others = [threads.submit(moments, start) for start in range(block, len(values), block)]
        return [*moments(0), *(sums for other in others for sums in other.result())]


def _places_and_ends(values: NDArray[Any], universe: Universe, first: int, size: int) -> list[_Moments]:
    """Places and ends of a block of rows, with two looks at memory less once both bounds have been reached.

    The ends are known then. That a value is missing, the sum of places tells; from there on, rows are read as ever.
    """
    sums, grid = _Moments(), PlaceGrid.of(universe)
    lo, hi = universe.lo, universe.hi
    buffer, changed = np.empty(min(size, len(values))), np.empty(min(size, len(values)), dtype=bool)
    for start in range(0, len(values), size):
        piece = records = values[start : start + size]
        is_inside, ends, moved = False, None, 0
        if sums.ends != (lo, hi):
            low, high = float(np.minimum.reduce(piece)), float(np.maximum.reduce(piece))  # as min() and max(), sooner
            is_inside, ends = lo <= low and high <= hi, (min(max(low, lo), hi), max(min(high, hi), lo))
        if not is_inside:
            records = piece.clip(lo, hi, out=buffer[: len(piece)])
            moved = int(np.count_nonzero(np.not_equal(piece, records, out=changed[: len(piece)])))
        # Whole numbers, exact in any order, which einsum adds in half the time.
        places = float(np.einsum("i->", grid.placed(records, buffer)))
        if math.isnan(places):
            return [sums, _moments(values[start:], universe, PLACES_AND_ENDS, None, first + start, size)]
        sums.n += len(piece)
        sums.places += int(places)
        sums.moved += moved
        if ends is not None:
            sums.lows.append(ends[0])
            sums.highs.append(ends[1])
    return [sums]


def _moments(
    values: NDArray[np.generic],
    universe: Universe,
    needs: Needs,
    selected: NDArray[np.bool_] | None,
    first: int,
    size: int,
) -> _Moments:
    sums = _Moments()
    grid = PlaceGrid.of(universe)
    per_step = 1 / Lattice.of_records(universe.magnitude).step if needs.steps else 0.0
    spare = np.empty(min(size, len(values)) if needs.places or needs.place_squares else 0)
    for start, records, _, ends in clamped(values, universe, selected=selected, moved=sums.moved, size=size):
        sums.n += len(records)
        sums.starts.append(first + start)
        if needs.total or needs.squares:
            sums.totals.append(float(records.sum()))
        if needs.ends or needs.seconds:
            low, high = ends or (float(records.min()), float(records.max()))
            sums.lows.append(low)
            sums.highs.append(high)
        if needs.steps:
            sums.steps += int(np.rint(records * per_step).sum())  # integers below 2**53: exact
        if needs.whole:
            sums.whole += int(np.floor(records + 0.5).astype(np.int64).sum())
        if needs.places or needs.place_squares:
            buffer = records if records.flags.writeable else spare  # the column's memory stays as it is
            places = grid.placed(records, buffer)
            sums.places += int(places.sum())
            if needs.place_squares:
                sums.place_squares += int(squares_of_places(places).sum())
    return sums


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _held(total: int) -> IntArray:
    """An exact sum, moved to the ends of int64 if it is beyond."""
    return np.array([max(-(2**63), min(total, 2**63 - 1))], dtype=np.int64)


def _distances(pieces: Pieces, mean: float) -> tuple[float, float]:
    """Sum of squared distances from the mean, and the smallest distance."""
    squares: list[float] = []
    offsets: list[float] = []
    nearest = math.inf
    n = 0
    spare = np.empty(SIZE)
    for _, records, *_ in pieces():
        n += len(records)
        records -= mean
        offsets.append(float(records.sum()))
        squares.append(float(np.square(records, out=spare[: len(records)]).sum()))
        nearest = min(nearest, float(np.abs(records, out=records).min()))
    # The mean is rounded, so the distances do not quite add up to zero (Chan, Golub & LeVeque 1983, eq. 1.7).
    return max(math.fsum(squares) - math.fsum(offsets) ** 2 / n, 0.0), nearest


def _seconds(
    values: NDArray[np.generic],
    universe: Universe,
    selected: NDArray[np.bool_] | None,
    starts: list[int],
    lows: list[float],
    highs: list[float],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two smallest and the two largest records: only the pieces that hold the extremes are opened again."""

    def piece(index: int) -> FloatArray:
        rows = slice(starts[index], starts[index + 1] if index + 1 < len(starts) else None)
        chosen = None if selected is None else selected[rows]
        return np.concatenate(
            [clamped_piece.records.copy() for clamped_piece in clamped(values[rows], universe, selected=chosen)]
        )

    first, last = int(np.argmin(lows)), int(np.argmax(highs))
    low_piece, high_piece = piece(first), piece(last)
    second_low = np.partition(low_piece, min(1, len(low_piece) - 1))[1:2]
    second_high = np.partition(high_piece, max(len(high_piece) - 2, 0))[-2:-1]
    other_lows = [*lows[:first], *lows[first + 1 :], universe.hi, *second_low]
    other_highs = [*highs[:last], *highs[last + 1 :], universe.lo, *second_high]
    return (lows[first], float(min(other_lows))), (highs[last], float(max(other_highs)))
