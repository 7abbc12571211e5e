"""Constants that a WHERE compares a column with are its bounds, within the declared ones; nothing else is."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._model.where_bounds import listed_ends, narrowed
from pdrisk.errors import ParameterError


@pytest.fixture
def con():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT CAST(i % 100 AS INTEGER) AS age, CAST(i % 100 AS DOUBLE) AS x "
                    "FROM range(3000) AS r(i)")  # fmt: skip
        yield con


def line(query, con, **options):
    found = pdrisk.sql(query, con, eps=50, **options)
    return pdrisk._answer.answers.answer.Answer.from_attrs(found.attrs).lines[0]


@pytest.mark.parametrize(
    ("where", "column", "expected"),
    [
        ("x BETWEEN 18 AND 65", "x", (18, 65)),
        ("18 <= x AND 65 >= x", "x", (18, 65)),
        ("x > 18 AND x < 65", "x", (18, 65)),
        ("age > 18 AND age < 65", "age", (19, 64)),  # whole numbers by their type
        ("age >= 17.5 AND age <= 64.5", "age", (18, 64)),
        ("x IN (3, 9, NULL, 5)", "x", (3, 9)),
        ("x = 7 OR x = 2", "x", (2, 7)),
        ("x BETWEEN 2 AND 8", "x * 2", (4, 16)),
    ],
)
def test_constants_are_bounds(con, where, column, expected):
    found = line(f"SELECT AVG({column}) AS a FROM t WHERE {where}", con)
    assert found.bounds == expected
    assert found.bounds_by_where


@pytest.mark.parametrize(
    "where", ["x > 5", "NOT (x < 5 OR x > 9)", "x BETWEEN 1 AND 5 OR age = 3", "x + 1 BETWEEN 2 AND 9"]
)
def test_what_leaves_an_end_open_gives_none(con, where):
    with pytest.raises(ParameterError, match="needs bounds"):
        pdrisk.sql(f"SELECT AVG(x) FROM t WHERE {where}", con, eps=1)


def test_values_from_outside_the_text_give_none(con):
    for query in ("SELECT AVG(x) FROM t WHERE x BETWEEN $a AND $b",
                  "SELECT AVG(x) FROM (SELECT x, $a AS l, $b AS h FROM t) WHERE x >= l AND x <= h"):  # fmt: skip
        with pytest.raises(ParameterError, match="needs bounds"):
            pdrisk.sql(query, con, eps=1, params={"a": 1, "b": 5})


def test_filter_and_subquery(con):
    assert line("SELECT AVG(x) FILTER (WHERE x BETWEEN 2 AND 8) AS a FROM t", con).bounds == (2, 8)
    assert line("SELECT AVG(y) AS a FROM (SELECT x AS y FROM t WHERE x BETWEEN 2 AND 8)", con).bounds == (2, 8)


def test_the_caller_wins_and_what_is_declared_is_narrowed(con):
    query = "SELECT AVG(x) AS a FROM t WHERE x BETWEEN 18 AND 65"
    assert line(query, con, bounds={"x": (0, 100)}).bounds == (0, 100)
    frame = pd.DataFrame({"x": np.arange(100.0)}).dprisk.declare(bounds={"x": (0, 50)})
    assert line(query, None, t=frame).bounds == (18, 50)
    assert line("SELECT AVG(x) AS a FROM t WHERE x > 60 AND x < 70", None, t=frame).bounds == (0, 50)


def test_clamping_moves_no_record_that_the_filter_keeps():
    # By brute force: every x for which all comparisons hold lies within the ends.
    holds = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
    values = np.arange(-8, 9)
    for first in holds:
        for second in holds:
            for a in (-2.5, -2, 0, 3):
                for b in (-1, 1.5, 4):
                    kept = values[holds[first](values, a) & holds[second](values, b)]
                    lo, hi = narrowed(-np.inf, np.inf, [(first, a), (second, b)], whole=True)
                    assert np.array_equal(np.clip(kept, lo, hi), kept)
    assert listed_ends([1, "a"]) == ()


class TestNames:
    """Bounds are named by a column, by the text of an expression, or by the alias of a mean, rounded or not."""

    @pytest.mark.parametrize(
        ("select", "bounds", "expected"),
        [
            ("ROUND(AVG(x)) AS a", {"a": (0, 90)}, (0, 90)),
            ("ROUND(AVG(x), 1) AS a", {"A": (0, 90)}, (0, 90)),
            ("CAST(ROUND(MEDIAN(x)) AS INTEGER) AS a", {"a": (0, 90)}, (0, 90)),
            ("AVG(x) AS a", {"a": (0, 90)}, (0, 90)),
            ("AVG(x) AS a", {"a": (0, 90), "x": (0, 80)}, (0, 80)),
            ("AVG(x * 2)", {"x*2": (0, 180)}, (0, 180)),
            ("AVG(x * 2)", {"(X * 2)": (0, 180)}, (0, 180)),
            ("AVG(x * (age + 1)) AS a", {"x * (age + 1)": (0, 9000), "a": (0, 1)}, (0, 9000)),
            ("AVG(x) AS age", {"x": (0, 90), "age": (0, 1)}, (0, 90)),
        ],
    )
    def test_of_bounds(self, con, select, bounds, expected):
        assert line(f"SELECT {select} FROM t", con, bounds=bounds).bounds == expected

    @pytest.mark.parametrize(
        ("select", "bounds"),
        [("SUM(x) AS a", {"a": (0, 90)}), ("AVG(x) + 1 AS a", {"a": (0, 90)}), ("AVG(x * 2)", {"x * 3": (0, 180)}),
         ("AVG(x) AS age", {"age": (0, 90)})],
    )  # fmt: skip
    def test_that_are_none(self, con, select, bounds):
        with pytest.raises(ParameterError, match=r"needs (the )?bounds"):
            pdrisk.sql(f"SELECT {select} FROM t", con, eps=1, bounds=bounds)


def test_groups_of_a_session_are_passed_over_without_any(con):
    query, own = "SELECT AVG(x) AS a FROM t", {"person": "age", "rows": 2, "bounds": (0, 100), "risk_columns": True}
    plain, told = (pdrisk.sql(query, con, eps=50, **own, **more) for more in ({}, {"groups": 3}))
    assert told["a_high"][0] - told["a_low"][0] == pytest.approx(plain["a_high"][0] - plain["a_low"][0], rel=0.1)


class TestFrames:
    """``where=`` of frames and Datasets gives the bounds that SQL gives, and the same numbers."""

    @pytest.mark.parametrize(
        ("where", "column", "expected"),
        [
            ("18 <= x <= 65", "x", (18, 65)),
            ("x.between(18, 65)", "x", (18, 65)),
            ("65 >= x and not x.isna() and 18 < x", "x", (18, 65)),
            ("age > 18 and age < 65", "age", (19, 64)),
            ("17.5 <= age <= 64.5", "age", (18, 64)),
            ("x in [3, 9, 5]", "x", (3, 9)),
            ("x == 7 or 2 == x or x in [4]", "x", (2, 7)),
        ],
    )
    def test_constants_are_bounds(self, con, where, column, expected):
        frame = con.sql("FROM t").df()
        for data in (frame, (con, "t")):
            release = pdrisk.Dataset(data).mean(column, where=where, eps=1)
            assert (release.answer.lines[0].bounds, release.answer.lines[0].bounds_by_where) == (expected, True)
            assert pdrisk.Dataset(data).query(where).sum(column, eps=1).answer.lines[0].bounds == expected

    @pytest.mark.parametrize(
        "where",
        ["x > 5", "not (x < 5 or x > 9)", "1 <= x <= 5 or age == 3", "2 <= x + 1 <= 9", "@low <= x <= @high",
         "x in @listed", "x == 5"],
    )  # fmt: skip
    def test_what_leaves_an_end_open_or_stands_elsewhere_gives_none(self, con, where):
        low, high, listed = 1, 5, [1, 5]  # noqa: F841 - which the filter names
        with pytest.raises(ParameterError, match="needs bounds"):
            con.sql("FROM t").df().dprisk.mean("x", where=where, eps=1)

    def test_of_dates(self):
        days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=400)})
        asked = days.dprisk.median("day", where="'2020-02-01' <= day < '2020-06-01'", eps=1)
        assert asked.answer.lines[0].bounds == (18293, 18414) and asked.answer.lines[0].bounds_by_where
        assert pd.Timestamp("2020-03-20") < asked.value < pd.Timestamp("2020-04-12")

    def test_masks_give_none(self, con):
        frame = con.sql("FROM t").df()
        with pytest.raises(ParameterError, match="needs bounds"):
            frame.dprisk.mean("x", where=frame["x"].between(1, 5), eps=1)

    def test_within_declared_bounds_and_never_those_of_the_call(self, con):
        d = con.sql("FROM t").df().dprisk.declare(bounds={"x": (0, 80)})
        asked = {"where": "20 <= x < 200", "eps": 1e3}
        assert d.dprisk.mean("x", **asked).answer.lines[0].bounds == (20, 80)
        assert d.dprisk.mean("x", bounds=(0, 90), **asked).answer.lines[0].bounds == (0, 90)
        assert d.dprisk.mean("x", bounds={"x": (0, 90)}, **asked).answer.lines[0].bounds == (0, 90)
        assert d.dprisk.sum("x", where="x > 500", eps=1e3).answer.lines[0].bounds == (0, 80)

    def test_a_sum_of_a_persons_rows_has_other_ones(self, con):
        d = pdrisk.Dataset(con.sql("FROM t").df(), person="age")
        with pytest.raises(ParameterError, match="needs bounds"):
            d.mean("x", where="1 <= x <= 5", per_person="sum", eps=1)

    @pytest.mark.parametrize("statistic", ["sum", "mean", "median", "max", "std"])
    def test_without_somebody_it_moves_by_what_was_paid(self, statistic):
        """What is selected is within the bounds, so that nothing is clamped."""
        frame = pd.DataFrame({"x": [1.0, 18, 20, 40, 65, 65.5, 90, np.nan]})
        found = getattr(pdrisk.Dataset(frame), statistic)("x", where="18 <= x <= 65", eps=1e3, curator=True)
        assert found.curator.n == 4 and found.curator.clamped == 0
        assert found.curator.local_sensitivity <= found.global_sensitivity
