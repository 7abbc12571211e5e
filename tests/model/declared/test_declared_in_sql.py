"""Declarations and missing codes mean the same in SQL as on frames, and trouble only who asks for their column."""

import datetime
from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk

pa = pytest.importorskip("pandera.pandas")
pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SURE = 1e9


def schema_of(**said):
    return pa.DataFrameSchema({name: pa.Column(metadata={"dprisk": own}) for name, own in said.items()})


def count(frame, column="x", **options):
    return frame.dprisk.count(column, eps=SURE, **options).curator.n


def count_in_sql(frame, column="x", **options):
    return round(pdrisk.sql(f"SELECT count({column}) AS n FROM t", eps=SURE, t=frame, **options)["n"][0])


class TestOneRecord:
    """Whether a request fails does not depend on one record."""

    @pytest.mark.parametrize("where", ["b", "not b"])
    @pytest.mark.parametrize("values", [[True] * 3, [True, True, False], [False] * 3])
    def test_a_code_among_truth_values(self, values, where):
        frame = pd.DataFrame({"b": values}).dprisk.declare(missing={"b": [False]})
        assert frame.dprisk.count(eps=1, where=where).curator.n == (sum(values) if where == "b" else 0)

    @pytest.mark.parametrize("unit", ["s", "ms"])
    @pytest.mark.parametrize("codes", [["1900-01-01"], ["1900-01-01", "9999-12-31"]])
    def test_a_far_date_beside_a_code(self, unit, codes):
        far = pd.DataFrame({"x": np.array(["2020-01-01", "400000-01-01", "1900-01-01"], dtype=f"datetime64[{unit}]")})
        far = far.dprisk.declare(missing={"x": [pd.Timestamp(code) for code in codes]})
        assert count(far) == 2
        assert count(far.iloc[[0, 2]]) == 1

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_dates_and_codes_in_sql(self, unit):
        codes = [pd.Timestamp("1900-01-01"), pd.Timestamp("9999-12-31")]
        frame = pd.DataFrame({"x": np.array(["2020-01-01", "1900-01-01"], dtype=f"datetime64[{unit}]")})
        assert count_in_sql(frame, schema=schema_of(x={"missing": codes})) == 1
        assert count(frame.dprisk.declare(missing={"x": codes})) == 1

    @pytest.mark.parametrize("x", [[1, 2, -1], [1, 2, "refused"]], ids=str)
    def test_objects_are_not_asked_their_kind_for_a_code(self, x):
        schema = pa.DataFrameSchema(
            {
                "x": pa.Column(object, metadata={"dprisk": {"missing": [-1]}}),
                "y": pa.Column(int, pa.Check.in_range(0, 9)),
            }
        )
        frame = schema.validate(pd.DataFrame({"x": pd.Series(x, dtype=object), "y": [1, 2, 3]}))
        assert count(frame) == (2 if -1 in x else 3)
        assert frame.dprisk.mean("y", eps=1, where=np.array([True] * 3)).curator.n == 3
        assert len(pdrisk.sql("SELECT avg(y) FROM t", eps=1, t=frame)) == 1


class TestColumnsOfOthers:
    """What is wrong with one column, or unusual, troubles only who asks for it."""

    BAD: ClassVar = {"x": {"missing": [-1]}, "y": {"bouns": (0, 1)}}

    def frame(self):
        return pd.DataFrame({"x": [-1.0, 2, 3], "y": [0.0, 1, 1]})

    def test_in_sql(self):
        assert count_in_sql(self.frame(), schema=schema_of(**self.BAD)) == 2
        with pytest.raises(pdrisk.ParameterError, match=r"bouns.*Did you mean 'bounds'"):
            count_in_sql(self.frame(), "y", schema=schema_of(**self.BAD))

    def test_in_a_validated_frame(self):
        frame = schema_of(**self.BAD).validate(self.frame())
        assert count(frame) == 2
        assert "bouns" in frame.dprisk.declared.loc["y", "source"]
        assert frame.dprisk.declare(bounds={"x": (0, 3)}).dprisk.max(
            "x", eps=SURE, mechanism="laplace"
        ).value == pytest.approx(3)
        with pytest.raises(pdrisk.ParameterError, match="bouns"):
            count(frame, "y")

    def test_types_that_sql_asks_nothing_of(self):
        frame = pd.DataFrame({"x": [1, 2], "t": pd.to_datetime(["2020", "2021"]).tz_localize("UTC")})
        frame["d"] = pd.to_timedelta([1, 2], unit="s")
        known = frame.dprisk.declare(
            missing={"x": [1], "t": [pd.Timestamp("2020", tz="UTC")], "d": [pd.Timedelta(1, unit="s")]}
        )
        assert count_in_sql(known) == count(known, "t") == count(known, "d") == 1

    def test_a_mask_reads_no_column(self):
        frame = schema_of(**self.BAD).validate(self.frame())
        assert count(frame, where=np.array([True, True, False])) == 1
        with pytest.raises(pdrisk.ParameterError, match="bouns"):
            count(frame, where=lambda rows: rows["x"] > 0)

    def test_explicit_bounds_do_not_suffer_from_declared_ones_that_are_too_wide(self):
        frame = self.frame().dprisk.declare(bounds={"x": (0, 100)})
        frame = pa.DataFrameSchema({"x": pa.Column(float, pa.Check.in_range(-1, 5))}).validate(frame)
        assert frame.dprisk.mean("x", eps=1, bounds=(0, 5)).bounds == (0, 5)
        with pytest.raises(pdrisk.ParameterError, match="wider"):
            frame.dprisk.mean("x", eps=1)


class TestSqlLikeTheAccessor:
    """SQL knows what the accessor knows."""

    def test_labels_that_are_no_text(self):
        frame = pd.DataFrame({0: [-1, 5, 7]}).dprisk.declare(missing={0: [-1]}, bounds={0: (0, 10)})
        assert count(frame, 0) == count_in_sql(frame, '"0"') == 2
        assert pdrisk.sql('SELECT avg("0") AS m FROM t', t=frame, eps=SURE)["m"][0] == pytest.approx(6)

    @pytest.mark.parametrize("pattern", [r"Income_\d{4}", r"income_\d{4}", r"(?i)INCOME_\d{4}"])
    def test_patterns_in_any_case(self, pattern):
        said = {"bounds": (0, 100), "missing": [-1]}
        schema = pa.DataFrameSchema({pattern: pa.Column(float, regex=True, metadata={"dprisk": said})})
        assert count_in_sql(pd.DataFrame({"Income_2001": [-1.0, 50, -1]}), "income_2001", schema=schema) == 1

    def test_a_schema_beside_the_one_of_the_frame(self):
        frame = schema_of(x={"missing": [-1]}).validate(pd.DataFrame({"x": [-1.0, 2, 3], "y": [0.0, 1, 1]}))
        other = schema_of(y={"missing": [0]})
        assert count_in_sql(frame, "x", schema=other) == count(frame.dprisk.declare(other)) == 2

    @pytest.mark.parametrize("code", [9999999999999999, 2**62, -(2**63), -1.0, np.int8(-1)])
    def test_integer_codes_are_exact(self, code):
        frame = pd.DataFrame({"x": np.array([int(code), 5, int(code) + 1])}).dprisk.declare(missing={"x": [code]})
        assert count(frame) == count_in_sql(frame) == 2

    @pytest.mark.parametrize("code", [np.nan, np.inf, None, 10**400, 1e300], ids=lambda code: str(code)[:9])
    def test_codes_that_no_column_holds(self, code):
        frame = pd.DataFrame({"x": [-1, 5], "y": [-1.0, 5]})
        schema = schema_of(x={"missing": [-1, code]}, y={"missing": [-1, code]})
        for column in "xy":
            assert count(frame.dprisk.declare(schema), column) == count_in_sql(frame, column, schema=schema) == 1

    def test_a_key_that_is_a_code(self):
        frame = pd.DataFrame({"k": [1, -1, 2]}).dprisk.declare(missing={"k": [-1]})
        for ask in (
            lambda: frame.dprisk.count(eps=1, by="k", keys=[-1, 1]),
            lambda: pdrisk.sql("SELECT k, count(*) FROM t GROUP BY k", eps=1, keys=[-1, 1], t=frame),
        ):
            with pytest.raises(pdrisk.ParameterError, match="list None for the group of those"):
                ask()

    def test_a_schema_of_a_view_that_renames(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t AS SELECT 1 AS a, -1 AS b; CREATE VIEW same AS SELECT a, b FROM t WHERE a > 0")
        con.execute("CREATE VIEW v AS SELECT a, b AS income FROM t; CREATE VIEW w AS SELECT a AS b, b AS a FROM t")
        schema = schema_of(a={}, b={"missing": [-1]}, income={"missing": [-1]})
        assert round(pdrisk.sql("SELECT count(b) AS n FROM same", con, eps=SURE, schema=schema)["n"][0]) == 0
        for query in ("SELECT count(income) FROM v", "SELECT count(a) FROM w"):
            with pytest.raises(pdrisk.ParameterError, match="of the table behind a view"):
                pdrisk.sql(query, con, eps=1, schema=schema)

    @pytest.mark.parametrize("dtype", ["float32", "Int64"])
    def test_keys_and_codes_in_the_precision_of_the_column(self, dtype):
        if dtype == "float32":
            frame = pd.DataFrame({"x": np.array([0.1, 0.2], dtype)}).dprisk.declare(missing={"x": [0.1]})
            with pytest.raises(pdrisk.ParameterError, match="list None"):
                frame.dprisk.count(eps=1, by="x", keys=[np.float32(0.1)])
        else:
            frame = pd.DataFrame({"x": pd.array([2**53, 2**53 + 1, -1], dtype)}).dprisk.declare(missing={"x": [-1]})
            counts = frame.dprisk.count(eps=SURE, by="x", keys=[2**53, 2**53 + 1], curator=True)
            assert counts["n"].tolist() == [1, 1]

    def test_a_parquet_file_that_pandas_wrote(self, tmp_path):
        frame = pd.DataFrame({"x": [-1, 5, 7]}).dprisk.declare(missing={"x": [-1]}, bounds={"x": (0, 10)})
        frame.to_parquet(tmp_path / "a.parquet")
        assert count_in_sql(tmp_path / "a.parquet") == 2
        assert count_in_sql(str(tmp_path / "*.parquet")) == 2
        pd.DataFrame({"x": [-1]}).to_parquet(tmp_path / "b.parquet")
        assert count_in_sql(tmp_path / "b.parquet") == 1

    def test_codes_of_dates(self):
        pytest.importorskip("pyarrow")
        days = [datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)]
        for dtype in (object, "date32[pyarrow]"):
            frame = pd.DataFrame({"x": pd.Series(days, dtype=dtype)}).dprisk.declare(missing={"x": days[:1]})
            assert count(frame.copy()) == count_in_sql(frame) == 1


class TestNamesInADict:
    """One dict of bounds or keys serves many queries; a slip of a name that a query needs is refused."""

    PEOPLE = pd.DataFrame({"age": [20, 30, 40, 90], "sex": ["f", "m", "f", "f"]})
    VISITS = pd.DataFrame({"km": [1.0, 2, 9], "ward": ["a", "b", "a"]})
    BOUNDS: ClassVar = {"AGE": (0, 100), "km": (0, 10)}
    KEYS: ClassVar = {"sex": ["m", "f"], "Ward": ["a", "b"]}

    def asked(self, query, **options):
        options = {"bounds": self.BOUNDS, "keys": self.KEYS} | options
        return pdrisk.sql(query, eps=SURE, people=self.PEOPLE, visits=self.VISITS, **options)

    @pytest.mark.parametrize(
        ("query", "expected"),
        {
            "SELECT AVG(age) AS m FROM people": [[45]],
            "SELECT ward, AVG(km) AS m FROM visits GROUP BY ward": [["a", 5], ["b", 2]],
            "SELECT ward AS w, AVG(km) AS m FROM visits GROUP BY w": [["a", 5], ["b", 2]],
            "SELECT sex AS k, AVG(age) AS m FROM people GROUP BY k "
            "UNION ALL SELECT ward, AVG(km) FROM visits GROUP BY ward": [["m", 30], ["f", 50], ["a", 5], ["b", 2]],
            "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT 11 * AVG(km) FROM visits)": [[1]],
            "WITH v AS (SELECT km * 2 AS far FROM visits) SELECT AVG(far) AS m FROM v": [[8]],
            "SELECT w, AVG(km) AS m FROM (SELECT ward AS w, km FROM visits) GROUP BY w": [["a", 5], ["b", 2]],
            "WITH v AS (SELECT ward AS w, km FROM visits), u AS (SELECT w AS x, km AS k FROM v) "
            "SELECT x AS y, COUNT(*) AS m FROM u GROUP BY y": [["a", 2], ["b", 1]],
        }.items(),
    )
    @pytest.mark.parametrize("place", ["frames", "database"])
    def test_one_dict_for_all_questions(self, query, expected, place):
        with duckdb.connect() as con:
            for table, frame in (("people", self.PEOPLE), ("visits", self.VISITS)):
                con.register("given", frame)
                con.execute(f"CREATE TABLE {table} AS FROM given")
            if place == "frames":
                answer = self.asked(query)
            else:
                d = pdrisk.Dataset({"people": (con, "people"), "visits": (con, "visits")})
                answer = d.sql(query, eps=SURE, bounds=self.BOUNDS, keys=self.KEYS)
        for row, own in zip(answer.to_numpy().tolist(), expected, strict=True):
            assert row[:-1] == own[:-1]
            assert row[-1] == pytest.approx(own[-1], abs=0.01)

    def test_slips(self):
        query = "SELECT sex, AVG(age) AS m FROM people GROUP BY sex"
        with pytest.raises(
            pdrisk.ParameterError, match=r"GROUP BY sex needs .* Did you mean 'sexx' in keys= to be 'sex'"
        ):
            self.asked(query, keys={"sexx": ["m", "f"], "ward": ["a"]})
        with pytest.raises(pdrisk.ParameterError, match=r"GROUP BY ward needs"):
            self.asked(
                "SELECT sex, ward, COUNT(*) FROM t GROUP BY ALL", t=self.PEOPLE.assign(ward="a"), keys={"sex": ["m"]}
            )
        session = {**self.KEYS, "sexx": [1], "of another table": [2]}
        assert self.asked(query, keys=session)["sex"].tolist() == ["m", "f"]
        assert self.asked("SELECT AVG(age) AS m FROM people", keys=session).shape == (1, 1)

    @pytest.mark.parametrize("query", ["SELECT AVG(age) AS m FROM people", "SELECT COUNT(*) AS m FROM people"])
    @pytest.mark.parametrize("other", ["l_quantity", "agee", "age of somebody else"])
    def test_bounds_of_what_the_query_does_not_need(self, query, other):
        bounds = {**self.BOUNDS, other: (0, 1)}
        assert self.asked(query, bounds=bounds)["m"][0] == pytest.approx(self.asked(query)["m"][0], abs=0.01)

    def test_a_slip_does_not_leave_a_column_with_its_declared_bounds(self):
        people = self.PEOPLE.dprisk.declare(bounds={"age": (0, 200)})
        for bounds in ({"agee": (0, 100)}, {"agee": (0, 100), "km": (0, 1)}):
            with pytest.raises(pdrisk.UnknownColumnError, match=r"unknown column 'agee'; .* Did you mean 'age'"):
                pdrisk.sql("SELECT AVG(age) FROM people", people=people, eps=1, bounds=bounds)
        pdrisk.sql("SELECT COUNT(age) FROM people", people=people, eps=1, bounds={"agee": (0, 100)})

    @pytest.mark.parametrize(
        ("call", "expected"),
        {"AVG(age * age)": 825, "MEDIAN(age * age)": 950, "MIN(age * age)": 400, "MAX(age * age)": 1000}.items(),
    )
    def test_an_alias_gives_the_range_of_an_expression(self, call, expected):
        """400, 900, 1600 and 8100, of which the last two count as 1000."""
        answer = self.asked(f"SELECT {call} AS square FROM people", bounds={"SQUARE": (0, 1000)}, mechanism="laplace")
        assert answer["square"][0] == pytest.approx(expected, abs=0.01)

    def test_a_column_goes_before_an_alias(self):
        answer = self.asked("SELECT AVG(age * 2) AS age FROM people", bounds={"age": (0, 100)})
        assert answer["age"][0] == pytest.approx(90, abs=0.01)

    def test_a_sum_is_not_in_the_range_of_its_values(self):
        with pytest.raises(pdrisk.ParameterError, match="needs the bounds of the expression"):
            self.asked("SELECT SUM(sqrt(age)) AS roots FROM people", bounds={"roots": (0, 10)})
