"""The summaries of many groups at once, without a loop over groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Lattice, PlaceGrid
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.cells import cells, told_apart
from pdrisk.engines.numpy.chunks import SIZE, clamped, squares_of_places
from pdrisk.engines.numpy.ranks import windows
from pdrisk.engines.numpy.sizes import size_sums

MANY_GROUPS = 2**14  # beyond, a fresh array of all groups for every piece costs more than scattered additions
ROWS_IN_A_ROW = 2**17  # added up one by one before they join the total
EXACT_ROWS = 2**22  # whose places, at most 2**30 each, are below 2**53 together


def summary_of_groups(
    values: NDArray[np.generic], codes: NDArray[np.int32], groups: int, universe: Universe, needs: Needs
) -> Summary:
    """Summarise the non-missing, clamped values of each group.

    ``values``: shape (N,)
    ``codes``: shape (N,). The group of each row; ``groups`` marks the rows of no group.
    ``groups``: number of groups G.
    """
    bins = groups + 1
    step = Lattice.of_records(universe.magnitude).step
    n = np.zeros(bins, dtype=np.int64)
    totals = _Sums(bins)
    steps = np.zeros(bins, dtype=np.int64)
    lowest = np.full((2, bins), universe.hi)
    highest = np.full((2, bins), universe.lo)
    places, place_squares, whole, moved = (np.zeros(bins, dtype=np.int64) for _ in range(4))
    grid = PlaceGrid.of(universe)
    spare = np.empty(SIZE if needs.places or needs.place_squares else 0)
    ranks = told_apart(needs, universe, len(values), groups)
    points = tuple(needs.points(universe).values())
    scan = needs.moments or not (needs.windows or ranks)
    placed = _Placed(bins) if scan and needs.places and bins > MANY_GROUPS else None
    n_ranked, by_quantile, ranked = windows(
        values, universe, needs.windows, ranks, points, codes=codes, groups=groups, moved=None if scan else moved
    )
    if not scan:
        n[:groups] = n_ranked
    for _, records, code, *_ in clamped(values, universe, codes=codes, moved=moved) if scan else ():
        if placed is not None:
            placed.add(code, grid.placed(records, spare))
        elif bins > MANY_GROUPS:
            np.add.at(n, code, 1)
        else:
            n += np.bincount(code, minlength=bins)
        if needs.total or needs.squares:
            totals.add(code, records)
        if needs.ends:
            np.minimum.at(lowest[0], code, records)
            np.maximum.at(highest[0], code, records)
        if needs.steps:
            np.add.at(steps, code, np.rint(records * (1 / step)).astype(np.int64))
        if needs.whole:
            np.add.at(whole, code, np.floor(records + 0.5).astype(np.int64))
        if needs.places and placed is None:
            _add(places, code, grid.placed(records, spare))
        if needs.place_squares:
            _add(place_squares, code, squares_of_places(grid.placed(records, spare)))
    if placed is not None:
        n, places = placed.result()
    total = totals.result()
    if needs.seconds:
        _fill_seconds(values, codes, universe, lowest, highest)
    squares, nearest = np.zeros(bins), np.zeros(bins)
    if needs.squares:
        squares, nearest = _distances(values, codes, universe, n, total)
    kept, has_ends = slice(groups), needs.ends or needs.seconds
    at_points = cells(values, universe, needs, ranked, codes=codes, groups=groups)
    return Summary(
        n=n[kept],
        total=total[kept] if needs.total or needs.squares else None,  # places tell the mean, too
        steps=steps[kept],
        lowest=lowest[:, kept] if has_ends else None,
        highest=highest[:, kept] if has_ends else None,
        squares=squares[kept] if needs.squares else None,
        nearest=nearest[kept] if needs.squares else None,
        windows=by_quantile,
        places=places[kept],
        place_squares=place_squares[kept],
        whole=whole[kept],
        clamped=moved[kept],
        cells=at_points.get("cells"),
        whole_cells=at_points.get("whole_cells"),
        size_sums=size_sums(values, universe, codes=codes, groups=groups) if needs.size_sums else None,
    )


def _add(sums: IntArray, code: NDArray[np.intp], integers: NDArray[Any]) -> None:
    """Add the integers of one piece, at most 2**30 each, to the sums of their groups: 2**45 in all, exact as floats."""
    if len(sums) > MANY_GROUPS:
        np.add.at(sums, code, integers.astype(np.int64))
    else:
        sums += np.bincount(code, integers, minlength=len(sums)).astype(np.int64)


class _Placed:
    """Numbers of records and sums of their places: one addition for both, as the parts of complex numbers."""

    def __init__(self, bins: int) -> None:
        self._n, self._places = np.zeros(bins, dtype=np.int64), np.zeros(bins, dtype=np.int64)
        self._part = np.zeros(bins, dtype=np.complex128)
        self._records = np.full(SIZE, 1j)
        self._rows = 0

    def add(self, code: NDArray[np.intp], places: FloatArray) -> None:
        records = self._records[: len(code)]
        records.real = places
        np.add.at(self._part, code, records)
        self._rows += len(code)
        if self._rows > EXACT_ROWS - SIZE:
            self._join()

    def result(self) -> tuple[IntArray, IntArray]:
        self._join()
        return self._n, self._places

    def _join(self) -> None:
        self._n += self._part.imag.astype(np.int64)
        self._places += self._part.real.astype(np.int64)
        self._part[:] = 0
        self._rows = 0


class _Sums:
    """Sums of groups, of which no part is made of more than 2**18 additions in a row."""

    def __init__(self, bins: int) -> None:
        self._total = np.zeros(bins)
        self._part = np.zeros(bins if bins > MANY_GROUPS else 0)
        self._rows = 0

    def add(self, code: NDArray[np.intp], weights: FloatArray) -> None:
        if len(self._part) == 0:
            self._total += np.bincount(code, weights, minlength=len(self._total))
            return
        np.add.at(self._part, code, weights)
        self._rows += len(code)
        if self._rows >= ROWS_IN_A_ROW:
            self._total += self._part
            self._part[:] = 0
            self._rows = 0

    def result(self) -> FloatArray:
        return self._total + self._part if len(self._part) else self._total


def _fill_seconds(
    values: NDArray[np.generic],
    codes: NDArray[np.int32],
    universe: Universe,
    lowest: FloatArray,
    highest: FloatArray,
) -> None:
    """Second row: the next record beyond the extreme, or the extreme again where two records share it."""
    at_low, at_high = np.zeros(lowest.shape[1], dtype=np.int64), np.zeros(lowest.shape[1], dtype=np.int64)
    for _, records, code, *_ in clamped(values, universe, codes=codes):
        for extreme, beyond, shared in ((lowest, np.minimum, at_low), (highest, np.maximum, at_high)):
            equal = records == extreme[0][code]
            np.add.at(shared, code[equal], 1)
            beyond.at(extreme[1], code[~equal], records[~equal])
    lowest[1] = np.where(at_low > 1, lowest[0], lowest[1])
    highest[1] = np.where(at_high > 1, highest[0], highest[1])


def _distances(
    values: NDArray[np.generic],
    codes: NDArray[np.int32],
    universe: Universe,
    n: NDArray[np.int64],
    total: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Sum of squared distances from the mean of each group, and the smallest distance."""
    mean = total / np.maximum(n, 1)
    square_sums, offset_sums = _Sums(len(n)), _Sums(len(n))
    nearest = np.full(len(n), np.inf)
    for _, records, code, *_ in clamped(values, universe, codes=codes):
        records -= mean[code]
        offset_sums.add(code, records)
        square_sums.add(code, records * records)
        np.minimum.at(nearest, code, np.abs(records, out=records))
    # The mean is rounded, so the distances do not quite add up to zero (Chan, Golub & LeVeque 1983, eq. 1.7).
    squares = square_sums.result() - offset_sums.result() ** 2 / np.maximum(n, 1)
    return np.maximum(squares, 0), np.where(n > 0, nearest, 0)
