"""Arithmetic with noisy answers: a value with an interval that holds for all of its parts at once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy as np

__all__ = ["Arithmetic", "Combined"]

Interval = tuple[float, float]
TINY: Final = 1e-300


class Arithmetic:
    """A number that is known within an interval: ``+ - * /`` with others give `Combined`."""

    __slots__ = ()
    value: Any

    def interval(self, level: float = 0.95) -> Interval:
        """Interval that holds the exact number with a probability of at least ``level`` over the noise."""
        raise NotImplementedError

    def _sources(self) -> dict[int, Arithmetic]:
        """The releases that it was computed from, by identity."""
        return {id(self): self}

    def _at(self, level: float) -> Interval:
        """The interval that holds if each source lies within its own interval at ``level``."""
        return self.interval(level)

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return self.value if math.isnan(self.value) else round(self.value, digits)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _value(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _value(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _value(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _value(other))

    def __add__(self, other: Any) -> Combined:
        return _combined("+", self, other)

    def __radd__(self, other: Any) -> Combined:
        return _combined("+", other, self)

    def __sub__(self, other: Any) -> Combined:
        return _combined("-", self, other)

    def __rsub__(self, other: Any) -> Combined:
        return _combined("-", other, self)

    def __mul__(self, other: Any) -> Combined:
        return _combined("*", self, other)

    def __rmul__(self, other: Any) -> Combined:
        return _combined("*", other, self)

    def __truediv__(self, other: Any) -> Combined:
        return _combined("/", self, other)

    def __rtruediv__(self, other: Any) -> Combined:
        return _combined("/", other, self)

    def __neg__(self) -> Combined:
        return _combined("-", 0, self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Combined(Arithmetic):
    """A number computed from noisy answers: publishable, and free.

    Attributes
    ----------
    value : float
        Computed from the noisy values.
    low, high : float
        Ends between which the exact number lies, 95 % sure over the noise of all answers at once: each of k answers
        counts with its interval at 1 - .05/k (Bonferroni), and the ends follow by interval arithmetic. Infinite where
        a divisor's interval holds 0.
    """

    operation: str
    left: Any
    right: Any

    @property
    def value(self) -> float:
        left, right = _value(self.left), _value(self.right)
        if self.operation == "/" and right == 0:
            return math.nan
        return float(OPERATIONS[self.operation](left, right))

    @property
    def low(self) -> float:
        """Lower end, 95 % sure."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end, 95 % sure."""
        return self.interval()[1]

    def interval(self, level: float = 0.95) -> Interval:
        """Interval that holds the exact number with a probability of at least ``level`` over all noise."""
        return self._at(1 - (1 - level) / len(self._sources()))

    def _sources(self) -> dict[int, Arithmetic]:
        parts = [each for each in (self.left, self.right) if isinstance(each, Arithmetic)]
        return {key: source for part in parts for key, source in part._sources().items()}

    def _at(self, level: float) -> Interval:
        left, right = (
            part._at(level) if isinstance(part, Arithmetic) else (float(part), float(part))
            for part in (self.left, self.right)
        )
        if self.operation == "/" and right[0] <= 0 <= right[1]:
            return -math.inf, math.inf
        with np.errstate(all="ignore"):
            if self.operation in "+-":
                return _outward(
                    OPERATIONS[self.operation](np.float64(left[0]), right[0 if self.operation == "+" else 1]),
                    OPERATIONS[self.operation](np.float64(left[1]), right[1 if self.operation == "+" else 0]),
                )
            ends = [float(OPERATIONS[self.operation](np.float64(a), np.float64(b))) for a in left for b in right]
        return _outward(min(ends), max(ends))

    def __repr__(self) -> str:
        low, high = self.interval()
        interval = f"{_shown(low)} to {_shown(high)}"
        if math.isnan(low) or math.isnan(high):
            interval = "not known"
        number = len(self._sources())
        answers = "1 noisy answer" if number == 1 else f"{number} noisy answers"
        return f"{self.value:.6g} (95 % noise interval {interval}, of {answers})"


OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def _combined(operation: str, left: Any, right: Any) -> Any:
    if not all(isinstance(each, Arithmetic) or _is_number(each) for each in (left, right)):
        return NotImplemented
    return Combined(operation, left, right)


def _is_number(value: object) -> bool:
    return isinstance(value, Real | np.number) and not isinstance(value, bool | np.timedelta64)


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Arithmetic) else value


def _shown(end: float) -> str:
    """An end of an interval in six digits; a zero that rounding moved by one float is shown as zero."""
    return "0" if abs(end) < TINY else f"{end:.6g}"


def _outward(low: float, high: float) -> Interval:
    """The interval one float wider on each side, because the ends were rounded."""
    return math.nextafter(float(low), -math.inf), math.nextafter(float(high), math.inf)
