"""Mechanism: how a statistic is answered with noise, and what the noisy answer tells about a person."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.risks.gaussian_dp import mu_of_pure, root, squared, success_of
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Needs, Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk.errors import ParameterError

SMALLEST_EPS = Fraction(1, 10**12)
ONE = Fraction(1)
UNLIKELY = 0.01  # how often `widest_noise95` is exceeded

Drawn = NDArray[Any]
"""What was drawn for G groups, float64 or int64, shape (G,) or (k, G): all that a ledger needs to remember."""


@dataclass(frozen=True, slots=True)
class Mechanism(ABC):
    """A mechanism calibrated to one statistic, its bounds, and eps.

    Parameters
    ----------
    statistic : Statistic
    universe : Universe
    eps : Fraction
        The privacy loss paid for the answers of all G groups, of which a person is in one at most.

    Notes
    -----
    Neighbours differ by one record added or removed; by one that is replaced where the statistic says so. ``loss``
    between two of them is the largest log-ratio of their output distributions; every method says what it is for this
    mechanism, exactly or rounded towards the person.
    """

    statistic: Statistic
    universe: Universe
    eps: Fraction

    name: ClassVar[str]
    noise: ClassVar[str]  # its name in words, for labels
    is_of_all_lines: ClassVar[bool] = False  # whether its draw is about the records of all lines of a release
    is_even: ClassVar[bool] = False  # whether every record, whatever its value, bears a loss of eps

    @classmethod
    @abstractmethod
    def answers(cls, statistic: Statistic) -> bool:
        """Whether it can answer this statistic."""

    @classmethod
    def joins(cls, statistic: Statistic) -> bool:
        """Whether it can answer this statistic together with others of the same records, all from one draw."""
        return False

    @classmethod
    def adds_up(cls, statistic: Statistic) -> bool:
        """Whether it draws sums over records, so that those of several groups together are the sums of theirs."""
        return False

    @classmethod
    def of(cls, statistic: Statistic, universe: Universe, eps: Fraction, together: Sequence[Statistic]) -> Mechanism:
        """The mechanism for a statistic that is drawn together with these, which may include itself."""
        return cls(statistic, universe, eps)

    @classmethod
    def needs(cls, statistic: Statistic) -> Needs:
        """Parts of a summary that it and the statistic's sensitivity read."""
        return statistic.needs

    @property
    def reads(self) -> Needs:
        """`needs`, or a part of it that is enough at this eps."""
        return self.needs(self.statistic)

    @property
    def draws(self) -> Needs:
        """The part of `reads` that `draw` needs: no sensitivity, loss or error is computed from it."""
        return self.reads

    def check(self) -> None:
        """Refuse an eps that the noise cannot be calibrated to."""
        check_smallest(self.eps)

    @abstractmethod
    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        """Noisy numbers for the exact ones of a summary.

        ``sampler``: source of discrete Laplace noise.
        ``bits``: source of random bits, for what is chosen without such noise.
        """

    @abstractmethod
    def value(self, drawn: Drawn) -> NDArray[Any]:
        """The answers that noisy numbers give, shape (G,): int64 for whole numbers, else float64."""

    @abstractmethod
    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Ends between which the exact answers lie, with a probability of at least ``level`` over the noise.

        NaN where they are not known.
        """

    def law(self, drawn: Drawn) -> Law | None:
        """Law of the numbers that were measured with additive noise; None where a choice says nothing of its noise."""
        return None

    def noise95(self, summary: Summary) -> FloatArray:
        """What `noise95_of` the answer would be if the noise happened to be 0, shape (G,)."""
        return self.noise95_of(self.draw(summary, lambda exact, *_: exact))

    def noise95_of(self, drawn: Drawn) -> FloatArray:
        """Reach of the noise: how far the 95 % intervals reach from the answers, to the farther side, shape (G,)."""
        return farther_side(self.value(drawn), *self.interval(drawn, 0.95))

    def widest_noise95(self, n: int | None) -> float | None:
        """Bound on `noise95_of` an answer about n records or more, whatever their values are, 99 % sure over the noise.

        As far as public facts decide it; None where they do not, n among them where it is given. Where sums are rounded
        to places, it leaves that out: some 2**-28 of the bounds for each record.
        """
        return None

    def least_records(self, drawn: Drawn, level: float) -> FloatArray | None:
        """Least number of records, with a probability of ``level`` over the noise; None if it does not tell."""
        return None

    def clip(self, drawn: Drawn) -> tuple[float, float] | None:
        """Points, chosen with noise, at which all values were clipped; None without clipping."""
        return None

    @property
    def scale(self) -> float | None:
        """Scale of the noise that is added to the answer, in its unit; None without such noise."""
        return None

    @property
    def rank95(self) -> float | None:
        """Error of the answer in ranks, 95 % sure; None where noise is added to the answer."""
        return None

    @property
    def step(self) -> float | None:
        """Largest distance between the public points of which the answer is one; None if it is not such a point."""
        return None

    @property
    def is_one_sided(self) -> bool:
        """Whether one end of every interval is a bound, even with little noise."""
        return False

    @property
    def success(self) -> float:
        """How often the best attacker with a coin's prior is right about one person, in the worst case.

        ``(1 + total variation) / 2`` over the worst pair of neighbours, or a bound: publishable, from eps alone.
        """
        return self.success_of(ONE)

    @property
    def mu(self) -> float:
        """The m of Gaussian differential privacy about one record: see `mu2_of`."""
        return root(self.mu2_of())

    def eps_of(self, weight: Fraction) -> Fraction:
        """The privacy loss of a person who can change the answer by so many times what one record can."""
        return self.eps if weight == 1 else self.eps * weight

    def success_of(self, weight: Fraction, mu2: Fraction | None = None) -> float:
        """`success` about a person who can change the answer by ``weight`` times what one record can.

        ``mu2`` is that of `mu2_of` the same person, whose records may lie in several groups; None: in one.
        """
        squares = self.mu2_of(weight) if mu2 is None else mu2
        return min(self._success(float(self.eps_of(weight))), success_of(squares))

    @abstractmethod
    def _success(self, eps: float) -> float:
        """`success` for an eps, or a bound: `mu2_of` may give a smaller one."""

    def mu2_of(self, weight: Fraction = ONE, groups: int = 1, *, apart: bool = False) -> Fraction:
        """Squares of the m of Gaussian differential privacy, summed over the draws that are about a person.

        An answer has m if no test of whether a person is in the data, at whatever rate of false alarms, misses less
        than the best test of N(0, 1) against N(m, 1). For several answers, later ones chosen by earlier ones, squares
        add up. docs/numbers.md has the m of each mechanism, its proof, and why one group with everything is the worst
        of all divisions for mechanisms that do not say otherwise.

        ``weight``: by how much the person can change all groups together, as a multiple of what one record can.
        ``groups``: in how many groups that is, evenly.
        ``apart``: whether it may instead be divided among so many groups in any way.
        """
        eps = float(self.eps_of(weight))
        squares = squared(self._mu(eps, groups)) if apart else groups * squared(self._mu(eps / groups, 1))
        return min(squares, squared(mu_of_pure(eps)))

    def _mu(self, eps: float, groups: int) -> float:
        """The m about a person who loses eps in at most so many groups together, in the worst case."""
        return mu_of_pure(eps)

    def loss(self, summary: Summary) -> FloatArray:
        """Privacy loss of the most exposed neighbour of these data, shape (G,): eps, unless it is known to be less."""
        return np.full(summary.n.shape, float(self.eps))

    def loss_of_records(self, records: FloatArray, summary: Summary) -> FloatArray:
        """Privacy loss of each of these records: that between the data with and without it; eps likewise.

        ``records``: shape (n,). Clamped and not missing.
        ``summary``: of the one group that they belong to, or for each record of its own group, as `Summary.of_rows`
            gives it.
        Returns: shape (n,). May share its memory with nothing that is used later.
        """
        return np.full(records.shape, float(self.eps))

    @abstractmethod
    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        """Places of the worlds that lack one of these records each, and how many units of place make one nat.

        The privacy loss between two worlds is their distance divided by that unit; see `exact_identifiability`. Of
        shape (2, n) where it is the larger of their distances on two lines, on which all stand in the same order; see
        `exact_of_worlds`.
        """

    @abstractmethod
    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        """Largest privacy loss between two worlds that lack one record each, shape (G,)."""

    def loss_by_eps(self, summary: Summary) -> FloatArray:
        """Upper bound of `loss` / eps at every eps."""
        return self.loss(summary) / float(self.eps)

    def loss_between_worlds_by_eps(self, summary: Summary) -> FloatArray:
        """Upper bound of `loss_between_worlds` / eps at every eps."""
        return self.loss_between_worlds(summary) / float(self.eps)

    @property
    def event(self) -> dict[str, str]:
        """Record for accounting: the mechanism's name and eps, as JSON values."""
        return {"mechanism": self.name, "eps": str(self.eps)}


def farther_side(value: NDArray[Any], low: FloatArray, high: FloatArray) -> FloatArray:
    """Distance of the farther end of an interval from the value in it: value plus or minus that covers both ends."""
    return np.maximum(high - value, value - low)


def likely_noise95(mechanism: Mechanism, summary: Summary, noises: int) -> float:
    """Largest `Mechanism.noise95_of` of these groups for noise that is 99 % likely.

    The sizes of k such variables, each over its scale, add up to a gamma variable: with probability .99 to at most t,
    of which all is added here to one of them, or taken from it. That moves the noisy number of records the farthest.

    ``noises``: how many Laplace variables the mechanism adds to the sums of a group.
    """
    reach, worst = _likely_sum(noises), 0.0
    for at, side in itertools.product(range(noises), (-reach, reach)):
        drawn = mechanism.draw(summary, _moved(at, side))
        worst = max(worst, float(mechanism.noise95_of(drawn).max()))
    return worst


def _moved(at: int, side: float) -> Sampler:
    """A source that adds this multiple of the scale to one sum, and nothing to the others."""
    drawn = 0

    def sampler(exact: NDArray[np.int64], change: int, eps: Fraction) -> NDArray[np.int64]:
        nonlocal drawn
        sums = np.arange(drawn, drawn + len(exact))[:, np.newaxis] if exact.ndim > 1 else drawn
        drawn += len(exact) * (exact.ndim > 1)  # a sum of its own is drawn last, for some groups at a time
        return exact + np.where(np.equal(sums, at), round(Fraction(side) * change / eps), 0)

    return sampler


@lru_cache
def _likely_sum(noises: int) -> float:
    """What the sizes of so many Laplace variables of scale 1 together exceed once in 100 times, or less often."""
    low, high = 0.0, 100.0
    while high - low > 2.0**-20:
        t = (low + high) / 2
        beyond = math.exp(-t) * math.fsum(t**i / math.factorial(i) for i in range(noises))
        low, high = (t, high) if beyond > UNLIKELY else (low, t)
    return high


def at_most(loss: FloatArray, eps: float) -> FloatArray:
    """Losses that rounding may have carried a little above eps."""
    return np.minimum(loss, eps)


def check_smallest(eps: Fraction) -> None:
    """Refuse an eps so small that computations with it would leave the range of floats."""
    if eps < SMALLEST_EPS:
        raise ParameterError(
            f"eps={float(eps):g} is below {float(SMALLEST_EPS):g}, where the noise is a trillion "
            "times the largest change of one person: ask with a larger eps."
        )
