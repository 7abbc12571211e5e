"""Gaussian differential privacy: m of each mechanism against trade-off curves of the laws that it draws from."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri_exp

from gaussian_curves import ALPHAS, gaussian_power, laplace_power, lattice, many, partitions, product, room, success
from pdrisk._core.order import Quantile
from pdrisk._core.risks.gaussian_dp import (
    largest_eps,
    limit_of,
    mu_of_exponential,
    mu_of_geometric,
    mu_of_laplace,
    mu_of_pure,
    mu_of_records_apart,
    normal_cdf,
    on_lattice,
    promised,
    root,
    squared,
    success_of,
    upper_quantile,
)
from pdrisk._core.statistics import Count, Histogram, Mean, WholeSum
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.partition_selection import PartitionSelection
from pdrisk._mechanisms.randomized_response import RandomizedResponse
from pdrisk._mechanisms.two_stage_spread import mu_of_stages

UP = 2.0**-40
UNIT = Universe(0.0, 1.0)
EPS = [1e-4, 0.01, 0.1, 0.5, 1.0, 2.0, 3.2, 5.0, 10.0, 20.0]
ROUNDING = 1e-9  # of curves that are added up from floats


def log_of_two_sided(eps):
    return -eps - math.log1p(math.exp(-eps))


class TestNumbers:
    """Against scipy, and five digits that were computed with sixty."""

    @pytest.mark.parametrize(
        ("eps", "expected"),
        [
            (0.1, (0.12531, 0.12238, 0.12266, 0.12233, 0.06266)),
            (1.0, (1.23204, 1.05412, 1.05397, 1.03006, 0.62389)),
            (5.0, (4.94668, 3.93252, 3.76140, 3.47743, 2.86699)),
            (50.0, (19.34965, 16.33273, 15.58092, 13.51814, 13.31581)),
        ],
    )
    def test_printed(self, eps, expected):
        own = (mu_of_pure(eps), *(mu_of_geometric(eps, d) for d in (2, 3)), mu_of_laplace(eps), mu_of_exponential(eps))
        assert own == pytest.approx(expected, abs=5.1e-6)

    @pytest.mark.parametrize(
        ("eps", "exponential", "quantiles", "two_stage", "clip"),
        [
            ("0.1", 0.06266, 0.03837, 0.10601, 0.06938),
            ("1", 0.62389, 0.38343, 0.91521, 0.64307),
            ("5", 2.86699, 1.88143, 3.21669, 2.62168),
            ("50", 13.31581, 12.12872, 13.18823, 12.88003),
        ],
    )
    def test_printed_of_compositions(self, eps, exponential, quantiles, two_stage, clip):
        """An answer with its interval is one choice, and as private as one without."""
        deciles = tuple(Quantile(k / 10) for k in range(1, 10))
        shares = Mean(n_at_least=1)  # so few that the pilot has its largest share, .15
        names = {"exponential_interval": deciles[4], "approximate_quantiles": deciles[4], "two_stage": shares}
        own = [
            calibrated(name, statistic, UNIT, Fraction(eps), deciles).mu
            for name, statistic in [*names.items(), ("clipped_sums", Mean())]
        ]
        assert own == pytest.approx((exponential, quantiles, two_stage, clip), abs=5.1e-6)

    def test_limits(self):
        roots = [math.sqrt(limit_of(Fraction(each))) for each in ("0.6", "0.75", "0.9")]
        assert roots == pytest.approx([0.506694, 1.348980, 2.563103], abs=5.1e-7)

    @pytest.mark.parametrize("exponent", np.linspace(-12, math.log10(600), 40).round(3).tolist())
    def test_rounded_up_by_little(self, exponent):
        """Above what scipy finds, which is off by some 1e-15, and by no more than 2**-40 above it."""
        eps = 10.0**exponent
        exact = {
            mu_of_pure: -2 * ndtri_exp(log_of_two_sided(eps)), mu_of_laplace: -2 * ndtri_exp(-eps / 2 - math.log(2)),
        }  # fmt: skip
        for own, expected in exact.items():
            if eps < 1e-3:  # scipy subtracts from 1/2
                series = {mu_of_pure: math.sqrt(math.pi / 2) * eps, mu_of_laplace: math.sqrt(math.pi / 2) * eps}
                assert own(eps) == pytest.approx(series[own], rel=eps)
                assert own(eps) <= series[own] * (1 + 2 * UP)
            else:
                assert expected * (1 - 1e-12) < own(eps) <= expected * (1 + 3 * UP)

    def test_far_tails_are_bounds(self):
        for eps in (600.1, 1000.0, 1e6):
            for own, log_tail in ((mu_of_pure, log_of_two_sided(eps)), (mu_of_laplace, -eps / 2 - math.log(2))):
                assert -2 * ndtri_exp(log_tail) < own(eps) < -2.02 * ndtri_exp(log_tail)

    def test_upper_quantile(self):
        assert [round(upper_quantile(q), 12) for q in (0.025, 0.5, 0.975)] == [1.95996398454, 0.0, -1.95996398454]
        for q in (1e-300, 1e-20, 0.01, 0.199, 0.2, 0.201, 0.3, 0.499, 0.6, 0.9, 1 - 1e-12):
            assert upper_quantile(q) == pytest.approx(-ndtri_exp(math.log(q)), rel=1e-12, abs=1e-12)

    def test_monotone(self):
        grid = np.logspace(-12, 4, 3000)
        for own in (mu_of_pure, mu_of_laplace, mu_of_exponential, lambda eps: mu_of_geometric(eps, 2)):
            assert (np.diff([own(eps) for eps in grid.tolist()]) > 0).all()

    def test_success_and_its_limit(self):
        """Success is rounded up, the limit down: what fills the limit keeps to it."""
        for each in (*np.linspace(0.501, 0.999, 100).round(3).tolist(), 1 - 1e-9):
            limit = limit_of(Fraction(str(each)))
            assert each * (1 - 1e-11) < success_of(limit) <= each + 3e-16  # a float or two
            assert success_of(limit * (1 + Fraction(1, 10**10))) > each * (1 - 1e-11)
        for m in np.logspace(-9, 1.2, 200).tolist():
            assert ndtr(m / 2) <= success_of(squared(m)) <= ndtr(m / 2) * (1 + 2 * UP)
        assert success_of(0) == pytest.approx(0.5, abs=1e-14) and success_of(10**9) == 1 and normal_cdf(0.0) == 0.5

    def test_delta(self):
        assert promised(Fraction(0), 0) == success_of(0)
        assert promised(squared(1.0), Fraction(1, 100)) == pytest.approx(0.01 + 0.99 * ndtr(0.5), rel=1e-12)

    def test_exact_squares(self):
        assert squared(0.1) == Fraction(0.1) * Fraction(0.1)
        assert root(squared(0.1) * 9) == pytest.approx(0.3, rel=2 * UP) and Fraction(root(squared(0.1))) > Fraction(0.1)
        assert root(Fraction(0)) == 0

    def test_largest_eps(self):
        for each in ("0.6", "0.75", "0.9", "0.500001", "0.999999"):
            limit = limit_of(Fraction(each))
            found = largest_eps(lambda eps: squared(mu_of_laplace(float(eps))), limit)
            assert squared(mu_of_laplace(float(found))) <= limit < squared(mu_of_laplace(float(found) * (1 + 1e-11)))
        # Of a Laplace answer: 2 ln(1/(2 - 2 success)); of a count: the logit.
        assert float(largest_eps(lambda eps: squared(mu_of_laplace(float(eps))), limit_of(0.75))) == pytest.approx(
            2 * math.log(2), rel=1e-11
        )


class TestCurves:
    """The curve of an answer is nowhere below G, at 24,000 false alarms and at its corners, in both orders."""

    @pytest.mark.parametrize("eps", EPS)
    @pytest.mark.parametrize("change", [1, 2, 3, 4, 5, 8, 21])
    def test_geometric(self, eps, change):
        m, law = mu_of_geometric(eps, change), lattice(eps, change)
        assert room(law, m) > -ROUNDING
        if eps <= 10 and change <= 3:  # the smallest: less would be too little
            assert room(law, m * (1 - 1e-4)) < -1e-9

    @pytest.mark.parametrize("eps", EPS)
    def test_laplace(self, eps):
        m, power = mu_of_laplace(eps), laplace_power(eps)
        half = 1 - power >= ALPHAS  # the curve is its own mirror image
        assert (power <= gaussian_power(ALPHAS, m) * (1 + ROUNDING))[half].all()
        assert (power > gaussian_power(ALPHAS, m * (1 - 1e-4)) * (1 + ROUNDING))[half].any() or eps > 10

    @pytest.mark.parametrize("eps", EPS)
    def test_pure(self, eps):
        """The coin that attains a loss of eps; nothing else of that loss is told more easily."""
        assert room(lattice(eps, 1), mu_of_pure(eps)) > -ROUNDING
        assert room(lattice(eps, 1), mu_of_pure(eps) * (1 - 1e-4)) < -1e-9

    @pytest.mark.parametrize("eps", EPS)
    def test_exponential(self, eps):
        """All choices of two, whose log-ratios lie between t - eps and t; each of them, in both orders."""
        m, tight = mu_of_exponential(eps), False
        for t in np.linspace(0, eps, 103)[1:-1].tolist():
            q = math.expm1(eps - t) / math.expm1(eps)
            p = q * math.exp(t)
            law = np.array([q, 1 - q]), np.array([p, 1 - p])
            assert room(law, m) > -ROUNDING
            tight |= room(law, m * (1 - 1e-4)) < -1e-9
        assert tight or eps > 10
        missed = (1 - ALPHAS) / (1 + math.expm1(eps) * ALPHAS)  # and of the logistic curve, which lies below them all
        half = missed >= ALPHAS
        power = math.exp(eps) * ALPHAS / (1 + math.expm1(eps) * ALPHAS)
        assert (power <= gaussian_power(ALPHAS, m) * (1 + ROUNDING))[half].all()

    @pytest.mark.parametrize(("steps", "eps"), [*itertools.product([2, 7, 30], [0.1, 1.0, 3.0, 8.0])])
    def test_sums_that_share_a_record(self, steps, eps):
        """However the steps of a record are divided among two sums or three; the coarser, the more is added to eps."""
        rate = eps / steps
        for first in range(steps + 1):
            for second in {0, (steps - first) // 3, (steps - first) // 2}:
                parts = [k for k in (first, second, steps - first - second) if k]
                law = product(*(lattice(rate * k, k) for k in parts))
                assert room(law, mu_of_laplace(eps + len(parts) * on_lattice(rate))) > -ROUNDING

    @pytest.mark.parametrize(("eps", "share"), [*itertools.product([0.1, 1.0, 4.0, 10.0], [0.05, 0.15, 0.5])])
    def test_two_stages(self, eps, share):
        stages = Fraction(eps) * Fraction(share), Fraction(eps) * (1 - Fraction(share))
        for steps in ((40, 60), (1, 3)):
            parts = zip(map(float, stages), steps, strict=True)
            m = mu_of_stages(eps, stages, tuple((1, number) for number in steps))
            assert room(product(*(lattice(*each) for each in parts)), m) > -ROUNDING

    @pytest.mark.parametrize("eps", [0.2, 2.0, 8.0])
    def test_a_choice_and_sums(self, eps):
        """As clipped_sums: half of eps for a choice of two, at its worst and elsewhere, half for a sum in steps."""
        m = math.hypot(mu_of_exponential(eps / 2), mu_of_laplace(eps / 2 + on_lattice(eps / 100)))
        for t in np.linspace(0, eps / 2, 23)[1:-1].tolist():
            q = math.expm1(eps / 2 - t) / math.expm1(eps / 2)
            choice = np.array([q, 1 - q]), np.array([q * math.exp(t), 1 - q * math.exp(t)])
            assert room(product(choice, lattice(eps / 2, 50)), m) > -ROUNDING

    @pytest.mark.parametrize(("rate", "change"), [*itertools.product([0.01, 0.5, 1.9, 2.0, 4.0], [1, 2, 3])])
    def test_records_in_any_groups(self, rate, change):
        """All partitions of up to five records among groups, and the success that was claimed for one group."""
        for records in range(1, 6):
            eps = rate * records
            m = mu_of_records_apart(eps, change, records)
            assert m <= mu_of_pure(eps)
            one = calibrated("geometric", WholeSum(), Universe(0.0, float(change)), Fraction(rate))
            for parts in partitions(records):
                law = product(*(lattice(rate * k, change * k) for k in parts))
                assert sum(mu_of_geometric(rate * k, change * k) ** 2 for k in parts) <= m**2
                assert room(law, m) > -ROUNDING
                assert success(law) <= one.success_of(Fraction(records), squared(m)) + 1e-12

    def test_apart_may_cost_more_than_together(self):
        assert mu_of_records_apart(6.0, 1, 2) > mu_of_geometric(6.0, 2) + 0.1
        assert mu_of_records_apart(1.0, 1, 2) == pytest.approx(mu_of_geometric(1.0, 2), rel=1e-11)
        # Of very many records what is not tried one by one is bounded by Laplace noise.
        assert mu_of_laplace(3.0) < mu_of_records_apart(3.0, 1, 1000) < mu_of_laplace(3.0) * 1.0001
        assert mu_of_geometric(3000.0, 150) < mu_of_records_apart(3000.0, 1, 150) <= mu_of_pure(3000.0)

    @pytest.mark.parametrize(("eps", "categories"), [*itertools.product([0.01, 1.0, 4.0], [2, 3, 10, 200])])
    def test_randomized_response(self, eps, categories):
        design = RandomizedResponse(eps=eps, categories=categories)
        p, q = design.p_truth, design.p_other
        law = np.full(categories, q), np.full(categories, q)
        law[0][0] = law[1][1] = p
        assert room(law, design.mu) > -ROUNDING
        assert room(law, design.mu * (1 - 1e-4)) < -1e-9

    @pytest.mark.parametrize(("eps", "groups"), [*itertools.product(["0.5", "2"], [1, 3])])
    def test_private_keys(self, eps, groups):
        """No attacker on the list of groups is right more often than delta, and what m leaves."""
        delta = Fraction(1, 1000)
        rule = PartitionSelection(Fraction(eps), delta, groups)
        bound = promised(rule.mu2, delta)
        for n in (1, 2, 3, 5, 10, 15):
            now, before = float(rule.probability(n)), float(rule.probability(n - 1))
            law = np.array([now, 1 - now]), np.array([before, 1 - before])
            assert success(many(law, groups)) <= bound
        # In four groups, at eps 1, without delta.
        four = PartitionSelection(Fraction(1), Fraction(1, 10**6), 4)
        assert success_of(four.mu2) == pytest.approx(0.6229, abs=5e-5)


class TestWrongFormulas:
    """What somebody might have written instead is seen to be too little."""

    def test_even_steps_are_not_odd_ones(self):
        m = mu_of_geometric(2.0, 2)
        odd = mu_of_laplace(2.0 + on_lattice(1.0))  # exact for an odd number of steps, and enough for an even one
        assert m == pytest.approx(1.904, abs=5e-4) and m < odd

    def test_success_alone_does_not_give_m(self):
        law = lattice(2.0, 2)
        of_success = 2 * upper_quantile(1 - success(law))
        assert of_success == pytest.approx(1.801, abs=5e-4)
        assert room(law, of_success) < -1e-3
        # With a count at eps .636 beside a sum moved by 2 steps at eps 3.2 the attacker is right .9197 of the time.
        both = product(lattice(3.2, 2), lattice(0.636, 1))
        alone = [2 * upper_quantile(1 - success(each)) for each in (lattice(3.2, 2), lattice(0.636, 1))]
        assert success(both) == pytest.approx(0.9197, abs=5e-5)
        assert success_of(math.hypot(*alone) ** 2) == pytest.approx(0.9092, abs=5e-5)
        own = [mu_of_geometric(3.2, 2), mu_of_geometric(0.636, 1)]
        assert success(both) <= success_of(math.hypot(*own) ** 2)

    def test_choices_are_not_symmetric_pairs(self):
        """Two exponentials at eps 1: .6225 by symmetric pairs, more by others, .6613 at most."""
        best = 0.0
        for one, other in itertools.product(np.linspace(0.02, 0.98, 25).tolist(), repeat=2):
            laws = []
            for t in (one, other):
                q = math.expm1(1 - t) / math.expm1(1.0)
                laws.append((np.array([q, 1 - q]), np.array([q * math.exp(t), 1 - q * math.exp(t)])))
            best = max(best, success(product(*laws)))
        assert 0.6430 < best < 0.6613 < success_of(2 * mu_of_exponential(1.0) ** 2) < 0.671

    def test_a_split_tells_no_more_than_the_whole(self):
        for own in (mu_of_pure, mu_of_laplace, mu_of_exponential):
            for eps, part in itertools.product(EPS, (0.01, 0.3, 0.5)):
                assert math.hypot(own(eps * part), own(eps * (1 - part))) <= own(eps)


class TestMechanisms:
    """What each mechanism says of a person with several records, in several groups."""

    def test_groups(self):
        count = calibrated("geometric", Count(), UNIT, Fraction(1, 4))
        assert count.mu2_of(Fraction(4), 4) == 4 * squared(mu_of_pure(0.25))
        assert count.mu2_of(Fraction(4), 2) == 2 * squared(mu_of_geometric(0.5, 2))
        assert count.mu2_of(Fraction(4), 4, apart=True) == squared(mu_of_records_apart(1.0, 1, 4))
        assert count.mu == pytest.approx(mu_of_pure(0.25), rel=1e-11)
        sums = calibrated("two_sums", Mean(), UNIT, Fraction(1, 4))
        assert sums.mu2_of(Fraction(4), 4) == pytest.approx(4 * mu_of_laplace(0.25) ** 2, rel=1e-11)
        assert sums.mu2_of(Fraction(4), 4, apart=True) == pytest.approx(mu_of_laplace(1.0) ** 2, rel=1e-11)

    def test_bins(self):
        """A person's records may lie in several bins of a histogram, though it is one answer."""
        bins = calibrated("geometric", Histogram(edges=(0.0, 1.0, 2.0)), UNIT, Fraction(5, 2))
        assert bins.mu2_of(Fraction(2)) == squared(mu_of_records_apart(5.0, 1, 2)) > squared(mu_of_geometric(5.0, 2))
        assert room(many(lattice(2.5, 1), 2), math.sqrt(bins.mu2_of(Fraction(2)))) > -ROUNDING

    def test_groups_that_share_a_choice_pay_it_for_all_records(self):
        clipped = calibrated("clipped_sums", Mean(), UNIT, Fraction(1, 4))
        expected = mu_of_exponential(0.5) ** 2 + 4 * mu_of_laplace(0.125) ** 2
        assert clipped.mu2_of(Fraction(4), 4) == pytest.approx(expected, rel=1e-11)

    def test_coarse_noise_counts_for_more(self):
        """Of a count Laplace noise on a grid of its own is nearly continuous; of eps beyond the grid P holds."""
        assert calibrated("laplace", Count(), UNIT, Fraction(1)).mu == pytest.approx(mu_of_laplace(1.0), rel=1e-11)
        assert calibrated("two_sums", Mean(), UNIT, Fraction(2**31)).mu2_of() <= squared(mu_of_pure(2.0**31))
