"""How many records have which sign and size, in powers of two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk.engines.numpy.chunks import SIZE

__all__ = ["LARGEST", "SIZES", "SMALLEST", "magnitude_counts"]

# A record of size e, as a float64, has 2**(e-1) <= |x| < 2**e. What is smaller counts as 0, what is larger as of the
# largest size.
SMALLEST, LARGEST = -329, 332  # bounds made of them can be declared
SIZES = LARGEST - SMALLEST + 1

_BIAS = 1022  # of the exponent in the bits of a float64, for this definition of size


def magnitude_counts(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number of records of each sign and size.

    Parameters
    ----------
    values : ndarray of bool, int or float, shape (N,)
        NaN is missing.

    Returns
    -------
    ndarray of int64, shape (2 SIZES + 1,)
        Negative ones from the largest size to the smallest, zeros, positive ones from the smallest to the largest.
        One record is in one of them.
    """
    counts = np.zeros(2 * SIZES + 1, dtype=np.int64)
    for start in range(0, len(values), SIZE):
        records = np.asarray(values[start : start + SIZE], dtype=np.float64)
        records = records[~np.isnan(records)]
        size = ((records.view(np.int64) >> 52) & 0x7FF) - _BIAS
        step = np.clip(size - SMALLEST + 1, 0, SIZES)
        counts += np.bincount(SIZES + np.where(records < 0, -step, step), minlength=len(counts))
    return counts
