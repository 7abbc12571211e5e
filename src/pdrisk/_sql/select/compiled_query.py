"""Engine of a judged SELECT: its plan, compiled in the SQL of whoever has the tables, with the meaning of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.asked_groups import Groups, WholeKeys, listed_at
from pdrisk._model.expressions.nodes import Column, Node
from pdrisk._model.query import Query
from pdrisk._model.unit import People
from pdrisk._relations.owners import Owners
from pdrisk._sql.relations.row_scope import Condition
from pdrisk._sql.select.aggregate_scope import Answers, Noted
from pdrisk._sql.syntax.pieces import INTEGERS
from pdrisk._sql.tables.compiled_sources import compiled, over_nobody
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import BIGINT, Value
from pdrisk.engines.sql.servers.carried_keys import group_sql, listed_keys
from pdrisk.engines.sql.servers.sql_table import TableWithPlan
from pdrisk.engines.sql.summary.reading import TableReading
from pdrisk.engines.sql.summary.statements import statement
from pdrisk.engines.sql.summary.summary_plan import (
    Counted,
    Different,
    DifferentNumbers,
    Part,
    PeopleRead,
    Summarised,
    SummarisedPair,
    SummaryPlan,
    combined,
)


@dataclass(frozen=True, slots=True)
class NodesAsked:
    """Expressions that a question reads, over the columns of its relation."""

    # `where`, `groups`, `people`: conditions on rows, what they are grouped by, and the columns that say who a
    # person is
    where: tuple[Node, ...]
    groups: tuple[Node, ...]
    # for each line its argument, its other one and its FILTER; None where there is none
    read: tuple[tuple[Node | None, ...], ...]
    people: tuple[Node, ...]

    @property
    def all(self) -> list[Node]:
        """All of them."""
        lines = [node for line in self.read for node in line if node is not None]
        return [*self.where, *self.groups, *self.people, *lines]


@dataclass(frozen=True, slots=True)
class CompiledQuery(TableWithPlan):
    """Engine of a SELECT."""

    whole: tuple[bool, ...] = ()  # of each group, whether its keys are whole numbers
    # gives the relation over one row of NULLs, for a dry run; "" where DuckDB does not read it
    nobody: Callable[[], str] = str

    def plain(self, lists: Sequence[list[Any]]) -> list[list[Any]]:
        """Keys that occur; 0 and 1 are numbers where the group is one."""
        groups = zip(self.whole, TableWithPlan.plain(self, lists), strict=True)
        return [[key if key is None or not whole else int(key) for key in keys] for whole, keys in groups]

    def read(self, query: Query) -> TableReading:
        """What the rows say to the query that the plan is of; fails as `guarded` does."""
        return guarded(lambda: self._read(query))

    def _read(self, query: Query) -> TableReading:
        summaries, occurring_keys = self.summaries(query)
        keys = None if query.groups is None else query.groups.keys
        universes = tuple(line.universe for line in query.lines if line.universe is not None)
        # For what is computed of noisy values: as DuckDB has them.
        columns = range(len(self.plan.groups))
        lists = self.plain(occurring_keys) if keys is None else [listed_at(keys, at) for at in columns]
        return TableReading(universes, summaries, list(map(_without_timestamps, lists)))

    @property
    def reads_columns_only(self) -> bool:
        """Whether nothing is read that DuckDB could refuse."""
        plan = self.plan
        plain = all(isinstance(part, Summarised | Counted) and _reads_column(part) for part in plan.parts)
        return plain and not (plan.inner or plan.where or plan.people or plan.groups)

    @property
    def over_nobody(self) -> str:
        """The statement that reads the data, over one row of NULLs; "" where DuckDB does not read it."""
        if not (nobody := self.nobody()):
            return ""
        keys, columns = None, () if self.groups is None else self.groups.columns
        if self.plan.keys is not None:
            carriers = [group_sql(self.rows, column)[1] for column in columns]
            nothing = ", ".join(f"CAST(NULL AS {carrier}) AS g{at}" for at, carrier in enumerate(carriers))
            keys = f"(SELECT {nothing}, CAST(NULL AS BIGINT) AS code) AS keys_listed"
        return statement(replace(self.plan, source=nobody, keys=keys), self.table.dialect)


def _without_timestamps(keys: list[Any]) -> list[Any]:
    """Keys with datetimes in the place of pandas' own; a long list without any is not looked at singly."""
    if isinstance(keys, WholeKeys) or not any(issubclass(kind, pd.Timestamp) for kind in set(map(type, keys))):
        return keys
    return [key.to_pydatetime() if isinstance(key, pd.Timestamp) else key for key in keys]


def _reads_column(part: Summarised | Counted) -> bool:
    return part.column is not None if isinstance(part, Summarised) else part.condition is None


def compiled_query(
    answers: Answers,
    nodes: NodesAsked,
    where: Sequence[Condition],
    noted: Sequence[Noted],
    query: Query,
    groups: Groups | None,
    people: People,
    owners: Owners | None,
) -> CompiledQuery:
    """Engine for a judged SELECT.

    ``answers``: what names mean in it, of what its FROM gives.
    ``nodes``: all that it reads.
    ``where``: those of the query's WHERE.
    ``noted``: what it asks for.
    ``query``: the same, judged.
    ``groups``: its groups, and their keys as DuckDB has them.
    ``owners``: whose rows FROM gives, where it puts several tables together.
    """
    relation = answers.relation
    read = [*nodes.all, *(Column(str(column)) for column in people.columns)]
    table, rows = compiled(relation.source, read)
    parts, places = combined(list(_parts(noted, query, _Arguments(rows, query.unit.is_of_people))))
    names = tuple(group.column or f"group {at} of GROUP BY" for at, group in enumerate(answers.groups))
    for name, group, node in zip(names, answers.groups, nodes.groups, strict=True):
        if group.column is None:
            value = rows.fitting(node)
            if groups is not None and groups.is_private and rows.dialect.own and group.type == "BIGINT":
                value = Value(f"TRY_CAST({value.sql} AS BIGINT)", span=(-BIGINT - 1, BIGINT))
            rows.known[name] = value
    stored = None if groups is None else replace(groups, columns=names)
    keys, carried = listed_keys(rows, stored)
    people_read = None
    if query.unit.is_of_people:
        ids = tuple(rows.told_apart(column) for column in people.columns)
        have_one = owners is not None and owners.is_proven and owners.most == 1
        people_read = PeopleRead(ids, query.unit, people.secret().hex(), have_one)
    plan = SummaryPlan(
        table.source,
        tuple(rows.condition(condition.node) for condition in relation.owned),
        tuple(rows.condition(condition.node) for condition in (*relation.where, *where)),
        tuple(group_sql(rows, name)[0] for name in names),
        keys,
        parts,
        people_read,
        rows=table.rows,
    )
    whole = tuple(group.type in INTEGERS for group in answers.groups)
    return CompiledQuery(table, plan, places, carried, rows, stored, whole, partial(over_nobody, relation.source, read))


def _parts(releases: Sequence[Noted], query: Query, arguments: _Arguments) -> Iterator[Part]:
    """Parts of a plan for the releases."""
    for at, (noted, line) in enumerate(zip(releases, query.lines, strict=True)):
        condition = arguments.condition(noted)
        if noted.asked.counts_different:
            key = arguments.key(noted)
            yield Different(key if condition is None else f"CASE WHEN {condition} THEN {key} END")
            continue
        if noted.argument is None or not noted.asked.statistic.bounded:
            terms = [term for term in (condition, arguments.present(noted)) if term is not None]
            yield Counted(" AND ".join(terms) if terms else None)
            continue
        value, *other = arguments.numbers(noted)
        column = arguments.stored(noted) if condition is None else None
        if condition is not None:
            value = f"CASE WHEN {condition} THEN {value} END"
        assert line.universe is not None  # in SQL bounds never come from the data
        if line.needs.distinct:
            yield DifferentNumbers(value, line.universe, line.needs)
        elif other:
            yield SummarisedPair(value, line.universe, line.needs, other=other[0])
        else:
            yield Summarised(value, line.universe, query.mechanism(at).reads, column)


class _Arguments:
    """Arguments of aggregates in the SQL of an engine."""

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
        return tuple(
            self.rows.number(_node(argument.node)) for argument in (noted.argument, noted.other) if argument is not None
        )

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
        label = "computed", repr(node)  # a list of constants in it has no hash
        self.rows.known.setdefault(label, self.rows.value(node))
        return label


def _node(node: Node | None) -> Node:
    assert node is not None, "arguments are named"
    return node
