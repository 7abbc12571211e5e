"""pdrisk.sql against DuckDB's plain query, on one table in memory with all threads."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd

import pdrisk
from cases import EPS, HI, LO, Call, Case, distances, group_numbers

CLAMP = f"CASE WHEN x <= {LO} THEN {LO} WHEN x <= {HI} THEN x WHEN x <= 'infinity'::DOUBLE THEN {HI} END"
GROUPS, MANY = 1000, 100_000


def sql_cases(rows: int) -> Iterator[Case]:
    """The targets of the SQL front end."""
    con = table(rows)
    clamped = f"SELECT avg({CLAMP}) FROM people"
    yield Case("SQL: mean", private(con, "AVG(x)"), plain(con, clamped), "clamped avg", 1.5)
    yield Case(
        "SQL: mean, all inside", private(con, "AVG(inside)"), plain(con, "SELECT avg(inside) FROM people"), "avg", 3.5
    )
    yield Case("SQL: mean, 1.7 % outside", private(con, "AVG(x)"), plain(con, "SELECT avg(x) FROM people"), "avg")
    yield Case("SQL: median", private(con, "MEDIAN(x)"), plain(con, "SELECT median(x) FROM people"), "median", 1.6)
    yield Case("SQL: var", private(con, "VARIANCE(x)"), plain(con, "SELECT var_samp(x) FROM people"), "var_samp")
    by = list(range(GROUPS))
    for name, aggregate, limit in (("mean", "AVG", 3.0), ("median", "MEDIAN", 2.0)):
        ours = private(con, f"{aggregate}(x)", "g", by)
        yield Case(
            f"SQL: {name} by 1e3 groups", ours, plain(con, f"SELECT g, {aggregate}(x) FROM people GROUP BY g"),
            f"{aggregate.lower()} by groups", limit,
        )  # fmt: skip
    many = private(con, "AVG(x)", "h", list(range(MANY)))
    grouped = plain(con, "SELECT h, avg(x) FROM people GROUP BY h")
    yield Case("SQL: mean by 1e5 groups", many, grouped, "avg by groups")

    def without_noise() -> pd.DataFrame:
        with patch("pdrisk._answer.releasing.discrete_laplace", lambda exact, *_: exact):
            return many()

    yield Case("SQL: mean by 1e5 groups, noise left out", without_noise, grouped, "avg by groups")
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
    """A table of distances, the same clamped beforehand, and two group columns."""
    x = distances(rows)
    frame = pd.DataFrame(
        {"x": x, "inside": np.clip(x, LO, HI), "g": group_numbers(rows, GROUPS), "h": group_numbers(rows, MANY)}
    )
    con = duckdb.connect()
    con.register("frame", frame)
    con.execute("CREATE TABLE people AS SELECT * FROM frame")
    con.unregister("frame")
    return con


def private(
    con: duckdb.DuckDBPyConnection, aggregate: str, by: str = "", keys: list[int] | None = None, where: str = ""
) -> Call:
    """A call of pdrisk.sql."""
    query = f"SELECT {f'{by} AS k, ' if by else ''}{aggregate} FROM people {where} {'GROUP BY k' if by else ''}"
    return lambda: pdrisk.sql(query, con, eps=EPS * 10, bounds=(LO, HI), keys=keys)


def plain(con: duckdb.DuckDBPyConnection, query: str) -> Call:
    """The same without privacy, fetched as a frame."""
    return lambda: con.execute(query).df()
