"""Links: tables whose rows belong to the person of a row of another table that they lead to.

    child ──────> written out ─┐
                               ├─> joined on the link, with the ids of people ──> a relation of people's rows
    parent (key and ids only) ─┘

A row that leads nowhere is nobody's, and left out. One that leads to several people, because their key is not unique,
counts for each of them, under the limit of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pdrisk._model.expressions.nodes import Column
from pdrisk._relations.owners import PUBLIC
from pdrisk._relations.plan import Joined
from pdrisk._sql.relations.joined_owners import owners_key
from pdrisk._sql.relations.joins import check_alike
from pdrisk._sql.relations.public_keys import ListedBy, listed_by_link
from pdrisk._sql.relations.row_scope import Condition, Relation, Rows
from pdrisk._sql.relations.written_out import owners_of, read_together, written_out
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.tables.declared_links import UNIQUE, DeclaredLink
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.tables.unique_columns import is_unique
from pdrisk.errors import ParameterError, UnknownColumnError


def linked(relation: Relation, asked: str, sources: Sources, stored: Callable[[tuple[str, ...]], Relation]) -> Relation:
    """A stored table with the people that its links lead to; as it is if it has none.

    ``asked``: its name in the query.
    ``stored``: gives another table by its name.
    """
    name = relation.source.asked_as or relation.source.name
    if lowered(asked) in sources.links and lowered(asked) != lowered(name):
        raise ParameterError(
            f"links= names {asked}, which is a view: name the tables that it reads, with the columns that they have."
        )
    links = () if relation.owners is not None else sources.links.get(lowered(name), ())
    if not links:
        return relation
    _check_child(relation, name, decides=links[0].decides)
    further = [link for link in links if not link.decides]
    public = [(link, _public(link, name, sources, stored)) for link in further if not link.to_people]
    vouched = [condition for link in further if link.to_people for condition in _vouched(link, name, sources)]
    if not links[0].decides:
        listed = _listed(relation, name, public)
        return replace(relation, inside=(*relation.inside, *vouched), listed={**listed, **relation.listed})
    link = links[0]
    taken: set[str] = set()
    child = written_out(replace(relation, owners=PUBLIC), sources, taken)
    parent = _keys_of(link, stored(tuple(link.parent.split("."))), sources, taken)
    columns = [_column(child, column, name) for column in link.columns]
    key = [_column(parent, column, link.parent) for column in link.key]
    for one, other in zip(columns, key, strict=True):
        check_alike(child, one, parent, other)
    merged = read_together(child.source, parent.source, sources, "JOIN")
    by_key = dict(zip(key, columns, strict=True))
    is_of_ids = set(key) == set(owners_key(parent))
    source = replace(
        merged,
        columns=child.source.columns if is_of_ids else merged.columns,
        name=name,
        asked_as=relation.source.asked_as,
        rows=relation.source.rows,
        made=Joined(
            child.source.relation,
            parent.source.relation,
            "SEMI" if is_of_ids else "INNER",
            same=tuple(zip(columns, key, strict=True)),
        ),
    )
    ids = tuple(by_key[column] for column in owners_key(parent)) if is_of_ids else owners_key(parent)
    assert sources.owner_of is not None  # else nobody said who the parent's people are
    inside = (*child.inside, *parent.inside, *([] if is_of_ids else _vouched(link, name, sources)), *vouched)
    owners, listed = sources.owner_of(source, ids), {**_listed(child, name, public), **child.listed}
    return replace(child, source=source, names=relation.names, owners=owners, inside=inside, listed=listed)


def _public(link: DeclaredLink, name: str, sources: Sources, stored: Callable[[tuple[str, ...]], Relation]) -> Relation:
    """The public table that a link leads to."""
    parent = stored(tuple(link.parent.split(".")))
    if owners_of(parent, sources).is_public:
        return written_out(parent, sources, set())
    raise ParameterError(
        f"links= of {name} lead to {link.parent}, and neither person= nor links= nor public= say whether somebody is "
        "in it: name it in one of them, or leave this link out."
    )


def _listed(child: Relation, name: str, public: Sequence[tuple[DeclaredLink, Relation]]) -> dict[str, ListedBy]:
    """What the columns of links to public tables can be; of several links of a column, the first says it."""
    listed: dict[str, ListedBy] = {}
    for link, parent in reversed(public):
        columns = [_column(child, column, name) for column in link.columns]
        key = [_column(parent, column, link.parent) for column in link.key]
        listed |= listed_by_link(child, columns, parent, key)
    return listed


def _check_child(relation: Relation, name: str, *, decides: bool) -> None:
    """Refuse links of what has people of its own, or of nobody."""
    if relation.source.public:
        raise ParameterError(f"links= and public= both name {name}, and public tables have no people: leave one out.")
    people = relation.source.declared.people
    if decides and people is not None and people.columns:
        raise ParameterError(
            f"{name} declares person=, and links= lead to people, too: declare it without person=, or leave it out of "
            "links=."
        )


def _keys_of(link: DeclaredLink, parent: Relation, sources: Sources, taken: set[str]) -> Relation:
    """The columns of the parent that a link leads to, and the ids of its people."""
    owners = owners_of(parent, sources)
    if owners.is_public:
        raise ParameterError(
            f"the first link of a table leads to people, and {link.parent} is public: put a link to a table of people "
            "first, or name this table in public=, too, if nobody is in it."
        )
    key = tuple((column, _value(parent, column, link.parent)) for column in link.key)
    return written_out(replace(parent, columns=key, members=(), owners=owners), sources, taken)


def _value(relation: Relation, label: str, table: str) -> Expression:
    try:
        return Rows(relation, {}).column(Column(label))
    except UnknownColumnError as error:
        problem = str(error)
    raise UnknownColumnError(f"links= of table {table}: {problem}")


def _column(relation: Relation, label: str, table: str) -> str:
    """The column of a relation that is written out, by its label."""
    column = _value(relation, label, table).column
    assert column is not None
    return column


def _vouched(link: DeclaredLink, name: str, sources: Sources) -> list[Condition]:
    """The owner's word that a key is unique, for people; none where the catalog says it."""
    target = f"{', '.join(link.key)} of {link.parent}"
    if is_unique(sources, tuple(link.parent.split(".")), link.key):
        return []
    if link.is_unique:
        return [Condition(f"a link of {name} to {target} (unique, on the owner's word)", False)]
    raise ParameterError(
        f"links= of {name} lead to {target}, and no PRIMARY KEY or UNIQUE of a catalog says that no two rows have the "
        "same: one row could belong to several people. If you know that none have, say so by "
        f'"{UNIQUE}" at the end of the link, as in (..., "{link.parent}", ..., "{UNIQUE}").'
    )
