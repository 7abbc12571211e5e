"""Exact sampler of the discrete Laplace distribution: proved in docs/numbers.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.noise.entropy import Bits, Words, system_bits
from pdrisk._mechanisms.noise.exact_uniform import ExactUniform, scaled_exp

FIRST = 12  # bits of a uniform that decide most draws
KNOWN = 32  # bits of it that tables and floats decide all but a few in a million by
ONE = 2**KNOWN
IN_ONE_WORD = 64 - 2 * FIRST - 1  # bits of the low part, beside both uniforms and the sign
COARSE = 16  # the high part's scale, or up to twice that: the low part is then kept in 31 of 32 cases or more
GUARD = 96  # more bits than tables hold
FEW = 4  # draws that take less time one by one: a call of numpy takes longer than what it computes of so few
PIECE = 2**13  # draws at a time, whose arrays stay in the processor's cache
WIDEST = 2**58
INT64_MAX = np.uint64(2**63 - 1)
INT64_MIN = np.uint64(2**63)  # how far below 0

Flags = NDArray[np.bool_]


def discrete_laplace_noise(size: int, scale: Fraction, bits: Bits = system_bits) -> IntArray:
    """Independent integers k with probabilities proportional to ``exp(-|k| / scale)``, exactly.

    ``scale``: above 0 and below 2**58.
    ``bits``: source of random bits.
    Returns: shape (size,). What is beyond 64 bits is moved to their end.
    """
    return plus_discrete_laplace(np.zeros(size, dtype=np.int64), scale, bits)


def plus_discrete_laplace(exact: IntArray, scale: Fraction, bits: Bits = system_bits) -> IntArray:
    """Integers within ±2**62, shape (n,), plus independent `discrete_laplace_noise`.

    Returns: shape (n,). Sums beyond 64 bits are moved to their end. That is done to the exact sum, so it costs no
        privacy.
    """
    law = _law_of(scale.numerator, scale.denominator)
    if not 0 < len(exact) <= FEW:
        return _of_many(law, exact, None, bits)
    noisy, left = exact.tolist(), list(range(len(exact)))
    while left:
        words = bits(len(left))
        sums = _of_few(law, [noisy[at] for at in left], words.tolist())
        if sums is None:
            result = np.array(noisy, dtype=np.int64)
            result[left] = _of_many(law, result[left], words, bits)
            return result
        for at, number in zip(left, sums, strict=True):
            noisy[at] = noisy[at] if number is None else number
        left = [at for at, number in zip(left, sums, strict=True) if number is None]
    return np.array(noisy, dtype=np.int64)


def _of_many(law: _Law, exact: IntArray, words: Words | None, bits: Bits) -> IntArray:
    """The same in arrays; of the words first, where some are drawn already."""
    result = np.empty(exact.shape, dtype=np.int64)
    missing = np.arange(len(exact))
    while len(missing):
        rejected = []
        for start in range(0, len(missing), PIECE):
            at = missing[start : start + PIECE]
            magnitude, negative, kept = _tried(law, bits(len(at)) if words is None else words, bits)
            words = None
            result[at] = _sum(exact[at], magnitude, negative)
            rejected.append(at[~kept])
        missing = np.concatenate(rejected)
    return result


@dataclass(frozen=True, slots=True)
class _Law:
    """A distribution on 0, 1, 2, ... with probabilities proportional to ``exp(-k / scale)``, in two parts.

    ``k = high * 2**shift + low``, low below ``2**shift``: the parts are independent.
    """

    scale: Fraction
    shift: int  # 0 for small scales, which have no low part
    thresholds: IntArray  # ``floor(2**32 * P(high >= k))`` for k from the first where that is 0 down to 1
    # the high part for uniforms that begin with 12 given bits; -1 where these do not decide it; shape (4096,)
    cells: NDArray[np.int16]
    per_unit: float  # ``2**32 / scale``; used with a low part only

    @property
    def most(self) -> int:
        """A high part that stands for all higher ones, with which every sum is beyond 64 bits."""
        return (2**64 - 1) >> self.shift


@lru_cache(maxsize=64)
def _law_of(numerator: int, denominator: int) -> _Law:
    """The law of a scale, known by whole numbers: to look a fraction up takes as long as a few draws."""
    scale = Fraction(numerator, denominator)
    if not 0 < scale < WIDEST:
        raise ValueError(f"the scale must be above 0 and below {WIDEST}")
    return _law(scale)


def _law(scale: Fraction) -> _Law:
    shift = max(0, (scale.numerator // (COARSE * scale.denominator)).bit_length() - 1)
    step = 2**shift / scale  # P(high >= k) = exp(-k * step)
    low, high = scaled_exp(step, KNOWN + GUARD)
    least, most = low, high
    falling: list[int] = []
    while not falling or falling[-1]:
        floor = least >> GUARD
        falling.append(floor if floor == most >> GUARD else _floor(step * (len(falling) + 1)))
        least, most = least * low >> (KNOWN + GUARD), (most * high >> (KNOWN + GUARD)) + 1
    thresholds = np.array(falling[::-1], dtype=np.int64)
    edges = np.arange(2**FIRST + 1) << (KNOWN - FIRST)
    before = np.searchsorted(thresholds, edges, side="left")
    cells = np.where(before[:-1] == before[1:], len(thresholds) - before[:-1], -1).astype(np.int16)
    return _Law(scale, shift, thresholds, cells, float(ONE / scale) if shift else math.inf)


def _floor(exponent: Fraction) -> int:
    """``floor(2**32 * exp(-exponent))``: with enough bits both bounds agree, as exp(-exponent) is irrational."""
    guard = GUARD
    while True:
        guard *= 2
        low, high = scaled_exp(exponent, KNOWN + guard)
        if low >> guard == high >> guard:
            return low >> guard


def _of_few(law: _Law, exact: list[int], words: list[int]) -> list[int | None] | None:
    """What `_of_many` makes of these words, by the same decisions: None for a number that is tried again.

    None instead of all of them if the words leave one open.
    """
    if law.shift > IN_ONE_WORD:
        return None
    sums: list[int | None] = []
    for number, word in zip(exact, words, strict=True):
        magnitude = int(law.cells[word >> 64 - FIRST])
        if magnitude < 0:
            return None
        if law.shift:
            low, first = word >> 1 & 2**law.shift - 1, word >> 64 - 2 * FIRST & 2**FIRST - 1
            if (first + 1 << KNOWN - FIRST) + low * law.per_unit > ONE - 1:
                return None
            magnitude = magnitude << law.shift | low
        if word & 1:
            sums.append(number - magnitude if magnitude else None)  # else 0 would come from both signs
        else:
            sums.append(number + magnitude)  # within 64 bits: it is below 2**50
    return sums


def _tried(law: _Law, words: Words, bits: Bits) -> tuple[Words, Flags, Flags]:
    """One attempt for each number: magnitudes, signs, and which are kept; the others are tried again.

    The bits of a word: 12 of the high part's uniform, 12 of the low part's, the low part, and at the end the sign.
    """
    size = len(words)
    negative = (words & np.uint64(1)).astype(np.bool_)
    magnitude = _high(law, (words >> np.uint64(64 - FIRST)).view(np.int64), bits)
    if law.shift == 0:
        return magnitude, negative, (magnitude != 0) | ~negative  # else 0 would come from both signs
    if law.shift <= IN_ONE_WORD:
        low = (words >> np.uint64(1)) & np.uint64(2**law.shift - 1)
    else:
        low = bits(size) >> np.uint64(64 - law.shift)
    first = (words >> np.uint64(64 - 2 * FIRST)) & np.uint64(2**FIRST - 1)
    kept = _is_kept(law, low.view(np.int64), first.view(np.int64), bits)
    magnitude <<= np.uint64(law.shift)
    magnitude |= low
    kept &= (magnitude != 0) | ~negative
    return magnitude, negative, kept


def _extended(first: IntArray, bits: Bits) -> IntArray:
    """First 32 bits of uniforms whose first 12 bits are known."""
    return (first << (KNOWN - FIRST)) | (bits(len(first)) >> np.uint64(64 - KNOWN + FIRST)).view(np.int64)


def _high(law: _Law, first: IntArray, bits: Bits) -> Words:
    """The high parts: how many k from 1 on have ``u < P(high >= k)``, for uniforms u with these first bits."""
    cells = law.cells[first]
    parts = cells.astype(np.uint64)  # -1 becomes something that is written over
    unclear = np.flatnonzero(cells < 0)
    if len(unclear):
        known = _extended(first[unclear], bits)
        at = np.searchsorted(law.thresholds, known, side="right")
        counted = (len(law.thresholds) - at).astype(np.uint64)
        # Where known is a threshold itself, later bits decide on which side of it u lies.
        for tie in np.flatnonzero(law.thresholds[at - 1] == known):
            counted[tie] = _counted(law, ExactUniform(int(known[tie]), KNOWN, bits), int(counted[tie]))
        parts[unclear] = counted
    return parts


def _counted(law: _Law, uniform: ExactUniform, certain: int) -> int:
    """Number of k from 1 on with ``u < P(high >= k)``; some of them are certain already."""
    step = 2**law.shift / law.scale
    while certain < law.most and uniform.is_below_exp((certain + 1) * step):
        certain += 1
    return certain


def _is_kept(law: _Law, low: IntArray, first: IntArray, bits: Bits) -> Flags:
    """Whether ``u < exp(-low / scale)``, for uniforms u with these first bits.

    In units of 2**-32 of the uniform, y = 2**32 low / scale is below 2**28, and every float is off by less than 1/2.
    """
    y = low * law.per_unit
    kept: Flags = ((first + 1) << (KNOWN - FIRST)) + y <= ONE - 1  # u < first + 1, and exp(-x) >= 1 - x
    unclear = np.flatnonzero(~kept)
    if len(unclear):
        known = _extended(first[unclear], bits)
        x = y[unclear] / ONE
        above = (1 - x + x * x / 2) * ONE
        below: FloatArray = above - x * x * x / 6 * ONE  # exp(-x) lies between the two
        is_below = known + 2 <= below
        for tie in np.flatnonzero(~is_below & (known - 1 < above)):
            uniform = ExactUniform(int(known[tie]), KNOWN, bits)
            is_below[tie] = uniform.is_below_exp(int(low[unclear[tie]]) / law.scale)
        kept[unclear] = is_below
    return kept


def _sum(exact: IntArray, magnitude: Words, negative: Flags) -> IntArray:
    """Exact sums in uint64, where nothing is lost on the way; beyond int64 moved to its ends."""
    base = exact.view(np.uint64)
    moved = np.minimum(magnitude, np.where(negative, base + INT64_MIN, INT64_MAX - base))
    return np.where(negative, base - moved, base + moved).view(np.int64)
