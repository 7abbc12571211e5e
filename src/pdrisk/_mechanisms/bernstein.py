"""Bernstein mechanism for variances: three noisy sums to which each record adds 1 in all (Takakura et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import (
    LARGEST_PLACES,
    MOST_PLACED,
    PLACE_BITS,
    PLACES,
    PlaceGrid,
    square_of_place,
)
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean, Statistic, Sum
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._mechanisms.contract.base import Drawn, Mechanism, likely_noise95
from pdrisk._mechanisms.laws.fieller import CELLS, mean_interval
from pdrisk._mechanisms.laws.laplace_sums import critical
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk._mechanisms.totals import is_total, law_of_parts, total, total_interval, total_reach
from pdrisk.errors import ParameterError

SHARES = 64  # means between the bounds of which the widest interval is looked for
SPREADS = np.append(0.0, 2.0 ** np.arange(-15.0, 1.0))[:, np.newaxis]  # of the largest variance at a mean, likewise
ROUNDING = 4 / PLACES  # of records to places, and of squares of places
FEWER = 1 + 2.0**-10  # a number of records where n / (n - 1) is at its largest, 2
SURELY = 0.999
FEWEST = 8.0  # records times eps, below which a noisy variance says nothing of its own error


@dataclass(frozen=True, slots=True)
class Bernstein(Mechanism):
    """A variance, mean, sum or number of records from three noisy sums; within the range of possible answers.

    Notes
    -----
    A record's place k, a whole number from 0 to S = `PLACES`, is split into ``i0 = floor((S - k)**2 / S)``,
    ``i2 = floor(k**2 / S)`` and ``i1 = S - i0 - i2``: whole numbers that sum to S exactly, the Bernstein polynomials of
    degree 2. So their sums over all records, each with noise ``DLap(S/eps)``, cost eps together (Takakura, Liew &
    Hasegawa 2025, arXiv 2509.04919), and everybody bears the same loss. The mean of ``w = k/S`` is
    ``m1 = (B1/2 + B2) / (B0 + B1 + B2)``, that of ``w**2`` is ``m2 = B2 / (B0 + B1 + B2)``, and
    the number of records is ``(B0 + B1 + B2) / S``.

    Between the worlds without one record or another, i0 falls and i2 rises with k, and i1 by what is left: a loss of
    ``2 eps max(i2' - i2, i0 - i0') / S``.
    """

    name: ClassVar[str] = "bernstein"
    noise: ClassVar[str] = "discrete Laplace noise of scale 1/eps on three sums to which each record adds 1 in all"
    is_even: ClassVar[bool] = True
    noises: ClassVar[int] = 3

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Var | Sum) or type(statistic) is Mean

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return cls.answers(statistic) or is_total(statistic)

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return cls.answers(statistic) or cls.joins(statistic)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        if type(statistic) is Count:
            return statistic.needs  # drawn from the records of another line
        return statistic.needs | Needs(places=True, place_squares=True, ends=True)

    @property
    def draws(self) -> Needs:
        return Needs() if type(self.statistic) is Count else Needs(places=True, place_squares=True)

    def check(self) -> None:
        super(Bernstein, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                'or more, or with mechanism="laplace".'
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        assert summary.places is not None and summary.place_squares is not None
        # What two of the sums no longer hold goes into the first: so all move by PLACES at most, whatever their size.
        high = np.minimum(summary.place_squares, LARGEST_PLACES)
        middle = 2 * np.minimum(summary.places - summary.place_squares, LARGEST_PLACES // 2)
        low = np.minimum(np.minimum(summary.n, MOST_PLACED) * PLACES - middle - high, LARGEST_PLACES)
        return sampler(np.stack([low, middle, high]), PLACES, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        sums = self._records(drawn)
        if is_total(self.statistic):
            return total(self.statistic, self.universe, sums)
        mean, square = moments(sums)
        some = sums.sum(axis=0) > 0
        if isinstance(self.statistic, Mean):
            return self._placed(np.where(some, mean, 0.5))
        spread = np.where(some, np.clip(square - mean**2, 0.0, 0.25), 0.0)
        return self._answer(spread * self._factor(sums.sum(axis=0)))

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Fieller's interval for a mean, `_interval` for a variance."""
        sums, eps = self._records(drawn), float(self.eps)
        if is_total(self.statistic):
            return total_interval(self.statistic, self.universe, sums, eps, level)
        if isinstance(self.statistic, Mean):
            low, high = mean_interval(sums[1] / 2 + sums[2], sums[0] + sums[1] / 2, eps, _critical(level))
            value = self.value(drawn)
            return np.minimum(self._placed(low - ROUNDING), value), np.maximum(self._placed(high + ROUNDING), value)
        return self.spread_interval(drawn, level, partial(self._reach, drawn), 1 / float(self._eps_of_sums))

    def spread_interval(
        self, drawn: Drawn, level: float, bound: Callable[[FloatArray, float], FloatArray], scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Ends from the first-order influence of the three noises, widened where that is not all.

        The whole range where the noisy number of records is below `FEWEST` scales of noise. docs/numbers.md has the
        coverage.

        ``drawn``: shape (3, G)
        ``bound``: bound on the error of the sums with some weights, as `_reach` gives it.
        ``scale``: of the noise of each sum, in records.
        """
        sums = self._records(drawn)
        n = sums.sum(axis=0)
        unknown = n < FEWEST * scale
        size = np.where(unknown, 1.0, n)
        mean, square = moments(sums)
        spread = square - mean**2
        within = np.clip(mean, 0.0, 1.0)
        off = bound(np.stack([-within, 0.5 - within, 1 - within]), level) / size  # the mean may be off by
        # What the noises weigh is known as well as the mean is, so it is taken at the worst of three means.
        means = np.clip(within + np.array([[0.0], [-0.5], [0.5]]) * off, 0.0, 1.0)
        weights = influence(means, np.clip(spread, 0.0, means * (1 - means)))
        reach = bound(weights, level).max(axis=0) / size + ROUNDING
        # The squared error of the mean makes a variance smaller, never larger; and none is larger than 1/4.
        low, high, most = spread - reach, spread + reach + off**2, np.full(n.shape, 0.25)
        if self._ddof:
            unsure = bound(np.ones((3, 1)), level)
            low = low * self._factor(np.maximum(n + unsure, 2.0))
            high = high * self._factor(np.maximum(n - unsure, FEWER))
            fewest = n - bound(np.ones((3, 1)), SURELY)  # so that the limit takes next to no coverage
            most = most * self._factor(np.maximum(fewest, FEWER))
        high = np.minimum(high, most)
        value = self.value(drawn)
        low = np.where(unknown, 0.0, np.minimum(self._answer(low), value))
        high = np.where(unknown, self.statistic.value_range(self.universe)[1], np.maximum(self._answer(high), value))
        return low, high

    def law(self, drawn: Drawn) -> Law | None:
        return law_of_parts(self.statistic, self.universe, 3, 1 / self._eps_of_sums)

    def widest_noise95(self, n: int | None) -> float | None:
        """That of the likely noise over all means, and over variances from 0 to that of values at both bounds.

        A standard deviation is the least known where it is small: so small variances and means close to an end are
        among them.
        """
        if is_total(self.statistic):
            return total_reach(self.statistic, self.universe, 3, float(self.eps), 0.95)
        if n is None:
            return None
        place = np.concatenate([np.arange(SHARES + 1) * (PLACES // SHARES), PLACES >> np.arange(7, PLACE_BITS)])
        least = square_of_place(place)
        squares = (least + np.rint(SPREADS * (place - least)).astype(np.int64)).ravel()
        records = np.full(squares.shape, min(n, MOST_PLACED >> 2))
        summary = Summary(records, places=np.tile(place, len(SPREADS)) * records, place_squares=squares * records)
        return likely_noise95(self, summary, self.noises)

    def least_records(self, drawn: Drawn, level: float) -> FloatArray:
        return self._records(drawn).sum(axis=0) - self._reach(drawn, np.ones((3, 1)), level)

    @property
    def _eps_of_sums(self) -> Fraction:
        """The eps of the three sums."""
        return self.eps

    def _reach(self, drawn: Drawn, weights: FloatArray, level: float) -> FloatArray:
        """Bound on the error of the sums with these weights, of shape (3, ..., G); the result lacks the first axis."""
        return critical(weights.reshape(3, -1), level).reshape(weights.shape[1:]) / float(self._eps_of_sums)

    def _records(self, drawn: Drawn) -> FloatArray:
        """The noisy sums in units of one record, shape (3, G)."""
        return drawn.astype(np.float64) / PLACES

    def _factor(self, n: FloatArray) -> FloatArray:
        """n / (n - ddof), 2 at most; 0 without records."""
        if self._ddof == 0:
            return np.ones(n.shape)
        return np.where(n > 1, np.minimum(n / np.maximum(n - 1, 0.5), 2.0), 0.0)

    def _answer(self, spread: FloatArray) -> FloatArray:
        """A variance on [0, 1] as the answer, within its range."""
        low, high = self.statistic.value_range(self.universe)
        scaled = np.maximum(spread, 0.0)
        width = self.universe.width
        return np.clip(np.sqrt(scaled) * width if isinstance(self.statistic, Std) else scaled * width**2, low, high)

    def _placed(self, mean: FloatArray) -> FloatArray:
        """A mean on [0, 1] as the answer, within the bounds."""
        lo, hi = self.universe.lo, self.universe.hi
        return np.clip(lo + self.universe.width * np.clip(mean, 0.0, 1.0), lo, hi)

    @property
    def _ddof(self) -> int:
        return self.statistic.ddof if isinstance(self.statistic, Var) else 0

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record at a bound; a record between moves several sums by less

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + 3 * groups * on_lattice(float(self.eps) / PLACES))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        return self._lines(records) * (self.universe.width / PLACES), self.universe.width / (2 * float(self.eps))

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        apart = (self._lines(summary.highest[0]) - self._lines(summary.lowest[0])).max(axis=0)
        return np.where(summary.n > 0, 2 * float(self.eps) * apart / PLACES, 0.0)

    def _lines(self, records: FloatArray) -> FloatArray:
        """``i2`` and ``S - i0`` of each record, which both rise with it, shape (2, ...)."""
        k: IntArray = PlaceGrid.of(self.universe).placed(records).astype(np.int64)
        return np.stack([square_of_place(k), 2 * k - square_of_place(k)]).astype(np.float64)


def moments(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of w and mean of its square; 0 without records."""
    n = sums.sum(axis=0)
    n = np.where(n > 0, n, np.inf)
    return (sums[1] / 2 + sums[2]) / n, sums[2] / n


def influence(mean: FloatArray, spread: FloatArray) -> FloatArray:
    """How far a unit of noise in each of the three sums moves n times the variance, shape (3, ...)."""
    return np.stack([mean**2 - spread, -mean * (1 - mean) - spread, (1 - mean) ** 2 - spread])


@lru_cache(maxsize=32)
def _critical(level: float) -> FloatArray:
    """Bound on the noise of ``(1 - m) (B1/2 + B2) - m (B0 + B1/2)``, of scale 1 each, for `mean_interval`."""
    m = np.arange(CELLS + 1) / CELLS
    bounds = critical(np.stack([m, np.abs(m - 0.5), 1 - m]), level)
    # Where two scales are the same, `critical` is a little too large. A line between the neighbours is above it, too.
    for same in (CELLS // 4, CELLS // 2, 3 * CELLS // 4):
        bounds[same] = (bounds[same - 1] + bounds[same + 1]) / 2
    return bounds
