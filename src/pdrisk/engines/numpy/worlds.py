"""The worlds that lack one of the people of a frame's data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, Summary
from pdrisk._mechanisms import Mechanism
from pdrisk._model.query import Line
from pdrisk.engines.numpy.frame import FrameReading
from pdrisk.engines.numpy.influence import values_read

__all__ = ["worlds_without_one"]


def worlds_without_one(
    reading: FrameReading, line: Line, mechanism: Mechanism, summary: Summary
) -> tuple[FloatArray, float, NDArray[np.bool_]]:
    """The worlds of one ungrouped line, and whose they are.

    Parameters
    ----------
    reading : FrameReading
        Without groups.
    line, mechanism, summary
        As they were read.

    Returns
    -------
    (ndarray of float64, shape (n,) or (2, n); float; ndarray of bool, one for each row)
        The place of the world without each row that is used, the unit of places that makes one nat of privacy loss,
        and which rows are used.
    """
    values = np.asarray(values_read(reading, line, 1), dtype=np.float64)
    used = ~np.isnan(values)
    if reading.selected is not None:
        used &= reading.selected
    records = np.clip(values[used], mechanism.universe.lo, mechanism.universe.hi)
    return *mechanism.worlds(records, summary), used
