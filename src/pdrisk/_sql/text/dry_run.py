"""Dry run: statements shown to a DuckDB without people. Its refusals cost nothing and hold no data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pdrisk._model.expressions.kinds import DATE, INTERVAL, NUMBER, TIME, TRUTH, ZONED
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import Expression, kind_of_type, quoted
from pdrisk._sql.text.no_select import DEPTH, too_deep
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COMPUTED = (NUMBER, TRUTH, DATE, TIME, ZONED, INTERVAL)  # an ENUM would bring its labels along


def types(columns: Mapping[str, str], expressions: Sequence[Expression], has_parameters: bool = False) -> list[str]:
    """The SQL types of expressions over columns of these types, by name."""
    if all(value.type not in ("", "constant") for value in expressions):
        return [value.type for value in expressions]
    listed = ", ".join(value.sql for value in expressions)
    nothing = typed_nothing({name: sql_type for name, sql_type in columns.items() if quoted(name) in listed})
    return [row[1] for row in described(f"SELECT {listed} FROM {nothing}", has_parameters)]


def typed_nothing(columns: Mapping[str, str]) -> str:
    """One row of NULLs with columns of these types."""
    listed = [
        f"CAST(NULL AS {sql_type if _is_computed(sql_type) else 'VARCHAR'}) AS {quoted(name)}"
        for name, sql_type in columns.items()
    ]
    return f"(SELECT {', '.join([*listed, '1 AS one'])}) AS typed_nothing"


def _is_computed(sql_type: str) -> bool:
    return kind_of_type(sql_type) in _COMPUTED or sql_type.startswith("TIMESTAMP_")


def described(sql: str, has_parameters: bool = False) -> list[tuple[str, str]]:
    """Names and types of a statement's result.

    ``has_parameters``: whether values of parameters are in it, which DuckDB could quote.
    """
    rows: list[tuple[str, str]] = _tried(lambda bench: bench.execute(f"DESCRIBE {sql}").fetchall(), has_parameters)
    return rows


def computed(sql: str, has_parameters: bool = False) -> None:
    """Result of a statement that reads nothing, as a frame; fails as `described` does."""
    _tried(lambda bench: bench.execute(sql).df(), has_parameters)


def _tried(work: Callable[[DuckDBPyConnection], Any], has_parameters: bool) -> Any:
    bench = workspace.bench()
    try:
        return work(bench)
    except Exception as error:  # noqa: BLE001 - pandas and Python fail too, on numbers and dates they cannot hold
        message = str(error).split("\n")[0]
    finally:
        bench.close()
    if DEPTH in message:
        raise too_deep()
    if has_parameters:
        message = (
            "an expression of the query does not fit the values of its parameters, or has arguments of wrong types."
        )
    raise ParameterError(f"DuckDB cannot compute this: {message}")
