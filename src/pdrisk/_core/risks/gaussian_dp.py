"""Gaussian differential privacy: the m of an answer, what several add up to, and the success of an attacker it allows.

An answer has m (is m-GDP) if nobody tells two neighbours apart by it better than a number drawn from N(0, 1) is told
from one drawn from N(m, 1). Squares of m add up, whatever later questions have to do with earlier answers, and all
answers together let the best attacker with a coin's prior be right ``Phi(sqrt(sum) / 2)`` of the time at most.
Everything here errs towards the person by one part in 2**40, which is more than floats may be off. docs/numbers.md has
the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

UP: Final = 1 + 2.0**-40
DOWN: Final = 1 - 2.0**-40
LARGEST_EPS: Final = 600.0  # beyond, tails leave the range of floats
TOLD: Final = 1e300  # of eps, where everything is told; squares of larger m leave the range of floats
SLOPE: Final = math.sqrt(math.pi / 2)  # of m at eps 0
CENTRAL: Final = 0.3  # distances of probabilities from 1/2 that `erf` tells best
STEPS: Final = 100  # of Newton's method; some ten are needed
COUNTED: Final = 100  # records of a person in one group, one by one
ULPS: Final = 2.0**-52  # of a probability above 1/2, more than one may be off


def normal_cdf(x: float) -> float:
    """Standard normal distribution function."""
    return math.erfc(-x / math.sqrt(2)) / 2


def upper_quantile(q: float) -> float:
    """Standard normal quantile z of an upper tail: the point that is exceeded with probability q, for q in (0, 1)."""
    return _point(0.5 - q, math.log(q)) if q <= 0.5 else -_point(q - 0.5, math.log1p(-q))


def _point(central: float, log_tail: float) -> float:
    """The point beyond which lies a tail of at most 1/2, told as 1/2 less the tail and as the tail's logarithm.

    Newton's method. To the right of 0 both ``Phi - 1/2`` and ``ln Q`` are concave: from 0, or from beyond the root, it
    comes nearer with each step and never passes it, up to rounding.
    """
    if central <= 0.0:
        return 0.0
    if central < CENTRAL:
        z, nearer = 0.0, central * math.sqrt(2 * math.pi)
        while nearer > z:
            z = nearer
            nearer = z + (central - math.erf(z / math.sqrt(2)) / 2) / _density(z)
        return max(z, nearer)
    z = math.sqrt(-2 * (log_tail + math.log(2)))  # the tail is at most exp(-z**2 / 2) / 2
    for _ in range(STEPS):
        tail = math.erfc(z / math.sqrt(2)) / 2
        closer = z + (math.log(tail) - log_tail) * tail / _density(z)
        if closer >= z:
            break
        z = closer
    return z


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=4096)  # several quantiles ask for few different ones many times
def mu_of_pure(eps: float) -> float:
    """P: m of any answer with a privacy loss of eps at most, and exactly that of one noisy count.

    ``2 z(1 / (1 + e**eps))``.
    """
    if eps > LARGEST_EPS:
        return 2 * math.sqrt(2 * min(eps, TOLD)) * UP
    return _capped(2 * _point(math.tanh(eps / 2) / 2, -eps - math.log1p(math.exp(-eps))), SLOPE * eps)


@lru_cache(maxsize=1024)
def mu_of_laplace(eps: float) -> float:
    """L: m of a number with Laplace noise that a person moves by eps times its scale, ``2 z(e**(-eps/2) / 2)``."""
    if eps > LARGEST_EPS:
        return 2 * math.sqrt(min(eps, TOLD)) * UP
    return _capped(2 * _point(-math.expm1(-eps / 2) / 2, -eps / 2 - math.log(2)), SLOPE * eps)


def mu_of_exponential(eps: float) -> float:
    """E: m of a choice by the exponential mechanism, whose log-ratios lie in a range as long as eps: ``P(eps / 2)``."""
    return mu_of_pure(eps / 2)


def mu_of_geometric(eps: float, change: int) -> float:
    """m of a whole number with discrete Laplace noise of scale ``change / eps`` that a person moves by ``change``."""
    rate = eps / change
    if change == 1:
        return mu_of_pure(eps)
    if eps > LARGEST_EPS or change % 2:
        return min(mu_of_laplace(eps + on_lattice(rate)), mu_of_pure(eps))
    near, far = (_tail_of_geometric(rate, steps) for steps in (change // 2, change // 2 + 1))
    return _capped(near + far, SLOPE * eps)


def _tail_of_geometric(rate: float, steps: int) -> float:
    """z of ``a**steps / (1 + a)``, the chance that discrete Laplace noise is that large, with ``a = e**-rate``."""
    a = math.exp(-rate)
    central = (math.expm1(-rate) / 2 - math.expm1(-rate * steps)) / (1 + a)
    return _point(central, -rate * steps - math.log1p(a))


@lru_cache(maxsize=256)
def mu_of_records_apart(eps: float, change: int, records: int) -> float:
    """m of counts or whole sums of groups, over which a person's records may be spread in any way.

    The largest sum of m**2 over partitions of the records: at most their number times the largest m**2 a record.
    Beyond `COUNTED` in one group, m is at most that of Laplace noise, of which L**2 / eps rises.

    ``eps``: of all the records together.
    ``change``: how much one record moves the number of its group at most.
    """
    rate, many = eps / records, records > COUNTED
    dearest = max(mu_of_geometric(rate * k, change * k) ** 2 / k for k in range(1, min(records, COUNTED) + 1))
    if many:
        more = on_lattice(rate / change)
        dearest = max(dearest, mu_of_laplace(eps + more) ** 2 / (eps + more) * (rate + more / COUNTED))
    return min(math.sqrt(records * dearest) * UP, mu_of_pure(eps))


def mu_of_coin(lie: float, other: float) -> float:
    """m of a randomised answer: not the true one with probability ``lie``, a given other one with ``other``; exact."""
    false_alarm, missed = upper_quantile(other), upper_quantile(lie)
    return false_alarm + missed + (abs(false_alarm) + abs(missed)) * (UP - 1)


def on_lattice(rate: float) -> float:
    """What to add to the eps of a number with *discrete* Laplace noise, of scale ``1 / rate``, to take it for Laplace.

    ``2 ln cosh(rate / 2)``: exact where it is moved by an odd number of steps, a bound otherwise.
    """
    return math.log1p(math.sinh(rate / 2) ** 2) if rate < 1 else rate + 2 * math.log1p(math.exp(-rate)) - math.log(4)


def squared(mu: float) -> Fraction:
    """``m**2`` exactly, which sums of many answers are made of."""
    return Fraction(mu) ** 2


def root(mu2: Fraction) -> float:
    """The m of a sum of squares, rounded up."""
    return math.sqrt(mu2) * UP if mu2 else 0.0


def success_of(mu2: Fraction | float) -> float:
    """How often the best attacker with a coin's prior is right at most, by answers whose m**2 add up to this.

    ``Phi(sqrt(mu2) / 2)``, rounded up.
    """
    return min(normal_cdf(math.sqrt(mu2) / 2) * UP, normal_cdf(math.sqrt(mu2) / 2) + ULPS, 1.0)


def promised(mu2: Fraction, delta: Fraction | float) -> float:
    """`success_of` answers that besides tell everything with probability delta, rounded up."""
    alone = success_of(mu2)
    return alone if not delta else min(alone + float(delta) * (1 - alone) + ULPS, 1.0)


def limit_of(success: Fraction | float) -> Fraction:
    """The largest sum of m**2 that a limit of success in (1/2, 1) allows: ``(2 z(1 - success))**2``, rounded down."""
    exact = Fraction(success)
    return squared(2 * _point(float(exact - Fraction(1, 2)), math.log(1 - exact)) * DOWN)


def largest_eps(mu2_of: Callable[[Fraction], Fraction], limit: Fraction) -> Fraction:
    """The largest eps whose ``mu2_of``, which rises with it, is within a limit; rounded down to a float."""
    low, high = 0.0, 1.0
    while mu2_of(Fraction(high)) <= limit:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high and high - low > high * 2.0**-44:
        low, high = (middle, high) if mu2_of(Fraction(middle)) <= limit else (low, middle)
    return Fraction(low)


def _capped(mu: float, cap: float) -> float:
    return min(mu, cap) * UP
