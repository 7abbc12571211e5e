"""An auditor who knows both answers: no event, nor any last bit, tells them apart by more than eps allows."""

import math

import numpy as np
import pytest
import scipy.stats

from attacks import DRAWS, HI, LO, SIGMAS, STATISTICS, exact, releases
from pdrisk._mechanisms import discrete_laplace

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


class TestAudit:
    """No event is more than exp(eps) times as likely with a person as without, and half the noise would be caught.

    Thresholds are fixed beforehand, with Clopper-Pearson bounds at 1e-13 each side: a sound mechanism, whose worst
    event sits exactly at exp(eps), is accused falsely with at most 2e-13 for each event, 5e-10 for all 2000.
    """

    # The pairs that reach the global sensitivity, and for var and std the empty set beside them
    PAIRS = (
        ("count", [], [4.0]),
        ("count", [1.0, 2.0], [1.0, 2.0, 3.0]),
        ("sum", [], [HI]),
        ("sum", [LO, 5.0], [LO, 5.0, HI]),
        ("mean", [], [HI]),
        ("mean", [], [LO]),
        ("mean", [LO], [LO, HI]),
        ("median", [], [HI]),
        ("median", [HI], [LO, HI]),
        ("quantile", [LO], [LO, HI]),
        ("min", [], [LO]),
        ("min", [HI], [LO, HI]),
        ("max", [], [HI]),
        ("max", [LO], [LO, HI]),
        ("var0", [LO], [LO, HI]),
        ("var1", [LO], [LO, HI]),
        ("std0", [LO], [LO, HI]),
        ("std1", [HI], [LO, HI]),
    )
    SAME = (("quantile", [], [HI]), ("var0", [], [HI]), ("var1", [], [LO]), ("std0", [], [5.0]), ("std1", [], [HI]))
    EPS = 1.0

    def violations(self, name, without_person, with_person, draws=8000, mechanism="laplace"):
        worlds = [without_person, with_person]
        return self.events(name, worlds, releases(name, worlds, self.EPS, draws, mechanism)[0])

    def events(self, name, worlds, seen):
        """Which of the events ``o <= t`` and ``o > t`` are too likely in one world for what they are in the other."""
        answers, draws = [exact(name, world) for world in worlds], seen.shape[1]
        scale = STATISTICS[name][-1] / self.EPS
        thresholds = sorted({f + shift * scale for f in answers for shift in (-2, -1, -0.5, 0, 0.5, 1, 2)})
        thresholds += [LO, math.nextafter(HI, LO)]  # where what lies beyond the bounds is moved to
        below = np.array([[(row <= t).sum() for t in thresholds] for row in seen])
        found = []
        for counts in (below, draws - below):
            lower = np.where(counts > 0, scipy.stats.beta.ppf(1e-13, counts, draws - counts + 1), 0.0)
            upper = np.where(counts < draws, scipy.stats.beta.isf(1e-13, counts + 1, draws - counts), 1.0)
            for one, other in ((0, 1), (1, 0)):
                found += list(np.flatnonzero(lower[one] > math.exp(self.EPS) * upper[other]))
        return found

    @pytest.mark.sampled(12)
    @pytest.mark.parametrize(("name", "one", "other"), PAIRS + SAME)
    def test_real_noise_passes(self, name, one, other):
        assert self.violations(name, one, other, DRAWS) == []

    @pytest.mark.parametrize(("name", "one", "other"), PAIRS)
    def test_these_pairs_reach_the_global_sensitivity(self, name, one, other):
        assert abs(exact(name, one) - exact(name, other)) == pytest.approx(STATISTICS[name][-1])

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize(("name", "one", "other"), PAIRS)
    def test_half_the_noise_is_caught(self, monkeypatch, name, one, other):
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: discrete_laplace(exact, change, eps * 2),
        )
        assert self.violations(name, one, other) != []

    ACCURATE = (
        ("count", "geometric", [], [4.0]),
        ("count", "geometric", [1.0, 2.0], [1.0, 2.0, 3.0]),
        ("mean", "two_sums", [], [HI]),
        ("mean", "two_sums", [], [LO]),
        ("mean", "two_sums", [], [5.0]),
        ("mean", "two_sums", [LO], [LO, HI]),
    )

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(("name", "mechanism", "one", "other"), ACCURATE)
    def test_real_noise_of_the_accurate_mechanisms_passes(self, name, mechanism, one, other):
        """What is done to noisy numbers after they are drawn, as moving them into the bounds, tells nothing more."""
        assert self.violations(name, one, other, DRAWS, mechanism) == []

    @pytest.mark.slow
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(("name", "mechanism", "one", "other"), ACCURATE[:4])
    def test_half_of_their_noise_is_caught(self, monkeypatch, name, mechanism, one, other):
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: discrete_laplace(exact, change, eps * 2),
        )
        assert self.violations(name, one, other, 3 * DRAWS, mechanism) != []

    def test_three_quarters_of_the_noise_are_caught(self, monkeypatch):
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: discrete_laplace(exact, change, eps * 4 / 3),
        )
        assert self.violations("mean", [], [HI], DRAWS) != []

    def test_another_answer_of_nothing_is_caught(self):
        """With f(empty) = lo the mean of one hi would be two global sensitivities away (docs/numbers.md)."""
        worlds = [[], [HI]]
        seen, _ = releases("mean", worlds, self.EPS)
        assert self.events("mean", worlds, seen) == []
        assert self.events("mean", worlds, seen - np.array([[5.0], [0.0]])) != []


class TestLastBits:
    """Mironov 2012: the last bits of floating-point noise tell which answer is under it; a lattice has none to tell."""

    @staticmethod
    def finer_than_one(values):
        """Whether a value close to 0 has bits that a sum ``1 + noise`` cannot have."""
        near = np.abs(values) < 0.2
        return near, near & (np.rint(values * 2.0**53) != values * 2.0**53)

    def test_numpy_noise_gives_the_answer_away(self):
        generator = np.random.default_rng(3)
        near_zero, fine_zero = self.finer_than_one(0.0 + generator.laplace(size=DRAWS))
        _, fine_one = self.finer_than_one(1.0 + generator.laplace(size=DRAWS))
        assert fine_zero.sum() > 0.5 * near_zero.sum() > 100
        assert fine_one.sum() == 0  # an event of probability above 0 in one world, and 0 in the other

    def test_pdrisk_does_not(self):
        seen, _ = releases("count", [[], [3.0]], 1.0)
        for values in seen:
            near, fine = self.finer_than_one(values)
            assert near.sum() > 100
            assert fine.sum() == 0
        # Any single bit of the steps is as even in one world as in the other: 7 standard deviations.
        steps = (seen * 2.0**30).astype(np.int64)
        for bit in range(26):
            one, other = (steps >> bit & 1).mean(axis=1)
            assert abs(one - other) < SIGMAS * 0.5 * math.sqrt(2 / DRAWS)
