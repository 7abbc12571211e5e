"""The accuracy benchmark: its errors are those of known noise, and its tables say what was measured."""

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pdrisk._pandas.lines import judged_lines
from pdrisk._pandas.options import Request
from pdrisk._pandas.requests import judged_selection

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
DRAWS = 4000


@pytest.fixture(scope="module")
def accuracy():
    if not BENCHMARKS.is_dir():
        pytest.skip("benchmarks are not part of this installation")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import accuracy

        yield accuracy
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def rows(accuracy):
    """Every statistic of two sets of data."""
    distance, uniform = accuracy.SHAPES[0], accuracy.SHAPES[2]
    return [
        *accuracy.shape_rows(distance, 1000, eps=("0.1", "1"), draws=8, peers=()),
        *accuracy.shape_rows(uniform, 300, eps=("0.1",), draws=8, peers=()),
    ]


def of_statistic(accuracy, monkeypatch, statistic, *arguments, **options):
    """The row of one statistic alone."""
    monkeypatch.setattr(accuracy, "STATISTICS", {statistic: accuracy.STATISTICS[statistic]})
    (row,) = accuracy.shape_rows(*arguments, peers=(), **options)
    return row


class TestKnownErrors:
    """Errors that formulas give, to within 6 standard errors; those of noise 1.25 times as wide would be beyond."""

    @pytest.mark.parametrize("eps", ["0.1", "1"])
    def test_count(self, accuracy, monkeypatch, eps):
        """``P(k)`` is proportional to ``a**|k|``: the mean of ``|k|`` is ``2 a / (1 - a**2)``."""
        row = of_statistic(accuracy, monkeypatch, "count", accuracy.SHAPES[4], 1000, eps=(eps,), draws=DRAWS)
        a = math.exp(-float(eps))
        self.agrees(row.errors["auto"], 2 * a / (1 - a**2))

    @pytest.mark.parametrize("shape", [0, 2])
    def test_mean(self, accuracy, monkeypatch, shape):
        """``E|(1 - m) X - m Y| = 1 - m (1 - m)`` of Laplace variables X, Y of scale 1."""
        shape, n = accuracy.SHAPES[shape], 10_000
        row = of_statistic(accuracy, monkeypatch, "mean", shape, n, eps=("1",), draws=DRAWS)
        lo, hi = shape.bounds
        m = (shape.values(n).mean() - lo) / (hi - lo)
        self.agrees(row.errors["auto"], (hi - lo) / n * (1 - m * (1 - m)))
        self.agrees(row.errors["laplace"], (hi - lo) / 2)

    def agrees(self, error, expected):
        assert abs(error.mean - expected) <= 6 * error.standard_error
        assert 0.25 * expected > 6 * error.standard_error
        assert error.quantile95 == pytest.approx(-math.log(0.05) * expected, rel=0.35)


class TestError:
    def test_of_answers(self, accuracy):
        error = accuracy.Error.of([1, 3, 2, 6], 2)
        assert (error.mean, error.quantile95) == (1.5, pytest.approx(3.55))
        assert error.standard_error == pytest.approx(np.std([1, 1, 0, 4]) / 2)
        assert str(error) == "1.5 (3.55)"

    def test_coverage(self, accuracy):
        ends = np.array([[0, 1, 3], [2, 0, 3]]), np.array([[1, 2, 4], [2, 5, 9]])
        assert accuracy.Error.of(np.zeros((2, 3)), np.array([1, 2, 2]), ends).coverage == 3 / 6

    def test_each_group_has_its_own_exact_answer(self, accuracy):
        assert accuracy.Error.of([[1, 12], [3, 10]], np.array([2, 11])).mean == 1


class TestJudgement:
    """Goals within 10 %, peers within 5 %; by more than chance, and only where n is private to both."""

    def row(self, accuracy, ours, goal=None, **peers):
        errors = {name: accuracy.Error(mean, 0.0, 0.0) for name, mean in {"auto": ours, **peers}.items()}
        return accuracy.Row("mean", "distance", 300, "1", errors, "auto", goal, frozenset({"OpenDP", "PyDP"}))

    @pytest.mark.parametrize(("ours", "missed"), [(1.0, []), (1.1, []), (1.12, ["goal"])])
    def test_goal(self, accuracy, ours, missed):
        assert self.row(accuracy, ours, goal=1.0).misses == missed

    @pytest.mark.parametrize(("ours", "missed"), [(1.0, []), (1.05, []), (1.06, ["peer"])])
    def test_best_peer(self, accuracy, ours, missed):
        row = self.row(accuracy, ours, OpenDP=3.0, PyDP=1.0, diffprivlib=0.1)
        assert (row.best_peer, row.misses) == ("PyDP", missed)
        assert row.ratio == pytest.approx(ours)

    def test_nothing_to_judge(self, accuracy):
        row = self.row(accuracy, 1.0, diffprivlib=0.1)
        assert (row.best_peer, row.ratio, row.is_judged) == (None, None, False)

    def test_chance_is_no_miss(self, accuracy):
        error = accuracy.Error(1.2, 0.05, 0.0)
        row = accuracy.Row("mean", "distance", 300, "1", {"auto": error}, "auto", 1.0)
        assert row.misses == []

    def test_two_exact_answers_tie(self, accuracy):
        assert self.row(accuracy, 0.0, PyDP=0.0).ratio == 1.0


class TestPage:
    def test_every_statistic_has_a_table_of_its_rows(self, accuracy, rows):
        from accuracy_page import STATISTICS, TITLES, page

        text = page(rows, 8, 200, 40, peers=())
        for statistic in STATISTICS:
            section = text.split(f"## {TITLES[statistic]}\n")[1].split("\n## ")[0]
            lines = [line for line in section.splitlines() if line.startswith("|")]
            assert len(lines) == 5  # two of heading
            assert len({line.count("|") for line in lines}) == 1
            assert [line.split(" | ")[:3] for line in lines[2:]] == [
                ["| distance", "1,000", "0.1"], ["| distance", "1,000", "1"], ["| uniform", "300", "0.1"]
            ]  # fmt: skip
            assert all(line.count("**") in (2, 4) for line in lines[2:])

    def test_goals_are_those_of_eps_1(self, accuracy, rows):
        goals = [(row.statistic, row.data, row.n, row.eps) for row in rows if row.goal is not None]
        assert sorted(goals) == sorted((*key, "1") for key in accuracy.GOALS if key[1:] == ("distance", 1000))

    def test_verdict_counts_and_names_what_is_missed(self, accuracy):
        from accuracy_page import verdict

        met, missed = (
            accuracy.Row("mean", "income", 300, "1", {"auto": accuracy.Error(error, 0.0, 0.0)}, "auto", 2.0)
            for error in (2.0, 3.0)
        )
        assert verdict([met]).startswith("1 of 1 goals")
        assert verdict([met, missed]).splitlines()[-1] == "- mean, income, n 300, eps 1 (3, goal 2)"

    def test_the_judged_column_says_whether_data_reach_their_bound(self, rows):
        judged = {(row.data, row.statistic): row.judged for row in rows}
        assert judged["distance", "min"] == judged["uniform", "max"] == "at the bound"
        assert judged["distance", "max"] != "at the bound"


def test_answers_stay_with_their_groups(accuracy):
    frame = pd.DataFrame({"x": [0.0, 1.0] * 10_000, "k": [7, 8] * 10_000})
    asked = [accuracy.STATISTICS["mean"], accuracy.STATISTICS["median"]]
    lines = [
        *judged_lines(frame, "x", asked, Request(bounds=(0, 1))),
        *judged_lines(frame, "x", asked[1:], Request(bounds=(0, 1), interval=True)),
    ]
    query, engine = judged_selection(frame, tuple(lines), Request(by="k", keys=[8, 7]))
    reading = engine.read(query)
    for line, universe, summary in zip(lines, reading.universes, reading.summaries, strict=True):
        error = accuracy.answers(line.calibrated(Fraction(10), universe), summary, 3, np.array([1.0, 0.0]))
        assert error.mean < 0.01
        assert (error.coverage is None) == (line.mechanism == "exponential")
        if line.mechanism == "exponential_interval":
            assert error.coverage == 1


def test_groups(accuracy):
    (row,) = accuracy.grouped_rows(counts=(4,), eps=("1",), draws=400, peers=(), n=2000)
    lo, hi = accuracy.SHAPES[0].bounds
    assert row.errors["auto"].mean == pytest.approx((hi - lo) / 500, rel=0.3)
    assert row.errors["laplace"].mean > 100


class TestShapes:
    def test_values_are_the_same_every_time_and_within_the_bounds(self, accuracy):
        for shape in accuracy.SHAPES:
            x = shape.values(500)
            assert len(x) == 500
            assert (x == shape.values(500)).all()
            assert x.min() >= shape.bounds[0]
            assert x.max() <= shape.bounds[1]
            assert not shape.whole or (x == np.rint(x)).all()


class TestPeers:
    """A library is asked for as many answers as patience allows, and left out where it fails."""

    def test_draws(self, accuracy):
        assert accuracy.drawn(lambda: 2.0, 50) == [2.0] * 50

    def test_failure(self, accuracy):
        assert accuracy.drawn(lambda: 1 / 0, 50) is None

    def test_no_number(self, accuracy):
        assert accuracy.drawn(lambda: math.nan, 50) is None

    def test_too_slow(self, accuracy, monkeypatch):
        ticks = iter(range(1000))
        monkeypatch.setattr(accuracy.time, "perf_counter", lambda: next(ticks))
        assert accuracy.drawn(lambda: 2.0, 50) is None
