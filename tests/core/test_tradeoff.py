"""Trade-off curves: against the laws that mechanisms draw from, against G of their m, and what a ledger keeps to."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from gaussian_curves import curve as brute_force
from gaussian_curves import gaussian
from pdrisk._core.order import Max, Median
from pdrisk._core.risks import tradeoff_curve as curves
from pdrisk._core.risks.gaussian_dp import mu_of_geometric, mu_of_laplace, mu_of_pure, root, squared
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS
from pdrisk.attack._likelihood import log_shares
from pdrisk.attack._worlds import summary_of

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")
ALARMS = np.concatenate([np.logspace(-12, -2, 400), np.linspace(0.01, 1, 2000)])
FRAME = pd.DataFrame({"x": np.arange(1000) % 100, "g": np.arange(1000) % 4})


def geometric(eps, change):
    """Probabilities of discrete Laplace noise around 0 and around ``change``, as far as e**-40."""
    reach = math.ceil(40 * change / eps)
    places = np.arange(-reach, reach + change + 1)
    laws = [np.exp(-np.abs(places - at) * eps / change) for at in (0, change)]
    return [law / law.sum() for law in laws]


def below(found, laws):
    """How far a curve lies below that of two laws, at the corners of the latter and between, in both orders."""
    gaps = []
    for pair in (laws, laws[::-1]):
        alarms, missed = brute_force(*pair)
        own = np.interp(ALARMS, alarms, missed)
        gaps.append(own - found.missed(ALARMS))
    return np.array(gaps)


class TestLaws:
    """Curves from the definition: tests by the likelihood ratio of the very laws."""

    @pytest.mark.parametrize(("eps", "change"), [(0.1, 1), (1, 1), (1, 2), (2, 3), (3, 2), (0.5, 5), (5, 4)])
    def test_of_whole_numbers(self, eps, change):
        assert np.abs(below(curves.of_geometric(eps, change), geometric(eps, change))).max() < 1e-10

    @pytest.mark.parametrize("eps", [0.1, 1, 3])
    def test_of_laplace_noise(self, eps):
        """Noise on a fine lattice comes as near as the lattice is fine."""
        laws = geometric(eps, 1000)
        assert np.abs(below(curves.of_laplace(eps), laws)).max() < 1e-6

    @pytest.mark.parametrize("eps", [0.1, 1, 3])
    def test_of_one_count_and_of_randomised_response(self, eps):
        truth = math.exp(eps) / (1 + math.exp(eps))
        laws = [np.array([truth, 1 - truth]), np.array([1 - truth, truth])]
        for found in (curves.of_pure(eps), curves.of_geometric(eps, 1), curves.of_coin(truth, 1 - truth)):
            assert np.abs(below(found, laws)).max() < 1e-12
        three = [np.array([0.6, 0.2, 0.2]), np.array([0.2, 0.6, 0.2])]
        assert np.abs(below(curves.of_coin(0.6, 0.2), three)).max() < 1e-12

    @pytest.mark.parametrize("eps", [0.3, 1, 4])
    def test_no_choice_of_few_records_falls_below(self, eps):
        """All neighbours of up to two records on a small grid, by the tables that points are drawn from."""
        nearest = math.inf
        for statistic in (Median(), Max()):
            mechanism = MECHANISMS["exponential"].of(
                replace(statistic, whole=True), Universe(0.0, 4.0), Fraction(str(eps)), ()
            )
            points = np.arange(5)
            for size in range(3):
                for records in itertools.combinations_with_replacement(range(5), size):
                    for more in range(5):
                        summary = summary_of(mechanism, [list(records), [*records, more]])
                        laws = np.exp(log_shares(mechanism._choice, mechanism._cells(summary), points))
                        assert np.allclose(laws.sum(axis=1), 1)
                        gap = below(curves.of_exponential(eps), list(laws)).min()
                        assert gap > -1e-12
                        nearest = min(nearest, gap)
        assert nearest <= 0

    @pytest.mark.parametrize("mu", [0.1, 1.349, 4])
    def test_of_normal_noise(self, mu):
        assert np.abs(curves.of_gaussian(mu).missed(ALARMS) - gaussian(ALARMS, mu)).max() < 1e-12
        assert np.allclose(curves.of_two_steps(curves.of_gaussian(mu)).missed(ALARMS), gaussian(ALARMS, 2 * mu))

    @pytest.mark.parametrize("eps", [0.05, 1, 6])
    def test_none_falls_below_g_of_its_m(self, eps):
        pairs = [
            (curves.of_pure(eps), mu_of_pure(eps)),
            (curves.of_laplace(eps), mu_of_laplace(eps)),
            (curves.of_exponential(eps), mu_of_pure(eps / 2)),
            *((curves.of_geometric(eps, d), mu_of_geometric(eps, d)) for d in (2, 3, 8)),
        ]
        for found, mu in pairs:
            gap = found.missed(ALARMS) - gaussian(ALARMS, mu)
            assert gap.min() > -1e-12 and gap.min() < 1e-4  # they touch

    @pytest.mark.parametrize("eps", [0.5, 2])
    def test_two_values(self, eps):
        """Of a record replaced by another: 1 - e**-eps / 2, of randomised responses one after another."""
        assert curves.of_two_steps(curves.of_pure(eps)).success == pytest.approx(1 - math.exp(-eps) / 2, abs=1e-12)

    @pytest.mark.parametrize(("belief", "printed"), [(0.9, 0.365), (0.95, 0.142), (0.99, 0.0071)])
    def test_lucky_answers(self, belief, printed):
        """SUCCESS.md's numbers at .75, and a million normal experiments that stay below."""
        found = curves.sure_of(1.348980, belief)
        assert found == pytest.approx(printed, rel=0.005)
        odds = 1.348980 * (np.random.default_rng(2).standard_normal(10**6) + 1.348980 / 2)
        assert np.mean(np.abs(odds) >= math.log(belief / (1 - belief))) < found


class TestAnswers:
    """``pdrisk.tradeoff`` of releases and tables."""

    @pytest.mark.parametrize(
        ("ask", "found"),
        [
            (lambda d: d.count(eps=1), curves.of_pure(1)),
            (lambda d: d.sum("x", eps=1, bounds=(0, 5), step=1), curves.of_geometric(1, 5)),
            (lambda d: d.sum("x", eps=1, bounds=(0, 5), mechanism="laplace"), curves.of_laplace(1)),
            (lambda d: d.mean("x", eps=2, bounds=(0, 5)), curves.of_laplace(2)),
            (lambda d: d.median("x", eps=2, bounds=(0, 5)), curves.of_exponential(2)),
            (lambda d: d.count(eps=1, by="g", keys=[0, 1, 2, 3]), curves.of_pure(1)),
        ],
    )
    def test_closed_forms(self, ask, found):
        answer = ask(FRAME.dprisk)
        own = pdrisk.tradeoff(answer)
        assert np.allclose(own(ALARMS), found.missed(ALARMS), atol=1e-12)
        assert own.success == pytest.approx(found.success, abs=1e-6)
        assert (own.table["missed"] >= own.table["filter"] - 1e-12).all()

    def test_products_are_g_of_what_is_paid(self):
        table = FRAME.dprisk.agg({"x": ["sum", "median"]}, eps=2, bounds=(0, 5))
        own = pdrisk.tradeoff(table)
        mu = root(squared(mu_of_laplace(1)) + squared(mu_of_pure(0.5)))
        assert own.mu == pytest.approx(mu, rel=1e-9) and not own.is_exact
        assert own.success == pytest.approx(ndtr(mu / 2), abs=1e-9)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda d, to: d.count(eps=1, ledger=to),
            lambda d, to: d.agg({"x": ["mean", "count", "median"]}, eps=1, bounds=(0, 9), ledger=to),
            lambda d, to: d.agg({"x": ["mean", "max"]}, by="g", keys="private", delta=1e-4, eps=1, bounds=(0, 9),
                                ledger=to),
            lambda d, to: d.count(eps=1, by="g", keys=[0, 1, 2], ledger=to),
            lambda d, to: pdrisk.sql("SELECT AVG(x), COUNT(x) FROM t UNION ALL SELECT MAX(x), SUM(x) FROM t", eps=1,
                                     bounds={"x": (0, 9)}, t=FRAME, ledger=to),
        ],
    )  # fmt: skip
    def test_the_m_that_a_ledger_counts(self, book, ask):
        """Looks at the number of people and choices of keys are shared by the releases of an answer."""
        ledger = book(eps=None, success=0.9999, delta=0.001, policy={"least_group": {"size": 5, "eps": 0.1}})
        before = ledger.remaining().mu2
        answer = ask(FRAME.dprisk, ledger)
        paid = float(before - ledger.remaining().mu2)
        assert pdrisk.tradeoff(answer).mu == pytest.approx(math.sqrt(paid), rel=1e-9)

    def test_rows_of_a_person(self):
        frame = pd.DataFrame({"pid": np.arange(900) // 3})
        own = pdrisk.tradeoff(frame.dprisk.count(eps=1, person="pid", rows=3))
        assert np.allclose(own(ALARMS), curves.of_geometric(1, 3).missed(ALARMS))

    def test_groups_of_a_person(self):
        frame = pd.DataFrame({"pid": np.arange(900) // 3, "g": np.arange(900) % 3})
        own = pdrisk.tradeoff(frame.dprisk.count(eps=1, by="g", keys=[0, 1, 2], person="pid", rows=1, groups=2))
        assert own.mu == pytest.approx(math.sqrt(2) * mu_of_pure(0.5), rel=1e-9)
        assert np.allclose(own(ALARMS), gaussian(ALARMS, own.mu))

    def test_randomised_response(self):
        design = pdrisk.risk.RandomizedResponse(p_truth=0.75)
        assert pdrisk.tradeoff(design).success == 0.75 == pytest.approx(pdrisk.tradeoff(design).curve.success)

    def test_bounds_of_the_data(self):
        with pytest.raises(pdrisk.NotPublicError):
            pdrisk.tradeoff(FRAME.dprisk.max("x", eps=50, bounds="column"))

    @pytest.mark.parametrize("steps", [1000, 1001, 20_000, 5_000_000])
    def test_whole_sums_of_many_steps(self, steps):
        """The table stays small, and the curve is nowhere above the one of all corners: none is missed more."""
        own = pdrisk.tradeoff(FRAME.dprisk.sum("x", eps=1, bounds=(0, steps), step=1))
        assert len(own.table) < 1200
        exact = curves.of_geometric(1, steps) if steps <= 20_000 else curves.of_laplace(1)
        gap = exact.missed(ALARMS) - own(ALARMS)
        assert gap.min() > -1e-13 and gap.max() < 1e-3
        assert own.success >= exact.success - 1e-12

    def test_alarms_are_numbers(self):
        curve = pdrisk.tradeoff(FRAME.dprisk.count(eps=1))
        for wrong in ([0.1, "a"], "0.1", None, [True], pd.NaT):
            with pytest.raises(pdrisk.ColumnTypeError, match="alarms"):
                curve(wrong)
        for wrong in (math.nan, [0.1, 1.01], -0.1):
            with pytest.raises(pdrisk.ParameterError, match="alarms are shares"):
                curve(wrong)

    @pytest.mark.parametrize("wrong", [3, None, "ledger"])
    def test_nothing_else(self, wrong):
        with pytest.raises(pdrisk.ColumnTypeError, match="tradeoff takes an answer"):
            pdrisk.tradeoff(wrong)
        with pytest.raises(pdrisk.ParameterError, match="shares from 0 to 1"):
            pdrisk.tradeoff(FRAME.dprisk.count(eps=1))(1.5)


class TestLedgers:
    """What limits of all time keep every attacker to."""

    def test_success(self, book):
        own = pdrisk.tradeoff(book(eps=None, success=0.75))
        assert (own.success, own.mu) == (0.75, pytest.approx(1.348980, abs=1e-6))
        assert np.abs(own(ALARMS) - ndtr(-ndtri(ALARMS) - own.mu)).max() < 1e-12

    def test_eps_and_both(self, book):
        both = pdrisk.tradeoff(book(eps=2, success=0.75))
        pair = [curves.of_pure(2).missed(ALARMS), gaussian(ALARMS, both.mu)]
        assert np.allclose(both(ALARMS), np.max(pair, axis=0)) and both.success == 0.75

    def test_eps(self, book):
        assert np.allclose(pdrisk.tradeoff(book(eps=1))(ALARMS), curves.of_pure(1).missed(ALARMS))

    def test_a_limit_that_limits_nothing(self, book):
        assert pdrisk.tradeoff(book(eps=10**9)).success == 1

    def test_delta_tells_all(self, book):
        own = pdrisk.tradeoff(book(eps=None, success=0.75, delta=0.001))
        assert own.success == pytest.approx(0.75025) and own(0.0) == pytest.approx(0.999)

    def test_a_raised_limit_counts_as_if_granted_from_the_start(self, book):
        ledger = book(eps=None, success=0.9)
        ledger.amend(success=0.6)
        assert pdrisk.tradeoff(ledger).success == 0.9

    def test_without_a_limit_nothing_is_claimed(self, book):
        ledger = book(eps=None, queries=5)
        with pytest.raises(pdrisk.ParameterError, match="limits neither success nor eps of all time"):
            pdrisk.tradeoff(ledger)
        ledger.amend(success=0.75)
        assert pdrisk.tradeoff(ledger).success == 0.75


class TestPictures:
    """Drawn and in words."""

    def test_in_words(self):
        said = str(pdrisk.tradeoff(FRAME.dprisk.count(eps=1)).picture_text())
        assert said.splitlines()[3].split() == ["5", "86", "95"]  # 1 - .05 e = .8641, down
        assert "right at most 74 times out of 100; with a coin, 50." in said

    def test_drawn(self, book):
        pytest.importorskip("matplotlib")
        ledger = book(eps=None, success=0.75)
        release = FRAME.dprisk.mean("x", eps=1, bounds=(0, 5))
        figures = [pdrisk.tradeoff(release), pdrisk.tradeoff(ledger), pdrisk.tradeoff(release, so_far=ledger)]
        drawn = []
        for each in figures:
            (axes,) = each.picture().axes
            drawn.append([text.get_text() for text in axes.get_legend().get_texts()])
        assert drawn == [
            ["mean(x)", "what a budget counts"],
            ["limit of all answers"],
            ["mean(x)", "limit of all answers"],
        ]
