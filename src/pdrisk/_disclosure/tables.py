"""Tables that disclosure measures read: pandas frames in memory, and tables that DuckDB reads with one GROUP BY."""

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
from pdrisk.errors import ColumnTypeError

__all__ = ["ColumnKeys", "FrameTable", "KeyRequest", "KeyTable", "RowsRead", "Side"]


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Columns and options that a measure reads of a table.

    Attributes
    ----------
    keys : tuple of hashable
        Key columns.
    generalize : dict
        How some of them are made coarser.
    person : tuple of hashable
        Columns that say who a person is; empty: each row is one.
    weight : hashable, optional
        A column of numbers.
    """

    keys: tuple[Hashable, ...]
    generalize: Generalize = field(default_factory=dict)
    person: tuple[Hashable, ...] = ()
    weight: Hashable | None = None


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of a frame that were read, among all."""

    index: pd.Index
    kept: NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Side:
    """Keys of one table: a line for each row of a frame, or for each group of a database.

    Attributes
    ----------
    columns : tuple of KeyColumn
        The keys, generalised.
    times : ndarray or None
        How many people a line stands for; None: one.
    persons : ndarray or None
        The person of each line, a number from 0; None where lines are people, or are counted already.
    weights : ndarray or None
        The numbers of lines, or their sums.
    left_out : int
        Rows of nobody known.
    rows : RowsRead or None
        None where it was no frame.
    """

    columns: tuple[KeyColumn, ...]
    times: NDArray[Any] | None = None
    persons: Codes | None = None
    weights: NDArray[np.float64] | None = None
    left_out: int = 0
    rows: RowsRead | None = None


class KeyTable(Protocol):
    """Protocol of tables that measures can read."""

    def read(self, asked: KeyRequest) -> Side:
        """Keys of its rows, or of groups of them."""

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether the table has all these columns."""


@dataclass(frozen=True, slots=True)
class FrameTable:
    """Pandas frame, for disclosure measures.

    Attributes
    ----------
    frame : DataFrame
    where : Within or None
        What a Dataset selected and assigned.
    """

    frame: pd.DataFrame
    where: Any = None

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether it has all these columns."""
        return all(column in self.frame.columns for column in columns)

    def read(self, asked: KeyRequest) -> Side:
        """The keys of its rows."""
        read = [*asked.keys, *asked.person, *([] if asked.weight is None else [asked.weight])]
        for column in read:
            check_column(self.frame, column)
        frame, kept = self._selected(read)
        missing = codes_of(self.frame, read)
        columns = {name: coded(frame[name], missing.get(name, ())) for name in (*asked.keys, *asked.person)}
        persons = None
        left_out = 0
        if asked.person:
            persons, known = _persons([columns[name] for name in asked.person])
            left_out = int(np.count_nonzero(~known if kept is None else kept & ~known))
            kept = known if kept is None else kept & known
        weights = None
        if asked.weight is not None:
            codes = {name: each for name, each in missing.items() if name == asked.weight}
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
        """The frame with assigned columns, and its selected rows."""
        within = self.where
        if not isinstance(within, Within):
            return self.frame, None
        (line,) = judged_lines(self.frame, None, (statistic("count"),), Request())
        query, engine = judged_selection(self.frame, (line,), Request(where=within))
        selected = engine.read(query).found.selected
        derived, _ = used(within.derived, tuple(read))
        return with_derived(self.frame, derived, within.stored), selected


@dataclass(frozen=True, slots=True)
class ColumnKeys:
    """Frame of Polars or Arrow, for disclosure measures: the columns that are read become a pandas frame.

    Attributes
    ----------
    table : ColumnTable
    frame : DataFrame
        Its header, with the columns that a Dataset assigned.
    where : Within or None
        As of `FrameTable`.
    """

    table: ColumnTable
    frame: pd.DataFrame
    where: Any = None

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether it has all these columns."""
        return FrameTable(self.frame).has(columns)

    def read(self, asked: KeyRequest) -> Side:
        """The keys of its rows."""
        named = (*asked.keys, *asked.person, *(() if asked.weight is None else (asked.weight,)))
        for column in named:
            check_column(self.frame, column)
        within = self.where
        if not isinstance(within, Within):
            return FrameTable(self._knowing(guarded(lambda: self.table.frame(named)))).read(asked)
        selects = () if within.kept is None else within.kept.columns
        derived, stored = used(within.derived, (*named, *selects))
        frame = self._knowing(guarded(lambda: self.table.frame(stored)))
        added = frame.copy(deep=False)
        for each in derived:
            added[each.name] = placeholder(each, len(frame))
        added.attrs = dict(self.frame.attrs)
        return FrameTable(added, within._replace(stored=frame)).read(asked)

    def _knowing(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the declarations of its columns."""
        known = frame.copy(deep=False)
        known.attrs = dict(self.table.header.attrs)
        return known


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
        raise ColumnTypeError(f"column {series.name!r} holds no numbers, so it cannot be weights or counts.")
    return series.to_numpy(dtype=np.float64, na_value=np.nan)
