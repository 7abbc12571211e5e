"""The data that a Dataset holds, wherever they are, as its statistics ask for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.query import Query
from pdrisk._model.rowwise import EXPRESSION, Derived, RowwiseFilter, Within
from pdrisk._model.unit import People, Secret
from pdrisk._pandas.requests.declared import declarations_of, knowing
from pdrisk._pandas.suggestions import Suggestions
from pdrisk._sql.dataset.dataset_tables import ONE_TABLE, Given
from pdrisk._sql.dataset.joined_tables import JoinedTables
from pdrisk.engines.base import DataTable
from pdrisk.engines.columnar.table import ColumnTable
from pdrisk.engines.numpy.frame import FrameTable
from pdrisk.engines.sql.servers.sql_table import SQLTable, TableEngine, only_for_frames
from pdrisk.errors import ParameterError


@dataclass
class DatabaseTable:
    """Table in an engine of SQL as a `DataTable`."""

    tables: Given | JoinedTables

    @cached_property
    def header(self) -> pd.DataFrame:
        """Its columns without rows, and their declarations."""
        table, declarations = self.tables.fluent()
        return knowing(table.header, declarations) if declarations != Declarations() else table.header

    def stored(self) -> SQLTable:
        """The table as it is now."""
        return self.tables.fluent()[0]

    def opened(
        self, query: Query, header: pd.DataFrame, stored: pd.DataFrame, given: Any, secret: Secret
    ) -> TableEngine:
        """Engine of the table for a query that was judged by its header."""
        table = self.stored()
        if not table.header.dtypes.equals(stored.dtypes):
            raise ParameterError(self.tables.changed)
        return table.opened(query, header, given, secret)

    def selecting(self, where: Any) -> Any:
        """The ``where`` as it is; refuses masks and functions."""
        if where is None or isinstance(where, (str, EXPRESSION)):
            return where
        raise only_for_frames(where)


class HeldData(Suggestions):
    """Statistics of a Dataset's data: a frame, another table in memory or files, a database's table, or several."""

    _several: bool  # whether they came as a dict
    _given: Given | JoinedTables
    _held: DataTable  # of one table, or of a join
    _known_people: People
    _kept: RowwiseFilter | None  # what `query` selects
    _derived: tuple[Derived, ...]  # what `assign` computes
    _assigned: pd.DataFrame | None  # the header with it

    @property
    def _table(self) -> DataTable:
        return self._held

    @property
    def _frame(self) -> pd.DataFrame:
        return self._stored if self._assigned is None else self._assigned

    @property
    def _stored(self) -> pd.DataFrame:
        """The data without assigned columns: a frame, or the columns of another table without rows."""
        if self._several:
            raise ParameterError(
                "this Dataset is of several tables, which d.sql(...) asks: write a SELECT, or pass one table."
            )
        return self._held.header

    def _rows(self, where: object) -> Any:
        where = super()._rows(where)
        if self._kept is None and not self._derived:
            return where
        return Within(where, self._kept, self._derived, self._stored)

    @property
    def _people(self) -> People:
        """People declared by the Dataset, else by the file or schema of a table that is no frame."""
        known = self._known_people
        if known.columns or self._several or isinstance(self._held, FrameTable):
            return known
        declared = declarations_of(self._stored).people
        return known if declared is None else replace(declared, secret=known.secret)


def held_table(given: Given, columns: ColumnTable | None) -> DataTable:
    """The one table of a Dataset, of Polars or Arrow if ``columns`` has it."""
    if columns is not None:
        return columns
    frame = given.frames.get(ONE_TABLE)
    return DatabaseTable(given) if frame is None else FrameTable(frame)
