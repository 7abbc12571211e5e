"""Relations in FROM: row-wise subqueries, CTEs and views as one source, its columns as expressions, and filters.

Each record of the result is made of one record of the source, and of each record at most one: what adding or removing
one person does stays known. Everything that breaks this is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from pdrisk._model.kinds import DATE, NUMBER, TEXT, TIME
from pdrisk._model.missing_codes import Asked, asked_for_code
from pdrisk._model.nearest import did_you_mean, unknown_column
from pdrisk._model.nodes import Call, Column, Node, Operation, below, is_given
from pdrisk._sql.allowed import check_clock
from pdrisk._sql.catalog import CatalogEntry
from pdrisk._sql.days import day_of
from pdrisk._sql.expressions import text, truth
from pdrisk._sql.headings import heading
from pdrisk._sql.limits import Limit, limits
from pdrisk._sql.parse import parsed
from pdrisk._sql.pieces import Expression, kind_of_type, lowered, number, quoted, written_constant
from pdrisk._sql.ranges import ANYTHING
from pdrisk._sql.sources import Source, Sources
from pdrisk._sql.statistics import AGGREGATES
from pdrisk._sql.tree import Cte, File, From, Nothing, Select, Star, Subquery, Table, Union
from pdrisk.errors import ParameterError, UnknownColumnError

__all__ = ["Condition", "Ctes", "Relation", "Rows", "condition", "relation_of", "seen_by", "starred"]

_UNNAMED = "(an expression without a name)"
DEEPEST = 50  # subqueries in subqueries: a view may name itself


@dataclass(frozen=True, slots=True)
class Condition:
    """A row-wise condition: which records are kept.

    Attributes
    ----------
    sql : str
    shown : str
        For people, with the names of parameters instead of their values.
    given : bool
        Whether the value of a parameter is in it.
    limits : callable
        What it says of single expressions.
    """

    sql: str
    shown: str
    given: bool
    limits: Callable[[], Iterator[Limit]] = field(default=lambda: iter(()), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """What FROM gives: one record of it for each record of the source that ``where`` keeps.

    Attributes
    ----------
    source : Source
    columns : tuple of (str, Expression)
        In order; names may repeat.
    names : tuple of str
        What may stand before a column's name, the outermost first.
    owned, where : tuple of Condition
        All of them hold: those of the owner's views, and those of the query's own subqueries.
    """

    source: Source
    columns: tuple[tuple[str, Expression], ...]
    names: tuple[str, ...]
    owned: tuple[Condition, ...] = ()
    where: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Rows:
    """The scope of row-wise expressions: columns of a relation, then aliases of the SELECT list."""

    relation: Relation
    aliases: Mapping[str, Node]
    of_people = True

    @property
    def untyped(self) -> frozenset[str]:
        """Columns of Python objects."""
        return self.relation.source.untyped

    @property
    def numbers(self) -> frozenset[str]:
        """Columns of numbers whose type one record more could change: those of frames and files."""
        source = self.relation.source
        if source.is_table:
            return source.whole
        return frozenset(name for name, sql_type in source.columns.items() if kind_of_type(sql_type) == NUMBER)

    @property
    def zone(self) -> str:
        """Whose clock times with a zone are read by."""
        return self.relation.source.zone

    def order(self, how: str) -> str:
        """Nothing orders people."""
        raise AssertionError(how)

    def windowed(self, found: Expression) -> Expression:
        """Nor do windows look at them."""
        raise AssertionError(found)

    def known(self, node: Node) -> Expression | None:
        """A column, or the error for what looks at several records."""
        if isinstance(node, Call) and node.name in AGGREGATES:
            raise ParameterError(
                f"{node.name} stands where one record is looked at: aggregates belong into SELECT, HAVING and ORDER "
                "BY, and nothing can be aggregated twice."
            )
        return self.column(node) if isinstance(node, Column) else None

    def column(self, node: Column) -> Expression:
        """The expression behind a name."""
        name = lowered(node.name)
        qualifiers = tuple(map(lowered, node.qualifiers))
        own = tuple(map(lowered, self.relation.names))
        found = [value for label, value in self.relation.columns if lowered(label) == name]
        if found and (not qualifiers or own[len(own) - len(qualifiers) :] == qualifiers):
            if len(found) > 1:
                raise ParameterError(f"several columns of FROM are named {node.name!r}: give them different names.")
            return self._ranged(found[0])
        if not qualifiers and name in self.aliases:
            # Without itself, so that no alias can stand for itself.
            shorter = {alias: value for alias, value in self.aliases.items() if alias != name}
            return named(self.aliases[name], Rows(self.relation, shorter))
        if not qualifiers and name != "age":  # of a person, not of time
            check_clock(name)
        error = unknown_column(node.path, [label for label, _ in self.relation.columns])
        if not node.in_quotes:
            raise error
        raise UnknownColumnError(f"{error} Text stands in single quotes: {written_constant(node.name)}.")

    def _ranged(self, found: Expression) -> Expression:
        """A number with what is declared of its column, which is asked for only where it is used."""
        if found.kind != NUMBER or found.column is None or found.range != ANYTHING:
            return found
        return replace(found, range=self.relation.source.range_of(found.column))


def named(node: Node, scope: Rows) -> Expression:
    """The SQL of a node, and what it is for people."""
    found = text(node, scope)
    given = is_given(node) or any(isinstance(part, Column) and scope.column(part).given for part in below(node))
    day = None if given else day_of(node, scope)
    return replace(found, shown=heading(node, lambda column: scope.column(column).shown), given=given, day=day)


def relation_of(select: Select, sources: Sources, ctes: Ctes | None = None) -> Relation:
    """What the FROM of a query gives, before its own WHERE; ``ctes`` are those it sees, if it is a part of another."""
    return _relation(select.source, sources, seen_by(select, {}) if ctes is None else ctes, None, 0)


Ctes = Mapping[str, tuple[Cte, "Ctes"]]


def seen_by(select: Select, ctes: Ctes) -> Ctes:
    """The CTEs a SELECT sees: its own, each of which sees those before it, and those around it."""
    known = dict(ctes)
    for name, cte in select.ctes.items():
        known[lowered(name)] = (cte, dict(known))
    return known


def _relation(item: From, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int) -> Relation:
    if depth > DEEPEST:
        raise ParameterError(f"more than {DEEPEST} subqueries stand in each other: put them together.")
    match item:
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
        case Union():
            raise ParameterError(
                "UNION of records is refused, since a person may be in both parts: let each part aggregate, or put "
                "both into one table with one row a person first."
            )
        case Nothing():
            raise ParameterError("there is no FROM: ask a table, view, frame or Parquet file.")


def _stored(path: tuple[str, ...], sources: Sources, home: CatalogEntry | None, depth: int) -> Relation:
    """A frame, file, table or view by its name, with what is declared for it."""
    found = _found(path, sources, home, depth)
    if home is not None or len(path) > 1:
        return found
    said = sources.declared.get(lowered(path[0]))
    found = found if said is None else replace(found, source=replace(found.source, declared=said))
    return found if sources.tables is None else _renamed(found, path, ())


def _found(path: tuple[str, ...], sources: Sources, home: CatalogEntry | None, depth: int) -> Relation:
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
            hint = " Of a file, load what you need into a table first, or pass a Parquet file by keyword."
        raise ParameterError(
            f"unknown table {'.'.join(path)!r}; there {'is ' + ', '.join(known[:20]) if known else 'are none'}."
            f"{hint} Pass a frame by keyword, as in pdrisk.sql(query, people=frame), or a connection as con."
        )
    names = (entry.database, entry.schema, entry.name)
    body = sources.view_text(entry) if entry.is_view else None
    if body is None:
        return _renamed(_whole(sources.table(entry), sources), names, ())
    select = parsed(body)
    sources.check(select)
    inner = _rowwise(select, sources, {}, entry, depth)
    found = _renamed(inner, names, tuple(sources.columns_of(entry)))
    for label, value in found.columns if found.source.folded else ():
        if found.source.declared.speak_of(lowered(label)) and lowered(value.column or "") != lowered(label):
            raise ParameterError(
                f"schema= speaks of {label!r}, which the view {entry.name} makes of something else: a schema is that "
                "of the table behind a view. Ask the table, or give the column another name in the view."
            )
    return found


def _whole(source: Source, sources: Sources) -> Relation:
    """All columns of a source, as the few types that expressions know."""
    source = replace(source, stated=sources.stated) if sources.stated else source
    columns = ((name, _column(name, sql_type, source)) for name, sql_type in source.columns.items())
    return Relation(source, tuple(columns), ())


def _column(name: str, sql_type: str, source: Source) -> Expression:
    sql, kind, collated = quoted(name), kind_of_type(sql_type), source.collated
    if kind == TEXT:
        # The labels of an ENUM may be people's values: their order is no column's, and DuckDB writes them into errors.
        sql = f"CAST({sql} AS VARCHAR)" if collated or sql_type != "VARCHAR" else sql
        sql = f'({sql} COLLATE "binary")' if collated else sql
        return Expression(sql, TEXT, "VARCHAR", name, shown=quoted(name))
    if sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        # DuckDB 1 fails where TRY_CAST should give NULL.
        return Expression(f"TRY(TRY_CAST({sql} AS TIMESTAMP))", TIME, "TIMESTAMP", name, shown=quoted(name))
    if name in source.whole:
        return Expression(f"CAST({sql} AS DOUBLE)", NUMBER, "DOUBLE", name, shown=quoted(name))
    found = number(sql, sql_type, name) if kind == NUMBER else Expression(sql, kind, sql_type, name)
    return replace(found, shown=quoted(name))


def _renamed(relation: Relation, names: tuple[str, ...], columns: tuple[str, ...]) -> Relation:
    """Under other names; the columns from the first on."""
    if len(columns) > len(relation.columns):
        raise ParameterError(f"FROM names {len(columns)} columns, but there are {len(relation.columns)}.")
    labels = [*columns, *(label for label, _ in relation.columns[len(columns) :])]
    values = (value for _, value in relation.columns)
    return replace(relation, columns=tuple(zip(labels, values, strict=True)), names=names or relation.names)


def _rowwise(select: Select, sources: Sources, ctes: Ctes, home: CatalogEntry | None, depth: int) -> Relation:
    """A subquery that gives one record for each of its own FROM."""
    for said, what in (
        (select.groups != (), "GROUP BY"),
        (select.having is not None, "HAVING"),
        (select.distinct, "DISTINCT"),
        (select.qualify is not None, "QUALIFY"),
        (select.limit is not None or select.offset is not None, "LIMIT"),
    ):
        if said:
            raise ParameterError(
                f"{what} in a subquery, CTE or view makes its records depend on each other, so that a person's share "
                "of the answer is unknown: only row-wise subqueries (columns and WHERE) can be asked. A table made "
                "from it would do the same harm unseen."
            )
    ctes = seen_by(select, ctes)
    relation = _relation(select.source, sources, ctes, home, depth + 1)
    aliases = {lowered(alias): item for item, alias in select.items if alias and not isinstance(item, Star)}
    scope = Rows(relation, aliases)
    columns = tuple(_columns(select, scope))
    relation = replace(relation, columns=columns, names=())
    if select.where is None:
        return relation
    kept = condition(select.where, scope)
    if home is None:
        return replace(relation, where=(*relation.where, kept))
    return replace(relation, owned=(*relation.owned, kept))


def condition(node: Node, scope: Rows) -> Condition:
    """What a WHERE keeps."""
    _check_codes(node, scope)
    found = truth(named(node, scope), "WHERE")
    return Condition(found.sql, found.shown, found.given, lambda: limits(node, scope))


def _check_codes(node: Node, scope: Rows) -> None:
    """Refuse to ask who has a missing code: it is NULL when the filter sees it, equal and unequal to nothing."""
    source = scope.relation.source
    asked = _asked(node, scope) if source.declared.speak_of_codes else ()
    if said := asked_for_code(asked, lambda column: source.known(column).missing, "{} IS NULL, or IS NOT NULL"):
        raise ParameterError(said)


def _asked(node: Node, scope: Rows) -> Iterator[Asked]:
    if not isinstance(node, Operation):
        return
    if node.symbol in ("and", "or"):
        for part in node.parts:
            yield from _asked(part, scope)
    elif node.symbol in ("==", "in"):
        found = [text(part, scope) for part in node.parts]
        for column in found:
            for raw, one in zip(node.parts, found, strict=True):
                if (name := column.column) is not None and one.constant:
                    shown = heading(raw) if is_given(raw) else repr(one.value)
                    written = name if name.isidentifier() else quoted(name)
                    yield name, _as_code(one.value, column.kind), written, shown


def _as_code(value: object, kind: str) -> object:
    """A constant as a code is written: a date beside dates as a Timestamp."""
    if kind not in (DATE, TIME) or not isinstance(value, str | datetime.date):
        return value
    try:
        return pd.Timestamp(value)
    except ValueError:
        return value


def _columns(select: Select, scope: Rows) -> Iterator[tuple[str, Expression]]:
    for item, alias in select.items:
        if isinstance(item, Star):
            relation = scope.relation
            yield from starred(item, relation.columns, relation.names, lambda node: named(node, scope))
            continue
        label = alias or (item.name if isinstance(item, Column) else _UNNAMED)
        yield label, named(item, scope)


def starred(
    star: Star,
    columns: Sequence[tuple[str, Expression]],
    names: Sequence[str],
    made: Callable[[Node], Expression],
) -> Iterator[tuple[str, Expression]]:
    """What a star stands for.

    Parameters
    ----------
    star : Star
    columns : sequence of (str, Expression)
        Those of FROM.
    names : sequence of str
        What may stand before a column's name, the outermost first.
    made : callable
        Makes an expression of what REPLACE says.
    """
    if star.table and lowered(star.table) not in map(lowered, names[-1:]):
        raise ParameterError(f"unknown table {star.table!r} before the star.")
    labels = {lowered(label) for label, _ in columns}
    excluded, replaced = set(map(lowered, star.excluded)), {lowered(k): v for k, v in star.replaced.items()}
    if unknown := sorted((excluded | set(replaced)) - labels):
        raise unknown_column(unknown[0], [label for label, _ in columns])
    for label, value in columns:
        if lowered(label) in replaced:
            yield label, made(replaced[lowered(label)])
        elif lowered(label) not in excluded:
            yield label, value
