"""Query over public tables alone, which is DuckDB's own business: it runs in a database that holds nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.kinds import ZONED
from pdrisk._sql.relations.from_clause import public_table
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import kind_of_type, lowered, quoted
from pdrisk._sql.syntax.tree import Table
from pdrisk._sql.tables.clients import plain_text
from pdrisk._sql.tables.compiled_sources import compiled
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["rows_of_nobody"]

#: Types whose values numpy's arrays hold exactly; others go as text.
PLAIN: Final = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
    "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP",
}  # fmt: skip


def rows_of_nobody(query: object, params: object, sources: Sources) -> pd.DataFrame | None:
    """Answer to a query that reads no table of people; None if it reads one, or none at all.

    The query runs whole on copies of the public tables, in a database of its own without files, settings or Python's
    variables. So nothing that it calls or names can reach people, and no part of it has to be understood.

    Raises
    ------
    ParameterError
        If DuckDB fails at it.
    """
    if isinstance(sources, SourcesElsewhere) or not sources.public or not isinstance(query, str):
        return None  # of other engines' words and tables
    text, values = plain_text(query, params)
    tree = json.loads(workspace.serialized(text))
    if tree["error"] or len(tree["statements"]) != 1:
        return None
    with_names = {lowered(name) for name in _names_of_with(tree)}
    tables = {}
    for path in dict.fromkeys(_named(tree)):
        found = public_table(Table(path, "", ()), sources)
        if found is not None:
            tables[path] = found.source
        elif len(path) != 1 or lowered(path[0]) not in with_names:
            return None
    if (
        not tables
        or max(map(len, tables)) > 2
        or any(kind_of_type(each) == ZONED for source in tables.values() for each in source.columns.values())
    ):
        return None
    if sources.connection is not None:
        sources.settings.check(frozenset(), sources.known)
    return _answer(text, values, tables)


def _objects(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree of DuckDB's."""
    if isinstance(tree, dict):
        yield tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _objects(value)


def _named(tree: Any) -> Iterator[tuple[str, ...]]:
    """Paths of all tables that a tree names, names of WITH among them."""
    for each in _objects(tree):
        if each.get("type") == "BASE_TABLE":
            yield tuple(filter(None, (each.get("catalog_name"), each.get("schema_name"), each["table_name"])))


def _names_of_with(tree: Any) -> Iterator[str]:
    for each in _objects(tree):
        yield from (cte["key"] for cte in each.get("cte_map", {}).get("map", ()))


def _answer(text: str, values: Any, tables: dict[tuple[str, ...], Source]) -> pd.DataFrame | None:
    """What DuckDB answers; None if the query reads something else."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 1}) as own:
        for path, source in tables.items():
            _copy(own, path, source)
        own.execute("SET enable_external_access = false; SET python_enable_replacements = false")
        own.execute("SET lock_configuration = true")
        try:
            answer = own.execute(text, values)
            headings = unique([name for name, *_ in answer.description])
            rows = answer.df()
        except (duckdb.BinderException, duckdb.CatalogException):
            return None
        except duckdb.Error as error:
            failure = str(error).splitlines()[0]
        else:
            rows.columns = pd.Index(headings, dtype=object)
            return rows
    raise ParameterError(f"DuckDB fails at this query over public tables: {failure}")


def _copy(own: DuckDBPyConnection, path: tuple[str, ...], source: Source) -> None:
    """Write a table into the database."""
    table, _ = compiled(source)
    names = {quoted(name): kind for name, kind in source.columns.items()}
    read = (name if kind in PLAIN else f"CAST({name} AS VARCHAR) AS {name}" for name, kind in names.items())
    arrays = source.connection.execute(f"SELECT {', '.join(read)} FROM {table.source}").fetchnumpy()
    own.register("copied", pd.DataFrame({name: _column(array) for name, array in arrays.items()}))
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in names.items())
    target = ".".join(map(quoted, path))
    if len(path) > 1:
        own.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(path[0])}")
    own.execute(f"CREATE TABLE {target} AS SELECT {typed} FROM copied")
    own.unregister("copied")


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
