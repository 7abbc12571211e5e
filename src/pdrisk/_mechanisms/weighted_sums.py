"""Weighted sums for surveys: the two-sums and Bernstein mechanisms, where a record adds its weight to noisy sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, PLACES, PlaceGrid
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Mean, Statistic, Sum
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.surveys.weighted import (
    WeightedCount,
    WeightedMean,
    WeightedMoment,
    WeightedSpread,
    WeightedSum,
    largest_weight,
)
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms.bernstein import Bernstein
from pdrisk._mechanisms.bernstein_products import ROUNDED, total_variation
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.laws.laplace_sums import critical
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk._mechanisms.two_sums import TwoSums
from pdrisk.errors import ParameterError

ROUNDING = 2.0**-20  # of the range of answers: what rounding may move, if weights are a thousandth of W on average


@dataclass(frozen=True, slots=True)
class WeightedSums(Mechanism):
    """A weighted statistic from noisy weighted sums of the Bernstein polynomials of the records' places.

    Notes
    -----
    A record of place k and weight Q, whole numbers from 0 to S = `PLACES`, divides Q among the sums of the polynomials
    of its degree, in proportion to what they are at k (`products_of_places`). So it adds Q to all sums together, and
    with noise ``DLap(S/eps)`` on each of them the person loses ``eps Q / S``: eps times the weight over the largest.
    The sums are those of the unweighted mechanism in units of the largest weight, and so are answers and intervals.

    Between the worlds without one record or another, of weights q <= q', the sums move by at most
    ``(q' - q) + 2 q t``, t the total variation between the polynomials at both places: see `BernsteinProducts`.
    """

    statistic: WeightedMoment
    universe: Rectangle

    parts: ClassVar[int]
    order: ClassVar[int]  # of the sums, 1 or -1: that of the unweighted mechanism

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return statistic.needs | Needs(products=frozenset({(cls.parts - 1, 0)}), ends=True)

    @property
    def draws(self) -> Needs:
        return Needs(products=frozenset({(self.parts - 1, 0)}))

    def check(self) -> None:
        super(WeightedSums, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                "or more."
            )
        if not isinstance(self.statistic, WeightedCount):
            self.plain.check()  # whose bounds are those of the products of values and weights

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return cls.joins(statistic)

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        sums = summary.products[(self.parts - 1, 0)][:: self.order]
        return sampler(np.minimum(sums, LARGEST_PLACES), PLACES, self.eps)  # which brings no two farther apart

    @property
    @abstractmethod
    def plain(self) -> Mechanism:
        """The unweighted mechanism that makes an answer of these sums."""

    def value(self, drawn: Drawn) -> NDArray[Any]:
        if isinstance(self.statistic, WeightedCount):
            weights = drawn.astype(np.float64).sum(axis=0) / PLACES
            return np.maximum(weights * largest_weight(self.universe), 0.0)
        return self.plain.value(drawn)

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        if isinstance(self.statistic, WeightedCount):
            exact = drawn.astype(np.float64).sum(axis=0) / PLACES * largest_weight(self.universe)
            reach = self._reach_of_count(level) + np.abs(exact) * ROUNDING
            return np.maximum(exact - reach, 0.0), np.maximum(exact + reach, 0.0)
        low, high = self.plain.interval(drawn, level)
        least, most = self.statistic.value_range(self.universe)
        if math.isinf(most - least):
            return low, high
        more = (most - least) * ROUNDING
        return np.maximum(low - more, least), np.minimum(high + more, most)

    def law(self, drawn: Drawn) -> Law | None:
        if isinstance(self.statistic, WeightedCount):
            most = largest_weight(self.universe)
            return Law(self.parts, Fraction(1, PLACES), 1 / self.eps, (most,) * self.parts, rounding=most * ROUNDING)
        return self.plain.law(drawn)

    def widest_noise95(self, n: int | None) -> float | None:
        if isinstance(self.statistic, WeightedCount):
            return self._reach_of_count(0.95)
        return self.plain.widest_noise95(n) if isinstance(self.statistic, WeightedSum) else None

    def least_records(self, drawn: Drawn, level: float) -> FloatArray | None:
        return self.plain.least_records(drawn, level)  # each of them has at most the largest weight

    def _reach_of_count(self, level: float) -> float:
        weights = np.zeros((3, 1))
        weights[: self.parts] = largest_weight(self.universe)
        return float(critical(weights, level)[0]) / float(self.eps)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record at a bound with the largest weight; others move sums by less

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + self.parts * groups * on_lattice(float(self.eps) / PLACES))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        """As for every mechanism, for records with these weights."""
        loss: FloatArray = PlaceGrid.of(self.universe.other).placed(records) * (float(self.eps) / PLACES)
        return loss

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        raise ParameterError(f"the exact identifiability of a {self.statistic.label} is not supported.")

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.other is not None
        ends = summary.other
        assert ends.lowest is not None and ends.highest is not None
        least, most = (PlaceGrid.of(self.universe.other).placed(end[0]) / PLACES for end in (ends.lowest, ends.highest))
        apart = total_variation(summary, self.universe, self.parts - 1)
        largest = np.maximum(2 * most * apart, most - least + 2 * least * apart) + ROUNDED
        return np.where(summary.n > 0, 2 * float(self.eps) * np.minimum(largest / 2, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class WeightedTwoSums(WeightedSums):
    """A weighted mean, sum or number from two noisy sums: `TwoSums`, where a record counts with its weight."""

    name: ClassVar[str] = "weighted_two_sums"
    noise: ClassVar[str] = "discrete Laplace noise of scale W/eps on two sums to which each record adds its weight"
    parts: ClassVar[int] = 2
    order: ClassVar[int] = -1

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, WeightedMean | WeightedSum | WeightedCount)

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return cls.answers(statistic)

    @property
    def plain(self) -> Mechanism:
        return TwoSums(*_plain(self.statistic, self.universe), self.eps)


@dataclass(frozen=True, slots=True)
class WeightedBernstein(WeightedSums):
    """A weighted variance, mean, sum or number from three noisy sums: `Bernstein`, with weights."""

    name: ClassVar[str] = "weighted_bernstein"
    noise: ClassVar[str] = "discrete Laplace noise of scale W/eps on three sums to which each record adds its weight"
    parts: ClassVar[int] = 3
    order: ClassVar[int] = 1

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, WeightedSpread)

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, WeightedMoment)

    @property
    def plain(self) -> Mechanism:
        return Bernstein(*_plain(self.statistic, self.universe), self.eps)


def _plain(statistic: WeightedMoment, universe: Rectangle) -> tuple[Statistic, Universe]:
    """The unweighted statistic of the sums, and what its records lie within, in units of the largest weight."""
    if isinstance(statistic, WeightedSpread):
        return statistic.plain, Universe(universe.lo, universe.hi)
    if isinstance(statistic, WeightedMean):
        return Mean(), Universe(universe.lo, universe.hi)
    most = largest_weight(universe)
    return Sum(), Universe(universe.lo * most, universe.hi * most)
