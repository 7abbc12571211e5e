"""Evaluation of a checked filter: each record decided by that record and the constants, whatever its column's dtype.

Every column is first read as one of a few families (numbers, text, dates, dates with a time zone, durations, periods),
by its dtype alone; numbers, dates and durations become exact `Numbers`, a column of Python objects whatever family
stands beside it. So no conversion is left that could fail, or change its result for all, because of one record.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pdrisk._model.kinds import NUMBER, PERIOD, TEXT
from pdrisk._model.nodes import (
    COMPARISONS,
    LOGIC,
    MEMBERSHIP,
    MISSING,
    SIGNS,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    Truth,
)
from pdrisk._model.rowwise.exact import Numbers, arithmetic, compared, members, opposite
from pdrisk._model.rowwise.families import (
    OF_OBJECTS,
    PLAIN,
    Bools,
    Decision,
    Quantity,
    as_number,
    categories_of,
    family,
    has_categories,
    holds_objects,
    holds_only,
    is_in,
    is_missing,
    is_nullable,
    missing_of,
    quantity_of,
    text_of_object,
    texts_of,
    truths_of,
    unknown_of,
)

__all__ = ["computed", "decided", "equal_to_one_of", "folded"]


def decided(node: Node, columns: Mapping[Hashable, pd.Series]) -> Decision:
    """Decision of a checked condition about each record."""
    found = _value(node, columns)
    return found if isinstance(found, Decision) else _truth(found)


def computed(node: Node, columns: Mapping[Hashable, pd.Series]) -> NDArray[np.float64]:
    """Result of checked arithmetic for each record; NaN where there is none."""
    numbers, unknown = quantity_of(_value(node, columns))
    return numbers.high if unknown is None else np.where(unknown, np.nan, numbers.high)


def equal_to_one_of(series: pd.Series, values: list[Any]) -> Bools:
    """Which values of a column are one of the constants, compared in the column's own precision."""
    return _members(series, values).yes


def folded(node: Node) -> Any:
    """The value of a tree without columns: a constant as it is, else a number or truth value."""
    found = _value(node, {})
    if isinstance(found, Decision):
        return bool(found.yes)
    if not isinstance(found, Quantity):
        return found
    high, low = float(found.numbers.high), found.numbers.low
    return high if low is None or not float(low) else int(high) + int(low)


def _value(node: Node, columns: Mapping[Hashable, pd.Series]) -> Any:
    if isinstance(node, Truth):
        return truths_of(columns[node.name])
    if isinstance(node, Column):
        return columns[node.name]
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Rank):
        return _rank(columns[node.name], node.levels)
    assert isinstance(node, Operation)
    symbol, values = node.symbol, [_value(part, columns) for part in node.parts]
    if symbol in LOGIC:
        return _joined(symbol, [_truth(value) for value in values])
    if symbol in MISSING:
        missing = missing_of(values[0])
        return Decision(missing if symbol == "isna" else ~missing)
    if symbol in MEMBERSHIP:
        found = _members(quantity_of(values[0]) if isinstance(values[0], Decision) else values[0], values[1])
        return found if symbol == "in" else Decision(~found.yes)
    if symbol in COMPARISONS:
        return _compared(symbol, *values)
    quantities = [quantity_of(value) for value in values]
    if symbol in SIGNS:
        ((numbers, unknown),) = quantities
        return Quantity(opposite(numbers) if symbol == "unary -" else numbers, unknown)
    (left, right) = quantities
    return Quantity(arithmetic(symbol, left.numbers, right.numbers), _either(left.unknown, right.unknown))


# --- Conditions -------------------------------------------------------------------------------------------------------


def _truth(value: Any) -> Decision:
    if isinstance(value, Decision):
        return value
    if isinstance(value, bool):
        return Decision(np.array(value))
    unknown = value.isna().to_numpy(dtype=bool) if is_nullable(value.dtype) else None
    return Decision(value.to_numpy() if unknown is None else value.to_numpy(dtype=bool, na_value=False), unknown)


def _joined(symbol: str, parts: list[Decision]) -> Decision:
    if symbol == "not":
        yes, unknown = parts[0]
        return Decision(~yes if unknown is None else ~(yes | unknown), unknown)
    return reduce(_both if symbol == "and" else _one, parts)


def _both(left: Decision, right: Decision) -> Decision:
    yes = left.yes & right.yes
    if left.unknown is None and right.unknown is None:
        return Decision(yes)
    possible = _possible(left) & _possible(right)
    return Decision(yes, possible & ~yes)


def _one(left: Decision, right: Decision) -> Decision:
    yes = left.yes | right.yes
    if left.unknown is None and right.unknown is None:
        return Decision(yes)
    return Decision(yes, (_possible(left) | _possible(right)) & ~yes)


def _possible(decision: Decision) -> Bools:
    return decision.yes if decision.unknown is None else decision.yes | decision.unknown


def _either(left: Bools | None, right: Bools | None) -> Bools | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


# --- Comparisons ------------------------------------------------------------------------------------------------------


def _compared(symbol: str, left: Any, right: Any) -> Decision:
    for value, other, way in ((left, right, symbol), (right, left, MIRRORED.get(symbol, symbol))):
        if has_categories(value) and not isinstance(other, pd.Series | Quantity | Decision):
            return _of_categories(value, partial(_compared_with, other, way))
    families = [found for value in (left, right) if (found := _family_of(value)) is not None]
    if not families:  # objects on both sides: equal if they are in one of the families
        equal = reduce(operator.or_, (_compared_in(one, "==", left, right).yes for one in OF_OBJECTS))
        return Decision(equal if symbol == "==" else ~equal)
    return _compared_in(families[0], symbol, left, right)


def _compared_with(constant: Any, symbol: str, series: pd.Series) -> Decision:
    return _compared(symbol, series, constant)


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _compared_in(name: str, symbol: str, left: Any, right: Any) -> Decision:
    if name == TEXT:
        return _compared_text(symbol, left, right)
    one, other = (quantity_of(value, name) for value in (left, right))
    unknown = _either(one.unknown, other.unknown)
    if unknown is not None:  # as pandas: beside a nullable column NaN is unknown, too
        unknown = unknown | missing_of(one) | missing_of(other)
    yes = compared(symbol, one.numbers, other.numbers)
    return Decision(yes if unknown is None else yes & ~unknown, unknown)


def _compared_text(symbol: str, left: Any, right: Any) -> Decision:
    unknown = _either(unknown_of(left), unknown_of(right))
    if unknown is not None:
        for value in (left, right):
            unknown = unknown | missing_of(value) if isinstance(value, pd.Series) else unknown
    dtypes = {value.dtype for value in (left, right) if isinstance(value, pd.Series)}
    if len(dtypes) == 1 and isinstance(next(iter(dtypes)), pd.StringDtype | pd.ArrowDtype):
        yes = COMPARISONS[symbol](left, right).to_numpy(dtype=bool, na_value=False)
    else:
        one, other = np.broadcast_arrays(texts_of(left), texts_of(right))
        present = (one != None) & (other != None)  # noqa: E711 - of each record
        yes = np.full(one.shape, symbol == "!=")
        yes[present] = COMPARISONS[symbol](one[present], other[present])
    return Decision(yes if unknown is None else yes & ~unknown, unknown)


def _members(value: Any, values: list[Any]) -> Decision:
    if has_categories(value):
        return _of_categories(value, lambda series: _members(series, values), any(map(is_missing, values)))
    listed = [one for one in values if not is_missing(one)]
    name = _family_of(value)
    parts = [
        _members_in(one, value, held)
        for one in (OF_OBJECTS if name is None else (name,))
        if (held := [member for member in listed if is_in(one, member)])
    ]
    unknown = unknown_of(value)
    if unknown is not None:
        parts = [part & ~unknown for part in parts]
    if len(listed) < len(values):
        parts.append(missing_of(value))
    return Decision(reduce(operator.or_, parts) if parts else np.zeros(_size(value), dtype=bool))


def _members_in(name: str, value: Any, values: list[Any]) -> Bools:
    if name != TEXT:
        numbers = quantity_of(value, name).numbers
        return members(numbers, [as_number(name, one) for one in values])
    if not holds_objects(value) or holds_only(value, PLAIN):
        return value.isin(values).to_numpy(dtype=bool, na_value=False)
    wanted = set(values)
    return np.array([text_of_object(one) in wanted for one in value.tolist()], dtype=bool)


def _family_of(value: Any) -> str | None:
    if isinstance(value, pd.Series):
        return family(value.dtype)
    if isinstance(value, Quantity | Decision):
        return NUMBER
    return next((name for name in OF_OBJECTS if is_in(name, value)), PERIOD)


def _of_categories(
    value: pd.Series, decide: Callable[[pd.Series], Decision], for_missing: bool | None = None
) -> Decision:
    of_missing = decide(pd.Series([None], dtype=object)).yes if for_missing is None else for_missing
    return Decision(np.append(decide(categories_of(value)).yes, of_missing)[value.cat.codes.to_numpy()])


def _size(value: Any) -> int:
    return len(value if isinstance(value, pd.Series) else np.atleast_1d(value.numbers.high))


def _rank(value: pd.Series, levels: tuple[Hashable, ...]) -> Quantity:
    """The place of each record's category among the declared ones; none where it is not declared."""
    place = {level: float(at) for at, level in enumerate(levels)}
    places = np.array([*(place.get(one, np.nan) for one in value.cat.categories.tolist()), np.nan])
    return Quantity(Numbers(places[value.cat.codes.to_numpy()]))
