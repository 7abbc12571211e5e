"""Second moments of units of a sample: the sum of their deviations and of the squares, for sampling variances."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pdrisk._core.lattice import PLACES
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, IntArray, Needs, Summary
from pdrisk._core.universe import Universe

ROUNDED = 4  # places, by which both sums may move more


@dataclass(frozen=True, slots=True)
class SecondMoments(Statistic):
    """Sum of squares of deviations v, which lie between -1 and 1 once divided by the upper bound of the universe."""

    # by how much of the upper bound a person can move the deviation of a unit; 1 where a person is one
    share: Fraction = Fraction(1)
    # whether the sums of ``(v**2 + v)/2`` and ``(v**2 - v)/2`` are drawn, which tell that of v, too
    halves: bool = field(default=True)
    name: ClassVar[str] = "second moments"

    @property
    def label(self) -> str:
        """The name, which says whether both sums or that of squares alone is drawn."""
        return self.name if self.halves else "sum of squares"

    @property
    def needs(self) -> Needs:
        return Needs(places=True, place_squares=True, ends=True)

    @property
    def change(self) -> int:
        """Largest change of both sums together, in places.

        A unit that comes or goes changes them by ``max(|v|, v**2)``; one whose v moves by ``b <= 1`` to or from what
        is at most 1, by ``max(b, 2 b - b**2)``, which is the latter.
        """
        moved = self.share if self.share >= 1 else 2 * self.share - self.share**2
        return -(-(moved * PLACES).numerator // (moved * PLACES).denominator) + ROUNDED

    def sums(self, summary: Summary) -> IntArray:
        """The sums of ``(v**2 + v)/2`` and ``(v**2 - v)/2``, or of ``v**2`` alone, in places, shape (2 or 1, G).

        At the place k of S, v is ``(2 k - S)/S``: a unit with v = 0 adds nothing, like one that is not there.
        """
        assert summary.places is not None and summary.place_squares is not None
        above = 2 * summary.place_squares - summary.places
        below = summary.n * PLACES - 3 * summary.places + 2 * summary.place_squares
        return np.stack([above, below]) if self.halves else (above + below)[np.newaxis]

    def value_range(self, universe: Universe) -> tuple[float, float]:
        return 0.0, np.inf

    def value_of_nothing(self, universe: Universe) -> float:
        return 0.0

    def global_sensitivity(self, universe: Universe) -> float:
        return self.change / PLACES * universe.hi**2

    def value(self, summary: Summary, universe: Universe) -> FloatArray:
        return self.sums(summary).sum(axis=0) / PLACES * universe.hi**2

    def largest_change(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, self.global_sensitivity(universe))

    def world_range(self, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(summary.n.shape, np.nan)

    def leave_one_out(self, records: FloatArray, summary: Summary, universe: Universe) -> FloatArray:
        return np.full(records.shape, np.nan)

    def rounding(self, universe: Universe) -> float:
        return 0.0  # sums of whole numbers are released
