"""Equivalence classes: the combinations of keys that occur, how many people share each, and who they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.keys import Codes
from pdrisk._disclosure.tables import RowsRead, Side
from pdrisk._model.declared.attributes import mark_exact

DENSE = 2**20  # combinations that are counted in an array, however few lines there are
LARGEST = 2**62  # combinations that are told apart by one number


@dataclass(frozen=True)
class Classes:
    """Equivalence classes of one or two tables."""

    sides: tuple[Side, ...]  # the tables; their key columns have the same labels
    # The class of each line of each table. Some numbers up to ``size`` may belong to no line.
    numbers: tuple[NDArray[np.int64], ...]
    size: int

    def people(self, side: int = 0) -> NDArray[np.int64]:
        """Number of people of a table in each class; a person with several rows there counts once."""
        one, number = self.sides[side], self.numbers[side]
        if one.persons is not None:
            number, _ = distinct_pairs(number, one.persons)
        if one.times is None:
            return np.bincount(number, minlength=self.size)
        return np.rint(np.bincount(number, weights=one.times, minlength=self.size)).astype(np.int64)

    def lines(self, side: int = 0) -> NDArray[np.int64]:
        """Number of a table's lines in each class."""
        return np.bincount(self.numbers[side], minlength=self.size)

    def weights(self, side: int = 0) -> NDArray[np.float64]:
        """Sums of weights of each class."""
        weights = self.sides[side].weights
        assert weights is not None  # asked for
        return np.bincount(self.numbers[side], weights=weights, minlength=self.size).astype(np.float64, copy=False)

    @cached_property
    def _examples(self) -> list[NDArray[np.int64]]:
        """A line of each class in each table; -1 where there is none."""
        examples = []
        for number in self.numbers:
            example = np.full(self.size, -1)
            example[number] = np.arange(len(number))
            examples.append(example)
        return examples

    def codes(self, at: int, chosen: NDArray[np.int64]) -> Codes:
        """Codes of these classes in a key column."""
        codes = np.zeros(len(chosen), dtype=np.int64)
        for side, example in zip(self.sides, self._examples, strict=True):
            lines = example[chosen]
            codes[lines >= 0] = side.columns[at].codes[lines[lines >= 0]]
        return codes

    def order(self, present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The numbers of these classes, sorted by their keys."""
        chosen = np.flatnonzero(present)
        ranks = [column.ranks()[self.codes(at, chosen)] for at, column in enumerate(self.sides[0].columns)]
        return chosen[np.lexsort(ranks[::-1])]

    def index(self, chosen: NDArray[np.int64]) -> pd.Index:
        """The keys of these classes; the levels in their order."""
        codes, levels = [], []
        for at, column in enumerate(self.sides[0].columns):
            ranks = column.ranks()
            places = ranks[self.codes(at, chosen)]
            codes.append(np.where(places == len(column.labels), -1, places))
            levels.append(column.labels.take(np.argsort(ranks[1:])))
        names = [column.name for column in self.sides[0].columns]
        index = pd.MultiIndex(levels=levels, codes=codes, names=names)  # type: ignore[arg-type]
        return index if len(codes) > 1 else index.get_level_values(0)

    def table(self, present: NDArray[np.bool_], values: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        """A table of classes, sorted by their keys."""
        chosen = self.order(present)
        return mark_exact(
            pd.DataFrame({name: column[chosen] for name, column in values.items()}, index=self.index(chosen))
        )

    def aligned(self, values: NDArray[Any], name: str, rows: RowsRead) -> pd.Series:
        """A number of classes for each row of the first table; missing for rows that were not counted."""
        numbers = values[self.numbers[0]]
        if rows.kept is not None:
            whole: Any = pd.array(np.zeros(len(rows.index), dtype=numbers.dtype))
            whole[~rows.kept] = pd.NA
            whole[rows.kept] = numbers
            return mark_exact(pd.Series(whole, index=rows.index, name=name))
        return mark_exact(pd.Series(numbers, index=rows.index, name=name))


def classes_of(*sides: Side) -> Classes:
    """The classes of one table, or of two whose key columns have the same labels."""
    numbers = [side.columns[0].codes.astype(np.int64) for side in sides]
    size = sides[0].columns[0].size
    for at, column in enumerate(sides[0].columns[1:], 1):
        if size * column.size > LARGEST:
            numbers, size = _compressed(numbers)
        for number, side in zip(numbers, sides, strict=True):
            number *= column.size
            number += side.columns[at].codes
        size *= column.size
    if size > max(DENSE, 4 * sum(map(len, numbers))):
        numbers, size = _compressed(numbers)
    return Classes(sides, tuple(numbers), size)


def _compressed(numbers: list[NDArray[np.int64]]) -> tuple[list[NDArray[np.int64]], int]:
    """The same numbers of all tables, without those that do not occur, and the end of their range."""
    codes, distinct = pd.factorize(np.concatenate(numbers))
    ends = np.cumsum([len(number) for number in numbers])[:-1]
    return np.split(codes.astype(np.int64, copy=False), ends), len(distinct)


def occurring(
    number: NDArray[np.int64], end: int, persons: Codes | None, times: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers below ``end`` that occur, in order, with their numbers of people."""
    distinct = None
    if end > max(DENSE, 4 * len(number)):
        number, distinct = pd.factorize(number, sort=True)
    if persons is not None:
        number, _ = distinct_pairs(number, persons)
    counts = np.rint(np.bincount(number, weights=times)).astype(np.int64)
    if distinct is None:
        distinct = np.flatnonzero(counts)
        counts = counts[distinct]
    return distinct, counts


def distinct_pairs(first: Codes, second: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs that occur of two arrays of numbers from 0, each once, in the order of both."""
    end = int(second.max()) + 1 if len(second) else 1
    pairs = np.sort(pd.unique(np.asarray(first, dtype=np.int64) * end + second))
    return pairs // end, pairs % end
