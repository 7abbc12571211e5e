"""Sampling error of a simple random sample, for any values within bounds: Chernoff's bounds (Hoeffding 1963)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdrisk._core.summary import FloatArray

__all__ = ["expected_mean", "expected_total"]

HALVINGS = 64


def expected_mean(low: FloatArray, high: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Where the mean of a population lies, of values in [0, 1].

    Parameters
    ----------
    low, high : ndarray of float64, shape (G,)
        Ends of the mean of a simple random sample, in [0, 1].
    n : ndarray of float64, shape (G,)
        Size of the sample, or less.
    level : float
        How sure, in (0, 1).

    Notes
    -----
    Of n independent values in [0, 1] with mean p, the mean is x or more with probability ``exp(-n KL(x, p))`` at most,
    for x >= p and ``KL(x, p) = x ln(x/p) + (1 - x) ln((1 - x)/(1 - p))``; x or less likewise (Hoeffding 1963, theorem
    1). The same holds of values drawn without replacement (his section 6). KL grows with the distance. So with the ends
    at those p with ``n KL(x, p) = ln(2 / (1 - level))``, each side fails with probability ``(1 - level)/2`` at most.
    """
    sure = -math.log((1 - level) / 2)

    def excess(x: FloatArray, p: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            one = np.where(x > 0, x * np.log(x / p), 0.0)
            other = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - p)), 0.0)
            return n * (one + other) - sure

    known = n > 0
    lower = _farthest(lambda p: excess(low, p), low, np.zeros(low.shape))
    upper = _farthest(lambda p: excess(high, p), high, np.ones(high.shape))
    return np.where(known, lower, 0.0), np.where(known, upper, 1.0)


def expected_total(low: FloatArray, high: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Where the expected total lies, of a sample's values in [0, 1] whose number is not known.

    Parameters
    ----------
    low, high : ndarray of float64, shape (G,)
        Ends of the total of the sample; 0 or more.
    level : float

    Notes
    -----
    As the logarithm of each value's moment generating function is at most ``p (e^t - 1)``, a total with the mean m is x
    or more with probability ``exp(-(x ln(x/m) - x + m))`` at most, for x >= m, and x or less likewise: a Poisson
    variable's bound, whatever the number of values.
    """
    sure = -math.log((1 - level) / 2)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)

    def excess(x: FloatArray, m: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x > 0, x * np.log(x / m), 0.0) - x + m - sure

    # (m - x)**2 / 2m is less than the exponent for m > x, and reaches `sure` there.
    most = high + sure + np.sqrt(sure**2 + 2 * high * sure)
    lower = _farthest(lambda m: excess(low, m), low, np.zeros(low.shape))
    return lower, _farthest(lambda m: excess(high, m), high, most)


def _farthest(excess: Callable[[FloatArray], FloatArray], near: FloatArray, far: FloatArray) -> FloatArray:
    """A point at which the excess, which grows from near to far, is 0 or a little more; far if it never is."""
    near, far = near.copy(), far.copy()
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        within = excess(middle) < 0
        near, far = np.where(within, middle, near), np.where(within, far, middle)
    return far
