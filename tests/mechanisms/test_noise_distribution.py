"""Noise is Laplace and has the scale it says.

Thresholds of the random tests: see `Claim`. None is seeded, because no noise is.
"""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from noisy_answers import DISTANCE, DRAWS, HI, LO, STATISTICS, WIDTH, Claim, answers
from pdrisk._core.lattice import Lattice
from pdrisk._mechanisms.laplace import noisy_steps as laplace

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

CLAIMS = 100  # an upper bound on how many times this file accepts a `Claim`


class TestThresholds:
    """The statistical tests fail by chance less than once in a billion runs, and see a scale that is a tenth off."""

    def test_a_true_claim_is_accepted(self):
        noise = scipy.stats.gamma(DRAWS)
        by_scale = noise.cdf(DRAWS * (1 - WIDTH)) + noise.sf(DRAWS * (1 + WIDTH))
        by_shape = 2 * math.exp(-2 * DISTANCE**2)
        assert CLAIMS * (by_scale + by_shape) < 1e-9

    @pytest.mark.parametrize("factor", [0.9, 1.1])
    def test_a_scale_off_by_a_tenth_is_rejected(self, factor):
        noise = scipy.stats.gamma(DRAWS)
        missed = noise.cdf(DRAWS * (1 + WIDTH) / factor) - noise.cdf(DRAWS * (1 - WIDTH) / factor)
        assert missed < 1e-9

    def test_noise_of_another_shape_or_centre_is_rejected(self):
        generator = np.random.default_rng(1)
        normal = generator.normal(scale=math.sqrt(math.pi / 2), size=DRAWS)  # its mean absolute value is 1
        assert Claim(0, 1).right_scale(normal)
        assert not Claim(0, 1).right_shape(normal)
        assert not Claim(0, 1).right_shape(np.abs(generator.laplace(size=DRAWS)))
        assert not Claim(0, 1).right_shape(generator.laplace(loc=0.15, size=DRAWS))


class TestScale:
    """Noise is Laplace of scale GS/eps: that scale is accepted, 0.9 and 1.1 of it are rejected."""

    @pytest.mark.parametrize("eps", ["0.01", "0.1", "1", "5"])
    def test_of_draws_on_a_lattice(self, eps):
        lattice = Lattice.around(3.0, 0.0)
        draws = laplace(np.full(DRAWS, 12345), lattice, Fraction(eps))
        scale = 3.0 / float(eps)
        assert Claim(12345 * lattice.step, scale).accepts(draws)
        assert not Claim(12345 * lattice.step, 0.9 * scale).accepts(draws)
        assert not Claim(12345 * lattice.step, 1.1 * scale).accepts(draws)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("factor", ["0.9", "1.1"])
    @pytest.mark.parametrize("eps", ["0.01", "1", "5"])
    def test_noise_that_is_a_tenth_off_is_noticed(self, eps, factor):
        draws = laplace(np.zeros(DRAWS, dtype=np.int64), Lattice.around(3.0, 0.0), Fraction(eps) / Fraction(factor))
        assert not Claim(0.0, 3.0 / float(eps)).accepts(draws)

    @pytest.mark.sampled(13)
    @pytest.mark.parametrize("eps", [0.01, 0.1, 1, 5])
    @pytest.mark.parametrize("name", STATISTICS)
    def test_of_releases(self, name, eps):
        *_, nothing, sensitivity = STATISTICS[name]
        table = answers(name, eps)
        draws, scale = table["value"].to_numpy(), sensitivity / eps
        assert table["scale"].to_numpy() == pytest.approx(scale)
        assert Claim(nothing, scale).accepts(draws)
        assert not Claim(nothing, 0.9 * scale).accepts(draws)
        assert not Claim(nothing, 1.1 * scale).accepts(draws)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("name", ["count", "mean", "var1"])
    def test_of_groups_with_records(self, name):
        exact = {"count": 2.0, "mean": 5.5, "var1": 0.5}[name]  # of 5 and 6
        table = answers(name, 1, data={key: [5, 6] for key in range(DRAWS)})
        assert Claim(exact, STATISTICS[name][-1]).accepts(table["value"].to_numpy())

    def test_each_line_of_several_pays_its_share(self):
        frame = pd.DataFrame({"g": [0], "x": [5.0]})
        options = {"bounds": (LO, HI), "by": "g", "keys": range(1, DRAWS + 1), "mechanism": "laplace"}
        table = frame.dprisk.agg({"x": ["mean", "max"]}, eps=1, **options)
        mean, largest = table["value"].to_numpy().reshape(2, DRAWS)
        assert Claim(4.0, 3.0 / 0.5).accepts(mean)
        assert Claim(1.0, 6.0 / 0.5).accepts(largest)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("eps", ["1e-12", "1e-9", "1e-6", "1e3", "1e6"])
    @pytest.mark.parametrize("start", [0, 2**40, -(2**40) - 1])
    def test_of_tiny_and_of_large_eps(self, eps, start):
        """Below some 1e-7 the scale is beyond int64 and low bits of the answer are dropped."""
        lattice = Lattice.around(0.7, 0.0)
        draws = laplace(np.full(DRAWS, start), lattice, Fraction(eps))
        assert Claim(start * lattice.step, 0.7 / float(eps)).accepts(draws)

    def test_of_a_lattice_as_coarse_as_the_noise(self):
        """At eps=2e9 the scale is two steps or less: the draws have the discrete Laplace's own probabilities."""
        lattice, eps = Lattice.of_records(1.0), Fraction(2**30)
        noise = laplace(np.zeros(DRAWS, dtype=np.int64), lattice, eps) / lattice.step
        damping = math.exp(-1)  # scale = 1 step: p(k) = (1 - damping) / (1 + damping) damping**|k|
        for k in range(-3, 4):
            expected = (1 - damping) / (1 + damping) * damping ** abs(k)
            assert abs((noise == k).mean() - expected) < 0.03  # Hoeffding: 2 exp(-2 n .03**2) = 5e-16
