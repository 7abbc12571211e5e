"""The public grid that answers are rounded to before noise is added."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.once import once
from pdrisk._core.universe import Universe

PLACE_BITS = 30
PLACES = 2**PLACE_BITS  # of the grid that two_sums and bernstein lay between the bounds
NEAR = 16  # widths from 0, within which both bounds lie if records are placed without a subtraction
LARGEST_STEPS = 2**62  # answers are clamped here, so that noise never overflows int64
LARGEST_PLACES = LARGEST_STEPS - PLACES  # each of the sums of two_sums and bernstein, which 2**32 - 1 people can make
MOST_PLACED = 2**33 - 1  # records whose places are counted: the sum of them is below 2**63
# Ledgers keep which of these points was chosen: with other points, raise `pdrisk._ledger.accounts.memory.FORM`.
FEWEST_POINTS = 2**16  # between the bounds, of those that quantiles are chosen among; ten times as many at most


@dataclass(frozen=True, slots=True)
class Lattice:
    """Multiples of ``step``, and how many of them one record can move the rounded answer.

    Noise on floats leaks through their last bits (Mironov 2012), noise on integers does not. Rounding to a grid
    that no data decides makes answers integers: ``|rint(a) - rint(b)| <= |a - b| + 1``.
    """

    step: float  # a power of two, so that scaling by it is exact
    sensitivity: int  # largest change of the rounded answer between neighbours, in steps

    @classmethod
    @lru_cache(maxsize=64)  # exact fractions are slow, and every answer asks three times
    def around(cls, global_sensitivity: float, rounding: float) -> Lattice:
        """The grid for a computed statistic: 2**31 to 2**32 steps to one global sensitivity.

        ``global_sensitivity``: as computed; it is taken two floats up, since it may have been rounded down.
        ``rounding``: bound on the floating-point error of the computed statistic, for any data.
        """
        step = power_of_two_below(global_sensitivity) * 2.0**-31
        largest = math.nextafter(math.nextafter(global_sensitivity, math.inf), math.inf)
        change = Fraction(largest) + 2 * Fraction(rounding)
        return cls(step, math.floor(change / Fraction(step)) + 1)

    @classmethod
    def of_records(cls, magnitude: float) -> Lattice:
        """The grid for sums: every record is rounded to it, so that the sum is exact in any order.

        A record is at most ``magnitude``, hence at most ``sensitivity`` = 2**30 to 2**31 steps, and so is the
        change that one record makes.

        ``magnitude``: largest absolute value of a record.
        """
        step = power_of_two_below(magnitude) * 2.0**-30
        return cls(step, math.ceil(Fraction(magnitude) / Fraction(step)))


def power_of_two_below(value: float) -> float:
    """Largest power of two that is at most ``value``."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


@dataclass(frozen=True, slots=True)
class PlaceGrid:
    """Grid of two_sums and bernstein: the place of x is ``floor((x - origin) * per_unit + shift)``, 0 to `PLACES`.

    It is the whole number nearest to ``(x - lo) / (hi - lo) * PLACES``, with halves up. One rule with float64
    constants, so that every engine finds the same integers: engines differ in how they round ties. The origin is 0,
    which saves a subtraction for each record, unless the bounds are so far from it that the product would be rounded
    by more than 2**-19 places. Each operation grows with x, and both bounds are tried: so no place lies outside.
    """

    origin: float
    per_unit: float
    shift: float

    @classmethod
    def of(cls, universe: Universe) -> PlaceGrid:
        """The grid of a universe."""
        return cls._between(universe.lo, universe.hi)

    @classmethod
    @lru_cache(maxsize=256)
    def _between(cls, lo: float, hi: float) -> PlaceGrid:
        per_unit = PLACES / (hi - lo)
        grid = cls(0.0, per_unit, 0.5 - lo * per_unit)
        is_near = max(abs(lo), abs(hi)) <= NEAR * (hi - lo)
        if is_near and (grid.placed(np.array([lo, hi])) == [0, PLACES]).all():
            return grid
        return cls(lo, per_unit, 0.5)

    def placed(self, records: NDArray[np.float64], spare: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The places of clamped records; in ``spare``, if it is given and large enough."""
        out = None if spare is None else spare[: len(records)]
        if self.origin == 0:
            places = np.multiply(records, self.per_unit, out=out)
        else:
            places = np.subtract(records, self.origin, out=out)
            places *= self.per_unit
        places += self.shift
        return np.floor(places, out=places)


@dataclass(frozen=True, slots=True)
class NumbersGrid:
    """Public grid on which the rows of one person are added up to one number.

    A row x has the place ``floor(clip(x - origin, -reach, reach) * per_unit + .5)``; a person's sum of places over
    ``per_unit`` is that of the rows. With ``per_unit`` a power of two whole numbers stay whole.
    """

    origin: float
    reach: float
    per_unit: float


def numbers_grid(universe: Universe, *, is_sum: bool) -> NumbersGrid:
    """The grid for means within a universe, or for sums within it: 2**30 to 2**31 places to its width, or magnitude.

    Rows reach a thousand times as far as the number that they make: beyond that they are clamped.
    """
    size = universe.magnitude if is_sum else universe.width
    step = power_of_two_below(size) * 2.0**-30
    return NumbersGrid(0.0 if is_sum else universe.lo, 1024 * size, 1 / step)


def square_of_place(k: NDArray[np.int64], out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """``floor(k**2 / PLACES)`` of places k: at most 2**60 before the division, so exact; ``out`` may be their own."""
    square = np.multiply(k, k, out=out)
    return np.right_shift(square, PLACE_BITS, out=square)


@dataclass(frozen=True)
class Points:
    """Public decimal lattice: the multiples of a power of ten that values between two bounds are rounded to.

    Every engine rounds a clamped record x to the point of index ``floor(x * factor + .5) - first``, or
    ``floor(x / divisor + .5) - first`` where steps are longer than 1: one rule in float64, so that all find the same
    integers. It grows with x, so that the bounds have the indices 0 and ``size - 1``. The value of a point beyond a
    bound is that bound.
    """

    # `lo`, `hi`: the bounds
    lo: float
    hi: float
    exponent: int  # a step is ``10**exponent`` long
    whole: bool = False  # whether the values are whole numbers

    @classmethod
    @lru_cache(maxsize=64)
    def between(cls, lo: float, hi: float, whole: bool = False) -> Points:
        """The points of two bounds: whole numbers, or 2**16 and less than ten times as many steps."""
        if whole:
            return cls(lo, hi, 0, True)
        most = Fraction(hi - lo) / FEWEST_POINTS
        exponent = math.floor(math.log10(hi - lo) - math.log10(FEWEST_POINTS))  # give or take one, by rounding
        while Fraction(10) ** exponent > most:
            exponent -= 1
        while Fraction(10) ** (exponent + 1) <= most:
            exponent += 1
        return cls(lo, hi, exponent)

    @once
    def factor(self) -> float:
        """Steps to one unit; where a step is longer than 1, how many units it is long."""
        return float(f"1e{abs(self.exponent)}")

    @property
    def divides(self) -> bool:
        """Whether records are divided by `factor`; otherwise they are multiplied by it."""
        return self.exponent > 0

    @once
    def first(self) -> int:
        """Which multiple of a step the point of index 0 is."""
        return self._multiple(self.lo)

    @once
    def size(self) -> int:
        """Number of points M."""
        return self._multiple(self.hi) - self.first + 1

    def index(self, records: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The indices of clamped records, as whole floats; ``out`` may be their own memory."""
        scaled = (np.divide if self.divides else np.multiply)(records, self.factor, out=out)
        scaled += 0.5
        np.floor(scaled, out=scaled)
        scaled -= self.first
        return scaled

    @property
    def step(self) -> float:
        """Distance from point to point."""
        return self.factor if self.divides else 1 / self.factor

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values within the bounds lie among the points, from 0 to ``size - 1``."""
        scaled = values / self.factor if self.divides else values * self.factor
        return np.clip(scaled - self.first, 0, self.size - 1)

    def value(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The values of points: int64 where they are whole numbers, else the float64 nearest to the decimal."""
        multiple = index + self.first
        if self.whole:
            return multiple
        values = multiple * self.factor if self.divides else multiple / self.factor
        return values.clip(self.lo, self.hi)

    def _multiple(self, value: float) -> int:
        scaled = value / self.factor if self.divides else value * self.factor
        return math.floor(scaled + 0.5)
