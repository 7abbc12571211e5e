"""Numbers of different values in groups of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.summary import Summary
from pdrisk._model.rowwise.families import missing_of


def distinct_values(
    series: pd.Series, selected: NDArray[np.bool_] | None, codes: NDArray[np.int32] | None, groups: int
) -> Summary:
    """Summary of the number of different values in each group, and of records alone with their value.

    ``series``: of any kind; missing values are no values.
    ``selected``: shape (N,)
    ``codes``: shape (N,). The group of each row, ``groups`` where it is in none.
    """
    group, value, _ = _pairs(series, selected, codes, groups)
    pairs, sizes = np.unique(group * (value.max(initial=0) + 1) + value, return_counts=True)
    of = pairs // (value.max(initial=0) + 1)
    return Summary(
        n=np.bincount(group, minlength=groups),
        distinct=np.bincount(of, minlength=groups),
        singles=np.bincount(of[sizes == 1], minlength=groups),
    )


def singles_of(
    series: pd.Series, selected: NDArray[np.bool_] | None, codes: NDArray[np.int32] | None, groups: int
) -> NDArray[np.float64]:
    """1 for each row alone with its value in its group, 0 for others, NaN for rows that are not used."""
    group, value, rows = _pairs(series, selected, codes, groups)
    _, place, sizes = np.unique(group * (value.max(initial=0) + 1) + value, return_inverse=True, return_counts=True)
    result = np.full(len(series), np.nan)
    result[rows] = sizes[place] == 1
    return result


def _pairs(
    series: pd.Series, selected: NDArray[np.bool_] | None, codes: NDArray[np.int32] | None, groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Group and number of the value of each row that is used, and which rows are."""
    value, _ = pd.factorize(series)
    rows = ~missing_of(series) & (value >= 0)
    if selected is not None:
        rows &= selected
    if codes is not None:
        rows &= codes < groups
    group = np.zeros(len(series), dtype=np.int64) if codes is None else codes.astype(np.int64)
    return group[rows], value[rows].astype(np.int64), rows
