"""Missing codes: which values may be declared to stand for a missing answer, and who may still ask for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._core.foreign import shown
from pdrisk._model.expressions.columns import comparable_kind
from pdrisk._model.expressions.kinds import NOTHING, kind_of_value, kind_phrase
from pdrisk._model.expressions.operands import comparable
from pdrisk._model.groups.keys import Key, listed_values
from pdrisk._model.plain import check_encodable, plain_key
from pdrisk.errors import ColumnTypeError, ParameterError


def check_codes(series: pd.Series, given: object) -> tuple[Hashable, ...]:
    """The missing codes declared for a column as plain values, without the ordinary kinds of missing."""
    wrong = (str, bytes, Mapping, pd.DataFrame)
    listed = None if isinstance(given, wrong) else listed_values(given, "missing codes")
    if listed is None:
        raise ColumnTypeError('missing codes must be a list, as in missing={"distance": [-1, -2]}.')
    plain = dict.fromkeys(plain_key(code, "a missing code") for code in listed)
    codes = [code for code in plain if code is not None]
    check_encodable(f"a missing code of column {shown(series.name)}", codes)
    if codes:
        check_code_kinds(series.name, codes, comparable_kind(series))
    return tuple(codes)


def check_code_kinds(column: Hashable, codes: Iterable[Hashable], kind: str, *, sql: bool = False) -> None:
    """Refuse missing codes of another kind than their column.

    ``codes``: in plain form.
    ``kind``: of the column; one that holds nothing takes every code.
    ``sql``: whether it compares with whatever SQL compares it with; else with its own kind alone.
    """
    for code in codes:
        other = kind_of_value(code)
        if other != kind != NOTHING and not (sql and comparable(other, kind, sql=True)):
            raise ColumnTypeError(
                f"a missing code of column {column!r} is {kind_phrase(code)}, but the column holds {kind}: list codes "
                "of the column's own kind, or convert the column first."
            )


def check_keys_are_no_codes(
    frame: pd.DataFrame, columns: Sequence[Hashable], keys: Sequence[Key], missing: Mapping[Any, Sequence[Hashable]]
) -> None:
    """Refuse keys that are missing codes, or integers that a column with missing codes cannot tell apart."""
    for column, codes in missing.items():
        at = columns.index(column)
        levels, dtype = {key[at] for key in keys}, frame[column].dtype
        coarse = {float(dtype.type(code)) for code in codes} if dtype in (np.float16, np.float32) else set()
        check_levels_are_no_codes(column, levels, {*codes, *coarse})
        if (
            isinstance(dtype, np.dtype)
            and dtype.kind in "iuf"
            and any(isinstance(level, int) and abs(level) > 2**53 for level in levels)
        ):
            raise ParameterError(
                f"a key of column {column!r} is beyond 2**53, where a column with missing codes cannot tell integers "
                "apart: make it text."
            )


def check_levels_are_no_codes(column: Hashable, levels: Iterable[Hashable], codes: Iterable[Hashable]) -> None:
    """Refuse keys of one column that are declared as missing codes: no record has them any more."""
    if not set(codes).isdisjoint(levels):
        raise ParameterError(
            f"a key of column {column!r} is declared to stand for a missing answer: list None for the group of those, "
            "or leave it out."
        )


Asked = tuple[Hashable, Any, str, str]  # a column, what it is compared with, and how the filter writes both


def asked_for_code(
    asked: Iterable[Asked], codes_of: Callable[[Any], Sequence[Hashable] | None], instead: str
) -> str | None:
    """Why a filter may not ask for a missing code: the code is missing before the filter sees it.

    ``asked``: the columns that it compares with constants for being equal; a constant as codes are written.
    ``codes_of``: the codes that are declared for a column.
    ``instead``: how the front end asks for missing answers; ``{}`` stands for the column.
    """
    for column, value, column_shown, value_shown in asked:
        if value in (codes_of(column) or ()):
            return (
                f"{value_shown} is declared to stand for a missing answer in {column_shown}, so no record has it: ask "
                f"for {instead.format(column_shown)}."
            )
    return None
