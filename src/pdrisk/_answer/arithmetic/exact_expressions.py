"""Expressions of noisy answers in normal form: sums, ratios, and what is computed of those; R of them at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from pdrisk._answer.arithmetic.forms import Ends, Linear, Ratio
from pdrisk._answer.arithmetic.noises import SCALE, aligned, sums
from pdrisk._core.summary import FloatArray

SURE: Final = (
    10.0  # deviations of its noise that a denominator is larger, so that a ratio is nearly linear in the noise
)
CLOSE: Final = 2.0**-40  # of weights that are in one proportion


@dataclass(frozen=True)
class Opaque:
    """Answers of which only intervals are known, such as medians, times a factor."""

    key: Hashable  # their identity
    values: FloatArray  # shape (R,)
    ends: Callable[[float], Ends]  # gives the intervals at a level
    limits: Ends  # range of the exact answers
    factor: FloatArray  # shape (R,)

    @property
    def size(self) -> int:
        """R."""
        return len(self.values)

    def value(self) -> FloatArray:
        """The noisy answers times the factor."""
        return self.values * self.factor

    def range(self) -> Ends:
        """Range of the exact answers times the factor."""
        return _product(self.limits, (self.factor, self.factor))

    def interval(self, level: float) -> Ends:
        """Ends between which the exact answers times the factor lie."""
        return _product(self.ends(level), (self.factor, self.factor))

    def times(self, factor: FloatArray) -> Opaque:
        """The answers times one factor more."""
        return replace(self, factor=self.factor * factor)


@dataclass(frozen=True)
class Added:
    """Sum of several terms, no two of which have a simpler sum."""

    terms: tuple[Term, ...]

    @property
    def size(self) -> int:
        """R."""
        return self.terms[0].size

    def value(self) -> FloatArray:
        """The sum of the noisy terms."""
        return np.sum([term.value() for term in self.terms], axis=0)

    def range(self) -> Ends:
        """Range of the sum."""
        return _sum([term.range() for term in self.terms])

    def times(self, factor: FloatArray) -> Added:
        """The sum times a factor."""
        return Added(tuple(times(term, factor) for term in self.terms))


@dataclass(frozen=True)
class Multiplied:
    """Multiplied or quotient of two expressions that has no simpler form."""

    operation: str
    left: Expression
    right: Expression

    @property
    def size(self) -> int:
        """R."""
        return self.left.size

    def value(self) -> FloatArray:
        """The product or quotient of the noisy numbers; NaN for a quotient by 0."""
        left, right = self.left.value(), self.right.value()
        if self.operation == "*":
            return left * right
        return np.divide(left, right, out=np.full(len(left), np.nan), where=right != 0)

    def range(self) -> Ends:
        """Range of the exact numbers."""
        return _combined(self.operation, self.left.range(), self.right.range(), touching=True)

    def times(self, factor: FloatArray) -> Multiplied:
        """The product times a factor."""
        return replace(self, left=times(self.left, factor))


Term = Linear | Ratio | Opaque | Multiplied
Expression = Term | Added


def constants(numbers: Any, size: int) -> Linear:
    """Numbers without noise as an expression."""
    return Linear.constants(np.broadcast_to(np.asarray(numbers, dtype=np.float64), (size,)))


def times(expression: Any, factor: FloatArray) -> Any:
    """An expression times a number for each of its R."""
    if isinstance(expression, Ratio):
        return Ratio(expression.top.times(factor), expression.bottom)
    return expression.times(factor)


def computed(operation: str, left: Expression, right: Expression) -> Expression:
    """The normal form of ``left operation right``, one of ``+ - * /``."""
    if operation in "+-":
        return _added(left, right if operation == "+" else times(right, np.full(right.size, -1.0)))
    if isinstance(right, Linear) and right.is_constant and (operation == "*" or right.constant.all()):
        return times(left, right.constant if operation == "*" else 1 / right.constant)
    if operation == "*" and isinstance(left, Linear) and left.is_constant:
        return times(right, left.constant)
    form = _multiplied(left, right) if operation == "*" else _divided(left, right)
    return Multiplied(operation, left, right) if form is None else form


def _added(left: Expression, right: Expression) -> Expression:
    terms: list[Term] = []
    for term in (*_terms(left), *_terms(right)):
        for at, other in enumerate(terms):
            if (both := _together(other, term)) is not None:
                terms[at] = both
                break
        else:
            terms.append(term)
    some = [term for term in terms if not _is_zero(term)]
    if len(some) > 1:
        return Added(tuple(some))
    return some[0] if some else terms[0] if isinstance(terms[0], Linear) else constants(0.0, terms[0].size)


def _terms(expression: Expression) -> tuple[Term, ...]:
    return expression.terms if isinstance(expression, Added) else (expression,)


def _is_zero(term: Term) -> bool:
    if isinstance(term, Opaque):
        return not term.factor.any()
    return isinstance(term, Linear) and term.is_constant and not term.constant.any()


def _together(one: Term, other: Term) -> Term | None:
    """The sum of two terms as one; None if there is no simpler form."""
    match one, other:
        case Linear(), Linear():
            return one.plus(other)
        case Opaque(), Opaque() if one.key == other.key:
            return replace(one, factor=one.factor + other.factor)
        case Ratio(), Ratio() if (share := _proportion(one.bottom, other.bottom)) is not None:
            return Ratio(one.top.plus(other.top.times(share)), one.bottom)
        case (Ratio(top, bottom), Linear() as linear) | (Linear() as linear, Ratio(top, bottom)) if linear.is_constant:
            return Ratio(top.plus(bottom.times(linear.constant)), bottom)
    return None


def _multiplied(left: Expression, right: Expression) -> Expression | None:
    match left, right:
        case (Ratio(top, bottom), Linear() as other) | (Linear() as other, Ratio(top, bottom)):
            share = _proportion(other, bottom)
            return None if share is None else top.times(share)
        case Ratio(), Ratio() if (share := _proportion(right.top, left.bottom)) is not None:
            return Ratio(left.top.times(share), right.bottom)
        case Ratio(), Ratio() if (share := _proportion(left.top, right.bottom)) is not None:
            return Ratio(right.top.times(share), left.bottom)
    return None


def _divided(left: Expression, right: Expression) -> Expression | None:
    match left, right:
        case Linear(), Linear() if not right.is_constant:
            return Ratio(left, right)
        case Linear(), Ratio(top, bottom) if left.is_constant:
            return Ratio(bottom.times(left.constant), top)
        case Linear(), Ratio(top, bottom) if (share := _proportion(left, top)) is not None:
            return bottom.times(share)
        case Ratio(), Ratio() if (share := _proportion(right.bottom, left.bottom)) is not None:
            return Ratio(left.top.times(share), right.top)
        case Ratio(), Ratio() if (share := _proportion(left.top, right.top)) is not None:
            return Ratio(right.bottom.times(share), left.bottom)
    return None


def _proportion(one: Linear, other: Linear) -> FloatArray | None:
    """The numbers f, shape (R,), with ``one = f other`` in each of the R sums, none 0; None if there are none."""
    noises, first, second = aligned(one.noises, other.noises)
    rows = np.concatenate([noises.row, np.arange(one.size)])
    first, second = np.append(first, one.constant), np.append(second, other.constant)
    size = sums(rows, second**2, one.size)
    share = sums(rows, first * second, one.size) / np.where(size > 0, size, 1.0)
    off = np.abs(first - share[rows] * second) > CLOSE * np.abs(first)
    return None if off.any() or not share.all() else share


def shown(expression: Expression) -> FloatArray:
    """The noisy values, cut to the range of the expression; NaN where there are none, or a part is withheld."""
    return np.clip(expression.value(), *expression.range())


def interval(expression: Expression, level: float) -> Ends:
    """Ends between which the exact numbers lie with a probability of at least ``level``, within their range.

    They are widened to the values that are shown.
    """
    low, high = _interval(expression, level)
    least, most = expression.range()
    value = shown(expression)
    unknown = np.isnan(low) | np.isnan(high)
    low, high = np.fmin(np.clip(low, least, most), value), np.fmax(np.clip(high, least, most), value)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def _interval(expression: Expression, level: float) -> Ends:
    if isinstance(expression, Linear | Ratio | Opaque):
        return expression.interval(level)
    smooth = _linearised(expression, level)
    if smooth is not None and smooth.sure.all():
        return smooth.interval(level)
    atoms = _atoms(expression)
    box = _box(expression, 1 - (1 - level) / max(len(atoms), 1))  # none is noisy where noise cancels
    if smooth is None or not smooth.sure.any():
        return box
    low, high = smooth.interval(level)
    return np.where(smooth.sure, low, box[0]), np.where(smooth.sure, high, box[1])


def _box(expression: Expression, level: float) -> Ends:
    """Ends that hold where each part lies in its own interval at ``level``, by interval arithmetic."""
    if isinstance(expression, Added):
        return _sum([_box(term, level) for term in expression.terms])
    if isinstance(expression, Multiplied):
        return _combined(expression.operation, _box(expression.left, level), _box(expression.right, level))
    low, high = expression.interval(level)
    least, most = expression.range()
    return np.clip(low, least, most), np.clip(high, least, most)


def _atoms(expression: Expression) -> set[Hashable]:
    """The parts that have intervals of their own, by identity."""
    if isinstance(expression, Added):
        return set().union(*map(_atoms, expression.terms))
    if isinstance(expression, Multiplied):
        return _atoms(expression.left) | _atoms(expression.right)
    if isinstance(expression, Opaque):
        return {expression.key}
    parts = (expression,) if isinstance(expression, Linear) else (expression.top, expression.bottom)
    if all(part.is_constant for part in parts):
        return set()
    return {b"".join(array.tobytes() for part in parts for array in (part.noises.keys, part.noises.weight))}


@dataclass(frozen=True)
class _Smooth:
    """Numbers that are nearly linear in the noise: their values, first-order errors, and where that is enough."""

    value: FloatArray
    error: Linear
    sure: Any

    def interval(self, level: float) -> Ends:
        reach = self.error.reach(level)
        return self.value - reach, self.value + reach

    def surely_not_small(self, level: float) -> Any:
        """Where the numbers are known to within half of themselves."""
        return self.error.reach(level) < np.abs(self.value) / 2


def _linearised(expression: Expression, level: float) -> _Smooth | None:
    """An expression to first order in the noise; None if only intervals are known of a part of it."""
    match expression:
        case Linear():
            error = replace(expression, constant=np.zeros(expression.size), whole=False)
            return _Smooth(expression.value(), error, np.ones(expression.size, dtype=np.bool_))
        case Ratio(top, bottom):
            value, below = expression.value(), bottom.value()
            with np.errstate(divide="ignore", invalid="ignore"):
                error = top.plus(bottom.times(-np.nan_to_num(value))).times(
                    np.nan_to_num(1 / below, posinf=0, neginf=0)
                )
            sure = np.abs(below) >= SURE * _root_scale(bottom)
            return _Smooth(value, replace(error, constant=np.zeros(top.size), whole=False), sure & ~np.isnan(value))
        case Added(terms):
            parts = [_linearised(term, level) for term in terms]
            total = parts[0]
            for part in parts[1:]:
                if total is None or part is None:
                    return None
                total = _Smooth(total.value + part.value, total.error.plus(part.error), total.sure & part.sure)
            return total
        case Multiplied(operation, left, right):
            return _linearised_product(operation, _linearised(left, level), _linearised(right, level), level)
    return None


def _linearised_product(operation: str, one: _Smooth | None, other: _Smooth | None, level: float) -> _Smooth | None:
    if one is None or other is None:
        return None
    sure = one.sure & other.sure & other.surely_not_small(level)
    if operation == "*":
        error = one.error.times(other.value).plus(other.error.times(one.value))
        return _Smooth(one.value * other.value, error, sure & one.surely_not_small(level))
    below = np.where(sure, other.value, 1.0)
    value = one.value / below
    return _Smooth(value, one.error.plus(other.error.times(-value)).times(1 / below), sure)


def _root_scale(form: Linear) -> FloatArray:
    """Root of the sum of the squared scales of a sum's noises."""
    noises = form.noises
    return np.sqrt(sums(noises.row, (noises.weight * noises.facts[:, SCALE]) ** 2, form.size))


def error_deviation(form: Linear | Ratio) -> FloatArray:
    """Standard deviations of the noise of sums and, to first order, of ratios; NaN where that says nothing."""
    smooth = _linearised(form, 0.95)
    assert smooth is not None
    return np.where(smooth.sure, np.sqrt(2.0) * _root_scale(smooth.error), np.nan)


def _sum(ends: list[Ends]) -> Ends:
    return np.sum([low for low, _ in ends], axis=0), np.sum([high for _, high in ends], axis=0)


def _product(one: Ends, other: Ends) -> Ends:
    """Ends of products of numbers between these ends; 0 times what has no end is 0."""
    with np.errstate(invalid="ignore"):
        products = np.stack([a * b for a in one for b in other])
    unknown = np.isnan(np.stack([*one, *other])).any(axis=0)
    products = np.where(np.isnan(products), 0.0, products)
    return np.where(unknown, np.nan, products.min(axis=0)), np.where(unknown, np.nan, products.max(axis=0))


def _combined(operation: str, one: Ends, other: Ends, *, touching: bool = False) -> Ends:
    """Ends of products or quotients of numbers between these ends.

    Nothing is known of a quotient by what may be 0; with ``touching`` by what lies on both sides of 0.
    """
    if operation == "*":
        return _product(one, other)
    low, high = other
    apart = (low > 0) | (high < 0) | ((low >= 0) & (high > 0) | (low < 0) & (high <= 0)) & touching
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(high == 0, -math.inf, 1 / high), np.where(low == 0, math.inf, 1 / low)
        ends = _product(one, (inverse[0], inverse[1]))
    unknown = np.isnan(low) | np.isnan(high)
    infinite = ~apart & ~unknown
    return np.where(infinite, -math.inf, ends[0]), np.where(infinite, math.inf, ends[1])
