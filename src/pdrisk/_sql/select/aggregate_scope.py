"""The scope of SELECT, HAVING and ORDER BY: groups by what they are made of, aggregates as columns of noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pdrisk._core.foreign import shown
from pdrisk._core.statistics import WholeStatistic
from pdrisk._core.universe import Days, Universe
from pdrisk._model.arguments import universe
from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.kinds import DATE, NUMBER, TIME, kind_within
from pdrisk._model.expressions.nearest import unknown_column
from pdrisk._model.expressions.nodes import Call, Column, Constant, Node, Operation, Window, below, in_days
from pdrisk._model.query import UNIT
from pdrisk._sql.expressions.judged_expressions import text
from pdrisk._sql.noisy.noisy_scope import Computed, column_of
from pdrisk._sql.noisy.uncut import arithmetic
from pdrisk._sql.relations.group_by_person import positional
from pdrisk._sql.relations.group_keys import Grouping, typed_key
from pdrisk._sql.relations.row_scope import Condition, Relation, Rows, condition, named, within_where
from pdrisk._sql.select.argument_bounds import bounds_of_argument, name_in, unrounded
from pdrisk._sql.syntax.aggregate_functions import AGGREGATES, Asked, asked, asked_of_two, check_dates
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import TYPES, Expression, lowered, number
from pdrisk._sql.syntax.ranges import ANYTHING, Range, range_of
from pdrisk._sql.syntax.refusals import not_grouped
from pdrisk._sql.syntax.tree import Select, Star
from pdrisk._sql.tables.settings import Settings
from pdrisk._sql.text.dry_run import types
from pdrisk.errors import ParameterError

COUNTS = frozenset({"count", "dp_count"})
EXACT = frozenset({"UUID", "UBIGINT", "HUGEINT", "UHUGEINT"})  # types of ids, of which each value is one
WITHIN_RANGE = frozenset({"mean", "median", "quantile", "min", "max"})  # statistics that are bounded as the values are


@dataclass(frozen=True, slots=True)
class Noted:
    """Release that a query asks for, with the aggregate that asked first."""

    asked: Asked
    call: Call
    argument: Expression | None  # what is aggregated; None for COUNT(*)
    filtered: Condition | None  # its FILTER
    column: str | None  # how the argument is written
    # `other`, `other_column`: the same of a second argument
    other: Expression | None = None
    other_column: str | None = None
    whole: bool = False  # whether the argument is a whole number by what it is made of

    @property
    def values(self) -> str | None:
        """The exact values that are read; None for COUNT(*) of all."""
        read = [expression.sql for expression in (self.argument, self.other) if expression is not None]
        argument = ", ".join(read) or None
        filtered = None if self.filtered is None else f"FILTER {self.filtered.node!r}"
        return " ".join(filter(None, (argument, filtered))) or None

    @property
    def given(self) -> bool:
        """Whether a parameter's value decides what is read."""
        return any(part is not None and part.given for part in (self.argument, self.other, self.filtered))


@dataclass
class Answers:
    """Scope of SELECT, HAVING and ORDER BY."""

    relation: Relation
    select: Select
    bounds: Mapping[str, Universe] | Universe | None  # what the caller passed, by lower-case name where it is a dict
    # The releases met so far: an aggregate is the column ``v0``, ``v1``, ... of the noisy table.
    noted: list[Noted] = field(default_factory=list)
    ordering: bool = False  # whether this is ORDER BY, where an alias goes before a column
    windows: Computed = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    mechanism: str = "auto"  # as the caller passed it
    of_people = False
    untyped = frozenset[str]()
    numbers = frozenset[str]()
    zone = ""

    def __post_init__(self) -> None:
        named = {lowered(alias): item for item, alias in self.select.items if alias and not isinstance(item, Star)}
        self.aliases: Mapping[str, Node] = named
        self.alias_of = {id(unrounded(item)): alias for alias, item in reversed(named.items())}  # by identity
        self.rows = Rows(self.relation, named)
        self.plain_rows = Rows(self.relation, {})
        self.places: dict[Asked, int] = {}
        self.place_of: dict[int, int] = {}  # by the identity of the call in the query
        self.lists: dict[int, list[Call]] = {}  # of quantiles, likewise
        self.given = False  # whether the value of a parameter is in a group
        self.groups = self._groups()

    def known(self, node: Node) -> Expression | None:
        """A group, an aggregate or an alias; an error for any other column."""
        if isinstance(node, Constant):
            return None
        alias = lowered(node.name) if isinstance(node, Column) and not node.qualifiers else ""
        if self.ordering and alias in self.aliases:
            return self._aliased(alias)
        if isinstance(node, Call) and node.name in AGGREGATES:
            return self._several(node) or self._released(node)
        group = self._group(node)
        if group is None and isinstance(node, Column):
            if alias in self.aliases and self.aliases[alias] != node:
                return self._aliased(alias)
            self.plain_rows.column(node)  # an unknown name is said to be one
            raise not_grouped(node)
        return arithmetic(node, self) if group is None else group

    def order(self, how: str) -> str:
        """The words after an item of ORDER BY, written out."""
        return self.settings.order(how)

    def windowed(self, expression: Expression) -> Expression:
        """A window over noisy values, as a column."""
        return column_of(expression, "w", self.windows)

    def names(self) -> list[str]:
        """Names of the releases: those of SELECT items that are a release, else the aggregate as written."""
        names = [heading(noted.call) for noted in self.noted]
        for item, alias in reversed(self.select.items):  # the first of several aliases
            if isinstance(item, Call) and item.name in AGGREGATES and alias and id(item) not in self.lists:
                names[self._place(item)] = alias
        return names

    def _aliased(self, alias: str) -> Expression:
        inner = self.aliases[alias]
        hidden, ordering = self.aliases, self.ordering
        # Without itself, so that no alias can stand for itself.
        self.aliases, self.ordering = {name: node for name, node in hidden.items() if name != alias}, False
        try:
            return text(inner, self)
        finally:
            self.aliases, self.ordering = hidden, ordering

    def _group(self, node: Node) -> Expression | None:
        if not self.groups or _aggregates(node):
            return None
        try:
            sql = text(node, self.plain_rows).sql
        except ParameterError:
            return None
        for at, group in enumerate(self.groups):
            if group.sql == sql:
                return (
                    number(f"k{at}", group.type)
                    if group.kind == NUMBER
                    else Expression(f"k{at}", group.kind, group.type)
                )
        return None

    def _groups(self) -> list[Grouping]:
        select = self.select
        if select.groups is None:
            nodes = [item for item, _ in select.items if not isinstance(item, Star) and not _aggregates(item)]
        else:
            nodes = [positional(node, select) for node in select.groups]
        grouped: list[tuple[Node, Expression]] = []
        for node in nodes:
            value = named(node, self.rows)
            if self._is_constant(node):  # of which there is one group
                continue
            self.given = self.given or value.given
            if all(value.sql != other.sql for _, other in grouped):
                grouped.append((node, value))
        if not grouped:
            return []
        sql_types = types(self.relation.source.columns, [value for _, value in grouped], select.has_parameters)
        return [
            replace(typed_key(value, sql_type, self._group_names(node, value)), node=node)
            for (node, value), sql_type in zip(grouped, sql_types, strict=True)
        ]

    def _is_constant(self, node: Node, aliases: frozenset[str] = frozenset()) -> bool:
        """Whether an expression of GROUP BY, aliases resolved, reads no column."""
        labels = {lowered(label) for label, _ in self.relation.columns}
        for part in below(node):
            if not isinstance(part, Column):
                continue
            name = lowered(part.name)
            if part.qualifiers or name in labels or name not in self.aliases or name in aliases:
                return False
            if not self._is_constant(self.aliases[name], aliases | {name}):
                return False
        return True

    def _group_names(self, node: Node, value: Expression) -> tuple[str, ...]:
        aliases = []
        for item, alias in self.select.items:
            if alias and not isinstance(item, Star) and not _aggregates(item):
                aliases += [alias] * (_row_text(item, self.rows) == value.sql)
        columns = [label for label, column in self.relation.columns if column.sql == value.sql]
        stored = [] if value.column is None else [self.relation.source.called.get(value.column, value.column)]
        return tuple(dict.fromkeys([*aliases, heading(node), *columns, *stored]))

    def _released(self, call: Call) -> Expression:
        place = self._place(call)
        one = self.noted[place].asked
        if (kind := kind_within(one.universe)) != NUMBER:
            return Expression(f"v{place}", kind, TYPES[kind])
        lies, counts = ANYTHING, False
        if self.mechanism != "laplace":  # which is never cut
            counts = isinstance(one.statistic, WholeStatistic)
            least, most = one.statistic.value_range(one.universe or UNIT)
            lies = Range(float(least), float(most))
        sql, uncut = f"v{place}", f"u{place}"
        return Expression(sql, NUMBER, "DOUBLE", range=lies, uncut=uncut, counts=counts, tree=("column", uncut))

    def _several(self, call: Call) -> Expression | None:
        """A list of quantiles, each of which is a release."""
        if AGGREGATES[call.name].statistic != "quantile" or len(call.arguments) < 2:
            return None
        listed = call.arguments[1]
        if not isinstance(listed, Call) or listed.name != "list_value" or not listed.arguments:
            return None
        if id(call) not in self.lists:
            rest = call.arguments[2:]
            self.lists[id(call)] = [
                replace(call, arguments=(call.arguments[0], argument, *rest)) for argument in listed.arguments
            ]
        places = [self._place(quantile) for quantile in self.lists[id(call)]]
        return Expression(f"system.main.list_value({', '.join(f'v{place}' for place in places)})", "lists")

    def _place(self, call: Call) -> int:
        """Position of an aggregate among the releases; equal aggregates share one."""
        if id(call) in self.place_of:
            return self.place_of[id(call)]
        if AGGREGATES[call.name].columns == 2:
            return self._place_of_two(call)
        original, call = call, counting(call)
        node = (
            None
            if call.name.endswith("_star") or not call.arguments or (call.names and call.names[0])
            else call.arguments[0]
        )
        filtered = None if call.condition is None else condition(call.condition, self.rows)
        rows = self._kept(filtered, counts=call.name in COUNTS)
        value, kind = None if node is None else named(node, rows), NUMBER
        if node is not None and value is not None and value.kind in (DATE, TIME) and _within_range(call):
            value, kind = named(in_days(node, times=value.kind == TIME), rows), value.kind
        kept = None if filtered is None else repr(filtered.node)
        different = AGGREGATES[call.name].statistic == "nunique" or (call.distinct and call.name in COUNTS)
        is_key = different and value is not None
        if is_key and value is not None:
            self._check_key(value, heading(call))
        one = asked(call, value, kept, lambda: self._bounds(call, node, value, self._alias(original), kind), is_key)
        if one.statistic.bounded:
            check_dates(heading(call), one.universe, kind)
        if isinstance(one.universe, Days):
            one = replace(one, universe=replace(one.universe, times=kind == TIME))
        if one.statistic.bounded and value is not None:
            self.relation.source.known(value.column).narrowed(one.universe)
        # Of an expression whose bounds nobody wrote: those of a stored column are for its schema to tell.
        made = value is not None and value.column is None and value.span is not None
        whole = made and one.bounds_from in ("declared", "where")
        return self._noted(Noted(one, original, value, filtered, None if node is None else heading(node), whole=whole))

    def _kept(self, filtered: Condition | None, *, counts: bool = False) -> Rows:
        """Scope of the records that a FILTER keeps; ``counts``: for an aggregate that needs no bounds."""
        given = self.bounds if isinstance(self.bounds, Mapping) else ()
        kept = self.relation if filtered is None else within_where(self.relation, [filtered], given)
        return Rows(kept, self.rows.aliases, reads_ranges=not counts)

    def _check_key(self, value: Expression, shown: str) -> None:
        """Refuse to count different values of a type that no groups have."""
        (sql_type,) = types(self.relation.source.columns, [value], self.select.has_parameters)
        if value.column is None or sql_type not in EXACT:
            typed_key(value, sql_type, (f"of {shown}",), "the argument")

    def _place_of_two(self, call: Call) -> int:
        """Position of an aggregate of two columns among the releases."""
        nodes = call.arguments[:2]
        filtered = None if call.condition is None else condition(call.condition, self.rows)
        values = [named(node, self._kept(filtered)) for node in nodes]

        def bounds(at: int) -> tuple[Universe, Source]:
            interval, source = self._bounds(call, nodes[at], values[at])
            self.relation.source.known(values[at].column).narrowed(interval)
            return interval, source

        one = asked_of_two(call, values, None if filtered is None else repr(filtered.node), bounds)
        first, second = map(heading, nodes)
        return self._noted(Noted(one, call, values[0], filtered, first, values[1], second))

    def _alias(self, call: Call) -> str:
        """Alias in SELECT of an aggregate that lies in the range of its values, rounded or not."""
        alias = self.alias_of.get(id(call), "")
        is_column = any(lowered(label) == alias for label, _ in self.relation.columns) if alias else False
        return alias if _within_range(call) and not is_column else ""

    def _bounds(
        self, call: Call, node: Node | None, value: Expression | None, alias: str = "", kind: str = NUMBER
    ) -> tuple[Universe, Source]:
        if isinstance(self.bounds, Mapping) and (name := name_in(self.bounds, node, alias)) is not None:
            return self.bounds[name], "given"
        return bounds_of_argument(call, node, value, self.bounds, self.relation.source, kind)

    def _noted(self, noted: Noted) -> int:
        """Position of a release, which is added if it is new."""
        if noted.asked not in self.places:
            self.places[noted.asked] = len(self.noted)
            self.noted.append(noted)
        self.place_of[id(noted.call)] = self.places[noted.asked]
        return self.places[noted.asked]


def counting(call: Call) -> Call:
    """COUNT_IF as COUNT(*) with a FILTER; other aggregates unchanged."""
    if call.name not in ("count_if", "countif") or len(call.arguments) != 1 or call.distinct or any(call.names):
        return call
    holds = call.arguments[0]
    return Call(
        "count_star", (), condition=holds if call.condition is None else Operation("and", (call.condition, holds))
    )


def _within_range(call: Call) -> bool:
    """Whether an aggregate lies in the range of its values."""
    return AGGREGATES[call.name].statistic in WITHIN_RANGE


def _row_text(node: Node, rows: Rows) -> str | None:
    try:
        return text(node, rows).sql
    except ParameterError:
        return None


def _aggregates(node: Node) -> bool:
    """Whether an expression contains aggregates; a window always does, since it may stand over nothing else."""
    return any(isinstance(part, Window) or (isinstance(part, Call) and part.name in AGGREGATES) for part in below(node))


def checked_bounds(bounds: object) -> Mapping[str, Universe] | Universe | None:
    """The caller's bounds, by lower-case name where they are a dict."""
    if bounds is None:
        return None
    if isinstance(bounds, str):
        raise ParameterError(
            f"bounds must be (lo, hi) or a dict from column to (lo, hi), but are {shown(bounds)}. Bounds from the data "
            '("column") are for the accessor, df.dprisk.'
        )
    if not isinstance(bounds, Mapping):
        return universe(bounds, dates=True)
    for name in bounds:
        if not isinstance(name, str):
            raise unknown_column(name, ())
    return {lowered(name): universe(pair, dates=True) for name, pair in bounds.items()}


def bounded(relation: Relation, bounds: Mapping[str, Universe] | Universe | None) -> Relation:
    """The relation with the caller's bounds as the ranges of its columns, and of those of the source.

    A name that FROM gives to something else than the source's own column is that of FROM.
    """
    if not isinstance(bounds, Mapping):
        return relation
    other = {lowered(label) for label, value in relation.columns if lowered(value.column or "") != lowered(label)}
    taken = other & set(bounds)
    columns = []
    for label, value in relation.columns:
        name = lowered(label)
        if name in bounds:
            check_dates(label, bounds[name], value.kind)
            value = replace(value, range=range_of(bounds[name], name))
        elif value.range.columns & taken:
            value = replace(value, range=ANYTHING)
        columns.append((label, value))
    stated = {name: interval for name, interval in relation.source.stated.items() if name not in taken}
    return replace(relation, columns=tuple(columns), source=replace(relation.source, stated=stated))
