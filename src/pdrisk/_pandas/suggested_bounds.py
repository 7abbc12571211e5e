"""Bounds found privately, for a column whose range nobody knows.

A noisy histogram over powers of two, as Tumult Analytics and Google's library use it: every record is in one bin, so
all bins together cost eps once. What is done with the noisy counts costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pdrisk._answer.releasing import Asker, released
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Count
from pdrisk._core.summary import FloatArray, Needs
from pdrisk._core.universe import Universe
from pdrisk._digits import probability
from pdrisk._model.expressions.columns import check_column
from pdrisk._model.query import written
from pdrisk._pandas.requests.declared import declared
from pdrisk._pandas.requests.intervals import check_numeric
from pdrisk._pandas.requests.judged_requests import judged_query
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._printing import preformatted, printable
from pdrisk.engines.numpy.bins import SIZES, SMALLEST
from pdrisk.errors import BoundsNotFoundError, ParameterError

# How often noise alone may make an end: once in a hundred suggestions. Shared by the seven ways in which it can.
FIRST = 0.002  # that a size nobody has is taken for the most frequent one
OTHER = 0.002  # the same on the other side of zero, where sizes near the first one are believed more easily
ZERO = 0.001
ONWARD = 0.00125  # for each of the four ways on from there


@dataclass(frozen=True, slots=True)
class Sizes(Count):
    """The number of records of each size: a count for each of many disjoint groups."""

    name: ClassVar[str] = "suggest_bounds"

    @property
    def needs(self) -> Needs:
        return Needs(sizes=True)


class SuggestedBounds(tuple[float, float]):
    """Bounds ``(lo, hi)`` found with differential privacy; the repr says what the search assumed.

    Attributes
    ----------
    column : hashable
        The column that was searched.
    eps : float
        Privacy loss paid, in nats.
    worst_case : float
        Highest belief of an attacker, who starts from a coin's 1/2, that this release allows.
    """

    column: Hashable
    eps: float
    worst_case: float

    def __new__(cls, lo: float, hi: float, column: Hashable, eps: float) -> SuggestedBounds:
        """The pair itself is a tuple of two."""
        pair = super().__new__(cls, (lo, hi))
        pair.column, pair.eps = column, eps
        pair.worst_case = float(posterior(eps))
        return pair

    def __getnewargs__(self) -> tuple[float, float, Hashable, float]:
        return (*self, self.column, self.eps)

    def __repr__(self) -> str:
        lo, hi = self
        name = printable(str(self.column))
        return (
            f"({lo!r}, {hi!r})\n"
            f"  bounds of {name}, found with eps={self.eps:g} (worst-case risk {probability(self.worst_case)})\n"
            "  assumed: all values are answers, and codes such as -1 or 999 are declared as missing, or gone;\n"
            f"  sizes (powers of two) that fewer than {_people(self.eps)} people share may lie outside, clamped.\n"
            "  If you know the range from the questionnaire, declare that instead: it costs nothing."
        )

    def _repr_html_(self) -> str:
        return preformatted(repr(self))


def suggested(frame: pd.DataFrame, column: Hashable, request: Request, asker: Asker) -> SuggestedBounds:
    """Bounds of a column, released like any answer."""
    check_column(frame, column)
    lines = judged_lines(frame, column, (Sizes(),), Request(mechanism="laplace"))
    check_numeric(frame[column], lines[0].statistic)
    if request.people.per_person == "sum":
        raise ParameterError(
            'suggest_bounds looks at rows, and with per_person="sum" bounds are those of the sum of a person: pass '
            "bounds that you know."
        )
    if request.people.columns and request.people.per_person in (None, "mean"):
        request = replace(request, rows=1)  # the sizes of one value of each person, which a mean lies between
    query, engine = judged_query(frame, lines, request)
    valid = declared(frame, column).valid
    (counts,) = released(query, engine, lambda results, _: results.releases, asker)
    loss = float(query.eps)
    span = ends(counts.noisy.values, loss)
    name = written("suggest_bounds", column)
    if span is None:
        raise BoundsNotFoundError(
            f"{name} found no size of value that stands out from the noise at eps={loss:g}; it stays paid. Some "
            f"{_people(loss)} people must share one: ask with a larger eps, or declare bounds you know."
        )
    try:
        usable = Universe(max(span[0], valid[0]), min(span[1], valid[1]))
    except ParameterError:
        usable = None
    if usable is None:
        raise BoundsNotFoundError(
            f"{name} found nothing within the range that the schema allows; it stays paid. See whether the column has "
            "the unit of the schema."
        )
    return SuggestedBounds(usable.lo, usable.hi, column, loss)


def ends(counts: FloatArray, eps: float) -> tuple[float, float] | None:
    """The range that noisy counts of sizes show, None if they show none.

    ``counts``: shape (2 SIZES + 1,). In the order of `size_counts`, each with Laplace noise of scale 1 / eps.
    Returns: powers of two, negative ones, or 0.
    """
    sides = {"negative": counts[:SIZES][::-1], "positive": counts[SIZES + 1 :]}
    zero = bool(counts[SIZES] > _threshold(ZERO, eps))
    reach: dict[str, tuple[int, int] | None] = dict.fromkeys(sides)
    first, other = sorted(sides, key=lambda side: -sides[side].max())
    fullest = int(np.argmax(sides[first]))
    if sides[first][fullest] > _threshold(FIRST / (2 * SIZES), eps):
        reach[first] = _reached(sides[first], fullest, eps)
        # Over all places the shares 1 / (1 + distance)^2 add up to less than pi^2 / 3 - 1.
        distances = np.abs(np.arange(SIZES) - fullest)
        above = sides[other] - _threshold(OTHER / ((math.pi**2 / 3 - 1) * (1 + distances) ** 2), eps)
        if above.max() > 0:
            reach[other] = _reached(sides[other], int(np.argmax(above)), eps)
    negative, positive = reach["negative"], reach["positive"]
    if positive is None and negative is None:
        return (0.0, 1.0) if zero else None
    # An end on the far side of zero, on zero, or short of it.
    low = -_upper(negative[1]) if negative else 0.0 if zero or positive is None else _upper(positive[0] - 1)
    high = _upper(positive[1]) if positive else 0.0 if zero or negative is None else -_upper(negative[0] - 1)
    return low, high


def _reached(counts: FloatArray, start: int, eps: float) -> tuple[int, int]:
    """The smallest and the largest place that hold more than noise, seen from one that does."""
    return start - _onward(counts[:start][::-1], eps), start + _onward(counts[start + 1 :], eps)


def _onward(counts: FloatArray, eps: float) -> int:
    """How many places to go on.

    The next place needs little to be believed, one beyond a gap more: of the probability that noise looks like
    records, the place d steps after the last one has a share of 6 / (pi d)^2, all together 1.
    """
    reached = 0
    for place, count in enumerate(counts.tolist(), 1):
        share = 6 / (math.pi * (place - reached)) ** 2
        if count > _threshold(ONWARD * share, eps):
            reached = place
    return reached


def _threshold(probability: Any, eps: float) -> Any:
    """What Laplace noise of scale 1 / eps exceeds with this probability."""
    return np.log(0.5 / probability) / eps


def _people(eps: float) -> int:
    """How many must share a size to be seen first, in 19 of 20 suggestions."""
    return math.ceil(_threshold(FIRST / (2 * SIZES), eps) + _threshold(1 / 20, eps))


def _upper(place: int) -> float:
    """The upper end of a size, by its place; of the one before the first, the lower end of the first."""
    return math.ldexp(1.0, SMALLEST + place)
