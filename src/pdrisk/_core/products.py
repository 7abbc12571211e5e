"""Products of places: the whole numbers that a record with two values adds to the sums of a covariance.

A place k, from 0 to S = `PLACES`, is divided among the Bernstein polynomials of degree 1, ``(S - k, k)``, or of degree
2, which also tell its square: see `Bernstein`. Each share is then divided in proportion to the shares of the other
column's place. Divisions are rounded down, and one part gets what is left: so all parts are whole numbers, none is
negative, and they sum to S, whatever the record. No product exceeds 2**60.

If the other column is one of weights, its place is divided among the shares of the first one, and all parts sum to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import PLACE_BITS, PLACES

WEIGHT_BITS: Final = 8  # of the steps in which weights are counted at points: the largest one has 2**8

Degrees = tuple[int, int]
"""Of the polynomials of the first and of the second column, 1 or 2; 0 where the second one holds weights."""

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class WholeArithmetic(Generic[Number]):
    """PlaceArithmetic of whole numbers, of arrays or as SQL."""

    whole: Number  # `PLACES`
    minus: Callable[[Number, Number], Number]
    share: Callable[[Number, Number], Number]  # ``floor(a * b / PLACES)``


def divided(k: Number, l: Number, degrees: Degrees, by: WholeArithmetic[Number]) -> list[Number]:  # noqa: E741
    """Parts of a record at the places k and l, shape ``(degrees[0] + 1) * (degrees[1] + 1)``; those of l vary first."""
    shares = _shares(k, degrees[0], by)
    if degrees[1] == 0:
        return _parts(l, shares, by)
    others = _shares(l, degrees[1], by)
    return [part for share in shares for part in _parts(share, others, by)]


def _parts(whole: Number, shares: list[Number], by: WholeArithmetic[Number]) -> list[Number]:
    """A whole number divided in proportion to shares of `PLACES`."""
    left = (len(shares) - 1) // 2  # this part gets what is left: the first of two, the middle of three
    parts = {at: by.share(whole, share) for at, share in enumerate(shares) if at != left}
    rest = whole
    for taken in parts.values():
        rest = by.minus(rest, taken)
    return [parts.get(at, rest) for at in range(len(shares))]


def _shares(k: Number, degree: int, by: WholeArithmetic[Number]) -> list[Number]:
    """A place divided among the polynomials of one column."""
    rest = by.minus(by.whole, k)
    if degree == 1:
        return [rest, k]
    low, high = by.share(rest, rest), by.share(k, k)
    return [low, by.minus(by.minus(by.whole, low), high), high]


OF_INTEGERS: Final[WholeArithmetic[Any]] = WholeArithmetic(PLACES, operator.sub, lambda a, b: (a * b) >> PLACE_BITS)


def weight_steps(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of weights in the coarser steps in which they are counted at points, halves up."""
    return ((weights << WEIGHT_BITS) + PLACES // 2) >> PLACE_BITS


def products_of_places(k: NDArray[np.int64], l: NDArray[np.int64], degrees: Degrees) -> NDArray[np.int64]:  # noqa: E741
    """The parts of records with the places k and l, shape (m, n)."""
    return np.stack(divided(k, l, degrees, OF_INTEGERS))
