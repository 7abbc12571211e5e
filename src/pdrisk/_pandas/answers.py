"""Noisy answers from a frame: a `Release`, or a table of one row for each group or statistic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypedDict, TypeVar, Unpack

import pandas as pd

from pdrisk._answer.release import Release
from pdrisk._answer.releasing import People, Results, released
from pdrisk._answer.table import one_answer, table_of_lines
from pdrisk._ledger import Identity
from pdrisk._model.query import Query
from pdrisk.engines.numpy.frame import Reading, read
from pdrisk.engines.numpy.influence import losses

__all__ = ["answered", "answers"]

Answered = TypeVar("Answered")


class Paid(TypedDict, total=False):
    """Who pays for an answer, who may see what, and which Dataset is asked: options of `released`."""

    ledger: object
    fresh: object
    curator: object
    dataset: Identity | None


def answered(frame: pd.DataFrame, query: Query, **paid: Unpack[Paid]) -> Release | pd.DataFrame:
    """The answer to a query of one line: a `Release`, or a frame of one row for each group."""
    return _of_frame(frame, query, lambda found, reading: one_answer(found, reading.groups), paid)


def answers(
    frame: pd.DataFrame,
    query: Query,
    level: tuple[str, Sequence[Hashable]] | None = None,
    **paid: Unpack[Paid],
) -> pd.DataFrame:
    """The answers to a query of several lines, indexed as `table_of_lines` says."""

    def shown(found: Results, reading: Reading) -> pd.DataFrame:
        return table_of_lines(found, reading.groups, level)

    return _of_frame(frame, query, shown, paid)


def _of_frame(
    frame: pd.DataFrame,
    query: Query,
    shown: Callable[[Results, Reading], Answered],
    paid: Paid,
) -> Answered:
    def people(reading: Reading, column: Hashable) -> People | None:
        stored = frame if query.origin is None else query.origin.frame  # without columns that were assigned
        if [str(label) for label in stored.columns].count(str(column)) != 1 or column not in stored.columns:
            return None
        return stored[column], losses(reading, query.lines, query.shares)

    def found() -> Reading:
        return read(frame, query.lines, query.where, query.groups, query.missing, query.derived)

    return released(query, found, shown, people=people, **paid)
