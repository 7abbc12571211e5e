"""Tables of answers: columns, index levels, order of rows, and what they say of themselves."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import ColumnTypeError, ParameterError
from pdrisk._answer.answers.answer import Answer

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

PUBLIC = ["value", "low", "high", "eps", "worst_case"]
CURATOR = ["n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped"]
EPS = {"eps": 1000}  # at which counts show through the noise
X = {**EPS, "bounds": (0, 10)}
KEYS = ["south", "nowhere", "north"]


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [1.0, 2, 3, 4, 5, 10, np.nan, 12],
            "region": ["north", "south", "north", "east", "north", "south", "north", None],
            "year": pd.Series([1, 2, 1, 2, 1, 2, 1, 2], dtype="int16"),
            "member": [True, False, True, True, False, False, True, True],
        }
    )


BY = {"by": "region", "keys": KEYS}
TABLES = {
    "count by": lambda **o: people().dprisk.count(**BY, **EPS, **o),
    "mean by": lambda **o: people().dprisk.mean("x", **BY, **X, **o),
    "agg": lambda **o: people().dprisk.agg({"x": ["mean", "count"]}, **X, **o),
    "agg by": lambda **o: people().dprisk.agg({"x": ["mean", "max"]}, **BY, **X, **o),
    "describe": lambda **o: people().dprisk.describe("x", **X, **o),
    "quantiles": lambda **o: people().dprisk.quantile("x", q=[0.25, 0.5], **X, **o),
    "quantiles by": lambda **o: people().dprisk.quantile("x", q=[0.75, 0.5], **BY, **X, **o),
    "series agg": lambda **o: people()["x"].dprisk.agg(["mean", "max"], **X, **o),
    "value_counts": lambda **o: people().dprisk.value_counts("region", keys=KEYS, **EPS, **o),
    "hist": lambda **o: people().dprisk.hist("x", bins=[0, 2, 4, 10], **EPS, **o),
    "nunique by": lambda **o: people().dprisk.nunique("x", **BY, **EPS, **o),
    "proportion by": lambda **o: people().dprisk.proportion("x > 2", **BY, **EPS, **o),
}
each_table = pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())


class TestColumns:
    """Public columns by default; the curator's by name only."""

    @each_table
    def test_columns(self, make):
        numbered = ["release"] if {"statistic", "q"} & set(make().index.names) else []
        assert make().columns.tolist() == PUBLIC + numbered
        assert make(curator=True).columns.tolist() == PUBLIC + CURATOR + numbered

    @pytest.mark.parametrize("name", ["count by", "value_counts", "hist", "nunique by"])
    def test_counts_are_int64(self, name):
        assert TABLES[name]()["value"].dtype == np.int64

    def test_group_levels_have_names_and_dtypes_of_their_columns(self):
        table = people().dprisk.count(by=["year", "region"], keys={"year": [2, 1], "region": KEYS}, **EPS)
        assert table.index.names == ["year", "region"]
        assert table.index.levels[0].dtype == np.int16
        assert table.index.tolist()[:4] == [(2, "south"), (2, "nowhere"), (2, "north"), (1, "south")]
        assert table["value"].tolist() == [2, 0, 0, 0, 0, 4]

    def test_levels_of_several_statistics(self):
        assert TABLES["agg by"]().index.names == ["column", "statistic", "region"]
        assert TABLES["agg by"]().index.tolist()[:2] == [("x", "mean", "south"), ("x", "mean", "nowhere")]
        assert TABLES["agg by"]()["release"].tolist() == [1] * 3 + [2] * 3
        labels = ["count", "mean", "std", "min", "quantile(0.25)", "median", "quantile(0.75)", "max"]
        assert TABLES["describe"]().index.get_level_values("statistic").tolist() == labels
        assert TABLES["series agg"]().index.names == ["statistic"]
        assert TABLES["series agg"]().index.tolist() == ["mean", "max"]

    def test_a_series_numbers_its_releases_as_its_frame_does(self):
        frame, asked = people(), {"eps": 8, "bounds": (0, 10)}
        statistics = ["mean", "max", "sum", "median", "quantile(0.1)", "quantile(0.9)"]
        pairs = [
            (frame["x"].dprisk.agg(statistics, **asked), frame.dprisk.agg({"x": statistics}, **asked)),
            (frame["x"].dprisk.describe(**asked), frame.dprisk.describe("x", **asked)),
        ]
        for of_series, of_frame in pairs:
            assert of_series.columns.tolist() == of_frame.columns.tolist()
            assert of_series["release"].tolist() == of_frame["release"].tolist()
        assert pairs[0][0]["release"].tolist() == [1, 2, 1, 3, 3, 3]
        assert frame["x"].dprisk.quantile([0.1, 0.9], **asked)["release"].tolist() == [1, 2]
        assert "release" in pdrisk.public(pairs[0][0])

    def test_quantiles_stand_after_the_groups(self):
        assert (TABLES["quantiles"]().index.name, TABLES["quantiles"]().index.tolist()) == ("q", [0.25, 0.5])
        table = TABLES["quantiles by"](mechanism="laplace")
        assert table.index.names == ["region", "q"]
        assert table.index.tolist() == [(key, q) for key in KEYS for q in (0.75, 0.5)]
        # {2, 10}, nobody and {1, 3, 5}: each q with its own group
        assert table["value"].tolist() == pytest.approx([8, 6, 5, 5, 4, 3], abs=1)
        assert table["eps"].tolist() == [500] * 6


class TestCounts:
    """Rows stand in the order of the keys, or of the noisy numbers."""

    def test_value_counts(self):
        plain = people().dprisk.value_counts("region", sort=False, keys=KEYS, **EPS)
        assert (plain.index.tolist(), plain["value"].tolist()) == (KEYS, [2, 0, 4])
        by_number = TABLES["value_counts"]()
        assert (by_number.index.tolist(), by_number["value"].tolist()) == (["north", "south", "nowhere"], [4, 2, 0])
        with pytest.raises(ColumnTypeError, match="sort is True or False"):
            people().dprisk.value_counts("region", sort="yes", keys=KEYS, **EPS)

    def test_crosstab(self):
        table = people().dprisk.crosstab("region", "year", keys={"region": KEYS, "year": [2, 1]}, **EPS)
        assert (table.index.tolist(), table.columns.tolist()) == (KEYS, [2, 1])
        assert (table.index.name, table.columns.name) == ("region", "year")
        assert table.to_numpy().tolist() == [[2, 0], [0, 0], [0, 4]]
        assert pdrisk.public(table).equals(table)
        for audience in ("participant", "analyst", "publication"):
            assert pdrisk.explain(table, audience)
        assert json.loads(table.attrs["dprisk"])["answer"]["headings"] == [2, 1]

    def test_nunique(self):
        assert people().dprisk.nunique("x", **EPS).value == 7
        assert TABLES["nunique by"]()["value"].tolist() == [2, 0, 3]


class TestHist:
    """Bins are numpy's: closed on the left, the last on both sides."""

    def test_edges(self):
        table = TABLES["hist"]()
        assert table["value"].tolist() == np.histogram(people()["x"].dropna(), [0, 2, 4, 10])[0].tolist() == [1, 2, 3]
        assert table.index.name == "x" and list(map(str, table.index)) == ["[0.0, 2.0)", "[2.0, 4.0)", "[4.0, 10.0]"]
        for at, edge in enumerate((0, 2, 4, 10)):  # the bins that hold it, by their labels and by what is counted
            counted = pd.DataFrame({"x": [edge] * 9}).dprisk.hist("x", bins=[0, 2, 4, 10], eps=10**6)["value"]
            here = [edge in each for each in table.index]
            assert here == (counted > 0).tolist() == [n == min(at, 2) for n in range(3)]
        arrow = pdrisk.Dataset(people(), as_="polars").hist("x", bins=[0, 2, 4, 10], **EPS)
        assert (arrow["left"].to_list(), arrow["right"].to_list()) == ([0, 2, 4], [2, 4, 10])

    def test_a_number_of_bins_divides_the_bounds_and_clamps(self):
        table = people().dprisk.hist("x", bins=2, **X)
        assert table["value"].tolist() == [4, 3]  # 12 counts as 10
        assert list(map(str, table.index)) == ["[0.0, 5.0)", "[5.0, 10.0]"]

    @pytest.mark.parametrize(
        ("asked", "beyond"),
        [({"bins": 2, **X}, "count in the first and the last"), ({"bins": [0, 2, 10], **EPS}, "are not counted")],
    )
    def test_the_label_says_where_values_at_the_edges_count(self, asked, beyond):
        label = " ".join(pdrisk.explain(people().dprisk.hist("x", **asked), "publication").split())
        assert f"each holds its left edge, the last one both; values beyond {beyond}" in label
        assert "bounds those of the bins" in label and "none needed" not in label

    def test_refused(self):
        with pytest.raises(ParameterError, match="hist takes no step="):
            people().dprisk.hist("x", bins=[0, 1], step=1, **EPS)
        with pytest.raises(ParameterError, match="leave bounds out"):
            people().dprisk.hist("x", bins=[0, 1], **X)

    @pytest.mark.parametrize(
        "bins", [[3, 2, 1], [0, 0], [0, np.inf], [0, np.nan], ["a", "b"], [0, 1e200], [1e9, 1e9 + 1]]
    )
    def test_edges_are_no_bounds(self, bins):
        """Nobody passed bounds, so no error speaks of them."""
        with pytest.raises(ParameterError, match="edges in bins= must be finite numbers that rise") as said:
            people().dprisk.hist("x", bins=bins, **EPS)
        assert "bounds" not in str(said.value)

    @pytest.mark.parametrize("bins", [2, [0, 1]])
    def test_text(self, bins):
        with pytest.raises(ColumnTypeError, match="hist needs numbers, but column 'region' holds text") as said:
            people().dprisk.hist("region", bins=bins, **EPS)
        assert "bounds" not in str(said.value)


class TestProportion:
    """Of a boolean column, or of a condition, where it is known."""

    def test_values(self):
        near = {"abs": 0.05}
        assert people().dprisk.proportion("member", **EPS).value == pytest.approx(5 / 8, **near)
        assert people().dprisk.proportion("x > 2", **EPS).value == pytest.approx(5 / 7, **near)
        assert people().dprisk.proportion("x > 2", where="year == 1", **EPS).value == pytest.approx(2 / 3, **near)
        assert TABLES["proportion by"]()["value"].drop("nowhere").tolist() == pytest.approx([1 / 2, 2 / 3], abs=0.05)


class TestWhatATableSays:
    """One JSON text, which travels with the table; all of it may be published."""

    @each_table
    def test_survives(self, make, tmp_path):
        table = make(curator=True)
        (text,) = table.attrs.values()
        assert list(table.attrs) == ["dprisk"]
        assert set(json.loads(text)) == {"answer"}
        flat = table.reset_index()
        if "x" in flat.columns:  # Parquet knows no intervals
            flat = flat.astype({"x": str})
        flat.to_parquet(tmp_path / "table.parquet")
        read = pd.read_parquet(tmp_path / "table.parquet")
        for same in (pickle.loads(pickle.dumps(table)), table.query("eps > 0"), table.sort_values("value"), read):
            assert repr(Answer.from_attrs(same.attrs)) == repr(Answer.from_attrs(table.attrs))  # NaN is as it was, too
            assert not {*CURATOR} & {*pdrisk.public(same).columns}

    @each_table
    @pytest.mark.parametrize("audience", ["participant", "analyst", "curator", "publication"])
    def test_explained(self, make, audience):
        assert pdrisk.explain(make(curator=True), audience)
        if audience == "curator":
            with pytest.raises(ParameterError, match="ask with curator=True"):
                pdrisk.explain(make(), audience)
        else:
            assert pdrisk.explain(make(), audience)

    @each_table
    def test_public(self, make):
        pd.testing.assert_frame_equal(pdrisk.public(table := make()), table)
        assert pdrisk.public(make(curator=True)).columns.tolist() == table.columns.tolist()
