"""Comma joins, and CROSS JOIN: an equality in WHERE says which tables belong together, in whatever order they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pdrisk._model.expressions.nodes import Column, Node, Operation, below
from pdrisk._sql.relations.joins import joined
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import From, Join, Nothing
from pdrisk._sql.tables.sources import Sources

T = TypeVar("T")


def listed_by_comma(item: From) -> list[From]:
    """What commas or CROSS JOIN join, from left to right."""
    if isinstance(item, Join) and item.how == "CROSS":
        return [*listed_by_comma(item.left), item.right]
    return [item]


def crossed(relations: Sequence[Relation], sources: Sources, around: Sequence[Node]) -> Relation:
    """Relation of the rows of several relations that the conditions around them join.

    Two tables that no equality joins are put together last, when little is left of both: pairs of all their rows
    would take hours to count, and the most rows of a person would be as many as such a table has.
    """
    order = _order(relations, around)
    made = relations[order[0]]
    for at in order[1:]:
        made = joined(Join(Nothing(), Nothing(), "CROSS", None, ()), made, relations[at], sources, around)
    columns = _in_order(made.columns, order, [len(relation.columns) for relation in relations])
    members = _in_order(made.members, order, [len(relation.members) or 1 for relation in relations])
    return replace(made, columns=tuple(columns), members=tuple(members))


def _order(relations: Sequence[Relation], around: Sequence[Node]) -> list[int]:
    """Order in which each relation has an equality with one before it, as far as there are such."""
    pairs = [_sides(node, relations) for node in around]
    order, left = [0], list(range(1, len(relations)))
    while left:
        met = set(order)
        near = [at for at in left if any(at in pair and pair & met for pair in pairs)]
        order.append((near or left)[0])
        left.remove(order[-1])
    return order


def _sides(node: Node, relations: Sequence[Relation]) -> set[int]:
    """The relations whose columns an equality compares; none of other conditions."""
    if not isinstance(node, Operation) or node.symbol != "==":
        return set()
    columns = [part for part in below(node) if isinstance(part, Column)]
    return {at for at, relation in enumerate(relations) if any(_has(relation, column) for column in columns)}


def _has(relation: Relation, column: Column) -> bool:
    return bool(relation.found(lowered(column.name), tuple(map(lowered, column.qualifiers))))


def _in_order(values: Sequence[T], order: Sequence[int], sizes: Sequence[int]) -> list[T]:
    """Values of relations that were joined in this order, in the order in which they are written."""
    slices, begin = {}, 0
    for at in order:
        slices[at] = values[begin : begin + sizes[at]]
        begin += sizes[at]
    return [value for at in sorted(slices) for value in slices[at]]
