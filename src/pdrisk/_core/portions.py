"""Portions, what one person has in one group, and what each statistic makes of them: of records, or as engines tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.once import once
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import PairStatistic
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum, WholeSum
from pdrisk._core.summary import FloatArray, IntArray

__all__ = ["OrderedPortions", "PersonRecords", "PersonTold", "Portions"]


@dataclass(frozen=True)
class Portions:
    """P portions in G groups, with the sums that a statistic makes of them.

    An engine may tell of those alone that move the answer farthest, one up and one down.

    Attributes
    ----------
    portions : ndarray of int64, shape (P,)
        The group of each portion.
    sizes : ndarray of int64, shape (P,)
        The number of its records.
    n : ndarray of int64, shape (G,)
        Of records.
    whole : ndarray, shape (G,), or None
        The sum of all records, the number of different values, or the sum of squared distances from the mean.
    own : ndarray, shape (P,), or None
        What of these is gone without the portion; of `Min` and `Max`, its own end.
    mean : ndarray of float64, shape (G,), or None
        What distances are from.
    """

    portions: IntArray
    sizes: IntArray
    n: IntArray
    whole: NDArray[Any] | None = None
    own: NDArray[Any] | None = None
    mean: FloatArray | None = None

    @property
    def left(self) -> IntArray:
        """Number of records without each portion."""
        return self.n[self.portions] - self.sizes

    @property
    def rest(self) -> NDArray[Any]:
        """Total without each portion."""
        assert self.whole is not None and self.own is not None
        return self.whole[self.portions] - self.own


@dataclass(frozen=True, kw_only=True)
class OrderedPortions(Portions):
    """P portions, and the records of G groups in order, or those of successive ranks.

    Attributes
    ----------
    whose, ranks : ndarray of int64, shape (R,)
        The portion of a record, and its rank in its group; below those that are told, and above, any there.
    values : ndarray of float64, shape (S,)
        The records in the order of groups and ranks.
    begins : ndarray of int64, shape (G + 1,)
        Where each group begins there.
    first : ndarray of int64, shape (G,)
        The rank of its first record there.
    """

    whose: IntArray
    ranks: IntArray
    values: FloatArray
    begins: IntArray
    first: IntArray

    def at(self, groups: IntArray, ranks: IntArray) -> FloatArray:
        """Records of groups at ranks; any value where they are not given."""
        if not len(self.values):
            return np.zeros(len(groups))
        return self.values[np.clip(self.begins[groups] + ranks - self.first[groups], 0, len(self.values) - 1)]

    @once
    def _keys(self) -> tuple[IntArray, int, IntArray]:
        """Ranks of all portions in one ascending array, the distance between portions, and where each begins."""
        base = int(self.ranks.max(initial=0)) + 2
        keys = np.sort(self.whose * base + self.ranks)
        return keys, base, np.searchsorted(keys, np.arange(len(self.sizes)) * base)

    def without(self, ranks: IntArray) -> FloatArray:
        """For each portion the records at these ranks among the records of others."""
        keys, base, begins = self._keys
        below = np.zeros(len(self.sizes), dtype=np.int64)
        for _ in range(int(self.sizes.max(initial=0)) + 1):  # it is larger by those of the portion that are below
            reached = np.minimum(ranks + below, base - 1)
            below = np.searchsorted(keys, np.arange(len(self.sizes)) * base + reached, side="right") - begins
        return self.at(self.portions, ranks + below)


@dataclass(frozen=True)
class PersonRecords:
    """Records of people in G groups, with the person of each record.

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

    def told(self, statistic: Statistic) -> Portions | None:
        """Portions as a statistic adds them up; None if its change cannot be computed from these."""
        if isinstance(statistic, PairStatistic):
            return None
        if isinstance(statistic, Quantile):
            return self._ordered
        if isinstance(statistic, Distinct):
            return self._told(*self._different)
        if isinstance(statistic, Var):
            return self._told(*self._spread)
        if isinstance(statistic, Min | Max):
            return self._told(None, self._ends(highest=isinstance(statistic, Max)))
        if isinstance(statistic, Sum | Mean):
            whole_sum = isinstance(statistic, WholeSum)
            return self._told(*self.sums(np.floor(self.values + 0.5) if whole_sum else self.values))
        return self._told()

    def _told(self, *made: NDArray[Any] | None) -> Portions:
        return Portions(self.portions, self.sizes, self.n, *made)

    def sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of each group and of each portion."""
        whole, own = np.zeros(self.size), np.zeros(len(self.portions))
        np.add.at(whole, self.groups, values)
        np.add.at(own, self.portion, values)
        return whole, own

    @property
    def _different(self) -> tuple[IntArray, IntArray]:
        _, at, back = np.unique(np.stack([self.groups, self.values]), axis=1, return_index=True, return_inverse=True)
        pairs = np.unique(np.stack([back.reshape(-1), self.portion]), axis=1)
        alone = np.bincount(pairs[0], minlength=len(at))[pairs[0]] == 1
        gone = np.bincount(pairs[1][alone], minlength=len(self.portions))
        return np.bincount(self.groups[at], minlength=self.size), gone

    @property
    def _spread(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        of = self.portions
        mean = self.sums(self.values)[0] / np.maximum(self.n, 1)
        distance = self.values - mean[self.groups]
        whole, own = self.sums(distance)
        squares, own_squares = self.sums(distance**2)
        return squares, own_squares + (whole[of] - own) ** 2 / np.maximum(self.n[of] - self.sizes, 1), mean

    def _ends(self, *, highest: bool) -> FloatArray:
        first = np.full(len(self.portions), -np.inf if highest else np.inf)
        (np.maximum if highest else np.minimum).at(first, self.portion, self.values)
        return first

    @once
    def _ordered(self) -> OrderedPortions:
        order = np.lexsort((self.values, self.groups))
        begins = np.concatenate([[0], np.cumsum(self.n)])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begins[self.groups[order]] + 1
        return OrderedPortions(
            self.portions, self.sizes, self.n,
            whose=self.portion, ranks=rank, values=self.values[order], begins=begins, first=np.ones_like(self.n),
        )  # fmt: skip


@dataclass(frozen=True)
class PersonTold:
    """Portions of people in G groups, from an engine that gives no records.

    Attributes
    ----------
    number : ndarray of int64, shape (G,)
        Of people.
    sums, different, spread, lowest, highest : Portions or None
        Of each size the portions of the smallest and the largest sum; and those that alone decide the other statistics.
        No other portion moves an answer farther.
    ordered : mapping of float to OrderedPortions
        For each quantile the records around it; portions that have none there are told once for each size and each
        number of records below.
    """

    number: IntArray
    sums: Portions
    different: Portions | None = None
    spread: Portions | None = None
    lowest: Portions | None = None
    highest: Portions | None = None
    ordered: Mapping[float, OrderedPortions] = field(default_factory=dict)

    def told(self, statistic: Statistic) -> Portions | None:
        """As in `PersonRecords`; for whole numbers the largest change is by k values at an end."""
        if isinstance(statistic, Quantile):
            return self.ordered.get(statistic.q)
        for kinds, told in (
            (Distinct, self.different), (Count | Sum | Mean, self.sums), (Var, self.spread),
            (Min, self.lowest), (Max, self.highest),
        ):  # fmt: skip
            if isinstance(statistic, kinds):
                return told
        return None
