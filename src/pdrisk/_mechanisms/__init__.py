"""Noise mechanisms: how a statistic is answered, and the only place that draws."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import Statistic
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.base import Drawn, Mechanism
from pdrisk._mechanisms.bernstein import Bernstein
from pdrisk._mechanisms.bernstein_products import BernsteinProducts
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.geometric import Geometric
from pdrisk._mechanisms.laplace import Laplace
from pdrisk._mechanisms.sampler import Sampler, discrete_laplace
from pdrisk._mechanisms.two_sums import TwoSums
from pdrisk.errors import ParameterError

__all__ = [
    "MECHANISMS",
    "WITH_INTERVAL",
    "Drawn",
    "Exponential",
    "Mechanism",
    "Sampler",
    "calibrated",
    "discrete_laplace",
    "mechanism_for",
]

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
    each.name: each
    for each in (Laplace, Geometric, TwoSums, Bernstein, BernsteinProducts, Exponential, ExponentialInterval)
}
ACCURATE: Final = (Geometric, TwoSums, Bernstein, BernsteinProducts, Exponential)  # before the paper's, in this order
WITH_INTERVAL: Final[dict[type[Mechanism], type[Mechanism]]] = {
    Exponential: ExponentialInterval
}  # the others have one anyway


def mechanism_for(statistic: Statistic, name: str) -> type[Mechanism]:
    """The mechanism that answers a statistic: the one named, or with ``"auto"`` the most accurate one.

    Raises
    ------
    ParameterError
        If there is none of this name, or it cannot answer this statistic.
    """
    if name == "auto":
        return next((each for each in ACCURATE if each.answers(statistic)), Laplace)
    if name not in MECHANISMS:
        raise ParameterError(f"unknown mechanism {shown(name)}; available: auto, {', '.join(MECHANISMS)}.")
    if not MECHANISMS[name].answers(statistic):
        able = [each.name for each in MECHANISMS.values() if each.answers(statistic)]
        raise ParameterError(
            f"mechanism {name!r} cannot answer {statistic.label}; available for it: auto, {', '.join(able)}."
        )
    return MECHANISMS[name]


def calibrated(name: str, statistic: Statistic, universe: Universe, eps: Fraction) -> Mechanism:
    """The mechanism of this name for a statistic within its bounds, at eps."""
    return MECHANISMS[name](statistic, universe, eps)
