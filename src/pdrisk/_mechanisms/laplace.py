"""Laplace mechanism: noise of the statistic's own global sensitivity, as in the SOEP paper (Dwork et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Lattice
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Count, Statistic, Sum
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.surveys.weighted import SumOfWeights
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError


def half_width(scale: Any, level: float = 0.95) -> Any:
    """Half-width of the interval of Laplace noise at a confidence level: ``scale ln(1/(1-level))``."""
    return scale * -math.log1p(-level)


def noisy_steps(steps: IntArray, lattice: Lattice, eps: Fraction, sampler: Sampler = discrete_laplace) -> FloatArray:
    """Answers in steps of a public lattice, within ±2**62, plus Laplace noise; in the unit of the answers.

    A scale too wide for int64 is brought down by dropping low bits of the answer:
    ``|a >> s - b >> s| <= (d >> s) + 1``.
    """
    shift, kept = _kept(lattice, eps)
    return sampler(steps >> shift, kept, eps).astype(np.float64) * (lattice.step * 2.0**shift)


def _kept(lattice: Lattice, eps: Fraction) -> tuple[int, int]:
    """How many low bits of an answer are dropped, and the largest change of what is left."""
    change = lattice.sensitivity
    shift = max(0, math.ceil(math.log2(change / eps)) - int(math.log2(WIDEST_SCALE)))
    return shift, change if shift == 0 else (change >> shift) + 1


@dataclass(frozen=True, slots=True)
class Laplace(Mechanism):
    """Answers plus Laplace noise of scale GS/eps, drawn as integers on a public lattice.

    Notes
    -----
    The answer, rounded to a grid that no data decides, is an integer; neighbours differ by at most
    ``Lattice.sensitivity`` steps, and discrete Laplace noise of that sensitivity costs eps.
    """

    name: ClassVar[str] = "laplace"
    noise: ClassVar[str] = "Laplace noise of the statistic's own sensitivity"

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return type(statistic) in (Count, Sum, SumOfWeights)

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        """True for statistics of one column, unless the number of records is public."""
        return not (isinstance(statistic, OfTwoColumns) or statistic.replaces)

    def check(self) -> None:
        super(Laplace, self).check()
        if self._lattice.sensitivity < self.eps:
            raise ParameterError(
                f"eps={float(self.eps):g} would add no noise at all on the grid that answers are rounded to: "
                "ask with a smaller eps; at eps=20 an attacker is already right in all but 23 of a million cases."
            )

    @property
    def draws(self) -> Needs:
        return Needs(steps=True) if type(self.statistic) is Sum else self.reads

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return noisy_steps(self.statistic.steps(summary, self.universe), self._lattice, self.eps, sampler)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return drawn

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        reach = half_width(self.scale, level)
        return drawn - reach, drawn + reach

    def law(self, drawn: Drawn) -> Law:
        shift, kept = _kept(self._lattice, self.eps)
        unit = Fraction(self._lattice.step) * 2**shift
        return Law(1, unit, kept * unit / self.eps, top=(1.0,), least=-math.inf)

    def widest_noise95(self, n: int | None) -> float:
        reach: float = half_width(self.scale)
        return reach

    @property
    def scale(self) -> float:
        return self.statistic.global_sensitivity(self.universe) / float(self.eps)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + groups * on_lattice(float(self.eps) / self._lattice.sensitivity))

    def loss(self, summary: Summary) -> FloatArray:
        local = self.statistic.local_sensitivity(summary, self.universe)
        return float(self.eps) * (local / self.statistic.global_sensitivity(self.universe))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        moved = self.statistic.influence(records, summary, self.universe)
        eps = float(self.eps)
        return np.minimum(np.multiply(moved, eps / self.statistic.global_sensitivity(self.universe)), eps)

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        return self.statistic.leave_one_out(records, summary, self.universe), self.scale

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        between = self.statistic.world_range(summary, self.universe)
        return float(self.eps) * (between / self.statistic.global_sensitivity(self.universe))

    @property
    def _lattice(self) -> Lattice:
        return self.statistic.lattice(self.universe)
