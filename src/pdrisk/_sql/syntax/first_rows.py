"""DISTINCT ON, the first row of each group, as a QUALIFY of row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, Window, below
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk.errors import ParameterError


def first_rows(select: Select, by: Sequence[Node]) -> Select:
    """A SELECT of the first row, in its order, of those that are equal in expressions."""
    partitions = tuple(meant(node, select) for node in by)
    order = tuple(
        (meant(ordering.item, select), ordering.how) for ordering in select.order if ordering.item is not None
    )
    of_windows = any(
        isinstance(part, Window) for node in (*partitions, *(one for one, _ in order)) for part in below(node)
    )
    if select.qualify is not None or of_windows or len(order) < len(select.order):
        raise ParameterError(
            "DISTINCT ON beside QUALIFY, by windows or with ORDER BY ALL is refused: write a subquery for one of them."
        )
    number = Window(Call("row_number", ()), partitions, tuple(one for one in order if one[0] not in partitions))
    return replace(select, qualify=Operation("==", (number, Constant(1))))


def meant(node: Node, select: Select) -> Node:
    """What an item of ON or ORDER BY is, which may be the number or alias of an item of SELECT."""
    aliases = {lowered(alias): item for item, alias in select.items if alias and not isinstance(item, Star)}
    if isinstance(node, Constant) and type(node.value) is int:
        items = [item for item, _ in select.items[: max(node.value, 0)]]
        if len(items) < node.value or not items or any(isinstance(item, Star) for item in items):
            raise ParameterError(f"{node.value} in ON or ORDER BY means no item of SELECT that is known: name it.")
        return items[-1]  # type: ignore[return-value] # no star
    if isinstance(node, Column):
        return node if node.qualifiers else aliases.get(lowered(node.name), node)
    for part in below(node):
        if isinstance(part, Column) and not part.qualifiers and aliases.get(lowered(part.name), part) != part:
            raise ParameterError(f"{part.name} in an expression of ORDER BY may be a column or an alias: write it out.")
    return node
