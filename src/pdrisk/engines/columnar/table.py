"""Tables of Polars and Arrow: the header that requests are judged by, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.expressions.columns import ROWS, UNREAD
from pdrisk._model.query import Query
from pdrisk._model.rowwise import EXPRESSION, Fitted, fitting, is_mask, is_of_polars
from pdrisk._model.unit import Secret
from pdrisk.engines.base import GroupSizes, Origin
from pdrisk.engines.columnar.sources import ColumnSource, source_of
from pdrisk.engines.columnar.types import array_of
from pdrisk.engines.numpy.frame import FrameEngine, FrameReading
from pdrisk.errors import ColumnTypeError, ParameterError

WRITE = 'Write a query string, as in where="age > 40", or a Polars expression of columns and constants'


@dataclass(frozen=True)
class ColumnTable:
    """Polars or Arrow frame, for a Dataset."""

    # Its columns without a record, with what is declared for them. Their dtypes are those of the schema.
    header: pd.DataFrame
    source: ColumnSource
    places: tuple[int, ...]  # where the columns of the header stand in the source
    kept: pd.DataFrame | None = None  # by which a ledger knows the data, see `remembered`

    def declared(self, known: Callable[[pd.DataFrame], pd.DataFrame]) -> ColumnTable:
        """The table with ``known`` applied to a copy of its header."""
        return replace(self, header=known(self.header.copy(deep=False)))

    def remembered(self, *, by_version: bool) -> ColumnTable:
        """The table with what a ledger knows it by: with a version its header, else all of its content.

        What is computed as often as it is read may be something else each time: only a version names it.
        """
        if by_version:
            return replace(self, kept=self.header)
        if self.source.rows is None or not self.header.columns.is_unique:
            return self
        return replace(self, kept=guarded(lambda: self.frame(self.header.columns)))

    def opened(
        self,
        query: Query,  # noqa: ARG002 - any that was judged by the header
        frame: pd.DataFrame,  # noqa: ARG002 - the header
        stored: pd.DataFrame,  # noqa: ARG002 - as well
        given: Any,
        secret: Secret,
    ) -> ColumnEngine:
        """Engine of the table for a judged query."""
        return ColumnEngine(self, given, secret)

    def selecting(self, where: Any) -> Any:
        """The ``where`` in a form that can be judged; a mask becomes one that fits the rows."""
        if where is None or isinstance(where, (str, EXPRESSION)) or is_of_polars(where, "Expr"):
            return where
        if callable(where) or type(where).__name__ == "Expression":
            raise ColumnTypeError(
                f"where cannot be of type {type(where).__name__} here: the data are no pandas frame. {WRITE}."
            )
        if self.source.rows is None and is_mask(where):
            raise ColumnTypeError(
                "a mask needs rows, and those of this frame are computed only when an answer is paid. "
                f"{WRITE}, or collect the frame."
            )
        if is_of_polars(where, "Series"):
            where = where.to_arrow()
        return Fitted(fitting(where, pd.DataFrame(index=pd.RangeIndex(self.source.rows or 0))))

    def frame(self, labels: Iterable[Hashable]) -> pd.DataFrame:
        """All rows of these columns as pandas holds them; names without a column are left out."""
        wanted = dict.fromkeys(labels)
        positions = [at for at, label in enumerate(self.header.columns) if label in wanted]
        if self.kept is not None and self.kept is not self.header:
            return self.kept.iloc[:, positions]
        rows, read = self.source.read([self.places[at] for at in positions])
        columns = {
            self.header.columns[at]: array_of(values, self.header.dtypes.iloc[at])
            for at, values in zip(positions, read, strict=True)
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(rows), copy=False)


@dataclass(frozen=True, slots=True)
class ColumnEngine:
    """Engine of a Polars or Arrow frame: the columns that are read become a pandas frame."""

    table: ColumnTable
    given: Any  # what decides beside the tree of a query's filter
    secret: Secret  # as of `FrameEngine`

    @property
    def origin(self) -> Origin:
        """Place by which a ledger knows the data, if it may remember them."""
        return Origin(frame=self.table.kept)

    @property
    def reads_later(self) -> bool:
        """False: the frame may have changed by then."""
        return False

    def group_sizes(self, query: Query) -> GroupSizes:
        """The groups that occur, sorted, and their numbers of people; fails as `guarded` does."""
        return guarded(lambda: self._of_frame(query).group_sizes(query))

    def read(self, query: Query) -> FrameReading:
        """Reading of a judged query; fails as `guarded` does."""
        return guarded(lambda: self._of_frame(query).read(query))

    def _of_frame(self, query: Query) -> FrameEngine:
        """The engine of the columns that a query reads."""
        frame = self.table.frame((*query.reads, *query.unit.person))
        return FrameEngine(frame, frame, self.given, self.secret)


def column_table(data: object) -> ColumnTable | None:
    """Table of a Polars or Arrow frame; None for anything else."""
    if type(data).__module__.partition(".")[0] == "polars" and find_spec("pyarrow") is None:
        raise ParameterError('a Polars frame is read by way of Arrow, which needs pyarrow: pip install "pdrisk[arrow]"')
    source = source_of(data)
    if source is None:
        return None
    columns = source.columns
    places = tuple(at for at, (_, held) in enumerate(columns) if held.dtype is not None)
    empty = {held.dtype: pd.array([], dtype=held.dtype) for _, held in columns if held.dtype is not None}
    header = pd.DataFrame({at: empty[columns[at][1].dtype] for at in places}, copy=False)
    header.columns = pd.Index([columns[at][0] for at in places], dtype=object)
    header.attrs |= {UNREAD: {name: held.name for name, held in columns if held.dtype is None}, ROWS: source.rows}
    return ColumnTable(header, source, places)
