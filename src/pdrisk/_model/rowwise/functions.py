"""Functions of a column behind ``.str`` and ``.dt``: whether a text holds another one, and parts of a time.

Their nodes are the calls that SQL has for them, so that databases need nothing of their own.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.kinds import DATE
from pdrisk._model.expressions.nodes import Call, Column, Constant
from pdrisk._model.rowwise.exact import Numbers, arithmetic, constant
from pdrisk._model.rowwise.families import (
    UNITS,
    Bools,
    categories_of,
    has_categories,
    holds_objects,
    missing_of,
    numbers_of,
    texts_of,
)

OF_TEXT: Final = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with"}  # in pandas, in SQL
OF_TIME: Final = {
    **{unit: unit for unit in ("year", "quarter", "month", "day", "dayofyear", "hour", "minute", "second")},
    "day_of_year": "dayofyear",  # as pandas 3.1 has it
}
PATTERN: Final = frozenset(r".^$*+?{}[]\|()")  # of which pandas makes a regular expression
IN_PANDAS: Final = {name: in_pandas for in_pandas, name in (*OF_TEXT.items(), *OF_TIME.items())}
CLOCK: Final = {
    "hour": (UNITS["D"], 3600 * UNITS["s"]), "minute": (3600 * UNITS["s"], 60 * UNITS["s"]),
    "second": (60 * UNITS["s"], UNITS["s"]),
}  # fmt: skip
CALENDAR: Final = (-719_162, 2_932_896)  # the first and last day of the years 1 to 9999, in days since 1970


def call_of_text(name: str, column: Column, part: Constant) -> Call:
    """Whether a column of texts holds, begins or ends with a text: ``name`` is a key of `OF_TEXT`."""
    return Call(OF_TEXT[name], (column, part))


def call_of_time(name: str, column: Column) -> Call:
    """Part of a column of times: ``name`` is a key of `OF_TIME`."""
    return Call("date_part", (Constant(OF_TIME[name]), column))


def spelled(call: Call, text_of: Any) -> str:
    """Text of such a call, as pandas has it."""
    if call.name == "date_part":
        unit, column = call.arguments
        assert isinstance(unit, Constant)
        return f"{text_of(column)}.dt.{IN_PANDAS[unit.value]}"
    column, part = call.arguments
    assert isinstance(part, Constant)
    # Of what is not shown, nothing is told by the spelling either.
    is_plain = call.name != "contains" or (part.given is None and not PATTERN & set(part.value))
    return f"{text_of(column)}.str.{IN_PANDAS[call.name]}({text_of(part)}{'' if is_plain else ', regex=False'})"


def value_of(call: Call, column: pd.Series) -> pd.Series | Numbers:
    """What such a call gives for each record of its column: truth values, or numbers."""
    if call.name == "date_part":
        unit = call.arguments[0]
        assert isinstance(unit, Constant)
        return _part(unit.value, numbers_of(column, DATE))
    part = call.arguments[1]
    assert isinstance(part, Constant)
    yes, missing = _with_text(IN_PANDAS[call.name], column, part.value)
    return pd.Series(pd.arrays.BooleanArray(yes, missing), index=column.index)


def column_of(call: Call) -> Column:
    """The column that such a call asks."""
    column = call.arguments[1 if call.name == "date_part" else 0]
    assert isinstance(column, Column)
    return column


def _with_text(name: str, column: pd.Series, part: str) -> tuple[Bools, Bools]:
    """Which texts hold the other one, and where there is no text."""
    if has_categories(column):
        yes, missing = _with_text(name, categories_of(column), part)
        codes = column.cat.codes.to_numpy()
        return np.append(yes, False)[codes], np.append(missing, True)[codes]
    if holds_objects(column):
        texts = texts_of(column)
        missing = np.array([text is None for text in texts], dtype=bool)
        asked = {"contains": str.__contains__, "startswith": str.startswith, "endswith": str.endswith}[name]
        return np.array([text is not None and asked(text, part) for text in texts], dtype=bool), missing
    options = {"regex": False} if name == "contains" else {}
    matches = getattr(column.str, name)(part, **options)
    missing = missing_of(column)
    return matches.to_numpy(dtype=bool, na_value=False) & ~missing, missing


def _part(unit: str, times: Numbers) -> Numbers:
    """Part of times in nanoseconds since 1970; none outside of the years 1 to 9999."""
    whole = arithmetic("//", times, constant(UNITS["D"])).high
    known = (whole >= CALENDAR[0]) & (whole <= CALENDAR[1])
    if unit in CLOCK:
        above, length = CLOCK[unit]
        parts = arithmetic("//", arithmetic("%", times, constant(above)), constant(length)).high
    else:
        days = np.where(known, whole, 0).astype(np.int64).astype("datetime64[D]")
        parts = _of_calendar(unit, days).astype(np.float64)
    return Numbers(np.where(known, parts, np.nan))


def _of_calendar(unit: str, days: Any) -> Any:
    if unit == "year":
        return days.astype("datetime64[Y]").astype(np.int64) + 1970
    months = days.astype("datetime64[M]")
    month = months.astype(np.int64) % 12
    if unit == "month":
        return month + 1
    if unit == "quarter":
        return month // 3 + 1
    first = days.astype("datetime64[Y]") if unit == "dayofyear" else months
    return (days - first.astype("datetime64[D]")).astype(np.int64) + 1
