"""GROUP BY the person inside FROM: exact aggregates of the rows of one person, which stay inside.

    rows of a person ──> groups, aggregates as columns of a source ──> SELECT list and HAVING, row by row over it

Nothing here may depend on the order of rows, since that depends on other people: sums are sums of whole numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pdrisk._model.kinds import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk._model.nodes import Call, Column, Constant, Node, Window, below, mapped
from pdrisk._sql.expressions.judged_expressions import text, truth
from pdrisk._sql.owners import Owners
from pdrisk._sql.relations.dry_run import types
from pdrisk._sql.relations.group_keys import typed_key
from pdrisk._sql.relations.row_scope import Condition, Relation, Rows, aliases_of, column_of, condition, named, starred
from pdrisk._sql.relations.written_out import unused, written_out
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import BIGINT, Expression, lowered, quoted
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.sources import Sources
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect
from pdrisk.engines.sql.summary.person_rows import number_of_rows
from pdrisk.errors import ParameterError

__all__ = ["aggregates_rows", "by_person", "grouped_by_person", "positional"]

EXACT = frozenset(
    {"count", "count_star", "count_if", "countif", "sum", "avg", "mean", "min", "max", "bool_or", "bool_and"}
)
SORTED = frozenset(
    {"median", "quantile_cont", "var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev"}
)
LARGEST_SQUARED = 1e150  # farther numbers are moved there, so that no spread overflows
DIALECT = DuckDBDialect()
CALL = DIALECT.call


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
    """Whether the groups of a SELECT belong to single people: all id columns are among them."""
    rows = Rows(relation, aliases_of(select))
    found = {value.column for _, value in _groups(select, relation, rows)}
    return select.sets is None and bool(owners.key) and set(owners.key) <= found


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
    found: list[tuple[str, Expression]] = []
    for node in nodes:
        if isinstance(node, Star):
            found += starred(node, *relation.starred(node.table), lambda each: named(each, rows))
        else:
            found.append((node.name if isinstance(node, Column) else heading(node), named(node, rows)))
    return list({value.sql: (label, value) for label, value in found if not value.constant}.values())


def grouped_by_person(select: Select, relation: Relation, sources: Sources) -> Relation:
    """Relation of a SELECT that groups by the person, and by more if it likes.

    Raises
    ------
    ParameterError
        If it groups by less than what says who a person is, or aggregates what depends on the order of rows.
    """
    if select.where is not None:
        kept = condition(select.where, Rows(relation, aliases_of(select)))
        relation = replace(relation, where=(*relation.where, kept))
    base = written_out(relation, sources, set())
    owners = base.owners
    assert owners is not None
    if owners.is_public or not by_person(select, base, owners):
        word = "DISTINCT" if select.distinct else "GROUP BY"
        raise ParameterError(
            f"{word} in a subquery, CTE or view makes its records depend on each other, unless the records are those "
            f"of single people: group by {' and '.join(owners.key) or 'the person'}, as it is stored, and by whatever "
            "else you need. Over public tables, make a table of it first."
        )
    if select.distinct and (select.groups != () or any(map(_is_aggregate, _nodes(select)))):
        raise ParameterError("SELECT DISTINCT beside GROUP BY or aggregates is refused in a subquery: leave one out.")
    return _Grouped(select, base, sources).relation()


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
    listed: list[str] = field(default_factory=list)
    labels: dict[str, Expression] = field(default_factory=dict)  # by the name of a column: kind, shown, range
    aggregates: dict[str, str] = field(default_factory=dict)  # names by SQL

    def __post_init__(self) -> None:
        self.plain = Rows(self.base, {})
        self.rows = Rows(self.base, aliases_of(self.select))
        self.by: dict[str, str] = {}  # names of groups by the SQL that they are of
        self.keyed: list[str] = []
        for label, value in _groups(self.select, self.base, self.rows):
            self._add_group(label, value)

    def _add_group(self, label: str, value: Expression) -> None:
        assert self.base.owners is not None
        name = unused(label, (), self.taken)
        source = self.base.source
        if value.column in self.base.owners.key:
            sql, sql_type = quoted(str(value.column)), source.columns[str(value.column)]
        else:
            (found,) = types(source, [value], value.given)
            group = typed_key(value, found, (label,), "GROUP BY of a subquery:")
            sql, sql_type = group.key_sql, group.type
        self.by[value.sql] = name
        self.keyed.append(sql)
        self._add(name, sql, sql_type, value)

    def _add(self, name: str, sql: str, sql_type: str, value: Expression) -> None:
        self.columns[name] = sql_type
        self.labels[name] = value
        self.listed.append(f"{sql} AS {quoted(name)}")

    def relation(self) -> Relation:
        """The SELECT list over groups and aggregates."""
        owners, base = self.base.owners, self.base
        assert owners is not None
        items: list[tuple[str, Node]] = []
        for item, alias in self.select.items:
            if isinstance(item, Star):
                found = starred(item, *base.starred(item.table), lambda each: named(each, self.rows))
                items += [(label, self._group(value.sql, label)) for label, value in found]
            else:
                label = alias or (item.name if isinstance(item, Column) else heading(item))
                items.append((label, self.rewritten(item)))
        having = None if self.select.having is None else self.rewritten(self.select.having)
        by = ", ".join(self.keyed)
        sql = f"(SELECT {', '.join(self.listed)} FROM {base.source.sql} AS rows_of_people GROUP BY {by}) AS of_people"
        stated = {
            lowered(label): self.sources.stated[lowered(label)]
            for label in self.columns
            if lowered(label) in self.sources.stated
        }
        source = replace(
            base.source, sql=sql, columns=self.columns, untyped=frozenset(), whole=frozenset(), is_table=False,
            declared=replace(base.source.declared, own=(), schema=()), stated=stated,
        )  # fmt: skip
        columns = []
        for name, value in self.labels.items():
            new = column_of(name, self.columns[name], source)
            columns.append((name, replace(new, shown=value.shown, given=value.given, range=value.range)))
        place = {str(value.column): name for name, value in self.labels.items() if name in self.by.values()}
        key = tuple(place[each] for each in owners.key)
        extra = tuple(name for name in self.by.values() if name not in key)
        if extra:
            whole = Owners(key, owners.most, extra)
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
            raise ParameterError("window functions (OVER) beside GROUP BY in a subquery are refused.")
        return mapped(node, lambda each: self.rewritten(each, seen))

    def _group(self, sql: str, label: str) -> Node:
        if sql not in self.by:
            raise ParameterError(f"column {label!r} is neither aggregated nor in GROUP BY.")
        return Column(self.by[sql])

    def _aggregate(self, call: Call) -> str:
        """The name of the column of an aggregate."""
        sql, sql_type, shown = self._exact(call)
        if sql not in self.aggregates:
            name = unused(heading(call), (), self.taken)
            self.aggregates[sql] = name
            self._add(name, sql, sql_type, shown)
        return self.aggregates[sql]

    def _exact(self, call: Call) -> tuple[str, str, Expression]:
        """An aggregate as SQL, its type, and its text."""
        name, several = call.name, len(call.arguments) > 1 + (call.name == "quantile_cont")
        is_known = name in EXACT or name in SORTED
        if not is_known or several or any(call.names) or call.ordered or (call.distinct and name != "count"):
            raise ParameterError(
                f"{heading(call)} of the rows of one person is not understood: use COUNT, SUM, AVG, MIN, MAX, MEDIAN, "
                "QUANTILE_CONT, VARIANCE, STDDEV, BOOL_OR or BOOL_AND, which do not depend on the order of rows."
            )
        filtered = None if call.condition is None else condition(call.condition, self.plain)
        kept = [] if filtered is None else [filtered.sql]
        given = filtered is not None and filtered.given
        shown = Expression("", NUMBER, given=given, shown=heading(call))
        if name == "count_star" or not call.arguments:
            if name not in ("count", "count_star"):
                raise ParameterError(f"{heading(call)} needs an argument.")
            return self._count(kept), "BIGINT", shown
        value = named(call.arguments[0], self.plain)
        shown = replace(shown, given=given or value.given, kind=value.kind)
        if name in ("count_if", "countif", "bool_or", "bool_and"):
            value = truth(value, heading(call))
            if name.startswith("count"):
                return self._count([*kept, value.condition]), "BIGINT", shown
            return CALL(name, _if(kept, value.sql)), "BOOLEAN", shown
        kept.append(value.present)
        if name == "count":
            if not call.distinct:
                return self._count(kept), "BIGINT", shown
            (sql_type,) = types(self.base.source, [value], value.given)
            different = _if(kept, typed_key(value, sql_type, (f"of {heading(call)}",), "the argument").key_sql)
            return f"CAST({CALL('count', f'DISTINCT {different}')} AS BIGINT)", "BIGINT", shown
        if name in ("min", "max"):
            return *self._end(name, value, kept), replace(shown, range=value.range)
        ranged = value.range if name in ("avg", "mean", "median", "quantile_cont") else shown.range
        if name in SORTED:
            return self._of_sorted(call, value, kept), "DOUBLE", replace(shown, range=ranged, kind=NUMBER)
        return self._sum(call, value, kept), "DOUBLE", replace(shown, range=ranged, kind=NUMBER)

    def _count(self, kept: list[str]) -> str:
        what = CALL("count_star") if not kept else CALL("count", _if(kept, "1"))
        return f"CAST({what} AS BIGINT)"

    def _end(self, name: str, value: Expression, kept: list[str]) -> tuple[str, str]:
        """Smallest or largest value, with -0 as 0."""
        if value.kind == NUMBER and value.span is None:
            return CALL(name, _if(kept, CALL("+", value.double, "CAST(0 AS DOUBLE)"))), "DOUBLE"
        if value.kind == NUMBER:
            return f"CAST({CALL(name, _if(kept, value.wide or value.sql))} AS DOUBLE)", "DOUBLE"
        kinds = {TEXT: "VARCHAR", DATE: "DATE", TIME: "TIMESTAMP", TRUTH: "BOOLEAN"}
        if value.kind not in kinds:
            raise ParameterError(f"{name} of {value.kind} is not understood: make text, numbers or dates of it.")
        return CALL(name, _if(kept, f"CAST({value.sql} AS {kinds[value.kind]})")), kinds[value.kind]

    def _of_sorted(self, call: Call, value: Expression, kept: list[str]) -> str:
        """Quantile or spread of sorted values as DOUBLE, so that the order of rows changes no digit."""
        if value.kind != NUMBER:
            raise ParameterError(f"{heading(call)} needs numbers.")
        one = _if(kept, CALL("+", value.double, "CAST(0 AS DOUBLE)"))  # of -0 and 0 one
        if call.name == "median":
            return CALL("quantile_cont", one, "0.5")
        if call.name == "quantile_cont":
            return CALL("quantile_cont", one, _checked_quantile(call))
        listed = CALL("list", DIALECT.clamped(one, DIALECT.number(-LARGEST_SQUARED), DIALECT.number(LARGEST_SQUARED)))
        return CALL("list_aggregate", CALL("list_sort", listed, "'ASC'", "'NULLS LAST'"), f"'{call.name}'")

    def _sum(self, call: Call, value: Expression, kept: list[str]) -> str:
        """Sum or mean that the order of rows changes in no digit."""
        if value.kind != NUMBER:
            raise ParameterError(f"{heading(call)} needs numbers.")
        source, way = self.base.source, "sum" if call.name == "sum" else "mean"
        whole = None
        if value.column in source.whole:
            whole = quoted(str(value.column))
        elif value.span is not None and BIGINT[0] <= value.span[0] and value.span[1] <= BIGINT[1] and not value.wide:
            whole = value.sql
        elif matched := re.fullmatch(r"DECIMAL\((\d+),\d+\)", value.type):
            whole = value.sql if int(matched[1]) <= 18 else None
        if whole is not None:
            one = _if(kept, whole)
            cast = "" if value.type.startswith("DECIMAL") else "HUGEINT"
            total = f"CAST({CALL('sum', f'CAST({one} AS {cast})' if cast else one)} AS DOUBLE)"
            return total if way == "sum" else CALL("/", total, f"CAST({CALL('count', one)} AS DOUBLE)")
        universe = value.range.universe
        if universe is None:
            raise ParameterError(
                f"{heading(call)} adds floats, and their sum depends in its last digits on the order of the rows, "
                "which others decide. Pass the bounds of one row, by which it is rounded to a grid, or add whole "
                "numbers, as in SUM(CAST(round(100 * x) AS BIGINT))."
            )
        return number_of_rows(way, _if(kept, value.double), universe, DuckDBDialect())


def _if(kept: list[str], value: str) -> str:
    return f"CASE WHEN {' AND '.join(kept)} THEN {value} END" if kept else value


def _checked_quantile(call: Call) -> str:
    """The quantile of a call, a constant."""
    match call.arguments[1:]:
        case (Constant(int() | float() | Decimal() as q),) if not isinstance(q, bool) and 0 <= q <= 1:
            return DIALECT.number(float(q))
    raise ParameterError(f"{heading(call)} takes a column and a number from 0 to 1, as in quantile_cont(days, 0.9).")
