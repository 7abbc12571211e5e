"""Margins of a table of groups: which are published beside its cells, and what share of eps measures each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import numpy as np

from pdrisk._core.foreign import shown
from pdrisk._core.margins.allotment import alloted
from pdrisk._core.margins.components import Axes, product, subsets
from pdrisk._core.summary import IntArray
from pdrisk._model.arguments import as_written
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.plain import float_of, plain_number
from pdrisk.errors import ColumnTypeError, ParameterError

ALL: Final = "(all)"
"""Label of a margin, in the place of a key: all groups of that column together."""

MOST_COLUMNS: Final = 6  # of a table with margins, which then has 64 tables
MOST_WHOLE: Final = 1_000_000  # cells, up to which whole numbers are found within seconds
ALLOTMENTS: Final = ("cells", "even")


@dataclass(frozen=True, slots=True)
class Grid:
    """Groups that are all combinations of the keys of some columns."""

    columns: tuple[Hashable, ...]
    levels: tuple[tuple[Hashable, ...], ...]  # the keys of each column, in the order in which they are listed first

    @classmethod
    def of(cls, columns: tuple[Hashable, ...], keys: Sequence[tuple[Hashable, ...]]) -> Grid | None:
        """The grid of listed keys; None if they are not all combinations."""
        levels = tuple(tuple(dict.fromkeys(key[at] for key in keys)) for at in range(len(columns)))
        grid = cls(columns, levels)
        return grid if product(grid.sizes, range(len(levels))) == len(keys) else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of keys of each column."""
        return tuple(map(len, self.levels))

    @property
    def axes(self) -> Axes:
        """All axes."""
        return tuple(range(len(self.levels)))

    def places(self, keys: Sequence[tuple[Hashable, ...]]) -> IntArray:
        """Place in the grid, row by row, of each key."""
        if not self.axes:
            return np.zeros(len(keys), dtype=np.int64)
        numbers = [{key: at for at, key in enumerate(level)} for level in self.levels]
        codes = [[numbers[at][key[at]] for key in keys] for at in self.axes]
        return np.ravel_multi_index(tuple(map(np.array, codes)), self.sizes)

    def codes(self, axes: Axes) -> list[IntArray]:
        """For each column the number of the key of each cell of a margin, row by row; -1 for all keys."""
        shape = tuple(self.sizes[axis] if axis in axes else 1 for axis in self.axes)
        return [
            numbers.ravel() if axis in axes else np.full(numbers.size, -1)
            for axis, numbers in enumerate(np.indices(shape))
        ]


@dataclass(frozen=True, slots=True)
class Margins:
    """Tables that are published together: the cells of a grid and some of its margins."""

    grid: Grid
    tables: tuple[Axes, ...]  # what is published, the cells first
    shares: tuple[tuple[Axes, Fraction], ...]  # what is measured, and the share of eps of each; they add up to 1
    whole: bool = True  # whether numbers of records are shown as whole numbers that are not negative
    # of the margin of which cells are shown as shares; None where they are shown themselves
    divisor: Axes | None = None

    @property
    def cells(self) -> int:
        """Number of cells of the grid."""
        return product(self.grid.sizes, self.grid.axes)

    def named(self, axes: Axes) -> str:
        """The columns of a table as text; "" of the total."""
        return ", ".join(str(self.grid.columns[axis]) for axis in axes)

    def label_places(self, keys: Sequence[tuple[Hashable, ...]]) -> list[IntArray]:
        """For each column which listed group has the label of each published number; -1 for all together.

        ``keys``: the listed groups, whose numbers come first, in their order.
        """
        codes = np.unravel_index(self.grid.places(keys), self.grid.sizes)
        places = []
        for axis in self.grid.axes:
            _, firsts = np.unique(codes[axis], return_index=True)
            more = [self.grid.codes(axes)[axis] for axes in self.tables[1:]]
            places.append(
                np.concatenate([np.arange(len(keys)), *(np.where(code < 0, -1, firsts[code]) for code in more)])
            )
        return places

    @property
    def said(self) -> list[list[Any]]:
        """What is measured, as JSON values: all that decides the draws."""
        return [[list(axes), str(share)] for axes, share in self.shares]


@dataclass(frozen=True, slots=True)
class MarginsAsked:
    """Margins as a caller writes them."""

    margins: Any = False  # True for all
    allot: Any = None
    whole: Any = None  # None: whole numbers of records
    normalize: Any = None  # shares of what: of all, or of all that is in one group of these columns

    @property
    def named(self) -> str:
        """The first option that is used; "" if none is."""
        if self.margins is not False:
            return "margins"
        for name in ("normalize", "allot", "whole"):
            if getattr(self, name) is not None:
                return name
        return ""

    def judged(self, grid: Grid, *, of_counts: bool) -> Margins | None:
        """The margins that these options mean; None without any.

        ``of_counts``: whether numbers of records are asked for.
        """
        self._check_whole(of_counts)
        divisor = None if self.normalize is None else _divisor(grid, self.normalize)
        if self.margins is False and divisor is None:
            if self.allot is not None:
                raise ParameterError("allot= says how margins share eps: pass margins= as well.")
            return None
        if len(grid.axes) > MOST_COLUMNS:
            raise ParameterError(
                f"margins= takes up to {MOST_COLUMNS} columns in by=, but there are {len(grid.axes)}: name fewer."
            )
        tables = (grid.axes,) if self.margins is False else checked_tables(grid, self.margins)
        measured = tables if divisor is None or divisor in tables else (*tables, divisor)
        shares = _allotment(grid, measured, self.allot)
        whole = of_counts if self.whole is None else bool(self.whole)
        return Margins(grid, tables, shares, whole and divisor is None, divisor)

    def _check_whole(self, of_counts: bool) -> None:
        if self.whole is not None and not isinstance(self.whole, bool | np.bool_):
            raise ColumnTypeError(f"whole must be True or False, not of type {type(self.whole).__name__}.")
        if not self.whole:
            return
        if not of_counts:
            raise ParameterError(
                "whole=True is for numbers of records: leave it out for sums, means and other statistics of a column."
            )
        if self.normalize is not None:
            raise ParameterError("normalize= gives shares, which are no whole numbers: leave whole= out.")
        if self.margins is False:
            raise ParameterError("whole=True makes cells add up to their margins: pass margins=True as well.")


NO_MARGINS: Final = MarginsAsked()


def _divisor(grid: Grid, normalize: object) -> Axes:
    """The axes of the margin of which shares are taken."""
    if normalize is True or (isinstance(normalize, str) and normalize == "all"):
        return ()
    if isinstance(normalize, str) and normalize in grid.columns:
        normalize = [normalize]
    if not isinstance(normalize, list):
        raise ParameterError(
            'normalize can be "all", or a list of columns in each of whose groups shares add up to 1, as in '
            f"normalize={[grid.columns[0]]!r}, not {shown(normalize)}."
        )
    axes = _axes(grid, normalize, "normalize")
    if axes == grid.axes:
        raise ParameterError("normalize= names all columns of by=, and each share would be 1: name fewer.")
    return axes


def checked_tables(grid: Grid, margins: object) -> tuple[Axes, ...]:
    """The sets of axes of the published tables, larger ones first."""
    if isinstance(margins, bool | np.bool_) and margins:
        tables = subsets(grid.axes)
    elif isinstance(margins, list):
        tables = [grid.axes, *(_axes(grid, columns, "margins") for columns in islice(margins, 2**MOST_COLUMNS + 1))]
        if len(set(tables)) < len(tables):
            raise ParameterError("margins lists a table twice, or the cells, which are always there: list each once.")
    else:
        raise ColumnTypeError(
            "margins must be True, or a list of lists of columns, as in margins=[('state',), ()], but is of type "
            f"{type(margins).__name__}."
        )
    return tuple(sorted(tables, key=lambda axes: (-len(axes), axes)))


def _axes(grid: Grid, given: object, option: str) -> Axes:
    """The axes of a table that is named by its columns."""
    named: Iterable[object] = given if isinstance(given, tuple | list | frozenset) else (given,)
    if given in grid.columns:
        named = (given,)
    columns = list(islice(named, MOST_COLUMNS + 1))
    for column in columns:
        if column not in grid.columns:
            names = list(map(str, grid.columns))
            raise ParameterError(
                f"{option} names {shown(column)}, which is no column of by={', '.join(names)}."
                f"{did_you_mean(column, names)}"
            )
    axes = tuple(sorted(grid.columns.index(column) for column in columns))
    if len(set(axes)) < len(axes):
        raise ParameterError(f"{option} names a column twice in one table: name each once.")
    return axes


def _allotment(grid: Grid, tables: tuple[Axes, ...], allot: object) -> tuple[tuple[Axes, Fraction], ...]:
    if allot is None:
        shares = alloted(grid.sizes, tables)
    elif isinstance(allot, Mapping):
        shares = _given(grid, tables, allot)
    elif allot == "cells":
        shares = {grid.axes: Fraction(1)}
    elif allot == "even":
        shares = dict.fromkeys(tables, Fraction(1, len(tables)))
    else:
        raise ParameterError(
            f"allot can be {', '.join(map(repr, ALLOTMENTS))} or a dict from columns to share, as in "
            f"{{('state',): .3, ...}}, not {shown(allot)}."
        )
    return tuple((axes, shares[axes]) for axes in tables if axes in shares)


def _given(grid: Grid, tables: tuple[Axes, ...], allot: Mapping[Any, object]) -> dict[Axes, Fraction]:
    """Shares as a caller wrote them."""
    shares: dict[Axes, Fraction] = {}
    for named, share in islice(allot.items(), 2**MOST_COLUMNS + 1):
        axes = _axes(grid, named, "allot")
        if axes not in tables or axes in shares:
            wrong = "twice" if axes in shares else "which is not published: add it to margins="
            raise ParameterError(f"allot names the table by {_called(grid, axes)} {wrong}.")
        plain = plain_number("a share of allot", share)
        if not 0 <= float_of("a share of allot", plain) <= 1:
            raise ParameterError(f"a share of allot must be between 0 and 1, but is {float(plain):g}.")
        shares[axes] = as_written("a share of allot", plain)
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        raise ParameterError(
            f"the shares of allot must add up to 1, but add up to {float(total)!r}: thirds are Fraction(1, 3), and "
            'equal shares allot="even".'
        )
    if not shares.get(grid.axes):
        raise ParameterError(
            f"allot gives nothing to the cells, by {_called(grid, grid.axes)}: without a share of eps they are not "
            "known. Give them one, or leave that column out of by=."
        )
    return {axes: share for axes, share in shares.items() if share}


def _called(grid: Grid, axes: Axes) -> str:
    return ", ".join(str(grid.columns[axis]) for axis in axes) or "no column, the total,"
