"""One opener: what kind of data a Dataset, a population or a file is, and the table of each kind."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any, Final

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._tables.duckdb_tables import DIALECT, DuckDBTable, ParquetFiles
from pdrisk._tables.postgres_table import PostgresTable, server_of
from pdrisk.engines.columnar.streams import streams_read
from pdrisk.engines.columnar.table import ColumnTable, column_table
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.engines.sql.servers.spark_engine import SparkFrame, is_spark
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ColumnTypeError, ParameterError

RELATION: Final = "DuckDBPyRelation"


def recognised(data: Any) -> Any:
    """A frame, of which streams of Arrow and relations of DuckDB become one, or a table elsewhere, not opened yet.

    None for anything else.
    """
    (data,) = streams_read({"": data}).values()
    if type(data) is tuple and len(data) == 2 and isinstance(data[1], str) and not data[1].endswith(".parquet"):
        if (server := server_of(data[0])) is not None:
            return PostgresTable(server, data[1])
        if any(base.__name__ == "DuckDBPyConnection" for base in type(data[0]).__mro__):
            return DuckDBTable(*data)
        raise ColumnTypeError(
            "a table is given as (connection, name), with a connection of DuckDB or psycopg, or SQLAlchemy's to "
            f"PostgreSQL, not {type(data[0]).__name__}."
        )
    if server_of(data) is not None:
        raise ParameterError(
            "this is a server, with many tables: name one, as in pdrisk.Dataset((url, 'survey.people')), and keep "
            "the password in ~/.pgpass or PGPASSWORD."
        )
    if type(data).__name__ == RELATION:
        return guarded(data.to_arrow_table)
    if is_spark(data):
        return SparkFrame(data)
    if is_frame(data):
        return data
    return ParquetFiles(data) if is_path(data) else None


def opened(data: object, columns: Sequence[Hashable]) -> FrameTable | ColumnTable | SQLTable:
    """Table of a population, of any kind of data, as it is stored now; of a relation these columns alone are read."""
    if type(data).__name__ == RELATION:
        relation: Any = data
        data = relation.project(", ".join(DIALECT.name(name) for name in relation.columns if name in columns) or "*")
    source = recognised(data)
    if isinstance(source, DuckDBTable | ParquetFiles | PostgresTable | SparkFrame):
        return source.table()
    if source is not None:
        return column_table(source) or FrameTable(source)
    raise ColumnTypeError(
        "population must be a pandas, Polars or Arrow table, the path of a Parquet file, a DuckDB relation, "
        f'(connection, "table") of DuckDB or PostgreSQL, or a DataFrame of Spark, not of type {type(data).__name__}.'
    )


def is_frame(value: object) -> bool:
    """Whether it is a frame in memory, or one that is computed in Python, which DuckDB reads, too."""
    module, kind = type(value).__module__.partition(".")[0], type(value).__name__
    known = {"polars": ("DataFrame", "LazyFrame"), "pyarrow": ("Table", "RecordBatch")}
    is_dataset = module == "pyarrow" and kind.endswith("Dataset")
    return isinstance(value, pd.DataFrame) or kind in known.get(module, ()) or is_dataset


def is_path(value: object) -> bool:
    """Whether it is the path of a file, or a list of paths."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(listed, os.PathLike | str) and is_path(listed) for listed in value)
    path = os.fspath(value) if isinstance(value, os.PathLike | str) else None
    return isinstance(path, str) and bool(path) and "\0" not in path
