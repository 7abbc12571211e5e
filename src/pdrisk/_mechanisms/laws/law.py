"""Law of additive noise: which numbers a mechanism measures, with what noise, and how its answer follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

TINY = 1e-200  # steps, where there is hardly ever noise


@dataclass(frozen=True, slots=True)
class Law:
    """Law of the numbers that a mechanism draws for each group, each with independent discrete Laplace noise."""

    numbers: int  # how many numbers k are measured in each group: the first k that are drawn
    unit: Fraction  # what all of them are multiples of
    # of the noise, in the same unit as the numbers: ``j unit`` has probability proportional to ``exp(-|j| unit
    # / scale)``
    scale: Fraction
    # weights of the numbers in the answer, or in its numerator; empty where the answer is no such sum or ratio
    top: tuple[float, ...] = ()
    bottom: tuple[float, ...] = ()  # weights in the denominator, if the answer is a ratio
    constant: float = 0.0  # what is added to the sum
    # `least`, `most`: range of each exact number
    least: float = 0.0
    most: float = math.inf
    # how far the answer may be off because records were rounded, times the number of records where there are
    # several numbers, of which each record adds 1 to their sum
    rounding: float = 0.0
    whole: bool = False  # whether the exact answer is a whole number

    @property
    def variance(self) -> float:
        """Variance of the noise of each number: ``2 a / (1 - a)**2`` units squared, with ``a = exp(-unit / scale)``."""
        rate = float(self.unit / self.scale)
        steps = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
        return float(self.unit) ** 2 * max(steps, TINY)

    def measured(self, drawn: NDArray[Any]) -> FloatArray:
        """The measured numbers, uncut: float64 of shape (k, G); of what is withheld nothing is known here."""
        numbers = np.atleast_2d(drawn)[: self.numbers]
        return numbers * float(self.unit) if numbers.dtype.kind == "i" else numbers.astype(np.float64)

    def exact(self, drawn: NDArray[Any], group: int) -> tuple[Fraction, ...]:
        """The measured numbers of a group, exactly."""
        numbers = np.atleast_2d(drawn)[: self.numbers, group].tolist()
        return tuple(number * self.unit if isinstance(number, int) else Fraction(number) for number in numbers)

    @property
    def said(self) -> dict[str, Any]:
        """The law as JSON values."""
        return {
            field.name: _said(value) for field in fields(self) if (value := getattr(self, field.name)) != field.default
        }

    @classmethod
    def of_said(cls, values: dict[str, Any]) -> Law:
        """The law from its JSON values."""
        texts = {name: Fraction(values[name]) for name in ("unit", "scale")}
        lists = {name: tuple(map(float, values.get(name, ()))) for name in ("top", "bottom")}
        ends: dict[str, Any] = {name: float(values[name]) for name in ("least", "most") if name in values}
        return cls(**{**values, **texts, **lists, **ends})


def _said(value: Any) -> Any:
    if isinstance(value, Fraction) or (isinstance(value, float) and math.isinf(value)):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
