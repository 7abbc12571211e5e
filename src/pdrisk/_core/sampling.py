"""Sampling error of a simple random sample, for any values within bounds: Chernoff's bounds (Hoeffding 1963)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdrisk._core.summary import FloatArray

__all__ = ["expected_mean", "expected_mean_by_spread", "expected_total"]

HALVINGS = 64
TO_SPREAD = 0.2  # of how often an interval fails, for the spread of the values
CELLS = 1200  # of the distances that are tried, each 1.5 % longer than the one before
NEAREST = 1e-7


def expected_mean(low: FloatArray, high: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of a population's mean, for values in [0, 1].

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
        with np.errstate(invalid="ignore"):  # of no records
            return n * _divergence(x, p) - sure

    known = n > 0
    lower = _farthest(lambda p: excess(low, p), low, np.zeros(low.shape))
    upper = _farthest(lambda p: excess(high, p), high, np.ones(high.shape))
    return np.where(known, lower, 0.0), np.where(known, upper, 1.0)


def expected_mean_by_spread(
    low: FloatArray, high: FloatArray, spread: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """`expected_mean`, where the variance of the sample is known: narrower if that is small.

    Parameters
    ----------
    low, high : ndarray of float64, shape (G,)
    spread : ndarray of float64, shape (G,)
        Variance of the sample over n, or more.
    n : ndarray of float64, shape (G,)
    level : float

    Notes
    -----
    Let p be the mean of the population and s its variance, at most ``p (1 - p)``. (i) Squared distances from p lie in
    [0, 1], have the mean s in the population, and ``y = spread + (x - p)**2`` or less in the sample: so
    ``n KL(y, s) < ln(1/d)`` where y < s, but for a probability of d (Hoeffding 1963, theorem 1). (ii) Values at most p
    below p with a variance of s have a mean t or more below p with probability ``exp(-n KL((s + p t) / (s + p**2),
    s / (s + p**2)))`` at most (his theorem 3), which grows with s and p and falls with t. Both bound moment generating
    functions, and so hold for values drawn without replacement too (his section 6). For distances between two of a
    series, t is that of the nearer one, p and s those of the farther one: so a mean that is not among those tried is
    not left out by mistake. The interval ends at the farthest that is not ruled out.
    """
    fails = 1 - level
    of_spread, of_side = -math.log(fails * TO_SPREAD), -math.log(fails * (1 - TO_SPREAD) / 2)
    lower, upper = (
        _farthest_by_spread(*ends, spread, n, of_spread, of_side) for ends in ((1 - high, 1 - low), (low, high))
    )
    return 1 - lower, upper


def _farthest_by_spread(
    low: FloatArray, high: FloatArray, spread: FloatArray, n: FloatArray, of_spread: float, of_side: float
) -> FloatArray:
    """The largest mean of the population that is not ruled out."""
    apart = np.append(0.0, np.geomspace(NEAREST, 1, CELLS))[:, np.newaxis]
    mean = np.minimum(high + apart, 1.0)
    nearer, farther = mean[:-1] - high, mean[1:]
    y = np.minimum(spread + (farther - low) ** 2, 1.0)
    known = np.maximum(n, 1.0)

    def excess(x: FloatArray, s: FloatArray) -> FloatArray:
        return known * _divergence(x, s) - of_spread

    most = _farthest(lambda s: excess(y, s), y, np.ones(y.shape))
    widest = np.where(
        mean[:-1] <= 0.5, np.where(farther >= 0.5, 0.25, farther * (1 - farther)), mean[:-1] * (1 - mean[:-1])
    )
    s = np.maximum(np.minimum(most, widest), 1e-300)
    share, whole = s / (s + farther**2), (s + farther * nearer) / (s + farther**2)
    possible = known * _divergence(np.minimum(whole, 1.0), share) <= of_side
    last = len(possible) - np.argmax(possible[::-1], axis=0)
    found = np.take_along_axis(mean, last[np.newaxis], axis=0)[0]
    return np.where(n > 0, found, 1.0)


def _divergence(x: FloatArray, p: FloatArray) -> FloatArray:
    """``KL(x, p)`` of two truth values."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one = np.where(x > 0, x * np.log(x / p), 0.0)
        other = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - p)), 0.0)
        return one + other


def expected_total(low: FloatArray, high: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of the expected total of a sample whose values lie in [0, 1] and whose size is not known.

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
    """A point at which a growing excess is 0 or a little more, between near and far; far if it stays below."""
    near, far = near.copy(), far.copy()
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        within = excess(middle) < 0
        near, far = np.where(within, middle, near), np.where(within, far, middle)
    return far
