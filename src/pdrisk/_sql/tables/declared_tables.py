"""Declarations of a SQL source, by DuckDB's names of its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

import pandas as pd

from pdrisk._model.declared.declarations import Declaration, Declarations
from pdrisk._pandas.requests.declared import ATTRIBUTE, declarations_of
from pdrisk._sql.syntax.pieces import lowered


def folded(entries: Iterable[Declaration]) -> tuple[Declaration, ...]:
    """Declarations for labels in lower case, as DuckDB compares them."""
    return tuple(replace(e, column=_any_case(str(e.column)) if e.pattern else lowered(str(e.column))) for e in entries)


def _any_case(pattern: str) -> str:
    """Pattern that ignores case; one with flags of its own keeps them."""
    try:
        re.compile(f"(?i){pattern}")
    except re.error:
        return pattern
    return f"(?i){pattern}"


def declared_for(frame: object, names: list[str]) -> Declarations:
    """Declarations of a frame by DuckDB's names of its columns."""
    if not isinstance(frame, pd.DataFrame):
        return Declarations()
    declared = declarations_of(frame)
    name_of: dict[Hashable, Hashable] = dict(zip(frame.columns, names, strict=True))
    frame_entries, schema = (
        tuple(e if e.pattern else replace(e, column=name_of.get(e.column, e.column)) for e in entries)
        for entries in (declared.own, declared.schema)
    )
    people = declared.people
    if people is not None:
        columns, constant = (
            tuple(name_of.get(column, column) for column in columns) for columns in (people.columns, people.constant)
        )
        people = replace(people, columns=columns, constant=constant)
    return Declarations(frame_entries, schema, people)


def declared_in_file(metadata: Mapping[str, Mapping[str, bytes]]) -> Declarations:
    """Declarations of a frame that pandas wrote into Parquet files, from their metadata."""
    try:
        attributes = {
            json.loads(words["PANDAS_ATTRS"]).get(ATTRIBUTE) for words in metadata.values() if "PANDAS_ATTRS" in words
        }
    except (ValueError, AttributeError, TypeError):
        return Declarations()
    frame = pd.DataFrame()
    if len(attributes) == 1:
        (frame.attrs[ATTRIBUTE],) = attributes
    return declarations_of(frame)
