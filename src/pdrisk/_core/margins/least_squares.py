"""Least squares over noisy margins of a table: estimates of all margins that add up, with their variances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pdrisk._core.margins.components import Axes, broadcast_sum, components, product, subsets
from pdrisk._core.once import once
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Weight:
    """Weight in an estimate that some measured cells have, all the same."""

    axes: Axes  # those of the measured margin
    weight: float
    cells: int  # how many cells have it
    within: float = 0.0  # their weight in the cell of a smaller margin that the cell belongs to


@dataclass(frozen=True)
class MeasuredMargins:
    """Margins of a table that were measured, each with independent noise of one variance in all of its cells.

    Notes
    -----
    The component A of the table of sums over the axes outside A, ``theta_A``, is measured by every margin C that has
    the axes of A: its component A, times ``n_{C-A}`` (the number of cells of C for one of A), has noise of variance
    ``v_C n_{C-A}`` in every direction. Components are orthogonal, so generalised least squares weights each apart by
    the inverse variances: ``V_A = 1 / sum_C 1 / (v_C n_{C-A})``. A margin B is the sum of ``theta_A / n_{B-A}`` over
    all A within B (Gauss-Markov; tests compare with dense least squares).
    """

    sizes: tuple[int, ...]  # of the axes of the table
    # of the noise of each measured margin, above 0; the cells of the table are that of all axes
    variances: Mapping[Axes, float]

    @once
    def component_variances(self) -> dict[Axes, float]:
        """``V_A`` for each component that a margin measured, smaller ones first."""
        known = sorted({part for axes in self.variances for part in subsets(axes)}, key=lambda part: (len(part), part))
        return {part: 1 / math.fsum(1 / (v * self._times(c, part)) for c, v in self._with(part)) for part in known}

    def estimated_components(self, measured: Mapping[Axes, FloatArray]) -> dict[Axes, FloatArray]:
        """Estimates of ``theta_A`` for each component that a margin measured.

        ``measured``: the numbers of each measured margin; see `components` for their shapes.
        """
        estimates: dict[Axes, FloatArray] = {}
        for axes, numbers in measured.items():
            for part, component in components(numbers, len(self.sizes), axes).items():
                weighted = component * (self.component_variances[part] / self.variances[axes])
                estimates[part] = weighted if part not in estimates else estimates[part] + weighted
        return estimates

    def estimate(self, estimated: Mapping[Axes, FloatArray], axes: Axes) -> FloatArray:
        """Estimate of a margin, of the estimated components."""
        self.check_measured(axes)
        parts = {part: estimated[part] / self._times(axes, part) for part in subsets(axes)}
        return broadcast_sum(parts, len(self.sizes))

    def variance(self, axes: Axes) -> float:
        """Variance of every cell of the estimate of a margin."""
        self.check_measured(axes)
        return math.fsum(
            self.component_variances[part]
            * math.prod(1 - 1 / self.sizes[axis] for axis in part)
            / self._times(axes, part) ** 2
            for part in subsets(axes)
        )

    def weights(self, axes: Axes, within: Axes = ()) -> Iterator[Weight]:
        """Weights of all measured cells in a cell of the estimate of a margin; also in that of a smaller one around it.

        They are equal of measured cells that have the same of its labels.

        ``within``: some of these axes: those of the smaller margin.
        """
        self.check_measured(axes)
        for measured in self.variances:
            common = tuple(axis for axis in measured if axis in axes)
            weights = self._weights(measured, axes, common)
            inner = self._weights(measured, within, tuple(axis for axis in common if axis in within))
            times = self._times(measured, common)
            for shared in subsets(common):
                others = math.prod(self.sizes[axis] - 1 for axis in common if axis not in shared)
                if others:
                    part = tuple(axis for axis in shared if axis in within)
                    yield Weight(measured, weights[shared], times * others, inner[part])

    def _weights(self, measured: Axes, axes: Axes, common: Axes) -> dict[Axes, float]:
        """Weights of a measured cell in a cell of an estimate, by the axes of whose labels they share all.

        ``sum_A V_A / (v_C n_{C-A} n_{B-A}) prod_{a in A} ([a shared] - 1 / n_a)`` over all A within the common axes: a
        product over axes, summed one axis after the other.
        """
        weights = {
            part: self.component_variances[part] / (self._times(measured, part) * self._times(axes, part))
            for part in subsets(common)
        }
        for axis in common:
            without = {part: weight for part, weight in weights.items() if axis not in part}
            for part, term in without.items():
                more = tuple(sorted((*part, axis)))
                weights[part] = term - weights[more] / self.sizes[axis]
                weights[more] += weights[part]
        return {part: weight / self.variances[measured] for part, weight in weights.items()}

    def check_measured(self, axes: Axes) -> None:
        """Refuse a margin that has a component which nothing measured."""
        if not any(set(axes) <= set(measured) for measured in self.variances):
            raise ParameterError("a margin was asked for that has axes which no measured table has together.")

    def _with(self, part: Axes) -> list[tuple[Axes, float]]:
        return [(axes, variance) for axes, variance in self.variances.items() if set(part) <= set(axes)]

    def _times(self, axes: Axes, part: Axes) -> int:
        """How many cells of a margin there are for one of a part of its axes."""
        return product(self.sizes, (axis for axis in axes if axis not in part))
