"""Noisy tables that add up: draws of several margins, and the least-squares answers that they give together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._core.margins.components import Axes, margin, product
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.margins.nonnegative import on_simplex
from pdrisk._core.margins.summaries import summary_of_margin
from pdrisk._core.margins.whole import whole_table
from pdrisk._core.once import once
from pdrisk._core.risks.gaussian_dp import success_of
from pdrisk._core.risks.risk import Risk, belief
from pdrisk._core.statistics import Count, Histogram
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms import Drawn, Mechanism
from pdrisk._mechanisms.margin_estimates import (
    EstimateNoise,
    estimate,
    estimate_interval,
    estimated_shares,
    law_of,
)
from pdrisk._model.margins import Margins


def size_of(margins: Margins) -> int:
    """How many cells are drawn of all measured tables together."""
    return sum(product(margins.grid.sizes, axes) for axes, _ in margins.shares)


def drawn_margins(
    margins: Margins,
    places: IntArray,
    mechanisms: dict[Axes, Mechanism],
    summary: Summary,
    draw: Callable[[Mechanism, Summary], Drawn],
) -> Drawn:
    """The drawn numbers of all measured tables, one behind the other, each row by row.

    ``places``: shape (G,). Where the groups of the summary stand in the grid.
    ``mechanisms``: one for each measured table, with its part of eps.
    ``summary``: of the cells.
    ``draw``: what draws: `drawn_once`.
    """
    sizes = margins.grid.sizes
    parts = [draw(mechanism, summary_of_margin(summary, places, sizes, axes)) for axes, mechanism in mechanisms.items()]
    return np.concatenate(parts, axis=-1)


@dataclass(frozen=True)
class MarginEstimates:
    """Estimates of all tables of one release."""

    margins: Margins
    places: IntArray  # where the listed groups stand in the grid; shape (G,)
    mechanisms: dict[Axes, Mechanism]
    drawn: Drawn  # see `drawn_margins`; shape (N,)

    @once
    def design(self) -> MeasuredMargins:
        """What was measured, with the variance of its noise."""
        return MeasuredMargins(
            self.margins.grid.sizes, {axes: law_of(mechanism).variance for axes, mechanism in self.mechanisms.items()}
        )

    @once
    def components(self) -> dict[Axes, FloatArray]:
        """Estimated components of each drawn number, shape (k, ...)."""
        sizes, start, measured = self.margins.grid.sizes, 0, {}
        numbers = np.atleast_2d(self.drawn)
        for axes, mechanism in self.mechanisms.items():
            end = start + product(sizes, axes)
            shape = (sizes[axis] if axis in axes else 1 for axis in range(len(sizes)))
            measured[axes] = law_of(mechanism).measured(numbers[:, start:end]).reshape(len(numbers), *shape)
            start = end
        return self.design.estimated_components(measured)

    def numbers(self, axes: Axes) -> FloatArray:
        """Estimates of a table, shape (k, cells): row by row, the groups themselves as they are listed."""
        estimates = self.design.estimate(self.components, axes)
        return self._listed(estimates.reshape(len(estimates), -1), axes)

    @property
    def scales(self) -> dict[Axes, float]:
        """Scales of the noise of the measured tables."""
        return {measured: float(law_of(mechanism).scale) for measured, mechanism in self.mechanisms.items()}

    def noise(self, axes: Axes) -> EstimateNoise:
        """Noise of each number in each cell of a table."""
        return EstimateNoise.of(self.design.weights(axes), self.scales)

    def cells_within(self, axes: Axes, within: Axes) -> IntArray:
        """For each cell of a table the cell of a smaller one that it belongs to."""
        sizes = self.margins.grid.sizes
        shape = tuple(sizes[axis] if axis in axes else 1 for axis in range(len(sizes)))
        inner = tuple(size if axis in within else 1 for axis, size in enumerate(shape))
        numbers = np.broadcast_to(np.arange(product(sizes, within)).reshape(inner), shape)
        return self._listed(numbers.reshape(-1), axes)

    def whole(self, weights: FloatArray) -> list[IntArray]:
        """All published tables, in whole numbers, of the sum of the drawn numbers with these weights."""
        weighted_sums = {axes: np.tensordot(weights, component, 1) for axes, component in self.components.items()}
        cells, k = whole_table(self.design, weighted_sums), len(self.margins.grid.sizes)
        return [self._listed(margin(cells, k, axes).reshape(-1), axes) for axes in self.margins.tables]

    def _listed(self, numbers: NDArray[Any], axes: Axes) -> NDArray[Any]:
        return numbers[..., self.places] if axes == self.margins.grid.axes else numbers


@dataclass(frozen=True)
class MarginAnswers(NoisyAnswers):
    """Answers of one line for all published tables, one behind the other.

    ``value`` holds whole numbers where they are wanted; intervals, which are of the least-squares estimates, are
    widened to them. The mechanism is calibrated to the whole share of eps.
    """

    estimates: MarginEstimates = field(kw_only=True)

    @once
    def risk(self) -> Risk:
        """The publishable risks of all tables together: several draws, so what one draw allows says nothing."""
        assert self.mu2 is not None
        worst = float(belief(self.eps, 0.5))
        return Risk(worst, min(worst, success_of(self.mu2)), float(self.mu2) ** 0.5)

    @once
    def withheld(self) -> NDArray[np.bool_]:
        """None: under rules that withhold answers there are no margins."""
        return np.zeros(len(self.values), dtype=np.bool_)

    @property
    def is_whole(self) -> bool:
        """Whether all answers are whole numbers."""
        return self.values.dtype.kind == "i"

    @property
    def measurements(self) -> None:
        """None: an estimate is a sum over all cells that were drawn, and none of these numbers alone."""
        return

    @property
    def measured_tables(self) -> dict[Axes, Measurements]:
        """What was drawn of each measured table, uncut, row by row."""
        sizes, start, tables = self.estimates.margins.grid.sizes, 0, {}
        for axes, mechanism in self.estimates.mechanisms.items():
            cells = np.arange(start, start + product(sizes, axes))
            law = law_of(mechanism)
            tables[axes] = Measurements(law, np.atleast_2d(self.drawn)[: law.numbers, cells], self.draw, cells)
            start += len(cells)
        return tables

    @once
    def values(self) -> NDArray[Any]:
        """The answers of all tables, shape (G,)."""
        if self.estimates.margins.whole and type(self.mechanism.statistic) in (Count, Histogram):
            return np.concatenate(self.estimates.whole(np.ones(len(np.atleast_2d(self.drawn)))))
        return self.estimated

    @once
    def estimated(self) -> FloatArray:
        """The least-squares estimates of all tables, uncut, shape (G,)."""
        tables = self.estimates.margins.tables
        return np.concatenate([estimate(self.mechanism, self.estimates.numbers(axes)) for axes in tables])

    def _interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        intervals = [
            estimate_interval(self.mechanism, self.estimates.numbers(axes), self.estimates.noise(axes), level)
            for axes in self.estimates.margins.tables
        ]
        low, high = (np.concatenate(ends) for ends in zip(*intervals, strict=True))
        return np.minimum(low, self.values), np.maximum(high, self.values)


@dataclass(frozen=True)
class ShareAnswers(MarginAnswers):
    """Shares of counts or sums: each cell's of that cell of a margin which it belongs to."""

    divisor: Axes = field(kw_only=True)  # of the margin; of a table that lacks some of them, the margin over the others

    @once
    def withheld(self) -> NDArray[np.bool_]:
        """Which shares say nothing, as nobody seems to be there."""
        return np.isnan(self.values)

    @property
    def estimated(self) -> None:  # type: ignore[override]
        """None: a share is no sum of what was drawn."""
        return

    @once
    def values(self) -> FloatArray:
        """The shares: the nearest ones of at least 0 that add up to 1; NaN where the margin is not above 0."""
        shares = []
        for axes in self.estimates.margins.tables:
            parts, wholes = self._parts(axes)
            share = np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)
            order = np.argsort(self.estimates.cells_within(axes, self._within(axes)), kind="stable")
            rows = product(self.estimates.margins.grid.sizes, self._within(axes))
            share[order] = on_simplex(share[order].reshape(rows, -1), 1.0).reshape(-1)
            shares.append(share)
        return np.concatenate(shares)

    def _interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        estimates, intervals = self.estimates, []
        for axes in estimates.margins.tables:
            weights = list(estimates.design.weights(axes, self._within(axes)))
            intervals.append(estimated_shares(self.mechanism, *self._parts(axes), weights, estimates.scales)(level))
        low, high = (np.concatenate(ends) for ends in zip(*intervals, strict=True))
        return np.fmin(low, self.values), np.fmax(high, self.values)

    def _within(self, axes: Axes) -> Axes:
        return tuple(axis for axis in axes if axis in self.divisor)

    def _parts(self, axes: Axes) -> tuple[FloatArray, FloatArray]:
        """Cells of a table, and for each the cell of the margin."""
        within = self._within(axes)
        parts = estimate(self.mechanism, self.estimates.numbers(axes))
        wholes = estimate(self.mechanism, self.estimates.numbers(within))
        return parts, wholes[self.estimates.cells_within(axes, within)]
