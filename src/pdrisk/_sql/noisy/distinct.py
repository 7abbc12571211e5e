"""DISTINCT: SELECT DISTINCT by noisy numbers of records for each public key, and AVG(DISTINCT x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, Window, below, rebuilt
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Order, Select, Star, Subquery

MEANS = frozenset({"avg", "mean"})
OCCURS = Operation(">", (Call("count_star", ()), Constant(0)))


def with_numbers(select: Select) -> Select:
    """SELECT of groups alone, with the condition that somebody is in them; other SELECTs unchanged.

    ``SELECT DISTINCT region`` is ``SELECT region ... GROUP BY region HAVING COUNT(*) > 0``, and so is GROUP BY without
    an aggregate.
    """
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    rest = [node for node in (select.having, select.qualify, *(one.item for one in select.order)) if node is not None]
    if len(nodes) < len(select.items) or any(map(_looks_around, (*nodes, *rest))):
        return select
    if select.distinct and select.groups == () and select.having is None:
        places = tuple(Constant(at) for at in range(1, len(nodes) + 1))
        select = replace(select, distinct=False, groups=places)
    if select.groups == ():
        return select
    return replace(select, having=OCCURS if select.having is None else Operation("and", (OCCURS, select.having)))


def each_once(select: Select) -> tuple[Select, Select | None]:
    """SELECT DISTINCT as a SELECT without DISTINCT, and a SELECT over it that leaves each row once.

    None where GROUP BY leaves each row once already.
    """
    if not select.distinct or _shows_all_groups(select):
        return replace(select, distinct=False), None
    inner = replace(select, distinct=False, order=(), limit=None, offset=None)
    nodes = [item for item, _ in select.items]
    order = tuple(
        Order(Constant(nodes.index(one.item) + 1) if one.item in nodes else one.item, one.how) for one in select.order
    )
    outer = Select(((Star(), ""),), Subquery(inner, "", ()), distinct=True, order=order)
    return inner, replace(outer, limit=select.limit, offset=select.offset)


def without_means_of_different(select: Select) -> Select:
    """SELECT with SUM(DISTINCT x) / COUNT(DISTINCT x) for each AVG(DISTINCT x)."""

    def quotient(node: Node) -> Node | None:
        if not (isinstance(node, Call) and node.name in MEANS and node.distinct):
            return None
        number = Call("nullif", (replace(node, name="count"), Constant(0)))
        return Operation("/", (replace(node, name="sum"), number))

    return rewritten(select, quotient)


def rewritten(select: Select, change: Callable[[Node], Node | None]) -> Select:
    """SELECT with nodes of what it computes of groups replaced, wherever ``change`` does not return None.

    Its columns keep their headings.
    """

    def of(node: Node) -> Node:
        return rebuilt(node, change)

    items: list[tuple[Node | Star, str]] = []
    for item, alias in select.items:
        if isinstance(item, Star) or (changed := of(item)) == item:
            items.append((item, alias))
        else:
            items.append((changed, alias or heading(item)))
    return replace(
        select,
        items=tuple(items),
        having=None if select.having is None else of(select.having),
        qualify=None if select.qualify is None else of(select.qualify),
        order=tuple(Order(None if one.item is None else of(one.item), one.how) for one in select.order),
    )


def _shows_all_groups(select: Select) -> bool:
    if select.groups is None:
        return True
    shown: list[Node | Star] = [item for item, _ in select.items]
    aliases = {lowered(alias) for _, alias in select.items}

    def is_shown(group: Node) -> bool:
        by_name = isinstance(group, Column) and not group.qualifiers and lowered(group.name) in aliases
        return isinstance(group, Constant) or by_name or group in shown

    return bool(select.groups) and all(map(is_shown, select.groups))


def _looks_around(node: Node) -> bool:
    return any(isinstance(part, Window) or (isinstance(part, Call) and part.name in AGGREGATES) for part in below(node))
