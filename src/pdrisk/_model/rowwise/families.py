"""Families of values: what a column holds by its dtype alone, and how it is read as exact numbers or text.

No conversion here can fail, or change its result for other records, because of what one record holds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.expressions.kinds import DATE, DURATION, NUMBER, PERIOD, TEXT, ZONED
from pdrisk._model.rowwise.exact import Numbers, arithmetic, constant, of_array, of_plain

Bools = NDArray[np.bool_]
UNITS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds
OF_OBJECTS = (TEXT, NUMBER, DATE, ZONED, DURATION)  # what a Python object may be; anything else equals nothing


def of_values(dtype: Any) -> Any:
    """The dtype of the values in a column of categories or a sparse one; others are their own."""
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories.dtype
    return dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype


def dense(series: pd.Series) -> pd.Series:
    """The column without its sparseness."""
    if not isinstance(series.dtype, pd.SparseDtype):
        return series
    array: Any = series.array
    return pd.Series(array.to_dense(), dtype=series.dtype.subtype, index=series.index)


def family(dtype: Any) -> str | None:
    """The kind that values of a dtype compare as; None for Python objects, "" for what compares with nothing."""
    if isinstance(dtype, pd.SparseDtype) and dtype.subtype.kind == "O":
        return ""
    dtype = of_values(dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow_family(dtype)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return None
    if isinstance(dtype, pd.StringDtype):
        return TEXT
    if isinstance(dtype, pd.PeriodDtype):
        return PERIOD
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ZONED
    return {**dict.fromkeys("biuf", NUMBER), "M": DATE, "m": DURATION}.get(dtype.kind, "")


def _arrow_family(dtype: pd.ArrowDtype) -> str:
    import pyarrow as pa

    held = dtype.pyarrow_dtype
    if pa.types.is_timestamp(held):
        return DATE if held.tz is None else ZONED
    if pa.types.is_string(held) or pa.types.is_large_string(held):
        return TEXT
    if pa.types.is_integer(held) or pa.types.is_floating(held) or pa.types.is_boolean(held):
        return NUMBER
    others = {pa.types.is_decimal: NUMBER, pa.types.is_date: DATE, pa.types.is_duration: DURATION}
    return next((name for is_one, name in others.items() if is_one(held)), "")


def is_in(name: str, value: Any) -> bool:
    """Whether a constant or object belongs to a family."""
    if isinstance(value, str):
        return name == TEXT
    if isinstance(value, dt.date):
        return name == (DATE if getattr(value, "tzinfo", None) is None else ZONED)
    if isinstance(value, dt.timedelta):
        return name == DURATION
    return name == NUMBER and isinstance(value, int | float | np.number | np.bool_ | Decimal)


def has_categories(value: Any) -> bool:
    """Whether it is a column of categories."""
    return isinstance(value, pd.Series) and isinstance(value.dtype, pd.CategoricalDtype)


def categories_of(value: pd.Series) -> pd.Series:
    """The categories of a column, as a column, whole numbers exactly: a missing value leaves their type as it is."""
    categories = pd.Series(value.cat.categories.array)
    return categories.convert_dtypes() if categories.dtype in (np.int64, np.uint64) else categories


def holds_objects(value: Any) -> bool:
    """Whether it is a column of Python objects."""
    return isinstance(value, pd.Series) and value.dtype == object


PLAIN = {str, float, int, bool, type(None)}  # what pandas can hash and compare without asking a record


def holds_only(value: pd.Series, kinds: set[type]) -> bool:
    """Whether all its objects are of exactly these types."""
    return set(map(type, value.tolist())) <= kinds


def is_missing(value: Any) -> bool:
    """Whether an object is one of the ordinary kinds of missing: None, NaN, NaT or NA."""
    kind = type(value)  # an object, and a class of numbers of its own, may answer as it likes
    for number in (float, complex, np.floating, np.complexfloating):
        if issubclass(kind, number):
            return bool(number.__ne__(value, value))
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or value is pd.NaT or value is pd.NA or (kind is Decimal and value.is_nan())


def missing_of(value: Any) -> Bools:
    """Where a column, or Numbers, have no value; NaN is missing whatever the dtype thinks of it."""
    if isinstance(value, Numbers):
        return np.isnan(value.high)
    if isinstance(value.dtype, pd.ArrowDtype):  # whatever it holds; pandas does not know all of Arrow's types
        return np.asarray(value.array.__arrow_array__().is_null(nan_is_null=True), dtype=bool)
    if holds_objects(value) and not holds_only(value, PLAIN):
        # One by one: pandas asks each object whether it equals itself, at which a signalling NaN fails.
        return np.array([is_missing(one) for one in value.tolist()], dtype=bool)
    missing: Bools = value.isna().to_numpy(dtype=bool)
    if isinstance(value.dtype, pd.Float32Dtype | pd.Float64Dtype):
        missing = missing | np.isnan(value.to_numpy(dtype=np.float64, na_value=np.nan))
    return missing


def texts_of(value: Any) -> NDArray[np.object_]:
    """The text of each record; None where there is none."""
    if isinstance(value, str):
        return np.array(value, dtype=object)
    if has_categories(value):
        return np.concatenate([texts_of(categories_of(value)), NO_TEXT])[value.cat.codes.to_numpy()]
    if not holds_objects(value):
        plain: NDArray[np.object_] = value.to_numpy(dtype=object, na_value=None)
        return plain
    result = np.empty(len(value), dtype=object)
    result[:] = [text_of_object(one) for one in value.tolist()]
    return result


def truths_of(series: pd.Series) -> pd.Series:
    """A column of Python objects as truth values; whatever else is in it is missing."""
    values = series.tolist()
    present = np.fromiter((type(value) in (bool, np.bool_) for value in values), dtype=bool, count=len(values))
    yes = np.fromiter((type(value) in (bool, np.bool_) and bool(value) for value in values), bool, len(values))
    return pd.Series(pd.arrays.BooleanArray(yes, ~present), index=series.index)


def text_of_object(value: Any) -> str | None:
    """The text that an object is, also of a class of its own such as numpy's; None if it is none."""
    if type(value) is str:
        return value
    return str.__str__(value) if issubclass(type(value), str) else None


NO_TEXT = np.array([None], dtype=object)


def numbers_of(value: Any, name: str = NUMBER) -> Numbers:
    """A column, constant or result as numbers; dates and durations as nanoseconds, periods as their ordinals."""
    if isinstance(value, Numbers):
        return value
    if not isinstance(value, pd.Series):
        return constant(as_number(name, value))
    if has_categories(value):
        numbers, codes = numbers_of(categories_of(value), name), value.cat.codes.to_numpy()
        low = None if numbers.low is None else np.append(numbers.low, 0.0)[codes]
        return numbers._replace(high=np.append(numbers.high, np.nan)[codes], low=low)
    if holds_objects(value):
        plain = _number if name == NUMBER else _instant(name)
        return of_plain([plain(one) for one in value.tolist()])
    return (_column_of_numbers if name == NUMBER else _column_of_times)(value)


def _column_of_numbers(series: pd.Series) -> Numbers:
    dtype: Any = series.dtype
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        # Integers of 64 bits as the floats that pandas makes of all of them once one value is missing.
        return of_array(values.astype(np.float64) if values.dtype.kind in "iu" and dtype.itemsize == 8 else values)
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind == "O":  # decimals
        return of_plain([_number(one) for one in series.array.astype(object)])
    plain: Any = dtype.numpy_dtype
    return _without(missing_of(series), of_array(series.to_numpy(dtype=plain, na_value=plain.type(0))))


def _column_of_times(series: pd.Series) -> Numbers:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        held, counts = dtype.pyarrow_dtype, series.array.__arrow_array__()
        if pa.types.is_date(held):
            unit, counts = ("D", counts.cast(pa.int32())) if pa.types.is_date32(held) else ("ms", counts)
        else:
            unit = held.unit
        counts = counts.cast(pa.int64()).fill_null(0).to_numpy()
        return _without(missing_of(series), _scaled(counts, unit))
    counts = series.array.asi8  # of a period its ordinal
    unit = "ns" if isinstance(dtype, pd.PeriodDtype) else getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]
    return _without(counts == np.iinfo(np.int64).min, _scaled(counts, unit))


def _without(missing: Bools, numbers: Numbers) -> Numbers:
    """The numbers, NaN where there is none."""
    return numbers._replace(high=np.where(missing, np.nan, numbers.high)) if missing.any() else numbers


def _scaled(counts: NDArray[Any], unit: str) -> Numbers:
    numbers = of_array(counts)
    return numbers if unit == "ns" else arithmetic("*", numbers, constant(UNITS[unit]))


def as_number(name: str, value: Any) -> int | float:
    """A constant of a family as the number it is compared as."""
    if name == NUMBER:
        return _number(value)
    return int(value.ordinal) if name == PERIOD else _nanoseconds(value)


def _nanoseconds(value: Any) -> int:
    """Nanoseconds of a date (since 1970, in UTC) or of a duration."""
    if isinstance(value, dt.timedelta):
        held: Any = pd.Timedelta(value).asm8
    else:
        held = pd.Timestamp(value).asm8
    unit, _ = np.datetime_data(held.dtype)
    return int(held.astype(np.int64)) * UNITS[unit]


#: numpy's numbers; a duration of numpy is an integer to it, but not to us.
SCALARS = {np.dtype(code).type for code in "?bBhHiIlLqQefd"}


def _number(value: Any) -> int | float:
    kind = type(value)
    if kind in (int, float, bool):
        return value
    if kind in SCALARS:
        return value.item()
    if issubclass(kind, int | float):  # of a class of its own, such as IntEnum
        return int.__add__(value, 0) if issubclass(kind, int) else float.__float__(value)
    if kind is np.longdouble:
        return float(value)
    if kind is Decimal and not value.is_nan():
        is_whole = value.is_finite() and value.adjusted() < 40 and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    return np.nan


def _instant(name: str) -> Callable[[Any], int | float]:
    def instant(value: Any) -> int | float:
        if type(value) in INSTANTS and is_in(name, value):
            with suppress(Exception):  # a date beyond those of pandas, or in a time zone that fails
                return _nanoseconds(value)
        return np.nan

    return instant


INSTANTS = {pd.Timestamp, pd.Timedelta, dt.datetime, dt.date, dt.timedelta}
