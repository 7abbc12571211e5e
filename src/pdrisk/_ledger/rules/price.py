"""Price of a query in m^2, and the eps at which it would cost less."""

from __future__ import annotations

from fractions import Fraction

from pdrisk._core.risks.gaussian_dp import largest_eps
from pdrisk._ledger.rules.policy import Policy
from pdrisk._ledger.rules.success_limits import mu2_of_pure
from pdrisk._model.query import Query


def price_of(query: Query, policy: Policy) -> Fraction:
    """The m^2 of a query, with that of the noisy numbers of people that decide what is withheld."""
    return query.mu2 if policy.least_group is None else query.mu2 + _of_looks(query, policy)


def _of_looks(query: Query, policy: Policy) -> Fraction:
    counted = policy.counted(query)
    return sum(map(mu2_of_pure, counted), Fraction(0)) * query.times if counted else Fraction(0)


def fitting(query: Query, policy: Policy, of_several: bool, left: Fraction) -> tuple[Fraction, Fraction]:
    """The largest eps at which the same question costs no more m^2 than is left, and the m^2 that it may have itself.

    Without one, 0; the m^2 also where it is one of several, each of which pays for a look besides.
    """
    looks = _of_looks(query, policy)
    rest = left - looks
    if rest <= 0:
        return Fraction(0), Fraction(0)
    return largest_eps(lambda eps: query.at(eps).mu2, rest), Fraction(0) if looks and of_several else rest
