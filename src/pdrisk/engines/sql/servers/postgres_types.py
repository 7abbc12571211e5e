"""Types of PostgreSQL: the pandas dtype by which requests are judged, and its values in normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.servers.postgres_engine import PostgresDialect

DIALECT: Final = PostgresDialect()
STRING: Final = pd.StringDtype("python")
WHOLE: Final = {"int2": "Int16", "int4": "Int32", "int8": "Int64"}
FLOATS: Final = {"float4": "float32", "float8": "float64"}
ENCODED: Final = ("text", "varchar", "bpchar", "name")
TEXTS: Final = (*ENCODED, "uuid")
NO_ENCODING: Final = "SQL_ASCII"
US: Final = np.dtype("datetime64[us]")
TIMES: Final = {"date": US, "timestamp": US, "timestamptz": pd.DatetimeTZDtype("us", "UTC")}
DAY: Final = 86_400 * 10**6  # in microseconds
MOST_DIGITS: Final = 300  # on either side of the point, of decimals that every one of is a DOUBLE
LEAST: Final = "2.4703282292062328e-324"  # a decimal that is nearer to 0 than this is no DOUBLE


class CatalogColumn(NamedTuple):
    """Column as the catalog describes it, domains resolved."""

    name: str
    written: str  # its type as people write it
    type: str  # the name of the type below all domains, where that is one of the server's own; else empty
    modifier: int  # that of the type; -1 without one
    labels: Sequence[str] | None  # of an enum, in its order


def stored_column(column: CatalogColumn, encoding: str = "UTF8") -> StoredColumn:
    """Column as `SQLTable` reads it, in a database of this encoding; columns of other types cannot be asked for."""
    name = DIALECT.name(column.name)
    if encoding == NO_ENCODING and column.type in ENCODED:  # any bytes: what is read of them may fail, once it is paid
        return StoredColumn(name, name, np.dtype(object), f"{column.written} in {NO_ENCODING}, without an encoding")
    dtype, value, exact = _read(name, column)
    return StoredColumn(name, value, dtype, column.written, exact)


def _read(name: str, column: CatalogColumn) -> tuple[Any, str, str | None]:
    """The dtype, the values in normal form and, where those are rounded, an expression that tells values apart."""
    if column.labels is not None:
        labels = pd.Index(list(column.labels), dtype=STRING)
        return pd.CategoricalDtype(labels, ordered=True), f"CAST({name} AS TEXT)", None
    if column.type in WHOLE:
        return pd.api.types.pandas_dtype(WHOLE[column.type]), name, None
    if column.type in FLOATS:
        return np.dtype(FLOATS[column.type]), DIALECT.double(name), None
    if column.type == "numeric":
        return np.dtype("float64"), _double_of_decimal(name, column.modifier), name
    if column.type == "bool":
        return pd.BooleanDtype(), name, None
    if column.type in TEXTS:
        return STRING, f"CAST({name} AS TEXT)", None
    if column.type in TIMES:
        first, end = (f"CAST('{year}-01-01' AS {column.type})" for year in ("0001", "10000"))
        count = (
            f"CAST({name} - CAST('1970-01-01' AS DATE) AS BIGINT) * {DAY}"
            if column.type == "date"
            else f"CAST(EXTRACT(EPOCH FROM {name}) * 1000000 AS BIGINT)"
        )
        # Those of the years 1 to 9999, as Python's times; farther ones, and infinities, are missing.
        return TIMES[column.type], f"(CASE WHEN {name} >= {first} AND {name} < {end} THEN {count} END)", None
    return np.dtype(object), name, None


def _double_of_decimal(name: str, modifier: int) -> str:
    """The nearest DOUBLE; the cast raises for decimals beyond the largest and below the least."""
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    double = DIALECT.double(name)
    if modifier >= 4 and digits <= MOST_DIGITS and scale <= MOST_DIGITS:
        return double
    largest = f"CAST('{2**1024 - 2**970 - 1}' AS NUMERIC)"  # what is nearer to 2**1024 is no DOUBLE
    least = f"CAST('{LEAST}' AS NUMERIC)"
    return (
        f"(CASE WHEN {name} BETWEEN -{least} AND {least} THEN {DIALECT.number(0.0)} "
        f"WHEN {name} BETWEEN -{largest} AND {largest} THEN {double} "
        f"WHEN {name} < 0 THEN {DIALECT.negative(DIALECT.infinity)} "
        f"WHEN {name} <= CAST('Infinity' AS NUMERIC) THEN {DIALECT.infinity} END)"
    )
