"""Nodes of a relation's plan: values that say which records there are, whatever engine will read them.

Expressions are nodes over the columns of the relation below, names and aliases resolved. A relation is judged when it
is made, in `pdrisk._sql`; `pdrisk.engines.sql.compiler` writes it in the SQL of an engine.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nodes import Node

Named = tuple[tuple[str, Node], ...]  # expressions, by the names of the columns that they become


@dataclass(frozen=True, slots=True)
class Scan:
    """A stored table."""

    table: str  # by which a compiler knows the place of the table
    codes: tuple[tuple[str, tuple[Hashable, ...]], ...] = ()  # values of columns that stand for a missing answer


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row without a column, of which constants are selected."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a relation for which all conditions are known to hold, with columns computed of them."""

    of: Relation
    columns: Named
    where: tuple[Node, ...] = ()
    known: tuple[str, ...] = ()  # columns below that must have a value: the ids of people


@dataclass(frozen=True, slots=True)
class Joined:
    """Two relations whose columns have different names."""

    left: Relation
    right: Relation
    how: str  # {"INNER", "CROSS", "LEFT", "SEMI", "ANTI"}
    on: tuple[Node, ...] = ()  # what must be known to hold
    same: tuple[tuple[str, str], ...] = ()  # ids of people in both, equal without any rounding


@dataclass(frozen=True, slots=True)
class United:
    """The rows of all parts, which have the same columns."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What the rows of one person come to, whatever their order."""

    function: str  # ``count``, ``sum``, ``avg``, ``min``, ``max``, ``bool_or``, ``bool_and``, ``quantile`` or a spread
    argument: Node | None  # None counts rows
    where: Node | None = None
    distinct: bool = False
    q: float = 0.5
    # by which a sum of floats is rounded to a grid; None: whole numbers, which are added exactly
    universe: Universe | None = None


@dataclass(frozen=True, slots=True)
class PerPerson:
    """One row for each person, or for each group of a person's rows."""

    of: Relation
    by: Named
    made: tuple[tuple[str, Aggregated], ...]


@dataclass(frozen=True, slots=True)
class Windowed:
    """A number of each row among those of its person, or what stands beside it, in an order without ties."""

    function: str  # {"row_number", "rank", "dense_rank", "lag", "lead"}
    arguments: tuple[Node, ...]
    partition: tuple[str, ...]  # columns that say whose rows they are, and perhaps more
    order: tuple[tuple[Node, str], ...]  # with ``ASC`` or ``DESC`` and ``NULLS FIRST`` or ``NULLS LAST``


@dataclass(frozen=True, slots=True)
class Numbered:
    """A relation with columns that windows give."""

    of: Relation
    made: tuple[tuple[str, Windowed], ...]


Relation = Scan | OneRow | Selection | Joined | United | PerPerson | Numbered
