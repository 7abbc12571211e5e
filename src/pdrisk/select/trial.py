"""Statements shown to a DuckDB without people: what it refuses there costs nothing, and what it says holds no data."""

from __future__ import annotations

from collections.abc import Sequence

from pdrisk.errors import ParameterError
from pdrisk.select import workspace
from pdrisk.select.allowed import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk.select.expressions import Expression, kind_of_type, quoted
from pdrisk.select.sources import Source

__all__ = ["described", "typed_nothing", "types"]

_COMPUTED = (NUMBER, TRUTH, TEXT, DATE, TIME)


def types(source: Source, expressions: Sequence[Expression]) -> list[str]:
    """The SQL types of expressions over the columns of a source."""
    if all(value.type not in ("", "constant") for value in expressions):
        return [value.type for value in expressions]
    listed = ", ".join(value.sql for value in expressions)
    return [row[1] for row in described(f"SELECT {listed} FROM {typed_nothing(source, listed)}")]


def typed_nothing(source: Source, said: str) -> str:
    """One row of NULLs with the types of a source's columns, those that are spoken of."""
    columns = [
        f"CAST(NULL AS {sql_type if kind_of_type(sql_type) in _COMPUTED else 'VARCHAR'}) AS {quoted(name)}"
        for name, sql_type in source.columns.items()
        if quoted(name) in said
    ]
    return f"(SELECT {', '.join([*columns, '1 AS one'])}) AS typed_nothing"


def described(sql: str) -> list[tuple[str, str]]:
    """Names and types of what a statement gives.

    Raises
    ------
    ParameterError
        With DuckDB's words, if it cannot compute it.
    """
    import duckdb

    try:
        rows: list[tuple[str, str]] = workspace.bench().execute(f"DESCRIBE {sql}").fetchall()
    except duckdb.Error as error:
        message = str(error).split("\n")[0]
    else:
        return rows
    raise ParameterError(f"DuckDB cannot compute this: {message}")
