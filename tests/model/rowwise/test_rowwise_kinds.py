"""Filters compare things of one kind only: two kinds are never equal, and a text is a date in one form only."""

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._model.rowwise import judged
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.errors import ParameterError
from rowwise_people import FRAME, says_nothing, selected

PANDAS_3 = pd.__version__ >= "3"
col = getattr(pd, "col", None)

PEOPLE = pd.DataFrame(
    {
        "number": [60, 61, 62],
        "fraction": [0.5, np.nan, 2],
        "nullable": pd.array([60, None, 1], dtype="Int64"),
        "arrow": pd.array([60, None, 1], dtype="int64[pyarrow]"),
        "truth": [True, False, True],
        "consent": pd.array([True, None, False], dtype="boolean"),
        "text": pd.Series(["a", None, "b"], dtype="string"),
        "arrow_text": pd.Series(["a", None, "b"], dtype="string[pyarrow]"),
        "things": pd.Series(["a", None, "b"], dtype=object),
        "classes": pd.Categorical([60, 61, 60]),
        "names": pd.Categorical(pd.array(["a", "b", "a"], dtype="string")),
        "ranges": pd.cut(pd.Series([1, 20, 30]), [0, 18, 65]),
        "day": pd.to_datetime(["2023-07-01", "2023-01-07", None]),
        "zoned": pd.to_datetime(["2023-07-01", "2023-01-07", None]).tz_localize("Europe/Berlin"),
        "arrow_day": pd.array([dt.date(2023, 7, 1), None, dt.date(2023, 1, 7)], dtype="date32[day][pyarrow]"),
        "arrow_time": pd.array([dt.datetime(2023, 7, 1), None, None], dtype="timestamp[us][pyarrow]"),
        "length": pd.to_timedelta([1, 2, None], unit="D"),
        "month": pd.Series(pd.period_range("2020-01", periods=3, freq="M")),
    }
)
NAMES = {
    "stamp": pd.Timestamp("2023-07-01"),
    "moment": dt.datetime(2023, 7, 1),
    "date": dt.date(2023, 7, 1),
    "zone": pd.Timestamp("2023-07-01", tz="UTC"),
    "length": pd.Timedelta(days=1),
}

DATES = ["day", "zoned", "arrow_day", "arrow_time"]
NO_DATES = [
    "01.07.2023",
    "13.07.2023",
    "1/7/2023",
    "2023/07/01",
    "1 July 2023",
    "July 2023",
    "today",
    "now",
]
NO_DATES += ["", "202307", "2023-07-01 24h", "20230701T10", "٢٠٢٣-07-01", "12:00", "2023-W01-1", "NaT"]
ISO = ["2023-07-01", "2023-07-01 10:30", "2023-07-01T10:30:05", "2023-07-01T10:30:05.25", "2023-07-01T10:30:05.123456"]
ISO += ["20230701", "2023-07-01T10:30Z", "2023-07-01 10:30:05+02:00", "2023-07-01T10:30-0500", "2023-07-01 10"]
LOOKS_LIKE_A_DATE = ["01.05.2019", "1/5/2019", "1. 5. 2019", "01.05.2019 10:30", "2019/05/01", "2019-5-1"]
LOOKS_LIKE_A_DATE += ["1. Mai 2019", "1-May-2019", "May 1, 2019", "05/2019", "5.2019"]
ORDERED_AS_TEXT = [
    "2019-05-01",
    "01.11.10",  # of a classification of trades
    "10-12-30",
    "2019-05",
    "2019",
    "a",
    "M",
    "10.5",
    "I10.1",
    "1.2.3.4",
    "5-820",
    "",
    "12 Monate",
    "5/2",
]

KINDS = {  # what is told to do about it
    "number == '60'": "`==` does not work on number (int64) and '60' (str)",
    "number != '60'": "`!=` does not work on number (int64) and '60' (str)",
    "'60' == number": "Write numbers without quotes",
    "number in ['60', '61']": "`in` does not work on number (int64) and a list",
    "number not in [60, '61']": "Write numbers without quotes",
    "number < '60'": "Write numbers without quotes",
    "fraction == '0.5'": "Write numbers without quotes",
    "nullable == '60'": "Write numbers without quotes",
    "arrow in ['60']": "Write numbers without quotes",
    "classes == '60'": "classes (category of int64) and '60' (str)",
    "number + 1 == '61'": "`==` does not work on number + 1 (a number) and '61' (str)",
    "number == text": "as in df.assign(number=df['number'].astype('string'))",
    "number == @stamp": "number (int64)",
    "number in @dates": "number (int64)",
    "number == day": "df['number']",
    "truth == 'ja'": "Write True or False, without quotes",
    "truth in ['ja', 'nein']": "Write True or False, without quotes",
    "consent != 'ja'": "Write True or False, without quotes",
    "text == 1": "Write text in quotes",
    "text != True": "Write text in quotes",
    "text in [1, 2]": "Write text in quotes",
    "text > 1": "as in df.assign(text=df['text'].astype('Float64'))",
    "arrow_text == 1": "Write text in quotes",
    "names == 1": "Write text in quotes",
    "text == @stamp": "df.assign(text=pd.to_datetime(df['text'], format='%d.%m.%Y'))",
    "ranges == 5": "df.assign(ranges=df['ranges'].astype('string'))",
    "ranges == '(0, 18]'": "df.assign(ranges=df['ranges'].astype('string'))",
    "month == '2020-01'": "df.assign(month=df['month'].astype('string'))",
    "month == 202001": "df.assign(month=df['month'].astype('string'))",
    "length == 5": "df.assign(length=df['length'] / pd.Timedelta(days=1))",
    "length > 5": "df.assign(length=df['length'] / pd.Timedelta(days=1))",
    "length > '5'": "'5' names no unit of time, and would be nanoseconds: write it like '5 days'",
    "length == number": "df['length'] / pd.Timedelta(days=1)",
    "day == 20230701": "no date. Write one like '2020-12-31'",
    "day in [20230701]": "Write a range, as in `'2020-01-01' <= day",
    "arrow_time in [3]": "Write a range, as in `'2020-01-01' <= day",
    "day == True": "no date. Write one like '2020-12-31'",
    "day == text": "day (datetime64",
    "day == zoned": "df.assign(day=pd.to_datetime(df['day'], utc=True))",
    "day == @zone": "without a time zone",
    "day in @zones": "without a time zone",
    "day > '2023-07-01T00:00Z'": "without a time zone",
    "zoned == @stamp": "with a time zone",
    "zoned != @date": "with a time zone",
    "arrow_day > '2023-07-01 12:00Z'": "df.assign(arrow_day=pd.to_datetime(df['arrow_day']",
}
MEMBERS = {"dates": [NAMES["stamp"]], "zones": [NAMES["zone"]]}
EQUAL = {  # unlike at first sight, and still compared
    "truth == 1": [True, False, True],
    "truth in [0]": [False, True, False],
    "number == True": [False] * 3,
    "number > 60.5": [False, True, True],
    "number == truth": [False] * 3,
    "number in []": [False] * 3,
    "classes == 60.0": [True, False, True],
    "classes in [60, 62]": [True, False, True],
    "things == 1": [False] * 3,
    "things == 'a'": [True, False, False],
    "things in [1, 'a']": [True, False, False],
    "things == number": [False] * 3,
    "day == @stamp": [True, False, False],
    "day == @moment": [True, False, False],
    "day == @date": [True, False, False],
    "day > '2023'": [True, True, False],
    "day > '2023-02'": [True, False, False],
    "zoned == @zone": [False] * 3,
    "zoned > @zone": [False] * 3,
    "zoned > '2023-06-30T21:00Z'": [True, False, False],
    "arrow_day == @date": [True, False, False],
    "arrow_day == @stamp": [True, False, False],
    "arrow_day >= '2023-02-01'": [True, False, False],
    "arrow_time == @stamp": [True, False, False],
    "length == @length": [True, False, False],
    "length > '1 days'": [False, True, False],
    "length > '24:00:00'": [False, True, False],
    "month > '2020-01'": [False, True, True],
}


def asked(where, frame=PEOPLE):
    found = judged(where, frame, lambda: NAMES | MEMBERS)
    return selected_rows(frame, found).tolist()


def refused(where, frame=PEOPLE):
    """The refusal, which needs no record: neither their values nor their number."""
    with pytest.raises(ParameterError) as caught:
        asked(where, frame)
    says_nothing(caught.value)
    for fewer in (frame.iloc[:0], frame.iloc[[1]]):
        with pytest.raises(ParameterError) as again:
            asked(where, fewer)
        assert str(again.value) == str(caught.value)
    return str(caught.value)


class TestDates:
    """A text beside dates is one of ISO 8601, or refused: the day first or the month first would be a guess."""

    @pytest.mark.parametrize(("column", "written"), [*itertools.product(DATES, NO_DATES)])
    def test_other_forms_are_refused(self, column, written):
        message = refused(f"{column} >= {written!r}")
        assert "write it like '2020-12-31'" in message
        assert refused(f"{written!r} < {column}") == message.replace(
            repr(f"{column} >= {written!r}"), repr(f"{written!r} < {column}")
        )
        refused(f"{column}.between({written!r}, '2024-01-01')")
        if col:
            for compare in (col(column) > written, col(column) == written, col(column).between("2023-01-01", written)):
                assert "write it like '2020-12-31'" in refused(compare)

    @pytest.mark.parametrize("written", ["2023-7-1", " 2023-07-01", "2023-07-01 "])
    @pytest.mark.parametrize("name", DATES)
    def test_what_leaves_no_doubt(self, name, written):
        assert asked(f"{name} < {written!r}") == asked(f"{name} < '2023-07-01'")

    def test_categories_of_dates(self):
        frame = pd.DataFrame({"day": pd.Categorical(pd.date_range("2020-01-01", periods=8))})
        assert frame.dprisk.count(eps=1, where="day == '2020-01-03'").curator.n == 1

    @pytest.mark.parametrize("written", ISO)
    def test_iso_is_read_as_python_reads_it(self, written):
        moment = dt.datetime.fromisoformat(written)
        column = "zoned" if moment.tzinfo else "day"
        around = [moment + dt.timedelta(microseconds=step) for step in (-1, 0, 1)]
        frame = pd.DataFrame({column: pd.to_datetime(around, utc=True if moment.tzinfo else None)})
        assert asked(f"{column} >= {written!r}", frame) == [False, True, True]
        assert asked(f"{column} <= {written!r}", frame) == [True, True, False]

    @pytest.mark.parametrize("written", ["2023-13-01", "2023-02-30", "2023-07-01 25:00"])
    def test_days_that_no_calendar_has(self, written):
        assert "no date" in refused(f"day > {written!r}")

    @pytest.mark.parametrize("written", LOOKS_LIKE_A_DATE)
    @pytest.mark.parametrize("column", ["text", "arrow_text", "things"])
    def test_text_is_not_ordered_by_dates_it_cannot_order(self, column, written):
        for where in (f"{column} >= {written!r}", f"{written!r} > {column}", f"{column}.between('', {written!r})"):
            message = refused(where)
            assert f"df.assign({column}=pd.to_datetime(df['{column}'], format='%d.%m.%Y'))" in message
        asked(f"{column} == {written!r}")

    @pytest.mark.parametrize("written", ORDERED_AS_TEXT)
    @pytest.mark.parametrize("column", ["text", "arrow_text", "things"])
    def test_other_text_is_ordered(self, column, written):
        expected = [value is not None and not pd.isna(value) and value >= written for value in PEOPLE[column]]
        assert asked(f"{column} >= {written!r}") == expected


class TestKinds:
    """What can never be equal is refused by dtypes and constants alone, with what to write instead."""

    @pytest.mark.parametrize(("where", "words"), KINDS.items(), ids=list(KINDS))
    def test_refused(self, where, words):
        message = refused(where)
        assert words in message
        assert len(message) < 500

    @pytest.mark.parametrize(("where", "expected"), EQUAL.items(), ids=list(EQUAL))
    def test_compared(self, where, expected):
        assert asked(where) == expected

    @pytest.mark.skipif(col is None, reason="pd.col came with pandas 3")
    @pytest.mark.parametrize("value", ["60", "ja"])
    def test_expressions(self, value):
        for name in ("number", "nullable", "arrow", "truth", "classes"):
            for where in (col(name) == value, col(name) != value, col(name).isin([value])):
                assert "never equal" in refused(where)
        for where in (col("text") == 60, col("names") == 60, col("day").isin([60]), col("text") == True):  # noqa: E712
            assert "never equal" in refused(where)

    @pytest.mark.parametrize("values", [["a"], [1, "a"], [None], []], ids=str)
    def test_objects_are_not_asked_what_they_hold(self, values):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        for where in ("x == 1", "x == 'a'", "x in [1, True]", "x.isin(['a'])"):
            assert len(asked(where, frame)) == len(values)

    @pytest.mark.parametrize("categories", [["a", "b"], ["SENTINEL"], []], ids=str)
    def test_categories_are_asked_for_their_dtype_only(self, categories):
        one, other = (
            pd.DataFrame({"x": pd.Categorical.from_codes([-1, -1], pd.Index(listed, dtype="string"))})
            for listed in (categories, ["z"])
        )
        assert refused("x == 1", one) == refused("x == 1", other)

    def test_a_long_list_is_not_told_back(self):
        assert len(refused(f"text in {list(range(5000, 9000))}")) < 500

    @pytest.mark.parametrize(("where", "column"), [("age < 'x'", "age"), ("`full name` == '1'", "full name")])
    def test_of_the_whole_survey(self, where, column):
        assert "never equal" in refused(where, FRAME)
        assert any(selected(f"`{column}` >= 0"))


class TestAdvice:
    """What a refusal advises can be done, and then the filter works."""

    @pytest.mark.parametrize(
        ("where", "then"),
        [
            ("ranges == '(0, 18]'", None),
            ("month == 202001", "month == '2020-01'"),
            ("length > 5", None),
            ("day == zoned", None),
            ("arrow_day > '2023-07-01 12:00Z'", "arrow_day > '2023-07-01 12:00'"),
            ("number == text", None),
            ("written > 50", None),
            ("later >= '01.05.2019'", "later >= '2019-05-01'"),
            ("level > 'x'", None),
            ("`a b` > 5", None),
        ],
    )
    def test_is_followed(self, where, then):
        df = PEOPLE.assign(
            written=pd.Series(["60", None, "7"], dtype="string"),
            later=pd.Series(["02.05.2019", None, "30.04.2019"], dtype="string"),
            level=pd.Categorical(["a", "b", "c"]),
            flag=pd.array([True, None, True], dtype="bool[pyarrow]"),
            **{"a b": pd.Series(["60", None, "7"], dtype="string")},
        )
        advice = refused(where, df).split("as in ", 1)[1].split(";", 1)[0].removesuffix(".")
        scope = {"df": df, "pd": pd}
        if advice.startswith("df.assign"):
            scope["df"] = eval(advice, scope)
        else:
            exec(advice, scope)
        assert len(asked(then or where, scope["df"])) == 3


class TestMissingCodes:
    """A declared code is missing before any filter sees it, so a filter that asks for it is refused."""

    CODED = pd.DataFrame({"x": [1, -1, 3], "s": ["a", "?", "b"], "w": [1, -1, 1]}).dprisk.declare(
        missing={"x": [-1, -2], "s": ["?"]}
    )

    @pytest.mark.parametrize(
        ("where", "words"),
        {
            "x == -1": "-1 is declared to stand for a missing answer in x",
            "x == -1.0": "-1.0 is declared",
            "-2 == x": "-2 is declared",
            "x != -1": "ask for x.isna() or .notna()",
            "x in [3, -1]": "-1 is declared",
            "x not in [-2]": "-2 is declared",
            "x.isin([-1])": "-1 is declared",
            "w > 0 and not (x == -1 or w < 0)": "-1 is declared",
            "s == '?'": "'?' is declared to stand for a missing answer in s",
            "s != '?'": "ask for s.isna() or .notna()",
        }.items(),
        ids=str,
    )
    def test_refused(self, where, words):
        for frame in (self.CODED, self.CODED.iloc[:0], self.CODED.iloc[[0]]):
            with pytest.raises(ParameterError) as caught:
                frame.dprisk.count(eps=1, where=where)
            assert words in str(caught.value)
            says_nothing(caught.value)

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize(
        ("where", "n"),
        [
            ("x.isna()", 1),
            ("x.notna() and s.notna()", 2),
            ("x in [1, 3]", 2),
            ("w == -1", 1),
            ("x < 0", 0),
            ("s == 'a'", 1),
        ],
    )
    def test_answered(self, where, n):
        assert self.CODED.dprisk.count(eps=1, where=where).curator.n == n

    @pytest.mark.skipif(col is None, reason="pd.col came with pandas 3")
    def test_expressions(self):
        for ask in (self.CODED.dprisk, self.CODED["x"].dprisk):
            for where in (col("x") == -1, col("x") != -1, col("x").isin([-1])):
                with pytest.raises(ParameterError, match="is declared to stand for a missing answer"):
                    ask.count(eps=1, where=where)

    def test_it_costs_nothing(self, tmp_path):
        with pdrisk.Ledger(tmp_path / "budget.db", dataset="d", eps=1) as ledger:
            for where in ("x == -1", "x == '1'", "s > '01.05.2019'"):
                with pytest.raises(ParameterError):
                    self.CODED.dprisk.count(eps=0.5, where=where)
        assert ledger.remaining().eps == 1
