"""Bins of dates: periods of the calendar within bounds, or edges that are listed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import pandas as pd

from pdrisk._core.days import moment
from pdrisk._core.foreign import shown
from pdrisk._core.universe import Days
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_BINS: Final = 500
STEPS: Final = {
    "day": pd.DateOffset(days=1), "week": pd.DateOffset(weeks=1), "month": pd.DateOffset(months=1),
    "quarter": pd.DateOffset(months=3), "year": pd.DateOffset(years=1),
}  # fmt: skip
#: What pandas calls periods and their beginnings and ends.
ALIASES: Final = {
    **dict.fromkeys(("D", "d"), "day"), "W": "week", **dict.fromkeys(("M", "MS", "ME"), "month"),
    **dict.fromkeys(("Q", "QS", "QE"), "quarter"), **dict.fromkeys(("Y", "YS", "YE"), "year"),
}  # fmt: skip
FORM: Final = (
    'bins of dates are "day", "week", "month", "quarter" or "year" with bounds=("2024-01-01", "2024-12-31"), or a list '
    'of edges, as in bins=["2024-01-01", "2024-07-01", "2025-01-01"]'
)


class DateBins(NamedTuple):
    """Edges of bins, and whether what is beyond them counts in the first and the last bin."""

    edges: tuple[pd.Timestamp, ...]
    clamps: bool


def dates_in_bins(bins: object, span: Days | None, *, given: bool) -> DateBins:
    """Bins of dates as a caller gives them.

    ``span``: bounds of the dates.
    ``given``: whether the call has them; else they are declared.
    """
    if isinstance(bins, str):
        name = ALIASES.get(bins, bins)
        if name not in STEPS:
            raise ParameterError(f"{FORM}, not {shown(bins)}.{did_you_mean(bins, STEPS)}")
        if span is None:
            raise ParameterError(f'bins="{name}" divides the bounds, which are missing: pass bounds=(first, last).')
        first, last = (pd.Timestamp(moment(days, times=True)) for days in (span.lo, span.hi))
        return DateBins(_periods(name, first, last), clamps=True)
    edges = _edges(bins)
    if given:
        raise ParameterError("edges say the range themselves: leave bounds out, or pass bins='month'.")
    return DateBins(edges, clamps=False)


def _periods(name: str, first: pd.Timestamp, last: pd.Timestamp) -> tuple[pd.Timestamp, ...]:
    """The beginnings of the periods that hold the bounds, and the end of the last one."""
    start = first.normalize()
    if name == "week":
        start -= pd.Timedelta(days=start.weekday())
    elif name != "day":
        month = {"month": start.month, "quarter": (start.month - 1) // 3 * 3 + 1, "year": 1}[name]
        start = start.replace(month=month, day=1)
    edges = [start]
    while edges[-1] <= last and len(edges) <= MOST_BINS + 1:
        edges.append(edges[-1] + STEPS[name])
    if len(edges) > MOST_BINS + 1:
        raise ParameterError(f"bounds hold more than {MOST_BINS} of such bins: take longer ones, or narrower bounds.")
    return tuple(edges)


def _edges(listed: object) -> tuple[pd.Timestamp, ...]:
    """Dates or times that rise."""
    if isinstance(listed, bytes | dict | set | frozenset) or not isinstance(listed, Iterable):
        raise ColumnTypeError(f"{FORM}.")
    edges = [_time(edge) for edge in islice(listed, MOST_BINS + 2)]
    if not 2 <= len(edges) <= MOST_BINS + 1:
        raise ParameterError(f"bins must list 2 to {MOST_BINS + 1} edges.")
    if not all(one < other for one, other in pairwise(edges)):
        raise ParameterError("the dates in bins= must rise.")
    return tuple(edges)


def _time(value: Any) -> pd.Timestamp:
    time: pd.Timestamp | None = None
    if isinstance(value, str | dt.date) or type(value).__name__ == "datetime64":
        with suppress(ValueError, OverflowError, TypeError):
            time = pd.Timestamp(value).as_unit("us")
    if time is None or pd.isna(time) or time.tzinfo is not None:
        raise ParameterError(
            "bins= of dates takes dates without a time zone, as text like '2024-12-31' or as pd.Timestamp, not "
            f"{shown(value)}."
        )
    return time
