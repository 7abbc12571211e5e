"""Exact sampler of the discrete Laplace distribution: every decision against exact numbers, and all of it by counts.

The random bits of these tests are seeded, so that nothing here fails by chance.
"""

import bisect
import decimal
import itertools
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from pdrisk._mechanisms.noise import exact_laplace, sampler
from pdrisk._mechanisms.noise.entropy import system_bits
from pdrisk._mechanisms.noise.exact_laplace import FIRST, KNOWN, ONE, discrete_laplace_noise, plus_discrete_laplace
from pdrisk._mechanisms.noise.exact_uniform import ExactUniform, scaled_exp
from pdrisk._mechanisms.noise.reference import opendp_laplace

LONG = Fraction(2**31 * 10**40 + 3, 3 * 10**39 + 7)
SMALL = [Fraction(each) for each in (".1", ".5", "1", "3.7", "20", "31.9", "32", "33", "100.1")]
LARGE = [Fraction(2**30), Fraction(2**33, 5), LONG, Fraction(2**45), Fraction(2**54), Fraction(2**54) - Fraction(1, 3)]
ALL = [Fraction(1, 10**400), *SMALL, *LARGE]


def seeded(seed):
    """Words that are the same in every run."""
    rng = np.random.default_rng(seed)
    return lambda size: rng.integers(0, 2**64, size, dtype=np.uint64)


def scripted(*words):
    """The given words, one after another, and an error if more are asked for."""
    left = list(words)

    def bits(size):
        given, left[:] = left[:size], left[size:]
        assert len(given) == size, "more bits were drawn than expected"
        return np.array(given, dtype=np.uint64)

    return bits


def exp(exponent):
    """exp(-exponent) to 100 digits, by another library than the one that is tested."""
    with decimal.localcontext(prec=100, Emin=-(10**9), Emax=10**9):
        return Fraction((-decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator)).exp())


class TestExp:
    """Bounds of exp(-x) hold it, and are as close as they say."""

    EXPONENTS = (Fraction(0), Fraction(1, 10**30), *SMALL, Fraction(2, 3), Fraction(250), Fraction(10**50 + 1, 10**49))

    @pytest.mark.parametrize("exponent", EXPONENTS)
    def test_bounds(self, exponent):
        for bits in (1, 12, 32, 100, 260):
            low, high = scaled_exp(exponent, bits)
            assert low <= exp(exponent) * 2**bits * (1 + Fraction(1, 10**95))
            assert high >= exp(exponent) * 2**bits * (1 - Fraction(1, 10**95))
            assert 0 <= high - low <= 2

    def test_far_beyond_all_bits(self):
        assert scaled_exp(Fraction(10**400), 64) == (0, 1)

    @pytest.mark.parametrize("exponent", EXPONENTS[1:])
    def test_a_comparison_draws_bits_until_it_is_certain(self, exponent):
        for length in (1, 12, 32):
            places = math.floor(exp(exponent) * 2 ** (length + 128))
            for more, is_below in ((-1, True), (0, True), (1, False), (2, False)):
                u = places + more
                known, first, second = u >> 128, (u >> 64) % 2**64, u % 2**64
                # The third word makes u about places + 1/2 of its last unit: only the reference knows the side.
                bits = scripted(first, second, 2**63)
                truth = Fraction(u * 2 + 1, 2 ** (length + 129)) < exp(exponent) if more in (0, 1) else is_below
                assert ExactUniform(known, length, bits).is_below_exp(exponent) == truth


class TestHighPart:
    """It is the number of k with ``u < exp(-k step)``: a falling step function of u, judged at each of its steps."""

    @pytest.mark.whole
    @pytest.mark.parametrize("scale", ALL, ids=lambda scale: f"{float(scale):.3g}")
    def test_at_every_threshold(self, scale):
        law = exact_laplace._law(scale)
        step = 2**law.shift / scale
        count = len(law.thresholds)
        ends = range(count, 0, -1) if scale > Fraction(1, 10**6) else ()
        points = [math.floor(exp(k * step) * 2**96) for k in ends] or [0]  # as uniforms of 96 bits, ascending
        assert law.thresholds.tolist() == [point >> 64 for point in points]
        assert law.thresholds[0] == 0 and (count == 1 or law.thresholds[1] > 0)
        for point in points[1:]:
            for u in (point - 2**64, point - 1, point + 1, point + 2**64):
                if u >= 2**64:  # else the table does not decide: see below
                    assert self.found(law, u) == count - bisect.bisect_left(points, u)

    @staticmethod
    def found(law, u):
        """The high part for a uniform of 96 bits."""
        first, rest, last = u >> (96 - FIRST), (u >> 64) % 2 ** (KNOWN - FIRST), u % 2**64
        words = iter([rest << (64 - KNOWN + FIRST), last, 2**63])
        return int(exact_laplace._high(law, np.array([first]), lambda _: np.array([next(words)], dtype=np.uint64))[0])

    @pytest.mark.parametrize("scale", ALL, ids=lambda scale: f"{float(scale):.3g}")
    def test_at_both_ends_of_every_cell(self, scale):
        law = exact_laplace._law(scale)
        first = np.arange(2**FIRST)
        for rest in (1, 2**64 - 1):  # of these, all thresholds but 0 are far
            bits = lambda size, rest=rest: np.full(size, rest, dtype=np.uint64)  # noqa: E731
            known = (first << (KNOWN - FIRST)) + (rest >> (64 - KNOWN + FIRST))
            expected = (law.thresholds > known[:, np.newaxis]).sum(axis=1)
            at = ~np.isin(known, law.thresholds)
            assert at.sum() > 4000 - len(law.thresholds)
            assert exact_laplace._high(law, first[at], bits).tolist() == expected[at].tolist()

    @pytest.mark.parametrize("scale", [Fraction(1), Fraction(37, 10), Fraction(2**45)])
    def test_beyond_the_table(self, scale):
        """Uniforms that begin with 32 zeros."""
        law = exact_laplace._law(scale)
        step = 2**law.shift / scale
        for u in (1, 2**20 + 1, 2**64 - 1, 3**39):
            high = self.found(law, u)
            assert high >= len(law.thresholds) - 1
            assert exp((high + 1) * step) * 2**96 < u + Fraction(1, 2) < exp(high * step) * 2**96


class TestLowPart:
    """It is kept if ``u < exp(-low / scale)``: one step for each low, judged at that step and where floats decide."""

    @pytest.mark.whole
    @pytest.mark.parametrize("scale", [each for each in ALL if each >= 32], ids=lambda scale: f"{float(scale):.3g}")
    def test_at_every_step(self, scale, monkeypatch):
        exactly = []
        monkeypatch.setattr(exact_laplace, "ExactUniform", lambda *known: exactly.append(known) or ExactUniform(*known))
        law = exact_laplace._law(scale)
        largest = 2**law.shift - 1
        for low in {0, 1, largest // 3, largest // 2, largest - 1, largest}:
            point = exp(low / scale) * ONE
            linear, square = (1 - low / scale) * ONE, (1 - low / scale + (low / scale) ** 2 / 2) * ONE
            near = {math.floor(at) + more for at in (point, linear, square) for more in range(-4, 5)}
            near |= {math.floor(at) // 2**20 * 2**20 + more for at in (point, linear) for more in (-1, 0, 2**20)}
            near |= {0, ONE - 1}
            for known in sorted(each for each in near if 0 <= each < ONE):
                for last in (0, 2**64 - 1):
                    truth = Fraction(known * 2**64 + last, 2**64) < point
                    assert self.kept(law, low, known, last) == truth
        if scale > 1000:
            assert exactly  # no float decided between the two nearest

    @staticmethod
    def kept(law, low, known, last):
        rest = (known % 2 ** (KNOWN - FIRST)) << (64 - KNOWN + FIRST)
        words = iter([rest, last, last])
        bits = lambda _: np.array([next(words)], dtype=np.uint64)  # noqa: E731
        return bool(exact_laplace._is_kept(law, np.array([low]), np.array([known >> (KNOWN - FIRST)]), bits)[0])

    def test_undecided_floats_are_rare(self, monkeypatch):
        exactly = []
        monkeypatch.setattr(exact_laplace, "ExactUniform", lambda *known: exactly.append(known) or ExactUniform(*known))
        discrete_laplace_noise(300_000, Fraction(2**30), seeded(1))
        assert len(exactly) < 20


class TestDraw:
    """A draw puts its parts together, from bits that no other part and no other draw has."""

    @pytest.mark.parametrize("scale", [Fraction(1), Fraction(33), Fraction(2**30), Fraction(2**43), Fraction(2**54)])
    def test_each_part_has_bits_of_its_own(self, scale):
        """Flipping one bit of a word changes one of high part, low part, sign and low part's uniform, or nothing."""
        law = exact_laplace._law(scale)
        rng = np.random.default_rng(3)
        base = int(rng.integers(2**63)) | 1
        second = [int(rng.integers(2**63))] if law.shift > exact_laplace.IN_ONE_WORD else []

        def parts(word, *low):
            asked = {}

            def high(law, first, bits):
                asked["high"] = int(first[0])
                return np.array([5], dtype=np.uint64)

            def is_kept(law, low, first, bits):
                asked["first"] = int(first[0])
                return np.array([True])

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(exact_laplace, "_high", high)
                patch.setattr(exact_laplace, "_is_kept", is_kept)
                bits = scripted(word, *low)
                (magnitude,), (negative,), (kept,) = exact_laplace._tried(law, bits(1), bits)
            assert kept and int(magnitude) >> law.shift == 5
            return asked | {"low": int(magnitude) % 2**law.shift, "negative": bool(negative)}

        before, moved = parts(base, *second), {"high": 0, "first": 0, "low": 0, "negative": 0}
        for bit in range(64):
            changed = [[base ^ (1 << bit), *second]] + [[base, each ^ (1 << bit)] for each in second]
            for words in changed:
                after = parts(*words)
                different = [name for name in before if after[name] != before[name]]
                assert len(different) <= 1
                for name in different:
                    moved[name] += 1
                    assert name == "negative" or abs(after[name] - before[name]).bit_count() == 1
        with_low = law.shift > 0
        assert moved == {"high": FIRST, "first": FIRST * with_low, "low": law.shift, "negative": 1} or (
            not with_low and moved == {"high": FIRST, "low": 0, "negative": 1}
        )

    def test_what_is_rejected_is_drawn_again_as_a_whole(self):
        # A uniform of .999... rejects the largest low part, and a minus sign a zero; then 3 is kept, with a minus.
        scale, shift = Fraction(2**30), 26
        assert exact_laplace._law(scale).shift == shift
        high = (2**12 - 1) << 52  # a uniform for which it is 0
        rejected, rest = high | (2**12 - 1) << 40 | (2**shift - 1) << 1, 2**64 - 1
        bits = scripted(rejected, rest, high | 1, high | 3 << 1 | 1)
        assert discrete_laplace_noise(1, scale, bits).tolist() == [-3]

    @pytest.mark.parametrize("scale", ALL, ids=lambda scale: f"{float(scale):.3g}")
    def test_few_one_by_one_are_the_same_as_in_arrays(self, scale, monkeypatch):
        """Of the same words, also where sums leave 64 bits; what one by one is not decided are a few of them."""
        rng, law = np.random.default_rng(6), exact_laplace._law(scale)
        words = [rng.integers(0, 2**64, rng.integers(1, 5), dtype=np.uint64) for _ in range(400)]
        exact = [rng.choice([5, -7, 2**62, -(2**62)], len(each)).astype(np.int64) for each in words]
        open_ones = sum(exact_laplace._of_few(law, [0], each[:1].tolist()) is None for each in words)
        assert open_ones < 400 * (1 if law.shift > exact_laplace.IN_ONE_WORD or scale < 2 else 0.2) + 1

        def sums():
            sources = [itertools.chain(first.tolist(), count) for first, count in zip(words, fresh(), strict=True)]
            return [
                plus_discrete_laplace(
                    numbers, scale, lambda n, own=own: np.array([next(own) for _ in range(n)], dtype=np.uint64)
                ).tolist()
                for numbers, own in zip(exact, sources, strict=True)
            ]

        def fresh():
            return (map(int, np.random.default_rng(at).integers(0, 2**63, 400)) for at in range(len(words)))

        one_by_one = sums()
        monkeypatch.setattr(exact_laplace, "_of_few", lambda *_: None)
        assert sums() == one_by_one

    def test_rejections_keep_the_others(self):
        """Noise comes to where it belongs: each sum is that of its own number."""
        exact = np.arange(100_000) * 10**6
        for scale in (Fraction(1, 2), Fraction(40)):
            noise = plus_discrete_laplace(exact, scale, seeded(4)) - exact
            assert np.abs(noise).max() < 50 * scale

    @pytest.mark.parametrize("size", [0, 1, 2**13 - 1, 2**13, 2**13 + 1])
    def test_size(self, size):
        noise = discrete_laplace_noise(size, Fraction(2**30))
        assert noise.shape == (size,) and noise.dtype == np.int64
        assert len(np.unique(noise)) > size * 0.999 - 1

    @pytest.mark.parametrize("scale", [0, -1, 2**58])
    def test_refusals(self, scale):
        with pytest.raises(ValueError, match="above 0 and below"):
            discrete_laplace_noise(1, Fraction(scale))


class TestEnds:
    """Sums beyond 64 bits are moved to their end, as exact sums would be; nothing wraps around."""

    LEAST, MOST = -(2**63), 2**63 - 1

    def test_of_every_magnitude(self):
        numbers = [sign * (2**power + more) for power in (0, 30, 61, 62) for more in (-1, 0) for sign in (1, -1)]
        exact = np.array([each for each in numbers if abs(each) <= 2**62])
        for magnitude in (0, 1, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**63 + 2**62, 2**64 - 1):
            for negative in (False, True):
                found = exact_laplace._sum(
                    exact, np.full(exact.shape, magnitude, dtype=np.uint64), np.full(exact.shape, negative)
                )
                sums = [each + (-magnitude if negative else magnitude) for each in exact.tolist()]
                assert found.tolist() == [min(max(each, self.LEAST), self.MOST) for each in sums]

    @pytest.mark.parametrize("sign", [0, 1])
    def test_of_noise_that_never_ends(self, sign):
        """A uniform of all zeros is below every power: the high part stops where no sum lies within 64 bits."""
        first = iter([np.array([sign], dtype=np.uint64)])
        exact = np.array([-(2**62) if sign == 0 else 2**62])
        noisy = plus_discrete_laplace(exact, Fraction(2**57), lambda size: next(first, np.zeros(size, dtype=np.uint64)))
        assert noisy.tolist() == [self.LEAST if sign else self.MOST]

    def test_the_largest_high_part_is_beyond_all_sums(self):
        for scale in ALL:
            law = exact_laplace._law(scale)
            assert law.most << law.shift >= 2**63 + 2**62
            assert len(law.thresholds) << law.shift < 2**63  # and what tables decide is far within


def expected_counts(scale, size, reach):
    """Of -reach to reach, with what lies beyond at both ends."""
    a = math.exp(-1 / float(scale))
    k = np.arange(-reach, reach + 1)
    likely = (1 - a) / (1 + a) * a ** np.abs(k)
    beyond = a ** (reach + 1) / (1 + a)
    return size * np.concatenate([[beyond], likely, [beyond]])


def fits(counts, expected):
    """Whether counts are those expected, by chi-square: those of other bits are not once in a hundred million times."""
    enough = expected >= 10
    observed = np.append(counts[enough], counts[~enough].sum())
    wanted = np.append(expected[enough], expected[~enough].sum())
    kept = wanted > 0
    return scipy.stats.chisquare(observed[kept], wanted[kept]).pvalue > 1e-8


class TestDistribution:
    """Counts of many draws, from seeded bits."""

    SIZE = 200_000

    @pytest.mark.parametrize("scale", SMALL, ids=float)
    def test_of_small_scales(self, scale):
        reach = math.ceil(12 * scale)
        noise = np.clip(discrete_laplace_noise(self.SIZE, scale, seeded(5)), -reach - 1, reach + 1)
        counts = np.bincount(noise + reach + 1, minlength=2 * reach + 3)
        assert fits(counts, expected_counts(scale, self.SIZE, reach))
        if scale >= 1:  # such counts would show a scale that is 10 % off
            assert not fits(counts, expected_counts(scale * Fraction(11, 10), self.SIZE, reach))
        if 1 <= scale <= 30:  # and zeros that come from both signs
            twice = expected_counts(scale, self.SIZE, reach)
            twice[reach + 1] *= 2
            assert not fits(counts, twice * self.SIZE / twice.sum())

    @pytest.mark.parametrize("scale", LARGE, ids=float)
    def test_of_large_scales(self, scale):
        noise = discrete_laplace_noise(self.SIZE, scale, seeded(9))
        # Bins of equal probability, which at these scales those of the continuous distribution are.
        share = np.exp(-np.abs(noise) / float(scale))
        bins = np.clip((share * 500).astype(int), 0, 499) + 500 * (noise < 0)
        assert fits(np.bincount(bins, minlength=1000), np.full(1000, self.SIZE / 1000))
        wrong = np.exp(-np.abs(noise) / float(scale) / 1.02)
        assert not fits(np.bincount((wrong * 500).astype(int), minlength=501), np.full(501, self.SIZE / 501))
        shift = exact_laplace._law(scale).shift
        for at in (0, shift - 3, shift + 3):  # the last bits, and those where the high part begins
            digit = np.exp(-(2.0**at) / float(scale) * np.arange(128))
            assert fits(np.bincount((np.abs(noise) >> at) & 127, minlength=128), digit / digit.sum() * self.SIZE)

    @pytest.mark.parametrize("scale", [Fraction(40), Fraction(700)], ids=float)
    def test_where_both_parts_meet(self, scale):
        """Every magnitude modulo 64, against the sum of its probabilities."""
        noise = np.abs(discrete_laplace_noise(self.SIZE, scale, seeded(7)))
        a = math.exp(-1 / scale)
        k = np.arange(64 * 400)
        likely = (2 * (1 - a) / (1 + a) * a**k - (k == 0) * (1 - a) / (1 + a)).reshape(400, 64).sum(axis=0)
        assert fits(np.bincount(noise % 64, minlength=64), likely * self.SIZE)

    @pytest.mark.parametrize("scale", [Fraction(1), Fraction(40), Fraction(2**30)], ids=float)
    def test_draws_are_independent_and_symmetric(self, scale):
        noise = discrete_laplace_noise(self.SIZE, scale, seeded(8))
        above, far = noise > 0, np.abs(noise) > scale * math.log(2)
        assert abs(above.sum() - (noise < 0).sum()) < 6 * math.sqrt(self.SIZE)  # standard deviations, or more
        for lag in (1, 2, 3, 64, exact_laplace.PIECE - 1, exact_laplace.PIECE):
            for one, other in ((above, above), (far, far), (above, far), (far, above)):
                table = np.bincount(2 * one[lag:] + other[:-lag], minlength=4).reshape(2, 2)
                assert scipy.stats.chi2_contingency(table).pvalue > 1e-8

    @pytest.mark.slow
    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(33), Fraction(2**30)], ids=float)
    def test_against_opendp(self, scale):
        """Two samples, of which OpenDP's is not seeded: a false alarm once in a million."""
        size = 200_000
        opendp = opendp_laplace(np.zeros(size, dtype=np.int64), 1, 1 / scale)
        ours = discrete_laplace_noise(size, scale)
        if scale > 1000:
            assert scipy.stats.ks_2samp(opendp, ours, method="asymp").pvalue > 1e-6
            return
        reach = int(6 * scale)
        tables = [np.bincount(np.clip(each, -reach, reach) + reach, minlength=2 * reach + 1) for each in (opendp, ours)]
        kept = np.add(*tables) > 20
        assert scipy.stats.chi2_contingency(np.array(tables)[:, kept]).pvalue > 1e-6


class TestSampler:
    """One source of noise for all answers, however many numbers they have; it does not repeat itself."""

    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(33)], ids=float)
    def test_one_number_at_a_time(self, scale, monkeypatch):
        """Calls for a single number each, of the same seeded bits as those of the tests above."""
        size, reach, change, eps = 10_000, math.ceil(12 * scale), scale.numerator, Fraction(scale.denominator)
        monkeypatch.setattr(plus_discrete_laplace, "__defaults__", (seeded(5),))
        nothing = np.zeros((1, 1), dtype=np.int64)
        noise = np.array([sampler.discrete_laplace(nothing, change, eps).item() for _ in range(size)])
        counts = np.bincount(np.clip(noise, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
        assert fits(counts, expected_counts(scale, size, reach))
        assert not fits(counts, expected_counts(scale * Fraction(6, 5), size, reach))

    def test_shapes_and_places(self):
        exact = np.arange(2 * 3 * 100).reshape(2, 3, 100) * 10**9
        for each in (exact, exact.transpose(2, 0, 1), exact[:, :, ::2]):
            noisy = sampler.discrete_laplace(each, 1, Fraction(1))
            assert noisy.shape == each.shape and noisy.dtype == np.int64
            assert np.abs(noisy - each).max() < 100

    @pytest.mark.system_entropy
    def test_words_are_fresh(self):
        words = np.concatenate([system_bits(1000) for _ in range(3)] + [system_bits(0)])
        assert words.dtype == np.uint64 and len(np.unique(words)) == 3000
        assert abs(np.unpackbits(words.view(np.uint8)).mean() - 0.5) < 0.01  # 9 standard deviations

    @pytest.mark.slow
    def test_forked_and_fresh_processes_draw_their_own(self):
        program = (
            "import os, numpy as np; from fractions import Fraction\n"
            "from pdrisk._mechanisms.noise.sampler import discrete_laplace\n"
            "draw = lambda: print(*discrete_laplace(np.zeros(9, dtype=np.int64), 2**50, Fraction(1)), flush=True)\n"
            "draw()\n"
            "for _ in range(3):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        draw(); draw(); os._exit(0)\n"
            "    os.waitpid(child, 0)\n"
            "draw()\n"
        )
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        seen = done.stdout.split()
        assert len(seen) == len(set(seen)) == 8 * 9
