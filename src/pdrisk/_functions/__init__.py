"""Functions for plain SQL on DuckDB: a convenience for a trusted curator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from pdrisk._functions.macros import GRID, JUDGED, MACROS
from pdrisk._functions.scalars import RISK_FIELDS, answering, grid_constant, judged
from pdrisk.errors import ColumnTypeError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

REGISTERING = Lock()


def register(con: DuckDBPyConnection, curator: bool = False) -> None:
    """Noisy aggregate functions for a DuckDB connection, to use in plain SQL.

    ``dp_count(x, eps)``, ``dp_count_star(eps)``, ``dp_sum(x, eps, lo, hi)``, likewise ``dp_mean`` (also ``dp_avg``),
    ``dp_median``, ``dp_min`` and ``dp_max``; ``dp_quantile(x, q, eps, lo, hi)``; ``dp_var(x, eps, lo, hi, ddof)`` and
    ``dp_std``. Each gives one noisy DOUBLE for each group, as ``df.dprisk`` would by default. Arguments may be named.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        The connection that gets the functions. Its cursors do not have them. Registering again does no harm.
    curator : bool, default False
        Register also ``dp_mean_risk`` and so on, with the same arguments. Each gives a STRUCT of eps, scale (NULL
        except for counts and sums), the sensitivities, n and the four risks. These are exact, without noise: for the
        curator only. Without ``curator=True`` they are removed from the connection.

    Raises
    ------
    ColumnTypeError
        If ``con`` is no connection of DuckDB.
    ImportError
        Without pyarrow.

    Notes
    -----
    These functions are for a curator on a private connection, who adds up what is spent: *there is no budget*, and
    every draw is a release. They charge no ledger, and are refused inside the ``with`` block of one: use `pdrisk.sql`
    there. DuckDB draws more often than one might think:

    - a relation (``con.sql``) runs anew at every read, its repr included; so does a view;
    - a view, or a CTE that is NOT MATERIALIZED, used twice draws twice; so do two equal calls, as in SELECT and HAVING;
    - a correlated subquery may draw for every outer row, and EXPLAIN ANALYZE draws;
    - every level of ROLLUP, CUBE and GROUPING SETS is a release of its own about the same people.

    Medians, quantiles and extremes get their records as one list for each group: 8 bytes a record in memory.

    The functions cannot see the rest of the query. The group keys are the data's own: a group nobody is in does not
    show. The argument x is written several times into what runs, so ``dp_mean(random())`` gives every part of the
    answer another x. A WHERE or x that compares a person with others (``x > (SELECT avg(x) ...)``, window functions), a
    join that repeats people, LIMIT and samples void the guarantee. If x itself fails, as in ``CAST(text AS DOUBLE)``,
    DuckDB's message quotes the value.

    eps, lo, hi, q and ddof must be constants or bound parameters. DuckDB refuses all else while it plans the query,
    with an error of its own (about the "format" of "strftime"). It takes your word that they were not read from the
    data: getvariable() is a constant too.

    Examples
    --------
    >>> import duckdb, pdrisk
    >>> con = duckdb.connect()
    >>> pdrisk.register(con, curator=True)
    >>> con.execute("CREATE TABLE people AS SELECT unnest([3, 1, 10, 675, 17]) AS distance").fetchall()
    [(5,)]
    >>> noisy = con.execute("SELECT dp_mean(distance, eps := 2, lo := 1, hi := 675) FROM people").fetchone()
    >>> con.execute("SELECT dp_mean_risk(distance, 2, 1, 675).worst_case FROM people").fetchone()
    (0.8807970779778823,)
    """
    import duckdb
    from duckdb.func import ARROW, SPECIAL

    if not isinstance(con, duckdb.DuckDBPyConnection):
        raise ColumnTypeError(
            "register takes a DuckDB connection, as duckdb.connect() or duckdb.default_connection() gives it, "
            f"not {type(con).__name__}."
        )
    if find_spec("pyarrow") is None:
        raise ImportError("register needs pyarrow, which carries groups from DuckDB to Python: pip install pyarrow")
    # Scalar functions belong to the database. Made through a cursor, they are there for every connection at once, and
    # stay when this one rolls back or is closed.
    with REGISTERING, con.cursor() as cursor:
        for scalar in _scalars(curator):
            try:
                cursor.create_function(
                    scalar.name,
                    scalar.function,
                    scalar.arguments,
                    scalar.result,
                    type=ARROW,
                    null_handling=SPECIAL,  # else a group of nobody gets NULL, which tells
                    side_effects=scalar.draws,  # else rows with equal arguments share a draw, and a filter draws again
                )
            except duckdb.CatalogException as error:
                if "already exists" not in str(error):
                    raise
            # DuckDB has a bare pointer to it for as long as the database is open, which nobody can know.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(scalar.function))
    lost = (f"DROP MACRO IF EXISTS temp.main.{macro.name}" for macro in MACROS if macro.risk and not curator)
    made = (macro.definition() for macro in MACROS if curator or not macro.risk)
    con.execute("; ".join([*lost, *made]))


class _Scalar(NamedTuple):
    name: str
    function: Callable[..., Any]
    arguments: list[Any]
    result: str
    draws: bool


def _scalars(curator: bool) -> Iterator[_Scalar]:
    constants = ["VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "VARCHAR"]
    yield _Scalar(JUDGED, judged, [*constants, "VARCHAR[]"], "VARCHAR", draws=False)
    yield _Scalar(GRID, grid_constant, ["VARCHAR", "DOUBLE", "DOUBLE"], "DOUBLE", draws=False)
    struct = f"STRUCT({', '.join(f'{name} {kind}' for name, kind in RISK_FIELDS.items())})"
    for macro in MACROS:
        if curator or not macro.risk:
            result = struct if macro.risk else "DOUBLE"
            yield _Scalar(macro.scalar, answering(macro), macro.scalar_types, result, draws=not macro.risk)
