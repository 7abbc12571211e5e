"""HISTOGRAM(x) as one count for each public value of x, which are groups, and a SELECT that makes a MAP of them."""

from __future__ import annotations

from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Column, Node, Operation, Window, below, rebuilt
from pdrisk._sql.expressions.windows import MAP_OF_COUNTS
from pdrisk._sql.noisy.grouping_sets import folded, grouped_item, ordered
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.refusals import not_grouped
from pdrisk._sql.syntax.tree import Order, Select, Star, Subquery
from pdrisk.errors import ParameterError

HISTOGRAM = "histogram"
VALUE, NUMBER = Column("value"), Column("number")


def without_histogram(select: Select) -> Select:
    """SELECT with HISTOGRAM over groups as a SELECT over their counts; other SELECTs unchanged.

    ``SELECT g, HISTOGRAM(x) FROM t GROUP BY g`` is a MAP of x and n for each g of ``SELECT g, x, COUNT(*) AS n FROM t
    GROUP BY g, x``: disjoint groups, which cost eps once.
    """
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    others = [node for node in (select.having, select.qualify, *(one.item for one in select.order)) if node is not None]
    parts = [part for node in (*nodes, *others) for part in below(node)]
    calls = list(dict.fromkeys(part for part in parts if isinstance(part, Call) and part.name == HISTOGRAM))
    if not calls:
        return select
    call, argument = calls[0], _argument(calls[0])
    beside = any(isinstance(part, Window) or (isinstance(part, Call) and part.name in AGGREGATES) for part in parts)
    if len(calls) > 1 or beside or select.having is not None or select.distinct or len(nodes) < len(select.items):
        raise ParameterError(
            "HISTOGRAM must be the only aggregate of its SELECT: write WHERE instead of HAVING, and ask for other "
            "aggregates and histograms in queries of their own."
        )
    written = select.groups
    if written is None:  # GROUP BY ALL
        written = tuple(node for node in nodes if not any(part == call for part in below(node)))
    groups = [grouped_item(node, select) for node in written]
    places = [{folded(node), folded(Column(alias))} for node, alias in groups]
    aliases = {lowered(alias) for _, alias in select.items if alias}

    def stands_for(node: Node) -> Node | None:
        if node == call:
            return Call(MAP_OF_COUNTS, (VALUE, NUMBER))
        for at, names in enumerate(places):
            if folded(node) in names:
                return Column(f"group {at}")
        if isinstance(node, Column) and (node.qualifiers or lowered(node.name) not in aliases):
            raise not_grouped(node)
        return None

    def above(node: Node) -> Node:
        return rebuilt(node, stands_for)

    conditions = [condition for condition in (select.where, call.condition) if condition is not None]
    inner = Select(
        (
            *((node, alias or heading(node)) for node, alias in groups),
            (argument, heading(argument)),
            (
                Call("count_star", ()),
                next((alias for item, alias in select.items if item == call), "") or heading(call),
            ),
        ),
        select.source,
        where=Operation("and", tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None),
        members=select.members,
        groups=(*(node for node, _ in groups), argument),
        ctes=select.ctes,
        functions=select.functions,
        has_parameters=select.has_parameters,
    )
    labels = (*(f"group {at}" for at in range(len(groups))), VALUE.name, NUMBER.name)
    return replace(
        select,
        items=tuple(
            (above(node), alias or heading(node)) for node, (_, alias) in zip(nodes, select.items, strict=True)
        ),
        source=Subquery(inner, "", labels),
        where=None,
        members=(),
        groups=tuple(Column(f"group {at}") for at in range(len(groups))),
        order=tuple(Order(ordered(one.item, aliases, above), one.how) for one in select.order),
        ctes={},
    )


def _argument(call: Call) -> Node:
    """The argument whose values are counted."""
    if len(call.arguments) != 1 or any(call.names) or call.distinct or call.ordered:
        raise ParameterError(
            "HISTOGRAM takes one column or expression and nothing else: for bins, write it of width_bucket(x, 0, 100, "
            "10), or of a CASE."
        )
    return call.arguments[0]
