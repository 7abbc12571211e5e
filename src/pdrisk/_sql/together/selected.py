"""Warnings of noisy values: of sums over rows that they chose, of groups of nobody, and of equality with them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pdrisk._caller_frame import caller
from pdrisk._model.expressions.nodes import Noisy, Operation, below
from pdrisk._sql.expressions.windows import SUMS
from pdrisk._sql.noisy.layers import Layer
from pdrisk._sql.noisy.uncut import is_noisy
from pdrisk._sql.select.judged_query import Judged
from pdrisk._sql.syntax.tree import Select, nodes_of, within
from pdrisk._sql.together.stacked import GroupedTables, PublicRows, Stacked, Statement, columns_of
from pdrisk.errors import DoubtfulReleaseWarning, NoisyReleaseWarning

SUM: Final = re.compile(rf"(?:{'|'.join(sorted(SUMS))})\(")
# What a group of nobody does not change, or only where it stands itself.
ADDING: Final = ("SUM(", "ROW_NUMBER(", "RANK(", "DENSE_RANK(", "LAG(", "LEAD(")
LIMITS: Final = (" LIMIT ", " OFFSET ")


def warn_of_selected(statements: Sequence[Statement]) -> None:
    """Warn, once, of SUM and AVG over rows that noisy values chose."""
    if any(map(has_selected, statements)):
        warnings.warn(
            "SUM or AVG of noisy values over rows that noisy values chose (by WHERE, HAVING, QUALIFY, FILTER, LIMIT, "
            "GROUP BY, or the order of a window) is biased: rows are there because their noise happened to be large, "
            "or small, and no interval holds. Choose rows by their keys, or sum all of them.",
            NoisyReleaseWarning,
            stacklevel=caller()[1],
        )


def warn_of_nobodys_groups(statements: Sequence[Statement]) -> None:
    """Warn, once, of statistics over groups but sums, which groups of nobody move."""
    if any(map(_counts_groups, statements)):
        warnings.warn(
            "statistics over groups (AVG, COUNT, MIN, windows and others but SUM) read every listed group here, also "
            "one of nobody, where SQL has no row for it: which groups occur would tell who is in the data. List only "
            "the groups that are meant in keys=, or choose them by their keys or by HAVING COUNT(*) > 0.",
            DoubtfulReleaseWarning,
            stacklevel=caller()[1],
        )


def warn_of_equality(selects: Sequence[Select], statements: Sequence[Statement]) -> None:
    """Warn, once, of an equality with a noisy number or date, which no record may have.

    ``selects``: the whole query and its subqueries, as they were read.
    ``statements``: those of the subqueries, by their place, then that of the rest.
    """
    nodes = (
        node for select in selects for inner in within(select) if isinstance(inner, Select) for node in nodes_of(inner)
    )
    compared = (
        side.place
        for node in nodes
        for part in below(node)
        if isinstance(part, Operation) and part.symbol in ("==", "!=")
        for side in part.parts
        if isinstance(side, Noisy)
    )
    if any(place < len(statements) - 1 and _gives_noisy_value(statements[place]) for place in compared):
        warnings.warn(
            "a noisy number or date is compared by =, as in x = (SELECT MAX(x) ...): no record may have exactly that "
            "value, or others than meant. Compare by <, > or BETWEEN, or write the value that you mean.",
            DoubtfulReleaseWarning,
            stacklevel=caller()[1],
        )


def _gives_noisy_value(statement: Statement) -> bool:
    """Whether the first column of a statement is computed of noisy values, not a key."""
    value = columns_of(statement)[0]
    if not isinstance(statement, Judged):
        return bool(value.uncut)
    drawn = frozenset(f"{letter}{at}" for at in range(len(statement.query.lines)) for letter in "vu")
    return bool(value.uncut) or is_noisy([value.sql], drawn)


def _counts_groups(statement: Statement) -> bool:
    """Whether a statement aggregates groups that were listed."""
    layers = [*_layers(statement)]
    aggregates = (sql for layer in layers for sql in (*layer.aggregated, *layer.windows))
    return _has_listed_groups(statement) and not all(sql.upper().startswith(ADDING) for sql in aggregates)


def _has_listed_groups(statement: Statement) -> bool:
    if isinstance(statement, Stacked):
        return any(map(_has_listed_groups, statement.parts))
    judged = statement.judged if isinstance(statement, GroupedTables) else statement
    groups = judged.query.groups if isinstance(judged, Judged) else None
    return groups is not None and groups.keys_from in ("given", "declared")


def _layers(statement: Statement) -> Iterator[Layer]:
    """The SELECTs over noisy rows, those over parts among them."""
    if isinstance(statement, GroupedTables):
        statement = statement.judged
    if isinstance(statement, Stacked):
        for part in statement.parts:
            yield from _layers(part)
        below = () if statement.joined is None else statement.joined.below
        yield from (layer for layers, _ in below for layer in layers)
    if not isinstance(statement, PublicRows):
        yield from statement.layers


def has_selected(statement: Statement) -> bool:
    """Whether a statement has a SUM or AVG over rows that noisy values chose."""
    if isinstance(statement, PublicRows):
        return False
    if isinstance(statement, GroupedTables):
        statement = statement.judged
    if isinstance(statement, Judged):
        return sums_selected(statement.layers, range(len(statement.query.lines)))
    columns = {at for part in statement.parts for at, value in enumerate(columns_of(part)) if value.uncut}
    if any(map(has_selected, statement.parts)):
        return True
    if statement.joined is None:
        return sums_selected(statement.layers, columns)
    joined = statement.joined
    if any(sums_selected(layers, noisy) for layers, noisy in joined.below):
        return True
    return sums_selected(statement.layers, joined.noisy, joined.conditions)


def sums_selected(layers: Sequence[Layer], columns: Iterable[int], conditions: Sequence[str] = ()) -> bool:
    """Whether a SUM or AVG of noisy values is over rows, or groups, that noisy values decide.

    ``columns``: Numbers of the noisy columns ``v0``, ``v1``, ... of the innermost table.
    ``conditions``: those that chose its rows.
    """
    noisy = frozenset(f"{letter}{at}" for at in columns for letter in "vu")
    chosen, is_biased = is_noisy(conditions, noisy), False
    for layer in layers:
        chosen = chosen or is_noisy([layer.where], noisy)
        groups = {f"x{at}" for at, sql in enumerate(layer.groups) if is_noisy([sql], noisy)}
        sums = [sql for sql in layer.aggregated if SUM.match(sql) and is_noisy([sql], noisy)]
        is_biased = is_biased or any(chosen or groups or _is_chosen(sql, noisy) for sql in sums)
        noisy |= groups | {f"h{at}" for at, sql in enumerate(layer.aggregated) if chosen or is_noisy([sql], noisy)}
        chosen = (chosen and not layer.aggregates) or is_noisy([layer.having], noisy)
        windows = [sql for sql in layer.windows if SUM.match(sql) and is_noisy([sql], noisy)]
        is_biased = is_biased or any(chosen or _is_chosen(sql, noisy) for sql in windows)
        noisy |= {f"w{at}" for at, sql in enumerate(layer.windows) if chosen or is_noisy([sql], noisy)}
        cuts = any(word in layer.tail for word in LIMITS) and is_noisy(layer.order, noisy)
        chosen = chosen or cuts or is_noisy([layer.qualify], noisy)
        exposed = [column for _, column in layer.exposed]
        noisy = frozenset(
            name
            for column, (_, value) in zip(exposed, layer.items, strict=True)
            for name in (column.sql, column.uncut)
            if name and is_noisy([value.sql, value.uncut], noisy)
        )
    return is_biased


def _is_chosen(sql: str, noisy: frozenset[str]) -> bool:
    """Whether what stands after the call of a function, such as its FILTER and its window, is noisy."""
    depth = 0
    for at, letter in enumerate(sql):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and not depth:
            return is_noisy([sql[at:]], noisy)
    return False
