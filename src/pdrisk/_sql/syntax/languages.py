"""Dialects of SQL in which queries are written for other engines than DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """SQL dialect of an engine."""

    engine: str  # for people
    name: str  # for sqlglot
    folds: bool  # whether a name of a table without quotes is in small letters
    divides_whole: bool  # whether ``/`` of whole numbers drops the rest
    functions: tuple[tuple[str, str], ...] = ()  # aggregates that sqlglot has no node for, and what they are
    by_place: str = "?"  # how a parameter without a name is written, for errors
    values: str = "col"  # what columns of VALUES are called, before their number


POSTGRES: Final = Language(
    "PostgreSQL", "postgres", folds=True, divides_whole=True, by_place="$1 or %s", values="column"
)
SPARK: Final = Language(
    "Spark", "spark", folds=False, divides_whole=False, functions=(("mean", "avg"), ("std", "stddev_samp"))
)
