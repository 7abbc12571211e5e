"""Compiler of a relation's plan: one SELECT within another, in the dialect of the engine that has its tables.

Every column becomes a value in normal form with a name of its own, so that whatever reads it next needs to know nothing
of where it came from.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod
from itertools import count
from typing import Protocol

from pdrisk._model.expressions.kinds import DATE, NOTHING, NUMBER, TEXT
from pdrisk._model.expressions.nodes import Column, Node
from pdrisk._relations.plan import (
    Aggregated,
    Joined,
    Numbered,
    OneRow,
    PerPerson,
    Relation,
    Scan,
    Selection,
    United,
    Windowed,
)
from pdrisk.engines.sql.compiler.comparisons import is_present, without_nan
from pdrisk.engines.sql.compiler.refusals import refuse
from pdrisk.engines.sql.compiler.rows import RowSQL
from pdrisk.engines.sql.compiler.values import INTEGERS, StoredColumn, Value, as_double, checked, quantity, unified
from pdrisk.engines.sql.dialects.dialect import Dialect
from pdrisk.engines.sql.summary.person_rows import number_of_rows
from pdrisk.errors import ParameterError

NO_COLUMN = ("1 AS one",)  # of rows that are counted alone: SELECT takes a column at least
COUNTS = (0, 2**40)
MOST_SQUARED = 1e150  # farther numbers are moved there, so that no spread overflows
SPREADS = {"var_samp": "var_samp", "variance": "var_samp", "var_pop": "var_pop", "stddev": "stddev_samp",
           "stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop"}  # fmt: skip


class Place(Protocol):
    """A stored table: what stands for it in FROM, and its columns."""

    @property
    def source(self) -> str:
        """As it stands in FROM."""

    @property
    def columns(self) -> Mapping[str, StoredColumn]:
        """Its columns by label."""


def written(relation: Relation, places: Mapping[str, Place], dialect: Dialect) -> tuple[str, RowSQL]:
    """A relation as it stands in FROM, and its columns.

    ``places``: the stored tables, as its scans name them.
    """
    return _Compiler(places, dialect).source(relation)


class _Compiler:
    def __init__(self, places: Mapping[str, Place], dialect: Dialect) -> None:
        self.places, self.dialect, self.numbers = places, dialect, count()

    @singledispatchmethod
    def source(self, relation: Relation) -> tuple[str, RowSQL]:
        """A relation as it stands in FROM, and its columns."""
        raise AssertionError(relation)

    @source.register
    def _(self, relation: Scan) -> tuple[str, RowSQL]:
        place = self.places[relation.table]
        return place.source, RowSQL(place.columns, dict(relation.codes), (), self.dialect)

    @source.register
    def _(self, relation: OneRow) -> tuple[str, RowSQL]:  # noqa: ARG002 - there is one
        return "(SELECT 1 AS one) AS one_row", RowSQL({}, {}, (), self.dialect)

    @source.register
    def _(self, relation: Selection) -> tuple[str, RowSQL]:
        below, rows = self.source(relation.of)
        made = _SelectList(self, rows)
        for label, node in relation.columns:
            made.add(label, node)
        kept = [rows.condition(node) for node in relation.where] + [rows.present(label) for label in relation.known]
        where = f" WHERE {' AND '.join(kept)}" if kept else ""
        return f"(SELECT {', '.join(made.listed or NO_COLUMN)} FROM {below}{where}) AS selected_rows", made.rows()

    @source.register
    def _(self, relation: Joined) -> tuple[str, RowSQL]:
        (one, left), (other, right) = self.source(relation.left), self.source(relation.right)
        both = _beside(left, right)
        conditions = [both.condition(node) for node in relation.on]
        for ours, theirs in relation.same:
            _check_exact(both, ours, theirs)
            conditions.append(f"({both.told_apart(ours)} = {both.told_apart(theirs)})")
        holds = " AND ".join(conditions) or "true"
        if relation.how in ("SEMI", "ANTI"):
            word = "NOT EXISTS" if relation.how == "ANTI" else "EXISTS"
            exists = f"{word} (SELECT 1 FROM {other} WHERE {holds})"
            return f"(SELECT * FROM {one} WHERE {exists}) AS joined_rows", left
        word = "LEFT JOIN" if relation.how == "LEFT" else "JOIN"
        first, second = one.removesuffix(" AS selected_rows"), other.removesuffix(" AS selected_rows")
        joined = f"{first} AS first_rows {word} {second} AS second_rows ON ({holds})"
        return f"(SELECT * FROM {joined}) AS joined_rows", both

    @source.register
    def _(self, relation: United) -> tuple[str, RowSQL]:
        parts = [self.source(part) for part in relation.parts]
        labels = [label for label, _ in relation.parts[0].columns]
        known, exact = dict[Hashable, Value](), dict[Hashable, StoredColumn]()
        listed: list[list[str]] = [[] for _ in parts]
        for label in labels:
            name = f"c{next(self.numbers)}"
            values = unified(self.dialect, [rows.column(label) for _, rows in parts])
            for items, value in zip(listed, values, strict=True):
                items.append(f"{value.sql} AS {name}")
            known[label] = self.read_again(values[0], name)
            if columns := _exact_alike([rows for _, rows in parts], label, self.dialect):
                for (sql, _), items in zip(columns, listed, strict=True):
                    items.append(f"{sql} AS e{name}")
                exact[label] = replace(columns[0][1], name=f"e{name}", exact=f"e{name}")
        selects = (
            f"SELECT {', '.join(items or NO_COLUMN)} FROM {below}"
            for items, (below, _) in zip(listed, parts, strict=True)
        )
        return f"({' UNION ALL '.join(selects)}) AS united_rows", RowSQL({}, {}, (), self.dialect, known, exact)

    @source.register
    def _(self, relation: PerPerson) -> tuple[str, RowSQL]:
        below, rows = self.source(relation.of)
        made, by = _SelectList(self, rows), list[str]()
        for label, node in relation.by:
            by += made.add(label, node, same=True)
        for label, aggregate in relation.made:
            made.add_value(label, _aggregated(self.dialect, aggregate, rows))
        groups = ", ".join(by)
        return f"(SELECT {', '.join(made.listed)} FROM {below} GROUP BY {groups}) AS rows_of_people", made.rows()

    @source.register
    def _(self, relation: Numbered) -> tuple[str, RowSQL]:
        below, rows = self.source(relation.of)
        made = _SelectList(self, rows)
        for label, window in relation.made:
            made.add_value(label, _windowed(self.dialect, window, rows))
        both = _beside(rows, made.rows())
        return f"(SELECT *, {', '.join(made.listed)} FROM {below}) AS rows_numbered", both

    def read_again(self, value: Value, name: str) -> Value:
        """A value as a column of a subquery: text has the collation of its code points there, too."""
        return replace(value, sql=self.dialect.exact_text(name) if value.family == TEXT else name)


class _SelectList:
    """Columns of a SELECT, each under a name of its own."""

    def __init__(self, compiler: _Compiler, below: RowSQL) -> None:
        self.compiler, self.below = compiler, below
        self.listed: list[str] = []
        self.known: dict[Hashable, Value] = {}
        self.exact: dict[Hashable, StoredColumn] = {}
        self.unreadable: dict[Hashable, StoredColumn] = {}

    def rows(self) -> RowSQL:
        """The columns, for who reads the SELECT."""
        return RowSQL(self.unreadable, {}, (), self.compiler.dialect, self.known, self.exact)

    def add(self, label: Hashable, node: Node, *, same: bool = False) -> list[str]:
        """Add a column, and say what is grouped by; ``same``: equal values are made the same."""
        if isinstance(node, Column):
            stored = self.below.columns.get(node.name)
            if stored is not None and not stored.is_readable and not (same or self.compiler.dialect.own):
                self.unreadable[label] = stored
                return []
            value, exact = self.below.column(node.name), self.below.exact_of(node.name)
            value = self.below.same(node.name) if same and not value.is_truth else value
            grouped = self.add_value(label, value)
            if exact is not None:
                name = f"e{next(self.compiler.numbers)}"
                exact = self.below.told_apart(node.name) if same else exact
                self.listed.append(f"{exact} AS {name}")
                self.exact[label] = replace(_column_of(self.below, node.name), name=name, exact=name)
                grouped.append(exact)
            return grouped
        value = self.below.value(node)
        return self.add_value(label, _same(self.compiler.dialect, value) if same else value)

    def add_value(self, label: Hashable, value: Value) -> list[str]:
        """Add a column that is written out."""
        if value.family == NOTHING:
            self.known[label] = value
            return []
        name = f"c{next(self.compiler.numbers)}"
        self.listed.append(f"{checked(value.sql)} AS {name}")
        self.known[label] = self.compiler.read_again(value, name)
        return [value.sql]


def _same(dialect: Dialect, value: Value) -> Value:
    """A value that is equal where it counts as equal: one zero, NULL for NaN."""
    value = without_nan(dialect, value)
    if value.family == NUMBER and value.span is None and not value.is_truth:
        return replace(value, sql=dialect.infix(as_double(dialect, value), "+", dialect.number(0.0)), narrow=False)
    return value


def _beside(left: RowSQL, right: RowSQL) -> RowSQL:
    """Columns of two relations with different labels."""
    return RowSQL(
        {**left.columns, **right.columns}, {**left.missing, **right.missing}, (), left.dialect,
        {**left.known, **right.known}, {**left.exact, **right.exact},
    )  # fmt: skip


def _column_of(rows: RowSQL, label: Hashable) -> StoredColumn:
    """The stored column that tells the values of a column apart."""
    return rows.columns[label] if label in rows.columns else rows.exact[label]


def _check_exact(rows: RowSQL, ours: str, theirs: str) -> None:
    """Refuse ids that one side would round to the type of the other."""
    types = {_exact_type(rows, label) for label in (ours, theirs)}
    if len(types) > 1:
        raise ParameterError(
            "who a person is has one type in one table and another in another: ids are compared as they are, since a "
            "cast could make one person of two. Store both in one type."
        )


def _exact_type(rows: RowSQL, label: str) -> str:
    """The type that tells values of a column apart; "" of those that are no more than they are computed as."""
    if rows.exact_of(label) is None:
        return ""
    column_type = _column_of(rows, label).type
    return "" if rows.dialect.own and column_type in INTEGERS else column_type


def _exact_alike(parts: Sequence[RowSQL], label: str, dialect: Dialect) -> list[tuple[str, StoredColumn]]:
    """What tells the values of a column of each part apart; none where all are as they are computed."""
    exact = [rows.exact_of(label) for rows in parts]
    if exact == [None] * len(parts):
        return []
    if len({_exact_type(rows, label) for rows in parts}) > 1 or (None in exact and not dialect.own):
        raise ParameterError(
            "UNION ALL puts columns over each other that are told apart in different ways: cast both to one type. Ids "
            "of people have to be stored in one type, since a cast could make one person of two."
        )
    column = next(_column_of(rows, label) for rows, sql in zip(parts, exact, strict=True) if sql is not None)
    return [(sql or rows.column(label).sql, column) for rows, sql in zip(parts, exact, strict=True)]


def _aggregated(dialect: Dialect, asked: Aggregated, rows: RowSQL) -> Value:
    """An aggregate of the rows of one person, in no order."""
    kept = [] if asked.where is None else [rows.condition(asked.where)]
    if asked.argument is None:
        counted = dialect.call("COUNT", _if(kept, "1") if kept else "*")
        return Value(f"CAST({counted} AS BIGINT)", span=COUNTS)
    if asked.function in ("bool_or", "bool_and"):
        truth = rows.truth(asked.argument)
        return Value(dialect.call(asked.function.upper(), _if(kept, truth.sql)), is_truth=True)
    value = rows.value(asked.argument)
    kept.append(is_present(dialect, value))
    if asked.function == "count":
        what = _if(kept, "1")
        if asked.distinct:
            label = asked.argument.name if isinstance(asked.argument, Column) else None
            what = f"DISTINCT {_if(kept, _same(dialect, value).sql if label is None else rows.told_apart(label))}"
        return Value(f"CAST({dialect.call('COUNT', what)} AS BIGINT)", span=COUNTS)
    if asked.function in ("min", "max"):
        return _end(dialect, asked.function, value, kept)
    number = quantity(dialect, value)
    if asked.function in ("sum", "avg") and asked.universe is None and (exact := rows.exact_number(asked.argument)):
        return Value(checked(_exact_total(dialect, asked, exact, kept)))
    if asked.function in ("sum", "avg"):
        return Value(checked(_total(dialect, asked, number, kept)))
    one = _if(kept, _same(dialect, Value(as_double(dialect, number))).sql)
    if asked.function == "quantile":
        return Value(
            checked(dialect.quantile(one, asked.q)), clean=number.span is not None
        )  # between infinities it is NaN
    ends = dialect.number(-MOST_SQUARED), dialect.number(MOST_SQUARED)
    return Value(checked(dialect.spread(SPREADS[asked.function], dialect.clamped(one, *ends))))


def _if(kept: Sequence[str], value: str) -> str:
    return f"CASE WHEN {' AND '.join(kept)} THEN {value} END" if kept else value


def _end(dialect: Dialect, function: str, value: Value, kept: Sequence[str]) -> Value:
    """Smallest or largest value, of numbers as DOUBLE."""
    call = function.upper()
    if value.is_truth:
        word = "BOOL_OR" if function == "max" else "BOOL_AND"
        return replace(value, sql=dialect.call(word, _if(kept, value.sql)))
    extreme = replace(value, sql=dialect.call(call, _if(kept, _same(dialect, value).sql)))
    if value.family == TEXT:
        return replace(extreme, sql=dialect.exact_text(extreme.sql))
    return extreme if value.family == DATE else Value(as_double(dialect, replace(extreme, narrow=False)))


def _total(dialect: Dialect, asked: Aggregated, value: Value, kept: Sequence[str]) -> str:
    """Sum or mean as DOUBLE, which the order of rows changes in no digit."""
    if asked.universe is not None:
        way = "sum" if asked.function == "sum" else "mean"
        return number_of_rows(way, _if(kept, as_double(dialect, value)), asked.universe, dialect)
    if value.span is None or value.is_wide:
        refuse(dialect, "a sum of numbers of more than 64 bits")
    return _exact_total(dialect, asked, f"CAST({value.sql} AS BIGINT)", kept)


def _exact_total(dialect: Dialect, asked: Aggregated, value: str, kept: Sequence[str]) -> str:
    one = _if(kept, value)
    total = dialect.double(dialect.whole_sum(one))
    return total if asked.function == "sum" else dialect.infix(total, "/", dialect.double(dialect.call("COUNT", one)))


def _windowed(dialect: Dialect, asked: Windowed, rows: RowSQL) -> Value:
    """A number of a row among those of its person, or what stands beside it."""
    order = [f"{without_nan(dialect, rows.value(node)).sql} {how}" for node, how in asked.order]
    if asked.function not in ("rank", "dense_rank"):  # which give equal rows one number
        order += [f"{value.sql} ASC NULLS LAST" for value in rows.known.values() if value.family != NOTHING]
        order += [f"{column.exact} ASC NULLS LAST" for column in rows.exact.values()]
    partition = ", ".join(rows.told_apart(label) for label in asked.partition)
    over = f"OVER (PARTITION BY {partition} ORDER BY {', '.join(order)})"
    if asked.function not in ("lag", "lead"):
        return Value(f"CAST({dialect.call(asked.function.upper())} {over} AS BIGINT)", span=COUNTS)
    values = [rows.value(node) for node in asked.arguments]
    if values[0].family == NUMBER and not values[0].is_truth:
        values = [v if at == 1 else _as_number(dialect, v) for at, v in enumerate(values)]
    passed = [f"CAST({v.sql} AS INTEGER)" if at == 1 else v.sql for at, v in enumerate(values)]
    return replace(values[0], sql=f"{dialect.call(asked.function.upper(), *passed)} {over}")


def _as_number(dialect: Dialect, value: Value) -> Value:
    return value if value.family == NOTHING else _same(dialect, Value(as_double(dialect, value), clean=value.clean))
