"""Group keys: the public list that a caller passes, and the words that stand for one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._model.asked_groups import SingleKeys
from pdrisk._model.missing_arguments import missing_argument
from pdrisk.errors import ColumnTypeError, ParameterError

Key = tuple[Hashable, ...]

SHOWN = 10  # columns of a frame of keys in an error
MOST = 10_000_000  # keys of one query: so many noisy values take 20 seconds, by dates minutes, and three gigabytes


def are_categories(keys: object) -> bool:
    """Whether keys are the word "categories": the column's categories are a public code book."""
    return isinstance(keys, str) and keys == "categories"


def take_categories(keys: object) -> bool:
    """Whether keys are the word "categories" for any column."""
    listed = itertools.islice(keys.values(), MOST) if isinstance(keys, Mapping) else [keys]
    return any(map(are_categories, listed))


def key_tuples(
    given: object,
    names: Sequence[Hashable],
    typed: Callable[[int, Sequence[Any]], Sequence[Hashable]],
    by_name: Callable[[Mapping[Any, object]], Sequence[object] | None],
) -> Sequence[Key]:
    """The public list of keys that a caller passed, as tuples with one value for each column or expression.

    ``given``: values for one column, tuples for several; a dict means all combinations of its lists, the rows of a
        frame the keys that there are.
    ``names``: of the columns, for errors.
    ``typed``: takes the place of a column and its keys, and gives them as values of that column; or refuses them.
    ``by_name``: gives the lists of such a dict, or of a frame's columns, in the order of the columns; None if it
        has not all.
    """
    of_frame = columns_of_frame(given)
    if of_frame is not None:
        lists = by_name(of_frame)
        if lists is None or len(lists) < len(of_frame):
            here = ", ".join(map(shown, itertools.islice(of_frame, SHOWN))) or "no column"
            raise ParameterError(
                f"a frame of keys has one column for each of {', '.join(map(str, names))} and no other, and one row "
                f"for each key, but this one has {here}."
            )
        columns = [typed(place, list(values)) for place, values in enumerate(lists)]  # type: ignore[call-overload]
        keys = _side_by_side(columns)
    elif isinstance(given, Mapping):
        lists = by_name(given)
        if lists is None:
            raise ParameterError(f"keys must be a dict with one list for each of {', '.join(map(str, names))}.")
        keys = _combined([typed(place, _listed(values)) for place, values in enumerate(lists)])
    elif len(names) == 1:
        keys = SingleKeys(typed(0, _listed(given)))
    else:
        parts = zip(*(_parts(key, names) for key in _listed(given)), strict=True)
        keys = _side_by_side([typed(place, column) for place, column in enumerate(parts)])
    if not keys:
        raise ParameterError("keys must list at least one group.")
    if len(set(keys.values if isinstance(keys, SingleKeys) else keys)) < len(keys):
        raise ParameterError("a key is listed twice; list each key once.")
    return keys


def are_observed(keys: object) -> bool:
    """Whether keys are the word "observed": the keys that occur are public; raises as `check_words`."""
    check_words(keys)
    return isinstance(keys, str) and keys == "observed"


def check_words(keys: object) -> None:
    """Refuse words that mean nothing as keys."""
    if isinstance(keys, str) and keys not in ("observed", "categories", "private"):
        raise ParameterError(
            f'keys must be a list or the word "observed", "private" or "categories", but are {shown(keys)}.'
        )
    listed = itertools.islice(keys.items(), MOST) if isinstance(keys, Mapping) else ()
    for column, column_keys in listed:
        if isinstance(column_keys, str) and column_keys in ("observed", "private"):
            raise ParameterError(
                f'"{column_keys}" is for all columns of the groups together, but stands here for {shown(column)} '
                f'alone: pass keys="{column_keys}", or list the keys of this column, too.'
            )


def undeclared_keys(asked: str, listed: str, declared: str, hint: str = "") -> ParameterError:
    """The error for groups without a public list of keys.

    ``asked``: the groups, as they were asked for.
    ``listed, declared``: how the front end takes a list, and how it is declared once for all.
    ``hint``: what a name in the caller's dict may be meant for.
    """
    return missing_argument(
        f"{asked} needs the public list of its groups, because the groups that occur reveal who is in the data: pass "
        f'{listed}, or declare them once with {declared}, or pass keys="private" with delta=1e-6, which shows those of '
        'many people, or keys="observed" to say that the keys themselves are public.' + hint,
        f"{listed}, the public list of the groups of {asked}",
    )


def _listed(keys: object) -> list[Any]:
    """The keys that a caller passed in something list-like, at most `MOST`."""
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


def columns_of_frame(keys: object) -> dict[Hashable, list[Any]] | None:
    """The columns of a pandas, Polars or Arrow frame of keys, at most `MOST` rows; None for anything else."""
    kind = type(keys).__module__.partition(".")[0], type(keys).__name__
    if not isinstance(keys, pd.DataFrame) and kind not in (("polars", "DataFrame"), ("pyarrow", "Table")):
        return None
    frame: Any = keys
    if len(frame) > MOST:
        raise _too_many(len(frame), "keys")
    if isinstance(keys, pd.DataFrame):
        if not keys.columns.is_unique:
            raise ParameterError("a frame of keys has two columns of one name: rename one.")
        return {name: list(keys[name]) for name in keys.columns}
    columns: dict[Hashable, list[Any]] = frame.to_dict(as_series=False) if kind[0] == "polars" else frame.to_pydict()
    return columns


def listed_values(values: object, what: str = "keys") -> list[Any] | None:
    """The values of something list-like, read no further than `MOST`; None for anything else."""
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


def _side_by_side(columns: Sequence[Sequence[Hashable]]) -> Sequence[Key]:
    """The keys whose values stand in the same place of each column."""
    return SingleKeys(columns[0]) if len(columns) == 1 else tuple(zip(*columns, strict=True))


def _combined(lists: Sequence[Sequence[Hashable]]) -> Sequence[Key]:
    """All combinations of the keys of several columns; too many are refused before they are made."""
    if (number := math.prod(map(len, lists))) > MOST:
        raise _too_many(number, "keys")
    return SingleKeys(lists[0]) if len(lists) == 1 else tuple(itertools.product(*lists))


def _too_many(number: int | None, what: str) -> ParameterError:
    many = "more" if number is None else f"{number:,}"
    way = ", ask in several queries" if what == "keys" else ""
    return ParameterError(f"{what} can be {MOST:,} at most, but are {many}: list fewer{way}.")


def _parts(key: object, columns: Sequence[Hashable]) -> tuple[Any, ...]:
    """The key of several columns as a tuple with one value for each."""
    if not isinstance(key, tuple | list) or len(key) != len(columns):
        raise ParameterError(
            f"each key must be a tuple of {len(columns)} values, for {', '.join(map(str, columns))}; "
            "a dict of lists means all their combinations, a frame with these columns the keys in its rows."
        )
    return tuple(key)


def observed_of_several() -> ParameterError:
    """The error for observed keys of several tables."""
    return ParameterError(
        'keys="observed" takes the keys that occur in one table. Here several tables are joined, and the keys that '
        "occur then reveal who is in both: pass the public list."
    )
