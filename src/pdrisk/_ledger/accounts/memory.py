"""Memory of answers: which questions are the same, of data that have not changed.

Whether two frames hold the same is a fact about the people in them: of ``df[a]`` and ``df[b]`` it tells, for nothing,
whether anybody is in one only. So nothing is compared but the whole frames of a Dataset, once when it is made, which
the audit shows. What changes after that is not remembered any more.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.once import once
from pdrisk._guard import guarded
from pdrisk._ledger.store.secret import secret
from pdrisk._model.query import Query
from pdrisk._model.rowwise import is_of_polars
from pdrisk.engines.base import Origin
from pdrisk.errors import ColumnTypeError, PdriskError

Noisy = NDArray[Any]  # of one release: float64 of shape (G,), or int64 of shape (G,) or (k, G)

FORM = 1  # of what is kept: with another one, everything is asked anew


@dataclass(frozen=True, slots=True)
class _Table:
    """One frame of a Dataset, as it was when the Dataset was made."""

    name: str
    frame: pd.DataFrame
    index: pd.Index  # drop(inplace=True), as in a function that filters, keeps the frame and changes this
    columns: list[Hashable]
    digests: list[str | None]

    @classmethod
    def of(cls, name: str, frame: pd.DataFrame, key: bytes, version: str | None) -> _Table:
        """A frame with a keyed hash of its content; with the owner's version its content does not count."""
        content = digests(frame, key) if version is None else []
        return cls(name, frame, frame.index, list(frame.columns), content)

    @property
    def said(self) -> tuple[Any, ...]:
        """The text that stands for its content."""
        return self.columns, self.digests, len(self.index)


@dataclass(frozen=True)
class _Held:
    """A table of Polars or Arrow that SQL reads as it is."""

    name: str
    data: Any
    key: bytes

    @once
    def digests(self) -> list[str | None]:
        """Its content when it was asked first."""
        return digests(_in_pandas(self.data), self.key)


class Identity:
    """Identity of a Dataset for a ledger: its frames with their state, and the columns that say who a person is.

    Parameters
    ----------
    tables : dict of DataFrame
        The frames by name, whole. Only questions of these very objects count, of the columns they had.
    version : str or None
        The owner's word for their state. Without it, their content counts, keyed with a secret.
    person : hashable or None
        The column of people's ids, or a tuple of those that tell people apart together, for the odometer.
    public : iterable of DataFrame
        Frames that nobody is in, which questions may join: their content is part of a question.
    held : dict of Polars DataFrame or Arrow Table
        Tables by name that SQL reads as they are.
    """

    def __init__(
        self,
        tables: Mapping[str, pd.DataFrame],
        version: object = None,
        person: Hashable | None = None,
        public: Iterable[Any] = (),
        held: Mapping[str, Any] | None = None,
    ) -> None:
        if version is not None and (not isinstance(version, str) or not version.strip() or not version.isprintable()):
            raise ColumnTypeError('version must be a text that names the state of the data, as in "2019, second".')
        self.person = person
        self._version = version
        self._key = secret() if (tables or held) and version is None else b""
        self._tables = {name: _Table.of(name, frame, self._key, version) for name, frame in tables.items()}
        self._held = [_Held(name, data, self._key) for name, data in (held or {}).items()]
        # The number of the record that names this state, by ledger and dataset; None if it has no name.
        self._numbers: dict[tuple[str, str], int | None] = {}
        self._changed: list[str] = []  # tables, for joins with others, too
        self._public = tuple(public)
        self._others: tuple[Identity, ...] = ()

    def state_for(self, ledger: Any) -> str | None:
        """A dataset's name in its ledger and the owner's word for the state of the data; None without one of both.

        Also for several Datasets together.
        """
        if ledger is None or self._version is None or self._others or self._public:
            return None
        return f"{ledger.dataset}, {self._version}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ({}, self._version, self.person)  # a copy in another process holds other frames

    def joined(self, other: Identity | Iterable[Any]) -> Identity:
        """The identity of these data joined with others of the same people, or with public frames."""
        identity = object.__new__(Identity)  # a copy() would know no frames
        identity.__dict__ |= self.__dict__
        if isinstance(other, Identity):
            identity._others = (*self._others, other)
        else:
            identity._public = (*self._public, *other)
        return identity

    @property
    def has_changed(self) -> bool:
        """Whether the content is known to have changed; from then on nothing is remembered."""
        return bool(self._changed) or any(other.has_changed for other in self._others)

    @property
    def state(self) -> str | None:
        """The text that stands for the data as they were."""
        if self._version is not None:
            return f"version {self._version}"
        parts: dict[str, Any] = {name: table.said for name, table in self._tables.items()}
        if not parts:  # else these frames name the state, and questions the content of what is held beside them
            parts = {held.name: held.digests for held in self._held}
        if not parts:
            return None
        text = repr(sorted(parts.items()) if len(parts) > 1 else next(iter(parts.values())))
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=self._key, digest_size=32).hexdigest()

    def is_known_to(self, payer: tuple[str, str]) -> bool:
        """Whether this ledger has recorded which data these are."""
        return payer in self._numbers

    def know(self, payer: tuple[str, str], number: int | None) -> None:
        """Note that the ledger has recorded this state, with the number of the record."""
        self._numbers[payer] = number

    def keeps(self, query: Query, origin: Origin | None, payer: tuple[str, str]) -> bool:
        """Whether the answer to a question may be remembered, which costs nothing then; no content is looked at."""
        if origin is None or query.said is None or self._numbers.get(payer) is None:
            return False
        return query.is_private and not self.has_changed and all(map(self._holds, origin.tables.values() or [origin]))

    def _holds(self, origin: Origin) -> bool:
        """Whether it is known which data lie there."""
        datasets = (self, *self._others)
        if origin.frame is None:
            versions = [data._version for data in datasets]
            return None not in versions and origin.place is not None and origin.place() is not None
        frames = [*self._public, *(table.frame for data in datasets for table in data._tables.values())]
        return any(frame is origin.frame for frame in frames)

    def about(self, query: Query, origin: Origin | None, payer: tuple[str, str]) -> list[Any] | None:
        """The part of a question that `question` does not hold: its data; None if it cannot be remembered."""
        number = self._numbers.get(payer)
        if number is None or origin is None or query.said is None:
            return None
        if self.has_changed or not query.is_private:
            return None
        tables = origin.tables
        if any(held.data is origin.frame for held in self._held):
            tables = {"": origin}
        if tables:
            made_of = [[name, self._joined_table(source, payer)] for name, source in sorted(tables.items())]
            is_known = all(content is not None for _, content in made_of)
            return [FORM, query.said, origin.said, made_of] if is_known else None
        if origin.frame is None:
            place = None if self._version is None or origin.place is None else origin.place()
            return None if place is None else [FORM, query.said, self._version, place]
        table = next((one for one in self._tables.values() if one.frame is origin.frame), None)
        read = None if table is None else _places(table, origin.frame, query, query.reads)
        people = None if table is None else _places(table, origin.frame, query, query.unit.person)
        if table is None or read is None or people is None:
            return None
        read = [*read, *(at for at in people if at not in read)]
        named = [repr((table.columns[at], str(origin.frame.dtypes.iloc[at]))) for at in read]
        if self._version is not None:
            return [FORM, query.said, self._version, named]
        if digests(origin.frame, self._key, read) != [table.digests[at] for at in read]:
            self._changed.append(table.name)
            return None
        known = all(table.digests[at] is not None for at in read)
        return [FORM, query.said, number, named] if known else None

    def _joined_table(self, origin: Origin, payer: tuple[str, str]) -> list[Any] | None:
        """The text that stands for one of several tables, with all its columns; None if there is none."""
        frame = origin.frame
        if frame is None:
            versions = [data._version for data in (self, *self._others)]
            place = None if None in versions or origin.place is None else origin.place()
            return None if place is None else [versions, place]
        if any(public is frame for public in self._public):
            frame = _in_pandas(frame)
            content = digests(frame, self._key)
            return None if None in content else ["public", _headings(frame), content]
        for data in (self, *self._others):
            number = data._numbers.get(payer)
            table = next((one for one in data._tables.values() if one.frame is frame), None)
            held = next((one for one in data._held if one.data is frame), None)
            if number is not None and held is not None:
                return data._held_table(held)
            if table is None or number is None:
                continue
            if data._version is not None:
                return [data._version, table.name, _headings(frame)]
            if frame.index is not table.index or digests(frame, data._key) != table.digests:
                data._changed.append(table.name)
                return None
            return None if None in table.digests else [number, table.name, _headings(frame)]
        return None

    def _held_table(self, table: _Held) -> list[Any] | None:
        """The same of one that is held: its content, which the number of a state does not name."""
        frame = _in_pandas(table.data)
        if self._version is not None:
            return [self._version, table.name, _headings(frame)]
        if digests(frame, self._key) != table.digests:
            self._changed.append(table.name)
            return None
        return None if None in table.digests else ["held", table.name, _headings(frame), table.digests]


def _in_pandas(data: Any) -> pd.DataFrame:
    """A frame, or what Polars or Arrow holds as one, of Arrow's own types."""
    if isinstance(data, pd.DataFrame):
        return data
    arrow = data.to_arrow() if is_of_polars(data, "DataFrame") else data
    frame: pd.DataFrame = arrow.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    return frame


def _headings(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame and their types."""
    return [repr((label, str(dtype))) for label, dtype in zip(frame.columns, frame.dtypes, strict=True)]


def _places(table: _Table, frame: pd.DataFrame, query: Query, read: Sequence[Hashable]) -> Sequence[int] | None:
    """Positions of the columns that a question reads; None if it is about other columns or rows."""
    if frame.index is not table.index:
        return None
    columns: list[Hashable] = list(frame.columns)
    try:
        places = [columns.index(label) for label in read] if query.places is None else query.places
    except ValueError:
        return None
    same = all(at < len(table.columns) and _same(columns[at], table.columns[at]) for at in places)
    return places if same and (query.places is None or len(columns) == len(table.columns)) else None


def _same(one: Hashable, other: Hashable) -> bool:
    return type(one) is type(other) and one == other


def digests(frame: pd.DataFrame, key: bytes, columns: Sequence[int] | None = None) -> list[str | None]:
    """Keyed hash of the content of each column, by position; None where it cannot be computed.

    Other values, types and orders of rows give others. Equal values may give others too, as objects that were made in
    another way: then a question is paid again.
    """
    return [_digest(frame.iloc[:, at], key) for at in (range(frame.shape[1]) if columns is None else columns)]


def _digest(series: pd.Series, key: bytes) -> str | None:
    digest = hashlib.blake2b(f"{len(series)} {series.dtype!r}".encode("utf-8", "surrogatepass"), key=key)
    dtype = series.dtype

    def taken() -> str:
        if not isinstance(dtype, np.dtype):
            for part in _parts(series.array):
                digest.update(part)
        elif dtype.kind == "O":
            digest.update(pickle.dumps(series.tolist(), protocol=5))
        else:
            digest.update(np.ascontiguousarray(series.to_numpy()).view(np.uint8).data)
        return digest.hexdigest()

    try:
        return guarded(taken)
    except PdriskError:  # whatever a column may hold; its questions are paid then
        return None


def _parts(array: Any) -> Iterator[Any]:
    """The content of an extension array, without what pandas caches in it."""
    if hasattr(array, "_mask") and hasattr(array, "_data"):
        yield np.ascontiguousarray(array._data).view(np.uint8).data
        yield array._mask.tobytes()
    elif hasattr(array, "_pa_array"):
        yield pickle.dumps((array._pa_array.type, array._pa_array.combine_chunks()), protocol=5)
    else:
        yield pickle.dumps(array, protocol=5)


def key_of(asked: dict[str, Any], about: list[Any]) -> str:
    """Key of a question about unchanged data."""
    return hashlib.sha256(json.dumps([asked, about], sort_keys=True).encode("ascii")).hexdigest()


def text_of(answer: Sequence[Noisy], draws: Sequence[str], keys: Sequence[str] | None = None) -> str:
    """Noisy values as JSON with every digit, the identity of each draw, and the groups shown if keys are private."""
    content = {"values": [values.tolist() for values in answer], "draws": list(draws)}
    return json.dumps(content if keys is None else {"keys": list(keys), **content})


def answer_of(text: str, record: str) -> tuple[list[Noisy], list[str], list[str] | None]:
    """Noisy values from their text, the identities of their draws, and the groups that are shown.

    None for groups if keys are listed. Draws that were kept before they had identities get theirs from ``record``, the
    hash of the record of the ledger that has them. Raises one of `store.WRONG` for what no ledger writes.
    """
    kept = json.loads(text)
    content = kept if isinstance(kept, dict) else {"values": kept}
    values, keys = [_values(listed) for listed in content["values"]], content.get("keys")
    draws = content.get("draws", [_draw_of(record, at) for at in range(len(values))])
    if len(draws) != len(values) or not all(isinstance(word, str) for word in [*draws, *(keys or ())]):
        raise TypeError
    return values, draws, keys


def _draw_of(record: str, number: int) -> str:
    """Identity of a draw that was kept without one."""
    return hashlib.blake2b(f"{record} {number}".encode("ascii"), digest_size=16).hexdigest()


def _values(listed: list[Any]) -> Noisy:
    flat = [one for part in listed for one in (part if isinstance(part, list) else [part])]
    whole = bool(flat) and all(type(one) is int for one in flat)
    return np.array(listed, dtype=np.int64 if whole else np.float64)
