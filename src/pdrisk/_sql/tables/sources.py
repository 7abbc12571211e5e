"""Sources of a query: the tables, files and frames that it may read, and the connection that reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from pdrisk._core.once import once
from pdrisk._core.universe import Universe
from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.declared.pandera_schema import entries_of, people_of_schema
from pdrisk._model.expressions.kinds import ZONED
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.plain import check_encodable
from pdrisk._pandas.requests.objects import declared_kinds
from pdrisk._relations.owners import PUBLIC, ROWS, Owners
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import kind_of_type, lowered
from pdrisk._sql.syntax.refusals import nobody_named
from pdrisk._sql.syntax.tree import Cte, Select
from pdrisk._sql.tables.catalog import VIEW, CatalogEntry, entry_names, found_entry
from pdrisk._sql.tables.clients import plain_text
from pdrisk._sql.tables.compiled_sources import compiled
from pdrisk._sql.tables.declared_links import Links
from pdrisk._sql.tables.declared_tables import folded
from pdrisk._sql.tables.opened_sources import of_file, of_frame
from pdrisk._sql.tables.settings import Settings, pin
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.source_identity import table_place
from pdrisk._sql.text.parse import parsed
from pdrisk._sql.text.scalars import Scalars
from pdrisk._tables.duckdb_tables import WHOLE, ParquetFiles, by_record, described
from pdrisk._tables.opening import is_frame, is_path
from pdrisk.engines.sql.servers.duckdb_engine import asked, check_committed
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FRAME = "frame_of_this_call"


@dataclass
class Sources:
    """Sources that one call may read: the caller's connection, and tables passed by keyword."""

    connection: DuckDBPyConnection | None
    named: Mapping[str, Any]
    schema: object = None
    # the tables of the connection that may be read, by the names that the query has for them; None: all of them
    tables: Mapping[str, tuple[str, ...]] | None = None
    # what is declared for a source, in the place of what it says itself
    declared: Mapping[str, Declarations] = field(default_factory=dict)
    stated: Mapping[str, Universe] = field(default_factory=dict)  # the bounds that the call passes, by lower-case name
    public: frozenset[str] = frozenset()  # the names of tables that nobody is in, by the caller's word
    # whose rows a table holds, of one that links lead from by the ids that they lead to; None where nobody said
    # who a person is
    owner_of: Callable[..., Owners] | None = None
    several: bool = False  # whether the query reads several tables, for which it needs one connection
    opened: list[DuckDBPyConnection] = field(default_factory=list)
    frames: dict[str, Source] = field(default_factory=dict)  # those that this connection reads
    known: set[str] = field(default_factory=set)  # functions that no macro of the connection stands in for
    # SELECTs that every query finds under a name, as if it began WITH them
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    selects: Sequence[Select] = ()  # the whole text and its scalar subqueries, as they were read last
    by_declarations: bool = False  # whether a ledger pays, so that no value tells of what kind Python objects are
    links: Links = field(default_factory=dict)  # what leads from tables to people
    # relations of FROM that were judged before, with what they were read from
    relations: dict[tuple[Any, ...], tuple[object, Any]] = field(default_factory=dict)
    judged_for: object = None  # the people and bounds that were asked for then
    # gives headings with kinds, and rows, of a SELECT that no person is in; None where nothing may be read yet
    free: Callable[[Select], tuple[Sequence[tuple[str, str]], pd.DataFrame]] | None = None
    is_in_one_state: bool = False  # whether all is read as it was at one moment

    def __post_init__(self) -> None:
        self.named = {lowered(name): _checked(name, value) for name, value in self.named.items()}
        if self.connection is None and not self.named:
            import duckdb

            self.connection = duckdb.default_connection()

    @once
    def settings(self) -> Settings:
        """Settings of the caller's connection."""
        return Settings(self.connection, with_catalog=not self.named)  # else frames may be all that is read

    def reader(self, query: Any, params: object) -> Callable[[Scalars], Select]:
        """Reader of a query, given the values of its scalar subqueries."""
        text, values = plain_text(query, params)
        return self._read_once(lambda scalars: parsed(text, values, scalars))

    def _read_once(self, read: Callable[[Scalars], Select]) -> Callable[[Scalars], Select]:
        """The reader with the CTEs that every query finds; one tree for the same values of subqueries."""
        known = dict[tuple[str, bool], tuple[Select, list[Select], list[int]]]()

        def again(scalars: Scalars) -> Select:
            key = repr(scalars.values), scalars.subqueries is None
            if key not in known:
                select = self._with_ctes(read(scalars))
                known[key] = select, list(map(self._with_ctes, scalars.selects)), scalars.columns
            select, scalars.selects, scalars.columns = known[key]
            return select

        return again

    def _with_ctes(self, select: Select) -> Select:
        return replace(select, ctes={**self.ctes, **select.ctes}) if self.ctes else select

    def check(self, select: Select) -> None:
        """Refuse settings and macros of the connection that would change a query's meaning."""
        if self.connection is not None:
            self.settings.check(select.functions, self.known)
            self.known.update(select.functions)

    def take_snapshot(self) -> None:
        """Read all tables in one state, whatever is written between one query and the next; once is enough."""
        if not self.is_in_one_state:
            self.is_in_one_state = True
            self.begin()

    def begin(self) -> None:
        """Begin to read in one state."""
        if self.connection is not None:
            self.for_all.begin()

    def check_public(self) -> None:
        """Refuse public= names without a table."""
        if self.public:
            self._public_entries  # noqa: B018 - looks them up

    def check_readable(self, source: Source) -> None:
        """Refuse a combination of sources that DuckDB cannot read, before anything is paid."""
        table, _ = compiled(source)
        described(source.connection, f"SELECT * FROM {table.source}", "these tables together", WHOLE)

    def close(self) -> None:
        """Release the frames."""
        for connection in self.opened:
            connection.close()

    def owners(self, source: Source) -> Owners:
        """Owners of a table's rows."""
        if source.public:
            if (people := source.declared.people) is not None and people.columns:
                raise ParameterError(
                    "a table that is passed as public declares person=, so people are in it: pass it as a table of "
                    "people, or take the declaration back."
                )
            return PUBLIC
        if self.owner_of is not None:
            return self.owner_of(source)
        if source.declared.people is not None and source.declared.people.columns:
            raise nobody_named()
        self.take_snapshot()  # a public table has one row for each of these, whoever writes to it meanwhile
        return ROWS

    def is_public(self, entry: CatalogEntry) -> bool:
        """Whether the caller declared a table or view public."""
        return entry in self._public_entries

    @once
    def _public_entries(self) -> list[CatalogEntry]:
        entries = []
        for name in sorted(self.public - set(self.named)):
            known = self.entry((name,) if self.tables is not None else tuple(name.split(".")))
            if known is None:
                hint = "" if self.connection is None else did_you_mean(name, entry_names(self.connection))
                raise ParameterError(f"public= names {name}, but there is no such table.{hint}")
            entries.append(known)
        return entries

    def keyword(self, name: str) -> Source | None:
        """Table passed under this name."""
        value = self.named.get(lowered(name))
        if value is None:
            return None
        if isinstance(value, str | tuple):
            return replace(self.file(value), asked_as=lowered(name))
        if not self.several:  # apart from settings that are none of the frame's
            return self._frame(name, value, self._opened(workspace.reader()), FRAME)
        if lowered(name) not in self.frames:
            place = sorted(self.named).index(lowered(name))  # whatever is read before: ledgers know questions by it
            self.frames[lowered(name)] = self._frame(name, value, self.for_all, f"{FRAME}_{place}")
        return self.frames[lowered(name)]

    def _frame(self, name: str, value: Any, connection: DuckDBPyConnection, frame: str) -> Source:
        """A frame, under a name of its own on this connection."""
        is_public = lowered(name) in self.public
        kinds = declared_kinds if self.by_declarations and not is_public else None
        return self._told(of_frame(name, value, connection, frame, kinds, is_public=is_public))

    def named_file(self, path: str) -> Source:
        """A file that a query names."""
        if self.tables is not None:
            raise ParameterError(f"a Dataset is asked by the names of its tables: {', '.join(self.names())}.")
        if not any(isinstance(value, str) and value == path for value in self.named.values()):
            raise ParameterError(
                "a query may read only files that were named when pdrisk.sql was called: pass it by keyword, as in "
                "pdrisk.sql('SELECT ... FROM people', people='people.parquet')."
            )
        named = next(name for name, value in self.named.items() if isinstance(value, str) and value == path)
        return replace(self.file(path), asked_as=named)

    def file(self, path: str | tuple[str, ...]) -> Source:
        """Parquet file that the caller named, or several that are one table: a list, a folder or a pattern."""
        self.settings.check_files()
        named = [self.named.get(name) for name in self.public]
        is_public = any(type(value) is type(path) and value == path for value in named)
        return self._told(of_file(path, self.for_all, is_public=is_public))

    def entry(self, path: tuple[str, ...], home: CatalogEntry | None = None) -> CatalogEntry | None:
        """Table or view of this name, searched for first where the view ``home`` is."""
        if home is None and self.tables is not None:
            path = self.tables.get(lowered(path[0]), ()) if len(path) == 1 else ()
        return (
            None
            if self.connection is None or not path
            else found_entry(self.connection, path, home, self.settings.catalog)
        )

    def table(self, entry: CatalogEntry) -> Source:
        """A table, or a view that is read as it is: on a cursor, so that results the caller has open stay.

        Temporary tables, which no cursor sees, are read on the connection itself.
        """
        if entry.definition is not None and "GENERATED ALWAYS" in entry.definition.upper():
            raise ParameterError(
                f"table {entry.name} has generated columns, which may be computed anew at each read: ask a table "
                "made from it."
            )
        connection = self._connection
        if entry.database != "temp":
            cursor = self.for_all
            try:
                columns = described(cursor, f"SELECT * FROM {entry.sql}", entry.name, WHOLE)
            except ParameterError:  # a view of temporary tables
                pass
            else:
                # a view may change alone
                place = None if entry.is_view else lambda: table_place(connection, entry.database)
                return self._told(replace(self._of_entry(entry, columns, cursor), place=place))
        pin(connection, is_own=False)
        columns = described(connection, f"SELECT * FROM {entry.sql}", entry.name, WHOLE)
        return self._told(self._of_entry(entry, columns, connection))

    @once
    def for_all(self) -> DuckDBPyConnection:
        """The one connection of a query: a single statement reads all tables."""
        if self.connection is None:
            return self._opened(workspace.reader())
        cursor = self._opened(_cursor(self.connection))
        pin(cursor, is_own=True)
        return cursor

    def _of_entry(self, entry: CatalogEntry, columns: Mapping[str, str], connection: DuckDBPyConnection) -> Source:
        """A table or view, read by a connection."""
        public = self.is_public(entry)
        sql = entry.in_from(columns, is_public=public)
        sql = sql if entry.is_native else by_record(sql, columns)
        return Source(
            sql, columns, connection, name=entry.name, is_table=not entry.is_view, rows=entry.rows, public=public
        )

    def _told(self, source: Source) -> Source:
        """The source with the declarations of schema=, and the connection's time zone."""
        if any(kind_of_type(sql_type) == ZONED for sql_type in source.columns.values()):
            self.settings.check_calendar()
            source = replace(source, zone=self.settings.zone)
        if self.schema is None:
            return source
        entries = folded(entries_of(self.schema))
        if not any(Declarations(schema=entries).names(lowered(name)) for name in source.columns):
            raise ParameterError(
                "schema= names none of the columns of this table: pass the schema of this table or frame."
            )
        declarations = replace(source.declared, own=folded(source.declared.own), schema=folded(source.declared.schema))
        declared = declarations.and_schema(entries, people_of_schema(self.schema), None)
        return replace(source, declared=declared, folded=True)

    def names(self) -> list[str]:
        """Names of all tables, for an error."""
        if self.tables is not None:
            return sorted([*self.named, *self.tables])
        return sorted([*self.named, *([] if self.connection is None else entry_names(self.connection))])

    def columns_of(self, entry: CatalogEntry) -> list[str]:
        """The column names of a view, in order."""
        return list(described(self._connection, f"SELECT * FROM {entry.sql}", entry.name, WHOLE))

    def view_text(self, entry: CatalogEntry) -> str | None:
        """SELECT of a view; None if it shows a Python frame."""
        if matched := VIEW.match(entry.definition):
            select = entry.definition[matched.end() :].rstrip().removesuffix(";")
            if not re.fullmatch(r"SELECT \* FROM (pandas|arrow|polars)_scan\(.*\) AS \w+", select, re.DOTALL):
                return select
        if self._shows_a_frame(entry):
            return None
        raise ParameterError(
            f"DuckDB does not show how the view {entry.name} is made, so it cannot be checked: create it with CREATE "
            "VIEW, or pass the frame by keyword."
        )

    def _shows_a_frame(self, entry: CatalogEntry) -> bool:
        """Whether reading the view is one scan of a pandas frame and nothing else.

        An Arrow stream looks like an Arrow table, but can be read only once.
        """
        plan = asked(self._connection, f"EXPLAIN (FORMAT json) SELECT * FROM {entry.sql}", [])[-1][-1]
        return re.findall(r'"name":\s*"([^"]*?)\s*"', plan) == ["PANDAS_SCAN"]

    @once
    def _connection(self) -> DuckDBPyConnection:
        assert self.connection is not None  # an entry was found on it
        catalog = self.settings.catalog
        check_committed(self.connection, None if catalog is None else catalog.transaction)
        return self.connection

    def _opened(self, connection: DuckDBPyConnection) -> DuckDBPyConnection:
        self.opened.append(connection)
        return connection


def _cursor(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    import duckdb

    try:
        return connection.cursor()
    except duckdb.Error:
        pass
    raise ParameterError("the connection is closed: open it again.")


def _checked(name: str, value: object) -> Any:
    """A frame that DuckDB reads, or paths of files as text."""
    if is_frame(value):
        return value
    if is_path(value):
        paths = ParquetFiles(value).paths
        if isinstance(paths, tuple):
            check_encodable(f"a path of {name}=", paths)
        return paths
    kind = type(value).__name__
    advice = " Parameters of the query go into params=." if name == "parameters" else ""
    if kind in ("RecordBatchReader", "DuckDBPyRelation"):
        advice = " Pass all its rows: read_all() of a reader, to_arrow_table() or df() of a relation."
    raise ColumnTypeError(
        f"{name}= is no option, so it should be a pandas, Polars or Arrow frame, or the path of a Parquet file, not "
        f"of type {kind}.{advice}"
    )
