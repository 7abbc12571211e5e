"""Free relations: rows that a SELECT over public tables and constants has, written into the statement of others."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from pdrisk._model.expressions.kinds import NUMBER
from pdrisk._model.expressions.nodes import Cast, Constant, Node
from pdrisk._relations.plan import OneRow, Selection, United
from pdrisk._sql.relations.group_by_person import aggregates_rows
from pdrisk._sql.relations.row_numbers import has_windows
from pdrisk._sql.relations.row_scope import Relation, column_of
from pdrisk._sql.syntax.headings import unique
from pdrisk._sql.syntax.pieces import TYPES
from pdrisk._sql.syntax.tree import Nothing, Select, Union
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError

MOST_ROWS: Final = 1000
#: For each type a value of it.
SOMETHING: Final = {
    "BIGINT": 0, "DOUBLE": 0.5, "BOOLEAN": True, "VARCHAR": "", "DATE": datetime.date(2000, 1, 1),
    "TIMESTAMP": datetime.datetime(2000, 1, 1),
}  # fmt: skip


def is_answered_first(select: Select) -> bool:
    """Whether a SELECT has other rows than those of its FROM and WHERE."""
    cut = (select.sets, select.having, select.qualify, select.limit, select.offset)
    if aggregates_rows(select) or has_windows(select) or any(clause is not None for clause in cut):
        return True
    if isinstance(select.source, Union):
        return any(map(is_answered_first, select.source.parts))
    return isinstance(select.source, Nothing)


def written_into(shown: Sequence[tuple[str, str]], rows: pd.DataFrame, sources: Sources) -> Relation:
    """Relation of rows that are known, as constants."""
    if len(rows) > MOST_ROWS:
        raise ParameterError(
            f"a subquery of public tables gives {len(rows):,} rows here, and {MOST_ROWS:,} at most are written into a "
            "statement: make a table of it, and name it in public=."
        )
    labels = unique([label for label, _ in shown])
    columns = [[_plain(value) for value in rows.iloc[:, at]] for at in range(len(labels))]
    types = {}
    for label, (_, kind), values in zip(labels, shown, columns, strict=True):
        is_whole = kind == NUMBER and all(value is None or type(value) is int for value in values)
        types[label] = "BIGINT" if is_whole else TYPES.get(kind, "VARCHAR")
    parts = [
        Selection(OneRow(), tuple((name, _node(value, types[name])) for name, value in zip(types, row, strict=True)))
        for row in zip(*columns, strict=True)
    ]
    nothing = tuple((name, _node(SOMETHING[sql_type], sql_type)) for name, sql_type in types.items())
    made = United((*parts, Selection(OneRow(), nothing, (Constant(False),))))  # which says what NULLs are
    source = Source("", types, sources.for_all, name="a subquery of public tables", public=True, made=made)
    return Relation(source, tuple((name, column_of(name, sql_type, source)) for name, sql_type in types.items()), ())


def values_listed(rows: pd.DataFrame) -> list[Node]:
    """Different values of the only column of rows that are known, as constants."""
    if rows.shape[1] != 1:
        raise ParameterError("IN (SELECT ...) compares one value: the subquery has one column.")
    values = dict.fromkeys(_plain(value) for value in rows.iloc[:, 0])
    if len(values) > MOST_ROWS:
        raise ParameterError(
            f"IN (SELECT ...) under OR, or in another expression, is read as a list of the {len(values):,} values that "
            f"it gives here, and that has {MOST_ROWS:,} at most: write it into WHERE by AND, or join the table."
        )
    of_days = all(value is None or type(value) is datetime.date for value in values)
    return [_node(value, "DATE" if of_days else "TIMESTAMP") for value in values]


def _node(value: Any, sql_type: str) -> Node:
    """A value as a constant of this type."""
    return Cast(Constant(str(value)), sql_type, True) if isinstance(value, datetime.date) else Constant(value)


def _plain(value: Any) -> Any:
    """A cell as a value of Python, None where it is missing."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if hasattr(value, "item") else value
