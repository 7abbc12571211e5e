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
    return pdrisk._answer.answer.Answer.from_attrs(found.attrs).lines[0]


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
