"""Functions that the parser gives and that mean something else: operators, and quantiles WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pdrisk._model.expressions.nodes import ARITHMETIC, SIGNS, Call, Constant, Node, Operation
from pdrisk._sql.syntax.tree import Order
from pdrisk.errors import ParameterError


def operation_of(call: Call) -> Operation | None:
    """Operator for a function that DuckDB has for it, if its brackets hold operands alone."""
    if call.distinct or call.ordered or call.condition is not None or any(call.names):
        return None
    symbol = f"unary {call.name}" if len(call.arguments) == 1 else call.name
    known = symbol in SIGNS or (symbol in ARITHMETIC and len(call.arguments) == 2)
    return Operation(symbol, call.arguments) if known else None


def percentile_of(call: Call, orders: Sequence[Order]) -> Call | None:
    """PERCENTILE_CONT or PERCENTILE_DISC with its column before the quantile, as in QUANTILE_CONT."""
    if call.name not in ("quantile_cont", "quantile_disc") or len(call.arguments) != 1 or len(orders) != 1:
        return None
    (order,), (q,) = orders, call.arguments
    if order.item is None:
        return None
    if order.how.startswith("DESC"):
        q = _from_above(q)
    return replace(call, arguments=(order.item, q), names=("", ""), ordered=False)


def rows_of_frame(node: Node | None) -> int:
    """Number of rows at an end of a window's frame."""
    rows = node.value if isinstance(node, Constant) else None
    if type(rows) is not int or rows < 0:
        raise ParameterError("ROWS of a window takes whole numbers that are written out or parameters.")
    return rows


def _from_above(q: Node) -> Node:
    """Quantile of values in descending order."""
    if isinstance(q, Call) and q.name == "list_value":
        return replace(q, arguments=tuple(map(_from_above, q.arguments)))
    if isinstance(q, Constant) and isinstance(q.value, int | float | Decimal) and not isinstance(q.value, bool):
        return replace(q, value=1 - q.value)
    return q
