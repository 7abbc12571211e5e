"""Kinds of values: their names in errors, and what to do with a column that holds no numbers.

pandas and SQL use the same names. Each front end finds the kind of its own columns: ``column_kind`` by dtype,
``kind_of_type`` by SQL type.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from numbers import Real

from pdrisk._core.universe import Days, Universe

NUMBER, TRUTH, TEXT, NOTHING = "numbers", "truth values", "text", "nothing"
DATE, TIME, ZONED = "dates", "timestamps", "timestamps with a time zone"
COUNTED = (NUMBER, TRUTH, NOTHING)  # what statistics take
#: Numbers that a person's rows can become, of dates too, but that are no dates.
NO_DATE = frozenset({"sum", "count", "any", "all"})

# Of pandas alone; durations and periods have the names of their types.
CATEGORIES, COMPLEX, MIXED = "categories", "complex numbers", "objects of several kinds"
DURATION, PERIOD = "Timedelta", "Period"
# Of SQL alone; the last two are known of files and Arrow tables only.
INTERVAL, PERIODS_IN_SQL, UNCLEAR = "interval", "period", "values of several meanings"

_OF_ONE_VALUE = {
    NUMBER: "a number", TRUTH: "a truth value", TEXT: "text", DATE: "a date", TIME: "a timestamp",
    ZONED: "a timestamp with a time zone",
}  # fmt: skip

_IN_PANDAS = {
    CATEGORIES: 'if they are numbers, convert them with astype("float64") first',
    **dict.fromkeys((TIME, ZONED, PERIOD), "ask for a number made of them, such as .dt.year"),
    DATE: "ask for a number made of them, such as pd.to_datetime(column).dt.year",
    DURATION: "ask for a number made of them, such as .dt.total_seconds()",
    TEXT: 'convert it with pd.to_numeric first (decimal commas: read the file with decimal=","), or count it',
}
#: What SQL casts make no number of, and what to write instead.
NO_NUMBERS = {
    DATE: "ask for a number made of them, such as year(x) or the days x - DATE '2020-01-01'",
    TIME: "ask for a number made of them, such as year(x) or the seconds epoch(x)",
    ZONED: "write TRY_CAST(x AS TIMESTAMP) first, and ask for a number made of it",
    INTERVAL: "ask for a number made of them, such as epoch(x), the seconds",
    PERIODS_IN_SQL: "count them, or make a column of dates or numbers",
    UNCLEAR: "the files keep different things under one name, so write them alike",
}


def number_advice(kind: str, sql: bool = False) -> str:
    """What to do with a column of a kind that is no numbers, in pandas or in SQL."""
    if sql:
        advice = NO_NUMBERS | dict.fromkeys((TEXT, TRUTH), "write TRY_CAST(x AS DOUBLE), or count them")
        return advice.get(kind, "count them, or make a column of numbers")
    return _IN_PANDAS.get(kind, "convert it with pd.to_numeric first, or count it")


def kind_of_value(value: object) -> str:
    """The kind of a key, missing code or constant in plain form; its type's name if it has no other kind."""
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, Real | Decimal):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    if isinstance(value, datetime.datetime):
        return TIME if value.tzinfo is None else ZONED
    return DATE if isinstance(value, datetime.date) else type(value).__name__


def kind_phrase(value: object) -> str:
    """The kind of a single value in the words of an error: ``a number``, ``of type bytes``."""
    kind = kind_of_value(value)
    return _OF_ONE_VALUE.get(kind, f"of type {kind}")


def kind_within(universe: Universe | None) -> str:
    """Kind of the values between bounds: dates, timestamps or numbers."""
    return NUMBER if not isinstance(universe, Days) else TIME if universe.times else DATE
