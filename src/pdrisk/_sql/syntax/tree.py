"""Syntax tree of a SELECT statement as plain data, whatever the parser's own format; its expressions are nodes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from pdrisk._model.expressions.nodes import Column, Node
from pdrisk.errors import ParameterError

MOST_VALUES: Final = 200  # rows of VALUES
Scalar = None | bool | int | float | Decimal | str | datetime.date | datetime.datetime


@dataclass(frozen=True, slots=True)
class Star:
    """``*`` with its EXCLUDE and REPLACE."""

    table: str = ""
    excluded: tuple[str, ...] = ()
    replaced: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A name in FROM."""

    path: tuple[str, ...]
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """``read_parquet('...')`` in FROM."""

    path: str
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    """A subquery in FROM."""

    select: Select
    alias: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Two items of FROM: ``how`` is INNER, LEFT, RIGHT, FULL, SEMI, ANTI, or CROSS, which a comma is too."""

    left: From
    right: From
    how: str
    condition: Node | None
    using: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Several SELECTs, one below the other: rows of people, or answers."""

    parts: tuple[Select, ...]
    # of GROUPING SETS: for each part the groups that it has, out of ``groups``
    grouped_by: tuple[tuple[int, ...], ...] | None = None
    groups: tuple[frozenset[str], ...] = ()  # of GROUPING SETS: the names of each group, in lower case


@dataclass(frozen=True, slots=True)
class Beside:
    """Tables of noisy values and public ones, joined if they are several."""

    join: From


@dataclass(frozen=True, slots=True)
class Nothing:
    """Missing FROM: one row without a column."""


From = Table | File | Subquery | Join | Union | Beside | Nothing


@dataclass(frozen=True, slots=True)
class Membership:
    """Condition of WHERE: ``operand IN (SELECT ...)``, or without an operand ``EXISTS (SELECT ...)``.

    ``of_sets``: it is INTERSECT or EXCEPT, to which NULL is equal to NULL.
    """

    select: Select
    operand: Node | None
    negated: bool
    of_sets: bool = False


@dataclass(frozen=True, slots=True)
class Cte:
    """A named subquery of WITH."""

    select: Select
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One item of ORDER BY, ``how`` being the words after it; an ``item`` of None means ALL."""

    item: Node | None
    how: str


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT; ``groups`` of None means GROUP BY ALL, ``members`` hold beside ``where``.

    ``functions`` are those of the whole text that it is made of, subqueries included; ``sets`` the places among
    ``groups`` of each of the GROUPING SETS.
    """

    items: tuple[tuple[Node | Star, str], ...]
    source: From
    where: Node | None = None
    groups: tuple[Node, ...] | None = ()
    having: Node | None = None
    order: tuple[Order, ...] = ()
    limit: Node | None = None
    offset: Node | None = None
    distinct: bool = False
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    functions: frozenset[str] = frozenset()
    has_parameters: bool = False
    qualify: Node | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    members: tuple[Membership, ...] = ()


def union_of(
    parts: Sequence[Select],
    *,
    order: tuple[Order, ...],
    limit: Node | None,
    offset: Node | None,
    distinct: bool,
) -> Select:
    """UNION as a SELECT over its parts, so that ORDER BY and LIMIT are about all of it."""
    star = ((Star(), ""),)
    selects: list[Select] = []
    for part in parts:
        same = isinstance(part.source, Union) and part == Select(star, part.source)
        selects += part.source.parts if same and isinstance(part.source, Union) else (part,)
    return Select(star, Union(tuple(selects)), order=order, limit=limit, offset=offset, distinct=distinct)


def values_of(rows: Sequence[Sequence[Node]], first: int, letters: str) -> Select:
    """VALUES as a SELECT over its rows, with columns such as ``col0``."""
    if len(rows) > MOST_VALUES or len({len(row) for row in rows}) > 1:
        raise ParameterError(f"VALUES has up to {MOST_VALUES} rows, all of one length: pass a longer table in public=.")
    parts = (Select(tuple((node, f"{letters}{at}") for at, node in enumerate(row, first)), Nothing()) for row in rows)
    return Select(((Star(), ""),), Union(tuple(parts)))


def set_of(how: str, parts: Sequence[Select], **rest: Any) -> Select:
    """INTERSECT or EXCEPT of ids as a SELECT DISTINCT of the first part's, with IN or NOT IN the others.

    ``how``: ``"INTERSECT"`` or ``"EXCEPT"``.
    ``parts``: each with one column.
    ``rest``: ORDER BY, LIMIT and OFFSET, as `Select` has them.
    """
    (item, alias), *others = parts[0].items
    label = alias or (item.name if isinstance(item, Column) else "")
    if others or not label or any(len(part.items) != 1 for part in parts):
        raise ParameterError(
            f"{how} is of ids of people: each side has that one column, with a name. Compare more columns by EXISTS."
        )
    members = (Membership(part, Column(label), how == "EXCEPT", of_sets=True) for part in parts[1:])
    source = Subquery(parts[0], "", (label,))
    return Select(((Column(label), ""),), source, members=tuple(members), distinct=True, **rest)


def nodes_of(select: Select) -> list[Node]:
    """The expressions of a SELECT beside its FROM."""
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    nodes += [*(select.groups or ()), *(ordering.item for ordering in select.order if ordering.item is not None)]
    nodes += [condition for condition in (select.where, select.having, select.qualify) if condition is not None]
    return nodes + [member.operand for member in select.members if member.operand is not None]


def with_nodes(select: Select, changed: Callable[[Node], Node]) -> Select:
    """The SELECT with these expressions changed."""

    def optional(node: Node | None) -> Node | None:
        return None if node is None else changed(node)

    return replace(
        select,
        items=tuple((item if isinstance(item, Star) else changed(item), alias) for item, alias in select.items),
        groups=None if select.groups is None else tuple(map(changed, select.groups)),
        order=tuple(replace(ordering, item=optional(ordering.item)) for ordering in select.order),
        where=optional(select.where),
        having=optional(select.having),
        qualify=optional(select.qualify),
        members=tuple(replace(member, operand=optional(member.operand)) for member in select.members),
    )


def within(select: Select) -> Iterator[Select | From]:
    """A SELECT and all SELECTs in its FROM, WHERE and CTEs."""
    waiting: list[Select | From] = [select]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case Select(source=source, ctes=ctes, members=members):
                waiting += [source, *(cte.select for cte in ctes.values()), *(member.select for member in members)]
            case Subquery(inner):
                waiting.append(inner)
            case Join(left, right):
                waiting += [left, right]
            case Union(parts):
                waiting += parts


def reads_several(select: Select) -> bool:
    """Whether FROM and WHERE name several tables."""
    return any(isinstance(part, Join | Union) or (isinstance(part, Select) and part.members) for part in within(select))
