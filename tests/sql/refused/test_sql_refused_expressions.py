"""An expression that could look at other records, fail at one, or change with time is refused."""

import pytest

import pdrisk
from sql_people import PEOPLE, connection, refusal

ODD = """
CREATE TABLE odd AS SELECT ['SENTINEL'] AS words, {'a': 1} AS pair, uuid() AS number, BLOB 'a' AS bytes,
    TIME '12:00' AS t, INTERVAL 1 DAY AS span, 'SENTINEL'::ENUM('SENTINEL', 'x') AS mood,
    TIMESTAMPTZ '2020-01-01 00:00:00+00' AS z,
    170141183460469231731687303715884105727 AS h, 0.5::DECIMAL(4, 2) AS d, *
FROM people;
CREATE MACRO twice(x) AS x * 2;
CREATE MACRO system_lower(x) AS lower(x);
"""
SUBQUERY = "compute that value with a query of its own, and pass it as a parameter"
NOT_ON_THE_LIST = "is not on the list of functions known to decide each record by itself"
NO_SENSITIVITY = "differs from record to record and from run to run, so no sensitivity is known"
CLOCK = "changes with the clock: pass the day as a parameter, with ? and params=[...]"
CONSTANT = "must be a number written out or a parameter (? or $name)"
TEXT_AND_NUMBERS = "write numbers without quotes and text in quotes, or TRY_CAST(x AS DOUBLE)"
CONDITIONS = {
    # other records
    "age >= ALL (SELECT age FROM odd)": SUBQUERY,
    "age > AVG(age)": "nothing can be aggregated twice",
    "row_number() OVER () = 1": "window functions (OVER) give one value per record",
    "lag(age) OVER (ORDER BY id) > 1": "window functions (OVER) give one value per record",
    "unnest([true])": "UNNEST makes several records of one",
    "age > first(age)": "is no statistic that pdrisk can add noise to",
    # chance and time
    "random() < 0.5": f"random() {NO_SENSITIVITY}",
    "uuid() = number": f"uuid() {NO_SENSITIVITY}",
    "gen_random_uuid() = number": f"gen_random_uuid() {NO_SENSITIVITY}",
    "nextval('s') > 3": f"nextval() {NO_SENSITIVITY}",
    "setseed(0.5) IS NULL": f"setseed() {NO_SENSITIVITY}",
    "day < now()": f"now {CLOCK}",
    "day < today()": f"today {CLOCK}",
    "day < current_date": f"current_date {CLOCK}",
    "day < CURRENT_DATE": f"current_date {CLOCK}",
    "day < current_timestamp": f"current_timestamp {CLOCK}",
    "day < localtimestamp": f"localtimestamp {CLOCK}",
    "t < current_time": f"current_time {CLOCK}",
    "year(age(day)) > 3": f"age {CLOCK}",
    "day < get_current_timestamp()": f"get_current_timestamp {CLOCK}",
    "day < CAST('today' AS DATE)": "the constant in a cast to DATE is not well formed",
    "day < CAST('now' AS TIMESTAMP)": "the constant in a cast to TIMESTAMP is not well formed",
    # failures
    "error('SENTINEL' || region)": "error() would stop at a record and tell who is there: leave it out",
    "CASE WHEN region = 'north' THEN error('x') END": "error() would stop at a record and tell who is there",
    "TRY_CAST(day AS DOUBLE) > 1": "no numbers can be made of dates by a cast: ask for a number made of them, such as",
    "TRY_CAST(z AS BOOLEAN)": "no truth values can be made of timestamps with a time zone by a cast: write TRY_CAST(",
    "CAST(span AS BIGINT) > 5": "no numbers can be made of interval by a cast: ask for a number made of them, such as",
    "CAST('x' AS INTEGER) = age": "the constant in a cast to INTEGER is not well formed",
    "CAST(region AS INTEGER[]) IS NULL": "a cast to",
    "CAST(age AS mood) = 'x'": "is not understood: cast to a number, VARCHAR, DATE, TIMESTAMP or BOOLEAN",
    "regexp_matches(region, '[')": "the pattern of regexp_matches is not well formed",
    "region LIKE 'a%' ESCAPE '$'": "ESCAPE is not understood: write contains(x, '%'), starts_with(x, '_') or",
    "region NOT ILIKE 'a%' ESCAPE 'bb'": "ESCAPE is not understood",
    "replace(region, 'a', 'aa') = 'x'": "replace may not put in more characters than it takes out",
    "replace(region, '', 'a') = 'x'": "replace may not put in more characters than it takes out",
    "replace(region, sex, 'a') = 'x'": "replace takes (text, constant text, constant text)",
    "date_diff('timezone', day, day) = 1": "date_diff takes one of these units: day, hour,",
    "date_part('timezone', day) = 1": "date_part takes one of these units: day, hour,",
    "date_trunc(sex, day) = day": "date_trunc takes (unit, date), but is given (text, dates)",
    "date_trunc('timezone', day) = day": "date_trunc takes one of these units: day, hour,",
    "strftime(day, sex) = 'x'": "strftime takes (date, constant text), but is given (dates, text)",
    f"strftime(day, '{'%Y' * 60}') = 'x'": "the format of strftime is longer than 100 characters",
    "time_bucket(INTERVAL '-1 day', day) = day": "the interval of time_bucket is not well formed",
    "day + INTERVAL (age) DAY > day": "an INTERVAL must be a constant, as in INTERVAL 3 DAY",
    "day + INTERVAL 'SENTINEL' > day": "an interval is not well formed",
    "z - day > 3": "`-` on z (timestamps with a time zone): arithmetic takes numbers",
    "CAST(day AS TIMESTAMP) - day > 3": "compares interval with numbers: ask for a number made of them, such as",
    "region || day = 'x'": "|| takes (text, text), but is given (text, dates)",
    "region || distance = 'x'": "a cast of numbers to VARCHAR is refused",
    "region || h = 'x'": "a cast of numbers to VARCHAR is refused",
    "regexp_replace(region, 'a', 'aa', 'g') = 'x'": "a text that grows could fill the memory",
    "regexp_replace(region, 'a*', 'b', 'g') = 'x'": "a text that grows could fill the memory",
    r"regexp_replace(region, '(.*)', '\1\1') = 'x'": "a text that grows could fill the memory",
    "regexp_replace(region, '[', 'b') = 'x'": "the pattern of regexp_replace is not well formed",
    "lpad(region, 100000000, 'x') = 'x'": "lpad takes a length up to 1000 and a text to fill it with",
    "lpad(region, age, 'x') = 'x'": "lpad takes (text, constant number, constant text)",
    "width_bucket(age, 0, id, 5) = 1": "width_bucket takes a number, two constants",
    "width_bucket(age, 9, 0, 5) = 1": "width_bucket takes a number, two constants",
    "width_bucket(age, 0, 9, 1000000000) = 1": "width_bucket takes a number, two constants",
    "typeof(age) = 'x'": "typeof tells how a column is stored, which is public",
    # kinds
    "region = 1": f"= compares text with numbers: {TEXT_AND_NUMBERS}",
    "age = '1.5'": f"= compares numbers with text: {TEXT_AND_NUMBERS}",
    "age IN (1, 'two')": f"IN compares numbers with text: {TEXT_AND_NUMBERS}",
    "age BETWEEN '1' AND '2.5'": f"BETWEEN compares numbers with text: {TEXT_AND_NUMBERS}",
    "member = 1": "compare truth values with true and false",
    "number = 'a'": "= compares uuid with text: cast one of them with TRY_CAST",
    "t > '12:00'": "> compares time with text: cast one of them with TRY_CAST",
    "bytes = 'a'": "= compares blob with text: cast one of them with TRY_CAST",
    "day > 5": "> compares timestamps with numbers: ask for a number made of them, such as year(x)",
    "span IN (5, 6)": "IN compares interval with numbers: ask for a number made of them, such as epoch(x), the seconds",
    "mood > 3": f"> compares text with numbers: {TEXT_AND_NUMBERS}",
    "day > 'yesterday'": "a text compared with dates is none: write it like '2020-12-31'",
    "CASE WHEN member THEN 1 ELSE 'x' END = 1": f"the branches of CASE are numbers with text: {TEXT_AND_NUMBERS}",
    "COALESCE(age, region) = 1": f"the arguments of COALESCE are numbers with text: {TEXT_AND_NUMBERS}",
    "age": "WHERE needs a condition, but has numbers: compare it with something",
    "region": "WHERE needs a condition, but has text: compare it with something",
    "NOT age": "NOT needs a condition, but has numbers",
    "age AND member": "AND needs a condition, but has numbers",
    "CASE WHEN age THEN true END": "WHEN needs a condition, but has numbers",
    "upper(age) = 'X'": "upper takes (text), but is given (numbers)",
    "region + 1 > 2": "`+` on region (text): arithmetic takes numbers: write TRY_CAST(x AS DOUBLE)",
    "-member = 1": "`-` on member (truth values): arithmetic takes numbers: write TRY_CAST(x AS DOUBLE)",
    "age * day > 1": "`*` on day (dates): arithmetic takes numbers: ask for a number made of them, such as year(x)",
    "number // 2 = 1": "`//` on number (uuid): arithmetic takes numbers: count them, or make a column of numbers",
    "abs(distance, 2) > 1": "abs takes (number), but is given (numbers, numbers)",
    "region LIKE sex": "~~ takes (text, constant text), but is given (text, text)",
    "round(age, children) > 1": "round takes (number) or (number, constant number)",
    # not understood
    "region COLLATE NOCASE = 'North'": "COLLATE is not understood: compare lower(x)",
    "len(list_filter(words, lambda w: w = 'SENTINEL')) > 0": "lambda functions are not understood",
    "words[1] = 'SENTINEL'": "lists and structs are not understood",
    "pair.a = 1": "unknown column 'pair.a'",
    "pair['a'] = 1": "lists and structs are not understood",
    "struct_extract(pair, 'a') = 1": NOT_ON_THE_LIST,
    "list_contains(words, 'SENTINEL')": NOT_ON_THE_LIST,
    "words = ['SENTINEL']": NOT_ON_THE_LIST,
    "#1 = 2": "#1 is not understood: name the column",
    "twice(age) > 3": f"twice() {NOT_ON_THE_LIST}",
    "lowwer(region) = 'x'": "Did you mean lower()?",
    "other.lower(region) = 'x'": "does not understand a qualified function name",
    "system.main.lower(region) = 'x'": "does not understand a qualified function name",
    "getenv('HOME') = 'x'": f"getenv() {NOT_ON_THE_LIST}",
    "current_setting('threads') = '1'": f"current_setting() {NOT_ON_THE_LIST}",
    "hash(region) > 1": f"hash() {NOT_ON_THE_LIST}",
    "repeat(region, 1000000000) = 'x'": f"repeat() {NOT_ON_THE_LIST}",
    "lower(region ORDER BY age) = 'x'": "belong to aggregates, and lower is none",
    "lower(x := region) = 'x'": "lower takes its arguments by position",
    # operators, which are no functions, and functions with other arguments than theirs
    '"not"()': f"not() {NOT_ON_THE_LIST}",
    '"and"()': f"and() {NOT_ON_THE_LIST}",
    '"is null"()': f"is null() {NOT_ON_THE_LIST}",
    '"between"(age)': f"between() {NOT_ON_THE_LIST}",
    '"in"(age, 1)': f"in() {NOT_ON_THE_LIST}",
    '"="(age)': f"=() {NOT_ON_THE_LIST}",
    '"isna"(age)': f"isna() {NOT_ON_THE_LIST}",
    '"unary -"(age) = 1': f"unary -() {NOT_ON_THE_LIST}",
    '"coalesce"(age) = 1': f"coalesce() {NOT_ON_THE_LIST}",
    '"+"(age, 1, 2) > 3': "+ takes (number, number) or (number), but is given (numbers, numbers, numbers)",
    '"+"(DISTINCT age, 1) > 3': "DISTINCT, ORDER BY and FILTER belong to aggregates, and + is none",
    '"-"(age, x := 1) > 3': "- takes its arguments by position",
    # names
    "rowid = 3": "unknown column 'rowid'",
    "regoin = 'north'": "Did you mean 'region'?",
    "people.age > 3": "unknown column 'people.age'",
    "odd.odd.age > 3": "unknown column 'odd.odd.age'",
    "filename = 'x'": "unknown column 'filename'",
}
ARGUMENTS = {
    "AVG(region)": "avg needs numbers, but its argument holds text: write TRY_CAST(x AS DOUBLE), or count them",
    "AVG(mood)": "avg needs numbers, but its argument holds text",
    "SUM(day)": "sum needs numbers, but its argument holds dates: ask for a number made of them, such as year(x)",
    "MAX(z)": "max needs numbers, but its argument holds timestamps with a time zone: write TRY_CAST(x AS TIMESTAMP)",
    "MIN(words)": "min needs numbers, but its argument holds lists: count them, or make a column of numbers",
    "MEDIAN(pair)": "median needs numbers, but its argument holds struct: count them, or make a column of numbers",
    "MAX(span)": "max needs numbers, but its argument holds interval: ask for a number made of them, such as epoch(x)",
    "MAX(t)": "max needs numbers, but its argument holds time: count them, or make a column of numbers",
    "MIN(number)": "min needs numbers, but its argument holds uuid",
    "AVG(NULL)": "avg needs numbers, but its argument holds nothing",
    "AVG()": "avg needs a column, as in avg(distance)",
    "AVG(*)": "avg needs a column, as in avg(distance)",
    "dp_mean()": "dp_mean needs a column, as in dp_mean(distance)",
    "dp_mean(eps := 1)": "dp_mean needs a column",
    "dp_mean(x := age)": "dp_mean has no option x",
    "AVG(distance + 1)": "avg((distance + 1)) needs the bounds of the expression: write dp_mean((distance + 1), lo :",
    "AVG(distance)": "avg(distance) needs bounds, the range its values can have: pass bounds={'distance': (lo, hi)}",
    "dp_mean(age, lo := 0)": "dp_mean needs both ends of the bounds: lo := 1, hi := 675",
    "dp_mean(age, 1, 0)": "dp_mean needs both ends of the bounds",
    "dp_mean(age, lo := 9, hi := 0)": "bounds",
    "dp_mean(age, lo := 0, hi := 0)": "bounds",
    "dp_mean(age, lo := NULL, hi := 5)": "lo of bounds must be a number, but is missing",
    "dp_mean(age, lo := true, hi := 5)": "must be a number",
    "dp_mean(age, lo := '1', hi := '5')": "lo of dp_mean must be a number, not a text or date",
    "dp_mean(age, lo := id, hi := 5)": f"lo of dp_mean {CONSTANT}",
    "dp_mean(age, lo := 0, hi := MAX(age))": f"hi of dp_mean {CONSTANT}",
    "dp_mean(age, lo := 0, hi := (SELECT COUNT(*) FROM odd))": "takes no value of a subquery",
    "dp_mean(age, eps := COUNT(*), lo := 0, hi := 9)": f"eps of dp_mean {CONSTANT}",
    "dp_mean(age, eps := 1 + 1, lo := 0, hi := 9)": f"eps of dp_mean {CONSTANT}",
    "dp_mean(age, eps := NULL, lo := 0, hi := 9)": "eps is NULL: write a number above 0",
    "dp_mean(age, eps := 0, lo := 0, hi := 9)": "eps must be finite and above 0, but is 0",
    "dp_mean(age, eps := -1, lo := 0, hi := 9)": "eps must be finite and above 0, but is -1",
    "dp_mean(age, eps := 1e400, lo := 0, hi := 9)": "too large for a float",
    "dp_mean(age, eps := 1, eps := 2, lo := 0, hi := 9)": "is given eps twice",
    "dp_mean(age, 1, 0, 9, 7)": "dp_mean takes after the column: eps, lo, hi",
    "dp_mean(age, 1, eps := 2)": "dp_mean is given eps twice",
    "dp_mean(age, delta := 2)": "dp_mean has no option delta",
    "dp_mean(age, ddof := 1)": "dp_mean has no option ddof",
    "AVG(age, eps := 1)": "avg has no option eps. Write dp_mean for eps, lo and hi",
    "AVG(age, 1)": "avg takes one column and nothing else",
    "QUANTILE_CONT(id)": "quantile_cont needs the quantile after the column, as in quantile_cont(distance, 0.9)",
    "dp_quantile(id, eps := 1)": "dp_quantile needs the quantile after the column",
    "QUANTILE_CONT(id, 1.5)": "q must be between 0 and 1, but is 1.5: the 90th percentile is q=0.9",
    "QUANTILE_CONT(id, -0.5)": "q must be between 0 and 1, but is -0.5",
    "QUANTILE_CONT(id, age)": f"q of quantile_cont {CONSTANT}",
    "dp_var(id, ddof := 2)": "ddof must be 0 (population) or 1 (sample), but is 2",
    "dp_std(id, ddof := 0.5)": "ddof must be 0 (population) or 1 (sample)",
    "dp_avg(DISTINCT age, 1, 0, 9)": "Leave DISTINCT out, or ask for COUNT(DISTINCT ...)",
    "MEDIAN(DISTINCT age)": "what one person changes depends on whether others have the same value",
    "COUNT(DISTINCT z)": "the argument of count(DISTINCT z) holds times with a zone: write TRY_CAST(",
    "COUNT(DISTINCT words)": "the argument of count(DISTINCT words) holds lists",
    "QUANTILE_CONT(id, [0.5, age])": f"q of quantile_cont {CONSTANT}",
    "QUANTILE_CONT(id, [0.5, 1.5])": "q must be between 0 and 1, but is 1.5",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY region)": "quantile_cont needs numbers, but its argument holds text",
    "COUNT_IF(age)": "WHERE needs a condition, but has numbers",
    "AVG(random())": f"random() {NO_SENSITIVITY}",
    "dp_mean(random(), 1, 0, 1)": f"random() {NO_SENSITIVITY}",
    "dp_mean((SELECT COUNT(*) FROM odd), 1, 0, 1)": "takes no value of a subquery",
    "dp_mean(AVG(age), 1, 0, 1)": "nothing can be aggregated twice",
    "dp_mode(age)": NOT_ON_THE_LIST,
    "dp_count(*) FILTER (WHERE random() < 1)": f"random() {NO_SENSITIVITY}",
    "COUNT(*) FILTER (WHERE age)": "WHERE needs a condition, but has numbers",
    "COUNT(words[1])": "lists and structs are not understood",
}


@pytest.fixture(scope="module")
def con():
    con = connection()
    con.execute(ODD)
    return con


class TestConditions:
    """Wherever an expression stands, each record decides for itself, and none fails."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("text", "why"), CONDITIONS.items(), ids=CONDITIONS.keys())
    def test_in_where_filter_and_below(self, text, why, con, monkeypatch):
        for query in (
            f"SELECT COUNT(*) FROM odd WHERE {text}",
            f"SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM odd) AS odd WHERE {text})",
            f"SELECT COUNT(*) FILTER (WHERE {text}) FROM odd",
        ):
            assert why in str(refusal(monkeypatch, query, con, eps=1))

    @pytest.mark.parametrize(
        "text",
        [
            "age IN (SELECT age FROM odd)",
            "EXISTS (SELECT 1 FROM people p WHERE p.id = odd.id)",
            "age = ANY (SELECT age FROM odd)",
        ],
    )
    def test_other_records(self, text, con, monkeypatch):
        joined = "joins are refused, since a record may match any number of others"
        for query, why in {
            f"SELECT COUNT(*) FROM odd WHERE {text}": joined,
            f"SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM odd) AS odd WHERE {text})": joined,
            f"SELECT COUNT(*) FROM odd WHERE {text} OR member": SUBQUERY,
            f"SELECT COUNT(*) FILTER (WHERE {text}) FROM odd": SUBQUERY,
        }.items():
            assert why in str(refusal(monkeypatch, query, con, eps=1))

    def test_if_with_one_argument(self, con, monkeypatch):
        said = str(refusal(monkeypatch, "SELECT COUNT(*) FROM odd WHERE if(member)", con, eps=1))
        assert "if takes a condition and two values" in said or "Wrong number of arguments to IF" in said  # DuckDB 1

    @pytest.mark.parametrize("text", ["random()", "now()", "error('x')", "(SELECT age FROM odd)", "twice(age)"])
    def test_anywhere_else(self, text, con, monkeypatch):
        whys = [
            str(refusal(monkeypatch, query, con, eps=1, keys=[1]))
            for query in (
                f"SELECT COUNT({text}) FROM odd",
                f"SELECT COUNT(*), {text} FROM odd",
                f"SELECT COUNT(*) + {text} FROM odd",
                f"SELECT COUNT(*) FROM odd GROUP BY {text}",
                f"SELECT COUNT(*) FROM odd HAVING COUNT(*) > {text}",
                f"SELECT COUNT(*) FROM odd ORDER BY {text}",
                f"SELECT dp_sum(CASE WHEN member THEN 1 ELSE {text} END, lo := 0, hi := 1) FROM odd",
            )
        ]
        assert len(set(whys)) == 1

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT COUNT(lag(age) OVER ()) FROM odd",
            "SELECT COUNT(*) FROM odd GROUP BY lag(age) OVER ()",
            "SELECT SUM(row_number() OVER (ORDER BY COUNT(*))) FROM odd",
            "SELECT lag(age) OVER () FROM odd",
            "SELECT COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY sex) AS n FROM odd) WHERE n = 1",
        ],
    )
    def test_windows_over_people(self, query, con, monkeypatch):
        assert "window functions (OVER) give one value per record" in str(refusal(monkeypatch, query, con, eps=1))


class TestArguments:
    """Aggregates take numbers, and options that are constants."""

    @pytest.mark.parametrize(("text", "why"), ARGUMENTS.items(), ids=ARGUMENTS.keys())
    def test_refused(self, text, why, con, monkeypatch):
        bounds = {name: (0, 9) for name in PEOPLE if name not in ("distance", "region", "day")}
        assert why in str(refusal(monkeypatch, f"SELECT {text} FROM odd", con, eps=5, bounds=bounds))

    def test_an_error_is_one_of_pdrisk(self, con, monkeypatch):
        assert isinstance(refusal(monkeypatch, "SELECT AVG(region) FROM odd", con, eps=1), pdrisk.ColumnTypeError)
        assert isinstance(refusal(monkeypatch, "SELECT AVG(agee) FROM odd", con, eps=1), pdrisk.UnknownColumnError)


@pytest.mark.slow
def test_too_deep_and_too_long(con, monkeypatch):
    deep = "odd"
    for _ in range(60):
        deep = f"(SELECT * FROM {deep})"
    assert "put them together" in str(refusal(monkeypatch, f"SELECT COUNT(*) FROM {deep}", con, eps=1))
    doubling = "odd"
    for _ in range(30):
        doubling = f"(SELECT age + age AS age FROM {doubling})"
    assert "grows beyond 100,000 characters" in str(
        refusal(monkeypatch, f"SELECT COUNT(age) FROM {doubling}", con, eps=1)
    )
    con.execute("CREATE OR REPLACE TEMP VIEW itself AS SELECT 1 AS a FROM people")
    con.execute("CREATE OR REPLACE TEMP VIEW itself AS SELECT a FROM itself")
    assert "put them together" in str(refusal(monkeypatch, "SELECT COUNT(*) FROM itself", con, eps=1))
