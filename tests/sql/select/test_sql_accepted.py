"""A query that is accepted says the same as ``df.dprisk`` about the same people: values, sensitivities and risks."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import pdrisk
from sql_people import (
    BOUNDS,
    PEOPLE,
    REGIONS,
    Ask,
    ask,
    assert_same_facts,
    assert_same_values,
    by_accessor,
    by_hand,
    connection,
    lines,
    risks,
    without_noise,
)

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


@dataclass(frozen=True)
class Case:
    """A query, what it asks for, and how it is grouped; ``rows`` are the places of the keys shown, in their order."""

    query: str
    asks: tuple[Ask, ...]
    by: Any = None
    keys: Any = None
    rows: list[int] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def case(query: str, *asks: Ask, by: Any = None, keys: Any = None, rows: Any = None, **options: Any) -> Case:
    return Case(query, asks, by, keys, rows, options)


DP = "lo := 1, hi := 675"
STATISTICS = [
    case("SELECT COUNT(*) FROM people", ask("count")),
    case("SELECT COUNT(1) FROM people", ask("count")),
    case("SELECT COUNT() FROM people", ask("count")),
    case("SELECT COUNT(distance) FROM people", ask("count", "distance")),
    case("SELECT COUNT(region) FROM people", ask("count", "region")),
    case("SELECT COUNT(day) FROM people", ask("count", "day")),
    case("SELECT SUM(distance) FROM people", ask("sum", "distance")),
    case("SELECT sum(age) FROM people", ask("sum", "age")),
    case("SELECT AVG(distance) FROM people", ask("mean", "distance")),
    case("SELECT mean(distance) FROM people", ask("mean", "distance")),
    case("SELECT AVG(children) FROM people", ask("mean", "children")),
    case("SELECT AVG(member) FROM people", ask("mean", "member")),
    case("SELECT MEDIAN(distance) FROM people", ask("median", "distance")),
    case("SELECT MEDIAN(children) FROM people", ask("median", "children")),
    case("SELECT QUANTILE_CONT(distance, 0.9) FROM people", ask("quantile", "distance", q=0.9)),
    case("SELECT QUANTILE_CONT(age, 0.25) FROM people", ask("quantile", "age", q=0.25)),
    case("SELECT QUANTILE_CONT(age, 0) FROM people", ask("quantile", "age", q=0.0)),
    case("SELECT MIN(age) FROM people", ask("min", "age")),
    case("SELECT MAX(distance) FROM people", ask("max", "distance")),
    case("SELECT VAR_SAMP(distance) FROM people", ask("var", "distance")),
    case("SELECT VARIANCE(distance) FROM people", ask("var", "distance")),
    case("SELECT VAR_POP(distance) FROM people", ask("var", "distance", ddof=0)),
    case("SELECT STDDEV(age) FROM people", ask("std", "age")),
    case("SELECT STDDEV_SAMP(age) FROM people", ask("std", "age")),
    case("SELECT STDDEV_POP(age) FROM people", ask("std", "age", ddof=0)),
    case("SELECT COUNT(*), SUM(age), AVG(distance) FROM people",
         ask("count"), ask("sum", "age"), ask("mean", "distance")),
    case(
        "SELECT MIN(age), MAX(age), MEDIAN(age), QUANTILE_CONT(age, 0.1), VAR_POP(age) FROM people",
        ask("min", "age"), ask("max", "age"), ask("median", "age"), ask("quantile", "age", q=0.1),
        ask("var", "age", ddof=0),
    ),
]  # fmt: skip
PRIVATE = [
    case("SELECT dp_count() FROM people", ask("count")),
    case("SELECT dp_count(*) FROM people", ask("count")),
    case("SELECT dp_count_star(eps := 2) FROM people", ask("count", eps=2)),
    case("SELECT dp_count(distance, eps := 2) FROM people", ask("count", "distance", eps=2)),
    case(f"SELECT dp_sum(distance, eps := 1, {DP}) FROM people", ask("sum", "distance", eps=1)),
    case("SELECT dp_mean(distance, 1, 1, 675) FROM people", ask("mean", "distance", eps=1)),
    case("SELECT dp_mean(distance, eps => 1, hi => 675, lo => 1) FROM people", ask("mean", "distance", eps=1)),
    case("SELECT dp_avg(distance, 1, hi := 675, lo := 1) FROM people", ask("mean", "distance", eps=1)),
    case("SELECT DP_MEDIAN(distance, EPS := 0.5) FROM people", ask("median", "distance", eps=0.5)),
    case("SELECT dp_quantile(age, 0.9, 1) FROM people", ask("quantile", "age", q=0.9, eps=1)),
    case("SELECT dp_quantile(age, q := 0.9, eps := 1) FROM people", ask("quantile", "age", q=0.9, eps=1)),
    case("SELECT dp_min(age, lo := -5, hi := 5.5) FROM people", ask("min", "age", bounds=(-5, 5.5))),
    case("SELECT dp_max(age, lo := +1, hi := 1e2) FROM people", ask("max", "age", bounds=(1, 100))),
    case("SELECT dp_var(age, ddof := 0) FROM people", ask("var", "age", ddof=0)),
    case("SELECT dp_std(age, 2, 18, 90, 1) FROM people", ask("std", "age", eps=2)),
    case(
        "SELECT dp_mean(age, eps := ?, lo := $2, hi := $3) FROM people WHERE age > $4",
        ask("mean", "age", "age > 40", bounds=(0, 99), eps=0.25), params=[0.25, 0, 99, 40],
    ),
    case(
        "SELECT AVG(age), dp_mean(age, lo := 0, hi := 120), dp_mean(age, eps := 1) FROM people",
        ask("mean", "age"), ask("mean", "age", bounds=(0, 120)), ask("mean", "age", eps=1),
    ),
]  # fmt: skip
FILTERS = [
    case("SELECT AVG(distance) FROM people WHERE age > 40", ask("mean", "distance", "age > 40")),
    case("SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 40", ask("count", None, "30 <= age <= 40")),
    case("SELECT COUNT(*) FROM people WHERE NOT age > 40 OR member", ask("count", None, "not age > 40 or member")),
    case("SELECT COUNT(*) FROM people WHERE region = 'north'", ask("count", None, "region == 'north'")),
    case("SELECT COUNT(*) FROM people WHERE region IN ('north', 'x')", ask("count", None, "region in ['north', 'x']")),
    case("SELECT COUNT(*) FROM people WHERE region IS NULL", ask("count", None, "homeless")),
    case("SELECT COUNT(*) FROM people WHERE upper(region) = 'WEST'", ask("count", None, "upper == 'WEST'")),
    case("SELECT COUNT(*) FROM people WHERE region LIKE '%th'", ask("count", None, "region in ['north', 'south']")),
    case("SELECT COUNT(*) FROM people WHERE day >= '2022-01-01'", ask("count", None, "day >= '2022-01-01'")),
    case("SELECT COUNT(*) FROM people WHERE day > DATE '2021-06-05'", ask("count", None, "day > '2021-06-05'")),
    case("SELECT AVG(age) FROM people WHERE year(day) = 2021", ask("mean", "age", "year == 2021")),
    case("SELECT AVG(age) FROM people WHERE true", ask("mean", "age")),
    case("SELECT AVG(age) FROM people WHERE age < 0", ask("mean", "age", "age < 0")),
    case("SELECT AVG(age) AS a, age > 50 AS old FROM people WHERE old GROUP BY old", ask("mean", "age", "old"),
         by="old", keys=[True]),
    case("SELECT AVG(age) FILTER (WHERE member) FROM people", ask("mean", "age", "member")),
    case("SELECT COUNT(*) FILTER (WHERE age > 50) FROM people", ask("count", None, "age > 50")),
    case("SELECT COUNT(distance) FILTER (age > 50) FROM people", ask("count", "distance", "age > 50")),
    case(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE member) FROM people WHERE age > 30",
        ask("count", None, "age > 30"), ask("count", None, "age > 30 and member"),
    ),
    case(
        f"SELECT dp_median(distance, {DP}) FILTER (WHERE sex = 'f') FROM people WHERE age > $age AND sex <> $sex",
        ask("median", "distance", "age > 30 and sex == 'f'"), params={"age": 30, "sex": "x"},
    ),
    case("SELECT AVG(age) FROM people WHERE age > ? + ?", ask("mean", "age", "age > 40"), params=(15, 25)),
]  # fmt: skip
EXPRESSIONS = [
    case("SELECT dp_mean(distance * 1.6, lo := 1, hi := 1000) FROM people", ask("mean", "km", bounds=(1, 1000))),
    case("SELECT dp_sum(age + 1, lo := 0, hi := 100) FROM people", ask("sum", "next_age", bounds=(0, 100))),
    case(
        "SELECT dp_sum(CASE WHEN distance > 100 THEN 1 ELSE 0 END, lo := 0, hi := 1) FROM people",
        ask("sum", "far", bounds=(0, 1)),
    ),
    case(
        "SELECT dp_max(IF(distance < 50, distance, NULL), lo := 0, hi := 60) FROM people",
        ask("max", "near", bounds=(0, 60)),
    ),
    case("SELECT COUNT(CASE WHEN distance < 50 THEN 1 END) FROM people", ask("count", "near")),
    case("SELECT dp_sum(1, lo := 0, hi := 1) FROM people", ask("sum", "one", bounds=(0, 1))),
    case("SELECT dp_mean(TRY_CAST(TRY_CAST(age AS SMALLINT) AS DOUBLE), lo := 0, hi := 99) FROM people",
         ask("mean", "age", bounds=(0, 99))),
]  # fmt: skip
AGES = [*range(10, 100, 10)]
GROUPS = [
    case("SELECT region, COUNT(*) FROM people GROUP BY region", ask("count"), by="region", keys=REGIONS),
    case("SELECT COUNT(*), region FROM people GROUP BY 2", ask("count"), by="region", keys=REGIONS),
    case("SELECT region AS r, AVG(age) FROM people GROUP BY r", ask("mean", "age"), by="region", keys=REGIONS),
    case("SELECT region, AVG(age) FROM people GROUP BY ALL", ask("mean", "age"), by="region", keys=REGIONS),
    case("SELECT AVG(age) FROM people GROUP BY region", ask("mean", "age"), by="region", keys=REGIONS),
    case("SELECT MEDIAN(age) FROM people GROUP BY region", ask("median", "age"), by="region", keys=["south", None]),
    case("SELECT Region, AVG(AGE) FROM People GROUP BY REGION", ask("mean", "age"), by="region", keys=REGIONS),
    case("SELECT children, SUM(age) FROM people GROUP BY children", ask("sum", "age"), by="children", keys=[5, 3, 9]),
    case("SELECT member, STDDEV(age) FROM people GROUP BY 1", ask("std", "age"), by="member", keys=[False, True]),
    case("SELECT upper(region), MAX(age) FROM people GROUP BY 1", ask("max", "age"), by="upper", keys=["WEST", "EAST"]),
    case("SELECT age // 10 * 10 AS decade, COUNT(*) FROM people GROUP BY decade", ask("count"), by="decade", keys=AGES),
    case("SELECT region || '!', COUNT(*) FROM people GROUP BY region", ask("count"), by="region", keys=REGIONS),
    case("SELECT year(day) AS y, COUNT(*) FROM people GROUP BY y", ask("count"), by="year", keys=[2021, 2022, 1999]),
    case(
        "SELECT region, member, AVG(distance) FROM people WHERE age > 30 GROUP BY region, member",
        ask("mean", "distance", "age > 30"), by=["region", "member"], keys=[("north", True), ("west", False)],
    ),
    case(
        "SELECT member, region, COUNT(*) FROM people GROUP BY ALL",
        ask("count"), by=["member", "region"], keys={"member": [True, False], "region": ["south", "north"]},
    ),
    case(
        "SELECT region, COUNT(*), COUNT(*) FILTER (member), MEDIAN(age), VAR_POP(age) FROM people GROUP BY region",
        ask("count"), ask("count", None, "member"), ask("median", "age"), ask("var", "age", ddof=0),
        by="region", keys=REGIONS,
    ),
    case(
        "SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY region DESC",
        ask("count"), by="region", keys=REGIONS, rows=[1, 2, 0],
    ),
    case(
        "SELECT region, COUNT(*) FROM people GROUP BY region LIMIT 1 OFFSET 1",
        ask("count"), by="region", keys=REGIONS, rows=[1],
    ),
    case(
        "SELECT region FROM people GROUP BY region HAVING COUNT(*) > 1 ORDER BY AVG(age) + COUNT(*) > 0",
        ask("count"), ask("mean", "age"), by="region", keys=REGIONS, rows=[0, 1],
    ),
]  # fmt: skip
NESTED = [
    case("SELECT AVG(km) FROM (SELECT distance * 1.6 AS km FROM people)", ask("mean", "km", bounds=(1, 9)),
         bounds={"km": (1, 9)}),
    case("SELECT AVG(age) FROM (SELECT * FROM (SELECT * FROM people WHERE age > 20) WHERE age < 60) p WHERE p.member",
         ask("mean", "age", "20 < age < 60 and member")),
    case("SELECT AVG(a) FROM (SELECT age, sex FROM people) AS p(a, b) WHERE b = 'f'",
         ask("mean", "age", "sex == 'f'", bounds=(1, 9)), bounds=(1, 9)),
    case("SELECT AVG(age) FROM (SELECT * EXCLUDE (distance) REPLACE (age + 1 AS age) FROM people)",
         ask("mean", "next_age", bounds=(18, 90)), bounds=(18, 90)),
    case("SELECT AVG(age) FROM (FROM people SELECT people.*)", ask("mean", "age")),
    case("SELECT AVG(age) FROM (SELECT age FROM people ORDER BY id)", ask("mean", "age"), bounds=(18, 90)),
    case("WITH p AS (SELECT age, sex FROM people WHERE member) SELECT AVG(age) FROM p WHERE sex = 'f'",
         ask("mean", "age", "member and sex == 'f'"), bounds={"AGE": (18, 90)}),
    case("WITH p(a) AS (SELECT age FROM people), q AS (SELECT a + 1 AS b FROM p) SELECT AVG(b) FROM q",
         ask("mean", "next_age", bounds=(0, 9)), bounds={"b": (0, 9)}),
    case("WITH p AS (WITH q AS (SELECT * FROM people WHERE age > 30) SELECT * FROM q) SELECT COUNT(*) FROM p",
         ask("count", None, "age > 30")),
    case("WITH people AS (SELECT * FROM people WHERE age > 30) SELECT COUNT(*) FROM people",
         ask("count", None, "age > 30")),
    case("WITH p AS MATERIALIZED (SELECT * FROM people) SELECT COUNT(*) FROM p", ask("count")),
    case("FROM people SELECT COUNT(*)", ask("count")),
    case("SELECT d, COUNT(*) FROM (SELECT age // 10 * 10 AS d FROM people) GROUP BY d", ask("count"),
         by="decade", keys=AGES, bounds=None),
    case("SELECT COUNT(*) -- ; GROUP BY region\nFROM people /* ; */ WHERE region <> 'a;b--' ;",
         ask("count", None, "region == region and region != 'a;b--'")),
]  # fmt: skip
CASES = [*STATISTICS, *PRIVATE, *FILTERS, *EXPRESSIONS, *GROUPS, *NESTED]
EPS = 6


@pytest.fixture(scope="module")
def con():
    return connection()


class TestAccepted:
    """What the exact answer is, and what is known about it, is what the accessor says of the same people."""

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize("it", CASES, ids=[each.query for each in CASES])
    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    def test_values_and_facts(self, mechanism, it: Case, con, monkeypatch):
        drawn = without_noise(monkeypatch)  # LIMIT and HAVING look at the values, too
        options = {"eps": EPS, "bounds": BOUNDS, "keys": it.keys, **it.options}
        answer = pdrisk.sql(it.query, con, mechanism=mechanism, curator=True, **options)
        values = list(drawn.answers)
        assert len(values) == len(it.asks)
        explicit = [one.eps for one in it.asks if one.eps is not None]
        share = (EPS - sum(explicit)) / max(1, len(it.asks) - len(explicit))
        for one, found, exact, line in zip(it.asks, risks(answer), values, lines(answer), strict=True):
            expected = by_accessor(one, share, it.by, it.keys, mechanism=mechanism)
            shown = slice(None) if it.rows is None else it.rows
            assert_same_facts(found, {name: column[shown] for name, column in expected.items()})
            assert_same_values(exact, by_hand(one, it.by, it.keys), line.global_sensitivity)


def test_the_people_are_what_the_table_holds(con):
    assert con.execute("SELECT COUNT(*), COUNT(distance), COUNT(region) FROM people").fetchone() == (
        len(PEOPLE), PEOPLE["distance"].count(), PEOPLE["region"].count()
    )  # fmt: skip


@pytest.mark.parametrize(
    "call", ["dp_count(*)", "dp_count()", "dp_count(*, eps := 1)", "dp_count(*, 1)", "dp_count(eps := 1)"]
)
def test_ways_to_count_records(call, monkeypatch):
    without_noise(monkeypatch)
    assert pdrisk.sql(f"SELECT {call} FROM people", connection(), eps=1).iat[0, 0] == 120


def test_options_of_none_are_not_passed(monkeypatch):
    without_noise(monkeypatch)
    assert pdrisk.sql("SELECT COUNT(*) FROM people", connection(), eps=1, schema=None, ledger=None).iat[0, 0] == 120
