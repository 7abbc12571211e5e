"""Plain values: labels, keys, codes and numbers of any library as few types of Python's and pandas' own."""

from __future__ import annotations

import datetime
import math
import numbers
import operator
import re
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.days import day_number
from pdrisk._core.universe import Days
from pdrisk._guard import guarded
from pdrisk._model.expressions.kinds import DATE, TIME, kind_of_value
from pdrisk.errors import ColumnTypeError, ParameterError, PdriskError, QueryFailedError

#: Dates and times as text.
ISO: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?", re.ASCII)
MIDNIGHT: Final = datetime.time()
LARGEST = 2**4096  # of an integer: Python does not write out more than 4,300 digits
# What a conversion of theirs may raise: unhashable, beyond pandas' dates, a signalling NaN, nested too deeply.
_UNFIT = (TypeError, ValueError, ArithmeticError, RecursionError)


def plain_key(value: Any, what: str = "a key") -> Hashable:
    """A group key or missing code in a form that compares by equality; every kind of missing becomes None."""
    if type(value) is str or (type(value) is int and -LARGEST < value < LARGEST):
        return value
    try:
        plain: Hashable = _unwrapped(value)
        hash(plain)
    except _UNFIT:
        pass
    else:
        return plain
    raise ColumnTypeError(
        f"{what} must be a single value that pandas can hold, and one of type {type(value).__name__} is not."
    )


def plain_keys(values: Sequence[Any]) -> list[Hashable]:
    """`plain_key` of each of some values."""
    kinds = set(map(type, values))
    if kinds <= {str} or (kinds == {int} and max(map(abs, values)) < LARGEST):  # at once, of millions, too
        return list(values)
    return [plain_key(value) for value in values]


def plain_value(value: Any, what: str) -> Hashable:
    """A label, key or code that a file can hold: text, number, truth value, date, or a tuple of these."""
    try:
        plain = _unwrapped(value)
        if isinstance(plain, tuple):
            return tuple(plain_value(part, what) for part in plain)
        if isinstance(plain, str | int | float | datetime.date | datetime.timedelta | None):
            return plain
    except PdriskError:  # of a part
        raise
    except _UNFIT:
        pass
    raise ColumnTypeError(
        f"{what} must be text, a number, a truth value or a date to be declared, not {type(value).__name__}."
    )


def _unwrapped(value: Any) -> Any:
    """A value without numpy's types; dates and durations as pandas has them, every kind of missing as None."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, np.datetime64 | datetime.datetime):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        return pd.Timedelta(value)
    if isinstance(value, int) and not -LARGEST < value < LARGEST:
        raise ValueError
    return value


def plain_label(column: Hashable | None) -> Hashable | None:
    """A column's label for JSON and reports; anything but text and numbers is written out."""
    if isinstance(column, np.generic):
        column = column.item()
    if isinstance(column, tuple):
        return tuple(map(plain_label, column))
    return column if isinstance(column, str | int | float | None) else str(column)


def json_value(value: Any) -> Any:
    """JSON value of what `plain_value` gave; dates become objects with one entry."""
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    return [json_value(part) for part in value] if isinstance(value, tuple) else value


def from_json(value: Any) -> Hashable:
    """The plain value that `json_value` wrote; raises what Python or pandas raises for anything else."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        made: dict[str, Any] = {
            "Timestamp": pd.Timestamp, "Timedelta": pd.Timedelta, "date": datetime.date.fromisoformat,
        }  # fmt: skip
        decoded: Hashable = made[kind](text)
        return decoded
    plain: Hashable = value
    return plain


def plain_number(name: str, value: Any) -> Fraction | Decimal | float:
    """A number of Python's own types, exactly as it is written.

    It is read once: what a class of its own makes of itself the next time does not count.
    """
    kind = type(value)  # not isinstance: an object may say that it is of another class
    if kind is float:
        return float(value)
    if kind is int:
        return Fraction(value)
    if issubclass(kind, bool | np.bool_) or not issubclass(kind, numbers.Real | Decimal):
        raise _no_number(name, value)

    def read() -> Fraction | Decimal | float:
        if issubclass(kind, numbers.Rational):
            return Fraction(operator.index(value.numerator), operator.index(value.denominator))
        if issubclass(kind, Decimal):
            return Decimal(value)
        number = float(value)
        # As it is written: the float of a narrow 0.1 is not a tenth.
        return number if issubclass(kind, float) or not math.isfinite(number) else Fraction(str(value))

    with suppress(QueryFailedError):  # by whatever such a class does
        return guarded(read)
    raise ColumnTypeError(f"{name} must be a number that can be read, but is of type {kind.__name__}.")


def float_of(name: str, value: object) -> float:
    """A number as a float, where its last digits do not matter."""
    if type(value) is float:
        return value
    if type(value) is not int and (
        isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, numbers.Real | Decimal)
    ):
        raise _no_number(name, value)
    try:
        return float(value)
    except (OverflowError, ValueError):
        raise ParameterError(f"{name} must be finite and fit a float.") from None


def _no_number(name: str, value: object) -> ColumnTypeError:
    return ColumnTypeError(
        f"{name} must be a number, but is {'missing' if value is None else f'of type {type(value).__name__}'}."
    )


def check_encodable(what: str, values: Collection[object]) -> None:
    """Refuse a text with half of a surrogate pair, which neither Arrow nor a database holds."""
    if not any(issubclass(kind, str) for kind in set(map(type, values))):
        return
    try:
        "".join(value for value in values if isinstance(value, str)).encode()
    except UnicodeEncodeError:
        pass
    else:
        return
    raise ParameterError(f"{what} holds half of a surrogate pair: take it out.")


def are_dates(ends: Sequence[object]) -> bool:
    """Whether one of two ends is a date or time, or text written like one."""
    return any(
        isinstance(end, datetime.date | np.datetime64) or (isinstance(end, str) and ISO.fullmatch(end)) for end in ends
    )


def stamp_of(end: Any) -> datetime.datetime | None:
    """A date, time or text like 2020-01-31 as a time of the years 1 to 9999; None if it is none."""
    try:
        stamp = pd.Timestamp(end).to_pydatetime(warn=False)
    except (ValueError, NotImplementedError):
        return None
    return None if pd.isna(stamp) else stamp


def days_between(ends: Sequence[Any]) -> Days:
    """Bounds of dates: two dates, times or texts like 2020-01-31."""
    stamps = []
    for name, end in zip(("lo", "hi"), ends, strict=True):
        if not are_dates([end]) or pd.isna(end):
            raise ColumnTypeError(
                f"{name} of bounds must be a date like the other end: write ('2020-01-01', '2020-12-31')."
            )
        if (instant := stamp_of(end)) is None:
            raise ParameterError(f"{name} of bounds is no day of the years 1 to 9999.")
        if kind_of_value(instant) not in (DATE, TIME):
            raise ColumnTypeError(f"{name} of bounds has a time zone: write it without.")
        stamps.append(instant)
    lo, hi = map(day_number, stamps)
    times = any(stamp.time() != MIDNIGHT for stamp in stamps)
    if lo >= hi:
        order = "the same" if lo == hi else "reversed"
        raise ParameterError(f"bounds of dates must be (lo, hi), the earlier one first, but these are {order}.")
    try:
        return Days(lo, hi, times)
    except ParameterError:
        pass
    raise ParameterError(
        "these bounds of times are too near to each other to compute in days: take the time since the first one in "
        "seconds, as in epoch(t - TIMESTAMP '2020-01-01 12:00')."
    )
