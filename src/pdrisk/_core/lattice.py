"""The public grid that answers are rounded to before noise is added."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_STEPS", "PLACES", "PLACE_BITS", "Lattice", "places_per_unit", "square_of_place"]

PLACE_BITS = 30
PLACES = 2**PLACE_BITS  # of the grid that two_sums and bernstein lay between the bounds
LARGEST_STEPS = 2**62  # answers are clamped here, so that noise never overflows int64


@dataclass(frozen=True, slots=True)
class Lattice:
    """Multiples of ``step``, and how many of them one record can move the rounded answer.

    Noise on floats leaks through their last bits (Mironov 2012), noise on integers does not. Rounding to a grid
    that no data decides makes answers integers: ``|rint(a) - rint(b)| <= |a - b| + 1``.

    Attributes
    ----------
    step : float
        A power of two, so that scaling by it is exact.
    sensitivity : int
        Largest change of the rounded answer between neighbours, in steps.
    """

    step: float
    sensitivity: int

    @classmethod
    @lru_cache(maxsize=64)  # exact fractions are slow, and every answer asks three times
    def around(cls, global_sensitivity: float, rounding: float) -> "Lattice":
        """The grid for a computed statistic: 2**31 to 2**32 steps to one global sensitivity.

        Parameters
        ----------
        global_sensitivity : float
            As computed; it is taken two floats up, since it may have been rounded down.
        rounding : float
            Bound on the floating-point error of the computed statistic, for any data.
        """
        step = power_of_two_below(global_sensitivity) * 2.0**-31
        largest = math.nextafter(math.nextafter(global_sensitivity, math.inf), math.inf)
        change = Fraction(largest) + 2 * Fraction(rounding)
        return cls(step, math.floor(change / Fraction(step)) + 1)

    @classmethod
    def of_records(cls, magnitude: float) -> "Lattice":
        """The grid for sums: every record is rounded to it, so that the sum is exact in any order.

        A record is at most ``magnitude``, hence at most ``sensitivity`` = 2**30 to 2**31 steps, and so is the
        change that one record makes.

        Parameters
        ----------
        magnitude : float
            Largest absolute value of a record.
        """
        step = power_of_two_below(magnitude) * 2.0**-30
        return cls(step, math.ceil(Fraction(magnitude) / Fraction(step)))


def power_of_two_below(value: float) -> float:
    """Largest power of two that is at most ``value``."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def places_per_unit(width: float) -> float:
    """Grid of two_sums and bernstein: place of x is ``floor((x - lo) * places_per_unit(hi - lo) + .5)``, 0 to `PLACES`.

    One float64 constant and one rule, so that every engine finds the same integers: engines differ in how they round
    ties. The place never exceeds `PLACES`: ``x - lo`` and its product grow with x, and at hi the product is off by
    less than 2**-21.
    """
    return PLACES / width


def square_of_place(k: NDArray[np.int64]) -> NDArray[np.int64]:
    """``floor(k**2 / PLACES)`` of places k: at most 2**60 before the division, so exact."""
    return (k * k) >> PLACE_BITS
