"""Reads a pandas frame: one `Summary` for each line of a query, one pass for each column and universe."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.contributions import PersonRecords
from pdrisk._core.days import SECONDS
from pdrisk._core.once import once
from pdrisk._core.statistics import Distinct
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Days, Rectangle, Universe
from pdrisk._guard import guarded
from pdrisk._model.expressions.kinds import DATE, NUMBER
from pdrisk._model.groups.frame_keys import key_codes, key_index, observed_keys
from pdrisk._model.groups.keys import Key
from pdrisk._model.query import Line, Query
from pdrisk._model.rowwise import RowwiseFilter
from pdrisk._model.rowwise.families import dense, family, holds_objects, missing_of, numbers_of, texts_of
from pdrisk._model.unit import Secret, Unit, of_this_process
from pdrisk.engines.base import GroupSizes, Origin, Reading
from pdrisk.engines.numpy.bins import summary_of_bins
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.derived import with_derived
from pdrisk.engines.numpy.distinct import distinct_values
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.pairs import summary_of_pairs
from pdrisk.engines.numpy.person_records import Persons, Records
from pdrisk.engines.numpy.selected import condition_values, selected_rows
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.engines.numpy.wave_records import change_records
from pdrisk.errors import QueryFailedError

ANYTHING: Final = Universe(-1e100, 1e100)
Place = tuple[Hashable, RowwiseFilter | None, Hashable]  # what a line reads: a column or a condition, another column
EVERYBODY: Final[Place] = (None, None, None)


@dataclass(frozen=True, slots=True)
class FrameReading(Reading):
    """Reading of a frame."""

    groups: pd.Index | None  # of the answer
    found: FrameRows  # the rows that it is about
    query: Query  # what they say it to
    stored: pd.DataFrame  # the frame that was read, without derived columns and with its missing codes

    @property
    def unlisted(self) -> int:
        """Number of selected rows without a person's id."""
        persons = self.found.persons
        if persons is None:
            return 0
        nobody, selected = persons.nobody, self.found.selected
        if nobody is None:
            return 0
        return int(np.count_nonzero(nobody if selected is None else nobody & selected))

    def people(self, line: int) -> PersonRecords | None:
        """The records of a line, where a person may have several in a group and curators may want to know."""
        if self.query.unit.rows == 1 or not self.query.has_facts:
            return None
        return guarded(lambda: self.people_and_rows(line)[0])

    def people_and_rows(self, line: int) -> tuple[PersonRecords, NDArray[np.bool_]]:
        """Records of a line for people with several, and the rows of the frame that they come from."""
        asked, universe = self.query.lines[line], self.universes[line]
        bounded, frame_rows = asked.statistic.bounded, self.found
        distinct = isinstance(asked.statistic, Distinct)
        records = frame_rows.records(place_of(asked), universe if bounded else None, distinct=distinct)
        assert records.persons is not None
        used = np.ones(len(records.persons), dtype=bool) if records.selected is None else records.selected
        rows = np.flatnonzero(used)
        groups = values = np.zeros(len(rows), dtype=np.int64)
        if records.codes is not None:
            groups = records.codes[rows].astype(np.int64)
        if distinct:
            values = pd.factorize(frame_rows.frame[asked.column])[0][rows].astype(np.int64)
        elif bounded:
            values = np.clip(np.asarray(records.values, dtype=np.float64)[rows], universe.lo, universe.hi)
        return PersonRecords(values, groups, records.persons[rows], frame_rows.groups), used


@dataclass(frozen=True, slots=True)
class FrameTable:
    """Pandas frame as a `DataTable`: its own header, which `FrameEngine` reads."""

    header: pd.DataFrame

    @staticmethod
    def opened(
        query: Query,  # noqa: ARG004 - a frame answers any
        header: pd.DataFrame,
        stored: pd.DataFrame,
        given: Any,
        secret: Secret,
    ) -> FrameEngine:
        """Engine of the frame for a judged query."""
        return FrameEngine(header, stored, given, secret)

    def selecting(self, where: Any) -> Any:
        """The ``where`` as it is: a frame takes every one."""
        return where

    def frame(self, labels: Iterable[object]) -> pd.DataFrame:  # noqa: ARG002 - all are there
        """All rows of these columns, and of others."""
        return self.header


@dataclass(frozen=True, slots=True)
class FrameEngine:
    """Engine of a pandas frame."""

    frame: pd.DataFrame  # something stands in the place of derived columns
    stored: pd.DataFrame  # the frame without them
    given: Any = None  # what decides beside the tree of a query's filter
    secret: Secret = of_this_process  # gives the bytes that decide which rows count of a person who has too many
    # the one column that is asked for, where it is at hand: looking it up takes pandas as long as its mean
    looked_up: pd.Series | None = None

    @property
    def origin(self) -> Origin:
        """The frame that the caller has."""
        return Origin(frame=self.stored)

    @property
    def reads_later(self) -> bool:
        """False: the frame may have changed by then."""
        return False

    def read(self, query: Query) -> FrameReading:
        """Reading of a judged query; fails as `guarded` does."""
        return guarded(lambda: self._read(query))

    def group_sizes(self, query: Query) -> GroupSizes:
        """The groups that occur, sorted, and their numbers of people; fails as `guarded` does."""
        return guarded(lambda: self._group_sizes(query))

    def _group_sizes(self, query: Query) -> GroupSizes:
        assert query.groups is not None
        _, frame, selected = self._selected(query)
        keys = tuple(key for key in observed_keys(frame, query.groups.columns) if None not in key)
        codes = _codes(frame, query.groups.columns, keys, selected)
        one_each = replace(query.unit, per_person=None, rows=1)
        n = FrameRows(frame, one_each, self.secret, selected, codes, keys).counted(EVERYBODY, Needs()).n
        return GroupSizes(keys, n)

    def _selected(self, query: Query) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.bool_] | None]:
        """The frame without missing codes, and the rows that the filter keeps."""
        raw = with_derived(self.frame, query.derived, self.stored)
        frame = without_codes(raw, query.missing)
        selected = None if query.where is None else selected_rows(frame, query.where, self.given)
        if query.groups is not None and query.groups.is_private:  # no record may decide how the keys of others look
            frame = frame.copy(deep=False)
            for column in query.groups.columns:
                frame[column] = _in_one_form(frame[column])
        return raw, frame, selected

    def _read(self, query: Query) -> FrameReading:
        raw, frame, selected = self._selected(query)
        codes, keys, index, groups = None, None, None, query.groups
        if groups is not None:
            keys = observed_keys(frame, groups.columns) if groups.keys is None else groups.keys
            codes = _codes(frame, groups.columns, keys, selected)
            index = key_index(raw, groups.columns, keys)
        ranges = {line.column: own_universe(frame[line.column]) for line in query.lines if line.universe is None}
        universes = tuple(line.universe or ranges[line.column] for line in query.lines)

        needs: dict[tuple[Place, Universe], Needs] = {}
        counts: dict[Place, Needs] = {}
        for number, (line, universe) in enumerate(zip(query.lines, universes, strict=True)):
            at, is_drawn_alone = place_of(line), query.shares and not query.has_facts
            own_needs = query.mechanism(number, universe).draws if is_drawn_alone else query.needs_of(number, universe)
            if line.statistic.bounded:
                before = needs.get(read := (at, universe))
                needs[read] = own_needs if before is None else before | own_needs
            else:
                before = counts.get(at)
                counts[at] = own_needs if before is None else before | own_needs
        looked_up = self.looked_up if frame is self.frame else None
        frame_rows = FrameRows(frame, query.unit, self.secret, selected, codes, keys, looked_up)
        counted: dict[Place, Summary] = {}
        summaries: dict[tuple[Place, Universe], Summary] = {}
        for (place, universe), wanted in needs.items():
            summaries[place, universe] = frame_rows.measured(place, universe, wanted)
            counted.setdefault(place, summaries[place, universe])
        for place, wanted in counts.items():
            if place not in counted or wanted.distinct or wanted.bins is not None or wanted.sizes:
                counted[place] = frame_rows.counted(place, wanted)
        return FrameReading(
            universes,
            tuple(
                summaries[place_of(line), universe] if line.statistic.bounded else counted[place_of(line)]
                for line, universe in zip(query.lines, universes, strict=True)
            ),
            index,
            frame_rows,
            query,
            self.stored,
        )


@dataclass(frozen=True)
class FrameRows:
    """Rows of a frame that a query is about, and the records made of them."""

    frame: pd.DataFrame  # what was read: missing codes are missing there
    unit: Unit
    secret: Secret
    selected: NDArray[np.bool_] | None  # the rows that the filter keeps
    codes: NDArray[np.int32] | None  # the group of each row, the number of groups where it is in none
    keys: Sequence[Key] | None  # their keys
    looked_up: pd.Series | None = None  # as in `FrameEngine`

    @property
    def groups(self) -> int:
        """How many groups there are; 1 without any."""
        return 1 if self.keys is None else len(self.keys)

    @once
    def persons(self) -> Persons | None:
        """People of the frame, if their rows belong together."""
        return Persons(self.frame, self.unit, self.secret) if self.unit.is_of_people else None

    def records(self, place: Place, universe: Universe | None, *, distinct: bool = False) -> Records:
        """Records of what a line reads, within its universe if it has one."""
        if self.persons is None:
            return self._made(place, universe, distinct=distinct)
        asked = place, universe, distinct
        if asked not in self._of_people:
            self._of_people[asked] = self._made(place, universe, distinct=distinct)
        return self._of_people[asked]

    @once
    def _of_people(self) -> dict[tuple[Place, Universe | None, bool], Records]:
        """Records of people that were made already: a summary and the curator's numbers need the same ones."""
        return {}

    def _made(self, place: Place, universe: Universe | None, *, distinct: bool) -> Records:
        column, indicator, other = place
        if indicator is not None:
            values: Any = condition_values(self.frame, indicator)
        elif column is not None and universe is not None and self.unit.per_person == "count":
            values = np.where(present_rows(self.frame[column]), 1.0, np.nan)
        elif column is not None and universe is not None:
            series = self.frame[column] if self.looked_up is None else self.looked_up
            values = days_of(series) if isinstance(universe, Days) else column_values(series)
        else:
            values = None
        others = None if other is None else column_values(self.frame[other])
        used = self.selected
        if self.persons is None:
            return Records(values, others, used, self.codes)
        content = None
        if values is None and column is not None:
            used = self._present(column)
            content = self.frame[column] if distinct else None
        if self.unit.waves is not None:
            return change_records(self.persons, (values, others), used, self.codes, self.keys)
        return self.persons.records((values, others), universe, used, self.codes, self.keys, content)

    def measured(self, place: Place, universe: Universe, wanted: Needs) -> Summary:
        """Summary of numbers within a universe."""
        records = self.records(place, universe)
        summary = self._measured(records, universe, wanted)
        return summary if records.offered is None else replace(summary, offered=records.offered)

    def _measured(self, records: Records, universe: Universe, wanted: Needs) -> Summary:
        if isinstance(universe, Rectangle):
            return summary_of_pairs(
                records.values, records.others, universe, wanted, records.selected, records.codes, self.groups
            )
        if records.codes is None:
            return summary_of_one(records.values, universe, wanted, records.selected)
        values, codes = records.values, records.codes
        if records.selected is not None and self.persons is not None:  # else the codes say it already
            codes = np.where(records.selected, codes, self.groups).astype(np.int32)
        return summary_of_groups(values, codes, self.groups, universe, wanted)

    def counted(self, place: Place, wanted: Needs) -> Summary:
        """The summary of records that are counted: all, those with a value, or those in bins or with other values."""
        column = place[0]
        if wanted.distinct:
            records = self.records(place, None, distinct=True)
            summary = distinct_values(self.frame[column], records.selected, records.codes, self.groups)
            return replace(summary, offered=records.offered)
        if wanted.bins is not None or wanted.sizes:
            records = self.records(place, ANYTHING if wanted.bins is None else wanted.bins.universe)
            return summary_of_bins(
                records.values if records.selected is None else records.values[records.selected], wanted.bins
            )
        if self.persons is not None and self.unit.weight == 1 and self.codes is None and place[1] is None:
            # What the rows of a person become, if anything, is one record, and one record counts of them otherwise.
            return Summary(np.array([self.persons.count(self._present(column))], dtype=np.int64))
        records = self.records(place, None)
        used = records.selected
        if self.persons is None and place[1] is None:
            used = self._present(column)
        if records.codes is not None:
            codes = records.codes if used is None else records.codes[used]
            return Summary(np.bincount(codes, minlength=self.groups + 1)[: self.groups], offered=records.offered)
        n = self.size_of(records) if used is None else np.count_nonzero(used)
        return Summary(np.array([n], dtype=np.int64), offered=records.offered)

    def _present(self, column: Hashable | None) -> NDArray[np.bool_] | None:
        """The rows that the filter keeps, and hold a value of a column if there is one; None: all."""
        if column is None:
            return self.selected
        present = present_rows(self.frame[column] if self.looked_up is None else self.looked_up)
        return present if self.selected is None else self.selected & present

    def size_of(self, records: Records) -> int:
        """Number of records, used or not."""
        return len(self.frame) if records.place is None else int(records.place.max(initial=-1)) + 1


def _codes(
    frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key], selected: NDArray[np.bool_] | None
) -> NDArray[np.int32]:
    """Group of each row; the number of groups for rows in none or not selected."""
    codes = key_codes(frame, columns, keys)
    if selected is not None:
        codes[~selected] = len(keys)
    return codes


def _in_one_form(keys: pd.Series) -> pd.Series:
    """Keys in one form for all equal ones: no -0.0, and of Python objects texts alone."""
    held = keys.cat.categories if isinstance(keys.dtype, pd.CategoricalDtype) else keys
    if holds_objects(held):
        return pd.Series(texts_of(keys), index=keys.index, dtype=object)
    return keys.astype(held.dtype) + 0.0 if pd.api.types.is_float_dtype(held.dtype) else keys


def place_of(line: Line) -> Place:
    """Identity of what a line reads."""
    return line.column, line.indicator, line.other


def column_values(series: pd.Series) -> NDArray[np.generic]:
    """A numeric column as a numpy array, missing as NaN; a view where it can be."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return series.to_numpy()
    if not isinstance(dtype, np.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers_of(series).high  # of objects: what is no number is missing, and makes nothing fail


def days_of(series: pd.Series) -> FloatArray:
    """Days from 1970-01-01 to the dates or times of a column, from microseconds as in SQL; missing as NaN.

    Numbers, as of made-up records, are days already.
    """
    if family(series.dtype) == NUMBER:
        return column_values(series).astype(np.float64)
    nanoseconds = numbers_of(dense(series), DATE)
    microseconds = np.rint(nanoseconds.high / 1000 + (0.0 if nanoseconds.low is None else nanoseconds.low / 1000))
    return np.asarray(microseconds / 1e6 / SECONDS, dtype=np.float64)


def present_rows(series: pd.Series) -> NDArray[np.bool_]:
    """Rows of a column that hold a value; NaN is missing whatever the dtype."""
    return ~missing_of(series)


def own_universe(series: pd.Series) -> Universe:
    """Finite range of a whole column, as in the SOEP paper: not private."""
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
