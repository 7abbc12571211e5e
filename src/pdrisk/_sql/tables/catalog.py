"""The catalog of a connection: which table or view a name means.

Names are looked up, not bound: DuckDB would take an unknown name for a file or for a Python variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pdrisk._core.foreign import shown
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import asked
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_IDENTIFIER = r'(?:"(?:[^"]|"")+"|[^\s.,"(]+)'
VIEW = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
    r'\s*(?:\((?:[^")]|"(?:[^"]|"")*")*\))?\s*AS\s+',
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or view of the catalog."""

    database: str
    schema: str
    name: str
    definition: str  # the statement that makes it, as far as DuckDB shows it
    is_view: bool
    rows: int = 0  # as many, or nearly; 0 of a view
    is_native: bool = False  # a table that DuckDB itself stores

    @property
    def sql(self) -> str:
        """The fully qualified name."""
        return ".".join(map(quoted, (self.database, self.schema, self.name)))

    def in_from(self, columns: Mapping[str, str], *, is_public: bool) -> str:
        """The table as it stands in FROM, without collations: texts are equal and ordered by their code points.

        Ids above all: a collation makes one person of two. Of views only public ones are read as they are, and what
        they read may have collations.
        """
        if not (is_public if self.is_view else "COLLATE" in self.definition.upper()):
            return self.sql
        exact = DuckDBDialect().exact_text
        names = [quoted(name) for name, sql_type in columns.items() if sql_type == "VARCHAR"]
        texts = [f"{exact(name)} AS {name}" for name in names]
        return f"(SELECT * REPLACE ({', '.join(texts)}) FROM {self.sql}) AS without_collations" if texts else self.sql


@dataclass(frozen=True, slots=True)
class Catalog:
    """Catalog of a connection, as one statement found it."""

    entries: list[CatalogEntry]  # its tables and views, these without their definitions
    database: str  # the current one
    search_path: str
    # number of the transaction that it was read in; None where the current database is not DuckDB's own
    transaction: str | None

    @classmethod
    def read(cls, connection: DuckDBPyConnection, others: Sequence[str] = ()) -> tuple[Catalog, list[str | None]]:
        """The catalog, and the values of other expressions, which the same statement asks for."""
        told = ", ".join(f"CAST({expression} AS VARCHAR)" for expression in (*_ABOUT_CONNECTION, *others))
        rows = asked(connection, _CATALOG.format(told=told), [])
        types = {row[0]: row[1] for row in rows if row[2] is None}
        database, search_path, transaction, *values = next(row[5] for row in rows if row[5] and row[5][0] == row[0])
        entries = [
            CatalogEntry(at, schema, name, sql or "", sql is None, size, sql is not None and types.get(at) == OWN)
            for at, schema, name, sql, size, _ in rows
            if name is not None
        ]
        return cls(entries, database, search_path, transaction), values

    def found(self, path: tuple[str, ...], home: CatalogEntry | None = None) -> CatalogEntry | None:
        """Table or view of this name, a view without its definition; searched for first where the view ``home`` is."""
        wanted = tuple(map(lowered, path))
        named = [entry for entry in self.entries if lowered(entry.name) == wanted[-1]]
        if len(path) == 3:
            fitting = [entry for entry in named if _place(entry) == wanted[:2]]
        elif len(path) == 2:
            fitting = _first(named, [(lowered(self.database), wanted[0]), ("temp", wanted[0]), (wanted[0], "main")])
        elif len(path) == 1:
            fitting = _first(named, self.places(home))
        else:
            fitting = []
        return fitting[0] if fitting else None

    def places(self, home: CatalogEntry | None = None) -> list[tuple[str, str]]:
        """Databases and schemas in the order in which a bare name is looked for."""
        places = [("temp", "main"), *([] if home is None else [_place(home)])]
        for item in _PATH_ITEM.findall(self.search_path):
            *above, schema = [lowered(name.strip('"').replace('""', '"')) for name in re.findall(_IDENTIFIER, item)]
            places += [(above[0], schema)] if above else [(lowered(self.database), schema), (schema, "main")]
        return [*places, (lowered(self.database), "main")]


def found_entry(
    connection: DuckDBPyConnection,
    path: tuple[str, ...],
    home: CatalogEntry | None = None,
    catalog: Catalog | None = None,
) -> CatalogEntry | None:
    """Table or view of this name, searched for first where the view ``home`` is; in a catalog that was read before."""
    entry = (Catalog.read(connection)[0] if catalog is None else catalog).found(path, home)
    if entry is None or not entry.is_view:
        return entry
    for (definition,) in asked(connection, _VIEW, [entry.database, entry.schema, entry.name]):
        return replace(entry, definition=definition)
    return None  # dropped meanwhile


def named_tables(connection: DuckDBPyConnection) -> list[tuple[str, CatalogEntry]]:
    """Tables of the current database and temporary ones, by the shortest names that mean them.

    A part of a name is in quotes where a dot would divide it.
    """
    tables = [
        (name, entry)
        for name, entry, database in _shortest_names(connection)
        if not entry.is_view and entry.database in ("temp", database)
    ]
    return sorted(tables, key=lambda pair: pair[0])


def _shortest_names(connection: DuckDBPyConnection) -> Iterator[tuple[str, CatalogEntry, str]]:
    """Tables and views by the shortest names that mean them, and the current database."""
    catalog, _ = Catalog.read(connection)
    by_name: dict[str, list[CatalogEntry]] = {}
    for entry in catalog.entries:
        by_name.setdefault(lowered(entry.name), []).append(entry)
    places, database = catalog.places(), catalog.database
    for entry in catalog.entries:
        path = [quoted(part) if set(part) & set('."') else part for part in (entry.database, entry.schema, entry.name)]
        is_first = _first(by_name[lowered(entry.name)], places)[:1] == [entry]
        begin = 2 if is_first else 1 if entry.database in ("temp", database) else 0
        yield ".".join(path[begin:]), entry, database


def no_table(connection: DuckDBPyConnection, name: str) -> ParameterError:
    """The error about a table that is not there."""
    return ParameterError(
        f"the connection has no table {shown(name)}: write its exact name without quotes, after the name of its "
        "schema unless that is the current one, as in 'survey.people'."
        f"{did_you_mean(name, entry_names(connection))}"
    )


def entry_names(connection: DuckDBPyConnection) -> list[str]:
    """The tables and views there are, as a query may name them."""
    return [name for name, *_ in _shortest_names(connection)]


_PATH_ITEM = re.compile(rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*")
OWN = "duckdb"  # the type of databases that DuckDB itself stores
# The number of a transaction is an error where the current database is of another type.
_ABOUT_CONNECTION = (
    "system.main.current_database()",
    "system.main.current_setting('search_path')",
    f"CASE WHEN database_name = system.main.current_database() AND type = '{OWN}' THEN system.main.txid_current() END",
)
# Without a condition on the name: DuckDB would take longer to understand it than to give all names.
_CATALOG = """
SELECT database_name, schema_name, table_name, COALESCE(sql, ''), estimated_size, NULL
FROM system.main.duckdb_tables() WHERE NOT internal
UNION ALL
SELECT database_name, schema_name, view_name, NULL, 0, NULL FROM system.main.duckdb_views() WHERE NOT internal
UNION ALL
SELECT database_name, type, NULL, NULL, 0, system.main.list_value({told}) FROM system.main.duckdb_databases()
"""
# Apart: DuckDB writes down all of its own views to tell of one, which takes as long as the rest of the catalog.
_VIEW = """
SELECT COALESCE(sql, '') FROM system.main.duckdb_views()
WHERE NOT internal AND database_name = $1 AND schema_name = $2 AND view_name = $3
"""


def _place(entry: CatalogEntry) -> tuple[str, str]:
    return lowered(entry.database), lowered(entry.schema)


def _first(entries: list[CatalogEntry], places: list[tuple[str, str]]) -> list[CatalogEntry]:
    """Entries at the first of these places that has any."""
    return next(filter(None, ([entry for entry in entries if _place(entry) == place] for place in places)), [])
