"""Arithmetic of decimals that are written out: DuckDB computes it exactly, so that 0.06 + 0.01 is 0.07."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Final

from pdrisk._model.expressions.nodes import Call, Cast, Constant, Node, Operation, is_given
from pdrisk._sql.expressions.duckdb_casts import type_of_cast
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import operation, written_constant
from pdrisk.errors import ParameterError

OPERATORS: Final = frozenset({"+", "-", "*", "%"})
FUNCTIONS: Final = frozenset({"abs", "ceil", "ceiling", "floor", "greatest", "least", "mod", "round", "trunc"})


def folded(node: Node) -> Node:
    """The decimal constant that DuckDB makes of an operation on constants; any other node unchanged.

    An operation on floats, and a quotient, is a float: it stays as it is.
    """
    if not any(map(_may_be_decimal, _operands(node))):
        return node
    try:
        value = _computed(_written(node))
    except ParameterError:  # of what is no decimal, or too long for one
        return node
    if not isinstance(value, Decimal):
        return node
    return Constant(value, heading(node) if is_given(node) else None)


def _operands(node: Node) -> tuple[Node, ...]:
    """Operands of an operation that gives a decimal of decimals; none of any other node."""
    match node:
        case Operation(symbol, operands) if symbol in OPERATORS:
            return operands
        case Call(name, arguments) if name in FUNCTIONS and node == Call(name, arguments, node.names):
            return () if any(node.names) else arguments
    return ()


def _may_be_decimal(node: Node) -> bool:
    match node:
        case Constant(value):
            return isinstance(value, Decimal)
        case Operation(_, (part,)):
            return _may_be_decimal(part)
    return isinstance(node, Cast)


def _written(node: Node) -> str:
    """Constants, and operations on them, in DuckDB's SQL."""
    match node:
        case Constant(Decimal() as value) if type(node) is Constant and value.is_finite():
            return f"({value:f})"
        case Constant(int() | float() | str() as value) if type(node) is Constant and type(value) is not bool:
            return written_constant(value)
        case Operation("unary -" | "unary +" as symbol, (part,)):
            return operation(symbol, [_written(part)])
        case Cast(operand, to, False):
            return f"CAST({_written(operand)} AS {type_of_cast(to)})"
        case Call(name, operands) if _operands(node):
            return f"{name}({', '.join(map(_written, operands))})"
        case Operation(symbol, operands) if symbol == "/" or _operands(node):
            return operation(symbol, list(map(_written, operands)))
    raise ParameterError("no constant")


@lru_cache(maxsize=1024)
def _computed(sql: str) -> object:
    return workspace.compute(f"SELECT {sql}", "the constant")
