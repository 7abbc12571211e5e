"""Intervals of columns, given or declared, with the kinds of columns that have any; and conditions, which have none."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import pandas as pd

from pdrisk._core.days import day_number
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.statistics import Mean, Proportion, Statistic
from pdrisk._core.universe import Days, Universe
from pdrisk._model.arguments import universe
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.columns import KINDS, column_kind
from pdrisk._model.expressions.kinds import COUNTED, DATE, NOTHING, NUMBER, TIME, TRUTH, kind_of_value, number_advice
from pdrisk._model.query import UNIT
from pdrisk._model.rowwise import RowwiseFilter, caller_names, judged
from pdrisk._model.where_bounds import comparisons_of, narrowed
from pdrisk._pandas.requests.declared import days, declared
from pdrisk.errors import ColumnTypeError, ParameterError

#: Statistics that lie in the range of the values, and are dates where these are.
OF_DATES = (Mean, Median, Quantile, Min, Max)


def judged_condition(frame: pd.DataFrame, condition: str, bounds: object) -> RowwiseFilter | None:
    """The condition of a proportion, which has no bounds."""
    if bounds is not None:
        raise ParameterError("a condition is true or false, and needs no bounds: leave them out.")
    return judged(condition, frame, caller_names, lambda column: declared(frame, column).keys)


def interval_of(
    frame: pd.DataFrame, column: Hashable, statistic: Statistic | str, bounds: object, *, dates: bool = False
) -> tuple[Universe | None, Source]:
    """The bounds of a column, given or declared; None without any. With ``dates`` it may be one of dates or times."""
    if dates and (kind := column_kind(frame[column])) in (DATE, TIME) and type(statistic) in OF_DATES:
        return interval_of_dates(frame, column, kind, bounds)
    kind = check_numeric(frame[column], statistic)
    known = declared(frame, column)
    interval = known.narrowed(known.universe_for(kind) if bounds is None else universe(bounds))
    if interval is None and kind == TRUTH:
        interval = known.narrowed(UNIT)
    if kind == TRUTH and KINDS in frame.attrs and interval is not None and not 0 <= interval.lo < interval.hi <= 1:
        raise ParameterError(
            f"column {column!r} counts as truth values, which are 0 or 1, and has bounds ({interval.lo:.12g}, "
            f"{interval.hi:.12g}): leave them out, or convert the column."
        )
    return interval, "declared" if bounds is None else "given"


def interval_by_where(
    frame: pd.DataFrame, column: Hashable, statistic: Statistic, where: object, *, dates: bool = False
) -> tuple[Universe | None, Source]:
    """The declared bounds of a column, narrowed to those of a filter's comparisons with constants of its text."""
    interval, source = interval_of(frame, column, statistic, None, dates=dates)
    kind = column_kind(frame[column])
    if where is None or kind not in (NUMBER, DATE, TIME):
        return interval, source
    kept = judged(where, frame, caller_names, lambda name: declared(frame, name).keys)
    compared = [] if kept is None else list(comparisons_of(kept.rule, column))
    if kind != NUMBER:
        compared = [(symbol, day_number(value)) for symbol, value in compared if kind_of_value(value) in (DATE, TIME)]
    lo, hi = (-math.inf, math.inf) if interval is None else (interval.lo, interval.hi)
    dtype = frame[column].dtype
    ends = narrowed(
        lo,
        hi,
        compared,
        whole=kind == DATE or pd.api.types.is_integer_dtype(dtype) or declared(frame, column).whole,
        single=str(dtype).lower().startswith(("float32", "float[")),
    )
    if ends == (lo, hi) or not ends[0] < ends[1] or not np.isfinite(ends).all():
        return interval, source
    return Universe(*ends) if kind == NUMBER else Days(*ends, kind == TIME), "where"


def interval_of_dates(frame: pd.DataFrame, column: Hashable, kind: str, bounds: object) -> tuple[Days | None, Source]:
    """The bounds of a column of dates or times."""
    known = declared(frame, column)
    interval = known.narrowed(known.universe_for(kind) if bounds is None else days(column, kind, bounds))
    source: Source = "declared" if bounds is None else "given"
    return None if interval is None else Days(interval.lo, interval.hi, kind == TIME), source


def check_numeric(series: pd.Series, statistic: Statistic | str) -> str:
    """The kind of a column; refuses one without numbers by its dtype, and a proportion of numbers."""
    kind = column_kind(series)
    if isinstance(statistic, Proportion) and kind not in (TRUTH, NOTHING):
        raise ColumnTypeError(
            f"proportion needs truth values, but column {series.name!r} holds {kind}: write a condition, as in "
            'proportion("age > 40").'
        )
    if kind in COUNTED:
        return kind
    label = statistic if isinstance(statistic, str) else statistic.label
    raise ColumnTypeError(f"{label} needs numbers, but column {series.name!r} holds {kind}: {number_advice(kind)}.")
