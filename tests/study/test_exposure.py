"""What `pdrisk assess` says of a person's own data: ranked rightly, from declared bounds, and marked the curator's."""

import math
import re

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._cli import main
from pdrisk._core.risks.risk import posterior
from pdrisk.errors import NotPublicError
from pdrisk.study.exposure import RISKS, exposure

STATISTICS = ["mean", "median", "min", "max", "var"]


def people() -> pd.DataFrame:
    """One very rich person, codes, a column that says nothing, and text."""
    rng = np.random.default_rng(4)
    income = rng.integers(0, 5000, 200).astype(float)
    income[37] = 90_000
    income[:20] = -1
    return pd.DataFrame(
        {
            "income": income,
            "age": rng.integers(18, 90, 200),
            "always": 3,
            "nobody": np.nan,
            "region": rng.choice(["north", "south"], 200),
        }
    )


def declared() -> pd.DataFrame:
    return people().dprisk.declare(bounds={"income": (0, 100_000), "age": (0, 120)}, missing={"income": [-1]})


class TestRanking:
    """The same figures as `assess`, the most exposed first."""

    @pytest.mark.parametrize("eps", [[0.1], [0.5, 2.0]])
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    def test_answers_are_those_of_assess(self, eps, mechanism):
        frame = declared()
        found = exposure(frame, ["income", "age"], STATISTICS, eps, mechanism=mechanism).answers
        expected = frame.dprisk.assess(["income", "age"], STATISTICS, eps=eps, mechanism=mechanism)
        keys = ["column", "statistic", "eps"]
        merged = found.merge(expected, on=keys, suffixes=("", "_expected"), validate="1:1")
        assert len(merged) == len(expected) == len(found)
        for name in expected.columns.difference(keys):
            assert (merged[name] == merged[f"{name}_expected"]).all(), name
        paper = frame.dprisk.assess(["income", "age"], STATISTICS, eps=eps, mechanism="laplace")
        merged = found.merge(paper, on=keys, suffixes=("", "_of_paper"), validate="1:1")
        assert merged["laplace95"].tolist() == pytest.approx(merged["noise95_of_paper"].tolist())
        assert (found["exposure"] == found["local_sensitivity"] / found["global_sensitivity"]).all()
        assert found["exposure"].is_monotonic_decreasing

    def test_the_rich_person_is_on_top(self):
        found = exposure(declared())
        assert found.answers.iloc[0][["column", "statistic"]].tolist() == ["income", "max"]
        assert found.columns.index[0] == "income"
        # 90,000 is the largest, all others are below 5,000: taking it out moves the maximum by more than 85,000.
        assert 0.85 < found.columns.loc["income", "exposure"] < 0.9

    @pytest.mark.slow
    def test_groups_are_those_that_occur_unless_declared(self):
        frame = declared()
        found = exposure(frame, ["income"], by="region").groups
        assert found.groupby("statistic")["group"].agg(set).eq({"north", "south"}).all()
        known = frame.dprisk.declare(keys={"region": ["south", "west"]})
        assert set(exposure(known, ["income"], by="region").groups["group"]) == {"south", "west"}

    def test_groups_of_nobody_are_last(self):
        known = declared().dprisk.declare(keys={"region": ["empty", "north", "south", "void"]})
        found = exposure(known, ["income", "age"], ["max", "count"], [0.1, 1], by="region")
        groups = found.groups
        assert (groups["n"].ne(0) == [True] * 16 + [False] * 16).all()
        assert groups.loc[:15, "exposure"].is_monotonic_decreasing
        said = repr(found)
        assert "left out: 2 for income, 2 for age." in " ".join(said.split())
        assert "empty" not in said
        assert "void" not in found._repr_html_()

    def test_of_equally_exposed_groups_the_smaller_ones_come_first(self):
        frame = pd.DataFrame({"x": np.arange(60.0) % 7, "g": ["big"] * 40 + ["mid"] * 15 + ["few"] * 4 + ["one"]})
        found = exposure(frame, "x", "count", [0.1, 1], bounds=(0, 10), by="g").groups
        assert found["group"].tolist() == ["one"] * 2 + ["few"] * 2 + ["mid"] * 2 + ["big"] * 2
        assert found["eps"].tolist() == [1, 0.1] * 4  # those of one answer together

    @pytest.mark.slow
    def test_it_reads_as_the_command_does(self):
        found = exposure(declared(), ["age"], by="region")
        assert repr(found).startswith("Curator only: what answers about this frame would mean")
        assert "200 records" in repr(found)
        assert "<table" in found._repr_html_()
        assert "<html" not in found._repr_html_()

    def test_everything_is_the_curators(self):
        found = exposure(declared(), by="region", keys=["north", "south"])
        for table in (found.answers, found.groups):
            with pytest.raises(NotPublicError, match="exact figures"):
                pdrisk.public(table)


class TestBounds:
    """Declared ones, then given ones, then the data's own, and it says which."""

    def test_sources(self):
        frame = declared().assign(height=lambda x: x["age"] / 50)
        found = exposure(frame, bounds={"age": (10, 110)}).columns
        assert found["bounds"].to_dict() == {"income": "declare", "age": "given", "height": "the data's own"}
        assert found.loc["income", ["lo", "hi"]].tolist() == [0, 100_000]
        assert found.loc["age", ["lo", "hi"]].tolist() == [10, 110]
        assert found.loc["height", ["lo", "hi"]].tolist() == [frame["height"].min(), frame["height"].max()]

    @pytest.mark.parametrize("dtype", [bool, "boolean", object])
    def test_truth_values_have_those_of_their_type(self, dtype):
        frame = people().assign(owner=pd.Series([True, False] * 100).astype(dtype), same=True)
        found = exposure(frame, ["age", "owner", "same"])
        assert found.columns["bounds"].drop("age").to_dict() == {"owner": "of its type", "same": "of its type"}
        assert found.columns.loc["same", ["lo", "hi"]].tolist() == [0, 1]
        assert "No bounds are declared for age: the data's own" in " ".join(repr(found).split())
        assert exposure(frame, "owner", bounds="column").columns.loc["owner", "bounds"] == "the data's own"
        assert exposure(frame, "owner", bounds=(0, 2)).columns.loc["owner", "bounds"] == "given"

    def test_codes_are_no_values(self):
        frame = people().dprisk.declare(missing={"income": [-1]})
        found = exposure(frame, ["income"])
        assert found.columns.loc["income", "lo"] == frame["income"][frame["income"] >= 0].min()
        assert found.columns.loc["income", "values"] == 180

    def test_what_cannot_be_assessed_is_left_out_with_a_reason(self):
        found = exposure(people().assign(far=[1e200, 2] * 100))
        assert set(found.left_out) == {"always", "nobody", "region", "far"}
        assert found.left_out["region"].startswith("holds text")
        assert found.left_out["always"].startswith("has one value only")
        assert found.left_out["nobody"].startswith("has no value at all")
        assert found.left_out["far"].startswith("has no range of ordinary size")

    def test_unless_it_was_asked_for_then_one_error_names_all(self):
        with pytest.raises(pdrisk.ParameterError, match=r"(?s)always.*nobody.*region") as caught:
            exposure(people(), ["age", "always", "nobody", "region"])
        assert "'age'" not in str(caught.value)

    def test_a_constant_column_with_declared_bounds_is_fine(self):
        frame = people().dprisk.declare(bounds={"always": (0, 10)})
        assert exposure(frame, ["always"]).columns.loc["always", "values"] == 200

    def test_nothing_to_assess(self):
        with pytest.raises(pdrisk.ParameterError, match="no column can be studied: 'region' holds text"):
            exposure(people()[["region"]])

    @pytest.mark.parametrize("bounds", [{"agee": (0, 90)}, {"age": (0, 90), "agee": (0, 90)}])
    @pytest.mark.parametrize("columns", [None, ["age"]])
    def test_bounds_of_a_column_that_is_not_there(self, bounds, columns):
        with pytest.raises(pdrisk.UnknownColumnError, match="agee"):
            exposure(people(), columns, bounds=bounds)

    def test_what_may_be_one_or_several(self):
        one = exposure(people(), "age", "mean", 1, bounds=(0, 120))
        several = exposure(people(), ["age"], ["mean"], [1], bounds={"age": (0, 120)})
        pd.testing.assert_frame_equal(one.answers, several.answers)
        own = exposure(people(), "age", bounds={"age": "column"}).columns
        assert own.loc["age", "bounds"] == "the data's own"

    @pytest.mark.parametrize("wrong", [{"columns": ["age", "age"]}, {"columns": []}, {"frame": [1, 2]}])
    def test_refused(self, wrong):
        with pytest.raises(pdrisk.ParameterError):
            exposure(**({"frame": people(), "columns": None} | wrong))


class TestRecommendation:
    """By the formulas: eps = ln(risk / (1 - risk)), noise GS/eps ln 20."""

    @pytest.mark.parametrize(
        ("statistic", "sensitivity"), [("count", 1), ("sum", 120), ("mean", 60), ("median", 60), ("max", 120)]
    )
    def test_by_hand(self, statistic, sensitivity):
        frame = declared()
        found = exposure(frame, ["age"], [name for name in STATISTICS if name == statistic] or ["mean"],
                         mechanism="laplace")  # fmt: skip
        exact = getattr(frame["age"], statistic)()
        rows = found.recommendation.query("statistic == @statistic")
        assert rows["worst_case"].tolist() == list(RISKS)
        for row in rows.itertuples():
            loss = math.log(row.worst_case / (1 - row.worst_case))
            assert loss * (1 - 1e-3) < row.eps <= loss  # four digits, rounded down
            assert row.eps == float(f"{row.eps:.4g}")
            assert posterior(row.eps) <= row.worst_case
            if statistic != "count":  # whose steps of whole numbers its own noise95 knows
                assert row.noise95 == pytest.approx(sensitivity / row.eps * math.log(20), rel=1e-9)
            assert row.laplace95 == pytest.approx(sensitivity / row.eps * math.log(20), rel=1e-9)
            assert row.share == pytest.approx(row.noise95 / exact, rel=1e-9)

    @pytest.mark.parametrize("statistic", ["count", "sum", "mean", "median", "max", "var"])
    def test_the_default_noise_is_that_of_each_answer_alone(self, statistic):
        frame = declared()
        found = exposure(frame, ["age"]).recommendation.query("statistic == @statistic")
        alone = [frame.dprisk.assess("age", statistic, eps=eps, mechanism="auto") for eps in found["eps"]]
        assert found["noise95"].tolist() == [table["noise95"].item() for table in alone]

    def test_the_default_noise_of_a_mean_shrinks_with_n(self):
        few, many = (
            exposure(pd.DataFrame({"x": np.tile(np.arange(101.0), times)}), "x", "mean", bounds=(0, 100)).recommendation
            for times in (1, 100)
        )
        few, many = (table[table["statistic"] == "mean"] for table in (few, many))
        np.testing.assert_allclose(few["noise95"], 100 * many["noise95"], rtol=0.03)
        # docs/numbers.md, two_sums: about ±2.1 R/(n eps) in the middle; the laplace noise is the same for any n.
        np.testing.assert_allclose(many["noise95"] * many["eps"] * 10_100 / 100, 2.1, rtol=0.15)
        assert many["laplace95"].tolist() == few["laplace95"].tolist()

    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    def test_the_default_leads_and_the_paper_has_its_own_column(self, mechanism):
        found = exposure(declared(), "age", "mean", 1, mechanism=mechanism)
        bought = repr(found).partition("What an eps buys")[2].splitlines()
        head = next(line for line in bought if line.startswith("column"))
        mean = next(line for line in bought if " mean " in line)
        last = found.recommendation.query("statistic == 'mean'").iloc[-1]
        numbers = [float(number.replace(",", "")) for number in re.findall(r"±([\d.,]+)", mean)]
        assert numbers[3] == pytest.approx(last["noise95"], rel=1e-3)
        if mechanism == "auto":
            assert numbers[4:] == pytest.approx([last["laplace95"]], rel=1e-3) and numbers[4] > 20 * numbers[3]
            assert head.rstrip().endswith("paper, eps 1.098")
        else:
            assert len(numbers) == 4 and "paper, eps" not in head

    def test_narrower_bounds_help(self):
        frame = people()
        wide, narrow = (
            exposure(frame, "age", bounds={"age": (0, hi)}, mechanism="laplace").recommendation for hi in (1000, 100)
        )
        means = [table.loc[table["statistic"] == "mean", "share"].to_numpy() for table in (wide, narrow)]
        np.testing.assert_allclose(means[0], 10 * means[1])

    def test_an_answer_of_nothing(self):
        found = exposure(pd.DataFrame({"x": [-1.0, 0, 1]}), "x", "mean").recommendation
        assert found.loc[found["statistic"] == "mean", "share"].isna().all()

    def test_it_is_the_curators(self):
        found = exposure(declared())
        for table in (found.recommendation, found.columns):
            with pytest.raises(NotPublicError, match="exact figures"):
                pdrisk.public(table)


@pytest.fixture
def file(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


class TestCommand:
    """`pdrisk assess FILE`."""

    def test_mechanism(self, file, capsys):
        said = []
        for more in ([], ["--mechanism", "auto"], ["--mechanism", "laplace"]):
            assert main(["assess", str(file), "--columns", "age", "--bounds", "age=0:120", *more]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1] and "the default of answers (mechanism='auto')" in said[0].replace("\n", " ")
        assert "paper ±" in said[0] and "paper ±" not in said[2]
        assert main(["assess", str(file), "--columns", "age", "--mechanism", "gauss"]) == 2
        assert "gauss" in capsys.readouterr().err

    @pytest.mark.slow
    def test_text(self, file, capsys):
        assert main(["assess", str(file), "--missing=-1", "--bounds", "income=0:100000", "--by", "region"]) == 0
        said = capsys.readouterr().out
        assert said.startswith("Curator only: what answers about people.csv")
        headings = ["Most exposed answers", "Most exposed groups", "Columns", "What an eps buys", "What to tell"]
        assert [said.index(heading) for heading in headings] == sorted(said.index(heading) for heading in headings)
        assert re.search(r"income\s+0\s+100,000\s+given\s+180\s+max", said)

    @pytest.mark.slow
    def test_folder(self, file, tmp_path, capsys):
        folder = tmp_path / "new" / "report"
        assert main(["assess", str(file), "--by", "region", "--columns", "age,income", "--to", str(folder)]) == 0
        assert sorted(path.name for path in folder.iterdir()) == [
            ".pdrisk", "answers.csv", "columns.csv", "eps.csv", "groups.csv", "report.html",
        ]  # fmt: skip
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "<title>Curator only: what answers about people.csv would mean" in page
        assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)  # nothing is asked from elsewhere
        assert len(pd.read_csv(folder / "answers.csv")) == 2 * 5 * 2

    def test_other_csv_files(self, tmp_path, capsys):
        people().to_csv(tmp_path / "ÜMLAUT.CSV", index=False, sep=";", encoding="latin-1")
        people().rename(columns={"age": "größe"}).to_csv(tmp_path / "b.csv", index=False, encoding="latin-1")
        people().to_csv(tmp_path / "c.csv.gz", index=False)
        assert main(["assess", str(tmp_path / "ÜMLAUT.CSV")]) == 2
        assert "--sep" in capsys.readouterr().err
        assert main(["assess", str(tmp_path / "ÜMLAUT.CSV"), "--sep", ";"]) == 0
        assert main(["assess", str(tmp_path / "b.csv")]) == 2
        assert "--encoding" in capsys.readouterr().err
        assert main(["assess", str(tmp_path / "b.csv"), "--encoding", "latin-1"]) == 0
        assert main(["assess", str(tmp_path / "c.csv.gz")]) == 0
        (tmp_path / "d.csv.xlsx").write_bytes((tmp_path / "b.csv").read_bytes())
        assert main(["assess", str(tmp_path / "d.csv.xlsx")]) == 2

    def test_a_schema_in_the_current_folder(self, file, tmp_path, monkeypatch, capsys):
        (tmp_path / "here_for_tests.py").write_text(
            "import pandera.pandas as pa\n"
            "schema = pa.DataFrameSchema({'age': pa.Column(int, pa.Check.in_range(0, 130))})\n"
        )
        monkeypatch.chdir(tmp_path)
        assert main(["assess", str(file), "--schema", "here_for_tests:schema", "--columns", "age"]) == 0
        assert re.search(r"age\s+0\s+130\s+schema", capsys.readouterr().out)

    def test_parquet_and_schema(self, tmp_path, capsys):
        people().to_parquet(tmp_path / "people.parquet")
        (tmp_path / "survey_of_tests.py").write_text(
            "import pandera.pandas as pa\n"
            "schema = pa.DataFrameSchema({'age': pa.Column(int, pa.Check.in_range(0, 120))})\n"
        )
        schema = f"{tmp_path / 'survey_of_tests.py'}:schema"
        assert main(["assess", str(tmp_path / "people.parquet"), "--schema", schema, "--columns", "age"]) == 0
        assert re.search(r"age\s+0\s+120\s+schema", capsys.readouterr().out)

    def test_labels_are_text_in_the_page(self, tmp_path, capsys):
        people().rename(columns={"age": "<script>alert(1)</script>"}).to_csv(tmp_path / "a.csv", index=False)
        assert main(["assess", str(tmp_path / "a.csv"), "--to", str(tmp_path)]) == 0
        assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["none.csv"], "there is no file"), (["FILE", "--columns", "wage"], "no column wage"),
            (["FILE", "--columns", "region,always"], r"(?s)region.*always"),
            (["FILE", "--schema", "x"], "file.py:name"),
            (["FILE", "--schema", "no_such_module_of_tests:x"], "cannot be imported"), (["people.txt"], "neither"),
            (["FILE", "--schema", "math:nothing"], "no 'nothing'"), (["FILE", "--eps", "-1"], "above 0"),
            (["FILE", "--statistics", "mode"], "mode is no statistic"), (["FILE", "--statistics", "meen"], "mean"),
            (["FILE", "--bounds", "age=9:1"], "bounds"),
            (["FILE", "--columns", "age", "--bounds", "agee=0:9"], "agee"),
            (["FILE", "--to", "FILE"], "name a folder"),
        ],
    )  # fmt: skip
    def test_clear_errors(self, file, arguments, words, capsys):
        assert main(["assess", *(str(file) if word == "FILE" else word for word in arguments)]) == 2
        assert re.search(words, capsys.readouterr().err)

    @pytest.mark.parametrize("wrong", [["--missing=a"], ["--bounds", "age"]])
    def test_wrong_spelling(self, file, wrong, capsys):
        with pytest.raises(SystemExit):
            main(["assess", str(file), *wrong])
        assert "written" in capsys.readouterr().err or wrong[0].startswith("--missing")
