"""Type checks of a filter's tree, on zero rows: nothing may depend on what a record holds."""

import datetime as dt
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import pandas as pd

from pdrisk._model.expressions.columns import are_truth_objects, column_kind
from pdrisk._model.expressions.kinds import (
    DATE,
    DURATION,
    MIXED,
    NOTHING,
    NUMBER,
    PERIOD,
    TEXT,
    TRUTH,
    ZONED,
    kind_of_value,
)
from pdrisk._model.expressions.nodes import (
    COMPARISONS,
    LOGIC,
    MISSING,
    ORDERINGS,
    Call,
    Column,
    Constant,
    Node,
    Operation,
    Rank,
    Truth,
)
from pdrisk._model.expressions.operands import gives, no_arithmetic, takes
from pdrisk._model.rowwise.builder import Builder, text_of
from pdrisk._model.rowwise.comparisons import (
    CONVERT,
    check_exact,
    check_kinds,
    check_order,
    converted,
    dated,
    described,
    is_categorical,
    mended,
    unfit,
)
from pdrisk._model.rowwise.families import family, of_values
from pdrisk._model.rowwise.functions import column_of

DEPTH = 200  # levels of a tree; evaluation spends a few stack frames on each
BOOLEAN = {"bool", "boolean", "bool[pyarrow]"}
ON_NO_ROWS = {NUMBER: pd.Series(dtype="float64"), TRUTH: pd.Series(dtype="boolean")}


def typed(node: Node, empty: Mapping[Hashable, pd.Series], builder: Builder, level: int = 0) -> tuple[Node, Any]:
    """The node with its dates and categories as they are compared, and its value on zero rows."""
    if level > DEPTH:
        builder.refuse(f"it is nested more than {DEPTH} levels deep. Use `in` with a list, or fewer parentheses.")
    if isinstance(node, Column):
        if are_truth_objects(builder.frame[node.name]):
            return Truth(node.name), ON_NO_ROWS[TRUTH]
        return node, empty[node.name]
    if isinstance(node, Constant):
        return node, node.value
    if isinstance(node, Call):
        return node, _checked_call(node, empty, builder)
    assert isinstance(node, Operation)
    symbol = node.symbol
    parts, values = map(list, zip(*[typed(part, empty, builder, level + 1) for part in node.parts], strict=True))
    if symbol in LOGIC:
        for part, value in zip(node.parts, values, strict=True):
            if not isinstance(part, Constant):
                check_boolean(part, value, builder)
    elif gives(symbol) == NUMBER:
        _check_arithmetic(node, values, builder)
    elif symbol in MISSING:  # of objects, whatever they are
        parts = [part if isinstance(part, Column) else one for part, one in zip(node.parts, parts, strict=True)]
    else:
        parts = _compared(symbol, parts, values, builder)
    return Operation(symbol, tuple(parts)), ON_NO_ROWS[gives(symbol)]


def _checked_call(node: Call, empty: Mapping[Hashable, pd.Series], builder: Builder) -> pd.Series:
    """A function of a column of texts, or of times without a zone, on zero rows."""
    column, is_of_time = column_of(node), node.name == "date_part"
    value = empty[column.name]
    name = family(value.dtype)
    if name is None and not is_of_time:  # a column of objects is asked for their kind, which docs/threat-model.md tells
        name = TEXT if column_kind(builder.frame[column.name]) in (TEXT, NOTHING) else name
    if name == ZONED and is_of_time:
        builder.refuse(
            f"{described(column, value)} has a time zone, by whose clock its parts differ. "
            f"{converted(column.name, '{}.dt.tz_localize(None)')}, by which every record keeps the time of its zone."
        )
    if name != (DATE if is_of_time else TEXT):
        wanted, advice = ("dates", CONVERT[DATE]) if is_of_time else ("text", CONVERT[TEXT])
        builder.refuse(
            f"{text_of(node)} asks {described(column, value)}, and takes {wanted}. {converted(column.name, advice)}."
        )
    return ON_NO_ROWS[NUMBER if is_of_time else TRUTH]


def check_boolean(node: Node, value: Any, builder: Builder) -> None:
    """Refuse a condition that is not one."""
    if not takes("and", _operand_kind(value)):
        advice = "Compare it, as in `age > 40`"
        if isinstance(node, Column) and value.dtype == object:
            advice = converted(node.name, "{}.astype('boolean')")
        builder.refuse(f"{described(node, value)} is not a decision between True and False. {advice}.")


def _compared(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> list[Node]:
    """The parts of a comparison, with dates as Timestamps and ordered categories as their places."""
    if symbol in ORDERINGS:
        if any(isinstance(value, pd.Series) and is_categorical(value.dtype) for value in values):
            return _ranked(symbol, parts, values, builder)
        check_order(symbol, parts, values, builder)
    if symbol in COMPARISONS:
        values = [
            dated(part, value, values[1 - place], builder)
            for place, (part, value) in enumerate(zip(parts, values, strict=True))
        ]
        parts = [
            Constant(value, part.given) if isinstance(part, Constant) else part
            for part, value in zip(parts, values, strict=True)
        ]
    elif is_categorical(values[0].dtype):
        given = parts[1].given if isinstance(parts[1], Constant) else None
        values[1] = [dated(Constant(one, given), one, values[0], builder) for one in values[1]]
        parts[1] = Constant(values[1], given)
    elif family(values[0].dtype) in (DATE, ZONED, DURATION) and {*map(type, values[1])} & {str, dt.date}:
        builder.refuse(
            "whether a date equals a text depends on the version of pandas. Write a range, as in "
            "`'2020-01-01' <= day < '2020-01-02'`, or name a pd.Timestamp with `@name`."
        )
    dtypes = [value.dtype for value in values if isinstance(value, pd.Series)]
    freqs = {of_values(dtype).freq for dtype in dtypes if family(dtype) == PERIOD}
    if "" in map(family, dtypes) or len(freqs) > 1:
        _refuse_parts(symbol, parts, values, builder)
    check_kinds(symbol, parts, values, builder)
    if symbol not in ORDERINGS:
        check_exact(symbol, parts, values, builder)
    return parts


def _ranked(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> list[Node]:
    """Categories by their places among the declared ones: those of the column may have been read off the data."""
    listed = []
    for part, value in zip(parts, values, strict=True):
        if isinstance(part, Constant):
            continue
        if not (isinstance(part, Column) and is_categorical(value.dtype) and value.dtype.ordered):
            _refuse_parts(symbol, parts, values, builder)
        listed.append((text_of(part), part.name, builder.levels(part.name)))
    name, column, levels = listed[0]
    if levels is None or any(other != levels for _, _, other in listed):
        builder.refuse(
            f"the order of categories is asked of {' and '.join(shown for shown, _, _ in listed)}, and categories may "
            f"have been read off the data: declare theirs in order, as in df.dprisk.declare(keys={{{column!r}: "
            f"['low', 'high']}}), or list those you mean, as in `{name} in ['low', 'middle']`."
        )
    for part in parts:
        if isinstance(part, Constant) and part.value not in levels:
            builder.refuse(f"{text_of(part)} is none of the categories that are declared for {name}.")
    return [
        Constant(levels.index(part.value), part.given) if isinstance(part, Constant) else Rank(part.name, levels)  # type: ignore[union-attr]
        for part in parts
    ]


def _check_arithmetic(node: Operation, values: list[Any], builder: Builder) -> None:
    """Refuse arithmetic on anything but numbers."""
    for part, value in zip(node.parts, values, strict=True):
        if not takes(node.symbol, _operand_kind(value)):
            refusal = no_arithmetic(node.symbol, described(part, value))
            builder.refuse(
                f"{refusal}, not text, dates, categories or objects. Convert or compute a column before, or move the "
                "constant to the other side."
            )
    if all(_operand_kind(value) == TRUTH for value in values):
        builder.refuse(f"`{node.symbol}` on conditions alone. Join them with `and` and `or`; they differ by `!=`.")


def _operand_kind(value: Any) -> str:
    """The kind of a constant, or of a column as `decide` reads it: numbers, truth values, or what is neither."""
    if not isinstance(value, pd.Series):
        return kind_of_value(value)
    if str(value.dtype) in BOOLEAN:
        return TRUTH
    return NUMBER if family(value.dtype) == NUMBER and not is_categorical(value.dtype) else MIXED


def _refuse_parts(symbol: str, parts: list[Node], values: list[Any], builder: Builder) -> NoReturn:
    builder.refuse(f"{unfit(symbol, parts, values)}. {mended(symbol, parts, values)}.")
