"""Statements other than SELECT: their refusals, with what to write instead."""

from __future__ import annotations

import re

from pdrisk._sql.syntax import private_database as workspace
from pdrisk.errors import ParameterError

ONE_SELECT = "pdrisk.sql answers one SELECT, nothing else"
TABLES = "make tables and views on the connection itself, and ask them here"
CHANGES = "change data on the connection itself, and ask here"
ITSELF = "run it on the connection itself"
INSTEAD = {
    "EXPLAIN": "for its price and noise pass the SELECT with explain=True, or as a text that begins with EXPLAIN",
    "MULTI": "PIVOT looks for its columns in the data: write GROUP BY with keys=, and turn the answer with "
    "DataFrame.pivot",
    "CREATE": f"{TABLES}. An answer becomes a table by CREATE TABLE t AS SELECT in pdrisk.sql with con=",
    **dict.fromkeys(("ALTER", "DROP", "ATTACH", "DETACH"), TABLES),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE_INTO"), CHANGES),
    **dict.fromkeys(("COPY", "EXPORT"), "the answer is a DataFrame: write it with to_csv or to_parquet"),
    **dict.fromkeys(("PREPARE", "EXECUTE"), "pass the text with ? or $name, and its values as params="),
}
NAMES = {"MULTI": "PIVOT"}  # also where it stands in FROM
NEW_LINE = "\n"
DEPTH = "expression depth"  # in the words of DuckDB, which advise to raise it


def no_select(text: str, message: str = "") -> ParameterError:
    """The error for a text that is not one SELECT: the name of the statement, and what to write instead.

    ``message``: why DuckDB makes no tree of it.
    """
    kinds = workspace.statements(text)
    if DEPTH in message:
        return too_deep()
    if kinds is None:
        return ParameterError(f"this is no SQL that DuckDB understands: {message.partition(NEW_LINE)[0]}")
    if not kinds:
        return ParameterError("the query is empty: write a SELECT, such as SELECT COUNT(*) FROM people.")
    if kinds[0] != "SELECT" and _word(text) in ("SELECT", "FROM", "PIVOT"):  # DuckDB 1 makes several of it
        kinds = ["MULTI"]
    if len(kinds) > 1:
        return ParameterError(f"{ONE_SELECT}, but here are {len(kinds)} statements: ask them one after the other.")
    (kind,) = kinds
    # A statement of WITH begins like a SELECT, and some have only the kind of another.
    name = NAMES.get(kind) or (kind if _word(text) in ("", "WITH") else _word(text))
    return ParameterError(f"{ONE_SELECT}, but this is {name}: {INSTEAD.get(kind, ITSELF)}.")


def too_deep() -> ParameterError:
    """The error for a query nested too deeply for DuckDB or Python."""
    return ParameterError("the query is nested too deeply (its depth is limited): write it flatter.")


def _word(text: str) -> str:
    """The first word that is no comment."""
    match = re.match(r"(?:\s|;|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*([A-Za-z]+)", text, re.DOTALL)
    return match[1].upper() if match else ""
