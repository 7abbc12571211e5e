"""Row-wise expressions as SQL: each record decided as `pdrisk._model.rowwise.decide` decides it.

Every column is read in a normal form by its dtype: whole numbers, DOUBLE, text, truth values, and times as whole
numbers, NULL or NaN where there is no value. Conditions are three-valued, and no unknown is ever represented:
`RowSQL.holds` is true exactly where a condition is known to be true or, negated, known to be false. So NaN is looked at
in those comparisons alone that it could make true, and no column needs a CASE, which engines cannot filter by. Whole
numbers are computed exactly up to 2**106, and refused beyond; DOUBLEs as DOUBLEs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pdrisk._model.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.nodes import (
    CONDITIONS,
    LOGIC,
    MEMBERSHIP,
    MIRRORED,
    MISSING,
    NEGATED,
    SIGNS,
    Call,
    Case,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    below,
)
from pdrisk._model.rowwise import Derived
from pdrisk._model.rowwise.decide import folded
from pdrisk._model.rowwise.families import UNITS, family, of_values
from pdrisk.engines.sql.calendar import beginning_of, part_of
from pdrisk.engines.sql.comparing import beside, beside_constant, is_present, one_of, without_nan
from pdrisk.engines.sql.computing import arithmetic
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.values import BIGINT, StoredColumn, Value, as_double, checked, constant, has_column, quantity
from pdrisk.errors import ColumnTypeError, ParameterError

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
        """A filter as a BOOLEAN: true where it is known to be true, else false or NULL.

        Raises
        ------
        ParameterError
            If an engine of SQL cannot decide it exactly as it is decided on frames.
        """
        return checked(self.holds(node))

    def truth(self, node: Node) -> Value:
        """A condition as a value of each record, NULL where it is unknown."""
        if isinstance(node, Column):
            return self.column(node.name)
        true, false = (self.holds(node, negated) for negated in (False, True))
        return Value(checked(f"(CASE WHEN {true} THEN true WHEN {false} THEN false END)"), is_truth=True)

    def value(self, node: Node) -> Value:
        """Any expression as a value of each record."""
        found = self._value(node)
        return replace(found, sql=checked(found.sql))

    def number(self, node: Node) -> str:
        """An expression as DOUBLE; truth values are 1 and 0."""
        return checked(as_double(self.dialect, quantity(self.dialect, self._value(node))))

    def column(self, label: Hashable) -> Value:
        """A column without its missing codes, stored or derived."""
        if label not in self.known:
            own = next((each for each in reversed(self.derived) if each.name == label), None)
            self.known[label] = self._stored(label) if own is None else self._computed(own)
        return self.known[label]

    def present(self, label: Hashable) -> str:
        """Condition that a record has a value in a column."""
        return is_present(self.dialect, self.column(label))

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
        value = without_nan(self.dialect, self.column(label))
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
        coded = one_of(self.dialect, value, codes)
        return replace(value, sql=f"(CASE WHEN {coded} THEN NULL ELSE {value.sql} END)")

    def _of_dtype(self, column: StoredColumn) -> Value:
        dtype = of_values(column.dtype)
        name = family(dtype) or TEXT  # of categories without any
        plain = getattr(dtype, "numpy_dtype", dtype)
        kind = getattr(plain, "kind", "")
        if name in (DATE, ZONED):
            unit = UNITS[getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]]
            return Value(column.value, name, (-BIGINT - 1, BIGINT), unit)
        if name == NUMBER and kind == "b":
            return Value(column.value, NUMBER, is_truth=True)
        if name == NUMBER and kind in "iu":
            limits = np.iinfo(plain)
            value = Value(column.value, NUMBER, (int(limits.min), int(limits.max)))
            return replace(value, sql=self.dialect.wide(value.sql)) if value.is_wide else value
        if name == NUMBER:
            return Value(column.value, NUMBER, narrow=plain == np.float32, clean=False)
        assert name == TEXT, name
        return Value(self.dialect.exact_text(column.value), TEXT)

    def _computed(self, own: Derived) -> Value:
        rows = RowSQL(self.columns, own.missing, own.earlier, self.dialect)
        if own.is_truth:
            return rows.truth(own.rule)
        return Value(rows.number(own.rule), NUMBER, clean=False)

    # --- The tree -----------------------------------------------------------------------------------------------------

    def holds(self, node: Node, negated: bool = False) -> str:
        """Where a condition is known to be true or, ``negated``, known to be false: elsewhere false or NULL."""
        match node:
            case Operation("not", (part,)):
                return self.holds(part, not negated)
            case Operation(symbol, parts) if symbol in LOGIC:
                word = " AND " if (symbol == "and") != negated else " OR "
                return f"({word.join(self.holds(part, negated) for part in parts)})"
            case Constant(value) if isinstance(value, bool) or value is None:
                return str(value is (not negated)).lower()
            case Operation(symbol, parts) if symbol in CONDITIONS:
                return self._atom(NEGATED[symbol] if negated else symbol, parts)
        value = self._value(node)
        if not value.is_truth:
            raise ParameterError("a condition is made of CASE or COALESCE here: compare it with a number.")
        return f"(NOT {value.sql})" if negated else value.sql

    def _atom(self, symbol: str, parts: Sequence[Node]) -> str:
        """A comparison, membership, or question for missing values."""
        if not any(map(self._is_of_records, parts)):
            return str(folded(Operation(symbol, tuple(parts))) is True).lower()
        if symbol in MISSING:
            value = self._value(parts[0])
            if symbol == "notna":
                return is_present(self.dialect, value)
            missing = f"({value.sql} IS NULL)"
            return missing if value.clean else f"({missing} OR NOT {is_present(self.dialect, value)})"
        if symbol in MEMBERSHIP:
            assert isinstance(parts[1], Constant)
            return one_of(self.dialect, self._value(parts[0]), parts[1].value, negated=symbol == "not in")
        one, other = parts
        if not self._is_of_records(one):
            one, other, symbol = other, one, MIRRORED.get(symbol, symbol)
        left = quantity(self.dialect, self._value(one))
        if not self._is_of_records(other):
            return beside_constant(self.dialect, symbol, left, folded(other))
        return beside(self.dialect, symbol, left, quantity(self.dialect, self._value(other)))

    def _value(self, node: Node) -> Value:
        """Value of a node."""
        match node:
            case Column():
                return self.column(node.name)
            case Rank():
                return self._rank(node)
            case Constant(None):
                return Value(self.dialect.double("NULL"), clean=False)
            case Case(branches, otherwise):
                arms = " ".join(f"WHEN {self.holds(when)} THEN {self.number(then)}" for when, then in branches)
                return Value(checked(f"(CASE {arms} ELSE {self.number(otherwise)} END)"), clean=False)
            case Call("date_part", (Constant(unit), time)):
                return part_of(self.dialect, unit, self._value(time))
            case Call("date_trunc", (Constant(unit), time)):
                return beginning_of(self.dialect, unit, self._value(time))
            case Operation("coalesce", parts):
                there = (without_nan(self.dialect, Value(self.number(part), clean=False)).sql for part in parts)
                return Value(checked(f"COALESCE({', '.join(there)})"))
        if not self._is_of_records(node):
            return constant(self.dialect, folded(node))
        assert isinstance(node, Operation)
        if node.symbol in CONDITIONS:
            return self.truth(node)
        quantities = [quantity(self.dialect, self._value(part)) for part in node.parts]
        if node.symbol == "unary +":
            return quantities[0]
        if node.symbol in SIGNS:
            return arithmetic(self.dialect, node, "-", constant(self.dialect, 0), *quantities)
        return arithmetic(self.dialect, node, node.symbol, *quantities)

    @staticmethod
    def _is_of_records(node: Node) -> bool:
        """Whether `folded` cannot give its value."""
        return has_column(node) or any(
            isinstance(part, Case) or (isinstance(part, Constant) and part.value is None)
            or (isinstance(part, Operation) and part.symbol == "coalesce")
            for part in below(node)
        )  # fmt: skip

    def _rank(self, node: Rank) -> Value:
        text, levels = self.column(node.name).sql, enumerate(node.levels)
        arms = " ".join(f"WHEN {self.dialect.text(str(level))} THEN {self.dialect.whole(at)}" for at, level in levels)
        return Value(f"(CASE {text} {arms} END)", span=(0, len(node.levels)))
