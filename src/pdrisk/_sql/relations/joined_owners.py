"""Owners of joins: whose rows a join has, and how many of each person at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pdrisk._model.expressions.nodes import Node
from pdrisk._relations.owners import Owners
from pdrisk._sql.relations.row_scope import Condition, Relation
from pdrisk._sql.relations.written_out import node_of
from pdrisk._sql.syntax.pieces import Expression
from pdrisk._sql.syntax.refusals import nobody_named
from pdrisk._sql.tables.compiled_sources import most_alike
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class JoinedOn:
    """What joins two relations."""

    parts: frozenset[int]  # which parts of what says who a person is are equal
    equal: tuple[tuple[Expression, Expression], ...]  # what of the first relation equals something of the second
    conditions: tuple[Condition, ...]  # what else holds
    # {"", "left", "right"}; of which relation each row matches one of the other at most: the one that has the
    # link
    once: str = ""
    said: tuple[Condition, ...] = ()  # what a reader has to know of a link that does not decide whose a row is
    # equalities of the WHERE around a comma join, which no pair of rows needs to be built without
    held: tuple[Node, ...] = ()


def owners_key(relation: Relation) -> tuple[str, ...]:
    """Columns that say who a person is, of a relation that is written out."""
    assert relation.owners is not None
    return relation.owners.key


def word_of(how: str) -> str:
    return "JOIN" if how == "INNER" else f"{how} JOIN"


def joined_owners(left: Relation, right: Relation, on: JoinedOn, how: str) -> Owners:
    """Owners of the join, and the largest number of rows of one person."""
    ours, theirs = left.owners, right.owners
    assert ours is not None and theirs is not None
    kept, optional = how in ("SEMI", "ANTI"), how == "LEFT"
    if theirs.is_public:
        if ours.is_public or kept:
            return ours
        owners = _times(left, right, [other for _, other in on.equal])
    elif ours.is_public:
        if kept:
            raise ParameterError(
                f"{word_of(how)} keeps the rows of {left.source.name}, which is public, by whether somebody is in "
                f"{right.source.name}: write the table of people first."
            )
        owners = _times(right, left, [first for first, _ in on.equal])
    elif ours.of_rows or theirs.of_rows:
        raise nobody_named()
    elif on.parts != frozenset(range(len(ours.key))):
        sides = zip(*(_keys_shown(side) for side in (left, right)), strict=True)
        equal = " AND ".join(f"{first} = {other}" for first, other in sides)
        linked = any(link.is_link for link in (*ours.links, *theirs.links))
        advice = " Tables with links= are joined on the columns of a link, one step after the other." if linked else ""
        raise ParameterError(
            f"{left.source.name} and {right.source.name} are joined on something else than who a person is, so that "
            f"others would decide how often somebody counts: if these are the same people, write {equal} (or USING), "
            "joined with more by AND, between the columns as they are stored; or declare a table without people in it "
            f"with public=.{advice}"
        )
    elif kept:
        return ours
    else:
        owners = _multiplied(ours, theirs, on, is_optional=optional)
        if not optional or not on.conditions:  # else of one person's rows some may have found others
            owners = replace(owners, constant=owners.constant | theirs.constant)
    return owners


def _keys_shown(relation: Relation) -> list[str]:
    """Columns that say who a person is, as the query can name them."""
    name = relation.names[-1] if relation.names else relation.source.name
    return [f"{name}.{relation.source.called.get(column, column)}" for column in owners_key(relation)]


def _times(people: Relation, public: Relation, equal: Sequence[Expression]) -> Owners:
    """Owners of rows of people, each beside all rows of a public table that are alike in these expressions."""
    owners = people.owners
    assert owners is not None
    factor = None if owners.most is None else most_alike(public.source, list(map(node_of, equal)))
    if owners.of_rows and factor != 1:
        raise ParameterError(
            f"{public.source.name} has up to {factor:,} rows that are alike in what the join compares, so a row of "
            f"{people.source.name} would count up to {factor:,} times: pass person=, the column that says who a person "
            "is, or join a table with one row for each value."
        )
    factors = () if factor is None else (f"up to {factor:,} of {public.source.name}",)
    return owners.times(factor, factors).with_constant(public.source.columns)


def _multiplied(ours: Owners, theirs: Owners, on: JoinedOn, *, is_optional: bool) -> Owners:
    """Owners of a join on the person: of each one's rows all pairs, or one for each row that links to the other."""
    if on.once == "left":
        owners, others = ours.times(1), theirs.times(None)
    elif on.once == "right" and not is_optional:
        owners, others = replace(theirs.times(1), key=ours.key, constant=ours.constant), ours.times(None)
    else:
        owners = ours.times(theirs.most, theirs.factors, is_proven=theirs.is_proven)
        others = theirs.times(None)
        if ours.most == 1 and theirs.extra:
            owners = replace(owners, extra=theirs.extra)
    return replace(owners, links=(*owners.links, *others.links))
