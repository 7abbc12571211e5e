"""Windows over noisy values: ranks, shares, running sums and neighbours, which cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pdrisk._model.expressions.kinds import NOTHING, NUMBER
from pdrisk._model.expressions.nodes import Constant, Node, Window
from pdrisk._sql.syntax.headings import heading
from pdrisk._sql.syntax.pieces import Expression
from pdrisk._sql.syntax.ranges import hull, range_of_sum
from pdrisk.errors import ParameterError

ABOUT_RECORDS = (
    "window functions (OVER) give one value per record: write an aggregate with GROUP BY instead, over which windows "
    "may stand, as in SUM(COUNT(*)) OVER ()"
)
_SPREADS = frozenset({"stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"})
#: Aggregates of noisy values: those that no value can stop.
PLAIN = frozenset({"count", "count_star", "sum", "avg", "mean", "min", "max", "median"}) | _SPREADS
_SQUARED = 1e150  # DuckDB stops at squares that are no floats
MAP_OF_COUNTS: Final = "Map of counts"  # which no query can write: parsers give names in lower case
MAPS: Final = "maps"  # the kind of what it gives
AGGREGATED = PLAIN | {MAP_OF_COUNTS}
SUMS = frozenset({"sum", "avg", "mean"})  # of uncut numbers
_OF_PLACES = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist"})
_WITH_PLACE = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}  # which argument is a number of rows
_OF_ROWS = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})
_UNTIED = frozenset({"row_number", "ntile", "lag", "lead"})  # what the order of equal rows decides
_COUNTING = frozenset({"row_number", "rank", "dense_rank", "ntile", "count", "count_star"})


def is_place(node: Window) -> bool:
    """Whether it is the place of a record among all others: its number, or how many come before it."""
    return _numbers(node) and all(isinstance(partition, Constant) for partition in node.partitions)


def _numbers(node: Window) -> bool:
    return bool(node.order) and node.function.name in _OF_PLACES | {"sum", "count", "count_star"}


def of_records(node: Window, unless: str = "") -> ParameterError:
    """The error for a window over records; one that looks for a quantile is told how to write it."""
    return ParameterError(f"{ABOUT_RECORDS}{unless}.{quantile_of(node)}")


def quantile_of(node: Window, names: Mapping[Node, str] | None = None) -> str:
    """What to write for the quantiles that the places of records are there for; ``names`` are aliases of columns."""
    if not _numbers(node):
        return ""
    ordered = node.order[0][0]
    x = (names or {}).get(ordered) or heading(ordered)
    groups = ", ".join(heading(partition) for partition in node.partitions if not isinstance(partition, Constant))
    by = f" with GROUP BY {groups}" if groups else ""
    return f" If quantiles of {x} are wanted, write QUANTILE_CONT({x}, 0.5){by}, and 0.25 or 0.75 for quartiles."


def aggregated(name: str, arguments: Sequence[Expression], distinct: bool = False) -> Expression:
    """An aggregate of noisy values, without its window or GROUP BY."""
    if name == MAP_OF_COUNTS:
        lists = [
            f"list({argument.sql} ORDER BY code) FILTER (WHERE {arguments[0].sql} IS NOT NULL)"
            for argument in arguments
        ]
        return Expression(f"map({', '.join(f'coalesce({listed}, [])' for listed in lists)})", MAPS)
    if name not in PLAIN:
        raise ParameterError(f"{name} is not understood over noisy values: write {', '.join(sorted(PLAIN))}.")
    takes = 0 if name == "count_star" or (name == "count" and not arguments) else 1
    if len(arguments) != takes:
        raise ParameterError(f"{name} takes one column of noisy values and nothing else.")
    if not takes:
        return Expression("count(*)", NUMBER, "BIGINT", span=(0, 2**40))
    (value,) = arguments
    if name not in ("count", "min", "max") and value.kind not in (NUMBER, NOTHING):
        raise ParameterError(f"{name} needs numbers, but its argument holds {value.kind}.")
    if name in SUMS and value.uncut and not distinct:
        lies = range_of_sum(value.range) if name == "sum" else value.range
        sql = f"{name}({value.uncut})"
        codes = f"list(CASE WHEN {value.uncut} IS NULL THEN -1 ELSE coalesce(code, -1) END)"
        counts = value.counts and name == "sum"
        return Expression(
            sql, NUMBER, "DOUBLE", range=lies, uncut=sql, counts=counts, tree=(name, sql, codes, value.tree)
        )
    sql = value.double if value.kind == NUMBER else value.sql
    sql = f"CASE WHEN abs({sql}) < {_SQUARED} THEN {sql} END" if name in _SPREADS else sql
    sql = f"{name}({'DISTINCT ' * distinct}{sql})"
    if name == "count":
        return Expression(sql, NUMBER, "BIGINT", span=(0, 2**40))
    if value.kind == NUMBER:
        return Expression(sql, NUMBER, "DOUBLE")
    return Expression(sql, value.kind, value.type)


def window(
    node: Window, arguments: Sequence[Expression], partitions: Sequence[str], order: Sequence[str], kept: str | None
) -> Expression:
    """A window function over the noisy table.

    ``partitions, order``: what stands after PARTITION BY and ORDER BY.
    ``kept``: the condition of its FILTER.
    """
    name = node.function.name
    if name in _OF_PLACES or name in _WITH_PLACE or name in _OF_ROWS:
        if node.function.distinct or kept is not None:
            raise ParameterError(f"DISTINCT and FILTER belong to aggregates, and {name} is none.")
        expression = of_rows(name, arguments)
    else:
        expression = aggregated(name, arguments, node.function.distinct)
    clauses = [f"PARTITION BY {', '.join(partitions)}"] if partitions else []
    order = [*order, "code"] if name in _UNTIED else order
    clauses += [f"ORDER BY {', '.join(order)}"] if order else []
    clauses += [node.frame] if node.frame else []
    sql = f"{expression.sql}{f' FILTER (WHERE {kept})' if kept else ''} OVER ({' '.join(clauses)})"
    return replace(expression, sql=sql)


def _check_places(name: str, arguments: Sequence[Expression]) -> None:
    if name in _OF_PLACES and arguments:
        raise ParameterError(f"{name} takes no argument.")
    most = {"ntile": 1, "nth_value": 2, "lag": 3, "lead": 3}.get(name, 1)
    least = 0 if name not in _WITH_PLACE and name not in _OF_ROWS else 2 if name == "nth_value" else 1
    if name in (*_WITH_PLACE, *_OF_ROWS) and not least <= len(arguments) <= most:
        raise ParameterError(f"{name} takes {least} to {most} arguments, but is given {len(arguments)}.")
    at = _WITH_PLACE.get(name)
    if at is not None and at < len(arguments):
        place = arguments[at]
        if not place.constant or type(place.value) is not int or place.value < (name not in ("lag", "lead")):
            raise ParameterError(f"{name} takes a whole number of rows that is written out or a parameter.")


def _plain_call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)})"


def of_rows(name: str, arguments: Sequence[Expression], call: Callable[..., str] = _plain_call) -> Expression:
    """Function of a row's position, or of the rows beside it, without its window; ``call`` writes a function."""
    _check_places(name, arguments)
    if name in _OF_PLACES or name == "ntile":
        sql = call(name, *(part.sql for part in arguments))
        if name in _COUNTING:
            return Expression(sql, NUMBER, "BIGINT", span=(0, 2**40))
        return Expression(sql, NUMBER, "DOUBLE")
    value = arguments[0]
    if len(arguments) == 3 and arguments[2].kind not in (value.kind, NOTHING):
        raise ParameterError(
            f"{name} gives {value.kind}, and {arguments[2].kind} where there is no row: give both alike."
        )
    if value.uncut:
        passed = [
            value.uncut,
            *(part.uncut or part.double if at else part.sql for at, part in enumerate(arguments[1:])),
        ]
        sql, codes = call(name, *passed), call(name, "code", *passed[1:2])
        lies = hull([part.range for part in (value, *arguments[2:]) if part.kind == NUMBER])
        return Expression(sql, NUMBER, "DOUBLE", range=lies, uncut=sql, tree=("row", sql, codes, value.tree))
    passed = [part.double if part.kind == NUMBER and at != 1 else part.sql for at, part in enumerate(arguments)]
    return Expression(call(name, *passed), value.kind, "DOUBLE" if value.kind == NUMBER else value.type)
