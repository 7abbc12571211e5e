"""People of a SELECT: the columns of its source that say who they are, and how their rows count."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pdrisk._core.order import Max, Min
from pdrisk._core.statistics import Count, Distinct
from pdrisk._core.universe import Days
from pdrisk._model.asked_groups import Groups
from pdrisk._model.expressions.kinds import NO_DATE
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.query import Line
from pdrisk._model.unit import MOST_ROWS, ONE, People, Unit, checked_columns, checked_rows, judged_unit
from pdrisk._model.unit_errors import (
    bounds_per_person,
    constant_of_nobody,
    different_units,
    in_several_groups,
    not_of_dataset,
    row_of_one_table,
    too_many_rows,
)
from pdrisk._model.unit_label import checked_label, label_of_nobody
from pdrisk._relations.owners import Owners
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.select.aggregate_scope import Noted
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.tables.declared_links import Links, last_name, owner_keys
from pdrisk._sql.tables.source import Source
from pdrisk.errors import ColumnTypeError, ParameterError, UnknownColumnError

NOBODY_KNOWN = People()
NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")  # as are types that end with "]"


@dataclass(frozen=True, slots=True)
class PeopleAsked:
    """People as the options of a call say; ``known`` is what a Dataset declares.

    In `pdrisk.sql` each may be a dict by the name of a table; ``one_row`` are tables, in lower case, that a Dataset
    declares to have one row a person. ``links`` lead from tables to people.
    """

    person: object = None
    per_person: object = None
    rows: object = None
    groups: object = None
    unit: object = None
    constant: object = None
    unit_label: object = None
    known: People = NOBODY_KNOWN
    one_row: frozenset[str] = frozenset()
    links: Links = field(default_factory=dict)

    @property
    def knows_people(self) -> bool:
        """Whether person= is given or declared."""
        return self.person is not None or bool(self.known.columns)

    def of_table(self, name: str) -> PeopleAsked:
        """The options for one table; what a dict says of others does not matter."""

        def own(option: str) -> object:
            given = getattr(self, option)
            if not isinstance(given, Mapping):
                return given
            named = by_table(option, given)
            if option == "person" and lowered(name) not in named:
                raise ParameterError(
                    f"person= names table {', '.join(map(str, given))}, and the query reads {name}. Name its column, "
                    "or the table in public= if nobody is in it."
                )
            return named.get(lowered(name))

        known = replace(self.known, per_person=ONE) if lowered(name) in self.one_row else self.known
        return replace(
            self, person=own("person"), per_person=own("per_person"), rows=own("rows"), constant=own("constant"),
            known=known,
        )  # fmt: skip

    @property
    def shared_name(self) -> tuple[Hashable, ...]:
        """Name of the id column in the first table; empty if all tables call it the same."""
        if self.links and not isinstance(self.person, Mapping):
            return checked_columns("person", self.person)
        if not isinstance(self.person, Mapping) or not self.person:
            return ()
        id_columns = [checked_columns("person", columns) for columns in self.person.values()]
        if len({len(columns) for columns in id_columns}) > 1:
            raise different_units()
        return id_columns[0]


def by_table(option: str, given: Mapping[Any, object]) -> dict[str, object]:
    """What an option says by the names that queries and links have for tables: in lower case, without their schemas."""
    named = {last_name(str(table)): value for table, value in given.items()}
    if len(named) < len(given):
        raise ParameterError(
            f"{option}= names tables of one name in several schemas, {', '.join(map(str, given))}: ask about each in a "
            "call of its own."
        )
    return named


def people_of(asked: PeopleAsked, source: Source) -> People:
    """People of a source, by its names of columns."""
    names = {lowered(name): name for name in source.columns}

    def stored(option: str, given: object) -> tuple[Hashable, ...]:
        given_columns = checked_columns(option, given)
        for column in given_columns:
            if not isinstance(column, str):
                raise ColumnTypeError(f"{option} must be the name of a column, not of type {type(column).__name__}.")
            if lowered(column) not in names:
                raise unknown_column(column, source.columns)
        return tuple(names[lowered(str(column))] for column in given_columns)

    known = asked.known if asked.known.columns else source.declared.people or asked.known
    before, person = stored("person", list(known.columns) or None), stored("person", asked.person)
    if person and before and set(person) != set(before):
        raise not_of_dataset(person, before)
    same = stored("constant", asked.constant)
    columns = before or person
    if same and not columns:
        raise constant_of_nobody()
    for name in map(str, columns):
        sql_type = source.columns[name]
        if source.is_table and (sql_type.startswith(NESTED) or sql_type.endswith("]")):
            raise ColumnTypeError(
                f"person={name!r} is of type {sql_type}, and texts in it may have a collation, which makes "
                "one person of two: make a table whose ids are text or numbers."
            )
    label = checked_label(asked.unit_label)
    if label is not None and not columns:
        raise label_of_nobody()
    constant = (*stored("constant", list(known.constant) or None), *same)
    label = label or known.unit_label or asked.known.unit_label
    return replace(known, columns=columns, constant=constant, unit_label=label)


def owners_of_table(asked: PeopleAsked, source: Source, linked: Sequence[str] = ()) -> Owners:
    """Owners of the rows of one of several tables.

    ``linked``: the columns of ids, of a table that links lead from.
    """
    name = source.asked_as or source.name
    options = (replace(asked, person=list(linked)) if linked else asked).of_table(name)
    if not isinstance(asked.constant, Mapping):
        there = set(map(lowered, source.columns))
        same = [column for column in checked_columns("constant", options.constant) if lowered(str(column)) in there]
        options = replace(options, constant=same or None)
    try:
        people = people_of(options, source)
    except UnknownColumnError as error:
        problem = str(error)
    else:
        ways = {options.per_person if isinstance(asked.per_person, Mapping) else None, people.per_person}
        if isinstance(asked.per_person, Mapping) and options.per_person not in (None, ONE):
            raise ParameterError(
                f'per_person= of {name} is "one" or nothing where several tables are asked: pass one word for all, or '
                "write the aggregate into a subquery with GROUP BY the person."
            )
        most = 1 if ONE in ways else checked_rows(options.rows) if isinstance(asked.rows, Mapping) else None
        constant = source.columns if most == 1 else people.constant
        key = tuple(map(str, people.columns))
        keys = owner_keys(name, source.columns, key, asked.links)
        factors = () if most is None else (f"{most:,} of {name}",)
        return Owners(key, most, constant=frozenset(map(str, constant)) - set(key), links=keys, factors=factors)
    raise UnknownColumnError(
        f"{problem} Every table of a query has all columns of person=, or nobody is in it: then name it in public=."
    )


def of_relation(asked: PeopleAsked, relation: Relation, owners: Owners) -> tuple[PeopleAsked, People]:
    """The options for several tables as for one."""
    if owners.is_public:
        raise ParameterError(f"{relation.source.name}: all of it is public, so ask it without pdrisk, and exactly.")
    if asked.unit is not None:
        raise row_of_one_table()
    here = replace(
        asked,
        person=None,
        constant=None,
        per_person=None if isinstance(asked.per_person, Mapping) else asked.per_person,
        rows=None if isinstance(asked.rows, Mapping) else asked.rows,
    )
    per_person = None if asked.known.per_person == ONE else asked.known.per_person
    return here, replace(
        asked.known, columns=owners.key, constant=tuple(sorted(owners.constant)), per_person=per_person,
        unit_label=checked_label(asked.unit_label) or asked.known.unit_label,
    )  # fmt: skip


def known_rows(
    people: People, asked: PeopleAsked, owners: Owners, noted: Sequence[Noted], by: Sequence[str | None]
) -> People:
    """The people with the number of their rows that follows from the tables, unless the call says it."""
    choices = (asked.rows, asked.per_person, people.per_person)
    if any(choice is not None for choice in choices):
        return people
    if owners.most is not None and owners.most > MOST_ROWS:
        raise too_many_rows(owners.factors, owners.most, MOST_ROWS)
    if _are_of_people(noted, people):
        return replace(people, rows=owners.most)  # and so in no more groups
    known = {*people.columns, *people.constant}
    in_each_group = bool(owners.extra) and set(owners.extra) <= set(by)
    if in_each_group and asked.groups is None and not set(by) <= known:  # one in each is not one in all together
        if owners.most is None:
            raise in_several_groups(owners.extra)
        in_each_group = False
    return replace(people, rows=1 if in_each_group else owners.most)


def counted_people(noted: Sequence[Noted], people: People, asked: PeopleAsked, most: int | None) -> list[Noted]:
    """The aggregates, of which ``COUNT(DISTINCT person)`` is a number of people where one row of each counts.

    Where several do, for the sake of other aggregates, it stays a number of different ids; ``most`` is how many the
    tables say.
    """
    several = checked_rows(asked.rows) not in (None, 1)
    if asked.rows is None and asked.per_person is None and people.per_person is None:
        several = most != 1 and not _are_of_people(noted, people)
    return list(noted) if several or asked.unit is not None else [_counted(aggregate, people) for aggregate in noted]


def _are_of_people(noted: Sequence[Noted], people: People) -> bool:
    """Whether all aggregates are about columns that do not differ within a person."""
    known = {*people.columns, *people.constant}
    return all(columns and set(columns) <= known for columns in map(_columns, noted))


def _counted(noted: Noted, people: People) -> Noted:
    argument = noted.argument
    of_people = argument is not None and people.columns == (argument.column,)
    if not of_people or not isinstance(noted.asked.statistic, Distinct):
        return noted
    return replace(noted, asked=replace(noted.asked, statistic=Count(), counts_different=False))


def unit_of(
    people: People,
    asked: PeopleAsked,
    noted: Sequence[Noted],
    lines: Sequence[Line],
    by: Sequence[Hashable],
    groups: Groups | None,
) -> Unit:
    """The unit of a SELECT.

    ``noted, lines``: what is asked for.
    ``by``: the columns of its groups, and what else it groups by.
    """
    wanted = [(line.statistic, _columns(aggregate)) for line, aggregate in zip(lines, noted, strict=True)]
    unit = judged_unit(
        people, wanted, by, per_person=asked.per_person, rows=asked.rows, unit=asked.unit,
        groups=asked.groups if by or not people.columns else None, counts_rows=True,
        listed=None if groups is None or groups.keys is None else len(groups.keys),
        observed=groups is not None and groups.keys_from == "data",
    )  # fmt: skip
    if unit.per_person in NO_DATE and (
        dated := [aggregate for aggregate in noted if isinstance(aggregate.asked.universe, Days)]
    ):
        raise ParameterError(
            f'per_person="{unit.per_person}" makes no date of a person\'s dates, but {dated[0].call.name} is asked of '
            'them: pass per_person="mean", "min" or "max", or rows=k.'
        )
    if unit.per_person in ("sum", "count"):
        declared = [aggregate.column for aggregate in noted if aggregate.asked.bounds_from in ("declared", "where")]
        if declared:
            raise bounds_per_person(declared[0], unit)
    return unit


def check_units(units: Sequence[Unit]) -> None:
    """Refuse several queries that protect different units.

    ``units``: one for each query.
    """
    different = dict.fromkeys(
        unit.name if unit.per_person is None else f'{unit.name} (per_person="{unit.per_person}")' for unit in units
    )
    if len(different) > 1:
        raise ParameterError(
            f"the parts of this statement protect different units, {' and '.join(different)}, whose losses do not add "
            "up to one eps. Ask each part alone; its answer says whom it protects."
        )


def _columns(noted: Noted) -> list[Hashable]:
    """Columns of an aggregate that a person's values decide, however many of her rows have them; else none.

    Such are MIN, MAX and DISTINCT. COUNT(pid) or AVG(age) of a person's rows goes by how many they are. Expressions
    are texts.
    """
    statistic = noted.asked.statistic
    if not (noted.call.distinct or isinstance(statistic, Distinct | Min | Max)):
        return []
    columns = [argument.column or argument.sql for argument in (noted.argument, noted.other) if argument is not None]
    return list(columns)
