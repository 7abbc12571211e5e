"""What dtypes a tree works on, judged on zero rows: nothing may fail, or change its dtype, because of one record."""

import datetime as dt
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from pdrisk.rowwise.kinds import check_kinds, check_order, converted, dated, described, mended, unfit
from pdrisk.rowwise.tree import (
    ARITHMETIC,
    COMPARISONS,
    LOGIC,
    MEMBERSHIP,
    ORDERINGS,
    SIGNS,
    Builder,
    Column,
    Constant,
    Node,
    Operation,
    applied,
    value_of,
)

__all__ = ["BOOLEAN", "check_boolean", "typed"]

DEPTH = 200  # levels of a tree; evaluation spends two stack frames on each
TEXT = {"str", "string", "string[pyarrow]", "large_string[pyarrow]"}
BOOLEAN = {"bool", "boolean", "bool[pyarrow]"}
FLOAT = {"float16", "float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]"}
# The integers of pyarrow are missing: they raise on overflow, so that a failure would tell about one record.
NUMBER = FLOAT | {f"{kind}{bits}" for kind in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)}


def typed(node: Node, empty: Mapping[Hashable, Any], builder: Builder, level: int = 0) -> tuple[Node, Any]:
    """The node with its dates as pandas compares them, and its value on zero rows."""
    if level > DEPTH:
        builder.refuse(f"it is nested more than {DEPTH} levels deep. Use `in` with a list, or fewer parentheses.")
    if not isinstance(node, Operation):
        return node, value_of(node, empty)
    symbol = node.symbol
    parts, values = map(list, zip(*[typed(part, empty, builder, level + 1) for part in node.parts], strict=True))
    if symbol in ORDERINGS:
        check_order(symbol, parts, values, builder)
    if symbol in COMPARISONS:
        values = [dated(value, values[1 - place], builder) for place, value in enumerate(values)]
        parts = [Constant(v) if isinstance(part, Constant) else part for part, v in zip(parts, values, strict=True)]
    elif symbol in LOGIC:
        for part, value in zip(node.parts, values, strict=True):
            if not isinstance(part, Constant):
                check_boolean(part, value, builder)
    elif symbol in MEMBERSHIP and values[0].dtype.kind in "mM" and {*map(type, values[1])} & {str, dt.date}:
        builder.refuse(
            "whether a date equals a text depends on the version of pandas. Write a range, as in "
            "`'2020-01-01' <= day < '2020-01-02'`, or name a pd.Timestamp with `@name`."
        )
    elif symbol in ARITHMETIC or symbol in SIGNS:
        _total(node, values, builder)
    if symbol in COMPARISONS or symbol in MEMBERSHIP:
        check_kinds(symbol, parts, values, builder)
    result = None
    with suppress(Exception), np.errstate(all="ignore"):
        _kindred(values)
        # On plain text isin is always bool and never fails, but is slow even on zero rows.
        plain = symbol in MEMBERSHIP and values[0].dtype.name in ("str", "object")
        result = values[0].isna() if plain else applied(symbol, values)
    if result is None:  # refused out here, for the error of pandas may hold categories and must not be the context
        builder.refuse(f"{unfit(symbol, [*node.parts], values)}. {mended(symbol, parts, values)}.")
    return Operation(symbol, tuple(parts)), result


def check_boolean(node: Node, value: Any, builder: Builder) -> None:
    """Refuse a condition that is not one."""
    if str(value.dtype) not in BOOLEAN:
        advice = "Compare it, as in `age > 40`"
        if isinstance(node, Column) and value.dtype == object:
            advice = converted(node.name, "{}.astype('boolean')")
        builder.refuse(f"{described(node, value)} is not a decision between True and False. {advice}.")


def _kindred(values: list[Any]) -> None:
    """Raises where pandas could on data only: text against numbers, pyarrow against another dtype (its casts check)."""
    kinds = {value.dtype.name for value in values if isinstance(value, pd.Series)}
    others = [value for value in values if not isinstance(value, str | bool | pd.Series)]
    if kinds & TEXT:
        single = [value for value in values if not isinstance(value, pd.Series)]
        members = [member for value in single for member in (value if isinstance(value, list) else [value])]
        if any(not isinstance(member, str) and not pd.isna(member) for member in members):
            raise TypeError
        if kinds - TEXT - {"object", "category"}:
            raise TypeError
    if any(kind.endswith("[pyarrow]") for kind in kinds):
        listed = [member for value in others for member in (value if isinstance(value, list) else [])]
        integers = any("int" in kind for kind in kinds)
        if len(kinds) > 1 and kinds != {"bool", "bool[pyarrow]"}:
            raise TypeError
        if (integers and float in map(type, listed)) or any(
            isinstance(value, int | np.integer) and value >= 2**63 for value in [*others, *listed]
        ):
            raise TypeError


def _total(node: Operation, values: list[Any], builder: Builder) -> None:
    """Refuses arithmetic whose failure or whose dtype would depend on a record."""
    kinds = [str(v.dtype) if isinstance(v, pd.Series) else type(v).__name__ for v in values]
    for part, value, kind in zip(node.parts, values, kinds, strict=True):
        if isinstance(value, pd.Series) and kind not in NUMBER | {"bool", "boolean"}:
            builder.refuse(
                f"`{node.symbol}` on {described(part, value)}: arithmetic takes numbers that cannot fail on a record, "
                "not text, dates, objects or pyarrow's integers. Convert or compute a column before, or move the "
                "constant to the other side."
            )
    if set(kinds) <= BOOLEAN:
        builder.refuse(f"`{node.symbol}` on conditions alone. Join them with `and` and `or`; they differ by `!=`.")
    integers = node.symbol in ("//", "%", "**") and not {"float", *FLOAT} & {*kinds}
    if integers and (isinstance(values[1], pd.Series) or (node.symbol == "**" and values[1] < 0)):
        # One zero divisor turns the whole integer column into float64 and so rounds *other* records beyond 2**53;
        # one negative exponent raises. A single record would move many decisions.
        builder.refuse(
            f"`{node.symbol}` on integers needs a constant on its right, for `**` not below zero, or one record could "
            "change the result of others. Make one side a float, as in `2.0 ** x` or `a * 1.0 // b`."
        )
