"""Attackers who know no formula: they learn from examples which event tells two worlds apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

CUTS: Final = 200  # values that are tried as thresholds, for each number of an answer
ATOMS: Final = 50  # the most frequent values, which are tried as such
FEWEST: Final = 5.0  # examples added to a rare event, so that chance does not choose it


@dataclass(frozen=True, slots=True)
class Event:
    """Event by which two worlds are told apart.

    Attributes
    ----------
    weights : ndarray of float64, shape (k,)
        Of the numbers of an answer.
    low, high : float
        The event is that the weighted sum lies within.
    of_first : bool
        Whether it speaks for the first world.
    """

    weights: FloatArray
    low: float
    high: float
    of_first: bool

    def happens(self, answers: Any) -> NDArray[np.bool_]:
        """Whether the event happens, for each of many answers, shape (draws,)."""
        value = _columns(answers) @ self.weights
        return (value >= self.low) & (value <= self.high)


def learned_event(first: Any, second: Any, *, by_ratio: bool) -> Event:
    """Event that tells two worlds apart best, learned from examples of both.

    ``first, second``: shape (draws,)
    ``by_ratio``: best is where the probabilities have the largest ratio, as far as so few examples tell; else where
        they have the largest difference.
    """
    both = _columns(first), _columns(second)
    tried: list[tuple[float, int, Event]] = []
    for weights in _directions(*both):
        one, other = (np.sort(answers @ weights) for answers in both)
        for low, high in _intervals(np.concatenate([one, other])):
            shares = [
                (np.searchsorted(sums, high, "right") - np.searchsorted(sums, low, "left")) / len(sums)
                for sums in (one, other)
            ]
            for of_first in (True, False):
                likely, rare = shares if of_first else shares[::-1]
                gain = _log_ratio(likely, rare, len(one)) if by_ratio else likely - rare
                at = int(np.argmax(gain))
                tried.append((float(gain[at]), len(tried), Event(weights, float(low[at]), float(high[at]), of_first)))
    return max(tried)[-1]


def _columns(answers: Any) -> FloatArray:
    """Numbers, 0 where one is not finite; and for each which of NaN and the infinities it is, if one of them."""
    numbers = np.asarray(answers, dtype=np.float64)
    numbers = numbers.reshape(len(numbers), -1)
    odd = np.isnan(numbers) * 1.0 + (numbers == np.inf) * 2.0 + (numbers == -np.inf) * 3.0
    return np.concatenate([np.where(odd == 0, numbers, 0.0), odd], axis=1)


def _directions(first: FloatArray, second: FloatArray) -> list[FloatArray]:
    """Each number that varies alone, and the sum of all that tells most if all are normal variables (Fisher 1936)."""
    numbers = first.shape[1]
    tells = np.ptp(np.concatenate([first, second]), axis=0) > 0
    directions = [direction for direction, varies in zip(np.eye(numbers), tells, strict=True) if varies] or [
        np.eye(numbers)[0]
    ]
    if len(directions) > 1:
        spread = np.cov(np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)]).T)
        directions.append(np.linalg.pinv(spread) @ (second.mean(axis=0) - first.mean(axis=0)))
    return directions


def _intervals(values: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Values from a threshold on, values up to one, and single values that are frequent."""
    values = np.sort(values)
    cuts = np.unique(values[np.linspace(0, len(values) - 1, CUTS).astype(int)])
    least, most = np.full(cuts.shape, -np.inf), np.full(cuts.shape, np.inf)
    distinct, times = np.unique(values, return_counts=True)
    atoms = distinct[np.argsort(-times, kind="stable")[:ATOMS]]
    return [(cuts, most), (least, cuts), (atoms, atoms)]


def _log_ratio(likely: FloatArray, rare: FloatArray, examples: int) -> FloatArray:
    """Log-ratio of two shares in so many examples, less what chance may have added."""
    more, less = likely * examples, rare * examples
    off = 3.3 * np.sqrt(1 / np.maximum(more, 1) + 1 / np.maximum(less, 1))
    return np.asarray(np.log((more + FEWEST / 10) / (less + FEWEST)) - off)
