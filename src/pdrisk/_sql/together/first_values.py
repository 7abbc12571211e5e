"""Values of subqueries that are answered first: constants of the rest, each a single one or a table of rows."""

from __future__ import annotations

import datetime
from typing import Any, Final

import numpy as np
import pandas as pd

from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._sql.noisy.layers import Layer
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax.pieces import TYPES
from pdrisk._sql.syntax.tree import Scalar
from pdrisk._sql.text.scalars import Rows
from pdrisk._sql.together.stacked import GroupedTables, PublicRows, Stacked, Statement, shown
from pdrisk.errors import ParameterError

MOST_KEYS: Final = 100_000  # of IN
MOST_BRANCHES: Final = 1000  # of keys with a value for each, among which every record looks for its own
#: For each kind a value of it; the number is one that 32 bits would round, as most do.
SOMETHING: Final[dict[str, Scalar]] = {
    NUMBER: 0.1, TEXT: "", TRUTH: True, DATE: datetime.date(2000, 1, 1), TIME: datetime.datetime(2000, 1, 1)
}  # fmt: skip


def first_value(statement: Statement, answer: pd.DataFrame, columns: int) -> Scalar | Rows:
    """What a subquery came to: one value, None if it has no row; or its rows, of so many columns."""
    kinds = [kind for _, kind in shown(statement)]
    if columns:
        values = ([_plain(value, kind) for value in answer.iloc[:, at]] for at, kind in enumerate(kinds))
        return tuple(dict.fromkeys(zip(*values, strict=True)))
    _check_rows(len(answer))
    value = _plain(answer.iat[0, 0], kinds[0]) if len(answer) else None
    return float(value) if type(value) is int else value


def placeholder(statement: Statement, columns: int) -> Scalar | Rows:
    """Values of the kinds that a subquery will give."""
    values = tuple(SOMETHING.get(kind) for _, kind in shown(statement))
    return (values,) if columns else values[0]


def check_first(statement: Statement, columns: int) -> None:
    """Refuse a subquery of other columns than are needed, of lists, or of too many rows."""
    needed = f"{columns} columns are" if columns > 1 else "one column is" if columns else "one value is"
    if (number := len(shown(statement))) != max(columns, 1):
        raise ParameterError(f"a subquery gives {number} columns where {needed} needed: name one.")
    for _, kind in shown(statement):
        if kind not in TYPES:
            raise ParameterError(f"a subquery gives {kind} where {needed} needed: ask for it in a query of its own.")
    if columns:
        most = MOST_KEYS if columns == 1 else MOST_BRANCHES
        if (number := _most_rows(statement)) > most:
            raise ParameterError(
                f"a subquery gives {number:,} rows, and {most:,} at most are written into a statement: list fewer "
                "groups in keys=, or leave out some of the public table."
            )
        return
    inner: Statement = statement
    layers: tuple[Layer, ...] = ()
    while isinstance(inner, Stacked) and inner.joined is None and len(inner.parts) == 1:
        layers, inner = (*inner.layers, *layers), inner.parts[0]
    if isinstance(inner, Judged) and all(layer.keeps_rows for layer in (*inner.layers, *layers)):
        _check_rows(_most_rows(inner))


def _most_rows(statement: Statement) -> int:
    """The number of listed groups, or of public rows, in the largest part."""
    if isinstance(statement, Stacked):
        return max(map(_most_rows, statement.parts), default=1)
    if isinstance(statement, PublicRows):
        return len(statement.rows)
    groups = (statement.judged if isinstance(statement, GroupedTables) else statement).query.groups
    return 1 if groups is None or groups.keys is None else len(groups.keys)


def _check_rows(number: int) -> None:
    if number > 1:
        raise ParameterError(
            f"a subquery gives {number} rows where one value is needed: aggregate without GROUP BY, or add LIMIT 1."
        )


def _plain(value: Any, kind: str) -> Scalar:
    """A cell of an answer as a constant; None where it is missing."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, pd.Timestamp):
        moment: datetime.datetime = value.to_pydatetime()
        return moment.date() if kind == DATE else moment
    if isinstance(value, int | np.integer):
        return int(value)
    return value if isinstance(value, str | datetime.date) else float(value)
