"""The answers of a frame's data without each of its people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._model.query import Line
from pdrisk.engines.numpy.frame import Reading, column_values, present_rows

__all__ = ["answers_without_one"]


def answers_without_one(
    reading: Reading, line: Line, universe: Universe, summary: Summary
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The worlds of one ungrouped line, and whose they are.

    Parameters
    ----------
    reading : Reading
        Without groups.
    line, universe, summary
        As they were read.

    Returns
    -------
    (ndarray of float64, shape (n,); ndarray of bool, one for each row)
        The answer without each row that is used, and which rows are.
    """
    used = np.ones(len(reading.frame), dtype=bool) if reading.selected is None else reading.selected.copy()
    if line.column is None or not line.statistic.bounded:
        if line.column is not None:
            used &= present_rows(reading.frame[line.column])
        records = np.zeros(int(np.count_nonzero(used)))  # counted, whatever they are
    else:
        values = np.asarray(column_values(reading.frame[line.column]), dtype=np.float64)
        used &= ~np.isnan(values)
        records = np.clip(values[used], universe.lo, universe.hi)
    return line.statistic.leave_one_out(records, summary, universe), used
