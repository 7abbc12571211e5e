"""`pdrisk.statements`: the text that is sent, and text of warehouses that is parsed, and run in translation only."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from sqlglot import exp

import pdrisk
from paths import GOLDEN
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.statements import asked_of
from pdrisk._sql.dataset import duckdb_table as fluent
from pdrisk._tables import postgres_table as sql_of_postgres
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.schema_only import described
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError
from postgres_databases import connected, database, needs_server
from statements_asked import asked_by_methods
from warehouses import on_duckdb, parsed, translated

WAREHOUSES = ["bigquery", "snowflake", "trino"]
NAMES = ["pid", "age", "income", "cost", "region", "works", "day"]
TYPES = {
    "bigquery": ["INT64", "INT64", "FLOAT64", "NUMERIC(9, 2)", "STRING", "BOOL", "DATE"],
    "snowflake": ["NUMBER(18, 0)", "NUMBER(3)", "FLOAT", "NUMBER(9, 2)", "VARCHAR(20)", "BOOLEAN", "DATE"],
    "trino": ["bigint", "tinyint", "double", "decimal(9, 2)", "varchar(20)", "boolean", "date"],
    "duckdb": ["BIGINT", "TINYINT", "DOUBLE", "DECIMAL(9,2)", "VARCHAR", "BOOLEAN", "DATE"],
    "postgres": ["bigint", "smallint", "double precision", "numeric(9,2)", "text", "boolean", "date"],
}
COLUMNS = {dialect: dict(zip(NAMES, types, strict=True)) for dialect, types in TYPES.items()}
BOUNDS = {"age": (0, 100), "income": (0, 8000), "cost": (-5, 5)}
WHERE = "age >= 18 and not (region == 'o\\'w\\\\est') and day >= '2020-03-01' or income * 2 - 1 > age // 7 + age % 3"
BY = {"by": ["region", "works"], "keys": {"region": ["north", "o'west\\", "", "ä\n", None], "works": [True, False]}}

QUESTIONS = {
    "count": ("count()", {"where": WHERE}),
    "values": ("count(income)", {}),
    "mean": ("mean(income)", {}),
    "sum of whole numbers": ("sum(age)", {"step": 1}),
    "var": ("var(income)", {}),
    "mean for curators": ("mean(income)", {"curator": True}),
    "var for curators": ("var(income)", {"curator": True}),
    "median": ("median(income)", {"mechanism": "exponential"}),
    "median by laplace": ("median(income)", {"mechanism": "laplace"}),
    "quantile": ("quantile(0.9) of age", {"where": "works"}),
    "extremes": ({"income": ["min", "max"]}, {"mechanism": "laplace", "curator": True}),
    "different": ("nunique(region)", {}),
    "groups": ({"income": ["mean", "count"], "cost": ["var", "median"]}, BY),
    "groups for curators": ("median(income)", {"by": "age", "keys": [20, 21, None], "curator": True}),
    "groups by days": ("mean(cost)", {"by": "day", "keys": [pd.Timestamp("2020-03-01")]}),
    "observed groups": ("max(income)", {"by": "region", "keys": "observed", "mechanism": "laplace"}),
    "clipped": ("mean(income)", {"clip": "private"}),
    "people": ("mean(income)", {"person": "pid", "per_person": "mean", "by": "region", "keys": ["north"], "groups": 2}),
    "rows of people": ("sum(cost)", {"person": ["pid", "day"], "rows": 2, "curator": True}),
    "numbers of people": ("count()", {"person": "pid", "where": "income > 1000"}),
}


def options_of(question):
    """What is asked, and how."""
    asked, options = QUESTIONS[question]
    counts = isinstance(asked, str) and asked.startswith(("count", "nunique"))
    return asked, {"eps": 1, **({} if counts else {"bounds": BOUNDS}), **options}


def texts(question, dialect, table="survey.people"):
    asked, options = options_of(question)
    return pdrisk.statements(asked, table, COLUMNS[dialect], dialect=dialect, **options)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as made:
        columns = ", ".join(f"{name} {each}" for name, each in COLUMNS["duckdb"].items())
        made.execute(f"CREATE SCHEMA survey; CREATE TABLE survey.people ({columns})")
        source = np.random.default_rng(5)
        regions = ["north", "o'west\\", "", "ä\n", "o'w\\est", None]
        special = [float("nan"), float("inf"), -float("inf"), -0.0, 1e308, -1e308, 5e-324, None]
        for at in range(400):
            income = special[at] if at < len(special) else round(source.normal(3000, 1500), 2)
            day = pd.Timestamp("2020-01-01") + pd.Timedelta(days=int(source.integers(0, 120)))
            row = [
                None if at % 50 == 9 else int(source.integers(0, 90)),
                None if at % 60 == 7 else int(source.integers(0, 110)),
                income,
                round(source.normal(), 2),
                regions[source.integers(len(regions))],
                [True, False, None][source.integers(3)],
                day.date(),
            ]
            made.execute("INSERT INTO survey.people VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        yield made


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
class TestWhatIsSent:
    """The text is the one that is sent, but for the secret of people and numbers found by the one before."""

    @staticmethod
    def plain(sent):
        found = [re.sub("'[0-9a-f]{64}'", f"'{'0' * 64}'", each) for each in sent]
        # Steps that an earlier statement found.
        return [re.sub(r"(?<=\* CAST\(')[^']*(?=' AS DOUBLE PRECISION\)\) AS r0)", "1.0", each) for each in found]

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_to_duckdb(self, con, monkeypatch, question):
        sent = []

        def noted(connection, sql, values):
            sent.append(sql)
            return fetched(connection, sql, values)

        monkeypatch.setattr(fluent, "fetched", noted)
        asked_by_methods(pdrisk.Dataset((con, "survey.people")), *options_of(question))
        found = texts(question, "duckdb", "memory.survey.people")
        assert found == self.plain(sent)[: len(found)]

    @needs_server
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_to_postgres(self, people_of_postgres, monkeypatch, question):
        sent, fetched_there = [], sql_of_postgres.fetched

        def noted(cursor, sql, values):
            sent.append(sql)
            return fetched_there(cursor, sql, values)

        monkeypatch.setattr(sql_of_postgres, "fetched", noted)
        asked_by_methods(pdrisk.Dataset((people_of_postgres, "survey.people")), *options_of(question))
        found = texts(question, "postgres")
        assert found == self.plain(sent)[: len(found)]


@pytest.fixture(scope="module")
def people_of_postgres():
    with database() as url, connected(url) as connection:
        columns = ", ".join(f"{name} {each}" for name, each in COLUMNS["postgres"].items())
        connection.execute(f"CREATE SCHEMA survey; CREATE TABLE survey.people ({columns})")
        yield connection


# What each text may call: a function that is not here has to be looked up in the engine's documents first.
FUNCTIONS = {
    "Abs", "And", "ArrayAgg", "Case", "Cast", "Coalesce", "Concat", "Count", "CountIf", "DenseRank", "Exists", "Floor",
    "Greatest", "If", "Least", "LogicalOr", "Max", "Min", "Or", "RowNumber", "Sum",
}  # fmt: skip
OWN_FUNCTIONS = {
    "bigquery": {
        "Array", "Ceil", "Collate", "IEEE_DIVIDE", "JSONFormat", "MD5", "SafeMultiply", "SafeSubtract", "Sign",
        "UnixDate", "Unnest",
    },
    "snowflake": {"Ceil", "Collate", "DateDiff", "MD5"},
    "trino": {"BITWISE_RIGHT_SHIFT", "DateDiff", "Encode", "Hex", "MD5Digest"},
}  # fmt: skip
NEVER = (
    exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile, exp.ApproxDistinct, exp.Quantile, exp.Median, exp.Avg,
    exp.TableSample, exp.Command, exp.DML, exp.DDL, exp.Rand, exp.Limit, exp.Filter, exp.Parameter, exp.Placeholder,
)  # fmt: skip
WIDE = {"bigquery": "BIGNUMERIC", "snowflake": "DECIMAL(38, 0)", "trino": "DECIMAL(38, 0)"}


def is_of_groups(select):
    """Whether a SELECT has one line for each group, whatever it reads."""
    grouped = {each.alias_or_name for each in (select.args.get("group") or exp.Group()).expressions}
    if select.args.get("distinct"):
        return True
    source = select.args["from_"].this
    if isinstance(source, exp.Subquery) and not (select.args.get("joins") or select.args.get("laterals")):
        inner = source.this
        if isinstance(inner, exp.Select) and is_of_groups(inner):  # more columns of the same lines
            return True

    def is_told(item):
        inner = item.unalias()
        if isinstance(inner, exp.Star):
            return False
        return inner.name in grouped or (inner.find(exp.AggFunc) is not None and not inner.find(exp.Window))

    return all(map(is_told, select.expressions))


def brings_groups_alone(tree):
    """Whether a statement brings a line a group: by itself, or by joining passes that do, to the listed keys."""
    if is_of_groups(tree):
        return True
    passes = {each.alias: each.this for each in tree.find_all(exp.CTE)}
    read = [tree.args["from_"].this, *(each.this for each in tree.args.get("joins", []))]
    return all(each.name == "listed" or is_of_groups(passes[each.name]) for each in read)


@pytest.mark.whole
@pytest.mark.parametrize("dialect", WAREHOUSES)
class TestTextOfWarehouses:
    """What the grammar of an engine says of the text."""

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("question", QUESTIONS)
    def test_the_grammar_knows_it(self, dialect, question):
        for text in texts(question, dialect):
            assert text.startswith("/* pdrisk for ") and "text only, never run" in text.partition("*/")[0]
            tree = parsed(text, dialect)
            assert parsed(tree.sql(dialect), dialect) == tree
            assert brings_groups_alone(tree)
            assert not list(tree.find_all(*NEVER))
            functions = list(tree.find_all(exp.Func))
            called = {each.name if isinstance(each, exp.Anonymous) else type(each).__name__ for each in functions}
            assert called <= FUNCTIONS | OWN_FUNCTIONS[dialect]
            for each in tree.find_all(exp.Sum):  # 64 bits may overflow
                small = {column.name for column in each.find_all(exp.Column)} <= {"z0", "total"}  # halves; wide
                assert small or each.this.to.sql(dialect) == WIDE[dialect]

    def test_it_is_the_text_that_was_read_last(self, dialect):
        """Whoever changes the text reads it in the golden file: nothing else sees what an engine would say of it."""
        found = "".join(
            f"-- {question}\n{text.partition('*/')[2].strip()};\n\n"
            for question in QUESTIONS
            for text in texts(question, dialect)
        )
        golden = GOLDEN / f"statements_{dialect}.sql"
        assert found == golden.read_text(encoding="utf-8")

    def test_names_and_texts_of_any_letters(self, dialect):
        signs = ["'", '"', "`", "\\", "\\'", "''", "\n", "a b", "ä", "--", "/*", "*/", "$x", "{}", ":k", "?", "%s"]
        if dialect == "bigquery" and tuple(map(int, sqlglot.__version__.split(".")[:2])) < (30, 29):
            signs = [each for each in signs if not set(each) & set("'\"`\\\n")]  # it read no escapes in names there
        for sign in signs:
            (text,) = pdrisk.statements(
                "count()", "t", {f"x{sign}": "VARCHAR" if dialect != "bigquery" else "STRING"}, dialect=dialect, eps=1,
                by=f"x{sign}", keys=[f"k{sign}"],
            )  # fmt: skip
            tree = parsed(text, dialect)
            literals = [each.this for each in tree.find_all(exp.Literal) if each.is_string]
            assert f"k{sign}" in literals
            assert f"x{sign}" in [each.this for each in tree.find_all(exp.Identifier) if each.quoted]


def table_of(con, dialect):
    """The rows in DuckDB, by the text of a dialect."""
    if dialect in WAREHOUSES:
        return replace(described(dialect, "survey.people", COLUMNS[dialect]), fetch=on_duckdb(con, dialect))
    own = {"dialect": Dialect()} if dialect == "portable" else {}
    return replace(described("duckdb", "survey.people", COLUMNS["duckdb"]), fetch=partial(fetched, con), **own)


def summaries(con, dialect, question):
    """What the text of a dialect reads."""
    asked, options = options_of(question)
    query, engine = asked_of(table_of(con, dialect), asked, Request(**options))
    return engine.read(query).summaries


def same(found, wanted):
    """Whether two parts of summaries are alike: the integers exactly."""
    if is_dataclass(found):
        return all(same(getattr(found, each.name), getattr(wanted, each.name)) for each in fields(found))
    if isinstance(found, Mapping):
        return found.keys() == wanted.keys() and all(same(found[each], wanted[each]) for each in found)
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        return np.allclose(found, wanted, rtol=1e-12, atol=0, equal_nan=True)
    return np.array_equal(found, wanted)


BY_RANK = ("windows", "cells", "whole_cells")  # of which DuckDB's own engine reads what is around the ranks alone


@pytest.mark.whole
@pytest.mark.sampled(4)
@pytest.mark.parametrize("dialect", WAREHOUSES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_in_translation_duckdb_finds_the_same_integers(con, dialect, question):
    own, portable = (summaries(con, each, question) for each in ("duckdb", "portable"))
    for found, wanted, other in zip(summaries(con, dialect, question), own, portable, strict=True):
        assert found.n.sum() > 0
        for each in fields(found):
            value = getattr(found, each.name)
            assert same(value, getattr(other, each.name)), each.name
            if value is not None and each.name not in BY_RANK:
                assert same(value, getattr(wanted, each.name)), each.name


@pytest.mark.whole
@pytest.mark.parametrize("dialect", WAREHOUSES)
@pytest.mark.parametrize(
    "where",
    [
        "income * 1e300 * 1e300 > 1 or income + 1e308 + 1e308 < 0",
        "income - 1e308 - 1e308 < 0 or -income * 1e300 * 1e300 > 5",
        "income / (age - 20) > 100",
        "age > income or pid * 100000000000 > 4000000000000.5",
        "pid * 1000000 >= 40000000.5 and pid * 1000 - 9 != income",
        "pid // 7 % 1000 == 5 or (age - 50) // 7 == -3 or (age - 50) % 7 == 3",
        "age // -7 in (-2, -4) or age % -7 == -1",
        "region == 'ä\\n' or region < 'b' or works",
        "'2020-03-01' <= day < '2020-03-20' or income != income",
    ],
)
def test_filters_decide_alike(con, dialect, where):
    found, wanted = (
        asked_of(table_of(con, each), "count()", Request(eps=1, where=where)) for each in (dialect, "duckdb")
    )
    counts = [int(engine.read(query).summaries[0].n[0]) for query, engine in (found, wanted)]
    assert 0 < counts[1] < 400
    assert counts[0] == counts[1]


@pytest.mark.whole
@pytest.mark.parametrize("dialect", WAREHOUSES)
def test_halves_are_rounded_to_even(con, dialect):
    values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -0.49999999999999994, 0.49999999999999994, 2.0**51 + 0.5, -1e-300]
    known = described(dialect, "t", {"x": "BIGINT"}).dialect
    on_duckdb(con, dialect)
    sql = ", ".join(known.nearest_whole(known.number(each)) for each in values)
    assert con.execute(translated(f"SELECT {sql}", dialect)).fetchone() == tuple(map(round, values))


@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_what_overflows_in_bigquery_is_infinite(con, operator):
    """There finite numbers that make none are an error, but for functions that give NULL then."""
    known, ends = described("bigquery", "t", {"x": "INT64"}).dialect, [1e308, -1e308, 2.5, 0.0, np.inf, -np.inf]
    on_duckdb(con, "bigquery")
    pairs = [(one, other) for one in ends for other in ends]
    sql = [known.arithmetic(known.number(one), operator, known.number(other)) for one, other in pairs]
    assert all("SAFE_" in each for each in sql)
    with np.errstate(all="ignore"):
        wanted = [{"+": np.add, "-": np.subtract, "*": np.multiply}[operator](*pair) for pair in pairs]
    found = con.execute(translated(f"SELECT {', '.join(sql)}", "bigquery")).fetchone()
    np.testing.assert_array_equal(np.array(found, dtype=float), wanted)
    null = known.arithmetic("CAST(NULL AS FLOAT64)", operator, known.number(1e308))
    assert con.execute(translated(f"SELECT {null}", "bigquery")).fetchone() == (None,)


class TestTranslation:
    """A text that depended on what engines mean otherwise would be noticed."""

    def test_nan(self, con):
        con.execute(translated("SELECT 1", "bigquery"))
        on_duckdb(con, "bigquery")
        rows = "(SELECT CAST('nan' AS FLOAT64) AS x UNION ALL SELECT 1.0) AS t"
        (found,) = con.execute(translated(f"SELECT MIN(x) FROM {rows}", "bigquery")).fetchone()
        assert np.isnan(found)
        (found,) = con.execute(translated(f"SELECT COUNTIF(x > 0.5) FROM {rows}", "bigquery")).fetchone()
        assert found == 1

    def test_casts_that_round(self, con):
        on_duckdb(con, "trino")
        with pytest.raises(duckdb.Error, match="this cast rounds"):
            con.execute(translated("SELECT CAST(x AS BIGINT) FROM (SELECT CAST('0.5' AS DOUBLE) AS x)", "trino"))


class TestRefused:
    """What no text can be right about is refused in words."""

    @staticmethod
    def asked(question="mean(x)", dialect="bigquery", kind="FLOAT64", **options):
        columns = {"x": kind, "f": "FLOAT64", "g": "STRING"}
        return pdrisk.statements(question, "t", columns, dialect=dialect, **{"eps": 1, "bounds": (0, 1)} | options)

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"dialect": "bigquerry"}, ParameterError, "Did you mean 'bigquery'"),
            ({"dialect": None}, ParameterError, "dialect is one of duckdb, postgres, spark, bigquery"),
            ({"kind": "GEOGRAPHY"}, ColumnTypeError, "x"),
            ({"question": "mean(nowhere)"}, UnknownColumnError, "nowhere"),
            ({"question": []}, ParameterError, "asks nothing"),
            ({"bounds": None}, ParameterError, "needs bounds"),
            ({"eps": None}, ParameterError, "eps"),
            ({"ledger": None}, ParameterError, "ledger=, which an answer has"),
            ({"epz": 1}, ParameterError, "epz=, which no statistic has"),
            ({"by": "f", "keys": [0.5]}, ParameterError, "cannot partition rows"),
            ({"person": "f", "rows": 1}, ParameterError, "floats"),
            ({"where": "f % 1.5 > 1"}, ParameterError, "does not divide exactly"),
            ({"by": "g", "keys": "private", "delta": 1e-6}, ParameterError, "the groups that noise has chosen"),
            ({"where": lambda rows: rows.x > 1}, ParameterError, "needs a frame in Python"),
            (
                {"by": "g", "keys": [f"{at:09}" for at in range(60_000)]},
                ParameterError,
                "more than 1,000,000 characters",
            ),
        ],
    )
    def test_with_words(self, options, error, words):
        with pytest.raises(error, match=re.escape(words)):
            self.asked(**options)

    def test_more_rows_than_values_has(self):
        with pytest.raises(ParameterError, match="16,384 keys at most"):
            pdrisk.statements("count()", "t", {"x": "INT"}, dialect="snowflake", eps=1, by="x", keys=range(16_385))

    @pytest.mark.parametrize(
        ("dialect", "kind"),
        [("snowflake", "TIMESTAMP_NTZ(9)"), ("trino", "timestamp(6) with time zone"), ("bigquery", "ARRAY<INT64>")],
    )
    def test_types_whose_values_nobody_compared(self, dialect, kind):
        with pytest.raises((ParameterError, ColumnTypeError), match="'t'"):
            pdrisk.statements("count(t)", "t", {"t": kind}, dialect=dialect, eps=1)

    @pytest.mark.parametrize(
        ("table", "columns"), [("a..b", {"x": "INT64"}), ("t", {}), ("t", {"x": int}), ("t", ["x"])]
    )
    def test_headers(self, table, columns):
        with pytest.raises((ParameterError, ColumnTypeError)):
            pdrisk.statements("count()", table, columns, dialect="bigquery", eps=1)
