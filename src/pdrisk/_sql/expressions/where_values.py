"""Limits that a WHERE sets to an expression: the values it lists, which are the keys of a group."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol

from pdrisk._core.days import day_number
from pdrisk._model.expressions.kinds import DATE, TIME
from pdrisk._model.expressions.nodes import Node, Noisy, Operation, below, is_given
from pdrisk._model.where_bounds import Comparison, listed_ends
from pdrisk._sql.expressions.days import Named, day_of
from pdrisk._sql.expressions.judged_expressions import dated, numbers_read, text
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.syntax.pieces import Day, Expression
from pdrisk._sql.syntax.tree import Scalar

MOST = 1000  # values of a list, or whole numbers between two ends: nobody wants more groups by accident
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RowScope(Scope, Named, Protocol):
    """Scope of records, whose names are columns of a source or expressions of them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit that a condition sets to an expression."""

    sql: str  # the expression
    values: tuple[Scalar, ...] | None = None  # all that it can be
    ends: tuple[tuple[str, Scalar], ...] = ()  # comparisons that hold for it
    day: Day | None = None  # the column of dates or times that it is about: itself, or what only its day decides

    def admits(self, key: Any) -> bool:
        """Whether a key is within the limit; what cannot be compared is admitted."""
        if key is None:
            return False
        key, listed = _as_moment(key), None if self.values is None else [_as_moment(value) for value in self.values]
        if listed is not None and all(_alike(key, value) for value in listed) and key not in listed:
            return False
        ends = ((symbol, _as_moment(end)) for symbol, end in self.ends)
        return all(not _alike(key, end) or _holds(key, symbol, end) for symbol, end in ends)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons that hold for it: those of the text, and those with the least and the largest listed value.

        Dates and times are numbers of days in them.
        """
        ends = tuple((symbol, _in_days(end)) for symbol, end in self.ends)
        return (*ends, *listed_ends(map(_in_days, self.values or ())))

    @property
    def listed(self) -> tuple[Scalar, ...] | None:
        """The values if they are known: as written, or whole numbers between two ends."""
        if self.values is not None:
            return tuple(value for value in self.values if self.admits(value))
        ends = [(symbol, end) for symbol, end in self.ends if type(end) is int]
        lows = [end + (symbol == ">") for symbol, end in ends if symbol in (">", ">=")]
        highs = [end - (symbol == "<") for symbol, end in ends if symbol in ("<", "<=")]
        if not lows or not highs or min(highs) - max(lows) >= MOST:
            return None
        return tuple(range(max(lows), min(highs) + 1))


def limit_of(expression: str, where_limits: Sequence[Limit]) -> Limit | None:
    """Intersection of all limits of an expression."""
    matching = [limit for limit in where_limits if limit.sql == expression]
    if not matching:
        return None
    lists = [limit.values for limit in matching if limit.values is not None]
    values = tuple(value for value in lists[0] if all(value in other for other in lists)) if lists else None
    return Limit(expression, values, tuple(end for limit in matching for end in limit.ends))


def limits(node: Node, scope: RowScope) -> Iterator[Limit]:
    """Limits that hold wherever a condition does; values of parameters set none, as they are not in the text."""
    if not isinstance(node, Operation):
        return
    match node.symbol:
        case "and":
            for part in node.parts:
                yield from limits(part, scope)
        case "or" if len(node.parts) <= MOST:
            yield from _either([list(limits(part, scope)) for part in node.parts])
        case "in" | "between" if len(node.parts) <= MOST and not _is_outside(node):
            yield from _of_constants(node, scope)
        case "==" | "<" | "<=" | ">" | ">=" if not _is_outside(node):
            left, right = _parts(node, scope)
            ways = (left, right, node.symbol), (right, left, _TURNED[node.symbol])
            for (one, other, symbol), part in zip(ways, node.parts, strict=True):
                if _is_written(other) and not one.constant and other.value is not None:
                    yield _compared(one.sql, symbol, other.value, _day(part, one, scope))


def _is_outside(node: Node) -> bool:
    """Whether a constant did not stand in the text: that of a parameter, or a noisy value of a subquery."""
    return is_given(node) or any(isinstance(part, Noisy) for part in below(node))


def _is_written(expression: Expression) -> bool:
    """Whether an expression is a constant of the text, also where a name stands for it."""
    return (
        expression.constant and not expression.given and (expression.node is None or not _is_outside(expression.node))
    )


def _either(parts: list[list[Limit]]) -> Iterator[Limit]:
    """Limits of OR: the values that its parts list for the same expression."""
    first = parts[0]
    if not all(len(part) == 1 and part[0].values is not None and part[0].sql == first[0].sql for part in parts):
        return
    listed = (value for (part,) in parts for value in part.values or ())
    yield replace(first[0], values=tuple(dict.fromkeys(listed)))


def _of_constants(node: Operation, scope: RowScope) -> Iterator[Limit]:
    one, *others = _parts(node, scope)
    if not all(map(_is_written, others)):
        return
    values = tuple(dict.fromkeys(other.value for other in others if other.value is not None))
    day = _day(node.parts[0], one, scope)
    if node.symbol == "in":
        yield Limit(one.sql, values, day=day)
    elif len(others) == 2 and all(other.value is not None for other in others):
        yield Limit(one.sql, None, ((">=", others[0].value), ("<=", others[1].value)), day)


def _compared(sql: str, symbol: str, value: Scalar, day: Day | None) -> Limit:
    return Limit(sql, (value,), day=day) if symbol == "==" else Limit(sql, None, ((symbol, value),), day)


def _day(node: Node, expression: Expression, scope: RowScope) -> Day | None:
    """Column of dates or times that an expression is, or whose day decides it."""
    if expression.column is not None and expression.kind in (DATE, TIME):
        return Day(expression.column, expression.sql, expression.type)
    return day_of(node, scope)


def _parts(node: Operation, scope: RowScope) -> list[Expression]:
    parts = numbers_read(node.parts, scope)
    expressions = [text(part, scope) for part in parts]
    if any(part.kind in (DATE, TIME) for part in expressions):
        expressions = [dated(part, raw) for part, raw in zip(expressions, parts, strict=True)]
    return expressions


def _in_days(value: Any) -> Any:
    return day_number(value) if isinstance(value, datetime.date) else value


def _as_moment(value: Any) -> Any:
    return midnight(value) if isinstance(value, datetime.date) else value


def midnight(value: datetime.date) -> datetime.datetime:
    """A date as the moment at which it begins; a moment unchanged."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())


def _alike(key: Any, value: Any) -> bool:
    """Whether two values can be compared."""
    kinds: tuple[Any, ...] = (str, bool, (int, float, Decimal), datetime.datetime)
    return any(isinstance(key, kind) and isinstance(value, kind) for kind in kinds) and (
        isinstance(key, bool) == isinstance(value, bool)
    )


def _holds(key: Any, symbol: str, end: Any) -> bool:
    return bool({"<": key < end, "<=": key <= end, ">": key > end, ">=": key >= end}[symbol])
