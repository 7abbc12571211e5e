"""What a hostile reader found in declarations and missing codes."""

import datetime
import subprocess
import sys
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
    return frame.dprisk.count(column, eps=SURE, **options).n


def count_in_sql(frame, column="x", **options):
    return round(pdrisk.sql(f"SELECT count({column}) AS n FROM t", eps=SURE, t=frame, **options)["n"][0])


class TestOneRecord:
    """Whether a request fails does not depend on one record."""

    @pytest.mark.parametrize("where", ["b", "not b"])
    @pytest.mark.parametrize("values", [[True] * 3, [True, True, False], [False] * 3])
    def test_a_code_among_truth_values(self, values, where):
        frame = pd.DataFrame({"b": values}).dprisk.declare(missing={"b": [False]})
        assert frame.dprisk.count(eps=1, where=where).n == (sum(values) if where == "b" else 0)

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
        assert frame.dprisk.mean("y", eps=1, where=np.array([True] * 3)).n == 3
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
        assert frame.dprisk.declare(bounds={"x": (0, 3)}).dprisk.max("x", eps=SURE).value == pytest.approx(3)
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
            assert frame.dprisk.count(eps=SURE, by="x", keys=[2**53, 2**53 + 1])["n"].tolist() == [1, 1]

    def test_a_parquet_file_that_pandas_wrote(self, tmp_path):
        frame = pd.DataFrame({"x": [-1, 5, 7]}).dprisk.declare(missing={"x": [-1]}, bounds={"x": (0, 10)})
        frame.to_parquet(tmp_path / "a.parquet")
        assert count_in_sql(tmp_path / "a.parquet") == 2
        assert count_in_sql(str(tmp_path / "*.parquet")) == 2
        pd.DataFrame({"x": [-1]}).to_parquet(tmp_path / "b.parquet")
        assert count_in_sql(tmp_path / "b.parquet") == 1


class TestSchemas:
    """A schema is taken as pandera means it, and fails nobody."""

    def test_polars_matches_whole_names(self):
        pytest.importorskip("polars")
        import pandera.polars as pp

        schema = pp.DataFrameSchema({r"income_\d": pp.Column(float, pp.Check.in_range(0, 10), regex=True)})
        assert pdrisk.bounds_from(schema, ["income_1", "income_10"]) == {"income_1": (0, 10)}

    def test_a_later_schema_takes_back_what_an_earlier_one_said(self):
        first = pa.DataFrameSchema({"x": pa.Column(float, pa.Check.in_range(0, 5))})
        frame = first.validate(pd.DataFrame({"x": [1.0, 2.0]})).assign(x=[500.0, 900.0])
        frame = pa.DataFrameSchema({"x": pa.Column(float)}).validate(frame)
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            frame.dprisk.mean("x", eps=1)
        assert frame.dprisk.mean("x", eps=1, bounds=(0, 1000)).bounds == (0, 1000)

    def test_the_dtype_of_the_whole(self):
        schema = pa.DataFrameSchema({"x": pa.Column(checks=[pa.Check.gt(0), pa.Check.lt(10)])}, dtype=int)
        assert pdrisk.bounds_from(schema) == {"x": (1, 9)}

    @pytest.mark.parametrize(
        "column",
        [
            pa.Column(int, pa.Check.in_range(0, 10**400)),
            pa.Column(metadata=["dprisk"]),
            pa.Column(object, pa.Check.isin({("a", 1), ("a", "b")})),
        ],
        ids=["huge", "a list", "a set"],
    )
    def test_odd_columns_say_nothing(self, column):
        assert pdrisk.bounds_from(pa.DataFrameSchema({"x": column})) == {}

    def test_a_broken_pattern_is_a_problem_of_its_own(self):
        schema = pa.DataFrameSchema({"inc(": pa.Column(regex=True), "x": pa.Column(int, pa.Check.in_range(0, 9))})
        assert pd.DataFrame({"x": [1]}).dprisk.declare(schema).dprisk.mean("x", eps=1).bounds == (0, 9)

    def test_labels_that_are_dates(self):
        day = datetime.date(2020, 1, 1)
        frame = pd.DataFrame({day: [1, 2]}).dprisk.declare(
            pa.DataFrameSchema({day: pa.Column(int, pa.Check.in_range(0, 9))})
        )
        assert frame.query("index >= 0").dprisk.mean(day, eps=1).bounds == (0, 9)

    def test_codes_of_dates(self):
        pytest.importorskip("pyarrow")
        days = [datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)]
        for dtype in (object, "date32[pyarrow]"):
            frame = pd.DataFrame({"x": pd.Series(days, dtype=dtype)}).dprisk.declare(missing={"x": days[:1]})
            assert count(frame.copy()) == count_in_sql(frame) == 1

    def test_schema_for_keeps_keys_that_a_check_cannot_say(self):
        schema = pdrisk.schema_for(bounds={"x": (0, 10)}, keys={"x": [1, 2], "y": ["a", None]})
        assert pdrisk.keys_from(schema) == {"x": [1, 2], "y": ["a", None]}
        assert len(schema.validate(pd.DataFrame({"x": [5.5], "y": ["b"]}))) == 1

    def test_a_schema_of_another_frame(self):
        schema = pa.DataFrameSchema({"distance": pa.Column(int, pa.Check.in_range(1, 675))})
        frame = pd.DataFrame({"km": [1, 2]})
        with pytest.raises(pdrisk.ParameterError, match="none of the frame's columns: it has distance"):
            frame.dprisk.declare(schema)
        with pytest.raises(pdrisk.ParameterError, match="none of the columns"):
            pdrisk.sql("SELECT count(*) FROM t", eps=1, schema=schema, t=frame)

    def test_many_keys_and_codes_take_no_time_together(self):
        keys = list(range(50_000))
        frame = pd.DataFrame({"x": [1, 2]}).dprisk.declare(keys={"x": keys}, missing={"x": keys[::2]})
        assert len(frame.dprisk.count(eps=1, by="x")) == 25_000


class TestListening:
    """Validation never fails because of pdrisk, however it is imported."""

    KNOWN = (
        "import pandas as pd, pandera.pandas as pa\n"
        "frame = pa.DataFrameSchema({'x': pa.Column(int, pa.Check.ge(0))}).validate(pd.DataFrame({'x': [1]}))\n"
        "assert 'dprisk' in frame.copy().attrs\n"
    )

    def run(self, code):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def test_somebody_only_looked_for_the_module(self):
        look = "import pdrisk, importlib.util\nimportlib.util.find_spec('pandera.accessors.pandas_accessor')\n"
        self.run(look + self.KNOWN)

    def test_the_module_is_loaded_anew(self):
        again = "import importlib, sys\nimportlib.reload(sys.modules['pandera.accessors.pandas_accessor'])\n"
        self.run("import pdrisk\n" + self.KNOWN + again + self.KNOWN)

    def test_a_loader_that_cannot_be_written_to(self):
        finder = """
import importlib.machinery, sys
class Loader:
    __slots__ = ("inner",)
    def __init__(self, inner): self.inner = inner
    def create_module(self, spec): return None
    def exec_module(self, module): self.inner.exec_module(module)
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name.startswith("pandera") else None
        if spec is not None and spec.origin is not None:
            spec.loader = Loader(spec.loader)
        return spec
sys.meta_path.insert(0, Finder)
import pdrisk
"""
        self.run(finder + self.KNOWN)
