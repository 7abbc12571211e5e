"""Columns of a frame: their names and kinds, by labels and dtypes alone; no value is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._guard import from_handler
from pdrisk._model.expressions.kinds import (
    CATEGORIES,
    COMPLEX,
    DATE,
    DURATION,
    MIXED,
    NOTHING,
    NUMBER,
    TEXT,
    TIME,
    TRUTH,
    ZONED,
)
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk.errors import ColumnTypeError, ParameterError

# In ``attrs`` of a header, a frame without a record that stands for other data.
UNREAD = "columns that pdrisk does not read"  # their types, by the names of columns that the header lacks
ROWS = "number of rows"  # of the data; None where it is not known before they are read

# In ``attrs`` of a frame by which a request is judged under a ledger: kinds of its columns of Python objects.
KINDS = "kinds of objects"

_OBJECT_KINDS = {
    "string": TEXT, "boolean": TRUTH, "integer": NUMBER, "floating": NUMBER, "decimal": NUMBER,
    "mixed-integer-float": NUMBER, "date": DATE, "datetime": TIME, "empty": NOTHING,
}  # fmt: skip


def check_column(frame: pd.DataFrame, column: object) -> None:
    """Refuse a label that does not name exactly one column."""
    known = raised = None
    if not isinstance(column, Iterator):
        try:
            known = column in frame.columns
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - its own code, or nesting beyond Python's; no value of the data
            raised = from_handler(error)
    if raised is not None:
        raise raised
    if known is None:
        raise ColumnTypeError(
            f"a column is named by its label, not by a value of type {type(column).__name__}: ask about several "
            "columns with df.dprisk.agg, and compute a new column first with df.assign(name=...)."
        )
    if not known and (held := frame.attrs.get(UNREAD, {}).get(column)) is not None:
        raise ColumnTypeError(
            f"column {column!r} is of type {held}, which pdrisk does not read: make it a column of numbers, truth "
            "values, text, dates or times first."
        )
    if not known:
        raise unknown_column(column, frame.columns)
    # A label that is unique and whole names one column; looking at it would cost more than the rest of a small call.
    ambiguous = not frame.columns.is_unique or frame.columns.nlevels > 1
    if ambiguous and isinstance(frame[column], pd.DataFrame):
        raise ParameterError(f"the frame has several columns named {column!r}: rename them, so that one is meant.")


def column_kind(series: pd.Series) -> str:
    """The kind of a column's values: numbers, truth values, text, dates, timestamps, and rarer things.

    By its dtype. A column of Python objects is asked for the kind that pandas infers, unless ``attrs`` hold `KINDS`.
    """
    dtype: Any = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":  # as nearly always: asking pandas takes longer
        return NUMBER
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if isinstance(dtype, pd.CategoricalDtype):
        return CATEGORIES
    if isinstance(dtype, pd.ArrowDtype) and not _is_known(dtype):
        return "Arrow"
    if dtype.kind == "c":
        return COMPLEX
    if pd.api.types.is_bool_dtype(dtype):
        return TRUTH
    if pd.api.types.is_numeric_dtype(dtype):
        return NUMBER
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("date"):
        return DATE
    if pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind == "M":
        zone = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
        return TIME if zone is None else ZONED
    if dtype.kind == "m":
        return DURATION
    if not pd.api.types.is_object_dtype(dtype):
        return TEXT if pd.api.types.is_string_dtype(dtype) else type(dtype).__name__.removesuffix("Dtype")
    if KINDS in series.attrs:
        return str(series.attrs[KINDS][series.name])
    return _OBJECT_KINDS.get(pd.api.types.infer_dtype(series, skipna=True), MIXED)


def are_truth_objects(series: pd.Series) -> bool:
    """Whether it is a column of Python objects that are truth values."""
    if series.dtype != object:
        return False
    # A few values tell apart nearly all other columns, without looking at all of them.
    return column_kind(series.iloc[:100]) in (TRUTH, NOTHING) and column_kind(series) == TRUTH


def check_ids(series: pd.Series) -> None:
    """Refuse a column that, by its dtype, cannot say who a person is. Objects are not known before they are read."""
    if isinstance(series.dtype, pd.ArrowDtype) and series.dtype.pyarrow_dtype.num_fields:
        raise ColumnTypeError(
            f"column {series.name!r} holds lists or structures, which cannot say who a person is: make text or numbers "
            "of them first."
        )


def _is_known(dtype: pd.ArrowDtype) -> bool:
    """Whether pandas knows what kind of values it holds."""
    try:
        return bool(dtype.kind)
    except NotImplementedError:
        return False


def comparable_kind(series: pd.Series) -> str:
    """The kind of keys and missing codes for a column; for categories the kind of their values."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        held = pd.Series(series.dtype.categories, name=series.name)
        held.attrs = series.attrs
    else:
        held = series
    kind = column_kind(held)
    if kind == MIXED:
        raise ColumnTypeError(
            f"column {series.name!r} holds objects of several kinds, which cannot be compared with keys: "
            'convert it first, as in astype("string").'
        )
    return kind
