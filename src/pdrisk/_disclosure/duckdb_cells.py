"""Cells of a table in DuckDB with what people contribute to them: one line for each cell, whatever the number of rows.

rows ──> a line for each person in a cell ──> ranked by contribution ──> a line for each cell
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from pdrisk._disclosure.duckdb_table import DECIMAL, FLOATS, WHOLE, DuckDBTable, fetched
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
    weight = str(asked.weight)
    if types[weight] not in (*WHOLE, "HUGEINT", "UHUGEINT", *FLOATS) and not DECIMAL.fullmatch(types[weight]):
        raise ColumnTypeError(f"column {weight!r} holds no numbers, so it cannot be weights or counts.")
    value = f"CAST({table.without_codes(weight)} AS DOUBLE)"
    keys, ids = [f"k{at}" for at in range(len(asked.keys))], [f"p{at}" for at in range(len(asked.person))]
    picked = [
        f"{table.key_without_codes(name, types[str(name)])} AS {one}"
        for name, one in zip((*asked.keys, *asked.person), (*keys, *ids), strict=True)
    ]
    relation: Any = table.relation.project(", ".join([*picked, f"CASE WHEN NOT isnan({value}) THEN {value} END AS w"]))
    if ids:
        relation = relation.filter(" AND ".join(f"{one} IS NOT NULL" for one in ids))
        people = ["sum(w) AS x", "min(w) AS low", "max(w) AS high", "count(w) AS rows", "bool_or(isinf(w)) AS infinite"]
        relation = relation.aggregate(", ".join([*keys, *people]), ", ".join([*keys, *ids]))
    else:
        people = ["w AS x", "w AS low", "w AS high", "CAST(w IS NOT NULL AS INTEGER) AS rows", "isinf(w) AS infinite"]
        relation = relation.project(", ".join([*keys, *people]))
    cell = f"PARTITION BY {', '.join(keys)}"
    ranked = [
        "*",
        f"row_number() OVER ({cell} ORDER BY x DESC NULLS LAST) AS place",
        f"low = min(low) OVER ({cell}) AS is_lowest",
        f"high = max(high) OVER ({cell}) AS is_highest",
    ]
    cells = [
        "count(x) AS people",
        "sum(x) AS total",
        "max(x) AS largest",
        f"sum(x) FILTER (WHERE place <= {top}) AS top",
        "sum(x) FILTER (WHERE place > 2) AS rest",
        "coalesce(bool_or(low < 0), false) AS negative",
        "sum(rows) AS rows",
        "min(low) AS lowest",
        "max(high) AS highest",
        "count(*) FILTER (WHERE is_lowest) AS same_lowest",
        "count(*) FILTER (WHERE is_highest) AS same_highest",
        "coalesce(bool_or(infinite), false) AS infinite",
    ]
    found = fetched(relation.project(", ".join(ranked)).aggregate(", ".join([*keys, *cells]), ", ".join(keys)))
    columns = tuple(table.key_column(asked, name, found[one]) for name, one in zip(asked.keys, keys, strict=True))
    return Side(columns, found["people"].to_numpy()), found.drop(columns=keys)
