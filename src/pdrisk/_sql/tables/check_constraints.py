"""Values that CHECK constraints allow: a range or a list for each column.

A CHECK lets a row pass unless it is known to be false, so it says nothing of missing values, and a list with NULL in it
allows everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Final, TypeGuard

from pdrisk._core.days import day_number, moment
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.expressions.nodes import MIRRORED, ORDERINGS, Cast, Column, Constant, Node, Operation
from pdrisk._model.plain import are_dates, stamp_of
from pdrisk._sql.syntax.pieces import INTEGERS, LARGEST
from pdrisk._sql.syntax.tree import Scalar

Number = int | float | Decimal
#: Types that keep the values and the order of all others.
KEEPING: Final = {NUMBER: "DOUBLE", TEXT: "VARCHAR", DATE: "TIMESTAMP", TIME: "TIMESTAMP"}
FEW: Final = 2**53  # a float holds every whole number up to here


@dataclass(frozen=True, slots=True)
class CatalogType:
    """Type of a column: a kind of `pdrisk._model.expressions.kinds`, "" for one that is not declared."""

    kind: str
    is_whole: bool = False  # whether it has whole numbers or days only
    labels: tuple[str, ...] | None = None  # of an ENUM


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """Values that a column may have: a closed range, infinite where it is open, and a list; None without one.

    A range of dates is one of days since 1970-01-01.
    """

    lo: Number = -math.inf
    hi: Number = math.inf
    values: tuple[Scalar, ...] | None = None

    def shared(self, other: AllowedValues) -> AllowedValues:
        """What both allow, in the order of the first list."""
        lists = [listed for listed in (self.values, other.values) if listed is not None]
        common = set(lists[0]).intersection(*lists[1:]) if lists else set()
        values = tuple(value for value in lists[0] if value in common) if lists else None
        return AllowedValues(max(self.lo, other.lo), min(self.hi, other.hi), values)

    @property
    def keys(self) -> list[Scalar] | None:
        """The list, without numbers outside of the range."""
        if self.values is None:
            return None
        return [value for value in self.values if not _is_number(value) or self.lo <= value <= self.hi]

    @property
    def ends(self) -> tuple[Number, Number]:
        """The range; of a list of numbers the smallest and the largest."""
        numbers = [value for value in self.keys or () if _is_number(value)]
        return (min(numbers), max(numbers)) if numbers else (self.lo, self.hi)


ByColumn = dict[str, AllowedValues]


def allowed_values(node: Node, columns: Mapping[str, CatalogType]) -> ByColumn | None:
    """What a condition allows, by column; None if it may say anything else.

    ``columns``: those of the table, by their names in a condition.
    """
    match node:
        case Operation("and", parts):
            return _both([allowed_values(part, columns) for part in parts])
        case Operation("or", parts):
            return _either(parts, columns)
        case Operation("between", (value, low, high)):
            return _both([_ordered(">=", value, low, columns), _ordered("<=", value, high, columns)])
        case Operation("notna", (value,)) if (name := _column(value, columns)) is not None:
            return {name: AllowedValues()}  # a missing value is none that is declared
        case Operation(symbol, (left, right)) if symbol in ORDERINGS:
            return _ordered(symbol, left, right, columns) or _ordered(MIRRORED[symbol], right, left, columns)
        case Operation("==", (left, right)):
            return _listed(left, (right,), columns) or _listed(right, (left,), columns)
        case Operation("in", (left, *listed)):
            return _listed(left, listed, columns)
    return None


def _both(parts: Sequence[ByColumn | None]) -> ByColumn | None:
    """What all of them allow."""
    allowed: ByColumn = {}
    for part in parts:
        if part is None:
            return None
        allowed |= {name: allowed.get(name, AllowedValues()).shared(values) for name, values in part.items()}
    return allowed


def _either(parts: Sequence[Node], columns: Mapping[str, CatalogType]) -> ByColumn | None:
    """What one condition on a column allows, or that its value is missing; or what several lists of it allow."""
    missing = [part for part in parts if isinstance(part, Operation) and part.symbol == "isna"]
    alternatives = [allowed_values(part, columns) for part in parts if part not in missing]
    ways = [way for way in alternatives if way is not None]
    names = {name for way in ways for name in way} | {_column(part.parts[0], columns) for part in missing}
    name = names.pop() if len(names) == 1 else None
    if name is None or not ways or None in alternatives:
        return None
    if len(ways) == 1:
        return ways[0]
    lists = [way[name].values or () for way in ways]
    if any(way[name] != AllowedValues(values=values) for way, values in zip(ways, lists, strict=True)):
        return None  # as two ranges
    return {name: AllowedValues(values=tuple(dict.fromkeys(chain.from_iterable(lists))))}


def _ordered(symbol: str, left: Node, right: Node, columns: Mapping[str, CatalogType]) -> ByColumn | None:
    """What a comparison of a column with a number or date allows."""
    name, end = _column(left, columns), _constant(right)
    if name is None or columns[name].kind not in (NUMBER, DATE, TIME):
        return None
    if columns[name].kind != NUMBER:
        end = _days(end)
    if not _is_number(end):
        return None
    if columns[name].is_whole:
        end = math.floor(end) if symbol in ("<=", ">") else math.ceil(end)
        end += {">": 1, "<": -1}.get(symbol, 0)
    end = _plain(end, columns[name])
    return {name: AllowedValues(lo=end) if symbol in (">", ">=") else AllowedValues(hi=end)}


def _listed(left: Node, listed: Sequence[Node], columns: Mapping[str, CatalogType]) -> ByColumn | None:
    """What a list of constants allows."""
    name = _column(left, columns)
    if name is None:
        return None
    column = columns[name]
    values: list[Scalar] = [_constant(node, column) for node in listed]
    if column.kind == NUMBER:
        numbers = [value for value in values if _is_number(value)]
        if len(numbers) < len(values):
            return None
        values = [_plain(value, column) for value in numbers if not column.is_whole or value == math.floor(value)]
    elif not all(isinstance(value, {TEXT: str, TRUTH: bool}.get(column.kind, ())) for value in values):
        return None
    return {name: AllowedValues(values=tuple(dict.fromkeys(values)))}


def _column(node: Node, columns: Mapping[str, CatalogType]) -> str | None:
    """The column that an operand is, as it is or in a wider type."""
    match node:
        case Column(name, ()) if name in columns:
            return str(name)
        case Cast(operand, to):
            name = _column(operand, columns)
            return name if name is not None and to.upper() == KEEPING.get(columns[name].kind) else None
    return None


def _constant(node: Node, column: CatalogType | None = None) -> Scalar:
    """The value of a constant, also in a cast that keeps it; None for anything else."""
    match node:
        case Constant(value, None):
            return value
        case Operation("unary -", (operand,)):
            value = _constant(operand)
            return -value if _is_number(value) else None
        case Cast(operand, to):
            return _in_type(_constant(operand), to.upper(), column)
    return None


def _in_type(value: Scalar, to: str, column: CatalogType | None) -> Scalar:
    """A constant in another type, if that keeps it; None else."""
    if to == "ENUM":
        return value if column is not None and column.labels else None
    if isinstance(value, str) and to in ("VARCHAR", "BPCHAR"):
        return value.rstrip(" ") if to == "BPCHAR" else value
    if to in ("DATE", "TIMESTAMP"):
        days = _days(value)
        return None if days is None else moment(math.floor(days) if to == "DATE" else days, times=to == "TIMESTAMP")
    if to != "DOUBLE" and to not in INTEGERS:
        return None
    with suppress(InvalidOperation):
        value = Decimal(value) if isinstance(value, str) else value
    return value if _is_number(value) and (to == "DOUBLE" or value == math.floor(value)) else None


def _days(value: object) -> float | None:
    """Days from 1970-01-01 to a date, a time without a zone, or the text of one; None for anything else."""
    if not are_dates([value]) or (stamp := stamp_of(value)) is None or stamp.tzinfo is not None:
        return None
    return day_number(stamp)


def _is_number(value: object) -> TypeGuard[Number]:
    """Whether it is a number that a float comes near to."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    if isinstance(value, Decimal) and not value.is_finite():  # a signalling NaN compares with nothing
        return False
    return -LARGEST <= value <= LARGEST


def _plain(value: Number, column: CatalogType) -> Number:
    """A number as a bound or a key is passed: a whole one as int where a float would hold it, too."""
    is_whole = column.is_whole or (value == math.floor(value) and -FEW <= value <= FEW)
    return int(value) if is_whole else float(value)
