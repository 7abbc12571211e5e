"""Histogram of a column, released like any answer: counts of disjoint bins, which cost their eps once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.releasing import Asker, Results
from pdrisk._answer.tables.answer_table import intervals_of, one_answer
from pdrisk._core.foreign import as_integer, shown
from pdrisk._core.statistics import Histogram
from pdrisk._model.arguments import universe
from pdrisk._model.asked_groups import Groups
from pdrisk._model.expressions.columns import check_column, column_kind
from pdrisk._model.expressions.kinds import DATE, TIME, ZONED
from pdrisk._model.expressions.nodes import Column
from pdrisk._model.margins import ALL
from pdrisk._model.query import Query
from pdrisk._model.rowwise.builder import text_of
from pdrisk._pandas.noisy.answers import of_frame, rows_of
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.intervals import check_numeric, interval_of_dates
from pdrisk._pandas.requests.judged_requests import check_given, groups_of, judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.surveys.bins_as_groups import counted_in_bins, keys_in_bins, reached
from pdrisk._pandas.surveys.date_bins import DateBins, dates_in_bins
from pdrisk.engines.base import Engine
from pdrisk.errors import ColumnTypeError, ParameterError

MOST_BINS = 100_000


def histogram(frame: pd.DataFrame, column: Hashable, bins: object, request: Request, asker: Asker) -> pd.DataFrame:
    """Noisy numbers of records in bins, or of their weights, indexed by the bins.

    ``frame, column, bins``: as ``df.dprisk.hist`` takes them.
    """
    if request.step is not None:
        raise ParameterError("hist takes no step=: it counts records, and its bins are given by their edges.")
    check_column(frame, column)
    asked: Histogram | DateBins
    if (kind := column_kind(frame[column])) == ZONED:
        raise ColumnTypeError(
            f"column {shown(column)} holds timestamps with a time zone, and days begin by a clock: take it off, "
            f"as in df[{shown(column)}].dt.tz_localize(None)."
        )
    if kind in (DATE, TIME):
        bounds = request.bounds.get(column) if isinstance(request.bounds, Mapping) else request.bounds
        span, _ = interval_of_dates(frame, column, kind, bounds)
        asked, request = dates_in_bins(bins, span, given=bounds is not None), _without_bounds(column, request)
    else:
        check_numeric(frame[column], "hist")
        asked = asked_bins(frame, column, bins, request.bounds)
    by = groups_of(frame, request.by, request.keys)
    if by is not None and request.tables.margins is not False:
        raise ParameterError("hist has margins of its bins alone: leave by= or margins= out, or ask count(by=[...]).")
    if request.weighing is None and by is None and isinstance(asked, Histogram):
        lines = judged_lines(frame, column, (asked,), replace(request, bounds=None))
        query, engine = judged_query(frame, lines, request)
    else:
        query, engine = _in_groups(frame, column, asked, by, request)
    total = [] if query.margins is None else [ALL] * (len(query.margins.tables) - 1)
    is_calendar = isinstance(asked, DateBins) and asked.clamps
    bins_of = asked.edges[:-1] if is_calendar else intervals_of(asked.edges)
    labels = pd.Index([*bins_of, *total], dtype=None if is_calendar and not total else object, name=column)

    def answer(results: Results, reading: Any) -> pd.DataFrame:
        index = labels if by is None else _by_groups(query, reading.groups, labels)
        table = one_answer(results, index)
        assert isinstance(table, pd.DataFrame)
        return table

    counts: pd.DataFrame = of_frame(query, engine, answer, asker)
    return counts


def _without_bounds(column: Hashable, request: Request) -> Request:
    """The request without the bounds of a column of dates."""
    bounds = request.bounds
    rest = {name: of for name, of in bounds.items() if name != column} if isinstance(bounds, Mapping) else None
    return replace(request, bounds=rest or None)


def _by_groups(query: Query, groups: pd.Index, labels: pd.Index) -> pd.MultiIndex:
    """The index of groups and bins, with the labels of the bins instead of their numbers."""
    index = rows_of(query, groups)
    assert isinstance(index, pd.MultiIndex)
    assert query.groups is not None and query.groups.keys is not None
    *levels, numbers = (index.get_level_values(at) for at in range(index.nlevels))
    first: Any = query.groups.keys[0][-1]
    bins = labels.take(numbers.to_numpy(dtype=np.int64) - first)
    return pd.MultiIndex.from_arrays([*levels, bins], names=[*index.names[:-1], labels.name])


def _in_groups(
    frame: pd.DataFrame, column: Hashable, asked: Histogram | DateBins, by: Groups | None, request: Request
) -> tuple[Query, Engine[Any]]:
    """The question of how many records, or how much weight, each group has in each bin."""
    if not isinstance(column, str):
        raise ColumnTypeError(
            "hist of dates, by groups or with weights needs a column whose name is a text: rename it."
        )
    eps = check_given(frame, request)
    *inner, last = (str(edge) if isinstance(edge, pd.Timestamp) else edge for edge in asked.edges)
    number = len(inner)
    if asked.clamps and number == 1:
        raise ParameterError("one bin of all values is count(): take two bins at least.")
    if asked.clamps:
        bins, places = range(number), reached(column, inner[1:])
    else:
        bins = range(1, number + 1)
        places = f"({reached(column, inner)}) + 1 * ({text_of(Column(column))} > {last!r})"
    keys = keys_in_bins("hist", by, bins)
    query, engine = counted_in_bins(frame, column, places, by, keys, asked.clamps, request, eps)
    if by is not None and query.groups is not None:
        query = replace(query, groups=replace(query.groups, keys_from=by.keys_from))
    return query, engine


def asked_bins(frame: pd.DataFrame, column: Hashable, bins: object, bounds: object) -> Histogram:
    """The edges of the bins: as given, or by dividing the bounds evenly."""
    bins = as_integer(bins)
    if isinstance(bins, bool | str | bytes | dict | set) or not isinstance(bins, int | np.integer | Iterable):
        raise ColumnTypeError("bins is a whole number of bins, or a list of edges, as in bins=[0, 10, 100].")
    if isinstance(bounds, Mapping):
        bounds = bounds.get(column)
    if isinstance(bins, int | np.integer):
        if not 1 <= bins <= MOST_BINS:
            raise ParameterError(f"bins must be between 1 and {MOST_BINS:,}.")
        if isinstance(bounds, str):
            raise ParameterError("hist needs declared bounds=(lo, hi), or edges: it does not take them from the data.")
        inside = declared(frame, column).universe if bounds is None else universe(bounds)
        if inside is None:
            raise ParameterError(
                "a number of bins divides the bounds, which are not declared: pass bounds=(lo, hi), or the edges "
                "themselves, as in bins=[0, 10, 100]."
            )
        edges = np.linspace(inside.lo, inside.hi, int(bins) + 1)
        return Histogram(tuple(edges.tolist()), clamps=True)
    if bounds is not None:
        raise ParameterError("edges say the range themselves: leave bounds out, or pass a number of bins.")
    listed = list(islice(bins, MOST_BINS + 2))
    if not 2 <= len(listed) <= MOST_BINS + 1:
        raise ParameterError(f"bins must list 2 to {MOST_BINS + 1:,} edges.")
    try:
        pairs = [universe(pair) for pair in pairwise(listed)]  # rising, finite numbers
    except ParameterError as error:
        kind = type(error)
    else:
        return Histogram((pairs[0].lo, *(pair.hi for pair in pairs)))
    raise kind(
        "the edges in bins= must be finite numbers that rise, as in bins=[0, 10, 100], within 1e100 of zero and not so "
        "close that floats hardly tell them apart."
    )
