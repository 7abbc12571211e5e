"""Histogram of a column, released like any answer: counts of disjoint bins, which cost their eps once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._answer.releasing import released
from pdrisk._answer.table import one_answer
from pdrisk._core.statistics import Histogram
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._guard import guarded
from pdrisk._model.query import UNIT, universe
from pdrisk._pandas.declared import declared
from pdrisk._pandas.options import LINES
from pdrisk._pandas.requests import check_numeric, judged_lines, judged_query
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.derived import with_derived
from pdrisk.engines.numpy.frame import column_values
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["CountedGroups", "histogram"]

MOST_BINS = 100_000


@dataclass(frozen=True, slots=True)
class CountedGroups:
    """Numbers of records in disjoint groups: what is read for one line."""

    universes: tuple[Universe, ...]
    summaries: tuple[Summary, ...]


def histogram(
    frame: pd.DataFrame, column: Hashable, bins: object, options: dict[str, Any], paid: dict[str, Any]
) -> pd.DataFrame:
    """Noisy numbers of records in bins, indexed by the bins.

    Parameters
    ----------
    frame, column, bins
        As ``df.dprisk.hist`` takes them.
    options, paid : dict
        What is asked, and what is said to the ledger.
    """
    bounds, mechanism, step = (options.pop(name) for name in LINES)
    if options["by"] is not None or step is not None:
        raise ParameterError("hist takes no by= and no step=: filter with where=, or count by bins of your own.")
    (line,) = judged_lines(frame, column, (_asked(frame, column, bins, bounds),), None, mechanism)
    check_numeric(frame[column], line.statistic)
    query = judged_query(frame, (line,), **options)
    statistic = line.statistic
    assert isinstance(statistic, Histogram)

    def read() -> CountedGroups:
        known = without_codes(with_derived(frame, query.derived), query.missing)
        values = column_values(known[column])
        if query.where is not None:
            values = values[query.where.mask(known)]
        return CountedGroups((UNIT,), (_counts(values, statistic),))

    index = pd.IntervalIndex.from_breaks(list(statistic.edges), closed="left", name=column)
    table = released(query, lambda: guarded(read), lambda results, _: one_answer(results, index), **paid)
    assert isinstance(table, pd.DataFrame)
    return table


def _asked(frame: pd.DataFrame, column: Hashable, bins: object, bounds: object) -> Histogram:
    """The edges: those given, or of a number of bins that divide the bounds evenly."""
    if isinstance(bins, bool | str | bytes | dict | set):
        raise ColumnTypeError("bins is a number of bins, or a list of edges, as in bins=[0, 10, 100].")
    if isinstance(bins, int | np.integer):
        if not 1 <= bins <= MOST_BINS:
            raise ParameterError(f"bins must be between 1 and {MOST_BINS:,}.")
        if isinstance(bounds, Mapping):
            bounds = bounds.get(column)
        if isinstance(bounds, str):
            raise ParameterError("hist needs declared bounds=(lo, hi), or edges: it does not take them from the data.")
        known = declared(frame, column) if column in frame.columns else None
        inside = universe(bounds) if bounds is not None else None if known is None else known.universe
        if inside is None:
            raise ParameterError(
                "a number of bins divides the bounds, which are not declared: pass bounds=(lo, hi), or the edges "
                "themselves, as in bins=[0, 10, 100]."
            )
        edges = np.linspace(inside.lo, inside.hi, int(bins) + 1)
        return Histogram(tuple(edges.tolist()), clamps=True)
    if bounds is not None:
        raise ParameterError("edges say the range themselves: leave bounds out, or pass a number of bins.")
    if not isinstance(bins, Iterable):
        raise ColumnTypeError("bins is a number of bins, or a list of edges, as in bins=[0, 10, 100].")
    listed = list(islice(bins, MOST_BINS + 2))
    if not 2 <= len(listed) <= MOST_BINS + 1:
        raise ParameterError(f"bins must list 2 to {MOST_BINS + 1:,} edges.")
    pairs = [universe(pair) for pair in pairwise(listed)]  # rising, finite numbers
    return Histogram((pairs[0].lo, *(pair.hi for pair in pairs)))


def _counts(values: NDArray[np.generic], asked: Histogram) -> Summary:
    """Number of records of each bin, and of those moved into it, in pieces of the processor's cache."""
    edges = np.array(asked.edges)
    counts, moved = (np.zeros(len(edges) - 1, dtype=np.int64) for _ in range(2))
    for start in range(0, len(values), SIZE):
        records = np.asarray(values[start : start + SIZE], dtype=np.float64)
        records = records[~np.isnan(records)]
        if asked.clamps:
            moved[0] += np.count_nonzero(records < edges[0])
            moved[-1] += np.count_nonzero(records > edges[-1])
            records = np.clip(records, edges[0], edges[-1])
        counts += np.histogram(records, edges)[0]
    return Summary(counts, clamped=moved)
