"""Noisy second moments: discrete Laplace noise on the sums that a sampling variance is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, PLACES
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.laws.laplace_sums import critical
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class NoisyMoments(Mechanism):
    """The sum of squares of deviations, from noisy sums of ``(v**2 + v)/2`` and ``(v**2 - v)/2``, or of ``v**2``.

    Notes
    -----
    A person moves the sums by `SecondMoments.change` together at most, whatever she does: with discrete Laplace noise
    of that over eps on each of them she loses eps.
    """

    statistic: SecondMoments

    name: ClassVar[str] = "noisy_moments"
    noise: ClassVar[str] = "discrete Laplace noise on the sums of deviations and of their squares"

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, SecondMoments)

    @property
    def draws(self) -> Needs:
        return Needs(places=True, place_squares=True)

    def check(self) -> None:
        super(NoisyMoments, self).check()
        if self.statistic.change / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} for the sampling error needs noise beyond 64-bit integers: ask with a larger "
                "eps, or a larger sampling=."
            )

    @property
    def noise_scale(self) -> float:
        """Scale of the noise of each sum, in units of v**2."""
        return float(self.statistic.change / self.eps) / PLACES

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        sums = np.clip(self.statistic.sums(summary), -LARGEST_PLACES, LARGEST_PLACES)
        return sampler(sums, self.statistic.change, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return np.maximum(drawn.astype(np.float64).sum(axis=0) / PLACES, 0.0) * self.universe.hi**2

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        weights = np.zeros((3, 1))
        weights[: len(drawn)] = self.noise_scale
        middle, reach = drawn.astype(np.float64).sum(axis=0) / PLACES, float(critical(weights, level)[0])
        low, high = (np.maximum(end, 0.0) * self.universe.hi**2 for end in (middle - reach, middle + reach))
        return low, high

    def law(self, drawn: Drawn) -> Law:
        unit = self.universe.hi**2
        scale = Fraction(self.statistic.change, PLACES) / self.eps
        return Law(len(drawn), Fraction(1, PLACES), scale, (unit,) * len(drawn), least=-math.inf)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + 2 * groups * on_lattice(float(self.eps) / self.statistic.change))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        return np.full(records.shape, np.nan), 1.0

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return np.full(summary.n.shape, 2 * float(self.eps))
