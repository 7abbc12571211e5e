"""Arithmetic with noisy answers: values computed from what was drawn, with intervals by the law of all the noise."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pdrisk._answer.arithmetic.exact_expressions import Expression, computed, constants, interval, shown
from pdrisk._answer.arithmetic.forms import Linear
from pdrisk._answer.words.languages import texts
from pdrisk._core.foreign import own_errors
from pdrisk._core.once import once
from pdrisk._model.arguments import checked_probability
from pdrisk._printing import DisplayedText
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = tuple[float, float]
TINY: Final = 1e-300


class Arithmetic:
    """A number that is known within an interval: ``+ - * /`` with others give `Combined`."""

    __slots__ = ()
    value: Any

    @property
    def is_date(self) -> bool:
        """Whether it is a date, of which only the days between two are numbers to compute with."""
        return False

    @property
    def number(self) -> Any:
        """The value as a number."""
        return self.value

    def interval(self, level: float = 0.95) -> Interval:
        """Interval that holds the exact number with a probability of at least ``level`` over the noise."""
        raise NotImplementedError

    def _sources(self) -> set[Hashable]:
        """The answers that it was computed from, by identity."""
        raise NotImplementedError

    @property
    def _form(self) -> Expression:
        """Normal form, of one number."""
        raise NotImplementedError

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


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Arithmetic):
    """Number computed from noisy answers: publishable, and free.

    Attributes
    ----------
    value : float
        Computed from what was drawn, uncut, and then cut to the range of possible results: so sums are unbiased. Where
        that is impossible, as with a divisor below 0 that cannot be, computed from the values as they are shown.
    low, high : float
        Ends between which the exact number lies, 95 % sure over the noise of all answers at once.

    Notes
    -----
    Sums with fixed weights and ratios of such sums have intervals by the exact law of their noise, in which a draw that
    is used twice counts as one: ``release - release`` is 0. Other results of answers with many records are linearised.
    Otherwise, and where an answer is chosen instead of computed with additive noise, as medians are, each of k answers
    counts with its interval at 1 - .05/k (Bonferroni), and the ends follow by interval arithmetic; they are infinite
    where a divisor may be 0. docs/numbers.md has proofs and coverage.
    """

    operation: str
    left: Any
    right: Any

    @property
    def value(self) -> float:
        value = float(shown(self._form)[0])
        if not math.isnan(value):
            return value
        left, right = (side.number if isinstance(side, Arithmetic) else side for side in (self.left, self.right))
        if self.operation == "/" and right == 0:
            return math.nan
        return float(np.clip(OPERATIONS[self.operation](left, right), *self._form.range())[0])

    @property
    def low(self) -> float:
        """Lower end, 95 % sure."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end, 95 % sure."""
        return self.interval()[1]

    @own_errors
    def interval(self, level: float = 0.95, kind: str = "noise") -> Interval:
        """Interval that holds the exact number with a probability of at least ``level`` over all noise.

        Raises
        ------
        ParameterError
            If ``kind`` is ``"sampling"``, which single answers have.
        """
        if not isinstance(kind, str) or kind != "noise":
            raise ParameterError(
                'kind="sampling" is known for single answers, not for numbers computed of several, whose people may be '
                "the same: of two groups without a person in common take it of both, with half-widths h and k, and "
                "sqrt(h**2 + k**2) for the difference."
            )
        low, high = interval(self._form, checked_probability("level", level))
        ends = float(low[0]), float(high[0])
        if self._is_whole:
            return ends
        (least,), (most,) = self._form.range()  # computed exactly, unlike the ends
        return max(math.nextafter(ends[0], -math.inf), least), min(math.nextafter(ends[1], math.inf), most)

    @own_errors
    def explain(
        self,
        audience: str = "participant",
        so_far: object = None,
        *,
        prior: float | None = None,
        language: str = "en",
    ) -> str:
        """Explanation of each answer that it was computed from, in plain words, as ``Release.explain`` gives it."""
        releases, wording = list(releases_of(self)), texts(language)
        eps, number = math.fsum(release.answer.eps for release in releases), len(releases)
        value = repr(self).partition(", of ")[0] + ")"
        field = "computed_from_one" if number == 1 else "computed_from_several"
        head = wording[field].format(value=value, number=number, eps=f"{eps:.6g}")
        told = [release.explain(audience, so_far, prior=prior, language=language) for release in releases]
        return DisplayedText("\n\n".join([head, *told]))

    @own_errors
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot of the value with its 95 % noise interval; `pdrisk.plot` names its errors."""
        charts = import_module("pdrisk._answer.tables.charts")  # later: charts take these numbers
        return charts.plot(self, ax=ax)

    @once
    def _form(self) -> Expression:
        return computed(self.operation, _form(self.left), _form(self.right))

    @property
    def _is_whole(self) -> bool:
        return isinstance(self._form, Linear) and self._form.whole

    def _sources(self) -> set[Hashable]:
        parts = [part for part in (self.left, self.right) if isinstance(part, Arithmetic)]
        return set().union(*(part._sources() for part in parts))

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
    if not all(isinstance(part, Arithmetic) or _is_number(part) for part in (left, right)):
        return NotImplemented
    dates = [isinstance(part, Arithmetic) and part.is_date for part in (left, right)]
    if any(dates) and not (all(dates) and operation == "-"):
        raise ParameterError(
            f"`{operation}` of a noisy date is no number: subtract another noisy date, which gives days, or compute "
            "with .value, a Timestamp."
        )
    return Combined(operation, left, right)


def releases_of(part: Any) -> Iterator[Any]:
    """The releases that a number was computed from, each draw once."""
    if isinstance(part, Combined):
        yield from {
            frozenset(release._sources()): release for side in (part.left, part.right) for release in releases_of(side)
        }.values()
    elif isinstance(part, Arithmetic):
        yield part


def _form(part: Any) -> Expression:
    return part._form if isinstance(part, Arithmetic) else constants(float(part), 1)


def _is_number(value: object) -> bool:
    return isinstance(value, Real | np.number) and not isinstance(value, bool | np.timedelta64)


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Arithmetic) else value


def _shown(end: float) -> str:
    """An end of an interval in six digits; a zero that rounding moved by one float is shown as zero."""
    return "0" if abs(end) < TINY else f"{end:.6g}"
