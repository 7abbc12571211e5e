"""The summaries of two columns at once, for one or many groups: of the rows where both have a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import PlaceGrid
from pdrisk._core.products import products_of_places, weight_steps
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Rectangle, Universe
from pdrisk.engines.numpy.chunks import SIZE

FEW_GROUPS = 2**14  # of more, a fresh array for every piece costs more than scattered additions


class PairedPiece(NamedTuple):
    """Some of the records of two columns, clamped; their groups, and which of them were moved to an end."""

    records: FloatArray
    others: FloatArray
    codes: NDArray[np.intp]
    moved: NDArray[np.bool_]


def summary_of_pairs(
    values: NDArray[np.generic],
    others: NDArray[np.generic],
    universe: Rectangle,
    needs: Needs,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
) -> Summary:
    """Summarise the selected records of each group that have a value in both columns.

    ``values, others``: shape (N,)
    ``selected``: shape (N,)
    ``codes``: shape (N,). The group of each row; ``groups`` marks the rows of no group.
    ``groups``: number of groups G.
    """
    bins = groups + 1
    columns = (universe, universe.other)
    grids = tuple(map(PlaceGrid.of, columns))
    n, moved = np.zeros(bins, dtype=np.int64), np.zeros(bins, dtype=np.int64)
    ends = [(np.full((2, bins), column.hi), np.full((2, bins), column.lo)) for column in columns]
    parts = {degrees: np.zeros(((degrees[0] + 1) * (degrees[1] + 1), bins), np.int64) for degrees in needs.products}
    points = needs.points(universe).get("cells")
    keys, steps = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    spare, add = np.empty(SIZE), _add_to_one if codes is None else _add
    for piece in pairs_of(values, others, universe, selected, codes):
        add(n, piece.codes)
        add(moved, piece.codes[piece.moved])
        places: list[IntArray] = []
        for numbers, grid, (low, high) in zip(piece[:2], grids, ends, strict=True):
            if codes is None:
                low[0, 0], high[0, 0] = numbers.min(initial=low[0, 0]), numbers.max(initial=high[0, 0])
            else:
                np.minimum.at(low[0], piece.codes, numbers)
                np.maximum.at(high[0], piece.codes, numbers)
            places.append(grid.placed(numbers, spare).astype(np.int64))
        if points is not None:
            keys.append(piece.codes * points.size + points.index(piece.records.copy()).astype(np.int64))
            steps.append(weight_steps(places[1]))
        for degrees, sums in parts.items():
            for row, numbers in zip(sums, products_of_places(places[0], places[1], degrees), strict=True):
                add(row, piece.codes, numbers)
    kept = slice(groups)
    (low, high), (other_low, other_high) = ((low[:, kept], high[:, kept]) for low, high in ends)
    return Summary(
        n=n[kept],
        lowest=low,
        highest=high,
        clamped=moved[kept],
        products={degrees: sums[:, kept] for degrees, sums in parts.items()},
        other=Summary(n[kept], lowest=other_low, highest=other_high),
        cells=None if points is None else _cells(np.concatenate(keys), np.concatenate(steps), groups, points.size),
    )


def _cells(keys: IntArray, steps: IntArray, groups: int, size: int) -> Cells:
    """Steps of weight at each point: of a record with the key ``group * size + point``."""
    keys, steps = keys[kept := (steps > 0) & (keys < groups * size)], steps[kept]
    different_keys, at = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(different_keys), dtype=np.int64)
    np.add.at(sums, at, steps)
    return Cells.of_keys(different_keys, sums, groups, size)


def pairs_of(
    values: NDArray[np.generic],
    others: NDArray[np.generic],
    universe: Rectangle,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
) -> Iterator[PairedPiece]:
    """Yield the pieces of two columns, without the rows where one of them is missing; everybody in group 0 without
    ``codes``.
    """
    for start in range(0, len(values), SIZE):
        rows = slice(start, start + SIZE)
        kept = np.ones(len(values[rows]), dtype=bool) if selected is None else selected[rows].copy()
        pair = [column[rows].astype(np.float64) for column in (values, others)]
        for side in pair:
            kept &= ~np.isnan(side)
        group = np.zeros(len(kept), dtype=np.intp) if codes is None else codes[rows].astype(np.intp)
        before, others_before = (numbers[kept] for numbers in pair)
        records, beside = _clamped(before, universe), _clamped(others_before, universe.other)
        yield PairedPiece(records, beside, group[kept], (records != before) | (beside != others_before))


def _clamped(records: FloatArray, universe: Universe) -> FloatArray:
    return np.clip(records, universe.lo, universe.hi)


def _add(sums: IntArray, codes: NDArray[np.intp], integers: IntArray | None = None) -> None:
    """Add the integers of one piece, at most 2**30 each, to the sums of their groups: 2**45 in all, exact as floats."""
    if len(sums) > FEW_GROUPS:
        np.add.at(sums, codes, 1 if integers is None else integers)
    else:
        sums += np.bincount(codes, integers, minlength=len(sums)).astype(np.int64)


def _add_to_one(sums: IntArray, codes: NDArray[np.intp], integers: IntArray | None = None) -> None:
    """Add the integers of one piece, or their number, to the sum of the only group."""
    sums[0] += len(codes) if integers is None else integers.sum()
