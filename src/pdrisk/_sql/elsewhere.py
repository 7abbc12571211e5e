"""Tables of other engines than DuckDB in a SELECT, which is judged by their types as DuckDB calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pdrisk._model.declarations import Declarations
from pdrisk._model.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.nearest import did_you_mean
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._sql import workspace
from pdrisk._sql.clients import plain_text
from pdrisk._sql.pieces import lowered, quoted
from pdrisk._sql.postgres import PostgresTable, is_postgres, one_connection, one_state
from pdrisk._sql.scalars import Scalars
from pdrisk._sql.source import Source
from pdrisk._sql.sources import Sources
from pdrisk._sql.sqlglot_expressions import POSTGRES, SPARK, Language
from pdrisk._sql.sqlglot_parse import parsed_as
from pdrisk._sql.tree import Select
from pdrisk.engines.sql.spark import SparkFrame, is_spark_session, table_of_session
from pdrisk.engines.sql.table import SQLTable
from pdrisk.engines.sql.values import StoredColumn
from pdrisk.errors import ParameterError

__all__ = ["NOT_HERE", "Remote", "SourcesElsewhere", "of_connection", "of_dataset", "several_records"]

NOT_HERE: Final = "a table of another engine"  # in FROM of a statement that must never run
INTEGERS: Final = {1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 8: "BIGINT"}


Remote = PostgresTable | SparkFrame  # a table of another engine, as it was given


@dataclass(kw_only=True)
class SourcesElsewhere(Sources):
    """What one call may read of another engine.

    Attributes
    ----------
    language : Language
    found : callable
        Gives a table by the names of a query.
    snapshot : callable or None
        Opens what all reading sees one state of the data in, where the engine has that.
    held : ExitStack
        What is open until all is read.
    """

    language: Language
    found: Callable[[tuple[str, ...]], SQLTable]
    snapshot: Callable[[], AbstractContextManager[Any]] | None = None
    held: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        assert self.connection is None  # DuckDB reads none of them
        assert not self.named

    def reader(self, query: Any, params: object) -> Callable[[Scalars], Select]:
        text, values = plain_text(query, params)
        return lambda scalars: parsed_as(text, self.language, values, scalars)

    def take_snapshot(self) -> None:
        """Read all tables as they are now, where the engine can."""
        if self.snapshot is not None:
            self.held.enter_context(self.snapshot())

    def close(self) -> None:
        """Let go of all that is open."""
        super().close()
        self.held.close()

    def check_readable(self, source: Source) -> None:  # noqa: ARG002
        raise several_records()

    def check_public(self) -> None:
        if self.public:
            raise ParameterError("public= names tables for joins, which are made in a view of the database.")

    def at(self, path: tuple[str, ...]) -> Source:
        """The table that a query names.

        Raises
        ------
        ParameterError
            If it is not there, or has columns that SQL does not tell apart.
        """
        table = self.found(path)
        if len({lowered(str(label)) for label in table.columns}) < len(table.columns):
            raise ParameterError("two columns of the table differ in capitals alone: name them apart in a view.")
        types = {str(label): _duckdb_type(column) for label, column in table.columns.items()}
        reader = workspace.reader()
        self.opened.append(reader)
        return self._told(
            Source(NOT_HERE, types, reader, name=path[-1], is_table=True, place=table.origin.place, elsewhere=table)
        )


def of_dataset(
    tables: Mapping[str, Remote], declared: Mapping[str, Declarations], public: frozenset[str]
) -> SourcesElsewhere:
    """What the queries of a Dataset may read.

    Raises
    ------
    ParameterError
        If its tables are those of several engines or connections.
    """
    known = {lowered(name): table for name, table in tables.items()}
    first, *others = known.values()
    if not all(_is_with(first, each) for each in others):
        raise ParameterError(
            "the tables of a Dataset are those of several engines or connections: make one Dataset of each."
        )

    def named(path: tuple[str, ...]) -> str:
        if len(path) > 1 or lowered(path[0]) not in known:
            raise ParameterError(
                f"unknown table {'.'.join(path)!r}; a Dataset is asked by the names of its tables: "
                f"{', '.join(known)}.{did_you_mean(path[-1], list(known))}"
            )
        return lowered(path[0])

    if isinstance(first, PostgresTable):
        names = {name: table.name for name, table in known.items() if isinstance(table, PostgresTable)}
        return _on_server(first.connection, lambda path: names[named(path)], declared=declared, public=public)
    return SourcesElsewhere(
        None, {}, declared=declared, public=public, language=SPARK, found=lambda path: known[named(path)].table()
    )


def _on_server(connection: Any, name: Callable[[tuple[str, ...]], str], **options: Any) -> SourcesElsewhere:
    """Tables of one connection to PostgreSQL, by the names that the server has for those of a query."""
    held = ExitStack()
    own = held.enter_context(one_connection(connection))
    return SourcesElsewhere(
        None, {}, **options, language=POSTGRES, found=lambda path: PostgresTable(own, name(path)).table(),
        snapshot=lambda: one_state(own), held=held,
    )  # fmt: skip


def _is_with(one: Remote, other: Remote) -> bool:
    """Whether one statement can read both."""
    if isinstance(one, SparkFrame):
        return isinstance(other, SparkFrame) and one.frame.sparkSession == other.frame.sparkSession
    return isinstance(other, PostgresTable) and one.connection is other.connection


def of_connection(con: Any, named: Mapping[str, Any], schema: object, public: frozenset[str]) -> Sources | None:
    """What a query may read of the server that a connection is to; None if it is none that pdrisk knows.

    Raises
    ------
    ParameterError
        If frames are passed as well.
    """
    if not (is_postgres(con) or is_spark_session(con)):
        return None
    if named:
        raise ParameterError(
            f"the frame {next(iter(named))} and tables of another engine are not asked together: write the frame to a "
            "table there, or leave con out."
        )
    if is_spark_session(con):
        return SourcesElsewhere(
            None, {}, schema, public=public, language=SPARK, found=lambda path: table_of_session(con, path).table()
        )

    return _on_server(con, lambda path: ".".join(map(quoted, path)), schema=schema, public=public)


def several_records() -> ParameterError:
    """The error for records that are not those of one table."""
    return ParameterError(
        "a subquery, CTE or join of records is a view in a database: make one there, and ask that. SELECTs over "
        "groups and noisy aggregates may stand in each other."
    )


def _duckdb_type(column: StoredColumn) -> str:
    """What DuckDB calls the type of a column."""
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
