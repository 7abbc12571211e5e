"""Joined tables of a Dataset, as one: a SELECT that joins them, judged like any other, read by methods and by SQL.

Dataset.join ─> text of a SELECT ─> relations (types of rows) ─┬─> SQLTable ──> every method
                                                               └─> WITH data AS (...) ──> d.sql
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import ClassVar

import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._ledger import Identity, Ledger
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.expressions.nodes import Rank, below
from pdrisk._model.rowwise import Derived, RowwiseFilter
from pdrisk._model.unit import ONE, People, checked_columns
from pdrisk._sql.dataset.dataset_tables import Given
from pdrisk._sql.dataset.duckdb_table import fluent_table
from pdrisk._sql.dataset.people_by_table import OfTables
from pdrisk._sql.relations.from_clause import relation_of
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.select.select_people import PeopleAsked, owners_of_table
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.syntax.tree import Cte
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.parse import parsed
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ColumnTypeError, ParameterError

NAME = "data"  # of what is joined
NOBODY_KNOWN = People()
WORDS = {"inner": "JOIN", "left": "LEFT JOIN"}


@dataclass(frozen=True)
class Rowwise:
    """Filter and assigned columns of a Dataset, which are applied again after a join.

    That is the same where each row of the join has all columns of its table, since a row decides alone.
    """

    reads: frozenset[Hashable] = frozenset()
    made: frozenset[Hashable] = frozenset()

    @classmethod
    def of(cls, kept: RowwiseFilter | None, derived: Sequence[Derived]) -> Rowwise:
        """Those of a Dataset's filter and columns."""
        rules = [derived_column.rule for derived_column in derived]
        if kept is not None and kept.rule is not None:
            rules.append(kept.rule)
        if any(isinstance(node, Rank) for rule in rules for node in below(rule)):
            raise ParameterError(
                "query() or assign() compared categories by their order, and those of a join are texts: do so after "
                "join(), by a list of the categories that are meant."
            )
        if any(earlier not in derived for derived_column in derived for earlier in derived_column.earlier):
            raise ParameterError("assign() made a column anew that others are made of: assign() after join().")
        read = [column for derived_column in derived for column in derived_column.columns]
        return cls(
            frozenset((*read, *(() if kept is None else kept.columns))),
            frozenset(derived_column.name for derived_column in derived),
        )


@dataclass(frozen=True)
class JoinSide:
    """One table of a join."""

    given: Given | JoinedTables  # with the table as ``data``, and public ones
    people: People = NOBODY_KNOWN  # of the table; of nobody if it is public
    public: frozenset[str] = frozenset()  # the names of public tables
    ledger: Ledger | None = None
    identity: Identity | None = None  # by which the ledger knows the data; None of a public table
    rowwise: Rowwise = Rowwise()


@dataclass(frozen=True)
class JoinedTables:
    """Joined tables that are read as one table ``data``."""

    tables: Given  # under names that say their order, and public ones
    of_tables: OfTables  # who the people of each are
    public: frozenset[str]  # those that nobody is in
    text: str  # the SELECT that joins them
    on: tuple[str, ...]  # the columns that it compares
    identity: Identity
    changed: ClassVar[str] = "a table has other columns or types than when it was first asked: join it anew."

    @property
    def names(self) -> list[str]:
        """Names of the tables in SQL."""
        return [NAME]

    @property
    def frames(self) -> Mapping[str, pd.DataFrame]:
        """None: the join is computed where its tables are."""
        return {}

    def sources(self, public: frozenset[str] = frozenset(), *, lasting: bool = False) -> Sources:
        """Sources of one call: the join as ``data``, and each table; more may be public."""
        sources = self.tables.sources(self.public | public, lasting=lasting)
        sources.ctes = {NAME: Cte(parsed(self.text), ())}
        return sources

    def columns(self, name: str) -> list[str]:  # noqa: ARG002 - there is one
        """The names of the columns of the join."""
        return [label for label, _ in self._relation().columns]

    def people(self, known: People) -> People:
        """People of the join by its names of columns, and the largest number of rows of one person.

        ``known``: of the first table.
        """
        relation = self._relation()
        owners = relation.owners
        assert owners is not None
        labels: dict[str, Hashable] = {
            value.column: label for label, value in relation.columns if value.column is not None
        }
        way = None if known.per_person == ONE else known.per_person
        return replace(
            known,
            columns=tuple(labels[name] for name in owners.key),
            constant=tuple(labels[name] for name in sorted(owners.constant) if name in labels),
            per_person=ONE if owners.most == 1 and way is None else way,
            rows=owners.most,
            joined_on=self.on,
        )

    def fluent(self) -> tuple[SQLTable, Declarations]:
        """The join as one table, and the declarations of its columns; fails as `relation_of`."""
        return fluent_table(self._relation())

    def _relation(self) -> Relation:
        sources = self.sources(lasting=True)
        sources.several = True
        asked = self.of_tables.asked(PeopleAsked(known=self.of_tables.people))
        sources.owner_of = partial(owners_of_table, asked)
        select = parsed(f"SELECT count(*) FROM ({self.text})")
        sources.check(select)
        sources.check_public()
        relation = relation_of(select, sources)
        sources.check_readable(relation.source)
        return relation


def joined_tables(first: JoinSide, second: JoinSide, on: object, how: object) -> JoinedTables:
    """Join of two tables.

    ``on``: the columns of both that are compared; None: all that say who a person is.
    ``how``: {"inner", "left"}
    """
    if not isinstance(how, str) or how not in WORDS:
        raise ParameterError(f'how is "inner" or "left", not {shown(how)}.')
    if not first.people.columns:
        raise ParameterError(
            "join needs to know who a person is, since a row may match any number of others: make the Dataset with "
            'person="pid", the column of their ids. Of frames with a row for each person, merge a public one before, '
            'with df.merge(codes, on="code", validate="many_to_one").'
        )
    _check_same_people(first, second)
    left, right = _begun(first), _alone(second)
    ours, theirs = _names(first.given), _names(right)
    pairs = _pairs(first.people, second.people, on, ours, theirs)
    compared = {lowered(other) for _, other in pairs}
    added = [name for name in theirs if lowered(name) not in compared]
    _check_rowwise(first.rowwise, second.rowwise, pairs, how)
    names = ([*ours, *map(str, first.rowwise.made)], [*added, *map(str, second.rowwise.made)])
    if twice := sorted(set.intersection(*({lowered(column) for column in listed} for listed in names))):
        raise ParameterError(f"both tables of the join have a column {twice[0]!r}: rename it in one of them.")
    taken = set(map(lowered, left.tables.names))
    name = next(candidate for at in count(2) if (candidate := f"table {at}") not in taken)
    selected = [f"first_rows.{quoted(column)} AS {quoted(column)}" for column in ours]
    selected += [f"second_rows.{quoted(column)} AS {quoted(column)}" for column in added]
    equal = " AND ".join(f"first_rows.{quoted(one)} = second_rows.{quoted(other)}" for one, other in pairs)
    return JoinedTables(
        left.tables.beside(right.renamed(NAME, name)),
        left.of_tables.beside(name, second.people),
        left.public if second.people.columns else left.public | {name},
        f"SELECT {', '.join(selected)} FROM ({left.text}) AS first_rows {WORDS[how]} {quoted(name)} AS second_rows "
        f"ON {equal}",
        tuple(dict.fromkeys((*left.on, *(column for pair in pairs for column in pair)))),
        left.identity.joined(second.identity or [*right.frames.values(), *right.held.values()]),
    )


def _check_same_people(first: JoinSide, second: JoinSide) -> None:
    """Refuse Datasets that are known to be about other people."""
    if second.identity is None:
        return
    if not second.people.columns:
        raise ParameterError(
            'the other Dataset does not say who a person is: make it with person="pid", or pass the table itself if '
            "nobody is in it."
        )
    budgets = [None if side.ledger is None else side.ledger._budget for side in (first, second)]
    if budgets[0] != budgets[1]:
        raise ParameterError(
            "the two Datasets have different ledgers, and one of them would pay for both: make both with the same "
            "ledger=."
        )


def _check_rowwise(first: Rowwise, second: Rowwise, pairs: Sequence[tuple[str, str]], how: str) -> None:
    """Refuse filters and columns that would mean something else after the join."""
    for (one, other), made in ((pair, names) for pair in pairs for names in (first.made, second.made)):
        if one in made or other in made:
            raise ParameterError(
                f"join compares columns as they are stored, and {one if one in made else other!r} was assigned: make "
                "it in a view, or in the table itself."
            )
    if how == "left" and (second.reads or second.made):
        raise ParameterError(
            'how="left" keeps rows that match none of the other table, and query() and assign() decide rows that '
            "are there: use them after join(), or a view of the other table."
        )
    if gone := sorted({other for one, other in pairs if one != other} & second.reads):
        raise ParameterError(
            f"query() of the other Dataset reads {gone[0]!r}, which the join has under the name of the first table: "
            "query() after join()."
        )


def _begun(side: JoinSide) -> JoinedTables:
    """The first table of a join, before anything is joined."""
    if isinstance(side.given, JoinedTables):
        return side.given
    name, people = "table 1", side.people
    known = replace(people, per_person=None if people.per_person == ONE else people.per_person)
    nobody = OfTables(known, {}, {}, frozenset())
    tables = side.given.renamed(NAME, name)
    assert side.identity is not None  # of a Dataset
    text = f"SELECT * FROM {quoted(name)}"
    return JoinedTables(tables, nobody.beside(name, people), side.public, text, (), side.identity)


def _alone(side: JoinSide) -> Given:
    if isinstance(side.given, JoinedTables):
        raise ParameterError("the other table is joined itself: join its tables one after the other.")
    return side.given.only(NAME)


def _names(given: Given | JoinedTables) -> list[str]:
    """The columns of a table."""
    columns = given.columns(NAME)
    if not all(isinstance(column, str) for column in columns):
        raise ColumnTypeError("join needs columns whose names are text: rename the others.")
    return columns


def _pairs(
    first: People, second: People, on: object, ours: Sequence[str], theirs: Sequence[str]
) -> list[tuple[str, str]]:
    """Pairs of columns that are compared, of the first and the second table."""
    given = [str(column) for column in checked_columns("on", on)]
    key = list(map(str, first.columns))
    if not second.columns and (not given or set(key) <= set(given)):
        raise ParameterError(
            "a table that is not a Dataset counts as one that nobody is in, such as a list of codes: pass on=, the "
            "columns that must be equal in both, without those of people's ids. To join a table of the same people, "
            "pass pdrisk.Dataset(table, person=...)."
        )
    if second.columns and len(first.columns) != len(second.columns):
        raise ParameterError(
            f"the people of these tables are told apart by {len(first.columns)} and {len(second.columns)} columns: a "
            "person and a person's day are different units."
        )
    if second.columns and given and not set(key) <= set(given):
        raise ParameterError(
            f"on= leaves out {', '.join(column for column in key if column not in given)}, so the rows of others would "
            "decide how often a person counts: join on all columns that say who a person is, or leave on= out."
        )
    keys = dict(zip(key, map(str, second.columns), strict=True)) if second.columns else {}
    pairs = [(column, keys.get(column, column)) for column in given] or list(keys.items())
    for one, other in pairs:
        for name, columns in ((one, ours), (other, theirs)):
            if name not in columns:
                raise unknown_column(name, columns)
    return pairs
