"""Quantiles written with row numbers, as OHDSI's tools write them: refused as what they are."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from pdrisk._model.expressions.nodes import Call, Case, Constant, Node, Window, below
from pdrisk._sql.expressions.windows import is_place
from pdrisk._sql.noisy.layers import Layered
from pdrisk._sql.relations.from_clause import Ctes, is_free
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Select, Star, Table, within
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError


def check_quantiles(nested: Layered, sources: Sources) -> None:
    """Refuse ``MIN(CASE WHEN rank > q * n THEN x END)`` over records that are numbered among all others."""
    if nested.is_put_together:  # of noisy values, whose places depend on nobody
        return
    selects = [nested.core, *(outer.select for outer in nested.over)]
    chosen = next((case for select in selects for case in map(_chosen, _nodes(select)) if case is not None), None)
    if chosen is None:
        return
    inner = ((select, ctes) for select, ctes in _reached(nested.core, nested.ctes) if select is not nested.core)
    if not any(_numbers(select) and not is_free(select, sources, ctes) for select, ctes in inner):
        return
    (condition, value), *_ = chosen.branches
    shares = [
        float(part.value)
        for part in below(condition)
        if isinstance(part, Constant) and isinstance(part.value, float | Decimal) and 0 < part.value < 1
    ]
    # CASE WHEN rank < q * n THEN 9999 ELSE x END
    share, x = shares[0] if shares else 0.5, heading(chosen.otherwise if isinstance(value, Constant) else value)
    raise ParameterError(
        "this is a quantile, written with row numbers, which is refused: the number of a record among all others "
        f"depends on everybody. Write QUANTILE_DISC({x}, {share:g}) or QUANTILE_CONT({x}, {share:g}), with bounds for "
        f"{x}."
    )


def _nodes(select: Select) -> Iterator[Node]:
    for item, _ in select.items:
        if not isinstance(item, Star):
            yield from below(item)


def _chosen(node: Node) -> Case | None:
    """The CASE in a MIN or MAX of one."""
    if isinstance(node, Call) and node.name in ("min", "max") and node.arguments:
        (first, *_) = node.arguments
        return first if isinstance(first, Case) else None
    return None


def _numbers(select: Select) -> bool:
    """Whether a SELECT numbers all of its rows, or counts those before each."""
    return any(isinstance(part, Window) and is_place(part) for part in _nodes(select))


def _reached(select: Select, ctes: Ctes) -> Iterator[tuple[Select, Ctes]]:
    """A SELECT and those that its FROM reads, through CTEs too, each with the CTEs that it sees."""
    for part in within(select):
        if isinstance(part, Select):
            yield part, ctes
        elif isinstance(part, Table) and len(part.path) == 1 and lowered(part.path[0]) in ctes:
            cte, seen = ctes[lowered(part.path[0])]
            yield from _reached(cte.select, seen)
