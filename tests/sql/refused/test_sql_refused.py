"""What a SELECT may not say is refused before a record is read, with why and what to write instead."""

import duckdb
import pytest

import pdrisk
from sql_people import PEOPLE, REGIONS, connection, refusal

COUNT = "SELECT COUNT(*) FROM people"

SETUP = """
CREATE TABLE humans AS FROM people;
CREATE VIEW grouped AS SELECT region, COUNT(*) AS n FROM people GROUP BY region;
CREATE VIEW total AS SELECT COUNT(*) AS n FROM people;
CREATE VIEW having_some AS SELECT region FROM people GROUP BY region HAVING COUNT(*) > 3;
CREATE VIEW first_ones AS SELECT * FROM people ORDER BY id LIMIT 5;
CREATE VIEW later_ones AS SELECT * FROM people OFFSET 5;
CREATE VIEW distinct_ones AS SELECT DISTINCT region FROM people;
CREATE VIEW distinct_on AS SELECT DISTINCT ON (region) * FROM people;
CREATE VIEW joined AS SELECT p.* FROM people p JOIN humans h USING (region);
CREATE VIEW crossed AS SELECT p.* FROM people p, humans;
CREATE VIEW both_ones AS SELECT age FROM people UNION ALL SELECT age FROM humans;
CREATE VIEW ranked AS SELECT *, row_number() OVER (ORDER BY id) AS place FROM people;
CREATE VIEW picked AS SELECT * FROM people QUALIFY row_number() OVER (ORDER BY id) < 3;
CREATE VIEW correlated AS SELECT * FROM people p WHERE EXISTS (SELECT 1 FROM humans h WHERE h.region = p.region);
CREATE VIEW sampled AS SELECT * FROM people USING SAMPLE 5;
CREATE VIEW unnested AS SELECT unnest([1, 2]) AS x, age FROM people;
CREATE VIEW volatile AS SELECT *, random() AS chance FROM people;
CREATE VIEW daily AS SELECT * FROM people WHERE day < current_date;
CREATE VIEW over_grouped AS SELECT n FROM grouped;
CREATE VIEW series AS SELECT range AS age FROM range(5);
CREATE VIEW constants AS SELECT 1 AS age;
CREATE MACRO everyone() AS TABLE SELECT * FROM people;
"""
DEPENDS = "makes its records depend on each other"
AGGREGATED_TWICE = "aggregates belong in SELECT, HAVING and ORDER BY, and nothing can be aggregated twice"
SUBQUERY = "compute that value with a query of its own, and pass it as a parameter"
NAMED_FILES = "a query may read only files that were named when pdrisk.sql was called: pass it by keyword"
ONE_FUNCTION = "the only function in FROM is read_parquet('path')"
JOINS = "joins are refused, since a record may match any number of others"
NO_STATISTIC = "is no statistic that pdrisk can add noise to: use COUNT, SUM, AVG"
ONE_SELECT = "pdrisk.sql answers one SELECT, nothing else"
STATEMENTS = {
    "": "the query is empty: write a SELECT",
    " -- nothing": "the query is empty: write a SELECT",
    "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people": "here are 2 statements",
    "SELECT COUNT(*) FROM people; DROP TABLE people": ONE_SELECT,
    "CREATE TABLE x (n INT)": ONE_SELECT,
    "CREATE MACRO dp_mean(x) AS x": ONE_SELECT,
    "INSERT INTO people SELECT * FROM people": ONE_SELECT,
    "UPDATE people SET age = 1": ONE_SELECT,
    "DELETE FROM people": ONE_SELECT,
    "DROP TABLE people": ONE_SELECT,
    "PRAGMA threads = 1": ONE_SELECT,
    "SET threads = 1": ONE_SELECT,
    "ATTACH 'x.db'": ONE_SELECT,
    "COPY people TO 'x.csv'": ONE_SELECT,
    "COPY (SELECT COUNT(*) FROM people) TO 'x.csv'": ONE_SELECT,
    "EXPORT DATABASE 'x'": ONE_SELECT,
    "INSTALL httpfs": ONE_SELECT,
    "LOAD httpfs": ONE_SELECT,
    "CALL pragma_version()": ONE_SELECT,
    "BEGIN": ONE_SELECT,
    "PREPARE p AS SELECT COUNT(*) FROM people": ONE_SELECT,
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM people": "EXPLAIN ANALYZE and EXPLAIN with options are refused",
    "SELEKT": "this is no SQL that DuckDB understands: syntax error",
    "SELECT AVG(age FROM people": "this is no SQL that DuckDB understands: syntax error",
    "SELECT COUNT(*) FROM people WHERE age > 1\0": "holds a NUL character: take it out",
    "SELECT COUNT(*) FROM people WHERE " + "NOT " * 5000 + "member": "depth",
}
FROM = {
    "SELECT COUNT(*)": "there is no FROM: ask a table, view, frame or Parquet file",
    "SELECT COUNT(*) FROM (VALUES (1)) AS v": "there is no FROM",
    "SELECT COUNT(*) FROM range(5)": "there is no FROM",
    "SELECT COUNT(*) FROM range(age)": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_csv('people.csv')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_text('/etc/passwd')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_parquet(['a.parquet', 'b.parquet'])": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_parquet('a' || '.parquet')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_parquet('a.parquet', filename := true)": ONE_FUNCTION,
    "SELECT COUNT(*) FROM glob('*')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM query('SELECT 1')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM query_table('people')": ONE_FUNCTION,
    "SELECT COUNT(*) FROM duckdb_tables()": ONE_FUNCTION,
    "SELECT COUNT(*) FROM everyone()": ONE_FUNCTION,
    "SELECT COUNT(*) FROM read_parquet('people.parquet')": NAMED_FILES,
    "SELECT COUNT(*) FROM 'people.parquet'": NAMED_FILES,
    "SELECT COUNT(*) FROM nobody": "unknown table 'nobody'; there is ",
    "SELECT COUNT(*) FROM other.people": "unknown table 'other.people'; there is ",
    "SELECT COUNT(*) FROM information_schema.tables": "unknown table 'information_schema.tables'",
    "SELECT COUNT(*) FROM duckdb_tables": "unknown table 'duckdb_tables'",
    "SELECT COUNT(*) FROM FRAMES_OF_THE_CALLER": "unknown table",
    "SELECT COUNT(*) FROM people, humans": JOINS,
    "SELECT COUNT(*) FROM people JOIN humans USING (id)": JOINS,
    "SELECT COUNT(*) FROM people LEFT JOIN humans ON true": JOINS,
    "SELECT COUNT(*) FROM people NATURAL JOIN humans": "NATURAL JOIN joins by whatever names two tables share",
    "SELECT COUNT(*) FROM people SEMI JOIN humans USING (id)": JOINS,
    "SELECT COUNT(*) FROM people POSITIONAL JOIN humans": "POSITIONAL JOIN joins rows by their place",
    "SELECT COUNT(*) FROM people ASOF JOIN humans ON people.id >= humans.id": "ASOF JOIN picks a row by its neighbours",
    "SELECT COUNT(*) FROM people FULL JOIN humans USING (id)": "FULL JOIN of people's rows leaves open whose row it is",
    "SELECT COUNT(*) FROM (SELECT p.age FROM people p JOIN humans h USING (id))": JOINS,
    "SELECT COUNT(*) FROM (FROM people UNION ALL FROM humans)": JOINS,
    "SELECT COUNT(*) FROM (FROM people UNION FROM humans)": f"DISTINCT in a subquery, CTE or view {DEPENDS}",
    "SELECT COUNT(*) FROM people EXCEPT SELECT 1": "EXCEPT is of ids of people",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT COUNT(*) FROM n": (
        "recursive queries are refused: a record may appear any number of times"
    ),
    "SELECT COUNT(*) FROM people TABLESAMPLE 10%": "TABLESAMPLE and USING SAMPLE are refused",
    "SELECT COUNT(*) FROM people USING SAMPLE 5": "TABLESAMPLE and USING SAMPLE are refused",
    "SELECT COUNT(*) FROM (FROM people USING SAMPLE 5)": "TABLESAMPLE and USING SAMPLE are refused",
    "UNPIVOT people ON age": "PIVOT is not understood: write GROUP BY",
    "SELECT COUNT(*) FROM people AS p(a, b, c, d, e, f, g, h, i)": "FROM names 9 columns, but there are 8",
    "SELECT COUNT(*) FROM (SELECT h.* FROM people)": "unknown table 'h' before the star",
    "SELECT AVG(a) FROM (SELECT age AS a, id AS A FROM people)": "several columns of FROM are named 'a'",
    "SELECT AVG(age) FROM (SELECT * EXCLUDE (agee) FROM people)": "unknown column 'agee'",
    "SELECT AVG(distance) FROM (SELECT * EXCLUDE (distance) FROM people)": "unknown column 'distance'",
    "SELECT AVG(age) FROM (SELECT COLUMNS('a.*') FROM people)": "does not understand columns of this query",
}
VIEWS = {
    "grouped": f"GROUP BY in a subquery, CTE or view {DEPENDS}",
    "total": AGGREGATED_TWICE,
    "having_some": f"GROUP BY in a subquery, CTE or view {DEPENDS}",
    "first_ones": f"LIMIT in a subquery, CTE or view {DEPENDS}",
    "later_ones": f"LIMIT in a subquery, CTE or view {DEPENDS}",
    "distinct_ones": f"DISTINCT in a subquery, CTE or view {DEPENDS}",
    "distinct_on": f"QUALIFY or DISTINCT ON in a subquery, CTE or view {DEPENDS}",
    "joined": JOINS,
    "crossed": JOINS,
    "both_ones": JOINS,
    "ranked": "window functions (OVER) give one value per record",
    "picked": f"QUALIFY or DISTINCT ON in a subquery, CTE or view {DEPENDS}",
    "correlated": JOINS,
    "sampled": "TABLESAMPLE and USING SAMPLE are refused",
    "unnested": "UNNEST makes several records of one",
    "volatile": "random() differs from record to record and from run to run",
    "daily": "current_date changes with the clock",
    "over_grouped": f"GROUP BY in a subquery, CTE or view {DEPENDS}",
    "series": ONE_FUNCTION,
    "constants": "there is no FROM",
}
# Written out, these are SELECTs over noisy values: what is missing is what they would need without the outer one.
OF_NOISY_VALUES = {
    "series": "there is no FROM",  # which nobody is in, and only a view hides
    "grouped": "GROUP BY region needs the public list of its groups",
    "having_some": "GROUP BY region needs the public list of its groups",
    "total": None,
}
AGGREGATES = {
    "SELECT * FROM people": "SELECT * would show records",
    "FROM people": "SELECT * would show records",
    "SELECT COUNT(*), people.* FROM people": "SELECT * would show records",
    "SELECT age FROM people": "column 'age' is neither aggregated nor in GROUP BY: exact values never leave the data",
    "SELECT age + 1, COUNT(*) FROM people": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) FROM people ORDER BY age": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) FROM people HAVING age > 3": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) + age FROM people": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT region, age FROM people GROUP BY region": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT region FROM people GROUP BY region": "needs the public list of its groups",
    "SELECT 1 FROM people": "the query has no aggregate, so nothing to add noise to",
    "SELECT DISTINCT ON (region) region, age FROM people ORDER BY region, age": "neither aggregated nor in GROUP BY",
    "SELECT MEDIAN(DISTINCT age) FROM people": "Leave DISTINCT out",
    "SELECT SUM(age ORDER BY id) FROM people": "ORDER BY inside sum (or WITHIN GROUP) is not understood",
    "SELECT VAR_POP(DISTINCT age) FROM people": "var_pop(DISTINCT ...) is refused: what one person changes depends",
    "SELECT AVG(age) OVER (PARTITION BY region) FROM people": "window functions (OVER) give one value per record",
    "SELECT row_number() OVER () FROM people": "window functions (OVER) give one value per record",
    "SELECT age FROM people QUALIFY row_number() OVER () = 1": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT AVG(COUNT(*)) FROM people": AGGREGATED_TWICE,
    "SELECT MAX(AVG(age)) FROM people": AGGREGATED_TWICE,
    "SELECT COUNT(*) FROM people WHERE COUNT(*) > 1": AGGREGATED_TWICE,
    "SELECT COUNT(*) FROM people GROUP BY AVG(age)": AGGREGATED_TWICE,
    "SELECT COUNT(*) AS n, SUM(n) FROM people": AGGREGATED_TWICE,
    "SELECT COUNT(*) FILTER (WHERE AVG(age) > 1) FROM people": AGGREGATED_TWICE,
    "SELECT MEDIAN(n) FROM (SELECT AVG(COUNT(*)) AS n FROM people)": AGGREGATED_TWICE,
    "SELECT FIRST(age) FROM people": NO_STATISTIC,
    "SELECT ANY_VALUE(age) FROM people": NO_STATISTIC,
    "SELECT LIST(age) FROM people": NO_STATISTIC,
    "SELECT STRING_AGG(region) FROM people": NO_STATISTIC,
    "SELECT MODE(region) FROM people": "mode() picks the most frequent value: write COUNT(*) with GROUP BY",
    "SELECT ARG_MAX(region, age) FROM people": NO_STATISTIC,
    "SELECT HISTOGRAM(age) FROM people": "HISTOGRAM of age needs the public list of its groups",
    "SELECT HISTOGRAM(age + 1) AS h FROM people": "HISTOGRAM of (age + 1) needs the public list of its groups",
    "SELECT region, HISTOGRAM(member) FROM people GROUP BY region": "GROUP BY region needs the public list",
    "SELECT region, HISTOGRAM(age) FROM people GROUP BY region": "GROUP BY region with HISTOGRAM of age needs the",
    "SELECT region, HISTOGRAM(1) FROM people GROUP BY region": "GROUP BY region needs the public list",
    "SELECT HISTOGRAM(member), COUNT(*) FROM people": "HISTOGRAM must be the only aggregate of its SELECT",
    "SELECT HISTOGRAM(member), HISTOGRAM(age > 40) FROM people": "HISTOGRAM must be the only aggregate",
    "SELECT DISTINCT HISTOGRAM(member) FROM people": "HISTOGRAM must be the only aggregate",
    "SELECT *, HISTOGRAM(member) FROM people": "HISTOGRAM must be the only aggregate",
    "SELECT region, HISTOGRAM(member) FROM people GROUP BY region HAVING COUNT(*) > 9": "must be the only aggregate",
    "SELECT HISTOGRAM(DISTINCT member) FROM people": "HISTOGRAM takes one column or expression and nothing else",
    "SELECT HISTOGRAM(age, [20, 40]) FROM people": "for bins, write it of width_bucket(x, 0, 100, 10)",
    "SELECT HISTOGRAM(member), age FROM people": "column 'age' is neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) FROM people WHERE HISTOGRAM(member) IS NULL": "HISTOGRAM counts records by public values",
    'SELECT "Map of counts"(member, n) FROM (SELECT member, COUNT(*) AS n FROM people GROUP BY member)': "map of",
    "SELECT HISTOGRAM(n) FROM (SELECT member, COUNT(*) AS n FROM people GROUP BY member)": "HISTOGRAM counts",
    "SELECT region, HISTOGRAM(member) FROM people GROUP BY ROLLUP (region)": "is neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT HISTOGRAM(member) FROM people)": "a subquery gives maps where one",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT QUANTILE_CONT(age, [0.1]) FROM people)": "a subquery gives lists",
    "SELECT HISTOGRAM(member) FROM people UNION SELECT HISTOGRAM(member) FROM people": "of a UNION holds maps",
    "SELECT BOOL_OR(member) FROM people": "BOOL_AND and BOOL_OR are decided by one person alone",
    "SELECT REGR_R2(age, distance) FROM people": NO_STATISTIC,
    "SELECT COUNT(age, id) FROM people": "count takes one column and nothing else",
    "SELECT upper(region) FILTER (WHERE member), COUNT(*) FROM people": "belong to aggregates, and upper is none",
}
GROUPED = {
    "GROUP BY 1 + 1": "column 'region' is neither aggregated nor in GROUP BY",
    "GROUP BY NULL": "column 'region' is neither aggregated nor in GROUP BY",
    "GROUP BY 3": "GROUP BY 3 means no item of SELECT, which has 2",
    "GROUP BY 0": "GROUP BY 0 means no item of SELECT, which has 2",
    "GROUP BY regoin": "Did you mean 'region'?",
    "GROUP BY region ORDER BY 3": "ORDER BY 3 means no item of SELECT, which has 2",
    "GROUP BY region ORDER BY sxe": "unknown column 'sxe'",
    "GROUP BY region HAVING COUNT(*)": "HAVING needs a condition, but has numbers: compare it with something",
    "GROUP BY region LIMIT 10%": "LIMIT takes a number of rows here, no percentage",
    "GROUP BY region LIMIT 1 + 1": "LIMIT takes a whole number written out or a parameter",
    "GROUP BY region LIMIT -1": "LIMIT takes a whole number written out or a parameter",
    "GROUP BY region LIMIT (SELECT 1)": "LIMIT takes a whole number written out or a parameter",
    "GROUP BY region OFFSET 0.5": "OFFSET takes a whole number written out or a parameter",
}


@pytest.fixture(scope="module")
def con():
    con = connection()
    con.execute(SETUP)
    return con


@pytest.mark.parametrize(("query", "why"), [*STATEMENTS.items(), *FROM.items()])
class TestStatements:
    """One SELECT from one source of one row a person."""

    def test_refused(self, query, why, con, monkeypatch):
        error = refusal(monkeypatch, query, con, eps=1)
        assert why in str(error)


@pytest.mark.parametrize(("view", "why"), VIEWS.items())
class TestViews:
    """A view is what it is made of, and so are subqueries and CTEs."""

    def test_view(self, view, why, con, monkeypatch):
        assert why in str(refusal(monkeypatch, f"SELECT COUNT(*) FROM {view}", con, eps=1))

    def test_its_text_as_a_subquery_and_a_cte(self, view, why, con, monkeypatch):
        ((text,),) = con.execute("SELECT sql FROM duckdb_views() WHERE view_name = ?", [view]).fetchall()
        select = text.partition(" AS ")[2].removesuffix(";")
        why = OF_NOISY_VALUES.get(view, why)
        for query in (f"SELECT COUNT(*) FROM ({select})", f"WITH v AS ({select}) SELECT COUNT(*) FROM v"):
            if why is None:
                assert len(pdrisk.sql(query, con, eps=1)) == 1
            else:
                assert why in str(refusal(monkeypatch, query, con, eps=1))


@pytest.mark.parametrize(("query", "why"), AGGREGATES.items())
def test_exact_values_stay(query, why, con, monkeypatch):
    assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=(0, 1), keys=None))


@pytest.mark.parametrize(("after", "why"), GROUPED.items())
def test_groups(after, why, con, monkeypatch):
    query = f"SELECT region, COUNT(*) FROM people {after}"
    assert why in str(refusal(monkeypatch, query, con, eps=1, keys=REGIONS))


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{1000}{1000}", "\\"])
def test_a_pattern_that_is_none_is_refused_whoever_is_there(pattern, monkeypatch):
    for name in ("north", "nobody"):
        query = f"{COUNT} WHERE region = '{name}' AND regexp_extract(region, '{pattern}') = 'x'"
        refusal(monkeypatch, query, connection(), eps=1)


def test_half_a_character_in_a_query_is_refused(monkeypatch):
    refusal(monkeypatch, f"{COUNT} WHERE region = '\ud800'", connection(), eps=1)


def test_a_closed_connection_beside_a_path():
    con = duckdb.connect()
    con.close()
    with pytest.raises(pdrisk.ParameterError):
        pdrisk.sql(COUNT, con, eps=1, people="people.parquet")


def test_a_column_called_age_that_is_not_there():
    with pytest.raises(pdrisk.UnknownColumnError, match="unknown column 'age'"):
        pdrisk.sql("SELECT AVG(age) FROM people", eps=1, bounds=(0, 1), people=PEOPLE.drop(columns="age"))


ADVICE = {
    "SELECT COUNT(*) FROM peopel": "Did you mean 'people'?",
    "DESCRIBE people": "pdrisk.sql answers one SELECT",
    "SHOW TABLES": "pdrisk.sql answers one SELECT",
    "SUMMARIZE people": "pdrisk.sql answers one SELECT",
    "SELECT region, GROUPING(region), COUNT(*) FROM people GROUP BY region": "GROUPING belongs to ROLLUP, CUBE",
    "SELECT COUNT(*) FROM people WHERE day + INTERVAL (age) DAY > '2020-01-02'": "INTERVAL",
    "SELECT COUNT(*) FROM people WHERE region GLOB 'a*'": "LIKE",
    "SELECT COUNT(*) FROM 'people.csv'": "Of files only Parquet is read, by keyword: load any other into a table",
    "SELECT COUNT(*) FROM odd WHERE words[1] = 'x'": "list",
    'SELECT COUNT(*) FROM people WHERE region = "north"': "member, day. Write text in single quotes: 'north'.",
    'SELECT COUNT(*) FROM people AS p WHERE p.region = "it\'s"': "Write text in single quotes: 'it''s'.",
}


@pytest.mark.parametrize(("query", "advice"), ADVICE.items())
def test_advice(query, advice, monkeypatch):
    con = connection()
    con.execute("CREATE TABLE odd AS SELECT ['x'] AS words, {'a': 1} AS pair")
    assert advice in str(refusal(monkeypatch, query, con, eps=1, keys=["north"] if "GROUP BY" in query else None))


def test_a_typo_in_another_case_is_understood(monkeypatch):
    assert "Did you mean 'distance'?" in str(
        refusal(monkeypatch, "SELECT AVG(DISTNACE) FROM people", connection(), eps=1)
    )
