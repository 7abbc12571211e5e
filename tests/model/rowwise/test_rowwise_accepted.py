"""A query string that is accepted selects the records for which it is known to be true, each by itself.

Of records without a missing value those are the ones that ``DataFrame.query`` selects.
"""

import itertools
import re
import time
import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdrisk._model.rowwise import RowwiseFilter, caller_names, judged
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.errors import ParameterError
from rowwise_people import FRAME, by_pandas, names, selected, towns
from three_valued import records, truth

PANDAS_3 = pd.__version__ >= "3"

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


def by_definition(found, frame=FRAME):
    """The records for which a judged filter is known to be true."""
    return [truth(found.rule, record) is True for record in records(frame)]


class TestQuery:
    """A query string selects what its definition says, and of whole records what ``DataFrame.query`` selects."""

    @pytest.mark.parametrize("text", ACCEPTED)
    def test_selects_the_same_records(self, text):
        if "odd" in text and not PANDAS_3:
            pytest.skip("pandas 2 cannot read a backtick within backticks")
        found = judged(text, FRAME, names)
        whole = FRAME.dropna(subset=list(found.columns))
        assert selected(text, whole) == by_pandas(text, whole)
        assert selected(text) == by_definition(found)
        assert selected(f"not ({text.partition('#')[0]})") == [
            truth(found.rule, record) is False for record in records(FRAME)
        ]

    @pytest.mark.parametrize("text", ACCEPTED)
    def test_its_canonical_text_means_the_same(self, text):
        found = judged(text, FRAME, names)
        assert selected(found.text) == selected_rows(FRAME, found).tolist()
        assert judged(found.text, FRAME, names).text == found.text

    def test_the_text_names_what_came_from_a_variable(self):
        """Its value may have been computed from the data: it is the caller's word, and shown to nobody."""
        for text, shown in {
            "age>@limit&town  in @towns": "age > @limit and town in @towns",
            "age > -@limit*2 + small": "age > ((-@limit) * 2) + small",
            "town == @towns_of_a or age < 3": "town == @towns_of_a or age < 3",
            "age.between(1, @limit + 1)": "age >= 1 and age <= (@limit + 1)",
        }.items():
            found = judged(text, FRAME, lambda: names() | {"towns_of_a": "A"})
            assert (found.text, found.trusted, found.is_checked) == (shown, True, True)
            assert judged(found.text, FRAME, lambda: names() | {"towns_of_a": "A"}) == found
        assert not judged("age > 9", FRAME, names).trusted

    def test_reads_only_the_columns_it_names(self):
        assert judged("age > 3 and `full name` > age", FRAME, names).columns == ("age", "full name")

    def test_names_are_asked_for_only_if_needed(self):
        judged("region == '@limit'", FRAME, lambda: pytest.fail("asked"))

    def test_a_list_changed_later_changes_nothing(self):
        mine = ["A"]
        found = judged("town in @mine", FRAME, lambda: {"mine": mine})
        before = selected_rows(FRAME, found).sum()
        mine.append("B")
        assert selected_rows(FRAME, found).sum() == before > 0

    def test_a_date_column_with_a_zone_reads_a_text_in_its_zone(self):
        assert selected("zoned > '1999-01-01'") == (FRAME["zoned"] > "1999-01-01").tolist()

    def test_an_empty_frame(self):
        assert selected_rows(FRAME.iloc[:0], judged("age > 3", FRAME.iloc[:0], names)).shape == (0,)

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

        ours = min(seconds(lambda: selected_rows(wide, judged(text, wide, names))) for _ in range(20))
        theirs = min(seconds(lambda: wide.query(text)) for _ in range(5))
        assert ours < theirs / 2


WIDE = FRAME.assign(small=FRAME["small"].astype("int64"))  # pandas overflows in int8
numbers = ["age", "small", "height", "narrow", "children", "income"]
constants = st.one_of(st.integers(-3, 30), st.sampled_from([0.5, 2.0, -1.5, 0.3])).map(repr)


def formulas(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner) | st.builds("-{}".format, inner)


formula = st.recursive(st.sampled_from(numbers), lambda f: formulas(f | constants) | f, max_leaves=4)
# Lists take the precision of a float32 column, as == does in pandas; pandas' isin does not.
listable = st.recursive(
    st.sampled_from([name for name in numbers if name != "narrow"]), lambda f: formulas(f | constants) | f, max_leaves=4
)
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
    st.builds("{} {} [{}, {}]".format, listable, members, constants, constants),
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


class TestAgainstTheDefinition:
    """For every expression that is accepted, the records are those of its definition."""

    @settings(suppress_health_check=list(HealthCheck))
    @given(conditions)
    def test_same_records(self, text):
        try:
            found = judged(text, FRAME, names)
        except ParameterError:
            return
        assert selected_rows(FRAME, found).tolist() == by_definition(found, WIDE)
        assert selected(found.text) == selected_rows(FRAME, found).tolist()

    @settings(suppress_health_check=list(HealthCheck))
    @given(conditions, st.lists(st.integers(0, 42), unique=True))
    def test_each_decision_is_the_records_own(self, text, rows):
        """The definition of row-wise: among any other records, a record's decision is the same."""
        try:
            found = judged(text, FRAME, names)
        except ParameterError:
            return
        assert selected_rows(FRAME.iloc[rows], found).tolist() == selected_rows(FRAME, found)[rows].tolist()


class TestTotality:
    """Arithmetic never lets one record change another record's decision, by a dtype or by a failure."""

    def test_where_pandas_rounds_all_for_one_zero(self):
        """In pandas the zero of the third record changes the decisions on the first two."""
        text = "a // b == 9007199254740992"
        for last in (1, 0):
            frame = pd.DataFrame({"a": [2**53 + 1] * 3, "b": [1, 1, last]})
            assert frame.query(text, engine="python").index.tolist() == [[0, 1], []][last]
            assert selected(text, frame) == [True, True, last == 1]  # of floats, as if one more were missing
            assert selected(text, frame.astype("Int64")) == [False] * 3

    @pytest.mark.parametrize(
        "text", ["a // b > 1", "a % b == 0", "2 ** b > 1", "2 ** -a > 0", "a / b > 1", "a ** b > 1"]
    )
    def test_any_divisor_and_exponent(self, text):
        frames = [pd.DataFrame({"a": [7, -3, 8], "b": [2, 1, last]}) for last in (1, 0, -5)]
        assert len({tuple(selected(text, frame)[:2]) for frame in frames}) == 1


class TestNames:
    """``@name`` finds the variables of the nearest caller outside pdrisk, locals first."""

    def test_locals_win(self):
        limit = 987
        assert caller_names()["limit"] == limit
        assert caller_names()["towns"] is towns

    def test_frames_of_pdrisk_are_skipped(self):
        for module in ("pdrisk", "pdrisk._pandas.accessor"):
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
    assert all(
        isinstance(one, RowwiseFilter) and one.canonical == other.canonical for one, other in itertools.pairwise(found)
    )
    assert found[0] == found[1] != found[2]  # whose town is the caller's word


def test_what_meant_something_else_before_has_another_text():
    """Else an answer would be remembered that was drawn for records of which it is not known."""
    is_new = {
        text: judged(text, FRAME, names).canonical.endswith("missing is unknown")
        for text in ("age > 3 and town == 'A'", "height.isna() or height <= 3", "height * 2 + age > 9", "member",
                     "height != 3", "not height > 3", "town not in ['A']", "(height > 3) + 0 == 1", "height ** 0 == 1",
                     "(height > 3) == member")
    }  # fmt: skip
    assert [text for text, new in is_new.items() if not new] == [*is_new][:4]


@pytest.mark.parametrize("operator", ["and", "or"])
def test_what_is_decided_beside_the_unknown(operator):
    """Kleene's three values: a decision that is compared or added to is known wherever it is True or False."""
    values = [True, False, pd.NA]
    pairs = [(a, b) for a in values for b in values]
    frame = pd.DataFrame(pairs, columns=["a", "b"]).astype("boolean")
    decided = [a & b if operator == "and" else a | b for a, b in pairs]
    for text, wanted in (("== True", True), ("== False", False), ("+ 0 == 1", True), ("+ 0 == 0", False)):
        found = selected_rows(frame, judged(f"(a {operator} b) {text}", frame, dict))
        assert list(found) == [one is wanted for one in decided], text


@pytest.mark.parametrize("dtype", ["float64", "float32", "Int64", "object", "category", "datetime64[ns]", "string"])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_a_list_with_what_is_missing_is_refused(dtype, missing):
    first = {"datetime64[ns]": pd.Timestamp("2020-01-01"), "string": "a"}.get(dtype, 1)
    other = {"datetime64[ns]": pd.Timestamp("2020-01-02"), "string": "b"}.get(dtype, 2)
    frame = pd.DataFrame({"x": pd.Series([first, None, other], dtype=dtype)})
    for text in ("x in @some", "x not in @some"):
        with pytest.raises(ParameterError, match=re.escape("select records without a value by `or x.isna()`")):
            judged(text, frame, lambda: {"some": [first, missing]})
    for text, expected in {
        "x in @some": [True, False, False],
        "x in @some or x.isna()": [True, True, False],
        "x not in @some": [False, False, True],
    }.items():
        assert list(selected_rows(frame, judged(text, frame, lambda: {"some": [first]}))) == expected


def test_the_unknown_is_in_no_list():
    frame = pd.DataFrame({"x": pd.array([1, None, 5], dtype="Int64")})
    for text, wanted in {
        "(x > 3) in [False]": [True, False, False],
        "(x > 3) in [True, False]": [True, False, True],
        "(x + 0) in [0, 1]": [True, False, False],
        "x in [0, 1]": [True, False, False],
    }.items():
        assert list(selected_rows(frame, judged(text, frame, dict))) == wanted, text


def test_quotients_and_remainders_beyond_the_floats():
    """Of products, where a quotient that is off by one leaves the whole divisor."""
    draw = np.random.default_rng(3)
    divisors, quotients = draw.integers(2**20, 2**33, 2000), draw.integers(2**20, 2**29, 2000)
    frame = pd.DataFrame({"a": divisors * quotients, "b": divisors, "q": quotients}).astype("Int64")
    assert selected_rows(frame, judged("a // b == q and a % b == 0 and (a - 1) % b == b - 1", frame, dict)).all()
