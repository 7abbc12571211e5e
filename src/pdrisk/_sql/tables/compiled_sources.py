"""Relations of tables that another engine than DuckDB has: written in its SQL, and read there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from pdrisk._model.kinds import NUMBER
from pdrisk._model.nodes import Node
from pdrisk._relations.plan import Scan
from pdrisk._sql.tables.source import Source
from pdrisk.engines.sql.compiler.relation import written
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.summary_plan import Counted, SummaryPlan
from pdrisk.errors import ParameterError

__all__ = ["compiled", "is_of_server", "most_alike"]


def is_of_server(source: Source) -> bool:
    """Whether another engine than DuckDB has the tables of a source."""
    return bool(source.held)


def compiled(source: Source) -> tuple[SQLTable, RowSQL]:
    """The source as one table of its engine, and its columns.

    Raises
    ------
    ParameterError, ColumnTypeError
        If the engine could not compute it with the meaning that it has on DuckDB.
    """
    relation, (first, *others) = source.relation, source.held.values()
    text, rows = written(relation, source.held, first.dialect)
    if isinstance(relation, Scan):
        return source.held[relation.table], rows
    return reduce(lambda table, other: table.made(text, {}, other), others, first.made(text, {})), rows


def most_alike(public: Source, nodes: Sequence[Node]) -> int:
    """Largest number of a public table's rows that are equal in these expressions, counted where they are."""
    table, rows = compiled(public)
    groups = [_compared(rows, each) for each in nodes]
    where = f" WHERE {' AND '.join(f'{each} IS NOT NULL' for each in groups)}" if groups else ""
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    call, plan = table.dialect.call, SummaryPlan(table.source, (), (), (), None, (Counted(None),))
    sql = f"SELECT {call('COUNT', '*')} AS n FROM {table.source}{where}{by}"
    try:
        with table.reading(plan, None) as (fetch, _):
            found = fetch(f"SELECT {call('MAX', 'n')} AS most FROM ({sql}) AS numbers", [])["most"]
    except Exception as error:  # noqa: BLE001 - of whatever engine
        failure = type(error).__name__
    else:
        return 1 if np.ma.getmaskarray(found)[0] else max(1, int(found[0]))
    raise ParameterError(f"the public table {public.name} cannot be read ({failure}): see whether it is whole.")


def _compared(rows: RowSQL, node: Node) -> str:
    """Expression that is equal wherever a comparison could take the values for equal."""
    value = rows.value(node)
    if value.family != NUMBER:
        return value.sql
    return rows.dialect.infix(rows.number(node), "+", rows.dialect.number(0.0))
