"""A setting of the connection, a collation or a macro means the same in every clause, or is refused by its name."""

from functools import cache, partial

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.tables.settings import PINNED
from sql_people import refusal, without_noise

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

COLUMNS = """
    name VARCHAR COLLATE NOCASE, plain VARCHAR, n INTEGER, x DOUBLE, day DATE, z TIMESTAMPTZ, id VARCHAR
"""
PEOPLE = """
    ('north', 'north', 7, 0.0, '2020-01-01', '2020-01-01 20:00:00+00', 'a'),
    ('North', 'North', -7, -1.0, '2021-06-01', '2020-12-31 23:30:00+00', 'b'),
    ('SOUTH', 'SOUTH', 2, 2.5, '2019-12-31', '2021-01-01 03:00:00+00', 'c'),
    (NULL, NULL, NULL, NULL, NULL, NULL, 'd')
"""
EACH = "GROUP BY id"
KEYS = ["a", "b", "c", "d"]
# What each clause says of text, of numbers, and of times with a zone.
TEXTS = [
    "{} = 'north'", "'north' = {}", "{} <> 'north'", "{} < 'a'", "{} IN ('north', 'x')", "{} NOT IN ('NORTH', 'x')",
    "{} BETWEEN 'north' AND 'norti'", "{} LIKE 'n%'", "{} ILIKE 'n%'", "contains({}, 'nor')", "starts_with({}, 'nor')",
    "prefix({}, 'nor')", "suffix({}, 'ORTH')", "{} IS NOT DISTINCT FROM 'north'", "lower({}) = 'NORTH'",
    "left({}, 1) = 'n'", "{} || '' = 'north'", "concat({}, '') = 'north'", "CASE WHEN true THEN {} END = 'north'",
    "COALESCE({}, 'NORTH') = 'north'", "NULLIF({}, 'north') IS NULL", "replace({}, 'x', 'y') = 'north'",
    "trim({}) = 'north'", "CASE {} WHEN 'north' THEN true ELSE false END", "{} = plain", "lower({}) = plain",
    "CASE WHEN n > 0 THEN 'A' ELSE 'a' END = 'a'", "TRY_CAST({} AS VARCHAR) = 'north'",
]  # fmt: skip
NUMBERS = [
    "x / 2 > 0.6", "n / 2 = 3.5", "x / x IS NULL", "n / x > 100", "n // 2 = 3", "n % 2 = -1", "n // x = 0",
    "n % x IS NULL", "x // 0 IS NULL", "fmod(n, 0) > 5", "ln(x) IS NULL", "ln(x) < -1000", "sqrt(x) > 1e300",
    "log(x) IS NULL", "exp(n * 1000) > 1", "pow(x, 0.5) > 1e300", "acos(n) > 1e300", "x * 1e308 * 10 > 1",
    "round(x) = 2",
]  # fmt: skip
TIMES = [
    "year(TRY_CAST(z AS TIMESTAMP)) = 2020", "TRY_CAST(z AS DATE) = '2020-01-01'", "TRY_CAST(z AS DATE) > day",
    "hour(TRY_CAST(z AS TIMESTAMP)) < 12",
]  # fmt: skip


def people(**config) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config=config)
    con.execute(f"CREATE TABLE t ({COLUMNS}); INSERT INTO t VALUES {PEOPLE}; CREATE VIEW v AS SELECT * FROM t")
    con.execute(f"CREATE TEMP TABLE own ({COLUMNS}); INSERT INTO own VALUES {PEOPLE}")
    return con


def decided(con, conditions, source: str = "t", **options) -> dict[str, list[float]]:
    """For each condition, whom it holds for."""
    listed = ", ".join(f"COUNT(*) FILTER (WHERE {condition})" for condition in conditions)
    answer = pdrisk.sql(f"SELECT {listed} FROM {source} {EACH}", con, eps=1e3, keys=KEYS, **options)
    return {condition: answer.iloc[:, at].tolist() for at, condition in enumerate(conditions)}


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch):
    without_noise(monkeypatch)


class TestText:
    """Text is compared letter by letter, whatever the collation of the column or of the connection is."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("collation", ["", "nocase", "noaccent", "nocase.noaccent"])
    @pytest.mark.parametrize("source", ["t", "v", "own"])
    def test_each_clause(self, source, collation):
        con = people()
        expected = decided(con, [text.format("plain") for text in TEXTS])
        con.execute(f"SET default_collation = '{collation}'")
        if source == "own" and collation:
            with pytest.raises(pdrisk.ParameterError, match="default_collation"):
                decided(con, ["name = 'north'"], source)
            return
        for column in ("plain", "name"):
            found = decided(con, [text.format(column) for text in TEXTS], source)
            assert list(found.values()) == list(expected.values())
        for condition, people_ in (
            ("name = 'north'", 1), ("lower(name) IN ('north', 'X')", 2),
            ("CASE WHEN name LIKE 'n%' THEN 'A' END = 'a'", 0),
        ):  # fmt: skip
            kept = pdrisk.sql(f"SELECT COUNT(*) FROM {source} WHERE {condition}", con, eps=1)
            inner = pdrisk.sql(f"SELECT COUNT(*) FROM (SELECT * FROM {source} WHERE {condition})", con, eps=1)
            grouped = pdrisk.sql(f"SELECT COUNT(*) FROM {source} GROUP BY {condition}", con, eps=1, keys=[True])
            assert [each.iat[0, 0] for each in (kept, inner, grouped)] == [people_] * 3

    @pytest.mark.parametrize("setting", ["", "SET default_collation = 'nocase'"])
    def test_keys_and_what_is_made_of_them(self, setting):
        con = people()
        con.execute(setting or "SELECT 1")
        query = """SELECT name, CASE WHEN name = 'NORTH' THEN 'folded' ELSE 'not' END AS how, COUNT(*) AS n
            FROM t GROUP BY name HAVING name <> 'SOUTH' ORDER BY name"""
        answer = pdrisk.sql(query, con, eps=1, keys=["north", "North", "SOUTH", "south"])
        assert answer.to_numpy().tolist() == [["North", "not", 1], ["north", "not", 1], ["south", "not", 0]]

    def test_a_table_made_of_a_collated_one(self):
        con = people()
        con.execute("CREATE TABLE made AS SELECT * FROM t")
        assert decided(con, ["name = 'north'"], "made") == {"name = 'north'": [1, 0, 0, 0]}

    def test_missing_codes(self):
        pa = pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema({"name": pa.Column(str, metadata={"pdrisk": {"missing": ["NORTH"]}})})
        con = people()
        assert pdrisk.sql("SELECT COUNT(name) AS n FROM t", con, eps=1, schema=schema)["n"].item() == 3


# Other values than the default; what is not listed is flipped.
OTHERS = {
    "default_collation": "nocase", "default_order": "DESC", "default_null_order": "NULLS_FIRST",
    "Calendar": "buddhist", "TimeZone": "Asia/Tokyo", "file_search_path": "/", "null_order": "NULLS_FIRST",
    "dialect_compatibility_mode": "SPARK", "regex_match_operator_semantics": "full", "max_expression_depth": "20",
    "preserve_identifier_case": "lowercase", "pandas_analyze_sample": "1", "explain_output": "all",
    "disabled_optimizers": "filter_pushdown", "lambda_syntax": "ENABLE_SINGLE_ARROW", "errors_as_json": "true",
    "perfect_ht_threshold": "2", "pivot_filter_threshold": "2", "ordered_aggregate_threshold": "2",
}  # fmt: skip
HONOURED = {"TimeZone", "default_order", "default_null_order", "null_order"}
# What has nothing to do with answers, or cannot be taken back.
APART = {"lock_configuration", "enable_external_access", "enable_profiling", "enable_progress_bar", "access_mode"}
ORDERED = "SELECT plain, COUNT(*) AS k FROM {} GROUP BY plain ORDER BY plain LIMIT 2"


def settings() -> list[tuple[str, str]]:
    known = duckdb.connect().execute("SELECT name, value, input_type FROM duckdb_settings()").fetchall()
    flipped = {name: "false" if value == "true" else "true" for name, value, kind in known if kind == "BOOLEAN"}
    others = flipped | OTHERS
    return sorted({(name, others[name]) for name, *_ in known if name in others and name not in APART})


def outcome(work) -> object:
    try:
        return work()
    except pdrisk.ParameterError as error:
        return str(error)


def rows(answer: pd.DataFrame) -> list[list[object]]:
    return answer.astype(object).where(answer.notna(), None).to_numpy().tolist()


NOISY = "SELECT COUNT(*) / 3 AS a, ln(COUNT(*) - 4) AS b, CASE WHEN 'A' = 'a' THEN 1 END AS c FROM {}"
PANEL = {
    "texts": lambda con, source: decided(con, [text.format("plain") for text in TEXTS], source),
    "numbers": lambda con, source: decided(con, NUMBERS, source),
    "times": lambda con, source: decided(con, TIMES, source),
    "patterns": lambda con, source: decided(con, ["plain ~ 'no'", "regexp_matches(plain, 'r')"], source),
    "order": lambda con, source: rows(
        pdrisk.sql(ORDERED.format(source), con, eps=1, keys=["north", "North", "SOUTH", None])
    ),
    "noisy": lambda con, source: rows(pdrisk.sql(NOISY.format(source), con, eps=1)),
}


def whole(con, source: str) -> object:
    """All of it in few queries."""
    conditions = [*(text.format("plain") for text in TEXTS[::4]), *NUMBERS[::3], TIMES[0], "plain ~ 'no'"]
    return decided(con, conditions, source), PANEL["order"](con, source), PANEL["noisy"](con, source)


@cache
def whole_expected() -> object:
    con = people()
    con.execute("SET TimeZone = 'UTC'")
    return whole(con, "t")


@cache
def expected(asked: str) -> object:
    """What the panel says without any setting."""
    con = people()
    con.execute("SET TimeZone = 'UTC'")
    return PANEL[asked](con, "t")


class TestEverySetting:
    """Under each setting of DuckDB every query is answered as without it, or refused with the setting's name."""

    @pytest.mark.slow
    @pytest.mark.sampled(22)
    @pytest.mark.parametrize(("name", "value"), settings(), ids=[name for name, _ in settings()])
    def test_it_changes_nothing_or_is_refused(self, name, value):
        con = people()
        con.execute("SET TimeZone = 'UTC'")
        try:
            con.execute(f"SET {name} = '{value}'")
        except duckdb.Error:  # of a running database, or for want of an extension
            return
        for source in ("t", "own") if name in OTHERS or name in PINNED else ("t",):
            if outcome(partial(whole, con, source)) == whole_expected():
                continue
            for asked in PANEL:
                found = outcome(partial(PANEL[asked], con, source))
                if isinstance(found, str):
                    assert f"setting {name} is" in found or f"setting default_{name} is" in found
                elif name not in HONOURED or asked in ("texts", "numbers"):
                    assert found == expected(asked), (asked, source)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("scope", ["SESSION", "GLOBAL"])
    def test_of_the_session_and_of_the_database(self, scope):
        for name, value, asked in (
            ("integer_division", "true", "numbers"), ("ieee_floating_point_ops", "false", "numbers"),
            ("Calendar", "buddhist", "times"), ("default_collation", "nocase", "texts"),
        ):  # fmt: skip
            con = people()
            con.execute(f"SET TimeZone = 'UTC'; SET {scope} {name} = '{value}'")
            found = outcome(partial(PANEL[asked], con, "t"))
            assert found == expected(asked) or f"setting {name} is '{value}'" in found
            if name == "default_collation":
                assert found == expected(asked)

    @pytest.mark.slow
    def test_a_locked_configuration(self):
        con = people(default_collation="nocase")
        con.execute("SET lock_configuration = true")
        with pytest.raises(pdrisk.ParameterError, match=r"setting default_collation is 'nocase'.*is locked"):
            PANEL["texts"](con, "t")
        con = people()
        con.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")
        assert PANEL["texts"](con, "t") == expected("texts")

    def test_a_refusal_names_function_and_setting(self, monkeypatch):
        con = people()
        con.execute("SET integer_division = true")
        said = str(refusal(monkeypatch, "SELECT SUM(n) / COUNT(*) FROM t", con, eps=1, bounds=(0, 9)))
        assert said == (
            "the connection's setting integer_division is 'true', which pdrisk.sql cannot honour: / means something "
            "else then. RESET integer_division, or pass another connection."
        )

    def test_what_no_function_asks_for_is_no_reason(self):
        con = people()
        con.execute("SET integer_division = true; SET ieee_floating_point_ops = false")
        assert pdrisk.sql("SELECT dp_sum(n + 1, lo := 0, hi := 9) AS s FROM t", con, eps=1)["s"].item() == 11
        assert pdrisk.sql("SELECT AVG(n) AS s FROM t", con, eps=1, bounds=(0, 9))["s"].item() == 3


class TestFiles:
    """A file is read alike, whatever it is asked through."""

    @pytest.mark.parametrize(("name", "value"), [("binary_as_string", "true"), ("file_search_path", "/")])
    def test_settings_of_files(self, name, value, tmp_path):
        con, path = people(), str(tmp_path / "t.parquet")
        con.execute(f"COPY (SELECT * REPLACE (CAST(name AS BLOB) AS name) FROM t) TO '{path}'")
        assert pdrisk.sql("SELECT COUNT(name) FROM f", con, eps=1, f=path).iat[0, 0] == 3
        con.execute(f"SET {name} = '{value}'")
        with pytest.raises(pdrisk.ParameterError, match=f"setting {name} is"):
            pdrisk.sql("SELECT COUNT(name) FROM f", con, eps=1, f=path)
        assert pdrisk.sql("SELECT COUNT(name) FROM t", con, eps=1).iat[0, 0] == 3


ZONED = ["2020-01-01 20:00", "2020-12-31 23:30", "2021-01-01 03:00", None]


class TestTimeZone:
    """Times with a zone are read by the connection's clock, wherever they are; without a connection, by UTC."""

    QUERY = "SELECT COUNT(*) FROM {} GROUP BY TRY_CAST(z AS DATE)"
    DAYS = tuple(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-12-31", "2021-01-01"]).date)

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("source", ["t", "v", "own", "f", "frame", "arrow"])
    @pytest.mark.parametrize(("zone", "counts"), [
        ("UTC", [1, 0, 1, 1]), ("Asia/Tokyo", [0, 1, 0, 2]), ("America/Los_Angeles", [1, 0, 2, 0]),
    ])  # fmt: skip
    def test_each_source(self, source, zone, counts, tmp_path):
        con, path = people(), str(tmp_path / "t.parquet")
        frame = pd.DataFrame({"z": pd.to_datetime(ZONED, utc=True).tz_convert("Europe/Berlin")})
        con.execute(f"COPY t TO '{path}'; SET TimeZone = '{zone}'")
        tables = {"f": path, "frame": frame}
        if source == "arrow":
            tables["arrow"] = pytest.importorskip("pyarrow").Table.from_pandas(frame)
        tables = {name: table for name, table in tables.items() if name == source}
        answer = pdrisk.sql(self.QUERY.format(source), con, eps=1, keys=self.DAYS, **tables)
        assert answer.iloc[:, 0].tolist() == counts
        query = f"SELECT COUNT(*) FROM {source} WHERE TRY_CAST(z AS DATE) = '2021-01-01'"
        assert pdrisk.sql(query, con, eps=1, **tables).iat[0, 0] == counts[-1]

    def test_without_a_connection(self):
        frame = pd.DataFrame({"z": pd.to_datetime(["2020-12-31 23:30", None]).tz_localize("America/New_York")})
        query = "SELECT COUNT(*) FROM t WHERE year(TRY_CAST(z AS TIMESTAMP)) = 2021"
        assert pdrisk.sql(query, eps=1, t=frame).iat[0, 0] == 1

    def test_far_times_are_missing_and_stop_nothing(self):
        con = duckdb.connect()
        con.execute("CREATE TABLE t (z TIMESTAMPTZ)")
        con.execute("INSERT INTO t VALUES ('infinity'), ('-infinity'), ('290000-01-01 00:00:00+00'), (NULL), "
                    "('0044-03-15 (BC) 12:00:00+00'), ('2020-01-01 00:00:00+00')")  # fmt: skip
        for zone in ("Asia/Tokyo", "America/Los_Angeles"):
            con.execute(f"SET TimeZone = '{zone}'")
            for cast in ("DATE", "TIMESTAMP"):
                pdrisk.sql(f"SELECT COUNT(TRY_CAST(z AS {cast})) FROM t", con, eps=1)


class TestOrder:
    """ORDER BY follows the connection's default_order and default_null_order."""

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize("order", ["ASC", "DESC"])
    @pytest.mark.parametrize(
        "nulls",
        ["NULLS_FIRST", "NULLS_LAST", "NULLS_FIRST_ON_ASC_LAST_ON_DESC", "NULLS_LAST_ON_ASC_FIRST_ON_DESC"],
    )
    @pytest.mark.parametrize("how", ["", "ASC", "DESC", "NULLS FIRST", "DESC NULLS LAST"])
    def test_as_duckdb_orders(self, how, nulls, order):
        con = people()
        con.execute(f"SET default_order = '{order}'; SET default_null_order = '{nulls}'")
        known = [row[0] for row in con.execute(f"SELECT DISTINCT n FROM t ORDER BY n {how}").fetchall()]
        for clause in (f"n {how}", f"1 {how}", "ALL" + f" {how}" * bool(how)):
            query = f"SELECT n, COUNT(*) FROM t GROUP BY n ORDER BY {clause}"
            answer = pdrisk.sql(query, con, eps=1, keys=[2, None, -7, 7])
            assert answer["n"].astype(object).where(answer["n"].notna(), None).tolist() == known


MACROS = sorted({*FUNCTIONS, *AGGREGATES} - {name for name in AGGREGATES if name.startswith("dp_")} - {"count_star"})
CALLS = {
    "n": "{}(n)", "nn": "{}(n, 2)", "ni": "{}(x, 1)", "nn*": "{}(n, 2)", "t": "{}(plain)", "d": "{}(day)",
    "v": "{}(day - day::TIMESTAMP)", "wv": "{}('hour', day - day::TIMESTAMP)",
    "ud": "{}('year', day)", "udd": "{}('day', day, day)", "tt": "{}(plain, 'a')", "tc": "{}(plain, 'a')",
    "tn": "{}(plain, 2)", "tnn": "{}(plain, 1, 2)", "tcc": "{}(plain, 'a', 'b')", "tt*": "{}(plain, 'a')",
    "tci": "{}(plain, 'a', 0)", "tccc": "{}(plain, 'a', 'b', 'g')", "tic": "{}(plain, 3, 'a')", "": "{}() + n",
    "niii": "{}(n, 0, 9, 3)", "dc": "{}(day, '%Y')", "pd": "{}(INTERVAL 1 DAY, day)", "dp": "{}(day, INTERVAL 1 DAY)",
    "nnn": "{}(n, n, n)",
}  # fmt: skip
OF_AGGREGATES = {
    "count_if": "n > 3", "countif": "n > 3", **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_slope"), "n, x"),
    **dict.fromkeys(("quantile_cont", "quantile_disc", "quantile", "approx_quantile"), "n, 0.5"),
}  # fmt: skip


def call(name: str) -> str:
    """A query that calls a function."""
    if name in AGGREGATES:
        return f"SELECT {name}({OF_AGGREGATES.get(name, 'n')}) FROM t"
    written = CALLS[FUNCTIONS[name][-1].arguments].format(f'"{name}"')
    if name in ("+", "-", "*", "/", "//", "%", "||", "^", "**"):
        written = f"plain {name} 'a'" if name == "||" else f"n {name} 2"
    elif "~~" in name:
        written = f"plain {'NOT ' * ('!' in name)}{'I' * name.endswith('*')}LIKE 'a%'"
    return f"SELECT COUNT({written}) FROM t"


@cache
def shared() -> duckdb.DuckDBPyConnection:
    return people()


class TestMacros:
    """A macro that is named like a function of the query is not passed over in silence."""

    @pytest.mark.sampled(17)
    @pytest.mark.parametrize("name", MACROS)
    def test_each_function(self, name, monkeypatch):
        con = shared()
        bounds = {"n": (0, 9), "x": (0, 9)}
        assert len(pdrisk.sql(call(name), con, eps=1, bounds=bounds))
        for made in ("", "TEMP "):
            con.execute(f'CREATE {made}MACRO "{name}"(x) AS 1, (x, y) AS 2, (x, y, z) AS 3')
            said = str(refusal(monkeypatch, call(name), con, eps=1, bounds=bounds))
            assert f"a macro of the connection is named {name}" in said
            con.execute(f'DROP MACRO {"temp.main." * bool(made)}"{name}"')

    def test_others_do_no_harm(self):
        con = people()
        con.execute(
            "CREATE MACRO lower(x) AS 'SENTINEL'; CREATE MACRO count_if(x) AS 1; CREATE MACRO timezone(a, b) AS 1"
        )
        con.execute("CREATE MACRO twice(x) AS 2 * x; CREATE MACRO trunc(x) AS 1; CREATE MACRO dp_mean(x) AS 1")
        query = (
            "SELECT COUNT(*) FILTER (WHERE upper(plain) = 'NORTH') AS n, dp_sum(n // 2, lo := -9, hi := 9) AS s FROM t"
        )
        assert pdrisk.sql(query, con, eps=1).iloc[0].tolist() == [2, 1]
        assert decided(con, TIMES[:1])

    def test_those_that_a_macro_of_duckdb_uses(self):
        con = people()
        condition = "fmod(n, 4) = 1"
        expected = decided(con, [condition])
        con.execute('CREATE MACRO floor(x) AS 42; CREATE MACRO trunc(x) AS 42; CREATE TEMP MACRO "/"(x, y) AS 42')
        assert decided(con, [condition]) == expected == {condition: [0, 1, 0, 0]}

    def test_of_another_case_and_in_a_view(self, monkeypatch):
        con = people()
        con.execute("CREATE VIEW lowered AS SELECT lower(plain) AS low FROM t; CREATE MACRO LOWER(x) AS 'SENTINEL'")
        for query in ("SELECT COUNT(*) FROM t WHERE lower(plain) = 'a'", "SELECT COUNT(*) FROM lowered"):
            assert "is named lower" in str(refusal(monkeypatch, query, con, eps=1)).lower()
        assert (
            "is named lower"
            in str(
                refusal(
                    monkeypatch, "SELECT COUNT(*) FROM f WHERE lower(a) = 'a'", con, eps=1, f=pd.DataFrame({"a": ["a"]})
                )
            ).lower()
        )

    def test_table_macros(self, tmp_path, monkeypatch):
        con, path = people(), str(tmp_path / "t.parquet")
        con.execute(f"COPY t TO '{path}'")
        query = f"SELECT COUNT(*) FROM read_parquet('{path}')"
        assert pdrisk.sql(query, con, eps=1, t=path).iat[0, 0] == 4
        con.execute("CREATE MACRO t() AS TABLE SELECT 1 AS a")  # is only called with parentheses
        assert pdrisk.sql("SELECT COUNT(*) FROM t", con, eps=1).iat[0, 0] == 4
        con.execute("CREATE MACRO read_parquet(p) AS TABLE SELECT 1 AS a")
        assert "is named read_parquet" in str(refusal(monkeypatch, query, con, eps=1, f=path))

    def test_what_is_passed_goes_before_what_the_connection_has(self):
        con = people()
        con.execute("CREATE VIEW f AS SELECT 1 AS a")
        for name in ("t", "v", "f", "own"):
            passed = {name: pd.DataFrame({"a": np.arange(9)})}
            assert pdrisk.sql(f"SELECT COUNT(*) FROM {name}", con, eps=1, **passed).iat[0, 0] == 9

    def test_functions_of_pdrisk_itself(self):
        pytest.importorskip("pyarrow")
        con = people()
        pdrisk.register(con)
        assert pdrisk.sql("SELECT dp_mean(n, lo := -9, hi := 9) FROM t", con, eps=1e6).iat[0, 0] == pytest.approx(
            2 / 3, abs=1e-3
        )
