"""Fieller's interval of a mean, from two noisy numbers whose ratio it is."""

from __future__ import annotations

import numpy as np

from pdrisk._core.summary import FloatArray

CELLS = 1024  # of the unit interval, for critical values: a line between two is off by less than 1e-5
STEPS = 60  # of Newton's method; some three are needed
PIECE = 2**13  # ends at a time, whose arrays stay in the processor's cache
LARGEST_EPS = 1e250  # up to which products with numbers of records are finite; a wider interval than needed holds, too
FEW = 4  # groups that take less time one by one, since a call of numpy takes longer than what it computes of so few


def mean_interval(a: FloatArray, b: FloatArray, eps: float, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hull of all means m in [0, 1] for which ``eps |(1 - m) a - m b|`` is within its likely noise.

    A noisy number below 0 counts as 0: where a < 0 < b, ``|(1 - m) a - m b|`` is ``(1 - m) |a| + m b``, and at least
    ``m b``. So no m is lost, and an end of the range is always among them, also of records that all lie there. The
    whole range where a + b, the noisy number of records, is no number of anybody.

    ``a, b``: shape (G,). The mean is ``a / (a + b)``.
    ``critical``: shape (CELLS + 1,). What ``eps`` times the noise of ``(1 - m) a - m b`` stays within, for m = 0, 1
        / CELLS, ..., 1: convex in m and symmetric, so that lines between these points lie above it.
    """
    eps = min(eps, LARGEST_EPS)
    a, b = a * eps, b * eps
    if a.size <= FEW:
        ends = [interval_of_one(*pair, critical) for pair in zip(a.tolist(), b.tolist(), strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
    nobody = a + b <= 0
    a, b = np.maximum(a, 0.0), np.maximum(b, 0.0)
    edges = _left_edge(np.stack([a, b]), np.stack([b, a]), critical)
    return np.where(nobody, 0.0, edges[0]), np.where(nobody, 1.0, 1 - edges[1])


def share_interval(a: FloatArray, b: FloatArray, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As `mean_interval` at eps 1, for noise that need not be symmetric: that of ``(1 - m) a - m b`` need only be
    convex in m.
    """
    nobody = a + b <= 0
    a, b = np.maximum(a, 0.0), np.maximum(b, 0.0)
    low, high = _left_edge(a, b, critical), 1 - _left_edge(b, a, critical[::-1])
    return np.where(nobody, 0.0, low), np.where(nobody, 1.0, high)


def _left_edge(p: FloatArray, q: FloatArray, critical: FloatArray) -> FloatArray:
    """The smallest m in [0, 1] with ``|(1 - m) p - m q|`` at most its critical value; p and q are not below 0.

    ``z = p - m (p + q)`` is linear in m. Between 0, where it is too large, and its root, the excess of the critical
    value is convex and rises through 0 once: Newton's method from the right finds it in few steps, and never passes it.
    """
    edge = np.empty(p.shape)
    flat = p.ravel(), q.ravel(), edge.ravel()  # of edge: its own memory
    for start in range(0, p.size, PIECE):
        one, other, edges = (array[start : start + PIECE] for array in flat)
        edges[:] = _left_edge_of_piece(one, other, critical)
    return edge


def _left_edge_of_piece(p: FloatArray, q: FloatArray, critical: FloatArray) -> FloatArray:
    total, rises = p + q, np.diff(critical)
    m = np.divide(p, total, out=np.zeros(p.shape), where=p > critical[0])
    moving = np.flatnonzero(m > 0)
    at, far, falls = m[moving], p[moving], total[moving]  # z = far - m falls
    for _ in range(STEPS):
        if not len(moving):
            break
        place = at * CELLS
        cell = np.minimum(place, CELLS - 1).astype(np.intp)
        rise = rises.take(cell)
        excess = critical.take(cell)
        excess += rise * (place - cell)
        excess -= far - at * falls
        slope = rise * CELLS + falls
        step = np.divide(excess, slope, out=np.zeros(at.shape), where=slope > 0)
        at = np.maximum(at - np.maximum(step, 0.0), 0.0)
        m[moving] = at
        left = np.flatnonzero(at * CELLS < cell)  # else it is exact: within a cell the excess is a straight line
        moving, at, far, falls = moving.take(left), at.take(left), far.take(left), falls.take(left)
    return m


def interval_of_one(a: float, b: float, critical: FloatArray) -> tuple[float, float]:
    """`mean_interval` of one group, by the same operations in the same order: the same floats."""
    if a + b <= 0:
        return 0.0, 1.0
    a, b = max(a, 0.0), max(b, 0.0)
    return _left_edge_of_one(a, b, critical), 1 - _left_edge_of_one(b, a, critical)


def _left_edge_of_one(p: float, q: float, critical: FloatArray) -> float:
    """`_left_edge_of_piece` of one number each."""
    if p <= critical[0]:
        return 0.0
    far, falls = p, p + q
    at = far / falls
    for _ in range(STEPS):
        cell = int(min(at * CELLS, CELLS - 1))
        low = float(critical[cell])
        rise = float(critical[cell + 1]) - low
        excess = low + rise * (at * CELLS - cell) - (far - at * falls)
        slope = rise * CELLS + falls
        at = max(at - (max(excess / slope, 0.0) if slope > 0 else 0.0), 0.0)
        if at * CELLS >= cell:
            break
    return at
