"""Literals and types, as a caller passes them and as the parse trees of DuckDB 1 and 2 hold them."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from pdrisk._model.plain import check_encodable
from pdrisk._sql.syntax.tree import Scalar
from pdrisk.errors import ColumnTypeError, ParameterError

Json = dict[str, Any]

# Fields for the position in the text, and fields that are stored twice.
SILENT = frozenset({"query_location", "query_location_length", "qualified_name", "is_operator"})


def not_understood(what: str) -> NoReturn:
    """Refuse a part of a query."""
    raise ParameterError(f"pdrisk does not understand {what} of this query: write it in simpler SQL.")


def only(item: Json, *known: str) -> Json:
    """The parser's object, if it has no field beyond the known ones."""
    for name, value in item.items():
        is_set = (
            value is not None and value is not False and value not in ("", [], {}, {"map": []}) and name not in SILENT
        )
        if is_set and name not in known:
            shown = name.replace("_", " ")
            not_understood(f"{shown}={value}" if isinstance(value, str) else shown)
    return item


def literal(value: object, what: str) -> Scalar:
    """A value that a query may hold as a constant."""
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, str) and "\0" in value:
        raise ParameterError(f"{what} holds a NUL character: take it out.")
    check_encodable(what, [value])
    if isinstance(value, int) and abs(value) >= 2**127:
        raise ParameterError(f"{what} is too large for a whole number of 128 bits: write it as a float.")
    if isinstance(value, pd.Timestamp):
        check_microseconds(value, what)
        value = value.to_pydatetime()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise ColumnTypeError(f"{what} has a time zone: pass a datetime without one.")
    if isinstance(value, bool | int | float | Decimal | str | datetime.date):
        return value
    raise ColumnTypeError(f"{what} must be text, a number, a truth value, a date or None, not {type(value).__name__}.")


def check_microseconds(value: pd.Timestamp, what: str) -> None:
    """Refuse a finer time, which SQL would make another one."""
    if value.nanosecond:
        raise ParameterError(f"{what} is finer than a microsecond, and times are read in microseconds: round it.")


def of_duckdb_2(item: Json) -> Scalar:
    """Constant in DuckDB 2's tree, which keeps it as written."""
    kind, text = item["kind"], item["text"].replace("_", "") if item["kind"] != "STRING" else item["text"]
    match kind:
        case "NULL_LITERAL":
            return None
        case "BOOLEAN":
            return bool(text == "true")
        case "STRING":
            return str(text)
        case "INTEGER" if text.lstrip("+-").isdigit():
            return int(text)
        case "NUMERIC":
            return _finite(float(text)) if "e" in text.lower() else Decimal(text)
    not_understood("a constant")


def of_duckdb_1(item: Json) -> Scalar:
    """Constant in DuckDB 1's tree, which keeps a value with its type."""
    if item["is_null"]:
        return None
    kind, value = item["type"]["id"], item["value"]
    if isinstance(value, dict):
        value = (value["upper"] << 64) + value["lower"]
    if kind == "DECIMAL":
        return Decimal(f"{value}E-{item['type']['type_info']['scale']}")
    if kind == "DOUBLE":
        return _finite(float(value))
    if kind in ("BOOLEAN", "VARCHAR") or re.fullmatch(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", kind):
        return value
    not_understood("a constant")


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ParameterError("a number in the query is too large for a float.")
    return number


def type_of_duckdb_1(item: Json) -> str:
    """A type as SQL writes it."""
    info = item.get("type_info") or {}
    if item["id"] == "DECIMAL":
        return f"DECIMAL({info['width']},{info['scale']})"
    return str(item["id"]) if not info else "a nested or named type"


def type_of_duckdb_2(item: Json) -> str:
    """A type as SQL writes it."""
    only(item, "class", "type", "alias", "type_name", "children")
    numbers = [child.get("literal", {}).get("text", "") for child in item.get("children", [])]
    if not all(number.isdigit() for number in numbers):
        return "a nested or named type"
    return str(item["type_name"]) + (f"({','.join(numbers)})" if numbers else "")
