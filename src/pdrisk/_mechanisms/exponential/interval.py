"""Order statistics with an interval: shares of eps choose its ends among the same points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pdrisk._core.summary import FloatArray, Needs
from pdrisk._mechanisms.base import Drawn
from pdrisk._mechanisms.exponential import SHORT, Exponential, slopes_of
from pdrisk._mechanisms.exponential.choice import Choice, Spare
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights

__all__ = ["ExponentialInterval"]

LEVEL = 0.95
RARELY = 1000  # times heavier than the spare candidate is a point with the best score


@dataclass(frozen=True, slots=True)
class EndChoices:
    """Choices of the ends of an interval; None for an end that is the bound.

    Attributes
    ----------
    lower, upper : Choice or None
    is_known : bool
        Whether they lie beyond the exact answer, 95 % sure: at very small eps the weights do not fall far enough.
    """

    lower: Choice | None
    upper: Choice | None
    is_known: bool

    @classmethod
    def of(cls, score: Score, measure: Measure, eps: Fraction) -> EndChoices:
        """The ends around a statistic that has this score, for eps each."""
        a, b, is_extreme = score.a, score.b, not 0 < score.a < score.b
        often = 20 if is_extreme else 40  # one end fails at most once in so many times
        shape = Score(a, b, above=SHORT if a else 1, below=1 if a else SHORT) if is_extreme else Score(a, b)
        weights = Weights.of(shape, measure.spread, eps)
        last = len(weights.table) - 1
        spare = weights.first_at_most(weights.table[0] // RARELY)
        least = None if spare is None else weights.first_at_most(weights.table[spare] // (often * measure.spread))
        reach = (last if least is None else least) * weights.coarse  # the least score that is next to never chosen
        if is_extreme:
            left = -(-reach // SHORT)
            lower, upper = (-left, None) if a else (None, left)
        else:
            lower, upper = -(reach + a), reach + b - a
        low, high = (
            None
            if offset is None
            else Choice(replace(shape, offset=offset), measure, eps, Spare(end, last if spare is None else spare))
            for offset, end in ((lower, 0), (upper, measure.size - 1))
        )
        return cls(low, high, least is not None)


@dataclass(frozen=True, slots=True)
class ExponentialInterval(Exponential):
    """A quantile, minimum or maximum, and ends between which the exact one lies.

    Notes
    -----
    Of a quantile q, a third of eps chooses the answer and a third each end. Below the lower end's target lie so many
    records that points above the exact quantile have scores of t or more; and beside the points there is a spare
    candidate, the bound, of a weight ``w <= W[0] / 1000`` that no record changes. All points with scores of t or more
    are chosen with probability at most ``M W[t] / w``, M the sum of all points' places over the least, in any data: t
    is the least for which that is 1/40. The upper end is its mirror image. So the interval fails with probability 1/20
    at most, whatever n is; of few records or none, the bounds themselves are the likely ends, and of many they are that
    by chance once in a thousand times.

    Nothing tells that no record lies farther out than the largest: of a maximum the upper end is the bound, which costs
    nothing, and half of eps chooses the lower one, with 1/20 in place of 1/40. Of a minimum likewise.

    The log-ratio of an outcome's probabilities between neighbours lies, for each choice, in a range as long as its
    share of eps; so their sum lies in a range as long as eps, and `success` is that of one choice at eps. The loss by a
    record is at most the sum of its losses by all choices, which `loss` and `loss_of_records` are.
    """

    name: ClassVar[str] = "exponential_interval"
    noise: ClassVar[str] = (
        "choice among public points by exponential weights of their ranks, for a share of eps; the rest chooses the "
        "ends of its interval likewise"
    )

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """The drawn ends, wider by the rounding of records and at least to the value; the bounds beyond .95."""
        value = self.value(drawn).astype(np.float64)
        low, high = (np.full(value.shape, end) for end in (self.universe.lo, self.universe.hi))
        ends, points = self._ends, self.points
        if level > LEVEL or not ends.is_known:
            return low, high
        off = 0.0 if points.whole else points.step / 2 + self.universe.magnitude * 2.0**-50
        drawn_ends = points.value(np.clip(drawn[1:], 0, points.size - 1)).astype(np.float64)
        if ends.lower is not None:
            low = np.minimum(np.maximum(low, drawn_ends[0] - off), value)
        if ends.upper is not None:
            high = np.maximum(np.minimum(high, drawn_ends[-1] + off), value)
        return low, high

    @property
    def reads(self) -> Needs:
        """All cells: the ends look for ranks that are far apart."""
        return self.needs(self.statistic)

    @property
    def value_eps(self) -> Fraction:
        slopes = slopes_of(self.statistic)
        return self.eps / (3 if 0 < slopes.a < slopes.b else 2)

    @property
    def is_one_sided(self) -> bool:
        return self._ends.lower is None or self._ends.upper is None

    @property
    def _ends(self) -> EndChoices:
        return EndChoices.of(slopes_of(self.statistic), self.measure, self.value_eps)

    @property
    def _choices(self) -> tuple[Choice, ...]:
        ends = self._ends
        value = Choice(self.score, self.measure, self.value_eps)
        return (value, *(each for each in (ends.lower, ends.upper) if each is not None))
