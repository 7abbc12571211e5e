"""Order statistics of one or many groups without sorting the data.

A random sample tells, for each group, a narrow band of values that the wanted ranks almost surely lie in. One pass
counts the records below the band and keeps those inside it, and only they are sorted. The counts are exact, so a
band that missed is noticed, and its group is done again with the band of all values. The sample decides the speed only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, IntArray, window_start
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import clamped

__all__ = ["windows"]

SAMPLE = 2**14  # records of one group; the band is then 4 standard deviations of its rank wide to each side: 3 %
SAMPLE_OF_MANY = 2**10  # per group of many: 13 %
WORTH_SAMPLING = 8  # times as many records as the sample


def windows(
    values: NDArray[np.generic],
    universe: Universe,
    quantiles: Iterable[float],
    *,
    selected: NDArray[np.bool_] | None = None,
    codes: NDArray[np.int32] | None = None,
    groups: int = 1,
    moved: IntArray | None = None,
) -> tuple[IntArray, dict[float, FloatArray]]:
    """For each quantile the four order statistics from rank `window_start` on, padded by the universe.

    Parameters
    ----------
    values : ndarray of bool, int or float, shape (N,)
    universe : Universe
    quantiles : iterable of float
    selected : ndarray of bool, shape (N,), optional
    codes : ndarray of int32, shape (N,), optional
        The group of each row; ``groups`` marks the rows of no group.
    groups : int
    moved : ndarray of int64, optional
        As for `clamped`.

    Returns
    -------
    n : ndarray of int64, shape (groups,)
        Number of records, found on the way; zero if no quantile is asked for.
    windows : dict of float to ndarray of float64, shape (4, groups)
        For the median the fourth is never read and may be any value.
    """
    rows = _Rows(values, universe, selected, codes, groups)
    n: IntArray = np.zeros(groups, dtype=np.int64)
    found = {}
    for q in quantiles:
        n, found[q] = _window(rows, q, moved)
        moved = None  # counted once
    return n, found


@dataclass(frozen=True, slots=True)
class _Rows:
    """The arguments of `windows` but the quantiles."""

    values: NDArray[np.generic]
    universe: Universe
    selected: NDArray[np.bool_] | None
    codes: NDArray[np.int32] | None
    groups: int


def _window(rows: _Rows, q: float, moved: IntArray | None) -> tuple[IntArray, FloatArray]:
    n, window, missed = _within(rows, q, *_band(rows, q), moved)
    if missed.any():
        codes, left = rows.codes, int(missed.sum())
        if codes is not None:
            # Everything but the missed groups becomes the group of no group.
            number = np.append(np.where(missed, np.cumsum(missed) - 1, left), left)
            codes = number.astype(np.int32)[codes]
        everything = np.full(left, np.inf)
        _, window[:, missed], _ = _within(replace(rows, codes=codes, groups=left), q, -everything, everything)
    return n, window


def _band(rows: _Rows, q: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of each group's band, shape (groups,) each; infinite where the sample says nothing."""
    values, groups = rows.values, rows.groups
    lower, upper = np.full(groups, -np.inf), np.full(groups, np.inf)
    size = SAMPLE if groups == 1 else SAMPLE_OF_MANY * groups
    if len(values) < WORTH_SAMPLING * size:
        return lower, upper
    drawn = np.random.default_rng(0).integers(0, len(values), size)
    sample = np.clip(np.asarray(values[drawn], dtype=np.float64), rows.universe.lo, rows.universe.hi)
    code = np.zeros(size, dtype=np.int32) if rows.codes is None else rows.codes[drawn]
    use = ~np.isnan(sample) & (code < groups)
    if rows.selected is not None:
        use &= rows.selected[drawn]
    sample, code = _sorted(sample[use], code[use])
    m = np.bincount(code, minlength=groups)
    centre, reach = q * m, 4 * np.sqrt(m * q * (1 - q)) + 4
    first = np.cumsum(m) - m
    for end, place in ((lower, np.floor(centre - reach)), (upper, np.ceil(centre + reach))):
        inside = (place >= 0) & (place < m)
        end[inside] = sample[(first + place.astype(np.int64))[inside]]
    return lower, upper


def _within(
    rows: _Rows, q: float, lower: FloatArray, upper: FloatArray, moved: IntArray | None = None
) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
    """Counts, shape (G,), the windows as far as the bands hold them, (4, G), and which bands missed, (G,)."""
    codes, groups, universe = rows.codes, rows.groups, rows.universe
    n: IntArray = np.zeros(groups, dtype=np.int64)
    below: IntArray = np.zeros(groups, dtype=np.int64)
    kept: list[FloatArray] = [np.empty(0)]
    kept_codes: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)]
    for _, records, code, *_ in clamped(rows.values, universe, selected=rows.selected, codes=codes, moved=moved):
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
    place = window_start(n, q) - 1 + np.arange(4).reshape(4, 1)  # counted from 0 within the group
    in_band_place = place - below
    exists = (place >= 0) & (place < n)
    outside = exists & ((in_band_place < 0) | (in_band_place >= m))
    missed: NDArray[np.bool_] = np.any(outside[: 3 if q == 0.5 else 4], axis=0)
    at = np.clip(np.cumsum(m) - m + in_band_place, 0, max(len(ordered) - 1, 0))
    found = ordered[at] if len(ordered) else np.zeros(at.shape)
    return n, np.where(exists, found, np.where(place < 0, universe.lo, universe.hi)), missed


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
