"""Schemas and models of pandera's flavours say the same: of pandas, Polars and Ibis."""

import datetime
import importlib
import sys
from typing import Annotated, Optional

import pandas as pd
import pandera.pandas as pa
import pandera.polars
import polars as pl
import pytest

import pdrisk
from pdrisk import bounds_from, keys_from, missing_from

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e9


def ibis_flavour():
    return pytest.importorskip("pandera.ibis", reason="this version of pandera has no Ibis schemas")


@pytest.fixture(params=["pandas", "polars", "ibis"])
def flavour(request):
    return ibis_flavour() if request.param == "ibis" else importlib.import_module(f"pandera.{request.param}")


def one(flavour, *checks, dtype=None, name="x", **column):
    return flavour.DataFrameSchema({name: flavour.Column(dtype, list(checks), **column)})


def always(data):
    return True


class TestEveryFlavour:
    """What a check, a list or a mark means does not depend on where the data are."""

    @pytest.mark.parametrize(("dtype", "step"), [(int, 1), (float, 0), (None, 0)])
    def test_ranges(self, flavour, dtype, step):
        check = flavour.Check
        for checks in ([check.gt(0), check.lt(9)], [check.in_range(0, 9, False, False, name="plausible")]):
            assert bounds_from(one(flavour, *checks, dtype=dtype)) == {"x": (step, 9 - step)}
        assert bounds_from(one(flavour, check.ge(0.5), check.le(8.5), dtype=dtype)) == {
            "x": (0.5 + step / 2, 8.5 - step / 2)
        }
        assert bounds_from(one(flavour, check.between(0, 9), check.le(7), dtype=dtype)) == {"x": (0, 7)}
        assert bounds_from(one(flavour, check.ge(0), dtype=dtype)) == {}
        with pytest.raises(pdrisk.ParameterError, match="allows no value of 'x'"):
            bounds_from(one(flavour, check.ge(9), check.le(0), dtype=dtype))

    def test_what_is_no_range(self, flavour):
        check = flavour.Check
        for other in (check.str_length(1, 5), check.eq(3), check(always)):
            assert bounds_from(one(flavour, other)) == {}

    def test_dates(self, flavour):
        first, last = datetime.date(2020, 1, 2), datetime.date(2021, 1, 2)
        assert bounds_from(one(flavour, flavour.Check.in_range(first, last))) == {"x": (first, last)}
        noon = datetime.datetime(2020, 1, 2, 12)
        assert bounds_from(one(flavour, flavour.Check.ge(noon), flavour.Check.lt(datetime.datetime(2021, 1, 2)))) == {
            "x": (noon, datetime.datetime(2021, 1, 2))
        }
        assert bounds_from(one(flavour, metadata={"dprisk": {"bounds": ("2020-01-02", "2021-01-02")}})) == {
            "x": (first, last)
        }

    def test_keys(self, flavour):
        check = flavour.Check
        assert keys_from(one(flavour, check.isin(["b", "a", None]), dtype=str)) == {"x": ["b", "a"]}
        assert keys_from(one(flavour, check.isin({2, 1}), check.isin([1, 3]), dtype=int)) == {"x": [1]}

    def test_marks_and_metadata(self, flavour):
        said = {"bounds": (0, 9), "keys": [1, 2], "missing": [-1]}
        for schema in (
            one(flavour, metadata={"dprisk": said}),
            one(flavour, flavour.Check(always, statistics={"dprisk": said})),
        ):
            assert (bounds_from(schema), keys_from(schema), missing_from(schema)) == (
                {"x": (0, 9)},
                {"x": [1, 2]},
                {"x": [-1]},
            )
        with pytest.raises(pdrisk.ParameterError, match="Did you mean 'bounds'"):
            bounds_from(one(flavour, metadata={"dprisk": {"bound": (0, 9)}}))

    def test_warnings_and_checks_of_the_whole_schema(self, flavour):
        check = flavour.Check
        columns = {"x": flavour.Column(int, check.lt(9)), "y": flavour.Column(int, check.le(7, raise_warning=True))}
        schema = flavour.DataFrameSchema(columns, checks=[check.gt(0)], name="poll")
        assert bounds_from(schema) == {"x": (1, 8), "y": (1, 7)}
        table = pd.DataFrame({"x": [1], "y": [2]}).dprisk.declare(schema).dprisk.declared
        assert table["valid_hi"].tolist() == [8, float("inf")]
        assert set(table["source"]) == {"schema 'poll'"}

    def test_declare_takes_them(self, flavour):
        check = flavour.Check
        columns = {
            "x": flavour.Column(int, check.in_range(-8, 9), metadata={"dprisk": {"bounds": (0, 9), "missing": [-8]}}),
            "g": flavour.Column(str, check.isin(["b", "a"])),
        }
        frame = pd.DataFrame({"x": [-8, 4, 6], "g": ["a", "a", "b"]}).dprisk.declare(flavour.DataFrameSchema(columns))
        assert frame.dprisk.mean("x", eps=EXACT).value == pytest.approx(5, abs=1e-3)
        assert frame.dprisk.max("x", eps=EXACT, by="g", mechanism="laplace")["value"].round().tolist() == [6, 4]


NAMES = ["q", "q_1", "quantity", "a q", "xa q", "Q"]


def governed(flavour, pattern):
    """The columns that a pattern of this flavour governs: those whose value of 5 is refused."""
    schema = one(flavour, flavour.Check.in_range(0, 1), name=pattern, regex=True)
    if flavour is sys.modules.get("pandera.ibis"):
        import ibis

        table = ibis.table(dict.fromkeys(NAMES, "int64"), name="t")
        return list(table.select(ibis.selectors.matches(schema.columns[pattern].selector)).columns)
    make = pd.DataFrame if flavour is pa else pl.DataFrame
    found = []
    for name in NAMES:
        try:
            schema.validate(make({other: [5 * (other == name)] for other in NAMES}))
        except flavour.errors.SchemaError:
            found.append(name)
    return found


class TestPatterns:
    """A pattern declares the columns that validation governs by it, and no others."""

    @pytest.mark.parametrize("pattern", ["q", "q.*", "^q.*$", "q_[0-9]", ".*q", "q|a q"])
    def test_the_same_columns_as_in_validation(self, flavour, pattern):
        schema = one(flavour, flavour.Check.in_range(0, 1), name=pattern, regex=True)
        assert list(bounds_from(schema, NAMES)) == governed(flavour, pattern)
        assert bounds_from(schema) == {}  # a pattern names no column

    @pytest.mark.parametrize("pattern", ["q", "q.*"])
    def test_a_column_class_of_ones_own(self, flavour, pattern):
        class Own(flavour.Column):
            pass

        schema = flavour.DataFrameSchema({pattern: Own(int, flavour.Check.in_range(0, 1), regex=True)})
        assert list(bounds_from(schema, NAMES)) == governed(flavour, pattern)

    def test_a_pattern_beside_a_column(self, flavour):
        columns = {
            "q_1": flavour.Column(int, flavour.Check.in_range(0, 9), metadata={"dprisk": {"missing": [-1]}}),
            "^q.*$": flavour.Column(int, flavour.Check.in_range(2, 20), regex=True),
            "^.*2$": flavour.Column(int, flavour.Check.isin([3, 4]), regex=True),
        }
        schema = flavour.DataFrameSchema(columns)
        assert bounds_from(schema) == {"q_1": (2, 9)}
        assert bounds_from(schema, ["q_2", "q_1", "a"]) == {"q_2": (2, 20), "q_1": (2, 9)}
        assert keys_from(schema, ["q_2", "q_1", "2"]) == {"q_2": [3, 4], "2": [3, 4]}

    def test_labels_that_are_no_text(self):
        schema = one(pa, pa.Check.in_range(0, 1), name="1", regex=True)
        assert bounds_from(schema, [1, 13, 21, "1x"]) == {1: (0, 1), 13: (0, 1), "1x": (0, 1)}
        with pytest.raises(pa.errors.SchemaError):
            schema.validate(pd.DataFrame([[0, 5]], columns=[21, 13]))

    def test_columns_of_several_levels(self):
        schema = one(pa, pa.Check.in_range(0, 1), name=("a", "b.*"), regex=True)
        frame = pd.DataFrame([[1, 1]], columns=pd.MultiIndex.from_tuples([("a", "b1"), ("c", "b1")]))
        assert schema.validate(frame).dprisk.declared.index.tolist() == [("a", "b1")]

    @pytest.mark.parametrize("ask", [bounds_from, keys_from, pd.DataFrame({"x": [1]}).dprisk.declare])
    def test_a_pattern_that_is_none(self, ask):
        with pytest.raises(pdrisk.ParameterError):
            ask(one(pa, pa.Check.in_range(0, 1), name="(", regex=True))


class TestPolars:
    """Polars' own dtypes, and frames in SQL."""

    @pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt16, pl.Int32()], ids=str)
    def test_integers_by_validation(self, dtype):
        flavour = pandera.polars
        schema = one(flavour, flavour.Check.gt(2.5), flavour.Check.lt(7), dtype=dtype)
        values = pl.DataFrame({"x": pl.Series(range(100), dtype=dtype)})
        with pytest.raises(flavour.errors.SchemaErrors) as caught:
            schema.validate(values, lazy=True)
        inside = set(range(100)) - set(caught.value.failure_cases["index"])
        assert bounds_from(schema) == {"x": (min(inside), max(inside))} == {"x": (3, 6)}

    @pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Decimal(10, 2)], ids=str)
    def test_other_numbers(self, dtype):
        flavour = pandera.polars
        assert bounds_from(one(flavour, flavour.Check.gt(2.5), flavour.Check.lt(7), dtype=dtype)) == {"x": (2.5, 7)}

    def test_written_categories(self):
        flavour = pandera.polars
        assert keys_from(one(flavour, dtype=pl.Enum(["b", "a"]))) == {"x": ["b", "a"]}
        assert keys_from(one(flavour, flavour.Check.isin(["a"]), dtype=pl.Enum(["b", "a"]))) == {"x": ["a"]}
        assert keys_from(one(flavour, dtype=pl.Categorical)) == {}

    def test_a_frame_in_sql(self):
        flavour = pandera.polars
        columns = {
            "x": flavour.Column(pl.Int64, flavour.Check.in_range(0, 9), metadata={"dprisk": {"missing": [9]}}),
            "g": flavour.Column(pl.Enum(["b", "a"])),
        }
        people = pl.DataFrame({"x": [9, 4, 6], "g": pl.Series(["a", "a", "b"], dtype=pl.Enum(["b", "a"]))})
        schema = flavour.DataFrameSchema(columns)
        assert schema.validate(people).equals(people)
        query = "SELECT g, AVG(x) AS x FROM people GROUP BY g"
        table = pdrisk.sql(query, eps=EXACT, schema=schema, people=schema.validate(people))
        assert table["g"].tolist() == ["b", "a"]
        assert table["x"].round(3).tolist() == [6, 4]


class TestIbis:
    """Ibis' own dtypes."""

    @pytest.mark.parametrize(("name", "expected"), [("int8", (3, 6)), ("uint64", (3, 6)), ("float32", (2.5, 7))])
    def test_numbers(self, name, expected):
        flavour = ibis_flavour()
        dtype = getattr(importlib.import_module("ibis.expr.datatypes"), name)
        assert bounds_from(one(flavour, flavour.Check.gt(2.5), flavour.Check.lt(7), dtype=dtype)) == {"x": expected}


def models(flavour):
    """A model and one that inherits from it."""
    field, check = flavour.Field, flavour.check

    class People(flavour.DataFrameModel):
        age: int = field(in_range={"min_value": 17, "max_value": 120})
        hours: float = field(ge=0, lt=18, nullable=True, coerce=True)
        number: int = field(gt=0, le=10, unique=True)
        state: str = field(isin=["b", "a"], nullable=True)
        income: float = field(alias="net income", ge=-1, le=9, metadata={"dprisk": {"bounds": (0, 9), "missing": [-1]}})
        scale: int = field(alias="^q_.*$", regex=True, gt=0, lt=6)
        weight: float
        remark: Optional[str]  # noqa: UP045

        @check("weight", statistics={"dprisk": {"bounds": (0, 200), "missing": [-2]}})
        @classmethod
        def _plausible(cls, data):
            return True

        class Config:
            name = "people"

    class Workers(People):
        age: int = field(ge=18, le=65)
        number: int
        shift: str = field(isin=["day", "night"])

        @check("weight", statistics={"dprisk": {"bounds": (40, 150)}})
        @classmethod
        def _plausible(cls, data):
            return True

    return People, Workers


BOUNDS = {"age": (17, 120), "hours": (0, 18), "number": (1, 10), "net income": (0, 9), "weight": (0, 200)}


class TestModels:
    """A DataFrameModel says what the schema made of it says."""

    def test_fields(self, flavour):
        people, _ = models(flavour)
        for schema in (people, people.to_schema()):
            assert bounds_from(schema) == BOUNDS
            assert keys_from(schema) == {"state": ["b", "a"]}
            assert missing_from(schema) == {"net income": [-1], "weight": [-2]}
            assert bounds_from(schema, ["q_1", "q", "income"]) == {"q_1": (1, 5)}

    def test_inheritance(self, flavour):
        _, workers = models(flavour)
        inherited = {name: ends for name, ends in BOUNDS.items() if name != "number"}
        assert bounds_from(workers) == inherited | {"age": (18, 65), "weight": (40, 150)}
        assert keys_from(workers) == {"state": ["b", "a"], "shift": ["day", "night"]}
        assert missing_from(workers) == {"net income": [-1]}

    def test_the_name(self, flavour):
        people, workers = models(flavour)
        frame = pd.DataFrame({"age": [30]})
        assert set(frame.dprisk.declare(people).dprisk.declared["source"]) == {"schema 'people'"}
        name = workers.to_schema().name
        assert set(frame.dprisk.declare(workers).dprisk.declared["source"]) == {f"schema {name!r}"}

    def test_checks_of_the_whole_model(self, flavour):
        class Scores(flavour.DataFrameModel):
            first: int
            second: int = flavour.Field(le=3)

            class Config:
                in_range = {"min_value": 0, "max_value": 5}  # noqa: RUF012

        assert bounds_from(Scores) == {"first": (0, 5), "second": (0, 3)}

    def test_what_is_said_of_no_column_is_refused(self, flavour):
        class WithMetadata(flavour.DataFrameModel):
            x: int

            class Config:
                metadata = {"dprisk": {"bounds": (0, 5)}}  # noqa: RUF012

        class WithMark(flavour.DataFrameModel):
            x: int

            @flavour.dataframe_check(statistics={"dprisk": {"bounds": (0, 5)}})
            @classmethod
            def _plausible(cls, data):
                return True

        class Inherited(WithMetadata):
            pass

        for model in (WithMetadata, WithMark, Inherited):
            with pytest.raises(pdrisk.ParameterError, match="belongs to single columns"):
                bounds_from(model)

    def test_categories(self):
        class Groups(pa.DataFrameModel):
            first: pd.CategoricalDtype = pa.Field(dtype_kwargs={"categories": ["b", "a"]})
            second: Annotated[pd.CategoricalDtype, ["d", "c"], False]
            third: pd.CategoricalDtype

        assert keys_from(Groups) == {"first": ["b", "a"], "second": ["d", "c"]}

    def test_a_model_that_is_broken(self):
        class Broken(pa.DataFrameModel):
            x: "Nonsense"  # noqa: F821

        with pytest.raises(pdrisk.ParameterError, match=r"cannot make a schema of Broken .*Nonsense") as caught:
            bounds_from(Broken)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
