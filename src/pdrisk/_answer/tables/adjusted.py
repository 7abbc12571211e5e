"""Tables that least squares adjusted to each other after they were published, and how far they contradict them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._core.margins.components import Axes, subsets
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.laws.ratio_ends import upper_end
from pdrisk._mechanisms.margin_estimates import EstimateNoise
from pdrisk._model.margins import Grid


@dataclass(frozen=True)
class PublishedTable:
    """Cells of a published answer that are a table: all of them, or those of one margin."""

    grid: Grid
    keys: tuple[tuple[Hashable, ...], ...]  # of its rows
    rows: IntArray  # where its rows stand in the answer
    measured: Measurements | None  # what was drawn of it, in its order; None where it follows from others alone

    @property
    def by(self) -> str:
        """Its columns as text."""
        return ", ".join(map(str, self.grid.columns))


@dataclass(frozen=True)
class AdjustedTables:
    """Least squares over all tables."""

    grid: Grid
    law: Law  # how the answer follows from the numbers
    design: MeasuredMargins
    components: dict[Axes, FloatArray]  # shape (k, ...)
    # what was measured; the weighted mean of tables by the same columns; shape (k, ...)
    measured: dict[Axes, FloatArray]
    scales: dict[Axes, list[float]]  # of the parts of the noise of each such number
    excess: float  # weighted squares of the differences of tables by the same columns
    doubles: int  # how many numbers these are

    @classmethod
    def of(cls, given: Sequence[PublishedTable], grid: Grid) -> AdjustedTables:
        """The least squares over tables, which are about the same people; ``grid`` has all their columns."""
        draws: dict[Axes, list[tuple[FloatArray, float, float]]] = {}
        seen = set()
        for table in given:
            measured = table.measured
            if measured is None or (name := (measured.draw, np.sort(measured.cells).tobytes())) in seen:
                continue  # the same numbers once more, in whatever order, tell nothing new
            seen.add(name)
            measurement = _in_grid(table, measured.numbers, grid), measured.variance, float(measured.law.scale)
            draws.setdefault(axes_of(table, grid), []).append(measurement)
        means, variances, scales, excess, doubles = {}, {}, {}, 0.0, 0
        for axes, listed in draws.items():
            variances[axes] = 1 / math.fsum(1 / variance for _, variance, _ in listed)
            shares = [variances[axes] / variance for _, variance, _ in listed]
            means[axes] = np.sum(
                [share * numbers for share, (numbers, _, _) in zip(shares, listed, strict=True)], axis=0
            )
            scales[axes] = [share * scale for share, (_, _, scale) in zip(shares, listed, strict=True)]
            excess += math.fsum(
                float(((numbers - means[axes]) ** 2).sum()) / variance for numbers, variance, _ in listed
            )
            doubles += (len(listed) - 1) * means[axes].size
        design = MeasuredMargins(grid.sizes, variances)
        law = next(table.measured.law for table in given if table.measured is not None)
        return cls(grid, law, design, design.estimated_components(means), means, scales, excess, doubles)

    @property
    def surprise(self) -> float:
        """How many standard deviations the tables differ more than their noise explains."""
        squares, free = self.excess, float(self.doubles)
        for axes, numbers in self.measured.items():
            off = numbers - self.design.estimate(self.components, axes)
            squares += float((off**2).sum()) / self.design.variances[axes]
            free += numbers.size
        k = self.law.numbers
        parts = {part for axes in self.measured for part in subsets(axes)}
        free -= k * sum(math.prod(self.grid.sizes[axis] - 1 for axis in part) for part in parts)
        return (squares - free) / math.sqrt(5 * free) if free > 0 else 0.0

    def of_first(self) -> dict[Axes, FloatArray]:
        """Components of the counts."""
        return {axes: np.tensordot(np.array(self.law.top), component, 1) for axes, component in self.components.items()}

    def answers(self, axes: Axes) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values and 95 % intervals of a table, row by row of the grid."""
        numbers = self.design.estimate(self.components, axes).reshape(self.law.numbers, -1)
        noise, law = EstimateNoise.of(self.design.weights(axes), self.scales), self.law
        top = np.array(law.top)
        records = np.maximum(numbers.sum(axis=0), 1.0) if law.numbers > 1 else 1.0
        above, slack = top @ numbers + law.constant, law.rounding * np.broadcast_to(records, numbers.shape[1:])
        if not law.bottom:
            reach = noise.bound(top[:, np.newaxis], 0.95) + slack
            least = law.constant if law.least >= 0 and (top >= 0).all() else -math.inf
            most = law.constant if law.least >= 0 and (top <= 0).all() else math.inf
            return above, np.clip(above - reach, least, most), np.clip(above + reach, least, most)
        bottom = np.array(law.bottom)
        below = bottom @ numbers
        ends = top / bottom
        least, most = float(ends.min()), float(ends.max())
        known = below > noise.bound(bottom[:, np.newaxis], 0.95)
        value = np.clip(np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0), least, most)
        return value, *_ratio_ends(noise, top, bottom, np.where(known, value, np.nan), below, slack, (least, most))


def _ratio_ends(
    noise: EstimateNoise,
    top: FloatArray,
    bottom: FloatArray,
    value: FloatArray,
    below: FloatArray,
    slack: FloatArray,
    limits: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Fieller's intervals of ratios; the limits where the value is NaN, as the lower sum may be 0."""
    low, high = (np.full(value.shape, end) for end in limits)
    at = np.flatnonzero(~np.isnan(value))
    if not len(at):
        return low, high
    for side, ends in ((-1.0, low), (1.0, high)):

        def bound(r: FloatArray, side: float = side) -> FloatArray:
            weights = side * top[:, np.newaxis] - r * bottom[:, np.newaxis]
            return noise.bound(weights, 0.95) + slack[at]

        ratios = side * upper_end(side * value[at], below[at], bound)
        ends[at] = np.clip(ratios, *limits)
    return low, high


def axes_of(given: PublishedTable, grid: Grid) -> Axes:
    """The axes of a table in a grid with more columns."""
    return tuple(sorted(grid.columns.index(column) for column in given.grid.columns))


def places_of(given: PublishedTable, grid: Grid) -> IntArray:
    """Where the rows of a table stand in the margin of its columns, row by row."""
    axes = axes_of(given, grid)
    order = [given.grid.columns.index(grid.columns[axis]) for axis in axes]
    margin = Grid(tuple(grid.columns[axis] for axis in axes), tuple(grid.levels[axis] for axis in axes))
    return margin.places([tuple(key[at] for at in order) for key in given.keys])


def _in_grid(given: PublishedTable, numbers: FloatArray, grid: Grid) -> FloatArray:
    """The measured numbers of a table in the shape of its margin."""
    ordered, axes = np.empty_like(numbers), axes_of(given, grid)
    ordered[:, places_of(given, grid)] = numbers
    shape = (size if axis in axes else 1 for axis, size in enumerate(grid.sizes))
    return ordered.reshape(len(numbers), *shape)
