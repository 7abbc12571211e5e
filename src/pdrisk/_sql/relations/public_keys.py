"""Keys of groups that public tables list: what a column can be by their rows, whoever is in the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pdrisk._model.expressions.nodes import Column, Constant, Node, Noisy, Operation, below, implied, mapped
from pdrisk._relations.plan import Joined, Selection
from pdrisk._relations.pruned import columns_named
from pdrisk._sql.syntax.pieces import INTEGERS, Expression
from pdrisk._sql.syntax.ranges import ANYTHING, Range
from pdrisk._sql.tables.compiled_sources import ends, public_rows
from pdrisk._sql.tables.source import Source
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from pdrisk._sql.relations.row_scope import Relation

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PublicSide:
    """Public table in a join."""

    source: Source  # its rows, less those that the join surely leaves out
    optional: bool = False  # whether a row of people may stand beside no row of it
    # whether rows of people stand beside its rows; else a link says that they name some, as far as it holds
    is_joined: bool = True
    ranges: dict[Node, Range] = field(default_factory=dict, repr=False)  # what `range_of` found before

    def range_of(self, node: Node, column: str) -> Range:
        """Range of an expression's numbers over its rows, as that of a column."""
        if node not in self.ranges:
            interval = ends(self.source, node)
            known = interval is not None and all(map(math.isfinite, interval))
            self.ranges[node] = Range(*interval, frozenset({column})) if interval is not None and known else ANYTHING
        return self.ranges[node]

    def rows(self, nodes: Sequence[Node], where: Sequence[Node]) -> list[tuple[Any, ...]]:
        """Different values of expressions over its rows that fulfil conditions, in the order of the table."""
        relations = [self.source.relation]
        if self.optional:  # and over a row of NULLs
            nobody = Selection(self.source.relation, ())
            relations.append(Joined(nobody, self.source.relation, "LEFT", (Constant(False),)))
        named = tuple((f"k{at}", node) for at, node in enumerate(nodes))
        whole = frozenset(name for name, node in named if isinstance(node, Column) and node.name in self.source.whole)
        values: dict[tuple[Any, ...], None] = {}
        for relation in relations:
            made = Selection(relation, named, tuple(where))
            columns = dict.fromkeys((name for name, _ in named), "")
            read = public_rows(replace(self.source, columns=columns, whole=whole, made=made))
            for row in read.itertuples(index=False, name=None):
                values[tuple(None if key != key else key for key in row)] = None
        return list(values)


class ListedBy(NamedTuple):
    """Expression over the rows of a public table in a join, which a column of the join is equal to."""

    side: PublicSide
    node: Node


def listed_as(node: Node, listed: Mapping[str, ListedBy]) -> ListedBy | None:
    """An expression over such columns, if all are of one table."""
    names = columns_named([node])
    if not names or not names <= set(listed):
        return None
    side, *others = {listed[name].side for name in names}

    def moved(part: Node) -> Node:
        return listed[part.name].node if isinstance(part, Column) else mapped(part, moved)

    return None if others else ListedBy(side, moved(node))


def listed_by_join(
    left: Relation,
    right: Relation,
    how: str,
    equal: Iterable[tuple[Expression, Expression]],
    conditions: Iterable[Node],
) -> Mapping[str, ListedBy]:
    """What the columns of a join of two relations that are written out can be.

    ``equal``: what of the first relation equals something of the second in every row, unless it is a LEFT JOIN.
    ``conditions``: what else holds then.
    """
    if how == "ANTI":
        return left.listed
    pairs = [] if how == "LEFT" else [(one.column, two.column) for one, two in equal]
    holding: list[Node] = [Operation("notna", (Column(name),)) for pair in pairs for name in pair if name is not None]
    holding += [] if how == "LEFT" else list(conditions)
    first, second = (_listed(side, holding) for side in (left, right))
    if how == "LEFT":
        sides = {listing.side: replace(listing.side, optional=True, ranges={}) for listing in second.values()}
        second = {name: ListedBy(sides[listing.side], listing.node) for name, listing in second.items()}
    listed, types = {**first, **second}, {**left.source.columns, **right.source.columns}
    for one, two in pairs:
        for column, other in ((one, two), (two, one)):
            if column is None or other not in listed:
                continue
            if column in listed and listed[column].side.is_joined:
                continue
            if types[column] == types[other] or (types[column] == "DOUBLE" and types[other] in INTEGERS):
                listed[column] = listed[other]
    return {name: by for name, by in listed.items() if how != "SEMI" or name in left.source.columns}


def _listed(relation: Relation, holding: Iterable[Node]) -> Mapping[str, ListedBy]:
    """Columns of one side: of a public table all, by its rows for which the conditions on it alone hold."""
    assert relation.owners is not None
    if not relation.owners.is_public:
        return relation.listed
    source, columns = relation.source, set(relation.source.columns)
    where = tuple(node for node in holding if columns_named([node]) <= columns)
    side = PublicSide(
        replace(source, made=Selection(source.relation, tuple((name, Column(name)) for name in columns), where))
    )
    return {name: ListedBy(side, Column(name)) for name in columns}


def listed_by_link(
    child: Relation, columns: Sequence[str], parent: Relation, key: Sequence[str]
) -> Mapping[str, ListedBy]:
    """What the columns of a link to a public table can be: what they name there, as far as the types are alike."""
    side, types = PublicSide(parent.source, is_joined=False), parent.source.columns
    return {
        column: ListedBy(side, Column(other))
        for column, other in zip(columns, key, strict=True)
        if child.source.columns[column] == types[other]
        or (child.source.columns[column] in ("DOUBLE", *INTEGERS) and types[other] in INTEGERS)
    }


def public_keys(
    nodes: Sequence[Node | None],
    given: Collection[int],
    listed: Mapping[str, ListedBy],
    conditions: Iterable[Node],
) -> list[tuple[Places, list[tuple[Any, ...]]]]:
    """Keys of the groups that public tables list: for each table the places of its groups, and the keys in its rows.

    ``nodes``: what is grouped by.
    ``given``: places of those that have keys already: of a table with no other, nothing is read.
    ``listed``: what the columns below can be.
    ``conditions``: What holds for all rows. Of these only those count that one public table decides: no group is
        left out by what people have.
    """
    by_side: dict[PublicSide, dict[int, Node]] = {}
    for at, node in enumerate(nodes):
        if node is not None and (one := listed_as(node, listed)) is not None:
            by_side.setdefault(one.side, {})[at] = one.node
    by_side = {side: asked for side, asked in by_side.items() if len(asked) > 1 or not set(asked) <= set(given)}
    kept: dict[PublicSide, list[Node]] = {side: [] for side in by_side}
    for node in itertools.chain.from_iterable(map(implied, conditions)):
        one = listed_as(node, listed)
        if one is not None and one.side in kept and not any(isinstance(part, Noisy) for part in below(node)):
            kept[one.side].append(one.node)
    tables = []
    for side, asked in by_side.items():
        rows = side.rows(list(asked.values()), kept[side])
        if not rows:
            raise ParameterError(
                f"the public table {side.source.name} has no row for GROUP BY that the conditions of the query keep, "
                "so there is no group: pass keys=, or change them."
            )
        tables.append((tuple(asked), rows))
    return tables
