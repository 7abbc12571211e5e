"""Two-sums mechanism: noisy distances from both ends, at the full eps each, for means (Kulesza, Suresh & Wang 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, MOST_PLACED, PLACES, PlaceGrid
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Count, Mean, Statistic, Sum
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._mechanisms.contract.base import Drawn, Mechanism, likely_noise95
from pdrisk._mechanisms.laws.fieller import CELLS, FEW, LARGEST_EPS, interval_of_one, mean_interval
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk._mechanisms.totals import is_total, law_of_parts, total, total_interval, total_reach
from pdrisk.errors import ParameterError

HALVINGS = 60
SHARES = 64  # means between the bounds of which the widest interval is looked for


@dataclass(frozen=True, slots=True)
class TwoSums(Mechanism):
    """A mean, sum or number of records from the noisy sums of all distances from lo and from hi.

    Notes
    -----
    A record's place k, a whole number from 0 to S = `PLACES`, counts k in ``U`` and ``S - k`` in ``V``: adding or
    removing it changes (U, V) by exactly S in the L1 norm, whatever the record. So ``a = U + DLap(S/eps)`` and
    ``b = V + DLap(S/eps)`` cost eps together (Kulesza, Suresh & Wang, ICML 2024, arXiv 2312.06658: the K-norm mechanism
    of the pair), nothing is split, and everybody bears the same loss. The mean is ``lo + R a / (a + b)``, the sum
    ``(hi a + lo b) / S`` and the number of records ``(a + b) / S``.

    Between the worlds without one record or another, U and V move by ``|k_i - k_j|`` each: a loss of
    ``2 eps |x_i - x_j| / R``.
    """

    name: ClassVar[str] = "two_sums"
    noise: ClassVar[str] = "discrete Laplace noise of scale (hi - lo)/eps on the sums of distances from both bounds"
    is_even: ClassVar[bool] = True
    noises: ClassVar[int] = 2

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Mean | Sum)

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        return is_total(statistic) or type(statistic) is Mean

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        return cls.answers(statistic) or cls.joins(statistic)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        if type(statistic) is Count:
            return statistic.needs  # drawn from the records of another line
        needs = Needs(places=True, ends=True)
        return needs if isinstance(statistic, Mean) else statistic.needs | needs

    @property
    def draws(self) -> Needs:
        return Needs() if type(self.statistic) is Count else Needs(places=True)

    def check(self) -> None:
        super(TwoSums, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                'or more, or with mechanism="laplace".'
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        return sampler(self._sums(summary), PLACES, self.eps)

    def _sums(self, summary: Summary) -> IntArray:
        """The sums of distances from lo and from hi."""
        assert summary.places is not None
        # What one sum no longer holds goes into the other: together they move by PLACES at most, whatever their size.
        above = np.minimum(summary.places, LARGEST_PLACES)
        below = np.minimum(np.minimum(summary.n, MOST_PLACED) * PLACES - above, LARGEST_PLACES)
        return np.array([above, below])

    def value(self, drawn: Drawn) -> NDArray[Any]:
        if is_total(self.statistic):
            return total(self.statistic, self.universe, self._parts(drawn))
        return self._answer(self._share(drawn))

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Fieller's interval of a mean, and at least the value itself."""
        if is_total(self.statistic):
            return total_interval(self.statistic, self.universe, self._parts(drawn), float(self.eps), level)
        if drawn.shape[1] <= FEW:
            ends = [self._ends(above, below, _critical(level)) for above, below in zip(*drawn.tolist(), strict=True)]
            return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
        above, below = drawn / PLACES
        low, high = mean_interval(above, below, float(self.eps), _critical(level))
        value, more = self._share(drawn), 1 / PLACES  # to which records are rounded
        low, high = np.minimum(low - more, value), np.maximum(high + more, value)
        return self._answer(low), self._answer(high)

    def _ends(self, above: int, below: int, critical: FloatArray) -> tuple[float, float]:
        """`interval` of one group, by the same operations in the same order: the same floats."""
        eps, a, b = min(float(self.eps), LARGEST_EPS), float(above), float(below)
        low, high = interval_of_one(a / PLACES * eps, b / PLACES * eps, critical)
        share, more = self._share_of_one(a, b), 1 / PLACES
        lo, hi, width = self.universe.lo, self.universe.hi, self.universe.width
        low, high = lo + width * min(low - more, share), lo + width * max(high + more, share)
        return min(max(low, lo), hi), min(max(high, lo), hi)

    def law(self, drawn: Drawn) -> Law | None:
        law = law_of_parts(self.statistic, self.universe, 2, 1 / self.eps)
        return replace(law, top=law.top[::-1])  # drawn the other way round

    def widest_noise95(self, n: int | None) -> float | None:
        """That of the likely noise over all means; more records make each narrower."""
        if is_total(self.statistic):
            return total_reach(self.statistic, self.universe, 2, float(self.eps), 0.95)
        if n is None:
            return None
        shares = np.arange(SHARES + 1) * (PLACES // SHARES)
        records = np.full(shares.shape, min(n, MOST_PLACED >> 2))
        return likely_noise95(self, Summary(records, places=shares * records), self.noises)

    def least_records(self, drawn: Drawn, level: float) -> FloatArray:
        """Noisy number of records, less a bound that the sum of both noises exceeds with probability ``1 - level``."""
        return drawn.astype(np.float64).sum(axis=0) / PLACES - sum_of_two(1 - level) / float(self.eps)

    def _parts(self, drawn: Drawn) -> FloatArray:
        """The noisy distances from hi and from lo, in units of one record, shape (2, G)."""
        return drawn[::-1].astype(np.float64) / PLACES

    def _share(self, drawn: Drawn) -> FloatArray:
        """Place of the mean between the bounds, from 0 to 1; the middle if there seem to be no records."""
        a, b = drawn.astype(np.float64)
        if len(a) <= FEW:
            return np.array(list(map(self._share_of_one, a.tolist(), b.tolist())))
        both = a + b
        share: FloatArray = np.divide(a, both, out=np.full(a.shape, 0.5), where=both > 0)
        return _within(share, 0.0, 1.0)

    @staticmethod
    def _share_of_one(a: float, b: float) -> float:
        """`_share` of one group."""
        return min(max(a / (a + b), 0.0), 1.0) if a + b > 0 else 0.5

    def _answer(self, share: FloatArray) -> FloatArray:
        lo, hi = self.universe.lo, self.universe.hi
        return _within(lo + self.universe.width * share, lo, hi)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record at a bound; a record between moves both sums by less

    def _mu(self, eps: float, groups: int) -> float:
        return mu_of_laplace(eps + 2 * groups * on_lattice(float(self.eps) / PLACES))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        # Records count with their places.
        places = self._places(records) * (self.universe.width / PLACES)
        return -places, self.universe.width / (2 * float(self.eps))

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        apart = self._places(summary.highest[0]) - self._places(summary.lowest[0])
        return np.where(summary.n > 0, 2 * float(self.eps) * apart / PLACES, 0.0)

    def _places(self, records: FloatArray) -> FloatArray:
        return PlaceGrid.of(self.universe).placed(records)


def _within(numbers: FloatArray, low: float, high: float) -> FloatArray:
    """As numpy.clip, which takes more time of few."""
    return np.minimum(np.maximum(numbers, low), high)


def sum_of_two(share: float) -> float:
    """Bound that the sum of two independent Laplace variables of scale 1 exceeds with this probability (up to 1/2).

    It exceeds t with probability ``(2 + t)/4 exp(-t)``.
    """
    low, high = 0.0, 2 - 2 * math.log(share)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if (2 + middle) / 4 * math.exp(-middle) > share else (low, middle)
    return high


def _tail(t: FloatArray, m: FloatArray) -> FloatArray:
    """Probability that ``|(1 - m) X - m Y|`` exceeds t, X and Y independent Laplace variables of scale 1."""
    wide, narrow = np.maximum(m, 1 - m), np.minimum(m, 1 - m)
    apart = wide - narrow
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        general = (wide**2 * np.exp(-t / wide) - np.where(narrow > 0, narrow**2 * np.exp(-t / narrow), 0.0)) / apart
    return np.where(apart > 1e-5, general, (1 + t) * np.exp(-2 * t))


@lru_cache(maxsize=32)
def _critical(level: float) -> FloatArray:
    """Bound that ``|(1 - m) X - m Y|`` keeps with probability ``level``, for m = 0, 1 / CELLS, ..., 1.

    Convex in m and symmetric, so that lines between these points lie above it.
    """
    m = np.arange(CELLS + 1) / CELLS
    low, high = np.zeros(m.shape), np.full(m.shape, -math.log1p(-level))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = _tail(middle, m) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return high
