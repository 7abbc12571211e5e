"""Names that a SELECT knows, of tables that nobody is in: those of its FROM, with the columns of each, and aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pdrisk._model.expressions.nodes import Column, Node
from pdrisk._sql.syntax.pieces import lowered
from pdrisk._sql.syntax.tree import Beside, File, From, Join, Select, Star, Subquery, Table, Union
from pdrisk.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of a table in a database of DuckDB."""

    name: str  # its name there, written out
    columns: Mapping[str, str]  # types by name


Columns = Mapping[str, str]  # by name in lower case, their types as far as they are known, else ""
Ctes = Mapping[str, Columns]
Copies = Callable[[tuple[str, ...]], Copy]


@dataclass(frozen=True, slots=True)
class Level:
    """Names that one SELECT knows."""

    tables: tuple[tuple[str, Columns], ...]  # the names of what stands in FROM, with the columns of each
    aliases: Mapping[str, Node]

    @property
    def columns(self) -> frozenset[str]:
        """The names of all columns of FROM."""
        return frozenset(name for _, columns in self.tables for name in columns)

    def type_of(self, column: Column) -> str | None:
        """Type of a column of FROM, "" if it is not known; None of what is none."""
        return _type_of(column, self.tables)


def tables_in(item: From, ctes: Ctes, copies: Copies) -> Iterator[tuple[str, Columns]]:
    """Names of what stands in FROM, with the columns of each."""
    match item:
        case Join(left, right, how):
            yield from tables_in(left, ctes, copies)
            yield from () if how in ("SEMI", "ANTI") else tables_in(right, ctes, copies)
        case Subquery(select, alias, columns):
            yield lowered(alias), renamed(columns_of(select, ctes, copies), columns)
        case Table(path, alias, columns):
            original = ctes[lowered(path[0])] if is_a_cte(path, ctes) else copies(path).columns
            yield lowered(alias or path[-1]), renamed({lowered(name): of for name, of in original.items()}, columns)
        case Union(parts, None):
            yield "", dict.fromkeys(columns_of(parts[0], ctes, copies), "")
        case File() | Beside() | Union():
            unsure("FROM")


def columns_of(select: Select, ctes: Ctes, copies: Copies) -> dict[str, str]:
    """Columns of a SELECT."""
    for name, cte in select.ctes.items():
        ctes = {**ctes, lowered(name): renamed(columns_of(cte.select, ctes, copies), cte.columns)}
    tables = tuple(tables_in(select.source, ctes, copies))
    types: dict[str, str] = {}
    for item, alias in select.items:
        if isinstance(item, Star):
            listed = [columns for name, columns in tables if not item.table or name == lowered(item.table)]
            types |= dict(pair for columns in listed for pair in columns.items())
        elif isinstance(item, Column):
            types[lowered(alias or item.name)] = _type_of(item, tables) or ""
        elif alias:
            types[lowered(alias)] = ""
    return types


def _type_of(column: Column, tables: Sequence[tuple[str, Columns]]) -> str | None:
    candidates = [
        columns for name, columns in tables if not column.qualifiers or (lowered(column.qualifiers[-1]) == name)
    ]
    types = {columns[lowered(column.name)] for columns in candidates if lowered(column.name) in columns}
    return types.pop() if len(types) == 1 else "" if types else None


def is_a_cte(path: tuple[str, ...], ctes: Ctes) -> bool:
    """Whether a name in FROM is that of a CTE."""
    return len(path) == 1 and lowered(path[0]) in ctes


def renamed(columns: Columns, names: Sequence[str]) -> dict[str, str]:
    """Columns with other names for the first ones."""
    listed = [*map(lowered, names), *list(columns)[len(names) :]]
    return dict(zip(listed, columns.values(), strict=False))


def unsure(what: str) -> NoReturn:
    """Refuse what DuckDB could take otherwise than the engine that a query was written for."""
    raise ParameterError(f"{what} could mean something else to DuckDB.")
