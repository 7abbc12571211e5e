"""Keys of groups by dates: the values of an expression on the days that a WHERE allows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

from pdrisk._core.days import moment
from pdrisk._sql.expressions.duckdb_casts import cast
from pdrisk._sql.expressions.duckdb_functions import function
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.expressions.where_values import MOST, Limit, midnight
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import Day, Expression, constant, kind_of_type, quoted, written_constant
from pdrisk._sql.syntax.ranges import Range

MOST_DAYS = 40_000  # a century
NO_TIME, LONGEST_UNIT = datetime.timedelta(0), datetime.timedelta(days=366)
SHORTEST = datetime.timedelta(microseconds=1)


def within_bounds(
    sql: str, day: Day, where_limits: Sequence[Limit], lies: Range, scope: Scope
) -> tuple[Any, ...] | None:
    """Values of an expression on the days that a WHERE and the range of the column allow, and on none.

    None if an end is open.
    """
    values = on_days(sql, day, [*where_limits, *bounds_of_day(day, lies)], scope)
    if values is None or any(limit.day == day for limit in where_limits):  # which a missing day does not fulfil
        return values
    missing = f"SELECT CAST(NULL AS {day.type}) AS {quoted(day.column)}"
    bench = workspace.bench()
    try:
        ((other,),) = bench.execute(f"SELECT {sql} FROM ({missing})").fetchall()
    finally:
        bench.close()
    return values if other is None or other in values else (*values, other)


def on_days(sql: str, day: Day, where_limits: Sequence[Limit], scope: Scope) -> tuple[Any, ...] | None:
    """Values of an expression on the days that a WHERE allows, in order; None if an end is open.

    ``sql``: the expression.
    ``day``: what decides it.
    ``where_limits``: what WHERE says of expressions.
    ``scope``: that of WHERE.
    """
    day_limits = [limit for limit in where_limits if limit.day == day]
    first, last = _ends(day, day_limits, scope)
    if first is None or last is None or (size := (last - first).days + 1) > MOST_DAYS:
        return None
    # Of times the ends have cut off what is before and after; the first day may begin before them.
    others = [limit for limit in day_limits if limit.sql != day.sql or day.type == "DATE"]
    moved = f'system.main."+"({written_constant(first)}, CAST(number AS INTEGER))'
    numbers = f"system.main.range({max(size, 0)}) AS days(number)"
    days = f"SELECT CAST({moved} AS {day.type}) AS {quoted(day.column)} FROM {numbers}"
    bench = workspace.bench()
    try:
        rows = bench.execute(f"SELECT {', '.join([sql, *(limit.sql for limit in others)])} FROM ({days})").fetchall()
    finally:
        bench.close()
    kept = [
        value for value, *other_values in rows if all(map(Limit.admits, others, other_values)) and value is not None
    ]
    values = tuple(dict.fromkeys(kept))
    return values if len(values) <= MOST else None


def bounds_of_day(day: Day, lies: Range) -> list[Limit]:
    """Limits that its declared bounds, in days, set to a column: no public key lies beyond; none where one is open."""
    if not (math.isfinite(lies.lo) and math.isfinite(lies.hi)):
        return []
    is_time = day.type != "DATE"
    lo, hi = (lies.lo, lies.hi) if is_time else (math.ceil(lies.lo), math.floor(lies.hi))
    return [Limit(day.sql, None, ((">=", moment(lo, times=is_time)), ("<=", moment(hi, times=is_time))), day)]


def _ends(day: Day, day_limits: Sequence[Limit], scope: Scope) -> tuple[datetime.date | None, datetime.date | None]:
    """First and last possible day, give or take the unit that times are cut to."""
    column = Expression(day.sql, kind_of_type(day.type), day.type)
    years = {function("date_part", [constant(unit), column]).sql for unit in ("year", "YEAR")}
    years.add(function("year", [column]).sql)
    cut = {function("date_trunc", [constant(unit), column]).sql for unit in ("day", "week", "month", "quarter", "year")}
    cut.add(cast(column, "DATE", scope, forgiving=True).sql)
    first: list[datetime.date] = []
    last: list[datetime.date] = []
    for limit in day_limits:
        if limit.sql in years:
            numbers = [value for value in limit.listed or () if type(value) is int and 1 <= value <= datetime.MAXYEAR]
            if numbers:
                first.append(datetime.date(min(numbers), 1, 1))
                last.append(datetime.date(max(numbers), 12, 31))
        elif limit.sql == day.sql or limit.sql in cut:
            spare = NO_TIME if limit.sql == day.sql else LONGEST_UNIT
            ends = [*limit.ends, *((symbol, value) for value in limit.values or () for symbol in (">=", "<="))]
            moments = [(symbol, midnight(end)) for symbol, end in ends if isinstance(end, datetime.date)]
            lows = [moment.date() for symbol, moment in moments if symbol in (">", ">=")]
            highs = [_later(moment, spare, symbol) for symbol, moment in moments if symbol in ("<", "<=")]
            is_list = limit.values is not None
            first += [min(lows)] if is_list and lows else lows
            last += [max(highs)] if is_list and highs else highs
    return (max(first) if first else None), (min(last) if last else None)


def _later(moment: datetime.datetime, spare: datetime.timedelta, symbol: str) -> datetime.date:
    """Last possible day before a moment."""
    try:
        moment += spare
        return (moment - SHORTEST if symbol == "<" else moment).date()
    except OverflowError:  # at the ends of the calendar
        return moment.date()
