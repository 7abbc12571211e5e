"""Intervals of medians, quantiles and extremes: exact coverage, exact losses, and every front end."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest

import pdrisk
from gaussian_curves import room
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.exponential.weights import BITS, exp_below
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.risk import posterior
from test_exponential import exact_score, multisets, neighbours, places_of, summarised

F = Fraction
STATISTICS = [Median(), Quantile(0.9), Quantile(0.1), Quantile(1.0), Min(), Max(), Max(bounds_reached=True)]


def mechanism_of(statistic, eps, size):
    return ExponentialInterval(replace(statistic, whole=True), Universe(0.0, size - 1.0), F(eps))


def candidates(joint, row, records):
    """Score and places of each point as an answer to a target, and those of the spare candidate last, by counting."""
    target, places = joint.targets[row], places_of(joint.measure)
    found = [(exact_score(target.score, y, records), places[y]) for y in range(joint.measure.size)]
    if target.spare is not None:
        found.append((max(0, target.spare.slope * len(records) - target.spare.offset), joint.measure.least))
    return found


@lru_cache(maxsize=10_000)
def masses(joint, records):
    """The whole number in proportion to which each tuple of candidates is chosen."""
    weights, found = joint.weights, {}
    rows = [list(enumerate(candidates(joint, row, records))) for row in range(len(joint.targets))]
    for chosen in itertools.product(*rows):
        worst = max(score for _, (score, _) in chosen) // weights.coarse
        mass = weights.table[min(worst, weights.cap)] * math.prod(places for _, (_, places) in chosen)
        found[tuple(at for at, _ in chosen)] = mass
    return found


def log_ratios(joint, one, other):
    """Of the probabilities of each outcome in two worlds."""
    p, q = (masses(joint, tuple(sorted(each))) for each in (one, other))
    shift = math.log(sum(q.values())) - math.log(sum(p.values()))
    return [math.log(p[each]) - math.log(q[each]) + shift for each in p]


def meant(joint, chosen):
    """The points that candidates mean."""
    size = joint.measure.size
    return tuple(y if y < size else target.spare.point for y, target in zip(chosen, joint.targets, strict=True))


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
        joint, never = mechanism.joint, mechanism._targets[1]
        assert (
            never is not None
            and joint.weights.table[never] * 20 * (joint.measure.spread + 1) ** 2 <= joint.weights.table[0]
        )
        for records, value in zip(groups, exact, strict=True):
            mass = masses(joint, records)
            wrong = 0
            for chosen, m in mass.items():
                ends = zip(joint.targets[1:], meant(joint, chosen)[1:], strict=True)
                wrong += m * any(y > value if target.spare.point == 0 else y < value for target, y in ends)
            assert wrong * 20 <= sum(mass.values()), records

    def test_ends_score_so_much_worse_as_ends_than_as_answers(self):
        """What the proof says: of points beyond the exact quantile, for all small data, and many quantiles."""
        for q in ("1/2", "1/10", "1/20", "9/10", "3/4", "1/3", "999/1000", "2/7"):
            mechanism = mechanism_of(Quantile(float(F(q))), 1, 5)
            joint, never = mechanism.joint, mechanism._targets[1]
            t = (never + 1) * joint.weights.coarse
            for records in [*multisets(5, 4), (1,) * 30 + (3,) * 40]:
                exact = np.quantile(records, float(F(q))) if records else None
                answer = [score for score, _ in candidates(joint, 0, records)]
                for row, side in ((1, 1), (2, -1)):
                    for y, (score, _) in enumerate(candidates(joint, row, records)[:5]):
                        if exact is not None and side * y > side * exact + 1e-9:
                            assert score >= answer[y] + t, (q, records, y)

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
    def test_no_neighbour_loses_more_than_eps(self, statistic, eps):
        """By exact whole numbers, of the answer and both ends together: each ratio is at most ratio**span."""
        size, joint = 3, mechanism_of(statistic, eps, 3).joint
        weights = joint.weights
        most, shift = exp_below(weights.unit) ** weights.span, BITS * weights.span
        assert weights.unit * weights.span <= F(eps)
        for records in [*multisets(size, 2), (1,) * 40, (0, 2) * 30]:
            own, total = (found := masses(joint, records)), sum(found.values())
            for other in neighbours(records, size):
                theirs = masses(joint, tuple(sorted(other)))
                whole = sum(theirs.values())
                for outcome, p in own.items():
                    left, right = p * whole, theirs[outcome] * total
                    assert left << shift <= right * most and right << shift <= left * most

    def test_nor_where_records_reach_the_bound(self):
        """Where one record moves the scores of the answer and of the end by different numbers."""
        self.test_no_neighbour_loses_more_than_eps(Max(bounds_reached=True), "1")

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    def test_what_is_told_of_losses_by_brute_force(self, statistic):
        """At most what is told, and not far from it; between two worlds as `Joint.loss` computes it."""
        size, mechanism = 3, mechanism_of(statistic, 2, 3)
        groups, largest = [*multisets(size, 2), (1,) * 12, (0, 2) * 8], 0.0
        told, between = (
            each(summarised(mechanism, groups)) for each in (mechanism.loss, mechanism.loss_between_worlds)
        )
        for records, loss, apart in zip(groups, told, between, strict=True):
            for other in neighbours(records, size):
                ratios = log_ratios(mechanism.joint, records, other)
                exact = max(map(abs, ratios))
                largest = max(largest, exact)
                assert exact - 1e-12 <= loss == 2
                cells = [mechanism._cells(summarised(mechanism, [each])) for each in (records, other)]
                assert mechanism.joint.loss(*cells) == pytest.approx(exact, abs=1e-9)
            lacking = {records[:at] + records[at + 1 :] for at in range(len(records))}
            worlds = [max(map(abs, log_ratios(mechanism.joint, a, b))) for a in lacking for b in lacking]
            assert max(worlds, default=0) <= apart + 1e-12
        assert largest > 1

    @pytest.mark.parametrize("statistic", [Median(), Max()], ids=str)
    def test_success_is_never_exceeded(self, statistic):
        """By the best attacker, who sees the answer and both ends."""
        mechanism, reached = mechanism_of(statistic, 3, 3), 0.0
        m = mechanism.mu
        for records in multisets(3, 2):
            own = masses(mechanism.joint, records)
            for other in neighbours(records, 3):
                theirs = masses(mechanism.joint, tuple(sorted(other)))
                law = tuple(
                    np.array([float(F(each[chosen], sum(each.values()))) for chosen in own]) for each in (own, theirs)
                )
                assert room(law, m) > -1e-9
                apart = np.abs(np.subtract(*law)).sum() / 2
                reached = max(reached, (1 + apart) / 2)
        assert 0.55 < reached <= mechanism.success == pytest.approx(posterior(1.5))


@pytest.mark.parametrize("statistic", [Median(), Quantile(0.9), Max(), Min(bounds_reached=True)], ids=str)
def test_frequencies(statistic):
    """Of many groups at once, against exact probabilities, and in logarithms: the spare one counts as what it means."""
    size, draws = 5, 3000
    mechanism = mechanism_of(statistic, F(6), size)
    joint, data = mechanism.joint, [(), (4,), (0, 3, 3, 4), (2,) * 30]
    rng = np.random.default_rng(3)
    drawn = mechanism.draw(summarised(mechanism, data * draws), bits=seeded(rng))
    for at, records in enumerate(data):
        mass, expected = masses(joint, records), Counter()
        for chosen, m in mass.items():
            expected[meant(joint, chosen)] += m
        own = Counter(zip(*drawn[:, at :: len(data)].tolist(), strict=True))
        logs = joint.log_shares(summarised(mechanism, [records]).whole_cells, np.array([*expected]).T)[0]
        for (points, m), log in zip(expected.items(), logs, strict=True):
            p = m / sum(mass.values())
            assert abs(own[points] - draws * p) <= 6.5 * math.sqrt(draws * p * (1 - p)) + 1e-9
            assert log == pytest.approx(math.log(p), abs=1e-9)


def test_masses_of_the_answer_and_of_ends():
    """What errors on given data are computed from."""
    mechanism = mechanism_of(Quantile(0.9), 2, 5)
    for records in [*multisets(5, 2), (0, 2) * 30]:
        cells, mass = summarised(mechanism, [records]).whole_cells, masses(mechanism.joint, records)
        for row in range(3):
            items, found, spare = mechanism.joint.masses(cells, row)
            exact = Counter()
            for chosen, m in mass.items():
                exact[chosen[row]] += m
            whole = found.sum() + spare[0]
            assert spare[0] / whole == pytest.approx(exact.get(5, 0) / sum(mass.values()), abs=1e-12)
            for start, width, share in zip(items.start, items.width, found, strict=True):
                wanted = sum(exact[y] for y in range(start, start + width)) / sum(mass.values())
                assert share / whole == pytest.approx(wanted, abs=1e-12)


N = 4000
FRAME = pd.DataFrame({"x": np.random.default_rng(8).integers(1, 676, N), "g": np.arange(N) % 2})
ASKED = {"bounds": (1, 675), "interval": True}


class TestAnswers:
    def test_release(self):
        release = FRAME.dprisk.median("x", eps=3, step=1, **ASKED)
        assert release.mechanism == "exponential_interval" and release.eps == 3
        assert 1 <= release.low <= release.value <= release.high <= 675
        assert release.noise95 == max(release.high - release.value, release.value - release.low)
        ranks = [FRAME.dprisk.median("x", eps=eps, bounds=(1, 675), step=1).rank95 for eps in (3, 1)]
        assert ranks[0] < release.rank95 < ranks[1]  # as if a little less than half of eps chose it
        assert release.interval(0.5) == (release.low, release.high) and release.interval(0.99) == (1, 675)
        assert "95 % noise interval" in repr(release) and "95 % noise in ranks" in repr(release)
        assert "95 % interval" in release.explain("analyst")
        assert "the ends of its interval together" in " ".join(release.explain("publication").split())
        for audience in ("participant", "analyst", "curator", "publication"):
            assert "nan" not in release.explain(audience)
        assert release.risk.success == pytest.approx(posterior(1.5))  # of one choice at eps 3
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
