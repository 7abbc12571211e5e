"""Statements of one query or several: what each asks, and the answer made of all their noisy rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._core.margins.components import Axes, product
from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._sql.noisy.layers import NOISY, Layer
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import TYPES, Expression
from pdrisk._sql.syntax.ranges import hull
from pdrisk.errors import ParameterError

UNCUT: Final = "uncut"  # in attrs of a part of a query, its uncut numbers by the place of their column


@dataclass(frozen=True, slots=True)
class JoinedParts:
    """Join of statements."""

    sql: str  # over the tables ``p0``, ``p1``, ..., one for each part
    conditions: tuple[str, ...]
    # for each table in FROM the SELECTs over a part, and the numbers of the part's noisy columns
    below: tuple[tuple[tuple[Layer, ...], tuple[int, ...]], ...]
    noisy: tuple[int, ...]  # numbers of the noisy columns


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Rows of a public table, which are read before anything is paid."""

    items: tuple[tuple[str, Expression], ...]
    rows: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Stacked:
    """Statements whose noisy rows are put together, one below the other or joined, with the SELECTs over them."""

    parts: tuple[Statement, ...]  # None for a SELECT without FROM: one row
    kinds: tuple[str, ...]  # those of the columns that the parts give
    layers: tuple[Layer, ...]
    has_parameters: bool
    joined: JoinedParts | None = None

    def computed(self, noisy: str) -> str:
        """The statement over the table of all rows."""
        *inner, outer = self.layers
        for layer in inner:
            noisy = layer.subquery(noisy, ())
        sql = [*(value.sql for _, value in outer.items), *self.uncut.values()]
        return outer.statement([f"{expression} AS i{at}" for at, expression in enumerate(sql)], noisy)

    @property
    def uncut(self) -> dict[int, str]:
        """SQL of the uncut numbers of its columns, by their place."""
        return {at: value.uncut for at, (_, value) in enumerate(self.layers[-1].items) if value.uncut}


@dataclass(frozen=True, slots=True)
class GroupedTables:
    """Several groupings asked as one query: the finest one, with the others as its margins."""

    judged: Judged
    groupings: tuple[Axes, ...]  # in the order of their rows
    bits: tuple[tuple[int, ...], ...]  # for each grouping the values of GROUPING, which are the last columns

    def rows(self, answer: pd.DataFrame) -> pd.DataFrame:
        """The answer to the query, which has its tables one behind the other, as the rows of the groupings."""
        margins = self.judged.query.margins
        assert margins is not None
        ends = np.cumsum([product(margins.grid.sizes, axes) for axes in margins.tables])
        places = dict(zip(margins.tables, np.split(np.arange(len(answer)), ends[:-1]), strict=True))
        order = np.concatenate([places[axes] for axes in self.groupings])
        rows = answer.iloc[order].reset_index(drop=True)
        rows.attrs = {UNCUT: {at: np.asarray(numbers)[order] for at, numbers in answer.attrs.get(UNCUT, {}).items()}}
        sizes = [len(places[axes]) for axes in self.groupings]
        for at, values in enumerate(zip(*self.bits, strict=True)):
            rows[rows.columns[at - len(self.bits[0])]] = np.repeat(values, sizes)
        return rows


Statement = Judged | Stacked | GroupedTables | PublicRows


def shown(statement: Statement) -> list[tuple[str, str]]:
    """Headings and kinds of a statement's columns."""
    return [(label, value.kind) for label, value in _items(statement)]


def columns_of(statement: Statement) -> list[Expression]:
    """Columns of a statement, as expressions over the rows below."""
    return [value for _, value in _items(statement)]


def stacked_column(at: int, kind: str, parts: Sequence[Statement]) -> Expression:
    """Column of all rows of several statements together, with its uncut numbers if one of them has some."""
    columns = [columns_of(part)[at] for part in parts]
    is_noisy = kind == NUMBER and any(column.uncut for column in columns)
    lies, counts = hull([column.range for column in columns]), all(column.counts for column in columns)
    return Expression(f"v{at}", kind, TYPES[kind], range=lies, uncut=f"u{at}" * is_noisy, counts=counts)


def _items(statement: Statement) -> tuple[tuple[str, Expression], ...]:
    if isinstance(statement, PublicRows):
        return statement.items
    layers = statement.judged.layers if isinstance(statement, GroupedTables) else statement.layers
    return layers[-1].items


def queries(statement: Statement) -> Iterator[Judged]:
    """The queries of a statement, in the order in which they are asked."""
    if isinstance(statement, Judged | GroupedTables):
        yield statement if isinstance(statement, Judged) else statement.judged
        return
    for part in () if isinstance(statement, PublicRows) else statement.parts:
        yield from queries(part)


def put_together(statement: Stacked, answers: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Answer of several statements, computed from their noisy rows alone."""
    if statement.joined is None:
        sql, columns = _listed(statement.kinds, answers, 1)
        size = sum(map(len, answers)) if answers else 1
        noisy = f"(SELECT {', '.join([*sql, _codes(size)])}) AS {NOISY}"
    else:
        columns, tables = [], []
        for place, (part, answer) in enumerate(zip(statement.parts, answers, strict=True)):
            sql, part_columns = _listed([kind for _, kind in shown(part)], [answer], len(columns) + 1)
            columns += part_columns
            tables.append(f"p{place} AS MATERIALIZED (SELECT {', '.join([*sql, _codes(len(answer))])})")
        noisy = joined_source(statement.joined, tables)
    bench = workspace.bench()
    try:
        answer = bench.execute(statement.computed(noisy), columns).df()
    finally:
        bench.close()
    beside = [answer.pop(name) for name in answer.columns[len(statement.layers[-1].items) :]]
    answer.columns = pd.Index(unique([label for label, _ in statement.layers[-1].items]), dtype=object)
    answer.attrs[UNCUT] = {at: list(values) for at, values in zip(statement.uncut, beside, strict=True)}
    return answer


def reads_public_rows(statement: Statement) -> bool:
    """Whether rows of a public table are in a statement."""
    return isinstance(statement, PublicRows) or (
        isinstance(statement, Stacked) and any(map(reads_public_rows, statement.parts))
    )


def public_answer(statement: Statement) -> pd.DataFrame:
    """Rows of a statement that asks no query."""
    if isinstance(statement, PublicRows):
        return statement.rows
    assert isinstance(statement, Stacked), "nobody is in it"
    return put_together(statement, list(map(public_answer, statement.parts)))


def check_public_rows(statement: PublicRows, name: str) -> None:
    """Refuse rows of a public table that DuckDB cannot take from a list, before anything is paid for the rest."""
    sql, columns = _listed([kind for _, kind in shown(statement)], [statement.rows], 1)
    bench = workspace.bench()
    try:
        bench.execute(f"SELECT {', '.join(sql)}", columns)
    except Exception as error:  # noqa: BLE001 - of DuckDB or of Python
        failure = type(error).__name__
    else:
        return
    finally:
        bench.close()
    raise ParameterError(f"the rows of {name} cannot be joined with noisy values ({failure}): pass other columns.")


def joined_source(joined: JoinedParts, tables: Sequence[str]) -> str:
    """A join of statements as it stands in FROM, with the tables for WITH."""
    return f"(WITH {', '.join(tables)} {joined.sql}) AS {NOISY}"


def _codes(size: int) -> str:
    return f"unnest(system.main.range({size})) AS code"


def _listed(
    column_kinds: Sequence[str], answers: Sequence[pd.DataFrame], first: int
) -> tuple[list[str], list[list[Any]]]:
    """SQL of all columns of these kinds, one answer below the other, and its parameters, of which one is ``first``."""
    kinds = {f"v{at}": kind for at, kind in enumerate(column_kinds)}
    columns: list[list[Any]] = [
        [_plain(value) for answer in answers for value in answer.iloc[:, at]] for at in range(len(kinds))
    ]
    for at, kind in enumerate(column_kinds):
        if kind == NUMBER:
            kinds[f"u{at}"] = kind
            parts = (answer.attrs.get(UNCUT, {}).get(at, answer.iloc[:, at]) for answer in answers)
            columns.append([_plain(value) for part in parts for value in part])
    types = [
        "BIGINT" if kind == NUMBER and all(value is None or type(value) is int for value in values) else TYPES[kind]
        for kind, values in zip(kinds.values(), columns, strict=True)
    ]
    named = enumerate(zip(kinds, types, strict=True), first)
    return [f"unnest(CAST(${at} AS {sql_type}[])) AS {name}" for at, (name, sql_type) in named], columns


def nothing(kinds: Sequence[str]) -> str:
    """SELECT of one row of NULLs, with the columns that statements of these kinds give."""
    listed = [f"CAST(NULL AS {TYPES[kind]}) AS {letter}{at}" for letter in "vu" for at, kind in enumerate(kinds)]
    return f"SELECT {', '.join([*listed, 'CAST(0 AS BIGINT) AS code'])}"


def _plain(value: Any) -> Any:
    """A cell as a parameter of DuckDB; NULL where a value is withheld."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if isinstance(value, np.generic) else value
