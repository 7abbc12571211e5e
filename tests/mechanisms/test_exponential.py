"""The exponential mechanism against its definition: exact integers, all small data, all neighbours."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from gaussian_curves import room
from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential import Exponential, score_of
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.exponential.weights import BITS, LONGEST_TABLE, Score, Weights, exp_below

F = Fraction
QUANTILES = [F(1, 2), F(9, 10), F(1, 4), F(0), F(1), F(1, 3), F(999, 1000)]
EXTREMES = [Min(), Max(), Min(bounds_reached=True), Max(bounds_reached=True)]

BOUNDS = [
    (0.0, 1.0),
    (1.0, 675.0),
    (0.0, 2.7e6),
    (-1.0, 3.0),
    (0.0, 1e100),
    (1e6, 1e6 + 1),
    (-0.3, 1 / 3),
    (0.0, 1e-90),
]


def summarised(mechanism, groups):
    """The cells of groups of records."""
    points = mechanism.points
    keys = [
        at * points.size + points.index(np.clip(np.asarray(each, dtype=float), points.lo, points.hi)).astype(np.int64)
        for at, each in enumerate(groups)
    ]
    found, counts = np.unique(np.concatenate(keys), return_counts=True)
    cells = Cells.of_keys(found, counts, len(groups), points.size)
    return Summary(np.array([len(each) for each in groups]), cells=cells, whole_cells=cells)


def mechanism_of(q, eps, size=5, lo=0.0):
    statistic = replace(q, whole=True) if not isinstance(q, float | F) else Quantile(float(q), whole=True)
    return Exponential(statistic, Universe(lo, lo + size - 1.0), F(eps))


def exact_score(score, y, records):
    """The definition, by counting."""
    n, less, up_to = len(records), sum(x < y for x in records), sum(x <= y for x in records)
    t = score.a * n + (max(-score.share * n, min(score.offset, score.share * n)) if score.share else score.offset)
    return max(0, score.above * (score.b * less - t), score.below * (t - score.b * up_to))


def rounded(mechanism, records):
    """The points with places that records are rounded to."""
    return mechanism.measure.nearest(mechanism.points.index(np.array(records, dtype=float)).astype(int))


def runs_of(mechanism, records):
    """First point and places of points that have the same numbers of records on their sides, and each place's mass."""
    points, counts = np.unique(rounded(mechanism, records), return_counts=True)
    n, score, weights = len(records), mechanism.score, mechanism.weights
    runs, after, less = [], 0, 0
    for point, count in [*zip(points.tolist(), counts.tolist(), strict=True), (mechanism.points.size, 0)]:
        for start, width, up_to in ((after, point - after, less), (point, int(count > 0), less + count)):
            t = int(score.target(np.array(n)))
            h = max(0, score.above * (score.b * less - t), score.below * (t - score.b * up_to))
            places = mechanism.measure.before(np.array([start, start + width]))
            runs.append((start, int(np.diff(places)[0]), weights.table[min(h // weights.coarse, weights.cap)]))
        after, less = point + 1, less + count
    return runs[:-1]


@lru_cache(maxsize=10_000)
def masses(mechanism, records):
    """The whole number in proportion to which each point is chosen."""
    weights = mechanism.weights
    scores = (exact_score(mechanism.score, y, records) for y in range(mechanism.points.size))
    shares = (weights.table[min(h // weights.coarse, weights.cap)] for h in scores)
    return [share * places for share, places in zip(shares, places_of(mechanism.measure), strict=True)]


def places_of(measure):
    """Numbers of places of all points."""
    return np.diff(measure.before(np.arange(measure.size + 1))).tolist()


def neighbours(records, size):
    return [(*records, c) for c in range(size)] + [records[:at] + records[at + 1 :] for at in range(len(records))]


def loss_of(mechanism, one, other):
    p, q = masses(mechanism, tuple(sorted(one))), masses(mechanism, tuple(sorted(other)))
    ratio = math.log(sum(q)) - math.log(sum(p))
    return max(abs(math.log(a) - math.log(b) + ratio) for a, b in zip(p, q, strict=True))


def multisets(size, most):
    return [each for n in range(most + 1) for each in itertools.combinations_with_replacement(range(size), n)]


class TestWeights:
    @pytest.mark.parametrize("x", [F(0), F(1, 10**12), F(1, 3), F(1), F(7, 2), F(64)], ids=str)
    def test_ratio_is_just_below_the_exponential(self, x):
        # e**x = (series of x/k)**k from below, and 1 / (series of -x/k)**k by an even cut-off from above
        small = x / 64
        below = sum((small**k / math.factorial(k) for k in range(90)), F(0)) ** 64
        above = below * (1 + F(1, 10**30))
        found = F(exp_below(x), 2**BITS)
        assert found >= 1
        assert found <= below * (1 + F(1, 2**180))
        assert found >= above * (1 - F(1, 10**29))

    @pytest.mark.parametrize("eps", [F(1), F(1, 100), F(10), F(1, 10**6), F(1000)], ids=str)
    @pytest.mark.parametrize("q", QUANTILES, ids=str)
    def test_table(self, q, eps):
        score = score_of(Quantile(float(q)), eps, 675)
        weights = Weights.of(score, 675, eps)
        ratio = exp_below(weights.unit)
        assert weights.table[-1] == 2**128
        assert all(b <= a and a << BITS <= b * ratio for a, b in itertools.pairwise(weights.table))
        assert weights.unit * weights.span <= eps
        assert weights.cap <= LONGEST_TABLE
        assert weights.shares[0] == 1
        assert math.isclose(weights.shares[-1], math.exp(-weights.cap * weights.unit), rel_tol=1e-9)

    def test_points_beyond_the_cap_are_next_to_never_chosen(self):
        for q, eps in itertools.product(QUANTILES, (F(1), F(1, 10))):
            weights = Weights.of(score_of(Quantile(float(q)), eps, 650_000), 650_000, eps)
            assert weights.shares[-1] * 650_000 < 2**-46

    @pytest.mark.parametrize("coarse", [1, 2, 3, 7])
    def test_a_record_moves_coarse_scores_within_the_span(self, coarse):
        """For slopes of both sides, offsets and every place of a record."""
        for a, b, offset, above, below, share in [
            (1, 2, 0, 1, 1, 0),
            (9, 10, 0, 1, 1, 0),
            (1, 1, -3, 3, 1, 0),
            (0, 1, 3, 1, 3, 0),
            (2, 3, 1, 2, 5, 0),
            (0, 4, 8, 1, 3, 1),
            (4, 4, -8, 3, 1, 1),
            (3, 7, 4, 2, 5, 3),
        ]:
            score = Score(a, b, offset, above, below, share)
            up, down = -(-score.up // coarse), -(-score.down // coarse)
            for records in multisets(4, 4):
                for c in range(4):
                    moved = [
                        exact_score(score, y, (*records, c)) // coarse - exact_score(score, y, records) // coarse
                        for y in range(4)
                    ]
                    assert -down <= min(moved) and max(moved) <= up


class TestPrivacy:
    @pytest.mark.parametrize("q", [*QUANTILES, *EXTREMES], ids=str)
    @pytest.mark.parametrize("eps", [F(1), F(1, 5)], ids=str)
    def test_no_neighbour_loses_more_than_eps(self, q, eps):
        """By exact fractions: the ratio of any two probabilities is at most ratio**span <= exp(eps)."""
        mechanism = mechanism_of(q, eps, 4)
        weights = mechanism.weights
        most, shift = exp_below(weights.unit) ** weights.span, BITS * weights.span
        for records in multisets(4, 4 if weights.span < 100 else 2):
            own = masses(mechanism, records)
            for other in neighbours(records, 4):
                theirs = masses(mechanism, tuple(sorted(other)))
                for p, t in zip(own, theirs, strict=True):
                    left, right = p * sum(theirs), t * sum(own)
                    assert left << shift <= right * most and right << shift <= left * most

    @pytest.mark.parametrize("q", [F(1, 2), F(9, 10), Max()], ids=str)
    @pytest.mark.parametrize("k", [2, 3])
    def test_records_of_one_person_in_three_groups(self, q, k):
        """Noise for k records at eps / k each: wherever they lie, all answers together lose eps at most."""
        mechanism, size = mechanism_of(q, F(1, k), 3), 3
        largest = [0.0] + [
            max(
                loss_of(mechanism, records, (*records, *more))
                for records in multisets(size, 3)
                for more in multisets(size, k)
                if len(more) == r
            )
            for r in range(1, k + 1)
        ]
        spreads = [each for each in itertools.product(range(k + 1), repeat=3) if sum(each) <= k]
        together = max(sum(largest[r] for r in spread) for spread in spreads)
        assert 0.3 < together <= 1 + 1e-12
        m = math.sqrt(mechanism.mu2_of(F(k)))
        for records, more in itertools.product(multisets(size, 3), multisets(size, k)):
            pair = (masses(mechanism, tuple(sorted(each))) for each in (records, (*records, *more)))
            assert room(tuple(np.array([float(F(each, sum(own))) for each in own]) for own in pair), m) > -1e-9

    @pytest.mark.parametrize("q", [*QUANTILES, *EXTREMES], ids=str)
    @pytest.mark.parametrize("eps", [F(1, 5), F(1), F(3)], ids=str)
    def test_success_is_never_exceeded(self, q, eps):
        mechanism = mechanism_of(q, eps, 4)
        reached = 0.0
        for records in multisets(4, 4):
            own = masses(mechanism, records)
            for other in neighbours(records, 4):
                theirs = masses(mechanism, tuple(sorted(other)))
                law = tuple(np.array([float(F(m, sum(each))) for m in each]) for each in (own, theirs))
                assert room(law, mechanism.mu) > -1e-9
                apart = np.abs(np.subtract(*law)).sum() / 2
                reached = max(reached, (1 + apart) / 2)
        assert 0.5 < reached <= mechanism.success + 1e-12


class TestLosses:
    @pytest.mark.parametrize("q", [*QUANTILES, *EXTREMES], ids=str)
    @pytest.mark.parametrize("eps", [F(1), F(1, 7), F(25)], ids=str)
    def test_by_brute_force(self, q, eps):
        """Of the most exposed neighbour, and of each record: all groups at once."""
        size, mechanism = 5, mechanism_of(q, eps, 5)
        groups = multisets(size, 3)
        summary = summarised(mechanism, groups)
        found = mechanism.loss(summary)
        for records, loss in zip(groups, found, strict=True):
            exact = max(loss_of(mechanism, records, other) for other in neighbours(records, size))
            assert exact - 1e-13 <= loss <= min(exact * (1 + 1e-9) + 1e-9, float(eps)) or eps > 20
        rows = np.concatenate([np.full(len(each), at) for at, each in enumerate(groups)]).astype(int)
        records = np.concatenate([np.asarray(each, dtype=float) for each in groups])
        losses = mechanism.loss_of_records(records, summary.of_rows(rows))
        for row, record, loss in list(zip(rows, records, losses, strict=True))[::7]:
            left = list(groups[row])
            left.remove(int(record))
            exact = loss_of(mechanism, groups[row], tuple(left))
            assert exact - 1e-13 <= loss <= exact * (1 + 1e-9) + 1e-9 or eps > 20

    @pytest.mark.parametrize("q", [F(1, 2), F(9, 10), Min(), Max(), Max(bounds_reached=True)], ids=str)
    @pytest.mark.parametrize("lo", [0.0, -11.0, -40.0])
    def test_in_wide_gaps_and_far_from_the_rank(self, q, lo):
        """Where points are left to the first and last gap."""
        mechanism = mechanism_of(q, F(8), 30, lo)
        rng = np.random.default_rng(5)
        groups = [tuple(np.sort(rng.integers(0, 30, n)).tolist()) for n in (0, 1, 40, 70)] + [(3, 20), (0, 29)]
        summary = summarised(mechanism, [lo + np.array(each) for each in groups])
        found, between = mechanism.loss(summary), mechanism.loss_between_worlds(summary)
        for records, loss, apart in zip(groups, found, between, strict=True):
            exact = max(loss_of(mechanism, records, other) for other in neighbours(records, 30))
            assert exact - 1e-12 <= loss <= exact + 1e-8
            lacking = {records[:at] + records[at + 1 :] for at in range(len(records))}
            worlds = max((loss_of(mechanism, one, other) for one in lacking for other in lacking), default=0)
            assert worlds <= apart + 1e-12
            one = records[:1]
            if one:
                values = lo + np.array(records, dtype=float)
                alone = mechanism.loss_of_records(values, summarised(mechanism, [values]))
                assert max(alone) <= loss + 1e-12
                for at in range(0, len(records), 7):
                    exact = loss_of(mechanism, records, records[:at] + records[at + 1 :])
                    assert exact - 1e-12 <= alone[at] <= exact + 1e-8

    @pytest.mark.parametrize("q", [*QUANTILES, *EXTREMES], ids=str)
    @pytest.mark.parametrize("eps", [F(1), F(1, 7)], ids=str)
    def test_between_worlds(self, q, eps):
        mechanism = mechanism_of(q, eps, 5)
        groups = multisets(5, 4)
        for records, bound in zip(groups, mechanism.loss_between_worlds(summarised(mechanism, groups)), strict=True):
            worlds = {records[:at] + records[at + 1 :] for at in range(len(records))}
            exact = max((loss_of(mechanism, one, other) for one in worlds for other in worlds), default=0)
            assert exact <= bound + 1e-12
            assert bound <= 2 * eps
            assert bound == 0 or len(set(records)) > 1

    def test_places_of_worlds_are_at_least_their_loss_apart(self):
        mechanism = mechanism_of(F(1, 2), F(1), 5)
        records = (0, 0, 1, 3, 4)
        places, unit = mechanism.worlds(np.array(records, dtype=float), summarised(mechanism, [records]))
        for i, j in itertools.combinations(range(5), 2):
            one, other = (records[:at] + records[at + 1 :] for at in (i, j))
            assert loss_of(mechanism, one, other) <= abs(places[i] - places[j]) / unit + 1e-12


def source(*words):
    """Bits that are these words, and zeros afterwards."""
    left = list(words)

    def bits(size):
        return np.array([left.pop(0) if left else 0 for _ in range(size)], dtype=np.uint64)

    return bits


def point_at(mechanism, records, uniform, bits):
    """The point that exact integers choose for ``uniform / 2**bits``, points of a gap as one."""
    mass = masses(mechanism, records)
    runs = list(itertools.accumulate(mass))
    return next(at for at, each in enumerate(runs) if each << bits > uniform * runs[-1])


class TestDraw:
    def items(self, mechanism, records, point):
        """The run of points that a point belongs to."""
        below = [x for x in records if x < point]
        return point if point in records else (max(below, default=-1), "gap")

    @pytest.mark.parametrize("q", [F(1, 2), F(9, 10)], ids=str)
    @pytest.mark.parametrize("records", [(), (2,), (0, 1, 1, 4, 6), (3,) * 9], ids=str)
    def test_edges_of_cumulative_shares(self, q, records):
        """Words that lie on an edge are told apart by the words that follow."""
        mechanism = mechanism_of(q, F(2), 8)
        summary = summarised(mechanism, [records])
        mass = masses(mechanism, records)
        edges = [0, *itertools.accumulate(mass)]
        for edge, step, more in itertools.product(edges, range(-2, 3), (0, 1, 2**63, 2**64 - 1)):
            word = (edge << 64) // edges[-1] + step
            if not 0 <= word < 2**64:
                continue
            drawn = int(mechanism.draw(summary, bits=source(word, more, more))[0])
            wanted = {point_at(mechanism, records, word << 128 | more << 64 | more, 192)}
            runs = {self.items(mechanism, records, each) for each in wanted}
            assert self.items(mechanism, records, drawn) in runs, (edge, step, more)

    def test_exact_on_all_edges_between_equal_shares(self):
        """Empty data: all places alike, one item."""
        mechanism = mechanism_of(F(1, 2), F(1), 8)
        summary, places = summarised(mechanism, [()]), places_of(mechanism.measure)
        drawn = [int(mechanism.draw(summary, bits=source(5, each))[0]) for each in range(2 * sum(places))]
        assert Counter(drawn) == {point: 2 * each for point, each in enumerate(places)}

    def test_words_that_favour_some_points_are_drawn_again(self):
        mechanism = mechanism_of(F(1, 2), F(1), 7)
        summary, total = summarised(mechanism, [()]), mechanism.measure.total
        most = 2**64 - 2**64 % total
        assert most < 2**64
        assert mechanism.draw(summary, bits=source(5, most, 0))[0] == 0
        assert mechanism.draw(summary, bits=source(5, most - 1, 0))[0] == 6

    @pytest.mark.parametrize("q", [F(1, 2), F(9, 10), F(1)], ids=str)
    def test_frequencies(self, q):
        """Of many groups at once, with gaps, against exact probabilities."""
        size, draws = 12, 2000
        mechanism = mechanism_of(q, F(1), size)
        data = [(), (4,), (0, 3, 3, 11), (1, 2, 3, 4, 5, 6, 9)]
        rng = np.random.default_rng(3)
        drawn = mechanism.draw(
            summarised(mechanism, data * draws), bits=lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)
        )
        for at, records in enumerate(data):
            found = np.bincount(drawn[at :: len(data)], minlength=size)
            mass = masses(mechanism, records)
            for point in range(size):
                p = mass[point] / sum(mass)
                assert abs(found[point] - draws * p) <= 6 * math.sqrt(draws * p * (1 - p)) + 1e-9

    def test_groups_are_drawn_as_alone(self):
        mechanism = mechanism_of(F(1, 2), F(1), 40)
        rng = np.random.default_rng(7)
        groups = [rng.integers(0, 40, n).tolist() for n in (0, 1, 400, 3, 0, 90)]
        words = rng.integers(0, 2**64, 6, dtype=np.uint64).tolist()
        together = mechanism.draw(summarised(mechanism, groups), bits=source(*words))
        alone = [
            int(mechanism.draw(summarised(mechanism, [g]), bits=source(w))[0])
            for g, w in zip(groups, words, strict=True)
        ]
        assert together.tolist() == alone

    def test_answers_lie_near_their_rank(self):
        """With the probability that `rank95` promises, and at least."""
        mechanism = Exponential(Quantile(0.9), Universe(0.0, 1.0), F(1))
        x = np.random.default_rng(1).random(20_000)
        points = mechanism.points.index(x)
        drawn = mechanism.draw(summarised(mechanism, [x] * 60))
        target = 0.9 * len(x)
        off = [max((points < y).sum() - target, target - (points <= y).sum(), 0) for y in drawn]
        assert np.mean(np.array(off) <= mechanism.rank95) > 0.95 - 6 * math.sqrt(0.05 * 0.95 / 60)
        assert 10 < mechanism.rank95 < 40

    def test_rank95_against_exact_probabilities(self):
        for q, eps, records in itertools.product(
            [q for q in QUANTILES if 0 < q < 1], (F(1), F(4)), [(3,) * 5, (0, 1, 2, 3, 4) * 9, (0,), (4, 4)]
        ):
            mechanism = mechanism_of(q, eps, 5)
            mass = masses(mechanism, records)
            far = sum(
                m
                for y, m in enumerate(mass)
                if F(exact_score(mechanism.score, y, records), mechanism.score.b) > F(mechanism.rank95)
            )
            assert far <= 0.05 * sum(mass)

    @pytest.mark.parametrize("extreme", [*EXTREMES, F(0), F(1)], ids=str)
    @pytest.mark.parametrize("n", [0, 1, 5, 20, 100, 400])
    def test_rank95_of_extremes_is_that_of_records_beyond(self, extreme, n):
        mechanism = mechanism_of(extreme, F(1), 40)
        records = tuple(np.sort(np.random.default_rng(n).integers(5, 35, n)).tolist())
        mass = masses(mechanism, records)
        side = 1 if isinstance(extreme, Max) or extreme == 1 else -1
        beyond = [sum(side * x > side * y for x in records) for y in range(40)]
        far = sum(m for m, number in zip(mass, beyond, strict=True) if number > mechanism.rank95)
        assert far <= 0.05 * sum(mass)
        assert mechanism.rank95 < 60

    @pytest.mark.parametrize("q", [0.9996, 0.0004, 0.12345])
    def test_quantiles_near_the_ends_are_taken_as_they_are_written(self, q):
        """With .9996 for 1, every point above the largest record would be as good as any."""
        mechanism = Exponential(Quantile(q), Universe(0.0, 1e6), F(1))
        assert F(mechanism.score.a, mechanism.score.b) == F(str(q))
        x = np.random.default_rng(0).exponential(100, 100_000)
        drawn = mechanism.draw(summarised(mechanism, [x] * 40))
        points, target = mechanism.points.index(x), q * len(x)
        off = [max((points < y).sum() - target, target - (points <= y).sum(), 0) for y in drawn]
        assert np.mean(np.array(off) <= mechanism.rank95) > 0.8

    def test_rank95_is_not_known_where_weights_are_capped(self):
        assert mechanism_of(F(1, 2), F(1, 10**9)).rank95 == math.inf


class TestPoints:
    @pytest.mark.parametrize("bounds", BOUNDS, ids=str)
    def test_decimal_steps(self, bounds):
        points = Points.between(*bounds)
        steps = F(bounds[1] - bounds[0]) / F(10) ** points.exponent
        assert 2**16 <= steps < 10 * 2**16
        assert abs(points.size - steps - 1) <= 1

    @pytest.mark.parametrize("bounds", BOUNDS, ids=str)
    def test_records_are_rounded_to_the_nearest(self, bounds):
        points, (lo, hi) = Points.between(*bounds), bounds
        records = np.append(np.random.default_rng(2).uniform(lo, hi, 1000), [lo, hi, (lo + hi) / 2])
        index = points.index(records).astype(np.int64)
        assert index.min() == 0 and index.max() == points.size - 1
        values = points.value(index)
        assert (values >= lo).all() and (values <= hi).all()
        step = 10.0**points.exponent
        assert (np.abs(values - records) <= step * (0.5 + 1e-6)).all()

    def test_values_are_the_decimals_people_write(self):
        points = Points.between(0.0, 1.0)
        assert points.value(points.index(np.array([0.3, 0.7, 1e-5])).astype(np.int64)).tolist() == [0.3, 0.7, 1e-5]
        points = Points.between(-1.0, 3.0)
        assert points.value(points.index(np.array([-1.0, 0.1, 2.9])).astype(np.int64)).tolist() == [-1.0, 0.1, 2.9]

    @pytest.mark.parametrize("bounds", [(1 / 3, 2 / 3), (0.1234567, 1.0), (-2e9 - 0.7, 1e9 + 0.7)], ids=str)
    def test_those_beyond_a_bound_are_that_bound(self, bounds):
        points = Points.between(*bounds)
        assert points.value(np.array([0, points.size - 1])).tolist() == pytest.approx(bounds, abs=points.step)
        values = points.value(np.arange(points.size))
        assert bounds[0] <= values.min() <= values.max() <= bounds[1]

    def test_whole_numbers(self):
        points = Points.between(1.0, 675.0, True)
        assert points.size == 675
        values = points.value(np.array([0, 1, 674]))
        assert values.tolist() == [1, 2, 675] and values.dtype == np.int64


class TestAccuracy:
    """MECHANISMS.md: mean absolute error at eps 1."""

    def test_extremes(self):
        """Of an end that records reach, and of bounds far from them."""
        rng = np.random.default_rng(9)
        for statistic, lo, hi, make, best in [
            (Max(bounds_reached=True), 0.0, 100.0, lambda: rng.uniform(0, 100, 1000), 0.3),
            (Min(bounds_reached=True), 0.0, 100.0, lambda: rng.uniform(0, 100, 1000), 0.3),
            (Max(), 0.0, 1000.0, lambda: rng.normal(400, 30, 1000), 50.0),
            (Min(), 0.0, 1000.0, lambda: rng.normal(400, 30, 1000), 50.0),
        ]:
            mechanism = Exponential(statistic, Universe(lo, hi), F(1))
            records = [make() for _ in range(200)]
            drawn = mechanism.value(mechanism.draw(summarised(mechanism, records)))
            ends = [each.max() if isinstance(statistic, Max) else each.min() for each in records]
            assert np.abs(drawn - ends).mean() <= best, statistic

    @pytest.mark.parametrize("extreme", [Max(), Min(), Quantile(1.0), Quantile(0.0)], ids=lambda each: each.label)
    @pytest.mark.parametrize("eps", [F(3), F(1), F(1, 10), F(1, 2000)], ids=str)
    @pytest.mark.parametrize("kind", [Exponential, ExponentialInterval], ids=lambda each: each.name)
    def test_extremes_lie_beyond_everybody_once_in_20_times(self, extreme, eps, kind):
        """By exact probabilities, at ``n eps = 100``: of tied ends, wide bounds, and records that all differ.

        At 150 where scores share weights.
        """
        n = math.ceil((100 if eps > F(1, 1000) else 150) / eps) * (
            1 if kind is Exponential else 2
        )  # half of eps is that of the ends
        tied = [40] * n, Universe(0.0, 100.0), False
        ages = (np.random.default_rng(1).integers(20, 60, n)).tolist(), Universe(0.0, 1e6), True
        scale = [0, 10] * (n // 2), Universe(-5.0, 15.0), True
        apart = np.random.default_rng(2).uniform(0.2, 0.8, n).tolist(), Universe(0.0, 1.0), False
        is_max = extreme in (Max(), Quantile(1.0))
        many = n * 11 // 10  # for a sixth of them to be as many as are asked for
        worst = [0 if is_max else 100] * many, Universe(0.0, 100.0), False  # as many points beyond as there can be
        for records, universe, whole in (tied, ages, scale, apart, worst):
            mechanism = kind(replace(extreme, whole=whole), universe, eps)
            runs = runs_of(mechanism, records)
            total = sum(mass * width for _, width, mass in runs)
            assert is_max == (mechanism.score.a > 0)
            beyond = runs[-1] if is_max else runs[0]
            occupied = rounded(mechanism, records)
            assert beyond[0] == (occupied.max() + 1 if is_max else 0) and beyond[1] > 0
            assert 20 * beyond[1] * beyond[2] <= total

    def test_median_of_many_is_exact(self):
        mechanism = Exponential(Median(whole=True), Universe(1.0, 675.0), F(1))
        x = np.random.default_rng(4).exponential(60, 10_000).astype(int) + 1
        drawn = mechanism.value(mechanism.draw(summarised(mechanism, [x] * 50)))
        assert np.abs(drawn - np.median(np.clip(x, 1, 675))).mean() <= 0.5
