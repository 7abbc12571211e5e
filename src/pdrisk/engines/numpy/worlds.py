"""The worlds that lack one of the people of a frame's data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.people import without_each
from pdrisk._core.summary import FloatArray
from pdrisk._mechanisms import Mechanism
from pdrisk.engines.numpy.frame import FrameReading
from pdrisk.engines.numpy.influence import records_read


def worlds_without_person(reading: FrameReading, mechanism: Mechanism) -> tuple[FloatArray, float]:
    """Worlds without each person, who may have several records, for noise of one number.

    ``reading``: of a query without groups.
    ``mechanism``: with noise that is added to the answer, calibrated to what one record may lose for a person to
        lose 1.
    Returns: shape (people,). The answer without all records of each person, and the distance that makes one nat of
        privacy loss.
    """
    people = reading.people(0)
    assert people is not None
    scale = mechanism.scale
    contributions = people.of_statistic(mechanism.statistic)
    assert scale is not None and contributions is not None
    return without_each(mechanism.statistic, contributions, mechanism.universe), scale


def worlds_without_one(reading: FrameReading, mechanism: Mechanism) -> tuple[FloatArray, float, NDArray[np.int64]]:
    """Worlds of a query's only line, without groups, and the person missing in each.

    Parameters
    ----------
    reading : FrameReading
    mechanism : Mechanism

    Returns
    -------
    (ndarray of float64, shape (n,) or (2, n); float; ndarray of int64, shape (n,))
        The place of the world without each record that is used, the unit of places that makes one nat of privacy loss,
        and a row of the frame that the record is made of.
    """
    line_records = records_read(reading, reading.query.lines[0], mechanism)
    values = np.asarray(line_records.values, dtype=np.float64)
    used = ~np.isnan(values)
    if line_records.selected is not None:
        used &= line_records.selected
    records = np.clip(values[used], mechanism.universe.lo, mechanism.universe.hi)
    rows = np.arange(len(values))
    if line_records.place is not None:
        rows = np.unique(line_records.place, return_index=True)[1][-len(values) :] if len(values) else rows
    return *mechanism.worlds(records, reading.summaries[0]), rows[used]
