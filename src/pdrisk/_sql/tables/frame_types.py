"""Frames as DuckDB should see them, without columns whose type DuckDB would guess from values."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import MIXED, NUMBER, TEXT, TRUTH
from pdrisk._model.rowwise.families import truths_of
from pdrisk.engines.numpy.frame import column_values

DeclaredKinds = Callable[[pd.DataFrame], Mapping[Hashable, str | None]]


class Plain(NamedTuple):
    """A frame for DuckDB."""

    frame: Any
    untyped: tuple[int, ...] = ()  # places of the columns of Python objects that it holds as text
    whole: tuple[int, ...] = ()  # places of the whole numbers that one missing value would make floats


def plain_frame(frame: Any, declared_kinds: DeclaredKinds | None = None) -> Plain:
    """The frame with its columns of Python objects as floats, truth values or text.

    DuckDB would look at the values for a type, such as DECIMAL(3,1), and one record more would change all others. With
    ``declared_kinds`` no value is looked at: columns without a kind are text. Frames of other libraries stay.
    """
    if not isinstance(frame, pd.DataFrame):
        return Plain(frame)
    kinds = None if declared_kinds is None else declared_kinds(frame)
    changed: dict[int, Any] = {}
    untyped, whole = [], []
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column, is_changed = _values(column)
            if is_changed:
                changed[at] = column.array
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
            whole.append(at)
        kind = "typed"
        if column.dtype == object:
            kind = column_kind(column) if kinds is None else kinds.get(frame.columns[at]) or MIXED
        if kind == NUMBER:
            changed[at] = _floats(column)
        elif kind == TRUTH:
            changed[at] = truths_of(column).array
        elif kind != "typed":
            untyped.append(at)
            if kind != TEXT or kinds is not None:
                present = column.notna()
                texts = [_text(value) if there else None for value, there in zip(column, present, strict=True)]
                changed[at] = pd.array(texts, dtype="string")  # is text even where it holds nothing
    if not changed:
        return Plain(frame, tuple(untyped), tuple(whole))
    result = frame.copy(deep=False)
    for at, values in changed.items():
        result.isetitem(at, values)
    return Plain(result, tuple(untyped), tuple(whole))


def single_columns(frame: Any) -> Iterator[tuple[str, Any]]:
    """Each column of a frame that DuckDB may read, by its name and without a row."""
    if isinstance(frame, pd.DataFrame):
        for at, label in enumerate(frame.columns):
            yield str(label), plain_frame(frame.iloc[:0, [at]]).frame
    elif type(frame).__module__.partition(".")[0] == "polars":
        for name in frame.collect_schema().names():
            yield name, frame.select(name).head(0)
    elif type(frame).__module__.partition(".")[0] == "pyarrow" and hasattr(frame, "select"):
        for name in frame.schema.names:
            yield name, frame.select([name]).slice(0, 0)


def _values(column: pd.Series) -> tuple[pd.Series, bool]:
    """A column of categories as their values; unchanged if they are text."""
    categories = column.cat.categories
    if not len(categories):  # whose type pandas makes up
        return pd.Series(np.full(len(column), None), index=column.index), True
    if pd.api.types.is_string_dtype(categories):
        return column, False
    values: Any = categories.to_numpy() if isinstance(categories.dtype, np.dtype) else categories.array
    taken = pd.api.extensions.take(values, column.cat.codes.to_numpy(), allow_fill=True)
    return pd.Series(taken, index=column.index), True


def _floats(column: pd.Series) -> Any:
    """Numbers of a column as floats; too large ones are infinite, so that no record makes the query fail."""
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
