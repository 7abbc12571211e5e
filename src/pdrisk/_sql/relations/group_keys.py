"""The groups of a query: their expressions, and the public list of their keys."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._model.asked_groups import Source
from pdrisk._model.expressions.kinds import DATE, NUMBER, TEXT, TIME, TRUTH, ZONED, kind_of_value, kind_phrase
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.expressions.nodes import Node
from pdrisk._model.expressions.operands import comparable
from pdrisk._model.groups.calendar_keys import calendar_key
from pdrisk._model.groups.keys import Key, are_categories, are_observed, key_tuples, take_categories, undeclared_keys
from pdrisk._model.groups.private_keys import are_private
from pdrisk._model.plain import check_encodable, plain_key
from pdrisk._sql.expressions.days import begins_months
from pdrisk._sql.expressions.where_values import Limit, limit_of
from pdrisk._sql.syntax.literals import check_microseconds
from pdrisk._sql.syntax.pieces import INTEGERS, Day, Expression, limits
from pdrisk._sql.syntax.ranges import TRUE_OR_FALSE
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.errors import ColumnTypeError, ParameterError

PublicKeys = tuple[tuple[int, ...], list[tuple[Any, ...]]]
Categories = Callable[["Grouping"], Sequence[Any] | None]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Expression of GROUP BY with its keys."""

    sql: str  # as the query means it: what the same expression in SELECT becomes
    kind: str
    type: str  # SQL type of the key
    names: tuple[str, ...]  # what it may be called: alias, text, column, column of a table
    column: str | None  # the column of the source, if it is nothing else
    # all that it can be, where that is written out in the query or known of a function
    values: tuple[Scalar, ...] | None = None
    day: Day | None = None  # the column of dates or times whose day alone decides it
    node: Node | None = field(default=None, compare=False, repr=False)  # as it is written
    of_months: bool = False  # whether it is the beginning of a month, quarter or year: then 2020-01 is a key
    given: bool = False  # whether values of parameters are in it

    @property
    def stored(self) -> str:
        """What its column is called in a table, in lower case; "" of an expression."""
        return "" if self.column is None else self.names[-1].lower()

    def public(self, declared: Sequence[Any] | None, limit: Limit | None) -> list[Any] | None:
        """Keys that are declared or evident, within what WHERE allows; None without any."""
        known: Sequence[Any] | None = self.values
        if declared is not None:
            known = [calendar_key(key, self.kind, f"a key of {self.names[0]}") for key in declared]
        if known is None:
            known = None if limit is None else limit.listed
            if known is None:
                return None
            if self.type in INTEGERS:
                low, high = limits(self.type)
                numbers: list[Any] = list(known)
                known = [int(key) for key in numbers if key == key // 1 and low <= key <= high]
        kept = [key for key in known if limit is None or limit.admits(key)]
        if not kept:
            raise ParameterError(f"the WHERE of the query leaves none of the public keys of {self.names[0]}.")
        return kept


def typed_key(group: Expression, sql_type: str, names: tuple[str, ...], who: str = "GROUP BY") -> Grouping:
    """Key of a group by an expression of this SQL type: one value for all values that are equal."""
    to = sql_type
    if group.kind == TEXT:
        to = "VARCHAR"
    elif group.kind == NUMBER and sql_type not in INTEGERS[:7]:
        if sql_type.endswith("INT"):
            raise ColumnTypeError(f"{who} {names[0]} has type {sql_type}: write TRY_CAST({names[0]} AS BIGINT).")
        to = "FLOAT" if sql_type == "FLOAT" else "DOUBLE"
    elif group.kind == ZONED:
        raise ColumnTypeError(f"{who} {names[0]} holds times with a zone: write TRY_CAST({names[0]} AS DATE).")
    elif group.kind not in (TEXT, NUMBER, TRUTH, DATE, TIME):
        raise ColumnTypeError(f"{who} {names[0]} holds {group.kind}: make text, numbers, truth values or dates of it.")
    values = TRUE_OR_FALSE if group.kind == TRUTH and group.values is None else group.values
    return Grouping(
        group.sql, group.kind, to, names, group.column, values, group.day, of_months=begins_months(group.node),
        given=group.given,
    )  # fmt: skip


def keys_given(
    groups: Sequence[Grouping],
    keys: object,
    declared: Callable[[Grouping], Sequence[Any] | None],
    categories: Categories,
    where_limits: Sequence[Limit] = (),
    *,
    public: Callable[[Sequence[Grouping], Collection[int]], Sequence[PublicKeys]] = lambda *_: (),
    counted: str = "",
    passed: Collection[str] = (),
) -> tuple[Sequence[Key] | None, Source]:
    """Listed keys and their source; None if they are observed or private.

    ``keys``: as the caller passed them.
    ``declared``: what was declared for a group, or None.
    ``categories``: the categories of its column, or None.
    ``where_limits``: what WHERE says of expressions.
    ``public``: Keys of groups that public tables list: for each table the places of its groups, and its rows. Not
        of a table with one group alone whose place is given, since that has keys.
    ``counted``: name of the group that stands for the argument of a HISTOGRAM, if there is one.
    ``passed``: all names of the caller's dict, for a hint at a slip.
    """
    if are_private(keys):
        return None, "private"
    if are_observed(keys):
        if made := [group.names[0] for group in groups if group.column is None]:
            raise ParameterError(
                f'keys="observed" says that the values of a column are public, but {made[0]} is computed: list its '
                f"keys."
            )
        return None, "data"
    source: Source = "categories" if take_categories(keys) else "given"
    if are_categories(keys):
        return _checked(groups, dict.fromkeys((group.names[0] for group in groups), keys), categories), source
    if keys is not None and not isinstance(keys, Mapping):
        return _checked(groups, keys, categories), source
    lists = _within_where(groups, keys if isinstance(keys, Mapping) else {}, categories, where_limits)
    tables = [
        _within(table, groups, lists)
        for table in public(groups, frozenset(at for at, given_keys in enumerate(lists) if given_keys is not None))
    ]
    in_tables = {at for places, _ in tables for at in places}
    left = [at for at in range(len(groups)) if at not in in_tables]
    for at in left:
        if lists[at] is None:
            lists[at] = groups[at].public(declared(groups[at]), limit_of(groups[at].sql, where_limits))
    if missing := [groups[at].names[0] for at in left if lists[at] is None]:
        raise undeclared_keys(
            _written(missing, counted),
            f"keys=[...] (for several a frame or tuples, or a dict {{{missing[0]!r}: [...]}} for all combinations)",
            "schema= (isin) or df.dprisk.declare(keys=...)",
            "".join(did_you_mean(name, passed, f"{{!r}} in keys= to be {name!r}") for name in missing),
        )
    remaining = {at: lists[at] for at in left}
    listed: object = _beside(groups, remaining, tables) if tables else remaining
    return _checked(groups, listed, categories, by_place=True), "declared" if keys is None else source


def _within_where(
    groups: Sequence[Grouping], given: Mapping[Any, object], categories: Categories, where_limits: Sequence[Limit]
) -> list[Sequence[Any] | None]:
    """A caller's list for each group, without the keys that WHERE rules out; None where there is none.

    A list that another group has serves a column of the same name, too, as those of a table joined with itself.
    """
    known = {name.lower(): key_list for name, key_list in given.items() if isinstance(name, str)}
    used, lists = dict[str, Grouping](), list[Sequence[Any] | None]()
    for group in groups:
        names = [name.lower() for name in group.names if name.lower() in known]
        shared = (name for name in names if name in used and used[name].stored == group.stored != "")
        name = next(itertools.chain((name for name in names if name not in used), shared), None)
        if name is None:
            lists.append(None)
            continue
        used[name] = group
        named_lists = _by_name([group], {name: known[name]}, categories)
        assert named_lists is not None
        listed = [key for (key,) in _checked([group], named_lists[0], categories)]
        lists.append(group.public(listed, limit_of(group.sql, where_limits)))
    return lists


def _within(table: PublicKeys, groups: Sequence[Grouping], lists: Sequence[Sequence[Any] | None]) -> PublicKeys:
    """Those rows of a public table whose columns are in the caller's lists."""
    places, rows = table
    for at, place in enumerate(places):
        listed = lists[place]
        if listed is None:
            continue
        group, kept = groups[place], set(listed)
        values = _typed([row[at] for row in rows], group)
        rows = [row for row, value in zip(rows, values, strict=True) if value in kept]
        if not rows:
            raise ParameterError(
                f"no key of {group.names[0]} that keys= lists is in the public table whose rows are the groups: leave "
                "it out of keys, or correct the list."
            )
    return places, rows


def _beside(
    groups: Sequence[Grouping], remaining: Mapping[int, Sequence[Any] | None], tables: Sequence[PublicKeys]
) -> Iterator[Any]:
    """Keys of all groups: the rows of each public table as they stand there, with all combinations of the rest."""
    alone = [((at,), [(key,) for key in listed or ()]) for at, listed in remaining.items()]
    parts = sorted([*tables, *alone], key=lambda part: part[0])
    order = [at for places, _ in parts for at in places]
    for rows in itertools.product(*(rows for _, rows in parts)):
        combined = dict(zip(order, itertools.chain.from_iterable(rows), strict=True))
        yield combined[0] if len(groups) == 1 else tuple(combined[at] for at in range(len(groups)))


def _written(missing: Sequence[str], counted: str) -> str:
    """Groups without keys as the query asks for them: the counted one by HISTOGRAM."""
    grouped = [name for name in missing if name != counted]
    by = [f"GROUP BY {', '.join(grouped)}"] if grouped else []
    return " with ".join(by + [f"HISTOGRAM of {counted}"] * (len(grouped) < len(missing)))


def _checked(
    groups: Sequence[Grouping], given: object, categories: Categories, *, by_place: bool = False
) -> Sequence[Key]:
    """Listed keys as tuples; ``by_place``: a dict has a list for each group, and not by names of a caller."""
    return key_tuples(
        given,
        [group.names[0] for group in groups],
        lambda place, keys: _typed(keys, groups[place]),
        lambda keys: list(keys.values()) if by_place else _by_name(groups, keys, categories),
    )


def _by_name(groups: Sequence[Grouping], given: Mapping[Any, object], categories: Categories) -> list[object] | None:
    """The list of each group, under the first of its names that is there; None if one has none."""
    lists = []
    left = {name.lower(): listed for name, listed in given.items() if isinstance(name, str)}
    for group in groups:
        name = next((name.lower() for name in group.names if name.lower() in left), None)
        if name is None:
            return None
        keys = left.pop(name)
        lists.append(_categories(group, categories) if are_categories(keys) else keys)
    return lists


def _categories(group: Grouping, categories: Categories) -> Sequence[Any]:
    """Keys for the word "categories"."""
    keys = categories(group)
    if keys is None:
        raise ColumnTypeError(
            f'keys="categories" takes those of a categorical column of one pandas frame, and {group.names[0]} is none: '
            "list its keys."
        )
    return keys


def _typed(keys: Sequence[Any], group: Grouping) -> Sequence[Any]:
    """The keys of one group as values of its type; a long list of plain text or integers is not looked at singly."""
    kinds = set(map(type, keys))
    if str in kinds:
        check_encodable(f"a key of {group.names[0]}", keys)
    if kinds == {str} and group.kind == TEXT:
        return keys
    if kinds == {int} and group.type in INTEGERS:
        low, high = limits(group.type)
        if low <= min(keys) and max(keys) <= high:
            return keys
    return [_as_value(plain_key(key, f"a key of {group.names[0]}"), group) for key in keys]


def _as_value(key: Any, group: Grouping) -> Any:
    """A plain key as a value of the group's type; every kind of missing is None."""
    if key is None:
        return None
    key = calendar_key(key, group.kind, f"a key of {group.names[0]}", months=group.of_months)
    kind = kind_of_value(key)
    if kind == ZONED and group.kind in (DATE, TIME):
        raise ColumnTypeError(f"a key of {group.names[0]} has a time zone, but the group has none.")
    if not comparable(kind, group.kind, sql=True):
        days = kind in (DATE, TIME) and group.kind == TEXT
        raise ColumnTypeError(
            f"a key of {group.names[0]} is {kind_phrase(key)}, but the group holds {group.kind}: list keys of its kind"
            + f", or make dates of it, with TRY_CAST({group.names[0]} AS DATE) or pd.to_datetime in a frame." * days
            + "." * (not days)
        )
    if kind == NUMBER:
        if group.type in ("DOUBLE", "FLOAT"):
            if isinstance(key, int) and abs(key) <= 2 ** (24 if group.type == "FLOAT" else 53):
                return key  # as it was listed
            return _float(key, group) + 0.0
        low, high = limits(group.type)
        if not math.isfinite(key) or key != int(key) or not low <= key <= high:
            raise ParameterError(f"a key of {group.names[0]} is no {group.type}: no record could have it.")
        return int(key)
    if kind in (DATE, TIME):
        stamp = pd.Timestamp(key)
        if not datetime.MINYEAR <= stamp.year <= datetime.MAXYEAR:
            raise ParameterError(f"a key of {group.names[0]} is farther away than the years 1 to 9999.")
        check_microseconds(stamp, f"a key of {group.names[0]}")
        return stamp.as_unit("us")
    return key


def _float(key: Any, group: Grouping) -> float:
    try:
        return float(np.float32(key) if group.type == "FLOAT" else key)
    except OverflowError:
        pass
    raise ParameterError(f"a key of {group.names[0]} is too large for a float: no record could have it.")


_CARRIED = {TEXT: "VARCHAR", TRUTH: "BOOLEAN", DATE: "TIMESTAMP", TIME: "TIMESTAMP"}


def key_relation(groups: Sequence[Grouping]) -> str:
    """The listed keys as a relation with the columns g0, g1, ... and code, made from one list parameter for each "
    "group."""
    lists = []
    for at, group in enumerate(groups):
        carried = _CARRIED.get(group.kind, "DOUBLE" if group.type in ("DOUBLE", "FLOAT") else "BIGINT")
        lists.append(f"unnest(CAST(${at + 1} AS {carried}[])) AS g{at}")
    numbers_ = "unnest(system.main.range(system.main.len($1))) AS code"
    exact = ' COLLATE "binary"'
    columns = ", ".join(
        f"CAST(g{at} AS {group.type}){exact * (group.kind == TEXT)} AS g{at}" for at, group in enumerate(groups)
    )
    return f"(SELECT {columns}, code FROM (SELECT {', '.join([*lists, numbers_])}) AS keys_carried) AS keys_listed"
