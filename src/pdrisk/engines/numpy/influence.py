"""Privacy losses of the person of each row."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from pdrisk._core.people import without_each
from pdrisk._core.statistics import Distinct
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._core.surveys.weighted import Weighted
from pdrisk._core.universe import Rectangle
from pdrisk._mechanisms import Mechanism
from pdrisk._model.query import Line, Query
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.distinct import singles_of
from pdrisk.engines.numpy.frame import FrameReading, place_of, present_rows
from pdrisk.engines.numpy.person_records import Records


def losses_of_line(
    reading: FrameReading,
    line: int,
    mechanism: Mechanism,
    then: Callable[[FloatArray], object] = lambda _: None,
) -> FloatArray:
    """Privacy loss of each row's person by one line of the query; NaN for rows that are not used.

    ``mechanism``: calibrated to what one record may lose.
    ``then``: changes each piece in place while it is in the processor's cache.
    """
    records = records_read(reading, reading.query.lines[line], mechanism)
    if records.persons is not None:
        record_losses = _losses_of_several(reading, line, mechanism)
        then(record_losses)
    else:
        record_losses = _losses_of_records(records, mechanism, reading.summaries[line], then)
    if records.place is None:
        return record_losses
    return np.where(records.place >= 0, np.append(record_losses, np.nan)[records.place], np.nan)


def _losses_of_records(
    read: Records, mechanism: Mechanism, summary: Summary, then: Callable[[FloatArray], object]
) -> FloatArray:
    values = read.values
    result = np.empty(len(values))
    if not summary.n.any():
        result.fill(np.nan)
        return result
    within = mechanism.universe
    if isinstance(mechanism.statistic, Weighted) and isinstance(within, Rectangle):
        within = within.other
    lo, hi = within.lo, within.hi

    def fill(start: int) -> None:
        rows = slice(start, start + SIZE)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            records = np.asarray(values[rows], dtype=np.float64)
        left_out = np.isnan(records)
        if read.selected is not None:
            left_out |= ~read.selected[rows]
        row_summary = summary
        if read.codes is not None:
            groups = read.codes[rows]
            left_out |= groups == len(summary.n)
            row_summary = summary.of_rows(np.where(left_out, 0, groups))
        out = result[rows]
        out[:] = mechanism.loss_of_records(np.clip(records, lo, hi), row_summary)
        then(out)
        out[left_out] = np.nan

    with ThreadPoolExecutor(2) as threads:  # numpy lets go of the interpreter lock
        list(threads.map(fill, range(0, len(values), SIZE)))
    return result


def _losses_of_several(reading: FrameReading, line: int, mechanism: Mechanism) -> FloatArray:
    """Loss of each record's person, in all groups together, where a person may have several records.

    Of Laplace noise it is how far the answers move without them; of others each record costs what it may at most.
    """
    people, used = reading.people_and_rows(line)
    if mechanism.name == "laplace":
        statistic, universe = mechanism.statistic, mechanism.universe
        contributions = people.of_statistic(statistic)
        assert contributions is not None
        value = statistic.value(reading.summaries[line], universe)[contributions.groups]
        moved = np.abs(without_each(statistic, contributions, universe) - value)
        costs = moved * (float(mechanism.eps) / statistic.global_sensitivity(universe))
    else:
        costs = people.sizes.astype(np.float64) * float(mechanism.eps)
    total = np.zeros(int(people.persons.max(initial=-1)) + 1)
    np.add.at(total, people.whose, costs)
    result = np.full(len(used), np.nan)
    result[used] = np.minimum(total, float(mechanism.eps * reading.query.weight(line)))[people.persons]
    return result


def losses(reading: FrameReading, query: Query) -> FloatArray:
    """Privacy loss of each row's person by all releases together; NaN for rows that none uses."""
    total = np.full(len(reading.found.frame), np.nan)
    for lead in query.leads:
        release_losses = losses_of_line(reading, lead, query.mechanism(lead, reading.universes[lead]))
        total = np.where(np.isnan(release_losses), total, np.nan_to_num(total) + release_losses)
    return total


def losses_of_people(reading: FrameReading, query: Query) -> tuple[IntArray, FloatArray]:
    """One row of each person, and the person's loss by all releases together; NaN if none uses a row."""
    persons = reading.found.persons
    assert persons is not None
    number = int(persons.numbers.max(initial=-1)) + 1
    known = np.flatnonzero(persons.numbers >= 0)
    first = np.full(number, len(persons.numbers), dtype=np.int64)
    np.minimum.at(first, persons.numbers[known], known)
    total = np.full(number, np.nan)
    for lead in query.leads:
        rows = losses_of_line(reading, lead, query.mechanism(lead, reading.universes[lead]))
        used = np.flatnonzero(~np.isnan(rows) & (persons.numbers >= 0))
        person_losses = np.full(number, np.nan)
        if query.unit.groups > 1 and query.unit.rows == 1:  # rows in different groups are different records
            place = records_read(reading, query.lines[lead], query.mechanism(lead, reading.universes[lead])).place
            single = used if place is None else used[np.unique(place[used], return_index=True)[1]]
            person_losses = np.bincount(persons.numbers[single], rows[single], minlength=number)
            person_losses[np.setdiff1d(np.arange(number), persons.numbers[single])] = np.nan
        else:
            np.fmax.at(person_losses, persons.numbers[used], rows[used])
        total = np.where(np.isnan(person_losses), total, np.nan_to_num(total) + person_losses)
    occur = first < len(persons.numbers)  # not every number is somebody's
    return first[occur], total[occur]


def records_read(reading: FrameReading, line: Line, mechanism: Mechanism) -> Records:
    """Value of each record as a line reads it; NaN if it is missing, 0 if records are only counted.

    Of two columns, the value in the first, NaN where either is missing; of weighted records their weights. For a number
    of different values, 1 where the record alone has its value in its group, else 0.
    """
    frame_rows, place = reading.found, place_of(line)
    column, indicator, _ = place
    if isinstance(line.statistic, Distinct):
        records = frame_rows.records(place, None, distinct=True)
        return replace(
            records, values=singles_of(frame_rows.frame[column], records.selected, records.codes, frame_rows.groups)
        )
    if not line.statistic.bounded:
        records = frame_rows.records(place, None)
        if column is None or indicator is not None or records.place is not None:
            return replace(records, values=np.zeros(frame_rows.size_of(records)))
        return replace(records, values=np.where(present_rows(frame_rows.frame[column]), 0.0, np.nan))
    records = frame_rows.records(place, mechanism.universe)
    if records.others is None:
        return records
    values, others = (np.asarray(numbers, dtype=np.float64) for numbers in (records.values, records.others))
    if isinstance(line.statistic, Weighted):
        values, others = others, values
    return replace(records, values=np.where(np.isnan(others), np.nan, values))
