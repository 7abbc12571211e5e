"""Differential identifiability of given worlds (Lee & Clifton 2011, 2012)."""

from __future__ import annotations

import math
import numbers

import numpy as np
from numpy.typing import ArrayLike

from pdrisk.core.risk import privacy_loss
from pdrisk.core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

LARGEST_WORLD = 1e100  # so that distances are finite

__all__ = ["exact_identifiability", "tight_epsilon"]


def exact_identifiability(worlds: ArrayLike, scale: float, prior: ArrayLike | None = None) -> float:
    """Largest posterior belief in one world over every possible noisy output.

    Parameters
    ----------
    worlds : array_like of float, shape (m,)
        The exact answer in each world the attacker thinks possible.
    scale : float
        Scale of the Laplace noise, above 0, in the unit of the answers.
    prior : array_like of float, shape (m,), optional
        The attacker's belief in each world; each above 0, together 1. Equal by default.

    Returns
    -------
    float
        In [1/m, 1] for equal priors.

    Raises
    ------
    ParameterError
        If there is no world, a world is not finite, the scale is not finite and above 0, or the priors are not
        probabilities of these worlds.

    Notes
    -----
    The posterior of world i at output r is ``p_i exp(-|r - f_i|/b) / sum_j p_j exp(-|r - f_j|/b)``. By the triangle
    inequality no output says more about i than ``r = f_i``, so the maximum is
    ``max_i p_i / sum_j p_j exp(-|f_i - f_j|/b)``: no search over outputs. With the worlds sorted, the part of each sum
    to its left is the left neighbour's, one world more, damped by the gap between them; likewise to the right: O(m).

    Examples
    --------
    >>> round(exact_identifiability([-1.0, 1.0], scale=1.0), 4)
    0.8808
    """
    values, weights = _worlds(worlds, prior)
    _check_positive("scale", scale)
    return _exact(values, weights, scale)


def tight_epsilon(
    worlds: ArrayLike, rho: float, sensitivity: float | None = None, prior: ArrayLike | None = None
) -> float:
    """Largest epsilon for which the exact identifiability of given worlds stays within ``rho``.

    Parameters
    ----------
    worlds : array_like of float, shape (m,)
    rho : float
        The highest posterior wanted; below 1 and above the largest prior, 1/m by default.
    sensitivity : float, optional
        What the noise is scaled by, ``scale = sensitivity / eps``; the range of the worlds by default.
    prior : array_like of float, shape (m,), optional
        As in `exact_identifiability`.

    Returns
    -------
    float
        ``inf`` where the worlds give too many equal answers for any output to reach ``rho``.

    Raises
    ------
    ParameterError
        If ``rho`` cannot be had, or the sensitivity is not finite and above 0.

    Notes
    -----
    The exact identifiability grows with eps, from the largest prior to the largest share of its own answer that one
    world has; bisection gives the largest float that keeps the promise. The loose epsilon, where
    every world is as far as the farthest, is a lower bound (Lee & Clifton 2012, section 4).

    Examples
    --------
    >>> round(tight_epsilon([1.0, 2.0, 3.0], rho=0.5), 4)
    0.9624
    """
    values, weights = _worlds(worlds, prior)
    spread = float(values[-1] - values[0])
    if sensitivity is None:
        sensitivity = spread
    elif spread > 0:
        _check_positive("sensitivity", sensitivity)
    largest_prior = float(weights.max())
    loss = float(privacy_loss(rho, largest_prior)) if len(values) > 1 else _one_world(rho)
    if _exact_without_noise(values, weights) <= rho:
        return math.inf
    low = loss * sensitivity / spread
    while _exact(values, weights, sensitivity / low) > rho:
        low /= 2  # only rounding can put the loose epsilon above the tight one
    high = 2 * low
    while _exact(values, weights, sensitivity / high) <= rho:
        low, high = high, 2 * high
    while low < (middle := low + (high - low) / 2) < high:
        if _exact(values, weights, sensitivity / middle) <= rho:
            low = middle
        else:
            high = middle
    return low


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ColumnTypeError(f"{name} must be a number.")
    if not (math.isfinite(value) and float(value) > 0):
        raise ParameterError(f"{name} must be finite and above 0, but is {float(value):g}.")


def _one_world(rho: float) -> float:
    raise ParameterError(f"a risk of {rho:g} cannot be had: with one possible world the attacker is certain already.")


def _exact(values: FloatArray, weights: FloatArray, scale: float) -> float:
    with np.errstate(over="ignore"):  # worlds infinitely far apart
        damping = np.exp(-np.diff(values) / scale).tolist()
    mass = weights.tolist()
    left = _damped_sums(mass, damping)
    right = _damped_sums(mass[::-1], damping[::-1])[::-1]
    return float((weights / (np.array(left) + weights + np.array(right))).max())


def _damped_sums(mass: list[float], damping: list[float]) -> list[float]:
    # A recursion over sorted worlds: 0.15 s for 1e6. Blocks of exp(cumsum) would overflow on sparse worlds.
    total = 0.0
    sums = [0.0]
    for weight, factor in zip(mass, damping, strict=False):
        total = (total + weight) * factor
        sums.append(total)
    return sums


def _exact_without_noise(values: FloatArray, weights: FloatArray) -> float:
    starts = np.flatnonzero(np.r_[True, np.diff(values) > 0])
    shared = np.add.reduceat(weights, starts)
    return float((np.maximum.reduceat(weights, starts) / shared).max())


def _worlds(worlds: ArrayLike, prior: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    values = np.asarray(worlds)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ColumnTypeError("worlds must be a one-dimensional array of numbers.")
    if len(values) == 0:
        raise ParameterError("worlds must hold at least one world.")
    values = values.astype(np.float64)
    if not (np.abs(values) <= LARGEST_WORLD).all():
        raise ParameterError(f"worlds must be finite and within {LARGEST_WORLD:g} of zero.")
    if prior is None:
        weights = np.full(len(values), 1 / len(values))
    else:
        weights = np.asarray(prior, dtype=np.float64)
        if weights.shape != values.shape or not (weights > 0).all() or not math.isclose(weights.sum(), 1, rel_tol=1e-9):
            raise ParameterError("prior must hold one probability above 0 for each world, and add up to 1.")
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]
