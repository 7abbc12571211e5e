"""Query over public tables alone that pdrisk does not understand: DuckDB runs it where nothing else is.

Of another engine it is written anew for DuckDB, if it surely means the same there, and its tables are read as all
public tables are: nothing of the text reaches that engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.kinds import ZONED
from pdrisk._sql.relations.from_clause import public_table
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import INTEGERS, kind_of_type, lowered, quoted, written_constant
from pdrisk._sql.syntax.tree import Table
from pdrisk._sql.tables.clients import plain_text
from pdrisk._sql.tables.compiled_sources import compiled, public_rows
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.duckdb_writer import Written, written_for_duckdb
from pdrisk._sql.text.names_in_select import Copy
from pdrisk._sql.text.scalars import Scalars
from pdrisk._sql.text.sqlglot_nobody import StatementsOfNobody
from pdrisk._sql.text.sqlglot_parse import parsed_as
from pdrisk.engines.sql.servers.duckdb_engine import fetched, run_there
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Types whose values numpy's arrays hold exactly; others go as text.
PLAIN: Final = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
    "DOUBLE", "VARCHAR", "TIMESTAMP",
}  # fmt: skip
#: Functions in FROM that make rows of their arguments alone.
OF_ARGUMENTS: Final = {"range", "generate_series", "unnest"}
#: Functions whose values are those of a connection, which the database here does not have.
OF_CONNECTION: Final = {
    "getvariable", "currval", "current_setting", "current_database", "current_catalog", "current_schema",
    "current_schemas", "current_query", "in_search_path", "txid_current",
}  # fmt: skip
#: Without a folder for what does not fit into memory: DuckDB lets every query read there, and other databases of this
#: process, with people in them, write theirs.
CLOSED: Final[dict[str, Any]] = {"threads": 1, "temp_directory": "", "memory_limit": "2GB"}
LOCKS: Final = (
    "SET enable_external_access = false", "SET python_enable_replacements = false", "SET lock_configuration = true",
)  # fmt: skip
HONOURED: Final = ("default_order", "default_null_order", "TimeZone")


def rows_of_nobody(query: object, params: object, sources: Sources, *, runs: bool = True) -> pd.DataFrame | None:
    """Answer to a query over public tables alone that pdrisk does not understand; None if it names anything else.

    The query runs whole on copies of the public tables, in a database of its own without files, temporary files,
    people, macros or Python's variables. So nothing that it calls or names can reach people, and no part of it has to
    be understood.

    ``query, params``: as they were passed.
    ``runs``: otherwise it is only looked at, for a preview, and the answer is empty.
    """
    if not sources.public or not isinstance(query, str):
        return None
    if isinstance(sources, SourcesElsewhere):
        return _from_elsewhere(query, params, sources, runs=runs)
    text, values = plain_text(query, params)
    tree = json.loads(workspace.serialized(text))
    if tree["error"] or len(tree["statements"]) != 1:
        return None
    objects = list(_objects(tree))
    functions = {str(node["function_name"]).lower() for node in objects if node.get("function_name")}
    in_from = [node.get("function", {}) for node in objects if node.get("type") == "TABLE_FUNCTION"]
    if any(str(function.get("function_name", "")).lower() not in OF_ARGUMENTS for function in in_from):
        return None
    if functions & OF_CONNECTION or any(node.get("type") == "SHOW_REF" for node in objects):
        return None
    names_of_with = {lowered(cte["key"]) for node in objects for cte in node.get("cte_map", {}).get("map", ())}
    tables: dict[tuple[str, ...], Source] = {}
    for path in dict.fromkeys(map(_path, filter(lambda node: node.get("type") == "BASE_TABLE", objects))):
        relation = public_table(Table(path, "", ()), sources)
        if relation is not None:
            tables.setdefault(tuple(map(lowered, path[path[0].lower() == "main" and len(path) > 1 :])), relation.source)
        elif len(path) != 1 or lowered(path[0]) not in names_of_with:
            return None
    kinds = {kind_of_type(column) for source in tables.values() for column in source.columns.values()}
    of_database = {path[0] for path in tables if len(path) > 1} & {"temp", "system", "pg_catalog"}
    if not tables or max(map(len, tables)) > 2 or of_database or ZONED in kinds:
        return None
    if sources.connection is not None:
        sources.settings.check(functions, sources.known)

    def copy(database: DuckDBPyConnection) -> None:
        for path, source in tables.items():
            _copy(database, path, source)
        for name in HONOURED if sources.connection is not None else ():
            database.execute(f"SET {name} = {written_constant(sources.settings[name])}")

    return _answer(text if runs else f"EXPLAIN {text}", values, copy)


def _from_elsewhere(query: str, params: object, sources: SourcesElsewhere, *, runs: bool) -> pd.DataFrame | None:
    """The same for tables of another engine; None also if the query could mean something else to DuckDB."""
    tables: dict[str, Source] = {}

    def copy_of(path: tuple[str, ...]) -> Copy:
        relation = public_table(Table(path, "", ()), sources)
        if relation is None:
            raise ParameterError(f"{'.'.join(path)} is no public table.")
        place = next(
            (at for at, source in enumerate(tables.values()) if source.sql == relation.source.sql), len(tables)
        )
        tables.setdefault(f"copies.t{place}", relation.source)
        return Copy(f"copies.t{place}", relation.source.columns)

    try:
        text, values = plain_text(query, params)
        select = parsed_as(text, sources.language, values, Scalars(), StatementsOfNobody, sources.types)
        written = written_for_duckdb(select, copy_of)
    except ParameterError:
        return None
    read = {name: _columns_read(name, source.columns, written) for name, source in tables.items()}
    if not read or not all(map(_is_copied, (sql_type for columns in read.values() for sql_type in columns.values()))):
        return None
    sources.take_snapshot()
    rows = {name: public_rows(replace(tables[name], columns=columns)) for name, columns in read.items()}

    def copy(database: DuckDBPyConnection) -> None:
        database.execute("CREATE SCHEMA copies")
        for name, columns in read.items():
            _write(
                database,
                name,
                columns,
                {column: _typed(rows[name][at], of) for at, (column, of) in enumerate(columns.items())},
            )

    return _answer(written.sql if runs else f"EXPLAIN {written.sql}", None, copy)


def _columns_read(copy: str, columns: Mapping[str, str], written: Written) -> dict[str, str]:
    """Columns of a table that a query reads, or else one of them, with their types."""
    read = {name: of for name, of in columns.items() if copy in written.whole or lowered(name) in written.named}
    return read or dict(
        [column for column in columns.items() if _is_copied(column[1])][:1] or list(columns.items())[:1]
    )


def _is_copied(sql_type: str) -> bool:
    """Whether values of a type are the same in every session, and known."""
    return kind_of_type(sql_type) not in (ZONED, "blob")


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree of DuckDB's."""
    if isinstance(tree, dict):
        yield tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _objects(value)


def _path(table: dict[str, Any]) -> tuple[str, ...]:
    """Catalog, schema and name of a table, as far as they are written."""
    return tuple(filter(None, (table.get("catalog_name"), table.get("schema_name"), table["table_name"])))


def _answer(text: str, values: Any, copy: Callable[[DuckDBPyConnection], None]) -> pd.DataFrame | None:
    """What DuckDB answers; None if the query reads something else, or a table cannot be copied."""
    import duckdb

    with duckdb.connect(":memory:", config=CLOSED) as database:
        try:
            copy(database)
        except duckdb.Error:
            return None
        for lock in LOCKS:
            database.execute(lock)
        try:
            described, rows = run_there(database, text, values, lambda result: (result.description, result.df()))
        except (duckdb.CatalogException, duckdb.PermissionException):
            return None
        except duckdb.Error as error:
            failure = str(error).splitlines()[0]
        else:
            rows.columns = pd.Index(unique([name for name, *_ in described]), dtype=object)
            return rows
    raise ParameterError(f"DuckDB fails at this query over public tables: {failure}")


def _copy(database: DuckDBPyConnection, path: tuple[str, ...], source: Source) -> None:
    """Write a table into the database."""
    table, _ = compiled(source)
    names = {quoted(name): kind for name, kind in source.columns.items()}
    read = (name if kind in PLAIN else f"CAST({name} AS VARCHAR) AS {name}" for name, kind in names.items())
    arrays = fetched(source.connection, f"SELECT {', '.join(read)} FROM {table.source}", [])
    if len(path) > 1:
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(path[0])}")
    values = {name: _column(array) for name, array in arrays.items()}
    _write(database, ".".join(map(quoted, path)), source.columns, values)


def _write(database: DuckDBPyConnection, name: str, columns: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Make a table of these values."""
    database.register("copied", pd.DataFrame(values))
    typed = ", ".join(f"CAST({quoted(column)} AS {kind}) AS {quoted(column)}" for column, kind in columns.items())
    database.execute(f"CREATE TABLE {name} AS SELECT {typed} FROM copied")
    database.unregister("copied")


def _typed(values: Any, sql_type: str) -> Any:
    """Values of Python as an array of one type; dates as text."""
    if sql_type in INTEGERS:
        return pd.array(values, dtype="UInt64" if sql_type.startswith("U") else "Int64")
    missing = np.array([value is None for value in values], dtype=bool)
    if sql_type in ("DOUBLE", "FLOAT"):  # NaN stays
        return pd.arrays.FloatingArray(np.array([0.0 if value is None else value for value in values], float), missing)
    if sql_type == "BOOLEAN":
        return pd.array(values, dtype="boolean")
    return pd.array([None if value is None else str(value) for value in values], dtype="string")


def _column(array: Any) -> Any:
    """An array whose masked values are missing, without a change of the others."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    values, mask = array.data.copy(), np.ma.getmaskarray(array)
    kinds = {"i": pd.arrays.IntegerArray, "f": pd.arrays.FloatingArray, "b": pd.arrays.BooleanArray}
    if (kind := array.dtype.kind.replace("u", "i")) in kinds:
        return kinds[kind](values, mask)
    values[mask] = None if kind == "O" else np.array("NaT", dtype=values.dtype)
    return values
