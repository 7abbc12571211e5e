"""Pieces of SQL with the kind of value each gives; how names and constants are written."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pdrisk._core.days import day_number
from pdrisk._model.expressions.kinds import DATE, NOTHING, NUMBER, TEXT, TIME, TRUTH, ZONED
from pdrisk._model.expressions.nodes import MEMBERSHIP, MISSING, Constant, Node
from pdrisk._sql.syntax.ranges import ANYTHING, Range
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.engines.sql.summary.summary_plan import INFINITY
from pdrisk.errors import ParameterError

INTEGERS = ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT")
BIGINT = (-(2**63), 2**63 - 1)
LARGEST = 2**1024 - 2**971  # of floats
RANGED = (NUMBER, DATE, TIME)  # kinds of values that lie in a range
#: Of noisy values and what is computed of them, by kind.
TYPES = {NUMBER: "DOUBLE", TEXT: "VARCHAR", TRUTH: "BOOLEAN", DATE: "DATE", TIME: "TIMESTAMP", NOTHING: "VARCHAR"}
_KINDS = {
    "BOOLEAN": TRUTH, "VARCHAR": TEXT, "ENUM": TEXT, "DATE": DATE, "TIMESTAMP": TIME, "TIMESTAMP WITH TIME ZONE": ZONED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Day:
    """A column of dates or times, whose day alone decides an expression."""

    column: str  # its name in the source
    sql: str  # how expressions read it
    type: str  # as which SQL type


@dataclass(frozen=True, slots=True)
class Expression:
    """Piece of SQL with its kind."""

    sql: str  # of a whole number that may be too large for BIGINT: NULL then, and ``wide`` has it
    kind: str  # one of `pdrisk._model.expressions.kinds`, or the name of another type
    type: str = ""  # the SQL type where it is known for certain; ``constant`` for a short literal, else ""
    column: str | None = None  # the column of the source, if it is nothing else
    constant: bool = False
    value: Scalar = None
    span: tuple[int, int] | None = None  # of a whole number: the range that ``sql`` can have by its type
    wide: str = ""  # of a whole number that may be too large for BIGINT: its value as DOUBLE, always
    given: bool = False  # whether the value of a parameter is in it
    shown: str = ""  # for people, with the names of parameters instead of their values; of a relation's columns only
    # Of numbers: where they lie by what they are made of. Of dates and times: in days since 1970-01-01; of the
    # time between two, in days.
    range: Range = ANYTHING
    # all that it can be, where that is written out in the query or known of a function
    values: tuple[Scalar, ...] | None = None
    day: Day | None = None  # the column whose day alone decides it, of groups and of a relation's columns
    # `holds`, `denied`: Of a condition on what may be NaN: where it is known to be true, and known to be false;
    # elsewhere false or NULL. ``sql`` is NULL there. "" where ``sql`` itself says it.
    holds: str = ""
    denied: str = ""
    never_nan: bool = False  # whether a number that is no whole one by its type is never NaN
    uncut: str = ""  # of a noisy number that ``sql`` has as it is shown: the same before it is cut to its range
    counts: bool = False  # whether a noisy number is a whole one, as counts and their sums are, though a DOUBLE
    tree: Any = None  # how an uncut number is computed, for its interval: see `pdrisk._sql.noisy.uncut`
    node: Node | None = None  # the same over the columns of the source, of a relation's columns and conditions
    # whether it is that of any row among several, since nothing orders them: nobody may read it
    of_any_row: bool = False

    @property
    def condition(self) -> str:
        """A condition where records are chosen by it: true where it is known to be true."""
        return self.holds or self.sql

    @property
    def negation(self) -> str:
        """The same for its negation: true where it is known to be false."""
        return self.denied or f"(NOT {self.sql})"

    @property
    def may_be_nan(self) -> bool:
        """Whether it is a number that may be NaN, which is missing like NULL."""
        is_float = self.span is None and not self.type.startswith("DECIMAL")
        is_nan = self.constant and self.value != self.value
        return self.kind == NUMBER and is_float and (is_nan or not (self.constant or self.never_nan))

    @property
    def clean(self) -> str:
        """The value, NULL where it is NaN."""
        return f"(CASE WHEN {self.present} THEN {self.sql} END)" if self.may_be_nan else self.sql

    @property
    def double(self) -> str:
        """The value as DOUBLE."""
        if self.type == "DOUBLE":
            return self.sql
        return self.wide or f"CAST({self.sql} AS DOUBLE)"

    @property
    def present(self) -> str:
        """Condition that there is a value: neither NULL nor, of numbers, NaN."""
        is_whole_column = self.column is not None and self.type in INTEGERS and not self.wide
        if self.kind != NUMBER or is_whole_column:  # of which no copy as DOUBLE need be made
            return f"({self.sql} IS NOT NULL)"
        return f"({self.double} <= {INFINITY})"


def kind_of_type(sql_type: str) -> str:
    """Kind of a column of this type."""
    if sql_type.endswith("]"):
        return "lists"
    name = sql_type.partition("(")[0]
    if name in INTEGERS or name in ("UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"):
        return NUMBER
    return _KINDS.get(name, name.lower())


def limits(sql_type: str) -> tuple[int, int]:
    """Smallest and largest whole number of an integer type."""
    bits = 128 if sql_type == "UHUGEINT" else 8 << (INTEGERS.index(sql_type) // 2)
    return (0, 2**bits - 1) if sql_type.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def number(sql: str, sql_type: str, column: str | None = None) -> Expression:
    """A number of this type as an expression."""
    if sql_type not in INTEGERS and sql_type != "UHUGEINT":
        return Expression(sql, NUMBER, sql_type, column)
    low, high = limits(sql_type)
    if BIGINT[0] <= low and high <= BIGINT[1]:
        return Expression(sql, NUMBER, sql_type, column, span=(low, high))
    span = max(low, BIGINT[0]), BIGINT[1]
    return Expression(f"TRY_CAST({sql} AS BIGINT)", NUMBER, sql_type, column, span=span, wide=f"CAST({sql} AS DOUBLE)")


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


_WORDS = {"==": "=", "!=": "<>", "isna": "IS NULL", "notna": "IS NOT NULL"}


def word(symbol: str) -> str:
    """An operator as SQL writes it."""
    return _WORDS.get(symbol) or symbol.removeprefix("unary ").upper()


def operation(symbol: str, parts: Sequence[str]) -> str:
    """An operation on parts that are written out, in brackets."""
    if symbol == "between":
        return f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})"
    if symbol in MEMBERSHIP:
        return f"({parts[0]} {word(symbol)} ({', '.join(parts[1:])}))"
    if symbol in MISSING:
        return f"({parts[0]} {word(symbol)})"
    if symbol in ("coalesce", "try"):
        return f"{symbol}({', '.join(parts)})"
    if len(parts) == 1:
        return f"({word(symbol)}{' ' * (symbol == 'not')}{parts[0]})"
    return f"({f' {word(symbol)} '.join(parts)})"


def case(branches: Iterable[tuple[str, str]], otherwise: str) -> str:
    """CASE of conditions and results that are written out."""
    arms = " ".join(f"WHEN {when} THEN {then}" for when, then in branches)
    return f"CASE {arms} ELSE {otherwise} END"


def lowered(name: str) -> str:
    """A name as DuckDB compares it: ASCII letters in lower case, others unchanged."""
    return (
        name.lower() if name.isascii() else "".join(letter.lower() if letter.isascii() else letter for letter in name)
    )


def written_constant(value: Scalar) -> str:
    """A literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
        case datetime.date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case float() if not math.isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)" if value < 0 else f"{value!r}" + ("" if "e" in repr(value) else "e0")
        case Decimal() if not value.is_finite():
            raise ParameterError("a number in the query is not finite.")
        # DuckDB would fail where a record has it computed, and nowhere else.
        case int() | Decimal() if not -LARGEST <= value <= LARGEST:
            raise ParameterError("a number in the query is too large for a float.")
        case int():
            return f"CAST('{value}' AS {_integer(value)})" if value < 0 else f"{value}"
        case Decimal():
            if value >= 0:
                return f"({value:f})"
            scale = len(f"{value:f}".partition(".")[2])
            return f"CAST('{value:f}' AS {f'DECIMAL(18,{scale})' if _is_short(value) else 'DOUBLE'})"


def _integer(value: int) -> str:
    return next((name for name, bits in (("INTEGER", 31), ("BIGINT", 63)) if -(2**bits) <= value < 2**bits), "HUGEINT")


def constant(value: Scalar) -> Expression:
    """A literal or the value of a parameter."""
    kind, sql_type = _kind_of_constant(value)
    span = None
    if type(value) is int and BIGINT[0] <= value <= BIGINT[1]:
        span = value, value
    lies = ANYTHING
    if kind == NUMBER:
        with suppress(OverflowError):  # of whole numbers beyond floats
            lies = Range(float(value), float(value))  # type: ignore[arg-type]
    elif isinstance(value, datetime.date):
        lies = Range(day_number(value), day_number(value))
    return Expression(
        written_constant(value), kind, sql_type, constant=True, value=value, span=span, range=lies, values=(value,)
    )


def public(expression: Expression, node: Constant) -> Expression:
    """A constant; for a parameter without range and values, which public texts would show."""
    return expression if node.given is None else replace(expression, range=ANYTHING, values=None)


def _kind_of_constant(value: Scalar) -> tuple[str, str]:
    match value:
        case None:
            return NOTHING, ""
        case bool():
            return TRUTH, "BOOLEAN"
        case str():
            return TEXT, "VARCHAR"
        case datetime.datetime():
            return TIME, "TIMESTAMP"
        case datetime.date():
            return DATE, "DATE"
        case Decimal():
            return NUMBER, "constant" if _is_short(value) else ""
        case int():
            return NUMBER, "constant" if BIGINT[0] <= value <= BIGINT[1] else ""
    return NUMBER, "DOUBLE"


def _is_short(value: Decimal) -> bool:
    """Whether a DECIMAL is short: a long one would convert the other side to a type that may not hold it."""
    return len(f"{value:f}") <= 12
