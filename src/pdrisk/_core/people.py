"""Records of people who have several: how far the answer moves if all records of one person are added or removed.

A person has at most k records in a group. Removed are all that somebody has there; added are up to k, some at the lower
end of the universe and the others at the upper one, or k at the mean: docs/numbers.md, "People with several records".
"""

from __future__ import annotations

import numpy as np

from pdrisk._core.contributions import Contributions, OrderedContributions
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum
from pdrisk._core.summary import FloatArray, IntArray, whole_and_part
from pdrisk._core.universe import Universe

MOST_TRIED = 10_000  # records of one person that are tried; beyond, a variance may change by all of its range


def without_each(statistic: Statistic, contributions: Contributions, universe: Universe) -> FloatArray:
    """The answer of each contribution's group without this contribution, shape (P,)."""
    left = contributions.left
    if isinstance(statistic, Distinct | Sum):
        return contributions.rest.astype(np.float64)
    if isinstance(statistic, Count):
        return left.astype(np.float64)
    if isinstance(statistic, Mean):
        rest = np.clip(contributions.rest / np.maximum(left, 1), universe.lo, universe.hi)
        return np.where(left > 0, rest, universe.mid)
    if isinstance(statistic, Var):
        return _spread_without(statistic, contributions)
    if isinstance(statistic, Min | Max):
        return _extreme_without(contributions, universe, highest=isinstance(statistic, Max))
    assert isinstance(statistic, Quantile) and isinstance(contributions, OrderedContributions)
    return np.where(left > 0, _quantile_without(statistic.q, contributions), universe.mid)


def local_sensitivity(
    statistic: Statistic, contributions: Contributions | None, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    """Largest change by adding or removing all records of one person, at most k; shape (G,), NaN if unknown.

    ``contributions``: those of its records, as the statistic adds them up; None where they are not known.
    ``value``: shape (G,). The answers; of a histogram one for each bin.
    """
    if isinstance(statistic, Count):  # k may always come
        return np.full(value.shape, float(k))
    if contributions is None:
        return np.full(value.shape, np.nan)
    change = np.zeros(len(contributions.n))
    np.maximum.at(
        change,
        contributions.groups,
        np.abs(without_each(statistic, contributions, universe) - value[contributions.groups]),
    )
    change = np.maximum(change, _by_adding(statistic, contributions, universe, value, k))
    return np.minimum(change, statistic.global_sensitivity(universe) * float(statistic.rows_weight(k)))


def world_range(statistic: Statistic, contributions: Contributions, universe: Universe) -> FloatArray:
    """Largest minus smallest answer over the sets that lack one person, shape (G,)."""
    answers = without_each(statistic, contributions, universe)
    low, high = np.full(len(contributions.n), np.inf), np.full(len(contributions.n), -np.inf)
    np.minimum.at(low, contributions.groups, answers)
    np.maximum.at(high, contributions.groups, answers)
    return np.where(low <= high, high - low, 0.0)  # of nobody there is none


def _spread_without(statistic: Var, contributions: Contributions) -> FloatArray:
    assert contributions.whole is not None
    of, left, rest = contributions.groups, contributions.left, contributions.rest
    # Where rounding alone may have left something, nothing is: its root would not be small.
    rest = np.where(rest > contributions.whole[of] * contributions.n[of] * 2.0**-50, rest, 0.0)
    variance = np.where(left > statistic.ddof, rest / np.maximum(left - statistic.ddof, 1), 0.0)
    return np.sqrt(variance) if isinstance(statistic, Std) else variance


def _extreme_without(contributions: Contributions, universe: Universe, *, highest: bool) -> FloatArray:
    """Extreme without each contribution: the end of the first one, and where that one is missing, of the second."""
    assert contributions.own is not None
    sign = -1.0 if highest else 1.0
    nothing = -universe.lo if highest else universe.hi
    of, first = contributions.groups, sign * contributions.own
    order = np.lexsort((first, of))
    number = np.bincount(of, minlength=len(contributions.n))
    begins = np.concatenate([[0], np.cumsum(number)])[of]
    padded = np.append(first[order], nothing)
    second = np.where(number[of] > 1, padded[np.minimum(begins + 1, len(order))], nothing)
    return sign * np.where(order[begins] == np.arange(len(order)), second, padded[begins])


def _quantile_without(q: float, contributions: OrderedContributions) -> FloatArray:
    whole, part = whole_and_part(contributions.left - 1, q)
    last = np.maximum(contributions.left, 1)
    low, high = (contributions.without(np.clip(whole + at, 1, last)) for at in (1, 2))
    return low + part * (high - low)


def _by_adding(
    statistic: Statistic, contributions: Contributions, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    if isinstance(statistic, Sum):
        return np.full(value.shape, k * universe.magnitude)
    if isinstance(statistic, Mean):
        assert contributions.whole is not None
        ends = [
            np.abs((contributions.whole + k * end) / (contributions.n + k) - value)
            for end in (universe.lo, universe.hi)
        ]
        return np.maximum(*ends)
    if isinstance(statistic, Min | Max):
        return np.abs(value - (universe.hi if isinstance(statistic, Max) else universe.lo))
    if isinstance(statistic, Var):
        return _spread_by_adding(statistic, contributions, universe, value, k)
    assert isinstance(statistic, Quantile) and isinstance(contributions, OrderedContributions)
    with_more = (_quantile_with(statistic.q, contributions, universe, k, highest=highest) for highest in (False, True))
    return np.maximum(*(np.abs(answer - value) for answer in with_more))


def _quantile_with(
    q: float, contributions: OrderedContributions, universe: Universe, k: int, *, highest: bool
) -> FloatArray:
    """The quantile with k more records at an end of the universe."""
    whole, part = whole_and_part(contributions.n + k - 1, q)
    groups, last = np.arange(len(contributions.n)), contributions.n + k

    def at(rank: IntArray) -> FloatArray:
        place = rank if highest else rank - k
        return np.where(
            (place >= 1) & (place <= contributions.n),
            contributions.at(groups, place),
            universe.hi if highest else universe.lo,
        )

    low, high = (at(np.clip(whole + more, 1, last)) for more in (1, 2))
    return low + part * (high - low)


def _spread_by_adding(
    statistic: Var, contributions: Contributions, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    if k > MOST_TRIED:
        return np.full(value.shape, statistic.global_sensitivity(universe))
    assert contributions.whole is not None and contributions.mean is not None
    n = contributions.n.astype(np.float64)
    mean = np.where(n > 0, contributions.mean, universe.mid)
    below, above = universe.lo - mean, universe.hi - mean
    change = np.zeros(len(n))
    for more in range(1, k + 1):
        size = n + more
        # Of so many, i at lo and the rest at hi: concave in i, so the largest is next to where that is level.
        level = np.clip((more * above - (below + above) * size / 2) / universe.width, 0, more)
        for i in (np.floor(level), np.ceil(level), None):
            low, high = (np.zeros_like(n),) * 2 if i is None else (i, more - i)  # None: all at the mean, the smallest
            offset = low * below + high * above
            rest = contributions.whole + low * below**2 + high * above**2 - offset**2 / size
            after = np.where(size > statistic.ddof, np.maximum(rest, 0) / np.maximum(size - statistic.ddof, 1), 0.0)
            change = np.maximum(change, np.abs((np.sqrt(after) if isinstance(statistic, Std) else after) - value))
    return change


def top_of_groups(losses: FloatArray, groups: int) -> FloatArray:
    """For each group its loss plus the largest losses of other groups that a person may be in, shape (G,)."""
    if groups == 1 or len(losses) < 2:
        return losses
    ordered = np.sort(losses)[::-1]
    most = ordered[:groups].sum()
    rest = ordered[: groups - 1].sum()
    smallest = ordered[min(groups, len(ordered)) - 1]
    return np.where(losses >= smallest, most, losses + rest)
