"""Likelihood of what a mechanism drew, in each of several worlds: all that an informed attacker can use."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.summary import FloatArray, IntArray, Summary
from pdrisk._mechanisms import Drawn, Mechanism
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.exponential.choice import Choice
from pdrisk._mechanisms.exponential.interval import ExponentialInterval
from pdrisk._mechanisms.noise.entropy import Words
from pdrisk._mechanisms.two_stage import TwoStage
from pdrisk._mechanisms.weighted_exponential import WeightedExponential

CENTRE = 2  # the row of a draw in two stages that tells the centre of the second one


class Unknown(Exception):  # noqa: N818 - no error: an attacker learns from examples instead
    """The likelihood has no form that can be computed."""


def log_likelihoods(mechanism: Mechanism, summary: Summary, drawn: Drawn) -> FloatArray:
    """Log-probability of each draw in each of G worlds, shape (G, draws), up to a term that is the same in all worlds.

    A mechanism that adds noise is asked to draw once more, from a source that answers with what was drawn: so it says
    itself what stood under the noise in each world, and which scale the noise had, also where a later stage depends on
    what came out of an earlier one. Discrete Laplace noise of scale b then has the log-probability ``-|k| / b``.
    """
    if isinstance(mechanism, WeightedExponential):  # whose cells hold the records that weights stand for
        mechanism = mechanism.plain
    if isinstance(mechanism, Exponential):
        return _of_choice(mechanism, summary, np.atleast_2d(drawn))
    rows = np.atleast_2d(drawn)
    if type(mechanism) is not TwoStage:
        return np.stack([_of_noise(mechanism, summary, at, rows, rows) for at in range(len(summary.n))])
    likelihoods = np.empty((len(summary.n), rows.shape[-1]))
    for centre in np.unique(rows[CENTRE]):  # by which the scale of the second stage is decided
        same_centre = rows[CENTRE] == centre
        noisy = np.delete(rows[:, same_centre], CENTRE, axis=0)
        for world in range(len(likelihoods)):
            likelihoods[world, same_centre] = _of_noise(mechanism, summary, world, rows[:, same_centre], noisy)
    return likelihoods


def _of_noise(mechanism: Mechanism, summary: Summary, world: int, drawn: Drawn, noisy: Drawn) -> FloatArray:
    """Log-probability of each draw in one world, shape (draws,); ``noisy`` are the rows of it that noise is in."""
    world_summary = summary.of_rows(np.full(drawn.shape[-1], world))
    if noisy.dtype.kind == "f":
        unit = mechanism.draw(world_summary, lambda exact, *_: np.ones_like(exact))
        noisy = np.rint(noisy / unit).astype(np.int64)
    source = _Replayed(noisy)
    if not np.array_equal(np.atleast_2d(mechanism.draw(world_summary, source, _no_bits)), drawn):
        raise Unknown
    return source.likelihood


class _Replayed:
    """Source of noise that returns what was drawn before, and adds up how likely that is."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._row = 0
        self.likelihood = np.zeros(drawn.shape[-1])

    def __call__(self, exact: IntArray, change: int, eps: Fraction) -> IntArray:
        rows = np.atleast_2d(exact)
        seen = self._drawn[self._row : self._row + len(rows)]
        if rows.shape != seen.shape:
            raise Unknown
        self._row += len(rows)
        self.likelihood -= np.abs(seen - rows).sum(axis=0) * (float(eps) / change)
        return seen.reshape(exact.shape)


def _no_bits(_: int) -> Words:
    raise Unknown


def _of_choice(mechanism: Exponential, summary: Summary, drawn: Drawn) -> FloatArray:
    cells = mechanism._cells(summary)
    if isinstance(mechanism, ExponentialInterval):
        return mechanism.joint.log_shares(cells, drawn)
    return log_shares(mechanism._choice, cells, drawn[0])


def log_shares(choice: Choice, cells: Cells, points: IntArray) -> FloatArray:
    """Log-probability of points in each group, shape (G, draws)."""
    items, weights = choice.losses(cells).items, choice.weights
    shares = weights.shares[choice.index(items)]
    own_places = choice.measure.before(points + 1) - choice.measure.before(points)
    logarithms = np.empty((len(items.n), len(points)))
    for group in range(len(items.n)):
        span = slice(int(items.first[group]), int(items.first[group + 1]))
        start, width, share = items.start[span], items.width[span], shares[span]
        whole = float(share @ items.places[span])
        start, share = start[width > 0], share[width > 0]
        held = share[np.searchsorted(start, points, side="right") - 1] * own_places
        logarithms[group] = np.log(held) - np.log(whole)
    return logarithms
