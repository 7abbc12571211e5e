# ruff: noqa: E501 - queries as they are written
"""Queries that people write, listed before any of them was answered: what becomes of each, and of how many.

Together with those of `test_sql_as_written`: what is answered gives without noise what DuckDB gives.
"""

from __future__ import annotations

import duckdb
import pytest

import test_sql_as_written as written
from sql_people import refusal
from test_sql_as_written import BOUNDS, REGIONS, STAFF, Case, case, cases, check

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BY_REGION = {"bounds": BOUNDS, "keys": {"region": REGIONS}}
BOTH = {"bounds": BOUNDS, "keys": {"region": REGIONS, "sex": ["f", "m"]}}

DATES = [
    case("SELECT dp_mean(epoch(seen - TIMESTAMP '2020-01-01') / 86400, lo := 0, hi := 500) FROM staff",
         plain="SELECT AVG(epoch(seen - TIMESTAMP '2020-01-01') / 86400) FROM staff"),
    case("SELECT dp_mean(EXTRACT(epoch FROM seen - day) / 60, lo := 0, hi := 1440) FROM staff",
         plain="SELECT AVG(EXTRACT(epoch FROM seen - day) / 60) FROM staff"),
    *cases("""
SELECT date_trunc('month', seen) AS m, COUNT(*) FROM staff WHERE seen >= '2020-01-01' AND seen < '2020-07-01' GROUP BY m ORDER BY m
SELECT date_trunc('month', day) AS m, COUNT(*) FROM staff WHERE day BETWEEN '2020-01-01' AND '2020-12-31' GROUP BY 1
SELECT date_trunc('week', seen) AS w, COUNT(*) FROM staff WHERE seen > TIMESTAMP '2020-03-01' AND seen <= DATE '2020-04-01' GROUP BY w
SELECT date_trunc('quarter', seen) AS q, COUNT(*) FROM staff WHERE year(seen) = 2020 GROUP BY q
SELECT year(seen) AS y, COUNT(*) FROM staff WHERE seen BETWEEN '2020-01-01' AND '2021-01-31' GROUP BY y ORDER BY y
SELECT EXTRACT(year FROM day) AS y, COUNT(*) FROM staff WHERE day >= DATE '2020-01-01' AND day < DATE '2022-01-01' GROUP BY y
SELECT day, COUNT(*) FROM staff WHERE day BETWEEN '2020-03-01' AND '2020-03-10' GROUP BY day
SELECT seen::DATE AS d, COUNT(*) AS n FROM staff WHERE seen >= '2020-03-01' AND seen < '2020-03-08' GROUP BY d
SELECT CAST(seen AS DATE), COUNT(*) FROM staff WHERE CAST(seen AS DATE) BETWEEN DATE '2020-03-01' AND DATE '2020-03-07' GROUP BY 1
SELECT date_trunc('day', seen) AS d, COUNT(*) FROM staff WHERE date_trunc('day', seen) >= '2020-05-01' AND seen < '2020-05-05' GROUP BY d
SELECT strftime(seen, '%Y-%m') AS m, COUNT(*) FROM staff WHERE seen >= '2020-02-01' AND seen < '2020-06-01' GROUP BY m ORDER BY m
SELECT strftime(day, '%Y-%m-%d') AS d, COUNT(*) FROM staff WHERE day >= '2020-02-01' AND day < '2020-02-06' GROUP BY d
SELECT time_bucket(INTERVAL '1 month', seen) AS m, COUNT(*) FROM staff WHERE seen >= '2020-01-01' AND seen < '2020-05-01' GROUP BY m
SELECT year(seen) AS y, month(seen) AS m, COUNT(*) FROM staff WHERE seen >= '2020-01-01' AND seen < '2021-01-01' GROUP BY y, m ORDER BY y, m
SELECT year(seen) * 100 + month(seen) AS ym, COUNT(*) FROM staff WHERE seen >= '2020-01-01' AND seen < '2020-04-01' GROUP BY ym
SELECT year(day)::VARCHAR || '-Q' || quarter(day) AS k, COUNT(*) FROM staff WHERE year(day) = 2020 GROUP BY k
SELECT date_trunc('month', seen) AS m, sex, COUNT(*) FROM staff WHERE seen < '2020-04-01' AND sex IN ('f', 'm') AND seen >= '2020-01-01' GROUP BY m, sex
SELECT last_day(day) AS d, COUNT(*) FROM staff WHERE day >= '2020-01-01' AND day < '2020-03-01' GROUP BY d
SELECT dayname(seen) AS name, COUNT(*) FROM staff WHERE seen >= '2020-01-06' AND seen < '2020-01-20' GROUP BY name
SELECT COUNT(*) FROM staff WHERE seen - TIMESTAMP '2020-01-01' > INTERVAL 5 DAY
SELECT COUNT(*) FROM staff WHERE seen - day < INTERVAL '12 hours' AND seen - day BETWEEN INTERVAL 1 HOUR AND INTERVAL 20 HOUR
SELECT COUNT(*) FROM staff WHERE date_part('day', seen - TIMESTAMP '2020-01-01') > 100 AND EXTRACT(hour FROM seen - day) < 12
SELECT COUNT(*) FROM staff WHERE EXTRACT(epoch FROM seen) > 1600000000
SELECT COUNT(seen - day), COUNT(*) FILTER (WHERE seen - TIMESTAMP '2020-02-02' < INTERVAL 0 DAY) FROM staff
"""),
]  # fmt: skip
DIFFERENT = [
    *cases("""
SELECT DISTINCT region FROM staff ORDER BY region
SELECT DISTINCT region FROM staff WHERE age > 40
SELECT region FROM staff GROUP BY region
SELECT DISTINCT region, COUNT(*) AS n FROM staff GROUP BY region
SELECT DISTINCT COUNT(*) > 3 AS many FROM staff GROUP BY region
SELECT DISTINCT region FROM staff GROUP BY region HAVING COUNT(*) > 3 ORDER BY region DESC LIMIT 2
SELECT DISTINCT upper(region) AS r FROM staff GROUP BY region
""", **BY_REGION),
    *cases("""
SELECT DISTINCT region, sex FROM staff
SELECT region, sex FROM staff GROUP BY ALL ORDER BY sex, region
""", **BOTH),
    *cases("""
SELECT DISTINCT member FROM staff
SELECT DISTINCT month(seen) AS m FROM staff ORDER BY m DESC
SELECT DISTINCT CASE WHEN age > 40 THEN 'old' ELSE 'young' END AS stage FROM staff
SELECT DISTINCT sex FROM staff WHERE sex IN ('f', 'm')
SELECT COUNT(DISTINCT year(seen)), COUNT(DISTINCT (age > 30)) FROM staff
SELECT SUM(DISTINCT children) FROM staff
SELECT SUM(DISTINCT age) AS s, COUNT(DISTINCT age) AS n, SUM(DISTINCT age) / COUNT(DISTINCT age) FROM staff WHERE member
SELECT sex, SUM(DISTINCT children) FROM staff WHERE sex IN ('f', 'm') GROUP BY sex
SELECT AVG(DISTINCT age) FROM staff
SELECT sex, AVG(DISTINCT children) AS a FROM staff WHERE sex IN ('f', 'm') GROUP BY sex HAVING AVG(DISTINCT children) > 0
SELECT COUNT(DISTINCT date_trunc('month', seen)), COUNT(DISTINCT region || sex) FROM staff
SELECT QUANTILE_DISC(children, 0.5), QUANTILE_DISC(age, 0.25), QUANTILE_DISC(score, 0.9) FROM staff
""", bounds=BOUNDS),
]  # fmt: skip
SCALARS = [
    *cases("""
SELECT region, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM staff) AS share FROM staff GROUP BY region
SELECT region, AVG(income) - (SELECT AVG(income) FROM staff) AS above FROM staff GROUP BY region
SELECT region, AVG(income) AS a FROM staff GROUP BY region HAVING AVG(income) > (SELECT AVG(income) FROM staff)
SELECT region, COUNT(*) AS n FROM staff GROUP BY region ORDER BY n - (SELECT COUNT(*) FROM staff WHERE member), region
SELECT n * 1.0 / (SELECT COUNT(*) FROM staff) AS share FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) ORDER BY share
WITH totals AS (SELECT COUNT(*) AS n FROM staff) SELECT region, COUNT(*) * 100.0 / (SELECT n FROM totals) AS pct FROM staff GROUP BY region
SELECT COUNT(*) FROM staff WHERE region = (SELECT region FROM staff GROUP BY region ORDER BY COUNT(*) DESC, region LIMIT 1)
SELECT COUNT(*) FROM staff WHERE region <> (SELECT MIN(region) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) WHERE n > 3)
SELECT region, CASE WHEN AVG(income) > (SELECT AVG(income) FROM staff) THEN 'above' ELSE 'below' END AS side FROM staff GROUP BY region
SELECT region, COUNT(*) FILTER (WHERE age > (SELECT AVG(age) FROM staff)) AS old FROM staff GROUP BY region
""", **BY_REGION),
    *cases("""
SELECT COUNT(*) FROM staff WHERE income > (SELECT AVG(income) FROM staff)
SELECT COUNT(*) * 100.0 / (SELECT COUNT(*) FROM staff) AS percent FROM staff WHERE member
WITH m AS (SELECT AVG(age) AS a FROM staff) SELECT COUNT(*) FROM staff WHERE age > (SELECT a FROM m)
SELECT (SELECT COUNT(*) FROM staff WHERE member) AS members, (SELECT COUNT(*) FROM staff WHERE NOT member) AS others
SELECT (SELECT AVG(income) FROM staff WHERE sex = 'f') / (SELECT AVG(income) FROM staff WHERE sex = 'm') AS gap
SELECT SUM(CASE WHEN age > (SELECT AVG(age) FROM staff) THEN 1 ELSE 0 END) FROM staff
SELECT COUNT(*) FROM staff WHERE income BETWEEN (SELECT AVG(income) - 100 FROM staff) AND (SELECT AVG(income) + 100 FROM staff)
SELECT COUNT(*) FROM staff WHERE age > (SELECT AVG(age) FROM staff WHERE income > (SELECT AVG(income) FROM staff))
SELECT AVG(income - (SELECT AVG(income) FROM staff)) FROM staff
SELECT COUNT(*) FROM staff WHERE (SELECT COUNT(*) FROM staff) > 10
SELECT COUNT(*) FROM (SELECT * FROM staff WHERE age > (SELECT AVG(age) FROM staff)) AS older
SELECT COUNT(*), MAX(age) FROM staff WHERE age < (SELECT MAX(age) FROM staff) - 10
SELECT AVG(income) FROM staff WHERE age > COALESCE((SELECT AVG(age) FROM staff WHERE member), 40)
WITH s AS (SELECT * FROM staff WHERE member) SELECT COUNT(*) FROM s WHERE income > (SELECT AVG(income) FROM s)
SELECT AVG(income) / (SELECT AVG(income) FROM staff) AS relative FROM staff WHERE income > 0.5 * (SELECT AVG(income) FROM staff)
""", bounds=BOUNDS),
]  # fmt: skip
SETS = [
    *cases("""
SELECT region, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region)
SELECT COALESCE(region, 'all') AS region, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region) ORDER BY n, 1
SELECT CASE WHEN GROUPING(region) = 1 THEN 'total' ELSE region END AS r, COUNT(*) FROM staff GROUP BY ROLLUP (region)
SELECT region, AVG(income) AS a, COUNT(*) FROM staff GROUP BY GROUPING SETS ((region), ()) HAVING COUNT(*) > 100 ORDER BY a
SELECT region, member, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region, member)
SELECT region, COUNT(*) * 1.0 / MAX(COUNT(*)) OVER () AS share FROM staff GROUP BY ROLLUP (region)
SELECT s.region, SUM(s.children) FROM staff AS s WHERE s.member GROUP BY CUBE (s.region)
SELECT n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region)) WHERE region IS NULL
WITH t AS (SELECT region, COUNT(*) AS n FROM staff GROUP BY CUBE (region)) SELECT MAX(n) FROM t
""", **BY_REGION),
    *cases("""
SELECT region, sex, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region, sex) ORDER BY region NULLS LAST, sex NULLS LAST
SELECT region, sex, AVG(income), COUNT(*) FROM staff GROUP BY CUBE (region, sex)
SELECT region, sex, COUNT(*) FROM staff GROUP BY GROUPING SETS ((region), (sex), ())
SELECT region, sex, GROUPING(region, sex) AS g, COUNT(*) FROM staff GROUP BY CUBE (region, sex) ORDER BY g, 1, 2
SELECT region, sex, COUNT(*) AS n FROM staff GROUP BY region, ROLLUP (sex)
SELECT upper(region) AS r, sex, COUNT(*) FROM staff GROUP BY GROUPING SETS ((region, sex), (region))
""", **BOTH),
    *cases("""
SELECT month(seen) AS m, COUNT(*) AS n FROM staff GROUP BY ROLLUP (m) ORDER BY m
SELECT member, age > 40 AS older, COUNT(*) FROM staff GROUP BY CUBE (1, 2)
SELECT quarter(seen) AS q, member, COUNT(*) FILTER (WHERE age > 40) AS n FROM staff GROUP BY ROLLUP (q, member) HAVING COUNT(*) > 5
"""),
]  # fmt: skip
UNIONS = [
    *cases("""
SELECT 'f' AS sex, COUNT(*) AS n FROM staff WHERE sex = 'f' UNION ALL SELECT 'm', COUNT(*) FROM staff WHERE sex = 'm'
SELECT 'members' AS who, AVG(income) AS mean FROM staff WHERE member UNION ALL SELECT 'others', AVG(income) FROM staff WHERE NOT member
SELECT 'age' AS what, AVG(age) AS mean, MAX(age) AS most FROM staff UNION ALL SELECT 'income', AVG(income), MAX(income) FROM staff ORDER BY mean
SELECT 1 AS line, COUNT(*) AS n FROM staff UNION ALL SELECT 2, COUNT(*) FROM staff WHERE member UNION ALL SELECT 3, COUNT(*) FROM staff WHERE age > 60 ORDER BY line DESC LIMIT 2
SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM staff WHERE member UNION ALL SELECT COUNT(*) FROM staff WHERE NOT member)
WITH u AS (SELECT 'a' AS k, COUNT(*) AS n FROM staff WHERE age < 40 UNION ALL SELECT 'b', COUNT(*) FROM staff WHERE age >= 40) SELECT k, n * 1.0 / SUM(n) OVER () AS share FROM u
SELECT COUNT(*) AS n FROM staff WHERE member UNION SELECT COUNT(*) FROM staff WHERE member
SELECT AVG(age) AS a FROM staff WHERE sex = 'f' UNION ALL (SELECT AVG(age) FROM staff WHERE sex = 'm' UNION ALL SELECT AVG(age) FROM staff)
SELECT month(seen) AS m, COUNT(*) AS n FROM staff GROUP BY m UNION ALL SELECT quarter(seen), COUNT(*) FROM staff GROUP BY 1
""", bounds=BOUNDS),
    *cases("""
SELECT region, COUNT(*) AS n FROM staff GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM staff
SELECT region AS k, AVG(income) AS a FROM staff GROUP BY region UNION ALL SELECT 'all', AVG(income) FROM staff ORDER BY a DESC
""", **BY_REGION),
]  # fmt: skip
ANSWERED = {"dates": DATES, "different": DIFFERENT, "scalars": SCALARS, "sets": SETS, "unions": UNIONS}

# What is not answered, or as another statistic.
OTHERWISE = {
    "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY children) FROM staff WHERE id < 40": "answered as PERCENTILE_CONT",
    "SELECT sex, QUANTILE_DISC(income, 0.75) FROM staff WHERE sex IN ('f', 'm') AND id < 9 GROUP BY sex": "likewise",
}  # fmt: skip

# No answer with noise could keep these private, and why.
CORRELATED = "a number of each record's own group makes it depend on the others"
CANNOT = {
    "SELECT COUNT(*) FROM staff AS s WHERE income > (SELECT AVG(income) FROM staff AS t WHERE t.region = s.region)": CORRELATED,
    "SELECT region, (SELECT COUNT(*) FROM staff AS t WHERE t.region = s.region) AS n FROM staff AS s GROUP BY region": CORRELATED,
    "SELECT COUNT(*) FROM staff WHERE income = (SELECT income FROM staff ORDER BY income DESC LIMIT 1)": "one person's exact value",
    "SELECT (SELECT region FROM staff WHERE id = 7)": "one person's exact value",
    "SELECT dp_mean(income, lo := 0, hi := (SELECT MAX(income) FROM staff)) FROM staff": "bounds from the data",
    "SELECT dp_mean(income, lo := 0, hi := 9, eps := (SELECT COUNT(*) FROM staff)) FROM staff": "an eps from the data",
    "SELECT region FROM staff UNION ALL SELECT sex FROM staff": "records",
    "SELECT COUNT(*) FROM staff WHERE id IN (SELECT id FROM staff ORDER BY income DESC LIMIT 10)": "who is among the first depends on the others",
    "SELECT region, income FROM staff GROUP BY ROLLUP (region, income)": "exact values as groups",
    "SELECT DISTINCT income FROM staff": "exact values",
    "SELECT DISTINCT region, income FROM staff GROUP BY ALL": "exact values",
    "SELECT COUNT(*) FROM staff GROUP BY region, ROLLUP (sex)": "groups that nobody listed",
    "SELECT date_trunc('month', seen) AS m, COUNT(*) FROM staff GROUP BY m": "groups that nobody listed",
    "SELECT date_trunc('month', seen) AS m, COUNT(*) FROM staff WHERE seen > '2020-01-01' GROUP BY m": "groups that nobody listed",
    "SELECT COUNT(*) FROM staff UNION ALL SELECT income FROM staff": "records",
    "SELECT COUNT(*) FROM staff INTERSECT SELECT COUNT(*) FROM staff WHERE member": "exact numbers that meet by chance only",
    "SELECT LIST(income) FROM staff": "records",
    "SELECT MODE(region) FROM staff": "one person decides",
    "SELECT COUNT(*) FROM staff USING SAMPLE 10": "chance picks records",
    "SELECT * FROM staff LIMIT 5": "records",
}  # fmt: skip


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute(STAFF)
    return con


@pytest.mark.parametrize("it", [each for listed in ANSWERED.values() for each in listed], ids=lambda it: it.query)
def test_answered(it: Case, con, monkeypatch):
    check(it, con, monkeypatch)


def test_most_of_those_that_can_be_private_are_answered():
    """At least 92 in 100 of 200 or more."""
    names = ("BY_TYPE", "BY_COLUMNS", "KEYS", "AGGREGATES", "CASTS", "FUNCTIONS", "NOISY")
    answered = {it.query for name in names for it in getattr(written, name)}
    answered |= {it.query for listed in ANSWERED.values() for it in listed}
    assert not answered & {*OTHERWISE, *CANNOT}
    assert len(answered) + len(OTHERWISE) >= 200
    assert len(answered) >= 0.92 * (len(answered) + len(OTHERWISE))


@pytest.mark.parametrize("query", CANNOT)
def test_what_cannot_be_private(query, con, monkeypatch):
    assert refusal(monkeypatch, query, con, eps=1)
