"""A filter decides every record in SQL as it decides it on a frame, and no record makes a statement fail."""

import datetime as dt
import math
import random

import duckdb
import numpy as np
import pandas as pd
import pytest

from pdrisk._model.rowwise import judged
from pdrisk._model.rowwise.decide import holds
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.dialects.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.errors import ParameterError

UTC = dt.UTC
EDGES = {
    "tiny": ("TINYINT", [None, 0, 1, -1, 127, -128, 40]),
    "big": ("BIGINT", [None, 0, -1, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
    "large": ("UBIGINT", [None, 0, 3, 2**53 + 1, 2**63, 2**64 - 1]),
    "x": ("DOUBLE", [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 2.0**53, -(2.0**63), 1e300, 5e-324]),
    "y": ("DOUBLE", [None, math.nan, math.inf, -math.inf, -0.0, 0.1, -3.5, 7.0, 40.0, 1e10, -12.25]),
    "narrow": ("FLOAT", [None, math.nan, math.inf, 0.1, 16777216.0, -2.5]),
    "text": ("VARCHAR", [None, "", "a", "A", "a ", "ä", "b'c", "zz", "\U0001f600", "10", "9"]),
    "flag": ("BOOLEAN", [None, True, False]),
    "day": ("DATE", [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 1, 31), dt.date(9999, 12, 31)]),
    "at": ("TIMESTAMP", [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 1, 31, 12)]),
    "fine": ("TIMESTAMP_NS", [None, dt.datetime(1969, 12, 31), dt.datetime(2020, 1, 31, 12)]),
    "zoned": ("TIMESTAMPTZ", [None, dt.datetime(2020, 1, 31, 12, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC)]),
    "grade": ("ENUM('low', 'middle', 'high')", [None, "low", "middle", "high"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def people():
    """Rows of edge values, as a table and as a frame with the dtypes that stand for its types."""
    con, draw = duckdb.connect(), random.Random(5)
    types = ", ".join(f'"{name}" {sql}' for name, (sql, _) in EDGES.items())
    con.execute(f"CREATE TABLE people (place INTEGER, {types})")
    size = 400
    rows = [
        [each[at % len(each)] if at < len(each) else draw.choice(each) for _, each in EDGES.values()]
        for at in range(size)
    ]
    marks = ", ".join("?" * (len(EDGES) + 1))
    con.executemany(f"INSERT INTO people VALUES ({marks})", [[at, *row] for at, row in enumerate(rows)])
    columns = stored_columns({row[0]: row[1] for row in con.execute("DESCRIBE people").fetchall()[1:]})
    values = dict(zip(EDGES, zip(*rows, strict=True), strict=True))
    return (
        con,
        columns,
        pd.DataFrame({name: pd.Series(list(values[name]), dtype=columns[name].dtype) for name in EDGES}),
    )


LEVELS = {"grade": ("low", "middle", "high")}


@pytest.fixture(params=[Dialect, DuckDBDialect])
def decisions(request, people):
    """What SQL and a frame decide of each record: yes, no or unknown."""
    con, columns, frame = people

    def both(where):
        rule = judged(where, frame.iloc[:0], lambda: MOMENTS, LEVELS.get).rule
        rows = RowSQL(columns, {}, (), request.param())
        asked = f"SELECT {asked_about(rule, rows)} FROM people ORDER BY place"
        return in_sql(con.execute(asked).fetchall()), on_frame(rule, frame)

    return both


def asked_about(rule, rows):
    """SQL of a condition: where it holds, where its negation holds, and its value."""
    return f"{rows.holds(rule)}, {rows.holds(rule, negated=True)}, {rows.truth(rule).sql}"


def in_sql(found):
    """Decisions of what `asked_about` found: yes, no or unknown."""
    assert all((yes is True, no is True) == (value is True, value is False) for yes, no, value in found)
    return [value for _, _, value in found]


def on_frame(rule, frame):
    with np.errstate(all="ignore"):
        yes, no = (np.broadcast_to(holds(rule, frame, negated), len(frame)) for negated in (False, True))
    return [True if one else False if other else None for one, other in zip(yes, no, strict=True)]


def told(where, found, wanted, frame):
    off = [at for at, (one, other) in enumerate(zip(found, wanted, strict=True)) if one is not other]
    return f"{where}: {[(found[at], wanted[at], frame.iloc[at].to_dict()) for at in off[:2]]}" if off else ""


MOMENTS = {
    "noon": pd.Timestamp("2020-01-31 12:00"), "finer": pd.Timestamp("2020-01-31 12:00:00.000000001"),
    "elsewhere": pd.Timestamp("2020-01-31T07:00-05:00"), "first": pd.Timestamp("2020-01-31"),
}  # fmt: skip
CONSTANTS = {
    "tiny": [0, 127, 128, -129, 0.5, 1e300, True],
    "big": [0, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 9007199254740992.0, 0.5, 1e300],
    "large": [0, -1, 2**63, 2**64 - 1],
    "x": [0, 0.1, 2**53 + 2, 2**53, -(2**63), 1e300, 5e-324],
    "y": [0, 7, -3.5],
    "narrow": [0.1, 16777217, 1e300, -2.5],
    "text": ["", "a", "a ", "b'c", "ä", "9"],
    "flag": [True, False, 1, 0],
    "day": ["2020-01-31", "2020-01-31 12:00", "1969-12-31"],
    "at": ["2020-01-31 12:00", "1970-01-01", "2020-01-31 12:00:00.0000001"],
    "fine": ["2020-01-31 12:00", "1600-01-01"],
    "zoned": ["2020-01-31 12:00", "2020-01-31T07:00-05:00"],
    "grade": ["low", "high"],
}
BEHIND = [
    *(f"text.str.{name}({part!r}{how})" for part in ["a", "a ", "b'c", "'c", "\U0001f600", "ä", "zz"]
      for name, how in (("contains", ""), ("startswith", ""), ("endswith", ""))),
    "text.str.contains('%', regex=False) or text.str.endswith('\\\\')", "grade.str.contains('i')",
    *(f"{column}.dt.{part} {order}" for column in ("day", "at")
      for part, order in (("year", "in [1969, 9999]"), ("quarter", "== 1"), ("month", "> 1"), ("day", "!= 31"),
                          ("dayofyear", "< 32"), ("hour", "* 2 == 24"), ("minute", ">= 59"), ("second", "== 59"))),
]  # fmt: skip
TIMES = {"day", "at", "fine", "zoned"}
ORDERS = ["<", "<=", ">", ">=", "==", "!="]


class TestComparisons:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("column", CONSTANTS)
    def test_with_constants(self, decisions, people, column):
        wrong = []
        for constant in CONSTANTS[column]:
            for order in ORDERS[: 4 if column in TIMES else 6]:
                for where in (f"{column} {order} {constant!r}", f"not ({constant!r} {order} {column})"):
                    wrong.append(told(where, *decisions(where), people[2]))
        assert not any(wrong), "\n".join(filter(None, wrong))

    @pytest.mark.parametrize("order", ORDERS[:4])
    def test_with_a_number_that_no_float_is(self, decisions, people, order):
        for where in (f"x {order} {2**53 + 1}", f"not y {order} {2**62 + 1}"):
            assert not told(where, *decisions(where), people[2])

    @pytest.mark.parametrize("column", sorted(set(CONSTANTS) - TIMES))
    def test_with_lists(self, decisions, people, column):
        for listed in (CONSTANTS[column], CONSTANTS[column][:1], CONSTANTS[column] * 5):
            for where in (f"{column} in {listed!r}", f"{column} not in {listed!r}"):
                assert not told(where, *decisions(where), people[2])

    @pytest.mark.parametrize("moment", MOMENTS)
    @pytest.mark.parametrize("column", sorted(TIMES))
    def test_with_moments(self, decisions, people, column, moment):
        if (column == "zoned") is not (moment == "elsewhere"):
            return  # times with a zone are compared with each other
        for where in (f"{column} {order} @{moment}" for order in ORDERS):
            assert not told(where, *decisions(where), people[2])

    @pytest.mark.parametrize("one", CONSTANTS)
    @pytest.mark.parametrize("order", ORDERS)
    def test_of_two_columns(self, decisions, people, one, order):
        for other in CONSTANTS:
            where = f"{one} {order} {other}"
            try:
                found = decisions(where)
            except ParameterError:  # they are not of one kind, for frames as well
                continue
            assert not told(where, *found, people[2])

    def test_functions(self, decisions, people):
        wrong = [told(text, *decisions(text), people[2]) for where in BEHIND for text in (where, f"not ({where})")]
        assert not any(wrong), "\n".join(filter(None, wrong))

    @pytest.mark.parametrize("column", CONSTANTS)
    def test_missing(self, decisions, people, column):
        for where in (f"{column}.isna()", f"not {column}.notna()"):
            assert not told(where, *decisions(where), people[2])


def term(draw, depth, whole):
    """Arithmetic: of whole numbers of any size, or of floats that stay below 2**53 where they are whole."""
    leaves = ["big", "large", "tiny", "0", "1", "-7", "10"] if whole else ["tiny", "y", "y", "flag", "3", "0.5", "2.0"]
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(leaves)
    one, kind = term(draw, depth - 1, whole), draw.random()
    if kind < 0.15:
        return f"(-{one})"
    if kind < 0.4:
        sign, divisor = draw.choice(["//", "%"]), draw.choice([1, 2, 10, -3, 7.0] if whole else [1, 0.5, 1e3, -7])
        return f"({one} {sign} {divisor})"
    sign = draw.choice(["+", "-", "*"] if whole else ["+", "-", "*", "/"])
    return f"({one} {sign} {term(draw, depth - 1, whole)})"


def condition(draw, depth):
    if depth and draw.random() < 0.6:
        parts = [condition(draw, depth - 1) for _ in range(draw.choice([1, 2, 3]))]
        word = draw.choice([" and ", " or "])
        return f"(not {parts[0]})" if len(parts) == 1 else f"({word.join(parts)})"
    kind = draw.random()
    if kind < 0.2:
        return draw.choice(
            ["flag", "(text < 'b')", "(text in ['a', ''])", "day.isna()", "(grade <= 'middle')", "(text == 'a')"]
        )
    if kind < 0.3:
        return f"(({term(draw, 1, whole=False)} + 0) in [0, 1, 2.5, 40])"
    whole, sign = draw.random() < 0.5, draw.choice(ORDERS)
    return f"({term(draw, draw.choice([0, 1, 2, 3]), whole)} {sign} {term(draw, draw.choice([0, 1]), whole)})"


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 30))])
def test_random_trees(decisions, people, seed):
    draw, asked, refused = random.Random(seed), 0, 0
    for _ in range(60):
        where = condition(draw, 3)
        try:
            found = decisions(where)
        except ParameterError:
            refused += 1
            continue
        asked += 1
        assert not told(where, *found, people[2])
    assert asked > 15, refused
