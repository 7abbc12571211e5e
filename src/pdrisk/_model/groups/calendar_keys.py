"""Keys of dates and timestamps: ``datetime.date``, ``pd.Timestamp`` and ISO text all name the same day."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

import pandas as pd

from pdrisk._model.expressions.kinds import DATE, TEXT, TIME, kind_of_value
from pdrisk._model.plain import ISO
from pdrisk.errors import ColumnTypeError, ParameterError

MONTH: Final = re.compile(r"\d{4}-\d\d", re.ASCII)


def calendar_key(key: Hashable, kind: str, what: str, *, months: bool = False) -> Hashable:
    """A plain key of a column of dates as a date, of timestamps as a Timestamp; other keys, and of others, as they are.

    With ``months`` a text like 2020-01 is the beginning of that month.
    """
    kind_of_key = kind_of_value(key)
    if kind not in (DATE, TIME) or kind_of_key not in (DATE, TIME, TEXT):
        return key
    if months and isinstance(key, str) and MONTH.fullmatch(key):
        key = f"{key}-01"
    if isinstance(key, str) and not ISO.fullmatch(key):
        raise ColumnTypeError(
            f"{what} is text, and no ISO date or time, but the column holds {kind}: write it as in "
            f"{'2020-01 or ' * months}2020-01-31 or 2020-01-31 12:30, or pass a datetime.date or pd.Timestamp."
        )
    try:
        stamp = pd.Timestamp(key)  # type: ignore[arg-type] # text or a date
        if kind == TIME:
            return stamp
        day = stamp.date()
    except (ValueError, NotImplementedError):  # as of the 30th of February, and of the year 20000
        raise ParameterError(f"{what} is no day of the years 1 to 9999: no record could have it.") from None
    if stamp != pd.Timestamp(day):
        raise ParameterError(f"{what} has a time of day, but the column holds dates: list the day alone.")
    return day
