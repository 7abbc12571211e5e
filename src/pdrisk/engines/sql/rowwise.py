"""Row-wise expressions as SQL: each record decided as `pdrisk._model.rowwise.decide` decides it.

Every column is read in a normal form by its dtype: whole numbers, DOUBLE, text, truth values, and times as whole
numbers, NULL where there is no value, NaN included. A decision is a BOOLEAN, NULL where it is unknown, which is
Kleene's logic in SQL and pandas. Beside a nullable column a comparison with a missing value is unknown; else
it is no, and ``!=`` is yes. Whole numbers are computed exactly up to 2**106, and refused beyond; DOUBLEs as DOUBLEs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Final, NoReturn

import numpy as np

from pdrisk._model.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.nodes import (
    COMPARISONS,
    LOGIC,
    MEMBERSHIP,
    MISSING,
    SIGNS,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    below,
)
from pdrisk._model.rowwise import Derived
from pdrisk._model.rowwise.builder import text_of
from pdrisk._model.rowwise.decide import folded
from pdrisk._model.rowwise.families import UNITS, as_number, family, is_in, is_missing, is_nullable, of_values
from pdrisk.engines.sql.dialect import Dialect
from pdrisk.errors import ParameterError

__all__ = ["RowSQL", "StoredColumn", "Value"]

EXACT: Final = 2**106  # whole numbers are computed exactly up to here
BIGINT: Final = 2**63 - 1
FEW: Final = 2**53  # a DOUBLE holds every whole number up to here
LONGEST: Final = 200_000  # letters of one expression
MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
SQL_WORDS: Final = {"==": "=", "!=": "<>"}


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a table, as an engine of SQL reads it.

    Attributes
    ----------
    name : str
        Its identifier, quoted.
    value : str
        Its values, by its dtype: of integers any integer type of the engine, else DOUBLE, text, BOOLEAN, or of times
        the BIGINT of units of the dtype since 1970 (in UTC). NULL where there is none; NaN may be left.
    dtype : dtype
        That stands for its type in pandas; ``object`` if nothing can be asked of it.
    type : str
        What the engine calls its type, for people.
    exact : str or None
        What tells values apart that ``value`` rounds, such as those of decimals.
    """

    name: str
    value: str
    dtype: Any
    type: str
    exact: str | None = None

    @property
    def is_readable(self) -> bool:
        """Whether it can be asked for anything."""
        return self.dtype != object


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: SQL that is NULL, or NaN, where a record has no value.

    Attributes
    ----------
    family : str
        As `families.family` calls it.
    nullable : bool
        Whether a comparison with a missing value is unknown.
    span : (int, int) or None
        Of whole numbers: the least and the largest by type. None of DOUBLEs and texts.
    unit : int
        Of times, the nanoseconds that 1 stands for.
    narrow : bool
        Whether constants beside it are rounded to 32 bits.
    is_truth : bool
        Whether it is a BOOLEAN.
    clean : bool
        Whether it is never NaN.
    """

    sql: str
    family: str = NUMBER
    nullable: bool = False
    span: tuple[int, int] | None = None
    unit: int = 1
    narrow: bool = False
    is_truth: bool = False
    clean: bool = True

    @property
    def is_wide(self) -> bool:
        """Whether a BIGINT may not hold it."""
        return self.span is not None and not (self.span[0] >= -BIGINT - 1 and self.span[1] <= BIGINT)


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
        return self._checked(self._truth(self._value(node)).sql)

    def column(self, label: Hashable) -> Value:
        """A column without its missing codes, stored or derived."""
        if label not in self.known:
            own = next((each for each in reversed(self.derived) if each.name == label), None)
            self.known[label] = self._stored(label) if own is None else self._computed(own)
        return self.known[label]

    def present(self, label: Hashable) -> str:
        """Whether a record has a value in a column."""
        return f"({self.clean(self.column(label)).sql} IS NOT NULL)"

    def double(self, label: Hashable) -> str:
        """The numbers of a column as DOUBLE."""
        return self._double(self._quantity(self.column(label)))

    def stored_number(self, label: Hashable) -> str | None:
        """The identifier of a column whose numbers are read as they are stored; None if more is done to them."""
        column, value = self.columns.get(label), self.column(label)
        plain = column is not None and value.sql == column.value and value.family == NUMBER and not value.is_truth
        return column.name if plain and column is not None else None

    def same(self, label: Hashable) -> Value:
        """The values of a column, equal where they count as equal, and NULL where there is none: one zero, no NaN."""
        value = self.clean(self.column(label))
        if value.is_truth:
            return self._quantity(value)
        if value.family == NUMBER and value.span is None:
            return replace(value, sql=self.dialect.infix(value.sql, "+", self.dialect.number(0.0)))
        return value

    def told_apart(self, label: Hashable) -> str:
        """The values of a column as `same` has them, none rounded."""
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
            raise ParameterError(
                f"column {label!r} is of type {column.type}, which no question takes: ask a view that makes numbers, "
                "text, dates or truth values of it."
            )
        value = self._of_dtype(column)
        codes = list(self.missing.get(label, ()))
        if not codes:
            return value
        found = self._members(self.clean(value), codes)
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
            return replace(rows._truth(rows._value(own.rule)), nullable=True)
        made = rows._double(rows._quantity(rows._value(own.rule)))
        return Value(self._checked(made), NUMBER, clean=False)

    # --- The tree -----------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Value:
        """What stands for a part of the tree."""
        if isinstance(node, Column):
            return self.column(node.name)
        if isinstance(node, Rank):
            return self._rank(node)
        if not any(isinstance(each, Column | Rank) for each in below(node)):
            return self._constant(folded(node))
        assert isinstance(node, Operation)
        symbol = node.symbol
        if symbol in LOGIC:
            parts = [self._truth(self._value(part)) for part in node.parts]
            joined = f" {symbol.upper()} ".join(part.sql for part in parts)
            sql = f"(NOT {joined})" if symbol == "not" else f"({joined})"
            return Value(sql, nullable=any(part.nullable for part in parts), is_truth=True)
        if symbol in MISSING:
            sql = self.clean(self._value(node.parts[0])).sql
            return Value(f"({sql} IS {'NOT ' if symbol == 'notna' else ''}NULL)", is_truth=True)
        if symbol in MEMBERSHIP:
            assert isinstance(node.parts[1], Constant)
            found = self._members(self.clean(self._value(node.parts[0])), node.parts[1].value)
            return found if symbol == "in" else replace(found, sql=f"(NOT {found.sql})")
        if symbol in COMPARISONS:
            return self._compared(node)
        quantities = [self._quantity(self._value(part)) for part in node.parts]
        if symbol in SIGNS:
            return quantities[0] if symbol == "unary +" else self._arithmetic(node, "-", self._constant(0), *quantities)
        return self._arithmetic(node, symbol, *quantities)

    def _constant(self, value: Any) -> Value:
        """A constant of arithmetic or logic."""
        if isinstance(value, bool):
            return Value("true" if value else "false", is_truth=True)
        if isinstance(value, float) and value.is_integer() and abs(value) < FEW:
            value = int(value)  # what is whole is computed as such
        if isinstance(value, int):
            return Value(self.dialect.whole(value), span=(value, value))
        return Value(self.dialect.double("NULL") if math.isnan(value) else self.dialect.number(float(value)))

    def _rank(self, node: Rank) -> Value:
        text, levels = self.column(node.name).sql, enumerate(node.levels)
        arms = " ".join(f"WHEN {self.dialect.text(str(level))} THEN {self.dialect.whole(at)}" for at, level in levels)
        return Value(f"(CASE {text} {arms} END)", span=(0, len(node.levels)))

    def _truth(self, value: Value) -> Value:
        assert value.is_truth, value
        return value

    def _quantity(self, value: Value) -> Value:
        """A truth value as 1 or 0."""
        if not value.is_truth:
            return value
        one, zero = self.dialect.whole(1), self.dialect.whole(0)
        sql = f"(CASE WHEN {value.sql} THEN {one} WHEN NOT {value.sql} THEN {zero} END)"
        return replace(value, sql=sql, is_truth=False, span=(0, 1))

    # --- Comparisons --------------------------------------------------------------------------------------------------

    def _compared(self, node: Operation) -> Value:
        (one, other), symbol = node.parts, node.symbol
        if not _has_column(one):
            one, other, symbol = other, one, MIRRORED.get(symbol, symbol)
        left = self.clean(self._quantity(self._value(one)))
        if not _has_column(other):
            return self._beside_constant(symbol, left, folded(other))
        right = self.clean(self._quantity(self._value(other)))
        return self._decided(symbol, self._order(symbol, left, right), left, right)

    def _decided(self, symbol: str, sql: str, *values: Value) -> Value:
        """A comparison that is NULL where a value is missing as pandas decides it there."""
        if any(value.nullable for value in values):
            return Value(sql, nullable=True, is_truth=True)
        return Value(f"COALESCE({sql}, {'true' if symbol == '!=' else 'false'})", is_truth=True)

    def _order(self, symbol: str, left: Value, right: Value) -> str:
        """A comparison of two columns, NULL where one is missing."""
        word = SQL_WORDS.get(symbol, symbol)
        if left.family == TEXT or (left.span is None and right.span is None):
            return f"({left.sql} {word} {right.sql})"
        if left.unit != right.unit:
            unit = min(left.unit, right.unit)
            left, right = (self._times(each, each.unit // unit) for each in (left, right))
        if left.span is not None and right.span is not None:
            both = self._alike(left, right)
            return f"({both[0]} {word} {both[1]})"
        if left.span is None:
            left, right, symbol = right, left, MIRRORED.get(symbol, symbol)
        return self._whole_beside_double(symbol, left, right.sql)

    def _times(self, value: Value, factor: int) -> Value:
        if factor == 1 or value.span is None:
            return value
        sql = self.dialect.infix(self.dialect.wide(value.sql), "*", self.dialect.wide(f"'{factor}'"))
        return replace(value, sql=sql, span=(value.span[0] * factor, value.span[1] * factor))

    def _alike(self, *values: Value) -> list[str]:
        """Whole numbers of one type."""
        if any(value.is_wide for value in values):
            return [value.sql if value.is_wide else self.dialect.wide(value.sql) for value in values]
        return [f"CAST({value.sql} AS BIGINT)" for value in values]

    def _whole_beside_double(self, symbol: str, left: Value, right: str) -> str:
        """A whole number compared with a DOUBLE, exactly: neither is rounded to the other's type."""
        word = SQL_WORDS.get(symbol, symbol)
        assert left.span is not None
        if max(map(abs, left.span)) <= FEW:
            return f"({self._double(left)} {word} {right})"
        wide = left.sql if left.is_wide else self.dialect.wide(left.sql)
        rounding = "FLOOR" if symbol in (">", "<=") else "CEIL"
        compared = f"{wide} {word} {self.dialect.whole_double(self.dialect.call(rounding, right))}"
        above, under = (str(symbol in words).lower() for words in (("<", "<=", "!="), (">", ">=", "!=")))
        arms = [
            (f"{left.sql} IS NULL OR {right} IS NULL", "NULL"),
            (f"{right} >= {self.dialect.number(float(EXACT))}", above),
            (f"{right} <= {self.dialect.number(-float(EXACT))}", under),
        ]
        if symbol in ("==", "!="):
            arms.append((f"{self.dialect.call('FLOOR', right)} <> {right}", str(symbol == "!=").lower()))
        written = " ".join(f"WHEN {when} THEN {then}" for when, then in arms)
        return f"(CASE {written} ELSE {compared} END)"

    def _beside_constant(self, symbol: str, left: Value, value: Any) -> Value:
        """A comparison with a constant."""
        if left.family == TEXT:
            sql = f"({left.sql} {SQL_WORDS.get(symbol, symbol)} {self._text(value)})"
            return self._decided(symbol, sql, left)
        exact = as_number(left.family, value)
        if isinstance(exact, float) and math.isnan(exact):
            return self._decided(symbol, f"({left.sql} = NULL)", left)
        if left.narrow:
            narrow = float(np.float32(float(exact)))
            exact = float(exact) if math.isinf(narrow) else narrow
        if isinstance(exact, float) and math.isinf(exact) and left.span is None:
            return self._decided(
                symbol, f"({left.sql} {SQL_WORDS.get(symbol, symbol)} {self.dialect.number(exact)})", left
            )
        symbol_, limit = self._limit(symbol, left, exact)
        if limit is None:
            fixed = "true" if symbol == "!=" else "false"
            return self._decided(symbol, f"(CASE WHEN {left.sql} IS NOT NULL THEN {fixed} END)", left)
        return self._decided(symbol, f"({left.sql} {SQL_WORDS.get(symbol_, symbol_)} {limit})", left)

    def _limit(self, symbol: str, left: Value, exact: float) -> tuple[str, str | None]:
        """The comparison with a constant that the type of the left can hold; None if nothing equals it."""
        if left.span is not None:
            most = 2 * EXACT
            if isinstance(exact, float) and math.isinf(exact):
                exact = most if exact > 0 else -most
            scaled = min(max(Fraction(exact) / left.unit, Fraction(-most)), Fraction(most))
            if symbol in ("==", "!=") and (scaled.denominator > 1 or not left.span[0] <= scaled <= left.span[1]):
                return symbol, None
            whole = math.floor(scaled) if symbol in (">", "<=") else math.ceil(scaled)
            # Beyond the type a limit just outside it decides alike, and may be a literal of the type's width.
            whole = min(max(whole, left.span[0] - 1), left.span[1] + 1)
            return symbol, self.dialect.whole(whole)
        nearest = float(exact) if abs(exact) < 2**1024 - 2**970 else math.copysign(math.inf, exact)
        if nearest == exact:
            return symbol, self.dialect.number(nearest)
        if symbol in ("==", "!="):
            return symbol, None
        is_below = nearest < exact
        return ({"<": "<=", ">=": ">"} if is_below else {"<=": "<", ">": ">="}).get(
            symbol, symbol
        ), self.dialect.number(nearest)

    def _members(self, value: Value, listed: Sequence[Any]) -> Value:
        """Whether a record's value is one of those listed: never unknown."""
        value = self._quantity(value)
        held = [one for one in listed if not is_missing(one) and is_in(value.family, one)]
        if value.family == TEXT:
            texts = [self._text(one) for one in held]
        else:
            exact = [as_number(value.family, one) for one in held]
            if value.narrow:
                exact = [float(np.float32(float(each))) for each in exact if abs(each) <= 2**1023]
                exact = [each for each in exact if not math.isinf(each)]
            limits = [self._limit("==", value, each)[1] for each in dict.fromkeys(exact)]
            texts = [limit for limit in limits if limit is not None]
        sql = f"COALESCE({value.sql} IN ({', '.join(texts)}), false)" if texts else "false"
        if len(held) < len(listed) and any(map(is_missing, listed)):
            sql = f"({sql} OR {value.sql} IS NULL)"
        return Value(sql, is_truth=True)

    def _text(self, value: Any) -> str:
        if "\0" in value:
            raise ParameterError("a text with a zero character cannot be asked for in a database: leave it out.")
        return self.dialect.text(str.__str__(value))

    # --- Arithmetic ---------------------------------------------------------------------------------------------------

    def _double(self, value: Value) -> str:
        if value.span is None and not value.narrow:
            return value.sql
        return self.dialect.double_of_wide(value.sql) if value.is_wide else self.dialect.double(value.sql)

    def _arithmetic(self, node: Operation, symbol: str, left: Value, right: Value) -> Value:
        nullable = left.nullable or right.nullable
        beside = [value.narrow or not _has_column(part) for value, part in zip((left, right), node.parts, strict=False)]
        if (left.narrow or right.narrow) and all(beside):
            self._refuse(node, "of a column of 32-bit floats: make it one of 64 bits in a view")
        if symbol == "**":
            return replace(self._power(node, left), nullable=nullable)
        if symbol in ("//", "%"):
            return replace(self._divided(node, symbol, left, right), nullable=nullable)
        if left.span is not None and right.span is not None and symbol != "/":
            return replace(self._whole(node, symbol, left, right), nullable=nullable)
        one, other = self._double(left), self._double(right)
        made = self.dialect.divided(one, other) if symbol == "/" else self.dialect.arithmetic(one, symbol, other)
        return Value(self._checked(f"({made})"), nullable=nullable, clean=False)

    def _whole(self, node: Node, symbol: str, left: Value, right: Value) -> Value:
        """``+``, ``-`` or ``*`` of whole numbers, exactly."""
        assert left.span is not None and right.span is not None
        ends = [_OF_WHOLE[symbol](one, other) for one in left.span for other in right.span]
        span = min(ends), max(ends)
        if max(map(abs, span)) > EXACT:
            self._refuse(node, "of whole numbers beyond 2**106: write a number in it as a fraction, such as 1.5")
        made = Value("", span=span)
        one, other, *_ = self._alike(left, right, made)
        return self._fitting(replace(made, sql=self._checked(self.dialect.infix(one, symbol, other))))

    def _divided(self, node: Operation, symbol: str, left: Value, right: Value) -> Value:
        """Floor quotient or remainder by a constant."""
        divisor = folded(node.parts[1]) if not _has_column(node.parts[1]) else 0
        if not divisor or not math.isfinite(divisor):
            self._refuse(node, "whose divisor is no constant, or 0: divide by a number that is written out")
        infix, sign = self.dialect.infix, "<" if divisor > 0 else ">"
        if left.span is not None and right.span is not None:
            by = int(divisor)
            ends = sorted(end // by for end in left.span)
            quotients = Value("", span=(ends[0], ends[1]))
            value, divided, *_ = self._alike(left, right, quotients)
            (zero,) = self._alike(self._constant(0), left, right, quotients)[:1]
            rest = self.dialect.remainder(value, divided)
            turned = f"{rest} {sign} {zero}"
            if symbol == "%":
                size = abs(by) - 1
                made = f"(CASE WHEN {turned} THEN {infix(rest, '+', divided)} ELSE {rest} END)"
                return self._fitting(Value(self._checked(made), span=(0, size) if by > 0 else (-size, 0)))
            whole = self.dialect.quotient(value, divided)
            (one,) = self._alike(self._constant(1), left, right, quotients)[:1]
            made = f"(CASE WHEN {turned} THEN {infix(whole, '-', one)} ELSE {whole} END)"
            return self._fitting(replace(quotients, sql=self._checked(made)))
        value, by_double, one = self._double(left), self.dialect.number(float(divisor)), self.dialect.number(1.0)
        exact = self.dialect.double_remainder(value, by_double)
        if exact is None:
            self._refuse(node, "of a column of floats, which this engine does not divide exactly")
        turned = f"{exact} {sign} {self.dialect.number(0.0)}"
        if symbol == "%":
            made = f"(CASE WHEN {turned} THEN {infix(exact, '+', by_double)} ELSE {exact} END)"
        else:  # as numpy divides floats
            quotient = infix(infix(value, "-", exact), "/", by_double)
            quotient = f"(CASE WHEN {turned} THEN {infix(quotient, '-', one)} ELSE {quotient} END)"
            floor = self.dialect.call("FLOOR", quotient)
            off = f"{infix(quotient, '-', floor)} > {self.dialect.number(0.5)}"
            made = f"(CASE WHEN {off} THEN {infix(floor, '+', one)} ELSE {floor} END)"
        return Value(self._checked(made), clean=False)

    @staticmethod
    def _fitting(value: Value) -> Value:
        """A whole number as a BIGINT, if that can hold it."""
        return value if value.is_wide else replace(value, sql=f"CAST({value.sql} AS BIGINT)")

    def _power(self, node: Operation, left: Value) -> Value:
        exponent = folded(node.parts[1]) if not _has_column(node.parts[1]) else -1
        if left.span is None or exponent not in range(65):
            self._refuse(node, "other than of whole numbers to a small whole power: write x * x")
        one = self._constant(1)
        return reduce(lambda made, _: self._whole(node, "*", made, left), range(int(exponent)), one)

    def _refuse(self, node: Node, why: str) -> NoReturn:
        raise ParameterError(
            f"{text_of(node)} is arithmetic {why}, or compute a column in a view of the database, and ask that."
        )

    def _checked(self, sql: str) -> str:
        if len(sql) > LONGEST:
            raise ParameterError(
                "an expression is nested too deeply for a database: compute a part of it as a column of a view."
            )
        return sql


_OF_WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip


def _has_column(node: Node) -> bool:
    return any(isinstance(each, Column | Rank) for each in below(node))
