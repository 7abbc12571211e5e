"""The base measure of the exponential mechanism: from its definition, and what it depends on."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pdrisk._core.lattice import Points
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.exponential.measure import FINE, OUTER_PARTS, PARTS, RATIO, Measure
from test_exponential import summarised

UNIVERSES = [
    (0.0, 1.0, True), (0.0, 5.0, True), (-2.0, 1.0, True), (18.0, 99.0, True), (-99.0, -18.0, True),
    (0.0, 1000.0, True), (-700.0, 300.0, True), (0.0, 2.7e6, False), (-1.0, 3.0, False), (1e6, 1e6 + 1, False),
]  # fmt: skip


def places(measure):
    return np.diff(measure.before(np.arange(measure.size + 1)))


def by_definition(points, zero, parts):
    """Weights of all points: shells in equal shares, an even part, one in the middle, a third of all for round ones."""
    size = points.size
    shell = [Fraction(1, RATIO ** math.floor(math.log(abs(at - zero) + 1, RATIO) + 1e-12)) for at in range(size)]
    even, near, middle = parts
    whole, half = sum(shell) / near, range(size // 4, size - size // 4)
    weights = [each + whole * even / size + whole * middle / len(half) * (at in half) for at, each in enumerate(shell)]
    units = [10**k for k in range(1, 9) if 10 <= (size - 1) / 10**k <= 1000]
    even = [[at for at in range(size) if (points.first + at) % unit == 0] for unit in units]
    near = [[at for at in range(size) if abs(at - zero) in range(10 ** (k + 1), 10 ** (k + 2), 10**k)]
            for k in range(1, 9)]  # fmt: skip
    kinds = [kind for kind in ([heap for heap in each if heap] for each in (even, near)) if kind] if units else []
    for kind in kinds:
        for heap in kind:
            for at in heap:
                weights[at] += whole * sum(parts) / 3 / len(kinds) / len(kind) / len(heap)
    return weights


@pytest.mark.parametrize("universe", UNIVERSES, ids=str)
class TestMeasure:
    @pytest.mark.parametrize("end", [-1, 0, 1])
    def test_shares_of_round_even_near_and_middle_points(self, universe, end):
        points = Points.between(*universe)
        if points.size > 5000:
            points = Points(points.lo / 1000, points.hi / 1000, 0, True)  # the same with fewer points
        measure = Measure.of(points, end)
        nearest = int(np.argmin(np.abs(points.value(np.arange(points.size)))))
        assert measure.zero == nearest
        on_its_side = {-1: nearest <= points.size - 1 - nearest, 0: False, 1: nearest >= points.size - 1 - nearest}
        assert measure.outer == on_its_side[end]
        exact = by_definition(points, measure.zero, OUTER_PARTS if measure.outer else PARTS)
        found = places(measure)
        unit = Fraction(int(found.sum())) / sum(exact)
        for own, wanted in zip(found.tolist(), exact, strict=True):
            assert abs(own / unit / wanted - 1) < Fraction(1, 2**FINE * 2)  # of whole numbers

    @pytest.mark.parametrize(("end", "times"), [(-1, 14), (0, 3), (1, 14)])
    def test_places_and_points_are_each_others_inverse(self, universe, end, times):
        measure = Measure.of(Points.between(*universe), end)
        found = places(measure)
        assert found.min() == measure.least >= 1 and found.sum() == measure.total < 2**43
        assert measure.spread == -(-measure.total // measure.least) <= times * measure.size
        drawn = np.unique(np.append(np.random.default_rng(1).integers(0, measure.total, 5000), [0, measure.total - 1]))
        point = measure.point(drawn)
        assert (measure.before(point) <= drawn).all() and (drawn < measure.before(point + 1)).all()

    @pytest.mark.parametrize("end", [-1, 0, 1])
    def test_runs_of_equal_weights(self, universe, end):
        measure = replace(Measure.of(Points.between(*universe), end), heaps=())
        found = places(measure)
        changes = np.flatnonzero(np.diff(found))
        assert set(changes.tolist()) | set((changes + 1).tolist()) <= set(measure.ends)
        assert len(measure.ends) < 45

    @pytest.mark.parametrize("end", [-1, 0, 1])
    def test_lightest_and_heaviest_points_of_runs(self, universe, end):
        measure, draw = Measure.of(Points.between(*universe), end), np.random.default_rng(2)
        found, start = places(measure), draw.integers(0, measure.size, 40)
        width = draw.integers(1, np.minimum(measure.size - start, 1000) + 1)
        least, most = measure.lightest_and_heaviest(start, width)
        exact = [found[a : a + b] for a, b in zip(start, width, strict=True)]
        assert least.tolist() == [each.min() for each in exact] and most.tolist() == [each.max() for each in exact]


def is_round(measure, at):
    """By the definition: a multiple of the unit, an end, or two digits and zeros away from zero."""
    digits = str(abs(at - measure.zero))
    return at in (0, measure.size - 1) or (measure.first + at) % measure.unit == 0 or not digits[2:].strip("0")


class TestRoundPoints:
    """Of extremes: some hundreds of points, the same ones for all data."""

    @pytest.mark.parametrize("universe", [(-1.0, 3.0, True), (1.0, 675.0, True), (0.0, 1000.0, True)], ids=str)
    def test_few_points_all_weigh_alike(self, universe):
        points = Points.between(*universe)
        measure = Measure.round_ones(points)
        assert places(measure).tolist() == [1] * points.size and measure.spread == points.size

    @pytest.mark.parametrize(
        "universe", [(0.0, 1.0), (0.0, 2.7e6), (-700.0, 300.0), (1e6, 1e6 + 1), (-0.3, 1 / 3), (-99.0, -18.0)], ids=str
    )
    def test_by_their_definition(self, universe):
        points = Points.between(*universe)
        measure = Measure.round_ones(points)
        assert 100 < (points.size - 1) / measure.unit <= 1000 or points.size <= 1001
        found = places(measure)
        ones = np.flatnonzero(found)
        assert ones.tolist() == [at for at in range(points.size) if is_round(measure, at)]
        assert (found[ones] == 1).all() and measure.spread == measure.total == len(ones) < 2200
        drawn = np.random.default_rng(1).integers(0, measure.total, 5000)
        point = measure.point(drawn)
        assert (measure.before(point) <= drawn).all() and (drawn < measure.before(point + 1)).all()
        changes = np.flatnonzero(np.diff(found))
        assert set(changes.tolist()) | set((changes + 1).tolist()) <= set(measure.ends)

    def test_records_go_to_the_nearest(self):
        measure = Measure.round_ones(Points.between(0.0, 2.7e6))
        ones = np.flatnonzero(places(measure))
        x = np.random.default_rng(2).integers(0, measure.size, 3000)
        found = measure.nearest(x)
        assert (np.abs(found - x) == np.abs(ones - x[:, None]).min(axis=1)).all()
        first, last = measure.around(ones)
        assert first[0] == 0 and last[-1] == measure.size - 1 and (first[1:] == last[:-1] + 1).all()
        assert ((first <= ones) & (ones <= last)).all()
        assert (measure.nearest(first) == ones).all() and (measure.nearest(last) == ones).all()

    def test_an_answer_is_one_of_them_and_says_so(self):
        mechanism = Exponential(Max(), Universe(0.0, 100.0), Fraction(1))
        drawn = mechanism.draw(summarised(mechanism, [np.random.default_rng(3).uniform(0, 80, 500)] * 50))
        assert (places(mechanism.measure)[drawn] > 0).all() and mechanism.step == 0.1

    @pytest.mark.parametrize("statistic", [Max(whole=True), Min(whole=True)], ids=str)
    def test_losses_by_brute_force(self, statistic, monkeypatch):
        """Of a few round points: never above eps, nor above what is told; not far below it."""
        monkeypatch.setattr("pdrisk._mechanisms.exponential.measure.FEWEST", 3)
        monkeypatch.setattr("pdrisk._mechanisms.exponential.measure.DIGITS", (1, 5))
        mechanism = Exponential(statistic, Universe(0.0, 63.0), Fraction(2))
        measure = mechanism.measure
        ones = np.flatnonzero(places(measure))
        assert measure.unit == 10 and 10 < len(ones) < 20

        def logs(records):
            own = measure.nearest(np.array(records, dtype=np.int64))
            less, up_to = (own < ones[:, None]).sum(axis=1), (own <= ones[:, None]).sum(axis=1)
            score, weights = mechanism.score, mechanism.weights
            table = np.log(np.array(weights.shares))
            mass = table[weights.index(score.of(less, up_to, score.target(np.array(len(own)))))]
            mass = mass + np.log(places(measure)[ones])
            return mass - np.log(np.exp(mass).sum())

        rng = np.random.default_rng(5)
        for n in (0, 1, 3, 40):
            records = np.sort(rng.integers(0, 64, n)).tolist()
            added = max(np.abs(logs(records) - logs([*records, c])).max() for c in range(64))
            removed = [np.abs(logs(records) - logs(records[:at] + records[at + 1 :])).max() for at in range(n)]
            summary = summarised(mechanism, [records])
            loss = mechanism.loss(summary)[0]
            exact = max([added, *removed])
            assert exact - 1e-12 <= loss <= min(2, exact + 0.2)
            told = mechanism.loss_of_records(np.array(records, dtype=float), summary)
            assert all(one - 1e-12 <= other <= loss + 1e-12 for one, other in zip(removed, told, strict=True))


def test_even_without_a_zero():
    measure = Measure(7)
    assert (measure.total, measure.least, measure.spread, *measure.ends) == (7, 1, 7, 0, 6)
    assert places(measure).tolist() == [1] * 7


@pytest.mark.parametrize("end", [-1, 0, 1])
def test_the_widest_bounds_of_whole_numbers(end):
    measure = Measure.of(Points.between(-(2.0**31), 2.0**31, True), end)
    assert measure.total < 2**47
    assert measure.point(measure.before(np.array([0, measure.zero, measure.size - 1]))).tolist() == [
        0, measure.zero, measure.size - 1,
    ]  # fmt: skip


def test_bounds_and_step_alone_decide():
    """Nothing of the records: the same for all data, as a base measure that cancels must be."""
    for records in ([], [3.0], list(range(90))):
        mechanism = Exponential(Median(), Universe(0.0, 100.0), Fraction(1))
        summarised(mechanism, [records])
        assert mechanism.measure == Measure(100_001, 0, heaps=(100, 1000, 10_000))


@pytest.mark.parametrize(
    ("bounds", "at_low", "at_high"),
    [((0.0, 100.0), True, False), ((-100.0, 0.0), False, True), ((-100.0, 100.0), True, True),
     ((-20.0, 80.0), True, False), ((40.0, 80.0), True, False)],
)  # fmt: skip
def test_quantiles_near_the_end_on_the_side_of_zero_prefer_the_middle(bounds, at_low, at_high):
    for q, wanted in [(0.0625, at_low), (0.1, at_low), (0.11, False), (0.5, False), (0.9, at_high), (0.99, at_high)]:
        mechanism = Exponential(Quantile(q), Universe(*bounds), Fraction(1))
        assert mechanism.measure.outer == wanted
        assert not ExponentialInterval(Quantile(q), Universe(*bounds), Fraction(1)).measure.outer
    for extreme in (Min(), Max(), Min(bounds_reached=True), Quantile(0.0)):
        assert not Exponential(extreme, Universe(*bounds), Fraction(1)).measure.outer


@pytest.mark.parametrize(
    ("statistic", "least", "eps"),
    [
        (Median(whole=True), -40, "1/2"),
        (Median(whole=True), -40, "2"),
        (Quantile(0.8, whole=True), 0, "5"),
        (Quantile(0.2, whole=True), -119, "5"),
        (Quantile(0.05, whole=True), -40, "2"),
        (Quantile(0.95, whole=True), -119, "5"),
    ],
    ids=str,
)
def test_losses_among_round_numbers_by_brute_force(statistic, least, eps):
    """Never above what is told, and not far below it, wherever the rank lies in a gap with light and heavy points."""
    mechanism = Exponential(statistic, Universe(float(least), least + 119.0), Fraction(eps))
    measure, points = mechanism.measure, np.arange(120)
    assert measure.heaps == (10,)
    logs_of_places, table = np.log(places(measure)), np.log(np.array(mechanism.weights.shares))

    def logs(records):
        own = np.array(records, dtype=np.int64) - least
        less, up_to = (own < points[:, None]).sum(axis=1), (own <= points[:, None]).sum(axis=1)
        score, weights = mechanism.score, mechanism.weights
        mass = table[weights.index(score.of(less, up_to, score.target(np.array(len(own)))))] + logs_of_places
        return mass - np.log(np.exp(mass).sum())

    rng = np.random.default_rng(8)
    inside = [[32, 62], [90, 95], [57, 87], [24, 29]]  # where the largest loss is inside a gap
    places_of = [*inside, *(rng.integers(0, 120, n) for n in (0, 1, 2, 5, 40))]
    for each in [*places_of, rng.choice([2, 111], 12), rng.choice([2, 111], 7)]:
        records = np.sort(np.array(each, dtype=np.int64) + least).tolist()
        added = max(np.abs(logs(records) - logs([*records, c])).max() for c in range(least, least + 120))
        removed = [np.abs(logs(records) - logs(records[:at] + records[at + 1 :])).max() for at in range(len(records))]
        summary = summarised(mechanism, [records])
        loss, exact = mechanism.loss(summary)[0], max([added, *removed])
        assert exact - 1e-12 <= loss <= min(float(Fraction(eps)), exact + 0.2)


def expected_error(statistic, q, universe, records, eps):
    """By the probabilities of all points."""
    mechanism = Exponential(statistic, universe, Fraction(eps))
    points, cells = mechanism.points, summarised(mechanism, [records]).cells
    counts = np.bincount(cells.point, weights=cells.count, minlength=points.size).astype(np.int64)
    up_to = np.cumsum(counts)
    scores = mechanism.score.of(up_to - counts, up_to, mechanism.score.target(np.array([len(records)])))
    mass = mechanism.weights.shares[mechanism.weights.index(scores)] * places(mechanism.measure)
    values = points.value(np.arange(points.size))
    return float((np.abs(values - np.quantile(records, q)) * mass).sum() / mass.sum())


@pytest.mark.parametrize(
    ("statistic", "q", "n", "eps", "at_most"),
    [(Median(), 0.5, 100, "1/10", 0.2), (Quantile(0.9), 0.9, 1000, "1/10", 0.3), (Max(), 1, 30, "1", 0.35)],
    ids=["median", "quantile", "max"],
)
def test_wide_bounds_cost_little(statistic, q, n, eps, at_most, monkeypatch):
    """Incomes of thousands within bounds of millions: the error as a part of that with even weights."""
    records = np.random.default_rng(3).lognormal(7.5, 0.8, n)
    asked = statistic, q, Universe(0.0, 2.7e6), records, eps
    own = expected_error(*asked)
    Measure.round_ones.cache_clear()
    monkeypatch.setattr(Measure, "of", classmethod(lambda cls, points, end=0: cls(points.size)))
    even = expected_error(*asked)
    Measure.round_ones.cache_clear()
    assert own < at_most * even


def test_of_few_records_a_minimum_stays_near_them():
    """It is asked for a sixth of them at most, and does not run to the other bound."""
    records = np.random.default_rng(4).lognormal(7.5, 0.8, 40)
    assert expected_error(Min(), 0, Universe(0.0, 20_000.0), records, "1") < 2000
    assert expected_error(Max(), 1, Universe(-20_000.0, 0.0), -records, "1") < 2000


@pytest.mark.parametrize("sign", [1, -1])
def test_outer_quantiles_of_few_records_in_the_middle_are_not_drawn_to_zero(sign, monkeypatch):
    """Less than 5/eps records lie beyond it: the error as a part of that with the weights of a median."""
    records = sign * np.random.default_rng(6).normal(400, 30, 100)
    q = 0.05 if sign > 0 else 0.95
    asked = Quantile(q), q, Universe(*sorted([0.0, sign * 1000.0])), records, "1"
    own = expected_error(*asked)
    monkeypatch.setattr(Exponential, "_end", 0)
    assert own < 0.6 * expected_error(*asked)
