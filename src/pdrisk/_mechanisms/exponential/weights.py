"""Weights of the exponential mechanism: an exact table of whole numbers, and the scores that look them up."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pdrisk._core.summary import FloatArray, IntArray

SMALLEST_WEIGHT = 2**128
LONGEST_TABLE = 2**17
FAR = 33  # nats, 48 ln 2: all points beyond the cap together are chosen with probability 2**-48
STEEPEST = 64  # nats from one score to the next: beyond, nothing is gained
BITS = 192  # of the ratio of two weights


@dataclass(frozen=True, slots=True)
class Score:
    """Distance of a point y from the rank asked for, as a whole number; 0 is best.

    ``h(y) = max(0, above (b #{x < y} - t), below (t - b #{x <= y}))`` with ``t = a n + offset``, in a group of n
    records: the quantile a/b has the slopes 1 and 1. With a ``share``, the offset is cut to ``share n`` on either side.

    Notes
    -----
    One record more moves t within ``[least, most]`` of `moves`, which is ``[a, a]`` without a share, and each of the
    two numbers of records by 0 or 1. So it moves the first term within ``[-above most, above (b - least)]``, the second
    within ``[-below (b - least), below most]``, and h, the largest of three numbers that each move within ``[-down,
    up]``, within ``[-down, up]`` too; one record less, within ``[-up, down]``.
    """

    a: int
    b: int
    offset: int = 0
    above: int = 1
    below: int = 1
    share: int = 0

    @property
    def moves(self) -> tuple[int, int]:
        """The least and the most by which one record more moves the target."""
        return (self.a - self.share, self.a) if self.offset < 0 else (self.a, self.a + self.share)

    @property
    def up(self) -> int:
        """The most that one record more can add to a score."""
        least, most = self.moves
        return max(self.below * most, self.above * (self.b - least))

    @property
    def down(self) -> int:
        """The most that one record more can take from a score."""
        least, most = self.moves
        return max(self.above * most, self.below * (self.b - least))

    def target(self, n: IntArray) -> IntArray:
        """``t = a n + offset``, whose offset is ``share n`` at most."""
        if not self.share:
            return self.a * n + self.offset
        cut: IntArray = np.minimum(abs(self.offset), self.share * n)
        return self.a * n + (cut if self.offset >= 0 else -cut)

    def of(self, less: IntArray, up_to: IntArray, target: IntArray) -> IntArray:
        """Scores of points that have so many records below them, and so many up to and with them."""
        scores = np.maximum(self.above * (self.b * less - target), self.below * (target - self.b * up_to))
        return np.maximum(scores, 0, out=scores)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of scores h, ``table[min(h // coarse, cap)]``.

    Notes
    -----
    Let one record more move scores within ``[-down, up]``. Then ``h // coarse`` moves within ``[-ceil(down / coarse),
    ceil(up / coarse)]``, an interval of length ``span``, and so does its minimum with the cap. The ratio of a point's
    weights before and after lies in an interval ``[r**-i, r**j]`` with ``i + j = span``, the ratio of the sums of all
    weights too, and the ratio of the probabilities within ``[r**-span, r**span]``, where ``r**span <= exp(eps)``.
    Flooring keeps it: ``table[h] <= table[h + 1] * ratio``. Privacy holds for any cap.
    """

    table: tuple[int, ...]  # the last is 2**128; each is ``floor(next * ratio)`` with ``1 <= ratio <= exp(unit)``
    shares: FloatArray  # ``table / table[0]``, correctly rounded; shape (cap + 1,)
    coarse: int  # scores that share a weight
    unit: Fraction  # nats from one weight to the next
    span: int  # by how many weights one record can move the points apart from each other: ``unit * span <= eps``

    @classmethod
    def of(cls, score: Score, points: int, eps: Fraction) -> Weights:
        """The weights of a score over so many points, at eps: the same wherever the score's target lies."""
        return cls.of_all([score], points, eps)

    @classmethod
    def of_all(cls, scores: Iterable[Score], points: int, eps: Fraction) -> Weights:
        """The weights of the largest of several scores."""
        moves = [(score.up, score.down) for score in scores]
        return _weights(max(up for up, _ in moves), max(down for _, down in moves), points, eps)

    @property
    def cap(self) -> int:
        """The last index of the table."""
        return len(self.table) - 1

    def reach(self, points: int, unsure: Fraction) -> int | None:
        """Index of the first weight so small that so many points together are chosen with at most this probability.

        Where some point has the score 0. None if there is none.
        """
        return self.first_at_most(math.floor(self.table[0] * unsure / points))

    def index(self, scores: IntArray) -> IntArray:
        """Index of the weights of these scores."""
        if self.coarse > 1:
            scores = scores // self.coarse
        return np.minimum(scores, self.cap)

    def first_at_most(self, weight: int) -> int | None:
        """The first index whose weight is at most that; None if there is none."""
        index = bisect.bisect_left(self.table, -weight, key=lambda entry: -entry)
        return None if index == len(self.table) else index


@lru_cache(maxsize=16)
def _weights(up: int, down: int, points: int, eps: Fraction) -> Weights:
    far = FAR + math.ceil(math.log(points))
    steps = math.ceil(far * (up + down) / eps)
    # Scores that one record moves by 1 cannot be told apart more cheaply than one by one.
    coarse = max(1, min(-(-steps // LONGEST_TABLE), max(up, down)))
    span = -(-up // coarse) - (-down // coarse)
    unit = min(eps / span, Fraction(STEEPEST))
    cap = min(math.ceil(far / unit), LONGEST_TABLE)
    ratio = exp_below(unit)
    table = [SMALLEST_WEIGHT]
    for _ in range(cap):
        table.append((table[-1] * ratio) >> BITS)
    table.reverse()
    shares = np.array([weight / table[0] for weight in table])  # Python's division of integers rounds once
    return Weights(tuple(table), shares, coarse, unit, span)


def exp_below(x: Fraction) -> int:
    """``floor(y * 2**BITS)`` of a number y in ``[1, exp(x)]`` that lies close to its end, for x >= 0.

    The Taylor series of ``exp(x / 2**k)``, cut off and each term rounded down, then squared k times, rounding down.
    """
    halvings = max(0, math.ceil(x).bit_length() + 8)
    small = (x.numerator << BITS) // (x.denominator << halvings)
    total, term, power = 1 << BITS, 1 << BITS, 1
    while term := term * small // (power << BITS):
        total += term
        power += 1
    for _ in range(halvings):
        total = (total * total) >> BITS
    return total
