"""Rows of a relation: its columns as expressions, the conditions that hold, and the names that SQL has for them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pandas as pd

from pdrisk._model.declared.missing_codes import Asked, asked_for_code
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, below, in_days, is_given
from pdrisk._model.where_bounds import Comparison, narrowed
from pdrisk._relations.owners import Owners
from pdrisk._sql.expressions.allowed_functions import check_clock
from pdrisk._sql.expressions.days import day_of
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.expressions.where_values import Limit, limits
from pdrisk._sql.relations.public_keys import ListedBy
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import (
    INTEGERS,
    RANGED,
    Day,
    Expression,
    kind_of_type,
    lowered,
    number,
    quoted,
    written_constant,
)
from pdrisk._sql.syntax.ranges import ANYTHING, Range
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.source import Source
from pdrisk.errors import ParameterError, UnknownColumnError

Columns = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A row-wise condition: which records are kept."""

    shown: str  # for people, with the names of parameters instead of their values
    given: bool  # whether the value of a parameter is in it
    node: Node = field(default=Constant(True), compare=False, repr=False)  # the same over the columns of the source
    # what it says of single expressions
    limits: Callable[[], Iterator[Limit]] = field(default=lambda: iter(()), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """Table of a join: its qualifiers and columns."""

    names: tuple[str, ...]
    columns: Columns


@dataclass(frozen=True, slots=True)
class Relation:
    """Relation of FROM: one record for each record of the source that ``where`` keeps."""

    source: Source
    columns: Columns  # in order; names may repeat
    names: tuple[str, ...]  # what may stand before a column's name, the outermost first
    # `owned`, `where`: all of them hold: those of the owner's views, and those of the query's own subqueries
    owned: tuple[Condition, ...] = ()
    where: tuple[Condition, ...] = ()
    members: tuple[Member, ...] = ()  # the tables of a join, whose columns have names of their own
    # whose records these are, of a source that pdrisk wrote out of others; of one table its declaration says it
    owners: Owners | None = None
    inside: tuple[Condition, ...] = ()  # what the source has in it already
    # the columns of the source whose values public tables list
    listed: Mapping[str, ListedBy] = field(default_factory=dict)
    # the columns of the source that rows of a public table without people lack, for which there are no records
    # here
    absent: frozenset[str] = frozenset()

    def found(self, name: str, qualifiers: tuple[str, ...]) -> list[Expression]:
        """Columns of a name and its qualifiers, all in lower case."""
        if not self.members or not qualifiers:
            fits = not qualifiers or _ends(self.names, qualifiers)
            return [value for label, value in self.columns if fits and lowered(label) == name]
        fitting = [member for member in self.members if _ends(member.names, qualifiers)]
        if len(fitting) > 1:
            raise ParameterError(f"several tables of FROM are named {'.'.join(qualifiers)!r}: give each an alias.")
        return [value for member in fitting for label, value in member.columns if lowered(label) == name]

    def starred(self, table: str) -> tuple[Columns, tuple[str, ...]]:
        """Columns of ``table.*``, or of all, with the names they are found under."""
        fitting = [member for member in self.members if table and _ends(member.names, (lowered(table),))]
        return (fitting[0].columns, fitting[0].names) if len(fitting) == 1 else (self.columns, self.names)


def _ends(names: tuple[str, ...], qualifiers: tuple[str, ...]) -> bool:
    prefixes = tuple(map(lowered, names))
    return prefixes[len(prefixes) - len(qualifiers) :] == qualifiers


@dataclass(frozen=True)
class Rows:
    """The scope of row-wise expressions: columns of a relation, then aliases of the SELECT list.

    ``reads_ranges``: a number or date of a public table without bounds lies between the ends of its rows, which are
    read.
    """

    relation: Relation
    aliases: Mapping[str, Node]
    reads_ranges: bool = field(default=False, kw_only=True)
    of_people = True

    @property
    def untyped(self) -> frozenset[str]:
        """Columns of Python objects."""
        return self.relation.source.untyped

    @property
    def numbers(self) -> frozenset[str]:
        """Columns of numbers whose type one more record could change: those of frames and files."""
        source = self.relation.source
        if source.is_table:
            return source.whole
        return frozenset(name for name, sql_type in source.columns.items() if kind_of_type(sql_type) == NUMBER)

    @property
    def zone(self) -> str:
        """Time zone by which times with a zone are read."""
        return self.relation.source.zone

    def order(self, how: str) -> str:
        """Empty: nothing orders people."""
        raise AssertionError(how)

    def windowed(self, expression: Expression) -> Expression:
        """Refused: windows do not look at people."""
        raise AssertionError(expression)

    def known(self, node: Node) -> Expression | None:
        """A column, or the error for what looks at several records."""
        if isinstance(node, Call) and node.name in AGGREGATES:
            raise ParameterError(
                f"{node.name} cannot be used where a single record is read: aggregates belong in SELECT, HAVING "
                "and ORDER BY, and nothing can be aggregated twice."
            )
        return self.column(node) if isinstance(node, Column) else None

    def column(self, node: Column) -> Expression:
        """The expression behind a name."""
        name = lowered(node.name)
        qualifiers = tuple(map(lowered, node.qualifiers))
        matches = self.relation.found(name, qualifiers)
        if matches:
            if len(matches) > 1:
                raise ParameterError(f"several columns of FROM are named {node.name!r}: give them different names.")
            return self.ranged(matches[0])
        if not qualifiers and name in self.aliases:
            return named(self.aliases[name], self.without(name))
        if not qualifiers and name != "age":  # of a person, not of time
            check_clock(name)
        error = unknown_column(node.path, [label for label, _ in self.relation.columns])
        if node.in_quotes:
            error = UnknownColumnError(f"{error} Write text in single quotes: {written_constant(node.name)}.")
        error.path = (*node.qualifiers, node.name)
        raise error

    def range_of(self, day: Day) -> Range:
        """Range of a column of dates, whether a subquery shows it or not."""
        column = next((value for _, value in self.relation.columns if value.sql == day.sql), None)
        return self.relation.source.range_of(day.column) if column is None else self.ranged(column).range

    def without(self, alias: str) -> Rows:
        """Scope for the expression of an alias, without the alias itself."""
        return replace(self, aliases={name: value for name, value in self.aliases.items() if name != alias})

    def ranged(self, value: Expression) -> Expression:
        """A number or date with the declared range of its column, which is looked up only where it is used."""
        if value.of_any_row:
            raise ParameterError(
                f"{value.shown} is that of any row of a person, as DISTINCT ON and ROW_NUMBER() have no order here: "
                "write ORDER BY beside it."
            )
        if value.kind not in RANGED or value.column is None:
            return value
        lies = self.relation.source.range_of(value.column) if value.range == ANYTHING else value.range
        by = self.relation.listed.get(value.column) if self.reads_ranges and lies.universe is None else None
        if by is not None and by.side.is_joined:
            node = by.node if value.kind == NUMBER else in_days(by.node, times=value.kind == TIME)
            lies = lies.within(by.side.range_of(node, lowered(value.column)))
        return replace(value, range=lies)


def aliases_of(select: Select) -> dict[str, Node]:
    """Aliases of a SELECT list, in lower case."""
    return {lowered(alias): item for item, alias in select.items if alias and not isinstance(item, Star)}


def named(node: Node, scope: Rows) -> Expression:
    """SQL of a node, and its text for people."""
    expression = text(node, scope)
    given = is_given(node) or any(isinstance(part, Column) and scope.column(part).given for part in below(node))
    day = None if given else day_of(node, scope)
    shown = heading(node, lambda column: scope.column(column).shown)
    return replace(expression, shown=shown, given=given, day=day, node=resolved(node, scope))


def column_of(name: str, sql_type: str, source: Source) -> Expression:
    """Column of a source, in the few types that expressions know."""
    sql, kind = quoted(name), kind_of_type(sql_type)
    if kind == TEXT:
        # The labels of an ENUM may be people's values: their order is no column's, and DuckDB writes them into errors.
        sql = f"CAST({sql} AS VARCHAR)" if sql_type != "VARCHAR" else sql
        return Expression(sql, TEXT, "VARCHAR", name, shown=quoted(name), node=Column(name))
    if sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        # DuckDB 1 fails where TRY_CAST should give NULL.
        cast = f"TRY(TRY_CAST({sql} AS TIMESTAMP))"
        return Expression(cast, TIME, "TIMESTAMP", name, shown=quoted(name), node=Column(name))
    if name in source.whole:
        whole = sql_type in INTEGERS
        double = f"CAST({sql} AS DOUBLE)"
        return Expression(double, NUMBER, "DOUBLE", name, shown=quoted(name), never_nan=whole, node=Column(name))
    column = number(sql, sql_type, name) if kind == NUMBER else Expression(sql, kind, sql_type, name)
    return replace(column, shown=quoted(name), node=Column(name))


def within_where(relation: Relation, conditions: Sequence[Condition], given: Collection[str] = ()) -> Relation:
    """The relation with the bounds that conditions on its rows give its columns, within the declared ones.

    ``conditions``: those that hold for all its rows.
    ``given``: columns, in lower case, whose bounds the caller passed: these stay as they are, and those of the
        source too.
    """
    comparisons: dict[str, list[Comparison]] = {}
    for limit in (limit for clause in conditions for limit in clause.limits()):
        comparisons.setdefault(limit.sql, []).extend(limit.comparisons)
    source = relation.source

    def bounded(label: str, value: Expression) -> tuple[str, Expression]:
        name = lowered(value.column or label)
        if (
            value.kind not in RANGED
            or value.sql not in comparisons
            or {name, lowered(label)} & {*given, *source.stated}
        ):
            return label, value
        before = value.range
        if before == ANYTHING and value.column is not None:
            before = source.range_of(value.column)
        lo, hi, whole = before.lo, before.hi, value.type in INTEGERS or value.kind == DATE
        with suppress(ParameterError):  # of a schema that contradicts itself, for whoever needs the column
            known = source.known(value.column)
            lo, hi, whole = max(lo, known.valid[0]), min(hi, known.valid[1]), whole or known.whole
        ends = narrowed(lo, hi, comparisons[value.sql], whole=whole, single=value.type == "FLOAT")
        if ends == (lo, hi):
            return label, value
        return label, replace(value, range=Range(*ends, before.columns | {name}, by_where=True))

    def all_of(columns: Columns) -> Columns:
        return tuple(bounded(*column) for column in columns)

    if not comparisons:
        return relation
    members = tuple(replace(member, columns=all_of(member.columns)) for member in relation.members)
    return replace(relation, columns=all_of(relation.columns), members=members)


def condition(node: Node, scope: Rows) -> Condition:
    """Condition of a WHERE."""
    _check_codes(node, scope)
    expression = truth(named(node, scope), "WHERE")
    assert expression.node is not None
    return Condition(expression.shown, expression.given, expression.node, lambda: limits(node, scope))


def _check_codes(node: Node, scope: Rows) -> None:
    """Refuse to ask for a missing code: it is NULL when the filter sees it."""
    source = scope.relation.source
    asked = _asked(node, scope) if source.declared.speak_of_codes else ()
    if problem := asked_for_code(asked, lambda column: source.known(column).missing, "{} IS NULL, or IS NOT NULL"):
        raise ParameterError(problem)


def _asked(node: Node, scope: Rows) -> Iterator[Asked]:
    if not isinstance(node, Operation):
        return
    if node.symbol in ("and", "or"):
        for part in node.parts:
            yield from _asked(part, scope)
    elif node.symbol in ("==", "in"):
        expressions = [text(part, scope) for part in node.parts]
        for column in expressions:
            for raw, one in zip(node.parts, expressions, strict=True):
                if (name := column.column) is not None and one.constant:
                    shown = heading(raw) if is_given(raw) else repr(one.value)
                    written = name if name.isidentifier() else quoted(name)
                    yield name, _as_code(one.value, column.kind), written, shown


def _as_code(value: object, kind: str) -> object:
    """A constant in the form of codes: a date beside dates as a Timestamp."""
    if kind not in (DATE, TIME) or not isinstance(value, str | datetime.date):
        return value
    try:
        return pd.Timestamp(value)
    except ValueError:
        return value


def starred(
    star: Star,
    columns: Sequence[tuple[str, Expression]],
    names: Sequence[str],
    made: Callable[[Node], Expression],
) -> Iterator[tuple[str, Expression]]:
    """Columns of a star.

    ``columns``: those of FROM.
    ``names``: what may stand before a column's name, the outermost first.
    ``made``: makes an expression of what REPLACE says.
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
