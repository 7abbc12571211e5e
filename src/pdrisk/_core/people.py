"""Records of people who have several: how far the answer moves when all records of one person come or go.

A person has at most k records in a group. Removed are all that somebody has there; added are up to k, some at the lower
end of the universe and the others at the upper one, or k at the mean: docs/numbers.md, "People with several records".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.once import once
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import PairStatistic
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum, WholeSum
from pdrisk._core.summary import FloatArray, IntArray, whole_and_part
from pdrisk._core.universe import Universe

__all__ = ["PersonRecords", "PersonSums", "local_sensitivity", "top_of_groups", "without_each", "world_range"]

MOST_TRIED = 100  # records of one person that are tried at both ends; beyond, a variance may change by all of its range


@dataclass(frozen=True)
class PersonRecords:
    """The records of people in G groups.

    Attributes
    ----------
    values : ndarray, shape (R,)
        Clamped numbers; where values are only told apart, one whole number for each different one.
    groups, persons : ndarray of int64, shape (R,)
    size : int
        G.
    """

    values: NDArray[Any]
    groups: IntArray
    persons: IntArray
    size: int

    @once
    def portion(self) -> IntArray:
        """The number of each record's portion, what one person has in one group, shape (R,)."""
        return np.unique(np.stack([self.groups, self.persons]), axis=1, return_inverse=True)[1].reshape(-1)

    @once
    def portions(self) -> IntArray:
        """The group of each of P portions, in ascending order."""
        found = np.zeros(int(self.portion.max(initial=-1)) + 1, dtype=np.int64)
        found[self.portion] = self.groups
        return found

    @once
    def whose(self) -> IntArray:
        """The person of each portion."""
        found = np.zeros(len(self.portions), dtype=np.int64)
        found[self.portion] = self.persons
        return found

    @once
    def sizes(self) -> IntArray:
        """The number of records of each portion."""
        return np.bincount(self.portion, minlength=len(self.portions))

    @once
    def n(self) -> IntArray:
        """The number of records of each group."""
        return np.bincount(self.groups, minlength=self.size)

    @once
    def number(self) -> IntArray:
        """The number of people of each group."""
        return np.bincount(self.portions, minlength=self.size)

    def tells(self, statistic: Statistic) -> bool:
        """Whether the change of a statistic can be worked out."""
        return not isinstance(statistic, PairStatistic)

    def sums_of(self, statistic: Statistic) -> tuple[FloatArray, FloatArray]:
        """Of each group and of each portion, as a statistic adds records up."""
        return self.sums(np.floor(self.values + 0.5) if isinstance(statistic, WholeSum) else self.values)

    def sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of each group and of each portion."""
        whole, own = np.zeros(self.size), np.zeros(len(self.portions))
        np.add.at(whole, self.groups, values)
        np.add.at(own, self.portion, values)
        return whole, own

    @once
    def in_order(self) -> tuple[IntArray, IntArray]:
        """The records by group and value, and where each group begins there; G + 1 numbers."""
        order = np.lexsort((self.values, self.groups))
        return order, np.concatenate([[0], np.cumsum(self.n)])


@dataclass(frozen=True)
class PersonSums:
    """Portions in G groups that an engine tells instead of records: of each size those of the smallest and largest sum.

    No other portion of a size changes a count, sum or mean by more, since those are monotone in its sum.

    Attributes
    ----------
    sizes, portions : ndarray of int64, shape (P,)
        The number of records of each portion, and its group.
    own : ndarray of float64, shape (P,)
        The sum of each portion.
    number, n : ndarray of int64, shape (G,)
        Of people, and of records.
    total : ndarray of float64, shape (G,)
    """

    sizes: IntArray
    portions: IntArray
    own: FloatArray
    number: IntArray
    n: IntArray
    total: FloatArray

    @property
    def size(self) -> int:
        """G."""
        return len(self.n)

    def tells(self, statistic: Statistic) -> bool:
        """As that of `PersonRecords`."""
        return isinstance(statistic, Count | Sum | Mean) and not isinstance(statistic, Distinct)

    def sums_of(self, statistic: Statistic) -> tuple[FloatArray, FloatArray]:
        """As that of `PersonRecords`; of whole numbers, whose bounds are whole, k at an end change a sum by most."""
        return self.total, self.own


def without_each(statistic: Statistic, people: PersonRecords | PersonSums, universe: Universe) -> FloatArray:
    """The answer of its group without each portion, shape (P,)."""
    of = people.portions
    left = people.n[of] - people.sizes
    if isinstance(statistic, Distinct):
        assert isinstance(people, PersonRecords)
        _, at, back = np.unique(
            np.stack([people.groups, people.values]), axis=1, return_index=True, return_inverse=True
        )
        back = back.reshape(-1)
        pairs = np.unique(np.stack([back, people.portion]), axis=1)
        alone = np.bincount(pairs[0], minlength=len(at))[pairs[0]] == 1
        gone = np.bincount(pairs[1][alone], minlength=len(of))
        return np.bincount(people.groups[at], minlength=people.size)[of].astype(np.float64) - gone
    if isinstance(statistic, Count):
        return left.astype(np.float64)
    if isinstance(statistic, Sum):
        whole, own = people.sums_of(statistic)
        return whole[of] - own
    if isinstance(statistic, Mean):
        whole, own = people.sums_of(statistic)
        rest = np.clip((whole[of] - own) / np.maximum(left, 1), universe.lo, universe.hi)
        return np.where(left > 0, rest, universe.mid)
    assert isinstance(people, PersonRecords)
    if isinstance(statistic, Var):
        return _spread_without(statistic, people)
    if isinstance(statistic, Min | Max):
        return _extreme_without(people, universe, highest=isinstance(statistic, Max))
    assert isinstance(statistic, Quantile)
    return np.where(left > 0, _quantile_without(statistic.q, people), universe.mid)


def local_sensitivity(
    statistic: Statistic, people: PersonRecords | PersonSums | None, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    """Largest change by all records of one person, at most k, that come or go, shape (G,); NaN where it is not told.

    Parameters
    ----------
    statistic : Statistic
    people : PersonRecords, PersonSums or None
        None where it is not known what people have.
    universe : Universe
    value : ndarray of float64, shape (G,)
        The answers; of a histogram one for each bin.
    k : int
    """
    if isinstance(statistic, Count):  # k may always come
        return np.full(value.shape, float(k))
    if people is None or not people.tells(statistic):
        return np.full(value.shape, np.nan)
    change = np.zeros(people.size)
    np.maximum.at(change, people.portions, np.abs(without_each(statistic, people, universe) - value[people.portions]))
    change = np.maximum(change, _by_adding(statistic, people, universe, value, k))
    return np.minimum(change, statistic.global_sensitivity(universe) * float(statistic.rows_weight(k)))


def world_range(statistic: Statistic, people: PersonRecords | PersonSums, universe: Universe) -> FloatArray:
    """Largest minus smallest answer over the sets that lack one person, shape (G,); NaN where it is not told."""
    if not people.tells(statistic):
        return np.full(people.size, np.nan)
    answers = without_each(statistic, people, universe)
    low, high = np.full(people.size, np.inf), np.full(people.size, -np.inf)
    np.minimum.at(low, people.portions, answers)
    np.maximum.at(high, people.portions, answers)
    return np.where(people.number > 0, high - low, 0.0)


def _spread_without(statistic: Var, people: PersonRecords) -> FloatArray:
    of = people.portions
    left = people.n[of] - people.sizes
    mean = people.sums(people.values)[0] / np.maximum(people.n, 1)
    distance = people.values - mean[people.groups]
    whole, own = people.sums(distance)
    squares, own_squares = people.sums(distance**2)
    offset = whole[of] - own
    rest = squares[of] - own_squares - offset**2 / np.maximum(left, 1)
    # Where rounding alone may have left something, nothing is: its root would not be small.
    rest = np.where(rest > squares[of] * people.n[of] * 2.0**-50, rest, 0.0)
    variance = np.where(left > statistic.ddof, rest / np.maximum(left - statistic.ddof, 1), 0.0)
    return np.sqrt(variance) if isinstance(statistic, Std) else variance


def _extreme_without(people: PersonRecords, universe: Universe, *, highest: bool) -> FloatArray:
    sign = -1.0 if highest else 1.0
    nothing = -universe.lo if highest else universe.hi
    first = np.full(len(people.portions), np.inf)
    np.minimum.at(first, people.portion, sign * people.values)  # of each portion
    order = np.lexsort((first, people.portions))
    starts = np.concatenate([[0], np.cumsum(people.number)])
    padded = np.append(first[order], nothing)
    at, beyond = starts[:-1][people.portions], np.minimum(starts[:-1] + 1, len(order))[people.portions]
    second = np.where(people.number[people.portions] > 1, padded[beyond], nothing)
    own_is_first = order[at] == np.arange(len(order))
    return sign * np.where(own_is_first, second, padded[at])


def _quantile_without(q: float, people: PersonRecords) -> FloatArray:
    order, starts = people.in_order
    of = people.portions
    left = people.n[of] - people.sizes
    whole, part = whole_and_part(left - 1, q)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts[people.groups[order]] + 1
    base = len(order) + 2
    keys = np.sort(people.portion * base + rank)
    begins = np.searchsorted(keys, np.arange(len(of)) * base)

    def found(target: IntArray) -> FloatArray:
        """The record of this rank among the others: its rank among all is larger by those of the portion below."""
        below = np.zeros(len(of), dtype=np.int64)
        for _ in range(int(people.sizes.max(initial=0)) + 1):
            reached = np.minimum(target + below, base - 1)
            below = np.searchsorted(keys, np.arange(len(of)) * base + reached, side="right") - begins
        return people.values[order[np.clip(starts[of] + target + below - 1, 0, max(len(order) - 1, 0))]]

    low = found(np.clip(whole + 1, 1, np.maximum(left, 1)))
    high = found(np.clip(whole + 2, 1, np.maximum(left, 1)))
    return low + part * (high - low)


def _by_adding(
    statistic: Statistic, people: PersonRecords | PersonSums, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    n = people.n
    if isinstance(statistic, Sum):
        return np.full(people.size, k * universe.magnitude)
    if isinstance(statistic, Mean):
        total, _ = people.sums_of(statistic)
        ends = [np.abs((total + k * end) / (n + k) - value) for end in (universe.lo, universe.hi)]
        return np.maximum(*ends)
    assert isinstance(people, PersonRecords)
    if isinstance(statistic, Min | Max):
        return np.abs(value - (universe.hi if isinstance(statistic, Max) else universe.lo))
    if isinstance(statistic, Var):
        return _spread_by_adding(statistic, people, universe, value, k)
    assert isinstance(statistic, Quantile)
    return np.maximum(
        *(np.abs(_quantile_with(statistic.q, people, end, k) - value) for end in (universe.lo, universe.hi))
    )


def _quantile_with(q: float, people: PersonRecords, end: float, k: int) -> FloatArray:
    """The quantile with k more records at an end of the universe."""
    order, starts = people.in_order
    whole, part = whole_and_part(people.n + k - 1, q)
    largest = bool(len(people.values)) and end >= float(people.values.max())
    padded = np.append(people.values[order], end)

    def at(rank: IntArray) -> FloatArray:
        own = rank if largest else rank - k
        inside = (own >= 1) & (own <= people.n)
        return padded[np.where(inside, starts[:-1] + own - 1, len(order))]

    last = people.n + k
    low, high = at(np.clip(whole + 1, 1, last)), at(np.clip(whole + 2, 1, last))
    return low + part * (high - low)


def _spread_by_adding(
    statistic: Var, people: PersonRecords, universe: Universe, value: FloatArray, k: int
) -> FloatArray:
    if k > MOST_TRIED:
        return np.full(people.size, statistic.global_sensitivity(universe))
    n = people.n.astype(np.float64)
    mean = np.where(n > 0, people.sums(people.values)[0] / np.maximum(n, 1), universe.mid)
    squares = people.sums((people.values - mean[people.groups]) ** 2)[0]
    below, above = universe.lo - mean, universe.hi - mean
    change = np.zeros(people.size)
    tried = [(i, j, 0) for i in range(k + 1) for j in range(k + 1 - i)] + [(0, 0, at) for at in range(1, k + 1)]
    for i, j, at_mean in tried:
        size = n + i + j + at_mean
        offset = i * below + j * above
        rest = squares + i * below**2 + j * above**2 - offset**2 / np.maximum(size, 1)
        after = np.where(size > statistic.ddof, np.maximum(rest, 0) / np.maximum(size - statistic.ddof, 1), 0.0)
        change = np.maximum(change, np.abs((np.sqrt(after) if isinstance(statistic, Std) else after) - value))
    return change


def top_of_groups(losses: FloatArray, groups: int) -> FloatArray:
    """For each group its loss and the largest ones of others, as many as a person is in besides, shape (G,)."""
    if groups == 1 or len(losses) < 2:
        return losses
    ordered = np.sort(losses)[::-1]
    most = ordered[:groups].sum()
    rest = ordered[: groups - 1].sum()
    smallest = ordered[min(groups, len(ordered)) - 1]
    return np.where(losses >= smallest, most, losses + rest)
