"""Of whatever type a column is, a record is the float nearest to it, moved into the bounds, or missing."""

import datetime
import math
import uuid
from collections import Counter
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import oracle
import pdrisk
from pdrisk._core.spread import Std
from pdrisk._core.universe import Universe
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

STATISTICS = {
    "COUNT(x)": "count",
    "SUM(x)": "sum",
    "AVG(x)": "mean",
    "MEDIAN(x)": "median",
    "QUANTILE_CONT(x, 0.9)": "quantile(0.9)",
    "MIN(x)": "min",
    "MAX(x)": "max",
    "VAR_SAMP(x)": "var",
    "STDDEV_POP(x)": "std(ddof=0)",
}
QUERY = f"SELECT {', '.join(STATISTICS)} FROM t"
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    return without_noise(monkeypatch)


def assert_answers(found, records, lo, hi) -> None:
    """The answers to QUERY, by definition."""
    kept = oracle.fractions(min(max(float(x), lo), hi) for x in records if x is not None and float(x) == float(x))
    low, high = oracle.fractions((lo, hi))
    for value, label in zip(found, STATISTICS.values(), strict=True):
        size = max(abs(lo), abs(hi), hi - lo) ** (2 if label == "var" else 1)
        expected = oracle.DEFINITIONS[label].value(kept, low, high)
        # A standard deviation is the root of a variance of places, 2**-30 of the width apart: near 0, 2**-14 of it.
        near = 2.0**-14 if label.startswith("std") else 1e-8
        assert value == pytest.approx(expected, rel=1e-8, abs=near * size * max(1, len(kept))), label


def table(sql_type: str, *values: object) -> duckdb.DuckDBPyConnection:
    """A table t with the column x, and a row number."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (x {sql_type}, i INTEGER)")
    for i, value in enumerate(values):
        written = "NULL" if value is None else f"CAST('{value}' AS {sql_type})"
        con.execute(f"INSERT INTO t VALUES ({written}, {i})")
    return con


TYPES = {
    "TINYINT": [-128, 127, 0, None, 5],
    "UTINYINT": [0, 255, None, 7],
    "SMALLINT": [-32768, 32767, 3],
    "USMALLINT": [65535, 0, 3, None],
    "INTEGER": [-(2**31), 2**31 - 1, 0, 5],
    "UINTEGER": [2**32 - 1, 0, 1],
    "BIGINT": [-(2**63), 2**63 - 1, 2**53 + 1, 2**53, -(2**53) - 1, None],
    "UBIGINT": [2**64 - 1, 2**63, 2**53 + 3, 0],
    "HUGEINT": [-(2**127), 2**127 - 1, 5, None],
    "UHUGEINT": [2**128 - 1, 0, 5],
    "DECIMAL(4, 1)": [Decimal("-999.9"), Decimal("0.1"), None, Decimal("999.9")],
    "DECIMAL(18, 9)": [Decimal("-999999999.999999999"), Decimal("0.1")],
    "DECIMAL(38, 0)": [10**38 - 1, 1 - 10**38, 0],
    "DECIMAL(38, 38)": [Decimal("0.1"), Decimal("-0.9")],
    "FLOAT": [0.1, -0.25, "nan", "inf", "-inf", None, 3e38],
    "DOUBLE": [0.1, -0.25, "nan", "inf", "-inf", None, 1.7e308, -1.7e308, 5e-324, "-0.0"],
}
UNIVERSES = [(-1.5, 200.25), (-1e20, 1e20), (2.0**53, 2.0**54)]


class TestTypes:
    """Every type of number is a float, whatever its width."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize(("lo", "hi"), UNIVERSES)
    @pytest.mark.parametrize("sql_type", TYPES)
    def test_numbers(self, sql_type, lo, hi):
        records = [float(np.float32(x)) if sql_type == "FLOAT" and x is not None else x for x in TYPES[sql_type]]
        answer = pdrisk.sql(QUERY, table(sql_type, *TYPES[sql_type]), eps=9, bounds=(lo, hi))
        assert_answers(answer.iloc[0], records, lo, hi)

    def test_truth_values(self):
        answer = pdrisk.sql(QUERY, table("BOOLEAN", "true", "false", None, "true"), eps=9, bounds=(0, 1))
        assert_answers(answer.iloc[0], [1, 0, 1], 0.0, 1.0)

    @pytest.mark.parametrize("sql_type", ["VARCHAR", "DATE", "INTEGER[]", "STRUCT(a INTEGER)", "ENUM('a')", "BLOB"])
    def test_others_can_be_counted(self, sql_type):
        con = table(sql_type)
        con.execute("INSERT INTO t (i) VALUES (1), (2)")
        assert pdrisk.sql("SELECT COUNT(x), COUNT(*) FROM t", con, eps=1).iloc[0].tolist() == [0, 2]
        said = "are numbers, but it holds dates" if sql_type == "DATE" else "needs numbers, but its argument holds"
        with pytest.raises(pdrisk.ColumnTypeError, match=said):
            pdrisk.sql("SELECT AVG(x) FROM t", con, eps=1, bounds=(0, 1))
        with pytest.raises(pdrisk.ColumnTypeError, match="needs numbers, but its argument holds"):
            pdrisk.sql("SELECT SUM(x) FROM t", con, eps=1, bounds=(0, 1))

    def test_texts_that_are_numbers_for_some(self):
        con = table("VARCHAR", "1.5", "x", "", "2", "nan", "inf", None, "1e400")
        query = QUERY.replace("FROM t", "FROM (SELECT TRY_CAST(x AS DOUBLE) AS x FROM t)")
        found = pdrisk.sql(query, con, eps=9, bounds=(0, 4))
        assert_answers(found.iloc[0], [1.5, 2.0], 0.0, 4.0)  # by one grammar for all engines: digits, no words


class TestMissing:
    """NULL and NaN are missing in every engine's frames, infinities are large numbers."""

    VALUES = (1.0, NAN, 3.0, INF, -INF, None, 2.5, 0.0, 9.0)
    MADE = {  # noqa: RUF012
        "pandas": lambda values: pd.DataFrame({"x": np.array([NAN if x is None else x for x in values])}),
        "pandas Float64": lambda values: pd.DataFrame({"x": pd.array(list(values), "Float64")}),
        "Polars": lambda values: pl.DataFrame({"x": list(values)}, strict=False),
        "Arrow": lambda values: pa.table({"x": pa.array(list(values), pa.float64())}),
        "Arrow float": lambda values: pa.table({"x": pa.array(list(values), pa.float32())}),
    }

    @pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
    def test_frames(self, made):
        answer = pdrisk.sql(QUERY, eps=9, bounds=(0.5, 4), t=made(self.VALUES))
        assert_answers(answer.iloc[0], self.VALUES, 0.5, 4.0)
        alone = pdrisk.sql("SELECT COUNT(x), COUNT(*) FROM t", eps=9, t=made(self.VALUES))
        assert alone.iloc[0].tolist() == [7, 9]

    @pytest.mark.parametrize(
        "values", [[1, 2.5, None], [Decimal("1.5"), None, Decimal("3")], [2**70, 1, INF], [True, None, False]]
    )
    def test_python_numbers_are_floats(self, values):
        # DuckDB would look at them for a type: one record more would change what all others are.
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        answer = pdrisk.sql(QUERY, eps=9, bounds=(0.5, 4), t=frame)
        assert_answers(answer.iloc[0], values, 0.5, 4.0)

    def test_a_number_beyond_floats_is_at_the_bound(self):
        """Refusing it would tell, for nothing, that somebody has it."""
        values = [10**400, -(10**400), 2, None]
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": 1.0})
        frame["z"] = pd.Series([Decimal("sNaN"), *map(Decimal, (1, 2, 3))], dtype=object)
        answer = pdrisk.sql(QUERY, eps=9, bounds=(0.5, 4), t=frame)
        assert_answers(answer.iloc[0], [INF, -INF, 2], 0.5, 4.0)
        assert_answers(pdrisk.sql(QUERY.replace("x", "y"), eps=9, bounds=(0.5, 4), t=frame).iloc[0], [1] * 4, 0.5, 4.0)

    def test_python_objects_of_several_kinds_are_texts(self):
        frame = pd.DataFrame({"x": pd.Series(["1.5", 2, Decimal("2.5"), "x", None, NAN], dtype=object)})
        with pytest.raises(pdrisk.ColumnTypeError, match="its argument holds text"):
            pdrisk.sql(QUERY, eps=9, bounds=(0.5, 4), t=frame)
        query = QUERY.replace("FROM t", "FROM (SELECT TRY_CAST(x AS DOUBLE) AS x FROM t)")
        with pytest.raises(pdrisk.ParameterError, match="Convert the column before"):
            pdrisk.sql(query, eps=9, bounds=(0.5, 4), t=frame)
        converted = frame.assign(x=frame["x"].astype("string"))
        assert_answers(pdrisk.sql(query, eps=9, bounds=(0.5, 4), t=converted).iloc[0], [1.5, 2, 2.5], 0.5, 4.0)

    @pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
    def test_nothing_but_gaps(self, made):
        answer = pdrisk.sql(QUERY, eps=9, bounds=(0.5, 4), t=made((NAN, None, NAN)))
        assert_answers(answer.iloc[0], [], 0.5, 4.0)

    def test_an_empty_table(self):
        con = table("DOUBLE")
        answer = pdrisk.sql(f"{QUERY} GROUP BY i", con, eps=9, bounds=(0.5, 4), keys=[1, 2], curator=True)
        for row in range(2):
            assert_answers(answer.iloc[row, :9], [], 0.5, 4.0)
        assert answer["avg(x)_n"].tolist() == [0, 0]
        assert_answers(pdrisk.sql(QUERY, con, eps=9, bounds=(0.5, 4)).iloc[0], [], 0.5, 4.0)

    def test_groups_of_gaps_and_groups_of_nobody_are_answered_alike(self):
        con = table("DOUBLE", None, "nan", 1.5)
        query = f"{QUERY} GROUP BY i"
        answer = pdrisk.sql(query, con, eps=9, bounds=(0.5, 4), keys=[0, 1, 7, 2], curator=True)
        rows = answer.to_numpy(dtype=float, na_value=-1)
        for row in rows[:3]:
            assert row.tolist() == rows[0].tolist()
            assert_answers(row[:9], [], 0.5, 4.0)
        assert_answers(rows[3][:9], [1.5], 0.5, 4.0)

    def test_one_and_two_records(self):
        for records in ([2.0], [2.0, 2.0], [1.0, 9.0], [INF], [-INF, INF]):
            answer = pdrisk.sql(QUERY, table("DOUBLE", *records), eps=9, bounds=(0.5, 4))
            assert_answers(answer.iloc[0], records, 0.5, 4.0)

    def test_a_filter_that_is_null_keeps_nobody(self):
        con = table("DOUBLE", 1.0, None, 3.0)
        query = (
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE x > 2), COUNT(*) FILTER (NOT x > 2), COUNT(*) FILTER (NULL) FROM t"
        )
        assert pdrisk.sql(query, con, eps=4).iloc[0].tolist() == [3, 1, 1, 0]
        assert pdrisk.sql("SELECT COUNT(*) FROM t WHERE NULL", con, eps=1).iat[0, 0] == 0


OBJECTS = [[1], b"a", (1, 2), {1}, uuid.UUID(int=7), datetime.time(1), pd.Timedelta(1)]


@pytest.mark.parametrize("value", OBJECTS, ids=str)
def test_python_objects_are_counted(value, monkeypatch):
    without_noise(monkeypatch)
    frame = pd.DataFrame({"x": pd.Series([value, None, value], dtype=object)})
    assert frame.dprisk.count("x", eps=1).value == 2
    assert pdrisk.sql("SELECT COUNT(x) FROM t", eps=1, t=frame).iat[0, 0] == 2


def test_the_error_of_a_standard_deviation_is_within_the_claim(monkeypatch):
    without_noise(monkeypatch)
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT unnest([0.0, -0.99])::DOUBLE AS x")
    lo, hi = -1e9, 1e-9
    found = pdrisk.sql("SELECT STDDEV(x) FROM t", con, eps=1, bounds=(lo, hi), mechanism="laplace").iat[0, 0]
    step = Std(1).lattice(Universe(lo, hi)).step
    assert abs(found - 0.99 / 2**0.5) <= Std(1).rounding(Universe(lo, hi)) + step


MOMENT = pd.Timestamp("1969-12-31 23:59:59.999999")


@pytest.mark.parametrize("nanoseconds", [1, 499, 501, 999])
def test_times_are_read_in_microseconds(nanoseconds):
    """DuckDB's TIMESTAMP makes some times equal (2 rounds, 1 cuts): what is finer can be no key and no value."""
    fine = MOMENT + pd.Timedelta(nanoseconds, "ns")
    frame = pd.DataFrame({"moment": [MOMENT.as_unit("ns"), fine]})
    count = "SELECT moment, COUNT(*) AS n FROM t GROUP BY moment"
    with duckdb.connect() as con:
        found = con.register("fine", frame).execute("SELECT CAST(moment AS TIMESTAMP) FROM fine").fetchall()
    read = Counter(moment for (moment,) in found)
    answer = pdrisk.sql(count, eps=1e4, keys=list(read), t=frame)
    assert answer["n"].tolist() == list(read.values())
    assert frame.dprisk.count(by="moment", keys=[MOMENT, fine], eps=1e4)["value"].tolist() == [1, 1]
    assert pdrisk.sql("SELECT COUNT(*) FROM t WHERE moment < ?", eps=1e4, t=frame, params=[MOMENT]).iloc[0, 0] == 0
    for query, options, said in (
        (count, {"keys": [fine]}, "a key of moment is finer than a microsecond"),
        ("SELECT COUNT(*) FROM t WHERE moment < ?", {"params": [fine]}, "is finer than a microsecond"),
        ("SELECT COUNT(*) FROM t WHERE moment < ?", {"params": [fine.to_datetime64()]}, "is finer than a microsecond"),
    ):
        with pytest.raises(pdrisk.ParameterError, match=said):
            pdrisk.sql(query, eps=1, t=frame, **options)
