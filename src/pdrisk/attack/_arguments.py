"""Arguments of attacks, checked."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk.errors import ColumnTypeError, ParameterError

MOST = 10_000_000


def check_table(frame: object) -> None:
    """Refuse a table of people that is no frame of pandas."""
    if not isinstance(frame, pd.DataFrame):
        raise ColumnTypeError("an attack on tables needs a DataFrame, with one row for each person.")


def checked_number(name: str, value: object, *, least: int = 1) -> int:
    """A whole number within the range that can be simulated, or the error."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ColumnTypeError(f"{name} is a whole number, not {shown(value)}.")
    if not least <= value <= MOST:
        raise ParameterError(f"{name} is a whole number from {least:,} to {MOST:,}, not {shown(value)}.")
    return int(value)
