"""Repeated questions: a plain SELECT from one stored table that was judged before is not judged again.

A judgement reads the text, the options, some settings of the connection, whether macros stand in for functions, which
table the name means, what the catalog says of that, and the types of its columns. All of it is in the key, or is looked
up again and compared, so what is the same has the same query, on whatever connection. What is kept holds no data, no
number of rows, and no connection.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from pdrisk._pandas.requests.repeated import is_plain
from pdrisk._sql.noisy.weighted_means import no_weights
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.select.select_people import PeopleAsked
from pdrisk._sql.syntax.tree import Table
from pdrisk._sql.tables.catalog import CatalogEntry
from pdrisk._sql.tables.compiled_sources import read_by
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.together.several import Plan, planned
from pdrisk.errors import ParameterError

KEPT: Final = 256  # questions: of more, all are forgotten
MOST_LETTERS: Final = 2**20  # of all questions together: of more, all are forgotten
LONG: Final = 1000  # numbers of a list that is told by its digest
NOBODY_KNOWN: Final = PeopleAsked()
NOWHERE: Final[Any] = None  # in the place of a connection


@dataclass(frozen=True, slots=True)
class Digest:
    """Digest of 512 bits, which is made in a third of the time of a text."""

    of_numbers: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """Question that was judged, with what its judgement read of the connection."""

    judged: Judged  # without the connection
    path: tuple[str, ...]  # the table, as the text names it
    entry: CatalogEntry  # what the name means; with 0 rows
    columns: tuple[tuple[str, str], ...]  # its columns with their types
    settings: Mapping[str, str]
    functions: frozenset[str]

    @classmethod
    def of(cls, plan: Plan) -> Remembered | None:
        """What is remembered of a plan; None unless it is one question about one stored table.

        Temporary tables, which have no place, are on one connection alone.
        """
        sources, (judged, *others) = plan.sources, plan.statements
        (select, *subqueries) = sources.selects
        if others or subqueries or not isinstance(judged, Judged) or not isinstance(select.source, Table):
            return None
        source, path = judged.relation.source, select.source.path
        is_alone = not (select.ctes or select.members) and source.is_table and source.place is not None
        entry = _table_named(path, sources) if is_alone else None
        if entry is None or source.made is not None:
            return None
        return cls(
            _about(replace(source, connection=NOWHERE, place=None, rows=0), judged),
            path, replace(entry, rows=0), tuple(source.columns.items()), dict(sources.settings.values),
            frozenset(sources.known),
        )  # fmt: skip

    def again(self, sources: Sources) -> Judged | None:
        """The question for a connection; None if something is not as it was there."""
        if not sources.settings.are(self.settings, self.functions):
            return None
        entry = _table_named(self.path, sources)
        if entry is None or replace(entry, rows=0) != self.entry:
            return None
        stored = sources.table(entry)
        if stored.place is None or tuple(stored.columns.items()) != self.columns:
            return None
        source = replace(
            self.judged.relation.source, connection=stored.connection, place=stored.place, rows=stored.rows
        )
        return _about(source, self.judged)


_remembered: dict[tuple[str, str], Remembered] = {}


def text_of_question(sources: Sources, people: PeopleAsked, weights: object, arguments: Sequence[object]) -> str | None:
    """All that a call says, as text; None if that is not all that decides what its question is.

    A ledger, a Dataset, frames, declarations and people decide it beside what is said.
    """
    from_elsewhere = (
        sources.named, sources.tables, sources.declared, sources.public, sources.ctes, sources.by_declarations
    )  # fmt: skip
    is_all = type(sources) is Sources and sources.schema is None and not any(from_elsewhere)
    is_all = is_all and people == NOBODY_KNOWN and weights is no_weights
    if not is_all:
        return None
    written = [_digest(argument) or argument for argument in arguments]
    is_told = all(type(part) is Digest or is_plain(part, longest=MOST_LETTERS // 3) for part in written)
    return repr(written) if is_told else None


def _digest(argument: object) -> Digest | None:
    """Digest of a long list of whole numbers, as keys are; None of anything else."""
    if type(argument) is not list or len(argument) < LONG or set(map(type, argument)) != {int}:
        return None
    try:
        numbers = array("q", argument)
    except OverflowError:
        return None
    return Digest(hashlib.blake2b(numbers).hexdigest())


def _letters(text: str, known: Remembered) -> int:
    """How much is kept of a question: its text, and some eight letters for each of its keys."""
    groups = known.judged.query.groups
    return len(text) + (8 * len(groups.keys) if groups is not None and groups.keys is not None else 0)


def planned_once(text: str | None, total: Any, keys: object, sources: Sources, *how: Callable[..., Any]) -> Plan:
    """Plan of a call with this text, as `planned` makes it or made it before; ``how`` it reads, nests and judges."""
    read, nest, judge = how
    if text is None or len(text) > MOST_LETTERS:
        return planned(read, nest, judge, total, keys, sources)
    key = text, repr(total)
    if (known := _remembered.get(key)) is not None:
        question = None
        with suppress(ParameterError):  # which comes again where it is judged
            question = known.again(sources)
        if question is not None:
            return Plan(read, nest, judge, total, keys, sources, (question,))
    plan = planned(read, nest, judge, total, keys, sources)
    if (made := Remembered.of(plan)) is not None and (letters := _letters(text, made)) <= MOST_LETTERS:
        if (
            len(_remembered) >= KEPT
            or letters + sum(_letters(other, kept) for (other, _), kept in _remembered.items()) > MOST_LETTERS
        ):
            _remembered.clear()
        _remembered[key] = made
    return plan


def _table_named(path: tuple[str, ...], sources: Sources) -> CatalogEntry | None:
    """Table of this name; None of a view, which says of other names what they mean."""
    entry = None if sources.settings.catalog is None else sources.settings.catalog.found(path)
    return None if entry is None or entry.is_view else entry


def _about(source: Source, judged: Judged) -> Judged:
    """The question about a source that is equal to its own."""
    plan, relation = replace(judged.engine.plan, rows=source.rows), replace(judged.relation, source=source)
    engine = replace(judged.engine, table=read_by(source, judged.engine.table), plan=plan, nobody=str)
    return replace(judged, relation=relation, engine=engine)
