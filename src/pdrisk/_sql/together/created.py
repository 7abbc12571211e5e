"""CREATE TABLE AS: a noisy answer written to the connection that was asked, of DuckDB or PostgreSQL."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pandas as pd

from pdrisk._answer.explain import explain
from pdrisk._model.kinds import DATE, NUMBER
from pdrisk._model.rowwise.families import family
from pdrisk._sql.syntax.pieces import quoted
from pdrisk._sql.tables.postgres_table import connected, server_of
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.together.preview import GAP
from pdrisk.engines.sql.servers.duckdb_engine import asked, check_committed
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["NewTable", "destination_of", "without_create"]

NAME: Final = r'(?:"(?:[^"]|"")+"|\w+)'
CREATE: Final = re.compile(
    rf"{GAP}*(?P<words>CREATE{GAP}+(?:OR{GAP}+REPLACE{GAP}+)?(?:TEMP(?:ORARY)?{GAP}+)?TABLE){GAP}+"
    rf"(?P<unless>IF{GAP}+NOT{GAP}+EXISTS{GAP}+)?(?P<name>{NAME}(?:\.{NAME}){{0,2}}){GAP}+AS(?={GAP}|\()(?!{GAP}*EXPLAIN\b)",
    re.IGNORECASE | re.DOTALL,
)
ANSWER: Final = "pdrisk_answer_to_be_written"
MARK: Final = "Written by pdrisk."  # begins the comments of its tables
OF_OTHERS: Final = (
    "SELECT count(*) FROM duckdb_tables() WHERE lower(table_name) = ? AND NOT starts_with(coalesce(comment, ''), ?)"
)
OF_OTHERS_ON_SERVER: Final = """
SELECT count(*) FROM pg_catalog.pg_class AS c WHERE c.oid = pg_catalog.to_regclass(%s)
AND NOT pg_catalog.starts_with(coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''), %s)
"""
REPLACE: Final = re.compile(rf"OR{GAP}+REPLACE{GAP}+", re.IGNORECASE | re.DOTALL)


def without_create(query: Any) -> tuple[Any, NewTable | None]:
    """The SELECT of a CREATE TABLE AS, and the table it is written to; any other query as it is.

    Raises
    ------
    ParameterError
        For IF NOT EXISTS.
    """
    found = CREATE.match(query) if isinstance(query, str) else None
    if found is None:
        return query, None
    if found["unless"]:
        raise ParameterError("IF NOT EXISTS may leave out what was paid for: write CREATE TABLE or CREATE OR REPLACE.")
    return query[found.end() :], NewTable(found["words"], found["name"])


class Destination(Protocol):
    """Where tables are written to."""

    def check(self) -> None:
        """Refuse a connection that nothing may be written to now."""

    def has_of_others(self, name: str) -> bool:
        """Whether there is a table of this name that pdrisk did not write."""

    def tried(self, words: str, name: str) -> str:
        """What is said against making the table, which does not stay; "" if nothing."""

    def written(self, words: str, name: str, answer: pd.DataFrame, label: str) -> str:
        """Write the table; what is said against it, "" if nothing."""


@dataclass(frozen=True)
class OnDuckDB:
    """A connection to DuckDB, in a transaction of its own."""

    connection: DuckDBPyConnection

    def check(self) -> None:
        check_committed(self.connection)

    def has_of_others(self, name: str) -> bool:
        own = re.findall(NAME, name)[-1].strip('"').replace('""', '"')
        return bool(asked(self.connection, OF_OTHERS, [own.lower(), MARK])[0][0])

    def tried(self, words: str, name: str) -> str:
        return self._failure([f"{words} {name} (probe INTEGER)"], "ROLLBACK")

    def written(self, words: str, name: str, answer: pd.DataFrame, label: str) -> str:
        comment = label.replace("'", "''")
        self.connection.register(ANSWER, answer)
        try:
            return self._failure(
                [f"{words} {name} AS SELECT * FROM {ANSWER}", f"COMMENT ON TABLE {name} IS '{comment}'"], "COMMIT"
            )
        finally:
            self.connection.unregister(ANSWER)

    def _failure(self, statements: Sequence[str], end: str) -> str:
        import duckdb

        try:
            self.connection.execute("BEGIN")
            for each in (*statements, end):
                self.connection.execute(each)
        except duckdb.Error as error:
            self.connection.execute("ROLLBACK")
            return str(error).splitlines()[0]
        return ""


@dataclass(frozen=True)
class OnServer:
    """A connection to PostgreSQL, or what makes one: in a transaction of its own, or as a part of the open one."""

    server: Any

    def check(self) -> None:
        with connected(self.server):
            pass

    def has_of_others(self, name: str) -> bool:
        with connected(self.server) as connection, connection.transaction(force_rollback=True):
            ((number,),) = connection.execute(OF_OTHERS_ON_SERVER, [name, MARK]).fetchall()
        return bool(number)

    def tried(self, words: str, name: str) -> str:
        return self._failure(words, name, pd.DataFrame({"probe": [0]}), "", stays=False)

    def written(self, words: str, name: str, answer: pd.DataFrame, label: str) -> str:
        return self._failure(words, name, answer, label, stays=True)

    def _failure(self, words: str, name: str, rows: pd.DataFrame, label: str, *, stays: bool) -> str:
        import psycopg

        plain = REPLACE.sub("", words)
        columns = ", ".join(f"{quoted(str(name))} {_server_type(rows[name])}" for name in rows.columns)
        values = [[None if pd.isna(each) else each for each in row] for row in rows.astype(object).to_numpy().tolist()]
        try:
            with connected(self.server) as connection, connection.transaction(force_rollback=not stays):
                if plain != words:
                    connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
                connection.execute(f"{plain} {name} ({columns})".encode())
                places = ", ".join(["%s"] * len(rows.columns))
                connection.cursor().executemany(f"INSERT INTO {name} VALUES ({places})".encode(), values)
                comment = psycopg.sql.SQL("COMMENT ON TABLE {} IS {}")
                connection.execute(comment.format(psycopg.sql.SQL(name), psycopg.sql.Literal(label)))
        except psycopg.Error as error:
            return next(iter(str(error).splitlines()), type(error).__name__)
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
    """A table that an answer is written to.

    Attributes
    ----------
    words : str
        CREATE TABLE as it is written, with OR REPLACE and TEMP.
    name : str
        Its name, likewise.
    """

    words: str
    name: str

    def check(self, place: Destination | None, curator: object) -> None:
        """See that the table can be made, before anything is paid; nothing of it stays.

        Raises
        ------
        ParameterError
            If it cannot, would replace a table that pdrisk did not write, there is no connection to write to, or
            curators' numbers would be written.
        """
        if curator is True:
            raise ParameterError("a table is for all who read it: ask with curator=True without CREATE TABLE.")
        if place is None:
            raise ParameterError(
                "CREATE TABLE AS writes to a connection of DuckDB or PostgreSQL: pass it as con, or ask the SELECT "
                "alone and write the answer with to_parquet or to_sql."
            )
        place.check()
        if REPLACE.search(self.words) and place.has_of_others(self.name):
            raise ParameterError(
                f"there is a table {self.name} that pdrisk did not write, and people's data are not replaced: choose "
                "another name, or DROP it first."
            )
        if said := place.tried(self.words, self.name):
            raise ParameterError(f"the table cannot be made: {said}")

    def write(self, place: Destination | None, answer: pd.DataFrame) -> None:
        """Write the answer, with its label as a comment; if that fails there is a warning, for it is paid."""
        assert place is not None  # says `check`
        label = f"{MARK}\n{explain(answer, 'publication')}"
        if said := place.written(self.words, self.name, answer, label):
            warnings.warn(
                f"the answer was paid and is returned, but not written to {self.name}: {said}",
                UserWarning,
                stacklevel=2,
            )
