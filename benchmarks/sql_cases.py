"""pdrisk.sql against DuckDB's plain query, on one table in memory with all threads."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd

import pdrisk
from cases import EPS, HI, LO, Call, Case, distances, group_numbers

CLAMP = f"CASE WHEN x <= {LO} THEN {LO} WHEN x <= {HI} THEN x WHEN x <= 'infinity'::DOUBLE THEN {HI} END"
GROUPS, MANY = 1000, 100_000
BOUNDS = dict.fromkeys(("x", "y", "inside"), (LO, HI))


def sql_cases(rows: int) -> Iterator[Case]:
    """The targets of the SQL front end."""
    con = table(rows)
    clamped = f"SELECT avg({CLAMP}) FROM people"
    average = plain(con, "SELECT avg(x) FROM people")
    yield Case("SQL: mean", private(con, "AVG(x)"), plain(con, clamped), "clamped avg", 1.5)
    yield Case("SQL: mean, 1.7 % outside", private(con, "AVG(x)"), average, "avg", 2.5)
    yield Case(
        "SQL: mean, all inside", private(con, "AVG(inside)"), plain(con, "SELECT avg(inside) FROM people"), "avg", 2.5
    )
    median = plain(con, "SELECT median(x) FROM people")
    yield Case("SQL: median", private(con, "MEDIAN(x)"), median, "median", 1.6)
    yield Case("SQL: median, eps = 1", private(con, "MEDIAN(x)", eps=1), median, "median", 1.6)
    yield Case("SQL: max", private(con, "MAX(x)"), plain(con, "SELECT max(x) FROM people"), "max")
    yield Case("SQL: var", private(con, "VARIANCE(x)"), plain(con, "SELECT var_samp(x) FROM people"), "var_samp")
    yield Case("SQL: corr", private(con, "CORR(x, y)"), plain(con, "SELECT corr(x, y) FROM people"), "corr")
    listed = ", ".join(f"0.{i}" for i in range(1, 10))
    theirs = plain(con, f"SELECT quantile_cont(x, [{listed}]) FROM people")
    for name, eps in (("nine quantiles", EPS * 10), ("nine quantiles, eps = 1", 1)):
        ours = private(con, f"QUANTILE_CONT(x, [{listed}])", eps=eps)
        yield Case(f"SQL: {name}", ours, theirs, "quantile_cont(x, [...])")
    by, many = list(range(GROUPS)), list(range(MANY))
    for name, aggregate, column, keys, limit in (
        ("mean by 1e3 groups", "AVG", "g", by, 1.5),
        ("median by 1e3 groups", "MEDIAN", "g", by, None),
        ("var by 1e3 groups", "VAR_SAMP", "g", by, None),
        ("mean by 1e5 groups", "AVG", "h", many, 2.0),
    ):
        theirs = plain(con, f"SELECT {column}, {aggregate}(x) FROM people GROUP BY {column}")
        ours = private(con, f"{aggregate}(x)", column, keys)
        yield Case(f"SQL: {name}", ours, theirs, f"{aggregate.lower()} by groups", limit)
    small = table(1000)
    each = {"at_full_size": False, "number": 20}
    yield Case(
        "SQL: mean, 1e3 rows", private(small, "AVG(x)"), plain(small, clamped), "clamped avg", 10, "ms", **each
    )  # fmt: skip
    yield Case(
        "SQL: mean by 3 groups, 1e3 rows, where", private(small, "AVG(x)", "g % 3", [0, 1, 2], "WHERE h > 5"),
        plain(small, "SELECT g % 3, avg(x) FROM people WHERE h > 5 GROUP BY ALL"), "avg by groups", **each,
    )  # fmt: skip


def table(rows: int) -> duckdb.DuckDBPyConnection:
    """A table of distances, a second column, the distances clamped beforehand, and two group columns."""
    x = distances(rows)
    frame = pd.DataFrame({"x": x, "y": x / 2 + x[::-1], "inside": np.clip(x, LO, HI)})
    frame["g"], frame["h"] = group_numbers(rows, GROUPS), group_numbers(rows, MANY)
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    con.unregister("frame")
    return con


def private(
    con: duckdb.DuckDBPyConnection,
    aggregate: str,
    by: str = "",
    keys: list[int] | None = None,
    where: str = "",
    eps: float = EPS * 10,
) -> Call:
    """A call of pdrisk.sql."""
    query = f"SELECT {f'{by} AS k, ' if by else ''}{aggregate} FROM people {where} {'GROUP BY k' if by else ''}"
    return lambda: pdrisk.sql(query, con, eps=eps, bounds=BOUNDS, keys=keys)


def plain(con: duckdb.DuckDBPyConnection, query: str) -> Call:
    """The same without privacy, fetched as a frame."""
    return lambda: con.execute(query).df()
