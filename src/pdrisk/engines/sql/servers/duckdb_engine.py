"""DuckDB's connections: how a statement is run there, and what is asked of the catalog."""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pdrisk.engines.sql.summary.reading import Columns
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ASKING = threading.Lock()


def fetched(connection: DuckDBPyConnection, sql: str, values: list[Any]) -> Columns:
    """The columns of an answer, as `run_there` runs the statement."""
    columns: Columns = run_there(connection, sql, values, lambda result: result.fetchnumpy())
    return columns


def run_there(connection: DuckDBPyConnection, sql: str, values: Any, read: Callable[[DuckDBPyConnection], Any]) -> Any:
    """What ``read`` takes from the result of a statement.

    DuckDB lets signal handlers run while it works, and says no more of what one raised than that there was something,
    be it Ctrl-C or a timeout. So the thread in which handlers run only waits, and what they raise comes out there.
    """
    import duckdb

    if threading.current_thread() is not threading.main_thread():
        return read(connection.execute(sql, values))
    answers: list[Any] = []
    failed: list[BaseException] = []
    begun, ended = threading.Lock(), threading.Lock()
    ended.acquire()

    def work() -> None:
        if begun.acquire(blocking=False):  # else nobody waits for it any more
            try:
                answers.append(read(connection.execute(sql, values)))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                failed.append(error)
            ended.release()

    try:
        # Not a Thread, nor a Future: a handler that raises while they hold a lock of their own leaves it held.
        start_new_thread(work, ())
        ended.acquire()
    finally:
        while not (answers or failed or begun.acquire(blocking=False)):
            with suppress(duckdb.Error):  # "busy" between two steps of its work
                connection.interrupt()
            time.sleep(0.005)
    if failed:
        raise failed[0]
    return answers[0]


def asked(connection: DuckDBPyConnection, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    """Rows of the catalog."""
    import duckdb

    try:
        with ASKING:
            return connection.execute(sql, parameters).fetchall()
    except duckdb.Error as error:
        message = str(error).split("\n")[0]
        if isinstance(error, getattr(duckdb, "ResourceInUseException", ())):  # since DuckDB 2
            message = (
                "a result of it is still being read. Read that to its end (read_all() of a reader), or pass "
                "con.cursor(), which sees everything but temporary tables."
            )
    raise ParameterError(f"the connection cannot be asked for its tables: {message}")


def check_committed(connection: DuckDBPyConnection, before: str | None = None) -> None:
    """Refuse a connection with an open transaction; ``before`` is the number of the one in which a statement ran.

    Cursors do not see what it changed, such as people who were deleted. On the connection itself any statement that
    fails, be it for want of memory, would undo the transaction.
    """
    # Each statement has another one, but for those of one transaction.
    number = "SELECT CAST(system.main.txid_current() AS VARCHAR)"
    (transaction,) = asked(connection, number, [])
    if transaction == (asked(connection, number, [])[0] if before is None else (before,)):
        raise ParameterError(
            "the connection has an open transaction, and pdrisk sees only what is committed: COMMIT or ROLLBACK "
            "first. With SQLAlchemy, pass the Engine, which opens a connection for pdrisk."
        )
