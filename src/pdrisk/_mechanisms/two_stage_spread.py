"""Two-stage mechanism for variances of many records: a pilot by bernstein, then a sum of squared distances from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_STEPS, MOST_PLACED, PLACES, PlaceGrid
from pdrisk._core.risks.gaussian_dp import UP, mu_of_laplace, on_lattice
from pdrisk._core.risks.risk import posterior
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._mechanisms.bernstein import Bernstein, moments
from pdrisk._mechanisms.contract.base import Drawn
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError

CENTRES = 256  # steps between the bounds that the pilot's mean is rounded to
SPREADS = 1024  # steps to one squared width that its variance is rounded to, and changes are rounded up to
OFF = 6  # places by which the rounding of a record and of sums may move a change


def two_stages(eps: Fraction, n: int) -> tuple[Fraction, Fraction]:
    """Eps of a pilot about n records or more, and of the rest."""
    share = min(0.15, math.sqrt(40 / (n * float(eps))))
    pilot = eps * Fraction(math.ceil(share * 1000), 1000)
    return pilot, eps - pilot


def mu_of_stages(eps: float, stages: tuple[Fraction, Fraction], sums: tuple[tuple[int, int], tuple[int, int]]) -> float:
    """The m of two stages in sequence, for a person who loses eps by both.

    ``stages``: what one record loses by each.
    ``sums``: for each stage, how many sums it adds noise to, and how many steps one record moves them at least.
    """
    parts = [
        mu_of_laplace(eps * float(stage / sum(stages)) + number * on_lattice(float(stage) / steps))
        for stage, (number, steps) in zip(stages, sums, strict=True)
    ]
    return math.hypot(*parts) * UP


@dataclass(frozen=True, slots=True)
class TwoStageSpread(Bernstein):
    """Variance in two stages: a share p of eps finds it roughly, the rest precisely; within its range.

    Notes
    -----
    The pilot is `Bernstein` at ``p eps``: three noisy sums b, and the mean and variance they give, rounded to c and v
    (of values on [0, 1]). Then ``sum((w - c)**2 - v)`` has a sensitivity of ``max(max(c, 1 - c)**2 - v, v)``: one half
    of the noise of bernstein in evenly spread values. It is ``beta . B`` of the exact sums B, with ``beta`` the
    influence of their noise on a variance at c and v. So the least squares of all four numbers give B, and these the
    variance as in bernstein: what c and v are off by, and what n is, hardly matters.

    It is held within ``change (2**33 - 1 - n)``, so that beyond 2**32 records it says less, and one record moves it by
    the change at most, whatever n is.

    The loss of a record is at most eps, and between two worlds at most 2 eps: bounds for everybody.
    """

    statistic: Var

    name: ClassVar[str] = "two_stage"
    noises: ClassVar[int] = 4
    noise: ClassVar[str] = (
        "discrete Laplace noise on three sums to which each record adds 1 in all, and on that of squared distances "
        "from the mean they give"
    )

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Var) and statistic.n_at_least > 0

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return False

    def law(self, drawn: Drawn) -> None:
        """None: what the second stage measures depends on the first."""

    def check(self) -> None:
        if PLACES / self._stages[0] > WIDEST_SCALE:
            raise ParameterError(
                f'eps={float(self.eps):g} is too small for two stages: ask with mechanism="bernstein".'
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        """The pilot's sums, its rounded mean and variance, and the noisy sum of squared distances, shape (6, G)."""
        pilot, rest = self._stages
        drawn = super(TwoStageSpread, self).draw(summary, lambda exact, change, _: sampler(exact, change, pilot), bits)
        mean, square = moments(drawn.astype(np.float64) / PLACES)
        mean = np.clip(mean, 0.0, 1.0)
        centre = np.rint(mean * CENTRES).astype(np.int64)
        spread = np.rint(np.clip(square - mean**2, 0.0, 0.25) * SPREADS).astype(np.int64)
        change = self._steps(centre, spread) * (PLACES // SPREADS) + OFF
        distance = self._distance(summary, centre, spread)
        left = np.maximum(MOST_PLACED - summary.n, 0).astype(object)
        limit = np.minimum(left * change, LARGEST_STEPS)
        distance = np.maximum(np.minimum(distance, limit), -limit).astype(np.int64)
        for sensitivity in np.unique(change).tolist():
            groups = change == sensitivity
            distance[groups] = sampler(distance[groups], sensitivity, rest)
        return np.stack([*drawn, centre, spread, distance])

    def value(self, drawn: Drawn) -> NDArray[Any]:
        mean, square = moments(self._records(drawn))
        n = self._records(drawn).sum(axis=0)
        spread = np.where(n > 0, np.clip(square - mean**2, 0.0, 0.25), 0.0)
        return self._answer(spread * self._factor(n))

    @property
    def _eps_of_sums(self) -> Fraction:
        return self._stages[0]

    def _reach(self, drawn: Drawn, weights: FloatArray, level: float) -> FloatArray:
        """As in `Bernstein`, with the weights of the four noises in the least-squares sums."""
        beta, gain, scale = self._second(drawn)
        if weights.ndim > 2:
            beta, gain = beta[:, np.newaxis], gain[np.newaxis]
        along = (weights * beta).sum(axis=0) * gain
        pilot = (weights - along * beta) / float(self._stages[0])
        return critical_of_sum(np.concatenate([pilot, (along * scale)[np.newaxis]]), level)

    def _records(self, drawn: Drawn) -> FloatArray:
        """Least-squares sums from all four noisy ones, in units of one record, shape (3, G)."""
        beta, gain, _ = self._second(drawn)
        sums, distance = drawn[:3].astype(np.float64) / PLACES, drawn[5].astype(np.float64) / PLACES
        estimates: FloatArray = sums + beta * (gain * (distance - (beta * sums).sum(axis=0)))
        return estimates

    def _second(self, drawn: Drawn) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights of the sums in that of squared distances, its shift by them, and the scale of its noise."""
        centre, spread = np.clip(drawn[3], 0, CENTRES), np.clip(drawn[4], 0, SPREADS)
        mean = centre / CENTRES
        beta = np.stack([mean**2, -mean * (1 - mean), (1 - mean) ** 2]) - spread / SPREADS
        scale = (self._steps(centre, spread) / SPREADS + OFF / PLACES) / float(self._stages[1])
        pilot = 1 / float(self._stages[0]) ** 2
        return beta, pilot / (pilot * (beta**2).sum(axis=0) + scale**2), scale

    def _distance(self, summary: Summary, centre: NDArray[np.int64], spread: NDArray[np.int64]) -> NDArray[Any]:
        """The sum of ``(w - c)**2 - v`` in places, rounded down: Python's integers."""
        assert summary.places is not None and summary.place_squares is not None
        n, places, squares = (numbers.astype(object) for numbers in (summary.n, summary.places, summary.place_squares))
        c, v = centre.astype(object), spread.astype(object) * (CENTRES**2 // SPREADS)
        total: NDArray[Any] = (n * PLACES * (c * c - v) - 2 * CENTRES * c * places + CENTRES**2 * squares) // CENTRES**2
        return total

    @staticmethod
    def _steps(centre: NDArray[np.int64], spread: NDArray[np.int64]) -> NDArray[np.int64]:
        """The most that a record adds to the sum, in steps of a `SPREADS`-th, rounded up."""
        farthest = np.maximum(centre, CENTRES - centre) ** 2
        squared = -(-farthest * SPREADS // CENTRES**2)
        return np.maximum(squared - spread, np.maximum(spread, 1))

    @property
    def _stages(self) -> tuple[Fraction, Fraction]:
        return two_stages(self.eps, self.statistic.n_at_least)

    def _success(self, eps: float) -> float:
        return float(posterior(eps))  # of any mechanism that costs eps; this one's is a little less

    def _mu(self, eps: float, groups: int) -> float:
        # Beyond the pilot one number moves by a change of an eighth of S at least, in the steps of its noise.
        return mu_of_stages(eps, self._stages, ((3 * groups, PLACES), (groups, PLACES // 8)))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        """Places whose distances are at least the losses: 2 eps from place to place."""
        places = PlaceGrid.of(self.universe).placed(records)
        return places * 2, 1 / float(self.eps)

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        differ = self.worlds(summary.highest[0], summary)[0] > self.worlds(summary.lowest[0], summary)[0]
        return np.where((summary.n > 0) & differ, 2 * float(self.eps), 0.0)
