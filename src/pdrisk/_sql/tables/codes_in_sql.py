"""Missing codes in SQL: they become NULL before a query sees them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from pdrisk._model.declared.missing_codes import check_code_kinds
from pdrisk._model.kinds import DATE, NUMBER, TEXT, TIME, ZONED
from pdrisk._sql.syntax.pieces import INTEGERS, kind_of_type, quoted, written_constant

__all__ = ["relation_without_codes"]


def relation_without_codes(sql: str, columns: Mapping[str, str], missing: Mapping[str, Sequence[Hashable]]) -> str:
    """SQL for FROM in which these codes of a source are NULL.

    Parameters
    ----------
    sql : str
        The source, as it stands in FROM.
    columns : mapping of str to str
        SQL types by column name.
    missing : mapping of str to codes

    Raises
    ------
    ColumnTypeError
        If a code is of another kind than its column.
    """
    replaced = []
    for name, codes in missing.items():
        found = _found(name, columns[name], codes)
        if found:
            replaced.append(f"CASE WHEN {found} THEN NULL ELSE {quoted(name)} END AS {quoted(name)}")
    return f"(SELECT * REPLACE ({', '.join(replaced)}) FROM {sql}) AS without_codes" if replaced else sql


def _found(name: str, sql_type: str, codes: Sequence[Hashable]) -> str:
    """Condition that a record has one of the codes; empty if the type can hold none."""
    value, kind = quoted(name), _KINDS.get(sql_type.partition("(")[0], kind_of_type(sql_type))
    constants = []
    for code in codes:
        if kind == TEXT and isinstance(code, datetime.date):
            code = str(code)  # as a frame's column of such objects is read
        check_code_kinds(name, [code], kind, sql=True)
        constants.append(_constant(code, kind, sql_type))
    listed = ", ".join(constant for constant in constants if constant is not None)
    if not listed:
        return ""
    if kind == TEXT:  # a collation could take other texts for a code
        value = f'(CAST({value} AS VARCHAR) COLLATE "binary")'
    elif kind == NUMBER and sql_type.startswith("DECIMAL"):
        value = f"CAST({value} AS DOUBLE)"
    elif kind in (TIME, ZONED) and sql_type not in ("TIMESTAMP", "TIMESTAMP_NS"):  # a far date has no such value
        value = f"TRY(TRY_CAST({value} AS {'TIMESTAMPTZ' if kind == ZONED else 'TIMESTAMP'}))"
    return f"{value} IN ({listed})"


_KINDS = dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), TIME)
LARGEST = {"FLOAT": 3e38, "DOUBLE": 1.7e308}


def _constant(code: Any, kind: str, sql_type: str) -> str | None:
    """A code as a constant of the column's type, None if that cannot hold it."""
    if kind == NUMBER and (sql_type in INTEGERS or sql_type == "UHUGEINT"):
        whole = int(code) if isinstance(code, int) or float(code).is_integer() else None
        fits = whole is not None and abs(whole) < 2**127 and (whole >= 0 or not sql_type.startswith("U"))
        return written_constant(whole) if fits else None
    if kind == NUMBER:
        to = "FLOAT" if sql_type == "FLOAT" else "DOUBLE"
        return None if math.inf > abs(code) > LARGEST[to] else f"CAST('{float(code)!r}' AS {to})"
    if kind == DATE and isinstance(code, pd.Timestamp):
        return written_constant(code.date()) if code == code.normalize() else None
    if kind == ZONED:
        return f"CAST('{code.isoformat()}' AS TIMESTAMPTZ)"
    if isinstance(code, pd.Timestamp):
        return _constant_time(code, sql_type)
    return written_constant(code)


def _constant_time(code: pd.Timestamp, sql_type: str) -> str | None:
    try:
        exact = code.as_unit("ns" if sql_type == "TIMESTAMP_NS" else "us", round_ok=False)
    except ValueError:  # also what lies beyond
        return None
    return f"CAST('{exact.isoformat(sep=' ')}' AS {'TIMESTAMP_NS' if sql_type == 'TIMESTAMP_NS' else 'TIMESTAMP'})"
