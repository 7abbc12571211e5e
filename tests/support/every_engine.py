"""Every engine, opened on a small table: what the fixture ``engine`` gives."""

import shutil
import weakref
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pdrisk._model.unit import of_this_process
from pdrisk._sql.dataset.dataset_tables import ONE_TABLE, tables_given
from pdrisk._tables.postgres_table import PostgresTable
from pdrisk.engines.columnar.table import column_table
from pdrisk.engines.numpy.frame import FrameEngine
from pdrisk.engines.sql.dialects.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_types import stored_columns
from pdrisk.engines.sql.servers.schema_only import DIALECTS
from pdrisk.engines.sql.servers.sql_table import SQLTable
from warehouses import on_duckdb

DTYPES = {"DOUBLE": "float64", "BIGINT": "Int64", "TINYINT": "Int8", "DECIMAL(20, 4)": object}


def of_frame(table, query):
    values = [np.nan if x is None and table.type == "DOUBLE" else x for x in table.values]
    others = [*values[-1:], *values[:-1]]
    numbers = {name: pd.Series(own, dtype=DTYPES[table.type]) for name, own in (("x", values), ("y", others))}
    frame = pd.DataFrame(numbers | {"g": pd.Series(table.groups, dtype=object)})
    return FrameEngine(frame, stored=frame)


POLARS = {"DOUBLE": pl.Float64, "BIGINT": pl.Int64, "TINYINT": pl.Int8, "DECIMAL(20, 4)": pl.Decimal(20, 4)}
ARROW = {"DOUBLE": pa.float64(), "BIGINT": pa.int64(), "TINYINT": pa.int8(), "DECIMAL(20, 4)": pa.decimal128(20, 4)}


def in_polars(table):
    kind = POLARS[table.type]
    numbers = {"x": pl.Series("x", table.values, kind), "y": pl.Series("y", table.others, kind)}
    return pl.DataFrame(numbers | {"g": pl.Series(table.groups, dtype=pl.Categorical)}).lazy()


def in_arrow(table):
    kind = ARROW[table.type]
    numbers = {"x": pa.array(table.values, kind), "y": pa.array(table.others, kind)}
    return pa.table(numbers | {"g": pa.array(table.groups, pa.string()).dictionary_encode()})


def of_columns(made):
    def opened(table, query):
        data = column_table(made(table))
        return data.opened(query, data.header, data.header, None, of_this_process)

    return opened


def of_table(con, dialect, columns=stored_columns, fetch=None):
    stored = []  # the last table, which is asked many questions

    def opened(table, query):
        if not any(each is table for each in stored):
            stored[:] = [table]
            con.execute(f"CREATE OR REPLACE TABLE people (x {table.type}, y {table.type}, g VARCHAR)")
            if table.values:
                rows = list(zip(table.values, table.others, table.groups, strict=True))
                con.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        own = columns({"x": table.type, "y": table.type, "g": "VARCHAR"})
        people = SQLTable("people", own, dialect, fetch or partial(fetched, con))
        return people.opened(query, people.header, None, bytes)

    return opened


def of_file():
    """A Parquet file of Arrow's, whose statistics leave NaN out, in small row groups."""
    folder, stored = mkdtemp(), []  # the last table and what is read of it

    def opened(table, query):
        if not stored or stored[0] is not table:
            path = Path(folder) / f"{id(table)}.parquet"
            pq.write_table(in_arrow(table), path, row_group_size=4)
            stored[:] = table, tables_given({ONE_TABLE: path}).fluent()[0]
        return stored[1].opened(query, stored[1].header, None, bytes)

    weakref.finalize(opened, shutil.rmtree, folder)
    return opened


POSTGRES_TYPES = {
    "DOUBLE": "double precision", "BIGINT": "bigint", "TINYINT": "smallint", "DECIMAL(20, 4)": "numeric(20, 4)",
}  # fmt: skip


def of_postgres(connection):
    stored = []  # the last table and what is read of it

    def opened(table, query):
        if not stored or stored[0] is not table:
            of = POSTGRES_TYPES[table.type]
            connection.execute("DROP TABLE IF EXISTS people")
            connection.execute(f"CREATE TABLE people (x {of}, y {of}, g text)")
            rows = zip(table.values, table.others, table.groups, strict=True)
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", list(rows))
            stored[:] = table, PostgresTable(connection, "people").table()
        return stored[1].opened(query, stored[1].header, None, bytes)

    return opened


def of_warehouse(name):
    """The text of a warehouse, which DuckDB runs in translation."""

    def opened(con):
        dialect = DIALECTS[name].dialect

        def columns(types):
            own = {"DOUBLE": "FLOAT64", "VARCHAR": "STRING"} if name == "bigquery" else {}
            return {label: dialect.stored_column(label, own.get(each, each)) for label, each in types.items()}

        return of_table(con, dialect, columns, on_duckdb(con, name))

    return opened


ENGINES = {
    "numpy": lambda con: of_frame,
    "Polars": lambda con: of_columns(in_polars),
    "Arrow": lambda con: of_columns(in_arrow),
    "DuckDB": lambda con: of_table(con, DuckDBDialect()),
    "Parquet": lambda con: of_file(),
    "portable SQL": lambda con: of_table(con, Dialect()),
    "text of BigQuery": of_warehouse("bigquery"),
    "text of Snowflake": of_warehouse("snowflake"),
    "text of Trino": of_warehouse("trino"),
}
