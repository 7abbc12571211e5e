"""Several quantiles from one release: privacy by every outcome on tiny lattices, ranks, order and front ends."""

import itertools
import math
import tracemalloc
from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from gaussian_curves import fractions, room
from pdrisk._core.cells import Cells
from pdrisk._core.order import Median, Quantile
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import approximate_quantiles, calibrated
from pdrisk._mechanisms.approximate_quantiles import _add_shares, _reach_of_exponentials
from pdrisk._mechanisms.exponential import measure, parts
from pdrisk._mechanisms.exponential.halving import tree_of
from pdrisk._mechanisms.exponential.weights import Score, Weights
from sql_people import lines

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"bounds": (0, 500)}
DECILES = [each / 10 for each in range(1, 10)]


def mechanism_of(qs, lo, hi, eps, whole=True, q=None):
    together = tuple(Quantile(each, whole) for each in qs)
    return calibrated(
        "approximate_quantiles", Quantile(qs[0] if q is None else q, whole), Universe(lo, hi), Fraction(eps), together
    )


def summary_of(*groups):
    """Groups of records that are whole numbers from 0, as their own points."""
    counted = [sorted(Counter(group).items()) for group in groups]
    found = [(at, *pair) for at, pairs in enumerate(counted) for pair in pairs]
    group, point, count = (
        (np.array(each, dtype=np.int64) for each in zip(*found, strict=True))
        if found
        else ([np.empty(0, dtype=np.int64)] * 3)
    )
    cells = Cells.of_groups(group, point, count, len(groups))
    return Summary(np.array([len(each) for each in groups]), cells=cells, whole_cells=cells)


@pytest.fixture
def coarse(monkeypatch):
    """Two places to a point, so that all outcomes can be listed."""
    for module in (parts, approximate_quantiles):
        monkeypatch.setattr(module, "PLACE_BITS", 1)
    monkeypatch.setattr(measure, "FINE", -2)
    measure._segments.cache_clear()
    yield
    measure._segments.cache_clear()


class Outcomes:
    """Every outcome of a draw with its exact probability: whatever is chosen at random is tried in turn."""

    def __init__(self, monkeypatch):
        self.script, self.at, self.chance = [], 0, Fraction(1)
        monkeypatch.setattr(parts, "chosen_points", self.chosen)
        monkeypatch.setattr(parts, "uniform_below", self.below)

    def one_of(self, options):
        if self.at == len(self.script):
            self.script.append([options, 0])
        options, number = self.script[self.at]
        self.at += 1
        value, chance = options[number]
        self.chance *= chance
        return value

    def chosen(self, items, index, weights, base, bits):
        table = [
            (point, weights.table[at] * int(base.before(np.array(point + 1)) - base.before(np.array(point))))
            for start, width, at in zip(items.start.tolist(), items.width.tolist(), index.tolist(), strict=True)
            for point in range(start, start + width)
        ]
        total = sum(weight for _, weight in table)
        return np.array([self.one_of([(place, Fraction(weight, total)) for place, weight in table])])

    def below(self, sizes, bits):
        every = list(itertools.product(*map(range, sizes.tolist())))
        return np.array(self.one_of([(each, Fraction(1, len(every))) for each in every]), dtype=np.int64)

    def each(self, draw):
        """Every outcome of a function that draws, with its probability."""
        self.script = []
        while True:
            self.at, self.chance = 0, Fraction(1)
            outcome = draw()
            yield self.chance, outcome
            while self.script and self.script[-1][1] + 1 == len(self.script[-1][0]):
                self.script.pop()
            if not self.script:
                return
            self.script[-1][1] += 1

    def of(self, mechanism, records):
        """Probabilities of all points that may be answered."""
        found = Counter()
        for chance, drawn in self.each(lambda: mechanism.draw(summary_of(records))):
            found[tuple(drawn[:, 0].tolist())] += chance
        return found


def largest_loss(monkeypatch, qs, points, most, eps):
    """Over all pairs of neighbours with at most so many records."""
    outcomes, mechanism, worst = Outcomes(monkeypatch), mechanism_of(qs, 0, points - 1, eps), 0.0
    known = {}
    for n in range(most + 1):
        for records in itertools.combinations_with_replacement(range(points), n):
            known[records] = outcomes.of(mechanism, records)
            assert sum(known[records].values()) == 1
            assert all(list(each) == sorted(each) for each in known[records])
            for gone in range(n):
                other = known[records[:gone] + records[gone + 1 :]]
                assert known[records].keys() == other.keys()
                worst = max(worst, *(abs(math.log(chance / other[each])) for each, chance in known[records].items()))
                assert room(fractions((known[records], other)), mechanism.mu) > -1e-9
    return worst


class TestPrivacy:
    """No outcome is more than exp(eps) times as likely with one record more; it comes close to that."""

    @pytest.mark.parametrize(("qs", "eps"), [((0.2, 0.5, 0.8), 2), ((0.3, 0.4), 6)])
    def test_every_outcome(self, qs, eps, coarse, monkeypatch):
        assert 0.3 * eps < largest_loss(monkeypatch, qs, 3, 2, eps) <= eps * (1 + 1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("qs", "points", "most", "eps"),
        [((0.2, 0.5, 0.8), 3, 3, 6), ((0.5, 0.9), 2, 4, 6), ((0.2, 0.4, 0.6, 0.8), 2, 2, 6), ((0.1, 0.5), 4, 3, 1)],
    )
    def test_every_outcome_of_more_records(self, qs, points, most, eps, coarse, monkeypatch):
        assert largest_loss(monkeypatch, qs, points, most, eps) <= eps * (1 + 1e-12)

    @pytest.mark.whole
    @pytest.mark.parametrize("many", [100, 1], ids=["at once", "by blocks"])
    @pytest.mark.parametrize("is_near", [True, False])
    @pytest.mark.parametrize(("low", "end", "place"), [(0, 12, 5), (0, 12, 4), (5, 12, 7), (2, 7, 6), (5, 7, 6)])
    def test_each_record_goes_to_a_side_by_itself(self, low, end, place, is_near, many, monkeypatch):
        """By its own place, uniform among those its point has left here: no rank and no other record decides."""
        monkeypatch.setattr(parts, "PLACE_BITS", 2)
        monkeypatch.setattr(parts, "BLOCKS", 2)
        monkeypatch.setattr(parts, "MANY", many)
        monkeypatch.setattr(parts, "_chosen", lambda *_: np.array([place]))
        monkeypatch.setattr(parts._Spans, "near", lambda spans, *_: np.full(len(spans.start), is_near))
        outcomes, score = Outcomes(monkeypatch), Score(1, 2)
        start, stop = max(low, 4), min(end, 8)  # the places of the second of three points
        to_left = Fraction(place - start, stop - start)
        for before, here, after in ((0, 3, 0), (1, 2, 0), (0, 1, 2)):
            counts = np.array([before * (low < 4), here, after * (end > 8)])
            some = np.flatnonzero(counts)
            group, ends = np.zeros(len(some), dtype=np.int64), (np.array([low]), np.array([end]))
            part = parts.Part(some, counts[some], group, *ends, measure.Measure(3))
            found = Counter()
            for chance, (_, left, right) in outcomes.each(
                lambda part=part: part.chosen_places(score, Weights.of(score, 12, Fraction(60)), None)
            ):
                rest = dict(zip(right.point.tolist(), right.count.tolist(), strict=True)).get(1, 0)
                own = dict(zip(left.point.tolist(), left.count.tolist(), strict=True)).get(1, 0)
                assert own + rest == here and left.count.sum() + right.count.sum() == counts.sum()
                found[own] += chance
            for k in range(here + 1):
                assert found[k] == math.comb(here, k) * to_left**k * (1 - to_left) ** (here - k)

    def test_draws_are_as_likely_as_listed(self, coarse, monkeypatch):
        mechanism, records, groups = mechanism_of((0.3, 0.5, 0.8), 0, 2, 3), [0, 1, 1], 30_000
        drawn = mechanism.draw(summary_of(*[records] * groups))
        seen = Counter(map(tuple, drawn.T.tolist()))
        expected = Outcomes(monkeypatch).of(mechanism, records)
        assert seen.keys() <= expected.keys()
        for each, chance in expected.items():
            assert abs(seen[each] - groups * chance) <= 8 * math.sqrt(groups * chance * (1 - chance)) + 8

    @pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 8, 9, 100])
    def test_no_path_costs_more_than_eps(self, m):
        tree = tree_of(tuple(Fraction(each, m + 1) for each in range(1, m + 1)), Fraction(1))
        paths = list(tree.paths())
        assert sorted(path[-1].row for path in paths) == list(range(m))
        assert max(sum(node.eps for node in path) for path in paths) == 1
        assert max(map(len, paths)) == int(math.log2(m)) + 1
        assert all(0 < node.share < 1 for path in paths for node in path)

    def test_what_it_tells(self):
        mechanism = mechanism_of((0.25, 0.75), 0, 9, 2)
        summary = summary_of([3, 3, 4], [5, 5], [])
        assert mechanism.loss(summary).tolist() == [2, 2, 2]
        assert mechanism.loss_of_records(np.array([3.0, 4.0]), summary).tolist() == [2, 2]
        assert mechanism.loss_between_worlds(summary).tolist() == [4, 0, 0]
        assert mechanism.success == pytest.approx(0.670451, abs=1e-6)  # Phi(sqrt(2) m / 2), m of one choice at eps 1
        places, unit = mechanism.worlds(np.array([3.0, 4.0]), summary)
        assert abs(places[1] - places[0]) / unit >= 4
        assert mechanism.event == {"mechanism": "approximate_quantiles", "eps": "2"}


class TestAnswers:
    """Points near the ranks asked for, which rise with q."""

    @pytest.mark.parametrize("whole", [False, True])
    def test_of_much_eps_they_are_exact(self, whole):
        records = list(range(0, 2000, 2))
        mechanism = mechanism_of(DECILES, 0, 1998, 10**5, whole)
        found = np.array([mechanism.points.value(row) for row in mechanism.draw(self.cells(mechanism, records))])[:, 0]
        assert np.abs(found - np.quantile(records, DECILES)).max() <= 2

    @staticmethod
    def cells(mechanism, *groups):
        places = [mechanism.points.index(np.array(each, dtype=float)).astype(int).tolist() for each in groups]
        return summary_of(*places)

    def test_they_rise_in_every_group(self):
        groups = [[], [7], [3] * 50, list(range(10)), [0] * 5 + [9] * 5]
        mechanism = mechanism_of(DECILES, 0, 9, 0.5)
        for _ in range(20):
            drawn = mechanism.draw(summary_of(*groups))
            assert (np.diff(drawn, axis=0) >= 0).all() and drawn.min() >= 0 and drawn.max() <= 9

    def test_records_at_one_point_are_parted_at_the_rank(self):
        """Three of ten have the first value, six the second: quantiles on either side of the median are found."""
        records = [10] * 300 + [20] * 600 + [30] * 100
        drawn = mechanism_of((0.25, 0.5, 0.85, 0.95), 0, 40, 20).draw(summary_of(*[records] * 50))
        assert (drawn == np.array([[10], [20], [20], [30]])).all()

    def test_they_are_within_rank95(self):
        n, groups = 400, 200
        values = np.arange(n) * 3
        drawn = mechanism_of(DECILES, 0, 3 * n, 1).draw(summary_of(*[values.tolist()] * groups))
        ranks = np.searchsorted(values, drawn)
        for row, q in enumerate(DECILES):
            mechanism = mechanism_of(DECILES, 0, 3 * n, 1, q=q)
            off = np.abs(ranks[row] - q * n)
            assert (off <= mechanism.rank95).mean() >= 0.95
            noise = mechanism_of(DECILES, 0, 3 * n, 1, q=q).noise95
            assert mechanism.rank95 < math.inf and callable(noise)

    def test_what_choices_above_are_off_by_counts_by_its_share(self):
        """By hand: .1 is chosen between 0 and .2, that between 0 and .3, and that between 0 and .5."""
        tree = tree_of(tuple(Fraction(i, 10) for i in range(1, 10)), Fraction(1))
        shares = np.zeros((9, 9))
        _add_shares(tree, np.zeros(9), np.zeros(9), shares)
        assert shares[0] == pytest.approx([1, 1 / 2, 1 / 3, 0, 1 / 5, 0, 0, 0, 0])
        assert shares[3] == pytest.approx([0, 0, 1 / 2, 1, 0.5 * 0.6 + 0.5, 0, 0, 0, 0])
        assert shares[4].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]

    def test_shares_are_those_of_the_recursion(self):
        """Each cut is at its share of the part between the cuts before it, and then off by some records of its own."""
        own, n = np.random.default_rng(2).normal(0, 5, 7), 1000
        quantiles = tuple(Fraction(i, 20) for i in (1, 2, 5, 9, 10, 16, 19))
        tree, shares, cuts = tree_of(quantiles, Fraction(1)), np.zeros((7, 7)), np.zeros(7)

        def cut(node, low, high):
            if node is not None:
                cuts[node.row] = low + float(node.share) * (high - low) + own[node.row]
                cut(node.left, low, cuts[node.row])
                cut(node.right, cuts[node.row], high)

        cut(tree, 0, n)
        _add_shares(tree, np.zeros(7), np.zeros(7), shares)
        assert cuts - n * np.array([float(q) for q in quantiles]) == pytest.approx(shares @ own)

    @pytest.mark.parametrize(
        ("scales", "unsure", "exact"),
        # ln 20; (1 + t) exp(-t) = .05, of the gamma distribution; 2 exp(-t/2) - exp(-t) = .01; .95 of a gamma of 4
        [([1.0], 0.05, 2.99573), ([1.0, 1.0], 0.05, 4.74386), ([2.0, 1.0], 0.01, 10.5916), ([3.0] * 4, 0.05, 23.2610)],
    )
    def test_sums_of_exponential_variables(self, scales, unsure, exact):
        found = _reach_of_exponentials(np.array(scales), unsure)
        assert exact <= found < 1.02 * exact

    def test_ranks_of_deciles(self):
        """A quarter of eps for each: (ln of places + ln 20) / (1/4) records for the median, and less for the first."""
        median, first = (mechanism_of(DECILES, 0, 2 * 10**5 - 1, 1, q=q).rank95 for q in (0.5, 0.1))
        places = mechanism_of(DECILES, 0, 2 * 10**5 - 1, 1).measure.total << parts.PLACE_BITS
        assert places < 2**50
        assert median == pytest.approx(4 * (math.log(places) + math.log(20)), abs=2)
        assert median < first < 250
        assert mechanism_of(DECILES, 0, 9, 1e-9).rank95 == math.inf

    def test_many_records_at_one_point(self):
        """Two million with the first of two values, half as many with the second: some 30 MB, whatever their number."""
        cells = Cells.of_groups(np.zeros(2, dtype=np.int64), np.array([3, 8]), np.array([2 * 10**6, 10**6]), 1)
        tracemalloc.start()
        drawn = mechanism_of((0.25, 0.5, 0.9), 0, 9, 1).draw(
            Summary(np.array([3 * 10**6]), whole_cells=cells, cells=cells)
        )
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()
        assert drawn[:, 0].tolist() == [3, 3, 8]

    @pytest.mark.slow
    def test_they_are_nearer_than_with_a_share_of_eps_each(self):
        """Nine deciles at eps 1: a mean error of some 5.6 ranks, where one ninth of eps each has 13."""
        n, groups = 2000, 300
        summary = summary_of(*[list(range(n))] * groups)
        together = mechanism_of(DECILES, 0, n - 1, 1).draw(summary)
        alone = [
            calibrated("exponential", Quantile(q, True), Universe(0, n - 1), Fraction(1, 9)).draw(summary)
            for q in DECILES
        ]
        off = [np.abs(np.array(each) - n * np.array(DECILES)[:, np.newaxis]).mean() for each in (together, alone)]
        assert 2 * off[0] < off[1] and off[0] < 4

    def test_the_noise_of_a_plan_spans_its_ranks(self):
        mechanism = mechanism_of((0.25, 0.5), 0, 999, 1, q=0.5)
        summary = summary_of(range(1000), [5] * 9, [])
        exact = {
            0.25: np.zeros((4, 3)),
            0.5: np.array([[498, 5, 0], [499, 5, 0], [500, 5, 0], [501, 5, 0]], dtype=float),
        }
        found = mechanism.noise95(Summary(summary.n, windows=exact, whole_cells=summary.whole_cells))
        assert found[0] == pytest.approx(mechanism.rank95, abs=4)
        assert found[1] >= 994 - 5 and found[2] >= 499


class TestFrontEnds:
    """Three or more quantiles of one column share a release, where fewer do not gain by it."""

    FRAME = pd.DataFrame({"x": np.arange(2000.0) % 500, "g": np.arange(2000) % 4})

    def test_lists_of_quantiles(self):
        table = self.FRAME.dprisk.quantile("x", q=[0.9, 0.25, 0.5], eps=8, **BOUNDS)
        assert (table["eps"] == 8).all() and table.index.tolist() == [0.9, 0.25, 0.5]
        assert {line.mechanism for line in lines(table)} == {"approximate_quantiles"}
        np.testing.assert_allclose(table["value"], [450, 125, 250], atol=40)
        grouped = self.FRAME.dprisk.quantile("x", q=[0.25, 0.4, 0.5], eps=8, by="g", keys=[0, 1, 7], **BOUNDS)
        assert grouped["value"].unstack("q").diff(axis=1).iloc[:, 1:].ge(0).all(axis=None)

    def test_agg_and_the_extremes(self):
        request = {"x": ["median", ("quantile", {"q": 0.5}), ("quantile", {"q": 0}), ("quantile", {"q": 0.9}), "max"]}
        table = self.FRAME.dprisk.agg(request, eps=3, **BOUNDS, curator=True)
        assert table["release"].tolist() == [1, 1, 2, 1, 3] and (table["eps"] == 1).all()
        assert table["value"].iloc[0] == table["value"].iloc[1] <= table["value"].iloc[3]
        assert (table["two_worlds"].iloc[[0, 1, 3]] == table["worst_case"].iloc[0]).all()
        alone = self.FRAME.dprisk.agg({"x": ["median", "mean", ("quantile", {"q": 0.9})]}, eps=3, **BOUNDS)
        assert [line.mechanism for line in lines(alone)] == ["exponential", "two_sums", "exponential"]
        assert (alone["eps"] == 1).all()

    def test_by_name(self):
        asked = {"eps": 1, **BOUNDS}
        table = self.FRAME.dprisk.quantile("x", q=[0.1, 0.9], mechanism="exponential", **asked)
        assert (table["eps"] == 0.5).all()
        table = self.FRAME.dprisk.quantile("x", q=[0.1], mechanism="approximate_quantiles", **asked)
        assert lines(table)[0].mechanism == "approximate_quantiles"
        for q in (0.5, 0):
            with pytest.raises(pdrisk.ParameterError, match="'approximate_quantiles' cannot answer"):
                self.FRAME.dprisk.quantile("x", q=q, mechanism="approximate_quantiles", **asked)

    def test_of_whole_numbers_in_sql_too(self):
        con = duckdb.connect()
        con.register("people", self.FRAME)
        own = "dp_quantile(x, .9, eps := 1) AS own"
        items = f"g, QUANTILE_CONT(x, .25) AS low, MEDIAN(x) AS mid, {own}, QUANTILE_CONT(x, .75) AS high"
        query = f"SELECT {items} FROM people GROUP BY g"
        answer = pdrisk.sql(query, con, eps=5, bounds={"x": (0, 500)}, keys=range(4), risk_columns=True)
        assert [line.mechanism for line in lines(answer)] == [
            *["approximate_quantiles"] * 2,
            "exponential",
            "approximate_quantiles",
        ]
        assert (answer["low_eps"] == 4).all() and (answer["mid"].between(answer["low"], answer["high"])).all()
        series = self.FRAME["x"].dprisk.quantile([0.25, 0.5, 0.75], eps=5, step=1, **BOUNDS)
        assert series["value"].dtype.kind == "i"

    def test_a_ledger_pays_once_and_remembers(self, book):
        ledger = book(eps=10)
        data = pdrisk.Dataset(self.FRAME, ledger=ledger)
        first = data.quantile("x", q=DECILES, eps=1, by="g", keys=[0, 1, 2, 3], **BOUNDS)
        again = data.quantile("x", q=DECILES, eps=1, by="g", keys=[0, 1, 2, 3], **BOUNDS)
        pd.testing.assert_frame_equal(first, again)
        assert ledger.remaining().spent == 1
        other = data.quantile("x", q=DECILES[:3], eps=1, by="g", keys=[0, 1, 2, 3], **BOUNDS)
        assert ledger.remaining().spent == 2 and len(other) == 12

    def test_explained(self):
        table = self.FRAME["x"].dprisk.quantile([0.25, 0.5, 0.75], eps=5, **BOUNDS)
        said = " ".join(pdrisk.explain(table, "publication").split())
        assert "come from one release and cost its eps once, together" in said
        assert "exponential weights of their ranks, one after another" in said
        assert Median().label == "median"
