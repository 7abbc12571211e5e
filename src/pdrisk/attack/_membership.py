"""Membership attack: one person against the means of many attributes (Homer et al. 2008)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdrisk._core.foreign import own_errors
from pdrisk._core.lattice import PLACES
from pdrisk._core.risks.risk import posterior
from pdrisk._core.statistics import Mean
from pdrisk._core.summary import Summary
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.contract.draws import drawn_once
from pdrisk._model.arguments import epsilon
from pdrisk._model.declared.aliases import Eps
from pdrisk._model.query import UNIT
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._outcome import LEVEL, Outcomes, of_guesses
from pdrisk.errors import ParameterError

MOST_NUMBERS = 20_000_000


@own_errors
def membership(
    *, people: int = 100, attributes: int = 1_000, eps: Eps = 1, trials: int = 1_000, level: float = LEVEL
) -> Outcomes:
    """Membership attack: is somebody among the people whose means of many attributes were published?

    Each attribute is a yes or no, such as a genetic marker, whose share in the population is known. The attacker has
    the target's own attributes and adds up how far they lean towards the published means rather than the population's.

    Parameters
    ----------
    people : int
        Number of people whose means are published.
    attributes : int
        Number of means.
    eps : float
        Privacy loss of all noisy means together, in nats; each gets an equal share.
    trials : int
        Number of studies, each with other people; in every second one the target takes part.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    Outcomes
        ``"exact"`` and ``"noisy"``; only the second claims anything, the worst case of eps.

    Notes
    -----
    With x the target's attributes, p the population's shares and m the means, ``sum((x - p) (m - p))`` has the mean 0
    if the target is none of the n people, and ``sum(p (1 - p)) / n`` if the target is one of them. The attacker's
    threshold is half of that (Homer et al. 2008; Dwork et al. 2015). So exact means reveal members once there are more
    attributes than people.

    Examples
    --------
    >>> found = membership(people=50, attributes=500, eps=1, trials=400)
    >>> found["exact"].achieved > 0.9, found["noisy"].verdict
    (True, 'kept')
    """
    n, many = checked_number("people", people, least=2), checked_number("attributes", attributes)
    size = 2 * (checked_number("trials", trials, least=100) // 2)
    if many * size > MOST_NUMBERS:
        raise ParameterError(f"attributes times trials is {many * size:,}: at most {MOST_NUMBERS:,} can be simulated.")
    share = epsilon(eps) / many
    generator = np.random.default_rng()
    population = generator.uniform(0.05, 0.95, (size, many))
    target = generator.random((size, many)) < population
    member = np.arange(size) % 2 == 1
    yes = generator.binomial(n - 1, population)
    yes += np.where(member[:, np.newaxis], target, generator.random((size, many)) < population)
    half = (population * (1 - population)).sum(axis=1) / (2 * n)
    outcomes = []
    for name, means, claimed in (
        ("exact", yes / n, None),
        ("noisy", _noisy_means(yes, n, share), float(posterior(float(share) * many))),
    ):
        evidence = ((target - population) * (means - population)).sum(axis=1)
        right = int(((evidence > half) == member).sum())
        question = f"is somebody among the {n:,} people whose {many:,} means were published?"
        details = {"published": "as they are" if claimed is None else f"two_sums, eps {float(share):.3g} each"}
        outcomes.append(
            of_guesses(name, question, right, size, claimed=claimed, chance=0.5, level=level, details=details)
        )
    return Outcomes(outcomes)


def _noisy_means(yes: Any, n: int, eps: Any) -> Any:
    """Noisy means of n records each, of which ``yes`` are 1 and the others 0."""
    places = (yes * PLACES).astype(np.int64).ravel()
    mechanism = calibrated("two_sums", Mean(), UNIT, eps)
    drawn = drawn_once(mechanism, Summary(np.full(places.shape, n), places=places))
    return mechanism.value(drawn).reshape(yes.shape)
