"""Column headings, much as DuckDB names them: how an expression is written, and numbers for names that repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pdrisk._sql.pieces import lowered, written_constant
from pdrisk._sql.statistics import AGGREGATES
from pdrisk._sql.tree import Call, Case, Cast, ColumnReference, Node, SqlConstant

__all__ = ["heading", "unique"]


def heading(node: Node, name_of: Callable[[ColumnReference], str] = lambda column: column.path[-1]) -> str:
    """How an expression is written: a name for a column that has none, or a condition for people.

    Options of dp_ functions are left out, and parameters stand there by name: their values are not the query's.

    Parameters
    ----------
    node : Node
    name_of : callable
        What stands for a column.
    """

    def written(node: Node) -> str:
        match node:
            case ColumnReference():
                return name_of(node)
            case SqlConstant(value, name):
                plain = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
                return name or (str(value) if plain else written_constant(value))
            case Cast(operand, to, forgiving):
                return f"{'TRY_CAST' if forgiving else 'CAST'}({written(operand)} AS {to})"
            case Case(branches, otherwise):
                arms = " ".join(f"WHEN {written(when)} THEN {written(then)}" for when, then in branches)
                return f"CASE {arms} ELSE {written(otherwise)} END"
            case Call():
                return _call(node, written)

    return written(node)


def _call(node: Call, written: Callable[[Node], str]) -> str:
    if node.name in AGGREGATES:
        kept = 2 if AGGREGATES[node.name].statistic == "quantile" else 1
        positional = [part for at, part in enumerate(node.arguments[:kept]) if not (node.names and node.names[at])]
        text = f"{node.name}({', '.join(map(written, positional))})"
        return text if node.condition is None else f"{text} FILTER (WHERE {written(node.condition)})"
    parts = list(map(written, node.arguments))
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
    tried: dict[str, int] = {}
    for name in names:
        free, at = name, tried.get(name, 1)
        while lowered(free) in found:
            free, at = f"{name}_{at}", at + 1
        tried[name] = at
        found[lowered(free)] = free
    return tuple(found.values())
