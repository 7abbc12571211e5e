"""Looks at the records of groups within a band for each, and cells of the records whose ranks they tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.cells import Cells, runs_of_groups
from pdrisk._core.lattice import Points
from pdrisk._core.once import once
from pdrisk._core.summary import FloatArray, IntArray, Ranks, window_start
from pdrisk._core.universe import Universe


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Arguments of `windows` that describe the records."""

    values: NDArray[np.generic]
    universe: Universe
    selected: NDArray[np.bool_] | None
    codes: NDArray[np.int32] | None
    groups: int
    points: tuple[Points, ...] = ()


@dataclass(frozen=True, eq=False)
class BandLook:
    """Records of G groups within a band for each."""

    wanted: Ranks | float  # ranks, or the quantile whose window is wanted
    # `n`, `below`, `m`: number of records, of those below the band, and of those within; shape (G,)
    n: IntArray
    below: IntArray
    m: IntArray
    ordered: FloatArray  # those within, by group and value

    def span(self) -> tuple[IntArray, IntArray]:
        """First and last of the wanted ranks that exist, as in `span_of`."""
        return span_of(self.wanted, self.n)

    def at(self, rank: IntArray, group: IntArray) -> FloatArray:
        """Records at these ranks; any value where the band does not hold them."""
        if not len(self.ordered):
            return np.zeros(rank.shape)
        return self.ordered.take(self._before[group] + rank, mode="clip")

    @once
    def _before(self) -> IntArray:
        """Where the record of rank 0 of each group would stand, shape (G,)."""
        return self.m.cumsum() - self.m - self.below - 1

    def window(self, q: float, universe: Universe) -> FloatArray:
        """The four order statistics of a quantile."""
        rank = window_start(self.n, q) + np.arange(4).reshape(4, 1)
        records = self.at(rank, np.arange(len(self.n)))
        return np.where(rank < 1, universe.lo, np.where(rank > self.n, universe.hi, records))

    def missed(self, lower: FloatArray, upper: FloatArray, points: tuple[Points, ...]) -> NDArray[np.bool_]:
        """Groups whose band misses wanted records, or ends at the point of a wanted one."""
        first, last = self.span()
        some = first <= last
        above = self.n - self.below - self.m
        outside: NDArray[np.bool_] = some & ((first <= self.below) | (last > self.n - above))
        if isinstance(self.wanted, Ranks):
            group = np.arange(len(self.n))
            lowest, highest = self.at(first, group), self.at(last, group)
            for point in points:
                ends = (point.index(end.clip(point.lo, point.hi)) for end in (lower, upper))
                low, high = ends
                outside |= some & (self.below > 0) & (point.index(lowest) <= low)
                outside |= some & (above > 0) & (point.index(highest) >= high)
        return outside

    def parts(self, runs: Iterable[slice]) -> Iterator[BandLook]:
        """The same of some groups that follow one another, of those after them, and so on."""
        begin = 0
        for groups in runs:
            m = self.m[groups]
            end = begin + int(m.sum())
            yield BandLook(self.wanted, self.n[groups], self.below[groups], m, self.ordered[begin:end])
            begin = end


def span_of(wanted: Ranks | float, n: IntArray) -> tuple[IntArray, IntArray]:
    """First and last of the wanted ranks among n records, shape (G,) each; the last may be below the first."""
    if isinstance(wanted, Ranks):
        return wanted.first(n), wanted.last(n)
    start = window_start(n, wanted)
    return np.maximum(start, 1), np.minimum(start + (2 if wanted == 0.5 else 3), n)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Records of G groups whose ranks are known: the wanted ones of some looks, and the first and last of each group.

    Where the first or last record is none of those asked for, it may be another one on that side of them.
    """

    looks: Sequence[BandLook]
    n: IntArray  # shape (G,)
    universe: Universe

    def cells(self, points: Points) -> Cells:
        """Cells of these records."""
        runs = list(runs_of_groups(np.concatenate([[0], np.cumsum(sum(look.m for look in self.looks))])))
        parts = []
        for groups, *looks in zip(runs, *(look.parts(runs) for look in self.looks), strict=True):
            n = self.n[groups]
            group, rank, records = _known(looks, n, self.universe)
            parts.append(Cells.of_ranks(group, rank, points.index(records).astype(np.int64), n, points.size))
        return Cells.one_after_another(parts)


def _known(looks: Sequence[BandLook], n: IntArray, universe: Universe) -> tuple[IntArray, IntArray, FloatArray]:
    """Groups, ranks and records of the wanted ones, and of the first and last of each group."""
    some, every = n.nonzero()[0], np.arange(len(n))
    lowest, highest = np.full(len(n), universe.lo), np.full(len(n), universe.hi)
    parts = []
    for look in looks:
        first, last = look.span()
        lengths = np.maximum(last - first + 1, 0)
        group = every.repeat(lengths)
        rank = np.arange(len(group)) - (lengths.cumsum() - lengths - first)[group]
        parts.append((group, rank, look.at(rank, group)))
        lowest = np.where(look.below == 0, look.at(np.ones_like(n), every), lowest)
        highest = np.where(look.below + look.m == n, look.at(n, every), highest)
    parts += [(some, np.ones_like(some), lowest[some]), (some, n[some], highest[some])]
    group, rank, records = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return group, rank, records


def sorted_by_group(records: FloatArray, code: NDArray[np.int32]) -> tuple[FloatArray, NDArray[np.int32]]:
    """Records and codes in the order of the codes, and within a code of the records."""
    by_value = np.argsort(records)
    by_code = by_value[_stable_order(code[by_value])]
    return records[by_code], code[by_code]


def _stable_order(code: NDArray[np.int32]) -> NDArray[np.intp]:
    """`argsort` that keeps the order of equal codes: numpy sorts 16-bit integers by radix, ten times faster."""
    order = np.argsort(code.astype(np.uint16), kind="stable")
    high = (code >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order
