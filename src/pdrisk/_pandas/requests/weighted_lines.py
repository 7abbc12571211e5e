"""Weighted lines of requests: statistics in which each record counts with its weight, judged by names and dtypes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from pdrisk._core.statistics import Count, Proportion, Statistic
from pdrisk._core.surveys.weighted import SumOfWeights, Weighted, WeightedChange, weighted
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.answering import answered_by
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.missing_arguments import all_given, missing_argument
from pdrisk._model.query import UNIT, Line, written
from pdrisk._model.weights import (
    interval_of_weights,
    no_option,
    no_weighted,
    no_weights_of_people,
)
from pdrisk._pandas.requests.intervals import interval_of, judged_condition
from pdrisk._pandas.requests.options import REPLACE, Request
from pdrisk._pandas.requests.wave_options import line_of_change
from pdrisk.errors import ColumnTypeError, ParameterError

OF_PEOPLE = (None, "one", "mean")  # ways in which the rows of a person become one that leave a weight what it is


def weighted_lines(
    frame: pd.DataFrame, column: Hashable | None, wanted: tuple[Statistic, ...], request: Request, *, joint: bool
) -> tuple[Line, ...]:
    """One line for each statistic of a column, weighted with the column that a request names.

    Its parameters are those of `judged_lines`.
    """
    name = request.weighing
    if not isinstance(name, Hashable):
        raise ColumnTypeError(f"weights is the name of a column, not of type {type(name).__name__}.")
    check_column(frame, name)
    _check_options(request)
    if column is None:
        weights = _weights(frame, name, request)
        lines = [_of_rows(statistic, name, weights) for statistic in wanted]
    else:
        statistics = [_of_column(statistic) for statistic in wanted]
        bounds, by_column = _given(frame, column, statistics, request), _is_by_column(request)
        weights, lines = all_given(
            partial(_weights, frame, name, request),
            partial(_of_values, frame, column, name, statistics, bounds, by_column=by_column),
        )
        lines = [_between(line, weights) for line in lines]
    return tuple(answered_by(line, request.mechanism, joint=joint, interval=request.interval) for line in lines)


def _check_options(request: Request) -> None:
    """Refuse options that mean nothing for weighted answers."""
    if request.step is not None or request.clip is not None:
        raise no_option("step" if request.clip is None else "clip")
    if request.neighbours == REPLACE:
        raise ParameterError(
            'neighbours="replace-one" takes the number of rows as public, which weights are not: leave it out.'
        )
    if request.way not in OF_PEOPLE:
        raise no_weights_of_people(str(request.way))


def _is_by_column(request: Request) -> bool:
    """Whether bounds are those of columns; one pair can only be that of a difference."""
    return request.bounds is None or isinstance(request.bounds, Mapping)


def _given(frame: pd.DataFrame, column: Hashable, statistics: Sequence[Weighted], request: Request) -> object:
    """The bounds that a request gives of a column, or of its changes; None without any."""
    bounds = request.bounds
    if not _is_by_column(request):
        if all(isinstance(statistic, WeightedChange) for statistic in statistics) and not isinstance(bounds, str):
            return bounds
        raise ParameterError(
            "a weighted answer has the bounds of two columns: pass bounds={'income': (lo, hi), 'w': (0, largest)}, or "
            "declare them."
        )
    for label in bounds or ():
        check_column(frame, label)
    return None if bounds is None else bounds.get(column)


def _weights(frame: pd.DataFrame, name: Hashable, request: Request) -> tuple[Universe, Source]:
    """What weights lie between, from 0 to the largest."""
    given = request.bounds.get(name) if isinstance(request.bounds, Mapping) else None
    form = f"bounds={{{name!r}: (0, W)}}"
    if isinstance(given, str):
        raise ParameterError(f"the largest weight cannot come from the data: pass {form}, or declare it.")
    interval, source = interval_of(frame, name, "weights", given)
    if interval is None:
        how = f"declare it once with df.dprisk.declare({form})"
        how = f"pass {form}, or {how}" if _is_by_column(request) else f"{how}, beside bounds=(lo, hi) of the difference"
        raise missing_argument(
            f"weights={name!r} needs the largest weight W, at which larger ones are trimmed and by which noise is "
            f"scaled: {how}.",
            form,
        )
    return interval_of_weights(name, interval), source


def _of_rows(statistic: Statistic, name: Hashable, weights: tuple[Universe, Source]) -> Line:
    """The line of a weighted number of rows."""
    if type(statistic) is not Count:
        raise ParameterError(f"{statistic.label} needs a column.")
    return Line(name, SumOfWeights(), *weights)


def _of_column(statistic: Statistic) -> Weighted:
    with_weights = weighted(statistic)
    if with_weights is None:
        raise no_weighted(statistic)
    return with_weights


def _of_values(
    frame: pd.DataFrame,
    column: Hashable,
    name: Hashable,
    statistics: Sequence[Weighted],
    bounds: object,
    *,
    by_column: bool,
) -> list[Line]:
    """The lines before the bounds of the weights are known."""
    if (
        isinstance(column, str)
        and column not in frame.columns
        and all(_is_share(statistic) for statistic in statistics)
    ):
        condition = judged_condition(frame, column, bounds)
        return [Line(column, statistic, UNIT, "declared", indicator=condition, other=name) for statistic in statistics]
    check_column(frame, column)
    if isinstance(bounds, str):
        raise ParameterError('weighted answers take no bounds="column": declare bounds=(lo, hi).')
    lines = []
    for statistic in statistics:
        if isinstance(statistic, WeightedChange):
            line = line_of_change(frame, column, statistic.change, bounds, by_column=by_column)
            lines.append(replace(line, statistic=statistic, other=name))
            continue
        plain = Proportion() if _is_share(statistic) else statistic.label
        interval, source = interval_of(frame, column, plain, bounds)
        if interval is None:
            form = f"bounds={{{column!r}: (lo, hi)}}"
            raise missing_argument(
                f"{written(statistic.label, column, name)} needs bounds of column {column!r}, the range its values can "
                f"have: pass {form}, or declare them once with df.dprisk.declare({form}) or a pandera schema.",
                form,
            )
        lines.append(Line(column, statistic, interval, source, other=name))
    return lines


def _is_share(statistic: Weighted) -> bool:
    return statistic.name == "weighted proportion"


def _between(line: Line, weights: tuple[Universe, Source]) -> Line:
    """The line with the bounds of both columns."""
    interval, (universe, source) = line.universe, weights
    assert interval is not None
    both: Source = "given" if "given" in (source, line.bounds_from) else "declared"
    return replace(line, universe=Rectangle(interval.lo, interval.hi, universe), bounds_from=both)
