"""Answers as frames of other libraries, made at the end of a call from the pandas table."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._model.declared.attributes import ATTRIBUTE
from pdrisk.errors import ColumnTypeError, ParameterError

PANDAS = "pandas"
MODULES = {PANDAS: "pandas", "polars": "polars", "arrow": "pyarrow"}


def checked_form(form: object) -> str:
    """Name of a library whose frames answers can be."""
    if not isinstance(form, str):
        raise ColumnTypeError(f"as_ is a name, not of type {type(form).__name__}.")
    if form not in MODULES:
        raise ParameterError(f'as_ can be "pandas", "polars" or "arrow", not {shown(form)}.')
    if find_spec(MODULES[form]) is None:
        raise ParameterError(f"as_={form!r} needs {MODULES[form]}, which is not installed.")
    return form


def converted(answer: Any, form: str) -> Any:
    """An answer in another library's type, if it is a table; levels of its index become columns.

    A level whose name is taken gets an underscore behind it, and one of intervals becomes ``left`` and ``right``.
    Missing numbers are null. A table of Arrow says in its metadata what was asked, as ``attrs`` of pandas do.
    """
    if form == PANDAS or type(answer) is not pd.DataFrame:
        return answer
    import pyarrow as pa

    columns = [(str(label), values) for label, values in answer.items()]
    names: dict[str, Any] = {}
    taken = {name for name, _ in columns}
    for name, values in _levels(answer.index):
        while name in taken:
            name += "_"
        taken.add(name)
        names[name] = values
    table = pa.table({name: _array(values) for name, values in (*names.items(), *_apart(columns))})
    if (description := answer.attrs.get(ATTRIBUTE)) is not None:
        table = table.replace_schema_metadata({ATTRIBUTE: description})
    if form == "arrow":
        return table
    import polars as pl

    return pl.from_arrow(table)


def _levels(index: pd.Index) -> Iterator[tuple[str, Any]]:
    """Levels of an index by name; none of an index that only counts rows."""
    if type(index) is pd.RangeIndex and index.name is None:
        return
    for at in range(index.nlevels):
        level = index.get_level_values(at)
        if len(level) and all(isinstance(interval, pd.Interval) for interval in level):  # of a histogram
            yield from ((end, [getattr(interval, end) for interval in level]) for end in ("left", "right"))
        else:
            yield str(level.name), level


def _apart(columns: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Columns under different names, also if their labels are the same text, such as 1 and "1"."""
    seen: set[str] = set()
    for name, values in columns:
        while name in seen:
            name += "_"
        seen.add(name)
        yield name, values


def _array(values: Any) -> Any:
    """The values in Arrow; as texts where Arrow has no type for them, since a paid answer must not fail."""
    import pyarrow as pa

    series = pd.Series(values)
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in series.tolist()], pa.large_string())
    return array.cast(pa.large_string()) if pa.types.is_decimal256(array.type) else array
