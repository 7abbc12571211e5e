"""Sums of discrete Laplace variables with whole weights: exact quantiles by the Fourier transform."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

MOST_POINTS = 2**20  # of a transform, some 50 ms
SUREST = 1 - 1e-10  # of levels: what is less likely is lost among the roundings of the transform

Term = tuple[int, int, float]  # weight above 0, number of variables, scale


def points_for(terms: tuple[Term, ...]) -> int:
    """Number of points of the transform for these terms: beyond half of them lies next to nothing.

    Half of them are 30 standard deviations or more, and the tails fall by ``exp(-sqrt(2))`` or more for each.
    """
    variance = sum(number * weight**2 * _variance(scale) for weight, number, scale in terms)
    return 1 << math.ceil(math.log2(60 * math.sqrt(variance) + 200 * max((weight for weight, *_ in terms), default=1)))


def _variance(scale: float) -> float:
    rate = 1 / scale
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


@lru_cache(maxsize=4096)
def critical_of_whole(terms: tuple[Term, ...], level: float) -> int:
    """Smallest whole t that a weighted sum of discrete Laplace variables keeps within with probability ``level``.

    ``DLap(b)`` has the characteristic function ``(1 - a)**2 / (1 - 2 a cos(s) + a**2)`` with ``a = exp(-1/b)``, and the
    sum the product of these at ``c s`` for each weight c. Its inverse transform over N points is the distribution
    wrapped around N, which adds to a probability what lies N/2 or farther away: less than 1e-18 at 30 standard
    deviations. Weights with a common divisor are divided by it first.

    ``terms``: weight, at least 1; number of independent variables with it; their scale, above 0.
    ``level``: up to 1 - 1e-10.
    """
    divisor = math.gcd(*(weight for weight, *_ in terms))
    terms = tuple((weight // divisor, number, scale) for weight, number, scale in terms)
    if len(terms) == 1 and terms[0][1] == 1:
        return divisor * _of_one(terms[0][2], level)
    points = points_for(terms)
    logarithm = np.zeros(points // 2 + 1)
    turn = np.arange(points // 2 + 1)
    for weight, number, scale in terms:
        a = math.exp(-1 / scale)
        # 1 - 2 a cos(s) + a**2 is (1 - a)**2 + 4 a sin(s / 2)**2, without loss of digits where s is small.
        sine = np.sin(np.pi / points * (turn * weight % points))
        logarithm -= number * np.log1p(4 * a * (sine / math.expm1(-1 / scale)) ** 2)
    mass = np.fft.irfft(np.exp(logarithm), points)[: points // 2]
    inside = np.cumsum(np.append(mass[0], 2 * mass[1:]))
    return divisor * int(np.searchsorted(inside, min(level, SUREST)))


def _of_one(scale: float, level: float) -> int:
    """The same of one variable: ``P(|X| > t) = 2 a**(t + 1) / (1 + a)``."""
    reach = math.ceil((math.log(2) - math.log1p(math.exp(-1 / scale)) - math.log1p(-level)) * scale - 1)
    return max(reach, 0)
