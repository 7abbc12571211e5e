"""The ledgers of the ``with`` blocks around: each thread and task sees its own."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from threading import Lock
from typing import Any

from pdrisk.callers import caller
from pdrisk.errors import UnpaidReleaseWarning

__all__ = ["enter", "innermost", "leave", "warn_of_others"]

_around: ContextVar[tuple[Any, ...]] = ContextVar("pdrisk_ledgers", default=())  # the innermost last
_counting = Lock()
_open = 0  # blocks in the whole process


def enter(ledger: Any) -> None:
    """Its block begins."""
    global _open
    _around.set((*_around.get(), ledger))
    with _counting:
        _open += 1


def leave(ledger: Any) -> None:
    """Its block ends: its own, not the innermost, for a generator leaves its block in whatever context closes it."""
    global _open
    around = list(_around.get())
    for place in range(len(around) - 1, -1, -1):
        if around[place] is ledger:
            del around[place]
            break
    _around.set(tuple(around))
    with _counting:
        _open -= 1


def innermost() -> Any:
    """The ledger of the ``with`` block around, None if there is none."""
    around = _around.get()
    return around[-1] if around else None


def warn_of_others() -> None:
    """To be called before an answer that no ledger pays: somebody may have meant that it does."""
    if _open:
        warnings.warn(
            "no ledger pays for this answer, though a `with` block of one is open: threads and executors started in it "
            "do not see it. Pass ledger= to what runs there.",
            UnpaidReleaseWarning,
            stacklevel=caller()[1],
        )
