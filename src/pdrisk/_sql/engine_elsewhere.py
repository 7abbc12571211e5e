"""Engine of a SELECT of a table that is not DuckDB's, with the meaning that it has on DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, NoReturn

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.kinds import DATE, ZONED
from pdrisk._model.nodes import COMPARISONS, LOGIC, MISSING, ORDERINGS, Call, Case, Column, Constant, Node, Operation
from pdrisk._model.query import Groups, Query
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._model.unit import People
from pdrisk._sql.answers import Noted, counting
from pdrisk._sql.elsewhere import NOT_HERE, several_records
from pdrisk._sql.expressions import dated
from pdrisk._sql.headings import heading
from pdrisk._sql.pieces import constant
from pdrisk._sql.reads import parts_of
from pdrisk._sql.rows import Relation, Rows
from pdrisk._sql.tree import Select
from pdrisk.engines.base import GroupSizes, Origin
from pdrisk.engines.sql.plan import PeopleRead, SummaryPlan, combined, for_query
from pdrisk.engines.sql.reading import TableReading, group_sizes, read
from pdrisk.engines.sql.rowwise import RowSQL
from pdrisk.engines.sql.table import SQLTable, group_sql, listed_keys, plain_keys
from pdrisk.engines.sql.three_valued import ThreeValuedSQL
from pdrisk.errors import ParameterError

__all__ = ["EngineElsewhere", "engine_elsewhere"]

DIGITS: Final = 15  # of a number with a point, which a DOUBLE tells from all others of so many
VIEW: Final = "make a view in the database with that as a column, and ask the view"


@dataclass(frozen=True)
class EngineElsewhere:
    """Engine of a table that is not DuckDB's, with the plan of the one query that it is made for.

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
    """

    table: SQLTable
    plan: SummaryPlan
    places: tuple[int, ...]
    carried: list[list[Any]] | None
    rows: RowSQL
    groups: Groups | None

    @property
    def origin(self) -> Origin:
        """Where the table is."""
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
        plan = for_query(self.plan, query, self.places)
        carried, keys = self.carried, None if query.groups is None else query.groups.keys
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


def engine_elsewhere(
    select: Select,
    relation: Relation,
    noted: Sequence[Noted],
    query: Query,
    groups: Groups | None,
    columns: Sequence[str | None],
    people: People,
) -> EngineElsewhere:
    """What reads a judged SELECT of a table that another engine has.

    Parameters
    ----------
    select : Select
        The one that reads people.
    relation : Relation
        What its FROM gives.
    noted : sequence of Noted
        What it asks for.
    query : Query
        The same, judged.
    groups : Groups or None
        Its groups, and their keys as DuckDB has them.
    columns : sequence of str or None
        The columns of its groups, None for expressions.
    people : People

    Raises
    ------
    ParameterError
        If the engine cannot be asked for it with the meaning that it has on DuckDB.
    """
    source = relation.source
    table = source.elsewhere
    if table is None or source.sql != NOT_HERE or relation.where or relation.owned or relation.owners is not None:
        raise several_records()
    missing = {name: codes for name in source.columns if (codes := source.known(name).missing)}
    reads = ReadsElsewhere(relation, table, RowSQL(table.columns, missing, (), table.dialect), query.unit.is_of_people)
    parts, places = combined(list(parts_of(noted, query, reads)))
    named = [_named(column) for column in columns]
    stored = None if groups is None else replace(groups, columns=tuple(named))
    keys, carried = listed_keys(reads.rows, stored)
    people_read = None
    if query.unit.is_of_people:
        ids = tuple(reads.rows.told_apart(column) for column in people.columns)
        people_read = PeopleRead(ids, query.unit, people.secret().hex())
    plan = SummaryPlan(
        table.source,
        (),
        () if select.where is None else (reads.truth(select.where),),
        tuple(group_sql(reads.rows, column)[0] for column in named),
        keys,
        parts,
        people_read,
    )
    return EngineElsewhere(table, plan, places, carried, reads.rows, stored)


def _named(column: str | None) -> str:
    if column is None:
        raise ParameterError(f"GROUP BY takes columns of a table in another engine, no expressions: {VIEW}.")
    return column


class ReadsElsewhere:
    """Arguments of aggregates, written for an engine of SQL."""

    def __init__(self, relation: Relation, table: SQLTable, rows: RowSQL, of_people: bool) -> None:
        self.scope = Rows(relation, {})
        self.table = table
        self.rows = rows
        self.of_people = of_people
        self.sql = ThreeValuedSQL(rows.columns, rows.missing, rows.derived, rows.dialect)

    def condition(self, noted: Noted) -> str | None:
        """The FILTER; None without one."""
        call = counting(noted.call)
        return None if call.condition is None else self.truth(call.condition)

    def key(self, noted: Noted) -> str:
        """The argument, one value for what is equal, without the FILTER."""
        return self.rows.told_apart(self._column(_arguments(noted)[0]))

    def present(self, noted: Noted) -> str | None:
        """Whether a record has a value; None for COUNT(*)."""
        if noted.argument is None:
            return None
        (argument,) = _arguments(noted)
        if isinstance(argument, Column):
            return self.rows.present(self._column(argument))
        return f"({self.sql.number(self.made(argument))} <= {self.table.dialect.infinity})"

    def numbers(self, noted: Noted) -> tuple[str, ...]:
        """The arguments as DOUBLE, without the FILTER."""
        return tuple(
            self.rows.double(self._column(each)) if isinstance(each, Column) else self.sql.number(self.made(each))
            for each in _arguments(noted)
        )

    def stored(self, noted: Noted) -> str | None:
        """The column that the argument is and nothing else, as an identifier; None for all else."""
        (argument, *_) = _arguments(noted)
        if self.of_people or not isinstance(argument, Column):
            return None
        return self.rows.stored_number(self._column(argument))

    def truth(self, node: Node) -> str:
        """A condition, NULL where it is unknown."""
        return self.sql.condition(self.made(node))

    def _column(self, node: Node) -> str:
        """The name that the table has for a column."""
        if not isinstance(node, Column):
            self._refuse(node)
        found = self.scope.column(node).column
        if found is None:
            self._refuse(node)
        return found

    def made(self, node: Node) -> Node:
        """A row-wise expression of SQL as one of columns of the table; equal in the logic of `ThreeValuedSQL`."""
        match node:
            case Column():
                return Column(self._column(node))
            case Constant():
                return Constant(_plain(node.value))
            case Case(branches, otherwise):
                return Case(tuple((self.made(when), self.made(then)) for when, then in branches), self.made(otherwise))
            case Call("nullif", (value, other)):
                return self.made(Case(((Operation("==", (value, other)), Constant(None)),), value))
            case Operation("unary -", (Constant(int() | float() | Decimal() as number),)):
                return Constant(_plain(-number))
            case Operation("between", (value, low, high)):
                return self.made(Operation("and", (Operation(">=", (value, low)), Operation("<=", (value, high)))))
            case Operation("in", (value, *members)):
                return self._member(value, members)
            case Operation(symbol, parts) if symbol in COMPARISONS:
                return Operation(symbol, self._compared(symbol, parts))
            case Operation("/", (_, Constant(int() | float() | Decimal() as divisor))) if divisor:
                return Operation("/", tuple(map(self.made, node.parts)))
            case Operation(symbol, parts) if symbol in {*LOGIC, *MISSING, "+", "-", "*", "unary -", "coalesce"}:
                return Operation(symbol, tuple(map(self.made, parts)))
        return self._refuse(node)

    def _member(self, value: Node, members: Sequence[Node]) -> Node:
        """One of a list: unknown of NULL, as is ``x <> x``, which is false of all else."""
        found = self._compared("==", (value, *members))
        if not all(isinstance(each, Constant) for each in found[1:]):
            raise ParameterError("IN takes values that are written out.")
        listed = [each.value for each in found[1:] if isinstance(each, Constant)]
        return Operation("or", (Operation("in", (found[0], Constant(listed))), Operation("!=", (found[0], found[0]))))

    def _compared(self, symbol: str, parts: Sequence[Node]) -> tuple[Node, ...]:
        """What is compared, dates that are written as text among dates, where engines agree how."""
        found = [self.made(part) for part in parts]
        if any(isinstance(each, Constant) and each.value is None for each in found):
            raise ParameterError("nothing equals NULL, nor is more or less: write IS NULL, or leave it out of a list.")
        dtypes = [self.table.columns[each.name].dtype for each in found if isinstance(each, Column)]
        kinds = {family(of_values(dtype)) for dtype in dtypes}
        if ZONED in kinds:
            raise ParameterError(f"times with a zone are compared by the clock of a session: {VIEW}.")
        if symbol in ORDERINGS and any(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes):
            raise ParameterError("labels of an enumeration have an order of their own in some engines: write IN (...).")
        if DATE in kinds:
            found = [_dated(each) for each in found]
        return tuple(found)

    def _refuse(self, node: Node) -> NoReturn:
        raise ParameterError(
            f"{heading(node)} is computed of records, which pdrisk does not ask of this engine: {VIEW}."
        )


def _arguments(noted: Noted) -> list[Node]:
    """What is aggregated."""
    call = counting(noted.call)
    return list(call.arguments[: 1 if noted.other is None else 2])


def _plain(value: Any) -> Any:
    """A constant of SQL as one of filters."""
    if isinstance(value, Decimal):
        if len(value.as_tuple().digits) > DIGITS:
            raise ParameterError(f"a number of the query has more than {DIGITS} digits: write a shorter one.")
        return int(value) if value == value.to_integral_value() else float(value)
    return pd.Timestamp(value) if isinstance(value, datetime.date) else value


def _dated(node: Node) -> Node:
    """A date that is written as text."""
    if not isinstance(node, Constant) or not isinstance(node.value, str):
        return node
    return Constant(_plain(dated(constant(node.value), node).value))
