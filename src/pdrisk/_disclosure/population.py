"""The population beside a table: another table of people, or counts of them; classes of both."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.classes import Classes, classes_of
from pdrisk._disclosure.keys import on_common_labels
from pdrisk._disclosure.sql_table import SQLKeys
from pdrisk._disclosure.tables import FrameKeys, KeyRequest, KeyTable, Side
from pdrisk._tables.opening import opened
from pdrisk.engines.columnar.table import ColumnTable
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.errors import ColumnTypeError, ParameterError

ON_MISSING = ("error", "pessimistic")
SHOWN = 3  # classes in an error
SIDES = ("the table", "the population")


def both_sides(
    table: KeyTable, asked: KeyRequest, population: object, population_counts: object, on_missing: object
) -> tuple[Classes, NDArray[np.int64], NDArray[np.int64]]:
    """Classes of a table and its population, with the people of each in them."""
    if not isinstance(on_missing, str) or on_missing not in ON_MISSING:
        raise ParameterError(f"on_missing is one of {', '.join(ON_MISSING)}, not {on_missing!r}.")
    if (population is None) == (population_counts is None):
        raise ParameterError("pass exactly one of population= (a table of people) and population_counts=.")
    if population is not None:
        other = _keys_of(population, (*asked.keys, *asked.person))
        request = replace(asked, person=asked.person if other.has(asked.person) else ())
        theirs = other.read(request)
    else:
        theirs = _counted(population_counts, asked)
    mine = table.read(asked)
    pairs = [on_common_labels(a, b, SIDES) for a, b in zip(mine.columns, theirs.columns, strict=True)]
    mine, theirs = (replace(side, columns=tuple(pair[at] for pair in pairs)) for at, side in enumerate((mine, theirs)))
    classes = classes_of(mine, theirs)
    sample, whole = classes.people(0), classes.people(1)
    short = sample > whole
    if short.any():
        if on_missing == "error":
            raise _more_than_there_are(classes, sample, whole, short)
        whole = np.maximum(sample, whole)
    return classes, sample, whole


def _keys_of(data: object, columns: Sequence[Hashable]) -> KeyTable:
    """Keys of a population, of any kind of data, as it is stored; fails as `opened`."""
    table = opened(data, columns)
    return FrameKeys(table, table.header) if isinstance(table, FrameTable | ColumnTable) else SQLKeys(table)


def _more_than_there_are(
    classes: Classes, sample: NDArray[np.int64], whole: NDArray[np.int64], short: NDArray[np.bool_]
) -> ParameterError:
    """The error that names classes with more people in the table than in the population; only curators see it."""
    worst = classes.order(short)[:SHOWN]
    keys = classes.index(worst)
    named = [
        f"{key} ({mine:,} in the table, {theirs:,} in the population)"
        for key, mine, theirs in zip(keys, sample[worst].tolist(), whole[worst].tolist(), strict=True)
    ]
    more = np.count_nonzero(short) - len(named)
    return ParameterError(
        "the population has fewer people than the table in class "
        + ", ".join(named)
        + (f" and {more:,} more" if more else "")
        + '. Correct the population or the keys; or pass on_missing="pessimistic", which takes those in the table for '
        "all that there are."
    )


def _counted(given: object, asked: KeyRequest) -> Side:
    """The population from numbers of people."""
    frame, column = _as_frame(given, asked.keys)
    side = FrameKeys(FrameTable(frame), frame).read(KeyRequest(asked.keys, asked.generalize, weight=column))
    counts = side.weights
    assert counts is not None  # asked for
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.rint(counts)).any():
        raise ParameterError("population_counts must be whole numbers of at least 0, none of them missing.")
    return replace(side, times=counts, weights=None, rows=None)


def _as_frame(given: Any, keys: tuple[Hashable, ...]) -> tuple[pd.DataFrame, Hashable]:
    """Counts as a frame of keys and one more column, and that column."""
    wanted = f"of the columns {', '.join(map(str, keys))} and one of numbers"
    if isinstance(given, pd.Series):
        index = given.index
        if index.nlevels != len(keys):
            raise ParameterError(f"population_counts has {index.nlevels} index levels, and the keys are {len(keys)}.")
        if all(name is None for name in index.names):
            index = index.set_names(list(keys))
        if set(index.names) != set(keys):
            raise ParameterError(
                "population_counts has other index levels than the key columns in on=: name them alike."
            )
        name = next(label for label in ("count", "people", "population", object()) if label not in keys)
        frame = index.to_frame(index=False)
        frame[name] = given.to_numpy() if given.dtype != object else given.astype(float).to_numpy()
        return frame, name
    if not isinstance(given, pd.DataFrame):
        raise ColumnTypeError(
            f"population_counts is a Series of numbers indexed by the keys, or a DataFrame {wanted}, not of type "
            f"{type(given).__name__}."
        )
    rest = [column for column in given.columns if column not in keys]
    if len(rest) != 1 or len(given.columns) != len(keys) + 1:
        raise ParameterError(f"population_counts must be a DataFrame {wanted}: it has {len(given.columns)} columns.")
    return given, rest[0]
