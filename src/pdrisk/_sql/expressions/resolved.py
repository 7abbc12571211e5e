"""Resolved expressions: nodes over the columns of a source, in the words of plans, whatever SQL calls a thing."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from pdrisk._model.expressions.nodes import COMPARISONS, Call, Case, Cast, Column, Constant, Node, Noisy, Operation
from pdrisk._sql.expressions.allowed_functions import PARTS
from pdrisk._sql.expressions.duckdb_casts import type_of_cast
from pdrisk._sql.expressions.duckdb_dates import INTERVALS, interval
from pdrisk._sql.expressions.judged_expressions import TRUNCATED, bucketed, numbers_read, untruncated
from pdrisk._sql.expressions.where_values import RowScope
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import INTEGERS, Expression, limits, written_constant

DISTINCT: Final = {"is distinct from": False, "is not distinct from": True}
#: Operators of SQL that mean something else than the one of pandas: they cut towards zero.
TRUNCATING: Final = {"//": "//", "%": "%", "mod": "mod", "**": "pow", "^": "pow", "power": "pow"}
SAME: Final = {"datepart": "date_part", "datetrunc": "date_trunc", "datediff": "date_diff", "datesub": "date_sub"}


def resolved(node: Node, scope: RowScope) -> Node:
    """The node with columns of the source in the place of names.

    ``node``: judged before, in this scope.
    """
    return _Resolver(scope).of(node)


class _Resolver:
    def __init__(self, scope: RowScope) -> None:
        self.scope = scope

    def of(self, node: Node) -> Node:
        """The node, in words of plans."""
        match node:
            case Column():
                column = self.scope.column(node)
                # Beside most things a column of 32 bits is one of 64: what of it is not, `compared` says.
                return Cast(_node(column), "DOUBLE", True) if column.type == "FLOAT" else _node(column)
            case Constant(Decimal() as number) if type(node) is Constant:
                return Constant(int(number) if number == number.to_integral_value() else float(number), node.given)
            case Case(branches, otherwise):
                return Case(tuple((self.of(when), self.of(then)) for when, then in branches), self.of(otherwise))
            case Cast() if node.to.startswith(TRUNCATED):
                return self.of(untruncated(node, self.scope))
            case Cast(Constant(Decimal() as number, given), to, _) if (kind := type_of_cast(to)) in INTEGERS:
                # As DuckDB rounds decimals, halves away from zero; what does not fit is found out where it is judged.
                whole = int(number.to_integral_value(ROUND_HALF_UP))
                low, high = limits(kind)
                return Constant(whole if low <= whole <= high else None, given)
            case Cast(operand, to, forgiving):
                return self.interval(node) if to.upper() == "INTERVAL" else Cast(
                    self.of(operand), type_of_cast(to), forgiving
                )  # fmt: skip
            case Call():
                return self.call(node)
            case Operation(symbol, parts):
                return self.operation(symbol, parts)
        return node

    def call(self, node: Call) -> Node:
        name, arguments = SAME.get(node.name, node.name), node.arguments
        match name, arguments:
            case "if", (condition, then, otherwise):
                return self.of(Case(((condition, then),), otherwise))
            case "nullif", (value, _):
                return self.of(Case(((Operation("==", arguments), Constant(None)),), value))
            case "isnan", (value,):
                return _missing("isna", self.of(value))
            case "width_bucket", (value, lo, hi, n):
                return self.of(bucketed(value, lo, hi, n))
            case "date_part", (Constant(str() as unit), value):
                unit = unit.lower()
                if unit == "epoch":
                    return Call("epoch", (self.of(value),))
                return Call(name, (Constant(PARTS.get(unit, unit)), self.of(value)))
            case "date_add", (value, step):
                return self.operation("+", (value, step))
            case (("+" | "-"), (value,)):
                return self.operation(f"unary {name}", (value,))
            case (("+" | "-" | "*" | "/"), _):
                return self.operation(name, arguments)
        if name in INTERVALS:
            return self.interval(node)
        return Call(TRUNCATING.get(name, name), tuple(map(self.of, arguments)))

    def operation(self, symbol: str, parts: tuple[Node, ...]) -> Node:
        match symbol, parts:
            case "between", (value, low, high):
                low_end, high_end = self.compared(">=", (value, low)), self.compared("<=", (value, high))
                return Operation("and", (low_end, high_end))
            case (("in" | "not in"), (value, *members)):
                return self.member(symbol, value, tuple(members))
            case "try", (value,):
                return self.of(value)
            case (("is distinct from" | "is not distinct from"), (one, other)):
                return self.distinct(one, other, same=DISTINCT[symbol])
            case (("isna" | "notna"), (value,)):
                return _missing(symbol, self.of(value))
            case ("unary -", (Constant(int() | float() | Decimal() as number, given),)):
                return self.of(Constant(-number, given))
        if symbol in COMPARISONS:
            return self.compared(symbol, parts)
        if symbol in TRUNCATING:
            return Call(TRUNCATING[symbol], tuple(map(self.of, parts)))
        return Operation(symbol, tuple(map(self.of, parts)))

    def compared(self, symbol: str, parts: tuple[Node, ...]) -> Node:
        return Operation(symbol, self.sides(parts))

    def sides(self, parts: tuple[Node, ...]) -> tuple[Node, ...]:
        """Operands of a comparison: columns of 32 bits are compared in 32 bits with what has no exponent."""
        parts = numbers_read(parts, self.scope)
        columns = [self.scope.column(part) if isinstance(part, Column) else None for part in parts]
        is_narrow = [column is not None and column.type == "FLOAT" for column in columns]
        literals = [isinstance(part, Constant) and not isinstance(part.value, float) for part in parts]
        if not any(is_narrow) or not all(map(max, is_narrow, literals)):
            return tuple(map(self.of, parts))
        return tuple(
            _node(column) if column is not None else self.of(part) for column, part in zip(columns, parts, strict=True)
        )

    def member(self, symbol: str, value: Node, members: tuple[Node, ...]) -> Node:
        """Membership: in a list of constants, or equality with one of the others."""
        operand, *rest = self.sides((value, *members))
        known = [side for side in rest if isinstance(side, Constant) and side.value is not None]
        listed = [constant.value for constant in known]
        noisy = next((constant for constant in known if isinstance(constant, Noisy)), None)
        list_of = Constant(listed) if noisy is None else replace(noisy, value=listed)
        parts: list[Node] = [Operation("in", (operand, list_of))] if listed else []
        parts += [Constant(None) for side in rest if isinstance(side, Constant) and side.value is None]
        parts += [Operation("==", (operand, side)) for side in rest if not isinstance(side, Constant)]
        membership = parts[0] if len(parts) == 1 else Operation("or", tuple(parts))
        return membership if symbol == "in" else Operation("not", (membership,))

    def distinct(self, one: Node, other: Node, *, same: bool) -> Node:
        """Equality that takes two missing values for equal."""
        left, right = self.sides((one, other))
        missing = [_missing("isna", side) for side in (left, right)]
        present = [_missing("notna", side) for side in (left, right)]
        equal = Operation("and", (*present, Operation("==", (left, right))))
        equality = Operation("or", (equal, Operation("and", tuple(missing))))
        return equality if same else Operation("not", (equality,))

    def interval(self, node: Call | Cast) -> Node:
        """Months, days and microseconds of an interval that is written out."""
        sql = f"CAST({written_constant(str(interval(node).value))} AS INTERVAL)"
        hours = "3600000000 * datepart('hour', i) + 60000000 * datepart('minute', i) + datepart('microsecond', i)"
        parts = ("12 * datepart('year', i) + datepart('month', i)", "datepart('day', i)", hours)
        listed = workspace.compute(f"SELECT [{', '.join(parts)}] FROM (SELECT {sql} AS i)", "an interval")
        return Call("interval", tuple(map(Constant, listed)))


def _missing(symbol: str, node: Node) -> Node:
    """Whether there is no value, or one."""
    if isinstance(node, Constant):
        return Constant((node.value is None) == (symbol == "isna"))
    return Operation(symbol, (node,))


def _node(expression: Expression) -> Node:
    assert expression.node is not None, "a column of a source, or of a relation"
    return expression.node
