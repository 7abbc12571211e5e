"""Missing codes of a survey become missing before anything else is done with a column."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.rowwise.decide import equal_to_one_of
from pdrisk._model.rowwise.families import dense
from pdrisk.engines.numpy.chunks import SIZE

FEW = 16  # codes that are compared one by one


def without_codes(frame: pd.DataFrame, missing: Mapping[Hashable, Sequence[Hashable]]) -> pd.DataFrame:
    """The frame with these codes missing.

    A column's new dtype depends on its old one alone: integers of numpy become floats, as with ``na_values`` of
    ``read_csv``, truth values of numpy become ``boolean``, others stay.
    """
    if not missing:
        return frame
    result = frame.copy(deep=False)  # the columns that change are replaced, none is written to
    for column, codes in missing.items():
        result[column] = _masked(frame[column], list(codes))
    return result


def _masked(series: pd.Series, codes: list[Any]) -> pd.Series:
    series = dense(series)
    dtype: Any = series.dtype
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if kind and kind in "iuf":
        return pd.Series(_floats(series.to_numpy(), codes), index=series.index, copy=False)
    coded = equal_to_one_of(series, codes)
    if kind == "O":
        values = series.to_numpy().copy()
        values[coded] = None
        return pd.Series(values, index=series.index, dtype=object)
    return (series.astype("boolean") if kind == "b" else series).mask(coded)


def _floats(values: NDArray[np.generic], codes: list[Any]) -> NDArray[np.generic]:
    result = np.empty(len(values), dtype=values.dtype if values.dtype.kind == "f" else np.float64)
    for start in range(0, len(values), SIZE):
        piece, out = values[start : start + SIZE], result[start : start + SIZE]
        out[:] = piece
        out[_equal(piece, codes)] = np.nan
    return result


def _equal(piece: NDArray[np.generic], codes: list[Any]) -> NDArray[np.bool_]:
    """Which numbers are one of the codes, in the precision of the column; pieces stay in the processor's cache."""
    dtype: Any = piece.dtype
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        held = [code for code in codes if abs(code) <= largest or abs(code) == math.inf]
    else:
        limits = np.iinfo(dtype)
        held = [code for code in codes if limits.min <= code <= limits.max and code % 1 == 0]
    if len(held) > FEW:
        return np.isin(piece, np.array(held, dtype=piece.dtype))
    coded = np.zeros(len(piece), dtype=bool)
    for code in held:
        coded |= piece == code
    return coded
