"""Number of rows per person, found privately: a value for ``rows=`` where nobody knows how many rows people have."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pdrisk._answer.answers.formatting import number
from pdrisk._answer.releasing import Asker
from pdrisk._core.order import Quantile
from pdrisk._model.arguments import checked_probability
from pdrisk._model.unit import MOST_ROWS
from pdrisk._pandas.noisy.answers import answered
from pdrisk._pandas.requests.judged_requests import judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.requests.people_options import people_of
from pdrisk._printing import DisplayedText
from pdrisk.errors import ColumnTypeError, ParameterError


class SuggestedRows(int):
    """Number of rows per person that `suggest_rows` found: an int, fit for ``rows=``.

    Attributes
    ----------
    share : float
        About this share of the people have no more rows.
    eps : float
        Privacy loss paid, in nats.
    """

    share: float
    eps: float

    def __new__(cls, rows: int, share: float, eps: float) -> SuggestedRows:
        """The number itself is an int."""
        suggestion = super().__new__(cls, rows)
        suggestion.share, suggestion.eps = share, eps
        return suggestion

    def __getnewargs__(self) -> tuple[Any, ...]:
        return int(self), self.share, self.eps

    def __repr__(self) -> str:
        return (
            f"{int(self)}\n"
            f"  rows a person: about {number(100 * self.share)} % of people have no more, by a noisy quantile for "
            f"eps={self.eps:g}.\n"
            f"  rows={int(self)} lets so many of each person count, with {int(self)} times the noise of one row. Fewer "
            "are often better:\n"
            "  compare the intervals of some, or take one number for each person with per_person=."
        )

    def _repr_html_(self) -> str:
        return DisplayedText(repr(self))._repr_html_()


def suggested_rows(frame: pd.DataFrame, share: object, most: object, request: Request, asker: Asker) -> SuggestedRows:
    """A number of rows a person, released like any answer."""
    q = checked_probability("share", share)
    if isinstance(most, bool | np.bool_) or not isinstance(most, numbers.Integral):
        raise ColumnTypeError(f"most is a whole number, not of type {type(most).__name__}.")
    if not 2 <= int(most) <= MOST_ROWS:
        raise ParameterError(f"most must be between 2 and {MOST_ROWS:,}.")
    people = people_of(frame, request)
    if not people.columns:
        raise ParameterError("suggest_rows counts the rows of people: pass person=, the column of their ids.")
    request = replace(request, per_person="count", bounds=(1, int(most)), step=1, weights=False)
    lines = judged_lines(frame, people.columns[0], (Quantile(q),), request)
    release = answered(*judged_query(frame, lines, request), asker)
    assert not isinstance(release, pd.DataFrame)
    return SuggestedRows(int(release.value), q, release.eps)
