"""Non-negative tables nearest to estimates whose cells may be below 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from pdrisk._core.margins.components import Axes, broadcast_sum, components, means, of_means, product, subsets
from pdrisk._core.summary import FloatArray, IntArray

MOST_STEPS: Final = 130
CLOSE: Final = 0.01  # people in a cell, as a root mean square
APART: Final = 0.1  # of tables that do not get closer: there is none


def on_simplex(values: FloatArray, total: float) -> FloatArray:
    """Nearest non-negative numbers that add up to a total (Held, Wolfe & Crowder 1974).

    ``values``: shape (..., n). Each row by itself; one with NaN becomes NaN.
    ``total``: at least 0.
    """
    falling = np.sort(values, axis=-1)[..., ::-1]
    surplus = (np.cumsum(falling, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    last = (falling >= surplus).sum(axis=-1, keepdims=True) - 1
    return np.maximum(values - np.take_along_axis(surplus, last, axis=-1), 0.0)


def rounded_sum(values: FloatArray, total: int) -> IntArray:
    """Whole numbers next to non-negative ones that add up to a total, by largest remainders."""
    whole = np.floor(values)
    most = np.argsort(whole - values, kind="stable")
    missing = total - int(whole.sum())
    whole[most[:missing] if missing >= 0 else most[missing:]] += 1.0 if missing > 0 else -1.0
    return whole.astype(np.int64)


def nearest_tables(
    sizes: tuple[int, ...], estimated: Mapping[Axes, FloatArray], variances: Mapping[Axes, float]
) -> tuple[FloatArray, list[IntArray]]:
    """A non-negative table near the estimates, and whole one-way margins, which it has but for its rounding.

    The total is rounded first; then each one-way margin is the nearest on the simplex of the total, rounded; then
    every table over two axes, three and so on is the nearest non-negative one that keeps the smaller ones. Cells below
    0 would otherwise be moved one by one, and their sums, which are known far better, with them.

    ``estimated, variances``: components and their variances, of `MeasuredMargins`.
    Returns: one for each axis, all with the same sum.
    """
    k = len(sizes)
    total = max(int(np.rint(estimated[()]).item()), 0)
    kept: dict[Axes, FloatArray] = {(): np.full((1,) * k, float(total))}
    one_way = []
    for axis in range(k):
        values = (total / sizes[axis] + estimated[(axis,)]).reshape(-1)
        one_way.append(rounded_sum(on_simplex(values, total), total))
        shape = tuple(-1 if other_axis == axis else 1 for other_axis in range(k))
        kept[(axis,)] = one_way[-1].astype(np.float64).reshape(shape) - total / sizes[axis]
    table: FloatArray = one_way[0].astype(np.float64) if k == 1 else kept[()]
    for axes in subsets(tuple(range(k)))[k + 1 :]:
        table = _nearest(sizes, axes, kept | {axes: estimated[axes]}, variances)
        kept[axes] = components(table, k, axes)[axes]
    return table.reshape(sizes), one_way


def _nearest(
    sizes: tuple[int, ...], axes: Axes, wanted: Mapping[Axes, FloatArray], variances: Mapping[Axes, float]
) -> FloatArray:
    """The nearest non-negative table over some axes with all smaller components wanted; else only near to the largest.

    There need not be one with all: margins over two axes of a table with three can contradict each other.
    """
    parts = subsets(axes)
    for largest in range(len(axes) - 1, 0, -1):
        fixed = [part for part in parts[:-1] if len(part) <= largest]
        table, distance = _split(sizes, axes, wanted, variances, fixed)
        if distance < APART:
            break
    return table


def _split(
    sizes: tuple[int, ...],
    axes: Axes,
    wanted: Mapping[Axes, FloatArray],
    variances: Mapping[Axes, float],
    fixed: Collection[Axes],
) -> tuple[FloatArray, float]:
    """The nearest table by alternating directions (Boyd et al. 2011), and how far it is from the fixed components.

    A component of the table has variance ``V_A / n_{B-A}**2`` and stands in ``n_{B-A}`` cells for each of its own: its
    squared distance, over all cells, weighs ``n_{B-A} / V_A``.
    """
    k = len(sizes)
    times = {part: product(sizes, (axis for axis in axes if axis not in part)) for part in subsets(axes)}
    pull = 1 / variances[axes]
    weights = {part: 0.0 if part in fixed else pull / (times[part] / variances[part] + pull) for part in times}
    goal = {part: wanted[part] / number for part, number in times.items()}
    aim = broadcast_sum({part: numbers * (1 - weights[part]) for part, numbers in goal.items()}, k)
    shares = of_means(weights)
    table = np.maximum(broadcast_sum(goal, k), 0.0)
    push = np.zeros_like(table)
    for _ in range(MOST_STEPS):
        left = means(table - push, k, axes)
        near = aim + broadcast_sum({part: mean * shares[part] for part, mean in left.items()}, k)
        before, table = table, np.maximum(near + push, 0.0)
        push += near - table
        distance = _root_mean_square(near - table)
        if distance < CLOSE and _root_mean_square(before - table) < CLOSE:
            break
    return table, distance


def _root_mean_square(numbers: FloatArray) -> float:
    return float(np.sqrt(np.mean(numbers**2)))
