"""Trade-off curves: the share of missed detections that no test undercuts at each share of false alarms.

``T(a)``: of tests for a person that raise a false alarm with probability a, none misses the person less often than
that. The lower the curve, the more an answer tells; ``1 - a`` is that of a coin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pdrisk._core.risks.gaussian_dp import normal_cdf, upper_quantile
from pdrisk._core.summary import FloatArray

FINE: Final = 20_001


@dataclass(frozen=True, slots=True)
class Curve:
    """Trade-off curve."""

    missed: Callable[[FloatArray], FloatArray]  # of false alarms in [0, 1], shape (k,)
    kinks: tuple[float, ...] = ()  # where it bends: between neighbours of a polygon it is straight

    @property
    def success(self) -> float:
        """How often the best attacker with a coin's prior is right, as far as places on a fine grid tell."""
        alarms = np.unique(np.concatenate([np.linspace(0, 1, FINE), self.kinks]))
        return float((1 - (alarms + self.missed(alarms)).min() / 2).max())


def of_gaussian(mu: float) -> Curve:
    """G: of one number drawn from N(0, 1) or N(mu, 1), ``Phi(z(a) - mu)``."""

    def missed(alarms: FloatArray) -> FloatArray:
        inside = (alarms > 0) & (alarms < 1)
        chances = np.where(alarms <= 0, 1.0, 0.0)
        chances[inside] = [normal_cdf(upper_quantile(float(alarm)) - mu) for alarm in alarms[inside]]
        return chances

    return Curve(missed, (normal_cdf(-mu / 2),))


def of_pure(eps: float) -> Curve:
    """Of randomised response, below which no answer with a privacy loss of eps falls; that of one noisy count."""
    return _polygon([(_lie(eps), _lie(eps))])


def of_laplace(eps: float) -> Curve:
    """Of a number with Laplace noise that a person moves by eps times its scale."""
    low = float(np.exp(-eps))

    def missed(alarms: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            middle = np.where(alarms > 0.5, low * (1 - alarms), low / (4 * alarms))
            return np.where(alarms < low / 2, 1 - alarms / low if low else 0.0, middle)

    return Curve(missed, (low / 2, float(np.sqrt(low)) / 2, 0.5))


def of_geometric(eps: float, change: int) -> Curve:
    """Of a whole number with discrete Laplace noise of scale ``change / eps`` that a person moves by ``change``."""
    rate = eps / change
    steps = np.arange(change, 0, -1) * rate
    return _polygon(
        list(zip(*(np.exp(-exponents) / (1 + np.exp(-rate)) for exponents in (steps, steps[::-1])), strict=True))
    )


def of_exponential(eps: float) -> Curve:
    """Below which no choice by the exponential mechanism falls, whose log-ratios lie in a range as long as eps."""

    def missed(alarms: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray((1 - alarms) / (1 + np.expm1(eps) * alarms))

    return Curve(missed, (_lie(eps / 2),))


def of_coin(truth: float, lie: float) -> Curve:
    """Of a randomised answer, given with probability ``truth`` if it is the true one, else with ``lie``."""
    return _polygon([(lie, 1 - truth), (1 - truth, lie)])


def with_delta(curve: Curve, delta: float) -> Curve:
    """The curve of answers that tell all with probability ``delta``, and else what has this curve."""
    return Curve(lambda alarms: (1 - delta) * curve.missed(alarms), curve.kinks)


def of_two_steps(curve: Curve) -> Curve:
    """The curve of worlds two neighbours apart, as with one record replaced (Dong, Roth & Su 2022)."""
    more = curve.missed(1 - np.array(curve.kinks))  # where the inner one bends: curves are their own inverse
    return Curve(lambda alarms: curve.missed(1 - curve.missed(alarms)), (*curve.kinks, *more.tolist()))


def _lie(eps: float) -> float:
    """How often a randomised answer of two is not the true one."""
    return math.exp(-eps) / (1 + math.exp(-eps))


def _polygon(vertices: list[tuple[float, float]]) -> Curve:
    """The polygon from (0, 1) over these to (1, 0)."""
    ends = zip((0.0, 1.0), *sorted(vertices), (1.0, 0.0), strict=True)
    across, down = (np.array(end, dtype=np.float64) for end in ends)
    return Curve(lambda alarms: np.interp(alarms, across, down), tuple(across[1:-1].tolist()))


def sure_of(mu: float, belief: float) -> float:
    """Probability, at most, that answers within ``G_mu`` make an attacker with a coin's prior this sure, or surer.

    Rightly or wrongly. At most ``min over y of E max(B - y, 0) / (belief - y)``, B the belief in the likelier world: B
    of such answers is less spread than that of one number drawn from N(0, 1) or N(mu, 1), whose log-odds are N(mu**2 /
    2, mu**2) in the true world (Blackwell; Markov).

    Examples
    --------
    >>> round(sure_of(1.348980, 0.95), 4)
    0.1422
    """
    steps = np.linspace(-10, 10, FINE)
    weights = np.exp(-(steps**2) / 2)
    weights /= weights.sum()
    held = 1 / (1 + np.exp(-np.abs(mu * steps + mu**2 / 2)))
    above = np.linspace(0.5, belief, 400, endpoint=False)
    excess = np.array([(weights * np.maximum(held - level, 0)).sum() for level in above])
    return min(float((excess / (belief - above)).min()), 1.0)
