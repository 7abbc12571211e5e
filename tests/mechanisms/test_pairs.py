"""Covariance, correlation and slope by noisy sums of products: parts, losses, worlds, values and intervals."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from noisy_answers import seeded
from pdrisk._core.lattice import LARGEST_PLACES, PLACES
from pdrisk._core.pairs import Corr, Cov, Slope
from pdrisk._core.products import WholeArithmetic, divided, products_of_places
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk.engines.numpy.pairs import summary_of_pairs

SQUARE = Rectangle(0.0, 1.0, Universe(0.0, 1.0))
BOUNDS = Rectangle(1.0, 675.0, Universe(-20.0, 80.0))
ASKED = (Cov(), Cov(0), Corr(), Slope())
DEGREES = ((1, 1), (1, 2), (2, 1), (2, 2))
IDS = [each.label for each in ASKED]
PLACE = st.sampled_from([0, 1, 2**29, PLACES - 1, PLACES]) | st.integers(0, PLACES)
UNIT = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)


def mechanism_of(statistic, eps=1, universe=SQUARE):
    return calibrated("bernstein_products", statistic, universe, Fraction(eps))


def summarised(mechanism, pairs):
    x, y = np.array(pairs, dtype=float).reshape(-1, 2).T
    return summary_of_pairs(x, y, mechanism.universe, mechanism.needs(mechanism.statistic))


def exact(mechanism, summary):
    """What noise is added to; it is that of `PLACES` and eps."""
    asked = []

    def sampler(numbers, change, eps):
        asked.append((change, eps))
        return numbers

    drawn = mechanism.draw(summary, sampler)
    assert asked == [(PLACES, mechanism.eps)]
    return drawn


def moved(one, other):
    """How far two vectors of sums are apart."""
    return int(np.abs(one - other).sum())


class TestParts:
    """A record adds to the sums whole numbers, none negative, that sum to `PLACES`: the products of two polynomials."""

    @given(k=PLACE, other=PLACE)
    def test_of_any_record(self, k, other):
        for degrees in DEGREES:
            parts = [int(part) for part in products_of_places(np.array(k), np.array(other), degrees)]
            assert min(parts) >= 0 and sum(parts) == PLACES
            places = Fraction(k, PLACES), Fraction(other, PLACES)
            own, beside = (
                [math.comb(degree, at) * x**at * (1 - x) ** (degree - at) for at in range(degree + 1)]
                for degree, x in zip(degrees, places, strict=True)
            )
            wanted = [PLACES * a * b for a, b in itertools.product(own, beside)]
            assert sum(abs(part - each) for part, each in zip(parts, wanted, strict=True)) < 24

    @pytest.mark.parametrize("degrees", DEGREES)
    def test_of_every_record_on_small_lattices(self, degrees):
        for whole in (1, 2, 3, 7):
            by = WholeArithmetic(whole, operator.sub, lambda a, b, whole=whole: a * b // whole)
            for k, other in itertools.product(range(whole + 1), repeat=2):
                parts = divided(k, other, degrees, by)
                assert min(parts) >= 0 and sum(parts) == whole


class TestLoss:
    """Adding or removing any record moves the sums by `PLACES` in all: eps, for everybody."""

    @given(pairs=st.lists(st.tuples(UNIT, UNIT), max_size=5), record=st.tuples(UNIT, UNIT))
    def test_of_neighbours(self, pairs, record):
        for statistic in ASKED:
            mechanism = mechanism_of(statistic, "1/3")
            with_, without = (summarised(mechanism, each) for each in ([*pairs, record], pairs))
            assert moved(exact(mechanism, with_), exact(mechanism, without)) == PLACES
            assert mechanism.loss(with_).tolist() == mechanism.loss_of_records(np.zeros(1), with_).tolist() == [1 / 3]

    def test_of_more_people_than_the_sums_hold(self):
        mechanism = mechanism_of(Cov())
        part = np.array([[PLACES // 2], [PLACES // 4], [PLACES // 8], [PLACES // 8]])
        for less in (0, 1, PLACES // 2, PLACES):
            sums = np.full((4, 1), LARGEST_PLACES - less)
            before, after = (
                exact(mechanism, Summary(np.array([2**32]), products={(1, 1): each})) for each in (sums, sums + part)
            )
            assert moved(before, after) <= PLACES and after.max() <= LARGEST_PLACES

    @pytest.mark.parametrize("whole", [2, 4])
    def test_success(self, whole):
        """Over every output of small lattices, no record is told more often than said; one in a corner is."""
        eps, by = 3.0, WholeArithmetic(whole, operator.sub, lambda a, b: a * b // whole)
        a = math.exp(-eps / whole)
        at = np.arange(-int(12 * whole / eps), int(12 * whole / eps) + 1)
        found = {}
        for k, other in itertools.product(range(whole + 1), repeat=2):
            pair = [np.ones(1), np.ones(1)]
            for part in filter(None, divided(k, other, (2, 2), by)):  # the others tell nothing
                own = [(1 - a) / (1 + a) * a ** np.abs(at - shift) for shift in (0, part)]
                pair = [np.multiply.outer(p, q).ravel() for p, q in zip(pair, own, strict=True)]
            found[k, other] = 1 - np.minimum(*pair).sum() / 2
        claimed = mechanism_of(Corr(), 3).success
        assert max(found.values()) <= claimed + 1e-4
        assert found[0, 0] == found[whole, 0] == pytest.approx(claimed, abs=1e-4)


class TestWorlds:
    """Between the worlds without one record or another, no output tells more than is said."""

    def between(self, statistic, pairs):
        """What is said, and the largest loss between two of the worlds, by the definition."""
        mechanism = mechanism_of(statistic, 2)
        sums = [exact(mechanism, summarised(mechanism, [pair])) for pair in pairs]
        largest = max(moved(one, other) for one, other in itertools.product(sums, repeat=2)) / PLACES * 2
        return float(mechanism.loss_between_worlds(summarised(mechanism, pairs))[0]), largest

    @given(pairs=st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=5))
    def test_never_too_small(self, pairs):
        for statistic in ASKED:
            said, largest = self.between(statistic, pairs)
            assert largest <= said <= 4

    def test_on_a_grid(self):
        points = [0, 0.25, 1]
        for one, other in itertools.combinations(itertools.product(points, repeat=2), 2):
            for statistic in (Cov(), Slope(), Corr()):
                said, largest = self.between(statistic, [one, other])
                assert largest <= said
                if 0 in (one[0], other[0]) and 1 in (one[0], other[0]):
                    assert said == largest == 4  # nothing is left in common

    @pytest.mark.parametrize(
        ("statistic", "pairs", "loss"),
        [
            (Cov(), [(0, 0), (0.5, 0.5)], 2 * 2 * 0.75),
            (Cov(), [(0.25, 0.5), (0.75, 0.5)], 2 * 2 * 0.5),
            (Corr(), [(0, 0), (0.5, 0.5)], 2 * 2 * (1 - 1 / 16)),
            (Slope(), [(0, 0), (0.5, 0.5)], 2 * 2 * (1 - 1 / 8)),
        ],
    )
    def test_attained(self, statistic, pairs, loss):
        said, largest = self.between(statistic, pairs)
        assert largest == pytest.approx(loss, abs=1e-6) and said == pytest.approx(loss, abs=1e-6)

    def test_of_nobody(self):
        mechanism = mechanism_of(Corr())
        assert mechanism.loss_between_worlds(summarised(mechanism, [])).tolist() == [0.0]
        with pytest.raises(pdrisk.ParameterError, match="two columns"):
            mechanism.worlds(np.zeros(1), summarised(mechanism, []))


def by_numpy(statistic, x, y):
    """The answer of records that lie within the bounds."""
    if isinstance(statistic, Cov):
        return float(np.cov(x, y, ddof=statistic.ddof)[0, 1]) if len(x) > statistic.ddof else 0.0
    if isinstance(statistic, Corr):
        return float(np.corrcoef(x, y)[0, 1])
    return float(np.polyfit(y, x, 1)[0])


class TestValue:
    """Without noise it is the statistic; with it, it stays within the range of possible answers."""

    @pytest.mark.parametrize("statistic", ASKED, ids=IDS)
    def test_of_the_exact_sums(self, statistic):
        generator = np.random.default_rng(3)
        for n in (4, 5, 50):
            x = generator.uniform(1, 675, n)
            y = np.clip(x / 10 + generator.normal(0, 9, n), -20, 80)
            mechanism = mechanism_of(statistic, universe=BOUNDS)
            summary = summarised(mechanism, np.stack([x, y], axis=1))
            wanted = by_numpy(statistic, x, y)
            assert mechanism.value(exact(mechanism, summary))[0] == pytest.approx(wanted, rel=1e-5)
            assert statistic.value(summary, BOUNDS)[0] == pytest.approx(wanted, rel=1e-5)
            assert np.isnan(statistic.local_sensitivity(summary, BOUNDS)).all()

    @pytest.mark.parametrize("statistic", ASKED, ids=IDS)
    @pytest.mark.parametrize("pairs", [[], [(0.3, 0.7)], [(0.3, 0.7)] * 9])
    def test_of_what_does_not_vary(self, statistic, pairs):
        mechanism = mechanism_of(statistic)
        value = mechanism.value(exact(mechanism, summarised(mechanism, pairs)))[0]
        assert value == pytest.approx(0, abs=1e-8)
        beside = [(0.1 * at, 0.7) for at in range(9)]
        assert mechanism.value(exact(mechanism, summarised(mechanism, beside)))[0] == pytest.approx(0, abs=1e-8)

    @pytest.mark.parametrize("statistic", ASKED, ids=IDS)
    def test_within_the_range(self, statistic):
        for pairs in ([], [(1, -20)], [(1, -20), (675, 80)], [(300, 30)] * 40, [(1, -20), (675, 80)] * 20):
            mechanism = mechanism_of(statistic, "1/2", BOUNDS)
            summary = summarised(mechanism, pairs).of_rows(np.zeros(100, dtype=np.int64))
            drawn = mechanism.draw(summary, seeded(1))
            values, (low, high) = mechanism.value(drawn), mechanism.interval(drawn, 0.95)
            least, most = statistic.value_range(BOUNDS)
            assert (least <= low).all() and (low <= values).all() and (values <= high).all() and (high <= most).all()

    @pytest.mark.parametrize("statistic", ASKED, ids=IDS)
    def test_nobody_seems_to_be_there(self, statistic):
        mechanism = mechanism_of(statistic, universe=BOUNDS)
        for each in (-5, 0, np.iinfo(np.int64).min):
            drawn = np.full((math.prod(degree + 1 for degree in statistic.degrees), 1), each)
            assert mechanism.value(drawn).tolist() == [0.0]
            assert [end.item() for end in mechanism.interval(drawn, 0.95)] == [*statistic.value_range(BOUNDS)]

    @pytest.mark.parametrize("ddof", [0, 1])
    def test_global_sensitivity_of_a_covariance(self, ddof):
        """No record of a grid moves that of any others by more, and one of two in opposite corners by as much."""
        points = list(itertools.product((0, 0.5, 1), repeat=2))
        largest = 0.0
        for size in range(3):
            for records in itertools.combinations_with_replacement(points, size):
                for more in points[::2]:
                    both = (np.array([*records, *extra], dtype=float).reshape(-1, 2) for extra in ((), (more,)))
                    before, after = (by_numpy(Cov(ddof), *each.T) for each in both)
                    largest = max(largest, abs(after - before))
        assert largest == pytest.approx(Cov(ddof).global_sensitivity(SQUARE))

    def test_the_smallest_eps(self):
        for eps, words in (("1e-9", "64-bit"), ("1e-13", "below 1e-12")):
            with pytest.raises(pdrisk.ParameterError, match=words):
                mechanism_of(Corr(), eps).check()


def shapes(n):
    """Records of [0, 1]: two columns of each shape."""
    generator = np.random.default_rng(5)
    z, noise, first = generator.random(n), generator.random(n), (np.arange(n) == 0) * 1.0
    return {
        "independent": (z, noise),
        "on a line": (z, 1 - z),
        "near a line": (z, 0.9 * z + 0.1 * noise),
        "weak": (z, 0.3 * z + 0.7 * noise),
        "yes and no": ((z > 0.5) * 1.0, (z + 0.3 * noise > 0.65) * 1.0),
        "near 0": (z**6, z**6 * 0.9 + 0.02 * noise),
        "narrow": (0.5 + 0.1 * (z - 0.5), 0.5 + 0.05 * (z + noise - 1)),
        "one in a corner": (first, first),
        "one constant": (z, np.full(n, 0.7)),
        "the other constant": (np.full(n, 0.3), z),
    }


class TestInterval:
    """It holds the truth as often as it says, among few and among many."""

    def covered(self, statistic, shape, n, eps, groups, seed):
        mechanism = mechanism_of(statistic, eps)
        summary = summarised(mechanism, np.stack(shapes(n)[shape], axis=1))
        truth = float(statistic.value(summary, SQUARE)[0])
        drawn = mechanism.draw(summary.of_rows(np.zeros(groups, dtype=np.int64)), seeded(seed))
        low, high = mechanism.interval(drawn, 0.95)
        return float(np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high)))

    @pytest.mark.parametrize("statistic", ASKED[1:], ids=IDS[1:])
    @pytest.mark.parametrize(("shape", "n"), [("weak", 3), ("yes and no", 60), ("near a line", 3000)])
    def test_coverage(self, statistic, shape, n):
        found = self.covered(statistic, shape, n, 1, 5000, 3)
        assert 0.93 < found < (1.01 if n < 3000 else 0.98)  # 6 standard deviations below .95

    @pytest.mark.slow
    @pytest.mark.parametrize("statistic", [Cov(), Corr(), Slope()], ids=["cov", "corr", "slope"])
    @pytest.mark.parametrize("shape", shapes(1))
    def test_coverage_everywhere(self, statistic, shape):
        """The table of docs/mechanisms.md is printed by it (``-s``)."""
        sizes = (1, 3, 10, 30, 100, 1000, 10**5)
        found = [self.covered(statistic, shape, n, 1, 1000, 7) for n in sizes]
        print(f"\n{statistic.label} | {shape} | " + " | ".join(f"{each:.3f}".lstrip("0") for each in found))  # noqa: T201
        assert min(found) > 0.92  # of 10,000 draws each, as in the table, .949

    def test_the_critical_value_is_never_too_small(self):
        # One Laplace variable: exp(-t). Two of scale 1: (1 + t/2) exp(-t). Three: (8 + 5 t + t**2) exp(-t) / 8.
        tails = {1: lambda t: 1.0, 2: lambda t: 1 + t / 2, 3: lambda t: (8 + 5 * t + t * t) / 8}
        for several, factor in tails.items():
            for level, scale in itertools.product((0.5, 0.95, 0.999), (1e-9, 1.0, 50.0)):
                weights = np.zeros((9, 1))
                weights[:several] = -scale
                t = float(critical_of_sum(weights, level)[0]) / scale
                assert 0.94 < factor(t) * math.exp(-t) / (1 - level) < 1
        assert critical_of_sum(np.zeros((4, 2)), 0.95).tolist() == pytest.approx([0, 0])

    def test_accuracy(self):
        """Mean absolute error at eps 1 of 1,000 records that lie near a line."""
        for statistic, worst in ((Cov(), 0.0008), (Corr(), 0.012), (Slope(), 0.014)):
            mechanism = mechanism_of(statistic)
            summary = summarised(mechanism, np.stack(shapes(1000)["near a line"], axis=1))
            values = mechanism.value(mechanism.draw(summary.of_rows(np.zeros(2000, dtype=np.int64)), seeded(2)))
            assert np.abs(values - statistic.value(summary, SQUARE)).mean() < worst
