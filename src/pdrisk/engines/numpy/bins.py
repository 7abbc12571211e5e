"""Numbers of records in bins: between edges, or of each sign and size in powers of two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import Bins, FloatArray, IntArray, Summary
from pdrisk.engines.numpy.chunks import SIZE

# A record of size e, as a float64, has 2**(e-1) <= |x| < 2**e. What is smaller counts as 0, what is larger as of the
# largest size.
SMALLEST, LARGEST = -329, 332  # bounds made of them can be declared
SIZES = LARGEST - SMALLEST + 1

_BIAS = 1022  # of the exponent in the bits of a float64, for this definition of size


def summary_of_bins(values: NDArray[np.generic], bins: Bins | None) -> Summary:
    """Summary of the number of records in each bin, with those moved into it; without bins, of each size.

    ``values``: shape (N,). NaN is missing.
    """
    if bins is None:
        return Summary(size_counts(values))
    edges = np.array(bins.edges)
    counts, moved = (np.zeros(len(edges) - 1, dtype=np.int64) for _ in range(2))
    for records in _pieces(values):
        if bins.clamps:
            moved[0] += np.count_nonzero(records < edges[0])
            moved[-1] += np.count_nonzero(records > edges[-1])
            records = np.clip(records, edges[0], edges[-1])
        counts += np.histogram(records, edges)[0]
    return Summary(counts, clamped=moved)


def size_counts(values: NDArray[np.generic]) -> IntArray:
    """Number of records of each sign and size.

    ``values``: shape (N,). NaN is missing.
    Returns: shape (2 SIZES + 1,). Negative ones from the largest size to the smallest, zeros, positive ones from
        the smallest to the largest. One record is in one of them.
    """
    counts = np.zeros(2 * SIZES + 1, dtype=np.int64)
    for records in _pieces(values):
        size = ((records.view(np.int64) >> 52) & 0x7FF) - _BIAS
        step = np.clip(size - SMALLEST + 1, 0, SIZES)
        counts += np.bincount(SIZES + np.where(records < 0, -step, step), minlength=len(counts))
    return counts


def _pieces(values: NDArray[np.generic]) -> Iterator[FloatArray]:
    """The records in pieces that stay in the processor's cache."""
    for start in range(0, len(values), SIZE):
        records = np.asarray(values[start : start + SIZE], dtype=np.float64)
        yield records[~np.isnan(records)]
