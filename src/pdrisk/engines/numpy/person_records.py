"""Records of people: the rows or numbers that count for each person, chosen before anything is summarised."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.contributions import DENSE, numbered
from pdrisk._core.lattice import numbers_grid
from pdrisk._core.once import once
from pdrisk._core.universe import Universe
from pdrisk._model.groups.integer_keys import different_integers, places_of_integers
from pdrisk._model.groups.keys import Key
from pdrisk._model.rowwise.families import missing_of
from pdrisk._model.unit import Secret, Unit
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.smallest_hashes import LARGEST, copies, rank_within, smallest_of_each

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one line: rows of the frame, or numbers made of each person's rows."""

    # `values`, `others`: of its columns; None where rows are only counted; shape (R,)
    values: Any
    others: Any = None
    selected: NDArray[np.bool_] | None = None  # shape (R,)
    codes: NDArray[np.int32] | None = None  # groups; shape (R,)
    # which record each row of the frame is part of, `NOBODY` if none; None where each row is its own; shape
    # (N,)
    place: NDArray[np.int64] | None = None
    persons: NDArray[np.int64] | None = None  # whose they are, where a person may have several; shape (R,)
    # how many there would be if every row counted; None where that is all of them; shape (G,)
    offered: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Persons:
    """People of a frame, by their id columns."""

    frame: pd.DataFrame
    unit: Unit
    secret: Secret  # gives 16 bytes or more that decide, with a row's own content, which rows of a person count

    @once
    def numbers(self) -> NDArray[np.int64]:
        """The number of each row's person, shape (N,); `NOBODY` where any part of the id is missing."""
        if self._places is not None:
            return self._places
        numbers: NDArray[np.int64] | None = None
        nobody = np.zeros(len(self.frame), dtype=bool)
        for column, (codes, different) in zip(self.unit.person, self._numbered, strict=True):
            nobody |= missing_of(self.frame[column])
            nobody |= codes < 0
            if numbers is not None:
                codes = pd.factorize(numbers * (len(different) + 1) + codes)[0].astype(np.int64, copy=False)
            numbers = codes
        assert numbers is not None
        return np.where(nobody, NOBODY, numbers) if nobody.any() else numbers

    @once
    def _places(self) -> NDArray[np.int64] | None:
        """Distances of whole ids from the least; None where there are no such ids, or they lie far apart."""
        return None if self._whole is None else places_of_integers(self._whole)

    @once
    def _numbered(self) -> list[tuple[NDArray[np.int64], pd.Series]]:
        """Of each id column the numbers of its values, -1 where one is missing, and the values that they number."""
        made = [pd.factorize(self._ids(column)) for column in self.unit.person]
        return [(codes.astype(np.int64, copy=False), pd.Series(of)) for codes, of in made]

    @once
    def nobody(self) -> NDArray[np.bool_] | None:
        """Which rows are of nobody known, shape (N,); None where there can be none."""
        return None if self._whole is not None else self.numbers == NOBODY

    def count(self, used: NDArray[np.bool_] | None) -> int:
        """How many different people have a row that is used."""
        if (ids := self._whole) is not None:
            return different_integers(ids if used is None else ids[used])
        kept = self.numbers != NOBODY
        return different_integers(self.numbers[kept if used is None else kept & used])

    @property
    def _whole(self) -> NDArray[np.integer] | None:
        """The ids, where they are one column of whole numbers of numpy, which are never missing."""
        if len(self.unit.person) > 1:
            return None
        series = self._ids(self.unit.person[0])
        return series.to_numpy() if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" else None

    def _ids(self, column: Hashable) -> pd.Series:
        """An id column; in the byte order of this machine, without which pandas does not tell its values apart."""
        series = self.frame[column]
        if isinstance(series.dtype, np.dtype) and not series.dtype.isnative:
            return series.astype(series.dtype.newbyteorder("="))
        return series

    @once
    def hashes(self) -> NDArray[np.uint64]:
        """A keyed hash of each row's person, shape (N,); any number where the id is missing."""
        return self._mixed(*map(self._hashes_of_ids, range(len(self.unit.person))))

    def _hashes_of_ids(self, part: int) -> NDArray[np.uint64]:
        """Those of one id column: of each value once, of objects that are equal, such as 1 and True, the least."""
        column = self._ids(self.unit.person[part])
        if self._places is not None:
            return self._hash(column)
        codes, different = self._numbered[part]
        hashes = np.full(len(different) + 1, LARGEST)
        if column.dtype == object:
            np.minimum.at(hashes, codes, self._hash(column))
        else:
            hashes[:-1] = self._hash(different)
        return hashes[codes]

    def records(
        self,
        values: tuple[NDArray[Any] | None, NDArray[Any] | None],
        universe: Universe | None,
        used: NDArray[np.bool_] | None,
        codes: NDArray[np.int32] | None,
        keys: Sequence[Key] | None = None,
        content: pd.Series | None = None,
    ) -> Records:
        """Records of each person: from rows that are used, hold a value and are in a group.

        ``values``: shape (N,). The numbers of one or two columns; NaN is missing.
        ``universe``: of the statistic, where it has bounds.
        ``used``: shape (N,)
        ``codes``: shape (N,). Groups, the number of keys where a row is in none.
        ``keys``: the keys of the groups, by which groups of a person are chosen: what else occurs would move their
            numbers.
        ``content``: what is read of the rows where that is no number.
        """
        kept = self.numbers != NOBODY
        if used is not None:
            kept &= used
        groups = 1 if keys is None else len(keys)
        if codes is not None:
            kept &= codes < groups
        read = [np.asarray(value, dtype=np.float64) for value in values if value is not None]
        for column in read:
            kept &= ~np.isnan(column)
        rows = np.flatnonzero(kept)
        persons = self.numbers if len(rows) == len(kept) else self.numbers[rows]
        group = None if codes is None else codes[rows].astype(np.int64)
        overall = self.unit.overall and group is not None
        is_counted = self.unit.rows == 1 and not read and content is None
        offered = self._offered(persons, group, groups, of_people=is_counted or self.unit.per_person is not None)
        pairs, size = persons, 1
        if keys is not None and group is not None and not overall:
            rows, persons, group = self._within_groups(rows, persons, group, keys)
            pairs, size = persons * groups + group, groups
        most = (int(persons.max(initial=NOBODY)) + 1) * size
        if self.unit.per_person is not None:
            made = self._collapsed(rows, persons, group, numbered(pairs, most), values, universe)
            return replace(made, offered=offered)
        if is_counted and not overall:  # rows that are only counted are all alike
            return replace(self._chosen(_one_of_each(pairs, rows, most), values, codes), offered=offered)

        def hashes(row_numbers: NDArray[np.intp]) -> list[NDArray[np.uint64]]:
            numbers = [(values_read[row_numbers] + 0.0).view(np.uint64) for values_read in read]  # -0.0 is 0.0
            if overall and codes is not None and keys is not None:  # a row is its group, too
                numbers.append(self._hashes_of(keys, codes[row_numbers]))
            return numbers if content is None else [*numbers, self._hash(content.iloc[row_numbers])]

        chosen = rows[self._within_rows(rows, numbered(pairs, most), hashes)]
        return replace(self._chosen(chosen, values, codes), offered=offered)

    def _offered(
        self, persons: NDArray[np.int64], group: NDArray[np.int64] | None, groups: int, *, of_people: bool
    ) -> NDArray[np.int64] | None:
        """Number of rows in each group, or of people in each group; None if all of them count."""
        if group is None:
            return None if of_people else np.array([len(persons)])
        if of_people:
            if groups <= self.unit.groups and not self.unit.overall:
                return None
            group = np.unique(persons * groups + group) % groups
        return np.bincount(group, minlength=groups)

    def _chosen(
        self, rows: NDArray[np.intp], values: tuple[NDArray[Any] | None, NDArray[Any] | None], codes: Any
    ) -> Records:
        """The rows that count, each as a record."""
        kept = np.zeros(len(self.frame), dtype=bool)
        kept[rows] = True
        return Records(*values, kept, codes, persons=self.numbers if self.unit.weight > 1 else None)

    def _within_groups(
        self, rows: NDArray[np.intp], persons: NDArray[np.int64], group: NDArray[np.int64], keys: Sequence[Key]
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
        """Rows in those groups of each person that count, chosen by the hash of person and key."""
        groups = len(keys)
        if groups <= self.unit.groups:
            return rows, persons, group
        _, first = np.unique(persons * groups + group, return_index=True)
        of, at = persons[first], group[first]
        too_many = np.bincount(of, minlength=persons.max(initial=NOBODY) + 1) > self.unit.groups
        if not too_many.any():
            return rows, persons, group
        order = np.lexsort((self._mixed(self.hashes[rows[first]], self._hashes_of(keys, at)), of))
        chosen = order[rank_within(of[order]) < self.unit.groups]
        kept = np.isin(persons * groups + group, (of * groups + at)[chosen])
        return rows[kept], persons[kept], group[kept]

    def _within_rows(
        self,
        rows: NDArray[np.intp],
        pairs: NDArray[np.intp],
        hashes: Callable[[NDArray[np.intp]], list[NDArray[np.uint64]]],
    ) -> NDArray[np.bool_]:
        """Rows that count: all rows of people with few, else those with the smallest hashes of their content.

        A row is its own values, so equal rows of a person are told apart by a number of their own, whichever has it.
        """
        kept = np.ones(len(rows), dtype=bool)
        are_of_several = (np.bincount(pairs) > self.unit.rows)[pairs] if len(rows) else kept
        if not are_of_several.any():
            return kept
        several: Any = slice(None)
        if 2 * np.count_nonzero(are_of_several) < len(rows):  # else it takes longer to pick them
            several = np.flatnonzero(are_of_several)
        several_rows, of = rows[several], pairs[several]
        contents = hashes(several_rows)
        if not contents:  # alike, too
            order = np.argsort(of, kind="stable")
            alike = np.empty(len(of), dtype=bool)
            alike[order] = rank_within(of[order]) < self.unit.rows
            kept[several] = alike
            return kept
        content = self._mixed(self.hashes[several_rows], *contents)
        again, number = copies(of, content)
        content[again] = self._mixed(content[again], number)
        kept[several] = smallest_of_each(of, content, self.unit.rows)
        return kept

    def _collapsed(
        self,
        rows: NDArray[np.intp],
        persons: NDArray[np.int64],
        group: NDArray[np.int64] | None,
        pairs: NDArray[np.intp],
        values: tuple[Any, Any],
        universe: Universe | None,
    ) -> Records:
        """One record for each person and group: the number that the rows become."""
        size = int(pairs.max(initial=-1)) + 1
        place = np.full(len(self.frame), NOBODY, dtype=np.int64)
        place[rows] = pairs
        of, whose = None, None
        if group is not None:
            of = np.zeros(size, dtype=np.int32)
            of[pairs] = group
        if self.unit.weight > 1:
            whose = np.zeros(size, dtype=np.int64)
            whose[pairs] = persons
        sides = (universe, getattr(universe, "other", None))
        numbers, others = (
            None if column is None else _collapse(str(self.unit.per_person), column[rows], pairs, size, side)
            for column, side in zip(values, sides, strict=True)
        )
        return Records(numbers, others, None, of, place, whose)

    def _hash(self, column: pd.Series) -> NDArray[np.uint64]:
        """A hash of each value of a column of any kind, by that value alone; 0 where it is missing.

        pandas hashes some columns in another way if one value of them is missing, or of another type.
        """
        present = ~missing_of(column)
        hashes = np.zeros(len(column), dtype=np.uint64)
        hashes[present] = _hashed(column[present], self.secret().hex()[:16])
        return hashes

    def _hashes_of(self, keys: Sequence[Key], codes: NDArray[Any]) -> NDArray[np.uint64]:
        """A hash of the key of each code, by that key alone."""
        hashes = np.zeros(len(keys), dtype=np.uint64)
        hashes[codes] = 1
        occurring = np.flatnonzero(hashes)
        texts = pd.Series([repr(keys[code]) for code in occurring.tolist()], dtype=object)
        hashes[occurring] = _hashed(texts, self.secret().hex()[:16])
        return hashes[codes]

    def _mixed(self, *parts: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """One hash of several numbers, keyed."""
        keys = np.frombuffer(self.secret()[:16], dtype=np.uint64)
        mixed: NDArray[np.uint64] = np.full(len(parts[0]), keys[0])
        for start in range(0, len(mixed), SIZE):
            piece = slice(start, start + SIZE)
            for part in parts:
                mixed[piece] ^= part[piece]
                mixed[piece] += keys[1]
                _scramble(mixed[piece])
        return mixed


def _hashed(column: pd.Series, key: str) -> NDArray[np.uint64]:
    """A keyed hash of each value of a column without missing ones."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _hashed(pd.Series(column.cat.categories), key)[column.cat.codes]
    if column.dtype.kind == "M":  # with a time zone an array of objects
        return np.asarray(pd.util.hash_pandas_object(column, index=False, hash_key=key), dtype=np.uint64)
    values = column.to_numpy()
    if values.dtype.kind == "f":
        values = values + 0  # -0.0 is 0.0
    if values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=False) != "string":
        values = pd.Series(values, dtype=object).map(_text).to_numpy(dtype=object)
    try:
        return pd.util.hash_array(values, hash_key=key)
    except UnicodeEncodeError:  # half of a pair of surrogates, which no text in UTF-8 has
        texts = [text.encode("utf-8", "backslashreplace").decode() for text in values]
        return pd.util.hash_array(np.array(texts, dtype=object), hash_key=key)


def _text(value: object) -> str:
    """A text for an object of any kind, texts themselves."""
    return value if isinstance(value, str) else f"{type(value).__name__} {value!r}"


def _scramble(numbers: NDArray[np.uint64]) -> None:
    """The finalizer of splitmix64 (Steele, Lea & Flood 2014), in place: every bit now depends on every bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        numbers ^= numbers >> np.uint64(shift)
        numbers *= np.uint64(factor)


def _one_of_each(pairs: NDArray[np.int64], rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """One row of each pair that occurs, whichever; pairs as for `numbered`."""
    if most > DENSE * len(pairs):
        return rows[~pd.Series(pairs).duplicated().to_numpy()]
    row_of_pair = np.full(most, NOBODY, dtype=np.intp)
    row_of_pair[pairs] = rows
    return row_of_pair[row_of_pair != NOBODY]


def _collapse(
    way: str, values: NDArray[Any], pairs: NDArray[np.intp], size: int, universe: Universe | None
) -> NDArray[np.float64]:
    """Number that the rows of each person become.

    Sums are those of integers on a public grid, so that no order of rows changes a digit: else the rows of one person
    could change the last digits of another's number.
    """
    if way == "count":
        return np.bincount(pairs, minlength=size).astype(np.float64)
    numbers = np.asarray(values, dtype=np.float64)
    if way in ("min", "any", "max", "all"):
        extremes = np.full(size, np.inf if way in ("min", "all") else -np.inf)
        (np.minimum if way in ("min", "all") else np.maximum).at(extremes, pairs, numbers)
        return extremes
    assert universe is not None  # of a sum or mean
    grid = numbers_grid(universe, is_sum=way == "sum")
    places = np.floor(np.clip(numbers - grid.origin, -grid.reach, grid.reach) * grid.per_unit + 0.5).astype(np.int64)
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, pairs, places)
    total = sums.astype(np.float64) / grid.per_unit
    if way == "sum":
        return total
    return grid.origin + total / np.maximum(np.bincount(pairs, minlength=size), 1)
