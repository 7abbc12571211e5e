"""FROM of noisy values: whether a SELECT, or an item of FROM, gives noisy values and public rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pdrisk._model.expressions.nodes import Call, Node, below
from pdrisk._sql.expressions.windows import AGGREGATED
from pdrisk._sql.noisy.histograms import HISTOGRAM
from pdrisk._sql.relations.from_clause import Ctes, seen_by
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Cte, From, Join, Nothing, Select, Star, Subquery, Table, Union

IsByPerson = Callable[[Select, Ctes], bool]
IsPublic = Callable[[Table], bool]


def inner_of(item: From, ctes: Ctes) -> tuple[Select, Ctes, tuple[str, ...], tuple[str, ...]] | None:
    """Subquery or CTE in FROM, the CTEs it sees, and the names of it and its columns there."""
    match item:
        case Subquery(inner, alias, columns):
            return inner, seen_by(inner, ctes), (alias,) if alias else (), columns
        case Table((name,), alias, columns) if lowered(name) in ctes:
            cte: Cte = ctes[lowered(name)][0]
            named = (*columns, *cte.columns[len(columns) :])
            return cte.select, seen_by(cte.select, ctes[lowered(name)][1]), (alias or name,), named
    return None


def gives_noisy(select: Select, ctes: Ctes, is_by_person: IsByPerson, is_public: IsPublic) -> bool:
    """Whether a subquery gives noisy values, or public ones."""
    if isinstance(select.source, Union):
        if select.source.grouped_by is not None:  # GROUPING SETS of people sum over them, too
            return True
        return all(gives_noisy(part, seen_by(part, ctes), is_by_person, is_public) for part in select.source.parts)
    inner = inner_of(select.source, ctes)
    is_noisy = inner is None and are_noisy(select.source, ctes, is_by_person, is_public)
    if is_noisy or isinstance(select.source, Nothing):
        return True
    if aggregates(select):
        return not is_by_person(select, ctes)
    return inner is not None and gives_noisy(*inner[:2], is_by_person, is_public)


def leaves(item: From) -> Iterator[From]:
    """Tables and subqueries that a join joins, from left to right."""
    if isinstance(item, Join):
        yield from leaves(item.left)
        yield from leaves(item.right)
    else:
        yield item


def are_noisy(item: From, ctes: Ctes, is_by_person: IsByPerson, is_public: IsPublic) -> bool:
    """Whether an item of FROM has noisy values and public rows alone."""
    sides = [(leaf, inner_of(leaf, ctes)) for leaf in leaves(item)]
    return all(
        gives_noisy(*inner[:2], is_by_person, is_public) if inner else isinstance(leaf, Table) and is_public(leaf)
        for leaf, inner in sides
    )


def aggregates(select: Select) -> bool:
    """Whether a SELECT combines several rows into one."""
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    nodes += [node for node in (select.having, *(ordering.item for ordering in select.order)) if node is not None]
    return select.groups != () or select.having is not None or any(_has_aggregate(node) for node in nodes)


def _has_aggregate(node: Node) -> bool:
    known = {*AGGREGATES, *AGGREGATED, HISTOGRAM}
    return any(isinstance(part, Call) and part.name in known for part in below(node))
