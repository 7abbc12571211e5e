"""Missing codes of a survey become missing before anything else is done with a column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk.engines.chunks import SIZE

__all__ = ["without_codes"]


def without_codes(frame: pd.DataFrame, missing: Mapping[Hashable, Sequence[Hashable]]) -> pd.DataFrame:
    """The frame with these codes missing; integers of numpy become floats, as with ``na_values`` of ``read_csv``."""
    if not missing:
        return frame
    result = frame.copy(deep=False)  # the columns that change are replaced, none is written to
    for column, codes in missing.items():
        result[column] = _masked(frame[column], codes)
    return result


def _masked(series: pd.Series, codes: Sequence[Hashable]) -> pd.Series | NDArray[np.generic]:
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        return _numbers(series.to_numpy(), codes)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        values = series.to_numpy().copy()
        values[series.isin(list(codes)).to_numpy()] = None
        return pd.Series(values, index=series.index, dtype=object)
    return series.mask(series.isin(list(codes)))


def _numbers(values: NDArray[np.generic], codes: Sequence[Hashable]) -> NDArray[np.generic]:
    """In pieces: the comparisons stay in the processor's cache."""
    result = np.empty(len(values), dtype=values.dtype if values.dtype.kind == "f" else np.float64)
    for start in range(0, len(values), SIZE):
        rows = slice(start, start + SIZE)
        piece, out = values[rows], result[rows]
        found = piece == codes[0]
        for code in codes[1:]:
            found |= piece == code
        out[:] = piece
        out[found] = np.nan
    return result
