"""Scalar subqueries as groups by what they compare with the SELECT around them, and their values in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pdrisk._model.expressions.nodes import (
    Call,
    Case,
    Column,
    Constant,
    LookedUp,
    Node,
    Operation,
    below,
    conjuncts,
    rebuilt,
)
from pdrisk._sql.relations.rows_of_nobody import is_missing
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading, unique
from pdrisk._sql.syntax.tree import From, Join, Select, Star, Subquery, with_nodes
from pdrisk._sql.text.scalars import ScalarsRead

AROUND: Final = "(around)"  # alias of public rows of the SELECT around, beside what a subquery reads


@dataclass(frozen=True, slots=True)
class ByKey:
    """Scalar subquery as a SELECT with GROUP BY."""

    select: Select  # its keys, then its value
    keys: tuple[Node, ...]  # what they are equal to in the SELECT around it
    of_nobody: Node  # its value where no row fits
    absent: Node  # what holds around it where no row can fit, so that it has no row
    is_exact: bool = False  # whether nothing in it is noisy, and it has rows only where something fits
    equal: str = "=="  # how keys are compared


def by_equalities(inner: Select, pairs: Sequence[tuple[Node, Node] | None]) -> ByKey | None:
    """A subquery by what equalities compare; None if one is none, or the same is compared twice."""
    known = [pair for pair in pairs if pair is not None]
    keys = tuple(key for key, _ in known)
    if len(set(keys)) < len(pairs):
        return None
    select = replace(inner, items=(*((key, "") for key in keys), *inner.items), groups=keys)
    around: dict[Node, Node] = dict(known)
    ruled_out = [
        _is_not(rebuilt(node, around.get)) for node in conjuncts(inner.where) if columns_in(node) <= around.keys()
    ]
    others = tuple(around.values())
    absent = any_of([*(Operation("isna", (other,)) for other in others), *ruled_out])
    return ByKey(select, others, _of_nobody(value_of(inner)), absent)


def by_row(
    inner: Select,
    leaf: From,
    conditions: Sequence[Node],
    columns: Sequence[Column],
    pairs: Sequence[tuple[Node, Node] | None],
) -> ByKey:
    """A subquery that other conditions decide, by the different rows of the public table around it."""
    names = _named_apart(columns)
    keys = {column: Column(name, (AROUND,)) for column, name in zip(columns, names, strict=True)}
    rows = Select(tuple((column, key.name) for column, key in keys.items()), leaf, distinct=True)

    def moved(node: Node) -> Node | None:
        return keys.get(node) if isinstance(node, Column) else None

    condition, keys_around = all_of([rebuilt(node, moved) for node in conditions]), tuple(keys.values())
    source = Join(inner.source, Subquery(rows, AROUND, ()), "INNER", condition, ())
    select = replace(
        inner, items=(*((key, "") for key in keys_around), *inner.items), source=source, groups=keys_around
    )
    absent: list[Node] = [Operation("isna", (pair[1],)) for pair in pairs if pair is not None]
    of_around = [node for node in conditions if columns_in(node) <= set(columns)]
    absent += map(_is_not, of_around)
    return ByKey(select, tuple(columns), _of_nobody(value_of(inner)), any_of(absent), equal="is not distinct from")


def equality_around(node: Node, foreign: set[Column]) -> tuple[Node, Node] | None:
    """The sides of an equality of something of the subquery with something around it."""
    if not isinstance(node, Operation) or node.symbol != "==":
        return None
    for inner, other in (node.parts, node.parts[::-1]):
        if columns_in(inner) and not columns_in(inner) & foreign and columns_in(other) and columns_in(other) <= foreign:
            return inner, other
    return None


def columns_in(node: Node) -> set[Column]:
    return {part for part in below(node) if isinstance(part, Column)}


def semi_joined(by_key: ByKey, leaf: From, places: Sequence[int]) -> Select:
    """The subquery over the rows of its FROM that fit a row of a public table around it, which so lists the keys."""
    names = dict(zip(places, _named_apart([by_key.keys[at] for at in places]), strict=True))
    rows = Select(tuple((by_key.keys[at], name) for at, name in names.items()), leaf)
    keys = by_key.select.groups or ()
    equal = all_of([Operation("==", (keys[at], Column(name, (AROUND,)))) for at, name in names.items()])
    return replace(by_key.select, source=Join(by_key.select.source, Subquery(rows, AROUND, ()), "SEMI", equal, ()))


def _named_apart(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Names that no column of the subquery has, for what stands around it."""
    return unique([f"({heading(node)})" for node in nodes])


def value_of(inner: Select) -> Node:
    """The one item of a scalar subquery."""
    ((item, _),) = inner.items
    assert not isinstance(item, Star), "what is not read as one value"
    return item


def _is_not(condition: Node) -> Node:
    """That a condition does not hold, or nobody knows."""
    return Case(((condition, Constant(False)),), Constant(True))


def _of_nobody(item: Node) -> Node:
    """Value of aggregates over no row: a count is 0, all others are missing."""

    def changed(node: Node) -> Node | None:
        if isinstance(node, Call) and node.name in AGGREGATES:
            return Constant(0 if "count" in node.name else None)
        return None

    value = rebuilt(item, changed)
    return Constant(None) if is_missing(value, ()) else value


def all_of(nodes: Sequence[Node]) -> Node | None:
    return Operation("and", tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else None


def any_of(nodes: Sequence[Node]) -> Node:
    return Operation("or", tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else Constant(False)


def replaced(select: Select, name: str, value: Node) -> Select:
    """The SELECT with a value for the column that stands for a subquery."""

    def changed(node: Node) -> Node | None:
        return value if isinstance(node, Column) and node.name == name and not node.qualifiers else None

    return with_nodes(select, partial(rebuilt, change=changed))


def labelled(select: Select, name: str, inner: Select) -> Select:
    """The SELECT with a heading where the subquery stands alone."""
    label = inner.items[0][1] or heading(value_of(inner))
    items = ((item, label if item == Column(name) and not written else written) for item, written in select.items)
    return replace(select, items=tuple(items))


def beside(select: Select, name: str, by_key: ByKey) -> Select:
    """The SELECT over its rows and the values of their keys."""
    names = [f"{name} key {at}" for at in range(len(by_key.keys))]
    equal = [
        Operation(by_key.equal, (key, Column(key_name, (name,))))
        for key, key_name in zip(by_key.keys, names, strict=True)
    ]
    source = Join(select.source, Subquery(by_key.select, name, (*names, name)), "LEFT", all_of(equal), ())
    items = [
        (replace(item, excluded=(*item.excluded, *names, name)), written)
        if isinstance(item, Star) and not item.table
        else (item, written)
        for item, written in select.items
    ]
    select = replace(select, source=source, items=tuple(items))
    if by_key.of_nobody == Constant(None):
        return select
    nobody = by_key.of_nobody
    if not by_key.is_exact:  # else a key that keys= does not list would have no people
        nobody = Case(((by_key.absent, nobody),), Constant(None))
    return replaced(select, name, Operation("coalesce", (Column(name), nobody)))


def looked_up(by_key: ByKey, inner: Select, read: ScalarsRead) -> Node:
    """The value of a row's key among those that were answered first."""
    branches: list[tuple[Node, Node]] = []
    rows = read.rows(by_key.select, len(by_key.keys) + 1)
    for *keys, value in rows:
        if all(key.value is not None for key in keys):
            equal = all_of([Operation("==", pair) for pair in zip(by_key.keys, keys, strict=True)])
            assert equal is not None
            branches.append((equal, value))
    if by_key.of_nobody != Constant(None):
        branches.append((by_key.absent, by_key.of_nobody))
    if not branches:
        return Constant(None)
    by, number = ", ".join(map(heading, by_key.keys)), rows[0][0].place + 1
    return LookedUp(tuple(branches), Constant(None), f"({heading(value_of(inner))} by {by}, subquery {number})")
