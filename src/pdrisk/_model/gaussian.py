"""Gaussian differential privacy of questions that nobody has asked yet: m from eps, and success from several m."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from pdrisk._core.foreign import array_of, own_errors
from pdrisk._core.risks import gaussian_dp as gaussian
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean
from pdrisk._model.answering import answered_by, joined
from pdrisk._model.arguments import check_step, checked_number, epsilon, statistics, universe
from pdrisk._model.query import Line, Query
from pdrisk._model.unit import Unit, checked_count
from pdrisk.errors import ColumnTypeError, ParameterError

LARGEST: Final = 1e100  # whose square a float holds


@own_errors
def mu(
    eps: Any,
    mechanism: str = "auto",
    statistic: str | Sequence[Any] = "count",
    *,
    bounds: Any = (0, 1),
    rows: int = 1,
    groups: int = 1,
    step: int | None = None,
    interval: bool = False,
    clip: str | None = None,
    n_at_least: int | None = None,
) -> float:
    """The m of Gaussian differential privacy (mu) of a question of one column, as `Risk.mu` of its answer has it.

    Parameters
    ----------
    eps : float
        Privacy loss of all of it, in nats.
    mechanism : str
        As for every statistic: ``"auto"``, ``"laplace"``, ``"geometric"``, ``"exponential"``, ...
    statistic : str or list of str
        One, or several of the same column that are asked together, as in ``["mean", "var"]``: of these all together.
    bounds, step, interval, clip
        As for every statistic. Bounds matter for whole sums alone, of which noise is whole.
    rows, groups : int
        How many rows of a person count in each group, and in how many groups.
    n_at_least : int, optional
        For ``mechanism="two_stage"``: how many rows there are at least.

    Returns
    -------
    float
        Never too small: rounded up by 1e-12 of it.

    Raises
    ------
    ParameterError
        If there is no such question, or its mechanism cannot answer it at this eps.

    Examples
    --------
    >>> round(mu(1), 4), round(mu(1, statistic="mean"), 4), round(mu(1, statistic="median"), 4)
    (1.232, 1.0301, 0.6239)
    """
    given, wanted, number = universe(bounds), list(statistics(statistic)), checked_number(n_at_least)
    check_step(step)
    for at, one in enumerate(wanted):
        if number is not None and isinstance(one, Mean | Var):
            wanted[at] = replace(one, n_at_least=number)
    lines, releases = joined(
        [
            answered_by(
                Line("x", one, given, "given"), mechanism, whole=step == 1, joint=len(wanted) > 1, interval=interval,
                clip=clip,
            )
            for one in wanted
        ],
        mechanism,
    )  # fmt: skip
    parts = max(releases) + 1
    unit = Unit(rows=checked_count("rows", rows), groups=checked_count("groups", groups))
    query = Query(lines, (epsilon(eps) / parts,) * parts, releases=releases, unit=unit)
    for at in range(len(lines)):
        query.mechanism(at).check()
    return gaussian.root(query.mu2)


@own_errors
def success_of(mu: ArrayLike) -> float:
    """Success of the best attacker at most, by all of several answers together: ``Phi(sqrt(sum of mu**2) / 2)``.

    The attacker gives even odds that a person is in the data, and is then right this often. Each question may depend on
    earlier answers, what each answer may cost may not: eps must be fixed before the first answer, or a limit of success
    that a ledger keeps. Of costs that were chosen by earlier answers this sum says nothing.

    Parameters
    ----------
    mu : array_like of float
        The m of each answer: `Risk.mu`, or of `mu`.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If one is negative or not finite.

    Examples
    --------
    >>> round(success_of([mu(0.24)] * 20), 4)
    0.7492
    """
    listed = array_of("mu", mu)
    if listed.dtype.kind not in "iuf":
        raise ColumnTypeError("mu must be a number or an array of numbers.")
    if not np.all((listed >= 0) & (listed < LARGEST)):
        raise ParameterError("mu must be at least 0 and below 1e100.")
    return gaussian.success_of(sum(map(gaussian.squared, listed.astype(np.float64).ravel().tolist()), Fraction(0)))
