"""Tables of a Dataset as they were given, for SQL: frames, files, and tables of a connection."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._disclosure.duckdb_table import table_of
from pdrisk._disclosure.sql_table import SQLKeys
from pdrisk._disclosure.tables import KeyTable
from pdrisk._guard import guarded
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.query import Query
from pdrisk._model.rowwise import Within, is_of_polars
from pdrisk._model.unit import Secret
from pdrisk._pandas.requests.declared import declarations_of, knowing
from pdrisk._sql.dataset.duckdb_table import fluent_table
from pdrisk._sql.relations.from_clause import relation_of
from pdrisk._sql.relations.row_scope import Relation
from pdrisk._sql.syntax.pieces import lowered, quoted
from pdrisk._sql.tables.catalog import no_table
from pdrisk._sql.tables.postgres_table import PostgresTable, server_of
from pdrisk._sql.tables.readable import is_readable
from pdrisk._sql.tables.server_sources import Remote, of_dataset
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.parse import parsed
from pdrisk.engines.columnar.streams import streams_read
from pdrisk.engines.sql.servers.spark_engine import SparkFrame, is_spark
from pdrisk.engines.sql.servers.sql_table import SQLTable, TableEngine
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ONE_TABLE", "Given", "check_one_or_other", "public_tables", "tables_given"]

ONE_TABLE = "data"  # name in SQL of data that is no dict of tables
SEVERAL_CONNECTIONS = "the tables of a Dataset are on several connections: ATTACH them to one."


@dataclass(frozen=True)
class Given:
    """Tables of a Dataset by name.

    Attributes
    ----------
    frames : dict of DataFrame
        Those that are pandas', as they were when they were given; their declarations are in ``attrs``.
    others : dict
        Polars and Arrow tables, and paths of Parquet files.
    tables : dict of tuple of str
        Those of the connection, by the name there.
    said : dict of Declarations
        What is declared for those that are not pandas'.
    remote : dict of PostgresTable or SparkFrame
        Those that DuckDB does not read.
    """

    frames: Mapping[str, pd.DataFrame]
    others: Mapping[str, Any]
    tables: Mapping[str, tuple[str, ...]]
    connection: DuckDBPyConnection | None
    said: Mapping[str, Declarations] = field(default_factory=dict)
    remote: Mapping[str, Remote] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the tables in SQL."""
        return [*self.frames, *self.others, *self.tables, *self.remote]

    @property
    def held(self) -> dict[str, Any]:
        """Tables of Polars and Arrow that are in memory."""
        arrow = sys.modules.get("pyarrow")  # by which Polars is read, too
        if arrow is None:
            return {}
        kinds = arrow.Table, arrow.RecordBatch
        return {
            n: each for n, each in self.others.items() if isinstance(each, kinds) or is_of_polars(each, "DataFrame")
        }

    def sources(self, public: frozenset[str] = frozenset(), *, lasting: bool = False) -> Sources:
        """Sources of one call; tables of these names are public, and can be read after it if they are ``lasting``.

        Raises
        ------
        ParameterError
            If several engines have them.
        """
        if self.remote:
            if len(self.remote) < len(self.names):
                raise ParameterError(
                    "tables of a server or of Spark cannot be asked together with others: make one Dataset of each, or "
                    "write the others to tables there."
                )
            return of_dataset(self.remote, self.said, public, lasting=lasting)
        return Sources(self.connection, {**self.frames, **self.others}, None, self.tables, self.said, public=public)

    def and_public(self, other: Given) -> Given:
        """The tables with public ones added.

        Raises
        ------
        ParameterError
            If one has a name that is taken, or lies on another connection.
        """
        taken = set(map(lowered, self.names))
        if twice := [name for name in other.names if lowered(name) in taken]:
            raise ParameterError(f"public= holds {twice[0]}, which is a table of the data already: name it, as a list.")
        return self.beside(other)

    def renamed(self, old: str, new: str) -> Given:
        """The tables with another name for one of them; both names in lower case."""
        return self._mapped(lambda tables: {new if name == old else name: tables[name] for name in tables})

    def only(self, name: str) -> Given:
        """One of the tables, by its name in lower case."""
        return self._mapped(lambda tables: {table: tables[table] for table in tables if table == name})

    def _mapped(self, of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Given:
        frames, others, tables, said, remote = map(of, (self.frames, self.others, self.tables, self.said, self.remote))
        return Given(frames, others, tables, self.connection, said, remote)

    def beside(self, other: Given) -> Given:
        """The tables with others of different names; fails if these are on another connection."""
        if None not in (self.connection, other.connection) and self.connection is not other.connection:
            raise ParameterError(SEVERAL_CONNECTIONS)
        return Given(
            {**self.frames, **other.frames},
            {**self.others, **other.others},
            {**self.tables, **other.tables},
            self.connection or other.connection,
            {**self.said, **other.said},
            {**self.remote, **other.remote},
        )

    def declared(
        self, name: str, known: Callable[[pd.DataFrame, Declarations], Declarations], header: pd.DataFrame | None = None
    ) -> Given:
        """The tables, with ``known`` applied to the columns and declarations of one of them.

        Its columns are those of ``header``, unless DuckDB alone knows them.
        """
        if header is None and name in self.frames:
            frame = self.frames[name]
            said = known(frame, declarations_of(frame))
            return replace(self, frames={**self.frames, name: knowing(frame.copy(deep=False), said)})
        before = Declarations()
        if header is None and name in self.remote:
            header = self.remote[name].table().header
        elif header is None:
            relation, header = self._looked_at(name)
            if any(value.column != label for label, value in relation.columns):
                raise ParameterError("a view has no declarations of its own: declare those of the table behind it.")
            before = relation.source.declared
        return replace(self, said={**self.said, lowered(name): known(header, before)})

    def key_table(self, within: Within | None = None) -> KeyTable:
        """The one table of people, if it is no frame, as disclosure measures read it after query() and assign()."""
        name = ONE_TABLE
        if name in self.remote or within is not None:
            table, said = self._fluent()
            return SQLKeys(table, said, within)
        data = self.others[name] if name in self.others else (self.connection, self.tables[name])
        sources = self.sources()
        try:
            return table_of(data, "data", self._relation(name, sources).source.declared)
        finally:
            sources.close()

    def header(self) -> pd.DataFrame:
        """Columns of the one table of people, if it is no frame, without rows, and their declarations.

        Raises
        ------
        ParameterError
            If it is not there any more, or a setting or macro of its connection would change what is read.
        """
        table, said = self._fluent()
        return knowing(table.header, said) if said != Declarations() else table.header

    def opened(
        self,
        query: Query,
        header: pd.DataFrame,
        stored: pd.DataFrame,
        given: Any,
        secret: Secret,
    ) -> TableEngine:
        """Engine of the one table of people for a query that was judged by its header.

        Raises
        ------
        ParameterError
            As `header`; or if it has other columns by now, or a database cannot answer what a frame can.
        """
        table, _ = self._fluent()
        if not table.header.dtypes.equals(stored.dtypes):
            raise ParameterError(
                "the table has other columns or types than when it was first asked: make a new Dataset."
            )
        return table.opened(query, header, given, secret)

    def _fluent(self) -> tuple[SQLTable, Declarations]:
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
    """Names of public tables in lower case, and tables that come with the option.

    Raises
    ------
    ColumnTypeError
        If it is neither a list of names nor a dict of tables.
    """
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
        same = next((other for other, each in of_nobody if each is table), None)
        if same is not None and lowered(name) not in public:
            raise ParameterError(
                f"public= says that nobody is in {same}, which is the same table as {name}: leave it out of public=, "
                "or name both there if nobody is in them."
            )


def tables_given(data: Mapping[Any, Any]) -> Given:
    """Tables given to a Dataset, by name; a pandas frame as it is now, a relation read at once.

    Raises
    ------
    ColumnTypeError, ParameterError
        If it is nothing that SQL reads.
    """
    frames: dict[str, pd.DataFrame] = {}
    others: dict[str, Any] = {}
    tables: dict[str, tuple[str, ...]] = {}
    remote: dict[str, Remote] = {}
    connections: list[Any] = []
    for name, value in streams_read(data).items():
        if not isinstance(name, str) or not name:
            raise ColumnTypeError("a dict of tables has their names as keys, and names are text.")
        kind = type(value).__name__
        if isinstance(value, pd.DataFrame):
            before = declarations_of(value)
            copied = value.copy(deep=False)
            frames[name] = knowing(copied, before) if before != Declarations() else copied
        elif kind == "DuckDBPyRelation":
            others[name] = guarded(value.to_arrow_table)
        elif type(value) is tuple and len(value) == 2 and isinstance(value[1], str) and server_of(value[0]) is not None:
            remote[name] = PostgresTable(server_of(value[0]), value[1])
        elif type(value) is tuple and len(value) == 2 and isinstance(value[1], str):
            connections.append(_connection(value[0]))
            tables[lowered(name)] = tuple(value[1].split("."))
        elif is_spark(value):
            remote[name] = SparkFrame(value)
        elif server_of(value) is not None:
            raise ParameterError(
                "this is a server, with many tables: name one, as in pdrisk.Dataset((url, 'survey.people')), and keep "
                "the password in ~/.pgpass or PGPASSWORD."
            )
        elif is_readable(value):
            others[name] = _as_it_is(value)
        else:
            raise ColumnTypeError(
                'data must be a frame of pandas, Polars or Arrow, an Arrow stream, (connection, "table") of DuckDB or '
                "PostgreSQL, the path of Parquet files or a DataFrame of Spark, or for d.sql a DuckDB relation or a "
                f"dict of these, not of type {kind}."
            )
    if not data or len({lowered(name) for name in data}) < len(data):
        raise ParameterError("a dict of tables needs a name for each, and names that differ in more than capitals.")
    if any(one is not connections[0] for one in connections):
        raise ParameterError(SEVERAL_CONNECTIONS)
    return Given(frames, others, tables, connections[0] if connections else None, remote=remote)


def _as_it_is(value: Any) -> Any:
    """A frame that DuckDB reads, unaffected by later changes."""
    if is_of_polars(value, "DataFrame"):
        return value.clone()
    return tuple(value) if isinstance(value, list) else value


def _connection(value: object) -> Any:
    import duckdb

    if not isinstance(value, duckdb.DuckDBPyConnection):
        raise ColumnTypeError(
            "a table is given as (connection, name), with a connection of DuckDB or psycopg, or SQLAlchemy's to "
            f"PostgreSQL, not {type(value).__name__}."
        )
    return value
