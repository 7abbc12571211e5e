"""Names of the columns of FROM, before anything is judged: which table of it has a column, if any."""

from __future__ import annotations

from collections.abc import Iterator

from pdrisk._model.expressions.nodes import Column, below
from pdrisk._sql.noisy.noisy_from import inner_of, leaves
from pdrisk._sql.relations.from_clause import Ctes, seen_by
from pdrisk._sql.select.known_names import columns_at
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import File, From, Select, Star, Subquery, Table, Union, nodes_of
from pdrisk._sql.tables.sources import Sources


def tables_with(column: Column, item: From, ctes: Ctes, sources: Sources) -> list[From]:
    """Tables and subqueries in FROM that have a column; also those of which nobody knows the columns."""
    return [leaf for leaf in leaves(item) if _has(leaf, column, ctes, sources)]


def foreign_columns(select: Select, ctes: Ctes, sources: Sources) -> list[Column]:
    """Columns that a SELECT names and its FROM does not have; ``ctes`` are those that it sees."""
    aliases = {lowered(alias) for _, alias in select.items if alias}
    named = dict.fromkeys(part for node in nodes_of(select) for part in below(node) if isinstance(part, Column))
    unknown = [column for column in named if not tables_with(column, select.source, ctes, sources)]
    return [column for column in unknown if column.qualifiers or lowered(column.name) not in aliases]


def label_of(leaf: Table | Subquery | File) -> str:
    """The name by which columns of an item of FROM are qualified; "" without one."""
    return leaf.alias or (leaf.path[-1] if isinstance(leaf, Table) else "")


def _has(leaf: From, column: Column, ctes: Ctes, sources: Sources) -> bool:
    if not isinstance(leaf, Table | Subquery | File):
        return True
    label = label_of(leaf)
    if column.qualifiers and label and lowered(column.qualifiers[-1]) != lowered(label):
        return False
    if not column.qualifiers and lowered(column.name) in ("rowid", lowered(label)):
        return True  # an engine takes it for the number of a row, or for the row itself
    names = _names(leaf, ctes, sources)
    return not names or lowered(column.name) in names


def _names(leaf: From, ctes: Ctes, sources: Sources) -> list[str]:
    """Names of the columns of a table or subquery, in lower case; none where they are not known."""
    if (inner := inner_of(leaf, ctes)) is not None:
        select, seen, _, columns = inner
        listed = list(_listed(select, seen, sources))
    elif isinstance(leaf, Table):
        listed, columns = list(columns_at(leaf.path, sources)), leaf.columns
    else:
        return []
    return [lowered(name) for name in (*columns, *listed[len(columns) :])] if listed else []


def _listed(select: Select, ctes: Ctes, sources: Sources) -> Iterator[str]:
    """Headings of a SELECT."""
    if isinstance(select.source, Union):
        part = select.source.parts[0]
        yield from _listed(part, seen_by(part, ctes), sources)
        return
    for item, alias in select.items:
        if not isinstance(item, Star):
            yield alias or heading(item)
            continue
        excluded = set(map(lowered, item.excluded))
        for leaf in leaves(select.source):
            label = getattr(leaf, "alias", "") or (leaf.path[-1] if isinstance(leaf, Table) else "")
            if not item.table or lowered(item.table) == lowered(label):
                yield from (name for name in _names(leaf, ctes, sources) if name not in excluded)
