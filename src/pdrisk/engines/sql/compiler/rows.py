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
from datetime import date
from typing import Any, cast

import numpy as np

from pdrisk._model.expressions.kinds import DATE, DURATION, INTERVAL, NOTHING, NUMBER, TEXT, ZONED
from pdrisk._model.expressions.nodes import (
    CONDITIONS,
    LOGIC,
    MEMBERSHIP,
    MIRRORED,
    MISSING,
    NEGATED,
    SIGNS,
    Call,
    Case,
    Cast,
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
from pdrisk.engines.sql.compiler.calls import called, cast_of, chosen, computed, first
from pdrisk.engines.sql.compiler.comparisons import (
    beside,
    beside_constant,
    is_present,
    one_of,
    one_of_whole,
    without_nan,
)
from pdrisk.engines.sql.compiler.constants import plain, with_lists
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.texts import TEXTUAL
from pdrisk.engines.sql.compiler.times import moved, of_two
from pdrisk.engines.sql.compiler.values import (
    BIGINT,
    INTEGERS,
    StoredColumn,
    Value,
    as_double,
    checked,
    constant,
    dtype_of,
    has_column,
    literal,
    moment,
    quantity,
)
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.errors import ColumnTypeError, ParameterError

WIDE_TYPES = ("UBIGINT", "HUGEINT", "UHUGEINT")  # of DuckDB, wider than BIGINT


@dataclass(frozen=True)
class RowSQL:
    """Columns of a table and expressions of them, in the SQL of an engine."""

    columns: Mapping[Any, StoredColumn]  # by label
    missing: Mapping[Any, Sequence[Hashable]]  # values of columns that stand for a missing answer
    derived: tuple[Derived, ...]  # columns that are computed
    dialect: Dialect
    # columns that were written before, by label: those of a relation that is no stored table, too
    known: dict[Hashable, Value] = field(default_factory=dict, repr=False)
    # those that tell the values of such columns apart that are rounded
    exact: Mapping[Hashable, StoredColumn] = field(default_factory=dict, repr=False)

    def condition(self, node: Node) -> str:
        """A filter as a BOOLEAN: true where it is known to be true, else false or NULL."""
        return checked(self.holds(node))

    def truth(self, node: Node) -> Value:
        """A condition as a value of each record, NULL where it is unknown."""
        if isinstance(node, Column):
            return self.column(node.name)
        true, false = (self.holds(node, negated) for negated in (False, True))
        return Value(checked(f"(CASE WHEN {true} THEN true WHEN {false} THEN false END)"), is_truth=True)

    def value(self, node: Node) -> Value:
        """Any expression as a value of each record."""
        value = self._value(node)
        return replace(value, sql=checked(value.sql))

    def fitting(self, node: Node) -> Value:
        """The same; a whole number may have a value `beyond` BIGINT, where the dialect has words of its `own`."""
        value = self._any(node)
        return replace(value, sql=checked(value.sql))

    def number(self, node: Node) -> str:
        """An expression as DOUBLE; truth values are 1 and 0."""
        return checked(as_double(self.dialect, quantity(self.dialect, self._any(node))))

    def column(self, label: Hashable) -> Value:
        """A column without its missing codes, stored or derived."""
        if label not in self.known:
            derived = next((column for column in reversed(self.derived) if column.name == label), None)
            self.known[label] = self._stored(label) if derived is None else self._computed(derived)
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
        """Whether it is one of dates, without a time of day."""
        return self.column(label).is_day

    def told_apart(self, label: Hashable) -> str:
        """Values of a column as in `same`, without rounding."""
        exact, value = self.exact_of(label), self.column(label)
        if exact is not None and value.clean and label not in self.missing:
            return exact
        value = self.same(label)
        return value.sql if exact is None else f"(CASE WHEN {value.sql} IS NOT NULL THEN {exact} END)"

    def exact_of(self, label: Hashable) -> str | None:
        """What tells values of a column apart that are rounded; None where none are."""
        if any(derived.name == label for derived in self.derived):
            return None
        column = self.columns.get(label) or self.exact.get(label)
        return None if column is None else column.exact

    def stored(self, label: Hashable) -> StoredColumn:
        """A column of a relation as one of a table, for the methods of Datasets."""
        if label in self.columns:
            return self.columns[label]
        value = self.column(label)
        kind = "date" if value.is_day else value.family
        return StoredColumn(value.sql, value.sql, dtype_of(value), kind, self.exact_of(label))

    # --- Columns ------------------------------------------------------------------------------------------------------

    def _stored(self, label: Hashable) -> Value:
        column = self.columns[label]
        if not column.is_readable and self.dialect.own:
            return Value(column.value, column.type.lower())  # of which only is asked whether it is there
        if not column.is_readable:
            raise ColumnTypeError(
                f"column {label!r} is of type {column.type}, which no question takes: ask a view that makes numbers, "
                "text, dates or truth values of it."
            )
        value = self._of_dtype(column)
        codes = list(self.missing.get(label, ()))
        if not codes:
            return value
        if value.family == TEXT:  # beside which a date is compared as a frame's column of such objects is read
            codes = [str(code) if isinstance(code, date) else code for code in codes]
        if self.dialect.own and column.exact is not None and column.type in INTEGERS:
            coded = one_of_whole(self.dialect, column.exact, codes)
        else:
            coded = one_of(self.dialect, value, codes, exact=True)
        return replace(value, sql=f"(CASE WHEN {coded} THEN NULL ELSE {value.sql} END)")

    def _of_dtype(self, column: StoredColumn) -> Value:
        dtype = of_values(column.dtype)
        name = family(dtype) or TEXT  # of categories without any
        plain = getattr(dtype, "numpy_dtype", dtype)
        kind = getattr(plain, "kind", "")
        if name in (DATE, ZONED):
            unit = UNITS[getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]]
            stored = (column.value, column.name if self.dialect.own and name == DATE else "")
            return Value(column.value, name, (-BIGINT - 1, BIGINT), unit, is_day=column.is_of_days, stored=stored)
        if name == NUMBER and kind == "b":
            return Value(column.value, NUMBER, is_truth=True)
        if name == NUMBER and kind in "iu":
            limits = np.iinfo(plain)
            value = Value(column.value, NUMBER, (int(limits.min), int(limits.max)))
            return replace(value, sql=self.dialect.wide(value.sql)) if value.is_wide else value
        if name == NUMBER:
            return Value(column.value, NUMBER, narrow=plain == np.float32, clean=column.clean)
        if name == DURATION:
            return Value(column.value, DURATION, (-BIGINT - 1, BIGINT), UNITS["us"])
        assert name == TEXT, name
        return Value(self.dialect.exact_text(column.value), TEXT)

    def _computed(self, derived: Derived) -> Value:
        rows = RowSQL(self.columns, derived.missing, derived.earlier, self.dialect)
        if derived.is_truth:
            return rows.truth(derived.rule)
        return Value(rows.number(derived.rule), NUMBER, clean=False)

    # --- The tree -----------------------------------------------------------------------------------------------------

    def holds(self, node: Node, negated: bool = False) -> str:
        """Where a condition is known to be true or, ``negated``, known to be false: elsewhere false or NULL."""
        match node:
            case Operation("not", (part,)):
                return self.holds(part, not negated)
            case Operation(symbol, parts) if symbol in LOGIC:
                word = " AND " if (symbol == "and") != negated else " OR "
                listed = with_lists(parts) if symbol == "or" and self.dialect.own else parts
                return f"({word.join(self.holds(part, negated) for part in listed)})"
            case Constant(value) if isinstance(value, bool) or value is None:
                return str(value is (not negated)).lower()
            case Operation(symbol, parts) if symbol in CONDITIONS:
                return self._atom(NEGATED[symbol] if negated else symbol, parts)
        value = self._value(node)
        if not value.is_truth:
            if value.family == NOTHING:
                return "false"
            raise ParameterError("a condition is made of CASE or COALESCE here: compare it with a number.")
        return f"(NOT {value.sql})" if negated else value.sql

    def _atom(self, symbol: str, parts: Sequence[Node]) -> str:
        """A comparison, membership, or question for missing values."""
        parts = list(map(plain, parts)) if self.dialect.own and any(map(has_column, parts)) else parts
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
            value = self._any(parts[0])
            if value.family == NOTHING:
                return "false"
            listed = [moment(value, member) for member in parts[1].value]
            return one_of(self.dialect, value, listed, negated=symbol == "not in")
        one, other = parts
        if not self._is_of_records(one):
            one, other, symbol = other, one, MIRRORED.get(symbol, symbol)
        left = quantity(self.dialect, self._any(one))
        if left.family == NOTHING:
            return "false"  # nothing is known of it
        if not self._is_of_records(other):
            return beside_constant(self.dialect, symbol, left, moment(left, folded(other)))
        right = quantity(self.dialect, self._any(other))
        if right.family == NOTHING:
            return "false"
        return beside(self.dialect, symbol, left, right)

    def _value(self, node: Node) -> Value:
        """Value of a node, as one expression."""
        return self._any(node).settled

    def _any(self, node: Node) -> Value:
        """Value of a node, which may be of two."""
        match node:
            case Column():
                whole = self._exact_whole(node.name)
                return self.column(node.name) if whole is None else self.dialect.own.fitting(whole)
            case Rank():
                return self._rank(node)
            case Constant():
                return literal(self.dialect, node.value)
            case Case(branches, otherwise):
                return self._case(branches, otherwise)
            case Cast(operand, to, _):
                return self._cast(operand, to)
            case Call(name, arguments):
                return self._call(name, arguments)
            case Operation("coalesce", parts):
                return first(self.dialect, list(map(self._any, parts)))
        if not self._is_of_records(node):
            return constant(self.dialect, folded(node))
        assert isinstance(node, Operation)
        if node.symbol in CONDITIONS:
            return self.truth(node)
        if isinstance(interval := node.parts[-1], Call) and interval.name == "interval":
            sign = -1 if node.symbol == "-" else 1
            steps = [sign * part.value for part in interval.arguments if isinstance(part, Constant)]
            return moved(self.dialect, self._value(node.parts[0]), steps)
        values = [self._any(part) for part in node.parts]
        if any(value.family in (DATE, DURATION) for value in values):
            return of_two(self.dialect, node.symbol, *values)
        quantities = [
            self._number_null() if value.family == NOTHING else quantity(self.dialect, value) for value in values
        ]
        if node.symbol == "unary +":
            return quantities[0]
        if node.symbol in SIGNS:
            return computed(self.dialect, node, "-", constant(self.dialect, 0), *quantities)
        return computed(self.dialect, node, node.symbol, *quantities)

    def exact_number(self, node: Node) -> str | None:
        """A column that is a number and is rounded where it is computed with, without rounding; None for others."""
        if not (self.dialect.own and isinstance(node, Column) and self.column(node.name).family == NUMBER):
            return None
        return self.exact_of(node.name)

    def _exact_whole(self, label: Hashable) -> str | None:
        """A column of whole numbers of 128 bits without rounding; None for any other."""
        if not self.dialect.own or (exact := self.exact_of(label)) is None or label in self.missing:
            return None
        return exact if (self.columns.get(label) or self.exact[label]).type in WIDE_TYPES else None

    def _cast(self, operand: Node, to: str) -> Value:
        """A cast, of columns that are rounded from what tells their values apart."""
        if self.dialect.own and isinstance(operand, Column) and operand.name not in self.missing:
            column = self.columns.get(operand.name) or self.exact.get(operand.name)
            exact = None if column is None or not column.type.startswith(("DECIMAL", *WIDE_TYPES)) else column.exact
            if exact is not None and (converted := self.dialect.own.exact_cast(exact, to)):
                return cast(Value, converted)
        return cast_of(self.dialect, self._any(operand), to)

    def _case(self, branches: Sequence[tuple[Node, Node]], otherwise: Node) -> Value:
        """CASE, of results in one type."""
        whens = [self.holds(when) for when, _ in branches]
        return chosen(self.dialect, whens, [self._any(node) for node in (*(then for _, then in branches), otherwise)])

    def _call(self, name: str, arguments: Sequence[Node]) -> Value:
        """A function of SQL."""
        empty = self._text_null() if name in TEXTUAL else self._number_null()
        if name == "interval":
            if self.dialect.own:
                return self.dialect.own.interval(
                    *(argument.value for argument in arguments if isinstance(argument, Constant))
                )
            refuse(self.dialect, "an interval that is added to nothing")
        values = [empty if (value := self._any(argument)).family == NOTHING else value for argument in arguments]
        written = [argument.value if isinstance(argument, Constant) else None for argument in arguments]
        for at, operand in enumerate(arguments if self.dialect.own else ()):
            if isinstance(operand, Call) and operand.name == "interval":
                written[at] = tuple(part.value for part in operand.arguments if isinstance(part, Constant))
            elif (
                isinstance(operand, Column) and values[at].family == DURATION and (exact := self.exact_of(operand.name))
            ):
                values[at] = Value(exact, INTERVAL)  # whose months and days are not made one
        return called(self.dialect, name, values, written)

    def _number_null(self) -> Value:
        return Value(self.dialect.double("NULL"), clean=False)

    def _text_null(self) -> Value:
        return Value(f"CAST(NULL AS {self.dialect.text_type})", TEXT)

    @staticmethod
    def _is_of_records(node: Node) -> bool:
        """Whether `folded` cannot give its value."""
        return has_column(node) or any(
            isinstance(part, Case | Cast | Call)
            or (isinstance(part, Constant) and (part.value is None or (part != node and isinstance(part.value, date))))
            or (isinstance(part, Operation) and part.symbol == "coalesce")
            for part in below(node)
        )  # fmt: skip

    def _rank(self, node: Rank) -> Value:
        text, levels = self.column(node.name).sql, enumerate(node.levels)
        arms = " ".join(f"WHEN {self.dialect.text(str(level))} THEN {self.dialect.whole(at)}" for at, level in levels)
        return Value(f"(CASE {text} {arms} END)", span=(0, len(node.levels)))
