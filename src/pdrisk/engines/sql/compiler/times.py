"""Arithmetic and functions of times in SQL, on whole microseconds since 1970: none can leave the calendar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, cast

from pdrisk._model.expressions.kinds import DATE, DURATION, NUMBER, TEXT
from pdrisk._model.rowwise.families import UNITS
from pdrisk.engines.sql.compiler.calendar import beginning_of, days_since, part_of
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.values import BIGINT, Value, as_double, checked
from pdrisk.engines.sql.dialects.dialect import Dialect

US: Final = UNITS["us"]
FIRST, END = -62_135_596_800_000_000, 253_402_300_800_000_000  # the years 1 and 10000, in microseconds since 1970
PER_DAY: Final = UNITS["D"] // US
MOST_DAYS: Final = 3_700_000  # between the ends of the calendar
DAYS_OF_MONTH, YEAR = 146_097 / 4800, 366
SECONDS: Final = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
MONTHS_IN: Final = {"month": 1, "quarter": 3, "year": 12}
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
FORMATS: Final = {
    "Y": ("year", 4), "m": ("month", 2), "d": ("day", 2), "H": ("hour", 2), "M": ("minute", 2), "j": ("dayofyear", 3),
}  # fmt: skip
ANY: Final = (-BIGINT - 1, BIGINT)


def of_times(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """A function of times by its name in SQL; ``constants`` are the values that are written out, else None."""
    made = TEMPORAL.get(name)
    times = [value for value in values if value.family in (DATE, DURATION)]
    if made is None or not (times or name == "make_date"):
        refuse(dialect, f"{name}()")
    return made(dialect, name, [_in_microseconds(dialect, value) for value in values], constants)


def _in_microseconds(dialect: Dialect, value: Value) -> Value:
    """A time in microseconds, without what is less."""
    if value.family != DATE or value.unit == US:
        return value
    if value.unit > US:
        return replace(value, sql=dialect.infix(value.sql, "*", dialect.whole(value.unit // US)), unit=US)
    within = beginning_of(dialect, "microsecond", value)
    whole = dialect.quotient(within.sql, dialect.whole(US // value.unit))
    return replace(within, sql=f"CAST({whole} AS BIGINT)", unit=US)


def _within_calendar(dialect: Dialect, sql: str, *, is_day: bool = False) -> Value:
    """A time, missing outside of the years 1 to 9999."""

    def within(time: str) -> str:
        return f"(CASE WHEN {time} >= {dialect.whole(FIRST)} AND {time} < {dialect.whole(END)} THEN {time} END)"

    return Value(checked(dialect.bound(sql, within)), DATE, ANY, US, is_day=is_day)


def day_start(dialect: Dialect, time: Value) -> Value:
    """The day of a time."""
    return time if time.is_day else replace(beginning_of(dialect, "day", _in_microseconds(dialect, time)), is_day=True)


def day_of_calendar(dialect: Dialect, year: str, month: str, day: str) -> str:
    """Days from 1970-01-01 to a day of the calendar by whole numbers, NULL if there is none in the years 1 to 9999."""

    def in_year(y: str) -> str:
        leap = f"({y} % 4 = 0 AND ({y} % 100 <> 0 OR {y} % 400 = 0))"
        return dialect.bound(month, lambda m: dialect.bound(day, lambda d: in_month(y, m, d, leap)))

    def in_month(y: str, m: str, d: str, leap: str) -> str:
        last = f"CASE WHEN {m} IN (4, 6, 9, 11) THEN 30 WHEN {m} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
        there = f"{y} BETWEEN 1 AND 9999 AND {m} BETWEEN 1 AND 12 AND {d} BETWEEN 1 AND {last}"
        made = dialect.call("MAKE_DATE", *(f"CAST({number} AS INTEGER)" for number in (y, m, d)))
        return f"(CASE WHEN {there} THEN {dialect.days_since(made)} END)"

    return dialect.bound(year, in_year)


def moved(dialect: Dialect, time: Value, interval: Sequence[Any]) -> Value:
    """A time so many months, days and microseconds later; of a month that has no such day, its last day."""
    if dialect.own:
        return cast(Value, dialect.own.moved(time, interval))
    months, days, rest = interval
    time, sql = _in_microseconds(dialect, time), ""
    limits = abs(months) <= 120_000 and abs(days) <= MOST_DAYS and abs(rest) <= MOST_DAYS * PER_DAY
    if not limits:
        refuse(dialect, "an interval of more than 10,000 years")
    sql = time.sql
    if months:
        whole = dialect.bound(days_since(dialect, time), lambda day: _within_reach(dialect, day, months))
        within = dialect.infix(sql, "-", dialect.infix(whole, "*", dialect.whole(PER_DAY)))
        day = dialect.days_since(dialect.add_months(dialect.day(whole), months))
        sql = dialect.infix(dialect.infix(day, "*", dialect.whole(PER_DAY)), "+", within)
    if days or rest:
        sql = dialect.infix(sql, "+", dialect.whole(days * PER_DAY + rest))
    return _within_calendar(dialect, sql)


def _within_reach(dialect: Dialect, day: str, months: int) -> str:
    """A day, NULL where so many months later is outside of the years 1 to 9999 by more than a year."""
    later = round(months * DAYS_OF_MONTH)
    ends = (dialect.whole(end // PER_DAY - later + spare) for end, spare in ((FIRST, -YEAR), (END, YEAR)))
    return "(CASE WHEN {} BETWEEN {} AND {} THEN {} END)".format(day, *ends, day)


def of_two(dialect: Dialect, symbol: str, left: Value, right: Value) -> Value:
    """Sum or difference of a time with days or another time."""
    if symbol == "-" and left.family == right.family == DATE:
        return _difference(dialect, left, right)
    if symbol == "+" and right.family == DATE:
        left, right = right, left
    if not left.is_day or right.span is None or right.family != NUMBER:
        refuse(dialect, f"{symbol} of {left.family} and {right.family}")
    return _days_later(dialect, left, right, symbol)


def _days_later(dialect: Dialect, day: Value, number: Value, symbol: str) -> Value:
    """A date so many days later or earlier."""
    inside = f"{number.sql} BETWEEN {dialect.whole(-MOST_DAYS)} AND {dialect.whole(MOST_DAYS)}"
    count = f"(CASE WHEN {inside} THEN CAST({number.sql} AS BIGINT) END)"
    moved_by = dialect.infix(count, "*", dialect.whole(PER_DAY))
    return _within_calendar(dialect, dialect.infix(day.sql, symbol, moved_by), is_day=day.is_day)


def _difference(dialect: Dialect, left: Value, right: Value) -> Value:
    """Days between two dates, or the time between two times."""
    both = left.is_day and right.is_day
    left, right = (_in_microseconds(dialect, time) for time in (left, right))
    sql = dialect.infix(left.sql, "-", right.sql)
    if not both:
        return Value(checked(sql), DURATION, ANY, US)
    days = f"CAST({dialect.quotient(sql, dialect.whole(PER_DAY))} AS BIGINT)"
    return Value(checked(days), NUMBER, (-MOST_DAYS, MOST_DAYS))


def _part(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """A part of a time, or of the time between two."""
    unit = str(constants[0]).lower() if len(values) == 2 else name
    value = values[-1]
    if value.family == DURATION:
        return _part_of_duration(dialect, unit, value)
    return _of_calendar(dialect, unit, value)


def _of_calendar(dialect: Dialect, unit: str, time: Value) -> Value:
    infix, whole = dialect.infix, dialect.whole
    match unit:
        case "dayofweek" | "weekday":
            return Value(_weekday(dialect, time, 4), span=(0, 6))
        case "isodow":
            return Value(infix(_weekday(dialect, time, 3), "+", whole(1)), span=(1, 7))
        case "isoyear":
            return _iso_year(dialect, time)
        case "yearweek":
            year, week = _iso_year(dialect, time).sql, part_of(dialect, "week", time).sql
            return Value(infix(infix(year, "*", whole(100)), "+", week), span=(1, 999_953))
        case "decade" | "century":
            year = part_of(dialect, "year", time).sql
            by, off = (10, 0) if unit == "decade" else (100, 99)
            number = dialect.quotient(infix(year, "+", whole(off)), whole(by))
            return Value(f"CAST({number} AS BIGINT)", span=(0, 1000))
    return part_of(dialect, {"dayofmonth": "day", "weekofyear": "week"}.get(unit, unit), time)


def _weekday(dialect: Dialect, time: Value, off: int) -> str:
    """Days since the weekday before 1970-01-01 by so many days, without whole weeks."""
    infix, seven = dialect.infix, dialect.whole(7)
    rest = dialect.remainder(infix(days_since(dialect, time), "+", dialect.whole(off)), seven)
    return dialect.remainder(infix(rest, "+", seven), seven)


def _iso_year(dialect: Dialect, time: Value) -> Value:
    """Year of the Thursday of a time's week."""
    days = dialect.infix(days_since(dialect, time), "-", _weekday(dialect, time, 3))
    thursday = dialect.infix(days, "+", dialect.whole(3))
    return Value(f"CAST({dialect.part_of_day('year', dialect.day(thursday))} AS BIGINT)", span=(0, 10_000))


def _part_of_duration(dialect: Dialect, unit: str, value: Value) -> Value:
    """Days, or what is left of days, hours and minutes, towards zero."""
    if unit not in SECONDS:
        refuse(dialect, f"the {unit} of the time between two times")
    micros = dialect.whole(SECONDS[unit] * 10**6)
    sql = value.sql
    if unit != "day":
        larger = {"hour": "day", "minute": "hour", "second": "minute"}[unit]
        sql = dialect.remainder(sql, dialect.whole(SECONDS[larger] * 10**6))
    most = MOST_DAYS if unit == "day" else 60
    return Value(checked(f"CAST({dialect.quotient(sql, micros)} AS BIGINT)"), span=(-most, most))


def _epoch(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """Seconds since 1970, or between two times."""
    micros = as_double(dialect, Value(values[-1].sql, span=ANY))
    return Value(checked(f"({dialect.divided(micros, dialect.number(1e6))})"))


def _beginning(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return beginning_of(dialect, str(constants[0]).lower(), values[1])


def _last_day(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """The day before the first one of the month after."""
    first = beginning_of(dialect, "month", values[0])
    inside = dialect.infix(first.sql, "+", dialect.whole(31 * PER_DAY))
    after = beginning_of(dialect, "month", replace(first, sql=inside))
    return replace(after, sql=checked(dialect.infix(after.sql, "-", dialect.whole(PER_DAY))), is_day=True)


def _between(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """DATE_DIFF, the ends of units that lie between two times, or DATE_SUB, the whole units."""
    unit, (_, first, last) = str(constants[0]).lower(), values
    infix, whole = dialect.infix, dialect.whole
    is_whole = name in ("date_sub", "datesub")
    if unit in MONTHS_IN and is_whole:
        return _whole_months(dialect, MONTHS_IN[unit], first, last)
    if unit in MONTHS_IN:
        per_year = 12 // MONTHS_IN[unit]
        sides = []
        for time in (last, first):
            year = infix(part_of(dialect, "year", time).sql, "*", whole(per_year))
            sides.append(year if unit == "year" else infix(year, "+", part_of(dialect, unit, time).sql))
        return Value(checked(infix(sides[0], "-", sides[1])), span=(-120_000, 120_000))
    seconds = 7 * SECONDS["day"] if unit == "week" and is_whole else SECONDS.get(unit)
    if seconds is None:
        refuse(dialect, f"{name}() of {unit}s")
    if not is_whole:
        first, last = (beginning_of(dialect, unit, time) for time in (first, last))
    made = dialect.quotient(infix(last.sql, "-", first.sql), whole(seconds * 10**6))
    return Value(checked(f"CAST({made} AS BIGINT)"), span=(-(2**40), 2**40))


def _whole_months(dialect: Dialect, several: int, first: Value, last: Value) -> Value:
    """Whole months between two times, by so many, as `java.time` has them: by whole days and the days' numbers."""
    infix, whole = dialect.infix, dialect.whole
    begin = beginning_of(dialect, "day", first)
    days = dialect.quotient(infix(last.sql, "-", first.sql), whole(PER_DAY))
    end = replace(begin, sql=checked(infix(begin.sql, "+", infix(days, "*", whole(PER_DAY)))))

    def apart(part: str, weight: int) -> str:
        after, before = (part_of(dialect, part, day).sql for day in (end, begin))
        return infix(infix(after, "-", before), "*", whole(weight))

    places = infix(infix(apart("year", 12 * 32), "+", apart("month", 32)), "+", apart("day", 1))
    units = dialect.quotient(dialect.quotient(places, whole(32)), whole(several))
    return Value(checked(f"CAST({units} AS BIGINT)"), span=(-120_000, 120_000))


def _made_date(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    if any(value.span is None or value.is_wide for value in values):
        refuse(dialect, "make_date() of numbers with a fraction, or of more than 64 bits")
    days = day_of_calendar(dialect, *(value.sql for value in values))
    return Value(checked(dialect.infix(days, "*", dialect.whole(PER_DAY))), DATE, ANY, US, is_day=True)


def _named(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """English name of a weekday or a month."""
    unit, names = ("isodow", WEEKDAYS) if name == "dayname" else ("month", MONTHS)
    number = _of_calendar(dialect, unit, values[0]).sql
    arms = " ".join(f"WHEN {dialect.whole(at)} THEN {dialect.text(word)}" for at, word in enumerate(names, 1))
    return Value(dialect.exact_text(f"(CASE {number} {arms} END)"), TEXT)


def _written(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """STRFTIME of a format that is made of the years, months, days, hours and minutes."""
    pieces = re.findall(r"%(.)|([^%]+)", str(constants[1]))
    unknown = [sign for sign, _ in pieces if sign and sign not in FORMATS]
    if unknown or not pieces:
        refuse(dialect, f"{name}() with %{unknown[0] if unknown else ''}")
    texts = []
    for sign, plain in pieces:
        if plain:
            texts.append(dialect.text(plain))
            continue
        unit, digits = FORMATS[sign]
        number = f"CAST({_of_calendar(dialect, unit, values[0]).sql} AS {dialect.text_type})"
        texts.append(dialect.call("LPAD", number, str(digits), dialect.text("0")))
    return Value(checked(dialect.exact_text(f"({' || '.join(texts)})")), TEXT)


def _refused(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> NoReturn:  # noqa: ARG001
    refuse(dialect, f"{name}()")


Made = Callable[[Dialect, str, Sequence[Value], Sequence[Any]], Value]
TEMPORAL: Final[Mapping[str, Made]] = {
    **dict.fromkeys(
        (
            "date_part", "year", "month", "day", "quarter", "week", "weekofyear", "dayofweek", "weekday", "isodow",
            "dayofyear", "dayofmonth", "yearweek", "isoyear", "decade", "century", "hour", "minute", "second",
        ),
        _part,
    ),
    "epoch": _epoch, "date_trunc": _beginning, "last_day": _last_day, "make_date": _made_date,
    **dict.fromkeys(("date_diff", "datediff", "date_sub", "datesub"), _between),
    **dict.fromkeys(("dayname", "monthname"), _named), "strftime": _written, "time_bucket": _refused,
}  # fmt: skip
