"""`pdrisk assess` and `pdrisk study` of files in which people have several rows, and of groups."""

import argparse

import numpy as np
import pandas as pd
import pytest

from pdrisk import ParameterError
from pdrisk._cli import main, records

BOUNDS = {"days": (0, 30), "cost": (0, 900)}
NUMBERS = ["n", "local_sensitivity", "global_sensitivity", "two_worlds", "many_worlds", "identifiability", "noise95"]


def stays(seed=0):
    """Up to nine rows a patient, some without an id; -1 is a missing number of days."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"patient": rng.integers(0, 60, 240).astype(float), "days": rng.integers(0, 31, 240)})
    frame["cost"] = rng.gamma(2, 100, 240).round(2).clip(0, 900)
    frame["sex"] = np.where(frame["patient"] % 2 == 1, "f", "m")
    frame["ward"] = rng.choice(["a", "b"], 240)
    frame.loc[::13, "days"] = -1
    frame.loc[::29, "patient"] = np.nan
    return frame


def said(**options):
    return argparse.Namespace(**{"person": ["patient"], "per_person": None, "bounds": [], **options})


@pytest.fixture
def file(tmp_path):
    stays().to_csv(tmp_path / "stays.csv", index=False)
    return tmp_path / "stays.csv"


class TestPeople:
    """Each person is one record, as with person= and per_person= of df.dprisk.assess."""

    @pytest.mark.parametrize("way", ["mean", "sum", "min", "max", "count"])
    @pytest.mark.parametrize("by", [None, "sex"])
    def test_as_the_library(self, file, way, by, tmp_path):
        columns = ["days", "cost"]
        bounds = {"sum": {"days": (0, 200), "cost": (0, 3000)}, "count": dict.fromkeys(columns, (0, 9))}.get(
            way, BOUNDS
        )
        words = [f"{column}={lo}:{hi}" for column, (lo, hi) in bounds.items()]
        grouped = ["--by", by] if by else []
        command = ["assess", str(file), "--person", "patient", "--per-person", way, "--missing=-1", *grouped]
        command += ["--to", str(tmp_path / "found"), "--eps", "1", "--mechanism", "laplace"]
        assert main([*command, "--bounds", *words]) == 0
        found = pd.read_csv(tmp_path / "found" / ("groups.csv" if by else "answers.csv"))
        frame = stays().dprisk.declare(missing={"days": [-1]})
        options = {"by": by, "keys": ["f", "m"], "constant": [by]} if by else {}
        expected = frame.dprisk.assess(
            columns, eps=1, bounds=bounds, mechanism="laplace", person="patient", per_person=way, **options
        )
        keys = ["column", "statistic", *(["group"] if by else [])]
        found, expected = (table.set_index(keys).sort_index()[NUMBERS] for table in (found, expected))
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False, rtol=1e-6, atol=1e-6)

    def test_the_page_says_what_a_record_is(self, file, capsys):
        assert main(["assess", str(file), "--person", "patient", "--per-person", "mean", "--columns", "cost"]) == 0
        told = capsys.readouterr().out
        assert "stays.csv (one record for each patient: the mean of the rows)" in told
        assert f"{stays()['patient'].nunique()} records, each taken for one person." in told

    def test_bounds_of_a_row_are_not_those_of_a_sum(self):
        frame = stays().dprisk.declare(bounds=BOUNDS)
        one = records.of_people(frame, ["days"], said(per_person="mean"))
        assert one.dprisk.declared.loc["days", "hi"] == 30
        assert "dprisk" not in records.of_people(frame, ["days"], said(per_person="sum")).attrs

    def test_a_mean_that_looks_like_a_code_is_none(self):
        frame = pd.DataFrame({"patient": [1, 1, 2], "days": [-3, 1, 5]}).dprisk.declare(missing={"days": [-1]})
        one = records.of_people(frame, ["days"], said(per_person="mean"))
        assert one["days"].tolist() == [-1, 5] and "missing" not in str(one.attrs)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (["--person", "patient"], "say with --per-person what these become, mean, sum, min, max, count"),
            (["--per-person", "mean"], "name the columns of ids with --person"),
            (["--person", "nobody", "--per-person", "mean"], "the file has no column nobody"),
            (["--person", "patient", "--per-person", "mean", "--by", "ward"], "some people are in several groups"),
        ],
    )
    @pytest.mark.parametrize("command", ["assess", "study"])
    def test_refused(self, file, command, options, why, capsys, tmp_path):
        pytest.importorskip("matplotlib")
        named = [str(file)] if command == "assess" else [str(tmp_path / "new"), "--file", str(file)]
        assert main([command, *named, *options]) == 2
        assert why in " ".join(capsys.readouterr().err.split())

    def test_several_columns_are_one_id(self):
        frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 1, 1, 2], "x": [1.0, 3.0, 5.0, None]})
        one = records.of_people(frame, ["x"], said(person=["a", "b"], per_person="sum"))
        assert one[["a", "b"]].to_numpy().tolist() == [[1, 1], [2, 1], [2, 2]]
        assert one["x"].fillna(-1).tolist() == [4, 5, -1]


class TestGroups:
    """`pdrisk study --by`: each group is a population of its own."""

    def test_columns(self):
        frame = stays().dprisk.declare(bounds={"cost": (0, 900)}, missing={"days": [-1]})
        columns = ["cost", "days"]
        found, names, bounds, units = records.by_group(
            frame, columns, {"cost": (0, 900)}, {"days": "d"}, ["sex", "ward"]
        )
        groups = [("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")]
        assert names == [f"{column} ({', '.join(group)})" for column in columns for group in groups]
        assert bounds == dict.fromkeys(names[:4], (0, 900)) and units == dict.fromkeys(names[4:], "d")
        for column in columns:
            for sex, ward in groups:
                own = stays().query("sex == @sex and ward == @ward")[column]
                assert found[f"{column} ({sex}, {ward})"].dropna().tolist() == own[own != -1].tolist()

    def test_too_many(self):
        with pytest.raises(ParameterError, match="makes 31 columns of 1, and a study shows 20"):
            records.by_group(stays().query("days >= 0"), ["cost"], {}, {}, ["days"])

    @pytest.mark.slow
    def test_the_study(self, file, tmp_path):
        pytest.importorskip("matplotlib")
        command = ["study", str(tmp_path / "new"), "--file", str(file), "--by", "sex", "--columns", "days", "cost"]
        people = ["--person", "patient", "--per-person", "mean", "--missing=-1", "--bounds", "days=0:30"]
        assert main([*command, *people, "--repetitions", "2", "--quiet"]) == 0
        found = pd.read_csv(tmp_path / "new" / "study.csv")
        assert found["column"].unique().tolist() == ["days (f)", "days (m)", "cost (f)", "cost (m)"]
        own = records.of_people(stays().replace({"days": {-1: None}}), ["days"], said(per_person="mean"), ["sex"])
        sizes = own.dropna(subset="days").groupby("sex").size()
        whole = found[(found["column"] == "days (f)") & (found["proportion"] == 1)]
        assert set(whole["n"]) == {sizes["f"]} and set(whole.query("statistic == 'max'")["global_sensitivity"]) == {30}
