"""SQLAlchemy's connections, engines and statements, by duckdb-engine, as DuckDB's own connection and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pdrisk._core.foreign import shown
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def connected(con: Any) -> Iterator[DuckDBPyConnection | None]:
    """DuckDB's own connection, open in the block; an engine lends one of its pool."""
    if not _is_of_sqlalchemy(con):
        yield _checked(con)
        return
    import sqlalchemy

    if isinstance(con, sqlalchemy.Engine):
        with con.connect() as opened:
            yield _held(opened)
    else:
        yield _held(con)


def _is_of_sqlalchemy(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "sqlalchemy"


def _checked(con: Any) -> DuckDBPyConnection | None:
    if con is None:
        return None
    import duckdb

    if not isinstance(con, duckdb.DuckDBPyConnection):
        advice = "pass duckdb.connect(path)" if isinstance(con, str) else "pass frames by keyword"
        raise ColumnTypeError(f"con must be a DuckDB connection, not of type {type(con).__name__}: {advice}.")
    return con


def _held(con: Any) -> DuckDBPyConnection:
    """DuckDB's connection in one of SQLAlchemy's."""
    import duckdb
    import sqlalchemy

    if not isinstance(con, sqlalchemy.Connection):
        raise ColumnTypeError(
            f"con must be an Engine or Connection of SQLAlchemy, not of type {type(con).__name__}: pass "
            "session.get_bind() of a Session."
        )
    # duckdb-engine hands every method but cursor() and close() on to the connection it holds.
    execute = getattr(con.connection.driver_connection, "execute", None)
    held = getattr(execute, "__self__", None)
    if not isinstance(held, duckdb.DuckDBPyConnection):
        raise ColumnTypeError(f"con must be a connection to DuckDB, not to {con.dialect.name}.")
    return held


def plain_text(query: Any, params: object) -> tuple[Any, object]:
    """A statement of SQLAlchemy as text with its parameters in their order; every other query as it is."""
    if not _is_of_sqlalchemy(query):
        return query, params
    from sqlalchemy.engine.default import DefaultDialect
    from sqlalchemy.sql import ClauseElement

    if not isinstance(query, ClauseElement):
        raise ColumnTypeError(f"a query is text, not {type(query).__name__}.")
    if params is not None and not isinstance(params, Mapping):
        raise ColumnTypeError(f"params of a statement of SQLAlchemy is a dict, not {type(params).__name__}.")
    dialect = DefaultDialect(paramstyle="numeric_dollar")
    compiled = query.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    given: Mapping[Any, object] = params or {}
    if unknown := [name for name in given if name not in compiled.binds]:
        raise ParameterError(f"the query has no place for parameter {shown(unknown[0])}: take it out of params.")
    if missing := [name for name, bind in compiled.binds.items() if bind.required and name not in given]:
        raise ParameterError(f"the query has no value for :{missing[0]}: pass params={{{missing[0]!r}: ...}}.")
    values = {**compiled.params, **given}
    return compiled.string, [values[name] for name in compiled.positiontup or ()]
