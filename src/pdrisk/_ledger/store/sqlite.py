"""A ledger in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdrisk._ledger.store.ledger_tables import TABLES, VERSION
from pdrisk._ledger.store.rollback import Seen
from pdrisk._ledger.store.store import Ask, Head, Rows, advice_for, asked_while_writing, check_version, closed, moved
from pdrisk.errors import LedgerError, PdriskError

READING, WRITING = "BEGIN", "BEGIN IMMEDIATE"
PATIENCE = 60.0  # seconds to wait for other processes
APPLICATION = 0x70647273  # "pdrs", by which SQLite files are told apart

# What guards the tables, by the version that added it. The texts are compared with what stands in older files: their
# line breaks are part of them.
GUARDS = {
    1: (
        "CREATE TRIGGER records_follow BEFORE INSERT ON records WHEN NEW.seq <> "
        "(SELECT coalesce(max(seq), 0) + 1 FROM records)\n"
        "BEGIN SELECT RAISE(ABORT, 'records follow each other'); END;",
        "CREATE TRIGGER records_stay BEFORE UPDATE ON records "
        "BEGIN SELECT RAISE(ABORT, 'records stay as they are'); END;",
        "CREATE TRIGGER records_remain BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records stay'); END;",
    ),
    # A process of an older pdrisk that opened the file before it was upgraded would leave the sums of m^2 as they are.
    5: (
        "CREATE TRIGGER spending_whole BEFORE INSERT ON spending WHEN NEW.mu2 IS NULL\n"
        "BEGIN SELECT RAISE(ABORT, 'a newer pdrisk upgraded it: upgrade this one'); END;",
    ),
}
TRUNCATED_AFTER = 3.0  # seconds in which whoever makes a file has written to it
FORKED: list[Any] = []  # connections of a parent process, which must not be closed


class SqliteStore:
    """Ledger in one SQLite file, with a connection for each thread and process."""

    def __init__(self, path: str | os.PathLike[str], known: bool = False, head: Head | None = None) -> None:
        """Open the ledger. ``known``: it must exist already. ``head``: a record that it must hold."""
        self._path = Path(path).absolute()
        self._local = threading.local()
        self._held: weakref.WeakSet[_OpenConnection] = weakref.WeakSet()
        self._is_closed = False
        self._identity: tuple[int, int] | None = None
        self._seen: Seen | None = None
        self._made(known)
        self._seen = Seen(self.where, head)

    def _made(self, known: bool) -> None:
        """Make today's tables, or see that they are there."""
        if known and not os.path.isfile(self._path):
            raise LedgerError(
                f"there is no ledger {self._path.name!r}; nothing was answered. See whether the path is right."
            )
        self._check_written()
        with self.reading() as ask:  # nobody who only looks should have to wait for those who write
            is_todays = self._version(ask) == VERSION
        if is_todays:
            return
        with self.writing() as ask:
            version = self._version(ask)
            check_version(self.place, version)
            if version == 0 and known:
                raise LedgerError(f"{self.place} is empty: see whether the path is right.")
            for statement in statements(version):
                ask(statement)
            if version < VERSION:
                ask(f"PRAGMA application_id = {APPLICATION}")
                ask(f"PRAGMA user_version = {VERSION}")

    def _check_written(self) -> None:
        """Refuse a file of 0 bytes: SQLite would take it for a new one, and a budget that was cut off would begin anew.

        Another process may be making it just now.
        """
        since = time.monotonic()
        while os.path.isfile(self._path) and self._is_empty():
            if time.monotonic() > since + TRUNCATED_AFTER:
                raise LedgerError(
                    f"{self.place} is a file of 0 bytes; nothing was answered. If it was cut off, restore it from a "
                    "copy; if there never was a ledger, delete it first."
                )
            time.sleep(0.01)

    def _is_empty(self) -> bool:
        """Whether the file has 0 bytes: not once it is gone, as it may be from one moment to the next."""
        try:
            return os.path.getsize(self._path) == 0
        except FileNotFoundError:
            return False

    def _version(self, ask: Ask) -> int:
        """Version of the tables, 0 if there are none."""
        version: int = ask("PRAGMA user_version")[0][0]
        ours = ask("PRAGMA application_id")[0][0] == APPLICATION
        if not ours and (version or ask("SELECT count(*) FROM sqlite_master") != [(0,)]):
            raise LedgerError(f"{self.place} is a database of something else: name another file.")
        return version

    @property
    def place(self) -> str:
        """The file."""
        return f"the ledger {self._path.name!r}"

    @property
    def where(self) -> str:
        """Its path."""
        return os.path.realpath(self._path)

    @property
    def analyst(self) -> None:
        """None: a file does not know who asks."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, True, self._seen.head if self._seen is not None else None)

    @contextmanager
    def reading(self) -> Iterator[Ask]:
        """Transaction that reads one state of the tables."""
        with self._transaction(READING) as ask:
            yield ask

    @contextmanager
    def writing(self) -> Iterator[Ask]:
        """Transaction without others, durable at its end."""
        with self._transaction(WRITING) as ask:
            yield ask

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Ask]:
        problem, newest = None, None
        seen = self._seen
        before = {} if seen is None else seen.before()
        try:
            connection = self._connection()
            if connection.in_transaction:  # a signal handler or finalizer that asks; what is under way stays whole
                raise asked_while_writing(self.place)
            try:
                # SQLite keeps what it has read as long as a number in the file is the same, which it may be by chance
                # in a copy that was put there.
                connection.execute("PRAGMA shrink_memory")
                _begin(connection, begin)

                def ask(sql: str, values: Sequence[Any] = ()) -> Rows:
                    return connection.execute(sql, values).fetchall()

                if seen is not None:
                    seen.check(ask, before, self.place)
                yield ask
                if seen is not None and begin == WRITING:
                    newest = seen.newest(ask)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except PdriskError:
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter is of a damaged text in a message of SQLite
            problem = f"{self.place} cannot be used ({error}); nothing was answered. {advice_for(str(error), ADVICE)}"
        if problem is not None:
            raise LedgerError(problem)
        if seen is not None and newest is not None:
            seen.remember(newest)

    def close(self) -> None:
        """Close the connections of all threads; whoever asks later gets a `LedgerError`."""
        self._is_closed = True
        for held in list(self._held):
            held.close()

    def _connection(self) -> sqlite3.Connection:
        if self._is_closed:
            raise closed(self.place)
        held: _OpenConnection | None = getattr(self._local, "held", None)
        if held is None or held.owner != os.getpid():
            connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            opened = _OpenConnection(connection)  # before anything can fail, so that it is closed
            # What was paid must survive a power cut: the folder is synced too, so that no paid query comes back.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = EXTRA")
            held = self._local.held = opened
            self._held.add(held)
        now = _identity(self._path)
        if self._identity is None:
            self._identity = now
        elif now != self._identity:
            raise moved(f"the file of {self.place}")
        return held.connection

    def holds(self, path: Path) -> bool:
        """Whether this is the file of the ledger."""
        return _identity(path) == _identity(self._path) is not None

    def changed(self, ask: Ask) -> bool:
        """Whether somebody changed the tables or the triggers that guard them."""
        with sqlite3.connect(":memory:") as fresh:
            for statement in statements(0):
                fresh.execute(statement)
            wanted = fresh.execute(STRUCTURE).fetchall()
        fresh.close()
        return bool(ask(STRUCTURE) != wanted)


class _OpenConnection:
    """Connection of a thread; it is closed when the thread or the ledger is gone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.owner = connection, os.getpid()
        self.close = weakref.finalize(self, _close, connection, self.owner)


def _close(connection: sqlite3.Connection, owner: int) -> None:
    if owner == os.getpid():
        connection.close()
    else:  # SQLite's connections do not survive a fork, and must not even be closed after one
        FORKED.append(connection)


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    """Begin a transaction as soon as the file is free.

    SQLite itself waits longer and longer, so that of many who want to write one may starve. Here who has waited for
    long tries more often: whoever writes goes on for a while, as that costs least, and then the others have their turn.
    """
    if begin == READING:
        connection.execute(begin)
        return
    since = time.monotonic()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute(begin)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > since + PATIENCE:
                    raise
            else:
                return
            hardly_two_alike = 0.25 + time.perf_counter_ns() % 750 / 1000
            time.sleep(hardly_two_alike * (0.02 if time.monotonic() < since + 0.1 else 0.002))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(PATIENCE * 1000)}")


STRUCTURE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def statements(version: int) -> Iterator[str]:
    """Statements that bring tables of a version to today's; version 0 is no tables."""
    for number, added in TABLES.items():
        if number > version:
            yield from (statement.format(blob="BLOB") for statement in added)
            yield from GUARDS.get(number, ())


ADVICE = {
    "full": "Make room on the disk.",
    "disk I/O": "See that there is room on the disk, and no limit to the size of files.",
    "readonly": "See that the file and its folder may be written to.",
    "unable to open": "See that the folder exists and may be written to.",
    "locked": f"It timed out, since another process held it for {PATIENCE:g} seconds: ask again.",
    "not a database": "The file is damaged or something else: restore it from a copy.",
    "already exists": "The file is damaged: restore it from a copy.",
    "malformed": "The file is damaged: restore it from a copy.",
    "decode": "The file is damaged: restore it from a copy.",
}
