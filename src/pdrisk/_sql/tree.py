"""Syntax tree of a SELECT statement as plain data, whatever the parser's own format."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

__all__ = [
    "Call",
    "Case",
    "Cast",
    "ColumnReference",
    "Cte",
    "File",
    "From",
    "Node",
    "Order",
    "Scalar",
    "Select",
    "SqlConstant",
    "Star",
    "Subquery",
    "Table",
    "parts",
]

Scalar = None | bool | int | float | Decimal | str | datetime.date | datetime.datetime


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """A column's name as written, with its qualifiers: ``p.distance`` is ``("p", "distance")``."""

    path: tuple[str, ...]
    in_quotes: bool = field(default=False, compare=False)  # whether the text has it in double quotes somewhere


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """A literal or a bound parameter, whose ``name`` is ``?`` or ``$name``."""

    value: Scalar
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator, which has the name of its symbol: ``+``, ``and``, ``is null``."""

    name: str
    arguments: tuple[Node, ...]
    names: tuple[str, ...] = ()  # of the arguments, "" for those given by position
    distinct: bool = False
    ordered: bool = False
    condition: Node | None = None  # FILTER (WHERE ...)


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE WHEN ... THEN ... ELSE ... END``."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Cast:
    """``CAST`` or, if ``forgiving``, ``TRY_CAST``."""

    operand: Node
    to: str
    forgiving: bool


Node = ColumnReference | SqlConstant | Call | Case | Cast


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


From = Table | File | Subquery


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
    """One SELECT; ``groups`` of None means GROUP BY ALL.

    ``functions`` are those of the whole text that it is made of, subqueries included.
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


def parts(node: Node) -> Iterator[Node]:
    """The nodes directly below."""
    match node:
        case Call():
            yield from node.arguments
            if node.condition is not None:
                yield node.condition
        case Case():
            for pair in node.branches:
                yield from pair
            yield node.otherwise
        case Cast():
            yield node.operand
