"""Group keys: what a caller may list, how rows find theirs, and how an answer is indexed by them."""

from __future__ import annotations

import collections
import datetime
import itertools
import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = ["checked_keys", "key_codes", "key_index", "observed_keys"]

Key = tuple[Hashable, ...]

PIECE = 2**18  # rows looked up at a time


def checked_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...], given: object) -> tuple[Key, ...]:
    """The caller's keys as tuples of plain values, one for each column; missing is None.

    Parameters
    ----------
    frame : DataFrame
        Only its dtypes are looked at.
    columns : tuple of hashable
    given : list-like, or dict of list-likes
        Values for one column, tuples for several; a dict means the product of its lists.

    Raises
    ------
    ParameterError
        If there are none, one stands twice or has not one value for each column.
    ColumnTypeError
        If a key is unhashable or of another kind than its column.
    """
    if isinstance(given, Mapping):
        if set(given) != set(columns):
            raise ParameterError(f"keys must be a dict with one list for each of {', '.join(map(str, columns))}.")
        levels = [[_plain(key) for key in _listed(given[column])] for column in columns]
        keys = list(itertools.product(*levels))
    elif len(columns) == 1:
        keys = [(_plain(key),) for key in _listed(given)]
    else:
        keys = [tuple(map(_plain, _parts(key, columns))) for key in _listed(given)]
    if not keys:
        raise ParameterError("keys must list at least one group.")
    for position, column in enumerate(columns):
        wanted = _column_kind(frame[column])
        one_of_each = {(type(key[position]), getattr(key[position], "tzinfo", None)): key[position] for key in keys}
        for level in one_of_each.values():
            if level is not None and _key_kind(level) != wanted != "unknown":
                raise ColumnTypeError(
                    f"a key of column {column!r} is {_key_kind(level)}, but the column holds {wanted}: "
                    "list keys of the column's own kind (pd.Timestamp for dates)."
                )
    if len(set(keys)) < len(keys):
        ((repeated, _),) = collections.Counter(keys).most_common(1)
        shown = repeated[0] if len(repeated) == 1 else repeated
        raise ParameterError(f"the key {shown!r} is listed twice; list it once.")
    return tuple(keys)


def observed_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> tuple[Key, ...]:
    """The keys that occur in the data, sorted; rows with a missing one are left out."""
    found = pd.concat([_uncategorical(frame[column]) for column in columns], axis=1)
    found.columns = pd.RangeIndex(len(columns))
    found = found.dropna().drop_duplicates().sort_values(list(found.columns))
    return tuple(tuple(_plain(key) for key in row) for row in found.itertuples(index=False, name=None))


def key_codes(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> NDArray[np.int32]:
    """For each row the place of its key in the list, ``len(keys)`` for rows of no listed key.

    Returns
    -------
    ndarray of int32, shape (N,)
    """
    if len(columns) == 1:
        return _level_codes(frame[columns[0]], [key for (key,) in keys])
    rows = np.zeros(len(frame), dtype=np.int64)
    wanted = np.zeros(len(keys), dtype=np.int64)
    for position, column in enumerate(columns):
        levels = list(dict.fromkeys(key[position] for key in keys))
        place = {level: i for i, level in enumerate(levels)}
        wanted = wanted * (len(levels) + 1) + np.array([place[key[position]] for key in keys])
        rows *= len(levels) + 1
        rows += _level_codes(frame[column], levels)
    return _places(pd.Index(wanted), rows, len(keys))


def key_index(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> pd.Index:
    """The index of an answer: the keys in their order, named and typed like the columns."""
    arrays = [_typed([key[i] for key in keys], frame[column].dtype) for i, column in enumerate(columns)]
    if len(columns) == 1:
        return pd.Index(arrays[0], name=columns[0])
    return pd.MultiIndex.from_arrays(arrays, names=list(columns))


def _level_codes(series: pd.Series, levels: Sequence[Hashable]) -> NDArray[np.int32]:
    """For each row the place of its value among the levels, ``len(levels)`` if it is none of them."""
    none = len(levels)
    for_missing = levels.index(None) if None in levels else none
    listed = [level for level in levels if level is not None]
    place = np.array([i for i, level in enumerate(levels) if level is not None] + [none], dtype=np.int32)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufO":
        values = series.to_numpy()
        if series.dtype.kind == "b":
            values, listed = values.view(np.int8), [int(bool(level)) for level in listed]
        index = pd.Index(listed, dtype=object if series.dtype.kind == "O" else None)
        codes = _places(index, values, len(listed))
        if for_missing != none:
            codes = place[codes]
            codes[series.isna().to_numpy()] = for_missing
        return codes
    if _is_categorical(series):
        row_codes, uniques = series.cat.codes.to_numpy(), series.cat.categories
    else:
        row_codes, uniques = pd.factorize(series)
    index = pd.Index(listed)
    if index.dtype == object:
        uniques = pd.Index(uniques, dtype=object)
    # Code -1 is missing, and takes the last place.
    of_unique = np.append(place[index.get_indexer(pd.Index(uniques))], np.int32(for_missing))
    codes = np.empty(len(series), dtype=np.int32)
    for start in range(0, len(codes), PIECE):
        rows = slice(start, start + PIECE)
        np.take(of_unique, row_codes[rows], out=codes[rows], mode="wrap")
    return codes


def _places(index: pd.Index, values: NDArray[Any], none: int) -> NDArray[np.int32]:
    """Where each value stands in the index, ``none`` if it does not; in pieces, which need no copy of the column."""
    codes = np.empty(len(values), dtype=np.int32)
    for start in range(0, len(values), PIECE):
        rows = slice(start, start + PIECE)
        found = index.get_indexer(
            pd.Index(values[rows], dtype=index.dtype if index.dtype == object else None, copy=False)
        )
        codes[rows] = np.where(found < 0, none, found)
    return codes


def _typed(values: list[Hashable], dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        # The column's own categories may be observed values; the declared keys are public.
        listed = list(dict.fromkeys(value for value in values if value is not None))
        return pd.Categorical(values, categories=listed, ordered=dtype.ordered)
    try:
        typed = pd.array(values, dtype=dtype)
        kept = typed.tolist()
        if (kept if None not in values else [None if pd.isna(value) else value for value in kept]) == values:
            return typed
    except (TypeError, ValueError, OverflowError):
        pass
    return pd.array(values)  # a missing key, or one beyond the column's range


def _listed(keys: object) -> list[Any]:
    if isinstance(keys, str | bytes | set | frozenset | Mapping) or not isinstance(keys, Iterable):
        raise ColumnTypeError(
            'keys must be a list of the public group keys, as in keys=["north", "south"], or the word "observed".'
        )
    return list(keys)


def _parts(key: object, columns: tuple[Hashable, ...]) -> tuple[Any, ...]:
    if not isinstance(key, tuple | list) or len(key) != len(columns):
        raise ParameterError(
            f"each key must be a tuple of {len(columns)} values, for {', '.join(map(str, columns))}; "
            "a dict of lists means all their combinations."
        )
    return tuple(key)


def _plain(key: Any) -> Hashable:
    """A Python value that compares by equality; every kind of missing becomes None."""
    if type(key) in (str, int):
        return key
    if isinstance(key, np.generic) and not isinstance(key, np.datetime64 | np.timedelta64):
        key = key.item()
    try:
        hash(key)
    except TypeError:
        raise ColumnTypeError(f"a key must be a single value, not {type(key).__name__}.") from None
    if key is None or (pd.api.types.is_scalar(key) and pd.isna(key)):
        return None
    if isinstance(key, np.datetime64 | datetime.datetime):
        return pd.Timestamp(key)
    if isinstance(key, np.timedelta64 | datetime.timedelta):
        return pd.Timedelta(key)
    plain: Hashable = key
    return plain


def _key_kind(key: Hashable) -> str:
    if isinstance(key, bool):
        return "truth values"
    if isinstance(key, numbers.Number):
        return "numbers"
    if isinstance(key, str):
        return "text"
    if isinstance(key, pd.Timestamp):
        return "dates" if key.tzinfo is None else "dates with a time zone"
    return type(key).__name__


_OBJECT_KINDS = {
    "string": "text", "boolean": "truth values", "integer": "numbers", "floating": "numbers", "decimal": "numbers",
    "mixed-integer-float": "numbers", "date": "date", "datetime": "dates", "empty": "unknown",
}  # fmt: skip


def _column_kind(series: pd.Series) -> str:
    """What a column holds by its dtype; a column of objects is asked for its kind, never for a value."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _column_kind(pd.Series(dtype.categories))
    if pd.api.types.is_bool_dtype(dtype):
        return "truth values"
    if pd.api.types.is_numeric_dtype(dtype):
        return "numbers"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "dates" if getattr(dtype, "tz", None) is None else "dates with a time zone"
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "Timedelta"
    if not pd.api.types.is_object_dtype(dtype):
        return "text" if pd.api.types.is_string_dtype(dtype) else "unknown"
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind not in _OBJECT_KINDS:
        raise ColumnTypeError(
            f"column {series.name!r} holds objects of several kinds, which cannot be compared with keys: "
            'convert it first, as in astype("string").'
        )
    return _OBJECT_KINDS[kind]


def _uncategorical(series: pd.Series) -> pd.Series:
    return series.astype(series.cat.categories.dtype) if _is_categorical(series) else series


def _is_categorical(series: pd.Series) -> bool:
    return isinstance(series.dtype, pd.CategoricalDtype)
