"""Which questions are the same, of data that have not changed.

Whether two frames hold the same is a fact about the people in them: of ``df[a]`` and ``df[b]`` it tells, for nothing,
whether anybody is in one only. So nothing is compared but the dataset that the owner has named, once when a ledger is
opened, which the audit shows; and what changes after that is not remembered any more.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import weakref
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.summary import FloatArray
from pdrisk._guard import guarded
from pdrisk._ledger.secret import secret
from pdrisk._model.query import Origin, Query
from pdrisk.errors import ColumnTypeError, PdriskError

__all__ = ["Memory", "answer_of", "key_of", "text_of"]

FORM = 1  # of what is kept: with another one, everything is asked anew


class Memory:
    """The data whose answers are remembered, as they were when the ledger was opened.

    Parameters
    ----------
    data : DataFrame or None
        The dataset itself, whole. Only questions of this very object count, of the columns it had.
    version : str or None
        The owner's word for its state. Without it, its content counts, keyed with a secret.

    Attributes
    ----------
    number : int
        Of the record that says so: the name of this state.
    has_changed : bool
        Whether the content was seen to change since; nothing is remembered from then on.
    """

    def __init__(self, data: object, version: object) -> None:
        if data is not None and not isinstance(data, pd.DataFrame):
            raise ColumnTypeError(f"data must be the dataset's DataFrame, not of type {type(data).__name__}.")
        if version is not None and (not isinstance(version, str) or not version.strip() or not version.isprintable()):
            raise ColumnTypeError('version must be a text that names the state of the data, as in "2019, second".')
        self._version = version
        self._frame = None if data is None else weakref.ref(data)
        self._index = None if data is None else data.index  # query(inplace=True) keeps the frame and changes this
        self._columns: list[Hashable] = [] if data is None else list(data.columns)
        self._key = secret() if data is not None and version is None else b""
        self._digests = [] if data is None or version is not None else digests(data, self._key)
        self.number = 0
        self.has_changed = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self._version)  # a copy in another process holds other frames

    @property
    def state(self) -> str | None:
        """What stands for the data as they were."""
        if self._version is not None:
            return f"version {self._version}"
        if self._frame is None:
            return None
        said = repr((self._columns, self._digests, len(self._index if self._index is not None else ())))
        return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), key=self._key, digest_size=32).hexdigest()

    def about(self, query: Query) -> list[Any] | None:
        """What a question is about and `question` does not say; None if it cannot be remembered."""
        origin = query.origin
        if origin is None or origin.said is None or self.has_changed or not query.is_private:
            return None
        if origin.frame is None:
            place = None if self._version is None or origin.place is None else origin.place()
            return None if place is None else [FORM, origin.said, self._version, place]
        read = self._read(origin, query.reads)
        if read is None:
            return None
        named = [repr((self._columns[at], str(origin.frame.dtypes.iloc[at]))) for at in read]
        if self._version is not None:
            return [FORM, origin.said, self._version, named]
        if digests(origin.frame, self._key, read) != [self._digests[at] for at in read]:
            self.has_changed = True
            return None
        return None if any(self._digests[at] is None for at in read) else [FORM, origin.said, self.number, named]

    def _read(self, origin: Origin, reads: Sequence[Hashable]) -> Sequence[int] | None:
        """Where the columns stand that a question reads; None if it is about other data or columns."""
        frame: pd.DataFrame = origin.frame
        is_named = self._frame is not None and self._frame() is frame
        if not is_named or frame.index is not self._index:
            return None
        columns: list[Hashable] = list(frame.columns)
        try:
            found = [columns.index(label) for label in reads] if origin.reads is None else origin.reads
        except ValueError:
            return None
        same = all(at < len(self._columns) and _same(columns[at], self._columns[at]) for at in found)
        return found if same and (origin.reads is None or len(columns) == len(self._columns)) else None


def _same(one: Hashable, other: Hashable) -> bool:
    return type(one) is type(other) and one == other


def digests(frame: pd.DataFrame, key: bytes, columns: Sequence[int] | None = None) -> list[str | None]:
    """A keyed hash of the content of each column, by their places; None where it cannot be taken.

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
    """What an extension array holds; not what pandas notes of it meanwhile, as in its dtype."""
    if hasattr(array, "_mask") and hasattr(array, "_data"):
        yield np.ascontiguousarray(array._data).view(np.uint8).data
        yield array._mask.tobytes()
    elif hasattr(array, "_pa_array"):
        yield pickle.dumps((array._pa_array.type, array._pa_array.combine_chunks()), protocol=5)
    else:
        yield pickle.dumps(array, protocol=5)


def key_of(asked: dict[str, Any], about: list[Any]) -> str:
    """What stands for a question of unchanged data."""
    return hashlib.sha256(json.dumps([asked, about], sort_keys=True).encode("ascii")).hexdigest()


def text_of(answer: Sequence[FloatArray]) -> str:
    """Noisy values as JSON, every digit of them."""
    return json.dumps([values.tolist() for values in answer])


def answer_of(text: str) -> list[FloatArray]:
    """Noisy values from their text."""
    return [np.array(values, dtype=np.float64) for values in json.loads(text)]
