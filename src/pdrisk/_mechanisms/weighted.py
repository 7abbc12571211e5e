"""Critical values of weighted sums of Laplace variables, for intervals around answers made of several noisy sums."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from pdrisk._core.summary import FloatArray

__all__ = ["critical_of_sum"]

HALVINGS = 36  # of the unit interval: ends of it are near 1 for levels near 1


def critical_of_sum(weights: FloatArray, level: float) -> FloatArray:
    """What a sum of independent Laplace variables of scale 1, so weighted, stays within with probability ``level``.

    Parameters
    ----------
    weights : ndarray of float64, shape (m, ...)
    level : float

    Returns
    -------
    ndarray of float64, shape (...)

    Notes
    -----
    The saddlepoint approximation in Barndorff-Nielsen's form (1986): with K the cumulant function, at the point where
    ``K'(t) = x``, the signed root ``s = sqrt(2 (t x - K))``, plus ``ln(t sqrt(K'') / s) / s``, is nearly normal.
    For Laplace variables the values are too large, never too small: what lies beyond is .947 to .998 of what is allowed
    (compared with the inverted characteristic function, one to nine weights, levels from .5 to .999).
    """
    size = np.abs(weights)
    widest = size.max(axis=0)
    squares = np.where(widest > 0, size / np.where(widest > 0, widest, 1.0), 1.0) ** 2
    wanted = NormalDist().inv_cdf((1 + level) / 2)
    low, high = np.zeros(widest.shape), np.ones(widest.shape)
    for _ in range(HALVINGS):
        t = (low + high) / 2
        left = 1 - squares * t**2
        x = (2 * squares * t / left).sum(axis=0)
        curved = (2 * squares * (1 + squares * t**2) / left**2).sum(axis=0)
        root = np.sqrt(2 * (t * x + np.log(left).sum(axis=0)))
        short = root + np.log(t * np.sqrt(curved) / root) / root < wanted
        low, high = np.where(short, t, low), np.where(short, high, t)
    return (2 * squares * high / (1 - squares * high**2)).sum(axis=0) * widest
