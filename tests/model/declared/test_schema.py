"""The range and the groups that a schema gives a column are what its own validation accepts."""

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pdrisk
from pdrisk import bounds_from, keys_from, missing_from
from schemas import accepted, marked, said, schema_of

pytestmark = pytest.mark.filterwarnings("ignore::pandera.errors.SchemaWarning")

C = pa.Check
INF = math.inf
NAN = math.nan
INTEGERS = list(range(-50, 51))
WHOLE = [int, "int8", "int64", "Int64", "Int16", "int64[pyarrow]", pa.Int32, np.int16, pd.Int32Dtype()]


def agrees_on_integers(schema, dtype, values=INTEGERS):
    """The bounds are the smallest and largest integer that is accepted, if the grid holds it."""
    found = accepted(schema, values, dtype)
    if not found:
        with pytest.raises(pdrisk.ParameterError, match="allows no value of 'x'"):
            bounds_from(schema)
        return
    low = -INF if found[0] == values[0] else found[0]
    high = INF if found[-1] == values[-1] else found[-1]
    assert said(schema)[2:] == (low, high)
    assert bounds_from(schema) == ({"x": (low, high)} if -INF < low < high < INF else {})


def agrees_on_floats(schema, ends, dtype=float):
    """Everything between the bounds is accepted, nothing outside them."""
    near = [value for end in map(float, ends) for value in (np.nextafter(end, -INF), end, np.nextafter(end, INF))]
    values = sorted({*near, *(end + 0.5 for end in map(float, ends)), -1e9, 1e9})
    found = accepted(schema, values, dtype)
    if not found:
        with suppress(pdrisk.ParameterError):  # closed, [3, 3) still holds a number
            assert bounds_from(schema) == {}
        return
    low, high = said(schema)[2:]
    assert found[0] == values[0] if low == -INF else found[0] in (low, np.nextafter(low, INF))
    assert found[-1] == values[-1] if high == INF else found[-1] in (high, np.nextafter(high, -INF))
    assert found == [value for value in values if found[0] <= value <= found[-1]]
    assert bounds_from(schema) == ({"x": (low, high)} if -INF < low < high < INF else {})


# Name: checks of one column, and the numbers that stand in them.
FORMS = {
    "in_range": [C.in_range(3, 7)],
    "in_range, open below": [C.in_range(3, 7, include_min=False)],
    "in_range, open above": [C.in_range(3, 7, include_max=False)],
    "in_range, open": [C.in_range(3, 7, include_min=False, include_max=False)],
    "in_range, fractions": [C.in_range(2.5, 7.5)],
    "in_range, open fractions": [C.in_range(2.5, 7.5, include_min=False, include_max=False)],
    "between": [C.between(3, 7)],
    "between, open": [C.between(3, 7, False, False)],
    "ge": [C.ge(3)],
    "gt": [C.gt(3)],
    "le": [C.le(7)],
    "lt": [C.lt(7)],
    "long names": [C.greater_than_or_equal_to(3), C.less_than(7)],
    "long names, other ends": [C.greater_than(3), C.less_than_or_equal_to(7)],
    "both ends": [C.ge(3), C.le(7)],
    "other order": [C.le(7), C.ge(3)],
    "both open": [C.gt(3), C.lt(7)],
    "open fraction": [C.gt(0.5), C.lt(6.5)],
    "closed fraction": [C.ge(0.5), C.le(6.5)],
    "the narrower of two": [C.ge(1), C.gt(2), C.ge(2), C.in_range(0, 9), C.lt(9), C.le(9)],
    "open and closed at one end": [C.gt(3), C.ge(3), C.le(7), C.lt(7)],
    "overlap": [C.in_range(0, 5), C.in_range(3, 9)],
    "below zero": [C.gt(-7.5), C.lt(-3)],
    "named": [C.in_range(3, 7, name="plausible"), C.gt(3, name="more", error="no")],
    "with others": [C.ge(3), C.ne(5), C.notin([4]), C.le(7), C(lambda series: series < 100), marked()],
    "one value": [C.in_range(3, 3)],
    "one integer": [C.gt(2), C.lt(4)],
    "infinite above": [C.in_range(3, INF)],
    "infinite": [C.in_range(-INF, INF)],
    "numpy's ends": [C.in_range(np.float32(2.5), np.float16(7.5)), C.ge(np.int8(-128)), C.le(np.uint8(255))],
    "fractions of Python": [C.in_range(Fraction(7, 3), Fraction(15, 2))],
    "no integer": [C.in_range(0.2, 0.8)],
    "no integer, open": [C.in_range(0, 1, False, False)],
    "contradiction": [C.ge(7), C.le(3)],
    "no check": [],
}
HUGE = {
    "10^400": 10**400, "-10^400": -(10**400), "decimal": Decimal("1e400"), "float": 1.5e308, "inf": INF,
    "fraction": Fraction(10**400, 3),
}  # fmt: skip


class TestIntegers:
    """For integer columns the bounds are the smallest and largest integer that validation accepts."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", [name for name in FORMS if name != "with others"])
    @pytest.mark.parametrize("dtype", [int, "Int64"])
    def test_forms(self, name, dtype):
        agrees_on_integers(schema_of(*FORMS[name], dtype=dtype), dtype)

    @pytest.mark.parametrize("dtype", WHOLE, ids=str)
    def test_dtypes(self, dtype):
        schema = schema_of(C.gt(3), C.lt(7), dtype=dtype)
        assert bounds_from(schema) == {"x": (4, 6)}
        agrees_on_integers(schema, schema.columns["x"].dtype.type)

    @pytest.mark.parametrize("dtype", ["uint8", "uint64", "UInt8", pa.UInt16])
    def test_unsigned(self, dtype):
        schema = schema_of(C.gt(3.5), C.lt(200), dtype=dtype)
        agrees_on_integers(schema, schema.columns["x"].dtype.type, range(250))

    @pytest.mark.slow
    @given(data=st.data())
    def test_any_combination(self, data):
        checks, _ = data.draw(range_checks())
        agrees_on_integers(schema_of(*checks, dtype=int), int)

    def test_a_dtype_of_the_whole_schema(self):
        schema = pa.DataFrameSchema({"x": pa.Column(checks=[C.gt(3), C.lt(7)])}, dtype=int)
        agrees_on_integers(schema, int)

    @pytest.mark.parametrize("dtype", [int, float, None])
    def test_checks_of_the_whole_schema(self, dtype):
        columns = {"x": pa.Column(dtype, C.lt(7)), "y": pa.Column(dtype)}
        schema = pa.DataFrameSchema(columns, checks=[C.gt(3), C.le(30, name="plausible")])
        step = dtype is int
        assert bounds_from(schema) == {"x": (3 + step, 7 - step), "y": (3 + step, 30)}

    def test_decimals(self):
        schema = schema_of(C.gt(Decimal("2.5")), C.le(Decimal("7.9")), dtype=int)
        assert bounds_from(schema) == {"x": (3, 7)}


class TestFloats:
    """Everywhere else they are the numbers in the checks: nothing outside them is accepted."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", [name for name in FORMS if name != "with others"])
    def test_forms(self, name):
        ends = [end for check in FORMS[name] for end in check.statistics.values() if not isinstance(end, bool)]
        agrees_on_floats(schema_of(*FORMS[name], dtype=float), [end for end in ends if abs(float(end)) < INF])

    @pytest.mark.slow
    @given(data=st.data())
    def test_any_combination(self, data):
        checks, ends = data.draw(range_checks())
        agrees_on_floats(schema_of(*checks, dtype=float), ends)

    @pytest.mark.parametrize("dtype", [None, float, "float32", "Float64", "float64[pyarrow]", object, bool], ids=str)
    def test_exclusive_ends_are_the_same_number(self, dtype):
        assert bounds_from(schema_of(C.gt(0.5), C.lt(7), dtype=dtype)) == {"x": (0.5, 7)}

    def test_other_checks_take_nothing_away(self):
        assert said(schema_of(*FORMS["with others"], dtype=int)) == (3, 7, 3, 7)

    def test_decimals(self):
        assert bounds_from(schema_of(C.in_range(Decimal("0.1"), Decimal("7.9")))) == {"x": (0.1, 7.9)}


@st.composite
def range_checks(draw):
    """Some built-in checks in any order, and their ends."""
    number = st.integers(-30, 30) | st.integers(-120, 120).map(lambda quarters: quarters / 4)
    checks, ends = [], []
    for kind in draw(st.lists(st.sampled_from(["in_range", "ge", "gt", "le", "lt"]), min_size=1, max_size=4)):
        options = draw(st.sampled_from([{}, {"name": "anything"}, {"title": "a title"}]))
        if kind == "in_range":
            low, high = sorted([draw(number), draw(number)])
            assume(low < high)
            checks.append(C.in_range(low, high, draw(st.booleans()), draw(st.booleans()), **options))
            ends += [low, high]
        else:
            ends.append(draw(number))
            checks.append(getattr(C, kind)(ends[-1], **options))
    return checks, ends


STEP = datetime.timedelta(days=1)
AT = datetime.datetime(2020, 1, 1)
FORMS_OF_DATES = {
    "in_range": [C.in_range(AT, AT + 9 * STEP)],
    "open": [C.in_range(AT, AT + 9 * STEP, include_min=False, include_max=False)],
    "pieces": [C.gt(AT), C.le(AT + 9 * STEP)],
    "two ranges": [C.between(AT, AT + 9 * STEP), C.lt(AT + 5 * STEP)],
    "times": [C.ge(AT + STEP / 2), C.lt(AT + 5.25 * STEP)],
    "numpy": [C.ge(np.datetime64("2020-01-01")), C.le(pd.Timestamp("2020-01-08"))],
    "one end": [C.ge(AT)],
}


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
class TestDates:
    """Bounds of dates are what validation of a column of dates accepts."""

    @pytest.mark.parametrize("form", FORMS_OF_DATES)
    def test_times(self, form):
        schema = schema_of(*FORMS_OF_DATES[form], dtype="datetime64[us]")
        values = [AT + step * STEP / 4 for step in range(-8, 56)]
        found = accepted(schema, values)
        low, high = bounds_from(schema).get("x", (None, None))
        if form == "one end":
            assert low is None and found[-1] == values[-1]
            assert said(schema, dtype="datetime64[us]")[2] == datetime.date(2020, 1, 1)
            return
        ends = [pd.Timestamp(low), pd.Timestamp(high)]
        assert ends[0] <= found[0] <= ends[0] + STEP / 4 and ends[1] - STEP / 4 <= found[-1] <= ends[1]
        frame = schema.validate(pd.DataFrame({"x": pd.Series(found, dtype="datetime64[us]")}))
        assert frame.dprisk.mean("x", eps=1).bounds == tuple(ends)

    @pytest.mark.parametrize("form", ["in_range", "open", "pieces", "two ranges"])
    def test_days(self, form):
        """Of days an end that is left out is the next day, as of integers."""
        checks = [
            getattr(C, check.name)(
                **{name: getattr(end, "date", lambda end=end: end)() for name, end in check.statistics.items()}
            )
            for check in FORMS_OF_DATES[form]
        ]
        schema = schema_of(*checks, dtype=pa.Date)
        values = [(AT + step * STEP).date() for step in range(-3, 14)]
        found = accepted(schema, values)
        assert bounds_from(schema) == {"x": (found[0], found[-1])}

    def test_narrower_and_wider(self):
        frame = pd.DataFrame({"x": pd.to_datetime(["2020-01-03", "2020-01-05"])}).dprisk.declare(
            schema_of(*FORMS_OF_DATES["in_range"])
        )
        assert frame.dprisk.mean("x", eps=1, bounds=("2020-01-02", "2020-01-09")).bounds[0] == pd.Timestamp(
            "2020-01-02"
        )
        with pytest.raises(
            pdrisk.ParameterError,
            match=r"bounds \(2019-12-30, 2020-01-11\) .* 2020-01-01 to 2020-01-10 "
            r"\(2 days too low and 1 days too high\)",
        ):
            frame.dprisk.mean("x", eps=1, bounds=("2019-12-30", "2020-01-11"))
        table = frame.dprisk.declared.loc["x", ["lo", "hi", "valid_lo", "valid_hi"]].tolist()
        assert table == [datetime.date(2020, 1, 1), datetime.date(2020, 1, 10)] * 2

    def test_dates_and_numbers(self):
        dates, numbers = schema_of(*FORMS_OF_DATES["in_range"]), schema_of(C.in_range(0, 9))
        days = pd.DataFrame({"x": pd.to_datetime(["2020-01-03", "2020-01-05"])})
        with pytest.raises(pdrisk.ColumnTypeError, match="numbers as bounds of 'x', but the column holds timestamps"):
            days.dprisk.declare(numbers).dprisk.mean("x", eps=1)
        with pytest.raises(pdrisk.ColumnTypeError, match="dates as bounds of 'x', but the column holds numbers"):
            pd.DataFrame({"x": [1, 2]}).dprisk.declare(dates).dprisk.mean("x", eps=1)
        with pytest.raises(pdrisk.ParameterError, match="others numbers"):
            bounds_from(schema_of(C.ge(0), C.le(AT)))
        with pytest.raises(pdrisk.ParameterError, match="the other way round"):
            bounds_from(schema_of(C.in_range(0, 9), metadata={"dprisk": {"bounds": ("2020-01-01", "2020-01-09")}}))
        with pytest.raises(pdrisk.ParameterError, match="others numbers"):
            days.dprisk.declare(numbers).dprisk.declare(bounds={"x": ("2020-01-01", "2020-01-09")})
        with pytest.raises(pdrisk.ParameterError, match="needs bounds"):
            pdrisk.sql("SELECT MIN(x) FROM t", eps=1, schema=numbers, t=days)

    @pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us]"])
    def test_in_sql(self, dtype):
        days = pd.DataFrame({"x": pd.to_datetime(["2020-01-03", "2020-01-05", "2020-03-01"]).astype(dtype)})
        schema = schema_of(*FORMS_OF_DATES["in_range"])
        for told in ({"schema": schema, "t": days}, {"t": days.dprisk.declare(schema)}):
            answer = pdrisk.sql("SELECT MIN(x) AS a, MAX(x) AS b, AVG(x) AS m FROM t", eps=1e9, **told)
            assert (
                (answer - pd.Timestamp("2020-01-03"))
                .abs()
                .iloc[0]
                .le([pd.Timedelta(seconds=1), pd.Timedelta(days=7, seconds=1), pd.Timedelta(days=3, seconds=1)])
                .all()
            )
            assert answer["b"][0] - pd.Timestamp("2020-01-10") < pd.Timedelta(seconds=1)

    def test_made_and_read_again(self):
        for bounds in (("2020-01-01", "2020-01-31"), (AT, AT + 1.5 * STEP)):
            schema = pdrisk.schema_for({"x": bounds}, missing={"x": [datetime.date(1900, 1, 1)]})
            low, high = bounds_from(schema)["x"]
            assert (pd.Timestamp(low), pd.Timestamp(high)) == tuple(map(pd.Timestamp, bounds))
            values = ["2020-01-01", "2019-12-31", "1900-01-01", "1899-12-31", "2020-02-02", None]
            days = list(pd.to_datetime(values))
            assert accepted(schema, days) == [days[0], days[1], days[2], days[5]]  # codes widen what is valid
            assert list(missing_from(schema)) == ["x"]


class TestNoRange:
    """What is no check of a column's numbers says nothing about its range."""

    @pytest.mark.parametrize(
        "check",
        [
            C.in_range(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2021", tz="UTC")),
            C.gt(pd.Timedelta(1, unit="D")),
            C.ge(pd.NaT),
            C.in_range("a", "z"),
            C.str_length(1, 5),
            C.isin([1, 2]),
            C.eq(5),
            C.ge(True),
            C.ge(NAN),
            C.ge(Decimal("NaN")),
            C(lambda series: series > 3),
            C(lambda series: series > 3, name="in_range", statistics={"min_value": 3, "max_value": 7}),
            pa.Hypothesis.one_sample_ttest(popmean=5),
        ],
        ids=lambda check: f"{check.name} {check.statistics}",
    )
    def test_nothing_is_said(self, check):
        assert bounds_from(schema_of(check, C.le(9))) == {}
        assert said(schema_of(C.in_range(0, 9), check)) == (0, 9, 0, 9)

    def test_a_group_of_rows_is_not_the_column(self):
        columns = {"x": pa.Column(checks=[C.in_range(3, 7, groupby="g"), C.isin([3], groupby="g")]), "g": pa.Column()}
        assert pd.DataFrame(columns=["x", "g"]).dprisk.declare(pa.DataFrameSchema(columns)).dprisk.declared.empty

    @pytest.mark.parametrize("huge", HUGE.values(), ids=HUGE)
    @pytest.mark.parametrize("dtype", [None, int])
    def test_an_end_beyond_all_floats_is_none(self, huge, dtype):
        beyond = C.ge(huge) if huge < 0 else C.le(huge)
        assert bounds_from(schema_of(beyond, dtype=dtype)) == {}
        assert said(schema_of(beyond, C.in_range(0, 9), dtype=dtype)) == (0, 9, 0, 9)

    @pytest.mark.parametrize("raise_warning", [False, True])
    @pytest.mark.parametrize("ends", [(5, 5), (0, 1e200), (1e12, 1e12 + 1)])
    def test_a_range_that_cannot_be_bounds(self, ends, raise_warning):
        schema = schema_of(C.in_range(*ends, raise_warning=raise_warning))
        assert bounds_from(schema) == {}
        assert said(schema)[2:] == ((-INF, INF) if raise_warning else ends)


class TestWarnings:
    """A check that only warns gives bounds, and no limit."""

    @pytest.mark.parametrize(
        ("checks", "expected"),
        [
            ([C.in_range(3, 7, raise_warning=True)], (3, 7, -INF, INF)),
            ([C.ge(0), C.le(7, raise_warning=True)], (0, 7, 0, INF)),
            ([C.in_range(3, 7, raise_warning=True), C.in_range(0, 9)], (3, 7, 0, 9)),
            ([C.in_range(0, 9), C.gt(3, raise_warning=True)], (4, 9, 0, 9)),
            ([C.in_range(3, 7), C.in_range(0, 9, raise_warning=True)], (3, 7, 3, 7)),
            ([C.ge(3, raise_warning=True)], (NAN, NAN, -INF, INF)),
        ],
    )
    def test_bounds_without_a_limit(self, checks, expected):
        assert np.array_equal(said(schema_of(*checks, dtype=int)), expected, equal_nan=True)

    def test_keys_that_only_warn_are_none(self):
        assert keys_from(schema_of(C.isin(["a"], raise_warning=True))) == {}


DAY = pd.Timestamp("2020-01-02")


class TestKeys:
    """What a schema lists are the groups: in its order, without missing ones."""

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (["b", "a", "c"], ["b", "a", "c"]),
            (("b", "a"), ["b", "a"]),
            (np.array([3, 1]), [3, 1]),
            (pd.Index(["b", "a"]), ["b", "a"]),
            (range(3), [0, 1, 2]),
            ({"b", "c", "a"}, ["a", "b", "c"]),
            (frozenset([10, 9, 1]), [1, 9, 10]),
            ({"b", 2, None, 1.5}, [1.5, 2, "b"]),
            (["b", "a", "b"], ["b", "a"]),
            (["b", None, NAN, pd.NA, pd.NaT, "a"], ["b", "a"]),
            ([DAY, np.datetime64("2021-01-01"), pd.NaT], [DAY, pd.Timestamp("2021-01-01")]),
            ([DAY.tz_localize("UTC")], [DAY.tz_localize("UTC")]),
            ([datetime.date(2020, 1, 2)], [datetime.date(2020, 1, 2)]),
            ([True, False], [True, False]),
            ([np.int64(2), np.str_("a")], [2, "a"]),
        ],
        ids=lambda values: "a set" if isinstance(values, set | frozenset) else str(values),
    )
    def test_isin(self, values, expected):
        found = keys_from(schema_of(C.isin(values), nullable=True))["x"]
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))

    @pytest.mark.parametrize("values", [[Decimal(1)], [b"a"], [1j]], ids=str)
    def test_values_that_no_file_can_hold_list_nothing(self, values):
        assert keys_from(schema_of(C.isin(values))) == {}

    def test_a_set_that_cannot_be_sorted(self):
        assert len(keys_from(schema_of(C.isin({DAY, DAY.tz_localize("UTC")})))["x"]) == 2

    @pytest.mark.parametrize("dtype", [pa.Category(["b", "a"]), pd.CategoricalDtype(["b", "a"], ordered=True)], ids=str)
    def test_written_categories(self, dtype):
        assert keys_from(schema_of(dtype=dtype)) == {"x": ["b", "a"]}
        assert keys_from(schema_of(C.isin(["c", "a"]), dtype=dtype)) == {"x": ["a"]}

    @pytest.mark.parametrize("dtype", [pa.Category, pa.Category(), pd.CategoricalDtype(), "category"], ids=str)
    def test_categories_that_are_not_written_are_none(self, dtype):
        frame = pd.DataFrame({"x": pd.Categorical(["a", "b"])})
        assert keys_from(schema_of(dtype=dtype)) == {}
        assert frame.dprisk.declare(schema_of(C.ge(0), dtype=dtype)).dprisk.declared["keys"].tolist() == [None]
        assert keys_from(schema_of(C.isin(["b", "a"]), dtype=dtype)) == {"x": ["b", "a"]}

    def test_two_lists_share(self):
        assert keys_from(schema_of(C.isin([5, 3, 4]), C.isin([4, 9, 5]))) == {"x": [5, 4]}
        whole = pa.DataFrameSchema({"x": pa.Column(checks=C.isin([5, 3]))}, checks=C.isin({1, 3, 5}))
        assert keys_from(whole) == {"x": [3, 5]}

    def test_missing_codes_are_no_keys(self):
        schema = schema_of(C.isin([-2, 7, -1, 3]), metadata={"dprisk": {"missing": [-1, -2]}})
        assert (keys_from(schema), missing_from(schema)) == ({"x": [7, 3]}, {"x": [-1, -2]})
