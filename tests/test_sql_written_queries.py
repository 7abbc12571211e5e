# ruff: noqa: E501 - queries as they are written
"""Queries that people write, listed before any of them was answered: what becomes of each, and of how many.

Together with those of `test_sql_as_written`: what is answered gives without noise what DuckDB gives.
"""

from __future__ import annotations

import duckdb
import pytest

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
SELECT COUNT(DISTINCT date_trunc('month', seen)), COUNT(DISTINCT region || sex) FROM staff
SELECT QUANTILE_DISC(children, 0.5), QUANTILE_DISC(age, 0.25), QUANTILE_DISC(score, 0.9) FROM staff
""", bounds=BOUNDS),
]  # fmt: skip
ANSWERED = {"dates": DATES, "different": DIFFERENT}

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


@pytest.mark.parametrize("query", CANNOT)
def test_what_cannot_be_private(query, con, monkeypatch):
    assert refusal(monkeypatch, query, con, eps=1)
