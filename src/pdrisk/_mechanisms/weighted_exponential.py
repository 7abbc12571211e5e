"""Exponential mechanism for weighted quantiles: a record counts like as many as its weight has steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import PlaceGrid
from pdrisk._core.order import Quantile
from pdrisk._core.products import WEIGHT_BITS, weight_steps
from pdrisk._core.risks.gaussian_dp import mu_of_exponential
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.surveys.weighted import WeightedQuantile
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.error import largest_error
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk.errors import ParameterError

STEPS: Final = 2**WEIGHT_BITS  # of the largest weight


@dataclass(frozen=True, slots=True)
class WeightedExponential(Mechanism):
    """One of the public points between the bounds, chosen as `Exponential` does, where records count with weights.

    Notes
    -----
    A weight w is rounded to one of `STEPS` steps of the largest, q, and its record stands for q records at its point.
    So the mechanism is `Exponential` at eps / `STEPS` about these: a person with q of them moves all scores by numbers
    within q spans of each other, and loses ``eps q / STEPS`` at most (the range of scores adds up over the steps).
    A weight below half a step counts nothing.
    """

    statistic: WeightedQuantile
    universe: Rectangle

    name: ClassVar[str] = "weighted_exponential"
    noise: ClassVar[str] = "choice among public points by exponential weights of their weighted ranks"

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, WeightedQuantile)

    @property
    def draws(self) -> Needs:
        return Needs(cells=True)

    @property
    def plain(self) -> Exponential:
        """The mechanism of the records that weights stand for."""
        return Exponential(Quantile(self.statistic.q), Universe(self.universe.lo, self.universe.hi), self.eps / STEPS)

    def check(self) -> None:
        super(WeightedExponential, self).check()
        self.plain.check()

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return self.plain.draw(_of_steps(summary), sampler, bits)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self.plain.value(drawn)

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """NaN: not known."""
        return self.plain.interval(drawn, level)

    def noise95(self, summary: Summary) -> FloatArray:
        """As for `Exponential`."""
        plain, exact = self.plain, self.statistic.value(summary, self.universe)
        items, mass = plain.masses(_of_steps(summary))
        steps = largest_error(items, mass, plain.measure, plain.points.place(exact), 0.95)
        return np.minimum(steps * plain.points.step, self.universe.width)

    @property
    def rank95(self) -> float:
        """Error in records of the largest weight, 95 % sure; infinite where it is not known."""
        return self.plain.rank95 / STEPS

    @property
    def step(self) -> float:
        return self.plain.step

    def _success(self, eps: float) -> float:
        return self.plain._success(eps)

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_exponential(eps)

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        """As for every mechanism, for records with these weights."""
        with np.errstate(invalid="ignore"):  # of rows that are left out afterwards
            steps = weight_steps(PlaceGrid.of(self.universe.other).placed(records).astype(np.int64))
        return np.asarray(steps * (float(self.eps) / STEPS), dtype=np.float64)

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        raise ParameterError(f"the exact identifiability of a {self.statistic.label} is not supported.")

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        """At most what both records lose."""
        assert summary.other is not None and summary.other.highest is not None
        largest = self.loss_of_records(summary.other.highest[0], summary)
        return np.where(summary.n > 0, 2 * largest, 0.0)


@dataclass(frozen=True, slots=True)
class WeightedExponentialInterval(WeightedExponential):
    """A weighted quantile and ends between which the exact one lies, one choice: `ExponentialInterval`, with weights.

    Notes
    -----
    The records that weights stand for are those of an `ExponentialInterval` at eps / `STEPS`. Each of them moves the
    largest of the three scores within one span, so a person with q of them loses ``eps q / STEPS`` at most, as without
    an interval. The proof of its coverage is about any records, so also about these, whose quantile is the record of
    rank ``ceil(n q)``, from ``floor((n - 1) q) + 1`` to ``ceil((n - 1) q) + 1``. It is that of weights in whole steps.
    """

    name: ClassVar[str] = "weighted_exponential_interval"
    noise: ClassVar[str] = (
        "choice among public points by exponential weights of their weighted ranks, of the answer and the ends of its "
        "interval together"
    )

    @property
    def plain(self) -> ExponentialInterval:
        within = Universe(self.universe.lo, self.universe.hi)
        return ExponentialInterval(Quantile(self.statistic.q), within, self.eps / STEPS)

    @property
    def is_one_sided(self) -> bool:
        return self.plain.is_one_sided


def _of_steps(summary: Summary) -> Summary:
    """The summary of the records that weights stand for."""
    cells = summary.cells
    assert cells is not None
    before = np.append(0, np.cumsum(cells.count))
    return replace(summary, n=before[cells.first[1:]] - before[cells.first[:-1]])
