"""Weights of a plan: the largest one and the sum of all, which are public, and the lines of weighted questions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import Count, Statistic
from pdrisk._core.surveys.weighted import SumOfWeights, WeightedChange, weighted
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.arguments import universe
from pdrisk._model.plain import float_of
from pdrisk._model.query import UNIT, Line, written
from pdrisk._model.weights import (
    interval_of_weights,
    is_unchanged_by_weights,
    no_option,
    no_weighted,
)
from pdrisk.errors import ColumnTypeError, ParameterError

SLACK = 1 + 2.0**-40  # of rounding, in sums of weights


@dataclass(frozen=True, slots=True)
class PlannedWeights:
    """Weights of the records of a plan.

    Attributes
    ----------
    column : hashable
    universe : Universe
        From 0 to the largest weight.
    mean : float
        The weight of each record, if all have the same.
    """

    column: Hashable
    universe: Universe
    mean: float

    def line(self, column: Hashable | None, asked: Statistic, bounds: object) -> Line | None:
        """The weighted question about a column with these bounds; None for one that weights do not change.

        Raises
        ------
        ParameterError
            If a statistic takes no weights, or has no bounds.
        """
        if is_unchanged_by_weights(asked):
            return None
        if column is None and type(asked) is Count:
            return Line(self.column, SumOfWeights(), self.universe, "given")
        statistic = weighted(asked)
        if statistic is None or isinstance(statistic, WeightedChange):
            raise no_weighted(asked)
        if column is None:
            raise ParameterError(f"{asked.label} needs a column.")
        if bounds is None and asked.name not in ("count", "proportion"):
            raise ParameterError(
                f"{written(statistic.label, column, self.column)} needs bounds, the range its values can have: pass "
                f"bounds={{{shown(column)}: (lo, hi), {shown(self.column)}: (0, W)}}."
            )
        within = UNIT if bounds is None else universe(bounds)
        return Line(column, statistic, Rectangle(within.lo, within.hi, self.universe), "given", other=self.column)

    @staticmethod
    def check(step: object, clip: object) -> None:
        """Refuse options that mean nothing for a weighted question."""
        for name, given in (("step", step), ("clip", clip)):
            if given is not None:
                raise no_option(name)


def planned_weights(weights: object, total: object, bounds: object, n: int) -> PlannedWeights | None:
    """The weights of so many records; None where none are named."""
    if weights is None or weights is False:
        if total is not None:
            raise ParameterError("total_weight= is the sum of the weights: name their column with weights=.")
        return None
    if not isinstance(weights, Hashable):
        raise ColumnTypeError(f"weights is the name of a column, not of type {type(weights).__name__}.")
    given = bounds.get(weights) if isinstance(bounds, Mapping) else None
    if given is None:
        raise ParameterError(
            f"weights={shown(weights)} needs the largest weight W, by which noise is scaled: pass "
            f"bounds={{{shown(weights)}: (0, W), ...}} with the bounds of the columns."
        )
    within = interval_of_weights(weights, universe(given))
    if total is None:
        raise ParameterError(
            "weights= needs total_weight=, the public sum of the weights of all n records, such as the size of the "
            "population: the noise of a mean falls with it."
        )
    number = float_of("total_weight", total)
    if not 0 < number < math.inf:
        raise ParameterError(f"total_weight must be finite and above 0, but is {number:g}.")
    if number > n * within.hi * SLACK:
        raise ParameterError(
            f"total_weight={number:g} is more than {n:,} weights of at most {within.hi:g} can be, {n * within.hi:g}: "
            "declare a larger W, or more records."
        )
    return PlannedWeights(weights, within, min(number / n, within.hi))
