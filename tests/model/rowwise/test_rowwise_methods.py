"""The methods a query string takes, and what it says of others and of names and texts without their quotes."""

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._model.rowwise import judged
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.errors import ParameterError, UnknownColumnError
from rowwise_people import FRAME, by_pandas, names, refusal, says_nothing, selected
from three_valued import records, truth

col = getattr(pd, "col", None)

VALUES = {
    "number": [
        [1, None, 3, None, 5, 2],
        ["float64", "float32", "Float64", "Int64", "int64[pyarrow]", "double[pyarrow]"],
    ],
    "object number": [[1, None, 3, np.nan, 5, 2], [object]],
    "whole": [[1, 2, 3, 4, 5, 2], ["int64", "uint8", "Int8", "category"]],
    "truth": [[True, None, False, None, True, False], ["boolean", "bool[pyarrow]", object]],
    "text": [["a", None, "b", None, "", "B"], [None, "string", "string[pyarrow]", "category", object]],
}
COLUMNS = {
    f"{name}, {dtype}": pd.Series(values, dtype=dtype) for name, (values, dtypes) in VALUES.items() for dtype in dtypes
}
DAYS = pd.to_datetime(["2020-01-01", None, "2021-06-05", "2021-06-06", None, "1999-12-31"])
COLUMNS |= {"dates": pd.Series(DAYS), "zoned": pd.Series(DAYS.tz_localize("Europe/Berlin"))}
COLUMNS |= {
    "levels": pd.Series(pd.Categorical(["lo", None, "hi", "lo", "mid", None], ["lo", "mid", "hi"], ordered=True))
}
ENDS = {
    "number": ["1, 3", "-1, 2.5", "left=2, right=5", "right=5, left=2", "w, 3", "1, w + 1", "5, 1"],
    "whole": ["1, 3", "-1, 2.5", "@two, 5"],
    "object": ["1, 3"],
    "text": ["'a', 'b'", "'', @letter"],
    "dates": ["'2020-01-01', '2021-06-05'", "'2020', @day"],
    "zoned": ["'2020-01-01', '2021-06-05'", "'1999-12-30T23:00Z', '2021'"],
    "levels": ["'lo', 'mid'"],
}
BEHIND = ["str.contains('a')", "str.contains(pat='B', regex=False)", "str.startswith('a')", "str.endswith(@letter)"]
PARTS = ["year", "quarter", "month", "day", "day_of_year", "hour", "minute", "second"]
LISTS = {
    "number": ["[1, 3]", "(2,)", "[]", "@numbers", "values=[1, 5]", "[1.5, 2]"],
    "whole": ["[1, 3]", "(2,)", "[]", "@numbers"],
    "object": ["[1, 3]", "['a']"],
    "truth": ["[True]", "[False, True]"],
    "text": ["['a']", "['a', '']", "('b', 'x')", "@letters", "[]"],
    "dates": ["@days"],
    "levels": ["['lo', 'nowhere']"],
}
GIVEN = {"two": 2, "letter": "b", "letters": ["a", "B"], "numbers": [1, 2], "day": pd.Timestamp("2021-06-05")}
GIVEN |= {"days": [pd.Timestamp("2021-06-05")]}
CASES = [
    (column, call)
    for column in COLUMNS
    for kind in [column.replace(",", "").split()[0]]
    for call in ["isna()", "notna()", *(f"between({ends})" for ends in ENDS.get(kind, []))]
    + [f"isin({values})" for values in LISTS.get(kind, [])]
    + BEHIND * (kind == "text")
]
FORMS = ["`the x`.{}", "not `the x`.{}", "~`the x`.{} & w > 1", "w == 2 or (`the x`.{}) == False"]


def frame_of(column):
    return pd.DataFrame({"the x": COLUMNS[column], "w": [1, 2, 3, 4, 5, 6]})


def levels(column):
    """The categories that were declared."""
    return ("lo", "mid", "hi")


def chosen(where, frame):
    return selected_rows(frame, judged(where, frame, lambda: GIVEN, levels)).tolist()


class TestMethods:
    """``isna``, ``notna``, ``between`` and ``isin`` of a column select what ``DataFrame.query`` selects."""

    @pytest.mark.sampled(5)
    @pytest.mark.filterwarnings("ignore::FutureWarning")
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(("column", "call"), CASES)
    def test_selects_what_pandas_selects(self, column, call, form):
        """Of records with a value; of the others what the definition of three values says."""
        frame, text = frame_of(column), form.format(call)
        whole = frame if "isna" in call or "notna" in call else frame.dropna()
        expected = None
        try:
            expected = whole.index.isin(whole.query(text, engine="python", local_dict=GIVEN).index).tolist()
        except Exception:  # noqa: BLE001
            pass
        try:
            found = judged(text, frame, lambda: GIVEN, levels)
        except ParameterError:
            assert expected is None or (frame["the x"].dtype == object and "between" in call)  # objects have no order
            return
        assert selected_rows(whole, found).tolist() == expected
        assert selected_rows(frame, found).tolist() == [truth(found.rule, each) is True for each in records(frame)]

    @pytest.mark.sampled(3)
    @pytest.mark.skipif(col is None, reason="pd.col came with pandas 3")
    @pytest.mark.parametrize(("column", "call"), CASES)
    def test_its_tree_is_that_of_an_expression(self, column, call):
        frame, x = frame_of(column), col("the x")
        expression = eval(call.replace("@", "").join(["x.", ""]), {"x": x, "w": col("w"), **GIVEN})
        trees = []
        for where in (f"`the x`.{call}", expression):
            try:
                trees.append(judged(where, frame, lambda: GIVEN, levels).canonical)
            except ParameterError:
                trees.append("refused")
        assert trees[0] == trees[1]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("column", "call"), CASES)
    def test_its_canonical_text_means_the_same(self, column, call):
        frame = frame_of(column)
        try:
            found = judged(f"not `the x`.{call}", frame, lambda: GIVEN, levels)
        except ParameterError:
            return
        if "Timestamp" not in found.text:
            assert judged(found.text, frame, lambda: GIVEN, levels).text == found.text
            assert chosen(found.text, frame) == selected_rows(frame, found).tolist()

    @pytest.mark.parametrize("part", PARTS)
    @pytest.mark.parametrize("dtype", ["datetime64[us]", "datetime64[s]", "timestamp[us][pyarrow]", "date32[pyarrow]"])
    def test_parts_of_times(self, part, dtype):
        """As pandas has them, of times before 1970 and before the last missing one too."""
        moments = [
            None,
            "1969-12-31 23:59:59",
            "1970-01-01",
            "2020-02-29 12:34:56",
            "2019-12-31 00:00:01",
            "1900-03-01",
        ]
        frame = pd.DataFrame({"the x": pd.Series(pd.to_datetime(moments, format="ISO8601").as_unit("s")).astype(dtype)})
        if "date32" in dtype and part in PARTS[-3:]:
            return  # pandas has none of dates
        stored = pd.to_datetime(frame["the x"])
        for limit in (0, 1, 2, 4, 12, 31, 60, 1970, 2020):
            found = judged(f"not `the x`.dt.{part} > {limit}", frame, lambda: GIVEN)
            assert found.text == f"not `the x`.dt.{part} > {limit}"
            assert selected_rows(frame, found).tolist() == (getattr(stored.dt, part) <= limit).tolist()
        if dtype == "datetime64[us]" and col is not None:
            expression = getattr(col("the x").dt, part) == 12
            written = judged(f"`the x`.dt.{part} == 12", frame, lambda: GIVEN)
            assert judged(expression, frame, lambda: GIVEN).canonical == written.canonical

    def test_years_that_no_calendar_has(self):
        frame = pd.DataFrame(
            {"x": np.array(["0000-12-31", "0001-01-01", "9999-12-31", "10000-01-01"], "datetime64[s]")}
        )
        assert chosen("x.dt.year in [0, 1, 9999, 10000]", frame) == [False, True, True, False]
        assert chosen("not x.dt.month == 3", frame) == [False, True, True, False]

    def test_a_pattern_is_looked_for_as_it_stands(self):
        frame = pd.DataFrame({"x": ["a.b", "axb", None, "a|b"]})
        assert chosen("x.str.contains('a.b', regex=False)", frame) == [True, False, False, False]
        found = judged("x.str.contains('|', regex=False) or x.str.startswith('a.')", frame, lambda: GIVEN)
        assert found.text == "(x.str.contains('|', regex=False)) or (x.str.startswith('a.'))".replace(
            "(x", "x"
        ).replace("))", ")")
        assert selected_rows(frame, found).tolist() == [True, False, False, True]
        assert judged(found.text, frame, lambda: GIVEN).canonical == found.canonical

    def test_a_text_from_python_is_not_told_by_the_spelling(self):
        frame = pd.DataFrame({"x": ["a.b", "ab"]})
        texts = {
            judged("x.str.contains(@part, regex=False)", frame, lambda part=part: {"part": part}).text
            for part in ("a.b", "ab")
        }
        assert texts == {"x.str.contains(@part, regex=False)"}

    def test_every_column_of_a_survey(self):
        for column, call in itertools.product(FRAME.columns, ("isna()", "notna()")):
            if "odd" not in column or pd.__version__ >= "3":
                text = f"`{column.replace('`', '``')}`.{call}"
                assert selected(text) == by_pandas(text)
        assert judged("age.isna() and not town.notna()", FRAME, names).text == "age.isna() and not town.notna()"


COMPUTE = "which filters do not have. Compute it as a column in the frame before"
OTHERS = "which may look at other records"
REFUSED = {
    "day.dt.weekday == 0": f"`dt.weekday`, {COMPUTE}",
    "region.str.upper() == 'A'": f"`str.upper`, {COMPUTE}",
    "region.str.startwith('A')": "`str.startwith`, which filters do not have. Did you mean 'startswith'?",
    "day.dt.mont == 1": "`dt.mont`, which filters do not have. Did you mean 'month'?",
    "region.str.contains('a.b')": "regular expression, of which filters have none: write regex=False",
    "region.str.contains('a', case=False)": "`str.contains` takes one text, which is looked for as it stands",
    "region.str.contains('a', regex=True)": "`str.contains` takes one text, which is looked for as it stands",
    "region.str.contains('a', na=False)": "`str.contains` never finds a missing text: leave na= out",
    "region.str.contains('a', **@limit)": "`str.contains` takes one text, which is looked for as it stands",
    "region.str.startswith(('a', 'b'))": "a tuple stands only after `in`",
    "region.str.startswith('a', 'b')": "`str.startswith` takes one text, which is looked for as it stands",
    "region.str.startswith('')": "`str.startswith` takes one text of a letter or more",
    "region.str.endswith(3)": "`str.endswith` takes one text of a letter or more",
    "region.str.endswith(town)": "`str.endswith` takes something else",
    "region.str.contains": "`str.contains` takes one text",
    "day.dt.year() == 2020": "`dt.year` takes something else",
    "(age + 1).dt.year == 2020": "`dt.year` stands behind the name of a column",
    "age.dt.year == 2020": "age.dt.year asks age (int64), and takes dates",
    "age.str.contains('a')": "asks age (int64), and takes text. Convert the column",
    "zoned.dt.year == 2020": "has a time zone, by whose clock its parts differ",
    "day.dt.year": "is not a decision between True and False",
    "region.str.lower().str.len() > 3": COMPUTE,
    "age.abs() > 3": f"`abs`, {COMPUTE}",
    "round(height) > 3": f"`round`, {COMPUTE}",
    "height.fillna(0).isna()": "`fillna`, which filters do not have",
    "region.isnull()": "Did you mean 'isna'?",
    "age > age.mean()": f"`mean`, {OTHERS}",
    "age.mean().isna()": f"`mean`, {OTHERS}",
    "height > height.fillna(height.mean())": f"`mean`, {OTHERS}",
    "age.rolling(3).mean() > 3": OTHERS,
    "region.str.cat() == 'x'": f"`str.cat`, {OTHERS}",
    "level.cat.codes > 1": OTHERS,
    "age.duplicated()": f"`duplicated`, {OTHERS}",
    "age.isna": "`isna` stands behind the name of a column, with its brackets",
    "(age + 1).isna()": "`isna` stands behind the name of a column",
    "@limit.isna()": "`isna` stands behind the name of a column",
    "age.between(1)": "`between` takes something else: write",
    "age.between(1, 2, 3)": "`between` takes something else: write",
    "age.between(1, left=2)": "`between` takes something else: write",
    "age.between(1, 2, inclusive='left')": "`18 <= age < 65` for other ends",
    "age.isna(1)": "`isna` takes something else: write",
    "age.isin()": "`isin` takes something else: write",
    "age.isin(*@towns)": "isin() must be a list",
    "age.isin(**@towns)": "`isin` takes something else: write",
    "age.isin(3)": "must be a list, tuple or set of constants",
    "age.isin(small)": "must be a list, tuple or set of constants",
    "age.isin([small])": "must be a list, tuple or set of constants",
    "age.isin(@column)": "@column must be a list, tuple or set of constants",
    "age.between(3, age.max())": f"`max`, {OTHERS}",
    "agee.isna()": "unknown column 'agee'",
    "person.isna()": "is the index",
    "(1)(age) > 3": "calls something that is no function",
}


class TestOthers:
    """Every other method is refused with a reason that is true of it."""

    @pytest.mark.parametrize(("text", "words"), REFUSED.items(), ids=list(REFUSED))
    def test_refused(self, text, words):
        error = refusal(text)
        assert words in str(error)
        assert str(refusal(text, FRAME.iloc[:0])) == str(error)
        says_nothing(error)

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("condition", ["month(day) = 1", "name LIKE 'A%'"])
    def test_sql_has_what_they_name(self, condition):
        frame = pd.DataFrame({"day": [dt.datetime(2020, 1, 31), dt.datetime(2020, 2, 1)], "name": ["Ann", "Bob"]})
        assert pdrisk.sql(f"SELECT COUNT(*) AS n FROM f WHERE {condition}", eps=1e6, f=frame)["n"].round().tolist() == [
            1
        ]


ODD = pd.DataFrame(
    [[1] * 11],
    columns=[
        "Alter",
        "Alter in Jahren",
        "Körpergröße (cm)",
        "R&D",
        "a-b",
        "2nd",
        "class",
        "dosis_µg",
        "or",
        "1",
        "it's",
    ],
)
UNQUOTED = {
    "Körpergröße (cm) > 0": "`Körpergröße (cm)`",
    "Alter > 3 and Körpergröße (cm) > 0": "`Körpergröße (cm)`",
    "Alter in Jahren > 3": "`Alter in Jahren`",
    "R&D > 3": "`R&D`",
    "a-b > 3": "`a-b`",
    "2nd > 3": "`2nd`",
    "class > 3": "`class`",
    "dosis_µg > 3": "`dosis_µg`",
    "it's > 3": "`it's`",
    "Alter in Jahren.mean() > 3": "`Alter in Jahren`",
}


class TestNames:
    """A name that Python cannot read stands in backticks, and a text in quotes."""

    @pytest.mark.parametrize(("text", "name"), UNQUOTED.items(), ids=list(UNQUOTED))
    def test_backticks_are_missing(self, text, name):
        error = refusal(text, ODD)
        assert f"the name of column '{name[1:-1]}'".replace("'it's'", '"it\'s"') in str(error)
        assert str(error).endswith(f" has to be in backticks: write {name}.")
        assert selected(f"{name} > 0", ODD) == [True]

    @pytest.mark.parametrize(
        "text",
        ["Alter > Alter.mean()", "Altr > 1 or Alter < 0", "Alter == 'a-b' + 1", "`a-b` > `a-b`.mean()", "xclassy > 1"],
    )
    def test_backticks_are_not_the_matter(self, text):
        assert "backticks" not in str(refusal(text, ODD))

    def test_what_cannot_be_read_may_need_either(self):
        assert "text in quotes, the name of a column in backticks" in str(refusal("Alter == Innere Medizin", ODD))

    @pytest.mark.parametrize(
        "text",
        [
            *("sex == female", "sex != female", "female == sex", "sex in [female, male]", "sex not in (male, female)"),
            *("sex in female", "`full name` == female", "age > 3 and not sex == female"),
        ],
    )
    def test_quotes_are_missing(self, text):
        frame = pd.DataFrame({"sex": ["SENTINEL"], "age": [3], "full name": ["x"]})
        error = refusal(text, frame)
        assert type(error) is UnknownColumnError
        assert "the frame has: sex, age, full name." in str(error)
        assert str(error).endswith(("If it is text, put it in quotes: 'female'.", "put it in quotes: 'male'."))
        says_nothing(error)

    @pytest.mark.parametrize("text", ["sexx == 'a'", "sexx == female", "sex < female", "female", "sex == index"])
    def test_quotes_are_not_the_matter(self, text):
        assert "quotes" not in str(refusal(text, pd.DataFrame({"sex": ["SENTINEL"]})))
