"""Histogram of a column, released like any answer: counts of disjoint bins, which cost their eps once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.releasing import Asker, released
from pdrisk._answer.tables.answer_table import intervals_of, one_answer
from pdrisk._core.foreign import as_integer
from pdrisk._core.statistics import Histogram
from pdrisk._model.arguments import universe
from pdrisk._model.columns import check_column
from pdrisk._model.margins import ALL
from pdrisk._model.nodes import Column
from pdrisk._model.query import Query
from pdrisk._model.rowwise.builder import text_of
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.intervals import check_numeric
from pdrisk._pandas.requests.judged_requests import check_given, judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.surveys.bins_as_groups import counted_in_bins, reached
from pdrisk.engines.base import Engine
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["asked_bins", "histogram"]

MOST_BINS = 100_000


def histogram(frame: pd.DataFrame, column: Hashable, bins: object, request: Request, asker: Asker) -> pd.DataFrame:
    """Noisy numbers of records in bins, or of their weights, indexed by the bins.

    Parameters
    ----------
    frame, column, bins
        As ``df.dprisk.hist`` takes them.
    request : Request
    asker : Asker
    """
    if request.by is not None or request.step is not None:
        raise ParameterError("hist takes no by= and no step=: filter with where=, or count by bins of your own.")
    check_column(frame, column)
    check_numeric(frame[column], "hist")
    statistic = asked_bins(frame, column, bins, request.bounds)
    if request.weighing is None:
        lines = judged_lines(frame, column, (statistic,), replace(request, bounds=None))
        query, engine = judged_query(frame, lines, request)
    else:
        query, engine = _of_weights(frame, column, statistic, request)
    total = [] if query.margins is None else [ALL] * (len(query.margins.tables) - 1)
    index = pd.Index([*intervals_of(statistic.edges), *total], dtype=object, name=column)
    table = released(query, engine, lambda results, _: one_answer(results, index), asker)
    assert isinstance(table, pd.DataFrame)
    return table


def _of_weights(
    frame: pd.DataFrame, column: Hashable, statistic: Histogram, request: Request
) -> tuple[Query, Engine[Any]]:
    """The question of how much weight is in each bin."""
    if not isinstance(column, str):
        raise ColumnTypeError("a weighted hist needs a column whose name is a text: rename it, or pass weights=False.")
    *inner, last = statistic.edges
    number = len(inner)
    if statistic.clamps and number == 1:
        raise ParameterError("one bin of all values is count(weights=...): list two bins at least.")
    if statistic.clamps:
        keys, places = list(range(number)), reached(column, inner[1:])
    else:
        keys = list(range(1, number + 1))
        places = f"({reached(column, inner)}) + 1 * ({text_of(Column(column))} > {last!r})"
    return counted_in_bins(frame, column, places, None, keys, request, check_given(frame, request))


def asked_bins(frame: pd.DataFrame, column: Hashable, bins: object, bounds: object) -> Histogram:
    """The edges of the bins: as given, or by dividing the bounds evenly."""
    if isinstance(bins, bool | str | bytes | dict | set):
        raise ColumnTypeError("bins is a number of bins, or a list of edges, as in bins=[0, 10, 100].")
    bins = as_integer(bins)
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
    if not isinstance(bins, Iterable):
        raise ColumnTypeError("bins is a number of bins, or a list of edges, as in bins=[0, 10, 100].")
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
