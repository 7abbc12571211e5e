"""Layers over noisy values: a SELECT whose FROM aggregates is computed on the noisy table of the SELECT below it.

No person is in such a table, so any SELECT over it costs nothing: it may filter, sort, rank and aggregate once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pdrisk._model.expressions.nodes import Call, Constant, Window, below
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.expressions.scope import Scope
from pdrisk._sql.expressions.windows import MAP_OF_COUNTS
from pdrisk._sql.noisy.distinct import each_once, with_numbers, without_means_of_different
from pdrisk._sql.noisy.grouping_sets import unfolded
from pdrisk._sql.noisy.histograms import without_histogram
from pdrisk._sql.noisy.noisy_from import IsByPerson, IsPublic, aggregates, are_noisy, gives_noisy, inner_of
from pdrisk._sql.noisy.noisy_scope import Computed, Sides, Values, looks_around
from pdrisk._sql.relations.from_clause import Ctes, seen_by
from pdrisk._sql.relations.group_by_person import positional
from pdrisk._sql.relations.row_scope import starred
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.syntax.tree import Beside, Nothing, Select, Star, Union
from pdrisk._sql.tables.settings import Settings
from pdrisk.errors import ParameterError

NOISY = "noisy"  # the table of noisy values, where there are no people
OWN_NAME = re.compile(r"[kv]\d+")  # of its columns, which stay what they are in all layers


@dataclass(frozen=True, slots=True)
class Layered:
    """SELECT that reads people, with the SELECTs over it."""

    core: Select
    ctes: Ctes  # the CTEs that it sees
    over: tuple[Over, ...]  # from the innermost on

    @property
    def is_put_together(self) -> bool:
        """Whether the innermost SELECT reads no people itself, but noisy rows of others or nothing."""
        return isinstance(self.core.source, Union | Beside | Nothing)

    @property
    def counted(self) -> str:
        """Name of the last group, if a HISTOGRAM counts by it; else ""."""
        items = [item for item, _ in self.over[0].select.items if not isinstance(item, Star)] if self.over else []
        calls = (part for item in items for part in below(item))
        has_histogram = any(isinstance(part, Call) and part.name == MAP_OF_COUNTS for part in calls)
        return heading(self.core.groups[-1]) if has_histogram and self.core.groups else ""


@dataclass(frozen=True, slots=True)
class Over:
    """SELECT over noisy values, with the names that its FROM gives them."""

    select: Select
    names: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """SELECT over the noisy table, as SQL.

    What it aggregates and its windows are computed first, below the rest: DuckDB has neither inside TRY.
    """

    items: tuple[tuple[str, Expression], ...]  # heading, and SQL over the layer below
    # `where`, `having`, `qualify`: conditions, empty without any
    where: str
    tail: str  # ORDER BY, LIMIT and OFFSET
    order: tuple[str, ...]  # its ORDER BY, but for the order of the layer below
    windows: tuple[str, ...]  # the columns ``w0``, ``w1``,
    qualify: str = ""
    having: str = ""
    # `groups`, `aggregated`: The columns ``x0``, ``x1``, ... and ``h0``, ``h1``, ... of a SELECT that
    # aggregates.
    groups: tuple[str, ...] = ()
    aggregated: tuple[str, ...] = ()
    aggregates: bool = False  # whether its rows are made of several
    depth: int = 0  # how many layers are below it
    # how each window and aggregate is computed of uncut numbers: see `Expression.tree`
    trees: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keeps_rows(self) -> bool:
        """Whether it has one row for each row of the layer below, whatever the noise."""
        return not (self.where or self.having or self.qualify or self.aggregates or "LIMIT" in self.tail)

    @property
    def exposed(self) -> tuple[tuple[str, Expression], ...]:
        """Its columns, as the layer over it sees them."""
        return tuple((label, self._exposed(at)) for at, (label, _) in enumerate(self.items))

    def _exposed(self, at: int) -> Expression:
        """Column that an item becomes; names differ between layers, or ORDER BY would confuse them."""
        _, value = self.items[at]
        name = value.sql if OWN_NAME.fullmatch(value.sql) else f"c{self.depth}_{at}"
        sql_type = "DOUBLE" if value.wide else "" if value.type == "constant" else value.type
        uncut = "" if not value.uncut else f"u{name[1:]}" if name == value.sql else f"d{self.depth}_{at}"
        tree = ("column", uncut) if uncut else None
        return Expression(name, value.kind, sql_type, range=value.range, uncut=uncut, counts=value.counts, tree=tree)

    def statement(self, chosen: Sequence[str], source: str) -> str:
        """The SELECT with these expressions as its list."""
        where = self.where
        if self.aggregates:
            made = [*_named("x", self.groups), *_named("h", self.aggregated), "min(code) AS code"]
            by = f" GROUP BY {', '.join(self.groups)}" if self.groups else ""
            source = f"(SELECT {', '.join(made)} FROM {source}{_where(where)}{by}) AS {NOISY}"
            where = self.having
        if self.windows:
            windows = ", ".join(_named("w", self.windows))
            source = f"(SELECT *, {windows} FROM {source}{_where(where)}) AS {NOISY}"
            where = self.qualify
        return f"SELECT {', '.join(chosen)} FROM {source}{_where(where)}{self.tail}"

    @property
    def code_above(self) -> str:
        """SQL of the number that tells its rows apart in the layer over it, in their order."""
        return f"row_number() OVER (ORDER BY {', '.join([*self.order, 'code'])})" if self.order else "code"

    def subquery(self, source: str, carried: Sequence[str]) -> str:
        """SQL for the FROM of the layer over it; ``carried`` columns pass through."""
        columns = {self._exposed(at).sql: value.wide or value.sql for at, (_, value) in enumerate(self.items)}
        columns |= {self._exposed(at).uncut: value.uncut for at, (_, value) in enumerate(self.items) if value.uncut}
        columns |= {name: name for name in carried}
        # Read before it is named: ORDER BY and windows would take the new code for the one below.
        listed = [*(f"{sql} AS {name}" for name, sql in columns.items()), f"{self.code_above} AS code_above"]
        return f"(SELECT * RENAME (code_above AS code) FROM ({self.statement(listed, source)}) AS layer) AS {NOISY}"


def _named(letter: str, columns: Sequence[str]) -> list[str]:
    return [f"{sql} AS {letter}{at}" for at, sql in enumerate(columns)]


def _where(condition: str) -> str:
    return f" WHERE {condition}" if condition else ""


def layered(select: Select, is_by_person: IsByPerson, is_public: IsPublic) -> Layered:
    """The innermost SELECT of a SELECT, and the SELECTs over it.

    ``is_by_person``: whether a subquery, which sees these CTEs, groups by the person: it belongs to what is read.
    ``is_public``: whether nobody is in a table.
    """
    ctes, over = seen_by(select, {}), []
    while True:
        if inner_of(select.source, ctes) is None and are_noisy(select.source, ctes, is_by_person, is_public):
            if select.sets is not None:
                raise ParameterError(
                    "GROUPING SETS, ROLLUP and CUBE over joined tables of noisy values are refused: group by all "
                    "columns, or write them into the inner SELECT."
                )
            select = replace(select, source=Beside(select.source))
            break
        if select.sets is not None:
            select = unfolded(select)
        below_ = inner_of(select.source, ctes)
        if below_ is None or not gives_noisy(*below_[:2], is_by_person, is_public):
            if (counted := without_histogram(select)) is select:
                break
            below_ = inner_of(counted.source, ctes)
            if below_ is not None and is_by_person(*below_[:2]):
                raise ParameterError("HISTOGRAM by the person would count each person alone: leave the person out.")
            select = counted
            continue
        inner, seen, names, columns = below_
        over.append(Over(select, names, columns))
        select, ctes = inner, seen
    if isinstance(select.source, Union | Beside | Nothing):
        return Layered(select, ctes, (Over(select, (), ()), *reversed(over)))
    select = without_means_of_different(with_numbers(select))
    if aggregates(select):
        select, once = each_once(select)
        over += [] if once is None else [Over(once, (), ())]
    return Layered(select, ctes, tuple(reversed(over)))


def layer_over(layer: Layer, over: Over, settings: Settings, sides: Sides = ()) -> Layer:
    """SELECT over another one's columns, as SQL; ``sides`` are the names and columns of tables that were joined."""
    if over.select.members:
        raise ParameterError(
            "IN (SELECT ...), EXISTS, INTERSECT and EXCEPT over noisy values are refused: write them into the inner "
            "SELECT, or SEMI JOIN and ANTI JOIN."
        )
    select, below_ = over.select, layer.exposed
    if select.distinct and aggregates(select):
        raise ParameterError("SELECT DISTINCT beside GROUP BY or aggregates is refused: name the inner SELECT instead.")
    if len(over.columns) > len(below_):
        raise ParameterError(f"FROM names {len(over.columns)} columns, but there are {len(below_)}.")
    labels = [*over.columns, *(label for label, _ in below_[len(over.columns) :])]
    columns = [(label, value) for label, (_, value) in zip(labels, below_, strict=True)]
    named = {lowered(alias): item for item, alias in select.items if alias and not isinstance(item, Star)}
    rows = Values(columns, over.names, named, settings, sides=sides)
    where = "" if select.where is None else truth(text(select.where, rows), "WHERE").condition
    groups = _groups(select, rows)
    if rows.windows:
        raise ParameterError(
            "WHERE and GROUP BY look at one row: write QUALIFY for windows, or name one in a subquery."
        )
    scope = replace(rows, groups=groups)
    items: list[tuple[str, Expression]] = []
    for item, alias in select.items:
        if isinstance(item, Star):
            starred_ = starred(item, *rows.starred(item.table), lambda node: text(node, scope))
            items += starred_ if groups is None else _grouped(starred_, groups)
        else:
            items.append((alias or heading(item), text(item, scope)))
    having, qualify, order, rest = tail(select, [value for _, value in items], scope)
    return Layer(
        tuple(items),
        where,
        rest,
        order,
        tuple(scope.windows),
        qualify,
        having,
        tuple(group.sql for group in groups or ()),
        tuple(scope.aggregated),
        groups is not None,
        layer.depth + 1,
        scope.aggregated | scope.windows,
    )


def _grouped(columns: Iterable[tuple[str, Expression]], groups: list[Expression]) -> Iterator[tuple[str, Expression]]:
    """The columns of a star as groups."""
    places = {group.sql: at for at, group in enumerate(groups)}
    for label, value in columns:
        if value.sql not in places:
            raise ParameterError(f"column {label!r} is neither aggregated nor in GROUP BY.")
        yield label, replace(value, sql=f"x{places[value.sql]}", uncut="", tree=None)  # different ones are as shown


def _groups(select: Select, rows: Values) -> list[Expression] | None:
    """Groups of a SELECT; DISTINCT groups by all items. None if it does not aggregate."""
    if not aggregates(select):
        if not select.distinct:
            return None
        expressions: list[Expression] = []
        for item, _ in select.items:
            if isinstance(item, Star):
                expressions += [
                    value for _, value in starred(item, *rows.starred(item.table), lambda node: text(node, rows))
                ]
            else:
                expressions.append(text(item, rows))
        return _each_once(expressions)
    if select.groups is None:
        nodes = [item for item, _ in select.items if not isinstance(item, Star) and not looks_around(item)]
    else:
        nodes = [positional(node, select) for node in select.groups]
    return _each_once([text(node, rows) for node in nodes])


def _each_once(expressions: Sequence[Expression]) -> list[Expression]:
    return list({value.sql: value for value in expressions if not value.constant}.values())


class Ordered(Scope, Protocol):
    """Scope that knows whether ORDER BY asks, where an alias goes before a column."""

    ordering: bool
    windows: Computed


def tail(select: Select, items: Sequence[Expression], scope: Ordered) -> tuple[str, str, tuple[str, ...], str]:
    """Conditions of HAVING and QUALIFY, items of ORDER BY, and the text of ORDER BY, LIMIT and OFFSET.

    ``items``: the SELECT list.
    """
    having = "" if select.having is None else truth(text(select.having, scope), "HAVING").condition
    if select.having is not None and any(isinstance(part, Window) for part in below(select.having)):
        raise ParameterError("HAVING is about groups: write QUALIFY for windows.")
    qualify = "" if select.qualify is None else truth(text(select.qualify, scope), "QUALIFY").condition
    if qualify and not scope.windows:
        raise ParameterError("QUALIFY is about windows: write HAVING for groups.")
    order = []
    scope.ordering = True
    for ordering in select.order:
        how = scope.order(ordering.how)
        if ordering.item is None:
            order += [f"{value.sql} {how}" for value in items if not value.constant]
        elif isinstance(ordering.item, Constant) and type(ordering.item.value) is int:
            if not 1 <= ordering.item.value <= len(items):
                raise ParameterError(
                    f"ORDER BY {heading(ordering.item)} means no item of SELECT, which has {len(items)}."
                )
            value = items[ordering.item.value - 1]
            order += [] if value.constant else [f"{value.sql} {how}"]
        else:
            order.append(f"{text(ordering.item, scope).sql} {how}")
    scope.ordering = False
    clauses = f" ORDER BY {', '.join([*order, 'code'])}"
    for word, node in (("LIMIT", select.limit), ("OFFSET", select.offset)):
        if node is None:
            continue
        if not isinstance(node, Constant) or type(node.value) is not int or node.value < 0:
            raise ParameterError(f"{word} takes a whole number written out or a parameter.")
        clauses += f" {word} {node.value}"
    return having, qualify, tuple(order), clauses
