"""What a catalog declares is what the database lets in: bounds and keys of constraints, on DuckDB and PostgreSQL.

The oracle is the database itself: it is offered every value of a list, and what it takes must lie within the bounds and
among the keys that `pdrisk.schema_from` gives.
"""

import pickle
import re
import sys

import duckdb
import pandas as pd
import pytest

import pdrisk
from postgres_databases import connected, database, needs_server, role

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

NUMBERS = [-100, -3.5, -3, -2.5, -1, 0, 0.1, 0.5, 1, 1.5, 2, 2.5, 3, 4, 4.5, 5, 6, 7, 7.5, 10, 1000, 5_000_000_000]
DAYS = [
    f"{day} {time}"
    for day in ("1999-12-31", "2000-01-01", "2000-01-02", "2005-06-07", "2009-12-31", "2010-01-01", "2010-01-02")
    for time in ("00:00:00", "06:00:00", "12:30:00.25", "23:59:59.999999")
]
TEXTS = ["", "a", "A", "b", "b'c", "c", "x", "y", "z", "a\nb", '"', "é"]
# Type and CHECK of a column x; then the bounds and keys that are expected by hand, None where there are none.
UNDERSTOOD = [
    ("INTEGER", "x BETWEEN 0 AND 5", (0, 5), None),
    ("INTEGER", "x > 0 AND x < 5", (1, 4), None),
    ("INTEGER", "x > 0.5 AND x <= 4.5", (1, 4), None),
    ("INTEGER", "x >= -3 AND 4.5 >= x AND 10 > x", (-3, 4), None),
    ("SMALLINT", "0 < x AND x <= 7", (1, 7), None),
    ("BIGINT", "x BETWEEN -3 AND 5000000000", (-3, 5_000_000_000), None),
    ("DOUBLE PRECISION", "x > 0 AND x < 5", (0, 5), None),
    ("DOUBLE PRECISION", "x BETWEEN -2.5 AND 1e3", (-2.5, 1000), None),
    ("REAL", "x BETWEEN 0.5 AND 4.5", (0.5, 4.5), None),
    ("DECIMAL(12, 2)", "x BETWEEN -2.5 AND 7.5", (-2.5, 7.5), None),
    ("INTEGER", "x BETWEEN 0 AND 5 AND x <> 3", (0, 5), None),
    ("INTEGER", "(x BETWEEN 0 AND 5) OR x IS NULL", (0, 5), None),
    ("INTEGER", "x IS NOT NULL AND x BETWEEN 0 AND 5", (0, 5), None),
    ("INTEGER", "x BETWEEN 0 AND 5 AND abs(x) < 3", (0, 5), None),
    ("INTEGER", "x IN (1, 2, -3)", (-3, 2), [1, 2, -3]),
    ("BIGINT", "x IN (5000000000, 1)", (1, 5_000_000_000), [5_000_000_000, 1]),
    ("INTEGER", "x IN (1, 2, 4, 10) AND x < 5", (1, 4), [1, 2, 4]),
    ("INTEGER", "x IN (1, 2, 3) AND x IN (4, 3, 2)", (2, 3), [2, 3]),
    ("DOUBLE PRECISION", "x IN (0.5, 2.5, 3)", (0.5, 3), [0.5, 2.5, 3]),
    ("DECIMAL(12, 2)", "x IN (0.1, 2.5)", (0.1, 2.5), [0.1, 2.5]),
    ("INTEGER", "x IN (1, 2.5, 4)", (1, 4), [1, 4]),
    ("INTEGER", "x = 4", None, [4]),
    ("VARCHAR", "x IN ('b', 'a', 'b''c')", None, ["b", "a", "b'c"]),
    ("VARCHAR", "x IN ('a')", None, ["a"]),
    ("VARCHAR", "'a' = x", None, ["a"]),
    ("VARCHAR", "x = 'a' OR x = 'b' OR x IS NULL", None, ["a", "b"]),
    ("VARCHAR(20)", "x IN ('x', 'y')", None, ["x", "y"]),
    ("VARCHAR", "x IN ('é', '\"')", None, ["é", '"']),
    ("VARCHAR", "x IN ('a\nb', 'a')", None, ["a\nb", "a"]),
    ("DATE", "x BETWEEN DATE '2000-01-01' AND DATE '2010-01-01'", ("2000-01-01", "2010-01-01"), None),
    ("DATE", "x >= '2000-01-01' AND x < '2010-01-01'", ("2000-01-01", "2009-12-31"), None),
    ("DATE", "x > DATE '1999-12-31' AND x < TIMESTAMP '2010-01-01 12:00:00'", ("2000-01-01", "2010-01-01"), None),
    ("DATE", "x >= TIMESTAMP '2000-01-01 06:00:00' AND x <= DATE '2010-01-01'", ("2000-01-02", "2010-01-01"), None),
    ("TIMESTAMP", "x BETWEEN DATE '2000-01-01' AND DATE '2010-01-01'", ("2000-01-01", "2010-01-01"), None),
    (
        "TIMESTAMP",
        "x >= '2000-01-01' AND x < '2010-01-01 12:30:00.25'",
        ("2000-01-01", "2010-01-01 12:30:00.250000"),
        None,
    ),
    ("DATE", "(x BETWEEN '2000-01-01' AND '2010-01-01') OR x IS NULL", ("2000-01-01", "2010-01-01"), None),
]
ONE_SIDED = [
    ("INTEGER", "x >= 0"),
    ("INTEGER", "x < 5"),
    ("DOUBLE PRECISION", "5 >= x"),
    ("INTEGER", "x >= 0 AND x <= NULL"),
]
# These allow more than a careless reader would think, or something that bounds and keys cannot say.
NOT_UNDERSTOOD = [
    ("INTEGER", "x <= NULL"),
    ("INTEGER", "x IN (1, NULL)"),
    ("VARCHAR", "x IN ('a', NULL)"),
    ("VARCHAR", "x = 'a' OR x IS NOT NULL"),
    ("INTEGER", "x IN (1, 2) OR y > 3"),
    ("INTEGER", "x IN (1, 2) OR abs(y) > 3 OR y IS NULL"),
    ("INTEGER", "x BETWEEN 0 AND 2 OR abs(x) > 3"),
    ("VARCHAR", "x = 'a' OR length(x) > 2"),
    ("INTEGER", "x BETWEEN 0 AND 2 OR x BETWEEN 4 AND 5"),
    ("INTEGER", "x BETWEEN 0 AND 2 OR y IS NULL"),
    ("INTEGER", "NOT (x BETWEEN 0 AND 2)"),
    ("INTEGER", "x NOT IN (1, 2)"),
    ("INTEGER", "x <> 3"),
    ("INTEGER", "x + 1 BETWEEN 0 AND 5"),
    ("INTEGER", "x % 2 = 0"),
    ("INTEGER", "-x BETWEEN 0 AND 5"),
    ("INTEGER", "x >= y AND y >= x"),
    ("DOUBLE PRECISION", "CAST(x AS INTEGER) BETWEEN 0 AND 2"),
    ("DOUBLE PRECISION", "CAST(x AS DECIMAL(5, 0)) BETWEEN 0 AND 2"),
    ("VARCHAR", "lower(x) IN ('a', 'b')"),
    ("VARCHAR", "length(x) = 1"),
    ("VARCHAR", "x >= 'a' AND x <= 'b'"),
    ("VARCHAR", "x LIKE 'a%'"),
    ("DATE", "x + 1 BETWEEN DATE '2000-01-01' AND DATE '2010-01-01'"),
    ("TIMESTAMP", "CAST(x AS DATE) BETWEEN DATE '2000-01-01' AND DATE '2010-01-01'"),
    ("BOOLEAN", "x"),
]


@pytest.fixture(scope="module")
def server():
    with database() as url:
        yield url


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=needs_server)])
def con(request):
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            yield connection
        return
    pytest.importorskip("psycopg")
    with connected(request.getfixturevalue("server")) as connection:
        connection.prepare_threshold = None  # t is another table each time
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("DROP SCHEMA IF EXISTS survey CASCADE")
        connection.execute('DROP SCHEMA IF EXISTS "My S" CASCADE')
        yield connection


def is_duckdb(con):
    return isinstance(con, duckdb.DuckDBPyConnection)


TIMES = ("DATE", "TIMESTAMP")
REFUSED = re.compile("[Cc]onstraint|out of range|Conversion|overflow")


def taken(con, kind):
    """The values of which the table t takes a row."""
    found = []
    for value in TEXTS if kind.startswith("VARCHAR") else DAYS if kind in TIMES else NUMBERS:
        try:
            con.execute(f"INSERT INTO t (x) VALUES ({'?' if is_duckdb(con) else '%s'})", [value])
        except Exception as error:  # of either engine
            if not REFUSED.search(str(error)):
                raise
            continue
        ((stored,),) = con.execute("SELECT x FROM t").fetchall()
        con.execute("DELETE FROM t")
        if kind in TIMES:
            found.append(pd.Timestamp(stored))
            continue
        found.append(stored if isinstance(stored, str) else float(stored))  # an INTEGER takes 2.5 as 2 or 3
    return found


def comparable(kind, bounds):
    """Bounds as values are compared, of dates as times."""
    return map(pd.Timestamp, bounds) if kind in TIMES else bounds


class TestChecks:
    """Bounds and keys are what a CHECK allows, and no less than that."""

    @pytest.mark.parametrize(("kind", "check", "bounds", "keys"), UNDERSTOOD)
    def test_understood(self, con, kind, check, bounds, keys):
        con.execute(f"CREATE TABLE t (x {kind} CHECK ({check}))")
        found = pdrisk.schema_from(con)
        assert found.bounds == {"t": {} if bounds is None else {"x": bounds}}
        assert found.keys == {"t": {} if keys is None else {"x": keys}}
        values = taken(con, kind)
        assert values
        if bounds is not None:
            low, high = comparable(kind, bounds)
            assert low <= min(values) <= max(values) <= high
        if keys is not None:
            assert set(values) <= {pd.array([key], dtype="float32")[0] if kind == "REAL" else key for key in keys}
        partly = "abs" in check or "<>" in check
        assert ("understood in" in repr(found)) == partly

    def test_no_row_that_is_taken_lies_outside(self, con):
        """Every CHECK, understood or not, against every value."""
        for kind, check, *expected in [*UNDERSTOOD, *ONE_SIDED, *NOT_UNDERSTOOD]:
            if kind == "BOOLEAN":
                continue
            con.execute("DROP TABLE IF EXISTS t")
            con.execute(f"CREATE TABLE t (x {kind}, y INTEGER, CHECK ({check}))")
            found, values = pdrisk.schema_from(con)["t"], taken(con, kind)
            assert not expected or expected == [found["bounds"].get("x"), found["keys"].get("x")], check
            outside = []
            if "x" in found["bounds"]:
                low, high = comparable(kind, found["bounds"]["x"])
                outside = [value for value in values if not low <= value <= high]
            keys = found["keys"].get("x", values)
            assert not outside, check
            assert set(values) <= set(keys), check

    @pytest.mark.parametrize(("kind", "check"), ONE_SIDED)
    def test_one_sided(self, con, kind, check):
        con.execute(f"CREATE TABLE t (x {kind} CHECK ({check}))")
        found = pdrisk.schema_from(con)
        assert found["t"] == {"bounds": {}, "keys": {}}
        assert "which is one end: declare both" in repr(found)

    @pytest.mark.parametrize(("kind", "check"), NOT_UNDERSTOOD)
    def test_not_understood(self, con, kind, check):
        con.execute(f"CREATE TABLE t (x {kind}, y INTEGER, CHECK ({check}))")
        found = pdrisk.schema_from(con)
        assert found["t"] == {"bounds": {}, "keys": {}}
        assert "is not understood" in repr(found)

    def test_several_constraints_hold_together(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x >= 0), y INTEGER, CHECK (x <= 5), CHECK (y > 1 AND x < 9))")
        found = pdrisk.schema_from(con)
        assert found.bounds == {"t": {"x": (0, 5)}}
        assert "values from 2 on" in repr(found)

    def test_contradiction(self, con):
        con.execute(
            "CREATE TABLE t (x INTEGER CHECK (x > 5), y VARCHAR CHECK (y = 'a'), CHECK (x < 3), CHECK (y = 'b'))"
        )
        found = pdrisk.schema_from(con)
        assert found["t"] == {"bounds": {}, "keys": {}}
        assert found.comments["t"] == [f"the CHECKs of {name!r} allow no value at all" for name in "xy"]

    def test_types_that_compare_otherwise(self, con):
        """A text that is read as a number, or one of many spellings, is no key."""
        if is_duckdb(con):
            field = "struct_extract(s, 'd')" if duckdb.__version__.startswith("1.") else "s.d"  # which 1.5 cannot bind
            con.execute(
                "CREATE TABLE t (a INTEGER CHECK (a IN ('1', '2')), b VARCHAR CHECK (b IN (1, 2)), "
                "c UUID CHECK (c IN ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')), "
                f"s STRUCT(d INTEGER) CHECK ({field} BETWEEN 0 AND 1), d INTEGER)"
            )
        else:
            con.execute("CREATE COLLATION same (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            con.execute(
                "CREATE TABLE t (a TEXT COLLATE same CHECK (a IN ('a', 'b')), "
                "b VARCHAR CHECK (CAST(b AS VARCHAR(1)) = 'b'), "
                "c TEXT CHECK (CAST(c AS CHAR(9)) = 'b'), d TEXT CHECK (d COLLATE same IN ('a', 'b')))"
            )
        found = pdrisk.schema_from(con)
        assert found["t"] == {"bounds": {}, "keys": {}}
        assert repr(found).count("is not understood") == 4

    def test_texts_by_a_collation(self):
        with duckdb.connect() as con:
            con.execute("CREATE TABLE t (x VARCHAR COLLATE nocase CHECK (x IN ('a', 'b')))")
            con.execute("INSERT INTO t VALUES ('A')")
            assert pdrisk.schema_from(con).keys == {"t": {}}
            con.execute("CREATE TABLE u (x VARCHAR CHECK (x IN ('a', 'b')))")
            assert pdrisk.schema_from(con, "u").keys == {"u": {"x": ["a", "b"]}}
            con.execute("SET default_collation = 'nocase'")
            assert pdrisk.schema_from(con, "u").keys == {"u": {}}

    def test_deep_and_long(self, con):
        deep = "y < 1" + " OR (y = 1 AND (y = 2" * 200 + "))" * 200
        con.execute(f"CREATE TABLE t (x INTEGER, y INTEGER, CHECK (x IN ({', '.join(map(str, range(3000)))})))")
        con.execute(f"CREATE TABLE u (y INTEGER, CHECK ({deep}))")
        found = pdrisk.schema_from(con)
        assert found.keys == {"t": {"x": list(range(3000))}, "u": {}}
        assert "is not understood" in found.comments["u"][0]

    def test_truth_values(self, con):
        con.execute("CREATE TABLE t (x BOOLEAN CHECK (x IN (true, false)), y BOOLEAN CHECK (y = true))")
        assert pdrisk.schema_from(con).keys == {"t": {"x": [True, False], "y": [True]}}


class TestEnums:
    def test_labels_in_their_order(self, con):
        con.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s', 'a, b', 'ok')")
        con.execute("CREATE TABLE t (x mood, y mood NOT NULL CHECK (y IN ('ok', 'sad')))")
        found = pdrisk.schema_from(con)
        assert found.keys == {"t": {"x": ["sad", "it's", "a, b", "ok"], "y": ["sad", "ok"]}}
        assert found.comments["t"] == ["NULL is no key of 'x': add None to show such rows"]

    def test_an_answer_by_them(self, con):
        con.execute("CREATE TYPE mood AS ENUM ('sad', 'fine', 'ok')")
        con.execute("CREATE TABLE t (x mood)")
        con.execute("INSERT INTO t SELECT 'sad' FROM generate_series(1, 900)")
        table = pdrisk.Dataset((con, "t"), **pdrisk.schema_from(con)["t"]).count(eps=1, by="x")
        assert table.index.tolist() == ["sad", "fine", "ok"]


class TestOnlyPeopleSay:
    """Who a person is, and what joins, is printed and never declared."""

    def test_keys(self, con):
        con.execute(
            "CREATE TABLE people (pid INTEGER PRIMARY KEY, mail VARCHAR UNIQUE, a INTEGER, b INTEGER, UNIQUE (a, b))"
        )
        con.execute(
            'CREATE TABLE visits (vid INTEGER, "of Whom" INTEGER REFERENCES people (pid), a INTEGER, b INTEGER, '
            "FOREIGN KEY (a, b) REFERENCES people (a, b), PRIMARY KEY (vid, a))"
        )
        found = pdrisk.schema_from(con)
        assert set(found.comments["people"]) == {
            f"no two rows have the same {name!r}: with person={name!r}, declare per_person='one'"
            for name in ("pid", "mail")
        }
        assert set(found.comments["visits"]) == {
            'FOREIGN KEY: JOIN people ON visits."of Whom" = people.pid',
            "FOREIGN KEY: JOIN people ON visits.a = people.a AND visits.b = people.b",
        }
        assert list(found["people"]) == ["bounds", "keys"]

    def test_a_schema_before_the_name(self, con):
        con.execute("CREATE SCHEMA survey")
        con.execute("CREATE TABLE survey.people (pid INTEGER PRIMARY KEY, age INTEGER CHECK (age BETWEEN 0 AND 9))")
        con.execute("CREATE TABLE survey.visits (pid INTEGER REFERENCES survey.people (pid))")
        con.execute("INSERT INTO survey.people SELECT x, 3 FROM generate_series(1, 500) AS g(x)")
        found = pdrisk.schema_from(con)
        assert found.bounds == {"survey.people": {"age": (0, 9)}, "survey.visits": {}}
        assert "JOIN survey.people ON" in repr(found) or "JOIN people ON" in repr(found)
        assert pdrisk.schema_from(con, ["survey.people"]).bounds == {"survey.people": {"age": (0, 9)}}
        release = pdrisk.Dataset((con, "survey.people"), **found["survey.people"]).mean("age", eps=1)
        assert release.bounds == (0, 9)


class TestHostileNames:
    NAMES = ("We ird", 'q"uote', "line\nimport os; os.abort()", "#", "'''", "Größe", "\x1b[31m", "bi\u202edi", "select")

    def test_what_is_printed_is_python_of_literals_alone(self, con):
        for at, name in enumerate(self.NAMES):
            quoted = '"' + name.replace('"', '""') + '"'
            text = "'" + name.replace("'", "''") + "'"
            con.execute(
                f"CREATE TABLE {quoted} ({quoted} INTEGER PRIMARY KEY, x{at} VARCHAR CHECK (x{at} IN ({text}, 'b')), "
                f'"X y" INTEGER CHECK ("X y" BETWEEN 0 AND {at + 1}), z VARCHAR CHECK (z <> {text}))'
            )
        found = pdrisk.schema_from(con)
        assert len(found.bounds) == len(self.NAMES)
        assert sorted(ends["X y"] for ends in found.bounds.values()) == [(0, at + 1) for at in range(len(self.NAMES))]
        assert {keys[f"x{at}"][0] for keys in found.keys.values() for at in range(9) if f"x{at}" in keys} == set(
            self.NAMES
        )
        made = {"__builtins__": {}}
        exec(repr(found), made)
        assert (made["bounds"], made["keys"]) == (found.bounds, found.keys)
        assert all(line.isprintable() for line in repr(found).splitlines())

    def test_names_that_lead_to_their_table(self, con):
        for name in ("We ird", "Größe", "People"):
            con.execute(f'CREATE TABLE "{name}" (x INTEGER CHECK (x BETWEEN 0 AND 5))')
            con.execute(f'INSERT INTO "{name}" SELECT 3 FROM generate_series(1, 500)')
        found = pdrisk.schema_from(con)
        for name in found:
            assert pdrisk.Dataset((con, name), **found[name]).mean("x", eps=1).bounds == (0, 5)

    def test_a_dot_in_a_name(self, con):
        con.execute('CREATE SCHEMA "My S"')
        con.execute('CREATE TABLE "My S.t" (x INTEGER CHECK (x BETWEEN 0 AND 1))')
        con.execute('CREATE TABLE "My S".t (x INTEGER CHECK (x BETWEEN 0 AND 2))')
        found = pdrisk.schema_from(con)
        assert found.bounds['"My S.t"'] == {"x": (0, 1)}
        assert found.bounds["My S.t" if is_duckdb(con) else '"My S".t'] == {"x": (0, 2)}

    def test_capitals(self):
        with duckdb.connect() as con:
            con.execute('CREATE TABLE t ("Age" INTEGER, CHECK (AGE BETWEEN 0 AND 5))')
            assert pdrisk.schema_from(con, ["T"]).bounds == {"T": {"Age": (0, 5)}}


class TestCatalogOnly:
    """No row is read, so nothing can depend on one."""

    def test_rows_change_nothing(self, con):
        con.execute(
            "CREATE TABLE t (pid INTEGER PRIMARY KEY, x INTEGER CHECK (x >= 0), y VARCHAR CHECK (y IN ('a', 'b')))"
        )
        before = pdrisk.schema_from(con)
        con.execute("INSERT INTO t SELECT n, n, 'a' FROM generate_series(1, 5000) AS g(n)")
        assert pdrisk.schema_from(con) == before
        assert repr(pdrisk.schema_from(con)) == repr(before)

    def test_views_declare_nothing(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        con.execute("CREATE VIEW v AS SELECT x, 1 / (x - x) AS fails FROM t")
        assert list(pdrisk.schema_from(con)) == ["t"]
        found = pdrisk.schema_from(con, ["v"])
        assert found["v"] == {"bounds": {}, "keys": {}}
        assert found.comments["v"] == ["a view, and constraints belong to tables: read those"]

    def test_a_transaction_stays(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (1)")
        pdrisk.schema_from(con)
        con.execute("ROLLBACK")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]

    def test_temporary_tables(self, con):
        con.execute("CREATE TEMPORARY TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        assert pdrisk.schema_from(con).bounds == {"t": {"x": (0, 5)}}


class TestNotForAllRows:
    """Constraints of PostgreSQL that rows of a table may break."""

    @pytest.fixture
    def con(self, server):
        pytest.importorskip("psycopg")
        with connected(server) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            yield connection

    pytestmark = needs_server

    def test_not_valid(self, con):
        con.execute("CREATE TABLE t (x INTEGER)")
        con.execute("INSERT INTO t VALUES (99)")
        con.execute("ALTER TABLE t ADD CHECK (x BETWEEN 0 AND 5) NOT VALID")
        found = pdrisk.schema_from(con)
        assert found.bounds == {"t": {}}
        assert "need not hold for all rows" in repr(found)

    def test_inheritance(self, con):
        con.execute("CREATE TABLE t (pid INTEGER PRIMARY KEY, x INTEGER CHECK (x BETWEEN 0 AND 5) NO INHERIT)")
        assert pdrisk.schema_from(con)["t"]["bounds"] == {"x": (0, 5)}
        con.execute("CREATE TABLE child () INHERITS (t)")
        con.execute("INSERT INTO t VALUES (1, 1)")
        con.execute("INSERT INTO child VALUES (1, 99)")
        found = pdrisk.schema_from(con, ["t"])
        assert found["t"]["bounds"] == {}
        assert "no two rows" not in repr(found)

    def test_unique_only_at_the_end(self, con):
        con.execute("CREATE TABLE t (pid INTEGER UNIQUE DEFERRABLE)")
        assert "no two rows" not in repr(pdrisk.schema_from(con))

    def test_partitions_are_one_table(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5)) PARTITION BY RANGE (x)")
        con.execute("CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (3)")
        assert pdrisk.schema_from(con).bounds == {"t": {"x": (0, 5)}}

    def test_padded_texts(self, con):
        con.execute("CREATE TABLE t (sex CHAR(3) CHECK (sex IN ('f', 'm ')))")
        con.execute("INSERT INTO t SELECT 'm' FROM generate_series(1, 800)")
        schema = pdrisk.schema_from(con)
        assert schema.keys == {"t": {"sex": ["f", "m"]}}
        table = pdrisk.Dataset((con, "t"), **schema["t"]).count(eps=5, by="sex")
        assert table["value"]["m"] > 700

    def test_a_path_that_hides_the_catalog(self, con):
        con.execute("CREATE TABLE pg_class (oid INTEGER)")
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        con.execute("SET search_path = public, pg_catalog")
        con.execute("SET quote_all_identifiers = on")
        try:
            assert pdrisk.schema_from(con, ["t"]).bounds == {"t": {"x": (0, 5)}}
            assert {"x": (0, 5)} in pdrisk.schema_from(con).bounds.values()
        finally:
            con.execute("RESET ALL")

    def test_only_what_a_role_may_read(self, con, server):
        con.execute("CREATE TABLE seen (x INTEGER CHECK (x BETWEEN 0 AND 5), y INTEGER CHECK (y BETWEEN 0 AND 6))")
        con.execute("CREATE TABLE hidden (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        with role(server) as (url, name):
            con.execute(f"GRANT USAGE ON SCHEMA public TO {name}")
            con.execute(f"GRANT SELECT (x) ON seen TO {name}")
            assert pdrisk.schema_from(url).bounds == {"seen": {"x": (0, 5)}}
            with pytest.raises(pdrisk.ParameterError, match="no table 'hidden' that this role may read"):
                pdrisk.schema_from(url, ["hidden"])

    def test_without_the_parser(self, con, monkeypatch):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        monkeypatch.setitem(sys.modules, "sqlglot", None)
        with pytest.raises(pdrisk.ParameterError, match=r"read by sqlglot, which is missing: pip install"):
            pdrisk.schema_from(con)

    def test_engines_of_sqlalchemy(self, con, server):
        alchemy = pytest.importorskip("sqlalchemy")
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        engine = alchemy.create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
        assert pdrisk.schema_from(engine).bounds == {"t": {"x": (0, 5)}}
        engine.dispose()


OMOP = """
CREATE TABLE person (
    person_id INTEGER PRIMARY KEY, year_of_birth INTEGER NOT NULL CHECK (year_of_birth BETWEEN 1900 AND 2025),
    gender_concept_id INTEGER NOT NULL CHECK (gender_concept_id IN (8507, 8532)));
CREATE TABLE visit_occurrence (
    visit_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (person_id),
    kind VARCHAR NOT NULL CHECK (kind IN ('inpatient', 'outpatient')),
    days DOUBLE PRECISION CHECK (days >= 0), CHECK (days <= 60));
CREATE TABLE condition_occurrence (
    condition_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (person_id),
    visit_occurrence_id INTEGER REFERENCES visit_occurrence (visit_occurrence_id),
    severity SMALLINT CHECK (severity IN (1, 2, 3)));
INSERT INTO person SELECT n, 1950 + n % 50, CASE WHEN n % 2 = 0 THEN 8507 ELSE 8532 END
    FROM generate_series(1, 2000) AS g(n);
INSERT INTO visit_occurrence SELECT n, 1 + n % 2000, CASE WHEN n % 3 = 0 THEN 'inpatient' ELSE 'outpatient' END, n % 20
    FROM generate_series(1, 4000) AS g(n);
INSERT INTO condition_occurrence SELECT n, 1 + n % 2000, 1 + n % 4000, 1 + n % 3 FROM generate_series(1, 4000) AS g(n);
"""


class TestOmop:
    """From a catalog to a private answer in three lines."""

    @pytest.fixture
    def omop(self, con):
        for statement in filter(str.strip, OMOP.split(";")):
            con.execute(statement)
        return con

    def test_what_is_declared(self, omop):
        found = pdrisk.schema_from(omop)
        assert found.bounds == {
            "condition_occurrence": {"severity": (1, 3)},
            "person": {"year_of_birth": (1900, 2025), "gender_concept_id": (8507, 8532)},
            "visit_occurrence": {"days": (0, 60)},
        }
        assert found.keys == {
            "condition_occurrence": {"severity": [1, 2, 3]},
            "person": {"gender_concept_id": [8507, 8532]},
            "visit_occurrence": {"kind": ["inpatient", "outpatient"]},
        }
        assert "JOIN person ON visit_occurrence.person_id = person.person_id" in repr(found)

    def test_three_lines(self, omop):
        s = pdrisk.schema_from(omop)
        d = pdrisk.Dataset((omop, "person"), person="person_id", per_person="one", **s["person"])
        table = d.mean("year_of_birth", eps=1, by="gender_concept_id")
        assert table.index.tolist() == [8507, 8532]
        # Even numbers n have the years 1950, 1952, ..., 1998, whose mean is 1974; odd ones 1975.
        assert table["value"].tolist() == pytest.approx([1974, 1975], abs=5)

    def test_sql_of_a_join(self, omop):
        s = pdrisk.schema_from(omop, ["person", "visit_occurrence"])
        table = pdrisk.sql(
            "SELECT kind, AVG(days) AS days FROM visit_occurrence JOIN person "
            "ON visit_occurrence.person_id = person.person_id GROUP BY kind",
            omop, eps=4, bounds=s.bounds["visit_occurrence"], keys=s.keys["visit_occurrence"], rows=4,
            person={"person": "person_id", "visit_occurrence": "person_id"}, per_person={"person": "one"},
        )  # fmt: skip
        assert table["kind"].tolist() == ["inpatient", "outpatient"]
        assert table["days"].between(0, 60).all()


class TestCall:
    def test_of_what_is_no_connection(self):
        for value in (None, pd.DataFrame({"x": [1]}), "people", ":memory:", 3, [duckdb.connect()]):
            with pytest.raises(pdrisk.ColumnTypeError, match="con must be a connection to DuckDB or PostgreSQL"):
                pdrisk.schema_from(value)

    def test_tables(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        assert pdrisk.schema_from(con, "t") == pdrisk.schema_from(con, ["t", "t"]) == pdrisk.schema_from(con)
        assert list(pdrisk.schema_from(con, [])) == []
        for wrong in (3, [3], [""], [None], [("t",)]):
            with pytest.raises(pdrisk.ColumnTypeError, match="tables is a list of names of tables"):
                pdrisk.schema_from(con, wrong)
        for name in ("u", "SELECT x FROM t", "t; DROP TABLE t", "t.x.y.z", "read_csv('t')", "sqlite_master"):
            with pytest.raises(pdrisk.ParameterError, match=r"has no table|cannot be looked up"):
                pdrisk.schema_from(con, [name])
        with pytest.raises(pdrisk.ParameterError, match=r"no table 'tt' was read from the catalog; there are: t\."):
            pdrisk.schema_from(con)["tt"]

    def test_a_closed_connection(self, con):
        con.close()
        with pytest.raises(pdrisk.ParameterError):
            pdrisk.schema_from(con)

    def test_a_value_of_its_own(self, con):
        con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 5))")
        found = pdrisk.schema_from(con)
        found["t"]["bounds"]["x"] = (1, 2)  # edited, and passed
        assert found["t"]["bounds"] == {"x": (0, 5)}
        assert pickle.loads(pickle.dumps(found)) == found
        with pytest.raises(AttributeError):
            found.bounds = {}
