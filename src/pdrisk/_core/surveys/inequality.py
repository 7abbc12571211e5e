"""Inequality of incomes that are known in bins: Gini coefficient, quantiles, income shares, and their ranges.

Arrays have G rows of groups and B columns of bins; bins lie between B + 1 rising edges. Within a bin, incomes are taken
as spread evenly. The ranges are those over all ways in which incomes can lie in their bins.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

FIFTH: Final = 0.2
STEPS: Final = 100  # of `gini_range`; some six are needed, and fifty where nearly everybody has nothing
CLOSE: Final = 1e-14


def cleaned(numbers: FloatArray) -> FloatArray:
    """Non-negative numbers with the same total as noisy ones, the nearest ones by least squares (Euclidean projection).

    ``max(H - t, 0)``, with the t that keeps the total (Held, Wolfe & Crowder 1974): of the numbers in falling order,
    those stay above 0 that exceed the mean by which all before them must fall.

    ``numbers``: shape (..., B)
    Returns: shape (..., B). All 0 where the total is not above 0.
    """
    total = numbers.sum(axis=-1, keepdims=True)
    falling = -np.sort(-numbers, axis=-1)
    fall = (np.cumsum(falling, axis=-1) - total) / np.arange(1, numbers.shape[-1] + 1)
    last = np.maximum((falling > fall).sum(axis=-1, keepdims=True) - 1, 0)
    lowered = np.maximum(numbers - np.take_along_axis(fall, last, axis=-1), 0.0)
    return np.where(total > 0, lowered, 0.0)


def gini_parts(
    numbers: FloatArray, edges: FloatArray, variance: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Numerator and denominator of the Gini coefficient from noisy numbers of people in bins, both without bias.

    The coefficient of N people is ``sum |y - y'| / (2 N sum y)``, over all pairs, each person with itself included. Two
    people of bins i and j are ``|x_i - x_j|`` apart on average, with middles x, and two of one bin a third of its width
    d. With independent noise of variance s², ``E[H_i H_j]`` is the product of the exact numbers for i != j, and s² more
    for i = j. So ``sum H_i H_j |x_i - x_j| + sum (H_i² - s²) d_i / 3`` and ``2 (N Y - s² sum x_i)``, with
    ``Y = sum H_i x_i``, have the expectations of the numerator and denominator without noise.

    ``numbers``: shape (G, B). Not cut at 0.
    ``edges``: shape (B + 1,)
    ``variance``: shape (G,). Of the noise of each number; the noise of different bins is independent.
    Returns: shape (G,)
    """
    middle, width = _middle(edges), np.diff(edges)
    below, earned = _before(numbers), _before(numbers * middle)
    top = 2 * (numbers * (middle * below - earned)).sum(axis=1) + (numbers**2 - _column(variance)) @ (width / 3)
    bottom = 2 * (numbers.sum(axis=1) * (numbers @ middle) - variance * middle.sum())
    return top, bottom


def gini(numbers: FloatArray, edges: FloatArray, variance: FloatArray | float = 0.0) -> FloatArray:
    """Gini coefficient from noisy numbers of people in bins: the quotient of `gini_parts`, which takes the same.

    Returns: shape (G,). NaN where the noisy number of people, their income or the denominator is not above 0.
    """
    top, bottom = gini_parts(numbers, edges, variance)
    known = (numbers.sum(axis=1) > 0) & (numbers @ _middle(edges) > 0) & (bottom > 0)
    return np.divide(top, bottom, out=np.full(len(numbers), np.nan), where=known)


def gini_slopes(numbers: FloatArray, edges: FloatArray) -> FloatArray:
    """Derivatives of the Gini coefficient by the number of people in each bin; 0 where nobody has any income.

    ``numbers``: shape (G, B). At least 0.
    ``edges``: shape (B + 1,)
    Returns: shape (G, B)
    """
    middle, width = _middle(edges), np.diff(edges)
    total, income = numbers.sum(axis=1, keepdims=True), (numbers @ middle)[:, np.newaxis]
    below, earned = _before(numbers), _before(numbers * middle)
    # Distances from the middle of a bin to all people below it, and to all above it.
    apart = middle * below - earned + (income - earned) - middle * (total - below)
    coefficient = gini(numbers, edges)[:, np.newaxis]
    top = apart + numbers * width / 3 - coefficient * (income + total * middle)
    return np.divide(top, total * income, out=np.zeros(numbers.shape), where=(total > 0) & (income > 0))


def gini_range(numbers: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least and largest Gini coefficient of people of whom only the bin is known.

    The sum over pairs of bins is linear in the means of bins, ``sum c_i m_i`` with ``c_i = 2 H_i (F_<i - F_>i)``. Two
    people of one bin are closest if all have its mean, and farthest if all are at its edges, a part t at the upper one:
    ``2 t (1 - t) d_i`` apart. So a coefficient above g exists if ``sum c_i m_i + 2 H_i² t_i (1 - t_i) d_i - 2 g N Y``
    exceeds 0 somewhere, which is a sum of a function of each t_i alone. Its largest value has a coefficient of at least
    g, which is the next g (Dinkelbach 1967); and so, with the linear part alone, downward.

    ``numbers``: shape (G, B). At least 0.
    ``edges``: shape (B + 1,). From 0 up.
    Returns: shape (G,). 0 and 1 where there is nobody.
    """
    width = np.diff(edges)
    total = numbers.sum(axis=1, keepdims=True)
    slope = 2 * _before(numbers) + numbers - total  # F_<i - F_>i

    def ends(upward: bool) -> FloatArray:
        coefficient = np.nan_to_num(gini(numbers, edges))[:, np.newaxis]
        for _ in range(STEPS):
            gain = slope - coefficient * total
            if upward:
                part = np.clip(0.5 + gain / np.where(numbers > 0, 2 * numbers, 1.0), 0.0, 1.0)
            else:
                part = np.where(gain < 0, 1.0, 0.0)
            mean = edges[:-1] + part * width
            top = 2 * (numbers * slope * mean).sum(axis=1, keepdims=True)
            top += upward * (2 * numbers**2 * part * (1 - part) * width).sum(axis=1, keepdims=True)
            bottom = 2 * total * (numbers * mean).sum(axis=1, keepdims=True)
            other = np.divide(top, bottom, out=coefficient.copy(), where=bottom > 0)
            done = (np.abs(other - coefficient) <= CLOSE).all()
            coefficient = other
            if done:
                break
        return np.where(total > 0, coefficient, float(upward))[:, 0]

    return ends(False), ends(True)


def quantile(numbers: FloatArray, edges: FloatArray, q: float) -> FloatArray:
    """Quantiles of incomes in bins, between the edges of a bin in proportion to its people; NaN of nobody.

    ``numbers``: shape (G, B). At least 0.
    ``edges``: shape (B + 1,)
    ``q``: in [0, 1].
    Returns: shape (G,)
    """
    above = np.cumsum(numbers, axis=1)
    total = above[:, -1]
    place = np.minimum((above < q * total[:, np.newaxis]).sum(axis=1), numbers.shape[1] - 1)
    rows = np.arange(len(numbers))
    people = numbers[rows, place]
    part = np.divide(q * total - (above[rows, place] - people), people, out=np.zeros(len(numbers)), where=people > 0)
    quantiles = edges[place] + np.clip(part, 0.0, 1.0) * np.diff(edges)[place]
    return np.where(total > 0, quantiles, np.nan)


def quantile_edges(
    numbers: FloatArray, edges: FloatArray, q: float, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Edges between which a quantile lies, of noisy numbers of people in bins.

    A bin holds a quantile if ``F - q N`` is at most 0 at its lower edge and at least 0 at its upper one. So those bins
    are left out whose lower edge is above that, or whose upper edge is below that, by more than the noise. The bin that
    holds the quantile is wrongly left out if one of two numbers is off by more, each to one side: no more often than
    the noise of one number exceeds its reach to either side.

    ``numbers``: shape (G, B). Not cut at 0.
    ``edges``: shape (B + 1,)
    ``q``: in [0, 1].
    ``reach``: shape (G, B + 1). For each edge what the noise of ``F - q N``, F the number of people below it, stays
        within.
    Returns: shape (G,)
    """
    below = np.cumsum(numbers, axis=1)
    over = np.concatenate([np.zeros((len(numbers), 1)), below], axis=1) - q * below[:, -1:]
    starts, ends = over <= reach, over >= -reach
    starts[:, 0] = ends[:, -1] = True
    held = starts[:, :-1] & ends[:, 1:]
    return edges[held.argmax(axis=1)], edges[numbers.shape[1] - held[:, ::-1].argmax(axis=1)]


def lorenz(numbers: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lorenz curve at the edges of bins: the share of people below, and their share of all incomes.

    ``numbers``: shape (G, B). At least 0.
    ``edges``: shape (B + 1,)
    Returns: shape (G, B + 1). NaN where there is nobody, or no income.
    """

    def shares(parts: FloatArray) -> FloatArray:
        sums = np.concatenate([np.zeros((len(parts), 1)), np.cumsum(parts, axis=1)], axis=1)
        return np.divide(sums, sums[:, -1:], out=np.full(sums.shape, np.nan), where=sums[:, -1:] > 0)

    return shares(numbers), shares(numbers * _middle(edges))


def quintile_ratio(numbers: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quintile share ratio S80/S20, incomes of the richest fifth over those of the poorest, and its range.

    ``numbers``: shape (..., B). At least 0.
    ``edges``: shape (B + 1,). From 0 up.
    Returns: shape (...). With incomes spread evenly in their bins; the least and the largest with the same people
        in these bins. The last is infinite where the poorest fifth may have nothing. NaN, 1 and infinite where
        there is nobody.
    """
    below = np.cumsum(numbers, axis=-1)
    total = below[..., -1:]
    poor = np.clip(FIFTH * total - (below - numbers), 0.0, numbers)
    rich = np.clip(FIFTH * total - (total - below), 0.0, numbers)
    low, high = edges[:-1], edges[1:]
    # People of a part of a bin have it for themselves, counted from its lower edge, or from its upper one.
    half = np.diff(edges) / 2 * np.where(numbers > 0, 1 / np.where(numbers > 0, numbers, 1.0), 0.0)
    spread = _ratio((rich * (high - half * rich)).sum(axis=-1), (poor * (low + half * poor)).sum(axis=-1))
    least, most = _ratio(rich @ low, poor @ high), _ratio(rich @ high, poor @ low)
    some = total[..., 0] > 0
    return np.where(some, spread, np.nan), np.where(some, np.maximum(least, 1.0), 1.0), np.where(some, most, np.inf)


def part_below(edges: FloatArray, line: float) -> FloatArray:
    """Part of each bin below a line, shape (B,): from 0 to 1."""
    return np.clip((line - edges[:-1]) / np.diff(edges), 0.0, 1.0)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.inf), where=bottom > 0)


def _column(numbers: FloatArray | float) -> FloatArray:
    return np.reshape(numbers, (-1, 1))


def _before(parts: NDArray[np.float64]) -> FloatArray:
    """Sums of all columns before each, shape (G, B)."""
    return np.cumsum(parts, axis=1) - parts


def _middle(edges: FloatArray) -> FloatArray:
    return (edges[:-1] + edges[1:]) / 2
