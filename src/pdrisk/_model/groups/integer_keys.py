"""Integer keys, by a table of all whole numbers from the least to the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

PIECE = 2**16  # rows at a time, whose distances stay in the processor's cache
TABLE = 2**20  # entries at most, and no more than rows: else keys are looked up
DENSE = 2  # whole numbers for each row, at most: else they are numbered
MARKS = 8  # entries of one byte for each row, at most: else numbers are hashed


def codes_of_integers(index: pd.Index, place: NDArray[np.int32], values: NDArray[Any]) -> NDArray[np.int32] | None:
    """Codes of whole numbers from a table over all of them; None if the keys lie too far apart.

    Distances from the least key wrap round in the column's own width, so that those of smaller numbers lie beyond the
    largest key, too.

    ``index``: keys, each once.
    ``place``: shape (K + 1,). The code of each key, then that of all other values.
    ``values``: shape (N,)
    """
    if values.dtype.kind not in "iu" or not len(index) or index.dtype != values.dtype:
        return None
    integer_type, unsigned = values.dtype.type, np.dtype(f"u{values.dtype.itemsize}")
    least, span = integer_type(index.min()), int(index.max()) - int(index.min()) + 1
    if span > min(TABLE, len(values)):
        return None
    table = np.full(span + 1, place[-1])
    table[(index.to_numpy() - least).view(unsigned).astype(np.intp)] = place[:-1]
    are_codes = bool((table == np.arange(span + 1)).all())  # of keys one after another
    beyond = unsigned.type(min(span, np.iinfo(unsigned).max))
    codes = np.empty(len(values), dtype=np.int32)
    for start in range(0, len(values), PIECE):
        rows = slice(start, start + PIECE)
        distance = np.minimum((values[rows] - least).view(unsigned), beyond)
        if are_codes:
            codes[rows] = distance
        else:
            np.take(table, distance.astype(np.intp), out=codes[rows], mode="clip")
    return codes


def different_integers(values: NDArray[Any]) -> int:
    """How many different whole numbers there are."""
    if not len(values):
        return 0
    least, unsigned = values.min(), np.dtype(f"u{values.dtype.itemsize}")
    span = int(values.max()) - int(least) + 1
    if span > MARKS * len(values):
        return len(pd.unique(values))
    occurs = np.zeros(span, dtype=bool)
    for start in range(0, len(values), PIECE):
        occurs[(values[start : start + PIECE] - least).view(unsigned).astype(np.intp)] = True
    return int(np.count_nonzero(occurs))


def places_of_integers(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """The distance of each whole number from the least; None if many between them do not occur."""
    if not len(values):
        return None
    least = values.min()
    if int(values.max()) - int(least) >= DENSE * len(values):
        return None
    return (values - least).view(np.dtype(f"u{values.dtype.itemsize}")).astype(np.int64)
