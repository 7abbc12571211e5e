"""Declared links of tables: which columns of one lead to the rows of another, and so to people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pdrisk._core.foreign import shown
from pdrisk._model.unit import checked_columns
from pdrisk._relations.owners import OwnerKey
from pdrisk._sql.syntax.pieces import lowered
from pdrisk.errors import ColumnTypeError, ParameterError

UNIQUE = "unique"
EXAMPLE = 'links={"lineitem": ("l_orderkey", "orders", "o_orderkey")}'


class DeclaredLink(NamedTuple):
    """Link from a table to another."""

    columns: tuple[str, ...]  # of the table that has the link
    parent: str  # the table that it leads to
    key: tuple[str, ...]  # columns of that table
    is_unique: bool  # whether no two of its rows have the same key, by the owner's word
    # whether a row belongs to the person of the row that it leads to: so does the first link of a table without
    # ids
    decides: bool = False
    to_people: bool = True  # whether somebody is in the rows of that table, as far as ``person=`` and ``links=`` say

    def owner_key(self, *, is_link: bool) -> OwnerKey:
        """The columns of either table, which equal values in the other's lead to one person by."""
        pairs = sorted(zip(self.key, self.columns, strict=True))
        of = (lowered(self.parent), *(lowered(parent_column) for parent_column, _ in pairs))
        return OwnerKey(
            of,
            tuple(other if is_link else parent_column for parent_column, other in pairs),
            is_link,
            decides=is_link and self.decides,
        )


Links = Mapping[str, tuple[DeclaredLink, ...]]  # by the name of a table in lower case


def checked_links(links: object, person: object) -> Links:
    """Links of a call or of a Dataset.

    ``links``: as the caller passes them.
    ``person``: the column of ids, or a dict by table.
    """
    if links is None:
        return {}
    if not isinstance(links, Mapping) or not all(isinstance(name, str) for name in links):
        raise ColumnTypeError(f"links is a dict by table, as in {EXAMPLE}, not of type {type(links).__name__}.")
    if person is None:
        raise ParameterError('links= lead to people: pass person= as well, as in person={"customer": "c_custkey"}.')
    declared = {last_name(name): _links_of(name, given) for name, given in links.items()}
    if len(declared) < len(links):
        raise ParameterError("links= names a table twice, in other capitals: list all its links in one place.")
    ids = _ids(person) if isinstance(person, Mapping) else None
    people = {*declared, *(ids or ())}
    for name, listed in declared.items():
        has_ids = ids is not None and name in ids
        declared[name] = tuple(
            link._replace(decides=at == 0 and not has_ids, to_people=last_name(link.parent) in people)
            for at, link in enumerate(listed)
        )
    for name in declared:
        _check_way(name, declared, ids)
        _check_further(name, declared[name], ids or {})
    return declared


def _ids(person: Mapping[Any, object]) -> dict[str, frozenset[str]]:
    """The columns of ids by table, all in lower case."""
    return {
        last_name(str(name)): frozenset(lowered(str(column)) for column in checked_columns("person", columns))
        for name, columns in person.items()
    }


def last_name(table: str) -> str:
    """The name of a table in lower case, without that of its schema."""
    return lowered(table).rsplit(".", 1)[-1]


def _check_way(name: str, links: Links, ids: Mapping[str, object] | None) -> None:
    """Refuse a way that leads in a circle, or to a table without people; ``ids`` None: all without links have some."""
    way = [name]
    while way[-1] in links and links[way[-1]][0].decides:
        way.append(last_name(links[way[-1]][0].parent))
        if way[-1] in way[:-1]:
            raise ParameterError(f"links= lead in a circle, {' -> '.join(way)}: the last has to lead to people.")
    if ids is not None and way[-1] not in ids:
        raise ParameterError(
            f"links= lead {' -> '.join(way)}, and person= does not say who a person is in {way[-1]}: add it to "
            "person=, or begin with the link that leads to people."
        )


def _check_further(name: str, listed: Sequence[DeclaredLink], ids: Mapping[str, frozenset[str]]) -> None:
    """Refuse a link that names somebody else than the person whose row it is, such as an order's clerk."""
    before: set[tuple[object, ...]] = set()
    for link in listed:
        way = (last_name(link.parent), frozenset(map(lowered, link.key)))
        names_people = ids.get(way[0]) == way[1] and ids.get(name) != frozenset(map(lowered, link.columns))
        if not link.decides and (names_people or (link.to_people and way in before)):
            whose = f"person= of {name}" if name in ids else "its first link"
            columns = ", ".join(link.columns)
            raise ParameterError(
                f"the rows of {name} belong to the people of {whose}, and those that {columns} names in {link.parent} "
                "would not be protected: leave this link out, or let it say whose rows they are."
            )
        before.add(way)


def _links_of(name: str, given: object) -> tuple[DeclaredLink, ...]:
    listed = given if isinstance(given, list) else [given]
    if not listed:
        raise ParameterError(f"links= of {name} is empty: write {EXAMPLE}, or leave the table out.")
    return tuple(_link(name, link) for link in listed)


def _link(name: str, given: Any) -> DeclaredLink:
    is_triple = isinstance(given, tuple) and len(given) in (3, 4) and isinstance(given[1], str) and given[1] != ""
    if not is_triple:
        raise ColumnTypeError(
            f"links= of {name} is (columns, table, columns of that table), or a list of such, as in {EXAMPLE}."
        )
    columns, key = (tuple(map(str, checked_columns("links", given[at]))) for at in (0, 2))
    if not columns or len(columns) != len(key) or len(set(columns)) < len(columns) or len(set(key)) < len(key):
        raise ParameterError(
            f"links= of {name} compares {len(columns)} columns with {len(key)} of {given[1]}: name as many of both, "
            "each once."
        )
    if len(given) == 4 and given[3] != UNIQUE:
        raise ParameterError(
            f'links= of {name} has {shown(given[3])} after the columns of {given[1]}, where only "{UNIQUE}" may stand: '
            "your word that no two of its rows have the same."
        )
    return DeclaredLink(columns, given[1], key, len(given) == 4)


def owner_keys(name: str, columns: Collection[str], ids: Collection[str], links: Links) -> tuple[OwnerKey, ...]:
    """Columns of a table of which equal values belong to one person: its links to people, and what others link to.

    What others link to is unique, except for ids of people, who may have several rows.
    """
    spelt = {lowered(column): column for column in columns}
    keys_of_links = [link.owner_key(is_link=True) for link in links.get(lowered(name), ()) if link.to_people]
    others = [
        link.owner_key(is_link=False) for of in links.values() for link in of if last_name(link.parent) == lowered(name)
    ]
    keys = []
    for key in dict.fromkeys([*keys_of_links, *others]):
        if all(lowered(column) in spelt for column in key.columns):
            named = tuple(spelt[lowered(column)] for column in key.columns)
            keys.append(key._replace(columns=named, is_single=not key.is_link and set(named) != set(ids)))
    return tuple(keys)
