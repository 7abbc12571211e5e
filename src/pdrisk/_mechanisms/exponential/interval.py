"""Order statistics with an interval: one choice of the answer and the ends among the same points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from pdrisk._core.once import once
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._mechanisms.contract.base import Drawn
from pdrisk._mechanisms.exponential import BEYOND, TOO_FEW, TOO_MANY, Exponential, score_of, slopes_of
from pdrisk._mechanisms.exponential.items import Items
from pdrisk._mechanisms.exponential.joint import Joint, Spare, Target
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace

LEVEL = 0.95


@lru_cache(maxsize=64)
def targets_of(score: Score, measure: Measure, outcomes: int, eps: Fraction) -> tuple[tuple[Target, ...], int | None]:
    """Targets of the answer, whose score this is, and of the ends, and the index of scores that are next to never best.

    None where the weights do not fall far enough, at very small eps.
    """
    is_extreme = not 0 < score.a < score.b
    if is_extreme:  # as without an interval, but always so far from the end
        above, below = (TOO_FEW, TOO_MANY) if score.a else (TOO_MANY, TOO_FEW)
        shape = replace(score, offset=0, share=0, above=above, below=below)
    else:
        shape = score
    weights = Weights.of_all((score, shape), outcomes, eps)
    never = weights.reach((measure.spread + 1) ** 2, BEYOND)
    reach = (weights.cap if never is None else never + 1) * weights.coarse
    ends = []
    for is_upper in (False, True):
        fails, other = (score.below, score.above) if is_upper else (score.above, score.below)
        moved = score.b - score.a if is_upper else score.a  # how far one record moves the target from the bound
        if is_extreme and not moved:
            continue  # the bound itself is this end
        if is_extreme:
            away = -(-reach // (TOO_FEW * score.b)) * score.b
        else:
            away = -(-reach // fails) + (1 + -(-other // fails)) * (moved + abs(score.offset))
        offset = shape.offset + (away if is_upper else -away)
        slope = max(shape.up, score.up)
        spare = Spare(measure.size - 1 if is_upper else 0, slope, -(-abs(offset) * slope // moved))
        ends.append(Target(replace(shape, offset=offset), spare))
    return (Target(score), *ends), never


@dataclass(frozen=True)
class ExponentialInterval(Exponential):
    """A quantile, minimum or maximum, and ends between which the exact one lies.

    Notes
    -----
    The answer and the ends are one choice (`Joint`), of a weight that falls with the largest of their scores. Below the
    lower end's target lie so many records that points above the exact quantile score t or more for it, and t more than
    as an answer. Beside the points there is a spare candidate, the bound, which scores 0 where the target lies below
    all records. So with S for the number of places over the least and one more, all triples whose lower end is too high
    or upper end too low are chosen with probability at most ``S**2 W[t] / W[0]``, in any data: t is the least for which
    that is 1/20. See docs/numbers.md.

    Nothing tells that no record lies farther out than the largest: of a maximum the upper end is the bound, which costs
    nothing, and a pair is chosen. Of a minimum likewise.

    The log-ratio of an outcome's probabilities between neighbours lies in a range as long as eps, as that of one point
    does, so `success` is the same. A record's own loss is not computed: it is eps at most.
    """

    name: ClassVar[str] = "exponential_interval"
    noise: ClassVar[str] = (
        "choice among public points by exponential weights of their ranks, of the answer and the ends of its interval "
        "together"
    )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return self.joint.drawn(self._cells(summary), bits)

    def masses(self, summary: Summary) -> tuple[Items, FloatArray]:
        items, mass, _ = self.joint.masses(self._cells(summary), 0)
        return items, mass

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """The drawn ends, wider by the rounding of records and at least to the value; the bounds beyond .95."""
        value = self.value(drawn).astype(np.float64)
        low, high = (np.full(value.shape, end) for end in (self.universe.lo, self.universe.hi))
        (targets, never), points = self._targets, self.points
        if level > LEVEL or never is None:
            return low, high
        off = 0.0 if points.whole else points.step / 2 + self.universe.magnitude * 2.0**-50
        for target, end in zip(targets[1:], np.clip(drawn[1:], 0, points.size - 1), strict=True):
            first, last = (points.value(point) for point in self.measure.around(end))
            if target.spare is not None and target.spare.point == 0:
                low = np.minimum(np.maximum(low, first - off), value)
            else:
                high = np.maximum(np.minimum(high, last + off), value)
        return low, high

    @once
    def reads(self) -> Needs:
        """All cells: the ends look for ranks that are far apart."""
        return self.needs(self.statistic)

    @property
    def is_one_sided(self) -> bool:
        return len(self._targets[0]) == 2

    def loss(self, summary: Summary) -> FloatArray:
        return np.full(summary.n.shape, float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        return np.full(records.shape, float(self.eps))

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return self.loss_between_worlds_by_eps(summary) * float(self.eps)

    @once
    def score(self) -> Score:
        score = score_of(self.statistic, self.eps, self._outcomes)
        return replace(score, above=2 * score.above, below=2 * score.below) if self._reaches else score

    @once
    def weights(self) -> Weights:
        return self.joint.weights

    @once
    def joint(self) -> Joint:
        """The choice of the answer, and of the lower and the upper end."""
        return Joint(self._targets[0], self.measure, self.eps)

    @property
    def _end(self) -> int:
        """0: with the weights of quantiles near an end, which vary more, the ends would lie farther out."""
        return 0

    @property
    def _reaches(self) -> bool:
        """Whether records are declared to lie at the bound: then they count twice, as far as they may (see `Joint`)."""
        score = slopes_of(self.statistic)
        return not (score.above and score.below)

    @once
    def _outcomes(self) -> int:
        score = slopes_of(self.statistic)
        return (self.measure.spread + 1) ** (3 if 0 < score.a < score.b else 2)

    @once
    def _targets(self) -> tuple[tuple[Target, ...], int | None]:
        return targets_of(self.score, self.measure, self._outcomes, self.eps)
