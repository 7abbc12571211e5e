"""Partition selection: which groups an answer shows, if the list of groups itself could reveal who is in the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.risks.gaussian_dp import mu_of_pure, squared
from pdrisk._core.summary import Summary
from pdrisk._mechanisms.exponential.weights import BITS, exp_below
from pdrisk._mechanisms.noise.entropy import Bits, Words, system_bits
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace
from pdrisk.errors import ParameterError

SMALLEST_DELTA: Final = Fraction(1, 10**30)
LARGEST_DELTA: Final = Fraction(1, 1000)
STEEPEST: Final = Fraction(64)  # of eps: beyond, nothing is gained
SMALLEST_EPS: Final = 1e-200  # far below, floats end; there delta alone decides
LONGEST_TABLE: Final = 2**17  # people of a group that is shown in any case
WORDS: Final = BITS // 64
CERTAIN: Final = 1 << BITS  # stands for 1


@dataclass(frozen=True, slots=True)
class PartitionSelection:
    """Choice of the groups to show, by their numbers of people: never an empty one, always from some size on.

    Notes
    -----
    With ``p(0) = 0`` and ``p(n) = min(e**eps p(n-1) + delta, 1 - e**-eps (1 - p(n-1) - delta), 1)`` a group of n
    people is shown with a probability that is the largest of all (eps, delta) rules for each n at once. Each term is
    one side of the definition for two data sets that differ by one person of the group: that a group is shown, and
    that it is not. A person in g groups changes g such choices, each of which may lose (eps/g, delta/g). Fewer than
    ``least`` people are never shown, and from there on the rule begins anew: ``p(n - least + 1)``.

    The probabilities used are multiples of 2**-192. e**eps is rounded down, which is the rule of a smaller eps, and
    each p(n) is rounded down before the next is made of it: then both terms, taken of the p(n-1) used, are above the
    p(n) used, so both inequalities hold exactly. Rounding down keeps p(n) at least p(n-1), which is a multiple, too;
    and with p(n) >= p(n-1) the other two inequalities, with the data sets exchanged, hold as well.

    References
    ----------
    Desfontaines, Voss, Gipson & Mandayam: Differentially private partition selection. PoPETs 2022(1), theorem 1.
    """

    # `eps`, `delta`: what a person may lose by all of it, above 0
    eps: Fraction
    delta: Fraction
    groups: int = 1  # how many groups a person is in at most
    least: int = 1  # fewer people than that are never shown

    name: ClassVar[str] = "partition_selection"

    def check(self) -> None:
        """Refuse an eps at which only groups of more than a hundred thousand people are sure to be shown."""
        if self._smallest_certain() > LONGEST_TABLE:
            share, smaller = "", ""
            if self.groups > 1:
                share = f", and {float(self.eps / self.groups):g} for each of the {self.groups:,} groups of a person"
                smaller = ", or a smaller groups="
            raise ParameterError(
                f'keys="private" has eps {float(self.eps):g} to choose groups with, half of what was asked for{share}: '
                f"only groups of more than {LONGEST_TABLE:,} people would be sure to be shown. Ask with a larger eps"
                f"{smaller}."
            )

    def probability(self, people: int) -> Fraction:
        """Exact probability that a group of so many people is shown."""
        table, at = self._table, max(people - self.least + 1, 0)
        return Fraction(table[min(at, len(table) - 1)], CERTAIN)

    def size_shown(self, probability: Fraction) -> int:
        """Smallest number of people for which a group is shown at least this often."""
        wanted = probability * CERTAIN
        low, high = 0, len(self._table) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._table[middle] >= wanted else (middle + 1, high)
        return low + self.least - 1 if low else 0

    @property
    def sizes_shown(self) -> tuple[int, int, int]:
        """Smallest sizes of a group that is ever shown, shown at least half of the time, and always."""
        return self.least, self.size_shown(Fraction(1, 2)), self.size_shown(Fraction(1))

    def draw(
        self,
        summary: Summary,
        sampler: Sampler = discrete_laplace,
        bits: Bits = system_bits,
    ) -> NDArray[np.bool_]:
        """Which of G groups of n people each are shown, shape (G,)."""
        thresholds = _thresholds(*self._each)
        at = np.clip(summary.n - (self.least - 1), 0, len(thresholds))
        wanted = thresholds[np.minimum(at, len(thresholds) - 1)]
        words = bits(WORDS * len(at)).reshape(len(at), WORDS)
        below = np.zeros(len(at), dtype=bool)
        for word in reversed(range(WORDS)):
            drawn, limit = words[:, word], wanted[:, word]
            below = (drawn < limit) | ((drawn == limit) & below)
        return below | (at == len(thresholds))

    @property
    def mu2(self) -> Fraction:
        """Squares of the m of Gaussian differential privacy, summed over a person's groups; delta comes besides."""
        return self.groups * squared(mu_of_pure(float(self._each[0])))

    @property
    def event(self) -> dict[str, str]:
        """Record for accounting, as JSON values."""
        return {"mechanism": self.name, "eps": str(self.eps), "delta": str(self.delta)}

    @property
    def _each(self) -> tuple[Fraction, Fraction]:
        """Eps and delta of a person's choice of one group."""
        return min(self.eps / self.groups, STEEPEST), self.delta / self.groups

    @property
    def _table(self) -> tuple[int, ...]:
        return _table(*self._each)

    def _smallest_certain(self) -> float:
        """Smallest size that is always shown, give or take one: theorem 1 in closed form."""
        eps, delta = map(float, self._each)
        eps = max(eps, SMALLEST_EPS)
        rising = math.log1p(math.expm1(eps) * (1 - delta) / (math.exp(eps) + 1) / delta) / eps
        falling = math.log1p(math.expm1(eps) / delta) / eps
        return rising + falling


@lru_cache(maxsize=16)
def _table(eps: Fraction, delta: Fraction) -> tuple[int, ...]:
    """``p(n) * 2**192`` for n = 0, 1, ... up to the first certain size."""
    ratio = exp_below(eps)
    added = (delta.numerator << BITS) // delta.denominator
    table = [0]
    while (last := table[-1]) < CERTAIN:
        hidden = -(-((CERTAIN - last - added) << BITS) // ratio)  # rounded up
        table.append(min(((last * ratio) >> BITS) + added, CERTAIN - hidden, CERTAIN))
    return tuple(table)


@lru_cache(maxsize=16)
def _thresholds(eps: Fraction, delta: Fraction) -> Words:
    """The probabilities below 1 as words of 64 bits, the highest first, shape (n, 3)."""
    table = _table(eps, delta)[:-1]
    shifts = [64 * word for word in reversed(range(WORDS))]
    return np.array(
        [[(probability >> shift) & (2**64 - 1) for shift in shifts] for probability in table], dtype=np.uint64
    )
