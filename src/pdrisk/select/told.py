"""What is declared for a source, by the names that DuckDB knows its columns by."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from pdrisk.declaration import Declarations, Entry
from pdrisk.declared import ATTRIBUTE, declarations_of
from pdrisk.select.expressions import lowered, written_constant

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["declared_for", "declared_in_file", "folded"]


def folded(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """For labels in lower case, as DuckDB compares them."""
    return tuple(replace(e, column=_any_case(str(e.column)) if e.pattern else lowered(str(e.column))) for e in entries)


def _any_case(pattern: str) -> str:
    """A pattern that ignores case; one that sets flags itself keeps them."""
    try:
        re.compile(f"(?i){pattern}")
    except re.error:
        return pattern
    return f"(?i){pattern}"


def declared_for(frame: object, names: list[str]) -> Declarations:
    """What is declared for a frame, by the names that DuckDB gives its columns."""
    if not isinstance(frame, pd.DataFrame):
        return Declarations()
    said = declarations_of(frame)
    name_of: dict[Hashable, Hashable] = dict(zip(frame.columns, names, strict=True))
    return Declarations(
        *(
            tuple(e if e.pattern else replace(e, column=name_of.get(e.column, e.column)) for e in entries)
            for entries in (said.own, said.schema)
        )
    )


def declared_in_file(connection: DuckDBPyConnection, path: str) -> Declarations:
    """What a frame knew that pandas wrote into this Parquet file."""
    import duckdb

    file = written_constant(path)
    sql = f"SELECT DISTINCT value FROM system.main.parquet_kv_metadata({file}) WHERE key = 'PANDAS_ATTRS'"
    try:
        found = {json.loads(value).get(ATTRIBUTE) for (value,) in connection.execute(sql).fetchall()}
    except (duckdb.Error, ValueError, AttributeError, TypeError):
        return Declarations()
    frame = pd.DataFrame()
    if len(found) == 1:
        (frame.attrs[ATTRIBUTE],) = found
    return declarations_of(frame)
