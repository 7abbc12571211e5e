"""Numbers of a filter: floats whose whole values stay exact beyond 2**53, whatever the width of their column.

A number is the unevaluated sum of two float64, ``high + low``: 106 bits, so that whole numbers, and times in
nanoseconds, are computed and compared as Python computes integers up to 2**106, and are rounded beyond (Dekker 1971;
Knuth, TAOCP 2, 4.2.2). Fractions are rounded as float64 rounds them. There is one zero: which sign it had would depend
on the way it was computed, and so on other records. Each result depends on its own operands alone: neither the width
of an integer column nor the float64 that pandas makes of it once a value is missing changes a decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

EXACT = 2.0**53  # up to here every whole number is one float64
SPLIT = 2.0**27 + 1
DOUBLE = np.dtype(np.float64)
LARGEST = int(np.finfo(np.float64).max)
MANY = 16  # members that are looked up together instead of one by one


class Numbers(NamedTuple):
    """Values ``high + low``."""

    high: FloatArray  # the nearest float; NaN where there is no value
    low: FloatArray | None = None  # what it lacks; None for nothing
    # the precision that fractions are rounded to; None for constants, which take that of the other side
    grain: np.dtype[Any] | None = DOUBLE


def of_array(values: NDArray[Any]) -> Numbers:
    """The numbers of an array of integers, floats or truth values."""
    if values.dtype.kind == "f":
        return Numbers(values.astype(DOUBLE, copy=False) + 0.0, None, values.dtype)
    high = values.astype(DOUBLE)
    if values.dtype.itemsize < 8 or not _beyond(high):
        return Numbers(high)
    # Two halves of 32 bits are floats without rounding, and so is what their sum lacks.
    return _normal((values >> 32).astype(DOUBLE) * 2.0**32, (values & 0xFFFFFFFF).astype(DOUBLE))


def of_plain(values: list[int | float]) -> Numbers:
    """The numbers of Python's own."""
    high, low = np.array([_parts(value) for value in values], dtype=DOUBLE).reshape(-1, 2).T
    return Numbers(high + 0.0, low if low.any() else None)


def constant(value: int | float) -> Numbers:
    """One number, shape ()."""
    high, low = _parts(value)
    return Numbers(np.array(high + 0.0), np.array(low) if low else None, None)


def _parts(value: int | float) -> tuple[float, float]:
    if type(value) is float or -EXACT <= value <= EXACT:
        return float(value), 0.0
    try:
        return float(value), float(value - int(float(value)))
    except OverflowError:
        return math.inf if value > 0 else -math.inf, 0.0


def opposite(one: Numbers) -> Numbers:
    """The negative."""
    return Numbers(0.0 - one.high, None if one.low is None else 0.0 - one.low, one.grain)


def arithmetic(symbol: str, left: Numbers, right: Numbers) -> Numbers:
    """``left symbol right`` for one of ``+ - * / // % **``."""
    grain = _common(left, right)
    left, right = _rounded(left, right), _rounded(right, left)
    numbers = OPERATORS[symbol](left, right)
    if grain is None or grain == DOUBLE:
        return Numbers(numbers.high + 0.0, numbers.low, grain)
    return Numbers(numbers.high.astype(grain).astype(DOUBLE) + 0.0, None, grain)


def compared(symbol: str, left: Numbers, right: Numbers) -> NDArray[np.bool_]:
    """``left symbol right`` for one of ``< <= > >= == !=``; without a value only ``!=`` holds."""
    left, right = _rounded(left, right), _rounded(right, left)
    if left.low is None and right.low is None:
        truths: NDArray[np.bool_] = COMPARISONS[symbol](left.high, right.high)
        return truths
    if symbol in (">", ">="):
        left, right, symbol = right, left, {">": "<", ">=": "<="}[symbol]
    same, lows = left.high == right.high, (_low(left), _low(right))
    if symbol in ("==", "!="):
        equal = same & (lows[0] == lows[1])
        return equal if symbol == "==" else ~equal
    return (left.high < right.high) | (same & COMPARISONS[symbol](*lows))


def members(numbers: Numbers, values: list[Any]) -> NDArray[np.bool_]:
    """Which numbers are one of the values; NaN is equal to nothing."""
    held = [value for value in values if isinstance(value, float) or abs(value) <= LARGEST]
    listed = _rounded(of_plain(held)._replace(grain=None), numbers)
    if len(held) > MANY:
        return np.isin(_pairs(numbers), _pairs(listed))
    matches = np.zeros(numbers.high.shape, dtype=np.bool_)
    for high, low in zip(listed.high, np.broadcast_to(_low(listed), listed.high.shape), strict=True):
        matches |= (numbers.high == high) & (_low(numbers) == low)
    return matches


def _pairs(numbers: Numbers) -> NDArray[Any]:
    """Both parts in one number, which numpy can look up."""
    return numbers.high if numbers.low is None else numbers.high + 1j * numbers.low


def _low(numbers: Numbers) -> FloatArray:
    return np.zeros(()) if numbers.low is None else numbers.low


def _beyond(values: FloatArray) -> bool:
    return bool((np.abs(values) >= EXACT).any())


def _common(left: Numbers, right: Numbers) -> np.dtype[Any] | None:
    if left.grain is None or right.grain is None:
        return left.grain or right.grain
    return np.promote_types(left.grain, right.grain)


def _rounded(one: Numbers, other: Numbers) -> Numbers:
    """A constant in the precision of the column beside it, as numpy takes it."""
    if one.grain is not None or other.grain is None or other.grain == DOUBLE:
        return one
    narrow = one.high.astype(other.grain).astype(DOUBLE)
    beyond = np.isinf(narrow)  # the column's range, where nothing is equal
    return Numbers(np.where(beyond, one.high, narrow), None, None)


def _normal(high: FloatArray, low: FloatArray) -> Numbers:
    """The sum of two floats, with what it lacks (Knuth's TwoSum)."""
    total = high + low
    part = total - high
    error = (high - (total - part)) + (low - part)
    error = np.where(np.isfinite(error), error, 0.0)
    return Numbers(total, error if error.any() else None)


def _whole(numbers: Numbers) -> NDArray[np.bool_]:
    return np.isfinite(numbers.high) & (np.floor(numbers.high) == numbers.high)


def _with_error(left: Numbers, right: Numbers, result: FloatArray, error: FloatArray) -> Numbers:
    """A rounded result, and its error where both operands are whole."""
    error = np.where(_whole(left) & _whole(right) & np.isfinite(error), error, 0.0)
    return _normal(result, error) if error.any() else Numbers(result)


def _plus(left: Numbers, right: Numbers) -> Numbers:
    total = left.high + right.high
    if left.low is None and right.low is None and not _beyond(total):
        return Numbers(total)
    part = total - left.high
    error = (left.high - (total - part)) + (right.high - part)
    return _with_error(left, right, total, error + (_low(left) + _low(right)))


def _minus(left: Numbers, right: Numbers) -> Numbers:
    return _plus(left, opposite(right))


def _times(left: Numbers, right: Numbers) -> Numbers:
    product = left.high * right.high
    if left.low is None and right.low is None and not _beyond(product):
        return Numbers(product)
    (one, rest), (other, remainder) = _halves(left.high), _halves(right.high)
    error = ((one * other - product) + one * remainder + rest * other) + rest * remainder
    return _with_error(left, right, product, error + (left.high * _low(right) + right.high * _low(left)))


def _halves(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two floats of 26 bits with this sum (Veltkamp)."""
    scaled = values * SPLIT
    upper = scaled - (scaled - values)
    return upper, values - upper


def _over(left: Numbers, right: Numbers) -> Numbers:
    return Numbers(left.high / right.high)


def _divided(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Floor quotient and remainder, exact for whole numbers; by zero as floats divide by it."""
    plain = Numbers(np.floor_divide(left.high, right.high)), Numbers(np.remainder(left.high, right.high))
    if not (_beyond(left.high) or _beyond(right.high)):
        return plain
    turned = right.high < 0
    left, right = (_chosen(turned, opposite(one), one) for one in (left, right))
    quotient, rest = constant(0), left
    for _ in range(2):  # each time some 50 bits of the quotient
        more = Numbers(np.floor(rest.high / right.high))
        quotient, rest = _plus(quotient, more), _minus(rest, _times(more, right))
    for symbol, other, step in (("<", constant(0), -1), (">=", right, 1)):
        off = compared(symbol, rest, other)
        quotient = _plus(quotient, Numbers(np.where(off, step, 0.0)))
        rest = _chosen(off, _minus(rest, right) if step == 1 else _plus(rest, right), rest)
    at = _whole(left) & _whole(right) & (right.high != 0)
    return _chosen(at, quotient, plain[0]), _chosen(at, _chosen(turned, opposite(rest), rest), plain[1])


def _chosen(at: NDArray[np.bool_], one: Numbers, other: Numbers) -> Numbers:
    low = np.where(at, _low(one), _low(other))
    return Numbers(np.where(at, one.high, other.high), low if low.any() else None)


def _power(left: Numbers, right: Numbers) -> Numbers:
    """A power; of whole numbers by multiplications, which are exact, if the exponent is a small constant."""
    power = np.power(left.high, right.high)
    if right.high.ndim or right.high not in range(65):
        return Numbers(power)
    exponent, exact, square = int(right.high), constant(1), left
    while exponent:
        if exponent & 1:
            exact = _times(exact, square)
        exponent >>= 1
        square = _times(square, square) if exponent else square
    return _chosen(_whole(left), exact, Numbers(power))


OPERATORS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": _plus, "-": _minus, "*": _times, "/": _over, "**": _power,
    "//": lambda left, right: _divided(left, right)[0], "%": lambda left, right: _divided(left, right)[1],
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
