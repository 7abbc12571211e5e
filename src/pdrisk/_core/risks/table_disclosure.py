"""Disclosure measures of counts: population estimates of classes, l-diversity and t-closeness. Pure formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

IntArray = NDArray[np.int64]

MODELS: Final = ("negative_binomial", "poisson")
REACH: Final = 40.0  # what is left of exp(-x) there is lost in a float's rounding
PANELS, POINTS = 3, 40  # poles are pi away or farther, so the quadrature leaves out less than 1e-15


def expected_reciprocal(sample: FloatArray, population: FloatArray, model: str = "negative_binomial") -> FloatArray:
    """Individual risk of re-identification: the expectation of 1/F, of a class of unknown population size F.

    Benedetti & Franconi 1998, the individual risk of mu-Argus ("negative_binomial"). Both are
    ``E(1/F) = integral of E(exp(-tF)) over t > 0``. For the negative binomial, with ``v = exp(-s)`` in the place of
    ``p exp(-t) / (1 - (1-p) exp(-t))``, that is ``p integral of exp(-fs) / (p + (1-p) exp(-s)) over s > 0``; for
    Poisson with mean m, with ``v = 1 - exp(-t)``, ``integral of (1-v)^(f-1) exp(-mv) over 0 < v < 1``.

    ``sample``: shape (C,). Sizes f of classes in the sample, whole numbers of at least 1.
    ``population``: shape (C,). Their estimated sizes, such as sums of weights; at least ``sample``.
    ``model``: {"negative_binomial", "poisson"}; how many people of the class, F - f, were not sampled: failures
        before the f-th success of probability ``p = sample / population``, or Poisson with mean ``population -
        sample``.
    Returns: shape (C,)

    Examples
    --------
    >>> expected_reciprocal(np.array([1.0, 3.0]), np.array([17.0, 108.0])).round(8)
    array([0.17707583, 0.01355297])
    """
    missing = population - sample
    result: FloatArray = 1 / sample
    if model == "poisson":
        some = missing > 0
        f, m = sample[some], missing[some]
        result[some] = _integral(lambda v: np.exp((f - 1) * np.log1p(-v) - m * v), np.minimum(1, REACH / (m + f - 1)))
        return result
    one, more = (missing > 0) & (sample == 1), (missing > 0) & (sample > 1)
    rate = missing[one] / population[one]
    result[one] = -np.log1p(-rate) * (1 - rate) / rate
    f, p = sample[more], sample[more] / population[more]
    result[more] = p * _integral(lambda s: np.exp(-f * s) / (p + (1 - p) * np.exp(-s)), REACH / (f - 1))
    return result


def _integral(integrand: Callable[[FloatArray], FloatArray], end: FloatArray) -> FloatArray:
    """The integral from 0 to each end, of a function that is smooth and falls at least as exp(-REACH x / end)."""
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    total: FloatArray = np.zeros(len(end))
    for panel in range(PANELS):
        for point, weight in zip((points + 1) / 2 + panel, weights / 2, strict=True):
            total += integrand(end * (point / PANELS)) * weight
    return total * end / PANELS


def probability_below(
    k: int, sample: FloatArray, population: FloatArray, model: str = "negative_binomial"
) -> FloatArray:
    """Probability that fewer than k people of the population share a class; parameters as `expected_reciprocal`'s.

    ``k=2`` gives the probability that a class of one is unique in the population.

    Examples
    --------
    >>> probability_below(2, np.array([1.0, 2.0]), np.array([10.0, 20.0])).round(12)
    array([0.1, 0. ])
    """
    missing = population - sample
    with np.errstate(divide="ignore"):  # none missing: the logarithm of 0 is as it should be
        if model == "poisson":
            term, more = -missing, np.log(missing)
        else:
            term, more = sample * np.log(sample / population), np.log(missing / population)
    total: FloatArray = np.zeros(len(sample))
    for j in range(k - 1):
        total += np.where(sample + j < k, np.exp(term), 0)
        step = np.log((sample + j) / (j + 1)) if model != "poisson" else -np.log(j + 1)
        term = term + more + step
    return np.minimum(total, 1)


def diversity(classes: IntArray, counts: IntArray, number: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Diversity of a sensitive value within classes: distinct values, entropy l, and the share of the commonest.

    ``classes, counts``: shape (V,). A line for each value that occurs in a class: the class, and how many have the
        value there, at least 1.
    ``number``: of classes.
    Returns: shape (number,). l of distinct l-diversity; 0 where no value is known.
    Returns: shape (number,). ``exp`` of Shannon's entropy, l of entropy l-diversity (Machanavajjhala et al. 2007);
        NaN without a value.
    Returns: shape (number,). How often an attacker who guesses the commonest value is right; NaN without a value.
    """
    distinct = np.bincount(classes, minlength=number)
    total = np.bincount(classes, weights=counts, minlength=number)
    share = counts / total[classes]
    entropy = np.bincount(classes, weights=-share * np.log(share), minlength=number)
    largest: FloatArray = np.zeros(number)
    np.maximum.at(largest, classes, share)
    unknown = distinct == 0
    effective = np.minimum(np.exp(entropy), distinct)  # no more than that, but for rounding
    return distinct, np.where(unknown, np.nan, effective), np.where(unknown, np.nan, largest)


def closeness(classes: IntArray, values: IntArray, counts: IntArray, number: int, *, ordered: bool) -> FloatArray:
    """Distance of the values of each class from those of the whole table: t of t-closeness.

    Li, Li & Venkatasubramanian 2007. Equal distances: ``sum |q - p| / 2``. Ordered: ``sum |Q_i - P_i| / (m - 1)`` with
    cumulative shares; Q is constant between the values of a class, so each stretch needs only where P crosses it.

    ``classes, values, counts``: shape (V,). A line for each value that occurs in a class: the class, the place of
        the value among all that occur, and how many have it there, at least 1. Sorted by class and value.
    ``number``: of classes.
    ``ordered``: whether distances are those of ordered values (earth mover's, steps of equal length) or equal for
        all.
    Returns: shape (number,). In [0, 1]; NaN for a class without a value.
    """
    overall = np.bincount(values, weights=counts)
    m, whole = len(overall), np.bincount(classes, weights=counts, minlength=number)
    p, q = overall / overall.sum(), counts / whole[classes]
    if not ordered:
        more = np.maximum(q - p[values], 0)  # both sum to 1, so what is more in one is less elsewhere
        return np.where(whole == 0, np.nan, np.bincount(classes, weights=more, minlength=number))
    if m == 1:
        return np.where(whole == 0, np.nan, 0.0)
    cumulative = np.cumsum(p)
    before = np.concatenate([[0.0], np.cumsum(cumulative)])  # sums of P_0 ... P_(i-1)
    first = np.ones(len(classes), dtype=bool)
    first[1:] = classes[1:] != classes[:-1]
    running = np.cumsum(counts)
    start = np.maximum.accumulate(np.where(first, running - counts, 0))
    level = (running - start) / whole[classes]  # Q from a value to the next
    end = np.append(np.where(first[1:], m - 1, values[1:]), m - 1)  # at the last value both are 1
    crossing = np.clip(np.searchsorted(cumulative, level), values, np.maximum(end, values))
    below = level * (crossing - values) - (before[crossing] - before[values])
    above = before[end] - before[crossing] - level * (end - crossing)
    moved = below + above + np.where(first, before[values], 0)
    result = np.bincount(classes, weights=moved, minlength=number) / (m - 1)
    return np.where(whole == 0, np.nan, np.clip(result, 0, 1))
