"""What an engine says of a column is true of it, whatever the column's type, order and gaps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._core.lattice import PLACES
from pdrisk._core.order import Median, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.summary import Needs, Summary, whole_and_part, window_start
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy import chunks, grouped, single
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one
from places import place

QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)
EVERYTHING = Needs(total=True, steps=True, ends=True, seconds=True, squares=True, windows=frozenset(QUANTILES))
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIZE = chunks.SIZE


def clean(values, universe: Universe, selected=None) -> list[float]:
    """The records of a column by the definition: chosen, not missing, clamped; sorted."""
    chosen = values if selected is None else [x for x, keep in zip(values, selected, strict=True) if keep]
    # float() of a Python int rounds correctly, beyond 2**53 too.
    floats = [float(x.item()) for x in np.asarray(chosen)]
    return sorted(min(max(x, universe.lo), universe.hi) for x in floats if not math.isnan(x))


def lattice_step(universe: Universe) -> Fraction:
    """2**-30 of the largest power of two that is at most the universe's magnitude."""
    exponent = math.floor(math.log2(universe.magnitude))
    return Fraction(2) ** (exponent - 30)


def assert_true(summary: Summary, group: int, records: list[float], universe: Universe) -> None:
    """Every field of one group against plain Python on its sorted records."""
    n, lo, hi = len(records), universe.lo, universe.hi
    exact = [Fraction(x) for x in records]
    assert summary.n[group] == n
    total = sum(exact, Fraction(0))
    assert summary.total[group] == pytest.approx(float(total), rel=1e-13, abs=1e-13 * n * universe.magnitude)
    # Python's round, like rint, takes ties to even.
    assert summary.steps[group] == sum(round(x / lattice_step(universe)) for x in exact)
    padded = [*records, hi, hi] if n else [hi, hi]
    assert summary.lowest[:, group].tolist() == padded[:2]
    padded = [*records[::-1], lo, lo] if n else [lo, lo]
    assert summary.highest[:, group].tolist() == padded[:2]
    mean = total / n if n else Fraction(0)
    squares = float(sum(((x - mean) ** 2 for x in exact), Fraction(0)))
    assert summary.squares[group] == pytest.approx(squares, rel=1e-12, abs=1e-24 * n * universe.magnitude**2)
    nearest = float(min((abs(x - mean) for x in exact), default=Fraction(0)))
    assert summary.nearest[group] == pytest.approx(nearest, rel=1e-12, abs=1e-13 * universe.magnitude)
    assert_windows(summary, group, records, universe)


def assert_windows(summary: Summary, group: int, records: list[float], universe: Universe) -> None:
    n = len(records)
    for q, window in summary.windows.items():
        start = math.floor(n * Fraction(q)) - (q > 0.5)
        ranks = range(start, start + (3 if q == 0.5 else 4))  # the median's fourth may be any value
        expected = [universe.lo if k < 1 else universe.hi if k > n else records[k - 1] for k in ranks]
        assert window[: len(ranks), group].tolist() == expected, q


def check(values: np.ndarray, universe: Universe, codes=None, selected=None) -> None:
    """Check the column as one group, and (unless it has groups of its own) as two of three."""
    before = values.copy()
    if selected is None and codes is None:
        codes = (np.arange(len(values)) % 3).astype(np.int32)  # two groups, and rows of none
    if codes is not None:
        groups = max(int(codes.max(initial=0)), 2)
        summary = summary_of_groups(values, codes, groups, universe, EVERYTHING)
        for group in range(groups):
            assert_true(summary, group, clean(values, universe, codes == group), universe)
    summary = summary_of_one(values, universe, EVERYTHING, selected)
    assert_true(summary, 0, clean(values, universe, selected), universe)
    np.testing.assert_array_equal(values, before)  # the caller's column is not written to


class TestTypes:
    """Numbers of any type are the floats nearest to them, clamped as floats."""

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_integers(self, dtype):
        info = np.iinfo(dtype)
        values = np.array([info.min, info.max, info.max - 1, 0, 1, 5, 5, 100, info.min + 1], dtype=dtype)
        check(values, Universe(-1e20, 1e20))
        check(values, Universe(-2.5, 99.5))

    def test_integers_beyond_the_floats(self):
        values = np.array([2**53 + 1, 2**53 + 3, 2**63, 2**64 - 1, 2**64 - 2**11, 7], dtype=np.uint64)
        check(values, Universe(0.0, 2.0**64))
        check(values[:2].astype(np.int64), Universe(-1.0, 2.0**60))

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8", "<f4"])
    def test_floats_that_are_missing_infinite_or_out_of_bounds(self, dtype):
        values = np.array([np.nan, np.inf, -np.inf, 0.1, 0.1, 0.3, np.nan, -0.0, 6e4, -6e4, 1e-7], dtype=dtype)
        check(values, Universe(0.1, 0.3))  # bounds that float32 and float16 do not have
        check(values, Universe(-1e9, 1e9))

    def test_booleans(self):
        check(np.array([True, False, True, True, False]), Universe(0.0, 1.0))

    def test_a_strided_column(self):
        check(np.arange(40.0).reshape(20, 2)[:, 1], Universe(3.0, 30.0))

    def test_a_read_only_column(self):
        values = np.arange(10.0)
        values.flags.writeable = False
        check(values, Universe(3.0, 8.0))


class TestFewRecords:
    """Nothing, one and two records, and nothing but gaps."""

    @pytest.mark.parametrize("values", [[], [np.nan] * 5, [2.0], [np.nan, 2.0], [3.0, 2.0], [2.0, 2.0], [1.0, np.inf]])
    def test_as_one_group(self, values):
        check(np.array(values, dtype=float), Universe(1.0, 4.0))

    def test_nothing_selected(self):
        check(np.arange(5.0), Universe(1.0, 4.0), selected=np.zeros(5, dtype=bool))

    def test_groups_of_nothing_one_and_two(self):
        values = np.array([3.0, 1.0, 2.0, np.nan, 9.0, 2.0, 2.0])
        codes = np.array([1, 2, 2, 3, 7, 4, 4], dtype=np.int32)  # 0, 5, 6: nobody; 3: only gaps; 7: no group
        check(values, Universe(0.0, 4.0), codes)

    @pytest.mark.parametrize("n", [0, 3])
    def test_no_group_at_all(self, n):
        summary = summary_of_groups(np.ones(n), np.zeros(n, dtype=np.int32), 0, Universe(0.0, 4.0), EVERYTHING)
        assert summary.n.shape == summary.total.shape == summary.squares.shape == (0,)
        assert summary.windows[0.5].shape == (4, 0)

    @pytest.mark.parametrize("needs", [Needs(), Needs(total=True), Needs(windows=frozenset({0.5}))])
    def test_the_number_of_records_is_there_whatever_is_asked(self, needs):
        values, codes = np.array([1.0, np.nan, 3.0, 5.0]), np.array([0, 0, 1, 2], dtype=np.int32)
        universe = Universe(0.0, 4.0)
        assert summary_of_one(values, universe, needs).n.tolist() == [3]
        assert summary_of_one(values, universe, needs, values > 2).n.tolist() == [2]
        assert summary_of_groups(values, codes, 2, universe, needs).n.tolist() == [1, 1]


class TestPieces:
    """Where a column is cut into pieces does not show."""

    @pytest.fixture
    def tiny_pieces(self, monkeypatch):
        for module in (chunks, single):
            monkeypatch.setattr(module, "SIZE", 4)

    @given(
        rows=st.lists(
            st.tuples(st.sampled_from([0.0, 1.0, 2.0, 2.5, 7.0, np.nan, np.inf]) | st.floats(0, 9), st.booleans()),
            max_size=30,
        )
    )
    def test_any_column(self, rows):
        values = np.array([value for value, _ in rows])
        with pytest.MonkeyPatch.context() as patch:
            for module in (chunks, single):
                patch.setattr(module, "SIZE", 4)
            check(values, Universe(0.5, 8.0))
            check(values, Universe(0.5, 8.0), selected=np.array([keep for _, keep in rows], dtype=bool))

    @pytest.mark.parametrize("extreme", [0.0, 9.0])
    @pytest.mark.parametrize("at", [(0, 11), (3, 4), (10, 11), (0, 0), (5, 5), (8, 11)])
    @pytest.mark.usefixtures("tiny_pieces")
    def test_extremes_shared_by_two_pieces(self, extreme, at):
        values = np.full(12, 4.0)
        values[1::4] = np.nan
        values[list(at)] = extreme
        check(values, Universe(-1.0, 10.0))

    @pytest.mark.usefixtures("tiny_pieces")
    def test_pieces_that_hold_nothing(self):
        values = np.array([np.nan] * 5 + [3.0] + [np.nan] * 8 + [1.0, 2.0] + [np.nan] * 4)
        check(values, Universe(0.0, 4.0))

    @pytest.mark.parametrize("after", [1, 4, 9])
    @pytest.mark.parametrize("rest", [[], [2.0, 2.0]])
    @pytest.mark.usefixtures("tiny_pieces")
    def test_a_full_piece_before_a_gap(self, after, rest):
        # The piece with the extremes is opened again together with the gap, in one and the same buffer.
        check(np.array([1.0, 3.0, 1.5, 2.5] + [np.nan] * after + rest), Universe(0.0, 4.0))

    @pytest.mark.parametrize("n", [SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 1])
    def test_columns_around_the_real_size(self, n):
        values = np.random.default_rng(n).normal(5, 3, n)
        values[[0, -1]] = 40.0, 41.0
        values[::7] = np.nan
        universe = Universe(0.0, 50.0)
        summary = summary_of_one(values, universe, EVERYTHING)
        kept = np.sort(np.clip(values[~np.isnan(values)], 0, 50))
        assert summary.n[0] == len(kept)
        assert summary.total[0] == pytest.approx(math.fsum(kept), rel=1e-14)
        assert summary.squares[0] == pytest.approx(kept.var() * len(kept), rel=1e-12)
        assert summary.lowest[:, 0].tolist() == kept[:2].tolist()
        assert summary.highest[:, 0].tolist() == kept[:-3:-1].tolist()
        assert_windows(summary, 0, kept.tolist(), universe)


class TestThreads:
    """However many threads read a long column, its sums are those of one."""

    PLACED = Needs(places=True, place_squares=True, ends=True)

    @given(
        values=st.lists(st.sampled_from([0.5, 8.0, 2.5, np.nan, np.inf, -np.inf]) | st.floats(-1, 9), max_size=40),
        cores=st.integers(1, 3),
    )
    def test_any_column(self, values, cores):
        values, universe = np.array(values, dtype=float), Universe(0.5, 8.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(single, "WORTH_THREADS", 1)
            patch.setattr(single, "LARGE", 4)
            patch.setattr(single, "cores", lambda: cores)
            check(values, universe)
            before = values.copy()
            summary = summary_of_one(values, universe, self.PLACED)
        np.testing.assert_array_equal(values, before)
        records = clean(values, universe)
        places = [place(x, universe) for x in records]
        assert summary.n[0] == len(records)
        assert summary.places[0] == sum(places)
        assert summary.place_squares[0] == sum(k * k // PLACES for k in places)
        assert summary.clamped[0] == sum(x < universe.lo or x > universe.hi for x in values.tolist())

    @given(
        rest=st.lists(st.sampled_from([-1.0, 0.5, 8.0, 9.0, -np.inf, np.inf, np.nan]) | st.floats(-1, 9), max_size=30),
        first=st.permutations([0.5, -1.0, 9.0, 3.0]) | st.lists(st.sampled_from([3.0, 4.0, 9.0, -1.0]), max_size=20),
        cores=st.integers(1, 2),
        size=st.integers(1, 4),
    )
    def test_columns_that_reach_both_bounds_sooner_or_later(self, rest, first, cores, size):
        values, universe = np.array([*first, *rest]), Universe(0.5, 8.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(single, "WORTH_THREADS", 1)
            patch.setattr(single, "LARGE", size)
            patch.setattr(single, "cores", lambda: cores)
            before = values.copy()
            summary = summary_of_one(values, universe, Needs(places=True, ends=True))
        np.testing.assert_array_equal(values, before)
        records = clean(values, universe)
        assert summary.n[0] == len(records)
        assert summary.places[0] == sum(place(x, universe) for x in records)
        if len(records):
            assert (summary.lowest[0, 0], summary.highest[0, 0]) == (records[0], records[-1])
        assert summary.clamped[0] == sum(x < universe.lo or x > universe.hi for x in values.tolist())

    def test_what_fails_in_one_reaches_the_caller(self, monkeypatch):
        monkeypatch.setattr(single, "WORTH_THREADS", 1)
        monkeypatch.setattr(single, "LARGE", 4)
        monkeypatch.setattr(single, "cores", lambda: 2)
        with pytest.raises(ValueError, match="could not convert"):
            summary_of_one(np.array([1.0, 2.0] * 8 + ["x"], dtype=object), Universe(0.0, 4.0), self.PLACED)


class TestManyGroups:
    """Beyond `MANY_GROUPS` groups sums are scattered: the answers are the same."""

    @pytest.mark.parametrize("groups", [grouped.MANY_GROUPS - 2, grouped.MANY_GROUPS + 2, 2**15 + 2, 2**16 + 2])
    def test_every_group(self, groups):
        rng = np.random.default_rng(groups)
        codes = rng.integers(0, groups + 1, 3000).astype(np.int32)
        codes[:4] = 0, groups - 1, groups - 1, groups
        values = rng.integers(0, 9, 3000) / 2
        universe = Universe(0.0, 3.5)
        summary = summary_of_groups(values, codes, groups, universe, EVERYTHING)
        assert summary.n.tolist() == np.bincount(codes, minlength=groups + 1)[:groups].tolist()
        moved = np.bincount(codes[values > universe.hi], minlength=groups + 1)[:groups]
        assert moved.sum() > 200 and summary.clamped.tolist() == moved.tolist()
        for group in [0, 1, groups - 1, *np.unique(codes[codes < groups])[::50]]:
            assert_true(summary, group, clean(values, universe, codes == group), universe)


class TestRounding:
    """Sums on the lattice are exact; floating-point answers are off by no more than `Statistic.rounding` claims."""

    def test_steps_do_not_depend_on_the_order_of_rows(self):
        rng = np.random.default_rng(0)
        values = rng.normal(0, 1e3, 3 * SIZE) * 10.0 ** rng.integers(-6, 3, 3 * SIZE)
        universe = Universe(-1e6, 1e6)
        step = lattice_step(universe)
        expected = sum(round(Fraction(x) / step) for x in np.clip(values, -1e6, 1e6).tolist())
        codes = np.zeros(len(values), dtype=np.int32)
        for rows in (values, values[::-1], np.sort(values), rng.permutation(values)):
            assert summary_of_one(rows, universe, Needs(steps=True)).steps[0] == expected
            assert summary_of_groups(rows, codes, 1, universe, Needs(steps=True)).steps[0] == expected

    nasty = pytest.mark.parametrize(
        "values",
        [
            pytest.param(np.full(5 * SIZE, 0.1), id="a repeating fraction"),
            pytest.param(np.full(5 * SIZE, 1 - 2.0**-31 + 2.0**-53), id="rounding always the same way"),
            pytest.param(np.tile([1e9, 1e-9, -1e9], 2 * SIZE), id="cancelling"),
            pytest.param(np.r_[1e9, np.full(3 * SIZE, 1e-7)], id="one giant first"),
            pytest.param(1e9 + np.arange(3 * SIZE) % 7 / 8, id="small differences far from zero"),
            pytest.param(np.random.default_rng(1).pareto(1, 3 * SIZE), id="heavy tail"),
        ],
    )

    @pytest.mark.sampled(5)
    @nasty
    @pytest.mark.parametrize("statistic", [Mean(), Var(0), Var(1), Std(1)], ids=lambda s: s.label)
    def test_error_within_the_claim(self, values, statistic):
        universe = Universe(min(0.0, values.min()), max(1.0, values.max()))
        # An integer of 2**-60 holds each of these records, and their mean, far closer than the claim.
        exact = [Fraction(x) for x in np.unique(values).tolist()]
        counts = [int(c) for c in np.unique(values, return_counts=True)[1]]
        n = len(values)
        mean = sum((x * c for x, c in zip(exact, counts, strict=True)), Fraction(0)) / n if len(exact) < 99 else None
        if mean is None:
            mean = Fraction(math.fsum(values)) / n
            squares = math.fsum((values - float(mean)) ** 2)
        else:
            squares = sum(((x - mean) ** 2 * c for x, c in zip(exact, counts, strict=True)), Fraction(0))
        if isinstance(statistic, Mean):
            expected = float(mean)
        else:
            expected = float(squares / (n - statistic.ddof))
            expected = math.sqrt(expected) if isinstance(statistic, Std) else expected
        codes = np.zeros(n, dtype=np.int32)
        one = summary_of_one(values, universe, statistic.needs)
        two = summary_of_groups(values, codes, 2, universe, statistic.needs)
        many = summary_of_groups(values, codes, grouped.MANY_GROUPS + 1, universe, statistic.needs)
        for summary in (one, two, many):
            assert abs(statistic.value(summary, universe)[0] - expected) <= statistic.rounding(universe)

    def test_mean_of_one_large_group_among_many(self):
        # Each of 2**22 additions rounds down by almost half a unit of the last place, if they follow one another.
        n, record = 2**22, 0.5 + 2.0**-33 - 2.0**-50
        universe = Universe(0.0, 1.0)
        codes = np.zeros(n, dtype=np.int32)
        summary = summary_of_groups(np.full(n, record), codes, grouped.MANY_GROUPS + 1, universe, Mean().needs)
        assert abs(Mean().value(summary, universe)[0] - record) <= Mean().rounding(universe)

    def test_variance_far_from_zero(self):
        # Sum of squares minus square of sum would lose every digit: the values have 1 + 2**-30 relative to 1e9.
        values = 1e9 + np.array([0.0, 0.25, 0.5, 0.75, 1.0] * 4000)
        universe = Universe(1e9 - 1000, 1e9 + 1000)
        for summary in (
            summary_of_one(values, universe, Var().needs),
            summary_of_groups(values, np.zeros(len(values), dtype=np.int32), 1, universe, Var().needs),
        ):
            assert Var(0).value(summary, universe)[0] == pytest.approx(0.125, rel=1e-12)

    @pytest.mark.parametrize("n", [7, 1000])
    def test_equal_records_far_from_zero_have_no_variance(self, n):
        # Their computed mean is 1e-7 beside them: uncorrected, that would be their standard deviation.
        values, universe = np.full(n, 1e9 + 0.1), Universe(0.0, 1e9 + 1)
        one = summary_of_one(values, universe, Var().needs)
        group = summary_of_groups(values, np.zeros(n, dtype=np.int32), 1, universe, Var().needs)
        assert one.total[0] / n != values[0]
        for summary in (one, group):
            assert Var(0).value(summary, universe)[0] < 1e-20

    @given(
        values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9),
        statistic=st.one_of(st.just(Median()), st.floats(0, 1).map(Quantile)),
    )
    def test_quantiles(self, values: list[float], statistic: Statistic):
        universe = Universe(-1e6, 1e6)
        ordered = [Fraction(x) for x in sorted(values)]
        position = (len(values) - 1) * Fraction(statistic.q)
        left = math.floor(position)
        right = min(left + 1, len(values) - 1)
        expected = ordered[left] + (position - left) * (ordered[right] - ordered[left])
        found = statistic.value(summary_of_one(np.array(values), universe, statistic.needs), universe)[0]
        assert abs(Fraction(float(found)) - expected) <= Fraction(statistic.rounding(universe))


class TestRanksOfQuantiles:
    """``n * q`` is taken exactly: a float product is off by whole ranks' worth of interpolation for large n."""

    @given(n=st.integers(-2, 2**40), q=st.floats(0, 1) | st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.99]))
    def test_whole_part_and_window_start(self, n, q):
        exact = n * Fraction(q)
        whole, part = whole_and_part(np.array([n]), q)
        assert whole[0] == math.floor(exact)
        assert part[0] == pytest.approx(float(exact - math.floor(exact)), rel=2.0**-52, abs=2.0**-1000)
        assert window_start(np.array([n]), q)[0] == math.floor(exact) - (q > 0.5)

    @pytest.mark.parametrize("q", [0.1, 0.3, 0.7, 0.9, 1 / 3, 1 - 2.0**-53, 2.0**-53, 2.0**-1000])
    def test_products_next_to_an_integer(self, q):
        # n q is next to an integer where n is next to a multiple of 1/q: there a rounded product is on the wrong side.
        numbers = [round(k / Fraction(q)) + shift for k in range(200) for shift in (-1, 0, 1)]
        n = np.array([x for x in numbers if -2 <= x <= 2**40])
        whole, part = whole_and_part(n, q)
        exact = [int(x) * Fraction(q) for x in n]
        assert whole.tolist() == [math.floor(x) for x in exact]
        assert part.tolist() == pytest.approx([float(x - math.floor(x)) for x in exact], rel=2.0**-52, abs=2.0**-1000)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("missing", [False, True])
def test_bounds_are_not_rounded_to_the_type_of_the_column(dtype, missing):
    """float32(1000.7) lies above 1000.7: such a record counts as the bound, and so no more than one place."""
    universe = Universe(1000.6, 1000.7)
    values = np.full(5, 1000.7, dtype=dtype)
    values[:1] = np.nan if missing else values[:1]
    for summary in (
        summary_of_one(values, universe, Needs(places=True, ends=True)),
        summary_of_groups(values, np.zeros(5, dtype=np.int32), 1, universe, Needs(places=True, ends=True)),
    ):
        assert 0 <= summary.places[0] <= summary.n[0] * PLACES
        assert universe.lo <= summary.lowest[0, 0] <= summary.highest[0, 0] <= universe.hi
