"""Estimates of inequality from noisy numbers of people in income bins, with intervals by the law of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._answer.arithmetic.forms import Linear, Ratio, form_of
from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._core.summary import FloatArray
from pdrisk._core.surveys.inequality import (
    cleaned,
    gini,
    gini_range,
    gini_slopes,
    part_below,
    quantile,
    quantile_edges,
    quintile_ratio,
)
from pdrisk._mechanisms.laws.laplace_sums import bound_of_sum, coarseness

Estimates = tuple[FloatArray, FloatArray, FloatArray]  # value, low, high
Measure = Callable[[FloatArray, FloatArray], FloatArray]  # of noisy numbers and the variance of their noise, by row

LEVEL: Final = 0.95
# Of the poverty line and of the share below it, so that both hold at once. The line's ends are edges of bins, which a
# higher level hardly moves.
LINE_LEVEL, SHARE_LEVEL = 0.99, 0.96
# Of the bootstrap of S80/S20 around bins that cleaning has moved: at .95 it holds .89 to .94 of the time.
SURER: Final = 0.99
DRAWS: Final = 999
SEED: Final = 8020  # public: it decides no noise that hides anybody, only how an interval is computed from noisy bins
PIECE: Final = 2**21  # numbers that are drawn at a time


@dataclass(frozen=True)
class IncomeBins:
    """Noisy numbers of people in income bins, by group, and of all groups together."""

    numbers: FloatArray  # uncut; those of G groups, and where there are several their sum in a last row; shape (R, B)
    edges: FloatArray  # shape (B + 1,)
    cells: Linear  # the G B noisy numbers with their law, group by group
    # `scale`, `unit`, `variance`: of the noise of one cell: with weights in units of weight, whose scale is the
    # largest weight over eps
    scale: float
    unit: float
    variance: float
    line: float  # poverty line as a share of the median of all

    @classmethod
    def of(cls, measured: Measurements, edges: FloatArray, line: float) -> IncomeBins:
        """Bins from what was measured of G B cells."""
        cells = form_of(measured)
        assert isinstance(cells, Linear)
        numbers = cells.value().reshape(-1, len(edges) - 1)
        if len(numbers) > 1:
            numbers = np.concatenate([numbers, numbers.sum(axis=0, keepdims=True)])
        law = measured.law
        return cls(numbers, edges, cells, float(law.scale), float(law.unit), law.variance, line)

    @property
    def times(self) -> FloatArray:
        """How many cells each number of a row is the sum of, shape (R,)."""
        counts = np.ones(len(self.numbers))
        counts[-1] = max(len(counts) - 1, 1)
        return counts

    @property
    def clean(self) -> FloatArray:
        """The numbers moved to at least 0, with the same totals."""
        return cleaned(self.numbers)

    @property
    def is_crowded(self) -> NDArray[np.bool_]:
        """Whether one bin seems to hold more than half of the people of a row, shape (R,)."""
        return np.asarray(self.clean.max(axis=1) > self.clean.sum(axis=1) / 2)

    def gini(self) -> Estimates:
        """Gini coefficients: without bias but for that of a quotient, with noise around clean bins, and their range.

        How far noise reaches is the larger of two numbers: by the derivatives, of the exact law, which is right for
        many people, and by a bootstrap, which is larger where few people make the quotient bend.
        """
        clean = self.clean
        middle, (least, most) = gini(clean, self.edges), gini_range(clean, self.edges)

        def bounded(numbers: FloatArray, variance: FloatArray) -> FloatArray:
            return np.clip(gini(numbers, self.edges, variance), 0.0, 1.0)

        value = bounded(self.numbers, self.variance * self.times)
        straight = self._sums(gini_slopes(clean, self.edges)).reach(LEVEL)
        reach = np.maximum(straight, self._bootstrapped(bounded, middle, LEVEL))
        known = ~np.isnan(value + middle)
        low = np.where(known, value - reach - (middle - least), 0.0)
        high = np.where(known, value + reach + (most - middle), 1.0)
        return np.where(known, value, np.nan), np.maximum(low, 0.0), np.minimum(high, 1.0)

    def poverty(self) -> Estimates:
        """Shares of people below the line: ratios of noisy sums, from the lowest line that may be to the highest."""
        median = self.quantile(0.5, LINE_LEVEL)
        line, lowest, highest = (self.line * float(estimates[-1]) for estimates in median)
        parts = part_below(self.edges, line), part_below(self.edges, lowest), part_below(self.edges, highest)
        everybody = self._sums(np.ones(self.numbers.shape))

        def shares(weights: FloatArray) -> Ratio:
            return Ratio(self._sums(np.broadcast_to(weights, self.numbers.shape)), everybody)

        value = shares(np.nan_to_num(parts[0])).value()
        low, _ = shares(np.floor(parts[1])).interval(SHARE_LEVEL)
        _, high = shares(np.ceil(parts[2])).interval(SHARE_LEVEL)
        value, low, high = (np.clip(share, 0.0, 1.0) for share in (value, low, high))
        value = np.where(math.isnan(line), np.nan, value)
        return value, np.fmin(low, value), np.fmax(high, value)

    def median(self) -> Estimates:
        """Medians, between edges."""
        return self.quantile(0.5)

    def quantile(self, q: float, level: float = LEVEL) -> Estimates:
        """Quantiles, between edges of bins."""
        number = self.numbers.shape[1]
        # Of F - q N, the noise of k bins below an edge counts 1 - q times, and that of the others q times.
        weights = np.broadcast_to(np.array([1 - q, q])[:, np.newaxis, np.newaxis], (2, len(self.numbers), number + 1))
        bins = np.arange(number + 1)
        times = self.times[:, np.newaxis] * np.stack([bins, number - bins])[:, np.newaxis]
        flat = weights.reshape(2, -1), times.reshape(2, -1)
        used_weights = np.where(flat[1] > 0, flat[0], 0.0)
        reach = bound_of_sum(used_weights * self.scale, level, flat[1]) + (used_weights * self._coarse).max(axis=0)
        low, high = quantile_edges(self.numbers, self.edges, q, reach.reshape(weights.shape[1:]) + self._slack)
        value = quantile(self.clean, self.edges, q)
        return value, np.fmin(low, value), np.fmax(high, value)

    def s80s20(self) -> Estimates:
        """Quintile share ratios, with bootstrap intervals of their logarithms around the range of clean bins."""
        clean = self.clean
        value, least, most = quintile_ratio(clean, self.edges)

        def logarithm(numbers: FloatArray, _: FloatArray) -> FloatArray:
            return np.log(quintile_ratio(cleaned(numbers), self.edges)[0])

        factor = np.exp(self._bootstrapped(logarithm, np.log(value), SURER))
        some = np.isfinite(factor)
        low = np.where(some, least / np.where(some, factor, 1.0), 1.0)
        return value, np.fmax(low, 1.0), np.where(some, most * factor, np.inf)

    def _bootstrapped(self, measure: Measure, middle: FloatArray, level: float) -> FloatArray:
        """How far a measure of clean bins plus noise is from that of clean bins, with this probability at most.

        The draws come from a public seed: the same bins have the same interval, whoever computes it and how often, and
        a group's does not depend on the other groups.
        """
        clean, times = self.clean, self.times
        kinds, number = np.unique(np.append(1.0, times)), clean.shape[1]
        random = np.random.default_rng(SEED)
        # A Laplace variable is the difference of two exponential ones, and a sum of k of two gamma variables.
        drawn = np.stack([self.scale * np.subtract(*random.standard_gamma(k, (2, DRAWS, number))) for k in kinds])
        distances, rank = np.empty(len(clean)), math.ceil(level * (DRAWS + 1)) - 1
        size = max(PIECE // (DRAWS * number), 1)
        for start in range(0, len(clean), size):
            piece = slice(start, start + size)
            noise = drawn[np.searchsorted(kinds, times[piece])]
            noisy = (clean[piece, np.newaxis] + noise).reshape(-1, number)
            measures = measure(noisy, np.repeat(self.variance * times[piece], DRAWS)).reshape(-1, DRAWS)
            off = np.abs(measures - middle[piece, np.newaxis])
            distances[piece] = np.sort(np.where(np.isnan(off), np.inf, off), axis=1)[:, rank]
        return distances

    @property
    def _coarse(self) -> float:
        return float(coarseness(np.array([self.scale]), np.array([self.unit]))[0])

    @property
    def _slack(self) -> FloatArray:
        """How far all numbers of a row may be off together by rounding, shape (R, 1)."""
        return self.times[:, np.newaxis] * self.cells.slack.max(initial=0.0) * self.numbers.shape[1]

    def _sums(self, weights: FloatArray) -> Linear:
        """Sums of the numbers of each row, with weights of shape (R, B)."""
        rows, number = weights.shape
        groups = self.cells.size // number
        into, source = np.repeat(np.arange(groups), number), np.arange(self.cells.size)
        weight = weights[:groups].ravel()
        if rows > groups:
            into = np.concatenate([into, np.full(len(source), groups)])
            source, weight = np.tile(source, 2), np.concatenate([weight, np.tile(weights[-1], groups)])
        return self.cells.gathered(into, source, weight, rows)
