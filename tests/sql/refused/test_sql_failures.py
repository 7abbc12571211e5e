"""What fails at a record is missing for it; what fails beyond that says one sentence, and leaves nothing behind."""

import pickle
import threading

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pdrisk
import pdrisk.engines.sql.servers.sql_table
from errors_said import everything_said
from sql_people import connection, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SENTENCE = (
    "the request failed while the data was read; it stays paid. "
    "Its cause is not shown because it could reveal a record."
)
BIG = 2**63 - 1
# x is 41 for Bob and 30 for Eve. What each expression is for them, None where DuckDB would stop.
EXPRESSIONS = {
    f"x * {BIG}": [41 * BIG, 30 * BIG],  # beyond int64, a float
    f"x + {BIG}": [41 + BIG, 30 + BIG],
    f"{BIG - 40} + x": [BIG + 1, BIG - 10],
    "TRY_CAST(name AS INTEGER)": [None, None],
    "year(TRY_CAST(name AS DATE))": [None, None],
    "TRY_CAST(CASE WHEN x > 40 THEN 'no' ELSE '3' END AS INTEGER)": [None, 3],
    "1 // zero": [None, None],
    "x % zero": [None, None],
    "x // 0": [None, None],
    "TRY_CAST(x * 10 AS TINYINT)": [None, None],
    "TRY_CAST(x * 4 AS TINYINT)": [None, 120],
    "CASE WHEN x > 40 THEN TRY_CAST('no' AS INTEGER) ELSE 1 END": [None, 1],
    "COALESCE(1 // zero, x)": [41, 30],
    "IF(name = 'Bob', x // zero, x)": [None, 30],
    "length(substr(name, 9223372036854775807))": [None, None],
    "round(ratio, 400)": [0.5, 0.25],
    "exp(x * 1000)": [None, None],
    "sqrt(negative)": [None, None],
    "ln(negative)": [None, None],
    "asin(x)": [None, None],
    "pow(negative, 0.5)": [None, None],
    "1 // (x - 41)": [None, 0],
    "sqrt(x - 41)": [0, None],
    "sqrt(30 - x) + sqrt(30 - x)": [None, 0],
    "CASE WHEN x > 30 THEN TRY_CAST(name AS BIGINT) + x ELSE 1 // (x - 31) END": [None, -1],
}

# DuckDB computes once what two expressions share, outside of the TRY that either is in.
A, B = "CAST('0.1' AS DECIMAL(38, 38))", "CAST('0.2' AS DECIMAL(38, 38))"
MORNING = "TIMESTAMP '2020-01-01 10:00:00'"
SHARED = [
    f"x BETWEEN {A} AND {B}",
    f"x IN ({A}, {B})",
    f"x NOT IN ({', '.join([A] * 60)})",
    f"x < {A} OR x > {A}",
    f"x + {A} > x - {A}",
    f"greatest(x, {A}) > least(x, {A})",
    f"COALESCE(x, {A}) > CASE WHEN zero = 0 THEN x ELSE {A} END",
    f"date_diff('day', far, {MORNING}) > date_diff('hour', far, {MORNING})",
    f"far BETWEEN {MORNING} AND TIMESTAMP '2021-01-01 10:00:00'",
    f"far IN ({MORNING}, TIMESTAMP '2021-01-01 10:00:00')",
    "x // zero = 1 OR x // zero = 2",
    "week(far) > year(far)",
]


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute("""
        CREATE TABLE t AS SELECT * FROM (
            VALUES ('Bob', 41::BIGINT, 0::INTEGER, 0.5::DOUBLE, -0.5::DOUBLE), ('Eve', 30, 0, 0.25, -0.5)
        ) AS v(name, x, zero, ratio, negative)
    """)
    return con


class TestNothingFailsAtARecord:
    """What DuckDB would stop at is missing for that record, and shows no other way."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("text", "values"), EXPRESSIONS.items(), ids=EXPRESSIONS.keys())
    def test_value(self, text, values, con, monkeypatch):
        without_noise(monkeypatch)
        infinite = text.startswith("exp")  # overflow gives infinity, which is clamped
        query = f"SELECT COUNT({text}), dp_sum({text}, lo := 0, hi := 7) FROM t GROUP BY name"
        answer = pdrisk.sql(query, con, eps=1, keys=["Bob", "Eve"])
        for row, value in enumerate(values):
            expected = [1, 7] if infinite else [0, 0] if value is None else [1, min(max(value, 0), 7)]
            assert answer.iloc[row].tolist() == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize(
        "text", ["1 // zero", "x % zero", f"x * {BIG}", "TRY_CAST(name AS INTEGER)", "ln(negative)"]
    )
    def test_who_is_there_does_not_show(self, text, con, monkeypatch):
        without_noise(monkeypatch)
        for name in ("Bob", "Nobody"):
            one = f"name = '{name}'"
            for where in (f"{one} AND ({text}) < 0", f"CASE WHEN {one} THEN ({text}) < 0 ELSE false END"):
                query = f"SELECT COUNT(*) FILTER (WHERE {where}), COUNT(*) FROM (SELECT * FROM t WHERE NOT {where})"
                assert pdrisk.sql(query, con, eps=1).iloc[0, 0] == 0
                assert pdrisk.sql(f"SELECT COUNT(*) FROM t WHERE {where}", con, eps=1).iloc[0, 0] == 0

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("text", SHARED)
    def test_what_two_expressions_share_does_not_fail_either(self, text, con, monkeypatch):
        without_noise(monkeypatch)
        con.execute("CREATE OR REPLACE TEMP TABLE u AS SELECT *, DATE '5881580-07-10' AS far FROM t")
        for name, people in (("Bob", 1), ("Nobody", 0)):
            query = f"SELECT COUNT(*), COUNT(*) FILTER (WHERE {text}), COUNT(*) FILTER (WHERE NOT ({text})) FROM u"
            assert pdrisk.sql(f"{query} WHERE name = '{name}'", con, eps=1).iloc[0, 0] == people
            pdrisk.sql(f"SELECT COUNT(*) FROM u WHERE name = '{name}' AND ({text})", con, eps=1)

    def test_groups_of_what_fails_are_missing(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT COUNT(*) FROM t GROUP BY 1 // (x - 41)"
        assert pdrisk.sql(query, con, eps=1, keys=[None, 0, 3]).iloc[:, 0].tolist() == [1, 1, 0]

    def test_groups_beyond_int64_are_none_that_can_be_listed(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = f"SELECT COUNT(*) FROM t GROUP BY {BIG - 40} + x"
        assert pdrisk.sql(query, con, eps=1, keys=[None, BIG - 10, 3]).iloc[:, 0].tolist() == [0, 1, 0]


def assert_silent(error: pdrisk.QueryFailedError) -> None:
    assert type(error) is pdrisk.QueryFailedError
    assert str(error) == SENTENCE
    assert (error.__cause__, error.__context__) == (None, None)
    assert "SENTINEL" not in everything_said(error)
    assert str(pickle.loads(pickle.dumps(error))) == SENTENCE


def left_behind(con) -> list:
    """Relations that a call left on the connection."""
    return con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()


class TestReading:
    """A failure while data is read is one fixed sentence without a cause."""

    @pytest.mark.parametrize("error", [duckdb.ConversionException, MemoryError, OSError, KeyError, RuntimeError])
    @pytest.mark.parametrize("groups", ["", "GROUP BY region"])
    def test_any_error(self, error, groups, monkeypatch):
        con = connection()

        def broken(*arguments):
            try:
                raise ValueError("SENTINEL value")
            except ValueError as cause:
                raise error("SENTINEL of a record") from cause

        monkeypatch.setattr(pdrisk.engines.sql.servers.sql_table, "read", broken)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            pdrisk.sql(f"SELECT COUNT(*) FROM people {groups}", con, eps=1, keys=["north"] if groups else None)
        assert_silent(caught.value)
        assert left_behind(con) == []

    def test_a_file_that_breaks_off(self, tmp_path):
        path = tmp_path / "people.parquet"
        frame = pd.DataFrame({"x": range(100_000), "g": "SENTINEL"})
        pq.write_table(pa.Table.from_pandas(frame), path, compression="none", use_dictionary=False)
        whole = bytearray(path.read_bytes())
        middle = len(whole) // 2
        whole[4:middle] = b"\xff" * (middle - 4)  # the footer still tells of columns
        path.write_bytes(whole)
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            pdrisk.sql("SELECT SUM(x) FROM people", eps=1, bounds=(0, 1), people=str(path))
        assert_silent(caught.value)

    def test_the_connection_goes_on(self, monkeypatch):
        con = connection()
        query = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
        with monkeypatch.context() as patched:
            patched.setattr(pdrisk.engines.sql.servers.sql_table, "read", lambda *_: 1 / 0)
            with pytest.raises(pdrisk.QueryFailedError):
                pdrisk.sql(query, con, eps=1, keys=["north"])
        assert len(pdrisk.sql(query, con, eps=1, keys=["north"])) == 1
        assert left_behind(con) == []

    def test_nothing_is_drawn(self, monkeypatch):
        drawn = without_noise(monkeypatch)
        monkeypatch.setattr(pdrisk.engines.sql.servers.sql_table, "read", lambda *_: 1 / 0)
        with pytest.raises(pdrisk.QueryFailedError):
            pdrisk.sql("SELECT COUNT(*) FROM people", connection(), eps=1)
        assert drawn == []

    def test_a_refusal_inside_is_passed_on(self, monkeypatch):
        # What pdrisk says itself speaks of declared things only.
        def refusing(*arguments):
            raise pdrisk.ParameterError("declared")

        monkeypatch.setattr(pdrisk.engines.sql.servers.sql_table, "read", refusing)
        with pytest.raises(pdrisk.ParameterError, match="declared"):
            pdrisk.sql("SELECT COUNT(*) FROM people", connection(), eps=1)


class TestSeveralAtOnce:
    """Calls do not see each other's keys, frames or answers."""

    @pytest.mark.slow
    def test_threads_with_a_cursor_each(self, monkeypatch):
        without_noise(monkeypatch)
        con = connection()
        frames = {n: pd.DataFrame({"g": ["a"] * n + ["b"], "x": 1.0}) for n in range(1, 9)}
        wrong, ready = [], threading.Barrier(8)

        def ask(n, own):
            ready.wait()
            for _ in range(6):
                found = pdrisk.sql("SELECT COUNT(*) AS n FROM f GROUP BY g", own, eps=1, keys=["a", "b"], f=frames[n])
                both = pdrisk.sql("SELECT COUNT(*) AS n FROM people GROUP BY id", own, eps=1, keys=[n, n + 1, -n])
                if (found["n"].tolist(), both["n"].tolist()) != ([n, 1], [1, 1, 0]):
                    wrong.append(n)

        threads = [threading.Thread(target=ask, args=(n, con.cursor() if n % 2 else None)) for n in frames]
        monkeypatch.setattr(duckdb, "default_connection", lambda: con.cursor())
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_connections_of_one_database_and_of_others(self, monkeypatch):
        without_noise(monkeypatch)
        one, other = connection(), connection()
        other.execute("DELETE FROM people WHERE id >= 50")
        query = "SELECT COUNT(*) FROM people"
        assert [pdrisk.sql(query, con, eps=1).iat[0, 0] for con in (one, other, one.cursor())] == [120, 50, 120]
