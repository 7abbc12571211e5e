"""The SELECT list, HAVING, ORDER BY and LIMIT are computed from the released values, as DuckDB computes."""

import datetime
import math

import duckdb
import pandas as pd
import pytest

import pdrisk
from sql_people import described, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

ROWS = "('a', 1, 1.0), ('a', 2, 2.0), ('b', 3, 6.0), ('b', 4, 8.0), ('b', 5, 7.0), ('c', 6, NULL), (NULL, 7, 9.0)"
KEYS = ["c", "b", "a", "z"]
# Without noise, in the order of the keys: COUNT(*) is 1, 3, 2, 0 and AVG(x) is 5 (of nothing), 7, 1.5, 5 (of nothing).


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people AS SELECT * FROM (VALUES {ROWS}) AS v(g, i, x)")
    return con


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    return without_noise(monkeypatch)


def shown(query: str, con, keys=KEYS, **options) -> list[tuple]:
    """The rows of an answer, None for missing."""
    options = {"eps": 1, "bounds": (0, 10), "keys": keys if "GROUP BY" in query else None, **options}
    answer = pdrisk.sql(query, con, **options)
    rows = list(answer.itertuples(index=False, name=None))
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


GROUPED = {
    "SELECT g, COUNT(*)": [("c", 1), ("b", 3), ("a", 2), ("z", 0)],
    "SELECT COUNT(*), AVG(x)": [(1, 5), (3, 7), (2, 1.5), (0, 5)],
    "SELECT 'in ' || g AS place": [("in c",), ("in b",), ("in a",), ("in z",)],
    "SELECT upper(g), length(g), g = 'a', g IN ('a', 'b')": [
        ("C", 1, False, False), ("B", 1, False, True), ("A", 1, True, True), ("Z", 1, False, False)
    ],
    "SELECT g, g, 1, NULL": [("c", "c", 1, None), ("b", "b", 1, None), ("a", "a", 1, None), ("z", "z", 1, None)],
    "SELECT AVG(x) + 1, -AVG(x), AVG(x) / 2, AVG(x) % 2, AVG(x) ** 2": [
        (6, -5, 2.5, 1, 25), (8, -7, 3.5, 1, 49), (2.5, -1.5, 0.75, 1.5, 2.25), (6, -5, 2.5, 1, 25)
    ],
    "SELECT SUM(x) / COUNT(*)": [(0,), (7,), (1.5,), (None,)],
    "SELECT AVG(x) > 4, NOT COUNT(*) < 2, COUNT(*) BETWEEN 1 AND 2": [
        (True, False, True), (True, True, False), (False, True, True), (True, False, False)
    ],
    "SELECT CASE WHEN COUNT(*) > 2 THEN 'many' WHEN COUNT(*) > 0 THEN 'few' END": [
        ("few",), ("many",), ("few",), (None,)
    ],
    "SELECT IF(COUNT(*) > 2, 'many', g), NULLIF(COUNT(*), 0), COALESCE(NULLIF(COUNT(*), 0), -1)": [
        ("c", 1, 1), ("many", 3, 3), ("a", 2, 2), ("z", None, -1)
    ],
    "SELECT round(AVG(x) + 0.1), greatest(AVG(x), COUNT(*)), sqrt(COUNT(*) + 1), TRY_CAST(g AS INTEGER)": [
        (5, 5, math.sqrt(2), None), (7, 7, 2, None), (2, 2, math.sqrt(3), None), (5, 5, 1, None)
    ],
    "SELECT CAST(COUNT(*) AS VARCHAR), TRY_CAST(AVG(x) - 0.1 AS INTEGER)": [("1", 5), ("3", 7), ("2", 1), ("0", 5)],
    "SELECT COUNT(*) AS n, n * 2 AS m, m + n AS k": [(1, 2, 3), (3, 6, 9), (2, 4, 6), (0, 0, 0)],
}  # fmt: skip
AFTER = {
    "ORDER BY n": ["z", "c", "a", "b"],
    "ORDER BY n DESC": ["b", "a", "c", "z"],
    "ORDER BY COUNT(*)": ["z", "c", "a", "b"],
    "ORDER BY 2 DESC": ["b", "a", "c", "z"],
    "ORDER BY -n": ["b", "a", "c", "z"],
    "ORDER BY AVG(x)": ["a", "c", "z", "b"],  # ties in the order of the keys
    "ORDER BY AVG(x) DESC, n": ["b", "z", "c", "a"],
    "ORDER BY m DESC, g DESC": ["b", "z", "c", "a"],
    "ORDER BY n > 1, m": ["c", "z", "a", "b"],
    "ORDER BY NULLIF(n, 3) NULLS FIRST": ["b", "z", "c", "a"],
    "ORDER BY NULLIF(n, 3) DESC NULLS LAST": ["a", "c", "z", "b"],
    "ORDER BY g": ["a", "b", "c", "z"],
    "ORDER BY 1 DESC": ["z", "c", "b", "a"],
    "ORDER BY people.g": ["a", "b", "c", "z"],
    "ORDER BY ALL": ["a", "b", "c", "z"],
    "ORDER BY ALL DESC": ["z", "c", "b", "a"],
    "LIMIT 2": ["c", "b"],
    "LIMIT 0": [],
    "OFFSET 3": ["z"],
    "LIMIT 2 OFFSET 1": ["b", "a"],
    "ORDER BY n LIMIT 1": ["z"],
    "HAVING n > 1": ["b", "a"],
    "HAVING COUNT(*) > 1 AND g <> 'b'": ["a"],
    "HAVING AVG(x) > 4 ORDER BY n": ["z", "c", "b"],
    "HAVING m / n > 6": ["z"],
    "HAVING upper(g) IN ('A', 'Z')": ["a", "z"],
    "HAVING false": [],
    "HAVING NULL": [],
    "HAVING COUNT(*) > 0 ORDER BY m DESC LIMIT 1": ["b"],
}


class TestTable:
    """What a query computes from its aggregates."""

    @pytest.mark.parametrize(("query", "rows"), GROUPED.items(), ids=GROUPED.keys())
    def test_select_list(self, query, rows, con):
        found = shown(
            f"{query}{'' if 'COUNT' in query or 'AVG' in query else ', COUNT(*)'} FROM people GROUP BY g", con
        )
        for row, expected in zip(found, rows, strict=True):
            assert list(row[: len(expected)]) == [
                pytest.approx(value, abs=1e-5) if isinstance(value, float | int) else value for value in expected
            ]

    @pytest.mark.parametrize(("after", "groups"), AFTER.items(), ids=AFTER.keys())
    def test_having_order_and_limit(self, after, groups, con):
        rows = shown(f"SELECT g, COUNT(*) AS n, AVG(x) AS m FROM people GROUP BY g {after}", con)
        assert [row[0] for row in rows] == groups

    def test_having_without_groups(self, con):
        assert shown("SELECT COUNT(*) FROM people HAVING COUNT(*) > 6", con) == [(7,)]
        assert shown("SELECT COUNT(*) FROM people HAVING COUNT(*) > 7", con) == []

    def test_parameters_everywhere(self, con):
        rest = "HAVING COUNT(*) > $b ORDER BY COUNT(*) * $c LIMIT $d OFFSET $e"
        query = f"SELECT g, COUNT(*) + $a FROM people GROUP BY g {rest}"
        assert shown(query, con, params={"a": 10, "b": 0, "c": -1, "d": 2, "e": 1}) == [("a", 12), ("c", 11)]

    def test_missing_keys_stand_where_null_stands(self, con):
        query = "SELECT g, COUNT(*) FROM people GROUP BY g ORDER BY g {}"
        assert shown(query.format("NULLS FIRST"), con, keys=["b", None]) == [(None, 1), ("b", 3)]
        assert shown(query.format("DESC NULLS LAST"), con, keys=[None, "b"]) == [("b", 3), (None, 1)]

    def test_an_expression_of_an_expression_that_is_grouped_by(self, con):
        query = "SELECT i % 2 + 10, i % 2 AS odd, COUNT(*) FROM people GROUP BY i % 2"
        assert shown(query, con, keys=[1, 0]) == [(11, 1, 4), (10, 0, 3)]

    def test_a_column_is_meant_before_an_alias_in_group_by(self, con):
        query = "SELECT upper(g) AS g, COUNT(*) FROM people GROUP BY g"
        assert shown(query, con, keys=["a", "A"]) == [("A", 2), ("A", 0)]

    def test_an_alias_is_meant_before_a_column_in_order_by(self, con):
        query = "SELECT -i AS i, COUNT(*) FROM people GROUP BY people.i ORDER BY i"
        assert shown(query, con, keys=[1, 3, 2]) == [(-3, 1), (-2, 1), (-1, 1)]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", ["code", "v0", "v1", "k0", "g0", "noisy", "n"])
    def test_no_name_of_a_column_changes_the_order(self, name, con):
        # The tables inside have names of their own.
        query = f"SELECT -COUNT(*) AS {name}, AVG(x) AS m, g FROM people GROUP BY g"
        rows = [(-1, 5, "c"), (-3, 7, "b"), (-2, 1.5, "a"), (0, 5, "z")]
        # The paper's mechanism, since without noise it gives whole numbers as they are.
        assert shown(query, con, mechanism="laplace") == rows
        assert shown(f"{query} ORDER BY m, COUNT(*)", con, mechanism="laplace") == [rows[at] for at in (2, 3, 0, 1)]
        grouped = f"SELECT {name}, COUNT(*) AS c FROM (SELECT i AS {name}, x FROM people) GROUP BY {name}"
        assert shown(grouped, con, keys=[5, 1, 9, 3]) == [(5, 1), (1, 1), (9, 0), (3, 1)]
        assert shown(f"{grouped} ORDER BY COUNT(*), {name} DESC", con, keys=[5, 1, 9, 3])[:2] == [(9, 0), (5, 1)]


class TestHeadings:
    """Columns are named as DuckDB names them; none stands twice."""

    NAMES = {  # noqa: RUF012
        "g": "g",
        "G": "G",
        "people.g": "g",
        "COUNT(*)": "count_star()",
        "count(x)": "count(x)",
        "AVG(x) AS mean": "mean",
        'AVG(x) AS "a ""b"" ü"': 'a "b" ü',
        "AVG(x) + 1": "(avg(x) + 1)",
        "-SUM(x)": "(-sum(x))",
        "dp_mean(x, eps := 0.25, lo := 0, hi := 9)": "dp_mean(x)",
        "COUNT(*) FILTER (WHERE x > 1)": "count_star() FILTER (WHERE (x > 1))",
        "CASE WHEN COUNT(*) > 1 THEN 'x' END": "CASE WHEN (count_star() > 1) THEN 'x' ELSE NULL END",
    }

    @pytest.mark.parametrize(("item", "name"), NAMES.items())
    def test_name(self, item, name, con):
        answer = pdrisk.sql(
            f"SELECT {item}, COUNT(*) AS n FROM people GROUP BY g", con, eps=1, bounds=(0, 1), keys=["a"]
        )
        assert answer.columns.tolist() == [name, "n"]

    def test_names_that_would_stand_twice(self, con):
        query = "SELECT g, G, COUNT(*) AS g, COUNT(*) AS n_eps, AVG(x) AS n FROM people GROUP BY g"
        answer = pdrisk.sql(query, con, eps=1, bounds=(0, 1), keys=["a"], risk_columns=True)
        assert len({name.lower() for name in answer.columns}) == len(answer.columns)
        assert answer.columns[:5].tolist() == ["g", "G_1", "g_2", "n_eps", "n"]


class TestTypes:
    """Counts are whole numbers, other releases floats; groups keep their type; the index counts rows."""

    def test_types(self, con):
        day = datetime.date(2020, 1, 2)
        query = """
            SELECT g, i, x, i > 3 AS big, day, COUNT(*) AS n
            FROM (SELECT *, TRY_CAST(IF(i = 2, '2020-01-02', '2020-01-04') AS DATE) AS day FROM people) GROUP BY ALL
        """
        answer = pdrisk.sql(query, con, eps=1, keys=[("a", 2, 2.0, False, day), ("b", 4, 8.0, True, day)])
        assert answer.index.tolist() == [0, 1]
        assert answer["g"].tolist() == ["a", "b"]
        assert [answer[name].dtype.kind for name in ("i", "x", "big", "n")] == ["i", "f", "b", "i"]
        assert answer["day"].tolist() == [pd.Timestamp(day)] * 2
        assert answer["n"].tolist() == [1, 0]

    def test_no_rows(self, con):
        answer = pdrisk.sql("SELECT g, COUNT(*) AS n FROM people GROUP BY g LIMIT 0", con, eps=1, keys=["a"])
        assert answer.columns.tolist() == ["g", "n"]
        assert len(answer) == 0

    def test_attributes(self, con):
        query = "SELECT g, COUNT(*) AS n, dp_mean(x, eps := 0.25) AS m FROM people GROUP BY g HAVING MAX(x) > 3"
        options = {"eps": 1, "bounds": {"x": (0, 9)}, "keys": "observed"}
        answer = pdrisk.sql(query, con, **options, curator=True)
        assert list(answer.attrs) == ["dprisk"]
        said = described(answer)
        assert said.eps == 1
        assert said.keys_from == "data"
        assert [line.name for line in said.lines] == ["n", "m", "max(x)"]
        assert [line.mechanism for line in said.lines] == ["geometric", "two_sums", "laplace"]
        assert [line.bounds for line in said.lines] == [None, (0.0, 9.0), (0.0, 9.0)]
        public = pdrisk.public(answer)
        assert tuple(name for name in answer if name not in public) == said.curators
        assert said.curators == tuple(
            f"{name}_{fact}"
            for name in ("n", "m", "max(x)")
            for fact in ("n", "local_sensitivity", "two_worlds", "many_worlds", "identifiability", "clamped")
        )
        assert public.columns.tolist() == pdrisk.sql(query, con, **options, risk_columns=True).columns.tolist()
