"""Casts that no record can stop, and whose result no column's type decides."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from dataclasses import replace

from pdrisk._model.expressions.kinds import (
    DATE,
    INTERVAL,
    NO_NUMBERS,
    NOTHING,
    NUMBER,
    PERIODS_IN_SQL,
    TEXT,
    TIME,
    TRUTH,
    UNCLEAR,
    ZONED,
)
from pdrisk._model.expressions.nodes import Constant
from pdrisk._sql.expressions.duckdb_arithmetic import cast_number, cast_result
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import INTEGERS, Expression, constant, kind_of_type, public, quoted, written_constant
from pdrisk._sql.syntax.ranges import ANYTHING, Range, range_of_function
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.engines.sql.compiler.casts import GRAMMARS
from pdrisk.errors import ParameterError

CASTS = re.compile(
    r"(U?(TINY|SMALL|BIG)INT|U?INTEGER|HUGEINT|FLOAT|DOUBLE|BOOLEAN|VARCHAR|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\))"
)
NAMES = {
    "INT": "INTEGER",
    "STRING": "VARCHAR",
    "TEXT": "VARCHAR",
    "REAL": "FLOAT",
    "BOOL": "BOOLEAN",
    "DECIMAL": "DECIMAL(18,3)",
    **dict.fromkeys(("NUMERIC", "DEC"), "DECIMAL(18,3)"),
    **dict.fromkeys(("INT1",), "TINYINT"),
    **dict.fromkeys(("INT2", "SHORT"), "SMALLINT"),
    **dict.fromkeys(("INT4", "SIGNED", "INTEGRAL"), "INTEGER"),
    **dict.fromkeys(("INT8", "LONG", "OID"), "BIGINT"),
    **dict.fromkeys(("FLOAT4",), "FLOAT"),
    **dict.fromkeys(("FLOAT8",), "DOUBLE"),
    **dict.fromkeys(("LOGICAL",), "BOOLEAN"),
    **dict.fromkeys(("CHAR", "BPCHAR", "NVARCHAR"), "VARCHAR"),
    **dict.fromkeys(("DATETIME", "TIMESTAMP WITHOUT TIME ZONE"), "TIMESTAMP"),
}
LENGTH = re.compile(r"\(\d+\)$")  # of VARCHAR(20), which DuckDB does not apply
# How one is written depends on the type of its column, which one record more can change.
NO_TEXT = {
    NUMBER: "compare numbers with numbers",
    TRUTH: "compare truth values with true and false",
    **dict.fromkeys((DATE, TIME, ZONED), "compare dates with dates, or ask for year(x)"),
    INTERVAL: "make a column of numbers, such as days",
}


def type_of_cast(written: str) -> str:
    """SQL type of a cast, by DuckDB's own name."""
    to = written.upper()
    if LENGTH.search(to):
        to = f"{to[:-1]},0)" if to.startswith(("DECIMAL", "NUMERIC")) else LENGTH.sub("", to)
    to = NAMES.get(to, to).replace("NUMERIC(", "DECIMAL(")
    if not CASTS.fullmatch(to):
        raise ParameterError(
            f"a cast to {written} is not understood: cast to a number, VARCHAR, DATE, TIMESTAMP or BOOLEAN."
        )
    return to


def cast(operand: Expression, to: str, scope: Scope, *, forgiving: bool) -> Expression:
    """Cast that is NULL for values it does not fit; DuckDB would stop there, and so reveal them.

    ``to``: as `type_of_cast` names it.
    ``forgiving``: whether it is written TRY_CAST.
    """
    kind = kind_of_type(to)
    if operand.kind in (PERIODS_IN_SQL, UNCLEAR) or (operand.kind in NO_NUMBERS and kind in (NUMBER, TRUTH)):
        raise ParameterError(f"no {kind} can be made of {operand.kind} by a cast: {NO_NUMBERS[operand.kind]}.")
    if scope.of_people and not operand.constant:
        if kind == TEXT and operand.kind == NUMBER:
            return number_as_text(operand, scope)
        _check_cast(operand, kind, scope)
    if operand.kind == ZONED:
        clock = f"TRY(system.main.timezone({written_constant(scope.zone)}, {operand.sql}))"
        operand = Expression(clock, TIME, "TIMESTAMP")
    if operand.type == to:
        return operand
    if scope.of_people and operand.kind == TEXT and kind in (NUMBER, DATE, TIME) and not operand.constant:
        operand = _grammatical(operand, "time" if kind != NUMBER else "whole" if to in INTEGERS else "number")
    if operand.may_be_nan and kind != NUMBER:
        operand = replace(operand, sql=operand.clean, never_nan=True)
    forgiving = forgiving or not _cannot_fail(operand, to, scope)
    converted = cast_result(cast_number(operand, to, forgiving), kind, to)
    return replace(converted, range=_range_of_cast(operand, to), values=_values_of_cast(operand, kind, to))


def _grammatical(operand: Expression, kind: str) -> Expression:
    """Text, NULL where it is not written as every engine reads it: not ``1_000``, ``0x10`` or ``inf``."""
    pattern = written_constant(GRAMMARS[kind])
    fits = f"system.main.regexp_full_match({operand.sql}, {pattern})"
    return replace(operand, sql=f"(CASE WHEN {fits} THEN {operand.sql} END)")


def _range_of_cast(operand: Expression, to: str) -> Range:
    if operand.kind == TRUTH:
        return Range(0.0, 1.0)
    if to == "DATE" and operand.kind == TIME:
        return range_of_function("floor", [operand.range], [False])
    whole = to in INTEGERS and operand.span is None
    return range_of_function("round", [operand.range], [False]) if whole else operand.range


def _values_of_cast(operand: Expression, kind: str, to: str) -> tuple[Scalar, ...] | None:
    """All values of the operand, if the cast leaves them unchanged."""
    values = operand.values
    if values is None or kind != operand.kind or kind not in (NUMBER, TEXT):
        return None
    if kind == TEXT:
        return values
    fits = INTEGERS.index(to) >= INTEGERS.index("INTEGER") if to in INTEGERS else to == "DOUBLE"
    whole = all(value is None or (type(value) is int and abs(value) < 2**31) for value in values)
    return values if fits and whole else None


def _check_cast(operand: Expression, kind: str, scope: Scope) -> None:
    """Refuse casts whose result depends on the type of a column, where one record can change that type."""
    if kind == TEXT and operand.kind in NO_TEXT:
        raise ParameterError(
            f"a cast of {operand.kind} to VARCHAR is refused: how they are written depends on the column's type, which "
            f"one record more can change. Instead, {NO_TEXT[operand.kind]}."
        )
    if name := next((name for name in sorted(scope.untyped) if quoted(name) in operand.sql), None):
        raise ParameterError(
            f"a cast of column {name!r} is refused: it holds Python objects, which are cast by what each of them is. "
            f'Convert the column before, such as frame.astype({{{name!r}: "string"}}).'
        )


def number_as_text(operand: Expression, scope: Scope) -> Expression:
    """A number as text: a whole one, which has one spelling whatever the type of its column."""
    if operand.constant:
        return replace(constant(str(operand.value)), constant=True)
    loose = any(quoted(name) in operand.sql for name in scope.numbers)
    if loose:
        _check_cast(operand, TEXT, scope)
    if operand.span is None or operand.wide:
        raise ParameterError(
            "a cast of numbers to VARCHAR is refused: how they are written depends on the engine, unless their type is "
            "whole. Make whole numbers of them first, as in CAST(CAST(FLOOR(x) AS INTEGER) AS VARCHAR)."
        )
    values = operand.values
    written = None if values is None else tuple(None if value is None else str(value) for value in values)
    return Expression(f"CAST({operand.sql} AS VARCHAR)", TEXT, "VARCHAR", values=written)


def _cannot_fail(operand: Expression, to: str, scope: Scope) -> bool:
    if operand.kind == NOTHING:
        return True
    if to == "VARCHAR":
        return operand.kind == TEXT or (not scope.of_people and operand.kind in NO_TEXT)
    if operand.kind == TRUTH:
        return to in INTEGERS or to == "DOUBLE"
    if operand.kind == NUMBER and to == "DOUBLE":
        return True
    if operand.type in INTEGERS and to in INTEGERS:
        wider = INTEGERS.index(operand.type) // 2 < INTEGERS.index(to) // 2
        return wider and (operand.type.startswith("U") or not to.startswith("U"))
    return False


def constant_cast(operand: Constant, to: str) -> Expression:
    """Cast of a constant, done now: whether it fails does not depend on data."""
    sql = f"CAST({written_constant(operand.value)} AS {to})"
    if to == "DATE" and isinstance(operand.value, str) and re.fullmatch(r"[1-9]\d{3}-\d\d-\d\d", operand.value):
        with suppress(ValueError):  # lists of them may be long, and to ask DuckDB takes a while
            return public(replace(constant(datetime.date.fromisoformat(operand.value)), sql=sql), operand)
    value = workspace.compute(f"SELECT {sql}", f"the constant in a cast to {to}")
    kind = NOTHING if operand.value is None else kind_of_type(to)
    lies = constant(value).range if kind in (NUMBER, DATE, TIME) else ANYTHING
    converted = replace(cast_result(sql, kind, to), constant=True, value=value, range=lies, values=(value,))
    return public(converted, operand)
