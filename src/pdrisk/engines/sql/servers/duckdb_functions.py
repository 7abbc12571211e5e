"""Functions and casts of DuckDB: inside TRY, so that no record can make them fail, and each argument written once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from pdrisk._model.expressions.kinds import DATE, DURATION, NUMBER, TEXT, TIME, TRUTH, ZONED
from pdrisk._model.rowwise.families import UNITS
from pdrisk.engines.sql.compiler.casts import GRAMMARS, ends_of
from pdrisk.engines.sql.compiler.comparisons import without_nan
from pdrisk.engines.sql.compiler.values import BIGINT, Value, as_double
from pdrisk.engines.sql.dialects.dialect import DuckDBDialect

WHOLE: Final = "whole numbers"
RESULTS: Final = {
    **dict.fromkeys(
        (
            "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "ln", "log", "log2", "log10", "exp",
            "pow", "fmod", "degrees", "radians", "round", "trunc", "floor", "ceil", "ceiling", "epoch",
        ), NUMBER,
    ),
    **dict.fromkeys(("date_part", "date_diff", "date_sub"), WHOLE),
    **dict.fromkeys(("isinf", "isfinite", "regexp_matches", "regexp_full_match", "~~", "!~~", "~~*", "!~~*"), TRUTH),
    **dict.fromkeys(
        ("reverse", "regexp_replace", "regexp_extract", "left", "right", "substr", "substring", "split_part",
         "strftime"), TEXT,
    ),
    **dict.fromkeys(("strptime", "try_strptime", "time_bucket", "date_trunc", "make_date"), TIME),
}  # fmt: skip
SPAN: Final = (-(2**50), 2**50)
SYMBOLS: Final = {"==": "=", "!=": "<>"}
FIRST, END = "CAST('0001-01-01' AS DATE)", "CAST('10000-01-01' AS DATE)"  # of the calendar that Python has, too
FIRST_MOMENT, LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999  # of it, in microseconds since 1970
ANY_TIME: Final = (-BIGINT - 1, BIGINT)
ROUNDING: Final = frozenset({"round", "trunc", "floor", "ceil", "ceiling"})


class DuckDBForSQL(DuckDBDialect):
    """DuckDB where `pdrisk.sql` asks it, which knows all its types and functions.

    Parameters
    ----------
    zone : str
        By whose clock times with a zone are read.
    """

    engine = "DuckDB"

    def __init__(self, zone: str = "UTC") -> None:
        self.zone, self.own = zone, self

    def divided(self, left: str, right: str) -> str:
        """Quotient of DOUBLEs, by either zero as by 0."""
        return f"TRY({self.call('/', left, self.call('+', right, self.number(0.0)))})"

    # --- Functions ----------------------------------------------------------------------------------------------------

    def function(self, name: str, values: Sequence[Value], constants: Sequence[Any]) -> Value | None:
        """A function by its name in SQL; None if every engine has it alike."""
        result = RESULTS.get(name)
        if result is None or (name in ("date_part", "epoch") and values[-1].family == DURATION):
            return None
        if name == "fmod":
            left, right = (as_double(self, value) for value in values)
            by = f"(CASE WHEN {right} <> {self.number(0.0)} THEN {right} END)"
            whole = self.call("FLOOR", self.call("/", left, by))
            return Value(f"TRY({self.call('-', left, self.call('*', by, whole))})", clean=False)
        passed = [
            self._passed(name, at, value, given, result)
            for at, (value, given) in enumerate(zip(values, constants, strict=True))
        ]
        sql = f"TRY({self.call('try_strptime' if name == 'strptime' else name, *passed)})"
        if result == TEXT:
            return Value(self.exact_text(sql), TEXT)
        if result == TRUTH:
            return Value(sql, is_truth=True)
        if result == WHOLE:
            return Value(f"CAST({sql} AS BIGINT)", span=SPAN)
        if name == "date_trunc":  # which cannot leave the calendar
            return Value(self.call("epoch_us", f"CAST({sql} AS TIMESTAMP)"), DATE, ANY_TIME, UNITS["us"])
        if result == TIME:
            return self._within_calendar(f"CAST({sql} AS TIMESTAMP)", is_day=name == "make_date")
        return Value(sql, clean=False)

    def _passed(self, name: str, at: int, value: Value, given: Any, result: str) -> str:
        """An argument in DuckDB's type."""
        if isinstance(given, tuple):
            return "CAST('{} months {} days {} microseconds' AS INTERVAL)".format(*given)
        if value.family == DATE:
            return self.time(value)
        if value.family == DURATION:
            return self.call("to_microseconds", value.sql)
        if value.family != NUMBER or value.is_truth:
            return value.sql
        if result == TEXT or (at and name in ROUNDING) or name == "make_date":  # whole numbers, and of letters
            return str(given) if type(given) is int else f"TRY_CAST({value.sql} AS BIGINT)"
        double = Value(as_double(self, value), clean=value.clean)
        # What is no number of NaN, too, or says that it is none.
        return without_nan(self, double).sql if name in ("pow", "isinf", "isfinite") else double.sql

    # --- Casts --------------------------------------------------------------------------------------------------------

    def cast(self, value: Value, to: str) -> Value | None:
        """A cast; None if it is one that leaves the value as it is."""
        if value.family == ZONED and to in ("DATE", "TIMESTAMP"):
            at_utc = self.call("timezone", "'UTC'", self.call("make_timestamp", value.sql))
            return self._within_calendar(f"CAST({self.call('timezone', self.text(self.zone), at_utc)} AS {to})",
                                         is_day=to == "DATE")  # fmt: skip
        if to == "BOOLEAN" and value.family == TEXT:
            return Value(f"TRY_CAST({value.sql} AS BOOLEAN)", is_truth=True)
        if to == "VARCHAR" and value.family not in (NUMBER, DATE, ZONED, DURATION, TEXT):
            return Value(self.exact_text(f"TRY_CAST({value.sql} AS VARCHAR)"), TEXT)
        if value.family == TEXT and to in ("DATE", "TIMESTAMP"):
            return self._within_calendar(f"TRY_CAST({self._fits(value, 'time')} AS {to})", is_day=to == "DATE")
        if value.family == TEXT and to not in ("VARCHAR", "BOOLEAN"):
            return self._number(self._fits(value, "whole" if to.endswith("INT") or to == "INTEGER" else "number"), to)
        if value.family == NUMBER and not value.is_truth and to not in ("VARCHAR", "BOOLEAN"):
            is_same = to == "DOUBLE" or (to == "HUGEINT" and value.span is not None)
            return None if is_same else self._number(value.native or value.sql, to)
        return None

    def _fits(self, value: Value, grammar: str) -> str:
        """A text, NULL where it is not written as every engine reads it."""
        return f"(CASE WHEN {self.matches(value.sql, GRAMMARS[grammar])} THEN {value.sql} END)"

    def _number(self, sql: str, to: str) -> Value:
        """A number of a type, as it is computed with."""
        if not (to.endswith("INT") or to == "INTEGER"):
            made, is_decimal = f"TRY_CAST({sql} AS {to})", to.startswith("DECIMAL")
            double = f"CAST({made} AS DOUBLE)"
            return Value(double, clean=is_decimal, stored=(double, made if is_decimal else ""))
        low, high = ends_of(to)
        if low >= -BIGINT - 1 and high <= BIGINT:
            return Value(f"CAST(TRY_CAST({sql} AS {to}) AS BIGINT)", span=(low, high))
        return self.fitting(f"TRY_CAST({sql} AS {to})")

    def exact_cast(self, value: str, to: str) -> Value | None:
        """A cast of numbers that no DOUBLE rounds on the way; None if it has to be one."""
        return None if to in ("VARCHAR", "BOOLEAN", "DOUBLE", "FLOAT") else self._number(value, to)

    def fitting(self, value: str) -> Value:
        """A whole number that BIGINT may be too narrow for."""
        return Value(f"TRY_CAST({value} AS BIGINT)", span=(-BIGINT - 1, BIGINT), beyond=f"CAST({value} AS DOUBLE)")

    # --- Times --------------------------------------------------------------------------------------------------------

    def time(self, value: Value) -> str:
        """A time as a TIMESTAMP or DATE, NULL outside of the calendar."""
        if not value.native:
            return self.call("make_timestamp", value.sql)
        return f"(CASE WHEN {value.native} >= {FIRST} AND {value.native} < {END} THEN {value.native} END)"

    def beginning_of(self, unit: str, value: Value) -> str:
        """The time at which the unit of a time begins, in microseconds."""
        cut = self.call("date_trunc", self.text(unit), f"CAST({self.time(value)} AS TIMESTAMP)")
        return self.call("epoch_us", cut)

    def moved(self, value: Value, interval: Sequence[int]) -> Value:
        """A time so many months, days and microseconds later."""
        step = "CAST('{} months {} days {} microseconds' AS INTERVAL)".format(*interval)
        return self._within_calendar(self.call("+", f"CAST({self.time(value)} AS TIMESTAMP)", step))

    def _within_calendar(self, time: str, *, is_day: bool = False) -> Value:
        """A time in microseconds, missing outside of the years 1 to 9999."""
        micros = f"TRY({self.call('epoch_us', time)})"
        sql = f"(CASE WHEN {micros} BETWEEN {FIRST_MOMENT} AND {LAST_MOMENT} THEN {micros} END)"
        return Value(sql, DATE, ANY_TIME, UNITS["us"], is_day=is_day)

    def time_beside(self, value: Value, symbol: str, nanoseconds: Any) -> str:
        """Comparison of a stored time with a constant, by which whole blocks can be left out; "" where it is none."""
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(nanoseconds) // 1000)
        if nanoseconds % 1000 or (value.is_day and moment.time() != dt.time()):
            return ""
        to = "DATE" if value.is_day else "TIMESTAMP"
        constant = f"CAST('{moment.date() if value.is_day else moment.isoformat(sep=' ')}' AS {to})"
        conditions = [f"{value.native} {SYMBOLS.get(symbol, symbol)} {constant}"]
        conditions += [f"{value.native} < {END}"] if symbol in (">", ">=", "!=") else []
        conditions += [f"{value.native} >= {FIRST}"] if symbol in ("<", "<=", "!=") else []
        return f"({' AND '.join(conditions)})"

    def interval(self, months: int, days: int, micros: int) -> Value:
        """A constant interval beside others, by which DuckDB compares them: of months of 30 days."""
        total = ((30 * months + days) * UNITS["D"] // UNITS["us"]) + micros
        return Value(self.whole(total), DURATION, (total, total), UNITS["us"])
