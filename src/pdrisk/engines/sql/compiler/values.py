"""Operands of row-wise expressions in SQL: stored columns in a normal form, and values computed from them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.kinds import DATE, NOTHING, NUMBER, TEXT, TRUTH, ZONED
from pdrisk._model.expressions.nodes import Column, Node, Rank, below
from pdrisk._model.rowwise.families import UNITS
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.errors import ParameterError

EXACT: Final = 2**106  # whole numbers are computed exactly up to here
WIDEST: Final = 2**126  # a product of two may be so large, and is compared with smaller numbers alone
BIGINT: Final = 2**63 - 1
FEW: Final = 2**53  # a DOUBLE holds every whole number up to here
INTEGERS: Final = frozenset(
    {"TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"}
)  # of DuckDB
LONGEST: Final = 2_000_000  # letters of one expression


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Column of a table, as an engine of SQL reads it."""

    name: str  # its identifier, quoted
    # Its values, by its dtype: of integers any integer type of the engine, else DOUBLE, text, BOOLEAN, or of
    # times the BIGINT of units of the dtype since 1970 (in UTC). NULL where there is none; NaN may be left.
    value: str
    dtype: Any  # that stands for its type in pandas; ``object`` if nothing can be asked of it
    type: str  # what the engine calls its type, for people
    exact: str | None = None  # what tells values apart that ``value`` rounds, such as those of decimals
    clean: bool = False  # whether none of its floats is NaN

    @property
    def is_readable(self) -> bool:
        """Whether any question can use it."""
        return self.dtype != object

    @property
    def is_of_days(self) -> bool:
        """Whether it holds dates, which requests are judged by as times."""
        return self.type.lower() == "date"


@dataclass(frozen=True, slots=True)
class Value:
    """Operand: SQL that is NULL, or NaN, where a record has no value."""

    sql: str
    family: str = NUMBER  # as `families.family` calls it
    # Of whole numbers: the least and the largest by type. None of DOUBLEs and texts.
    span: tuple[int, int] | None = None
    unit: int = 1  # of times, the nanoseconds that 1 stands for
    narrow: bool = False  # whether constants beside it are rounded to 32 bits
    is_truth: bool = False  # whether it is a BOOLEAN
    clean: bool = True  # whether it is never NaN
    is_day: bool = False  # of times: whether it is a date, without a time of day
    # Of a whole number whose ``sql`` is NULL where it does not fit: its value as DOUBLE, always. Only engines
    # of `Dialect.own` have such.
    beyond: str = ""
    # of a stored time its ``sql`` and the column, which engines of `Dialect.own` compare as it is; of a
    # DECIMAL, too
    stored: tuple[str, str] = ("", "")

    @property
    def native(self) -> str:
        """A time as the engine stores it, also what lies outside of the calendar, or a DECIMAL; "" of others."""
        return self.stored[1] if self.stored[0] == self.sql else ""

    @property
    def settled(self) -> Value:
        """The value as one expression."""
        return Value(self.beyond) if self.beyond else self

    @property
    def is_wide(self) -> bool:
        """Whether BIGINT may be too narrow for it."""
        return self.span is not None and not (self.span[0] >= -BIGINT - 1 and self.span[1] <= BIGINT)


def constant(dialect: Dialect, value: Any) -> Value:
    """A constant of arithmetic or logic."""
    if isinstance(value, bool):
        return Value("true" if value else "false", is_truth=True)
    if isinstance(value, float) and value.is_integer() and abs(value) < FEW:
        value = int(value)  # what is whole is computed as such
    if isinstance(value, int):
        return Value(dialect.whole(value), span=(value, value))
    return Value(dialect.double("NULL") if math.isnan(value) else dialect.number(float(value)))


def literal(dialect: Dialect, value: Any) -> Value:
    """A constant that stands in a query: a number, text, truth value or time, or NULL."""
    if value is None:
        return Value("NULL", NOTHING)
    if isinstance(value, str):
        return Value(text_literal(dialect, value), TEXT)
    if isinstance(value, dt.date):
        ticks = int(np.datetime64(value, "us").astype(np.int64))
        is_day = not isinstance(value, dt.datetime)
        return Value(dialect.whole(ticks), DATE, (ticks, ticks), UNITS["us"], is_day=is_day)
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    return constant(dialect, value)


def moment(value: Value, beside: Any) -> Any:
    """A constant beside a value: a date, or a text that says one, beside times as a time."""
    is_time = value.family == DATE and isinstance(beside, str | dt.date)
    return pd.Timestamp(beside) if is_time else beside


def text_literal(dialect: Dialect, value: str) -> str:
    """A text that is written out."""
    if "\0" in value:
        raise ParameterError("a text with a zero character cannot be asked for in a database: leave it out.")
    return dialect.text(str.__str__(value))


def dtype_of(value: Value) -> Any:
    """The dtype that stands for a value in pandas: of whole numbers the smallest that holds all by their type."""
    if value.is_truth:
        return pd.BooleanDtype()
    if value.family == TEXT:
        return pd.StringDtype("python")
    if value.family in (DATE, ZONED):
        unit = next(name for name, size in UNITS.items() if size == value.unit)
        times = np.dtype(f"datetime64[{unit}]")
        return times if value.family == DATE else pd.Series(dtype=times).dt.tz_localize("UTC").dtype
    if value.span is None or value.is_wide:
        return np.dtype("float32" if value.narrow else "float64")
    bits = next(
        bits for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= value.span[0] and value.span[1] < 2 ** (bits - 1)
    )
    return pd.api.types.pandas_dtype(f"Int{bits}")


def unified(dialect: Dialect, values: Sequence[Value]) -> list[Value]:
    """Values in one type, with what is known of all of them."""
    there = [value for value in values if value.family != NOTHING]
    if not there:
        return list(values)
    families = {TRUTH if value.is_truth else value.family for value in there}
    if families <= {TRUTH, NUMBER} and families != {TRUTH}:
        there = [quantity(dialect, value) for value in there]
        if any(value.span is None for value in there):
            clean = all(value.clean for value in there)
            there = [Value(as_double(dialect, value), clean=clean) for value in there]
    elif len(families) > 1:
        raise ParameterError(f"{' and '.join(sorted(families))} stand beside each other: make one of the other.")
    if all(value.span is not None for value in there):
        unit = min(value.unit for value in there)
        there = [scaled(dialect, value, value.unit // unit) for value in there]
        spans = [value.span for value in there if value.span is not None]
        whole = replace(
            there[0], sql="", span=(min(low for low, _ in spans), max(high for _, high in spans)), unit=unit,
            is_day=all(value.is_day for value in there),
        )  # fmt: skip
        *texts, _ = alike(dialect, *there, whole)
        there = [replace(whole, sql=text) for text in texts]
    remaining = iter(there)
    return [replace(there[0], sql="NULL") if value.family == NOTHING else next(remaining) for value in values]


def scaled(dialect: Dialect, value: Value, factor: int) -> Value:
    """A whole number in a smaller unit, of which so many make one."""
    if factor == 1 or value.span is None:
        return value
    sql = dialect.infix(dialect.wide(value.sql), "*", dialect.wide(f"'{factor}'"))
    return replace(value, sql=sql, span=(value.span[0] * factor, value.span[1] * factor), unit=value.unit // factor)


def quantity(dialect: Dialect, value: Value) -> Value:
    """A truth value as 1 or 0."""
    if not value.is_truth:
        return value
    one, zero = dialect.whole(1), dialect.whole(0)
    sql = f"(CASE WHEN {value.sql} THEN {one} WHEN NOT {value.sql} THEN {zero} END)"
    return replace(value, sql=sql, is_truth=False, span=(0, 1))


def alike(dialect: Dialect, *values: Value) -> list[str]:
    """Whole numbers in one type."""
    if any(value.is_wide for value in values):
        return [value.sql if value.is_wide else dialect.wide(value.sql) for value in values]
    return [f"CAST({value.sql} AS BIGINT)" for value in values]


def as_double(dialect: Dialect, value: Value) -> str:
    """A number as the nearest DOUBLE."""
    if value.beyond:
        return value.beyond
    within_reach(value)
    if value.span is None and not value.narrow:
        return value.sql
    return dialect.double_of_wide(value.sql) if value.is_wide else dialect.double(value.sql)


def within_reach(*values: Value) -> None:
    """Refuse products so large that a frame would round them."""
    if any(value.span is not None and max(map(abs, value.span)) > EXACT for value in values):
        raise ParameterError(
            "a product of whole numbers of 64 bits may exceed 2**106, beyond which frames round it: compare it with a "
            "constant, make the columns smaller types in a view, or compute it as a column of a view."
        )


def checked(sql: str) -> str:
    """The expression, unless it is too long for an engine."""
    if len(sql) > LONGEST:
        raise ParameterError(
            "an expression is too long for a database, by nesting or by a long list: compute a part of it as a column "
            "of a view, or ask about ranges."
        )
    return sql


def has_column(node: Node) -> bool:
    """Whether it depends on a record."""
    return any(isinstance(part, Column | Rank) for part in below(node))
