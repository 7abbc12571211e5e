"""Statements of one query or several: what each asks, and the answer made of all their noisy rows."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._model.kinds import DATE, NOTHING, NUMBER, TEXT, TIME, TRUTH
from pdrisk._sql.noisy.layers import NOISY, Layer
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.errors import ParameterError

__all__ = [
    "TYPES",
    "Stacked",
    "Statement",
    "check_scalar",
    "placeholder",
    "put_together",
    "queries",
    "scalar_of",
    "shown",
]

TYPES = {NUMBER: "DOUBLE", TEXT: "VARCHAR", TRUTH: "BOOLEAN", DATE: "DATE", TIME: "TIMESTAMP", NOTHING: "VARCHAR"}


@dataclass(frozen=True, slots=True)
class Stacked:
    """Statements whose noisy rows are put together, with the SELECTs over them.

    Attributes
    ----------
    parts : tuple of Statement
        None for a SELECT without FROM: one row.
    kinds : tuple of str
        Those of the columns that the parts give.
    layers : tuple of Layer
    has_parameters : bool
    """

    parts: tuple[Statement, ...]
    kinds: tuple[str, ...]
    layers: tuple[Layer, ...]
    has_parameters: bool

    def computed(self, noisy: str) -> str:
        """The statement over the table of all rows."""
        *inner, outer = self.layers
        for layer in inner:
            noisy = layer.subquery(noisy, ())
        return outer.statement([f"{value.sql} AS i{at}" for at, (_, value) in enumerate(outer.items)], noisy)


Statement = Judged | Stacked


def shown(statement: Statement) -> list[tuple[str, str]]:
    """Headings and kinds of a statement's columns."""
    return [(label, value.kind) for label, value in statement.layers[-1].items]


def queries(statement: Statement) -> Iterator[Judged]:
    """The queries of a statement, in the order in which they are asked."""
    if isinstance(statement, Judged):
        yield statement
        return
    for part in statement.parts:
        yield from queries(part)


def scalar_of(answer: pd.DataFrame) -> Scalar:
    """Value of a scalar subquery; None if it has no row.

    Raises
    ------
    ParameterError
        If there are several rows.
    """
    _check_rows(len(answer))
    value: Any = answer.iat[0, 0] if len(answer) else None
    if value is None or pd.isna(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value if isinstance(value, str | datetime.date) else float(value)


def check_scalar(statement: Statement) -> None:
    """Refuse a subquery of several columns, of several rows, or of lists: one value is needed."""
    if (number := len(shown(statement))) != 1:
        raise ParameterError(f"a subquery gives {number} columns where one value is needed: name one.")
    ((_, kind),) = shown(statement)
    if kind not in TYPES:
        raise ParameterError(f"a subquery gives {kind} where one value is needed: ask for it in a query of its own.")
    if isinstance(statement, Judged) and all(layer.keeps_rows for layer in statement.layers):
        groups = statement.query.groups
        _check_rows(1 if groups is None or groups.keys is None else len(groups.keys))


def _check_rows(number: int) -> None:
    if number > 1:
        raise ParameterError(
            f"a subquery gives {number} rows where one value is needed: aggregate without GROUP BY, or add LIMIT 1."
        )


def placeholder(statement: Statement) -> Scalar:
    """A value of the kind that a scalar subquery will have; a number is one that 32 bits would round, as most do."""
    ((_, kind),) = shown(statement)
    known: dict[str, Scalar] = {
        NUMBER: 0.1, TEXT: "", TRUTH: True, DATE: datetime.date(2000, 1, 1), TIME: datetime.datetime(2000, 1, 1)
    }  # fmt: skip
    return known.get(kind)


def put_together(statement: Stacked, answers: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Answer of several statements, computed from their noisy rows alone."""
    columns: list[list[Any]] = [
        [_plain(value) for answer in answers for value in answer.iloc[:, at]] for at in range(len(statement.kinds))
    ]
    types = [
        "BIGINT" if kind == NUMBER and all(value is None or type(value) is int for value in values) else TYPES[kind]
        for kind, values in zip(statement.kinds, columns, strict=True)
    ]
    size = sum(map(len, answers)) if answers else 1
    lists = [f"unnest(CAST(${at + 1} AS {sql_type}[])) AS v{at}" for at, sql_type in enumerate(types)]
    noisy = f"(SELECT {', '.join([*lists, f'unnest(system.main.range({size})) AS code'])}) AS {NOISY}"
    bench = workspace.bench()
    try:
        answer = bench.execute(statement.computed(noisy), columns).df()
    finally:
        bench.close()
    answer.columns = pd.Index(unique([label for label, _ in statement.layers[-1].items]), dtype=object)
    return answer


def _plain(value: Any) -> Any:
    """A cell as a parameter of DuckDB; NULL where a value is withheld."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if isinstance(value, np.generic) else value
