"""Tables of a Dataset as they were given, for SQL: frames, files, and tables of a connection."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.rowwise import is_of_polars
from pdrisk._pandas.requests.declared import declarations_of, knowing
from pdrisk._sql.dataset.duckdb_table import fluent_table
from pdrisk._sql.relations.from_clause import relation_of
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.tables.catalog import no_table
from pdrisk._sql.tables.server_sources import Remote, of_dataset
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.parse import parsed
from pdrisk._tables.duckdb_tables import DuckDBTable, ParquetFiles
from pdrisk._tables.opening import is_frame, recognised
from pdrisk._tables.postgres_table import PostgresTable
from pdrisk.engines.sql.servers.spark_engine import SparkFrame
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.errors import ColumnTypeError, ParameterError

ONE_TABLE = "data"  # name in SQL of data that is no dict of tables


@dataclass(frozen=True)
class Given:
    """Tables of a Dataset by name."""

    # frames of pandas as they were when they were given, with their declarations in ``attrs``; frames of Polars
    # and Arrow; paths of Parquet files; and tables of DuckDB, PostgreSQL or Spark
    tables: Mapping[str, Any]
    said: Mapping[str, Declarations] = field(default_factory=dict)  # what is declared for those that are not pandas'
    changed: ClassVar[str] = "the table has other columns or types than when it was first asked: make a new Dataset."

    def __post_init__(self) -> None:
        connections = [table.connection for table in self.stored.values()]
        if any(connection is not connections[0] for connection in connections):
            raise ParameterError("the tables of a Dataset are on several connections: ATTACH them to one.")

    def _of(self, *kinds: type) -> dict[str, Any]:
        return {name: table for name, table in self.tables.items() if isinstance(table, kinds)}

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """Frames of pandas."""
        return self._of(pd.DataFrame)

    @property
    def stored(self) -> dict[str, DuckDBTable]:
        """Tables of a connection to DuckDB."""
        return self._of(DuckDBTable)

    @property
    def remote(self) -> dict[str, Remote]:
        """Those that DuckDB does not read."""
        return self._of(PostgresTable, SparkFrame)

    @property
    def others(self) -> dict[str, Any]:
        """Frames of Polars and Arrow, and paths."""
        return {n: t for n, t in self.tables.items() if n not in {**self.frames, **self.stored, **self.remote}}

    @property
    def names(self) -> list[str]:
        """Names of the tables in SQL."""
        return [*self.frames, *self.others, *self.stored, *self.remote]

    @property
    def held(self) -> dict[str, Any]:
        """Tables of Polars and Arrow that are in memory."""
        arrow = sys.modules.get("pyarrow")  # by which Polars is read, too
        if arrow is None:
            return {}
        kinds = arrow.Table, arrow.RecordBatch
        return {
            n: table for n, table in self.others.items() if isinstance(table, kinds) or is_of_polars(table, "DataFrame")
        }

    def sources(self, public: frozenset[str] = frozenset(), *, lasting: bool = False) -> Sources:
        """Sources of one call; tables of these names are public, and can be read after it if they are ``lasting``."""
        if self.remote:
            if len(self.remote) < len(self.names):
                raise ParameterError(
                    "tables of a server or of Spark cannot be asked together with others: make one Dataset of each, or "
                    "write the others to tables there."
                )
            return of_dataset(self.remote, self.said, public, lasting=lasting)
        paths = {name: tuple(table.name.split(".")) for name, table in self.stored.items()}
        connection = next((table.connection for table in self.stored.values()), None)
        return Sources(connection, {**self.frames, **self.others}, None, paths, self.said, public=public)

    def and_public(self, other: Given) -> Given:
        """The tables with public ones added."""
        taken = set(map(lowered, self.names))
        if twice := [name for name in other.names if lowered(name) in taken]:
            raise ParameterError(f"public= holds {twice[0]}, which is a table of the data already: name it, as a list.")
        return self.beside(other)

    def renamed(self, old: str, new: str) -> Given:
        """The tables with another name for one of them; both names in lower case."""
        return Given(*({new if n == old else n: by_name[n] for n in by_name} for by_name in (self.tables, self.said)))

    def only(self, name: str) -> Given:
        """One of the tables, by its name in lower case."""
        return Given(*({n: by_name[n] for n in by_name if n == name} for by_name in (self.tables, self.said)))

    def beside(self, other: Given) -> Given:
        """The tables with others of different names; fails if these are on another connection."""
        return Given({**self.tables, **other.tables}, {**self.said, **other.said})

    def declared(
        self, name: str, known: Callable[[pd.DataFrame, Declarations], Declarations], header: pd.DataFrame | None = None
    ) -> Given:
        """The tables, with ``known`` applied to the columns and declarations of one of them.

        Its columns are those of ``header``, unless DuckDB alone knows them.
        """
        if header is None and name in self.frames:
            frame = self.frames[name]
            declarations = known(frame, declarations_of(frame))
            return replace(self, tables={**self.tables, name: knowing(frame.copy(deep=False), declarations)})
        before = Declarations()
        if header is None and name in self.remote:
            header = self.remote[name].table().header
        elif header is None:
            relation, header = self._looked_at(name)
            if any(value.column != label for label, value in relation.columns):
                raise ParameterError("a view has no declarations of its own: declare those of the table behind it.")
            before = relation.source.declared
        return replace(self, said={**self.said, lowered(name): known(header, before)})

    def fluent(self) -> tuple[SQLTable, Declarations]:
        """The one table of people, if it is no frame, as its methods read it now, and its declarations."""
        name = ONE_TABLE
        if name in self.remote:
            return self.remote[name].table(), self.said.get(lowered(name), Declarations())
        sources = self.sources()
        sources.check(parsed(f"SELECT count(*) FROM {quoted(name)}", None))
        return fluent_table(self._relation(name, sources))

    def columns(self, name: str) -> list[str]:
        """The names of a table's columns."""
        if name in self.remote:
            return list(self.remote[name].table().columns)
        return list(self.frames[name].columns if name in self.frames else self._looked_at(name)[1].columns)

    def _looked_at(self, name: str) -> tuple[Relation, pd.DataFrame]:
        """A table that is no frame, with its columns without rows."""
        sources = self.sources()
        try:
            relation = self._relation(name, sources)
            empty = guarded(
                lambda: relation.source.connection.execute(f"SELECT * FROM {relation.source.sql} LIMIT 0").df()
            )
        finally:
            sources.close()
        return relation, empty

    @staticmethod
    def _relation(name: str, sources: Sources) -> Relation:
        """A table that is no frame."""
        path = (sources.tables or {}).get(lowered(name))
        if path is not None and sources.entry((name,)) is None:
            assert sources.connection is not None  # on which it was looked for
            raise no_table(sources.connection, ".".join(path))
        return relation_of(parsed(f"SELECT count(*) FROM {quoted(name)}", None), sources)


def public_tables(public: object) -> tuple[frozenset[str], Mapping[Any, Any]]:
    """Names of public tables in lower case, and tables that come with the option."""
    names = [] if public is None else [public] if isinstance(public, str) else public
    if not isinstance(names, list | tuple | set | frozenset | Mapping) or not all(isinstance(n, str) for n in names):
        raise ColumnTypeError(
            f"public is a list of names of tables, or a dict from name to table, not of type {type(public).__name__}."
        )
    return frozenset(map(lowered, names)), public if isinstance(public, Mapping) else {}


def check_one_or_other(tables: Mapping[str, Any], public: frozenset[str]) -> None:
    """Refuse one frame that is a table of people by one name and public by another; a copy of it is not noticed."""
    of_nobody = [(name, table) for name, table in tables.items() if lowered(name) in public]
    for name, table in tables.items():
        same = next((other for other, public_table in of_nobody if public_table is table), None)
        if same is not None and lowered(name) not in public:
            raise ParameterError(
                f"public= says that nobody is in {same}, which is the same table as {name}: leave it out of public=, "
                "or name both there if nobody is in them."
            )


def tables_given(data: Mapping[Any, Any]) -> Given:
    """Tables given to a Dataset, by name; a pandas frame as it is now, a relation read at once."""
    tables: dict[str, Any] = {}
    for name, value in data.items():
        if not isinstance(name, str) or not name:
            raise ColumnTypeError("a dict of tables has their names as keys, and names are text.")
        match recognised(value):
            case pd.DataFrame() as frame:
                before = declarations_of(frame)
                copied = frame.copy(deep=False)
                tables[name] = knowing(copied, before) if before != Declarations() else copied
            case ParquetFiles(paths):
                tables[name] = tuple(paths) if isinstance(paths, list) else paths
            case DuckDBTable() as table:
                tables[lowered(name)] = table
            case PostgresTable() | SparkFrame() as table:
                tables[name] = table
            case frame if is_frame(frame):  # unaffected by later changes
                tables[name] = frame.clone() if is_of_polars(frame, "DataFrame") else frame
            case _:
                raise ColumnTypeError(
                    'data must be a frame of pandas, Polars or Arrow, an Arrow stream, (connection, "table") of DuckDB '
                    "or PostgreSQL, the path of Parquet files or a DataFrame of Spark, or for d.sql a DuckDB relation "
                    f"or a dict of these, not of type {type(value).__name__}."
                )
    if not data or len({lowered(name) for name in data}) < len(data):
        raise ParameterError("a dict of tables needs a name for each, and names that differ in more than capitals.")
    return Given(tables)
