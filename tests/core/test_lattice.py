"""The public grid: no neighbour moves the rounded answer by more steps than the noise covers, in any universe."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._core.lattice import LARGEST_STEPS, PLACES, Lattice, PlaceGrid, power_of_two_below
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean, Sum
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.errors import ParameterError, PdriskError

STATISTICS = [
    *(Count(), Sum(), Mean(), Median(), Quantile(0.1), Quantile(1.0), Min(), Max()),
    *(Var(0), Var(1), Std(0), Std(1)),
]
every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
positive = st.floats(1e-200, 1e200)

USUAL = [(0, 1), (1, 675), (-1, 1), (0, 2_700_000), (17, 90), (-40, 50), (1900, 2030), (0, 1e-3), (-1e12, 1e12)]
EXTREME = [
    *((0, 1e100), (-1e100, 1e100), (-1e100, 0), (0, 1e-100), (-1e-100, 1e-100), (1e100 - 1e94, 1e100)),
    *((1e9, 1e9 + 1000), (-1e-94 - 1e-99, -1e-94), (0, 2.0**53), (-1e-100, 1e100)),
]


def is_power_of_two(value: float) -> bool:
    return math.frexp(value)[0] == 0.5


def steps_of(statistic, records, universe: Universe) -> int:
    summary = summary_of_one(np.array(records, dtype=float), universe, statistic.needs)
    return int(statistic.steps(summary, universe)[0])


class TestPowerOfTwo:
    @given(value=positive)
    def test_it_is_the_largest_that_is_not_above(self, value):
        power = power_of_two_below(value)
        assert is_power_of_two(power)
        assert power <= value < 2 * power

    @pytest.mark.parametrize(("value", "power"), [(1.0, 1.0), (2.0, 2.0), (3.0, 2.0), (0.75, 0.5), (2 - 2**-52, 1.0)])
    def test_edges(self, value, power):
        assert power_of_two_below(value) == power


class TestGridOfAnswers:
    """``|rint(a) - rint(b)|``, in steps, is at most ``sensitivity`` for computed answers of neighbours."""

    @given(
        change=positive,
        error=st.sampled_from([0.0, 2.0**-50, 2.0**-35, 2.0**-20]),
        offset=st.floats(-4, 4),
        signs=st.tuples(*[st.sampled_from([-1, 0, 1])] * 2),
    )
    def test_neighbours_stay_within_it(self, change, error, offset, signs):
        lattice = Lattice.around(change, error * change)
        # Exact answers as far apart as GS allows, each computed as badly as ``rounding`` allows, on any half step.
        step, rounding = Fraction(lattice.step), Fraction(error * change)
        for near in (Fraction(offset), Fraction(1, 2), Fraction(-1, 2), Fraction(1, 2) - Fraction(1, 2**60)):
            low = near * step
            high = low + Fraction(change)
            assert abs(round((low + signs[0] * rounding) / step) - round((high + signs[1] * rounding) / step)) <= (
                lattice.sensitivity
            )

    @given(change=positive)
    def test_it_has_room_for_a_sensitivity_that_was_rounded_down(self, change):
        lattice = Lattice.around(change, 0.0)
        true = Fraction(change) * (1 + Fraction(1, 2**53))
        assert lattice.sensitivity >= math.floor(true / Fraction(lattice.step)) + 1

    @given(change=positive)
    def test_it_is_fine_and_no_finer(self, change):
        lattice = Lattice.around(change, 0.0)
        assert is_power_of_two(lattice.step)
        assert 2**31 <= lattice.sensitivity <= 2**32 + 1
        inflation = lattice.sensitivity * Fraction(lattice.step) / Fraction(change) - 1
        assert 0 < inflation < 1e-9

    def test_the_scale_of_1(self):
        # 2**31 steps, one for the two roundings (|rint(a) - rint(b)| <= |a - b| + 1); two floats up add none.
        assert Lattice.around(1.0, 0.0) == Lattice(2.0**-31, 2**31 + 1)
        assert Lattice.around(1.0, 2.0**-32) == Lattice(2.0**-31, 2**31 + 2)


class TestGridOfRecords:
    """One record, rounded to the grid, is at most ``sensitivity`` steps away from zero."""

    @given(magnitude=positive, share=st.floats(-1, 1))
    def test_a_record_stays_within_it(self, magnitude, share):
        lattice = Lattice.of_records(magnitude)
        for record in (magnitude, -magnitude, share * magnitude):
            assert abs(round(Fraction(record) / Fraction(lattice.step))) <= lattice.sensitivity

    @given(magnitude=positive)
    def test_it_is_fine_and_no_finer(self, magnitude):
        lattice = Lattice.of_records(magnitude)
        assert is_power_of_two(lattice.step)
        assert 2**30 <= lattice.sensitivity <= 2**31
        assert 0 <= lattice.sensitivity * Fraction(lattice.step) / Fraction(magnitude) - 1 < 1e-9

    def test_whole_numbers_lose_nothing(self):
        assert Lattice.of_records(675.0) == Lattice(512 * 2.0**-30, math.ceil(675 * 2**21))
        assert steps_of(Sum(), [3, 1, 10, 675, 17], Universe(1.0, 675.0)) * (512 * 2.0**-30) == 706


@every_statistic
class TestNeighbours:
    """What is true of the grid is true of the answers that engine and statistic compute."""

    @given(data=st.data())
    def test_adding_any_record(self, statistic, data):
        lo, hi = data.draw(st.sampled_from(USUAL + EXTREME))
        universe = Universe(float(lo), float(hi))
        inside = st.floats(universe.lo, universe.hi) | st.sampled_from([universe.lo, universe.hi, universe.mid])
        records = data.draw(st.lists(inside, max_size=6))
        other = [*records, data.draw(inside)]
        change = abs(steps_of(statistic, other, universe) - steps_of(statistic, records, universe))
        assert change <= statistic.lattice(universe).sensitivity

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("bounds", USUAL + EXTREME, ids=str)
    def test_the_worst_neighbours(self, statistic, bounds):
        universe = Universe(float(bounds[0]), float(bounds[1]))
        lo, hi = universe.lo, universe.hi
        sensitivity = statistic.lattice(universe).sensitivity
        pairs = [([], [lo]), ([], [hi]), ([lo], [lo, hi]), ([hi], [lo, hi]), ([lo, hi], [lo, hi, hi])]
        changes = [abs(steps_of(statistic, a, universe) - steps_of(statistic, b, universe)) for a, b in pairs]
        assert max(changes) <= sensitivity
        # And the grid is not wider than it has to be: some neighbours all but reach it.
        assert max(changes) >= sensitivity * (1 - 1e-8) or universe.width < universe.magnitude / 4

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("bounds", USUAL, ids=str)
    def test_usual_bounds_cost_next_to_nothing(self, statistic, bounds):
        universe = Universe(float(bounds[0]), float(bounds[1]))
        lattice = statistic.lattice(universe)
        scale = Fraction(lattice.step) * lattice.sensitivity
        inflation = scale / Fraction(statistic.global_sensitivity(universe)) - 1
        assert 0 <= inflation < (1e-9 if universe.magnitude <= universe.width else 3e-8)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("bounds", USUAL + EXTREME, ids=str)
    def test_answers_stay_far_from_the_largest_integer(self, statistic, bounds):
        universe = Universe(float(bounds[0]), float(bounds[1]))
        for records in ([], [np.inf], [-np.inf], [np.inf, -np.inf], [np.inf] * 50, [universe.lo, universe.hi] * 9):
            assert abs(steps_of(statistic, records, universe)) <= LARGEST_STEPS
        assert 0 < statistic.lattice(universe).sensitivity <= LARGEST_STEPS
        assert 0 < statistic.lattice(universe).step < np.inf


class TestClampedSteps:
    """What could be larger than an integer holds is clamped to a public range first."""

    UNIVERSE = Universe(0.0, 1.0)

    @pytest.mark.parametrize("n", [0, 1, 2**32, 2**32 + 1, 2**62])
    def test_counts(self, n):
        summary = Summary(n=np.array([n]))
        one = Count().lattice(self.UNIVERSE)
        assert one.sensitivity * one.step == 1
        expected = min(n * one.sensitivity, LARGEST_STEPS)
        assert Count().steps(summary, self.UNIVERSE).tolist() == [expected]

    @pytest.mark.parametrize("steps", [2**63 - 1, -(2**63), LARGEST_STEPS, 5])
    def test_sums(self, steps):
        summary = Summary(n=np.array([1]), steps=np.array([steps], dtype=np.int64))
        expected = max(-LARGEST_STEPS, min(steps, LARGEST_STEPS))
        assert Sum().steps(summary, self.UNIVERSE).tolist() == [expected]

    def test_means_beyond_the_universe(self):
        for total, end in ((1e300, 1.0), (-1e300, 0.0)):
            summary = Summary(n=np.array([1]), total=np.array([total]))
            step = Mean().lattice(self.UNIVERSE).step
            assert Mean().steps(summary, self.UNIVERSE).tolist() == [end / step]

    def test_variances_beyond_their_largest(self):
        summary = Summary(n=np.array([2]), total=np.array([1.0]), squares=np.array([1e300]))
        for statistic, largest in ((Var(0), 1 / 4), (Var(1), 1 / 2), (Std(0), 1 / 2), (Std(1), math.sqrt(1 / 2))):
            step = statistic.lattice(self.UNIVERSE).step
            assert statistic.steps(summary, self.UNIVERSE).tolist() == [round(largest / step)]


class TestUniverse:
    """An interval that floats can compute with; every refusal says what to do."""

    @pytest.mark.parametrize(
        ("lo", "hi", "message"),
        [
            (0.0, math.inf, r"finite, but are \(0, inf\): declare the range"),
            (-math.inf, 0.0, "finite"),
            (math.nan, 1.0, "finite"),
            (0.0, math.nan, "finite"),
            (5.0, 2.0, r"\(5, 2\) is reversed: write \(2, 5\)"),
            (5.0, 5.0, "both are 5: a range needs two ends"),
            (0.0, -0.0, "both are 0"),
            (0.0, 1.1e100, "within 1e100 of zero .* change the column's unit"),
            (-1.1e100, 0.0, "within 1e100"),
            (-1e308, 1e308, "within 1e100"),
            (0.0, 0.9e-100, "at least 1e-100 wide"),
            (0.0, 5e-324, "at least 1e-100 wide"),
            (1e9, 1e9 + 900, "too narrow .* subtract 1000000000.0 from the column"),
            (1.0, 1.0 + 2.0**-21, "too narrow"),
        ],
    )
    def test_refusals(self, lo, hi, message):
        with pytest.raises(ParameterError, match=message) as refusal:
            Universe(lo, hi)
        assert isinstance(refusal.value, ValueError)
        assert isinstance(refusal.value, PdriskError)

    @pytest.mark.parametrize("bounds", [*USUAL, *EXTREME, (1.0 - 2.0**-20, 1.0), (-1.0, -1.0 + 2.0**-20)], ids=str)
    def test_width_middle_and_magnitude(self, bounds):
        lo, hi = float(bounds[0]), float(bounds[1])
        universe = Universe(lo, hi)
        assert universe.width == pytest.approx(float(Fraction(hi) - Fraction(lo)), rel=1e-15)
        assert universe.mid == pytest.approx(float((Fraction(hi) + Fraction(lo)) / 2), rel=1e-15)
        assert lo <= universe.mid <= hi
        assert universe.magnitude == max(-lo, hi, lo, -hi)

    def test_it_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            Universe(0.0, 1.0).lo = -1.0


class TestPlaces:
    """Records are placed on a grid of exact whole numbers, without a subtraction where that is as good."""

    @pytest.mark.parametrize("bounds", [*USUAL, *EXTREME, (16, 17), (15, 16), (-17, -16)], ids=str)
    def test_a_place_is_the_nearest_and_none_lies_outside(self, bounds):
        universe = Universe(*map(float, bounds))
        lo, hi = universe.lo, universe.hi
        records = np.random.default_rng(1).uniform(0, 1, 2000) * (hi - lo) + lo
        beside = [math.nextafter(lo, hi), math.nextafter(hi, lo), (lo + hi) / 2]
        records = np.sort(np.clip([lo, *records, *beside, hi], lo, hi))
        places = PlaceGrid.of(universe).placed(records)
        assert (places[0], places[-1]) == (0, PLACES)
        assert (np.diff(places) >= 0).all()
        for x, k in zip(records.tolist(), places.tolist(), strict=True):
            exact = (Fraction(x) - Fraction(lo)) * PLACES / (Fraction(hi) - Fraction(lo))
            assert abs(Fraction(k) - exact) <= Fraction(1, 2) + Fraction(1, 2**18)

    def test_halves_go_up(self):
        halves = (np.array([0, 1, 2, 2**29, 2**30 - 1]) + 0.5) / PLACES
        assert PlaceGrid.of(Universe(0.0, 1.0)).placed(halves).tolist() == [1, 2, 3, 2**29 + 1, 2**30]

    @pytest.mark.parametrize(
        ("bounds", "origin"), [((0.0, 1.0), 0), ((1.0, 675.0), 0), ((-40.0, 50.0), 0), ((16.0, 17.0), 16.0)], ids=str
    )
    def test_the_origin(self, bounds, origin):
        assert PlaceGrid.of(Universe(*bounds)).origin == origin
