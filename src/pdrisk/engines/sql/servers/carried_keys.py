"""Keys of groups in SQL: the expressions that rows are grouped by, and listed keys as they are carried to an engine."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.asked_groups import Groups, WholeKeys, listed_at
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, ZONED
from pdrisk._model.groups.calendar_keys import calendar_key
from pdrisk._model.rowwise.families import UNITS, as_number
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import Value
from pdrisk.engines.sql.dialects.dialect import DOUBLE, LARGEST, WHOLE, Dialect
from pdrisk.engines.sql.dialects.dialect import TEXT as CARRIED_TEXT
from pdrisk.errors import ParameterError

WIDEST: Final = 40  # signs of a whole number as text, so that texts stand in the order of numbers that are not below 0


def listed_keys(rows: RowSQL, groups: Groups | None) -> tuple[str | None, list[list[Any]] | None]:
    """Listed keys as a relation, with its parameters; None if none are listed."""
    if groups is None or groups.keys is None:
        return None, None
    for at, column in enumerate(groups.columns):
        if rows.is_of_days(column):
            for key in groups.keys:
                calendar_key(key[at], DATE, f"a key of column {column!r}")
    carriers = [group_sql(rows, column)[1] for column in groups.columns]
    lists = [
        _all_carried(listed_at(groups.keys, at), _as_carried(rows.same(column), rows.dialect), column)
        for at, column in enumerate(groups.columns)
    ]
    return rows.dialect.keys(carriers, lists)


def group_sql(rows: RowSQL, column: Hashable) -> tuple[str, str]:
    """Group key in SQL, and the type in which listed keys are carried."""
    value = rows.same(column)
    if value.family == TEXT:
        return value.sql, CARRIED_TEXT
    if rows.dialect.own and (value.is_wide or value.beyond):
        # What does not fit is in no group that can be listed, and in that of missing values neither.
        there = f"{value.beyond or value.sql} IS NOT NULL"
        fits = f"TRY_CAST({value.sql} AS BIGINT)"
        return f"(CASE WHEN {fits} IS NULL AND {there} THEN {rows.dialect.whole(2**63)} ELSE {fits} END)", WHOLE
    if value.span is None:
        return (rows.dialect.double(value.sql) if value.narrow else value.sql), DOUBLE
    if value.is_wide:  # of 64 bits without a sign: as text, which needs no wide parameter
        written = rows.dialect.call("LPAD", f"CAST({value.sql} AS {rows.dialect.text_type})", f"{WIDEST}", "' '")
        return rows.dialect.exact_text(written), CARRIED_TEXT
    return f"CAST({value.sql} AS BIGINT)", WHOLE


def _as_carried(value: Value, dialect: Dialect) -> Value:
    """A value by whose type keys are carried: where all types are read, whatever keys were judged by."""
    is_whole = dialect.own and value.family == NUMBER and value.span is not None and not value.is_truth
    return replace(value, span=(-LARGEST - 1, LARGEST)) if is_whole else value


def _all_carried(keys: list[Any], value: Value, column: Hashable) -> list[Any]:
    """Listed keys of a column in the form that is carried to the engine: most are whole numbers, as they are."""
    are_whole = isinstance(keys, WholeKeys) or set(map(type, keys)) == {int}
    if are_whole and value.family == NUMBER and value.span is not None and not value.is_wide:
        low, high = value.span
        array = keys.array if isinstance(keys, WholeKeys) else None
        least, most = (min(keys), max(keys)) if array is None else (array.min(), array.max())
        if low <= least and most <= high:
            return keys
    return [_carried(key, value, column) for key in keys]


def _carried(key: Any, value: Value, column: Hashable) -> Any:
    """A listed key in the form that is carried to the engine."""
    if key is None or value.family == TEXT:
        return key
    if value.span is None:
        return float(np.float32(key) if value.narrow else key) + 0.0
    held = as_number(value.family, key)
    exact = Fraction(held) / value.unit if math.isfinite(held) else None
    if exact is None or exact.denominator > 1 or not value.span[0] <= exact <= value.span[1]:
        raise ParameterError(
            f"a key of column {column!r} is none that its type can hold, so no record could have it: leave it out."
        )
    return f"{int(exact):{WIDEST}}" if value.is_wide else int(exact)


def plain_keys(value: Value, keys: list[Any]) -> list[Any]:
    """Keys that occur as plain values of their column; missing is None."""
    present = iter(_present_keys(value, [key for key in keys if key is not None]))
    return [None if key is None else next(present) for key in keys]


def _present_keys(value: Value, keys: list[Any]) -> list[Any]:
    if value.family in (DATE, ZONED):
        unit = next(name for name, size in UNITS.items() if size == value.unit)
        times = pd.Series(np.array(keys, dtype=np.int64).view(f"datetime64[{unit}]"))
        return list(times if value.family == DATE else times.dt.tz_localize("UTC"))
    if value.span == (0, 1):  # truth values
        return [bool(key) for key in keys]
    return [int(key) for key in keys] if value.span is not None else keys
