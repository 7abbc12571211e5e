"""Row-wise expressions of SQL written for another engine than DuckDB, with the meaning that they have there."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import pandas as pd

from pdrisk._model.kinds import DATE, NUMBER, TEXT, TIME, TRUTH, ZONED
from pdrisk._model.nodes import (
    COMPARISONS,
    LOGIC,
    MISSING,
    ORDERINGS,
    Call,
    Case,
    Column,
    Constant,
    Node,
    Noisy,
    Operation,
)
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._sql.expressions.judged_expressions import dated
from pdrisk._sql.relations.group_keys import Grouping
from pdrisk._sql.relations.row_scope import Condition, Rows
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import constant, lowered
from pdrisk._sql.tables.source import Source
from pdrisk.engines.sql.calendar import BEGINNINGS, PARTS
from pdrisk.engines.sql.rowwise import RowSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.values import Value, checked
from pdrisk.errors import ParameterError

__all__ = ["NO_LITERAL", "VIEW", "RowsElsewhere"]

DIGITS: Final = 15  # of a number with a point, which a DOUBLE tells from all others of so many
NO_LITERAL: Final = -1  # the place of a key that no branch gives
ARITHMETIC: Final = ("+", "-", "*", "/", "unary -")
VIEW: Final = "make a view in the database with that as a column, and ask the view"


class RowsElsewhere:
    """Columns of a table and expressions of them, for another engine than DuckDB.

    Parameters
    ----------
    table : SQLTable
    source : Source
        What is declared of its columns.

    Attributes
    ----------
    rows : RowSQL
        Its columns as the methods of a Dataset read them.
    """

    def __init__(self, table: SQLTable, source: Source) -> None:
        missing: Mapping[str, Sequence[Hashable]] = {
            name: codes for name in source.columns if (codes := source.known(name).missing)
        }
        self.table = table
        self.rows = RowSQL(table.columns, missing, (), table.dialect)

    def holds(self, condition: Condition) -> str:
        """A condition of FROM or WHERE."""
        assert condition.node is not None and condition.rows is not None
        return self.truth(condition.node, condition.rows)

    def truth(self, node: Node, scope: Rows) -> str:
        """A condition: true where it is known to be true."""
        return self.rows.condition(self._made(node, scope))

    def number(self, node: Node, scope: Rows) -> str:
        """An expression as DOUBLE."""
        if isinstance(node, Column):
            return self.rows.double(self.column(node, scope))
        return self.rows.number(self._made(node, scope))

    def column(self, node: Node, scope: Rows) -> str:
        """The table's name of a column."""
        found = scope.column(node).column if isinstance(node, Column) else None
        if found is None:
            self._refuse(node)
        return found

    def group(self, group: Grouping, scope: Rows) -> tuple[Value, tuple[Any, ...] | None]:
        """Group as a value of each record, and the literals that its numbers stand for, if any.

        Literals need no common type of the engine, and no collation decides which of them are equal.
        """
        if group.column is not None:
            return self.rows.column(group.column), None
        assert group.node is not None
        node, scope = _behind(group.node, scope)
        if group.kind in (NUMBER, DATE, TIME) and isinstance(node, Call | Operation):
            value = self.rows.value(self._made(node, scope))
            if value.span is not None:
                return value, None
        if isinstance(node, Case) and group.kind in (TEXT, NUMBER, TRUTH):
            return self._of_literals(node, scope)
        if group.kind != TRUTH:
            raise _no_group()
        return self.rows.truth(self._made(node, scope)), None

    def _of_literals(self, node: Case, scope: Rows) -> tuple[Value, tuple[Any, ...]]:
        """CASE between literals as their positions."""
        results = [_literal(result) for result in (*(result for _, result in node.branches), node.otherwise)]
        literals = tuple(sorted({each for each in results if each is not None}))  # as their groups are
        *places, otherwise = (
            "NULL" if each is None else self.rows.dialect.whole(literals.index(each)) for each in results
        )
        conditions = (self.truth(when, scope) for when, _ in node.branches)
        arms = " ".join(f"WHEN {when} THEN {place}" for when, place in zip(conditions, places, strict=True))
        return Value(checked(f"(CASE {arms} ELSE {otherwise} END)"), span=(NO_LITERAL, len(literals))), literals

    def _made(self, node: Node, scope: Rows) -> Node:
        """Row-wise expression over the table's columns, in the nodes of filters."""

        def made(part: Node) -> Node:
            return self._made(part, scope)

        match node:
            case Column():
                return Column(self.column(node, scope))
            case Constant():
                return replace(node, value=_plain(node.value))
            case Case(branches, otherwise):
                return Case(tuple((made(when), made(then)) for when, then in branches), made(otherwise))
            case Call("date_part" | "date_trunc" as name, (Constant(str() as unit), time)):
                return Call(name, (Constant(self._unit(name, unit, node)), self._time(made(time), node)))
            case Call("nullif", (value, other)):
                return made(Case(((Operation("==", (value, other)), Constant(None)),), value))
            case Operation("unary -", (Constant(int() | float() | Decimal() as number),)):
                return Constant(_plain(-number))
            case Operation("between", (value, low, high)):
                return made(Operation("and", (Operation(">=", (value, low)), Operation("<=", (value, high)))))
            case Operation("in", (value, *members)):
                return self._member(tuple(map(made, (value, *members))))
            case Operation("/", (_, divisor)) if not _divides(divisor):
                return self._refuse(node)
            case Operation(symbol, parts) if symbol in {*LOGIC, *MISSING, *COMPARISONS, *ARITHMETIC, "coalesce"}:
                return self._of_parts(symbol, tuple(map(made, parts)))
        return self._refuse(node)

    def _unit(self, name: str, unit: str, node: Node) -> str:
        """A unit of times that all engines understand alike: of seconds some have fractions."""
        unit = {"doy": "dayofyear"}.get(unit.lower(), unit.lower())
        known = PARTS if name == "date_part" else BEGINNINGS
        return unit if unit in known else self._refuse(node)

    def _time(self, node: Node, asked: Node) -> Node:
        """A column of times without a zone, or what is made of one."""
        return node if self._kind(node) == DATE else self._refuse(asked)

    def _kind(self, node: Node) -> str | None:
        """Kind of a column, or of the beginning of a time."""
        if isinstance(node, Call) and node.name == "date_trunc":
            return DATE
        return family(of_values(self.table.columns[node.name].dtype)) if isinstance(node, Column) else None

    def _of_parts(self, symbol: str, parts: tuple[Node, ...]) -> Node:
        """An operation, of subqueries that came to NULL as SQL has it: what is computed of NULL is NULL."""
        if symbol in MISSING and isinstance(parts[0], Constant):
            return Constant((parts[0].value is None) == (symbol == "isna"))
        if symbol == "coalesce":
            known = tuple(each for each in parts if not _is_null(each))
            return Operation(symbol, known) if known else parts[0]
        if symbol not in LOGIC and symbol not in MISSING and any(map(_is_null, parts)):
            return Constant(None) if symbol in COMPARISONS else next(filter(_is_null, parts))
        return Operation(symbol, self._compared(symbol, parts) if symbol in COMPARISONS else parts)

    def _member(self, parts: tuple[Node, ...]) -> Node:
        """Membership in a list; a subquery in it that came to NULL leaves it unknown."""
        unknown = [Constant(None)] if any(map(_is_null, parts)) else []
        if _is_null(parts[0]):
            return unknown[0]
        value, *members = self._compared("==", tuple(each for each in parts if not _is_null(each)))
        if not all(isinstance(each, Constant) for each in members):
            raise ParameterError("IN takes values that are written out.")
        listed = [each.value for each in members if isinstance(each, Constant)]
        found = Operation("in", (value, Constant(listed)))
        return Operation("or", (found, *unknown)) if unknown else found

    def _compared(self, symbol: str, parts: tuple[Node, ...]) -> tuple[Node, ...]:
        """Operands of a comparison; dates written as text become dates, where engines agree how."""
        if any(isinstance(each, Constant) and each.value is None for each in parts):
            raise ParameterError("nothing equals NULL, nor is more or less: write IS NULL, or leave it out of a list.")
        dtypes = [self.table.columns[each.name].dtype for each in parts if isinstance(each, Column)]
        kinds = set(map(self._kind, parts))
        if ZONED in kinds:
            raise ParameterError(f"times with a zone are compared by the clock of a session: {VIEW}.")
        numbers = [each.value for each in parts if isinstance(each, Constant) and isinstance(each.value, int | float)]
        if np.dtype("float32") in dtypes and any(float(np.float32(number)) != number for number in numbers):
            raise ParameterError(
                "a column of 32-bit floats is compared with a number that these round, and engines round differently: "
                "compare with one such as 0.5, or make the column one of 64 bits in a view."
            )
        if symbol in ORDERINGS and any(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes):
            raise ParameterError("labels of an enumeration have an order of their own in some engines: write IN (...).")
        return tuple(map(_dated, parts)) if DATE in kinds else parts

    def _refuse(self, node: Node) -> NoReturn:
        raise ParameterError(
            f"{heading(node)} is computed of records, which pdrisk does not ask of this engine: {VIEW}."
        )


def _is_null(node: Node) -> bool:
    """Whether it is a subquery that came to NULL, or is computed of one; a NULL that is written out is a mistake."""
    return isinstance(node, Noisy) and node.value is None


def _divides(node: Node) -> bool:
    """Whether engines agree on what is divided by it."""
    return isinstance(node, Noisy) or (
        isinstance(node, Constant) and bool(node.value) and not isinstance(node.value, str)
    )


def _behind(node: Node, scope: Rows) -> tuple[Node, Rows]:
    """Expression of a name without a column, and the scope of its own names."""
    name = lowered(node.name) if isinstance(node, Column) and not node.qualifiers else ""
    if name not in scope.aliases or scope.relation.found(name, ()):
        return node, scope
    return _behind(scope.aliases[name], scope.without(name))


def _literal(node: Node) -> Any:
    """A constant as a key."""
    match node:
        case Constant(Decimal() as number):
            return float(number)
        case Constant(value):
            return value
        case Operation("unary -", (Constant(int() | float() | Decimal()) as number,)):
            return -_literal(number)
    raise _no_group()


def _no_group() -> ParameterError:
    return ParameterError(
        "GROUP BY takes columns, conditions, whole numbers and times that are computed, and CASE between values that "
        f"are written out, of a table in another engine, no other expressions: {VIEW}."
    )


def _plain(value: Any) -> Any:
    """A constant of SQL as a constant of filters."""
    if isinstance(value, Decimal):
        if len(value.as_tuple().digits) > DIGITS:
            raise ParameterError(f"a number of the query has more than {DIGITS} digits: write a shorter one.")
        return int(value) if value == value.to_integral_value() else float(value)
    return pd.Timestamp(value) if isinstance(value, datetime.date) else value


def _dated(node: Node) -> Node:
    """A date that is written as text."""
    if not isinstance(node, Constant) or not isinstance(node.value, str):
        return node
    return Constant(_plain(dated(constant(node.value), node).value))
