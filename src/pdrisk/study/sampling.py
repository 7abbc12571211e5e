"""Sampling error of exact statistics: how far they may be from those of the population, to compare noise with."""

from __future__ import annotations

import math

import numpy as np

from pdrisk._core.order import Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.summary import FloatArray

NORMAL = 1.959963984540054  # 97.5 % of the standard normal distribution


def sampling95(statistic: Statistic, values: FloatArray) -> float:
    """Half-width of the 95 % sampling interval of a statistic, if its values are a simple random sample.

    Of a large sample. Of a mean ``1.96 s / sqrt(n)``. Of a quantile, free of any distribution, half the distance of
    the records at the ranks ``q n ± 1.96 sqrt(n q (1 - q))``, as each value lies below the quantile with probability
    q. Of a variance ``1.96 sqrt((m4 - m2²) / n)``, with the central moments; of its root, by the delta method, that
    over 2 s.

    ``values``: shape (n,). Ascending.
    Returns: in the unit of the statistic; NaN of fewer than two values, and of minimum, maximum, count and sum, of
        which the sample alone tells none.

    Examples
    --------
    >>> round(sampling95(Mean(), np.arange(100.0)), 3)
    5.686
    """
    n = len(values)
    if n < 2:
        return math.nan
    if isinstance(statistic, Mean):
        return NORMAL * float(np.std(values, ddof=1)) / math.sqrt(n)
    if isinstance(statistic, Quantile) and 0 < statistic.q < 1:
        half = NORMAL * math.sqrt(n * statistic.q * (1 - statistic.q))
        low, high = (int(np.clip(statistic.q * n + side, 0, n - 1)) for side in (-half - 1, half))
        return float(values[high] - values[low]) / 2
    if isinstance(statistic, Var):
        away = values - values.mean()
        largest = float(np.abs(away).max())
        if not largest:
            return 0.0
        away /= largest  # whose fourth powers are then within floats, whatever the unit
        second, fourth = float(np.mean(away**2)), float(np.mean(away**4))
        error = NORMAL * math.sqrt(max(fourth - second**2, 0.0) / n)
        return error / (2 * math.sqrt(second)) * largest if isinstance(statistic, Std) else error * largest**2
    return math.nan


def weighted_sampling95(statistic: Statistic, values: FloatArray, weights: FloatArray) -> float:
    """Half-width of the 95 % sampling interval of a weighted statistic, if people were drawn independently.

    By Taylor linearisation, with replacement and without strata or clusters, as R's ``survey`` does it: of a weighted
    mean the standard error is ``sqrt(n / (n - 1) sum(w² (x - mean)²)) / sum(w)``. A variance is the weighted mean of
    the squared distances. Of a quantile, half the distance of the weighted quantiles ``q ± 1.96 se``, with the error of
    the weighted share of values up to it (Woodruff 1952).

    ``statistic``: the same without weights.
    ``values, weights``: shape (n,). The values ascending, the weights trimmed and at least 0.
    Returns: as `sampling95`; NaN without any weight, too.

    Examples
    --------
    >>> round(weighted_sampling95(Mean(), np.arange(100.0), np.full(100, 3.0)), 3)
    5.686
    """
    n, total = len(values), float(weights.sum())
    if n < 2 or not total > 0:
        return math.nan
    share = weights / total

    def error(variable: FloatArray, mean: float) -> float:
        return NORMAL * math.sqrt(n / (n - 1) * float(np.sum((share * (variable - mean)) ** 2)))

    if isinstance(statistic, Quantile) and 0 < statistic.q < 1:
        below = np.cumsum(share)

        def quantile(q: float) -> float:
            return float(values[min(int(np.searchsorted(below, q)), n - 1)])

        half = error((values <= quantile(statistic.q)).astype(np.float64), statistic.q)
        return (quantile(statistic.q + half) - quantile(statistic.q - half)) / 2
    mean = float(np.sum(share * values))
    if isinstance(statistic, Mean):
        return error(values, mean)
    if isinstance(statistic, Var):
        largest = float(np.abs(values - mean).max())
        if not largest:
            return 0.0
        squares = ((values - mean) / largest) ** 2
        var = float(np.sum(share * squares))
        relative = error(squares, var)
        return relative / (2 * math.sqrt(var)) * largest if isinstance(statistic, Std) else relative * largest**2
    return math.nan
