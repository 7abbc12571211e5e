"""Identifiability of given worlds, or of the question who of a column is missing, by one answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pdrisk._answer.answers import formatting
from pdrisk._core.foreign import array_of, own_errors
from pdrisk._core.risks.risk import belief, privacy_loss, reached_already
from pdrisk._core.risks.worlds import exact_of_worlds, positive, tight_of_worlds
from pdrisk._core.summary import FloatArray
from pdrisk._digits import rounded_down, rounded_up
from pdrisk._guard import guarded
from pdrisk._model.arguments import (
    checked_probability,
    epsilon,
    statistic,
)
from pdrisk._model.declared.attributes import mark_exact
from pdrisk._pandas.requests.judged_requests import check_rows_in_python, judged_selection
from pdrisk._pandas.requests.lines import judged_lines
from pdrisk._pandas.requests.options import Request
from pdrisk._pandas.requests.people_options import check_worlds_of_people
from pdrisk.engines.numpy.frame import column_values
from pdrisk.engines.numpy.worlds import worlds_without_one, worlds_without_person
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.identifiability.possible import numbers_of


@dataclass(frozen=True, slots=True)
class Identifiability:
    """Identifiability of an answer: what it tells an attacker who knows all people but one. Curator only.

    Attributes
    ----------
    name : str
        The question, as in ``mean(distance)``.
    worlds : int
        Number of worlds that the attacker thinks possible; m in the papers.
    prior : float
        The attacker's prior belief in the likeliest of them, 1/m if all are equally likely.
    sensitive_range : float
        Largest distance between these worlds, in the unit of the answer; S(f) in the 2012 paper.
    sensitivity : float
        Sensitivity that the noise is scaled by, ``scale = sensitivity / eps``. Under ``two_sums`` and ``bernstein`` the
        missing value itself tells worlds apart. Then distances are those of values (under ``bernstein`` of their
        squares as shares of the width), and this is half the width of the bounds.
    eps : float
        Privacy loss that was asked about, in nats; with ``risk=`` the loose one.
    bound : float
        Upper bound of the attacker's belief in one world at ``eps``: the belief if all worlds were as far apart as the
        farthest.
    exact : float
        Largest belief that the attacker can really reach at ``eps``.
    risk, loose_eps, tight_eps : float or None
        With ``risk=``: the risk asked for, the eps at which ``bound`` reaches it, and the eps at which ``exact`` does.
        They depend on the data, so never calibrate a release by them: round them to a grid that was declared
        beforehand.
    """

    name: str
    worlds: int
    prior: float
    sensitive_range: float
    sensitivity: float
    eps: float
    bound: float
    exact: float
    risk: float | None = None
    loose_eps: float | None = None
    tight_eps: float | None = None

    @property
    def scale(self) -> float:
        """Scale of the noise at ``eps``, in the unit of the answer; lambda in the 2012 paper."""
        return self.sensitivity / self.eps

    def to_dict(self) -> dict[str, Any]:
        """Dict of every field and the scale. Curator only."""
        return dataclasses.asdict(self) | {"scale": self.scale}

    def to_series(self) -> pd.Series:
        """Series of the fields of `to_dict`. Curator only."""
        fields = self.to_dict()
        name = fields.pop("name")
        series = pd.Series(fields, name=name, dtype=object)
        return mark_exact(series)

    def __repr__(self) -> str:
        return formatting.text(f"identifiability of {self.name}", [], self._rows())

    def _repr_html_(self) -> str:
        return formatting.html(f"identifiability of {self.name}", [], self._rows())

    def _rows(self) -> formatting.Rows:
        rows = [
            ("possible worlds", f"{self.worlds}"),
            ("attacker's start", self._told(self.prior)),
            ("sensitive range", formatting.number(self.sensitive_range)),
            ("sensitivity", formatting.number(self.sensitivity)),
        ]
        if self.risk is not None and self.loose_eps is not None and self.tight_eps is not None:
            any_will_do = "any will do"
            rows += [
                ("highest risk", formatting.risk(self.risk)),
                ("loose eps", any_will_do if math.isinf(self.loose_eps) else rounded_down(self.loose_eps, 6)),
                ("tight eps", any_will_do if math.isinf(self.tight_eps) else rounded_down(self.tight_eps, 6)),
            ]
        if math.isfinite(self.eps):
            asked = self.risk is None  # else the answer is advice, and must hold as it is written
            rows += [
                ("at eps", f"{self.eps:.6g}" if asked else rounded_down(self.eps, 6)),
                ("noise scale", formatting.number(self.scale if asked else float(rounded_up(self.scale, 6)))),
            ]
        return [*rows, ("risk, loose bound", self._told(self.bound)), ("risk, exact", self._told(self.exact))]

    def _told(self, risk: float) -> str:
        """A risk as text; certain if there is only one world."""
        return "certain without this answer" if self.worlds == 1 else formatting.risk(risk)


@own_errors
def of_worlds(
    worlds: ArrayLike,
    *,
    eps: float | None = None,
    risk: float | None = None,
    sensitivity: float | None = None,
    prior: ArrayLike | None = None,
) -> Identifiability:
    """Identifiability of given possible worlds: what an answer tells about them.

    Parameters
    ----------
    worlds : array_like of float, shape (m,)
        The exact answers in the possible worlds, as `worlds_with` and `worlds_without_one` return them.
    eps, risk : float
        Exactly one of them: the eps to judge, or the highest risk wanted.
    sensitivity : float, optional
        Sensitivity that the noise is scaled by; the sensitive range by default, as in the 2012 paper.
    prior : float or array_like of float, shape (m,), optional
        The attacker's belief in one world, while all others share the rest evenly (as in 1/68: m = 68 in the loose
        bound); or in each world, scaled to add up to 1. By default all are equally likely.

    Returns
    -------
    Identifiability
    """
    answers = numbers_of("worlds", worlds)
    if len(answers) == 0:
        raise ParameterError("worlds must hold at least one world.")
    judged = _judged(eps, risk)
    if prior is not None and array_of("prior", prior).ndim:
        prior = numbers_of("prior", prior)
        if len(prior) != len(answers):
            raise ParameterError("prior must hold one number for each world, or be one number for the likeliest.")
    spread = float(np.ptp(answers))
    sensitivity = spread if sensitivity is None else positive("sensitivity", sensitivity)
    return _found("these worlds", answers, *judged, sensitivity, prior, spread)


def of_column(frame: pd.DataFrame, column: Hashable | None, spec: object, request: Request) -> Identifiability:
    """Identifiability of a frame's column: one of its people is missing."""
    (line,) = judged_lines(frame, column, (statistic(spec),), request)
    judged, prior = _judged(request.eps, request.risk), cast(Any, request.prior)
    query, engine = judged_selection(frame, (line,), request)
    check_rows_in_python(engine, "identifiability()")
    several = query.unit.weight > 1
    if several:
        check_worlds_of_people(query, prior)
    reading = engine.read(query)
    beliefs = _of_rows(prior, reading.stored) if prior is not None and array_of("prior", prior).ndim else None
    universe, summary = reading.universes[0], reading.summaries[0]
    one = query.mechanism(0, universe, Fraction(1))
    if several:
        worlds, whole = guarded(lambda: worlds_without_person(reading, one))
        spread = float(np.ptp(worlds)) if len(worlds) else 0.0
    else:
        worlds, whole, used = guarded(lambda: worlds_without_one(reading, one))
        if beliefs is not None:
            prior = numbers_of("prior", beliefs[used])
        spread = float(one.loss_between_worlds_by_eps(summary)[0]) * whole
    people = worlds.shape[-1]
    if people == 0 and judged[1] is None:
        return Identifiability(line.name, 0, math.nan, math.nan, whole, judged[0], math.nan, math.nan)
    start = _start(prior, people)
    if judged[1] is not None and not (judged[1] > start or (judged[1] == start and spread == 0)):
        raise reached_already(f"a risk of {judged[1]:g}")
    return _found(line.name, worlds, *judged, whole, prior, spread)


def _of_rows(prior: Any, frame: pd.DataFrame) -> NDArray[np.generic]:
    """One belief for each row; those of unused rows do not matter."""
    if isinstance(prior, pd.Series):
        if not prior.index.equals(frame.index):
            raise ParameterError("prior must have the index of the frame, or be an array with one number a row.")
        if not pd.api.types.is_numeric_dtype(prior.dtype):
            raise ColumnTypeError("prior must hold numbers.")
        prior = column_values(prior)
    beliefs = array_of("prior", prior)
    if beliefs.shape != (len(frame),):
        raise ParameterError("prior must hold one number for each row of the frame; those of unused rows are left out.")
    return beliefs


def _judged(eps: object, risk: object) -> tuple[float, float | None]:
    """The eps (NaN if not given) and the risk (None if not given), of which exactly one is given."""
    if risk is None or eps is not None:
        return float(epsilon(eps, risk)), None
    return math.nan, checked_probability("risk", risk)


def _start(prior: Any, worlds: int) -> float:
    """The attacker's belief in the likeliest world before any release."""
    if prior is None or worlds <= 1:
        return 1 / worlds if worlds else 1.0
    if np.ndim(prior):
        if not (np.isfinite(prior).all() and (prior > 0).all()):
            raise ParameterError("each number of prior must be finite and above 0.")
        return float((prior / prior.sum()).max())
    one = checked_probability("prior", prior)
    if one < 1 / worlds:
        raise ParameterError(
            "prior is that of the likeliest world, so it cannot be below an equal share of all worlds."
        )
    return one


def _found(
    name: str,
    worlds: FloatArray,
    eps: float,
    risk: float | None,
    sensitivity: float,
    prior: Any,
    spread: float,
) -> Identifiability:
    """Identifiability of at least one world; ``spread`` is their sensitive range."""
    m = worlds.shape[-1]
    start = _start(prior, m)
    weights = prior / prior.sum() if prior is not None and np.ndim(prior) else None
    singled = prior is not None and weights is None and m > 1  # one belief: all others share the rest evenly
    loose = tight = None
    if risk is not None:
        loss = float(privacy_loss(risk, start)) if spread else math.inf
        eps = loose = loss * sensitivity / spread if spread else math.inf
        highest = _as_one_of_m(risk, start, m) if singled else risk
        tight = loose
        if loose < math.inf and (weights is not None or highest > 1 / m):
            tight = max(loose, tight_of_worlds(worlds, highest, sensitivity, weights))
    if not spread or eps == math.inf:
        return Identifiability(name, m, start, spread, sensitivity, eps, start, start, risk, loose, tight)
    bound = float(belief(np.array(eps * (spread / sensitivity)), start))
    bound = max(bound if risk is None else min(bound, risk), start)  # equal to the risk, or the start, but for rounding
    exact = exact_of_worlds(worlds, sensitivity / eps, weights)
    if singled:
        exact = 1 / (1 + (1 - start) / start * (1 / exact - 1) / (m - 1))
    # Rounding could say that what all worlds together tell is more than what the farthest would.
    return Identifiability(
        name, m, start, spread, sensitivity, eps, bound, min(max(exact, start), bound), risk, loose, tight
    )


def _as_one_of_m(risk: float, prior: float, m: int) -> float:
    """The posterior from 1/m at which that from ``prior`` is ``risk``: both have the same likelihood ratio."""
    odds = (1 - risk) / risk * prior / (1 - prior)
    return (1 - 2.0**-50) / (1 + (m - 1) * odds)
