"""Sampling error of a simple random sample, for values within bounds: binomial tails (Hoeffding 1963)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pdrisk._core.risks.binomial import binomial_tail
from pdrisk._core.summary import FloatArray

HALVINGS = 44
TO_SPREAD = 0.1  # of how often an interval fails, for the spread of the values
CELLS = 1200  # of the distances that are tried, each 1.5 % longer than the one before
NEAREST = 1e-7


def expected_mean(low: FloatArray, high: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of a population's mean, for values in [0, 1].

    The ends are those of Clopper & Pearson (1934): so far away that a sample of truth values with this mean has x or
    less, or x or more, with probability ``(1 - level) / 2``. For a proportion that is exact. Of all values in [0, 1]
    with this mean, truth values spread the most and have the largest exponential moments, drawn with or without
    replacement (Hoeffding 1963, theorem 1 and section 6). That no others have heavier tails is checked, not proved.

    ``low, high``: shape (G,). Ends of the mean of a simple random sample, in [0, 1].
    ``n``: shape (G,). Size of the sample, or less.
    ``level``: how sure, in (0, 1).
    """
    fails, known = (1 - level) / 2, np.maximum(n, 0.0)

    def lower(x: FloatArray) -> FloatArray:
        return _farthest(lambda p: fails - binomial_tail(known * x, known, p), x, np.zeros(x.shape))

    return lower(low), 1 - lower(1 - high)


def expected_mean_by_spread(
    low: FloatArray, high: FloatArray, spread: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """`expected_mean`, where the variance of the sample is known: narrower if that is small.

    Let p be the mean of the population and s its variance, at most ``p (1 - p)``. (i) Squared distances from p lie in
    [0, 1], have the mean s in the population, and ``y = spread + (x - p)**2`` or less in the sample: so s is at most
    what `expected_mean` gives for a mean of y. (ii) Of all values that are at most p below p and have a variance of s,
    those at two places, p below it and s/p above, have means far below p the most often, as far as exponential moments
    tell (Hoeffding 1963, theorem 3): t or more below with the probability that ``s / (s + p**2)`` has of a share of
    ``(s + p t) / (s + p**2)`` or more, which grows with s and p and falls with t. Truth values are such values: for
    them both are exact. For distances between two of a series, t is that of the nearer one, p and s those of the
    farther one: so a mean that is not among those tried is not left out by mistake. The interval ends at the farthest
    that is not ruled out.

    ``low, high``: shape (G,)
    ``spread``: shape (G,). Variance of the sample over n, or more.
    ``n``: shape (G,)
    """
    fails = 1 - level
    of_spread, of_side = fails * TO_SPREAD, fails * (1 - TO_SPREAD) / 2
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

    most = 1 - _farthest(lambda s: of_spread - binomial_tail(known * (1 - y), known, s), 1 - y, np.zeros(y.shape))
    widest = np.where(
        mean[:-1] <= 0.5, np.where(farther >= 0.5, 0.25, farther * (1 - farther)), mean[:-1] * (1 - mean[:-1])
    )
    s = np.maximum(np.minimum(most, widest), 1e-300)
    share, whole = s / (s + farther**2), (s + farther * nearer) / (s + farther**2)
    possible = binomial_tail(known * np.minimum(whole, 1.0), known, share) >= of_side
    last = len(possible) - np.argmax(possible[::-1], axis=0)
    largest = np.take_along_axis(mean, last[np.newaxis], axis=0)[0]
    return np.where(n > 0, largest, 1.0)


def expected_total(low: FloatArray, high: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Interval of the expected total of a sample whose values lie in [0, 1] and whose size is not known.

    As the logarithm of each value's moment generating function is at most ``p (e^t - 1)``, a total with the mean m is x
    or more with probability ``exp(-(x ln(x/m) - x + m))`` at most, for x >= m, and x or less likewise: a Poisson
    variable's bound, whatever the number of values.

    ``low, high``: shape (G,). Ends of the total of the sample; 0 or more.
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
