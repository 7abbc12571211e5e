"""Tables in an engine of SQL, for disclosure measures: one GROUP BY gives the classes, whatever the number of rows.

rows ──> a line for each person in a class ──> a line for each class
rows ──> a line for each person in a cell ──> ranked by contribution ──> a line for each cell
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.classes import classes_of
from pdrisk._disclosure.generalize import generalized
from pdrisk._disclosure.keys import DIGITS, KeyColumn, coded, label_dtype
from pdrisk._disclosure.tables import KeyRequest, Side, no_numbers, several_rows
from pdrisk._guard import guarded
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.rowwise import Derived, Within
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import as_double, dtype_of
from pdrisk.engines.sql.dialects.dialect import WHOLE
from pdrisk.engines.sql.servers.carried_keys import group_sql, plain_keys
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.reading import Fetch
from pdrisk.errors import ColumnTypeError, ParameterError

DECIMAL: Final = re.compile(r"(?:numeric|decimal)\((\d+),\s*-?\d+\)", re.IGNORECASE)
Result = TypeVar("Result")
UNDECLARED: Final = Declarations()


@dataclass(frozen=True)
class SQLKeys:
    """Table in an engine of SQL, for disclosure measures."""

    table: SQLTable
    declared: Declarations = UNDECLARED  # by column: missing codes are missing
    within: Within | None = None  # what a Dataset selected and assigned

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether the table has all these columns."""
        return all(column in self._names for column in columns)

    def read(self, asked: KeyRequest) -> Side:
        """Keys of groups of its rows."""
        self._check(asked)
        return guarded(lambda: _counted(lambda: self._read(asked)))

    def cells(self, asked: KeyRequest, top: int) -> tuple[Side, pd.DataFrame]:
        """Keys of cells, and the facts that rules need about each.

        A line each: ``people total largest top rest negative rows lowest highest same_lowest same_highest infinite``;
        ``same_`` are numbers of people who have the lowest and the highest value. Fails as `read` does.

        ``asked``: whose weight is the column of contributions; those of one person to a cell are added up.
        ``top``: how many of the largest contributions make one sum.
        """
        self._check(asked)
        return guarded(lambda: _counted(lambda: self._cells(asked, top)))

    # --- Columns ------------------------------------------------------------------------------------------------------

    @property
    def _derived(self) -> tuple[Derived, ...]:
        return () if self.within is None else self.within.derived

    @property
    def _names(self) -> list[Hashable]:
        return [*self.table.columns, *(derived.name for derived in self._derived)]

    @cached_property
    def _rows(self) -> RowSQL:
        codes = {name: self.declared.of(name).missing or () for name in self.table.columns}
        missing = codes if self.declared.speak_of_codes else {}
        return RowSQL(self.table.columns, missing, self._derived, self.table.dialect)

    def _check(self, asked: KeyRequest) -> None:
        """Refuse labels without a column, values that floats cannot tell apart, and weights that are no numbers."""
        for column in (*asked.keys, *asked.person, *(() if asked.weight is None else (asked.weight,))):
            if column not in self._names:
                raise unknown_column(column, self._names)
        for column in (*asked.keys, *asked.person):
            if any(derived.name == column for derived in self._derived):
                continue
            stored = self.table.columns[str(column)]
            decimal = DECIMAL.fullmatch(stored.type)
            if not stored.is_readable or (stored.exact is not None and not (decimal and int(decimal[1]) <= DIGITS)):
                raise ColumnTypeError(
                    f"key column {column!r} is of the SQL type {stored.type}, which cannot be a key: cast it to text "
                    "in a view first."
                )
        if asked.weight is not None:
            value = self._rows.column(asked.weight)
            if value.family != NUMBER or value.is_truth:
                raise no_numbers(asked.weight)

    def _picked(self, asked: KeyRequest) -> str:
        """The rows that a Dataset selected, with keys k0, k1, ..., ids p0, p1, ... and a weight."""
        rows = self._rows
        picked = [f"{group_sql(rows, name)[0]} AS k{at}" for at, name in enumerate(asked.keys)]
        picked += [f"{rows.same(name).sql} AS p{at}" for at, name in enumerate(asked.person)]
        if asked.weight is not None:
            picked.append(f"{as_double(rows.dialect, rows.same(asked.weight))} AS w")
        kept = None if self.within is None else self.within.kept
        where = ""
        if kept is not None:
            assert kept.rule is not None  # masks belong to frames
            where = f" WHERE {rows.condition(kept.rule)}"
        return f"(SELECT {', '.join(picked)} FROM {self.table.source}{where}) AS picked"

    def _column(self, asked: KeyRequest, name: Hashable, answer: Any) -> KeyColumn:
        """A key column of these values, generalised."""
        there = ~np.ma.getmaskarray(answer)
        values: Any = np.ma.getdata(answer)[there]
        is_derived = any(derived.name == name for derived in self._derived)
        dtype = dtype_of(self._rows.column(name)) if is_derived else self.table.columns[str(name)].dtype
        value, places = self._rows.same(name), None
        if values.dtype.kind != "i" or value.span in (None, (0, 1)):  # else they are plain already
            places, values = pd.factorize(values)
            values = plain_keys(value, values.tolist())
        missing = (
            not there.all() and not self.declared.of(name).missing
        )  # whole numbers with codes are numpy's in frames
        labels = coded(pd.Series(values, dtype=label_dtype(dtype, missing)))
        codes = np.zeros(len(there), dtype=np.int64)
        codes[there] = labels.codes if places is None else labels.codes[places]
        column = KeyColumn(name, codes, labels.labels, labels.ordered)
        return generalized(column, asked.generalize[name]) if name in asked.generalize else column

    # --- Statements ---------------------------------------------------------------------------------------------------

    def _read(self, asked: KeyRequest) -> Side:
        picked, names = self._picked(asked), {key: f"k{at}" for at, key in enumerate(asked.keys)}
        coarser, lists = dict[Hashable, KeyColumn](), list[list[Any]]()
        with self.table.asking() as fetch:
            if asked.person and asked.generalize:
                # Different people of several values cannot be added up afterwards: what makes values one comes first.
                picked, lists, coarser = self._coarser(asked, picked, fetch)
                names = {key: "coarse" if key in coarser else name for key, name in names.items()}
            answer = fetch(self._statement(asked, picked, list(dict.fromkeys(names.values()))), lists)
        people, n, every = (np.asarray(answer[name], dtype=np.int64) for name in ("people", "n", "every_row"))
        some = people > 0
        if asked.person and asked.weight is not None and (n > people).any():
            raise several_rows()
        columns = tuple(
            replace(coarser[key], codes=coarser[key].codes[np.asarray(answer[name][some], dtype=np.int64)])
            if key in coarser
            else self._column(asked, key, answer[name][some])
            for key, name in names.items()
        )
        weights = None if asked.weight is None else _floats(answer["weight"])[some]
        return Side(columns, people[some], None, weights, int((every - n).sum()))

    def _statement(self, asked: KeyRequest, picked: str, names: Sequence[str]) -> str:
        """The SELECT of the groups, with people, their rows, all rows, and weights (NULL if one is invalid)."""
        by, call = ", ".join(names), self.table.dialect.call
        every, of_rows = call("COUNT", "*"), ""
        if asked.weight is not None:
            sums = {"COUNT": "weighed", "MIN": "least", "SUM": "total"}
            of_rows = "".join(f", {call(how, 'w')} AS {name}" for how, name in sums.items())
        if not asked.person:
            counted = ", ".join(f"{every} AS {name}" for name in ("people", "n", "every_row"))
            grouped = f"SELECT {by}, {counted}{of_rows} FROM {picked} GROUP BY {by}"
            if asked.weight is None:
                return grouped
            weight = "CASE WHEN weighed = n AND least >= 0 THEN total END AS weight"
            return f"SELECT {by}, people, n, every_row, {weight} FROM ({grouped}) AS counted"
        persons = [f"p{at}" for at in range(len(asked.person))]
        grouping = ", ".join([*names, *persons])
        per_person = f"(SELECT {grouping}, {every} AS n{of_rows} FROM {picked} GROUP BY {grouping}) AS counted"
        known = " AND ".join(f"{person} IS NOT NULL" for person in persons)

        def of_known(how: str, value: str) -> str:
            return call(how, f"CASE WHEN {known} THEN {value} END")

        sums = {
            "people": call("SUM", f"CASE WHEN {known} THEN 1 ELSE 0 END"),
            "n": call("SUM", f"CASE WHEN {known} THEN n ELSE 0 END"),
            "every_row": call("SUM", "n"),
        }
        lines = [f"CAST({sql} AS BIGINT) AS {name}" for name, sql in sums.items()]
        if asked.weight is not None:
            valid = f"{of_known('SUM', 'weighed')} = {of_known('SUM', 'n')} AND {of_known('MIN', 'least')} >= 0"
            lines.append(f"CASE WHEN {valid} THEN {of_known('SUM', 'total')} END AS weight")
        return f"SELECT {by}, {', '.join(lines)} FROM {per_person} GROUP BY {by}"

    def _coarser(
        self, asked: KeyRequest, picked: str, fetch: Fetch
    ) -> tuple[str, list[list[Any]], dict[Hashable, KeyColumn]]:
        """The rows with a number for their coarser keys, its parameters, and these keys for each number."""
        dialect, keys = self.table.dialect, [(f"k{at}", key) for at, key in enumerate(asked.keys)]
        keys = [(name, key) for name, key in keys if key in asked.generalize]
        by = ", ".join(name for name, _ in keys)
        answer = fetch(f"SELECT {by} FROM {picked} GROUP BY {by}", [])
        columns = {key: self._column(asked, key, answer[name]) for name, key in keys}
        (number,) = classes_of(Side(tuple(columns.values()))).numbers
        for key, column in columns.items():
            codes = np.zeros(int(number.max(initial=0)) + 1, dtype=np.int64)
            codes[number] = column.codes
            columns[key] = replace(column, codes=codes)
        carriers = [*(group_sql(self._rows, key)[1] for _, key in keys), WHOLE]
        listed, lists = dialect.keys(
            carriers, [*(np.ma.asarray(answer[name]).tolist() for name, _ in keys), number.tolist()]
        )
        pairs = [(f"picked.{name}", f"keys_listed.g{at}") for at, (name, _) in enumerate(keys)]
        joined = f"{picked} JOIN {listed} ON {dialect.same_keys(pairs, missing=True)}"
        return f"(SELECT picked.*, keys_listed.g{len(keys)} AS coarse FROM {joined}) AS coarser", lists, columns

    def _cells(self, asked: KeyRequest, top: int) -> tuple[Side, pd.DataFrame]:
        dialect, names = self.table.dialect, [f"k{at}" for at in range(len(asked.keys))]
        call, by = dialect.call, ", ".join(names)
        persons = [f"p{at}" for at in range(len(asked.person))]
        infinite = f"CASE WHEN w = {dialect.number(math.inf)} OR w = {dialect.number(-math.inf)} THEN 1 ELSE 0 END"
        if persons:
            sums = {"SUM": "x", "MIN": "low", "MAX": "high", "COUNT": "own_rows"}
            selected = [
                *(f"{call(how, 'w')} AS {name}" for how, name in sums.items()),
                f"{call('MAX', infinite)} AS beyond",
            ]
            there = " AND ".join(f"{person} IS NOT NULL" for person in persons)
            ends = f" WHERE {there} GROUP BY {', '.join([*names, *persons])}"
        else:
            counted = "CASE WHEN w IS NULL THEN 0 ELSE 1 END AS own_rows"
            selected, ends = ["w AS x", "w AS low", "w AS high", counted, f"{infinite} AS beyond"], ""
        people = f"(SELECT {', '.join([*names, *selected])} FROM {self._picked(asked)}{ends}) AS people_in_cells"
        cell = f"PARTITION BY {by}"
        ranked = [
            f"{call('ROW_NUMBER')} OVER ({cell} ORDER BY x DESC NULLS LAST) AS place",
            f"{call('MIN', 'low')} OVER ({cell}) AS lowest",
            f"{call('MAX', 'high')} OVER ({cell}) AS highest",
        ]
        places = f"(SELECT {by}, x, low, high, own_rows, beyond, {', '.join(ranked)} FROM {people}) AS ranked"

        def number(condition: str) -> str:
            return f"CAST({call('SUM', f'CASE WHEN {condition} THEN 1 ELSE 0 END')} AS BIGINT)"

        cells = {
            "people": call("COUNT", "x"),
            "total": call("SUM", "x"),
            "largest": call("MAX", "x"),
            "top": call("SUM", f"CASE WHEN place <= {top} THEN x END"),
            "rest": call("SUM", "CASE WHEN place > 2 THEN x END"),
            "negative": call("MAX", "CASE WHEN low < 0 THEN 1 ELSE 0 END"),
            "rows": f"CAST({call('SUM', 'own_rows')} AS BIGINT)",
            "lowest": call("MIN", "low"),
            "highest": call("MAX", "high"),
            "same_lowest": number("low = lowest"),
            "same_highest": number("high = highest"),
            "infinite": call("MAX", "beyond"),
        }
        lines = [f"{sql} AS c{at}" for at, sql in enumerate(cells.values())]
        with self.table.asking() as fetch:
            answer = fetch(f"SELECT {', '.join([by, *lines])} FROM {places} GROUP BY {by}", [])
        columns = tuple(self._column(asked, key, answer[name]) for name, key in zip(names, asked.keys, strict=True))
        facts = pd.DataFrame({name: _floats(answer[f"c{at}"]) for at, name in enumerate(cells)}).fillna(0)
        return Side(columns, facts["people"].to_numpy()), facts


def _counted(work: Callable[[], Result]) -> Result:
    """Result of ``work``, or the error for what DuckDB cannot read; those of other engines come out."""
    try:
        return work()
    except Exception as error:
        failure = type(error).__name__
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
    raise ParameterError(f"DuckDB cannot count the classes of this table ({failure}): see whether it is whole.")


def _floats(answer: Any) -> NDArray[np.float64]:
    """Numbers of an answer, NaN where it is NULL."""
    return np.ma.filled(np.ma.asarray(answer).astype(np.float64), np.nan)
