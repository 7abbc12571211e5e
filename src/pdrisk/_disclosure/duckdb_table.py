"""Tables that DuckDB reads for measures: one GROUP BY gives the classes, whatever the number of rows."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from pdrisk._disclosure.generalize import generalized
from pdrisk._disclosure.keys import KeyColumn, coded
from pdrisk._disclosure.tables import FrameTable, KeyRequest, KeyTable, Side
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.parquet_scan import parquet_scan
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["DECIMAL", "FLOATS", "SQL", "WHOLE", "DuckDBTable", "fetched", "table_of", "without_nan"]

T = TypeVar("T")
SQL = DuckDBDialect()  # every function by its full name: a macro of the connection could stand in for it
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
FLOATS = ("FLOAT", "DOUBLE")
AS_THEY_ARE = ("BOOLEAN", "ENUM", "DATE", "TIMESTAMP")  # beginnings of names of types
DECIMAL = re.compile(r"DECIMAL\((\d+),\d+\)")
UNDECLARED = Declarations()
DIGITS = 15  # of a decimal, which comes as a float


def table_of(data: object, what: str = "population", declared: Declarations = UNDECLARED) -> KeyTable:
    """Table that measures can read, of any kind of data; a frame declares its missing codes itself.

    Raises
    ------
    ColumnTypeError
        If it is nothing that can be read.
    ParameterError
        If DuckDB cannot open it.
    """
    if isinstance(data, pd.DataFrame):
        return FrameTable(data)
    import duckdb

    try:
        found = _opened(data)
    except duckdb.Error as error:
        failure = type(error).__name__
    else:
        if found is not None:
            return replace(found, declared=declared)
        raise ColumnTypeError(
            f"{what} must be a pandas, Polars or Arrow table, the path of a Parquet file, a DuckDB relation or "
            f'(connection, "table"), not of type {type(data).__name__}.'
        )
    raise ParameterError(f"DuckDB cannot open what {what} names ({failure}): see whether it exists and is whole.")


def _opened(data: Any) -> DuckDBTable | None:
    import duckdb

    module = type(data).__module__.partition(".")[0]
    if isinstance(data, duckdb.DuckDBPyRelation):
        return DuckDBTable(data)
    if type(data) is tuple and len(data) == 2 and isinstance(data[0], duckdb.DuckDBPyConnection):
        name = data[1] if isinstance(data[1], str) else ".".join(data[1])
        cursor = data[0].cursor()  # so that results that are open stay
        try:
            return DuckDBTable(cursor.table(name), cursor)
        except duckdb.CatalogException:  # a temporary table, which no cursor sees
            return DuckDBTable(data[0].table(name), data[0])
    own = duckdb.connect()
    paths = (data,) if isinstance(data, str | os.PathLike) else data
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | os.PathLike) for path in paths):
        named = tuple(map(os.fspath, paths))
        sql, _ = parquet_scan(named[0] if paths is not data else named)
        return DuckDBTable(own.sql(f"SELECT * FROM {sql}"), own)
    if module == "polars":
        data = (data.collect() if hasattr(data, "collect") else data).to_arrow()
    return DuckDBTable(own.from_arrow(data), own) if module in ("polars", "pyarrow") else None


@dataclass(frozen=True, slots=True)
class DuckDBTable:
    """Table, file or relation of DuckDB.

    Attributes
    ----------
    relation : DuckDBPyRelation
    connection : DuckDBPyConnection or None
        Its own; None if it is not known.
    declared : Declarations
        By column: missing codes are missing.
    """

    relation: DuckDBPyRelation
    connection: DuckDBPyConnection | None = None
    declared: Declarations = UNDECLARED

    def has(self, columns: Sequence[Hashable]) -> bool:
        """Whether the table has all these columns."""
        return all(column in self.relation.columns for column in columns)

    def read(self, asked: KeyRequest) -> Side:
        """Keys of groups of its rows; raises as `asked` does."""
        return self.asked(asked, lambda types: self._read(asked, types))

    def asked(self, asked: KeyRequest, read: Callable[[dict[str, str]], T]) -> T:
        """Keys of groups, from columns whose SQL types are given.

        Raises
        ------
        ColumnTypeError, UnknownColumnError, ParameterError
            If a column is missing or of a type that keys do not have, or DuckDB fails.
        """
        import duckdb

        types = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        for column in (*asked.keys, *asked.person, *([] if asked.weight is None else [asked.weight])):
            if column not in types:
                raise unknown_column(column, types)
        try:
            return read(types)
        except duckdb.Error as error:
            failure = type(error).__name__
        raise ParameterError(f"DuckDB cannot count the classes of this table ({failure}): see whether it is whole.")

    def _read(self, asked: KeyRequest, types: dict[str, str]) -> Side:
        picked = [f'{_key(name, types[str(name)])} AS "k{at}"' for at, name in enumerate(asked.keys)]
        picked += [f'{_key(name, types[str(name)])} AS "p{at}"' for at, name in enumerate(asked.person)]
        picked += [] if asked.weight is None else [f"CAST({self.without_codes(asked.weight)} AS DOUBLE) AS w"]
        relation: Any = self.relation.project(", ".join(picked)).set_alias("t")
        keys = [f't."k{at}"' for at in range(len(asked.keys))]
        known: dict[int, KeyColumn] = {}
        if asked.person:
            # Different people of several values cannot be added up afterwards: what makes values one comes first.
            for at, name in enumerate(asked.keys):
                if name in asked.generalize or self._codes(name):
                    known[at], relation = self._coarser(asked, name, at, relation)
                    keys[at] = f'coalesce(m{at}."code", 0)'  # no function: DuckDB looks for no macro of that name
        lines = [f'{sql} AS "k{at}"' for at, sql in enumerate(keys)] + self._counts(asked)
        grouped = fetched(relation.aggregate(", ".join(lines), ", ".join(keys)))
        left_out = int((grouped["every"] - grouped["n"]).sum())
        grouped = grouped[grouped["people"] > 0]
        columns = [
            replace(known[at], codes=grouped[f"k{at}"].to_numpy(dtype=np.int64))
            if at in known
            else self.key_column(asked, name, grouped[f"k{at}"])
            for at, name in enumerate(asked.keys)
        ]
        weights = None
        if asked.weight is not None:
            if asked.person and (grouped["n"] > grouped["people"]).any():
                raise several_rows()
            weights = grouped["weight"].to_numpy(dtype=np.float64, na_value=np.nan)
        return Side(tuple(columns), grouped["people"].to_numpy(dtype=np.int64), None, weights, left_out)

    def _counts(self, asked: KeyRequest) -> list[str]:
        """Counts of a group: people, their rows, all rows, and weights (NULL if one is invalid)."""
        every = SQL.call("COUNT", "*")
        if asked.person:
            ids = [f't."p{at}"' for at in range(len(asked.person))]
            there = " AND ".join(
                f"{one} IS NOT NULL" + "".join(f" AND {one} <> {_constant(code)}" for code in self._codes(name))
                for one, name in zip(ids, asked.person, strict=True)
            )
            one = ids[0] if len(ids) == 1 else SQL.call("ROW", *ids)
            counted = [f"{what} FILTER (WHERE {there})" for what in (SQL.call("COUNT", f"DISTINCT {one}"), every)]
        else:
            counted = [every, every]
        known, least, total = (SQL.call(name, "w") for name in ("COUNT", "MIN", "SUM"))
        weight = f"CASE WHEN {known} = {every} AND {least} >= 0 THEN {total} END AS weight"
        lines = [f"{counted[0]} AS people", f"{counted[1]} AS n", f"{every} AS every"]
        return lines if asked.weight is None else [*lines, weight]

    def _coarser(self, asked: KeyRequest, name: Hashable, at: int, relation: Any) -> tuple[KeyColumn, Any]:
        """A key column made coarser before people are counted: its labels, and a relation with its codes."""
        if self.connection is None:
            raise ParameterError(
                "a relation does not tell its connection, which counting people in coarser classes needs: pass "
                '(connection, "table") or the path of a Parquet file instead.'
            )
        values = fetched(relation.aggregate(f't."k{at}" AS "value"', f't."k{at}"'))["value"]
        column = self.key_column(asked, name, values)
        mapping = pd.DataFrame({"value": values, "code": column.codes})[column.codes > 0]
        added = self.connection.from_df(mapping).set_alias(f"m{at}")
        return column, relation.join(added, f't."k{at}" = m{at}."value"', how="left")

    def key_column(self, asked: KeyRequest, name: Hashable, values: pd.Series) -> KeyColumn:
        """A key column of these values, generalised."""
        column = replace(coded(values, self._codes(name)), name=name)
        return generalized(column, asked.generalize[name]) if name in asked.generalize else column

    def without_codes(self, name: Hashable, value: str | None = None) -> str:
        """A column in SQL, or a value made of it, that is NULL where the column holds a missing code."""
        codes = ", ".join(map(_constant, self._codes(name)))
        column, value = _quoted(name), value or _quoted(name)
        if self.relation.types[self.relation.columns.index(str(name))] == "VARCHAR":
            column = SQL.exact_text(column)
        return f"CASE WHEN {column} IN ({codes}) THEN NULL ELSE {value} END" if codes else value

    def key_without_codes(self, name: Hashable, sql_type: str) -> str:
        """A key column in SQL that is NULL where it is missing or holds a missing code."""
        return self.without_codes(name, _key(name, sql_type))

    def _codes(self, name: Hashable) -> tuple[Hashable, ...]:
        return tuple(self.declared.of(name).missing or ()) if self.declared.speak_of_codes else ()


def fetched(relation: Any) -> pd.DataFrame:
    """What a relation gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pandas, about how DuckDB makes times with a zone
        return relation.df()


def several_rows() -> ParameterError:
    """The error for weights of rows where people are asked for."""
    return ParameterError(
        "weights are of people, and some have several rows in one class: make a table with one row a person first."
    )


def _quoted(name: Hashable) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _constant(value: Hashable) -> str:
    return "'" + str(value).replace("'", "''") + "'"  # which DuckDB reads as the type of the column beside it


def without_nan(value: str) -> str:
    """A DOUBLE in SQL that is NULL where it is NaN; DuckDB takes ``NOT isnan(x)`` for true of some Parquet files."""
    return f"CASE WHEN {SQL.call('ISFINITE', value)} OR {SQL.call('ISINF', value)} THEN {value} END"


def _key(name: Hashable, sql_type: str) -> str:
    """A key column in SQL, with NaN as missing; texts that differ in a letter's case are two, as on frames."""
    column = _quoted(name)
    if sql_type in FLOATS:
        return without_nan(column)
    if sql_type in ("UUID", "VARCHAR"):
        return SQL.exact_text(column)
    decimal = DECIMAL.fullmatch(sql_type)
    if sql_type in WHOLE or sql_type.startswith(AS_THEY_ARE) or (decimal and int(decimal[1]) <= DIGITS):
        return column
    raise ColumnTypeError(
        f"key column {name!r} is of the SQL type {sql_type}, which cannot be a key: cast it to text in a view first."
    )
