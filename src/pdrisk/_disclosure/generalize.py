"""Generalisation of key columns: bins, prefixes of text, or mappings of values to coarser ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._core.foreign import shown
from pdrisk._disclosure.keys import KeyColumn, recoded
from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, ZONED
from pdrisk.errors import ColumnTypeError, ParameterError

Generalize: TypeAlias = Mapping[Hashable, Any]

ORDERED = (NUMBER, TIME, ZONED, DATE)


def check_generalize(generalize: object, on: Sequence[Hashable]) -> Generalize:
    """The rules of generalize=, judged as far as possible without the data."""
    if generalize is None:
        return {}
    if not isinstance(generalize, Mapping):
        raise ColumnTypeError('generalize is a dict from key column to rule, as in {"age": [0, 10, 20], "zip": 3}.')
    for column, how in generalize.items():
        if column not in on:
            raise ParameterError(f"generalize= names {shown(column)}, which is none of the key columns in on=.")
        if isinstance(how, Mapping | pd.Series):
            continue
        if isinstance(how, int | np.integer) and not isinstance(how, bool):
            if how < 0:
                raise ParameterError(f"generalize={{{column!r}: {how}}}: a number of letters is 0 or more.")
        elif isinstance(how, list | tuple | range | np.ndarray | pd.Index):
            _edges(column, how)
        else:
            raise ColumnTypeError(
                f"generalize= has for {column!r} a value of type {type(how).__name__}: pass the edges of bins as a "
                "list, the number of letters to keep, or a dict from value to coarser value."
            )
    return dict(generalize)


def generalized(column: KeyColumn, how: Any) -> KeyColumn:
    """The column with coarser labels."""
    if isinstance(how, Mapping | pd.Series):
        return _mapped(column, how)
    if isinstance(how, int | np.integer):
        return _shortened(column, int(how))
    return _binned(column, _edges(column.name, how))


def _edges(column: Hashable, how: Any) -> pd.Index:
    edges = pd.Index(how)
    is_ordered = edges.dtype.kind in "iufM" or isinstance(edges.dtype, pd.DatetimeTZDtype)
    if not is_ordered or len(edges) < 2 or edges.hasnans or not (edges.is_monotonic_increasing and edges.is_unique):
        raise ParameterError(
            f"generalize= needs for {column!r} the edges of bins: two or more rising numbers or timestamps, as in "
            "[0, 10, 20] for 0 to below 10 and 10 to below 20."
        )
    return edges


def _binned(column: KeyColumn, edges: pd.Index) -> KeyColumn:
    labels: Any = column.labels  # intervals have ends
    bins = pd.IntervalIndex.from_breaks(edges, closed="left")
    if isinstance(labels.dtype, pd.IntervalDtype):  # bins already, which are joined
        at, end = (
            _places(column, edges, ends, side) for ends, side in ((labels.left, "right"), (labels.right, "left"))
        )
        outside = (at < 0) | (at >= len(bins)) | (end != at) | (labels.closed != "left")
    else:
        kind = column_kind(pd.Series(labels)) if len(labels) else None
        if kind is not None and kind not in ORDERED:
            raise ColumnTypeError(
                f"key column {column.name!r} holds {kind}, and bins are of numbers or timestamps: generalise it by a "
                "dict from value to coarser value" + (", or by a number of letters." if kind == TEXT else ".")
            )
        at = _places(column, edges, labels, "right")
        outside = (at < 0) | (at >= len(bins))
    _check_covered(
        column, outside, f"are outside the bins, which reach from {edges[0]} to below {edges[-1]}: add edges"
    )
    return recoded(column, np.where(outside, -1, at), bins)


def _places(column: KeyColumn, edges: pd.Index, labels: pd.Index, side: Any) -> NDArray[np.int64]:
    """The bin of each label."""
    if labels.dtype == object:
        labels = pd.Index(pd.to_datetime(labels)) if edges.dtype.kind == "M" else labels.astype(float)
    try:
        return np.asarray(edges.searchsorted(labels, side=side), dtype=np.int64) - 1
    except TypeError:
        pass
    raise ColumnTypeError(
        f"the bins for {column.name!r} are of another kind than its values: list edges of their kind."
    )


def _shortened(column: KeyColumn, letters: int) -> KeyColumn:
    labels = column.labels
    if len(labels) and column_kind(pd.Series(labels)) != TEXT:
        raise ColumnTypeError(
            f"key column {column.name!r} holds no text, so it has no first letters to keep: convert it first, with "
            'leading zeros where they belong, as in astype("string").str.zfill(5); or pass the edges of bins.'
        )
    text = pd.Series(labels, dtype=object)
    short = text.where(text.str.len() <= letters, text.str[:letters] + "*")
    places, distinct = pd.factorize(short)
    return recoded(column, places, pd.Index(distinct))


def _mapped(column: KeyColumn, how: Mapping[Any, Any] | pd.Series) -> KeyColumn:
    mapping = how if isinstance(how, pd.Series) else pd.Series(how, dtype=object)
    if not mapping.index.is_unique:
        raise ParameterError(f"generalize= maps a value of {column.name!r} twice: list each once.")
    at = mapping.index.get_indexer(column.labels)
    _check_covered(column, at < 0, "are not in the mapping: add them, of the same type")
    targets, distinct = pd.factorize(mapping.infer_objects())
    return recoded(column, np.where(at < 0, -1, targets[at] if len(targets) else -1), pd.Index(distinct))


def _check_covered(column: KeyColumn, outside: NDArray[np.bool_], why: str) -> None:
    """Refuse labels of rows that would be in no bin or mapping; labels without rows may be."""
    if outside.any() and (number := np.count_nonzero(outside & column.used)):
        raise ParameterError(f"{number} values of key column {column.name!r} {why}.")
