"""Noise moves answers on a public lattice, on which the loss is at most eps."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from noisy_answers import DRAWS, HI, LO, STATISTICS, answers
from pdrisk._core.lattice import Lattice
from pdrisk._mechanisms.laplace import noisy_steps as laplace
from pdrisk._mechanisms.noise import sampler
from pdrisk._mechanisms.noise.reference import opendp_measurement

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

UGLY = [(0.1, 0.7), (-1 / 3, 1e-3), (1e6, 1e6 + 2), (-1e-30, 2e-30), (-1e90, 1e90), (1.0, 675.0), (0.0, 1e-99)]


class TestPrivacyMap:
    """The loss is at most eps, exactly, for every pair of answers one record apart; OpenDP says so, too."""

    EPSILONS = (
        *("0.1", "1/3", "0.7", "1", "5", "0.01", "20", "1e-3", "1e-6", "1e-7", "1e-8", "1e-9", "1e-12", "1e6", "1e9"),
        *(f"{k}/97" for k in range(1, 97, 5)),
        *(f"{k}/1000000007" for k in (1, 10, 12345, 10**8)),
    )
    SENSITIVITIES = (3.0, 1 / 3, 337.0, 0.1, 1e-30, 2.0, math.nextafter(2.0, 0), math.pi)

    @pytest.mark.parametrize("several", [False, True])
    @pytest.mark.parametrize("eps", EPSILONS)
    def test_loss_is_at_most_eps(self, monkeypatch, eps, several):
        """The loss is the distance of what is hidden over the scale, with no rounding."""
        eps, asked = Fraction(eps), []
        draw = sampler.plus_discrete_laplace
        monkeypatch.setattr(
            sampler,
            "plus_discrete_laplace",
            lambda exact, scale: asked.append((exact.tolist(), scale)) or draw(exact, scale),
        )
        lattices = [Lattice.around(s, rounding) for s in self.SENSITIVITIES for rounding in (0.0, s * 2.0**-33)]
        lattices += [Lattice.of_records(s) for s in self.SENSITIVITIES]
        for lattice in lattices[:: 6 if several else 1]:
            change = lattice.sensitivity
            starts = [0, 1, -1, 12345, 2**45 - 1, -(2**45), 2**62 - change, -(2**62)]
            starts += range(7, 2**31, 2**24 if several else 2**28 + 3)
            laplace(np.array([[start, start + change] for start in starts]).ravel(), lattice, eps)
            ((hidden, scale),) = asked
            asked.clear()
            distance = max(abs(a - b) for a, b in zip(hidden[::2], hidden[1::2], strict=True))
            assert distance / scale <= eps
            # Not wastefully: more only where bits of the answer are dropped.
            assert scale <= distance / eps * (1 + Fraction(1, 10**3 if eps <= Fraction(1, 10**6) else 10**15))
            assert scale < 2**55
            # OpenDP rounds the scale, a float, and its loss by a float or two.
            theirs = opendp_measurement(1, 1 / scale)
            assert Fraction(theirs.map(distance)) <= eps * (1 + Fraction(1, 10**15))

    @pytest.mark.parametrize("bounds", UGLY)
    @pytest.mark.parametrize("name", [name for name in STATISTICS if name != "count"])
    def test_neighbours_are_within_the_lattice_sensitivity(self, monkeypatch, name, bounds):
        """Brute force: all sets of up to three of five values, all their neighbours, as integers."""
        lo, hi = bounds
        values = [lo, math.nextafter(lo, hi), lo + (hi - lo) / 3, (lo + hi) / 2, hi]
        sets = [s for size in range(4) for s in itertools.combinations_with_replacement(range(5), size)]
        seen = []
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: seen.append((np.atleast_2d(exact).T.tolist(), change)) or exact,
        )
        data = {k: [values[i] for i in s] for k, s in enumerate(sets)}
        for mechanism in {"laplace", "two_sums" if name == "mean" else "laplace"}:
            answers(name, 1, keys=len(sets), bounds=bounds, data=data, mechanism=mechanism)
            (hidden, largest) = seen.pop()
            assert not seen
            of = dict(zip(sets, hidden, strict=True))
            pairs = [(of[s], of[s[:i] + s[i + 1 :]]) for s in sets for i in range(len(s))]
            changes = [sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairs]
            assert largest * (1 - 1e-3) <= max(changes) <= largest
            if mechanism == "two_sums":
                assert set(changes) == {largest}  # whatever the record


class TestLattice:
    """Every value is an integer number of steps that no data decide, so its last bits tell nothing (Mironov 2012)."""

    @staticmethod
    def step(name, bounds):
        """2**-30 of the largest power of two in a record's magnitude (sum, count), 2**-31 of that in GS (others)."""
        lo, hi = map(Fraction, bounds)
        width = hi - lo
        squared = {
            "count": Fraction(1), "sum": max(abs(lo), abs(hi)) ** 2, "mean": (width / 2) ** 2,
            "median": (width / 2) ** 2, "quantile": (Fraction(0.9) * width) ** 2, "min": width**2, "max": width**2,
            "var0": (width**2 / 4) ** 2, "var1": (width**2 / 2) ** 2, "std0": (width / 2) ** 2, "std1": width**2 / 2,
        }[name]  # fmt: skip
        power = math.floor(math.log2(squared.numerator) - math.log2(squared.denominator)) // 2
        return Fraction(2) ** (power - (30 if name in ("count", "sum") else 31))

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("bounds", [b for b in UGLY if b != (1e6, 1e6 + 2)] + [(0.1, 0.2), (1e6, 2.5e6)])
    @pytest.mark.parametrize("name", STATISTICS)
    def test_every_value_is_a_multiple_of_the_step(self, name, bounds):
        lo, hi = bounds
        awkward = [lo + (hi - lo) * share for share in (1 / 3, 0.1, math.pi / 4, 2**-40)]
        step = self.step(name, bounds)
        for eps in (0.7, 1e-3, 1e6):
            table = answers(name, eps, keys=60, bounds=bounds, data={k: awkward[: k % 5] for k in range(60)})
            assert all((Fraction(value) / step).denominator == 1 for value in table["value"])

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("name", "records"), [("mean", [1 / 3 + 2]), ("std1", [1.1, 2.3, 5.7]), ("sum", [math.pi])]
    )
    def test_last_bits_are_the_same_for_neighbours(self, name, records):
        """The parity and the next bit of the number of steps are fair coins whatever the data: 0.03 off has 5e-16."""
        step = float(self.step(name, (LO, HI)))
        for data in ({}, dict.fromkeys(range(DRAWS), records)):
            steps = (answers(name, 1, data=data)["value"].to_numpy() / step).astype(np.int64)
            assert abs((steps & 1).mean() - 0.5) < 0.03
            assert abs((steps >> 1 & 1).mean() - 0.5) < 0.03

    @pytest.mark.parametrize("sensitivity", TestPrivacyMap.SENSITIVITIES)
    def test_it_holds_two_to_the_31_steps(self, sensitivity):
        for lattice, power in ((Lattice.around(sensitivity, 0.0), 31), (Lattice.of_records(sensitivity), 30)):
            assert math.frexp(lattice.step)[0] == 0.5
            assert 2**power <= Fraction(sensitivity) / Fraction(lattice.step) < 2 ** (power + 1)
            # Up, and by less than a billionth.
            assert 1 <= lattice.sensitivity * Fraction(lattice.step) / Fraction(sensitivity) < 1 + Fraction(1, 10**9)

    def test_a_rounding_error_is_paid_for_twice(self):
        plain, careful = Lattice.around(3.0, 0.0), Lattice.around(3.0, 1e-6)
        assert (careful.sensitivity - plain.sensitivity) * careful.step == pytest.approx(2e-6, rel=1e-3)
