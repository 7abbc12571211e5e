"""Comparisons in SQL: true where they are known to be true, neither side rounded to the type of the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from pdrisk._model.expressions.kinds import NUMBER, TEXT
from pdrisk._model.expressions.nodes import MIRRORED
from pdrisk._model.rowwise.families import as_number, is_in
from pdrisk.engines.sql.compiler.values import (
    BIGINT,
    EXACT,
    FEW,
    WIDEST,
    Value,
    alike,
    as_double,
    quantity,
    scaled,
    text_literal,
    within_reach,
)
from pdrisk.engines.sql.dialects.dialect import Dialect

Side = TypeVar("Side")

SQL_WORDS: Final = {"==": "=", "!=": "<>"}


def beside(dialect: Dialect, symbol: str, left: Value, right: Value) -> str:
    """Comparison of two columns: true where it is known to be true, else false or NULL."""
    if left.beyond or right.beyond:
        doubles = beside(dialect, symbol, left.settled, right.settled)
        if left.span is None or right.span is None:
            return doubles
        one, other = (f"CAST({side.sql} AS BIGINT)" for side in (left, right))
        return f"COALESCE({one} {SQL_WORDS.get(symbol, symbol)} {other}, {doubles})"
    if (left.span is None) != (right.span is None):  # a NaN is cast to no whole number
        left, right = without_nan(dialect, left), without_nan(dialect, right)
    sides = nan_decides(symbol, left, right, both=not right.clean)
    return _with_present(dialect, _ordered(dialect, symbol, left, right), sides)


def nan_decides(symbol: str, left: Side, right: Side, *, both: bool) -> list[Side]:
    """The sides of a comparison that have to be looked at, ``both`` if the right one may be NaN, too.

    To every engine NaN equals NaN and is above all other numbers: only what that makes true is looked at.
    """
    return {
        "<": [right], "<=": [right], ">": [left], ">=": [left], "!=": [left, right], "==": [left] if both else [],
    }[symbol]  # fmt: skip


def without_nan(dialect: Dialect, value: Value) -> Value:
    """The value, NULL where it is NaN."""
    if value.clean:
        return value
    return replace(value, sql=f"(CASE WHEN {is_present(dialect, value)} THEN {value.sql} END)", clean=True)


def is_present(dialect: Dialect, value: Value) -> str:
    """Condition that a record has a value, which NaN is not."""
    if value.beyond:
        return f"({value.beyond} IS NOT NULL)"
    return f"({value.sql} IS NOT NULL)" if value.clean else f"({value.sql} <= {dialect.infinity})"


def _with_present(dialect: Dialect, sql: str, looked_at: Sequence[Value]) -> str:
    """A comparison of values, none of which is NaN."""
    there = [is_present(dialect, value) for value in looked_at if not value.clean]
    return f"({' AND '.join([sql, *there])})" if there else sql


def _ordered(dialect: Dialect, symbol: str, left: Value, right: Value) -> str:
    """Comparison of two columns, NULL where one is missing."""
    word = SQL_WORDS.get(symbol, symbol)
    if left.family == TEXT or (left.span is None and right.span is None):
        return f"({left.sql} {word} {right.sql})"
    within_reach(left, right)
    if left.unit != right.unit:
        unit = min(left.unit, right.unit)
        left, right = (scaled(dialect, side, side.unit // unit) for side in (left, right))
    if left.span is not None and right.span is not None:
        both = alike(dialect, left, right)
        return f"({both[0]} {word} {both[1]})"
    if left.span is None:
        left, right, symbol = right, left, MIRRORED.get(symbol, symbol)
    return _whole_beside_double(dialect, symbol, left, right.sql)


def _whole_beside_double(dialect: Dialect, symbol: str, left: Value, right: str) -> str:
    """A whole number compared with a DOUBLE, exactly: neither is rounded to the other's type."""
    word = SQL_WORDS.get(symbol, symbol)
    assert left.span is not None
    if max(map(abs, left.span)) <= FEW or dialect.own:
        return f"({as_double(dialect, left)} {word} {right})"
    wide = left.sql if left.is_wide else dialect.wide(left.sql)
    rounding = "FLOOR" if symbol in (">", "<=") else "CEIL"
    compared = f"{wide} {word} {dialect.whole_double(dialect.rounded(rounding, right))}"
    above, under = (str(symbol in words).lower() for words in (("<", "<=", "!="), (">", ">=", "!=")))
    arms = [
        (f"{left.sql} IS NULL OR {right} IS NULL", "NULL"),
        (f"{right} >= {dialect.number(float(EXACT))}", above),
        (f"{right} <= {dialect.number(-float(EXACT))}", under),
    ]
    if symbol in ("==", "!="):
        arms.append((f"{dialect.rounded('FLOOR', right)} <> {right}", str(symbol == "!=").lower()))
    written = " ".join(f"WHEN {when} THEN {then}" for when, then in arms)
    return f"(CASE {written} ELSE {compared} END)"


def beside_constant(dialect: Dialect, symbol: str, left: Value, value: Any) -> str:
    """Comparison with a constant: true where it is known to be true, else false or NULL."""
    if left.family == TEXT:
        return f"({left.sql} {SQL_WORDS.get(symbol, symbol)} {text_literal(dialect, value)})"
    if left.beyond or (dialect.own and left.family == NUMBER and abs(value) > FEW):
        # Whole numbers as they are, and all others as DOUBLEs.
        is_whole = isinstance(value, int) and -BIGINT - 1 <= value <= BIGINT and left.span is not None
        written = dialect.whole(value) if is_whole else dialect.number(as_float(value))
        return beside(dialect, symbol, left, Value(written, span=(value, value) if is_whole else None))
    exact = as_number(left.family, value)
    if isinstance(exact, float) and math.isnan(exact):
        return "false"
    if left.narrow:
        narrow = _of_32_bits(exact)
        exact = float(exact) if math.isinf(narrow) else narrow
    limit: str | None
    if isinstance(exact, float) and math.isinf(exact) and left.span is None:
        limit = dialect.number(exact)
    else:
        symbol, limit = _limit(dialect, symbol, left, exact)
    if limit is not None and left.native and (comparison := dialect.own.time_beside(left, symbol, exact)):
        return str(comparison)
    if limit is None:
        return is_present(dialect, left) if symbol == "!=" else "false"
    sql = f"({left.sql} {SQL_WORDS.get(symbol, symbol)} {limit})"
    return _with_present(dialect, sql, [left] if symbol in (">", ">=", "!=") else [])


def _limit(dialect: Dialect, symbol: str, left: Value, exact: float) -> tuple[str, str | None]:
    """Comparison with the nearest constant that the left side's type can hold; None if nothing equals it."""
    if left.span is not None:
        if EXACT // 2 < abs(exact) < 2 * WIDEST:
            within_reach(left)
        most = 2 * WIDEST
        if isinstance(exact, float) and math.isinf(exact):
            exact = most if exact > 0 else -most
        scaled = min(max(Fraction(exact) / left.unit, Fraction(-most)), Fraction(most))
        if symbol in ("==", "!=") and (scaled.denominator > 1 or not left.span[0] <= scaled <= left.span[1]):
            return symbol, None
        whole = math.floor(scaled) if symbol in (">", "<=") else math.ceil(scaled)
        # Beyond the type a limit just outside it decides alike, and may be a literal of the type's width.
        whole = min(max(whole, left.span[0] - 1), left.span[1] + 1)
        return symbol, dialect.whole(whole)
    nearest = float(exact) if abs(exact) < 2**1024 - 2**970 else math.inf if exact > 0 else -math.inf
    if nearest == exact:
        return symbol, dialect.number(nearest)
    if symbol in ("==", "!="):
        return symbol, None
    is_below = nearest < exact
    return ({"<": "<=", ">=": ">"} if is_below else {"<=": "<", ">": ">="}).get(symbol, symbol), dialect.number(nearest)


def one_of(dialect: Dialect, value: Value, listed: Sequence[Any], *, negated: bool = False, exact: bool = False) -> str:
    """Membership of a record's value in a list, or its negation: true where it is known to be true.

    With ``exact``, numbers are compared as on frames, whatever `Dialect.own` has for them.
    """
    value = quantity(dialect, value)
    held = [one for one in listed if is_in(value.family, one)]
    is_large = dialect.own and not exact and value.family == NUMBER and any(abs(number) > FEW for number in held)
    if value.beyond or is_large:
        return _one_of_two(dialect, value, held, negated=negated)
    if value.family == TEXT:
        texts = [text_literal(dialect, one) for one in held]
    else:
        numbers = [as_number(value.family, one) for one in held]
        if value.narrow:
            numbers = [narrow for one in numbers if not math.isinf(narrow := _of_32_bits(one)) or narrow == one]
        limits = [_limit(dialect, "==", value, one)[1] for one in dict.fromkeys(numbers)]
        texts = [limit for limit in limits if limit is not None]
    if not texts:
        return is_present(dialect, value) if negated else "false"
    sql = f"({value.sql} {'NOT ' if negated else ''}IN ({', '.join(texts)}))"
    return _with_present(dialect, sql, [value] if negated else [])


def _of_32_bits(value: float) -> float:
    """A number as a float of 32 bits; infinite beyond those."""
    with np.errstate(over="ignore"):
        return float(np.float32(as_float(value)))


def as_float(value: float) -> float:
    """The nearest float, infinite of what is beyond."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def one_of_whole(dialect: Dialect, column: str, listed: Sequence[Any]) -> str:
    """Membership of a stored whole number of any size in a list."""
    held = [as_number(NUMBER, one) for one in listed if is_in(NUMBER, one)]
    whole = [int(one) for one in held if math.isfinite(as_float(one)) and one == int(one) and abs(one) < 2**127]
    return f"({column} IN ({', '.join(map(dialect.whole, whole))}))" if whole else "false"


def _one_of_two(dialect: Dialect, value: Value, listed: Sequence[Any], *, negated: bool) -> str:
    """Membership of a number in a list: of a whole one among the whole ones, else of its DOUBLE."""
    word, held = "NOT IN" if negated else "IN", [one for one in listed if one == one]
    whole = [one for one in held if isinstance(one, int) and -BIGINT - 1 <= one <= BIGINT and value.span is not None]
    others = [one for one in held if one not in set(whole)]
    double, conditions = as_double(dialect, value), []
    if whole:
        exact = f"CAST({value.sql} AS BIGINT) {word} ({', '.join(map(dialect.whole, whole))})"
        as_doubles = f"{double} {word} ({', '.join(dialect.number(float(one)) for one in whole)})"
        conditions.append(f"COALESCE({exact}, {as_doubles})" if value.beyond else f"({exact})")
    if others:
        conditions.append(f"({double} {word} ({', '.join(dialect.number(as_float(one)) for one in others)}))")
    if not conditions:
        return is_present(dialect, value) if negated else "false"
    return _with_present(dialect, f"({(' AND ' if negated else ' OR ').join(conditions)})", [value] if negated else [])
