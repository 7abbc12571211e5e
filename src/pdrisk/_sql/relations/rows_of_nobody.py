"""Rows of a public table that LEFT JOIN keeps where nobody is: no record stands for them.

    regions LEFT JOIN people ──> the records are people, each with her region; the groups are all regions

Such a row has no value of a person, so it counts only in COUNT(*), and where something is said of missing values. Both
are refused: one person more would take such a row away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from pdrisk._model.expressions.nodes import ORDERINGS, Call, Case, Cast, Column, Constant, Node, Operation
from pdrisk._relations.pruned import columns_named
from pdrisk.errors import ParameterError

_OF_ANY_PART: Final = {"==", "!=", *ORDERINGS, "+", "-", "*", "/", "//", "%", "**", "unary -", "not"}
_OF_THE_FIRST: Final = {"in", "between"}
_OF_ALL: Final = {"coalesce", "ifnull", "greatest", "least", "and", "or"}
_NEVER: Final = {"concat", "concat_ws", "isnan", "isinf", "isfinite", "isnull"}


def left_after(conditions: Iterable[Node | None], absent: frozenset[str]) -> frozenset[str]:
    """Columns that rows of nobody lack; none if one of the conditions leaves out all such rows."""
    reading = [node for node in conditions if node is not None and columns_named([node]) & absent]
    if not all(_never_holds(node, absent) for node in reading):
        raise counted("a condition that holds for missing values")
    return frozenset() if reading else absent


def absent_in_join(
    absent: tuple[frozenset[str], frozenset[str]],
    equal: Iterable[tuple[str | None, str | None]],
    how: str,
    columns: frozenset[str],
    *,
    by_person: bool,
) -> frozenset[str]:
    """Columns of a join that rows of nobody still lack.

    ``absent``: what rows of nobody lack in both relations.
    ``equal``: the columns of both that the join compares.
    ``columns``: those of the second relation.
    ``by_person``: whether it compares who a person is.
    """
    first, other = absent
    pairs = list(equal)
    if other and not (by_person or any(column in other for _, column in pairs)):
        raise counted("this join")
    if not first or not (by_person or any(column in first for column, _ in pairs)):
        return first
    return {"LEFT": first | columns, "ANTI": first}.get(how, frozenset())  # of what is missing nothing is found


def check_not_read(nodes: Iterable[Node], absent: frozenset[str], what: str) -> None:
    """Refuse expressions of columns that rows of nobody lack."""
    if any(columns_named([node]) & absent for node in nodes):
        raise counted(what)


def adds_nothing(node: Node | None, kept: Node | None, absent: Collection[str], *, is_sum: bool) -> bool:
    """Whether rows of nobody do not count in an aggregate of an expression, over the rows that its FILTER keeps."""
    if kept is not None and _never_holds(kept, absent):
        return True
    value = None if node is None else _value(node, absent)
    return value is not None and (is_missing(value, absent) or (is_sum and value in (Constant(0), Constant(0.0))))


def counted(what: str) -> ParameterError:
    """The error for what would count rows of nobody."""
    return ParameterError(
        f"LEFT JOIN after a public table keeps its rows without anybody, and {what} would count them: one person more "
        "would take such a row away. Write COUNT(column of people) for COUNT(*), and compare columns of people with "
        "values; groups of nobody are shown as they are."
    )


def _value(node: Node, absent: Collection[str]) -> Node:
    """What stands for an expression in a row of nobody, as far as CASE and COALESCE choose it."""
    match node:
        case Case(branches, otherwise) if all(_never_holds(when, absent) for when, _ in branches):
            return _value(otherwise, absent)
        case Operation("coalesce", parts) | Call("coalesce" | "ifnull", parts):
            known = [part for part in parts if not is_missing(part, absent)]
            return _value(known[0], absent) if known else Constant(None)
    return node


def _never_holds(node: Node, absent: Collection[str]) -> bool:
    """Whether a condition is false or unknown in a row of nobody."""
    match node:
        case Operation("and", parts):
            return any(_never_holds(part, absent) for part in parts)
        case Operation("or", parts):
            return all(_never_holds(part, absent) for part in parts)
        case Operation("notna", (part,)):
            return is_missing(part, absent)
    return is_missing(node, absent)


def is_missing(node: Node, absent: Collection[str]) -> bool:
    """Whether an expression is surely missing in a row of nobody."""
    match node:
        case Column(name):
            return str(name) in absent
        case Constant(value):
            return value is None
        case Cast(operand, _, _):
            return is_missing(operand, absent)
        case Case(branches, otherwise):
            values = [*(value for _, value in branches), otherwise]
            chosen = all(_never_holds(when, absent) for when, _ in branches)
            return is_missing(otherwise, absent) if chosen else all(is_missing(value, absent) for value in values)
        case Operation(symbol, parts) if symbol in _OF_ANY_PART:
            return any(is_missing(part, absent) for part in parts)
        case Operation(symbol, parts) if symbol in _OF_THE_FIRST:
            return is_missing(parts[0], absent)
        case Operation(name, parts) | Call(name, parts) if name in _OF_ALL:
            return all(is_missing(part, absent) for part in parts)
        case Call(name, parts) if name not in _NEVER:
            return any(is_missing(part, absent) for part in parts)
    return False
