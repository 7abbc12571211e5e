"""What figures of a study say of themselves: who may see them, from which prior, and what their signs are."""

import numpy as np
import pandas as pd
import pytest

from pdrisk._cli import main
from pdrisk._core.risks.risk import posterior
from pdrisk._pictures.canvas import MARKERS, PALE
from pdrisk.study import figures, run, texts
from pdrisk.study.points import by_query
from seen import unreadable, words_of

PEOPLE = pd.DataFrame({"years_of_education_and_training": np.arange(400.0) ** 1.5})
RESULT = run(PEOPLE, "years_of_education_and_training", repetitions=3, sample_sizes=[4, 40, 1.0], eps=[0.1, 1, 10])
NAMES = ("risk_by_query", "risk_by_proportion", "risk_by_epsilon", "noise_against_risk")


class TestPrior:
    """An attacker of many worlds starts from 1/n, which differs between samples."""

    @pytest.mark.parametrize("name", ["risk_by_query", "risk_by_proportion"])
    def test_of_several_sizes_there_are_several(self, name):
        text = getattr(texts, name)(RESULT)
        assert "many-worlds risk, from a prior of 1/n, 0.0025 (the largest sample) to 0.25\n" in text
        assert "two-worlds risk, from a prior of 0.5\n" in text

    def test_of_one_size_there_is_one(self):
        for shown, prior in ((None, "0.0025"), (0.1, "0.025")):
            text = texts.risk_by_epsilon(RESULT, metric="identifiability", proportion=shown)
            assert f"identifiability, from a prior of 1/n, {prior}\n" in text

    def test_the_axis_begins_at_the_smallest(self):
        (panel,) = by_query(RESULT, metrics="many_worlds")
        assert (panel.priors, panel.start) == ((1 / 400, 1 / 4), 1 / 400)


class TestWhoMaySee:
    """Figures are the curator's, unless nobody in the data is real."""

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("module", [figures, texts])
    def test_synthetic_data(self, module, name):
        synthetic = RESULT.copy()
        synthetic.attrs["study"] = {**RESULT.attrs["study"], "synthetic": True}
        for result, own, other in ((RESULT, "curator only", "synthetic"), (synthetic, "synthetic data", "curator")):
            shown = getattr(module, name)(result)
            said = shown if isinstance(shown, str) else " ".join(text.get_text() for text in words_of(shown))
            assert own in said
            assert other not in said

    @pytest.mark.slow
    def test_the_page_says_one_thing(self, tmp_path):
        assert main(["study", str(tmp_path / "a"), "--repetitions", "1", "--quiet", "--columns", "hours"]) == 0
        page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
        assert "this page may be shown" in page
        assert "do not publish" not in page.lower()
        PEOPLE.to_csv(tmp_path / "own.csv", index=False)
        own = ["study", str(tmp_path / "b"), "--file", str(tmp_path / "own.csv"), "--repetitions", "1", "--quiet"]
        assert main(own) == 0
        page = (tmp_path / "b" / "report.html").read_text(encoding="utf-8")
        assert "do not publish" in page
        assert "synthetic" not in page


def lines_of(figure):
    """Every line that stands in a figure."""
    return [line for text in words_of(figure) for line in text.get_text().splitlines()]


class TestSigns:
    """What lines, bars and marks are."""

    @pytest.mark.slow
    def test_of_the_spread(self):
        figure = figures.risk_by_query(RESULT)
        assert "line: all risks; bar: the middle half; diamond: median" in lines_of(figure)
        ticks = figure.axes[0].get_xticks()
        assert ticks.tolist() == pytest.approx([1, 0.1, 0.01])

    @pytest.mark.slow
    def test_the_worst_case_of_each_sensitivity_has_the_marks_of_its_queries(self):
        figure = figures.noise_against_risk(RESULT)
        assert "grey: the worst case, with the marks of its queries" in lines_of(figure)
        whole = RESULT[RESULT["sample_size"] == 400]
        for axes, queries in zip(figure.axes, (["mean", "median", "min", "max"], ["var"]), strict=True):
            hollow = [
                line for line in axes.lines if line.get_markeredgecolor() == PALE and line.get_marker() in MARKERS
            ]
            assert [line.get_marker() for line in hollow] == [MARKERS[STATISTICS.index(name)] for name in queries]
            for line, name in zip(hollow, queries, strict=True):
                own = whole[whole["statistic"] == name].set_index("noise95")["worst_case"]
                assert len(line.get_xdata())
                assert own.loc[line.get_xdata()].tolist() == list(line.get_ydata())
            grey = [line for line in axes.lines if line.get_color() == PALE and len(line.get_xdata()) > 100]
            assert len(grey) == (2 if len(queries) > 1 else 1)
            assert {line.get_linewidth() for line in grey} == {0.9}

    @pytest.mark.slow
    def test_a_long_name_is_not_cut_out_of_an_axis(self):
        figure = figures.noise_against_risk(RESULT)
        labels = [axes.get_xlabel() for axes in figure.axes]
        assert labels == [f"noise ± (95 %), its unit{square}; less →" for square in ("", ", squared")]
        assert unreadable(figure) == []


STATISTICS = ["mean", "median", "min", "max", "var"]


def test_risks_of_several_sizes_are_above_their_own_priors():
    (panel,) = by_query(RESULT, metrics="many_worlds")
    assert panel.points["lowest"].min() >= panel.start
    assert panel.points["highest"].max() <= posterior(10, 1 / 4)
