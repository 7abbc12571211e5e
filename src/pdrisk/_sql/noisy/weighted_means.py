"""Weighted aggregates as people write them: ``SUM(w * y) / SUM(w)``, and functions without a column of weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

from pdrisk._model.expressions.nodes import Call, Cast, Column, Constant, Node, Operation, below
from pdrisk._sql.noisy.distinct import rewritten
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES, WEIGHTED_QUANTILE
from pdrisk._sql.syntax.tree import Select, Star

EXACT = ("DOUBLE", "FLOAT8")  # types of casts that leave numbers what they are here, where all are DOUBLE
Weighing = tuple[Node, Node, Node | None]  # the values, their weights, and a FILTER


def no_weights() -> Hashable:
    """The column of weights where there is no design."""
    return None


def with_weights_of_design(select: Select, weights: Callable[[], Hashable]) -> Select:
    """SELECT in which ``dp_weighted_mean(y)``, and functions like it, have a design's weights as second argument.

    ``weights`` gives their column. It is called only where they are asked for, as it may have to connect to a server.
    """

    def change(node: Node) -> Node | None:
        if not isinstance(node, Call) or not node.arguments:
            return None
        kind = AGGREGATES.get(node.name)
        if kind is None or not kind.is_weighted or _has_weights(node, of_quantile=kind.statistic == WEIGHTED_QUANTILE):
            return None
        if (column := weights()) is None:
            return None
        first, *rest = node.arguments
        names = node.names and (node.names[0], "", *node.names[1:])
        return replace(node, arguments=(first, Column(str(column)), *rest), names=names)

    return rewritten(select, change)


def _has_weights(call: Call, *, of_quantile: bool) -> bool:
    """Whether a call names the column of its weights: its second argument, unless that is an option or the quantile."""
    if len(call.arguments) < 2 or (call.names and call.names[1]):
        return False
    return not (of_quantile and isinstance(call.arguments[1], Constant))


def with_weighted_means(select: Select) -> Select:
    """SELECT with a weighted mean for each ``SUM(w * y) / SUM(w)``, and sums beside it that come from the same draw.

    ``SUM(w)`` is over all records with a weight, and ``SUM(w * y)`` over those that have a y, too: as if y were 0 where
    it is missing. So that is what is weighed. Factors may stand in either order, with casts to DOUBLE around them, and
    NULLIF around sums.
    """
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    nodes += [node for node in (select.having, select.qualify, *(one.item for one in select.order)) if node is not None]
    weighed = [quotient for node in nodes for part in below(node) for quotient in _quotients(part)]
    if not weighed:
        return select

    def change(node: Node) -> Node | None:
        for values, weights, condition in _quotients(node):
            return _call("mean", values, weights, condition)
        for values, weights, condition in weighed:
            if isinstance(node, Call) and _is_sum(node, condition):
                if _bare(node.arguments[0]) == _bare(weights):
                    return _call("count", values, weights, condition)
                if (values, weights) in _factors(node):
                    return _call("sum", values, weights, condition)
        return None

    return rewritten(select, change)


def _quotients(node: Node) -> Iterator[Weighing]:
    """What is weighed, if a node is the quotient of a weighted sum and the sum of its weights."""
    if not (isinstance(node, Operation) and node.symbol == "/"):
        return
    above, below_ = map(_bare, node.parts)
    if isinstance(below_, Call) and _is_sum(below_, below_.condition) and _is_sum(above, below_.condition):
        weights = below_.arguments[0]
        for values, other in _factors(above):
            if _bare(other) == _bare(weights):
                yield values, weights, below_.condition
                return


def _is_sum(node: Node, condition: Node | None) -> bool:
    """Whether a node is the plain sum of one thing, with this FILTER."""
    if not isinstance(node, Call) or node.name != "sum" or len(node.arguments) != 1 or any(node.names):
        return False
    return not (node.distinct or node.ordered) and node.condition == condition


def _factors(node: Node) -> list[tuple[Node, Node]]:
    """Both factors of what is summed, in either order; none if it is no product."""
    product = _bare(node.arguments[0]) if isinstance(node, Call) else node
    if not (isinstance(product, Operation) and product.symbol == "*" and len(product.parts) == 2):
        return []
    first, second = product.parts
    return [(second, first), (first, second)]


def _bare(node: Node) -> Node:
    """A node without casts to DOUBLE and the NULLIF around it."""
    while True:
        match node:
            case Cast(operand, to) if to in EXACT:
                node = operand
            case Call("nullif", (operand, Constant(value))) if value == 0:
                node = operand
            case _:
                return node


def _call(name: str, values: Node, weights: Node, condition: Node | None) -> Call:
    known = Operation("coalesce", (values, Constant(0)))
    return Call(f"dp_weighted_{name}", (known, weights), condition=condition)
