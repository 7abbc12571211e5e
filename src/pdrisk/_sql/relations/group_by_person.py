"""GROUP BY the person inside FROM: exact aggregates of the rows of one person, which stay inside.

    rows of a person ──> groups, aggregates as columns of a source ──> SELECT list and HAVING, row by row over it

Nothing here may depend on the order of rows, since that depends on other people: sums are sums of whole numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, Window, below, mapped
from pdrisk._relations.owners import Owners
from pdrisk._relations.plan import Aggregated, PerPerson
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.expressions.resolved import resolved
from pdrisk._sql.expressions.windows import quantile_of
from pdrisk._sql.relations.group_keys import typed_key
from pdrisk._sql.relations.row_scope import (
    Condition,
    Relation,
    Rows,
    aliases_of,
    column_of,
    condition,
    named,
    starred,
    within_where,
)
from pdrisk._sql.relations.rows_of_nobody import counted
from pdrisk._sql.relations.written_out import unused, with_known, written_out
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import BIGINT, Expression, lowered
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.source import Source
from pdrisk._sql.tables.sources import Sources
from pdrisk._sql.text.dry_run import types
from pdrisk.errors import ParameterError

EXACT = frozenset(
    {"count", "count_star", "count_if", "countif", "sum", "avg", "mean", "min", "max", "bool_or", "bool_and"}
)
SORTED = frozenset(
    {"median", "quantile_cont", "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev"}
)
PLANNED = {"count_star": "count", "mean": "avg", "median": "quantile", "quantile_cont": "quantile"}
#: SQL types of what MIN and MAX give, by kind.
ENDS = {NUMBER: "DOUBLE", TEXT: "VARCHAR", DATE: "DATE", TIME: "TIMESTAMP", TRUTH: "BOOLEAN"}


def aggregates_rows(select: Select) -> bool:
    """Whether a SELECT combines several rows into one."""
    nodes = [item for item, _ in select.items if not isinstance(item, Star)]
    nodes += [select.having] if select.having is not None else []
    looks_around = any(_is_aggregate(part) for node in nodes for part in below(node))
    is_grouped = select.groups != () or select.sets is not None
    return is_grouped or select.having is not None or select.distinct or looks_around


def _is_aggregate(node: Node) -> bool:
    return isinstance(node, Call) and (node.name in AGGREGATES or node.name in EXACT)


def positional(node: Node, select: Select) -> Node:
    """The expression of an item of GROUP BY, which may be the number of an item of SELECT."""
    if not isinstance(node, Constant) or type(node.value) is not int:
        return node
    items = select.items
    if not 1 <= node.value <= len(items):
        raise ParameterError(f"GROUP BY {heading(node)} means no item of SELECT, which has {len(items)}.")
    item = items[node.value - 1][0]
    if isinstance(item, Star):
        raise ParameterError(f"GROUP BY {heading(node)} means a star: name the columns.")
    return item


def by_person(select: Select, relation: Relation, owners: Owners) -> bool:
    """Whether the groups of a SELECT belong to single people: all id columns are among them, or a link to people."""
    rows = Rows(relation, aliases_of(select))
    columns = [value.column for _, value in _groups(select, relation, rows) if value.column is not None]
    return select.sets is None and owners.are_told_by(columns)


def _groups(select: Select, relation: Relation, rows: Rows) -> list[tuple[str, Expression]]:
    """Expressions of GROUP BY, or of DISTINCT, with their names."""
    if select.groups is not None and select.groups != ():
        nodes: list[Node | Star] = [positional(node, select) for node in select.groups]
    else:
        nodes = (
            [item for item, _ in select.items if isinstance(item, Star) or not any(map(_is_aggregate, below(item)))]
            if select.groups is None or select.distinct
            else []
        )
    groups: list[tuple[str, Expression]] = []
    for node in nodes:
        if isinstance(node, Star):
            groups += starred(node, *relation.starred(node.table), lambda replacement: named(replacement, rows))
        else:
            groups.append((node.name if isinstance(node, Column) else heading(node), named(node, rows)))
    return list({value.sql: (label, value) for label, value in groups if not value.constant}.values())


def grouped_by_person(select: Select, relation: Relation, sources: Sources) -> Relation:
    """Relation of a SELECT that groups by the person, and by more if it likes."""
    if select.where is not None:
        kept = condition(select.where, Rows(relation, aliases_of(select)))
        relation = within_where(replace(relation, where=(*relation.where, kept)), [kept])
    base = written_out(relation, sources, set())
    owners = base.owners
    assert owners is not None
    if owners.is_public or not by_person(select, base, owners):
        word = "DISTINCT" if select.distinct else "GROUP BY"
        listed = " For a list of all values that there can be, write VALUES or a public table." * select.distinct
        raise ParameterError(
            f"{word} in a subquery, CTE or view makes its records depend on each other, unless the records are those "
            f"of single people: group by {' and '.join(owners.key) or 'the person'}, as it is stored, and by whatever "
            f"else you need. Over public tables, make a table of it first.{listed}"
        )
    if base.absent:
        raise counted("GROUP BY or DISTINCT in a subquery")
    if select.distinct and (select.groups != () or any(map(_is_aggregate, _nodes(select)))):
        raise ParameterError("SELECT DISTINCT beside GROUP BY or aggregates is refused in a subquery: leave one out.")
    groups = _groups(select, base, Rows(base, aliases_of(select)))
    return _Grouped(select, with_known(base, [[value.column for _, value in groups]]), sources).relation()


def _nodes(select: Select) -> list[Node]:
    return [part for item, _ in select.items if not isinstance(item, Star) for part in below(item)]


@dataclass
class _Grouped:
    """The groups and aggregates of one SELECT, as columns."""

    select: Select
    base: Relation
    sources: Sources
    taken: set[str] = field(default_factory=set)
    columns: dict[str, str] = field(default_factory=dict)  # SQL types by name
    labels: dict[str, Expression] = field(default_factory=dict)  # by the name of a column: kind, shown, range
    aggregates: dict[str, str] = field(default_factory=dict)  # names by what they are

    def __post_init__(self) -> None:
        self.plain = Rows(self.base, {})
        self.arguments = replace(self.plain, reads_ranges=True)
        self.rows = Rows(self.base, aliases_of(self.select))
        self.by: dict[str, str] = {}  # names of groups by the SQL that they are of
        self.nodes: list[tuple[str, Node]] = []
        self.made: list[tuple[str, Aggregated]] = []
        groups = _groups(self.select, self.base, self.rows)
        for label, value in groups:
            self._add_group(label, value)
        assert self.base.owners is not None
        source = self.base.source
        for name in self.base.owners.key:  # of groups by a link, which lead to one person each
            if all(value.column != name for _, value in groups):
                self._add_group(name, column_of(name, source.columns[name], source))

    def _add_group(self, label: str, value: Expression) -> None:
        assert self.base.owners is not None
        value = self.plain.ranged(value)
        name = unused(label, (), self.taken)
        source = self.base.source
        if value.column in self.base.owners.key:
            sql_type = source.columns[str(value.column)]
        else:
            (column_type,) = types(source.columns, [value], value.given)
            sql_type = typed_key(value, column_type, (label,), "GROUP BY of a subquery:").type
        self.by[value.sql] = name
        assert value.node is not None, "groups are named"
        self.nodes.append((name, value.node))
        self.columns[name], self.labels[name] = sql_type, value

    def relation(self) -> Relation:
        """The SELECT list over groups and aggregates."""
        owners, base = self.base.owners, self.base
        assert owners is not None
        items: list[tuple[str, Node]] = []
        for item, alias in self.select.items:
            if isinstance(item, Star):
                star_columns = starred(
                    item, *base.starred(item.table), lambda replacement: named(replacement, self.rows)
                )
                items += [(label, self._group(value.sql, label)) for label, value in star_columns]
            else:
                label = alias or (item.name if isinstance(item, Column) else heading(item))
                items.append((label, self.rewritten(item)))
        having = None if self.select.having is None else self.rewritten(self.select.having)
        stated = {
            lowered(label): self.sources.stated[lowered(label)]
            for label in self.columns
            if lowered(label) in self.sources.stated
        }
        by = {name: str(value.column) for name, value in self.labels.items() if name in self.by.values()}
        source = replace(
            base.source, made=PerPerson(base.source.relation, tuple(self.nodes), tuple(self.made)),
            columns=self.columns, untyped=frozenset(), whole=frozenset(),
            declared=replace(base.source.declared, own=(), schema=()), stated=stated,
            called={name: base.source.called.get(column, column) for name, column in by.items()},
        )  # fmt: skip
        columns = []
        for name, value in self.labels.items():
            new = column_of(name, self.columns[name], source)
            columns.append((name, replace(new, shown=value.shown, given=value.given, range=value.range)))
        place = {column: name for name, column in by.items()}
        key = tuple(place[column] for column in owners.key)
        extra = tuple(name for name in self.by.values() if name not in key)
        if extra:
            links = (
                link._replace(columns=tuple(place[one] for one in link.columns)) for link in owners.links
                if set(link.columns) <= set(place)
            )  # fmt: skip
            single = tuple(link._replace(is_single=set(extra) <= set(link.columns)) for link in links)
            whole = Owners(key, owners.most, extra, links=single, factors=owners.factors)
        else:
            whole = Owners(key, 1, constant=frozenset(self.columns), is_proven=True)
        inner = Relation(source, tuple(columns), (), owners=whole, inside=base.inside)
        rows = Rows(inner, {})
        kept: tuple[Condition, ...] = () if having is None else (condition(having, rows),)
        return replace(inner, columns=tuple((label, named(node, rows)) for label, node in items), where=kept)

    def rewritten(self, node: Node, seen: frozenset[str] = frozenset()) -> Node:
        """The expression over the columns of groups and aggregates."""
        if _is_aggregate(node):
            assert isinstance(node, Call)
            return Column(self._aggregate(node))
        if isinstance(node, Column):
            name = lowered(node.name)
            if not node.qualifiers and not self.base.found(name, ()) and name in self.rows.aliases and name not in seen:
                return self.rewritten(self.rows.aliases[name], seen | {name})
            return self._group(text(node, self.plain).sql, node.path)
        if not any(map(_is_aggregate, below(node))) and not isinstance(node, Constant):
            try:
                sql = text(node, self.plain).sql
            except ParameterError:
                sql = ""
            if sql in self.by:
                return Column(self.by[sql])
        if isinstance(node, Window):
            names = {item: alias for item, alias in self.select.items if not isinstance(item, Star)}
            hint = quantile_of(node, names)
            raise ParameterError(f"window functions (OVER) beside GROUP BY in a subquery are refused.{hint}")
        return mapped(node, lambda part: self.rewritten(part, seen))

    def _group(self, sql: str, label: str) -> Node:
        if sql not in self.by:
            raise ParameterError(f"column {label!r} is neither aggregated nor in GROUP BY.")
        return Column(self.by[sql])

    def _aggregate(self, call: Call) -> str:
        """The name of the column of an aggregate."""
        sql_type, shown = self._judged(call)
        planned = self._planned(call)
        if repr(planned) not in self.aggregates:
            name = unused(heading(call), (), self.taken)
            self.aggregates[repr(planned)] = name
            self.made.append((name, planned))
            self.columns[name], self.labels[name] = sql_type, shown
        return self.aggregates[repr(planned)]

    def _planned(self, call: Call) -> Aggregated:
        """An aggregate that `_judged` has seen, as a part of a plan."""
        argument = named(call.arguments[0], self.arguments) if call.arguments else None
        where = None if call.condition is None else resolved(call.condition, self.plain)
        node, name, universe = None if argument is None else argument.node, call.name, None
        if name in ("count_if", "countif"):
            assert node is not None
            where = node if where is None else Operation("and", (where, node))
            return Aggregated("count", None, where)
        if name in ("sum", "avg", "mean") and argument is not None and not _is_whole(argument, self.base.source):
            universe = argument.range.universe
        q = float(call.arguments[1].value) if name == "quantile_cont" else 0.5  # type: ignore[union-attr] # checked
        function = PLANNED.get(name, name)
        return Aggregated(function, node, where, distinct=call.distinct, q=q, universe=universe)

    def _judged(self, call: Call) -> tuple[str, Expression]:
        """The SQL type of an aggregate, and what is known of it."""
        name, several = call.name, len(call.arguments) > 1 + (call.name == "quantile_cont")
        is_known = name in EXACT or name in SORTED
        if not is_known or several or any(call.names) or call.ordered or (call.distinct and name != "count"):
            raise ParameterError(
                f"{heading(call)} of the rows of one person is not understood: use COUNT, SUM, AVG, MIN, MAX, MEDIAN, "
                "QUANTILE_CONT, VARIANCE, STDDEV, BOOL_OR or BOOL_AND, which do not depend on the order of rows."
            )
        given = call.condition is not None and condition(call.condition, self.plain).given
        shown = Expression("", NUMBER, given=given, shown=heading(call))
        if name == "count_star" or not call.arguments:
            if name not in ("count", "count_star"):
                raise ParameterError(f"{heading(call)} needs an argument.")
            return "BIGINT", shown
        value = named(call.arguments[0], self.arguments)
        shown = replace(shown, given=given or value.given, kind=value.kind)
        if name in ("count_if", "countif", "bool_or", "bool_and"):
            truth(value, heading(call))
            return "BIGINT" if name.startswith("count") else "BOOLEAN", shown
        if name == "count":
            if call.distinct:
                (sql_type,) = types(self.base.source.columns, [value], value.given)
                typed_key(value, sql_type, (f"of {heading(call)}",), "the argument")
            return "BIGINT", shown
        if name in ("min", "max"):
            if value.kind not in ENDS:
                raise ParameterError(f"{name} of {value.kind} is not understood: make text, numbers or dates of it.")
            return ENDS[value.kind], replace(shown, range=value.range)
        if value.kind != NUMBER:
            raise ParameterError(f"{heading(call)} needs numbers.")
        if name == "quantile_cont":
            _check_quantile(call)
        elif name not in SORTED and not _is_whole(value, self.base.source) and value.range.universe is None:
            raise ParameterError(
                f"{heading(call)} adds floats, and their sum depends in its last digits on the order of the rows, "
                "which others decide. Pass the bounds of one row, by which it is rounded to a grid, or add whole "
                "numbers, as in SUM(CAST(round(100 * x) AS BIGINT))."
            )
        ranged = value.range if name in ("avg", "mean", "median", "quantile_cont") else shown.range
        return "DOUBLE", replace(shown, range=ranged, kind=NUMBER)


def _is_whole(value: Expression, source: Source) -> bool:
    """Whether numbers are added exactly as they are."""
    if value.column in source.whole:
        return True
    if value.span is not None:
        return BIGINT[0] <= value.span[0] and value.span[1] <= BIGINT[1] and not value.wide
    matched = re.fullmatch(r"DECIMAL\((\d+),\d+\)", value.type)
    return matched is not None and int(matched[1]) <= 18


def _check_quantile(call: Call) -> None:
    """Refuse a quantile that is no constant from 0 to 1."""
    match call.arguments[1:]:
        case (Constant(int() | float() | Decimal() as q),) if not isinstance(q, bool) and 0 <= q <= 1:
            return
    raise ParameterError(f"{heading(call)} takes a column and a number from 0 to 1, as in quantile_cont(days, 0.9).")
