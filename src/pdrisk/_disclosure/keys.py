"""Key columns as codes: each row's place among the values of its column, missing values being one of their own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.expressions.columns import comparable_kind
from pdrisk._model.expressions.kinds import NOTHING, NUMBER, TIME
from pdrisk._model.rowwise.families import dense
from pdrisk.errors import ColumnTypeError, ParameterError

Codes = NDArray[np.integer[Any]]

SPAN = 2**16  # of whole numbers that are coded by their distance from the smallest, whatever the number of rows
EXACT = 2**53  # beyond it floats skip whole numbers
DIGITS = 15  # of decimals that floats tell apart


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Column of keys as codes and labels."""

    name: Hashable
    codes: Codes  # 0 where the value is missing, else 1 + its place among the labels; shape (n,)
    labels: pd.Index  # Distinct values, without missing ones. Some may belong to no row, as those of unused categories.
    ordered: bool = False  # whether the labels stand in an order of their own, as those of ordered categories

    @property
    def size(self) -> int:
        """Number of codes that there may be."""
        return len(self.labels) + 1

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which labels belong to a row."""
        return np.bincount(self.codes, minlength=self.size)[1:] > 0

    def ranks(self) -> NDArray[np.int64]:
        """The rank of each code: labels in their order, if they have one, and missing last."""
        order = np.arange(len(self.labels))
        with suppress(TypeError):  # of several kinds
            order = order if self.ordered else np.asarray(self.labels.argsort())
        ranks = np.empty(self.size, dtype=np.int64)
        ranks[0] = len(self.labels)
        ranks[1:][order] = np.arange(len(self.labels))
        return ranks


def coded(series: pd.Series, missing: Sequence[Hashable] = ()) -> KeyColumn:
    """Codes of a column; ``missing`` lists values that stand for a missing answer."""
    column = _coded(series)
    if missing:
        at = column.labels.get_indexer(pd.Index(list(missing)))
        mapping = np.arange(column.size)
        mapping[at[at >= 0] + 1] = 0
        column = replace(column, codes=mapping[column.codes])
    return column


def _coded(series: pd.Series) -> KeyColumn:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        series = dense(series)
        dtype = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        series = _in_numpy(series, dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        narrow = series.cat.codes.to_numpy()
        codes = narrow.astype(np.int64)
        codes += 1
        return KeyColumn(series.name, codes, pd.Index(dtype.categories), bool(dtype.ordered))
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(series):
        values = series.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low < max(SPAN, len(values)) and high < 2**63:
            codes = values.astype(np.int64)
            codes -= low - 1
            return KeyColumn(series.name, codes, pd.RangeIndex(low, high + 1))
    factorized = None
    with suppress(TypeError):  # a value that has no hash
        factorized = pd.factorize(series)
    if factorized is None:
        raise ColumnTypeError(
            f"column {series.name!r} holds values that are no keys, such as lists: convert it to text or numbers first."
        )
    return KeyColumn(series.name, factorized[0] + 1, pd.Index(factorized[1]))


def _in_numpy(series: pd.Series, dtype: Any) -> pd.Series:
    """Floats and times of Arrow as numpy holds them: Arrow tells 0.0 from -0.0, and NaN from a missing value."""
    if dtype.kind == "f":
        return pd.Series(series.to_numpy(dtype.numpy_dtype, na_value=np.nan), name=series.name)
    unit, zone = (getattr(dtype.pyarrow_dtype, name, None) for name in ("unit", "tz"))
    if dtype.kind != "M" or unit is None:  # a day has none
        return series
    held: Any = f"datetime64[{unit}]" if zone is None else pd.DatetimeTZDtype(unit, zone)
    return series.astype(held)


def recoded(column: KeyColumn, places: NDArray[np.integer[Any]], labels: pd.Index) -> KeyColumn:
    """The column with new labels: ``places`` has the position of each old label among them, -1 for missing."""
    mapping = np.concatenate([[0], np.asarray(places, dtype=np.int64) + 1])
    return KeyColumn(column.name, mapping[column.codes], labels)


def label_dtype(dtype: Any, missing: bool) -> Any:
    """The dtype of labels for values that are no pandas frame's: pandas' own for text, and numpy's for the rest.

    Beside missing ones whole numbers and truth values keep theirs, since numpy's would become floats or objects.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.CategoricalDtype(pd.Index(list(dtype.categories)), dtype.ordered)
    if isinstance(dtype, pd.StringDtype):
        return None
    plain = getattr(dtype, "numpy_dtype", dtype)
    return dtype if missing and plain.kind in "biu" else plain


def _like(one: KeyColumn, other: KeyColumn) -> KeyColumn:
    """The other column with labels as pandas itself would hold them, where Arrow holds those of the other alone."""
    labels: Any = other.labels
    if not isinstance(labels.dtype, pd.ArrowDtype) or isinstance(one.labels.dtype, pd.ArrowDtype):
        return other
    plain = pd.Index(labels.tolist())
    if plain.dtype == object and len(plain) and isinstance(plain[0], Decimal):
        plain = plain.astype("float64")
    elif plain.dtype == object and _kind(one) == TIME:  # beside days
        plain = plain.astype("datetime64[us]")
    return replace(other, labels=plain)


def _without_decimals(column: KeyColumn) -> KeyColumn:
    """The column with decimals as floats, which decimals of so few digits are told apart by."""
    labels: Any = column.labels
    if labels.dtype != object and not isinstance(labels.dtype, pd.ArrowDtype):
        return column
    values = labels.tolist()
    few = all(isinstance(value, Decimal) and len(value.normalize().as_tuple().digits) <= DIGITS for value in values)
    return replace(column, labels=pd.Index([float(value) for value in values], dtype="float64")) if few else column


def on_common_labels(one: KeyColumn, other: KeyColumn, sides: tuple[str, str]) -> tuple[KeyColumn, KeyColumn]:
    """Both columns with the same labels; ``sides`` names them in errors."""
    if one.labels is other.labels:
        return one, other
    if _kind(one) == _kind(other) == NUMBER and one.labels.dtype != other.labels.dtype:
        one, other = _without_decimals(one), _without_decimals(other)
    other = _like(one, other)
    _check_kinds(one, other, sides)
    if len(one.codes) > len(other.codes):
        other, one = _joined(other, one)
        return one, other
    return _joined(one, other)


def _joined(one: KeyColumn, other: KeyColumn) -> tuple[KeyColumn, KeyColumn]:
    """Both columns with the same labels; the other one, which has more lines, keeps its codes."""
    few, many = one.labels, other.labels
    if few.dtype != many.dtype and _kind(one) == _kind(other) == TIME:
        few, many = (pd.DatetimeIndex(labels.astype(object)) for labels in (few, many))
    if len(few) == 0:
        return replace(one, labels=many), other
    if isinstance(few, pd.RangeIndex) and isinstance(many, pd.RangeIndex) and few.start >= many.start:
        both: pd.Index = pd.RangeIndex(many.start, max(few.stop, many.stop))
        places = np.arange(len(few)) + few.start - many.start
    elif len(many) == 0:
        return one, replace(other, labels=few)
    else:
        places = many.get_indexer(few)
        new = places < 0
        both = many.append(few[new]) if new.any() else many
        places[new] = len(many) + np.arange(np.count_nonzero(new))
    return recoded(one, places, both), replace(other, labels=both)


def _check_kinds(one: KeyColumn, other: KeyColumn, sides: tuple[str, str]) -> None:
    kinds = [_kind(column) for column in (one, other)]
    if kinds[0] != kinds[1] and NOTHING not in kinds:
        raise ColumnTypeError(
            f"key column {one.name!r} holds {kinds[0]} in {sides[0]} and {kinds[1]} in {sides[1]}, so nothing would "
            "match: convert one of them."
        )
    floats = [pd.api.types.is_float_dtype(column.labels.dtype) for column in (one, other)]
    if kinds[0] == NUMBER and floats[0] != floats[1]:
        whole = other if floats[0] else one
        if len(whole.labels) and max(abs(int(whole.labels.min())), abs(int(whole.labels.max()))) > EXACT:
            raise ParameterError(
                f"key column {one.name!r} holds whole numbers beyond 2**53 on one side and floats on the other, which "
                "cannot tell them apart: convert both to text or to Int64."
            )


def _kind(column: KeyColumn) -> str:
    if isinstance(column.labels.dtype, pd.IntervalDtype):
        return "intervals"
    return comparable_kind(pd.Series(column.labels, name=column.name)) if len(column.labels) else NOTHING
