"""Store of a ledger, in transactions that are whole or nothing: a SQLite file, or a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pdrisk._ledger.store.ledger_tables import VERSION
from pdrisk.errors import LedgerError

Rows = list[tuple[Any, ...]]
Head = tuple[int, str]  # the number and the hash of a record
Told = TypeVar("Told")
# What reading a text raises that no ledger wrote.
WRONG = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError, RecursionError,
)  # fmt: skip


class Ask(Protocol):
    """Function that runs one statement; ``?`` stands for a value."""

    def __call__(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """All rows of the answer, none for a statement without one."""


class Store(Protocol):
    """Database that a ledger needs. All failures are `LedgerError`."""

    @property
    def place(self) -> str:
        """Place of the ledger as people read it, without a password."""

    @property
    def where(self) -> str:
        """Identity of the ledger's place, without a password."""

    @property
    def analyst(self) -> str | None:
        """Name of the analyst, if the database knows it; None if the caller says it."""

    def reading(self) -> AbstractContextManager[Ask]:
        """Context that gives `Ask` on one state of the tables."""

    def writing(self) -> AbstractContextManager[Ask]:
        """Context that gives `Ask` without others; all of it is durable when the context ends, or none of it exists."""

    def close(self) -> None:
        """Close all connections, for good."""

    def holds(self, path: Path) -> bool:
        """Whether this file is the ledger's own."""

    def changed(self, ask: Ask) -> bool:
        """Whether somebody changed the tables or their guards."""


def check_version(place: str, version: int, known: int = VERSION) -> None:
    """Refuse tables that a newer pdrisk has made."""
    if version > known:
        raise LedgerError(
            f"{place} was written by a newer pdrisk (version {version} of its tables, this one knows {known}): "
            "upgrade pdrisk."
        )


def decoded(place: str, read: Callable[[], Told]) -> Told:
    """Result of ``read`` on stored data; only an error in here means that a ledger is damaged."""
    try:
        return read()
    except WRONG:
        pass
    raise LedgerError(f"{place} is damaged; nothing was answered. See ledger.verify(), and restore it from a copy.")


def text_in(value: object) -> str:
    """A stored text; raises one of `WRONG` for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value


def number_in(value: object) -> int:
    """A stored number that counts something; raises one of `WRONG` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def asked_while_writing(place: str) -> LedgerError:
    """The error for a signal handler or finalizer that asks a ledger in the middle of a transaction."""
    return LedgerError(f"{place} is asked while it is being written; nothing was answered. Ask again.")


def moved(place: str) -> LedgerError:
    """The error for a store that is another one than it was when it was opened."""
    return LedgerError(
        f"{place} was moved or replaced; nothing was answered. Open the ledger anew, and see with verify(head=...) "
        "that it is the newest copy."
    )


def closed(place: str) -> LedgerError:
    """Error of a ledger that was closed by its user."""
    return LedgerError(f"{place} was closed; nothing was answered. Open it anew with pdrisk.Ledger(...).")


def advice_for(problem: str, advice: Mapping[str, str]) -> str:
    """Advice for a problem, by a word of it."""
    return next((hint for sign, hint in advice.items() if sign in problem), "Ask again, or see what holds the file.")
