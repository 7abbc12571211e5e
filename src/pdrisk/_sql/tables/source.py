"""Source of a query: a table, file or frame, or a SELECT from several of them, with the types of its columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._core.universe import Days, Universe
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.declared.known_column import Known
from pdrisk._model.declared.missing_codes import check_code_kinds
from pdrisk._model.expressions.kinds import TEXT, TIME
from pdrisk._relations.plan import Relation, Scan
from pdrisk._sql.syntax.pieces import kind_of_type, lowered
from pdrisk._sql.syntax.ranges import ANYTHING, Range, range_of
from pdrisk._sql.tables.parquet_meanings import as_remembered
from pdrisk.engines.base import Origin
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_functions import DuckDBForSQL
from pdrisk.engines.sql.servers.duckdb_types import columns_for_sql
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Source:
    """A table, file or frame, and the connection that can read it."""

    sql: str  # as it stands in FROM; "" of what is made of others
    columns: Mapping[str, str]  # SQL types by column name
    connection: DuckDBPyConnection
    # by the names of the columns; ``folded``: in lower case, since a schema is written for a table
    declared: Declarations = field(default_factory=Declarations)
    folded: bool = False
    name: str = ""  # for people
    frame: pd.DataFrame | None = None  # the pandas frame, if it is one
    # tells where it lies and with which settings it is read; None if it does not outlive the process
    place: Callable[[], str | None] | None = None
    untyped: frozenset[str] = frozenset()  # columns of Python objects that are read as text
    # columns of whole numbers that pandas would make floats for one missing value: they are computed as floats
    whole: frozenset[str] = frozenset()
    zone: str = "UTC"  # whose clock times with a zone are read by
    is_table: bool = False  # whether it is a table of a database, whose types no record changes
    rows: int = 0  # How many it has, or nearly; 0 where nobody knows. Decides the speed of what is read only.
    stated: Mapping[str, Universe] = field(default_factory=dict)  # the bounds that the call passes, by lower-case name
    asked_as: str = ""  # the name that a Dataset has for it
    public: bool = False  # whether nobody is in it, by the caller's word
    below: frozenset[str] = frozenset()  # in lower case, the columns of the tables that it is written out of
    called: Mapping[str, str] = field(default_factory=dict)  # what columns are called there, by their names here
    # where the tables are that it is written out of, as they stand in FROM
    tables: Mapping[str, Origin] = field(default_factory=dict)
    made: Relation | None = None  # what it is written out of; None of a stored table
    # the stored tables that it is made of, or itself if another engine than DuckDB has it
    held: Mapping[str, SQLTable] = field(default_factory=dict)

    @property
    def stored(self) -> Mapping[str, SQLTable]:
        """The stored tables that it is made of, by the names that `relation` has for them."""
        if self.held or self.made is not None:
            return self.held
        columns = columns_for_sql(self.columns, self.whole)
        table = SQLTable(self.sql, columns, DuckDBForSQL(self.zone), partial(fetched, self.connection), self.origin)
        return {as_remembered(self.sql): table}

    @property
    def relation(self) -> Relation:
        """What it is, as a plan."""
        return Scan(as_remembered(self.sql), self._codes()) if self.made is None else self.made

    def _codes(self) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
        missing = []
        for name in self.columns if self.declared.speak_of_codes else ():
            with suppress(ParameterError):  # of a schema that contradicts itself, for whoever reads the column
                missing.append((name, self.known(name).missing))
        return tuple((name, codes) for name, codes in missing if codes)

    @property
    def origin(self) -> Origin:
        """Place of the source."""
        return Origin(tables=self.tables) if self.tables else Origin(self.frame, self.place)

    def range_of(self, column: str) -> Range:
        """Range of a column's numbers, of dates in days, as far as it is known."""
        name = lowered(column)
        universe = self.stated.get(name)
        if universe is None:
            with suppress(ParameterError):  # of a schema that contradicts itself, for whoever needs it
                universe = self.known(column).universe
        is_date = self.columns.get(column, "").startswith(("DATE", "TIMESTAMP"))
        return range_of(universe, name) if isinstance(universe, Days) == is_date else ANYTHING  # of another such name

    def known(self, column: str | None) -> Known:
        """Declarations of a column; none for an expression."""
        if column is None:
            return Known(None)
        return self.declared.of(lowered(column) if self.folded else column)

    def categories(self, column: str | None) -> list[Any] | None:
        """The categories of a column of a pandas frame; None where there are none."""
        if column is None or self.frame is None or column not in self.frame.columns:
            return None
        dtype = self.frame[column].dtype
        return list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None

    def missing(self, names: Iterable[str]) -> dict[str, tuple[Hashable, ...]]:
        """Missing codes of columns."""
        if not self.declared.speak_of_codes:
            return {}
        missing = {name: codes for name in names if (codes := self.known(name).missing)}
        for name, codes in missing.items():
            sql_type = self.columns[name]
            kind = TIME if sql_type.startswith("TIMESTAMP_") else kind_of_type(sql_type)
            # A date beside text is compared as a frame's column of such objects is read.
            plain = [str(code) if kind == TEXT and isinstance(code, datetime.date) else code for code in codes]
            check_code_kinds(name, plain, kind, sql=True)
        return missing
