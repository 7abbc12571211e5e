"""Keys of groups that are computed of columns with listed keys: the values of their expressions for these."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from pdrisk._model.expressions.nodes import Node
from pdrisk._relations.pruned import columns_named
from pdrisk._sql.expressions.where_values import MOST, Limit, limit_of
from pdrisk._sql.relations.group_keys import Grouping, PublicKeys, key_relation, typed_key
from pdrisk._sql.relations.row_scope import column_of
from pdrisk._sql.syntax import private_database as workspace
from pdrisk._sql.syntax.pieces import quoted
from pdrisk._sql.tables.source import Source

MOST_COMBINATIONS = 10_000


def computed_keys(
    groups: Sequence[Grouping],
    nodes: Sequence[Node | None],
    given: Collection[int],
    source: Source,
    keys: Callable[[Grouping], Sequence[Any] | None],
    where_limits: Sequence[Limit],
) -> list[PublicKeys]:
    """Keys of groups that share columns, all of whose keys are declared, passed, or written in WHERE.

    A column that no other group reads is left out, and so is one expression of which all values are known, or that
    holds values of parameters. A missing value is no key, but what an expression makes of one may be.

    ``nodes``: what they are, over the columns of the source.
    ``given``: places of those that have keys already.
    ``keys``: gives the keys of a column, as they are declared or passed; None without any.
    ``where_limits``: what WHERE says of expressions.
    """
    tables = []
    for places, names in _sharing(nodes):
        first = groups[places[0]]
        is_alone = len(places) == 1 and (first.column is not None or first.values is not None)
        if is_alone or set(places) <= set(given) or any(groups[at].given for at in places):
            continue
        columns = [typed_key(column_of(name, sql_type, source), sql_type, (name,))
                   for name in names for sql_type in [source.columns[name]]]  # fmt: skip
        known = [column.public(keys(column), limit_of(column.sql, where_limits)) for column in columns]
        lists = [column_keys for column_keys in known if column_keys is not None]
        if lists and len(lists) == len(columns):
            rows = _rows([groups[at].sql for at in places], columns, lists)
            if rows is not None and 0 < len(rows) <= MOST:
                tables.append((places, rows))
    return tables


def _sharing(nodes: Sequence[Node | None]) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Places of expressions that read a column in common, directly or by others, and the columns that they read."""
    left = {at: columns_named([node]) for at, node in enumerate(nodes) if node is not None}
    while left:
        first, names = left.popitem()
        places, names = [first], set(names)
        while sharing := [at for at, other in left.items() if other & names]:
            for at in sharing:
                names |= left.pop(at)
                places.append(at)
        yield tuple(sorted(places)), sorted(names)


def _rows(
    expressions: Sequence[str], columns: Sequence[Grouping], lists: Sequence[Sequence[Any]]
) -> list[tuple[Any, ...]] | None:
    """Different values of the expressions for the keys of the columns; None if these are too many, or DuckDB fails."""
    import duckdb

    combined = itertools.product(*(dict.fromkeys([*column_keys, None]) for column_keys in lists))
    keys = list(itertools.islice(combined, MOST_COMBINATIONS + 1))
    if len(keys) > MOST_COMBINATIONS:
        return None
    names = ", ".join(f"g{at} AS {quoted(column.names[0])}" for at, column in enumerate(columns))
    relation = f"(SELECT {names}, code FROM {key_relation(columns)})"
    bench = workspace.bench()
    try:
        values = bench.execute(
            f"SELECT {', '.join(expressions)} FROM {relation} ORDER BY code",
            [list(column_keys) for column_keys in zip(*keys, strict=True)],
        ).fetchall()
    except duckdb.Error:  # which may quote a key
        return None
    finally:
        bench.close()
    values = [tuple(None if key != key else key for key in row) for row in values]  # NaN is missing
    listed = [set(column_keys) for column_keys in lists]
    return list(dict.fromkeys(
        row for row, of in zip(values, keys, strict=True)
        if None not in row or all(key in allowed for key, allowed in zip(of, listed, strict=True))
    ))  # fmt: skip
