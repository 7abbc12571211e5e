"""Bounds and group keys declared once for a frame, kept in its ``attrs`` as plain JSON values.

``attrs`` travel with copies, queries, pickles and Parquet files. A column name need not be text, which a JSON
object's keys must be, so each declaration is a list that starts with its column.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pdrisk.columns import check_column
from pdrisk.core.universe import Universe
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.keys import checked_keys
from pdrisk.query import universe

__all__ = ["declare", "declared_bounds", "declared_keys"]

ATTRIBUTE = "dprisk"


def declare(
    frame: pd.DataFrame,
    *,
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
) -> pd.DataFrame:
    """A copy of the frame that knows these bounds and keys, beside those declared before."""
    if bounds is None and keys is None:
        raise ParameterError('declare needs bounds={"column": (lo, hi)} or keys={"column": [...]}.')
    new_bounds, new_keys = _entries(frame, "bounds"), _entries(frame, "keys")
    for column, pair in _items("bounds", bounds):
        check_column(frame, column)
        interval = universe(pair)
        new_bounds[column] = [interval.lo, interval.hi]
    for column, values in _items("keys", keys):
        check_column(frame, column)
        new_keys[column] = [_plain(key) for (key,) in checked_keys(frame, (column,), values)]
    result = frame.assign()  # a lazy copy where pandas has them
    result.attrs[ATTRIBUTE] = {
        "bounds": [[_json_label(column), *ends] for column, ends in new_bounds.items()],
        "keys": [[_json_label(column), values] for column, values in new_keys.items()],
    }
    return result


def declared_bounds(data: pd.DataFrame | pd.Series, column: Hashable) -> Universe | None:
    """What was declared for a column, or None."""
    ends = _entries(data, "bounds").get(column)
    return None if ends is None else universe(ends)


def declared_keys(frame: pd.DataFrame, column: Hashable) -> list[Hashable] | None:
    """What was declared for a column, or None."""
    values = _entries(frame, "keys").get(column)
    return None if values is None else [_key(value) for value in values]


def _entries(data: pd.DataFrame | pd.Series, what: str) -> dict[Hashable, list[Any]]:
    if ATTRIBUTE not in data.attrs:
        return {}
    try:
        stored = data.attrs[ATTRIBUTE][what]
        # A file gives lists where there were tuples.
        return {tuple(c) if isinstance(c, list) else c: (rest if what == "bounds" else rest[0]) for c, *rest in stored}
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        pass
    raise ParameterError(
        f"attrs[{ATTRIBUTE!r}] of this frame is not what declare wrote: take it out with del df.attrs[{ATTRIBUTE!r}], "
        "and declare again."
    )


def _items(name: str, given: object) -> Iterable[tuple[Hashable, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ColumnTypeError(f"declare takes {name} as a dict from column to value, not {type(given).__name__}.")
    return given.items()


def _json_label(column: Hashable) -> Any:
    return column.item() if isinstance(column, np.generic) else column


def _plain(key: Hashable) -> Any:
    """A JSON value; dates become a one-entry object."""
    if isinstance(key, pd.Timestamp | pd.Timedelta):
        return {type(key).__name__: key.isoformat()}
    if not isinstance(key, str | bool | int | float | None):
        raise ColumnTypeError(
            f"a declared key must be text, a number, a truth value or a pd.Timestamp, not {type(key).__name__}."
        )
    return key


def _key(value: Any) -> Hashable:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        key: Hashable = {"Timestamp": pd.Timestamp, "Timedelta": pd.Timedelta}[kind](text)
        return key
    plain: Hashable = value
    return plain
