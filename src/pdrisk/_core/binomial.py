"""Clopper-Pearson interval of a probability, from how often something happened."""

from __future__ import annotations

import math
import numbers
from typing import Final

from pdrisk._core.foreign import shown
from pdrisk._core.worlds import positive
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["LEVEL", "clopper_pearson"]

LEVEL: Final = 0.999
HALVINGS = 200  # of [0, 1]: to the last float of any probability that can be told from 0
MOST_TRIALS = 10**9
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
