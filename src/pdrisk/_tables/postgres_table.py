"""Tables of PostgreSQL for the methods of a Dataset: connections to it, and what its catalog says of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pdrisk.engines.base import Origin
from pdrisk.engines.sql.servers.postgres_engine import (
    READ_ONLY,
    SETTINGS,
    PostgresDialect,
    alone,
    asked,
    compiled,
    fetched,
    reading,
)
from pdrisk.engines.sql.servers.postgres_types import CatalogColumn, stored_column
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.reading import Columns, Fetch
from pdrisk.engines.sql.summary.summary_plan import SummaryPlan
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    import psycopg

CATALOGS: Final = ("pg_catalog", "information_schema")  # and those of pg_toast
OLDEST: Final = 140000  # the first version whose EXTRACT is exact
# Found by the search_path of the connection, and from then on known by its number.
NUMBER: Final = "SELECT CAST(pg_catalog.to_regclass(CAST($1 AS pg_catalog.text)) AS pg_catalog.oid)"
TABLE: Final = """
SELECT n.nspname, c.relname, current_database(), current_user FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = CAST($1 AS oid) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
COLUMNS: Final = """
WITH RECURSIVE resolved AS (
    SELECT attnum, attname, format_type(atttypid, atttypmod) AS written, atttypid AS type, atttypmod AS modifier
    FROM pg_attribute
    WHERE attrelid = CAST($1 AS oid) AND attnum > 0 AND NOT attisdropped
        AND has_column_privilege(attrelid, attnum, 'SELECT')
    UNION ALL
    SELECT attnum, attname, written, t.typbasetype, CASE WHEN t.typtypmod < 0 THEN modifier ELSE t.typtypmod END
    FROM resolved JOIN pg_type AS t ON t.oid = resolved.type WHERE t.typtype = 'd'
)
SELECT attname, written, CASE WHEN t.typnamespace = CAST('pg_catalog' AS regnamespace) THEN t.typname ELSE '' END,
    modifier, CASE WHEN t.typtype = 'e' THEN ARRAY(
        SELECT CAST(enumlabel AS text) FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder
    ) END
FROM resolved JOIN pg_type AS t ON t.oid = resolved.type WHERE t.typtype <> 'd' ORDER BY attnum
"""


@dataclass(frozen=True)
class PostgresAddress:
    """Server by its URL, to which each reading connects anew; nothing shows the URL."""

    url: str = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise ParameterError("the URL of a server holds its password and is not pickled: make the Dataset anew there.")

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        """Connection that is closed after the block."""
        try:
            import psycopg
        except ImportError as error:
            raise ParameterError(
                'PostgreSQL is read by psycopg, which is missing: pip install "pdrisk[postgres]".'
            ) from error
        failure, connection = "", None
        try:
            connection = psycopg.connect(self.url, autocommit=True)
        except psycopg.Error as error:  # whose text may quote a part of the URL
            failure = type(error).__name__
        if connection is None:
            raise ParameterError(
                f"no connection to the PostgreSQL server of the URL ({failure}): try psycopg.connect with it. Its "
                "password can be kept in ~/.pgpass or PGPASSWORD."
            )
        with closing(connection):
            yield connection


def server_of(value: object) -> Any:
    """Connection to PostgreSQL, or the address of a URL; None for anything else."""
    if isinstance(value, str) and value.startswith(("postgresql://", "postgres://")):
        return PostgresAddress(value)
    return value if _is_postgres(value) else None


def _is_postgres(value: object) -> bool:
    """Whether it is a connection to PostgreSQL: psycopg's, or an Engine or Connection of SQLAlchemy."""
    names = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(value).__mro__}
    if "psycopg.Connection" in names:
        return True
    is_alchemy = not names.isdisjoint(("sqlalchemy.Engine", "sqlalchemy.Connection"))
    return is_alchemy and getattr(getattr(value, "dialect", None), "name", None) == "postgresql"


@dataclass(frozen=True)
class PostgresTable:
    """A table, view or the like of a PostgreSQL server."""

    connection: Any
    name: str  # as in SQL: a capital needs quotes, and a schema may stand before it

    def table(self) -> SQLTable:
        """The table as the catalog describes it now: names and types, no data."""
        import psycopg

        problem, entry = None, None
        try:
            with connected(self.connection) as connection:
                place = connection.info.host, connection.info.port
                encoding = connection.info.parameter_status("server_encoding") or ""
                entry = _found(connection, self.name)
        except psycopg.Error as error:
            problem = next(iter(str(error).splitlines()), type(error).__name__)
        if problem is not None:
            raise ParameterError(f"table {self.name!r} cannot be looked up on the server: {problem}.")
        if entry is None:
            raise ParameterError(
                f"the server has no table {self.name!r} that this role may read: name it as in SQL, with its schema, "
                "as in 'survey.people', and names with capitals in quotes, as in '\"People\"'."
            )
        (schema, name, *owner), columns = entry
        if schema in CATALOGS or schema.startswith("pg_toast"):
            raise ParameterError("the catalogs of a server are not about people: ask a table or view of data.")
        dialect = PostgresDialect()
        where = repr((place, schema, name, owner, columns))
        return _Stored(
            f"{dialect.name(schema)}.{dialect.name(name)}",
            {column.name: stored_column(column, encoding) for column in columns},
            dialect,
            self._fetched,
            Origin(None, lambda: where),
            cursor=self._cursor,
        )

    def _fetched(self, sql: str, values: Sequence[Any]) -> Columns:
        with self._cursor() as cursor:
            return fetched(cursor, sql, values)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Cursor for all statements of one answer, in one state of the data."""
        with connected(self.connection) as connection, reading(connection) as cursor:
            yield cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored(SQLTable):
    cursor: Callable[[], AbstractContextManager[Any]]

    @contextmanager
    def reading(
        self,
        plan: SummaryPlan,
        keys: list[list[Any]] | None,  # noqa: ARG002 - as all tables do
    ) -> Iterator[tuple[Fetch, SummaryPlan]]:
        with self.cursor() as cursor:
            if not plan.groups:
                plan = replace(plan, at_once=not compiled(cursor))
            yield partial(fetched, cursor), plan


def _found(connection: psycopg.Connection[Any], name: str) -> tuple[tuple[str, ...], list[CatalogColumn]] | None:
    """Schema, name, database and role of a table, and its columns that this role may read; None without any."""
    with reading(connection, READ_ONLY) as cursor:
        ((number,),) = asked(cursor, NUMBER, [name])
    with reading(connection) as cursor:
        tables = [] if number is None else asked(cursor, TABLE, [number])
        columns = [CatalogColumn(*row) for row in asked(cursor, COLUMNS, [number])] if tables else []
    return (tables[0], columns) if columns else None


def catalog_rows(connection: Any, sql: str, values: Sequence[Any] = (), settings: str = SETTINGS) -> list[Any]:
    """Rows of a server's catalog, whose errors quote no record."""
    import psycopg

    try:
        with connected(connection) as opened, reading(opened, settings) as cursor:
            return asked(cursor, sql, values)
    except psycopg.Error as error:
        problem = next(iter(str(error).splitlines()), type(error).__name__)
    raise ParameterError(f"the server cannot be asked for its tables: {problem}.")


@contextmanager
def one_connection(connection: Any) -> Iterator[Any]:
    """The connection itself, or one of an Engine or address that is open for the block."""
    if type(connection).__name__ not in ("Engine", "PostgresAddress"):
        yield connection
        return
    shared = type(getattr(connection, "pool", None)).__name__ == "StaticPool"  # which gives all the same connection
    with alone(connection) if shared else nullcontext(), connection.connect() as opened:
        yield opened


@contextmanager
def one_state(connection: Any) -> Iterator[None]:
    """One state of the data for everything read from a connection in the block."""
    with connected(connection) as opened, reading(opened, READ_ONLY):
        yield


@contextmanager
def connected(given: Any) -> Iterator[psycopg.Connection[Any]]:
    """Connection of psycopg, without a failed transaction, for one thread at a time."""
    import psycopg
    from psycopg.pq import TransactionStatus

    with one_connection(given) as connection:
        if not isinstance(connection, psycopg.Connection):
            connection = connection.connection.driver_connection
        if not isinstance(connection, psycopg.Connection):
            raise ColumnTypeError(
                "SQLAlchemy is to connect by psycopg 3: write create_engine('postgresql+psycopg://...')."
            )
        with alone(connection):
            if connection.closed:
                raise ParameterError("the connection to the server is closed: open another, and make a new Dataset.")
            if connection.info.transaction_status == TransactionStatus.INERROR:
                raise ParameterError(
                    "a statement failed in the transaction of the connection: roll it back, and ask again."
                )
            if connection.info.server_version < OLDEST:
                raise ParameterError("the server is older than PostgreSQL 14: its arithmetic with times is not exact.")
            yield connection
