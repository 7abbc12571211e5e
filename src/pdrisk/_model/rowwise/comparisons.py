"""Comparisons of a filter, judged by dtypes and constants: two kinds are never equal, and not every text is a date."""

import datetime as dt
import re
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import (
    DATE,
    DURATION,
    NOTHING,
    NUMBER,
    PERIOD,
    TEXT,
    TIME,
    TRUTH,
    ZONED,
    kind_of_value,
)
from pdrisk._model.expressions.nodes import MEMBERSHIP, ORDERINGS, Column, Constant, Node, Operation
from pdrisk._model.expressions.operands import comparable
from pdrisk._model.rowwise.builder import Builder, needs_backticks, text_of
from pdrisk._model.rowwise.families import family, of_values

ISO: Final = re.compile(
    r"\s*\d{4}(-\d\d?(-\d\d?([T ]\d\d?(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?)?)?\s*|\d{8}", re.ASCII
)
OTHER_DATE: Final = re.compile(
    r"""\s*(?: \d{1,2}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{4} | \d{1,2}[./-](?:19|20)\d\d          # 1.5.2019, 05/2019
             | \d{4}\s?[./]\s?\d{1,2}\s?[./]\s?\d{1,2} | \d{4}-(?:\d-\d{1,2}|\d\d-\d)          # 2019/05/01, 2019-5-1
             | \d{1,2}[.\s-]+[^\W\d_]{3,9}[.\s-]+(?:19|20)\d\d                                 # 1. Mai 2019
             | [^\W\d_]{3,9}[.\s]+\d{1,2},?\s+(?:19|20)\d\d )                                  # May 1, 2019
        (?:[\sT,]+\d.*)?\s*""",
    re.VERBOSE,
)
WRITE: Final = {
    (NUMBER, TEXT): "Write numbers without quotes",
    (TRUTH, TEXT): "Write True or False, without quotes",
    **dict.fromkeys(((TEXT, NUMBER), (TEXT, TRUTH)), "Write text in quotes"),
    **dict.fromkeys(((TIME, NUMBER), (ZONED, NUMBER)), "Write a range, as in `'2020-01-01' <= day < '2020-01-02'`"),
    (TIME, ZONED): "Take a text or pd.Timestamp without a time zone",
    (ZONED, TIME): "Take a pd.Timestamp with a time zone",
}
CONVERT: Final = {
    NUMBER: "{}.astype('Float64')",
    TEXT: "{}.astype('string')",
    TRUTH: "{}.astype('boolean')",
    **dict.fromkeys((DATE, TIME), "pd.to_datetime({}, format='%d.%m.%Y')"),
    ZONED: "pd.to_datetime({}, utc=True)",
    DURATION: "pd.to_timedelta({}, unit='D')",
}
CONVERT_FROM: Final = {
    **dict.fromkeys((PERIOD, "Interval"), "{}.astype('string')"),
    DURATION: "{} / pd.Timedelta(days=1)",
    DATE: "pd.to_datetime({})",
}


def unfit(symbol: str, parts: list[Node], values: list[Any]) -> str:
    """The sentence for an operator that does not work on its operands."""
    if symbol in MEMBERSHIP and isinstance(values[1], list) and len(values[1]) == 1:  # as it was written, or might be
        symbol, values = "==" if symbol == "in" else "!=", [values[0], *values[1]]
        parts = [parts[0], Constant(values[1], parts[1].given if isinstance(parts[1], Constant) else None)]
    return f"`{symbol}` does not work on {' and '.join(map(described, parts, values))}"


def described(node: Node, value: Any) -> str:
    """An operand with its dtype; for categories only the dtype of their values."""
    if isinstance(value, list):
        return "a list"
    if isinstance(node, Operation):
        return f"{text_of(node)} ({'a decision' if value.dtype == 'boolean' else 'a number'})"
    dtype: Any = value.dtype if isinstance(value, pd.Series) else type(value).__name__
    return f"{text_of(node)} ({f'category of {dtype.categories.dtype}' if is_categorical(dtype) else dtype})"


def converted(column: Hashable, formula: str) -> str:
    """Advice to convert a column in the frame; ``{}`` in the formula stands for the column."""
    series = f"df[{column!r}]"
    formula = formula.format(series)
    is_plain = isinstance(column, str) and not needs_backticks(column)
    example = f"df.assign({column}={formula})" if is_plain else f"{series} = {formula}"
    return f"Convert the column in the frame before, as in {example}"


def mended(symbol: str, parts: list[Node], values: list[Any]) -> str:
    """Advice for an operator that does not work on its operands."""
    columns = [place for place, part in enumerate(parts) if isinstance(part, Column)]
    if not columns:
        return "Compare columns with constants, and compute columns in the frame before"
    place = next((place for place in columns if isinstance(values[place].dtype, np.dtype)), columns[0])
    series_kind, other = _kind(values[place]), values[place - 1]
    wanted = next((kind for kind in _kinds(other) if kind != series_kind), series_kind)
    is_ordered_text = series_kind == TEXT and symbol in ORDERINGS  # an order of its own: '10' comes before '9'
    if isinstance(parts[place - 1], Constant) and (series_kind, wanted) in WRITE and not is_ordered_text:
        return WRITE[series_kind, wanted]
    is_same = wanted == series_kind and isinstance(other, pd.Series) and not isinstance(other.dtype, np.dtype)
    formula = f"{{}}.astype({str(other.dtype)!r})" if is_same else CONVERT_FROM.get(series_kind) or CONVERT.get(wanted)
    column: Any = parts[place]
    return converted(column.name, formula or "{}.astype(...)")


def dated(part: Node, value: Any, other: Any, builder: Builder) -> Any:
    """A constant beside dates, durations or periods, as pandas reads it there."""
    if isinstance(value, pd.Series) or not isinstance(other, pd.Series):
        return value
    dtype = of_values(other.dtype)
    name, is_text, read = family(dtype) or "", isinstance(value, str), value
    if name == DURATION and is_text:
        if not any(map(str.isalpha, value)) and ":" not in value:
            builder.refuse(f"{text_of(part)} names no unit of time, and would be nanoseconds: write it like '5 days'.")
        read = _read(pd.Timedelta, value)
    elif name == PERIOD and is_text:
        read = _read(lambda text: pd.Period(text, dtype.freq), value)
    elif name in (DATE, ZONED):
        if is_text and not ISO.fullmatch(value):
            builder.refuse(
                f"{text_of(part)} compared with dates is none: write it like '2020-12-31'. Other forms are not read, "
                "since some mean the day first and others the month."
            )
        read = _read(pd.Timestamp, value) if isinstance(value, str | dt.date) else None
        if name == ZONED and is_text and read is not None and read.tzinfo is None:
            zone = dtype.tz if isinstance(dtype, pd.DatetimeTZDtype) else dtype.pyarrow_dtype.tz
            read = _read(lambda text: pd.Timestamp(text, tz=zone), value)  # as pandas: in the zone of the column
    if read is None:
        builder.refuse(f"a column of {NAMED[name]}.")
    return read


NAMED = {
    **dict.fromkeys((DATE, ZONED), "dates is compared with something that is no date. Write one like '2020-12-31'"),
    DURATION: "durations is compared with something that is no duration. Write one like '5 days'",
    PERIOD: "periods is compared with something that is no period. Write one like '2020-12'",
}


def _read(function: Callable[[Any], Any], value: Any) -> Any:
    with suppress(ValueError, OverflowError):
        reading = function(value)
        return None if reading is pd.NaT else reading
    return None


def check_kinds(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> None:
    """Refuse to compare values that can never be equal: it would select nobody, and be paid."""
    for place, value in enumerate(values):
        if not isinstance(value, pd.Series):
            continue
        if not all(comparable(_kind(value), other) for other in _kinds(values[1 - place])):
            builder.refuse(
                f"{unfit(symbol, parts, values)}: they are not of one kind, so never equal and in no order. "
                f"{mended(symbol, parts, values)}."
            )


def check_exact(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> None:
    """Refuse to look for a number that no float64 is in a column of numpy's: it would select nobody, and be paid.

    Integers of numpy are decided as floats, which pandas makes of them once a value is missing.
    """
    for part, value, other in zip(parts, values, reversed(values), strict=True):
        dtype = getattr(value, "dtype", None)
        dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
        if not isinstance(part, Column) or not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
            continue
        listed = other if isinstance(other, list) else [other]
        if any(type(number) is int and int(float(number)) != number for number in listed):
            advice = converted(part.name, "{}.astype('Int64')")
            builder.refuse(
                f"{unfit(symbol, parts, values)}: such a column is compared as float64, as which pandas reads integers "
                f"once a value is missing, and beyond 2**53 not every whole number is a float64. {advice}."
            )


def check_order(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> None:
    """Refuse to order texts that look like dates, and objects beside another kind.

    A column of objects is asked for their kind here, which docs/threat-model.md tells.
    """
    for part, value, other in zip(parts, values, reversed(values), strict=True):
        is_date = isinstance(other, str) and OTHER_DATE.fullmatch(other)
        if is_date and isinstance(part, Column) and family(value.dtype) in (TEXT, None):
            shown = text_of(parts[1 - parts.index(part)])
            builder.refuse(
                f"`{symbol}` compares text with text, letter by letter, and {shown} looks like a date. "
                f"{converted(part.name, CONVERT[DATE])}; text in the form '2020-12-31' has the order of dates."
            )
    for part, value, other in zip(parts, values, reversed(values), strict=True):
        if not isinstance(part, Column) or value.dtype != object:
            continue
        kind, wanted = column_kind(builder.frame[part.name]), _kind(other)
        if wanted == NOTHING or not comparable(kind, wanted):
            beside = "such objects" if wanted == NOTHING else wanted
            builder.refuse(
                f"`{symbol}` compares {text_of(part)}, which holds {kind}, with {beside}: it takes things of one kind. "
                f"{converted(part.name, CONVERT_FROM.get(kind) or CONVERT.get(wanted, '{}.astype(...)'))}."
            )


def _kinds(value: Any) -> list[str]:
    return list(map(_kind, value if isinstance(value, list) else [value]))


def _kind(value: Any) -> str:
    """Kind of a column on zero rows by its dtype, or of a constant; unknown for columns of objects."""
    if isinstance(value, pd.Series):
        return column_kind(value.cat.categories[:0].to_series() if is_categorical(value.dtype) else value)
    kind = kind_of_value(value)
    return TIME if kind == DATE else kind  # as `dated` reads it


def is_categorical(dtype: Any) -> bool:
    """Whether a column of this dtype holds categories."""
    return isinstance(dtype, pd.CategoricalDtype)
