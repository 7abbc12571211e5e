"""Engine for a SELECT from tables of another engine than DuckDB, with the meaning that it has on DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.asked_groups import Groups
from pdrisk._model.nodes import Column, Node
from pdrisk._model.query import Query
from pdrisk._model.unit import People
from pdrisk._relations.owners import Owners
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.relations.row_scope import Condition
from pdrisk._sql.select.aggregate_arguments import parts_of
from pdrisk._sql.select.aggregate_scope import Answers, Noted
from pdrisk._sql.tables.compiled_sources import compiled
from pdrisk.engines.base import GroupSizes, Origin
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable, group_sql, listed_keys, plain_keys
from pdrisk.engines.sql.summary.reading import TableReading, group_sizes, read
from pdrisk.engines.sql.summary.summary_plan import PeopleRead, SummaryPlan, combined, for_query

__all__ = ["ServerEngine", "server_engine"]


@dataclass(frozen=True)
class ServerEngine:
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
        Its columns, and its groups by the names in ``groups``.
    groups : Groups or None
    """

    table: SQLTable
    plan: SummaryPlan
    places: tuple[int, ...]
    carried: list[list[Any]] | None
    rows: RowSQL
    groups: Groups | None

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
            relation, carried = listed_keys(self.rows, replace(self.groups, keys=keys))
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
        return [plain_keys(self.rows.same(column), keys) for column, keys in zip(columns, lists, strict=True)]


def server_engine(
    answers: Answers,
    conditions: Sequence[Condition],
    noted: Sequence[Noted],
    query: Query,
    groups: Groups | None,
    people: People,
    owners: Owners | None,
) -> ServerEngine:
    """Engine for a judged SELECT from another engine's tables.

    Parameters
    ----------
    answers : Answers
        What names mean in it, of what its FROM gives.
    conditions : sequence of Condition
        Those of the query's WHERE, and of the rows that FROM gives.
    noted : sequence of Noted
        What it asks for.
    query : Query
        The same, judged.
    groups : Groups or None
        Its groups, and their keys as DuckDB has them.
    people : People
    owners : Owners or None
        Whose rows FROM gives, where it puts several tables together.

    Raises
    ------
    ParameterError
        If the engine cannot be asked for it with the meaning that it has on DuckDB.
    """
    table, rows = compiled(answers.relation.source)
    parts, places = combined(list(parts_of(noted, query, ServerReads(rows, query.unit.is_of_people))))
    names = tuple(group.column or f"group {at} of GROUP BY" for at, group in enumerate(answers.groups))
    for name, group in zip(names, answers.groups, strict=True):
        if group.column is None:
            assert group.node is not None
            rows.known[name] = rows.value(resolved(group.node, answers.rows))
    stored = None if groups is None else replace(groups, columns=names)
    keys, carried = listed_keys(rows, stored)
    people_read = None
    if query.unit.is_of_people:
        ids = tuple(rows.told_apart(column) for column in people.columns)
        have_one = owners is not None and owners.is_proven and owners.most == 1
        people_read = PeopleRead(ids, query.unit, people.secret().hex(), have_one)
    plan = SummaryPlan(
        table.source,
        (),
        tuple(rows.condition(each.node) for each in conditions),
        tuple(group_sql(rows, name)[0] for name in names),
        keys,
        parts,
        people_read,
    )
    return ServerEngine(table, plan, places, carried, rows, stored)


class ServerReads:
    """Writer of the arguments of aggregates for an engine of SQL."""

    def __init__(self, rows: RowSQL, of_people: bool) -> None:
        self.rows, self.of_people = rows, of_people

    def condition(self, noted: Noted) -> str | None:
        """The FILTER; None without one."""
        return None if noted.filtered is None else self.rows.condition(noted.filtered.node)

    def key(self, noted: Noted) -> str:
        """The argument, with one value for all values that are equal, without the FILTER."""
        return self.rows.told_apart(self._label(noted))

    def present(self, noted: Noted) -> str | None:
        """Whether a record has a value; None for COUNT(*)."""
        return None if noted.argument is None else self.rows.present(self._label(noted))

    def numbers(self, noted: Noted) -> tuple[str, ...]:
        """The arguments as DOUBLE, without the FILTER."""
        return tuple(self.rows.number(_node(each.node)) for each in (noted.argument, noted.other) if each is not None)

    def stored(self, noted: Noted) -> str | None:
        """Identifier of the column, if the argument is a column and nothing else; else None."""
        node = _node(None if noted.argument is None else noted.argument.node)
        if self.of_people or not isinstance(node, Column):
            return None
        return self.rows.stored_number(node.name)

    def _label(self, noted: Noted) -> Any:
        """Label of the argument, under which the rows know it."""
        node = _node(None if noted.argument is None else noted.argument.node)
        if isinstance(node, Column):
            return node.name
        self.rows.known.setdefault(node, self.rows.value(node))
        return node


def _node(node: Node | None) -> Node:
    assert node is not None, "arguments are named"
    return node
