"""Privacy losses of the person of each row."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.statistics import Distinct
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._mechanisms import Mechanism
from pdrisk._model.query import Line, Query
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.distinct import singles_of
from pdrisk.engines.numpy.frame import FrameReading, column_values, present_rows
from pdrisk.engines.numpy.selected import selected_rows

__all__ = ["losses", "losses_of_line", "values_read"]


def losses_of_line(
    reading: FrameReading,
    line: Line,
    mechanism: Mechanism,
    summary: Summary,
    then: Callable[[FloatArray], object] = lambda _: None,
) -> FloatArray:
    """The privacy loss of the person of each row by one line, NaN where the row is not used.

    Parameters
    ----------
    reading : FrameReading
    line, mechanism, summary
        As they were read.
    then : callable
        Changes each piece in place while it is in the processor's cache.
    """
    values = values_read(reading, line, len(summary.n))
    result = np.empty(len(values))
    if not summary.n.any():
        result.fill(np.nan)
        return result
    lo, hi = mechanism.universe.lo, mechanism.universe.hi

    def fill(start: int) -> None:
        rows = slice(start, start + SIZE)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            records = np.asarray(values[rows], dtype=np.float64)
        left_out = np.isnan(records)
        if reading.selected is not None:
            left_out |= ~reading.selected[rows]
        own = summary
        if reading.codes is not None:
            groups = reading.codes[rows]
            left_out |= groups == len(summary.n)
            own = summary.of_rows(np.where(left_out, 0, groups))
        out = result[rows]
        out[:] = mechanism.loss_of_records(np.clip(records, lo, hi), own)
        then(out)
        out[left_out] = np.nan

    with ThreadPoolExecutor(2) as threads:  # numpy lets go of the interpreter lock
        list(threads.map(fill, range(0, len(values), SIZE)))
    return result


def losses(reading: FrameReading, query: Query) -> FloatArray:
    """The privacy loss of the person of each row by all releases together; NaN where none uses the row."""
    total = np.full(len(reading.frame), np.nan)
    for lead, eps in zip(query.leads, query.shares, strict=True):
        line, universe, summary = query.lines[lead], reading.universes[lead], reading.summaries[lead]
        own = losses_of_line(reading, line, line.calibrated(eps, universe), summary)
        total = np.where(np.isnan(own), total, np.nan_to_num(total) + own)
    return total


def values_read(reading: FrameReading, line: Line, groups: int) -> NDArray[np.generic]:
    """What a line sees of each row: its value, NaN where it is missing; 0 for what is only counted.

    Of two columns, the value in the first, NaN where either is missing. For a number of different values, 1 where the
    row alone has its value in its group, else 0.
    """
    frame = reading.frame
    if line.indicator is not None:
        return selected_rows(frame, line.indicator)
    if line.column is None:
        return np.zeros(len(frame))
    if isinstance(line.statistic, Distinct):
        return singles_of(frame[line.column], reading.selected, reading.codes, groups)
    if line.other is not None:
        values = column_values(frame[line.column]).astype(np.float64)
        return np.where(present_rows(frame[line.other]), values, np.nan)
    if line.statistic.bounded:
        return column_values(frame[line.column])
    return np.where(present_rows(frame[line.column]), 0.0, np.nan)
