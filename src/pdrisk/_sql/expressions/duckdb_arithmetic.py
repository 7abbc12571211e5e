"""Arithmetic that no record can stop, and whose meaning no column's width decides.

Whole numbers are computed in BIGINT. What does not fit it is a DOUBLE, for that record alone: such an expression has
two sides, ``sql``, which is NULL for what does not fit, and ``wide``, a DOUBLE that always holds. All else is computed
in DOUBLE.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pdrisk._model.expressions.kinds import NOTHING, NUMBER, TRUTH
from pdrisk._model.expressions.nodes import MEMBERSHIP, NEGATED
from pdrisk._sql.syntax.pieces import BIGINT, Expression, case, constant, number, operation, quoted
from pdrisk.engines.sql.compiler.comparisons import nan_decides

KEEP_WHOLE = frozenset({"+", "-", "*", "//", "%", "mod", "abs"})  # of whole numbers, whole numbers again
DIVIDING = frozenset({"//", "%", "mod", "fmod"})  # of which there is none by zero
ROUNDING = frozenset({"round", "trunc", "floor", "ceil", "ceiling"})
ENDS = frozenset({"greatest", "least"})
DISTINCT = {"is not distinct from": "==", "is distinct from": "!="}
BLIND_TO_NAN = frozenset({*ENDS, "sign", "^", "**", "pow", "power"})  # which make a number of NaN


def is_whole(parts: Sequence[Expression]) -> bool:
    """Whether all of them are whole numbers."""
    return all(part.span is not None for part in parts)


def as_double(part: Expression) -> Expression:
    """The number as DOUBLE."""
    if part.kind == NOTHING:
        return part
    return replace(part, sql=part.double, type="DOUBLE", span=None, wide="", never_nan=not part.may_be_nan)


def as_bigint(part: Expression) -> str:
    """A whole number as BIGINT, NULL if it does not fit; other numbers are rounded."""
    if part.span is None:
        return f"TRY_CAST({part.double} AS BIGINT)"
    return part.sql if part.type == "BIGINT" or part.wide else f"CAST({part.sql} AS BIGINT)"


def computed(name: str, parts: Sequence[Expression]) -> Expression:
    """An operator or a function of numbers."""
    value = parts[0].value
    if name in ("+", "-") and len(parts) == 1 and parts[0].constant and isinstance(value, int | float | Decimal):
        return constant(-value if name == "-" else value)
    if is_whole(parts):
        if name in KEEP_WHOLE:
            return _whole(name, parts)
        if name in ENDS:
            return _end(name, parts)
        if name in ROUNDING and len(parts) == 1:
            return replace(parts[0], column=None, constant=False)
    if name in BLIND_TO_NAN:
        parts = [replace(as_double(part), sql=as_double(part).clean, never_nan=True) for part in parts]
    # How many digits to round to is a constant, and a whole number.
    expression = _floating(
        name, [part.sql if at and name in ROUNDING else part.double for at, part in enumerate(parts)]
    )
    return replace(expression, never_nan=name in ENDS)


def _floating(name: str, parts: Sequence[str]) -> Expression:
    if name in DIVIDING:
        parts = [parts[0], f"(CASE WHEN {parts[1]} <> 0 THEN {parts[1]} END)"]
    match name:
        case "/":  # of which either zero is one
            sql = _called("/", [parts[0], _called("+", [parts[1], "0e0"])])
        case "//":
            sql = _called("trunc", [_called("/", parts)])
        case "fmod":  # a macro of DuckDB's own, and so open to macros of the names that it uses
            whole = _called("floor", [_called("/", parts)])
            sql = _called("-", [parts[0], _called("*", [parts[1], whole])])
        case _:
            sql = _called(name, parts)
    span = (-1, 1) if name == "sign" else None
    return Expression(f"TRY({sql})", NUMBER, "TINYINT" if name == "sign" else "DOUBLE", span=span)


def _whole(name: str, parts: Sequence[Expression]) -> Expression:
    name = "%" if name == "mod" else name
    span, fits = _span(name, [part.span or BIGINT for part in parts])
    sql = _called(name, [as_bigint(part) for part in parts])
    fits = fits and not any(part.wide for part in parts)
    if not fits or name in DIVIDING:
        sql = f"TRY({sql})"
    if fits:
        return Expression(sql, NUMBER, "BIGINT", span=span)
    beyond = _floating(name, [part.double for part in parts]).sql
    return Expression(sql, NUMBER, "BIGINT", span=span, wide=f"COALESCE(CAST({sql} AS DOUBLE), {beyond})")


def _span(name: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], bool]:
    """Range of results that fit BIGINT, and whether all results do."""
    (low, high), *others = spans
    if not others:
        ends = {"-": (-high, -low), "abs": (0 if low <= 0 <= high else min(abs(low), abs(high)), max(-low, high))}
        low, high = ends.get(name, (low, high))
    elif name in DIVIDING:
        # Towards zero, and not away from it; BIGINT's smallest number has no opposite.
        most, (left, right) = max(abs(low), abs(high)), others[0]
        if low == BIGINT[0] and left <= -1 <= right:
            return BIGINT, False
        most = min(most, max(abs(left), abs(right))) if name == "%" else most
        low, high = -most if low < 0 or name == "//" else 0, most if high > 0 or name == "//" else 0
        low, high = max(low, BIGINT[0]), min(high, BIGINT[1])
    else:
        with_ = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[name]
        ends_ = [with_(one, other) for one, other in itertools.product((low, high), others[0])]
        low, high = min(ends_), max(ends_)
    return (max(low, BIGINT[0]), min(high, BIGINT[1])), BIGINT[0] <= low and high <= BIGINT[1]


def _end(name: str, parts: Sequence[Expression]) -> Expression:
    """GREATEST or LEAST."""
    sql = _called(name, [as_bigint(part) for part in parts])
    span = _hull(parts)
    if not any(part.wide for part in parts):
        return Expression(sql, NUMBER, "BIGINT", span=span)
    fit = " AND ".join(f"({part.sql} IS NOT NULL OR {part.wide} IS NULL)" for part in parts if part.wide)
    wide = _called(name, [part.double for part in parts])
    return Expression(f"(CASE WHEN {fit} THEN {sql} END)", NUMBER, "BIGINT", span=span, wide=wide)


def _hull(parts: Sequence[Expression]) -> tuple[int, int]:
    spans = [part.span for part in parts if part.span is not None]
    return min(low for low, _ in spans), max(high for _, high in spans)


def _called(name: str, arguments: Sequence[str]) -> str:
    return f"system.main.{quoted(name)}({', '.join(arguments)})"


def chosen(conditions: Sequence[str], results: Sequence[Expression]) -> Expression:
    """CASE of numbers, the last of which is for ELSE."""

    def written(results: Sequence[str]) -> str:
        return f"({case(zip(conditions, results[:-1], strict=True), results[-1])})"

    there = [part for part in results if part.kind != NOTHING]
    if not is_whole(there):
        never = not any(part.may_be_nan for part in results)
        return Expression(written([part.double for part in results]), NUMBER, "DOUBLE", never_nan=never)
    sql = written([part.sql if part.kind == NOTHING else as_bigint(part) for part in results])
    wide = written([part.double for part in results]) if any(part.wide for part in there) else ""
    return Expression(sql, NUMBER, "BIGINT", span=_hull(there), wide=wide)


def first(parts: Sequence[Expression]) -> Expression:
    """COALESCE of numbers."""
    doubles = f"COALESCE({', '.join(as_double(part).clean for part in parts)})"
    there = [part for part in parts if part.kind != NOTHING]
    if not is_whole(there):
        return Expression(doubles, NUMBER, "DOUBLE", never_nan=True)
    if not any(part.wide for part in there):
        return Expression(f"COALESCE({', '.join(map(as_bigint, there))})", NUMBER, "BIGINT", span=_hull(there))
    # Not the next one for what is there and does not fit.
    arms = " ".join(f"WHEN {part.double} IS NOT NULL THEN {as_bigint(part)}" for part in there)
    return Expression(f"(CASE {arms} END)", NUMBER, "BIGINT", span=_hull(there), wide=doubles)


def compared(symbol: str, parts: Sequence[Expression]) -> Expression:
    """A comparison of things that can be compared as they are, or of whole numbers."""
    if symbol in DISTINCT:
        parts = [replace(part, sql=part.clean, never_nan=True) for part in parts]
    elif any(part.may_be_nan for part in parts):
        return _of_floats(symbol, parts)
    sql = operation(symbol, [part.sql for part in parts])
    if any(part.wide for part in parts):
        # NULL where one does not fit: then, as floats.
        exact = DISTINCT.get(symbol)
        sql = sql if exact is None else operation(exact, [part.sql for part in parts])
        sql = f"COALESCE({sql}, {operation(symbol, [part.double for part in parts])})"
    return Expression(sql, TRUTH, "BOOLEAN")


def _of_floats(symbol: str, parts: Sequence[Expression]) -> Expression:
    """Comparison of floats: to DuckDB NaN equals NaN and is above all others, but it is missing.

    Only in what NaN could make true it is looked at, so that most conditions are as DuckDB filters by them fastest.
    """
    first, *others = parts
    if symbol in MEMBERSHIP:
        inside = _where(operation("in", [part.sql for part in parts]), [first] if _loose(others) else [])
        outside = _where(operation("not in", [part.sql for part in parts]), parts)
        return condition_of(inside, outside) if symbol == "in" else condition_of(outside, inside)
    if symbol == "between":
        low, high = others
        inside = _where(operation(symbol, [part.sql for part in parts]), [high])
        return condition_of(inside, f"({_one('<', first, low)} OR {_one('>', first, high)})")
    return condition_of(_one(symbol, first, others[0]), _one(NEGATED[symbol], first, others[0]))


def _one(symbol: str, left: Expression, right: Expression) -> str:
    """Comparison of two, true where it is known to be true."""
    sides = nan_decides(symbol, left, right, both=right.may_be_nan)
    return _where(operation(symbol, [left.sql, right.sql]), sides)


def _loose(parts: Sequence[Expression]) -> list[Expression]:
    return [part for part in parts if part.may_be_nan]


def _where(sql: str, looked_at: Sequence[Expression]) -> str:
    """A condition, where none of these is NaN."""
    there = [part.present for part in _loose(looked_at)]
    return f"({' AND '.join([sql, *there])})" if there else sql


def condition_of(holds: str, denied: str) -> Expression:
    """A condition that is unknown where it neither holds nor is denied."""
    sql = f"(CASE WHEN {holds} THEN true WHEN {denied} THEN false END)"
    return Expression(sql, TRUTH, "BOOLEAN", holds=holds, denied=denied)


def cast_number(part: Expression, to: str, forgiving: bool) -> str:
    """A cast, also of what does not fit BIGINT."""
    if not part.wide:
        return f"{'TRY_' * forgiving}CAST({part.sql} AS {to})"
    if to == "DOUBLE":
        return part.wide
    return f"COALESCE(TRY_CAST({part.sql} AS {to}), TRY_CAST({part.wide} AS {to}))"


def cast_result(sql: str, kind: str, to: str) -> Expression:
    """Result of a cast to this type."""
    return number(sql, to) if kind == NUMBER else Expression(sql, kind, to)
