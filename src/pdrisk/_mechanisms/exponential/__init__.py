"""Exponential mechanism for order statistics: a public point, the likelier the nearer its rank (Smith 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.once import once
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.risks.gaussian_dp import mu_of_exponential
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Ranks, Summary
from pdrisk._mechanisms.contract.base import Drawn, Mechanism, at_most
from pdrisk._mechanisms.exponential.choice import Choice
from pdrisk._mechanisms.exponential.error import largest_error
from pdrisk._mechanisms.exponential.items import Items
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace

LARGEST_DENOMINATOR = 10**6  # of the fraction that a quantile is taken for: scores of 2**43 records fit 64 bits
SPARE = 6  # ranks: one record moves the rank by one at most, and the window of a/b is within five of it
ONE_IN = 6  # of how many records at most one is left between the end and what is asked of an extreme
BEYOND = Fraction(1, 20)  # how often an extreme may be answered by a point beyond all records
OUTER = Fraction(1, 10)  # quantiles so near to an end
TOO_MANY, TOO_FEW = 2, 3  # what a record too many between these, or an extreme, and the end counts, and one too few


@lru_cache(maxsize=2**14)
def fraction_of(q: float) -> Fraction:
    """The exact fraction of a quantile as it is written: .9 is 9/10."""
    return Fraction(repr(float(q))).limit_denominator(LARGEST_DENOMINATOR)


def slopes_of(statistic: Statistic) -> Score:
    """Score of points as answers to a statistic, where that of an extreme is the end itself.

    The quantiles 0 and 1 are extremes. Near an end and at it, too few records beyond a point count half as much again
    as too many; where records are declared to lie at the bound, there are no points beyond the end. Of quantiles near
    an end, one record nearer to the middle is asked for.
    """
    many, short, inwards = TOO_MANY, TOO_FEW, 0
    if isinstance(statistic, Quantile):
        q = fraction_of(statistic.q)
        if OUTER < q < 1 - OUTER:
            return Score(q.numerator, q.denominator)
        inwards = q.denominator if 0 < q < 1 else 0
    else:
        assert isinstance(statistic, Min | Max)
        q = Fraction(int(isinstance(statistic, Max)))
        if statistic.bounds_reached:
            many, short = 1, 0
    if q <= OUTER:
        return Score(q.numerator, q.denominator, offset=inwards, above=many, below=short)
    return Score(q.numerator, q.denominator, offset=-inwards, above=short, below=many)


@lru_cache(maxsize=256)  # every answer asks for it many times, and fractions are slow
def score_of(statistic: Statistic, eps: Fraction, spread: int) -> Score:
    """Score of points as answers to a statistic, all of which weigh so many times the least beforehand.

    An extreme is asked for so many sixths of records from the end that all points beyond all records together are
    chosen once in 20 times at most, wherever there are six times as many records; of fewer, for a sixth of them.
    """
    score = slopes_of(statistic)
    if 0 < score.a < score.b or not (score.above and score.below):
        return score
    score = replace(score, a=score.a * ONE_IN, b=ONE_IN, offset=-1 if score.a else 1, share=1)
    weights = Weights.of(score, spread, eps)
    reach = weights.reach(spread, BEYOND)
    far = (weights.cap if reach is None else reach) * weights.coarse
    left = -(-far // TOO_FEW)
    return replace(score, offset=-left if score.a else left)


@dataclass(frozen=True)
class Exponential(Mechanism):
    """One of the public points between the bounds, chosen with weights that fall with the distance from the rank.

    Notes
    -----
    Records are rounded to `Points`. A point's weight is ``exp(-eps h / span)`` or a little more than that of the next
    score's, where one record moves all scores h by numbers that lie within ``span`` of each other (`Score`): so
    the weights, and their sum, change by factors whose ratio is at most ``exp(eps)``. Weights are whole numbers, and
    the choice is exact: no rounding tells anything.

    The loss of a given person is computed from these data; it is less than eps for most.
    """

    name: ClassVar[str] = "exponential"
    noise: ClassVar[str] = "choice among public points by exponential weights of their ranks"

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Quantile | Min | Max)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return statistic.needs | (Needs(whole_cells=True) if _whole(statistic) else Needs(cells=True))

    @once
    def reads(self) -> Needs:
        """Cells around the rank asked for: farther records only need to lie on their side of it.

        Let a record be moved that is more than ``before`` or ``after`` ranks away, but not across the others. Points on
        its side score ``reach`` or worse before and after, so that their weights are the smallest ones, with one record
        more or less, too. A point at one of these ranks may then have another number of records on that side, but its
        score is what the other side makes it. See docs/numbers.md.
        """
        score, weights, statistic = self.score, self.weights, self.statistic
        reach = (weights.cap + weights.span) * weights.coarse
        before, after = (
            None if slope == 0 else -(-reach // (slope * score.b)) + SPARE for slope in (score.below, score.above)
        )
        # Not the statistic's own q, which may be a little off the fraction, and of many records by more than all ranks.
        q = score.a / score.b if 0 < score.a < score.b else None
        if score.share:  # of few records, the rank is nearer to the end
            before = before if before is None or score.offset < 0 else before + self._left
            after = after if after is None or score.offset > 0 else after + self._left
        near = Ranks(score.a, score.b, score.offset, before, after, q)
        return replace(self.needs(statistic), ranks=frozenset({near}))

    @once
    def draws(self) -> Needs:
        reads = self.reads
        return Needs(cells=reads.cells, whole_cells=reads.whole_cells, ranks=reads.ranks)

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return self._choice.drawn(self._cells(summary), bits)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        point = drawn if drawn.ndim == 1 else drawn[0]
        inside = np.minimum(np.maximum(point, 0), self.points.size - 1)  # what is withheld is marked by the least
        return self.points.value(inside)

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """NaN: the interval in the unit of the answer has to be asked for."""
        unknown = np.full(drawn.shape, np.nan)
        return unknown, unknown

    def noise95(self, summary: Summary) -> FloatArray:
        """Distance from the exact answer that 95 % of the answers keep, shape (G,), in these data: curator only."""
        points, (items, mass) = self.points, self.masses(summary)
        exact = self.statistic.value(summary, self.universe)
        steps = largest_error(items, mass, self.measure, points.place(exact), 0.95)
        return np.minimum(steps * points.step, self.universe.width)

    def masses(self, summary: Summary) -> tuple[Items, FloatArray]:
        """Items among which the answer is chosen, and their probabilities, times one number of each group."""
        choice = self._choice
        items = choice.losses(self._cells(summary)).items
        return items, choice.weights.shares[choice.index(items)] * items.places

    @once
    def rank95(self) -> float:
        """Error in ranks, 95 % sure; infinite where it is not known.

        Of a minimum or maximum, that is the end.

        Some point has the score 0, if there are records enough. So those of score t or more are chosen with probability
        at most ``M W[t] / W[0]``, M the sum of all points' places over the least: t is the least for which that is .05
        or less. Of few records, fewer are left between an end and the rank.
        """
        weights = self.weights
        reach = weights.reach(self._outcomes, BEYOND)
        slope = min(side for side in (self.score.above, self.score.below) if side) * self.score.b
        return math.inf if reach is None else float(Fraction(reach * weights.coarse - 1, slope) + self._left)

    @property
    def step(self) -> float:
        return self.points.step * self.measure.unit

    def _success(self, eps: float) -> float:
        return 1 / (1 + math.exp(-eps / 2))

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_exponential(eps)

    def loss(self, summary: Summary) -> FloatArray:
        choice, cells = self._choice, self._cells(summary)
        losses = choice.losses(cells)
        removed = np.maximum.reduceat(choice.removed(cells), losses.items.first[:-1])
        return at_most(np.maximum(losses.added(), removed), float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        cells, size = self._cells(summary), self.points.size
        with np.errstate(invalid="ignore"):  # of rows that are left out afterwards
            point = self.points.index(records).astype(np.int64)
        point = self.measure.nearest(np.clip(point, 0, size - 1))
        group = 0 if cells.rows is None else cells.rows
        items = self._choice.losses(cells).items
        at = np.searchsorted(items.group * (size + 1) + items.start, group * (size + 1) + point, side="right") - 1
        return at_most(self._choice.removed(cells)[at], float(self.eps))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        """Places whose distances are at least the losses: 2 eps from point to point."""
        return self.points.index(records) * 2, 1 / float(self.eps)

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return at_most(self._choice.losses(self._cells(summary)).between(), 2 * float(self.eps))

    def loss_by_eps(self, summary: Summary) -> FloatArray:
        return np.ones(summary.n.shape)

    def loss_between_worlds_by_eps(self, summary: Summary) -> FloatArray:
        return np.where(np.diff(self._read(summary).first) > 1, 2.0, 0.0)

    @once
    def points(self) -> Points:
        """The public points."""
        return Points.between(self.universe.lo, self.universe.hi, _whole(self.statistic))

    @once
    def measure(self) -> Measure:
        """How much the points weigh before any record is read: round ones alone where the target lies off the end."""
        slopes = slopes_of(self.statistic)
        is_off = not 0 < slopes.a < slopes.b and slopes.above and slopes.below
        return Measure.round_ones(self.points) if is_off else Measure.of(self.points, self._end)

    @property
    def _end(self) -> int:
        """The end that a quantile is near to, whose target is moved inwards: -1, or 1; 0 of others."""
        offset = slopes_of(self.statistic).offset
        return (offset < 0) - (offset > 0)

    @once
    def score(self) -> Score:
        """The score of the points."""
        return score_of(self.statistic, self.eps, self._outcomes)

    @once
    def _outcomes(self) -> int:
        """Sum of the places of all outcomes over the least, rounded up."""
        return self.measure.spread

    @once
    def _left(self) -> int:
        """Number of records between the end and the rank that is asked for of an extreme, rounded up."""
        return -(-abs(self.score.offset) // self.score.b)

    @once
    def weights(self) -> Weights:
        """The weights of the scores."""
        return Weights.of(self.score, self.measure.spread, self.eps)

    @once
    def _choice(self) -> Choice:
        return Choice(self.score, self.measure, self.eps)

    def _cells(self, summary: Summary) -> Cells:
        """The records, at points that have places."""
        return self.measure.rounded(self._read(summary))

    def _read(self, summary: Summary) -> Cells:
        cells = summary.whole_cells if _whole(self.statistic) else summary.cells
        assert cells is not None
        return cells


def _whole(statistic: Statistic) -> bool:
    return getattr(statistic, "whole", False)
