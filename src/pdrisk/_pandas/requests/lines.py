"""Lines of pandas users' requests: statistics of columns, with bounds and mechanisms, judged by names and dtypes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice
from typing import Any

import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import Corr, CorrAmong, PairStatistic
from pdrisk._core.replaced import of_size
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Distinct, Mean, Proportion, Statistic, Sum
from pdrisk._core.surveys.mean_change import MeanChange
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms.k_norm_products import KNormProducts
from pdrisk._model.answering import answered_by
from pdrisk._model.arguments import (
    check_step,
    checked_number,
    statistic,
    statistics,
    universe,
)
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.columns import ROWS, check_column, column_kind
from pdrisk._model.expressions.kinds import COUNTED, NO_DATE
from pdrisk._model.missing_arguments import all_given, missing_argument
from pdrisk._model.query import LARGEST_WHOLE, UNIT, Line, written
from pdrisk._model.weights import is_unchanged_by_weights, takes_no_weights
from pdrisk._pandas.requests.declared import codes_of, declared
from pdrisk._pandas.requests.intervals import check_numeric, interval_by_where, interval_of, judged_condition
from pdrisk._pandas.requests.options import NEIGHBOURS, REPLACE, Request
from pdrisk._pandas.requests.wave_options import line_of_change
from pdrisk._pandas.requests.weighted_lines import weighted_lines
from pdrisk.errors import ColumnTypeError, ParameterError

OTHER_NUMBERS = ("sum", "count")  # of a person: in another range than those of rows
MOST_PAIRED = 45  # columns, of which there are 990 pairs
MOST_COLUMNS = 1000  # named beyond those there are: the error names them


def lines_of_request(frame: pd.DataFrame, asked: object, request: Request) -> tuple[Line, ...]:
    """The lines of ``agg``: a dict from column to one or several statistics, or statistics of all bounded columns."""
    if isinstance(asked, str | list):
        asked = dict.fromkeys(bounded_columns(frame, request), asked)
    if not isinstance(asked, Mapping) or not asked:
        raise ColumnTypeError(
            'agg takes a dict from column to statistics, as in {"distance": ["mean", "median"]}, names, as in '
            'typical=("distance", "median"), or statistics of all columns with bounds, as in ["mean", "std"].'
        )
    most = len(frame.columns) + MOST_COLUMNS
    listed = list(islice(asked.items(), most + 1))
    if len(listed) > most:
        raise ParameterError(
            f"agg names more than {most:,} columns, and the frame has {len(frame.columns):,}: list fewer."
        )
    checks = [
        partial(lambda *of: judged_lines(frame, of[0], statistics(of[1]), request, joint=True), column, specs)
        for column, specs in listed
    ]
    return tuple(line for lines in all_given(*checks) for line in lines)


def bounded_columns(frame: pd.DataFrame, request: Request) -> list[Any]:
    """The columns whose bounds are given or declared, in the order of the frame."""
    given = request.bounds if isinstance(request.bounds, Mapping) else {}
    for column in given:
        check_column(frame, column)
    listed = [
        column
        for column in frame.columns
        if column in given or (column_kind(frame[column]) in COUNTED and declared(frame, column).universe is not None)
    ]
    if not listed:
        raise ParameterError(
            "statistics without columns are those of all columns with bounds, and none has any: pass bounds=, a dict "
            'from column to (lo, hi), or name the columns, as in agg({"distance": ["mean", "std"]}).'
        )
    return listed


def paired(frame: pd.DataFrame, columns: Sequence[Hashable], asked: PairStatistic) -> list[tuple[Any, Any]]:
    """Every two of these columns."""
    if 2 <= len(columns) <= MOST_PAIRED:
        for column in columns:
            check_column(frame, column)
        if len(set(columns)) == len(columns):
            return [*combinations(columns, 2)]
    raise ParameterError(f"{asked.label} of several columns takes 2 to {MOST_PAIRED}, each once.")


def lines_of_names(frame: pd.DataFrame, named: Mapping[str, Sequence[Any]], request: Request) -> tuple[Line, ...]:
    """The lines of ``agg`` with names: one statistic of one column each."""
    checks, seen = [], set[tuple[Hashable, Statistic]]()
    for column, spec in named.values():
        check_column(frame, column)
        wanted = statistic(spec)
        if (column, wanted) in seen:
            raise ParameterError(f"{written(wanted.label, column)} is asked for twice; ask once.")
        seen.add((column, wanted))
        checks.append(partial(judged_lines, frame, column, (wanted,), request, joint=True))
    return tuple(line for lines in all_given(*checks) for line in lines)


def lines_of_columns(frame: pd.DataFrame, columns: object, specs: object, request: Request) -> tuple[Line, ...]:
    """The lines of ``assess``: every statistic of every column."""
    wanted = statistics(specs)
    listed = listed_columns(frame, columns)
    return tuple(line for column in listed for line in judged_lines(frame, column, wanted, request))


def listed_columns(frame: pd.DataFrame, columns: object) -> list[Any]:
    """One column or a list of columns, read no further than `MOST_COLUMNS` beyond the frame's width."""
    if not isinstance(columns, list | pd.Index):
        return [columns]
    most = len(frame.columns) + MOST_COLUMNS
    listed = list(islice(columns, most + 1))
    if not listed:
        raise ParameterError("columns must name at least one column.")
    if len(listed) > most:
        raise ParameterError(f"columns names more than {most:,}, and the frame has {len(frame.columns):,}: list fewer.")
    return listed


def judged_lines(
    frame: pd.DataFrame, column: Hashable | None, wanted: Iterable[Statistic], request: Request, *, joint: bool = False
) -> tuple[Line, ...]:
    """One line for each statistic of one column, answered as a request says.

    ``request``: its ``bounds`` may be a dict from column to bounds.
    ``joint``: whether the lines may share a release with others of their column.
    """
    wanted, bounds = tuple(wanted), request.bounds
    if column is not None and not isinstance(column, str):
        check_column(frame, column)
    if request.weighing is not None:
        plain = tuple(asked for asked in wanted if is_unchanged_by_weights(asked))
        rest = tuple(asked for asked in wanted if asked not in plain)
        if not plain or (not rest and request.weights is not None):
            return weighted_lines(frame, column, wanted, request, joint=joint)
        unweighted = iter(judged_lines(frame, column, plain, replace(request, weights=False), joint=joint))
        with_weights = iter(weighted_lines(frame, column, rest, request, joint=joint) if rest else ())
        return tuple(next(unweighted if asked in plain else with_weights) for asked in wanted)
    if isinstance(bounds, Mapping):  # a declaration: not all of its columns need be asked about
        for named in bounds:
            check_column(frame, named)
        bounds = bounds.get(column)
    if (
        isinstance(column, str)
        and column not in frame.columns
        and all(isinstance(asked, Proportion) for asked in wanted)
    ):
        condition = judged_condition(frame, column, bounds)
        lines = [Line(column, asked, UNIT, "declared", indicator=condition) for asked in wanted]
        whole = joint = False
    else:
        if column is not None:
            check_column(frame, column)
        by_column = isinstance(request.bounds, Mapping)
        lines = [
            _line(frame, column, asked, bounds, request.way, request.where, by_column=by_column) for asked in wanted
        ]
        for line in lines:
            _check_step(request.step, line)
        whole = request.step is not None or (column is not None and declared(frame, column).whole)
        if request.way == "mean":
            if request.step is not None:
                raise ParameterError(
                    'step=1 declares whole numbers, which per_person="mean" does not leave: leave it out.'
                )
            whole = False
    lines = _with_number(_with_neighbours(frame, lines, request.neighbours), request)
    return tuple(
        answered_by(line, request.mechanism, whole=whole, joint=joint, interval=request.interval, clip=request.clip)
        for line in lines
    )


def judged_pairs(
    frame: pd.DataFrame, pairs: Sequence[tuple[Hashable, Hashable]], asked: PairStatistic, request: Request
) -> tuple[Line, ...]:
    """The lines of a statistic of every two of several columns; correlations of three or more share one draw.

    Where eps follows from a success they do not, unless that is asked for: the success of several draws adds up slowly.
    """
    wanted: list[PairStatistic] = [asked] * len(pairs)
    chosen = request.mechanism == KNormProducts.name or (request.mechanism == "auto" and request.success is None)
    if chosen and len(pairs) > 1 and type(asked) is Corr:
        wanted = [*CorrAmong.all_of(len({column for pair in pairs for column in pair}))]
    checks = [
        partial(judged_pair, frame, *pair, pair_statistic, request)
        for pair, pair_statistic in zip(pairs, wanted, strict=True)
    ]
    return tuple(line for lines in all_given(*checks) for line in lines)


def judged_pair(
    frame: pd.DataFrame,
    column: Hashable,
    other: Hashable,
    asked: PairStatistic,
    request: Request,
) -> tuple[Line, ...]:
    """The line of a statistic of two columns; its bounds are a dict, or declared."""
    bounds = request.bounds
    if request.weighing is not None:
        raise takes_no_weights(asked)
    for label in (column, other):
        if label is None:
            raise ParameterError(f"{asked.label} needs two columns.")
        check_column(frame, label)
    form = f"bounds={{{column!r}: (lo, hi), {other!r}: (lo, hi)}}"
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterError(f"{asked.label} needs the bounds of two columns: pass {form}, or declare them.")
    given: Mapping[Hashable, object] = {} if bounds is None else bounds
    for label in given:
        check_column(frame, label)

    def interval(name: Hashable) -> Universe:
        if isinstance(ends := given.get(name), str):
            raise ParameterError(f"bounds of two columns cannot come from the data: pass {form}, or declare them.")
        if ends is None:
            span, _ = interval_by_where(frame, name, asked, request.where)
        else:
            span, _ = interval_of(frame, name, asked, ends)
        if span is None:
            raise missing_argument(
                f"{written(asked.label, column, other)} needs bounds of column {name!r}, the range its values can "
                f"have: pass {form}, or declare them once with df.dprisk.declare(bounds=...) or a pandera schema.",
                form,
            )
        return span

    first, second = all_given(partial(interval, column), partial(interval, other))
    source: Source = "given" if any(given.get(side) is not None for side in (column, other)) else "declared"
    line = Line(column, asked, Rectangle(first.lo, first.hi, second), source, other=other)
    _check_step(request.step, line)
    (line,) = _with_neighbours(frame, [line], request.neighbours)
    return (answered_by(line, request.mechanism, clip=request.clip),)


def _with_neighbours(frame: pd.DataFrame, lines: list[Line], neighbours: object) -> list[Line]:
    """The lines under the wanted neighbouring relation: unchanged, or with a public number of rows."""
    if not isinstance(neighbours, str) or neighbours not in NEIGHBOURS:
        raise ParameterError(f"neighbours is one of {', '.join(NEIGHBOURS)}, not {shown(neighbours)}.")
    return lines if neighbours != REPLACE else [_of_all_rows(frame, line) for line in lines]


def _with_number(lines: list[Line], request: Request) -> list[Line]:
    """The lines with the least number of rows, for mechanisms of two stages."""
    number = checked_number(request.n_at_least)
    if not isinstance(request.mechanism, str) or request.mechanism != "two_stage":
        return lines
    if number is None:
        raise ParameterError('mechanism="two_stage" needs n_at_least=, how many rows there are for sure.')
    return [
        replace(line, statistic=replace(line.statistic, n_at_least=number))
        if isinstance(line.statistic, Mean | Var)
        else line
        for line in lines
    ]


def _of_all_rows(frame: pd.DataFrame, line: Line) -> Line:
    if type(line.statistic) is Count:
        raise ParameterError(
            'neighbours="replace-one" declares that the number of rows is public: count them, without noise.'
        )
    rows = frame.attrs.get(ROWS, len(frame))
    if rows is None:
        raise ParameterError(
            'neighbours="replace-one" takes the number of rows, which is not known before these data are read: leave '
            "it out, or pass a frame that is held in memory."
        )
    sized = of_size(line.statistic, rows) if rows else None
    if not rows:
        raise ParameterError('neighbours="replace-one" declares that the number of rows is public, and there are none.')
    if sized is None:
        raise ParameterError(
            f'neighbours="replace-one" is for sum, mean and proportion: leave it out for {line.statistic.label}.'
        )
    if line.universe is None:
        raise ParameterError('neighbours="replace-one" needs declared bounds, not bounds="column".')
    columns = [line.column] if line.indicator is None else line.indicator.columns
    if coded := [*codes_of(frame, columns)]:
        raise ParameterError(
            f"column {coded[0]!r} has declared missing codes, and the number of its values is not public: leave "
            'neighbours="replace-one" out.'
        )
    return replace(line, statistic=sized)


def _check_step(step: object, line: Line) -> None:
    """Refuse a step that declares nothing about whole numbers of this line."""
    check_step(step)
    if step is None:
        return
    if not isinstance(line.statistic, Sum | Quantile | Min | Max):
        raise ParameterError(
            "step=1 declares whole numbers for sum, median, quantile, min and max; leave it out for "
            f"{line.statistic.label}."
        )
    if line.universe is None:
        raise ParameterError('step=1 needs declared bounds, not bounds="column".')
    if math.ceil(line.universe.lo) >= math.floor(line.universe.hi) or line.universe.magnitude > LARGEST_WHOLE:
        raise ParameterError("bounds of whole numbers must hold two whole numbers at least, within 2**31 of zero.")


def _line(
    frame: pd.DataFrame,
    column: Hashable | None,
    statistic: Statistic,
    bounds: object,
    way: object = None,
    where: object = None,
    *,
    by_column: bool = False,
) -> Line:
    if isinstance(statistic, MeanChange) and column is not None:
        return line_of_change(frame, column, statistic, bounds, by_column=by_column)
    if isinstance(statistic, Count):
        if column is None and isinstance(statistic, Distinct):
            raise ParameterError(f"{statistic.label} needs a column.")
        return Line(column, statistic, UNIT, None)  # whatever the records are, each counts 1
    if column is None:
        raise ParameterError(f"{statistic.label} needs a column.")
    if isinstance(bounds, str):
        check_numeric(frame[column], statistic)
        if bounds != "column":
            raise ParameterError(f'bounds must be (lo, hi) or the word "column", but are {shown(bounds)}.')
        return Line(column, statistic, None, "data")
    if way in OTHER_NUMBERS and bounds is not None:
        if way != "count":
            check_numeric(frame[column], statistic)
        return Line(column, statistic, universe(bounds), "given")
    dates = way not in NO_DATE
    if bounds is None and way not in OTHER_NUMBERS:
        interval, source = interval_by_where(frame, column, statistic, where, dates=dates)
    else:
        interval, source = interval_of(frame, column, statistic, bounds, dates=dates)
    if interval is None:
        raise missing_argument(
            f"{written(statistic.label, column)} needs bounds, the range its values can have: pass bounds=(lo, hi), or "
            f"declare them once with df.dprisk.declare(bounds={{{column!r}: (lo, hi)}}) or a pandera schema. "
            f"df.dprisk.suggest_bounds({column!r}, eps=...) finds bounds with differential privacy. "
            'bounds="column" takes the data\'s own range, which is not differential privacy.',
            f"bounds=(lo, hi), the range that values of {column!r} can have",
        )
    return Line(column, statistic, interval, source)
