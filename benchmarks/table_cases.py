"""Methods of a Dataset of a DuckDB table against DuckDB's plain query, on one table in memory with all threads."""

from __future__ import annotations

from collections.abc import Iterator

import pdrisk
from cases import EPS, HI, LO, Case
from sql_cases import CLAMP, GROUPS, MANY, plain, table


def table_cases(rows: int) -> Iterator[Case]:
    """The targets of tables."""
    con = table(rows)
    data = pdrisk.Dataset((con, "people"), bounds={"x": (LO, HI)})
    eps, where = EPS * 10, "h > 5 and y / 2 < 300"
    clamped = plain(con, f"SELECT avg({CLAMP}) FROM people")
    yield Case("table: mean", lambda: data.mean("x", eps=eps), clamped, "clamped avg", 1.5)
    median = plain(con, "SELECT median(x) FROM people")
    yield Case("table: median", lambda: data.median("x", eps=eps), median, "median", 1.6)
    chosen = plain(con, f"SELECT avg({CLAMP}) FROM people WHERE h > 5 AND y / 2 < 300")
    yield Case("table: mean, where", lambda: data.mean("x", eps=eps, where=where), chosen, "clamped avg")
    for name, column, groups, limit in (("1e3", "g", GROUPS, 3.0), ("1e5", "h", MANY, 4.0)):
        keys = list(range(groups))
        theirs = plain(con, f"SELECT {column}, avg(x) FROM people GROUP BY {column}")
        yield Case(
            f"table: mean by {name} groups",
            lambda by=column, keys=keys: data.mean("x", eps=eps, by=by, keys=keys),
            theirs, "avg by groups", limit,
        )  # fmt: skip
