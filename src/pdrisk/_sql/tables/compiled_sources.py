"""Relations compiled: written in the SQL of the engine that has their tables, and read there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.kinds import DATE, NUMBER
from pdrisk._model.expressions.nodes import Column, Node
from pdrisk._relations.plan import Scan
from pdrisk._relations.pruned import columns_read, pruned
from pdrisk._sql.tables.source import Source
from pdrisk._sql.text.dry_run import typed_nothing
from pdrisk.engines.sql.compiler.relation import written
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import Value
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.servers.duckdb_functions import DuckDBForSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.reading import Columns
from pdrisk.errors import ParameterError

MOST_PUBLIC_ROWS: Final = 1_000_000  # that are read before anything is paid
EPOCH: Final = datetime(1970, 1, 1)


def is_of_server(source: Source) -> bool:
    """Whether another engine than DuckDB has the tables of a source."""
    return any(not table.dialect.own for table in source.held.values())


def compiled(source: Source, read: Sequence[Node] | None = None) -> tuple[SQLTable, RowSQL]:
    """The source as one table of its engine, and its columns.

    ``read``: what is read of it; by default, everything.
    """
    relation, stored = source.relation if read is None else pruned(source.relation, read), source.stored
    if not is_of_server(source):
        dialect = DuckDBForSQL(source.zone)
        text, rows = written(relation, stored, dialect)
        return SQLTable(text, {}, dialect, partial(fetched, source.connection), source.origin, source.rows), rows
    first, *others = stored.values()
    text, rows = written(relation, stored, first.dialect)
    if isinstance(relation, Scan):
        return stored[relation.table], rows
    return reduce(lambda table, other: table.made(text, {}, other), others, first.made(text, {})), rows


def read_by(source: Source, table: SQLTable) -> SQLTable:
    """A table that was compiled for an equal source, as this one's connection reads it."""
    return replace(table, fetch=partial(fetched, source.connection), origin=source.origin, rows=source.rows)


def over_nobody(source: Source, read: Sequence[Node]) -> str:
    """The relation that `compiled` gives, over one row of NULLs in each of its tables; "" of another engine's."""
    if is_of_server(source):
        return ""
    names: dict[str, set[str]] = {}
    for table, name in columns_read(source.relation, read):
        names.setdefault(table, set()).add(name)
    places = {
        table: replace(place, source=typed_nothing({name: place.columns[name].type for name in names.get(table, ())}))
        for table, place in source.stored.items()
    }
    return written(pruned(source.relation, read), places, DuckDBForSQL(source.zone))[0]


def most_alike(public: Source, nodes: Sequence[Node]) -> int:
    """Largest number of a public table's rows that are equal in these expressions, counted where they are."""
    table, rows = compiled(public, nodes)
    groups = [_compared(rows, node) for node in nodes]
    where = f" WHERE {' AND '.join(f'{group} IS NOT NULL' for group in groups)}" if groups else ""
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    call = table.dialect.call
    sql = f"SELECT {call('COUNT', '*')} AS n FROM {table.source}{where}{by}"
    (most,) = _told(public, table, f"SELECT {call('MAX', 'n')} AS most FROM ({sql}) AS numbers", ("most",))
    return 1 if most is None else max(1, int(most))


def ends(public: Source, node: Node) -> tuple[float, float] | None:
    """Smallest and largest number that an expression is in a public table's rows; None if it is none anywhere."""
    table, rows = compiled(public, [node])
    number, call = rows.number(node), table.dialect.call
    sql = f"SELECT {call('MIN', number)} AS lowest, {call('MAX', number)} AS highest FROM {table.source}"
    lowest, highest = _told(public, table, sql, ("lowest", "highest"))
    return None if lowest is None or highest is None else (float(lowest), float(highest))


def _told(public: Source, table: SQLTable, sql: str, names: Sequence[str]) -> list[Any]:
    """The numbers in the only row of a query over a public table; None for NULL."""
    arrays = _read(public, table, sql)
    return [None if np.ma.getmaskarray(arrays[name])[0] else arrays[name][0] for name in names]


def _read(public: Source, table: SQLTable, sql: str) -> Columns:
    """The answer to a query over a public table."""
    try:
        with table.asking() as fetch:
            return fetch(sql, [])
    except Exception as error:  # noqa: BLE001 - of whatever engine
        failure = type(error).__name__
    raise ParameterError(f"the public table {public.name} cannot be read ({failure}): see whether it is whole.")


def public_rows(public: Source) -> pd.DataFrame:
    """All rows of a public table, as objects; NULL is None."""
    nodes = [Column(name) for name in public.columns]
    table, rows = compiled(public, nodes)
    values = list(map(rows.value, nodes))
    listed = ", ".join(f"{value.sql} AS c{at}" for at, value in enumerate(values))
    arrays = _read(public, table, f"SELECT {listed} FROM {table.source} LIMIT {MOST_PUBLIC_ROWS + 1}")
    # By name: an engine may give its columns in another order.
    columns = [_objects(np.ma.asarray(arrays[f"c{at}"]), value) for at, value in enumerate(values)]
    for at, name in enumerate(public.columns):
        if name in public.whole:  # which is read as floats
            columns[at] = [None if cell is None or cell != cell else int(cell) for cell in columns[at]]
    frame = pd.DataFrame({at: pd.Series(column, dtype=object) for at, column in enumerate(columns)})
    if len(frame) <= MOST_PUBLIC_ROWS:
        return frame
    raise ParameterError(
        f"the public table {public.name} has more than {MOST_PUBLIC_ROWS:,} rows, too many to be read beforehand: pass "
        "those that are needed."
    )


def _objects(array: Any, column: Value) -> list[Any]:
    """Values of a column, None where they are missing; times, which are read as whole numbers, as dates and times."""
    listed = pd.Series(array.data).astype(object).tolist()
    values = [None if gone else value for value, gone in zip(listed, np.ma.getmaskarray(array), strict=True)]
    if column.family != DATE:
        return values
    # Times of Python: those of pandas lie between the years 1677 and 2262.
    since = (None if value is None else timedelta(microseconds=int(value) * column.unit // 1000) for value in values)
    times = [None if elapsed is None else EPOCH + elapsed for elapsed in since]
    return [None if time is None else time.date() for time in times] if column.is_day else times


def _compared(rows: RowSQL, node: Node) -> str:
    """Expression that is equal wherever a comparison could take the values for equal."""
    value = rows.value(node)
    if value.family != NUMBER:
        return value.sql
    return rows.dialect.infix(rows.number(node), "+", rows.dialect.number(0.0))
