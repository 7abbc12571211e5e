"""Rows that a filter selects."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._guard import guarded
from pdrisk._model.nodes import Node, constants
from pdrisk._model.rowwise import RowwiseFilter, fitting
from pdrisk._model.rowwise.decide import decided
from pdrisk._model.rowwise.families import categories_of, dense, has_categories
from pdrisk.errors import PdriskError, QueryFailedError

__all__ = ["selected_rows"]

PIECE = 2**16  # rows evaluated at a time, which stay in the processor's cache


def selected_rows(frame: pd.DataFrame, where: RowwiseFilter, given: Any = None) -> NDArray[np.bool_]:
    """Which records are selected; a missing decision counts as no.

    Parameters
    ----------
    frame : DataFrame
    where : RowwiseFilter
    given : mask or callable, optional
        What it was judged from, where that could not be checked.

    Raises
    ------
    QueryFailedError
        Whatever goes wrong: one fixed sentence, for the cause could reveal a record.
    """

    def both() -> NDArray[np.bool_]:
        if where.rule is None:
            return _asked(given, frame)
        own = _decided(where.rule, {name: dense(frame[name]) for name in where.columns}, len(frame))
        return own if where.is_checked else own & _asked(given, frame)

    with suppress(PdriskError):  # what is wrong with a callable's mask is up to the data, too
        return guarded(both)
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


def _decided(rule: Node, columns: Mapping[Hashable, pd.Series], rows: int) -> NDArray[np.bool_]:
    if rows <= PIECE:
        return np.array(np.broadcast_to(decided(rule, columns).yes, rows))
    selected = np.empty(rows, dtype=bool)
    size = max(PIECE, 64 * _each_time(rule, columns))
    for start in range(0, rows, size):
        piece = slice(start, start + size)
        selected[piece] = decided(rule, {name: column.iloc[piece] for name, column in columns.items()}).yes
    return selected


def _each_time(rule: Node, columns: Mapping[Hashable, pd.Series]) -> int:
    """Numbers of categories and constants to look up for each piece of rows."""
    categories = sum(len(categories_of(column)) for column in columns.values() if has_categories(column))
    return categories + sum(len(one.value) for one in constants(rule) if isinstance(one.value, list))
