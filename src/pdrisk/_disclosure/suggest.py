"""Suggested generalisation: the steps that make classes as large as wanted, found greedily."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer import formatting
from pdrisk._disclosure.classes import classes_of, distinct_pairs
from pdrisk._disclosure.generalize import generalized
from pdrisk._disclosure.keys import KeyColumn
from pdrisk._disclosure.tables import KeyRequest, KeyTable, Side
from pdrisk._model.attributes import mark_exact
from pdrisk._model.columns import column_kind
from pdrisk._model.kinds import NUMBER, TEXT, TIME, ZONED
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["SuggestedGeneralization", "suggested"]

WIDTHS = (5, 10, 20)  # of bins, and then 100, 200, 1000, ...: each holds whole bins of the one before
MOST_BINS = 10_000
CALENDAR = ("MS", "YS", "10YS")
OTHER, ANYTHING = "other", "*"


@dataclass(frozen=True, repr=False, eq=False)
class SuggestedGeneralization:
    """Suggested generalisation of keys, with its steps. Curator only: it is made of the data.

    Attributes
    ----------
    generalize : dict
        Fit for ``generalize=`` of the measures.
    k : int
        What it reaches.
    classes : int
        How many classes are left.
    steps : DataFrame
        One row a step: ``column``, the ``cut`` it got, and ``k``, ``classes`` and ``below`` (people in classes that are
        too small) after it.
    """

    generalize: dict[Hashable, Any]
    k: int
    classes: int
    steps: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return f"{formatting.text('suggested generalisation', [], self._lines())}\n{self.steps.to_string(index=False)}"

    def _repr_html_(self) -> str:
        return formatting.html("suggested generalisation", [], self._lines()) + self.steps.to_html(index=False)

    def _lines(self) -> formatting.Rows:
        cuts = [(str(column), _shown(how)) for column, how in self.generalize.items()]
        return [("k", f"{self.k:,}"), ("classes", f"{self.classes:,}"), *cuts]


@dataclass(slots=True)
class _Ladder:
    """A key column with ways to make it coarser; each way joins values of the one before."""

    column: KeyColumn
    hows: list[Any]
    made: list[KeyColumn | None]

    def at(self, level: int) -> KeyColumn:
        found = self.made[level]
        if found is None:
            found = self.made[level] = generalized(self.column, self.hows[level])
        return found


@dataclass(frozen=True, slots=True)
class _State:
    """Result of a choice of levels."""

    k: int
    classes: int
    below: int


def suggested(table: KeyTable, wanted: KeyRequest, k: object) -> SuggestedGeneralization:
    """The suggestion for a table.

    Raises
    ------
    ParameterError
        If there are fewer than ``k`` people, or a Dataset that DuckDB reads has people with several rows.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise ColumnTypeError(f"k must be a whole number, not of type {type(k).__name__}.")
    if k < 2:
        raise ParameterError("k must be 2 or more: with k=1 every class is large enough.")
    side = _once(table.read(wanted), wanted)
    people = side.times.sum() if side.times is not None else len(np.unique(side.persons))  # type: ignore[arg-type]
    if people < k:
        raise ParameterError(f"no generalisation makes classes of {k} of {people} people: ask for a smaller k.")
    ladders = [_Ladder(column, [None, *hows], [column, *[None] * len(hows)]) for column, hows in _hows(side, int(k))]
    levels, steps = [0] * len(ladders), []

    def state(at: list[int]) -> _State:
        columns = tuple(ladder.at(level) for ladder, level in zip(ladders, at, strict=True))
        sample = classes_of(replace(side, columns=columns)).people()
        sizes = sample[sample > 0]
        return _State(int(sizes.min()), len(sizes), int(sizes[sizes < k].sum()))

    def note(column: int | None, found: _State) -> None:
        how = None if column is None else ladders[column].hows[levels[column]]
        name = "" if column is None else ladders[column].column.name
        cut = "as it is" if how is None else _shown(how)
        steps.append({"column": name, "cut": cut, "k": found.k, "classes": found.classes, "below": found.below})

    now = state(levels)
    note(None, now)
    while now.below:
        tried = [
            (state(_moved(levels, at, 1)), at) for at, each in enumerate(ladders) if levels[at] + 1 < len(each.hows)
        ]
        if not tried:
            break
        now, best = min(tried, key=lambda pair: (pair[0].below, -pair[0].classes, pair[1]))
        levels = _moved(levels, best, 1)
        note(best, now)
    while not now.below:  # what the greedy way took too much of
        back = [(state(_moved(levels, at, -1)), at) for at in range(len(levels)) if levels[at]]
        fine = [(found, at) for found, at in back if not found.below]
        if not fine:
            break
        now, best = max(fine, key=lambda pair: pair[0].classes)
        levels = _moved(levels, best, -1)
        note(best, now)
    chosen = {ladder.column.name: ladder.hows[level] for ladder, level in zip(ladders, levels, strict=True) if level}
    return SuggestedGeneralization(chosen, now.k, now.classes, mark_exact(pd.DataFrame(steps)))


def _moved(levels: list[int], at: int, by: int) -> list[int]:
    return [level + by * (place == at) for place, level in enumerate(levels)]


def _once(side: Side, wanted: KeyRequest) -> Side:
    """Each class, or each person in a class, on one line."""
    classes = classes_of(side)
    if wanted.person and side.persons is None:
        raise ParameterError(
            "people with several rows cannot be counted anew at each step in a database: pass a pandas frame, or a "
            "table with one row a person and no person=."
        )
    number, persons = classes.numbers[0], side.persons
    if persons is None:
        sample = classes.people()
        number = np.flatnonzero(sample)
        times = sample[number]
    else:
        number, persons = distinct_pairs(number, persons)
        times = None
    columns = tuple(replace(column, codes=classes.codes(at, number)) for at, column in enumerate(side.columns))
    return Side(columns, times, persons)


def _hows(side: Side, k: int) -> Iterator[tuple[KeyColumn, list[Any]]]:
    """Ways to make each column coarser."""
    for column in side.columns:
        labels = column.labels[column.used]
        kind = column_kind(pd.Series(labels)) if len(labels) else None
        if kind == NUMBER and np.isfinite(labels.to_numpy(dtype=float)).all():
            hows: list[Any] = list(_widths(labels))
        elif kind in (TIME, ZONED):
            hows = [_calendar(labels, unit) for unit in CALENDAR]
        elif kind == TEXT:
            hows = _texts(column, labels, side, k)
        else:
            hows = []
        if len(labels) > 1:
            hows.append(dict.fromkeys(labels.tolist(), ANYTHING))
        yield column, hows


def _widths(labels: pd.Index) -> Iterator[list[float]]:
    """Edges of wider and wider bins, at multiples of their width, that join some values."""
    low, high = float(labels.min()), float(labels.max())
    whole = labels.dtype.kind in "iu" or bool((labels.to_numpy(dtype=float) % 1 == 0).all())
    unit = 1.0 if whole else 10.0 ** math.floor(math.log10((high - low) / 1000)) if high > low else 1.0
    distinct, number = len(labels), 0
    while distinct > 2:
        step = unit * (WIDTHS[number] if number < 3 else (100, 200)[(number - 3) % 2] * 10 ** ((number - 3) // 2))
        number += 1
        first, last = math.floor(low / step), math.floor(high / step)
        if last - first + 1 < min(distinct, MOST_BINS):
            yield _edges(first, last, step, low, high)
        if last - first < 2:
            return


def _edges(first: int, last: int, step: float, low: float, high: float) -> list[float]:
    """Multiples of a step in few digits, from the lowest value on and beyond the highest."""
    if step >= 1:
        return [round(each * step) for each in range(first, last + 2)]
    digits = math.ceil(-math.log10(step))
    edges = np.round(np.arange(first - 1, last + 3) * step, digits)
    start, stop = np.searchsorted(edges, [low, high], side="right")
    return edges[start - 1 : stop + 1].tolist()


def _calendar(labels: pd.Index, unit: str) -> pd.DatetimeIndex:
    start = labels.min().normalize().replace(day=1)
    if unit != "MS":
        start = start.replace(month=1)
    if unit == "10YS":
        start = start.replace(year=start.year // 10 * 10)
    years = {"MS": 1, "YS": 1, "10YS": 10}[unit]
    return pd.date_range(start, labels.max() + pd.DateOffset(years=years, months=1), freq=unit)


def _texts(column: KeyColumn, labels: pd.Index, side: Side, k: int) -> list[Any]:
    lengths = labels.str.len()
    longest = int(lengths.max())
    if int(lengths.min()) == longest > 1:
        return list(range(longest - 1, 0, -1))
    people = np.bincount(column.codes, weights=side.times, minlength=column.size)[1:][column.used]
    rarest = np.sort(people)
    # All that are too few, and as many more as together are enough.
    number = max(2, int(np.count_nonzero(rarest < k)), int(np.searchsorted(np.cumsum(rarest), k)) + 1)
    rare = np.zeros(len(people), dtype=bool)
    rare[np.argsort(people, kind="stable")[:number]] = True
    if rarest[0] >= k or number >= len(people):
        return []
    return [{label: OTHER if few else label for label, few in zip(labels.tolist(), rare.tolist(), strict=True)}]


def _shown(how: Any) -> str:
    """A cut in a few words."""
    if isinstance(how, int):
        return f"first {how} letter{'s' if how > 1 else ''}"
    if isinstance(how, dict):
        targets = set(how.values())
        return "left out" if targets == {ANYTHING} else f"rare values as {OTHER!r}, {len(targets):,} values"
    if len(how) == 2:
        return f"one bin from {how[0]} to below {how[1]}"
    if isinstance(how, pd.DatetimeIndex):
        days = (how[1] - how[0]).days
        return "months" if days < 32 else "years" if days < 367 else "decades"
    return f"bins of {how[1] - how[0]:.6g}"
