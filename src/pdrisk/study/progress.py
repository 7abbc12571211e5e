"""A line on the terminal for what takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

__all__ = ["Progress"]

PATIENCE = 1.0  # seconds before anything is shown
REDRAWN = 0.2  # seconds between two drawings


class Progress:
    """How much of a piece of work is done, drawn in place; nothing if stderr is no terminal.

    Parameters
    ----------
    total : int
        Size of the work, in any unit.
    shown : bool
        False: never draw.
    """

    def __init__(self, total: int, *, shown: bool = True) -> None:
        self._total, self._done = max(total, 1), 0
        self._shown = shown and sys.stderr.isatty()
        self._started = self._drawn = time.monotonic()
        self._width = 0
        self._lock = threading.Lock()

    def add(self, work: int) -> None:
        """So much more is done; any thread may say so."""
        with self._lock:
            self._done += work
            now = time.monotonic()
            if not self._shown or now - self._started < PATIENCE or now - self._drawn < REDRAWN:
                return
            self._drawn = now
            share = min(self._done / self._total, 1.0)
            left = (now - self._started) * (1 - share) / share
            line = f"study: [{'#' * round(20 * share):<20}] {share:4.0%}, about {_duration(left)} left"
            self._width = max(self._width, len(line))
            sys.stderr.write(f"\r{line:<{self._width}}")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write(f"\r{'':{self._width}}\r")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
