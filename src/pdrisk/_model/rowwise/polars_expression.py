"""Trees of Polars expressions, by the JSON that Polars writes of them; what is not on the allow-list is refused."""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._model.expressions.nodes import Constant, Node
from pdrisk._model.rowwise.builder import GIVEN, Builder

if TYPE_CHECKING:
    import polars as pl

BINARY = {
    "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=", "Eq": "==", "NotEq": "!=", "And": "and", "Or": "or",
    "LogicalAnd": "and", "LogicalOr": "or", "Plus": "+", "Minus": "-", "Multiply": "*", "TrueDivide": "/",
}  # fmt: skip
OF_ONE = {"Not": "not", "IsNull": "isna", "IsNotNull": "notna"}
CLOSED = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
BEHIND = {
    "Contains": "str.contains", "StartsWith": "str.startswith", "EndsWith": "str.endswith", "Year": "dt.year",
    "Quarter": "dt.quarter", "Month": "dt.month", "Day": "dt.day", "OrdinalDay": "dt.dayofyear", "Hour": "dt.hour",
    "Minute": "dt.minute", "Second": "dt.second",
}  # fmt: skip
OFFERED = (
    "Of Polars, filters take pl.col(name), constants, comparisons, & | ~, + - * /, is_in, is_between, is_null, "
    "is_not_null, str.contains(literal=True), str.starts_with, str.ends_with, and dt.year() to dt.second(); a query "
    "string has more"
)


def is_of_polars(value: object, kind: str) -> bool:
    """Whether something is a Polars object of this class; Polars is not imported for it."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(value, getattr(polars, kind))


def polars_tree(expression: pl.Expr, builder: Builder) -> Node:
    """The tree of an expression."""
    return _node(json.loads(expression.meta.serialize(format="json")), builder)


def _node(tree: Any, builder: Builder) -> Node:
    named: tuple[str, Any] = next(iter(tree.items())) if isinstance(tree, dict) else (str(tree), {})
    kind, of = named
    if _is_constant(tree):
        return builder.constant(_value(tree), "a constant", GIVEN)
    if kind == "Column":
        if of.startswith("^") and of.endswith("$"):
            builder.refuse(f"{of!r} names several columns by a pattern. {OFFERED}.")
        return builder.column(of)
    if kind == "Alias":
        return _node(of[0], builder)
    if kind == "BinaryExpr" and of["op"] in BINARY:
        return builder.operation(BINARY[of["op"]], _node(of["left"], builder), _node(of["right"], builder))
    if kind == "Function":
        return _function(of["function"], of["input"], builder)
    return builder.refuse(f"it uses {of['op'] if kind == 'BinaryExpr' else kind}. {OFFERED}.")


def _function(function: Any, given: list[Any], builder: Builder) -> Node:
    """A call of a function, whose name stands within that of its family."""
    if function == "Negate":
        return builder.operation("unary -", _node(given[0], builder))
    kind, call = next(iter(function.items())) if isinstance(function, dict) else ("", function)
    name, options = next(iter(call.items())) if isinstance(call, dict) else (call, {})
    if kind in ("StringExpr", "TemporalExpr") and name in BEHIND:
        column, *parts = (_node(argument, builder) for argument in given)
        constants = [part for part in parts if isinstance(part, Constant)]
        how = {"regex": False} if name == "Contains" and options["literal"] else {}
        return builder.function(BEHIND[name], column, constants, how)
    if kind not in ("", "Boolean"):
        return _refused(name, builder)
    if name in OF_ONE:
        return builder.operation(OF_ONE[name], _node(given[0], builder))
    if name == "IsBetween" and options["closed"] in CLOSED:
        value, *ends = (_node(argument, builder) for argument in given)
        low, high = (
            builder.operation(symbol, value, end) for symbol, end in zip(CLOSED[options["closed"]], ends, strict=True)
        )
        return builder.operation("and", low, high)
    if name == "IsIn" and _is_constant(given[1]) and not options.get("nulls_equal"):
        return _is_in(_node(given[0], builder), _value(given[1]), builder)
    return _refused(name, builder)


def _refused(function: str, builder: Builder) -> Node:
    return builder.refuse(f"it uses the function {function}. {OFFERED}.")


def _is_in(value: Node, listed: Any, builder: Builder) -> Node:
    """Membership; the comparison beside it changes nothing, and stands in the text of remembered questions."""
    if not isinstance(listed, list) or not listed or any(member is None or member != member for member in listed):
        builder.refuse("what stands in is_in() must be a list of one constant or more, none of them missing.")
    plain = [pd.Timestamp(member) if type(member) is dt.date else member for member in listed]
    members = builder.members(plain, "what stands in is_in()", GIVEN)
    first = builder.constant(plain[0], "what stands in is_in()", GIVEN)
    return builder.operation("or", builder.operation("in", value, members), builder.operation("==", value, first))


def _is_constant(tree: Any) -> bool:
    """Whether it is a literal, or what Polars makes of one, as it casts times and gives them a zone."""
    tree = _uncast(tree)
    if not isinstance(tree, dict):
        return False
    return "Literal" in tree or ("Function" in tree and all(map(_is_constant, tree["Function"]["input"])))


def _uncast(tree: Any) -> Any:
    while isinstance(tree, dict) and "Cast" in tree:
        tree = tree["Cast"]["expr"]
    return tree


def _value(tree: Any) -> Any:
    """What Polars makes of a constant; a list of one that holds several."""
    import polars as pl

    held = pl.select(pl.Expr.deserialize(io.BytesIO(json.dumps(tree).encode()), format="json")).to_series()
    literal = _uncast(tree).get("Literal")
    if isinstance(literal, dict) and "Series" in literal:
        return held.to_list()
    value = held.item()
    return value.to_list() if isinstance(value, pl.Series) else value
