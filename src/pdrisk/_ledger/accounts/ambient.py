"""The ledgers of the ``with`` blocks around: each thread and task sees its own."""

from __future__ import annotations

import os
import warnings
from contextvars import ContextVar
from threading import Lock
from typing import Any

from pdrisk._caller_frame import caller
from pdrisk.errors import ParameterError, UnpaidReleaseWarning

_around: ContextVar[tuple[Any, ...]] = ContextVar("pdrisk_ledgers", default=())  # the innermost last
_counting = Lock()
_open = 0  # blocks in the whole process


def enter(ledger: Any) -> None:
    """Begin the block of a ledger."""
    global _open
    around = innermost()
    if around is not None and around._payer != ledger._payer:
        raise ParameterError(
            f"a `with` block of {_told(around)} is open, and inside it that of {_told(ledger)} alone would pay. End "
            "the outer block first, or leave out the inner one and pass ledger= to each answer that it pays for."
        )
    _around.set((*_around.get(), ledger))
    with _counting:
        _open += 1


def _told(ledger: Any) -> str:
    where, dataset, analyst = ledger._payer
    return f"dataset {dataset!r} ({os.path.basename(where)!r}, analyst {analyst!r})"


def leave(ledger: Any) -> None:
    """End the block of this ledger, which need not be the innermost: a generator may leave its block anywhere."""
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
    """The ledger of the innermost ``with`` block, None outside of blocks."""
    around = _around.get()
    return around[-1] if around else None


def reservation(ledger: Any) -> Any:
    """The reservation of the innermost ``with`` block that holds budget of this ledger; else the ledger itself."""
    for block in reversed(_around.get()):
        if block._reservation is not None and block._payer == ledger._payer:
            return block
    return ledger


def warn_of_others() -> None:
    """Warn before an unpaid answer if another context has an open block, whose ledger may be meant to pay."""
    if _open:
        warnings.warn(
            "no ledger pays for this answer, though a `with` block of one is open: threads and executors started in it "
            "do not see it. Pass ledger= to what runs there.",
            UnpaidReleaseWarning,
            stacklevel=caller()[1],
        )
