"""Private DuckDB databases in memory: one that only parses, checks and computes on noisy values, one that reads frames.

The first can reach neither files nor Python variables. Each call works on a cursor of its own, so that threads and
names stay apart; opening a database takes ten milliseconds, a cursor none.
"""

from __future__ import annotations

from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_REMEMBERED = 10_000  # letters of a text: trees are larger by far
_opening = Lock()


@cache
def _closed_database() -> DuckDBPyConnection:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false", "threads": 1, "temp_directory": "", "lock_configuration": "true",
    }  # fmt: skip
    return duckdb.connect(":memory:", config=settings)


@cache
def _open_database() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(":memory:")


def bench() -> DuckDBPyConnection:
    """Connection without people: to parse, to check a statement, and to compute with noisy values."""
    with _opening:
        return _closed_database().cursor()


def reader() -> DuckDBPyConnection:
    """Connection that reads frames and files for one call."""
    with _opening:
        return _open_database().cursor()


def forget() -> None:
    """Open a new database for frames next time: an internal error of DuckDB makes one unusable."""
    with _opening:
        _open_database.cache_clear()


def compute(sql: str, what: str) -> Any:
    """A constant."""
    import duckdb

    try:
        ((value,),) = bench().execute(sql).fetchall()
    except duckdb.Error:  # which may quote the value of a parameter
        pass
    else:
        return value
    raise ParameterError(f"{what} is not well formed: see how DuckDB writes it.")


@cache
def _functions() -> frozenset[str]:
    rows = bench().execute("SELECT DISTINCT function_name FROM system.main.duckdb_functions()").fetchall()
    return frozenset(name.lower() for (name,) in rows)


def is_function(name: str) -> bool:
    """Whether DuckDB has a function of that name."""
    return name.lower() in _functions()


def statements(text: str) -> list[str] | None:
    """Kinds of the statements in DuckDB's words; None for what is no SQL."""
    import duckdb

    try:
        return [statement.type.name for statement in bench().extract_statements(text)]
    except duckdb.Error:
        return None


def serialized(text: str) -> str:
    """DuckDB's tree of the statements, as JSON text."""
    return _remembered(text) if len(text) <= MOST_REMEMBERED else _remembered.__wrapped__(text)


@lru_cache(maxsize=64)
def _remembered(text: str) -> str:
    """The tree, which depends on nothing but the text."""
    row = bench().execute("SELECT system.main.json_serialize_sql(?::VARCHAR)", [text]).fetchone()
    return cast(tuple[str], row)[0]
