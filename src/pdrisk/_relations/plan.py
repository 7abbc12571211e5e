"""Nodes of a relation's plan: values that say which records there are, whatever engine will read them.

Expressions are nodes over the columns of the relation below, names and aliases resolved. A relation is judged when it
is made, in `pdrisk._sql`; `pdrisk.engines.sql.compiler` writes it in the SQL of an engine.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nodes import Node

__all__ = [
    "Aggregated",
    "Joined",
    "Numbered",
    "OneRow",
    "PerPerson",
    "Relation",
    "Scan",
    "Selection",
    "United",
    "Windowed",
]

Named = tuple[tuple[str, Node], ...]  # expressions, by the names of the columns that they become


@dataclass(frozen=True, slots=True)
class Scan:
    """A stored table.

    Attributes
    ----------
    table : str
        By which a compiler knows the place of the table.
    codes : tuple of (str, tuple of codes)
        Values of columns that stand for a missing answer.
    """

    table: str
    codes: tuple[tuple[str, tuple[Hashable, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row without a column, of which constants are selected."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of a relation for which all conditions are known to hold, with columns computed of them.

    Attributes
    ----------
    known : tuple of str
        Columns below that must have a value: the ids of people.
    """

    of: Relation
    columns: Named
    where: tuple[Node, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Two relations whose columns have different names.

    Attributes
    ----------
    how : {"INNER", "CROSS", "LEFT", "SEMI", "ANTI"}
    on : tuple of Node
        What must be known to hold.
    same : tuple of (str, str)
        Ids of people in both, equal without any rounding.
    """

    left: Relation
    right: Relation
    how: str
    on: tuple[Node, ...] = ()
    same: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class United:
    """The rows of all parts, which have the same columns."""

    parts: tuple[Selection, ...]


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What the rows of one person come to, whatever their order.

    Attributes
    ----------
    function : str
        ``count``, ``sum``, ``avg``, ``min``, ``max``, ``bool_or``, ``bool_and``, ``quantile`` or a spread.
    argument : Node or None
        None counts rows.
    universe : Universe or None
        By which a sum of floats is rounded to a grid; None: whole numbers, which are added exactly.
    """

    function: str
    argument: Node | None
    where: Node | None = None
    distinct: bool = False
    q: float = 0.5
    universe: Universe | None = None


@dataclass(frozen=True, slots=True)
class PerPerson:
    """One row for each person, or for each group of a person's rows."""

    of: Relation
    by: Named
    made: tuple[tuple[str, Aggregated], ...]


@dataclass(frozen=True, slots=True)
class Windowed:
    """A number of each row among those of its person, or what stands beside it, in an order without ties.

    Attributes
    ----------
    function : {"row_number", "rank", "dense_rank", "lag", "lead"}
    partition : tuple of str
        Columns that say whose rows they are, and perhaps more.
    order : tuple of (Node, str)
        With ``ASC`` or ``DESC`` and ``NULLS FIRST`` or ``NULLS LAST``.
    """

    function: str
    arguments: tuple[Node, ...]
    partition: tuple[str, ...]
    order: tuple[tuple[Node, str], ...]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A relation with columns that windows give."""

    of: Relation
    made: tuple[tuple[str, Windowed], ...]


Relation = Scan | OneRow | Selection | Joined | United | PerPerson | Numbered
