"""Operands of row-wise operations, by kinds: one judge of query strings, ``pd.col`` expressions and SQL.

Each front end finds the kinds of its own operands, by dtype or by SQL type, and tells what to write instead. Two rules
differ: in pandas truth values are numbers, and SQL's NULL, which has no type of its own, stands wherever a value can.
"""

from __future__ import annotations

from pdrisk._model.expressions.kinds import DATE, NOTHING, NUMBER, TIME, TRUTH
from pdrisk._model.expressions.nodes import ARITHMETIC, LOGIC, SIGNS


def gives(symbol: str) -> str:
    """Kind of an operation's result."""
    return NUMBER if symbol in ARITHMETIC or symbol in SIGNS else TRUTH


def takes(symbol: str, kind: str, *, sql: bool = False) -> bool:
    """Whether an operation takes an operand of a kind; comparisons take pairs that are `comparable`."""
    if gives(symbol) == NUMBER:
        return kind in ((NUMBER, NOTHING) if sql else (NUMBER, TRUTH))
    return symbol not in LOGIC or kind == TRUTH or (sql and kind == NOTHING)


def compares_as(kind: str, *, sql: bool = False) -> str:
    """The kind that values are compared as: dates are timestamps."""
    return {DATE: TIME}.get(kind, kind) if sql else {DATE: TIME, TRUTH: NUMBER}.get(kind, kind)


def comparable(kind: str, other: str, *, sql: bool = False) -> bool:
    """Whether values of two kinds can be equal or in an order; those of an unknown kind may be."""
    return NOTHING in (kind, other) or compares_as(kind, sql=sql) == compares_as(other, sql=sql)


def no_arithmetic(symbol: str, shown: str) -> str:
    """The sentence for an operand that is no number."""
    return f"`{symbol.removeprefix('unary ')}` on {shown}: arithmetic takes numbers"
