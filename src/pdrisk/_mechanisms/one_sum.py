"""One-sum mechanism for means and sums of a public number of records: a noisy sum of distances from the lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, PLACES, PlaceGrid
from pdrisk._core.replaced import OfSize, WholeSumOfSize
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class OneSum(Mechanism):
    """A mean or sum from the noisy sum of places; within its range.

    Notes
    -----
    Neighbours have the same number n of records and differ in the value of one. Its place k, a whole number from 0 to
    S = `PLACES`, becomes another one, which moves the sum U of all places by S at most. So ``a = U + DLap(S/eps)``
    costs eps, and n nothing: the mean is ``lo + R a / (S n)``. The loss between data with k and with k' is
    ``eps |k - k'| / S``, so that by a record of place k is ``eps max(k, S - k) / S``: half of eps or more.

    An attacker who compares which of n people is missing has nothing to ask here: losses between worlds that lack a
    record each are not defined.
    """

    statistic: OfSize

    name: ClassVar[str] = "one_sum"
    noise: ClassVar[str] = "discrete Laplace noise on the sum of a public number of records"

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, OfSize) and not isinstance(statistic, WholeSumOfSize)

    def check(self) -> None:
        super(OneSum, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                "or more."
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return sampler(np.minimum(self.statistic.whole_places(summary), LARGEST_PLACES), PLACES, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self._answer(drawn.astype(np.float64))

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval by ``P(|DLap(b)| > t) <= exp(-t/b)`` for whole t, and half a place for each rounded record."""
        middle, reach = drawn.astype(np.float64), self._reach(level)
        return self._answer(middle - reach), self._answer(middle + reach)

    def law(self, drawn: Drawn) -> Law:
        size, width = self.statistic.size, self.statistic.global_sensitivity(self.universe)
        lo = self.universe.lo * self.statistic.times
        unit = Fraction(1, PLACES)
        return Law(1, unit, 1 / self.eps, (width,), (), lo, 0.0, float(size), rounding=size * width / PLACES)

    def widest_noise95(self, n: int | None) -> float:
        return self._reach(0.95) / PLACES * self.statistic.global_sensitivity(self.universe)

    @property
    def scale(self) -> float:
        return self.statistic.global_sensitivity(self.universe) / float(self.eps)

    def _reach(self, level: float) -> int:
        return math.ceil(-math.log1p(-level) * PLACES / float(self.eps)) + self.statistic.size

    def _answer(self, places: FloatArray) -> FloatArray:
        share = np.clip(places / (float(PLACES) * self.statistic.size), 0.0, 1.0)
        answer = (self.universe.lo + self.universe.width * share) * self.statistic.times
        return np.clip(answer, *self.statistic.value_range(self.universe))

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record at one bound or at the other

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + groups * on_lattice(float(self.eps) / PLACES))

    def loss(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        farthest = np.maximum(self._loss(summary.lowest[0]), self._loss(summary.highest[0]))
        return np.where(summary.n > 0, farthest, float(self.eps) / 2)

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        return self._loss(records)

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        return np.full(records.shape, np.nan), 1.0

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return np.full(summary.n.shape, np.nan)

    def _loss(self, records: FloatArray) -> FloatArray:
        places = PlaceGrid.of(self.universe).placed(records)
        return float(self.eps) * (np.maximum(places, PLACES - places) / PLACES)
