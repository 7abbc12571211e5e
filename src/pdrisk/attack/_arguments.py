"""Arguments of attacks, checked."""

from __future__ import annotations

import numpy as np

from pdrisk._core.foreign import shown
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["checked_number"]

MOST = 10_000_000


def checked_number(name: str, value: object, *, least: int = 1) -> int:
    """A whole number within the range that can be simulated, or the error."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ColumnTypeError(f"{name} is a whole number, not {shown(value)}.")
    if not least <= value <= MOST:
        raise ParameterError(f"{name} is a whole number from {least:,} to {MOST:,}, not {shown(value)}.")
    return int(value)
