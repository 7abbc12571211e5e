"""Components of a table with k axes: what each set of axes adds to the means over fewer of them.

A table, or one of its margins, is an array whose last k axes are those of the table; an axis that a margin sums over
has length 1. Further axes before them hold several tables. A set of axes is a tuple of their numbers, rising.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from pdrisk._core.summary import FloatArray, IntArray

Axes = tuple[int, ...]
Numbers = TypeVar("Numbers", FloatArray, IntArray)


def subsets(axes: Axes) -> list[Axes]:
    """All sets of some of these axes, the smaller ones first; themselves last."""
    return [part for size in range(len(axes) + 1) for part in itertools.combinations(axes, size)]


def product(sizes: tuple[int, ...], axes: Iterable[int]) -> int:
    """Number of cells of a margin."""
    return math.prod(sizes[axis] for axis in axes)


def margin(table: Numbers, k: int, axes: Axes) -> Numbers:
    """Margin of a table with k axes: its sums over all axes but these."""
    gone = tuple(axis - k for axis in range(k) if axis not in axes)
    total: Any = table.sum(axis=gone, keepdims=True) if gone else table
    return total


def components(table: FloatArray, k: int, axes: Axes) -> dict[Axes, FloatArray]:
    """All components of a margin over these axes: centred along the axes of each, and means over the others.

    They are orthogonal, and add up to the margin.
    """
    parts: dict[Axes, FloatArray] = {(): table}
    for axis in axes:
        flat: dict[Axes, FloatArray] = {
            part: component.mean(axis=axis - k, keepdims=True) for part, component in parts.items()
        }
        parts = flat | {(*part, axis): component - flat[part] for part, component in parts.items()}
    return parts


def means(table: FloatArray, k: int, axes: Axes) -> dict[Axes, FloatArray]:
    """Means of a margin over these axes, for each set of axes that is left; each is made of one with an axis more."""
    averages = {axes: table}
    for part in reversed(subsets(axes)[:-1]):
        axis = next(axis for axis in axes if axis not in part)
        averages[part] = averages[tuple(sorted((*part, axis)))].mean(axis=axis - k, keepdims=True)
    return averages


def of_means(weights: Mapping[Axes, float]) -> dict[Axes, float]:
    """Weights of `means` in a sum of components that have these weights.

    The component of A is the sum of ``(-1)**|A - D|`` times the means that leave the axes D, for all D within A.
    """
    return {
        part: math.fsum((-1) ** (len(axes) - len(part)) * w for axes, w in weights.items() if set(part) <= set(axes))
        for part in weights
    }


def broadcast_sum(parts: Mapping[Axes, FloatArray], k: int) -> FloatArray:
    """Sum of arrays over different sets of axes; small ones are added to each other first."""
    sums = dict(parts)
    for axis in range(k):
        without = {part: array for part, array in sums.items() if axis not in part}
        sums = {part: array for part, array in sums.items() if axis in part}
        for part, addend in without.items():
            more = tuple(sorted((*part, axis)))
            sums[more] = addend + sums[more] if more in sums else addend
    (total,) = sums.values() if sums else (np.zeros(()),)
    return total
