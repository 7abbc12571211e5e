"""Arrow streams of any library, such as nanoarrow of Python and R: all their rows become an Arrow Table."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

from pdrisk._guard import guarded
from pdrisk.errors import ColumnTypeError, ParameterError

STREAM: Final = "__arrow_c_stream__"  # Arrow's PyCapsule protocol
#: Libraries whose frames are read in their own way, though they give streams, too.
KNOWN: Final = ("pandas", "polars", "duckdb", "_duckdb", "pyspark")


def streams_read(tables: Mapping[Any, Any]) -> dict[Any, Any]:
    """The tables, with each Arrow stream read to its end, since it can be read only once."""
    return {name: _read(table) if _is_stream(table) else table for name, table in tables.items()}


def _is_stream(data: object) -> bool:
    bases = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    if not hasattr(type(data), STREAM) or not bases.isdisjoint(KNOWN):
        return False
    return "pyarrow" not in bases or type(data).__name__ == "RecordBatchReader"


def _read(data: Any) -> Any:
    if find_spec("pyarrow") is None:
        raise ParameterError('an Arrow stream is read with pyarrow: pip install "pdrisk[arrow]"')
    import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowException:
        reader = None
    if reader is None:  # raised here, so that no text of a foreign library is chained to it
        raise ColumnTypeError(
            f"an Arrow stream of type {type(data).__name__} is no table: pass one whose batches have named columns."
        )
    return guarded(reader.read_all)
