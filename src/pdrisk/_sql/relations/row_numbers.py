"""Numbered rows of each person: window functions over the person, in an order without ties.

Rows that no column tells apart are the same to everything after, so whichever comes first changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.expressions.nodes import Column, Constant, Node, Window, below, conjuncts, is_given, mapped
from pdrisk._relations.owners import Owners
from pdrisk._relations.plan import Numbered, Windowed
from pdrisk._relations.pruned import columns_named
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.expressions.windows import of_records, of_rows
from pdrisk._sql.relations.row_scope import (
    Columns,
    Relation,
    Rows,
    aliases_of,
    column_of,
    condition,
    named,
    starred,
)
from pdrisk._sql.relations.written_out import node_of, unused, with_known, written_out
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.sources import Sources
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.errors import ParameterError

NUMBERS = ("row_number", "rank", "dense_rank")
BESIDE = ("lag", "lead")
#: The SQL types of what is found beside a row; a number has that of its function.
COMPARED = {NUMBER: "", TEXT: "VARCHAR", DATE: "DATE", TIME: "TIMESTAMP", TRUTH: "BOOLEAN"}
CALL = DuckDBDialect().call


def has_windows(select: Select) -> bool:
    """Whether a SELECT reads other rows than its own."""
    return select.qualify is not None or any(
        isinstance(part, Window) for node in _items(select) for part in below(node)
    )


def _items(select: Select) -> list[Node]:
    return [item for item, _ in select.items if not isinstance(item, Star)]


def limited(owners: Owners, where: Node | None, scope: Rows) -> Owners:
    """Owners of the rows that a condition keeps; the condition may limit the rows' numbers."""
    for node in conjuncts(where):
        match node:
            case _ if not owners.numbers:
                return owners
            case Column() | Constant():
                continue
            case _:
                most = _most(node, owners, scope)
                owners = owners if most is None else owners.limited(most)
    return owners


def _most(node: Node, owners: Owners, scope: Rows) -> int | None:
    """Largest number of a person's rows with such a number; None for other conditions."""
    parts = getattr(node, "parts", ())
    match getattr(node, "symbol", ""), parts:
        case ("==" | "<=" | "<") as symbol, (Column() as column, Constant(int() as value)) if value is not True:
            if scope.column(column).column in owners.numbers:
                return 1 if symbol == "==" else max(1, value - (symbol == "<"))
    return None


def numbered(select: Select, relation: Relation, sources: Sources, label_of: str) -> Relation:
    """Relation of a subquery that numbers the rows of each person, or reads the neighbours of a row.

    ``relation``: what its FROM gives.
    ``label_of``: what expressions without a name are called.
    """
    aliases = aliases_of(select)
    if select.where is not None:
        relation = replace(relation, where=(*relation.where, condition(select.where, Rows(relation, aliases))))
    taken: set[str] = set()
    base = written_out(relation, sources, taken)
    assert base.owners is not None
    nodes = [*_items(select), *([] if select.qualify is None else [select.qualify])]
    windows = list(dict.fromkeys(part for node in nodes for part in below(node) if isinstance(part, Window)))
    owners, scope = base.owners, Rows(base, {})
    base = with_known(base, ([named(partition, scope).column for partition in window.partitions] for window in windows))
    names = {window: unused(heading(window), (), taken) for window in windows}
    shown = {part for node in _items(select) for part in below(node)}
    numbers, types = set[str](), dict[str, str]()
    planned = list[tuple[str, Windowed]]()
    for window, name in names.items():
        types[name], is_number = _judged(window, base, may_be_any=not window.order and window not in shown)
        planned.append((name, _planned(window, base, sources)))
        numbers |= {name} if is_number else set()
    source = replace(
        base.source,
        columns={**base.source.columns, **types},
        made=Numbered(base.source.relation, tuple(planned)),
    )
    added = tuple(
        (name, replace(column_of(name, types[name], source), given=is_given(window))) for window, name in names.items()
    )
    owners = replace(owners, numbers=owners.numbers | numbers)
    whole = replace(base, source=source, owners=owners)
    rows = Rows(replace(whole, columns=(*whole.columns, *added)), {})

    def placed(node: Node) -> Node:
        return Column(names[node]) if isinstance(node, Window) else mapped(node, placed)

    def columns() -> Iterator[tuple[str, Expression]]:
        for item, alias in select.items:
            if isinstance(item, Star):
                yield from starred(item, *whole.starred(item.table), lambda node: named(placed(node), rows))
            else:
                label = alias or (item.name if isinstance(item, Column) else label_of)
                yield label, named(placed(item), rows)

    selected = replace(whole, columns=tuple(columns()), names=(), members=())
    if select.qualify is None:
        return selected
    kept = placed(_without_aliases(select.qualify, aliases))
    if unordered := [window for window in windows if not window.order]:
        same = _same_in_all(unordered, base) | {names[window] for window in unordered}
        selected = replace(selected, columns=_of_any_row(selected.columns, same))
        read = rows.relation
        members = (replace(member, columns=_of_any_row(member.columns, same)) for member in read.members)
        rows = replace(rows, relation=replace(read, columns=_of_any_row(read.columns, same), members=tuple(members)))
    return replace(selected, where=(condition(kept, rows),), owners=limited(owners, kept, rows))


def _same_in_all(windows: Sequence[Window], base: Relation) -> set[str]:
    """Columns that do not differ among the rows of any partition, all of which are those of one person."""
    assert base.owners is not None
    rows = Rows(base, {})
    by = ({named(partition, rows).column for partition in window.partitions} for window in windows)
    return {
        *base.owners.key,
        *base.owners.constant,
        *(column for column in set.intersection(*by) if column is not None),
    }


def _of_any_row(columns: Columns, same: set[str]) -> Columns:
    """Columns of rows that nothing orders: those that differ among them may not be read."""
    return tuple(
        (label, replace(value, of_any_row=value.of_any_row or not columns_named([node_of(value)]) <= same))
        for label, value in columns
    )


def _without_aliases(node: Node, aliases: dict[str, Node]) -> Node:
    """QUALIFY with windows instead of their aliases."""
    if isinstance(node, Column) and not node.qualifiers and isinstance(aliases.get(lowered(node.name)), Window):
        return aliases[lowered(node.name)]
    return node if isinstance(node, Window) else mapped(node, lambda part: _without_aliases(part, aliases))


def _judged(window: Window, base: Relation, *, may_be_any: bool) -> tuple[str, bool]:
    """SQL type of a window, and whether it numbers the rows of each person; ``may_be_any``: in no order."""
    assert base.owners is not None
    rows, call = Rows(base, {}), window.function
    by = [named(partition, rows).column for partition in window.partitions]
    if (
        base.owners.is_public
        or None in by
        or not base.owners.are_told_by([column for column in by if column is not None])
    ):
        raise of_records(window, ", unless they are those of one person: write PARTITION BY the person, or DISTINCT ON")
    understood = call.name in BESIDE or (call.name in NUMBERS and not call.arguments)
    has_order = bool(window.order) or (may_be_any and call.name == "row_number")
    if not understood or call.condition is not None or call.distinct or window.frame or not has_order:
        raise ParameterError(
            f"{heading(window)}: of the rows of one person ROW_NUMBER, RANK, DENSE_RANK, LAG and LEAD are understood, "
            "with ORDER BY."
        )
    expression = of_rows(call.name, [named(argument, rows) for argument in call.arguments], CALL)
    if expression.kind not in COMPARED:
        raise ParameterError(
            f"{heading(window)} of {expression.kind} is not understood: make text, numbers or dates of it."
        )
    is_number = call.name == "row_number" and set(by) == set(base.owners.key)
    return COMPARED[expression.kind] or expression.type, is_number


def _planned(window: Window, base: Relation, sources: Sources) -> Windowed:
    """A window that `_judged` has seen, as a part of a plan."""
    rows = Rows(base, {})
    assert base.owners is not None
    by = (str(named(partition, rows).column) for partition in window.partitions)
    return Windowed(
        window.function.name,
        tuple(resolved(argument, rows) for argument in window.function.arguments),
        tuple(dict.fromkeys((*by, *base.owners.key))),  # of a link each leads to one person
        tuple((resolved(item, rows), sources.settings.order(how)) for item, how in window.order),
    )
