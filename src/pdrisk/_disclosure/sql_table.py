"""Tables in engines of SQL other than DuckDB, for disclosure measures: one GROUP BY gives the classes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._disclosure.generalize import generalized
from pdrisk._disclosure.keys import KeyColumn, coded
from pdrisk._disclosure.tables import KeyRequest, Side
from pdrisk._guard import guarded
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.rowwise import Derived, Within
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.servers.carried_keys import plain_keys
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.reading import Columns
from pdrisk.engines.sql.summary.summary_plan import Counted, SummaryPlan
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["SQLKeys"]

DECIMAL: Final = re.compile(r"(?:numeric|decimal)\((\d+),\s*-?\d+\)", re.IGNORECASE)
DIGITS: Final = 15  # of a decimal, which comes as a float


@dataclass(frozen=True, slots=True)
class SQLKeys:
    """Table in an engine of SQL, for disclosure measures.

    Attributes
    ----------
    table : SQLTable
    declared : Declarations
        By column: missing codes are missing.
    within : Within or None
        What a Dataset selected and assigned.
    """

    table: SQLTable
    declared: Declarations
    within: Within | None = None

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether the table has all these columns."""
        return all(column in self._names for column in columns)

    @property
    def _derived(self) -> tuple[Derived, ...]:
        return () if self.within is None else self.within.derived

    @property
    def _names(self) -> list[Hashable]:
        return [*self.table.columns, *(each.name for each in self._derived)]

    def read(self, asked: KeyRequest) -> Side:
        """Keys of groups of its rows.

        Raises
        ------
        ColumnTypeError, UnknownColumnError, ParameterError
            If a column is missing or of a type that keys do not have, or the engine is not asked for it.
        QueryFailedError
            If reading fails.
        """
        for column in (*asked.keys, *asked.person):
            self._check(column)
        if asked.weight is not None:
            raise ParameterError(
                "weights of rows are added up by frames, files and DuckDB alone: ask them, with a table of the key "
                "columns and weights."
            )
        if asked.person and asked.generalize:
            raise ParameterError(
                "people of several rows are counted in the classes that the server has: make a view there with "
                "coarser columns, and leave generalize= out."
            )
        codes = {name: self.declared.of(name).missing or () for name in self.table.columns}
        missing = codes if self.declared.speak_of_codes else {}
        rows = RowSQL(self.table.columns, missing, self._derived, self.table.dialect)
        found = guarded(lambda: self._fetched(self._statement(asked, rows)))
        people, n, every = (np.asarray(found[name], dtype=np.int64) for name in ("people", "n", "every_row"))
        some = people > 0
        columns = tuple(self._column(asked, name, rows, found[f"k{at}"][some]) for at, name in enumerate(asked.keys))
        return Side(columns, people[some], None, None, int((every - n).sum()))

    def _check(self, column: Hashable) -> None:
        """Refuse a label without a column, and a column whose values floats cannot tell apart."""
        if column not in self._names:
            raise unknown_column(column, self._names)
        if any(each.name == column for each in self._derived):
            return
        stored = self.table.columns[str(column)]
        decimal = DECIMAL.fullmatch(stored.type)
        if stored.exact is not None and not (decimal and int(decimal[1]) <= DIGITS):
            raise ColumnTypeError(
                f"key column {column!r} is of the type {stored.type}, which cannot be a key: cast it to text in a "
                "view first."
            )

    def _statement(self, asked: KeyRequest, rows: RowSQL) -> str:
        """The SELECT of the groups, with people, their rows, and all rows."""
        keys = [f"{rows.same(name).sql} AS k{at}" for at, name in enumerate(asked.keys)]
        ids = [f"{rows.same(name).sql} AS p{at}" for at, name in enumerate(asked.person)]
        names = [f"k{at}" for at in range(len(keys))]
        by = ", ".join(names)
        call = rows.dialect.call
        picked = f"(SELECT {', '.join([*keys, *ids])} FROM {self.table.source}{self._selected(rows)}) AS picked"
        if not ids:
            counted = ", ".join(f"{call('COUNT', '*')} AS {each}" for each in ("people", "n", "every_row"))
            return f"SELECT {by}, {counted} FROM {picked} GROUP BY {by}"
        persons = [f"p{at}" for at in range(len(ids))]
        grouping = ", ".join([*names, *persons])
        each = f"(SELECT {grouping}, {call('COUNT', '*')} AS n FROM {picked} GROUP BY {grouping}) AS counted"
        known = " AND ".join(f"{person} IS NOT NULL" for person in persons)

        def total(value: str, name: str) -> str:
            return f"CAST({call('SUM', value)} AS BIGINT) AS {name}"

        sums = [
            total(f"CASE WHEN {known} THEN 1 ELSE 0 END", "people"),
            total(f"CASE WHEN {known} THEN n ELSE 0 END", "n"),
            total("n", "every_row"),
        ]
        return f"SELECT {by}, {', '.join(sums)} FROM {each} GROUP BY {by}"

    def _selected(self, rows: RowSQL) -> str:
        """WHERE clause of the rows that a Dataset selected."""
        kept = None if self.within is None else self.within.kept
        if kept is None:
            return ""
        assert kept.rule is not None  # masks belong to frames
        return f" WHERE {rows.condition(kept.rule)}"

    def _fetched(self, sql: str) -> Columns:
        plan = SummaryPlan(self.table.source, (), (), (), None, (Counted(None),))
        with self.table.reading(plan, None) as (fetch, _):
            return fetch(sql, [])

    def _column(self, asked: KeyRequest, name: Hashable, rows: RowSQL, values: Any) -> KeyColumn:
        """A key column of these values, generalised."""
        there = ~np.ma.getmaskarray(values)
        plain = np.empty(len(values), dtype=object)
        plain[:] = None
        plain[there] = pd.Series(plain_keys(rows.same(name), list(np.ma.getdata(values)[there])), dtype=object)
        is_derived = any(each.name == name for each in self._derived)
        series = pd.Series(plain, dtype=None if is_derived else self.table.columns[str(name)].dtype)
        column = replace(coded(series), name=name)
        return generalized(column, asked.generalize[name]) if name in asked.generalize else column
