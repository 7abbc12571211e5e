"""An attacker who may ask again and again: how many answers give the exact one away."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from attacks import close
from pdrisk import attack

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


class TestAveraging:
    """Asking again and again averages the noise away: why answers are paid for. A count of 4, eps=.5: scale 2."""

    @staticmethod
    def mean_is_within_a_half(answers, scale=2.0):
        """P(|mean of so many noises| < 1/2), exactly: their sum has the characteristic function (1 + (bt)**2)**-n."""

        def integrand(t):
            return answers / 2 * np.sinc(answers * t / (2 * math.pi)) * (1 + (scale * t) ** 2) ** -answers

        value, error = scipy.integrate.quad(integrand, 0, 2, limit=500)
        assert error < 1e-6
        return 2 / math.pi * value

    @staticmethod
    def median_is_within_a_half(answers, scale=2.0):
        """The same for the median of an odd number: more than half of them must not be beyond either end."""
        beyond = math.exp(-0.5 / scale) / 2
        return 1 - 2 * scipy.stats.binom.sf(answers // 2, answers, beyond)

    def test_printed_numbers(self):
        # docs/reproducing.md
        assert self.mean_is_within_a_half(123) == pytest.approx(0.9499, abs=1e-4)
        assert self.mean_is_within_a_half(123) < 0.95 <= self.mean_is_within_a_half(124)
        assert self.mean_is_within_a_half(130) == pytest.approx(0.956, abs=5e-4)
        assert self.median_is_within_a_half(73) < 0.95 < self.median_is_within_a_half(79)

    def test_simulation(self):
        noise = np.random.default_rng(4).laplace(scale=2.0, size=(40_000, 124))
        assert close((np.rint(4 + noise.mean(axis=1)) == 4).mean(), self.mean_is_within_a_half(124), len(noise))
        half = (np.rint(4 + np.median(noise[:, :76], axis=1)) == 4).mean()
        assert half == pytest.approx(0.95, abs=0.01)
        less = np.abs(noise[:, :30].mean(axis=1)) < 0.5
        assert close(less.mean(), self.mean_is_within_a_half(30), len(noise))

    @pytest.mark.parametrize("answers", [1, 31, pytest.param(123, marks=pytest.mark.slow)])
    def test_real_releases(self, answers):
        """The package's attacker, on answers with real noise."""
        trials = 5000
        found = attack.averaging("count", eps=0.5, mechanism="laplace", answers=answers, trials=trials)
        expected = {"mean": self.mean_is_within_a_half, "median": self.median_is_within_a_half}
        for name, exact in expected.items():
            value = exact(answers) if answers > 1 else 1 - math.exp(-0.25)
            assert close(found[name].details["nearer than half"], value, 2 * trials)
