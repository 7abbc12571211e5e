"""Series of constants, ``generate_series(1, 9)`` or ``range`` of them, as the rows of VALUES: nobody is in them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any, Final

from pdrisk._model.expressions.nodes import Call, Cast, Column, Constant, Node, Operation, below, rebuilt
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import written_constant
from pdrisk._sql.syntax.tree import MOST_VALUES, Nothing, Select, Star, Subquery, values_of
from pdrisk.errors import ParameterError

SERIES: Final = ("range", "generate_series")
TYPES: Final = ("DATE", "TIMESTAMP", "INTERVAL", "INTEGER", "BIGINT", "DOUBLE")
#: Of which DuckDB makes INTERVAL 1 DAY.
FUNCTIONS: Final = ("trunc", "to_years", "to_months", "to_weeks", "to_days", "to_hours", "to_minutes", "to_seconds")


def series_in_from(call: Node, alias: str, columns: tuple[str, ...]) -> Subquery | None:
    """A series in FROM as a subquery; None of what is no series of constants."""
    if not isinstance(call, Call) or call.name not in SERIES:
        return None
    arguments = [_written(argument) for argument in call.arguments]
    if None in arguments or any(call.names) or call.condition is not None:
        return None
    function = f"system.main.{call.name}({', '.join(map(str, arguments))})"
    try:
        rows = workspace.bench().execute(f"SELECT * FROM {function} LIMIT {MOST_VALUES + 1}").fetchall()
    except Exception:  # noqa: BLE001 - of DuckDB or of Python
        rows = []
    if not 0 < len(rows) <= MOST_VALUES:
        raise ParameterError(
            f"{call.name} in FROM has from 1 to {MOST_VALUES} rows, of whole numbers or times: pass a longer table in "
            "public=."
        )
    values = values_of([[_node(value)] for (value,) in rows], 0, "col")
    return Subquery(values, alias or call.name, columns or (call.name,))


def with_series(select: Select) -> Select:
    """A SELECT of the UNNEST of a series, without FROM, as one over the series; any other as it is."""
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    calls = {part for node in nodes for part in below(node) if isinstance(part, Call) and part.name == "unnest"}
    if not isinstance(select.source, Nothing) or len(calls) != 1:
        return select
    (unnest,) = calls
    source = series_in_from(unnest.arguments[0], "", ()) if len(unnest.arguments) == 1 else None
    if source is None:
        return select

    def changed(node: Node) -> Node | None:
        return Column(source.columns[0]) if node == unnest else None

    items = ((item if isinstance(item, Star) else rebuilt(item, changed), label) for item, label in select.items)
    return replace(select, items=tuple(items), source=source)


def is_day(node: Node) -> bool:
    """Whether a node is a date that is written out, without a time."""
    return isinstance(node, Constant) and type(node.value) is datetime.date


def _written(node: Node) -> str | None:
    """SQL of a constant of the text; None of anything else."""
    match node:
        case Constant(value, None) if isinstance(value, int | str) and not isinstance(value, bool):
            return written_constant(value)
        case Constant(value, None) if is_day(node):
            return f"CAST({written_constant(str(value))} AS DATE)"
        case Cast(operand, to) if to in TYPES:
            written = _written(operand)
            return None if written is None else f"CAST({written} AS {to})"
        case Call(name, (operand,)) if name in FUNCTIONS:
            written = _written(operand)
            return None if written is None else f"system.main.{name}({written})"
        case Operation("unary -", (Constant() as operand,)):
            written = _written(operand)
            return None if written is None else f"-{written}"
    return None


def _node(value: Any) -> Node:
    if not isinstance(value, datetime.date):
        return Constant(value)
    return Cast(Constant(str(value)), "TIMESTAMP" if isinstance(value, datetime.datetime) else "DATE", True)
