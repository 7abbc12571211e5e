"""Location of a ledger: the store that a path or URL means."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pdrisk._ledger.store.rollback import head_of
from pdrisk._ledger.store.sqlite import SqliteStore
from pdrisk._ledger.store.store import Store
from pdrisk.errors import ColumnTypeError, ParameterError

SERVERS = ("postgresql://", "postgres://")
FILES = "sqlite:///"
# What names a server, or a file by a URL, in some program's words: the beginning of a URL (one letter is a drive of
# Windows), a password before a host, keywords of libpq and of others. As a path it would make a file of that name, and
# whoever lists the folder would read the password.
URL = re.compile(r"^\s*[a-z][a-z0-9+.-]+:", re.IGNORECASE)
LOGIN = re.compile(r":[^/\\\s]*@|^\s*//[^/]*@")
KEYWORDS = re.compile(
    r"(?:^|[\s;,?&'\"])(?:host|hostaddr|server|port|db|dbname|database|user|uid|username|pass|passwd|pwd|password|passfile|"
    r"service|servicefile|dsn|options|application_name|target_session_attrs|ssl\w*)\s*=",
    re.IGNORECASE,
)


def is_address(name: str) -> bool:
    """Whether a text names a server, in some program's words, so that it may hold a password."""
    return "://" in name or any(pattern.search(name) for pattern in (URL, LOGIN, KEYWORDS))


def is_there(where: object) -> bool:
    """Whether the file of a ledger exists; a server is asked when it is used."""
    path = _path(where)
    return path is None or os.path.exists(path)


def store_at(where: object, known: bool = False, head: object = None) -> Store:
    """The store at a path or URL.

    ``where``: the path of a file, also as ``sqlite:///budget.db``, or ``postgresql://user@host/database``.
    ``known``: it must be there already.
    ``head``: the number and the hash of a record that it must hold.
    """
    path, noted = _path(where), head_of(head)
    known = known or (noted is not None and noted[0] > 0)
    if path is None:
        from pdrisk._ledger.store.postgres_store import PostgresStore

        return PostgresStore(str(where), known, noted)
    return SqliteStore(path, known, noted)


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
    if is_address(name):
        raise ParameterError(
            "a ledger is kept in a file or on a PostgreSQL server: pass a path, or write the server as "
            "postgresql://user@host/database, with the password in ~/.pgpass or PGPASSWORD. (This is neither, and it "
            "is not shown, for it may hold a password; a file whose name looks like that needs another.)"
        )
    if "\0" in name:
        raise ParameterError("a ledger's path holds a character that no path can hold: pass the path of a file.")
    if name in ("", ":memory:"):
        raise ParameterError("a ledger must outlast the program: pass the path of a file, as in 'budget.db'.")
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ParameterError("a ledger's path begins with an unknown home: write the whole path.") from None
