"""Public tables cost nothing: they list keys of groups, and whatever reads them alone is free."""

import signal
from contextlib import suppress

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer
from pdrisk._model.expressions.nodes import Call, Column, Constant
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from pdrisk._sql.relations.rows_of_nobody import adds_nothing
from pdrisk._sql.together import nobodys_query
from pdrisk.errors import ParameterError
from people_losses import loss_between
from postgres_databases import connected, database, needs_server

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

EXACT = 1e9  # so much eps that counts have no noise
DRAW = np.random.default_rng(33)
PEOPLE = pd.DataFrame(
    {"pid": range(60), "plan": DRAW.choice([1.0, 2, 3, 9, np.nan], 60), "km": DRAW.integers(0, 100, 60)}
)
PLANS = pd.DataFrame(
    {
        "plan": [1, 2, 3, 4],
        "name": ["gold", "silver", None, "tin"],
        "tier": ["hi", "hi", "lo", "lo"],
        "old": [True, False, True, True],
        "since": pd.to_datetime(["2020-01-01", "2021-01-01", "2020-01-01", "1999-12-31"]),
    }
)
CODES = pd.DataFrame({"plan": [1, 1, 2, 3], "code": ["a", "b", "a", "c"]})
PUBLIC = {"plans": PLANS, "codes": CODES}


def asked(query, **options):
    return pdrisk.sql(query, **{"eps": EXACT, "public": PUBLIC, "people": PEOPLE, **options})


def exact(query):
    con = duckdb.connect()
    for name, frame in {**PUBLIC, "people": PEOPLE}.items():
        con.register(name, frame)
    return con.execute(query).df()


def rows_of(frame):
    def said(value):
        return "" if pd.isna(value) else str(value).removesuffix(".0")

    return sorted(tuple(map(said, row)) for row in frame.to_numpy(dtype=object))


JOINED = "people p JOIN plans q USING (plan)"
#: What the groups are of FROM, by the rows of public tables alone, and the condition on these.
GROUPS = {
    "a column": ("q.name", JOINED, "", "plans q"),
    "several": ("q.tier, q.name", JOINED, "", "plans q"),
    "dates and truth values": ("q.since, q.old", JOINED, "", "plans q"),
    "an expression": ("q.tier || '!', q.plan > 2", JOINED, "", "plans q"),
    "a condition on them": ("q.name, q.tier", JOINED, "q.tier = 'lo'", "plans q"),
    "a condition on people": ("q.name", JOINED, "p.km < 5", "plans q"),
    "a subquery": ("q.name", "people p JOIN (SELECT * FROM plans WHERE tier = 'hi') q ON p.plan = q.plan", "", None),
    "in ON": ("q.name", "people p JOIN plans q ON p.plan = q.plan AND q.tier = 'hi'", "", None),
    "a comma": ("q.name", "people p, plans q", "p.plan = q.plan AND q.tier = 'hi'", None),
    "a column of people": ("p.plan", JOINED, "", "(SELECT plan FROM plans) p"),
    "inside": ("s.t", f"(SELECT p.*, upper(q.tier) AS t FROM {JOINED}) s", "",
               "(SELECT upper(tier) AS t FROM plans) s"),
    "constants": ("c.l", "people JOIN (VALUES (1, 'x'), (7, 'y'), (2, NULL)) c(plan, l) USING (plan)", "",
                  "(VALUES ('x'), ('y'), (NULL)) c(l)"),
    "a free relation": ("t.tier, t.n", "people p JOIN (SELECT tier, COUNT(*) AS n, MAX(plan) AS plan FROM plans "
                        "GROUP BY tier) t ON p.plan = t.plan", "",
                        "(SELECT tier, COUNT(*) AS n FROM plans GROUP BY tier) t"),
}  # fmt: skip


class TestKeysOfGroups:
    @pytest.mark.parametrize("name", GROUPS)
    def test_are_those_of_the_public_table_with_nobody_in_them_or_not(self, name):
        groups, source, where, public = GROUPS[name]
        said = f" WHERE {where}" if where else ""
        answer = asked(f"SELECT {groups}, COUNT(*) AS n FROM {source}{said} GROUP BY ALL")
        counted = exact(f"SELECT {groups}, COUNT(*) AS n FROM {source}{said} GROUP BY ALL")
        if public is None:
            public, where = "plans q", "q.tier = 'hi'"
        decides = f" WHERE {where}" if where and "km" not in where else ""
        keys = exact(f"SELECT DISTINCT {groups} FROM {public}{decides}")
        assert {row[:-1] for row in rows_of(answer)} == set(rows_of(keys))
        assert len(answer) == len(keys)
        assert [row for row in rows_of(answer) if row[-1] != "0"] == rows_of(counted)

    def test_are_the_same_whoever_is_in_the_data(self):
        query = f"SELECT q.name, q.tier, COUNT(*) AS n FROM {JOINED} WHERE km > 50 GROUP BY ALL"
        nobody = asked(query, people=PEOPLE.iloc[:0])
        assert nobody[["name", "tier"]].equals(asked(query)[["name", "tier"]])
        assert nobody["n"].tolist() == [0, 0, 0, 0]

    @pytest.mark.parametrize("is_of_ids", [False, True])
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
            "SELECT plan % 2 AS g, COUNT(*) AS n FROM visits WHERE plan > 1 GROUP BY g",
            "SELECT name, n FROM plans JOIN (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) USING (plan)",
            "SELECT name FROM plans WHERE plan IN (SELECT plan FROM visits GROUP BY plan HAVING COUNT(*) > 11)",
        ],
    )
    def test_are_those_of_a_public_table_that_a_link_leads_to(self, query, is_of_ids):
        """Whoever is in the data; rows that name none of its rows are in no group."""
        visits = pd.DataFrame({"pid": DRAW.integers(0, 60, 90), "plan": DRAW.choice([1, 2, 3], 90)})
        way = ("plan", "plans", "plan")
        how = {
            "person": {"people": "pid", "visits": "pid"} if is_of_ids else {"people": "pid"},
            "links": {"visits": way if is_of_ids else [("pid", "people", "pid", "unique"), way]},
            "rows": 90, "bounds": {"plan": (0, 9)},
        }  # fmt: skip
        con = duckdb.connect()
        con.register("visits", visits)
        con.register("plans", PLANS)
        wanted = con.execute(query).df()
        found = asked(query, visits=visits, **how)
        assert [row for row in rows_of(found) if row[-1] != "0"] == rows_of(wanted)
        lost = pd.concat([visits, pd.DataFrame({"pid": [3, 4], "plan": [-1, -1]})])  # which plan > 1 leaves out
        pd.testing.assert_frame_equal(asked(query, visits=lost, **how), found)
        with pytest.raises(ParameterError, match=r"sum\(plan\) needs bounds"):  # which a link does not promise
            asked("SELECT SUM(plan) FROM visits", visits=lost, **how | {"bounds": {}})

    @pytest.mark.parametrize("condition", ["p.plan < 3", "p.km BETWEEN 20 AND 40", "q.old AND p.km > 5", "p.plan = 2"])
    def test_on_of_a_join_says_what_where_says(self, condition):
        """Which groups there are, and what bounds follow."""
        ask = (
            "SELECT name, COUNT(*) AS n, SUM(p.km) AS m FROM people p JOIN plans q ON p.plan = q.plan {} GROUP BY name"
        )
        how = {"bounds": None if "BETWEEN" in condition else {"km": (0, 100)}}
        found, other = (asked(ask.format(f"{word} {condition}"), **how) for word in ("AND", "WHERE"))
        assert rows_of(found[["name", "n"]]) == rows_of(other[["name", "n"]])
        found, other = (
            asked("EXPLAIN " + ask.format(f"{word} {condition}"), eps=1, **how)["noise95"].tolist()
            for word in ("AND", "WHERE")
        )
        assert found == other and (max(found) < 300) == ("BETWEEN" in condition)

    def test_left_join_has_a_group_of_rows_without_a_match(self):
        query = (
            "SELECT COALESCE(q.name, 'none') AS name, COUNT(*) AS n FROM people p LEFT JOIN plans q ON p.plan = q.plan "
            "AND q.tier = 'hi' GROUP BY 1"
        )
        answer = asked(query).set_index("name")["n"]
        assert answer.to_dict() == {**exact(query).set_index("name")["n"].to_dict(), "tin": 0}
        tiers = query.replace("q.name", "q.tier")  # of which no row of the table lacks one
        answer = asked(tiers).set_index("name")["n"]
        assert answer.to_dict() == {**exact(tiers).set_index("name")["n"].to_dict(), "lo": 0}
        assert answer["none"] > 0

    def test_of_two_tables_are_all_combinations(self):
        query = (
            "SELECT q.tier, c.code, COUNT(DISTINCT pid) AS n FROM people JOIN plans q USING (plan) JOIN codes c "
            "USING (plan) GROUP BY ALL"
        )
        answer = asked(query, person="pid", groups=6)
        assert answer[["tier", "code"]].to_numpy().tolist() == [[t, c] for t in ("hi", "lo") for c in "abc"]

    def test_of_an_expression_over_two_tables_are_to_be_passed(self):
        query = (
            "SELECT q.tier || c.code AS both, COUNT(DISTINCT pid) AS n FROM people JOIN plans q USING (plan) "
            "JOIN codes c USING (plan) GROUP BY 1"
        )
        with pytest.raises(ParameterError, match="GROUP BY both needs the public list"):
            asked(query, person="pid", groups=6)
        assert len(asked(query, person="pid", groups=6, keys=["hia", "hib", "loc"])) == 3

    @pytest.mark.parametrize(
        ("dependent", "plain", "tail"),
        [
            ("q.name", "ANY_VALUE(q.name)", ""),
            ("ANY_VALUE(q.name)", "ANY_VALUE(q.name)", ""),
            ("MIN(q.name)", "MIN(q.name)", ""),
            ("upper(q.tier) || '!'", "ANY_VALUE(upper(q.tier) || '!')", ""),
            ("MAX(q.since)", "MAX(q.since)", ""),
            ("FIRST(q.tier)", "FIRST(q.tier)", " ORDER BY MAX(q.name), 2"),
            ("q.old", "ANY_VALUE(q.old)", " HAVING MIN(q.tier) = 'lo'"),
            ("length(q.name) + COUNT(*)", "ANY_VALUE(length(q.name)) + COUNT(*)", ""),
            (
                "length(ANY_VALUE(q.name)) - COUNT(*)",
                "length(ANY_VALUE(q.name)) - COUNT(*)",
                " ORDER BY MAX(q.tier), 1",
            ),
            ("CASE WHEN q.old THEN COUNT(*) END", "CASE WHEN ANY_VALUE(q.old) THEN COUNT(*) END", ""),
        ],
    )
    @pytest.mark.parametrize("by", ["q.plan", "p.plan", "1", "q.plan, p.km > 50"])
    def test_what_depends_on_the_key_of_a_row(self, dependent, plain, tail, by):
        """As DuckDB answers it, which wants an aggregate there; and groups of nobody beside these."""
        query = f"SELECT q.plan AS k, COUNT(*) AS n, SUM(p.km) AS s, {{}} AS d FROM {JOINED} GROUP BY {by}{tail}"
        found = asked(query.format(dependent), bounds={"km": (0, 100)})
        found["s"] = found["s"].round()
        assert rows_of(found[found["n"] > 0]) == rows_of(
            exact(query.format(plain).replace("GROUP BY p.plan", "GROUP BY 1"))
        )

    def test_conditions_on_what_depends(self):
        query = f"SELECT q.plan AS k, COUNT(*) AS n FROM {JOINED} GROUP BY q.plan {{}}"
        for condition in ("HAVING q.tier = 'hi'", "HAVING COUNT(*) < 1000 AND NOT q.tier = 'lo'"):
            assert rows_of(asked(query.format(condition))) == rows_of(
                exact(f"SELECT q.plan, COUNT(*) FROM {JOINED} WHERE q.tier = 'hi' GROUP BY q.plan")
            )

    @pytest.mark.parametrize(
        ("item", "tail", "bounds"),
        [
            ("SUM(q.price)", "", (2.5, 40)), ("AVG(q.price)", "", (2.5, 40)),
            ("SUM(q.price * q.price)", "", (6.25, 1600)),
            ("SUM(CASE WHEN p.km > 50 THEN q.price ELSE 1 END)", "", (1, 40)), ("AVG(p.plan)", "", (1, 4)),
            ("SUM(q.price)", "WHERE q.price > 3", (3, 40)), ("SUM(q.price) FILTER (WHERE q.price < 20)", "", (2.5, 20)),
            ("MEDIAN(q.price)", "", (2.5, 40)), ("SUM(q.price + p.km)", "", (2.5, 140)),
            ("MIN(q.price)", "", (2.5, 40)), ("MAX(q.price * 2)", "", (5, 80)),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN"])
    def test_bounds_of_their_columns_are_those_of_their_rows(self, item, tail, bounds, how):
        plans = PLANS.assign(price=[9.5, 40.0, np.nan, 2.5])
        if how == "LEFT JOIN" and item == "AVG(p.plan)":
            return  # whose people may have any other plan
        query = f"SELECT {item} AS answer FROM people p {how} plans q USING (plan) {tail}"
        found = asked(query, public={"plans": plans}, bounds={"km": (0, 100)})
        (line,) = Answer.from_attrs(found.attrs).lines
        assert line.bounds == pytest.approx(bounds)
        con = duckdb.connect()
        con.register("people", PEOPLE.replace({np.nan: None}))
        con.register("plans", plans.replace({np.nan: None}))
        if item.startswith(("SUM", "AVG")):
            assert found["answer"][0] == pytest.approx(con.sql(query).fetchall()[0][0], rel=1e-4)
        with pytest.raises(ParameterError, match="needs bounds"):
            asked(f"SELECT SUM(p.km) FROM people p {how} plans q USING (plan)", public={"plans": plans})

    @pytest.mark.parametrize(
        ("subquery", "bounds"),
        [
            (f"SELECT p.pid, q.plan * 2 AS x FROM {JOINED}", (2, 8)),
            (f"SELECT p.pid, MAX(q.plan) AS x FROM {JOINED} GROUP BY p.pid", (1, 4)),
            (f"SELECT p.pid, AVG(q.plan * 2) + 1 AS x FROM {JOINED} GROUP BY p.pid", (3, 9)),
            (f"SELECT p.pid, q.plan AS x FROM {JOINED} UNION ALL SELECT pid, -3 FROM people", (-3, 4)),
        ],
    )
    def test_bounds_in_subqueries(self, subquery, bounds):
        query = f"SELECT AVG(x) AS m FROM ({subquery})"
        found = asked(query, person="pid", rows=2, bounds=None)
        (line,) = Answer.from_attrs(found.attrs).lines
        assert line.bounds == pytest.approx(bounds)
        assert found["m"][0] == pytest.approx(exact(query)["m"][0], rel=1e-4)

    def test_bounds_of_dates(self):
        query = f"SELECT MIN(q.since) AS first, MAX(q.since) AS last FROM {JOINED}"
        found = asked(query)
        first, last = (line.bounds for line in Answer.from_attrs(found.attrs).lines)
        days = [(end - pd.Timestamp(0)).days for end in (PLANS["since"].min(), PLANS["since"].max())]
        assert first == last == tuple(days)
        plain = exact(query)  # of whose two smallest and largest dates both are the same
        assert abs(found["first"][0] - plain["first"][0]).days < 10 > abs(found["last"][0] - plain["last"][0]).days

    def test_constants_beside_people(self):
        for text in ("(VALUES (1), (50)) AS x(a) JOIN people p ON p.km < x.a", "(SELECT 50 AS a) x, people p"):
            query = f"SELECT x.a, COUNT(*) AS n FROM {text} GROUP BY x.a"
            found = asked(query, person="pid", rows=2)
            assert rows_of(found[found["n"] > 0]) == rows_of(exact(query))

    def test_what_does_not_depend_on_the_groups_is_refused(self):
        for query in (
            "SELECT q.tier, q.name, COUNT(*) AS n {} GROUP BY q.tier",
            "SELECT q.plan, p.km, COUNT(*) {} GROUP BY q.plan",
        ):
            with pytest.raises(ParameterError, match="neither aggregated nor in GROUP BY"):
                asked(query.format(f"FROM {JOINED}"))
        with pytest.raises(ParameterError, match="neither aggregated nor in GROUP BY"):
            asked(
                "SELECT c.plan, c.code, COUNT(*) FROM people p JOIN codes c ON c.plan = p.plan GROUP BY c.plan",
                person="pid",
                rows=2,
            )

    def test_lists_leave_rows_of_the_table(self):
        """A list for the key column does not make pairs that the table does not have."""
        query = f"SELECT q.plan, q.name, COUNT(*) AS n FROM {JOINED} GROUP BY q.plan, q.name"
        whole = asked(query)
        assert asked(query, keys={"plan": [4, 9, 1, 2, 3]}).equals(whole)
        assert asked(query, keys={"plan": [3, 1, 9]}).equals(whole[whole["plan"].isin([1, 3])].reset_index(drop=True))
        some = asked(query, keys={"plan": [1, 2, 3], "name": ["silver", None, "tin"]})
        assert some.equals(whole[whole["plan"].isin([2, 3])].reset_index(drop=True))
        with pytest.raises(ParameterError, match=r"no key of plan that keys= lists is in the public table"):
            asked(query, keys={"plan": [77]})
        three = f"SELECT q.tier, q.name, p.km > 50 AS far, COUNT(*) AS n FROM {JOINED} GROUP BY ALL"
        assert asked(three, keys={"tier": ["lo"]})[["tier", "name"]].drop_duplicates().shape == (2, 2)

    def test_stand_beside_those_that_are_passed(self):
        query = f"SELECT km, q.name, COUNT(*) AS n FROM {JOINED} GROUP BY ALL"
        answer = asked(query, keys={"km": [1, 2]})
        assert len(answer) == 8
        assert answer["km"].tolist() == [1] * 4 + [2] * 4
        assert asked(query, keys=[(1, "gold")])["name"].tolist() == ["gold"]
        with pytest.raises(ParameterError, match="GROUP BY km needs the public list"):
            asked(query)

    def test_margins_of_them(self):
        answer = asked(f"SELECT q.tier, q.name, COUNT(*) AS n FROM {JOINED} GROUP BY ROLLUP (q.tier, q.name)")
        assert len(answer) == 4 + 2 + 1
        assert answer["n"].tolist()[-1] == answer["n"].tolist()[:4][0] + sum(answer["n"].tolist()[1:4])

    def test_a_table_without_rows_has_no_groups(self):
        with pytest.raises(ParameterError, match="plans has no row for GROUP BY that the conditions of the query keep"):
            asked(f"SELECT q.name, COUNT(*) FROM {JOINED} WHERE q.tier = 'middle' GROUP BY 1")


FREE = {
    "different": "people JOIN (SELECT DISTINCT plan, tier FROM plans) q USING (plan)",
    "united": "people JOIN (SELECT plan FROM plans UNION SELECT 9) q USING (plan)",
    "the first": "people WHERE plan IN (SELECT plan FROM plans ORDER BY plan DESC LIMIT 2)",
    "groups": "people WHERE plan IN (SELECT MAX(plan) FROM plans GROUP BY tier)",
    "windows": "people JOIN (SELECT plan, ROW_NUMBER() OVER (ORDER BY plan) AS r FROM plans) q ON p_lan(plan, r)",
    "not in": "people WHERE plan NOT IN (VALUES (1), (9))",
    "no rows": "people WHERE plan IN (SELECT plan FROM plans WHERE plan > 5 LIMIT 3)",
    "missing values": "people JOIN (SELECT 1 AS plan, NULL AS x UNION ALL SELECT 2, NULL) q USING (plan) "
    "WHERE x IS NULL",
    "a number": "people WHERE plan > (SELECT MIN(plan) FROM plans)",
    "two public tables": "people JOIN (SELECT plan, COUNT(*) AS n FROM plans JOIN codes USING (plan) GROUP BY plan) q "
    "USING (plan) WHERE n > 1",
}  # fmt: skip
FREE["windows"] = FREE["windows"].replace("p_lan(plan, r)", "people.plan = q.plan WHERE r > 1")


class TestFreeRelations:
    @pytest.mark.parametrize("name", FREE)
    @pytest.mark.parametrize("unit", [{}, {"person": "pid", "rows": 1}])
    def test_join_as_tables_do(self, name, unit):
        query = f"SELECT COUNT(*) AS n FROM {FREE[name]}"
        assert asked(query, **unit)["n"].tolist() == exact(query)["n"].tolist()

    def test_what_reads_people_is_none(self):
        with pytest.raises(ParameterError, match="DISTINCT in a subquery"):
            asked("SELECT COUNT(*) FROM people JOIN (SELECT DISTINCT plan FROM people) q USING (plan)")
        with pytest.raises(ParameterError, match="LIMIT in a subquery"):
            asked(
                "SELECT COUNT(*) FROM plans JOIN (SELECT * FROM plans JOIN people USING (plan) LIMIT 1) q USING (plan)"
            )

    def test_a_name_of_with_goes_before_a_public_one(self):
        with pytest.raises(ParameterError, match="exact values never leave the data"):
            asked("WITH plans AS (SELECT km FROM people) SELECT km FROM plans")

    def test_long_ones_are_refused(self):
        many = pd.DataFrame({"plan": range(1001)})
        with pytest.raises(ParameterError, match="gives 1,001 rows here, and 1,000 at most"):
            asked("SELECT COUNT(*) FROM people WHERE plan IN (SELECT DISTINCT plan FROM many)", public={"many": many})
        values = ", ".join(f"({at})" for at in range(201))
        with pytest.raises(ParameterError, match="VALUES has up to 200 rows"):
            asked(f"SELECT COUNT(*) FROM people WHERE plan IN (VALUES {values})")


class TestRows:
    """Without person=, each row is one person's, and finds one row of a public table at most."""

    @pytest.mark.parametrize(
        "relation",
        [
            JOINED,
            "plans q JOIN people USING (plan)",
            "people p LEFT JOIN plans q ON p.plan = q.plan AND p.km > 10",
            "people p, plans q WHERE p.plan = q.plan",
            "people p, plans q WHERE (p.plan = q.plan AND q.old) OR (p.km > 50 AND (p.plan = q.plan AND NOT q.old))",
            "people p LEFT JOIN plans q ON (p.plan = q.plan AND q.old) OR (p.plan = q.plan AND p.km > 10)",
            "people WHERE plan NOT IN (SELECT plan FROM codes)",
            "people p WHERE EXISTS (SELECT 1 FROM codes c WHERE c.plan = p.plan AND c.code < 'c')",
            "(SELECT p.* FROM people p JOIN plans USING (plan)) p LEFT JOIN plans q ON q.plan = p.km",
        ],
    )
    def test_of_one_person_change_what_is_paid_for(self, relation):
        query = f"SELECT COUNT(*) AS n, AVG(km) AS m FROM {relation}"

        def ask(people, eps=1):
            return asked(query, eps=eps, bounds={"km": (0, 50)}, people=people)

        assert ask(PEOPLE, EXACT)["n"].tolist() == exact(query)["n"].tolist()
        for at in (0, 7, 30):
            rest = PEOPLE.drop(index=at)
            assert loss_between(ask, PEOPLE, rest) <= 1 + 1e-6
            assert loss_between(ask, rest, PEOPLE) <= 1 + 1e-6

    @pytest.mark.parametrize(
        ("relation", "said"),
        [
            ("people JOIN codes USING (plan)", "codes has up to 2 rows that are alike in what the join compares"),
            ("people JOIN plans ON km > 3", "plans has up to 4 rows"),
            ("people, plans", "plans has up to 4 rows"),
            ("people a JOIN people b USING (pid)", "unless it is known who a person is"),
            ("people WHERE plan IN (SELECT plan FROM people)", "unless it is known who a person is"),
            ("(SELECT km FROM people UNION ALL SELECT km FROM people)", "unless it is known who a person is"),
            ("(SELECT plan FROM people UNION ALL SELECT plan FROM plans)", "whose they are would be lost"),
            ("plans SEMI JOIN people USING (plan)", "write the table of people first"),
        ],
    )
    def test_that_could_count_twice_are_refused(self, relation, said):
        with pytest.raises(ParameterError, match=said):
            asked(f"SELECT COUNT(*) FROM {relation}")

    def test_of_declared_people_are_none(self):
        people = PEOPLE.dprisk.declare(person="pid")
        with pytest.raises(ParameterError, match="unless it is known who a person is"):
            asked(f"SELECT COUNT(*) FROM {JOINED}", people=people)

    def test_are_counted_and_read_in_one_state(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE people AS SELECT * FROM PEOPLE; CREATE TABLE plans AS SELECT * FROM PLANS")
        before = pdrisk._sql.Sources.check_readable

        def check_readable(sources, source):
            before(sources, source)
            con.execute("INSERT INTO plans SELECT * FROM plans")

        query = "SELECT COUNT(*) AS n FROM people JOIN plans USING (plan)"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pdrisk._sql.Sources, "check_readable", check_readable)
            answer = pdrisk.sql(query, con, eps=EXACT, public=["plans"])
        assert answer["n"].tolist() == exact(query)["n"].tolist()
        assert con.execute("SELECT COUNT(*) FROM plans").fetchone() == (8,)


WHOLE = [
    "SELECT name, COUNT(*) AS n FROM plans GROUP BY name ORDER BY name",
    "SELECT * FROM plans ORDER BY plan",
    "SELECT DISTINCT tier FROM plans ORDER BY tier LIMIT 1",
    "SELECT q.name, c.code FROM plans q LEFT JOIN codes c USING (plan) ORDER BY ALL",
    "WITH t AS (SELECT plan, code FROM codes) SELECT code, MAX(plan) AS m FROM t GROUP BY code ORDER BY code",
    "SELECT tier, ROW_NUMBER() OVER (ORDER BY plan) AS r FROM plans ORDER BY r",
    "SELECT plan FROM plans UNION ALL SELECT 9 ORDER BY plan",
    "SELECT plan FROM plans WHERE plan > (SELECT AVG(plan) FROM codes) ORDER BY plan",
    "SELECT name FROM plans WHERE plan IN (SELECT plan FROM codes) ORDER BY name",
    "SELECT name FROM plans q WHERE NOT EXISTS (SELECT 1 FROM codes c WHERE c.plan = q.plan)",
    "SELECT plan, (SELECT COUNT(*) FROM codes c WHERE c.plan = q.plan) AS n FROM plans q ORDER BY plan",
    "SELECT tier, SUM(plan) AS s FROM plans GROUP BY ROLLUP (tier) ORDER BY ALL",
    "SELECT q.plan, c.code FROM plans q FULL JOIN codes c USING (plan) ORDER BY ALL",
    "SELECT DISTINCT ON (plan) plan, code FROM codes ORDER BY plan, code DESC",
    "SELECT quantile_cont(plan, 0.5) AS q, string_agg(code, '') AS s FROM codes",
    "SELECT r.range FROM range(3) r, plans WHERE plan = r.range ORDER BY 1",
    "WITH RECURSIVE t(n) AS (SELECT MIN(plan) FROM plans UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT n FROM t",
    "WITH people AS (SELECT code AS km FROM codes) SELECT km FROM people ORDER BY 1",
    "SELECT old, since, since + INTERVAL 1 DAY AS d, name IS NULL AS no FROM plans ORDER BY plan",
]


VISITS = pd.DataFrame({"pid": DRAW.integers(0, 70, 90), "cost": DRAW.integers(0, 9, 90)})
FROM_PLANS = "plans q LEFT JOIN people p ON p.plan = q.plan"
BOUNDS = {"km": (0, 100), "cost": (0, 9), "s": (0, 200), "n": (0, 9)}
KEPT = [
    f"SELECT q.name, COUNT(p.pid) AS n, SUM(p.km) AS s FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.tier, q.plan, COUNT(DISTINCT p.pid) AS n FROM {FROM_PLANS} GROUP BY ALL",
    f"SELECT q.name, COUNT(p.pid) AS n FROM {FROM_PLANS} AND q.old AND p.km < 80 GROUP BY q.name",
    f"SELECT q.name, COUNT(*) AS n FROM {FROM_PLANS} WHERE p.km >= 0 GROUP BY q.name",
    f"SELECT q.name, COUNT(p.pid) AS n FROM {FROM_PLANS} WHERE q.tier = 'lo' GROUP BY q.name",
    f"SELECT q.name, COUNT(*) FILTER (WHERE p.km > 50) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, SUM(CASE WHEN p.km > 50 THEN p.km ELSE 0 END) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, SUM(COALESCE(p.km, 0)) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT SUM(p.km + 1) AS s, COUNT(p.km) AS n FROM {FROM_PLANS}",
    f"SELECT q.name, COUNT(v.cost) AS n, SUM(v.cost) AS s FROM {FROM_PLANS} LEFT JOIN visits v ON v.pid = p.pid "
    "GROUP BY q.name",
    f"SELECT q.name, COUNT(*) AS n FROM {FROM_PLANS} JOIN visits v ON v.pid = p.pid GROUP BY q.name",
    f"SELECT q.name, c.code, COUNT(p.pid) AS n FROM {FROM_PLANS} JOIN codes c ON c.plan = q.plan GROUP BY ALL",
    f"SELECT q.name, COUNT(p.pid) AS n FROM {FROM_PLANS} LEFT JOIN codes c ON c.plan = p.plan GROUP BY q.name",
    f"SELECT name, COUNT(k) AS n FROM (SELECT q.name, p.km + 1 AS k FROM {FROM_PLANS}) GROUP BY name",
    f"SELECT t.name, COUNT(v.cost) AS n FROM (SELECT q.name, p.pid FROM {FROM_PLANS}) t JOIN visits v ON v.pid = t.pid "
    "GROUP BY t.name",
    "SELECT q.name, COUNT(x.pid) AS n FROM plans q LEFT JOIN (SELECT p.pid, p.plan FROM people p JOIN visits v "
    "ON v.pid = p.pid) x ON x.plan = q.plan GROUP BY q.name",
]
COUNTED = [
    f"SELECT q.name, COUNT(*) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, SUM(q.plan) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, COUNT(COALESCE(p.km, 0)) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, AVG(COALESCE(p.km, 0)) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, SUM(COALESCE(p.km, 1)) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, SUM(CASE WHEN p.km IS NULL THEN 1 ELSE 0 END) AS n FROM {FROM_PLANS} GROUP BY q.name",
    f"SELECT q.name, COUNT(p.km) AS n FROM {FROM_PLANS} WHERE p.km IS NULL GROUP BY q.name",
    f"SELECT q.name, COUNT(p.km) AS n FROM {FROM_PLANS} WHERE p.km > 3 OR q.old GROUP BY q.name",
    f"SELECT q.name, COUNT(p.km) AS n FROM {FROM_PLANS} WHERE COALESCE(p.km, 0) = 0 GROUP BY q.name",
    f"SELECT p.km > 3 AS far, COUNT(p.km) AS n FROM {FROM_PLANS} GROUP BY far",
    f"SELECT q.name, COUNT(c.code) AS n FROM {FROM_PLANS} LEFT JOIN codes c ON c.plan = q.plan GROUP BY q.name",
    f"SELECT name, COUNT(*) AS n FROM (SELECT q.name, p.pid FROM {FROM_PLANS}) GROUP BY name",
    f"SELECT COUNT(k) AS n FROM (SELECT COALESCE(p.km, 1) AS k, p.pid FROM {FROM_PLANS}) JOIN visits USING (pid)",
    f"SELECT plan, COUNT(*) AS n FROM (SELECT q.plan, p.pid FROM {FROM_PLANS} UNION ALL SELECT plan, pid FROM people) "
    "GROUP BY plan",
    f"SELECT COUNT(*) AS n FROM (SELECT p.pid, COUNT(*) AS c FROM {FROM_PLANS} GROUP BY p.pid)",
    f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT q.plan, p.pid FROM {FROM_PLANS})",
    f"SELECT COUNT(c.code) AS n FROM codes c JOIN (SELECT q.plan, p.pid FROM {FROM_PLANS}) t ON c.plan = t.plan",
]


class TestRowsOfNobody:
    """A public table before LEFT JOIN keeps its rows: groups without anybody, which count nobody."""

    def asked(self, query, **options):
        tables = {"visits": VISITS} if "visits" in query else None
        known = {"person": "pid", "rows": {"people": 1, "visits": 90}, "bounds": BOUNDS, "tables": tables}
        return asked(query, **{**known, **options})

    @pytest.mark.parametrize("query", KEPT)
    def test_as_duckdb(self, query):
        con = duckdb.connect()
        for name, frame in {**PUBLIC, "people": PEOPLE, "visits": VISITS}.items():
            con.register(name, frame)
        found, wanted = self.asked(query), con.execute(query).df()
        for table in (found, wanted):  # of nobody a sum is 0 here
            numbers = table.select_dtypes("number").columns
            table[numbers] = table[numbers].fillna(0).round().abs()
        if any(part in query for part in ("q.plan WHERE p", ") t JOIN", "q.plan JOIN")):
            found = found[found["n"] > 0]  # what leaves out rows leaves out groups in DuckDB
        assert rows_of(found) == rows_of(wanted)

    @pytest.mark.parametrize("query", COUNTED)
    def test_what_would_count_them_is_refused(self, query):
        with pytest.raises(ParameterError, match="LEFT JOIN after a public table keeps its rows without anybody"):
            self.asked(query, bounds={**BOUNDS, "plan": (0, 9)})

    def test_what_is_missing_of_missing_values(self):
        """No function gives a value where it is taken for missing."""
        con, values = duckdb.connect(), {
            "n": "2.5", "t": "'ab'", "b": "true", "d": "DATE '2020-01-31'", "c": "'a'", "u": "'month'", "i": "2",
            "p": "INTERVAL 1 DAY", "v": "INTERVAL 1 DAY", "w": "'day'",
        }  # fmt: skip
        tried = set()
        for name, ways in FUNCTIONS.items():
            for letters in {way.arguments.replace("*", "") for way in ways}:
                for at in (at for at, letter in enumerate(letters) if letter not in "cuipw"):  # which are constants
                    written = [values[letter] for letter in letters]
                    written[at] = f"CAST(NULL AS {con.execute(f'SELECT typeof({written[at]})').fetchone()[0]})"
                    nodes = tuple(Column("x") if place == at else Constant(1) for place in range(len(letters)))
                    infix = not name[0].isalpha() and len(letters) == 2
                    sql = f"{written[0]} {name} {written[1]}" if infix else f"{name}({', '.join(written)})"
                    with suppress(duckdb.Error):
                        (value,) = con.execute(f"SELECT {sql}").fetchone()
                        tried.add(name)
                        if adds_nothing(Call(name, nodes), None, {"x"}, is_sum=False):
                            assert value is None, sql
        assert len(tried) > 80

    @pytest.mark.parametrize("items", ["COUNT(p.pid) AS n", "SUM(COALESCE(p.km, 0)) AS s, COUNT(DISTINCT p.pid) AS n"])
    def test_without_somebody(self, items):
        def ask(people):
            query = f"SELECT q.name, {items} FROM {FROM_PLANS} GROUP BY q.name"
            return self.asked(query, eps=1, people=people, rows={"people": 1})

        for pid in PEOPLE["pid"].head(8):
            assert loss_between(ask, PEOPLE, PEOPLE[PEOPLE["pid"] != pid]) <= 1 + 1e-9


class TestQueriesOfNobody:
    @pytest.mark.parametrize("query", WHOLE)
    def test_are_answered_exactly_and_cost_nothing(self, query, tmp_path):
        with pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=1) as ledger:
            answer = asked(query, eps=None)
            assert ledger.remaining().eps == 1
        assert rows_of(answer.astype(object)) == rows_of(exact(query).astype(object))
        assert list(answer.columns) == list(exact(query).columns)
        assert pdrisk.explain(answer).startswith("Rows of public tables, without noise: nobody is in them")

    def test_of_a_dataset(self):
        d = pdrisk.Dataset(PEOPLE, person="pid", public=PUBLIC)
        assert d.sql("SELECT COUNT(*) AS n FROM plans", eps=1)["n"].tolist() == [4]

    def test_of_a_table_that_declares_people_are_refused(self):
        with pytest.raises(ParameterError, match="passed as public declares person="):
            asked("SELECT * FROM plans", public={"plans": PEOPLE.dprisk.declare(person="pid")})

    @pytest.mark.parametrize("query", ["SELECT 1", "SELECT * FROM (VALUES (1), (2))"])
    def test_of_nothing_stay_refused(self, query):
        with pytest.raises(ParameterError, match="there is no FROM"):
            asked(query)

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT plan FROM plans, (WITH people AS (SELECT 1 AS km FROM plans) SELECT km FROM people) p, people",
            "WITH p AS (SELECT km FROM people) SELECT name FROM plans WHERE plan IN (SELECT km FROM p)",
            "SELECT (SELECT km FROM people LIMIT 1) AS k FROM plans",
            "SELECT plan FROM plans WHERE plan > (WITH t AS (SELECT 1 AS km) SELECT MAX(km) FROM main.people)",
            "SELECT plan FROM plans, query('SELECT km FROM people')",
            "SELECT plan FROM plans, query_table('people')",
            "SELECT plan FROM plans, read_csv('{file}')",
            "SELECT plan FROM plans, '{file}'",
            "SELECT plan FROM plans, read_text('{file}')",
            "SELECT plan FROM plans WHERE plan = theirs(1)",
            "SELECT plan FROM plans, PEOPLE_HERE",
            "SELECT getenv('HOME') FROM plans",
        ],
    )
    def test_reach_nobody(self, query, tmp_path):
        """Whatever else a query names is not there: people, files, variables of Python, macros of the connection."""
        file = tmp_path / "people.csv"
        PEOPLE.to_csv(file, index=False)
        people_here = PEOPLE  # noqa: F841 - which DuckDB would find by its name
        con = duckdb.connect()
        con.execute("CREATE TABLE plans AS SELECT range AS plan FROM range(4)")
        con.execute("CREATE TABLE people AS SELECT range AS pid, 7777 AS km FROM range(50)")
        con.execute("CREATE MACRO theirs(x) AS (SELECT MAX(km) FROM people)")
        with pytest.raises((ParameterError, pdrisk.errors.UnknownColumnError)) as failed:
            pdrisk.sql(query.format(file=file), con, eps=1, public=["plans"])
        assert "7777" not in str(failed.value)

    def test_read_no_files_that_other_databases_write(self, tmp_path, monkeypatch):
        """DuckDB lets a database read the folder of temporary files, where people of another one may stand."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".tmp").mkdir()
        (tmp_path / ".tmp" / "spilled").write_text("7777")
        for reading in ("read_blob('.tmp/*')", "read_text('.tmp/spilled')", "glob('.tmp/*')", "'.tmp/spilled'"):
            with pytest.raises(ParameterError) as failed:
                asked(f"SELECT * FROM plans, {reading} WHERE plan IN (SELECT plan FROM codes)")
            assert "7777" not in str(failed.value)
        for config in (nobodys_query.CLOSED, {}):
            with duckdb.connect(":memory:", config=config) as own:
                for lock in nobodys_query.LOCKS:
                    own.execute(lock)
                own.execute("SELECT current_setting('allowed_directories')")
                assert (own.fetchone() == ([],)) == bool(config)

    @pytest.mark.parametrize("spelling", ["CODES", '"Codes"', "main.codes", "main.Codes"])
    def test_one_table_by_several_names(self, spelling):
        con = duckdb.connect()
        con.execute("CREATE TABLE codes AS SELECT 1 AS code")
        query = f"SELECT * FROM codes a, {spelling} b WHERE a.code IN (SELECT code FROM codes)"
        assert len(pdrisk.sql(query, con, eps=1, public=["codes"])) == 1

    def test_settings_of_the_connection(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE codes AS SELECT unnest([1, 2, NULL]) AS x; CREATE TABLE few AS SELECT 1 AS x")
        con.execute("SET default_order = 'desc'; SET default_null_order = 'nulls_first'")
        query = "SELECT x FROM codes WHERE x IS NULL OR x IN (SELECT x FROM codes) ORDER BY x"
        found = pdrisk.sql(query, con, eps=1, public=["codes"])["x"].tolist()
        assert [None if pd.isna(each) else each for each in found] == [row[0] for row in con.execute(query).fetchall()]
        con.execute("CREATE MACRO upper(x) AS 'macro'; CREATE MACRO bit_length(x) AS 7")
        for call in ("upper('a')", "x / 2"):
            con.execute("SET integer_division = true")
            with pytest.raises(ParameterError, match=r"macro|integer_division"):
                pdrisk.sql(
                    f"SELECT {call} FROM few WHERE x IN (SELECT x FROM codes)", con, eps=1, public=["codes", "few"]
                )

    def test_columns_that_are_not_read(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE odd AS SELECT 'infinity'::DATE AS d, 1 AS k, NULL::DATE AS e")
        query = "SELECT k FROM odd WHERE k IN (SELECT k FROM odd) AND d > DATE '2000-01-01'"
        assert pdrisk.sql(query, con, eps=1, public=["odd"])["k"].tolist() == [1]

    def test_may_be_interrupted(self):
        class LateError(Exception):
            pass

        def late(*_):
            raise LateError

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            with pytest.raises(LateError):
                asked("SELECT COUNT(*) FROM plans, range(100000000000) a, range(1000) b WHERE plan IN (SELECT 1)")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_hold_what_the_table_holds(self):
        con = duckdb.connect()
        con.execute(
            "CREATE TABLE odd AS SELECT * FROM (VALUES (1::HUGEINT, 1.10::DECIMAL(9, 2), [1, NULL], {'a': 'x'}, "
            "'b'::ENUM('a', 'b'), TIME '01:02:03', 9007199254740993::BIGINT, 0.1::FLOAT, DATE '9999-12-31'), "
            "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) t(h, d, l, s, e, t, b, f, day)"
        )
        query = "SELECT *, d + 1 AS more, l[1] AS first, s.a AS inner, f IS NULL AS nan, typeof(e) AS e_type FROM odd"
        answer = pdrisk.sql(f"{query} WHERE TRUE", con, eps=1, public=["odd"])
        assert answer.astype(str).equals(con.execute(query).df().astype(str))

    def test_hold_missing_days(self):
        days = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None]), "n": [1, 2]})
        found = pdrisk.sql("SELECT d, d - INTERVAL 1 DAY AS before FROM days ORDER BY n", days=days, public=["days"])
        assert found.isna().to_numpy().tolist() == [[False, False], [True, True]]
        assert found["before"][0] == pd.Timestamp("2019-12-31")
        assert {each.kind for each in found.dtypes} == {"M"}

    def test_are_looked_at_in_a_preview(self):
        assert asked("EXPLAIN SELECT name FROM plans WHERE plan IN (SELECT plan FROM codes)").empty

    def test_fail_with_the_words_of_duckdb(self):
        with pytest.raises(ParameterError, match="DuckDB fails at this query over public tables: Conversion Error"):
            asked("SELECT CAST(name AS INT) FROM plans WHERE plan IN (SELECT plan FROM codes)")

    def test_a_misspelt_column_is_named(self):
        with pytest.raises(ParameterError, match=r"fails at this query over public tables: Binder Error.*nmae"):
            asked("SELECT nmae FROM plans WHERE plan IN (SELECT plan FROM codes)")

    def test_with_people_are_paid(self):
        query = "SELECT name FROM plans WHERE plan IN (SELECT plan FROM people)"
        found = asked(query)
        assert rows_of(found) == rows_of(exact(query)) and Answer.from_attrs(found.attrs).eps == EXACT


class TestListsOfNobody:
    """IN with a subquery over public tables, under OR and in expressions, is IN with a list of its values."""

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(*) FROM people WHERE km < 20 OR plan IN (SELECT plan FROM codes WHERE code = 'a')",
            "SELECT COUNT(*) FROM people WHERE km < 20 OR plan NOT IN (SELECT plan FROM codes)",
            "SELECT COUNT(*) FROM people JOIN plans USING (plan) WHERE km < 9 OR since IN (SELECT MIN(since) FROM "
            "plans)",
            "SELECT COUNT(*) FROM people JOIN plans USING (plan) WHERE km < 9 OR name NOT IN (SELECT name FROM plans)",
            "WITH c AS (SELECT plan FROM codes) SELECT COUNT(*) FROM people WHERE km < 2 OR plan IN (SELECT * FROM c)",
            "SELECT COUNT(*) FILTER (WHERE plan IN (SELECT plan FROM codes)), SUM(CASE WHEN plan NOT IN (SELECT plan "
            "FROM codes) THEN 1 ELSE 0 END) FROM people",
            "SELECT COUNT(*) FROM people WHERE km < 20 OR plan IN (SELECT plan FROM codes WHERE code = 'nothing')",
            "SELECT plan, COUNT(*) FROM people WHERE plan IN (1, 2, 3) GROUP BY plan HAVING plan IN (SELECT plan FROM "
            "codes WHERE code = 'a') ORDER BY plan",
        ],
    )
    def test_as_duckdb(self, query):
        assert rows_of(asked(query)) == rows_of(exact(query))

    @pytest.mark.parametrize(
        ("inner", "why"),
        [
            ("SELECT km FROM people", "can carry other records into it"),
            ("SELECT plan FROM codes JOIN people USING (plan)", "can carry other records into it"),
            ("SELECT plan FROM codes WHERE plan > (SELECT COUNT(*) FROM people)", "can carry other records into it"),
            ("SELECT plan FROM codes WHERE codes.plan = people.km", "people.km is a column of the query around"),
            ("SELECT plan, code FROM codes", "the subquery has one column"),
            ("SELECT a.x FROM many a", "a list of the 1,001 values"),
        ],
    )
    def test_of_anything_else_are_refused(self, inner, why):
        many = pd.DataFrame({"x": range(1001)})
        with pytest.raises(ParameterError, match=why):
            asked(f"SELECT COUNT(*) FROM people WHERE km < 9 OR plan IN ({inner})", public={**PUBLIC, "many": many})

    def test_values_that_follow_from_a_parameter_stay_known_as_such(self):
        query = "SELECT COUNT(*) AS n FROM people WHERE km < 9 OR plan IN (SELECT plan FROM plans WHERE plan < {})"
        given = asked(query.format("?"), params=[3])
        assert given["n"].equals(asked(query.format(3))["n"])
        word = "is the publisher's word"
        said = [" ".join(pdrisk.explain(each, "publication").split()) for each in (given, asked(query.format(3)))]
        assert [word in each for each in said] == [True, False]
        assert "(SELECT ...)" in said[0]
        assert "IN (1, 2)" in said[1]

    def test_without_somebody(self):
        def ask(people):
            query = "SELECT COUNT(*) AS n FROM people WHERE km < 20 OR plan IN (SELECT plan FROM codes)"
            return asked(query, eps=1, people=people)

        for pid in PEOPLE["pid"].head(2):
            assert loss_between(ask, PEOPLE, PEOPLE[PEOPLE["pid"] != pid]) <= 1 + 1e-9


@needs_server
def test_rows_on_postgres():
    with database() as url, connected(url) as con:
        con.execute("CREATE TABLE people (pid int, plan int, km int)")
        con.execute("CREATE TABLE plans (plan int, name text, since date)")
        con.execute("INSERT INTO people VALUES (1, 1, 5), (2, 2, 6), (3, NULL, 7), (4, 8, 8)")
        con.execute("INSERT INTO plans VALUES (1, 'gold', '2020-01-01'), (2, 'tin', NULL), (3, NULL, '2021-01-01')")
        con.commit()

        def ask(query):
            return pdrisk.sql(query, con, eps=EXACT, public=["plans"]).to_numpy(dtype=object).tolist()

        grouped = ask("SELECT q.name, COUNT(*) AS n FROM people p LEFT JOIN plans q ON p.plan = q.plan GROUP BY q.name")
        assert [[None if pd.isna(name) else name, n] for name, n in grouped] == [["gold", 1], ["tin", 1], [None, 2]]
        assert ask("SELECT COUNT(*) FROM people WHERE plan IN (SELECT MAX(plan) FROM plans WHERE plan < 3)") == [[1]]
        values = "(VALUES (1, 'x', DATE '2020-01-01'), (8, NULL, NULL)) v(plan, l, d)"
        assert ask(f"SELECT v.l, COUNT(*) FROM people p JOIN {values} ON p.plan = v.plan GROUP BY v.l")[0] == ["x", 1]
        assert ask("SELECT COUNT(*) FROM people JOIN (VALUES (1), (2)) v ON column1 = plan") == [[2]]
        assert ask("SELECT name FROM plans ORDER BY plan LIMIT 1") == [["gold"]]
        with pytest.raises(ParameterError, match="plans has up to 3 rows"):
            ask("SELECT COUNT(*) FROM people CROSS JOIN plans")
