"""Functions, casts and conditions of SQL on every engine: row by row the values of DuckDB, of hostile values, too."""

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest

from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.nodes import Column
from pdrisk._relations.plan import Scan, Selection
from pdrisk._sql.relations.row_scope import Relation, Rows, column_of, named
from pdrisk._sql.tables.source import Source
from pdrisk._sql.text.parse import parsed
from pdrisk._tables.postgres_table import PostgresTable, one_connection
from pdrisk.engines.sql.compiler.relation import written
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_functions import DuckDBForSQL
from pdrisk.engines.sql.servers.duckdb_types import columns_for_sql, stored_columns
from pdrisk.engines.sql.servers.spark_engine import SparkFrame
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.summary_plan import Counted, SummaryPlan
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session

COLUMNS = {
    "k": "INTEGER", "small": "SMALLINT", "big": "BIGINT", "x": "DOUBLE", "y": "DOUBLE", "narrow": "FLOAT",
    "word": "VARCHAR", "flag": "BOOLEAN", "day": "DATE", "born": "TIMESTAMP",
}  # fmt: skip
OF_POSTGRES = {"DOUBLE": "double precision", "FLOAT": "real", "VARCHAR": "text"}
OF_SPARK = {"VARCHAR": "string", "TIMESTAMP": "timestamp_ntz", "INTEGER": "int"}
HUGE, TINY = 1.7976931348623157e308, 5e-324
NUMBERS = [
    None, 0, 1, -1, 2, 3, 7, -7, 100, 32767, -32768,
]  # fmt: skip
BIG = [None, 0, 1, -1, 10, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 7, 86400]
FLOATS = [
    None, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1.005, 12345.678, math.nan, math.inf, -math.inf,
    HUGE, -HUGE, TINY, 1e-310, 2.0**53 + 2, 710.0, -746.0, 1e16, 9.3e18, 99.995, 4.4765466227572695e61,
    1.704353198298791e280,
]  # fmt: skip
WORDS = [
    None, "", " ", "abc", "ABC", "a_c", "a%c", "añb", "ÄÖß", "o'west", "  x y ", "a-b-c", "12", " 12.5 ", "-7", "1e3",
    "2.5", "3.5", "-0.5", "1e400", "9" * 30, "0x10", "inf", "nan", "٣", "2020-01-31", "2020-1-5", "2020-02-30",
    "2020-02-29 23:59:59.5", "2019-02-29", "2020-13-01", "12\n", "2020-01-01\n", "2020-01-05T10:00:00",
    "2020-01-05 24:00:00", "true", "İ", "Σς", "-", "--", "x" * 40, "0099-03-04",
]  # fmt: skip
DAYS = [
    None,
    "1970-01-01",
    "1969-12-31",
    "2020-02-29",
    "2019-12-30",
    "2021-01-03",
    "0001-01-01",
    "9999-12-31",
    "2000-01-01",
]
TIMES = [
    None, "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2020-02-29 12:34:56.5", "0001-01-01 00:00:00",
    "9999-12-31 23:59:59", "2021-01-03 00:00:01", "2019-12-30 23:00:00",
]  # fmt: skip


def rows():
    """Each value of each column beside several of the others."""
    lists = {
        "small": NUMBERS, "big": BIG, "x": FLOATS, "y": FLOATS[::-1], "narrow": [None, 0.1, 0.5, -1.5, 3e38, math.nan],
        "word": WORDS, "flag": [None, True, False], "day": DAYS, "born": TIMES,
    }  # fmt: skip
    draw = np.random.default_rng(29)
    found = []
    for k in range(240):
        found.append(
            (k, *(own[k % len(own)] if k < 60 else own[draw.integers(len(own))] for own in lists.values()))
        )  # fmt: skip
    return found


def filled(run, types, many):
    run(f"CREATE TABLE people ({', '.join(f'{name} {types.get(kind, kind)}' for name, kind in COLUMNS.items())})")
    many(rows())


@pytest.fixture(scope="module")
def duck():
    con = duckdb.connect()
    filled(
        con.execute,
        {},
        lambda all_rows: con.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(COLUMNS))})", all_rows),
    )
    return con


def portable(duck):
    return SQLTable("people", stored_columns(COLUMNS), Dialect(), partial(fetched, duck))


@pytest.fixture(scope="module")
def postgres():
    with database() as url, connected(url) as con:

        def many(all_rows):
            con.cursor().executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(COLUMNS))})", all_rows)

        filled(con.execute, OF_POSTGRES, many)
        con.commit()
        with one_connection(con) as own:
            yield PostgresTable(name="people", connection=own).table()


@pytest.fixture(scope="module")
def spark():
    own = session()
    types = {name: OF_SPARK.get(kind, kind) for name, kind in COLUMNS.items()}
    texts = ", ".join(
        f"{name} {'string' if kind in ('DATE', 'timestamp_ntz') else kind}" for name, kind in types.items()
    )
    frame = own.createDataFrame(rows(), texts)
    yield SparkFrame(frame.selectExpr(*(f"CAST({name} AS {kind}) {name}" for name, kind in types.items()))).table()
    own.stop()


def own(duck):
    return SQLTable("people", columns_for_sql(COLUMNS, frozenset()), DuckDBForSQL(), partial(fetched, duck))


@pytest.fixture(
    params=[
        "portable",
        "own",
        pytest.param("postgres", marks=needs_server),
        pytest.param("spark", marks=[needs_spark, pytest.mark.slow]),
    ]
)
def table(request, duck):
    own_words = {"portable": portable, "own": own}
    return own_words[request.param](duck) if request.param in own_words else request.getfixturevalue(request.param)


def judged(text, duck):
    source = Source("people", COLUMNS, duck, Declarations(), is_table=True)
    relation = Relation(source, tuple((name, column_of(name, kind, source)) for name, kind in COLUMNS.items()), ())
    ((item, _),) = parsed(f"SELECT {text} FROM people").items
    return named(item, Rows(relation, {}))


FAR = re.compile(r"[0-9]{4,5}-[0-9]{2}-[0-9]{2}( \(BC\))?( [0-9:.]+)?")


def plain(value):
    """A value whatever type an engine has for it: NaN is none, times are microseconds, whole numbers are whole."""
    if value is None or value is pd.NaT:
        return None
    if isinstance(value, str):  # of times that Python has not, and that are missing where they are far away
        return None if FAR.fullmatch(value) else value
    if isinstance(value, Decimal):
        return plain(float(value))
    if hasattr(value, "year"):
        return int(np.datetime64(value, "us").astype(np.int64))
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if math.isfinite(value) and value == int(value) else value
    return int(value)


def values_of(table, nodes):
    """Values by row of each expression, read by as few statements as an engine takes."""
    columns = tuple((text, node) for text, node in nodes.items())
    source, own = written(Selection(Scan("people"), (("k", Column("k")), *columns)), {"people": table}, table.dialect)
    values = {text: own.column(text) for text in nodes}
    listed = [f"{own.column('k').sql} AS k"]
    for at, value in enumerate(values.values()):
        sql = f"CAST({value.sql} AS {table.dialect.text_type})" if value.is_wide else value.sql
        listed.append(f"{sql} AS found{at}")
    with table.reading(PLAN, None) as (fetch, _):
        found = fetch(f"SELECT {', '.join(listed)} FROM {source}", [])
    keys = np.ma.asarray(found["k"]).tolist()
    answers = {}
    for at, (text, value) in enumerate(values.items()):
        own_values = np.ma.asarray(found[f"found{at}"]).tolist()
        if value.is_wide:
            own_values = [None if each is None else int(each) for each in own_values]
        answers[text] = dict(zip(keys, map(plain, own_values), strict=True))
    return answers


PLAN = SummaryPlan("people", (), (), (), None, (Counted(None),))


def wanted(text, duck):
    value = judged(text, duck)
    sql = f"COALESCE(CAST({value.sql} AS HUGEINT), TRY_CAST({value.wide} AS HUGEINT))" if value.wide else value.sql
    found = duck.execute(f"SELECT k, {sql} FROM people").fetchall()
    return {k: plain(value) for k, value in found}


NUMERIC = [
    "small + 1",
    "small - big",
    "small * small",
    "-small",
    "big + 0",
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "small / 3",
    "small // 2",
    "small // small",
    "small % 3",
    "big % -7",
    "big // -1",
    "-7 % small",
    "abs(small)",
    "abs(x)",
    "abs(big)",
    "round(x)",
    "round(small)",
    "round(x, 2)",
    "round(x, 1)",
    "round(x, -2)",
    "floor(x)",
    "ceil(x)",
    "ceiling(x)",
    "trunc(x)",
    "trunc(x, 1)",
    "sign(x)",
    "sign(small)",
    "sqrt(x)",
    "sqrt(small)",
    "cbrt(small)",
    "exp(x)",
    "exp(small)",
    "ln(x)",
    "ln(small)",
    "log(small)",
    "log2(x)",
    "log10(small)",
    "sin(small)",
    "cos(x)",
    "tan(small)",
    "asin(y)",
    "acos(x)",
    "atan(x)",
    "degrees(small)",
    "radians(small)",
    "pi() * small",
    "pow(small, 2)",
    "small ** 3",
    "pow(x, 2)",
    "pow(x, 0.5)",
    "pow(small, 10)",
    "pow(x, 5)",
    "pow(x, 1.1)",
    "pow(x, 1.7)",
    "greatest(small, 3)",
    "least(small, big, 0)",
    "greatest(x, y)",
    "least(x, 1.5, y)",
    "CASE WHEN small > 0 THEN small ELSE x END",
    "CASE WHEN flag THEN 1 WHEN small > 3 THEN 2.5 END",
    "CASE WHEN flag THEN NULL ELSE big END",
    "COALESCE(x, small, 7)",
    "COALESCE(small, big)",
    "NULLIF(small, 7)",
    "CASE small WHEN 1 THEN 10 WHEN 7 THEN 20 ELSE 0 END",
    "if(x > 0, small, big)",
    "width_bucket(x, 0, 100, 10)",
    "narrow + 1",
    "abs(narrow)",
    "-narrow * 2",
    "round(narrow, 1)",
]
TEXTS = [
    "lower(word)",
    "upper(word)",
    "trim(word)",
    "ltrim(word)",
    "rtrim(word)",
    "length(word)",
    "strlen(word)",
    "left(word, 2)",
    "right(word, 2)",
    "left(word, 0)",
    "substring(word, 2, 3)",
    "substr(word, 3)",
    "substr(word, 1, 0)",
    "strpos(word, 'b')",
    "strpos(word, '')",
    "instr(word, '-')",
    "position('-' IN word)",
    "contains(word, 'b')",
    "contains(word, '')",
    "starts_with(word, 'a')",
    "prefix(word, '')",
    "ends_with(word, 'c')",
    "suffix(word, word)",
    "replace(word, 'a', 'x')",
    "replace(word, 'abc', '')",
    "lpad(word, 5, '*')",
    "rpad(word, 2, 'x')",
    "split_part(word, '-', 1)",
    "split_part(word, '-', 3)",
    "word || '!'",
    "word || small",
    "concat(word, small, '.')",
    "concat(word, word)",
    "word LIKE 'a%'",
    "word LIKE '_b_'",
    "word NOT LIKE '%b%'",
    "word ILIKE 'A%C'",
    "word LIKE 'a~%!' OR word LIKE '%%'",
    "word = 'abc'",
    "word < 'b'",
    "word >= lower(word)",
    "word IN ('abc', 'x')",
    "CASE WHEN flag THEN word ELSE 'none' END",
    "COALESCE(word, 'none')",
    "NULLIF(word, '')",
    "CASE WHEN length(word) > 3 THEN upper(word) END",
    "word || lower(word) = 'abcabc'",
]
CASTS = [
    "TRY_CAST(x AS INTEGER)",
    "TRY_CAST(x AS BIGINT)",
    "TRY_CAST(x AS SMALLINT)",
    "TRY_CAST(big AS INTEGER)",
    "TRY_CAST(big AS SMALLINT)",
    "TRY_CAST(small AS DOUBLE)",
    "CAST(flag AS INTEGER)",
    "CAST(flag AS DOUBLE)",
    "TRY_CAST(x AS DECIMAL(10, 2))",
    "TRY_CAST(x AS DECIMAL(5, 0))",
    "TRY_CAST(small AS DECIMAL(4, 1))",
    "CAST(small AS VARCHAR)",
    "CAST(big AS VARCHAR)",
    "CAST(born AS DATE)",
    "CAST(day AS TIMESTAMP)",
    "TRY_CAST(small AS BOOLEAN)",
    "TRY_CAST(x AS UTINYINT)",
    "TRY_CAST(big AS HUGEINT)",
    "TRY_CAST(TRY_CAST(small AS VARCHAR) AS INTEGER)",
    "TRY_CAST(word AS DOUBLE)",
    "TRY_CAST(word AS INTEGER)",
    "TRY_CAST(word AS BIGINT)",
    "TRY_CAST(word AS DATE)",
    "TRY_CAST(word AS TIMESTAMP)",
    "TRY_CAST(word AS DECIMAL(6, 1))",
]
TIMES_OF = [
    *(
        f"{unit}({of})"
        for of in ("day", "born")
        for unit in (
            "year",
            "quarter",
            "month",
            "week",
            "day",
            "dayofyear",
            "dayofweek",
            "isodow",
            "isoyear",
            "yearweek",
            "decade",
            "century",
            "weekday",
            "weekofyear",
            "dayofmonth",
            "epoch",
            "dayname",
            "monthname",
            "last_day",
        )
    ),
    "hour(born)",
    "minute(born)",
    "second(born)",
    "date_part('dow', born)",
    "EXTRACT(doy FROM day)",
    "EXTRACT(epoch FROM born)",
    *(
        f"date_trunc('{unit}', born)"
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    ),
    "date_trunc('month', day)",
    "day + 1",
    "day - 30",
    "3 + day",
    "day + small",
    "day - small",
    "day - DATE '2020-01-01'",
    "DATE '2020-01-01' - day",
    "day + INTERVAL 1 DAY",
    "born + INTERVAL 1 MONTH",
    "born - INTERVAL 13 MONTH",
    "day - INTERVAL '7000 years'",
    "born - INTERVAL '84000 months'",
    "day + INTERVAL '9000 years'",
    "day - DATE '0001-01-01'",
    "COALESCE(day, DATE '9999-12-31')",
    "CASE WHEN flag THEN day ELSE DATE '1000-01-01' END",
    "day < DATE '2020-01-01' + 5",
    "day = DATE '2020-02-28' + 1",
    "day IN (DATE '2020-02-28' + 1, DATE '1970-01-01')",
    "x > DATE '2020-02-29' - DATE '1970-01-01'",
    "small < DATE '2020-01-03' - DATE '2020-01-01'",
    "day - (DATE '2020-01-01' - DATE '2019-12-31')",
    "DATE '2020-01-01' + 1 > DATE '2020-01-01'",
    "day - INTERVAL '2 months 3 days'",
    "born + INTERVAL 90 MINUTE",
    "epoch(born - TIMESTAMP '2020-01-01 12:00:00')",
    "date_part('day', born - TIMESTAMP '2020-01-01 12:00:00')",
    "date_part('hour', TIMESTAMP '2020-01-01' - born)",
    "date_diff('day', born, TIMESTAMP '2020-06-01 12:00:00')",
    "date_diff('month', day, DATE '2020-06-01')",
    "date_diff('year', born, TIMESTAMP '2020-06-01')",
    "date_diff('quarter', day, DATE '2020-06-01')",
    "date_diff('hour', born, TIMESTAMP '2020-06-01 12:30:00')",
    "date_sub('day', born, TIMESTAMP '2020-06-01 12:00:00')",
    "date_sub('minute', born, TIMESTAMP '2020-06-01 12:00:00')",
    "strftime(day, '%Y-%m')",
    "strftime(born, '%d/%m/%Y %H:%M')",
    "make_date(2020, small, 1)",
    "make_date(small, 2, 29)",
    "day > born",
    "day = DATE '2020-02-29'",
    "day < '2020-01-01'",
    "born BETWEEN '1969-01-01' AND '2020-12-31'",
    "day IN ('2020-02-29', '1970-01-01')",
    "CASE WHEN flag THEN day END",
    "COALESCE(day, DATE '2000-01-01')",
    "CASE WHEN flag THEN day ELSE born END > '2000-01-01'",
]
CONDITIONS = [
    "x > y",
    "x = y",
    "x <> y",
    "NOT (x < y)",
    "small = x",
    "big > x",
    "big = 9007199254740993",
    "x BETWEEN y AND 3",
    "x IS DISTINCT FROM y",
    "small IS NOT DISTINCT FROM 7",
    "x IN (0.5, 1.5)",
    "x NOT IN (0.5, 1.5)",
    "small IN (1, big)",
    "flag",
    "NOT flag",
    "flag = true",
    "flag AND small > 0",
    "flag OR x > 1",
    "isnan(x)",
    "x IS NULL",
    "narrow = 0.1",
    "narrow > 0.1",
    "narrow = 0.5 OR x > 1e300",
    "narrow < x",
    "small > 1.5",
    "x = 0.1 + 0.4",
    "small = NULL",
    "small NOT IN (1, NULL)",
    "(x > 0) IS NULL",
    "x + 0 > y OR NOT (y * 2 > x)",
    "COALESCE(flag, false)",
    "CASE WHEN flag THEN small > 0 ELSE false END",
    "abs(x) > 1 AND round(x) = 2",
    "(flag OR small > 3) = true",
]
LOOSE = (
    "exp",
    "ln",
    "log",
    "sin",
    "cos",
    "tan",
    "pow",
    "cbrt",
    "**",
    "degrees",
    "radians",
    "pi",
    "decimal",
    "strftime",
)


BATCH = 12
# DuckDB before 2.0: logarithms of 0 are errors and so missing, round(inf, -2) is 0, and -0.5 is no UTINYINT.
OTHERWISE_BEFORE_2 = {
    "round(x, -2)", "ln(x)", "ln(small)", "log(small)", "log2(x)", "log10(small)", "TRY_CAST(x AS UTINYINT)",
}  # fmt: skip
EVERYTHING = [
    text
    for text in (*NUMERIC, *TEXTS, *CASTS, *TIMES_OF, *CONDITIONS)
    if duckdb.__version__ >= "2" or text not in OTHERWISE_BEFORE_2
]


@pytest.mark.whole
@pytest.mark.parametrize("texts", [EVERYTHING[at : at + BATCH] for at in range(0, len(EVERYTHING), BATCH)], ids=str)
def test_the_values_of_duckdb(duck, table, texts):
    own = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in rows()}
    found = values_of(table, {text: judged(text, duck).node for text in texts})
    different = [
        (text, value, right, {name: each for name, each in own[k].items() if name in text})
        for text in texts
        for k, right in wanted(text, duck).items()
        if not same(text, value := found[text][k], right)
    ]
    assert not different, different[:6]


#: What DuckDB alone is asked for.
OF_DUCKDB = [
    "isfinite(x)", "isinf(x)", "fmod(x, y)", "fmod(big, small)", "atan2(x, y)", "log(2, y)", "pow(x, y)",
    "pow(small, -1)", "big * big", "big * big > 5", "TRY_CAST(x AS FLOAT)",
    "TRY_CAST(word AS BOOLEAN)", "reverse(word)", "substr(word, -2)", "left(word, -1)", "right(word, small)",
    "split_part(word, '-', -1)", "regexp_matches(word, '[a-b]+')", "regexp_full_match(word, '[0-9]+')",
    "regexp_replace(word, 'a', 'x')", "regexp_extract(word, '([0-9]+)', 1)", "word LIKE '~!#$%&*+-/:;<=>?@^|'",
    "strftime(born, '%d.%-m.%y %H:%M')", "strftime(day, '%a %j')", "strptime(word, '%Y-%m-%d')",
    "time_bucket(INTERVAL '10 days', born)", "time_bucket(INTERVAL '1 month', day)", "make_date(small, 1, 2)",
    "date_diff('week', day, born)", "date_diff('month', DATE '2020-01-31', day)", "date_sub('month', day, born)",
    "date_sub('year', born, TIMESTAMP '2021-01-03 00:00:00')",
    "born - TIMESTAMP '2020-01-01 00:00:00' > INTERVAL 3 DAY",
    "day BETWEEN DATE '1970-01-01' AND DATE '2020-02-29'", "day <> DATE '1970-01-01'", "born < '2020-02-29 12:34:56.5'",
    "CASE WHEN flag THEN day END > DATE '1970-01-01'", "COALESCE(day, DATE '1960-01-01') < DATE '1970-01-01'",
]  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("text", OF_DUCKDB)
def test_the_own_words_of_duckdb(duck, text):
    found, right = values_of(own(duck), {text: judged(text, duck).node})[text], wanted(text, duck)
    different = {k: (found[k], each) for k, each in right.items() if not same(text, found[k], each)}
    assert not different and len(set(right.values())) > 1


def in_64_bits(value):
    """As docs/sql.md says: exact where 64 bits hold it, else as a float."""
    return value if -(2**63) <= value < 2**63 else float(value)


def remainder(value, divisor):
    """With the sign of the value, as int64 and floats have it."""
    return math.fmod(value, divisor) if isinstance(value, float) else value - divisor * int(Fraction(value, divisor))


BEYOND = {
    "big * 3": lambda big: in_64_bits(big * 3),
    "big + big": lambda big: in_64_bits(big + big),
    "-(big * 2)": lambda big: in_64_bits(-in_64_bits(2 * big)),
    "abs(big * 2)": lambda big: in_64_bits(abs(in_64_bits(2 * big))),
    "(big * 4) % 3": lambda big: remainder(in_64_bits(4 * big), 3),
    "TRY_CAST(big * 2 AS INTEGER)": lambda big: 2 * big if -(2**31) <= 2 * big < 2**31 else None,
    "CASE WHEN flag IS NULL THEN big * 2 ELSE big * 2 END": lambda big: in_64_bits(2 * big),
    "COALESCE(big * 2, 7)": lambda big: in_64_bits(2 * big),
    "greatest(big * 2, -5)": lambda big: in_64_bits(max(2 * big, -5)),
}


@pytest.mark.whole
@pytest.mark.parametrize("text", BEYOND)
def test_whole_numbers_are_exact_in_64_bits(duck, text):
    table = own(duck)
    value = RowSQL(table.columns, {}, (), table.dialect).fitting(judged(text, duck).node)
    sides = duck.execute(f"SELECT k, {value.sql}, {value.beyond or 'NULL'} FROM people").fetchall()
    found = {k: double if exact is None else exact for k, exact, double in sides}
    bigs = {row[0]: dict(zip(COLUMNS, row, strict=True))["big"] for row in rows()}
    assert {k: found[k] for k, big in bigs.items() if big is not None} == {
        k: BEYOND[text](big) for k, big in bigs.items() if big is not None
    }


WIDE = {"hu": "HUGEINT", "ub": "UBIGINT", "big": "BIGINT", "cents": "DECIMAL(20, 2)"}
OF_WIDE = {
    "ub = hu": lambda hu, ub, big, cents: ub == hu,
    "hu IN (3, ub)": lambda hu, ub, big, cents: hu in (3, ub),
    "hu <> 9007199254740993": lambda hu, ub, big, cents: hu != 2**53 + 1,
    "hu + 7 <= 0 - big": lambda hu, ub, big, cents: hu + 7 <= -big,
    "big = cents": lambda hu, ub, big, cents: big == cents,
    "cents = 9007199254740993": lambda hu, ub, big, cents: cents == 2**53 + 1,
    "CASE WHEN big > 0 THEN hu ELSE 2.5 END = ub": lambda hu, ub, big, cents: (hu if big > 0 else 2.5) == ub,
    "TRY_CAST(hu AS BIGINT) = big": lambda hu, ub, big, cents: hu == big if hu < 2**63 else None,
    "TRY_CAST(cents AS INTEGER)": lambda hu, ub, big, cents: round_half_away(cents) if abs(cents) < 2**31 else None,
    "CAST(2.5 AS INTEGER) + 0 * big": lambda hu, ub, big, cents: 3,  # of a decimal, half away from zero
    "TRY_CAST(TRY_CAST('-2.5' AS DECIMAL(6, 1)) AS BIGINT) + 0 * big": lambda hu, ub, big, cents: -3,
}
NUMBERS_OF_WIDE = [
    (2**63, 2**63, 1, Decimal("2.50")),
    (2**63 - 1, 2**63 - 1, 2**63 - 1, Decimal("-2.50")),
    (-(2**63), 3, -(2**63) + 1, Decimal("9007199254740993.00")),
    (2**53 + 1, 2**53 + 1, 2**53 + 1, Decimal("9007199254740993.00")),
    (2**100, 2**64 - 1, -5, Decimal("0.10")),
    (-9, 5, 2, Decimal("2.00")),
]  # fmt: skip


def round_half_away(value):
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


@pytest.mark.whole
@pytest.mark.parametrize("text", OF_WIDE)
def test_numbers_that_no_double_holds(text):
    """What is equal is found equal: neither side of a comparison is rounded alone."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people (k INTEGER, {', '.join(f'{name} {kind}' for name, kind in WIDE.items())})")
    con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", [(k, *each) for k, each in enumerate(NUMBERS_OF_WIDE)])
    types = {"k": "INTEGER", **{name: kind.replace(" ", "") for name, kind in WIDE.items()}}
    source = Source("people", types, con, Declarations(), is_table=True)
    relation = Relation(source, tuple((name, column_of(name, kind, source)) for name, kind in types.items()), ())
    ((item, _),) = parsed(f"SELECT {text} FROM people").items
    table = SQLTable("people", columns_for_sql(types, frozenset()), DuckDBForSQL(), partial(fetched, con))
    found = values_of(table, {text: named(item, Rows(relation, {})).node})[text]
    assert found == {k: OF_WIDE[text](*each) for k, each in enumerate(NUMBERS_OF_WIDE)}


def same(text, value, right):
    """Whether two values are equal; functions of a library's own may differ in the last digit."""
    if value == right:
        return True
    # Beyond 64 bits a whole number is a DOUBLE on DuckDB.
    is_loose = any(word in text for word in LOOSE) or text in ("small - big", "big // -1", "abs(big)")
    both_are_numbers = not any(each is None or isinstance(each, str) for each in (value, right))
    return is_loose and both_are_numbers and math.isclose(value, right, rel_tol=1e-14)
