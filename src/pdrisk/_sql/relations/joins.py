"""Joins of relations: on all columns that say who a person is, or with public tables.

    left  ──> written out ─┐
                           ├─> one SELECT, each row made of the rows of one person ──> a source like a table
    right ──> written out ─┘

Whether a column says who a person is depends on the column it is bound to, never on its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from pdrisk._model.expressions.nodes import Column, Node, Operation, below, implied
from pdrisk._relations.owners import PUBLIC
from pdrisk._relations.plan import Joined
from pdrisk._sql.relations.joined_owners import JoinedOn, joined_owners, owners_key, word_of
from pdrisk._sql.relations.public_keys import listed_by_join
from pdrisk._sql.relations.row_scope import Condition, Member, Relation, Rows, column_of, condition, named
from pdrisk._sql.relations.rows_of_nobody import absent_in_join
from pdrisk._sql.relations.written_out import read_together, written_out
from pdrisk._sql.syntax.pieces import INTEGERS, Expression, lowered
from pdrisk._sql.syntax.tree import Join
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError, PdriskError


@dataclass(frozen=True)
class Nested(Rows):
    """Scope of a subquery in EXISTS: its own columns, then those around it."""

    inner: Relation
    outer: Relation

    def column(self, node: Column) -> Expression:
        """The expression behind a name."""
        is_inner = self.inner.found(lowered(node.name), tuple(map(lowered, node.qualifiers)))
        return Rows(self.inner if is_inner else self.outer, {}).column(node)


def joined(item: Join, left: Relation, right: Relation, sources: Sources, around: Sequence[Node] = ()) -> Relation:
    """Relation of the rows of two relations that belong together.

    ``around``: the conditions of the WHERE around, which decide what CROSS JOIN and a comma join.
    """
    taken: set[str] = set()
    left, right = (written_out(side, sources, taken) for side in (left, right))
    merged = read_together(left.source, right.source, sources, "JOIN" if item.how == "CROSS" else word_of(item.how))
    pair = Relation(merged, (*left.columns, *right.columns), (), members=(*_members(left), *_members(right)))
    nodes = list(around) if item.how == "CROSS" else implied(item.condition)
    on = _on(nodes, Rows(pair, {}), left, right, is_around=item.how == "CROSS")
    if item.using:
        on = _using(item.using, merged, left, right)
    made = _related(left, right, on, item.how, merged)
    if item.how in ("SEMI", "ANTI"):
        return made
    columns = [column for column in right.columns if lowered(column[0]) not in map(lowered, item.using)]
    kept = on.conditions if item.how == "INNER" else ()  # ON is a WHERE then, and says what one does
    relation = replace(made, columns=(*left.columns, *columns), members=pair.members, names=(), where=kept)
    assert relation.owners is not None
    if item.how == "LEFT" or right.owners == PUBLIC or left.owners == PUBLIC:
        return relation
    return _with_one_key(relation, left, right)


def kept_by(left: Relation, right: Relation, sources: Sources, *, negated: bool, nodes: Sequence[Node]) -> Relation:
    """Rows of a relation for which a subquery has a row, or none; ``nodes`` are its conditions."""
    taken: set[str] = set()
    left, right = (written_out(side, sources, taken) for side in (left, right))
    how = "ANTI" if negated else "SEMI"
    merged = read_together(left.source, right.source, sources, word_of(how))
    pair = Relation(merged, (*left.columns, *right.columns), ())
    on = _on(nodes, Nested(pair, {}, right, left), left, right, is_around=False)
    return _related(left, right, on, how, merged)


def member_condition(
    left: Relation, operand: Expression, right: Relation, sources: Sources, *, negated: bool
) -> Relation:
    """The rows of a relation whose operand is, or is not, in the one column of another."""
    if len(right.columns) != 1:
        raise ParameterError(f"IN compares with one column, but the subquery has {len(right.columns)}.")
    left = replace(left, columns=(*left.columns, ("operand", operand)))
    taken: set[str] = set()
    left, right = (written_out(side, sources, taken) for side in (left, right))
    *columns, (_, compared) = left.columns
    left = replace(left, columns=tuple(columns))
    how = "ANTI" if negated else "SEMI"
    merged = read_together(left.source, right.source, sources, word_of(how))
    on = _equal([(compared, right.columns[0][1])], merged, left, right)
    made = _related(left, right, on, how, merged)
    if negated:  # of a NULL nobody knows whether it is in it
        assert compared.node is not None, "a column that was written out"
        known = Condition(f"({compared.shown} IS NOT NULL)", False, Operation("notna", (compared.node,)))
        made = replace(made, where=(known,))
    return made


def _members(relation: Relation) -> tuple[Member, ...]:
    return relation.members or (Member(relation.names, relation.columns),)


def _on(nodes: Sequence[Node], scope: Rows, left: Relation, right: Relation, *, is_around: bool) -> JoinedOn:
    """Conditions of ON; of the conditions around it only equalities of people's ids."""
    parts: set[int] = set()
    equal: list[tuple[Expression, Expression]] = []
    rest: list[Condition] = []
    held: list[Node] = []
    for node in nodes:
        part, sides = None, None
        if isinstance(node, Operation) and node.symbol == "==":
            part, sides = _equality(node, scope, left, right, is_around=is_around)
        if part is not None:
            parts.add(part)
        elif not is_around:
            rest.append(condition(node, scope))
        elif sides is not None:
            held.append(condition(node, scope).node)
        if sides is not None:
            equal.append(sides)
    return JoinedOn(frozenset(parts), tuple(equal), tuple(rest), held=tuple(held))


def _equality(
    node: Operation, scope: Rows, left: Relation, right: Relation, *, is_around: bool
) -> tuple[int | None, tuple[Expression, Expression] | None]:
    """Part of the id that two sides compare, and the sides by relation; None if it is no such equality."""
    try:
        sides = [(_side(part, scope, left), named(part, scope)) for part in node.parts]
    except PdriskError:
        if is_around:  # of tables that are joined later
            return None, None
        raise
    if {side for side, _ in sides} != {"left", "right"}:
        return None, None
    first, other = (next(value for side, value in sides if side == wanted) for wanted in ("left", "right"))
    return _part(first, other, left, right), (first, other)


def _side(node: Node, scope: Rows, left: Relation) -> str:
    """The relation to which all columns of an expression belong."""
    in_left = {scope.column(part).column in left.source.columns for part in below(node) if isinstance(part, Column)}
    return "" if len(in_left) != 1 else "left" if in_left.pop() else "right"


def _part(first: Expression, other: Expression, left: Relation, right: Relation) -> int | None:
    """The part of the id that both columns are."""
    ours, theirs = owners_key(left), owners_key(right)
    if first.column not in ours or other.column not in theirs or ours.index(first.column) != theirs.index(other.column):
        return None
    check_alike(left, first.column, right, other.column)
    return ours.index(first.column)


def check_alike(left: Relation, name: str, right: Relation, other: str) -> None:
    """Refuse ids that would be compared after a cast."""
    both = first, second = left.source.columns[name], right.source.columns[other]
    if first != second and not (first in INTEGERS and second in INTEGERS):
        advice = ' A frame with missing ids makes DOUBLE of integers: use astype("Int64").' if "DOUBLE" in both else ""
        raise ParameterError(
            f"{name} of {left.source.name} is {first} and {other} of {right.source.name} is {second}: ids are compared "
            f"as they are, since a cast could make one person of two. Store both in one type.{advice}"
        )


def _using(names: Sequence[str], merged: Source, left: Relation, right: Relation) -> JoinedOn:
    pairs = []
    for name in names:
        columns = [Rows(side, {}).column(Column(name)) for side in (left, right)]
        pairs.append((columns[0], columns[1]))
    return _equal(pairs, merged, left, right)


def _equal(pairs: Sequence[tuple[Expression, Expression]], merged: Source, left: Relation, right: Relation) -> JoinedOn:
    """Condition that all of these are equal on both sides."""
    node = Operation("==", (Column("own"), Column("other")))
    parts: set[int] = set()
    rest: list[Condition] = []
    for first, other in pairs:
        part = _part(first, other, left, right)
        if part is None:
            rest.append(condition(node, Rows(Relation(merged, (("own", first), ("other", other)), ()), {})))
        else:
            parts.add(part)
    return JoinedOn(frozenset(parts), tuple(pairs), tuple(rest))


def _related(left: Relation, right: Relation, on: JoinedOn, how: str, merged: Source) -> Relation:
    """Relation of the join, with the columns of the first."""
    ours, theirs = left.owners, right.owners
    assert ours is not None and theirs is not None
    on = _through_links(on, left, right)
    kept = how in ("SEMI", "ANTI")
    listing, keeps_public = how, how == "LEFT" and ours.is_public and not theirs.is_public
    pairs = [(first.column, other.column) for first, other in on.equal]
    columns = frozenset(right.source.columns)
    absent = (
        columns
        if keeps_public
        else absent_in_join((left.absent, right.absent), pairs, how, columns, by_person=bool(on.parts))
    )
    how = "INNER" if keeps_public else how
    source = replace(
        merged,
        columns=left.source.columns if kept else merged.columns,
        made=Joined(
            left.source.relation,
            right.source.relation,
            how,
            (*(clause.node for clause in on.conditions), *on.held),
            tuple((ours.key[at], theirs.key[at]) for at in sorted(on.parts)),
        ),
    )
    inside = (*left.inside, *_shown(right, on, how))
    listed = listed_by_join(left, right, listing, on.equal, (clause.node for clause in on.conditions))
    owners = joined_owners(left, right, on, how)
    return replace(left, source=source, owners=owners, inside=inside, listed=listed, absent=absent)


def _through_links(on: JoinedOn, left: Relation, right: Relation) -> JoinedOn:
    """The same with people's ids equal where the columns of a link are.

    Of keys that are unique, and one way to people, this changes nothing. Of others it keeps each row one person's.
    """
    ours, theirs = left.owners, right.owners
    assert ours is not None and theirs is not None
    equal = {(first.column, other.column) for first, other in on.equal}
    pairs = [
        (one, other)
        for one, other in product(ours.links, theirs.links)
        if one.of == other.of
        and (one.is_link or other.is_link)
        and set(zip(one.columns, other.columns, strict=True)) <= equal
    ]
    if not pairs or len(ours.key) != len(theirs.key):
        return on
    for first, second in zip(ours.key, theirs.key, strict=True):
        check_alike(left, first, right, second)
    has_left, has_right = (any(pair[at].is_single for pair in pairs) for at in (0, 1))
    parts = frozenset(range(len(ours.key)))
    is_known = on.parts == parts or any(all(link.decides or not link.is_link for link in pair) for pair in pairs)
    note = Condition(f"{left.source.name} and {right.source.name} are rows of one person", False)
    once = "left" if has_right else "right" if has_left else ""
    return replace(on, parts=parts, once=once, said=() if is_known else (note,))


def _shown(right: Relation, on: JoinedOn, how: str) -> tuple[Condition, ...]:
    """The second relation and ON as people read them."""
    if how not in ("SEMI", "ANTI", "LEFT"):
        return (*right.inside, *on.said)
    conditions = (*right.inside, *on.conditions, *on.said)
    words = {"SEMI": "EXISTS", "ANTI": "NOT EXISTS", "LEFT": "LEFT JOIN"}[how]
    where = " AND ".join(clause.shown for clause in conditions)
    shown = f"{words} ({right.source.name}{f' WHERE {where}' if where else ''})"
    return (Condition(shown, any(clause.given for clause in conditions)),)


def _with_one_key(relation: Relation, left: Relation, right: Relation) -> Relation:
    """The relation in which the second table's ids are those of the first, unchanged."""
    ours, theirs = owners_key(left), owners_key(right)

    def same(value: Expression) -> Expression:
        if value.column not in theirs:
            return value
        first = ours[theirs.index(value.column)]
        return column_of(first, relation.source.columns[first], relation.source)

    def moved(columns: Sequence[tuple[str, Expression]]) -> tuple[tuple[str, Expression], ...]:
        return tuple((label, same(value)) for label, value in columns)

    members = tuple(Member(member.names, moved(member.columns)) for member in relation.members)
    return replace(relation, columns=moved(relation.columns), members=members)
