"""A Polars expression as a filter selects what Polars itself selects, or is refused with the way to write it."""

import datetime as dt
import math

import polars as pl
import pytest

import pdrisk
from pdrisk import Dataset

C = pl.col
INF = math.inf
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2020, 2, 29), None]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2020, 2, 29, 12), None]
SPANS = [dt.timedelta(-1), dt.timedelta(0), dt.timedelta(microseconds=1), None]
FRAME = pl.DataFrame(
    {
        "x": [None, -INF, -1.5, -0.0, 0.0, 0.1, 2.5, INF] * 4,
        "f": pl.Series([0.1, None, 2.5, -1.0] * 8, dtype=pl.Float32),
        "i": [2**53 + 1, 2**53, -(2**63), 2**63 - 1, 0, 1, None, 3] * 4,
        "u": pl.Series([0, 1, 2**64 - 1, None] * 8, dtype=pl.UInt64),
        "small": pl.Series([-128, 127, 5, None] * 8, dtype=pl.Int8),
        "s": [None, "", "a", "a ", "A", "\u00e4", "b'\"`", "\U0001f600"] * 4,
        "c": pl.Series(["low", "high", None, "low"] * 8, dtype=pl.Categorical),
        "yes": [True, False, None, True] * 8,
        "no": [None, None, False, True, True, False, False, True] * 4,
        "day": DAYS * 8,
        "time": TIMES * 8,
        "zoned": pl.Series(TIMES * 8, dtype=pl.Datetime("us")).dt.replace_time_zone("UTC"),
        "span": SPANS * 8,
        "^odd.*$": [1, 2, None, 4] * 8,
        "row": range(32),
    }
)
ACCEPTED = [
    C("x") > 0,
    C("x") <= -0.0,
    C("x") == 0.1,
    C("x") != 2.5,
    C("f") == 0.1,
    C("f") > C("x"),
    C("i") == 2**53 + 1,
    C("i") > 2**53,
    C("i") >= C("x"),
    C("u") > 2**63,
    C("u") == 2**64 - 1,
    C("f") + 1 < 3,
    -C("small") == -5,
    C("x") * 2 - 1 <= C("f") / 4,
    C("i") / 2 < 1,
    C("x") / C("f") > 1,
    C("s") == "a",
    C("s") != "Series",
    C("s") > "A",
    C("s") >= C("s"),
    C("s") == "b'\"`",
    C("c") == "low",
    C("c").is_in(["high", "none"]),
    C("yes"),
    ~C("yes"),
    C("yes").not_() | C("no"),
    C("yes") & C("no"),
    C("yes") == C("no"),
    C("yes") == True,  # noqa: E712 - of Polars
    (C("x") > 0) | (C("i") > 2),
    ~((C("x") > 0) & (C("i") > 2)),
    (C("x") > 0).or_(C("yes"), C("no")),
    C("x").is_null(),
    C("s").is_not_null() & C("day").is_null(),
    C("x").is_in([0.1, 2.5, 7]),
    ~C("i").is_in([2**53, 0]),
    C("s").is_in(["a", ""]),
    C("s").is_in(pl.Series(["a", "\u00e4"])),
    C("day").is_in([dt.date(2020, 2, 29)]),
    C("x").is_between(-1.5, 0.1),
    C("x").is_between(-1.5, 0.1, closed="left"),
    C("x").is_between(-1.5, 0.1, closed="right"),
    C("x").is_between(-1.5, 0.1, closed="none"),
    C("i").is_between(C("small"), 2**62),
    C("day") > dt.date(1970, 1, 1),
    C("day").is_between(dt.date(1970, 1, 1), dt.date(2020, 2, 29), closed="left"),
    C("time") >= dt.datetime(1970, 1, 1),
    C("time") == dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    C("zoned") > dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    C("span") > dt.timedelta(0),
    pl.lit(3) > C("small"),
    (C("x") > 0).alias("named"),
    C("s").str.starts_with("a"),
    C("s").str.ends_with(" "),
    C("s").str.contains("'\"", literal=True),
    C("day").dt.year() == 2020,
    C("time").dt.second() > 58,
    C("time").dt.ordinal_day() == 60,
]  # fmt: skip


def selected(data, expression):
    """The rows that a filter keeps."""
    table = Dataset(data).count(eps=1, where=expression, by="row", keys=range(32), curator=True)
    return table.index[table["n"] == 1].tolist()


@pytest.mark.parametrize("expression", ACCEPTED, ids=str)
@pytest.mark.filterwarnings("ignore:in .* of the 32 cells:pdrisk.NoisyReleaseWarning")
def test_as_polars_selects(expression):
    assert selected(FRAME, expression) == FRAME.filter(expression)["row"].to_list()
    assert selected(FRAME.to_arrow(), ~expression) == FRAME.filter(~expression)["row"].to_list()
    release = Dataset(FRAME).query(expression).count(eps=1)
    assert release.curator.n == FRAME.filter(expression).height
    # A constant may have been computed from the data.
    assert release.where_trusted is ("Literal" in expression.meta.serialize(format="json"))


def test_nan_is_missing():
    """In Polars NaN is a number above all others; here it is missing, in every frame."""
    frame = pl.DataFrame({"x": [1.0, float("nan"), None, 3.0]})
    d = Dataset(frame)
    counted = [d.count(eps=1, where=each).curator.n for each in (C("x") > 2, C("x") != 1, C("x").is_null())]
    assert counted == [1, 1, 2]


def test_numbers_are_wide_enough():
    """Polars computes -(-128) in 8 bits, where it is -128."""
    assert FRAME.filter(-C("small") == 128).height == 0
    assert Dataset(FRAME).count(eps=1, where=-C("small") == 128).curator.n == 8


def test_a_categorical_is_text():
    """Its order in Polars may be that in which texts were met first."""
    assert Dataset(FRAME).count(eps=1, where=C("c") > "high").curator.n == 16


REFUSED = {
    "mean": C("x") > C("x").mean(),
    "sum over": C("x").sum().over("s") > 1,
    "shift": C("x").shift() > 1,
    "rank": C("x").rank() > 1,
    "first": C("x").first() == 1,
    "length": pl.len() > 3,
    "unique": C("s").is_unique(),
    "duplicated": C("s").is_duplicated(),
    "first distinct": C("s").is_first_distinct(),
    "cast": C("x").cast(pl.Int8) > 1,
    "several columns": C("x", "f") > 1,
    "a pattern": C("^x.*$") > 1,
    "a pattern that is a name": C("^odd.*$") > 1,
    "all": pl.all() > 1,
    "by place": pl.nth(0) > 1,
    "equal with null": C("x").eq_missing(1),
    "unequal with null": C("x").ne_missing(1),
    "null": C("x") == pl.lit(None),
    "NaN": C("x") == float("nan"),
    "infinite": C("x") < INF,
    "is_nan": C("x").is_nan(),
    "when": pl.when(C("x") > 1).then(1).otherwise(2) > 1,
    "a function of Python": C("x").map_elements(lambda x: x, return_dtype=pl.Float64) > 1,
    "in a column": C("s").is_in(C("s").implode()),
    "in null": C("i").is_in([1, None]),
    "in NaN": C("x").is_in([1.0, float("nan")]),
    "floor division": C("i") // 2 == 1,
    "modulo": C("i") % 2 == 1,
    "power": C("x") ** 2 > 1,
    "exclusive or": C("yes") ^ C("no"),
    "bits": C("i") & C("u"),
    "text": C("s").str.to_lowercase() == "a",
    "a pattern in a text": C("s").str.contains("a."),
    "a part of a date": C("day").dt.weekday() == 2,
    "a part of a time with a zone": C("zoned").dt.year() == 2020,
    "no decision": C("x") + 1,
    "a constant": pl.lit(True),
    "a series": pl.lit(pl.Series([True] * 32)),
    "text and number": C("s") > 1,
    "in nothing": C("x").is_in([]),
    "sorted": C("x").sort() > 1,
    "filtered": C("x").filter(C("yes")) > 1,
}


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_refused_before_anything_is_read(expression):
    lazy = FRAME.lazy().with_columns(C("x").map_batches(_never, return_dtype=pl.Float64))
    for data in (FRAME, lazy):
        with pytest.raises(pdrisk.PdriskError, match=r"cannot use where=pl\.col\(\.\.\.\)"):
            Dataset(data).count(eps=1, where=expression)


def _never(series):
    raise AssertionError("nothing may be read")


def test_an_unknown_column():
    with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'small'"):
        Dataset(FRAME).query(C("smal") > 1)


def test_a_constant_is_the_callers_word():
    release = Dataset(FRAME).count(eps=1, where=C("i") == 4711)
    assert release.where_trusted and "4711" not in str(release.public())


def test_deep_nesting():
    deep = C("x") > 0
    for _ in range(300):
        deep = ~deep
    with pytest.raises(pdrisk.ParameterError, match=r"where=pl\.col"):
        Dataset(FRAME).count(eps=1, where=deep)
