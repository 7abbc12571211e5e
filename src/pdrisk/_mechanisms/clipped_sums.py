"""Clipped-sums mechanism: a share of eps chooses where values are clipped, the rest answers by two noisy sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells
from pdrisk._core.lattice import PLACES
from pdrisk._core.risks.gaussian_dp import mu_of_exponential, squared
from pdrisk._core.size_sums import SIZE_PLACES, SizePoints, SizeSums
from pdrisk._core.statistics import Mean, Statistic, Sum
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.contract.base import ONE, Drawn, Mechanism, at_most
from pdrisk._mechanisms.exponential.choice import Choice
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk._mechanisms.two_sums import TwoSums
from pdrisk.errors import ParameterError

NOBODY = np.iinfo(np.int64).min  # what is withheld is marked by it
MORE = 3.0  # nats, beyond the number of points, by which a point beyond all records is less likely than the best one
SHORT = 3  # as much as one record counts that is clipped too many, for each that is clipped too few


@dataclass(frozen=True, slots=True)
class ClippedSums(Mechanism):
    """A mean or sum of values clipped at two public points, which half of eps finds among round numbers.

    Notes
    -----
    First the points of `SizePoints` are chosen, on either side of 0, by the exponential mechanism: an upper one that
    some `left` records lie beyond, and a lower one likewise (no points beyond the bounds, so that values of one sign
    have one such point). A record is on one side, and the scores there are numbers of records at and beyond a point:
    so the other side's choice does not depend on it, and both cost eps/2 together. All groups share the points, chosen
    from the records of all, since a person is in one group at most. Then `TwoSums` answers within the points, at eps/2:
    in sequence, eps.

    The places of records are cut to those of the points exactly, and their sum is scaled to the new bounds and rounded
    down. One record more adds a number from 0 to 1 before that, so that both sums, of distances from either point,
    move by whole numbers that add up to S = `PLACES`.

    A person loses what the choice on their side loses by them, computed from these data, and eps/2.
    """

    name: ClassVar[str] = "clipped_sums"
    noise: ClassVar[str] = (
        "choice of the points that values are clipped at by exponential weights of ranks, for half of eps; then "
        "discrete Laplace noise on the sums of distances from both points"
    )

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return type(statistic) in (Mean, Sum)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return TwoSums.needs(statistic) | Needs(size_sums=True)

    def check(self) -> None:
        if PLACES / self._stages[1] > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} is too small to find where to clip: ask with "
                f"eps={2 * PLACES / WIDEST_SCALE:.2g} or more, or without clip."
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        """Both noisy sums of each group, with the numbers of the two chosen points for all groups, shape (4, G)."""
        chosen = {False: 0, True: 0}
        for is_upper, choice, cells in self._choices(summary):
            chosen[is_upper] = int(choice.drawn(cells, bits)[0])
        lower, upper = chosen[False], chosen[True]
        drawn = self._within(lower, upper).draw(self._clipped(summary, lower, upper), sampler)
        points = [np.full(drawn.shape[1], number, dtype=np.int64) for number in (lower, upper)]
        return np.stack([*drawn, *points])

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self._within(*self._chosen(drawn)).value(drawn[:2])

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of two_sums for the clipped values, wider by the rounding of records."""
        within = self._within(*self._chosen(drawn))
        low, high = within.interval(drawn[:2], level)
        rounding = np.full(low.shape, self.universe.width / SIZE_PLACES)
        if isinstance(self.statistic, Sum):
            rounding *= np.maximum(drawn[:2].astype(np.float64).sum(axis=0) / PLACES, 1.0)
        ends = self.statistic.value_range(within.universe)
        return np.clip(low - rounding, *ends), np.clip(high + rounding, *ends)

    def law(self, drawn: Drawn) -> Law:
        law = self._within(*self._chosen(drawn)).law(drawn[:2])
        assert law is not None
        return replace(law, rounding=law.rounding + self.universe.width / SIZE_PLACES)

    def noise95(self, summary: Summary) -> FloatArray:
        """As for every mechanism, at the middle ones of the likely points."""
        middle = np.uint64(2**63)
        return self.noise95_of(self.draw(summary, lambda exact, *_: exact, lambda size: np.full(size, middle)))

    def widest_noise95(self, n: int | None) -> float | None:
        """The widest interval without clipping."""
        return TwoSums(self.statistic, self.universe, self._stages[1]).widest_noise95(n)

    def least_records(self, drawn: Drawn, level: float) -> FloatArray | None:
        return self._within(*self._chosen(drawn)).least_records(drawn[:2], level)

    def clip(self, drawn: Drawn) -> tuple[float, float] | None:
        if not (drawn[0] != NOBODY).any():
            return None
        within = self._within(*self._chosen(drawn)).universe
        return within.lo, within.hi

    def clips_most(self, drawn: Drawn) -> bool:
        """Whether the records seem to be so few that about half of them are clipped."""
        sums = drawn[:2, drawn[0] != NOBODY].astype(np.float64)
        return bool(sums.sum() < 2 * self.left * PLACES)

    @property
    def left(self) -> int:
        """About how many records are clipped on each side."""
        points = self._points
        most = max(len(points.lower), len(points.upper))
        return math.ceil((math.log(most) + MORE) * (1 + SHORT) / SHORT / self._stages[0])

    def _success(self, eps: float) -> float:
        """`success` of a choice with log-ratios in a range of eps/2, and of a Laplace variable moved by eps/2."""
        return 1 - math.exp(-eps / 4) / (2 * math.cosh(eps / 8))

    def mu2_of(self, weight: Fraction = ONE, groups: int = 1, *, apart: bool = False) -> Fraction:
        points = mu_of_exponential(float(self.eps_of(weight)) / 2)  # which all groups share
        values = TwoSums(self.statistic, self.universe, self._stages[1]).mu2_of(weight, groups, apart=apart)
        return min(squared(points) + values, super(ClippedSums, self).mu2_of(weight, groups, apart=apart))

    def loss(self, summary: Summary) -> FloatArray:
        sums = self._sums(summary)
        worst = np.zeros(len(sums.bin))
        added = 0.0
        for is_upper, choice, cells in self._choices(summary):
            added = max(added, float(choice.losses(cells).added()[0]))
            worst = np.maximum(worst, self._of_bins(is_upper, choice, cells)[sums.bin])
        group = np.repeat(np.arange(len(sums.first) - 1), np.diff(sums.first))
        total = np.full(summary.n.shape, added)
        np.maximum.at(total, group, worst)
        return at_most(total + float(self._stages[1]), float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        with np.errstate(invalid="ignore"):  # of rows that are left out afterwards
            bins = np.searchsorted(self._points.thresholds, self._places(records).astype(np.int64), side="right")
        of_bins = np.zeros(self._points.bins)
        for is_upper, choice, cells in self._choices(summary):
            of_bins = np.maximum(of_bins, self._of_bins(is_upper, choice, cells))
        return at_most(of_bins[bins] + float(self._stages[1]), float(self.eps))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        """Places whose distances are at least the losses: 2 eps from place to place."""
        return self._places(records) * 2, 1 / float(self.eps)

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        differ = self._places(summary.highest[0]) > self._places(summary.lowest[0])
        return np.where((summary.n > 0) & differ, 2 * float(self.eps), 0.0)

    def loss_by_eps(self, summary: Summary) -> FloatArray:
        return np.ones(summary.n.shape)

    @property
    def _stages(self) -> tuple[Fraction, Fraction]:
        """Eps of the points, and eps of the answer."""
        return self.eps / 2, self.eps / 2

    @property
    def _points(self) -> SizePoints:
        return SizePoints.between(self.universe.lo, self.universe.hi)

    def _choices(self, summary: Summary) -> Iterator[tuple[bool, Choice, Cells]]:
        """For each side that has points: whether it is the upper one, its choice, and the scores to choose from.

        The records of a side stand at the first of its points that does not clip them.
        """
        points, sums = self._points, self._sums(summary)
        counts = sums.counts(points.bins)
        numbers = np.flatnonzero(counts)
        for is_upper, ends in enumerate((points.lower, points.upper)):
            if len(ends):
                at = points.nearest_uncut(numbers)[is_upper]
                order = np.argsort(at)[np.count_nonzero(at < 0) :]
                cells = Cells.of_keys(at[order], counts[numbers[order]], 1, len(ends))
                score = Score(1, 1, -self.left, above=SHORT)
                yield bool(is_upper), Choice(score, Measure(len(ends)), self._stages[0]), cells

    def _of_bins(self, is_upper: bool, choice: Choice, cells: Cells) -> FloatArray:
        """Loss of a record in each bin by the choice of a side, shape (bins,); 0 on the other side."""
        items = choice.losses(cells).items
        at = self._points.nearest_uncut(np.arange(self._points.bins))[is_upper]
        item = np.searchsorted(items.start, np.maximum(at, 0), side="right") - 1
        return np.where(at >= 0, choice.removed(cells)[item], 0.0)

    def _clipped(self, summary: Summary, lower: int, upper: int) -> Summary:
        """Numbers of the records, and the sums of their places between the points."""
        points = self._points
        start, end = points.lower_places[lower : lower + 1], points.upper_places[upper : upper + 1]
        first, last = (int(edge[0]) if len(edge) else points.middle for edge in (start, end))
        n = summary.n.astype(object)
        distance = self._sums(summary).clipped(points, lower, upper) - n * first
        places = np.minimum(distance * PLACES // (last - first), 2**63 - 1).astype(np.int64)
        return Summary(summary.n, places=places)

    def _within(self, lower: int, upper: int) -> TwoSums:
        """The mechanism that answers between two points."""
        points = self._points
        low = float(points.lower[lower]) if len(points.lower) else self.universe.lo
        high = float(points.upper[upper]) if len(points.upper) else self.universe.hi
        return TwoSums(self.statistic, Universe(low, high), self._stages[1])

    def _chosen(self, drawn: Drawn) -> tuple[int, int]:
        """Numbers of the chosen points, from a group that is not withheld."""
        lower, upper = drawn[2:].max(axis=1, initial=0).tolist()
        return lower, upper

    def _places(self, records: FloatArray) -> FloatArray:
        return np.floor((records - self.universe.lo) * self._points.per_unit + 0.5)

    def _sums(self, summary: Summary) -> SizeSums:
        assert summary.size_sums is not None
        return summary.size_sums
