"""Publication of answers: which part of a table or a release may be shown to anybody."""

from __future__ import annotations

from typing import Any, overload

import pandas as pd

from pdrisk._answer.answers.answer import NO_ANSWER, Answer
from pdrisk._answer.release import Release
from pdrisk._core.foreign import own_errors
from pdrisk._model.plain import plain_label
from pdrisk.errors import ColumnTypeError, NotPublicError, ParameterError


@overload
def public(answer: pd.DataFrame) -> pd.DataFrame: ...
@overload
def public(answer: Release) -> dict[str, Any]: ...
@own_errors
def public(answer: pd.DataFrame | Release) -> pd.DataFrame | dict[str, Any]:
    """Publishable part of a table of answers: its columns that do not depend on the data beyond the noisy values.

    Parameters
    ----------
    answer : DataFrame or Release
        As pdrisk returned it, or with rows taken out; its ``attrs`` say what it is.

    Returns
    -------
    DataFrame or dict
        Of a `Release` the dict `Release.public`.

    Raises
    ------
    NotPublicError
        If the bounds came from the data, or the table does not say what it is.
    ParameterError
        If columns or rows are not pdrisk's, or the table was computed from others.
    """
    if isinstance(answer, Release):
        return answer.public()
    if not isinstance(answer, pd.DataFrame):
        raise ColumnTypeError(f"public takes a frame that pdrisk returned, not {type(answer).__name__}.")
    description = Answer.from_attrs(answer.attrs)
    if description is None:
        raise NotPublicError(NO_ANSWER)
    check_bounds(description)
    description.check_unchanged(answer)
    kept = answer.drop(columns=[name for name in description.curators_columns if name in answer.columns])
    named = [plain_label(name) for name in answer.index.names]
    counted = named == [None] and answer.index.equals(pd.RangeIndex(len(answer)))  # as reset_index leaves it
    if not counted and any(name not in description.index for name in named):
        raise ParameterError(
            "the index of this frame is not the one pdrisk gave it, so pdrisk cannot say whether it may be published: "
            "pass the answer as pdrisk returned it."
        )
    if unknown := [name for name in kept.columns if plain_label(name) not in description.public_columns]:
        raise ParameterError(
            f"columns {', '.join(map(str, unknown))} are not from pdrisk, so it cannot say whether they may be "
            "published: take them out first."
        )
    return kept


def check_bounds(answer: Answer) -> None:
    """Refuse to publish an answer whose bounds came from the data: their ends are two people's values."""
    if answer.bounds_from_data:
        raise NotPublicError(
            "this answer took bounds from the data, so nothing of it is publishable: ask with declared bounds=(lo, hi)."
        )
