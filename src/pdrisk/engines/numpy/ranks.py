"""Order statistics of one or many groups without sorting the data.

A random sample tells, for each group, a narrow band of values that the wanted ranks almost surely lie in. One pass
counts the records below the band and keeps those inside it, and only they are sorted. The counts are exact, so a
band that missed is noticed, and its group is done again with the band of all values. The sample decides the speed only.
Of many groups that are too small for a sample, sorted integers tell the bands: cells of the universe, by group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Points
from pdrisk._core.summary import FloatArray, IntArray, Ranks, window_start
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import clamped

__all__ = ["Ranked", "windows"]

SAMPLE = 2**14  # records of one group; the band is then 4 standard deviations of its rank wide to each side: 3 %
SAMPLE_OF_MANY = 2**10  # per group of many: 13 %
WORTH_SAMPLING = 8  # times as many records as the sample
WORTH_CELLS = 2**16  # records: of fewer, all are sorted
CELL_BITS = 46  # of a cell's number at most
SPARE_CELLS = 2  # by which such a band is wider, for the rounding of its ends
SPARE_STEPS = 2  # between points, by which a band is wider: the points at its ends are then not those of wanted records


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Records of G groups whose ranks are known, the first and last of each among them.

    Attributes
    ----------
    group, rank : ndarray of int64, shape (m,)
        In ascending order.
    records : ndarray of float64, shape (m,)
        Where the first or last record is none of those asked for, it may be another one on that side of them.
    n : ndarray of int64, shape (G,)
    """

    group: IntArray
    rank: IntArray
    records: FloatArray
    n: IntArray


def windows(
    values: NDArray[np.generic],
    universe: Universe,
    quantiles: Iterable[float],
    ranks: Iterable[Ranks] = (),
    points: tuple[Points, ...] = (),
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
    moved: IntArray | None = None,
) -> tuple[IntArray, dict[float, FloatArray], Ranked | None]:
    """For each quantile the four order statistics from rank `window_start` on, padded by the universe; and more ranks.

    Parameters
    ----------
    values : ndarray of bool, int or float, shape (N,)
    universe : Universe
    quantiles : iterable of float
    ranks : iterable of Ranks
    points : tuple of Points
        That ranked records are to be rounded to.
    selected : ndarray of bool, shape (N,), optional
    codes : ndarray of int32, shape (N,), optional
        The group of each row; ``groups`` marks the rows of no group.
    groups : int
    moved : ndarray of int64, optional
        As for `clamped`.

    Returns
    -------
    n : ndarray of int64, shape (groups,)
        Number of records, found on the way; zero if nothing is asked for.
    windows : dict of float to ndarray of float64, shape (4, groups)
        For the median the fourth is never read and may be any value.
    ranked : Ranked or None
        The records at the ranks; None if none are asked for.
    """
    rows = _Rows(values, universe, selected, codes, groups, points)
    n: IntArray = np.zeros(groups, dtype=np.int64)
    found: dict[float, FloatArray] = {}
    looks: list[_Look] = []
    wanted = set(quantiles)
    for each in ranks:
        look = _looked(rows, each, moved)
        n, moved = look.n, None  # counted once
        looks.append(look)
        if each.q in wanted:
            assert each.q is not None
            found[each.q] = look.window(each.q, universe)
    for q in wanted - set(found):
        look = _looked(rows, q, moved)
        n, moved = look.n, None
        found[q] = look.window(q, universe)
    return n, found, _ranked(looks[: len(looks)], n, universe) if looks else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Arguments of `windows` that describe the records."""

    values: NDArray[np.generic]
    universe: Universe
    selected: NDArray[np.bool_] | None
    codes: NDArray[np.int32] | None
    groups: int
    points: tuple[Points, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """Records of G groups within a band for each.

    Attributes
    ----------
    wanted : Ranks or float
        Ranks, or the quantile whose window is wanted.
    n, below, m : ndarray of int64, shape (G,)
        Number of records, of those below the band, and of those within.
    ordered : ndarray of float64
        Those within, by group and value.
    """

    wanted: Ranks | float
    n: IntArray
    below: IntArray
    m: IntArray
    ordered: FloatArray

    def span(self) -> tuple[IntArray, IntArray]:
        """First and last of the wanted ranks that exist, as in `_span`."""
        return _span(self.wanted, self.n)

    def at(self, rank: IntArray, group: IntArray) -> FloatArray:
        """Records at these ranks; any value where the band does not hold them."""
        if not len(self.ordered):
            return np.zeros(rank.shape)
        place = (np.cumsum(self.m) - self.m - self.below - 1)[group] + rank
        return self.ordered[np.clip(place, 0, len(self.ordered) - 1)]

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
            for each in points:
                ends = (each.index(np.clip(end, each.lo, each.hi)) for end in (lower, upper))
                low, high = ends
                outside |= some & (self.below > 0) & (each.index(lowest) <= low)
                outside |= some & (above > 0) & (each.index(highest) >= high)
        return outside


def _span(wanted: Ranks | float, n: IntArray) -> tuple[IntArray, IntArray]:
    """First and last of the wanted ranks among n records, shape (G,) each; the last may be below the first."""
    if isinstance(wanted, Ranks):
        return wanted.first(n), wanted.last(n)
    start = window_start(n, wanted)
    return np.maximum(start, 1), np.minimum(start + (2 if wanted == 0.5 else 3), n)


def _looked(rows: _Rows, wanted: Ranks | float, moved: IntArray | None) -> _Look:
    lower, upper = _band(rows, wanted)
    look = _within(rows, wanted, lower, upper, moved)
    missed = look.missed(lower, upper, rows.points)
    if missed.any():
        lower[missed], upper[missed] = -np.inf, np.inf
        look = _within(rows, wanted, lower, upper)
    return look


def _ranked(looks: list[_Look], n: IntArray, universe: Universe) -> Ranked:
    """The records at all wanted ranks, each once, and the first and last of each group."""
    some = np.flatnonzero(n)
    lowest, highest = np.full(len(n), universe.lo), np.full(len(n), universe.hi)
    parts = [(some, np.ones_like(some), lowest), (some, n[some], highest)]
    for look in looks:
        first, last = look.span()
        lengths = np.maximum(last - first + 1, 0)
        group = np.repeat(np.arange(len(n)), lengths)
        rank = np.arange(len(group)) - (np.cumsum(lengths) - lengths - first)[group]
        parts.append((group, rank, look.at(rank, group)))
        every = np.arange(len(n))
        lowest[:] = np.where(look.below == 0, look.at(np.ones_like(n), every), lowest)
        highest[:] = np.where(look.below + look.m == n, look.at(n, every), highest)
    parts[0], parts[1] = (some, np.ones_like(some), lowest[some]), (some, n[some], highest[some])
    group, rank, records = (np.concatenate(each) for each in zip(*parts, strict=True))
    key = group * (int(n.max(initial=0)) + 1) + rank
    order = np.argsort(key, kind="stable")  # of sorted runs
    order = order[np.append(True, np.diff(key[order]) > 0)] if len(order) else order
    return Ranked(group[order], rank[order], records[order], n)


def _band(rows: _Rows, wanted: Ranks | float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of each group's band, shape (groups,) each; infinite where the sample says nothing."""
    values, groups = rows.values, rows.groups
    lower, upper = np.full(groups, -np.inf), np.full(groups, np.inf)
    size = SAMPLE if groups == 1 else SAMPLE_OF_MANY * groups
    if not size or len(values) < WORTH_SAMPLING * size:
        return _band_of_cells(rows, wanted) if groups > 1 and len(values) >= WORTH_CELLS else (lower, upper)
    drawn = np.random.default_rng(0).integers(0, len(values), size)
    sample = np.clip(np.asarray(values[drawn], dtype=np.float64), rows.universe.lo, rows.universe.hi)
    code = np.zeros(size, dtype=np.int32) if rows.codes is None else rows.codes[drawn]
    use = ~np.isnan(sample) & (code < groups)
    if rows.selected is not None:
        use &= rows.selected[drawn]
    sample, code = _sorted(sample[use], code[use])
    m = np.bincount(code, minlength=groups)
    first = np.cumsum(m) - m
    for end, side, expected in zip((lower, upper), (-1, 1), _expected(wanted, m, size / len(values)), strict=True):
        if expected is None:
            continue
        expected = np.clip(expected, 0, m)
        reach = 4 * np.sqrt(expected * (1 - expected / np.maximum(m, 1))) + 4
        place = np.floor(expected - reach) if side < 0 else np.ceil(expected + reach)
        inside = (place >= 0) & (place < m)
        end[inside] = sample[(first + place.astype(np.int64))[inside]]
        end += side * _spare(rows)
    return lower, upper


def _spare(rows: _Rows) -> float:
    """Extra width of bands on each side."""
    return SPARE_STEPS * max((each.step for each in rows.points), default=0.0)


def _band_of_cells(rows: _Rows, wanted: Ranks | float) -> tuple[FloatArray, FloatArray]:
    """`_band` of small groups: the cells of their first and last wanted records, by one sort of integers."""
    groups, universe = rows.groups, rows.universe
    bits = min(62 - groups.bit_length(), CELL_BITS)
    per_unit = 2.0 ** (bits - 1) / universe.width  # half of the cells, so that no rounding leaves them
    keys = np.empty(len(rows.values), dtype=np.int64)
    filled = 0
    for _, records, code, *_ in clamped(rows.values, universe, selected=rows.selected, codes=rows.codes):
        inside = code < groups
        own = (records[inside] - universe.lo) * per_unit
        keys[filled : filled + len(own)] = own.astype(np.int64) + (code[inside] << bits)
        filled += len(own)
    keys = keys[:filled]
    keys.sort()
    starts = np.searchsorted(keys, np.arange(groups + 1) << bits)
    first, last = _span(wanted, np.diff(starts))
    lower, upper = np.full(groups, -np.inf), np.full(groups, np.inf)
    some = np.flatnonzero(first <= last)
    for end, rank, side in ((lower, first, -1), (upper, last, 1)):
        cell = keys[(starts[:-1] + rank - 1)[some]] & ((1 << bits) - 1)
        end[some] = universe.lo + (cell + side * SPARE_CELLS) / per_unit + side * _spare(rows)
        end[some] = np.nextafter(end[some], side * np.inf)
    return lower, upper


def _expected(wanted: Ranks | float, m: IntArray, share: float) -> tuple[FloatArray | None, FloatArray | None]:
    """Expected positions of the first and last wanted records among m sampled ones; None if all are wanted."""
    if not isinstance(wanted, Ranks):
        middle: FloatArray = np.multiply(m, wanted, dtype=np.float64)
        return middle, middle
    middle = np.multiply(m, wanted.a / wanted.b, dtype=np.float64) + wanted.offset / wanted.b * share
    return (
        None if wanted.before is None else middle - wanted.before * share,
        None if wanted.after is None else middle + wanted.after * share,
    )


def _within(
    rows: _Rows, wanted: Ranks | float, lower: FloatArray, upper: FloatArray, moved: IntArray | None = None
) -> _Look:
    codes, groups = rows.codes, rows.groups
    n: IntArray = np.zeros(groups, dtype=np.int64)
    below: IntArray = np.zeros(groups, dtype=np.int64)
    kept: list[FloatArray] = [np.empty(0)]
    kept_codes: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    for _, records, code, *_ in clamped(rows.values, rows.universe, selected=rows.selected, codes=codes, moved=moved):
        if codes is None:
            n += len(records)
            under = records < lower[0]
            below += np.count_nonzero(under)
            kept.append(records[~(under | (records > upper[0]))])
        else:
            inside = code < groups
            if not inside.all():
                records, code = records[inside], code[inside]
            n += np.bincount(code, minlength=groups)
            under = records < lower[code]
            below += np.bincount(code[under], minlength=groups)
            in_band = ~(under | (records > upper[code]))
            kept.append(records[in_band])
            kept_codes.append(code[in_band].astype(np.int32))
    ordered = np.concatenate(kept)
    if codes is None:
        ordered.sort()
        m = np.array([len(ordered)], dtype=np.int64)
    else:
        ordered, ordered_codes = _sorted(ordered, np.concatenate(kept_codes))
        m = np.bincount(ordered_codes, minlength=groups)
    return _Look(wanted, n, below, m, ordered)


def _sorted(records: FloatArray, code: NDArray[np.int32]) -> tuple[FloatArray, NDArray[np.int32]]:
    """Records and codes in the order of the codes, and within a code of the records."""
    by_value = np.argsort(records)
    by_code = by_value[_stable_order(code[by_value])]
    return records[by_code], code[by_code]


def _stable_order(code: NDArray[np.int32]) -> NDArray[np.intp]:
    """`argsort` that keeps the order of equal codes: numpy sorts 16-bit integers by radix, ten times faster."""
    order = np.argsort(code.astype(np.uint16), kind="stable")
    high = (code >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order
