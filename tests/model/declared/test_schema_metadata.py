"""What is written down beside a schema's checks is understood or refused; schema_for writes it down."""

import copy
import datetime
import math

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk import bounds_from, keys_from, missing_from, schema_for
from schemas import accepted, marked, said, schema_of

C = pa.Check
INF = math.inf
NAN = math.nan

WRONG = {
    "None": (None, "must be a dict with bounds, keys, missing, not None"),
    "a list": ([1], "must be a dict .* not of type list"),
    "a text": ("bounds", "not of type str"),
    "no bounds": ({"bounds": 5}, "pair"),
    "one bound": ({"bounds": (0,)}, "one value"),
    "three bounds": ({"bounds": (0, 1, 2)}, "more than two"),
    "bounds of text": ({"bounds": ("0", "1")}, "lo of bounds must be a number"),
    "bounds of truth values": ({"bounds": (False, True)}, "lo of bounds must be a number"),
    "bounds of data": ({"bounds": "column"}, "pair"),
    "reversed": ({"bounds": (1, 0)}, "reversed"),
    "equal": ({"bounds": (1, 1)}, "both are 1"),
    "infinite": ({"bounds": (0, INF)}, "finite"),
    "keys of text": ({"keys": "abc"}, "keys must be a list.* not of type str"),
    "a set of keys": ({"keys": {"a"}}, "keys must be a list.* not of type set"),
    "a key": ({"keys": 5}, "keys must be a list.* not of type int"),
    "keys in lists": ({"keys": [["a"]]}, "a key must be text.* not list"),
    "keys in unequal lists": ({"keys": [[1, 2], [3]]}, ""),
    "bytes": ({"keys": [b"a"]}, "a key must be text.* not bytes"),
    "a code": ({"missing": -1}, "missing must be a list, as in .-1, -2., not of type int"),
    "a dict of codes": ({"missing": {-1: "refused"}}, "missing must be a list.* not of type dict"),
    "a complex code": ({"missing": [1j]}, "a missing code must be text.* not complex"),
    "bound": ({"bound": (0, 1)}, "not 'bound'. Did you mean 'bounds'"),
    "Bounds": ({"Bounds": (0, 1)}, "not 'Bounds'. Did you mean 'bounds'"),
    "key": ({"bounds": (0, 1), "key": [1]}, "not 'key'. Did you mean 'keys'"),
    "misssing": ({"misssing": [1]}, "not 'misssing'. Did you mean 'missing'"),
    "no near name": ({"universe": (0, 1), 5: 5}, "knows bounds, keys, missing, but not 'universe'.$"),
}


class TestMetadata:
    """What checks cannot say stands in metadata, or in the mark of a check; what is not understood is an error."""

    def test_every_part(self):
        said_of_x = {"bounds": (0, 9), "keys": [3, None], "missing": [-1, np.int64(-2)]}
        for schema in (schema_of(metadata={"dprisk": said_of_x, "other": 5}), schema_of(marked(**said_of_x))):
            assert bounds_from(schema) == {"x": (0, 9)}
            assert keys_from(schema) == {"x": [3, None]}
            assert missing_from(schema) == {"x": [-1, -2]}

    def test_bounds_without_a_check_are_the_range(self):
        assert said(schema_of(metadata={"dprisk": {"bounds": (0, 9)}})) == (0, 9, 0, 9)
        assert said(schema_of(marked(bounds=(0, 9)), metadata={"dprisk": {"missing": [-1]}})) == (0, 9, 0, 9)

    def test_bounds_within_a_check(self):
        assert said(schema_of(C.in_range(-8, 99), metadata={"dprisk": {"bounds": (0, 9)}})) == (0, 9, -8, 99)
        assert said(schema_of(C.ge(-8), marked(bounds=(0, 9)))) == (0, 9, -8, INF)

    def test_bounds_beyond_a_check_are_refused(self):
        schema = schema_of(C.in_range(0, 8), metadata={"dprisk": {"bounds": (-1, 9)}})
        with pytest.raises(pdrisk.ParameterError, match=r"\(-1, 9\) of 'x' .* 0 to 8 \(1 too low and 1 too high\)"):
            bounds_from(schema)

    def test_metadata_go_before_marks_and_marks_before_checks(self):
        checks = [C.isin([1, 2]), marked(bounds=(0, 5), keys=[3]), marked(bounds=(0, 4), missing=[-1])]
        assert (bounds_from(schema_of(*checks)), keys_from(schema_of(*checks))) == ({"x": (0, 5)}, {"x": [3]})
        schema = schema_of(*checks, metadata={"dprisk": {"keys": [7]}})
        assert (bounds_from(schema), keys_from(schema), missing_from(schema)) == (
            {"x": (0, 5)},
            {"x": [7]},
            {"x": [-1]},
        )

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("form", ["metadata", "mark", "mark beside metadata", "two marks"])
    @pytest.mark.parametrize(("wrong", "words"), WRONG.values(), ids=WRONG)
    def test_what_is_not_understood(self, wrong, words, form):
        mark = C(lambda series: series == series, statistics={"dprisk": wrong})
        beside = {"keys": [1]} if isinstance(wrong, dict) and "bounds" in wrong else {"bounds": (0, 1)}
        column = {
            "metadata": pa.Column(metadata={"dprisk": wrong}),
            "mark": pa.Column(checks=mark),
            "mark beside metadata": pa.Column(checks=mark, metadata={"dprisk": beside}),
            "two marks": pa.Column(checks=[mark, marked(missing=[-1])]),
        }[form]
        schema = pa.DataFrameSchema({"x": column, "y": pa.Column(checks=C.in_range(0, 1))}, name="poll")
        frame = pd.DataFrame({"x": [1], "y": [0]})
        for ask in (bounds_from, keys_from, missing_from, frame.dprisk.declare):
            with pytest.raises(pdrisk.ParameterError, match=f"column 'x' of the schema 'poll': .*{words}") as caught:
                ask(schema)
            assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        assert bounds_from(schema, ["y"]) == {"y": (0, 1)}

    @pytest.mark.parametrize(
        "schema",
        [
            pa.DataFrameSchema({"x": pa.Column()}, metadata={"dprisk": {"bounds": (0, 1)}}),
            pa.DataFrameSchema({"x": pa.Column()}, checks=marked(bounds=(0, 1))),
        ],
        ids=["metadata", "mark"],
    )
    def test_what_is_said_of_no_column_is_refused(self, schema):
        with pytest.raises(pdrisk.ParameterError, match="belongs to single columns"):
            bounds_from(schema)

    @pytest.mark.parametrize("other", [None, 5, {"x": (0, 1)}, pd.DataFrame(), pa.SeriesSchema(int), pa.Column, dict])
    def test_no_schema(self, other):
        with pytest.raises(pdrisk.ColumnTypeError, match="pandera DataFrameSchema or DataFrameModel, not"):
            bounds_from(other)

    def test_which_columns(self):
        schema = pa.DataFrameSchema({name: pa.Column(checks=C.in_range(0, 9)) for name in ("x", "distance")})
        assert bounds_from(schema, ["distance", "z"]) == {"distance": (0, 9)}
        assert bounds_from(schema, []) == {}
        assert bounds_from(schema, iter("x")) == {"x": (0, 9)}

    def test_changed_and_copied_schemas(self):
        schema = schema_of(C.gt(0), C.lt(9), dtype=int)
        for same in (copy.deepcopy(schema), schema.set_index(["x"]).reset_index(), schema.select_columns(["x"])):
            assert bounds_from(same) == {"x": (1, 8)}
        assert bounds_from(schema.update_column("x", dtype=float)) == {"x": (0, 9)}
        assert bounds_from(schema.rename_columns({"x": "y"})) == {"y": (1, 8)}


TEXTS = st.text("abß -1", min_size=1, max_size=3)
CODES = st.integers(-99, -1)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
ENDS = st.builds(lambda low, width: (low, low + width), NUMBERS, st.integers(3, 10**6))
LABELS = TEXTS | st.integers(0, 9) | st.tuples(TEXTS, st.integers(0, 3))


class TestSchemaFor:
    """A schema made of declarations gives them back, and validates what is declared."""

    @pytest.mark.slow
    @given(
        bounds=st.dictionaries(LABELS, ENDS),
        keys=st.dictionaries(
            LABELS, st.lists(TEXTS | st.integers(0, 10**6) | st.floats(0, 1), min_size=1, unique=True)
        ),
        missing=st.dictionaries(LABELS, st.lists(CODES, min_size=1, unique=True)),
    )
    def test_round_trip(self, bounds, keys, missing):
        schema = schema_for(bounds, keys, missing, name="poll")
        assert schema.name == "poll"
        assert (bounds_from(schema), keys_from(schema), missing_from(schema)) == (bounds, keys, missing)
        again = schema_for(bounds_from(schema), keys_from(schema), missing_from(schema))
        assert (bounds_from(again), keys_from(again), missing_from(again)) == (bounds, keys, missing)

    @pytest.mark.slow
    @given(ends=ENDS, codes=st.lists(CODES))
    def test_validation_of_numbers(self, ends, codes):
        schema = schema_for(bounds={"x": ends}, missing={"x": codes})
        inside = [float(value) for value in (*ends, sum(ends) / 2, *codes, NAN)]
        lowest, highest = min([*ends, *codes]), max([*ends, *codes])
        assert accepted(schema, inside) == inside
        assert accepted(schema, [lowest - 1, highest + 1, INF, -INF]) == []

    @pytest.mark.slow
    @given(keys=st.lists(TEXTS, min_size=1, unique=True), codes=st.lists(TEXTS, max_size=2))
    def test_validation_of_keys(self, keys, codes):
        schema = schema_for(keys={"x": keys}, missing={"x": codes})
        inside = [*keys, *codes, None]
        assert accepted(schema, inside, object) == inside
        assert accepted(schema, ["another", "A"], object) == []

    def test_a_key_for_missing(self):
        assert keys_from(schema_for(keys={"x": ["a", None]})) == {"x": ["a", None]}

    def test_a_column_that_is_not_there(self):
        schema = schema_for({"x": (0, 1)}, {"y": ["a"]}, {"z": [-1]})
        assert schema.validate(pd.DataFrame({"other": [5]})).columns.tolist() == ["other"]
        assert bounds_from(schema_for()) == {}

    @pytest.mark.parametrize(
        "wrong",
        [
            *(
                {"bounds": {"x": (1, 0)}},
                {"bounds": {"x": "column"}},
                {"bounds": [("x", (0, 1))]},
                {"keys": {"x": "ab"}},
            ),
            *(
                {"keys": {"x": []}},
                {"keys": {"x": ["a", "a"]}},
                {"keys": ["a"]},
                {"missing": {"x": -1}},
                {"missing": 5},
            ),
        ],
        ids=str,
    )
    def test_refused_as_declare_does(self, wrong):
        for ask in (schema_for, pd.DataFrame({"x": ["a"]}).dprisk.declare):
            with pytest.raises(pdrisk.ParameterError):
                ask(**wrong)


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
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

    @pytest.mark.slow
    def test_many_keys_and_codes_take_no_time_together(self):
        keys = list(range(50_000))
        frame = pd.DataFrame({"x": [1, 2]}).dprisk.declare(keys={"x": keys}, missing={"x": keys[::2]})
        assert len(frame.dprisk.count(eps=1, by="x")) == 25_000
