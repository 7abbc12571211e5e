"""Plans of relations are what they say: random statements, on each engine, give the rows of their definition."""

import datetime
from collections import Counter
from contextlib import ExitStack
from functools import cache
from typing import ClassVar

import duckdb
import pytest
from hypothesis import assume, given

from pdrisk._model.expressions.nodes import Column
from pdrisk._relations.canonical import canonical
from pdrisk._relations.pruned import pruned
from pdrisk._sql.relations.from_clause import relation_of
from pdrisk._sql.relations.written_out import written_out
from pdrisk._sql.select.judge import layers_of
from pdrisk._sql.select.select_people import PeopleAsked
from pdrisk._sql.syntax.languages import POSTGRES
from pdrisk._sql.tables.server_sources import SourcesElsewhere, of_connection
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.scalars import Scalars
from pdrisk.engines.sql.compiler.relation import written
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers import postgres_engine as postgres
from pdrisk.engines.sql.servers.duckdb_functions import DuckDBForSQL
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable
from plan_oracle import IDS, ROWS, databases, known, people_of, types_of, without
from plan_statements import neighbours, statements
from postgres_databases import connected, database, needs_server

PEOPLE = PeopleAsked(person={"visits": "pid", "drugs": "pid"}, rows={"visits": ROWS, "drugs": ROWS})
PUBLIC = frozenset({"codes"})
EPOCH = datetime.date(1970, 1, 1)


class Engine:
    """Tables of all databases, each in a schema of its own, and what reads them."""

    def __init__(self, run, id_type):
        self.id_type, self.run = id_type, run
        self.databases = [(each, [(person, without(each, person)) for person in people_of(each)])
                          for each in databases(id_type)]  # fmt: skip
        for at, (whole, smaller) in enumerate(self.databases):
            for number, one in enumerate([whole, *(rest for _, rest in smaller)]):
                self.fill(f"d{at}_{number}", one)

    def fill(self, schema, tables):
        self.run(f"CREATE SCHEMA {schema}")
        for name, rows in tables.items():
            types = types_of(name, self.id_type)
            columns = ", ".join(f"{each} {self.stored_type(each, of)}" for each, of in types.items())
            self.run(f"CREATE TABLE {schema}.{name} ({columns})")
            if rows:
                lines = ", ".join(f"({', '.join(map(literal, row.values(), types.values()))})" for row in rows)
                self.run(f"INSERT INTO {schema}.{name} VALUES {lines}")

    def stored_type(self, name, sql_type):
        return sql_type

    def judged(self, sql):
        """A relation that is written out, as the judge of a SELECT knows it."""
        sources = self.sources()
        select = sources.reader(f"SELECT COUNT(*) FROM {sql} AS top", None)(Scalars())
        nested = layers_of(select, sources, None, PEOPLE)
        return written_out(relation_of(nested.core, sources, nested.ctes), sources, set())

    def statement(self, relation, plan=None, names=None):
        """What reads its rows in the first database; of some columns only, from a plan without the others."""
        names = names or columns_of(relation)
        text, rows = written(plan or relation.source.relation, relation.source.held, self.dialect(relation))
        values = [rows.told_apart(name) if name in relation.owners.key else rows.column(name).sql for name in names]
        return f"SELECT {', '.join(values)} FROM {text}"

    def rows(self, statement, schema):
        return Counter(tuple(map(plain, row)) for row in self.run(self.moved(statement, schema)))

    def moved(self, statement, schema):
        return statement.replace('"d0_0".', f'"{schema}".')


def literal(value, sql_type):
    """A value as it is stored."""
    return "NULL" if value is None else f"CAST('{value!s}' AS {SERVER.get(sql_type, sql_type)})"


SERVER = {"DOUBLE": "DOUBLE PRECISION"}


def plain(value):
    """A value as the definition has it; a date as microseconds since 1970."""
    if isinstance(value, datetime.date):
        return (value - EPOCH).days * 86_400 * 10**6
    return known(value)


class Portable(Engine):
    """The compiler's portable words, which DuckDB runs."""

    def __init__(self, id_type):
        self.con = duckdb.connect()
        super().__init__(lambda sql: self.con.execute(sql).fetchall(), id_type)

    def sources(self):
        def found(path):
            columns = stored_columns(types_of(path[0], self.id_type))
            return SQLTable(f'"d0_0".{path[0]}', columns, Dialect(), self.fetched)

        return SourcesElsewhere(None, {}, public=PUBLIC, language=POSTGRES, found=found)

    def fetched(self, sql, values):
        assert not values
        return self.con.execute(sql).fetchnumpy()

    def dialect(self, relation):
        return Dialect()


class Own(Portable):
    """DuckDB's own words, and ids whose collation is without capitals."""

    def sources(self):
        self.con.execute("USE d0_0")
        return Sources(self.con, {}, public=PUBLIC)

    def stored_type(self, name, sql_type):
        return f"{sql_type} COLLATE NOCASE" if (name, sql_type) == ("pid", "VARCHAR") else sql_type

    def dialect(self, relation):
        return DuckDBForSQL()


class Server(Engine):
    """PostgreSQL, whose ids have a collation without capitals."""

    def __init__(self, con, id_type):
        self.con = con
        con.execute("CREATE COLLATION IF NOT EXISTS public.caseless "
                    "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)")  # fmt: skip
        super().__init__(self.asked, id_type)

    def asked(self, sql):
        if not sql.startswith("SELECT"):
            return self.con.execute(sql)
        with postgres.reading(self.con) as cursor:
            return postgres.asked(cursor, sql)

    def stored_type(self, name, sql_type):
        return f"{SERVER.get(sql_type, sql_type)}" + (
            " COLLATE public.caseless" if (name, sql_type) == ("pid", "VARCHAR") else ""
        )

    def sources(self):
        self.con.execute("SET search_path = d0_0, public")
        return of_connection(self.con, {}, None, PUBLIC)

    def dialect(self, relation):
        return next(iter(relation.source.held.values())).dialect


portable = cache(Portable)


@pytest.fixture(scope="module", params=["portable", "DuckDB's own", pytest.param("PostgreSQL", marks=needs_server)])
def engine_of(request):
    """Opens all databases with ids of a type."""
    if request.param != "PostgreSQL":
        yield portable if request.param == "portable" else cache(Own)
        return
    with ExitStack() as held:

        @cache
        def of(id_type):
            return Server(held.enter_context(connected(held.enter_context(database()))), id_type)

        yield of


@pytest.mark.whole
@pytest.mark.parametrize("id_type", IDS)
@given(asked=statements())
def test_rows_are_those_of_the_definition(engine_of, id_type, asked):
    """On each database, and without any person: whose rows are gone then, and nobody else's differ."""
    engine = engine_of(id_type)
    assume(not (asked.mixes and isinstance(engine, Own)))  # numbers beyond 2**53 are DOUBLEs beside DOUBLEs there
    relation = engine.judged(asked.sql)
    statement, most = engine.statement(relation), relation.owners.most
    assert most is not None
    for at, (whole, smaller) in enumerate(engine.databases):
        rows = engine.rows(statement, f"d{at}_0")
        assert rows == definition(asked, whole)
        for number, (person, rest) in enumerate(smaller, 1):
            own = Counter({row: n for row, n in rows.items() if row[0] == person})
            assert own.total() <= most
            assert engine.rows(statement, f"d{at}_{number}") == rows - own == definition(asked, rest)


@pytest.mark.whole
@pytest.mark.parametrize("id_type", IDS)
@given(asked=statements())
def test_owners_say_what_is_true_of_the_rows(engine_of, id_type, asked):
    """What sensitivities rest on: one row of each combination, columns that do not differ, and numbers from 1 on."""
    engine = engine_of(id_type)
    relation = engine.judged(asked.sql)
    owners, (key,) = relation.owners, relation.owners.key
    claimed = [*owners.extra, *sorted(owners.constant), *sorted(owners.numbers)]
    statement = engine.statement(relation, names=[key, *claimed])
    for at in range(len(engine.databases)):
        people = {}
        for (person, *values), n in engine.rows(statement, f"d{at}_0").items():
            people.setdefault(person, []).extend([dict(zip(claimed, values, strict=True))] * n)
        for rows in people.values():
            assert not owners.is_proven or len(rows) <= owners.most
            together = Counter(tuple(row[name] for name in owners.extra) for row in rows)
            assert not owners.extra or max(together.values()) == 1
            assert all(len({row[name] for row in rows}) == 1 for name in owners.constant)
            assert all(len({row[name] for row in rows}) == len(rows) for name in owners.numbers)


def definition(asked, tables):
    """How often each row occurs, by the definition."""
    found = Counter()
    for row, n in asked.counted(tables).items():
        found[tuple(map(plain, row))] += n
    return found


class TestIdentity:
    """Questions whose canonical texts are equal read equal rows, and those that read others have other texts."""

    seen: ClassVar[dict] = {}  # statements and their rows, by canonical text

    @given(listed=neighbours())
    def test_other_rows_have_other_texts(self, listed):
        engine = portable("VARCHAR")
        for one in listed:
            relation = engine.judged(one.sql)
            whole = [definition(one, tables) for tables, _ in engine.databases]
            for names in (columns_of(relation), columns_of(relation)[:2], columns_of(relation)[1:]):
                places = [columns_of(relation).index(name) for name in names]
                rows = [of_columns(each, places) for each in whole]
                text = text_of(relation, names)
                before = self.seen.setdefault(text, (one.sql, rows))
                assert rows == before[1], before[0]

    @given(asked=statements(ties=True))
    def test_columns_that_nobody_reads_decide_nothing(self, asked):
        engine = portable("VARCHAR")
        relation = engine.judged(asked.sql)
        statement = engine.statement(relation)
        for at in range(len(engine.databases)):
            rows = engine.rows(statement, f"d{at}_0")
            for place, name in enumerate(columns_of(relation)):
                plan = pruned(relation.source.relation, [Column(name)])
                alone = engine.statement(relation, plan, [name])
                assert engine.rows(alone, f"d{at}_0") == of_columns(rows, [place])


def columns_of(relation):
    """Names of its columns, the person first."""
    return [value.column for _, value in relation.columns]


def of_columns(rows, places):
    """Rows of some columns."""
    found = Counter()
    for row, n in rows.items():
        found[tuple(row[place] for place in places)] += n
    return found


def text_of(relation, names):
    """Canonical text of a question about some columns."""
    read = [[Column(name), None, None] for name in names]
    people = [Column(name) for name in relation.owners.key]
    return canonical(relation.source.relation, [], [], read, ["values"] * len(names), people, relation.source.zone)
