"""Numbers of records in bins, in the SQL of an engine: between edges, or of each sign and size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pdrisk._core.summary import Summary
from pdrisk.engines.numpy.bins import SIZES, SMALLEST
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.order_lists import Lists
from pdrisk.engines.sql.summary.sizes import searched
from pdrisk.engines.sql.summary.summary_plan import Binned


def beyond_edges(dialect: Dialect, i: int, part: Binned) -> Iterator[tuple[str, str]]:
    """Numbers of records below and above all edges, ``under_i`` and ``over_i``, if these count as moved."""
    if part.bins is not None and part.bins.clamps:
        yield f"under_{i}", dialect.counted(f"p{i} < {dialect.number(part.bins.edges[0])}")
        yield f"over_{i}", dialect.counted(f"p{i} > {dialect.number(part.bins.edges[-1])}")


def in_bins(dialect: Dialect, i: int, part: Binned, rows: str) -> str:
    """SELECT of two lists in one order: the bins that hold records, ``bins_i``, and their numbers, ``held_i``."""
    place = _bin(dialect, f"p{i}", part)
    counted = (
        f"(SELECT bin, {dialect.call('COUNT', '*')} AS n FROM (SELECT {place} AS bin FROM {rows} "
        f"WHERE p{i} IS NOT NULL) AS placed WHERE bin IS NOT NULL GROUP BY bin) AS counted"
    )
    return (
        f"(SELECT {dialect.listed('bin', 'bin')} AS bins_{i}, {dialect.listed('n', 'bin')} AS held_{i} FROM {counted})"
    )


def _bin(dialect: Dialect, p: str, part: Binned) -> str:
    """Bin of a record with a value; NULL if it is in none."""
    whole = dialect.whole
    if part.bins is None:
        thresholds = [dialect.number(math.ldexp(1.0, SMALLEST - 1 + at)) for at in range(SIZES)]
        sign = f"(CASE WHEN {p} < {dialect.number(0.0)} THEN {whole(-1)} ELSE {whole(1)} END)"
        steps = f"({searched(dialect.call('ABS', p), thresholds, dialect)})"
        return dialect.infix(whole(SIZES), "+", dialect.infix(sign, "*", steps))
    edges, last = part.bins.edges, len(part.bins.edges) - 2
    first, final = dialect.number(edges[0]), dialect.number(edges[-1])
    under, over = (whole(0), whole(last)) if part.bins.clamps else ("NULL", "NULL")
    inner = searched(p, list(map(dialect.number, edges[1:-1])), dialect)
    return f"CASE WHEN {p} < {first} THEN {under} WHEN {p} > {final} THEN {over} ELSE {inner} END"


def summary_of_bins(columns: dict[str, Any], i: int, part: Binned) -> Summary:
    """The summary whose groups are the bins of a part."""
    counts = np.zeros(2 * SIZES + 1 if part.bins is None else len(part.bins.edges) - 1, dtype=np.int64)
    bins, held = (Lists.of(columns[f"{name}_{i}"]).values.astype(np.int64) for name in ("bins", "held"))
    counts[bins] = held
    if part.bins is None:
        return Summary(counts)
    moved = np.zeros_like(counts)
    if part.bins.clamps:
        for at, name in ((0, "under"), (-1, "over")):
            moved[at] += int(np.ma.filled(np.ma.asarray(columns[f"{name}_{i}"]), 0)[0])
    return Summary(counts, clamped=moved)
