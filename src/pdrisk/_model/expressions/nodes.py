"""Nodes of row-wise expressions: one tree that query strings, ``pd.col`` expressions and SQL are read into.

Each builder makes the nodes that its language has, and each back end evaluates them its own way: pandas' in
`pdrisk._model.rowwise.decide`, those of databases in SQL, by `pdrisk.engines.sql.compiler`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pdrisk._core.days import EPOCH, SECONDS

Operators = dict[str, Callable[..., Any]]
# fmt: off
ARITHMETIC: Operators = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
                         "//": operator.floordiv, "%": operator.mod, "**": operator.pow}
SIGNS: Operators = {"unary -": operator.neg, "unary +": operator.pos}
COMPARISONS: Operators = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
                          "==": operator.eq, "!=": operator.ne}
# fmt: on
ORDERINGS = {"<", "<=", ">", ">="}
LOGIC = {"and", "or", "not"}
MEMBERSHIP = {"in", "not in"}
MISSING = {"isna", "notna"}
EQUALITIES = {"==", "!=", *MEMBERSHIP}
CONDITIONS = frozenset({*LOGIC, *MISSING, *MEMBERSHIP, *COMPARISONS})
NEGATED = {
    "<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in",
    "isna": "notna", "notna": "isna",
}  # fmt: skip
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


# Answers are remembered by the reprs of what filters are made of: `RowwiseFilter.canonical`.


@dataclass(frozen=True, slots=True)
class Column:
    """The value a record has in a column; in SQL ``p.distance`` has the qualifier ``p``."""

    name: Any  # hashable; in SQL text
    qualifiers: tuple[str, ...] = ()
    in_quotes: bool = field(default=False, compare=False)  # whether SQL has it in double quotes somewhere

    @property
    def path(self) -> str:
        """The name with its qualifiers."""
        return ".".join((*self.qualifiers, self.name))

    def __repr__(self) -> str:
        return f"Column(name={self.name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Truth(Column):
    """A column of Python objects that is read as truth values; anything else in it is missing."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that no record decides.

    ``given`` says how a value is shown that did not stand in the text, as ``@limit`` or ``$limit``: it may have been
    computed from the data, so that only the caller's word says that no record decides it. None for what is written out.
    """

    value: Any
    given: str | None = None

    def __repr__(self) -> str:
        return f"Constant(value={self.value!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Noisy(Constant):
    """Noisy value of a subquery: public, but no bounds or eps, which may not depend on answers.

    ``place`` tells subqueries apart whose values are equal, or not known yet.
    """

    place: int = 0


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a record's category among those that were declared."""

    name: Hashable
    levels: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """Operator on other nodes; ``in`` has a constant list after its operand, or in SQL the members."""

    symbol: str
    parts: tuple[Node, ...]

    def __repr__(self) -> str:
        return f"Operation(symbol={self.symbol!r}, parts={self.parts!r})"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of SQL."""

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
class LookedUp(Case):
    """A key's value among those of a subquery that was answered first; ``said`` stands there for people."""

    said: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    """``CAST`` or, if ``forgiving``, ``TRY_CAST``."""

    operand: Node
    to: str
    forgiving: bool


@dataclass(frozen=True, slots=True)
class Window:
    """A function of SQL with OVER: its partitions, its order with the words after each item, and its frame in SQL."""

    function: Call
    partitions: tuple[Node, ...] = ()
    order: tuple[tuple[Node, str], ...] = ()
    frame: str = ""


Node = Column | Constant | Rank | Operation | Call | Case | Cast | Window


def below(node: Node) -> Iterator[Node]:
    """A node and all that is in it, from left to right."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(_parts(node))


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Operation():
            return node.parts
        case Call():
            return node.arguments if node.condition is None else (*node.arguments, node.condition)
        case Case():
            return (*(part for pair in node.branches for part in pair), node.otherwise)
        case Cast():
            return (node.operand,)
        case Window():
            return (*_parts(node.function), *node.partitions, *(key for key, _ in node.order))
    return ()


def conjuncts(node: Node | None) -> list[Node]:
    """The conditions that AND joins; none without one."""
    if isinstance(node, Operation) and node.symbol == "and":
        return [conjunct for part in node.parts for conjunct in conjuncts(part)]
    return [] if node is None else [node]


def implied(node: Node | None) -> list[Node]:
    """Conditions that hold where this one does: those that AND joins, and those in all branches of an OR."""
    conditions = conjuncts(node)
    for condition in tuple(conditions):
        if isinstance(condition, Operation) and condition.symbol == "or":
            first, *others = map(implied, condition.parts)
            conditions += [part for part in first if all(part in other for other in others)]
    return conditions


def rebuilt(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The tree with nodes replaced, from the top, wherever ``change`` does not return None."""
    if (other := change(node)) is not None:
        return other

    def of(part: Node) -> Node:
        return rebuilt(part, change)

    match node:
        case Operation():
            return replace(node, parts=tuple(map(of, node.parts)))
        case Call():
            kept = None if node.condition is None else of(node.condition)
            return replace(node, arguments=tuple(map(of, node.arguments)), condition=kept)
        case Case():
            return Case(tuple((of(when), of(then)) for when, then in node.branches), of(node.otherwise))
        case Cast():
            return replace(node, operand=of(node.operand))
        case Window(function):
            kept = None if function.condition is None else of(function.condition)
            call = replace(function, arguments=tuple(map(of, function.arguments)), condition=kept)
            order = tuple((of(key), how) for key, how in node.order)
            return replace(node, function=call, partitions=tuple(map(of, node.partitions)), order=order)
    return node


def mapped(node: Node, made: Callable[[Node], Node]) -> Node:
    """The node with ``made`` applied to its operands; conditions and windows stay."""
    match node:
        case Operation():
            return replace(node, parts=tuple(map(made, node.parts)))
        case Call():
            return replace(node, arguments=tuple(map(made, node.arguments)))
        case Case():
            branches = tuple((made(when), made(then)) for when, then in node.branches)
            return Case(branches, made(node.otherwise))
        case Cast():
            return replace(node, operand=made(node.operand))
    return node


def constants(node: Node) -> list[Constant]:
    """Every constant of a tree."""
    return [part for part in below(node) if isinstance(part, Constant)]


def is_given(node: Node) -> bool:
    """Whether any of its constants came from outside the text."""
    return any(constant.given is not None for constant in constants(node))


def equalities(node: Node) -> Iterator[tuple[Column, Constant]]:
    """Columns compared by equality with a constant or a list, and the constants."""
    for inner_node in below(node):
        if isinstance(inner_node, Operation) and inner_node.symbol in EQUALITIES:
            for part, other in (inner_node.parts, inner_node.parts[::-1]):
                if isinstance(part, Column) and isinstance(other, Constant):
                    yield part, other


def in_days(node: Node, *, times: bool) -> Node:
    """Days from 1970-01-01 to dates or times, as a number."""
    if not times:
        return Operation("-", (node, Constant(EPOCH)))
    return Operation("/", (Call("epoch", (node,)), Constant(SECONDS)))
