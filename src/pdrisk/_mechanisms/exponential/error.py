"""Error of the exponential mechanism on given data: how far its answers are from the exact one, in points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray
from pdrisk._mechanisms.exponential.items import Items
from pdrisk._mechanisms.exponential.measure import Measure

HALVINGS = 64


def largest_error(items: Items, mass: FloatArray, measure: Measure, exact: FloatArray, level: float) -> FloatArray:
    """Distance from the exact answer that answers keep with probability ``level``.

    ``mass``: shape (m,). Probabilities of the items, times one number of each group.
    ``exact``: shape (G,). Among the points, from 0 to ``points - 1``; it may lie between two.
    Returns: shape (G,). In steps from point to point, to within one.
    """
    group, first, points = items.group, items.first, measure.size
    mass = mass / np.add.reduceat(mass, first[:-1])[group]
    before = np.cumsum(mass) - mass
    before -= before[first[:-1]][group]
    at_group = np.arange(len(exact), dtype=np.float64) * (points + 1)
    starts = items.start + at_group[group]

    def up_to(point: FloatArray) -> FloatArray:
        """Probability of the points before one of each group."""
        at = np.searchsorted(starts, np.clip(point, 0, points) + at_group, side="right") - 1
        start, end = items.start[at], np.clip(point, 0, points).astype(np.int64)
        share = (measure.before(end) - measure.before(start)) / np.maximum(items.places[at], 1)
        return before[at] + mass[at] * np.minimum(share, 1.0)

    def is_enough(distance: FloatArray) -> NDArray[np.bool_]:
        return up_to(np.floor(exact + distance) + 1) - up_to(np.ceil(exact - distance)) >= level

    low, high = np.zeros(len(exact)), np.full(len(exact), float(points))
    high = np.where(is_enough(low), 0.0, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = is_enough(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
