"""Bounds of an aggregate's argument: those passed or declared for a column, else those that follow from its parts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from pdrisk._core.universe import Days, Universe
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.kinds import NUMBER, TIME, TRUTH
from pdrisk._model.expressions.nodes import Call, Cast, Column, Node
from pdrisk._model.missing_arguments import missing_argument
from pdrisk._model.query import UNIT, written
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.tables.source import Source as Table
from pdrisk.errors import ParameterError

ROUNDING: Final = ("round", "floor", "ceil", "ceiling", "trunc")


def bounds_of_argument(
    call: Call,
    node: Node | None,
    value: Expression | None,
    given: Mapping[str, Universe] | Universe | None,
    table: Table,
    kind: str = NUMBER,
) -> tuple[Universe, Source]:
    """Bounds of an argument, and their source.

    ``call``: the aggregate.
    ``node, value``: its argument; None for a missing one.
    ``given``: what the caller passed.
    ``table``: whose columns it is made of.
    ``kind``: dates or timestamps, if the argument is the number of days of one.
    """
    name = lowered(node.name) if isinstance(node, Column) else None
    if isinstance(given, Universe):
        if name is not None and AGGREGATES[call.name].columns == 1:
            return given, "given"
    elif name is not None and given is not None and name in given:
        return given[name], "given"
    if value is not None:
        if value.kind == TRUTH:
            return UNIT, "declared"  # by their type
        if (evident := _evident(value, given, table, is_column=name is not None)) is not None:
            universe, source = evident
            return (universe if kind == NUMBER else Days(universe.lo, universe.hi, kind == TIME)), source
    shown = "x" if node is None else heading(node)
    if AGGREGATES[call.name].columns == 2:
        raise ParameterError(
            f"{heading(call)} needs the bounds of {shown}: pass a dict with both, "
            f"bounds={{{shown!r}: (lo, hi), ...}}, or declare them with df.dprisk.declare(bounds=...); an "
            "expression needs a name in a subquery first."
        )
    statistic = AGGREGATES[call.name].statistic
    if name is None:
        raise ParameterError(
            f"{call.name}({shown}) needs the bounds of the expression: write "
            f"dp_{statistic}({shown}, lo := ..., hi := ...)."
        )
    raise missing_argument(
        f"{written(call.name, shown)} needs bounds, the range its values can have: pass "
        f"bounds={{{shown!r}: (lo, hi)}} or schema=, write dp_{statistic}({shown}, lo := ..., hi := ...), or "
        "declare them with df.dprisk.declare(bounds=...).",
        "" if AGGREGATES[call.name].private else "bounds",
    )


def unrounded(item: object) -> object:
    """What a ROUND, FLOOR, CEIL or CAST at the top of an item of SELECT is of; else the item."""
    if isinstance(item, Cast):
        return unrounded(item.operand)
    return unrounded(item.arguments[0]) if isinstance(item, Call) and item.name in ROUNDING else item


def name_in(given: Mapping[str, Universe], node: Node | None, alias: str) -> str | None:
    """By which name a caller's dict has the bounds of an argument: its text, or the alias of the aggregate.

    None if it has none, and for a column whose own name stands there.
    """
    if isinstance(node, Column) and lowered(node.name) in given:
        return None
    if node is not None and not isinstance(node, Column):
        plain_text = _plain(heading(node))
        if (name := next((name for name in given if _plain(name) == plain_text), None)) is not None:
            return name
    return alias if alias in given else None


def _plain(expression: str) -> str:
    """The text of an expression without spaces and parentheses around all of it."""
    text = lowered("".join(expression.split()))
    while text.startswith("(") and text.endswith(")"):
        depths = itertools.accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text[:-1])
        if not all(depths):  # the first one is closed before the end
            break
        text = text[1:-1]
    return text


def _evident(
    value: Expression, given: Mapping[str, Universe] | Universe | None, table: Table, *, is_column: bool
) -> tuple[Universe, Source] | None:
    """Bounds that follow from the argument's parts."""
    used = value.range.columns
    if isinstance(given, Universe) and used and not is_column:
        return None  # whether one pair is that of the columns or of what is made of them, nobody says
    universe = value.range.universe
    if universe is None:
        return None
    stated = [column for column in table.columns if lowered(column) in used & set(table.stated)]
    for column in stated:
        table.known(column).narrowed(table.stated[lowered(column)])
    if isinstance(given, Mapping) and used & set(given):
        return universe, "given"
    return universe, "where" if value.range.by_where else "declared"
