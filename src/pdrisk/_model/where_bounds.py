"""Bounds that a WHERE gives a column, by its comparisons with constants of the text.

A record that the filter keeps has a value x for which every one of the comparisons is true, so x lies within the
interval that they describe, and clamping x to it gives x. Records that the filter leaves out, among them those whose
comparison is unknown, are in no sum, rank or count. The interval is made of the text and of declarations alone: one
record more or less changes neither.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nodes import MIRRORED, ORDERINGS, Column, Constant, Node, Operation
from pdrisk.errors import ParameterError

Comparison = tuple[str, Any]  # "<", "<=", ">" or ">=", and the constant on its right


def narrowed(
    lo: float, hi: float, comparisons: Iterable[Comparison], *, whole: bool = False, single: bool = False
) -> tuple[float, float]:
    """Interval of the values in ``[lo, hi]`` for which all comparisons hold.

    ``lo, hi``: what is declared; infinite where nothing is.
    ``comparisons``: those with other constants than finite numbers are passed over.
    ``whole``: whether all values are whole numbers, by their type or by declaration: below 65 then means 64 or
        less.
    ``single``: whether values are floats of single precision, which are compared with the constant rounded to such
        a float.
    Returns: ``(lo, hi)`` itself if no bounds could be made of the intersection: it is empty, too narrow for floats,
        or one value where something else is declared.
    """
    low, high = lo, hi
    for symbol, value in comparisons:
        ends = _ends(symbol, value, whole=whole, single=single)
        low, high = (max(low, ends[0]), high) if symbol in (">", ">=") else (low, min(high, ends[1]))
    if low > high or (low == high and (lo, hi) != (-math.inf, math.inf)):
        return lo, hi
    try:
        if low < high and math.isfinite(low) and math.isfinite(high):
            Universe(low, high)
    except ParameterError:
        return lo, hi
    return low, high


def _ends(symbol: str, value: Any, *, whole: bool, single: bool) -> tuple[float, float]:
    """Least and largest value of a comparison, of which its symbol means one."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return -math.inf, math.inf
    if whole:
        value = {
            ">=": math.ceil(value), ">": math.floor(value) + 1, "<=": math.floor(value), "<": math.ceil(value) - 1
        }[symbol]  # fmt: skip
    try:
        # The nearest float: rounding never reverses an order, and values beside the constant are rounded alike.
        end = float(value)
    except OverflowError:
        return -math.inf, math.inf
    if not single or whole:
        return end, end
    with np.errstate(over="ignore"):
        rounded = float(np.float32(end))
    return min(end, rounded), max(end, rounded)


def comparisons_of(rule: Node | None, column: Hashable) -> Iterator[Comparison]:
    """Comparisons of a column with constants of the text that hold wherever a row-wise condition does."""
    match rule:
        case Operation("and", parts):
            for part in parts:
                yield from comparisons_of(part, column)
        case Operation("or", parts):
            lists = [_listed(part, column) for part in parts]
            yield from listed_ends(value for values in lists for value in values) if all(lists) else ()
        case Operation(symbol, (Column(name), Constant(value, None))) if name == column and symbol in ORDERINGS:
            yield symbol, value
        case Operation(symbol, (Constant(value, None), Column(name))) if name == column and symbol in ORDERINGS:
            yield MIRRORED[symbol], value
        case Operation():
            yield from listed_ends(_listed(rule, column))


def _listed(rule: Node, column: Hashable) -> list[Any]:
    """All values that a column can have where a condition lists them; none of other conditions."""
    match rule:
        case Operation("in", (Column(name), Constant(listed, None))) if name == column:
            return list(listed)
        case Operation("==", (Column(name), Constant(value, None)) | (Constant(value, None), Column(name))):
            return [value] if name == column else []
    return []


def listed_ends(values: Iterable[Any]) -> tuple[Comparison, ...]:
    """Comparisons that hold for each of several numbers, as of ``IN``; none if one is no number."""
    listed = list(values)
    numbers = [value for value in listed if isinstance(value, int | float | Decimal) and not isinstance(value, bool)]
    if not numbers or len(numbers) < len(listed) or not all(map(math.isfinite, numbers)):
        return ()
    return (">=", min(numbers)), ("<=", max(numbers))
