"""Arithmetic in SQL: exact on whole numbers up to 2**106, on DOUBLEs as numpy computes; nothing fails on a record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import NoReturn

from pdrisk._model.expressions.nodes import Node, Operation
from pdrisk._model.rowwise.builder import text_of
from pdrisk._model.rowwise.decide import folded
from pdrisk.engines.sql.compiler.values import (
    WIDEST,
    Value,
    alike,
    as_double,
    checked,
    constant,
    has_column,
    within_reach,
)
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.errors import ParameterError

SPANS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip


def arithmetic(dialect: Dialect, node: Operation, symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right`` for one of ``+ - * / // % **``."""
    beside = [value.narrow or not has_column(part) for value, part in zip((left, right), node.parts, strict=False)]
    if (left.narrow or right.narrow) and all(beside):
        _refuse(node, "of a column of 32-bit floats: make it one of 64 bits in a view")
    if symbol == "**":
        return _power(dialect, node, left)
    if symbol in ("//", "%"):
        return _divided(dialect, node, symbol, left, right)
    if left.span is not None and right.span is not None and symbol != "/":
        return _of_whole(dialect, node, symbol, left, right)
    one, other = as_double(dialect, left), as_double(dialect, right)
    made = dialect.divided(one, other) if symbol == "/" else dialect.arithmetic(one, symbol, other)
    return Value(checked(f"({made})"), clean=False)


def _of_whole(dialect: Dialect, node: Node, symbol: str, left: Value, right: Value) -> Value:
    """``+``, ``-`` or ``*`` of whole numbers, exactly."""
    assert left.span is not None and right.span is not None
    within_reach(left, right)
    ends = [SPANS[symbol](one, other) for one in left.span for other in right.span]
    span = min(ends), max(ends)
    if max(map(abs, span)) > WIDEST:
        _refuse(node, "of whole numbers that may exceed 2**126: make them smaller types in a view")
    made = Value("", span=span)
    one, other, *_ = alike(dialect, left, right, made)
    return _fitting(replace(made, sql=checked(dialect.infix(one, symbol, other))))


def _divided(dialect: Dialect, node: Operation, symbol: str, left: Value, right: Value) -> Value:
    """Floor quotient or remainder by a constant."""
    divisor = folded(node.parts[1]) if not has_column(node.parts[1]) else 0
    if not divisor or not math.isfinite(divisor):
        _refuse(node, "whose divisor is no constant, or 0: divide by a number that is written out")
    infix, sign = dialect.infix, "<" if divisor > 0 else ">"
    if left.span is not None and right.span is not None:
        within_reach(left)
        by = int(divisor)
        ends = sorted(end // by for end in left.span)
        quotients = Value("", span=(ends[0], ends[1]))
        value, divided, *_ = alike(dialect, left, right, quotients)
        (zero,) = alike(dialect, constant(dialect, 0), left, right, quotients)[:1]
        rest = dialect.remainder(value, divided)
        turned = f"{rest} {sign} {zero}"
        if symbol == "%":
            size = abs(by) - 1
            made = f"(CASE WHEN {turned} THEN {infix(rest, '+', divided)} ELSE {rest} END)"
            return _fitting(Value(checked(made), span=(0, size) if by > 0 else (-size, 0)))
        whole = dialect.quotient(value, divided)
        (one,) = alike(dialect, constant(dialect, 1), left, right, quotients)[:1]
        made = f"(CASE WHEN {turned} THEN {infix(whole, '-', one)} ELSE {whole} END)"
        return _fitting(replace(quotients, sql=checked(made)))
    value, by_double, one = as_double(dialect, left), dialect.number(float(divisor)), dialect.number(1.0)
    exact = dialect.double_remainder(value, by_double)
    if exact is None:
        _refuse(node, "of a column of floats, which this engine does not divide exactly")
    turned = f"{exact} {sign} {dialect.number(0.0)}"
    if symbol == "%":
        made = f"(CASE WHEN {turned} THEN {infix(exact, '+', by_double)} ELSE {exact} END)"
    else:  # as numpy divides floats
        quotient = infix(infix(value, "-", exact), "/", by_double)
        quotient = f"(CASE WHEN {turned} THEN {infix(quotient, '-', one)} ELSE {quotient} END)"
        floor = dialect.rounded("FLOOR", quotient)
        off = f"{infix(quotient, '-', floor)} > {dialect.number(0.5)}"
        made = f"(CASE WHEN {off} THEN {infix(floor, '+', one)} ELSE {floor} END)"
    return Value(checked(made), clean=False)


def _fitting(value: Value) -> Value:
    """A whole number as a BIGINT, if that can hold it."""
    return value if value.is_wide else replace(value, sql=f"CAST({value.sql} AS BIGINT)")


def _power(dialect: Dialect, node: Operation, left: Value) -> Value:
    exponent = folded(node.parts[1]) if not has_column(node.parts[1]) else -1
    if left.span is None or exponent not in range(65):
        _refuse(node, "other than of whole numbers to a small whole power: write x * x")
    one = constant(dialect, 1)
    if exponent == 0:  # of a missing value, too, there is none
        return replace(one, sql=f"(CASE WHEN {left.sql} IS NOT NULL THEN {one.sql} END)")
    return reduce(lambda made, _: _of_whole(dialect, node, "*", made, left), range(int(exponent)), one)


def _refuse(node: Node, why: str) -> NoReturn:
    raise ParameterError(
        f"{text_of(node)} is arithmetic {why}, or compute it as a column of a view of the database, and ask that."
    )
