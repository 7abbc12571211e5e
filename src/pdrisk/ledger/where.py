"""Which store a path or URL means."""

from __future__ import annotations

import os
from pathlib import Path

from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.ledger.sqlite import SqliteStore
from pdrisk.ledger.store import Store

__all__ = ["is_there", "store_at"]

SERVERS = ("postgresql://", "postgres://")
FILES = "sqlite:///"


def is_there(where: object) -> bool:
    """Whether the file of a ledger exists; of a server, whether it can be used shows when it is."""
    path = _path(where)
    return path is None or path.exists()


def store_at(where: object, known: bool = False) -> Store:
    """The store at a path or URL.

    Parameters
    ----------
    where : path or URL
        The path of a file, also as ``sqlite:///budget.db``, or ``postgresql://user@host/database``.
    known : bool
        It must be there already.

    Raises
    ------
    ParameterError
        If it is neither.
    LedgerError
        If it cannot be used.
    """
    path = _path(where)
    if path is None:
        from pdrisk.ledger.postgres import PostgresStore

        return PostgresStore(str(where), known)
    return SqliteStore(path, known)


def _path(where: object) -> Path | None:
    """The path of a file; None for a server."""
    if not isinstance(where, str | os.PathLike):
        raise ColumnTypeError(
            "a ledger is kept in a file or on a PostgreSQL server: pass a path, as in pdrisk.Ledger('budget.db', ...), "
            f"or a URL, not of type {type(where).__name__}."
        )
    name = os.fsdecode(where)
    if isinstance(where, str) and name.startswith(SERVERS):
        return None
    name = name.removeprefix(FILES)
    if "://" in name:
        raise ParameterError(
            f"a ledger is kept in a file or on a PostgreSQL server: pass a path, or a URL that begins {SERVERS[0]}"
        )
    if name in ("", ":memory:"):
        raise ParameterError("a ledger must outlast the program: pass the path of a file, as in 'budget.db'.")
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ParameterError("a ledger's path begins with an unknown home: write the whole path.") from None
