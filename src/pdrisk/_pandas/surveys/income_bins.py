"""Income bins by group, counted in one release, of which measures of inequality are made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pandas as pd

from pdrisk._answer.releasing import Asker, Results
from pdrisk._answer.tables.answer_table import one_answer
from pdrisk._answer.tables.inequality import MEASURES, Inequality
from pdrisk._answer.words.doubts import warn_of_crowded_bins
from pdrisk._core.foreign import shown
from pdrisk._ledger import ledger_for
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.plain import float_of
from pdrisk._model.unit import ONE
from pdrisk._pandas.noisy.answers import of_frame, rows_of
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.intervals import check_numeric
from pdrisk._pandas.requests.judged_requests import check_given, groups_of
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.surveys.bins_as_groups import counted_in_bins, keys_in_bins, reached
from pdrisk._pandas.surveys.histogram import asked_bins
from pdrisk.errors import ColumnTypeError, NoisyReleaseWarning, ParameterError

LEAST_BINS, MOST_BINS = 2, 500
SHARES = ("gini", "s80s20")  # of incomes, which are none below 0


def income_bins(
    frame: pd.DataFrame, column: Hashable, bins: object, line: object, of: object, request: Request, asker: Asker
) -> Inequality:
    """Measures of inequality from noisy numbers of records by group and bin.

    A record beyond the outer edges counts in the first or the last bin, with its weight if there are weights.

    ``frame, column, bins, line, of``: as ``df.dprisk.inequality`` takes them.
    """
    eps = check_given(frame, request)
    check_column(frame, column)
    if not isinstance(column, str):
        raise ColumnTypeError(
            f"inequality needs a column whose name is a text, which {shown(column)} is not: rename it."
        )
    check_numeric(frame[column], "inequality")
    measures, share, edges = _measures(of), _share(line), asked_bins(frame, column, bins, request.bounds).edges
    _check_edges(frame, column, edges, measures)
    _check_rows(request)
    by, number = groups_of(frame, request.by, request.keys), len(edges) - 1
    listed = keys_in_bins("inequality", by, range(number))
    query, engine = counted_in_bins(frame, column, reached(column, edges[1:-1]), by, listed, True, request, eps)
    assert query.groups is not None
    if by is not None:
        query = replace(query, groups=replace(query.groups, keys_from=by.keys_from))
    query = replace(query, sums_cells=True)

    def answer(results: Results, reading: Any) -> Inequality:
        index = rows_of(query, reading.groups)
        assert index is not None
        table = one_answer(results, index.set_names([*index.names[:-1], column]))
        measured = results.releases[0].noisy.measurements
        assert isinstance(table, pd.DataFrame)
        assert measured is not None
        return Inequality.of(table, measured, edges, share, measures)

    inequality: Inequality = of_frame(query, engine, answer, asker)
    if any(measure in SHARES for measure in measures):
        try:
            warn_of_crowded_bins(inequality.is_crowded)
        except NoisyReleaseWarning:  # where warnings are errors: what a ledger paid for is not lost for that
            if ledger_for(asker.ledger) is None:
                raise
    return inequality


def _measures(of: object) -> tuple[str, ...]:
    listed = [of] if isinstance(of, str) else of
    if not isinstance(listed, list | tuple) or not all(isinstance(measure, str) for measure in listed):
        raise ColumnTypeError(f"of lists measures, as in of=[{MEASURES[0]!r}], not {type(of).__name__}.")
    names = tuple(islice(dict.fromkeys(listed), len(MEASURES) + 1))
    if unknown := [name for name in names if name not in MEASURES]:
        raise ParameterError(
            f"unknown measure {shown(unknown[0])}; available: {', '.join(MEASURES)}."
            f"{did_you_mean(unknown[0], MEASURES)}"
        )
    if not names:
        raise ParameterError(f"of lists no measure; available: {', '.join(MEASURES)}.")
    return names


def _share(line: object) -> float:
    share = float_of("line", line)
    if not 0 < share <= 1:
        raise ParameterError(
            f"line is the poverty line as a share of the median, above 0 and at most 1, as in line=0.6, not {share:g}."
        )
    return share


def _check_rows(request: Request) -> None:
    """Refuse people with several rows of whom nothing says which count."""
    several = request.way not in (None, ONE)
    has_people = bool(request.people.columns) or request.person is not None
    options = (request.way, request.rows, request.groups, request.unit, request.people.rows)
    if several or (has_people and all(option is None for option in options)):
        why = f'per_person="{request.way}" makes one number of several' if several else "one person may have several"
        raise ParameterError(
            f"inequality counts rows in bins, and {why}: pass rows=k (at most k rows of each person count, as those of "
            'the members of a household, with k times the noise), per_person="one" (each has one row; of more, one is '
            'chosen), or unit="row" (protects one row).'
        )


def _check_edges(frame: pd.DataFrame, column: Hashable, edges: Sequence[float], measures: Sequence[str]) -> None:
    number = len(edges) - 1
    if not LEAST_BINS <= number <= MOST_BINS:
        raise ParameterError(
            f"inequality needs {LEAST_BINS} to {MOST_BINS} bins, not {number:,}: some 30 to 50 are usual, narrow ones "
            "where most people are."
        )
    known = declared(frame, column).universe
    if known is not None and (edges[0] < known.lo or edges[-1] > known.hi):
        raise ParameterError(
            f"the edges reach from {edges[0]:g} to {edges[-1]:g}, beyond the declared bounds of {column!r}, "
            f"{known.lo:g} to {known.hi:g}, where no value lies: list edges within them."
        )
    if edges[0] < 0 and (without := [measure for measure in measures if measure in SHARES]):
        raise ParameterError(
            f"{without[0]} is about shares of all incomes, which are none where some are below 0: begin the edges with "
            f"0, so that incomes below count in the first bin, or ask of={[e for e in MEASURES if e not in SHARES]!r}."
        )
