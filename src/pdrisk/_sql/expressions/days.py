"""Days: columns of which the day alone decides an expression, such as its month, as text or as a number."""

from __future__ import annotations

import re
from itertools import chain
from typing import Protocol

from pdrisk._model.expressions.kinds import DATE, TIME
from pdrisk._model.expressions.nodes import Call, Case, Cast, Column, Constant, Node, Operation
from pdrisk._sql.expressions.allowed_functions import PARTS
from pdrisk._sql.expressions.duckdb_dates import interval
from pdrisk._sql.syntax.pieces import Day, Expression

_WITHIN_DAYS = frozenset({"hour", "minute", "second"})
_OF_DAYS = frozenset(PARTS.values()) - _WITHIN_DAYS | {
    "isoyear", "weekofyear", "dayofmonth", "last_day", "dayname", "monthname", "weekday",
}  # fmt: skip
_FORMAT_OF_DAYS = re.compile(r"(%-?[aAwudbBmyYGVjUW%]|[^%])*")


def begins_months(node: Node | None) -> bool:
    """Whether an expression is the beginning of a month, or of a quarter or year."""
    match node:
        case Call("date_trunc" | "datetrunc", (Constant(str() as unit), _)):
            return PARTS.get(unit.lower()) in ("month", "quarter", "year")
    return False


class Named(Protocol):
    """Scope whose names are columns of a source, or expressions of them."""

    def column(self, node: Column) -> Expression:
        """The expression behind a name."""


def day_of(node: Node, scope: Named) -> Day | None:
    """Column whose day alone decides an expression; None if anything else does."""
    days = _days(node, scope)
    return None if days is None or len(days) != 1 else next(iter(days))


def _days(node: Node, scope: Named) -> frozenset[Day] | None:
    """Columns whose days decide an expression; None if anything else does."""
    match node:
        case Constant():
            return frozenset()
        case Column():
            return _of_column(node, scope, times=False)
        case Cast(Column() as column, to, _) if to.upper() == "DATE":
            return _of_column(column, scope, times=True)
        case Call(name, arguments) if arguments and _cuts(name, arguments) and isinstance(arguments[-1], Column):
            return _of_column(arguments[-1], scope, times=True)
        case Call("strftime", (Column() as column, Constant(str() as how))) if _FORMAT_OF_DAYS.fullmatch(how):
            return _of_column(column, scope, times=True)
    parts = [_days(part, scope) for part in _operands(node)]
    known = [part for part in parts if part is not None]
    return frozenset(chain(*known)) if parts and len(known) == len(parts) else None


def _operands(node: Node) -> tuple[Node, ...]:
    match node:
        case Operation():
            return node.parts
        case Call():
            return node.arguments
        case Case():
            return (*chain(*node.branches), node.otherwise)
        case Cast():
            return (node.operand,)
    return ()


def _of_column(node: Column, scope: Named, *, times: bool) -> frozenset[Day] | None:
    expression = scope.column(node)
    if expression.day is not None:
        return frozenset({expression.day})
    if expression.column is None or expression.kind not in ((DATE, TIME) if times else (DATE,)):
        return None
    return frozenset({Day(expression.column, expression.sql, expression.type)})


def _cuts(name: str, arguments: tuple[Node, ...]) -> bool:
    """Whether a function of a time, its last argument, ignores the time of day."""
    first = arguments[0]
    unit = first.value.lower() if isinstance(first, Constant) and isinstance(first.value, str) else ""
    match name:
        case "date_trunc" | "datetrunc" | "date_part" | "datepart":
            return len(arguments) == 2 and PARTS.get(unit, "second") not in _WITHIN_DAYS
        case "time_bucket":
            is_literal = len(arguments) == 2 and isinstance(first, Call | Cast)
            return is_literal and ":" not in str(interval(first).value)  # type: ignore[arg-type] # what is_literal says
    return len(arguments) == 1 and name in _OF_DAYS
