"""Numbers with given figures: n, median, mean and standard deviation of values on a grid of heaped answers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Marginal(NamedTuple):
    """Figures of a variable, beside its least and largest value."""

    n: int
    mean: float
    median: float
    std: float


def multiset(
    grid: Floats, weights: Floats, pinned: Floats, target: Marginal, at_median: float, rng: np.random.Generator
) -> Floats:
    """Sorted values with the target's n, median, mean and std: the pinned ones and repeated grid points.

    The median holds because fewer than half of the values lie on either side of it. Of all ways to share
    each side's values among its grid points with the wanted sum and sum of squares, ``weights * exp(a t + b t²)``,
    t the distance from the median, has the least entropy relative to the weights (Csiszár 1975).
    """
    n, middle = target.n, target.median
    beside = n - round(at_median * n)
    below = round(beside / 2 + rng.uniform(-0.3, 0.3) * (n - beside))
    totals = np.array([below - (pinned < middle).sum(), beside - below - (pinned > middle).sum()])

    points = grid[grid != middle]
    base = weights[grid != middle] * np.exp(0.15 * rng.standard_normal(len(points)))
    sides = np.stack([points < middle, points > middle])
    powers = np.stack([points - middle, (points - middle) ** 2])
    wanted = np.array([n * (target.mean - middle), (n - 1) * target.std**2 + n * (target.mean - middle) ** 2])
    wanted -= np.stack([pinned - middle, (pinned - middle) ** 2]).sum(axis=1)

    expected = _tilted(base, sides, totals, powers, wanted)
    counts = np.zeros(len(points), dtype=np.int64)
    for side, total in zip(sides, totals, strict=True):
        steps = np.cumsum(expected[side])
        steps[-1] = total  # the sum but for its last bits, which the floor would notice
        counts[side] = np.diff(np.floor(steps + rng.uniform(0.3, 0.7)), prepend=0)

    # What rounding left over: single values move along their side, the best move first, errors relative. The std
    # leads: far values are too coarse to mend it without spoiling the mean, near ones then mend the mean alone.
    unit = np.array([n * target.mean, 2 * n * target.std**2])
    gain = (powers[:, None, :] - powers[:, :, None]) / unit[:, None, None]
    same_side = sides[0][:, None] == sides[0]
    for heed in np.repeat([0.1, 1.0], [4, 10]):
        left = (wanted - powers @ counts) / unit
        if np.abs(left).max() < 1e-5:
            break
        cost = (heed * (left[0] - gain[0])) ** 2 + (left[1] - gain[1]) ** 2
        source, goal = np.unravel_index(np.where(same_side & (counts > 0)[:, None], cost, np.inf).argmin(), cost.shape)
        counts[source] -= 1
        counts[goal] += 1
    return np.sort(np.concatenate([pinned, np.repeat(points, counts), np.full(n - beside, middle)]))


def _tilted(base: Floats, sides: NDArray[np.bool_], totals: Ints, powers: Floats, wanted: Floats) -> Floats:
    """Expected counts ``base * exp(a t + b t²)`` with the wanted totals and power sums: Newton on the convex dual."""
    scale = np.sqrt((powers**2 @ base) / base.sum())[:, None]
    scaled, aim = powers / scale, wanted / scale[:, 0]

    def state(theta: Floats) -> tuple[float, Floats]:
        exponent = theta @ scaled
        peaks = np.where(sides, exponent, -np.inf).max(axis=1)
        tilted = base * np.exp(exponent - peaks @ sides)
        masses = sides @ tilted
        value = float(totals @ (np.log(masses) + peaks) - aim @ theta)
        return value, tilted * ((totals / masses) @ sides)

    theta = np.zeros(2)
    value, expected = state(theta)
    for _ in range(60):
        short = aim - scaled @ expected
        if np.abs(short).max() < 1e-9 * totals.sum():
            break
        means = (scaled * expected) @ sides.T / totals
        curvature = (scaled * expected) @ scaled.T - (means * totals) @ means.T
        step = np.linalg.solve(curvature, short)
        for _ in range(40):
            trial, reached = state(theta + step)
            if trial <= value:
                break
            step = step / 2
        theta, value, expected = theta + step, trial, reached
    return expected
