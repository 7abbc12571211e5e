"""Intervals with sampling error: exact coverage of the bounds, and of noise and sample together."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.answers.sampling import sampling_interval
from pdrisk._core.risks.binomial import binomial_tail, clopper_pearson
from pdrisk._core.risks.simple_random_sample import expected_mean, expected_mean_by_spread, expected_total
from pdrisk._core.statistics import Mean, Proportion, Sum
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.numpy.grouped import summary_of_groups

LEVELS = [0.5, 0.95, 0.99]


def binomial(n, p):
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


class TestBounds:
    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("n", [1, 2, 7, 40])
    def test_a_mean_is_covered_by_exact_probabilities(self, n, level):
        """With and without replacement, whatever the share."""
        shares = np.arange(n + 1) / n
        low, high = expected_mean(shares, shares, np.full(n + 1, float(n)), level)
        assert ((low >= 0) & (low <= shares) & (shares <= high) & (high <= 1)).all()
        for p in np.arange(1, 200) / 200:
            held = sum(mass for mass, a, b in zip(binomial(n, p), low, high, strict=True) if a <= p <= b)
            assert held >= level
        size = 2 * n + 3  # of a population that is drawn from without replacement
        for yes in range(size + 1):
            ways = [math.comb(yes, k) * math.comb(size - yes, n - k) for k in range(n + 1)]
            held = sum(w for w, a, b in zip(ways, low, high, strict=True) if a <= yes / size <= b)
            assert held >= level * math.comb(size, n)

    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize(
        ("values", "n"),
        [
            ((0, 0.5, 1), 2),
            ((0, 0.5, 1), 9),
            pytest.param((0, 0.5, 1), 15, marks=pytest.mark.slow),
            pytest.param((0.4, 0.5, 0.52), 20, marks=pytest.mark.slow),
            ((0, 0.01, 1), 10),
            pytest.param((0, 0.01, 1), 18, marks=pytest.mark.slow),
        ],
    )
    def test_a_mean_of_known_spread_is_covered_by_exact_probabilities(self, values, n, level):
        """Of three values, with and without replacement, however often each of them is there."""
        drawn = [(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]
        counts, x = np.array(drawn, dtype=float), np.array(values)
        mean = counts @ x / n
        spread = np.maximum(counts @ x**2 / n - mean**2, 0)
        low, high = expected_mean_by_spread(mean, mean, spread, np.full(len(drawn), float(n)), level)
        assert ((low >= 0) & (low <= mean) & (mean <= high) & (high <= 1)).all()
        ways = [math.comb(n, i) * math.comb(n - i, j) for i, j, _ in drawn]
        for shares in itertools.product((0.0, 0.02, 0.2, 0.45), (0.01, 0.1, 0.5)):
            chances = np.array([*shares, 1 - sum(shares)])
            exact = float(chances @ x)
            masses = [way * math.prod(chances**each) for way, each in zip(ways, counts, strict=True)]
            assert math.fsum(np.array(masses)[(low <= exact) & (exact <= high)]) >= level
            own = np.floor(chances * (n + 5))  # a population that is drawn from without replacement
            own[2] += n + 5 - own.sum()
            found = [math.prod(map(math.comb, map(int, own), each)) for each in drawn]
            exact = float(own @ x / (n + 5))
            held = sum(
                way for way, a, b in zip(found, low, high, strict=True) if a <= exact + 1e-12 and exact <= b + 1e-12
            )
            assert held >= level * math.comb(n + 5, n)

    def test_a_known_spread_makes_a_mean_nearer(self):
        one, n = np.array([0.5]), np.array([10_000.0])
        low, high = expected_mean(one, one, n, 0.95)
        for spread, most in ((0.0, 0.06), (0.01, 0.25), (0.25, 1.05)):
            narrow = expected_mean_by_spread(one, one, np.array([spread]), n, 0.95)
            assert (narrow[1] - narrow[0])[0] < most * (high - low)[0]
        # Bernstein's bound of a standard deviation of .1 at 2/5 of .05: sqrt(2 ln(50)) standard errors, and a little.
        narrow = expected_mean_by_spread(one, one, np.array([0.01]), n, 0.95)
        assert narrow[1][0] - 0.5 == pytest.approx(math.sqrt(2 * math.log(50)) * 0.1 / 100, rel=0.25)
        nobody = expected_mean_by_spread(one, one, np.array([0.0]), np.array([-3.0]), 0.95)
        assert (nobody[0][0], nobody[1][0]) == (0, 1)

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_share_has_the_exact_interval(self, level):
        """Clopper & Pearson's, from another implementation, and by the definition."""
        for n in (1, 2, 10, 1000, 10**6):
            times = sorted({0, 1, n // 3, n - 1, n})
            x = np.array(times) / n
            low, high = expected_mean(x, x, np.full(len(x), float(n)), level)
            for k, *ends in zip(times, low, high, strict=True):
                assert ends == pytest.approx(clopper_pearson(k, n, level), rel=1e-6, abs=1e-12)
                if n == 10 and 0 < k < n:
                    assert sum(binomial(n, ends[0])[k:]) == pytest.approx((1 - level) / 2, rel=1e-6)
                    assert sum(binomial(n, ends[1])[: k + 1]) == pytest.approx((1 - level) / 2, rel=1e-6)
        some = np.array([0.0, 0.3, 0.99, 1.0])
        low, high = expected_mean(some, some, np.full(4, 0.0), level)
        assert low.tolist() == [0] * 4 and high.tolist() == [1] * 4  # of no records nothing is known

    @pytest.mark.parametrize("n", [1, 2, 7, 40])
    def test_tails_by_exact_sums(self, n):
        for p in (Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), Fraction(9, 10)):
            exact = [sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)) for k in range(n + 1)]
            k, size = np.arange(n + 1.0), np.full(n + 1, float(n))
            found = binomial_tail(k, size, np.full(n + 1, float(p)))
            assert found == pytest.approx([float(each) for each in exact], rel=1e-9)
            between = binomial_tail(k[:-1] + 0.4, size[:-1], np.full(n, float(p)))
            assert ((found[1:] <= between) & (between <= found[:-1])).all()

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_total_is_covered_by_exact_probabilities(self, level):
        """Of samples of a fixed size, and of those whose size is a Poisson variable."""
        k = np.arange(200.0)
        low, high = expected_total(k, k, level)
        assert ((low >= 0) & (low <= k) & (k <= high)).all()
        for mean in (0.01, 0.18, 1.0, 2.7, 9.0, 60.0):
            poisson = [math.exp(-mean + i * math.log(mean) - math.lgamma(i + 1)) for i in range(200)]
            assert sum(m for m, a, b in zip(poisson, low, high, strict=True) if a <= mean <= b) >= level
            chances = binomial(80, mean / 80)
            assert sum(m for m, a, b in zip(chances, low, high, strict=False) if a <= mean <= b) >= level
        sure = math.log(2 / (1 - level))
        assert 9 * math.log(9 / high[9]) - 9 + high[9] == pytest.approx(sure)
        assert high[0] == pytest.approx(sure) and low[0] == 0
        assert expected_total(np.array([-3.0]), np.array([-1.0]), level)[1] == pytest.approx(sure)


GROUPS = 1000


def of_samples(statistic, name, universe, draw, n, eps, groups=GROUPS):
    """The interval of each of many samples, with real noise."""
    rng = np.random.default_rng(11)
    x = draw(rng, groups * n)
    codes = np.repeat(np.arange(groups, dtype=np.int32), n)
    mechanism = calibrated(name, statistic, universe, Fraction(eps))
    summary = summary_of_groups(x, codes, groups, universe, mechanism.needs(statistic))
    return sampling_interval(NoisyAnswers(mechanism, mechanism.draw(summary)), 0.9)


class TestCoverage:
    """Noise and choice of records together, far from failing by chance."""

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(("n", "eps"), [(1, 1), (20, 5), (400, 1), (400, 50)])
    @pytest.mark.parametrize("p", [0.0005, 0.1, 0.5])
    def test_of_proportions_and_counts(self, n, eps, p):
        share = (lambda rng, size: (rng.random(size) < p).astype(float), n, eps)
        for statistic, name, exact, universe in (
            (Proportion(), "two_sums", p, Universe(0.0, 1.0)),
            (Sum(), "laplace", n * p, Universe(0.0, 1.0)),
        ):
            low, high = of_samples(statistic, name, universe, *share)
            held = ((low <= exact) & (exact <= high)).mean()
            assert held > 0.9 - 6.5 * math.sqrt(0.09 / GROUPS)
        if n == 400 and p == 0.5:  # and it is no wider than it has to be
            assert np.median(high - low) < 2 * (3.3 * math.sqrt(400 * p) + 5 / eps)

    @pytest.mark.parametrize("p", [0.1, 0.5])
    def test_a_proportion_is_hardly_wider_than_without_noise(self, p):
        """Clopper & Pearson's interval of the same samples; at the level .9, and not always covered."""
        low, high = of_samples(Proportion(), "two_sums", Universe(0.0, 1.0), lambda rng, k: rng.random(k) < p, 1000, 10)
        held = ((low <= p) & (p <= high)).mean()
        assert 0.9 - 6.5 * math.sqrt(0.09 / GROUPS) < held < 0.985
        usual = [np.subtract(*clopper_pearson(k, 1000, 0.9)[::-1]) for k in range(1001)]
        expected = sum(mass * width for mass, width in zip(binomial(1000, p), usual, strict=True))
        assert np.mean(high - low) < 1.12 * expected

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize(
        ("n", "eps"),
        [(20, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((20, 20), (300, 1), (300, 20)))],
    )
    def test_of_skewed_means_and_sums_of_either_sign(self, n, eps):
        def skewed(rng, size):
            return np.minimum(rng.lognormal(0, 1.5, size), 100)

        exact = skewed(np.random.default_rng(0), 1_000_000).mean()
        low, high = of_samples(Mean(), "two_sums", Universe(0.0, 100.0), skewed, n, eps)
        assert ((low <= exact) & (exact <= high)).mean() > 0.88
        low, high = of_samples(Mean(), "bernstein", Universe(0.0, 100.0), skewed, n, eps, 100)
        assert ((low <= exact) & (exact <= high)).mean() > 0.88
        for sign, ends in ((1, (0.0, 100.0)), (-1, (-100.0, 0.0))):
            draw = lambda rng, size, sign=sign: sign * skewed(rng, size)  # noqa: E731
            low, high = of_samples(Sum(), "laplace", Universe(*ends), draw, n, eps)
            total = sign * n * exact
            assert ((low <= total) & (total <= high)).mean() > 0.88


FRAME = pd.DataFrame({"x": np.arange(2000) % 10.0, "g": np.arange(2000) % 2})


class TestRelease:
    def test_is_wider_than_the_noise_and_within_the_bounds(self):
        for release in (
            FRAME.dprisk.mean("x", eps=5, bounds=(0, 10), mechanism="bernstein"),
            FRAME.dprisk.proportion("x > 6", eps=5),
            FRAME.dprisk.sum("x", eps=5, bounds=(0, 10), step=1),
            FRAME.dprisk.count(eps=5, where="x > 6"),
            FRAME.dprisk.count(eps=5, where="x > 6", mechanism="laplace"),
        ):
            low, high = release.interval(kind="sampling")
            assert low < release.low <= release.high < high
            wider = release.interval(0.99, kind="sampling")
            assert wider[0] < low and high < wider[1]
            assert release.interval(kind="noise") == release.interval()

    def test_of_the_mean_of_two_thousand(self):
        """Without its variance: 1.96 sqrt(p (1 - p) / n) is .0218 for p = .45, to each side; the noise adds some."""
        release = FRAME.dprisk.mean("x", eps=2, bounds=(0, 10))
        with pytest.warns(pdrisk.NoisyReleaseWarning, match='ask with mechanism="bernstein"'):
            low, high = release.interval(kind="sampling")
        assert 0.44 < high - low < 0.53

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    def test_a_variance_of_the_same_release_makes_it_narrower(self):
        near = pd.DataFrame({"x": 40 + np.arange(20_000) % 10.0})
        wide, narrow = (
            near.dprisk.mean("x", eps=2, bounds=(0, 100), mechanism=name).interval(kind="sampling")
            for name in ("two_sums", "bernstein")
        )
        assert narrow[0] < 44.5 < narrow[1] and narrow[1] - narrow[0] < (wide[1] - wide[0]) / 8

    def test_is_refused_where_it_means_nothing(self):
        data = FRAME.dprisk
        for release, words in (
            (data.median("x", eps=1, bounds=(0, 10)), "not for median"),
            (data.nunique("x", eps=1), "not for nunique"),
            (data.var("x", eps=9, bounds=(0, 10)), "not for var"),
            (data.sum("x", eps=1, bounds=(-1, 10)), "one side of 0"),
            (data.mean("x", eps=50, bounds=(0, 10), mechanism="laplace"), "'laplace' does not tell"),
        ):
            with pytest.raises(pdrisk.ParameterError, match=words):
                release.interval(kind="sampling")
        with pytest.raises(pdrisk.ParameterError, match='kind is "noise" or "sampling"'):
            data.count(eps=1).interval(kind="both")

    def test_of_withheld_and_rounded_answers(self, tmp_path):
        policy = {"least_group": {"size": 30, "eps": 5}, "round_to": {"count": 50}}
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=100, policy=policy)
        assert np.isnan(FRAME.dprisk.count(eps=1, where="x < 0", ledger=ledger).interval(kind="sampling")).all()
        low, high = FRAME.dprisk.count(eps=1, ledger=ledger).interval(kind="sampling")
        assert low % 50 == high % 50 == 0 and low < 1950 and high > 2050


def test_least_records_of_two_sums():
    """The sum of both noises exceeds what is left off with the probability that is claimed, and not much less."""
    mechanism = calibrated("two_sums", Mean(), Universe(0.0, 1.0), Fraction(1))
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(2, 400_000)) * 2**30 + np.array([[300.0], [700.0]]) * 2**30
    for level in (0.6, 0.95, 0.999):
        held = (mechanism.least_records(noise, level) <= 1000).mean()
        assert abs(held - level) < 6.5 * math.sqrt(level * (1 - level) / 400_000)
