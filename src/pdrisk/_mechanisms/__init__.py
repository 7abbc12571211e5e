"""Noise mechanisms: how a statistic is answered, and the only place that draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from pdrisk._core.foreign import shown
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import CorrAmong, PairStatistic
from pdrisk._core.replaced import OfSize
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean, Statistic, WholeStatistic
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.surveys.weighted import WeightedMoment, WeightedQuantile, WeightedSpread
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.approximate_quantiles import ApproximateQuantiles
from pdrisk._mechanisms.bernstein import Bernstein
from pdrisk._mechanisms.bernstein_products import BernsteinProducts
from pdrisk._mechanisms.clipped_sums import ClippedSums
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.geometric import Geometric
from pdrisk._mechanisms.k_norm_products import KNormProducts
from pdrisk._mechanisms.laplace import Laplace
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk._mechanisms.noisy_moments import NoisyMoments
from pdrisk._mechanisms.one_sum import OneSum
from pdrisk._mechanisms.two_stage import TwoStage
from pdrisk._mechanisms.two_sums import TwoSums
from pdrisk._mechanisms.weighted_exponential import WeightedExponential, WeightedExponentialInterval
from pdrisk._mechanisms.weighted_sums import WeightedBernstein, WeightedTwoSums
from pdrisk.errors import ParameterError

__all__ = [
    "MECHANISMS",
    "WITH_INTERVAL",
    "Bernstein",
    "ClippedSums",
    "Drawn",
    "Exponential",
    "Mechanism",
    "Sampler",
    "calibrated",
    "discrete_laplace",
    "mechanism_for",
]

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
    mechanism.name: mechanism
    for mechanism in (
        Laplace,
        Geometric,
        TwoSums,
        Bernstein,
        BernsteinProducts,
        KNormProducts,
        Exponential,
        ExponentialInterval,
        OneSum,
        TwoStage,
        ApproximateQuantiles,
        ClippedSums,
        WeightedTwoSums,
        WeightedBernstein,
        WeightedExponential,
        WeightedExponentialInterval,
        NoisyMoments,
    )
}
ACCURATE: Final[tuple[tuple[Any, type[Mechanism]], ...]] = (
    (WholeStatistic, Geometric),
    (OfSize, OneSum),
    (Mean, TwoSums),
    (Var, Bernstein),
    (CorrAmong, KNormProducts),
    (PairStatistic, BernsteinProducts),
    (WeightedSpread, WeightedBernstein),
    (WeightedMoment, WeightedTwoSums),
    (WeightedQuantile, WeightedExponential),
    (SecondMoments, NoisyMoments),
    (Quantile | Min | Max, Exponential),
)
WITH_INTERVAL: Final[dict[type[Mechanism], type[Mechanism]]] = {  # the others have one anyway
    Exponential: ExponentialInterval,
    WeightedExponential: WeightedExponentialInterval,
}


def mechanism_for(statistic: Statistic, name: str, *, joint: bool = False) -> type[Mechanism]:
    """The mechanism that answers a statistic: the one named, or with ``"auto"`` the most accurate one.

    ``joint``: whether it may be one that answers this statistic only beside others of the same records.
    """
    if name == "auto":
        return next((mechanism for kind, mechanism in ACCURATE if isinstance(statistic, kind)), Laplace)
    if name not in MECHANISMS:
        raise ParameterError(f"unknown mechanism {shown(name)}; available: auto, {', '.join(MECHANISMS)}.")
    if not MECHANISMS[name].answers(statistic) and not (joint and MECHANISMS[name].joins(statistic)):
        able = [mechanism.name for mechanism in MECHANISMS.values() if mechanism.answers(statistic)]
        raise ParameterError(
            f"mechanism {name!r} cannot answer {statistic.label}; available for it: auto, {', '.join(able)}."
        )
    return MECHANISMS[name]


def calibrated(
    name: str, statistic: Statistic, universe: Universe, eps: Fraction, together: Sequence[Statistic] = ()
) -> Mechanism:
    """The mechanism of this name for a statistic within its bounds, at eps, drawn together with others."""
    return MECHANISMS[name].of(statistic, universe, eps, together)
