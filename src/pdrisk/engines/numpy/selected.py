"""Rows that a filter selects, and values of a condition."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._guard import guarded
from pdrisk._model.expressions.nodes import Node, constants
from pdrisk._model.rowwise import RowwiseFilter, fitting
from pdrisk._model.rowwise.decide import holds
from pdrisk._model.rowwise.families import categories_of, dense, has_categories
from pdrisk.errors import PdriskError, QueryFailedError

PIECE = 2**16  # rows evaluated at a time, which stay in the processor's cache
Values = TypeVar("Values", NDArray[np.bool_], NDArray[np.float64])


def selected_rows(frame: pd.DataFrame, where: RowwiseFilter, given: Any = None) -> NDArray[np.bool_]:
    """Which records are selected: those for which the condition is known to be true.

    ``given``: what it was judged from, where that could not be checked.
    """

    def both() -> NDArray[np.bool_]:
        if where.rule is None:
            return _asked(given, frame)
        known = _by_pieces(where.rule, columns_of(frame, where), len(frame), np.empty(len(frame), dtype=bool), holds)
        return known if where.is_checked else known & _asked(given, frame)

    return _failing_silently(both)


def condition_values(frame: pd.DataFrame, condition: RowwiseFilter) -> NDArray[np.float64]:
    """A checked condition as numbers: 1 where it is true, 0 where it is false, NaN where it is unknown.

    Fails as `selected_rows` does.
    """
    rule, columns = condition.rule, columns_of(frame, condition)
    assert rule is not None
    return _failing_silently(lambda: _by_pieces(rule, columns, len(frame), np.empty(len(frame)), truth_numbers))


def truth_numbers(rule: Node, columns: Mapping[Hashable, pd.Series]) -> NDArray[np.float64]:
    """The same for columns that are prepared."""
    true, false = (holds(rule, columns, negated) for negated in (False, True))
    return np.where(true, 1.0, np.where(false, 0.0, np.nan))


def columns_of(frame: pd.DataFrame, condition: RowwiseFilter) -> dict[Hashable, pd.Series]:
    """The columns that a condition reads."""
    return {name: dense(frame[name]) for name in condition.columns}


def _failing_silently(made: Callable[[], Values]) -> Values:
    with suppress(PdriskError):  # what is wrong with a callable's mask is up to the data, too
        return guarded(made)
    raise QueryFailedError  # out here: inside a handler the cause would travel along as __context__


def _asked(given: Any, frame: pd.DataFrame) -> NDArray[np.bool_]:
    if callable(given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = given(frame)
    mask = fitting(given, frame)
    if isinstance(mask, np.ndarray):
        return mask
    plain: NDArray[np.bool_] = mask.to_numpy() if mask.dtype == bool else mask.to_numpy(dtype=bool, na_value=False)
    return plain


def _by_pieces(
    rule: Node,
    columns: Mapping[Hashable, pd.Series],
    rows: int,
    result: Values,
    decide: Callable[[Node, Mapping[Hashable, pd.Series]], Values],
) -> Values:
    """Decisions for a few rows at a time, written into ``result``."""
    size = rows if rows <= PIECE else max(PIECE, 64 * _each_time(rule, columns))
    for start in range(0, rows, size or 1):
        piece = slice(start, start + size)
        result[piece] = decide(rule, {name: column.iloc[piece] for name, column in columns.items()})
    return result


def _each_time(rule: Node, columns: Mapping[Hashable, pd.Series]) -> int:
    """Numbers of categories and constants to look up for each piece of rows."""
    categories = sum(len(categories_of(column)) for column in columns.values() if has_categories(column))
    return categories + sum(len(one.value) for one in constants(rule) if isinstance(one.value, list))
