"""Queries with margins, as front ends ask for them."""

from __future__ import annotations

from dataclasses import replace

from pdrisk._core.statistics import Count, Histogram, Sum
from pdrisk._mechanisms import MECHANISMS
from pdrisk._model.asked_groups import Groups
from pdrisk._model.margins import ALL, MOST_COLUMNS, Grid, MarginsAsked
from pdrisk._model.query import Line, Query
from pdrisk.errors import ParameterError

COUNTS = (Count, Histogram)


def with_margins(query: Query, asked: MarginsAsked) -> Query:
    """The query with the margins that a caller asks for, or as it is."""
    if not asked.named:
        return query
    bins = _bins(query)
    if query.groups is None and bins is None:
        raise ParameterError(f"{asked.named}= is about the groups of by=, which is missing: pass by=[...] as well.")
    grid = bins if query.groups is None else _grid(query.groups)
    assert grid is not None
    _check_sums(query)
    if asked.normalize is not None and (several := [line for line in query.lines if not _is_sum(line)]):
        raise ParameterError(
            "normalize= gives shares of numbers of records, or of sums of what is never below 0: leave it out for "
            f"{several[0].name}."
        )
    margins = asked.judged(grid, of_counts=any(type(line.statistic) in COUNTS for line in query.lines))
    return query if margins is None else replace(query, margins=margins)


def _bins(query: Query) -> Grid | None:
    """The bins of a histogram as groups of its column; None of other statistics."""
    (line, *_), statistic = query.lines, query.lines[0].statistic
    if not isinstance(statistic, Histogram):
        return None
    return Grid((line.column,), (tuple(range(len(statistic.edges) - 1)),))


def _is_sum(line: Line) -> bool:
    """Whether shares of a statistic lie between 0 and 1."""
    return type(line.statistic) in COUNTS or (
        isinstance(line.statistic, Sum) and line.universe is not None and line.universe.lo >= 0
    )


def can_have_margins(query: Query) -> bool:
    """Whether `with_margins` accepts a query."""
    try:
        if query.groups is not None:
            _grid(query.groups)
        _check_sums(query)
    except ParameterError:
        return False
    return query.groups is not None and len(query.groups.columns) <= MOST_COLUMNS


def _grid(groups: Groups) -> Grid:
    if groups.keys is None or groups.is_private:
        raise ParameterError(
            "margins= needs the public list of all groups, from whose number each table's share of eps follows: list "
            'keys= for each column, instead of keys="observed" or "private".'
        )
    grid = Grid.of(groups.columns, groups.keys)
    if grid is None:
        raise ParameterError(
            f"margins= needs all combinations of the keys of {', '.join(map(str, groups.columns))}, and some are not "
            "listed: pass keys as a dict with a list for each column."
        )
    if taken := [column for column, level in zip(grid.columns, grid.levels, strict=True) if ALL in level]:
        raise ParameterError(f"margins are labelled {ALL!r}, which is a key of {taken[0]}: name that key otherwise.")
    return grid


def _check_sums(query: Query) -> None:
    for line in query.lines:
        if not MECHANISMS[line.mechanism].adds_up(line.statistic):
            raise ParameterError(
                f"margins= is for numbers of records, sums, means, variances and standard deviations, and {line.name} "
                f"by {line.mechanism} is no sum over groups: ask for it without margins="
                + (', or with mechanism="auto".' if line.mechanism == "laplace" else ".")
            )
        if line.statistic.bounded and line.universe is None:
            raise ParameterError(f"margins= of {line.name} needs declared bounds=(lo, hi), not those of the data.")
    unit = query.unit
    if unit.groups > 1 and not unit.overall and unit.rows == 1:
        raise ParameterError(
            "margins would count a person once for each group, as people may be in several: ask with rows=, which "
            "counts rows, or declare the columns of by= as constant=, if they are."
        )
