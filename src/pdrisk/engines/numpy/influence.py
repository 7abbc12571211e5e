"""How far an answer moves when each row is taken out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Universe
from pdrisk._model.query import Line
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.frame import Reading, column_values, present_rows

__all__ = ["influences", "losses"]


def influences(
    reading: Reading,
    line: Line,
    universe: Universe,
    summary: Summary,
    factor: float,
    then: Callable[[FloatArray], Any],
) -> FloatArray:
    """``factor |f(D) - f(D - x)|`` of each row within its group, NaN where the row is not used.

    Parameters
    ----------
    reading : Reading
    line, universe, summary
        As they were read.
    factor : float
    then : callable
        Changes each piece in place while it is in the processor's cache.
    """
    values = _values(reading.frame, line)
    result = np.empty(len(values))
    if not summary.n.any():
        result.fill(np.nan)
        return result

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
        moved = line.statistic.influence(np.clip(records, universe.lo, universe.hi), own, universe)
        np.multiply(moved, factor, out=out)
        then(out)
        out[left_out] = np.nan

    with ThreadPoolExecutor(2) as threads:  # numpy lets go of the interpreter lock
        list(threads.map(fill, range(0, len(values), SIZE)))
    return result


def losses(reading: Reading, lines: tuple[Line, ...], eps: tuple[float, ...]) -> FloatArray:
    """The privacy loss of the person of each row by all lines together: the sum of ``eps |f(D) - f(D - x)| / GS``.

    NaN where no line uses the row.
    """
    total = np.full(len(reading.frame), np.nan)
    for line, loss, universe, summary in zip(lines, eps, reading.universes, reading.summaries, strict=True):
        per_unit = loss / line.statistic.global_sensitivity(universe)

        def at_most(out: FloatArray, loss: float = loss) -> None:
            np.minimum(out, loss, out=out)

        own = influences(reading, line, universe, summary, per_unit, at_most)
        total = np.where(np.isnan(own), total, np.nan_to_num(total) + own)
    return total


def _values(frame: pd.DataFrame, line: Line) -> NDArray[np.generic]:
    if line.column is None:
        return np.zeros(len(frame))
    if line.statistic.bounded:
        return column_values(frame[line.column])
    return np.where(present_rows(frame[line.column]), 0.0, np.nan)  # counted, whatever it is
