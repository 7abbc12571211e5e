"""Casts in SQL: NULL where a value does not fit, which no engine is left to find out by failing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT
from pdrisk._model.rowwise.families import UNITS
from pdrisk.engines.sql.compiler.comparisons import is_present
from pdrisk.engines.sql.compiler.numbers import nearest, rounded
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.times import day_of_calendar, day_start
from pdrisk.engines.sql.compiler.values import BIGINT, Value, as_double, checked, quantity
from pdrisk.engines.sql.dialects.dialect import Dialect

BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
# What texts are read as: one grammar of ours, of ASCII digits, and so short that nothing overflows.
WHOLE: Final = " *[+-]?[0-9]{1,18} *"
ROUNDED: Final = " *[+-]?[0-9]{1,15}[.][0-9]{0,99} *"
DECIMAL: Final = " *[+-]?([0-9]{1,200}[.]?[0-9]{0,99}|[.][0-9]{1,99})([eE][+-]?[0-9]{1,2})? *"
DAY: Final = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
ZEROS: Final = "0000-00-00 00:00:00.000000"
TIME: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
#: By the kind of a type, what a text is made of that is read as one.
GRAMMARS: Final = {"whole": f"({WHOLE})|({ROUNDED})", "number": DECIMAL, "time": f" *(({DAY})|({TIME})) *"}


def cast(dialect: Dialect, value: Value, to: str) -> Value:
    """A value as another type.

    ``to``: ``DOUBLE``, an integer type, ``DECIMAL(p,s)``, ``VARCHAR``, ``BOOLEAN``, ``DATE`` or ``TIMESTAMP``.
    """
    if to in BITS or to.startswith("U") or to == "HUGEINT":
        return _whole(dialect, value, to)
    if to in ("DATE", "TIMESTAMP"):
        return _time(dialect, value, to)
    if to.startswith("DECIMAL("):
        return _decimal(dialect, value, to)
    match to:
        case "DOUBLE":
            return _double(dialect, value)
        case "VARCHAR":
            return _text(dialect, value)
        case "BOOLEAN" if value.is_truth:
            return value
        case "BOOLEAN" if value.family == NUMBER:
            zero = dialect.whole(0) if value.span is not None else dialect.number(0.0)
            there = "" if value.clean else f" AND {is_present(dialect, value)}"
            return Value(f"({value.sql} <> {zero}{there})", is_truth=True)
    return refuse(dialect, f"a cast to {to}")


def _double(dialect: Dialect, value: Value) -> Value:
    if value.family == TEXT:
        fits = dialect.matches(value.sql, DECIMAL)
        return Value(checked(f"(CASE WHEN {fits} THEN {dialect.of_text(value.sql, dialect.double_type)} END)"))
    if value.family != NUMBER:
        refuse(dialect, f"a cast of {value.family} to DOUBLE")
    number = quantity(dialect, value)
    return Value(as_double(dialect, number), clean=number.clean)


def _whole(dialect: Dialect, value: Value, to: str) -> Value:
    """A whole number, halves of floats to the even one, those of texts away from zero."""
    low, high = ends_of(to)
    if value.family == TEXT:
        whole = f"(CASE WHEN {dialect.matches(value.sql, WHOLE)} THEN {dialect.of_text(value.sql, 'BIGINT')} END)"
        fits, double = dialect.matches(value.sql, ROUNDED), dialect.of_text(value.sql, dialect.double_type)
        other = f"(CASE WHEN {fits} THEN {nearest(dialect, rounded(dialect, double, 0))} END)"
        return _within(dialect, Value(f"COALESCE({whole}, {other})", span=(-BIGINT - 1, BIGINT)), low, high)
    if value.family != NUMBER:
        refuse(dialect, f"a cast of {value.family} to {to}")
    number = quantity(dialect, value)
    if number.span is not None:
        return _within(dialect, number, low, high)
    low, high = max(low, -BIGINT - 1), min(high, BIGINT)
    return Value(checked(nearest(dialect, as_double(dialect, number), low, high)), span=(low, high))


def ends_of(to: str) -> tuple[int, int]:
    """Least and largest number of a type."""
    if to == "HUGEINT":
        return -(2**127), 2**127 - 1
    bits = BITS[to.removeprefix("U")]
    return (0, 2**bits - 1) if to.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _within(dialect: Dialect, value: Value, low: int, high: int) -> Value:
    """A whole number, NULL outside of a range."""
    assert value.span is not None
    least, most = value.span
    if low <= least and most <= high:
        return value
    inside = f"{value.sql} BETWEEN {dialect.whole(max(low, least))} AND {dialect.whole(min(high, most))}"
    made = f"(CASE WHEN {inside} THEN {value.sql} END)"
    span = (max(low, least), min(high, most))
    narrow = value.is_wide and span[0] >= -BIGINT - 1 and span[1] <= BIGINT
    return replace(value, sql=checked(f"CAST({made} AS BIGINT)" if narrow else made), span=span)


def _decimal(dialect: Dialect, value: Value, to: str) -> Value:
    """A decimal as the DOUBLE nearest to it."""
    matched = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", to)
    assert matched is not None, to
    digits, scale = int(matched[1]), int(matched[2])
    if value.family == NUMBER and value.span is not None and not value.is_truth:
        return _within(dialect, value, -(10 ** (digits - scale)) + 1, 10 ** (digits - scale) - 1)
    x = _double(dialect, value).sql
    end = dialect.number(float(10 ** (digits - scale)))

    def within(made: str) -> str:
        return f"(CASE WHEN {dialect.call('ABS', made)} < {end} THEN {made} END)"

    return Value(checked(dialect.bound(rounded(dialect, x, scale), within)))


def _text(dialect: Dialect, value: Value) -> Value:
    if value.family == TEXT:
        return value
    if value.span is None or value.family != NUMBER or value.is_truth:
        refuse(dialect, f"a cast of {'truth values' if value.is_truth else value.family} to VARCHAR")
    return Value(dialect.exact_text(f"CAST({value.sql} AS {dialect.text_type})"), TEXT)


def _time(dialect: Dialect, value: Value, to: str) -> Value:
    if value.family == DATE:
        return day_start(dialect, value) if to == "DATE" else replace(value, is_day=False, stored=("", ""))
    if value.family != TEXT:
        refuse(dialect, f"a cast of {value.family} to {to}")
    made = Value(dialect.bound(dialect.call("TRIM", value.sql), lambda text: _of_text(dialect, text)), DATE,
                 (-BIGINT - 1, BIGINT), UNITS["us"])  # fmt: skip
    return day_start(dialect, made) if to == "DATE" else replace(made, sql=checked(made.sql))


def _of_text(dialect: Dialect, text: str) -> str:
    """Microseconds since 1970 of a text without blanks around it; NULL if it is no time."""
    date = dialect.call("SUBSTRING", text, "1", "10")
    day = day_of_calendar(dialect, *(_number_of_part(dialect, date, at) for at in (1, 2, 3)))
    per_day = dialect.whole(UNITS["D"] // UNITS["us"])
    begins = f"(CASE WHEN {dialect.matches(text, DAY)} THEN {dialect.infix(day, '*', per_day)} END)"
    moment = f"(CASE WHEN {dialect.matches(text, TIME)} THEN {_moment(dialect, text, day, per_day)} END)"
    return f"COALESCE({begins}, {moment})"


def _number_of_part(dialect: Dialect, text: str, at: int) -> str:
    """A part between hyphens as a whole number; only read where the text fits a grammar."""
    return dialect.of_text(dialect.call("SPLIT_PART", text, dialect.text("-"), str(at)), "BIGINT")


def _moment(dialect: Dialect, text: str, day: str, per_day: str) -> str:
    """Microseconds since 1970 of a text that fits `TIME`."""
    infix, whole = dialect.infix, dialect.whole
    # Seconds and their fractions may be missing: what stands there then is read as zeros.
    length = f"CAST({dialect.call(dialect.letters, text)} AS INTEGER)"
    rest = dialect.call("SUBSTRING", dialect.text(ZEROS), f"{length} + 1")
    padded = f"({text} || {rest})"
    hour, minute, second, micros = (
        dialect.of_text(dialect.call("SUBSTRING", padded, str(start), str(size)), "BIGINT")
        for start, size in ((12, 2), (15, 2), (18, 2), (21, 6))
    )
    seconds = infix(infix(infix(hour, "*", whole(60)), "+", minute), "*", whole(60))
    total = infix(infix(infix(seconds, "+", second), "*", whole(10**6)), "+", micros)
    return infix(infix(day, "*", per_day), "+", total)
