"""Joins of tables of noisy values with each other and with public tables, which cost nothing beyond the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pdrisk._model.expressions.nodes import Column, Operation
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.noisy.layers import NOISY, Layer, Layered, Over, layer_over
from pdrisk._sql.noisy.noisy_from import inner_of
from pdrisk._sql.noisy.noisy_scope import Columns, Values
from pdrisk._sql.relations.from_clause import Ctes, public_table
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.syntax.pieces import TYPES, Expression, lowered
from pdrisk._sql.syntax.tree import From, Join, Select, Table
from pdrisk._sql.tables.compiled_sources import public_rows
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.together.stacked import (
    JoinedParts,
    PublicRows,
    Statement,
    check_public_rows,
    columns_of,
    shown,
    stacked_column,
)
from pdrisk.errors import ParameterError

BITS = 120  # of the number of a joined row, as a HUGEINT
LEAST_BITS = 20  # of these for each table: a million rows
Known = list[tuple[Select | Table, Statement]]  # statements of a text that are asked once, wherever they stand
Named = tuple[tuple[tuple[str, ...], Columns], ...]  # the names and columns of each table


@dataclass(frozen=True, slots=True)
class _Side:
    """A table in FROM, or several that are joined: SQL, what is seen of it, and the columns that keep its order."""

    sql: str
    sides: Named
    visible: tuple[tuple[str, Expression], ...]
    codes: tuple[str, ...]


@dataclass
class SideBySide:
    """Reader of a join of noisy values."""

    sources: Sources
    ctes: Ctes  # the CTEs that the join sees
    statement: Callable[[Select], Statement]  # statement of a SELECT
    nest: Callable[[Select], Layered]  # layers of a SELECT
    known: Known  # the statements that are asked already: a CTE that is named twice has one answer
    parts: list[Statement] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    below: list[tuple[tuple[Layer, ...], tuple[int, ...]]] = field(default_factory=list)
    _number: int = 0

    def read(self, item: From) -> _Side:
        """A table or a join in FROM."""
        if not isinstance(item, Join):
            return self._leaf(item)
        left, right = self.read(item.left), self.read(item.right)
        visible, on = (*left.visible, *right.visible), ""
        sides = (*left.sides, *right.sides)
        settings = self.sources.settings
        if item.using:
            common = list(map(lowered, item.using))
            scopes = [Values(side.visible, (), {}, settings, sides=side.sides) for side in (left, right)]
            equal, first, both = [], [], (Column("one"), Column("other"))
            for name in item.using:
                one, other = (side_scope.named(name) for side_scope in scopes)
                pair = Values((("one", one), ("other", other)), (), {}, settings)
                equal.append(truth(text(Operation("==", both), pair), "USING").condition)
                if item.how == "FULL" and (one.uncut or other.uncut):
                    raise ParameterError(
                        f"FULL JOIN USING {name} joins by noisy values, of which no column is the key: write ON."
                    )
                merged = text(Operation("coalesce", both), pair) if item.how == "FULL" else one
                label = next(label for label, _ in left.visible if lowered(label) == lowered(name))
                first.append((label, other if item.how == "RIGHT" else merged))
            on = " AND ".join(equal)
            rest = [column for column in visible if lowered(column[0]) not in common]
            visible = (*first, *rest)
        elif item.condition is not None:
            scope = Values(visible, (), {}, settings, sides=sides)
            on = truth(text(item.condition, scope), "ON").condition
            if scope.windows:
                raise ParameterError("ON looks at one row of each table: give a window a name in a subquery first.")
        self.conditions.append(on)
        word = "CROSS JOIN" if item.how == "CROSS" else f"{item.how} JOIN"
        sql = f"({left.sql} {word} {right.sql}{f' ON {on}' if on else ''})"
        if item.how in ("SEMI", "ANTI"):
            return replace(left, sql=sql)
        return _Side(sql, sides, visible, (*left.codes, *right.codes))

    def _leaf(self, item: From) -> _Side:
        inner, layers = inner_of(item, self.ctes), tuple[Layer, ...]()
        names: tuple[str, ...]
        if inner is None:
            assert isinstance(item, Table)
            names, columns = (item.alias or item.path[-1],), item.columns
            place = self._part(item, lambda: self._public(item))
        else:
            select, seen, names, columns = inner
            place, layers = self._noisy(select, seen)
        part = self.parts[place]
        if layers:
            exposed = layers[-1].exposed
        else:
            exposed = tuple((label, stacked_column(at, kind, [part])) for at, (label, kind) in enumerate(shown(part)))
        if len(columns) > len(exposed):
            raise ParameterError(f"FROM names {len(columns)} columns, but there are {len(exposed)}.")
        labels = [*columns, *(label for label, _ in exposed[len(columns) :])]
        number, chosen, visible = len(self.below), [], []
        for label, (_, column) in zip(labels, exposed, strict=True):
            _check_kind(label, column.kind)
            at = self._number
            self._number += 1
            chosen += [f"{column.sql} AS v{at}", *([f"{column.uncut} AS u{at}"] if column.uncut else [])]
            uncut = f"u{at}" if column.uncut else ""
            visible.append(
                (label, replace(column, sql=f"v{at}", type=TYPES[column.kind], wide="", uncut=uncut, tree=None))
            )
        source = f"p{place} AS {NOISY}"
        for layer in layers:
            source = layer.subquery(source, ())
        noisy = tuple(at for at, value in enumerate(columns_of(part)) if value.uncut)
        self.below.append((layers, noisy))
        sql = f"(SELECT {', '.join([*chosen, f'code AS s{number}'])} FROM {source}) AS t{number}"
        return _Side(sql, ((tuple(names), tuple(visible)),), tuple(visible), (f"s{number}",))

    def _noisy(self, select: Select, seen: Ctes) -> tuple[int, tuple[Layer, ...]]:
        """Place of what a SELECT asks, and the layers over it."""
        select = replace(select, ctes={**{name: cte for name, (cte, _) in seen.items()}, **select.ctes})
        nested = self.nest(select)
        over: tuple[Over, ...] = ()
        if not nested.is_put_together and not nested.counted:
            over, ctes = nested.over, {name: cte for name, (cte, _) in nested.ctes.items()}
            select = replace(nested.core, ctes=ctes)
        place = self._part(select, lambda: self.statement(select))
        part = self.parts[place]
        for label, kind in shown(part):
            _check_kind(label, kind)
        columns = (stacked_column(at, kind, [part]) for at, (_, kind) in enumerate(shown(part)))
        labels = (label for label, _ in shown(part))
        layers = [Layer(tuple(zip(labels, columns, strict=True)), "", "", (), ())]
        for outer in over:
            layers.append(layer_over(layers[-1], outer, self.sources.settings))
        return place, tuple(layers[1:])

    def _part(self, asked: Select | Table, made: Callable[[], Statement]) -> int:
        """Place of a statement among the parts: equal ones are one, here and in the rest of the text."""
        wanted = next((statement for one, statement in self.known if one == asked), None)
        if wanted is None:
            wanted = made()
            self.known.append((asked, wanted))
        for place, part in enumerate(self.parts):
            if part is wanted:
                return place
        self.parts.append(wanted)
        return len(self.parts) - 1

    def _public(self, table: Table) -> PublicRows:
        relation = public_table(table, self.sources)
        assert relation is not None, "a table that is known to be public"
        rows = PublicRows(_typed(relation), public_rows(relation.source))
        check_public_rows(rows, relation.source.name)
        return rows


def _check_kind(label: str, kind: str) -> None:
    if kind not in TYPES:
        raise ParameterError(f"column {label!r} holds {kind}, which is not joined: ask for it in a query of its own.")


def _typed(relation: Relation) -> tuple[tuple[str, Expression], ...]:
    """Columns of a public table, each with its name in what is put together."""
    for label, value in relation.columns:
        if value.kind not in TYPES:
            raise ParameterError(
                f"column {label!r} of {relation.source.name} holds {value.kind}, which is not joined with noisy "
                "values: pass the table in public= without it."
            )
    return tuple((label, Expression(f"v{at}", value.kind)) for at, (label, value) in enumerate(relation.columns))


def _number_of(codes: tuple[str, ...]) -> str:
    """Number of a joined row, by which rows are in the order of the tables; a missing row comes last.

    It is computed of the row alone where it fits into an integer: what numbered all rows would keep WHERE above the
    whole product of tables that a comma joins.
    """
    bits = BITS // len(codes)
    if bits < LEAST_BITS:
        return f"row_number() OVER (ORDER BY {', '.join(codes)})"
    places = range(bits * (len(codes) - 1), -1, -bits)
    last = 2**bits - 1
    return " + ".join(
        f"coalesce(CAST({code} AS HUGEINT), {last}) * {2**place}" for code, place in zip(codes, places, strict=True)
    )


def joined_tables(item: From, reader: SideBySide) -> tuple[JoinedParts, Layer, Named]:
    """What is joined, a layer with its columns, and those of each table by its names."""
    side = reader.read(item)
    columns = [name for _, listed in side.sides for _, value in listed for name in (value.sql, value.uncut) if name]
    visible = [
        (label, value if value.sql in columns else replace(value, sql=f"v{len(columns) + at}", uncut=""))
        for at, (label, value) in enumerate(side.visible)
    ]
    for (_, made), (_, value) in zip(visible, side.visible, strict=True):
        if made is not value:  # a key of FULL JOIN USING, which is that of either table
            columns.append(f"{value.sql} AS {made.sql}")
    numbered = f"{_number_of(side.codes)} AS code"
    noisy = (int(value.uncut[1:]) for _, listed in side.sides for _, value in listed if value.uncut)
    joined = JoinedParts(
        f"SELECT {', '.join([*columns, numbered])} FROM {side.sql}",
        tuple(reader.conditions),
        tuple(reader.below),
        tuple(noisy),
    )
    return joined, Layer(tuple(visible), "", "", (), ()), side.sides
