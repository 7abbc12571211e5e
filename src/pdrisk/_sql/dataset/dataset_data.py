"""The data that a Dataset holds, wherever they are, as its statistics ask for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from pdrisk._disclosure.tables import ColumnKeys, KeyTable
from pdrisk._model.rowwise import EXPRESSION, Derived, RowwiseFilter, Within
from pdrisk._model.unit import People
from pdrisk._pandas.requests.declared import declarations_of
from pdrisk._pandas.requests.options import Opened, frame_engine
from pdrisk._pandas.suggestions import Suggestions
from pdrisk._sql.dataset.dataset_tables import ONE_TABLE, Given
from pdrisk._sql.dataset.joined_tables import JoinedTables
from pdrisk.engines.columnar.table import ColumnTable
from pdrisk.engines.sql.servers.sql_table import only_for_frames
from pdrisk.errors import ParameterError

__all__ = ["HeldData"]


class HeldData(Suggestions):
    """Statistics of a Dataset's data: a frame, another table in memory or files, a database's table, or several."""

    _several: bool  # whether they came as a dict
    _given: Given | JoinedTables
    _data: ColumnTable | None  # of Polars, Arrow or Parquet
    _known_people: People
    _kept: RowwiseFilter | None  # what `query` selects
    _derived: tuple[Derived, ...]  # what `assign` computes
    _assigned: pd.DataFrame | None  # the header with it
    _header: pd.DataFrame | None

    @property
    def _frame(self) -> pd.DataFrame:
        return self._stored if self._assigned is None else self._assigned

    @property
    def _stored(self) -> pd.DataFrame:
        """The data without assigned columns: a frame, or the columns of another table without rows."""
        if self._data is not None:
            return self._data.header
        if self._several:
            raise ParameterError(
                "this Dataset is of several tables, which d.sql(...) asks: write a SELECT, or pass one table."
            )
        if self._header is None:
            frame = self._given.frames.get(ONE_TABLE)
            self._header = self._given.header() if frame is None else frame
        return self._header

    @property
    def _opened(self) -> Opened:
        if self._data is not None:
            return self._data.opened
        return frame_engine if self._is_frame else self._given.opened

    @property
    def _is_frame(self) -> bool:
        """Whether the data are one pandas frame."""
        return ONE_TABLE in self._given.frames

    def _table(self) -> KeyTable:
        if self._data is not None:
            return ColumnKeys(self._data, self._frame, self._rows(None))
        if self._several or self._is_frame:
            return super()._table()
        return self._given.key_table(self._rows(None))

    def _rows(self, where: object) -> Any:
        if self._data is not None:
            where = self._data.selecting(where)
        elif not self._is_frame and not (where is None or isinstance(where, (str, EXPRESSION))):
            raise only_for_frames(where)
        if self._kept is None and not self._derived:
            return where
        return Within(where, self._kept, self._derived, self._stored)

    @property
    def _people(self) -> People:
        """People declared by the Dataset, else by the file or schema of a table that is no frame."""
        known = self._known_people
        if known.columns or self._several or self._is_frame:
            return known
        said = declarations_of(self._stored).people
        return known if said is None else replace(said, secret=known.secret)
