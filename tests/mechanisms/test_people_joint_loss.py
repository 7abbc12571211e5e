"""`rows=k` in all groups together, by its definition: what one person loses by the answers of all groups at once.

Three groups, up to three rows. Every small group of others and every way to put a person's rows into the groups is
tried, for each mechanism. A group's answer depends on that group's records alone, so the worst joint loss is that of
the worst way to divide rows among groups; only `clipped_sums`, whose groups share two points, is tried as a whole.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

import test_clipped_sums
import test_exponential
import test_exponential_interval
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.pairs import Corr, Cov, PairStatistic, Slope
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._model.answering import answered_by
from pdrisk._model.asked_groups import Groups
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import judged_people, judged_unit
from pdrisk.engines.numpy.frame import FrameEngine
from test_approximate_quantiles import Outcomes, coarse, mechanism_of  # noqa: F401 - a fixture

LISTED, MOST, OTHERS = 3, 3, 3  # groups, rows of the person, and other records of a group
SIDE = Universe(0.0, 4.0)
RECORDS = list(itertools.product((0.0, 1.0, 4.0), (0.0, 4.0)))  # of x and of y
PLAIN = [(x, 0.0) for x in (0.0, 1.0, 4.0)]
EPS = Fraction(1)


def unit_of(asked, k, listed):
    """The unit of a question with rows=k, as both front ends judge it."""
    return judged_unit(judged_people("pid", None, None), [(asked, ["x"])], ["g"], rows=k, listed=listed)


def query_of(asked, mechanism, k, listed=LISTED):
    """A question about listed groups with rows=k, at eps 1."""
    is_pair = isinstance(asked, PairStatistic)
    line = Line("x", asked, SIDE if asked.bounded else None, "given")
    line = replace(line, universe=Rectangle(0.0, 4.0, SIDE), other="y") if is_pair else line
    line = answered_by(line, mechanism, whole=type(asked) is Sum and mechanism == "geometric")
    return Query((line,), (EPS,), unit=unit_of(asked, k, listed))


def summary_of(query, mechanism, every):
    """The summary of many sets of records, each a group of its own."""
    rows = [(at, *record) for at, records in enumerate(every) for record in records]
    frame = pd.DataFrame(rows, columns=["g", "x", "y"])
    groups = Groups(("g",), tuple((at,) for at in range(len(every))), "given")
    alone = Query(query.lines, (mechanism.eps,), groups=groups, reads=("x", "y", "g"))
    return FrameEngine(frame, stored=frame).read(alone).summaries[0]


def sets_of(records):
    """Every set of others, and for each number of rows every set of the person's own."""
    others = [each for n in range(OTHERS + 1) for each in itertools.combinations_with_replacement(records, n)]
    own = {rows: list(itertools.combinations_with_replacement(records, rows)) for rows in range(1, MOST + 1)}
    return others, own


def worst_division(worst, k, listed):
    """Largest joint loss over all ways to divide up to k rows among the groups, from that of so many rows in one."""
    ways = (way for way in itertools.product(range(k + 1), repeat=listed) if sum(way) <= k)
    return max(sum(worst[rows] for rows in way) for way in ways)


class Noise:
    """A source of noise that notes what it is asked for, and gives every group the noisy numbers of one of them."""

    def __init__(self, outcome):
        self.outcome, self.calls = outcome, []

    def __call__(self, exact, change, eps):
        self.calls.append((exact.copy(), change, eps))
        return np.repeat(exact[..., self.outcome : self.outcome + 1], exact.shape[-1], axis=-1)


def additive_losses(query, k):
    """Loss by one group of each number of rows, at its worst: how far apart the numbers are that noise is added to."""
    mechanism = query.mechanism(0)
    others, own = sets_of(RECORDS if query.lines[0].other else PLAIN)
    every = sorted({tuple(sorted((*one, *more))) for one in others for more in [(), *itertools.chain(*own.values())]})
    number = {records: at for at, records in enumerate(every)}
    summary = summary_of(query, mechanism, every)
    worst = dict.fromkeys(range(MOST + 1), Fraction(0))
    for outcome in range(0, len(every), -(-len(every) // 9)):
        noise = Noise(outcome)
        mechanism.draw(summary, noise)
        paid = [(exact.reshape(-1, len(every)), change, eps) for exact, change, eps in noise.calls]
        for rows in range(1, k + 1):
            pairs = [(number[one], number[tuple(sorted((*one, *more)))]) for one in others for more in own[rows]]
            without, having = np.array(pairs).T
            losses = sum(
                np.abs(exact[:, having] - exact[:, without]).sum(axis=0).astype(object) * (eps / change)
                for exact, change, eps in paid
            )
            worst[rows] = max(worst[rows], *losses)
    return worst


ALL = Fraction(999, 1000)  # of eps, somewhere: no noise is wasted
ADDITIVE = [
    (Count(), "geometric", ALL), (Count(), "laplace", ALL), (Distinct(), "geometric", ALL), (Sum(), "geometric", ALL),
    (Sum(), "two_sums", ALL), (Sum(), "laplace", ALL), (Sum(), "bernstein", ALL), (Mean(), "two_sums", ALL),
    (Mean(), "bernstein", ALL), (Mean(), "laplace", ALL), (Median(), "laplace", ALL), (Min(), "laplace", ALL),
    (Max(), "laplace", ALL), (Var(), "laplace", ALL), (Std(ddof=0), "laplace", ALL), (Var(), "bernstein", ALL),
    (Std(), "bernstein", ALL), (Cov(), "bernstein_products", ALL), (Corr(), "bernstein_products", ALL),
    (Slope(), "bernstein_products", ALL), (Quantile(0.9), "laplace", ALL), (Mean(n_at_least=60), "two_stage", 0.7),
    (Var(n_at_least=60), "two_stage", 0.7),
]  # fmt: skip


def named(value):
    """A readable part of a test's name."""
    return value.label if isinstance(value, Statistic) else None


@pytest.mark.whole
@pytest.mark.parametrize("listed", range(1, LISTED + 1))
@pytest.mark.parametrize("k", range(1, MOST + 1))
@pytest.mark.parametrize(("asked", "mechanism", "reached"), ADDITIVE, ids=named)
def test_added_noise(asked, mechanism, reached, k, listed):
    """At most eps, in exact fractions."""
    query = query_of(asked, mechanism, k, listed)
    joint = worst_division(additive_losses(query, k), k, listed)
    assert EPS * Fraction(reached) <= joint <= EPS


def chosen_losses(k, loss):
    """Loss by one group of each number of rows, at its worst, where points are chosen among five."""
    others, own = sets_of((0, 1, 4))
    worst = {rows: max(loss(one, (*one, *more)) for one in others for more in own[rows]) for rows in range(1, k + 1)}
    return {0: 0.0, **worst}


PRINTED = {"median": 0.76, "min": 0.46}  # in docs/numbers.md
ORDERED = [Median(whole=True), Quantile(0.9, whole=True), Min(whole=True), Max(whole=True)]


@pytest.mark.whole
@pytest.mark.parametrize("k", range(1, MOST + 1))
@pytest.mark.parametrize("asked", ORDERED, ids=named)
def test_chosen_points(asked, k):
    """By the exact chances of all points, found by counting records: at most eps, and much of it."""
    mechanism = query_of(asked, "exponential", k).mechanism(0)
    joint = worst_division(chosen_losses(k, partial(test_exponential.loss_of, mechanism)), k, LISTED)
    assert 0.3 < joint <= 1
    if k == MOST and asked.label in PRINTED:
        assert joint == pytest.approx(PRINTED[asked.label], abs=0.005)


@pytest.mark.whole
@pytest.mark.parametrize("k", [2, MOST])
@pytest.mark.parametrize("asked", ORDERED, ids=named)
def test_chosen_points_with_their_intervals(asked, k):
    joint = query_of(asked, "exponential_interval", k).mechanism(0).joint

    def loss(one, other):
        return max(map(abs, test_exponential_interval.log_ratios(joint, one, other)))

    assert 0.3 < worst_division(chosen_losses(k, loss), k, LISTED) <= 1


@pytest.mark.parametrize("k", [2, pytest.param(MOST, marks=pytest.mark.slow)])
def test_quantiles_drawn_together(k, coarse, monkeypatch):  # noqa: F811 - the fixture
    """Every outcome of the recursion, with its exact chance."""
    outcomes, asked = Outcomes(monkeypatch), Median(whole=True)
    mechanism = mechanism_of((0.2, 0.5, 0.8), 0, 2, EPS / unit_of(asked, k, LISTED).weight)
    assert mechanism.eps == query_of(asked, "exponential", k).mechanism(0).eps
    chances = cache(lambda records: outcomes.of(mechanism, records))

    def loss(one, other):
        first, second = chances(tuple(sorted(one))), chances(tuple(sorted(other)))
        return max(abs(math.log(first[each] / second[each])) for each in first)

    ends = range(3)
    others = [each for n in range(2) for each in itertools.combinations_with_replacement(ends, n)]
    worst = {0: 0.0} | {
        rows: max(
            loss(one, (*one, *more)) for one in others for more in itertools.combinations_with_replacement(ends, rows)
        )
        for rows in range(1, k + 1)
    }
    assert 0.2 < worst_division(worst, k, LISTED) <= 1


@pytest.mark.whole
@pytest.mark.parametrize("k", range(1, MOST + 1))
@pytest.mark.parametrize("others", [[], [-4000.0, 20.0], [20.0] * 60 + [-1e5] * 70])
def test_sums_between_chosen_points(others, k):
    """The points are chosen from the rows of all groups, with half of eps; sums of distances have the other half."""
    mechanism = test_clipped_sums.mechanism_of(eps=EPS / unit_of(Mean(), k, LISTED).weight)
    assert mechanism.eps == query_of(Mean(), "clipped_sums", k).mechanism(0).eps
    before, worst = test_clipped_sums.probabilities(others, mechanism), 0.0
    for own in itertools.combinations_with_replacement([-1e6, -3000.0, 0.0, 20.0, 3e6], k):
        after = test_clipped_sums.probabilities([*others, *own], mechanism)
        worst = max(worst, sum(map(test_clipped_sums.largest_loss, before, after)))
    within = mechanism._within(0, len(mechanism._points.upper) - 1)
    assert within.eps * k == EPS / 2  # each row moves its group's two sums by one in all: test_clipped_sums.py
    assert 0.2 < worst <= 0.5


@pytest.mark.whole
@pytest.mark.parametrize("eps", [1, 2, 4, 8])
@pytest.mark.parametrize("k", range(1, MOST + 1))
def test_success_by_counts(k, eps):
    """No attacker who sees the counts of all groups is right more often, however the rows are divided."""
    query = replace(query_of(Count(), "geometric", k), shares=(Fraction(eps),))
    mechanism = query.mechanism(0)
    claimed = mechanism.success_of(query.weight(0), query.mu2_at(0, Fraction(eps)))
    rate = float(mechanism.eps)
    numbers = np.arange(-40, 41)
    best = 0.5
    for way in itertools.combinations_with_replacement(range(k + 1), LISTED):
        if sum(way) <= k:
            worlds = [np.ones(1), np.ones(1)]
            for rows in filter(None, way):
                for at, moved in enumerate((0, rows)):
                    chances = np.exp(-rate * np.abs(numbers - moved)) * math.tanh(rate / 2)
                    worlds[at] = np.multiply.outer(worlds[at], chances)
            best = max(best, (1 + np.abs(worlds[0] - worlds[1]).sum() / 2) / 2)
    assert claimed - 1e-4 < best <= claimed + 1e-9
