"""Sources that are no table of a connection: a frame or a Parquet file, as one connection reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.tables.declared_tables import declared_for, declared_in_file
from pdrisk._sql.tables.frame_types import plain_frame, single_columns
from pdrisk._sql.tables.parquet_meanings import (
    as_meant,
    meanings_in_arrow,
    meanings_in_files,
    metadata,
    whole_in_arrow,
    whole_in_files,
)
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.source_identity import file_place
from pdrisk._tables.duckdb_tables import WHOLE, by_record, described
from pdrisk.engines.sql.servers.parquet_scan import parquet_scan, written_files
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

UNREAD = "pdrisk_column"  # of a frame, tried alone


def of_frame(
    name: str,
    value: Any,
    connection: DuckDBPyConnection,
    registered: str,
    kinds: Callable[..., Any] | None,
    *,
    is_public: bool,
) -> Source:
    """A frame that the caller passed as ``name``, registered under a name of its own on a connection.

    ``kinds`` says of what kind Python objects are, if no value may tell it.
    """
    try:
        plain = plain_frame(value, kinds)
        connection.register(registered, plain.frame)
        columns = described(connection, f"SELECT * FROM {registered}", "this frame", WHOLE)
        names = list(columns)
        untyped, whole = (frozenset(names[at] for at in places) for places in (plain.untyped, plain.whole))
        whole |= whole_in_arrow(value, columns)
        meanings = meanings_in_arrow(value, columns)
        sql, columns = as_meant(registered, columns, meanings)
    except ParameterError:
        raise
    except Exception:  # noqa: BLE001 - which one could depend on a record
        pass
    else:
        return Source(
            by_record(sql, columns),
            columns,
            connection,
            declared_for(value, list(columns)),
            name=lowered(name),
            frame=value,
            untyped=untyped,
            whole=whole - set(meanings),
            public=is_public,
        )
    raise ParameterError(f"DuckDB cannot read the frame {name!r}: leave out {_columns_not_read(connection, value)}.")


def of_file(asked_as: str | tuple[str, ...], connection: DuckDBPyConnection, *, is_public: bool) -> Source:
    """A Parquet file, or several that are one table: a list, a folder or a pattern."""
    sql, path = parquet_scan(asked_as)
    partitions = path is not asked_as
    first = path if isinstance(path, str) else path[0]
    columns = described(connection, f"SELECT * FROM {sql}", *_file_failure(first))
    _check_alike(connection, columns, () if isinstance(path, str) else path, partitions)
    file_metadata = metadata(connection, path)
    declared = declared_in_file(file_metadata)
    meanings = meanings_in_files(connection, path, file_metadata, columns)
    whole = whole_in_files(file_metadata, columns) - set(meanings)
    sql, columns = as_meant(sql, columns, meanings)
    return Source(
        by_record(sql, columns),
        columns,
        connection,
        declared,
        name=os.path.basename(os.path.normpath(str(asked_as)) if partitions else first),
        place=lambda: file_place(connection, path),
        whole=whole,
        public=is_public,
    )


def _check_alike(
    connection: DuckDBPyConnection, columns: Mapping[str, str], paths: tuple[str, ...], partitions: bool
) -> None:
    """Refuse listed files that are missing or have other columns, which DuckDB would find while reading."""
    for path in paths:
        sql = f"SELECT * FROM {written_files(path, partitions=partitions)}"
        if described(connection, sql, *_file_failure(path)) != columns:
            raise ParameterError(
                f"the file {os.path.basename(path)!r} has other columns or types than the first of its list: write "
                "all of them alike."
            )


def _columns_not_read(connection: DuckDBPyConnection, frame: Any) -> str:
    """Columns that keep DuckDB from reading a frame, by their types, and advice."""
    unreadable = []
    for name, column in single_columns(frame):
        try:
            connection.register(UNREAD, column)
            described(connection, f"SELECT * FROM {UNREAD}", "this frame", WHOLE)
        except Exception:  # noqa: BLE001 - whatever it says: the column has no row
            unreadable.append(repr(name))
    return f"{', '.join(unreadable)}, or make numbers or text of it" if unreadable else "columns of unusual types"


def _file_failure(path: str) -> tuple[str, str]:
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
