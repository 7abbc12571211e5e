"""Requests of pandas users, judged into a `Query`: only names, dtypes and declarations are looked at."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import PairStatistic
from pdrisk._core.replaced import of_size
from pdrisk._core.statistics import Count, Distinct, Mean, Proportion, Statistic, Sum
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.columns import check_column, column_kind
from pdrisk._model.joint import joined
from pdrisk._model.keys import are_observed, checked_keys, undeclared_keys
from pdrisk._model.kinds import COUNTED, NOTHING, TRUTH, number_advice
from pdrisk._model.missing_codes import check_keys_are_no_codes
from pdrisk._model.query import (
    LARGEST_WHOLE,
    UNIT,
    Groups,
    Line,
    Query,
    Source,
    answered_by,
    data_dependent,
    epsilon,
    statistics,
    universe,
    written,
)
from pdrisk._model.rowwise import Derived, RowwiseFilter, Within, caller_names, given_of, judged
from pdrisk._model.rowwise.derived import used
from pdrisk._pandas.declared import codes_of, declared
from pdrisk._pandas.options import NEIGHBOURS, REPLACE, Request
from pdrisk.engines.numpy.frame import FrameEngine
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = [
    "check_numeric",
    "eps_values",
    "judged_lines",
    "judged_pair",
    "judged_query",
    "judged_selection",
    "lines_of_columns",
    "lines_of_request",
    "listed_columns",
]

MOST_EPS = 10_000  # of one assessment
MOST_COLUMNS = 1000  # named beyond those there are: the error names them


def judged_query(frame: pd.DataFrame, asked: tuple[Line, ...], request: Request) -> tuple[Query, FrameEngine]:
    """A request for noisy answers and what reads it, or the error that says what is wrong with it."""
    if not isinstance(request.metric, str) or request.metric != "worst_case":
        raise data_dependent(request.metric)
    _check_all_rows(request)
    lines, releases = joined(asked, str(request.mechanism))
    share = epsilon(request.eps, request.risk, request.prior) / (max(releases) + 1)
    for line in lines:
        # The ratio of grid and sensitivity hardly depends on the universe, so one from the data can wait.
        line.calibrated(share).check()
        _check_noise(line, share, request.max_noise95, request.n_at_least)
    return judged_selection(frame, lines, request.where, request.by, request.keys, share, releases)


def judged_selection(
    frame: pd.DataFrame,
    lines: tuple[Line, ...],
    where: object,
    by: object = None,
    keys: object = None,
    share: Fraction | None = None,
    releases: tuple[int, ...] = (),
) -> tuple[Query, FrameEngine]:
    """The judged filter and groups of lines, and what reads them; without a share, of what is only looked at."""
    groups = _groups(frame, by, keys)
    rows = None if where is None else judged(where, frame, caller_names, lambda column: declared(frame, column).keys)
    reads: tuple[Hashable, ...] = tuple(_read(frame, lines, rows, groups))
    missing = codes_of(frame, list(reads))
    filters = [each for each in (rows, *(line.indicator for line in lines)) if each is not None]
    for each in filters:
        each.check_codes(missing)
    unknown = any(each.canonical is None for each in filters)
    said = None if unknown else "".join(str(each.canonical) for each in filters)
    stored, derived = frame, tuple[Derived, ...]()
    if isinstance(where, Within):
        derived, reads = used(where.derived, reads)
        if derived and said is not None:
            said = repr((said, [each.canonical for each in derived]))
        stored = where.stored
    shares = () if share is None else (share,) * (max(releases) + 1)
    query = Query(lines, shares, rows, groups, missing, reads, derived, said=said, releases=releases)
    return query, FrameEngine(frame, stored, given_of(where, frame))


def _read(
    frame: pd.DataFrame, lines: tuple[Line, ...], rows: RowwiseFilter | None, groups: Groups | None
) -> Iterator[Hashable]:
    """The columns that are looked at; a callable may look at any."""
    yield from (line.column for line in lines if line.column is not None and line.indicator is None)
    yield from (line.other for line in lines if line.other is not None)
    for line in lines:
        yield from () if line.indicator is None else line.indicator.columns
    yield from () if groups is None else groups.columns
    if rows is not None:
        yield from frame.columns if rows.asks_a_function else rows.columns


def lines_of_request(
    frame: pd.DataFrame,
    request: object,
    bounds: object,
    mechanism: object,
    step: object = None,
    *,
    interval: object = False,
    neighbours: object = NEIGHBOURS[0],
    n_at_least: object = None,
) -> tuple[Line, ...]:
    """The lines of ``agg``: a dict from column to one or several statistics."""
    if not isinstance(request, Mapping) or not request:
        raise ColumnTypeError('agg takes a dict from column to statistics, as in {"distance": ["mean", "median"]}.')
    return tuple(
        line
        for column, specs in request.items()
        for line in judged_lines(
            frame,
            column,
            statistics(specs),
            bounds,
            mechanism,
            step,
            joint=True,
            interval=interval,
            neighbours=neighbours,
            n_at_least=n_at_least,
        )
    )


def lines_of_columns(
    frame: pd.DataFrame, columns: object, specs: object, bounds: object, mechanism: object
) -> tuple[Line, ...]:
    """The lines of ``assess``: every statistic of every column."""
    wanted = statistics(specs)
    listed = listed_columns(frame, columns)
    return tuple(line for column in listed for line in judged_lines(frame, column, wanted, bounds, mechanism))


def listed_columns(frame: pd.DataFrame, columns: object) -> list[Any]:
    """One column, or the list of them, which is read no further than `MOST_COLUMNS` beyond the frame's width."""
    if not isinstance(columns, list | pd.Index):
        return [columns]
    most = len(frame.columns) + MOST_COLUMNS
    listed = list(islice(columns, most + 1))
    if not listed:
        raise ParameterError("columns must name at least one column.")
    if len(listed) > most:
        raise ParameterError(f"columns names more than {most:,}, and the frame has {len(frame.columns):,}: list fewer.")
    return listed


def eps_values(eps: object) -> list[Fraction]:
    """One or several privacy losses, as `epsilon` reads each."""
    several = isinstance(eps, list | tuple | pd.Series) or (isinstance(eps, np.ndarray) and eps.ndim > 0)
    listed = list(islice(eps, MOST_EPS + 1)) if several and isinstance(eps, Iterable) else [eps]
    if not listed:
        raise ParameterError("eps must be a number or a list with at least one.")
    if len(listed) > MOST_EPS:
        raise ParameterError(f"eps lists more than {MOST_EPS:,} numbers: list fewer.")
    return [epsilon(each) for each in listed]


def judged_lines(
    frame: pd.DataFrame,
    column: Hashable | None,
    wanted: Iterable[Statistic],
    bounds: object,
    mechanism: object = "auto",
    step: object = None,
    *,
    joint: bool = False,
    interval: object = False,
    neighbours: object = NEIGHBOURS[0],
    n_at_least: object = None,
) -> tuple[Line, ...]:
    """One line for each statistic of one column; ``bounds`` may be a dict from column to bounds."""
    wanted = tuple(wanted)
    if isinstance(column, str) and column not in frame.columns and all(isinstance(each, Proportion) for each in wanted):
        if bounds is not None:
            raise ParameterError("a condition is true or false, and needs no bounds: leave them out.")
        condition = judged(column, frame, caller_names, lambda name: declared(frame, name).keys)
        shares = [Line(column, each, UNIT, "declared", indicator=condition) for each in wanted]
        shares = _with_number(_with_neighbours(frame, shares, neighbours), mechanism, n_at_least)
        return tuple(answered_by(line, mechanism, interval=interval) for line in shares)
    if column is not None:
        check_column(frame, column)
    own = bounds
    if isinstance(bounds, Mapping):
        for named in bounds:
            check_column(frame, named)
        own = bounds.get(column)
    lines = [_line(frame, column, statistic, own) for statistic in wanted]
    for line in lines:
        _check_step(step, line)
    lines = _with_number(_with_neighbours(frame, lines, neighbours), mechanism, n_at_least)
    whole = step is not None or (column is not None and declared(frame, column).whole)
    return tuple(answered_by(line, mechanism, whole=whole, joint=joint, interval=interval) for line in lines)


def judged_pair(
    frame: pd.DataFrame,
    column: Hashable,
    other: Hashable,
    asked: PairStatistic,
    bounds: object,
    mechanism: object = "auto",
    step: object = None,
) -> tuple[Line, ...]:
    """The one line of a statistic of two columns; ``bounds`` is a dict from column to bounds, or declared."""
    for each in (column, other):
        if each is None:
            raise ParameterError(f"{asked.label} needs two columns.")
        check_column(frame, each)
    form = f"bounds={{{column!r}: (lo, hi), {other!r}: (lo, hi)}}"
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterError(f"{asked.label} needs the bounds of two columns: pass {form}, or declare them.")
    given: Mapping[Hashable, object] = {} if bounds is None else bounds
    for each in given:
        check_column(frame, each)
    intervals = []
    for each in (column, other):
        if isinstance(own := given.get(each), str):
            raise ParameterError(f"bounds of two columns cannot come from the data: pass {form}, or declare them.")
        interval, _ = _interval(frame, each, asked, own)
        if interval is None:
            raise ParameterError(
                f"{written(asked.label, column, other)} needs bounds of column {each!r}, the range its values can "
                f"have: pass {form}, or declare them once with df.dprisk.declare(bounds=...) or a pandera schema."
            )
        intervals.append(interval)
    first, second = intervals
    source: Source = "given" if any(given.get(each) is not None for each in (column, other)) else "declared"
    line = Line(column, asked, Rectangle(first.lo, first.hi, second), source, other=other)
    _check_step(step, line)
    return (answered_by(line, mechanism),)


def _with_neighbours(frame: pd.DataFrame, lines: list[Line], neighbours: object) -> list[Line]:
    """The lines by the neighbouring relation that is asked for: as they are, or of a public number of rows."""
    if not isinstance(neighbours, str) or neighbours not in NEIGHBOURS:
        raise ParameterError(f"neighbours is one of {', '.join(NEIGHBOURS)}, not {shown(neighbours)}.")
    return lines if neighbours != REPLACE else [_of_all_rows(frame, line) for line in lines]


def _with_number(lines: list[Line], mechanism: object, n_at_least: object) -> list[Line]:
    """The lines, of means that two stages answer with how many rows there are at the least."""
    number = _checked_number(n_at_least)
    if not isinstance(mechanism, str) or mechanism != "two_stage":
        return lines
    if number is None:
        raise ParameterError('mechanism="two_stage" needs n_at_least=, how many rows there are for sure.')
    return [
        replace(line, statistic=replace(line.statistic, n_at_least=number))
        if isinstance(line.statistic, Mean)
        else line
        for line in lines
    ]


def _checked_number(n_at_least: object) -> int | None:
    if n_at_least is None:
        return None
    if isinstance(n_at_least, bool | np.bool_) or not isinstance(n_at_least, numbers.Integral):
        raise ColumnTypeError(f"n_at_least is a whole number, not of type {type(n_at_least).__name__}.")
    if n_at_least < 1:
        raise ParameterError("n_at_least, how many rows there are at the least, must be 1 or more.")
    return int(n_at_least)


def _of_all_rows(frame: pd.DataFrame, line: Line) -> Line:
    if type(line.statistic) is Count:
        raise ParameterError(
            'neighbours="replace-one" declares that the number of rows is public: count them, without noise.'
        )
    found = of_size(line.statistic, len(frame)) if len(frame) else None
    if not len(frame):
        raise ParameterError('neighbours="replace-one" declares that the number of rows is public, and there are none.')
    if found is None:
        raise ParameterError(
            f'neighbours="replace-one" is for sum, mean and proportion: leave it out for {line.statistic.label}.'
        )
    if line.universe is None:
        raise ParameterError('neighbours="replace-one" needs declared bounds, not bounds="column".')
    if line.indicator is None and codes_of(frame, [line.column]):
        raise ParameterError(
            f"column {line.column!r} has declared missing codes, and the number of its values is not public: leave "
            'neighbours="replace-one" out.'
        )
    return replace(line, statistic=found)


def _check_all_rows(request: Request) -> None:
    """Refuse neighbours of the same size where a replaced record may be selected, or change its group."""
    if request.neighbours != REPLACE:
        return
    where = request.where
    chosen = where is not None and not (isinstance(where, Within) and where.where is None and where.kept is None)
    if chosen or request.by is not None:
        raise ParameterError(
            f'neighbours="replace-one" is about all rows: with {"where" if chosen else "by"}= a replaced record could '
            "move in or out, and the number of rows used would tell. Leave one of them out."
        )


def _check_noise(line: Line, share: Fraction, most: object, n_at_least: object) -> None:
    """Refuse noise that is wider than the caller wants, as far as public facts decide it."""
    number = _checked_number(n_at_least)
    if most is None and number is not None and line.mechanism != "two_stage":
        raise ParameterError('n_at_least= is for max_noise95=, or for mechanism="two_stage": pass one of them as well.')
    if most is None:
        return
    if isinstance(most, bool) or not isinstance(most, numbers.Real):
        raise ColumnTypeError(f"max_noise95 must be a number, not of type {type(most).__name__}.")
    limit = float(most)
    if not 0 < limit < math.inf:
        raise ParameterError(f"max_noise95 must be above 0 and finite, but is {limit:g}.")
    mechanism = line.calibrated(share)
    half = mechanism.widest_noise95(number)
    if half is None or line.universe is None:
        what, told, add = "how many records there are", "noise95", "add n_at_least=, if you know so many rows for sure"
        if mechanism.rank95 is not None:
            what, told, add = "the records around its rank", "rank95", 'ask with mechanism="laplace"'
        raise ParameterError(
            f"max_noise95= cannot judge {line.name} beforehand: its noise depends on {what}. Leave it out and look at "
            f"{told} of the answer, or {add}."
        )
    if half > limit:
        enough = f"An eps of some {float(share) * half / limit:.3g} for it would do."
        raise ParameterError(
            f"the 95 % noise of {line.name} would be ±{half:.6g}, more than max_noise95={limit:g}: nothing was asked. "
            f"{enough}"
        )


def _check_step(step: object, line: Line) -> None:
    """Refuse a step that declares nothing about whole numbers of this line."""
    if step is None:
        return
    if isinstance(step, bool) or step != 1:
        raise ParameterError("step is 1, which declares that the values are whole numbers; leave it out otherwise.")
    if not isinstance(line.statistic, Sum | Quantile | Min | Max):
        raise ParameterError(
            "step=1 declares whole numbers for sum, median, quantile, min and max; leave it out for "
            f"{line.statistic.label}."
        )
    if line.universe is None:
        raise ParameterError('step=1 needs declared bounds, not bounds="column".')
    if math.ceil(line.universe.lo) >= math.floor(line.universe.hi) or line.universe.magnitude > LARGEST_WHOLE:
        raise ParameterError("bounds of whole numbers must hold two whole numbers at least, within 2**31 of zero.")


def _line(frame: pd.DataFrame, column: Hashable | None, statistic: Statistic, bounds: object) -> Line:
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
    interval, source = _interval(frame, column, statistic, bounds)
    if interval is None:
        raise ParameterError(
            f"{written(statistic.label, column)} needs bounds, the range its values can have: pass bounds=(lo, hi), or "
            f"declare them once with df.dprisk.declare(bounds={{{column!r}: (lo, hi)}}) or a pandera schema. "
            f"df.dprisk.suggest_bounds({column!r}, eps=...) finds some privately. "
            f'bounds="column" takes the data\'s own range, which is not differential privacy.'
        )
    return Line(column, statistic, interval, source)


def _interval(
    frame: pd.DataFrame, column: Hashable, statistic: Statistic, bounds: object
) -> tuple[Universe | None, Source]:
    """The bounds of a column of numbers, given or declared; None if nobody said any."""
    kind = check_numeric(frame[column], statistic)
    known = declared(frame, column)
    if bounds is not None:
        return known.narrowed(universe(bounds)), "given"
    interval = known.narrowed(known.universe)
    return (known.narrowed(UNIT) if interval is None and kind == TRUTH else interval), "declared"


def check_numeric(series: pd.Series, statistic: Statistic) -> str:
    """The kind of a column; one that holds no numbers, by its dtype, is refused, as is a proportion of numbers."""
    kind = column_kind(series)
    if isinstance(statistic, Proportion) and kind not in (TRUTH, NOTHING):
        raise ColumnTypeError(
            f"proportion needs truth values, but column {series.name!r} holds {kind}: write a condition, as in "
            'proportion("age > 40").'
        )
    if kind in COUNTED:
        return kind
    raise ColumnTypeError(
        f"{statistic.label} needs numbers, but column {series.name!r} holds {kind}: {number_advice(kind)}."
    )


def _groups(frame: pd.DataFrame, by: object, keys: object) -> Groups | None:
    if by is None:
        if keys is not None:
            raise ParameterError("keys= lists the groups of by=, which is missing: pass by= as well.")
        return None
    columns = tuple(islice(by, len(frame.columns) + 1)) if isinstance(by, list) else (by,)
    for column in columns:
        check_column(frame, column)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("by must be a column, or a list of different columns.")
    if are_observed(keys):
        return Groups(columns, None, "data")
    if keys is not None:
        listed = checked_keys(frame, columns, keys)
        check_keys_are_no_codes(frame, columns, listed, codes_of(frame, columns))
        return Groups(columns, listed, "given")
    known = {column: declared(frame, column).keys for column in columns}
    if missing := [column for column, values in known.items() if values is None]:
        raise undeclared_keys(
            f"by={', '.join(map(str, missing))}",
            "keys=[...]",
            f"df.dprisk.declare(keys={{{missing[0]!r}: [...]}}) or a pandera schema (isin, or its categories)",
        )
    return Groups(columns, checked_keys(frame, columns, known), "declared")
