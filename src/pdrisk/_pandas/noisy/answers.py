"""Noisy answers from a frame or table: a `Release`, or a table of one row for each group or statistic."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd

from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._answer.release import Release
from pdrisk._answer.releasing import Asker, Losses, Results, released
from pdrisk._answer.tables.answer_table import one_answer, table_of_lines
from pdrisk._ledger import ledger_for
from pdrisk._model.margins import ALL
from pdrisk._model.query import Query
from pdrisk._pandas.requests.declared import check_no_na_of_r
from pdrisk.engines.base import Engine
from pdrisk.engines.numpy.frame import FrameEngine, FrameReading
from pdrisk.engines.numpy.influence import losses, losses_of_people

Answered = TypeVar("Answered")
LARGEST_EXACT: Final = 2**53  # up to which floats hold every whole number


def answered(
    query: Query, engine: Engine[Any], asker: Asker, seen: Callable[[NoisyAnswers], object] = lambda _: None
) -> Release | pd.DataFrame:
    """The answer to a query of one line: a `Release`, or a frame of one row for each group.

    ``seen`` is called with the noisy numbers in it.
    """

    def shown(results: Results, reading: Any) -> Release | pd.DataFrame:
        seen(results.releases[0].noisy)
        return one_answer(results, rows_of(query, reading.groups))

    return of_frame(query, engine, shown, asker)


def answers(
    query: Query,
    engine: Engine[Any],
    asker: Asker,
    level: pd.Index | None = None,
    names: tuple[str, ...] = (),
) -> pd.DataFrame:
    """The answers to a query of several lines, indexed as `table_of_lines` says."""

    def shown(results: Results, reading: Any) -> pd.DataFrame:
        return table_of_lines(results, rows_of(query, reading.groups), level, names)

    return of_frame(query, engine, shown, asker)


def rows_of(query: Query, groups: pd.Index | None) -> pd.Index | None:
    """The index of an answer: its groups, and behind them the cells of margins, with `ALL` for columns they lack."""
    listed = _as_listed(query, groups)
    if query.margins is None or query.groups is None or query.groups.keys is None or listed is None:
        return listed
    levels = []
    for axis, places in enumerate(query.margins.label_places(query.groups.keys)):
        keys = listed.get_level_values(axis)
        level = keys.take(np.maximum(places, 0))
        if (places < 0).any():
            labels = level.to_numpy(dtype=object, copy=True)
            labels[places < 0] = ALL
            level = pd.Index(labels, dtype=keys.dtype if isinstance(keys.dtype, pd.StringDtype) else object)
        levels.append(level.rename(keys.name))
    return levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=listed.names)


def _as_listed(query: Query, groups: pd.Index | None) -> pd.Index | None:
    """The groups with listed whole numbers as such, where an assigned column, whose numbers are floats, has them."""
    keys = None if query.groups is None else query.groups.keys
    assigned = {derived.name for derived in query.derived}
    if groups is None or query.groups is None or keys is None or not assigned.intersection(query.groups.columns):
        return groups
    levels = []
    for at, column in enumerate(query.groups.columns):
        listed = [key[at] for key in keys]
        whole = column in assigned and all(type(key) is int and abs(key) <= LARGEST_EXACT for key in listed)
        levels.append(pd.Index(listed, dtype=np.int64, name=column) if whole else groups.get_level_values(at))
    return levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels, names=groups.names)


def of_frame(query: Query, engine: Engine[Any], shown: Callable[[Results, Any], Answered], asker: Asker) -> Answered:
    """The answer that ``shown`` makes of what a query releases from a frame or table."""

    def people(reading: Any, column: Hashable) -> Losses | None:
        if not isinstance(reading, FrameReading):  # a table does not tell who its rows are
            return None
        stored = reading.stored
        if query.unit.of_clusters:  # which do not tell whose records they have
            return None
        if query.unit.is_of_people:
            if query.unit.person != (column,):
                return None
            rows, lost = losses_of_people(reading, query)
            return stored[column].iloc[rows], lost
        if [str(label) for label in stored.columns].count(str(column)) != 1 or column not in stored.columns:
            return None
        return stored[column], losses(reading, query)

    # Under a ledger whoever asks may not see the data, and a refusal would tell of them: a Dataset was checked when it
    # was made.
    if isinstance(engine, FrameEngine) and ledger_for(asker.ledger) is None:
        check_no_na_of_r(engine.stored, query.reads, engine.looked_up)
    return released(query, engine, shown, asker, people)
