"""Frames as DuckDB should see them: no column whose type it would guess from values."""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from pdrisk.columns import column_kind
from pdrisk.engines.frame import column_values

__all__ = ["plain_frame"]


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its columns of Python objects as floats, truth values or text.

    DuckDB would look at the values for a type, such as DECIMAL(3,1), and one record more would change all others.
    """
    changed: dict[int, Any] = {}
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        kind = column_kind(column) if column.dtype == object else "typed"
        if kind == "numbers":
            changed[at] = _floats(column)
        elif kind == "truth values":
            changed[at] = column.astype("boolean").array
        elif kind not in ("typed", "text"):
            present = column.notna()
            texts = [_text(value) if there else None for value, there in zip(column, present, strict=True)]
            changed[at] = pd.array(texts, dtype="string")  # is text even where it holds nothing
    if not changed:
        return frame
    result = frame.copy(deep=False)
    for at, values in changed.items():
        result.isetitem(at, values)
    return result


def _floats(column: pd.Series) -> Any:
    """The numbers of a column; what is too large for a float is infinite, so that no record fails the query."""
    with suppress(OverflowError, ValueError, ArithmeticError):
        return column_values(column)
    return np.array([_float(value) for value in column])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)
    except (TypeError, ValueError, ArithmeticError):  # missing, or a signalling NaN
        return math.nan


def _text(value: object) -> str:
    plain = isinstance(value, str | bool | int | float | Decimal | datetime.date | np.generic)
    return str(value) if plain else type(value).__name__
