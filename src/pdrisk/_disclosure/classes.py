"""Equivalence classes: the combinations of keys that occur, how many people share each, and who they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._disclosure.keys import Codes, KeyColumn
from pdrisk._disclosure.tables import RowsRead, Side
from pdrisk._model.attributes import mark_exact

__all__ = ["Classes", "classes_of", "distinct_pairs"]

DENSE = 2**20  # combinations that are counted in an array, however few lines there are
LARGEST = 2**62  # combinations that are told apart by one number


@dataclass(frozen=True)
class Classes:
    """Classes of one or two tables.

    Attributes
    ----------
    columns : tuple of KeyColumn
        The keys of all lines of all tables, one table after the other.
    number : ndarray of int64
        The class of each line. Some numbers up to ``size`` may belong to no line.
    size : int
    sides : tuple of Side
    """

    columns: tuple[KeyColumn, ...]
    number: NDArray[np.int64]
    size: int
    sides: tuple[Side, ...]

    def numbers(self, side: int) -> NDArray[np.int64]:
        """The classes of one table's lines."""
        start = sum(len(each.columns[0].codes) for each in self.sides[:side])
        return self.number[start : start + len(self.sides[side].columns[0].codes)]

    def people(self, side: int = 0) -> NDArray[np.int64]:
        """How many people of a table are in each class; a person with several rows there counts once."""
        one, number = self.sides[side], self.numbers(side)
        if one.persons is not None:
            number, _ = distinct_pairs(number, one.persons)
        if one.times is None:
            return np.bincount(number, minlength=self.size)
        return np.rint(np.bincount(number, weights=one.times, minlength=self.size)).astype(np.int64)

    def lines(self, side: int = 0) -> NDArray[np.int64]:
        """How many lines of a table are in each class."""
        return np.bincount(self.numbers(side), minlength=self.size)

    def weights(self, side: int = 0) -> NDArray[np.float64]:
        """Sums of weights of each class."""
        own = self.sides[side].weights
        assert own is not None  # asked for
        return np.bincount(self.numbers(side), weights=own, minlength=self.size).astype(np.float64, copy=False)

    @cached_property
    def _example(self) -> NDArray[np.int64]:
        """A line of each class; -1 where there is none."""
        example = np.full(self.size, -1)
        example[self.number] = np.arange(len(self.number))
        return example

    def examples(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """A line of each of these classes."""
        return self._example[chosen]

    def order(self, present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The numbers of these classes, sorted by their keys."""
        chosen = np.flatnonzero(present)
        lines = self.examples(chosen)
        return chosen[np.lexsort([column.ranks()[column.codes[lines]] for column in reversed(self.columns)])]

    def index(self, chosen: NDArray[np.int64]) -> pd.Index:
        """The keys of these classes; the levels in their order."""
        lines = self.examples(chosen)
        codes, levels = [], []
        for column in self.columns:
            ranks = column.ranks()
            at = ranks[column.codes[lines]]
            codes.append(np.where(at == len(column.labels), -1, at))
            levels.append(column.labels.take(np.argsort(ranks[1:])))
        names = [column.name for column in self.columns]
        index = pd.MultiIndex(levels=levels, codes=codes, names=names)  # type: ignore[arg-type]
        return index if len(codes) > 1 else index.get_level_values(0)

    def table(self, present: NDArray[np.bool_], values: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
        """A table of classes, sorted by their keys."""
        chosen = self.order(present)
        return mark_exact(pd.DataFrame({name: each[chosen] for name, each in values.items()}, index=self.index(chosen)))

    def aligned(self, values: NDArray[Any], name: str, rows: RowsRead) -> pd.Series:
        """A value of classes for each row of the first table; missing for rows that were not counted."""
        own = values[self.numbers(0)]
        if rows.kept is not None:
            whole: Any = pd.array(np.zeros(len(rows.index), dtype=own.dtype))
            whole[~rows.kept] = pd.NA
            whole[rows.kept] = own
            return mark_exact(pd.Series(whole, index=rows.index, name=name))
        return mark_exact(pd.Series(own, index=rows.index, name=name))


def classes_of(*sides: Side) -> Classes:
    """The classes of one table, or of two whose key columns have the same labels."""
    columns = []
    for at, column in enumerate(sides[0].columns):
        every = [side.columns[at].codes for side in sides]
        columns.append(replace(column, codes=every[0] if len(every) == 1 else np.concatenate(every)))
    number, size = _combined(columns)
    return Classes(tuple(columns), number, size, sides)


def _combined(columns: Sequence[KeyColumn]) -> tuple[NDArray[np.int64], int]:
    """One number for each combination, and the end of their range."""
    number, size = columns[0].codes.astype(np.int64), columns[0].size
    for column in columns[1:]:
        if size * column.size > LARGEST:
            number, size = _compressed(number)
        number *= column.size
        number += column.codes
        size *= column.size
    return (number, size) if size <= max(DENSE, 4 * len(number)) else _compressed(number)


def _compressed(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    codes, found = pd.factorize(number)
    return codes.astype(np.int64, copy=False), len(found)


def distinct_pairs(first: Codes, second: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs that occur of two arrays of numbers from 0, each once, in the order of both."""
    end = int(second.max()) + 1 if len(second) else 1
    found = np.sort(pd.unique(np.asarray(first, dtype=np.int64) * end + second))
    return found // end, found % end
