"""Scope of a SELECT over noisy values, in which no person is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Window, below
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.expressions.windows import AGGREGATED, aggregated
from pdrisk._sql.noisy.uncut import arithmetic, shown_column
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.tables.settings import Settings
from pdrisk.errors import ParameterError

Columns = Sequence[tuple[str, Expression]]
Sides = Sequence[tuple[tuple[str, ...], Columns]]  # of a join, the names and columns of each table
Computed = dict[str, Any]  # SQL of columns that are computed below, with the tree of each


@dataclass
class Values:
    """Scope of a SELECT over noisy values."""

    columns: Columns
    names: tuple[str, ...]
    aliases: Mapping[str, Node]
    settings: Settings
    # what it groups by, if it aggregates: then other columns stand in aggregates only
    groups: list[Expression] | None = None
    ordering: bool = False
    hidden: frozenset[str] = frozenset()
    aggregated: Computed = field(default_factory=dict)
    windows: Computed = field(default_factory=dict)
    sides: Sides = ()
    of_people = False
    untyped = frozenset[str]()
    numbers = frozenset[str]()
    zone = ""

    def order(self, how: str) -> str:
        """The words after an item of ORDER BY, written out."""
        return self.settings.order(how)

    def windowed(self, expression: Expression) -> Expression:
        """A window as a column."""
        return column_of(expression, "w", self.windows)

    def known(self, node: Node) -> Expression | None:
        """A column, a group, an alias or an aggregate of noisy values."""
        if isinstance(node, Constant):
            return None
        alias = lowered(node.name) if isinstance(node, Column) and not node.qualifiers else ""
        if alias in self.hidden or alias not in self.aliases:
            alias = ""
        if self.ordering and alias:
            return self._aliased(alias)
        if isinstance(node, Call) and node.name in {*AGGREGATED, *AGGREGATES}:
            return self._aggregate(node)
        if self.groups is not None:
            group = self._group(node)
            if group is not None or not isinstance(node, Column):
                return arithmetic(node, self) if group is None else group
            if alias and self.aliases[alias] != node:
                return self._aliased(alias)
            self._column(node)  # an unknown name is said to be one
            raise ParameterError(f"column {node.path!r} is neither aggregated nor in GROUP BY.")
        if not isinstance(node, Column):
            return arithmetic(node, self)
        return self._column(node, alias)

    def starred(self, table: str) -> tuple[Columns, tuple[str, ...]]:
        """Columns of ``table.*``, or of all, with the names that may stand before them."""
        fitting = [side for side in self.sides if table and lowered(table) in map(lowered, side[0])]
        return (fitting[0][1], fitting[0][0]) if len(fitting) == 1 else (self.columns, self.names)

    def named(self, name: str) -> Expression:
        """A column by its name; fails as an unknown one does."""
        return self._column(Column(name))

    def _column(self, node: Column, alias: str = "") -> Expression:
        if self.sides and len(node.qualifiers) == 1:
            columns, names = self.starred(node.qualifiers[0])
            return replace(self, columns=columns, names=names, sides=())._column(node)
        name, qualifiers, prefixes = (
            lowered(node.name),
            tuple(map(lowered, node.qualifiers)),
            tuple(map(lowered, self.names)),
        )
        matches = [value for label, value in self.columns if lowered(label) == name]
        if matches and (not qualifiers or prefixes[len(prefixes) - len(qualifiers) :] == qualifiers):
            if len(matches) > 1:
                raise ParameterError(f"several columns of FROM are named {node.name!r}: give them different names.")
            return matches[0]
        if alias:
            return self._aliased(alias)
        error = unknown_column(node.path, [label for label, _ in self.columns])
        error.path = (*node.qualifiers, node.name)
        raise error

    def _aliased(self, name: str) -> Expression:
        before = self.hidden, self.ordering
        self.hidden, self.ordering = self.hidden | {name}, False  # so that no alias can stand for itself
        try:
            return text(self.aliases[name], self)
        finally:
            self.hidden, self.ordering = before

    def _group(self, node: Node) -> Expression | None:
        if not self.groups or looks_around(node):
            return None
        try:
            sql = text(node, replace(self, groups=None, aggregated={}, windows={})).sql
        except ParameterError:
            return None
        for at, group in enumerate(self.groups):
            if group.sql == sql:
                return Expression(f"x{at}", group.kind, "DOUBLE" if group.wide else group.type)
        return None

    def _aggregate(self, call: Call) -> Expression:
        if self.groups is None:
            raise ParameterError(
                f"{call.name} cannot be used where a single row is read: write HAVING, or QUALIFY for windows."
            )
        if call.ordered or any(call.names):
            raise ParameterError(f"{call.name} takes one column of noisy values and nothing else.")
        rows = replace(self, groups=None, ordering=False, aggregated={}, windows={})
        aggregate = aggregated(call.name, [text(argument, rows) for argument in call.arguments], call.distinct)
        if call.condition is not None:
            kept = truth(text(call.condition, rows), "FILTER").condition
            aggregate = replace(aggregate, sql=f"{aggregate.sql} FILTER (WHERE {kept})")
        if rows.windows:
            raise ParameterError(
                f"{call.name} cannot take a window as its argument: give the window a name in a subquery first."
            )
        return column_of(aggregate, "h", self.aggregated)


def column_of(expression: Expression, letter: str, columns: Computed) -> Expression:
    """Column for an expression that is computed below, once for equal ones."""
    columns.setdefault(expression.sql, expression.tree)
    name = f"{letter}{list(columns).index(expression.sql)}"
    is_sum = expression.sql.startswith("sum(")  # of whole numbers, wider ones
    column = replace(expression, sql=f"CAST({name} AS DOUBLE)" if is_sum else name, tree=("column", name))
    return shown_column(column) if expression.uncut else column


def looks_around(node: Node) -> bool:
    """Whether an expression reads several rows."""
    return any(
        isinstance(part, Window) or (isinstance(part, Call) and part.name in {*AGGREGATED, *AGGREGATES})
        for part in below(node)
    )
