"""Identity of the tables of a connection: where they are stored; no rows are read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pdrisk.engines.sql.servers.duckdb_engine import asked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def file_place(connection: DuckDBPyConnection, path: str | tuple[str, ...]) -> str | None:
    """Place of files: paths, sizes and times, with the settings they are read with; None for patterns and URLs."""
    if isinstance(path, tuple):
        places = [file_place(connection, file) for file in path]
        return None if None in places else repr(places)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if any(sign in path for sign in "*?["):
        return None
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns} {_settings(connection)}"


def table_place(connection: DuckDBPyConnection, database: str) -> str | None:
    """Place of a table: its database file, with the settings it is read with; None for one in memory."""
    rows = asked(connection, _PATH, [database])
    path = rows[0][0] if rows else None
    return f"{os.path.realpath(path)} {_settings(connection)}" if path and os.path.isfile(path) else None


def _settings(connection: DuckDBPyConnection) -> str:
    """Settings that decide the values of expressions."""
    return repr(sorted(asked(connection, _SETTINGS, [])))


_PATH = "SELECT path FROM system.main.duckdb_databases() WHERE database_name = $1"
_SETTINGS = """
SELECT name, value FROM system.main.duckdb_settings()
WHERE name IN ('TimeZone', 'Calendar', 'default_collation', 'ieee_floating_point_ops', 'integer_division')
"""
