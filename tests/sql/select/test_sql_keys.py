"""Groups are those of the public list, in its order: each record is in one of them or in none."""

import datetime
import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
from pdrisk.errors import ParameterError
from sql_people import PEOPLE, connection, described, refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

NAN = math.nan


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    return without_noise(monkeypatch)


def counts(source: object, keys: object, by: str = "g", where: str = "") -> list[float]:
    """How many records each group of a table or frame t has."""
    query = f"SELECT COUNT(*) AS n FROM t {where} GROUP BY {by}"
    if isinstance(source, duckdb.DuckDBPyConnection):
        return pdrisk.sql(query, source, eps=1, keys=keys)["n"].tolist()
    return pdrisk.sql(query, eps=1, keys=keys, t=source)["n"].tolist()


def table(sql_type: str, *values: object) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (g {sql_type})")
    for value in values:
        con.execute(f"INSERT INTO t VALUES (CAST(? AS {sql_type}))", [None if value is None else str(value)])
    return con


SURE = 1e6
OCCUR = ["north", "south", "west", "missing"]  # regions of PEOPLE
DAY, TIME = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
# Type: values, keys, how many records each key has.
TYPES = {
    "VARCHAR": (["a", "A", "a ", "", None, "ä", "a"], ["a", "A", "a ", "", None, "ä", "z"], [2, 1, 1, 1, 1, 1, 0]),
    "BOOLEAN": (["true", "false", None, "true"], [None, False, True], [1, 1, 2]),
    "TINYINT": ([1, 2, 2, None], [2, np.int64(1), 5.0], [2, 1, 0]),
    "UINTEGER": ([2**32 - 1, 0], [2**32 - 1, 1, 0], [1, 0, 1]),
    "BIGINT": ([2**53, 2**53 + 1, -5], [2**53 + 1, 2**53, -5], [1, 1, 1]),
    "DOUBLE": (["0.0", "-0.0", "nan", None, "inf", 0.1], [0, NAN, math.inf, -math.inf, 0.1], [2, 2, 1, 0, 1]),
    "FLOAT": (["-0.0", "nan", 0.1, "inf"], [0.0, None, 0.1, math.inf], [1, 1, 1, 1]),
    "DECIMAL(4, 2)": ([0.1, 1.5, None], [Decimal("0.1"), 0.1 + 1e-12, 1.5, None], [1, 0, 1, 1]),
    "DATE": ([DAY, "2020-01-03", None], [DAY, pd.Timestamp("2020-01-03"), None], [1, 1, 1]),
    "TIMESTAMP": ([TIME, "2020-01-02", None], [TIME, DAY, pd.NaT, pd.Timestamp("2021")], [1, 1, 1, 0]),
}


class TestKeys:
    """A key is compared as a value of the group's type; every kind of missing is one."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", TYPES)
    def test_types(self, sql_type):
        values, keys, expected = TYPES[sql_type]
        assert counts(table(sql_type, *values), keys) == expected
        assert counts(table(sql_type, *values[::-1]), keys[::-1]) == expected[::-1]
        assert counts(table(sql_type), keys) == [0] * len(keys)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", ["VARCHAR", "DOUBLE", "DECIMAL(4, 2)", "TIMESTAMP"])
    def test_each_record_is_in_one_group_at_most(self, sql_type):
        values, keys, _ = TYPES[sql_type]
        for value in values[:4]:
            assert sum(counts(table(sql_type, value), keys)) <= 1

    def test_an_enum_is_text(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT unnest(['a', 'b', 'a', NULL])::ENUM('a', 'b', 'unused') AS g")
        assert counts(con, ["unused", "b", "elsewhere", "a", None]) == [0, 1, 0, 2, 1]

    def test_missing_texts_in_every_frame(self):
        values = ["a", None, "b", "a"]
        frames = [
            pd.DataFrame({"g": values}),
            pd.DataFrame({"g": pd.array(values, dtype="string")}),
            pd.DataFrame({"g": pd.Categorical(values)}),
            pl.DataFrame({"g": values}),
            pa.table({"g": values}),
            pa.table({"g": pa.array(values).dictionary_encode()}),
        ]
        for frame in frames:
            assert counts(frame, ["a", None, "c"]) == [2, 1, 0]
            assert counts(frame, ["b"]) == [1]

    def test_missing_numbers_in_every_frame(self):
        values = [1.5, NAN, -0.0, 0.0]
        frames = [
            pd.DataFrame({"g": values}),
            pl.DataFrame({"g": values}),
            pl.DataFrame({"g": [*values[:1], None, *values[2:]]}),
            pa.table({"g": pa.array(values)}),
        ]
        for frame in frames:
            assert counts(frame, [-0.0, None, 1.5]) == [2, 1, 1]

    def test_dates_of_pandas(self):
        frame = pd.DataFrame({"g": pd.to_datetime(["2020-01-02 00:00", None, "2020-01-02 12:00"])})
        assert counts(frame, [DAY, None], by="TRY_CAST(g AS DATE)") == [2, 1]
        assert counts(frame, [2020, 2021], by="year(g)") == [2, 0]

    def test_texts_with_anything_in_them(self):
        texts = ["it's", 'a "b"', "a;--b", "%", "NULL", "\n", "😀", "\u0061\u0308", "\u00e4", "a\0b", "a"]
        assert counts(pd.DataFrame({"g": texts}), texts) == [1] * len(texts)

    def test_several_columns(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('a', 1), ('a', 2), (NULL, 1), ('b', NULL)) AS v(g, h)")
        assert counts(con, [("b", None), ("a", 2), (None, 1), (None, None)], by="g, h") == [1, 1, 1, 0]
        assert counts(con, {"H": [1, 2], "g": ["a", "b"]}, by="g, h") == [1, 1, 0, 0]  # the last varies fastest
        assert counts(con, {"h": [1, 2], "g": ["a"]}, by="h, g, h") == [1, 1]

    @pytest.mark.parametrize(
        "keys", [("a", "b"), np.array(["a", "b"]), pd.Index(["a", "b"]), iter(["a", "b"]), {"g": ("a", "b")}]
    )
    def test_lists_of_every_kind(self, keys):
        assert counts(pd.DataFrame({"g": ["b", "b", "a"]}), keys) == [1, 2]

    def test_of_an_expression(self):
        con = connection()
        query = "SELECT upper(region) AS r, COUNT(*) AS n FROM people GROUP BY upper(region)"
        for keys in (["NORTH"], {"r": ["NORTH"]}, {"upper(region)": ["NORTH"]}):
            assert pdrisk.sql(query, con, eps=1, keys=keys)["n"].tolist() == [(PEOPLE["region"] == "north").sum()]

    @pytest.mark.slow
    def test_of_a_dict_within_where(self):
        """A dict serves many queries, so keys that this one rules out are no groups; a list says what is shown."""
        con = table("INTEGER", 1, 2, 3, 3, None)
        query = "SELECT g, COUNT(*) AS n FROM t WHERE {} GROUP BY g"
        for where, expected in {
            "g IN (3, 2)": [2, 3], "g >= 2": [2, 3, 9], "g = 9 OR g = 1": [1, 9], "g BETWEEN 0 AND 1": [1],
        }.items():  # fmt: skip
            answer = pdrisk.sql(query.format(where), con, eps=1, keys={"g": [1, 2, 3, 9]})
            assert answer["g"].tolist() == expected, where
            assert pdrisk.sql(query.format(where), con, eps=1, keys=[1, 2, 3, 9])["g"].tolist() == [1, 2, 3, 9]
        mean = "SELECT AVG(n) AS m FROM (SELECT g, COUNT(*) AS n FROM t WHERE g IN (2, 3) GROUP BY g)"
        assert pdrisk.sql(mean, con, eps=1, keys={"g": [1, 2, 3, 9]})["m"].tolist() == [1.5]
        assert pdrisk.sql(query.format("g > ?"), con, eps=1, keys={"g": [1, 9]}, params=[5])["g"].tolist() == [1, 9]
        with pytest.raises(pdrisk.ParameterError, match="leaves none of the public keys of g"):
            pdrisk.sql(query.format("g = 7"), con, eps=1, keys={"g": [1, 2]})

    def test_many(self):
        frame = pd.DataFrame({"g": np.arange(50_000)})
        assert counts(frame, range(-1, 49_999)) == [0.0] + [1.0] * 49_999


LISTED = {"s": ["a", "b", "C"], "n": [0, 1, 2, 3], "m": [1, None]}
COMPUTED = {  # expressions of columns with listed keys, and the groups that these make
    "UPPER(s)": ["A", "B", "C"],
    "COALESCE(s, '?')": ["a", "b", "C", "?"],
    "n // 2": [0, 1],
    "n / 2": [0, 0.5, 1, 1.5],
    "m + 1": [2, None],
    "n, n - 1": [(0, -1), (1, 0), (2, 1), (3, 2)],
    "n % 2, CASE WHEN n > 2 THEN 'big' ELSE 'small' END": [(0, "small"), (1, "small"), (1, "big")],
    "s || '!' || s": ["a!a", "b!b", "C!C"],
    "s = 'a'": [False, True],  # all that it can be, and in this order
    "s, n % 2": [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("C", 0), ("C", 1)],
}


class TestOfListedColumns:
    """Expressions of columns with listed keys have the groups that these make."""

    @staticmethod
    def rows(n=300):
        draw = np.random.default_rng(3)
        text, numbers = draw.choice(["a", "b", "C", None], n), draw.integers(0, 4, n)
        return pd.DataFrame({"s": text, "n": numbers, "m": pd.array(draw.choice([1, None], n), dtype="Int64")})

    @pytest.mark.parametrize("by", COMPUTED)
    def test_by_plain_sql(self, by):
        frame, groups = self.rows(), by.split(", ") if by.startswith(("n", "s,")) else [by]
        names = ", ".join(f"{each} AS g{at}" for at, each in enumerate(groups))
        query = f"SELECT {names}, COUNT(*) AS n FROM frame GROUP BY ALL"
        listed = {name: keys for name, keys in LISTED.items() if name in by}
        answer = pdrisk.sql(query, eps=1, keys=listed, frame=frame)
        found = [tuple(None if pd.isna(each) else each for each in row[:-1]) for row in answer.itertuples(index=False)]
        assert found == [each if isinstance(each, tuple) else (each,) for each in COMPUTED[by]]
        con = duckdb.connect()
        con.register("frame", frame)
        exact = {row[:-1]: row[-1] for row in con.execute(query).fetchall()}
        assert answer["n"].tolist() == [exact[row] for row in found]
        declared = frame.dprisk.declare(keys={name: keys for name, keys in listed.items() if name != "m"})
        if "m" not in by:
            again = pdrisk.sql(query, eps=1, frame=declared)
            pd.testing.assert_frame_equal(again, answer, check_like=True)

    def test_within_where_and_lists(self):
        query = "SELECT UPPER(s) AS u, COUNT(*) AS n FROM frame WHERE s IN ('a', 'b') GROUP BY u"
        assert pdrisk.sql(query, eps=1, frame=self.rows())["u"].tolist() == ["A", "B"]
        rolled = pdrisk.sql(
            "SELECT n % 2 AS odd, n, COUNT(*) AS k FROM frame GROUP BY ROLLUP (odd, n)",
            eps=1, keys={"n": LISTED["n"]}, frame=self.rows(),
        )  # fmt: skip
        assert len(rolled) == 4 + 2 + 1
        own = pdrisk.sql(
            "SELECT n % 2 AS odd, COUNT(*) AS k FROM frame GROUP BY odd",
            eps=1, keys={"odd": [1, 5], "n": LISTED["n"]}, frame=self.rows(),
        )  # fmt: skip
        assert own["odd"].tolist() == [1, 5]

    def test_what_is_no_number_is_one_missing_group(self):
        frame = self.rows()
        query = "SELECT sqrt(n - 2) AS g, COUNT(*) AS k FROM frame GROUP BY g"  # NaN, or an error, by DuckDB's version
        answer = pdrisk.sql(query, eps=1, keys={"n": LISTED["n"]}, frame=frame)
        assert [None if pd.isna(key) else key for key in answer["g"]] == [None, 0.0, 1.0]
        assert answer["k"].tolist() == [sum(frame["n"] < 2), sum(frame["n"] == 2), sum(frame["n"] == 3)]

    @pytest.mark.parametrize(
        ("by", "how"), [("n % ?", {"params": [2]}), ("n + q", {}), ("q", {}), ("n + random()", {})]
    )
    def test_not_of_parameters_or_other_columns(self, by, how):
        keys = {"n": list(range(200)), "s": list(map(str, range(200)))}
        with pytest.raises(ParameterError, match=r"needs the public list|from record to record"):
            pdrisk.sql(
                f"SELECT {by} AS g, COUNT(*) AS k FROM frame GROUP BY g",
                eps=1, keys=keys, frame=self.rows().assign(q=1), **how,
            )  # fmt: skip


class TestOrder:
    """The order of rows is that of the keys, never of the data."""

    @pytest.mark.parametrize("threads", [1, 4])
    def test_order_of_keys(self, threads):
        con = duckdb.connect(config={"threads": threads})
        rng = np.random.default_rng(5)
        frame = pd.DataFrame({"g": rng.integers(0, 1000, 30_000), "x": 1.0})  # noqa: F841 - found by DuckDB
        con.execute("CREATE TABLE t AS FROM frame")
        keys = rng.permutation(1100).tolist()
        answer = pdrisk.sql("SELECT g, SUM(x), COUNT(*) FROM t GROUP BY g", con, eps=1, bounds=(0, 1), keys=keys)
        assert answer["g"].tolist() == keys

    def test_of_permuted_data(self):
        answers = []
        for seed in range(3):
            frame = PEOPLE.sample(frac=1, random_state=seed)
            query = "SELECT region, sex, AVG(distance), MEDIAN(age) FROM t GROUP BY ALL"
            keys = {"region": ["south", None, "north"], "sex": ["m", "f"]}
            answers.append(pdrisk.sql(query, eps=1, bounds=(0, 99), keys=keys, t=frame))
        pd.testing.assert_frame_equal(answers[0], answers[1])
        pd.testing.assert_frame_equal(answers[0], answers[2])


class TestObserved:
    """``keys="observed"`` says that the keys themselves are public: all of them, before WHERE, sorted, NULL last."""

    def test_sorted_with_null(self):
        answer = pdrisk.sql("SELECT region, COUNT(*) FROM people GROUP BY region", connection(), eps=1, keys="observed")
        assert answer["region"].fillna("missing").tolist() == OCCUR
        assert described(answer).keys_from == "data" and described(answer).without_missing == ()
        query = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"  # shares are those of everybody
        assert pdrisk.sql(query, connection(), eps=SURE, keys="observed")["n"].sum() == len(PEOPLE)

    def test_before_where(self):
        query = "SELECT region, COUNT(*) AS n FROM people WHERE id < 2 GROUP BY region"
        answer = pdrisk.sql(query, connection(), eps=1, keys="observed")
        assert answer["region"].fillna("missing").tolist() == OCCUR
        assert answer["n"].tolist() == [1, 1, 0, 0]

    def test_before_the_where_of_a_subquery(self):
        """Else a filter for one person would tell whether somebody fits it."""
        query = "SELECT region, COUNT(*) FROM (SELECT * FROM people WHERE id < 2) GROUP BY region"
        answer = pdrisk.sql(query, connection(), eps=1, keys="observed")
        assert answer["region"].fillna("missing").tolist() == OCCUR

    def test_after_the_where_of_a_view(self):
        """Who owns the view has chosen whom it shows."""
        con = connection()
        con.execute("CREATE VIEW few AS SELECT * FROM people WHERE id < 2")
        query = "SELECT region, COUNT(*) FROM (SELECT * FROM few WHERE id < 1) GROUP BY region"
        assert pdrisk.sql(query, con, eps=1, keys="observed")["region"].tolist() == ["north", "south"]

    def test_of_an_expression(self):
        with pytest.raises(pdrisk.ParameterError, match="is computed: list its keys"):
            pdrisk.sql(
                "SELECT age > 30 AS old, COUNT(*) FROM people GROUP BY old", connection(), eps=1, keys="observed"
            )

    def test_several(self):
        query = "SELECT sex, member, COUNT(*) AS n FROM people GROUP BY sex, member"
        answer = pdrisk.sql(query, connection(), eps=1, keys="observed")
        expected = PEOPLE.groupby(["sex", "member"]).size()
        assert list(zip(answer["sex"], answer["member"], strict=True)) == list(expected.index)
        assert answer["n"].tolist() == expected.tolist()

    def test_floats(self):
        con = table("DOUBLE", "0.0", "-0.0", "nan", None, "inf", -1.5)
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", con, eps=1, keys="observed")
        assert answer["g"].tolist()[:-1] == [-1.5, 0.0, math.inf] and math.isnan(answer["g"].iloc[-1])
        assert answer["n"].tolist() == [1, 2, 1, 2]

    def test_nobody(self):
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", table("VARCHAR"), eps=1, keys="observed")
        assert answer.columns.tolist() == ["g", "n"]
        assert len(answer) == 0

    def test_dates(self):
        con = table("DATE", DAY, "2019-12-31", DAY)
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", con, eps=1, keys="observed")
        assert answer["g"].tolist() == [pd.Timestamp("2019-12-31"), pd.Timestamp(DAY)]
        assert answer["n"].tolist() == [1, 2]


@pytest.mark.parametrize("key", ["\ud800", "a\ud800"])
def test_keys_that_no_column_holds_are_refused(key, monkeypatch):
    query = "SELECT region, COUNT(*) FROM people GROUP BY region"
    refusal(monkeypatch, query, connection(), eps=1, keys=[key])


def test_days_beyond_python_are_refused_as_keys(monkeypatch):
    query = "SELECT day, COUNT(*) FROM people GROUP BY day"
    refusal(monkeypatch, query, connection(), eps=1, keys=[np.datetime64("20000-01-01")])
