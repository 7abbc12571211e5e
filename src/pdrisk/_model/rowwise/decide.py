"""Row-wise expressions in numpy: each record decided by that record and the constants, whatever its column's dtype.

Every column is first read as one of a few families (numbers, text, dates, dates with a time zone, durations, periods),
by its dtype alone; numbers, dates and durations become exact `Numbers`, a column of Python objects whatever family
stands beside it. So no conversion is left that could fail, or change its result for all, because of one record.

Conditions are three-valued: a comparison with a missing value is unknown, and so is its negation. No unknown is ever
represented: `holds` says where a condition is known to be true or, negated, where it is known to be false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.expressions.kinds import NUMBER, PERIOD, TEXT
from pdrisk._model.expressions.nodes import (
    COMPARISONS,
    CONDITIONS,
    LOGIC,
    MEMBERSHIP,
    MIRRORED,
    MISSING,
    NEGATED,
    SIGNS,
    Call,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    Truth,
)
from pdrisk._model.rowwise.exact import Numbers, arithmetic, compared, members, of_array, opposite
from pdrisk._model.rowwise.families import (
    OF_OBJECTS,
    PLAIN,
    Bools,
    as_number,
    categories_of,
    family,
    has_categories,
    holds_objects,
    holds_only,
    is_in,
    missing_of,
    numbers_of,
    text_of_object,
    texts_of,
    truths_of,
)
from pdrisk._model.rowwise.functions import column_of, value_of


def holds(node: Node, columns: Mapping[Hashable, pd.Series], negated: bool = False) -> Bools:
    """Where a checked condition is known to be true; ``negated``: where it is known to be false."""
    if not isinstance(node, Operation):
        return _is_true(_value(node, columns), negated)
    symbol, parts = node.symbol, node.parts
    if symbol == "not":
        return holds(parts[0], columns, not negated)
    if symbol in LOGIC:
        joined = operator.and_ if (symbol == "and") != negated else operator.or_
        return reduce(joined, [holds(part, columns, negated) for part in parts])
    symbol = NEGATED[symbol] if negated else symbol
    values = [_value(part, columns) for part in parts]
    if symbol in MISSING:
        missing = missing_of(values[0])
        return missing if symbol == "isna" else ~missing
    if symbol in MEMBERSHIP:
        value, listed = values
        if not isinstance(value, pd.Series | Numbers):  # a constant of SQL
            return np.array((value in listed) == (symbol == "in"))
        return _members(value, listed, negated=symbol == "not in")
    return _compared(symbol, *values)


def computed(node: Node, columns: Mapping[Hashable, pd.Series]) -> NDArray[np.float64]:
    """Result of checked arithmetic for each record; NaN where there is none."""
    return numbers_of(_value(node, columns)).high


def equal_to_one_of(series: pd.Series, values: list[Any]) -> Bools:
    """Which values of a column are one of the constants, compared in the column's own precision."""
    return _members(series, values)


def folded(node: Node) -> Any:
    """The value of a tree without columns: a constant as it is, else a number or a truth value, None if unknown."""
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Operation) and node.symbol in CONDITIONS:
        return next((not negated for negated in (False, True) if holds(node, {}, negated)), None)
    numbers = _value(node, {})
    high, low = float(numbers.high), numbers.low
    return high if low is None or not float(low) else int(high) + int(low)


def _value(node: Node, columns: Mapping[Hashable, pd.Series]) -> Any:
    """A column, a constant, or Numbers that are computed."""
    if isinstance(node, Truth):
        return truths_of(columns[node.name])
    if isinstance(node, Column):
        return columns[node.name]
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Call):
        return value_of(node, columns[column_of(node).name])
    if isinstance(node, Rank):
        return _rank(columns[node.name], node.levels)
    assert isinstance(node, Operation)
    if node.symbol in CONDITIONS:
        yes, no = (holds(node, columns, negated) for negated in (False, True))
        return of_array(np.where(yes, 1.0, np.where(no, 0.0, np.nan)))
    parts = [numbers_of(_value(part, columns)) for part in node.parts]
    if node.symbol in SIGNS:
        return opposite(parts[0]) if node.symbol == "unary -" else parts[0]
    numbers = arithmetic(node.symbol, *parts)
    if node.symbol != "**":
        return numbers
    # To floats 1 ** NaN and NaN ** 0 are 1; what is computed of a missing value is missing.
    missing = np.isnan(parts[0].high) | np.isnan(parts[1].high)
    return numbers._replace(high=np.where(missing, np.nan, numbers.high)) if missing.any() else numbers


# --- Conditions -------------------------------------------------------------------------------------------------------


def _is_true(value: Any, negated: bool) -> Bools:
    """Where a column of truth values is true, or false."""
    if isinstance(value, bool):
        return np.array(value != negated)
    values: Bools = value.to_numpy() if value.dtype == bool else value.to_numpy(dtype=bool, na_value=negated)
    return ~values if negated else values


def _compared(symbol: str, left: Any, right: Any) -> Bools:
    for value, other, way in ((left, right, symbol), (right, left, MIRRORED.get(symbol, symbol))):
        if has_categories(value) and not isinstance(other, pd.Series | Numbers):
            return _of_categories(value, partial(_compared_with, other, way))
    families = [name for value in (left, right) if (name := _family_of(value)) is not None]
    # Objects on both sides are equal if they are in one of the families.
    equal = [_compared_in(name, "==" if symbol == "!=" else symbol, left, right) for name in families[:1] or OF_OBJECTS]
    yes = reduce(operator.or_, equal)
    if symbol != "!=":
        return yes
    for value in (left, right):  # what is of another family differs, what is missing does not
        if isinstance(value, pd.Series | Numbers):
            yes = yes | missing_of(value)
    return ~yes


def _compared_with(constant: Any, symbol: str, series: pd.Series) -> Bools:
    return _compared(symbol, series, constant)


def _compared_in(name: str, symbol: str, left: Any, right: Any) -> Bools:
    if name != TEXT:
        return compared(symbol, numbers_of(left, name), numbers_of(right, name))
    dtypes = {value.dtype for value in (left, right) if isinstance(value, pd.Series)}
    if len(dtypes) == 1 and isinstance(next(iter(dtypes)), pd.StringDtype | pd.ArrowDtype):
        truths: Bools = COMPARISONS[symbol](left, right).to_numpy(dtype=bool, na_value=False)
        return truths
    one, other = np.broadcast_arrays(texts_of(left), texts_of(right))
    present = (one != None) & (other != None)  # noqa: E711 - of each record
    yes = np.zeros(one.shape, dtype=bool)
    yes[present] = COMPARISONS[symbol](one[present], other[present])
    return yes


def _members(value: Any, values: list[Any], *, negated: bool = False) -> Bools:
    if has_categories(value):
        return _of_categories(value, lambda listed: _members(listed, values, negated=negated))
    name = _family_of(value)
    parts = [
        _members_in(one, value, held)
        for one in (OF_OBJECTS if name is None else (name,))
        if (held := [member for member in values if is_in(one, member)])
    ]
    if negated:
        parts.append(missing_of(value))
    yes = reduce(operator.or_, parts) if parts else np.zeros(_size(value), dtype=bool)
    return ~yes if negated else yes


def _members_in(name: str, value: Any, values: list[Any]) -> Bools:
    if name != TEXT:
        return members(numbers_of(value, name), [as_number(name, one) for one in values])
    if not holds_objects(value) or holds_only(value, PLAIN):
        return value.isin(values).to_numpy(dtype=bool, na_value=False)
    wanted = set(values)
    return np.array([text_of_object(one) in wanted for one in value.tolist()], dtype=bool)


def _family_of(value: Any) -> str | None:
    if isinstance(value, pd.Series):
        return family(value.dtype)
    if isinstance(value, Numbers):
        return NUMBER
    return next((name for name in OF_OBJECTS if is_in(name, value)), PERIOD)


def _of_categories(value: pd.Series, decide: Callable[[pd.Series], Bools]) -> Bools:
    """Decision about the category of each record; without one it is unknown."""
    return np.append(decide(categories_of(value)), False)[value.cat.codes.to_numpy()]


def _size(value: Any) -> int:
    return len(value if isinstance(value, pd.Series) else np.atleast_1d(value.high))


def _rank(value: pd.Series, levels: tuple[Hashable, ...]) -> Numbers:
    """The place of each record's category among the declared ones; none where it is not declared."""
    place = {level: float(at) for at, level in enumerate(levels)}
    places = np.array([*(place.get(one, np.nan) for one in value.cat.categories.tolist()), np.nan])
    return Numbers(places[value.cat.codes.to_numpy()])
