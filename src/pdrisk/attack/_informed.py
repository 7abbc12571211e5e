"""Informed attackers: they know everything but one fact, and how the answer is drawn."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pdrisk._core.foreign import own_errors, shown
from pdrisk._core.pairs import OfTwoColumns
from pdrisk._core.risks.risk import belief, posterior
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.surveys.weighted import Weighted
from pdrisk._ledger import check_curator
from pdrisk._mechanisms import Drawn, Mechanism
from pdrisk._model.declared.aliases import Bounds, Eps
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._learned import learned_event
from pdrisk.attack._likelihood import Unknown, log_likelihoods
from pdrisk.attack._outcome import LEVEL, Outcome, of_guesses
from pdrisk.attack._worlds import draws_of, mechanism_of, missing, present, records_of, summary_of
from pdrisk.errors import ParameterError

PILOT: Final = 1000  # draws by which the worst pair of neighbours is looked for
ROUNDING: Final = 1e-9  # nats
FEW: Final = 3  # records of candidate worlds
SEVERAL: Final = 40
MOST_WORLDS: Final = 1000


@own_errors
def two_worlds(
    asked: Any,
    records: Any = None,
    person: int | None = None,
    *,
    eps: Eps | None = None,
    bounds: Bounds | None = None,
    mechanism: str = "auto",
    step: int | None = None,
    interval: bool = False,
    n_at_least: int | None = None,
    draws: int = 20_000,
    level: float = LEVEL,
) -> Outcome:
    """Two-worlds attack: an informed attacker guesses whether one person is in the data, against ``risk.success``.

    The attacker knows all other records, the record in question and how noise is drawn. Before the answer, a coin
    decides whether the person is in the data. The attacker compares how likely the answer is in both worlds, and
    guesses the likelier one.

    Parameters
    ----------
    asked : Release, str, (str, dict) or list of these
        A release, or a statistic as in ``agg``; a list for several statistics that come from one release.
    records : array_like of float, shape (n,), optional
        The records that the answer is about; for two columns shape (n, 2). Curator only. Without them the most telling
        pair of neighbours is searched for; then the outcome depends on no data.
    person : int, optional
        Position of the person's record in ``records``; by default the most exposed one.
    eps, bounds, mechanism, step, interval, n_at_least
        As for every statistic, if ``asked`` is not a release.
    draws : int
        Number of real draws in each of the two worlds.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Outcome
        ``claimed`` is ``risk.success``. Details: ``worst_case``; the ``highest belief`` that any draw led to; the share
        of draws ``at the worst case``; and the ``mean belief``, which equals the share of right guesses if beliefs are
        calibrated. They are NaN for a mechanism whose likelihood is not known: there the attacker learns from examples.

    Raises
    ------
    ParameterError
        If the question cannot be asked, or there are too few draws.

    Notes
    -----
    No attacker is right more often than ``(1 + total variation) / 2``, and guessing the likelier world reaches it
    (Neyman & Pearson 1933). So a correct claim is never broken, and that of the worst pair is reached.

    Examples
    --------
    >>> outcome = two_worlds("mean", eps=1, bounds=(1, 675))
    >>> outcome.verdict, round(outcome.claimed, 4), 0.67 < outcome.achieved < 0.73
    ('reached', 0.6967, True)
    """
    calibrated = mechanism_of(
        asked, eps=eps, bounds=bounds, mechanism=mechanism, step=step, interval=interval, n_at_least=n_at_least
    )
    size = checked_number("draws", draws, least=100)
    if records is None:
        if person is not None:
            raise ParameterError("person= is a position in records=: pass both.")
        worlds = worst_pair(calibrated, alone=True)
    else:
        check_curator(None, "attack.two_worlds()")
        worlds = _pair_of(calibrated, records_of(calibrated, records), person)
    summary = summary_of(calibrated, worlds)
    return _told_apart(calibrated, summary, size, level)


def _told_apart(mechanism: Mechanism, summary: Summary, draws: int, level: float) -> Outcome:
    drawn = draws_of(mechanism, summary, draws)
    details: dict[str, Any] = {"worst_case": float(posterior(float(mechanism.eps)))}
    try:
        odds = _log_odds(mechanism, summary, drawn)
    except Unknown:
        right, trials = _by_example(drawn, draws)
        details |= dict.fromkeys(("highest belief", "at the worst case", "mean belief"), math.nan)
    else:
        truth = np.repeat([False, True], draws)
        toss = np.random.default_rng().random(2 * draws) < 0.5
        right, trials = int((np.where(odds == 0, toss, odds > 0) == truth).sum()), 2 * draws
        held = belief(np.abs(odds), 0.5)
        details["highest belief"] = float(held.max())
        details["at the worst case"] = float((held >= details["worst_case"] - ROUNDING).mean())
        details["mean belief"] = float(held.mean())
    details["mechanism"] = mechanism.name
    return of_guesses(
        "two worlds", "is this person in the data?", right, trials, claimed=mechanism.success, chance=0.5,
        level=level, details=details,
    )  # fmt: skip


def _log_odds(mechanism: Mechanism, summary: Summary, drawn: Drawn) -> FloatArray:
    likely = log_likelihoods(mechanism, summary, drawn)
    odds: FloatArray = likely[1] - likely[0]
    odds[np.abs(odds) < ROUNDING] = 0
    return odds


def _by_example(drawn: Drawn, draws: int) -> tuple[int, int]:
    """Success of an attacker who learns from one half of the draws, on the other half."""
    answers = np.atleast_2d(drawn).astype(np.float64).T.reshape(2, draws, -1)
    half = draws // 2
    event = learned_event(answers[0, :half], answers[1, :half], by_ratio=False)
    right = 0
    for world in (0, 1):
        happens = event.happens(answers[world, half:])
        right += int((happens == (event.of_first == (world == 0))).sum())
    return right, 2 * (draws - half)


def worst_pair(mechanism: Mechanism, *, alone: bool) -> list[FloatArray]:
    """Neighbours, among small worlds, that a first look tells apart best; ``alone``: also in worlds of few people."""
    pairs = _candidates(mechanism, alone=alone)
    summary = summary_of(mechanism, [world for pair in pairs for world in pair])
    drawn = draws_of(mechanism, summary, PILOT)
    successes = []
    for at in range(len(pairs)):
        pair_draws = drawn[..., 2 * at * PILOT : 2 * (at + 1) * PILOT]
        pair = summary_of(mechanism, pairs[at])
        try:
            odds = _log_odds(mechanism, pair, pair_draws)
        except Unknown:
            successes.append(_by_example(pair_draws, PILOT)[0] / PILOT)
        else:
            successes.append(float(belief(np.abs(odds), 0.5).mean()))
    return pairs[int(np.argmax(successes))]


def _candidates(mechanism: Mechanism, *, alone: bool) -> list[list[FloatArray]]:
    """Neighbouring worlds in which one record may decide much: nobody else, few others, and others at both bounds."""
    universe, statistic = mechanism.universe, mechanism.statistic
    low, high, middle = universe.lo, universe.hi, universe.mid
    pair = isinstance(statistic, OfTwoColumns)

    def world(*values: float) -> FloatArray:
        one = np.array(values, dtype=np.float64)
        if not pair:
            return one
        other = mechanism.universe.other  # type: ignore[attr-defined]
        if isinstance(statistic, Weighted):
            return np.stack([one, np.full(one.shape, other.hi)], axis=1)
        return np.stack([one, other.lo + (one - low) / universe.width * other.width], axis=1)

    if statistic.replaces:
        others = [low] * (statistic.size - 1)  # type: ignore[attr-defined]
        return [[world(*others, low), world(*others, high)]]
    bases: list[tuple[float, ...]] = [(low,) * SEVERAL + (high,) * SEVERAL, (middle,) * SEVERAL]
    if alone:
        bases += [(), (low,), (high,), (low, high), (low,) * FEW, (high,) * FEW]
    return [[world(*base), world(*base, value)] for base in bases for value in (low, middle, high)]


def _pair_of(mechanism: Mechanism, records: FloatArray, person: int | None) -> list[FloatArray]:
    """The records without one of them, and with it."""
    known = np.flatnonzero(~missing(records))
    if not len(known):
        raise ParameterError("records= is empty, or all are missing: there is nobody to look for.")
    if person is None:
        held = present(records)
        if mechanism.is_even or isinstance(mechanism.statistic, OfTwoColumns):
            at = np.argmax(np.abs(held.reshape(len(held), -1)[:, 0] - mechanism.universe.mid))
        else:
            inside = np.clip(held, mechanism.universe.lo, mechanism.universe.hi)
            at = np.argmax(mechanism.loss_of_records(inside, summary_of(mechanism, [held])))
        person = int(known[at])
    if isinstance(person, bool) or not isinstance(person, int | np.integer) or not 0 <= person < len(records):
        raise ParameterError(f"person is a position from 0 to {len(records) - 1:,} among records, not {shown(person)}.")
    if person not in known:
        raise ParameterError("that person's record is missing: the answer is not about them.")
    if mechanism.statistic.replaces:
        end = max((mechanism.universe.lo, mechanism.universe.hi), key=lambda bound: abs(bound - records[person]))
        other = records.copy()
        other[person] = end
        return [other, records]
    return [np.delete(records, person, axis=0), records]


@own_errors
def many_worlds(
    asked: Any,
    records: Any,
    *,
    eps: Eps | None = None,
    bounds: Bounds | None = None,
    mechanism: str = "auto",
    step: int | None = None,
    interval: bool = False,
    n_at_least: int | None = None,
    draws: int = 2_000,
    level: float = LEVEL,
) -> Outcome:
    """Many-worlds attack: who of n people is missing, against ``identifiability`` (Lee & Clifton 2012). Curator only.

    The attacker knows all n records. One of them was left out before the answer was drawn, each with the same
    probability. The attacker guesses the person without whom the answer is likeliest.

    Parameters
    ----------
    asked, eps, bounds, mechanism, step, interval, n_at_least, level
        As for `two_worlds`.
    records : array_like of float, shape (n,)
        2 to 1,000 records.
    draws : int
        Number of real draws in each of the n worlds.

    Returns
    -------
    Outcome
        ``claimed`` is the highest belief that the attacker may reach, `identifiability`; the share of right guesses is
        lower. Details: the ``highest belief`` that any draw led to, and the ``mean belief``, which equals the share of
        right guesses if beliefs are calibrated.

    Raises
    ------
    ParameterError
        For a mechanism whose likelihood is not known, and if the number of records is public, so that none can be
        missing.

    Examples
    --------
    >>> outcome = many_worlds("count", [1, 2, 3, 4], eps=1)
    >>> outcome.claimed, outcome.details["highest belief"]      # a count does not tell them apart
    (0.25, 0.25)
    """
    calibrated = mechanism_of(
        asked, eps=eps, bounds=bounds, mechanism=mechanism, step=step, interval=interval, n_at_least=n_at_least
    )
    check_curator(None, "attack.many_worlds()")
    size, held = checked_number("draws", draws, least=10), present(records_of(calibrated, records))
    if calibrated.statistic.replaces:
        raise ParameterError("the number of records is public, so nobody is missing: attack this answer by two_worlds.")
    if not 2 <= len(held) <= MOST_WORLDS:
        raise ParameterError(f"many_worlds is about 2 to {MOST_WORLDS:,} records, not {len(held):,}.")
    n = len(held)
    summary = summary_of(calibrated, [np.delete(held, at, axis=0) for at in range(n)])
    drawn = draws_of(calibrated, summary, size)
    try:
        likely = log_likelihoods(calibrated, summary, drawn)
    except Unknown:
        raise ParameterError(
            f"the likelihood of {calibrated.name} is not known in closed form: attack this answer by two_worlds."
        ) from None
    held_beliefs = np.exp(likely - likely.max(axis=0))
    held_beliefs /= held_beliefs.sum(axis=0)
    best = held_beliefs.max(axis=0)
    tied = held_beliefs >= best - ROUNDING
    guess = np.argmax(tied * np.random.default_rng().random(tied.shape), axis=0)
    right = int((guess == np.repeat(np.arange(n), size)).sum())
    claimed = float(belief(calibrated.loss_between_worlds(summary_of(calibrated, [held]))[0], 1 / n))
    details = {"highest belief": float(best.max()), "mean belief": float(best.mean()), "mechanism": calibrated.name}
    return of_guesses(
        "many worlds", f"who of these {n} people is missing?", right, n * size, claimed=claimed, chance=1 / n,
        level=level, details=details,
    )  # fmt: skip
