"""Counts and sums from two noisy sums; each record adds 1 to them together, shared by its place between the bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_STEPS, PLACES
from pdrisk._core.statistics import Count, Mean, Statistic, Sum, WholeStatistic
from pdrisk._core.summary import FloatArray
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.laws.laplace_sums import critical
from pdrisk._mechanisms.laws.law import Law

ROUNDING = 4 / PLACES  # of a record's place and its parts
SLACK = 1 + 2.0**-20


def is_total(statistic: Statistic) -> bool:
    """Whether a statistic is a number of records, or their sum."""
    return type(statistic) is Count or isinstance(statistic, Sum)


def total(statistic: Statistic, universe: Universe, parts: FloatArray) -> NDArray[Any]:
    """The noisy number or sum: int64 where it is a whole number.

    ``parts``: shape (k, G). Noisy sums of the Bernstein polynomials of degree k - 1 of the records' places, from 0
        to 1. They add up to 1 in each record; weighted with the points that divide the bounds evenly, to its value.
    """
    exact = np.tensordot(_weights(statistic, universe, len(parts)), parts, 1)
    return _answer(statistic, universe, np.rint(exact) if _is_whole(statistic) else exact)


def total_interval(
    statistic: Statistic, universe: Universe, parts: FloatArray, eps: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends between which the exact number or sum lies."""
    exact = np.tensordot(_weights(statistic, universe, len(parts)), parts, 1)
    reach = np.full(exact.shape, _reach(statistic, universe, len(parts), eps, level))
    if isinstance(statistic, Sum):
        reach += np.abs(parts.sum(axis=0)) * universe.width * ROUNDING
    if _is_whole(statistic):  # both ends are whole numbers, and so is the exact answer
        exact, reach = np.rint(exact), np.floor(reach + 0.5)
    low, high = (_answer(statistic, universe, end).astype(np.float64) for end in (exact - reach, exact + reach))
    return low, high


def law_of_parts(statistic: Statistic, universe: Universe, parts: int, scale: Fraction) -> Law:
    """Law of so many noisy sums, each with noise of this scale, of which the answer is the sum, the mean, or neither.

    The sums are in the order of the points that divide the bounds evenly.
    """
    unit, weights = Fraction(1, PLACES), tuple(_weights(statistic, universe, parts).tolist())
    rounding = universe.width * ROUNDING
    if is_total(statistic):
        off = rounding if isinstance(statistic, Sum) else 0.0
        return Law(parts, unit, scale, weights, rounding=off, whole=_is_whole(statistic))
    if isinstance(statistic, Mean):
        return Law(parts, unit, scale, weights, (1.0,) * parts, rounding=rounding)
    return Law(parts, unit, scale)


def total_reach(statistic: Statistic, universe: Universe, parts: int, eps: float, level: float) -> float:
    """Bound on the error of a total of ``parts`` noisy sums, each with noise of scale 1 / eps."""
    reach = _reach(statistic, universe, parts, eps, level)
    return math.floor(reach + 0.5) if _is_whole(statistic) else reach


def _reach(statistic: Statistic, universe: Universe, parts: int, eps: float, level: float) -> float:
    """Bound on the noise."""
    weights = np.zeros((3, 1))
    weights[:parts, 0] = _weights(statistic, universe, parts)
    return float(critical(weights, level)[0]) / eps * SLACK


def _weights(statistic: Statistic, universe: Universe, parts: int) -> FloatArray:
    """Weight of each of so many parts in the total."""
    return np.ones(parts) if type(statistic) is Count else np.linspace(universe.lo, universe.hi, parts)


def _is_whole(statistic: Statistic) -> bool:
    return isinstance(statistic, WholeStatistic)


def _answer(statistic: Statistic, universe: Universe, numbers: FloatArray) -> NDArray[Any]:
    """The answer, moved into the range of possible answers."""
    low, high = statistic.value_range(universe)
    held = np.clip(numbers, low, high)
    return np.clip(held, -LARGEST_STEPS, LARGEST_STEPS).astype(np.int64) if _is_whole(statistic) else held
