"""SQL dialects of engines, and the expressions that are the same in all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

# How listed keys are carried to an engine.
TEXT: Final = "VARCHAR"
WHOLE: Final = "BIGINT"
DOUBLE: Final = "DOUBLE"
LARGEST: Final = 2**63 - 1  # of a BIGINT
SHORT: Final = 80  # letters of what may stand in a statement several times
BY_RECORD: Final = ") AS by_record"  # ends a source without statistics, of which no block is skipped
HALF: Final = 2**53  # up to here a whole number is a DOUBLE


class Dialect:
    """SQL dialect of an engine, here in words that most engines share."""

    # How order statistics are found: around a pivot, by `at_ranks`, or else by counting in cells.
    by_pivot = False
    by_rank = False
    skips = False  # whether ORDER BY with LIMIT, and WHERE, leave out blocks that cannot matter
    double_type = "DOUBLE"
    text_type = "VARCHAR"
    infinite = "infinity"  # the text of it
    groups_by_floats = True  # whether groups and ids may be floats
    writes_all_digits = True  # whether DOUBLEs that differ have texts that differ
    once: tuple[str, ...] = ()  # columns of a subquery that have its others computed once, however often they are used
    materialized = "MATERIALIZED "  # before a CTE that is computed once, however often it is read
    stepwise = False  # whether the second pass over all records is a statement of its own, if it may be: see `in_steps`
    reads_spans = False  # whether groups between the ends of listed keys are read instead of these: see `by_span`
    reads_later = True  # whether what only curators see of an answer is read when they look: see `facts_read_later`
    orders = True  # whether the engine puts the lines of listed keys in their order; else who fetches them does
    engine = "this engine"  # for people
    letters, octets = "LENGTH", "STRLEN"  # functions of the length of a text
    own: Any = None  # writes types and functions that not all engines have, where those are asked: see `DuckDBForSQL`
    any_order = ""  # behind PARTITION BY, where rows may be numbered in any order; {} stands for their content

    @property
    def infinity(self) -> str:
        """The largest DOUBLE; NaN is larger in some engines, but no comparison with it selects NaN."""
        return self.number(math.inf)

    def number(self, value: float) -> str:
        """A DOUBLE literal."""
        return f"CAST('{self.digits(value)}' AS {self.double_type})"

    def digits(self, value: float) -> str:
        """The text of a DOUBLE, all its digits."""
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}{self.infinite}"

    def call(self, name: str, *arguments: str) -> str:
        """Call of a function of the engine."""
        return f"{name}({', '.join(arguments)})"

    def counted(self, condition: str) -> str:
        """Number of records for which a condition holds."""
        return f"{self.call('COUNT', '*')} FILTER (WHERE {condition})"

    def smallest(self, value: str) -> str:
        """The least of DOUBLEs; NaN is none, or the largest."""
        return self.call("MIN", value)

    def keyed_hash(self, secret: str, texts: Sequence[str]) -> str:
        """A text that nobody can tell beforehand who does not know a secret; of texts that may be missing."""
        return self.call("MD5", self.call("CONCAT_WS", "'|'", f"'{secret}'", *texts))

    def all_columns(self, passes: Sequence[str], groups: Sequence[str]) -> str:  # noqa: ARG002 - a name may be there twice
        """All columns of ``listed`` and of some passes joined to it, which have the columns of groups, too."""
        return "*"

    def listed(self, value: str, by: str) -> str:
        """Values of a group as an ordered list."""
        return f"ARRAY_AGG({value} ORDER BY {by})"

    def at_ranks(self, value: str, n: str, first: str, last: str) -> str:
        """List of a group's records at ranks from 1 to n, for an engine that is `by_rank`."""
        raise NotImplementedError

    def infix(self, left: str, operator: str, right: str) -> str:
        """Arithmetic operation."""
        return f"({left} {operator} {right})"

    def negative(self, value: str) -> str:
        """The value with the other sign."""
        return f"(-{value})"

    def name(self, name: str) -> str:
        """An identifier, exactly as it is written."""
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text literal."""
        return "'" + value.replace("'", "''") + "'"

    def exact_text(self, value: str) -> str:
        """Text that is compared, grouped and ordered by its code points, whatever its column's collation."""
        return value

    def whole(self, value: int) -> str:
        """Literal of a whole number: a BIGINT, or wide if that cannot hold it."""
        literal = f"CAST('{value}' AS BIGINT)"
        return literal if -LARGEST - 1 <= value <= LARGEST else self.wide(f"'{value}'")

    def wide(self, value: str) -> str:
        """Whole number, or its text, in a type whose ``+``, ``-`` and ``*`` are exact up to 2**106."""
        return f"CAST({value} AS HUGEINT)"

    def rounded(self, direction: str, value: str) -> str:
        """FLOOR or CEIL of a DOUBLE of any size, as a DOUBLE."""
        return self.call(direction, value)

    def bound(self, value: str, body: Callable[[str], str]) -> str:
        """Expression that uses a value several times: a long one is computed once, where the engine can."""
        return body(value) if len(value) <= SHORT else self.let(value, body)

    def let(self, value: str, body: Callable[[str], str]) -> str:
        """Expression of a value under a name, or with the value wherever it stands."""
        return body(value)

    def truncated(self, value: str) -> str:
        """A DOUBLE of any size without its fraction."""
        return self.call("TRUNC", value)

    def of_text(self, value: str, to: str) -> str:
        """Number of a text that fits a grammar, in a branch where nothing else is read."""
        return f"TRY_CAST({value} AS {to})"

    def matches(self, value: str, pattern: str) -> str:
        """Condition that the whole of a text fits a pattern."""
        return self.call("REGEXP_FULL_MATCH", value, self.text(pattern))

    def cased(self, how: str, value: str) -> str:
        """Text in lower or upper letters, each by itself."""
        return self.call(how.upper(), value)

    def trimmed(self, how: str, value: str, signs: str) -> str:
        """Text without signs at its ends: TRIM, LTRIM or RTRIM."""
        return self.call(how.upper(), value, signs)

    def found_at(self, value: str, part: str) -> str:
        """Place of a text in another, from 1 on; 0 if it is not there."""
        return self.call("STRPOS", value, part)

    def add_months(self, day: str, months: int) -> str:
        """A DATE so many months later, the last day of a month that has no such day."""
        return f"CAST(({day} + INTERVAL '{months}' MONTH) AS DATE)"

    def whole_double(self, value: str) -> str:
        """A whole DOUBLE below 2**106 as a wide number, exactly: by two halves, for casts may keep some digits only."""
        high = self.call("FLOOR", self.infix(value, "*", self.number(1 / HALF)))
        low = self.infix(value, "-", self.infix(high, "*", self.number(float(HALF))))
        return f"({self.wide(f'CAST({high} AS BIGINT)')} * {HALF} + CAST({low} AS BIGINT))"

    def quotient(self, value: str, divisor: str) -> str:
        """The quotient of wide numbers, rounded towards zero; the divisor is not 0."""
        return self.infix(value, "//", divisor)

    def remainder(self, value: str, divisor: str) -> str:
        """Remainder of that quotient, with the sign of the value."""
        return self.infix(value, "%", divisor)

    def day(self, days: str) -> str:
        """Day so many days after 1970-01-01, as a DATE."""
        return f"(CAST('1970-01-01' AS DATE) + CAST({days} AS INTEGER))"

    def days_since(self, day: str) -> str:
        """Days from 1970-01-01 to a DATE, as a BIGINT."""
        return f"CAST(({day} - CAST('1970-01-01' AS DATE)) AS BIGINT)"

    def part_of_day(self, unit: str, day: str) -> str:
        """Year, quarter, month, week, day or dayofyear of a DATE."""
        return self.call({"week": "WEEKOFYEAR"}.get(unit, unit.upper()), day)

    def first_day(self, unit: str, day: str) -> str:
        """First day of the year, quarter or month of a DATE, as a DATE."""
        return f"CAST({self.call('DATE_TRUNC', self.text(unit), f'CAST({day} AS TIMESTAMP)')} AS DATE)"

    def double(self, value: str) -> str:
        """Number of a type that is not wide, as the nearest DOUBLE."""
        return f"CAST({value} AS {self.double_type})"

    def double_of_wide(self, value: str) -> str:
        """Wide number below 2**106 as the nearest DOUBLE: the sum of two exact parts is rounded once."""
        half = self.wide(f"'{HALF}'")
        upper, lower = (
            self.double(f"CAST({part} AS BIGINT)") for part in (self.quotient(value, half), self.remainder(value, half))
        )
        return self.infix(self.infix(upper, "*", self.number(float(HALF))), "+", lower)

    def arithmetic(self, left: str, operator: str, right: str) -> str:
        """``+``, ``-`` or ``*`` of DOUBLEs as in IEEE 754: overflow gives infinity, and nothing fails."""
        return self.infix(left, operator, right)

    def divided(self, left: str, right: str) -> str:
        """Quotient of DOUBLEs; by zero of either sign it is an infinity with the sign of the left, NULL for 0."""
        zero, infinity = self.number(0.0), self.infinity
        signs = f"WHEN {left} > {zero} AND {left} <= {infinity} THEN {infinity} "  # NaN may be above all
        signs += f"WHEN {left} < {zero} THEN {self.negative(infinity)}"
        return f"CASE WHEN {right} = {zero} THEN CASE {signs} END ELSE {self.infix(left, '/', right)} END"

    def double_remainder(self, left: str, right: str) -> str | None:
        """Exact remainder of finite DOUBLEs with the sign of the left, as C's ``fmod``; None if there is no way."""
        return self.infix(left, "%", right)

    def keys(self, carriers: Sequence[str], lists: Sequence[list[Any]]) -> tuple[str, list[list[Any]]]:
        """Listed keys as a relation ``keys_listed`` with columns g0, g1, ... and code, and its parameters.

        ``carriers``: the type of each column.
        ``lists``: its values, text, whole numbers or floats, None for missing; ``code`` is the place in them, from
            0.
        """
        names = [*(f"g{at}" for at in range(len(carriers))), "code"]
        rows = [
            f"({', '.join(map(self._literal, (*row, at)))})" for at, row in enumerate(zip(*lists, strict=True))
        ] or [f"({', '.join(['NULL'] * len(carriers))}, 0)"]
        types = [*map(self.carried_type, carriers), WHOLE]
        casts = [f"CAST({name} AS {sql_type})" for name, sql_type in zip(names, types, strict=True)]
        chosen = ", ".join(
            f"{self.exact_text(sql) if carrier == TEXT else sql} AS {name}"
            for sql, carrier, name in zip(casts, (*carriers, WHOLE), names, strict=True)
        )
        nobody = "" if lists[0] else " WHERE false"
        return f"(SELECT {chosen} FROM {self.rows_carried(names, types, rows)}{nobody}) AS keys_listed", []

    def carried_type(self, carrier: str) -> str:
        """The type of listed keys."""
        return {TEXT: self.text_type, DOUBLE: self.double_type}.get(carrier, carrier)

    def rows_carried(self, names: Sequence[str], types: Sequence[str], rows: Sequence[str]) -> str:  # noqa: ARG002
        """Rows of literals as they stand in FROM; DOUBLEs are texts there."""
        return f"(VALUES {', '.join(rows)}) AS keys_carried ({', '.join(names)})"

    def _literal(self, value: Any) -> str:
        """A key as a literal, which is cast to its type afterwards."""
        if value is None:
            return "NULL"
        return (
            str(value) if isinstance(value, int) else self.text(value if isinstance(value, str) else self.digits(value))
        )

    def scaled(self, value: str, factor: float, *, divides: bool = False) -> str:
        """Product of a DOUBLE and a positive number, or their quotient, which is then rounded to a whole number."""
        return self.infix(value, "/" if divides else "*", self.number(factor))

    def quantile(self, value: str, q: float) -> str:
        """Quantile of the values of a group, between its two nearest ones."""
        return self.call("QUANTILE_CONT", value, self.number(q))

    def spread(self, name: str, value: str) -> str:
        """VAR_SAMP, VAR_POP, STDDEV_SAMP or STDDEV_POP of a group's values, sorted: no order changes a digit."""
        values = self.call("LIST_SORT", self.call("LIST", value), "'ASC'", "'NULLS LAST'")
        return self.call("LIST_AGGREGATE", values, f"'{name}'")

    def nearest_whole(self, value: str) -> str:
        """BIGINT nearest to a DOUBLE, halves to even."""
        return f"CAST({value} AS BIGINT)"

    def whole_sum(self, value: str) -> str:
        """Exact sum of BIGINTs, in a type that holds it."""
        return self.call("SUM", value)

    def same(self, left: str, right: str) -> str:
        """Whether two keys are equal, or both missing."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def same_keys(self, pairs: Sequence[tuple[str, str]], *, missing: bool) -> str:
        """Whether all keys are equal; with ``missing``, two missing keys are equal."""
        equal = (self.same(*pair) if missing else f"{pair[0]} = {pair[1]}" for pair in pairs)
        return " AND ".join(equal) or "true"

    def clamped(self, value: str, lo: str, hi: str) -> str:
        """A DOUBLE moved into the bounds; NULL where it is NULL or NaN. Infinities are moved like any other.

        ``value, lo, hi``: SQL expressions of type DOUBLE.
        """
        return self.inside(value, value, lo, hi, lo, hi)

    def inside(self, value: str, then: str, lo: str, hi: str, at_lo: str, at_hi: str) -> str:
        """One of three expressions, for a value within, below or above the bounds; else NULL."""
        # The common case first: if all of a vector is inside, DuckDB evaluates no other branch. Engines that order
        # NaN last, and those that make every comparison with it false, end up at NULL alike.
        return (
            f"CASE WHEN {value} BETWEEN {lo} AND {hi} THEN {then} WHEN {value} < {lo} THEN {at_lo} "
            f"WHEN {value} <= {self.infinity} THEN {at_hi} END"
        )


class DuckDBDialect(Dialect):
    """DuckDB: a pivot by QUANTILE_DISC costs half of a sort, and no memory beyond that of a median.

    Everything is called by its full name: a macro of the same name would stand in for it otherwise, operators included.
    """

    by_pivot = True
    skips = True
    reads_spans = True
    reads_later = False  # who opened a file or database closes it soon, and another look costs as much

    def call(self, name: str, *arguments: str) -> str:  # noqa: D102
        if arguments == ("*",):
            name, arguments = "count_star", ()
        return f'system.main."{name.lower()}"({", ".join(arguments)})'

    def counted(self, condition: str) -> str:  # noqa: D102
        return f"CAST({self.call('COUNT_IF', condition)} AS BIGINT)"

    def listed(self, value: str, by: str) -> str:  # noqa: D102
        return self.call("ARRAY_AGG", f"{value} ORDER BY {by} ASC")

    def infix(self, left: str, operator: str, right: str) -> str:  # noqa: D102
        return self.call(operator, left, right)

    def negative(self, value: str) -> str:  # noqa: D102
        return self.call("-", value)

    def exact_text(self, value: str) -> str:  # noqa: D102
        return f'(CAST({value} AS VARCHAR) COLLATE "binary")'

    def whole_double(self, value: str) -> str:  # noqa: D102
        return self.wide(value)

    def keys(self, carriers: Sequence[str], lists: Sequence[list[Any]]) -> tuple[str, list[list[Any]]]:
        """One list parameter for each column: a million keys are no text."""
        columns = [f"unnest(CAST(${at + 1} AS {carrier}[])) AS g{at}" for at, carrier in enumerate(carriers)]
        columns.append("unnest(system.main.range(system.main.len($1))) AS code")
        exact = (self.exact_text(f"g{at}") if carrier == TEXT else f"g{at}" for at, carrier in enumerate(carriers))
        chosen = ", ".join([*(f"{sql} AS g{at}" for at, sql in enumerate(exact)), "code"])
        relation = f"(SELECT {chosen} FROM (SELECT {', '.join(columns)}) AS keys_carried) AS keys_listed"
        return relation, list(lists)
