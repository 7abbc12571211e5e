# ruff: noqa: E501 - queries as they are written
"""Statements of several queries: UNION ALL, GROUPING SETS and scalar subqueries are paid, read and drawn one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
import pdrisk.engines.sql.servers.sql_table as reading
from ledgers import asked, events
from pdrisk import Dataset
from sql_people import BOUNDS, REGIONS, connection, described, people, refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

SCALAR = "SELECT COUNT(*) AS n FROM people WHERE distance > (SELECT AVG(distance) FROM people)"
UNION = "SELECT 'f' AS s, COUNT(*) AS n FROM people WHERE sex = 'f' UNION ALL SELECT 'm', COUNT(*) FROM people WHERE sex = 'm'"
FORMS = {
    "scalar": (SCALAR, {"bounds": BOUNDS}, 2),
    "two scalars": (f"{SCALAR} AND age < (SELECT MAX(age) FROM people)", {"bounds": BOUNDS}, 3),
    "one scalar twice": (f"{SCALAR} OR distance < (SELECT AVG(distance) FROM people) / 2", {"bounds": BOUNDS}, 2),
    "a scalar in a scalar": (
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people WHERE distance < (SELECT AVG(distance) FROM people))",
        {"bounds": BOUNDS},
        3,
    ),
    "scalars alone": ("SELECT (SELECT COUNT(*) FROM people) / (SELECT COUNT(age) FROM people) AS share", {}, 2),
    "union": (UNION, {}, 2),
    "union over itself": (f"SELECT SUM(n) FROM ({UNION}) WHERE n > (SELECT COUNT(*) FROM people) / 9", {}, 3),
    # Of counts, sums and means alone they are one query, with margins: tests/answer/tables/test_margins_asked.py.
    "rollup": (
        "SELECT region, MEDIAN(age) AS n FROM people GROUP BY ROLLUP (region)", {"keys": REGIONS, "bounds": BOUNDS}, 2
    ),
    "cube": (
        "SELECT region, sex, MEDIAN(age) AS a, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex)",
        {"keys": {"region": REGIONS, "sex": ["f", "m"]}, "bounds": BOUNDS},
        4 * 2,
    ),
}  # fmt: skip
forms = pytest.mark.parametrize(("query", "options", "releases"), FORMS.values(), ids=FORMS.keys())


@pytest.fixture(scope="module")
def con():
    return connection()


@pytest.fixture
def seen(monkeypatch):
    """What happens, in order: payments, reads and draws."""
    found = []
    pay, read, drawn_once = pdrisk.Ledger.pay, reading.read, pdrisk._answer.releasing.drawn_once

    def paid(self, query, *rest):
        receipt = pay(self, query, *rest)
        found.append(("paid" if receipt.seq is not None else "remembered", query.eps))
        return receipt

    monkeypatch.setattr(pdrisk.Ledger, "pay", paid)
    monkeypatch.setattr(reading, "read", lambda *rest: found.append(("read",)) or read(*rest))
    monkeypatch.setattr(
        pdrisk._answer.releasing,
        "drawn_once",
        lambda mechanism, summary: found.append(("drawn", mechanism.eps)) or drawn_once(mechanism, summary),
    )
    return found


@forms
class TestEachOnce:
    """Each query is paid before it is read, each release drawn once, and all cost what the call may spend."""

    def test_paid_read_drawn(self, query, options, releases, con, seen, book):
        ledger = book()
        answer = pdrisk.sql(query, con, eps=Fraction(3, 4), ledger=ledger, **options)
        assert ledger.remaining().spent == 0.75
        order = [what[0] for what in seen]
        assert order[0] == "paid" and order.count("paid") == order.count("read")
        for at, what in enumerate(order):
            before = order[at - 1] if at else "drawn"
            assert before in {"paid": ("drawn",), "read": ("paid",), "drawn": ("read", "drawn")}[what]
        assert sum(eps for what, *eps_ in seen if what == "paid" for eps in eps_) == Fraction(3, 4)
        drawn = [eps for what, *eps_ in seen if what == "drawn" for eps in eps_]
        assert sum(drawn) == Fraction(3, 4)
        said = described(answer)
        assert len(said.lines) == releases and said.eps == pytest.approx(0.75)
        assert len(drawn) == len(set(said.releases or range(releases))) and len(set(drawn)) == 1
        for audience in ("participant", "publication"):
            assert "posterior" not in pdrisk.explain(answer, audience)
        pdrisk.public(answer)

    def test_nothing_is_paid_that_cannot_be_finished(self, query, options, releases, con, seen, book):
        ledger = book(eps=0.7)
        with pytest.raises(pdrisk.BudgetExceededError, match="it asks for eps"):
            pdrisk.sql(query, con, eps=0.75, ledger=ledger, **options)
        assert seen == [] and ledger.remaining().spent == 0 and events(ledger) == ["opened", "refused"]
        ledger.amend(eps=9, queries=1)
        with pytest.raises(pdrisk.BudgetExceededError, match="all 1 queries"):
            pdrisk.sql(query, con, eps=0.75, ledger=ledger, **options)
        assert seen == []

    def test_whoever_may_not_see_the_curators_numbers_pays_nothing(self, query, options, releases, con, seen, book):
        """Of a scalar subquery, whose own answer shows none of them."""
        ledger = book()
        with pytest.raises((pdrisk.PolicyError, pdrisk.ParameterError)):  # several rows have no such columns
            pdrisk.sql(query, con, eps=0.75, ledger=ledger, curator=True, **options)
        assert seen == [] and ledger.remaining().spent == 0

    def test_nothing_is_paid_of_tables_that_are_not_remembered(self, query, options, releases, con, seen, book):
        """What a Dataset of a database's table asks first would be paid, and gone, where the rest cannot be."""
        ledger = book(eps=0.7)
        d = Dataset({"people": (con, "people")}, ledger=ledger)
        with pytest.raises(pdrisk.BudgetExceededError, match="it asks for eps"):
            d.sql(query, eps=0.75, **options)
        assert seen == [] and ledger.remaining().spent == 0

    def test_a_dataset_remembers(self, query, options, releases, seen, book):
        ledger = book()
        d = Dataset({"people": people()}, ledger=ledger, version="1")
        ask = lambda _: d.sql(query, eps=0.75, **options)  # noqa: E731
        first, cost = asked(ledger, ask)
        assert cost == 0.75
        ledger.amend(eps=0.76)
        again, nothing = asked(ledger, ask)
        assert nothing == 0 and again == pytest.approx(first, nan_ok=True)

    def test_parts_that_are_wrong_cost_nothing(self, query, options, releases, con, monkeypatch):
        for wrong, why in {"people WHERE": "persons WHERE", "FROM people": "FROM persons"}.items():
            at = query.rfind(wrong)
            if at >= 0:
                refusal(monkeypatch, f"{query[:at]}{why}{query[at + len(wrong) :]}", con, eps=1, **options)
        refusal(monkeypatch, query, con, **options)  # without eps

    def test_old_data_whatever_is_written_meanwhile(self, query, options, releases, monkeypatch):
        without_noise(monkeypatch)
        own = connection()
        before = pdrisk.sql(query, own, eps=1, **options)
        read = reading.read

        def writing(*rest):
            found = read(*rest)
            own.execute("DELETE FROM people WHERE id % 2 = 0")
            return found

        monkeypatch.setattr(reading, "read", writing)
        after = pdrisk.sql(query, own, eps=1, **options)
        pd.testing.assert_frame_equal(before, after)


class TestScalars:
    def test_what_it_comes_to_is_a_constant(self, con, monkeypatch):
        draws = without_noise(monkeypatch)
        answer = pdrisk.sql(SCALAR, con, eps=1, bounds=BOUNDS)
        mean = float(draws.answers[0][0])
        assert answer["n"].item() == con.execute("SELECT COUNT(*) FROM people WHERE distance > ?", [mean]).fetchone()[0]
        assert f'"distance" > {mean}' in described(answer).where

    @pytest.mark.parametrize("call", ["dp_mean(age, lo := 0, hi := {})", "dp_mean(age, lo := {}, hi := 9)", "dp_count(eps := {})",
                                      "QUANTILE_CONT(age, {})", "dp_quantile(age, {})", "dp_var(age, ddof := {})"])  # fmt: skip
    def test_never_an_argument(self, call, con, monkeypatch):
        query = f"SELECT {call.format('(SELECT COUNT(*) FROM people)')} FROM people"
        why = (
            "takes no value of a subquery" if call.startswith("dp_") else "must be a number written out or a parameter"
        )
        assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=BOUNDS))

    @pytest.mark.parametrize(
        ("query", "why"),
        {
            "SELECT COUNT(*) FROM people AS p WHERE age > (SELECT AVG(age) FROM people AS q WHERE q.sex = p.sex)": "GROUP BY sex needs the public list",
            "SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people LIMIT 1)": "neither aggregated",
            "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age), MAX(age) FROM people)": "gives 2 columns",
            "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(x) FROM (SELECT age AS x FROM people LIMIT 9))": "LIMIT in a",
            "SELECT COUNT(*) FROM people WHERE age IN (SELECT AVG(age), MAX(age) FROM people)": "one column is needed",
            "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT COUNT(*) FROM people)": "EXISTS asks for rows",
            "SELECT COUNT(*) FROM people WHERE age > ANY (SELECT AVG(age) FROM people)": "subqueries inside",
            "SELECT COUNT(*) FROM people WHERE sex > (SELECT AVG(age) FROM people)": "compares text with numbers",
            "SELECT age FROM people WHERE age > (SELECT AVG(age) FROM people)": "neither aggregated",
            "SELECT (SELECT AVG(age) FROM people) FROM people": "no aggregate",
            "SELECT 1": "there is no FROM",
            "SELECT COUNT(*)": "there is no FROM",
            "SELECT (SELECT 3)": "there is no FROM",
            "SELECT COUNT(*) FROM people LIMIT (SELECT COUNT(*) FROM people)": "LIMIT takes a whole number",
        }.items(),
    )
    @pytest.mark.whole
    def test_refused(self, query, why, con, monkeypatch):
        assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=BOUNDS))

    def test_written_twice_it_is_one_release(self, con, monkeypatch):
        draws = without_noise(monkeypatch)
        mean = "(SELECT AVG(age) FROM people)"
        query = f"WITH m AS (SELECT * FROM people WHERE age > {mean}) SELECT COUNT(*) FROM m WHERE age < 2 * {mean}"
        answer = pdrisk.sql(query, con, eps=1, bounds=BOUNDS)
        assert len(draws) == len(described(answer).lines) == 2

    def test_those_that_differ_in_others_are_different(self, con, book):
        """Whatever their values: before there are any, all of them stand for 1."""
        one, other = (
            "(SELECT AVG(age) FROM people WHERE age > (SELECT AVG(" + x + ") FROM people))" for x in ("age", "children")
        )
        ledger = book()
        query = f"SELECT COUNT(*) FROM people WHERE age > {one} OR age > {other}"
        answer = pdrisk.sql(query, con, eps=1, bounds=BOUNDS, ledger=ledger)
        assert len(described(answer).lines) == 5 and ledger.remaining().spent == 1

    def test_several_rows(self, con, book):
        """Refused before anything is paid where it is known, else when the noise has decided it."""
        ledger = book()
        asked = {"eps": 1, "bounds": BOUNDS, "keys": ["f", "m"]}
        inner = "SELECT AVG(age) AS a FROM people GROUP BY sex"
        for each in (inner, f"{inner} ORDER BY a", f"SELECT a + 1 FROM ({inner})"):
            with pytest.raises(pdrisk.ParameterError, match="gives 2 rows where one value is needed"):
                pdrisk.sql(f"SELECT COUNT(*) FROM people WHERE age > ({each})", con, ledger=ledger, **asked)
        assert ledger.remaining().spent == 0
        with pytest.raises(pdrisk.ParameterError, match="gives 2 rows where one value is needed"):
            pdrisk.sql(f"SELECT COUNT(*) FROM people WHERE age > ({inner} HAVING COUNT(*) > -99)", con, **asked)
        for each in (f"{inner} LIMIT 1", f"SELECT MAX(a) FROM ({inner})", f"SELECT a FROM ({inner}) WHERE a > 9999"):
            pdrisk.sql(f"SELECT COUNT(*) FROM people WHERE age > ({each})", con, **asked)

    def test_no_row_is_null(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age > {0}) AS m, {0} AS s FROM people"
        answer = pdrisk.sql(
            query.format("(SELECT AVG(age) FROM people HAVING COUNT(*) < 0)"), con, eps=1, bounds=BOUNDS
        )
        assert answer.iloc[0, :2].tolist() == [120, 0] and pd.isna(answer["s"].item())

    def test_in_views_they_are_refused(self, monkeypatch):
        own = connection()
        own.execute("CREATE VIEW v AS SELECT * FROM people WHERE age > (SELECT AVG(age) FROM people)")
        assert "subqueries inside" in str(refusal(monkeypatch, "SELECT COUNT(*) FROM v", own, eps=1))

    def test_explicit_and_shared_eps(self, con, book):
        ledger = book()
        query = "SELECT COUNT(*), MAX(age) FROM people WHERE age > (SELECT dp_mean(age, eps := 0.2) FROM people)"
        answer = pdrisk.sql(query, con, eps=1, bounds=BOUNDS, ledger=ledger)
        assert [line.eps for line in described(answer).lines] == pytest.approx([0.2, 0.4, 0.4])
        assert ledger.remaining().spent == 1

    @pytest.mark.parametrize("eps", [0.2, 0.3])
    def test_too_little(self, eps, con, monkeypatch):
        query = "SELECT COUNT(*) FROM people WHERE age > (SELECT dp_mean(age, eps := 0.3) FROM people)"
        assert "may spend eps=" in str(refusal(monkeypatch, query, con, eps=eps, bounds=BOUNDS))

    def test_parameters_and_frames(self, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT COUNT(*) AS n FROM t WHERE x > (SELECT AVG(x) FROM t WHERE x < ?) AND x < ?"
        frame = pd.DataFrame({"x": np.arange(100.0)})
        answer = pdrisk.sql(query, eps=1, bounds=(0, 100), params=[50, 60], t=frame)
        assert answer["n"].item() == 35 and described(answer).where_trusted
        assert "60" not in described(answer).where

    def test_risk_columns_are_of_the_outer_query(self, con):
        answer = pdrisk.sql(SCALAR, con, eps=1, bounds=BOUNDS, curator=True)
        assert answer.columns[:4].tolist() == ["n", "n_low", "n_high", "n_eps"] and answer["n_eps"].item() == 0.5
        assert pdrisk.public(answer).columns.tolist() == ["n", "n_low", "n_high", "n_eps", "n_worst_case"]
        inner, outer = pdrisk.explain(answer, "curator").split("-- curator only")[1].split("  n\n")
        assert "a subquery are not in this answer: ask for it alone" in " ".join(inner.split())
        assert "records used" in outer and "records used" not in inner
        with pytest.raises(pdrisk.ParameterError, match="does not hold the curator's numbers"):
            pdrisk.explain(pdrisk.public(answer), "curator")

    def test_dates_and_texts(self, con, monkeypatch):
        without_noise(monkeypatch)
        top = "(SELECT region FROM people GROUP BY region ORDER BY COUNT(*) DESC, region LIMIT 1)"
        first = "(SELECT MIN(m) FROM (SELECT date_trunc('year', day) AS m, COUNT(*) AS n FROM people WHERE year(day) IN (2021, 2022) GROUP BY m))"
        query = f"SELECT COUNT(*) FROM people WHERE region = {top} AND day >= {first}"
        answer = pdrisk.sql(query, con, eps=1, keys={"region": REGIONS})
        assert answer.iat[0, 0] == con.execute(query).fetchone()[0]


class TestUnions:
    @pytest.mark.parametrize(
        ("query", "why"),
        {
            "SELECT COUNT(*), 1 FROM people UNION ALL SELECT COUNT(*) FROM people": "have 2 and 1 columns",
            "SELECT COUNT(*) FROM people UNION ALL SELECT 'x' || COUNT(*)::VARCHAR FROM people": "numbers and text",
            "SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people": "neither aggregated",
            "SELECT age FROM people UNION ALL SELECT age FROM people": "neither aggregated",
            "SELECT AVG(age) FROM (SELECT age FROM people UNION ALL SELECT age FROM people)": "joins are refused",
            "SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM people": "EXCEPT is of ids of people",
            "SELECT COUNT(*) FROM people UNION ALL BY NAME SELECT COUNT(*) FROM people": "",
            "WITH RECURSIVE r AS (SELECT COUNT(*) AS n FROM people UNION ALL SELECT n FROM r) SELECT * FROM r": "",
        }.items(),
    )
    @pytest.mark.whole
    def test_refused(self, query, why, con, monkeypatch):
        assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=BOUNDS))

    def test_risk_columns(self, con, monkeypatch):
        for options in ({"risk_columns": True}, {"curator": True}):
            assert "made of several" in str(refusal(monkeypatch, UNION, con, eps=1, **options))

    def test_counts_stay_whole(self, con):
        assert pdrisk.sql(UNION, con, eps=1)["n"].dtype == np.int64

    def test_keys_of_each_part(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT region AS k, COUNT(*) AS n FROM people GROUP BY region UNION ALL SELECT sex, COUNT(*) FROM people GROUP BY sex"
        answer = pdrisk.sql(query, con, eps=1, keys={"region": REGIONS, "sex": ["m", "f"]})
        assert answer["k"].tolist() == [*REGIONS, "m", "f"]
        session = {"region": REGIONS, "sex": ["m", "f"], "age": [1], "of another query": ["x"], "agee": [1]}
        assert pdrisk.sql(query, con, eps=1, keys=session)["k"].tolist() == [*REGIONS, "m", "f"]
        slip = refusal(monkeypatch, query, con, eps=1, keys={"region": REGIONS, "sexx": ["m"]})
        assert "Did you mean 'sexx' in keys= to be 'sex'?" in str(slip)
        assert "needs the public list" in str(refusal(monkeypatch, query, con, eps=1, keys={"region": REGIONS}))
        assert "which is missing" in str(refusal(monkeypatch, UNION, con, eps=1, keys=["f"]))


class TestGroupingSets:
    def test_of_groups_alone(self, con, monkeypatch):
        without_noise(monkeypatch)
        keys = {"region": REGIONS, "sex": ["f", "m"]}
        query = "SELECT region, sex FROM people WHERE region = 'north' OR sex = 'f' GROUP BY CUBE (region, sex) HAVING sex IS NOT NULL"
        answer = pdrisk.sql(query, con, eps=1, keys=keys)
        assert answer.fillna("-").to_numpy().tolist() == [
            ["north", "f"], ["north", "m"], ["south", "f"], ["-", "f"], ["-", "m"],
        ]  # fmt: skip
        assert (
            pdrisk.sql(
                "SELECT COUNT(*) FROM (SELECT region FROM people GROUP BY ROLLUP (region))", con, eps=1, keys=REGIONS
            ).iat[0, 0]
            == 3
        )

    @pytest.mark.parametrize(
        "keys",
        [
            {"region": REGIONS, "sex": ["f", "m"]},
            [(region, sex) for region in REGIONS for sex in ("f", "m")],
            {"Region": REGIONS, "SEX": ["f", "m"]},
        ],
    )
    def test_keys(self, keys, con, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex)"
        answer = pdrisk.sql(query, con, eps=1, keys=keys)
        pairs = [
            (a if isinstance(a, str) else None, b if isinstance(b, str) else None)
            for a, b in answer.iloc[:, :2].to_numpy()
        ]
        assert pairs == [
            *((region, sex) for region in REGIONS for sex in ("f", "m")),
            *((region, None) for region in REGIONS), (None, "f"), (None, "m"), (None, None),
        ]  # fmt: skip
        for (region, sex), n in zip(pairs, answer["n"], strict=True):
            own = people()
            own = own[own["region"].isin(REGIONS) & own["sex"].isin(["f", "m"])]  # in margins, too
            own = own if region is None else own[own["region"] == region]
            assert n == len(own if sex is None else own[own["sex"] == sex])

    def test_which_groups_a_row_has(self, con, monkeypatch):
        """As DuckDB: the last argument is the bit 1, which is set where the row is of all its values."""
        without_noise(monkeypatch)
        query = "SELECT GROUPING(region, sex) AS b, GROUPING(sex) AS s, sex FROM people GROUP BY CUBE (region, sex) HAVING COUNT(*) > 0"
        answer = pdrisk.sql(query, con, eps=1, keys={"region": ["north"], "sex": ["f", "m"]})
        assert answer.fillna("-").to_numpy().tolist() == [
            [0, 0, "f"], [0, 0, "m"], [1, 1, "-"], [2, 0, "f"], [2, 0, "m"], [3, 1, "-"],
        ]  # fmt: skip

    def test_some_pairs_alone(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, sex)"
        answer = pdrisk.sql(query, con, eps=1, keys=[("north", "f"), ("south", "f"), ("north", "m")])
        assert answer["region"].fillna("-").tolist() == ["north", "south", "north", "north", "south", "-"]

    def test_observed(self, con, monkeypatch):
        """The NULL group is another line than the total, which GROUPING tells apart."""
        without_noise(monkeypatch)
        query = "SELECT region, COUNT(*) AS n, GROUPING(region) AS t FROM people GROUP BY ROLLUP (region)"
        answer = pdrisk.sql(query, con, eps=1, keys="observed")
        assert answer["region"].isna().tolist() == [False, False, False, True, True]
        assert answer["t"].tolist() == [0, 0, 0, 0, 1] and described(answer).keys_from == "data"
        assert answer["n"].iloc[:4].sum() == answer["n"].iloc[4]

    @pytest.mark.parametrize(
        ("query", "why"),
        {
            "SELECT region, age, COUNT(*) FROM people GROUP BY ROLLUP (region)": "'age' is neither aggregated",
            "SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region) ORDER BY age": "'age' is neither aggregated",
            "SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region) HAVING age > 3": "'age' is neither aggregated",
            "SELECT GROUPING(age), COUNT(*) FROM people GROUP BY ROLLUP (region)": "GROUPING takes groups",
            "SELECT GROUPING(region), COUNT(*) FROM people GROUP BY region": "GROUPING belongs to ROLLUP",
            "SELECT *, COUNT(*) FROM people GROUP BY ROLLUP (region)": "SELECT * beside GROUPING SETS",
            "SELECT region, MODE(age) FROM people GROUP BY ROLLUP (region)": "",
            "SELECT region, AVG(age) FROM people GROUP BY ROLLUP (region, age)": "GROUP BY age needs the public list",
            "SELECT AVG(age) FROM (SELECT region, age FROM people GROUP BY ROLLUP (region, age))": "",
        }.items(),
    )
    @pytest.mark.whole
    def test_refused(self, query, why, con, monkeypatch):
        assert why in str(refusal(monkeypatch, query, con, eps=1, bounds=BOUNDS, keys={"region": REGIONS}))


HOSTILE = """
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM read_csv('/etc/passwd'))
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(x) FROM range((SELECT COUNT(*) FROM people)) r(x))
SELECT (SELECT COUNT(*) FROM people), age FROM people
SELECT COUNT(*) FROM people p, (SELECT AVG(age) AS a FROM people) q WHERE p.age > q.a
SELECT COUNT(*) FROM people WHERE id = (SELECT MAX(id) FROM people WHERE age = (SELECT MAX(age) FROM people p2 WHERE p2.id <= people.id))
SELECT COUNT(*) FROM people WHERE (SELECT age FROM people LIMIT 1) > 3
SELECT COUNT(*) FROM people WHERE age > (SELECT first(age) FROM people)
SELECT COUNT(*) FROM people WHERE age > (SELECT random())
SELECT COUNT(*) FROM people WHERE age > (SELECT error('x'))
SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM duckdb_settings())
SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM information_schema.tables)
SELECT COUNT(*) FROM people WHERE region = (SELECT string_agg(region, ',') FROM people)
SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people WHERE id = 3
SELECT COUNT(*) FROM people UNION ALL (SELECT age FROM people ORDER BY age LIMIT 2)
SELECT * FROM people UNION ALL SELECT * FROM people
SELECT COUNT(*) FROM (SELECT * FROM people UNION ALL SELECT * FROM people)
WITH u AS (SELECT age FROM people UNION ALL SELECT COUNT(*) FROM people) SELECT * FROM u
WITH u AS (SELECT age FROM people UNION ALL SELECT COUNT(*) FROM people) SELECT AVG(age) FROM u
SELECT region, MAX(age) OVER () FROM people GROUP BY ROLLUP (region)
SELECT region, age FROM people GROUP BY ROLLUP (region, age)
SELECT region, COUNT(*), ANY_VALUE(age) FROM people GROUP BY CUBE (region)
SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region) QUALIFY age > 3
SELECT region, COUNT(*) FROM people GROUP BY ROLLUP (region) ORDER BY MAX(age) OVER (PARTITION BY age)
SELECT GROUPING(region) FROM people
SELECT COUNT(*) FROM people WHERE GROUPING(region) = 1
SELECT DISTINCT ON (region) age FROM people
SELECT DISTINCT region, age FROM people
SELECT DISTINCT * FROM people
SELECT DISTINCT region, MAX(age) OVER () FROM people
SELECT region FROM people GROUP BY region HAVING age > 3
SELECT region, (SELECT age FROM people p WHERE p.region = people.region LIMIT 1) FROM people GROUP BY region
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM (SELECT DISTINCT age FROM people))
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(n) FROM (SELECT age AS n FROM people GROUP BY age))
SELECT COUNT(*) FROM people WHERE age > (WITH x AS (SELECT age FROM people LIMIT 1) SELECT MAX(age) FROM x)
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people TABLESAMPLE 10%)
SELECT COUNT(*) FROM people WHERE age > (SELECT dp_mean(age, lo := 0, hi := (SELECT COUNT(*) FROM people)) FROM people)
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people UNION ALL SELECT age FROM people)
SELECT COUNT(*) FROM people WHERE age > (SELECT age)
SELECT (SELECT age) FROM people
SELECT (SELECT people.age) AS a, COUNT(*) FROM people
SELECT COUNT(*) FROM people GROUP BY ALL UNION ALL SELECT region FROM people GROUP BY ALL
SELECT COUNT(*) FROM people WHERE id = (SELECT MIN(id) FROM (SELECT id, row_number() OVER () AS r FROM people) WHERE r = 5)
PIVOT people ON region USING COUNT(*)
SELECT (TABLE people)
SELECT COUNT(*) FROM people WHERE (age, id) > (SELECT 1, 2)
SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(x) FROM (VALUES ((SELECT age FROM people LIMIT 1))) v(x))
""".strip().splitlines()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("query", HOSTILE)
def test_hostile_statements(query, con, monkeypatch):
    """No record leaves in a subquery, a part of a UNION or a GROUPING SET."""
    keys = {"region": REGIONS, "sex": ["f", "m"]} if "GROUP" in query or "DISTINCT" in query else None
    assert refusal(monkeypatch, query, con, eps=1, bounds={**BOUNDS, "id": (0, 119)}, keys=keys)
