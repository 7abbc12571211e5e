"""The accuracy benchmark: its errors are those of known noise, and its tables say what was measured."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from paths import BENCHMARKS, DOCS
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request

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
        *accuracy.shape_rows(distance, 1000, eps=("0.1", "1"), draws=4, peers=(), samples=3),
        *accuracy.shape_rows(uniform, 300, eps=("0.1",), draws=4, peers=(), samples=3),
    ]


def of_statistic(accuracy, monkeypatch, statistic, *arguments, **options):
    """The row of one statistic alone."""
    monkeypatch.setattr(accuracy, "STATISTICS", {statistic: accuracy.STATISTICS[statistic]})
    (row,) = accuracy.shape_rows(*arguments, peers=(), samples=1, **options)
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
        assert error.mean == error.typical


class TestError:
    def test_of_answers(self, accuracy):
        error = accuracy.Error.of([[1, 3], [2, 6], [3, 2]], np.array([2, 2]))
        assert (error.mean, error.typical) == (1.5 - 1 / 3, pytest.approx(7 / 6))
        assert error.standard_error == pytest.approx(np.std([1, 1, 0, 4, 1, 0]) / math.sqrt(6))

    def test_typical_is_the_median_of_samples(self, accuracy):
        error = accuracy.Error.of_samples([1, 2, 9])
        assert (error.mean, error.typical) == (4, 2)

    def test_coverage_and_width(self, accuracy):
        ends = np.array([[0, 1, 3], [2, 0, 3]]), np.array([[1, 2, 4], [2, 5, 9]])
        error = accuracy.Error.of(np.zeros((2, 3)), np.array([1, 2, 2]), ends)
        assert (error.coverage, error.width) == (3 / 6, 7 / 6)

    def test_each_group_has_its_own_exact_answer(self, accuracy):
        assert accuracy.Error.of([[1, 12], [3, 10]], np.array([2, 11])).mean == 1


class TestJudgement:
    """Goals within 10 %, peers within twice; by more than chance, and only where n is private to both."""

    def row(self, accuracy, ours, goal=None, scale=0.0, **peers):
        errors = {name: accuracy.Error(mean, mean) for name, mean in {"auto": ours, **peers}.items()}
        return accuracy.Row("mean", "distance", 300, "1", errors, "auto", goal, frozenset({"OpenDP", "PyDP"}), scale)

    @pytest.mark.parametrize(("ours", "missed"), [(1.0, False), (1.1, False), (1.12, True)])
    def test_goal(self, accuracy, ours, missed):
        assert self.row(accuracy, ours, goal=1.0).misses_goal == missed

    def test_best_peer(self, accuracy):
        row = self.row(accuracy, 1.2, OpenDP=3.0, PyDP=1.0, diffprivlib=0.1)
        assert (row.best_peer, row.ratio) == ("PyDP", pytest.approx(1.2))

    @pytest.mark.parametrize(("ours", "scale", "worse"), [(2.0, 1.0, False), (2.1, 1.0, True), (2.1, 101.0, False)])
    def test_twice_the_error_of_a_peer_where_it_matters(self, accuracy, ours, scale, worse):
        assert self.row(accuracy, ours, scale=scale, PyDP=1.0).is_much_worse == worse

    def test_small_errors_count_as_none(self, accuracy):
        assert self.row(accuracy, 1e-3, scale=10.0, PyDP=0.0).ratio == pytest.approx(1.1)

    def test_nothing_to_judge(self, accuracy):
        row = self.row(accuracy, 1.0, diffprivlib=0.1)
        assert (row.best_peer, row.ratio, row.is_much_worse, row.misses_goal) == (None, None, False, False)

    def test_chance_is_no_miss(self, accuracy):
        error = accuracy.Error(1.2, 1.2, 0.05)
        assert not accuracy.Row("mean", "distance", 300, "1", {"auto": error}, "auto", 1.0).misses_goal

    def test_two_exact_answers_tie(self, accuracy):
        assert self.row(accuracy, 0.0, PyDP=0.0).ratio == 1.0


class TestPage:
    def test_every_row_has_a_line_of_the_table(self, accuracy, rows):
        from accuracy_page import table

        lines = table(rows)
        assert len(lines) == 1 + len(rows) and len({len(line) for line in lines}) == 1
        assert [line[:4] for line in lines[1:]] == [[row.statistic, row.data, str(row.n), row.eps] for row in rows]
        at = lines[0].index("auto")
        assert all(line[at] for line in lines[1:] if line[0] != "clipped mean")

    def test_goals_are_those_of_eps_1(self, accuracy, rows):
        goals = [(row.statistic, row.data, row.n, row.eps) for row in rows if row.goal is not None]
        assert sorted(goals) == sorted((*key, "1") for key in accuracy.GOALS if key[1:] == ("distance", 1000))

    def test_section_counts_and_names_what_is_missed(self, accuracy, rows):
        from accuracy_page import section

        met, missed = (
            accuracy.Row("mean", "income", 300, "1", {"auto": accuracy.Error(error, error)}, "auto", 2.0)
            for error in (2.0, 3.0)
        )
        assert "1 of 2 goals are met. Missed: mean, income, n 300, eps 1 (3, goal 2)." in section(
            [met, missed], peers=()
        )
        errors = {"auto": accuracy.Error(6.0, 6.0), "PyDP": accuracy.Error(2.0, 2.0)}
        much = accuracy.Row("max", "income", 300, "1", errors, "auto", None, frozenset({"PyDP"}), 1.0, 0.125)
        text = section([much, *rows], peers=())
        assert "| max | 3.00 |" in text and "- max: income 3.0" in text
        assert "1 % of the bounds, n eps >= 100: at most 0.125." in text
        assert text.count("\n") < 150

    def test_the_section_stands_in_the_page(self, accuracy):
        from accuracy_page import inserted

        page = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
        text = inserted(page, "19 of 20 goals are met.")
        assert "\n<!-- accuracy -->\n19 of 20 goals are met.\n<!-- end -->\n" in text
        own = page.split("<!-- accuracy -->\n")[1].split("\n<!-- end -->")[0]
        assert inserted(text, own) == page

    def test_picture(self, accuracy, rows, tmp_path):
        pytest.importorskip("matplotlib")
        from accuracy_page import picture, table

        errors = {"auto": accuracy.Error(6.0, 6.0), "PyDP": accuracy.Error(2.0, 2.0)}
        much = accuracy.Row("max", "income", 300, "1", errors, "auto", None, frozenset({"PyDP"}), 1.0)
        picture(table([much, *rows]), tmp_path / "accuracy.png")
        assert (tmp_path / "accuracy.png").stat().st_size > 5_000

    def test_the_judged_column_says_whether_data_reach_their_bound(self, rows):
        judged = {(row.data, row.statistic): row.judged for row in rows}
        assert judged["distance", "min"] == judged["uniform", "max"] == "at the bound"
        assert judged["distance", "max"] != "at the bound"


class TestExactLaws:
    """Expected errors against many draws, and by the definition."""

    @pytest.mark.parametrize("statistic", ["median", "quantile 0.05", "max"])
    def test_errors_of_draws(self, accuracy, statistic):
        shape, eps = accuracy.SHAPES[5], "1"
        parts = [shape.values(60, sample) for sample in range(3)]
        frame = pd.DataFrame({"x": np.concatenate(parts), "k": np.repeat(np.arange(3), 60)})
        found, _ = accuracy.contenders(frame, shape, statistic)
        lines = (found["auto"], found["with interval"])
        query, engine = judged_selection(frame, lines, Request(by="k", keys=[0, 1, 2]))
        reading = engine.read(query)
        exact = np.array([accuracy.EXACT[statistic](x) for x in parts])
        limit = exact + 1
        for line, universe, summary in zip(query.lines, reading.universes, reading.summaries, strict=True):
            mechanism = line.calibrated(Fraction(eps), universe)
            drawn = [mechanism.draw(summary) for _ in range(DRAWS // 8)]
            values = np.array([mechanism.value(each) for each in drawn])
            off = np.abs(values - exact)
            unsure = 6 * off.std(axis=0) / math.sqrt(len(off))
            assert (abs(off.mean(axis=0) - accuracy.chosen_errors(mechanism, summary, exact)) <= unsure + 1e-4).all()
            beyond = accuracy.chosen_beyond(mechanism, summary, limit, above=True)
            assert abs((values > limit).mean(axis=0) - beyond).max() < 0.15
            if mechanism.name == "exponential_interval":
                low, high = np.array([mechanism.interval(each, 0.95) for each in drawn]).transpose(1, 0, 2)
                width, missed = accuracy.chosen_ends(mechanism, summary, exact)
                assert (((low > exact) | (high < exact)).mean(axis=0) <= missed + 0.05).all()
                assert np.allclose((high - low).mean(axis=0) / 2, width, rtol=0.25, atol=1)

    def test_permute_and_flip_by_its_definition(self, accuracy):
        """Candidates in random order, each taken with its weight over the best one's, until one is."""
        from accuracy_exact import opendp_law, opendp_score

        x, candidates, q, eps = np.array([1.0, 2, 2, 4]), [1.0, 2.0, 3.0, 4.0], 0.25, 2.0
        score = opendp_score(x, np.array(candidates), q)
        assert score.tolist() == pytest.approx([0.75, 0.5, 2.0, 2.25])
        weight, law = np.exp(-eps / (2 * 0.75) * (score - score.min())), np.zeros(4)
        for order in itertools.permutations(range(4)):
            left = 1 / 24
            for at in order:
                law[at] += left * weight[at]
                left *= 1 - weight[at]
        assert opendp_law(x, candidates, q, eps) == pytest.approx(law, abs=1e-9)


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
            assert error.coverage > 0.99


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
            assert (x == shape.values(500)).all() and not (x == shape.values(500, 1)).all()
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
        monkeypatch.setattr(accuracy.time, "process_time", lambda: next(ticks))
        assert accuracy.drawn(lambda: 2.0, 50) is None
