"""People of a Dataset of several tables: the columns of each table that say who a person is."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from pdrisk._model.expressions.columns import check_column
from pdrisk._model.expressions.nearest import did_you_mean, unknown_column
from pdrisk._model.unit import ONE, People, checked_columns, checked_way, judged_people
from pdrisk._model.unit_errors import different_units
from pdrisk._model.unit_label import checked_label, label_of_nobody
from pdrisk._pandas.requests.declared import declarations, declarations_of
from pdrisk._sql.dataset.dataset_tables import Given
from pdrisk._sql.select.select_people import PeopleAsked
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.tables.declared_links import Links, checked_links
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class OfTables:
    """People in several tables, as a Dataset declares them."""

    people: People  # as the first table calls them; what ledgers know them by
    columns: Mapping[str, tuple[Hashable, ...]]
    constant: Mapping[str, tuple[Hashable, ...]]
    one_row: frozenset[str]  # the tables, in lower case, that have one row a person
    links: Links = field(default_factory=dict)

    def asked(self, asked: PeopleAsked) -> PeopleAsked:
        """People of a call, from its options and the declarations."""
        if not self.columns:
            return asked
        columns = {name: list(listed) for name, listed in self.columns.items()}
        constant = {name: list(listed) for name, listed in self.constant.items()} or None
        constants = asked.constant if asked.constant is not None else constant
        way = None if asked.known.per_person == ONE else asked.known.per_person  # that of each table
        known = replace(asked.known, columns=(), per_person=way, constant=(), rows=None, joined_on=())
        return replace(asked, person=columns, constant=constants, known=known, one_row=self.one_row, links=self.links)

    def beside(self, name: str, people: People) -> OfTables:
        """The same with one more table of these people; a public one if it has no id columns."""
        if not people.columns:
            return self
        constant = {name: people.constant} if people.constant else {}
        one_row = {lowered(name)} if people.per_person == ONE else set()
        return replace(
            self,
            columns={**self.columns, name: people.columns},
            constant={**self.constant, **constant},
            one_row=self.one_row | one_row,
        )


def of_tables(
    given: Given,
    public: frozenset[str],
    person: object,
    per_person: object,
    constant: object,
    unit_label: object,
    links: object = None,
) -> OfTables:
    """Declared people in several tables."""
    names = {lowered(name): name for name in given.names}
    private = {name: names[name] for name in names if name not in public}
    linked = checked_links(links, person)
    _check_links(linked, given, private)

    def by_table(option: str, written: object, *, needed: bool) -> dict[str, object]:
        if not isinstance(written, Mapping):
            return {} if written is None else {name: written for name in private if not (needed and name in linked)}
        by_name = {lowered(str(name)): value for name, value in written.items()}
        if unknown := sorted(set(by_name) - set(private)):
            raise ParameterError(
                f"{option}= names {unknown[0]}, which is no table of people here."
                f"{did_you_mean(unknown[0], list(private))}"
            )
        if needed and (missing := sorted(set(private) - set(by_name) - set(linked))):
            raise ParameterError(
                f"person= says nothing of table {private[missing[0]]}: name the columns that say who a person is "
                "there, the table in public= if nobody is in it, or in links= what leads from it to people."
            )
        return by_name

    columns = {
        name: checked_columns("person", value) for name, value in by_table("person", person, needed=True).items()
    }
    if not columns and unit_label is not None:
        raise label_of_nobody()
    if not columns and (per_person is not None or constant is not None):
        option = "per_person=" if per_person is not None else "constant="
        raise ParameterError(f"{option} needs person=, the column of ids: pass it as well.")
    if len({len(listed) for listed in columns.values()}) > 1:
        raise different_units()
    same = {
        name: checked_columns("constant", value) for name, value in by_table("constant", constant, needed=False).items()
    }
    if not isinstance(constant, Mapping):
        same = {name: tuple(c for c in listed if c in given.columns(private[name])) for name, listed in same.items()}
    for name in {**columns, **same}:
        there = given.columns(private[name])
        for column in (*columns.get(name, ()), *same.get(name, ())):
            if column not in there:
                raise unknown_column(column, there)
    ways = by_table("per_person", per_person, needed=False)
    if isinstance(per_person, Mapping) and any(way != ONE for way in ways.values()):
        raise ParameterError('per_person= by table is "one", or nothing: what rows become is that of a whole question.')
    way = None if isinstance(per_person, Mapping) else checked_way(per_person)
    one_row = frozenset(ways) if way == ONE or isinstance(per_person, Mapping) else frozenset()
    people = People(next(iter(columns.values()), ()), None if one_row else way, unit_label=checked_label(unit_label))
    return OfTables(
        people,
        {private[name]: listed for name, listed in columns.items()},
        {private[name]: listed for name, listed in same.items() if listed},
        one_row,
        linked,
    )


def _check_links(links: Links, given: Given, private: Mapping[str, str]) -> None:
    """Refuse links between tables or columns that a Dataset does not have; its public tables are not looked at."""
    for name, listed in links.items():
        ends = [(name, listed[0].columns), *((link.parent, link.key) for link in listed if link.to_people)]
        for table, columns in ends:
            if lowered(table) not in private:
                raise ParameterError(
                    f"links= names {table}, which is no table of people here.{did_you_mean(table, list(private))}"
                )
            there = given.columns(private[lowered(table)])
            for column in columns:
                if lowered(column) not in {lowered(str(label)) for label in there}:
                    raise unknown_column(column, there)


def declared_in(
    given: Given, public: Given | None, header: pd.DataFrame | None, schema: object, declared: Mapping[str, Any]
) -> tuple[Given, Given | None]:
    """Tables of a Dataset, and its public ones, with what is declared for the columns of each.

    ``header``: the columns of a Polars or Arrow table, of which ``given`` consists.
    ``declared``: The bounds, keys and missing codes. An entry holds in each table that has such a column.
    """
    if schema is None and all(entries is None for entries in declared.values()):
        return given, public
    if schema is not None and len(given.names) > 1:
        raise ParameterError(
            "schema= is that of one table: declare those of several in each frame, with df.dprisk.declare(schema)."
        )

    def columns_of(tables: Given, name: str) -> list[Hashable]:
        return list(header.columns) if tables is given and header is not None else [*tables.columns(name)]

    several = public is not None or len(given.names) > 1
    if several:
        both = [given] if public is None else [given, public]
        labels = dict.fromkeys(label for tables in both for name in tables.names for label in columns_of(tables, name))
        for column in (c for entries in declared.values() if isinstance(entries, Mapping) for c in entries):
            if column not in labels:
                raise unknown_column(column, labels)

    def knowing_own(tables: Given, header: pd.DataFrame | None, schema: object) -> Given:
        known = tables
        for name in tables.names:
            options = _own(declared, columns_of(tables, name)) if several else declared
            if schema is not None or any(entries is not None for entries in options.values()):
                known = known.declared(name, partial(declarations, schema=schema, **options), header)
        return known

    return knowing_own(given, header, schema), None if public is None else knowing_own(public, None, None)


def _own(declared: Mapping[str, Any], columns: Collection[Hashable]) -> dict[str, Any]:
    """What is said of these columns; what is no dict as it is, to be refused."""
    return {
        part: ({column: value for column, value in entries.items() if column in columns} or None)
        if isinstance(entries, Mapping)
        else entries
        for part, entries in declared.items()
    }


def people_given(
    given: Given, header: pd.DataFrame | None, person: object, per_person: object, constant: object, unit_label: object
) -> People:
    """People in one table, declared by the Dataset or else by its frame or schema.

    ``given``: of several tables, those that are frames are looked at.
    ``header``: the columns of a Polars or Arrow table, with what is declared for them.
    """
    frame = next(iter(given.frames.values()), None) if header is None else header
    known = None if frame is None else declarations_of(frame).people
    if known is not None:
        person = list(known.columns) if person is None else person
        per_person = known.per_person if per_person is None else per_person
        constant = [*known.constant, *checked_columns("constant", constant)]
        unit_label = known.unit_label if unit_label is None else unit_label
    people = judged_people(person, per_person, constant, unit_label)
    for column in (*people.columns, *people.constant):
        if frame is not None:
            check_column(frame, column)
        elif column not in (there := given.columns(given.names[0])):
            raise unknown_column(column, there)
    return people
