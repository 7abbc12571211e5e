"""Means and sums of values clipped at points that a share of eps finds: what a record changes, exact sums, texts."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk._core.lattice import PLACES
from pdrisk._core.size_sums import SIZE_PLACES, SizePoints
from pdrisk._core.statistics import Mean, Sum
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.exponential.weights import Weights
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one

BOTH = Universe(-1e6, 3e6)
ABOVE = Universe(0.0, 2.7e6)


def mechanism_of(universe=BOTH, eps=1, statistic=None):
    return calibrated("clipped_sums", statistic or Mean(), universe, Fraction(eps))


def summarised(x, mechanism):
    return summary_of_one(np.array(x, dtype=float), mechanism.universe, mechanism.reads)


def exact_place(x, universe):
    return math.floor((x - universe.lo) * (2.0**50 / universe.width) + 0.5)


def probabilities(x, mechanism):
    """For each side the chances of its points, by counting the records beyond each: slow and obvious."""
    points = SizePoints.between(mechanism.universe.lo, mechanism.universe.hi)
    places = [exact_place(each, mechanism.universe) for each in x]
    result = []
    for sign, ends in ((-1, points.lower_places), (1, points.upper_places)):
        own = [sign * (place - points.middle) for place in places]
        own = [size for size in own if size > 0 or (size == 0 and sign > 0)]
        scores = []
        previous = -1
        for size in (sign * (int(end) - points.middle) for end in ends):
            cut = sum(each > size for each in own)
            at_least = sum(each > previous for each in own)  # at the point, or between it and the one before
            scores.append(max(0, cut - mechanism.left, 3 * (mechanism.left - at_least)))
            previous = size
        if scores:
            (_, choice, _) = next(
                each for each in mechanism._choices(summarised(x, mechanism)) if each[0] == (sign > 0)
            )
            table = Weights.of(choice.score, len(scores), choice.eps).table
            weights = [Fraction(table[min(score, len(table) - 1)]) for score in scores]
            result.append([weight / sum(weights) for weight in weights])
    return result


def largest_loss(one, other):
    return max(abs(math.log(p / q)) for p, q in zip(one, other, strict=True))


records = st.lists(st.sampled_from([-1e6, -3000.0, -1.0, 0.0, 0.5, 20.0, 21.0, 4000.0, 2.9e6]), max_size=30)


class TestPrivacy:
    """One person changes the choice of the points, and the sums between them, as little as eps says."""

    @given(x=records, more=st.sampled_from([-1e6, -2.0, 0.0, 20.5, 5e4, 3e6]))
    def test_one_record_moves_the_choice_of_its_own_side_alone(self, x, more):
        mechanism = mechanism_of(eps=20)  # so that a few records are clipped, not all
        losses = [
            largest_loss(one, other)
            for one, other in zip(probabilities(x, mechanism), probabilities([*x, more], mechanism), strict=True)
        ]
        assert losses[0 if more >= 0 else 1] == 0 and max(losses) <= 10

    @pytest.mark.parametrize("universe", [BOTH, ABOVE, Universe(-5.0, -1.0)])
    def test_one_record_moves_the_sums_by_one_in_all(self, universe):
        """By whole numbers of one sign that add up to S, whatever the points are."""
        mechanism = mechanism_of(universe)
        points = SizePoints.between(universe.lo, universe.hi)
        x = [universe.lo, universe.lo / 3, universe.mid, universe.hi, 17.0, 20.0, 4e5]
        lowers, uppers = (range(0, max(len(each), 1), 9) for each in (points.lower, points.upper))
        for lower, upper in itertools.product(lowers, uppers):
            within = mechanism._within(lower, upper)

            def sums(records, lower=lower, upper=upper, within=within):
                return within._sums(mechanism._clipped(summarised(records, mechanism), lower, upper))[:, 0]

            for more in (universe.lo, universe.hi, universe.mid, 19.0, -0.1):
                moved = sums([*x, more]) - sums(x)
                assert (moved >= 0).all() and moved.sum() == PLACES

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(
        "x", [[], [0.5], [-1.0, 21.0, 21.0], [20.0] * 9 + [4000.0, 2.9e6] + [-3000.0] * 8 + [0.0, -1e6]]
    )
    def test_loss_is_that_of_the_definition(self, x):
        """The largest log-ratio of the choice's probabilities over all neighbours, and eps/2 for the sums."""
        mechanism = mechanism_of(eps=6)
        before, summary = probabilities(x, mechanism), summarised(x, mechanism)

        def loss_to(neighbour):
            after = probabilities(neighbour, mechanism)
            return 3 + max(largest_loss(one, other) for one, other in zip(before, after, strict=True))

        points, ends = SizePoints.between(BOTH.lo, BOTH.hi), [0, 1, -2, -1]
        without = [loss_to(x[:at] + x[at + 1 :]) for at in range(len(x))]
        added = [loss_to([*x, each]) for each in (0.0, *points.lower[ends], *points.upper[ends])]
        assert mechanism.loss_of_records(np.array(x), summary) == pytest.approx(without, abs=1e-9)
        assert mechanism.loss(summary)[0] == pytest.approx(max(added + without), abs=1e-9)

    def test_losses_of_groups_are_those_of_their_own_records(self):
        mechanism = mechanism_of(ABOVE, 6)
        x = np.array([10.0] * 40 + [2e6] * 5)
        codes = np.array([0] * 40 + [1] * 5, dtype=np.int32)
        summary = summary_of_groups(x, codes, 3, ABOVE, mechanism.reads)
        of_rows = mechanism.loss_of_records(x, summary.of_rows(codes))
        found, added = mechanism.loss(summary), mechanism.loss(summary)[2]  # nobody is in the last group
        wanted = [max(added, of_rows[:40].max()), max(added, of_rows[40:].max()), added]
        assert of_rows[:40].max() > of_rows[40:].max() and found == pytest.approx(wanted)
        assert found.max() == pytest.approx(mechanism.loss(summarised(x, mechanism))[0])

    @pytest.mark.parametrize("eps", [0.5, 1, 4])
    def test_no_attacker_is_right_more_often_than_success_says(self, eps):
        """The best one compares the likelihoods of the chosen point and of both sums."""
        mechanism = mechanism_of(ABOVE, eps)
        x = list(np.geomspace(10, 1e5, 3 * mechanism.left))
        one, other = (
            np.array([*map(float, each[0])])
            for each in (probabilities(x, mechanism), probabilities([*x, 2.7e6], mechanism))
        )
        noise = np.arange(-400, 401) / 20 / eps  # of a sum that the record moves by 1, at eps/2
        density = np.exp(-np.abs(noise) * eps / 2) * eps / 4 / 20 / eps
        moved = np.exp(-np.abs(noise - 1) * eps / 2) * eps / 4 / 20 / eps
        distance = np.abs(np.outer(one, density) - np.outer(other, moved)).sum() / 2
        of_sums_alone = 1 - math.exp(-eps / 4) / 2
        assert of_sums_alone - 0.01 < (1 + distance) / 2 <= mechanism.success + 0.01
        assert of_sums_alone < mechanism.success < 1 / (1 + math.exp(-eps))

    @pytest.mark.parametrize(("one", "other"), [(0.5, 0.5), (0.1, 0.9), (1.0, 2.0)])
    def test_two_sums_tell_no_more_than_one(self, one, other):
        """Whatever the attacker's prior: ``max_A P(A) - e**g Q(A)`` is largest for one variable moved by it all."""

        def told(g, moved):
            return np.maximum(0, np.maximum(1 - np.exp(g), 1 - np.exp((g - moved) / 2)))

        noise = (np.arange(200_000) + 0.5) / 5000 - 20
        ratio = np.abs(noise - one) - np.abs(noise)  # of what is drawn around one of both places
        for g in np.linspace(-one - other, one + other, 9):
            pair = np.average(told(g - ratio, other), weights=np.exp(-np.abs(noise)))
            assert pair <= told(g, one + other) + 1e-5

    def test_printed_success(self):
        # By hand: 1 - exp(-1/4) / (2 cosh(1/8)) = 1 - .778801 / 2.015646
        assert mechanism_of().success == pytest.approx(0.613622, abs=1e-6)


class TestAnswers:
    """The answer is that of values clipped to the points that it names."""

    @given(x=records, lower=st.integers(0, 90), upper=st.integers(0, 90))
    def test_sums_between_points_are_exact(self, x, lower, upper):
        mechanism = mechanism_of()
        points = SizePoints.between(BOTH.lo, BOTH.hi)
        ends = int(points.lower_places[lower]), int(points.upper_places[upper])
        places = [min(max(exact_place(each, BOTH), ends[0]), ends[1]) - ends[0] for each in x]
        found = mechanism._clipped(summarised(x, mechanism), lower, upper)
        assert found.places.tolist() == [math.floor(Fraction(sum(places) * PLACES, ends[1] - ends[0]))]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("statistic", [Mean(), Sum()])
    @pytest.mark.parametrize("universe", [BOTH, ABOVE])
    def test_coverage_and_error(self, statistic, universe):
        mechanism, draws = mechanism_of(universe, 1, statistic), 400
        x = np.random.default_rng(3).lognormal(8, 1, 2000) * (1 if universe is ABOVE else np.resize([1, -1], 2000))
        summary, held, ends = summarised(x, mechanism), 0, []
        for _ in range(draws):
            drawn = mechanism.draw(summary)
            clipped = np.clip(x, *mechanism.clip(drawn))
            exact = clipped.mean() if isinstance(statistic, Mean) else clipped.sum()
            low, high = mechanism.interval(drawn, 0.95)
            held += low[0] - 1e-9 * abs(exact) <= exact <= high[0] + 1e-9 * abs(exact)
            ends.append(mechanism.clip(drawn))
            assert low[0] <= mechanism.value(drawn)[0] <= high[0]
        assert held / draws > 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / draws)
        assert np.mean([1e4 <= high <= 2e5 for _, high in ends]) > 0.9
        assert all((low == 0) == (universe is ABOVE) for low, _ in ends)

    def test_reaches_its_goal(self):
        """Incomes of 10,000 people within bounds of 2.7 million at eps 1: an error of 42 at most, two_sums has 270."""
        incomes = pdrisk.datasets.soep_like(missing="nan")["income"].dropna().to_numpy(dtype=float)
        x = np.random.default_rng(10_000).choice(incomes, 10_000)
        mechanism = mechanism_of(ABOVE)
        summary, off = summarised(x, mechanism), []
        for _ in range(100):
            drawn = mechanism.draw(summary)
            off.append(abs(mechanism.value(drawn)[0] - np.clip(x, *mechanism.clip(drawn)).mean()))
        assert np.mean(off) < 42

    @pytest.mark.parametrize("x", [[], [5.0], [5.0, -5.0], [7.0] * 50])
    def test_few_records_or_one_value(self, x):
        mechanism = mechanism_of()
        drawn = mechanism.draw(summarised(x, mechanism))
        low, high = mechanism.clip(drawn)
        assert BOTH.lo <= low < high <= BOTH.hi and low <= mechanism.value(drawn)[0] <= high
        assert mechanism.loss(summarised(x, mechanism))[0] <= 1 and mechanism.noise95(summarised(x, mechanism))[0] > 0

    @pytest.mark.parametrize(
        "universe", [BOTH, ABOVE, Universe(100.0, 1e6), Universe(-5.0, -1.0), Universe(-1e9, 1e-3)]
    )
    def test_points_are_round_and_reach_the_bounds(self, universe):
        points = SizePoints.between(universe.lo, universe.hi)
        assert (np.diff(points.thresholds) > 0).all()
        for ends, places, bound, place in (
            (points.lower, points.lower_places, universe.lo, 0),
            (points.upper, points.upper_places, universe.hi, SIZE_PLACES),
        ):
            if len(ends):
                assert (ends[-1], places[-1]) == (bound, place) and len(ends) < 130
        assert len(points.lower) + len(points.upper) and points.bins == len(points.thresholds) + 1


@pytest.fixture
def frame():
    rng = np.random.default_rng(5)
    return pd.DataFrame({"income": rng.lognormal(8, 1, 4000), "g": np.arange(4000) % 2})


ASKED = {"eps": 2, "bounds": (0, 2.7e6), "clip": "private"}


class TestFrontEnds:
    """Every answer says what was clipped; nothing is clipped unless somebody asks for it."""

    def test_every_text_of_a_release_says_it(self, frame):
        release = frame.dprisk.mean("income", **ASKED)
        low, high = release.clip
        said = f"of values clipped to [0, {high:.6g}]"
        assert low == 0 and said in release.name and said in repr(release) and said in release._repr_html_()
        for audience in ("analyst", "curator", "publication"):
            assert said in release.explain(audience).replace("\n", " ")
        assert release.to_dict()["clip"] == (low, high) and release.mechanism == "clipped_sums"
        assert release.eps == 2 and release.curator.loss <= 2 and "nan" not in release.explain("curator")
        exact = frame["income"].clip(low, high).mean()
        assert release.low - 100 < exact < release.high + 100

    def test_groups_share_the_points(self, frame):
        table = frame.dprisk.mean("income", by="g", keys=[0, 1, 9], **ASKED)
        assert table["clip_high"].nunique() == 1 and "clipped to" in table.attrs["dprisk"]
        assert list(pdrisk.public(table).columns) == [
            "value",
            "low",
            "high",
            "eps",
            "worst_case",
            "clip_low",
            "clip_high",
        ]
        assert "clipped to" in pdrisk.explain(table, "publication")

    def test_mean_and_sum_share_a_release_and_counts_are_not_clipped(self, frame):
        table = frame.dprisk.agg({"income": ["mean", "sum", "count"]}, **ASKED)
        assert table["release"].tolist() == [1, 1, 2] and table["clip_high"].isna().tolist() == [False, False, True]

    def test_sql_and_dataset(self, frame, tmp_path):
        pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=9)
        data = pdrisk.Dataset(frame, name="d", ledger=tmp_path / "l.db")
        query = "SELECT g, AVG(income) AS mean FROM data GROUP BY g"
        bounds = {"income": ASKED["bounds"]}
        answers = [
            data.sql(query, eps=1, bounds=bounds, keys=[0, 1], clip="private", risk_columns=True) for _ in range(2)
        ]
        pd.testing.assert_frame_equal(*answers)  # remembered
        assert answers[0]["mean_clip_high"].nunique() == 1 and "clipped to" in pdrisk.explain(answers[0], "analyst")
        assert data.ledger.remaining().spent == 1
        values = {data.mean("income", **{**ASKED, "eps": 1}).value for _ in range(2)}
        plain = data.mean("income", eps=1, bounds=ASKED["bounds"])
        assert len(values) == 1 and plain.clip is None and plain.mechanism == "two_sums"

    def test_curators_views_and_plans(self, frame):
        both = frame.dprisk.compare(
            "income", "mean", eps=1, bounds=(0, 2.7e6), mechanisms=["two_sums", "clipped_sums"]
        ).set_index("mechanism")
        assert both.loc["clipped_sums", "noise95"] < both.loc["two_sums", "noise95"] / 5
        assert "clipped_sums" not in set(frame.dprisk.compare("income", "mean", eps=1, bounds=(0, 2.7e6))["mechanism"])
        risk = frame.dprisk.individual_risk("income", "mean", eps=1, bounds=(0, 2.7e6), mechanism="clipped_sums")
        assert risk.min() >= 1 / (1 + math.exp(-0.5)) - 1e-9 and risk.max() <= 0.7311
        plan = pdrisk.plan("mean(income)", n=4000, eps=1, bounds=(0, 100), clip="private")
        assert plan["mechanism"].tolist() == ["clipped_sums"] and 0.04 < plan["noise95"][0] < 0.2

    def test_warns_where_most_would_be_clipped(self, frame):
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="clips some 11 records"):
            frame.iloc[:12].dprisk.mean("income", **ASKED)

    @pytest.mark.parametrize(
        ("ask", "why"),
        [
            (lambda d: d.var("income", **ASKED), "is for sum and mean"),
            (lambda d: d.median("income", **ASKED), "is for sum and mean"),
            (lambda d: d.proportion("income > 9", eps=1, clip="private"), "is for sum and mean"),
            (lambda d: d.mean("income", **ASKED, mechanism="laplace"), "leave mechanism='laplace' out"),
            (lambda d: d.mean("income", **ASKED, neighbours="replace-one"), "leave neighbours= out"),
            (lambda d: d.mean("income", **{**ASKED, "bounds": "column"}), "declared bounds"),
            (lambda d: d.mean("income", **{**ASKED, "clip": "always"}), 'clip is "private"'),
            (lambda d: d.mean("income", **{**ASKED, "eps": 1e-9}), "too small to find where to clip"),
            (lambda d: d.mean("income", **ASKED).interval(kind="sampling"), "without clip"),
            (
                lambda d: d.corr("income", "g", eps=1, bounds={"income": (0, 9), "g": (0, 1)}, clip="private"),
                "is for sum and mean",
            ),
        ],
    )
    def test_refusals(self, frame, ask, why):
        with pytest.raises(pdrisk.ParameterError, match=why):
            ask(frame.dprisk)

    def test_studies_ask_about_all_values(self):
        from pdrisk.study.measures import measures

        with pytest.raises(pdrisk.ParameterError, match="a study asks about all values"):
            measures((Mean(),), "clipped_sums", (1.0,))
