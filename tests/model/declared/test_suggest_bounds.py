"""Bounds found privately: every record counted once by its size, and ends that noise hardly ever makes.

Where noise is real, successes are counted over repeats: this file fails by chance with less than 1e-6.
"""

import bisect
import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk._core.universe import Universe
from pdrisk._pandas.suggested_bounds import FIRST, ONWARD, OTHER, ZERO, ends
from pdrisk.engines.numpy.bins import LARGEST, SIZES, SMALLEST, size_counts
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.risk import posterior
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

ALL = 2 * SIZES + 1
POWERS = [Fraction(2) ** size for size in range(SMALLEST - 1, LARGEST)]  # where each size begins
NOT_FOUND = pdrisk.BoundsNotFoundError


def place(value):
    """Where a value, as a float64, counts by the definition, on exact fractions; None for a missing one."""
    value = float(value)
    if math.isnan(value):
        return None
    steps = SIZES if math.isinf(value) else bisect.bisect_right(POWERS, Fraction(abs(value)))
    return SIZES + steps if value > 0 else SIZES - steps


def brute(values):
    counts = [0] * ALL
    for value in values:
        if (at := place(value)) is not None:
            counts[at] += 1
    return counts


def histogram(people):
    """Counts of so many people with each value."""
    counts = np.zeros(ALL)
    for value, n in people.items():
        counts[place(value)] += n
    return counts


def column(people):
    return pd.DataFrame({"x": [value for value, n in people.items() for _ in range(n)]}, dtype=float)


def suggest(frame, eps=1):
    return frame.dprisk.suggest_bounds("x", eps=eps)


POWERS_OF_TWO = [math.ldexp(1.0, e) for e in (-1074, -1023, -1022, -331, -330, -329, -1, 0, 1, 52, 53, 331, 332, 1023)]
HARD = [
    *(math.nextafter(power, towards) for power in POWERS_OF_TWO for towards in (0.0, math.inf)),
    *POWERS_OF_TWO,
    *(0.0, 5e-324, 2.2e-308, 1e-100, 1e100, 1.79e308, math.inf, math.nan, 0.1, 1 / 3, 1.5, 3.0, 675.0),
]


class TestMagnitudes:
    """Every record that is not missing is counted once, at its sign and its size."""

    def test_hard_values(self):
        values = [sign * value for value in HARD for sign in (1, -1)]
        assert size_counts(np.array(values)).tolist() == brute(values)
        for value in values:
            assert size_counts(np.array([value])).tolist() == brute([value])

    def test_every_size_from_its_first_value_to_its_last(self):
        for size in range(SMALLEST, LARGEST + 1):
            low, high = math.ldexp(1.0, size - 1), math.nextafter(math.ldexp(1.0, size), 0)
            assert math.frexp(low)[1] == math.frexp(high)[1] == size
            counts = size_counts(np.array([low, high, -low, -high, -high]))
            assert (counts[place(low)], counts[place(-low)], counts.sum()) == (2, 3, 5)

    @given(st.lists(st.floats(), max_size=40))
    def test_any_floats(self, values):
        assert size_counts(np.array(values, dtype=float)).tolist() == brute(values)

    @pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
    def test_integers(self, dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = [0, 1, 2, 3, 4, 7, 8, high, high - 1, high // 2, high // 2 + 1, low, low // 2]
        assert size_counts(np.array(values, dtype=dtype)).tolist() == brute(values)

    @pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "longdouble"])
    def test_other_floats(self, dtype):
        values = np.array([0.0, -0.0, 0.1, 1, 2, -3, 6e-8, 65504, math.inf, -math.inf, math.nan], dtype=dtype)
        assert size_counts(values).tolist() == brute(values)

    def test_truth_values_and_nobody(self):
        assert size_counts(np.array([True, False, True])).tolist() == brute([1, 0, 1])
        assert size_counts(np.array([])).tolist() == [0] * ALL
        assert size_counts(np.full(3, math.nan)).tolist() == [0] * ALL

    def test_larger_values_count_further_on(self):
        values = sorted({sign * value for value in HARD for sign in (1, -1) if not math.isnan(value)})
        places = [size_counts(np.array([value])).argmax() for value in values]
        assert places == sorted(places)
        assert (places[0], places[-1]) == (0, ALL - 1)

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("n", [SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 1])
    def test_pieces(self, n):
        values = np.resize([0.0, 3.0, math.nan, -1e9, 1e-9], n)
        assert size_counts(values).tolist() == brute(values)
        assert size_counts(values[::-2]).tolist() == brute(values[::-2])

    def test_every_end_can_be_declared(self):
        for size in (SMALLEST, LARGEST):
            low, high = math.ldexp(1.0, size - 1), math.ldexp(1.0, size)
            assert ends(histogram({low: 1000}), 1) == (Universe(low, high).lo, Universe(low, high).hi)
            assert ends(histogram({-low: 1000}), 1) == (Universe(-high, -low).lo, Universe(-high, -low).hi)
        assert ends(histogram({high: 1000, -high: 1000}), 1) == (Universe(-high, high).lo, high)


class TestEnds:
    """The range of the sizes that hold more than noise."""

    CASES = (
        ({}, None), ({42: 500}, (32, 64)), ({-42: 500}, (-64, -32)), ({64: 500}, (64, 128)), ({-64: 500}, (-128, -64)),
        ({0: 500}, (0, 1)), ({0: 500, 42: 500}, (0, 64)), ({0: 500, -42: 500}, (-64, 0)),
        ({-3: 500, 42: 500}, (-4, 64)), ({-3: 500, 0: 500, 42: 500}, (-4, 64)),
        ({0.3: 500, 42: 9000, 7000: 500}, (0.25, 8192)), ({-0.3: 500, -42: 9000, -7000: 500}, (-8192, -0.25)),
        ({1e-90: 500, 1: 500, 1e90: 500}, (2.0**-299, 2.0**299)), ({1e-90: 500, -1e90: 500}, (-(2.0**299), 2.0**-298)),
        ({math.inf: 500}, (2.0**331, 2.0**332)), ({-math.inf: 500, 1e-320: 500}, (-(2.0**332), 0)),
        ({42: 500, 675: 1, -5: 1, 0: 1, 0.1: 1}, (32, 64)), ({0: 500, 675: 5, -675: 5}, (0, 1)),
        ({675: 5, -675: 5, 0: 1}, None),
    )  # fmt: skip

    @pytest.mark.parametrize(("people", "expected"), CASES, ids=lambda case: str(case)[:40])
    def test_crafted_counts(self, people, expected):
        assert ends(histogram(people), 1) == ends(histogram(people) - 0.5, 1) == expected

    @given(st.dictionaries(st.floats(allow_nan=False, allow_infinity=False), st.just(1000), min_size=1, max_size=6))
    def test_who_is_found_is_within_the_ends(self, people):
        low, high = ends(histogram(people), 1)
        limit = 2.0**LARGEST
        assert all(low <= min(max(x, -limit), limit) <= high for x in people if abs(x) >= 2.0 ** (SMALLEST - 1))
        assert low < high

    def test_any_counts_make_bounds_or_none(self):
        generator = np.random.default_rng(3)
        for spread in np.repeat([1, 3, 10, 1e6], 25):
            found = ends(generator.laplace(scale=spread, size=ALL), 1)
            assert found is None or Universe(*found)


def exceeded_by_noise(probability, eps):
    """What Laplace noise of scale 1/eps exceeds so often: half of it is above 0, and falls by e with each scale."""
    return math.log(1 / (2 * probability)) / eps


class TestThresholds:
    """Noise alone makes an end in at most one of a hundred suggestions."""

    SHARE = 6 / math.pi**2  # of 1 / d^2, which add up to pi^2 / 6
    OTHER_SIDE = math.pi**2 / 3 - 1

    def found(self, people, value, n, eps):
        return ends(histogram(people | {value: n}), eps)

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("eps", [0.01, 1, 20])
    def test_of_the_fullest_size_and_of_zero(self, eps):
        least = exceeded_by_noise(FIRST / (2 * SIZES), eps)
        for value in (sign * 0.75 * 2.0**size for size in range(SMALLEST, LARGEST + 1) for sign in (1, -1)):
            assert self.found({}, value, least * 0.999999, eps) is None
            assert self.found({}, value, least * 1.000001, eps) is not None
        least = exceeded_by_noise(ZERO, eps)
        for others in ({}, {3: 1000 / eps}, {-3: 1000 / eps}):
            without = ends(histogram(others), eps)
            assert self.found(others, 0, least * 0.999999, eps) == without
            assert self.found(others, 0, least * 1.000001, eps) != without

    @pytest.mark.parametrize("eps", [0.01, 1, 20])
    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("way", [1, -1])
    def test_of_the_next_size_by_its_distance(self, eps, sign, way):
        for distance in (*range(1, 40), 100, 300):
            others, value = {sign * 0.75: 1000 / eps}, sign * 0.75 * 2.0 ** (way * distance)
            least = exceeded_by_noise(ONWARD * self.SHARE / distance**2, eps)
            assert self.found(others, value, least * 0.999999, eps) == ends(histogram(others), eps)
            assert self.found(others, value, least * 1.000001, eps) == ends(histogram(others | {value: 1e9}), eps)

    def test_beyond_a_gap_the_distance_is_from_the_last_size_found(self):
        others = {0.75: 1000, 0.75 * 2.0**50: 1000}
        least = exceeded_by_noise(ONWARD * self.SHARE / 3**2, 1)
        assert self.found(others, 0.75 * 2.0**53, least * 0.999999, 1) == (0.5, 2.0**50)
        assert self.found(others, 0.75 * 2.0**53, least * 1.000001, 1) == (0.5, 2.0**53)

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("distance", [0, 1, 2, 7, 40, 300])
    def test_of_the_other_side_by_its_distance_from_the_fullest(self, sign, distance):
        others = {sign * 0.75: 1000, sign * 0.75 * 2.0**10: 900}
        for value in (-sign * 0.75 * 2.0**distance, -sign * 0.75 * 2.0**-distance):
            least = exceeded_by_noise(OTHER / (self.OTHER_SIDE * (1 + distance) ** 2), 1)
            assert self.found(others, value, least * 0.999999, 1) == ends(histogram(others), 1)
            assert self.found(others, value, least * 1.000001, 1) == ends(histogram(others | {value: 999}), 1)

    def test_the_probabilities_add_up_to_a_hundredth(self):
        assert sum(Fraction(str(each)) for each in (FIRST, OTHER, ZERO, *[ONWARD] * 4)) == Fraction(1, 100)
        assert self.SHARE * sum(1 / d**2 for d in range(1, SIZES)) < 1
        assert 1 + 2 * sum(1 / (1 + d) ** 2 for d in range(1, SIZES)) < self.OTHER_SIDE

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("others", [{}, {0: 400}, {700: 9, 3: 9}], ids=str)
    @pytest.mark.parametrize("people", [{}, {42: 400}, {-42: 400}, {-3: 400, 42: 400}, {1: 400, 1e6: 400}], ids=str)
    def test_by_simulation(self, people, others):
        """Seeded, so without a chance to fail: 1000 histograms with noise of numpy, 10 of them wrong at most."""
        generator, everybody = np.random.default_rng(5), people | others
        counts, own = histogram(everybody), ends(histogram(dict.fromkeys(everybody, 1e9)), 0.1)
        found = [ends(counts + generator.laplace(scale=10, size=ALL), 0.1) for _ in range(1000)]
        # Who is not found makes no end; an end beyond everybody is noise's.
        wrong = [each for each in found if each and (own is None or each[0] < own[0] or each[1] > own[1])]
        assert len(wrong) <= 10


def columns():
    """10,000 answers each, the same in every run."""
    rng, n = np.random.default_rng(11), 10_000
    incomes = np.rint(rng.lognormal(7.8, 0.7, n) / 500) * 500
    survey = pdrisk.datasets.soep_like(missing="nan")
    return {
        "skewed": rng.lognormal(2, 1, n),
        "very skewed": rng.pareto(1.2, n) + 1,
        "heaped": np.where(rng.random(n) < 0.1, 0, incomes),
        "heaped on one value": np.where(rng.random(n) < 0.9, 40.0, rng.integers(1, 80, n)),
        "negative": -rng.gamma(2, 300, n),
        "of both signs": rng.normal(0, 50, n),
        "constant": np.full(n, 42.0),
        "constant and negative": np.full(n, -0.007),
        "constant power of two": np.full(n, 1024.0),
        "yes or no": rng.random(n) < 0.3,
        "income": survey["income"].dropna()[:n],
        "distance": survey["distance"].dropna()[:n],
    }


COLUMNS = columns()


class TestUsefulness:
    """At eps=0.1 and 10,000 rows each end is within a factor of two of the column's own.

    The column's own upper end is anything from the value that 1 % of the people exceed to the largest; a size of value
    that fewer than some 65 people share may be lost. Likewise the lower end. For a constant that is the constant.
    """

    def useful(self, found, values):
        low, high = found
        least, few, most, largest = np.quantile(np.asarray(values, dtype=float), [0, 0.01, 0.99, 1], method="nearest")
        return (
            min(least * 2, least / 2) <= low <= max(few * 2, few / 2)
            and min(most * 2, most / 2) <= high <= max(largest * 2, largest / 2)
            and low < high
        )

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("name", COLUMNS)
    def test_of_real_draws(self, name):
        """One in a hundred may fail: 7 of 20 or more do with C(20, 7) .0115^7 = 2e-9."""
        frame = pd.DataFrame({"x": np.asarray(COLUMNS[name])})
        assert sum(self.useful(suggest(frame, 0.1), frame["x"]) for _ in range(20)) >= 14

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("name", COLUMNS)
    def test_by_simulation(self, name):
        """Seeded, with noise of numpy."""
        values = np.asarray(COLUMNS[name])
        generator, counts = np.random.default_rng(6), size_counts(values)
        found = [ends(counts + generator.laplace(scale=10, size=ALL), 0.1) for _ in range(1000)]
        assert sum(self.useful(each, values) for each in found) >= 990

    @pytest.mark.parametrize("value", [42.0, -0.007, 1024.0])
    def test_a_constant_lies_within_surely(self, value):
        low, high = suggest(column({value: 10_000}), 0.1)  # missed with exp(-980)
        assert low <= value <= high


class TestContract:
    """A pair like any other that says where it comes from; what cannot be asked is refused."""

    @pytest.fixture(autouse=True)
    def draws(self, monkeypatch):
        return without_noise(monkeypatch)

    def test_is_a_pair(self):
        found = suggest(column({42: 500}))
        low, high = found
        assert (low, high) == found == (32, 64)
        assert [type(found), *map(type, found)] == [pdrisk.SuggestedBounds, float, float]
        assert (found.column, found.eps, found.worst_case) == ("x", 1.0, float(posterior(1.0)))

    @pytest.mark.parametrize(
        "same", [copy.copy, copy.deepcopy, *(lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(6))]
    )
    def test_copies_know_as_much(self, same):
        found = suggest(column({-42: 500}), 0.5)
        other = same(found)
        assert (other, vars(other), repr(other), type(other)) == (found, vars(found), repr(found), type(found))

    def test_stands_for_bounds(self):
        frame = column({42: 500})
        found = suggest(frame)
        assert frame.dprisk.mean("x", eps=1, bounds=found).bounds == (32, 64)
        assert frame["x"].dprisk.max(eps=1, bounds=found).bounds == (32, 64)
        known = frame.dprisk.declare(bounds={"x": found})
        assert known.dprisk.mean("x", eps=1).bounds == (32, 64)
        assert known.dprisk.declared.loc["x", ["lo", "hi"]].tolist() == [32, 64]
        assert pdrisk.sql("SELECT AVG(x) AS m FROM t", eps=1, bounds={"x": found}, t=frame)["m"].tolist() == [42]

    def test_says_what_it_assumed(self):
        text = repr(suggest(column({42: 5000}), 0.1))
        for part in ("(32.0, 64.0)", "bounds of x", "eps=0.1", "0.525", "missing", "fewer than 151 people"):
            assert part in text
        assert not {"42", "5000"} & set(text.split())

    @pytest.mark.parametrize(
        ("dtype", "values"),
        [
            *((dtype, [3, 0, 1, 2]) for dtype in ("int8", "uint64", "float32", "Int64", "Float32", "int64[pyarrow]")),
            *((dtype, [3, 0, 1, None]) for dtype in ("float64", "Int64", "Float64", "double[pyarrow]", object)),
            *((dtype, [True, False]) for dtype in (bool, "boolean", object)), (object, [Decimal(3), Decimal(0), None]),
        ],
        ids=str,
    )  # fmt: skip
    def test_every_column_of_numbers(self, dtype, values):
        frame = pd.DataFrame({"x": pd.Series(values * 200, dtype=dtype)})
        assert suggest(frame) == (0, 2 if True in values and len(values) == 2 else 4)

    def test_missing_values_are_nobody(self):
        assert suggest(column({42: 500, math.nan: 9000})) == (32, 64)
        with pytest.raises(NOT_FOUND):
            suggest(column({42: 5, math.nan: 9000}))

    @pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", object])
    def test_declared_codes_are_missing(self, dtype):
        frame = column({42: 500, -1: 500, 999: 500}).astype(dtype)
        assert suggest(frame) == (-2, 1024)
        assert suggest(frame.dprisk.declare(missing={"x": [-1, 999]})) == (32, 64)
        schema = pa.DataFrameSchema({"x": pa.Column(None, metadata={"dprisk": {"missing": [-1]}})})
        assert suggest(frame.dprisk.declare(schema)) == (32, 1024)

    @pytest.mark.parametrize(
        ("check", "expected"),
        [
            (pa.Check.ge(0), (0, 64)), (pa.Check.ge(-100), (-4, 64)), (pa.Check.ge(33), (33, 64)),
            (pa.Check.le(50), (-4, 50)), (pa.Check.in_range(-3, 48), (-3, 48)), (pa.Check.in_range(-9, 99), (-4, 64)),
        ],
        ids=str,
    )  # fmt: skip
    def test_no_end_lies_outside_the_range_of_a_schema(self, check, expected):
        frame = column({42: 500, -3: 500}).dprisk.declare(pa.DataFrameSchema({"x": pa.Column(float, check)}))
        found = suggest(frame)
        assert found == expected
        assert frame.dprisk.mean("x", eps=1, bounds=found).bounds == expected

    @pytest.mark.parametrize("check", [pa.Check.ge(64), pa.Check.le(32), pa.Check.in_range(0, 32.00001)], ids=str)
    def test_a_range_that_leaves_no_bounds_over(self, check):
        """What it gives can be declared, or it gives nothing."""
        frame = column({42: 500}).dprisk.declare(pa.DataFrameSchema({"x": pa.Column(float, check)}))
        with pytest.raises(NOT_FOUND):
            suggest(frame)

    def test_of_a_series(self):
        known = column({42: 500, -1: 500}).dprisk.declare(missing={"x": [-1]})
        assert known["x"].dprisk.suggest_bounds(eps=1).column == "x"
        for series in (known["x"], pd.Series([42.0] * 500)):
            found = [tuple(series.dprisk.suggest_bounds(eps=1)) for _ in range(9)]  # one in 150 is wider, by its noise
            assert found.count((32, 64)) >= 5

    def test_only_the_asked_column_is_read(self):
        class Untouchable:
            def touched(self, *_):
                raise AssertionError

            __eq__ = __hash__ = __float__ = __lt__ = __bool__ = touched

        wide = {f"c{i}": pd.Series([Untouchable()] * 500, dtype=object) for i in range(200)}
        frame = pd.DataFrame({"x": [42] * 400 + [-1] * 100, **wide})
        assert suggest(frame) == (-2, 64)
        assert suggest(frame.dprisk.declare(missing={"x": [-1]})) == (32, 64)

    @pytest.mark.parametrize(
        ("column", "error", "words"),
        [
            ("distnace", pdrisk.UnknownColumnError, "Did you mean 'distance'"),
            ("name", pdrisk.ColumnTypeError, "suggest_bounds needs numbers, but column 'name' holds text"),
            ("day", pdrisk.ColumnTypeError, "holds timestamps"), (["distance"], pdrisk.ColumnTypeError, "by its label"),
            (None, pdrisk.ParameterError, "column"),
        ],
        ids=str,
    )  # fmt: skip
    def test_refused_columns(self, column, error, words):
        frame = pd.DataFrame({"distance": [42.0] * 500, "name": "a", "day": pd.Timestamp("2020-01-01")})
        with pytest.raises(error, match=words):
            frame.dprisk.suggest_bounds(column, eps=1)
