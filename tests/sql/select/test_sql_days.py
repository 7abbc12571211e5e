"""Groups by dates between the days that WHERE writes out: every key that a record can have is listed, and no other."""

from __future__ import annotations

import itertools

import duckdb
import pandas as pd
import pytest

import pdrisk
from sql_people import refusal

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

# A moment in every third of a day, and the last microsecond before midnight.
MOMENTS = """
CREATE TABLE t AS SELECT moment, CAST(moment AS DATE) AS day, 1 AS x FROM (
    SELECT TIMESTAMP '2019-11-20' + INTERVAL (i * 8) HOUR AS moment FROM range(2600) AS r(i)
    UNION ALL SELECT TIMESTAMP '2019-11-21' + INTERVAL (i) DAY - INTERVAL 1 MICROSECOND FROM range(860) AS r(i)
)
"""
EXPRESSIONS = [
    "date_trunc('day', {})", "date_trunc('week', {})", "date_trunc('month', {})", "date_trunc('quarter', {})",
    "date_trunc('year', {})", "year({})", "EXTRACT(year FROM {})", "month({})", "week({})", "isoyear({})",
    "dayname({})", "CAST({} AS DATE)", "last_day({})", "strftime({}, '%Y-%m')", "strftime({}, '%d.%-m.%y')",
    "time_bucket(INTERVAL '1 month', {})", "time_bucket(INTERVAL 10 DAY, {})", "year({0}) * 100 + month({0})",
    "'Q' || quarter({0}) || '/' || year({0})", "CASE WHEN month({0}) > 6 THEN 'late' ELSE dayname({0}) END",
    "year(date_trunc('month', {}))", "day({}) // 7", "yearweek({})", "weekofyear({})",
]  # fmt: skip
WHERE = [
    "{0} >= '2020-01-01' AND {0} < '2020-03-01'",
    "{0} > '2019-12-31' AND {0} <= '2020-02-01'",
    "{0} BETWEEN '2020-02-27' AND '2020-03-02'",
    "year({}) = 2020",
    "EXTRACT(year FROM {0}) IN (2020, 2021) AND {0} < '2020-12-05'",
    "CAST({0} AS DATE) >= '2020-12-30' AND '2021-01-03' >= CAST({0} AS DATE)",
    "date_trunc('month', {}) = '2020-05-01'",
    "date_trunc('month', {0}) >= '2020-05-01' AND date_trunc('quarter', {0}) < '2020-10-01'",
    "date_trunc('week', {}) IN ('2020-05-04', '2020-06-01')",
    "year({0}) BETWEEN 2020 AND 2021 AND month({0}) IN (1, 12) AND dayname({0}) IN ('Monday', 'Friday')",
]


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute(MOMENTS)
    return con


def plain(value):
    return pd.Timestamp(value) if isinstance(value, pd.Timestamp) or hasattr(value, "year") else value


@pytest.mark.sampled(20)
@pytest.mark.whole
@pytest.mark.parametrize(("expression", "where", "column"), [*itertools.product(EXPRESSIONS, WHERE, ["day", "moment"])])
def test_all_that_can_be_and_nothing_else(expression, where, column, con):
    by, kept = expression.format(column), where.format(column)
    answer = pdrisk.sql(f"SELECT {by} AS k, COUNT(*) AS n FROM t WHERE {kept} GROUP BY k", con, eps=1)
    there = con.execute(f"SELECT DISTINCT {by} FROM t WHERE {kept}").fetchall()
    listed = [plain(key) for key in answer["k"]]
    assert len(listed) == len(set(listed)) and set(listed) == {plain(key) for (key,) in there}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT hour(moment) * 100 + day(moment) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT date_trunc('hour', moment) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT strftime(moment, '%Y-%m %H') AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT time_bucket(INTERVAL '36:00:00', moment) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT moment, COUNT(*) FROM t WHERE {} GROUP BY moment",
        "SELECT year(moment) * 10 + x AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT year(moment) * 10 + month(day) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT year(day) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
        "SELECT CAST(moment + INTERVAL 1 HOUR AS DATE) AS k, COUNT(*) FROM t WHERE {} GROUP BY k",
    ],
)
def test_what_more_than_the_day_decides_is_not_listed(query, con, monkeypatch):
    query = query.format("moment >= '2020-01-01' AND moment < '2020-01-03'")
    assert "needs the public list" in str(refusal(monkeypatch, query, con, eps=1))


@pytest.mark.parametrize(
    "where",
    [
        "day > '2020-01-01'",
        "day < '2020-01-01'",
        "day > '2020-01-01' OR day < '2021-01-01'",
        "day BETWEEN '2020-01-01' AND '2020-02-01' OR x = 1",
        "day + 30 BETWEEN '2020-01-01' AND '2020-02-01'",
        "NOT day BETWEEN '2020-01-01' AND '2020-02-01'",
        "day BETWEEN '0001-01-01' AND '9999-12-31'",
        "moment BETWEEN '2020-01-01' AND '2020-02-01'",
        "day >= '2010-01-01' AND day < '2020-01-01'",  # more than a thousand
    ],
)
def test_days_without_two_ends_are_not_listed(where, con, monkeypatch):
    query = f"SELECT day, COUNT(*) FROM t WHERE {where} GROUP BY day"
    assert "needs the public list" in str(refusal(monkeypatch, query, con, eps=1))


def test_values_of_parameters_are_not_shown(con, monkeypatch):
    for query, params in {
        "SELECT year(day) AS k, COUNT(*) FROM t WHERE day BETWEEN ? AND '2020-05-05' GROUP BY k": ["2020-01-01"],
        "SELECT strftime(day, ?) AS k, COUNT(*) FROM t WHERE year(day) = 2020 GROUP BY k": ["%Y"],
    }.items():
        assert "needs the public list" in str(refusal(monkeypatch, query, con, eps=1, params=params))


def test_no_day_is_left(con, monkeypatch):
    query = "SELECT month(day) AS m, COUNT(*) FROM t WHERE day > '2020-05-05' AND day < '2020-05-01' GROUP BY m"
    assert "leaves none of the public keys" in str(refusal(monkeypatch, query, con, eps=1))


def test_in_subqueries_and_beside_other_groups(con):
    inner = "SELECT date_trunc('month', moment) AS m, day AS d FROM t WHERE moment >= '2020-01-01'"
    answer = pdrisk.sql(
        f"WITH s AS ({inner}) SELECT m, d > '2020-02-02' AS late, COUNT(*) FROM s WHERE m <= '2020-03-01' GROUP BY ALL",
        con,
        eps=1,
    )
    assert len(answer) == 6 and answer["m"].nunique() == 3


def test_frames_and_declared_keys(con):
    frame, dates = con.execute("SELECT * FROM t").df(), pd.to_datetime(["2020-01-02", "2025-01-01"])
    where = "moment >= '2020-01-01' AND moment < '2020-03-01'"
    by_day = f"SELECT day, COUNT(*) AS n FROM t WHERE {where} AND day < '2020-01-04' GROUP BY day"
    assert pdrisk.sql(by_day, eps=1, t=frame, keys=list(dates))["day"].tolist() == list(dates)
    by_month = f"SELECT date_trunc('month', moment) AS m, COUNT(*) FROM t WHERE {where} GROUP BY m"
    assert pdrisk.sql(by_month, eps=1, t=frame)["m"].tolist() == list(pd.to_datetime(["2020-01-01", "2020-02-01"]))
    declared = frame.dprisk.declare(keys={"day": list(dates)})
    answer = pdrisk.sql("SELECT day, COUNT(*) FROM t WHERE day < '2020-02-01' GROUP BY day", eps=1, t=declared)
    assert answer["day"].tolist() == [pd.Timestamp("2020-01-02")]
