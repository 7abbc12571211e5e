"""Columns of Python objects under a ledger: declarations say what kind of values they hold, never the values.

pandas makes objects of truth values once one of them is missing. So objects of which nothing is declared count as truth
values, and a missing value changes nothing about what is accepted. Any other use of them is refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._ledger import ledger_for
from pdrisk._model.expressions.columns import KINDS
from pdrisk._model.expressions.kinds import DATE, MIXED, NOTHING, NUMBER, TRUTH, kind_of_value
from pdrisk._model.query import UNIT, Query
from pdrisk._model.rowwise.families import of_values
from pdrisk._model.unit import Secret
from pdrisk._pandas.requests.declared import declarations_of, declared
from pdrisk._pandas.requests.options import Request
from pdrisk.engines.base import Engine
from pdrisk.errors import ColumnTypeError, ParameterError


def declared_kinds(frame: pd.DataFrame) -> dict[Hashable, str | None]:
    """Kinds of the columns of Python objects, and of categories that are objects; None where nothing is declared."""
    return {name: _declared_kind(frame, name) for name, dtype in frame.dtypes.items() if _is_object(of_values(dtype))}


def _is_object(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _declared_kind(frame: pd.DataFrame, column: Hashable) -> str | None:
    try:
        known, of_schema = declared(frame, column), declarations_of(frame).kind_of(column)
    except ParameterError:  # which whoever asks for the column is told
        return None
    listed = [key for key in known.keys or known.missing if key is not None]
    if kinds := {kind_of_value(key) for key in listed}:
        return kinds.pop() if len(kinds) == 1 else MIXED
    if of_schema is not None:
        return of_schema
    if known.universe is None:
        return None
    if known.dates:
        return DATE
    return TRUTH if known.universe == UNIT else NUMBER


def by_declarations(frame: pd.DataFrame, ledger: object) -> pd.DataFrame:
    """The frame as requests are judged by it: with a ledger, no content decides what is accepted."""
    if ledger_for(ledger) is None or KINDS in frame.attrs:
        return frame
    dtypes = dict(frame.dtypes)
    kinds = declared_kinds(frame).items()
    assumed = {name: kind or (TRUTH if _is_object(dtypes[name]) else NOTHING) for name, kind in kinds}
    judged = frame.copy(deep=False)
    judged.attrs[KINDS] = assumed
    return judged


@contextmanager
def judging(frame: pd.DataFrame, request: Request) -> Iterator[tuple[pd.DataFrame, Request]]:
    """The frame and the request to judge, and in errors what to do about columns of Python objects."""
    judged = by_declarations(frame, request.ledger)
    if KINDS not in judged.attrs:
        yield frame, request
        return

    def opened(query: Query, header: pd.DataFrame, stored: pd.DataFrame, given: Any, secret: Secret) -> Engine[Any]:
        header, stored = (frame if table is judged else table for table in (header, stored))
        return request.opened(query, header, stored, given, secret)

    with advising(judged):
        yield judged, replace(request, opened=opened)


@contextmanager
def advising(*frames: pd.DataFrame, asked: str = "") -> Iterator[None]:
    """Errors name an undeclared column of Python objects that they, or SQL ``asked``, are about, and say what to do."""
    try:
        yield
    except ParameterError as error:
        judged = [frame for frame in frames if asked or KINDS in frame.attrs]
        names = [name for frame in judged for name, kind in declared_kinds(frame).items() if kind is None]
        message = str(error)
        advice = _advice(message + asked * isinstance(error, ColumnTypeError), names, "text" if asked else TRUTH)
        error.args = (message + advice, *error.args[1:])
        raise


def _advice(message: str, names: Iterable[Hashable], usual: str) -> str:
    about = [name for name in names if re.search(rf"(?<!\w){re.escape(str(name))}(?!\w)", message)]
    if not about:
        return ""
    return (
        f" Column {about[0]!r} is of Python objects, which count as {usual} under a ledger, whatever they are, unless "
        f"they are declared: declare it, as in df.dprisk.declare(keys={{{about[0]!r}: [...]}}) or bounds=, or convert "
        'it, as in astype("string"), "Float64" or "boolean".'
    )
