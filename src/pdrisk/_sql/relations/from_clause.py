"""Relations in FROM: tables, subqueries, CTEs, views and joins as one source, its columns as expressions, and filters.

Each record of the result is made of records of one person, and of public ones: what adding or removing one person does
stays known. Everything that breaks this is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.expressions.nodes import Column, Constant, Node, implied
from pdrisk._sql.relations.commas import crossed, listed_by_comma
from pdrisk._sql.relations.free_relations import is_answered_first, values_listed, written_into
from pdrisk._sql.relations.group_by_person import aggregates_rows, by_person, grouped_by_person
from pdrisk._sql.relations.joins import joined, kept_by, member_condition
from pdrisk._sql.relations.links import linked
from pdrisk._sql.relations.row_numbers import has_windows, limited, numbered
from pdrisk._sql.relations.row_scope import (
    Relation,
    Rows,
    aliases_of,
    column_of,
    condition,
    named,
    starred,
    within_where,
)
from pdrisk._sql.relations.unions import united
from pdrisk._sql.relations.written_out import owners_of
from pdrisk._sql.syntax.pieces import Expression, lowered
from pdrisk._sql.syntax.refusals import FULL_JOIN, NO_FROM, correlated
from pdrisk._sql.syntax.tree import (
    Beside,
    Cte,
    File,
    From,
    Join,
    Membership,
    Nothing,
    Select,
    Star,
    Subquery,
    Table,
    Union,
    within,
)
from pdrisk._sql.tables.catalog import CatalogEntry
from pdrisk._sql.tables.server_sources import SourcesElsewhere
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.parse import parsed
from pdrisk.errors import ParameterError, UnknownColumnError

_UNNAMED = "(an expression without a name)"
DEEPEST = 50  # subqueries in subqueries: a view may name itself


def relation_of(select: Select, sources: Sources, ctes: Ctes | None = None) -> Relation:
    """Relation of a query's FROM, before its own WHERE; ``ctes`` are those it sees as a part of another."""
    return _from(select, sources, seen_by(select, {}) if ctes is None else ctes, None, 0)


def public_table(table: Table, sources: Sources) -> Relation | None:
    """Relation of a stored table that nobody is in; None of others, and of what is no table."""
    if not sources.public:
        return None
    try:
        relation = _relation(table, sources, {}, None, 0, ())
    except ParameterError:  # which comes again where it is read
        return None
    if not relation.source.public or relation.owners is not None:
        return None
    sources.owners(relation.source)  # refuses tables that declare people
    return relation


def listed_in(select: Select, sources: Sources) -> list[Node] | None:
    """Values that IN compares with, of a subquery that nobody is in; None of any other."""
    select = replace(select, ctes={**sources.ctes, **select.ctes})
    if sources.free is None or not is_free(select, sources, {}):
        return None
    try:
        return values_listed(sources.free(select)[1])
    except UnknownColumnError as error:
        if len(error.path) < 2 or lowered(error.path[-2]) in _called(select):
            raise
        path = ".".join(error.path)
    raise correlated(path)


def _called(select: Select) -> set[str]:
    """Names that stand for tables in a SELECT."""
    tables = [part for part in within(select) if isinstance(part, Table | Subquery)]
    return {lowered(table.alias or (table.path[-1] if isinstance(table, Table) else "")) for table in tables}


def is_by_person(select: Select, sources: Sources, ctes: Ctes) -> bool:
    """Whether a subquery makes one row of each person's rows, so that nothing in it needs noise."""
    if sources.owner_of is None or not aggregates_rows(select):
        return False
    try:
        relation = _from(select, sources, ctes, None, 0)
        return by_person(select, relation, owners_of(relation, sources))
    except ParameterError:  # which comes again where the subquery is read
        return False


Ctes = Mapping[str, tuple[Cte, "Ctes"]]


def seen_by(select: Select, ctes: Ctes) -> Ctes:
    """CTEs that a SELECT sees: its own (each sees those before it) and those around it."""
    known = dict(ctes)
    for name, cte in select.ctes.items():
        known[lowered(name)] = (cte, dict(known))
    return known


def _from(select: Select, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int) -> Relation:
    """Relation of FROM, reduced by IN and EXISTS in WHERE; the same FROM of a text is judged once."""
    if home is not None:
        return _judged(select, sources, ctes, home, depth)
    read = (select.source, select.where, select.members, *_ctes_read(select, ctes, set()))
    return _once(sources, tuple(map(id, read)), read, lambda: _judged(select, sources, ctes, home, depth))


def _once(sources: Sources, key: tuple[Any, ...], read: object, judge: Callable[[], Relation]) -> Relation:
    """What was judged before in this call; ``read`` are the objects whose identities the key has."""
    key = (sources.several, *key)  # which decides where frames are read
    if key not in sources.relations:
        sources.relations[key] = read, judge()
    relation: Relation = sources.relations[key][1]
    return relation


def _ctes_read(select: Select, ctes: Ctes, met: set[int]) -> Iterator[Cte]:
    """The CTEs that a SELECT reads, through others too, each once."""
    for item in within(select):
        if isinstance(item, Table) and len(item.path) == 1 and lowered(item.path[0]) in ctes:
            cte, outer = ctes[lowered(item.path[0])]
            if id(cte) not in met:
                met.add(id(cte))
                yield cte
                yield from _ctes_read(cte.select, outer, met)


def _judged(select: Select, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int) -> Relation:
    relation = _relation(select.source, sources, ctes, home, depth, implied(select.where))
    for member in select.members:
        relation = _kept(relation, member, sources, ctes, home, depth + 1)
    return relation


def _kept(
    relation: Relation, member: Membership, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int
) -> Relation:
    """Rows for which IN or EXISTS holds."""
    select = member.select
    if member.operand is not None:
        inner = _rowwise(select, sources, ctes, home, depth)
        operand = named(member.operand, Rows(relation, {}))
        return member_condition(relation, operand, inner, sources, negated=member.negated)
    plain = all(isinstance(item, Star | Column | Constant) for item, _ in select.items)
    cut = (select.qualify, select.limit, select.offset)
    if not plain or aggregates_rows(select) or any(clause is not None for clause in cut):
        raise ParameterError(
            "EXISTS asks for rows of FROM and WHERE alone: write SELECT 1, and leave out aggregates, GROUP BY, "
            "DISTINCT, QUALIFY and LIMIT."
        )
    inner = _from(select, sources, seen_by(select, ctes), home, depth)
    return kept_by(relation, inner, sources, negated=member.negated, nodes=implied(select.where))


def _relation(
    item: From,
    sources: Sources,
    ctes: Ctes,
    home: CatalogEntry | None,
    depth: int,
    around: Sequence[Node],
) -> Relation:
    """Relation of an item of FROM; ``around`` are the conditions of its WHERE."""
    if depth > DEEPEST:
        raise ParameterError(f"more than {DEEPEST} subqueries stand in each other: put them together.")
    match item:
        case Join(left, right, how):
            listed = listed_by_comma(item) if how == "CROSS" else [left, right]
            sides = [_relation(side, sources, ctes, home, depth + 1, around) for side in listed]
            if how == "CROSS":
                return crossed(sides, sources, around)
            if how == "FULL":
                raise ParameterError(f"{FULL_JOIN}.")
            if how == "RIGHT":
                turned = joined(replace(item, how="LEFT"), sides[1], sides[0], sources)
                return _turned_back(turned, sides, item.using)
            return joined(item, sides[0], sides[1], sources)
        case Union(parts):
            return united([_rowwise(part, sources, ctes, home, depth + 1) for part in parts], sources)
        case Subquery(select, alias, columns):
            inner = _rowwise(select, sources, ctes, home, depth)
            return _renamed(inner, (alias,) if alias else (), columns)
        case File(path, alias, columns):
            source = sources.named_file(path) if home is None else sources.file(path)
            return _renamed(_whole(source, sources), (alias,) if alias else ("read_parquet",), columns)
        case Table(path, alias, columns):
            if len(path) == 1 and lowered(path[0]) in ctes:
                cte, outer = ctes[lowered(path[0])]
                inner = _rowwise(cte.select, sources, outer, home, depth)
                return _renamed(_renamed(inner, path, cte.columns), (alias,) if alias else path, columns)
            return _renamed(_stored(path, sources, home, depth), (alias,) if alias else (), columns)
        case Nothing() | Beside():
            raise ParameterError(f"{NO_FROM}.")


def _turned_back(turned: Relation, sides: Sequence[Relation], using: Sequence[str]) -> Relation:
    """A LEFT JOIN of the second table with the first as a RIGHT JOIN: with the columns of the first one first."""
    left, right = sides
    common = set(map(lowered, using))
    second, rest = turned.columns[: len(right.columns)], iter(turned.columns[len(right.columns) :])
    shared = {lowered(label): (label, value) for label, value in second if lowered(label) in common}
    first = [shared[lowered(label)] if lowered(label) in common else next(rest) for label, _ in left.columns]
    return replace(turned, columns=(*first, *(column for column in second if lowered(column[0]) not in common)))


def _stored(path: tuple[str, ...], sources: Sources, home: CatalogEntry | None, depth: int) -> Relation:
    """A frame, file, table or view by its name, with what is declared for it and the people that its links lead to."""
    if home is None:
        return _once(sources, path, path, lambda: _declared(path, sources, home, depth))
    return _declared(path, sources, home, depth)


def _declared(path: tuple[str, ...], sources: Sources, home: CatalogEntry | None, depth: int) -> Relation:
    relation = _found(path, sources, home, depth)
    if home is None and len(path) == 1:
        declared = sources.declared.get(lowered(path[0]))
        relation = (
            relation if declared is None else replace(relation, source=replace(relation.source, declared=declared))
        )
        if sources.tables is not None:
            relation = _renamed(replace(relation, source=replace(relation.source, asked_as=path[0])), path, ())
    if home is not None and sources.tables is not None:  # inside a view, where a Dataset's names mean nothing
        return relation
    return linked(relation, path[-1], sources, lambda other: _stored(other, sources, None, depth + 1))


def _found(path: tuple[str, ...], sources: Sources, home: CatalogEntry | None, depth: int) -> Relation:
    if isinstance(sources, SourcesElsewhere):
        return _renamed(_whole(sources.at(path), sources), path, ())
    if home is None and len(path) == 1:
        if (source := sources.keyword(path[0])) is not None:
            return _renamed(_whole(source, sources), path, ())
        if path[0].endswith(".parquet"):
            return _renamed(_whole(sources.named_file(path[0]), sources), path, ())
    entry = sources.entry(path, home)
    if entry is None and home is not None and len(path) == 1 and path[0].endswith(".parquet"):
        return _whole(sources.file(path[0]), sources)
    if entry is None:
        known = sources.names()
        hint = did_you_mean(path[-1], known)
        if re.search(r"\.\w+$", path[-1]):
            hint = (
                " Of files only Parquet is read, by keyword: load any other into a table first, or read it with pandas."
            )
        raise ParameterError(
            f"unknown table {'.'.join(path)!r}; there {'is ' + ', '.join(known[:20]) if known else 'are none'}."
            f"{hint} Pass a frame by keyword, as in pdrisk.sql(query, people=frame), or a connection as con."
        )
    names = (entry.database, entry.schema, entry.name)
    body = sources.view_text(entry) if entry.is_view and not sources.is_public(entry) else None
    if body is None:
        return _renamed(_whole(sources.table(entry), sources), names, ())
    select = parsed(body)
    sources.check(select)
    inner = _rowwise(select, sources, {}, entry, depth)
    view = _renamed(inner, names, tuple(sources.columns_of(entry)))
    for label, value in view.columns if view.source.folded else ():
        if view.source.declared.speak_of(lowered(label)) and lowered(value.column or "") != lowered(label):
            raise ParameterError(
                f"schema= names {label!r}, which the view {entry.name} makes of something else: a schema is that "
                "of the table behind a view. Ask the table, or give the column another name in the view."
            )
    return view


def _whole(source: Source, sources: Sources) -> Relation:
    """All columns of a source, in the few types that expressions know."""
    source = replace(source, stated=sources.stated) if sources.stated else source
    columns = ((name, column_of(name, sql_type, source)) for name, sql_type in source.columns.items())
    return Relation(source, tuple(columns), ())


def _renamed(relation: Relation, names: tuple[str, ...], columns: tuple[str, ...]) -> Relation:
    """The relation with other names for its first columns."""
    if len(columns) > len(relation.columns):
        raise ParameterError(f"FROM names {len(columns)} columns, but there are {len(relation.columns)}.")
    labels = [*columns, *(label for label, _ in relation.columns[len(columns) :])]
    values = (value for _, value in relation.columns)
    return replace(relation, columns=tuple(zip(labels, values, strict=True)), names=names or relation.names)


def _rowwise(select: Select, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int) -> Relation:
    """Relation of a subquery with one record for each record of its FROM, or for each person, or of public rows."""
    if home is None and sources.free is not None and is_answered_first(select) and is_free(select, sources, ctes):
        seen = {name: cte for name, (cte, _) in ctes.items()}
        shown, rows = sources.free(replace(select, ctes={**seen, **select.ctes}))
        return written_into(shown, rows, sources)
    of_people = sources.owner_of is not None and aggregates_rows(select)
    has_numbers = sources.owner_of is not None and not of_people and has_windows(select)
    for is_written, what in (
        ((select.groups != () or select.sets is not None) and not of_people, "GROUP BY"),
        (select.having is not None and not of_people, "HAVING"),
        (select.distinct and not of_people, "DISTINCT"),
        (select.qualify is not None and not has_numbers, "QUALIFY or DISTINCT ON"),
        (select.limit is not None or select.offset is not None, "LIMIT"),
    ):
        if is_written:
            raise ParameterError(
                f"{what} in a subquery, CTE or view makes its records depend on each other, so that a person's share "
                "of the answer is unknown: only row-wise subqueries (columns and WHERE) can be asked. A table made "
                "from it would do the same harm unseen."
            )
    ctes = seen_by(select, ctes)
    relation = _from(select, sources, ctes, home, depth + 1)
    if of_people:
        return grouped_by_person(select, relation, sources)
    if has_numbers:
        return numbered(select, relation, sources, _UNNAMED)
    scope = Rows(relation, aliases_of(select))
    kept = None if select.where is None else condition(select.where, scope)
    if kept is not None:
        scope = replace(scope, relation=within_where(relation, (*relation.owned, *relation.where, kept)))
    columns = tuple(_columns(select, scope))
    relation = replace(relation, columns=columns, names=(), members=())
    if select.where is None or kept is None:
        return relation
    if relation.owners is not None:
        relation = replace(relation, owners=limited(relation.owners, select.where, scope))
    if home is None:
        return replace(relation, where=(*relation.where, kept))
    return replace(relation, owned=(*relation.owned, kept))


def is_free(item: Select | From, sources: Sources, ctes: Ctes) -> bool:
    """Whether nobody is in the rows of a SELECT or an item of FROM."""
    match item:
        case Select(source=source, members=members):
            seen = seen_by(item, ctes)
            return all(is_free(part, sources, seen) for part in (source, *(member.select for member in members)))
        case Table((name,)) if lowered(name) in ctes:
            cte, outer = ctes[lowered(name)]
            return is_free(cte.select, sources, outer)
        case Table():
            return public_table(item, sources) is not None
        case Subquery(select):
            return is_free(select, sources, ctes)
        case Join(left, right):
            return all(is_free(side, sources, ctes) for side in (left, right))
        case Union(parts):
            return all(is_free(part, sources, ctes) for part in parts)
    return isinstance(item, Nothing)


def _columns(select: Select, scope: Rows) -> Iterator[tuple[str, Expression]]:
    for item, alias in select.items:
        if isinstance(item, Star):
            columns, names = scope.relation.starred(item.table)
            yield from starred(item, columns, names, lambda node: named(node, scope))
            continue
        if isinstance(item, Column):
            yield alias or item.name, named(item, scope)
        else:  # whose parts nobody sees any more
            yield alias or _UNNAMED, named(item, replace(scope, reads_ranges=True))
