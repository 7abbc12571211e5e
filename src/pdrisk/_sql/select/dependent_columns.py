"""Columns that depend on groups: what a public table has beside the columns of it that a query groups by.

GROUP BY p.id, of a table in which each id stands once, says p.name, too: it is a group beside p.id, of which every
combination is a row of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pdrisk._model.expressions.nodes import Call, Column, Node, below, rebuilt
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.relations.group_by_person import positional
from pdrisk._sql.relations.public_keys import ListedBy, listed_as
from pdrisk._sql.relations.row_scope import Relation, Rows, aliases_of
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk.errors import ParameterError

ONE_OF: Final = ("any_value", "arbitrary", "first", "min", "max")  # of equal values all the same


def with_dependent_groups(select: Select, relation: Relation, keys: object) -> Select:
    """The SELECT, which also groups by the columns that depend on its groups; ``keys`` as the caller passed them."""
    if not relation.listed or not select.groups or select.sets is not None:
        return select
    if keys is not None and not isinstance(keys, Mapping):  # which lists the groups as they are written
        return select
    rows = Rows(relation, aliases_of(select))
    groups = [positional(node, select) for node in select.groups]
    listed = [listing for listing in (_listed(node, rows, relation) for node in groups) if listing is not None]
    dependents: dict[Node, Node] = {}

    def change(node: Node) -> Node | None:
        """The largest parts that depend on the groups become groups; what aggregates records is left as it is."""
        if node in groups:
            return node
        value = node.arguments[0] if isinstance(node, Call) and _is_one_of(node) else node
        others = any(isinstance(part, Column) and part not in groups for part in below(value))
        if (others or value is not node) and _depends(_listed(value, rows, relation), listed):
            dependents[node] = value
            return value
        return node if isinstance(node, Call) and node.name in AGGREGATES else None

    def changed(node: Node | None) -> Node | None:
        return None if node is None else rebuilt(node, change)

    items = [
        (item, alias) if isinstance(item, Star) else (rebuilt(item, change), alias or heading(item))
        for item, alias in select.items
    ]
    order = tuple(replace(ordering, item=changed(ordering.item)) for ordering in select.order)
    having, qualify = changed(select.having), changed(select.qualify)
    if not dependents:
        return select
    more = dict.fromkeys(value for value in dependents.values() if value not in groups)
    grouped = (*select.groups, *more)
    return replace(select, items=tuple(items), groups=grouped, having=having, qualify=qualify, order=order)


def _is_one_of(call: Call) -> bool:
    plain = call.condition is None and len(call.arguments) == 1 and not any(call.names)
    return call.name in ONE_OF and plain


def _listed(node: Node, rows: Rows, relation: Relation) -> ListedBy | None:
    """What lists an expression of records, if that is a public table."""
    if any(isinstance(part, Call) and part.name in (*AGGREGATES, *ONE_OF) for part in below(node)):
        return None
    try:
        return listed_as(resolved(node, rows), relation.listed)
    except ParameterError:  # for whoever judges it
        return None


def _depends(column: ListedBy | None, groups: Sequence[ListedBy]) -> bool:
    """Whether the groups tell which value a column of the same table has."""
    if column is None or not (of_table := [group.node for group in groups if group.side is column.side]):
        return False
    return len(column.side.rows([*of_table, column.node], ())) == len(column.side.rows(of_table, ()))
