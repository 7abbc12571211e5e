"""Relations whose rows would not be those of one person each, or whose number others would decide: none is answered."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
from pdrisk._mechanisms.contract import draws
from sql_people import refusal

PATIENTS = pd.DataFrame(
    {
        "pid": [1, 2, 3],
        "doctor": [2, 2, 1],
        "canton": ["ZH", "BE", "SENTINEL"],
        "age": [20, 30, 40],
        "name": ["1", " 1", "b"],
    }
)
STAYS = pd.DataFrame(
    {"pid": [1, 1, 2], "partner": [2, 3, 1], "days": [1, 2, 3], "cost": [0.1, 0.2, 0.3], "code": ["a", "b", "a"]}
)
TEXTS = pd.DataFrame({"pid": ["1", " 1", "2"], "days": [1, 2, 3]})
NOBODY = pd.DataFrame({"who": [1, 2], "x": [1, 2]})
CODES = pd.DataFrame({"code": ["a", "b"], "pid": [1, 2], "chapter": ["I", "II"]})
FRAMES = {"patients": PATIENTS, "stays": STAYS, "texts": TEXTS, "nobody": NOBODY, "codes": CODES}
P, S = "patients p", "stays s"
NOT_ON_PEOPLE = "joined on something else than who a person is"
DEPENDS = "makes its records depend on each other"
ORDER = "which do not depend on the order of rows"
IN_PLACE = "IN (SELECT ...) and EXISTS are understood where WHERE joins its conditions by AND"
COUNT = "SELECT COUNT(DISTINCT p.pid) AS v FROM"

ON = {  # what joins patients p with stays s, and why it does not
    "nothing": ("true", NOT_ON_PEOPLE),
    "another column": ("p.pid = s.partner", NOT_ON_PEOPLE),
    "the other's other column": ("p.doctor = s.pid", NOT_ON_PEOPLE),
    "itself": ("p.pid = p.pid", NOT_ON_PEOPLE),
    "itself, of the second": ("s.pid = s.pid", NOT_ON_PEOPLE),
    "or more": ("p.pid = s.pid OR p.age = s.days", NOT_ON_PEOPLE),
    "or itself": ("p.pid = s.pid OR s.pid = p.pid", NOT_ON_PEOPLE),
    "not": ("NOT (p.pid = s.pid)", NOT_ON_PEOPLE),
    "an id that is made again": ("p.pid = s.pid + s.days - s.days", NOT_ON_PEOPLE),
    "unequal": ("p.pid <> s.pid", NOT_ON_PEOPLE),
    "more": ("p.pid >= s.pid", NOT_ON_PEOPLE),
    "not distinct": ("p.pid IS NOT DISTINCT FROM s.pid", NOT_ON_PEOPLE),
    "a computed id": ("p.pid = s.pid + 1", NOT_ON_PEOPLE),
    "an id plus nothing": ("p.pid = s.pid + 0", NOT_ON_PEOPLE),
    "a signed id": ("p.pid = +s.pid", NOT_ON_PEOPLE),
    "a cast": ("p.pid = CAST(s.pid AS BIGINT)", NOT_ON_PEOPLE),
    "a narrower cast": ("p.pid = TRY_CAST(s.pid AS TINYINT)", NOT_ON_PEOPLE),
    "casts of both": ("TRY_CAST(p.pid AS BIGINT) = TRY_CAST(s.pid AS BIGINT)", NOT_ON_PEOPLE),
    "a remainder": ("p.pid % 2 = s.pid % 2", NOT_ON_PEOPLE),
    "coalesced": ("p.pid = COALESCE(s.pid, 1)", NOT_ON_PEOPLE),
    "a case": ("p.pid = CASE WHEN s.days > 1 THEN s.pid ELSE 1 END", NOT_ON_PEOPLE),
    "if": ("IF(p.age > 1, p.pid = s.pid, true)", NOT_ON_PEOPLE),
    "in a list": ("p.pid IN (s.pid, 1)", NOT_ON_PEOPLE),
    "between": ("p.pid BETWEEN s.pid AND s.pid", NOT_ON_PEOPLE),
    "the same constant": ("p.pid = 1 AND s.pid = 1", NOT_ON_PEOPLE),
    "a truth of it": ("(p.pid = s.pid) = (p.age > 1)", NOT_ON_PEOPLE),
    "is true": ("(p.pid = s.pid) IS NOT NULL", NOT_ON_PEOPLE),
    "a subquery": ("p.pid = (SELECT s.pid)", "around the subquery"),
}
FROM = {
    "a comma": (f"{P}, {S}", NOT_ON_PEOPLE),
    "a comma with OR": (f"{P}, {S} WHERE p.pid = s.pid OR p.age = 1", NOT_ON_PEOPLE),
    "a comma with most of OR": (
        f"{P}, {S} WHERE (p.pid = s.pid AND p.age = 1) OR (p.pid = s.pid AND s.days = 2) OR p.age = 3",
        NOT_ON_PEOPLE,
    ),
    "a comma with a part of OR": (
        f"{P}, {S} WHERE (p.age = 1 AND p.pid = s.pid) OR p.age = 2 OR (p.pid = s.pid AND s.days = 2)",
        NOT_ON_PEOPLE,
    ),
    "a comma with others": (f"{P}, {S} WHERE p.pid = s.partner", NOT_ON_PEOPLE),
    "cross": (f"{P} CROSS JOIN {S}", NOT_ON_PEOPLE),
    "three, of which two": (f"{P} JOIN {S} USING (pid), texts t", NOT_ON_PEOPLE),
    "using another": (f"{P} JOIN (SELECT pid, days AS age FROM stays) s USING (age)", NOT_ON_PEOPLE),
    "natural": (f"{P} NATURAL JOIN {S}", "NATURAL JOIN joins by whatever names two tables share"),
    "asof": (f"{P} ASOF JOIN {S} ON p.pid = s.pid AND p.age >= s.days", "ASOF JOIN picks a row by its neighbours"),
    "positional": (f"{P} POSITIONAL JOIN {S}", "POSITIONAL JOIN joins rows by their place"),
    "full": (f"{P} FULL JOIN {S} USING (pid)", "FULL JOIN of people's rows leaves open whose row it is"),
    "lateral": (f"{P}, LATERAL (SELECT days FROM stays s WHERE s.pid = p.pid) AS t", "around the subquery"),
    "another type": (f"{P} JOIN texts t ON p.name = t.pid", NOT_ON_PEOPLE),
    "ids of another type": ("texts p JOIN stays s USING (pid)", "ids are compared as they are"),
    "nobody's": (f"{P} JOIN nobody n ON p.pid = n.who", "Every table of a query has all columns of person="),
    "names in another order": (f"{P} JOIN stays AS s(partner, pid) USING (pid)", NOT_ON_PEOPLE),
    "a CTE of a public name": (
        "p JOIN codes c ON p.age = c.days",
        NOT_ON_PEOPLE,
        "WITH p AS (FROM patients), codes AS (FROM stays) ",
    ),
    "left of a public table": (
        "codes c LEFT JOIN patients p USING (pid) WHERE p.pid IS NULL",
        "keeps its rows without anybody",
    ),
    "semi of a public table": ("codes p SEMI JOIN stays USING (pid)", "which is public, by whether somebody is in"),
    "public in people": ("codes p WHERE p.pid NOT IN (SELECT pid FROM stays)", "EXCEPT over noisy values are refused"),
    "public kept by people": (
        "codes p ANTI JOIN stays s ON p.pid = s.pid",
        "which is public, by whether somebody is in",
    ),
    "a key of the optional side": (
        "(SELECT s.pid FROM patients p LEFT JOIN stays s USING (pid)) q JOIN patients p USING (pid)",
        NOT_ON_PEOPLE,
    ),
    "groups without an id": (f"{P} JOIN (SELECT code FROM stays GROUP BY code) s ON p.canton = s.code", DEPENDS),
    "a window of a renamed column": (
        f"{P} JOIN (SELECT id, RANK() OVER (PARTITION BY pid ORDER BY days) AS n FROM (SELECT pid AS id, partner AS "
        "pid, days FROM stays)) s ON s.id = p.pid",
        "write PARTITION BY the person",
    ),
    "a window in ON": (
        f"{P} JOIN stays s ON p.pid = s.pid AND ROW_NUMBER() OVER (PARTITION BY s.pid ORDER BY days) = 1",
        "one value per record",
    ),
    "union without an id": ("(SELECT age FROM patients UNION SELECT days FROM stays) p", DEPENDS),
    "union of computed ids": ("(SELECT pid + 0 AS pid FROM patients UNION SELECT pid FROM stays) p", DEPENDS),
    "except": (
        "(SELECT pid FROM patients EXCEPT ALL SELECT pid FROM stays) p",
        "INTERSECT ALL and EXCEPT ALL are refused",
    ),
    "intersect all": (
        "(SELECT pid FROM patients INTERSECT ALL SELECT pid FROM stays) p",
        "INTERSECT ALL and EXCEPT ALL are refused",
    ),
    "union by name": ("(FROM patients UNION ALL BY NAME FROM stays) p", "So is BY NAME: list the columns"),
    "union with public": (
        "(SELECT pid FROM patients UNION ALL SELECT pid FROM codes) p",
        "of public rows and those of",
    ),
    "union of more": ("(SELECT pid FROM patients UNION ALL SELECT pid, 1 FROM stays) p", "1 columns over 2"),
    "union with LIMIT": ("((FROM patients) UNION ALL (FROM patients) LIMIT 1) p", DEPENDS),
    "union of other ids": (
        "(SELECT pid FROM patients UNION ALL SELECT pid FROM texts) p",
        "ids are compared as they are",
    ),
    "recursive": (
        "n p",
        "recursive queries are refused",
        "WITH RECURSIVE n AS (SELECT pid FROM patients UNION ALL SELECT pid FROM n) ",
    ),
    "two of one name": (f"{P} JOIN stays p USING (pid) WHERE p.age > 1", "several tables of FROM are named 'p'"),
    "a row number": (f"{P} JOIN stays s ON p.pid = s.pid AND s.rowid = 1", "unknown column 's.rowid'"),
    "chance": (f"{P} JOIN stays s ON p.pid = s.pid AND random() < 0.5", "random() differs"),
}
SUBQUERIES = {  # that patients p are joined with by their id, by what is said of them
    NOT_ON_PEOPLE: {
        "a computed name": "SELECT pid % 2 AS pid, days FROM stays",
        "another's name": "SELECT partner AS pid FROM stays",
        "the id of the row before": "SELECT LAG(pid) OVER (PARTITION BY pid ORDER BY days) AS pid FROM stays",
    },
    DEPENDS: {
        "groups of others": "SELECT partner AS pid, 1 AS n FROM stays GROUP BY ALL",
        "groups of a computed id": "SELECT pid % 2 AS pid FROM stays GROUP BY pid % 2",
        "rollup": "SELECT pid, COUNT(*) FROM stays GROUP BY ROLLUP (pid)",
        "limit": "SELECT * FROM stays LIMIT 2",
        "limit of a person's groups": "SELECT pid FROM stays GROUP BY pid LIMIT 1",
    },
    "is that of any row of a person": {
        "a value of any row": "SELECT pid, days + 1 AS n FROM (SELECT DISTINCT ON (pid) * FROM stays)",
        "any row, by its values": "SELECT * FROM stays QUALIFY ROW_NUMBER() OVER (PARTITION BY pid) = 1 AND days > 3",
        "any row, all columns of it": "SELECT DISTINCT * FROM (SELECT DISTINCT ON (pid) * FROM stays)",
        "any row, joined": "SELECT x.pid FROM stays x JOIN (SELECT DISTINCT ON (pid) * FROM stays) y "
        "ON x.pid = y.pid AND x.days = y.days",
    },
    "neither aggregated nor": {
        "the first": "SELECT pid, FIRST(days) FROM stays GROUP BY pid",
        "a list of a person": "SELECT pid, LIST(days) FROM stays GROUP BY pid",
        "the commonest of a person": "SELECT pid, MODE(days) FROM stays GROUP BY pid",
        "what no group has": "SELECT pid, days FROM stays GROUP BY pid",
    },
    ORDER: {
        "a product of a person": "SELECT pid, CORR(days, cost) FROM stays GROUP BY pid",
        "an ordered median": "SELECT pid, MEDIAN(days ORDER BY cost) FROM stays GROUP BY pid",
        "a spread of different values": "SELECT pid, VAR_SAMP(DISTINCT days) FROM stays GROUP BY pid",
        "an ordered sum": "SELECT pid, SUM(days ORDER BY cost) FROM stays GROUP BY pid",
    },
    "a number from 0 to 1": {
        "a quantile that a row decides": "SELECT pid, QUANTILE_CONT(days, cost) FROM stays GROUP BY pid",
    },
    "order of the rows": {
        "a sum of floats": "SELECT pid, SUM(cost) FROM stays GROUP BY pid",
        "a mean of floats": "SELECT pid, AVG(cost) FROM stays GROUP BY pid",
    },
    "write PARTITION BY the person": {
        "a window": "SELECT pid, ROW_NUMBER() OVER (ORDER BY days) AS n FROM stays",
        "a window of others": "SELECT pid, RANK() OVER (PARTITION BY partner ORDER BY days) AS n FROM stays",
        "a window of a computed id": "SELECT pid, RANK() OVER (PARTITION BY pid % 2 ORDER BY days) AS n FROM stays",
        "the row before, of others": (
            "SELECT pid, LAG(days) OVER (PARTITION BY partner ORDER BY days) AS n FROM stays"
        ),
        "the first of others": "SELECT DISTINCT ON (days) * FROM stays ORDER BY days, cost",
        "the row before, of all": "SELECT pid, LAG(days) OVER (ORDER BY days) AS n FROM stays",
    },
    "means no item of SELECT that is known": {
        "a place behind a star": "SELECT DISTINCT ON (2) *, pid FROM stays",
        "a place behind all": "SELECT DISTINCT ON (3) pid, days FROM stays",
    },
    "may be a column or an alias": {
        "two meanings": "SELECT DISTINCT ON (pid) pid, -days AS days FROM stays ORDER BY days + 1",
    },
    "DISTINCT ON beside QUALIFY": {
        "of row numbers": "SELECT DISTINCT ON (pid) *, RANK() OVER (PARTITION BY pid ORDER BY days) AS r FROM stays "
        "ORDER BY pid, r",
    },
    "are understood, with ORDER BY": {
        "numbers in no order": "SELECT pid, ROW_NUMBER() OVER (PARTITION BY pid) AS n FROM stays",
        "a rank in no order": "SELECT * FROM stays QUALIFY RANK() OVER (PARTITION BY pid) = 1",
        "the row before, in no order": "SELECT pid, LAG(days) OVER (PARTITION BY pid) AS n FROM stays",
        "the first of a window": (
            "SELECT pid, FIRST_VALUE(days) OVER (PARTITION BY pid ORDER BY days) AS n FROM stays"
        ),
        "a running sum": "SELECT pid, SUM(cost) OVER (PARTITION BY pid ORDER BY days) AS n FROM stays",
    },
    "a whole number of rows that is written out": {
        "a row as far as another says": (
            "SELECT pid, LAG(days, days) OVER (PARTITION BY pid ORDER BY days) AS n FROM stays"
        ),
    },
    "USING SAMPLE are refused": {
        "a sample": "SELECT * FROM stays USING SAMPLE 2",
    },
    "UNNEST makes several records of one": {
        "unnest": "SELECT pid, UNNEST([1, 2]) FROM stays",
    },
}
WHERE = {  # of patients p
    "Every table of a query has all columns of person=": {
        "in nobody's": "p.pid IN (SELECT who FROM nobody)",
    },
    NOT_ON_PEOPLE: {
        "exists of nobody in particular": "EXISTS (SELECT 1 FROM stays WHERE days > 1)",
        "exists that binds inside": "EXISTS (SELECT 1 FROM stays s WHERE s.pid = pid)",
        "not exists of others": "NOT EXISTS (SELECT 1 FROM stays s WHERE s.partner = p.pid)",
        "in of another": "p.pid IN (SELECT partner FROM stays)",
        "another in": "p.doctor IN (SELECT pid FROM stays)",
        "not in of another": "p.doctor NOT IN (SELECT pid FROM stays)",
        "a computed in": "p.pid + 0 IN (SELECT pid FROM stays)",
    },
    "leave out aggregates": {
        "exists that aggregates": "EXISTS (SELECT MAX(days) FROM stays s WHERE s.pid = p.pid)",
        "exists with LIMIT": "EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid LIMIT 1)",
    },
    "write SELECT 1": {
        "exists of a list": "EXISTS (SELECT LIST(days) FROM stays s WHERE s.pid = p.pid)",
    },
    IN_PLACE: {
        "exists under OR": "age > 1 OR EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid)",
        "in under NOT of AND": "NOT (age > 1 AND p.pid IN (SELECT pid FROM stays))",
        "more than all": "p.pid > ALL (SELECT pid FROM stays)",
    },
    "IN compares with one column": {
        "in of two": "p.pid IN (SELECT pid, days FROM stays)",
    },
    "neither aggregated nor": {
        "a scalar of rows": "age > (SELECT days FROM stays)",
    },
    "around the subquery": {
        "a correlated scalar": "age > (SELECT MAX(days) FROM stays s WHERE s.pid < p.pid)",
    },
    DEPENDS: {
        "distinct of others": "p.pid IN (SELECT DISTINCT partner FROM stays)",
    },
}
QUERIES = {name: (f"{COUNT} {P} JOIN {S} ON {on}", why) for name, (on, why) in ON.items()}
QUERIES |= {name: (f"{''.join(rest)}{COUNT} {item}", why) for name, (item, why, *rest) in FROM.items()}
QUERIES |= {
    name: (f"{COUNT} {P} JOIN ({subquery}) s USING (pid)", why)
    for why, subqueries in SUBQUERIES.items()
    for name, subquery in subqueries.items()
}
QUERIES |= {
    name: (f"{COUNT} {P} WHERE {where}", why) for why, listed in WHERE.items() for name, where in listed.items()
}
QUICK = 12


def test_there_are_many():
    assert len(QUERIES) >= 60


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (at >= QUICK)) for at, name in enumerate(sorted(QUERIES))]
)
def test_not_answered(name, monkeypatch):
    query, why = QUERIES[name]
    error = refusal(monkeypatch, query, None, eps=1, person="pid", rows=1, public=["codes"], **FRAMES)
    assert why in str(error)


def quick_and_slow(cases):
    return [pytest.param(*case, marks=[pytest.mark.slow] * (at >= 4)) for at, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("query", "options", "why"),
    quick_and_slow(
        [
            ("SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)", {}, r"write COUNT(DISTINCT pid)"),
            (
                "SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)",
                {"unit": "row"},
                'unit="row" is for one table',
            ),
            ("SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)", {"person": None}, "pass person="),
            (
                "SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)",
                {"person": {"patients": "pid"}},
                "the query reads stays. Name its column, or the table in public=",
            ),
            (
                "SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)",
                {"person": {"patients": ["pid", "age"], "stays": "pid"}},
                "different units",
            ),
            (
                "SELECT canton, COUNT(DISTINCT pid) FROM patients SEMI JOIN stays USING (pid) GROUP BY canton",
                {"keys": "observed", "constant": ["canton"]},
                "the keys that occur then reveal who is in both",
            ),
            (
                "SELECT canton, COUNT(DISTINCT pid) FROM patients SEMI JOIN stays USING (pid) GROUP BY canton",
                {"keys": ["ZH"]},
                "a person may be in several groups of by=canton",
            ),
            (
                "SELECT code, COUNT(*) FROM (SELECT pid, code FROM stays GROUP BY pid, code) GROUP BY code",
                {"keys": ["a"]},
                "a person may be in several groups of by=code",
            ),
            ("SELECT COUNT(DISTINCT pid) FROM patients", {"public": ["code"]}, "public= names code, but there is no"),
            ("SELECT COUNT(*) FROM patients p JOIN stays s USING (pid)", {"per_person": {"stays": "mean"}}, '"one" or'),
            ("SELECT a.days FROM (SELECT pid, days FROM stays) a JOIN stays b USING (pid)", {"rows": 1}, "neither agg"),
            ("SELECT COUNT(DISTINCT pid) FROM stays UNION ALL SELECT 1 FROM stays", {}, "no aggregate"),
            (
                "SELECT pid, COUNT(DISTINCT code) FROM stays GROUP BY pid",
                {"keys": "observed", "person": "code"},
                "by=pid",
            ),
        ]
    ),
)
def test_options_that_do_not_fit(query, options, why, monkeypatch):
    said = {"person": "pid", **options}
    assert why in str(refusal(monkeypatch, query, None, eps=1, **said, **FRAMES))


@pytest.mark.parametrize("made", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_one_frame_is_not_of_people_and_of_nobody(made, monkeypatch):
    """Else a person would decide how often others count."""
    monkeypatch.setattr(draws, "discrete_laplace", lambda *_: pytest.fail("paid"))
    frame = made(pd.DataFrame({"pid": [1, 1, 2], "code": ["a", "b", "a"]}))
    query = "SELECT COUNT(*) AS n FROM stays JOIN codes USING (code)"
    for asked in (
        lambda: pdrisk.Dataset(frame, person="pid", public={"codes": frame}),
        lambda: pdrisk.Dataset({"stays": frame}, person={"stays": "pid"}, public={"Codes": frame}),
        lambda: pdrisk.Dataset({"stays": frame, "codes": frame}, person={"stays": "pid"}, public=["CODES"]),
        lambda: pdrisk.sql(query, stays=frame, person="pid", rows=1, eps=1, public={"codes": frame}),
        lambda: pdrisk.sql(query, stays=frame, codes=frame, person="pid", rows=1, eps=1, public=["codes"]),
    ):
        with pytest.raises(
            pdrisk.ParameterError, match=r"nobody is in [cC]odes, which is the same table as (data|stays)"
        ):
            asked()


def test_one_public_frame_may_have_two_names():
    codes, stays = pd.DataFrame({"code": ["a", "b"]}), pd.DataFrame({"pid": [1, 1, 2], "code": ["a", "b", "a"]})
    d = pdrisk.Dataset({"stays": stays}, person={"stays": "pid"}, public={"codes": codes, "again": codes})
    query = "SELECT COUNT(*) AS n FROM stays JOIN codes USING (code) JOIN again USING (code)"
    assert len(d.sql(query, eps=1, rows=1)) == 1


def test_ids_with_a_collation():
    """Under NOCASE a and A would be one person, whose rows two people have."""
    con = duckdb.connect()
    con.execute("CREATE TABLE a (pid VARCHAR COLLATE NOCASE); INSERT INTO a VALUES ('a'), ('A'), ('b')")
    con.execute("CREATE TABLE b (pid VARCHAR COLLATE NOACCENT); INSERT INTO b VALUES ('a'), ('A'), ('B'), ('ä')")
    con.execute("CREATE TABLE codes (code VARCHAR COLLATE NOCASE); INSERT INTO codes VALUES ('a'), ('b')")
    con.execute("CREATE VIEW shown AS SELECT code FROM codes")

    def n(query, **options):
        return pdrisk.sql(query, con, eps=50, person="pid", curator=True, **options)["n_n"].item()

    assert n("SELECT COUNT(DISTINCT pid) AS n FROM a JOIN b USING (pid)") == 2
    assert n("SELECT COUNT(DISTINCT pid) AS n FROM (SELECT pid FROM a UNION SELECT pid FROM b) q") == 5
    assert n("SELECT COUNT(DISTINCT pid) AS n FROM a WHERE pid NOT IN (SELECT pid FROM b)") == 1
    for public in ("codes", "shown"):
        query = f"SELECT COUNT(DISTINCT pid) AS n FROM a JOIN {public} ON pid = code"
        assert n(query, public=[public], rows={"a": 1}) == 2
    con.execute("CREATE TABLE lists AS SELECT [pid] AS pid FROM a")
    con.execute("CREATE TABLE structs AS SELECT {'p': pid} AS pid FROM a")
    for table in ("lists", "structs"):
        with pytest.raises(pdrisk.ColumnTypeError, match="may have a collation, which makes one person of two"):
            n(f"SELECT COUNT(*) AS n FROM {table}", rows=1)


def test_large_ids_are_compared_as_they_are():
    """As floats, 2**53 and 2**53 + 1 are one number."""
    a, b = pd.DataFrame({"pid": [2**53]}), pd.DataFrame({"pid": [2**53 + 1]})
    answer = pdrisk.sql("SELECT COUNT(DISTINCT pid) AS v FROM a JOIN b USING (pid)", eps=1000, person="pid", a=a, b=b)
    assert answer["v"].tolist() == [0]
