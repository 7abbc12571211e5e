"""Declarations from the catalog of a database: ``pdrisk.schema_from``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pprint import pformat
from typing import Any

from pdrisk._core.days import moment
from pdrisk._core.foreign import own_errors, shown
from pdrisk._model.declared.declarations import universe_of
from pdrisk._model.expressions.kinds import DATE, TIME
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.expressions.nodes import conjuncts
from pdrisk._model.groups.keys import listed_values
from pdrisk._printing import printable
from pdrisk._sql.tables.catalog_constraints import (
    ConstrainedTable,
    Constraint,
    plain_name,
    tables_in_duckdb,
    tables_in_postgres,
)
from pdrisk._sql.tables.check_constraints import AllowedValues, allowed_values
from pdrisk._sql.tables.clients import connected
from pdrisk._tables.postgres_table import server_of
from pdrisk.engines.sql.servers.spark_engine import is_spark_session
from pdrisk.errors import ColumnTypeError, ParameterError

WIDTH = 110


@dataclass(frozen=True, repr=False)
class CatalogSchema:
    """Declarations from a catalog: bounds and keys by table and column, printed as the Python that makes them.

    Attributes
    ----------
    bounds : dict from table to dict from column to (lo, hi)
        For ``bounds=``; every table that was read has an entry.
    keys : dict from table to dict from column to list
        For ``keys=``.
    comments : dict from table to list of str
        What the catalog says beside that and only people can declare: who a person is, which tables join, and the
        constraints that are not understood.
    links : dict from table to list of (columns, table, columns)
        Its foreign keys, for ``links=``: keep what leads to people, and of a table with several begin with the one that
        does.
    """

    bounds: dict[str, dict[str, tuple[Any, Any]]]
    keys: dict[str, dict[str, list[Any]]]
    comments: dict[str, list[str]]
    links: dict[str, list[tuple[Any, str, Any]]] = field(default_factory=dict)

    def __getitem__(self, table: str) -> dict[str, Any]:
        """Options of a Dataset of one table, as in ``pdrisk.Dataset((con, "people"), **s["people"])``."""
        if table not in self.bounds:
            raise ParameterError(
                f"no table {shown(table)} was read from the catalog; there are: {', '.join(self.bounds) or 'none'}."
                f"{did_you_mean(table, self.bounds)}"
            )
        return {"bounds": dict(self.bounds[table]), "keys": dict(self.keys[table])}

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the tables."""
        return iter(self.bounds)

    def __repr__(self) -> str:
        lines = ["# From constraints of a database. Whoever passes this vouches that none was chosen from the data."]
        for name, declared in (("bounds", self.bounds), ("keys", self.keys)):
            written = pformat(declared, width=WIDTH - len(f"{name} = "), sort_dicts=False)
            lines.append(f"{name} = {written}".replace("\n", "\n" + " " * len(f"{name} = ")))
        if self.links:
            written = pformat(self.links, width=WIDTH - len("# links = "), sort_dicts=False)
            lines += [f"# {printable(line)}" for line in f"links = {written}".splitlines()]
        lines += [
            f"# {printable(f'{table}: {comment}')}" for table, comments in self.comments.items() for comment in comments
        ]
        return "\n".join(lines)


@own_errors
def schema_from(con: Any, tables: Sequence[str] | None = None) -> CatalogSchema:
    """Declarations from the constraints of a database: bounds and keys of its tables, to print, edit and pass.

    Only the catalog is read, never a row. Read what is printed before you pass it: a constraint may have been chosen
    from the data, such as a CHECK up to the largest income, or an ENUM of the values that occur. Then bounds and keys
    tell about single people, and no eps pays for that. Whoever passes them says that this is not so.

    Parameters
    ----------
    con : DuckDBPyConnection, psycopg.Connection, Engine or Connection of SQLAlchemy, or URL of PostgreSQL
    tables : list of str, optional
        Names of tables, as for a Dataset. By default all tables of DuckDB's current database, or all that the role may
        read on the server.

    Returns
    -------
    CatalogSchema
        ``CHECK`` gives bounds (``BETWEEN``, or both ends) and keys (``IN``), ``ENUM`` gives keys. Who a person is, and
        which tables are public, is never declared: that is printed as comments, as is what is not understood.

    Raises
    ------
    ColumnTypeError
        If it is no such connection.
    ParameterError
        If a table is not there, or the connection cannot be used.

    Examples
    --------
    >>> import duckdb, pdrisk
    >>> con = duckdb.connect()
    >>> made = con.execute(
    ...     "CREATE TABLE people (person_id INTEGER PRIMARY KEY, age INTEGER CHECK (age BETWEEN 0 AND 120), "
    ...     "sex VARCHAR NOT NULL CHECK (sex IN ('f', 'm')))"
    ... )
    >>> pdrisk.schema_from(con)
    # From constraints of a database. Whoever passes this vouches that none was chosen from the data.
    bounds = {'people': {'age': (0, 120)}}
    keys = {'people': {'sex': ['f', 'm']}}
    # people: no two rows have the same 'person_id': with person='person_id', declare per_person='one'
    """
    names = listed_values([tables] if isinstance(tables, str) else tables, "tables")
    if tables is not None and (names is None or not all(isinstance(name, str) and name for name in names)):
        raise ColumnTypeError("tables is a list of names of tables, as in ['people', 'survey.visits'].")
    names = None if names is None else list(dict.fromkeys(names))
    tables_read: list[ConstrainedTable]
    if (server := server_of(con)) is not None:
        tables_read = list(tables_in_postgres(server, names))
    else:
        _check_connection(con)
        with connected(con) as connection:
            assert connection is not None
            tables_read = list(tables_in_duckdb(connection, names))
    schema = CatalogSchema({}, {}, {})
    for table in tables_read:
        schema.bounds[table.name], schema.keys[table.name], schema.comments[table.name] = _declared(table)
        if links := [
            _link(constraint)
            for constraint in table.constraints
            if constraint.kind == "FOREIGN KEY" and _is_plain(constraint)
        ]:
            schema.links[table.name] = links
    return schema


def _check_connection(con: object) -> None:
    if is_spark_session(con):
        raise ParameterError("tables of Spark have no constraints to read: declare bounds= and keys= by hand.")
    names = {base.__name__ for base in type(con).__mro__}
    if "DuckDBPyConnection" not in names and not type(con).__module__.startswith("sqlalchemy."):
        raise ColumnTypeError(
            "con must be a connection to DuckDB or PostgreSQL, whose catalog is read, not of type "
            f"{type(con).__name__}: what frames can hold is declared with df.dprisk.declare."
        )


def _declared(table: ConstrainedTable) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Bounds, keys and comments of a table."""
    allowed = {name: AllowedValues(values=column.labels) for name, column in table.columns.items() if column.labels}
    comments = ["a view, and constraints belong to tables: read those"] if table.is_view else []
    required = {constraint.columns[0] for constraint in table.constraints if constraint.kind == "NOT NULL"}
    for constraint in table.constraints:
        if constraint.kind == "CHECK":
            comments += _check(table, constraint, allowed)
        elif constraint.kind == "FOREIGN KEY":
            comments.append(_join(table, constraint))
        elif len(constraint.columns) == 1 and constraint.kind != "NOT NULL" and constraint.is_enforced:
            column = repr(constraint.columns[0])
            comments.append(f"no two rows have the same {column}: with person={column}, declare per_person='one'")
    bounds: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for name in filter(allowed.__contains__, table.columns):
        low, high = allowed[name].ends
        if listed := allowed[name].keys:
            keys[name] = listed
        elif low > high or listed is not None:
            comments.append(f"the CHECKs of {name!r} allow no value at all")
        ends = [_written(end, table.columns[name].kind) for end in (low, high)]
        if universe_of((float(low), float(high))) is not None:
            bounds[name] = tuple(ends)
        elif not listed and math.isfinite(low) != math.isfinite(high):
            known = f"from {ends[0]} on" if math.isfinite(low) else f"up to {ends[1]}"
            comments.append(f"the CHECKs of {name!r} allow values {known}, which is one end: declare both")
    if optional := [repr(name) for name in keys if name not in required]:
        comments.append(f"NULL is no key of {', '.join(optional)}: add None to show such rows")
    return bounds, keys, comments


def _written(end: Any, kind: str) -> Any:
    """An end of a range as a caller writes it: that of dates, which is in days, as text."""
    if kind not in (DATE, TIME) or not math.isfinite(end):
        return end
    return str(moment(end, times=end != math.floor(end)))


def _check(table: ConstrainedTable, constraint: Constraint, allowed: dict[str, AllowedValues]) -> list[str]:
    """Narrow what is allowed by a CHECK; comments on what it does not declare."""
    if not constraint.is_enforced:
        return [f"CHECK {constraint.text} need not hold for all rows, and is left out"]
    node = table.conditions[constraint.text]
    parts = [None] if node is None else [allowed_values(conjunct, table.columns) for conjunct in conjuncts(node)]
    known = [part for part in parts if part is not None]
    for name, values in (pair for part in known for pair in part.items()):
        allowed[name] = allowed.get(name, AllowedValues()).shared(values)
    how = f"understood in {len(known)} of {len(parts)} parts" if known else "not understood"
    return [f"CHECK {constraint.text} is {how}"] if None in parts else []


def _is_plain(constraint: Constraint) -> bool:
    """Whether the name of the table that a foreign key leads to needs no quotes."""
    return '"' not in constraint.referenced


def _link(constraint: Constraint) -> tuple[Any, str, Any]:
    columns, other = (
        names[0] if len(names) == 1 else tuple(names) for names in (constraint.columns, constraint.referenced_columns)
    )
    return columns, constraint.referenced, other


def _join(table: ConstrainedTable, constraint: Constraint) -> str:
    pairs = zip(constraint.columns, constraint.referenced_columns, strict=True)
    on = " AND ".join(
        f"{table.sql}.{plain_name(column)} = {constraint.referenced}.{plain_name(other)}" for column, other in pairs
    )
    return f"FOREIGN KEY: JOIN {constraint.referenced} ON {on}"
