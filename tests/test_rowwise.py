"""A ``where`` is row-wise or refused, before data is touched and without telling anything about them."""

import datetime
import itertools
import math
import operator
import os
import pickle
import time
import traceback
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdrisk.errors import ColumnTypeError, ParameterError, QueryFailedError, UnknownColumnError
from pdrisk.rowwise import Filter, caller_names, judged

PANDAS_3 = pd.__version__ >= "3"
col = getattr(pd, "col", None)
needs_col = pytest.mark.skipif(col is None, reason="pd.col came with pandas 3")
SECRETS = ("987654321", "SENTINEL", "1987-06-05", "43")  # 43: the frame's length


def people() -> pd.DataFrame:
    """43 records, every kind of column, with missing values."""
    n = np.arange(43)
    gap = n % 5 == 0
    frame = pd.DataFrame(
        {
            "age": np.where(n == 7, 987654321, n % 23),
            "small": (n % 7).astype("int8"),
            "height": np.where(gap, np.nan, n * 0.5 - 8),
            "narrow": (n * 0.1).astype("float32"),
            "children": pd.array(np.where(gap, None, n % 4), dtype="Int64"),
            "income": pd.array(np.where(gap, None, n * 1.5), dtype="Float64"),
            "visits": pd.array(np.where(gap, None, n % 6), dtype="int64[pyarrow]"),
            "region": np.where(gap, None, np.where(n == 7, "SENTINEL", np.where(n % 2, "north", "south"))),
            "town": pd.array(np.where(gap, None, np.where(n % 3, "A", "B")), dtype="string"),
            "code": pd.array(np.where(gap, None, np.where(n % 3, "x", "y")), dtype="string[pyarrow]"),
            "level": pd.Categorical(np.where(gap, None, np.where(n % 3, "lo", "hi")), ["lo", "hi"], ordered=True),
            "member": n % 3 == 0,
            "consent": pd.array(np.where(gap, None, n % 2 == 0), dtype="boolean"),
            "arrow": pd.array(np.where(gap, None, n % 2 == 0), dtype="bool[pyarrow]"),
            "day": pd.to_datetime("1987-06-05") + pd.to_timedelta(n * 200, unit="D"),
            "full name": n,
            "it's `odd`": n,
            "class": n,
        }
    )
    frame.loc[gap, "day"] = pd.NaT
    frame["zoned"] = frame["day"].dt.tz_localize("UTC")
    frame["mixed"] = pd.Series([*range(42), "SENTINEL"], dtype=object)
    frame.index = pd.Index(n[::-1] * 1000 + 987654321, name="person")
    return frame


FRAME = people()
limit, towns, nobody, day, stamp, none = (
    9,
    ["A", "C"],
    frozenset(),
    datetime.date(1999, 1, 1),
    pd.Timestamp("1999"),
    None,
)
column, array, unknown_nan, function = FRAME["age"], np.arange(43), math.nan, len


class Weird(int):
    """An int that brings operators of its own."""


weird = Weird(3)


def names() -> dict[str, object]:
    return globals()


def selected(where: object, frame: pd.DataFrame = FRAME) -> list[bool]:
    return judged(where, frame, names).mask(frame).tolist()


def by_pandas(text: str, frame: pd.DataFrame = FRAME) -> list[bool]:
    """``DataFrame.query`` on a frame with a position instead of an index."""
    plain = frame.reset_index(drop=True)
    return plain.index.isin(plain.query(text, engine="python", global_dict=names()).index).tolist()


ACCEPTED = """
age > 10
age > 10 and region == 'north'
age > 10 & region == 'north' | member
not age > 3
not member
~member & ~(age > 3)
3 < age <= 12
3 < age <= 12 != small
height > 0
not height > 0
height != height
children > 1
not children > 1
children != 2
children in [1, 2]
children not in [1, 2]
children not in (1,)
age in []
children + 1 > small
income * 2 - 1 > age
visits >= 3
visits != 3
region != 'north'
region not in ['north', 'nowhere']
town == 'A'
town != 'A'
'A' == town
town in @towns
town not in @towns
age in @nobody
code != 'x'
level == 'hi'
level != 'nowhere'
level > 'lo'
member
consent
not consent
consent or member
arrow and member
consent == True
member and True
False or member
day > '1999-01-01'
'1999-01-01' <= day < '2004'
day > @day
day == @stamp
day != @stamp
zoned > '1999-01-01T00:00Z'
age > @limit
age > - @ limit + 20
`full name` > 10
`it's ``odd``` > 10
`class` > 1 and `full name` < 30
age // 3 == 2
age % 3 == 1
age ** 2 > 30
age ** 0.5 > 3
height // small > 0
2.0 ** small > 9
-age < -3
+age > 3
1 + 2 * 3 - 4 < age
narrow > 0.1
narrow == 0.3
small + 1 > 3
(age > 3) == member
region == "a & b | `c` @d"
region != 'it\\'s'
age > 3 # and a comment
age == 1e1
mixed == 3""".strip().splitlines()


class TestQuery:
    """A query string selects what ``DataFrame.query`` selects."""

    @pytest.mark.parametrize("text", ACCEPTED)
    def test_selects_the_same_records(self, text):
        if "odd" in text and not PANDAS_3:
            pytest.skip("pandas 2 cannot read a backtick within backticks")
        assert selected(text) == by_pandas(text)

    @pytest.mark.parametrize("text", ACCEPTED)
    def test_its_canonical_text_means_the_same(self, text):
        found = judged(text, FRAME, names)
        if "Timestamp" in found.text or "date(" in found.text:
            return  # values of @names that no query string can spell
        assert selected(found.text) == found.mask(FRAME).tolist()
        assert judged(found.text, FRAME, names).text == found.text

    def test_the_text_holds_the_value_of_a_name(self):
        assert judged("age>@limit&town  in @towns", FRAME, names).text == "age > 9 and town in ['A', 'C']"

    def test_reads_only_the_columns_it_names(self):
        assert judged("age > 3 and `full name` > age", FRAME, names).columns == ("age", "full name")

    def test_names_are_asked_for_only_if_needed(self):
        judged("region == '@limit'", FRAME, lambda: pytest.fail("asked"))

    def test_a_list_changed_later_changes_nothing(self):
        mine = ["A"]
        found = judged("town in @mine", FRAME, lambda: {"mine": mine})
        before = found.mask(FRAME).sum()
        mine.append("B")
        assert found.mask(FRAME).sum() == before > 0

    def test_a_date_column_with_a_zone_reads_a_text_in_its_zone(self):
        assert selected("zoned > '1999-01-01'") == (FRAME["zoned"] > "1999-01-01").tolist()

    def test_an_empty_frame(self):
        assert judged("age > 3", FRAME.iloc[:0], names).mask(FRAME.iloc[:0]).shape == (0,)

    def test_a_column_called_index_is_a_column(self):
        frame = pd.DataFrame({"index": [1, 2]})
        assert selected("index > 1", frame) == [False, True]

    def test_a_duplicated_index(self):
        frame = FRAME.set_axis(np.zeros(43, dtype=int))
        assert selected("age > 3 and town == 'A'", frame) == selected("age > 3 and town == 'A'")

    def test_duplicates_elsewhere_do_no_harm(self):
        frame = pd.concat([FRAME, FRAME[["small", "small"]]], axis=1)
        assert selected("age > 3", frame) == selected("age > 3")

    def test_needs_far_less_time_than_pandas(self):
        wide = pd.concat([FRAME, pd.DataFrame(0.0, FRAME.index, [f"c{i}" for i in range(200)])], axis=1)
        text = "age > 4 and region == 'north'"

        def seconds(function):
            start = time.perf_counter()
            function()
            return time.perf_counter() - start

        ours = min(seconds(lambda: judged(text, wide, names).mask(wide)) for _ in range(20))
        theirs = min(seconds(lambda: wide.query(text)) for _ in range(5))
        assert ours < theirs / 2


numbers = ["age", "small", "height", "narrow", "children", "income"]
constants = st.one_of(st.integers(-3, 30), st.sampled_from([0.5, 2.0, -1.5, 0.3])).map(repr)


def formulas(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner) | st.builds("-{}".format, inner)


formula = st.recursive(st.sampled_from(numbers), lambda f: formulas(f | constants) | f, max_leaves=4)
comparison = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
texts = st.sampled_from(["'north'", "'A'", "'x'", "'hi'", "'none of them'"])
members = st.sampled_from(["in", "not in"])
leaves = st.one_of(
    st.builds("{} {} {}".format, formula, comparison, constants | formula),
    st.builds(
        "{} {} {} {} {}".format, constants, comparison, st.sampled_from([*numbers, "visits"]), comparison, constants
    ),
    st.builds(
        "{} {} {}".format, st.sampled_from(["region", "town", "code", "level"]), st.sampled_from(["==", "!="]), texts
    ),
    st.builds("{} {} [{}, {}]".format, st.sampled_from(["region", "town", "code", "level"]), members, texts, texts),
    st.builds("{} {} [{}, {}]".format, formula, members, constants, constants),
    st.builds("day {} '{}-02-03'".format, st.sampled_from(["<", "<=", ">", ">="]), st.integers(1985, 2012)),
    st.sampled_from(["member", "consent", "arrow", "`full name` > 20"]),
)
conditions = st.recursive(
    leaves,
    lambda c: (
        st.builds("{} {} {}".format, c, st.sampled_from(["and", "or"]), c)
        | st.builds("({}) {} ({})".format, c, st.sampled_from(["&", "|", "and", "or", "==", "!="]), c)
        | st.builds("{}({})".format, st.sampled_from(["not ", "~"]), c)
    ),
    max_leaves=5,
)


class TestAgainstPandas:
    """For every expression that is accepted, the records are those of ``DataFrame.query``."""

    @settings(
        max_examples=int(os.environ.get("EXAMPLES", "150")), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(conditions)
    def test_same_records(self, text):
        try:
            found = judged(text, FRAME, names)
        except ParameterError:
            return
        assert found.mask(FRAME).tolist() == by_pandas(text)
        assert selected(found.text) == found.mask(FRAME).tolist()

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(conditions, st.lists(st.integers(0, 42), unique=True))
    def test_each_decision_is_the_records_own(self, text, rows):
        """The definition of row-wise: among any other records, a record's decision is the same."""
        try:
            found = judged(text, FRAME, names)
        except ParameterError:
            return
        assert found.mask(FRAME.iloc[rows]).tolist() == found.mask(FRAME)[rows].tolist()


REFUSALS = {
    "": "it is empty",
    "   ": "it is empty",
    "# nothing": "it is empty",
    "age > age.mean()": "calls a function or method",
    "age.rank() > 3": "calls a function or method",
    "len(age) > 3": "calls a function or method",
    "sqrt(age) > 3": "calls a function or method",
    "@function(age) > 3": "calls a function or method",
    "age.values > 3": "uses an attribute",
    "@pd.x > age": "uses an attribute",
    "age[0] > 3": "uses brackets",
    "@towns[0] == town": "uses brackets",
    "index < 5": "is the index",
    "person < 5": "is the index",
    "ilevel_0 < 5": "is the index",
    "columns == 'age'": "is the index",
    "age > @function": "@function is a builtin_function_or_method",
    "age > @column": "@column is a Series",
    "age in @column": "@column must be a list, tuple or set of constants",
    "age > @array": "@array is a ndarray",
    "age in @array": "@array must be a list, tuple or set of constants",
    "age > @FRAME": "@FRAME is a DataFrame",
    "age > @pd": "@pd is a module",
    "age > @weird": "@weird is a Weird",
    "age > @none": "@none is a NoneType",
    "age > @unknown_nan": "@unknown_nan is a missing value",
    "age > @limmit": "there is no variable 'limmit' where you call. Did you mean '@limit'?",
    "town == @towns": "write `in` instead of `==`",
    "town == ['A']": "write `in` instead of `==`",
    "age in 3": "must be a list, tuple or set of constants",
    "town in 'A'": "must be a list, tuple or set of constants",
    "age in small": "must be a list, tuple or set of constants",
    "age in [small, 3]": "must be a list, tuple or set of constants",
    "age in [@limit, 3]": "must be a list, tuple or set of constants",
    "'A' in town": "must be a list, tuple or set of constants",
    "age in [[1], [2]]": "a list stands only after `in`",
    "b = age + 1": "it assigns with `=`",
    "age = 1": "it assigns with `=`",
    "age &= 1": "it assigns with `=`",
    "(b := age) > 1": "it assigns with `:=`",
    "age > 1; age < 3": "several statements",
    "age > 1\nage < 3": "several statements",
    "1 == 1": "it compares constants with each other",
    "age > 1 and 1 == 1": "it compares constants with each other",
    "3 in [3]": "it compares constants with each other",
    "not True": "it compares constants with each other",
    '"x"': "names no column",
    "True": "names no column",
    "1 + 1": "names no column",
    "age": "age (int64) is not a decision",
    "age + 1": "age + 1 (int64) is not a decision",
    "mixed": "mixed (object) is not a decision between True and False. Convert it with .astype('boolean')",
    "age and member": "age (int64) is not a decision",
    "~age > 3": "age (int64) is not a decision",
    "member and 3": "`and` joins conditions, not constants",
    "age >": "cannot be read as an expression",
    "age > 3)": "cannot be read as an expression",
    "age > 'x": "cannot be read as an expression",
    "age > @": "cannot be read as an expression",
    "age @ small": "cannot be read as an expression",
    "`age > 3": "cannot be read as an expression",
    "age > \0": "cannot be read as an expression",
    "age > 3 && small > 2": "cannot be read as an expression",
    "for x in y": "cannot be read as an expression",
    "age > " + "9" * 5000: "cannot be read as an expression",
    "import os": "cannot be read as an expression",
    "age is 3": "Write `==`",
    "age is not 3": "Write `!=`",
    "age ^ small": "Write `!=`",
    "age << 2 > 3": "uses an operator that filters do not have",
    "age > 3 if member else True": "if ... else",
    "(lambda: age)": "lambda",
    "[a for a in age]": "comprehension",
    "{a for a in age}": "comprehension",
    "region == f'{age}'": "f-string",
    "region == {'a'}": "Write a list",
    "(age > 3, age < 5)": "a tuple stands only after `in`",
    "{'a': 1}": "something other than operators and constants",
    "age > None": "is a NoneType",
    "age > ...": "is a ellipsis",
    "region == b'x'": "is a bytes",
    "age > 3j": "is a complex",
    "age > 1e999": "overflows",
    "age > 99999999999999999999": "beyond 64 bits",
    "age > 9 ** 9 ** 9": "cannot be computed",
    "age > 9.0 ** 9 ** 9": "cannot be computed",
    "age > 1 / 0": "cannot be computed",
    "age > (-1) ** 0.5": "cannot be computed",
    "age > 1e308 * 10": "cannot be computed",
    "age / 0 > 1": "divides by zero",
    "age + 'x' > 3": "takes numbers only",
    "'x' * 1000000000 == region": "takes numbers only",
    "town < 3": "`<` does not work on town (string) and 3 (int)",
    "consent and arrow": "`and` does not work on consent (boolean) and arrow (bool[pyarrow])",
    "age > visits": "`>` does not work on age (int64) and visits (int64[pyarrow])",
    "visits in [1, 1.5]": "`in` does not work on visits (int64[pyarrow]) and [1, 1.5] (list)",
    "visits < 9223372036854775808": "`<` does not work on visits (int64[pyarrow])",
    "children > visits": "`>` does not work on children (Int64) and visits (int64[pyarrow])",
    "age < 'x'": "`<` does not work on age (int64) and 'x' (str)",
    "level > 'nowhere'": "`>` does not work on level (category)",
    "day > 'someday'": "something that is no date",
    "day > 3": "something that is no date",
    "day == '1999-01-01'": "whether a date equals a text depends on the version of pandas",
    "day in ['1999-01-01']": "whether a date equals a text depends on the version of pandas",
    "day - day > 3": "arithmetic takes numbers that cannot fail on a record",
    "visits * 4611686018427387904 > 3": "arithmetic takes numbers that cannot fail on a record",
    "region + region == 'x'": "arithmetic takes numbers that cannot fail on a record",
    "mixed + 1 > 3": "arithmetic takes numbers that cannot fail on a record",
    "member + member > 1": "on conditions alone",
    "-member": "on conditions alone",
    "age // small > 1": "on integers needs a constant on its right",
    "age % children > 1": "on integers needs a constant on its right",
    "2 ** -age > 1": "on integers needs a constant on its right",
    "age ** -1 > 1": "on integers needs a constant on its right",
    "-" * 300 + "age > 3": "nested more than 200 levels deep",
    "age" + " + 1" * 300 + " > 3": "nested more than 200 levels deep",
    "(" * 5000 + "age" + ")" * 5000 + " > 3": "cannot be read as an expression",
}


def refusal(where: object, frame: pd.DataFrame = FRAME) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        judged(where, frame, names)
    return caught.value


def says_nothing(error: BaseException) -> None:
    """Neither the text nor a chained error tells about the data, and it survives pickling."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not any(secret in str(error) for secret in SECRETS)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


class TestRefusals:
    """What is not row-wise, or no filter at all, is refused without data, in words that say what to write instead."""

    @pytest.mark.parametrize(("text", "words"), REFUSALS.items(), ids=[text[:30] for text in REFUSALS])
    def test_queries(self, text, words):
        error = refusal(text)
        says_nothing(error)
        assert words in str(error)
        assert len(str(error)) < 800
        assert repr(text[:50])[:-1] in str(error)

    @pytest.mark.parametrize("text", REFUSALS)
    def test_they_need_no_data(self, text):
        assert str(refusal(text, FRAME.iloc[:0])) == str(refusal(text))

    def test_deep_chains_are_refused_or_work(self):
        deep = "age" + " + 1" * 3000 + " > 3"
        assert "nested too deeply" in str(refusal(deep)) or "cannot be read" in str(refusal(deep))
        assert selected(" or ".join(f"age == {i}" for i in range(2000))) == [True] * 7 + [False] + [True] * 35

    def test_an_unknown_column_names_the_nearest(self):
        frame = pd.DataFrame({"age": [1], "distance": [1], "region": ["SENTINEL"]})
        error = refusal("distnace > 3", frame)
        assert type(error) is UnknownColumnError
        assert str(error) == (
            "unknown column 'distnace'; the frame has: age, distance, region. Did you mean 'distance'?"
        )
        says_nothing(error)

    def test_of_many_columns_twenty_are_listed(self):
        error = refusal("zzz > 1", pd.DataFrame([[0] * 50], columns=[f"c{i}" for i in range(50)]))
        assert str(error).endswith("c18, c19, ....")

    def test_several_columns_of_one_name(self):
        frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
        assert "several columns named 'a'" in str(refusal("a > 1", frame))
        assert "several columns named 'a'" in str(refusal("a > 1", pd.DataFrame({("a", "b"): [1], ("a", "c"): [1]})))

    def test_columns_without_a_name_in_text(self):
        assert type(refusal("`1` > 1", pd.DataFrame({1: [1]}))) is UnknownColumnError

    def test_pandas_own_spelling_of_a_local_is_no_back_door(self):
        assert type(refusal("age > __pd_eval_local_column")) is UnknownColumnError


def integers(ones: int) -> pd.DataFrame:
    return pd.DataFrame({"a": [2**53 + 1] * 3, "b": [1, 1, ones]})


class TestTotality:
    """Arithmetic never lets one record change another record's decision, by a dtype or by a failure."""

    def test_why_integer_floor_division_by_a_column_is_refused(self):
        """In pandas the zero of the third record changes the decisions on the first two."""
        ours, theirs = (integers(last).query("a // b == 9007199254740992").index.tolist() for last in (1, 0))
        assert (ours, theirs) == ([], [0, 1])
        refusal("a // b == 9007199254740992", integers(1))

    @pytest.mark.parametrize("text", ["a * 1.0 // b > 1", "a // 3 > 1", "a % 3 == 0", "2.0 ** b > 1", "a / b > 1"])
    def test_what_the_error_advises_is_row_wise(self, text):
        assert selected(text, integers(1))[:2] == selected(text, integers(0))[:2]


class TestOnData:
    """What fails on the data only is one fixed sentence; warnings, too, would be an output."""

    SENTENCE = (
        "the request failed while the data was read; it stays paid. "
        "Its cause is not shown because it could reveal a record."
    )

    @pytest.mark.parametrize(
        "where",
        [
            "mixed > 3",
            lambda frame: 1 / 0,
            lambda frame: frame["SENTINEL"],
            lambda frame: frame["age"],
            lambda frame: True,
            lambda frame: [True],
            lambda frame: frame["member"].iloc[1:],
            lambda frame: frame["member"].reset_index(drop=True),
            lambda frame: frame["mixed"] == np.arange(3),
            lambda frame: frame[["member"]],
            lambda frame: None,
        ],
    )
    def test_failures(self, where):
        found = judged(where, FRAME, names)
        with pytest.raises(QueryFailedError) as caught:
            found.mask(FRAME)
        says_nothing(caught.value)
        assert str(caught.value) == self.SENTENCE
        assert not any(s in "".join(traceback.format_exception(caught.value)) for s in SECRETS[:3] if s != "SENTINEL")

    def test_an_interrupt_passes(self):
        def interrupted(frame):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            judged(interrupted, FRAME, names).mask(FRAME)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(
        "where",
        [
            "income / height > 1",
            "height ** 300.5 > 1",
            "small * 100 > 1",
            lambda frame: warnings.warn("SENTINEL", stacklevel=1) or frame["member"],
            lambda frame: np.log(-frame["age"]) > 0,
        ],
    )
    def test_no_warnings(self, where):
        assert judged(where, FRAME, names).mask(FRAME).shape == (43,)


def flags(dtype: str) -> pd.Series:
    return pd.Series([True, False, None] if dtype != "bool" else [True, False, False], dtype=dtype)


class TestMasks:
    """Masks and callables are taken at the caller's word, if they are boolean and fit the frame."""

    frame = pd.DataFrame({"x": [987654321, 2, 3]})

    @pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]"])
    @pytest.mark.parametrize("form", [lambda s: s, lambda s: s.array, lambda s: lambda frame: s])
    def test_missing_is_not_selected(self, dtype, form):
        found = judged(form(flags(dtype)), self.frame, names)
        assert (found.text, found.trusted, found.columns) == (None, True, ())
        mask = found.mask(self.frame)
        assert type(mask) is np.ndarray
        assert mask.dtype == bool
        assert mask.tolist() == [True, False, False]

    def test_arrays_and_lists(self):
        pa = pytest.importorskip("pyarrow")
        for mask in ([True, False, False], np.array([True, False, False]), pa.array([True, False, None])):
            assert judged(mask, self.frame, names).mask(self.frame).tolist() == [True, False, False]
        assert judged([], self.frame.iloc[:0], names).mask(self.frame.iloc[:0]).tolist() == []

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (pd.Series([1, 0, 1]), "a mask must be boolean (bool, boolean or bool[pyarrow]), not int64"),
            (pd.Series([True, None, False], dtype=object), "not object. Convert it with .astype('boolean')"),
            (np.array(["SENTINEL"] * 3), "a mask must be boolean"),
            (pd.Series(["SENTINEL"] * 3), "a mask must be boolean"),
            (pd.Series([True, False, True], dtype="category"), "not category"),
            ([True, None, False], "every element of a list"),
            ([1, 0, 1], "every element of a list"),
            (np.ones((3, 1), dtype=bool), "one dimension"),
            (np.array(True), "one dimension"),
            (pd.DataFrame({"a": [True] * 3}), "one dimension"),
            (np.ma.array([True] * 3, mask=[True] * 3), "where cannot be a MaskedArray"),
            (True, "where cannot be a bool; it takes a query string, a pd.col expression"),
            (np.True_, "where cannot be a bool"),
            (987654322, "where cannot be a int"),
            ({"x": 1}, "where cannot be a dict"),
            ((True, False, True), "where cannot be a tuple"),
            (list, "where cannot be a type"),
            (types.SimpleNamespace(), "where cannot be a SimpleNamespace"),
        ],
    )
    def test_kinds(self, mask, words):
        with pytest.raises(ColumnTypeError) as caught:
            judged(mask, self.frame, names)
        assert words in str(caught.value)
        says_nothing(caught.value)

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (pd.Series([True] * 3, index=[1, 2, 3]), "another index"),
            (pd.Series([True] * 2), "another index"),
            (np.ones(4, dtype=bool), "another length"),
            ([True] * 2, "another length"),
        ],
    )
    def test_fit(self, mask, words):
        error = refusal(mask, self.frame)
        assert words in str(error)
        assert not any(digit in str(error) for digit in "0123456789")
        says_nothing(error)

    def test_a_callable_is_called_with_the_data_only(self):
        calls = []
        found = judged(lambda frame: calls.append(1) or frame["x"] > 2, self.frame, names)
        assert calls == []
        assert found.mask(self.frame).tolist() == [True, False, True]
        assert "987654321" not in repr(found)


@needs_col
class TestExpressions:
    """A ``pd.col`` expression is judged by the same tree as a query string."""

    @pytest.mark.parametrize(
        "build",
        [
            lambda: col("age") > 10,
            lambda: (col("age") > 10) & (col("region") == "north"),
            lambda: (col("region") != "north") | ~col("member"),
            lambda: col("town") != "A",
            lambda: operator.lt(10, col("age")),
            lambda: True & col("member"),
            lambda: (1 + col("age")) * 2 - col("small") / 2 >= 5,
            lambda: 2.0 ** -col("small") > 0.1,
            lambda: 7 // (col("height") + 0.25) > +col("small") % 3,
            lambda: col("town").isin(["A", "C"]),
            lambda: ~col("age").isin({1, 2}),
            lambda: col("age").between(3, 9),
            lambda: col("children").isna() | col("town").notna(),
            lambda: col("day") > "1999-01-01",
            lambda: col("day") > pd.Timestamp("1999"),
            lambda: col("zoned") > "1999-01-01",
            lambda: col("consent"),
            lambda: col("age") > np.int64(4),
        ],
    )
    def test_selects_what_pandas_selects(self, build):
        expression = build()
        found = judged(expression, FRAME, names)
        expected = expression._eval_expression(FRAME).astype("boolean").fillna(False)
        assert found.mask(FRAME).tolist() == expected.tolist()
        assert (found.text, found.trusted) == (repr(expression), False)

    @pytest.mark.parametrize(
        ("build", "words"),
        [
            (lambda: col("age") > col("age").mean(), "it uses `mean`"),
            (lambda: col("age").rank() > 3, "it uses `rank`"),
            (lambda: col("region").str.len() > 3, "it uses `str`"),
            (lambda: col("day").dt.year > 3, "it uses `dt`"),
            (lambda: col("age").head() > 3, "it uses `head`"),
            (lambda: col("age").index > 3, "it uses `index`"),
            (lambda: col("age").state[0].frame["age"] > 3, "it uses `state`"),
            (lambda: col("age")[0] > 3, "it uses `__getitem__`"),
            (lambda: col("age")() > 3, "it uses `__call__`"),
            (lambda: np.log(col("age")) > 3, "which is not an operator"),
            (lambda: abs(col("age")) > 3, "which is not an operator"),
            (lambda: col("member") ^ col("consent"), "which is not an operator"),
            (lambda: col("age") @ col("age") > 3, "which is not an operator"),
            (lambda: col("age").case_when([(col("age") > 1, 1)]) > 3, "it uses `case_when`"),
            (lambda: col("age").pipe(lambda s: s > 3), "it uses `pipe`"),
            (lambda: col("age") == FRAME["age"], "is a Series"),
            (lambda: col("age") == [1, 2], "write `in` instead of `==`"),
            (lambda: col("age").isin(FRAME["age"]), "must be a list, tuple or set of constants"),
            (lambda: col("age").isin([col("small")]), "is a Expression"),
            (lambda: col("age").between(3, 9, inclusive="left"), "does something that is not an operator"),
            (lambda: col("age") + 1, "is not a decision"),
            (lambda: col("agee") > 1, "Did you mean 'age'?"),
            (lambda: col("person") > 1, "is the index"),
            (lambda: col("age") // col("small") > 1, "on integers needs a constant"),
            (lambda: col("age") < "x", "does not work on age (int64)"),
            (lambda: type(col("age"))(lambda frame: FRAME["member"], "col('age') > 3"), "names no column"),
            (lambda: type(col("age"))(lambda frame: 1 / 0, "x"), "does something that is not an operator"),
        ],
    )
    def test_refusals(self, build, words):
        error = refusal(build())
        assert words in str(error)
        says_nothing(error)

    def test_deep_expressions(self):
        for depth in (300, 3000):
            expression = col("age")
            for _ in range(depth):
                expression = expression + 1
            assert "nested" in str(refusal(expression > 3))

    def test_names_of_any_kind(self):
        assert selected(col(1) / col(0) > 0, pd.DataFrame({0: [1, -1], 1: [1, 2]})) == [True, False]
        assert selected(col(1) > 1, pd.DataFrame({1: [1, 2]})) == [False, True]


class TestNames:
    """``@name`` finds the variables of the nearest caller outside pdrisk, locals first."""

    def test_locals_win(self):
        limit = 987
        assert caller_names()["limit"] == limit
        assert caller_names()["towns"] is towns

    def test_frames_of_pdrisk_are_skipped(self):
        for module in ("pdrisk", "pdrisk.accessor"):
            inside = types.FunctionType(compile("caller()", "", "eval"), {"__name__": module, "caller": caller_names})
            mine = object()
            assert inside()["mine"] is mine

    def test_a_name_that_only_begins_alike_is_a_caller(self):
        inside = types.FunctionType(compile("caller()", "", "eval"), {"__name__": "pdrisks", "caller": caller_names})
        assert "inside" not in inside()


def test_a_filter_can_be_compared():
    """Filters of one meaning are equal, whatever their spelling."""
    spellings = "age>3 and town=='A'", "age > 3 & town in ['A']", "(age > 3) & (town == @towns_of_a)"
    found = [judged(text, FRAME, lambda: {"towns_of_a": "A"}) for text in spellings]
    assert all(isinstance(one, Filter) and one == other for one, other in itertools.pairwise(found))
