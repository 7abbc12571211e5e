"""Types of Polars and Arrow columns as pandas knows them, decided by the schema alone and never by a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

#: Types of Polars that Arrow has, too; Enum and wide integers are read in ways of their own.
IN_ARROW = {
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Decimal"),
    *("Boolean", "String", "Categorical", "Date", "Datetime", "Duration"),
}
WIDE = {"Int128", "UInt128"}
DIGITS = 39  # of a whole number of 128 bits


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How a column is read."""

    name: str  # of its type, for people
    dtype: Any  # None where nothing reads it


def of_arrow(held: pa.DataType) -> ColumnType:
    """Column of an Arrow type; for a dictionary its values, as the listed ones depend on the records."""
    import pyarrow as pa

    known, name = pa.types, str(held)
    if known.is_dictionary(held):
        return ColumnType(name, of_arrow(held.value_type).dtype)
    if name == "string_view":  # which older versions of Arrow and pandas do not know
        held = pa.large_string()
    elif known.is_decimal(held) and not (known.is_decimal128(held) or known.is_decimal256(held)):
        held = pa.decimal128(held.precision, held.scale)
    reads = (
        *(known.is_boolean, known.is_integer, known.is_float32, known.is_float64, known.is_decimal, known.is_string),
        *(known.is_large_string, known.is_date, known.is_timestamp, known.is_duration),
    )
    return ColumnType(name, pd.ArrowDtype(held) if any(is_one(held) for is_one in reads) else None)


def of_polars(held: Any) -> ColumnType:
    """Column of a Polars type; for a Categorical its texts, for an Enum the categories of its type."""
    import polars as pl
    import pyarrow as pa

    kind = held.base_type().__name__
    if kind == "Enum":
        return ColumnType(str(held), pd.CategoricalDtype(held.categories.to_list(), ordered=True))
    if kind in WIDE:
        try:
            _wide(pl.Series([0], dtype=held))
        except (pl.exceptions.PolarsError, pa.ArrowException):  # as in older versions of Polars
            return ColumnType(str(held), None)
        return ColumnType(str(held), pd.ArrowDtype(pa.decimal256(DIGITS, 0)))
    if kind not in IN_ARROW:
        return ColumnType(str(held), None)
    return ColumnType(str(held), of_arrow(pl.Series([], dtype=held).to_arrow().type).dtype)


def array_of(values: pl.Series | pa.ChunkedArray, dtype: Any) -> Any:
    """Values of a column as a pandas array; nothing is copied that Arrow holds as pandas does."""
    import pyarrow as pa

    if isinstance(dtype, pd.CategoricalDtype):
        import polars as pl

        codes = values.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        return pd.Categorical.from_codes(codes, dtype=dtype)
    held = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([_in_arrow(values)])
    if pa.types.is_dictionary(held.type):
        held = held.cast(held.type.value_type)
    wanted = dtype.pyarrow_dtype
    return pd.arrays.ArrowExtensionArray(held if held.type == wanted else held.cast(wanted))


def _in_arrow(values: pl.Series) -> pa.Array:
    return _wide(values) if values.dtype.base_type().__name__ in WIDE else values.to_arrow()


def _wide(values: pl.Series) -> pa.Array:
    """Whole numbers of 128 bits, which Arrow holds as decimals."""
    import polars as pl
    import pyarrow as pa

    return values.cast(pl.String).to_arrow().cast(pa.decimal256(DIGITS, 0))
