"""Reconstruction attack: a whole column from the counts of many overlapping groups (Dinur & Nissim 2003)."""

from __future__ import annotations

import numpy as np

from pdrisk._core.foreign import own_errors
from pdrisk._core.risks.risk import posterior
from pdrisk._model.arguments import epsilon
from pdrisk._model.declared.aliases import Eps
from pdrisk.attack._arguments import checked_number
from pdrisk.attack._outcome import LEVEL, Outcomes, of_guesses
from pdrisk.attack._publications import noisy_counts
from pdrisk.errors import ParameterError

MOST_PEOPLE = 2_000
MOST_NUMBERS = 20_000_000


@own_errors
def reconstruction(
    *, people: int = 60, queries: int = 240, eps: Eps = 1, base: int = 5, trials: int = 1_000, level: float = LEVEL
) -> Outcomes:
    """Reconstruction attack: everybody's secret yes or no, by least squares from the counts of a small census.

    A census publishes how many say yes in each of many groups, whose members are known. The attacker solves for the
    answers that fit all counts best, and rounds them.

    Parameters
    ----------
    people : int
        Number of people, 2 to 2,000.
    queries : int
        Number of groups; each holds every person with probability 1/2.
    eps : float
        Privacy loss of all noisy counts together, in nats; each gets an equal share.
    base : int
        Base to whose multiples the rounded census rounds.
    trials : int
        Number of censuses of the same groups, each with other secrets, which coins decide. One person of each census
        counts as an attack, so that attacks do not depend on each other; the ``share of all`` people is in the details.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    Outcomes
        ``"exact"``, ``"rounded"`` and ``"noisy"``; only the last claims anything, the worst case of eps.

    Notes
    -----
    If errors are well below ``sqrt(people)``, about as many random groups as people reveal nearly everybody (Dinur &
    Nissim, PODS 2003). Noise that protects so many counts is larger than that.

    Examples
    --------
    >>> found = reconstruction(people=40, queries=160, trials=400)
    >>> found["exact"].achieved, found["noisy"].verdict
    (1.0, 'kept')
    """
    n, many = checked_number("people", people, least=2), checked_number("queries", queries)
    size, to = checked_number("trials", trials, least=100), checked_number("base", base)
    if n > MOST_PEOPLE or many * max(size, n) > MOST_NUMBERS:
        raise ParameterError(
            f"at most {MOST_PEOPLE:,} people and {MOST_NUMBERS:,} counts in all can be simulated: take fewer people, "
            "queries or trials."
        )
    share = epsilon(eps) / many
    generator = np.random.default_rng()
    groups = (generator.random((many, n)) < 0.5).astype(np.int64)
    secrets = (generator.random((n, size)) < 0.5).astype(np.int64)
    counts = groups @ secrets
    solve = np.linalg.pinv(groups)
    target = generator.integers(n, size=size)
    published = {
        "exact": (counts.astype(np.float64), None),
        "rounded": (np.floor(counts / to + 0.5) * to, None),
        "noisy": (noisy_counts(counts, share).astype(np.float64), float(posterior(float(share) * many))),
    }
    how = {
        "exact": "as they are",
        "rounded": f"to multiples of {to}",
        "noisy": f"geometric, eps {float(share):.3g} each",
    }
    outcomes = []
    for name, (numbers, claimed) in published.items():
        # Least squares of the distances from 1/2: with fewer groups than people, somebody in none stays at 1/2.
        fitted = solve @ (numbers - groups.sum(axis=1, keepdims=True) / 2)
        hits = (fitted > 0) == (secrets == 1)
        right = int(hits[target, np.arange(size)].sum())
        details = {"published": how[name], "share of all": float(hits.mean())}
        question = f"what did somebody among {n:,} say, given the counts of {many:,} groups?"
        outcomes.append(
            of_guesses(name, question, right, size, claimed=claimed, chance=0.5, level=level, details=details)
        )
    return Outcomes(outcomes)
