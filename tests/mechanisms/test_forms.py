"""Law of sums and ratios of noisy numbers: against enumeration of all noise, dense matrices and fine grids."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._answer.arithmetic.exact_expressions import Added, Multiplied, computed, constants, interval, shown
from pdrisk._answer.arithmetic.forms import Linear, Ratio, form_of
from pdrisk._answer.arithmetic.measured import Measurements, new_draw
from pdrisk._mechanisms.laws import whole_sums
from pdrisk._mechanisms.laws.laplace_sums import bound_of_sum, critical_of_sum
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.laws.whole_sums import MOST_POINTS, critical_of_whole, points_for

PLACES = 2**30


def mass_of(terms):
    """Probabilities of a sum, one convolution after another: {number: probability}."""
    found = {0: 1.0}
    for weight, number, scale in terms:
        a = math.exp(-1 / scale)
        reach = math.ceil(45 * scale) + 1
        own = {weight * k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}
        for _ in range(number):
            both = {}
            for (x, p), (y, q) in itertools.product(found.items(), own.items()):
                both[x + y] = both.get(x + y, 0.0) + p * q
            found = both
    return found


def counts(*drawn, eps=1.0, least=0.0):
    """A count of each cell as forms, as if these had been drawn."""
    law = Law(1, Fraction(1), 1 / Fraction(eps), (1.0,), least=least, whole=True)
    return form_of(Measurements.of(law, np.array([drawn]), new_draw()))


def means(*pairs, eps=1.0, bounds=(0.0, 1.0)):
    """A mean of each cell by two_sums, as if these distances from lo and from hi had been drawn."""
    law = Law(2, Fraction(1, PLACES), 1 / Fraction(eps), bounds[::-1], (1.0, 1.0))
    drawn = np.rint(np.array(pairs).T * PLACES).astype(np.int64)
    return form_of(Measurements.of(law, drawn, new_draw()))


def total(forms):
    found = forms[0]
    for form in forms[1:]:
        found = computed("+", found, form)
    return found


def further(eps):
    """How far whole noise reaches beyond continuous noise: k less this is exceeded as often as k is reached."""
    return math.log(2 / (1 + math.exp(-eps))) / eps


class TestSumsOfWholeNoise:
    """The bound is the smallest whole number that the noise keeps within often enough."""

    @pytest.mark.parametrize(
        "terms",
        [
            ((1, 1, 1.0),), ((1, 2, 1.0),), ((1, 3, 2.0),), ((3, 1, 2.0), (2, 1, 2.0)), ((2, 2, 0.5), (4, 1, 1.5)),
            ((5, 1, 0.3), (1, 1, 3.0)), ((1, 2, 0.05),),
        ],
        ids=str,
    )  # fmt: skip
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_by_enumeration(self, terms, level):
        mass = mass_of(terms)
        within = lambda t: math.fsum(p for x, p in mass.items() if abs(x) <= t)  # noqa: E731
        found = critical_of_whole(terms, level)
        assert within(found) >= level - 1e-12
        assert found == 0 or within(found - 1) < level

    def test_figures_of_the_design(self):
        """2, 10 and 50 counts at eps .5: RELEASES.md, section 2."""
        assert [critical_of_whole(((1, many, 2.0),), 0.95) for many in (2, 10, 50)] == [8, 18, 39]

    @pytest.mark.parametrize("terms", [((1, 4, 50.0),), ((7, 1, 3.0), (1, 9, 0.2))], ids=str)
    def test_the_transform_is_long_enough(self, terms, monkeypatch):
        """With eight times as many points nothing changes; with an eighth, what lies beyond them counts near 0."""
        levels = [0.95, 1 - 1e-9]
        found = [critical_of_whole.__wrapped__(terms, level) for level in levels]
        for times, same in ((8, True), (1 / 8, False)):
            monkeypatch.setattr(whole_sums, "points_for", lambda terms, times=times: int(points_for(terms) * times))
            assert ([critical_of_whole.__wrapped__(terms, level) for level in levels] == found) is same


class TestBounds:
    """Bounds of sums of continuous noise."""

    @pytest.mark.parametrize("times", [[1, 1], [2, 1], [1, 3], [4, 9]])
    def test_several_of_one_scale_are_as_many_of_their_own(self, times):
        scales = np.array([[1.0, 0.2], [0.5, 3.0]])
        number = np.array(times, dtype=float)[:, np.newaxis] * np.ones(2)
        apart = np.repeat(scales, times, axis=0)
        assert bound_of_sum(scales, 0.95, number) == pytest.approx(bound_of_sum(apart, 0.95, np.ones(apart.shape)))
        if sum(times) > 3:
            assert critical_of_sum(scales, 0.95, number) == pytest.approx(critical_of_sum(apart, 0.95))

    @pytest.mark.parametrize("scales", [[1.0], [1.0, 0.3], [2.0, 1.0, 0.5], [1.0] * 4, [1.0, 2, 3, 4, 5]], ids=str)
    def test_by_convolution_of_densities(self, scales):
        step = 0.02
        x = np.arange(-3000, 3001) * step
        density = np.zeros(x.shape)
        density[3000] = 1.0
        for scale in scales:
            own = np.exp(-np.abs(x) / scale)
            density = np.convolve(density, own / own.sum(), mode="same")
        (bound,) = bound_of_sum(np.array(scales)[:, np.newaxis], 0.95, np.ones((len(scales), 1)))
        within = density[np.abs(x) <= bound].sum()
        assert 0.949 <= within <= (0.951 if len(scales) < 4 else 0.9535)

    @pytest.mark.parametrize("eps", [0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 3.05, 3.7, 5.0])
    @pytest.mark.parametrize("many", [1, 3])
    def test_of_coarse_noise(self, eps, many):
        """Of counts with weights without a common measure: by enumeration, never below the level.

        Without what is added, it is .905 at eps 3 where one weight is small.
        """
        a, reach = math.exp(-eps), int(25 * math.sqrt(many) / eps) + 6
        k = np.arange(-reach, reach + 1)
        own = (1 - a) / (1 + a) * a ** np.abs(k)
        sums = own
        for _ in range(many - 1):
            sums = np.convolve(sums, own, mode="same")
        for weight in (0.0101, 0.1013, 0.3017, 0.7071, 0.9, 1.4142, 3.3017):
            forms = [computed("*", counts(50, eps=eps), constants(w, 1)) for w in (1.0, *[weight] * many)]
            noise, mass = np.abs(k[:, np.newaxis] - weight * k), own[:, np.newaxis] * sums
            bound = total(forms).reach(0.95)[0]
            assert mass[noise <= bound].sum() >= 0.9499

    def test_nothing_has_no_noise(self):
        assert bound_of_sum(np.zeros((2, 3)), 0.95, np.ones((2, 3))).tolist() == [0, 0, 0]


class TestLinear:
    """Sums know their variables by identity."""

    def test_a_draw_that_is_used_twice_counts_once(self):
        a, b = counts(10, 20), counts(1, 2)
        assert computed("-", a, a).value().tolist() == [0, 0]
        assert computed("-", a, a).reach(0.95).tolist() == [0, 0]
        twice = computed("+", a, a)
        assert twice.reach(0.95).tolist() == (2 * a.reach(0.95)).tolist()
        assert computed("-", computed("+", a, b), b).reach(0.95).tolist() == a.reach(0.95).tolist()
        assert computed("+", a, b).reach(0.95)[0] < 2 * a.reach(0.95)[0]

    def test_cells_of_one_draw_are_different_variables(self):
        cells = counts(3, 4, 5)
        one, other = (cells.gathered(np.zeros(1, int), np.array([at]), np.ones(1), 1) for at in (0, 1))
        assert computed("-", one, other).reach(0.95)[0] > 0

    @given(data=st.data())
    def test_against_dense_matrices(self, data):
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        k, rows, size = rng.integers(1, 6, 3)
        cells = counts(*rng.integers(0, 50, k), eps=0.7)
        matrix = rng.integers(-2, 3, (rows, k)).astype(float)
        again = rng.integers(-2, 3, (size, rows)).astype(float)
        place = np.indices(matrix.shape).reshape(2, -1)
        into = cells.gathered(place[0], place[1], matrix.ravel(), int(rows))
        place = np.indices(again.shape).reshape(2, -1)
        found = into.gathered(place[0], place[1], again.ravel(), int(size))
        weights = again @ matrix
        assert found.value() == pytest.approx(weights @ cells.value())
        assert found.whole
        for row, reach in zip(weights, found.reach(0.9), strict=True):
            some = np.abs(row[row != 0]).astype(int)
            terms = tuple((int(w), int(n), 1 / 0.7) for w, n in zip(*np.unique(some, return_counts=True), strict=True))
            assert reach == (critical_of_whole(terms, 0.9) if terms else 0)

    def test_whole_only_where_all_is(self):
        a = counts(10)
        assert computed("*", a, constants(3.0, 1)).whole
        assert not computed("/", a, constants(4.0, 1)).whole
        assert computed("/", a, constants(4.0, 1)).value().tolist() == [2.5]
        assert computed("+", a, constants(0.5, 1)).interval(0.95)[0] == pytest.approx(10.5 - a.reach(0.95)[0])

    def test_weights_with_a_common_measure_have_a_lattice_of_their_own(self):
        """Of a mean of seven counts: a seventh of the bound of their sum, and an exact number at the end is inside."""
        forms = [counts(10, eps=0.7) for _ in range(7)]
        mean = computed("/", total(forms), constants(7.0, 1))
        assert mean.reach(0.95)[0] == pytest.approx(critical_of_whole(((1, 7, 1 / 0.7),), 0.95) / 7)
        assert mean.reach(0.95)[0] * 7 > critical_of_whole(((1, 7, 1 / 0.7),), 0.95)
        third = computed("+", computed("/", forms[0], constants(3.0, 1)), computed("/", forms[1], constants(7.0, 1)))
        bound = bound_of_sum(np.array([[1 / 3], [1 / 7]]) / 0.7, 0.95, np.ones((2, 1))) + further(0.7) / 3
        assert third.reach(0.95) == pytest.approx(bound)

    def test_rounding_counts_in_full(self):
        law = Law(1, Fraction(1), Fraction(1), (1.0,), rounding=2.5, whole=True)
        one = form_of(Measurements.of(law, np.array([[10.0]]), new_draw()))
        exact = counts(10).reach(0.95)[0]
        assert one.reach(0.95).tolist() == [exact + 2]  # of whole numbers, 2.5 is 2

    def test_range(self):
        a, b = counts(3, least=0.0), counts(4, least=-math.inf)
        assert [end.tolist() for end in computed("*", a, constants(-2.0, 1)).range()] == [[-math.inf], [0]]
        assert [end.tolist() for end in computed("+", a, constants(5.0, 1)).range()] == [[5], [math.inf]]
        assert [end.tolist() for end in computed("+", a, b).range()] == [[-math.inf], [math.inf]]

    def test_beyond_what_is_transformed_it_is_bounded(self):
        wide = [counts(5, eps=1e-6) for _ in range(4)]
        assert points_for(((1, 4, 1e6),)) > MOST_POINTS
        bound = critical_of_sum(np.full((4, 1), 1e6), 0.95)[0]
        assert total(wide).reach(0.95)[0] == pytest.approx(bound + 0.5, abs=1)

    def test_what_is_withheld_is_not_known(self):
        law = Law(1, Fraction(1), Fraction(1), (1.0,), whole=True)
        cells = form_of(Measurements.of(law, np.array([[np.iinfo(np.int64).min, 4]]), new_draw()))
        both = cells.gathered(np.zeros(2, int), np.arange(2), np.ones(2), 1)
        assert np.isnan(both.value()).all()
        low, high = interval(both, 0.95)
        assert np.isnan(low).all() and np.isnan(high).all()


class TestRatio:
    """All r whose numerator less r times the denominator keeps its bound, within the possible range."""

    @pytest.mark.parametrize(("a", "b"), [(5, 20), (0, 40), (-3, 40), (30, 25), (60, 9)])
    @pytest.mark.parametrize("eps", [0.5, 2.0])
    def test_against_a_grid(self, a, b, eps):
        ratio = computed("/", counts(a, eps=eps), counts(b, eps=eps))
        low, high = (end[0] for end in ratio.interval(0.95))
        r = np.linspace(0, 40, 400_001)
        bounds = bound_of_sum(np.stack([np.ones(r.shape), r]) / eps, 0.95, np.ones((2, len(r))))
        bounds += np.maximum(1, r) * further(eps)
        inside = r[np.abs(max(a, 0) - r * b) <= bounds]
        assert (low, high) == pytest.approx((inside.min(), inside.max()), abs=2e-4)

    def test_the_range_where_the_denominator_may_be_0(self):
        low, high = computed("/", counts(5), counts(2)).interval(0.95)
        assert (low[0], high[0]) == (0, math.inf)
        free = counts(5, least=-math.inf)
        low, high = computed("/", free, counts(2, least=-math.inf)).interval(0.95)
        assert (low[0], high[0]) == (-math.inf, math.inf)

    def test_a_share_knows_that_its_part_is_in_the_whole(self):
        one, other = counts(30, eps=0.5), counts(70, eps=0.5)
        share = computed("/", one, computed("+", one, other))
        assert [end[0] for end in share.range()] == [0, 1]
        low, high = share.interval(0.95)
        # (1 - r) a - r b
        r = np.linspace(0, 1, 100_001)
        bounds = bound_of_sum(np.stack([1 - r, r]) * 2, 0.95, np.ones((2, len(r)))) + np.maximum(1 - r, r) * further(
            0.5
        )
        inside = r[np.abs((1 - r) * 30 - r * 70) <= bounds]
        assert (low[0], high[0]) == pytest.approx((inside.min(), inside.max()), abs=1e-4)
        assert computed("/", one, one).interval(0.95)[0].tolist() == [1]

    @given(data=st.data())
    def test_the_range_holds_all_possible_ratios(self, data):
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        k = int(rng.integers(1, 5))
        cells = counts(*rng.integers(0, 9, k))
        numbers = [cells.gathered(np.zeros(1, int), np.array([at]), np.ones(1), 1) for at in range(k)]
        weights = rng.integers(-2, 4, (2, k)).astype(float)
        constant = rng.integers(0, 3, 2).astype(float)
        sums = [
            total([*(computed("*", n, constants(w, 1)) for n, w in zip(numbers, row, strict=True)), constants(c, 1)])
            for row, c in zip(weights, constant, strict=True)
        ]
        low, high = Ratio(*sums).range()
        z = rng.integers(0, 6, (300, k)) * (rng.random((300, k)) < 0.7)
        above, below = z @ weights[0] + constant[0], z @ weights[1] + constant[1]
        possible = above[below != 0] / below[below != 0]
        assert (possible >= low[0] - 1e-9).all() and (possible <= high[0] + 1e-9).all()

    def test_mean_and_count_of_one_draw_make_the_sum(self):
        draw = new_draw()
        drawn = np.rint(np.array([[30.0], [70.0]]) * PLACES).astype(np.int64)

        def line(**law):
            return form_of(Measurements.of(Law(2, Fraction(1, PLACES), Fraction(1), **law), drawn, draw))

        mean, count, sums = line(top=(1.0, 0.0), bottom=(1.0, 1.0)), line(top=(1.0, 1.0)), line(top=(1.0, 0.0))
        product = computed("*", mean, count)
        assert isinstance(product, Linear)
        assert product.interval(0.95)[0] == pytest.approx(sums.interval(0.95)[0])
        assert computed("-", product, sums).reach(0.95).tolist() == [0]
        assert computed("/", sums, count).interval(0.95)[1] == pytest.approx(mean.interval(0.95)[1])
        assert computed("-", mean, mean).value().tolist() == [0]

    def test_many_rows_at_once_are_as_each_alone(self):
        numbers = [(5, 20), (1, 3), (40, 45), (0, 100)]
        together = computed("/", counts(*(a for a, _ in numbers)), counts(*(b for _, b in numbers)))
        alone = [computed("/", counts(a), counts(b)).interval(0.95) for a, b in numbers]
        for at, (low, high) in enumerate(alone):
            assert [end[at] for end in together.interval(0.95)] == pytest.approx([low[0], high[0]])


class TestOtherwise:
    """What is neither a sum nor a ratio is linearised where much is known, else boxed."""

    def test_difference_of_means(self):
        one, other = means((400, 600), eps=1), means((300, 300), eps=1)
        difference = computed("-", one, other)
        assert isinstance(difference, Added)
        low, high = interval(difference, 0.95)
        # a/(a+b) moves by ((1 - m) da - m db) / n
        scales = np.array([[0.6 / 1000], [0.4 / 1000], [0.5 / 600], [0.5 / 600]])
        reach = bound_of_sum(scales, 0.95, np.ones((4, 1)))[0]
        assert (low[0], high[0]) == pytest.approx((-0.1 - reach, -0.1 + reach))

    @pytest.mark.parametrize("operation", ["-", "*", "/"])
    def test_of_few_it_is_the_box(self, operation):
        one, other = means((3, 4)), means((2, 3))
        low, high = interval(computed(operation, one, other), 0.95)
        (a, b), (c, d) = (tuple(end[0] for end in each.interval(0.975)) for each in (one, other))
        ends = {"-": (a - d, b - c), "*": (a * c, b * d), "/": (0, math.inf)}[operation]
        assert (low[0], high[0]) == pytest.approx(ends)

    def test_products_of_counts(self):
        one, other = counts(1000), counts(2000)
        product = computed("*", one, other)
        assert isinstance(product, Multiplied)
        low, high = interval(product, 0.95)
        reach = 1000 * critical_of_whole(((2, 1, 1.0), (1, 1, 1.0)), 0.95)
        assert (low[0], high[0]) == pytest.approx((2e6 - reach, 2e6 + reach))

    def test_values_are_cut_to_the_range_of_the_whole(self):
        a, b = counts(-4), counts(3)
        assert shown(a).tolist() == [0]
        assert shown(computed("+", a, b)).tolist() == [0]  # -1, not 0 + 3
        assert shown(computed("-", b, a)).tolist() == [7]
        low, high = interval(computed("+", a, b), 0.95)
        assert low[0] == 0 < high[0]
