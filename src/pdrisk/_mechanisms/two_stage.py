"""Two-stage mechanism for means of many records: a pilot by two_sums, then the sum of distances from it.

For variances see `two_stage_spread`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import LARGEST_STEPS, PLACES
from pdrisk._core.risks.risk import posterior
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk._mechanisms.two_stage_spread import TwoStageSpread, mu_of_stages, two_stages
from pdrisk._mechanisms.two_sums import TwoSums, sum_of_two
from pdrisk.errors import ParameterError

CENTRES = 1024  # steps between the bounds that the pilot is rounded to: not as many scales of noise as groups
FOR_NUMBER = 0.2  # of how often an interval fails, for the number of records


@dataclass(frozen=True, slots=True)
class TwoStage(TwoSums):
    """Mean in two stages: a share p of eps finds it roughly, the rest precisely; within the bounds.

    Notes
    -----
    The pilot is `TwoSums` at ``p eps``, with ``p = min(.15, sqrt(40 / (n eps)))`` for the declared least number n of
    records: sums a, b and the mean they give, rounded to a centre c. Then one record moves ``sum(k - c)``, k its place
    from 0 to S = `PLACES`, by ``max(c, S - c)`` at most, and the sum is released with noise of that scale over
    ``(1 - p) eps``; in sequence, both cost eps. The least squares of all three give U and V, and these the mean.

    A record of place k bears ``p eps`` in the first stage and at most ``(1 - p) eps |k - c| / max(c, S - c)`` in the
    second, which over all c is largest at c = 0 or S: ``(1 - p) eps max(k, S - k) / S``. Between the worlds without one
    record or another the second stage has ``(1 - p) eps |k_i - k_j| / max(c, S - c)``, so that both have at most
    ``2 eps |k_i - k_j| / S``, as in two_sums.
    """

    statistic: Mean

    name: ClassVar[str] = "two_stage"
    noise: ClassVar[str] = (
        "discrete Laplace noise on the sums of distances from both bounds, and on that of distances from the noisy mean"
    )
    is_even: ClassVar[bool] = False
    noises: ClassVar[int] = 3

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return False  # where the second stage looks depends on the first

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return (isinstance(statistic, Mean) and statistic.n_at_least > 0) or TwoStageSpread.answers(statistic)

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return False

    def law(self, drawn: Drawn) -> None:
        """None: what the second stage measures depends on the first."""

    @classmethod
    def of(cls, statistic: Statistic, universe: Universe, eps: Fraction, together: Sequence[Statistic]) -> Mechanism:
        return (TwoStageSpread if isinstance(statistic, Var) else cls)(statistic, universe, eps)  # type: ignore[arg-type]

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return (TwoStageSpread if isinstance(statistic, Var) else TwoSums).needs(statistic)

    def check(self) -> None:
        if PLACES / self._stages[0] > WIDEST_SCALE:
            raise ParameterError(f'eps={float(self.eps):g} is too small for two stages: ask with mechanism="two_sums".')

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        pilot, rest = self._stages
        sums = self._sums(summary)
        a, b = sampler(sums, PLACES, pilot)
        share = super(TwoStage, self)._share(np.stack([a, b]))
        at = np.rint(share * CENTRES).astype(np.int64)
        centre = at * (PLACES // CENTRES)
        # In exact integers of the two sums, which one record moves by PLACES together, even where they are held.
        above, below = sums.astype(object)
        distance = np.clip(((CENTRES - at) * above - at * below) // CENTRES, -LARGEST_STEPS, LARGEST_STEPS)
        distance = distance.astype(np.int64)
        change = np.maximum(centre, PLACES - centre) + 1  # for rounding down, of sums that are held
        for sensitivity in np.unique(change).tolist():
            groups = change == sensitivity
            distance[groups] = sampler(distance[groups], sensitivity, rest)
        return np.stack([a, b, centre, distance])

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """``c + (d + noise)/n`` for all noise of the second stage, and all n, that are likely enough."""
        centre, distance, reach = self._second(drawn)
        fails = 1 - level
        reach = reach * -math.log(fails * (1 - FOR_NUMBER))
        n = drawn[:2].astype(np.float64).sum(axis=0) / PLACES
        off = sum_of_two(fails * FOR_NUMBER / 2) / float(self._stages[0])
        known = n > off
        least, most = np.where(known, n - off, 1.0), n + off
        ends = distance - reach, distance + reach
        low = np.where(known, centre + np.where(ends[0] < 0, ends[0] / least, ends[0] / most), 0.0)
        high = np.where(known, centre + np.where(ends[1] > 0, ends[1] / least, ends[1] / most), 1.0)
        value, more = self._share(drawn), 1 / PLACES
        low, high = np.minimum(low - more, value), np.maximum(high + more, value)
        return self._answer(np.clip(low, 0.0, 1.0)), self._answer(np.clip(high, 0.0, 1.0))

    def least_records(self, drawn: Drawn, level: float) -> FloatArray:
        return drawn[:2].astype(np.float64).sum(axis=0) / PLACES - sum_of_two(1 - level) / float(self._stages[0])

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        places, (pilot, rest) = self._places(records), self._stages
        return float(pilot) + float(rest) * (np.maximum(places, PLACES - places) / PLACES)

    def _success(self, eps: float) -> float:
        return float(posterior(eps))  # of any mechanism that costs eps; this one's is a little less

    def _mu(self, eps: float, groups: int) -> float:
        # Beyond the pilot one number moves by a change of half of S at least, in the steps of its noise.
        return mu_of_stages(eps, self._stages, ((2 * groups, PLACES), (groups, PLACES // 2)))

    def _share(self, drawn: Drawn) -> FloatArray:
        a, b = drawn[:2].astype(np.float64) / PLACES
        centre, distance, reach = self._second(drawn)
        pilot = float(1 / self._stages[0])
        gain = pilot**2 / (pilot**2 * ((1 - centre) ** 2 + centre**2) + reach**2)
        gain = gain * (distance - ((1 - centre) * a - centre * b))
        return super(TwoStage, self)._share(np.stack([a + (1 - centre) * gain, b - centre * gain]))

    def _second(self, drawn: Drawn) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centre, noisy sum of distances from it, and the scale of its noise; with S as the unit."""
        centre, distance = drawn[2:].astype(np.float64) / PLACES
        return centre, distance, np.maximum(centre, 1 - centre) / float(self._stages[1])

    @property
    def _stages(self) -> tuple[Fraction, Fraction]:
        return two_stages(self.eps, self.statistic.n_at_least)
