"""Every statistic against its definition: value, sensitivities, and what one person changes."""

import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum, WholeSum
from pdrisk._core.summary import Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one

STATISTICS = [
    *(Count(), Sum(), Mean(), Median(), Min(), Max()),
    *(Quantile(q) for q in oracle.QUANTILES),
    *(spread(ddof) for spread in (Var, Std) for ddof in (0, 1)),
]
GRIDS = {
    "0..4": range(5),
    "-2..2": range(-2, 3),
    "1,3,10,17": (1, 3, 10, 17),
    "-3..-1": range(-3, 0),
}
SIZE = 5

every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


def universe_of(grid) -> Universe:
    return Universe(float(min(grid)), float(max(grid)))


def ends(universe: Universe) -> tuple[Fraction, Fraction]:
    return Fraction(universe.lo), Fraction(universe.hi)


def tolerance(statistic: Statistic, universe: Universe) -> float:
    """Absolute: rounding counts against the sensitivity, and grows with the universe's distance from zero."""
    far = max(1.0, universe.magnitude / universe.width)
    if isinstance(statistic, Std):
        # Where the last spread is removed, the variance is zero but for rounding, whose root is large.
        return 1e-7 * math.sqrt(far) * statistic.global_sensitivity(universe)
    return 1e-12 * far * statistic.global_sensitivity(universe)


@cache
def multisets(grid) -> list[tuple[Fraction, ...]]:
    return list(oracle.multisets([Fraction(x) for x in grid], SIZE))


def one(records, universe: Universe, statistic: Statistic) -> Summary:
    return summary_of_one(np.array([float(x) for x in records]), universe, statistic.needs)


def batch(sets, universe: Universe, statistic: Statistic) -> Summary:
    """All sets as the groups of one column, their records shuffled."""
    values = np.array([float(x) for records in sets for x in records])
    codes = np.repeat(np.arange(len(sets), dtype=np.int32), [len(records) for records in sets])
    order = np.random.default_rng(1).permutation(len(values))
    return summary_of_groups(values[order], codes[order], len(sets), universe, statistic.needs)


@st.composite
def columns(draw) -> tuple[Universe, list[float]]:
    lo = draw(st.floats(-1e6, 1e6))
    universe = Universe(lo, lo + draw(st.floats(1.0, 1e6)))
    inside = st.floats(universe.lo, universe.hi)
    few = st.sampled_from([universe.lo, universe.hi, universe.mid, draw(inside)])
    return universe, draw(st.lists(inside | few, max_size=12))


@pytest.mark.parametrize("statistic", [Sum(), WholeSum()], ids=["sum", "whole sum"])
def test_sums_end_at_zero_or_nowhere(statistic):
    """More of the same records go farther in the direction of a sum, if there are any that do."""
    for grid in GRIDS.values():
        sums = [sum(records) for records in multisets(grid)]
        ends = (-math.inf if min(sums) < 0 else 0), (math.inf if max(sums) > 0 else 0)
        assert statistic.value_range(universe_of(grid)) == ends


@pytest.mark.whole
@pytest.mark.sampled(4)  # every statistic on one grid
@every_statistic
@every_grid
class TestEveryMultiset:
    """Over a small universe, for every multiset of up to five records, formula and definition agree."""

    def test_value(self, statistic, grid):
        universe = universe_of(grid)
        expected = [oracle.DEFINITIONS[statistic.label].value(s, *ends(universe)) for s in multisets(grid)]
        found = statistic.value(batch(multisets(grid), universe, statistic), universe)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(statistic, universe))
        low, high = statistic.value_range(universe)
        assert low <= min(expected)
        assert max(expected) <= np.nextafter(high, np.inf)
        if isinstance(statistic, Var):  # the range of the others is the universe, or endless
            assert max(expected) == pytest.approx(high, rel=1e-15)

    @pytest.mark.sampled(6)
    def test_local_sensitivity(self, statistic, grid):
        universe = universe_of(grid)
        marks = [Fraction(x) for x in grid]
        expected = [
            oracle.DEFINITIONS[statistic.label].local_sensitivity(s, *ends(universe), marks) for s in multisets(grid)
        ]
        found = statistic.local_sensitivity(batch(multisets(grid), universe, statistic), universe)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(statistic, universe))

    def test_world_range(self, statistic, grid):
        universe = universe_of(grid)
        expected = [oracle.DEFINITIONS[statistic.label].world_range(s, *ends(universe)) for s in multisets(grid)]
        found = statistic.world_range(batch(multisets(grid), universe, statistic), universe)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(statistic, universe))

    @pytest.mark.sampled(6)
    def test_leave_one_out_and_influence(self, statistic, grid):
        universe, definition = universe_of(grid), oracle.DEFINITIONS[statistic.label]
        for records in multisets(grid):
            shuffled = records[::2] + records[1::2]  # the answers come in the order of the records
            summary, array = one(shuffled, universe, statistic), np.array([float(x) for x in shuffled])
            without = statistic.leave_one_out(array, summary, universe)
            influence = statistic.influence(array, summary, universe)
            assert without.shape == influence.shape == array.shape
            far = tolerance(statistic, universe)
            for found, name in ((without, "leave_one_out"), (influence, "influence")):
                expected = np.array(getattr(definition, name)(shuffled, *ends(universe)), dtype=float)
                assert (np.abs(found - expected) <= far).all()

    @pytest.mark.sampled(6)
    def test_a_batch_of_groups_equals_each_group_alone(self, statistic, grid):
        universe = universe_of(grid)
        together = batch(multisets(grid), universe, statistic)
        each = [one(records, universe, statistic) for records in multisets(grid)]
        for formula in (statistic.value, statistic.local_sensitivity, statistic.world_range, statistic.steps):
            alone = [formula(summary, universe)[0] for summary in each]
            atol = 1 if formula == statistic.steps else tolerance(statistic, universe)
            np.testing.assert_allclose(formula(together, universe), alone, rtol=0, atol=atol)


@pytest.mark.whole
@pytest.mark.sampled(4)  # every statistic on one grid
@every_statistic
@every_grid
class TestGlobalSensitivity:
    """GS is the largest change between any two neighbours, the empty set included; for all of them it is attained."""

    def test_no_pair_of_neighbours_exceeds_it_and_one_attains_it(self, statistic, grid):
        largest = oracle.DEFINITIONS[statistic.label].global_sensitivity([Fraction(x) for x in grid], SIZE)
        assert statistic.global_sensitivity(universe_of(grid)) == pytest.approx(largest, rel=1e-15)

    def test_the_empty_set_does_not_enlarge_it(self, statistic, grid):
        universe, definition = universe_of(grid), oracle.DEFINITIONS[statistic.label]
        pairs = [(s, (*s, Fraction(x))) for s in multisets(grid) if 1 <= len(s) < SIZE for x in grid]
        largest = max(definition.change(a, b, *ends(universe)) for a, b in pairs)
        assert statistic.global_sensitivity(universe) == pytest.approx(largest, rel=1e-15)

    def test_it_bounds_the_unclipped_local_sensitivity(self, statistic, grid):
        universe = universe_of(grid)
        summary, limit = batch(multisets(grid), universe, statistic), statistic.global_sensitivity(universe)
        assert (statistic.largest_change(summary, universe) <= limit * (1 + 1e-12)).all()
        assert (statistic.local_sensitivity(summary, universe) <= limit).all()
        # Adding an end to nothing, or to the other end, moves all of these by GS; only var and std need two records.
        at = statistic.local_sensitivity(batch([(universe.lo,), (universe.hi,)], universe, statistic), universe)
        assert at.max() == pytest.approx(limit, rel=1e-14)


@every_statistic
class TestAnyColumn:
    """The same for columns of floats in any interval."""

    @pytest.mark.sampled(3)
    @given(column=columns())
    def test_formulas_equal_the_definitions(self, statistic, column):
        universe, values = column
        definition, records, (lo, hi) = oracle.DEFINITIONS[statistic.label], oracle.fractions(values), ends(universe)
        summary, array = one(values, universe, statistic), np.array(values)
        within = {"rel": 1e-12, "abs": tolerance(statistic, universe)}
        limit = statistic.global_sensitivity(universe)
        local = definition.local_sensitivity(records, lo, hi)
        assert local <= limit * (1 + 1e-12)
        assert statistic.value(summary, universe)[0] == pytest.approx(definition.value(records, lo, hi), **within)
        assert statistic.local_sensitivity(summary, universe)[0] == pytest.approx(local, **within)
        world_range = statistic.world_range(summary, universe)[0]
        assert world_range == pytest.approx(definition.world_range(records, lo, hi), **within)
        assert world_range >= 0
        without = statistic.leave_one_out(array, summary, universe)
        assert without.tolist() == pytest.approx(definition.leave_one_out(records, lo, hi), **within)
        influence = statistic.influence(array, summary, universe)
        assert influence.tolist() == pytest.approx(definition.influence(records, lo, hi), **within)

    @pytest.mark.sampled(3)
    @given(column=columns(), n=st.integers(1, 9))
    def test_equal_records(self, statistic, column, n):
        universe, values = column
        records = oracle.fractions([(values or [universe.lo])[0]] * n)
        summary = one(records, universe, statistic)
        within = {"rel": 0, "abs": tolerance(statistic, universe)}
        expected = oracle.DEFINITIONS[statistic.label].local_sensitivity(records, *ends(universe))
        assert statistic.local_sensitivity(summary, universe)[0] == pytest.approx(expected, **within)
        assert statistic.world_range(summary, universe)[0] == pytest.approx(0, **within)
        assert (statistic.local_sensitivity(summary, universe) <= statistic.global_sensitivity(universe)).all()


class TestOneRecordIsAllTheSpread:
    """Without it nothing varies: rounding must leave exactly that, and no more than that."""

    @pytest.mark.parametrize("statistic", [Std(0), Std(1), Var(0), Var(1)], ids=str)
    @pytest.mark.parametrize(
        "records", [[4, 0, 0, 0, 0], [0.3, 0.1, 0.1, 0.1], [1000.7, *[1000.1] * 11], [1e5, *[1e5 + 0.1] * 300]]
    )
    def test_its_world_has_none(self, statistic, records):
        universe = Universe(-1e6, 1e6)
        exact = oracle.fractions([float(record) for record in records])
        summary = one(exact, universe, statistic)
        without = statistic.leave_one_out(np.array(records, dtype=float), summary, universe)
        assert without[0] == 0
        definition = oracle.DEFINITIONS[statistic.label]
        expected = definition.world_range(exact, *ends(universe))
        assert statistic.world_range(summary, universe)[0] == pytest.approx(expected, rel=1e-8)
        assert np.ptp(without) == pytest.approx(expected, rel=1e-8)

    def test_little_is_not_nothing(self):
        universe, records = Universe(0.0, 56428.0), oracle.fractions([0.0, 24577.0, 0.125])
        expected = oracle.DEFINITIONS["std(ddof=0)"].world_range(records, *ends(universe))
        assert Std(0).world_range(one(records, universe, Std(0)), universe)[0] == pytest.approx(expected, rel=1e-7)


def rounded(x: Fraction) -> int:
    """The whole number that a record counts as: halves up."""
    return math.floor(x + Fraction(1, 2))


def whole_summary(records) -> Summary:
    """What an engine says of records, in rising order, for sums of whole numbers and numbers of different values."""
    alone = [x for x in records if records.count(x) == 1]
    return Summary(
        n=np.array([len(records)]),
        lowest=np.array([[float(records[0] if records else 9)]] * 2),
        highest=np.array([[float(records[-1] if records else -9)]] * 2),
        whole=np.array([sum(map(rounded, records))]),
        distinct=np.array([len(set(records))]),
        singles=np.array([len(alone)]),
    )


class TestWholeNumbers:
    """Sums of whole numbers and numbers of different values, for every multiset of up to five records."""

    UNIVERSE = Universe(-3.0, 2.0)
    GRID = (Fraction(-3), Fraction(-3, 2), Fraction(2, 5), Fraction(1, 2), Fraction(2))
    CASES = (
        (WholeSum(), lambda records: sum(map(rounded, records)), 3),
        (Distinct(), lambda records: len(set(records)), 1),
    )

    @pytest.mark.parametrize(("statistic", "value", "largest"), CASES, ids=["sum", "nunique"])
    def test_formulas_equal_the_definitions(self, statistic, value, largest):
        assert statistic.global_sensitivity(self.UNIVERSE) == largest
        for records in oracle.multisets(self.GRID, SIZE):
            summary, own = whole_summary(records), value(records)
            worlds = [value(records[:at] + records[at + 1 :]) for at in range(len(records))]
            arguments = [float(x) for x in records]
            if statistic == Distinct():
                arguments = [float(records.count(x) == 1) for x in records]
            assert statistic.value(summary, self.UNIVERSE).tolist() == [own]
            assert statistic.whole(summary).tolist() == [own]
            assert statistic.local_sensitivity(summary, self.UNIVERSE).tolist() == [largest]
            spread = max(worlds) - min(worlds) if worlds else 0
            assert statistic.world_range(summary, self.UNIVERSE).tolist() == [spread], records
            assert statistic.leave_one_out(np.array(arguments), summary, self.UNIVERSE).tolist() == worlds
            moved = [abs(own - world) for world in worlds]
            assert statistic.influence(np.array(arguments), summary, self.UNIVERSE).tolist() == moved


@pytest.mark.parametrize("bounds", [(-3, 2), (1, 675)], ids=str)
def test_a_mean_from_the_places_of_its_records(bounds):
    """What two_sums reads of the data says of the mean what its sum says, to half a place."""
    universe = Universe(*map(float, bounds))
    for records in oracle.multisets([universe.lo + share * universe.width for share in (0, 0.3, 0.75, 1)], 3):
        values = np.array(records)
        summed = summary_of_one(values, universe, Mean().needs)
        placed = summary_of_one(values, universe, Needs(places=True, ends=True))
        assert placed.total is None
        for ask in (Mean().value, Mean().local_sensitivity, partial(Mean().leave_one_out, values)):
            np.testing.assert_allclose(
                ask(placed, universe), ask(summed, universe), rtol=0, atol=universe.width / 2**30
            )


class TestOfFewRecords:
    """Nothing, one and two records are ordinary inputs (docs/numbers.md)."""

    UNIVERSE = Universe(1.0, 675.0)  # the paper's
    R = 674.0

    # statistic: the answer for nothing, and LS of nothing
    OF_NOTHING = (
        (Count(), 0.0, 1.0),
        (Sum(), 0.0, 675.0),
        (Mean(), 338.0, R / 2),
        (Median(), 338.0, R / 2),
        (Quantile(0.9), 338.0, R / 2),
        (Min(), 675.0, R),
        (Max(), 1.0, R),
        *((spread(ddof), 0.0, 0.0) for spread in (Var, Std) for ddof in (0, 1)),
    )

    @pytest.mark.parametrize(("statistic", "value", "local"), OF_NOTHING, ids=lambda x: getattr(x, "label", str(x)))
    def test_nothing(self, statistic, value, local):
        summary = one([], self.UNIVERSE, statistic)
        assert statistic.value(summary, self.UNIVERSE)[0] == statistic.value_of_nothing(self.UNIVERSE) == value
        assert statistic.local_sensitivity(summary, self.UNIVERSE)[0] == local
        assert statistic.world_range(summary, self.UNIVERSE)[0] == 0
        assert statistic.leave_one_out(np.empty(0), summary, self.UNIVERSE).shape == (0,)
        assert statistic.influence(np.empty(0), summary, self.UNIVERSE).shape == (0,)

    @every_statistic
    def test_removing_the_only_record_leaves_nothing(self, statistic):
        summary = one([7], self.UNIVERSE, statistic)
        nothing = statistic.value_of_nothing(self.UNIVERSE)
        assert statistic.leave_one_out(np.array([7.0]), summary, self.UNIVERSE).tolist() == [nothing]
        assert statistic.world_range(summary, self.UNIVERSE)[0] == 0

    @pytest.mark.parametrize(("universe", "end"), [(Universe(-1.0, 0.1), 0.1), (Universe(-0.1, 1.0), -0.1)])
    def test_a_mean_of_equal_records_does_not_leave_the_universe(self, universe, end):
        assert (end + end + end) / 3 != end  # one float past it
        assert Mean().value(one([end] * 3, universe, Mean()), universe).tolist() == [end]

    def test_median_of_one_record(self):
        # docs/numbers.md: "add the largest value" alone gives 0 for {675}; removing the record moves it by 337.
        assert Median().local_sensitivity(one([675], self.UNIVERSE, Median()), self.UNIVERSE)[0] == 337

    @pytest.mark.parametrize("spread", [Var(1), Std(1)])
    def test_one_record_has_no_spread(self, spread):
        assert spread.value(one([7], self.UNIVERSE, spread), self.UNIVERSE)[0] == 0


class TestWhereThePaperIsWrong:
    """Its rule for the variance tries the farthest record only (docs/numbers.md)."""

    @pytest.mark.parametrize(
        ("statistic", "records", "hi", "true", "by_the_paper"),
        [(Var(0), [0, 0, 1, 1], 1, 1 / 20, 1 / 36), (Var(1), [0, 1, 3], 4, 13 / 6, 11 / 6)],
    )
    def test_the_record_nearest_the_mean_matters(self, statistic, records, hi, true, by_the_paper):
        universe = Universe(0.0, float(hi))
        found = statistic.local_sensitivity(one(records, universe, statistic), universe)[0]
        assert found == pytest.approx(true, rel=1e-14) != by_the_paper
