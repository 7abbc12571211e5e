"""Tables as disclosure measures read them: what is asked of a table, the keys that are read, and those of frames."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.generalize import Generalize, generalized
from pdrisk._disclosure.keys import Codes, KeyColumn, coded
from pdrisk._guard import guarded
from pdrisk._model.arguments import statistic
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.rowwise import Within
from pdrisk._model.rowwise.derived import used
from pdrisk._pandas.requests.declared import codes_of
from pdrisk._pandas.requests.judged_requests import judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.columnar.table import ColumnTable
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.derived import placeholder, with_derived
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.errors import ColumnTypeError, ParameterError


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Columns and options that a measure reads of a table."""

    keys: tuple[Hashable, ...]  # key columns
    generalize: Generalize = field(default_factory=dict)  # how some of them are made coarser
    person: tuple[Hashable, ...] = ()  # columns that say who a person is; empty: each row is one
    weight: Hashable | None = None  # a column of numbers


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of a frame that were read, among all."""

    index: pd.Index
    kept: NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Side:
    """Keys of one table: a line for each row of a frame, or for each group of a database."""

    columns: tuple[KeyColumn, ...]  # the keys, generalised
    times: NDArray[Any] | None = None  # how many people a line stands for; None: one
    # the person of each line, a number from 0; None where lines are people, or are counted already
    persons: Codes | None = None
    weights: NDArray[np.float64] | None = None  # the numbers of lines, or their sums
    left_out: int = 0  # rows of nobody known
    rows: RowsRead | None = None  # None where it was no frame


class KeyTable(Protocol):
    """Protocol of tables as measures read them."""

    def read(self, asked: KeyRequest) -> Side:
        """Keys of its rows, or of groups of them."""

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether the table has all these columns."""


@dataclass(frozen=True, slots=True)
class FrameKeys:
    """Frame of pandas, Polars or Arrow, for disclosure measures: the columns that are read become a pandas frame."""

    table: FrameTable | ColumnTable
    header: pd.DataFrame  # its columns, with those that a Dataset assigned
    within: Within | None = None  # what a Dataset selected and assigned

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether it has all these columns."""
        return all(column in self.header.columns for column in columns)

    def read(self, asked: KeyRequest) -> Side:
        """The keys of its rows."""
        read = [*asked.keys, *asked.person, *([] if asked.weight is None else [asked.weight])]
        for column in read:
            check_column(self.header, column)
        frame, kept = self._selected(read)
        missing = codes_of(self.header, read)
        columns = {name: coded(frame[name], missing.get(name, ())) for name in (*asked.keys, *asked.person)}
        persons = None
        left_out = 0
        if asked.person:
            persons, known = _persons([columns[name] for name in asked.person])
            left_out = int(np.count_nonzero(~known if kept is None else kept & ~known))
            kept = known if kept is None else kept & known
        weights = None
        if asked.weight is not None:
            codes = {name: values for name, values in missing.items() if name == asked.weight}
            weights = _numbers(without_codes(frame[[asked.weight]], codes)[asked.weight])
        if kept is not None and kept.all():
            kept = None

        def of_kept(values: Any) -> Any:
            return values if kept is None or values is None else values[kept]

        keys = []
        for name in asked.keys:
            column = replace(columns[name], codes=of_kept(columns[name].codes))
            keys.append(generalized(column, asked.generalize[name]) if name in asked.generalize else column)
        return Side(tuple(keys), None, of_kept(persons), of_kept(weights), left_out, RowsRead(frame.index, kept))

    def _selected(self, read: Sequence[Hashable]) -> tuple[pd.DataFrame, NDArray[np.bool_] | None]:
        """The rows with these columns, and which of them are selected."""
        within = self.within
        if within is None:
            return guarded(lambda: self.table.frame(read)), None
        selects = () if within.kept is None else within.kept.columns
        _, stored = used(within.derived, (*read, *selects))
        frame = guarded(lambda: self.table.frame(stored)).copy(deep=False)
        frame.attrs = dict(self.table.header.attrs)
        added = frame.copy(deep=False)
        for column in within.derived:
            added[column.name] = placeholder(column, len(frame))
        added.attrs = dict(self.header.attrs)
        (line,) = judged_lines(added, None, (statistic("count"),), Request())
        query, engine = judged_selection(added, (line,), Request(where=within._replace(stored=frame)))
        derived, _ = used(within.derived, tuple(read))
        return with_derived(added, derived, frame), engine.read(query).found.selected


def _persons(columns: Sequence[KeyColumn]) -> tuple[Codes, NDArray[np.bool_]]:
    """The person of each row, a number from 0, and whether it is known."""
    persons, known = columns[0].codes.astype(np.int64), columns[0].codes > 0
    for column in columns[1:]:
        persons, _ = pd.factorize(persons * column.size + column.codes)
        known &= column.codes > 0
    return persons, known


def _numbers(series: pd.Series) -> NDArray[np.float64]:
    """Numbers of rows, NaN where one is missing."""
    if not pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
        raise no_numbers(series.name)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def no_numbers(column: Hashable) -> ColumnTypeError:
    """The error for weights or contributions that are no numbers."""
    return ColumnTypeError(f"column {column!r} holds no numbers, so it cannot be weights or counts.")


def several_rows() -> ParameterError:
    """The error for weights of rows where people are asked for."""
    return ParameterError(
        "weights are of people, and some have several rows in one class: make a table with one row a person first."
    )
