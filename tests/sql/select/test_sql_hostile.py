"""What a hostile reader of the code found: queries that told of one person, each with the person and without."""

import datetime
from decimal import Decimal
from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
import pdrisk._answer.releasing
from pdrisk import Dataset
from sql_people import described, without_noise

BOB = "Bob Smith"
DAY = datetime.datetime(2020, 1, 1)


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


def people(*names: str) -> pd.DataFrame:
    return pd.DataFrame({"name": pd.Series(names, dtype=object), "x": 1.5, "d": DAY})


WITHOUT, WITH = people("Ann", "Cy"), people("Ann", "Cy", BOB)
LATE = f"CASE WHEN name = '{BOB}' THEN TRY_CAST('300000-01-01' AS DATE) ELSE TRY_CAST('2020-01-01' AS DATE) END"
GROWN = f"CASE WHEN name = '{BOB}' THEN 'a' ELSE '' END"
for _ in range(5):
    GROWN = f"replace({GROWN}, 'a', '{'a' * 500}')"
DOUBLED = f"CASE WHEN name = '{BOB}' THEN 'a' ELSE '' END"
for _ in range(40):
    DOUBLED = f"regexp_replace({DOUBLED}, '', 'aa', 'g')"
TYPES = ["HUGEINT", "UHUGEINT", "DECIMAL(38,0)", "DECIMAL(38,37)", "BIGINT", "UBIGINT", "DOUBLE"]


class TestOneRecordStopsNothing:
    """Whether a request fails tells nothing of a record: it is refused, or answered, with one person and without."""

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(*) FROM t WHERE name LIKE 'Bob Smit!' ESCAPE '!'",
            f"SELECT COUNT(*) FILTER (WHERE CASE WHEN name = '{BOB}' THEN date_diff('era', d, d) END > 0) FROM t",
            f"SELECT COUNT(*) FILTER (WHERE {LATE} < d), COUNT(*) FILTER (WHERE {LATE} > d) FROM t",
            f"SELECT COUNT(*) FILTER (WHERE CASE WHEN name = '{BOB}' THEN date_trunc('timezone', d) END > d) FROM t",
            f"SELECT COUNT(*) FILTER (WHERE length({GROWN}) > 1) FROM t",
            "SELECT COUNT(CAST(name AS INTEGER)), COUNT(name::DATE), COUNT(name::BOOLEAN) FROM t",
            f"SELECT COUNT(date_trunc('year', {LATE})), COUNT(time_bucket(INTERVAL 1 MONTH, {LATE})) FROM t",
            f"SELECT COUNT(strftime({LATE}, '%Y')), COUNT({LATE} + INTERVAL 500000 YEAR), COUNT({LATE} + 9000000000) "
            "FROM t",
            f"SELECT COUNT(*) FILTER (WHERE length({DOUBLED}) > 1) FROM t",
            "SELECT COUNT(split_part(name, '', 5)), COUNT(lpad(name, 0, 'x')), COUNT(strptime(name, '%Y')) FROM t",
            "SELECT COUNT(make_date(x * 1000000, 13, 32)), COUNT(width_bucket(x / 0, 0, 1, 3)), COUNT(epoch(d)) FROM t",
        ],
        ids=[
            "escape",
            "era",
            "cast shared by two",
            "timezone",
            "growing text",
            "casts",
            "far dates",
            "farther dates",
            "doubling text",
            "pieces of text",
            "numbers",
        ],
    )
    def test_it_is_the_same_with_and_without(self, query):
        assert self.outcome(query, WITHOUT) == self.outcome(query, WITH)

    @pytest.mark.parametrize(
        "where", ["name = '{bob}' AND x > {large}", "CASE WHEN name = '{bob}' THEN x > -{large} ELSE false END"]
    )
    @pytest.mark.parametrize(
        "large",
        [f"1{'0' * 400}", f"1{'0' * 400}.5", Decimal("1e400"), Decimal("-1e400")],
        ids=["whole", "with a point", "parameter", "negative"],
    )
    def test_numbers_beyond_floats(self, where, large):
        """DuckDB makes floats of them where a record is compared with them, and fails then."""
        params = [] if isinstance(large, str) else [large]
        query = f"SELECT COUNT(*) FROM t WHERE {where}".format(bob=BOB, large="?" if params else large)
        said = self.outcome(query, WITH, params)
        assert said == self.outcome(query, WITHOUT, params) == "a number in the query is too large for a float."

    def outcome(self, query, frame, params=()):
        try:
            return pdrisk.sql(query, eps=1, params=params, t=frame).columns.tolist()
        except pdrisk.ParameterError as error:
            return str(error)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("left", TYPES)
    @pytest.mark.parametrize("right", TYPES)
    def test_no_cast_that_could_fail_is_left_to_duckdb(self, left, right):
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (a {left}, b {right})")
        for one in ("-1", "1e19", "9.9"):
            con.execute("INSERT INTO t VALUES (TRY_CAST(? AS " + left + "), TRY_CAST(? AS " + right + "))", [one, one])
        con.execute(f"INSERT INTO t SELECT TRY_CAST(1e37 AS {left}), TRY_CAST(1e37 AS {right})")
        asked = ["a < b", "a > b", "a = b", "a + b > 0", "a - b > 0", "a * b > 0", "greatest(a, b) > 0", "a IN (b, 1)"]
        asked += ["CASE WHEN true THEN a ELSE b END > 0", "COALESCE(a, b) > 0"]
        counts = ", ".join(f"COUNT(*) FILTER (WHERE {each})" for each in asked)
        assert len(pdrisk.sql(f"SELECT {counts} FROM t", con, eps=100)) == 1


class TestErrors:
    """No error holds what a record holds, not even the labels of its type."""

    @pytest.mark.parametrize(
        "call", ["left(name, 1.5) = 'a'", "substr(name, x) = 'a'", "left(name, 10000000000000000000000) = 'a'"]
    )
    def test_labels_of_categories(self, call):
        frame = WITH.assign(name=WITH["name"].astype("category"))
        said = TestOneRecordStopsNothing().outcome(f"SELECT COUNT(*) FROM t WHERE {call}", frame)
        assert "Bob" not in str(said)

    def test_paths_beside_frames(self):
        with pytest.raises(pdrisk.ParameterError, match="only files that were named"):
            pdrisk.sql("SELECT COUNT(*) FROM read_parquet('x.parquet')", eps=1, t=WITH)

    def test_infinite_keys_of_integers(self):
        frame = pd.DataFrame({"k": pd.array([1], "Int64")})
        with pytest.raises(pdrisk.ParameterError, match="no record could have it"):
            pdrisk.sql("SELECT k, COUNT(*) FROM t GROUP BY k", eps=1, keys=[np.inf], t=frame)

    @pytest.mark.parametrize("value", [-(10**60), 10**60, "\ud800"])
    def test_constants_that_no_column_holds(self, value):
        with pytest.raises(pdrisk.ParameterError):
            pdrisk.sql("SELECT ?, COUNT(*) FROM t", eps=1, params=[value], t=WITH)

    @pytest.mark.parametrize(
        "column",
        [pd.Series([1j]), pd.Series(pd.period_range("2020", periods=1)), pd.Series(pd.interval_range(0, 1))],
        ids=["complex", "period", "interval"],
    )
    def test_frames_of_unusual_types(self, column):
        frame = pd.DataFrame({"n": [1], "c": column, "text": ["a"]})
        with pytest.raises(
            pdrisk.ParameterError, match=r"cannot read the frame 't': leave out 'c', or make numbers or"
        ):
            pdrisk.sql("SELECT COUNT(*) FROM t", eps=1, t=frame)

    def test_frames_of_others_with_unusual_types(self):
        """Decimals of 256 bits of Arrow, and whole numbers of 128 of Polars, are types that DuckDB does not read."""
        table = pa.table({"n": [1], "c": pa.array([1], pa.decimal256(60))})
        frame = pl.DataFrame({"n": [1], "c": pl.Series([1], dtype=pl.Int128)})
        for each in (table, frame, frame.lazy()):
            with pytest.raises(pdrisk.ParameterError, match=r"leave out 'c', or make numbers or text of it\.$"):
                pdrisk.Dataset(each).sql("SELECT COUNT(*) FROM data", eps=1)


class TestOneRecordChangesNoOther:
    """What a record is does not depend on what others are."""

    def test_decimals_among_objects(self):
        before = pd.DataFrame({"pay": pd.Series([Decimal("1.5")] * 10, dtype=object)})
        after = pd.DataFrame({"pay": pd.Series([Decimal("1.5")] * 10 + [Decimal("1.25")], dtype=object)})
        query = "SELECT COUNT(*) AS n FROM t WHERE pay = 1.5"
        assert [pdrisk.sql(query, eps=1, t=frame)["n"].item() for frame in (before, after)] == [10, 10]

    def test_groups_that_ignore_case(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t (g VARCHAR COLLATE NOCASE)")
        con.execute("INSERT INTO t VALUES ('north'), ('North'), ('south')")
        query = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
        for setting in ("SET default_collation = 'nocase'", "RESET default_collation"):
            con.execute(setting)
            answer = pdrisk.sql(query, con, eps=1, keys=["north", "North", "NORTH"])
            assert answer["n"].tolist() == [1, 1, 0]  # three people in all, and nobody in two groups


class TestSettings:
    """Settings of a connection, and macros on it, do not change an answer."""

    def test_default_order(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT 'a' AS g FROM range(10)")
        con.execute("SET default_order = 'DESC'")
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", con, eps=1, keys=["a", "b"])
        assert answer["n"].tolist() == [10, 0]

    def test_macros_of_names_that_syntax_stands_for(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT range AS x, range % 2 AS g FROM range(10)")
        con.execute("CREATE MACRO array_extract(a, b) AS 42")
        con.execute("CREATE MACRO duckdb_tables() AS TABLE SELECT 1 AS nothing")
        query = "SELECT g, QUANTILE_CONT(x, 0.9) AS q, MAX(x) AS m FROM t GROUP BY g"
        answer = pdrisk.sql(query, con, eps=1e6, bounds=(0, 9), keys=[0, 1], mechanism="laplace")
        assert answer["q"].round(5).tolist() == [7.2, 8.2]

    def test_generated_columns(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t (x INT, r DOUBLE GENERATED ALWAYS AS (random()) VIRTUAL)")
        with pytest.raises(pdrisk.ParameterError, match="generated columns"):
            pdrisk.sql("SELECT COUNT(*) FROM t WHERE r < 0.5", con, eps=1)


class TestTheCallersConnection:
    """What the caller has open stays as it is."""

    QUESTIONS: ClassVar = {
        "SQL": lambda con, **o: pdrisk.sql("SELECT COUNT(*), AVG(x) FROM t", con, eps=1, bounds=(0, 9), **o),
        "several statements": lambda con, **o: pdrisk.sql(
            "SELECT COUNT(*) FROM t UNION ALL SELECT SUM(x) FROM t", con, eps=1, bounds=(0, 9), **o
        ),
        "groups": lambda con, **o: pdrisk.sql("SELECT x, COUNT(*) FROM t GROUP BY x", con, eps=1, keys=[1, 8], **o),
        "a join": lambda con, **o: pdrisk.sql(
            "SELECT COUNT(DISTINCT x) FROM t JOIN o USING (x)", con, eps=1, person="x", **o
        ),
        "a view": lambda con, **o: pdrisk.sql("SELECT COUNT(*) FROM seen", con, eps=1, **o),
        "a temporary table": lambda con, **o: pdrisk.sql("SELECT COUNT(*) FROM mine", con, eps=1, **o),
        "a public table": lambda con, **o: pdrisk.sql(
            "SELECT COUNT(*) FROM f JOIN t USING (x)", con, eps=1, public="t", person="x", rows=1,
            f=pd.DataFrame({"x": [1]}), **o
        ),
        "count": lambda con, **o: Dataset((con, "t"), **o).count(eps=1),
        "mean": lambda con, **o: Dataset((con, "t"), **o).mean("x", eps=1, bounds=(0, 9)),
        "SQL of a Dataset": lambda con, **o: Dataset((con, "t"), **o).sql("SELECT COUNT(*) FROM data", eps=1),
        "Datasets joined": lambda con, **o: Dataset((con, "t"), person="x", **o).join(
            Dataset((con, "o"), person="x", **o)
        ).count(eps=1, rows=1),
    }  # fmt: skip

    @staticmethod
    def tables(con):
        con.execute("CREATE TABLE t AS SELECT range AS x FROM range(9); CREATE TABLE o AS SELECT x, x AS y FROM t")
        con.execute("CREATE VIEW seen AS FROM t; CREATE TEMP TABLE mine AS FROM t")

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    @pytest.mark.parametrize("name", QUESTIONS)
    def test_an_open_transaction(self, name, end, book, tmp_path):
        """What it changed is not seen, so no question is answered or paid, and it stays as it is."""
        ledger, ask = book(), self.QUESTIONS[name]
        with duckdb.connect(tmp_path / "of.db") as con:
            self.tables(con)
            con.begin()
            con.execute("DELETE FROM t WHERE x < 3; DELETE FROM mine; CREATE TABLE made AS SELECT 1 AS x")
            with pytest.raises(pdrisk.ParameterError, match="has an open transaction"):
                ask(con, ledger=ledger)
            assert con.execute("SELECT (SELECT COUNT(*) FROM t), COUNT(*), 5 FROM made").fetchone() == (6, 1, 5)
            con.rollback()
            assert con.execute("SELECT (SELECT COUNT(*) FROM t), COUNT(*) FROM mine").fetchone() == (9, 9)
            assert ledger.remaining().eps == 10**9
            con.begin()
            con.execute("DELETE FROM t WHERE x < 3")
            getattr(con, end)()
            ask(con, ledger=ledger)
            assert ledger.remaining().eps == 10**9 - 1

    def test_what_is_committed_is_seen(self):
        con = duckdb.connect()
        self.tables(con)
        con.begin()
        con.execute("DELETE FROM t WHERE x < 3")
        frame = pd.DataFrame({"x": [1, 2]})
        assert pdrisk.sql("SELECT COUNT(*) FROM f", con, eps=1, f=frame).iloc[0, 0] == 2  # none of the connection's
        con.commit()
        assert pdrisk.sql("SELECT COUNT(*), SUM(x) FROM t", con, eps=1, bounds=(0, 9)).to_numpy().tolist() == [[6, 33]]
        assert Dataset(con.table("t")).count(eps=1).value == 6

    def test_a_relation_is_read_in_the_transaction(self):
        con = duckdb.connect()
        self.tables(con)
        con.begin()
        con.execute("DELETE FROM t WHERE x < 3")
        assert Dataset(con.table("t")).sql("SELECT COUNT(*) FROM data", eps=1).iloc[0, 0] == 6
        con.rollback()
        assert con.execute("SELECT COUNT(*) FROM t").fetchone() == (9,)

    def test_an_aborted_transaction_stays_aborted(self):
        con = duckdb.connect()
        self.tables(con)
        con.begin()
        with pytest.raises(duckdb.Error):
            con.execute("SELECT error('no')").fetchall()
        for ask in self.QUESTIONS.values():
            with pytest.raises(pdrisk.ParameterError, match="Current transaction is aborted"):
                ask(con)
        con.rollback()
        assert con.execute("SELECT COUNT(*) FROM t").fetchone() == (9,)

    def test_only_what_is_passed_is_read(self):
        duckdb.default_connection().execute("CREATE OR REPLACE TABLE of_somebody_else AS SELECT 1 AS x")
        with pytest.raises(pdrisk.ParameterError, match="unknown table"):
            pdrisk.sql("SELECT COUNT(*) FROM of_somebody_else", eps=1, t=WITH)
        duckdb.default_connection().execute("DROP TABLE of_somebody_else")


class TestHeadings:
    """A heading is a heading only."""

    def test_order_by_is_not_caught_by_headings(self):
        frame = pd.DataFrame({"g": ["a", "b", "b"], "x": [5, 1, 1]})
        query = "SELECT g, -COUNT(*) AS v0, SUM(x) AS code FROM t GROUP BY g"
        kept = pdrisk.sql(query, eps=1, bounds=(0, 9), keys=["b", "a"], t=frame)
        assert kept["g"].tolist() == ["b", "a"]
        sorted_ = pdrisk.sql(f"{query} ORDER BY COUNT(*)", eps=1, bounds=(0, 9), keys=["b", "a"], t=frame)
        assert sorted_["g"].tolist() == ["a", "b"]

    @pytest.mark.parametrize("name", ["it's", "a\\b", "two\nlines", "tab\there", 'a"b', "zero\u200bwidth"])
    def test_odd_names_of_columns(self, name):
        quoted = '"' + name.replace('"', '""') + '"'
        answer = pdrisk.sql(f"SELECT SUM({quoted}) AS s FROM t", eps=1, bounds=(0, 9), t=pd.DataFrame({name: [1, 2]}))
        assert answer["s"].item() == 3

    def test_metadata_tells_of_the_filter(self):
        answer = pdrisk.sql("SELECT COUNT(*) FROM t WHERE x > 1", eps=1, t=WITH)
        assert "x" in described(answer).where
