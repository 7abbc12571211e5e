"""One choice among public points by exponential weights of their scores: drawn, and what it tells about each record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.entropy import Bits
from pdrisk._mechanisms.exponential.choosing import chosen_points
from pdrisk._mechanisms.exponential.items import Items, items_of
from pdrisk._mechanisms.exponential.losses import Losses
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights

__all__ = ["Choice", "Spare"]


@dataclass(frozen=True, slots=True)
class Spare:
    """Candidate beside the points that means one of them, of the least number of places; no record moves its weight.

    Attributes
    ----------
    point : int
        What it means.
    index : int
        Where its weight stands in the table.
    """

    point: int
    index: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice among the points of a measure, and a spare candidate if there is one, that costs eps.

    Notes
    -----
    A record moves the logarithm of the spare one's weight by 0, which lies among the numbers that it may move those of
    the points by: what `Weights` says of ratios holds with it, too.
    """

    score: Score
    measure: Measure
    eps: Fraction
    spare: Spare | None = None

    @property
    def weights(self) -> Weights:
        """The weights of the scores."""
        return Weights.of(self.score, self.measure.spread, self.eps)

    def index(self, items: Items) -> IntArray:
        """Index of the items' weights in the table."""
        return self.weights.index(self.score.of(items.less, items.up_to, self.score.target(items.n)[items.group]))

    def drawn(self, cells: Cells, bits: Bits) -> IntArray:
        """A point for each group."""
        items = self.losses(cells).items
        index = self.index(items)
        if self.spare is None:
            return chosen_points(items, index, self.weights, self.measure, bits)
        at, groups = items.first[:-1], np.arange(len(items.n) + 1)
        own: dict[str, Any] = {"group": groups[:-1], "start": self.spare.point, "width": 1, "holds": False}
        own |= {"places": self.measure.least, "less": 0, "up_to": 0}
        inserted = {name: np.insert(getattr(items, name), at, value) for name, value in own.items()}
        with_spare = replace(items, first=items.first + groups, **inserted)
        index = np.insert(index, at, self.spare.index)
        return chosen_points(with_spare, index, self.weights, self.measure, bits)

    def losses(self, cells: Cells) -> Losses:
        """Privacy losses of the records in these cells."""
        key = self, "losses"
        if key not in cells.derived:
            weights = self.weights
            items = items_of(cells, self.score, weights, self.measure)
            spare = 0.0 if self.spare is None else float(weights.shares[self.spare.index]) * self.measure.least
            cells.derived[key] = Losses(items, self.score, weights, self.measure, spare)
        found: Losses = cells.derived[key]
        return found

    def removed(self, cells: Cells) -> FloatArray:
        """Loss by one record less at each item; see `Losses.removed`."""
        key = self, "removed"
        if key not in cells.derived:
            cells.derived[key] = self.losses(cells).removed()
        found: FloatArray = cells.derived[key]
        return found
