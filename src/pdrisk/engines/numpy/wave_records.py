"""Records of people's changes between two waves: one difference for each person who is in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._model.groups.keys import Key
from pdrisk.engines.numpy.person_records import NOBODY, Persons, Records
from pdrisk.engines.numpy.selected import selected_rows


def change_records(
    persons: Persons,
    values: tuple[NDArray[Any] | None, NDArray[Any] | None],
    used: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    keys: Sequence[Key] | None,
) -> Records:
    """Records of people with a value in both waves: the later number less the earlier one, with the later weight.

    ``persons``: their unit has waves.
    ``values, used, codes, keys``: As for `Persons.records`. Groups are those of the later rows, and so is what a
        second column holds: weights.
    """
    waves, (numbers_read, weights) = persons.unit.waves, values
    assert waves is not None
    persons_by_wave = replace(persons, unit=persons.unit.in_each_wave)
    numbers = persons_by_wave.numbers
    size = int(numbers.max(initial=NOBODY)) + 1
    in_waves = [selected_rows(persons.frame, condition) for condition in waves.conditions]
    if used is not None:
        in_waves = [rows & used for rows in in_waves]
    if weights is not None:  # rows without one are no part of a record
        in_waves[1] = in_waves[1] & ~np.isnan(np.asarray(weights, dtype=np.float64))
    before = persons_by_wave.records((numbers_read, None), waves.universe, in_waves[0], None)
    after = persons_by_wave.records(values, waves.universe, in_waves[1], codes, keys)
    with np.errstate(all="ignore"):  # infinite numbers have no difference, and a warning would tell of them
        change = _of_each(after, numbers, size, after.values) - _of_each(before, numbers, size, before.values)
    known = ~np.isnan(change)
    place_of = np.where(known, np.cumsum(known) - 1, NOBODY)
    place = np.full(len(numbers), NOBODY, dtype=np.int64)
    part = (in_waves[0] | in_waves[1]) & (numbers != NOBODY)
    if numbers_read is not None:
        part &= ~np.isnan(np.asarray(numbers_read, dtype=np.float64))
    rows = np.flatnonzero(part)
    place[rows] = place_of[numbers[rows]]
    groups = None
    if codes is not None:
        groups = _of_each(after, numbers, size, after.codes)[known].astype(np.int32)
    known_changes = change[known] if numbers_read is not None else None
    others = _of_each(after, numbers, size, after.others)[known] if weights is not None else None
    return Records(known_changes, others, None, groups, place)


def _of_each(records: Records, numbers: NDArray[np.int64], size: int, of: NDArray[Any] | None) -> NDArray[np.float64]:
    """What the one record of each person has, shape (P,); NaN without a record, and 0 if records are only counted."""
    by_person = np.full(size, np.nan)
    if records.place is None:
        assert records.selected is not None
        rows = at = np.flatnonzero(records.selected)
    else:
        rows = np.flatnonzero(records.place != NOBODY)
        at = records.place[rows]
    by_person[numbers[rows]] = 0.0 if of is None else np.asarray(of)[at]
    return by_person
