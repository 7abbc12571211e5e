"""Derived columns: a row-wise expression for each record, checked as filters are, and computed after it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pandas as pd

from pdrisk._guard import guarded
from pdrisk._model.expressions.columns import column_kind
from pdrisk._model.expressions.nodes import Call, Column, Node, Operation, is_given
from pdrisk._model.rowwise.builder import Levels, text_of
from pdrisk._model.rowwise.meaning import meaning_of
from pdrisk._model.rowwise.query_string import QueryString
from pdrisk._model.rowwise.types import typed
from pdrisk.errors import QueryFailedError

EXAMPLE = "Write arithmetic or a comparison with a column in it, as in `birth // 10 * 10`"


@dataclass(frozen=True)
class Derived:
    """Column computed from each record's own values."""

    # `name`, `text`: its name, and the expression in one spelling
    name: str
    text: str
    # the columns that the expression reads: ``earlier`` derived ones, else those that are stored
    columns: tuple[Hashable, ...]
    is_truth: bool  # whether it holds truth values; else numbers
    missing: Mapping[Hashable, tuple[Hashable, ...]]  # values that stand for a missing answer in what it reads
    earlier: tuple[Derived, ...]
    rule: Node = field(repr=False)

    @property
    def canonical(self) -> str:
        """Everything but the data that decides its values, in one spelling."""
        codes = [(column, self.missing[column]) for column in self.columns if column in self.missing]
        spelling = repr((self.name, self.rule, codes, [earlier_column.canonical for earlier_column in self.earlier]))
        return spelling + meaning_of(self.rule, as_value=True)


def derived(
    name: str,
    expression: str,
    frame: pd.DataFrame,
    levels: Levels,
    codes: Callable[[tuple[Hashable, ...]], Mapping[Hashable, tuple[Hashable, ...]]],
    earlier: tuple[Derived, ...],
) -> Derived:
    """Derived column of an expression, judged by columns and dtypes, never by a value."""
    builder = QueryString(expression, frame, dict, levels, name)

    def judged() -> Derived:
        tree = builder.tree()
        if not isinstance(tree, Call | Column | Operation):
            builder.refuse(f"it names no column. {EXAMPLE}.")
        rule, value = typed(tree, {column: frame[column].iloc[:0] for column in builder.columns}, builder)
        kind = column_kind(value)
        if kind not in ("numbers", "truth values") or value.dtype == object:
            builder.refuse(f"it gives {kind}: derived columns hold numbers or truth values.")
        if is_given(tree):
            builder.refuse("a value in it comes from a Python variable: write it out.")
        columns = tuple(builder.columns)
        known, _ = used(earlier, columns)
        return Derived(name, text_of(tree), columns, kind == "truth values", codes(columns), known, rule)

    with suppress(QueryFailedError):  # a RecursionError
        return guarded(judged)
    return builder.refuse(f"it is nested too deeply. {EXAMPLE}.")


def used(known: tuple[Derived, ...], columns: Iterable[Hashable]) -> tuple[tuple[Derived, ...], tuple[Hashable, ...]]:
    """The derived columns among these, and the stored columns that all of them need."""
    by_name = {known_column.name: known_column for known_column in known}  # of two with one name the last
    needed = [by_name[column] for column in dict.fromkeys(columns) if column in by_name]
    stored = [
        [column] if column not in by_name else used(by_name[column].earlier, by_name[column].columns)[1]
        for column in columns
    ]
    return tuple(needed), tuple(dict.fromkeys(column for listed in stored for column in listed))
