"""Engine for a SELECT from a table of another engine than DuckDB, with the meaning that it has on DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.nodes import Column, Node
from pdrisk._model.query import Groups, Query
from pdrisk._model.unit import People
from pdrisk._sql.relations.row_scope import Relation, Rows
from pdrisk._sql.rows_elsewhere import NO_LITERAL, RowsElsewhere
from pdrisk._sql.select.aggregate_arguments import parts_of
from pdrisk._sql.select.aggregate_scope import Answers, Noted, counting
from pdrisk._sql.syntax.tree import Select
from pdrisk._sql.tables_elsewhere import table_of
from pdrisk.engines.base import GroupSizes, Origin
from pdrisk.engines.sql.rowwise import RowSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable, group_sql, listed_keys, plain_keys
from pdrisk.engines.sql.summary.reading import TableReading, group_sizes, read
from pdrisk.engines.sql.summary.summary_plan import PeopleRead, SummaryPlan, combined, for_query

__all__ = ["EngineElsewhere", "engine_elsewhere"]


@dataclass(frozen=True)
class EngineElsewhere:
    """Engine of a table that is not DuckDB's, with the plan of one query.

    Attributes
    ----------
    table : SQLTable
    plan : SummaryPlan
    places : tuple of int
        Which part of the plan each line of the query finds its summary in.
    carried : list of list, or None
        The parameters of ``plan.keys``; None for those observed.
    rows : RowSQL
        Its columns.
    groups : Groups or None
        Those of the query, by the names of their columns in the table.
    literals : tuple of tuple or None
        For each group what its numbers stand for; None where they are values.
    """

    table: SQLTable
    plan: SummaryPlan
    places: tuple[int, ...]
    carried: list[list[Any]] | None
    rows: RowSQL
    groups: Groups | None
    literals: tuple[tuple[Any, ...] | None, ...]

    @property
    def origin(self) -> Origin:
        """Place of the table."""
        return self.table.origin

    def group_sizes(self, query: Query) -> GroupSizes:  # noqa: ARG002 - that of the plan
        """The groups that occur, sorted, and their numbers of people; fails as `guarded` does."""
        return guarded(self._group_sizes)

    def _group_sizes(self) -> GroupSizes:
        with self.table.reading(self.plan, None) as (fetch, plan):
            found = group_sizes(fetch, plan, self.table.dialect)
        lists = [[key[at] for key in found.keys] for at in range(len(self.plan.groups))]
        return GroupSizes(tuple(zip(*self._plain(lists), strict=True)), found.n)

    def read(self, query: Query) -> TableReading:
        """What the rows say to the query that the plan is of; fails as `guarded` does.

        Of private keys the query has those that are shown.
        """
        return guarded(lambda: self._read(query))

    def _read(self, query: Query) -> TableReading:
        plan, carried = for_query(self.plan, query, self.places), self.carried
        keys = None if query.groups is None else query.groups.keys
        if self.groups is not None and self.groups.is_private:
            relation, carried = _listed(self.rows, replace(self.groups, keys=keys), self.literals)
            plan = replace(plan, keys=relation)
        with self.table.reading(plan, carried) as (fetch, own):
            parts, found = read(fetch, own, carried, self.table.dialect)
        universes = tuple(line.universe for line in query.lines if line.universe is not None)
        # For what is computed of noisy values: as DuckDB has them.
        lists = self._plain(found) if keys is None else [[key[at] for key in keys] for at in range(len(plan.groups))]
        shown = [[part.to_pydatetime() if isinstance(part, pd.Timestamp) else part for part in each] for each in lists]
        return TableReading(universes, tuple(parts[place] for place in self.places), shown)

    def _plain(self, lists: Sequence[list[Any]]) -> list[list[Any]]:
        """Keys that occur, a list for each column, as plain values."""
        columns = () if self.groups is None else self.groups.columns
        plain = (plain_keys(self.rows.same(column), keys) for column, keys in zip(columns, lists, strict=True))
        return [
            keys if known is None else [None if each is None else known[each] for each in keys]
            for keys, known in zip(plain, self.literals, strict=True)
        ]


def engine_elsewhere(
    select: Select,
    answers: Answers,
    noted: Sequence[Noted],
    query: Query,
    groups: Groups | None,
    people: People,
) -> EngineElsewhere:
    """Engine for a judged SELECT from another engine's table.

    Parameters
    ----------
    select : Select
        The one that reads people.
    answers : Answers
        What names mean in it, of what its FROM gives.
    noted : sequence of Noted
        What it asks for.
    query : Query
        The same, judged.
    groups : Groups or None
        Its groups, and their keys as DuckDB has them.
    people : People

    Raises
    ------
    ParameterError
        If the engine cannot be asked for it with the meaning that it has on DuckDB.
    """
    relation = answers.relation
    table = table_of(relation.source)
    reads = ReadsElsewhere(relation, table, query.unit.is_of_people)
    parts, places = combined(list(parts_of(noted, query, reads)))
    names = tuple(group.column or f"group {at} of GROUP BY" for at, group in enumerate(answers.groups))
    literals = []
    for name, group in zip(names, answers.groups, strict=True):
        reads.rows.known[name], own = reads.written.group(group, answers.rows)
        literals.append(own)
    stored = None if groups is None else replace(groups, columns=names)
    keys, carried = _listed(reads.rows, stored, literals)
    people_read = None
    if query.unit.is_of_people:
        ids = tuple(reads.rows.told_apart(column) for column in people.columns)
        people_read = PeopleRead(ids, query.unit, people.secret().hex())
    where = [reads.written.holds(each) for each in relation.where]
    where += [] if select.where is None else [reads.truth(select.where)]
    plan = SummaryPlan(
        table.source,
        (),
        tuple(where),
        tuple(group_sql(reads.rows, name)[0] for name in names),
        keys,
        parts,
        people_read,
    )
    return EngineElsewhere(table, plan, places, carried, reads.rows, stored, tuple(literals))


def _listed(
    rows: RowSQL, groups: Groups | None, literals: Sequence[tuple[Any, ...] | None]
) -> tuple[str | None, list[list[Any]] | None]:
    """As `listed_keys`, literals by their places."""
    if groups is None or groups.keys is None:
        return None, None
    columns = []
    for keys, known in zip(zip(*groups.keys, strict=True), literals, strict=True):
        places = {each: at for at, each in enumerate(known or ())}
        columns.append(
            keys if known is None else [None if each is None else places.get(each, NO_LITERAL) for each in keys]
        )
    return listed_keys(rows, replace(groups, keys=tuple(zip(*columns, strict=True))))


class ReadsElsewhere:
    """Writer of the arguments of aggregates for an engine of SQL."""

    def __init__(self, relation: Relation, table: SQLTable, of_people: bool) -> None:
        self.scope = Rows(relation, {})
        self.of_people = of_people
        self.written = RowsElsewhere(table, relation.source)
        self.rows = self.written.rows

    def condition(self, noted: Noted) -> str | None:
        """The FILTER; None without one."""
        call = counting(noted.call)
        return None if call.condition is None else self.truth(call.condition)

    def key(self, noted: Noted) -> str:
        """The argument, with one value for all values that are equal, without the FILTER."""
        return self.rows.told_apart(self.written.column(_arguments(noted)[0], self.scope))

    def present(self, noted: Noted) -> str | None:
        """Whether a record has a value; None for COUNT(*)."""
        if noted.argument is None:
            return None
        (argument,) = _arguments(noted)
        if isinstance(argument, Column):
            return self.rows.present(self.written.column(argument, self.scope))
        return f"({self.written.number(argument, self.scope)} <= {self.rows.dialect.infinity})"

    def numbers(self, noted: Noted) -> tuple[str, ...]:
        """The arguments as DOUBLE, without the FILTER."""
        return tuple(self.written.number(each, self.scope) for each in _arguments(noted))

    def stored(self, noted: Noted) -> str | None:
        """Identifier of the column, if the argument is a column and nothing else; else None."""
        (argument, *_) = _arguments(noted)
        if self.of_people or not isinstance(argument, Column):
            return None
        return self.rows.stored_number(self.written.column(argument, self.scope))

    def truth(self, node: Node) -> str:
        """A condition, NULL where it is unknown."""
        return self.written.truth(node, self.scope)


def _arguments(noted: Noted) -> list[Node]:
    """Arguments of an aggregate."""
    call = counting(noted.call)
    return list(call.arguments[: 1 if noted.other is None else 2])
