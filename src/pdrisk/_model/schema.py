"""Declarations from pandera schemas: ranges, group keys and missing codes of columns, before any data.

Schemas of every flavour (pandas, Polars, Ibis) describe their columns alike. pandera itself is imported by `schema_for`
only; whoever has a schema has it loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.universe import Universe
from pdrisk._model.arguments import (
    universe,
)
from pdrisk._model.declarations import EVERYTHING, Declaration, Declarations, Ends, narrower, universe_of
from pdrisk._model.keys import listed_values
from pdrisk._model.nearest import did_you_mean
from pdrisk._model.plain import plain_value
from pdrisk._model.unit import People, judged_people
from pdrisk.errors import ColumnTypeError, ParameterError

if TYPE_CHECKING:
    from pandera.pandas import DataFrameSchema

__all__ = ["bounds_from", "entries_of", "keys_from", "missing_from", "people_of_schema", "schema_for"]

OF_ALL = ("person", "per_person", "constant")
NAME = "dprisk"  # of our part in pandera's metadata and statistics
SAYS = ("bounds", "keys", "missing")
LARGEST = 1e308  # what lies beyond is no end
RANGES = {"in_range", "greater_than_or_equal_to", "less_than_or_equal_to", "greater_than", "less_than"}


@own_errors
def bounds_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, tuple[float, float]]:
    """The bounds that a pandera schema declares, fit for ``bounds=``.

    Parameters
    ----------
    schema : DataFrameSchema or DataFrameModel
        Of any flavour.
    columns : iterable of hashable, optional
        Which columns to look for. Without them those the schema names; regular expressions name none.

    Returns
    -------
    dict from column to (lo, hi)
        Of the columns whose range has two ends.

    Raises
    ------
    ColumnTypeError
        If it is no schema.
    ParameterError
        If the schema contradicts itself.

    Examples
    --------
    >>> import pandera.pandas as pa
    >>> import pdrisk
    >>> schema = pa.DataFrameSchema({"distance": pa.Column(int, pa.Check.in_range(1, 675))})
    >>> pdrisk.bounds_from(schema)
    {'distance': (1.0, 675.0)}
    """
    found = {column: known.universe for column, known in _known(schema, columns)}
    return {column: (interval.lo, interval.hi) for column, interval in found.items() if interval is not None}


@own_errors
def keys_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, list[Hashable]]:
    """The group keys that a pandera schema declares, fit for ``keys=``; see `bounds_from`."""
    return {column: list(known.keys) for column, known in _known(schema, columns) if known.keys is not None}


@own_errors
def missing_from(schema: object, columns: Iterable[Hashable] | None = None) -> dict[Hashable, list[Hashable]]:
    """The missing codes that a pandera schema declares; see `bounds_from`."""
    return {column: list(known.missing) for column, known in _known(schema, columns) if known.missing}


def _known(schema: object, columns: Iterable[Hashable] | None) -> Iterator[tuple[Hashable, Any]]:
    listed = None if isinstance(columns, str | bytes) else listed_values(columns, "columns")
    try:
        names = None if listed is None else dict.fromkeys(listed)
    except (TypeError, RecursionError):  # no labels
        names = None
    if columns is not None and names is None:
        raise ColumnTypeError("columns must be a list of columns, as in ['distance'].")
    said = Declarations(schema=entries_of(schema))
    named = [entry.column for entry in said.schema if not entry.pattern and entry.says_something]
    for name in dict.fromkeys(named) if names is None else names:
        known = said.of(name)
        known.narrowed(known.universe)
        yield name, known


@own_errors
def schema_for(
    bounds: Mapping[Hashable, object] | None = None,
    keys: Mapping[Hashable, Iterable[Hashable]] | None = None,
    missing: Mapping[Hashable, Iterable[Hashable]] | None = None,
    *,
    name: str | None = None,
) -> DataFrameSchema:
    """A pandera schema that declares these bounds, group keys and missing codes.

    Its checks accept what is declared: values within the bounds, listed keys, missing codes and missing values.

    Parameters
    ----------
    bounds : dict from column to (lo, hi)
    keys : dict from column to list
    missing : dict from column to list
    name : str, optional
        Of the schema.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        ``bounds_from`` and the like give back what went in.

    Raises
    ------
    ParameterError, ColumnTypeError
        As ``declare`` does.
    ImportError
        Without pandera.
    """
    import pandera.pandas as pa

    parts = {"bounds": bounds, "keys": keys, "missing": missing}
    for part, said in parts.items():
        if said is not None and not isinstance(said, Mapping):
            raise ColumnTypeError(f"schema_for takes {part} as a dict from column to value, not {type(said).__name__}.")
    columns: dict[Any, Any] = {}
    named = (listed_values(said or (), "columns") or () for said in parts.values())
    for column in dict.fromkeys(name for names in named for name in names):
        own = {part: said[column] for part, said in parts.items() if said is not None and column in said}
        entry = _stated(column, "schema", own)
        codes = list(entry.missing or ())
        checks = []
        metadata: dict[str, Any] = {"missing": codes} if codes else {}
        if entry.bounds is not None:
            numbers = [float(code) for code in codes if isinstance(code, int | float)]
            checks.append(pa.Check.in_range(min([entry.bounds[0], *numbers]), max([entry.bounds[1], *numbers])))
            metadata |= {"bounds": entry.bounds} if codes else {}
        if entry.keys is not None and (entry.bounds is not None or None in entry.keys):
            metadata["keys"] = list(entry.keys)  # a check would forbid what bounds allow, and cannot list missing
        elif entry.keys is not None:
            checks.append(pa.Check.isin([*entry.keys, *(code for code in codes if code not in entry.keys)]))
        columns[column] = pa.Column(
            checks=checks, nullable=True, required=False, metadata={NAME: metadata} if metadata else None
        )
    return pa.DataFrameSchema(columns, name=name)


def entries_of(schema: object) -> tuple[Declaration, ...]:
    """What a schema says of each of its columns.

    What cannot be understood is kept as the ``problem`` of its column, for whoever asks for that column.

    Raises
    ------
    ColumnTypeError
        If it is no schema.
    ParameterError
        If it says what no schema can say as a whole.
    """
    said_of_all = _of_all(schema)
    if isinstance(schema, type) and hasattr(schema, "to_schema"):
        schema = _from_model(schema)
    components = getattr(schema, "columns", None)
    if not isinstance(components, Mapping) or not all(hasattr(each, "checks") for each in components.values()):
        raise ColumnTypeError(
            f"schema must be a pandera DataFrameSchema or DataFrameModel, not {_kind(schema)}: bounds and keys alone "
            "are declared with declare(bounds={...}, keys={...})."
        )
    name = getattr(schema, "name", None)
    source = f"schema {str(name)!r}" if name else "schema"
    unknown = [name for name in said_of_all if name not in OF_ALL]
    checks = list(getattr(schema, "checks", None) or ())
    common = [check for check in checks if _builtin(check)]
    dtype = getattr(schema, "dtype", None)
    if unknown or any(NAME in (check.statistics or {}) for check in checks):
        # Kept for whoever asks for any column: what was meant, a missing code say, may matter for each.
        problem = (
            f"{NAME!r} of the {source} as a whole tells {', '.join(OF_ALL)}; all else belongs to single columns: move "
            "it there."
        )
        named = (Declaration(label, source, problem=problem) for label in components if isinstance(label, str | int))
        return (*named, Declaration("(?s:.*)", source, pattern=True, problem=problem))
    return tuple(_entry(label, component, source, common, dtype) for label, component in components.items())


def people_of_schema(schema: object) -> People | None:
    """Who a person is by a schema's ``metadata={"dprisk": {"person": "pid"}}``; None if it does not say.

    Raises
    ------
    ColumnTypeError, ParameterError
        If it cannot be understood.
    """
    said = _of_all(schema)
    if not any(said.get(name) is not None for name in OF_ALL):
        return None
    return judged_people(*(said.get(name) for name in OF_ALL))


def _of_all(schema: object) -> dict[Any, Any]:
    """Our part in the metadata of a schema or model as a whole."""
    config = getattr(schema, "Config", None) if isinstance(schema, type) else schema
    written = getattr(config, "metadata", None)
    said = written.get(NAME) if isinstance(written, Mapping) else None
    if said is None:
        return {}
    return dict(said) if isinstance(said, Mapping) else {str(said): None}


def _from_model(model: Any) -> object:
    try:
        return model.to_schema()
    except Exception as error:  # noqa: BLE001 - pandera's errors about a model, and Python's
        problem = f"{type(error).__name__}: {error}".split("\n")[0]
    raise ParameterError(f"pandera cannot make a schema of {model.__name__} ({problem}).")


def _entry(label: Hashable, component: Any, source: str, common: list[Any], dtype: Any) -> Declaration:
    """What one column of a schema says; ``common`` are the checks of all columns, and ``dtype`` that of all."""
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
    whole = _is_integer(dtype)
    valid, expected = EVERYTHING, EVERYTHING
    keys = _categories(dtype)
    written = getattr(component, "metadata", None)
    said = [(written[NAME], False)] if isinstance(written, Mapping) and NAME in written else []
    for check in checks:
        if NAME in (check.statistics or {}):
            said.append((check.statistics[NAME], check.raise_warning))
        kind = _builtin(check)
        if kind in RANGES and (ends := _ends(kind, check.statistics, whole)) is not None:
            expected = narrower(column, expected, ends)
            if not check.raise_warning:  # what is only warned of may be there
                valid = narrower(column, valid, ends)
        elif kind == "isin" and not check.raise_warning:
            allowed = _listed(check.statistics["allowed_values"])
            keys = allowed if keys is None or allowed is None else [key for key in keys if key in set(allowed)]
    stated = [(_stated(column, source, each), warns) for each, warns in said]
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
    )


def _stated(column: Hashable, source: str, said: object) -> Declaration:
    """What somebody wrote down as ``{"bounds": ..., "keys": ..., "missing": ...}``."""
    if not isinstance(said, Mapping):
        raise ColumnTypeError(f"{NAME!r} must be a dict with {', '.join(SAYS)}, not {_kind(said)}.")
    if unknown := [name for name in islice(said, len(SAYS) + 1) if name not in SAYS]:
        raise ParameterError(
            f"{NAME!r} knows {', '.join(SAYS)}, but not {shown(unknown[0])}.{did_you_mean(unknown[0], SAYS)}"
        )
    bounds: Universe | None = None if said.get("bounds") is None else universe(said["bounds"])
    lists: dict[str, tuple[Hashable, ...] | None] = {}
    for name in ("keys", "missing"):
        values, what = said.get(name), "a key" if name == "keys" else "a missing code"
        if values is None:
            lists[name] = None
            continue
        unordered = name == "keys" and isinstance(values, set | frozenset)
        listed = None if unordered or isinstance(values, str | bytes | Mapping) else listed_values(values, name)
        if listed is None:
            raise ColumnTypeError(f"{name} must be a list, as in [-1, -2], not {_kind(values)}.")
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
    )


def _first(values: Iterable[Any]) -> Any:
    """The first that is said."""
    return next((value for value in values if value is not None), None)


def _pattern(name: Any, component: Any) -> Hashable:
    """A regular expression, or one for each level, that matches the beginning of a label as pandera matches it."""
    if any(".pandas." in each.__module__ for each in type(component).__mro__):
        for part in name if isinstance(name, tuple) else [name]:
            re.compile(str(part))
        return tuple(map(str, name)) if isinstance(name, tuple) else str(name)
    found = f"(?s:.*?)(?:{component.selector})"  # Polars and Ibis search, for ^name$ if nothing else is said
    re.compile(found)
    return found


def _builtin(check: Any) -> str | None:
    """The name of one of pandera's own checks, whatever its user calls it; None for others."""
    from pandera.api.function_dispatch import Dispatcher

    function = getattr(check, "_check_fn", None)
    if not isinstance(function, Dispatcher) or check.groupby is not None:
        return None
    return getattr(function, "__name__", None)


def _ends(kind: str, statistics: Mapping[str, Any], whole: bool) -> Ends | None:
    """The closed range of a check; None if it is not one of numbers."""
    low, high = (_plain_number(statistics.get(name)) for name in ("min_value", "max_value"))
    if any(not _is_number(end) for end in (low, high) if end is not None):
        return None  # a range of dates, say
    open_low = kind == "greater_than" or not statistics.get("include_min", True)
    open_high = kind == "less_than" or not statistics.get("include_max", True)
    return (
        -math.inf if low is None else _closed(low, open_low, whole, 1),
        math.inf if high is None else _closed(high, open_high, whole, -1),
    )


def _closed(end: Any, is_open: bool, whole: bool, step: int) -> float:
    """An end that values can reach: the next integer inside for integers, the same number for floats."""
    if abs(end) > LARGEST:
        return math.inf if end > 0 else -math.inf
    if not whole:
        return float(end)
    nearest = math.ceil(end) if step > 0 else math.floor(end)
    return float(nearest + step if is_open and nearest == end else nearest)


def _plain_number(end: Any) -> Any:
    """Without numpy's overflow."""
    return end.item() if isinstance(end, np.generic) else end


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_) and value == value


def _is_integer(dtype: Any) -> bool:
    if dtype is None:
        return False
    from pandera.dtypes import is_int

    return is_int(dtype)


def _categories(dtype: Any) -> list[Hashable] | None:
    """The categories that are written in the schema."""
    categories = getattr(dtype, "categories", None)
    return None if categories is None else _listed(categories)


def _listed(values: Iterable[Any]) -> list[Hashable] | None:
    """What a schema allows, but for missing; a set, which has no order, sorted. None if it cannot list groups."""
    try:
        plain = [plain_value(value, "a value of isin") for value in listed_values(values) or ()]
    except ColumnTypeError:
        return None
    found: list[Any] = [value for value in plain if value is not None]
    if isinstance(values, set | frozenset):
        try:
            found.sort(key=lambda value: (type(value).__name__, value))
        except TypeError:
            found.sort(key=lambda value: (type(value).__name__, str(value)))
    return list(dict.fromkeys(found))


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
