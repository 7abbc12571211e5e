"""CREATE TABLE AS: a noisy answer written to the connection that was asked, of DuckDB or PostgreSQL."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pandas as pd

from pdrisk._answer.explain import explain
from pdrisk._model.expressions.kinds import DATE, NUMBER
from pdrisk._model.rowwise.families import family
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.together.preview import GAP
from pdrisk._tables.postgres_table import connected, server_of
from pdrisk.engines.sql.servers.duckdb_engine import asked, check_committed
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NAME: Final = r'(?:"(?:[^"]|"")+"|\w+)'
CREATE: Final = re.compile(
    rf"{GAP}*CREATE{GAP}+(?P<replace>OR{GAP}+REPLACE{GAP}+)?(?P<temporary>TEMP(?:ORARY)?{GAP}+)?TABLE{GAP}+"
    rf"(?P<unless>IF{GAP}+NOT{GAP}+EXISTS{GAP}+)?(?P<name>{NAME}(?:\.{NAME}){{0,2}}){GAP}+AS(?={GAP}|\()(?!{GAP}*EXPLAIN\b)",
    re.IGNORECASE | re.DOTALL,
)
ANSWER: Final = "pdrisk_answer_to_be_written"
MARK: Final = "Written by pdrisk."  # begins the comments of its tables
OF_OTHERS: Final = (
    "SELECT count(*) FROM duckdb_tables() WHERE lower(table_name) = ? AND NOT starts_with(coalesce(comment, ''), ?)"
)
OF_OTHERS_ON_SERVER: Final = """
SELECT pg_catalog.starts_with(coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''), %s)
FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass(%s)
"""


def without_create(query: Any) -> tuple[Any, NewTable | None]:
    """The SELECT of a CREATE TABLE AS, and the table it is written to; any other query as it is."""
    match = CREATE.match(query) if isinstance(query, str) else None
    if match is None:
        return query, None
    if match["unless"]:
        raise ParameterError("IF NOT EXISTS may leave out what was paid for: write CREATE TABLE or CREATE OR REPLACE.")
    return query[match.end() :], NewTable(match["name"], bool(match["replace"]), bool(match["temporary"]))


class Destination(Protocol):
    """Where tables are written to."""

    def check(self) -> None:
        """Refuse a connection that nothing may be written to now."""

    def made(self, table: NewTable, answer: pd.DataFrame, label: str, *, stays: bool) -> str:
        """Write the table, or see whether it could be; what is said against it, "" if nothing."""


@dataclass(frozen=True)
class OnDuckDB:
    """A connection to DuckDB, in a transaction of its own."""

    connection: DuckDBPyConnection

    def check(self) -> None:
        check_committed(self.connection)

    def made(self, table: NewTable, answer: pd.DataFrame, label: str, *, stays: bool) -> str:
        import duckdb

        comment, name = label.replace("'", "''"), re.findall(NAME, table.name)[-1]
        name = name[1:-1].replace('""', '"') if name.startswith('"') else name
        self.connection.register(ANSWER, answer)
        try:
            self.connection.execute("BEGIN")
            if table.replaces and asked(self.connection, OF_OTHERS, [name.lower(), MARK])[0][0]:
                self.connection.execute("ROLLBACK")
                return table.of_others
            self.connection.execute(f"{table.words} {table.name} AS SELECT * FROM {ANSWER}")
            self.connection.execute(f"COMMENT ON TABLE {table.name} IS '{comment}'")
            self.connection.execute("COMMIT" if stays else "ROLLBACK")
        except duckdb.Error as error:
            self.connection.execute("ROLLBACK")
            return str(error).splitlines()[0]
        finally:
            self.connection.unregister(ANSWER)
        return ""


@dataclass(frozen=True)
class OnServer:
    """A connection to PostgreSQL, or what makes one: in a transaction of its own, or as a part of the open one."""

    server: Any

    def check(self) -> None:
        with connected(self.server):
            pass

    def made(self, table: NewTable, answer: pd.DataFrame, label: str, *, stays: bool) -> str:
        import psycopg

        rows = answer.astype(object).to_numpy().tolist()
        values = [[None if pd.isna(value) else value for value in row] for row in rows]
        try:
            with connected(self.server) as connection, connection.transaction(force_rollback=not stays):
                return self._made(connection, table, answer, values, label)
        except psycopg.Error as error:
            return next(iter(str(error).splitlines()), type(error).__name__)

    @staticmethod
    def _made(connection: Any, table: NewTable, answer: pd.DataFrame, values: list[list[Any]], label: str) -> str:
        from psycopg import Cursor
        from psycopg.rows import tuple_row
        from psycopg.sql import SQL, Identifier, Literal

        cursor = Cursor(connection, row_factory=tuple_row)
        full = table.name
        if len(re.findall(NAME, full)) == 1:  # else another schema's table might be dropped than is made
            (schema,) = cursor.execute("SELECT pg_catalog.quote_ident(pg_catalog.current_schema())").fetchone() or (
                None,
            )
            schema = "pg_temp" if table.temporary else schema
            full = full if schema is None else f"{schema}.{full}"
        if table.replaces and cursor.execute(OF_OTHERS_ON_SERVER, [MARK, full]).fetchone() is not None:
            cursor.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(SQL(full)))
            if cursor.execute(OF_OTHERS_ON_SERVER, [MARK, full]).fetchone() != (True,):
                return table.of_others
            cursor.execute(SQL("DROP TABLE {}").format(SQL(full)))
        columns = [SQL(f"{{}} {_server_type(answer[name])}").format(Identifier(str(name))) for name in answer.columns]
        words = SQL("CREATE TEMP TABLE {} ({})" if table.temporary else "CREATE TABLE {} ({})")
        cursor.execute(words.format(SQL(full), SQL(", ").join(columns)))
        places = SQL(", ").join([SQL("%s")] * len(columns))
        cursor.executemany(SQL("INSERT INTO {} VALUES ({})").format(SQL(full.replace("%", "%%")), places), values)
        cursor.execute(SQL("COMMENT ON TABLE {} IS {}").format(SQL(full), Literal(label)))
        return ""


def _server_type(column: pd.Series) -> str:
    """PostgreSQL's type for a column of an answer."""
    kind = family(column.dtype)
    if kind == NUMBER:
        name = str(column.dtype).lower()
        return "BOOLEAN" if name.startswith("bool") else "BIGINT" if "int" in name else "DOUBLE PRECISION"
    return "TIMESTAMP" if kind == DATE else "TEXT"


def destination_of(con: object, sources: Sources) -> Destination | None:
    """Where the tables that a call reads can be written to, too; None if nowhere."""
    server = server_of(con)
    if server is not None:
        return OnServer(server)
    return None if sources.connection is None else OnDuckDB(sources.connection)


@dataclass(frozen=True)
class NewTable:
    """A table that an answer is written to."""

    name: str  # as it is written, with its schema
    # `replaces`, `temporary`: whether OR REPLACE and TEMP are written
    replaces: bool
    temporary: bool

    @property
    def words(self) -> str:
        """What stands before the name."""
        return f"CREATE {'OR REPLACE ' * self.replaces}{'TEMP ' * self.temporary}TABLE"

    @property
    def of_others(self) -> str:
        """What is said where there is such a table already, by others."""
        return (
            f"there is a table {self.name} that pdrisk did not write, and people's data are not replaced: choose "
            "another name, or DROP it first."
        )

    def check(self, place: Destination | None, curator: object) -> None:
        """See that the table can be made, before anything is paid; nothing of it stays."""
        if curator is True:
            raise ParameterError("a table is for all who read it: ask with curator=True without CREATE TABLE.")
        if place is None:
            raise ParameterError(
                "CREATE TABLE AS writes to a connection of DuckDB or PostgreSQL: pass it as con, or ask the SELECT "
                "alone and write the answer with to_parquet or to_sql."
            )
        place.check()
        if problem := place.made(self, pd.DataFrame({"probe": [0]}), "", stays=False):
            raise ParameterError(problem if problem == self.of_others else f"the table cannot be made: {problem}")

    def write(self, place: Destination | None, answer: pd.DataFrame) -> None:
        """Write the answer, with its label as a comment; if that fails there is a warning, for it is paid."""
        assert place is not None  # says `check`
        label = f"{MARK}\n{explain(answer, 'publication')}"
        if problem := place.made(self, answer, label, stays=True):
            warnings.warn(
                f"the answer was paid and is returned, but not written to {self.name}: {problem}",
                UserWarning,
                stacklevel=2,
            )
