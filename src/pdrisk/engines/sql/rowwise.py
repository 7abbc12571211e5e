"""Row-wise expressions as SQL: each record decided as `pdrisk._model.rowwise.decide` decides it.

Every column is read in a normal form by its dtype: whole numbers, DOUBLE, text, truth values, and times as whole
numbers, NULL where there is no value, NaN included. A decision is a BOOLEAN, NULL where it is unknown, which is
Kleene's logic in SQL and pandas. Beside a nullable column a comparison with a missing value is unknown; else
it is no, and ``!=`` is yes. Whole numbers are computed exactly up to 2**106, and refused beyond; DOUBLEs as DOUBLEs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pdrisk._model.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.nodes import COMPARISONS, LOGIC, MEMBERSHIP, MISSING, SIGNS, Column, Constant, Node, Operation, Rank
from pdrisk._model.rowwise import Derived
from pdrisk._model.rowwise.decide import folded
from pdrisk._model.rowwise.families import UNITS, family, is_nullable, of_values
from pdrisk.engines.sql.comparing import MIRRORED, beside_constant, decided, one_of, ordered
from pdrisk.engines.sql.computing import arithmetic
from pdrisk.engines.sql.dialect import Dialect
from pdrisk.engines.sql.values import BIGINT, StoredColumn, Value, as_double, checked, constant, has_column, quantity
from pdrisk.errors import ColumnTypeError

__all__ = ["RowSQL"]


@dataclass(frozen=True)
class RowSQL:
    """Columns of a table and expressions of them, in the SQL of an engine.

    Attributes
    ----------
    columns : mapping of StoredColumn
        By label.
    missing : mapping of codes
        Values of columns that stand for a missing answer.
    derived : tuple of Derived
        Columns that are computed.
    dialect : Dialect
    """

    columns: Mapping[Any, StoredColumn]
    missing: Mapping[Any, Sequence[Hashable]]
    derived: tuple[Derived, ...]
    dialect: Dialect
    known: dict[Hashable, Value] = field(default_factory=dict, repr=False)

    def condition(self, node: Node) -> str:
        """A filter as a BOOLEAN, NULL where it is unknown.

        Raises
        ------
        ParameterError
            If an engine of SQL cannot decide it exactly as it is decided on frames.
        """
        return checked(self._value(node).sql)

    def column(self, label: Hashable) -> Value:
        """A column without its missing codes, stored or derived."""
        if label not in self.known:
            own = next((each for each in reversed(self.derived) if each.name == label), None)
            self.known[label] = self._stored(label) if own is None else self._computed(own)
        return self.known[label]

    def present(self, label: Hashable) -> str:
        """Condition that a record has a value in a column."""
        return f"({self.clean(self.column(label)).sql} IS NOT NULL)"

    def double(self, label: Hashable) -> str:
        """The numbers of a column as DOUBLE."""
        return as_double(self.dialect, quantity(self.dialect, self.column(label)))

    def stored_number(self, label: Hashable) -> str | None:
        """Identifier of a column whose numbers are read unchanged; None for others."""
        column, value = self.columns.get(label), self.column(label)
        plain = column is not None and value.sql == column.value and value.family == NUMBER and not value.is_truth
        return column.name if plain and column is not None else None

    def same(self, label: Hashable) -> Value:
        """Values of a column, equal where they count as equal: one zero, NULL for missing and NaN."""
        value = self.clean(self.column(label))
        if value.is_truth:
            return quantity(self.dialect, value)
        if value.family == NUMBER and value.span is None:
            return replace(value, sql=self.dialect.infix(value.sql, "+", self.dialect.number(0.0)))
        return value

    def is_of_days(self, label: Hashable) -> bool:
        """Whether a column is one of dates as it is stored."""
        column = self.columns.get(label)
        return column is not None and column.is_of_days and not any(each.name == label for each in self.derived)

    def told_apart(self, label: Hashable) -> str:
        """Values of a column as in `same`, without rounding."""
        column, value = self.columns.get(label), self.same(label)
        if column is None or column.exact is None or any(each.name == label for each in self.derived):
            return value.sql
        return f"(CASE WHEN {value.sql} IS NOT NULL THEN {column.exact} END)"

    def clean(self, value: Value) -> Value:
        """The value, NULL where it is NaN."""
        if value.clean:
            return value
        return replace(
            value, sql=f"(CASE WHEN {value.sql} <= {self.dialect.infinity} THEN {value.sql} END)", clean=True
        )

    # --- Columns ------------------------------------------------------------------------------------------------------

    def _stored(self, label: Hashable) -> Value:
        column = self.columns[label]
        if not column.is_readable:
            raise ColumnTypeError(
                f"column {label!r} is of type {column.type}, which no question takes: ask a view that makes numbers, "
                "text, dates or truth values of it."
            )
        value = self._of_dtype(column)
        codes = list(self.missing.get(label, ()))
        if not codes:
            return value
        found = one_of(self.dialect, self.clean(value), codes)
        return replace(value, sql=f"(CASE WHEN {found.sql} THEN NULL ELSE {value.sql} END)")

    def _of_dtype(self, column: StoredColumn) -> Value:
        dtype = of_values(column.dtype)
        name = family(dtype) or TEXT  # of categories without any
        plain, nullable = getattr(dtype, "numpy_dtype", dtype), is_nullable(column.dtype)
        kind = getattr(plain, "kind", "")
        if name in (DATE, ZONED):
            unit = UNITS[getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]]
            return Value(column.value, name, nullable, (-BIGINT - 1, BIGINT), unit)
        if name == NUMBER and kind == "b":
            return Value(column.value, NUMBER, nullable, is_truth=True)
        if name == NUMBER and kind in "iu":
            limits = np.iinfo(plain)
            value = Value(column.value, NUMBER, nullable, (int(limits.min), int(limits.max)))
            return replace(value, sql=self.dialect.wide(value.sql)) if value.is_wide else value
        if name == NUMBER:
            return Value(column.value, NUMBER, nullable, narrow=plain == np.float32, clean=False)
        assert name == TEXT, name
        return Value(self.dialect.exact_text(column.value), TEXT, nullable)

    def _computed(self, own: Derived) -> Value:
        rows = RowSQL(self.columns, own.missing, own.earlier, self.dialect)
        if own.is_truth:
            return replace(rows._value(own.rule), nullable=True)
        made = as_double(self.dialect, quantity(self.dialect, rows._value(own.rule)))
        return Value(checked(made), NUMBER, clean=False)

    # --- The tree -----------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Value:
        """Value of a node."""
        if isinstance(node, Column):
            return self.column(node.name)
        if isinstance(node, Rank):
            return self._rank(node)
        if self._is_constant(node):
            return constant(self.dialect, folded(node))
        assert isinstance(node, Operation)
        symbol = node.symbol
        if symbol in LOGIC:
            return self._joined(symbol, [self._value(part) for part in node.parts])
        if symbol in MISSING:
            sql = self.clean(self._value(node.parts[0])).sql
            return Value(f"({sql} IS {'NOT ' if symbol == 'notna' else ''}NULL)", is_truth=True)
        if symbol in MEMBERSHIP:
            assert isinstance(node.parts[1], Constant)
            found = one_of(self.dialect, self.clean(self._value(node.parts[0])), node.parts[1].value)
            return found if symbol == "in" else replace(found, sql=f"(NOT {found.sql})")
        if symbol in COMPARISONS:
            return self._compared(node)
        quantities = [quantity(self.dialect, self._value(part)) for part in node.parts]
        if symbol in SIGNS:
            return (
                quantities[0]
                if symbol == "unary +"
                else arithmetic(self.dialect, node, "-", constant(self.dialect, 0), *quantities)
            )
        return arithmetic(self.dialect, node, symbol, *quantities)

    def _is_constant(self, node: Node) -> bool:
        """Whether `folded` gives its value."""
        return not has_column(node)

    @staticmethod
    def _joined(symbol: str, parts: Sequence[Value]) -> Value:
        joined = f" {symbol.upper()} ".join(part.sql for part in parts)
        sql = f"(NOT {joined})" if symbol == "not" else f"({joined})"
        return Value(sql, nullable=any(part.nullable for part in parts), is_truth=True)

    def _rank(self, node: Rank) -> Value:
        text, levels = self.column(node.name).sql, enumerate(node.levels)
        arms = " ".join(f"WHEN {self.dialect.text(str(level))} THEN {self.dialect.whole(at)}" for at, level in levels)
        return Value(f"(CASE {text} {arms} END)", span=(0, len(node.levels)))

    def _compared(self, node: Operation) -> Value:
        (one, other), symbol = node.parts, node.symbol
        if not has_column(one):
            one, other, symbol = other, one, MIRRORED.get(symbol, symbol)
        left = self.clean(quantity(self.dialect, self._value(one)))
        if not has_column(other):
            return beside_constant(self.dialect, symbol, left, folded(other))
        right = self.clean(quantity(self.dialect, self._value(other)))
        return decided(symbol, ordered(self.dialect, symbol, left, right), left, right)
