"""Exact laws of answers that are chosen: expected errors without a draw, of pdrisk and of OpenDP's quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdrisk._mechanisms import Exponential
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.exponential.measure import Measure

__all__ = ["chosen_beyond", "chosen_ends", "chosen_errors", "opendp_law", "opendp_score"]

FloatArray = NDArray[np.float64]
HALVINGS = 13  # of (0, 1], on each of whose parts a polynomial is close to the integrand
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)


@lru_cache(maxsize=4)
def _sums(measure: Measure) -> tuple[NDArray[np.longdouble], NDArray[np.longdouble]]:
    """Before each point, the sums of places and of places times numbers of all points: whole, and below 2**64."""
    before = measure.before(np.arange(measure.size + 1)).astype(np.longdouble)
    moments = np.cumsum(np.diff(before) * np.arange(measure.size))
    return before, np.concatenate([moments[:1] * 0, moments])


def chosen_errors(mechanism: Exponential, summary: Any, exact: FloatArray) -> FloatArray:
    """Expected absolute error of an answer in each group."""
    points = mechanism.points
    items, mass = mechanism.masses(summary)
    before, moments = _sums(mechanism.measure)
    start, end = items.start, items.start + items.width
    place = points.place(np.asarray(exact, dtype=np.float64))[items.group]
    split = np.clip(np.floor(place).astype(np.int64) + 1, start, end)
    off = place * (2 * before[split] - before[start] - before[end]) - 2 * moments[split] + moments[start] + moments[end]
    share = mass / np.maximum(items.places, 1)
    total = np.add.reduceat(mass, items.first[:-1])
    found = np.add.reduceat(share * np.maximum(off, 0), items.first[:-1]) / total * points.step
    return found.astype(np.float64)


def chosen_beyond(mechanism: Exponential, summary: Any, limit: FloatArray, *, above: bool) -> FloatArray:
    """Probability of an answer above a limit in each group, or below it."""
    points = mechanism.points
    items, mass = mechanism.masses(summary)
    before, _ = _sums(mechanism.measure)
    start, end = items.start, items.start + items.width
    unlimited = (np.asarray(limit) - points.first * points.step) / points.step
    place = np.clip(np.floor(unlimited) + 1 if above else np.ceil(unlimited), 0, points.size)[items.group]
    split = np.clip(place.astype(np.int64), start, end)
    part = before[end] - before[split] if above else before[split] - before[start]
    share = mass * part / np.maximum(items.places, 1)
    found = np.add.reduceat(share, items.first[:-1]) / np.add.reduceat(mass, items.first[:-1])
    return found.astype(np.float64)


def chosen_ends(mechanism: ExponentialInterval, summary: Any, exact: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Expected half-width of the interval in each group, and how often at most it does not hold the exact answer.

    The ends that are farther out than the answer; where they are not, the interval reaches to the answer.
    """
    points, measure, cells = mechanism.points, mechanism.measure, mechanism._cells(summary)
    before, moments = _sums(measure)
    ends = [np.full(len(exact), mechanism.universe.lo), np.full(len(exact), mechanism.universe.hi)]
    missed = np.zeros(len(exact))
    own = measure.nearest(points.index(np.asarray(exact, dtype=np.float64)).astype(np.int64))
    for row, target in enumerate(mechanism.joint.targets):
        if target.spare is None:
            continue
        items, mass, spare = mechanism.joint.masses(cells, row)
        is_upper = target.spare.point > 0
        start, end = items.start, items.start + items.width
        share, first = mass / np.maximum(items.places, 1), items.first[:-1]
        total = np.add.reduceat(mass, first) + spare
        mean = (np.add.reduceat(share * (moments[end] - moments[start]), first) + spare * target.spare.point) / total
        ends[is_upper] = (mean + points.first) * points.step
        split = np.clip((own + (0 if is_upper else 1))[items.group], start, end)
        part = before[split] - before[start] if is_upper else before[end] - before[split]
        missed += (np.add.reduceat(share * part, first) / total).astype(np.float64)
    return np.asarray((ends[1] - ends[0]) / 2, dtype=np.float64), missed


def opendp_score(x: FloatArray, candidates: FloatArray, q: float) -> FloatArray:
    """OpenDP's score of candidates as quantiles of x, whose sensitivity is max(q, 1 - q)."""
    ordered = np.sort(x)
    below = np.searchsorted(ordered, candidates, side="left")
    above = len(x) - np.searchsorted(ordered, candidates, side="right")
    score: FloatArray = np.abs(q * above - (1 - q) * below)
    return score


def opendp_law(x: FloatArray, candidates: Sequence[float], q: float, eps: float) -> FloatArray:
    """Probabilities of the candidates: permute-and-flip, which is report-noisy-max with exponential noise.

    ``p_i = w_i * integral over u from 0 to 1 of the product of all 1 - u w_j but for j = i``, where the weights are
    ``w = exp(-eps (score - best) / (2 max(q, 1 - q)))`` (McKenna & Sheldon 2020).
    """
    score = opendp_score(x, np.asarray(candidates), q)
    different, which, several = np.unique(score, return_inverse=True, return_counts=True)
    weight = np.exp(-eps / (2 * max(q, 1 - q)) * (different - different[0]))
    ends = np.concatenate([[0.0], 2.0 ** -np.arange(HALVINGS - 1, -1, -1)])
    half = np.diff(ends)[:, None] / 2
    u = ((ends[:-1, None] + half) + half * NODES).ravel()
    du = (half * NODE_WEIGHTS).ravel()
    logs = np.log1p(-u[:, None] * weight)
    product = np.exp(logs @ several[:, None] - logs) * weight
    law: FloatArray = (du @ product)[which]
    return law / law.sum()
