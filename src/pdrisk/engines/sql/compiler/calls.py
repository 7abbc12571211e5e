"""Functions and arithmetic of whole numbers in SQL: as every engine has them, or by an engine's `Dialect.own` words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pdrisk._model.expressions.kinds import NOTHING, NUMBER, ZONED
from pdrisk._model.expressions.nodes import Operation
from pdrisk.engines.sql.compiler.casts import cast
from pdrisk.engines.sql.compiler.comparisons import without_nan
from pdrisk.engines.sql.compiler.computing import SPANS, arithmetic
from pdrisk.engines.sql.compiler.numbers import of_numbers
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.texts import TEXTUAL, of_text
from pdrisk.engines.sql.compiler.times import TEMPORAL, of_times
from pdrisk.engines.sql.compiler.values import BIGINT, Value, as_double, checked, unified
from pdrisk.engines.sql.dialects.dialect import Dialect

ROUNDING, ENDS, DIVIDING = ("round", "trunc", "floor", "ceil", "ceiling"), ("greatest", "least"), ("//", "%", "mod")
WHOLE_AGAIN: Final = frozenset({"abs", *ROUNDING, *ENDS, *DIVIDING})  # of whole numbers, whole numbers again
WIDE: Final = (-BIGINT - 1, BIGINT)
WHOLE_TYPES: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def called(dialect: Dialect, name: str, values: Sequence[Value], written: Sequence[Any]) -> Value:
    """A function by its name in SQL; ``written`` are the values that are written out, else None."""
    if not dialect.own:
        return _portable(dialect, name, values, written)
    settled = [value.settled for value in values]
    if name in WHOLE_AGAIN and values and all(value.span is not None for value in values):
        if name in ROUNDING and len(values) == 1:
            return values[0]
        if name in ENDS and any(value.beyond for value in values):
            return _end(dialect, name, values)
        if name in DIVIDING or name == "abs":
            exact = _portable(dialect, name, [replace(value, beyond="") for value in values], written)
            if not (exact.is_wide or any(value.beyond for value in values)):
                return exact
            doubles = [Value(as_double(dialect, value)) for value in values]
            return _fitting(exact.sql, as_double(dialect, _portable(dialect, name, doubles, written)))
    native: Value | None = dialect.own.function(name, settled, written)
    return _portable(dialect, name, settled, written) if native is None else native


def _portable(dialect: Dialect, name: str, values: Sequence[Value], written: Sequence[Any]) -> Value:
    """A function as every engine has it."""
    if any(value.family == ZONED for value in values):
        refuse(dialect, f"{name}() of times with a zone", "they are read by the clock of a session")
    if name in TEMPORAL:
        return of_times(dialect, name, values, written)
    return (of_text if name in TEXTUAL else of_numbers)(dialect, name, values, written)


def cast_of(dialect: Dialect, value: Value, to: str) -> Value:
    """A cast, as `cast` or the engine's own; refuses as `cast` does."""
    if value.beyond and to in ("BIGINT", "HUGEINT"):  # which it is as far as it is one
        return value
    if value.beyond and to in WHOLE_TYPES:
        value = replace(value, beyond="")
    native: Value | None = dialect.own.cast(value.settled, to) if dialect.own else None
    return cast(dialect, value.settled, to) if native is None else native


def computed(dialect: Dialect, node: Operation, symbol: str, left: Value, right: Value) -> Value:
    """Arithmetic as `arithmetic` has it; what does not fit whole numbers is a DOUBLE where `Dialect.own` has such."""
    if not dialect.own or symbol not in SPANS or left.span is None or right.span is None:
        return arithmetic(dialect, node, symbol, left.settled, right.settled)
    ends = [SPANS[symbol](one, other) for one in left.span for other in right.span]
    if not (left.beyond or right.beyond) and min(ends) >= -BIGINT - 1 and max(ends) <= BIGINT:
        return arithmetic(dialect, node, symbol, left, right)
    one, other = (f"CAST({value.sql} AS BIGINT)" for value in (left, right))
    doubles = (Value(as_double(dialect, value)) for value in (left, right))
    exact = f"TRY({dialect.infix(one, symbol, other)})"
    return _fitting(exact, arithmetic(dialect, node, symbol, *doubles).sql)


def _fitting(exact: str, double: str) -> Value:
    """A whole number that is NULL where BIGINT cannot hold it; then it is a DOUBLE."""
    fits = f"TRY_CAST({exact} AS BIGINT)"
    return Value(checked(fits), span=WIDE, beyond=checked(f"COALESCE(CAST({fits} AS DOUBLE), {double})"))


def _end(dialect: Dialect, name: str, values: Sequence[Value]) -> Value:
    """GREATEST or LEAST of whole numbers, as DOUBLEs where one does not fit."""
    fit = " AND ".join(f"({value.sql} IS NOT NULL OR {value.beyond} IS NULL)" for value in values if value.beyond)
    exact = dialect.call(name.upper(), *(f"CAST({value.sql} AS BIGINT)" for value in values))
    double = dialect.call(name.upper(), *(as_double(dialect, value) for value in values))
    return Value(checked(f"(CASE WHEN {fit} THEN {exact} END)"), span=WIDE, beyond=checked(double))


def chosen(dialect: Dialect, whens: Sequence[str], results: Sequence[Value]) -> Value:
    """CASE of conditions and results, the last of which is for ELSE, in one type."""

    def written(results: Sequence[str]) -> str:
        arms = (f"WHEN {when} THEN {then}" for when, then in zip(whens, results[:-1], strict=True))
        return checked(f"(CASE {' '.join(arms)} ELSE {results[-1]} END)")

    if _is_of_two(results):
        exact, doubles = zip(*(_both(dialect, result) for result in results), strict=True)
        return Value(written(exact), span=WIDE, beyond=written(doubles))
    converted = unified(dialect, [result.settled for result in results])
    return (
        converted[0]
        if converted[0].family == NOTHING
        else replace(converted[0], sql=written([value.sql for value in converted]))
    )


def first(dialect: Dialect, values: Sequence[Value]) -> Value:
    """COALESCE, of values in one type."""
    if _is_of_two(values):
        exact, doubles = zip(*(_both(dialect, value) for value in values), strict=True)
        # Not the next one for what is there and does not fit.
        arms = " ".join(f"WHEN {double} IS NOT NULL THEN {whole}" for whole, double in zip(exact, doubles, strict=True))
        return Value(checked(f"(CASE {arms} END)"), span=WIDE, beyond=checked(f"COALESCE({', '.join(doubles)})"))
    converted = unified(dialect, [without_nan(dialect, value.settled) for value in values])
    sql = checked(f"COALESCE({', '.join(value.sql for value in converted)})")
    return converted[0] if converted[0].family == NOTHING else replace(converted[0], sql=sql)


def _is_of_two(values: Sequence[Value]) -> bool:
    """Whether they are whole numbers, some of which BIGINT may not hold."""
    there = [value for value in values if value.family != NOTHING]
    is_number = all(value.family == NUMBER and value.span is not None and not value.is_truth for value in there)
    return is_number and any(value.beyond for value in there)


def _both(dialect: Dialect, value: Value) -> tuple[str, str]:
    """A whole number as BIGINT, and as DOUBLE."""
    return ("NULL", "NULL") if value.family == NOTHING else (f"CAST({value.sql} AS BIGINT)", as_double(dialect, value))
