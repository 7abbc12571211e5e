"""How columns are named, much as DuckDB would: how an expression is written, and numbers for names that repeat."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pdrisk.select.expressions import lowered, written_constant
from pdrisk.select.statistics import AGGREGATES
from pdrisk.select.tree import Call, Case, Cast, Column, Constant, Node

__all__ = ["heading", "unique"]


def heading(node: Node) -> str:
    """A name for a column that has none; options of dp_ functions are left out."""
    match node:
        case Column(path):
            return path[-1]
        case Constant(value):
            return str(value) if isinstance(value, int | float | Decimal) else written_constant(value)
        case Cast(operand, to, forgiving):
            return f"{'TRY_CAST' if forgiving else 'CAST'}({heading(operand)} AS {to})"
        case Case(branches, otherwise):
            arms = " ".join(f"WHEN {heading(when)} THEN {heading(then)}" for when, then in branches)
            return f"CASE {arms} ELSE {heading(otherwise)} END"
        case Call():
            return _call(node)


def _call(node: Call) -> str:
    if node.name in AGGREGATES:
        kept = 2 if AGGREGATES[node.name].statistic == "quantile" else 1
        positional = [part for at, part in enumerate(node.arguments[:kept]) if not (node.names and node.names[at])]
        text = f"{node.name}({', '.join(map(heading, positional))})"
        return text if node.condition is None else f"{text} FILTER (WHERE {heading(node.condition)})"
    parts = list(map(heading, node.arguments))
    if node.name == "between":
        return f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})"
    if node.name in ("in", "not in"):
        return f"({parts[0]} {node.name.upper()} ({', '.join(parts[1:])}))"
    if node.name in ("is null", "is not null"):
        return f"({parts[0]} {node.name.upper()})"
    if len(parts) > 1 and (not node.name[0].isalpha() or node.name in ("and", "or") or node.name.startswith("is ")):
        return f"({f' {node.name.upper()} '.join(parts)})"
    if len(parts) == 1 and (not node.name[0].isalpha() or node.name == "not"):
        return f"({node.name.upper()}{' ' * (node.name == 'not')}{parts[0]})"
    return f"{node.name}({', '.join(parts)})"


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, numbered where one would stand twice."""
    found: dict[str, str] = {}
    for name in names:
        free, at = name, 1
        while lowered(free) in found:
            free, at = f"{name}_{at}", at + 1
        found[lowered(free)] = free
    return tuple(found.values())
