"""Links: rows of tables without ids belong to the person of the row that they lead to."""

from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.errors import ColumnTypeError, ParameterError, PdriskError
from people_losses import loss_between
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

# Of TPC-H (customer -> orders -> lineitem): c, o, l; and n, notes on orders with a key of two columns.
LINKS = {
    "o": ("cid", "c", "pid"),
    "l": ("lk", "o", "ok", "unique"),
    "n": (("nk", "ng"), "o", ("ok", "g"), "unique"),
}
WORDS = pd.DataFrame({"g": ["a", "a", "b", None], "word": ["cold", "cough", "flu", "none"]})
NUMBERED = pd.array([0, 1, 2, None], dtype="Int64")
KEYS = pd.array([0, 1, 2, 3, 4, 9, None], dtype="Int64")


def small(draw):
    """A few people, orders that several of them share, and rows that lead to several, to one, or nowhere."""
    c = pd.DataFrame({"pid": NUMBERED[draw.integers(0, 4, 5)], "age": draw.choice([0.0, 5, 10], 5)})
    o = pd.DataFrame({"ok": KEYS[draw.integers(0, 7, 9)], "cid": NUMBERED[draw.integers(0, 4, 9)]})
    o["g"], o["z"] = draw.choice(["a", "b", "c", None], 9), draw.choice([0.0, 2, 9, np.nan], 9)
    item = pd.DataFrame({"lk": KEYS[draw.integers(0, 7, 14)]})
    item["x"], item["y"] = draw.choice([-3.0, 0, 4, 4, 10, 12, np.nan], 14), draw.choice([0.0, 1, 5, np.nan], 14)
    note = pd.DataFrame({"nk": KEYS[draw.integers(0, 7, 9)], "ng": draw.choice(["a", "b", None], 9)})
    note["w"] = draw.choice([0.0, 1, 6], 9)
    return {"c": c, "o": o, "l": item, "n": note}


def without(tables, pid, draw):
    """The tables without somebody's rows, and without those that then lead to nobody, which may stay as well."""
    c, o, item, note = tables.values()
    c = c[(c["pid"] != pid).fillna(True)]
    nobody = ~o["cid"].isin(c["pid"].dropna())
    left = o[~nobody]
    o = o[~(nobody & (draw.random(len(o)) < 0.5))]
    gone = ~item["lk"].isin(left["ok"].dropna()) & (draw.random(len(item)) < 0.5)
    note = note[note["nk"].isin(left["ok"].dropna()) | (draw.random(len(note)) < 0.5)]
    return {"c": c, "o": o.sample(frac=1, random_state=1), "l": item[~gone], "n": note}


CAPPED = {"rows": {"c": 1, "o": 2, "l": 3, "n": 2}}
RELATIONS = {
    "orders": ("o", {"rows": 2}),
    "items": ("l", {"rows": 2}),
    "items, rows known": ("l", CAPPED),
    "parent and child": ("o JOIN l ON ok = lk", CAPPED),
    "child and parent": ("l JOIN o ON lk = ok AND z > 1", CAPPED),
    "three": ("c JOIN o ON pid = cid JOIN l ON ok = lk", CAPPED),
    "commas": ("l, c, o WHERE ok = lk AND pid = cid AND age < 9", CAPPED),
    "two children": ("l JOIN o ON ok = lk JOIN n ON ok = nk AND g = ng AND w > 0", {"rows": 3}),
    "key of two": ("o JOIN n ON g = ng AND ok = nk JOIN l ON lk = ok", CAPPED),
    "with itself": ("l JOIN (SELECT lk AS k, y AS w FROM l) q ON lk = k", {"rows": 2}),
    "left": ("o LEFT JOIN l ON ok = lk AND x > 0", CAPPED),
    "child or none": ("l LEFT JOIN o ON ok = lk AND z > 0", CAPPED),
    "in": ("l WHERE lk IN (SELECT ok FROM o WHERE z < 5)", {"rows": 2}),
    "not in": ("l WHERE lk NOT IN (SELECT ok FROM n JOIN o ON nk = ok AND ng = g)", {"rows": 2}),
    "exists": ("l WHERE EXISTS (SELECT 1 FROM o WHERE ok = lk AND EXISTS (SELECT 1 FROM c WHERE pid = cid))", CAPPED),
    "words": ("l JOIN o ON ok = lk JOIN words USING (g)", CAPPED),
    "one number each": ("l JOIN o ON lk = ok", {"per_person": "max"}),
    "grouped": ("(SELECT cid, MAX(x) AS x, MIN(y) AS y FROM o JOIN l ON ok = lk GROUP BY cid) q", {}),
    "numbered": (
        "(SELECT x, y, ROW_NUMBER() OVER (PARTITION BY cid ORDER BY x) AS n FROM l JOIN o ON ok = lk) q WHERE n <= 2",
        {},
    ),
    "grouped by a link": ("(SELECT lk, MAX(x) AS x, MIN(y) AS y FROM l GROUP BY lk) q", {"rows": 2}),
    "grouped by a key and joined": (
        "o JOIN (SELECT lk, COUNT(*) AS x, MAX(y) AS y FROM l GROUP BY lk) q ON ok = lk", CAPPED,
    ),
    "different links": ("l JOIN (SELECT DISTINCT lk AS k FROM l) q ON lk = k", {"rows": 2}),
    "without some links": ("l WHERE lk NOT IN (SELECT ok FROM o GROUP BY ok HAVING MAX(z) > 3)", {"rows": 2}),
    "numbered by a link": (
        "(SELECT x, y, RANK() OVER (PARTITION BY lk ORDER BY x) AS n FROM l) q WHERE n = 1", {"rows": 2},
    ),
    "stacked": ("(SELECT x, y FROM l UNION ALL SELECT z, z FROM o) q", {"rows": 2}),
}  # fmt: skip


def tables_in(relation):
    """Tables that the words of a relation name, and those that they lead to."""
    words = set(relation.replace("(", " ").replace(")", " ").replace(",", " ").split())
    return {"c", "o"} | (words & {"l", "n"}), words


class TestNeighbours:
    """Somebody's absence moves what is drawn by what is paid, at most: of keys that are not unique, too."""

    @pytest.mark.parametrize("aggregate", ["COUNT(x)", "AVG(x)", "SUM(x), COUNT(*), MAX(y)"])
    @pytest.mark.parametrize("name", RELATIONS)
    def test_without_somebody(self, name, aggregate):
        relation, how = RELATIONS[name]
        if name == "orders":
            aggregate = aggregate.replace("x", "z").replace("y", "z")
        if name == "stacked":
            relation = relation.replace("SELECT x, y FROM l", "SELECT cid, x, y FROM l JOIN o ON ok = lk")
            relation = relation.replace("SELECT z, z", "SELECT cid, z AS x, z AS y")
        names, words = tables_in(relation)
        if isinstance(how.get("rows"), dict):
            how = {**how, "rows": {table: most for table, most in how["rows"].items() if table in words}}
        bounds = {"x": (0, 10), "y": (0, 6), "z": (0, 6)}
        bounds = {column: own for column, own in bounds.items() if f"({column})" in aggregate.replace("COUNT(x)", "")}
        draw = np.random.default_rng(len(relation) + len(aggregate))

        def ask(tables):
            return pdrisk.sql(
                f"SELECT {aggregate} FROM {relation}",
                **{"eps": 1, "person": {"c": "pid"}, "bounds": bounds, "links": LINKS, **how},
                public={"words": WORDS} if "words" in words else {},
                tables={table: tables[table] for table in tables if table in names},
            )

        for _ in range(6):
            tables = small(draw)
            pid = tables["c"]["pid"].mode()[0]
            rest = without(tables, pid, draw)
            one, other = (tables, rest) if draw.integers(2) else (rest, tables)
            assert loss_between(ask, one, other) <= 1 + 1e-6

    def test_windows_of_a_key_that_several_share(self):
        """Rows are numbered for each person apart: else nobody's number would be his own, and all would move by one."""
        c = pd.DataFrame({"pid": range(8)})
        o = pd.DataFrame({"ok": 1, "cid": range(8)})
        item = pd.DataFrame({"lk": 1, "x": [0, 10] * 3, "y": range(6)})

        def ask(people):
            return pdrisk.sql(
                "SELECT SUM(x) AS s FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY lk ORDER BY y) AS n FROM l) q "
                "WHERE n % 2 = 0",
                eps=1, rows=1, bounds={"x": (0, 10)}, person={"c": "pid"}, links={name: LINKS[name] for name in "ol"},
                tables={"c": people, "o": o, "l": item},
            )  # fmt: skip

        for pid in range(8):
            assert loss_between(ask, c, c[c["pid"] != pid]) <= 1 + 1e-9

    @pytest.mark.parametrize("most", [1, 2, 50])
    def test_a_row_counts_for_each_person_it_leads_to_and_each_has_a_limit(self, most):
        """By the definition: pairs of a row and a person, of whom nobody has more than `most`."""
        draw = np.random.default_rng(most)
        for _ in range(20):
            tables = small(draw)
            c, o, item, _ = tables.values()
            people = set(c["pid"].dropna())
            orders = [(k, pid) for k, pid in zip(o["ok"], o["cid"], strict=True) if pid is not pd.NA and pid in people]
            pairs = [pid for lk in item["lk"] for k, pid in orders if lk is not pd.NA and k is not pd.NA and lk == k]
            found = pdrisk.sql(
                "SELECT COUNT(*) AS n FROM l",
                eps=1, person={"c": "pid"}, links=LINKS, rows=most, curator=True, c=c, o=o, l=item,
            )  # fmt: skip
            assert found["n_n"].tolist() == [sum(min(most, n) for n in Counter(pairs).values())]


# A second way to people: rows with ids that also lead to an order, and rows that lead to an order and to a note.
TWO_WAYS = {
    **LINKS,
    "m": ("mk", "o", "ok", "unique"),
    "t": [("tk", "o", "ok", "unique"), (("tn", "tg"), "n", ("nk", "ng"), "unique")],
}
BY_TWO_WAYS = {
    "ids and a link": ("m JOIN o ON mk = ok", {"m": 2, "o": 2}),
    "key, then link": ("o JOIN m ON mk = ok AND z > 1", {"m": 2, "o": 2}),
    "two links to one key": ("m JOIN l ON mk = lk", {"m": 2, "l": 3}),
    "left": ("o LEFT JOIN m ON mk = ok", {"m": 2, "o": 2}),
    "left of links": ("m LEFT JOIN o ON mk = ok", {"m": 2, "o": 2}),
    "in": ("m WHERE mk IN (SELECT ok FROM o WHERE z < 5)", {"m": 2}),
    "exists": ("m WHERE EXISTS (SELECT 1 FROM l WHERE mk = lk AND y > 0)", {"m": 2}),
    "grouped by the link": ("(SELECT mk, MAX(p) AS p FROM m GROUP BY mk) q", {"m": 2}),
    "grouped and joined": ("o JOIN (SELECT mk, COUNT(*) AS p FROM m GROUP BY mk) q ON ok = mk", {"m": 2, "o": 2}),
    "different links": ("(SELECT DISTINCT mk, p FROM m) q", {"m": 2}),
    "second of two links": ("t JOIN n ON tn = nk AND tg = ng", {"t": 2, "n": 2}),
    "grouped by the second": ("(SELECT tn, tg, MAX(p) AS p FROM t GROUP BY tn, tg) q", {"t": 2}),
    "both": ("t JOIN n ON tn = nk AND tg = ng JOIN m ON tk = mk", {"t": 2, "n": 2, "m": 1}),
}  # fmt: skip


def small_with_two_ways(draw):
    m = pd.DataFrame({"who": NUMBERED[draw.integers(0, 4, 9)], "mk": KEYS[draw.integers(0, 7, 9)]})
    m["p"] = draw.choice([0.0, 3, 10, np.nan], 9)
    t = pd.DataFrame({"tk": KEYS[draw.integers(0, 7, 9)], "tn": KEYS[draw.integers(0, 7, 9)]})
    t["tg"], t["p"] = draw.choice(["a", "b", None], 9), draw.choice([0.0, 3, 10], 9)
    return {**small(draw), "m": m, "t": t}


class TestTwoWays:
    """Rows with several ways to people are those of one person, and joins keep what both ways lead to."""

    @staticmethod
    def asked(query, tables, **how):
        words = set(query.replace("(", " ").replace(")", " ").split())
        there = {"c", "o"} | (words & {"l", "n", "m", "t"}) | ({"n"} if "t" in words else set())
        return pdrisk.sql(
            query, person={"c": "pid", "m": "who"}, links=TWO_WAYS,
            tables={name: tables[name] for name in tables if name in there}, **how,
        )  # fmt: skip

    @pytest.mark.parametrize("name", BY_TWO_WAYS)
    def test_without_somebody(self, name):
        relation, rows = BY_TWO_WAYS[name]
        column = "x" if name == "two links to one key" else "p" if name != "both" else "w"
        draw = np.random.default_rng(len(relation))

        def ask(tables):
            query = f"SELECT COUNT({column}), SUM({column}) FROM {relation}"
            return self.asked(query, tables, eps=1, rows=rows, bounds={column: (0, 10)})

        for _ in range(6):
            tables = small_with_two_ways(draw)
            pid = tables["c"]["pid"].mode()[0]
            rest = without({name: tables[name] for name in "coln"}, pid, draw) | {"t": tables["t"]}
            rest["m"] = tables["m"][(tables["m"]["who"] != pid).fillna(True)]
            one, other = (tables, rest) if draw.integers(2) else (rest, tables)
            assert loss_between(ask, one, other) <= 1 + 1e-6

    def test_rows_of_a_join_are_those_that_both_ways_lead_to(self):
        draw = np.random.default_rng(4)
        for _ in range(20):
            tables = small_with_two_ways(draw)
            c, o, m = (tables[name].dropna(subset=tables[name].columns[:2]) for name in "com")
            pairs = m.merge(o, left_on="mk", right_on="ok").merge(
                c.drop_duplicates("pid"), left_on="cid", right_on="pid"
            )
            found = self.asked("SELECT COUNT(*) AS n FROM m JOIN o ON mk = ok", tables, eps=1, rows=99, curator=True)
            assert found["n_n"].tolist() == [(pairs["who"] == pairs["cid"]).sum()]

    def test_texts_say_so(self):
        tables = small_with_two_ways(np.random.default_rng(5))
        joined = self.asked("SELECT COUNT(*) AS n FROM m JOIN o ON mk = ok", tables, eps=1, rows=2)
        assert "m and o are rows of one person" in " ".join(pdrisk.explain(joined, "publication").split())
        alone = self.asked("SELECT COUNT(*) AS n FROM o JOIN l ON ok = lk", tables, eps=1, rows=2)
        assert "rows of one person" not in " ".join(pdrisk.explain(alone, "publication").split())

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(*) AS n FROM (SELECT mk, MAX(p) AS p FROM m GROUP BY mk) q",
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT mk FROM m) q",
            "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY mk ORDER BY p) AS r "
            "FROM m) q WHERE r = 1",
        ],
    )  # fmt: skip
    def test_rows_whose_further_link_is_missing_are_no_group_of_each_person(self, query):
        """SQL puts them in one group, which is of many people; they are left out, and texts say so."""
        c = pd.DataFrame({"pid": range(20)})
        o = pd.DataFrame({"ok": range(30), "cid": [at % 20 for at in range(30)]})
        m = pd.DataFrame({"who": [at % 20 for at in range(60)], "p": 1.0})
        m["mk"] = pd.array([None if at % 7 == 0 else at % 20 for at in range(60)], dtype="Int64")
        found = self.asked(query, {"c": c, "o": o, "m": m}, eps=1e6, rows=9)
        con = duckdb.connect()
        con.register("m", m)
        exact = con.execute(query.replace("FROM m", "FROM (SELECT * FROM m WHERE mk IS NOT NULL) m")).fetchone()
        assert tuple(found["n"]) == exact < con.execute(query).fetchone()
        assert '("mk" IS NOT NULL)' in " ".join(pdrisk.explain(found, "publication").split())
        by_both = query.replace("DISTINCT mk", "DISTINCT mk, who").replace("BY mk", "BY mk, who")
        both = self.asked(by_both, {"c": c, "o": o, "m": m}, eps=1e6, rows=9)
        assert tuple(both["n"]) == con.execute(by_both).fetchone()
        assert "IS NOT NULL" not in " ".join(pdrisk.explain(both, "publication").split())

    def test_foreign_keys_as_the_catalog_has_them(self):
        con = duckdb.connect()
        con.execute(
            "CREATE TABLE patient (pid INT PRIMARY KEY); "
            "CREATE TABLE stay (sid INT PRIMARY KEY, pid INT REFERENCES patient (pid)); "
            "CREATE TABLE kind (kid INT PRIMARY KEY); "
            "CREATE TABLE event (pid INT REFERENCES patient (pid), sid INT REFERENCES stay (sid), kid INT REFERENCES "
            "kind (kid), type INT REFERENCES kind (kid)); INSERT INTO patient SELECT range FROM range(9); "
            "INSERT INTO kind VALUES (1); "
            "INSERT INTO stay SELECT range + 20, range % 9 FROM range(30); "
            "INSERT INTO event SELECT s.pid, s.sid, 1, 1 FROM stay AS s, range(3)"
        )
        links = pdrisk.schema_from(con).links
        query = "SELECT COUNT(*) AS n FROM event AS e JOIN stay AS s ON e.sid = s.sid"
        for person in ({"patient": "pid"}, {"patient": "pid", "stay": "pid", "event": "pid"}):
            answer = pdrisk.sql(query, con, person=person, public=["kind"], links=links, rows=12, eps=1, curator=True)
            assert answer["n_n"].tolist() == [90]


TPC = """
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, segment VARCHAR);
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER, priority VARCHAR);
CREATE TABLE lineitem (l_orderkey INTEGER, quantity INTEGER);
INSERT INTO customer SELECT CAST(i AS INTEGER), CASE WHEN i % 3 = 0 THEN 'auto' ELSE 'home' END FROM {numbers}(0, 39) AS t (i);
INSERT INTO orders SELECT CAST(i AS INTEGER), CAST(i * 7 % 45 AS INTEGER), CASE WHEN i % 4 = 0 THEN 'high' ELSE 'low' END
    FROM {numbers}(0, 199) AS t (i);
INSERT INTO orders VALUES (900, NULL, 'high'), (901, 77, 'low');
INSERT INTO lineitem SELECT CAST(i * 5 % 207 AS INTEGER), CAST(i % 11 AS INTEGER) FROM {numbers}(0, 599) AS t (i);
INSERT INTO lineitem VALUES (NULL, 5), (900, 5), (901, 5), (77777, 5)
"""  # noqa: E501
OF_TPC = {"orders": ("o_custkey", "customer", "c_custkey"), "lineitem": ("l_orderkey", "orders", "o_orderkey")}
BY_WORD = {**OF_TPC, "lineitem": (*OF_TPC["lineitem"], "unique")}
PERSON = {"customer": "c_custkey"}
# What is asked, and the same of the rows that lead to somebody.
ASKED = {
    "SELECT COUNT(*) AS n, SUM(quantity) AS q FROM lineitem": (
        "SELECT COUNT(*), SUM(quantity) FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "JOIN customer ON o_custkey = c_custkey"
    ),
    "SELECT COUNT(*) AS n FROM orders WHERE priority = 'high'": (
        "SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey WHERE priority = 'high'"
    ),
    "SELECT COUNT(*) AS n, SUM(quantity) AS q FROM orders JOIN lineitem ON o_orderkey = l_orderkey "
    "WHERE priority = 'low'": (
        "SELECT COUNT(*), SUM(quantity) FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "JOIN customer ON o_custkey = c_custkey WHERE priority = 'low'"
    ),
    "SELECT COUNT(*) AS n FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey": (
        "SELECT COUNT(*) FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey "
        "JOIN orders ON a.l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey"
    ),
    "SELECT COUNT(*) AS n FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey "
    "AND segment = 'auto'": (
        "SELECT COUNT(*) FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey "
        "AND segment = 'auto'"
    ),
    "SELECT COUNT(*) AS n FROM orders LEFT JOIN lineitem ON o_orderkey = l_orderkey": (
        "SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey LEFT JOIN lineitem "
        "ON o_orderkey = l_orderkey"
    ),
    # as the fourth query of TPC-H
    "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND "
    "quantity > 8)": (
        "SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey WHERE EXISTS (SELECT 1 FROM lineitem "
        "WHERE l_orderkey = o_orderkey AND quantity > 8)"
    ),
    "SELECT COUNT(DISTINCT o_custkey) AS n FROM orders WHERE o_orderkey NOT IN (SELECT l_orderkey FROM lineitem "
    "WHERE quantity > 8)": (
        "SELECT COUNT(DISTINCT o_custkey) FROM orders JOIN customer ON o_custkey = c_custkey WHERE o_orderkey NOT IN "
        "(SELECT l_orderkey FROM lineitem WHERE quantity > 8 AND l_orderkey IS NOT NULL)"
    ),
    "SELECT SUM(n) AS n FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) AS q": (
        "SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey"
    ),
    "SELECT COUNT(*) AS n, SUM(n) AS s FROM (SELECT l_orderkey, COUNT(*) AS n FROM lineitem "
    "GROUP BY l_orderkey) AS q": (
        "SELECT COUNT(DISTINCT l_orderkey), COUNT(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "JOIN customer ON o_custkey = c_custkey"
    ),
    # as the eighteenth query of TPC-H
    "SELECT COUNT(*) AS n FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey "
    "HAVING SUM(quantity) > 15)": (
        "SELECT COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey WHERE o_orderkey IN "
        "(SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(quantity) > 15)"
    ),
    "SELECT COUNT(*) AS n FROM (SELECT quantity, ROW_NUMBER() OVER (PARTITION BY l_orderkey ORDER BY quantity DESC) "
    "AS r FROM lineitem) AS q WHERE r = 1": (
        "SELECT COUNT(DISTINCT l_orderkey) FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
        "JOIN customer ON o_custkey = c_custkey"
    ),
}
OPTIONS = {"eps": 1, "bounds": {"quantity": (0, 10), "n": (0, 100)}}


def options(query):
    of_people = "DISTINCT" in query or "GROUP BY o_custkey" in query
    return {
        **OPTIONS,
        "bounds": {k: v for k, v in OPTIONS["bounds"].items() if f"({k})" in query or k == "quantity"},
    } | ({} if of_people else {"rows": 2000})


def made(run, numbers="generate_series"):
    for statement in TPC.format(numbers=numbers).split(";\n"):
        run(statement)


@pytest.fixture(scope="module")
def duck():
    con = duckdb.connect()
    made(con.execute)
    return con


@pytest.fixture
def exact(monkeypatch):
    without_noise(monkeypatch)


def assert_as_joined(answer, wanted):
    assert answer.iloc[0].astype(float).round(3).tolist() == [float(each) for each in wanted]


@pytest.mark.usefixtures("exact")
class TestOnEveryEngine:
    """An answer before noise is that of the plain query, of the rows that lead to somebody."""

    @pytest.mark.parametrize("query", ASKED)
    def test_tables_of_duckdb(self, duck, query):
        answer = pdrisk.sql(query, duck, person=PERSON, links=OF_TPC, **options(query))
        assert_as_joined(answer, duck.execute(ASKED[query]).fetchall()[0])

    @pytest.mark.parametrize("kind", ["df", "to_arrow_table", "pl"])
    @pytest.mark.parametrize("query", ASKED)
    def test_frames(self, duck, query, kind):
        frames = {name: getattr(duck.table(name), kind)() for name in ("customer", "orders", "lineitem")}
        if kind == "df":
            frames = {name: frame.convert_dtypes() for name, frame in frames.items()}
        answer = pdrisk.sql(query, person=PERSON, links=BY_WORD, tables=frames, **options(query))
        assert_as_joined(answer, duck.execute(ASKED[query]).fetchall()[0])

    @pytest.mark.parametrize("query", ASKED)
    def test_files(self, duck, query, tmp_path):
        files = {name: str(tmp_path / f"{name}.parquet") for name in ("customer", "orders", "lineitem")}
        for name, file in files.items():
            duck.table(name).write_parquet(file)
        d = pdrisk.Dataset(files, person=PERSON, links=BY_WORD)
        assert_as_joined(d.sql(query, **options(query)), duck.execute(ASKED[query]).fetchall()[0])

    @pytest.mark.parametrize("query", ASKED)
    def test_a_dataset(self, duck, query):
        d = pdrisk.Dataset(
            {"Lineitem": (duck, "lineitem"), "ORDERS": (duck, "orders"), "customer": (duck, "customer")},
            person=PERSON, links=OF_TPC,
        )  # fmt: skip
        assert_as_joined(d.sql(query, **options(query)), duck.execute(ASKED[query]).fetchall()[0])

    @needs_server
    def test_postgres(self, duck):
        with database() as url, connected(url) as connection:
            made(connection.execute)
            tables = {name: (connection, name) for name in ("customer", "orders", "lineitem")}
            d = pdrisk.Dataset(tables, person=PERSON, links=OF_TPC)
            for query, plain in ASKED.items():
                wanted = duck.execute(plain).fetchall()[0]
                answer = pdrisk.sql(query, connection, person=PERSON, links=OF_TPC, **options(query))
                assert_as_joined(answer, wanted)
                assert_as_joined(d.sql(query, **options(query)), wanted)

    @needs_spark
    @pytest.mark.slow
    def test_spark(self, duck):
        spark = session()
        for name in ("customer", "orders", "lineitem"):
            frame = spark.createDataFrame(duck.table(name).df().convert_dtypes())
            frame.createOrReplaceTempView(name)
        for query, plain in ASKED.items():
            answer = pdrisk.sql(query, spark, person=PERSON, links=BY_WORD, **options(query))
            assert_as_joined(answer, duck.execute(plain).fetchall()[0])
            with pytest.raises(ParameterError, match="UNIQUE"):
                pdrisk.sql("SELECT COUNT(*) FROM lineitem", spark, eps=1, rows=1, person=PERSON, links=OF_TPC)


class TestUniqueKeys:
    """A key is unique by an enforced constraint of the catalog, or by the owner's word, which texts name."""

    QUERY = "SELECT COUNT(*) FROM lineitem"

    @staticmethod
    def asked(con, links=OF_TPC):
        return pdrisk.sql(TestUniqueKeys.QUERY, con, eps=1, rows=2, person=PERSON, links=links)

    def test_texts_name_the_word_where_the_catalog_does_not_say_it(self, duck):
        frames = {name: duck.table(name).df().convert_dtypes() for name in ("customer", "orders", "lineitem")}
        by_word = pdrisk.sql(self.QUERY, eps=1, rows=2, person=PERSON, links=BY_WORD, tables=frames)
        by_catalog = self.asked(duck, BY_WORD)
        words = "a link of lineitem to o_orderkey of orders (unique, on the owner's word)"
        assert words in " ".join(pdrisk.explain(by_word, "publication").split())
        assert "(unique, on the owner" in str(by_word.attrs)
        assert "owner's word" not in pdrisk.explain(by_catalog, "publication")

    @pytest.mark.parametrize(
        ("key", "is_unique"),
        [("PRIMARY KEY (o_orderkey)", True), ("UNIQUE (o_orderkey)", True), ("UNIQUE (o_orderkey, o_custkey)", False),
         ("CHECK (o_orderkey > 0)", False)],
    )  # fmt: skip
    def test_constraints_of_duckdb(self, key, is_unique):
        con = duckdb.connect()
        con.execute(
            f"CREATE TABLE customer (c_custkey INT); CREATE TABLE orders (o_orderkey INT, o_custkey INT, {key}); "
            "CREATE TABLE lineitem (l_orderkey INT)"
        )
        if is_unique:
            self.asked(con)
        else:
            with pytest.raises(ParameterError, match='"unique"'):
                self.asked(con)
        con.execute("CREATE VIEW seen AS SELECT * FROM orders")
        tables = {name: (con, name) for name in ("customer", "lineitem")}
        d = pdrisk.Dataset({**tables, "orders": (con, "seen")}, person=PERSON, links=OF_TPC)
        with pytest.raises(ParameterError, match='"unique"'):
            d.sql(self.QUERY, eps=1, rows=2)
        with pytest.raises(ParameterError, match="seen, which is a view: name the tables"):
            pdrisk.sql(
                "SELECT COUNT(*) FROM seen", con, eps=1, rows=2, person=PERSON,
                links={"seen": OF_TPC["orders"]},
            )  # fmt: skip

    @needs_server
    @pytest.mark.parametrize(
        ("key", "is_unique"),
        [("PRIMARY KEY (o_orderkey)", True), ("UNIQUE (o_orderkey) DEFERRABLE", False), ("UNIQUE (o_orderkey)", True)],
    )
    def test_constraints_of_postgres(self, key, is_unique):
        with database() as url, connected(url) as connection:
            connection.execute(
                f"CREATE TABLE customer (c_custkey int); CREATE TABLE orders (o_orderkey int, o_custkey int, {key}); "
                "CREATE TABLE lineitem (l_orderkey int)"
            )
            if not is_unique:
                with pytest.raises(ParameterError, match='"unique"'):
                    self.asked(connection)
                return
            self.asked(connection)
            connection.execute("CREATE TABLE late () INHERITS (orders)")  # whose rows may have the same keys
            with pytest.raises(ParameterError, match='"unique"'):
                self.asked(connection)


A = ("a", "b", "c")


class TestRefused:
    """Errors that say what to write, and hold no value of the data."""

    @pytest.mark.parametrize(
        ("links", "person", "said"),
        [
            ([A], {"b": "pid"}, "a dict by table"),
            ({"a": "b"}, {"b": "pid"}, "as in links="),
            ({"a": ("x", "b")}, {"b": "pid"}, "as in links="),
            ({"a": ("x", 3, "y")}, {"b": "pid"}, "as in links="),
            ({"a": []}, {"b": "pid"}, "empty"),
            ({"a": (("x", "y"), "b", "z")}, {"b": "pid"}, "2 columns with 1"),
            ({"a": (("x", "y"), "b", ("z", "z"))}, {"b": "pid"}, "2 columns with 1"),
            ({"a": ("x", "b", "y", "sure")}, {"b": "pid"}, 'only "unique"'),
            ({"a": ("x", "b", "y"), "A": ("x", "b", "y")}, {"b": "pid"}, "in other capitals"),
            ({"a": ("x", "b", "y")}, None, "pass person="),
            ({"a": ("x", "b", "pid")}, {"b": "pid", "a": "pid"}, "would not be protected"),
            ({"a": [("x", "b", "pid"), ("y", "b", "pid")]}, {"b": "pid"}, "that y names in b would not be protected"),
            ({"a": ("x", "d", "y")}, {"b": "pid", "a": "pid"}, "the query reads d. Name its column"),
            ({"a": ("x", "a", "y")}, {"b": "pid"}, "circle, a -> a"),
            ({"a": ("x", "b", "y"), "b": ("x", "a", "y")}, "pid", "circle, a -> b -> a"),
            ({"a": ("x", "b", "y"), "b": ("x", "c", "y")}, {"d": "pid"}, "a -> b -> c, and person= does not say"),
        ],
    )
    def test_before_anything_is_looked_at(self, links, person, said):
        frame = pd.DataFrame({"pid": [1], "x": [1], "y": [1]})
        tables = {name: frame for name in "abcd"}  # noqa: C420 - of frames
        with pytest.raises((ParameterError, ColumnTypeError), match=said):
            pdrisk.sql("SELECT COUNT(*) FROM a", eps=1, rows=1, person=person, links=links, tables=tables)
        with pytest.raises(PdriskError):
            pdrisk.Dataset(tables, person=person, links=links)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"links": {"l": ("lk", "orders", "ok", "unique")}, "person": "pid"}, "unknown table 'orders'"),
            ({"links": {"l": ("lk", "o", "ok"), "o": LINKS["o"]}}, 'say so by "unique"'),
            ({"links": {"l": ("lk", "o", "okk", "unique"), "o": LINKS["o"]}}, "unknown column 'okk'"),
            ({"links": {"l": ("lkk", "o", "ok", "unique"), "o": LINKS["o"]}}, "unknown column 'lkk'"),
            ({"links": {"l": ("x", "o", "ok", "unique"), "o": LINKS["o"]}}, "DOUBLE"),
            ({"links": {**LINKS, "l": [LINKS["l"], ("lk", "c", "pid")]}}, "would not be protected"),
            ({"links": LINKS, "public": ["l"]}, "both name l"),
            ({"links": {"l": ("lk", "o", "ok", "unique")}, "public": ["o"], "person": "pid"}, "o is public"),
            ({"links": LINKS, "unit": "row", "rows": None}, "unit"),
        ],
    )
    def test_when_a_table_is_read(self, options, said):
        tables = small(np.random.default_rng(0))
        with pytest.raises(PdriskError, match=said):
            pdrisk.sql(
                "SELECT COUNT(*) FROM l", **{"eps": 1, "rows": 1, "person": {"c": "pid"}, "tables": tables, **options}
            )

    def test_a_table_that_declares_its_own_people(self):
        tables = small(np.random.default_rng(0))
        declared = tables["l"].dprisk.declare(person="lk")
        tables["l"] = declared if declared is not None else tables["l"]
        with pytest.raises(ParameterError, match="without person="):
            pdrisk.sql("SELECT COUNT(*) FROM l", eps=1, rows=1, person={"c": "pid"}, links=LINKS, tables=tables)

    @pytest.mark.parametrize("on", ["lk = age", "lk = ok AND FALSE OR TRUE", "lk % 2 = ok", "lk <= ok"])
    def test_joins_on_something_else(self, on):
        tables = small(np.random.default_rng(0))
        with pytest.raises(PdriskError, match="else than who a person is"):
            pdrisk.sql(
                f"SELECT COUNT(*) FROM l JOIN (SELECT ok, CAST(z AS INTEGER) AS age, cid FROM o) q ON {on}",
                eps=1, rows=1, person={"c": "pid"}, links=LINKS, tables=tables,
            )  # fmt: skip

    def test_a_parent_joined_with_itself_on_its_key_alone(self):
        """Of one table nothing says here that the key is unique."""
        tables = small(np.random.default_rng(0))
        with pytest.raises(ParameterError, match="else than who a person is"):
            pdrisk.sql(
                "SELECT COUNT(*) FROM o JOIN (SELECT ok AS k FROM o) q ON ok = k",
                eps=1, rows=1, person={"c": "pid"}, links=LINKS, tables=tables,
            )  # fmt: skip

    @pytest.mark.parametrize(
        ("links", "said"),
        [
            ({"l": ("lk", "p", "ok")}, "p, which is no table|does not say who"),
            ({"l": ("lkk", "c", "pid"), "o": LINKS["o"], "n": LINKS["n"]}, "lkk"),
            ({"o": LINKS["o"], "n": LINKS["n"]}, "says nothing of table l"),
        ],
    )
    def test_a_dataset(self, links, said):
        with pytest.raises(PdriskError, match=said):
            pdrisk.Dataset(small(np.random.default_rng(0)), person={"c": "pid"}, links=links)

    def test_a_dataset_of_one_table(self):
        with pytest.raises(ParameterError):
            pdrisk.Dataset(pd.DataFrame({"pid": [1]}), person="pid", links={"l": ("lk", "o", "ok")})


class TestAsASchemaSays:
    """Links that a catalog's foreign keys are, and what declarations of tables mean beside them."""

    def test_foreign_keys(self):
        con = duckdb.connect()
        con.execute(
            "CREATE TABLE pupil (pid INT PRIMARY KEY); CREATE TABLE kinds (kind TEXT PRIMARY KEY); "
            "CREATE TABLE pet (pet INT PRIMARY KEY, owner INT REFERENCES pupil (pid), kind TEXT REFERENCES kinds); "
            "CREATE TABLE visit (pet INT REFERENCES pet (pet), cost INT)"
        )
        con.execute(
            "INSERT INTO pupil FROM range(40); INSERT INTO kinds VALUES ('cat'), ('dog'); "
            "INSERT INTO pet SELECT i, i % 40, CASE WHEN i % 4 = 0 THEN 'cat' ELSE 'dog' END FROM range(60) t (i); "
            "INSERT INTO visit SELECT i % 60, 7 FROM range(90) t (i)"
        )
        schema = pdrisk.schema_from(con)
        assert schema.links == {
            "pet": [("owner", "pupil", "pid"), ("kind", "kinds", "kind")],
            "visit": [("pet", "pet", "pet")],
        }
        assert "# links = {'pet': [('owner', 'pupil', 'pid')" in repr(schema)
        answer = pdrisk.sql(
            "SELECT kind, SUM(cost) AS cost FROM visit JOIN pet USING (pet) GROUP BY kind",
            con, eps=1e6, rows=9, bounds={"cost": (0, 10)}, keys=["cat", "dog"], person={"pupil": "pid"},
            public=["kinds"], links=schema.links,
        )  # fmt: skip
        assert answer["cost"].round().tolist() == [23 * 7, 67 * 7]  # each pet below 30 has two of the 90 visits

    def test_tables_of_a_schema_that_is_not_the_current_one(self):
        """Names as `schema_from` prints them, with that of the schema."""
        with duckdb.connect() as con:
            con.execute("CREATE SCHEMA cd; CREATE TABLE cd.members AS SELECT range AS memid FROM range(100)")
            con.execute("ALTER TABLE cd.members ADD PRIMARY KEY (memid)")
            con.execute("CREATE TABLE cd.bookings (memid BIGINT REFERENCES cd.members (memid), facid BIGINT)")
            con.execute("INSERT INTO cd.bookings SELECT range % 100, range % 3 FROM range(400)")
            con.execute("CREATE TABLE cd.facilities AS SELECT range AS facid FROM range(3)")
            links = pdrisk.schema_from(con).links
            assert links == {"cd.bookings": [("memid", "cd.members", "memid")]}
            options = {
                "person": {"cd.members": "memid"}, "per_person": {"cd.members": "one"}, "rows": {"cd.bookings": 4},
                "links": links, "public": ["cd.facilities"], "eps": 1e9,
            }  # fmt: skip
            query = "SELECT facid, COUNT(*) AS n FROM cd.bookings JOIN cd.facilities USING (facid) GROUP BY facid"
            assert pdrisk.sql(query, con, **options)["n"].tolist() == [134, 133, 133]
            assert pdrisk.sql("SELECT COUNT(*) FROM cd.members", con, **options).iloc[0, 0] == 100
            with pytest.raises(ParameterError, match=r"no such table. Did you mean 'cd.facilities'"):
                pdrisk.sql(query, con, **{**options, "public": ["facilities"]})
            with pytest.raises(ParameterError, match=r"there is cd.bookings, .*Did you mean 'cd.members'"):
                pdrisk.sql("SELECT COUNT(*) FROM members", con, **options)
            with pytest.raises(
                ParameterError, match=r"tables of one name in several schemas, cd\.members, survey\.members"
            ):
                pdrisk.sql(query, con, **{**options, "person": {"cd.members": "memid", "survey.members": "pid"}})

    def test_a_join_with_the_parent_keeps_the_rows_of_a_person(self, duck):
        rows = {"customer": 1, "orders": 4, "lineitem": 6}
        said = []
        for query, names in [
            ("orders JOIN lineitem ON o_orderkey = l_orderkey", ("orders", "lineitem")),
            ("lineitem JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey", tuple(rows)),
            ("lineitem a JOIN lineitem b USING (l_orderkey)", ("lineitem",)),
        ]:
            answer = pdrisk.sql(
                f"SELECT COUNT(*) FROM {query}", duck, eps=1, person=PERSON, links=OF_TPC,
                rows={name: rows[name] for name in names},
            )  # fmt: skip
            said.append(" ".join(pdrisk.explain(answer, "publication").split()))
        assert ["at most 6 rows" in each for each in said] == [True, True, False]
        assert "at most 36 rows" in said[2]

    def test_a_view_of_a_linked_table(self, duck):
        cursor = duck.cursor()
        cursor.execute(
            "CREATE OR REPLACE VIEW items AS SELECT l_orderkey AS item, quantity FROM lineitem WHERE quantity > 5"
        )
        answer = pdrisk.sql(
            "SELECT COUNT(*) AS n FROM items JOIN orders ON item = o_orderkey",
            cursor, eps=1e6, rows=600, person=PERSON, links=OF_TPC,
        )  # fmt: skip
        (wanted,) = cursor.execute(
            "SELECT COUNT(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer "
            "ON o_custkey = c_custkey WHERE quantity > 5"
        ).fetchall()[0]
        assert answer["n"].tolist() == [wanted]

    def test_a_ledger_knows_people_by_the_table_of_people(self, duck, book):
        frames = {name: duck.table(name).df().convert_dtypes() for name in ("customer", "orders", "lineitem")}
        d = pdrisk.Dataset(frames, person=PERSON, links=BY_WORD, ledger=book(eps=10))
        first, again = (d.sql("SELECT COUNT(*) AS n FROM lineitem", rows=5, eps=1) for _ in range(2))
        assert first["n"].tolist() == again["n"].tolist()
