"""Groups that are asked about: their columns and the public list of their keys."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

Source = Literal["given", "declared", "where", "data", "categories", "private"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Disjoint groups and the public list of their keys, in the order of the answer."""

    columns: tuple[Hashable, ...]
    # one value for each column, None for missing; None altogether: taken from the data
    keys: Sequence[tuple[Hashable, ...]] | None
    # {"given", "declared", "data", "categories", "private"}; ``"categories"``: those of the columns, which are
    # a code book by the caller's word. ``"private"``: those that `Query.selection` shows of the data's.
    keys_from: Source

    @property
    def is_private(self) -> bool:
        """Whether the keys are chosen among those that occur."""
        return self.keys_from == "private"

    @property
    def has_missing(self) -> bool:
        """Whether rows with a missing key may be in a group: one is listed, or all that occur are."""
        return self.keys_from == "data" or None in itertools.chain.from_iterable(self.keys or ())

    @property
    def without_missing(self) -> tuple[Hashable, ...]:
        """Columns whose missing keys are in no group."""
        if self.keys_from == "data":
            return ()
        listed = () if self.is_private or self.keys is None else self.keys
        return tuple(column for at, column in enumerate(self.columns) if None not in values_at(listed, at))

    @property
    def combinations(self) -> int:
        """Number of keys, if they are several: all combinations of the listed keys of some columns; else 0."""
        listed = () if self.is_private or self.keys is None else self.keys
        if len(self.columns) == 1 or len(listed) < 2:
            return 0
        levels = (len({key[at] for key in listed}) for at in range(len(self.columns)))
        return len(listed) if len(listed) == math.prod(levels) else 0


class SingleKeys(Sequence[tuple[Hashable, ...]]):
    """The keys of one column, equal to a tuple of tuples of one value each.

    A million of such tuples take longer to make, and to forget, than to answer about.

    Attributes
    ----------
    values : tuple of hashable
    """

    __slots__ = ("_whole", "values")

    def __init__(self, values: Sequence[Hashable]) -> None:
        self.values = tuple(values)
        self._whole: NDArray[np.int64] | EllipsisType | None = ...  # nobody asked yet

    @property
    def whole(self) -> NDArray[np.int64] | None:
        """The keys as an array, if all are whole numbers of 64 bits."""
        if isinstance(self._whole, EllipsisType):
            self._whole = None
            if set(map(type, self.values)) == {int}:
                with suppress(OverflowError):
                    self._whole = np.array(self.values, dtype=np.int64)
                    self._whole.setflags(write=False)
        return self._whole

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return zip(self.values, strict=True)

    @overload
    def __getitem__(self, at: int) -> tuple[Hashable, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> SingleKeys: ...
    def __getitem__(self, at: Any) -> Any:
        return SingleKeys(self.values[at]) if isinstance(at, slice) else (self.values[at],)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SingleKeys):
            return self.values == other.values
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class WholeKeys(list[Any]):
    """Listed keys that are whole numbers: a list that has them as an array, too."""

    def __init__(self, values: Sequence[Hashable], array: NDArray[np.int64]) -> None:
        super().__init__(values)
        self.array = array


def listed_at(keys: Sequence[tuple[Hashable, ...]], place: int) -> list[Any]:
    """The value in one place of each key, as a list; `WholeKeys` if that is all there is, of whole numbers."""
    if isinstance(keys, SingleKeys) and (array := keys.whole) is not None:
        return WholeKeys(keys.values, array)
    return list(values_at(keys, place))


def values_at(keys: Sequence[tuple[Hashable, ...]], place: int) -> Sequence[Hashable]:
    """The value in one place of each key."""
    return keys.values if isinstance(keys, SingleKeys) else [key[place] for key in keys]
