"""Methods of a Dataset of a PostgreSQL table against the server's plain aggregates: ``.ci/postgres python ...``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pdrisk
from cases import EPS, HI, LO, Case, Skipped

SERVER = "PDRISK_TEST_POSTGRES"  # its URL, as .ci/postgres sets it
FEW, MANY = 100, 100_000  # groups
SCHEMA = "pdrisk_benchmark"  # of a stored table, which the server may read by several processes
TABLE = f"{SCHEMA}.people"


def postgres_cases(rows: int) -> Iterator[Case | Skipped]:
    """The targets of tables on a server that has nothing else to do, with the settings it comes with."""
    if SERVER not in os.environ:
        yield Skipped("PostgreSQL", f"no server: {SERVER} names none")
        return
    import psycopg

    with psycopg.connect(os.environ[SERVER], autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        try:
            connection.execute(
                f"CREATE TABLE {TABLE} AS SELECT -17 * ln(1 - random()) AS x, i % {FEW} AS g, i % {MANY} AS h "
                f"FROM generate_series(1, {rows}) AS i"
            )
            connection.execute(f"VACUUM ANALYZE {TABLE}")
            yield from _cases(connection)
        finally:
            connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def _cases(connection: Any) -> Iterator[Case]:
    data = pdrisk.Dataset((connection, TABLE), bounds={"x": (LO, HI)})

    def plain(select: str, by: str = "") -> Callable[[], object]:
        chosen, grouped = (f"{by}, {select}", f" GROUP BY {by}") if by else (select, "")
        return lambda: connection.execute(f"SELECT {chosen} FROM {TABLE}{grouped}").fetchall()

    middle = "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)"
    for name, ours, theirs, limit in (
        ("mean", data.mean, "avg(x)", 2.5), ("var", data.var, "var_samp(x)", 3), ("median", data.median, middle, 3.0),
    ):  # fmt: skip
        shown = theirs.split("(")[0]
        yield Case(f"PostgreSQL: {name}", lambda ask=ours: ask("x", eps=EPS), plain(theirs), shown, limit)
        for column, groups in (("g", FEW), ("h", MANY)):
            yield Case(
                f"PostgreSQL: {name} by {groups:,} groups",
                lambda ask=ours, by=column, keys=list(range(groups)): ask("x", eps=EPS, by=by, keys=keys),
                plain(theirs, column), f"{shown} by groups", 3.0,
            )  # fmt: skip
