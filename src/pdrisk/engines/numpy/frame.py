"""Reads a pandas frame: one `Summary` for each line of a query, one pass for each column and universe."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.summary import Needs, Summary
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._guard import guarded
from pdrisk._model.keys import Key, key_codes, key_index, observed_keys
from pdrisk._model.query import Line, Query
from pdrisk._model.rowwise import RowwiseFilter
from pdrisk._model.rowwise.families import missing_of, quantity_of
from pdrisk.engines.base import Origin, Reading
from pdrisk.engines.numpy.bins import summary_of_bins
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.derived import with_derived
from pdrisk.engines.numpy.distinct import distinct_values
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.pairs import summary_of_pairs
from pdrisk.engines.numpy.selected import selected_rows
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.errors import QueryFailedError

__all__ = ["FrameEngine", "FrameReading", "column_values", "present_rows"]


Place = tuple[Hashable, RowwiseFilter | None, Hashable]  # what a line reads: a column or a condition, another column


@dataclass(frozen=True, slots=True)
class FrameReading(Reading):
    """What the rows of a frame say.

    Attributes
    ----------
    groups : Index or None
        Of the answer.
    selected : ndarray of bool or None
        The rows that the filter keeps.
    codes : ndarray of int32 or None
        The group of each row, the number of groups where it is in none.
    frame : DataFrame
        What was read: missing codes are missing there.
    """

    groups: pd.Index | None
    selected: NDArray[np.bool_] | None
    codes: NDArray[np.int32] | None
    frame: pd.DataFrame


@dataclass(frozen=True, slots=True)
class FrameEngine:
    """Engine of a pandas frame.

    Attributes
    ----------
    frame : DataFrame
        Something stands in the place of derived columns.
    stored : DataFrame
        The frame without them.
    given : mask, callable or None
        What decides beside the tree of a query's filter.
    """

    frame: pd.DataFrame
    stored: pd.DataFrame
    given: Any = None

    @property
    def origin(self) -> Origin:
        """The frame that people have."""
        return Origin(frame=self.stored)

    def read(self, query: Query) -> FrameReading:
        """What the rows say to a judged query; fails as `guarded` does."""
        return guarded(lambda: self._read(query))

    def _read(self, query: Query) -> FrameReading:
        raw = with_derived(self.frame, query.derived, self.stored)
        frame = without_codes(raw, query.missing)
        selected = None if query.where is None else selected_rows(frame, query.where, self.given)
        codes, keys, index, groups = None, None, None, query.groups
        if groups is not None:
            keys = observed_keys(frame, groups.columns) if groups.keys is None else groups.keys
            codes = key_codes(frame, groups.columns, keys)
            if selected is not None:
                codes[~selected] = len(keys)
            index = key_index(raw, groups.columns, keys)
        own = {line.column: own_universe(frame[line.column]) for line in query.lines if line.universe is None}
        universes = tuple(line.universe or own[line.column] for line in query.lines)

        needs: dict[tuple[Place, Universe], Needs] = {}
        counts: dict[Place, Needs] = {}
        for number, (line, universe) in enumerate(zip(query.lines, universes, strict=True)):
            at, own_needs = _place(line), query.needs_of(number, universe)
            if line.statistic.bounded:
                needs[at, universe] = needs.get((at, universe), Needs()) | own_needs
            else:
                counts[at] = counts.get(at, Needs()) | own_needs
        counted: dict[Place, Summary] = {}
        summaries: dict[tuple[Place, Universe], Summary] = {}
        for (place, universe), wanted in needs.items():
            column, indicator, other = place
            values = column_values(frame[column]) if indicator is None else selected_rows(frame, indicator)
            if isinstance(universe, Rectangle):
                beside = column_values(frame[other])
                summary = summary_of_pairs(values, beside, universe, wanted, selected, codes, len(keys or (0,)))
            elif codes is None:
                summary = summary_of_one(values, universe, wanted, selected)
            else:
                summary = summary_of_groups(values, codes, len(keys or ()), universe, wanted)
            summaries[place, universe] = summary
            counted.setdefault(place, summary)
        for place, wanted in counts.items():
            if wanted.distinct:
                counted[place] = distinct_values(frame[place[0]], selected, codes, len(keys or (0,)))
            elif wanted.bins is not None or wanted.sizes:
                values = column_values(frame[place[0]])
                counted[place] = summary_of_bins(values if selected is None else values[selected], wanted.bins)
            elif place not in counted:
                present = None if place[0] is None else present_rows(frame[place[0]])
                counted[place] = _count(len(frame), present, selected, codes, keys)
        return FrameReading(
            universes,
            tuple(
                summaries[_place(line), universe] if line.statistic.bounded else counted[_place(line)]
                for line, universe in zip(query.lines, universes, strict=True)
            ),
            index,
            selected,
            codes,
            frame,
        )


def _place(line: Line) -> Place:
    return line.column, line.indicator, line.other


def column_values(series: pd.Series) -> NDArray[np.generic]:
    """A numeric column as a numpy array, missing as NaN; a view where it can be."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return series.to_numpy()
    if not isinstance(dtype, np.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return quantity_of(series).numbers.high  # of objects: what is no number is missing, and makes nothing fail


def present_rows(series: pd.Series) -> NDArray[np.bool_]:
    """Which rows of a column of any kind hold a value; NaN is missing whatever the dtype thinks of it."""
    return ~missing_of(series)


def own_universe(series: pd.Series) -> Universe:
    """The finite range of a whole column, as the SOEP paper takes it: not private."""
    values = column_values(series)
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    try:
        return Universe(float(values.min()), float(values.max()))
    except ValueError:  # of an empty column, or of ends that make no universe: its words would quote them
        pass
    raise QueryFailedError(
        'bounds="column" found no usable range in the column: it needs at least two different values of ordinary size. '
        "Pass bounds=(lo, hi)."
    )


def _count(
    rows: int,
    present: NDArray[np.bool_] | None,
    selected: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    keys: tuple[Key, ...] | None,
) -> Summary:
    if codes is not None and keys is not None:
        counted = codes if present is None else codes[present]
        return Summary(np.bincount(counted, minlength=len(keys) + 1)[: len(keys)])
    if selected is not None:
        present = selected if present is None else present & selected
    return Summary(np.array([rows if present is None else np.count_nonzero(present)], dtype=np.int64))
