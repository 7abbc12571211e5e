"""Contributions, the records of one person in one group: their sums, and each group's total without one of them.

They come from records, or from an engine that sends only those that can move an answer farthest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.once import once
from pdrisk._core.order import Max, Min, Quantile
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Distinct, Mean, Statistic, Sum, WholeSum
from pdrisk._core.summary import FloatArray, IntArray

DENSE = 4  # times as many pairs of a person and a group as records: of more, those that occur are sorted


@dataclass(frozen=True)
class Contributions:
    """P contributions in G groups, with the sums that one statistic needs.

    They may be those alone that move the answer farthest, one up and one down.
    """

    groups: IntArray  # the group of each contribution; shape (P,)
    sizes: IntArray  # the number of its records; shape (P,)
    n: IntArray  # the number of records of each group; shape (G,)
    # the sum of all records, the number of different values, or the sum of squared distances from the mean;
    # shape (G,)
    whole: NDArray[Any] | None = None
    # the part of it that goes with the contribution; for `Min` and `Max`, the end of the contribution itself;
    # shape (P,)
    own: NDArray[Any] | None = None
    mean: FloatArray | None = None  # the mean that distances are measured from; shape (G,)

    @property
    def left(self) -> IntArray:
        """Number of records without each contribution."""
        return self.n[self.groups] - self.sizes

    @property
    def rest(self) -> NDArray[Any]:
        """Total without each contribution."""
        assert self.whole is not None and self.own is not None
        return self.whole[self.groups] - self.own


@dataclass(frozen=True, kw_only=True)
class OrderedContributions(Contributions):
    """P contributions, and the records of G groups in order, or those of successive ranks."""

    # `whose`, `ranks`: the contribution of each record, and its rank in its group; any rank below the first
    # that is given, or above the last; shape (R,)
    whose: IntArray
    ranks: IntArray
    values: FloatArray  # the records in the order of groups and ranks; shape (S,)
    begins: IntArray  # where each group begins there; shape (G + 1,)
    first: IntArray  # the rank of its first record there; shape (G,)

    def at(self, groups: IntArray, ranks: IntArray) -> FloatArray:
        """Records of groups at ranks; any value where they are not given."""
        if not len(self.values):
            return np.zeros(len(groups))
        return self.values[np.clip(self.begins[groups] + ranks - self.first[groups], 0, len(self.values) - 1)]

    @once
    def _keys(self) -> tuple[IntArray, int, IntArray]:
        """Ranks of all contributions in one ascending array, the distance between them, and where each begins."""
        base = int(self.ranks.max(initial=0)) + 2
        keys = np.sort(self.whose * base + self.ranks)
        return keys, base, np.searchsorted(keys, np.arange(len(self.sizes)) * base)

    def without(self, ranks: IntArray) -> FloatArray:
        """For each contribution the records at these ranks among the records of others."""
        keys, base, begins = self._keys
        below = np.zeros(len(self.sizes), dtype=np.int64)
        for _ in range(int(self.sizes.max(initial=0)) + 1):  # it is larger by those of the contribution that are below
            reached = np.minimum(ranks + below, base - 1)
            below = np.searchsorted(keys, np.arange(len(self.sizes)) * base + reached, side="right") - begins
        return self.at(self.groups, ranks + below)


@dataclass(frozen=True)
class PersonRecords:
    """Records of people in G groups, with the person of each record."""

    # clamped numbers; where values are only told apart, one whole number for each different one; shape (R,)
    values: NDArray[Any]
    # `groups`, `persons`: shape (R,)
    groups: IntArray
    persons: IntArray
    size: int  # G

    @once
    def contribution(self) -> IntArray:
        """The number of each record's contribution, what one person has in one group, shape (R,)."""
        people = int(self.persons.max(initial=-1)) + 1
        return numbered(self.groups * people + self.persons, self.size * people)

    @once
    def contribution_groups(self) -> IntArray:
        """The group of each of P contributions, in ascending order."""
        groups = np.zeros(int(self.contribution.max(initial=-1)) + 1, dtype=np.int64)
        groups[self.contribution] = self.groups
        return groups

    @once
    def whose(self) -> IntArray:
        """The person of each contribution."""
        persons = np.zeros(len(self.contribution_groups), dtype=np.int64)
        persons[self.contribution] = self.persons
        return persons

    @once
    def sizes(self) -> IntArray:
        """The number of records of each contribution."""
        return np.bincount(self.contribution, minlength=len(self.contribution_groups))

    @once
    def n(self) -> IntArray:
        """The number of records of each group."""
        return np.bincount(self.groups, minlength=self.size)

    @once
    def number(self) -> IntArray:
        """The number of people of each group."""
        return np.bincount(self.contribution_groups, minlength=self.size)

    def of_statistic(self, statistic: Statistic) -> Contributions | None:
        """Contributions as a statistic adds them up; None if its change cannot be computed from these."""
        if isinstance(statistic, OfTwoColumns):
            return None
        if isinstance(statistic, Quantile):
            return self._ordered
        if isinstance(statistic, Distinct):
            return self._of(*self._different)
        if isinstance(statistic, Var):
            return self._of(*self._spread)
        if isinstance(statistic, Min | Max):
            return self._of(None, self._ends(highest=isinstance(statistic, Max)))
        if isinstance(statistic, Sum | Mean):
            whole_sum = isinstance(statistic, WholeSum)
            return self._of(*self.sums(np.floor(self.values + 0.5) if whole_sum else self.values))
        return self._of()

    def _of(self, *made: NDArray[Any] | None) -> Contributions:
        return Contributions(self.contribution_groups, self.sizes, self.n, *made)

    def sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of each group and of each contribution."""
        whole, contributed = np.zeros(self.size), np.zeros(len(self.contribution_groups))
        np.add.at(whole, self.groups, values)
        np.add.at(contributed, self.contribution, values)
        return whole, contributed

    @property
    def _different(self) -> tuple[IntArray, IntArray]:
        _, at, back = np.unique(np.stack([self.groups, self.values]), axis=1, return_index=True, return_inverse=True)
        pairs = np.unique(np.stack([back.reshape(-1), self.contribution]), axis=1)
        alone = np.bincount(pairs[0], minlength=len(at))[pairs[0]] == 1
        gone = np.bincount(pairs[1][alone], minlength=len(self.contribution_groups))
        return np.bincount(self.groups[at], minlength=self.size), gone

    @property
    def _spread(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        of = self.contribution_groups
        mean = self.sums(self.values)[0] / np.maximum(self.n, 1)
        distance = self.values - mean[self.groups]
        whole, contributed = self.sums(distance)
        squares, own_squares = self.sums(distance**2)
        return squares, own_squares + (whole[of] - contributed) ** 2 / np.maximum(self.n[of] - self.sizes, 1), mean

    def _ends(self, *, highest: bool) -> FloatArray:
        first = np.full(len(self.contribution_groups), -np.inf if highest else np.inf)
        (np.maximum if highest else np.minimum).at(first, self.contribution, self.values)
        return first

    @once
    def _ordered(self) -> OrderedContributions:
        order = np.lexsort((self.values, self.groups))
        begins = np.concatenate([[0], np.cumsum(self.n)])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begins[self.groups[order]] + 1
        return OrderedContributions(
            self.contribution_groups, self.sizes, self.n,
            whose=self.contribution, ranks=rank, values=self.values[order], begins=begins, first=np.ones_like(self.n),
        )  # fmt: skip


@dataclass(frozen=True)
class ExtremeContributions:
    """Contributions of people in G groups, from an engine that gives no records."""

    number: IntArray  # the number of people of each group; shape (G,)
    # `sums`, `different`, `spread`, `lowest`, `highest`: For each size the contributions of the smallest and
    # the largest sum, and those that alone decide the other statistics. No other contribution moves an answer
    # farther.
    sums: Contributions
    different: Contributions | None = None
    spread: Contributions | None = None
    lowest: Contributions | None = None
    highest: Contributions | None = None
    # for each quantile the records around it; contributions that have none there share a line for each size and
    # each number of records below
    ordered: Mapping[float, OrderedContributions] = field(default_factory=dict)

    def of_statistic(self, statistic: Statistic) -> Contributions | None:
        """As in `PersonRecords`; for whole numbers the largest change is by k values at an end."""
        if isinstance(statistic, Quantile):
            return self.ordered.get(statistic.q)
        for kinds, deciding in (
            (Distinct, self.different), (Count | Sum | Mean, self.sums), (Var, self.spread),
            (Min, self.lowest), (Max, self.highest),
        ):  # fmt: skip
            if isinstance(statistic, kinds):
                return deciding
        return None


def numbered(pairs: IntArray, most: int) -> IntArray:
    """Pairs that occur, numbered from 0 in their order; they are whole numbers below ``most``."""
    if most > DENSE * len(pairs):
        return np.unique(pairs, return_inverse=True)[1].reshape(-1)
    occurs = np.zeros(most, dtype=bool)
    occurs[pairs] = True
    return pairs if occurs.all() else (np.cumsum(occurs) - 1)[pairs]
