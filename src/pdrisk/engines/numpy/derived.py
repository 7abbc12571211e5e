"""Derived columns of a frame, computed after they are paid for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.rowwise.decide import computed
from pdrisk._model.rowwise.derived import Derived
from pdrisk._model.rowwise.families import dense
from pdrisk.engines.numpy.codes import without_codes
from pdrisk.engines.numpy.selected import PIECE, truth_numbers

Values = pd.api.extensions.ExtensionArray | NDArray[np.float64]


def with_derived(frame: pd.DataFrame, derived: Sequence[Derived], stored: pd.DataFrame) -> pd.DataFrame:
    """The frame with these derived columns, in place of stored ones of the same name."""
    result = frame.copy(deep=False) if derived else frame
    for derived_column in derived:
        earlier_names = {one.name for one in derived_column.earlier}
        source = stored[[column for column in derived_column.columns if column not in earlier_names]]
        result[derived_column.name] = _values(
            derived_column, without_codes(with_derived(source, derived_column.earlier, stored), derived_column.missing)
        )
    return result


def placeholder(one: Derived, rows: int) -> Values:
    """Column of the right type before its values are computed."""
    return _array(np.full(rows, np.nan), one.is_truth)


def _values(one: Derived, frame: pd.DataFrame) -> pd.Series:
    """Values of a derived column, from a frame with the columns it reads, missing codes removed."""
    columns = {name: dense(frame[name]) for name in one.columns}
    numbers = np.empty(len(frame))
    for start in range(0, len(frame), PIECE):
        rows = slice(start, start + PIECE)
        piece = {name: column.iloc[rows] for name, column in columns.items()}
        numbers[rows] = (truth_numbers if one.is_truth else computed)(one.rule, piece)
    return pd.Series(_array(numbers, one.is_truth), index=frame.index, copy=False)


def _array(numbers: NDArray[np.float64], is_truth: bool) -> Values:
    return pd.arrays.BooleanArray(numbers == 1, np.isnan(numbers)) if is_truth else numbers
