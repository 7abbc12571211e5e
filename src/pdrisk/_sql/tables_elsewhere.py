"""Tables of another engine than DuckDB, filtered and joined in that engine.

    written_table ──> one SELECT of normal forms, whose columns have names of ours ─┐
                                                                                    ├──> joined_table
    written_table ──────────────────────────────────────────────────────────────────┘

The judge decides what may be put together; what is written here says only that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pdrisk._model.kinds import NUMBER
from pdrisk._sql.relations.row_scope import Condition, Relation
from pdrisk._sql.rows_elsewhere import VIEW, RowsElsewhere
from pdrisk._sql.syntax.pieces import Expression
from pdrisk._sql.tables.source import Source
from pdrisk.engines.sql.rowwise import RowSQL
from pdrisk.engines.sql.servers.sql_table import SQLTable
from pdrisk.engines.sql.summary.summary_plan import Counted, SummaryPlan
from pdrisk.engines.sql.values import StoredColumn
from pdrisk.errors import ParameterError

__all__ = ["NOT_HERE", "joined_table", "most_alike", "several_records", "table_of", "written_table"]

NOT_HERE: Final = "a table of another engine"  # in FROM of a statement that must never run


def several_records() -> ParameterError:
    """The error for combinations of records that only DuckDB can make."""
    return ParameterError(
        "UNION of records, a subquery that groups or numbers them, or one that computes columns, is a view in a "
        "database: make one there, and ask that. Joins, row-wise subqueries of columns, and SELECTs over groups and "
        "noisy aggregates are understood."
    )


def table_of(source: Source) -> SQLTable:
    """The table that stands for a source.

    Raises
    ------
    ParameterError
        If DuckDB alone can put it together.
    """
    if source.elsewhere is None or source.sql != NOT_HERE:
        raise several_records()
    return source.elsewhere


def written_table(relation: Relation, read: Mapping[str, Expression], key: Sequence[str], first: int) -> SQLTable:
    """Rows of a relation that its conditions keep, as a table; rows without an id are left out.

    Parameters
    ----------
    relation : Relation
    read : mapping of Expression
        Its columns, by their new names.
    key : sequence of str
        The columns that say who a person is, by their old names.
    first : int
        The number of the first column, which no other table of a join may have.
    """
    table = table_of(relation.source)
    known = RowsElsewhere(table, relation.source)
    columns, listed = {}, []
    for at, (label, value) in enumerate(read.items(), first):
        if value.column is None:
            raise ParameterError(f"{value.shown or label} is computed of records in a subquery: {VIEW}.")
        column, name, exact = table.columns[value.column], f"c{at}", None
        if column.is_readable:
            listed.append(f"{column.value} AS {name}")
            if column.exact is not None:
                exact = f"e{at}"
                listed.append(f"{column.exact} AS {exact}")
        columns[label] = StoredColumn(name, name, column.dtype, column.type, exact)
    kept = [known.holds(each) for each in (*relation.owned, *relation.where)]
    kept += [known.rows.present(each) for each in key]
    where = f" WHERE {' AND '.join(kept)}" if kept else ""
    return table.made(f"(SELECT {', '.join(listed)} FROM {table.source}{where})", columns)


def joined_table(
    left: Source, right: Source, merged: Source, how: str, persons: Iterable[tuple[str, str]], on: Sequence[Condition]
) -> SQLTable:
    """Join of two written tables.

    Parameters
    ----------
    left, right : Source
    merged : Source
        What is declared of the columns of both.
    how : {"INNER", "CROSS", "LEFT", "SEMI", "ANTI"}
    persons : iterable of (str, str)
        Columns of both that are parts of who a person is.
    on : sequence of Condition
        What else holds.
    """
    one, other = table_of(left), table_of(right)
    both = replace(one, columns={**one.columns, **other.columns})
    rows = RowsElsewhere(both, merged)
    said = [rows.holds(each) for each in on]
    for own, theirs in persons:
        _check_exact(both.columns[own], both.columns[theirs])
        said.append(f"({rows.rows.told_apart(own)} = {rows.rows.told_apart(theirs)})")
    holds = " AND ".join(said) or "true"
    if how in ("SEMI", "ANTI"):
        exists = f"{'NOT ' * (how == 'ANTI')}EXISTS (SELECT 1 FROM {other.source} AS second_rows WHERE {holds})"
        made = f"(SELECT * FROM {one.source} AS first_rows WHERE {exists}) AS joined_rows"
        return one.made(made, one.columns, other)
    word = "LEFT JOIN" if how == "LEFT" else "JOIN"
    made = (
        f"(SELECT * FROM {one.source} AS first_rows {word} {other.source} AS second_rows ON ({holds})) AS joined_rows"
    )
    return one.made(made, both.columns, other)


def _check_exact(own: StoredColumn, theirs: StoredColumn) -> None:
    """Refuse ids that one side would round to the type of the other."""
    if (own.exact is not None or theirs.exact is not None) and own.type != theirs.type:
        raise ParameterError(
            f"who a person is has type {own.type} in one table and {theirs.type} in another: ids are compared as they "
            "are, since a cast could make one person of two. Store both in one type."
        )


def most_alike(public: Source, columns: Sequence[str]) -> int:
    """Largest number of a public table's rows that are equal in these columns, counted where they are."""
    table = table_of(public)
    rows = RowsElsewhere(table, public).rows
    groups = [_compared(rows, each) for each in columns]
    where = f" WHERE {' AND '.join(f'{each} IS NOT NULL' for each in groups)}" if groups else ""
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    call, plan = table.dialect.call, SummaryPlan(table.source, (), (), (), None, (Counted(None),))
    sql = f"SELECT {call('COUNT', '*')} AS n FROM {table.source} AS public_rows{where}{by}"
    try:
        with table.reading(plan, None) as (fetch, _):
            found = fetch(f"SELECT {call('MAX', 'n')} AS most FROM ({sql}) AS numbers", [])["most"]
    except Exception as error:  # noqa: BLE001 - of whatever engine
        failure = type(error).__name__
    else:
        return 1 if np.ma.getmaskarray(found)[0] else max(1, int(found[0]))
    raise ParameterError(f"the public table {public.name} cannot be read ({failure}): see whether it is whole.")


def _compared(rows: RowSQL, column: str) -> str:
    """Expression that is equal wherever a comparison could take the values for equal."""
    value = rows.column(column)
    if value.family != NUMBER:
        return value.sql
    return rows.dialect.infix(rows.double(column), "+", rows.dialect.number(0.0))
