"""Tables described by names and types alone: what pdrisk would ask of them is known, and nothing can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from pdrisk._core.foreign import shown
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.dialects.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.postgres_engine import PostgresDialect
from pdrisk.engines.sql.servers.postgres_types import CatalogColumn, stored_column
from pdrisk.engines.sql.servers.spark_engine import SparkDialect, SparkTable, stored_columns_of_spark
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.servers.warehouses import BigQueryDialect, SnowflakeDialect, TrinoDialect, Warehouse
from pdrisk.errors import ColumnTypeError, ParameterError

# Names of types in the catalog of PostgreSQL, by those that people write.
CATALOG: Final = {
    "smallint": "int2", "int": "int4", "integer": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8", "decimal": "numeric", "boolean": "bool", "character varying": "varchar",
    "character": "bpchar", "char": "bpchar", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}  # fmt: skip

Columns = Mapping[str, str]  # types by label


class _Described(NamedTuple):
    dialect: Dialect
    columns: Callable[[Columns], Mapping[str, StoredColumn]]
    table: Callable[..., SQLTable] = SQLTable


def _of_warehouse(dialect: Warehouse) -> _Described:
    return _Described(
        dialect, lambda types: {name: dialect.stored_column(name, sql_type) for name, sql_type in types.items()}
    )


def _columns_of_postgres(types: Columns) -> dict[str, StoredColumn]:
    return {name: stored_column(_in_catalog(name, written)) for name, written in types.items()}


def _in_catalog(name: str, written: str) -> CatalogColumn:
    """Column as a catalog would hold it, from its type as people write it."""
    plain, *limits = re.split(r"[(),]", re.sub(r"\s+", " ", written.strip().lower()))
    behind = limits[-1].strip() if len(limits) > 1 else ""  # as of timestamp(3) with time zone
    type_name = f"{plain.strip()} {behind}".strip()
    kind, modifier = CATALOG.get(type_name, type_name), -1
    numbers = [int(limit) for limit in limits if limit.strip().isdigit()]
    if kind == "numeric" and numbers:
        modifier = (numbers[0] << 16 | (numbers[1] if len(numbers) > 1 else 0)) + 4
    return CatalogColumn(name, written, kind, modifier, None)


DIALECTS: Final[Mapping[str, _Described]] = {
    "duckdb": _Described(DuckDBDialect(), stored_columns),
    "postgres": _Described(PostgresDialect(), _columns_of_postgres),
    "spark": _Described(SparkDialect(), stored_columns_of_spark, SparkTable),
    "bigquery": _of_warehouse(BigQueryDialect()),
    "snowflake": _of_warehouse(SnowflakeDialect()),
    "trino": _of_warehouse(TrinoDialect()),
}


def described(dialect: object, table: object, columns: object) -> SQLTable:
    """Table of which nothing is read.

    ``dialect``: one of `DIALECTS`.
    ``table``: its name, with a point behind each part before it.
    ``columns``: the types of its columns as the engine writes them, by name.
    """
    if not isinstance(dialect, str) or dialect not in DIALECTS:
        hint = did_you_mean(dialect, list(DIALECTS)) if isinstance(dialect, str) else ""
        raise ParameterError(f"dialect is one of {', '.join(DIALECTS)}, not {shown(dialect)}.{hint}")
    if not isinstance(table, str) or not all(table.split(".")):
        raise ParameterError(f"table is a name, with its schema as in 'survey.people', not {shown(table)}.")
    if not isinstance(columns, Mapping) or not columns or not all(_is_text_pair(pair) for pair in columns.items()):
        raise ColumnTypeError("columns is a dict from names of columns to their types, as the engine writes both.")
    engine = DIALECTS[dialect]
    name = ".".join(map(engine.dialect.name, table.split(".")))
    return engine.table(name, engine.columns(columns), engine.dialect, _unread)


def _is_text_pair(pair: tuple[object, object]) -> bool:
    return all(isinstance(text, str) for text in pair)


def _unread(sql: str, values: list[list[Any]]) -> NoReturn:  # noqa: ARG001 - as every `Fetch`
    raise ParameterError("a table that is only described is not read: make a Dataset of the data.")
