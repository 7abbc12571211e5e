"""Differential identifiability of given worlds (Lee & Clifton 2011, 2012)."""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdrisk._core.foreign import array_of, own_errors
from pdrisk._core.risks.risk import privacy_loss
from pdrisk._core.summary import FloatArray
from pdrisk.errors import ColumnTypeError, ParameterError

LARGEST_WORLD = 1e100  # so that distances are finite
SMALLEST_LOSS = 2.0**-60  # below the rounding of every risk


@own_errors
def exact_identifiability(worlds: ArrayLike, scale: float, prior: ArrayLike | None = None) -> float:
    """Exact identifiability: the largest posterior belief in one world, over every possible noisy output.

    Parameters
    ----------
    worlds : array_like of float, shape (m,)
        The exact answer in each world that the attacker thinks possible.
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
    inequality no output says more about i than ``r = f_i``. So the maximum is ``max_i p_i / sum_j p_j exp(-|f_i -
    f_j|/b)``, without a search over outputs. With the worlds sorted, the part of each sum to the left of a world is
    that of its left neighbour, with this neighbour added, damped by the gap between them; likewise to the right. So all
    sums take O(m). What underflows is missing from a sum, which makes the posterior larger, never smaller.

    Examples
    --------
    >>> round(exact_identifiability([-1.0, 1.0], scale=1.0), 4)
    0.8808
    """
    return _answers(_on_one_line(worlds), prior).exact(positive("scale", scale))


def exact_of_worlds(worlds: FloatArray, scale: float, prior: FloatArray | None = None) -> float:
    """`exact_identifiability` of worlds on one line, shape (m,), or on two, shape (2, m).

    On two lines the distance of two worlds is the larger one. They stand in the same order on both, and the place on
    the first less that on the second falls and then rises in this order. So for each world i there is a first one from
    which on the distance on the first line is the larger, while before it is that on the second; each of the two sums
    is a difference of sums over all that stand on one side: ``O(m log m)``.
    """
    return _answers(worlds, prior).exact(positive("scale", scale))


@own_errors
def tight_epsilon(
    worlds: ArrayLike, rho: float, sensitivity: float | None = None, prior: ArrayLike | None = None
) -> float:
    """Largest epsilon at which the exact identifiability of given worlds stays within ``rho``.

    Parameters
    ----------
    worlds : array_like of float, shape (m,)
        The exact answer in each world that the attacker thinks possible.
    rho : float
        The highest posterior wanted; below 1 and above the largest prior, 1/m by default.
    sensitivity : float, optional
        Sensitivity that the noise is scaled by, ``scale = sensitivity / eps``; the range of the worlds by default.
    prior : array_like of float, shape (m,), optional
        As in `exact_identifiability`.

    Returns
    -------
    float
        In nats. ``inf`` if so many worlds give equal answers that no output reaches ``rho``.

    Raises
    ------
    ParameterError
        If ``rho`` is not possible, or the sensitivity is not finite and above 0.

    Notes
    -----
    The exact identifiability grows with eps, from the largest prior to the largest share that one world has of the
    worlds with its answer. The result is the largest float that keeps the promise. The loose epsilon, for which every
    world is as far as the farthest, is a lower bound (Lee & Clifton 2012, section 4).

    Examples
    --------
    >>> round(tight_epsilon([1.0, 2.0, 3.0], rho=0.5), 4)
    0.9624
    """
    if array_of("rho", rho).ndim:
        raise ColumnTypeError("rho must be one number.")
    return tight_of_worlds(_on_one_line(worlds), rho, sensitivity, prior)


def tight_of_worlds(
    worlds: FloatArray, rho: float, sensitivity: float | None = None, prior: ArrayLike | None = None
) -> float:
    """`tight_epsilon` of worlds as `exact_of_worlds` takes them."""
    answers = _answers(worlds, prior)
    spread = answers.spread
    if sensitivity is None:
        sensitivity = spread
    elif spread > 0:
        sensitivity = positive("sensitivity", sensitivity)
    loss = float(privacy_loss(rho, answers.largest_prior)) if answers.worlds > 1 else _one_world(rho)
    if answers.exact_without_noise() <= rho:
        return math.inf
    if not sensitivity / spread > sys.float_info.min / SMALLEST_LOSS:
        raise ParameterError("sensitivity is too small beside the range of the worlds to compute with floats.")
    low = min(max(loss, SMALLEST_LOSS) * sensitivity / spread, sys.float_info.max)
    while not (lower := answers.excess(rho, sensitivity / low))[0]:
        low /= 2  # only rounding can put the loose epsilon above the tight one
        if low * spread < SMALLEST_LOSS**2 * sensitivity:
            raise ParameterError(f"a risk of {rho:g} cannot be told from the prior: ask for a risk above it.")
    high = 2 * low
    while (upper := answers.excess(rho, sensitivity / high))[0]:
        low, high, lower = high, 2 * high, upper
    return _last_within(lambda eps: answers.excess(rho, sensitivity / eps), low, high, lower[1], upper[1])


def _last_within(
    excess: Callable[[float], tuple[bool, float]], low: float, high: float, below: float, above: float
) -> float:
    """The largest float that is within, between one float that is and one that is not.

    Regula falsi with the Illinois rule (Dowell & Jarratt 1971): an end that stays twice counts half. Every fourth step
    halves the interval, which ends the search whatever the rounding of the last digits.
    """
    stayed = 0  # below 0: the low end has stayed, above 0: the high end
    for step in itertools.count(1):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        guess = low - below * ((high - low) / (above - below)) if above > below else low
        if step % 4 and low < guess < high:
            middle = guess
        within, amount = excess(middle)
        if within:
            low, below = middle, amount
            above /= 2 if stayed > 0 else 1
            stayed = 1
        else:
            high, above = middle, amount
            below /= 2 if stayed < 0 else 1
            stayed = -1
    return low


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Real):
        raise ColumnTypeError(f"{name} must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ParameterError(f"{name} must be finite and above 0, but is {number:g}.")
    return number


def _one_world(rho: float) -> float:
    raise ParameterError(f"a risk of {rho:g} is not possible: with one possible world the attacker is certain already.")


@dataclass(frozen=True, slots=True)
class _Answers:
    """The different answers of all worlds in rising order, shape (k,): worlds with equal answers are one place."""

    values: FloatArray  # shape (k,)
    # the weight of all worlds that give this answer; for equal priors their number, so that it is exact; shape
    # (k,)
    mass: FloatArray
    heaviest: FloatArray  # the weight of the likeliest of them; shape (k,)
    largest_prior: float
    worlds: int

    @property
    def spread(self) -> float:
        """Largest distance of two worlds."""
        return float(self.values[-1] - self.values[0])

    def exact(self, scale: float) -> float:
        """The largest posterior at a scale of the noise."""
        left, right = _both_sums(self.values, self.mass, scale)
        return float((self.heaviest / (left + (right - self.mass))).max())  # both sums hold the own mass

    def excess(self, rho: float, scale: float) -> tuple[bool, float]:
        """Whether it is within rho, and how far from it in log odds, which grow nearly evenly with 1/scale."""
        exact = self.exact(scale) if scale > 0 else self.exact_without_noise()
        odds = math.inf if exact >= 1 else math.log(exact) - math.log1p(-exact) - math.log(rho) + math.log1p(-rho)
        return exact <= rho, min(odds, 0.0) if exact <= rho else max(odds, 0.0)

    def exact_without_noise(self) -> float:
        """Limit of `exact` without noise: whoever knows the answer knows which worlds give it."""
        return float((self.heaviest / self.mass).max())


@dataclass(frozen=True, slots=True)
class _OnTwoLines(_Answers):
    """The same on two lines; ``values`` holds the places on the first. See `exact_of_worlds`."""

    second: FloatArray  # the places on the second line; shape (k,)

    @property
    def spread(self) -> float:
        return max(float(line[-1] - line[0]) for line in (self.values, self.second))

    def exact(self, scale: float) -> float:
        first = self._first()
        later = first > np.arange(len(self.values))
        upper = _sums_from(self.values, self.mass, scale, first, later)
        lower = _sums_from(-self.second[::-1], self.mass[::-1], scale, len(first) - first[::-1], ~later[::-1])[::-1]
        return float((self.heaviest / (upper + lower)).max())

    def _first(self) -> NDArray[np.intp]:
        """For each world the first one whose distance on the first line counts, shape (k,)."""
        lead = self.values - self.second
        lowest = int(np.argmin(lead))
        falling = np.searchsorted(-lead[: lowest + 1], -lead[lowest:])
        rising = lowest + np.searchsorted(lead[lowest:], lead[:lowest])
        return np.concatenate([rising, falling])


def _sums_from(
    values: FloatArray, mass: FloatArray, scale: float, first: NDArray[np.intp], later: NDArray[np.bool_]
) -> FloatArray:
    """``sum of mass_j exp(-|values_i - values_j| / scale)`` over j >= first_i; ``later`` where first_i > i."""
    left, right = _both_sums(values, mass, scale)
    at = np.minimum(first, len(values) - 1)
    before = np.maximum(first - 1, 0)
    with np.errstate(over="ignore"):  # infinitely far apart
        from_there = right[at] * np.exp(np.minimum(values - values[at], 0.0) / scale)
        left_out = left[before] * np.exp(np.minimum(values[before] - values, 0.0) / scale)
    from_there, left_out = np.where(first < len(values), from_there, 0.0), np.where(first > 0, left_out, 0.0)
    return np.where(later, from_there, left + (right - mass) - left_out)


def _both_sums(values: FloatArray, mass: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """`_damped_sums` from the left and from the right; both hold the own mass."""
    left = _damped_sums(values, mass, scale)
    return left, _damped_sums(-values[::-1], mass[::-1], scale)[::-1]


def _damped_sums(values: FloatArray, mass: FloatArray, scale: float) -> FloatArray:
    """``sum of mass_j exp(-(values_i - values_j) / scale)`` over j <= i, for rising values.

    A recursion from place to place, run in many runs of neighbours at once (a matrix with a run in each column), to
    which is added what comes in from the runs before. Each factor is the exponential of a true distance: factors
    that were multiplied up over a million places would be off by as many roundings.
    """
    places = len(values)
    length = math.isqrt(places - 1) + 1
    runs = -(-places // length)
    more = runs * length - places
    at = np.concatenate([values, np.full(more, values[-1])]).reshape(runs, length).T.copy()
    sums = np.concatenate([mass, np.zeros(more)]).reshape(runs, length).T.copy()
    with np.errstate(over="ignore"):  # infinitely far apart
        damping = np.exp((at[:-1] - at[1:]) / scale)
        reach = np.exp((at[-1, :-1] - at[:, 1:]) / scale)  # from the last place of the run before
    step = np.empty(runs)
    for row in range(1, length):
        np.multiply(sums[row - 1], damping[row - 1], out=step)
        sums[row] += step
    incoming: list[float] = []
    carried = 0.0
    for run_sum, factor in zip(sums[-1, :-1].tolist(), [0.0, *reach[-1].tolist()], strict=False):
        carried = run_sum + carried * factor
        incoming.append(carried)
    sums[:, 1:] += np.array(incoming) * reach
    return sums.T.ravel()[:places]


def _on_one_line(worlds: ArrayLike) -> FloatArray:
    values = array_of("worlds", worlds)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ColumnTypeError("worlds must be a one-dimensional array of numbers.")
    return values.astype(np.float64)


def _answers(values: FloatArray, prior: ArrayLike | None) -> _Answers:
    if values.shape[-1] == 0:
        raise ParameterError("worlds must hold at least one world.")
    if not (np.abs(values) <= LARGEST_WORLD).all():
        raise ParameterError(f"worlds must be finite and within {LARGEST_WORLD:g} of zero.")
    if prior is None:
        m = values.shape[-1]
        values = np.sort(values)  # of two lines each: on both the order is the same
        starts = _starts(values)
        mass = np.diff(starts, append=m).astype(np.float64)
        return _of_places(values[..., starts], mass, np.ones(len(starts)), 1 / m, m)
    try:
        weights = array_of("prior", prior).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        weights = None
    if weights is None:
        raise ColumnTypeError("prior must be an array of numbers.")
    shaped = weights.shape == values.shape[-1:]
    if not shaped or not (weights > 0).all() or not math.isclose(weights.sum(), 1, rel_tol=1e-9):
        raise ParameterError("prior must hold one probability above 0 for each world, and add up to 1.")
    order = np.argsort(np.atleast_2d(values).sum(axis=0))
    values, weights = values[..., order], weights[order]
    starts = _starts(values)
    mass, heaviest = np.add.reduceat(weights, starts), np.maximum.reduceat(weights, starts)
    return _of_places(values[..., starts], mass, heaviest, float(weights.max()), len(weights))


def _of_places(values: FloatArray, mass: FloatArray, heaviest: FloatArray, prior: float, worlds: int) -> _Answers:
    if values.ndim == 1:
        return _Answers(values, mass, heaviest, prior, worlds)
    return _OnTwoLines(values[0], mass, heaviest, prior, worlds, values[1])


def _starts(values: FloatArray) -> NDArray[np.intp]:
    """Where a new value begins among sorted ones, on one line or on two."""
    rises = (np.diff(np.atleast_2d(values)) > 0).any(axis=0)
    return np.flatnonzero(np.concatenate([[True], rises]))
