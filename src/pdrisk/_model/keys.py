"""Group keys: what a caller may list, how rows find theirs, and how an answer is indexed by them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.foreign import shown
from pdrisk._model.columns import comparable_kind
from pdrisk._model.kinds import NOTHING, kind_of_value, kind_phrase
from pdrisk._model.missing_arguments import missing_argument
from pdrisk._model.plain import check_encodable, plain_key
from pdrisk.errors import ColumnTypeError, ParameterError

__all__ = [
    "Key",
    "are_categories",
    "are_observed",
    "checked_keys",
    "key_codes",
    "key_index",
    "key_tuples",
    "listed_values",
    "observed_keys",
    "take_categories",
    "undeclared_keys",
]

Key = tuple[Hashable, ...]

PIECE = 2**18  # rows looked up at a time
MOST = 1_000_000  # keys of one query: a million noisy values take seconds and a gigabyte


def checked_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...], given: object) -> tuple[Key, ...]:
    """The caller's keys as tuples of plain values, one for each column of a frame; missing is None.

    Parameters
    ----------
    frame : DataFrame
        Only its dtypes are looked at.
    columns : tuple of hashable
    given : list-like, dict of list-likes, or "categories"
        As for `key_tuples`; the word stands for the categories of every column, or of one in a dict.

    Raises
    ------
    ParameterError, ColumnTypeError
        As `key_tuples`; or if a column has no categories, a key is of another kind than its column, or equal to
        another there.
    """

    def typed(place: int, keys: Sequence[Any]) -> list[Hashable]:
        column = columns[place]
        series = frame[column]
        levels = [plain_key(key) for key in keys]
        kind = comparable_kind(series)
        one_of_each = {(type(level), getattr(level, "tzinfo", None)): level for level in levels}
        for level in one_of_each.values():
            if level is not None and kind_of_value(level) != kind != NOTHING:
                raise ColumnTypeError(
                    f"a key of column {column!r} is {kind_phrase(level)}, but the column holds {kind}: "
                    "list keys of the column's own kind (pd.Timestamp for timestamps)."
                )
        check_encodable(f"a key of column {shown(column)}", levels)
        _check_distinct(column, series, list(dict.fromkeys(levels)))
        return levels

    def by_label(keys: Mapping[Any, object]) -> list[object] | None:
        named = set(itertools.islice(keys, len(columns) + 1)) == set(columns)
        if not named:
            return None
        return [_categories(frame[each]) if are_categories(keys[each]) else keys[each] for each in columns]

    if are_categories(given) and len(columns) == 1:
        given = _categories(frame[columns[0]])
    elif are_categories(given):
        given = {column: _categories(frame[column]) for column in columns}
    return key_tuples(given, columns, typed, by_label)


def are_categories(keys: object) -> bool:
    """Whether a caller says with the word "categories" that those of a column are the public code book."""
    return isinstance(keys, str) and keys == "categories"


def take_categories(keys: object) -> bool:
    """Whether a caller says so of any column."""
    listed = itertools.islice(keys.values(), MOST) if isinstance(keys, Mapping) else [keys]
    return any(map(are_categories, listed))


def _categories(series: pd.Series) -> pd.Index:
    if not isinstance(series.dtype, pd.CategoricalDtype):
        raise ColumnTypeError(
            f'keys="categories" takes those of a categorical, but column {series.name!r} has none: list its keys.'
        )
    return series.dtype.categories


def key_tuples(
    given: object,
    names: Sequence[Hashable],
    typed: Callable[[int, Sequence[Any]], Sequence[Hashable]],
    by_name: Callable[[Mapping[Any, object]], Sequence[object] | None],
) -> tuple[Key, ...]:
    """The public list of keys that a caller passed, as tuples with one value for each column or expression.

    Parameters
    ----------
    given : list-like, or dict of list-likes
        Values for one column, tuples for several; a dict means all combinations of its lists.
    names : sequence of hashable
        Of the columns, for errors.
    typed : callable
        Takes the place of a column and its keys, and gives them as values of that column; or refuses them.
    by_name : callable
        Gives the lists of such a dict in the order of the columns, None if it has others.

    Raises
    ------
    ParameterError
        If there are none or more than `MOST`, one stands twice or has not one value for each column.
    ColumnTypeError
        If they are no list.
    """
    if isinstance(given, Mapping):
        lists = by_name(given)
        if lists is None:
            raise ParameterError(f"keys must be a dict with one list for each of {', '.join(map(str, names))}.")
        keys = _combined([typed(place, _listed(each)) for place, each in enumerate(lists)])
    elif len(names) == 1:
        keys = [(key,) for key in typed(0, _listed(given))]
    else:
        columns = zip(*(_parts(key, names) for key in _listed(given)), strict=True)
        keys = list(zip(*(typed(place, column) for place, column in enumerate(columns)), strict=True))
    if not keys:
        raise ParameterError("keys must list at least one group.")
    if len(set(keys)) < len(keys):
        raise ParameterError("a key is listed twice; list each key once.")
    return tuple(keys)


def are_observed(keys: object) -> bool:
    """Whether a caller says with the word "observed" that the keys which occur are public.

    Raises
    ------
    ParameterError
        For every word but that, "categories" and "private".
    """
    if not isinstance(keys, str) or keys in ("categories", "private"):
        return False
    if keys != "observed":
        raise ParameterError(
            f'keys must be a list or the word "observed", "private" or "categories", but are {shown(keys)}.'
        )
    return True


def undeclared_keys(asked: str, listed: str, declared: str) -> ParameterError:
    """The error for groups without a public list of keys.

    Parameters
    ----------
    asked : str
        The groups, as they were asked for.
    listed, declared : str
        How the front end takes a list, and how it is declared once for all.
    """
    return missing_argument(
        f"{asked} needs the public list of its groups, since which groups occur tells who is in the data: pass "
        f'{listed}, or declare them once with {declared}, or pass keys="private" with delta=1e-6, which shows those of '
        'many people, or keys="observed" to say that the keys themselves are public.',
        f"{listed}, the public list of the groups of {asked}",
    )


def _check_distinct(column: Hashable, series: pd.Series, levels: list[Hashable]) -> None:
    """Refuse keys that the column's precision cannot tell apart."""
    dtype: Any = _plain_column(series.iloc[:0]).dtype
    if dtype.kind != "f":
        return
    if dtype.itemsize > 8:
        raise ColumnTypeError(f'column {column!r} has dtype {dtype}, which has no group keys: use astype("float64").')
    if not _lookup(levels, dtype)[0].is_unique:
        raise ParameterError(f"two keys are the same number in column {column!r}, whose dtype is {dtype}: list one.")


def observed_keys(frame: pd.DataFrame, columns: tuple[Hashable, ...]) -> tuple[Key, ...]:
    """The keys that occur in the data, sorted; rows with a missing one are left out."""
    places = list(range(len(columns)))
    found = pd.concat([frame[column] for column in columns], axis=1)
    found.columns = pd.Index(places)
    found = found.dropna().drop_duplicates()  # first: integer categories with a missing row are no integers
    found = pd.concat([_plain_column(found[place]) for place in places], axis=1)
    found.columns = pd.Index(places)
    found = found.dropna().drop_duplicates().sort_values(list(found.columns))
    return tuple(tuple(plain_key(key) for key in row) for row in found.itertuples(index=False, name=None))


def key_codes(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> NDArray[np.int32]:
    """For each row the place of its key in the list, ``len(keys)`` for rows of no listed key.

    Returns
    -------
    ndarray of int32, shape (N,)
    """
    found = _level_codes(frame[columns[0]], list(dict.fromkeys(key[0] for key in keys)))
    if len(columns) == 1:
        return found
    # Column by column, a row's place among the distinct beginnings of the keys: never more than there are keys, so
    # that no product of places overflows.
    begun = list(dict.fromkeys(key[:1] for key in keys))
    for position in range(1, len(columns)):
        levels = list(dict.fromkeys(key[position] for key in keys))
        longer = list(dict.fromkeys(key[: position + 1] for key in keys))
        place_begun, place_level = _places_of(begun), _places_of(levels)
        wanted = [place_begun[key[:-1]] * (len(levels) + 1) + place_level[key[-1]] for key in longer]
        rows = found.astype(np.int64) * (len(levels) + 1) + _level_codes(frame[columns[position]], levels)
        found = _places(pd.Index(wanted), rows, len(longer))
        begun = longer
    return found


def _places_of(values: Sequence[Hashable]) -> dict[Hashable, int]:
    return {value: place for place, value in enumerate(values)}


def key_index(frame: pd.DataFrame, columns: tuple[Hashable, ...], keys: Sequence[Key]) -> pd.Index:
    """The index of an answer: the keys in their order, named and typed like the columns."""
    arrays = [_typed([key[i] for key in keys], frame[column].dtype) for i, column in enumerate(columns)]
    if len(columns) == 1:
        return arrays[0].rename(columns[0])
    return pd.MultiIndex.from_arrays(arrays, names=list(columns))


def _level_codes(series: pd.Series, levels: Sequence[Hashable]) -> NDArray[np.int32]:
    """For each row the place of its value among the levels, ``len(levels)`` if it is none of them."""
    none = len(levels)
    for_missing = levels.index(None) if None in levels else none
    series = series if _is_categorical(series) else _plain_column(series)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufO":
        index, place = _lookup(levels, series.dtype)
        codes = place[_places(index, series.to_numpy(), len(index))]
        if for_missing != none:
            codes[series.isna().to_numpy()] = for_missing
        return codes
    if _is_categorical(series):
        row_codes, uniques = series.cat.codes.to_numpy(), _plain_column(series.cat.categories.to_series()).array
    else:
        row_codes, uniques = pd.factorize(series)
    index, place = _lookup(levels, uniques.dtype)
    # Code -1 is missing, and takes the last place.
    of_unique = np.append(place[_places(index, uniques, len(index))], np.int32(for_missing))
    codes = np.empty(len(series), dtype=np.int32)
    for start in range(0, len(codes), PIECE):
        rows = slice(start, start + PIECE)
        np.take(of_unique, row_codes[rows], out=codes[rows], mode="wrap")
    return codes


def _lookup(levels: Sequence[Hashable], dtype: Any) -> tuple[pd.Index, NDArray[np.int32]]:
    """The levels that a column of this dtype can hold, in its dtype, and the place of each; then that of all others."""
    held = [level for level in levels if level is not None]
    typed = _held(held, dtype)
    if typed is None:  # one by one: a fraction is no integer, 2**70 no int64
        pairs = [(level, one) for level in held if (one := _held([level], dtype)) is not None]
        held = [level for level, _ in pairs]
        typed = _held(held, dtype)
    place_of = _places_of(levels)
    place = np.array([place_of[level] for level in held] + [len(levels)], dtype=np.int32)
    return _index(typed), place


def _held(levels: list[Hashable], dtype: Any) -> Any:
    """The levels as an array of this dtype, or None if one of them would change."""
    if pd.api.types.is_object_dtype(dtype):
        return pd.Index(levels, dtype=object)
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
    try:
        return pd.Index(typed, copy=False)
    except OverflowError:  # integers beyond every float, in which pandas 2 looks for dates
        return pd.Index(typed, dtype=object)


def _places(index: pd.Index, values: Any, none: int) -> NDArray[np.int32]:
    """Where each value stands in the index, ``none`` if it does not; in pieces, which need no copy of the column."""
    codes = np.empty(len(values), dtype=np.int32)
    as_objects = object if index.dtype == object else None
    for start in range(0, len(values), PIECE):
        rows = slice(start, start + PIECE)
        found = index.get_indexer(pd.Index(values[rows], dtype=as_objects, copy=False))
        codes[rows] = np.where(found < 0, none, found)
    return codes


def _typed(values: list[Hashable], dtype: Any) -> pd.Index:
    """An index of the column's dtype, or of one that holds all the keys where the column's cannot."""
    if isinstance(dtype, pd.CategoricalDtype):
        # The column's own categories may be observed values; the declared keys are public.
        listed = list(dict.fromkeys(value for value in values if value is not None))
        return pd.Index(pd.Categorical(values, categories=listed, ordered=dtype.ordered))
    if dtype == np.float16:
        dtype = np.dtype(np.float32)  # pandas has no index of half floats
    held = [value for value in values if value is not None]
    typed = _held(held, dtype)
    unchanged = typed is not None and list(_index(typed)) == held
    if unchanged and len(held) == len(values):
        return _index(typed)
    if unchanged and pd.api.types.is_object_dtype(dtype):
        return pd.Index(values, dtype=object)
    if unchanged and (not isinstance(dtype, np.dtype) or dtype.kind in "fmM"):
        return pd.Index(pd.array(values, dtype=dtype))
    try:
        return pd.Index(pd.array(values))
    except OverflowError:
        return pd.Index(values, dtype=object)


def _listed(keys: object) -> list[Any]:
    """The keys that a caller passed as something list-like, `MOST` at most."""
    wrong = (str, bytes, set, frozenset, Mapping, pd.DataFrame)
    listed = (
        None if isinstance(keys, wrong) or (isinstance(keys, np.ndarray) and keys.ndim != 1) else listed_values(keys)
    )
    if listed is None:
        raise ColumnTypeError(
            'keys must be a list of the public group keys, as in keys=["north", "south"]; "observed" or "private" in '
            "their place is an option of an answer, and cannot be declared."
        )
    return listed


def listed_values(values: object, what: str = "keys") -> list[Any] | None:
    """What a caller listed, read no further than `MOST`; None if it is nothing list-like."""
    if not isinstance(values, Iterable):
        return None
    try:
        listed = list(itertools.islice(values, MOST + 1))
    except TypeError:  # as an array without a dimension, or a pd.col expression, which only look like lists
        return None
    if len(listed) > MOST:
        number = len(values) if isinstance(values, Sized) else None
        raise _too_many(number, what)
    return listed


def _combined(lists: Sequence[Sequence[Hashable]]) -> list[Key]:
    """All combinations of the keys of several columns, if they are not too many: that is seen before there are any."""
    if (number := math.prod(map(len, lists))) > MOST:
        raise _too_many(number, "keys")
    return list(itertools.product(*lists))


def _too_many(number: int | None, what: str) -> ParameterError:
    many = "more" if number is None else f"{number:,}"
    way = ", ask in several queries" if what == "keys" else ""
    return ParameterError(f"{what} can be {MOST:,} at most, but are {many}: list fewer{way}.")


def _parts(key: object, columns: Sequence[Hashable]) -> tuple[Any, ...]:
    """The key of several columns as a tuple with one value for each."""
    if not isinstance(key, tuple | list) or len(key) != len(columns):
        raise ParameterError(
            f"each key must be a tuple of {len(columns)} values, for {', '.join(map(str, columns))}; "
            "a dict of lists means all their combinations."
        )
    return tuple(key)


def _plain_column(series: pd.Series) -> pd.Series:
    """The column as something that can be looked up: categories unwrapped, floats whose NaN is missing, plain dates."""
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
