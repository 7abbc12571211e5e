"""Ends of Fieller's interval of any ratio of two noisy sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pdrisk._core.summary import FloatArray

DOUBLINGS = 64  # of a step, until it is past the end
STEPS = 100  # of the search between; some eight are needed
CLOSE = 1e-10  # of an end, relative to its size or its distance
TINY = 1e-300


def upper_end(start: FloatArray, below: FloatArray, bound: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """The largest r with ``(r - start) below <= bound(r)``, or a little more; infinite where there may be none.

    What the left side exceeds the bound by is concave in r, and not above 0 at ``start``. If the denominator is more
    than its own bound, which is the slope of the other far away, it rises without end, and hence all the way from below
    0 to above it: it has one root. Steps are doubled until they pass it; then the line between both sides of it (regula
    falsi, Illinois) finds it.

    ``start``: shape (G,). The noisy ratio.
    ``below``: shape (G,). Its denominator, above 0.
    ``bound``: bound on the noise of ``numerator - r denominator`` for each of G r's: convex in r.
    """

    def excess(r: FloatArray) -> FloatArray:
        return (r - start) * below - bound(r)

    left, under = start, -bound(start)
    step = np.maximum(-under / below, np.maximum(np.abs(start), TINY) * CLOSE)
    right, over = left + step, excess(left + step)
    for _ in range(DOUBLINGS):
        short = over <= 0
        if not short.any():
            break
        left, under = np.where(short, right, left), np.where(short, over, under)
        step = 2 * step
        right = np.where(short, left + step, right)
        over = excess(right)
    endless = over <= 0
    for _ in range(STEPS):
        gap = over - under
        at = np.where(gap > 0, right - over * (right - left) / np.where(gap > 0, gap, 1.0), right)
        value = excess(at)
        past = value > 0
        # The side that stays counts half as much from now on, so that both come closer.
        left, under = np.where(past, left, at), np.where(past, under / 2, value)
        right, over = np.where(past, at, right), np.where(past, value, over / 2)
        if (right - left <= CLOSE * np.maximum(np.abs(right), step)).all():
            break
    return np.where(endless, np.inf, right)
