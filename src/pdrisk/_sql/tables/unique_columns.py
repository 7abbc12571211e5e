"""Columns that no two rows of a table have alike, as the catalog of its database says; no rows are read."""

from __future__ import annotations

from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.tables.catalog_constraints import Constraint, duckdb_constraints
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.tables.sources import Sources


def is_unique(sources: Sources, path: tuple[str, ...], columns: tuple[str, ...]) -> bool:
    """Whether an enforced PRIMARY KEY or UNIQUE of a stored table lets no two rows have these columns alike."""
    wanted = set(map(lowered, columns))
    return any(
        constraint.kind in ("PRIMARY KEY", "UNIQUE")
        and constraint.is_enforced
        and set(map(lowered, constraint.columns)) <= wanted
        for constraint in _constraints(sources, path)
    )


def _constraints(sources: Sources, path: tuple[str, ...]) -> list[Constraint]:
    if isinstance(sources, SourcesElsewhere):
        return [] if sources.constraints is None else sources.constraints(path)
    if len(path) == 1 and lowered(path[0]) in sources.named:
        return []  # a frame or a file
    entry = sources.entry(path)
    if entry is None or not entry.is_native:
        return []
    assert sources.connection is not None  # on which it was found
    return duckdb_constraints(sources.connection, entry)
