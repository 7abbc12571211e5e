"""Arithmetic of noisy values: computed with what was drawn, and cut to the range of possible results where it is shown.

A count is shown cut at 0, so that sums of shown counts are too large; sums of what was drawn are right on average. Each
noisy number therefore has two columns: what is shown, and what is uncut. ``+ - * /``, SUM, AVG and windows read the
uncut ones; conditions, ORDER BY, CASE, MIN, MAX and functions read what is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from pdrisk._model.expressions.kinds import NOTHING, NUMBER
from pdrisk._model.expressions.nodes import Cast, Constant, Node, Operation
from pdrisk._sql.expressions.duckdb_arithmetic import as_double
from pdrisk._sql.expressions.duckdb_casts import type_of_cast
from pdrisk._sql.expressions.duckdb_functions import ranged
from pdrisk._sql.expressions.judged_expressions import calculated, text
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.syntax.pieces import Expression, case, operation, written_constant
from pdrisk._sql.syntax.ranges import Range

ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "unary -", "unary +"})
NAME: Final = re.compile(r"'(?:[^']|'')*'|\b[a-z]\d+(?:_\d+)?\b")  # of a column of noisy values; or a text, skipped


class Uncut:
    """Scope of arithmetic with uncut numbers; what is no arithmetic is as the scope around has it.

    Attributes
    ----------
    reads : bool
        Whether an uncut number was read.
    """

    def __init__(self, around: Scope) -> None:
        self._around = around
        self.of_people, self.untyped, self.numbers, self.zone = False, around.untyped, around.numbers, around.zone
        self.order, self.windowed = around.order, around.windowed
        self.reads = False

    def known(self, node: Node) -> Expression | None:
        """The uncut number of a node, and how it is computed; each node is judged once.

        Quotients are by what is shown: 0 for a divisor that cannot be.
        """
        match node:
            case Operation("/", (left, right)):
                above, below = text(left, self), text(right, self._around)
                if not {above.kind, below.kind} <= {NUMBER, NOTHING}:
                    return None
                return replace(ranged("/", [above, below]), tree=("/", above.tree, _tree(below)))
            case Operation(symbol, parts) if symbol in ARITHMETIC:
                operands = [text(part, self) for part in parts]
                judged = calculated(node, operands)
                counts = any(part.counts for part in operands)
                counts = counts and all(part.counts or type(part.value) is int for part in operands)
                return replace(judged, counts=counts, tree=_computed(symbol, operands) or ("known", judged.double))
            case Cast(operand, to) if not isinstance(operand, Constant) and type_of_cast(to) == "DOUBLE":
                judged = text(operand, self)
                return replace(as_double(judged), tree=judged.tree) if judged.kind == NUMBER else None
        judged = text(node, self._around)
        self.reads |= bool(judged.uncut)
        uncut = replace(judged, sql=judged.uncut, uncut="", wide="") if judged.uncut else judged
        return replace(uncut, tree=_tree(judged))


def arithmetic(node: Node, scope: Scope) -> Expression | None:
    """Arithmetic as it is shown, with its uncut number if it has one; None of anything else."""
    if not isinstance(node, Operation) or node.symbol not in ARITHMETIC:
        return _replacing_null(node, scope)
    uncut = Uncut(scope)
    judged = text(node, uncut)
    if not uncut.reads:  # judged once more, what is nested would be judged 2**depth times
        return replace(judged, tree=None)
    return shown_column(judged) if judged.kind == NUMBER else None


def _replacing_null(node: Node, scope: Scope) -> Expression | None:
    """COALESCE of a noisy number and a value for a missing one, which another range does not widen; None of others."""
    if not isinstance(node, Operation) or node.symbol != "coalesce" or len(node.parts) != 2:
        return None
    first, second = (text(part, scope) for part in node.parts)
    if not first.uncut or second.uncut or second.kind not in (NUMBER, NOTHING):
        return None
    judged = calculated(node, [first, second])
    if judged.range != first.range:
        return None
    uncut = calculated(node, [replace(first, sql=first.uncut, uncut="", wide=""), second])
    return shown_column(replace(uncut, range=judged.range))


def _tree(expression: Expression) -> Any:
    """How a number is computed, as nested tuples; None where uncut numbers are not all that it is computed of.

    ``("+", left, right)`` and the like; ``("column", name)`` for an uncut number of the layer below, ``("number", x)``
    for a constant, ``("known", sql)`` for what is computed without uncut numbers.
    """
    if expression.uncut:
        return expression.tree
    if isinstance(expression.value, int | float | Decimal) and expression.constant:
        return "number", float(expression.value)
    return "known", expression.double


def _computed(symbol: str, parts: Sequence[Expression]) -> Any:
    """The tree of arithmetic of numbers; None if it is that of dates."""
    if any(part.kind not in (NUMBER, NOTHING) for part in parts):
        return None
    match [part.tree for part in parts]:
        case [tree]:
            return tree if symbol == "unary +" else ("-", ("number", 0.0), tree)
        case [left, right]:
            return symbol, left, right
    raise AssertionError(symbol)


def shown_column(uncut: Expression) -> Expression:
    """An uncut number as it is shown."""
    sql = as_double(uncut).sql
    return replace(uncut, sql=cut(sql, uncut.range), type="DOUBLE", span=None, wide="", uncut=sql)


def cut(sql: str, lies: Range) -> str:
    """A number cut to a range; NULL stays."""
    ends = [("<", lies.lo), (">", lies.hi)]
    branches = [
        (operation(symbol, [sql, limit]), limit)
        for symbol, end in ends
        if math.isfinite(end)
        for limit in [written_constant(int(end) if end.is_integer() else end)]
    ]
    return f"({case(branches, sql)})" if branches else sql


def is_noisy(texts: Sequence[str], known: Container[str]) -> bool:
    """Whether SQL reads one of these columns."""
    return any(match[0] in known for sql in texts for match in NAME.finditer(sql))
