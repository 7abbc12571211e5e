"""Parts and beginnings of times in the SQL of an engine are those of Python's own calendar."""

import datetime as dt
import random

import duckdb
import pytest

from pdrisk._model.expressions.kinds import DATE
from pdrisk.engines.sql.compiler.calendar import BEGINNINGS, PARTS, beginning_of, part_of
from pdrisk.engines.sql.compiler.values import BIGINT, Value
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.postgres_engine import PostgresDialect
from postgres_databases import connected, database, needs_server

START = dt.datetime(1970, 1, 1)
EDGES = [
    dt.datetime.min, dt.datetime.max, dt.datetime(1, 12, 31, 23, 59, 59, 999999), dt.datetime(4, 2, 29), START,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1900, 2, 28), dt.datetime(2000, 2, 29, 12, 30),
    dt.datetime(2020, 12, 31), dt.datetime(2021, 1, 1), dt.datetime(2021, 1, 3), dt.datetime(2021, 1, 4),
    dt.datetime(1582, 10, 10), dt.datetime(9999, 12, 27),
]  # fmt: skip


def times():
    draw = random.Random(3)
    return [
        *EDGES,
        *(START + dt.timedelta(microseconds=draw.randrange(-62 * 10**15, 253 * 10**15)) for _ in range(500)),
    ]


def ticks(time, micros=1):
    return (time - START) // dt.timedelta(microseconds=micros)


def part(unit, time):
    named = {
        "quarter": (time.month + 2) // 3, "week": time.isocalendar().week, "dayofyear": time.timetuple().tm_yday,
    }  # fmt: skip
    return named[unit] if unit in named else getattr(time, unit)


def beginning(unit, time):
    day = time.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case "year" | "quarter" | "month":
            month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1, "month": day.month}[unit]
            return day.replace(month=month, day=1)
    units = ["day", "hour", "minute", "second"]
    return time.replace(microsecond=0, **dict.fromkeys(units[units.index(unit) + 1 :], 0))


def listed(dialect, unit):
    """All parts and beginnings of a column t, the ticks of a time."""
    time = Value("t", DATE, (-BIGINT - 1, BIGINT), unit)
    parts = [part_of(dialect, each, time).sql for each in PARTS]
    return [*parts, *(beginning_of(dialect, each, time).sql for each in BEGINNINGS)]


def expressions(dialect, unit):
    return ", ".join(listed(dialect, unit))


def wanted(time, micros):
    """The same by Python."""
    time = START + ticks(time, micros) * dt.timedelta(microseconds=micros)
    return (*(part(each, time) for each in PARTS), *(ticks(beginning(each, time), micros) for each in BEGINNINGS))


@pytest.mark.parametrize("micros", [1, 1000, 10**6])
def test_of_portable_words_on_duckdb(micros):
    con = duckdb.connect()
    con.execute("CREATE TABLE times (place INTEGER, t BIGINT)")
    con.executemany("INSERT INTO times VALUES (?, ?)", [(at, ticks(each, micros)) for at, each in enumerate(times())])
    found = con.execute(f"SELECT {expressions(Dialect(), 1000 * micros)} FROM times ORDER BY place").fetchall()
    assert found == [wanted(each, micros) for each in times()]
    con.execute("CREATE TABLE nothing AS SELECT CAST(NULL AS BIGINT) AS t")
    (row,) = con.execute(f"SELECT {expressions(Dialect(), 1000)} FROM nothing").fetchall()
    assert set(row) == {None}


@needs_server
def test_of_postgres():
    with database() as url, connected(url) as connection:
        connection.execute("CREATE TABLE times (place integer, t bigint); SET TimeZone = 'America/St_Johns'")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO times VALUES (%s, %s)", [*enumerate(map(ticks, times()))])
        asked = expressions(PostgresDialect(), 1000)
        found = connection.execute(f"SELECT {asked} FROM times ORDER BY place").fetchall()
    assert found == [wanted(each, 1) for each in times()]
