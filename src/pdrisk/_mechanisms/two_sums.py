"""Two-sums mechanism for means: noisy distances from both ends, at the full eps each (Kulesza, Suresh & Wang 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, MOST_PLACED, PLACES, places_per_unit
from pdrisk._core.statistics import Mean, Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._mechanisms.base import Drawn, Mechanism
from pdrisk._mechanisms.entropy import Bits, system_bits
from pdrisk._mechanisms.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError

__all__ = ["TwoSums"]

CELLS = 1024  # of the unit interval, for critical values: a line between two is off by less than 1e-5
HALVINGS = 60
STEPS = 60  # of Newton's method; some five are needed
CLOSE = 1e-12
PIECE = 2**13  # ends at a time, whose arrays stay in the processor's cache


@dataclass(frozen=True, slots=True)
class TwoSums(Mechanism):
    """A mean from the noisy sums of all distances from lo and from hi; within the bounds.

    Notes
    -----
    A record's place k, a whole number from 0 to S = `PLACES`, counts k in ``U`` and ``S - k`` in ``V``: adding or
    removing it changes (U, V) by exactly S in the L1 norm, whatever the record. So ``a = U + DLap(S/eps)`` and
    ``b = V + DLap(S/eps)`` cost eps together (Kulesza, Suresh & Wang, ICML 2024, arXiv 2312.06658: the K-norm mechanism
    of the pair), nothing is split, and everybody bears the same loss. The mean is ``lo + R a / (a + b)``.

    Between the worlds without one record or another, U and V move by ``|k_i - k_j|`` each: a loss of
    ``2 eps |x_i - x_j| / R``.
    """

    name: ClassVar[str] = "two_sums"
    noise: ClassVar[str] = "discrete Laplace noise of scale (hi - lo)/eps on the sums of distances from both bounds"
    is_even: ClassVar[bool] = True

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, Mean)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        return Needs(places=True, ends=True)

    def check(self) -> None:
        super(TwoSums, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                'or more, or with mechanism="laplace".'
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        assert summary.places is not None
        # What one sum no longer holds goes into the other: together they move by PLACES at most, whatever their size.
        above = np.minimum(summary.places, LARGEST_PLACES)
        below = np.minimum(np.minimum(summary.n, MOST_PLACED) * PLACES - above, LARGEST_PLACES)
        return sampler(np.stack([above, below]), PLACES, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self._answer(self._share(drawn))

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """The hull of all means m in [0, 1] whose ``(1 - m) a - m b`` noise reaches with probability ``1 - level``.

        Fieller's set, and the value itself; where the set is empty, which happens among few records, or the noisy
        number of records is no number of anybody, the whole range.
        """
        a, b = drawn.astype(np.float64) * (float(self.eps) / PLACES)
        critical = _critical(level)
        edges = _left_edge(np.stack([a, b]), np.stack([b, a]), critical)
        unknown = np.isnan(edges[0]) | (a + b <= 0)
        value, more = self._share(drawn), 1 / PLACES  # to which records are rounded
        low = np.where(unknown, 0.0, np.minimum(edges[0] - more, value))
        high = np.where(unknown, 1.0, np.maximum(1 - edges[1] + more, value))
        return self._answer(np.maximum(low, 0.0)), self._answer(np.minimum(high, 1.0))

    def least_records(self, drawn: Drawn, level: float) -> FloatArray:
        """The noisy number of records, less what the sum of both noises exceeds with probability ``1 - level``.

        That of two Laplace variables of scale 1 exceeds t with probability ``(2 + t)/4 exp(-t)``.
        """
        low, high = 0.0, -2 * math.log1p(-level) + 2
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if (2 + middle) / 4 * math.exp(-middle) > 1 - level else (low, middle)
        return drawn.astype(np.float64).sum(axis=0) / PLACES - high / float(self.eps)

    def _share(self, drawn: Drawn) -> FloatArray:
        """Where the mean lies between the bounds, from 0 to 1; the middle if nobody seems to be there."""
        a, b = drawn.astype(np.float64)
        share: FloatArray = np.divide(a, a + b, out=np.full(a.shape, 0.5), where=a + b > 0)
        return np.clip(share, 0.0, 1.0)

    def _answer(self, share: FloatArray) -> FloatArray:
        lo, hi = self.universe.lo, self.universe.hi
        return np.clip(lo + self.universe.width * share, lo, hi)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record at a bound; a record between moves both sums by less

    def loss(self, summary: Summary) -> FloatArray:
        return np.full(summary.n.shape, float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        return np.full(records.shape, float(self.eps))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        # Records count with their places.
        places = self._places(records) * (self.universe.width / PLACES)
        return -places, self.universe.width / (2 * float(self.eps))

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.lowest is not None and summary.highest is not None
        apart = self._places(summary.highest[0]) - self._places(summary.lowest[0])
        return np.where(summary.n > 0, 2 * float(self.eps) * apart / PLACES, 0.0)

    def _places(self, records: FloatArray) -> FloatArray:
        return np.floor((records - self.universe.lo) * places_per_unit(self.universe.width) + 0.5)


def _tail(t: FloatArray, m: FloatArray) -> FloatArray:
    """Probability that ``|(1 - m) X - m Y|`` exceeds t, X and Y independent Laplace variables of scale 1."""
    wide, narrow = np.maximum(m, 1 - m), np.minimum(m, 1 - m)
    apart = wide - narrow
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        general = (wide**2 * np.exp(-t / wide) - np.where(narrow > 0, narrow**2 * np.exp(-t / narrow), 0.0)) / apart
    return np.where(apart > 1e-5, general, (1 + t) * np.exp(-2 * t))


@lru_cache(maxsize=32)
def _critical(level: float) -> FloatArray:
    """What ``|(1 - m) X - m Y|`` stays within with probability ``level``, for m = 0, 1 / CELLS, ..., 1.

    Convex in m and symmetric, so that lines between these points lie above it.
    """
    m = np.arange(CELLS + 1) / CELLS
    low, high = np.zeros(m.shape), np.full(m.shape, -math.log1p(-level))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = _tail(middle, m) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return high


def _left_edge(p: FloatArray, q: FloatArray, critical: FloatArray) -> FloatArray:
    """The smallest m in [0, 1] with ``|(1 - m) p - m q|`` at most its critical value; NaN if there is none.

    ``z = p - m (p + q)`` is linear in m. Between 0, where it is too large, and its root, or 1 if that is accepted, the
    excess of the critical value is convex and rises through 0 once: Newton's method from the right finds it in few
    steps, and never passes it.
    """
    edge = np.empty(p.shape)
    flat = p.ravel(), q.ravel(), edge.ravel()  # of edge: its own memory
    for start in range(0, p.size, PIECE):
        one, other, found = (each[start : start + PIECE] for each in flat)
        found[:] = _left_edge_of_piece(one, other, critical)
    return edge


def _left_edge_of_piece(p: FloatArray, q: FloatArray, critical: FloatArray) -> FloatArray:
    total = p + q
    root = np.divide(p, total, out=np.full(p.shape, np.nan), where=total != 0)
    start = np.where((root > 0) & (root < 1), root, np.where(np.abs(q) <= critical[-1], 1.0, np.nan))
    m = np.where(np.abs(p) <= critical[0], 0.0, start)
    sign = np.sign(p)
    rises = np.append(np.diff(critical), 0.0)
    moving = np.flatnonzero(m > 0)
    for _ in range(STEPS):
        if not len(moving):
            break
        at, of, whole = m[moving], sign[moving], total[moving]
        cell = np.minimum(at * CELLS, CELLS - 1).astype(np.intp)
        rise = rises[cell]
        excess = critical[cell] + rise * (at * CELLS - cell) - of * (p[moving] - at * whole)
        slope = rise * CELLS + of * whole
        step = np.divide(excess, slope, out=np.zeros(at.shape), where=slope > 0)
        m[moving] = np.maximum(at - np.maximum(step, 0.0), 0.0)
        moving = moving[step > CLOSE]
    return m
