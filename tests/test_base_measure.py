"""The base measure of the exponential mechanism: from its definition, and what it depends on."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pdrisk._core.lattice import Points
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.measure import FINE, RATIO, Measure
from test_exponential import summarised

UNIVERSES = [
    (0.0, 1.0, True), (0.0, 5.0, True), (-2.0, 1.0, True), (18.0, 99.0, True), (-99.0, -18.0, True),
    (0.0, 1000.0, True), (-700.0, 300.0, True), (0.0, 2.7e6, False), (-1.0, 3.0, False), (1e6, 1e6 + 1, False),
]  # fmt: skip


def places(measure):
    return np.diff(measure.before(np.arange(measure.size + 1)))


def by_definition(size, zero):
    """Weights of all points as parts of the heaviest one: shells in equal shares, and as much spread evenly."""
    shell = [Fraction(1, RATIO ** math.floor(math.log(abs(at - zero) + 1, RATIO) + 1e-12)) for at in range(size)]
    return [each + sum(shell) / size for each in shell]


@pytest.mark.parametrize("universe", UNIVERSES, ids=str)
class TestMeasure:
    def test_half_is_even_and_shells_have_equal_shares(self, universe):
        points = Points.between(*universe)
        if points.size > 5000:
            points = Points(points.lo / 1000, points.hi / 1000, 0, True)  # the same with fewer points
        measure = Measure.of(points)
        nearest = int(np.argmin(np.abs(points.value(np.arange(points.size)))))
        assert measure.zero == nearest
        exact = by_definition(measure.size, measure.zero)
        found = places(measure)
        unit = Fraction(int(found.sum())) / sum(exact)
        for own, wanted in zip(found.tolist(), exact, strict=True):
            assert abs(own / unit / wanted - 1) < Fraction(1, 2**FINE * 2)  # of whole numbers

    def test_places_and_points_are_each_others_inverse(self, universe):
        measure = Measure.of(Points.between(*universe))
        found = places(measure)
        assert found.min() == measure.least >= 1 and found.sum() == measure.total < 2**43
        assert measure.spread == -(-measure.total // measure.least) <= 2 * measure.size
        drawn = np.unique(np.append(np.random.default_rng(1).integers(0, measure.total, 5000), [0, measure.total - 1]))
        point = measure.point(drawn)
        assert (measure.before(point) <= drawn).all() and (drawn < measure.before(point + 1)).all()

    def test_runs_of_equal_weights(self, universe):
        measure = Measure.of(Points.between(*universe))
        found = places(measure)
        changes = np.flatnonzero(np.diff(found))
        assert set(changes.tolist()) | set((changes + 1).tolist()) <= set(measure.ends)
        assert len(measure.ends) < 45


def test_even_without_a_zero():
    measure = Measure(7)
    assert (measure.total, measure.least, measure.spread, measure.ends) == (7, 1, 7, (0, 6))
    assert places(measure).tolist() == [1] * 7


def test_the_widest_bounds_of_whole_numbers():
    measure = Measure.of(Points.between(-(2.0**31), 2.0**31, True))
    assert measure.total < 2**44
    assert measure.point(measure.before(np.array([0, measure.zero, measure.size - 1]))).tolist() == [
        0, measure.zero, measure.size - 1,
    ]  # fmt: skip


def test_bounds_and_step_alone_decide():
    """Nothing of the records: the same for all data, as a base measure that cancels must be."""
    for records in ([], [3.0], list(range(90))):
        mechanism = Exponential(Median(), Universe(0.0, 100.0), Fraction(1))
        summarised(mechanism, [records])
        assert mechanism.measure == Measure(100_001, 0)


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
    [(Median(), 0.5, 100, "1/10", 0.2), (Quantile(0.9), 0.9, 1000, "1/10", 0.3), (Max(), 1, 30, "1", 0.3)],
    ids=["median", "quantile", "max"],
)
def test_wide_bounds_cost_little(statistic, q, n, eps, at_most, monkeypatch):
    """Incomes of thousands within bounds of millions: the error as a part of that with even weights."""
    records = np.random.default_rng(3).lognormal(7.5, 0.8, n)
    asked = statistic, q, Universe(0.0, 2.7e6), records, eps
    own = expected_error(*asked)
    monkeypatch.setattr(Measure, "of", classmethod(lambda cls, points: cls(points.size)))
    assert own < at_most * expected_error(*asked)


def test_of_few_records_a_minimum_stays_near_them():
    """It is asked for a quarter of them at most, and does not run to the other bound."""
    records = np.random.default_rng(4).lognormal(7.5, 0.8, 40)
    assert expected_error(Min(), 0, Universe(0.0, 20_000.0), records, "1") < 2000
    assert expected_error(Max(), 1, Universe(-20_000.0, 0.0), -records, "1") < 2000
