"""Bounds and keys declared once, and several answers from one eps."""

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e6
COLUMNS = ["value", "low", "high", "eps", "worst_case"]
CURATOR = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"]


def said(table: pd.DataFrame) -> Answer:
    """What a table says of itself."""
    return Answer.from_attrs(table.attrs)


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "distance": [3, 1, 10, 675, 17],
            "age": [30, 41, 52, 63, 40],
            "region": ["north", "south", "north", "south", "east"],
            "sex": ["f", "m", "m", "m", "f"],
        }
    )


def declared() -> pd.DataFrame:
    return people().dprisk.declare(bounds={"distance": (1, 675)}, keys={"region": ["south", "north"]})


def through_parquet(frame: pd.DataFrame, folder) -> pd.DataFrame:
    frame.to_parquet(folder / "frame.parquet")
    return pd.read_parquet(folder / "frame.parquet")


SURVIVALS = {
    "query": lambda frame: frame.query("age > 0"),
    "copy": lambda frame: frame.copy(),
    "deepcopy": copy.deepcopy,
    "assign": lambda frame: frame.assign(distance=frame["distance"]),
    "slice": lambda frame: frame[:],
    "columns": lambda frame: frame[["distance", "region"]],
    "loc": lambda frame: frame.loc[frame["age"] > 0],
    "astype": lambda frame: frame.astype({"distance": "Float64"}),
    "sort": lambda frame: frame.sort_values("age"),
    "reset_index": lambda frame: frame.reset_index(),
    "pickle": lambda frame: pickle.loads(pickle.dumps(frame)),
    "pipe": lambda frame: frame.pipe(lambda same: same),
}


class TestDeclare:
    """Declared bounds and keys stand in for those of the call, and travel with the frame."""

    @pytest.mark.parametrize("change", SURVIVALS.values(), ids=SURVIVALS.keys())
    def test_survives(self, change):
        table = change(declared()).dprisk.mean("distance", eps=EXACT, by="region")
        assert table.index.tolist() == ["south", "north"]
        assert table["value"].round(1).tolist() == [338, 6.5]
        assert [line.global_sensitivity for line in said(table).lines] == [337]

    def test_survives_a_parquet_file(self, tmp_path):
        frame = through_parquet(declared(), tmp_path)
        assert frame.attrs == declared().attrs
        assert frame.dprisk.mean("distance", eps=EXACT, by="region", curator=True)["n"].tolist() == [2, 2]

    @pytest.mark.parametrize(
        ("column", "keys"),
        [
            (pd.to_datetime(["2020-01-02", "2021-01-01", None]), [pd.Timestamp("2020-01-02"), None]),
            (
                pd.to_datetime(["2020-01-02", "2021-01-01", None], utc=True),
                [pd.Timestamp("2020-01-02", tz="UTC"), None],
            ),
            (pd.to_timedelta([1, 2, None], unit="D"), [pd.Timedelta(1, unit="D"), None]),
            ([1.5, np.inf, np.nan], np.array([np.inf, np.nan])),
            (pd.array([1, 2, None], dtype="Int64"), [np.int64(2), pd.NA]),
            (pd.array([True, False, None], dtype="boolean"), [np.True_, None]),
            (["a", "b", None], [np.str_("b"), np.nan]),
        ],
        ids=["dates", "zoned dates", "timedeltas", "floats", "integers", "truth values", "texts"],
    )
    def test_every_kind_of_key_survives_a_parquet_file(self, column, keys, tmp_path):
        frame = pd.DataFrame({"group": column, "x": 1}).dprisk.declare(keys={"group": keys})
        for same in (frame, through_parquet(frame, tmp_path)):
            assert same.dprisk.count(eps=1, by="group", curator=True)["n"].tolist() == [1, 1]

    def test_columns_need_not_be_named_by_text(self):
        frame = people().set_axis([0, ("a", 1), 2.5, None], axis="columns")
        known = frame.dprisk.declare(bounds={0: (1, 675), ("a", 1): (0, 99)}, keys={2.5: ["north"]})
        known = pickle.loads(pickle.dumps(known))
        assert known.dprisk.mean(0, eps=1).bounds == (1, 675)
        assert known.dprisk.max(("a", 1), eps=1, by=2.5, curator=True)["n"].tolist() == [2]

    def test_a_second_declaration_adds_and_replaces(self):
        frame = declared().dprisk.declare(bounds={"age": (0, 120)})
        frame = frame.dprisk.declare(bounds={"distance": (0, 1000)}, keys={"sex": ["m"]})
        assert frame.dprisk.max("distance", eps=1).bounds == (0, 1000)
        assert frame.dprisk.max("age", eps=1, by=["region", "sex"]).index.tolist() == [("south", "m"), ("north", "m")]

    def test_the_call_goes_before_the_declaration(self):
        assert declared().dprisk.mean("distance", eps=1, bounds=(0, 700)).bounds == (0, 700)
        assert declared().dprisk.count(eps=1, by="region", keys=["east"]).index.tolist() == ["east"]
        mixed = {"region": ["north"], "sex": ["f", "m"]}
        assert len(declared().dprisk.count(eps=1, by=["region", "sex"], keys=mixed)) == 2

    def test_the_frame_itself_and_its_series(self):
        frame = people()
        assert frame.dprisk.declare(bounds={"age": (0, 1)}) is not frame
        assert frame.attrs == {}
        assert declared()["distance"].dprisk.mean(eps=1).bounds == (1, 675)

    def test_attrs_hold_plain_values_only(self):
        frame = people().dprisk.declare(bounds={"age": (np.int64(0), np.float32(99))}, keys={"age": np.array([30])})
        (entry,) = json.loads(frame.attrs["dprisk"])["own"]
        assert entry == {"column": "age", "source": "declare", "bounds": [0.0, 99.0], "keys": [30]}

    def test_attrs_cost_a_chain_nothing(self):
        frame = people().dprisk.declare(keys={"age": range(10_000)})
        assert frame.query("age > 0").copy().attrs["dprisk"] is frame.attrs["dprisk"]

    @pytest.mark.parametrize(
        "attribute",
        [
            *("junk", [], {}, 7, "null", "[]", "{}", '{"own": 5, "schema": []}', '{"own": [{}], "schema": []}'),
            '{"own": [{"column": {}, "source": "me"}], "schema": []}',
            '{"own": [{"column": "distance", "source": "me", "bounds": [1]}], "schema": []}',
            '{"own": [{"column": "distance", "source": "me", "bounds": ["a", "b"]}], "schema": []}',
            '{"own": [{"column": "distance", "source": "me", "bounds": [5, 1]}], "schema": []}',
            '{"own": [{"column": "distance", "source": "me", "missing": 5}], "schema": []}',
        ],
        ids=str,
    )
    def test_attrs_that_somebody_else_filled_are_refused_in_words(self, attribute):
        frame = people()
        frame.attrs["dprisk"] = attribute
        with pytest.raises(pdrisk.ParameterError):
            frame.dprisk.mean("distance", eps=1, bounds=(1, 675), by="region", keys=["east"])


class TestAgg:
    """eps is the total of the call: split evenly over the lines, exactly, and shown with each of them."""

    def test_a_table_by_column_and_statistic(self):
        request = {"distance": ["mean", ("quantile", {"q": 0.9}), ("var", {"ddof": 0})], "age": "max"}
        options = {"bounds": {"distance": (1, 675), "age": (0, 120)}, "mechanism": "laplace", "curator": True}
        table = people().dprisk.agg(request, eps=EXACT, **options)
        assert isinstance(table, pd.DataFrame)
        assert table.columns.tolist() == [*COLUMNS, *CURATOR, "release"]
        assert table["release"].tolist() == [1, 2, 3, 4]
        assert table.index.names == ["column", "statistic"]
        lines = [("distance", "mean"), ("distance", "quantile(0.9)"), ("distance", "var(ddof=0)"), ("age", "max")]
        assert table.index.tolist() == lines
        assert table["value"].tolist() == pytest.approx([141.2, 411.8, 71267.36, 63], rel=1e-3)
        assert [line.global_sensitivity for line in said(table).lines] == pytest.approx([337, 606.6, 113569, 120])
        assert table["eps"].tolist() == [EXACT / 4] * 4

    @pytest.mark.parametrize("eps", [1, 0.1, Fraction(1, 3), np.float64(0.7)])
    @pytest.mark.parametrize("lines", [1, 3, 7])
    def test_eps_is_split_exactly(self, eps, lines):
        names = ["count", "sum", "mean", "median", "min", "max", "var"][:lines]
        table = people().dprisk.agg({"distance": names}, eps=eps, bounds=(1, 675), mechanism="laplace")
        each = Fraction(str(eps)) / lines
        assert table["eps"].tolist() == [float(each)] * lines
        assert table["eps"].sum() == pytest.approx(float(eps), rel=1e-15)
        for line in said(table).lines:
            assert (line.eps, line.scale) == (
                float(each),
                pytest.approx(line.global_sensitivity / float(each), rel=1e-8),
            )

    def test_with_risk_and_where(self):
        request = {"distance": ["mean", "max"]}
        table = people().dprisk.agg(request, risk=0.9, bounds=(1, 675), where="age > 40", curator=True)
        assert table["eps"].sum() == pytest.approx(np.log(9))
        assert table["n"].tolist() == [3, 3]
        assert said(table).where == "age > 40"

    def test_groups_cost_one_line(self):
        request = {"distance": ["mean", "max"], "age": ["count"]}
        table = declared().dprisk.agg(request, eps=EXACT, by="region", curator=True, mechanism="laplace")
        assert table.index.names == ["column", "statistic", "region"]
        assert table.index.tolist()[:3] == [
            ("distance", "mean", "south"),
            ("distance", "mean", "north"),
            ("distance", "max", "south"),
        ]
        assert table["eps"].tolist() == [EXACT / 3] * 6
        assert table["value"].round(1).tolist() == [338, 6.5, 675, 10, 2, 2]
        assert table["n"].tolist() == [2] * 6

    def test_groups_of_two_columns(self):
        keys = {"region": ["north", "east"], "sex": ["m"]}
        table = people().dprisk.agg(
            {"age": ["mean", "min"]},
            eps=EXACT,
            bounds=(0, 120),
            by=["region", "sex"],
            keys=keys,
            curator=True,
            mechanism="laplace",
        )
        assert table.index.tolist()[2:] == [("age", "min", "north", "m"), ("age", "min", "east", "m")]
        assert table.index.names == ["column", "statistic", "region", "sex"]
        assert table["value"].round(1).tolist() == [52, 60, 52, 120]
        assert table["n"].tolist() == [1, 0, 1, 0]

    def test_observed_keys_of_nothing(self):
        table = (
            people()
            .head(0)
            .dprisk.agg({"distance": ["mean", "max"]}, eps=1, bounds=(1, 675), by="sex", keys="observed")
        )
        assert (table.shape, table.index.nlevels) == ((0, 6), 3)

    def test_bounds_by_column(self):
        table = declared().dprisk.agg({"distance": "mean", "age": "mean"}, eps=1, bounds={"age": (0, 100)})
        assert [line.global_sensitivity for line in said(table).lines] == [337, 50]
        table = people().dprisk.agg(
            {"distance": "max", "age": "max"}, eps=1, bounds={"age": (0, 100), "distance": "column"}
        )
        assert [line.global_sensitivity for line in said(table).lines] == [674, 100]
        assert said(table).bounds_from_data is True

    @pytest.mark.parametrize("call", ["agg", "assess"])
    def test_bounds_of_a_column_that_is_not_there_are_refused(self, call):
        # Else a typing error would quietly fall back to what was declared before.
        asked = {"agg": ({"distance": "mean"},), "assess": ("distance", "mean")}[call]
        with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'distance'"):
            getattr(declared().dprisk, call)(*asked, eps=1, bounds={"distnace": (0, 9)})

    def test_rows_alone_and_values(self):
        table = people().assign(age=[1, None, None, 2, 3]).dprisk.agg({None: "count", "age": "count"}, eps=EXACT)
        assert table["value"].tolist() == [5, 3]

    def test_what_the_table_says_of_itself(self, tmp_path):
        answer = said(declared().dprisk.agg({"distance": "mean"}, eps=1, by="region"))
        assert [*answer.curators_columns] == CURATOR
        assert (answer.bounds_from_data, answer.keys_from, answer.where) == (False, "declared", None)
        assert (answer.index, answer.grouped) == (("column", "statistic", "region"), True)
        observed = people().dprisk.agg({"age": "mean"}, eps=1, bounds=(0, 9), by="sex", keys="observed")
        assert said(observed).keys_from == "data"
        assert through_parquet(observed.reset_index(), tmp_path).attrs == observed.attrs
