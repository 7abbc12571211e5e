"""Answers and intervals of margins: of sums that least squares estimates from several draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.margins.components import Axes
from pdrisk._core.margins.least_squares import Weight
from pdrisk._core.summary import FloatArray
from pdrisk._mechanisms.bernstein import Bernstein
from pdrisk._mechanisms.contract.base import Mechanism
from pdrisk._mechanisms.laplace import Laplace
from pdrisk._mechanisms.laws.fieller import CELLS, mean_interval, share_interval
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk._mechanisms.laws.law import Law

SLIGHT = 1e-6  # share of the variance that weights below count alike for


def law_of(mechanism: Mechanism) -> Law:
    """Law of the numbers that a mechanism draws, which depends on none of them."""
    law = mechanism.law(np.empty((1, 0), dtype=np.int64))
    assert law is not None
    return law


@dataclass(frozen=True, slots=True)
class EstimateNoise:
    """Noise of estimates: each a sum of independent Laplace variables, of the same scales for every number."""

    scales: FloatArray  # shape (m,)
    times: FloatArray  # how many variables have each scale; shape (m,)

    @classmethod
    def of(cls, weights: Iterable[Weight], scales: Mapping[Axes, float | Sequence[float]]) -> EstimateNoise:
        """The noise of a cell of an estimate.

        ``scales`` are those of the measured margins; several where a number is the sum of several with noise.
        """
        listed = [(weight, scale) for weight in weights for scale in np.atleast_1d(scales[weight.axes]).tolist()]
        size = np.abs([weight.weight * scale for weight, scale in listed])
        return cls(*_few(size, np.array([float(weight.cells) for weight, _ in listed])))

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return math.sqrt(2 * float(self.times @ self.scales**2))

    def bound(self, coefficients: FloatArray, level: float) -> FloatArray:
        """Bound that the noise of a weighted sum of several numbers keeps with probability ``level``.

        ``coefficients``: shape (k, ...). Of the numbers, whose noises are independent.
        Returns: shape (...)
        """
        k = len(coefficients)
        scales = self.scales.reshape(1, -1, *[1] * (coefficients.ndim - 1)) * coefficients[:, np.newaxis]
        together = scales.reshape(k * len(self.scales), *coefficients.shape[1:])
        return critical_of_sum(together, level, np.tile(self.times, k))


def _few(scales: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The scales, those that hardly count put together as that many of one scale with the same variance."""
    variances = times * scales**2
    slight = variances <= SLIGHT * variances.sum()
    many = times[slight].sum()
    if many < 2:
        return scales, times
    one = math.sqrt(variances[slight].sum() / many)
    return np.append(scales[~slight], one), np.append(times[~slight], many)


def estimate(mechanism: Mechanism, numbers: FloatArray) -> NDArray[Any]:
    """Answers that estimated numbers give, float64 of shape (G,); sums as they are, though they be impossible ones.

    So they add up.

    ``numbers``: shape (k, G). In the unit of its `Law`, in the order in which they are drawn.
    """
    law = law_of(mechanism)
    if law.top and not law.bottom:
        return np.array(law.top) @ numbers
    return mechanism.value(numbers / float(law.unit))


def estimate_interval(
    mechanism: Mechanism, numbers: FloatArray, noise: EstimateNoise, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends between which the exact answers lie, within the range of possible answers.

    ``mechanism, numbers``: as for `estimate`.
    ``noise``: of each of the numbers.
    """
    law, value = law_of(mechanism), estimate(mechanism, numbers)
    lowest, highest = mechanism.statistic.value_range(mechanism.universe)
    if not law.top:  # a variance
        assert isinstance(mechanism, Bernstein)
        drawn = numbers / float(law.unit)
        return mechanism.spread_interval(drawn, level, noise.bound, noise.deviation / math.sqrt(2))
    if law.bottom:
        low, high = _mean_interval(mechanism, law, numbers, noise, level)
        return np.clip(np.minimum(low, value), lowest, highest), np.clip(np.maximum(high, value), lowest, highest)
    records = np.abs(numbers.sum(axis=0)) if law.numbers > 1 else np.ones(numbers.shape[1:])
    reach = noise.bound(np.array(law.top)[:, np.newaxis], level) + law.rounding * records
    low, high = value - reach, value + reach
    if isinstance(mechanism, Laplace):  # whose answers are shown as they are
        return low, high
    if law.whole:
        low, high = np.ceil(low), np.floor(high)
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)


def _mean_interval(
    mechanism: Mechanism, law: Law, numbers: FloatArray, noise: EstimateNoise, level: float
) -> tuple[FloatArray, FloatArray]:
    """Fieller's intervals of means, in the unit of the answer."""
    lo, width = mechanism.universe.lo, mechanism.universe.width
    places = (np.array(law.top) - lo) / width  # from 0 to 1, of a record that counts in one number alone
    bounds = noise.bound(places[:, np.newaxis] - np.linspace(0.0, 1.0, CELLS + 1), level)
    above = places @ numbers
    low, high = mean_interval(above, numbers.sum(axis=0) - above, 1.0, bounds)
    return lo + width * low - law.rounding, lo + width * high + law.rounding


def estimated_shares(
    mechanism: Mechanism, parts: FloatArray, wholes: FloatArray, weights: Sequence[Weight], scales: Mapping[Axes, float]
) -> Callable[[float], tuple[FloatArray, FloatArray]]:
    """Intervals, for a level, of the shares that counts or sums have of larger ones, both from one set of draws.

    Fieller's: all r in [0, 1] for which part - r whole is within its likely noise, which is convex in r.

    ``mechanism``: of a count or sum.
    ``parts, wholes``: shape (G,)
    ``weights``: of the measured cells in a part, and in its whole.
    """
    shares = np.linspace(0.0, 1.0, CELLS + 1)
    size = np.array([scales[weight.axes] for weight in weights])
    part_scales, others = (
        np.array([getattr(weight, name) for weight in weights]) * size for name in ("weight", "within")
    )
    form = np.abs(part_scales[:, np.newaxis] - others[:, np.newaxis] * shares)
    every = np.abs(law_of(mechanism).top)[:, np.newaxis, np.newaxis] * form
    times = np.tile([float(weight.cells) for weight in weights], len(every))

    def interval(level: float) -> tuple[FloatArray, FloatArray]:
        bounds = critical_of_sum(every.reshape(-1, len(shares)), level, times)
        return share_interval(parts, wholes - parts, bounds)

    return interval
