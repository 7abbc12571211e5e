"""Weights where no answer is drawn: `assess` and `plan`, in Python and on the command line, ask as answers do."""

import math
import re

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pytest

import pdrisk
from pdrisk import Design
from pdrisk._cli import main
from pdrisk._core.order import Median, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean
from pdrisk.errors import ColumnTypeError, NotPublicError, ParameterError, UnknownColumnError
from pdrisk.study.exposure import exposure, weighted_means
from pdrisk.study.sampling import NORMAL, sampling95, weighted_sampling95

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"y": (10.0, 90.0), "w": (0.0, 8.0)}
STATISTICS = ["mean", "median", "min", "max", ("var", {"ddof": 0})]


def made(n=400, seed=5):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n) + 0.5,
            "y": random.gamma(2, 20, n).round(3),
            "w": random.lognormal(0, 0.9, n).round(4),
            "g": random.choice(["a", "b"], n),
        }
    )
    frame.loc[:20, "y"] = np.nan
    frame.loc[10:40, "w"] = np.nan
    return frame


FRAME = made()


def merged(found, expected, keys):
    table = found.merge(expected, on=keys, suffixes=("", "_expected"), validate="1:1")
    assert len(table) == len(found) == len(expected)
    for name in expected.columns.difference(keys):
        np.testing.assert_array_equal(table[name], table[f"{name}_expected"], err_msg=name)


class TestAssess:
    """Sensitivities, noise and risks are those of weighted answers."""

    def test_the_usual_statistics_have_the_variance_that_weights_have(self):
        found = FRAME.dprisk.assess("y", eps=[0.5, 1], bounds=BOUNDS, weights="w")
        pd.testing.assert_frame_equal(found, FRAME.dprisk.assess("y", STATISTICS, [0.5, 1], bounds=BOUNDS, weights="w"))
        with pytest.raises(ParameterError, match="ddof=0"):
            FRAME.dprisk.assess("y", ["var"], eps=1, bounds=BOUNDS, weights="w")

    def test_exposure_has_the_same(self):
        found = exposure(FRAME, "y", eps=[0.5, 1], bounds=BOUNDS, weights="w", by="g")
        expected = FRAME.dprisk.assess("y", STATISTICS, [0.5, 1], bounds=BOUNDS, weights="w")
        merged(found.answers, expected, ["column", "statistic", "eps"])
        by_group = FRAME.dprisk.assess("y", STATISTICS, [0.5, 1], bounds=BOUNDS, weights="w", by="g", keys="observed")
        merged(found.groups, by_group, ["column", "statistic", "group", "eps"])
        weighted = found.answers["statistic"].str.startswith("weighted")
        assert found.answers.loc[weighted, "laplace95"].isna().all()
        assert found.answers.loc[~weighted, "laplace95"].notna().all()

    def test_the_eps_that_a_risk_allows(self):
        """Noise and share of the answer, by the formulas of textbooks."""
        table = exposure(FRAME, "y", bounds=BOUNDS, weights="w").recommendation
        known = FRAME.dropna()
        y, w = known["y"].clip(10, 90), known["w"].clip(0, 8)
        mean = np.average(y, weights=w)
        exact = {
            "weighted mean": mean, "weighted sum": (w * y).sum(), "weighted count": w.sum(),
            "weighted var(ddof=0)": np.average((y - mean) ** 2, weights=w),
        }  # fmt: skip
        asked = {"weighted mean": "mean", "weighted sum": "sum", "weighted count": "count"}
        for name, value in exact.items():
            for row in table[table["statistic"] == name].itertuples():
                spec = asked.get(name, ("var", {"ddof": 0}))
                own = FRAME.dprisk.assess("y", spec, row.eps, bounds=BOUNDS, weights="w")
                assert row.noise95 == pytest.approx(own["noise95"].item(), rel=1e-12)
                assert row.share == pytest.approx(row.noise95 / value, rel=1e-6)
                assert math.isnan(row.laplace95)
        assert table.loc[table["statistic"].isin(["weighted sum", "weighted count"]), "sampling95"].isna().all()

    def test_sampling_errors_are_those_of_the_curators(self):
        """Of a mean as `sampling_errors` has it, whose n counts the records without a value, too: R's survey."""
        frame = FRAME.dropna()
        d = pdrisk.Dataset(frame, bounds=BOUNDS, design=Design("w"))
        se = d.sampling_errors("y", "mean")["se"].item()
        table = exposure(frame, "y", "mean", bounds=BOUNDS, weights="w").recommendation
        found = table.loc[table["statistic"] == "weighted mean", "sampling95"]
        assert found.tolist() == pytest.approx([1.959964 * se] * 3, rel=1e-5)

    def test_weights_that_a_schema_declares(self):
        schema = pandera.DataFrameSchema(
            {"w": pandera.Column(float, pandera.Check.in_range(0, 8), nullable=True)},
            metadata={"dprisk": {"weights": "w"}},
        )
        frame = FRAME.dprisk.declare(schema)
        found = exposure(frame, bounds={"y": (10, 90)})
        assert found.weighing.column == "w" and found.weighing.largest == 8
        assert found.answers["column"].unique().tolist() == ["y"]  # weights are no column to ask about
        merged(found.answers, exposure(FRAME, "y", bounds=BOUNDS, weights="w").answers, ["column", "statistic", "eps"])
        plain = exposure(frame, "y", bounds={"y": (10, 90)}, weights=False)
        assert plain.weighing is None and not plain.answers["statistic"].str.startswith("weighted").any()

    def test_it_is_the_curators(self):
        with pytest.raises(NotPublicError, match="exact figures"):
            pdrisk.public(exposure(FRAME, "y", bounds=BOUNDS, weights="w").recommendation)

    def test_the_report_counts_what_weights_are(self):
        frame = pd.DataFrame({"y": np.linspace(0, 10, 10), "w": [1, 1, 1, 1, 1, 2, 4, 8, -3, np.nan]})
        said = " ".join(repr(exposure(frame, "y", eps=1, bounds={"y": (0, 10), "w": (0, 5)}, weights="w")).split())
        # Of 1 + 1 + 1 + 1 + 1 + 2 + 4 + 8 = 19, 5 + 2 + 4 + 5 = 16 are left: 15.79 % less. Nine have a weight.
        assert "Weights above W = 5 are trimmed at it: 1 of 9." in said
        assert "All together are 15.79 % less" in said
        assert "Without a weight are 1 records" in said and "Below 0 are 1 weights" in said
        # W over the mean of 16 / 9; and eps 1/5 of the median weight of 1: 1 / (1 + exp(-.2)) = .5498
        assert "2.812 times" in said and "a risk of at most 0.5499" in said and "largest weight has 0.7311" in said
        assert "paper" not in said

    @pytest.mark.parametrize("weights", [np.zeros(40), np.full(40, -2.0), np.full(40, np.nan)])
    def test_nobody_weighs_anything(self, weights):
        frame = pd.DataFrame({"y": np.linspace(10, 90, 40), "w": weights})
        found = exposure(frame, "y", bounds=BOUNDS, weights="w")
        assert "No weight is above 0" in " ".join(repr(found).split())
        own = frame.dprisk.assess("y", "mean", 0.1, bounds=BOUNDS, weights="w")["noise95"].item()
        at = found.answers.query("statistic == 'weighted mean' and eps == .1")
        assert at["noise95"].item() == own

    def test_infinite_weights_are_trimmed(self):
        frame = FRAME.assign(w=FRAME["w"].mask(FRAME["w"] > 8, np.inf))
        found, same = (exposure(each, "y", "mean", bounds=BOUNDS, weights="w") for each in (frame, FRAME))
        merged(found.answers, same.answers, ["column", "statistic", "eps"])

    @pytest.mark.parametrize(
        ("weights", "bounds", "kind", "said"),
        [
            ("v", BOUNDS, UnknownColumnError, "unknown column 'v'"),
            ("g", BOUNDS, ColumnTypeError, "weights needs numbers, but column 'g' holds text"),
            (["w"], BOUNDS, ColumnTypeError, "name of a column, not of type list"),
            ("w", {"y": (10, 90)}, ParameterError, "needs the largest weight W"),
            ("w", {**BOUNDS, "w": (-1, 8)}, ParameterError, "weights cannot be negative"),
            ("w", {**BOUNDS, "w": "column"}, ParameterError, "cannot come from the data"),
        ],
    )
    def test_wrong(self, weights, bounds, kind, said):
        """As weights= of a statistic says it."""
        for ask in (
            lambda: exposure(FRAME, "y", bounds=bounds, weights=weights),
            lambda: FRAME.dprisk.mean("y", eps=1, bounds=bounds, weights=weights),
        ):
            with pytest.raises(kind, match=said):
                ask()

    def test_the_mechanism_of_the_paper_weighs_nobody(self):
        with pytest.raises(ParameterError, match="cannot answer weighted mean"):
            exposure(FRAME, "y", bounds=BOUNDS, weights="w", mechanism="laplace")


def jackknife(statistic, values, weights):
    """Standard error from all answers without one record: the definition of the delete-one jackknife."""
    n = len(values)
    answers = [statistic(np.delete(values, at), np.delete(weights, at)) for at in range(n)]
    return math.sqrt((n - 1) / n * sum((each - np.mean(answers)) ** 2 for each in answers))


class TestSamplingError:
    """Linearised errors are those of equal weights without weights, and near those of resampling with them."""

    VALUES = np.sort(np.random.default_rng(1).gamma(2, 20, 900))
    WEIGHTS = np.random.default_rng(2).lognormal(0, 0.8, 900)

    @pytest.mark.parametrize("statistic", [Mean(), Var(0), Std(0), Median(), Quantile(0.9)])
    def test_of_equal_weights(self, statistic):
        plain = sampling95(statistic, self.VALUES)
        found = weighted_sampling95(statistic, self.VALUES, np.full(900, 3.0))
        assert found == pytest.approx(plain, rel=0.05 if isinstance(statistic, Quantile) else 1e-3)
        assert found == weighted_sampling95(statistic, self.VALUES, np.full(900, 6.0))

    @pytest.mark.parametrize(
        ("statistic", "asked"),
        [
            (Mean(), lambda x, w: np.average(x, weights=w)),
            (Var(0), lambda x, w: np.average((x - np.average(x, weights=w)) ** 2, weights=w)),
            (Std(0), lambda x, w: math.sqrt(np.average((x - np.average(x, weights=w)) ** 2, weights=w))),
        ],
    )
    def test_of_weights(self, statistic, asked):
        found = weighted_sampling95(statistic, self.VALUES, self.WEIGHTS)
        assert found == pytest.approx(NORMAL * jackknife(asked, self.VALUES, self.WEIGHTS), rel=0.03)

    def test_of_a_median(self):
        """Against 400 bootstrap samples, seeded."""
        random, medians = np.random.default_rng(0), []
        for _ in range(400):
            at = np.sort(random.integers(0, 900, 900))
            below = np.cumsum(self.WEIGHTS[at])
            medians.append(self.VALUES[at][np.searchsorted(below, below[-1] / 2)])
        found = weighted_sampling95(Median(), self.VALUES, self.WEIGHTS)
        assert found == pytest.approx(NORMAL * np.std(medians), rel=0.2)

    def test_where_none_is_known(self):
        assert math.isnan(weighted_sampling95(Mean(), np.array([1.0]), np.array([1.0])))
        assert math.isnan(weighted_sampling95(Mean(), np.array([1.0, 2.0]), np.zeros(2)))
        assert math.isnan(weighted_sampling95(Count(), self.VALUES, self.WEIGHTS))
        assert weighted_sampling95(Var(0), np.array([2.0, 2.0]), np.ones(2)) == 0.0


@pytest.fixture
def file(tmp_path):
    FRAME.to_csv(tmp_path / "survey.csv", index=False)
    return tmp_path / "survey.csv"


WEIGHED = ["--weights", "w", "--trim-weights", "8", "--bounds", "y=10:90"]


class TestAssessCommand:
    """`pdrisk assess FILE --weights w --trim-weights W`."""

    @pytest.mark.parametrize("more", [[], ["--person", "id"]])
    def test_as_the_library(self, file, tmp_path, more, capsys):
        folder = tmp_path / "found"
        command = ["assess", str(file), "--columns", "y", *WEIGHED, "--by", "g", *more, "--to", str(folder)]
        assert main(command) == 0
        own = exposure(FRAME, "y", bounds=BOUNDS, weights="w", by="g")
        for name, table in (("answers", own.answers), ("groups", own.groups), ("eps", own.recommendation)):
            pd.testing.assert_frame_equal(pd.read_csv(folder / f"{name}.csv"), table, check_dtype=False, rtol=1e-12)
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "Weights above W = 8 are trimmed at it" in page and "w / W" in page

    def test_other_ways_to_say_it(self, file, tmp_path, capsys):
        (tmp_path / "schema_of_weights.py").write_text(
            "import pandera.pandas as pa\n"
            "schema = pa.DataFrameSchema({'w': pa.Column(float, pa.Check.in_range(0, 8), nullable=True)},\n"
            "                            metadata={'dprisk': {'weights': 'w'}})\n"
        )
        ways = [
            WEIGHED,
            ["--weights", "w", "--bounds", "y=10:90", "w=0:8"],
            ["--schema", f"{tmp_path / 'schema_of_weights.py'}:schema", "--bounds", "y=10:90"],
        ]
        said = []
        for way in ways:
            assert main(["assess", str(file), "--columns", "y", *way]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1] == said[2] and "weighted mean" in said[0]
        assert main(["assess", str(file), *WEIGHED]) == 0  # all columns, but the weights
        assert not re.search(r"(?m)^ *w ", capsys.readouterr().out)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--weights", "v", "--trim-weights", "8"], "the file has no column v"),
            (["--weights", "w"], "needs the largest weight W.*--trim-weights W"),
            (["--weights", "g", "--trim-weights", "8"], "weights needs numbers, but column 'g' holds text"),
            (["--weights", "w", "--trim-weights", "0"], "finite and above 0, not 0"),
            (["--weights", "w", "--trim-weights", "-1"], "finite and above 0, not -1"),
            (["--weights", "w", "--trim-weights", "nan"], "finite and above 0"),
            (["--weights", "w", "--bounds", "w=-1:8"], "weights cannot be negative"),
            (["--weights", "w", "--trim-weights", "8", "--bounds", "w=0:8"], "leave one of them out"),
            (["--trim-weights", "8"], "name it with --weights"),
            ([*WEIGHED, "--person", "id", "--per-person", "mean"], "one row for each person first"),
            ([*WEIGHED, "--mechanism", "laplace"], "cannot answer weighted"),
            ([*WEIGHED, "--statistics", "max"], "weights do not change max"),
        ],
    )
    def test_wrong(self, file, words, said, capsys):
        assert main(["assess", str(file), "--columns", "y", *words]) == 2
        assert re.search(said, capsys.readouterr().err)


class TestStudyCommand:
    """`pdrisk study --weights` compares one weighted release with the recipe of two."""

    def test_the_recipe(self):
        """95 % of the errors of two releases with half of eps each, drawn here once more."""
        found = weighted_means(FRAME, ["y"], [0.5, 3.0], BOUNDS, "w")
        known = FRAME.dropna()
        y, w = known["y"].clip(10, 90), known["w"].clip(0, 8)
        exact, random = np.average(y, weights=w), np.random.default_rng(9)
        for row in found.itertuples():
            above = (w * y).sum() + random.laplace(0, 90 * 8 / (row.eps / 2), 40_000)
            below = w.sum() + random.laplace(0, 8 / (row.eps / 2), 40_000)
            recipe = np.clip(above / np.maximum(below, 1e-9), 10, 90)
            assert row.recipe95 == pytest.approx(np.quantile(np.abs(recipe - exact), 0.95), rel=0.04)
            own = FRAME.dprisk.assess("y", "mean", row.eps, bounds=BOUNDS, weights="w")["noise95"].item()
            assert (row.mean, row.noise95, row.n) == (pytest.approx(exact), own, len(known))
            assert row.noise95 < 0.6 * row.recipe95

    def test_the_command(self, file, tmp_path, capsys):
        pytest.importorskip("matplotlib")
        command = ["study", str(tmp_path / "to"), "--file", str(file), "--columns", "y", "--sizes", "1.0", "--quiet"]
        command += ["--eps", "0.5,3", "--statistics", "mean"]
        assert main([*command, *WEIGHED]) == 0
        found = pd.read_csv(tmp_path / "to" / "weighted.csv")
        expected = weighted_means(FRAME, ["y"], [0.5, 3.0], BOUNDS, "w")
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
        page = tmp_path / "to" / "report.html"
        assert "Weighted means: one release, or two" in page.read_text(encoding="utf-8")
        assert main([*command, "--bounds", "y=10:90"]) == 0  # which is about nobody's weights
        assert "Weighted means" not in page.read_text(encoding="utf-8")
        assert not (tmp_path / "to" / "weighted.csv").exists()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--weights", "w"], "needs the largest weight W"),
            (["--trim-weights", "8"], "name it with --weights"),
            (["--weights", "v"], "no column v"),
            ([*WEIGHED, "--by", "g"], "leave one out"),
            ([*WEIGHED, "--person", "id", "--per-person", "mean"], "one row for each person first"),
        ],
    )
    def test_wrong(self, file, tmp_path, words, said, capsys):
        pytest.importorskip("matplotlib")
        assert main(["study", str(tmp_path / "to"), "--file", str(file), "--columns", "y", *words]) == 2
        assert re.search(said, capsys.readouterr().err)

    def test_the_survey_of_nobody_has_no_weights(self, tmp_path, capsys):
        pytest.importorskip("matplotlib")
        assert main(["study", str(tmp_path / "to"), "--weights", "w"]) == 2
        assert "--file" in capsys.readouterr().err


N, TOTAL = 1000, 1500.0
EVEN = pd.DataFrame({"y": np.linspace(10, 90, N), "w": TOTAL / N})
PUBLIC = {"n": N, "bounds": BOUNDS, "weights": "w", "total_weight": TOTAL}


class TestPlan:
    """The noise of a plan is that of weighted answers about evenly spread values."""

    @pytest.mark.parametrize(
        ("question", "asked"),
        [
            ("mean(y)", "mean"), ("sum(y)", "sum"), ("count(y)", "count"), ("median(y)", "median"), ("max(y)", "max"),
            ("quantile(0.9) of y", ("quantile", {"q": 0.9})), ("var(ddof=0) of y", ("var", {"ddof": 0})),
            ("std(ddof=0) of y", ("std", {"ddof": 0})),
        ],
    )  # fmt: skip
    def test_is_that_of_answers(self, question, asked):
        (row,) = pdrisk.plan(question, eps=0.7, **PUBLIC).to_dict("records")
        both = [asked, "mean" if asked == "max" else "max"]  # alone weights would be refused for a maximum
        own = EVEN.dprisk.assess("y", both, 0.7, bounds=BOUNDS, weights="w").iloc[0]
        assert (row["noise95"], row["mechanism"]) == (own["noise95"], own["mechanism"])
        assert row["worst_case"] == own["worst_case"]
        assert row["question"] == (question if asked == "max" else f"{question} weighted by w")

    def test_with_an_interval(self):
        (row,) = pdrisk.plan("median(y)", eps=1, interval=True, **PUBLIC).to_dict("records")
        own = EVEN.dprisk.assess(
            "y", "median", 1, bounds=BOUNDS, weights="w", mechanism="weighted_exponential_interval"
        )
        assert (row["mechanism"], row["noise95"]) == ("weighted_exponential_interval", own["noise95"].item())

    def test_of_a_release(self):
        found = pdrisk.plan(["count()", "mean(y)"], eps=2, **PUBLIC)["noise95"]
        count = EVEN.dprisk.count(eps=1, bounds=BOUNDS, weights="w")
        assert found[0] == pytest.approx(count.noise95, rel=1e-9)
        means = [EVEN.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w").noise95 for _ in range(50)]
        assert found[1] == pytest.approx(np.median(means), rel=0.02)

    def test_other_weights_with_this_sum(self):
        """Noise is that of equal weights, if weights and values have nothing to do with each other."""
        random = np.random.default_rng(0)
        weights = random.gamma(2, 1, N).clip(0, 8)
        frame = EVEN.assign(w=weights * (TOTAL / weights.sum()))
        own = frame.dprisk.assess("y", "mean", 1, bounds=BOUNDS, weights="w")["noise95"].item()
        assert pdrisk.plan("mean(y)", eps=1, **PUBLIC)["noise95"][0] == pytest.approx(own, rel=0.03)

    def test_groups_and_releases_together(self):
        table = pdrisk.plan({"y": ["count", "mean", "std(ddof=0)"]}, eps=1, groups=10, **PUBLIC)
        assert table["eps"].tolist() == [1, 1, 1] and table["n"].tolist() == [100] * 3
        assert table["mechanism"].tolist() == ["weighted_bernstein"] * 3
        one = pd.DataFrame({"y": np.linspace(10, 90, 100), "w": TOTAL / N})
        asked = {"y": ["count", "mean", "std(ddof=0)"]}
        drawn = [one.dprisk.agg(asked, eps=1, bounds=BOUNDS, weights="w") for _ in range(60)]
        wide = np.median([(each["high"] - each["low"]) / 2 for each in drawn], axis=0)
        assert table["noise95"][:2].tolist() == pytest.approx(wide[:2], rel=0.1)

    def test_targets(self):
        found = pdrisk.plan({"mean(y)": {"noise95": 0.9}, "count()": {"relative": 0.02}}, success=0.8, **PUBLIC)
        assert found.fits and (found.table["noise95"] <= found.table["wanted"]).all()
        assert found.table["wanted"].tolist() == pytest.approx([0.9, 0.02 * TOTAL])
        own = EVEN.dprisk.assess("y", "mean", found.table["eps"][0], bounds=BOUNDS, weights="w")
        assert found.table["noise95"][0] == own["noise95"].item()

    def test_proportions_need_no_bounds(self):
        frame = EVEN.assign(b=np.arange(N) % 2 == 0)
        own = frame.dprisk.assess("b", "proportion", 1, bounds={"w": (0, 8)}, weights="w")["noise95"].item()
        assert pdrisk.plan("proportion(b)", eps=1, **PUBLIC)["noise95"][0] == pytest.approx(own, rel=1e-3)

    @pytest.mark.parametrize(
        ("question", "options", "kind", "said"),
        [
            ("mean(y)", {"total_weight": None}, ParameterError, "total_weight=.*sum of the weights"),
            ("mean(y)", {"weights": None}, ParameterError, "name their column with weights="),
            ("mean(y)", {"weights": ["w"]}, ColumnTypeError, "not of type list"),
            ("mean(y)", {"bounds": (10, 90)}, ParameterError, "needs the largest weight W"),
            ("mean(y)", {"bounds": {"w": (0, 8)}}, ParameterError, "mean.y. weighted by w needs bounds"),
            ("mean(y)", {"bounds": {**BOUNDS, "w": (-1, 8)}}, ParameterError, "weights cannot be negative"),
            ("mean(y)", {"total_weight": 8001}, ParameterError, "more than 1,000 weights of at most 8"),
            ("mean(y)", {"total_weight": 0}, ParameterError, "finite and above 0, but is 0"),
            ("mean(y)", {"total_weight": -3}, ParameterError, "finite and above 0, but is -3"),
            ("mean(y)", {"total_weight": math.nan}, ParameterError, "finite|total_weight"),
            ("mean(y)", {"total_weight": "many"}, ColumnTypeError, "total_weight"),
            ("mean(y)", {"n": 0}, ParameterError, "more than 0 weights"),
            ("sum(y)", {"step": 1}, ParameterError, "step= is not for weighted"),
            ("mean(y)", {"clip": "private"}, ParameterError, "clip= is not for weighted"),
            ("var(y)", {}, ParameterError, "ddof=0"),
            ("mean(y)", {"groups": {"g": 4}, "margins": True}, ParameterError, "questions without weights"),
            ("mean(y)", {"mechanism": "laplace"}, ParameterError, "cannot answer weighted mean"),
            (
                {"t": {"mean(y)": {"noise95": 1}, "person": "p", "per_person": "sum"}}, {}, ParameterError,
                "another number of the weights",
            ),
        ],
    )  # fmt: skip
    def test_wrong(self, question, options, kind, said):
        with pytest.raises(kind, match=said):
            pdrisk.plan(question, **{"eps": 1, **PUBLIC, **options})

    def test_a_whole_population_of_the_largest_weight(self):
        """A sum of n W, rounded, is no contradiction."""
        weight = 0.1 + 0.2
        found = pdrisk.plan(
            "count()", n=3, eps=1, bounds={"w": (0, weight)}, weights="w", total_weight=weight + weight + weight
        )
        assert found["noise95"][0] == pytest.approx(weight * math.log(20))


class TestPlanCommand:
    """`pdrisk plan --weights w --trim-weights W --total-weight T`."""

    PUBLIC = ("--n", "1000", "--weights", "w", "--trim-weights", "8", "--total-weight", "1500", "--bounds", "y=10:90")

    def test_as_the_library(self, capsys):
        assert main(["plan", "mean(y)", "count()", "--eps", "2", *self.PUBLIC]) == 0
        _, mean, count = capsys.readouterr().out.splitlines()
        wanted = pdrisk.plan(["mean(y)", "count()"], eps=2, **PUBLIC)["noise95"]
        assert "mean(y) weighted by w" in mean and f"± {wanted[0]:.4g}" in mean
        assert "count() weighted by w" in count and f"± {wanted[1]:.4g}" in count

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--weights", "w"], "needs --trim-weights W"),
            (["--weights", "w", "--trim-weights", "8"], "needs --total-weight"),
            (["--trim-weights", "8"], "name it with --weights"),
            (["--total-weight", "8"], "name their column with weights="),
            (["--weights", "w", "--trim-weights", "0", "--total-weight", "9"], "bounds must be"),
        ],
    )
    def test_wrong(self, words, said, capsys):
        assert main(["plan", "mean(y)", "--n", "1000", "--bounds", "y=10:90", *words]) == 2
        assert re.search(said, capsys.readouterr().err)
