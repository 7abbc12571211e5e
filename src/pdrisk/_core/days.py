"""Dates and times as numbers of days since 1970-01-01, in which their bounds, noise and answers are computed."""

from __future__ import annotations

import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

EPOCH: Final = datetime.date(1970, 1, 1)
DAY: Final = datetime.timedelta(days=1)
SECONDS: Final = 86_400  # of a day: times are shown to the second
START: Final = datetime.datetime.combine(EPOCH, datetime.time())
FIRST, LAST = ((day - EPOCH).days for day in (datetime.date.min, datetime.date.max))


def day_number(value: datetime.date) -> float:
    """Days from 1970-01-01 to a date, or to a time without a zone."""
    is_time = isinstance(value, datetime.datetime)
    return (value - START) / DAY if is_time else float((value - EPOCH).days)


def moment(days: float, *, times: bool) -> datetime.date:
    """The date of a number of days, or the time, rounded to a microsecond."""
    start = START if times else EPOCH
    return start + datetime.timedelta(days=days)


def as_dates(values: NDArray[Any], *, times: bool, side: str = "nearest") -> NDArray[np.datetime64]:
    """Numbers of days as dates, or as times to the second; those beyond the calendar are its ends, NaN is NaT.

    ``side``: {"nearest", "before", "after"}; how they are rounded.
    """
    per_day = SECONDS if times else 1
    rounded: FloatArray = {"nearest": np.rint, "before": np.floor, "after": np.ceil}[side](
        np.clip(np.asarray(values, dtype=np.float64), FIRST, LAST) * per_day
    )
    known = ~np.isnan(rounded)
    dates = np.full(rounded.shape, np.datetime64("NaT", "us"))
    dates[known] = rounded[known].astype(np.int64).astype(f"datetime64[{'s' if times else 'D'}]")
    return dates


def written_day(days: float, *, times: bool, side: str = "nearest") -> str:
    """A number of days as the text of its date, or of its time to the second; "nan" of NaN."""
    date = as_dates(np.array([days]), times=times, side=side)[0]
    unit = "datetime64[s]" if times else "datetime64[D]"
    return "nan" if np.isnat(date) else str(date.astype(unit)).replace("T", " ")
