"""Forms: sums and ratios of measured numbers, with the exact law of their noise; R of them at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._answer.arithmetic.noises import LEAST, MOST, SCALE, UNIT, VALUE, Noises, aligned, different, sums
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.laws.laplace_sums import bound_of_sum, coarseness
from pdrisk._mechanisms.laws.ratio_ends import upper_end
from pdrisk._mechanisms.laws.whole_sums import MOST_POINTS, SUREST, critical_of_whole, points_for

Ends = tuple[FloatArray, FloatArray]

CLOSE: Final = 2.0**-40  # of weights that are multiples of another one
MOST_LAWS: Final = 256  # different laws of whole sums that are inverted for one answer; else all are bounded


@dataclass(frozen=True)
class Linear:
    """Sums of noisy numbers with weights: R of them, each plus a constant."""

    noises: Noises
    constant: FloatArray  # shape (R,)
    slack: FloatArray  # how far the exact sum may be off beside the noise, by rounding; shape (R,)
    whole: bool = False  # whether all exact sums are whole numbers

    @classmethod
    def constants(cls, numbers: FloatArray) -> Linear:
        """Numbers without noise."""
        return cls(
            Noises.none(),
            numbers,
            np.zeros(len(numbers)),
            bool((np.isnan(numbers) | (numbers == np.rint(numbers))).all()),
        )

    @property
    def size(self) -> int:
        """R, the number of sums."""
        return len(self.constant)

    @property
    def is_constant(self) -> bool:
        """Whether no noise is in any of them."""
        return not len(self.noises.weight)

    def value(self) -> FloatArray:
        """The noisy sums, uncut; whole where the exact ones are; NaN where a part is withheld."""
        noisy_sums = self.constant + self._sums(self.noises.weight * self.noises.facts[:, VALUE])
        return np.rint(noisy_sums) if self.whole else noisy_sums

    def range(self) -> Ends:
        """Range of the exact sums."""
        weight, least, most = self.noises.weight, self.noises.facts[:, LEAST], self.noises.facts[:, MOST]
        ends = weight * np.where(weight > 0, [least, most], [most, least])
        return self.constant + self._sums(ends[0]), self.constant + self._sums(ends[1])

    def plus(self, other: Linear) -> Linear:
        """The sums plus others."""
        return Linear(
            self.noises.plus(other.noises),
            self.constant + other.constant,
            self.slack + other.slack,
            self.whole and other.whole,
        )

    def times(self, factor: FloatArray) -> Linear:
        """The sums, each times a number."""
        noises = replace(self.noises, weight=self.noises.weight * factor[self.noises.row])
        whole = self.whole and bool((factor == np.rint(factor)).all())
        some = noises.chosen(noises.weight != 0)
        return Linear(some, self.constant * factor, self.slack * np.abs(factor), whole)

    def gathered(self, into: IntArray, source: IntArray, weight: FloatArray, size: int) -> Linear:
        """New sums: sum ``into[i]`` of them has the sum ``source[i]`` of these as a part, times ``weight[i]``.

        ``into, source``: shape (m,)
        ``weight``: shape (m,)
        ``size``: how many new sums there are.
        """
        starts = np.searchsorted(self.noises.row, np.arange(self.size + 1))
        lengths = np.diff(starts)[source]
        before = np.cumsum(lengths) - lengths
        places = np.repeat(starts[source] - before, lengths) + np.arange(lengths.sum())
        parts = self.noises.chosen(places)
        return Linear(
            parts.moved(np.repeat(into, lengths), parts.weight * np.repeat(weight, lengths)),
            sums(into, self.constant[source] * weight, size),
            sums(into, self.slack[source] * np.abs(weight), size),
            self.whole and bool((weight == np.rint(weight)).all()),
        )

    def reach(self, level: float) -> FloatArray:
        """Bound that noise and rounding of each sum keep with probability ``level``, shape (R,)."""
        weight, facts = np.abs(self.noises.weight), self.noises.facts
        weights, scales, units, times = different(self.noises.row, [weight, facts[:, SCALE], facts[:, UNIT]], self.size)
        lattice = np.ones(self.size) if self.whole else np.min(weights, axis=0, where=times > 0, initial=np.inf)
        lattice = np.where(np.isfinite(lattice), lattice, 1.0)
        steps = np.rint(weights / lattice)
        is_lattice = (units[times > 0] == 1).all() and (np.abs(weights / lattice - steps) <= CLOSE * steps).all()
        bounds = _exact(np.stack([steps, times, scales]), level) if is_lattice and level <= SUREST else None
        if bounds is not None:  # of multiples of the lattice, the last of which rounding must not leave out
            bounds = bounds if self.whole else bounds * lattice * (1 + CLOSE)
        else:
            bounds = bound_of_sum(weights * scales, level, times) + (weights * coarseness(scales, units)).max(axis=0)
            bounds = np.floor(bounds) if self.whole else bounds
        return bounds + (np.floor(self.slack) if self.whole else self.slack)

    def interval(self, level: float) -> Ends:
        """Ends between which the exact sums lie, uncut; NaN where a part is withheld."""
        value, reach = self.value(), self.reach(level)
        return value - reach, value + reach

    def _sums(self, terms: FloatArray) -> FloatArray:
        return sums(self.noises.row, terms, self.size)


def _exact(laws: FloatArray, level: float) -> FloatArray | None:
    """Exact bounds of whole sums, those of one law computed once; None if laws are too many, or one is too wide.

    ``laws``: shape (3, m, R). Weights, numbers of times and scales.
    """
    if not laws.shape[2]:
        return np.zeros(0)
    columns, place = np.unique(laws.reshape(-1, laws.shape[2]), axis=1, return_inverse=True)
    if columns.shape[1] > MOST_LAWS:
        return None
    listed = []
    for column in columns.T.reshape(-1, 3, laws.shape[1]):
        terms = column[:, column[1] > 0].T.tolist()
        listed.append(tuple((int(weight), int(number), scale) for weight, number, scale in terms))
    if any(points_for(terms) > MOST_POINTS for terms in listed if len(terms) > 1 or (terms and terms[0][1] > 1)):
        return None
    bounds = [critical_of_whole(terms, level) if terms else 0 for terms in listed]
    return np.array(bounds, dtype=np.float64)[place.reshape(-1)]


@dataclass(frozen=True)
class Ratio:
    """Ratios of sums of noisy numbers: R of them."""

    top: Linear
    bottom: Linear

    @property
    def size(self) -> int:
        """R, the number of ratios."""
        return self.top.size

    def value(self) -> FloatArray:
        """The ratios of the noisy sums, within their range; NaN where the lower sum is 0 or of an impossible sign."""
        top, bottom, sign = self.top.value(), self.bottom.value(), self._sign()
        bottom = np.where(bottom * sign > 0, bottom, np.nan)
        return np.clip(top / bottom, *self.range())

    def _sign(self) -> FloatArray:
        """The sign of the lower sum, where it can have one only; else that of its value."""
        low, high = self.bottom.range()
        return np.where(low >= 0, 1.0, np.where(high <= 0, -1.0, np.sign(self.bottom.value())))

    def range(self) -> Ends:
        """Range of the exact ratios.

        ``sum n_j z_j / sum d_j z_j`` is a mean of all ``n_j / d_j`` with weights ``d_j z_j``, if none of these is
        negative; a constant counts as one number more, which is 1. Otherwise nothing is known.
        """
        noises, top, bottom = aligned(self.top.noises, self.bottom.noises)
        rows = np.concatenate([noises.row, np.arange(self.size)])
        top, bottom = np.append(top, self.top.constant), np.append(bottom, self.bottom.constant)
        least = np.append(noises.facts[:, LEAST], np.ones(self.size))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(bottom == 0, np.where(top == 0, np.nan, np.copysign(np.inf, top)), top / bottom)
        low, high = np.full(self.size, np.inf), np.full(self.size, -np.inf)
        np.fmin.at(low, rows, ratio)
        np.fmax.at(high, rows, ratio)
        unknown = (sums(rows, ((bottom < 0) | (least < 0)).astype(np.float64), self.size) > 0) | (low > high)
        return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)

    def interval(self, level: float) -> Ends:
        """Ends of all r in the range for which ``top - r bottom`` is within its likely noise (Fieller 1954).

        The whole range where the lower sum may be 0.
        """
        sign = self._sign()
        top, bottom = self.top.times(sign), self.bottom.times(sign)
        low, high = self.range()
        below, reach = bottom.value(), bottom.reach(level)
        known = below > reach
        middle = np.where(known, self.value(), 0.0)
        noises, above, under = aligned(top.noises, bottom.noises)
        columns = [above, under, noises.facts[:, SCALE], noises.facts[:, UNIT]]
        above, under, scales, units, times = different(noises.row, columns, self.size)
        coarse = coarseness(scales, units)
        at = np.flatnonzero(known & np.isfinite(middle))

        def end(side: float, limit: FloatArray) -> FloatArray:
            def bound(r: FloatArray) -> FloatArray:
                weights = np.abs(side * above[:, at] - r * under[:, at])
                noise = bound_of_sum(weights * scales[:, at], level, times[:, at])
                return noise + (weights * coarse[:, at]).max(axis=0) + top.slack[at] + np.abs(r) * bottom.slack[at]

            signed_ends = side * limit
            signed_ends[at] = np.minimum(upper_end(side * middle[at], below[at], bound), signed_ends[at])
            return side * signed_ends

        ends = end(-1.0, low), end(1.0, high)
        withheld = np.isnan(self.top.value()) | np.isnan(below)
        return np.where(withheld, np.nan, ends[0]), np.where(withheld, np.nan, ends[1])


def form_of(measured: Measurements) -> Linear | Ratio | None:
    """The answers of G cells as forms; None where they are neither sums nor ratios of what was measured."""
    law, size = measured.law, len(measured.cells)
    if not law.top:
        return None
    several = law.numbers > 1
    number = np.maximum(measured.numbers.sum(axis=0), 1.0) if several else np.ones(size)
    slack = law.rounding * np.nan_to_num(number, nan=1.0)
    top = Linear(Noises.of(measured, law.top), np.full(size, law.constant), slack, law.whole)
    if not law.bottom:
        return top
    return Ratio(top, Linear(Noises.of(measured, law.bottom), np.zeros(size), np.zeros(size)))
