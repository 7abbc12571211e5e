"""Names that are known of a query: those that a dict of bounds may have, and those of the query around a subquery."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from pdrisk._model.expressions.nearest import did_you_mean, unknown_column
from pdrisk._model.expressions.nodes import Column, below
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import From, Join, Select, Subquery, Table, nodes_of, within
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.tables.sources import Sources
from pdrisk.engines.sql.servers.duckdb_engine import asked
from pdrisk.errors import ParameterError

_ALL_COLUMNS: Final = "SELECT DISTINCT column_name FROM system.main.duckdbcolumns_at() WHERE NOT internal"


def check_slips(names: Iterable[str], columns: Collection[str], needed: Collection[str], sources: Sources) -> None:
    """Refuse a name of bounds that no table has and that looks like a column whose declared bounds are needed.

    All others may be those of columns that the query does not need: one dict serves many queries.
    """
    slips = [name for name in names if did_you_mean(name, needed) and lowered(name) not in set(map(lowered, columns))]
    if slips and (unknown := [name for name in slips if lowered(name) not in _known_columns(sources)]):
        raise unknown_column(unknown[0], dict.fromkeys(columns))


def _known_columns(sources: Sources) -> set[str]:
    """Columns of all tables that the text reads, the call passes or DuckDB has, and all aliases, in lower case."""
    tables: set[tuple[str, ...]] = {(name,) for name in (*sources.named, *(sources.tables or ()))}
    names = _mentioned_names(sources, tables)
    if not isinstance(sources, SourcesElsewhere) and sources.connection is not None:
        names.update(name for (name,) in asked(sources.connection, _ALL_COLUMNS, []))
    return set(map(lowered, names.union(*(columns_at(path, sources) for path in tables))))


def _mentioned_names(sources: Sources, tables: set[tuple[str, ...]]) -> set[str]:
    """Names that the text gives; its tables are added to ``tables``."""
    names: set[str] = set()
    for part in (part for select in sources.selects for part in within(select)):
        match part:
            case Select(items=items, ctes=ctes):
                names.update(alias for _, alias in items)
                names.update(column for cte in ctes.values() for column in cte.columns)
            case Subquery(columns=columns):
                names.update(columns)
            case Table(path, _, columns):
                names.update(columns)
                tables.add(path)
    return names


def is_correlated(path: tuple[str, ...], sources: Sources) -> bool:
    """Whether a column that a SELECT of the text does not know is one of the query around it."""
    *qualifiers, name = map(lowered, path)
    selects = [part for select in sources.selects for part in within(select) if isinstance(part, Select)]

    def has(select: Select) -> bool:
        """Whether FROM has the column, or a table of the name before it."""
        for item in _listed(select.source):
            label = item.alias or (item.path[-1] if isinstance(item, Table) else "")
            if lowered(label) in qualifiers[-1:] or (not qualifiers and name in _names(item, selects, sources)):
                return True
        return False

    for inner in selects:
        around = [other for other in selects if all(other is not one for one in within(inner))]
        if inner is not sources.selects[0] and (name, *qualifiers) in set(_mentioned(inner)) and not has(inner):
            return any(map(has, around))
    return False


def _listed(item: From) -> Iterator[Table | Subquery]:
    """Tables and subqueries that stand in FROM."""
    if isinstance(item, Join):
        yield from _listed(item.left)
        yield from _listed(item.right)
    elif isinstance(item, Table | Subquery):
        yield item


def _names(item: Table | Subquery, selects: Iterable[Select], sources: Sources) -> set[str]:
    """Names of the columns of a table, CTE or subquery, in lower case."""
    ctes = {lowered(name): cte.select for select in selects for name, cte in select.ctes.items()}
    inner = item.select if isinstance(item, Subquery) else ctes.get(lowered(item.path[-1]))
    if inner is None:
        return set(map(lowered, columns_at(item.path, sources))) if isinstance(item, Table) else set()
    return {lowered(alias or getattr(node, "name", "")) for node, alias in inner.items}


def _mentioned(select: Select) -> Iterator[tuple[str, ...]]:
    """Columns that a SELECT names beside its FROM: the name, then what stands before it."""
    for node in nodes_of(select):
        for part in below(node):
            if isinstance(part, Column):
                yield (lowered(part.name), *map(lowered, part.qualifiers))


def columns_at(path: tuple[str, ...], sources: Sources) -> Mapping[str, str] | list[str]:
    """Columns of a table; none of what is no table, such as a CTE."""
    try:
        if isinstance(sources, SourcesElsewhere):
            return sources.at(path).columns
        frame = sources.keyword(path[0]) if len(path) == 1 else None
        if frame is not None:
            return frame.columns
        entry = sources.entry(path)
        return [] if entry is None else sources.columns_of(entry)
    except ParameterError:
        return []
