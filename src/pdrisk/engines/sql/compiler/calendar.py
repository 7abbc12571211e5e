"""Parts and beginnings of times in SQL: in whole numbers, and by the engine's calendar, which no time can leave.

Times are whole numbers of microseconds or the like since 1970, within the years 1 to 9999; see `Value`.
"""

from __future__ import annotations

from typing import Final

from pdrisk._model.rowwise.families import UNITS
from pdrisk.engines.sql.compiler.values import BIGINT, Value
from pdrisk.engines.sql.dialects.dialect import Dialect

OF_DAYS: Final = {
    "year": (1, 9999), "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "dayofyear": (1, 366),
}  # fmt: skip
OF_CLOCK: Final = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
ABOVE: Final = {"hour": "day", "minute": "hour", "second": "minute"}
PARTS: Final = {**OF_DAYS, **OF_CLOCK}
CLOCK: Final = {
    "day": UNITS["D"], "hour": 3600 * UNITS["s"], "minute": 60 * UNITS["s"], "second": UNITS["s"],
    "microsecond": UNITS["us"],
}  # fmt: skip
BEGINNINGS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MONDAY: Final = 3  # days from a Monday to 1970-01-01


def part_of(dialect: Dialect, unit: str, time: Value) -> Value:
    """Part of a time, as EXTRACT has it: one of `PARTS`, a whole number. A week is that of ISO 8601."""
    if dialect.own:
        return Value(f"CAST({dialect.part_of_day(unit, dialect.own.time(time))} AS BIGINT)", span=PARTS[unit])
    if unit in OF_DAYS:
        sql = dialect.part_of_day(unit, dialect.day(days_since(dialect, time)))
        return Value(f"CAST({sql} AS BIGINT)", span=OF_DAYS[unit])
    within = _above(dialect, time.sql, CLOCK[ABOVE[unit]] // time.unit)
    return Value(_quotient(dialect, within, CLOCK[unit] // time.unit), span=OF_CLOCK[unit])


def beginning_of(dialect: Dialect, unit: str, time: Value) -> Value:
    """The time at which the year, month, ... of a time begins, as DATE_TRUNC has it: one of `BEGINNINGS`."""
    if dialect.own:
        return Value(dialect.own.beginning_of(unit, time), time.family, (-BIGINT - 1, BIGINT), time.unit)
    if unit in CLOCK:
        step = max(CLOCK[unit] // time.unit, 1)
        sql = dialect.bound(time.sql, lambda ticks: dialect.infix(ticks, "-", _above(dialect, ticks, step)))
    else:
        days = days_since(dialect, time)
        if unit == "week":
            days = dialect.infix(days, "-", _above(dialect, dialect.infix(days, "+", dialect.whole(MONDAY)), 7))
        else:
            days = dialect.days_since(dialect.first_day(unit, dialect.day(days)))
        sql = dialect.infix(days, "*", dialect.whole(UNITS["D"] // time.unit))
    return Value(sql, time.family, (-BIGINT - 1, BIGINT), time.unit)


def days_since(dialect: Dialect, time: Value) -> str:
    """Whole days since 1970."""
    if dialect.own:
        return dialect.days_since(f"CAST({dialect.own.time(time)} AS DATE)")
    per_day = UNITS["D"] // time.unit

    def of(ticks: str) -> str:
        return _quotient(dialect, dialect.infix(ticks, "-", _above(dialect, ticks, per_day)), per_day)

    return dialect.bound(time.sql, of)


def _above(dialect: Dialect, value: str, step: int) -> str:
    """How much a whole number is above the multiple of a step below it."""
    by = dialect.whole(step)
    return dialect.remainder(dialect.infix(dialect.remainder(value, by), "+", by), by)


def _quotient(dialect: Dialect, value: str, step: int) -> str:
    return f"CAST({dialect.quotient(value, dialect.whole(step))} AS BIGINT)"
