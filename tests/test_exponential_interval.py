"""Intervals of medians, quantiles and extremes: exact coverage, exact losses, and every front end."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from gaussian_curves import room
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk.engines.numpy.grouped import summary_of_groups
from test_exponential import exact_score, multisets, neighbours, places_of, summarised

F = Fraction
STATISTICS = [Median(), Quantile(0.9), Quantile(0.1), Quantile(1.0), Min(), Max(), Max(bounds_reached=True)]


def mechanism_of(statistic, eps, size):
    return ExponentialInterval(replace(statistic, whole=True), Universe(0.0, size - 1.0), F(eps))


def masses(choice, records):
    """The whole number in proportion to which each point is chosen, and the spare candidate last."""
    weights = choice.weights
    scores = (exact_score(choice.score, y, records) for y in range(choice.measure.size))
    spare = [] if choice.spare is None else [weights.table[choice.spare.index] * choice.measure.least]
    shares = (weights.table[min(h // weights.coarse, weights.cap)] for h in scores)
    return [share * places for share, places in zip(shares, places_of(choice.measure), strict=True)] + spare


def log_ratios(choice, one, other):
    """Of the probabilities of each outcome in two worlds."""
    p, q = masses(choice, one), masses(choice, other)
    shift = math.log(sum(q)) - math.log(sum(p))
    return [math.log(a) - math.log(b) + shift for a, b in zip(p, q, strict=True)]


def seeded(rng):
    """Random bits that are the same in every run."""
    return lambda size: rng.integers(0, 2**64, size, dtype=np.uint64)


class TestCoverage:
    """Each end lies on its side of the exact answer with the probability that it claims, in any data."""

    @pytest.mark.whole
    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    @pytest.mark.parametrize("eps", ["1/10", "1", "20"])
    def test_by_exact_probabilities(self, statistic, eps):
        size, mechanism = 4, mechanism_of(statistic, eps, 4)
        heaps = [tuple(sorted(k * each)) for each in multisets(4, 2) for k in (9, 60, 701)]
        groups = multisets(size, 4) + heaps
        codes = np.repeat(np.arange(len(groups)), [len(each) for each in groups]).astype(np.int32)
        values = np.array([x for each in groups for x in each], dtype=float)
        summary = summary_of_groups(values, codes, len(groups), mechanism.universe, mechanism.needs(statistic))
        exact = mechanism.statistic.value(summary, mechanism.universe)
        ends = mechanism._choices[1:]
        assert mechanism._ends.is_known
        for records, value in zip(groups, exact, strict=True):
            for choice in ends:
                mass = masses(choice, records)
                side = 1 if choice.spare.point == 0 else -1  # the lower end, or the upper
                wrong = [m for y, m in enumerate(mass[:-1]) if side * y > side * value]
                often = 40 if len(ends) == 2 else 20
                assert sum(wrong) * often <= sum(mass)
                assert all(m * often * size <= mass[-1] for m in wrong), (records, choice)  # what the proof says

    def test_of_real_draws(self):
        """At the level that is claimed, of records between the points too."""
        draws, rng = 500, np.random.default_rng(6)
        for n, statistic in itertools.product((0, 3, 200), (Median(), Quantile(0.9), Max())):
            mechanism = ExponentialInterval(statistic, Universe(0.0, 1.0), F(2))
            x = np.tile(rng.random(n) ** 3, draws)
            codes = np.repeat(np.arange(draws, dtype=np.int32), n)
            summary = summary_of_groups(x, codes, draws, mechanism.universe, mechanism.needs(statistic))
            exact, drawn = statistic.value(summary, mechanism.universe), mechanism.draw(summary, bits=seeded(rng))
            low, high = mechanism.interval(drawn, 0.95)
            value = mechanism.value(drawn)
            assert ((low <= value) & (value <= high) & (low >= 0) & (high <= 1)).all()
            assert ((low <= exact) & (exact <= high)).mean() > 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / draws)
            assert [end.tolist() for end in mechanism.interval(drawn, 0.96)] == [[0.0] * draws, [1.0] * draws]

    def test_narrows_with_records(self):
        x = np.random.default_rng(1).random(30_000)
        mechanism = ExponentialInterval(Median(), Universe(0.0, 1.0), F(1))
        bits = seeded(np.random.default_rng(2))
        low, high = mechanism.interval(mechanism.draw(summarised(mechanism, [x] * 20), bits=bits), 0.95)
        assert (high - low < 0.02).all()

    def test_is_the_bounds_where_weights_are_capped(self):
        mechanism = mechanism_of(Median(), F(1, 10**9), 5)
        low, high = mechanism.interval(mechanism.draw(summarised(mechanism, [(2,) * 100])), 0.95)
        assert (low.tolist(), high.tolist()) == ([0.0], [4.0])


class TestPrivacy:
    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    @pytest.mark.parametrize("eps", ["1", "6"])
    def test_losses_of_all_choices_together_by_brute_force(self, statistic, eps):
        """At most eps; at most what is told of the group, and of each record; not far from it."""
        size, mechanism = 4, mechanism_of(statistic, eps, 4)
        groups = [*multisets(size, 3), (1,) * 40, (0, 2) * 30]
        summary = summarised(mechanism, groups)
        told, between = mechanism.loss(summary), mechanism.loss_between_worlds(summary)
        for records, loss, apart in zip(groups, told, between, strict=True):
            exact = {other: self.loss(mechanism, records, other) for other in neighbours(records, size)}
            assert max(exact.values()) - 1e-12 <= loss <= float(eps)
            alone = mechanism.loss_of_records(np.array(records, dtype=float), summarised(mechanism, [records]))
            lacking = [records[:at] + records[at + 1 :] for at in range(len(records))]
            for other, own in zip(lacking, alone, strict=True):
                assert exact[other] - 1e-12 <= own <= loss + 1e-12
            worlds = {tuple(sorted(each)) for each in lacking}
            assert max((self.loss(mechanism, a, b) for a in worlds for b in worlds), default=0) <= apart + 1e-12
        assert told.max() > float(eps) / 4

    def test_one_choice_with_a_spare_candidate_exactly(self):
        """Its own losses are computed, not bounded."""
        mechanism = mechanism_of(Quantile(0.9), F(2), 5)
        groups = multisets(5, 3)
        cells = summarised(mechanism, groups).whole_cells
        for choice in mechanism._choices[1:]:
            losses = choice.losses(cells)
            removed = np.maximum.reduceat(choice.removed(cells), losses.items.first[:-1])
            for records, found in zip(groups, np.maximum(losses.added(), removed), strict=True):
                each = [log_ratios(choice, records, other) for other in neighbours(records, 5)]
                exact = max(abs(ratio) for ratios in each for ratio in ratios)
                assert exact - 1e-13 <= found <= exact * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize("statistic", [Median(), Max()], ids=str)
    def test_success_is_never_exceeded(self, statistic):
        """By the best attacker, who sees the answer and both ends."""
        mechanism, reached = mechanism_of(statistic, 3, 3), 0.0
        m = mechanism.mu
        for records in multisets(3, 2):
            own = self.joint(mechanism, records)
            for other in neighbours(records, 3):
                law = own, self.joint(mechanism, other)
                assert room(law, m) > -1e-9
                apart = np.abs(np.subtract(*law)).sum() / 2
                reached = max(reached, (1 + apart) / 2)
        # Each choice has m = 2 z(1/(1 + e^(eps/6))), or eps/4 for one end alone: squares of m add up.
        choices = len(mechanism._choices)
        m = -2 * math.sqrt(choices) * ndtri(1 / (1 + math.exp(1.5 / choices)))
        assert 0.55 < reached <= mechanism.success == pytest.approx(ndtr(m / 2))

    def loss(self, mechanism, one, other):
        ratios = [log_ratios(choice, one, other) for choice in mechanism._choices]
        return max(sum(map(max, ratios)), -sum(map(min, ratios)))

    def joint(self, mechanism, records):
        joint = np.ones(1)
        for choice in mechanism._choices:
            mass = masses(choice, records)
            joint = np.multiply.outer(joint, np.array([m / sum(mass) for m in mass])).ravel()
        return joint


def test_frequencies_with_a_spare_candidate():
    """Of many groups at once, against exact probabilities: the spare one counts as the point that it means."""
    size, draws = 6, 3000
    mechanism = mechanism_of(Median(), F(6), size)
    data = [(), (4,), (0, 3, 3, 5), (2,) * 30]
    rng = np.random.default_rng(3)
    drawn = mechanism.draw(summarised(mechanism, data * draws), bits=seeded(rng))
    for choice, points in zip(mechanism._choices, drawn, strict=True):
        for at, records in enumerate(data):
            mass = masses(choice, records)
            own = mass[:size]
            if choice.spare is not None:
                own[choice.spare.point] += mass[-1]
            found = np.bincount(points[at :: len(data)], minlength=size)
            for count, m in zip(found, own, strict=True):
                p = m / sum(mass)
                assert abs(count - draws * p) <= 6.5 * math.sqrt(draws * p * (1 - p)) + 1e-9


N = 4000
FRAME = pd.DataFrame({"x": np.random.default_rng(8).integers(1, 676, N), "g": np.arange(N) % 2})
ASKED = {"bounds": (1, 675), "interval": True}


class TestAnswers:
    def test_release(self):
        release = FRAME.dprisk.median("x", eps=3, step=1, **ASKED)
        assert release.mechanism == "exponential_interval" and release.eps == 3
        assert 1 <= release.low <= release.value <= release.high <= 675
        assert release.noise95 == max(release.high - release.value, release.value - release.low)
        assert release.rank95 == FRAME.dprisk.median("x", eps=1, bounds=(1, 675), step=1).rank95
        assert release.interval(0.5) == (release.low, release.high) and release.interval(0.99) == (1, 675)
        assert "95 % noise interval" in repr(release) and "95 % noise in ranks" in repr(release)
        assert "95 % interval" in release.explain("analyst")
        assert "the rest chooses the ends" in " ".join(release.explain("publication").split())
        for audience in ("participant", "analyst", "curator", "publication"):
            assert "nan" not in release.explain(audience)
        assert release.risk.success == pytest.approx(0.705507, abs=1e-6)  # Phi(sqrt(3) m / 2), m of one choice at eps 1
        assert 0.5 < release.curator.loss <= 3

    def test_others_have_it_for_nothing(self):
        assert FRAME.dprisk.mean("x", eps=9, **ASKED).mechanism == "two_sums"
        assert FRAME.dprisk.median("x", eps=400, mechanism="laplace", **ASKED).mechanism == "laplace"
        assert FRAME.dprisk.count(eps=1, interval=True).mechanism == "geometric"
        assert FRAME.dprisk.hist("x", bins=[0, 300, 700], eps=1, interval=True)["value"].sum() > 3000

    def test_tables_series_datasets_and_sql(self):
        table = FRAME.dprisk.quantile("x", q=0.25, eps=3, by="g", keys=[0, 1], **ASKED)
        assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
        series = FRAME["x"].dprisk.agg(["mean", "median"], eps=6, **ASKED)
        both = FRAME.dprisk.agg({"x": ["mean", "median"]}, eps=6, **ASKED)
        for table in (series, both):
            assert table[["low", "high"]].notna().all(axis=None)
            assert "nan" not in pdrisk.explain(table, "analyst")
        ends = ["m_low", "m_high", "t_low", "t_high"]
        options = {"eps": 6, "bounds": (1, 675), "interval": True, "risk_columns": True}
        query = "SELECT COUNT(*) AS n, MEDIAN(x) AS m, MAX(x) AS t FROM {}"
        asked = pdrisk.sql(query.format("t"), t=FRAME, **options)
        dataset = pdrisk.Dataset(FRAME).sql(query.format("data"), **options)
        for table in (asked, dataset):
            assert table[ends].notna().all(axis=None) and table["t_high"][0] == 675
        planned = pdrisk.plan(["median(x)", "count()"], n=N, eps=2, bounds=(1, 675), interval=True)
        assert planned["mechanism"].tolist() == ["exponential_interval", "geometric"]

    def test_the_end_that_is_a_bound_is_not_warned_of(self):
        release = FRAME.dprisk.max("x", eps=5, bounds=(1, 5000), interval=True)  # warnings are errors
        assert release.low <= release.value and release.high == 5000

    def test_is_refused_unless_true_or_false(self):
        for ask in (
            lambda: FRAME.dprisk.median("x", eps=1, bounds=(1, 675), interval=0.95),
            lambda: FRAME.dprisk.proportion("x > 5", eps=1, interval="yes"),
            lambda: pdrisk.sql("SELECT COUNT(*) FROM t", t=FRAME, eps=1, interval=1),
        ):
            with pytest.raises(pdrisk.ColumnTypeError, match="interval is True or False"):
                ask()

    def test_withheld_groups_and_rounded_answers(self, tmp_path):
        policy = {"least_group": {"size": 30, "eps": 5}, "round_to": {"median": 10}}
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=100, policy=policy)
        few = FRAME.dprisk.median("x", eps=9, by="g", keys=[0, 7], ledger=ledger, step=1, **ASKED)
        assert few[["value", "low", "high"]].isna().all(axis=1).tolist() == [False, True]
        assert {few.loc[0, name] % 10 for name in ("value", "low", "high")} <= {0, 1, 5}  # multiples, and the bounds

    def test_ledgers_remember_it_apart(self, tmp_path):
        pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=5)
        data = pdrisk.Dataset(FRAME, name="d", ledger=tmp_path / "l.db")
        without = [data.median("x", eps=1, bounds=(1, 675)) for _ in range(2)]
        answers = [data.median("x", eps=1, **ASKED) for _ in range(2)]
        assert without[0].mechanism == "exponential" and math.isnan(without[1].low)
        assert len({(each.value, each.low, each.high) for each in answers}) == 1 and answers[0].low <= answers[0].high
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d")
        assert ledger.remaining().spent == 2
        assert list(ledger.history()["mechanism"])[-1] == "exponential_interval"
