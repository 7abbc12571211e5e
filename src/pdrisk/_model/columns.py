"""What a column is, by its name and dtype: no value is looked at."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._model.query import unknown_column
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["check_column", "column_kind", "plain_label"]

_OBJECT_KINDS = {
    "string": "text", "boolean": "truth values", "integer": "numbers", "floating": "numbers", "decimal": "numbers",
    "mixed-integer-float": "numbers", "date": "date", "datetime": "dates", "empty": "nothing",
}  # fmt: skip


def check_column(frame: pd.DataFrame, column: object) -> None:
    """Refuse what does not name exactly one column.

    Raises
    ------
    ColumnTypeError
        If it cannot be a label.
    UnknownColumnError
        If the frame does not have it.
    ParameterError
        If several columns have this name.
    """
    known = None
    if not isinstance(column, Iterator):
        try:
            known = column in frame.columns
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - its own code, or nesting beyond Python's; no value of the data is touched
            pass
    if known is None:
        raise ColumnTypeError(
            f"a column is named by its label, not by a value of type {type(column).__name__}: ask about several with "
            "df.dprisk.agg, and about what is no column yet with df.assign(name=...)."
        )
    if not known:
        raise unknown_column(column, frame.columns)
    # A label that is unique and whole names one column; looking at it would cost more than the rest of a small call.
    ambiguous = not frame.columns.is_unique or frame.columns.nlevels > 1
    if ambiguous and isinstance(frame[column], pd.DataFrame):
        raise ParameterError(f"the frame has several columns named {column!r}: rename them, so that one is meant.")


def column_kind(series: pd.Series) -> str:
    """What a column holds: numbers, truth values, text, dates, dates with a time zone, and rarer things.

    By its dtype; a column of Python objects is asked for the kind that pandas infers, which docs/limits.md tells.
    """
    dtype: Any = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if isinstance(dtype, pd.ArrowDtype) and not _is_known(dtype):
        return "Arrow"
    if dtype.kind == "c":
        return "complex numbers"
    if pd.api.types.is_bool_dtype(dtype):
        return "truth values"
    if pd.api.types.is_numeric_dtype(dtype):
        return "numbers"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("date"):
        return "date"
    if pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind == "M":
        zone = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
        return "dates" if zone is None else "dates with a time zone"
    if dtype.kind == "m":
        return "Timedelta"
    if not pd.api.types.is_object_dtype(dtype):
        return "text" if pd.api.types.is_string_dtype(dtype) else type(dtype).__name__.removesuffix("Dtype")
    return _OBJECT_KINDS.get(pd.api.types.infer_dtype(series, skipna=True), "objects of several kinds")


def _is_known(dtype: pd.ArrowDtype) -> bool:
    """Whether pandas knows what it holds."""
    try:
        return bool(dtype.kind)
    except NotImplementedError:
        return False


def plain_label(column: Hashable | None) -> Hashable | None:
    """A column label that JSON can hold."""
    if isinstance(column, np.generic):
        column = column.item()
    if isinstance(column, tuple):
        return tuple(map(plain_label, column))
    return column if isinstance(column, str | int | float | None) else str(column)
