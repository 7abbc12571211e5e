"""Ways in which plain SQL could release more than it seems: each impossible, refused or told in the documentation."""

import re
import textwrap

import pytest

from functions_on_duckdb import FUNCTIONS, MEAN, connection, count_draws, one, refusal, rows, table
from pdrisk._functions import register

CALL = MEAN.call()


@pytest.fixture
def con():
    with connection() as own:
        table(own, [3.0] * 99, [row % 3 for row in range(99)])
        own.execute("CREATE TABLE people AS SELECT g, x FROM t")
        yield own


@pytest.fixture
def drawn(monkeypatch):
    return count_draws(monkeypatch)


class TestImpossible:
    """Nothing is drawn twice, and what is shown is what was drawn."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize(
        ("condition", "holds"),
        [
            ("m > 3", lambda m: m > 3),
            ("m BETWEEN 0 AND 6", lambda m: 0 <= m <= 6),
            ("abs(m) < 5", lambda m: abs(m) < 5),
        ],
    )
    def test_what_is_filtered_is_what_is_shown(self, con, drawn, condition, holds):
        for _ in range(20):
            drawn.clear()
            found = rows(con, f"SELECT m FROM (SELECT g, {CALL} AS m FROM t GROUP BY g) WHERE {condition}")
            assert sum(drawn) == 3
            assert all(holds(value) for (value,) in found)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("order", ["m", "2", CALL])
    def test_what_is_sorted_is_what_is_shown(self, con, drawn, order):
        values = [m for _, m in rows(con, f"SELECT g, {CALL} AS m FROM t GROUP BY g ORDER BY {order}")]
        assert values == sorted(values)
        assert sum(drawn) == 3

    def test_a_value_used_twice_is_drawn_once(self, con, drawn):
        found = rows(con, f"SELECT m, m + 1, m * 2 FROM (SELECT {CALL} AS m FROM t GROUP BY g)")
        assert all((second, third) == (first + 1, 2 * first) for first, second, third in found)
        assert sum(drawn) == 3

    @pytest.mark.slow
    def test_a_table_made_of_it_stays(self, con, drawn):
        con.execute(f"CREATE TEMP TABLE released AS SELECT g, {CALL} AS m FROM t GROUP BY g")
        assert rows(con, "FROM released ORDER BY g") == rows(con, "FROM released ORDER BY g")
        assert sum(drawn) == 3

    def test_an_ordinary_cte_is_drawn_once(self, con, drawn):
        ((same,),) = rows(con, f"WITH a AS (SELECT {CALL} AS m FROM t) SELECT (SELECT m FROM a) = (SELECT m FROM a)")
        assert same and drawn == [1]

    def test_explaining_draws_nothing(self, con, drawn):
        con.execute(f"EXPLAIN SELECT {CALL} FROM t").fetchall()
        con.execute(f"DESCRIBE SELECT {CALL} FROM t").fetchall()
        con.sql(f"SELECT {CALL} FROM t")
        assert drawn == []

    def test_without_an_optimizer_it_is_the_same(self, con, drawn):
        expected = rows(con, f"SELECT g, {MEAN.call(risk=True)} FROM t GROUP BY g ORDER BY g")
        con.execute("PRAGMA disable_optimizer")
        assert rows(con, f"SELECT g, {MEAN.call(risk=True)} FROM t GROUP BY g ORDER BY g") == expected
        rows(con, f"SELECT g, {CALL} FROM t GROUP BY g")
        assert sum(drawn) == 3


class TestRefused:
    """What DuckDB accepts of an aggregate, and would mean something else here."""

    @pytest.mark.sampled(17)
    @pytest.mark.parametrize("risk", [False, True])
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    @pytest.mark.parametrize("window", ["OVER ()", "OVER (PARTITION BY g)", "OVER (ORDER BY x ROWS 1 PRECEDING)"])
    def test_windows(self, con, drawn, function, risk, window):
        """It would release a value for every row."""
        refusal(con, f"SELECT {function.call(risk=risk)} {window} FROM t")
        assert drawn == []

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_filter_distinct_and_order(self, con, drawn, function):
        """They would reach some of the aggregates underneath, or none."""
        call = function.call()
        for sql in (f"{call} FILTER (WHERE g = 1)", call.replace("(", "(DISTINCT ", 1), call[:-1] + " ORDER BY g)"):
            refusal(con, f"SELECT {sql} FROM t")
        assert drawn == []

    def test_an_alias_elsewhere_in_the_query(self, con, drawn):
        """It would be drawn again."""
        for sql in (f"SELECT {CALL} AS m FROM t GROUP BY g HAVING m > 0", f"SELECT {CALL} AS m, m + 1 FROM t"):
            assert "side effects" in refusal(con, sql)
        assert drawn == []

    @pytest.mark.parametrize(
        "call", ["dp_mean(avg(x), 1, 1, 7)", "dp_mean(dp_mean(x, 1, 1, 7), 1, 1, 7)", "dp_count(*, 1)"]
    )
    def test_aggregates_of_aggregates(self, con, drawn, call):
        refusal(con, f"SELECT {call} FROM t")
        assert drawn == []

    def test_where_and_group_by(self, con, drawn):
        for sql in (f"SELECT 1 FROM t WHERE {CALL} > 0", f"SELECT count(*) FROM t GROUP BY {CALL}"):
            refusal(con, sql)
        assert drawn == []


def told(phrase: str) -> bool:
    """Whether the documentation of `register` says so."""
    words = " ".join(textwrap.dedent(register.__doc__ or "").split())
    return re.search(phrase, words) is not None


class TestTold:
    """What DuckDB does and nobody can prevent: the documentation says so."""

    @pytest.mark.slow
    def test_a_relation_runs_at_every_read(self, con, drawn):
        relation = con.sql(f"SELECT {CALL} AS m FROM t")
        assert relation.fetchall() != relation.fetchall()
        assert len(drawn) == 2
        repr(relation)
        assert len(drawn) > 2
        assert told(r"a relation \(``con.sql``\) runs anew at every read, its repr included")

    def test_a_view_is_drawn_at_every_use(self, con, drawn):
        con.execute(f"CREATE TEMP VIEW noisy AS SELECT g, {CALL} AS m FROM people GROUP BY g")
        rows(con, "FROM noisy AS a JOIN noisy AS b USING (g)")
        assert sum(drawn) == 6
        assert told("so does a view") and told("used twice draws twice")

    @pytest.mark.slow
    def test_a_cte_that_is_not_materialized(self, con, drawn):
        rows(con, f"WITH a AS NOT MATERIALIZED (SELECT {CALL} AS m FROM people) SELECT a.m - b.m FROM a, a AS b")
        assert drawn == [1, 1]
        assert told("a CTE that is NOT MATERIALIZED, used twice")

    def test_equal_calls_in_select_and_having(self, con, drawn):
        rows(con, f"SELECT g, {CALL} FROM t GROUP BY g HAVING {CALL} > -1e9")
        assert sum(drawn) == 6
        assert told("so do two equal calls, as in SELECT and HAVING")

    def test_a_correlated_subquery(self, con, drawn):
        rows(con, f"SELECT (SELECT {CALL} FROM people WHERE people.g = o.g) FROM people AS o")
        assert sum(drawn) >= 3  # DuckDB 1.5 draws for every distinct g, 2.0 for every row
        assert told("a correlated subquery may draw for every outer row")

    def test_explain_analyze(self, con, drawn):
        con.execute(f"EXPLAIN ANALYZE SELECT {CALL} FROM t").fetchall()
        assert drawn == [1]
        assert told("EXPLAIN ANALYZE draws")

    def test_grouping_sets(self, con, drawn):
        rows(con, f"SELECT g, {CALL} FROM t GROUP BY ROLLUP (g)")
        assert sum(drawn) == 4
        assert told("every level of ROLLUP, CUBE and GROUPING SETS is a release of its own")

    def test_x_is_repeated(self, con):
        con.execute("CREATE TEMP TABLE much AS SELECT * FROM range(10_000)")
        ((risk,),) = rows(con, "SELECT dp_mean_risk(CASE WHEN random() < 0.5 THEN 1 END, 1, 0, 1) FROM much")
        assert 0 < risk["n"] < 10_000
        assert told(r"``dp_mean\(random\(\)\)`` gives every part of the answer another x")

    def test_groups_of_nobody_do_not_show(self, con):
        assert len(rows(con, f"SELECT g, {CALL} FROM t WHERE g > 0 GROUP BY g")) == 2
        assert told("The group keys are the data's own: a group nobody is in does not show")

    def test_variables_may_come_from_data(self, con):
        con.execute("SET VARIABLE largest = (SELECT max(x) FROM t)")
        assert one(con, MEAN.call(hi="getvariable('largest')", risk=True))["global_sensitivity"] == 1.0
        assert told(r"getvariable\(\) is a constant too")

    @pytest.mark.parametrize(
        "phrase", ["there is no budget", "every draw is a release", "a trusted curator|are for a curator"]
    )
    def test_what_it_is_for(self, phrase):
        assert told(phrase)
