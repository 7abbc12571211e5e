"""Subqueries in expressions of a text, for every parser: they are answered before the rest of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from pdrisk._model.expressions.nodes import Column, Constant, Node, Noisy, Operation, constants, rebuilt
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.refusals import correlated
from pdrisk._sql.syntax.tree import Cte, Join, Scalar, Select, Star, Table, nodes_of, within
from pdrisk._sql.text.parameters import Parameters

Rows = tuple[tuple[Scalar, ...], ...]
Around = Sequence[Mapping[str, Cte]]  # CTEs of the SELECTs around, the outermost first


class Subqueries(Protocol):
    """Knowledge of the tables behind names, and so of what a subquery needs of the SELECT around it."""

    def missing(self, select: Select, around: Around) -> str:
        """First column of a SELECT that its own FROM does not have; "" if it has all."""

    def settled(self, select: Select, read: ScalarsRead) -> Select:
        """A SELECT whose subqueries of noisy groups are joined to it, or answered first."""

    def listed(self, select: Select) -> Sequence[Node] | None:
        """Values in the one column of a subquery that nobody is in; None of any other."""


@dataclass
class Scalars:
    """Subqueries of a text that are answered first, each once, inner ones first."""

    # Of the first ones: what each came to. Those after them stand for 1 in the tree.
    values: list[Scalar | Rows] = field(default_factory=list)
    selects: list[Select] = field(default_factory=list)
    # for each of them how many columns of its rows are needed; 0 where it is one value
    columns: list[int] = field(default_factory=list)
    subqueries: Subqueries | None = None  # without it, each is as it is written


@dataclass
class ScalarsRead:
    """Subqueries of a text that is being read."""

    known: Scalars | None  # their values as far as they are known; without it there may be none
    # those met so far, with the number of columns of their rows that are needed
    asked: list[tuple[Select, int]] = field(default_factory=list)
    around: list[dict[str, Cte]] = field(default_factory=list)  # the CTEs of the SELECTs that are being read
    # by the column that stands for it: subqueries that read a column of the SELECT around them, and that column
    open: dict[str, tuple[Select, str]] = field(default_factory=dict)
    _opened: int = 0

    def value(self, select: Select) -> Noisy | Column:
        """Value of a scalar subquery; a column for one that the SELECT around it has to settle."""
        assert self.known is not None
        subqueries = self.known.subqueries
        path = "" if subqueries is None else subqueries.missing(select, self.around)
        if not path:
            return self.answered(select)
        name = next((name for name, (other, _) in self.open.items() if other == select), "")
        if not name:
            self._opened += 1
            name = f"(subquery {self._opened})"
            self.open[name] = select, path
        return Column(name)

    def answered(self, select: Select) -> Noisy:
        """Value of a subquery that is answered first."""
        place, value = self._found(select, 0)
        assert not isinstance(value, tuple)
        return Noisy(value, place=place)

    def rows(self, select: Select, columns: int) -> list[tuple[Noisy, ...]]:
        """Rows of a subquery that is answered first."""
        place, rows = self._found(select, columns)
        assert isinstance(rows, tuple)
        return [tuple(Noisy(value, place=place) for value in row) for row in rows]

    def _found(self, select: Select, columns: int) -> tuple[int, Scalar | Rows]:
        assert self.known is not None
        asked = self._with_ctes(select), columns
        if asked not in self.asked:
            self.asked.append(asked)
        place, values = self.asked.index(asked), self.known.values
        unknown: Scalar | Rows = ((1,) * columns,) if columns else 1
        return place, values[place] if place < len(values) else unknown

    def settled(self, select: Select) -> Select:
        """A SELECT that was read, with what its subqueries need of it."""
        subqueries = None if self.known is None else self.known.subqueries
        return select if subqueries is None else subqueries.settled(select, self)

    def member(self, operand: Node, select: Select) -> Node | None:
        """IN with a subquery that nobody is in, as IN with a list; None of any other subquery.

        What the values follow from, such as a parameter, stays known of them. None may follow from noisy values.
        """
        select = self._with_ctes(select)
        constants_within = [constant for node in _nodes(select) for constant in constants(node)]
        subqueries = None if self.known is None else self.known.subqueries
        if subqueries is None or any(isinstance(constant, Noisy) for constant in constants_within):
            return None
        values = subqueries.listed(select)
        if values is None:
            return None
        if any(constant.given is not None for constant in constants_within):
            values = [rebuilt(value, _outside) for value in values]
        return Operation("in", (operand, *values)) if values else Constant(False)

    def _with_ctes(self, select: Select) -> Select:
        """A subquery with those of the CTEs around it that it reads."""
        seen = dict(chain(*(ctes.items() for ctes in self.around)))
        return replace(select, ctes={**_asked_for(select, seen), **select.ctes})

    def finished(self, select: Select, parameters: Parameters, functions: frozenset[str] = frozenset()) -> Select:
        """The whole statement with its parameters and functions; `known` learns first what it asks."""
        parameters.check_used()
        for _, path in self.open.values():
            raise correlated(path)
        select, *others = (
            replace(statement, functions=functions, has_parameters=bool(parameters.used))
            for statement in (select, *(asked for asked, _ in self.asked))
        )
        if self.known is not None:
            self.known.selects, self.known.columns = others, [columns for _, columns in self.asked]
        return select


def standing_alone(select: Select) -> Select:
    """A SELECT without what only the text around it has: equal ones ask the same."""
    return replace(select, ctes=_asked_for(select, select.ctes), functions=frozenset(), has_parameters=False)


def _asked_for(select: Select, ctes: Mapping[str, Cte]) -> dict[str, Cte]:
    """CTEs that a SELECT reads, also through others: without the rest, equal SELECTs are the same."""
    names, kept = set(_tables(select)), dict[str, Cte]()
    for name, cte in reversed(list(ctes.items())):  # each sees those before it
        if lowered(name) in names:
            kept[name] = cte
            names |= set(_tables(cte.select))
    return dict(reversed(kept.items()))


def _tables(select: Select) -> Iterator[str]:
    """The names in FROM, of its subqueries and own CTEs too."""
    for part in within(select):
        if isinstance(part, Table) and len(part.path) == 1:
            yield lowered(part.path[0])


def _nodes(select: Select) -> Iterator[Node]:
    """All expressions of a SELECT and of those in it."""
    for part in within(select):
        if isinstance(part, Join) and part.condition is not None:
            yield part.condition
        if isinstance(part, Select):
            yield from nodes_of(part)
            yield from (node for node in (part.limit, part.offset) if node is not None)
            yield from (node for item, _ in part.items if isinstance(item, Star) for node in item.replaced.values())


def _outside(node: Node) -> Node | None:
    """A constant as one that did not stand in the text."""
    return replace(node, given="(SELECT ...)") if isinstance(node, Constant) else None
