"""Missing codes of a table become NULL before a query sees them."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real

import pandas as pd

from pdrisk.errors import ColumnTypeError
from pdrisk.select.allowed import DATE, NUMBER, TEXT, TIME, TRUTH
from pdrisk.select.expressions import INTEGERS, kind_of_type, quoted, written_constant

__all__ = ["relation_without_codes"]


def relation_without_codes(sql: str, columns: Mapping[str, str], missing: Mapping[str, Sequence[Hashable]]) -> str:
    """What stands in FROM instead of a source, so that these codes are NULL in it.

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
        value, constants = _compared(name, columns[name], codes)
        if constants:
            replaced.append(
                f"CASE WHEN {value} IN ({', '.join(constants)}) THEN NULL ELSE {quoted(name)} END AS {quoted(name)}"
            )
    return f"(SELECT * REPLACE ({', '.join(replaced)}) FROM {sql}) AS without_codes" if replaced else sql


def _compared(name: str, sql_type: str, codes: Sequence[Hashable]) -> tuple[str, list[str]]:
    """What of the column is compared, and the codes that it can hold as constants of the same type."""
    kind, value = kind_of_type(sql_type), quoted(name)
    if sql_type.startswith(("TIMESTAMP_", "ENUM")):
        kind = TEXT if sql_type.startswith("ENUM") else TIME
    constants = []
    for code in codes:
        if (of := _kind(code)) != kind and {of, kind} != {DATE, TIME}:
            raise ColumnTypeError(
                f"a missing code of column {name!r} is {of}, but the column holds {kind}: list codes of the column's "
                "own kind."
            )
        if kind == NUMBER and (sql_type in INTEGERS or sql_type == "UHUGEINT"):
            whole = int(code) if float(code) == int(code) else None  # type: ignore[call-overload, arg-type]
            if whole is not None and (whole >= 0 or not sql_type.startswith("U")):
                constants.append(written_constant(whole))
        elif kind == NUMBER:
            constants.append(f"CAST('{float(code)!r}' AS {'FLOAT' if sql_type == 'FLOAT' else 'DOUBLE'})")  # type: ignore[arg-type]
        elif kind == DATE and isinstance(code, pd.Timestamp):
            if code == code.normalize():
                constants.append(written_constant(code.date()))
        elif isinstance(code, pd.Timestamp):
            constants.append(written_constant(code.to_pydatetime()))
        else:
            constants.append(written_constant(code))  # type: ignore[arg-type]
    if kind == TEXT:  # a collation could take other texts for a code
        value = f'(CAST({value} AS VARCHAR) COLLATE "binary")'
    elif kind == NUMBER and sql_type.startswith("DECIMAL"):
        value = f"CAST({value} AS DOUBLE)"
    return value, constants


def _kind(code: Hashable) -> str:
    if isinstance(code, bool):
        return TRUTH
    if isinstance(code, Real):
        return NUMBER
    if isinstance(code, str):
        return TEXT
    return TIME if isinstance(code, datetime.datetime) else f"of type {type(code).__name__}"
