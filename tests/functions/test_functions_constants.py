"""eps, lo, hi, q and ddof cannot depend on data: constants and bound parameters only, refused before data is read."""

from decimal import Decimal

import pytest

from functions_on_duckdb import FUNCTIONS, HI, LO, MEAN, MEDIAN, connection, count_draws, one, refusal, rows, table
from pdrisk._functions.macros import MACROS

FROM_DATA = {
    "column": "x",
    "group key": "g",
    "aggregate": "count(*)",
    "aggregate of the group key": "any_value(g)",
    "subquery": "(SELECT max(x) FROM t)",
    "constant subquery": "(SELECT 1)",
    "exists": "CASE WHEN EXISTS (SELECT 1 FROM t) THEN 1 ELSE 2 END",
    "random": "random()",
    "random in a branch": "CASE WHEN random() < 0.5 THEN 1 ELSE 2 END",
    "window": "row_number() OVER ()",
    "macro": "largest()",
    "lambda": "list_transform([1], lambda a: a + g)[1]",
    "another release": "dp_count_star(eps := 1)",
}


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        table(own, [LO, 3.0, HI], [1, 1, 2])
        own.execute("CREATE MACRO largest() AS (SELECT max(x) FROM t)")
        yield own


class TestWhatDependsOnData:
    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("given", FROM_DATA.values(), ids=FROM_DATA.keys())
    @pytest.mark.parametrize("macro", MACROS, ids=lambda macro: macro.name)
    def test_is_refused(self, con, macro, given, monkeypatch):
        """Every constant of every function."""
        drawn = count_draws(monkeypatch)
        good = {"eps": "1", "lo": "1", "hi": "7", "q": "0.5", "ddof": "1"}
        for name in macro.constants:
            constants = [f"{other} := {given if other == name else good[other]}" for other in macro.constants]
            columns = [] if macro.name.startswith("dp_count_star") else ["x"]
            said = refusal(con, f"SELECT g, {macro.name}({', '.join([*columns, *constants])}) FROM t GROUP BY g")
            assert "constant" in said
        assert drawn == []

    def test_it_is_refused_when_the_query_is_planned(self, con):
        with pytest.raises(Exception, match="constant"):
            con.sql(f"SELECT {MEAN.call(hi='max(x)')} FROM t")


class TestWhatIsAccepted:
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_literals(self, con, function):
        assert isinstance(one(con, function.call()), float)

    def test_expressions_of_literals(self, con):
        found = one(con, MEDIAN.call(eps="1 / 4 + abs(-0.75)", hi="10 - 3", risk=True))
        assert (found["eps"], found["global_sensitivity"]) == (1.0, 3.0)

    @pytest.mark.parametrize("eps", [1, 1.0, Decimal("1.00")])
    def test_positional_parameters(self, con, eps):
        found = one(con, MEAN.call(eps="?", lo="?", hi="?", risk=True), [eps, 1, 7.0])
        assert (found["eps"], found["global_sensitivity"]) == (1.0, 3.0)

    def test_named_parameters(self, con):
        call = "dp_quantile_risk(x, $q, eps := $eps, lo := $lo, hi := $hi)"
        found = one(con, call, {"q": 0.75, "eps": 0.5, "lo": 1, "hi": 7})
        assert (found["eps"], found["global_sensitivity"]) == (0.5, 4.5)

    def test_parameters_of_a_relation(self, con):
        relation = con.sql(f"SELECT {MEDIAN.call(eps='$eps', risk=True)} FROM t", params={"eps": 2})
        assert relation.fetchall()[0][0]["eps"] == 2.0

    def test_prepared_statements(self, con):
        con.execute("PREPARE asked AS SELECT dp_median_risk(x, eps := $1, lo := $2, hi := 7) FROM t")
        for eps, lo in ((2, 1), (1, 3)):
            found = rows(con, f"EXECUTE asked({eps}, {lo})")[0][0]
            assert (found["eps"], found["global_sensitivity"]) == (eps, (7 - lo) / 2)
        assert "eps must be finite and above 0" in refusal(con, "EXECUTE asked(0, 1)")

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.bounded], ids=str)
    def test_prepared_statements_compute_with_the_bounds_of_each_execution(self, con, function):
        """The grids of sums are constants of the plan."""
        con.execute(f"PREPARE again AS SELECT {function.call(lo='$1', hi='$2', risk=True)} FROM t")
        for lo, hi in ((1, 7), (0, 1000), (2, 2.5), (-1e6, 1)):
            expected = one(con, function.call(lo=f"{lo}", hi=f"{hi}", risk=True))
            assert rows(con, f"EXECUTE again({lo}, {hi})") == [(expected,)]


class TestArguments:
    """Named and positional, whatever the columns are called."""

    @pytest.mark.parametrize(
        "call",
        [
            "dp_quantile_risk(x, 0.75, 2, 1, 7)",
            "dp_quantile_risk(x, 0.75, eps := 2, lo := 1, hi := 7)",
            "dp_quantile_risk(x, 0.75, 2, hi => 7, lo => 1)",
            "dp_quantile_risk(x, q := 0.75, hi := 7, lo := 1, eps := 2)",
            "dp_quantile_risk(x := x, q => 0.75, hi => 7, lo => 1, eps => 2)",
            "x.dp_quantile_risk(0.75, eps := 2, lo := 1, hi := 7)",
        ],
    )
    def test_of_the_quantile(self, con, call):
        found = one(con, call)
        assert (found["eps"], found["global_sensitivity"]) == (2.0, 4.5)

    @pytest.mark.slow
    def test_of_the_others(self, con):
        assert one(con, "dp_count_risk(x, 2)") == one(con, "dp_count_risk(x, eps := 2)")
        assert one(con, "dp_count_star_risk(2)") == one(con, "dp_count_star_risk(eps := 2)")
        for name in ("sum", "mean", "avg", "median", "min", "max"):
            by_name = one(con, f"dp_{name}_risk(x, hi := 7, lo := 1, eps := 2)")
            assert one(con, f"dp_{name}_risk(x, 2, 1, 7)") == by_name
        for name in ("var", "std"):
            by_name = one(con, f"dp_{name}_risk(x, ddof := 0, hi := 7, lo := 1, eps := 2)")
            assert one(con, f"dp_{name}_risk(x, 2, 1, 7, 0)") == by_name
            assert one(con, f"dp_{name}_risk(x, 2, 1, 7)") == one(con, f"dp_{name}_risk(x, 2, 1, 7, ddof := 1)")

    @pytest.mark.parametrize("column", ["x", "lo", "hi", "eps", "q", "ddof", "n", "records"])
    def test_columns_named_like_parameters(self, con, column):
        names = ("lo", "hi", "eps", "q", "ddof", "n", "records", "x")
        con.execute(f"CREATE OR REPLACE TEMP TABLE odd AS SELECT {', '.join(f'100.0 AS {name}' for name in names)}")
        con.execute(f"UPDATE odd SET {column} = 3")
        ((found,),) = rows(con, f"SELECT dp_mean_risk({column}, eps := 1, lo := 1, hi := 7) FROM odd")
        assert found["local_sensitivity"] == pytest.approx(2.0)  # of a single 3 in [1, 7]: adding hi

    def test_an_expression_as_x(self, con):
        assert one(con, "dp_mean_risk(2 * x - 1, 1, 1, 13)")["n"] == 3
        assert one(con, "dp_mean_risk(CASE WHEN g = 1 THEN x END, 1, 1, 7)")["n"] == 2
