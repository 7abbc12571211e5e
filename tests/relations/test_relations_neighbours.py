"""Relations by statistic and mechanism: somebody's absence moves what is drawn by what is paid, at most."""

from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from people_losses import loss_between

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

WORDS = pd.DataFrame({"g": ["a", "a", "b", None], "word": ["cold", "cough", "flu", "none"]})  # nobody is in it
CAPPED = {"rows": {"a": 2, "b": 2, "p": 1}}

# FROM and WHERE over the columns x and y of rows of people, and how rows count.
RELATIONS = {
    "a table": ("a", {"rows": 2}),
    "joined": ("a JOIN b USING (pid)", {"rows": 2}),
    "joined, rows known": ("a JOIN b USING (pid)", CAPPED),
    "with itself": ("a JOIN (SELECT pid, k FROM b) c USING (pid) JOIN b ON b.pid = c.pid AND b.k < c.k", CAPPED),
    "left": ("a LEFT JOIN b ON a.pid = b.pid AND b.k > 0", CAPPED),
    "right": ("b RIGHT JOIN a ON a.pid = b.pid AND b.k > 0", CAPPED),
    "semi": ("a SEMI JOIN b ON a.pid = b.pid AND a.y < b.k", {"rows": 2}),
    "anti": ("a ANTI JOIN b ON a.pid = b.pid AND a.y < b.k", CAPPED),
    "in": ("a WHERE pid IN (SELECT pid FROM b UNION ALL SELECT pid FROM p WHERE age > 1)", {"rows": 3}),
    "not in": ("a WHERE a.pid NOT IN (SELECT p.pid FROM p LEFT JOIN b USING (pid) WHERE k > 0)", {"rows": 2}),
    "both": ("a WHERE pid IN (SELECT pid FROM b WHERE k > 0 INTERSECT SELECT pid FROM p WHERE age > 1)", {"rows": 2}),
    "in one": ("a JOIN (SELECT pid FROM p EXCEPT SELECT pid FROM b WHERE k > 1) q USING (pid)", {"rows": {"a": 2}}),
    "exists in exists": (
        "a WHERE EXISTS (SELECT 1 FROM b WHERE b.pid = a.pid AND NOT EXISTS (SELECT 1 FROM p WHERE p.pid = b.pid AND "
        "age > 4))",
        {"rows": 2},
    ),
    "several words": ("a JOIN words USING (g)", CAPPED),
    "words first": ("words w JOIN words v USING (g) JOIN a USING (g)", CAPPED),
    "words or none": ("a LEFT JOIN words w ON a.g = w.g OR a.x > 3", {"rows": {"a": 1}}),
    "words of people": ("a JOIN words USING (g) JOIN b USING (pid)", CAPPED),
    "one row each": ("(SELECT pid, MAX(x) AS x, MEDIAN(y) AS y FROM a GROUP BY pid) q", {}),
    "numbers of rows": ("(SELECT pid, COUNT(*) AS x, COUNT(DISTINCT y) AS y FROM a GROUP BY pid) q", {}),
    "one row each and group": ("(SELECT pid, g, MAX(x) AS x, MIN(y) AS y FROM a GROUP BY pid, g) q", {"rows": 2}),
    "first rows": (
        "(SELECT pid, x, y, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY x) AS n FROM a) q WHERE n <= 2 AND y > 0",
        {},
    ),
    "first row or others": (
        "(SELECT pid, x, y, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY x) AS n FROM a) q WHERE n <= 1 OR x > 3",
        {"rows": 2},
    ),
    "any row": ("(SELECT pid AS who FROM (SELECT DISTINCT ON (pid) * FROM a)) q JOIN a ON a.pid = q.who", {"rows": 2}),
    "distinct on": ("(SELECT DISTINCT ON (pid, g) * FROM a ORDER BY y DESC) q", {"rows": 2}),
    "ties": ("(SELECT pid, x, y, RANK() OVER (PARTITION BY pid ORDER BY g) AS n FROM a) q WHERE n <= 1", {"rows": 2}),
    "the row before": ("(SELECT pid, x, LAG(x) OVER (PARTITION BY pid ORDER BY g) AS y FROM a) q", {"rows": 2}),
    "stacked": ("(SELECT pid, x, y FROM a UNION ALL SELECT pid, age, k FROM b JOIN p USING (pid)) q", {"rows": 2}),
    "stacked, rows known": ("(SELECT pid, x, y FROM a UNION ALL SELECT pid, y, x FROM a) q", CAPPED),
    "united": ("(SELECT pid, x, y FROM a UNION SELECT pid, age, k FROM b JOIN p USING (pid)) q", {"rows": 2}),
    "different": ("(SELECT DISTINCT x, pid, y FROM a) q", {"rows": 2}),
    "one number each": ("a JOIN words USING (g) JOIN b USING (pid)", {"per_person": "max"}),
}  # fmt: skip
STATISTICS = {  # by which mechanisms
    "COUNT(x)": ["auto"],
    "AVG(x)": ["auto", "laplace", "two_sums", "bernstein"],
    "SUM(x)": ["auto", "laplace", "two_sums"],
    "MEDIAN(x)": ["laplace", "exponential"],
    "QUANTILE_CONT(x, 0.9)": ["laplace", "exponential"],
    "MAX(x)": ["laplace", "exponential"],
    "MIN(y)": ["auto"],
    "VAR_SAMP(x)": ["laplace", "bernstein"],
    "STDDEV_POP(x)": ["auto"],
    "COUNT(DISTINCT x)": ["auto"],
    "SUM(DISTINCT y)": ["auto"],
    "CORR(x, y)": ["auto"],
    "AVG(x), COUNT(*), MAX(y)": ["auto"],
}
OF_ROWS = ("COUNT(DISTINCT x)", "SUM(DISTINCT y)")  # of which there is no number for each person


NUMBERED = pd.array([0, 1, 2, None], dtype="Int64")


def small(draw, ids=NUMBERED):
    """Rows of people and of nobody: missing values, equal ones, and values beyond the bounds."""
    n, m, of = draw.integers(8, 20), draw.integers(3, 9), len(ids)
    a = pd.DataFrame({"pid": ids[draw.integers(0, of, n)], "g": draw.choice(["a", "b", "c", None], n)})
    a["x"], a["y"] = draw.choice([-3.0, 0, 4, 4, 10, 12, np.nan], n), draw.choice([0.0, 1, 5, np.nan], n)
    b = pd.DataFrame({"pid": ids[draw.integers(0, of, m)], "k": draw.choice([0.0, 1, 2, np.nan], m)})
    return {"a": a, "b": b, "p": pd.DataFrame({"pid": ids[: of - 1], "age": draw.choice([0.0, 5, 10], of - 1)})}


@pytest.mark.parametrize("aggregate", STATISTICS)
@pytest.mark.parametrize("name", RELATIONS)
def test_without_somebody(name, aggregate):
    relation, how = RELATIONS[name]
    if "per_person" in how and aggregate in OF_ROWS:
        how = {"rows": 2}
    draw = np.random.default_rng(len(relation) + len(aggregate))
    words = relation.replace("(", " ").replace(")", " ").split()
    if "rows" in how and isinstance(how["rows"], dict):
        how = {"rows": {table: most for table, most in how["rows"].items() if table in words}}
    bounds = {"x": (0, 10), "y": (0, 6)}
    asked = {column: own for column, own in bounds.items() if column in aggregate and "COUNT(x" not in aggregate}
    public = {"words": WORDS} if "words" in words else {}

    for mechanism in STATISTICS[aggregate]:

        def ask(tables, mechanism=mechanism):
            read = {table: frame for table, frame in tables.items() if table in words}
            return pdrisk.sql(
                f"SELECT {aggregate} FROM {relation}",
                **{"eps": 1, "person": "pid", "public": public, "bounds": asked, "mechanism": mechanism, **how, **read},
            )

        tables = small(draw)
        pid = tables["a"]["pid"].mode()[0]  # who has most to lose
        rest = {
            table: frame[(frame["pid"] != pid).fillna(True)].sample(frac=1, random_state=1)
            for table, frame in tables.items()
        }
        one, other = (tables, rest) if draw.integers(2) else (rest, tables)
        assert loss_between(ask, one, other) <= 1 + 1e-6, mechanism


IN_GROUPS = {
    "a table": "a",
    "joined": "a JOIN b USING (pid)",
    "first row": "(SELECT pid, g, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY x) AS n FROM a) q WHERE n = 1",
    "of words": "a JOIN words USING (g)",
}


@pytest.mark.parametrize("items", ["COUNT(DISTINCT pid) AS n", "COUNT(DISTINCT pid) AS n, COUNT(*) AS m"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", IN_GROUPS)
def test_people_counted_in_groups_without_somebody(name, seed, items):
    """In how many groups somebody counts follows from the rows of the tables, and is held to where they are wrong."""
    draw, words = np.random.default_rng(seed), IN_GROUPS[name].replace("(", " ").replace(")", " ").split()
    rows = {table: most for table, most in CAPPED["rows"].items() if table in words}

    def ask(tables):
        return pdrisk.sql(
            f"SELECT g, {items} FROM {IN_GROUPS[name]} GROUP BY g",
            eps=1, person="pid", rows=rows, keys={"g": ["a", "b", "c", None]},
            public={"words": WORDS} if "words" in words else {},
            tables={table: frame for table, frame in tables.items() if table in words},
        )  # fmt: skip

    tables = small(draw)
    pid = tables["a"]["pid"].mode()[0]
    rest = {table: frame[(frame["pid"] != pid).fillna(True)] for table, frame in tables.items()}
    assert loss_between(ask, tables, rest) <= 1 + 1e-6


class TestIdsUnderACollation:
    """Ids are compared by their code points, whatever a column's collation takes for equal."""

    IDS = pd.array(["a", "A", "ä", "Ä", None], dtype="string")
    COLLATIONS = ("NOCASE", "NOACCENT", '"NOCASE.NOACCENT"')
    ONE_TABLE: ClassVar = {
        "rows": ("SELECT COUNT(*), AVG(x) FROM a", {"rows": 1}),
        "several rows": ("SELECT SUM(x) FROM a", {"rows": 2}),
        "numbers": ("SELECT AVG(x), MAX(y) FROM a", {"per_person": "mean"}),
        "groups": ("SELECT g, COUNT(*) FROM a GROUP BY g", {"rows": 2, "groups": 1, "keys": ["a", "b"]}),
        "people": ("SELECT g, COUNT(DISTINCT pid) FROM a GROUP BY g", {"groups": 1, "keys": ["a", "b"]}),
        "private keys": (
            "SELECT g, COUNT(*) FROM a GROUP BY g",
            {"rows": 1, "groups": 1, "keys": "private", "delta": 1e-6},
        ),
        "grouped and joined": (
            "SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM a GROUP BY pid) q JOIN p USING (pid)",
            {"rows": 2, "bounds": {"n": (0, 9)}},
        ),
    }

    @staticmethod
    def stored(tables, collation):
        """The tables in a database, with ids of a collation."""
        con = duckdb.connect()
        for name, frame in tables.items():
            con.register("frame", frame)
            con.execute(f"CREATE TABLE {name} AS FROM frame")
            con.execute(f"ALTER TABLE {name} ALTER pid TYPE VARCHAR COLLATE {collation}")
        return con

    @pytest.mark.parametrize("collation", COLLATIONS)
    @pytest.mark.parametrize("name", [*ONE_TABLE, *RELATIONS])
    def test_without_somebody(self, name, collation):
        query, how = self.ONE_TABLE.get(name, (None, None))
        if query is None:
            relation, how = RELATIONS[name]
            query = f"SELECT SUM(x), COUNT(y) FROM {relation}"
        words = query.replace("(", " ").replace(")", " ").split()
        if isinstance(how.get("rows"), dict):
            how = {**how, "rows": {table: most for table, most in how["rows"].items() if table in words}}
        public = {"words": WORDS} if "words" in words else {}
        options = {"bounds": {"x": (0, 10), "y": (0, 6)}, "eps": 1, "person": "pid", "public": public, **how}
        draw = np.random.default_rng(5)
        tables = small(draw, self.IDS)

        def ask(tables):
            with self.stored(tables, collation) as con:
                return pdrisk.sql(query, con, **options)

        for pid in self.IDS[:-1]:
            rest = {table: frame[(frame["pid"] != pid).fillna(True)] for table, frame in tables.items()}
            assert loss_between(ask, tables, rest) <= 1 + 1e-6

    @pytest.mark.parametrize("collation", COLLATIONS)
    @pytest.mark.parametrize("name", ONE_TABLE)
    def test_as_in_a_frame(self, name, collation):
        """The numbers of records are those of a Dataset of the same rows."""
        query, how = self.ONE_TABLE[name]
        tables = small(np.random.default_rng(7), self.IDS)
        options = {"bounds": {"x": (0, 10), "y": (0, 6)}, "eps": 50, "person": "pid", "curator": True, **how}
        read = {table: frame for table, frame in tables.items() if f"{table} " in query + " "}
        with self.stored(tables, collation) as con:
            found = pdrisk.sql(query, con, **options)
        wanted = pdrisk.sql(query, **options, **read)
        numbers = [column for column in wanted.columns if column.endswith("_n")]
        assert numbers
        pd.testing.assert_frame_equal(found[numbers], wanted[numbers])
