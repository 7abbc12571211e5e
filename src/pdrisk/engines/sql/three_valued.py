"""Row-wise expressions in SQL's own logic: unknown beside NULL, and NaN equal to itself and above all numbers.

DuckDB, PostgreSQL and Spark agree on both, and `pdrisk.sql` means it on each of them. Otherwise as `RowSQL`: whole
numbers are exact, texts are compared by their code points, and no record can make a statement fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pdrisk._model.kinds import NUMBER
from pdrisk._model.nodes import LOGIC, MEMBERSHIP, Case, Constant, Node, Operation, below
from pdrisk._model.rowwise.decide import folded
from pdrisk.engines.sql.comparing import MIRRORED, SQL_WORDS, beside_constant, ordered
from pdrisk.engines.sql.rowwise import RowSQL
from pdrisk.engines.sql.values import Value, as_double, checked, quantity
from pdrisk.errors import ParameterError

__all__ = ["ThreeValuedSQL"]


class ThreeValuedSQL(RowSQL):
    """Columns of a table and expressions of them, in three-valued logic; also CASE and COALESCE of numbers."""

    def condition(self, node: Node) -> str:
        """A filter as a BOOLEAN, NULL where it is unknown; fails as that of `RowSQL`."""
        return checked(self._truth(node).sql)

    def number(self, node: Node) -> str:
        """An expression as DOUBLE; truth values are 1 and 0."""
        return checked(as_double(self.dialect, quantity(self.dialect, self._value(node))))

    def clean(self, value: Value) -> Value:
        """The value unchanged: NaN is a value here."""
        return value

    def _value(self, node: Node) -> Value:
        match node:
            case Constant(None):
                return Value(self.dialect.double("NULL"), clean=False)
            case Case(branches, otherwise):
                arms = " ".join(f"WHEN {self._truth(when).sql} THEN {self.number(then)}" for when, then in branches)
                return Value(checked(f"(CASE {arms} ELSE {self.number(otherwise)} END)"), clean=False)
            case Operation("coalesce", parts):
                return Value(checked(f"COALESCE({', '.join(map(self.number, parts))})"), clean=False)
            case Operation(symbol, parts) if symbol in LOGIC:
                return self._joined(symbol, list(map(self._truth, parts)))
            case Operation(symbol, (value, Constant(listed))) if symbol in MEMBERSHIP:
                self._check_narrow(self._value(value), listed)
        return super()._value(node)

    def _truth(self, node: Node) -> Value:
        if _is_null(node):
            return Value("CAST(NULL AS BOOLEAN)", nullable=True, is_truth=True)
        found = self._value(node)
        if not found.is_truth:
            raise ParameterError("a condition is made of CASE or COALESCE here: compare it with a number.")
        return found

    def _compared(self, node: Operation) -> Value:
        (one, other), symbol = node.parts, node.symbol
        if self._is_constant(one):
            one, other, symbol = other, one, MIRRORED.get(symbol, symbol)
        left = replace(quantity(self.dialect, self._value(one)), nullable=True)
        if self._is_constant(other):
            value = folded(other)
            self._check_narrow(left, [value])
            is_float = left.family == NUMBER and left.span is None
            return beside_constant(self.dialect, symbol, left, float(value) if is_float else value)
        right = quantity(self.dialect, self._value(other))
        if left.family == NUMBER and (left.span is None) != (right.span is None):
            both = (as_double(self.dialect, each) for each in (left, right))
            sql = f"({f' {SQL_WORDS.get(symbol, symbol)} '.join(both)})"
        else:
            sql = ordered(self.dialect, symbol, left, right)
        return Value(sql, nullable=True, is_truth=True)

    def _is_constant(self, node: Node) -> bool:
        return super()._is_constant(node) and not any(
            isinstance(each, Case) or _is_null(each) or (isinstance(each, Operation) and each.symbol == "coalesce")
            for each in below(node)
        )

    @staticmethod
    def _check_narrow(value: Value, constants: Sequence[Any]) -> None:
        """Refuse numbers that 32 bits round: some engines round the constant, others widen the column."""
        if value.narrow and any(float(np.float32(each)) != each for each in constants):
            raise ParameterError(
                "a column of 32-bit floats is compared with a number that these round, and engines round differently: "
                "compare with one such as 0.5, or make the column one of 64 bits in a view."
            )


def _is_null(node: Node) -> bool:
    return isinstance(node, Constant) and node.value is None
