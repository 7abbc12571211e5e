"""Risks in whole numbers out of a hundred, which people believe and remember better than decimals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from pdrisk._core.risks.risk import success_bound

DENOMINATORS = (100, 1_000, 10_000)


def times_right(risk: float, prior: float = 0.5) -> tuple[int, int]:
    """How often an attacker is right at most, as (times, out of), rounded up.

    A hundred, unless rounding up would add more than a fifth of what the release adds, or would say "always".

    ``risk, prior``: probabilities; what the attacker reaches, and where he starts.

    Examples
    --------
    >>> times_right(0.7311)
    (74, 100)
    >>> times_right(0.52498)
    (525, 1000)
    """
    out_of = common_denominator([risk], prior)
    return counted(risk, out_of)[0], out_of


def common_denominator(risks: Iterable[float], prior: float = 0.5) -> int:
    """One denominator for all numbers that are read together: the smallest that is fine enough for each of them.

    ``risks``: probabilities that start from the same prior.
    Returns: one of `DENOMINATORS`; the last one also where even that is too coarse.

    Examples
    --------
    >>> common_denominator([0.7311, 0.52498])
    1000
    """
    several = list(risks)
    for out_of in DENOMINATORS:
        if all(_fits(risk, prior, out_of) for risk in several):
            return out_of
    return DENOMINATORS[-1]


def counted(risk: float, out_of: int) -> tuple[int, bool]:
    """A risk as a whole number, and whether it is at most this: near 1 it is "more than", never "always".

    Rounded up, as the number is written: 0.55 of 100 is 55, and anything above a half is more than 50.
    """
    times = _up(risk, out_of)
    return (times, True) if times < out_of else (out_of - 1, False)


def reached(loss: float, delta: float = 0.0) -> float:
    """How often an attacker with a coin's prior is right at most after a loss; always above 1/2.

    Without delta it is the largest belief, too.

    Examples
    --------
    >>> counted(reached(1.0), 100), counted(reached(1e-20), 10_000), counted(reached(0.0), 100)
    ((74, True), (5001, True), (50, True))
    >>> round(reached(1.0, 0.01), 4)
    0.7337
    """
    return max(success_bound(loss, delta), math.nextafter(0.5, 1.0)) if loss > 0 else 0.5


def _up(risk: float, out_of: int) -> int:
    return math.ceil(Fraction(repr(float(risk))) * out_of)


def _fits(risk: float, prior: float, out_of: int) -> bool:
    times = _up(risk, out_of)
    return times < out_of and times / out_of - risk <= (risk - prior) / 5
