"""PostgreSQL: its SQL dialect, and statements that change nothing and see one state of the data."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pdrisk.engines.sql.dialects.dialect import TEXT, Dialect
from pdrisk.engines.sql.dialects.letters import letters_cased
from pdrisk.engines.sql.summary.order_lists import Lists
from pdrisk.engines.sql.summary.reading import Columns
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    import psycopg

TINY: Final = 2.0**-60  # below it a product is rounded to 0, with or without a half
FLOAT4, FLOAT8, INT2, INT4, INT8 = 700, 701, 21, 23, 20  # numbers of types, the same on every server
ARRAYS: Final = {1022: ">f8", 1016: ">i8"}  # of FLOAT8 and INT8
HEAD: Final = 20  # bytes of an array of one dimension before its elements; an empty one has fewer in all

# Names are those of the server's own functions, operators and types, whatever was made in other schemas; numbers are
# written with all digits, and times in one way, whatever the session's settings are. A policy that hides rows from a
# role hides them here. Nothing of groups is compiled: of listed keys the server expects so many lines that it would
# take longer to compile a statement than to run it.
SETTINGS: Final = """
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL standard_conforming_strings = on;
SET LOCAL transform_null_equals = off;
SET LOCAL array_nulls = on;
SET LOCAL extra_float_digits = 1;
SET LOCAL DateStyle = ISO;
SET LOCAL TimeZone = 'UTC';
SET LOCAL bytea_output = hex;
SET LOCAL client_encoding = UTF8;
SET LOCAL client_min_messages = error;
SET LOCAL jit = off;
SET LOCAL transaction_read_only = on;
"""
COMPILED: Final = "SET LOCAL jit TO DEFAULT;"  # where the server finds that worth its while
READ_ONLY: Final = "SET LOCAL transaction_read_only = on"

_LOCKS: weakref.WeakKeyDictionary[object, Any] = weakref.WeakKeyDictionary()  # of connections
_NUMBERS: Final = itertools.count()  # of savepoints
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOCKS.clear)  # the threads that hold them are not there


def _double(exponent: int) -> str:
    """A power of two as a DOUBLE."""
    return f"CAST('{2.0**exponent!r}' AS DOUBLE PRECISION)"


INFINITE, LO, HI = "CAST('infinity' AS DOUBLE PRECISION)", _double(-500), _double(500)
UP, DOWN, ONE, HALF_LEAST = _double(512), _double(-512), _double(0), _double(-51)
ZERO = "CAST(0 AS DOUBLE PRECISION)"
# Arithmetic of a and b that overflows to an infinity and vanishes to 0, as IEEE 754 has it, where PostgreSQL raises.
# What may do either is looked at after operands were moved by powers of two: that is exact, and rounds alike.
MODERATE = f"ABS(a) BETWEEN {LO} AND {HI} AND ABS(b) BETWEEN {LO} AND {HI}"
UNBOUNDED = f"ABS(a) >= {INFINITE} OR ABS(b) >= {INFINITE}"  # or NaN, which is larger
SIGNED = f"CASE WHEN (a < 0) = (b < 0) THEN {INFINITE} ELSE -{INFINITE} END"
SUM: Final = (
    f"CASE WHEN ABS(a) <= {_double(900)} OR ABS(b) <= {_double(900)} OR {UNBOUNDED} THEN a + b "
    f"WHEN a * {_double(-1)} + b * {_double(-1)} >= {_double(1023)} THEN {INFINITE} "
    f"WHEN a * {_double(-1)} + b * {_double(-1)} <= -{_double(1023)} THEN -{INFINITE} ELSE a + b END"
)
PRODUCT: Final = (
    f"CASE WHEN {MODERATE} OR a = 0 OR b = 0 OR {UNBOUNDED} THEN a * b "
    f"WHEN ABS(a) >= {LO} AND ABS(b) >= {LO} THEN "
    f"CASE WHEN ABS((a * {DOWN}) * (b * {DOWN})) >= {ONE} THEN {SIGNED} ELSE a * b END "
    f"WHEN ABS(a) > {HI} OR ABS(b) > {HI} THEN a * b "
    f"WHEN ABS(a) < {_double(-540)} AND ABS(b) < {_double(-540)} THEN {ZERO} "
    f"WHEN ABS((a * {UP}) * (b * {UP})) <= {HALF_LEAST} THEN {ZERO} ELSE a * b END"
)
QUOTIENT: Final = (
    f"CASE WHEN b = 0 THEN CASE WHEN a > 0 AND a <= {INFINITE} THEN {INFINITE} WHEN a < 0 THEN -{INFINITE} END "
    f"WHEN {MODERATE} OR a = 0 OR {UNBOUNDED} THEN a / b "
    f"WHEN ABS(a) > {HI} AND ABS(b) < {_double(-560)} THEN {SIGNED} "
    f"WHEN ABS(a) >= {LO} AND ABS(b) <= {HI} THEN "
    f"CASE WHEN ABS((a * {DOWN}) / (b * {UP})) >= {ONE} THEN {SIGNED} ELSE a / b END "
    f"WHEN ABS(a) > {HI} OR ABS(b) < {LO} THEN a / b "
    f"WHEN ABS((a * {UP}) / (b * {DOWN})) <= {HALF_LEAST} THEN {ZERO} ELSE a / b END"
)


class PostgresDialect(Dialect):
    """PostgreSQL from version 14 on.

    It raises where other engines have an infinity or a zero, so whatever a record could make overflow, or vanish, is
    decided beforehand. Functions and operators need no schema before them: `reading` sets where they are looked for.
    """

    engine = "PostgreSQL"
    letters, octets = "CHAR_LENGTH", "OCTET_LENGTH"
    by_rank = True
    stepwise = True  # several processes read no pass that knows what another one in the same statement found
    double_type = "DOUBLE PRECISION"
    text_type = "TEXT"
    # A subquery with a volatile column is no part of the query around it, where each use would be computed anew; that
    # column is folded to NULL before it runs.
    once = ("CASE WHEN false THEN clock_timestamp() END AS computed_once",)

    def call(self, name: str, *arguments: str) -> str:  # noqa: D102
        if name == "LOG2":
            return self.infix(self.call("LN", *arguments), "/", self.number(math.log(2)))
        return super().call(name, *arguments)

    def at_ranks(self, value: str, n: str, first: str, last: str) -> str:
        """One sort for all ranks: the share (k - 1/2) / n gives rank k, far from any rounding."""
        share = self.infix(self.infix(self.double("place"), "-", self.number(0.5)), "/", self.double(n))
        shares = f"ARRAY(SELECT {share} FROM generate_series({first}, {last}) AS places (place))"
        return f"percentile_disc({shares}) WITHIN GROUP (ORDER BY {value})"

    def quantile(self, value: str, q: float) -> str:  # noqa: D102
        return f"percentile_cont({self.number(q)}) WITHIN GROUP (ORDER BY {value})"

    def spread(self, name: str, value: str) -> str:  # noqa: D102
        return f"{name}({value} ORDER BY {value})"

    def scaled(self, value: str, factor: float, *, divides: bool = False) -> str:  # noqa: D102
        product = super().scaled(value, factor, divides=divides)
        if factor >= 1 and not divides:
            return product
        end = TINY * factor if divides else TINY / factor
        return f"CASE WHEN {value} BETWEEN {self.number(-end)} AND {self.number(end)} THEN 0 ELSE {product} END"

    def wide(self, value: str) -> str:  # noqa: D102
        return f"CAST({value} AS NUMERIC)"

    def quotient(self, value: str, divisor: str) -> str:  # noqa: D102
        return self.call("DIV", value, divisor)

    def arithmetic(self, left: str, operator: str, right: str) -> str:  # noqa: D102
        if operator == "*":
            return _of_operands(PRODUCT, left, right)
        return _of_operands(SUM, left, right if operator == "+" else self.negative(right))

    def divided(self, left: str, right: str) -> str:  # noqa: D102
        return _of_operands(QUOTIENT, left, right)

    def double_remainder(self, left: str, right: str) -> str | None:  # noqa: ARG002, D102
        return None

    def exact_text(self, value: str) -> str:  # noqa: D102
        return f'(CAST({value} AS TEXT) COLLATE "C")'

    def let(self, value: str, body: Callable[[str], str]) -> str:  # noqa: D102
        name = f"v{hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()[:12]}"
        return f"(SELECT {body(name)} FROM (SELECT {value} AS {name} OFFSET 0) AS bound)"

    def of_text(self, value: str, to: str) -> str:  # noqa: D102
        return f"CAST(CAST({value} AS TEXT) AS {to})"  # a literal alone is cast before any CASE is looked at

    def matches(self, value: str, pattern: str) -> str:  # noqa: D102
        return f"({value} ~ {self.text(f'^(?:{pattern})$')})"

    def cased(self, how: str, value: str) -> str:
        """Letters of ASCII by the server, whatever its locale knows of others; those by a table."""
        text = self.exact_text(value)
        return (
            f"(CASE WHEN OCTET_LENGTH({value}) = CHAR_LENGTH({value}) THEN {self.call(how.upper(), text)} "
            f"ELSE {self.call('TRANSLATE', text, *map(self.text, letters_cased(how)))} END)"
        )

    def trimmed(self, how: str, value: str, signs: str) -> str:  # noqa: D102
        return self.call({"trim": "BTRIM"}.get(how, how.upper()), value, signs)

    def part_of_day(self, unit: str, day: str) -> str:  # noqa: D102
        return f"EXTRACT({ {'dayofyear': 'DOY'}.get(unit, unit.upper()) } FROM {day})"

    def keys(self, carriers: Sequence[str], lists: Sequence[list[Any]]) -> tuple[str, list[list[Any]]]:
        """One array parameter for each column: a million keys make no long text."""
        if any("\0" in key for keys in lists for key in keys if isinstance(key, str)):
            raise ParameterError("a key has a zero character, which PostgreSQL cannot store: leave it out.")
        arrays = ", ".join(
            f"CAST(${at} AS {sql_type}[])" for at, sql_type in enumerate(map(self.carried_type, carriers), 1)
        )
        names = [f"g{at}" for at in range(len(carriers))]
        chosen = [
            f"{self.exact_text(name) if carrier == TEXT else name} AS {name}"
            for name, carrier in zip(names, carriers, strict=True)
        ]
        numbered = f"unnest({arrays}) WITH ORDINALITY AS keys_carried ({', '.join(names)}, at)"
        return f"(SELECT {', '.join(chosen)}, at - 1 AS code FROM {numbered}) AS keys_listed", list(map(list, lists))

    def same(self, left: str, right: str) -> str:  # noqa: D102
        # Tables are joined by hashes of what is equal; IS NOT DISTINCT FROM compares each line with each other.
        return f"ARRAY[{left}] = ARRAY[{right}]"


def _of_operands(case: str, left: str, right: str) -> str:
    """CASE of two DOUBLEs a and b, each written once."""
    # OFFSET 0 keeps the planner from writing them wherever the case says a or b.
    return f"(SELECT {case} FROM (SELECT {left} AS a, {right} AS b OFFSET 0) AS operands)"


def fetched(cursor: psycopg.Cursor[Any], sql: str, values: Sequence[Any]) -> Columns:
    """The columns of an answer.

    ``cursor``: that of `reading`.
    ``sql``: with parameters as $1, $2, ...
    ``values``: of keys.
    """
    rows = asked(cursor, sql, list(map(_array, values)))
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    columns = zip(*rows, strict=True) if rows else ((),) * len(described)
    # From the end: a listed key comes before the equal column of a joined table, which is NULL for an empty group.
    pairs = reversed(list(zip(described, columns, strict=True)))
    return {name: _column(code, column) for (name, code), column in pairs}


def _array(keys: Sequence[Any]) -> str:
    """Text, numbers and None as an array literal; psycopg takes ten times as long for it."""

    def quoted(key: str) -> str:
        return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'

    written = ("NULL" if key is None else quoted(key) if isinstance(key, str) else repr(key) for key in keys)
    return "{" + ",".join(written) + "}"


def asked(cursor: psycopg.Cursor[Any], sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Rows of an answer; floats with all digits, as they come in binary form."""
    return cursor.execute(sql.encode(), list(values) or None, prepare=False, binary=True).fetchall()


def compiled(cursor: psycopg.Cursor[Any]) -> bool:
    """Let the statements of a transaction be compiled; and whether all of them see one state of the data.

    They do not in a transaction of somebody else's that is READ COMMITTED.
    """
    cursor.execute(f"{COMPILED} SHOW transaction_isolation".encode(), prepare=False)
    cursor.nextset()
    return cursor.fetchall() in ([("repeatable read",)], [("serializable",)])


def _column(code: int, values: Sequence[Any]) -> np.ma.MaskedArray[Any, Any] | Lists:
    if code in ARRAYS:
        return _lists(ARRAYS[code], values)
    missing = np.array([value is None for value in values], dtype=np.bool_)
    if code in (FLOAT4, FLOAT8, INT2, INT4, INT8):
        dtype = np.float64 if code in (FLOAT4, FLOAT8) else np.int64
        data = np.array([0 if value is None else value for value in values], dtype=dtype)
    else:
        data = np.empty(len(values), dtype=object)
        data[:] = values
    return np.ma.MaskedArray(data, missing)


def _lists(kind: str, values: Sequence[bytes | None]) -> Lists:
    """Lists from arrays in binary form, which psycopg would make a Python object of each element."""
    elements = [b"" if value is None else value[HEAD:] for value in values]
    parsed = np.frombuffer(b"".join(elements), dtype=[("size", ">i4"), ("value", kind)])
    if not (parsed["size"] == parsed.dtype["value"].itemsize).all():
        raise ValueError("an array of numbers has a NULL")
    lengths = np.array([len(element) for element in elements], dtype=np.int64) // parsed.itemsize
    numbers = parsed["value"].astype(parsed.dtype["value"].newbyteorder("="))
    return Lists(numbers, np.concatenate([[0], np.cumsum(lengths)]))


@contextmanager
def alone(connection: object) -> Iterator[None]:
    """Lock of a connection, which one thread holds at a time, as often as it likes."""
    with _LOCKS.setdefault(connection, threading.RLock()):
        yield


@contextmanager
def reading(connection: psycopg.Connection[Any], settings: str = SETTINGS) -> Iterator[psycopg.Cursor[Any]]:
    """Cursor in a transaction that only reads, and whose statements see one state of the data.

    In a transaction that is open it is a part of that, and sees what that sees. It leaves nothing behind, be it a
    setting: it is rolled back at the end, and a connection where that fails is closed.
    """
    import psycopg
    from psycopg.pq import TransactionStatus
    from psycopg.rows import tuple_row
    from psycopg.types.string import ByteaBinaryLoader

    with alone(connection):
        # No transaction() of psycopg's: an interrupt between its steps leaves the connection counting one too many.
        before = connection.info.transaction_status
        if before == TransactionStatus.IDLE:
            begin, end = "BEGIN;" if connection.autocommit else "", "ROLLBACK"  # else psycopg begins by itself
            begin += "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
        else:
            name = f"pdrisk_{next(_NUMBERS)}"
            begin, end = f"SAVEPOINT {name};", f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}"
        restored = False
        try:
            try:
                with psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
                    for code in ARRAYS:
                        cursor.adapters.register_loader(code, ByteaBinaryLoader)
                    cursor.execute((begin + settings).encode(), prepare=False)
                    yield cursor
            finally:
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):  # what failed first is the error
                        psycopg.RawCursor(connection).execute(end.encode(), prepare=False)
                # A transaction of somebody else's that failed is theirs to roll back.
                is_theirs = before != TransactionStatus.IDLE
                after = connection.info.transaction_status
                restored = after == (TransactionStatus.INTRANS if is_theirs else TransactionStatus.IDLE)
                restored = restored or (is_theirs and after == TransactionStatus.INERROR)
        finally:
            if not restored:
                connection.close()
