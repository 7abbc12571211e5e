"""Binomial tails, and the Clopper-Pearson interval of a probability, from how often something happened."""

from __future__ import annotations

import math
import numbers
from typing import Final

import numpy as np

from pdrisk._core.foreign import shown
from pdrisk._core.risks.worlds import positive
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

LEVEL: Final = 0.999
TINY = 1e-300
HALVINGS = 200  # of [0, 1]: to the last float of any probability that can be told from 0
MOST_TRIALS = 10**9
SERIES = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680  # of the logarithm of the gamma function, in 1/z, 1/z**3, ...
SHIFT = 8  # from which on these terms give it to 12 digits
TERMS = 100_000  # of the continued fraction, which needs some sqrt(trials)


def clopper_pearson(times: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Clopper-Pearson interval: exact confidence interval of a probability p, from ``times`` successes in ``trials``.

    Parameters
    ----------
    times, trials : int
        ``0 <= times <= trials``, trials at least 1; the trials are independent.
    level : float
        Confidence level, in (0, 1): whatever p is, the interval holds it with at least this probability.

    Returns
    -------
    (float, float)
        Rounded outwards.

    Raises
    ------
    ParameterError, ColumnTypeError
        If an argument is out of its range or of another type.

    Notes
    -----
    The ends are where as many successes, or more (fewer), have probability ``(1 - level) / 2`` (Clopper & Pearson
    1934). ``P(X >= k) = I_p(k, n - k + 1)``, the regularised incomplete beta function.

    Examples
    --------
    >>> [round(end, 4) for end in clopper_pearson(8, 10, 0.95)]
    [0.4439, 0.9748]
    """
    for name, value in (("times", times), ("trials", trials)):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise ColumnTypeError(f"{name} is a whole number, not {shown(value)}.")
    if not 0 <= times <= trials or not 1 <= trials <= MOST_TRIALS:
        raise ParameterError(
            f"trials must be from 1 to {MOST_TRIALS:,} and times from 0 to trials, but are {shown(trials)} and "
            f"{shown(times)}."
        )
    if (sure := positive("level", level)) >= 1:
        raise ParameterError(f"level must be a probability above 0 and below 1, but is {sure:g}.")
    beyond = (1 - sure) / 2
    low = 0.0 if times == 0 else _crossing(times, trials - times + 1, beyond)[0]
    high = 1.0 if times == trials else _crossing(times + 1, trials - times, 1 - beyond, upper=beyond)[1]
    return low, high


def _crossing(a: int, b: int, share: float, upper: float | None = None) -> tuple[float, float]:
    """Two neighbouring floats between which ``I_p(a, b)``, or ``1 - I``, crosses a share."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        below = _beta(middle, a, b) < share if upper is None else _beta(1 - middle, b, a) > upper
        low, high = (middle, high) if below else (low, middle)
    return low, high


def _beta(x: float, a: int, b: int) -> float:
    """``I_x(a, b)`` by Lentz's continued fraction (DLMF 8.17.22), on the side where it converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    tiny = 1e-300
    numerator, denominator, fraction = 1.0, 1 / _kept(1 - (a + b) * x / (a + 1), tiny), 0.0
    fraction = denominator
    for m in range(1, TERMS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / _kept(1 + part * denominator, tiny)
            numerator = _kept(1 + part / numerator, tiny)
            step = denominator * numerator
            fraction *= step
        if abs(step - 1) < 1e-15:
            break
    return math.exp(front) * fraction / a


def _kept(value: float, least: float) -> float:
    """A divisor that is not 0."""
    return value if abs(value) > least else least


def binomial_tail(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Probability of k successes or more in n trials, ``I_p(k, n - k + 1)``, for numbers that need not be whole.

    It falls with k and grows with p; between two whole numbers it lies between their probabilities. Arrays of one
    shape, ``0 <= k <= n``.
    """
    k, n, p = np.broadcast_arrays(k, n, p)
    a, b, mirrored = np.maximum(k, TINY), n - k + 1, p * (n + 3) > k + 1
    x, a, b = np.where(mirrored, 1 - p, p), np.where(mirrored, b, a), np.where(mirrored, a, b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        front = a * np.log(x) + b * np.log1p(-x) + _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
        beta = np.exp(front) * _fractions(x, a, b) / a
    beta = np.where(x <= 0, 0.0, np.minimum(beta, 1.0))
    return np.where(k <= 0, 1.0, np.where(mirrored, 1 - beta, beta))


def _fractions(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """The continued fraction of `_beta` for arrays, until all of them have 12 digits."""
    numerator = np.ones(x.shape)
    denominator = 1 / (1 - (a + b) * x / (a + 1))
    fraction = denominator
    for m in range(1, TERMS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / (1 + part * denominator)
            numerator = 1 + part / numerator
            step = denominator * numerator
            fraction = fraction * step
        if not (np.abs(step - 1) > 1e-12).any():
            break
    return fraction


def _log_gamma(z: FloatArray) -> FloatArray:
    """Logarithm of the gamma function of positive numbers, by Stirling's series beyond `SHIFT`."""
    far = z + SHIFT
    product = np.ones(z.shape)
    for step in range(SHIFT):
        product = product * ((z + step) / far)
    series = sum(term / far ** (2 * at + 1) for at, term in enumerate(SERIES))
    return (far - 0.5 - SHIFT) * np.log(far) - far + 0.5 * math.log(2 * math.pi) + series - np.log(product)
