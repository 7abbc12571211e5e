"""Dialects of SQL in which queries are written for other engines than DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["POSTGRES", "SPARK", "Language"]


@dataclass(frozen=True, slots=True)
class Language:
    """SQL dialect of an engine.

    Attributes
    ----------
    engine : str
        For people.
    name : str
        For sqlglot.
    folds : bool
        Whether a name of a table without quotes is in small letters.
    divides_whole : bool
        Whether ``/`` of whole numbers drops the rest.
    functions : dict of str to str
        Aggregates that sqlglot has no node for, and what they are.
    by_place : str
        How a parameter without a name is written, for errors.
    values : str
        What columns of VALUES are called, before their number.
    """

    engine: str
    name: str
    folds: bool
    divides_whole: bool
    functions: tuple[tuple[str, str], ...] = ()
    by_place: str = "?"
    values: str = "col"


POSTGRES: Final = Language(
    "PostgreSQL", "postgres", folds=True, divides_whole=True, by_place="$1 or %s", values="column"
)
SPARK: Final = Language(
    "Spark", "spark", folds=False, divides_whole=False, functions=(("mean", "avg"), ("std", "stddev_samp"))
)
