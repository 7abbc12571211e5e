"""Sums of Laplace variables of different scales: their tails, and what they stay within."""

from __future__ import annotations

import math

import numpy as np

from pdrisk._core.summary import FloatArray

__all__ = ["critical", "tail"]

STEPS = 40  # of Newton's method; some eight are needed
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
    """What the sum of three Laplace variables of scale 1, so weighted, stays within with probability ``level``.

    Parameters
    ----------
    weights : ndarray of float64, shape (3, G)
    level : float

    Notes
    -----
    The sum is log-concave, and so is its tail: Newton's method on the logarithm of the tail, from a t that is too
    large, comes down to the root and never passes it.
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


def _apart(scales: FloatArray) -> FloatArray:
    """The scales in rising order, none narrower than it was or closer than `APART` to the one below."""
    narrow, middle, wide = np.sort(scales, axis=0)
    narrow = np.maximum(narrow, np.maximum(wide, TINY) * NARROWEST)
    middle = np.maximum(middle, narrow * APART)
    return np.stack([narrow, middle, np.maximum(wide, middle * APART)])


def _shares(scales: FloatArray) -> FloatArray:
    """What each scale's exponential counts in the tail of the sum."""
    a, b, c = scales**2
    return np.stack([a * a / ((a - b) * (a - c)), b * b / ((b - a) * (b - c)), c * c / ((c - a) * (c - b))])
