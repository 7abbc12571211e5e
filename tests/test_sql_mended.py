"""What careful readers found wrong in pdrisk.sql, and what each error tells them to write instead."""

import datetime
import uuid

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.spread import Std
from pdrisk._core.universe import Universe
from sql_people import PEOPLE, connection, refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
COUNT = "SELECT COUNT(*) FROM people"


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{1000}{1000}", "\\"])
def test_a_pattern_that_is_none_is_refused_whoever_is_there(pattern, monkeypatch):
    for name in ("north", "nobody"):
        query = f"{COUNT} WHERE region = '{name}' AND regexp_extract(region, '{pattern}') = 'x'"
        refusal(monkeypatch, query, connection(), eps=1)


def test_dates_that_are_infinite_or_far_stop_nothing(monkeypatch):
    without_noise(monkeypatch)
    con = duckdb.connect()
    days = ["infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "2020-01-01"]
    con.execute(f"CREATE TABLE t AS SELECT unnest({days})::DATE AS d, i AS i FROM range(1) r(i)")
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
        for text in (f"date_part('{unit}', d) > 3", "week(d) > 3", f"date_diff('{unit}', d, d) > 3"):
            pdrisk.sql(f"SELECT COUNT(*) FILTER (WHERE {text}) FROM t WHERE i = 0", con, eps=1)
    answer = pdrisk.sql("SELECT d, COUNT(*) FROM t GROUP BY d", con, eps=1, keys="observed")
    assert answer["d"].tolist() == [pd.Timestamp("2020-01-01")]  # those that Python's dates can hold


@pytest.mark.parametrize("key", ["\ud800", "a\ud800"])
def test_keys_that_no_column_holds_are_refused(key, monkeypatch):
    query = "SELECT region, COUNT(*) FROM people GROUP BY region"
    refusal(monkeypatch, query, connection(), eps=1, keys=[key])


def test_days_beyond_python_are_refused_as_keys(monkeypatch):
    query = "SELECT day, COUNT(*) FROM people GROUP BY day"
    refusal(monkeypatch, query, connection(), eps=1, keys=[np.datetime64("20000-01-01")])


def test_half_a_character_in_a_query_is_refused(monkeypatch):
    refusal(monkeypatch, f"{COUNT} WHERE region = '\ud800'", connection(), eps=1)


def test_a_closed_connection_beside_a_path():
    con = duckdb.connect()
    con.close()
    with pytest.raises(pdrisk.ParameterError):
        pdrisk.sql(COUNT, con, eps=1, people="people.parquet")


def test_a_column_called_age_that_is_not_there():
    with pytest.raises(pdrisk.UnknownColumnError, match="unknown column 'age'"):
        pdrisk.sql("SELECT AVG(age) FROM people", eps=1, bounds=(0, 1), people=PEOPLE.drop(columns="age"))


def test_a_view_reads_what_duckdb_reads(monkeypatch):
    without_noise(monkeypatch)
    con = connection()
    con.execute(
        "CREATE VIEW seen AS FROM people; CREATE TEMP TABLE people AS SELECT 'x' AS id, 5 AS distance, 7 AS age"
    )
    assert con.execute("SELECT MAX(age), COUNT(*) FROM seen").fetchall() == [(7, 1)]
    found = pdrisk.sql("SELECT MAX(age), COUNT(*) FROM seen", con, eps=1, bounds=(0, 99)).iloc[0].tolist()
    assert found == [7, 1]


OBJECTS = [[1], b"a", (1, 2), {1}, uuid.UUID(int=7), datetime.time(1), pd.Timedelta(1)]


@pytest.mark.parametrize("value", OBJECTS, ids=str)
def test_python_objects_are_counted(value, monkeypatch):
    without_noise(monkeypatch)
    frame = pd.DataFrame({"x": pd.Series([value, None, value], dtype=object)})
    assert frame.dprisk.count("x", eps=1).value == 2
    assert pdrisk.sql("SELECT COUNT(x) FROM t", eps=1, t=frame).iat[0, 0] == 2


def test_a_column_of_nothing_is_a_column_of_text(monkeypatch):
    # Else who asks sees whether anybody has a value.
    without_noise(monkeypatch)
    answers = []
    for values in (["a", None], [None, None]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        answers.append(
            pdrisk.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", eps=1, keys=["a"], t=frame)["n"].tolist()
        )
    assert answers == [[1], [0]]


def test_the_error_of_a_standard_deviation_is_within_the_claim(monkeypatch):
    without_noise(monkeypatch)
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT unnest([0.0, -0.99])::DOUBLE AS x")
    lo, hi = -1e9, 1e-9
    found = pdrisk.sql("SELECT STDDEV(x) FROM t", con, eps=1, bounds=(lo, hi)).iat[0, 0]
    step = Std(1).lattice(Universe(lo, hi)).step
    assert abs(found - 0.99 / 2**0.5) <= Std(1).rounding(Universe(lo, hi)) + step


ADVICE = {
    "SELECT COUNT(*) FROM peopel": "Did you mean 'people'?",
    "DESCRIBE people": "pdrisk.sql answers one SELECT",
    "SHOW TABLES": "pdrisk.sql answers one SELECT",
    "SUMMARIZE people": "pdrisk.sql answers one SELECT",
    "SELECT region, GROUPING(region), COUNT(*) FROM people GROUP BY region": "ROLLUP and CUBE",
    "SELECT COUNT(*) FROM people WHERE day + INTERVAL 1 DAY > '2020-01-02'": "INTERVAL",
    "SELECT COUNT(*) FROM people WHERE region GLOB 'a*'": "LIKE",
    "SELECT COUNT(*) FROM 'people.csv'": "load",
    "SELECT COUNT(*) FROM odd WHERE words[1] = 'x'": "list",
    'SELECT COUNT(*) FROM people WHERE region = "north"': "member, day. Text stands in single quotes: 'north'.",
    'SELECT COUNT(*) FROM people AS p WHERE p.region = "it\'s"': "Text stands in single quotes: 'it''s'.",
}


@pytest.mark.parametrize(("query", "advice"), ADVICE.items())
def test_advice(query, advice, monkeypatch):
    con = connection()
    con.execute("CREATE TABLE odd AS SELECT ['x'] AS words, {'a': 1} AS pair")
    assert advice in str(refusal(monkeypatch, query, con, eps=1, keys=["north"] if "GROUP BY" in query else None))


@pytest.mark.parametrize(
    "call", ["dp_count(*)", "dp_count()", "dp_count(*, eps := 1)", "dp_count(*, 1)", "dp_count(eps := 1)"]
)
def test_ways_to_count_records(call, monkeypatch):
    without_noise(monkeypatch)
    assert pdrisk.sql(f"SELECT {call} FROM people", connection(), eps=1).iat[0, 0] == 120


def test_options_of_none_are_not_passed(monkeypatch):
    without_noise(monkeypatch)
    assert pdrisk.sql(COUNT, connection(), eps=1, schema=None, ledger=None).iat[0, 0] == 120


def test_a_typo_in_another_case_is_understood(monkeypatch):
    assert "Did you mean 'distance'?" in str(
        refusal(monkeypatch, "SELECT AVG(DISTNACE) FROM people", connection(), eps=1)
    )


def test_a_file_larger_than_memory(tmp_path):
    path = str(tmp_path / "large.parquet")
    duckdb.connect().execute(f"COPY (SELECT random() AS x FROM range(8000000)) TO '{path}' (FORMAT parquet)")  # 64 MB
    con = duckdb.connect(config={"memory_limit": "40MB"})
    answer = pdrisk.sql("SELECT AVG(x) AS m, VARIANCE(x) FROM t", con, eps=100, bounds=(0, 1), t=path)
    assert abs(answer["m"].item() - 0.5) < 0.2
