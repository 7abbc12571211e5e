"""Types of DuckDB: the pandas dtype by which requests are judged, and its values in normal form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect

DIALECT: Final = DuckDBDialect()
WHOLE: Final = {
    "TINYINT": "Int8", "SMALLINT": "Int16", "INTEGER": "Int32", "BIGINT": "Int64",
    "UTINYINT": "UInt8", "USMALLINT": "UInt16", "UINTEGER": "UInt32", "UBIGINT": "UInt64",
}  # fmt: skip
STRING: Final = pd.StringDtype("python")
US: Final = np.dtype("datetime64[us]")
TIMES: Final = {
    "DATE": ("DATE", US), "TIMESTAMP": ("TIMESTAMP", US), "TIMESTAMP_S": ("TIMESTAMP_S", US),
    "TIMESTAMP_MS": ("TIMESTAMP_MS", US), "TIMESTAMP_NS": ("TIMESTAMP_NS", np.dtype("datetime64[ns]")),
    "TIMESTAMP WITH TIME ZONE": ("TIMESTAMPTZ", pd.DatetimeTZDtype("us", "UTC")),
}  # fmt: skip


def stored_columns(types: Mapping[str, str]) -> dict[str, StoredColumn]:
    """The columns of a source, by name.

    ``types``: types by name, as DESCRIBE tells them.
    """
    return {name: _column(DIALECT.name(name), sql_type) for name, sql_type in types.items()}


def columns_for_sql(types: Mapping[str, str], whole: frozenset[str]) -> dict[str, StoredColumn]:
    """The columns of a source for `pdrisk.sql`, by name.

    ``types``: as those of `stored_columns`.
    ``whole``: columns of whole numbers that one missing value would make floats, as which they are computed.
    """
    return {name: _for_sql(DIALECT.name(name), sql_type, name in whole) for name, sql_type in types.items()}


@lru_cache(maxsize=4096)
def _for_sql(name: str, sql_type: str, is_whole: bool) -> StoredColumn:
    if is_whole:
        clean = sql_type not in ("FLOAT", "DOUBLE")
        known = "BIGINT" if sql_type in ("UBIGINT", "HUGEINT", "UHUGEINT") else sql_type  # of floats, no exact one
        return StoredColumn(name, DIALECT.double(name), np.dtype("float64"), known, name if clean else None, clean)
    if sql_type == "INTERVAL":
        micros = f"TRY({DIALECT.call('epoch_us', name)})"
        return StoredColumn(name, micros, np.dtype("timedelta64[us]"), sql_type, name)
    if sql_type.startswith("TIMESTAMP_"):  # which are read in microseconds; DuckDB 1 fails at far ones without TRY
        return _column(f"TRY(TRY_CAST({name} AS TIMESTAMP))", "TIMESTAMP")
    if sql_type == "UBIGINT":
        return StoredColumn(name, DIALECT.double(name), np.dtype("float64"), sql_type, name, clean=True)
    column = _column(name, sql_type)
    return replace(column, clean=column.exact is not None)


def _column(name: str, sql_type: str) -> StoredColumn:
    dtype, value, same = _read(name, sql_type)
    return StoredColumn(name, value, dtype, sql_type, same)


def _read(name: str, sql_type: str) -> tuple[Any, str, str | None]:
    """The dtype, the values in normal form and, where those are rounded, an expression that tells values apart."""
    if sql_type in WHOLE:
        return pd.api.types.pandas_dtype(WHOLE[sql_type]), name, None
    if sql_type == "FLOAT":
        return np.dtype("float32"), name, None
    if sql_type == "DOUBLE":
        return np.dtype("float64"), name, None
    if (sql_type.startswith("DECIMAL") and not sql_type.endswith("]")) or sql_type in ("HUGEINT", "UHUGEINT"):
        return np.dtype("float64"), f"CAST({name} AS DOUBLE)", name
    if sql_type in ("VARCHAR", "UUID"):
        return STRING, f"CAST({name} AS VARCHAR)", None
    if sql_type.startswith("ENUM(") and not sql_type.endswith("]"):
        labels = [label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", sql_type)]
        return pd.CategoricalDtype(pd.Index(labels, dtype=STRING), ordered=True), f"CAST({name} AS VARCHAR)", None
    if sql_type == "BOOLEAN":
        return pd.BooleanDtype(), name, None
    if sql_type in TIMES:
        short, dtype = TIMES[sql_type]
        count = DIALECT.call("epoch_ns" if short == "TIMESTAMP_NS" else "epoch_us", name)
        return dtype, f"(CASE WHEN {_of_this_age(name, short)} THEN {count} END)", None
    return np.dtype(object), name, None


def _of_this_age(name: str, short: str) -> str:
    """Whether a time lies in the years 1 to 9999, as Python's do; farther ones, and infinities, are missing."""
    if short == "TIMESTAMP_NS":
        return DIALECT.call("isfinite", name)
    return f"{name} >= CAST('0001-01-01' AS {short}) AND {name} < CAST('10000-01-01' AS {short})"
