"""Declared missing codes become missing before anything else, as if they had been taken out by hand."""

import copy
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from errors_said import everything_said

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

STATISTICS = ["count", "sum", "mean", "median", ("quantile", {"q": 0.9}), "min", "max", "var", "std"]
STATISTICS += [("var", {"ddof": 0}), ("std", {"ddof": 0})]
BOUNDS = (-4, 10)
ROOM = dict.fromkeys(["int8", "int16", "int32", "int64", "uint8"], "float64") | {"bool": "boolean"}  # for a missing one


class Case(NamedTuple):
    """A column, the codes declared for it, the rows that hold one, and filters that its kind allows."""

    values: Any
    dtype: Any
    codes: list[Any]
    coded: list[int]
    filters: tuple[str, ...] = ("x > 0", "x == 3", "x in [3, 5]", "not x > 0", "x != 3", "x.isna() or w > 2")

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({"x": pd.Series(self.values, dtype=self.dtype), "w": range(8), "g": list("abababab")})

    def pair(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The frame with its codes declared, and that in which they were replaced by hand."""
        return self.frame().dprisk.declare(missing={"x": self.codes}), by_hand(self.frame(), "x", self.coded)


def by_hand(frame: pd.DataFrame, column: str, rows: Any) -> pd.DataFrame:
    values = frame[column].astype(ROOM.get(str(frame[column].dtype), frame[column].dtype))
    values.iloc[rows] = None
    return frame.assign(**{column: values})


def numbers(dtype: Any, codes: Any = (-1, -2)) -> Case:
    return Case([3, -1, 5, -2, 0, 7, -3, -1], dtype, codes, [1, 3, 7])


# fmt: off
FEW = ("x == 3", "x in [3, 5]", "not x == 3", "w > 2 or x != 3")
TEXTS = ("x == 'a'", "x != 'a'", "x in ['a', 'b']", "not x == 'b'", "w > 4 or x.notna()")
DATES = ("x < '2000-01-01'", "x > '1800-01-01'", "not x > '2020-01-01'")
TEXT = ["a", "?", "b", "NA", "", "a", " ?", "?"]
DAY = ["2020-01-01", "1900-01-01", "1899-12-31", None, "2020-01-01", "1900-01-01 12:00", "1900-01-01", "2024-02-29"]
DAYS, NOBODY = pd.to_datetime(DAY, format="ISO8601"), pd.Timestamp("1900-01-01")
DECIMALS = [*map(Decimal, ("3", "-1", "5.5", "-2", "0", "7")), None, Decimal("-1.0")]
YES = [True, False, None, True, False, None, True, False]

NUMBERS = {
    **{dtype: numbers(dtype) for dtype in ("int8", "int16", "int32", "int64", "float32", "float64")},
    **{dtype: numbers(dtype) for dtype in ("Int8", "Int64", "Float32", "Float64", "int64[pyarrow]", "double[pyarrow]")},
    "uint8": Case([3, 99, 5, 98, 0, 7, 100, 99], "uint8", [99, 98, -1], [1, 3, 7]),
    "UInt8": Case([3, 99, None, 98, 0, 7, 100, 99], "UInt8", [99, 98, -1], [1, 3, 7]),
    "gaps": Case([3.5, -1, np.nan, -2, np.inf, 7, -3, -1], "float64", [-1, -2], [1, 3, 7]),
    "nullable gaps": Case([3, -1, None, -2, None, 7, -3, -1], "Int64", [-1, -2], [1, 3, 7]),
    "Arrow gaps": Case([3, -1, None, -2, None, 7, -3, -1], "int64[pyarrow]", [-1, -2.0], [1, 3, 7]),
    "objects": Case([3, -1, None, -2.0, np.nan, 7.5, -3, -1.0], object, [-1, -2], [1, 3, 7]),
    "decimals": Case(DECIMALS, object, [-1, -2], [1, 3, 7]),
}
TRUTHS = {
    "bool": Case([True, False, True] * 2 + [True, False], "bool", [False], [1, 4, 7], ("x", "not x", "x and w > 2")),
    "boolean": Case(YES, "boolean", [False], [1, 4, 7], ("x", "not x", "x or w > 2")),
    "true objects": Case(YES, object, [False], [1, 4, 7], ("x == True", "x != True")),
}
OTHERS = {
    **{f"text {dtype}": Case(TEXT, dtype, ["?", "NA"], [1, 3, 7], TEXTS) for dtype in ("string", object, "category")},
    "text": Case(TEXT, None, ["?", "NA"], [1, 3, 7], TEXTS),
    "Arrow text": Case(TEXT, "string[pyarrow]", ["?", "NA"], [1, 3, 7], TEXTS),
    "text with gaps": Case(["a", "?", None, "NA", "", "a", " ?", "?"], object, ["?", "NA"], [1, 3, 7], TEXTS),
    "numbers as categories": Case([3, -1, 5, -2, 0, 7, -3, -1], "category", [-1.0, -2], [1, 3, 7], FEW),
    "fractions as categories": Case([3, -1, 5.5, -2, None, 7, -3, -1], "category", [-1, -2], [1, 3, 7], FEW),
    **{f"dates {unit}": Case(DAYS, f"datetime64[{unit}]", [NOBODY], [1, 6], DATES) for unit in ("s", "us", "ns")},
    "zoned dates": Case(DAYS.tz_localize("UTC"), None, [pd.Timestamp("1900-01-01 09:00+09:00")], [1, 6], DATES),
    "dates as categories": Case(DAYS, "category", [NOBODY], [1, 6], ("w > 1",)),
}
HOW = {
    "all": {}, "own range": {"bounds": "column"},
    "groups": {"by": "g", "keys": ["b", "a", "z"]}, "groups and query": {"by": "g", "keys": ["a"], "where": "w != 4"},
    "function": {"where": lambda frame: frame["x"].notna() & (frame["w"] != 5)},
    "mask": {"where": np.arange(8) % 3 != 0}, "nobody but codes": {"where": np.arange(8) % 4 == 3},
}
ALIKE = [[-1, -2], [-1.0, -2.0], [np.int8(-1), np.float32(-2)], np.array([-1, -2]), (-2, -1), pd.Index([-1, -2])]
ALIKE += [[-1, -1.0, np.int64(-1), -2, -2], [np.nan, -1, None, -2, pd.NA], [-1, 0.5, 10**6, -2]]
ALIKE += [[-1, *range(8, 99), -2, 2**70, 0.5]]
UNHELD = {  # codes that none of the values 1, 2 and 3 can be
    (300, -300, 2.5, np.inf, 2**70): ["int8", "Int8", "int8[pyarrow]"],
    (-1, 257, 258, -253.0, 2.5, -(2**70)): ["uint8", "UInt8", "uint8[pyarrow]"],
    (2.5, np.inf, -np.inf, 2**64 + 1, 10**400): ["int64", "Int64", "int64[pyarrow]", "object"],
    (1e300, -np.inf, 2**70, 10**400): ["float32", "float64", "Float64", "double[pyarrow]"],
}
WRONG = {
    "text for numbers": ("int64", ["SENTINEL"]), "one text among numbers": ("float64", [-1, "SENTINEL"]),
    "a truth value for numbers": ("Int64", [True]), "numbers for truth values": ("bool", [0]),
    "numbers for text": ("string", [987654321]), "text for categories of numbers": ("category", ["SENTINEL"]),
    "a date for numbers": ("object", [pd.Timestamp("1987")]), "text for dates": ("datetime64[ns]", ["1987-06-05"]),
    "a zone for dates": ("datetime64[s]", [pd.Timestamp("1987", tz="UTC")]), "a list": ("int64", [["SENTINEL"]]),
    "no list": ("int64", 987654321), "one text": ("str", "SENTINEL"), "a dict": ("int64", {987654321: "SENTINEL"}),
}
ASKED = [
    lambda frame: frame.dprisk.count("x", eps=1), lambda frame: frame["x"].dprisk.count(eps=1),
    lambda frame: frame.dprisk.count(eps=1, by="x", keys=["a"]), lambda frame: frame.dprisk.agg({"x": "count"}, eps=1),
    lambda frame: frame.dprisk.count(eps=1, where="x == 'a'"), lambda frame: frame.dprisk.assess("x", "count"),
    lambda frame: frame.dprisk.individual_risk("x", "count", eps=1),
    lambda frame: frame.dprisk.epsilon_for("x", "count", risk=0.6, metric="two_worlds"),
]
# fmt: on
EVERYTHING = NUMBERS | TRUTHS | OTHERS


def cases(named: dict[str, Case]) -> Any:
    return pytest.mark.parametrize("case", named.values(), ids=named.keys())


def assert_same_answers(pair: Any, *columns: Any, **options: Any) -> None:
    """Of two frames or series, but for the dtype of groups: integers where a column had to become one of floats."""
    found, expected = (data.dprisk.assess(*columns, **options) for data in pair)
    if "group" in found:
        groups = [[None if pd.isna(key) else key for key in table.pop("group")] for table in (found, expected)]
        assert groups[0] == groups[1]
    pd.testing.assert_frame_equal(found, expected)


class TestColumns:
    """Whatever is asked of a column with codes has the answer of the same column without them."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("options", HOW.values(), ids=HOW.keys())
    @cases(NUMBERS)
    def test_every_statistic(self, case, options):
        assert_same_answers(case.pair(), "x", STATISTICS, **{"bounds": BOUNDS} | options)

    @pytest.mark.sampled(99)
    @cases(NUMBERS | TRUTHS)
    def test_series(self, case):
        assert_same_answers([frame["x"] for frame in case.pair()], STATISTICS, bounds=BOUNDS)

    @cases(EVERYTHING)
    def test_counts(self, case):
        coded, present = case.pair()[0], 8 - int(case.frame()["x"].isna().sum()) - len(case.coded)
        assert [coded.dprisk.count(column, eps=1).curator.n for column in ("x", None)] == [present, 8]
        assert coded["x"].dprisk.count(eps=1).curator.n == present

    @pytest.mark.sampled(3)
    @cases(NUMBERS)
    def test_the_risk_of_each_person(self, case):
        for statistic in STATISTICS:
            ask = {"statistic": statistic, "eps": 1, "bounds": BOUNDS}
            found, expected = (frame.dprisk.individual_risk("x", **ask) for frame in case.pair())
            assert found[case.coded].isna().all()
            pd.testing.assert_series_equal(found, expected)

    @pytest.mark.parametrize("metric", ["worst_case", "two_worlds", "many_worlds", "identifiability"])
    def test_planned_eps(self, metric):
        for statistic in STATISTICS:
            ask = {"statistic": statistic, "risk": 0.6, "metric": metric, "bounds": BOUNDS}
            assert len({frame.dprisk.epsilon_for("x", **ask) for frame in NUMBERS["int8"].pair()}) == 1

    @pytest.mark.slow
    def test_released_values(self):
        request, bounds = {"x": STATISTICS, None: "count", "w": "mean"}, {"x": BOUNDS, "w": (0, 9)}
        found, expected = (
            frame.dprisk.agg(request, eps=1e9, bounds=bounds, mechanism="laplace") for frame in NUMBERS["int16"].pair()
        )
        pd.testing.assert_frame_equal(found.drop(columns="value"), expected.drop(columns="value"))
        x = np.array([3.0, 5, 0, 7, -3])
        exact = [5, 12, 2.4, 3, np.quantile(x, 0.9), -3, 7, x.var(ddof=1), x.std(ddof=1), x.var(), x.std(), 8, 3.5]
        assert found["value"].tolist() == pytest.approx(exact, abs=1e-4)


class TestGroups:
    """A code is no group: its people are those of the missing."""

    @pytest.mark.sampled(5)
    @cases(EVERYTHING)
    def test_listed(self, case):
        coded, hand = case.pair()
        keys = [*dict.fromkeys(hand["x"].dropna()), None]
        assert_same_answers((coded, hand), "w", ["count", "mean"], bounds=(0, 7), by="x", keys=keys)
        assert coded.dprisk.count(eps=1, by="x", keys=keys, curator=True)["n"].sum() == 8
        assert coded.dprisk.count(eps=1, by="x", keys=[None], curator=True)["n"].tolist() == [hand["x"].isna().sum()]

    @cases(EVERYTHING)
    def test_observed(self, case):
        """Missing codes are the missing key."""
        found, expected = (
            frame.dprisk.count(eps=1, by="x", keys="observed", curator=True)["n"] for frame in case.pair()
        )
        assert found.tolist() == expected.tolist() and found.sum() == 8
        assert found.index.dropna().tolist() == expected.index.dropna().tolist()
        assert found.index.isna().tolist() == expected.index.isna().tolist()

    @cases(EVERYTHING)
    def test_a_code_is_no_key(self, case):
        coded, hand = case.pair()
        answer, code = hand["x"].dropna().iloc[-1], case.codes[0]
        with pytest.raises(pdrisk.ParameterError, match=r"key of .*'x' .* list None") as caught:
            coded.dprisk.count(eps=1, by="x", keys=[answer, code])
        assert repr(code) not in everything_said(caught.value)
        with pytest.raises(pdrisk.ParameterError, match="list None"):
            coded.dprisk.count(eps=1, by=["g", "x"], keys=[("a", answer), ("a", code)])

    def test_declared_keys_leave_codes_out(self):
        keys, codes = {"x": ["NA", "b", "a", "?"]}, {"x": ["?", "NA"]}
        known = OTHERS["text"].frame().dprisk.declare(keys=keys).dprisk.declare(missing=codes)
        assert known.dprisk.count(eps=1, by="x", curator=True)["n"].to_dict() == {"b": 1, "a": 2}

    def test_several_columns(self):
        frame = OTHERS["text"].frame().assign(y=[1, 1, -1, 1, -1, -1, 1, 2])
        coded = frame.dprisk.declare(missing={"x": ["?", "NA"], "y": [-1]})
        keys = {"x": ["a", None], "y": [1, None]}
        assert coded.dprisk.count(eps=1, by=["x", "y"], keys=keys, curator=True)["n"].tolist() == [1, 1, 2, 0]
        observed = coded.dprisk.count(eps=1, by=["y", "x"], keys="observed", curator=True)["n"]
        pairs = [(None if pd.isna(y) else y, None if pd.isna(x) else x) for y, x in observed.index]
        held = frame[["y", "x"]].replace({"y": {-1: None}, "x": {"?": None, "NA": None, np.nan: None}})
        by_hand = Counter(held.itertuples(index=False, name=None))
        assert dict(zip(pairs, observed, strict=True)) == by_hand

    def test_keys_that_floats_cannot_tell_apart_are_refused(self):
        coded = pd.DataFrame({"x": [2**53, 2**53 + 1, -1]}).dprisk.declare(missing={"x": [-1]})
        with pytest.raises(pdrisk.ParameterError, match=r"2\*\*53|same number"):
            coded.dprisk.count(eps=1, by="x", keys=[2**53, 2**53 + 1])


class TestFilters:
    """A filter sees missing answers, not codes; only a mask is the caller's own."""

    @pytest.mark.slow
    @pytest.mark.sampled(5)
    @cases(EVERYTHING)
    def test_queries(self, case):
        for where in case.filters:
            assert_same_answers(case.pair(), "w", bounds=(0, 7), where=where)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("name", ["int8", "int64", "float32", "Int64", "gaps"])
    @pytest.mark.parametrize("where", ["x + 1 > 0", "x * w < 3", "-x >= 0", "x % 2 == 1", "x // 2 < 0", "x ** 2 > 3"])
    def test_arithmetic(self, name, where):
        assert_same_answers(NUMBERS[name].pair(), "w", bounds=(0, 7), where=where)

    @pytest.mark.sampled(99)
    @pytest.mark.skipif(not hasattr(pd, "col"), reason="pandas 3 has pd.col")
    @cases(NUMBERS)
    def test_expressions(self, case):
        x = pd.col("x")
        for where in (x > 0, x == 3, x.isin([3, 5]), x.isna()):
            assert_same_answers(case.pair(), "w", bounds=(0, 7), where=where)

    @cases(EVERYTHING)
    def test_functions(self, case):
        (coded, hand), seen = case.pair(), []
        release = coded.dprisk.count(eps=1, where=lambda frame: seen.extend(frame["x"].isna()) or frame["x"].isna())
        assert seen == hand["x"].isna().tolist()
        assert release.curator.n == sum(seen)

    def test_a_function_on_a_series(self):
        series, seen = NUMBERS["int8"].pair()[0]["x"], []
        release = series.dprisk.count(eps=1, where=lambda x: seen.append(x.isna().sum()) or x > -9)
        assert (seen, release.curator.n) == ([3], 5)

    def test_a_mask_is_taken_as_it_is(self):
        coded, _ = NUMBERS["int8"].pair()
        assert [coded.dprisk.count(column, eps=1, where=coded["x"] < 0).curator.n for column in (None, "x")] == [4, 1]


class TestCodes:
    """A code is compared as the value it is; one that a column cannot hold takes nobody out."""

    @pytest.mark.parametrize("codes", ALIKE, ids=str)
    @pytest.mark.parametrize("dtype", ["int8", "float64", "Int64", "int64[pyarrow]", "object", "category"])
    def test_written_in_any_way(self, dtype, codes):
        coded = numbers(dtype).frame().dprisk.declare(missing={"x": codes})
        assert coded.dprisk.individual_risk("x", "count", eps=1).isna().tolist() == [at in (1, 3, 7) for at in range(8)]

    @pytest.mark.parametrize(("dtype", "codes"), [(dtype, codes) for codes in UNHELD for dtype in UNHELD[codes]])
    def test_that_the_dtype_cannot_hold(self, dtype, codes):
        frame = pd.DataFrame({"x": pd.Series([1, 2, 3], dtype=dtype)})
        for some in [*([code] for code in codes), codes]:
            assert frame.dprisk.declare(missing={"x": some}).dprisk.sum("x", eps=1, bounds=(0, 3)).curator.n == 3
            assert frame.dprisk.declare(missing={"x": [*some, 2]}).dprisk.count("x", eps=1).curator.n == 2

    @pytest.mark.parametrize("dtype", ["float16", "float32", "Float32", "float[pyarrow]", "category"])
    def test_in_the_precision_of_the_column(self, dtype):
        values = pd.Series([0.1, 0.2, 0.1, 0.3], dtype="float32").astype(dtype)
        coded = pd.DataFrame({"x": values}).dprisk.declare(missing={"x": [0.1, 0.3]})
        assert coded.dprisk.count("x", eps=1).curator.n == 1

    @pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "object"])
    @pytest.mark.parametrize("codes", [[2**53], [2**53, 0.5], [2**53, -1.0]])
    def test_large_integers(self, dtype, codes):
        frame = pd.DataFrame({"x": pd.Series([2**53 + 1, 2**53, 2**53 - 1], dtype=dtype)})
        coded = frame.dprisk.declare(missing={"x": codes})
        assert coded.dprisk.individual_risk("x", "count", eps=1).isna().tolist() == [False, True, False]

    @pytest.mark.parametrize("unit", ["s", "ms", "ns"])
    @pytest.mark.parametrize("more", ["9999-12", "0001-01", "2020-01-01 00:00:00.5", "2020-01-01T00:00:00.000000001"])
    def test_dates_that_the_unit_cannot_hold(self, unit, more):
        days = pd.Series(pd.to_datetime(["2020-01-01", "1900-01-01", None])).astype(f"datetime64[{unit}]")
        for codes, n in (([pd.Timestamp(more)], 2), ([pd.Timestamp(more), NOBODY], 1)):
            coded = pd.DataFrame({"x": days}).dprisk.declare(missing={"x": codes})
            assert coded.dprisk.count("x", eps=1).curator.n == n

    def test_of_sparse_columns(self):
        coded = numbers("Sparse[int]").frame().dprisk.declare(missing={"x": [-1, -2]})
        assert coded.dprisk.count("x", eps=1).curator.n == 5

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("codes", [[], [np.nan], [None, pd.NA]], ids=str)
    def test_no_codes(self, codes):
        frame = numbers("int8").frame()
        assert_same_answers((frame.dprisk.declare(missing={"x": codes}), frame), "x", STATISTICS, bounds=BOUNDS)
        assert numbers("int8").pair()[0].dprisk.declare(missing={"x": codes}).dprisk.count("x", eps=1).curator.n == 8

    @pytest.mark.slow
    @given(
        st.lists(st.integers(-4, 4), max_size=12),
        st.lists(st.integers(-4, 4) | st.sampled_from([0.5, -0.0, 2.0, 300]), max_size=4),
        st.sampled_from(["int8", "uint8", "float32", "Int64", "int64[pyarrow]", "object"]),
        st.sampled_from([{}, {"where": "x < 1"}, {"by": "x", "keys": [None, 100]}]),
    )
    def test_any(self, values, codes, dtype, options):
        values = [abs(value) if dtype == "uint8" else value for value in values]
        frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
        hand = by_hand(frame, "x", [at for at, value in enumerate(values) if value in codes])
        pair = frame.dprisk.declare(missing={"x": codes}), hand
        assert_same_answers(pair, "x", STATISTICS, bounds=(-2, 3), **options)


class TestFrames:
    """Every shape of frame is read, and none is written to."""

    @pytest.mark.parametrize("dtype", ["int32", "float32", "Int64", "object", "category"])
    @pytest.mark.parametrize("rows", [[], [0], [1], [1, 3, 7], [7, 7, 0, 1, 0]], ids=str)
    def test_few_or_repeated_rows(self, rows, dtype):
        coded = numbers(dtype).frame().iloc[rows].dprisk.declare(missing={"x": [-1, -2]})
        risks = coded.dprisk.individual_risk("x", "count", eps=1)
        assert list(risks.isna().items()) == [(row, row != 0) for row in rows]
        n = coded.dprisk.count(eps=1, by="x", keys=[None, 3], curator=True)["n"].tolist()
        assert n == [len(rows) - rows.count(0), rows.count(0)]

    @pytest.mark.parametrize("label", ["x y", 0, 2.5, ("a", 1)], ids=str)
    def test_labels(self, label):
        frame = numbers("int8").frame().set_axis([label, "w", "w"], axis="columns")
        coded = frame.dprisk.declare(missing={label: [-1, -2]})
        assert coded.dprisk.sum(label, eps=1, bounds=BOUNDS, where=lambda same: same[label].notna()).curator.n == 5

    @pytest.mark.sampled(5)
    @cases(EVERYTHING)
    def test_the_frame_stays_as_it_is(self, case):
        coded = case.frame().dprisk.declare(missing={"x": case.codes}, keys={"g": ["a", "b"]})
        before, attrs, said = copy.deepcopy(coded), dict(coded.attrs), list(map(repr, coded["x"]))
        for frame in (coded, coded[coded["w"] > 0], coded.iloc[2:]):  # pandas 2 warns of writing to a view
            frame.dprisk.count("x", eps=1, by="g", where=lambda one: one["x"].notna())
            frame.dprisk.individual_risk("x", "count", eps=1, where="w > 1")
            frame["x"].dprisk.count(eps=1)
        pd.testing.assert_frame_equal(coded, before)
        assert (coded.attrs, list(map(repr, coded["x"]))) == (attrs, said)

    def test_arrays_that_cannot_be_written(self):
        values = np.array([3, -1, 5, -2])
        values.flags.writeable = False
        coded = pd.DataFrame({"x": values, "y": values}, copy=False).dprisk.declare(missing={"x": [-1], "y": [-1]})
        assert [coded.dprisk.sum(name, eps=1, bounds=(-5, 5)).curator.n for name in ("x", "y")] == [3, 3]
        assert (values.tolist(), values.flags.writeable) == ([3, -1, 5, -2], False)

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("dtype", ["int32", "float32", "Int64", "category"])
    def test_many_rows(self, dtype):
        size = 2**18 + 2**15 + 7
        values, at = np.arange(size) % 5, [0, 2**15 - 1, 2**15, 2**18 - 1, 2**18, 2**18 + 1, size - 1]
        values[at] = [-1, -2] * 3 + [-1]
        frame = pd.DataFrame({"x": pd.Series(values).astype(dtype), "w": np.arange(size) % 3})
        pair = frame.dprisk.declare(missing={"x": [-1, -2]}), by_hand(frame, "x", at)
        for ask in ({"where": "x == 4 or w == 1"}, {"by": "x", "keys": [None, 4]}):
            assert_same_answers(pair, "w", ["count", "mean"], bounds=(0, 2), **ask)
        assert np.flatnonzero(pair[0].dprisk.individual_risk("x", "count", eps=1).isna()).tolist() == at
        if dtype != "category":
            assert_same_answers(pair, "x", STATISTICS, bounds=(0, 3), by="w", keys=[0, 2])


class TestRefusals:
    """Codes of another kind than their column are refused before it is read, and nothing secret is said."""

    @pytest.mark.parametrize(("dtype", "codes"), WRONG.values(), ids=WRONG.keys())
    def test_wrong_kinds(self, dtype, codes):
        frame = pd.DataFrame({"x": pd.Series([3, 1, 2]).astype(dtype)})
        with pytest.raises(pdrisk.ColumnTypeError, match=r"column's own kind|a list|single value") as caught:
            frame.dprisk.declare(missing={"x": codes})
        assert not any(secret in everything_said(caught.value) for secret in ("SENTINEL", "987654321", "1987"))

    @pytest.mark.parametrize("ask", ASKED)
    def test_a_column_that_changed_its_kind(self, ask, monkeypatch):
        frame = numbers("int64").frame().dprisk.declare(missing={"x": [-987654321]}).astype({"x": "string"})
        monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: pytest.fail("the data were read"))
        with pytest.raises(pdrisk.ColumnTypeError, match=r"code of column 'x' is a number, .* holds text") as caught:
            ask(frame)
        assert "987654321" not in everything_said(caught.value)

    @pytest.mark.parametrize("where", ["w > 0", np.arange(8) > 0], ids=["query", "mask"])
    def test_other_columns_can_still_be_asked(self, where):
        frame = numbers("int64").frame().dprisk.declare(missing={"x": [-1]}).astype({"x": "string"})
        assert frame.dprisk.mean("w", eps=1, bounds=(0, 7), by="g", keys=["a"], where=where, curator=True)[
            "n"
        ].tolist() == [3]

    @pytest.mark.parametrize("what", [987654321, "SENTINEL"])
    def test_what_fails_on_the_data_is_silent(self, what):
        frame = pd.DataFrame({"x": [987654321, 987654320]}).dprisk.declare(missing={"x": [987654320]})
        with pytest.raises(pdrisk.QueryFailedError) as caught:
            frame.dprisk.count("x", eps=1, where=lambda one: 1 / (one["x"].min() - what))
        assert not any(secret in everything_said(caught.value) for secret in ("98765432", "SENTINEL"))
