"""Possible worlds of an attacker who does not know everybody, and the answer in each."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdrisk._core.foreign import array_of, own_errors
from pdrisk._core.risks.worlds import LARGEST_WORLD
from pdrisk._core.summary import FloatArray, Summary, window_start
from pdrisk._core.universe import Universe
from pdrisk._ledger import check_curator
from pdrisk._model.arguments import of_numbers
from pdrisk._model.arguments import statistic as statistic_named
from pdrisk._model.arguments import universe as declared_universe
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.errors import ColumnTypeError, ParameterError


@own_errors
def worlds_without_one(
    records: ArrayLike, statistic: object = "mean", *, bounds: tuple[float, float] | None = None
) -> FloatArray:
    """Possible worlds without one person: the answer of each world in which one of these people is missing.

    Parameters
    ----------
    records : array_like of float, shape (n,)
        One number for each person, none missing.
    statistic : str or (str, dict)
        As in ``"mean"``, ``("quantile", {"q": 0.9})``.
    bounds : (float, float), optional
        The universe; records outside are clamped. Needed only for a single record, without which nobody is left.

    Returns
    -------
    ndarray of float64, shape (n,)
        In the order of the records.

    Notes
    -----
    Lee & Clifton 2011, section 3. One pass finds what all worlds have in common, one what each world lacks.

    Examples
    --------
    >>> worlds_without_one([1, 2, 3, 10]).tolist()
    [5.0, 4.666666666666667, 4.333333333333333, 2.0]
    """
    check_curator(None, "worlds_without_one()")
    chosen = of_numbers(statistic_named(statistic))
    people = numbers_of("records", records)
    if len(people) == 0:
        return people
    if bounds is None and len(people) == 1 and chosen.bounded:
        raise ParameterError(
            "there is one record; without it none is left, and the answer then depends on bounds: pass bounds=(lo, hi)."
        )
    universe = _around(people) if bounds is None else declared_universe(bounds)
    people = np.clip(people, universe.lo, universe.hi)
    return chosen.leave_one_out(people, summary_of_one(people, universe, chosen.needs), universe)


@own_errors
def worlds_with(
    known: ArrayLike,
    universe: ArrayLike,
    statistic: object = "mean",
    *,
    unknown: int = 1,
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Possible worlds with one more person: the answer of each world made of the known people and one other.

    Parameters
    ----------
    known : array_like of float, shape (n,)
        One number for each person whom the attacker knows to be in the data. All of them are in the universe.
    universe : array_like of float, shape (N,)
        One number for each person who could be in the data; equal numbers are different people.
    statistic : str or (str, dict)
        As in ``"mean"``, ``("quantile", {"q": 0.9})``.
    unknown : int
        Number of people in the data whom the attacker does not know: one, as in the papers. With two or more, a world
        would be a set of people, and the belief in one person would be the sum over all sets with this person. This sum
        can be near 1 though no world is likely. So the belief in a world, which `of_worlds` judges, would understate
        it.
    bounds : (float, float), optional
        Numbers outside are clamped.

    Returns
    -------
    ndarray of float64, shape (m,)
        m = N - n, in the order of the universe without the known people (of equal numbers the first are known).

    Raises
    ------
    ParameterError
        If a known person is not in the universe, if it holds nobody else, or if unknown is not 1.

    Notes
    -----
    Lee & Clifton 2012, sections 3.5 and 4. The known records are read once: each world's statistic is made of their
    sum, sum of squares, ends and middle ranks.

    Examples
    --------
    >>> worlds_with([1, 3], range(1, 11), "median").tolist()
    [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    """
    chosen = of_numbers(statistic_named(statistic))
    people, everybody = numbers_of("known", known), numbers_of("universe", universe)
    if isinstance(unknown, bool | np.bool_) or not isinstance(unknown, int | np.integer):
        raise ColumnTypeError("unknown must be a whole number of people.")
    if unknown != 1:
        raise ParameterError(
            "unknown must be 1: with several unknown people a world is a set of them, and the belief in a world "
            "understates the belief in a person, which adds up over the worlds that hold this person."
        )
    others = _others(people, everybody)
    if not len(others):
        raise ParameterError("the universe must hold at least one person beside the known ones.")
    interval = _around(everybody) if bounds is None else declared_universe(bounds)
    added = np.clip(others, interval.lo, interval.hi)
    people = np.sort(np.clip(people, interval.lo, interval.hi))
    return chosen.value(_summaries_with(people, added, interval, chosen.needs.windows), interval)


def numbers_of(name: str, values: ArrayLike) -> FloatArray:
    """A one-dimensional array of finite floats, or the error with its name."""
    array = array_of(name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iuf" and array.size):
        raise ColumnTypeError(f"{name} must be a one-dimensional array of numbers.")
    numbers = array.astype(np.float64)
    if not (np.abs(numbers) <= LARGEST_WORLD / 8).all():
        raise ParameterError(f"{name} must hold finite numbers within {LARGEST_WORLD / 8:g} of zero, none missing.")
    return numbers


def _around(people: FloatArray) -> Universe:
    """An interval with room around all of them; no answer about somebody depends on how much."""
    room = 1 + float(np.abs(people).max(initial=0))
    return Universe(-2 * room, 2 * room)


def _others(known: FloatArray, everybody: FloatArray) -> FloatArray:
    """People of the universe beside the known ones; of equal numbers the first are known."""
    order = np.argsort(everybody, kind="stable")
    ordered = everybody[order]
    values, times = np.unique(known, return_counts=True)
    first = np.searchsorted(ordered, values)
    if (np.searchsorted(ordered, values, side="right") - first < times).any():
        raise ParameterError(
            "known holds people who are not in the universe: the universe must list everybody who could be in the "
            "data, the known people too."
        )
    gone = np.zeros(len(everybody) + 1, dtype=np.int64)  # where runs of known ones begin and end
    np.add.at(gone, first, 1)
    np.add.at(gone, first + times, -1)
    return everybody[np.sort(order[gone[:-1].cumsum() == 0])]


def _summaries_with(known: FloatArray, added: FloatArray, universe: Universe, windows: frozenset[float]) -> Summary:
    """The summary of the known records, which are sorted, with each of the added ones in turn, shape (m,)."""
    m, n = len(added), len(known) + 1
    total = math.fsum(known)
    centre = total / max(len(known), 1)
    squares = math.fsum((known - centre) ** 2) + (added - centre) ** 2 * (len(known) / n)  # Chan, Golub & LeVeque 1983
    padded = np.concatenate([np.full(5, universe.lo), known, np.full(5, universe.hi)])

    def ranks(start: int, wanted: int) -> FloatArray:
        """The order statistics from rank ``start`` (counted from 1) on, shape (wanted, m)."""
        ordered = padded[start + 3 : start + 4 + wanted, None]
        return np.minimum(np.maximum(added, ordered[:-1]), ordered[1:])  # pushes what is above it one rank up

    counts = np.full(m, n, dtype=np.int64)
    return Summary(
        n=counts,
        total=total + added,
        lowest=ranks(1, 2),
        highest=ranks(n - 1, 2)[::-1],
        squares=squares,
        windows={q: ranks(int(window_start(counts[:1], q)[0]), 4) for q in windows},
    )
