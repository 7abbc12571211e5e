"""ApproximateQuantiles: several quantiles for one eps, each choice halving the records (Kaplan et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import Points
from pdrisk._core.order import Quantile
from pdrisk._core.risks.gaussian_dp import UP, mu_of_exponential
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.exponential import LARGEST_DENOMINATOR, Exponential, fraction_of
from pdrisk._mechanisms.exponential.halving import Node, tree_of
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.parts import PLACE_BITS, Part
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace

STEPS = 500  # that sums of exponential variables are added up in
SLACK = 1 + 2.0**-40  # for the rounding of weights
UNSURE = Fraction(1, 20)  # how often an answer may be farther from its rank than `rank95`


@dataclass(frozen=True, slots=True)
class ApproximateQuantiles(Mechanism):
    """Several quantiles as public points that rise with q: the middle quantile first, then those on its sides.

    Parameters
    ----------
    quantiles : tuple of Fraction
        All that are drawn together, in order.

    Notes
    -----
    The middle quantile is chosen by the exponential mechanism. It parts the records, and the quantiles of either side
    are chosen among the points and records there, and so on: ``floor(log2 m) + 1`` levels for m quantiles (Kaplan,
    Schnapp & Stemmer, ICML 2022). Given the answers of the levels above, one record more or less changes one part of
    each level by one record, and no other. So what is paid along the path of a part adds up, at most to eps, and parts
    beside each other cost no more together.

    Records at one point are parted by their places (`Part`), which are drawn anew on each level for each record by
    itself: given the places, the above holds, and so it does on average over them. Shares that are taken from ranks
    would not do: one record could send another one to the other side.

    The loss of a person is not computed: eps is an upper bound for everybody.
    """

    quantiles: tuple[Fraction, ...] = ()

    name: ClassVar[str] = "approximate_quantiles"
    noise: ClassVar[str] = "choice among public points by exponential weights of their ranks, one after another"
    is_even: ClassVar[bool] = True

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return False  # only beside others

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Quantile) and 0 < fraction_of(statistic.q) < 1

    @classmethod
    def of(cls, statistic: Statistic, universe: Universe, eps: Fraction, together: Sequence[Statistic]) -> Mechanism:
        return cls(statistic, universe, eps, _fractions(tuple(together) or (statistic,)))

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return Exponential.needs(statistic)

    @property
    def draws(self) -> Needs:
        return Needs(cells=self.reads.cells, whole_cells=self.reads.whole_cells)

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        chosen = np.empty((len(self.quantiles), len(summary.n)), dtype=np.int64)
        self._choose(self._tree, Part.whole(self._cells(summary), self.measure), bits, chosen)
        return chosen

    def _choose(self, node: Node, part: Part, bits: Bits, chosen: Drawn) -> None:
        score, weights = _score(node), _weights(node, self.measure)
        if node.is_last:
            chosen[node.row] = part.chosen_points(score, weights, bits)
            return
        places, before, after = part.chosen_places(score, weights, bits)
        chosen[node.row] = self.measure.point(places >> PLACE_BITS)
        for side, rest in ((node.left, before), (node.right, after)):
            if side is not None:
                self._choose(side, rest, bits, chosen)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        chosen = drawn[self._row]
        return self.points.value(np.clip(chosen, 0, self.points.size - 1))  # what is withheld is marked by the least

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """NaN: not known, as for the exponential mechanism."""
        unknown = np.full(drawn.shape[1:], np.nan)
        return unknown, unknown

    def noise95(self, summary: Summary) -> FloatArray:
        """Distance of the exact answer from the records `rank95` away from it, shape (G,); curator only."""
        exact, points, ranks = self.statistic.value(summary, self.universe), self.points, self.rank95
        if not math.isfinite(ranks):
            return np.full(exact.shape, self.universe.width)
        cells, n = self._cells(summary), summary.n
        total = np.concatenate([[0], np.cumsum(cells.count)])
        before = total[cells.first[:-1]]
        off = np.zeros(exact.shape)
        for sign in (-1, 1):
            rank = n * float(self.quantiles[self._row]) + sign * ranks
            rank = np.floor(rank).astype(np.int64) if sign < 0 else np.ceil(rank).astype(np.int64) + 1
            at = np.searchsorted(total[1:], before + np.clip(rank, 1, np.maximum(n, 1)))
            held = np.append(cells.point, 0)[np.minimum(at, len(cells.point))]
            held = np.where(rank < 1, 0, np.where(rank > n, points.size - 1, held))
            off = np.maximum(off, np.abs(points.value(held).astype(np.float64) - exact))
        return np.minimum(off + points.step, self.universe.width)

    @property
    def rank95(self) -> float:
        """Error in ranks, 95 % sure; infinite where it is not known.

        Let q be chosen between r and s, of which one may be 0 or 1. Where those are off by some ranks, its target is
        off by ``((s - q) off(r) + (q - r) off(s)) / (s - r)``: a share of every choice above it. Given the choices
        above, each one is off by a score of t or more with probability ``M W[t] / W[0]`` at most, M the number of
        places, so by no more than a constant and an exponential variable, which are added up. Records at a
        chosen place go to one side: one more.
        """
        return _ranks95(self._tree, self.measure)[self._row]

    @property
    def step(self) -> float:
        return self.points.step

    def _success(self, eps: float) -> float:
        return 1 / (1 + math.exp(-eps))

    def _mu(self, eps: float, groups: int) -> float:
        return UP * math.sqrt(_dearest(self._tree, eps / float(self.eps)))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        """Places whose distances are at least the losses: 2 eps from point to point."""
        return self.points.index(records) * 2, 1 / float(self.eps)

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        return np.where(np.diff(self._cells(summary).first) > 1, 2 * float(self.eps), 0.0)

    @property
    def points(self) -> Points:
        """The public points."""
        return Points.between(self.universe.lo, self.universe.hi, getattr(self.statistic, "whole", False))

    @property
    def measure(self) -> Measure:
        """How much the points weigh before any record is read."""
        return Measure.of(self.points)

    @property
    def _row(self) -> int:
        assert isinstance(self.statistic, Quantile)
        return self.quantiles.index(fraction_of(self.statistic.q))

    @property
    def _tree(self) -> Node:
        return tree_of(self.quantiles, self.eps)

    def _cells(self, summary: Summary) -> Cells:
        cells = summary.whole_cells if getattr(self.statistic, "whole", False) else summary.cells
        assert cells is not None
        return cells


@lru_cache(maxsize=64)  # every line of a release asks
def _fractions(together: tuple[Statistic, ...]) -> tuple[Fraction, ...]:
    """The quantiles that are drawn together, in order."""
    return tuple(sorted({fraction_of(statistic.q) for statistic in together if isinstance(statistic, Quantile)}))


def _dearest(node: Node | None, times: float) -> float:
    """Largest sum of m**2 along a path, for a person who loses so many times as much as one record."""
    if node is None:
        return 0.0
    return mu_of_exponential(times * float(node.eps)) ** 2 + max(
        _dearest(node.left, times), _dearest(node.right, times)
    )


def _score(node: Node) -> Score:
    share = node.share.limit_denominator(LARGEST_DENOMINATOR)
    return Score(share.numerator, share.denominator)


def _places(node: Node, measure: Measure) -> int:
    """Largest number of places to choose from, in units of the least that one choice can be."""
    return measure.spread if node.is_last else measure.total << PLACE_BITS


def _weights(node: Node, measure: Measure) -> Weights:
    return Weights.of(_score(node), _places(node, measure), node.eps)


@lru_cache(maxsize=16)
def _ranks95(tree: Node, measure: Measure) -> tuple[float, ...]:
    """`ApproximateQuantiles.rank95` of each quantile."""
    nodes = {path[-1].row: path[-1] for path in tree.paths()}
    # For each choice how far it is off for sure, and the scale of what comes on top, in records; and how often beyond.
    sure, scale, beyond = np.empty((3, len(nodes)))
    for row, node in nodes.items():  # a table of weights is large: one at a time
        weights, places = _weights(node, measure), _places(node, measure)
        to_records = weights.coarse / _score(node).b
        scale[row] = to_records / float(weights.unit) * SLACK
        sure[row] = math.log(places) * scale[row] + to_records * (weights.coarse > 1)
        beyond[row] = places * weights.shares[-1]
    shares = np.zeros((len(nodes), len(nodes)))
    _add_shares(tree, np.zeros(len(nodes)), np.zeros(len(nodes)), shares)
    totals = []
    for row, row_shares in enumerate(shares):
        above = row_shares.copy()
        above[row] = 0.0  # where a record at the chosen place goes matters below it
        unsure = float(UNSURE) - beyond[row_shares > 0].sum()
        noise = (
            math.inf
            if unsure <= 0
            else _reach_of_exponentials(scale[row_shares > 0] * row_shares[row_shares > 0], unsure)
        )
        totals.append(float(row_shares @ sure + above.sum() + noise))
    return tuple(totals)


def _add_shares(node: Node | None, before: FloatArray, after: FloatArray, shares: FloatArray) -> None:
    """Share of each choice's error that moves each quantile, by row; neighbours were chosen before."""
    if node is None:
        return
    row_shares = shares[node.row]
    row_shares[:] = float(1 - node.share) * before + float(node.share) * after
    row_shares[node.row] = 1.0
    _add_shares(node.left, before, row_shares, shares)
    _add_shares(node.right, row_shares, after, shares)


def _reach_of_exponentials(scales: FloatArray, unsure: float) -> float:
    """Bound that a sum of independent exponential variables of these scales exceeds with this probability.

    Rounded up: each is rounded up to a multiple of a step, and their distributions are added up.
    """
    most = float(scales.sum()) * math.log(len(scales) / unsure)  # some variable would have to exceed its part of it
    step = most / STEPS
    below = np.zeros(STEPS + 1)
    below[0] = 1.0
    for scale in scales:
        up_to = -np.expm1(-np.arange(STEPS + 1) * (step / scale))
        below = np.convolve(below, np.diff(up_to, prepend=0.0))[: STEPS + 1]
    return step * min(int(np.searchsorted(np.cumsum(below), 1 - unsure)), STEPS)
