"""Tables of answers: a frame of one row for each group, or for each statistic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.answers.answer import CLIP, Answer
from pdrisk._answer.answers.curator import Curator
from pdrisk._answer.answers.margin_tables import MarginAnswers
from pdrisk._answer.arithmetic.measured import MEASURED
from pdrisk._answer.release import Release
from pdrisk._answer.releasing import Results
from pdrisk._answer.tables.measured_tables import follow_from, measured_columns, said_of, wide_ends, wide_said
from pdrisk._core.once import called_once
from pdrisk._mechanisms import ClippedSums
from pdrisk._model.plain import plain_label


def one_answer(results: Results, groups: pd.Index | None) -> Release | pd.DataFrame:
    """The answer to a query of one line: a `Release`, or a table of one row for each group."""
    (one,) = results.releases
    if groups is not None:
        return _table(results, [_rows(results, 0)], groups, grouped=True)
    known, unlisted = one.known, results.unlisted
    return Release(
        describe=lambda: results.answer(one=True),
        noisy=one.noisy,
        column=one.line.column,
        known=None if known is None else called_once(lambda: known().of_group(0, unlisted)),
        shows_curator=results.shows_curator,
    )


def table_of_lines(
    results: Results,
    groups: pd.Index | None,
    level: pd.Index | None = None,
    names: tuple[str, ...] = (),
) -> pd.DataFrame:
    """The answers to a query of several lines, one row for each, indexed by column and statistic, then by group.

    ``level``: labels of the lines, which come after the groups, in the place of column and statistic.
    ``names``: of the lines, in the place of column and statistic.
    """
    parts = [_rows(results, at) for at in range(len(results.releases))]
    parts = [part.assign(release=at + 1) for at, part in zip(results.query.releases, parts, strict=True)]
    if level is None:
        index = pd.Index(names, name="name") if names else _column_and_statistic(results)
        if groups is not None:
            index = _crossed(index.repeat(len(groups)), groups.take(np.tile(np.arange(len(groups)), len(parts))))
        return _table(results, parts, index, grouped=groups is not None, names=names)
    if groups is None:
        return _table(results, parts, level, grouped=False)
    table = _stacked(parts)
    by_group = np.arange(len(table)).reshape(len(level), len(groups)).T.ravel()
    inner = level.take(np.tile(np.arange(len(level)), len(groups)))
    crossed = _crossed(groups.repeat(len(level)), inner)
    return _table(results, [table.iloc[by_group]], crossed, grouped=True, by_group=True)


def wide_table(table: pd.DataFrame) -> pd.DataFrame:
    """The values alone of a table with two index levels, the second one as columns, both in their order."""
    answer = Answer.from_attrs(table.attrs)
    assert answer is not None
    rows, columns = (table.index.get_level_values(at) for at in range(2))
    index, across = rows.unique(), columns.unique()
    place = np.full(len(index) * len(across), -1)
    place[index.get_indexer(rows) * len(across) + across.get_indexer(columns)] = np.arange(len(table))
    # Placed by hand: pandas before 3.0 mixes up rows in unstack(sort=False).
    placed = table[["value", "low", "high"]].reset_index(drop=True).reindex(place)
    wide = pd.DataFrame(placed["value"].to_numpy().reshape(len(index), -1), index, across)
    wide = wide.astype("Int64") if answer.delta else wide  # combinations that are not shown are NA
    headings = tuple(plain_label(label) for label in wide.columns)
    measured = wide_said(answer, table.index, wide)
    wide_answer = replace(
        answer, index=(plain_label(rows.name),), headings=headings, measured=measured, measured_tables=None
    )
    if not follow_from(measured):
        wide_answer = replace(wide_answer, ends=wide_ends(wide, placed["low"], placed["high"]))
    return wide_answer.attach(wide)


def intervals_of(edges: Sequence[Any]) -> list[pd.Interval]:
    """Bins as labels of rows: each holds its left edge, the last one both, which no IntervalIndex can say."""
    pairs = list(pairwise(edges))
    return [*(pd.Interval(*ends, closed="left") for ends in pairs[:-1]), pd.Interval(*pairs[-1], closed="both")]


def _measured_tables(results: Results, index: pd.Index) -> dict[str, Any] | None:
    """What was drawn of each table of one line with margins; None of others."""
    noisy = results.releases[0].noisy
    if len(results.releases) > 1 or not isinstance(noisy, MarginAnswers):
        return None
    tables = noisy.measured_tables
    return {"axes": [list(axes) for axes in tables], **said_of(list(tables.values()), index)}


def _crossed(outer: pd.Index, inner: pd.Index) -> pd.MultiIndex:
    """One index with the levels of both."""
    levels = [index.get_level_values(at) for index in (outer, inner) for at in range(index.nlevels)]
    return pd.MultiIndex.from_arrays(levels, names=[*outer.names, *inner.names])


def _rows(results: Results, at: int) -> pd.DataFrame:
    one = results.releases[at]
    values: Any = one.noisy.values
    if results.least_group is not None and one.noisy.is_whole:
        values = pd.array(np.where(one.noisy.withheld, 0, np.nan_to_num(values)).astype(np.int64), dtype="Int64")
        values[one.noisy.withheld] = pd.NA
    low, high = one.noisy.interval()
    dates = {"low": one.noisy.in_kind(low, "before"), "high": one.noisy.in_kind(high, "after")}
    columns = {"value": one.noisy.in_kind(values), **dates, **one.noisy.risk_columns}
    if results.shows_measured:
        columns |= measured_columns([release.noisy.measurements for release in results.releases], at, len(low))
        columns |= {} if one.noisy.estimated is None else {MEASURED: one.noisy.estimated}
    if any(release.line.mechanism == ClippedSums.name for release in results.releases):
        columns |= dict(zip(CLIP, one.noisy.clip or (np.nan, np.nan), strict=True))
    if results.shows_curator and one.facts is not None:
        columns |= {name: getattr(one.facts, name) for name in Curator.columns(results.query.delta > 0)}
    return pd.DataFrame(columns)


def _stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all lines, put together without the warning of pandas 2 about columns of NaN alone."""
    columns: dict[str, Any] = {}
    for name in parts[0].columns:
        pieces = [part[name] for part in parts]
        if all(isinstance(piece.dtype, pd.Int64Dtype) for piece in pieces):
            columns[name] = pd.array([value for piece in pieces for value in piece], dtype="Int64")
        else:
            columns[name] = np.concatenate(
                [
                    piece.to_numpy(dtype=np.float64, na_value=np.nan)
                    if isinstance(piece.dtype, pd.Int64Dtype)
                    else piece.to_numpy()
                    for piece in pieces
                ]
            )
    return pd.DataFrame(columns)


def _column_and_statistic(results: Results) -> pd.Index:
    lines = [(one.line.column, one.line.statistic.label) for one in results.releases]
    return pd.MultiIndex.from_tuples(lines, names=["column", "statistic"])


def _table(
    results: Results,
    parts: list[pd.DataFrame],
    index: pd.Index,
    *,
    grouped: bool,
    names: tuple[str, ...] = (),
    by_group: bool = False,
) -> pd.DataFrame:
    table = parts[0] if len(parts) == 1 else _stacked(parts)
    table.index = index
    answer = replace(
        results.answer(),
        names=names,
        index=tuple(plain_label(name) for name in index.names),
        grouped=grouped,
        measured=said_of([one.noisy.measurements for one in results.releases], index, by_group=by_group),
        measured_tables=_measured_tables(results, index),
    )
    return answer.attach(table)
