"""Whole numbers are computed in int64 and beyond it as floats, each record by itself, whatever the column's width."""

import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

TYPES = {
    "TINYINT": 8, "UTINYINT": -8, "SMALLINT": 16, "USMALLINT": -16, "INTEGER": 32, "UINTEGER": -32, "BIGINT": 64,
    "UBIGINT": -64, "HUGEINT": 128, "UHUGEINT": -128,
}  # fmt: skip
Value = int | float | None


def limits(sql_type: str) -> tuple[int, int]:
    bits = TYPES[sql_type]
    return (0, 2**-bits - 1) if bits < 0 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def ends(sql_type: str) -> list[Value]:
    """The ends of a type, numbers beside them, and ordinary ones."""
    low, high = limits(sql_type)
    near = [low, low + 1, low // 2, -119, -7, -2, -1, 0, 1, 2, 3, 7, 119, 2**53 + 1, high // 2, high - 1, high]
    near += [2**63 - 1, 2**63, -(2**63)]
    return [*sorted({value for value in near if low <= value <= high}), None]


def whole(value: int) -> Value:
    """As docs/sql.md says: exact where int64 holds it, else a float."""
    return value if -(2**63) <= value < 2**63 else float(value)


def either(exact: Callable[..., int], floating: Callable[..., float]) -> Callable[..., Value]:
    """Exact of whole numbers in int64, if the result is one; of floats, or where it is none, as floats."""

    def of(*values: Value) -> Value:
        if None in values:
            return None
        if all(isinstance(value, int) for value in values):
            found = exact(*values)
            if found is None or -(2**63) <= found < 2**63:
                return found
        return floating(*map(float, values))

    return of


def truncated(left: int, right: int) -> int | None:
    return None if right == 0 else int(Fraction(left, right))  # towards zero, as DuckDB divides


def rest(left: int, right: int) -> int | None:
    return None if right == 0 else left - right * int(Fraction(left, right))


def float_truncated(left: float, right: float) -> float | None:
    return None if right == 0 else float(math.trunc(left / right))


PLUS = either(lambda a, b: a + b, lambda a, b: a + b)
MINUS = either(lambda a, b: a - b, lambda a, b: a - b)
TIMES = either(lambda a, b: a * b, lambda a, b: a * b)
OVER = either(truncated, float_truncated)
REST = either(rest, lambda a, b: None if b == 0 else math.fmod(a, b))
NEGATIVE = either(lambda a: -a, lambda a: -a)
ABSOLUTE = either(abs, abs)
GREATEST = either(max, max)
LEAST = either(min, min)
SAME = either(lambda a: a, lambda a: a)


def chosen(a: Value, b: Value) -> Value:
    return TIMES(a, 2) if a is not None and a > 0 else PLUS(a, a)


# SQL over two columns, and what it is.
EXPRESSIONS: dict[str, Callable[[Value, Value], Value]] = {
    "a": lambda a, b: SAME(a),
    "a * 2": lambda a, b: TIMES(a, 2),
    "2 * a + 1": lambda a, b: PLUS(TIMES(2, a), 1),
    "a + b": PLUS,
    "a - b": MINUS,
    "b - a": lambda a, b: MINUS(b, a),
    "a * b": TIMES,
    "a // b": OVER,
    "a % b": REST,
    "mod(b, a)": lambda a, b: REST(b, a),
    "-a": lambda a, b: NEGATIVE(a),
    "abs(a)": lambda a, b: ABSOLUTE(a),
    "abs(-b)": lambda a, b: ABSOLUTE(NEGATIVE(b)),
    "a + 9223372036854775807": lambda a, b: PLUS(a, 2**63 - 1),
    "a - 9223372036854775808": lambda a, b: MINUS(a, float(2**63)),
    "a * 9223372036854775807": lambda a, b: TIMES(a, 2**63 - 1),
    "a + b - b": lambda a, b: MINUS(PLUS(a, b), b),
    "(a - b) * (a + b)": lambda a, b: TIMES(MINUS(a, b), PLUS(a, b)),
    "a * b % 10": lambda a, b: REST(TIMES(a, b), 10),
    "a // 10 * 10": lambda a, b: TIMES(OVER(a, 10), 10),
    "floor(a)": lambda a, b: SAME(a),
    "round(a * 2)": lambda a, b: TIMES(a, 2),
    "CASE WHEN a > 0 THEN a * 2 ELSE a + a END": chosen,
    "COALESCE(a * b, 7)": lambda a, b: 7 if TIMES(a, b) is None else TIMES(a, b),
    "IF(b IS NULL, a, a + b)": lambda a, b: SAME(a) if b is None else PLUS(a, b),
    "NULLIF(a * 2, 14)": lambda a, b: None if TIMES(a, 2) == 14 else TIMES(a, 2),
}  # fmt: skip
# Where one is missing, DuckDB takes the other.
BOTH = {
    "greatest(a * 2, b)": lambda a, b: GREATEST(TIMES(a, 2), b),
    "least(a, b, -b)": lambda a, b: LEAST(a, b, NEGATIVE(b)),
}


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


def table(left: str, right: str, pairs: list[tuple[Value, Value]], expected: list[list[Value]]):
    """The pairs, and beside them what is expected: as BIGINT or as DOUBLE."""
    names = ", ".join(f"w{at} BIGINT, d{at} DOUBLE" for at in range(len(expected)))
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (a {left}, b {right}, {names})")
    lines = []
    for at, (a, b) in enumerate(pairs):
        cells = [a, b]
        for values in expected:
            value = values[at]
            cells += [value, None] if isinstance(value, int) else [None, value]
        lines.append("(" + ", ".join("NULL" if cell is None else f"'{cell!r}'" for cell in cells) + ")")
    con.execute(f"INSERT INTO t VALUES {', '.join(lines)}")
    return con


def as_stored(value: Value) -> Value:
    return value if value is None else whole(value)


class TestEnds:
    """Every integer type at its ends against Python's integers."""

    @pytest.mark.slow
    @pytest.mark.sampled(7)
    @pytest.mark.parametrize(
        ("left", "right"), [*zip(TYPES, TYPES, strict=True), *zip(TYPES, [*TYPES][::-1], strict=True)]
    )
    def test_values(self, left, right):
        pairs = list(itertools.product(ends(left), ends(right)))
        known = {sql: [of(as_stored(a), as_stored(b)) for a, b in pairs] for sql, of in (EXPRESSIONS | BOTH).items()}
        con = table(left, right, pairs, list(known.values()))
        asked = []
        for at, sql in enumerate(known):
            there = "a IS NOT NULL AND b IS NOT NULL AND " if sql in BOTH else ""
            for found in (
                f"({sql}) = w{at}",
                f"({sql}) = d{at}",
                f"({sql}) IS NULL AND w{at} IS NULL AND d{at} IS NULL",
            ):
                asked.append(f"COUNT(*) FILTER (WHERE {there}{found})")
        counts = pdrisk.sql(f"SELECT {', '.join(asked)} FROM t", con, eps=1e3).iloc[0].to_numpy().reshape(-1, 3)
        for (sql, values), (exact, floating, missing) in zip(known.items(), counts, strict=True):
            kept = [v for v, (a, b) in zip(values, pairs, strict=True) if sql not in BOTH or None not in (a, b)]
            assert exact == sum(isinstance(value, int) for value in kept), sql
            assert floating == sum(isinstance(value, float) for value in kept), sql
            assert missing == sum(value is None for value in kept), sql

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", TYPES)
    def test_comparisons(self, sql_type):
        values = ends(sql_type)
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (a {sql_type})")
        con.execute(f"INSERT INTO t VALUES {', '.join('(NULL)' if v is None else f'({v})' for v in values)}")
        there = [whole(value) for value in values if value is not None]

        def number(condition: Callable[[int, int], bool], left: list[Value], right: Value) -> int:
            """For how many it holds: exactly of whole numbers, else as floats."""
            pairs = (
                (v, right) if isinstance(v, int) and isinstance(right, int) else (float(v), float(right)) for v in left
            )
            return sum(condition(*pair) for pair in pairs)

        twice = [PLUS(v, v) for v in there]
        for constant in (-(2**63), -1, 0, 2.5, 119, 2**53 + 1, 2**63 - 1, float(2**63), 1e30):
            if constant == 2**63 - 1 and sql_type in ("UBIGINT", "HUGEINT", "UHUGEINT"):
                continue  # as a float the same as what lies just beyond, for DuckDB 2 and not for 1
            fourteen = number(operator.eq, twice, 14) if constant != 14 else 0
            below_all = number(operator.le, twice, 2**63 - 1)
            asked = {
                f"a * 2 < {constant!r}": number(operator.lt, twice, constant),
                f"a = {constant!r}": number(operator.eq, there, constant),
                f"a >= {constant!r}": number(operator.ge, there, constant),
                f"a IS DISTINCT FROM {constant!r}": 1 + number(operator.ne, there, constant),
                f"a * 2 IS NOT DISTINCT FROM {constant!r}": number(operator.eq, twice, constant),
                f"a * 2 NOT IN ({constant!r}, 14)": number(operator.ne, twice, constant) - fourteen,
                f"a * 2 BETWEEN {constant!r} AND 9223372036854775807": max(
                    0, below_all - number(operator.lt, twice, constant)
                ),
            }
            query = f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE {one})' for one in asked)} FROM t"
            found = pdrisk.sql(query, con, eps=1e3).iloc[0].tolist()
            assert dict(zip(asked, found, strict=True)) == asked


class TestWhatPeopleAsk:
    """Sums, means and groups of what is computed."""

    @pytest.mark.parametrize("sql_type", [name for name, bits in TYPES.items() if bits != 8])
    def test_a_mean(self, sql_type):
        con = duckdb.connect()
        con.execute(
            f"CREATE TABLE t AS SELECT CAST(v AS {sql_type}) AS age FROM (VALUES (119), (0), (60), (59)) AS x(v)"
        )
        query = "SELECT dp_mean(age * 2, lo := 0, hi := 300) AS m, COUNT(age * 2) AS n FROM t"
        assert pdrisk.sql(query, con, eps=1).iloc[0].tolist() == pytest.approx([119, 4], abs=1e-6)

    @pytest.mark.parametrize(
        "make", [pd.Series, lambda v, dtype: pd.Series(v, dtype=dtype.replace("i", "I").replace("u", "U"))]
    )
    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
    def test_a_mean_of_frames(self, dtype, make):
        frame = pd.DataFrame({"age": make([119, 0, 60, 59], dtype=dtype)})
        query = "SELECT dp_mean(age * 2, lo := 0, hi := 300) AS m, COUNT(age * 2) AS n FROM t"
        assert pdrisk.sql(query, eps=1, t=frame).iloc[0].tolist() == pytest.approx([119, 4], abs=1e-6)
        exact = pdrisk.sql("SELECT dp_sum(age // 10 * 10, lo := 0, hi := 200) AS s FROM t", eps=1, t=frame)
        assert exact["s"].item() == pytest.approx(110 + 0 + 60 + 50, abs=1e-4)

    @pytest.mark.parametrize("sql_type", ["TINYINT", "INTEGER", "BIGINT", "HUGEINT"])
    def test_groups(self, sql_type):
        con = duckdb.connect()
        high = limits(sql_type)[1]
        con.execute(f"CREATE TABLE t (a {sql_type})")
        con.execute(f"INSERT INTO t VALUES (NULL), (60), (61), ({high}), ({high - 1})")
        top = TIMES(whole(high), 2)
        keys = [120, 122, None, 2**63 - 1] + [top] * isinstance(top, int)
        answer = pdrisk.sql("SELECT COUNT(*) AS n FROM t GROUP BY a * 2", con, eps=1, keys=keys)
        assert answer["n"].tolist() == [1, 1, 1, 0] + [1] * isinstance(top, int)  # what fits no int64 is not missing

    def test_groups_of_a_frame_keep_the_keys_as_they_were_listed(self):
        frame = pd.DataFrame({"age": [20, 31, 32], "pay": [1.0, 2.0, 2.0]})
        answer = pdrisk.sql("SELECT age // 10 * 10 AS k, COUNT(*) FROM t GROUP BY k", eps=1, keys=[20, 30], t=frame)
        assert answer["k"].dtype == np.int64
        answer = pdrisk.sql("SELECT age, COUNT(*) FROM t GROUP BY age", eps=1, keys="observed", t=frame)
        assert answer["age"].dtype == np.int64
        answer = pdrisk.sql("SELECT pay, COUNT(*) FROM t GROUP BY pay", eps=1, keys=[1.0, 2.0], t=frame)
        assert answer["pay"].dtype == np.float64

    def test_plain_columns_are_read_as_they_are(self, monkeypatch):
        con = duckdb.connect()
        con.execute("CREATE TABLE t (a INTEGER, b BIGINT)")
        seen = []
        statement = pdrisk.engines.sql.summary.reading.statement
        monkeypatch.setattr(
            "pdrisk.engines.sql.summary.reading.statement", lambda *args: seen.append(statement(*args)) or seen[-1]
        )
        pdrisk.sql("SELECT AVG(a), AVG(b) FROM t WHERE a > 3 AND b IN (4, 5)", con, eps=1, bounds=(0, 9))
        assert "(\"a\" > CAST('3' AS BIGINT))" in seen[0]
        assert "(\"b\" IN (CAST('4' AS BIGINT), CAST('5' AS BIGINT)))" in seen[0]
        assert "TRY(" not in seen[0] and 'TRY_CAST("' not in seen[0]


class TestTypesThatAreClaimed:
    """What an expression says of its type is what DuckDB says."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", [*TYPES, "FLOAT", "DOUBLE", "DECIMAL(9,2)"])
    def test_each_function(self, sql_type):
        from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
        from pdrisk._sql.expressions.judged_expressions import text
        from pdrisk._sql.relations.from_clause import Rows, relation_of
        from pdrisk._sql.tables.sources import Sources
        from pdrisk._sql.text.parse import parsed

        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (n {sql_type}, t VARCHAR, d DATE, m TIMESTAMP, b BOOLEAN)")
        shapes = {
            "n": ["n"], "nn": ["n, n", "n, 2", "n, 2.5"], "ni": ["n, 1"], "nn*": ["n, n, 3"], "t": ["t"],
            "d": ["d", "m"], "ud": ["'year', m"], "udd": ["'day', d, m"], "tt": ["t, 'a'"], "tc": ["t, 'a'"],
            "tn": ["t, n"], "tnn": ["t, n, 2"], "tcc": ["t, 'a', 'b'"], "tt*": ["t, t"], "tci": ["t, 'a', 0"],
            "": [""], "tccc": ["t, 'a', 'b', 'g'"], "tic": ["t, 3, 'a'"], "dc": ["d, '%Y'", "m, '%Y'"],
            "pd": ["INTERVAL 1 DAY, d", "INTERVAL 1 DAY, m"], "dp": ["d, INTERVAL 1 DAY"], "nnn": ["n, n, n"],
            "niii": ["n, 0, 9, 3"], "v": ["m - d"], "wv": ["'hour', m - d"],
        }  # fmt: skip
        asked = [
            f"{name}({arguments})" if name[0].isalpha() and name != "position" else f'"{name}"({arguments})'
            for name, forms in FUNCTIONS.items()
            for form in forms
            for arguments in shapes[form.arguments]
        ]
        asked += ["CASE WHEN b THEN n ELSE 3 END", "COALESCE(n, 3)", "CASE WHEN b THEN n ELSE 2.5 END", "NULLIF(n, 3)"]
        scope = Rows(relation_of(parsed("SELECT n FROM t"), Sources(con, {})), {})
        found = [text(parsed(f"SELECT {one} FROM t").items[0][0], scope) for one in asked]
        for side in ("sql", "wide"):
            told = con.execute(
                f"DESCRIBE SELECT {', '.join(getattr(one, side) or 'NULL' for one in found)} FROM t"
            ).fetchall()
            for one, claimed, row in zip(asked, found, told, strict=True):
                if side == "wide":
                    assert row[1] == "DOUBLE" or not claimed.wide, one
                elif claimed.wide:
                    assert row[1] == "BIGINT", one
                else:
                    assert claimed.type in (row[1], "constant"), one
