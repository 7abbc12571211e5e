"""What a call may not say beside its query is refused just the same: eps, bounds, keys, params, con and frames."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import PEOPLE, connection, refusal

AVG = "SELECT AVG(age) FROM people"
COUNT = "SELECT COUNT(*) FROM people"
GROUPED = "SELECT region, COUNT(*) FROM people GROUP BY region"
NEED_KEYS = (
    "needs the public list of its groups, because the groups that occur reveal who is in the data: pass keys=[...]"
)


@pytest.fixture(scope="module")
def con():
    return connection()


EPS = {
    "none": (COUNT, {"eps": None}, "the query needs eps, the privacy loss it may spend in total: pass eps=1, or write"),
    "one without": ("SELECT AVG(age), dp_count(eps := 1) FROM people", {"eps": None}, "the query needs eps"),
    "zero": (COUNT, {"eps": 0}, "eps must be finite and above 0, but is 0"),
    "negative": (COUNT, {"eps": -0.5}, "eps must be finite and above 0, but is -0.5"),
    "nan": (COUNT, {"eps": math.nan}, "eps must be finite and above 0, but is nan"),
    "infinite": (COUNT, {"eps": math.inf}, "eps must be finite and above 0, but is inf"),
    "true": (COUNT, {"eps": True}, "eps must be a number, but is of type bool"),
    "text": (COUNT, {"eps": "1"}, "eps must be a number, but is of type str"),
    "a column": (COUNT, {"eps": PEOPLE["age"]}, "eps must be a number, but is of type Series"),
    "tiny": (COUNT, {"eps": 1e-13}, "is below 1e-12, where the noise is a trillion times"),
    "a tiny share": ("SELECT AVG(age), COUNT(*) FROM people", {"eps": 1.5e-12}, "is below 1e-12"),
    "huge": (COUNT, {"eps": 1e12, "mechanism": "laplace"}, "would add no noise at all"),
    "huge in the query": (
        "SELECT dp_count(eps := 1e12) FROM people", {"eps": None, "mechanism": "laplace"}, "would add no noise at all"
    ),
    "spent": (
        "SELECT dp_count(eps := 1), COUNT(*) FROM people", {"eps": 1},
        "the query may spend eps=1 in total, but asks for 1 in its dp_ functions and leaves nothing for 1 more",
    ),
    "overspent": (
        "SELECT dp_count(eps := 0.7), dp_mean(age, eps := 0.4) FROM people", {"eps": 1},
        "the query may spend eps=1 in total, but asks for 1.1 in its dp_ functions: pass a larger eps=",
    ),
    "overspent by little": ("SELECT dp_count(eps := 0.1), dp_sum(age, eps := 0.2) FROM people",
                            {"eps": Fraction(3, 10) - Fraction(1, 10**15)}, "the query may spend"),
    "overspent by a parameter": ("SELECT dp_count(eps := ?) FROM people", {"params": [2]}, "the query may spend eps=1"),
}  # fmt: skip
BOUNDS = {
    "none": (AVG, {"bounds": None}, "avg(age) needs bounds, the range its values can have: pass bounds={'age'"),
    "of another column": (AVG, {"bounds": {"distance": (0, 9)}}, "write dp_mean(age, lo := ..., hi := ...), or"),
    "reversed": (AVG, {"bounds": (9, 0)}, "bounds"),
    "equal": (AVG, {"bounds": (5, 5)}, "bounds"),
    "infinite": (AVG, {"bounds": (0, math.inf)}, "finite"),
    "nan": (AVG, {"bounds": (math.nan, 1)}, "finite"),
    "reversed in a dict": (AVG, {"bounds": {"age": (9, 0)}}, "bounds"),
    "of a misspelt column": (AVG, {"bounds": {"agee": (0, 9)}}, "pass bounds={'age': (lo, hi)}"),
    "of a column without a name": (AVG, {"bounds": {3: (0, 9)}}, "unknown column 3"),
    "three": (AVG, {"bounds": (0, 5, 9)}, "bounds must be a pair (lo, hi), but has more than two values"),
    "one": (AVG, {"bounds": [0]}, "bounds must be a pair (lo, hi), but has one value"),
    "a number": (AVG, {"bounds": 5}, "bounds must be a pair (lo, hi) of numbers"),
    "texts": (AVG, {"bounds": ("0", "9")}, "lo of bounds must be a number, but is of type str"),
    "missing": (AVG, {"bounds": (None, 9)}, "lo of bounds must be a number, but is missing"),
    "the data's": (AVG, {"bounds": "column"}, 'Bounds from the data ("column") are for the accessor, df.dprisk'),
    "of its column": ("SELECT AVG(1 / age) FROM people", {"bounds": {"age": (0, 9)}}, "needs the bounds of the expr"),
}  # fmt: skip
KEYS = {
    "none": (GROUPED, {}, f"GROUP BY region {NEED_KEYS}"),
    "none of several": ("SELECT COUNT(*) FROM people GROUP BY region, sex", {}, f"GROUP BY region, sex {NEED_KEYS}"),
    "empty": (GROUPED, {"keys": []}, "keys must list at least one group"),
    "empty dict": (GROUPED, {"keys": {"region": []}}, "keys must list at least one group"),
    "twice": (GROUPED, {"keys": ["north", "north"]}, "a key is listed twice; list each key once"),
    "missing twice": (GROUPED, {"keys": [None, "north", math.nan]}, "a key is listed twice"),
    "another word": (GROUPED, {"keys": "all"}, 'or the word "observed", "private" or "categories", but are'),
    "a number": (GROUPED, {"keys": 5}, "keys must"),
    "numbers for texts": (GROUPED, {"keys": [1]}, "a key of region is a number, but the group holds text: list keys"),
    "truth for texts": (GROUPED, {"keys": [True]}, "a key of region is a truth value, but the group holds text"),
    "lists": (GROUPED, {"keys": [["north"]]}, "key"),
    "objects": (GROUPED, {"keys": [object()]}, "a key of region is of type object, but the group holds text"),
    "bytes": (GROUPED, {"keys": [b"north"]}, "a key of region is of type bytes, but the group holds text"),
    "texts for numbers": ("SELECT COUNT(*) FROM people GROUP BY age", {"keys": ["30"]}, "a key of age is text"),
    "truth for numbers": ("SELECT COUNT(*) FROM people GROUP BY age", {"keys": [True]}, "age is a truth value"),
    "fractions": ("SELECT COUNT(*) FROM people GROUP BY age", {"keys": [30.5]}, "no record could have it"),
    "too large": ("SELECT COUNT(*) FROM people GROUP BY children", {"keys": [128]}, "a key of children is no TINYINT"),
    "numbers twice": ("SELECT COUNT(*) FROM people GROUP BY age", {"keys": [30, 30.0]}, "a key is listed twice"),
    "zero twice": ("SELECT COUNT(*) FROM people GROUP BY distance", {"keys": [0.0, -0.0]}, "a key is listed twice"),
    "numbers for truth": ("SELECT COUNT(*) FROM people GROUP BY member", {"keys": [0, 1]}, "a key of member is"),
    "other texts for dates": ("SELECT COUNT(*) FROM people GROUP BY day", {"keys": ["1.1.2020"]}, "a key of day is"),
    "times for dates": (
        "SELECT COUNT(*) FROM people GROUP BY day", {"keys": [datetime.datetime(2020, 1, 1, 12)]},
        "a key of day has a time of day, but the column holds dates",
    ),
    "zoned": (
        "SELECT COUNT(*) FROM people GROUP BY day", {"keys": [pd.Timestamp("2020", tz="UTC")]}, "has a time zone",
    ),
    "dates twice": (
        "SELECT COUNT(*) FROM people GROUP BY day", {"keys": [datetime.date(2020, 1, 1), pd.Timestamp("2020")]},
        "a key is listed twice",
    ),
    "one for two": ("SELECT COUNT(*) FROM people GROUP BY region, sex", {"keys": ["north"]}, "key"),
    "three for two": ("SELECT COUNT(*) FROM people GROUP BY region, sex", {"keys": [("north", "f", 1)]}, "key"),
    "dict of one for two": (
        "SELECT COUNT(*) FROM people GROUP BY region, sex", {"keys": {"region": ["north"]}},
        "GROUP BY sex needs the public list of its groups",
    ),
    "dict of others": (GROUPED, {"keys": {"sex": ["f"]}}, "GROUP BY region needs the public list of its groups"),
    "dict of misspelt ones": (
        "SELECT COUNT(*) FROM people GROUP BY region, sex", {"keys": {"region": ["n"], "sxe": ["f"]}},
        "Did you mean 'sxe' in keys= to be 'sex'",
    ),
    "dict of one twice": (GROUPED, {"keys": {"region": ["n"], "Region": ["s"]}}, "keys= names a group twice"),
    "without groups": (COUNT, {"keys": ["north"]}, "keys= lists the groups of GROUP BY, which is missing: write it"),
    "of hugeints": ("SELECT COUNT(*) FROM people GROUP BY TRY_CAST(age AS HUGEINT)", {"keys": [1]}, "TRY_CAST("),
    "of lists": ("SELECT COUNT(*) FROM odd GROUP BY words", {"keys": ["x"]}, "GROUP BY words holds lists: make text"),
    "of zoned times": ("SELECT COUNT(*) FROM odd GROUP BY z", {"keys": ["x"]}, "write TRY_CAST(z AS DATE)"),
}  # fmt: skip
PARAMS = {
    "none": (f"{COUNT} WHERE age > ?", {}, "the query has no value for parameter 1 (?): pass params=, a list for ?"),
    "too few": (f"{COUNT} WHERE age BETWEEN ? AND ?", {"params": [1]}, "the query has no value for parameter 2 (?)"),
    "too many": (f"{COUNT} WHERE age > ?", {"params": [1, 2]}, "the query has no place for parameter 2: take it out"),
    "unused": (COUNT, {"params": {"a": 1}}, "the query has no place for parameter a: take it out of params"),
    "another name": (f"{COUNT} WHERE age > $a", {"params": {"b": 1}}, "the query has no value for $a"),
    "a name for a place": (f"{COUNT} WHERE age > ?", {"params": {"a": 1}}, "has no value for parameter 1 (?)"),
    "a number": (f"{COUNT} WHERE age > ?", {"params": 3}, "params must be a list for ? or a dict for $name, not int"),
    "a text": (f"{COUNT} WHERE age > ?", {"params": "3"}, "params must be a list for ? or a dict for $name, not str"),
    "a list inside": (f"{COUNT} WHERE age IN ?", {"params": [[1, 2]]}, "parameter 1 must be text, a number"),
    "a column": (f"{COUNT} WHERE age > $x", {"params": {"x": PEOPLE["age"]}}, "parameter x must be text, a number"),
    "an array": (f"{COUNT} WHERE age > ?", {"params": [np.arange(3)]}, "parameter 1 must be text, a number"),
    "bytes": (f"{COUNT} WHERE age > ?", {"params": [b"1"]}, "parameter 1 must be text, a number"),
    "zoned": (f"{COUNT} WHERE day > ?", {"params": [pd.Timestamp("2020", tz="UTC")]}, "parameter 1 has a time zone"),
    "not finite": (f"{COUNT} WHERE age > ?", {"params": [Decimal("NaN")]}, "a number in the query is not finite"),
    "a NUL": (f"{COUNT} WHERE sex = ?", {"params": ["a\0b"]}, "parameter 1 holds a NUL character"),
    "text for a number": (f"{COUNT} WHERE age > ?", {"params": ["three"]}, "> compares numbers with text"),
    "as a column": ("SELECT AVG(?) FROM people", {"params": ["age"]}, "avg needs numbers, but its argument holds text"),
    "missing as bounds": ("SELECT dp_mean(age, lo := ?, hi := 9) FROM people", {"params": [None]}, "lo of bounds must"),
    "for a limit": (f"{GROUPED} LIMIT ?", {"params": [1.5], "keys": ["a"]}, "LIMIT takes a whole number written out"),
    "true for a limit": (f"{GROUPED} LIMIT ?", {"params": [True], "keys": ["a"]}, "LIMIT takes a whole number"),
}  # fmt: skip
ALL = {f"{kind}: {name}": it for kind, cases in (("eps", EPS), ("bounds", BOUNDS), ("keys", KEYS), ("params", PARAMS))
       for name, it in cases.items()}  # fmt: skip


@pytest.mark.parametrize(("query", "options", "why"), ALL.values(), ids=ALL.keys())
def test_options(query, options, why, con, monkeypatch):
    con.execute(
        "CREATE OR REPLACE TABLE odd AS SELECT ['SENTINEL'] AS words, TIMESTAMPTZ '2020-01-01 00:00:00+00' AS z"
    )
    assert why in str(refusal(monkeypatch, query, con, **{"eps": 1, "bounds": (0, 99), **options}))


class TestConnection:
    """Where the people are must be a connection that answers."""

    @pytest.mark.parametrize(
        ("con", "why"),
        [
            ("people.db", "con must be a DuckDB connection, not of type str: pass duckdb.connect(path)"),
            (PEOPLE, "con must be a DuckDB connection, not of type DataFrame: pass frames by keyword"),
            (duckdb, "not of type module"),
            (1.0, "not of type float"),
        ],
        ids=["path", "frame", "module", "number"],
    )
    def test_another_kind(self, con, why, monkeypatch):
        error = refusal(monkeypatch, COUNT, con, eps=1)
        assert why in str(error)
        assert isinstance(error, pdrisk.ColumnTypeError)

    def test_a_closed_connection(self, monkeypatch):
        con = connection()
        con.close()
        with pytest.raises(pdrisk.ParameterError, match="the connection cannot be asked for its tables"):
            pdrisk.sql(COUNT, con, eps=1)

    def test_a_broken_view(self, monkeypatch):
        con = connection()
        con.execute("CREATE TABLE gone AS FROM people; CREATE VIEW seen AS FROM gone; DROP TABLE gone")
        assert "unknown table 'gone'" in str(refusal(monkeypatch, "SELECT COUNT(*) FROM seen", con, eps=1))

    def test_a_transaction_stays_open(self, con, monkeypatch):
        con.begin()
        con.execute("CREATE TABLE mine AS SELECT 1 AS a")
        for query in ("SELECT * FROM mine", "SELECT COUNT(*) FROM nobody", "SELEKT", "SELECT SUM(b) FROM mine"):
            with pytest.raises(pdrisk.ParameterError):
                pdrisk.sql(query, con, eps=1)
        assert con.execute("FROM mine").fetchall() == [(1,)]
        con.rollback()
        with pytest.raises(duckdb.CatalogException):
            con.execute("FROM mine")


class TestFrames:
    """What is passed by keyword must be a frame or the path of a file."""

    @pytest.mark.parametrize(
        "value",
        [5, b"x.parquet", [1, 2], {"age": [1]}, PEOPLE["age"], PEOPLE.to_numpy(), None, open, "", "x\0y"],
        ids=lambda value: type(value).__name__,
    )
    def test_another_kind(self, value, monkeypatch):
        error = refusal(monkeypatch, COUNT, eps=1, people=value)
        assert (
            "people= is no option, so it should be a pandas, Polars or Arrow frame, or the path of a Parquet file"
            in str(error)
        )
        assert isinstance(error, pdrisk.ColumnTypeError)

    @pytest.mark.parametrize("name", ["where", "by", "metric", "neighbours"])
    def test_an_option_of_the_accessor_in_text(self, con, name, monkeypatch):
        """It is no path of a file that the query does not read."""
        error = refusal(monkeypatch, COUNT, con, eps=1, **{name: "replace-one"})
        assert f"{name}= is an option of df.dprisk" in str(error)

    def test_a_misspelt_option(self, monkeypatch):
        frame = PEOPLE
        assert "bound= is no option" in str(refusal(monkeypatch, AVG, eps=1, people=frame, bound=(0, 9)))
        error = refusal(monkeypatch, COUNT, eps=1, people=frame, parameters=[1])
        assert "Parameters of the query go into params=" in str(error)

    def test_a_relation_and_a_stream(self, monkeypatch):
        relation = connection().sql("FROM people")
        assert "not of type DuckDBPyRelation" in str(refusal(monkeypatch, COUNT, eps=1, people=relation))
        stream = relation.to_arrow_reader() if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch()
        assert "not of type RecordBatchReader" in str(refusal(monkeypatch, COUNT, eps=1, people=stream))

    @pytest.mark.parametrize("path", ["nowhere.parquet", "/proc/version"])
    def test_a_file_that_is_none(self, path, monkeypatch):
        assert "see whether it exists and is whole" in str(refusal(monkeypatch, COUNT, eps=1, people=path))

    def test_a_broken_file_beside_an_open_transaction(self, con, tmp_path, monkeypatch):
        (tmp_path / "bad.parquet").write_text("no parquet")
        for path in (tmp_path / "bad.parquet", tmp_path / "none.parquet"):
            assert "see whether it exists and is whole" in str(refusal(monkeypatch, COUNT, con, eps=1, people=path))

    def test_a_path_that_was_not_named(self, tmp_path, monkeypatch):
        PEOPLE.to_parquet(tmp_path / "a.parquet")
        PEOPLE.to_parquet(tmp_path / "b.parquet")
        for query in (f"SELECT COUNT(*) FROM '{tmp_path / 'a.parquet'}'",
                      f"SELECT COUNT(*) FROM read_parquet('{tmp_path / 'a.parquet'}')"):  # fmt: skip
            error = refusal(monkeypatch, query, eps=1, people=str(tmp_path / "b.parquet"))
            assert "a query may read only files that were named" in str(error)

    def test_python_variables_are_not_read(self, con, monkeypatch):
        local_people = PEOPLE  # noqa: F841 - DuckDB would find it by its name
        for connected in (None, con):
            assert "unknown table" in str(refusal(monkeypatch, "SELECT COUNT(*) FROM local_people", connected, eps=1))

    def test_a_query_that_is_no_text(self, monkeypatch):
        for query in (None, 5, b"SELECT 1", ["SELECT 1"]):
            assert "a query is text" in str(refusal(monkeypatch, query, eps=1))

    def test_an_unknown_column_of_a_frame(self, monkeypatch):
        error = refusal(monkeypatch, "SELECT SUM(agee) FROM people", eps=1, bounds=(0, 1), people=PEOPLE)
        assert str(error) == (
            "unknown column 'agee'; the frame has: id, age, distance, children, region, sex, member, day. "
            "Did you mean 'age'?"
        )
        assert isinstance(error, pdrisk.UnknownColumnError)
