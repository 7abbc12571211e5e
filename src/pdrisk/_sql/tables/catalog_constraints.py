"""Constraints of tables, as the catalogs of DuckDB and PostgreSQL have them; no rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.expressions.nodes import Column, Node, rebuilt
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.tables.catalog import CatalogEntry, found_entry, named_tables, no_table
from pdrisk._sql.tables.check_constraints import CatalogType
from pdrisk._sql.text.check_expressions import duckdb_condition, postgres_condition
from pdrisk._tables.postgres_table import PostgresTable, catalog_rows, one_connection
from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.servers.duckdb_engine import asked
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.postgres_engine import READ_ONLY

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Constraint(NamedTuple):
    """Constraint of a table."""

    kind: str  # "CHECK", "PRIMARY KEY", "UNIQUE", "FOREIGN KEY" or "NOT NULL"
    text: str  # of a CHECK, its condition in SQL
    is_enforced: bool  # whether it holds for all rows
    columns: Sequence[str]
    referenced: str  # the table of a FOREIGN KEY, as SQL names it
    referenced_columns: Sequence[str]


@dataclass(frozen=True)
class ConstrainedTable:
    """Table with its constraints, by the name that a Dataset has for it."""

    name: str
    columns: Mapping[str, CatalogType]
    constraints: Sequence[Constraint]
    conditions: Mapping[str, Node | None]  # those of the CHECKs, by their text; None for what is not understood
    sql: str  # its name before those of its columns
    is_view: bool = False


def tables_in_duckdb(connection: DuckDBPyConnection, names: Sequence[str] | None) -> Iterator[ConstrainedTable]:
    """Tables of a connection to DuckDB: these, or all of the current database and temporary ones."""
    tables = named_tables(connection) if names is None else [(name, _looked_up(connection, name)) for name in names]
    types, constraints = (_by_table(asked(connection, sql, [])) for sql in (_COLUMNS, _CONSTRAINTS))
    ((collation,),) = asked(connection, _COLLATION, [])
    for name, entry in tables:
        if entry.is_view:
            yield ConstrainedTable(name, {}, (), {}, "", is_view=True)
            continue
        place = entry.database, entry.schema, entry.name
        # A collation makes one text of two, so that a CHECK allows more than it lists.
        collated = "COLLATE" in entry.definition.upper() or collation not in ("", "binary")
        stored = stored_columns(dict(types.get(place, ())))
        columns = {label: _type(column, is_collated=collated) for label, column in stored.items()}
        home = "".join(f"{plain_name(part)}." for part in name.split(".")[:-1] if '"' not in name)
        table_constraints = [
            Constraint(kind, text, is_enforced, of, f"{home}{plain_name(other)}", referenced)
            for kind, text, is_enforced, of, other, referenced in constraints.get(place, ())
        ]
        spelt = {lowered(label): label for label in columns}
        conditions = {
            constraint.text: _spelt(duckdb_condition(constraint.text), spelt)
            for constraint in table_constraints
            if constraint.kind == "CHECK"
        }
        yield ConstrainedTable(name, columns, table_constraints, conditions, plain_name(entry.name))


def duckdb_constraints(connection: DuckDBPyConnection, entry: CatalogEntry) -> list[Constraint]:
    """Constraints of one table of DuckDB."""
    rows = _by_table(asked(connection, _CONSTRAINTS, [])).get((entry.database, entry.schema, entry.name), ())
    return [Constraint(*row) for row in rows]


def postgres_constraints(connection: Any, table: str) -> list[Constraint]:
    """Constraints of one table of a server, by its name in SQL."""
    return [Constraint(*row) for row in catalog_rows(connection, _CONSTRAINTS_OF_SERVER, [table])]


def _by_table(rows: Sequence[Sequence[Any]]) -> dict[tuple[str, ...], list[Any]]:
    """Rows of the catalog without their first three columns, which say where a table is."""
    by_place: dict[tuple[str, ...], list[Any]] = {}
    for row in rows:
        by_place.setdefault(tuple(row[:3]), []).append(row[3:])
    return by_place


def _looked_up(connection: DuckDBPyConnection, name: str) -> CatalogEntry:
    entry = found_entry(connection, tuple(name.split(".")))
    if entry is None:
        raise no_table(connection, name)
    return entry


def tables_in_postgres(server: Any, names: Sequence[str] | None) -> Iterator[ConstrainedTable]:
    """Tables of a PostgreSQL server: these, or all that this role may read; partitions stand for none of their own."""
    with one_connection(server) as connection:
        if names is None:
            visible = dict(catalog_rows(connection, _VISIBLE, settings=READ_ONLY))
            tables = [
                (name if visible.get(number) else f"{schema}.{name}", f"{schema}.{name}")
                for number, schema, name in catalog_rows(connection, _TABLES_OF_SERVER)
            ]
        else:
            tables = [(name, name) for name in names]
        for name, path in tables:
            table = PostgresTable(connection, path).table()
            ((is_view, collated),) = catalog_rows(connection, _ABOUT, [table.source])
            constraints = [] if is_view else postgres_constraints(connection, table.source)
            types = {
                str(label): _type(column, is_collated=label in collated) for label, column in table.columns.items()
            }
            conditions = {
                constraint.text: postgres_condition(constraint.text)
                for constraint in constraints
                if constraint.kind == "CHECK"
            }
            yield ConstrainedTable(name, {} if is_view else types, constraints, conditions, name, is_view)


def _type(column: StoredColumn, *, is_collated: bool) -> CatalogType:
    dtype = of_values(column.dtype)
    kind = family(dtype) or ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return CatalogType(TEXT, labels=tuple(column.dtype.categories))
    if pd.api.types.is_bool_dtype(dtype):
        return CatalogType(TRUTH)
    if kind == TEXT and (is_collated or column.type.upper() == "UUID"):  # one UUID is written in several ways
        return CatalogType("")
    if kind == DATE:  # what families call all times without a zone
        is_whole = column.type.upper() == "DATE"
        return CatalogType(DATE if is_whole else TIME, is_whole)
    return CatalogType(kind if kind in (NUMBER, TEXT) else "", is_whole=pd.api.types.is_integer_dtype(dtype))


def _spelt(node: Node | None, spelt: Mapping[str, str]) -> Node | None:
    """The condition with columns as the table spells them: to DuckDB capitals are alike."""

    def change(part: Node) -> Node | None:
        if not isinstance(part, Column):
            return None
        return Column(spelt.get(lowered(part.name), part.name), part.qualifiers)

    return None if node is None else rebuilt(node, change)


def plain_name(name: str) -> str:
    """A name as SQL writes it, in quotes where it needs them."""
    return name if name.isidentifier() and name.isascii() and name.islower() else quoted(name)


_COLUMNS: Final = """
SELECT database_name, schema_name, table_name, column_name, data_type FROM system.main.duckdb_columns()
WHERE NOT internal ORDER BY column_index
"""
_COLLATION: Final = "SELECT system.main.current_setting('default_collation')"
_CONSTRAINTS: Final = """
SELECT database_name, schema_name, table_name, constraint_type, COALESCE(expression, ''), true,
    constraint_column_names, COALESCE(referenced_table, ''), referenced_column_names
FROM system.main.duckdb_constraints() ORDER BY constraint_index
"""
# Without operators, which somebody's search_path could replace; it is what says which tables need no schema.
_VISIBLE: Final = "SELECT oid, pg_catalog.pg_table_is_visible(oid) FROM pg_catalog.pg_class"
_TABLES_OF_SERVER: Final = """
SELECT c.oid, quote_ident(n.nspname), quote_ident(c.relname) FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND NOT starts_with(n.nspname, 'pg_toast') AND NOT pg_is_other_temp_schema(n.oid)
    AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
"""
# Not for all rows: what was never validated, holds for the rows of one table but not of those that inherit from it, or
# is only said of a foreign table.
_CONSTRAINTS_OF_SERVER: Final = """
SELECT CASE k.contype WHEN 'c' THEN 'CHECK' WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ELSE 'FOREIGN KEY' END,
    COALESCE(pg_get_expr(k.conbin, k.conrelid), ''),
    k.convalidated AND NOT k.condeferrable AND c.relkind <> 'f'
        AND NOT (c.relkind = 'r' AND c.relhassubclass AND k.connoinherit),
    ARRAY(SELECT CAST(a.attname AS text) FROM unnest(k.conkey) WITH ORDINALITY AS u (number, at)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.number ORDER BY u.at),
    COALESCE(CASE WHEN f.relnamespace <> c.relnamespace THEN quote_ident(n.nspname) || '.' ELSE '' END
        || quote_ident(f.relname), ''),
    ARRAY(SELECT CAST(a.attname AS text) FROM unnest(k.confkey) WITH ORDINALITY AS u (number, at)
        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = u.number ORDER BY u.at)
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
LEFT JOIN pg_class AS f ON f.oid = k.confrelid LEFT JOIN pg_namespace AS n ON n.oid = f.relnamespace
WHERE k.conrelid = to_regclass($1) AND k.contype IN ('c', 'p', 'u', 'f')
UNION ALL
SELECT 'NOT NULL', '', true, ARRAY[CAST(attname AS text)], '', CAST(ARRAY[] AS text[]) FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND attnotnull
ORDER BY 1, 4, 2
"""
_ABOUT: Final = """
SELECT c.relkind IN ('v', 'm'), ARRAY(
    SELECT CAST(a.attname AS text) FROM pg_attribute AS a JOIN pg_collation AS l ON l.oid = a.attcollation
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT l.collisdeterministic
) FROM pg_class AS c WHERE c.oid = to_regclass($1)
"""
