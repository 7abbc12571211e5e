"""Guard around reading: its error says nothing about the data."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable
from itertools import pairwise
from types import FrameType, TracebackType
from typing import TypeVar

import numpy as np

from pdrisk.errors import TIMED_OUT, PdriskError, QueryFailedError

Result = TypeVar("Result")
# SQLSTATE of what was cancelled, waited too long for a lock, or took too long: how long it took is no secret.
TIME_LIMITS = frozenset(("57014", "55P03", "25P03", "25P04"))


def guarded(work: Callable[[], Result]) -> Result:
    """Result of ``work``; an error in it is replaced by one that says nothing about the data."""
    raised: BaseException | None = None
    try:
        with np.errstate(all="ignore"):  # a warning would depend on the data
            return work()
    except PdriskError:
        raise
    except Exception as error:  # noqa: BLE001 - it could quote a record; raised below, so that nothing is chained to it
        raised = from_handler(error)
        if raised is None and getattr(error, "sqlstate", None) in TIME_LIMITS:
            raised = QueryFailedError(TIMED_OUT)
    except BaseException as error:  # somebody stops it
        error.__context__ = error.__cause__ = None
        raise
    if raised is not None:
        raise raised
    raise QueryFailedError


def from_handler(error: BaseException) -> BaseException | None:
    """The exception that a signal handler raised, also behind exceptions made from it; None if there is none.

    Its traceback begins at the handler: the frames that it interrupted hold records, and so may exceptions that were
    being dealt with there.
    """
    chain, seen = [error], {id(error)}
    for exception in chain:
        place = exception.__traceback__
        while place is not None and not _is_handler(place.tb_frame):
            place = place.tb_next
        if place is not None:
            exception.__context__ = exception.__cause__ = None
            return exception.with_traceback(
                TracebackType(place.tb_next, place.tb_frame, place.tb_lasti, place.tb_lineno)
            )
        for other in (exception.__cause__, exception.__context__):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                chain.append(other)
    return None


def _is_handler(frame: FrameType) -> bool:
    """Whether a frame was called as signal handlers are: with a signal's number and the interrupted frame.

    Nobody else passes a function the frame that calls it; what is registered as a handler may be another by now, or a
    function that is called on the data, too.
    """
    code, names = frame.f_code, frame.f_locals
    given = [names.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        rest = names.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        given += rest if isinstance(rest, tuple) else ()
    signals = signal.valid_signals()
    return any(
        isinstance(one, int) and one in signals and other is not None and other is frame.f_back
        for one, other in pairwise(given)
    )
