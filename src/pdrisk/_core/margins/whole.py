"""Whole numbers in the cells of a table whose one-way margins are given, near to a table of numbers with fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pdrisk._core.margins.components import Axes, broadcast_sum, margin, subsets
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.margins.nonnegative import nearest_tables
from pdrisk._core.summary import FloatArray, IntArray

SWEEPS: Final = 60
PARTS: Final = 8  # of the moves of a sweep, of which ever fewer are tried


def whole_table(measured: MeasuredMargins, estimated: Mapping[Axes, FloatArray]) -> IntArray:
    """Whole, non-negative cells near to estimates; margins are their sums.

    Rounding keeps one-way margins exactly, and those over more axes as near as moves of single people can bring them:
    no rounding keeps all (there may be none for three axes and more).

    ``measured``: all components of the table among them.
    ``estimated``: `MeasuredMargins.estimated_components`.
    """
    table, one_way = nearest_tables(measured.sizes, estimated, measured.component_variances)
    return rounded(table, one_way) if table.ndim > 1 else one_way[0]


def rounded(table: FloatArray, one_way: Sequence[IntArray]) -> IntArray:
    """Whole numbers near to a non-negative table, with these one-way margins."""
    cells = _stepwise(table, int(one_way[0].sum()))
    _improve(cells, table)
    for axis, wanted in enumerate(one_way):
        _settle(cells, table, axis, wanted)
    return cells


def _stepwise(table: FloatArray, total: int) -> IntArray:
    """Rounded differences of the running sum: sums over neighbouring cells are off by less than 1."""
    sums = np.cumsum(table.reshape(-1))
    sums *= total / sums[-1] if sums[-1] > 0 else 0.0
    sums[-1] = total
    return np.diff(np.floor(sums + 0.5), prepend=0.0).astype(np.int64).reshape(table.shape)


def _improve(cells: IntArray, table: FloatArray) -> None:
    """Move single people along one axis while that brings margins nearer to those of the table.

    A cell stays one of the whole numbers next to its fraction, or gets nearer to it. In a sweep each line along the
    axis offers its best move; of these the best ones are made, as many as lower the sum of squared distances together.
    """
    k = table.ndim
    low, high = np.floor(table), np.ceil(table)
    inner = [axes for axes in subsets(tuple(range(k))) if 0 < len(axes) < k]
    off = {axes: margin(cells - table, k, axes) for axes in inner}
    idle = 0
    for sweep in range(SWEEPS * k):
        axis = sweep % k
        moved = [axes for axes in inner if axis in axes]
        slope = np.broadcast_to(broadcast_sum({axes: off[axes] for axes in moved}, k), table.shape)
        idle = 0 if _sweep(cells, slope, off, moved, axis, low, high) else idle + 1
        if idle == k:
            return


def _sweep(
    cells: IntArray,
    slope: FloatArray,
    off: dict[Axes, FloatArray],
    moved: Sequence[Axes],
    axis: int,
    low: FloatArray,
    high: FloatArray,
) -> bool:
    """Make the best moves along an axis; whether there are any that help.

    A move from a cell to another one changes the sum of squares by twice their slopes' difference, plus twice the
    number of margins that tell them apart.
    """
    k = cells.ndim
    giver = np.where(cells > low, slope, -np.inf).argmax(axis=axis, keepdims=True)
    taker = np.where(cells < high, slope, np.inf).argmin(axis=axis, keepdims=True)
    gain = np.take_along_axis(np.where(cells > low, slope, -np.inf), giver, axis)
    gain = (gain - np.take_along_axis(np.where(cells < high, slope, np.inf), taker, axis)).reshape(-1) - len(moved)
    number = int((gain > 0).sum())
    best = np.argsort(-gain, kind="stable")[:number]
    while number:
        chosen = np.zeros(gain.shape, dtype=np.int64)
        chosen[best[:number]] = 1
        change = np.zeros_like(cells)
        lines = chosen.reshape(giver.shape)
        np.put_along_axis(change, giver, -lines, axis)
        np.put_along_axis(change, taker, lines, axis)
        changes = {axes: margin(change, k, axes) for axes in moved}
        if sum(float(((2 * off[axes] + shift) * shift).sum()) for axes, shift in changes.items()) < 0:
            cells += change
            for axes, shift in changes.items():
                off[axes] += shift
            return True
        number //= PARTS
    return False


def _settle(cells: IntArray, table: FloatArray, axis: int, wanted: IntArray) -> None:
    """Move people along an axis, no matter how far cells get from the table, until its margin is as wanted."""
    lines, exact = (np.moveaxis(numbers, axis, 0).reshape(len(wanted), -1) for numbers in (cells, table))
    surplus = lines.sum(axis=1) - wanted
    for giver in np.flatnonzero(surplus > 0):
        for taker in np.flatnonzero(surplus < 0):
            while surplus[giver] > 0 > surplus[taker]:
                most = min(int(surplus[giver]), -int(surplus[taker]))
                above = (lines[giver] - exact[giver]) - (lines[taker] - exact[taker])
                above[lines[giver] == 0] = -np.inf
                best = np.argsort(-above, kind="stable")[:most]
                best = best[lines[giver][best] > 0]
                people = np.minimum(lines[giver][best], max(most // len(best), 1))
                lines[giver][best] -= people
                lines[taker][best] += people
                surplus[giver] -= people.sum()
                surplus[taker] += people.sum()
    cells[...] = np.moveaxis(lines.reshape(np.moveaxis(cells, axis, 0).shape), 0, axis)
