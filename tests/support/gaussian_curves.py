"""Trade-off curves from their definition: missed detections by false alarms, of the best tests between two laws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

Law = tuple[np.ndarray, np.ndarray]  # probabilities of outcomes without a person, and with

#: 24,000 rates of false alarms; in two orders they stand for those above 1/2, too.
ALPHAS = np.sort(np.concatenate([np.logspace(-15, np.log10(0.5), 12_001)[:-1], np.linspace(0, 0.5, 12_001)[1:]]))


def gaussian(alphas, m):
    """G: missed detections of the best test of N(0, 1) against N(m, 1)."""
    return ndtr(-ndtri(alphas) - m)


def gaussian_power(alphas, m):
    """1 - G, to all digits where alphas are small."""
    return ndtr(ndtri(alphas) + m)


def _log_ratio(p, q):
    with np.errstate(divide="ignore"):
        return np.log(q) - np.log(p)


def curve(without, with_):
    """False alarms and missed detections of the best tests (Neyman & Pearson): the corners of a polygon."""
    p, q = np.asarray(without, dtype=float), np.asarray(with_, dtype=float)
    order = np.argsort(-_log_ratio(p, q), kind="stable")
    alarms = np.concatenate([[0.0], np.cumsum(p[order])])
    missed = np.concatenate([np.cumsum(q[order][::-1])[::-1], [0.0]])
    return alarms, missed


def room(law: Law, m: float) -> float:
    """How far the curve of two laws keeps above G, in both orders, as a part of what it is told by: negative if below.

    Of each order the half is looked at where fewer false alarms are given than cases are missed; the other order has
    the other half. There power is known to all digits, and at corners what is missed is.
    """
    worst = math.inf
    for p, q in (law, law[::-1]):
        alarms, missed = curve(p, q)
        power = np.concatenate([[0.0], np.cumsum(q[np.argsort(-_log_ratio(p, q), kind="stable")])])
        for alphas, found in ((ALPHAS, np.interp(ALPHAS, alarms, power)), (alarms, power)):
            half = (alphas > 1e-300) & (alphas <= 1 - found)
            most = gaussian_power(alphas[half], m)
            worst = min(worst, float(np.min((most - found[half]) / most, initial=math.inf)))
        half = (alarms > 1e-300) & (alarms <= missed)
        least = gaussian(alarms[half], m)
        worst = min(worst, float(np.min((missed[half] - least) / least, initial=math.inf)))
    return worst


def product(*laws: Law) -> Law:
    """The laws of several independent outcomes together."""
    p = q = np.ones(1)
    for own, other in laws:
        p, q = np.multiply.outer(p, own).ravel(), np.multiply.outer(q, other).ravel()
    return p, q


def lattice(eps: float, change: int) -> Law:
    """Discrete Laplace noise of scale change/eps around 0 and around ``change``: outcomes by their likelihood ratio."""
    a = math.exp(-eps / change)
    inner = [a**k * (1 - a) / (1 + a) for k in range(1, change)]
    law = np.array([1 / (1 + a), *inner, a**change / (1 + a)])
    return law, law[::-1]


def success(law: Law) -> float:
    """How often the best guess from a coin's prior is right."""
    return (1 + np.abs(np.subtract(*law)).sum() / 2) / 2


def laplace_power(eps: float) -> np.ndarray:
    """Cases that the best tests of Laplace noise against noise moved by eps scales find, at `ALPHAS`."""
    e = math.exp(-eps)
    return np.where(e / 2 >= ALPHAS, ALPHAS / e, 1 - e / (4 * ALPHAS))


def partitions(k: int, most: int | None = None) -> list[list[int]]:
    """All ways to divide k records among groups."""
    most = k if most is None else most
    return [[]] if k == 0 else [[j, *rest] for j in range(min(k, most), 0, -1) for rest in partitions(k - j, j)]


def many(law: Law, times: int) -> Law:
    """So many independent outcomes of the same kind."""
    return product(*[law] * times)


def fractions(law: Sequence[dict]) -> Law:
    """Two dicts of exact probabilities, over the same outcomes."""
    return tuple(np.array([float(each.get(key, 0)) for key in law[0] | law[1]]) for each in law)
