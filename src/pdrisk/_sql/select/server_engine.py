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
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.servers.sql_table import TableWithPlan, group_sql, listed_keys
from pdrisk.engines.sql.summary.reading import TableReading
from pdrisk.engines.sql.summary.summary_plan import PeopleRead, SummaryPlan, combined

__all__ = ["ServerEngine", "server_engine"]


@dataclass(frozen=True, slots=True)
class ServerEngine(TableWithPlan):
    """Engine of a SELECT from a table that is not DuckDB's."""

    def read(self, query: Query) -> TableReading:
        """What the rows say to the query that the plan is of; fails as `guarded` does."""
        return guarded(lambda: self._read(query))

    def _read(self, query: Query) -> TableReading:
        summaries, found = self.summaries(query)
        keys = None if query.groups is None else query.groups.keys
        universes = tuple(line.universe for line in query.lines if line.universe is not None)
        # For what is computed of noisy values: as DuckDB has them.
        columns = range(len(self.plan.groups))
        lists = self.plain(found) if keys is None else [[key[at] for key in keys] for at in columns]
        shown = [[part.to_pydatetime() if isinstance(part, pd.Timestamp) else part for part in each] for each in lists]
        return TableReading(universes, summaries, shown)


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
