"""Column headings, much as DuckDB names them: how an expression is written, and numbers for names that repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pdrisk._model.expressions.nodes import Call, Case, Cast, Column, Constant, LookedUp, Node, Operation, Window
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.pieces import case, lowered, operation, written_constant


def heading(node: Node, name_of: Callable[[Column], str] = lambda column: column.name) -> str:
    """An expression as text: the name of an unnamed column, or a condition as people read it.

    Options of dp_ functions are left out, and parameters stand there by name: their values are not the query's.

    ``name_of``: what stands for a column.
    """

    def written(node: Node) -> str:
        match node:
            case Column():
                return name_of(node)
            case Constant(value, given):
                plain = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
                return given or (str(value) if plain else written_constant(value))
            case Cast(operand, to, forgiving):
                return f"{'TRY_CAST' if forgiving else 'CAST'}({written(operand)} AS {to})"
            case LookedUp(said=said):
                return said
            case Case(branches, otherwise):
                return case([(written(when), written(then)) for when, then in branches], written(otherwise))
            case Call():
                return _call(node, written)
            case Window(function, partitions, order, frame):
                parts = [f"PARTITION BY {', '.join(map(written, partitions))}"] if partitions else []
                items = ", ".join(f"{written(expression)} {how}".strip() for expression, how in order)
                parts += [f"ORDER BY {items}"] if items else []
                return f"{written(function)} OVER ({' '.join([*parts, frame]).strip()})"
        assert isinstance(node, Operation)
        return operation(node.symbol, list(map(written, node.parts)))

    return written(node)


def _call(node: Call, written: Callable[[Node], str]) -> str:
    if node.name in AGGREGATES:
        kept = AGGREGATES[node.name].columns + AGGREGATES[node.name].statistic.endswith("quantile")
        positional = [part for at, part in enumerate(node.arguments[:kept]) if not (node.names and node.names[at])]
        text = f"{node.name}({'DISTINCT ' * node.distinct}{', '.join(map(written, positional))})"
        return text if node.condition is None else f"{text} FILTER (WHERE {written(node.condition)})"
    parts = list(map(written, node.arguments))
    return f"{node.name}({', '.join(parts)})" if node.name[0].isalpha() else operation(node.name, parts)


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number where a name is repeated."""
    taken: dict[str, str] = {}
    tried: dict[str, int] = {}
    for name in names:
        free, at = name, tried.get(name, 1)
        while lowered(free) in taken:
            free, at = f"{name}_{at}", at + 1
        tried[name] = at
        taken[lowered(free)] = free
    return tuple(taken.values())
