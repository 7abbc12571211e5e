"""A table, view or file of DuckDB for the methods of a Dataset: its columns in normal form, and what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pdrisk._model.declared.declarations import Declaration, Declarations
from pdrisk._model.kinds import TEXT
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.syntax.pieces import Expression, quoted
from pdrisk._sql.tables.codes_in_sql import relation_without_codes
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk._sql.tables.readable import WHOLE, described
from pdrisk._sql.tables.source import Source
from pdrisk.engines.base import Origin
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable

__all__ = ["fluent_table"]


def fluent_table(relation: Relation) -> tuple[SQLTable, Declarations]:
    """Table for the methods of a Dataset, and the declarations of its columns.

    Of a view or a join missing codes are gone before it computes anything, and bounds and keys are those of the columns
    that it shows as they are.
    """
    source, said = relation.source, relation.source.declared
    sql, types = source.sql, source.columns
    if _conditions(relation) or [(label, value.column) for label, value in relation.columns] != [(n, n) for n in types]:
        sql = _written(relation)
        types = described(source.connection, f"SELECT * FROM {sql}", source.name, WHOLE)
        said = _declared(relation)
    read = partial(fetched, source.connection)
    origin = source.origin
    if origin.tables:
        origin = replace(origin, said=repr((as_remembered(sql), dict(types))))
    elif source.place is not None:
        origin = Origin(None, _place(source.place, as_remembered(sql), str(dict(types))))
    return SQLTable(sql, stored_columns(types), DuckDBDialect(), read, origin, source.rows), said


def _written(relation: Relation) -> str:
    """The relation as SQL for FROM."""
    source = relation.source
    codes = {name: codes for name in source.columns if (codes := source.known(name).missing)}
    below = relation_without_codes(source.sql, source.columns, codes)
    is_joined = relation.owners is not None

    def shown_as(value: Expression) -> str:
        # Of a join as text: labels of an ENUM come from frames, too, where their order is no column's.
        as_it_is = value.column is not None and not (is_joined and value.kind == TEXT)
        return quoted(str(value.column)) if as_it_is else value.sql

    shown = ", ".join(f"{shown_as(value)} AS {quoted(label)}" for label, value in relation.columns)
    where = " AND ".join(_conditions(relation))
    return f"(SELECT {shown} FROM {below}{f' WHERE {where}' if where else ''}) AS shown"


def _conditions(relation: Relation) -> list[str]:
    """Conditions on the records of the source."""
    return [each.sql for each in (*relation.owned, *relation.where)]


def _declared(relation: Relation) -> Declarations:
    """Declarations of the columns that are passed on unchanged, without codes, which are missing by now."""
    source = relation.source
    own = [
        replace(entry, column=label, missing=None)
        for label, value in relation.columns
        if value.column is not None
        for entry in _entries(source, value.column)
    ]
    return Declarations(schema=tuple(own), people=source.declared.people)


def _entries(source: Source, column: str) -> list[Declaration]:
    """Declarations of a column of the source as one entry."""
    known = source.known(column)
    bounds = None if known.universe is None else (known.universe.lo, known.universe.hi)
    found = Declaration(
        column, known.source or "", bounds=bounds, valid=known.valid, keys=known.keys, whole=known.whole
    )
    return [found] if found.says_something else []


def _place(place: Callable[[], str | None], *read: str) -> Callable[[], str | None]:
    """Place of a source together with what is read from it."""

    def found() -> str | None:
        own = place()
        return None if own is None else repr((own, *read))

    return found
