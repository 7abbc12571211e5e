"""Sums of Laplace variables with different scales: their tails and quantiles."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from pdrisk._core.summary import FloatArray

STEPS = 40  # of Newton's method; some eight are needed
MOST_STEPS = 100  # of the same by halves; some eight are needed
PIECE = 2**11  # sums at a time, whose arrays stay in the processor's cache
CLOSE = 1e-9
TINY = 1e-300
APART = 1 + 2.0**-10  # of scales, so that their partial fractions keep their digits
NARROWEST = 2.0**-20  # of the widest scale


def tail(t: FloatArray, scales: FloatArray) -> FloatArray:
    """Probability that the sum of three independent Laplace variables of these scales exceeds t in size.

    Partial fractions. Scales so close that these would lose their digits are first made wider, up to .2 % each, which
    can only make the tail heavier (Anderson 1955).
    """
    scales = _apart(scales)
    terms: FloatArray = _shares(scales) * np.exp(-t / scales)
    return terms.sum(axis=0)


def critical(weights: FloatArray, level: float) -> FloatArray:
    """Bound that the weighted sum of three Laplace variables of scale 1 keeps with probability ``level``.

    The sum is log-concave, and so is its tail: Newton's method on the logarithm of the tail, from a t that is too
    large, comes down to the root and never passes it.

    ``weights``: shape (3, G)
    """
    scales = _apart(np.abs(weights))
    widest = scales[2]
    scales = scales / widest
    shares = _shares(scales)
    t = np.full(widest.shape, -3 * math.log1p(-level) + 3 * math.log(3))  # each exceeds a third of it in a third
    for _ in range(STEPS):
        terms = shares * np.exp(-t / scales)
        beyond = terms.sum(axis=0)
        step = np.log(beyond / (1 - level)) * beyond / (terms / scales).sum(axis=0)
        t += step
        if not (step < -CLOSE).any():
            break
    return t * widest


def critical_of_sum(
    weights: FloatArray, level: float, times: FloatArray | None = None, variance: FloatArray | None = None
) -> FloatArray:
    """Bound that a weighted sum of independent Laplace variables of scale 1 keeps with probability ``level``.

    The saddlepoint approximation in Barndorff-Nielsen's form (1986): with K the cumulant function, at the point where
    ``K'(t) = x``, the signed root ``s = sqrt(2 (t x - K))``, plus ``ln(t sqrt(K'') / s) / s``, is nearly normal.
    For Laplace variables the values are too large, never too small: what lies beyond is .947 to .998 of what is allowed
    (compared with the inverted characteristic function, one to nine weights, levels from .5 to .999).

    ``weights``: shape (m, ...)
    ``times``: shape (m,). How many variables have each of these weights; one without it.
    ``variance``: shape (...). Of an independent normal variable that is added to the sum.
    Returns: shape (...)
    """
    flat = np.abs(weights).reshape(len(weights), -1)
    bounds = np.empty(flat.shape[1])
    number = np.broadcast_to(1.0 if times is None else times.reshape(len(weights), -1), flat.shape)
    normal = np.zeros(len(bounds)) if variance is None else variance.reshape(-1)
    wanted = NormalDist().inv_cdf((1 + level) / 2)
    for start in range(0, len(bounds), PIECE):
        piece = slice(start, start + PIECE)
        bounds[piece] = _of_piece(flat[:, piece], number[:, piece], normal[piece], wanted)
    return bounds.reshape(weights.shape[1:])


def bound_of_sum(scales: FloatArray, level: float, times: FloatArray) -> FloatArray:
    """Bound that a sum of independent Laplace variables keeps with probability ``level``: exact of up to three.

    ``scales``: shape (m, R). Of any sign; 0 for no variable.
    ``times``: shape (m, R). How many variables have each scale.
    """
    size = np.abs(scales)
    bounds = np.zeros(size.shape[1])
    number = np.where(size > 0, times, 0.0)
    several = number.sum(axis=0)
    few, many = (several > 0) & (several <= 3), several > 3
    if few.any():
        ends = np.cumsum(number[:, few], axis=0)[:, np.newaxis]
        at = np.arange(3)[:, np.newaxis] < ends  # the first scale that so many variables reach
        listed = np.where(at.any(axis=0), np.take_along_axis(size[:, few], at.argmax(axis=0), axis=0), 0.0)
        bounds[few] = critical(listed, level)
    if many.any():
        bounds[many] = critical_of_sum(size[:, many], level, number[:, many])
    return bounds


def coarseness(scale: FloatArray, unit: FloatArray) -> FloatArray:
    """How much farther discrete Laplace noise reaches than Laplace noise of the same scale: up to half a unit.

    ``P(|E| >= k unit) = 2 a**k / (1 + a)``, with ``a = exp(-unit / scale)``, is that of Laplace noise beyond
    ``k unit - scale ln(2 / (1 + a))``.
    """
    rate = np.divide(unit, scale, out=np.zeros(scale.shape), where=scale > 0)
    return -scale * np.log1p(np.expm1(-rate) / 2)


def _of_piece(size: FloatArray, number: FloatArray, normal: FloatArray, wanted: float) -> FloatArray:
    """`critical` for one piece, with a normal variable's critical value.

    Newton's method in t, with the derivative of s for that of all; where it leaves what is known, by halves.
    """
    widest = size.max(axis=0)
    unit = np.where(widest > 0, widest, 1.0)
    squares = np.where(widest > 0, size / unit, 1.0) ** 2
    normal = normal / unit / unit
    low, high = np.zeros(widest.shape), np.ones(widest.shape)
    t = (low + high) / 2
    for _ in range(MOST_STEPS):
        part = squares * t**2
        left = 1 - part
        x = (number * 2 * squares * t / left).sum(axis=0) + normal * t
        curved = (number * 2 * squares * (1 + part) / left**2).sum(axis=0) + normal
        root = np.sqrt(2 * (t * x + (number * np.log(left)).sum(axis=0) - normal * t**2 / 2))
        over = root + np.log(t * np.sqrt(curved) / root) / root - wanted
        low, high = np.where(over < 0, t, low), np.where(over < 0, high, t)
        closer = t - over * root / (t * curved)
        closer = np.where((low < closer) & (closer < high), closer, (low + high) / 2)
        if (np.abs(closer - t) < CLOSE * (1 - t)).all():
            break
        t = closer
    return x * widest


def _apart(scales: FloatArray) -> FloatArray:
    """The scales in rising order, widened so that neighbours differ by at least `APART`."""
    narrow, middle, wide = np.sort(scales, axis=0)
    narrow = np.maximum(narrow, np.maximum(wide, TINY) * NARROWEST)
    middle = np.maximum(middle, narrow * APART)
    return np.stack([narrow, middle, np.maximum(wide, middle * APART)])


def _shares(scales: FloatArray) -> FloatArray:
    """Weight of each scale's exponential in the tail of the sum."""
    a, b, c = scales**2
    return np.stack([a * a / ((a - b) * (a - c)), b * b / ((b - a) * (b - c)), c * c / ((c - a) * (c - b))])
