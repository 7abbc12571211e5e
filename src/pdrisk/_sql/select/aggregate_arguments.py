"""Parts of a plan that the releases of a SELECT read, for any engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pdrisk._model.kinds import NUMBER
from pdrisk._model.query import Query
from pdrisk._sql.select.aggregate_scope import Noted
from pdrisk._sql.syntax.pieces import Expression, quoted
from pdrisk._sql.tables.source import Source
from pdrisk.engines.sql.summary.summary_plan import (
    Counted,
    Different,
    DifferentNumbers,
    Part,
    Summarised,
    SummarisedPair,
)

__all__ = ["DuckDBReads", "Reads", "parts_of"]


class Reads(Protocol):
    """Writer of the arguments of aggregates for an engine."""

    def condition(self, noted: Noted) -> str | None:
        """The FILTER; None without one."""

    def key(self, noted: Noted) -> str:
        """The argument, with one value for all values that are equal, without the FILTER."""

    def present(self, noted: Noted) -> str | None:
        """Whether a record has a value; None for COUNT(*)."""

    def numbers(self, noted: Noted) -> tuple[str, ...]:
        """The arguments as DOUBLE, without the FILTER."""

    def stored(self, noted: Noted) -> str | None:
        """Identifier of the column, if the argument is a column and nothing else; else None."""


def parts_of(releases: Sequence[Noted], query: Query, reads: Reads) -> Iterator[Part]:
    """Parts of a plan for the releases."""
    for at, (noted, line) in enumerate(zip(releases, query.lines, strict=True)):
        condition = reads.condition(noted)
        if noted.asked.key is not None:
            key = reads.key(noted)
            yield Different(key if condition is None else f"CASE WHEN {condition} THEN {key} END")
            continue
        if noted.argument is None or not noted.asked.statistic.bounded:
            said = [each for each in (condition, reads.present(noted)) if each is not None]
            yield Counted(" AND ".join(said) if said else None)
            continue
        value, *other = reads.numbers(noted)
        column = reads.stored(noted) if condition is None else None
        if condition is not None:
            value = f"CASE WHEN {condition} THEN {value} END"
        assert line.universe is not None  # in SQL bounds never come from the data
        if line.needs.distinct:
            yield DifferentNumbers(value, line.universe, line.needs)
        elif other:
            yield SummarisedPair(value, line.universe, line.needs, other=other[0])
        else:
            yield Summarised(value, line.universe, query.mechanism(at).reads, column)


class DuckDBReads:
    """Writer of arguments for DuckDB."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def condition(self, noted: Noted) -> str | None:
        return noted.asked.condition

    def key(self, noted: Noted) -> str:
        assert noted.asked.key is not None  # that is who asks
        return noted.asked.key

    def present(self, noted: Noted) -> str | None:
        return None if noted.argument is None else noted.argument.present

    def numbers(self, noted: Noted) -> tuple[str, ...]:
        return tuple(each.double for each in (noted.argument, noted.other) if each is not None)

    def stored(self, noted: Noted) -> str | None:
        argument: Expression | None = noted.argument
        if argument is None or not argument.column or argument.kind != NUMBER:
            return None
        return None if self.source.known(argument.column).missing else quoted(argument.column)
