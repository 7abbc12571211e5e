"""From what a pandas user writes to a judged `Query`: only names, dtypes and declarations are looked at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import Count, Statistic
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.laplace import check_scale
from pdrisk._model.columns import check_column, column_kind
from pdrisk._model.keys import check_keys_are_no_codes, checked_keys
from pdrisk._model.query import (
    MECHANISM,
    Groups,
    Line,
    Origin,
    Query,
    Source,
    data_dependent,
    epsilon,
    statistics,
    universe,
    written,
)
from pdrisk._model.rowwise import Filter, caller_names, judged
from pdrisk._pandas.declared import codes_of, declared
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = [
    "check_numeric",
    "eps_values",
    "judged_lines",
    "judged_query",
    "judged_selection",
    "lines_of_columns",
    "lines_of_request",
    "listed_columns",
    "number_advice",
]

MOST_EPS = 10_000  # of one assessment
MOST_COLUMNS = 1000  # named beyond those there are: the error names them


def judged_query(
    frame: pd.DataFrame,
    lines: tuple[Line, ...],
    *,
    eps: object,
    risk: object,
    prior: object,
    metric: object,
    where: object,
    by: object,
    keys: object,
    mechanism: object,
) -> Query:
    """A request for noisy answers, or the error that says what is wrong with it."""
    if not isinstance(mechanism, str) or mechanism != MECHANISM:
        raise ParameterError(f"unknown mechanism {shown(mechanism)}; the one there is, is {MECHANISM!r}.")
    if not isinstance(metric, str) or metric != "worst_case":
        raise data_dependent(metric)
    share = epsilon(eps, risk, prior) / len(lines)
    for line in lines:
        # The ratio of grid and sensitivity hardly depends on the universe, so one from the data can wait.
        check_scale(share, line.statistic.lattice(line.universe or Universe(0.0, 1.0)))
    rows, groups, missing = judged_selection(frame, lines, where, by, keys)
    said = "" if rows is None else rows.canonical
    reads = tuple(_read(frame, lines, rows, groups))
    return Query(lines, (share,) * len(lines), rows, groups, missing, reads, origin=Origin(said, frame))


def judged_selection(
    frame: pd.DataFrame, lines: tuple[Line, ...], where: object, by: object, keys: object
) -> tuple[Filter | None, Groups | None, dict[Hashable, tuple[Hashable, ...]]]:
    """The judged filter (None for all rows), groups (None for one answer), and the missing codes of what they read."""
    groups = _groups(frame, by, keys)
    rows = None if where is None else judged(where, frame, caller_names, lambda column: declared(frame, column).keys)
    missing = codes_of(frame, _read(frame, lines, rows, groups))
    if rows is not None:
        rows.check_codes(missing)
    return rows, groups, missing


def _read(
    frame: pd.DataFrame, lines: tuple[Line, ...], rows: Filter | None, groups: Groups | None
) -> Iterator[Hashable]:
    """The columns that are looked at; a callable may look at any."""
    yield from (line.column for line in lines if line.column is not None)
    yield from () if groups is None else groups.columns
    if rows is not None:
        yield from frame.columns if rows.asks_a_function else rows.columns


def lines_of_request(frame: pd.DataFrame, request: object, bounds: object) -> tuple[Line, ...]:
    """The lines of ``agg``: a dict from column to one or several statistics."""
    if not isinstance(request, Mapping) or not request:
        raise ColumnTypeError('agg takes a dict from column to statistics, as in {"distance": ["mean", "median"]}.')
    return tuple(
        line for column, specs in request.items() for line in judged_lines(frame, column, statistics(specs), bounds)
    )


def lines_of_columns(frame: pd.DataFrame, columns: object, specs: object, bounds: object) -> tuple[Line, ...]:
    """The lines of ``assess``: every statistic of every column."""
    wanted = statistics(specs)
    listed = listed_columns(frame, columns)
    return tuple(line for column in listed for line in judged_lines(frame, column, wanted, bounds))


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
    frame: pd.DataFrame, column: Hashable | None, wanted: Iterable[Statistic], bounds: object
) -> tuple[Line, ...]:
    """One line for each statistic of one column; ``bounds`` may be a dict from column to bounds."""
    if column is not None:
        check_column(frame, column)
    own = bounds
    if isinstance(bounds, Mapping):
        for named in bounds:
            check_column(frame, named)
        own = bounds.get(column)
    return tuple(_line(frame, column, statistic, own) for statistic in wanted)


def _line(frame: pd.DataFrame, column: Hashable | None, statistic: Statistic, bounds: object) -> Line:
    if isinstance(statistic, Count):
        return Line(column, statistic, Universe(0.0, 1.0), None)  # whatever the records are, each counts 1
    if column is None:
        raise ParameterError(f"{statistic.label} needs a column.")
    check_numeric(frame[column], statistic)
    source: Source = "given"
    if isinstance(bounds, str):
        if bounds != "column":
            raise ParameterError(f'bounds must be (lo, hi) or the word "column", but are {shown(bounds)}.')
        return Line(column, statistic, None, "data")
    known = declared(frame, column)
    interval = known.narrowed(known.universe if bounds is None else universe(bounds))
    if bounds is None:
        source = "declared"
    if interval is None:
        truth = " Truth values are 0 and 1: pass bounds=(0, 1)." * (column_kind(frame[column]) == "truth values")
        raise ParameterError(
            f"{written(statistic.label, column)} needs bounds, the range its values can have: pass bounds=(lo, hi), or "
            f"declare them once with df.dprisk.declare(bounds={{{column!r}: (lo, hi)}}) or a pandera schema. "
            f"df.dprisk.suggest_bounds({column!r}, eps=...) finds some privately. "
            f'bounds="column" takes the data\'s own range, which is not differential privacy.{truth}'
        )
    return Line(column, statistic, interval, source)


_ADVICE = {
    "categories": 'if they are numbers, convert them with astype("float64") first',
    "dates": "ask for a number made of them, such as .dt.year",
    "dates with a time zone": "ask for a number made of them, such as .dt.year",
    "date": "ask for a number made of them, such as pd.to_datetime(column).dt.year",
    "Period": "ask for a number made of them, such as .dt.year",
    "Timedelta": "ask for a number made of them, such as .dt.total_seconds()",
    "text": 'convert it with pd.to_numeric first (decimal commas: read the file with decimal=","), or count it',
}


def number_advice(kind: str) -> str:
    """What to do with a column of a kind that is no numbers."""
    return _ADVICE.get(kind, "convert it with pd.to_numeric first, or count it")


def check_numeric(series: pd.Series, statistic: Statistic) -> None:
    """Refuse a column that holds no numbers, by its dtype."""
    kind = column_kind(series)
    if kind in ("numbers", "truth values", "nothing"):
        return
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
    if isinstance(keys, str):
        if keys != "observed":
            raise ParameterError(f'keys must be a list or the word "observed", but are {shown(keys)}.')
        return Groups(columns, None, "data")
    if keys is not None:
        listed = checked_keys(frame, columns, keys)
        check_keys_are_no_codes(frame, columns, listed, codes_of(frame, columns))
        return Groups(columns, listed, "given")
    known = {column: declared(frame, column).keys for column in columns}
    if missing := [column for column, values in known.items() if values is None]:
        names = ", ".join(map(str, missing))
        raise ParameterError(
            f"by={names} needs the public list of its groups, since which groups occur tells who is in the data: pass "
            f"keys=[...], or declare them once with df.dprisk.declare(keys={{{missing[0]!r}: [...]}}) or a pandera "
            "schema (isin, or categories written there), or pass "
            'keys="observed" to say that the keys themselves are public.'
        )
    return Groups(columns, checked_keys(frame, columns, known), "declared")
