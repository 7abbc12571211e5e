"""UNION ALL of relations: each row is still that of one person, who has at most the rows of all parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.kinds import NUMBER, TEXT
from pdrisk._model.expressions.nodes import Cast, Column, Node
from pdrisk._relations.owners import PUBLIC, Owners
from pdrisk._relations.plan import Selection, United
from pdrisk._sql.relations.joined_owners import owners_key
from pdrisk._sql.relations.joins import check_alike
from pdrisk._sql.relations.row_scope import Condition, Relation, Rows, column_of
from pdrisk._sql.relations.rows_of_nobody import counted
from pdrisk._sql.relations.written_out import read_together, unused, written_out
from pdrisk._sql.syntax.pieces import Expression, lowered, quoted
from pdrisk._sql.syntax.ranges import hull
from pdrisk._sql.syntax.refusals import nobody_named
from pdrisk._sql.tables.compiled_sources import compiled
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk.errors import ParameterError


def united(relations: Sequence[Relation], sources: Sources) -> Relation:
    """Rows of all parts, under the names of the first."""
    return reduce(lambda left, right: _pair(left, right, sources), relations)


def _pair(left: Relation, right: Relation, sources: Sources) -> Relation:
    left, right = (written_out(side, sources, set()) for side in (left, right))
    ours, theirs = owners_key(left), owners_key(right)
    if len(left.columns) != len(right.columns):
        raise ParameterError(
            f"UNION ALL puts {len(left.columns)} columns over {len(right.columns)}: select as many in each part."
        )
    assert left.owners is not None and right.owners is not None
    if left.absent or right.absent:
        raise counted("UNION of such rows")
    if left.owners.of_rows and right.owners.of_rows:
        raise nobody_named()
    if left.owners.is_public != right.owners.is_public:
        raise ParameterError("UNION ALL of public rows and those of people: whose they are would be lost.")
    merged = read_together(left.source, right.source, sources, "UNION ALL")
    taken: set[str] = set()
    names, types = list[str](), list[str]()
    own_nodes, other_nodes = list[Node](), list[Node]()
    keys = [unused(name, (), taken) for name in ours]
    for name, first_key, second_key in zip(keys, ours, theirs, strict=True):
        check_alike(left, first_key, right, second_key)
        names.append(name)
        own_nodes.append(Column(first_key))
        other_nodes.append(Column(second_key))
        types.append(left.source.columns[first_key])
    columns: list[tuple[str, str]] = []
    known = dict[str, dict[str, Any]]()
    for (label, first), (_, other) in zip(left.columns, right.columns, strict=True):
        if first.column in ours and other.column in theirs and ours.index(first.column) == theirs.index(other.column):
            columns.append((label, keys[ours.index(first.column)]))
            continue
        name = unused(label, (), taken)
        sql_type = _type_of_both(label, first, other, left.source, right.source)
        names.append(name)
        for nodes, value in ((own_nodes, first), (other_nodes, other)):
            column: Node = Column(value.column)
            is_double = sql_type == "DOUBLE" and value.kind == NUMBER
            nodes.append(Cast(column, "DOUBLE", True) if is_double else column)
        types.append(sql_type)
        columns.append((label, name))
        known[name] = _known(label, (left, first), (right, other), sources)
    source = replace(
        merged, columns=dict(zip(names, types, strict=True)),
        made=United(tuple(Selection(side.source.relation, tuple(zip(names, nodes, strict=True)))
                         for nodes, side in ((own_nodes, left), (other_nodes, right)))),
        declared=Declarations(), untyped=frozenset(), whole=frozenset(), called={},
        stated={lowered(name): sources.stated[lowered(name)] for name in names if lowered(name) in sources.stated},
    )  # fmt: skip
    rows = (left.owners.most, right.owners.most)
    most = None if rows[0] is None or rows[1] is None else rows[0] + rows[1]
    shown = ((label, name, column_of(name, source.columns[name], source)) for label, name in columns)
    return Relation(
        source,
        tuple((label, replace(value, shown=quoted(label), **known.get(name, {}))) for label, name, value in shown),
        left.names,
        owners=Owners(tuple(keys), most, factors=_added(left.owners, right.owners)) if ours else PUBLIC,
        inside=_shown(left, right),
    )


def _known(
    label: str, left: tuple[Relation, Expression], right: tuple[Relation, Expression], sources: Sources
) -> dict[str, Any]:
    """What is known of a column by what it is in both parts: where it lies, unless the call says it."""
    if left[1].of_any_row or right[1].of_any_row:
        return {"of_any_row": True}
    if lowered(label) in sources.stated:
        return {}
    return {"range": hull([Rows(side, {}, reads_ranges=True).ranged(value).range for side, value in (left, right)])}


def _added(left: Owners, right: Owners) -> tuple[str, ...]:
    """How many rows of both a person has, for people."""
    return (f"({' + '.join(' times '.join(owners.factors) or '1' for owners in (left, right))})",)


def _shown(left: Relation, right: Relation) -> tuple[Condition, ...]:
    """Conditions on the rows of each part, for people."""
    parts = (left.inside, right.inside)
    if not any(parts):
        return ()
    texts = [" AND ".join(condition.shown for condition in part) or "true" for part in parts]
    return (
        Condition(f"({texts[0]} UNION ALL {texts[1]})", any(condition.given for part in parts for condition in part)),
    )


def _type_of_both(label: str, column: Expression, other: Expression, left: Source, right: Source) -> str:
    """The type of two columns, one over the other."""
    first, second = left.columns[str(column.column)], right.columns[str(other.column)]
    if column.kind == other.kind == NUMBER:
        alike = first == second and not {column.column, other.column} & (left.whole | right.whole)
        if alike and first.startswith("DECIMAL"):  # a stored one is read exactly, a computed one as DOUBLE
            alike = _is_exact(left, str(column.column)) == _is_exact(right, str(other.column))
        return first if alike else "DOUBLE"
    if column.kind == other.kind == TEXT:
        return "VARCHAR"
    if first != second:
        raise ParameterError(
            f"UNION ALL puts {label} over a column of another type, {first} over {second}: cast one of them."
        )
    return first


def _is_exact(source: Source, name: str) -> bool:
    """Whether values of a column can be told apart that are the same as DOUBLE."""
    return compiled(source, [Column(name)])[1].exact_of(name) is not None
