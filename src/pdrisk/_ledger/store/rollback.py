"""Rollback check: a ledger that does not hold what this process saw of it was put back to an earlier state."""

from __future__ import annotations

import os
import threading

from pdrisk._ledger.store.records import NEWEST, START
from pdrisk._ledger.store.store import Ask, Head, Rows
from pdrisk.errors import ColumnTypeError, LedgerError

# The newest record, by where a ledger is and by the hash of its first record: a file may be deleted, and another ledger
# begun at its path. Whatever was opened there counts, however often it is opened again.
SEEN: dict[str, dict[str, Head]] = {}
FIRST = "SELECT hash FROM records WHERE seq = 1"
NUMBERED = "SELECT seq, hash FROM records WHERE seq = ?"
LOCK = threading.RLock()  # a finalizer may come between


def _forked() -> None:
    global LOCK
    LOCK = threading.RLock()  # whoever held it is in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def head_of(head: object) -> Head | None:
    """Number and hash of a record, as somebody noted them."""
    if head is None:
        return None
    if isinstance(head, tuple | list) and len(head) == 2:
        number, digest = head
        if isinstance(number, int) and not isinstance(number, bool) and isinstance(digest, str):
            return number, digest
    raise ColumnTypeError("head must be the pair that verify() gave, the number and the hash of a record.")


class Seen:
    """Records that an open ledger must hold.

    Parameters
    ----------
    where : str
        The same for the same file or server.
    noted : Head or None
        What somebody noted down.
    """

    def __init__(self, where: str, noted: Head | None) -> None:
        self._where = where
        self._noted = noted
        self._first: str | None = None

    @property
    def head(self) -> Head | None:
        """The newest known record, for a copy in another process."""
        return self.before().get(self._first or "", self._noted)

    def before(self) -> dict[str, Head]:
        """What is known before a transaction begins; what others learn meanwhile need not be in its state."""
        with LOCK:
            return dict(SEEN.get(self._where, {}))

    def check(self, ask: Ask, before: dict[str, Head], place: str) -> None:
        """Refuse a state that lacks a record known before the transaction."""
        if self._first is None:
            self._first = next((digest for (digest,) in ask(FIRST)), None)
        known = before.get(self._first) if self._first is not None else None
        wanted = [noted for noted in (self._noted, known) if noted is not None and noted != (0, START)]
        # Not one condition with OR, for which a server may read all records.
        rows = ask(" UNION ALL ".join([NEWEST, *[NUMBERED] * len(wanted)]), [number for number, _ in wanted])
        for head in wanted:
            if head not in rows:
                raise LedgerError(
                    f"{place} was put back to an earlier state or written anew, for it does not hold record {head[0]} "
                    f"as it was {'noted down' if head is self._noted else 'seen before'}; nothing was answered. Put "
                    "the newest copy back; if this one was put there on purpose, start the program anew"
                    f"{' without that head' if head is self._noted else ''}."
                )
        self._note(rows)

    def newest(self, ask: Ask) -> Rows:
        """The record that a transaction writes last, for `remember`."""
        if self._first is None:
            self._first = next((digest for (digest,) in ask(FIRST)), None)
        return ask(NEWEST)

    def remember(self, rows: Rows) -> None:
        """Note a record after its transaction was committed."""
        self._note(rows)

    def _note(self, rows: Rows) -> None:
        if not rows or self._first is None:
            return
        number, digest = rows[0]
        with LOCK:
            known = SEEN.setdefault(self._where, {})
            # Of two threads the one that wrote first may come last.
            if isinstance(number, int) and number > known.get(self._first, (0, START))[0]:
                known[self._first] = number, digest
