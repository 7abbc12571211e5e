"""Quantiles written with row numbers or running counts, as OHDSI's tools write them: refused as what they are."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from pdrisk._model.nodes import Call, Case, Constant, Node, Operation, Window, below
from pdrisk._sql.noisy.layers import Layered, leaves
from pdrisk._sql.relations.from_clause import Ctes
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Beside, From, Join, Select, Star, Table, within
from pdrisk.errors import ParameterError

__all__ = ["check_quantiles"]

_COUNTS = frozenset({"count", "count_star"})
_INEQUALITIES = frozenset({"<", "<=", ">", ">="})


def check_quantiles(nested: Layered) -> None:
    """Refuse ``MIN(CASE WHEN rank > q * n THEN x END)`` over numbered records, or over counts joined with themselves.

    Raises
    ------
    ParameterError
        With the quantile to write instead.
    """
    selects = [nested.core, *(each.select for each in nested.over)]
    found = next((case for select in selects for case in map(_chosen, _nodes(select)) if case is not None), None)
    if found is None:
        return
    source = nested.core.source
    if isinstance(source, Beside):
        if not isinstance(source.join, Join) or not _has_running_counts(source.join):
            return
        what = "counts that are joined with themselves have the noise of all smaller values in each sum"
    elif any(map(_numbers_records, _reached(nested.core, nested.ctes))):
        what = "the number of a record among all others depends on everybody"
    else:
        return
    (condition, value), *_ = found.branches
    shares = [
        float(part.value)
        for part in below(condition)
        if isinstance(part, Constant) and isinstance(part.value, float | Decimal) and 0 < part.value < 1
    ]
    share, x = shares[0] if shares else 0.5, heading(value)
    raise ParameterError(
        f"this is a quantile, written with row numbers or running counts, which is refused: {what}. Write "
        f"QUANTILE_DISC({x}, {share:g}) or QUANTILE_CONT({x}, {share:g}), with bounds for {x}."
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


def _numbers_records(select: Select) -> bool:
    """Whether a SELECT numbers its rows, and counts all of them beside that."""
    windows = [part for part in _nodes(select) if isinstance(part, Window)]
    numbers = any(each.function.name == "row_number" and each.order for each in windows)
    return numbers and any(each.function.name in _COUNTS and not each.order for each in windows)


def _has_running_counts(join: Join) -> bool:
    """Whether a CTE is joined with itself by an inequality."""
    tables = [tuple(map(lowered, leaf.path)) for leaf in leaves(join) if isinstance(leaf, Table)]
    return len(set(tables)) < len(tables) and any(
        isinstance(part, Operation) and part.symbol in _INEQUALITIES
        for condition in _conditions(join)
        for part in below(condition)
    )


def _conditions(item: From) -> Iterator[Node]:
    if isinstance(item, Join):
        yield from _conditions(item.left)
        yield from _conditions(item.right)
        if item.condition is not None:
            yield item.condition


def _reached(select: Select, ctes: Ctes) -> Iterator[Select]:
    """A SELECT and those that its FROM reads, through CTEs too."""
    for each in within(select):
        if isinstance(each, Select):
            yield each
        elif isinstance(each, Table) and len(each.path) == 1 and lowered(each.path[0]) in ctes:
            cte, seen = ctes[lowered(each.path[0])]
            yield from _reached(cte.select, seen)
