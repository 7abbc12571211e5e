"""Ranges and values of expressions that follow from their parts: constants, functions, declared columns.

They are bounds for aggregates and keys for groups, where nobody passes any. A range holds for the records whose columns
lie within what is declared of them; all others are moved to its ends, as under every bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pdrisk._core.days import SECONDS, moment
from pdrisk._core.universe import Universe

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Range:
    """The interval that the numbers of an expression lie in."""

    # `lo`, `hi`: infinite where nothing is known
    lo: float = -math.inf
    hi: float = math.inf
    columns: frozenset[str] = frozenset()  # the columns, in lower case, whose declared range it is made of
    by_where: bool = False  # whether a WHERE has narrowed that of one of them

    def within(self, other: Range) -> Range:
        """What lies in both; the other one if nothing does."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        if lo > hi:
            return other
        return Range(lo, hi, self.columns | other.columns, self.by_where)

    @property
    def universe(self) -> Universe | None:
        """The range as bounds, if it has two ends; a single value makes a range with zero."""
        lo, hi = self.lo, self.hi
        if not (math.isfinite(lo) and math.isfinite(hi)):
            return None
        if lo == hi:
            lo, hi = (0.0, 1.0) if lo == 0 else (min(lo, 0.0), max(lo, 0.0))
        return Universe(lo, hi)


ANYTHING = Range()
TRUE_OR_FALSE = (False, True)


def range_of(universe: Universe | None, column: str) -> Range:
    """The range that is declared of a column."""
    return ANYTHING if universe is None else Range(universe.lo, universe.hi, frozenset({column}))


def hull(ranges: Sequence[Range]) -> Range:
    """The smallest range that holds several."""
    return _made(min(part.lo for part in ranges), max(part.hi for part in ranges), ranges)


def range_of_sum(lies: Range) -> Range:
    """Range of sums of any number of values within a range."""
    return _made(0.0 if lies.lo >= 0 else -math.inf, 0.0 if lies.hi <= 0 else math.inf, [lies])


def range_of_function(name: str, parts: Sequence[Range], constant: Sequence[bool]) -> Range:
    """Range of an operator or function of numbers.

    ``name``: of `pdrisk._sql.expressions.allowed_functions`.
    ``parts``: those of its arguments.
    ``constant``: which of them are constants, and so never missing.
    """
    try:
        lo, hi = _ends(name, parts, constant)
    except (ArithmeticError, ValueError):  # beyond what is defined, or what a float holds
        return ANYTHING
    return ANYTHING if math.isnan(lo) or math.isnan(hi) else _made(lo, hi, parts)


def range_of_time(name: str, times: Sequence[Range], unit: str = "") -> Range:
    """Range of a function of one or two times, whose ranges are in days.

    ``name``: ``year``, ``epoch``, ``date_part`` of the time between two, ``date_diff`` or ``date_sub``.
    ``unit``: of the last three.
    """
    place = PLACES.get(unit.lower().removesuffix("s"))
    if not all(math.isfinite(end) for time in times for end in (time.lo, time.hi)):
        return ANYTHING
    try:
        match name, times:
            case "year", [time]:
                return _made(PLACES[name](time.lo), PLACES[name](time.hi), times)
            case "epoch", [time]:
                return _made(time.lo * SECONDS, time.hi * SECONDS, times)
            case "date_part" | "datepart", [between] if unit.lower() == "day":
                return _made(math.trunc(between.lo), math.trunc(between.hi), times)
            case "date_diff" | "datediff" | "date_sub" | "datesub", [first, last] if place is not None:
                lo, hi = place(last.lo) - place(first.hi), place(last.hi) - place(first.lo)
                # Whole units between two times are one less than the beginnings of units there, or as many. Weeks are
                # always whole ones in DuckDB, from a Monday on.
                whole = name in ("date_sub", "datesub") or unit.lower().startswith("week")
                return _made(lo - (whole and lo > 0), hi + (whole and hi < 0), times)
    except OverflowError:  # beyond the calendar
        pass
    return ANYTHING


def _month(days: float) -> int:
    date = moment(math.floor(days), times=False)
    return 12 * date.year + date.month - 1


def _second(days: float) -> int:
    return math.floor(round(days * SECONDS, 6))  # a float of days is that near to its time


#: How many units have begun before or at a time, give or take a constant.
PLACES: Mapping[str, Callable[[float], float]] = {
    "year": lambda days: _month(days) // 12, "quarter": lambda days: _month(days) // 3, "month": _month,
    "week": lambda days: math.floor((days + 3) / 7),  # 1970 began on a Thursday
    "day": math.floor, "hour": lambda days: _second(days) // 3600, "minute": lambda days: _second(days) // 60,
    "second": lambda days: _second(days),
}  # fmt: skip


def _made(lo: float, hi: float, parts: Sequence[Range]) -> Range:
    # A float that cannot hold an end exactly is next to it, and -0 is 0.
    columns = frozenset[str]().union(*(part.columns for part in parts))
    return Range(lo + 0.0, hi + 0.0, columns, any(part.by_where for part in parts))


def _ends(name: str, parts: Sequence[Range], constant: Sequence[bool]) -> tuple[float, float]:
    if name in LIMITED:
        return LIMITED[name]
    if name in ("greatest", "least"):
        return _end(name, parts, constant)
    first = parts[0]
    if len(parts) == 1:
        return _of_one(name, first.lo, first.hi)
    other = parts[1]
    match name:
        case "round" | "trunc":
            unit = 10.0 ** max(0.0, -other.lo)
            low, high = _of_one(name, first.lo / unit, first.hi / unit)
            return low * unit, high * unit
        case "+":
            return first.lo + other.lo, first.hi + other.hi
        case "-":
            return first.lo - other.hi, first.hi - other.lo
        case "*" | "/" | "//":
            if name != "*" and other.lo <= 0 <= other.hi:
                return _by_zero(first, other)
            ends = [_computed(name, one, two) for one in (first.lo, first.hi) for two in (other.lo, other.hi)]
            return min(ends), max(ends)
        case "%" | "mod":
            # The sign is that of the dividend, which is never farther from zero than itself.
            most = min(max(abs(other.lo), abs(other.hi)), max(abs(first.lo), abs(first.hi)))
            return (-most if first.lo < 0 else 0.0), (most if first.hi > 0 else 0.0)
        case "^" | "**" | "pow" | "power" if other.lo == other.hi and (first.lo >= 0 or other.lo in (2.0, 4.0)):
            ends = [first.lo**other.lo, first.hi**other.lo]
            return (0.0 if first.lo < 0 < first.hi else min(ends)), max(ends)
    return -math.inf, math.inf


def _by_zero(first: Range, other: Range) -> tuple[float, float]:
    """Ends of quotients by numbers that may be 0: where these have one sign, that of what is divided is known."""
    if other.lo < 0 < other.hi:
        return -math.inf, math.inf
    low, high = (first.lo, first.hi) if other.lo >= 0 else (-first.hi, -first.lo)
    return 0.0 if low >= 0 else -math.inf, 0.0 if high <= 0 else math.inf


def _computed(name: str, one: float, other: float) -> float:
    if name == "*":
        return 0.0 if 0 in (one, other) else one * other
    if math.isinf(other):
        return 0.0
    return float(math.trunc(one / other)) if name == "//" and math.isfinite(one) else one / other


def _of_one(name: str, lo: float, hi: float) -> tuple[float, float]:
    if name == "-":
        return -hi, -lo
    if name == "abs":
        return (0.0 if lo <= 0 <= hi else min(abs(lo), abs(hi))), max(abs(lo), abs(hi))
    if name in ROUNDING:
        # Outwards: how halves are rounded, and to how many digits, decides less than one.
        return (math.floor(lo) if math.isfinite(lo) else lo), (math.ceil(hi) if math.isfinite(hi) else hi)
    if name in ROOTS:
        lo = max(lo, 0.0)
    if name in GROWING and lo <= hi:
        grown = GROWING[name]
        return (grown(lo) if math.isfinite(lo) else lo), (grown(hi) if math.isfinite(hi) else hi)
    return -math.inf, math.inf


def _end(name: str, parts: Sequence[Range], constant: Sequence[bool]) -> tuple[float, float]:
    """End of GREATEST or LEAST, which skip missing values: only constants are certain to count."""
    sure = [part for part, fixed in zip(parts, constant, strict=True) if fixed]
    if name == "greatest":
        low = max(part.lo for part in sure) if sure else min(part.lo for part in parts)
        return low, max(part.hi for part in parts)
    high = min(part.hi for part in sure) if sure else max(part.hi for part in parts)
    return min(part.lo for part in parts), high


ROUNDING = frozenset({"round", "trunc", "floor", "ceil", "ceiling"})
ROOTS = frozenset({"sqrt"})
GROWING: Mapping[str, Callable[[float], float]] = {
    "+": lambda x: x, "sqrt": math.sqrt, "cbrt": math.cbrt, "exp": math.exp, "ln": math.log, "log": math.log10,
    "log10": math.log10, "log2": math.log2, "degrees": math.degrees, "radians": math.radians,
}  # fmt: skip
LIMITED: Mapping[str, tuple[float, float]] = {
    "sign": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "asin": (-math.pi / 2, math.pi / 2),
    "acos": (0.0, math.pi), "atan": (-math.pi / 2, math.pi / 2), "atan2": (-math.pi, math.pi),
}  # fmt: skip
#: Parts of dates and times that have few values, all of which are public.
DATE_PARTS: Mapping[str, range] = {
    **dict.fromkeys(("dayofweek", "weekday"), range(7)), "isodow": range(1, 8), "quarter": range(1, 5),
    "month": range(1, 13), **dict.fromkeys(("day", "dayofmonth"), range(1, 32)),
    **dict.fromkeys(("week", "weekofyear"), range(1, 54)), "dayofyear": range(1, 367), "hour": range(24),
    "minute": range(60), "second": range(60),
}  # fmt: skip


#: Their names, as DuckDB has them whatever the language of its host.
DATE_NAMES: Mapping[str, tuple[str, ...]] = {
    "dayname": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "monthname": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ),
}  # fmt: skip


def listed(parts: Sequence[tuple[Value, ...] | None]) -> tuple[Value, ...] | None:
    """Values of all parts, each once and in order; None if those of one are unknown."""
    if any(part is None for part in parts):
        return None
    return tuple(dict.fromkeys(itertools.chain.from_iterable(part for part in parts if part is not None)))
