"""Constants in conditions: dates that are written as casts, and equalities that make one list."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pdrisk._model.expressions.nodes import Cast, Constant, Node, Operation
from pdrisk.engines.sql.compiler.values import has_column


def plain(node: Node) -> Node:
    """A cast of a text to a date or time as the constant that it is; other nodes unchanged."""
    match node:
        case Cast(Constant(str() as text, given), "DATE" | "TIMESTAMP" as to):
            try:
                moment = dt.date.fromisoformat(text) if to == "DATE" else dt.datetime.fromisoformat(text)
            except ValueError:  # in another form
                return node
            return node if getattr(moment, "tzinfo", None) is not None else Constant(moment, given)
    return node


def with_lists(parts: Sequence[Node]) -> list[Node]:
    """The parts of an OR, in which equalities of one expression with constants, side by side, are one list."""
    merged: list[Node] = []
    for part in parts:
        match part, merged[-1:]:
            case Operation("==", (left, right)), [Operation("in", (before, Constant(list() as listed)))] if (
                before == left and (value := _value(right)) is not None
            ):
                listed.append(value)
            case Operation("==", (left, right)), _ if has_column(left) and (value := _value(right)) is not None:
                merged.append(Operation("in", (left, Constant([value]))))
            case Operation("in", (left, Constant(list() as listed))), _:
                merged.append(Operation("in", (left, Constant([*listed]))))
            case _:
                merged.append(part)
    return merged


def _value(node: Node) -> object:
    """The value of a constant; None if it is none."""
    constant = plain(node)
    return constant.value if isinstance(constant, Constant) else None
