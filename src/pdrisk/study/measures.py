"""Sensitivities of samples, and at each eps the losses and the width of a mechanism's noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import or_

import numpy as np

from pdrisk._core.risks.risk import metrics, risks_of_losses
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import MECHANISMS, ClippedSums, calibrated, mechanism_for
from pdrisk._mechanisms.laplace import half_width
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Measures:
    """Measures of the samples of a study.

    Attributes
    ----------
    statistics : tuple of Statistic
    mechanisms : tuple of str
        Of each statistic.
    eps : tuple of float
        That losses are computed at; empty where sensitivities say all at any eps, as with Laplace noise.
    """

    statistics: tuple[Statistic, ...]
    mechanisms: tuple[str, ...]
    eps: tuple[float, ...]

    @property
    def needs(self) -> Needs:
        """Parts of a sample's summary that are read."""
        parts = (
            MECHANISMS[name].needs(statistic) if self.eps else statistic.needs
            for statistic, name in zip(self.statistics, self.mechanisms, strict=True)
        )
        return reduce(or_, parts, Needs())

    @property
    def rows(self) -> int:
        """Number of numbers for a statistic of a sample: LS and W, or LS and three for each eps."""
        return 1 + 3 * len(self.eps) if self.eps else 2

    def of(self, summary: Summary, universe: Universe) -> FloatArray:
        """Measures of G samples, shape (rows, statistics, G)."""
        result = np.empty((self.rows, len(self.statistics), len(summary.n)))
        for place, (statistic, name) in enumerate(zip(self.statistics, self.mechanisms, strict=True)):
            numbers = result[:, place]
            numbers[0] = statistic.local_sensitivity(summary, universe)
            if not self.eps:
                numbers[1] = statistic.world_range(summary, universe)
            for at, eps in enumerate(self.eps):
                mechanism = calibrated(name, statistic, universe, Fraction(repr(eps)))
                numbers[1 + 3 * at] = mechanism.loss(summary)
                numbers[2 + 3 * at] = mechanism.loss_between_worlds(summary)
                numbers[3 + 3 * at] = mechanism.noise95(summary)
        return result

    def risks(
        self, numbers: FloatArray, n: IntArray, universe: Universe, losses: tuple[float, ...]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Half-width of the noise, and the four risks, each of a shape that broadcasts to (statistics, G, eps).

        Parameters
        ----------
        numbers : ndarray of float64, shape (rows, statistics, G)
        n : ndarray of int64, shape (1, G, 1)
        universe : Universe
        losses : tuple of float
            The eps asked for.
        """
        eps = np.array(losses)
        n = np.broadcast_to(n, (*numbers.shape[1:], 1))
        if self.eps:
            loss, between, noise = (np.moveaxis(numbers[first::3], 0, -1) for first in (1, 2, 3))
            return noise, risks_of_losses(eps, n, loss, between)
        whole = np.array([statistic.global_sensitivity(universe) for statistic in self.statistics])[
            :, np.newaxis, np.newaxis
        ]
        local, between = numbers[..., np.newaxis]
        risks = metrics(eps, n, global_sensitivity=whole, local_sensitivity=local, world_range=between)
        return half_width(whole / eps), risks


def measures(statistics: tuple[Statistic, ...], mechanism: str, eps: tuple[float, ...]) -> Measures:
    """The measures of statistics that a mechanism, or with "auto" the most accurate one, answers."""
    names = tuple(mechanism_for(statistic, mechanism).name for statistic in statistics)
    if ClippedSums.name in names:
        raise ParameterError(
            f"a study asks about all values, and {ClippedSums.name!r} clips them: name another mechanism."
        )
    if set(names) <= {"laplace"}:
        return Measures(statistics, names, ())
    for statistic, name in zip(statistics, names, strict=True):
        for one in eps:
            calibrated(name, statistic, Universe(0.0, 1.0), Fraction(repr(one))).check()
    return Measures(statistics, names, eps)
