"""Tables of engines other than DuckDB in a SELECT, which is judged by the types that DuckDB would give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._sql.syntax.languages import POSTGRES, SPARK, Language
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.syntax.tree import Select
from pdrisk._sql.tables.catalog_constraints import Constraint, postgres_constraints
from pdrisk._sql.tables.clients import plain_text
from pdrisk._sql.tables.compiled_sources import compiled
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.scalars import Scalars
from pdrisk._sql.text.sqlglot_parse import parsed_as
from pdrisk._tables.postgres_table import PostgresTable, one_connection, one_state, server_of
from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.servers.spark_engine import SparkFrame, is_spark_session, table_of_session
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ParameterError

INTEGERS: Final = {1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 8: "BIGINT"}


Remote = PostgresTable | SparkFrame  # a table of another engine, as it was given


@dataclass(kw_only=True)
class SourcesElsewhere(Sources):
    """Sources of another engine that one call may read."""

    language: Language
    found: Callable[[tuple[str, ...]], SQLTable]  # gives a table by the names of a query
    by_path: bool = True  # whether a name in other capitals is one of another table
    # Opens what all reading sees one state of the data in, where the engine has that
    snapshot: Callable[[], AbstractContextManager[Any]] | None = None
    # gives the constraints of a table by the names of a query, where the engine has some
    constraints: Callable[[tuple[str, ...]], list[Constraint]] | None = None
    held: ExitStack = field(default_factory=ExitStack)  # what is open until all is read
    # whether a table that was read before is public, by what the engine calls it
    met: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.connection is None  # DuckDB reads none of them
        assert not self.named

    def reader(self, query: Any, params: object) -> Callable[[Scalars], Select]:
        text, values = plain_text(query, params)
        return self._read_once(lambda scalars: parsed_as(text, self.language, values, scalars, types=self.types))

    def types(self, path: tuple[str, ...]) -> Mapping[str, str]:
        """Types of a table's columns."""
        return self.at(path).columns

    def begin(self) -> None:
        """Begin to read in one state, if the engine can."""
        if self.snapshot is not None:
            self.held.enter_context(self.snapshot())

    def close(self) -> None:
        """Release everything that is open."""
        super().close()
        self.held.close()

    def check_readable(self, source: Source) -> None:
        """Refuse combinations that this engine is not asked for."""
        compiled(source)

    def check_public(self) -> None:
        """Refuse public= names without a table."""
        for name in self.public:
            self.found(tuple(name.split(".")))

    def at(self, path: tuple[str, ...]) -> Source:
        """The table that a query names."""
        table, public = self.found(path), self.is_of_nobody(path)
        if self.met.setdefault(table.source, public) != public:
            raise ParameterError(
                f"{'.'.join(path)} is a table that public= names under another name, and people are in it: take it out "
                "of public=, or name it so everywhere."
            )
        if len({lowered(str(label)) for label in table.columns}) < len(table.columns):
            raise ParameterError("two columns of the table differ in capitals alone: name them apart in a view.")
        types = {str(label): _duckdb_type(column) for label, column in table.columns.items()}
        return self._told(
            Source(
                table.source, types, self.for_all, name=path[-1], is_table=True, place=table.origin.place,
                public=public, held={as_remembered(table.source): table},
            )
        )  # fmt: skip

    def is_of_nobody(self, path: tuple[str, ...]) -> bool:
        """Whether the caller declared a table public, by its name in queries."""
        has_capitals = self.by_path and self.language is not SPARK  # where names differ in capitals alone
        spelt_path = path if has_capitals else tuple(map(lowered, path))
        return spelt_path in {tuple((name if has_capitals else lowered(name)).split(".")) for name in self.public}


def of_dataset(
    tables: Mapping[str, Remote], declared: Mapping[str, Declarations], public: frozenset[str], *, lasting: bool
) -> SourcesElsewhere:
    """Sources of the queries of a Dataset; ``lasting`` ones connect anew for each reading."""
    known = {lowered(name): table for name, table in tables.items()}
    first, *others = known.values()
    if not all(_is_with(first, other) for other in others):
        raise ParameterError(
            "the tables of this Dataset belong to several engines or connections: make one Dataset for each."
        )

    def named(path: tuple[str, ...]) -> str:
        if len(path) > 1 or lowered(path[0]) not in known:
            raise ParameterError(
                f"unknown table {'.'.join(path)!r}; a Dataset is asked by the names of its tables: "
                f"{', '.join(known)}.{did_you_mean(path[-1], list(known))}"
            )
        return lowered(path[0])

    if isinstance(first, PostgresTable) and not lasting:
        names = {name: table.name for name, table in known.items() if isinstance(table, PostgresTable)}
        return _on_server(
            first.connection, lambda path: names[named(path)], declared=declared, public=public, by_path=False
        )
    return SourcesElsewhere(
        None, {}, declared=declared, public=public, language=POSTGRES if isinstance(first, PostgresTable) else SPARK,
        found=lambda path: known[named(path)].table(), by_path=False,
    )  # fmt: skip


def _on_server(connection: Any, name: Callable[[tuple[str, ...]], str], **options: Any) -> SourcesElsewhere:
    """Tables of one connection to PostgreSQL, by the names that the server has for those of a query.

    The connection is opened for the first table: what is refused without one needs none.
    """
    held = ExitStack()
    opened = cache(lambda: held.enter_context(one_connection(connection)))

    def found(path: tuple[str, ...]) -> SQLTable:
        return PostgresTable(name=name(path), connection=opened()).table()

    return SourcesElsewhere(
        None,
        {},
        **options,
        language=POSTGRES,
        found=found,
        constraints=lambda path: postgres_constraints(opened(), found(path).source),
        snapshot=lambda: one_state(opened()),
        held=held,
    )


def _is_with(one: Remote, other: Remote) -> bool:
    """Whether one statement can read both tables."""
    if isinstance(one, SparkFrame):
        return isinstance(other, SparkFrame) and one.frame.sparkSession == other.frame.sparkSession
    return isinstance(other, PostgresTable) and one.connection == other.connection


def of_connection(con: Any, named: Mapping[str, Any], schema: object, public: frozenset[str]) -> Sources | None:
    """Sources of the server that a connection leads to; None if pdrisk does not know it."""
    server = server_of(con)
    if server is None and not is_spark_session(con):
        return None
    if named:
        raise ParameterError(
            f"the frame {next(iter(named))} cannot be asked together with tables of another engine: write the frame to "
            "a table there, or leave con out."
        )
    if server is None:
        return SourcesElsewhere(
            None, {}, schema, public=public, language=SPARK, found=lambda path: table_of_session(con, path).table()
        )

    return _on_server(server, lambda path: ".".join(map(quoted, path)), schema=schema, public=public)


def _duckdb_type(column: StoredColumn) -> str:
    """DuckDB's name of a column's type."""
    if not column.is_readable:
        return "BLOB"
    values = of_values(column.dtype)
    kind, plain = family(values) or TEXT, getattr(values, "numpy_dtype", values)
    if kind == DATE:
        return "DATE" if column.type.upper() == "DATE" else "TIMESTAMP"
    if kind == ZONED:
        return "TIMESTAMP WITH TIME ZONE"
    if kind != NUMBER:
        return "VARCHAR"
    if plain.kind == "b":
        return "BOOLEAN"
    if plain.kind == "f":
        return "FLOAT" if plain == np.float32 else "DOUBLE"
    return "U" * (plain.kind == "u") + INTEGERS[plain.itemsize]
