"""SELECTs of tables that another engine than DuckDB has: the answers of DuckDB, in that engine's dialect, or none."""

import datetime
import math
import sys
import time
import traceback
from functools import partial
from types import MappingProxyType

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pdrisk
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._sql import answered
from pdrisk._sql.expressions.number_patterns import number_by_pattern
from pdrisk._sql.select.select_people import PeopleAsked
from pdrisk._sql.syntax.languages import POSTGRES, SPARK
from pdrisk._sql.syntax.pieces import Expression
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.text.scalars import Scalars
from pdrisk._sql.text.sqlglot_parse import parsed_as
from pdrisk._tables import postgres_table as postgres
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ColumnTypeError, ParameterError, PdriskError, UnknownColumnError
from postgres_databases import connected, database, needs_server

LARGE = 2**53
COLUMNS = {
    "pid": "BIGINT", "age": "INTEGER", "big": "BIGINT", "income": "DOUBLE", "hours": "FLOAT", "region": "VARCHAR",
    "works": "BOOLEAN", "day": "DATE", "born": "TIMESTAMP", "seen": "TIMESTAMP WITH TIME ZONE", "blob": "BLOB",
}  # fmt: skip
NANS = ("income", "hours")
OF_POSTGRES = {"DOUBLE": "double precision", "FLOAT": "real", "VARCHAR": "text", "BLOB": "bytea"}
NAN = float("nan")
EDGES = [
    (1, 0, LARGE + 1, 1.5, 0.5, "north", True, "2020-01-31", "2020-01-31 00:00:00"),
    (2, -5, -LARGE - 1, -0.0, 0.1, "South", False, "2019-12-31", "2020-01-31 23:59:59.999999"),
    (3, 40, 2**63 - 1, NAN, None, "o'west", None, None, None),
    (4, 41, -(2**63), math.inf, 40.0, "", True, "0001-01-01", "1600-02-29 12:00:00"),
    (5, 40, 0, -math.inf, -1.0, None, False, "9999-12-31", "9999-12-31 23:59:59"),
    (6, None, None, None, None, "ä", True, "2020-02-01", None),
    (None, 32767, 7, 0.1, NAN, "a ", None, None, "1970-01-01 00:00:00"),
    (8, -32768, LARGE, 1e-310, 3e38, "a\\b", False, "1969-12-31", "1969-12-31 23:59:59.5"),
]
ROWS = [
    *((*edge, None, None) for edge in EDGES),
    *(
        (i % 40, i * 7 % 90, i * 31, i * 13 % 1000 / 10, i % 60 / 2, ("north", "South", None)[i % 3], i % 2 == 0,
         f"2020-0{i % 9 + 1}-15", f"2020-0{i % 9 + 1}-15 12:00:00", None, None)
        for i in range(10, 210)
    ),
]  # fmt: skip
BOUNDS = {"age": (0, 100), "income": (0, 100), "big": (0, 7000), "hours": (0, 60)}
KEYS = {"region": ["north", "South", "", None], "works": [True, False]}
DRAWN = ("_low", "_high", "_clip_low", "_clip_high")


def filled(run, types):
    run(f"CREATE TABLE people ({', '.join(f'{name} {types.get(kind, kind)}' for name, kind in COLUMNS.items())})")


@pytest.fixture(scope="module")
def duck():
    con = duckdb.connect()
    filled(con.execute, {})
    con.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(COLUMNS))})", ROWS)
    return con


class Elsewhere:
    """Tables as those of another engine, whose SQL is portable words; and the statements that it was sent."""

    def __init__(self, con, language, tables=MappingProxyType({"people": COLUMNS})):
        self.sent, self.language = [], language
        self.tables = {
            (name,): SQLTable(name, stored_columns(columns), Dialect(), partial(self.fetched, con))
            for name, columns in tables.items()
        }

    def fetched(self, con, sql, values):
        self.sent.append(sql)
        return fetched(con, sql, values)

    def found(self, path):
        if path not in self.tables:
            raise ParameterError(f"no table {path}")
        return self.tables[path]

    def sql(
        self, query, *, eps=1, bounds=BOUNDS, keys=None, mechanism="auto", curator=True, schema=None, params=None,
        delta=None, risk_columns=True, public=(), ledger=None, **people,
    ):  # fmt: skip
        sources = SourcesElsewhere(None, {}, schema, public=frozenset(public), language=self.language, found=self.found)
        return answered(
            query, sources, eps=eps, success=None, bounds=bounds, keys=keys, ledger=ledger, fresh=False, delta=delta,
            least_group=None, params=params, mechanism=mechanism, interval=False, clip=None, curator=curator,
            risk_columns=risk_columns, people=PeopleAsked(**people),
        )  # fmt: skip


@pytest.fixture(scope="module")
def postgres_server(duck):
    with database() as url, connected(url) as con:
        filled(con.execute, OF_POSTGRES)
        con.cursor().executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(COLUMNS))})", ROWS)
        con.execute('CREATE SCHEMA other; CREATE TABLE other."People" AS SELECT * FROM people LIMIT 50')
        con.commit()
        yield con


class Server:
    language = POSTGRES

    def __init__(self, con):
        self.con = con

    def sql(self, query, *, eps=1, bounds=BOUNDS, curator=True, risk_columns=True, **options):
        return pdrisk.sql(
            query, self.con, eps=eps, bounds=bounds, curator=curator, risk_columns=risk_columns, **options
        )


@pytest.fixture(scope="module", params=["portable", "Spark's", pytest.param("PostgreSQL", marks=needs_server)])
def other(request, duck):
    if request.param == "PostgreSQL":
        return Server(request.getfixturevalue("postgres_server"))
    return Elsewhere(duck, {"portable": POSTGRES, "Spark's": SPARK}[request.param])


SAME = {
    "SELECT COUNT(*) FROM people": {},
    "SELECT COUNT(*) FROM people WHERE income = 0.3 - 0.2 OR income BETWEEN 30.07 - 0.57 AND 10 * 4.1 + 0.01": {},
    "SELECT AVG(income) FROM people WHERE age > 90 * (1 - 0.9) AND income IN (0.3 - 0.2, -(0.1 - 1.4), 3 * 1.3)": {},
    "SELECT count(*) AS n, COUNT(income), count(region), count(seen) FROM people AS p": {},
    "SELECT AVG(p.income) AS m FROM people p WHERE p.age BETWEEN 10 AND 60;": {},
    "SELECT SUM(age), MIN(income), MAX(income) FROM people -- and no more": {},
    "SELECT STDDEV(income), VARIANCE(age), STDDEV_POP(income) FROM people": {},
    "SELECT VAR_POP(big), STDDEV_SAMP(hours), VAR_SAMP(age) AS v FROM people": {},
    "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) FROM people": {},
    "SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age DESC) AS q FROM people": {},
    "SELECT CORR(age, income), COVAR_POP(age, income), REGR_SLOPE(income, age) FROM people": {},
    "SELECT COUNT(DISTINCT region), COUNT(DISTINCT income) FROM people": {},
    "SELECT SUM(DISTINCT age) FROM people": {},
    "SELECT AVG(income), SUM(big) FROM people": {"mechanism": "laplace"},
    "WITH p AS (SELECT income AS i, works FROM people WHERE age > 3) SELECT AVG(i) AS m FROM (SELECT * FROM p "
    "WHERE i < 50.5) AS q WHERE works": {"bounds": {"i": (0, 60)}},
    "SELECT dp_mean(income, eps := 0.5, lo := 1, hi := 50) AS m, dp_count(*) AS n FROM people": {},
    "SELECT dp_sum(age * 2 + 1, lo := 0, hi := 300) AS s FROM people": {},
    "SELECT AVG(works), AVG(CASE WHEN age > 30 THEN 1 ELSE 0 END) AS share FROM people": {},
    "SELECT dp_mean(CASE WHEN works THEN income WHEN age < 3 THEN NULL END, lo := 0, hi := 9) AS x FROM people": {},
    "SELECT dp_sum(COALESCE(income, age, 7), lo := 0, hi := 99) AS x FROM people": {},
    "SELECT dp_sum(NULLIF(age, 40) - 2.5, lo := 0, hi := 99) AS x FROM people": {},
    "SELECT dp_mean(income / 4.0, lo := 0, hi := 25) AS x FROM people": {},
    "SELECT COUNT(NULLIF(age, 40)) FROM people": {},
    "SELECT COUNT(*) FILTER (WHERE works), AVG(income) FILTER (WHERE NOT works AND age > 5) FROM people": {},
    "SELECT region, works, COUNT(*) AS n FROM people GROUP BY region, works": {"keys": KEYS},
    "SELECT region AS r, AVG(income) AS m FROM people GROUP BY 1 ORDER BY r DESC": {"keys": ["South", "north", ""]},
    "SELECT works, COUNT(*) FROM people GROUP BY works ORDER BY works": {},
    "SELECT age, COUNT(*) AS n FROM people WHERE age IN (40, 41) GROUP BY age": {},
    "SELECT day, COUNT(*) FROM people WHERE day IN ('2020-01-15', '2020-02-15') GROUP BY day": {},
    "SELECT hours, COUNT(*) FROM people GROUP BY hours": {"keys": [0.5, 1, -1.0, None]},
    "SELECT income, COUNT(*) FROM people GROUP BY income": {"keys": [0, 0.5, math.inf, None]},
    "SELECT region, AVG(income) FROM people WHERE age > 3 GROUP BY region": {"keys": "observed"},
    "SELECT CASE WHEN age < 30 THEN 'young' WHEN age >= 60 THEN 'Old' WHEN income > 5 THEN NULL ELSE '' END AS band, "
    "COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY band ORDER BY band NULLS LAST": {},
    "SELECT CASE WHEN works THEN 1 WHEN age > 40 THEN 2.5 WHEN age > 20 THEN -1 WHEN age < 0 THEN 1.0 END AS c, "
    "COUNT(*) AS n FROM people GROUP BY 1": {"keys": [2.5, 1, -1, 7, None]},
    "SELECT age > 40 AS old, works, COUNT(*) AS n FROM people GROUP BY old, works": {"keys": {"works": [True, None]}},
    "SELECT age > 40 OR works, COUNT(*) AS n FROM people GROUP BY age > 40 OR works": {"keys": [False, None]},
    "SELECT CASE WHEN age > 40 THEN true WHEN works THEN false END AS c, region, COUNT(*) AS n FROM people "
    "GROUP BY 1, 2": {"keys": {"region": ["north", "nowhere"]}},
    "SELECT CASE region WHEN 'north' THEN 0 WHEN 'South' THEN 1 ELSE 2 END AS r, COUNT(DISTINCT pid) AS n FROM people "
    "GROUP BY r HAVING COUNT(DISTINCT pid) > -9": {"person": "pid", "groups": 1},
    "SELECT COUNT(*) FROM people WHERE EXTRACT(YEAR FROM day) = 2020 AND EXTRACT(MONTH FROM born) IN (1, 12)": {},
    "SELECT COUNT(*) FROM people WHERE date_trunc('quarter', born) <= '2020-04-01' OR EXTRACT(doy FROM day) > 200": {},
    "SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n, AVG(income) FROM people GROUP BY m": {},
    "SELECT EXTRACT(WEEK FROM born) AS w, EXTRACT(HOUR FROM born) AS h, COUNT(*) AS n FROM people GROUP BY w, h":
        {"keys": {"w": [1, 5, 52], "h": [0, 12, 23]}},
    "SELECT date_trunc('month', born) AS m, COUNT(*) AS n FROM people GROUP BY m":
        {"keys": list(pd.date_range("2020-01-01", periods=4, freq="MS"))},
    "SELECT dp_mean(EXTRACT(YEAR FROM day), lo := 1900, hi := 2100) AS y FROM people": {},
    "SELECT EXTRACT(YEAR FROM date_trunc('year', day)) AS y, COUNT(*) AS n FROM people GROUP BY y":
        {"keys": [1, 2020, 9999]},
    "SELECT age + 1 AS a, COUNT(*) AS n FROM people GROUP BY a": {"keys": [41, 42, 0]},
    "SELECT COUNT(*), AVG(income) FROM people": {"person": "pid", "rows": 9},
    "SELECT COUNT(DISTINCT pid), AVG(income) FROM people WHERE age > 10": {"person": "pid", "per_person": "mean"},
    "SELECT region, SUM(age) FROM people GROUP BY region":
        {"person": "pid", "per_person": "sum", "groups": 2, "keys": ["north", "South"]},
}  # fmt: skip


def not_drawn(answer):
    """The columns that hold no noise."""
    own = {name.removesuffix("_n") for name in answer.columns if name.endswith("_n") and f"{name[:-2]}_eps" in answer}
    return answer[[name for name in answer.columns if not name.endswith(DRAWN) and name not in own]]


@pytest.mark.parametrize("query", SAME)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_same_numbers_as_on_duckdb(duck, other, query):
    options = {"bounds": BOUNDS, "eps": 1, "curator": True, "risk_columns": True, **SAME[query]}
    if isinstance(other, Elsewhere) and other.language is SPARK:
        query = query.replace(":=", "=>")
    wanted = pdrisk.sql(query.replace("=>", ":="), duck, **options)
    found = other.sql(query, **options)
    assert list(found.columns) == list(wanted.columns)
    pd.testing.assert_frame_equal(not_drawn(found), not_drawn(wanted), rtol=1e-12)


def test_what_is_computed_of_noisy_values(duck, other):
    """SELECTs over groups, HAVING, ORDER BY and LIMIT stay in DuckDB: of huge eps they are the exact answers."""
    exact = {"eps": 1e6, "bounds": BOUNDS, "keys": ["north", "South"]}
    query = (
        "WITH g AS (SELECT region, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY region HAVING COUNT(*) > 2) "
        "SELECT region, ROUND(ABS(m), 1) AS m, n / 2.0 AS half, CASE WHEN n > 1 THEN GREATEST(n, 0) END AS n FROM g "
        "WHERE region <> 'none' ORDER BY region DESC LIMIT 1"
    )
    wanted = pdrisk.sql(query, duck, **exact)
    found = other.sql(query, curator=False, risk_columns=False, **exact)
    assert wanted.shape == (1, 4)
    pd.testing.assert_frame_equal(found, wanted, atol=0.05)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, COUNT(*) AS n FROM people WHERE age > 3 GROUP BY region",
        "SELECT day, works, AVG(income) AS m FROM people GROUP BY day, works",
        "SELECT CASE WHEN age < 30 THEN 'b' WHEN age < 60 THEN 'a' WHEN age < 61 THEN 'c' END AS band, works, "
        "COUNT(*) AS n FROM people GROUP BY band, works",
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_private_keys(duck, other, query):
    """Of a large eps each group of two is shown, and hardly one of one."""
    private = {"eps": 2000, "bounds": BOUNDS, "keys": "private", "delta": 1e-9, "mechanism": "laplace"}
    wanted = pdrisk.sql(query, duck, curator=True, **private)
    assert len(wanted) > 1
    pd.testing.assert_frame_equal(not_drawn(other.sql(query, **private)), not_drawn(wanted), rtol=1e-12)


NUMBERS = st.sampled_from(["0", "-5", "40", "40.5", "1.5", "0.25", "1e3", "32767", "-0.0", "9007199254740993"])
WHOLE, FLOATS = st.sampled_from(["age", "age * 2 + 1", "-age", "big"]), st.sampled_from(["income", "income + 1.5"])
TEXTS = st.sampled_from(["'north'", "'o''west'", "''", "'a '", "'ä'", "'N'"])
DAYS = st.sampled_from(["'2020-01-31'", "DATE '1969-12-31'", "'9999-12-31'", "'2020-06-15'"])
TIMES = st.sampled_from(["'2020-01-31 23:59:59.999999'", "TIMESTAMP '2020-03-15 12:00:00'", "'2020-02-01'"])
WORDS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "!="])


def compared(columns, values):
    listed = st.lists(values, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("{} {} {}".format, columns, WORDS, values),
        st.builds("{} {} {}".format, values, WORDS, columns),
        st.builds("{} {} ({})".format, columns, st.sampled_from(["IN", "NOT IN"]), listed),
        st.builds("{} {} {} AND {}".format, columns, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), values, values),
        st.builds("{} IS {}".format, columns, st.sampled_from(["NULL", "NOT NULL"])),
    )


CONDITIONS = st.recursive(
    st.one_of(
        compared(WHOLE, NUMBERS), compared(FLOATS, NUMBERS), compared(st.just("region"), TEXTS),
        compared(st.just("day"), DAYS), compared(st.just("born"), TIMES),
        compared(st.just("hours"), st.sampled_from(["0.5", "40", "-1.0"])),
        st.builds("{} {} {}".format, WHOLE, WORDS, FLOATS), st.builds("{} {} {}".format, FLOATS, WORDS, WHOLE),
        st.just("works"), st.just("works = true"), st.just("income = income"), st.just("day < born"),
        st.just("COALESCE(age, 41) > 40"), st.just("CASE WHEN works THEN age ELSE 1 END > 0"),
    ),
    lambda inner: st.one_of(
        inner.map("NOT ({})".format), st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
    ),
    max_leaves=5,
)  # fmt: skip


def native(other, duck, sql):
    con = other.con if isinstance(other, Server) else duck
    return con.execute(sql).fetchone()[0]


@given(condition=CONDITIONS)
@settings(deadline=None)
def test_where_means_what_it_means_to_the_engine(duck, other, condition):
    """Three-valued logic and dates: as many records as the engine itself counts for the same text, of NULL for NaN."""
    if other.language is SPARK:  # whose TIMESTAMP has a zone, and which joins two texts side by side
        condition = condition.replace("TIMESTAMP '", "'").replace("o''west", "north")
    floats = ", ".join(f"CASE WHEN {name} <= CAST('infinity' AS FLOAT8) THEN {name} END AS {name}" for name in NANS)
    people = f"SELECT {', '.join(name for name in COLUMNS if name not in NANS)}, {floats} FROM people"
    where = f"FROM ({people}) AS people WHERE {condition}"
    wanted = native(other, duck, f"SELECT COUNT(*) {where}")
    assert other.sql(f"SELECT COUNT(*) AS c FROM people WHERE {condition}")["c_n"].item() == wanted
    filtered = other.sql(f"SELECT COUNT(income) FILTER (WHERE {condition}) AS c FROM people")
    finite = f"SELECT COUNT(*) {where.replace('WHERE ', 'WHERE (')}) AND income <= CAST('infinity' AS FLOAT8)"
    assert filtered["c_n"].item() == native(other, duck, finite)


REFUSED = [
    # No SELECT, or several.
    "", ";", "DROP TABLE people", "SELECT COUNT(*) FROM people; DROP TABLE people", "DELETE FROM people RETURNING pid",
    "UPDATE people SET age = 0", "INSERT INTO people SELECT * FROM people", "TRUNCATE people", "VACUUM", "LISTEN x",
    "COPY people TO '/tmp/x'", "COPY (SELECT 1) TO PROGRAM 'sh'", "SET search_path = x", "EXPLAIN SELECT 1", "DO $$x$$",
    "CALL f()", "BEGIN", "TABLE people", "VALUES (1)", "CREATE TABLE x AS SELECT COUNT(*) FROM people", "GRANT ALL",
    "SELECT COUNT(*) INTO x FROM people", "SELECT COUNT(*) FROM people FOR UPDATE", "SELECT 1", "SELECT COUNT(*)",
    "WITH d AS (DELETE FROM people RETURNING pid) SELECT COUNT(*) FROM d", "SELECT COUNT(*) FROM people; --",
    "SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM people", "SELECT COUNT(*) /* FROM people",
    "SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people", "SELECT COUNT(*) FROM people UNION ALL SELECT 1, 2",
    "SELECT COUNT(*) FROM people UNION ALL SELECT 1 UNION SELECT pg_sleep(9)", "SELECT 1 EXCEPT ALL SELECT 1",
    "SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people) AS p",
    # Functions and operators.
    "SELECT pg_sleep(9) FROM people", "SELECT COUNT(*) FROM people WHERE pg_sleep(1) IS NULL",
    "SELECT COUNT(*), version() FROM people", "SELECT COUNT(*) FROM people WHERE random() > 0.5",
    "SELECT COUNT(*) FROM people WHERE current_setting('x') = 'y'", "SELECT COUNT(*) FROM people WHERE day < now()",
    "SELECT COUNT(*) FROM people WHERE day < CURRENT_DATE", "SELECT COUNT(*) FROM people WHERE nextval('s') > 0",
    "SELECT pg_catalog.count(*) FROM people", "SELECT COUNT(*) FROM people WHERE age OPERATOR(evil.>) 3",
    "SELECT COUNT(*) FROM people WHERE region ~ 'n'",
    "SELECT COUNT(*) FROM people WHERE region SIMILAR TO 'n'",
    "SELECT COUNT(*) FROM people WHERE region COLLATE \"de_DE\" < 'n'", "SELECT string_agg(region, ',') FROM people",
    "SELECT COUNT(*) FROM people WHERE EXTRACT(second FROM born) = 5", "SELECT array_agg(region) FROM people",
    "SELECT date_trunc('decade', born) FROM people",
    "SELECT COUNT(*) FROM people WHERE EXTRACT(year FROM seen) = 2020",
    "SELECT COUNT(*) FROM people WHERE age = ANY(ARRAY[1, 2])", "SELECT mode() WITHIN GROUP (ORDER BY age) FROM people",
    "SELECT AVG(income / age) FROM people", "SELECT AVG(income) OVER () FROM people",
    "SELECT ROW_NUMBER() OVER (ORDER BY age) FROM people",
    "SELECT SUM(COUNT(*)) OVER w FROM people WINDOW w AS ()", "SELECT FIRST_VALUE(age) OVER () FROM people",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY 1 GROUPS 1 PRECEDING) FROM people",
    "SELECT SUM(COUNT(*)) OVER (ROWS -1 PRECEDING) FROM people",
    "SELECT SUM(COUNT(*)) OVER (ORDER BY 1 ROWS 1 PRECEDING EXCLUDE TIES) FROM people",
    "SELECT LAG(COUNT(*)) IGNORE NULLS OVER (ORDER BY 1) FROM people", "SELECT NTILE(age) OVER () FROM people",
    # Casts and literals.
    "SELECT 'people'::regclass, COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE region = $$north$$",
    "SELECT COUNT(*) FROM people WHERE region = E'n\\x6f'", "SELECT COUNT(*) FROM people WHERE region = 'a\\b'",
    "SELECT COUNT(*) FROM people WHERE region = U&'\\0061'", "SELECT COUNT(*) FROM people WHERE region = N'a'",
    "SELECT COUNT(*) FROM people WHERE age = B'1'", "SELECT COUNT(*) FROM people WHERE age = $1",
    "SELECT COUNT(*) FROM people WHERE age = :x", "SELECT COUNT(*) FROM people WHERE age = ?",
    "SELECT COUNT(*) FROM people LIMIT ?", "SELECT COUNT(*) FROM people WHERE age = @x",
    "SELECT COUNT(*) FROM people WHERE day > DATE 'yesterday'", "SELECT COUNT(*) FROM people WHERE day > 'now'",
    "SELECT COUNT(*) FROM people WHERE born > TIMESTAMPTZ '2020-01-01 00:00:00+01'",
    "SELECT COUNT(*) FROM people WHERE seen > '2020-01-01'",
    "SELECT COUNT(blob) FROM people",
    "SELECT COUNT(*) FROM people WHERE age = '4x'", "SELECT COUNT(*) FROM people WHERE region = 4",
    # FROM.
    "SELECT COUNT(*) FROM nobody", "SELECT COUNT(*) FROM people, people AS p", "SELECT COUNT(*) FROM pg_sleep(9)",
    "SELECT COUNT(*) FROM people JOIN people AS p USING (pid)", "SELECT COUNT(*) FROM LATERAL (SELECT 1) AS x",
    "SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (50)", "SELECT COUNT(*) FROM ONLY people",
    "SELECT COUNT(*) FROM generate_series(1, 9)",
    "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 5) AS p", "SELECT COUNT(*) FROM unnest(ARRAY[1]) AS x",
    "SELECT COUNT(*) FROM ROWS FROM (f()) AS x", "SELECT COUNT(*) FROM people p CROSS JOIN LATERAL unnest(ARRAY[1])",
    "SELECT COUNT(*) FROM people WHERE pid IN (SELECT pid FROM people)", "SELECT COUNT(*) FROM 'people'",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM people)", "SELECT (SELECT age FROM people)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(age) - age FROM people)", "SELECT COUNT(*) FROM (people)",
    "SELECT COUNT(*) FROM people p WHERE age > (SELECT AVG(q.age) FROM people q WHERE q.pid = p.pid)",
    "SELECT COUNT(*) FROM people WHERE age > ALL (SELECT AVG(age) FROM people)", "SELECT ARRAY(SELECT 1) FROM people",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age), 1 FROM people)", "SELECT (SELECT 1, 2) FROM people",
    "SELECT COUNT(*) FROM people NATURAL JOIN people AS p", "SELECT COUNT(*) FROM people p FULL JOIN people q ON true",
    # SELECT and GROUP BY.
    "SELECT * FROM people", "SELECT age FROM people", "SELECT DISTINCT age FROM people", "SELECT p.* FROM people AS p",
    "SELECT DISTINCT ON (age) age, COUNT(*) FROM people GROUP BY age", "SELECT nothing, COUNT(*) FROM people",
    "SELECT age, COUNT(*) FROM people GROUP BY ROLLUP (age)", "SELECT COUNT(*) FROM people GROUP BY ALL",
    "SELECT COUNT(*) FROM people GROUP BY works WITH ROLLUP", "SELECT age, COUNT(*) FROM people GROUP BY CUBE (works)",
    f"SELECT COUNT(*) FROM people GROUP BY CUBE ({', '.join(f'age + {at}' for at in range(30))})",
    "SELECT age + 3, COUNT(*) FROM people GROUP BY age + 3", "SELECT COUNT(*) FROM people GROUP BY DISTINCT works",
    "SELECT COUNT(*) FROM people GROUP BY CASE WHEN works THEN age ELSE 0 END",
    "SELECT COUNT(*) FROM people GROUP BY COALESCE(region, 'none')",
    "SELECT COUNT(*) FROM people FETCH FIRST 1 ROWS ONLY", "SELECT COUNT(*) FROM people LIMIT (SELECT 1)",
    "SELECT COUNT(*) FROM people WINDOW w AS ()", "SELECT COUNT(*) FROM people ORDER BY age",
    "SELECT dp_mean(income, eps := (SELECT 1)) FROM people", "SELECT pdrisk(income) FROM people",
    "SELECT /*+ BROADCAST(people) */ AVG(region) FROM people",
]  # fmt: skip


@pytest.mark.parametrize("language", [POSTGRES, SPARK], ids=lambda each: each.name)
@pytest.mark.whole
def test_nothing_else_reaches_the_engine(duck, language):
    other = Elsewhere(duck, language)
    for query in REFUSED:
        with pytest.raises(PdriskError) as caught:
            other.sql(query)
        assert isinstance(caught.value, ParameterError | ColumnTypeError | UnknownColumnError), query
    assert not other.sent


@pytest.mark.parametrize(
    ("language", "query"),
    [
        (POSTGRES, "SELECT SUM(age) / COUNT(*) FROM people"),
        (POSTGRES, "SELECT dp_sum(age / 2, lo := 0, hi := 9) FROM people"),
        (SPARK, 'SELECT COUNT(*) FROM people WHERE region = "north"'),
        (SPARK, "SELECT COUNT(*) FROM people WHERE region = 'it\\'s'"),
        (SPARK, "SELECT /*+ COALESCE(1) */ COUNT(*) FROM people"),
        (SPARK, "SELECT age DIV 2, COUNT(*) FROM people GROUP BY 1"),
        (SPARK, "SELECT COUNT(*) FROM people VERSION AS OF 1"),
        (SPARK, "SELECT COUNT(*) FROM parquet.`/etc/passwd`"),
        (SPARK, "SELECT COUNT(age, income) FROM people"),
        (SPARK, "SELECT COUNT(*) FROM people WHERE CAST(region AS INT) = 3"),  # it drops the fraction of a text
        (SPARK, "SELECT COUNT(*) FROM people WHERE EXTRACT(dow FROM born) = 5"),  # 1 to 7 there
        (POSTGRES, "SELECT COUNT(*) FROM people WHERE EXTRACT(second FROM born) = 5"),  # with a fraction there
        (POSTGRES, "SELECT COUNT(*) FROM people WHERE region LIKE '50\\%'"),
    ],
)
def test_words_that_mean_something_else_there(duck, language, query):
    other = Elsewhere(duck, language)
    with pytest.raises(ParameterError):
        other.sql(query)
    assert not other.sent


class TestDialects:
    """Where dialects differ, the tree says which meaning it is."""

    @pytest.mark.parametrize(("language", "least"), [(POSTGRES, 2.5), (SPARK, 3.0)])
    def test_casts_to_whole_numbers(self, duck, language, least):
        """PostgreSQL rounds, halves of floats to the even one; Spark drops the fraction."""
        found = Elsewhere(duck, language).sql("SELECT COUNT(*) AS c FROM people WHERE CAST(income AS INT) = 3")
        below = "income < 3.5" if language is POSTGRES else "income < 4"
        above = f"income {'>' if language is POSTGRES else '>='} {least}"
        assert found["c_n"].item() == native(
            Elsewhere(duck, language), duck, f"SELECT COUNT(*) FROM people WHERE {above} AND {below}"
        )

    @pytest.mark.parametrize(
        ("language", "words"),
        [
            (POSTGRES, ["ASC NULLS LAST", "DESC NULLS FIRST", "ASC NULLS FIRST"]),  # PostgreSQL 17, section 7.5
            (SPARK, ["ASC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS FIRST"]),  # Spark 4, ORDER BY clause
        ],
        ids=["PostgreSQL", "Spark"],
    )
    def test_where_null_stands(self, language, words):
        read = parsed_as("SELECT COUNT(*) FROM t ORDER BY a, b DESC, c NULLS FIRST", language)
        assert [each.how for each in read.order] == words

    def test_names_of_tables(self):
        for language, path in ((POSTGRES, ("other", "people")), (SPARK, ("Other", "People"))):
            assert parsed_as("SELECT COUNT(*) FROM Other.People", language).source.path == path
        assert parsed_as('SELECT COUNT(*) FROM other."People"', POSTGRES).source.path == ("other", "People")

    @pytest.mark.parametrize("ends", ["DATE '2020-01-02', day", "born, day"])
    def test_whole_days_of_spark(self, duck, ends):
        """DATEDIFF(DAY, a, b), which counts whole days like DuckDB's date_sub."""
        other = Elsewhere(duck, SPARK)
        query = f"SELECT COUNT(*) AS n FROM people WHERE DATEDIFF(DAY, {ends}) BETWEEN 0 AND 40"
        exact = duck.cursor().execute(query.replace("DATEDIFF(DAY", "date_sub('day'")).fetchall()
        assert [(round(each),) for each in other.sql(query, eps=1e9)["n"]] == exact
        with pytest.raises(ParameterError, match="datediff of microseconds"):
            other.sql(query.replace("DAY", "MICROSECOND"))

    @pytest.mark.parametrize("unit", ["YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE"])
    def test_whole_units_of_spark(self, unit):
        """As `java.time.LocalDateTime.until` counts them, also from the ends of months, backwards and within a day."""
        draw = np.random.default_rng(len(unit))
        days = pd.to_datetime("2019-01-26") + pd.to_timedelta(draw.integers(0, 900, 400), unit="D")
        times = pd.DataFrame({"a": days, "b": days[draw.permutation(400)]})
        hours = draw.integers(0, 24, (400, 2)) * draw.integers(0, 2, (400, 2))
        times += pd.DataFrame(hours, columns=["a", "b"]).apply(pd.to_timedelta, unit="h")
        times.loc[::7, "a"] = times["a"].dt.normalize() + pd.offsets.MonthEnd(0)
        exact = [whole_units(unit, *each) for each in times.itertuples(index=False)]
        con = duckdb.connect()
        con.register("times", times)
        con.execute("CREATE TABLE t AS SELECT CAST(a AS TIMESTAMP) AS a, CAST(b AS TIMESTAMP) AS b FROM times")
        other = Elsewhere(con, SPARK, {"t": {"a": "TIMESTAMP", "b": "TIMESTAMP"}})
        for name in ("DATEDIFF", "TIMESTAMPDIFF"):
            for most in (-3, 0, 2, 15):
                query = f"SELECT COUNT(*) AS n FROM t WHERE {name}({unit}, a, b) <= {most}"
                assert round(other.sql(query, eps=1e9)["n"].item()) == sum(each <= most for each in exact)

    def test_spark_names_of_aggregates(self, duck):
        other = Elsewhere(duck, SPARK)
        query = "SELECT {} AS m FROM people"
        for name, meaning in {
            "mean(income)": "avg(income)", "std(income)": "stddev_samp(income)", "count_if(works)":
            "count(*) FILTER (WHERE works)", "percentile(income, 0.5)": "quantile_cont(income, 0.5)",
        }.items():  # fmt: skip
            found, wanted = other.sql(query.format(name)), pdrisk.sql(
                query.format(meaning), duck, eps=1, bounds=BOUNDS, curator=True
            )  # fmt: skip
            pd.testing.assert_frame_equal(not_drawn(found), not_drawn(wanted), rtol=1e-12)

    def test_noisy_values_of_32_bits(self, duck):
        found = Elsewhere(duck, SPARK).sql(
            "SELECT CAST(CAST(COUNT(*) / 7 AS FLOAT) AS STRING) AS t FROM people",
            eps=1e9, curator=False, risk_columns=False,
        )  # fmt: skip
        assert found["t"].item() == duck.execute("SELECT (COUNT(*) / 7)::FLOAT::VARCHAR FROM people").fetchone()[0]
        other = Elsewhere(duck, SPARK)
        with pytest.raises(ParameterError, match="a cast to FLOAT is computed of records"):
            other.sql("SELECT COUNT(*) FROM people WHERE CAST(income AS FLOAT) < 3")
        assert not other.sent

    def test_spark_series(self, duck):
        """Rows of EXPLODE are public; dates are dates, whatever DuckDB's series holds."""
        days = "explode(sequence(DATE '2020-01-15', DATE '2020-04-15', INTERVAL 1 MONTH)) AS d"
        found = Elsewhere(duck, SPARK).sql(
            f"SELECT s.d, COUNT(p.pid) AS c FROM (SELECT {days}) s LEFT JOIN people p ON p.day = s.d GROUP BY s.d",
            eps=1e9, curator=False, risk_columns=False, person="pid", rows=20,
        )  # fmt: skip
        wanted = duck.sql(
            "SELECT day, COUNT(pid) FROM people WHERE day IN ('2020-01-15', '2020-02-15', '2020-03-15', '2020-04-15') "
            "GROUP BY day ORDER BY day"
        ).df()
        assert found.to_numpy().tolist() == wanted.to_numpy().tolist()

    @pytest.mark.parametrize(
        ("language", "query", "said"),
        [
            (SPARK, "SELECT COUNT(*) FROM (SELECT pid, explode(sequence(1, age)) AS x FROM people)", "several records"),
            (SPARK, "SELECT COUNT(*) FROM (SELECT explode(array(1, 2)) AS x) s JOIN people ON age = x", "of an array"),
            (SPARK, "SELECT COUNT(*) FROM (SELECT explode(sequence(DATE '2020-01-31', DATE '2020-05-31', INTERVAL 1 "
             "MONTH)) AS d) s JOIN people ON day = d", "after the 28th"),
            (POSTGRES, "SELECT COUNT(*) FROM generate_series(DATE '2020-01-01', DATE '2020-01-05', INTERVAL '1 day') "
             "AS s (d) JOIN people ON day = d", "does not read this"),  # of times with a zone there
        ],
    )  # fmt: skip
    def test_series_that_mean_something_else(self, duck, language, query, said):
        other = Elsewhere(duck, language)
        with pytest.raises(ParameterError, match=said):
            other.sql(query)
        assert not other.sent


def whole_units(unit, a, b):
    """`java.time.LocalDateTime.until`, by its definition."""
    if unit in ("HOUR", "MINUTE"):
        return int((b - a) / pd.Timedelta(1, unit[0].lower().replace("m", "min")))
    first, last = a.date(), b.date()
    if last > first and b.time() < a.time():
        last -= datetime.timedelta(1)
    elif last < first and b.time() > a.time():
        last += datetime.timedelta(1)
    if unit == "WEEK":
        return int((last - first).days / 7)
    packed = [(each.year * 12 + each.month) * 32 + each.day for each in (first, last)]
    return int(int((packed[1] - packed[0]) / 32) / {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit])


class TestParameters:
    """Values of parameters stand in the query as constants do, whichever way the language writes them."""

    @pytest.mark.parametrize(
        ("language", "condition", "params"),
        [
            (POSTGRES, "age >= $1 AND region IN ($2, $3)", [40, "north", ""]),
            (POSTGRES, "age >= $3 AND region IN ($1, $2)", ["north", "", 40]),
            (POSTGRES, "age >= %s AND region IN (%s, %s)", [40, "north", ""]),
            (POSTGRES, "age >= %(a)s AND region IN (%(b)s, %(c)s)", {"a": 40, "b": "north", "c": ""}),
            (POSTGRES, "age >= :a AND region IN (:b, '')", {"a": 40, "b": "north"}),
            (SPARK, "age >= :a AND region IN (:b, '')", {"a": 40, "b": "north"}),
            (SPARK, "age >= ? AND region IN (?, ?)", (40, "north", "")),
        ],
    )
    def test_like_what_is_written_out(self, duck, language, condition, params):
        own = Elsewhere(duck, language)
        query = "WITH p AS (SELECT COUNT(*) AS c FROM people WHERE {}) SELECT c FROM p"
        own.sql(query.format(condition), params=params)
        own.sql(query.format("age >= 40 AND region IN ('north', '')"))
        assert len(own.sent) == 2
        assert own.sent[0] == own.sent[1]

    def test_places_count_in_the_order_of_the_text(self, duck):
        """WITH stands before SELECT in the text, and LIMIT behind."""
        query = (
            "WITH p AS (SELECT region, COUNT(*) AS c FROM people WHERE age > {} GROUP BY region) "
            "SELECT c + {} AS c FROM p WHERE region = {} LIMIT {}"
        )
        for place in ("?", "%s"):
            own = Elsewhere(duck, POSTGRES)
            found = own.sql(
                query.format(*[place] * 4), params=[40, 1000, "north", 1], keys=["north", "South"], eps=1e6,
                curator=False, risk_columns=False,
            )  # fmt: skip
            wanted = duck.sql(query.format(40, 1000, "'north'", 1)).df()
            pd.testing.assert_frame_equal(found, wanted, atol=0.1, check_dtype=False, check_column_type=False)

    @pytest.mark.parametrize(
        ("language", "condition", "params", "said"),
        [
            (POSTGRES, "age = $1", None, "no value for parameter 1"),
            (POSTGRES, "age = $2", [1], "no value for parameter 2"),
            (POSTGRES, "age = :x", {"y": 1}, "no value for :x"),
            (POSTGRES, "age = 1", [1], "no place for parameter 1"),
            (POSTGRES, "age = ? AND age = %s", [1, 1], "in one way"),
            (POSTGRES, "region = '5%' AND age = %s", [1], "pass the text as a parameter"),
            (POSTGRES, "age %s", [1], "no single SELECT"),
            (SPARK, "age = $1", [1], "way of writing"),
            (POSTGRES, "age = ?", "1", "must be a list"),
            (POSTGRES, "age = $1", [[1, 2]], "must be text, a number"),
        ],
    )
    def test_refusals(self, duck, language, condition, params, said):
        own = Elsewhere(duck, language)
        with pytest.raises((ParameterError, ColumnTypeError), match=said):
            own.sql(f"SELECT COUNT(*) FROM people WHERE {condition}", params=params)
        assert not own.sent

    def test_they_are_the_callers_word(self, duck):
        """A value may have been computed from the data: public texts say that it was given, and hide it."""
        found = Elsewhere(duck, POSTGRES).sql("SELECT COUNT(*) FROM people WHERE age > $1", params=[12345])
        label = pdrisk.explain(found, audience="publication")
        assert "12345" not in label

    def test_statements_of_sqlalchemy(self, duck):
        sqlalchemy = pytest.importorskip("sqlalchemy")
        own = Elsewhere(duck, POSTGRES)
        found = own.sql(sqlalchemy.text("SELECT COUNT(*) AS c FROM people WHERE age > :a"), params={"a": 40})
        assert found["c_n"].item() == native(own, duck, "SELECT COUNT(*) FROM people WHERE age > 40")


SEVERAL = {
    "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM people WHERE works": {},
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM people "
    "ORDER BY 2, 1": {"keys": ["north", "South"]},
    "(SELECT 1 AS a UNION ALL SELECT COUNT(*) FROM people) UNION SELECT 1 ORDER BY a LIMIT 3": {},
    "SELECT region, works, COUNT(*) AS n, GROUPING(region, works) AS g FROM people GROUP BY ROLLUP (region, works) "
    "ORDER BY 4, 1 NULLS LAST, 2 NULLS LAST": {"keys": KEYS},
    "SELECT region, works, COUNT(*) AS n FROM people GROUP BY CUBE (region, works) HAVING COUNT(*) > 5 "
    "ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3": {"keys": {"region": ["north", "South"]}},
    "SELECT region, works, COUNT(*) AS n FROM people GROUP BY works, GROUPING SETS ((region), ()) "
    "ORDER BY 2, 1 NULLS LAST": {"keys": {"region": ["north", "South"]}},
    "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people WHERE works)": {},
    "WITH a AS (SELECT COUNT(works) AS m FROM people) SELECT 2.0 * (SELECT m FROM a) AS d, COUNT(*) AS n "
    "FROM people": {},
    "SELECT (SELECT COUNT(*) FROM people) AS n": {},
    "SELECT region, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, "
    "LAG(COUNT(*), 1, 0) OVER (ORDER BY region) AS before, SUM(COUNT(*)) OVER (ORDER BY region "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two, ROW_NUMBER() OVER (PARTITION BY region ORDER BY region) AS r "
    "FROM people GROUP BY region ORDER BY region": {"keys": ["north", "South", ""]},
}  # fmt: skip


@pytest.mark.parametrize("query", SEVERAL)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_put_together(duck, other, query):
    """UNION, ROLLUP, scalar subqueries and windows over noisy values: of a huge eps they are the exact answers."""
    exact = {"eps": 1e7, "bounds": BOUNDS, **SEVERAL[query]}
    wanted = pdrisk.sql(query, duck, **exact)
    found = other.sql(query, curator=False, risk_columns=False, **exact)
    pd.testing.assert_frame_equal(found, wanted, atol=0.01)
    if "HAVING" not in query and "keys" not in SEVERAL[query]:
        exactly = duck.sql(query).df()
        pd.testing.assert_frame_equal(found, exactly, atol=0.01, check_dtype=False, check_column_type=False)


def test_every_part_is_paid_for(duck, tmp_path):
    own = Elsewhere(duck, POSTGRES)
    query = (
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)"
    )
    with pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=1) as ledger:
        pdrisk.sql(query, duck, eps=0.125, bounds=BOUNDS)
        own.sql(query, eps=0.75, curator=False, risk_columns=False)
        assert ledger.remaining().eps == 0.125
        with pytest.raises(PdriskError):
            own.sql(query, eps=0.5, curator=False, risk_columns=False)
    assert len(own.sent) == 3


NO_NUMBER = "(SELECT SUM(age) FROM people HAVING COUNT(*) < -1000000)"  # so far that no noise gets there
NO_TEXT = "(SELECT region FROM people GROUP BY region HAVING COUNT(*) < -1000000 LIMIT 1)"
BESIDE_NOTHING = [
    f"age > {NO_NUMBER}", f"NOT (age > {NO_NUMBER})", f"works OR age + {NO_NUMBER} * 2 <> 3", f"{NO_NUMBER} IS NULL",
    f"age IN (40, {NO_NUMBER})", f"age NOT IN (40, {NO_NUMBER})", f"{NO_NUMBER} IN (1, 2)", f"-{NO_NUMBER} < 3",
    f"NOT (age BETWEEN {NO_NUMBER} AND 41)", f"COALESCE({NO_NUMBER}, age) > 40", f"NULLIF({NO_NUMBER}, age) > 40",
    f"COALESCE({NO_NUMBER}, {NO_NUMBER}) > 1", f"(age > {NO_NUMBER}) IS NULL", f"region = {NO_TEXT}",
    f"{NO_TEXT} = 'a'", f"CASE WHEN age > {NO_NUMBER} THEN 1 ELSE {NO_NUMBER} END > 0",
    f"NOT ({NO_NUMBER} > 3 AND age < 5)",
]  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("where", BESIDE_NOTHING)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_subquery_that_came_to_null(duck, other, where):
    """It is paid by then: a comparison with it is unknown, and no error that costs an answer."""
    keys = ["north", "South", ""] if "region FROM" in where else None
    found = other.sql(f"SELECT COUNT(*) AS c FROM people WHERE {where}", keys=keys)
    for nothing in (NO_NUMBER, NO_TEXT):
        where = where.replace(nothing, f"CAST(NULL AS {'VARCHAR' if nothing == NO_TEXT else 'DOUBLE'})")
    assert found["c_n"].item() == duck.sql(f"SELECT COUNT(*) FROM people WHERE {where}").fetchall()[0][0]


def test_without_sqlglot_it_is_said_what_to_install(duck, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ParameterError, match=r'pip install "pdrisk\[sql-engines\]"'):
        Elsewhere(duck, POSTGRES).sql("SELECT COUNT(*) FROM people")


@needs_server
class TestOnAServer:
    """`pdrisk.sql` with a connection to PostgreSQL, and ``sql`` of a Dataset of its tables."""

    def test_schemas_and_capitals(self, postgres_server):
        assert Server(postgres_server).sql('SELECT COUNT(*) AS c FROM other."People" AS p')["c_n"].item() == 50
        with pytest.raises(ParameterError, match="no table"):
            Server(postgres_server).sql("SELECT COUNT(*) FROM other.People")

    @pytest.mark.parametrize("name", ["pg_class", "pg_catalog.pg_authid", "information_schema.tables"])
    def test_catalogs(self, postgres_server, name):
        with pytest.raises(ParameterError, match="catalogs"):
            Server(postgres_server).sql(f"SELECT COUNT(*) FROM {name}")

    def test_several_queries_see_one_state(self, postgres_server, monkeypatch):
        """Another session writes between the parts of a statement."""
        with database() as url, connected(url) as con, connected(url) as other:
            other.execute("CREATE TABLE t AS SELECT 1 AS a FROM generate_series(1, 100)")
            other.commit()
            fetch = postgres.fetched

            def written(*arguments):
                found = fetch(*arguments)
                other.execute("INSERT INTO t SELECT 1 FROM generate_series(1, 100)")
                other.commit()
                return found

            monkeypatch.setattr(postgres, "fetched", written)
            both = "SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM t WHERE a = 1"
            engine = pytest.importorskip("sqlalchemy").create_engine(url.replace("://", "+psycopg://"))
            for given in (con, engine):
                first, second = pdrisk.sql(both, given, eps=1e6)["n"]
                assert first == second
            engine.dispose()
            assert con.info.transaction_status == 0  # idle: nothing is left open

    def test_urls(self):
        """Of a URL each reading opens a connection, and closes it."""
        with database() as url, connected(url) as con:
            con.execute("CREATE TABLE t AS SELECT CAST(i AS float8) AS a FROM generate_series(1, 100) AS i")
            con.execute("CREATE TABLE u AS SELECT * FROM t")
            data = pdrisk.Dataset((url, "t"), bounds={"a": (0, 100)})
            assert data.mean("a", eps=1).curator.n == 100
            assert data.sql("SELECT COUNT(*) AS c FROM data", eps=1, curator=True)["c_n"].item() == 100
            query = "SELECT COUNT(DISTINCT a) AS c FROM t JOIN u USING (a)"
            assert pdrisk.sql(query, url, eps=1, person="a", curator=True)["c_n"].item() == 100
            both = pdrisk.Dataset({"t": (url, "t"), "u": (url, "u")}, person={"t": "a", "u": "a"})
            assert both.sql(query, eps=1, curator=True)["c_n"].item() == 100
            open_ones = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state IS NOT NULL"
            until = time.monotonic() + 10  # a server notices a moment later that its client has gone
            while (count := con.execute(open_ones).fetchone()[0]) > 1 and time.monotonic() < until:
                time.sleep(0.01)
            assert count == 1
            held = repr(both._given) + repr(data._given)
            assert "PostgresAddress()" in held
            assert url not in held

    @pytest.mark.parametrize("url", ["postgresql://ann:sesame@127.0.0.1:1/x", "postgresql://ann:sesame@h:sesame/x"])
    def test_urls_that_do_not_connect(self, url):
        for ask in (
            lambda: pdrisk.Dataset((url, "t")).count(eps=1), lambda: pdrisk.sql("SELECT COUNT(*) FROM t", url, eps=1)
        ):  # fmt: skip
            with pytest.raises(ParameterError, match="no connection to the PostgreSQL server") as caught:
                ask()
            assert "sesame" not in "".join(traceback.format_exception(caught.value))

    def test_what_needs_no_data_is_refused_before_it_connects(self, tmp_path):
        url, query = "postgresql://127.0.0.1:1/x", "SELECT AVG(x) FROM t"
        one, other = (pdrisk.Ledger(tmp_path / f"{name}.db", dataset=name, eps=2) for name in "ab")
        data = pdrisk.Dataset((url, "t"), ledger=one)
        for ask, why in (
            (lambda: pdrisk.sql("SELEC", url, eps=1), "that is no SELECT"),
            (lambda: pdrisk.sql(query, url, eps=1, risk_columns=3), "risk_columns is True or False"),
            (lambda: pdrisk.sql(query, url, eps=1, keys="private"), "needs delta="),
            (lambda: pdrisk.sql(query, url, eps=1, bounds=3), "bounds must be a pair"),
            (lambda: pdrisk.sql(query, url, eps=1, params=3), "params must be a list"),
            (lambda: data.sql(query, eps=1, ledger=3), "ledger must be a pdrisk.Ledger"),
            (lambda: data.sql(query, eps=1, ledger=other), "the ledger is that of dataset 'b'"),
            (lambda: data.sql(query, eps=1), "by the names of its tables"),
        ):
            with pytest.raises(pdrisk.PdriskError, match=why):
                ask()
        assert one.remaining().eps == other.remaining().eps == 2

    def test_a_dataset(self, postgres_server, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=2)
        data = pdrisk.Dataset((postgres_server, "people"), bounds=BOUNDS, keys={"region": ["north"]}, ledger=ledger)
        answer = data.sql("SELECT region, AVG(age) AS m FROM data WHERE age < 50 GROUP BY region", eps=1)
        assert answer["region"].tolist() == ["north"]
        assert ledger.remaining().eps == 1
        for query in ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM public.people"):
            with pytest.raises(ParameterError, match="by the names of its tables"):
                data.sql(query, eps=1)
        assert ledger.remaining().eps == 1

    def test_frames_are_not_asked_beside_it(self, postgres_server):
        with pytest.raises(ParameterError, match="cannot be asked together"):
            pdrisk.sql("SELECT COUNT(*) FROM people", postgres_server, eps=1, people=pd.DataFrame({"age": [1]}))


def test_quotients_of_whole_numbers_on_postgres():
    """PostgreSQL drops their fraction; EXTRACT is numeric there, and keeps it."""
    pytest.importorskip("sqlglot")
    for kept in ("EXTRACT(YEAR FROM d) / 10", "(EXTRACT(YEAR FROM d) - x) / 10", "x / 10.0"):
        parsed_as(f"SELECT AVG({kept}) FROM t", POSTGRES)
    with pytest.raises(pdrisk.ParameterError, match="drops the fraction where it divides whole numbers"):
        parsed_as("SELECT AVG(x / 10) FROM t", POSTGRES)


TYPES = {("t",): {"x": "INTEGER", "fee": "DOUBLE"}, ("u",): {"fee": "FLOAT", "y": "BIGINT"}, ("w",): {"fee": "INTEGER"}}
FRACTIONS = {
    "SELECT SUM(x * fee) / 3 FROM t": True,
    "SELECT fee / COUNT(*) FROM t GROUP BY fee": True,
    "SELECT SUM(x) / 3 FROM t": False,
    "SELECT COALESCE(SUM(t.fee), 0) / COUNT(*), MAX(CASE WHEN x > 1 THEN fee ELSE 0 END) / 2 FROM t": True,
    "SELECT r / 3 FROM (SELECT SUM(fee) AS r FROM t) AS s": True,
    "SELECT r / 3 FROM (SELECT SUM(x) AS r FROM t) AS s": False,
    "SELECT fee / 3 FROM (SELECT x AS fee FROM t) AS s": False,
    "SELECT r / 3 FROM (SELECT q AS r FROM (SELECT x AS q FROM t) AS s) AS s": False,
    "WITH c AS (SELECT CAST(fee AS INT) AS fee FROM t) SELECT SUM(fee) / 3 FROM c": False,
    "SELECT fee / 3 FROM (SELECT x FROM t) AS s(fee)": False,
    "SELECT t.fee / 3 FROM t, w": False,  # one of which has whole ones
    "SELECT t.fee / 3 FROM t, u": True,
    "SELECT fee / 3 FROM nowhere, t": False,
    "SELECT column1 / 3 FROM (VALUES (1)) AS v": False,
    "SELECT (SELECT MAX(fee) FROM t) / 3 FROM t": True,
    "SELECT (SELECT MAX(x) FROM t) / 3 FROM t": False,
    "SELECT y / x FROM t, u": False,
    "SELECT LENGTH('abc') / fee, NULLIF(fee, 0) / 2, GREATEST(fee, 1) / 2, SUM(DISTINCT fee) / 2 FROM t": True,
}


@pytest.mark.parametrize("query", FRACTIONS)
def test_quotients_of_what_has_a_fraction_by_its_type(query):
    pytest.importorskip("sqlglot")

    def types(path):
        if path not in TYPES:
            raise ParameterError("no table")
        return TYPES[path]

    if FRACTIONS[query]:
        assert parsed_as(query, POSTGRES, None, Scalars(), types=types)
        return
    with pytest.raises(ParameterError, match="drops the fraction"):
        parsed_as(query, POSTGRES, None, Scalars(), types=types)


PATTERNS = ["999", "FM999", "000", "9,999", "FM9,990", "990.00", "999.99", "FM90.0", "0.00", "9", "099", "99,999,990.0"]
WRITTEN = [0, 5, -5, 485, 1485, -1485, 0.5, -0.3, -0.004, 12.344, 99.5, 12345678, 9.96, 999.6, -999.6, None]


@needs_server
@pytest.mark.parametrize("pattern", PATTERNS)
def test_numbers_are_written_as_postgres_writes_them(postgres_server, pattern):
    sql = number_by_pattern(Expression("x", NUMBER, "DOUBLE"), pattern).sql
    for value in WRITTEN:
        wanted = postgres_server.execute(f"SELECT to_char(CAST(%s AS numeric), '{pattern}')", [value]).fetchone()
        found = duckdb.connect().execute(f"SELECT {sql} FROM (SELECT CAST(? AS DOUBLE) AS x)", [value])
        assert found.fetchone() == wanted


@pytest.mark.parametrize("pattern", ["9D9", "9G999", "S99", "99PR", "9EEEE", "L9", "99V9", "99,99", "0,009", "FM9.9"])
def test_other_patterns_are_refused(duck, pattern):
    with pytest.raises(ParameterError, match=r"TO_CHAR (of a number by this pattern|writes a number by 9, 0, commas)"):
        Elsewhere(duck, POSTGRES).sql(f"SELECT TO_CHAR(SUM(age), '{pattern}') AS s FROM people")


def test_numbers_are_written_of_noisy_values_alone(duck):
    own = Elsewhere(duck, POSTGRES)
    query = "SELECT TO_CHAR(COUNT(*), 'FM9,990') AS n, REPEAT('*', COUNT(*)::INT / 20.0) AS bar FROM people"
    found = own.sql(query, eps=1e9, curator=False, risk_columns=False)
    assert found.to_numpy().tolist() == [["208", "*" * 10]]
    with pytest.raises(ParameterError, match="TO_CHAR of numbers writes noisy values alone"):
        own.sql("SELECT COUNT(*) FROM people WHERE TO_CHAR(age, '99') = ' 1'")
