"""Group keys of a frame: what its columns can hold, how rows find their keys, and how an answer is indexed by them."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.foreign import shown
from pdrisk._model.asked_groups import values_at
from pdrisk._model.expressions.columns import KINDS, comparable_kind
from pdrisk._model.expressions.kinds import DATE, NOTHING, NUMBER, TIME, kind_of_value, kind_phrase
from pdrisk._model.groups.calendar_keys import calendar_key
from pdrisk._model.groups.integer_keys import codes_of_integers
from pdrisk._model.groups.keys import Key, are_categories, key_tuples
from pdrisk._model.plain import check_encodable, plain_key, plain_keys
from pdrisk.errors import ColumnTypeError, ParameterError

PIECE = 2**18  # rows looked up at a time


def checked_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...], given: object) -> Sequence[Key]:
    """The caller's keys as tuples of plain values, one for each column of a frame; missing is None.

    ``frame``: only its dtypes are looked at.
    ``given``: as for `key_tuples`; the word stands for the categories of every column, or of one in a dict.
    """

    def typed(place: int, keys: Sequence[Any]) -> list[Hashable]:
        column = columns[place]
        series = frame[column]
        kind = comparable_kind(series)
        levels = plain_keys(keys)
        if kind in (DATE, TIME):
            levels = [calendar_key(level, kind, f"a key of column {column!r}") for level in levels]
        for level in _one_of_each_kind(levels):
            if level is not None and kind_of_value(level) != kind != NOTHING:
                raise ColumnTypeError(
                    f"a key of column {column!r} is {kind_phrase(level)}, but the column holds {kind}: "
                    "list keys of the column's own kind."
                )
        if kind != NUMBER:
            check_encodable(f"a key of column {shown(column)}", levels)
        _check_distinct(column, series, levels)
        return levels

    def by_label(keys: Mapping[Any, object]) -> list[object] | None:
        named = set(itertools.islice(keys, len(columns) + 1)) == set(columns)
        if not named:
            return None
        return [_categories(frame[column]) if are_categories(keys[column]) else keys[column] for column in columns]

    if are_categories(given) and len(columns) == 1:
        given = _categories(frame[columns[0]])
    elif are_categories(given):
        given = {column: _categories(frame[column]) for column in columns}
    return key_tuples(given, columns, typed, by_label)


def _one_of_each_kind(levels: list[Hashable]) -> list[Hashable]:
    """One key of each type and time zone."""
    kinds = set(map(type, levels))
    has_zones = any(hasattr(kind, "tzinfo") for kind in kinds)
    if len(kinds) == 1 and not has_zones:
        return levels[-1:]
    zones = [getattr(level, "tzinfo", None) for level in levels] if has_zones else []
    return list(dict(zip(itertools.zip_longest(map(type, levels), zones), levels, strict=True)).values())


def _categories(series: pd.Series) -> pd.Index:
    if not isinstance(series.dtype, pd.CategoricalDtype):
        raise ColumnTypeError(
            f'keys="categories" takes those of a categorical, but column {series.name!r} has none: list its keys.'
        )
    return series.dtype.categories


def _check_distinct(column: Hashable, series: pd.Series, levels: list[Hashable]) -> None:
    """Refuse keys that the column's precision cannot tell apart."""
    dtype: Any = _plain_column(series.iloc[:0]).dtype
    if KINDS in series.attrs and isinstance(dtype, np.dtype) and dtype.kind in "iu":
        dtype = np.dtype(np.float64)  # what pandas makes of integers once a value is missing
    if dtype.kind != "f":
        return
    if dtype.itemsize > 8:
        raise ColumnTypeError(f'column {column!r} has dtype {dtype}, which has no group keys: use astype("float64").')
    if not _lookup(list(dict.fromkeys(levels)), dtype)[0].is_unique:
        raise ParameterError(f"two keys are the same number in column {column!r}, whose dtype is {dtype}: list one.")


def observed_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> tuple[Key, ...]:
    """The keys that occur in the data, sorted, ordered categories as they are; missing is None, and comes last."""
    levels = [[*_levels(frame[column]), None] for column in columns]
    codes = pd.DataFrame(
        {
            at: _level_codes(frame[column], column_levels)
            for at, (column, column_levels) in enumerate(zip(columns, levels, strict=True))
        }
    )
    rows = codes.drop_duplicates().sort_values(list(codes.columns)).itertuples(index=False, name=None)
    return tuple(tuple(column_levels[code] for column_levels, code in zip(levels, row, strict=True)) for row in rows)


def _levels(column: pd.Series) -> list[Hashable]:
    """The values that occur in a column, sorted, without missing ones."""
    present = column.dropna().drop_duplicates()  # first: integer categories with a missing row are no integers
    is_ordered = _is_categorical(column) and column.dtype.ordered  # type: ignore[union-attr] # of categoricals alone
    values = _plain_column(present)
    table = pd.DataFrame({"value": values, "order": present.cat.codes if is_ordered else values})
    return [plain_key(value) for value in table.dropna().drop_duplicates("value").sort_values("order")["value"]]


def key_codes(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> NDArray[np.int32]:
    """For each row the position of its key in the list; ``len(keys)`` for rows without a listed key.

    Returns: shape (N,)
    """
    firsts = values_at(keys, 0)
    if len(columns) == 1:
        return _level_codes(frame[columns[0]], firsts)
    codes = _level_codes(frame[columns[0]], list(dict.fromkeys(firsts)))
    # Column by column, a row's place among the distinct beginnings of the keys: never more than there are keys, so
    # that no product of places overflows.
    begun = list(dict.fromkeys(key[:1] for key in keys))
    for position in range(1, len(columns)):
        levels = list(dict.fromkeys(key[position] for key in keys))
        longer = list(dict.fromkeys(key[: position + 1] for key in keys))
        place_begun, place_level = _places_of(begun), _places_of(levels)
        wanted = [place_begun[key[:-1]] * (len(levels) + 1) + place_level[key[-1]] for key in longer]
        rows = codes.astype(np.int64) * (len(levels) + 1) + _level_codes(frame[columns[position]], levels)
        codes = _places(pd.Index(wanted), rows, len(longer))
        begun = longer
    return codes


def _places_of(values: Sequence[Hashable]) -> dict[Hashable, int]:
    return {value: place for place, value in enumerate(values)}


def key_index(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> pd.Index:
    """The index of an answer: the keys in their order, named and typed like the columns."""
    arrays = [_typed(list(values_at(keys, i)), frame[column].dtype) for i, column in enumerate(columns)]
    if len(columns) == 1:
        return arrays[0].rename(columns[0])
    return pd.MultiIndex.from_arrays(arrays, names=list(columns))


def _level_codes(series: pd.Series, levels: Sequence[Hashable]) -> NDArray[np.int32]:
    """For each row the position of its value among the levels; ``len(levels)`` if it is none of them."""
    none = len(levels)
    series = series if _is_categorical(series) else _plain_column(series)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufO":
        index, place = _lookup(levels, series.dtype)
        values = series.to_numpy()
        near = codes_of_integers(index, place, values)
        codes = place[_places(index, values, len(index))] if near is None else near
        if values.dtype.kind not in "iu" and (for_missing := _place_of_missing(levels)) != none:
            codes[series.isna().to_numpy()] = for_missing
        return codes
    if _is_categorical(series):
        row_codes, uniques = series.cat.codes.to_numpy(), _plain_column(series.cat.categories.to_series()).array
    else:
        row_codes, uniques = pd.factorize(series)
    index, place = _lookup(levels, uniques.dtype)
    # Code -1 is missing, and takes the last place.
    of_unique = np.append(place[_places(index, uniques, len(index))], np.int32(_place_of_missing(levels)))
    codes = np.empty(len(series), dtype=np.int32)
    for start in range(0, len(codes), PIECE):
        rows = slice(start, start + PIECE)
        np.take(of_unique, row_codes[rows], out=codes[rows], mode="wrap")
    return codes


def _place_of_missing(levels: Sequence[Hashable]) -> int:
    return levels.index(None) if None in levels else len(levels)


def _lookup(levels: Sequence[Hashable], dtype: Any) -> tuple[pd.Index, NDArray[np.int32]]:
    """The levels that a column of this dtype can hold, in its dtype, with their positions; then that of all others."""
    if (whole := _whole_numbers(levels, dtype)) is not None:
        return _index(whole), np.arange(len(levels) + 1, dtype=np.int32)
    place = [at for at, level in enumerate(levels) if level is not None]
    typed = _held([levels[at] for at in place], dtype)
    if typed is None:  # one by one: a fraction is no integer, 2**70 no int64
        place = [at for at in place if _held([levels[at]], dtype) is not None]
        typed = _held([levels[at] for at in place], dtype)
    return _index(typed), np.array([*place, len(levels)], dtype=np.int32)


def _whole_numbers(levels: Sequence[Hashable], dtype: Any) -> NDArray[Any] | None:
    """The levels as an array of this dtype, if it has whole numbers, and can hold all of them."""
    if not (isinstance(dtype, np.dtype) and dtype.kind in "iu"):
        return None
    try:
        numbers = np.array(array("q", levels))  # type: ignore[type-var]  # which takes nothing but whole numbers
    except (TypeError, OverflowError):
        return None
    typed = numbers.astype(dtype)
    return typed if (typed == numbers).all() else None


def _held(levels: list[Hashable], dtype: Any) -> Any:
    """The levels as an array of this dtype, or None if one of them would change."""
    if pd.api.types.is_object_dtype(dtype):
        return pd.Index(levels, dtype=object, tupleize_cols=False)
    try:
        if isinstance(dtype, np.dtype) and dtype.kind == "f":
            # As pandas compares: a key is rounded to the column's precision.
            return np.array([float(level) for level in levels], dtype=dtype)  # type: ignore[arg-type]
        by_numpy = isinstance(dtype, np.dtype) and dtype.kind not in "mM"  # which drops nanoseconds of times
        typed = np.array(levels, dtype=dtype) if by_numpy else pd.array(levels, dtype=dtype)
        return typed if typed.tolist() == levels or list(_index(typed)) == levels else None
    except (TypeError, ValueError, OverflowError):
        return None


def _index(typed: Any) -> pd.Index:
    if isinstance(typed, pd.Index):  # of objects, which stay what they are
        return typed
    try:
        return pd.Index(typed, copy=False)
    except OverflowError:  # integers beyond every float, in which pandas 2 looks for dates
        return pd.Index(typed, dtype=object)


def _places(index: pd.Index, values: Any, none: int) -> NDArray[np.int32]:
    """Position of each value in the index, ``none`` if it has none; in pieces, without a copy of the column."""
    codes = np.empty(len(values), dtype=np.int32)
    as_objects = object if index.dtype == object else None
    for start in range(0, len(values), PIECE):
        rows = slice(start, start + PIECE)
        positions = index.get_indexer(pd.Index(values[rows], dtype=as_objects, copy=False))
        codes[rows] = np.where(positions < 0, none, positions)
    return codes


def _typed(values: list[Hashable], dtype: Any) -> pd.Index:
    """An index of the column's dtype, or of one that holds all the keys where the column's cannot."""
    if isinstance(dtype, pd.CategoricalDtype):
        # The column's own categories may be observed values; the declared keys are public.
        listed = list(dict.fromkeys(value for value in values if value is not None))
        categories = _typed(listed, dtype.categories.dtype)
        return pd.Index(pd.Categorical(values, categories=categories, ordered=dtype.ordered))
    if dtype == np.float16:
        dtype = np.dtype(np.float32)  # pandas has no index of half floats
    if (whole := _whole_numbers(values, dtype)) is not None:
        return _index(whole)
    held = [value for value in values if value is not None]
    typed = _held(held, dtype)
    unchanged = typed is not None and list(_index(typed)) == held
    if unchanged and len(held) == len(values):
        return _index(typed)
    if unchanged and pd.api.types.is_object_dtype(dtype):
        return pd.Index(values, dtype=object)
    if unchanged:
        has_missing = not isinstance(dtype, np.dtype) or dtype.kind in "fmM"  # else in the nullable dtype
        return pd.Index(pd.array(values, dtype=dtype if has_missing else pd.array(typed).dtype))
    try:
        return pd.Index(pd.array(values))
    except OverflowError:
        return pd.Index(values, dtype=object)


def _plain_column(series: pd.Series) -> pd.Series:
    """The column in a form that can be looked up: categories as values, NaN as missing, plain dates."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _plain_column(series.astype(dtype.categories.dtype))
    if dtype == np.float16 or (not isinstance(dtype, np.dtype) and pd.api.types.is_float_dtype(dtype)):
        values = series.to_numpy(dtype=np.float32 if dtype.itemsize <= 4 else np.float64, na_value=np.nan)
        return pd.Series(values, index=series.index)
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind == "M" and not str(dtype).startswith("date"):
        unit, zone = dtype.pyarrow_dtype.unit, dtype.pyarrow_dtype.tz
        plain: Any = f"datetime64[{unit}]" if zone is None else f"datetime64[{unit}, {zone}]"
        return series.astype(plain)
    return series


def _is_categorical(series: pd.Series) -> bool:
    return isinstance(series.dtype, pd.CategoricalDtype)
