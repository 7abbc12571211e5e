"""Tables of engines of SQL: the header that requests are judged by, and the engine that reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

import pandas as pd

from pdrisk._core.summary import Needs, Summary
from pdrisk._core.universe import Days
from pdrisk._guard import guarded
from pdrisk._model.asked_groups import Groups
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._model.expressions.nodes import Column, in_days
from pdrisk._model.groups.frame_keys import key_index
from pdrisk._model.query import Query
from pdrisk._model.rowwise import is_mask
from pdrisk._model.unit import Secret
from pdrisk.engines.base import DataTable, GroupSizes, Origin, Reading
from pdrisk.engines.numpy.frame import ANYTHING
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import StoredColumn
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.servers.carried_keys import group_sql, listed_keys, plain_keys
from pdrisk.engines.sql.summary.listed_span import by_span
from pdrisk.engines.sql.summary.reading import Fetch, group_sizes, read, statements
from pdrisk.engines.sql.summary.summary_plan import (
    Binned,
    Counted,
    Different,
    Part,
    PeopleRead,
    Summarised,
    SummarisedPair,
    SummaryPlan,
    combined,
    for_query,
)
from pdrisk.errors import ColumnTypeError, ParameterError

NOTHING: Final = Needs()
MOST_EDGES: Final = 2001  # of bins: the time to plan a statement grows faster than they do


@dataclass(frozen=True, slots=True)
class SQLTable:
    """Table of an engine of SQL."""

    source: str  # as it stands in FROM
    columns: Mapping[str, StoredColumn]  # by label
    dialect: Dialect
    fetch: Fetch  # runs a statement: see `Fetch`
    origin: Origin = field(default_factory=Origin)  # where it is
    rows: int = 0  # how many it has, or nearly; 0 where nobody knows

    @property
    def header(self) -> pd.DataFrame:
        """Its columns as an empty pandas frame, by which requests are judged."""
        return pd.DataFrame({name: pd.Series(dtype=column.dtype) for name, column in self.columns.items()})

    def made(
        self,
        source: str,
        columns: Mapping[str, StoredColumn],
        other: SQLTable | None = None,  # noqa: ARG002 - for engines that have to prepare it
    ) -> SQLTable:
        """Table of a SELECT from it, and from another table of the same connection; answers are not remembered.

        ``source``: as it stands in FROM.
        """
        return replace(self, source=source, columns=columns, origin=Origin())

    @contextmanager
    def reading(
        self,
        plan: SummaryPlan,
        keys: list[list[Any]] | None,  # noqa: ARG002 - for engines that read twice
    ) -> Iterator[tuple[Fetch, SummaryPlan]]:
        """Fetch for one answer, and the plan for it with its parameters."""
        yield self.fetch, plan

    @contextmanager
    def asking(self) -> Iterator[Fetch]:
        """Fetch for statements that are no plan's, all of which see one state of the data."""
        with self.reading(SummaryPlan(self.source, (), (), (), None, (Counted(None),)), None) as (fetch, _):
            yield fetch

    def statements(self, plan: SummaryPlan) -> list[str]:
        """The statements that read what a plan says, as `reading.statements` has them."""
        return statements(plan, self.dialect)

    def opened(self, query: Query, header: pd.DataFrame, given: Any, secret: Secret) -> TableEngine:
        """Engine of the table for a judged query.

        ``header``: the columns that it was judged by, with those that are assigned.
        ``given``: what decides beside the tree of its filter.
        ``secret``: as that of `FrameEngine`.
        """
        if given is not None:
            raise only_for_frames(given)
        return TableEngine.of(self, query, header, secret)


@runtime_checkable
class StoredTable(DataTable, Protocol):
    """Protocol of tables that an engine of SQL has, which are looked at anew by each question."""

    def stored(self) -> SQLTable:
        """The table as it is now."""


def only_for_frames(where: object) -> ParameterError:
    """The error for a mask or function, which only a frame in Python can have, or for no filter at all."""
    if not callable(where) and not is_mask(where):
        return ColumnTypeError(
            f"where cannot be of type {type(where).__name__}; here it takes a query string or a pd.col expression."
        )
    return ParameterError(
        f"a {'function' if callable(where) else 'mask'} as where= needs a frame in Python, and these data are not one: "
        "write a query string or a pd.col expression."
    )


@dataclass(frozen=True, slots=True)
class AnswerReading(Reading):
    """Reading of a table for a query."""

    groups: pd.Index | None  # of the answer


@dataclass(frozen=True, slots=True)
class TableWithPlan:
    """Table with the plan of one query: what its engines share."""

    table: SQLTable
    plan: SummaryPlan
    places: tuple[int, ...]  # which part of the plan each line of the query finds its summary in
    keys: list[list[Any]] | None  # the parameters of ``plan.keys``; None for the keys observed
    rows: RowSQL  # its columns, and its groups by the names in ``groups``
    groups: Groups | None  # of the query, by the names that ``rows`` has for them

    @property
    def origin(self) -> Origin:
        """Place of the table."""
        return self.table.origin

    @property
    def reads_later(self) -> bool:
        """Whether the engine says so."""
        return self.table.dialect.reads_later

    def group_sizes(self, query: Query) -> GroupSizes:  # noqa: ARG002 - that of the plan
        """The groups that occur, sorted, and their numbers of people; fails as `guarded` does."""
        return guarded(self._group_sizes)

    def _group_sizes(self) -> GroupSizes:
        with self.table.reading(self.plan, None) as (fetch, plan):
            sizes = group_sizes(fetch, plan, self.table.dialect)
        lists = [[key[at] for key in sizes.keys] for at in range(len(self.plan.groups))]
        return GroupSizes(tuple(zip(*self.plain(lists), strict=True)), sizes.n)

    def summaries(self, query: Query) -> tuple[tuple[Summary, ...], list[list[Any]]]:
        """For each line of the query its summary, and a list of the keys that occur for each column of its groups.

        Of private keys the query has those that are shown.
        """
        plan, lists = for_query(self.plan, query, self.places), self.keys
        if self.groups is not None and self.groups.is_private and query.groups is not None:
            relation, lists = listed_keys(self.rows, replace(self.groups, keys=query.groups.keys))
            plan = replace(plan, keys=relation)
        plan = by_span(plan, lists, self.table.dialect)
        with self.table.reading(plan, lists) as (fetch, plan_read):
            parts, keys = read(fetch, plan_read, lists, self.table.dialect)
        return tuple(parts[place] for place in self.places), keys

    def plain(self, lists: Sequence[list[Any]]) -> list[list[Any]]:
        """Keys that occur, a list for each column, as plain values."""
        columns = () if self.groups is None else self.groups.columns
        return [plain_keys(self.rows.same(column), keys) for column, keys in zip(columns, lists, strict=True)]


@dataclass(frozen=True, slots=True)
class TableEngine(TableWithPlan):
    """Engine of a table, for a request that was judged by its ``header``."""

    header: pd.DataFrame

    @classmethod
    def of(cls, table: SQLTable, query: Query, header: pd.DataFrame, secret: Secret) -> TableEngine:
        """The engine with the plan of a query; refuses as `SQLTable.opened` does."""
        rows = RowSQL(table.columns, query.missing, query.derived, table.dialect)
        where = () if query.where is None or query.where.rule is None else (rows.condition(query.where.rule),)
        parts, places = combined(_parts(query, rows))
        groups = () if query.groups is None else tuple(group_sql(rows, column)[0] for column in query.groups.columns)
        relation, keys = listed_keys(rows, query.groups)
        _check_floats(table.dialect, query, rows)
        people = None
        if query.unit.is_of_people:
            ids = tuple(rows.told_apart(column) for column in query.unit.person)
            waves = () if query.unit.waves is None else tuple(map(rows.condition, query.unit.waves.rules))
            people = PeopleRead(ids, query.unit, secret().hex(), waves=waves)
        lists_missing = query.groups is not None and query.groups.has_missing
        plan = SummaryPlan(table.source, (), where, groups, relation, parts, people, lists_missing, rows=table.rows)
        return cls(table, plan, places, keys, rows, query.groups, header)

    def statements(self, query: Query) -> list[str]:
        """The statements that read it, without what depends on the data: see `reading.statements`."""
        plan = by_span(for_query(self.plan, query, self.places), self.keys, self.table.dialect)
        return self.table.statements(plan)

    def read(self, query: Query) -> AnswerReading:
        """Reading of the query that the plan is for; fails as `guarded` does."""
        return guarded(lambda: self._read(query))

    def _read(self, query: Query) -> AnswerReading:
        summaries, key_lists = self.summaries(query)
        index, groups = None, query.groups
        if groups is not None:
            keys = tuple(zip(*self.plain(key_lists), strict=True)) if groups.keys is None else groups.keys
            index = key_index(self.header, groups.columns, keys)
        universes: Any = tuple(line.universe for line in query.lines)
        return AnswerReading(universes, summaries, index)


def _check_floats(dialect: Dialect, query: Query, rows: RowSQL) -> None:
    """Refuse groups and ids of floats, where an engine tells no groups apart by them."""
    if dialect.groups_by_floats:
        return
    for column in (*(() if query.groups is None else query.groups.columns), *query.unit.person):
        value = rows.same(column)
        if value.family == NUMBER and value.span is None:
            raise ParameterError(
                f"column {column!r} is of floats or decimals, by which this engine cannot partition rows: take one "
                "of whole numbers, text or dates, which a view may compute."
            )


def _parts(query: Query, rows: RowSQL) -> list[Part]:
    """Parts of each line; a count of values that others measure uses those values, as on frames."""
    asked = [_part(query, at, rows) for at in range(len(query.lines))]
    measured = {
        line.column: part
        for line, part in reversed([*zip(query.lines, asked, strict=True)])
        if line.indicator is None and line.other is None and isinstance(part, Summarised)
    }
    return [
        measured.get(line.column, part) if isinstance(part, Counted) and line.column is not None else part
        for line, part in zip(query.lines, asked, strict=True)
    ]


def _part(query: Query, at: int, rows: RowSQL) -> Part:
    """Part of a line."""
    line = query.lines[at]
    if line.universe is None and line.statistic.bounded:
        raise ParameterError(
            f'{line.name} takes bounds="column" from frames in Python only, and these data are not: declare bounds, or '
            "pass bounds=(lo, hi)."
        )
    if line.column is None:
        return Counted(None)
    if line.needs.distinct:
        return Different(rows.told_apart(line.column))
    bins = line.needs.bins
    if bins is not None or line.needs.sizes:
        if bins is not None and len(bins.edges) > MOST_EDGES:
            raise ParameterError(
                f"a database counts in {MOST_EDGES - 1:,} bins at most, not in {len(bins.edges) - 1:,}: ask for fewer, "
                "or count by a column of bins that a view computes."
            )
        # On frames too, a sum or mean of a person's rows is rounded within the edges, or of sizes within 1e100.
        return Binned(
            _numbers(query, line.column, rows), ANYTHING if bins is None else bins.universe, NOTHING, bins=bins
        )
    if not line.statistic.bounded:
        return Counted(rows.present(line.column))
    assert line.universe is not None
    needs = query.needs_of(at, line.universe)
    rule = None if line.indicator is None else line.indicator.rule
    if isinstance(line.universe, Days):
        rule = in_days(Column(line.column), times=line.universe.times)
    value = _numbers(query, line.column, rows) if rule is None else rows.number(rule)
    if line.other is not None:
        return SummarisedPair(value, line.universe, needs, other=rows.double(line.other))
    stored = None if query.unit.is_of_people or rule is not None else rows.stored_number(line.column)
    return Summarised(value, line.universe, needs, stored)


def _numbers(query: Query, column: Hashable, rows: RowSQL) -> str:
    """Numbers of a column, or 1 for each row if people's rows are counted."""
    if query.unit.is_of_people and query.unit.per_person == "count":
        return f"(CASE WHEN {rows.present(column)} THEN {rows.dialect.number(1.0)} END)"
    return rows.double(column)
