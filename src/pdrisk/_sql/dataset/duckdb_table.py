"""A table, view or file of DuckDB for the methods of a Dataset: its columns in normal form, and what is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from pdrisk._model.declared.declarations import Declaration, Declarations
from pdrisk._model.expressions.kinds import TEXT
from pdrisk._model.expressions.nodes import Column
from pdrisk._relations.canonical import canonical
from pdrisk._relations.plan import Selection
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.relations.written_out import node_of
from pdrisk._sql.tables.compiled_sources import compiled, is_of_server
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk._sql.tables.source import Source
from pdrisk.engines.base import Origin
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.sql_table import SQLTable

NANOSECONDS: Final = np.dtype("datetime64[ns]")  # which relations read as microseconds


def fluent_table(relation: Relation) -> tuple[SQLTable, Declarations]:
    """Table for the methods of a Dataset, and the declarations of its columns.

    Of a view or a join missing codes are gone before it computes anything, and bounds and keys are those of the columns
    that it shows as they are.
    """
    source, declarations = relation.source, relation.source.declared
    is_shown_whole = [(label, value.column) for label, value in relation.columns] == [(n, n) for n in source.columns]
    if source.made is None and is_shown_whole and not (relation.owned or relation.where):
        if source.held:
            return next(iter(source.held.values())), declarations
        read = partial(fetched, source.connection)
        table = SQLTable(source.sql, stored_columns(source.columns), DuckDBDialect(), read, source.origin, source.rows)
        return replace(table, origin=_origin(source, source.sql, source.columns)), declarations
    return _made(relation), _declared(relation)


def _made(relation: Relation) -> SQLTable:
    """The relation as a table of the engine that has its tables."""
    source = relation.source
    made = Selection(
        source.relation,
        tuple((label, node_of(value)) for label, value in relation.columns),
        tuple(condition.node for condition in (*relation.owned, *relation.where)),
    )
    table, rows = compiled(replace(source, made=made, held=source.stored))
    columns = {label: rows.stored(label) for label, _ in relation.columns}
    if is_of_server(source):
        return replace(table, columns=columns)
    # Of a view the dtypes are those of its tables. Labels of an ENUM come from frames, too, where their order is none.
    stored = stored_columns(source.columns)
    for label, value in relation.columns:
        if value.column in source.whole and (exact := columns[label].exact) is not None:  # whole in methods, too
            columns[label] = replace(columns[label], name=exact, value=exact, exact=None)
        is_as_stored = value.kind != TEXT or relation.owners is None
        if value.column is not None and is_as_stored and stored[value.column].dtype != NANOSECONDS:
            columns[label] = replace(columns[label], dtype=stored[value.column].dtype, type=stored[value.column].type)
    types = {label: column.type for label, column in columns.items()}
    text = canonical(made, [], [], [[Column(label)] for label in columns], [], [], source.zone)
    return replace(table, columns=columns, dialect=DuckDBDialect(), origin=_origin(source, text, types))


def _origin(source: Source, read: str, types: Mapping[str, str]) -> Origin:
    """Origin of what is read of a source, with the types of its columns."""
    origin = source.origin
    if origin.tables:
        return replace(origin, said=repr((as_remembered(read), dict(types))))
    if source.place is not None:
        return Origin(None, _place(source.place, as_remembered(read), str(dict(types))))
    return origin


def _declared(relation: Relation) -> Declarations:
    """Declarations of the columns that are passed on unchanged, without codes, which are missing by now."""
    source = relation.source
    entries = [
        replace(entry, column=label, missing=None)
        for label, value in relation.columns
        if value.column is not None
        for entry in _entries(source, value.column)
    ]
    return Declarations(schema=tuple(entries), people=source.declared.people)


def _entries(source: Source, column: str) -> list[Declaration]:
    """Declarations of a column of the source as one entry."""
    known = source.known(column)
    entry = Declaration(
        column, known.source or "", bounds=known.ends, valid=known.valid, keys=known.keys, whole=known.whole,
        dates=known.dates,
    )  # fmt: skip
    return [entry] if entry.says_something else []


def _place(place: Callable[[], str | None], *read: str) -> Callable[[], str | None]:
    """Place of a source together with what is read from it."""

    def found() -> str | None:
        source_place = place()
        return None if source_place is None else repr((source_place, *read))

    return found
