"""Dates and times in SQL: additions and truncations, written so that none can fail or leave the calendar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pdrisk._core.days import day_number, moment
from pdrisk._model.expressions.kinds import DATE, INTERVAL, NOTHING, NUMBER, TIME, number_advice
from pdrisk._model.expressions.nodes import Call, Cast, Constant, Node, is_given
from pdrisk._sql.expressions.duckdb_arithmetic import as_bigint
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import Expression, written_constant
from pdrisk._sql.syntax.ranges import ANYTHING, DATE_NAMES, Range, range_of_function, range_of_time
from pdrisk.errors import ParameterError

#: The functions that the parser makes of INTERVAL, and the unit of each.
INTERVALS = {f"to_{unit}s": unit for unit in ("year", "month", "week", "day", "hour", "minute", "second")}
SPAN = (-(2**40), 2**40)  # of days between two dates
FIRST, LAST = "CAST('0001-01-01' AS DATE)", "CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)"
LONGEST = 100  # characters of a format: what is written of each record stays short


def interval(node: Call | Cast) -> Expression:
    """A literal interval."""
    inner: Node = node
    while isinstance(inner, Call | Cast):
        inner = inner.operand if isinstance(inner, Cast) else inner.arguments[0] if inner.arguments else Constant(None)
    if not isinstance(inner, Constant) or inner.value is None:
        raise ParameterError("an INTERVAL must be a constant, as in INTERVAL 3 DAY, the same for all records.")
    if isinstance(node, Cast):
        made = f"CAST({written_constant(str(inner.value))} AS INTERVAL)"
    else:
        number = f"CAST(trunc(CAST({written_constant(inner.value)} AS DOUBLE)) AS INTEGER)"
        made = f"system.main.{node.name}({number})"
    shown = workspace.compute(f"SELECT CAST({made} AS VARCHAR)", "an interval")
    return Expression(
        f"CAST({written_constant(shown)} AS INTERVAL)", INTERVAL, "INTERVAL", constant=True, value=shown,
        given=is_given(inner),
    )  # fmt: skip


def as_time(part: Expression) -> Expression:
    """A date as the timestamp at its beginning; other values unchanged."""
    if part.kind != DATE:
        return part
    return Expression(
        f"TRY_CAST({part.sql} AS TIMESTAMP)", TIME, "TIMESTAMP", constant=part.constant, value=part.value,
        range=part.range,
    )  # fmt: skip


def date_arithmetic(symbol: str, parts: Sequence[Expression], shown: Sequence[str]) -> Expression:
    """Sum or difference of a date with a literal interval, days, or another date."""
    kinds = tuple(part.kind for part in parts)
    wrong = next((at for at, kind in enumerate(kinds) if kind not in (NUMBER, NOTHING)), 0)
    refusal = f"`{symbol}` on {shown[wrong]}: arithmetic takes numbers: {number_advice(kinds[wrong], sql=True)}."
    if symbol == "+" and kinds[0] in (INTERVAL, NUMBER):
        parts, kinds = parts[::-1], kinds[::-1]
    if len(parts) == 2 and symbol in ("+", "-"):
        one, other = parts
        lies = range_of_function(symbol, [one.range, other.range], [one.constant, other.constant])
        if kinds[1] == INTERVAL and other.constant:
            sql = f"TRY(system.main.{_name(symbol)}({as_time(one).sql}, {other.sql}))"
            return Expression(sql, TIME, "TIMESTAMP", range=_moved(symbol, one.range, other))
        if kinds == (DATE, NUMBER):
            days = f"TRY_CAST({as_bigint(other)} AS INTEGER)"
            return Expression(f"TRY(system.main.{_name(symbol)}({one.sql}, {days}))", DATE, "DATE", range=lies)
        if kinds == (DATE, DATE) and symbol == "-":
            sql = f"TRY(system.main.{_name(symbol)}({one.sql}, {other.sql}))"
            return Expression(sql, NUMBER, "BIGINT", span=SPAN, range=lies)
        if set(kinds) <= {DATE, TIME} and symbol == "-":
            sql = ", ".join(as_time(part).sql for part in parts)
            return Expression(f"TRY(system.main.{_name(symbol)}({sql}))", INTERVAL, "INTERVAL", range=lies)
    raise ParameterError(refusal)


def _moved(symbol: str, lies: Range, by: Expression) -> Range:
    """Range of times that are moved by an interval; none for that of a parameter, which public texts would show."""
    if by.given:
        return ANYTHING
    interval_ = str(by.value)
    try:
        ends = [moment(end, times=True) for end in (lies.lo, lies.hi)]
    except (OverflowError, ValueError):  # where one is open
        return ANYTHING
    moved = f"{_name(symbol)}({{}}, CAST({written_constant(interval_)} AS INTERVAL))"
    written = ", ".join("TRY(system.main." + moved.format(written_constant(end)) + ")" for end in ends)
    moments = workspace.compute(f"SELECT [{written}]", "an interval")
    if not isinstance(moments, list) or None in moments:
        return ANYTHING
    lo, hi = map(day_number, moments)
    if "mon" in interval_ or "year" in interval_:  # which make one day of several, whatever their time
        lo, hi = math.floor(lo), math.ceil(hi)
    return replace(lies, lo=lo, hi=hi)


def _name(symbol: str) -> str:
    return f'"{symbol}"'


def date_function(name: str, arguments: Sequence[Expression]) -> Expression | None:
    """Function that gives a date, a timestamp or a text of one; None for others.

    Far dates and infinities, of which some functions make what no calendar has, are missing.
    """
    sql = [part.sql for part in arguments]
    match name:
        case "date_trunc" | "datetrunc":
            return _guarded("date_trunc", [sql[0].lower(), as_time(arguments[1]).sql], 1, TIME, "TIMESTAMP")
        case "time_bucket":
            sample = f"SELECT system.main.time_bucket({sql[0]}, CAST('2020-01-01' AS TIMESTAMP))"
            workspace.compute(sample, "the interval of time_bucket")
            return _guarded(name, [sql[0], as_time(arguments[1]).sql], 1, TIME, "TIMESTAMP")
        case "date_add":
            return date_arithmetic("+", arguments, [name, name])
        case "strftime":
            sample = f"SELECT system.main.strftime(CAST('2020-01-01' AS TIMESTAMP), {sql[1]})"
            workspace.compute(sample, "the format of strftime")
            if len(str(arguments[1].value)) > LONGEST:
                raise ParameterError(f"the format of strftime is longer than {LONGEST} characters: write it shorter.")
            return _guarded(name, sql, 0, "text", "VARCHAR")
        case "strptime" | "try_strptime":
            workspace.compute(f"SELECT system.main.try_strptime('', {sql[1]})", f"the format of {name}")
            return Expression(f"TRY(system.main.try_strptime({', '.join(sql)}))", TIME, "TIMESTAMP")
        case "dayname" | "monthname":
            return _guarded(name, sql, 0, "text", "VARCHAR", DATE_NAMES[name])
        case "last_day":
            return _guarded(name, sql, 0, DATE, "DATE")
        case "make_date":
            numbers = ", ".join(map(as_bigint, arguments))
            return Expression(f"TRY(system.main.make_date({numbers}))", DATE, "DATE")
        case "epoch":
            lies = range_of_time(name, [arguments[0].range])
            return Expression(f"TRY(system.main.epoch({as_time(arguments[0]).sql}))", NUMBER, "DOUBLE", range=lies)
    return None


def _guarded(
    name: str, arguments: Sequence[str], at: int, kind: str, sql_type: str, values: tuple[str, ...] | None = None
) -> Expression:
    """A function of a date within the years 1 to 9999."""
    date, call = arguments[at], f'system.main."{name}"({", ".join(arguments)})'
    return Expression(
        f"TRY(CASE WHEN {date} BETWEEN {FIRST} AND {LAST} THEN {call} END)", kind, sql_type, values=values
    )
