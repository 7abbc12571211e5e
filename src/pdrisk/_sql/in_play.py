"""Names that a dict of bounds or keys may have beside those of a SELECT's own relation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pdrisk._model.nearest import unknown_column
from pdrisk._sql.elsewhere import SourcesElsewhere
from pdrisk._sql.pieces import lowered
from pdrisk._sql.sources import Sources
from pdrisk._sql.tree import Select, Subquery, Table, within
from pdrisk.errors import ParameterError

__all__ = ["check_named", "named_in"]


def check_named(names: Iterable[Any], own: Collection[str], sources: Sources) -> None:
    """Refuse names that no table or alias in play has.

    Parameters
    ----------
    names : iterable
        Of a caller's dict.
    own : collection of str
        The names that the SELECT itself knows, without regard to capitals.

    Raises
    ------
    UnknownColumnError
        If something else is named.
    """
    known = set(map(lowered, own))
    for name in names:
        if not isinstance(name, str) or (lowered(name) not in known and lowered(name) not in named_in(sources)):
            raise unknown_column(name, dict.fromkeys(own))


def named_in(sources: Sources) -> set[str]:
    """Columns of all tables that the text reads or the call passes, and all aliases, in lower case."""
    tables: set[tuple[str, ...]] = {(name,) for name in (*sources.named, *(sources.tables or ()))}
    found: set[str] = set()
    for each in (each for select in sources.selects for each in within(select)):
        match each:
            case Select(items=items, ctes=ctes):
                found.update(alias for _, alias in items)
                found.update(column for cte in ctes.values() for column in cte.columns)
            case Subquery(columns=columns):
                found.update(columns)
            case Table(path, _, columns):
                found.update(columns)
                tables.add(path)
    return set(map(lowered, found.union(*(_columns(path, sources) for path in tables))))


def _columns(path: tuple[str, ...], sources: Sources) -> Mapping[str, str] | list[str]:
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
