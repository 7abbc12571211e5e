"""Tables, views and Parquet files that DuckDB reads, as they are stored."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from pdrisk.engines.sql.dialects.dialect import BY_RECORD, DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.parquet_scan import parquet_scan
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

POPULATION: Final = "what population names"  # as which alone these are read as they are stored
WHOLE: Final = "see whether it exists and is whole"
DIALECT: Final = DuckDBDialect()


@dataclass(frozen=True, slots=True)
class DuckDBTable:
    """A table or view of a connection to DuckDB."""

    connection: DuckDBPyConnection
    name: str  # with its schema and database before it, if need be

    def table(self) -> SQLTable:
        """The table on a cursor, so that results that are open stay."""
        import duckdb

        try:
            reader = self.connection.cursor()
            try:
                relation = reader.table(self.name)
            except duckdb.CatalogException:  # a temporary table, which no cursor sees
                reader, relation = self.connection, self.connection.table(self.name)
            types = dict(zip(relation.columns, map(str, relation.types), strict=True))
            source = f"({relation.sql_query()}) AS stored"
        except duckdb.Error as error:
            failure = type(error).__name__
        else:
            # A view may be of Parquet files.
            return SQLTable(by_record(source, types), stored_columns(types), DIALECT, partial(fetched, reader))
        raise ParameterError(f"DuckDB cannot open {POPULATION} ({failure}): {WHOLE}.")


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """A Parquet file, or several that are one table: a list, a folder or a pattern."""

    given: Any

    @property
    def paths(self) -> str | tuple[str, ...]:
        """The path as text, or those of a list."""
        return os.fspath(self.given) if isinstance(self.given, os.PathLike | str) else tuple(map(os.fspath, self.given))

    @property
    def files(self) -> tuple[str, ...]:
        """All files, by name; fails if a folder or pattern has none."""
        paths = parquet_scan(self.paths)[1]
        return (paths,) if isinstance(paths, str) else paths

    def frame(self) -> pd.DataFrame:
        """All rows as pandas holds them; folders such as ``year=2020`` are a column of text."""
        first, *others = files = self.files
        if not others and first == self.paths:
            return pd.read_parquet(first)
        import pyarrow as pa
        import pyarrow.dataset

        folders = re.findall(r"([^/\\]+)=[^/\\]*[/\\]", first)
        parts = pa.dataset.partitioning(pa.schema([(name, pa.string()) for name in folders]), flavor="hive")
        frame: pd.DataFrame = pa.dataset.dataset(list(files), partitioning=parts).to_table().to_pandas()
        return frame

    def table(self) -> SQLTable:
        """The files, read by a connection of their own."""
        import duckdb

        connection, (sql, _) = duckdb.connect(), parquet_scan(self.paths)
        types = described(connection, f"SELECT * FROM {sql}", POPULATION, WHOLE)
        return SQLTable(by_record(sql, types), stored_columns(types), DIALECT, partial(fetched, connection))


def described(connection: DuckDBPyConnection, sql: str, what: str, advice: str) -> dict[str, str]:
    """SQL types of a SELECT's columns, by name."""
    import duckdb

    try:
        relation = connection.sql(sql)  # planned, not run: DESCRIBE takes three times as long
        return dict(zip(relation.columns, map(str, relation.types), strict=True))
    except duckdb.Error as error:
        failure = type(error).__name__
    raise ParameterError(f"DuckDB cannot open {what} ({failure}): {advice}.")


def by_record(sql: str, columns: Mapping[str, str]) -> str:
    """A source of which DuckDB knows floats by their records alone: of TRY it knows no statistics.

    Not for tables that DuckDB itself stores: it counts NaN among their values, and reads them faster unchanged.
    """
    floats = [DIALECT.name(name) for name, sql_type in columns.items() if sql_type in ("FLOAT", "DOUBLE")]
    tried = ", ".join(f"TRY({name}) AS {name}" for name in floats)
    return f"(SELECT * REPLACE ({tried}) FROM {sql}{BY_RECORD}" if floats else sql
