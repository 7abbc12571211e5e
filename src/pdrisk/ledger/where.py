"""Which store a path or URL means."""

from __future__ import annotations

import os

from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.ledger.sqlite import SqliteStore
from pdrisk.ledger.store import Store

__all__ = ["store_at"]

SERVERS = ("postgresql://", "postgres://")


def store_at(where: object, known: bool = False) -> Store:
    """The store at a path or URL.

    Parameters
    ----------
    where : path or URL
        The path of a file, or ``postgresql://user@host/database``.
    known : bool
        It must be there already.

    Raises
    ------
    ParameterError
        If it is neither.
    LedgerError
        If it cannot be used.
    """
    if not isinstance(where, str | os.PathLike):
        raise ColumnTypeError(
            "a ledger is kept in a file or on a PostgreSQL server: pass a path, as in pdrisk.Ledger('budget.db', ...), "
            f"or a URL, not of type {type(where).__name__}."
        )
    if isinstance(where, str) and where.startswith(SERVERS):
        from pdrisk.ledger.postgres import PostgresStore

        return PostgresStore(where, known)
    if "://" in str(where):
        raise ParameterError(
            f"a ledger is kept in a file or on a PostgreSQL server: pass a path, or a URL that begins {SERVERS[0]}"
        )
    return SqliteStore(where, known)
