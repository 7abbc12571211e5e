"""Frames and files that DuckDB can read, and which of their columns it cannot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._model.plain import check_encodable
from pdrisk._sql.tables.frame_types import single_columns
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["WHOLE", "checked", "described", "file_failure", "is_readable"]

UNREAD = "pdrisk_column"  # of a frame, tried alone
WHOLE = "see whether it exists and is whole"


def described(connection: DuckDBPyConnection, sql: str, what: str, advice: str) -> dict[str, str]:
    """SQL types of a SELECT's columns, by name.

    Raises
    ------
    ParameterError
        If DuckDB cannot open it, with the advice.
    """
    import duckdb

    try:
        relation = connection.sql(sql)  # planned, not run: DESCRIBE takes three times as long
        return dict(zip(relation.columns, map(str, relation.types), strict=True))
    except duckdb.Error as error:
        failure = type(error).__name__
    raise ParameterError(f"DuckDB cannot open {what} ({failure}): {advice}.")


def columns_not_read(connection: DuckDBPyConnection, frame: Any) -> str:
    """Columns that keep DuckDB from reading a frame, by their types, and advice."""
    found = []
    for name, column in single_columns(frame):
        try:
            connection.register(UNREAD, column)
            described(connection, f"SELECT * FROM {UNREAD}", "this frame", WHOLE)
        except Exception:  # noqa: BLE001 - whatever it says: the column has no row
            found.append(repr(name))
    return f"{', '.join(found)}, or make numbers or text of it" if found else "columns of unusual types"


def file_failure(path: str) -> tuple[str, str]:
    """The error for what DuckDB cannot open, with advice."""
    ending = os.path.splitext(path)[1].lower()
    if ending in ("", ".parquet"):
        return "this Parquet file", WHOLE
    if ending in (".duckdb", ".ddb", ".db"):
        return f"this {ending} file as Parquet", "pass a database as a connection, con=duckdb.connect(path)"
    return f"this {ending} file as Parquet", (
        "no other kind of file is read, so read it with pandas (such as pd.read_csv) and pass the frame, or load it "
        "into a table with DuckDB (such as read_csv) and pass the connection"
    )


def is_readable(value: object) -> bool:
    """Whether it is a frame that DuckDB reads, or the path of a file, or a list of paths."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, os.PathLike | str) and is_readable(each) for each in value)
    if isinstance(value, os.PathLike | str):
        path = os.fspath(value)
        return isinstance(path, str) and bool(path) and "\0" not in path
    module, kind = type(value).__module__.partition(".")[0], type(value).__name__
    known = {"polars": ("DataFrame", "LazyFrame"), "pyarrow": ("Table", "RecordBatch")}
    is_dataset = module == "pyarrow" and kind.endswith("Dataset")
    return isinstance(value, pd.DataFrame) or kind in known.get(module, ()) or is_dataset


def checked(name: str, value: object) -> Any:
    """A frame that DuckDB reads, or paths of files as text."""
    if isinstance(value, list | tuple) and is_readable(value):
        paths = tuple(map(os.fspath, value))
        check_encodable(f"a path of {name}=", paths)
        return paths
    if is_readable(value):
        return os.fspath(value) if isinstance(value, os.PathLike) else value
    kind = type(value).__name__
    advice = " Parameters of the query go into params=." if name == "parameters" else ""
    if kind in ("RecordBatchReader", "DuckDBPyRelation"):
        advice = " Pass all its rows: read_all() of a reader, to_arrow_table() or df() of a relation."
    raise ColumnTypeError(
        f"{name}= is no option, so it should be a pandas, Polars or Arrow frame, or the path of a Parquet file, not "
        f"of type {kind}.{advice}"
    )
