"""Writer of a SELECT as text of DuckDB, of tables that nobody is in: what it does not know surely, it refuses.

A name means what it means to the engine that the query was written for: where DuckDB would look for it in another
place, the query is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pdrisk._model.expressions.nodes import Call, Case, Cast, Column, Constant, Node, Operation, Window
from pdrisk._sql.expressions.allowed_functions import FUNCTIONS
from pdrisk._sql.expressions.duckdb_casts import type_of_cast
from pdrisk._sql.expressions.duckdb_dates import INTERVALS, interval
from pdrisk._sql.expressions.judged_expressions import bucketed
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import INTEGERS, case, lowered, operation, quoted, written_constant
from pdrisk._sql.syntax.tree import (
    From,
    Join,
    Membership,
    Nothing,
    Order,
    Select,
    Star,
    Subquery,
    Table,
    Union,
)
from pdrisk._sql.text.names_in_select import Copies, Ctes, Level, columns_of, is_a_cte, renamed, tables_in, unsure


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPERATIONS: Final = _names("and or not isna notna in between coalesce == != < <= > >= + - * / %") | {
    "unary -", "unary +", "is distinct from", "is not distinct from",
}  # fmt: skip
AGGREGATES: Final = _names(
    "count sum avg min max median quantile_cont quantile_disc stddev stddev_samp stddev_pop variance var_samp var_pop "
    "corr covar_samp covar_pop regr_slope bool_and bool_or count_if"
)
WINDOWS: Final = _names(
    "row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value"
)
#: Functions of `FUNCTIONS` on whose results, or failures, engines and DuckDB differ.
UNSURE: Final = _names(
    "// ** ^ fmod strlen reverse strptime try_strptime time_bucket yearweek regexp_extract regexp_replace "
    "regexp_matches regexp_full_match dayname monthname"
)
TEXTS: Final = _names("lower upper trim ltrim rtrim left right substring replace lpad rpad split_part strftime")
#: Columns that every table of an engine has, though no catalog lists them.
HIDDEN: Final = _names("rowid ctid oid tableoid xmin xmax cmin cmax _metadata")


@dataclass(frozen=True, slots=True)
class Written:
    """Text of DuckDB."""

    sql: str
    named: set[str]  # the columns that it names, in lower case
    whole: set[str]  # the names of copies of which it reads all columns


def written_for_duckdb(select: Select, copies: Copies) -> Written:
    """The SELECT as DuckDB's text.

    ``select``: as `StatementsOfNobody` reads it.
    ``copies``: gives the copy of a table by its path.
    """
    writer = _Writer(copies)
    return Written(writer.select(select, {}, (), is_whole=True), writer.named, writer.whole)


class _Writer:
    def __init__(self, copies: Copies) -> None:
        self.copies = copies
        self.named: set[str] = set()
        self.whole: set[str] = set()

    def select(self, select: Select, ctes: Ctes, levels: tuple[Level, ...], *, is_whole: bool = False) -> str:
        """A SELECT within others, from the innermost on; ``is_whole`` gives each column a heading."""
        known, written = dict(ctes), []
        for name, cte in select.ctes.items():
            inner = self.select(cte.select, known, levels)
            listed = f" ({', '.join(map(quoted, cte.columns))})" if cte.columns else ""
            written.append(f"{quoted(lowered(name))}{listed} AS ({inner})")
            known[lowered(name)] = renamed(columns_of(cte.select, known, self.copies), cte.columns)
        source, level = self._from(select, known, levels)
        inside = _At(self, known, (level, *levels))
        items = ", ".join(inside.item(item, alias, is_whole) for item, alias in select.items)
        parts = [f"WITH {', '.join(written)}"] if written else []
        parts += [f"SELECT {'DISTINCT ' * select.distinct}{items}", source]
        conditions = [] if select.where is None else [inside.node(select.where)]
        conditions += [inside.membership(member) for member in select.members]
        parts += [f"WHERE {' AND '.join(conditions)}"] if conditions else []
        parts += inside.grouped(select)
        parts += [f"HAVING {inside.node(select.having)}"] if select.having is not None else []
        if select.qualify is not None:
            unsure("QUALIFY")
        if select.order:
            parts.append(
                f"ORDER BY {', '.join(inside.order(ordering, len(select.items)) for ordering in select.order)}"
            )
        for word, node in (("LIMIT", select.limit), ("OFFSET", select.offset)):
            if node is not None and (not isinstance(node, Constant) or type(node.value) is not int or node.value < 0):
                unsure(word)
            parts += [] if node is None else [f"{word} {inside.node(node)}"]
        return " ".join(filter(None, parts))

    def _from(self, select: Select, ctes: Ctes, levels: tuple[Level, ...]) -> tuple[str, Level]:
        aliases = {lowered(alias): item for item, alias in select.items if alias and not isinstance(item, Star)}
        level = Level(tuple(tables_in(select.source, ctes, self.copies)), aliases)
        if isinstance(select.source, Nothing):
            return "", level
        starred = frozenset(lowered(item.table) for item, _ in select.items if isinstance(item, Star))
        return f"FROM {self._source(select.source, ctes, (level, *levels), starred)}", level

    def _source(self, item: From, ctes: Ctes, levels: tuple[Level, ...], starred: frozenset[str]) -> str:
        """An item of FROM; ``levels`` begin with that of its SELECT, which subqueries do not see.

        ``starred`` are the names of tables before ``*``, "" for all.
        """
        match item:
            case Join(left, right, how, condition, using):
                sides = [self._source(side, ctes, levels, starred) for side in (left, right)]
                sides[1] = f"({sides[1]})" if isinstance(right, Join) else sides[1]
                joined = f"{sides[0]} {how} JOIN {sides[1]}"
                if using:
                    self.named.update(map(lowered, using))
                    return f"{joined} USING ({', '.join(map(quoted, using))})"
                return joined if condition is None else f"{joined} ON {_At(self, ctes, levels).node(condition)}"
            case Union(parts, None):
                inner = " UNION ALL ".join(f"({self.select(part, ctes, levels[1:])})" for part in parts)
                return f"({inner}) AS {quoted('all parts')}"
            case Subquery(select, alias, columns):
                return f"({self.select(select, ctes, levels[1:])}){_called(alias or 'a subquery', columns)}"
            case Table(path, alias, columns):
                is_cte = is_a_cte(path, ctes)
                name = quoted(lowered(path[0])) if is_cte else self.copies(path).name
                is_whole = columns or not starred.isdisjoint(("", lowered(alias or path[-1])))
                self.whole.update((name,) if is_whole and not is_cte else ())
                return f"{name}{_called(alias or path[-1], columns)}"
        return unsure("FROM")


@dataclass(frozen=True, slots=True)
class _At:
    """Place of an expression."""

    writer: _Writer
    ctes: Ctes
    levels: tuple[Level, ...]

    def item(self, item: Node | Star, alias: str, is_whole: bool) -> str:
        if isinstance(item, Star):
            if item.excluded or item.replaced:
                unsure("*")
            return f"{quoted(item.table)}.*" if item.table else "*"
        name = alias or (
            heading(item) if is_whole and isinstance(item, Call | Operation | Case | Cast | Window) else ""
        )
        return f"{self.node(item)} AS {quoted(name)}" if name else self.node(item)

    def grouped(self, select: Select) -> list[str]:
        """GROUP BY."""
        if select.groups is None:
            return ["GROUP BY ALL"]
        groups = [self._bare(node, is_order=False) or self.node(node) for node in select.groups]
        if select.sets is None:
            return [f"GROUP BY {', '.join(groups)}"] if groups else []
        sets = (f"({', '.join(groups[at] for at in places)})" for places in select.sets)
        return [f"GROUP BY GROUPING SETS ({', '.join(sets)})"]

    def order(self, order: Order, items: int) -> str:
        if order.item is None:
            unsure("ORDER BY ALL")
        if isinstance(order.item, Constant) and not (type(order.item.value) is int and 0 < order.item.value <= items):
            unsure("ORDER BY of a constant")
        bare = self._bare(order.item, is_order=True)
        if bare is None:
            for part in _below(order.item):
                if isinstance(part, Column) and not part.qualifiers and self._hides(part, self.levels[0]):
                    unsure(f"ORDER BY of an expression with the alias {part.name}")
        return f"{bare or self.node(order.item)} {order.how}"

    def _bare(self, node: Node, *, is_order: bool) -> str | None:
        """A name of an item of SELECT, alone in ORDER BY, or in GROUP BY where FROM has no such column."""
        if not isinstance(node, Column) or node.qualifiers or lowered(node.name) not in self.levels[0].aliases:
            return None
        self.writer.named.add(lowered(node.name))
        return quoted(node.name) if is_order or lowered(node.name) not in self.levels[0].columns else None

    def _hides(self, column: Column, level: Level) -> bool:
        """Whether an alias stands for something else than the column of its name."""
        aliased = level.aliases.get(lowered(column.name))
        return aliased is not None and not (
            isinstance(aliased, Column) and lowered(aliased.name) == lowered(column.name)
        )

    def _column(self, column: Column) -> str:
        name, *more = lowered(column.name), *column.qualifiers
        self.writer.named.add(name)
        if len(more) > 1:
            unsure(f"{column.path}, with a schema,")
        for level in () if more else self.levels:
            if name in level.columns:
                break
            if name in level.aliases or name in HIDDEN or any(name == table for table, _ in level.tables):
                unsure(f"the name {column.name}")
        return ".".join(map(quoted, (*more, column.name)))

    def membership(self, member: Membership) -> str:
        select = member.select
        if member.operand is None and all(isinstance(item, Star) for item, _ in select.items):
            select = replace(select, items=((Constant(1), ""),))
        inner = f"({self.writer.select(select, self.ctes, self.levels)})"
        if member.operand is None:
            return f"{'NOT ' * member.negated}EXISTS {inner}"
        return f"({self.node(member.operand)} {'NOT ' * member.negated}IN {inner})"

    def node(self, node: Any) -> str:
        """An expression."""
        match node:
            case Membership():
                return f"({self.membership(node)})"
            case Subquery(select):
                return f"({self.writer.select(select, self.ctes, self.levels)})"
            case Column():
                return self._column(node)
            case Constant(value):
                return written_constant(value)
            case Case(branches, otherwise):
                arms = [(self.node(when), self.node(then)) for when, then in branches]
                return f"({case(arms, self.node(otherwise))})"
            case Cast():
                return self._cast(node)
            case Window(function, partitions, order, frame):
                if function.name not in {"count_star", *WINDOWS, *AGGREGATES} or function.distinct:
                    unsure(function.name)
                by = f"PARTITION BY {', '.join(map(self.node, partitions))}" if partitions else ""
                sort = f"ORDER BY {', '.join(f'{self.node(key)} {how}' for key, how in order)}" if order else ""
                return f"{self._called(function)} OVER ({' '.join(filter(None, (by, sort, frame)))})"
            case Operation(symbol, parts) if symbol in OPERATIONS:
                return operation(symbol, list(map(self.node, parts)))
            case Call():
                return self._call(node)
        return unsure("an expression")

    def _call(self, call: Call) -> str:
        match call:
            case Call("if", (condition, then, otherwise)):
                return self.node(Case(((condition, then),), otherwise))
            case Call("width_bucket", (value, lo, hi, n)):
                return self.node(bucketed(value, lo, hi, n))
            case Call("list_value"):
                unsure("a list")
        if call.name in INTERVALS:
            return interval(call).sql
        if call.name in ("||", "concat") and not all(map(self._is_text, call.arguments)):
            unsure(f"{call.name} of what is no text")
        if call.name == "substring" and not all(_is_place(argument) for argument in call.arguments[1:]):
            unsure("substring from a place before the first")
        if call.name == "round" and len(call.arguments) == 1:
            unsure("round of a half")
        known = {"count_star", "nullif", "grouping", *AGGREGATES, *FUNCTIONS} - UNSURE
        if call.name not in known or (call.name not in AGGREGATES and (call.distinct or call.name == "any_value")):
            unsure(call.name)
        return self._called(call)

    def _called(self, call: Call) -> str:
        if call.ordered or any(call.names):
            unsure(call.name)
        arguments = list(map(self.node, call.arguments))
        if not call.name[0].isalpha():
            return operation(call.name, arguments)
        if call.name == "count_star":
            made = "count(*)"
        else:
            made = f"{quoted(call.name)}({'DISTINCT ' * call.distinct}{', '.join(arguments)})"
            made = made if call.name not in ("nullif", "grouping") else f"{call.name}({', '.join(arguments)})"
        return made if call.condition is None else f"{made} FILTER (WHERE {self.node(call.condition)})"

    def _cast(self, cast: Cast) -> str:
        if cast.to == "INTERVAL":
            return interval(cast).sql
        to = type_of_cast(cast.to)  # which refuses the casts of Spark that drop a fraction
        if to.startswith("VARCHAR") and not self._is_text(cast.operand):
            unsure("a cast to text")
        if to in INTEGERS and not self._is_text(cast.operand):
            unsure("a cast of a half to a whole number")
        return f"TRY_CAST({self.node(cast.operand)} AS {to})"

    def _is_text(self, node: Any) -> bool:
        """Whether it is surely a text or a whole number, which all engines write alike."""
        match node:
            case Constant(value):
                return value is None or isinstance(value, str) or type(value) is int
            case Column():
                sql_type = next((kind for level in self.levels if (kind := level.type_of(node)) is not None), "")
                return sql_type in ("VARCHAR", *INTEGERS)
            case Cast(_, to):
                return to.startswith("VARCHAR")
            case Call(name):
                return name in TEXTS or name in ("||", "concat")
            case Operation("coalesce", parts):
                return all(map(self._is_text, parts))
        return False


def _below(node: Any) -> Iterator[Any]:
    yield node
    match node:
        case Operation(_, parts):
            inner: Sequence[Any] = parts
        case Call():
            inner = (*node.arguments, node.condition)
        case Case():
            inner = (*(expression for pair in node.branches for expression in pair), node.otherwise)
        case Cast():
            inner = (node.operand,)
        case Window():
            inner = (node.function, *node.partitions, *(expression for expression, _ in node.order))
        case _:
            inner = ()
    for part in inner:
        yield from () if part is None else _below(part)


def _is_place(node: Node) -> bool:
    return isinstance(node, Constant) and type(node.value) is int and node.value > 0


def _called(alias: str, columns: Sequence[str]) -> str:
    return f" AS {quoted(alias)}" + (f" ({', '.join(map(quoted, columns))})" if columns else "")
