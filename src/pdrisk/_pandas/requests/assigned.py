"""Assigned columns of a Dataset, judged by its frame and by the declarations of the other columns."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import replace
from functools import partial

import pandas as pd

from pdrisk._model.declared.declarations import Declarations
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.rowwise import Derived
from pdrisk._model.rowwise.derived import derived
from pdrisk._pandas.requests.declared import codes_of, declarations_of, declared, knowing
from pdrisk.engines.numpy.derived import placeholder
from pdrisk.errors import ColumnTypeError, ParameterError


def assigned(
    frame: pd.DataFrame,
    name: str,
    expression: object,
    before: tuple[Derived, ...],
    taken: Collection[Hashable],
    constant: Collection[Hashable],
) -> tuple[pd.DataFrame, tuple[Derived, ...]]:
    """The frame with a placeholder for one more derived column, and all derived columns.

    ``frame``: with a place for those assigned ``before``.
    ``taken``: names that say who a person is, or which records are selected.
    ``constant``: names of columns that do not differ within a person, by what is declared.
    """
    if not isinstance(expression, str):
        raise ColumnTypeError(
            f"{name}= must be an expression as text, which is checked to be row-wise, as in "
            f'"birth // 10 * 10", not of type {type(expression).__name__}.'
        )
    if name in taken:
        raise ParameterError(f"{name!r} says who a person is, or which records query() selected: use another name.")
    if name in constant:
        raise ParameterError(
            f"{name!r} is declared to have one value for each person (by constant=, or since tables with "
            'per_person="one" were joined), and a column that is made anew may have several: use another name.'
        )
    if frame.columns.nlevels > 1:
        raise ParameterError("assign needs columns of one level: flatten the frame's column labels first.")
    if name in frame.columns:
        check_column(frame, name)

    def levels(column: Hashable) -> tuple[Hashable, ...] | None:
        return declared(frame, column).keys

    one = derived(name, expression, frame, levels, partial(codes_of, frame), before)
    declarations = declarations_of(frame)
    kept = [
        [e for e in said_by if e.pattern or e.column != name] for said_by in (declarations.own, declarations.schema)
    ]
    by_hand, schema = map(tuple, kept)
    left = replace(declarations, own=by_hand, schema=schema)
    if left.speak_of(name):
        raise ParameterError(f"a schema names all columns like {name!r}: use another name.")
    added = frame.copy(deep=False)
    added[name] = placeholder(one, len(frame))
    added = knowing(added, left) if declarations != Declarations() else added
    return added, (*(earlier for earlier in before if earlier.name != name), one)
