"""A frame knows its schema, however it came to it, and every question uses what the schema says."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.errors import SchemaError
from pandera.typing import DataFrame

import pdrisk
from pdrisk._answer.answers.answer import Answer
from schemas import schema_of

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e9
C = pa.Check
SAID = {"bounds": (1, 675), "missing": [-8, -1]}
COMMUTERS = pa.DataFrameSchema(
    {
        "age": pa.Column(int, C.in_range(0, 120)),
        "distance": pa.Column(int, C.in_range(-8, 1000), metadata={"dprisk": SAID}),
        "sex": pa.Column(str, C.isin(["male", "female"])),
    },
    name="commuters",
)


class Commuters(pa.DataFrameModel):
    age: int = pa.Field(in_range={"min_value": 0, "max_value": 120})
    distance: int = pa.Field(ge=-8, le=1000, metadata={"dprisk": SAID})
    sex: str = pa.Field(isin=["male", "female"])

    class Config:
        name = "commuters"


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [30, 41, 52, 63, 40, 75],
            "distance": [3, -8, 10, 900, 17, -1],
            "sex": ["female", "male", "male", "male", "female", "female"],
        }
    )


def as_answered() -> pd.DataFrame:
    """The same people with the codes gone, and nothing declared."""
    return people().replace({"distance": {-8: np.nan, -1: np.nan}})


def commuters() -> pd.DataFrame:
    return COMMUTERS.validate(people())


@pa.check_types
def typed(frame: DataFrame[Commuters]) -> DataFrame[Commuters]:
    return frame


@pa.check_output(COMMUTERS)
def with_output(frame):
    return frame.copy()


@pa.check_io(frame=COMMUTERS, out=COMMUTERS)
def with_io(frame):
    return frame.copy()


@pa.check_input(COMMUTERS)
def with_input(frame):
    return frame


WAYS = {
    "declare": lambda frame: frame.dprisk.declare(COMMUTERS),
    "declare a model": lambda frame: frame.dprisk.declare(Commuters),
    "validate": lambda frame: frame.pipe(COMMUTERS.validate),
    "a call": lambda frame: COMMUTERS(frame),
    "lazy": lambda frame: COMMUTERS.validate(frame, lazy=True),
    "inplace": lambda frame: COMMUTERS.validate(frame, inplace=True),
    "Model.validate": lambda frame: Commuters.validate(frame),
    "DataFrame[Model]": lambda frame: DataFrame[Commuters](frame),
    "check_types": typed,
    "check_output": with_output,
    "check_io": with_io,
    "check_input": with_input,
}
STEPS = {
    "nothing": lambda frame: frame,
    "query": lambda frame: frame.query("age > 0"),
    "copy": lambda frame: frame.copy(),
    "deepcopy": copy.deepcopy,
    "assign": lambda frame: frame.assign(age=frame["age"] + 1),
    "slice": lambda frame: frame[:],
    "loc": lambda frame: frame.loc[frame["age"] > 0],
    "columns": lambda frame: frame[["distance", "sex"]],
    "sort": lambda frame: frame.sort_values("age").reset_index(drop=True),
    "pickle": lambda frame: pickle.loads(pickle.dumps(frame)),
}


class TestWaysIn:
    """Declared or validated in any way, what the schema says travels with the frame."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("step", STEPS)
    def test_what_is_known(self, way, step):
        frame = STEPS[step](WAYS[way](people()))
        table = frame.dprisk.mean("distance", eps=EXACT, by="sex")
        assert table.index.tolist() == ["male", "female"]
        assert table["value"].round(3).tolist() == [342.5, 10]
        assert frame.dprisk.mean("distance", eps=1).bounds == (1, 675)

    @pytest.mark.parametrize("way", WAYS)
    def test_a_parquet_file(self, way, tmp_path):
        frame = WAYS[way](people())
        frame.to_parquet(tmp_path / "people.parquet")
        again = pd.read_parquet(tmp_path / "people.parquet")
        assert again.attrs == frame.attrs
        assert again.dprisk.count("distance", eps=EXACT).curator.n == 4

    @pytest.mark.parametrize("way", WAYS)
    def test_attrs_are_one_text(self, way):
        attrs = WAYS[way](people()).attrs
        assert json.loads(json.dumps(attrs)) == attrs
        assert list(attrs) == ["dprisk"]
        assert copy.deepcopy(attrs)["dprisk"] is attrs["dprisk"]
        assert attrs == commuters().attrs

    def test_a_chain(self):
        release = people().pipe(COMMUTERS.validate).query("age > 40").dprisk.mean("distance", eps=EXACT)
        assert (release.curator.n, release.bounds, round(release.value, 3)) == (2, (1, 675), 342.5)

    def test_the_frame_that_was_passed_stays_as_it_is(self):
        frame = people()
        frame.attrs["other"] = [1]
        assert COMMUTERS.validate(frame).attrs["other"] == [1]
        assert frame.dprisk.declare(COMMUTERS).attrs["other"] == [1]
        assert frame.attrs == {"other": [1]}
        pd.testing.assert_frame_equal(frame, people())

    def test_two_models_in_a_chain(self):
        class Raw(pa.DataFrameModel):
            age: int = pa.Field(ge=0, le=150)
            distance: int = pa.Field(ge=-8, le=1000, metadata={"dprisk": SAID})

        class Clean(pa.DataFrameModel):
            age: int = pa.Field(ge=40, le=120)
            hours: float = pa.Field(ge=0, le=24)

        @pa.check_types
        def cleaned(frame: DataFrame[Raw]) -> DataFrame[Clean]:
            return frame.query("age >= 40").assign(hours=8.0)

        table = cleaned(people()).dprisk.declared
        assert table["lo"].to_dict() == {"age": 40, "hours": 0, "distance": 1}
        assert table["source"].to_dict() == {
            "age": "schema 'Clean'",
            "hours": "schema 'Clean'",
            "distance": "schema 'Raw'",
        }

    def test_one_column_alone_has_no_frame_to_tell(self):
        series = pa.SeriesSchema(int, C.in_range(0, 9), name="x").validate(pd.Series([1, 2], name="x"))
        column = pa.Column(int, C.in_range(0, 9), name="x").validate(pd.DataFrame({"x": [1, 2]}))
        for data, name in ((series, ()), (column, ("x",))):
            assert data.dprisk.mean(*name, eps=1, bounds=(0, 99)).bounds == (0, 99)
            with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
                data.dprisk.mean(*name, eps=1)


ENTRIES = {
    "age": (0.0, 120.0, 0.0, 120.0, None, None, "schema 'commuters'"),
    "distance": (1.0, 675.0, -8.0, 1000.0, None, [-8, -1], "schema 'commuters'"),
    "sex": (np.nan, np.nan, -np.inf, np.inf, ["male", "female"], None, "schema 'commuters'"),
}


class TestDeclared:
    """The table shows for each column of the frame what holds, and who said so."""

    def test_contents(self):
        table = commuters().dprisk.declared
        columns = ["lo", "hi", "valid_lo", "valid_hi", "keys", "missing", "source"]
        expected = pd.DataFrame.from_dict(ENTRIES, orient="index", columns=columns).rename_axis("column")
        expected = expected.astype({"keys": object, "missing": object})
        pd.testing.assert_frame_equal(table, expected, check_dtype=False, check_index_type=False)
        assert commuters()[["sex"]].dprisk.declared.index.tolist() == ["sex"]
        assert people().dprisk.declared.empty

    def test_who_said_what(self):
        frame = commuters().dprisk.declare(bounds={"distance": (1, 500)}, keys={"sex": ["female"]})
        frame = frame.dprisk.declare(missing={"age": [99]})
        source = frame.dprisk.declared["source"]
        assert source["distance"] == "declare: bounds; schema 'commuters': range, missing"
        assert source["age"] == "schema 'commuters': bounds, range; declare: missing"
        assert source["sex"] == "declare"

    def test_a_schema_without_a_name(self):
        assert (
            people().dprisk.declare(pa.DataFrameSchema(COMMUTERS.columns)).dprisk.declared["source"]["age"] == "schema"
        )


class TestWhoWins:
    """A call goes before a declaration, a declaration before a schema; nothing goes beyond the schema's range."""

    @pytest.mark.parametrize("bounds", [(1, 675), (5, 100), (-8, 1000), (0.5, 999.5)])
    def test_bounds_of_the_call(self, bounds):
        assert commuters().dprisk.mean("distance", eps=1, bounds=bounds).bounds == bounds
        assert commuters()["distance"].dprisk.max(eps=1, bounds=bounds, mechanism="laplace").bounds == bounds

    @pytest.mark.parametrize(
        ("bounds", "said"),
        [
            ((-9, 1000), r"\(-9, 1000\) .* -8 to 1000 \(1 too low\)"),
            ((1, 1001), r"\(1, 1001\) .* -8 to 1000 \(1 too high\)"),
            ((-8.5, 1500), r"\(-8.5, 1500\) .* -8 to 1000 \(0.5 too low and 500 too high\)"),
        ],
    )
    @pytest.mark.parametrize("way", ["call", "series", "agg", "assess", "declare", "before", "risk", "epsilon"])
    def test_wider_bounds(self, bounds, said, way):
        frame = commuters()
        ask = {
            "call": lambda: frame.dprisk.mean("distance", eps=1, bounds=bounds),
            "series": lambda: frame["distance"].dprisk.mean(eps=1, bounds=bounds),
            "agg": lambda: frame.dprisk.agg({"distance": "mean"}, eps=1, bounds={"distance": bounds}),
            "assess": lambda: frame.dprisk.assess("distance", "mean", bounds=bounds),
            "risk": lambda: frame.dprisk.individual_risk("distance", eps=1, bounds=bounds),
            "epsilon": lambda: frame.dprisk.epsilon_for("distance", risk=0.7, bounds=bounds),
            "declare": lambda: frame.dprisk.declare(bounds={"distance": bounds}),
            "before": lambda: people().dprisk.declare(bounds={"distance": bounds}).dprisk.declare(COMMUTERS),
        }[way]
        with pytest.raises(pdrisk.ParameterError, match=said) as caught:
            ask()
        caught.match("of 'distance' are wider than the range that schema 'commuters' allows")

    def test_large_numbers_are_written_out(self):
        frame = pd.DataFrame({"x": [1]}).dprisk.declare(schema_of(C.in_range(0, 2_700_000)))
        with pytest.raises(pdrisk.ParameterError) as caught:
            frame.dprisk.mean("x", eps=1, bounds=(0, 2_700_001))
        words = str(caught.value).replace(",", "").replace("_", "")
        assert "2700000" in words and "2700001" in words

    @pytest.mark.parametrize(("check", "bounds"), [(C.ge(0), (0, 1e6)), (C.le(9), (-1e6, 9))])
    def test_a_range_with_one_end(self, check, bounds):
        frame = pd.DataFrame({"x": [1]}).dprisk.declare(schema_of(check))
        assert frame.dprisk.mean("x", eps=1, bounds=bounds).bounds == bounds
        assert frame.dprisk.declare(bounds={"x": bounds}).dprisk.mean("x", eps=1).bounds == bounds
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            frame.dprisk.mean("x", eps=1)
        with pytest.raises(pdrisk.ParameterError, match=r"0 and more \(1 too low\)|9 and less \(1 too high\)"):
            frame.dprisk.mean("x", eps=1, bounds=(bounds[0] - 1, bounds[1] + 1))

    @pytest.mark.parametrize("first", ["declare", "schema"])
    @pytest.mark.parametrize("how", ["declare", "validate"])
    def test_by_hand_and_by_schema_in_any_order(self, first, how):
        hand = {"bounds": {"distance": (2, 50)}, "keys": {"sex": ["female"]}, "missing": {"distance": [-8]}}
        told = {"declare": lambda f: f.dprisk.declare(COMMUTERS), "validate": COMMUTERS.validate}[how]
        frame = people().dprisk.declare(**hand) if first == "declare" else told(people())
        frame = told(frame) if first == "declare" else frame.dprisk.declare(**hand)
        known = frame.dprisk.declared.loc["distance"]
        assert known[["lo", "hi", "valid_lo", "valid_hi"]].tolist() == [2, 50, -8, 1000]
        assert known["missing"] == [-8]
        assert frame.dprisk.count("distance", eps=1, by="sex", curator=True)["n"].to_dict() == {"female": 3}

    def test_the_later_schema(self):
        later = pa.DataFrameSchema({"age": pa.Column(int, C.in_range(10, 200)), "sex": pa.Column(str)}, name="later")
        for frame in (commuters().dprisk.declare(later), later.validate(commuters())):
            table = frame.dprisk.declared
            assert table["hi"].to_dict() == {"age": 200, "distance": 675}  # and sex, it says, can be anything
            assert table["source"].to_dict() == {"age": "schema 'later'", "distance": "schema 'commuters'"}

    def test_data_can_be_asked_for_their_range_still(self):
        release = commuters().dprisk.mean("distance", eps=EXACT, bounds="column")
        assert (release.bounds, release.bounds_from_data, release.curator.n) == ((3, 900), True, 4)


class TestPatterns:
    """A pattern declares all columns that match, also those that come later."""

    SCHEMA = pa.DataFrameSchema({"q_[0-9]": pa.Column(int, C.in_range(1, 5), regex=True)})

    def test_columns_added_later(self):
        frame = self.SCHEMA.validate(pd.DataFrame({"q_1": [1, 2], "other": [1, 2]}))
        frame = frame.assign(q_2=[3, 3], q_33=[9, 9], q=[0, 0])
        assert frame.dprisk.declared.index.tolist() == ["q_1", "q_2", "q_33"]
        assert frame.dprisk.mean("q_33", eps=EXACT).value == pytest.approx(5, abs=1e-3)
        assert frame["q_2"].dprisk.mean(eps=1).bounds == (1, 5)
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            frame.dprisk.mean("q", eps=1)

    def test_all_that_is_said_of_a_column_holds(self):
        columns = {
            "q_1": pa.Column(int, C.ge(2)),
            ".*_1": pa.Column(int, C.isin([2, 3]), regex=True, metadata={"dprisk": {"missing": [3]}}),
            **self.SCHEMA.columns,
        }
        known = pd.DataFrame({"q_1": [2]}).dprisk.declare(pa.DataFrameSchema(columns)).dprisk.declared.loc["q_1"]
        assert known.drop("source").tolist() == [2, 5, 2, 5, [2], [3]]


class TestEveryQuestion:
    """With a schema a question means the same as with its bounds in the call and its codes gone."""

    def test_assess(self):
        for options in ({}, {"where": "sex == 'male'"}, {"by": "sex", "keys": ["male", "female"]}):
            options |= {"mechanism": "laplace"}  # a schema's whole numbers have other medians than bounds alone
            table = commuters().dprisk.assess(["distance", "age"], eps=1, **options)
            plain = as_answered().dprisk.assess(
                ["distance", "age"], eps=1, bounds={"distance": (1, 675), "age": (0, 120)}, **options
            )
            pd.testing.assert_frame_equal(table, plain)
        by_schema = commuters().dprisk.assess("distance", "count", by="sex")
        assert by_schema.loc[by_schema["eps"] == 1, "n"].tolist() == [2, 2]

    @pytest.mark.parametrize("statistic", ["mean", "max", "median", "count"])
    def test_individual_risk(self, statistic):
        asked = {"eps": 1, "mechanism": "laplace" if statistic in ("median", "max") else "auto"}
        risks = commuters().dprisk.individual_risk("distance", statistic, **asked)
        plain = as_answered().dprisk.individual_risk("distance", statistic, bounds=(1, 675), **asked)
        pd.testing.assert_series_equal(risks, plain)
        assert risks.isna().tolist() == [False, True, False, False, False, True]
        pd.testing.assert_series_equal(commuters()["distance"].dprisk.individual_risk(statistic, **asked), plain)

    @pytest.mark.parametrize("metric", ["worst_case", "two_worlds", "many_worlds", "identifiability"])
    def test_epsilon_for(self, metric):
        asked = {"risk": 0.7, "metric": metric}
        plain = as_answered().dprisk.epsilon_for("distance", "max", bounds=(1, 675), **asked)
        assert commuters().dprisk.epsilon_for("distance", "max", **asked) == plain
        assert commuters()["distance"].dprisk.epsilon_for("max", **asked) == plain

    def test_agg(self):
        request = {"distance": ["mean", "count", "min"], "age": "max", None: "count"}
        table = commuters().dprisk.agg(request, eps=EXACT, by="sex", curator=True, mechanism="laplace")
        assert table["n"].tolist() == [2, 2] * 3 + [3, 3] * 2
        assert table["value"].round(2).tolist() == [342.5, 10, 2, 2, 10, 3, 63, 75, 3, 3]
        assert [line.bounds for line in Answer.from_attrs(table.attrs).lines] == [
            (1, 675),
            None,
            (1, 675),
            (0, 120),
            None,
        ]

    @pytest.mark.parametrize("statistic", ["count", "sum", "mean", "median", "min", "max", "var", "std"])
    def test_a_series(self, statistic):
        release = getattr(commuters()["distance"].dprisk, statistic)(eps=EXACT)
        plain = getattr(as_answered()["distance"].dprisk, statistic)(
            eps=EXACT, **({} if statistic == "count" else {"bounds": (1, 675)})
        )
        assert (release.curator.n, release.bounds) == (plain.curator.n, plain.bounds)
        assert (release.global_sensitivity, release.curator.local_sensitivity) == (
            plain.global_sensitivity,
            plain.curator.local_sensitivity,
        )

    def test_filters_and_groups_see_no_codes(self):
        frame = commuters()
        assert frame.dprisk.count(eps=EXACT, where="distance < 5").curator.n == 1
        assert frame.dprisk.count(eps=EXACT, where=lambda people: people["distance"].isna()).curator.n == 2
        keyed = frame.dprisk.declare(keys={"distance": [3, 10]})
        assert keyed.dprisk.count(eps=EXACT, by="distance", curator=True)["n"].tolist() == [1, 1]
        observed = frame.dprisk.count(eps=EXACT, by="distance", keys="observed")
        assert observed.index.tolist() == [3, 10, 17, 900, pd.NA]
        with pytest.raises(pdrisk.ParameterError, match="stand for a missing answer"):
            frame.dprisk.count(eps=1, by="distance", keys=[3, -8])
        assert frame.dprisk.count(eps=1, by="distance", keys=[None], curator=True)["n"].tolist() == [2]

    def test_a_validation_in_a_filter_says_nothing(self):
        strict = schema_of(C.in_range(0, 2))
        frame = pd.DataFrame({"x": [1, 987654321]}).dprisk.declare(schema_of(C.ge(0)))
        with pytest.raises(SchemaError, match="987654321"):
            strict.validate(frame)
        for ask in (frame.dprisk.count, frame["x"].to_frame().dprisk.count):
            with pytest.raises(pdrisk.QueryFailedError) as caught:
                ask(eps=1, where=lambda people: strict.validate(people)["x"] > 0)
            assert (caught.value.__cause__, caught.value.__context__) == (None, None)
            assert "987654321" not in str(caught.value)
