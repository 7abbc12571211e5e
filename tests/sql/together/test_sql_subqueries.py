# ruff: noqa: E501 - queries as they are written
"""Subqueries of noisy groups, by a key of the SELECT around them or in its IN: each is paid once, before it is used."""

import warnings
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.errors import ParameterError
from people_losses import loss_between
from postgres_databases import connected, database, needs_server
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

DRAW = np.random.default_rng(7)
PEOPLE = pd.DataFrame({"pid": range(40), "age": DRAW.integers(20, 60, 40)})
VISITS = pd.DataFrame(
    {"pid": np.repeat(range(40), 2), "cid": DRAW.integers(1, 5, 80), "kind": DRAW.integers(0, 2, 80), "x": DRAW.integers(0, 10, 80)}
)  # fmt: skip
CLUBS = pd.DataFrame({"cid": [1, 2, 3, 4, 5], "name": list("abcde"), "zone": [1, 1, 2, 2, 2], "fee": [1, 30, 2, 50, 3]})
ZONES = pd.DataFrame({"zone": pd.array([1, 2, None], dtype="Int64"), "cid": [1, 9, 2], "town": ["u", "v", "w"]})
SHELVES = pd.DataFrame({"cid": [1, 1, 2, 3, 3], "kind": [0, 1, 1, 0, 0], "stock": [5, 20, 9, 1, 30]})
DATA = {"people": PEOPLE, "visits": VISITS, "clubs": CLUBS, "zones": ZONES, "shelves": SHELVES}
OPTIONS = {
    "person": {"people": "pid", "visits": "pid"},
    "per_person": {"people": "one"},
    "rows": {"visits": 2},
    "public": ["clubs", "zones", "shelves"],
    "bounds": {"x": (0, 10), "age": (0, 99)},
}

BUSY = "SELECT cid FROM visits GROUP BY cid HAVING COUNT(*) > 19"
#: Each with the number of its releases.
QUERIES = {
    "a column": ("SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.cid = c.cid) AS n FROM clubs c ORDER BY name", 1),
    "with all columns": ("SELECT *, (SELECT SUM(x) FROM visits v WHERE v.cid = c.cid AND v.kind = 1) AS s FROM clubs c ORDER BY cid", 1),
    "a condition": ("SELECT name FROM clubs WHERE fee > (SELECT COUNT(*) FROM visits WHERE visits.cid = clubs.cid) ORDER BY name", 1),
    "several keys": ("SELECT stock FROM shelves s WHERE stock > (SELECT 0.9 * SUM(x) / 5 FROM visits v WHERE v.cid = s.cid AND v.kind = s.kind) ORDER BY 1", 1),
    "summed": ("SELECT zone, SUM((SELECT COUNT(*) FROM visits v WHERE v.cid = c.cid)) AS n FROM clubs c GROUP BY zone ORDER BY zone", 1),
    "names of its own": ("SELECT name, (SELECT COUNT(*) FROM visits WHERE cid = c.cid) AS n, (SELECT SUM(x) FROM visits WHERE cid < c.cid) AS s FROM clubs c ORDER BY 1", 2),
    "two": ("SELECT name, (SELECT SUM(x) FROM visits v WHERE v.cid = c.cid) + (SELECT COUNT(*) FROM visits v WHERE v.cid = c.cid) AS n FROM clubs c ORDER BY 1", 2),
    "a table among others": ("SELECT town, name, (SELECT COUNT(*) FROM visits v WHERE v.cid = c.cid) AS n FROM clubs c, zones z WHERE c.zone = z.zone ORDER BY 2", 1),
    "in a CTE": ("WITH c AS (SELECT * FROM clubs WHERE fee > 2) SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.cid = c.cid) AS n FROM c ORDER BY 1", 1),
    "nobody and NULL": ("SELECT town, (SELECT COUNT(*) + 1 FROM visits v WHERE v.cid = z.cid AND v.kind = z.zone - 1) AS n FROM zones z ORDER BY 1", 1),
    "another comparison": ("SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.cid <= c.cid AND v.x < c.fee) AS n FROM clubs c ORDER BY 1", 1),
    "a condition around": ("SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.cid <= c.cid AND c.fee > 5) AS n FROM clubs c ORDER BY 1", 1),
    "beside people": ("SELECT SUM(x) AS s FROM visits v, clubs c WHERE v.cid = c.cid AND x > (SELECT 1.1 * AVG(w.x) FROM visits w WHERE w.cid = c.cid)", 2),
    "of people's keys": ("SELECT COUNT(*) AS n FROM visits v WHERE kind = 1 AND x + 20 > (SELECT COUNT(*) FROM visits w WHERE w.cid = v.cid)", 2),
    "in an aggregate": ("SELECT SUM(CASE WHEN x > (SELECT AVG(w.x) + 0.01 FROM visits w WHERE w.cid = v.cid) THEN 1 ELSE 0 END) AS n FROM visits v", 2),
    "by the person": ("SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.pid = p.pid AND kind = 1) = 0", 1),
    "of noisy groups": ("WITH w AS (SELECT cid, COUNT(*) AS n FROM visits GROUP BY cid) SELECT COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM w WHERE w.cid = v.cid AND w.n > 12) = 0", 2),
    "of noisy groups beside public rows": ("WITH w AS (SELECT visits.cid, COUNT(*) AS n FROM visits JOIN clubs USING (cid) GROUP BY visits.cid) SELECT name, (SELECT COUNT(*) FROM w WHERE w.cid = c.cid AND w.n > 20) AS k FROM clubs c ORDER BY 1", 1),
    "of public tables": ("SELECT SUM(x) AS s FROM visits v WHERE x > (SELECT COUNT(*) FROM clubs c WHERE c.zone = v.cid)", 1),
    "of a series": ("SELECT day, (SELECT SUM(x) / 2 FROM visits v WHERE v.x >= d.day AND v.x < d.day + 2) AS s FROM (SELECT UNNEST(generate_series(2, 8, 3)) AS day) d ORDER BY 1", 1),
    "a series as PostgreSQL writes it": ("SELECT g, (SELECT SUM(x) FROM visits v WHERE v.cid = g) AS s FROM generate_series(0, 3) t(g) ORDER BY g", 1),
    "groups of a series": ("SELECT t.g, COUNT(v.x) AS n FROM range(-1, 6) t(g) LEFT JOIN visits v ON v.cid = t.g GROUP BY t.g ORDER BY 1", 1),
    "days": ("SELECT d.d, (SELECT COUNT(*) FROM visits v WHERE DATE '2020-01-01' + CAST(v.x AS INTEGER) < d.d) AS n FROM generate_series(DATE '2020-01-02', DATE '2020-01-05', INTERVAL 1 DAY) d(d) ORDER BY 1", 1),
    "IN": (f"SELECT COUNT(*) AS n, SUM(x) AS s FROM visits WHERE cid IN ({BUSY})", 3),
    "NOT IN": (f"SELECT COUNT(*) AS n FROM visits WHERE cid NOT IN ({BUSY})", 2),
    "IN of none": (f"SELECT COUNT(*) AS n FROM visits WHERE cid IN ({BUSY}00)", 2),
    "NOT IN of none": (f"SELECT COUNT(*) AS n FROM visits WHERE cid NOT IN ({BUSY}00)", 2),
    "IN of a join": ("SELECT COUNT(*) AS n FROM visits v, clubs c WHERE v.cid = c.cid AND name IN (SELECT name FROM visits JOIN clubs USING (cid) GROUP BY name HAVING SUM(x) > 80)", 2),
    "IN beside public rows": (f"SELECT name FROM clubs WHERE cid IN ({BUSY}) AND zone IN (SELECT zone FROM zones) ORDER BY name", 1),
    "IN in a subquery": (f"SELECT COUNT(*) AS n FROM visits WHERE x > (SELECT AVG(x) + 0.01 FROM visits WHERE cid IN ({BUSY}))", 3),
    "NOT IN of rows": ("SELECT name FROM clubs WHERE cid NOT IN (SELECT cid FROM visits) ORDER BY name", 1),
    "keys that its WHERE rules out": ("SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.cid < 3 AND v.cid = c.cid) AS n FROM clubs c ORDER BY 1", 1),
    "NOT IN of some keys": ("SELECT name FROM clubs WHERE cid NOT IN (SELECT cid FROM visits WHERE cid < 3) ORDER BY 1", 1),
    "NOT EXISTS of some keys": ("SELECT name FROM clubs c WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.cid = c.cid AND v.cid IN (1, 2)) ORDER BY 1", 1),
    "NOT IN of rows, of NULL": ("SELECT town FROM zones WHERE zone NOT IN (SELECT kind + 1 FROM visits WHERE kind = 0) ORDER BY town", 1),
    "IN of rows": ("SELECT COUNT(*) AS n FROM clubs WHERE cid IN (SELECT DISTINCT cid FROM visits WHERE x > 7) AND fee > 1", 1),
    "IN of rows and of public ones": ("SELECT name FROM clubs WHERE cid + 1 IN (SELECT cid FROM visits) AND zone IN (SELECT zone FROM zones) ORDER BY 1", 1),
    "EXISTS of rows": ("SELECT name FROM clubs c WHERE EXISTS (SELECT * FROM visits v WHERE v.cid = c.cid AND x > c.fee) ORDER BY 1", 1),
    "NOT EXISTS of rows": ("SELECT town FROM zones z WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.cid = z.cid AND v.kind = z.zone - 1) ORDER BY 1", 1),
    "INTERSECT of rows and groups": ("SELECT name FROM visits JOIN clubs USING (cid) WHERE x > 8 INTERSECT SELECT name FROM visits JOIN clubs USING (cid) GROUP BY name HAVING COUNT(*) > 17 ORDER BY name", 2),
    "EXCEPT from public rows": ("SELECT name FROM clubs EXCEPT SELECT name FROM visits JOIN clubs USING (cid) WHERE x = 9 AND kind = 1 ORDER BY name", 1),
    "EXCEPT of three": ("SELECT name FROM visits JOIN clubs USING (cid) EXCEPT SELECT DISTINCT name FROM visits JOIN clubs USING (cid) WHERE x = 9 AND kind = 1 EXCEPT SELECT name FROM clubs WHERE fee = 30 ORDER BY name", 2),
    "IN of an INTERSECT": ("SELECT COUNT(*) AS n FROM visits JOIN clubs USING (cid) WHERE name IN (SELECT name FROM visits JOIN clubs USING (cid) WHERE x > 8 INTERSECT SELECT name FROM clubs WHERE fee > 2)", 2),
    "groups by one of public rows": ("SELECT (SELECT MAX(stock) FROM shelves s WHERE s.cid = c.cid) AS z, COUNT(*) AS n FROM visits v JOIN clubs c ON v.cid = c.cid GROUP BY z ORDER BY z", 1),
    "all of it": ("SELECT town FROM zones WHERE zone IN (SELECT zone FROM clubs WHERE cid IN (SELECT cid FROM shelves) AND fee > (SELECT COUNT(*) FROM visits v WHERE v.cid = clubs.cid)) ORDER BY 1", 1),
}  # fmt: skip
OF_SERIES = {"of a series", "groups of a series", "days"}  # which PostgreSQL writes in another way
named = pytest.mark.parametrize("name", QUERIES)


def ask(query, **options):
    keys = {"cid": [1, 2, 3, 4, 5]} if BUSY in query or "w.cid = v.cid" in query else None
    return pdrisk.sql(query, **{**OPTIONS, "eps": 6, "keys": keys, "tables": DATA, **options})


def rows_of(frame):
    return [[None if pd.isna(value) else value for value in row] for row in frame.to_numpy(dtype=object).tolist()]


def check(found, query):
    con = duckdb.connect()
    for name, frame in DATA.items():
        con.register(name, frame)
    expected = con.execute(query).df()
    assert list(found.columns) == list(expected.columns)
    assert len(found) == len(expected) > 0
    for own, other in zip(rows_of(found), rows_of(expected), strict=True):
        assert [value or 0 for value in own] == [
            pytest.approx(value or 0) if isinstance(value, float) else value or 0 for value in other
        ]  # a SUM of nobody is 0


@named
def test_as_duckdb(name, monkeypatch):
    without_noise(monkeypatch)
    query, _ = QUERIES[name]
    check(ask(query), query)


def with_missing_keys(query):
    """What pdrisk and DuckDB say, where some visits have no club."""
    visits = VISITS.assign(cid=VISITS["cid"].astype("Int64").where(VISITS.index % 5 > 0))
    con = duckdb.connect()
    for name, frame in {**DATA, "visits": visits}.items():
        con.register(name, frame)
    found = ask(query, tables={**DATA, "visits": visits}, keys={"cid": [None, 1, 2, 3, 4, 5]})
    return found.iloc[0, 0], con.execute(query).df().iloc[0, 0]


def test_not_in_with_a_missing_key(monkeypatch):
    """What is unknown may be equal to anything: nobody is surely not among them."""
    without_noise(monkeypatch)
    busy = "SELECT cid FROM visits GROUP BY cid HAVING COUNT(*) > 15"
    assert with_missing_keys(f"SELECT COUNT(*) AS n FROM visits WHERE cid NOT IN ({busy})") == (0, 0)
    found, exact = with_missing_keys(f"SELECT COUNT(*) AS n FROM visits WHERE cid IN ({busy})")
    assert found == exact > 0


def test_a_table_that_a_left_join_leaves_out_lists_no_keys():
    """Beside rows that fit none of its own it is NULL, which its rows do not list."""
    query = (
        "SELECT SUM(x) AS s FROM visits v LEFT JOIN zones c ON c.zone = v.cid WHERE "
        "(SELECT COUNT(*) FROM shelves s WHERE c.zone IS NULL OR s.stock > 8 * c.zone) > 3"
    )
    with pytest.raises(ParameterError, match="a column of the query around the subquery"):
        with_missing_keys(query)


@pytest.mark.parametrize(
    ("query", "warns"),
    [
        ("SELECT COUNT(*) FROM visits WHERE x = (SELECT MAX(x) FROM visits)", True),
        ("SELECT SUM(CASE WHEN x <> (SELECT AVG(x) FROM visits) THEN 1 ELSE 0 END) FROM visits", True),
        ("SELECT COUNT(*) FROM visits WHERE x = (SELECT x FROM visits ORDER BY x DESC LIMIT 1)", True),
        ("SELECT COUNT(*) FROM visits WHERE x >= (SELECT AVG(x) FROM visits)", False),
        (f"SELECT COUNT(*) FROM visits WHERE cid = ({BUSY} ORDER BY COUNT(*) DESC LIMIT 1)", False),
        (f"SELECT COUNT(*) FROM visits WHERE cid IN ({BUSY})", False),
        ("SELECT SUM(x) FROM visits v WHERE x > (SELECT AVG(w.x) FROM visits w WHERE w.cid = v.cid)", False),
        ("SELECT COUNT(*) FROM visits WHERE x = (SELECT MAX(fee) FROM clubs)", False),
    ],
)
def test_equality_with_a_noisy_value_is_doubtful(query, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(query)
    assert any("is compared by =" in str(each.message) for each in caught) is warns


def test_groups_of_a_public_table_do_not_depend_on_noisy_ones(monkeypatch):
    """They are those of the table, the others with nobody: also while it is not known which the noisy ones are."""
    without_noise(monkeypatch)
    busy = "SELECT name FROM visits JOIN clubs USING (cid) GROUP BY name HAVING SUM(x) > 80"
    query = f"SELECT name, COUNT(*) AS n FROM visits v, clubs c WHERE v.cid = c.cid AND name IN ({busy}) GROUP BY name"
    found = ask(query)
    assert found["name"].tolist() == list("abcde")
    con = duckdb.connect()
    for name, frame in DATA.items():
        con.register(name, frame)
    assert dict(con.execute(query).fetchall()) == dict(found[found["n"] > 0].itertuples(index=False))


@named
def test_all_is_paid_together(name, book):
    query, releases = QUERIES[name]
    preview = ask(f"EXPLAIN {query}", eps=Fraction(3, 4))
    assert preview["eps"].tolist() == pytest.approx([0.75 / releases] * releases)
    ledger = book()
    ask(query, eps=Fraction(3, 4), ledger=ledger)
    assert ledger.remaining().spent == 0.75


@pytest.mark.parametrize("name", ["a column", "another comparison", "beside people", "by the person", "IN"])  # fmt: skip
def test_one_person_costs_what_was_paid(name):
    query, _ = QUERIES[name]

    def asked(data):
        return ask(query, eps=1, tables=data)

    for pid in (17,):
        rest = {**DATA, **{each: DATA[each][DATA[each]["pid"] != pid] for each in ("people", "visits")}}
        assert loss_between(asked, DATA, rest) <= 1 + 1e-9
        assert loss_between(asked, rest, DATA) <= 1 + 1e-9


def test_too_little_is_left_for_all(book):
    ledger = book(eps=1)
    with pytest.raises(pdrisk.BudgetExceededError):
        ask(QUERIES["beside people"][0], eps=2, ledger=ledger)
    assert ledger.remaining().spent == 0


def test_keys_that_are_not_listed_have_no_value():
    found = ask(QUERIES["a column"][0], keys={"cid": [1, 2]}, eps=1e9)
    assert found["n"].notna().tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT COUNT(*) FROM visits v WHERE x > (SELECT AVG(w.x) FROM visits w WHERE w.cid < v.cid)", "v.cid is a column of the query around"),
        ("SELECT name, (SELECT x FROM visits v WHERE v.cid = c.cid) FROM clubs c", "c.cid is a column of the query around"),
        ("SELECT name, (SELECT SUM(x * c.fee) FROM visits v WHERE v.cid = c.cid) FROM clubs c", "is a column of the query around"),
        ("SELECT name, (SELECT COUNT(*) FROM visits v WHERE v.pid = c.cid GROUP BY v.kind) FROM clubs c", "is a column of the query around"),
        ("SELECT name FROM clubs c JOIN zones z ON c.fee > (SELECT COUNT(*) FROM visits v WHERE v.cid = z.cid)", "z.cid is a column of the query around"),
        ("SELECT COUNT(*) FROM visits v WHERE x > (SELECT AVG(w.x) FROM visits w WHERE w.kind = v.kind)", "GROUP BY kind needs the public list"),
        ("SELECT COUNT(*) FROM visits, range(1000000000000)", "range in FROM has from 1 to 200 rows"),
        ("SELECT COUNT(*) FROM visits, range((SELECT 3))", "the only function in FROM"),
        ("SELECT COUNT(*) FROM visits WHERE cid IN (SELECT cid FROM visits)", "joined on something else than who a person is"),
        ("SELECT COUNT(*) FROM visits WHERE cid IN (SELECT cid, COUNT(*) FROM visits GROUP BY cid)", "2 columns where one column is needed"),
        ("SELECT name FROM clubs WHERE EXISTS (SELECT cid FROM visits)", "over noisy values are refused"),
        ("SELECT name FROM clubs WHERE cid NOT IN (SELECT cdi FROM visits)", "unknown column 'cdi' in the subquery"),
        ("SELECT name FROM clubs c WHERE EXISTS (SELECT 1 FROM visits v WHERE v.cid = c.cdi)", "unknown column 'c.cdi'"),
        ("SELECT name FROM clubs WHERE cid IN (SELECT * FROM visits)", "over noisy values are refused"),
        ("SELECT name FROM clubs WHERE cid NOT IN (SELECT cid, kind FROM visits)", "over noisy values are refused"),
        ("SELECT COUNT(*) FROM visits WHERE kind IN (SELECT kind FROM visits GROUP BY kind)", "public list of its groups"),
    ],
)  # fmt: skip
def test_refused(query, why, book):
    ledger = book()
    with pytest.raises(ParameterError, match=why):
        ask(query, ledger=ledger, keys={"cid": [1, 2, 3, 4, 5]})
    assert ledger.remaining().spent == 0


@needs_server
def test_on_postgres(monkeypatch):
    without_noise(monkeypatch)
    with database() as url, connected(url) as con:
        for name, frame in DATA.items():
            columns = ", ".join(
                f"{each} {'text' if pd.api.types.is_string_dtype(frame[each]) else 'bigint'}" for each in frame
            )
            con.execute(f"CREATE TABLE {name} ({columns})")
            for row in rows_of(frame):
                con.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
        for query, _ in (each for name, each in QUERIES.items() if name not in OF_SERIES):
            check(ask(query, con=con, tables=None), query)
