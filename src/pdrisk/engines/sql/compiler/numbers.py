"""Functions of numbers in SQL: values that no record can make fail, the same on every engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any, Final

from pdrisk.engines.sql.compiler.comparisons import without_nan
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.values import BIGINT, Value, alike, as_double, checked, quantity
from pdrisk.engines.sql.dialects.dialect import Dialect

LARGEST: Final = math.nextafter(math.inf, 0)
LEAST_EXPONENT, MOST_EXPONENT = -745.1332191019411, 709.782712893384  # of which e**x is neither 0 nor infinite
PLAIN: Final = {  # the name of the function, and where it has a value
    "sqrt": "SQRT", "cbrt": "CBRT", "sin": "SIN", "cos": "COS", "tan": "TAN", "asin": "ASIN", "acos": "ACOS",
    "atan": "ATAN", "ln": "LN", "log2": "LOG2", "log10": "LOG10", "log": "LOG10",
}  # fmt: skip
WITHIN: Final = {
    "sqrt": (0.0, math.inf), "sin": (-LARGEST, LARGEST), "cos": (-LARGEST, LARGEST), "tan": (-LARGEST, LARGEST),
    "asin": (-1.0, 1.0), "acos": (-1.0, 1.0),
}  # fmt: skip
LOGARITHMS: Final = ("ln", "log2", "log10", "log")


def double(dialect: Dialect, value: Value) -> str:
    """A number as DOUBLE, with truth values as 1 and 0."""
    return as_double(dialect, quantity(dialect, value))


def of_numbers(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """A function of numbers by its name in SQL; ``constants`` are the values that are written out, else None."""
    values = [quantity(dialect, value) for value in values]
    made = NUMERIC.get(name)
    if made is not None:
        return made(dialect, name, values, constants)
    if name not in PLAIN or len(values) != 1:
        refuse(dialect, f"{name}()")
    return _plain(dialect, name, as_double(dialect, values[0]))


def _plain(dialect: Dialect, name: str, x: str) -> Value:
    """A function of one DOUBLE, NULL where it has no value."""
    call = dialect.call(PLAIN[name], x)
    if name in LOGARITHMS:
        zero = dialect.number(0.0)
        arms = f"WHEN {x} > {zero} THEN {call} WHEN {x} = {zero} THEN {dialect.negative(dialect.infinity)}"
        return Value(checked(f"(CASE {arms} END)"), clean=False)
    if name in WITHIN:
        low, high = map(dialect.number, WITHIN[name])
        call = f"(CASE WHEN {x} BETWEEN {low} AND {high} THEN {call} END)"
    return Value(checked(call), clean=False)


def _absolute(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    (value,) = values
    if value.span is None:
        return replace(value, sql=dialect.call("ABS", as_double(dialect, value)), narrow=False)
    low, high = value.span
    span = (0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
    made = Value("", span=span)
    (operand, _) = alike(dialect, value, made)
    return replace(made, sql=dialect.call("ABS", operand))


def _sign(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    (value,) = values
    zero = dialect.whole(0) if value.span is not None else dialect.number(0.0)
    x = without_nan(dialect, value).sql
    one, none, less = (dialect.whole(number) for number in (1, 0, -1))
    return Value(f"(CASE WHEN {x} > {zero} THEN {one} WHEN {x} < {zero} THEN {less} WHEN {x} = {zero} THEN {none} END)",
                 span=(-1, 1))  # fmt: skip


def _rounding(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """FLOOR, CEIL, TRUNC or ROUND, with digits after the point where they are written out."""
    value, name = values[0], "ceil" if name == "ceiling" else name
    if len(values) == 1:
        if value.span is not None:
            return value
        return Value(checked(_to_whole(dialect, name, as_double(dialect, value))), clean=False)
    digits = constants[1]
    if type(digits) is not int or not -300 <= digits <= 300:
        refuse(dialect, f"{name}() to digits that are not written out")
    return Value(checked(rounded(dialect, as_double(dialect, value), digits, name)), clean=False)


def rounded(dialect: Dialect, x: str, digits: int, name: str = "round") -> str:
    """A DOUBLE rounded to so many digits after the point, halves away from zero; what overflows stays as it is."""
    if digits == 0:
        return _to_whole(dialect, name, x)
    return dialect.bound(x, lambda value: _rounded(dialect, value, digits, name))


def _rounded(dialect: Dialect, x: str, digits: int, name: str) -> str:
    unit = dialect.number(10.0 ** abs(digits))
    if digits < 0:
        return dialect.arithmetic(_to_whole(dialect, name, dialect.divided(x, unit)), "*", unit)
    grown = dialect.arithmetic(x, "*", unit)
    made = dialect.divided(_to_whole(dialect, name, grown), unit)
    is_finite = f"{dialect.call('ABS', grown)} <= {dialect.number(LARGEST)}"
    return f"(CASE WHEN {is_finite} THEN {made} ELSE {x} END)"


def _to_whole(dialect: Dialect, name: str, x: str) -> str:
    """A DOUBLE as a whole one."""
    if name in ("floor", "ceil"):
        return dialect.bound(x, lambda value: dialect.rounded(name.upper(), value))
    if name == "trunc":
        return dialect.bound(x, dialect.truncated)
    return dialect.bound(x, lambda value: _half_away(dialect, value))


def _half_away(dialect: Dialect, x: str) -> str:
    """The nearest whole DOUBLE, halves away from zero."""

    def moved(whole: str) -> str:
        half, one = dialect.number(0.5), dialect.number(1.0)
        rest = dialect.infix(x, "-", whole)  # exact; of an infinity NaN, which is no half
        up = f"WHEN {rest} >= {half} THEN {dialect.infix(whole, '+', one)}"
        down = f"WHEN {rest} <= {dialect.negative(half)} THEN {dialect.infix(whole, '-', one)}"
        return f"CASE {up} {down} ELSE {whole} END"

    is_near = f"{dialect.call('ABS', x)} <= {dialect.number(2.0**52)}"
    return f"(CASE WHEN {is_near} THEN {dialect.bound(dialect.truncated(x), moved)} ELSE {x} END)"


def nearest(dialect: Dialect, x: str, low: int = -BIGINT - 1, high: int = BIGINT) -> str:
    """BIGINT nearest to a DOUBLE, halves to even; NULL where it is outside of a range."""
    end = 2.0**63

    def whole(value: str) -> str:
        inside = f"{value} >= {dialect.number(-end)} AND {value} < {dialect.number(end)}"
        return f"(CASE WHEN {inside} THEN {dialect.nearest_whole(value)} END)"

    def within(value: str) -> str:
        return f"(CASE WHEN {value} BETWEEN {dialect.whole(low)} AND {dialect.whole(high)} THEN {value} END)"

    closest = dialect.bound(x, whole)
    return closest if (low, high) == (-BIGINT - 1, BIGINT) else dialect.bound(closest, within)


def extreme(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """GREATEST or LEAST of the numbers that are there."""
    if all(value.span is not None for value in values):
        spans = [value.span for value in values if value.span is not None]
        made = Value("", span=(min(low for low, _ in spans), max(high for _, high in spans)))
        *operands, _ = alike(dialect, *values, made)
        return replace(made, sql=dialect.call(name.upper(), *operands))
    doubles = (without_nan(dialect, Value(as_double(dialect, value), clean=value.clean)).sql for value in values)
    return Value(checked(dialect.call(name.upper(), *doubles)))


def _exp(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    x = as_double(dialect, values[0])
    above = f"WHEN {x} > {dialect.number(MOST_EXPONENT)} AND {x} <= {dialect.infinity} THEN {dialect.infinity}"
    below = f"WHEN {x} < {dialect.number(LEAST_EXPONENT)} THEN {dialect.number(0.0)}"
    return Value(checked(f"(CASE {above} {below} ELSE {dialect.call('EXP', x)} END)"), clean=False)


def _power(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:
    """A power whose exponent is written out and above zero: where it would overflow or vanish follows from that."""
    exponent = constants[1]
    if not isinstance(exponent, int | float) or isinstance(exponent, bool) or not 0 < exponent <= 1000:
        refuse(dialect, f"{name}() with an exponent that is not written out, or not above 0")
    x, number = as_double(dialect, without_nan(dialect, values[0])), dialect.number
    is_whole, is_odd = float(exponent).is_integer(), exponent % 2 == 1
    most = _root(LARGEST, exponent, 0.0) if exponent >= 1 else math.inf
    least = _root(5e-324, exponent, 1.0) if exponent >= 1 else 0.0
    size = dialect.call("ABS", x)
    beyond = f"CASE WHEN {x} < {number(0.0)} THEN {dialect.negative(dialect.infinity)} ELSE {dialect.infinity} END"
    arms = [
        *([] if is_whole else [f"WHEN {x} BETWEEN {number(-LARGEST)} AND {number(-5e-324)} THEN NULL"]),
        f"WHEN {size} >= {number(most)} THEN {beyond if is_odd else dialect.infinity}",
        f"WHEN {size} <= {number(least)} THEN {number(0.0)}",
    ]
    return Value(checked(f"(CASE {' '.join(arms)} ELSE {dialect.call('POWER', x, number(float(exponent)))} END)"))


def _root(value: float, exponent: float, inwards: float) -> float:
    """The root, two floats further inwards: it and a power are rounded, and one float moves a power by one or more."""
    with localcontext(prec=60):
        root = float((Decimal(value).ln() / Decimal(exponent)).exp())
    return math.nextafter(math.nextafter(root, inwards), inwards)


def _angle(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    factor = 180 / math.pi if name == "degrees" else math.pi / 180
    x = as_double(dialect, values[0])
    return Value(checked(f"({dialect.arithmetic(x, '*', dialect.number(factor))})"), clean=False)


def _divided(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    """Quotient towards zero of whole numbers, or what it leaves; NULL by zero."""
    left, right = values
    if left.span is None or right.span is None:
        return _divided_double(dialect, name, as_double(dialect, left), as_double(dialect, right))
    most = max(map(abs, left.span))
    if name != "//":
        most = min(most, max(map(abs, right.span)))
    low = 0 if left.span[0] >= 0 and (name != "//" or right.span[0] >= 0) else -most
    made = Value("", span=(low, most))
    dividend, by, _ = alike(dialect, left, right, made)
    zero = alike(dialect, Value(dialect.whole(0), span=(0, 0)), left, right, made)[0]
    sql = dialect.quotient(dividend, by) if name == "//" else dialect.remainder(dividend, by)
    sql = sql if made.is_wide else f"CAST({sql} AS BIGINT)"
    return replace(made, sql=checked(f"(CASE WHEN {by} <> {zero} THEN {sql} END)"))


def _divided_double(dialect: Dialect, name: str, dividend: str, by: str) -> Value:
    zero = dialect.number(0.0)
    sql = dialect.truncated(dialect.divided(dividend, by)) if name == "//" else dialect.double_remainder(dividend, by)
    if sql is None:
        refuse(dialect, "% of floats", "it has no such remainder")
    return Value(checked(f"(CASE WHEN {by} <> {zero} THEN {sql} END)"), clean=False)


def _pi(dialect: Dialect, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value:  # noqa: ARG001
    return Value(dialect.number(math.pi))


Made = Callable[[Dialect, str, Sequence[Value], Sequence[Any]], Value]
NUMERIC: Final[Mapping[str, Made]] = {
    "abs": _absolute, "sign": _sign, "exp": _exp, "pi": _pi,
    **dict.fromkeys(("round", "floor", "ceil", "ceiling", "trunc"), _rounding),
    **dict.fromkeys(("greatest", "least"), extreme), **dict.fromkeys(("pow", "power"), _power),
    **dict.fromkeys(("degrees", "radians"), _angle), **dict.fromkeys(("//", "%", "mod"), _divided),
}  # fmt: skip
