"""Geometric mechanism: discrete Laplace noise on whole numbers (Ghosh, Roughgarden & Sundararajan 2009)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_STEPS
from pdrisk._core.risks.gaussian_dp import mu_of_geometric, mu_of_records_apart, squared
from pdrisk._core.statistics import Count, Histogram, Statistic, WholeStatistic, WholeSum
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._mechanisms.contract.base import ONE, Drawn, Mechanism, at_most
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Geometric(Mechanism):
    """Whole numbers plus whole noise of scale d/eps, d the largest change one record can make; within their range.

    Notes
    -----
    ``P(noise = k)`` is proportional to ``a**|k|`` with ``a = exp(-eps/d)``, so the ratio between neighbours, which
    differ by at most d, is at most ``exp(eps)``. Moving the noisy number into the public range of answers afterwards
    costs nothing. ``P(|noise| > t) = 2 a**(t+1) / (1 + a)`` gives the interval.
    """

    statistic: WholeStatistic

    name: ClassVar[str] = "geometric"
    noise: ClassVar[str] = "discrete Laplace noise"

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, WholeStatistic)

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return type(statistic) in (Count, Histogram, WholeSum)

    def check(self) -> None:
        super(Geometric, self).check()
        if self._change / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps="
                f"{self._change / WIDEST_SCALE:.2g} or more."
            )

    @property
    def draws(self) -> Needs:
        return replace(self.reads, ends=False)

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        exact = np.minimum(np.maximum(self.statistic.whole(summary), -LARGEST_STEPS), LARGEST_STEPS)
        return sampler(exact, self._change, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self._inside(drawn)

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        reach = self._reach(level)
        return self._inside(drawn - reach).astype(np.float64), self._inside(drawn + reach).astype(np.float64)

    def law(self, drawn: Drawn) -> Law:
        least, most = self.statistic.value_range(self.universe)
        scale = self._change / self.eps
        return Law(1, Fraction(1), scale, top=(1.0,), least=least, most=most, whole=True)

    def widest_noise95(self, n: int | None) -> float:
        return float(self._reach(0.95))

    @property
    def scale(self) -> float:
        return self._change / float(self.eps)

    def mu2_of(self, weight: Fraction = ONE, groups: int = 1, *, apart: bool = False) -> Fraction:
        eps, records = float(self.eps_of(weight)), math.ceil(weight)
        if apart or isinstance(self.statistic, Histogram):  # records of one group may lie in any bins, too
            return squared(mu_of_records_apart(eps, self._change, records))
        return groups * squared(mu_of_geometric(eps / groups, math.ceil(self._change * weight / groups)))

    def _success(self, eps: float) -> float:
        d = max(math.ceil(eps * self.scale * (1 - 2.0**-40)), 1)
        # Where the middle of 0 and d lies between whole numbers, none is equally likely under both.
        x = eps / (2 * d)  # exp(-x) / (1 + exp(-2 * x)) is 1 / (2 cosh(x)), but cosh overflows
        return 1 - (math.exp(-eps / 2 - x) / (1 + math.exp(-2 * x)) if d % 2 else math.exp(-eps / 2) / 2)

    def loss(self, summary: Summary) -> FloatArray:
        local = self.statistic.local_sensitivity(summary, self.universe)
        return at_most(float(self.eps) * (local / self._change), float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        moved = self.statistic.influence(records, summary, self.universe)
        return at_most(np.multiply(moved, float(self.eps) / self._change), float(self.eps))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        return self.statistic.leave_one_out(records, summary, self.universe), self.scale

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return float(self.eps) * (self.statistic.world_range(summary, self.universe) / self._change)

    def _reach(self, level: float) -> int:
        """The smallest t with ``2 a**(t+1) / (1 + a) <= 1 - level``."""
        rate = float(self.eps) / self._change
        reach = math.ceil((math.log(2) - math.log1p(math.exp(-rate)) - math.log1p(-level)) / rate - 1)
        return max(reach, 0)

    @property
    def _change(self) -> int:
        return int(self.statistic.global_sensitivity(self.universe))

    def _inside(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = self.statistic.value_range(self.universe)
        if low > -math.inf:
            numbers = np.maximum(numbers, np.int64(low))
        return np.minimum(numbers, np.int64(high)) if high < math.inf else numbers
