"""Cells of a table in DuckDB with what people contribute to them: one line for each cell, whatever the number of rows.

rows ──> a line for each person in a cell ──> ranked by contribution ──> a line for each cell
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from pdrisk._disclosure.duckdb_table import DECIMAL, FLOATS, SQL, WHOLE, DuckDBTable, fetched, without_nan
from pdrisk._disclosure.tables import KeyRequest, Side
from pdrisk.errors import ColumnTypeError

__all__ = ["cells_in_duckdb"]


def cells_in_duckdb(table: DuckDBTable, asked: KeyRequest, top: int) -> tuple[Side, pd.DataFrame]:
    """Keys of cells, and the facts that rules need about each.

    Parameters
    ----------
    table : DuckDBTable
    asked : KeyRequest
        Whose weight is the column of contributions; those of one person to a cell are added up.
    top : int
        How many of the largest contributions make one sum.

    Returns
    -------
    (Side, DataFrame)
        A line each: ``people total largest top rest negative rows lowest highest same_lowest same_highest infinite``,
        the last but one numbers of people who have the lowest and the highest value.

    Raises
    ------
    ColumnTypeError, UnknownColumnError, ParameterError
        As `DuckDBTable.read`, or if the column holds no numbers.
    """
    return table.asked(asked, lambda types: _read(table, asked, types, top))


def _read(table: DuckDBTable, asked: KeyRequest, types: dict[str, str], top: int) -> tuple[Side, pd.DataFrame]:
    call, weight = SQL.call, str(asked.weight)
    if types[weight] not in (*WHOLE, "HUGEINT", "UHUGEINT", *FLOATS) and not DECIMAL.fullmatch(types[weight]):
        raise ColumnTypeError(f"column {weight!r} holds no numbers, so it cannot be weights or counts.")
    value = f"CAST({table.without_codes(weight)} AS DOUBLE)"
    keys, ids = [f"k{at}" for at in range(len(asked.keys))], [f"p{at}" for at in range(len(asked.person))]
    picked = [
        f"{table.key_without_codes(name, types[str(name)])} AS {one}"
        for name, one in zip((*asked.keys, *asked.person), (*keys, *ids), strict=True)
    ]
    relation: Any = table.relation.project(", ".join([*picked, f"{without_nan(value)} AS w"]))
    if ids:
        relation = relation.filter(" AND ".join(f"{one} IS NOT NULL" for one in ids))
        names = {"sum": "x", "min": "low", "max": "high", "count": "rows"}
        people = [f"{call(name, 'w')} AS {column}" for name, column in names.items()]
        people.append(f"{call('bool_or', call('isinf', 'w'))} AS infinite")
        relation = relation.aggregate(", ".join([*keys, *people]), ", ".join([*keys, *ids]))
    else:
        people = ["w AS x", "w AS low", "w AS high", "CAST(w IS NOT NULL AS INTEGER) AS rows"]
        people.append(f"{call('isinf', 'w')} AS infinite")
        relation = relation.project(", ".join([*keys, *people]))
    cell = f"PARTITION BY {', '.join(keys)}"
    ranked = [
        "*",
        f"{call('row_number')} OVER ({cell} ORDER BY x DESC NULLS LAST) AS place",
        f"low = {call('min', 'low')} OVER ({cell}) AS is_lowest",
        f"high = {call('max', 'high')} OVER ({cell}) AS is_highest",
    ]
    total, every = call("sum", "x"), call("count", "*")
    cells = [
        f"{call('count', 'x')} AS people",
        f"{total} AS total",
        f"{call('max', 'x')} AS largest",
        f"{total} FILTER (WHERE place <= {top}) AS top",
        f"{total} FILTER (WHERE place > 2) AS rest",
        f"coalesce({call('bool_or', 'low < 0')}, false) AS negative",
        f"{call('sum', 'rows')} AS rows",
        f"{call('min', 'low')} AS lowest",
        f"{call('max', 'high')} AS highest",
        f"{every} FILTER (WHERE is_lowest) AS same_lowest",
        f"{every} FILTER (WHERE is_highest) AS same_highest",
        f"coalesce({call('bool_or', 'infinite')}, false) AS infinite",
    ]
    found = fetched(relation.project(", ".join(ranked)).aggregate(", ".join([*keys, *cells]), ", ".join(keys)))
    columns = tuple(table.key_column(asked, name, found[one]) for name, one in zip(asked.keys, keys, strict=True))
    return Side(columns, found["people"].to_numpy()), found.drop(columns=keys)
