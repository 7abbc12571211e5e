"""Where a ledger is kept: one SQLite file, in transactions that are whole or nothing."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pdrisk.errors import ColumnTypeError, LedgerError, PdriskError

__all__ = ["Rows", "SqliteStore", "Store"]

VERSION = 1  # of the tables
PATIENCE = 60.0  # seconds to wait for other processes
APPLICATION = 0x70647273  # "pdrs", by which SQLite files are told apart

TABLES = """
CREATE TABLE datasets (name TEXT PRIMARY KEY, limits TEXT NOT NULL);
CREATE TABLE records (
    seq BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, analyst TEXT NOT NULL, event TEXT NOT NULL,
    eps TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX records_of ON records (dataset, seq);
CREATE TABLE spending (
    dataset TEXT NOT NULL, analyst TEXT NOT NULL, period TEXT NOT NULL, eps TEXT NOT NULL, queries BIGINT NOT NULL,
    PRIMARY KEY (dataset, analyst, period)
);
CREATE TRIGGER records_follow BEFORE INSERT ON records WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM records)
BEGIN SELECT RAISE(ABORT, 'records follow each other'); END;
CREATE TRIGGER records_stay BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records stay as they are'); END;
CREATE TRIGGER records_remain BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records stay'); END;
"""

Rows = list[tuple[Any, ...]]
DAMAGED = (ValueError, TypeError, KeyError, IndexError, ZeroDivisionError)
FORKED: list[Any] = []  # connections of a parent process


class Store(Protocol):
    """What a ledger needs of a database."""

    @property
    def place(self) -> str:
        """Where it is, for people; no password."""

    def reading(self) -> Any:
        """A context that gives `Ask` on one state of the tables."""

    def writing(self) -> Any:
        """A context that gives `Ask`, alone; all of it is durable when the context ends, or none of it is there."""

    def holds(self, path: Path) -> bool:
        """Whether this file is the ledger's own."""

    def changed(self, ask: Any) -> bool:
        """Whether somebody changed the tables or what guards them."""


class SqliteStore:
    """One file. A connection for each thread and process; a process that was forked opens its own."""

    def __init__(self, path: str | os.PathLike[str], known: bool = False) -> None:
        """``known``: it must be there already."""
        if not isinstance(path, str | os.PathLike) or "://" in str(path):
            raise ColumnTypeError("a ledger is kept in a file: pass its path, as in pdrisk.Ledger('budget.db', ...).")
        self._path = Path(path).absolute()
        self._local = threading.local()
        self._identity: tuple[int, int] | None = None
        if known and not self._path.is_file():
            raise LedgerError(
                f"there is no ledger {self._path.name!r}; nothing was answered. See whether the path is right."
            )
        with self.writing() as ask:
            version = ask("PRAGMA user_version")[0][0]
            ours = ask("PRAGMA application_id")[0][0] == APPLICATION
            if not ours and (version or ask("SELECT count(*) FROM sqlite_master") != [(0,)]):
                raise LedgerError(f"{self.place} is a database of something else: name another file.")
            if version > VERSION:
                raise LedgerError(
                    f"{self.place} was written by a newer pdrisk (version {version} of its tables, this one knows "
                    f"{VERSION}): upgrade pdrisk."
                )
            if version == 0 and known:
                raise LedgerError(f"{self.place} is empty: see whether the path is right.")
            if version == 0:
                for statement in _statements(TABLES):
                    ask(statement)
                ask(f"PRAGMA application_id = {APPLICATION}")
                ask(f"PRAGMA user_version = {VERSION}")

    @property
    def place(self) -> str:
        """The file."""
        return f"the ledger {self._path.name!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, True)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """One state of the tables."""
        with self._transaction("BEGIN") as ask:
            yield ask

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Alone, and durable at the end."""
        with self._transaction("BEGIN IMMEDIATE") as ask:
            yield ask

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Any]:
        problem = None
        try:
            connection = self._connection()
            if connection.in_transaction:  # a signal handler or finalizer that asks; what is under way stays whole
                raise LedgerError(f"{self.place} is asked while it is being written; nothing was answered. Ask again.")
            try:
                connection.execute(begin)
                yield lambda sql, values=(): connection.execute(sql, values).fetchall()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except PdriskError:
            raise
        except sqlite3.Error as error:
            problem = f"{self.place} cannot be used ({error}); nothing was answered. {_advice(str(error))}"
        except DAMAGED:  # what stands there, no ledger wrote
            problem = f"{self.place} is damaged; nothing was answered. See ledger.verify(), and restore it from a copy."
        if problem is not None:
            raise LedgerError(problem)

    def _connection(self) -> sqlite3.Connection:
        owner = getattr(self._local, "owner", None)
        if owner != os.getpid():
            if owner is not None:  # SQLite's connections do not survive a fork, and must not even be closed after one
                FORKED.append(self._local.connection)
            connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            # What was paid must survive a power cut: the folder is synced too, so that no paid query comes back.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = EXTRA")
            self._local.connection, self._local.owner = connection, os.getpid()
        now = _identity(self._path)
        if self._identity is None:
            self._identity = now
        elif now != self._identity:
            raise LedgerError(
                f"the file of {self.place} was moved or replaced; nothing was answered. Open the ledger anew, and see "
                "with verify(head=...) that it is the newest copy."
            )
        found: sqlite3.Connection = self._local.connection
        return found

    def holds(self, path: Path) -> bool:
        """Whether this is the file of the ledger."""
        return _identity(path) == _identity(self._path) is not None

    def changed(self, ask: Any) -> bool:
        """Whether somebody changed the tables or the triggers that guard them."""
        with sqlite3.connect(":memory:") as fresh:
            fresh.executescript(TABLES)
            wanted = fresh.execute(STRUCTURE).fetchall()
        fresh.close()
        return bool(ask(STRUCTURE) != wanted)


STRUCTURE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _statements(script: str) -> Sequence[str]:
    found, rest = [], ""
    for line in script.splitlines():
        rest += line + "\n"
        if sqlite3.complete_statement(rest):
            found.append(rest.strip())
            rest = ""
    return found


def _advice(problem: str) -> str:
    for sign, advice in (
        ("full", "Make room on the disk."),
        ("readonly", "See that the file and its folder may be written to."),
        ("unable to open", "See that the folder exists and may be written to."),
        ("locked", "Another process holds it: ask again."),
        ("not a database", "The file is damaged or something else: restore it from a copy."),
        ("malformed", "The file is damaged: restore it from a copy."),
    ):
        if sign in problem:
            return advice
    return "Ask again, or see what holds the file."
