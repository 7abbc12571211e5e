"""CREATE TABLE AS: a noisy answer written to the DuckDB connection that was asked."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from pdrisk._answer.explain import explain
from pdrisk._sql.together.preview import GAP
from pdrisk.engines.sql.servers.duckdb_engine import asked, check_committed
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["NewTable", "without_create"]

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

    def check(self, connection: DuckDBPyConnection | None, curator: object) -> None:
        """See that the table can be made, before anything is paid; nothing of it stays.

        Raises
        ------
        ParameterError
            If it cannot, would replace a table that pdrisk did not write, there is no connection to DuckDB, or
            curators' numbers would be written.
        """
        if curator is True:
            raise ParameterError("a table is for all who read it: ask with curator=True without CREATE TABLE.")
        if connection is None:
            raise ParameterError(
                "CREATE TABLE AS writes to a connection of DuckDB: pass it as con, or ask the SELECT alone and write "
                "the answer with to_parquet or to_sql."
            )
        check_committed(connection)
        if re.search(r"\bREPLACE\b", self.words, re.IGNORECASE):
            own = re.findall(NAME, self.name)[-1].strip('"').replace('""', '"')
            if asked(connection, OF_OTHERS, [own.lower(), MARK])[0][0]:
                raise ParameterError(
                    f"there is a table {own} that pdrisk did not write, and people's data are not replaced: choose "
                    "another name, or DROP it first."
                )
        if said := _failure(connection, [f"{self.words} {self.name} (probe INTEGER)"], "ROLLBACK"):
            raise ParameterError(f"the table cannot be made: {said}")

    def write(self, connection: DuckDBPyConnection | None, answer: pd.DataFrame) -> None:
        """Write the answer, with its label as a comment; if that fails there is a warning, for it is paid."""
        assert connection is not None  # says `check`
        label = f"{MARK}\n{explain(answer, 'publication')}".replace("'", "''")
        statements = [
            f"{self.words} {self.name} AS SELECT * FROM {ANSWER}",
            f"COMMENT ON TABLE {self.name} IS '{label}'",
        ]
        connection.register(ANSWER, answer)
        said = _failure(connection, statements, "COMMIT")
        connection.unregister(ANSWER)
        if said:
            warnings.warn(
                f"the answer was paid and is returned, but not written to {self.name}: {said}",
                UserWarning,
                stacklevel=2,
            )


def _failure(connection: DuckDBPyConnection, statements: Sequence[str], end: str) -> str:
    """What DuckDB says against statements in a transaction of their own, which ends so; "" if nothing."""
    import duckdb

    try:
        connection.execute("BEGIN")
        for each in (*statements, end):
            connection.execute(each)
    except duckdb.Error as error:
        connection.execute("ROLLBACK")
        return str(error).splitlines()[0]
    return ""
