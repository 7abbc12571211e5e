"""The interval of values a column can have."""

import math
from dataclasses import dataclass

from pdrisk.errors import ParameterError

_LARGEST = 1e100  # squares and sums of squares stay finite
_NARROWEST = 2.0**-20  # of the distance from zero: float rounding stays far below the sensitivities


@dataclass(frozen=True, slots=True)
class Universe:
    """The closed interval ``[lo, hi]``, declared without looking at the data.

    Parameters
    ----------
    lo, hi : float
        Both finite, ``lo < hi``, in the unit of the column.

    Raises
    ------
    ParameterError
        If the ends are not finite, reversed, equal, beyond 1e100, or closer together than a
        millionth of their distance from zero, where floating-point rounding would outgrow the
        sensitivities.
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        lo, hi = self.lo, self.hi
        if not (math.isfinite(lo) and math.isfinite(hi)):
            raise ParameterError(f"bounds must be finite, but are ({lo:g}, {hi:g}): declare the range values can have.")
        if lo > hi:
            raise ParameterError(
                f"bounds must be (lo, hi) with lo < hi, but ({lo:g}, {hi:g}) is reversed: write ({hi:g}, {lo:g})."
            )
        if lo == hi:
            raise ParameterError(f"bounds must be (lo, hi) with lo < hi, but both are {lo:g}: a range needs two ends.")
        if self.magnitude > _LARGEST or self.width < 1 / _LARGEST:
            raise ParameterError(
                f"bounds ({lo:g}, {hi:g}) must lie within 1e100 of zero and be at least 1e-100 wide: "
                "change the column's unit."
            )
        if self.width < self.magnitude * _NARROWEST:
            raise ParameterError(
                f"bounds ({lo!r}, {hi!r}) are too narrow for their distance from zero to compute with floats: "
                f"subtract {lo!r} from the column and from the bounds."
            )

    @property
    def width(self) -> float:
        """R = hi - lo."""
        return self.hi - self.lo

    @property
    def mid(self) -> float:
        """(lo + hi) / 2."""
        return (self.lo + self.hi) / 2

    @property
    def magnitude(self) -> float:
        """max(|lo|, |hi|), the largest absolute value."""
        return max(abs(self.lo), abs(self.hi))


@dataclass(frozen=True, slots=True)
class Days(Universe):
    """Dates or times that a column can have, as numbers of days since 1970-01-01.

    Parameters
    ----------
    lo, hi : float
    times : bool
        Whether the column has times of day; else all values are whole numbers.
    """

    times: bool = False


@dataclass(frozen=True, slots=True)
class Rectangle(Universe):
    """Values that two columns can have: the interval of the first, and as ``other`` that of the second.

    Parameters
    ----------
    lo, hi : float
        Of the first column, as of every `Universe`.
    other : Universe
    """

    other: Universe
