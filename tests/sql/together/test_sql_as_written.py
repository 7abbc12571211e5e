# ruff: noqa: E501 - queries as they are written
"""The SQL that people already write: what it gives without noise is what DuckDB gives for the same text."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from sql_people import refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

# All months, days of the week and hours occur, and all values lie within their bounds.
STAFF = """
CREATE TABLE staff AS SELECT
    i AS id, CAST(18 + i * 7 % 60 AS INTEGER) AS age, CAST(i * 37 % 1000 AS DOUBLE) + 0.5 AS income,
    CAST(i % 5 AS INTEGER) AS children,
    CASE i % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'west' END AS region,
    CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, i % 4 = 0 AS member,
    CASE WHEN i % 7 = 0 THEN NULL ELSE i % 11 / 2.0 END AS score,
    CASE WHEN i % 10 = 0 THEN 'none' ELSE CAST(i % 100 AS VARCHAR) END AS code,
    CAST(DATE '2020-01-01' + CAST(i * 7 // 24 AS INTEGER) AS DATE) AS day, TIMESTAMP '2020-01-01' + INTERVAL (i * 7) HOUR AS seen
FROM range(1501) AS r(i)
"""
BOUNDS = {"age": (18, 78), "income": (0, 1000), "children": (0, 4), "score": (0, 5), "id": (0, 1500)}
REGIONS = ["north", "south", "west"]
MONTHS = [pd.Timestamp(2020, month, 1) for month in range(1, 13)] + [
    pd.Timestamp(2021, month, 1) for month in (1, 2, 3)
]


@dataclass(frozen=True)
class Case:
    """A query, what it is asked with, and the plain query where it is not the same text."""

    query: str
    options: dict[str, Any] = field(default_factory=dict)
    plain: str | None = None


def case(query: str, *, plain: str | None = None, **options: Any) -> Case:
    return Case(query, options, plain)


def cases(queries: str, **options: Any) -> list[Case]:
    """One query a line."""
    return [Case(line.strip(), options) for line in queries.strip().splitlines()]


BY_TYPE = cases("""
SELECT SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM staff
SELECT SUM(CASE WHEN age > 40 THEN 1 END) FROM staff
SELECT AVG(CASE WHEN member THEN 1 ELSE 0 END) FROM staff
SELECT AVG(CASE WHEN member THEN 1.0 ELSE 0.0 END) AS rate FROM staff
SELECT 100.0 * SUM(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) / COUNT(*) AS percent FROM staff
SELECT AVG(member::INT) FROM staff
SELECT AVG(CAST(member AS INTEGER)) FROM staff
SELECT SUM(CAST(age > 40 AS INT)), AVG((age > 40)::DOUBLE) FROM staff
SELECT SUM(age > 40), AVG((score IS NULL)::INT) FROM staff
SELECT AVG(IF(member, 10, 20)), SUM(IF(region = 'north', 1, 0)) FROM staff
SELECT AVG(LEAST(GREATEST(score, 1), 4)) FROM staff
SELECT SUM(1), SUM(2.5), AVG(3) FROM staff
SELECT AVG(hour(seen)), AVG(month(seen)), MAX(dayofweek(seen)), AVG(day(seen)) FROM staff
SELECT AVG(EXTRACT(hour FROM seen)), AVG(date_part('dow', seen)), AVG(EXTRACT(doy FROM seen)) FROM staff
SELECT AVG(COALESCE(CASE WHEN member THEN 5 END, 7)) FROM staff
SELECT AVG(sign(score - 2)), AVG(CASE WHEN region IN ('north', 'west') THEN -1 ELSE 1 END) FROM staff
SELECT SUM(CASE children WHEN 0 THEN 0 WHEN 1 THEN 1 ELSE 2 END) FROM staff
SELECT VAR_POP(CASE WHEN member THEN 1 ELSE 0 END) FROM staff
SELECT AVG(flag) FROM (SELECT CASE WHEN member THEN 1 ELSE 0 END AS flag FROM staff)
WITH s AS (SELECT *, CASE WHEN age >= 40 THEN 1 ELSE 0 END AS old FROM staff) SELECT AVG(old), SUM(old) FROM s
SELECT AVG(width_of) FROM (SELECT CASE WHEN sex = 'f' THEN month(seen) ELSE 0 END AS width_of FROM staff)
SELECT region, AVG(CASE WHEN member THEN 100 ELSE 0 END) AS percent FROM staff WHERE region IN ('north', 'south') GROUP BY region
SELECT SUM(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) FILTER (WHERE member) FROM staff
SELECT AVG(pi()), AVG(abs(-3)), SUM(round(2.4)) FROM staff
""")
BY_COLUMNS = cases(
    """
SELECT SUM(income * 2), AVG(income / 12), AVG(-income) FROM staff
SELECT AVG(age + 1), AVG(100 - age), SUM(2 * age - 10) FROM staff
SELECT AVG(income - age), AVG(income + age * 2) FROM staff
SELECT AVG(abs(income - 500)), AVG(round(income, -1)), AVG(floor(income / 10)) FROM staff
SELECT AVG(income * children), AVG(age // 10 * 10), AVG(age % 10) FROM staff
SELECT AVG(CASE WHEN member THEN income ELSE 0 END), SUM(CASE WHEN sex = 'f' THEN income END) FROM staff
SELECT AVG(COALESCE(score, 0)), AVG(NULLIF(score, 0)) FROM staff
SELECT AVG(LEAST(income, 500)), AVG(sqrt(income)), AVG(power(children, 2)), AVG(ln(age)) FROM staff
SELECT AVG(monthly) FROM (SELECT income / 12 AS monthly FROM staff)
WITH s AS (SELECT id, income * 12 AS yearly, age FROM staff) SELECT AVG(yearly), AVG(yearly / 12 + age) FROM s
SELECT AVG(income::INT), AVG(age::DOUBLE * 1.5), SUM(CAST(age AS BIGINT)) FROM staff
SELECT MEDIAN(income * 2), MAX(age + 1), MIN(age - 1) FROM staff
SELECT AVG(degrees(children)), AVG(CASE WHEN age > 50 THEN age - 50 ELSE 50 - age END) FROM staff
SELECT SUM(income * 1.19) AS gross FROM staff WHERE member
SELECT region, AVG(income / age) FROM staff WHERE region IN ('north', 'west') GROUP BY region
""",
    bounds=BOUNDS,
)
KEYS = [
    *cases("""
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS stage, COUNT(*) FROM staff GROUP BY stage
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' END AS stage, COUNT(*) FROM staff GROUP BY 1
SELECT CASE WHEN member THEN 1 ELSE 2 END, COUNT(*) FROM staff GROUP BY ALL
SELECT IF(age > 40, 'yes', 'no') AS old, COUNT(*) FROM staff GROUP BY old ORDER BY old
SELECT CASE region WHEN 'north' THEN 'N' WHEN 'south' THEN 'S' ELSE 'other' END AS r, COUNT(*) FROM staff GROUP BY r
SELECT CASE WHEN age > 40 THEN CASE WHEN sex = 'f' THEN 'a' ELSE 'b' END ELSE 'c' END AS x, COUNT(*) FROM staff GROUP BY x
SELECT member, COUNT(*) FROM staff GROUP BY member
SELECT age > 40, member, COUNT(*) FROM staff GROUP BY 1, 2
SELECT score IS NULL AS unknown, COUNT(*) FROM staff GROUP BY unknown
SELECT month(seen) AS month, COUNT(*) FROM staff GROUP BY month ORDER BY month
SELECT MONTH(day) AS m, AVG(CASE WHEN member THEN 1 ELSE 0 END) FROM staff GROUP BY MONTH(day)
SELECT EXTRACT(month FROM day), COUNT(*) FROM staff GROUP BY EXTRACT(month FROM day)
SELECT dayofweek(day) AS dow, COUNT(*) FROM staff GROUP BY dow
SELECT EXTRACT(dow FROM seen) AS dow, COUNT(*) FROM staff GROUP BY 1
SELECT isodow(seen), COUNT(*) FROM staff GROUP BY 1
SELECT hour(seen) AS h, COUNT(*) FROM staff GROUP BY h ORDER BY COUNT(*) DESC, h
SELECT quarter(seen) AS q, COUNT(*) FROM staff GROUP BY q
SELECT date_part('quarter', seen) AS q, member, COUNT(*) FROM staff GROUP BY q, member
SELECT dayname(seen) AS name, COUNT(*) FROM staff GROUP BY name
SELECT monthname(seen) AS name, COUNT(*) FROM staff GROUP BY name
SELECT month(seen)::INT AS m, COUNT(*) FROM staff GROUP BY m
SELECT month(seen)::VARCHAR AS m, COUNT(*) FROM staff GROUP BY m
SELECT region, COUNT(*) FROM staff WHERE region IN ('north', 'south') GROUP BY region
SELECT region, COUNT(*) FROM staff WHERE region = 'north' GROUP BY region
SELECT region, COUNT(*) FROM staff WHERE region = 'north' OR region = 'west' GROUP BY region
SELECT region, COUNT(*) FROM staff WHERE age > 30 AND region IN ('north', 'south') AND region IN ('south', 'west') GROUP BY region
SELECT region, COUNT(*) FROM (SELECT * FROM staff WHERE region IN ('north', 'west')) GROUP BY region
SELECT upper(region) AS r, COUNT(*) FROM staff WHERE upper(region) IN ('NORTH', 'SOUTH') GROUP BY r
SELECT age, COUNT(*) FROM staff WHERE age BETWEEN 30 AND 35 GROUP BY age
SELECT age, COUNT(*) FROM staff WHERE age >= 30 AND age < 33 AND children < 9 GROUP BY age
SELECT children, COUNT(*) FROM staff WHERE children IN (1, 2) GROUP BY children
SELECT year(seen) AS y, COUNT(*) FROM staff WHERE year(seen) IN (2020, 2021) GROUP BY y
SELECT year(seen) AS y, month(seen) AS m, COUNT(*) FROM staff WHERE year(seen) = 2020 GROUP BY y, m
SELECT day, COUNT(*) FROM staff WHERE day IN ('2020-01-01', DATE '2020-01-02') GROUP BY day
SELECT month(seen) AS m, COUNT(*) FROM staff WHERE month(seen) < 4 GROUP BY m
SELECT month(seen) AS m, COUNT(*) FROM staff WHERE month(seen) IN (6, 7) GROUP BY m
SELECT member, COUNT(*) FROM staff WHERE member = true GROUP BY member
SELECT 'all' AS who, COUNT(*) FROM staff GROUP BY who
SELECT 'all' AS who, member, COUNT(*) FROM staff GROUP BY who, member
SELECT COUNT(*) FROM staff GROUP BY 'all'
SELECT width_bucket(age, 18, 78, 3) AS b, COUNT(*) FROM (SELECT * FROM staff WHERE member) GROUP BY b HAVING COUNT(*) > 0
""")[:-1],
    case(
        "SELECT region, month(seen) AS m, COUNT(*) AS n FROM staff GROUP BY region, m ORDER BY 1, 2",
        keys={"region": REGIONS},
    ),
    case("SELECT region, member, COUNT(*) FROM staff GROUP BY ALL", keys={"Region": REGIONS}),
    case(
        "SELECT width_bucket(age, 20, 80, 3) AS b, COUNT(*) FROM staff GROUP BY b",
        plain="SELECT CASE WHEN age < 20 THEN 0 WHEN age < 40 THEN 1 WHEN age < 60 THEN 2 WHEN age < 80 THEN 3 ELSE 4 END, "
        "COUNT(*) FROM staff GROUP BY 1 UNION ALL SELECT 4, 0",
    ),
]  # fmt: skip
AGGREGATES = cases(
    """
SELECT COUNT(DISTINCT region) FROM staff
SELECT COUNT(DISTINCT region), COUNT(DISTINCT age), COUNT(DISTINCT day), COUNT(DISTINCT score), COUNT(DISTINCT member) FROM staff
SELECT region, COUNT(DISTINCT children) FROM staff WHERE region IN ('north', 'south') GROUP BY region
SELECT COUNT(DISTINCT CASE WHEN member THEN region END) FROM staff
SELECT COUNT(DISTINCT age) FILTER (WHERE sex = 'f') AS n FROM staff WHERE member
SELECT COUNT(DISTINCT income * 0) FROM staff
SELECT MIN(DISTINCT age), MAX(DISTINCT age) FROM staff
SELECT COUNT_IF(age > 40), COUNTIF(member) FROM staff
SELECT COUNT_IF(member) FILTER (WHERE age > 40) FROM staff
SELECT region, COUNT_IF(member) * 1.0 / COUNT(*) AS share FROM staff WHERE region IN ('north', 'south') GROUP BY region
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) FROM staff
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income DESC) FROM staff
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY income) FROM staff
SELECT QUANTILE_CONT(income, [0.25, 0.5, 0.75]) FROM staff
SELECT PERCENTILE_CONT([0.25, 0.5]) WITHIN GROUP (ORDER BY income) FROM staff
SELECT QUANTILE_DISC(income, 0.5), QUANTILE(income, 0.5), MEDIAN(income) FROM staff
SELECT region, QUANTILE_CONT(age, [0.5, 0.9]) AS q, COUNT(*) FROM staff WHERE region IN ('north', 'south') GROUP BY region
SELECT MEDIAN(age) FILTER (WHERE member) - MEDIAN(age) AS difference FROM staff
""",
    bounds=BOUNDS,
)
AGGREGATES += [
    case("SELECT APPROX_COUNT_DISTINCT(age) FROM staff", plain="SELECT COUNT(DISTINCT age) FROM staff"),
    case("SELECT APPROX_QUANTILE(income, 0.5) FROM staff", plain="SELECT MEDIAN(income) FROM staff", bounds=BOUNDS),
]
CASTS = [
    *cases(
        """
SELECT AVG(CAST(income AS INTEGER)), AVG(age::TINYINT), SUM(income::DECIMAL(10, 2)) FROM staff
SELECT CAST(AVG(income) AS INTEGER), ROUND(AVG(income))::INT, COUNT(*)::DOUBLE FROM staff
SELECT CAST(AVG(age) AS DECIMAL(10, 2)), ROUND(AVG(age)::NUMERIC, 1) FROM staff
SELECT COUNT(*) FROM staff WHERE day::TIMESTAMP > TIMESTAMP '2020-03-01'
SELECT COUNT(*) FROM staff WHERE CAST(seen AS DATE) = '2020-03-01' OR seen::DATE = DATE '2020-05-01'
SELECT COUNT(*) FROM staff WHERE age::FLOAT8 > 40 AND age::INT8 < 60 AND region::TEXT = 'north' AND member::INT = 1
SELECT region, CAST(COUNT(*) AS VARCHAR) || ' people' AS n FROM staff WHERE region IN ('north', 'south') GROUP BY region
""",
        bounds=BOUNDS,
    ),
    case(
        "SELECT dp_mean(CAST(code AS INTEGER), lo := 0, hi := 99), COUNT(code::INT) FROM staff",
        plain="SELECT AVG(TRY_CAST(code AS INTEGER)), COUNT(TRY_CAST(code AS INT)) FROM staff",
    ),
    case(
        "SELECT COUNT(*) FROM staff WHERE CAST(code AS INT) > 50",
        plain="SELECT COUNT(*) FROM staff WHERE TRY_CAST(code AS INT) > 50",
    ),
    case(
        "SELECT COUNT(code::DATE), COUNT(age::TINYINT), COUNT(income::BOOLEAN) FROM staff",
        plain="SELECT COUNT(TRY_CAST(code AS DATE)), COUNT(age), COUNT(income) FROM staff",
    ),
]
FUNCTIONS = [
    case("SELECT date_trunc('month', seen) AS m, COUNT(*) FROM staff GROUP BY m ORDER BY m", keys=MONTHS),
    case("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM staff GROUP BY 1", keys=MONTHS),
    case("SELECT time_bucket(INTERVAL '1 month', seen) AS m, COUNT(*) FROM staff GROUP BY m", keys=MONTHS),
    case(
        "SELECT strftime(seen, '%Y-%m') AS m, COUNT(*) FROM staff WHERE seen < '2020-03-01' GROUP BY m",
        keys=["2020-01", "2020-02"],
    ),
    case("SELECT year(seen) * 100 + month(seen) AS ym, COUNT(*) FROM staff WHERE year(seen) = 2020 AND month(seen) < 3 GROUP BY ym",
         keys=[202001, 202002]),
    case("SELECT region || '-' || children AS k, COUNT(*) FROM staff WHERE region = 'north' GROUP BY k",
         keys=[f"north-{at}" for at in range(5)]),
    case("SELECT concat(sex, children) AS k, COUNT(*) FROM staff GROUP BY k",
         keys=[f"{sex}{at}" for sex in "fm" for at in range(5)]),
    case("SELECT year(seen)::VARCHAR || '-Q' || quarter(seen) AS k, COUNT(*) FROM staff WHERE year(seen) = 2020 GROUP BY k",
         keys=[f"2020-Q{at}" for at in range(1, 5)]),
    *cases("""
SELECT COUNT(*) FROM staff WHERE seen >= TIMESTAMP '2020-01-01' + INTERVAL 3 MONTH AND day < DATE '2020-12-31' - INTERVAL '10 days'
SELECT COUNT(*) FROM staff WHERE seen + INTERVAL 1 DAY > '2020-05-05' AND seen - INTERVAL '2' HOUR < '2020-08-05'
SELECT COUNT(*) FROM staff WHERE day + 30 > DATE '2020-05-05' AND day - DATE '2020-01-01' > 20
SELECT COUNT(*) FROM staff WHERE date_add(day, INTERVAL 1 WEEK) > '2020-05-05'
SELECT COUNT(*) FROM staff WHERE date_diff('day', day, DATE '2020-06-01') > 3 AND date_sub('month', day, DATE '2021-01-01') >= 2
SELECT COUNT(*) FROM staff WHERE strftime(day, '%Y-%m') = '2020-03' OR dayname(day) = 'Monday' OR monthname(seen) = 'May'
SELECT COUNT(*) FROM staff WHERE split_part(region, 'o', 2) = 'rth' AND strpos(region, 'r') = 3 AND position('th' IN region) > 0
SELECT COUNT(*) FROM staff WHERE regexp_replace(region, 'o', '0') = 'n0rth' AND regexp_replace(region, '[aeiou]', '', 'g') = 'nrth'
SELECT COUNT(*) FROM staff WHERE lpad(sex, 3, '0') = '00f' AND rpad(sex, 2, 'x') = 'fx' AND char_length(region) = 5
SELECT COUNT(*) FROM staff WHERE date_trunc('month', seen) = '2020-03-01' AND date_part('doy', seen) > 65 AND pi() > age / 20.0
SELECT COUNT(*) FROM staff WHERE last_day(day) = '2020-02-29' OR make_date(2020, children + 1, 1) = day OR epoch(seen) > 1600000000
SELECT COUNT(*) FROM staff WHERE substring(region FROM 1 FOR 2) = 'no' AND region SIMILAR TO '(n|s)o.*' AND ifnull(score, 1) = 1
SELECT COUNT(*) FROM staff WHERE seen::DATE BETWEEN '2020-02-01' AND '2020-02-29' AND weekofyear(seen) = 6 AND dayofmonth(seen) < 9
SELECT AVG(log(2, children + 1)), AVG(epoch(seen) * 0 + 1) FROM staff
""", bounds={"children": (0, 4)})[:-1],
    case("SELECT AVG(log(children + 1)) FROM staff", bounds={"children": (0, 4)}),
    case(
        "SELECT COUNT(*) FROM staff WHERE strptime(code, '%d') > '1900-01-15'",
        plain="SELECT COUNT(*) FROM staff WHERE try_strptime(code, '%d') > '1900-01-15'",
    ),
]  # fmt: skip
NOISY = [
    *cases("""
SELECT region, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM staff GROUP BY region
SELECT region, AVG(income) AS a, RANK() OVER (ORDER BY AVG(income) DESC) AS place FROM staff GROUP BY region ORDER BY place
SELECT region, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, region) AS place FROM staff GROUP BY region
SELECT region, DENSE_RANK() OVER (ORDER BY COUNT(*)), PERCENT_RANK() OVER (ORDER BY COUNT(*)) FROM staff GROUP BY region
SELECT region, AVG(income) - AVG(AVG(income)) OVER () AS above FROM staff GROUP BY region
SELECT region, MAX(COUNT(*)) OVER () - COUNT(*) AS behind, MIN(region) OVER () AS first FROM staff GROUP BY region
SELECT region, FIRST_VALUE(region) OVER (ORDER BY COUNT(*) DESC, region) AS top FROM staff GROUP BY region
SELECT region, NTILE(2) OVER (ORDER BY region) AS half, COUNT(*) FROM staff GROUP BY region
SELECT region, COUNT(*) AS n FROM staff GROUP BY region QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, region) <= 2
SELECT region, COUNT(*) FILTER (WHERE member) AS n, SUM(COUNT(*)) FILTER (WHERE region <> 'north') OVER () AS s FROM staff GROUP BY region
WITH t AS (SELECT region, AVG(income) AS a FROM staff GROUP BY region) SELECT * FROM t WHERE a > 3 ORDER BY a LIMIT 5
WITH t AS (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) SELECT region, n * 1.0 / SUM(n) OVER () AS share FROM t
WITH t AS (SELECT region, COUNT(*) AS n FROM staff GROUP BY region), r AS (SELECT *, RANK() OVER (ORDER BY n DESC, region) AS p FROM t) SELECT region FROM r WHERE p <= 2 ORDER BY p
SELECT region FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) ORDER BY n DESC, region LIMIT 1
SELECT AVG(n), MIN(n), MAX(n), SUM(n), COUNT(*), MEDIAN(n) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region)
SELECT n > 500 AS large, COUNT(*) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t GROUP BY large
SELECT t.region, t.a * 12 AS yearly FROM (SELECT region, AVG(income) AS a FROM staff GROUP BY region) AS t WHERE t.a BETWEEN 1 AND 999
SELECT DISTINCT n > 0 AS some FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region)
SELECT * EXCLUDE (n) FROM (SELECT region, COUNT(*) AS n, AVG(age) AS a FROM staff GROUP BY region)
SELECT * REPLACE (n * 2 AS n) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region ORDER BY region DESC LIMIT 2)
SELECT r, upper(r) FROM (SELECT region, COUNT(*) FROM staff GROUP BY region) AS t(r, n) WHERE n > 1
WITH t(r, n) AS (SELECT region, COUNT(*) FROM staff WHERE member GROUP BY region) SELECT r, n FROM t ORDER BY r
WITH s AS (SELECT * FROM staff WHERE age > 30), t AS (SELECT region, COUNT(*) AS n FROM s GROUP BY region) SELECT MAX(n) - MIN(n) FROM t
SELECT CASE WHEN n > 500 THEN 'many' ELSE 'few' END AS size, SUM(n) AS n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY 1) GROUP BY 1
SELECT region, n, n - LAG(n) OVER (ORDER BY region) AS more FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) ORDER BY region
SELECT COUNT(*) FROM (SELECT region FROM staff GROUP BY region HAVING COUNT(*) > 3)
WITH t AS (SELECT region, COUNT(*) * 2 AS a, -AVG(age) AS b FROM staff GROUP BY region), s AS (SELECT b AS p, a AS q, region FROM t ORDER BY a DESC, b LIMIT 2) SELECT q, p, region FROM s ORDER BY p
SELECT SUM(n) AS n FROM (SELECT SUM(n) AS n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) GROUP BY region HAVING SUM(n) > 0)
""", bounds=BOUNDS, keys=REGIONS),
    *cases("""
SELECT region, sex, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY region) AS of_region FROM staff GROUP BY region, sex
SELECT region, sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY region) AS percent FROM staff GROUP BY region, sex ORDER BY 1, 2
SELECT sex, MAX(n) AS most FROM (SELECT region, sex, COUNT(*) AS n FROM staff GROUP BY region, sex) GROUP BY sex ORDER BY sex
SELECT region, SUM(SUM(n)) OVER () AS s, SUM(n) * 2 AS d FROM (SELECT region, sex, COUNT(*) AS n FROM staff GROUP BY region, sex) GROUP BY region
""", keys={"region": REGIONS, "sex": ["f", "m"]}),
    *cases("""
SELECT a - b AS d FROM (SELECT AVG(age) AS a, AVG(income) AS b FROM staff)
""", bounds=BOUNDS),
]  # fmt: skip
NOISY += cases("""
SELECT month(seen) AS m, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY month(seen)) AS before FROM staff GROUP BY m ORDER BY m
SELECT month(seen) AS m, SUM(COUNT(*)) OVER (ORDER BY month(seen)) AS running FROM staff GROUP BY m ORDER BY m
SELECT month(seen) AS m, AVG(COUNT(*)) OVER (ORDER BY month(seen) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS mean FROM staff GROUP BY m
SELECT month(seen) AS m, LEAD(COUNT(*), 1, 0) OVER (ORDER BY month(seen)) - COUNT(*) AS change FROM staff GROUP BY m ORDER BY m
SELECT hour(seen) AS h, COUNT(*) AS n FROM staff GROUP BY h ORDER BY RANK() OVER (ORDER BY COUNT(*) DESC), h LIMIT 3
SELECT m // 4 AS third, SUM(n) AS n FROM (SELECT month(seen) AS m, COUNT(*) AS n FROM staff GROUP BY m) GROUP BY third ORDER BY third
""")
NEEDS_LIST = "needs the public list of its groups"
NEEDS_BOUNDS = "needs the bounds of the expression"
OVER_PEOPLE = "window functions (OVER) give one value per record"
REFUSED = {
    # bounds that nothing says
    "SELECT AVG(length(region)) FROM staff": NEEDS_BOUNDS,
    "SELECT AVG(GREATEST(income, 0)) FROM staff": NEEDS_BOUNDS,
    "SELECT AVG(CASE WHEN member THEN income ELSE 0 END) FROM staff": NEEDS_BOUNDS,
    "SELECT AVG(year(seen)) FROM staff": NEEDS_BOUNDS,
    "SELECT SUM(income / age) FROM staff": NEEDS_BOUNDS,
    "SELECT SUM(exp(900)) FROM staff": NEEDS_BOUNDS,
    "SELECT SUM(CASE WHEN member THEN 1e101 ELSE 0 END) FROM staff": "must lie within 1e100 of zero",
    "SELECT AVG(flag) FROM (SELECT income > 3 OR NULL AS flag, code AS c FROM staff) WHERE c::INT > flag": "compares",
    # keys that nothing says
    "SELECT region, COUNT(*) FROM staff GROUP BY region": NEEDS_LIST,
    "SELECT year(seen), COUNT(*) FROM staff GROUP BY 1": NEEDS_LIST,
    "SELECT CASE WHEN member THEN region ELSE 'x' END, COUNT(*) FROM staff GROUP BY 1": NEEDS_LIST,
    "SELECT region, COUNT(*) FROM staff WHERE region <> 'north' GROUP BY region": NEEDS_LIST,
    "SELECT region, COUNT(*) FROM staff WHERE region = 'north' OR member GROUP BY region": NEEDS_LIST,
    "SELECT region, COUNT(*) FROM staff WHERE NOT region IN ('north') GROUP BY region": NEEDS_LIST,
    "SELECT region, COUNT(*) FROM staff WHERE region IN ('north', sex) GROUP BY region": NEEDS_LIST,
    "SELECT age, COUNT(*) FROM staff WHERE age > 30 GROUP BY age": NEEDS_LIST,
    "SELECT age, COUNT(*) FROM staff WHERE age BETWEEN 0 AND 1000000000 GROUP BY age": NEEDS_LIST,
    "SELECT region, COUNT(*) FILTER (WHERE region IN ('north')) FROM staff GROUP BY region": NEEDS_LIST,
    "SELECT region, COUNT(*) FROM staff WHERE region = 'a' AND region = 'b' GROUP BY region": "leaves none of the public",
    "SELECT upper(region), COUNT(*) FROM staff WHERE region > 'north' GROUP BY upper(region)": NEEDS_LIST,
    "SELECT DISTINCT region FROM staff": NEEDS_LIST,
    "SELECT DISTINCT region, COUNT(*) FROM staff GROUP BY region": NEEDS_LIST,
    # aggregates
    "SELECT SUM(DISTINCT children) FROM staff": "sum(children) needs bounds",
    "SELECT MODE(region) FROM staff": "mode() picks the most frequent value",
    "SELECT HISTOGRAM(age) FROM staff": NEEDS_LIST,
    "SELECT BOOL_AND(member) FROM staff": "are decided by one person alone",
    "SELECT MODE() WITHIN GROUP (ORDER BY age) FROM staff": "mode() picks the most frequent value",
    "SELECT STRING_AGG(region, ',' ORDER BY region) FROM staff": "is no statistic that pdrisk can add noise to",
    # casts and functions
    "SELECT COUNT(*) FROM staff WHERE income::VARCHAR = '1.5'": "a cast of numbers to VARCHAR is refused",
    "SELECT COUNT(*) FROM staff WHERE day || '' = 'x'": "|| takes (text, text)",
    "SELECT COUNT(*) FROM staff WHERE typeof(age) = 'INTEGER'": "typeof tells how a column is stored",
    "SELECT COUNT(*) FROM staff WHERE seen - seen > 5": "such as epoch(x), the seconds",
    # windows and outer SELECTs
    "SELECT id, RANK() OVER (ORDER BY income) FROM staff": OVER_PEOPLE,
    "SELECT AVG(income) OVER (PARTITION BY region) FROM staff": OVER_PEOPLE,
    "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS n FROM staff) WHERE n < 5": OVER_PEOPLE,
    "SELECT COUNT(*), LAG(income) OVER (ORDER BY id) FROM staff": "neither aggregated nor in GROUP BY",
    "SELECT COUNT(*), SUM(income) OVER () FROM staff": "neither aggregated nor in GROUP BY",
    "SELECT COUNT(*), RANK() OVER (ORDER BY id) FROM staff": "neither aggregated nor in GROUP BY",
    "SELECT COUNT(*), SUM(COUNT(*)) OVER (PARTITION BY region) FROM staff": "neither aggregated nor in GROUP BY",
    "SELECT COUNT(*) FROM staff HAVING SUM(COUNT(*)) OVER () > 1": "HAVING is about groups: write QUALIFY for windows",
    "SELECT COUNT(*), random() OVER () FROM staff": "random is not understood over noisy values",
    "SELECT COUNT(*), LIST(COUNT(*)) OVER () FROM staff": "list is not understood over noisy values",
    "SELECT COUNT(*), NTILE(0) OVER () FROM staff": "a whole number of rows that is written out",
    "SELECT COUNT(*), LAG(COUNT(*), COUNT(*)) OVER () FROM staff": "a whole number of rows that is written out",
    "SELECT income FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member)": "unknown column 'income'",
    "SELECT staff.n FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) AS t": "unknown column 'staff.n'",
    "SELECT dp_mean(n, lo := 0, hi := 9) FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member)": (
        "dp_mean takes one column of noisy values and nothing else"
    ),
    "SELECT n FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) GROUP BY member": "column 'n' is neither aggregated nor in",
    "SELECT n FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) HAVING n > 3": "neither aggregated nor in",
    "SELECT DISTINCT SUM(n) FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) GROUP BY n": "is refused",
    "SELECT n FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) QUALIFY n > 3": "QUALIFY is about windows",
    "SELECT SUM(n) FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) WHERE SUM(n) > 1": "write HAVING",
    "SELECT random() FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member)": "differs from record to record",
    "SELECT v0, code FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member)": "unknown column 'v0'",
    "SELECT COUNT(*) FROM (SELECT DISTINCT region FROM staff)": "DISTINCT in a subquery, CTE or view makes its records",
    "SELECT COUNT(*) FROM (SELECT * FROM staff LIMIT 5)": "LIMIT in a subquery, CTE or view makes its records",
    "SELECT n FROM (SELECT member, COUNT(*) AS n FROM staff GROUP BY member) AS t(a, b, c)": "names 3 columns, but there",
    "SELECT n FROM (SELECT COUNT(*) AS n, COUNT(age) AS n FROM staff)": "several columns of FROM are named 'n'",
}


@pytest.fixture(scope="module")
def con():
    con = duckdb.connect()
    con.execute(STAFF)
    return con


def plain(value: Any) -> Any:
    """A cell of either answer."""
    if isinstance(value, np.ndarray | list):
        return tuple(map(plain, value))
    if pd.isna(value):
        return None
    if isinstance(value, datetime.date | np.datetime64):
        return pd.Timestamp(value)
    return value if isinstance(value, str | bool) else bool(value) if isinstance(value, np.bool_) else float(value)


def rows(frame: pd.DataFrame, is_ordered: bool) -> list[tuple[Any, ...]]:
    found = [tuple(map(plain, row)) for row in frame.itertuples(index=False, name=None)]
    return found if is_ordered else sorted(found, key=lambda row: [(cell is None, str(cell)) for cell in row])


def same(one: Any, other: Any) -> bool:
    """Equal but for the lattices."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
    return one == other


def check(it: Case, con: Any, monkeypatch: Any) -> None:
    without_noise(monkeypatch)
    answer = pdrisk.sql(it.query, con, eps=1000, **it.options)
    expected = con.execute(it.plain or it.query).df()
    is_ordered = "ORDER BY" in it.query.rpartition(")")[2] and "LIMIT" not in it.query.partition(")")[0]
    found, wanted = rows(answer, is_ordered), rows(expected, is_ordered)
    assert len(found) == len(wanted)
    assert [pair for pair in zip(found, wanted, strict=True) if not same(*pair)] == []


def texts(listed: list[Case]) -> Any:
    """A few of them by default."""
    return pytest.mark.parametrize("it", listed, ids=[each.query for each in listed])


class TestAnswered:
    """Without noise, DuckDB's own answer."""

    @texts(BY_TYPE)
    def test_bounds_by_type(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(BY_COLUMNS)
    def test_bounds_by_columns(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(KEYS)
    def test_evident_keys(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(AGGREGATES)
    def test_aggregates(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(CASTS)
    def test_casts(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(FUNCTIONS)
    def test_functions(self, it, con, monkeypatch):
        check(it, con, monkeypatch)

    @texts(NOISY)
    def test_over_noisy_values(self, it, con, monkeypatch):
        check(it, con, monkeypatch)


class TestDecimals:
    """Constants that are computed of decimals are the decimals that DuckDB makes of them, to the last digit."""

    DISCOUNTS = (
        "SELECT CAST(i * 0.01 AS DECIMAL(15, 2)) AS d, CAST(i AS DOUBLE) / 100 AS x, CAST(i / 100 AS FLOAT) AS f"
    )

    @staticmethod
    def written(draw: random.Random, depth: int) -> str:
        """An expression of constants."""
        if depth == 0:
            whole, digits = draw.choice(["", "0", "1", "12"]), draw.randint(1, 3)
            decimal = f"{whole}.{draw.randrange(10**digits):0{digits}}"
            return draw.choice([decimal, decimal, decimal, str(draw.randint(1, 20)), f"{draw.randint(1, 9)}e-2"])
        one, other = (TestDecimals.written(draw, depth - 1) for _ in range(2))
        forms = [*[f"({one} {symbol} {other})" for symbol in "+-*+-*/%"], f"(-{one})", f"abs({one})"]
        forms += [f"round({one}, {draw.randint(0, 2)})", f"greatest({one}, {other})", f"trunc({one})"]
        forms += [f"CAST({one} AS DECIMAL(12, {draw.randint(0, 3)}))", f"CAST({one} AS DOUBLE)"]
        return draw.choice(forms)

    @pytest.mark.parametrize("seed", range(40))
    def test_any_constant(self, seed):
        """Of three neighbouring floats, the records that equal the expression are those that DuckDB finds."""
        draw, con = random.Random(seed), duckdb.connect()
        listed = [self.written(draw, draw.randint(1, 3)) for _ in range(10)]
        for expression in listed:
            try:
                value = con.execute(f"SELECT CAST({expression} AS DOUBLE)").fetchone()[0]
            except duckdb.Error:  # a remainder by zero
                continue
            if not math.isfinite(value):
                continue
            near = pd.DataFrame({"x": [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]})
            query = f"SELECT COUNT(*) AS n FROM near WHERE x = {expression}"
            found = pdrisk.sql(query, near=near, eps=1, curator=True)["n_n"].item()
            assert found == con.execute(query).fetchone()[0] == 1, expression

    @pytest.mark.parametrize("column", ["d", "x", "f"])
    @pytest.mark.parametrize(
        "condition",
        [
            "{} BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", "{} BETWEEN .06 - 0.01 AND .06 + 0.01", "{} <= 0.1 + 0.2",
            "{} IN (0.1 + 0.2, 0.1 * 3, 0.7 % 0.4)", "{} = 3 * 0.1", "{} >= 1 - 0.9", "{} < -(0.01 - 0.08)",
            "{} = 0.3 / 3", "{} <= 0.06e0 + 0.01e0", "{} <= CAST(0.065 AS DECIMAL(4, 2)) * 1",
        ],
    )  # fmt: skip
    def test_conditions(self, condition, column):
        query = f"SELECT COUNT(*) AS n FROM t WHERE {condition.format(column)}"
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE t AS {self.DISCOUNTS} FROM range(100) AS r(i)")
            found = pdrisk.sql(query, con, eps=1, curator=True)["n_n"].item()
            assert found == con.execute(query).fetchone()[0]

    def test_a_parameter_is_not_shown(self):
        frame = pd.DataFrame({"x": [0.05, 0.06, 0.07]})
        query = "SELECT COUNT(*) AS n FROM t WHERE x <= $limit + 0.01"
        found = pdrisk.sql(query, t=frame, params={"limit": Decimal("0.06")}, eps=1, curator=True)
        assert found["n_n"].item() == 3
        assert r"\"x\" <= ($limit + 0.01)" in found.attrs["dprisk"]
        assert "0.07" not in found.attrs["dprisk"] and "0.06" not in found.attrs["dprisk"]


class TestParameters:
    """What only the program knows makes neither bounds nor keys, which public texts show."""

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT AVG(CASE WHEN member THEN ? ELSE 0 END) FROM staff",
            "SELECT AVG(CASE WHEN member THEN -? ELSE 0 END) FROM staff",
            "SELECT AVG(CASE WHEN member THEN CAST(? AS DOUBLE) ELSE 0 END) FROM staff",
            "SELECT AVG(LEAST(GREATEST(age, 0), ?)) FROM staff",
            "SELECT CASE WHEN member THEN ? ELSE 0 END AS k, COUNT(*) FROM staff GROUP BY k",
            "SELECT age, COUNT(*) FROM staff WHERE age IN (?, 30) GROUP BY age",
            "SELECT age, COUNT(*) FROM staff WHERE age = ? GROUP BY age",
            "SELECT width_bucket(age, 0, 100, ?) AS b, COUNT(*) FROM staff GROUP BY b",
        ],
    )
    def test_they_are_not_shown(self, query, con, monkeypatch):
        assert " needs the " in str(refusal(monkeypatch, query, con, eps=1, params=[31]))


class TestBounds:
    """What bounds= says of columns holds for what is made of them, within what a schema allows."""

    def answer(self, query: str, con: Any, bounds: Any, monkeypatch: Any) -> float:
        without_noise(monkeypatch)
        return pdrisk.sql(query, con, eps=1000, bounds=bounds).iat[0, 0]

    def test_a_name_of_from_goes_before_one_of_the_table(self, con, monkeypatch):
        inner = "(SELECT age * 10 AS age, age AS years FROM staff)"
        bounds = {"age": (0, 100)}  # of ten times the age: all of them are beyond
        assert self.answer(f"SELECT AVG(age) FROM {inner}", con, bounds, monkeypatch) == pytest.approx(100, abs=1e-3)
        assert self.answer(f"SELECT AVG(age / 10) FROM {inner}", con, bounds, monkeypatch) == pytest.approx(
            10, abs=1e-3
        )
        for query in (f"SELECT AVG(years) FROM {inner}", f"SELECT AVG(years + 1) FROM {inner}"):
            with pytest.raises(pdrisk.ParameterError, match="needs"):
                pdrisk.sql(query, con, eps=1, bounds=bounds)

    def test_one_pair_is_of_columns_alone(self, con, monkeypatch):
        frame = con.execute("SELECT * FROM staff").df()
        frame = frame.dprisk.declare(bounds={"age": (0, 20)})
        with pytest.raises(pdrisk.ParameterError, match="needs the bounds of the expression"):
            pdrisk.sql("SELECT AVG(age + 1) FROM staff", eps=1, bounds=(0, 30), staff=frame)

    def test_values_beyond_are_moved(self, con, monkeypatch):
        found = self.answer(
            "SELECT SUM(CASE WHEN age < 20 THEN age * 2 ELSE 0 END) FROM staff", con, {"age": (0, 5)}, monkeypatch
        )
        young = con.execute("SELECT COUNT(*) FROM staff WHERE age < 20").fetchone()[0]
        assert found == pytest.approx(10 * young, rel=1e-6)

    def test_sums_of_whole_numbers_are_whole(self, con):
        answer = pdrisk.sql(
            "SELECT SUM(CASE WHEN member THEN 1 ELSE 0 END) AS n, SUM(income) FROM staff", con, eps=1, bounds=BOUNDS
        )
        assert answer["n"].item() == int(answer["n"].item())


class TestKeys:
    """Keys that are evident, and what WHERE leaves of those declared."""

    def test_declared_ones_within_where(self, con, monkeypatch):
        frame = con.execute("SELECT * FROM staff").df()
        frame = frame.dprisk.declare(keys={"region": [*REGIONS, "nowhere"]})
        by = "GROUP BY region"
        for where, left in {
            "region IN ('south', 'north', 'x')": ["north", "south"],
            "region >= 'o' AND region < 'w'": ["south"],
            "region <> 'north'": [*REGIONS, "nowhere"],
        }.items():
            answer = pdrisk.sql(f"SELECT region, COUNT(*) FROM staff WHERE {where} {by}", eps=1, staff=frame)
            assert answer["region"].tolist() == left
        answer = pdrisk.sql(
            f"SELECT region, COUNT(*) FROM staff WHERE region = 'west' {by}", eps=1, keys=["north", "west"], staff=frame
        )
        assert answer["region"].tolist() == ["north", "west"]  # as the call lists them

    def test_nobody_there_changes_nothing(self, con):
        query = "SELECT month(seen) AS m, CASE WHEN age > 90 THEN 'a' END AS c, COUNT(*) FROM staff WHERE false GROUP BY ALL"
        answer = pdrisk.sql(query, con, eps=1)
        assert answer["m"].tolist() == [month for month in range(1, 13) for _ in range(2)]
        assert [None if pd.isna(each) else each for each in answer["c"][:2]] == ["a", None]


class TestLayers:
    """SELECTs over noisy values see the same draws as the one below."""

    QUERY = "SELECT region, COUNT(*) AS n FROM staff GROUP BY region"

    def test_each_value_is_drawn_once(self, con, monkeypatch):
        draws = without_noise(monkeypatch)
        query = f"WITH t AS ({self.QUERY}) SELECT a.n, a.n + 1, RANK() OVER (ORDER BY n), SUM(n) OVER () FROM t AS a"
        pdrisk.sql(query, con, eps=1, keys=REGIONS)
        assert len(draws) == 1

    def test_the_order_of_the_one_below_stays(self, con, monkeypatch):
        without_noise(monkeypatch)
        query = f"SELECT region, n + 1 FROM (SELECT * FROM ({self.QUERY} ORDER BY region DESC) WHERE n > 1)"
        assert pdrisk.sql(query, con, eps=1, keys=REGIONS)["region"].tolist() == REGIONS[::-1]

    def test_risk_columns_pass_through(self, con):
        query = f"SELECT upper(region) AS r FROM ({self.QUERY}) ORDER BY n DESC LIMIT 2"
        answer = pdrisk.sql(query, con, eps=1, keys=REGIONS, risk_columns=True)
        assert answer.columns.tolist() == ["r", "n_low", "n_high", "n_eps", "n_worst_case"]
        assert len(answer) == 2
        assert "COUNT" in pdrisk.explain(answer, "publication").upper()

    @pytest.mark.parametrize("options", [{"risk_columns": True}, {"curator": True}, {"measured": True}])
    def test_of_merged_rows_there_are_none(self, options, con, monkeypatch):
        error = refusal(monkeypatch, f"SELECT MAX(n) FROM ({self.QUERY})", con, eps=1, keys=REGIONS, **options)
        assert "a row of this answer is made of several" in str(error)

    def test_a_ledger_pays_once(self, con, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="staff", eps=1)
        frame = con.execute("SELECT * FROM staff").df()
        staff = pdrisk.Dataset({"staff": frame}, ledger=ledger, version="1")
        first = staff.sql(self.QUERY, eps=1, keys=REGIONS)
        again = staff.sql(f"SELECT SUM(n) AS s FROM ({self.QUERY})", eps=1, keys=REGIONS)
        assert again["s"].item() == first["n"].sum()  # of the remembered values: nothing is left to pay with


class TestDifferent:
    """COUNT(DISTINCT x) is ``nunique`` of the accessor."""

    def test_facts(self, con):
        frame = con.execute("SELECT * FROM staff WHERE id < 40").df()
        query = "SELECT region, COUNT(DISTINCT age) AS n FROM t GROUP BY region"
        found = pdrisk.sql(query, eps=1, keys=REGIONS, curator=True, t=frame)
        twin = frame.dprisk.nunique("age", by="region", keys=REGIONS, eps=1, curator=True)
        for name in ("n", "local_sensitivity", "two_worlds", "many_worlds"):
            assert found[f"n_{name}"].tolist() == pytest.approx(twin[name].tolist(), nan_ok=True), name

    def test_values_of_one_record_alone(self):
        for values in ([1, 1, 1, 2], [1, 1, 1, 1], [1, 2, 3, 4]):
            frame = pd.DataFrame({"x": values})
            found = pdrisk.sql("SELECT COUNT(DISTINCT x) AS n FROM t", eps=1, curator=True, t=frame)
            twin = frame.dprisk.nunique("x", eps=1, curator=True).curator
            for name in ("two_worlds", "many_worlds", "identifiability"):
                assert found[f"n_{name}"].item() == pytest.approx(getattr(twin, name)), (values, name)

    def test_equal_values_are_one(self, monkeypatch):
        without_noise(monkeypatch)
        con = duckdb.connect()
        con.execute("CREATE TABLE t (x DOUBLE, s VARCHAR COLLATE NOCASE, d DATE)")
        con.execute("INSERT INTO t VALUES (0, 'a', '2020-01-01'), (-0.0, 'A', 'infinity'), ('nan', NULL, NULL)")
        asked = "SELECT COUNT(DISTINCT x) AS x, COUNT(DISTINCT s) AS s, COUNT(DISTINCT d) AS d FROM t"
        assert pdrisk.sql(asked, con, eps=1).iloc[0].tolist() == [1, 2, 1]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("query", "why"), REFUSED.items(), ids=REFUSED.keys())
def test_refused(query: str, why: str, con, monkeypatch):
    assert why in str(refusal(monkeypatch, query, con, eps=1))
