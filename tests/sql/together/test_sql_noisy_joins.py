# ruff: noqa: E501 - queries as they are written
"""Tables of noisy values are joined with each other and with public tables as DuckDB joins them, and cost no more."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk import NoisyReleaseWarning, ParameterError
from sql_people import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

RNG = np.random.default_rng(11)
PEOPLE = pd.DataFrame(
    {
        "pid": np.arange(90),
        "region": RNG.integers(1, 5, 90),
        "sex": RNG.choice(["f", "m"], 90),
        "x": RNG.integers(0, 40, 90),
    }
)
NAMES = pd.DataFrame(
    {
        "region": [1, 2, 3, 3, 9],
        "name": ["north", "south", "east", None, "nowhere"],
        "since": pd.to_datetime(["1990-01-01", "2000-02-02", None, "2010-03-03", "2020-04-04"]),
        "area": [1.5, np.nan, 3.5, 4.5, 5.5],
        "code": pd.array([2**60 + 1, None, 3, 4, 5], dtype="Int64"),
        "large": [True, False, True, False, True],
    }
)
TABLES = {"people": PEOPLE}
KEYS = {"region": [1, 2, 3, 4], "sex": ["f", "m"]}
N = "n AS (SELECT region, COUNT(*) AS n FROM people GROUP BY region)"
M = "m(region, mean) AS (SELECT region, AVG(x) FROM people GROUP BY region)"
QUERIES = {
    "names": f"WITH {N} SELECT r.name, n.n FROM n JOIN names r USING (region) ORDER BY ALL",
    "names first": f"WITH {N} SELECT name, n * 2 AS twice FROM names r JOIN n ON n.region = r.region AND area > 2 ORDER BY ALL",
    "names or none": f"WITH {N} SELECT n.region, name, since, n FROM n LEFT JOIN names r USING (region) ORDER BY ALL",
    "none or names": f"WITH {N} SELECT * EXCLUDE (since, code) FROM names r RIGHT JOIN n USING (region) ORDER BY ALL",
    "names, and none": f"WITH {N} SELECT n, name, r.region AS own FROM n RIGHT JOIN names r USING (region) ORDER BY ALL",
    "either": f"WITH {N} SELECT region, name, n, n.region AS here FROM n FULL JOIN names r USING (region) ORDER BY ALL",
    "either, and more": (
        f"WITH {N}, {M} SELECT * EXCLUDE (since, code, area) FROM n FULL JOIN names USING (region) FULL JOIN m USING (region) "
        "ORDER BY ALL"
    ),
    "either, on more": f"WITH {N} SELECT name, n FROM n FULL OUTER JOIN names r ON r.region = n.region AND n.n > 20 ORDER BY ALL",
    "all of a table": f"WITH {N} SELECT r.* EXCLUDE (since, code), n.n FROM n, names r WHERE n.region = r.region ORDER BY ALL",
    "whole numbers": f"WITH {N} SELECT code, large, n FROM n JOIN names USING (region) WHERE code > 0 ORDER BY n, code",
    "stars": f"WITH {N} SELECT * EXCLUDE (since, code) FROM n JOIN names USING (region) ORDER BY ALL",
    "named regions": f"WITH {N} SELECT region, n FROM n SEMI JOIN names USING (region) ORDER BY region",
    "unnamed regions": f"WITH {N} SELECT * FROM n ANTI JOIN names r ON r.region = n.region",
    "columns named anew": f"WITH {N} SELECT b, d FROM n AS a(b, c) JOIN names AS q(b, d) USING (b) ORDER BY ALL",
    "each other": f"WITH {N}, {M} SELECT n.region, n.n * m.mean AS total FROM n JOIN m USING (region) ORDER BY region",
    "three": f"WITH {N}, {M} SELECT name, n, mean FROM n JOIN m USING (region) JOIN names USING (region) ORDER BY ALL",
    "subqueries": (
        "SELECT a.region, a.n - b.n AS diff FROM (SELECT region, COUNT(*) AS n FROM people WHERE sex = 'f' GROUP BY region) a "
        "JOIN (SELECT region, COUNT(*) AS n FROM people WHERE sex = 'm' GROUP BY region) b ON a.region = b.region ORDER BY 1"
    ),
    "shares of a total": f"WITH {N}, t AS (SELECT SUM(n) AS total FROM n) SELECT region, n / total AS share FROM n, t ORDER BY 1",
    "with itself": f"WITH {N} SELECT a.region, SUM(b.n) AS upto FROM n a JOIN n b ON b.region <= a.region GROUP BY a.region ORDER BY 1",
    "a join in a CTE": (
        f"WITH {N}, j AS (SELECT name, n FROM n JOIN names USING (region)) SELECT COUNT(*), SUM(n), MAX(name) AS last FROM j WHERE n > 2"
    ),
    "a join of a join": (
        f"WITH {N}, j AS (SELECT region, name FROM n JOIN names USING (region)) SELECT n.n, j.name FROM j JOIN n USING (region) "
        "ORDER BY ALL"
    ),
    "different": f"WITH {N} SELECT DISTINCT r.area > 2 AS large FROM n JOIN names r USING (region) ORDER BY ALL",
    "the largest": f"WITH {N} SELECT name, n FROM n JOIN names USING (region) ORDER BY n DESC, name LIMIT 1",
    "windows": f"WITH {N} SELECT region, RANK() OVER (ORDER BY n.n) AS place FROM n JOIN names USING (region) ORDER BY ALL",
    "one row beside": (
        "SELECT s.sex, s.n * 100.0 / a.n AS percent FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) s CROSS JOIN "
        "(SELECT COUNT(*) AS n FROM people) a ORDER BY s.sex"
    ),
    "united answers": (
        f"WITH {N}, u AS (SELECT 1 AS region, COUNT(*) AS k FROM people UNION ALL SELECT 2, COUNT(x) FROM people) "
        "SELECT n.region, n, k FROM n JOIN u USING (region) ORDER BY ALL"
    ),
    "filtered below": (
        "SELECT name, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 20 ORDER BY n DESC "
        "LIMIT 2) q JOIN names USING (region) ORDER BY ALL"
    ),
    "commas": f"SELECT a.region, a.n + b.n AS m, c.n FROM ({N[6:-1]}) a, ({N[6:-1]}) b, ({N[6:-1]}) c WHERE c.region = b.region AND b.region = a.region ORDER BY ALL",
    "the largest of all": f"WITH {N} SELECT region, n FROM n WHERE n = (SELECT MAX(n) FROM n) ORDER BY region",
    "after another": (
        f"WITH m AS (SELECT sex, COUNT(*) AS m FROM people GROUP BY sex), {N} "
        "SELECT region, n, (SELECT SUM(n) FROM n) AS s, (SELECT SUM(m) FROM m) AS t FROM n ORDER BY region"
    ),
    "two numbers of all": f"WITH {N} SELECT (SELECT MAX(n) FROM n) - (SELECT MIN(n) FROM n) AS span, SUM(n) AS n FROM n",
    "answers of answers united": f"WITH {N} SELECT 'sum' AS k, SUM(n) AS n FROM n UNION ALL SELECT 'most', MAX(n) FROM n",
    "averages with their total": f"SELECT region, AVG(n) AS v, COUNT(*) AS k FROM ({N[6:-1]}) GROUP BY ROLLUP (region) ORDER BY ALL",
    "chosen, with their total": f"SELECT region, SUM(n) AS v FROM ({N[6:-1]}) WHERE n > 20 GROUP BY ROLLUP (region) ORDER BY ALL",
    "first, with their total": f"SELECT region, SUM(n) AS v FROM ({N[6:-1]} ORDER BY n DESC, region LIMIT 2) GROUP BY ROLLUP (region) ORDER BY ALL",
    "fewer columns with their total": (
        "SELECT region, SUM(n) AS v, MAX(n) AS m, GROUPING(region) AS g FROM (SELECT region, sex, COUNT(*) AS n FROM people "
        "GROUP BY region, sex) GROUP BY CUBE (region) ORDER BY ALL"
    ),
    "spreads": f"WITH {N} SELECT STDDEV(n) AS s, VAR_POP(n) AS v, VARIANCE(area) AS a FROM n LEFT JOIN names USING (region)",
}  # fmt: skip


def ask(query, **options):
    keys = {name: listed for name, listed in KEYS.items() if name in query.split("FROM names")[0]}
    asked = {"eps": 6, "bounds": {"x": (0, 40)}, "keys": keys or None, "public": {"names": NAMES}, "tables": TABLES}
    return pdrisk.sql(query, **{**asked, **options})


@pytest.mark.whole
@pytest.mark.parametrize("name", QUERIES)
def test_as_duckdb(name, monkeypatch):
    without_noise(monkeypatch)
    query = QUERIES[name]
    con = duckdb.connect()
    con.register("people", PEOPLE)
    con.register("names", NAMES)
    expected = con.execute(query).df()
    found = ask(query)
    assert [each.lower() for each in found.columns] == [each.lower() for each in expected.columns]
    assert len(found) == len(expected) > 0
    for own, theirs in zip(found.columns, expected.columns, strict=True):
        for value, other in zip(found[own].tolist(), expected[theirs].tolist(), strict=True):
            if pd.isna(other):
                assert pd.isna(value)
            else:
                assert value == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other)


@pytest.mark.parametrize("comma", [", ", " CROSS JOIN "])
def test_rows_are_in_the_order_of_the_tables(comma):
    found = ask(f"WITH {N} SELECT n.region, s.sex FROM n{comma}(SELECT sex, COUNT(*) AS k FROM people GROUP BY sex) s")
    assert found.to_numpy().tolist() == [[region, sex] for region in KEYS["region"] for sex in KEYS["sex"]]


class TestPaidOnce:
    """All tables of a join share eps, and one that is named twice is one release."""

    @pytest.mark.parametrize(
        ("name", "releases"),
        [("names", 1), ("each other", 3), ("with itself", 1), ("subqueries", 2), ("after another", 2)],
    )
    def test_releases(self, name, releases, book):
        ledger = book()
        found = ask(QUERIES[name], eps=0.75, ledger=ledger)
        assert ledger.remaining().spent == 0.75
        # Counts and sums of AVG are one release of two noisy numbers.
        assert pdrisk.explain(found, "publication").count("for eps") == min(releases, 2)

    @pytest.mark.parametrize(
        "name",
        [
            "shares of a total",
            "a join of a join",
            "the largest of all",
            "two numbers of all",
            "commas",
            "answers of answers united",
            "averages with their total",
            "chosen, with their total",
            "first, with their total",
        ],
    )
    def test_a_name_has_one_answer(self, name, book):
        ledger = book()
        found = ask(QUERIES[name], eps=0.1, ledger=ledger)
        assert ledger.remaining().spent == 0.1
        assert pdrisk.explain(found, "publication").count("for eps 0.1") == 1

    def test_the_largest_is_one_of_them(self):
        """Of two draws the largest would hardly ever be among those of the other."""
        assert all(len(ask(QUERIES["the largest of all"], eps=0.05)) >= 1 for _ in range(20))

    def test_several_values_are_refused_before_payment(self, book):
        ledger = book()
        with pytest.raises(ParameterError, match="a subquery gives 4 rows where one value is needed"):
            ask(f"WITH {N} SELECT region FROM n WHERE n > (SELECT n FROM n)", ledger=ledger)
        assert ledger.remaining().spent == 0

    def test_the_parts_of_a_total_add_up(self):
        """Two draws of a small eps would not."""
        query = f"WITH {N}, t AS (SELECT SUM(n) AS total FROM n) SELECT SUM(n.n) - MAX(t.total) AS rest FROM n, t"
        assert ask(query, eps=0.01)["rest"].tolist() == [pytest.approx(0, abs=1e-9)]

    def test_nothing_is_paid_that_cannot_be_finished(self, book):
        ledger = book(eps=0.5)
        with pytest.raises(pdrisk.BudgetExceededError):
            ask(QUERIES["each other"], eps=0.75, ledger=ledger)
        assert ledger.remaining().spent == 0


class TestRefused:
    """What is wrong with a join costs nothing, and its error says what to write."""

    @pytest.mark.parametrize(
        ("query", "why"),
        [
            (f"WITH {N} SELECT COUNT(*) FROM people JOIN n USING (region)", "GROUP BY in a subquery"),
            (f"WITH {N} SELECT n.n FROM n JOIN names ON names.regoin = n.region", "unknown column"),
            (f"WITH {N} SELECT n.n FROM n JOIN names USING (nme)", "unknown column"),
            (f"WITH {N} SELECT region FROM n JOIN names ON n.region = names.region", "several columns of FROM"),
            (f"WITH {N} SELECT z.n FROM n JOIN names z USING (region)", "unknown column"),
            (f"WITH {N} SELECT n FROM n JOIN names ON name = n.region", "compare"),
            (f"WITH {N} SELECT n FROM n JOIN names ON SUM(n) OVER () > 2", "ON looks at one row"),
            (f"WITH {N} SELECT n FROM n AS a(b, c, d) JOIN names ON true", "FROM names 3 columns"),
            (f"WITH {N} SELECT name, SUM(n) FROM n JOIN names USING (region) GROUP BY ROLLUP (name)", "ROLLUP"),
            (f"WITH {N} SELECT m FROM n, (SELECT HISTOGRAM(region) AS m FROM people)", "'m' holds maps"),
        ],
    )
    def test_before_payment(self, query, why, book):
        ledger = book()
        with pytest.raises(ParameterError, match=why):
            ask(query, ledger=ledger)
        assert ledger.remaining().spent == 0

    def test_risk_columns(self):
        with pytest.raises(ParameterError, match="made of several"):
            ask(QUERIES["names"], risk_columns=True)

    def test_too_many_public_rows(self, monkeypatch):
        monkeypatch.setattr("pdrisk._sql.tables.compiled_sources.MOST_PUBLIC_ROWS", 4)
        with pytest.raises(ParameterError, match="more than 4 rows"):
            ask(QUERIES["names"])


@pytest.mark.filterwarnings("default::pdrisk.NoisyReleaseWarning")
class TestChosenByNoise:
    """Sums over rows that noisy values chose are biased, in a join as anywhere."""

    def test_warned(self):
        with pytest.warns(NoisyReleaseWarning, match="biased"):
            ask(f"WITH {N} SELECT SUM(a.n) FROM n a JOIN n b ON a.n > b.n")

    def test_not_warned(self, recwarn):
        ask(f"WITH {N} SELECT SUM(a.n) FROM n a JOIN n b ON a.region > b.region")
        assert not [each for each in recwarn if "biased" in str(each.message)]


ROWS = "(SELECT x, ROW_NUMBER() OVER (ORDER BY x) AS rn, COUNT(*) OVER () AS n FROM people) q"
IDIOMS = {
    "rows": f"SELECT MIN(CASE WHEN rn > .5 * n THEN x END) AS m FROM {ROWS}",
    "a CTE": f"WITH q AS (SELECT * FROM {ROWS}) SELECT MIN(CASE WHEN rn >= .5 * n THEN x END), MAX(x) FROM q",
    "ranks": (
        "SELECT MIN(CASE WHEN place < .5 * most THEN 999 ELSE x END) FROM (SELECT x, DENSE_RANK() OVER (ORDER BY x) AS "
        "place, MAX(x) OVER () AS most FROM people)"
    ),
}
RUNNING = (
    "WITH s AS (SELECT x, COUNT(*) AS c FROM people GROUP BY x), "
    "t AS (SELECT s.x, SUM(p.c) AS upto FROM s JOIN s p ON p.x <= s.x GROUP BY s.x) "
    "SELECT MIN(CASE WHEN upto >= 0.5 * (SELECT COUNT(*) FROM people) THEN x END) AS m FROM t"
)


class TestQuantiles:
    """OHDSI's quantiles are refused as what they are, with the line to write."""

    @pytest.mark.parametrize("person", [{}, {"person": "pid", "rows": 1}])
    @pytest.mark.parametrize("query", IDIOMS.values(), ids=IDIOMS.keys())
    def test_refused(self, query, person, book):
        ledger = book()
        with pytest.raises(
            ParameterError, match=r"this is a quantile.*Write QUANTILE_DISC\(x, 0\.5\) or QUANTILE_CONT"
        ):
            ask(query, keys=list(range(41)) if "GROUP" in query else None, ledger=ledger, **person)
        assert ledger.remaining().spent == 0

    def test_of_running_counts_is_answered(self):
        found = ask(RUNNING, keys=list(range(41)), eps=10**9)
        assert found["m"].tolist() == [PEOPLE["x"].quantile(0.5, interpolation="lower")]

    @pytest.mark.parametrize(
        ("query", "x"),
        [
            ("SELECT x FROM (SELECT x, SUM(1) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) AS r FROM people)", "x"),
            ("SELECT AVG(x) FROM (SELECT x, COUNT(*) OVER (PARTITION BY 1 ORDER BY x) AS r FROM people) WHERE r = 9", "x"),
            ("SELECT MAX(n) FROM (SELECT pid, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS r FROM people "
             "GROUP BY pid)", "n"),
            ("SELECT MAX(x) FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY region ORDER BY x) AS r FROM people) WHERE "
             "r < 5", "x"),
        ],
    )  # fmt: skip
    def test_that_places_are_for(self, query, x):
        by = " with GROUP BY region" * ("BY region" in query)
        said = rf"If quantiles of {x} are wanted, write QUANTILE_CONT\({x}, 0\.5\){by}, and"
        with pytest.raises(ParameterError, match=said):
            ask(query, keys=None, person="pid", rows=1)

    def test_beside_places_of_groups(self):
        """The place of a group among all others is that of its noisy number."""
        query = "SELECT region, MIN(CASE WHEN x > 3 THEN x END), RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY region"
        assert len(ask(query)) == len(KEYS["region"])

    def test_of_public_rows(self):
        """The place of a public row among all others depends on nobody."""
        numbered = "(SELECT region, ROW_NUMBER() OVER (ORDER BY region) AS rn FROM (SELECT DISTINCT region FROM names))"
        query = f"SELECT MAX(CASE WHEN rn > .5 * 2 THEN x END) AS m FROM people JOIN {numbered} USING (region)"
        assert len(ask(query, keys=None)) == 1

    def test_its_share(self):
        with pytest.raises(ParameterError, match=r"QUANTILE_DISC\(x, 0\.25\)"):
            ask(IDIOMS["rows"].replace(".5", ".25"), keys=None)

    def test_of_noisy_values(self):
        """The quantile of noisy counts depends on nobody."""
        query = (
            "SELECT MIN(CASE WHEN rn > .5 * k THEN n END) AS m FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY n) AS rn, "
            "COUNT(*) OVER () AS k FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region))"
        )
        assert len(ask(query, keys=[1, 2, 3, 4])) == 1


class TestSetsOfPeople:
    """INTERSECT and EXCEPT of ids are semi and anti joins along the person."""

    OPTIONS = {"person": "pid", "rows": 50, "public": None, "keys": None}  # noqa: RUF012 - options of one call
    OLD, WOMEN, RICH = (f"SELECT pid FROM people WHERE {each}" for each in ("x > 9", "sex = 'f'", "region > 2"))
    QUERIES = (
        f"SELECT COUNT(*) AS n FROM ({OLD} INTERSECT {WOMEN})",
        f"SELECT COUNT(*) AS n FROM ({OLD} EXCEPT {WOMEN})",
        f"SELECT COUNT(*) AS n FROM ({OLD} EXCEPT {WOMEN} EXCEPT {RICH})",
        f"SELECT COUNT(*) AS n FROM ({OLD} EXCEPT ({WOMEN} EXCEPT {RICH}))",
        f"SELECT COUNT(*) AS n FROM ({OLD} INTERSECT {WOMEN} INTERSECT {RICH})",
        f"SELECT AVG(x) AS n FROM people WHERE pid IN ({OLD} INTERSECT {WOMEN})",
        f"SELECT AVG(x) AS n FROM people WHERE pid NOT IN ({OLD} EXCEPT {RICH})",
        f"SELECT SUM(p.x) AS n FROM people p JOIN ({OLD} EXCEPT {RICH}) q USING (pid)",
        f"SELECT COUNT(*) AS n FROM ({OLD} EXCEPT ({WOMEN} UNION {RICH}))",
        f"WITH q AS ({OLD} INTERSECT {WOMEN}) SELECT COUNT(DISTINCT pid) AS n FROM q",
        "SELECT SUM(s) AS n FROM (SELECT pid, sex, SUM(x) AS s FROM people GROUP BY pid, sex)",
        "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.pid = p.pid AND q.x > 9)",
    )

    @pytest.mark.parametrize("query", QUERIES)
    def test_as_duckdb(self, query, monkeypatch):
        without_noise(monkeypatch)
        twice = pd.concat([PEOPLE, PEOPLE.assign(x=PEOPLE["x"][::-1].to_numpy())])
        con = duckdb.connect()
        con.register("people", twice)
        expected = con.execute(query).df()["n"].tolist()
        bounds = {"x": (0, 40), "s": (0, 99)}
        found = ask(query, tables={"people": twice}, **{**self.OPTIONS, "bounds": bounds})
        assert found["n"].tolist() == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("query", "why"),
        [
            ("SELECT COUNT(*) FROM (SELECT x FROM people EXCEPT SELECT x FROM people)", "public list of its groups"),
            ("SELECT COUNT(*) FROM (SELECT pid, x FROM people EXCEPT SELECT pid, x FROM people)", "one column"),
            ("SELECT COUNT(*) FROM (SELECT pid FROM people EXCEPT ALL SELECT pid FROM people)", "leave out ALL"),
            ("SELECT pid FROM people EXCEPT SELECT pid FROM people WHERE x > 3", "public list of its groups"),
            ("SELECT COUNT(*) AS n FROM people EXCEPT SELECT COUNT(*) FROM people", "over noisy values"),
        ],
    )
    def test_refused(self, query, why):
        with pytest.raises(ParameterError, match=why):
            ask(query, **self.OPTIONS)


def test_noisy_keys_of_a_full_join_are_refused():
    with pytest.raises(pdrisk.ParameterError, match="FULL JOIN USING n joins by noisy values"):
        ask(f"WITH {N} SELECT n FROM n FULL JOIN (SELECT region AS n FROM names) q USING (n)")
