"""What a study takes and what it gives: universes, refusals and the frame."""

import itertools
import json
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.study import run

VALUES = [0.0, 1.0, 1.0, 2.5, 4.0, 7.0, 7.5, 10.0]
FRAME = pd.DataFrame({"x": VALUES, "y": [3.0, 1.0, 10.0, 675.0, 17.0, math.nan, math.nan, math.nan]})
TRUTHS = pd.DataFrame({"x": [True, False, True, True, None]}, dtype="boolean")
COLUMNS = [
    "column", "statistic", "mechanism", "sample_size", "proportion", "repetition", "eps", "n", "global_sensitivity",
    "local_sensitivity", "noise95", "worst_case", "two_worlds", "many_worlds", "identifiability",
]  # fmt: skip


class TestUniverses:
    """Bounds are given, else declared, else the column's own."""

    KNOWN = FRAME.dprisk.declare(bounds={"x": (-2, 12)})

    @pytest.mark.parametrize(
        ("frame", "given", "bounds", "source"),
        [
            (FRAME, None, [0, 10], "data"),
            (FRAME, (0, 20), [0, 20], "given"),
            (FRAME, {"x": (0, 30)}, [0, 30], "given"),
            (FRAME, {"y": (0, 30)}, [0, 10], "data"),
            (FRAME, {"x": "column"}, [0, 10], "data"),
            (TRUTHS, None, [0, 1], "type"),
            (TRUTHS, (0, 2), [0, 2], "given"),
            (TRUTHS, "column", [0, 1], "data"),
            (KNOWN, None, [-2, 12], "declared"),
            (KNOWN, (1, 9), [1, 9], "given"),
            (KNOWN, "column", [0, 10], "data"),
        ],
    )
    def test_the_nearest_wins(self, frame, given, bounds, source):
        table = run(frame, "x", "max", eps=1, repetitions=1, bounds=given)
        (told,) = table.attrs["study"]["columns"]
        assert (told["bounds"], told["bounds_from"]) == (bounds, source)
        assert (table["global_sensitivity"] == bounds[1] - bounds[0]).all()

    def test_declared_codes_are_missing(self):
        coded = FRAME.fillna({"y": -8}).dprisk.declare(missing={"y": [-8]})
        options = {"eps": 1, "repetitions": 3}
        pd.testing.assert_frame_equal(run(coded, "y", **options), run(FRAME, "y", **options))
        assert run(coded, "y", "max", **options).attrs["study"]["columns"][0]["values"] == 5

    @pytest.mark.slow
    def test_a_survey_and_its_schema(self):
        raw = pdrisk.datasets.soep_like().pipe(pdrisk.datasets.soep_like_schema().validate)
        clean = pdrisk.datasets.soep_like(missing="nan")
        options = {"eps": 1, "repetitions": 2, "sample_sizes": [100, 1.0]}
        columns = ["hours", "distance", "income"]
        # Every universe is the column's own in the paper, and in this survey that is what the schema declares.
        pd.testing.assert_frame_equal(run(raw, columns, **options), run(clean, columns, **options))

    @pytest.mark.parametrize(
        "values",
        [
            pd.array([0, 1, None, 4], dtype="Int64"), pd.array([0.0, 1.0, None, 4.0], dtype="Float64"),
            np.array([Decimal(0), Decimal(1), None, Decimal(4)], dtype=object), np.array([0, 1, np.nan, 4], "f4"),
        ],
    )  # fmt: skip
    def test_numbers_of_any_kind(self, values):
        plain = run(pd.DataFrame({"x": [0.0, 1.0, np.nan, 4.0]}), "x", repetitions=3, sample_sizes=2)
        pd.testing.assert_frame_equal(run(pd.DataFrame({"x": values}), "x", repetitions=3, sample_sizes=2), plain)

    def test_truth_values_and_infinities(self):
        table = run(pd.DataFrame({"b": [True, False, True], "i": [1.0, np.inf, 3.0]}), ["b", "i"], "max", eps=1)
        assert [told["bounds"] for told in table.attrs["study"]["columns"]] == [[0, 1], [1, 3]]

    def test_two_rows_are_enough(self):
        table = run(pd.DataFrame({"x": [1.0, 2.0]}), "x", "mean", eps=1)
        assert table["n"].tolist() == [2]

    def test_a_constant_column_with_bounds(self):
        table = run(pd.DataFrame({"x": [5.0] * 4}), "x", "max", eps=1, bounds=(0, 10), repetitions=2)
        assert (table["local_sensitivity"] == 5).all()


ODD = FRAME.assign(
    name=list("abcdefgh"), town=list("abcdefgh"), same=4.0, none=math.nan, nothing=None,
    day=pd.Timestamp("2020-01-01"), mixed=[1, "secret", 2.5, 4, 5, 6, 7, 8], far=np.inf,
)  # fmt: skip


class TestRefusals:
    """All that is wrong is said at once, with what to do, and without a value of the data."""

    def test_all_columns_in_one_error(self):
        columns = ["x", "name", "town", "same", "none", "nothing", "day", "mixed", "far", "nam", "z"]
        with pytest.raises(pdrisk.ParameterError) as caught:
            run(ODD, columns, sample_sizes=[3])
        told = str(caught.value).split("\n  ")
        assert told[0] == "a study of these 10 columns cannot be run:"
        assert any(line.startswith("'name', 'town': holds text") and "to_numeric" in line for line in told)
        assert any(line.startswith("'same': has one value only") and "bounds=" in line for line in told)
        assert any(line.startswith("'none', 'nothing': has no value") for line in told)
        assert any(line.startswith("'day': holds timestamps") for line in told)
        assert any(line.startswith("'mixed': ") for line in told)
        assert any(line.startswith("'far': has no range") for line in told)
        assert any(line.startswith("unknown column 'nam'") and "Did you mean 'name'" in line for line in told)
        assert sum("the frame has" in line for line in told) == 1
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        ("values", "advice"),
        [
            (["1,5", "2"], r"pd\.to_numeric.*decimal=\",\""), (pd.to_timedelta([1, 2]), r"total_seconds\(\)"),
            (pd.to_datetime(["2020", "2021"]), r"\.dt\.year"), (pd.Categorical([1, 2]), r"astype\(\"float64\"\)"),
            (pd.period_range("2020", periods=2), r"\.dt\.year"), ([date(2020, 1, 1)] * 2, r"pd\.to_datetime"),
        ],
    )  # fmt: skip
    def test_the_advice_is_that_of_an_answer(self, values, advice):
        frame = pd.DataFrame({"z": values})
        for ask in (lambda: run(frame, "z"), lambda: frame.dprisk.sum("z", eps=1, bounds=(0, 1))):
            with pytest.raises(pdrisk.ColumnTypeError, match=f"holds .*{advice}"):
                ask()

    @pytest.mark.parametrize(
        ("columns", "kind"),
        [
            (["z", "q"], pdrisk.UnknownColumnError),
            (["name", "day"], pdrisk.ColumnTypeError),
            ([["x"]], pdrisk.ColumnTypeError),
            (["same", "none"], pdrisk.ParameterError),
        ],
    )
    def test_errors_of_one_kind_are_of_that_kind(self, columns, kind):
        with pytest.raises(kind):
            run(ODD, columns)

    def test_sizes_that_are_too_large_for_some(self):
        with pytest.raises(pdrisk.ParameterError, match=r"'y': has fewer values than samples of 6, 7 need.*0\.5"):
            run(FRAME, ["x", "y"], sample_sizes=[7, 2, 6])

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (
                {"sample_sizes": [0, True, 2.5, "all", math.nan, -0.5]},
                "0, True, 2.5, a value of type str, nan, -0.5 is",
            ),
            ({"sample_sizes": []}, "sample_sizes must be"),
            ({"bounds": (3, 1)}, "'x': bounds .* reversed"),
            ({"bounds": {"z": (0, 1)}}, "unknown column 'z'"),
            ({"bounds": "own"}, "the word"),
            ({"repetitions": 0}, "repetitions must be at least 1"),
            ({"repetitions": 2.0}, "repetitions must be a whole number"),
            ({"seed": -1}, "seed must be at least 0"),
            ({"seed": None}, "seed must be a whole number"),
            ({"workers": 0}, "workers must be at least 1"),
            ({"ddof": 2}, "ddof must be 0"),
            ({"metrics": ["risk"]}, "unknown metric 'risk'"),
            ({"metrics": []}, "metrics must be"),
            ({"eps": []}, "eps must be"),
            ({"eps": [1, 0]}, "eps must be finite and above 0"),
            ({"statistics": "maen"}, "Did you mean 'mean'"),
        ],
    )
    def test_options(self, options, words):
        with pytest.raises(pdrisk.ParameterError, match=words):
            run(FRAME, "x", **options)

    @pytest.mark.parametrize("columns", [["x", "x"], []])
    def test_columns(self, columns):
        with pytest.raises(pdrisk.ParameterError, match="name"):
            run(FRAME, columns)

    def test_frames_only(self):
        with pytest.raises(pdrisk.ColumnTypeError, match="DataFrame"):
            run(FRAME["x"], "x")


class TestFrame:
    """The result is a plain, tidy frame that says whose it is and how it was made."""

    def test_columns_and_order(self):
        table = run(FRAME, ["y", "x"], ["max", "mean"], eps=[2, 1, 2], sample_sizes=[5, 2], repetitions=3)
        assert table.columns.tolist() == COLUMNS
        order = ["column", "statistic", "sample_size", "repetition", "eps"]
        expected = [
            key
            for column, statistic, size in itertools.product("yx", ["max", "mean"], [2, 5])
            for key in itertools.product(
                [column], [statistic], [size], range(1 if (column, size) == ("y", 5) else 3), [1.0, 2.0]
            )
        ]
        assert list(table[order].itertuples(index=False, name=None)) == expected
        assert table.index.equals(pd.RangeIndex(len(expected)))

    def test_it_is_the_curators(self):
        for table in (run(FRAME, "x", repetitions=1), run(FRAME, "x", bounds=(0, 9), repetitions=1)):
            with pytest.raises(pdrisk.NotPublicError, match="exact figures"):
                pdrisk.public(table)

    def test_it_says_how_it_was_made(self):
        table = run(FRAME, ["x", "y"], "max", repetitions=4, seed=3, ddof=0)
        study = json.loads(json.dumps(table.attrs))["study"]
        about = study.pop("columns")
        assert study == {"seed": 3, "repetitions": 4, "ddof": 0}
        assert about[0] == {
            "column": "x", "bounds": [0, 10], "bounds_from": "data", "values": 8, "median_at": 0.325, "sampling95": {},
        }  # fmt: skip

    def test_some_risks(self):
        table = run(FRAME, "x", repetitions=1, metrics=["many_worlds", "worst_case"])
        assert table.columns.tolist() == [*COLUMNS[:-4], "worst_case", "many_worlds"]

    @pytest.mark.parametrize(("ddof", "labels"), [(1, ["var", "std(ddof=0)"]), (0, ["var(ddof=0)", "std(ddof=0)"])])
    def test_ddof_is_that_of_who_says_none(self, ddof, labels):
        table = run(FRAME, "x", ["var", ("std", {"ddof": 0})], ddof=ddof, repetitions=1)
        assert table["statistic"].unique().tolist() == labels

    @pytest.mark.parametrize("label", [7, ("a", "b"), 2.5, pd.Timestamp("2020-01-01")])
    def test_any_label(self, label):
        frame = pd.DataFrame({"other": VALUES, "x": VALUES})
        frame.columns = pd.Index(["other", label], tupleize_cols=False)
        table = run(frame, [label, "other"], "max", eps=1, repetitions=2, sample_sizes=3)
        assert table["column"].tolist() == [label] * 2 + ["other"] * 2

    def test_the_frame_is_left_alone(self):
        frame = FRAME.copy()
        run(frame, ["x", "y"], repetitions=2, bounds=(2, 5))
        pd.testing.assert_frame_equal(frame, FRAME)
