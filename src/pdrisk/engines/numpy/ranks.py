"""Order statistics of one or many groups without sorting the data.

A random sample tells, for each group, a narrow band of values that the wanted ranks almost surely lie in. One pass
counts the records below the band and keeps those inside it, and only they are sorted. The counts are exact, so a
band that missed is noticed, and its group is done again with the band of all values. The sample decides the speed only.
Many groups that are too small for a sample are `OrderedGroups`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Points
from pdrisk._core.summary import FloatArray, IntArray, Ranks
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.chunks import clamped
from pdrisk.engines.numpy.looks import BandLook, GroupedRows, Ranked, sorted_by_group
from pdrisk.engines.numpy.small_groups import OrderedGroups

SAMPLE = 2**14  # records of one group; the band is then 4 standard deviations of its rank wide to each side: 3 %
SAMPLE_OF_MANY = 2**10  # per group of many: 13 %
WORTH_SAMPLING = 8  # times as many records as the sample
SPARE_STEPS = 2  # between points, by which a band is wider: the points at its ends are then not those of wanted records


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

    ``values``: shape (N,)
    ``points``: that ranked records are to be rounded to.
    ``selected``: shape (N,)
    ``codes``: shape (N,). The group of each row; ``groups`` marks the rows of no group.
    ``moved``: as for `clamped`.
    Returns: shape (groups,). Number of records, found on the way; zero if nothing is asked for.
    Returns: shape (4, groups). For the median the fourth is never read and may be any value.
    Returns: the records at the ranks; None if none are asked for.
    """
    rows = GroupedRows(values, universe, selected, codes, groups, points)
    are_small = groups > 1 and len(values) < WORTH_SAMPLING * _sample_of(groups)
    n: IntArray = np.zeros(groups, dtype=np.int64)
    by_quantile: dict[float, FloatArray] = {}
    looks: list[BandLook] = []
    wanted = set(quantiles)
    ordered: OrderedGroups | None = None

    def looked(sought: Ranks | float) -> BandLook:
        nonlocal n, moved, ordered
        if are_small:
            ordered = ordered or OrderedGroups.of(rows, moved)
            look = ordered.look(sought)
        else:
            look = _looked(rows, sought, moved)
        n, moved = look.n, None  # counted once
        return look

    for rank in ranks:
        looks.append(look := looked(rank))
        if rank.q in wanted:
            assert rank.q is not None
            by_quantile[rank.q] = look.window(rank.q, universe)
    for q in wanted - set(by_quantile):
        by_quantile[q] = looked(q).window(q, universe)
    return n, by_quantile, Ranked(looks, n, universe) if looks else None


def _looked(rows: GroupedRows, wanted: Ranks | float, moved: IntArray | None) -> BandLook:
    lower, upper = _band(rows, wanted)
    look = _within(rows, wanted, lower, upper, moved)
    missed = look.missed(lower, upper, rows.points)
    if missed.any():
        lower[missed], upper[missed] = -np.inf, np.inf
        look = _within(rows, wanted, lower, upper)
    return look


def _sample_of(groups: int) -> int:
    """How many records to sample."""
    return SAMPLE if groups == 1 else SAMPLE_OF_MANY * groups


def _band(rows: GroupedRows, wanted: Ranks | float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of each group's band, shape (groups,) each; infinite where the sample says nothing."""
    values, groups = rows.values, rows.groups
    lower, upper = np.full(groups, -np.inf), np.full(groups, np.inf)
    size = _sample_of(groups)
    if not size or len(values) < WORTH_SAMPLING * size:
        return lower, upper
    drawn = np.random.default_rng(0).integers(0, len(values), size)
    sample = np.clip(np.asarray(values[drawn], dtype=np.float64), rows.universe.lo, rows.universe.hi)
    code = np.zeros(size, dtype=np.int32) if rows.codes is None else rows.codes[drawn]
    use = ~np.isnan(sample) & (code < groups)
    if rows.selected is not None:
        use &= rows.selected[drawn]
    sample, code = sorted_by_group(sample[use], code[use])
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


def _spare(rows: GroupedRows) -> float:
    """Extra width of bands on each side."""
    return SPARE_STEPS * max((point.step for point in rows.points), default=0.0)


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
    rows: GroupedRows, wanted: Ranks | float, lower: FloatArray, upper: FloatArray, moved: IntArray | None = None
) -> BandLook:
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
        ordered, ordered_codes = sorted_by_group(ordered, np.concatenate(kept_codes))
        m = np.bincount(ordered_codes, minlength=groups)
    return BandLook(wanted, n, below, m, ordered)
