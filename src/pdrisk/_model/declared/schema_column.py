"""Declarations of one column of a pandera schema: range, group keys and missing codes, by checks and metadata."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

from pdrisk._core.days import day_number
from pdrisk._core.foreign import shown
from pdrisk._core.universe import Days, Universe
from pdrisk._model.arguments import universe
from pdrisk._model.declared.declarations import Declaration, narrower, universe_of
from pdrisk._model.declared.known_column import EVERYTHING, Ends
from pdrisk._model.expressions.kinds import TEXT, TRUTH
from pdrisk._model.expressions.nearest import did_you_mean
from pdrisk._model.groups.keys import listed_values
from pdrisk._model.plain import are_dates, plain_value, stamp_of
from pdrisk.errors import ColumnTypeError, ParameterError

NAME = "dprisk"  # of our part in pandera's metadata and statistics
SAYS = ("bounds", "keys", "missing")
LARGEST = 1e308  # what lies beyond is no end
RANGES = {"in_range", "greater_than_or_equal_to", "less_than_or_equal_to", "greater_than", "less_than"}


def entry_of(label: Hashable, component: Any, source: str, common: list[Any], dtype: Any) -> Declaration:
    """Declaration of one column of a schema; ``common`` are checks and ``dtype`` the type of all columns."""
    column: Hashable = str(label)
    pattern = bool(getattr(component, "regex", False))
    try:
        column = plain_value(label, "a column's label")
        if pattern:
            column = _pattern(column, component)
        return _understood(column, component, source, pattern, [*common, *component.checks], component.dtype or dtype)
    except ParameterError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - whatever a schema may hold, validation must not fail by it
        problem = f"it cannot be understood ({type(error).__name__}: {error})"
        pattern = False
    return Declaration(column, source, pattern, problem=f"column {label!r} of the {source}: {problem}")


def _understood(
    column: Hashable, component: Any, source: str, pattern: bool, checks: list[Any], dtype: Any
) -> Declaration:
    whole, days = _is_integer(dtype), _is_date(dtype)
    valid, expected = EVERYTHING, EVERYTHING
    of_dates: set[bool] = set()
    keys = _categories(dtype)
    written = getattr(component, "metadata", None)
    declared = [(written[NAME], False)] if isinstance(written, Mapping) and NAME in written else []
    for check in checks:
        if NAME in (check.statistics or {}):
            declared.append((check.statistics[NAME], check.raise_warning))
        kind = builtin_name(check)
        if kind in RANGES and (judged := _ends(kind, check.statistics, whole=whole, days=days)) is not None:
            ends, dates = judged
            of_dates.add(dates)
            if len(of_dates) > 1:
                raise ParameterError("some of its checks have dates as ends, others numbers: correct them.")
            expected = narrower(column, expected, ends, dates=dates)
            if not check.raise_warning:  # what is only warned of may be there
                valid = narrower(column, valid, ends, dates=dates)
        elif kind == "isin" and not check.raise_warning:
            allowed = _listed(check.statistics["allowed_values"])
            keys = allowed if keys is None or allowed is None else [key for key in keys if key in set(allowed)]
    stated = [(declaration_of(column, source, wording), warns) for wording, warns in declared]
    of_dates |= {one.dates for one, _ in stated if one.bounds is not None}
    if len(of_dates) > 1:
        raise ParameterError("its bounds are dates and its checks numbers, or the other way round: correct them.")
    entry = Declaration(column, source, **{name: _first(getattr(one, name) for one, _ in stated) for name in SAYS})
    bounds = entry.bounds
    if bounds is None and expected != valid and universe_of(expected) is not None:
        bounds = expected
    if valid == EVERYTHING:
        valid = _first(one.bounds for one, warns in stated if not warns) or EVERYTHING
    return Declaration(
        column,
        source,
        pattern,
        bounds=bounds,
        valid=valid,
        keys=entry.keys if entry.keys is not None or keys is None else tuple(keys),
        missing=entry.missing,
        whole=whole,
        kind=_kind(dtype),
        dates=True in of_dates,
    )


def declaration_of(column: Hashable, source: str, written: object) -> Declaration:
    """Declaration written as ``{"bounds": ..., "keys": ..., "missing": ...}``."""
    if not isinstance(written, Mapping):
        raise ColumnTypeError(f"{NAME!r} must be a dict with {', '.join(SAYS)}, not {type_phrase(written)}.")
    if unknown := [name for name in islice(written, len(SAYS) + 1) if name not in SAYS]:
        raise ParameterError(
            f"{NAME!r} knows {', '.join(SAYS)}, but not {shown(unknown[0])}.{did_you_mean(unknown[0], SAYS)}"
        )
    bounds: Universe | None = None if written.get("bounds") is None else universe(written["bounds"], dates=True)
    lists: dict[str, tuple[Hashable, ...] | None] = {}
    for name in ("keys", "missing"):
        values, what = written.get(name), "a key" if name == "keys" else "a missing code"
        if values is None:
            lists[name] = None
            continue
        unordered = name == "keys" and isinstance(values, set | frozenset)
        listed = None if unordered or isinstance(values, str | bytes | Mapping) else listed_values(values, name)
        if listed is None:
            raise ColumnTypeError(f"{name} must be a list, as in [-1, -2], not {type_phrase(values)}.")
        plain = [plain_value(value, what) for value in listed]
        if name == "keys" and (not plain or len(set(plain)) < len(plain)):
            raise ParameterError("keys must list at least one group, and each once.")
        lists[name] = tuple(plain) if name == "keys" else tuple(code for code in plain if code is not None)
    return Declaration(
        column,
        source,
        bounds=None if bounds is None else (bounds.lo, bounds.hi),
        keys=lists["keys"],
        missing=lists["missing"],
        dates=isinstance(bounds, Days),
    )


def _first(values: Iterable[Any]) -> Any:
    """The first that is said."""
    return next((value for value in values if value is not None), None)


def _pattern(name: Any, component: Any) -> Hashable:
    """A regular expression, or one for each level, that matches the beginning of a label as pandera matches it."""
    if any(".pandas." in ancestor.__module__ for ancestor in type(component).__mro__):
        for part in name if isinstance(name, tuple) else [name]:
            re.compile(str(part))
        return tuple(map(str, name)) if isinstance(name, tuple) else str(name)
    expression = f"(?s:.*?)(?:{component.selector})"  # Polars and Ibis search, for ^name$ if nothing else is said
    re.compile(expression)
    return expression


def builtin_name(check: Any) -> str | None:
    """The name of one of pandera's own checks, whatever its user calls it; None for others."""
    from pandera.api.function_dispatch import Dispatcher

    function = getattr(check, "_check_fn", None)
    if not isinstance(function, Dispatcher) or check.groupby is not None:
        return None
    return getattr(function, "__name__", None)


def _ends(kind: str, statistics: Mapping[str, Any], *, whole: bool, days: bool) -> tuple[Ends, bool] | None:
    """The closed range of a check, and whether it is one of dates; None if it is one of neither dates nor numbers."""
    low, high = (_plain_number(statistics.get(name)) for name in ("min_value", "max_value"))
    dates = are_dates([low, high])
    if dates:
        low, high = (end if end is None else _day(end) for end in (low, high))
        whole = days
    if any(not _is_number(end) for end in (low, high) if end is not None):
        return None
    open_low = kind == "greater_than" or not statistics.get("include_min", True)
    open_high = kind == "less_than" or not statistics.get("include_max", True)
    ends = (
        -math.inf if low is None else _closed(low, open_low, whole, 1),
        math.inf if high is None else _closed(high, open_high, whole, -1),
    )
    return ends, dates


def _closed(end: Any, is_open: bool, whole: bool, step: int) -> float:
    """An end that values can reach: for integers the next integer inside, for floats the same number."""
    if abs(end) > LARGEST:
        return math.inf if end > 0 else -math.inf
    if not whole:
        return float(end)
    nearest = math.ceil(end) if step > 0 else math.floor(end)
    return float(nearest + step if is_open and nearest == end else nearest)


def _day(end: Any) -> float:
    """The number of days since 1970-01-01; NaN of what is no date of the years 1 to 9999, or has a time zone."""
    stamp = stamp_of(end) if are_dates([end]) else None
    return math.nan if stamp is None or stamp.tzinfo is not None else day_number(stamp)


def _plain_number(end: Any) -> Any:
    """A number of Python's own, without numpy's overflow."""
    return end.item() if isinstance(end, np.number) else end


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_) and value == value


def _is_integer(dtype: Any) -> bool:
    if dtype is None:
        return False
    from pandera.dtypes import is_int

    return is_int(dtype)


def _is_date(dtype: Any) -> bool:
    """Whether it is a type of days, without times."""
    if dtype is None:
        return False
    from pandera.dtypes import Date, Timestamp

    return isinstance(dtype, Date) and not isinstance(dtype, Timestamp)


def _kind(dtype: Any) -> str | None:
    """Kind of the values of a type that pandas may hold as Python objects."""
    if dtype is None:
        return None
    from pandera.dtypes import is_bool, is_string

    return TEXT if is_string(dtype) else TRUTH if is_bool(dtype) else None


def _categories(dtype: Any) -> list[Hashable] | None:
    """The categories listed in the schema."""
    categories = getattr(dtype, "categories", None)
    return None if categories is None else _listed(categories)


def _listed(values: Iterable[Any]) -> list[Hashable] | None:
    """Values that a schema allows, without missing ones; a set is sorted. None if they cannot be group keys."""
    try:
        plain = [plain_value(value, "a value of isin") for value in listed_values(values) or ()]
    except ColumnTypeError:
        return None
    allowed: list[Any] = [value for value in plain if value is not None]
    if isinstance(values, set | frozenset):
        try:
            allowed.sort(key=lambda value: (type(value).__name__, value))
        except TypeError:
            allowed.sort(key=lambda value: (type(value).__name__, str(value)))
    return list(dict.fromkeys(allowed))


def type_phrase(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
