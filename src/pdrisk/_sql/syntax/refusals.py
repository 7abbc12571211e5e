"""Refusals by the names that DuckDB's parser has for parts of a query, with what to write instead."""

from __future__ import annotations

from typing import NoReturn

from pdrisk._model.expressions.nodes import Column
from pdrisk.errors import ParameterError

NO_FROM = "there is no FROM: ask a table, view, frame or Parquet file"


def not_grouped(column: Column) -> ParameterError:
    """The error for an exact value in an answer: a column outside of aggregates and GROUP BY."""
    return ParameterError(
        f"column {column.path!r} is neither aggregated nor in GROUP BY: exact values never leave the data."
    )


def keys_without_groups() -> ParameterError:
    """The error for keys of a query without groups."""
    return ParameterError("keys= lists the groups of GROUP BY, which is missing: write it, or leave keys out.")


def nobody_named() -> ParameterError:
    """The error for a join of several tables of people, or of rows that match several, without person=."""
    return ParameterError(
        "joins are refused, since a record may match any number of others, unless it is known who a person "
        'is: pass person="pid", or person={"stays": "patient_id", "patients": "pid"}, the columns of each '
        "table that say so, and public= with the tables that nobody is in."
    )


def correlated(column: str) -> ParameterError:
    """The error for a subquery that reads the row of the query around it."""
    return ParameterError(
        f"{column} is a column of the query around the subquery: correlated subqueries are refused, but for EXISTS on "
        "the person, since each row would ask anew. If it is about the person of the row, write it into FROM, with "
        "GROUP BY the person, and join it. Else ask for its groups first, in a query of their own, and join that "
        "answer as a public table: public={'groups': answer}."
    )


FULL_JOIN = "FULL JOIN of people's rows leaves open whose row it is: write LEFT JOIN, or UNION ALL"
JOINS = {
    "NATURAL": "NATURAL JOIN joins by whatever names two tables share: write USING with the column of the person",
    "ASOF": "ASOF JOIN picks a row by its neighbours: join ON the column of the person",
    "POSITIONAL": "POSITIONAL JOIN joins rows by their place, which others decide: join ON the column of the person",
}
REFUSED = {
    "SUBQUERY": "subqueries inside an expression can carry other records into it: compute that value with a query of "
    "its own, and pass it as a parameter. IN (SELECT ...) and EXISTS are understood where WHERE joins its conditions "
    "by AND",
    "STAR": "* stands only alone in SELECT or as COUNT(*): name the columns",
    "LAMBDA": "lambda functions are not understood: write the expression out",
    "COLLATE": "COLLATE is not understood: compare lower(x)",
    "POSITIONAL_REFERENCE": "#1 is not understood: name the column",
    "EXPRESSION_LIST": "VALUES has no people in it: ask a table, view, frame or Parquet file",
    "EMPTY": NO_FROM,
    "SHOW_REF": "pdrisk.sql answers one SELECT: ask the connection itself for its tables and columns",
    "ARRAY_EXTRACT": "lists and structs are not understood: make a column of what you need",
    "ARRAY_SLICE": "lists and structs are not understood: make a column of what you need",
    "STRUCT_EXTRACT": "lists and structs are not understood: make a column of what you need",
    "PIVOT": "PIVOT is not understood: write GROUP BY",
    "SET_OPERATION_NODE": "INTERSECT ALL and EXCEPT ALL are refused, since how often a row is there depends on others: "
    "leave out ALL. So is BY NAME: list the columns of both sides in one order",
    "RECURSIVE_CTE_NODE": "recursive queries are refused: a record may appear any number of times",
    "CTE_NODE": "this kind of WITH is not understood: write a subquery in FROM",
}


def refuse(what: str) -> NoReturn:
    """Refuse a part of a query by the name that DuckDB has for it."""
    raise ParameterError(f"{REFUSED[what]}.")
