"""Weights of surveys: what is refused about them, for pandas users and in SQL alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from pdrisk._core.order import Max, Min
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Distinct, Statistic
from pdrisk._core.surveys.weighted import SumOfWeights, Weighted
from pdrisk._core.universe import Universe
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._model.query import Line


def interval_of_weights(name: Hashable, declared: Universe) -> Universe:
    """What weights lie between: from 0, whatever the least declared one is, to the largest."""
    if declared.lo < 0:
        raise ParameterError(
            f"weights cannot be negative, and the bounds of {name!r} begin at {declared.lo:.12g}: declare (0, W), with "
            "W the largest weight."
        )
    return declared if declared.lo == 0 else Universe(0.0, declared.hi)


def is_unchanged_by_weights(statistic: Statistic) -> bool:
    """Whether a statistic is the same whatever the weights."""
    return isinstance(statistic, Min | Max | Distinct)


def no_weighted(statistic: Statistic) -> ParameterError:
    """The error for a statistic that takes no weights."""
    if isinstance(statistic, Var):
        return ParameterError(
            f"a weighted {statistic.name} divides by the sum of the weights: ask for {statistic.name!r} with ddof=0, "
            f'as in "{statistic.name}(ddof=0)".'
        )
    if is_unchanged_by_weights(statistic):
        return ParameterError(f"weights do not change {statistic.label}: leave weights= out.")
    return takes_no_weights(statistic)


def check_weighing(lines: Sequence[Line], way: str | None, *, quotients: bool) -> None:
    """Refuse weighted statistics where several rows of a person become a number that is no weight.

    With ``quotients``, which were written as such, any number that they become.
    """
    if way is None or (way == "mean" and not quotients):
        return
    if any(isinstance(line.statistic, Weighted | SumOfWeights) for line in lines):
        raise no_weights_of_people(way)


def no_weights_of_people(way: str) -> ParameterError:
    """The error for people whose rows become a number by which nobody weighs."""
    return ParameterError(
        f'per_person="{way}" makes another number of the weights of a person, too: pass per_person="mean", or rows=, '
        "or weigh a table with one row for each person."
    )


def no_option(name: str) -> ParameterError:
    """The error for an option that means nothing for weighted answers."""
    return ParameterError(f"{name}= is not for weighted answers: leave it out.")


def takes_no_weights(statistic: Statistic) -> ParameterError:
    """The error for a statistic that nobody weighs here."""
    return ParameterError(f"{statistic.label} takes no weights: leave weights= out, or pass weights=False.")
