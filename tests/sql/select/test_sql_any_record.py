"""What is accepted is accepted by types alone: no record of such a type makes it fail, or changes what others are."""

import datetime
import decimal
import functools

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

WHOLE = [
    "-1",
    "0",
    "1",
    "5",
    "127",
    "-128",
    "255",
    "32767",
    "2147483647",
    "9223372036854775807",
    "-9223372036854775808",
]
WHOLE += ["18446744073709551615", "170141183460469231731687303715884105727", "340282366920938463463374607431768211455"]
FLOATS = ["0.0", "-0.0", "0.1", "-2.5", "1e308", "-1e308", "5e-324", "inf", "-inf", "nan"]
DAYS = ["2020-01-01", "0001-01-01", "9999-12-31", "5881580-07-10", "5877642-06-25 (BC)", "infinity", "-infinity"]
TIMES = ["2020-01-01 12:00:00", "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "1677-09-22 00:00:00"]
TIMES += ["1970-01-01 00:00:00.000001", "2262-04-11 23:47:16", "infinity", "-infinity"]
TEXTS = [
    "",
    "a",
    "north",
    "5",
    "-1e400",
    "nan",
    "2020-01-01",
    "true",
    "%_",
    "'",
    "\u20ac\U0001f600",
    "x" * 5000,
    "a\nb",
]
KINDS = {
    "TINYINT UTINYINT SMALLINT USMALLINT INTEGER UINTEGER BIGINT UBIGINT HUGEINT UHUGEINT": WHOLE,
    "FLOAT DOUBLE DECIMAL(4,1) DECIMAL(18,18) DECIMAL(38,0) DECIMAL(38,37)": [*FLOATS, *WHOLE, "9.9", "999.9"],
    "BOOLEAN": ["true", "false"],
    "VARCHAR ENUM('','a','north','5')": TEXTS,
    "DATE": DAYS,
    "TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS TIMESTAMPTZ": [*TIMES, *DAYS],
    "TIME": ["00:00:00", "24:00:00"],
    "INTERVAL": ["1 day", "-83 years"],
    "UUID": ["0" * 32],
    "BLOB": ["a"],
    "INTEGER[]": ["[1]"],
}
TYPES = {name: values for names, values in KINDS.items() for name in names.split()}
CONSTANTS = [
    *("5", "-1", "0", "2.5", "-0.1", "123456789.123456789123", "1e308", "9007199254740993", "9223372036854775807"),
    *("9223372036854775808", "170141183460469231731687303715884105727", "'a'", "''", "'5'", "'2020-01-01'", "true"),
    *("DATE '2020-01-01'", "CAST('2020-01-01 10:00:00' AS TIMESTAMP)", "NULL", "x", "y", "x * 2", "NULLIF(x, y)"),
]
OPERATORS = ["=", "<>", "<", ">=", "IS DISTINCT FROM"]
SHAPES = [
    "x IN ({0}, x)", "x NOT IN ({0})", "x BETWEEN {0} AND {0}", "COALESCE(x, {0}) = {0}", "NULLIF(x, {0}) IS NULL",
    "CASE WHEN x IS NULL THEN {0} ELSE x END = x", "CASE x WHEN {0} THEN true ELSE false END", "greatest(x, {0}) = x",
]  # fmt: skip
ARITHMETIC = [f"x {sign} {{0}} > 0" for sign in ("+", "-", "*", "/", "//", "%", "^")]
ALONE = [
    *(f"TRY_CAST(x AS {to}) IS NULL" for to in (
        "TINYINT", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(3,1)", "DECIMAL(38,30)", "BOOLEAN", "VARCHAR",
        "DATE", "TIMESTAMP")),
    *(f"CAST(x AS {to}) IS NULL" for to in ("INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")),
    *(f"{name}(x) > 0" for name in (
        "abs", "sqrt", "ln", "exp", "round", "floor", "sign", "length", "year", "week", "dayofyear", "yearweek")),
    *(f"{name}(x) = 'a'" for name in ("lower", "reverse", "trim")), "left(x, 2) = 'a'", "substr(x, 2, 5) = 'a'",
    "x LIKE '%a%'", "x || x = 'aa'", "regexp_matches(x, 'a')", "date_diff('day', x, y) > 0", "date_part('year', x) > 0",
    "date_diff('second', x, DATE '2020-01-01') > 5", "x", "NOT x", "x AND y", "isnan(x)", "-x < 0", "round(x, 2) > 0",
    "left('abc', x) = 'a'", "substr('abc', x, x) = 'a'", "year(TRY_CAST(x AS TIMESTAMP)) > 0",
    "TRY_CAST(x AS DATE) < y",
]  # fmt: skip
CONDITIONS = [
    *(f"x {operator} {constant}" for operator in OPERATORS for constant in CONSTANTS),
    *(shape.format(constant) for shape in SHAPES for constant in CONSTANTS[::2]),
    *(shape.format(constant) for shape in ARITHMETIC for constant in ("5", "0", "-1", "2.5", "x", "y")),
    *ALONE,
]


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


def decided(con, conditions: list[str], keys: list[str], **options) -> dict[str, tuple[float, ...]]:
    """For whom each accepted condition holds."""
    if not conditions:
        return {}
    listed = ", ".join(f"COUNT(*) FILTER (WHERE {condition})" for condition in conditions)
    try:
        answer = pdrisk.sql(f"SELECT {listed} FROM t GROUP BY id", con, eps=1e3, keys=keys, **options)
    except pdrisk.ParameterError:
        half = len(conditions) // 2
        return decided(con, conditions[:half], keys, **options) | (
            decided(con, conditions[half:], keys, **options) if half else {}
        )
    return {condition: tuple(answer.iloc[:, at]) for at, condition in enumerate(conditions)}


def cell(sql_type: str) -> str:
    """A parameter as this type, missing where it holds no such thing."""
    return f"TRY(TRY_CAST(CAST(? AS VARCHAR) AS {sql_type}))"


def accepted(con, conditions: list[str]) -> list[str]:
    """Those that the types allow; one by one, as far as no DuckDB is asked."""
    from pdrisk._sql.expressions.judged_expressions import text
    from pdrisk._sql.relations.from_clause import Rows, condition, relation_of
    from pdrisk._sql.tables.sources import Sources
    from pdrisk._sql.text.parse import parsed

    rows = Rows(relation_of(parsed("SELECT x FROM t"), Sources(con, {})), {})
    kept = []
    for one in conditions:
        node = parsed(f"SELECT {one} FROM t").items[0][0]
        try:
            condition(node, rows)
        except pdrisk.ParameterError:
            continue
        assert text(node, rows).sql
        kept.append(one)
    return list(decided(con, kept, ["0"]))


class TestTables:
    """Every type of a table's column, with every operator and every kind of constant."""

    @pytest.mark.slow
    @pytest.mark.sampled(16)
    @pytest.mark.parametrize("sql_type", TYPES)
    def test_every_condition(self, sql_type):
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (id VARCHAR, x {sql_type}, y {sql_type})")
        asked = accepted(con, CONDITIONS[len(sql_type) % 3 :: 3])
        con.execute("CREATE TABLE everybody AS FROM t")
        values = [*TYPES[sql_type], None]
        con.executemany(
            f"INSERT INTO everybody VALUES (?, {cell(sql_type)}, {cell(sql_type)})",
            [[str(at), value, values[(at - 3) % len(values)]] for at, value in enumerate(values)],
        )
        keys = [str(at) for at in range(len(values))]
        con.execute("INSERT INTO t FROM everybody")
        everybody = decided(con, asked, keys)
        assert list(everybody) == asked  # neither refused, nor failed
        for part in (0, 1):
            con.execute(f"DELETE FROM t; INSERT INTO t FROM everybody WHERE CAST(id AS INTEGER) % 2 = {part}")
            for condition, found in decided(con, asked, keys).items():
                assert found[part::2] == everybody[condition][part::2], condition

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", [name for name in TYPES if "[]" not in name])
    def test_groups_and_arguments(self, sql_type):
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (id VARCHAR, x {sql_type}, y {sql_type})")
        queries = {
            "SELECT COUNT(x), COUNT(y) FILTER (WHERE x = y) FROM t": {},
            "SELECT AVG(x), SUM(x), MIN(x), MAX(x), MEDIAN(x), VAR_POP(x), STDDEV(x) FROM t": {"bounds": (-5, 5)},
            "SELECT dp_sum(x * 2, lo := 0, hi := 9), dp_mean(x / y, lo := 0, hi := 9) FROM t": {},
            "SELECT COUNT(*) FROM t GROUP BY x": {"keys": "observed"},
            "SELECT COUNT(*) FROM t GROUP BY COALESCE(x, y), x = y": {"keys": [(None, True)]},
        }  # fmt: skip

        def outcomes() -> dict[str, bool]:
            found = {}
            for query, options in queries.items():
                try:
                    found[query] = len(pdrisk.sql(query, con, eps=1, **options)) >= 0
                except pdrisk.ParameterError:
                    found[query] = False
            return found

        expected = outcomes()
        for at, value in enumerate(TYPES[sql_type]):
            con.execute(f"INSERT INTO t VALUES (?, {cell(sql_type)}, {cell(sql_type)})", [at, value, value])
        assert outcomes() == expected


CODES = {
    "numbers": [-1, 99, 2.5, -8.0, 2**63 - 1, 2**63, -(2**63), 1e308, 10**300, 0.1, np.inf],
    "text": ["", "NA", "north", "5", "x" * 300],
    "dates": [pd.Timestamp("1900-01-01"), datetime.date(2020, 1, 1), pd.Timestamp("2020-01-01 10:00:00.000001")],
    "truth values": [True],
}


class TestMissingCodes:
    """Whatever is declared to be missing, no record makes reading fail."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("sql_type", TYPES)
    def test_every_code(self, sql_type):
        pandera = pytest.importorskip("pandera.pandas")
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t (id VARCHAR, x {sql_type})")

        def outcomes() -> list[object]:
            found = []
            for codes in CODES.values():
                schema = pandera.DataFrameSchema({"x": pandera.Column(None, metadata={"pdrisk": {"missing": codes}})})
                for query in ("SELECT COUNT(x) FROM t", "SELECT COUNT(*) FROM t WHERE x IS NULL OR x = x"):
                    try:
                        found.append(len(pdrisk.sql(query, con, eps=1, schema=schema)))
                    except pdrisk.ParameterError as error:
                        found.append(str(error))
            return found

        expected = outcomes()
        con.executemany(f"INSERT INTO t VALUES ('a', {cell(sql_type)})", [[value] for value in TYPES[sql_type]])
        assert outcomes() == expected


@functools.cache
def arrow_columns() -> dict[str, pd.Series]:
    """Columns of dtypes whose records may be the widest that there are."""
    pa = pytest.importorskip("pyarrow")
    digits = "9" * 30 + ".99999999"
    columns = {
        f"decimal({p},{s})": ([decimal.Decimal(5), decimal.Decimal(1), None], pa.decimal128(p, s))
        for p, s in ((4, 1), (9, 9), (18, 3), (38, 0))
        if p > s
    } | {
        "wide-decimal": ([decimal.Decimal(digits), decimal.Decimal(f"-{digits}"), None], pa.decimal128(38, 8)),
        "double": ([2.0**63 - 1, float("inf"), None], pa.float64()),
        "int8": ([127, -128, None], pa.int8()),
        "uint64": ([2**64 - 1, 0, None], pa.uint64()),
        "bool": ([True, False, None], pa.bool_()),
        "date": ([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None], pa.date32()),
        "timestamp": ([datetime.datetime(1, 1, 1), None, datetime.datetime(9999, 12, 31)], pa.timestamp("us")),
    }  # fmt: skip
    return {
        name: pd.Series(pd.array(values, dtype=pd.ArrowDtype(of_type))) for name, (values, of_type) in columns.items()
    }


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_far_times_of_frames(unit):
    far = {"s": "300000-01-01", "ms": "299999-01-01"}.get(unit, "2262-01-01" if unit == "ns" else "200000-01-01")
    column = pd.Series(
        np.array([far, f"-{far}" if unit in ("s", "ms") else far, "2020-01-01", "NaT"], f"datetime64[{unit}]")
    )
    frame = pd.DataFrame({"x": column, "y": column[::-1].reset_index(drop=True)})
    frame["id"] = pd.array([str(at) for at in range(len(column))], "string")
    conditions = [
        "x > '2019-01-01'",
        "x = y",
        "year(x) = 2020",
        "x IS NULL",
        "date_diff('day', x, y) > 0",
        "x IN (y, x)",
    ]
    found = decided(None, conditions, ["0", "1", "2", "3"], t=frame)
    assert found["x > '2019-01-01'"][2:] == (1, 0)
    assert found["year(x) = 2020"] == (0, 0, 1, 0)
    declared = frame.dprisk.declare(missing={"x": [pd.Timestamp("1900-01-01")]})
    assert decided(None, conditions, ["0", "1", "2", "3"], t=declared) == found


@pytest.mark.slow
@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "name",
    [
        "decimal(4,1)",
        "decimal(18,3)",
        "decimal(38,0)",
        "wide-decimal",
        "double",
        "int8",
        "uint64",
        "bool",
        "date",
        "timestamp",
    ],
)
def test_frames_of_arrow(name):
    column = arrow_columns()[name]
    frame = pd.DataFrame(
        {"id": pd.array([str(at) for at in range(len(column))], "string"), "x": column, "y": column[::-1]}
    )
    conditions = CONDITIONS[::7]
    nobody = decided(None, conditions, ["0"], t=frame.iloc[:0])
    found = decided(None, conditions, [str(at) for at in range(len(column))], t=frame)
    assert list(found) == list(nobody)
    assert len(found) > 9


@pytest.mark.slow
def test_dates_that_are_infinite_or_far_stop_nothing(monkeypatch):
    without_noise(monkeypatch)
    con = duckdb.connect()
    days = ["infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "2020-01-01"]
    con.execute(f"CREATE TABLE t AS SELECT unnest({days})::DATE AS d, i AS i FROM range(1) r(i)")
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
        for text in (f"date_part('{unit}', d) > 3", "week(d) > 3", f"date_diff('{unit}', d, d) > 3"):
            pdrisk.sql(f"SELECT COUNT(*) FILTER (WHERE {text}) FROM t WHERE i = 0", con, eps=1)
    answer = pdrisk.sql("SELECT d, COUNT(*) FROM t GROUP BY d", con, eps=1, keys="observed")
    # Those that Python's dates can hold, and one missing key for all others.
    assert answer["d"].tolist() == [pd.Timestamp("2020-01-01"), pd.NaT] and answer.iloc[:, 1].tolist() == [1, 4]


def test_a_column_of_nothing_is_a_column_of_text(monkeypatch):
    # Else who asks sees whether anybody has a value.
    without_noise(monkeypatch)
    answers = []
    for values in (["a", None], [None, None]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        answers.append(
            pdrisk.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", eps=1, keys=["a"], t=frame)["n"].tolist()
        )
    assert answers == [[1], [0]]
