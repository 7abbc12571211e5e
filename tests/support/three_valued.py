"""What a row-wise condition means, spelled out for one record in plain Python: true, false, or unknown (None).

SQL's three-valued logic, where NULL, NaN, None, NaT and NA are one thing: a missing value.
"""

import operator

import numpy as np
import pandas as pd

from pdrisk._model.expressions.nodes import Call, Column, Constant, Operation, Rank

COMPARED = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPUTED = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow,
}  # fmt: skip
CALLED = {
    "contains": lambda text, part: part in text,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "date_part": lambda unit, time: time.timetuple().tm_yday if unit == "dayofyear" else getattr(time, unit),
}
CONDITIONS = {*COMPARED, "and", "or", "not", "in", "not in", "isna", "notna"}


def truth(node, record):
    """True, False or None of a condition about a record, a dict from column to value."""
    if not isinstance(node, Operation):
        found = value(node, record)
        return None if found is None else bool(found)
    symbol, parts = node.symbol, node.parts
    if symbol == "not":
        inner = truth(parts[0], record)
        return None if inner is None else not inner
    if symbol in ("and", "or"):
        decided, parts = symbol == "or", [truth(part, record) for part in parts]
        return decided if decided in parts else None if None in parts else not decided
    values = [value(part, record) for part in parts]
    if symbol in ("isna", "notna"):
        return (values[0] is None) == (symbol == "isna")
    if any(one is None for one in values):
        return None
    if symbol in ("in", "not in"):
        return any(_compared("==", values[0], member) for member in values[1]) == (symbol == "in")
    return _compared(symbol, *values)


def value(node, record):
    """The value of an expression, None where it is missing."""
    if isinstance(node, Column):
        found = record[node.name]
        return None if found is None or (not isinstance(found, list) and pd.isna(found)) else found
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Rank):
        found = record[node.name]
        return node.levels.index(found) if found in node.levels else None
    if isinstance(node, Call):
        parts = [value(part, record) for part in node.arguments]
        return None if None in parts else CALLED[node.name](*parts)
    if node.symbol in CONDITIONS:
        found = truth(node, record)
        return None if found is None else int(found)
    parts = [value(part, record) for part in node.parts]
    if any(one is None for one in parts):
        return None
    parts = [float(one) if isinstance(one, bool | np.bool_ | np.integer) else one for one in parts]
    if all(not isinstance(one, np.floating) for one in parts):
        parts[0] = np.float64(parts[0])
    with np.errstate(all="ignore"):
        if len(parts) == 1:
            return -parts[0] if node.symbol == "unary -" else parts[0]
        found = COMPUTED[node.symbol](*parts)
    return None if np.isnan(found) else found


def _compared(symbol, one, other):
    if isinstance(one, str) != isinstance(other, str):  # in a column of objects: they differ, and are in no order
        return symbol == "!="
    with np.errstate(all="ignore"):
        return bool(COMPARED[symbol](one, other))


def records(frame):
    """The records of a frame as dicts, numbers in the precision of their columns."""
    columns = {name: [*frame[name].array] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
