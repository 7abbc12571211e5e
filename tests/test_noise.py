"""Noise has the scale it says, on a public lattice, fresh, once for each released value, never before a refusal.

Thresholds of the random tests: see `Claim`. None is seeded, because no noise is.
"""

import itertools
import math
import os
import random
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import opendp.measurements
import pandas as pd
import pytest
import scipy.stats

import pdrisk.noise
from pdrisk.core.lattice import Lattice
from pdrisk.errors import ParameterError, QueryFailedError
from pdrisk.noise import check_scale, laplace

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

DRAWS = 20_000
WIDTH = 0.05  # of the scale: what `Claim` allows the mean absolute noise to be off
DISTANCE = 4.0  # of the distribution functions, times sqrt(DRAWS)
CLAIMS = 100  # an upper bound on how many times this file accepts a `Claim`

LO, HI = 1.0, 7.0
# statistic: method, parameters, answer of nothing, global sensitivity: docs/numbers.md
STATISTICS = {
    "count": ("count", {}, 0.0, 1.0),
    "sum": ("sum", {}, 0.0, 7.0),
    "mean": ("mean", {}, 4.0, 3.0),
    "median": ("median", {}, 4.0, 3.0),
    "quantile": ("quantile", {"q": 0.9}, 4.0, 5.4),
    "min": ("min", {}, 7.0, 6.0),
    "max": ("max", {}, 1.0, 6.0),
    "var0": ("var", {"ddof": 0}, 0.0, 9.0),
    "var1": ("var", {"ddof": 1}, 0.0, 18.0),
    "std0": ("std", {"ddof": 0}, 0.0, 3.0),
    "std1": ("std", {"ddof": 1}, 0.0, 6 / math.sqrt(2)),
}
UGLY = [(0.1, 0.7), (-1 / 3, 1e-3), (1e6, 1e6 + 2), (-1e-30, 2e-30), (-1e90, 1e90), (1.0, 675.0), (0.0, 1e-99)]


def answers(name, eps, *, keys=DRAWS, bounds=(LO, HI), data=None):
    """The frame of answers of one statistic for many groups, all empty but those in ``data`` (key: records)."""
    method, parameters, _, _ = STATISTICS[name]
    data = data or {}
    rows = [(key, float(x)) for key, records in data.items() for x in records]
    frame = pd.DataFrame({"g": [g for g, _ in rows], "x": [x for _, x in rows]}).astype({"g": "int64", "x": "float64"})
    options = {} if method == "count" else {"bounds": bounds}
    return getattr(frame.dprisk, method)("x", **parameters, eps=eps, by="g", keys=range(keys), **options)


class Claim:
    """Whether draws look like Laplace noise of one scale around a centre.

    *Scale*: the mean of n absolute values over the scale is Gamma(n)/n, whatever the shape of the rest, and must be
    within 5 % of 1. For 20,000 draws that is 7 standard deviations: false failure 2e-12 (`TestThresholds` computes
    it). A scale off by a tenth is missed with a probability below 1e-9.
    *Shape and centre*: sqrt(n) times the Kolmogorov-Smirnov distance must be below 4; by Massart's inequality
    a true claim fails with a probability of at most 2 exp(-32) = 3e-14, however the distribution looks.
    """

    def __init__(self, centre, scale):
        self.centre, self.scale = centre, float(scale)

    def right_scale(self, draws):
        return abs(np.abs(draws - self.centre).mean() / self.scale - 1) < WIDTH

    def right_shape(self, draws):
        ordered = np.sort(draws)
        below = scipy.stats.laplace(self.centre, self.scale).cdf(ordered)
        rank = np.arange(len(ordered))
        distance = max((below - rank / len(ordered)).max(), ((rank + 1) / len(ordered) - below).max())
        return math.sqrt(len(ordered)) * distance < DISTANCE

    def accepts(self, draws):
        return bool(self.right_scale(draws) and self.right_shape(draws))


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

    @pytest.mark.parametrize("factor", ["0.9", "1.1"])
    @pytest.mark.parametrize("eps", ["0.01", "1", "5"])
    def test_noise_that_is_a_tenth_off_is_noticed(self, eps, factor):
        draws = laplace(np.zeros(DRAWS, dtype=np.int64), Lattice.around(3.0, 0.0), Fraction(eps) / Fraction(factor))
        assert not Claim(0.0, 3.0 / float(eps)).accepts(draws)

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

    @pytest.mark.parametrize("name", ["count", "mean", "var1"])
    def test_of_groups_with_records(self, name):
        exact = {"count": 2.0, "mean": 5.5, "var1": 0.5}[name]  # of 5 and 6
        table = answers(name, 1, data={key: [5, 6] for key in range(DRAWS)})
        assert Claim(exact, STATISTICS[name][-1]).accepts(table["value"].to_numpy())

    def test_each_line_of_several_pays_its_share(self):
        frame = pd.DataFrame({"g": [0], "x": [5.0]})
        table = frame.dprisk.agg({"x": ["mean", "max"]}, eps=1, bounds=(LO, HI), by="g", keys=range(1, DRAWS + 1))
        mean, largest = table["value"].to_numpy().reshape(2, DRAWS)
        assert Claim(4.0, 3.0 / 0.5).accepts(mean)
        assert Claim(1.0, 6.0 / 0.5).accepts(largest)

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


class TestPrivacyMap:
    """OpenDP itself says that the loss is at most eps, exactly, for every pair of answers one record apart."""

    EPSILONS = (
        *("0.1", "1/3", "0.7", "1", "5", "0.01", "20", "1e-3", "1e-6", "1e-7", "1e-8", "1e-9", "1e-12", "1e6", "1e9"),
        *(f"{k}/97" for k in range(1, 97, 5)),
        *(f"{k}/1000000007" for k in (1, 10, 12345, 10**8)),
    )
    SENSITIVITIES = (3.0, 1 / 3, 337.0, 0.1, 1e-30, 2.0, math.nextafter(2.0, 0), math.pi)

    @pytest.fixture
    def asked(self, monkeypatch):
        """Each time OpenDP draws: its measurement, the scale it was made with, and the integers it is to hide."""
        calls = []
        make = opendp.measurements.make_laplace

        def watched(*args):
            measurement = make(*args)

            class Watched:
                map = staticmethod(measurement.map)

                def __call__(self, values):
                    calls.append((measurement, args[2], list(values)))
                    return measurement(values)

            return Watched()

        monkeypatch.setattr(opendp.measurements, "make_laplace", watched)
        # Measurements made before are not watched, and those made here shall not stay.
        pdrisk.noise._measurement.cache_clear()
        yield calls
        pdrisk.noise._measurement.cache_clear()

    @pytest.mark.parametrize("eps", EPSILONS)
    def test_loss_is_at_most_eps(self, asked, eps):
        eps = Fraction(eps)
        lattices = [Lattice.around(s, rounding) for s in self.SENSITIVITIES for rounding in (0.0, s * 2.0**-33)]
        lattices += [Lattice.of_records(s) for s in self.SENSITIVITIES]
        for lattice in lattices:
            asked.clear()
            change = lattice.sensitivity
            starts = [0, 1, -1, 12345, 2**45 - 1, -(2**45), 2**62 - change, -(2**62), *range(7, 2**31, 2**28 + 3)]
            laplace(np.array([[start, start + change] for start in starts]).ravel(), lattice, eps)
            ((measurement, scale, hidden),) = asked
            distance = max(abs(a - b) for a, b in zip(hidden[::2], hidden[1::2], strict=True))
            assert Fraction(measurement.map(distance)) <= eps
            # Not wastefully: a few floats up, and more only where bits of the answer are dropped.
            waste = Fraction(1, 10**15) if eps > Fraction(1, 10**6) else Fraction(1, 10**3)
            assert scale <= distance / eps * (1 + waste)
            assert scale < 2**55

    @pytest.mark.parametrize("bounds", UGLY)
    @pytest.mark.parametrize("name", [name for name in STATISTICS if name != "count"])
    def test_neighbours_are_within_the_lattice_sensitivity(self, monkeypatch, name, bounds):
        """Brute force: all sets of up to three of five values, all their neighbours, as integers."""
        lo, hi = bounds
        values = [lo, math.nextafter(lo, hi), lo + (hi - lo) / 3, (lo + hi) / 2, hi]
        sets = [s for size in range(4) for s in itertools.combinations_with_replacement(range(5), size)]
        seen = []
        monkeypatch.setattr(
            "pdrisk.answer.laplace",
            lambda steps, lattice, eps: seen.append((steps.tolist(), lattice)) or steps * lattice.step,
        )
        answers(name, 1, keys=len(sets), bounds=bounds, data={k: [values[i] for i in s] for k, s in enumerate(sets)})
        ((steps, lattice),) = seen
        of = dict(zip(sets, steps, strict=True))
        changes = [abs(of[s] - of[s[:i] + s[i + 1 :]]) for s in sets for i in range(len(s))]
        assert lattice.sensitivity * (1 - 1e-3) <= max(changes) <= lattice.sensitivity


class TestFreshness:
    """Every value has its own noise: over groups, calls, seeds and processes."""

    BITS = 0.03  # Hoeffding: agreement of n fair, independent bits is off by more with 2 exp(-2 n .03**2) = 5e-16

    def bits(self, draws):
        """Two fair coins in each draw: its sign, and whether it is beyond the median distance."""
        scale = STATISTICS["mean"][-1]
        return [draws > 4.0, np.abs(draws - 4.0) > scale * math.log(2)]

    def test_groups_and_calls_are_independent(self):
        first, second = (answers("mean", 1)["value"].to_numpy() for _ in range(2))
        pairs = [(first, second)] + [(first[lag:], first[:-lag]) for lag in (1, 2, 3, 4, 8, 16, 64, 256, 1024)]
        for one, other in pairs:
            for a, b in itertools.product(self.bits(one), self.bits(other)):
                assert abs((a == b).mean() - 0.5) < self.BITS
        for bit in self.bits(first):
            assert abs(bit.mean() - 0.5) < self.BITS
        assert abs((self.bits(first)[0] == self.bits(first)[1]).mean() - 0.5) < self.BITS

    def test_no_value_comes_twice(self):
        # At eps=1e-6 two draws are equal with a probability of 1/(4 scale) = 1e-16: 6e-11 for 1000 draws.
        values = np.concatenate([answers("mean", 1e-6, keys=250)["value"].to_numpy() for _ in range(4)])
        assert len(np.unique(values)) == 1000

    def test_no_seed_repeats_a_value(self):
        series, values = pd.Series([1.0, 5.0]), []
        for _ in range(10):
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            values.append(series.dprisk.mean(eps=1e-6, bounds=(0, 10)).value)
        assert len(set(values)) == 10

    def test_forked_and_fresh_processes_draw_their_own(self):
        program = (
            "import os, pandas as pd, pdrisk, warnings; warnings.simplefilter('ignore')\n"
            "ask = lambda: repr(pd.Series([1.0]).dprisk.mean(eps=1e-6, bounds=(0, 10)).value)\n"
            "print(ask(), flush=True)\n"
            "for _ in range(4):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        print(ask(), ask(), flush=True); os._exit(0)\n"
            "    os.waitpid(child, 0)\n"
            "print(ask())\n"
        )
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        seen = []
        for _ in range(2):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            seen += done.stdout.split()
        assert len(seen) == len(set(seen)) == 20


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

    @pytest.mark.parametrize("bounds", [b for b in UGLY if b != (1e6, 1e6 + 2)] + [(0.1, 0.2), (1e6, 2.5e6)])
    @pytest.mark.parametrize("name", STATISTICS)
    def test_every_value_is_a_multiple_of_the_step(self, name, bounds):
        lo, hi = bounds
        awkward = [lo + (hi - lo) * share for share in (1 / 3, 0.1, math.pi / 4, 2**-40)]
        step = self.step(name, bounds)
        for eps in (0.7, 1e-3, 1e6):
            table = answers(name, eps, keys=60, bounds=bounds, data={k: awkward[: k % 5] for k in range(60)})
            assert all((Fraction(value) / step).denominator == 1 for value in table["value"])

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


TOO_SMALL = (
    "is below 1e-12, where the noise is a trillion times the largest change of one person: ask with a larger eps."
)
TOO_LARGE = "would add no noise at all on the grid that answers are rounded to: ask with a smaller eps"
NOT_POSITIVE = "eps must be finite and above 0, but is"


class TestRefusals:
    """An epsilon that this machine's numbers cannot hold is refused, with a sentence, before anything is drawn."""

    @pytest.fixture
    def draws(self, monkeypatch):
        """What was asked of the only function that draws."""
        calls = []
        monkeypatch.setattr(
            "pdrisk.answer.laplace",
            lambda steps, lattice, eps: calls.append((steps.shape, lattice, eps)) or laplace(steps, lattice, eps),
        )
        return calls

    FRAME = pd.DataFrame({"g": [0, 1, 1], "x": [1.0, 2.0, np.nan], "name": ["a", "b", "c"]})
    EPS = (
        (1e-13, f"eps=1e-13 {TOO_SMALL}"),
        (9.99e-13, f"eps=9.99e-13 {TOO_SMALL}"),
        (5e-324, f"eps=4.94066e-324 {TOO_SMALL}"),
        (Fraction(1, 10**12) - Fraction(1, 10**40), f"eps=1e-12 {TOO_SMALL}"),
        (Decimal("1e-400"), NOT_POSITIVE),
        (1e13, f"eps=1e+13 {TOO_LARGE}"),
        (1e300, f"eps=1e+300 {TOO_LARGE}"),
        (0, NOT_POSITIVE),
        (-1, NOT_POSITIVE),
        (math.inf, NOT_POSITIVE),
        (math.nan, NOT_POSITIVE),
        (Decimal("Infinity"), NOT_POSITIVE),
        ("1", "eps must be a number"),
        (True, "eps must be a number"),
        (1j, "eps must be a number"),
    )

    @pytest.mark.parametrize(("eps", "sentence"), EPS)
    @pytest.mark.parametrize("name", STATISTICS)
    def test_of_eps(self, draws, name, eps, sentence):
        with pytest.raises(ParameterError) as refusal:
            answers(name, eps, keys=3)
        assert sentence in str(refusal.value)
        assert draws == []

    @pytest.mark.parametrize("eps", [1e-13, 1e-300, 1e13, 1e300])
    def test_of_eps_with_bounds_from_the_data(self, draws, eps):
        sentence = TOO_SMALL if eps < 1 else TOO_LARGE
        with pytest.raises(ParameterError, match="eps=") as refusal:
            self.FRAME.dprisk.mean("x", eps=eps, bounds="column")
        assert sentence in str(refusal.value)
        assert draws == []

    def test_of_an_eps_beyond_floats(self, draws):
        for eps in (10**400, Fraction(10**400)):
            with pytest.raises(ParameterError, match="eps"):
                answers("mean", eps, keys=3)
        assert draws == []

    def test_each_line_of_several_is_judged(self, draws):
        with pytest.raises(ParameterError, match="is below 1e-12"):
            self.FRAME.dprisk.agg({"x": ["mean", "max"]}, eps=1.9e-12, bounds=(0, 10))
        assert draws == []
        self.FRAME.dprisk.agg({"x": ["mean", "max"]}, eps=2e-12, bounds=(0, 10))
        assert len(draws) == 2

    @pytest.mark.parametrize(
        "request_",
        [
            {"column": "y"},
            {"column": "name"},
            {"bounds": None},
            {"bounds": (5, 1)},
            {"bounds": (0, math.inf)},
            {"risk": 0.6},
            {"eps": None},
            {"eps": None, "risk": 0.4},
            {"mechanism": "gauss"},
            {"where": "x > x.mean()"},
            {"where": lambda frame: 1 / 0},
            {"by": "g"},
            {"by": "g", "keys": []},
            {"by": "g", "keys": [1, 1]},
            {"by": "g", "keys": ["1"]},
        ],
        ids=str,
    )
    def test_of_anything_else(self, draws, request_):
        options = {"column": "x", "eps": 1, "bounds": (0, 10)} | request_
        with pytest.raises((ParameterError, QueryFailedError)):
            self.FRAME.dprisk.mean(options.pop("column"), **options)
        assert draws == []

    def test_one_bad_line_stops_the_others(self, draws):
        with pytest.raises(ParameterError):
            self.FRAME.dprisk.agg({"x": "mean", "g": "mean"}, eps=1, bounds={"x": (0, 10)})
        constant = self.FRAME.assign(c=1.0)
        with pytest.raises(QueryFailedError):  # seen only when the data are read, after the first line could be drawn
            constant.dprisk.agg({"x": "mean", "c": "mean"}, eps=1, bounds={"x": (0, 10), "c": "column"})
        assert draws == []

    @pytest.mark.parametrize("lattice", [Lattice.around(3.0, 0.0), Lattice.of_records(1e-30)])
    def test_the_ends_are_allowed(self, lattice):
        largest = lattice.sensitivity  # noise of one step
        check_scale(Fraction(1, 10**12), lattice)
        check_scale(Fraction(largest), lattice)
        with pytest.raises(ParameterError, match="below 1e-12"):
            check_scale(Fraction(1, 10**12 + 1), lattice)
        with pytest.raises(ParameterError, match="no noise at all"):
            check_scale(Fraction(largest + 1), lattice)
        assert np.isfinite(laplace(np.array([0, 2**62, -(2**62)]), lattice, Fraction(1, 10**12))).all()
        noise = laplace(np.full(1000, 7), lattice, Fraction(largest)) / lattice.step - 7
        assert 0.2 < np.mean(noise != 0) < 0.9  # of scale 1: 1 - tanh(1/2) = .54 of the draws move


class TestHowOften:
    """Exactly one draw for each released value, and none for what the curator only looks at."""

    draws = TestRefusals.draws
    FRAME = TestRefusals.FRAME

    @pytest.mark.parametrize("name", STATISTICS)
    def test_one_release_one_draw(self, draws, name):
        method, parameters, *_ = STATISTICS[name]
        getattr(self.FRAME.dprisk, method)("x", **parameters, eps=1, bounds=(0, 10))
        getattr(self.FRAME["x"].dprisk, method)(**parameters, eps=1, bounds=(0, 10))
        assert [shape for shape, *_ in draws] == [(1,), (1,)]
        assert [eps for *_, eps in draws] == [1, 1]

    def test_one_call_for_all_groups(self, draws):
        self.FRAME.dprisk.mean("x", eps=0.1, bounds=(0, 10), by="g", keys=[2, 1, 0])
        assert [(shape, eps) for shape, _, eps in draws] == [((3,), Fraction(1, 10))]

    def test_one_call_for_each_line(self, draws):
        request = {"x": ["mean", ("var", {"ddof": 0}), "count"]}
        self.FRAME.dprisk.agg(request, eps=0.1, bounds=(0, 10))
        self.FRAME.dprisk.agg(request, eps=0.1, bounds=(0, 10), by="g", keys=[0, 1])
        assert [(shape, eps) for shape, _, eps in draws] == [((1,), Fraction(1, 30))] * 3 + [
            ((2,), Fraction(1, 30))
        ] * 3

    def test_looking_at_a_release_draws_nothing(self, draws):
        release = self.FRAME.dprisk.mean("x", eps=1, bounds=(0, 10))
        draws.clear()
        value = release.value
        seen = [repr(release), release._repr_html_(), release.interval(), release.to_dict(True), release.to_series()]
        assert len(seen) == 5
        assert release.public()["value"] == float(release) == release.value == value
        assert draws == []

    def test_the_curator_draws_nothing(self, draws, monkeypatch):
        monkeypatch.setattr(opendp.measurements, "make_laplace", None)
        self.FRAME.dprisk.assess("x", bounds=(0, 10))
        self.FRAME.dprisk.assess("x", "mean", [0.5, 2], bounds=(0, 10), by="g", keys=[0, 1])
        self.FRAME.dprisk.individual_risk("x", "var", eps=1, bounds=(0, 10))
        for metric in ("worst_case", "two_worlds", "many_worlds", "identifiability"):
            self.FRAME.dprisk.epsilon_for("x", "mean", risk=0.7, metric=metric, bounds=(0, 10))
        assert draws == []


def test_opendp_is_imported_by_the_first_draw_only():
    program = (
        "import sys, pandas as pd, pdrisk\n"
        "loaded = lambda: any(name.split('.')[0] == 'opendp' for name in sys.modules)\n"
        "series = pd.Series([1.0, 2.0])\n"
        "series.dprisk.assess(bounds=(0, 10)); series.dprisk.individual_risk(eps=1, bounds=(0, 10))\n"
        "try: series.dprisk.mean(eps=1e-13, bounds=(0, 10))\n"
        "except pdrisk.ParameterError: pass\n"
        "assert not loaded()\n"
        "series.dprisk.mean(eps=100, bounds=(0, 10))\n"
        "assert loaded()\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_noise_may_draw():
    """No other module touches OpenDP, and a random generator only picks samples that decide speed or examples."""
    source = os.path.dirname(pdrisk.__file__)
    users = {"opendp": set(), "random": set()}
    for folder, _, files in os.walk(source):
        for file in files:
            if file.endswith(".py"):
                with open(os.path.join(folder, file), encoding="utf-8") as text:
                    code = text.read()
                name = os.path.relpath(os.path.join(folder, file), source).replace(os.sep, "/")
                users["opendp"] |= {name} if "opendp." in code else set()
                users["random"] |= {name} if "np.random" in code or "import random" in code else set()
    assert users == {"opendp": {"noise.py"}, "random": {"engines/ranks.py", "datasets.py"}}
