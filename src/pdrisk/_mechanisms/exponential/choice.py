"""One choice among public points by exponential weights of their scores: drawn, and what it tells about each record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pdrisk._core.cells import Cells
from pdrisk._core.once import once
from pdrisk._core.summary import FloatArray, IntArray
from pdrisk._mechanisms.exponential.choosing import chosen_points
from pdrisk._mechanisms.exponential.items import Items, items_of
from pdrisk._mechanisms.exponential.losses import Losses
from pdrisk._mechanisms.exponential.measure import Measure
from pdrisk._mechanisms.exponential.weights import Score, Weights
from pdrisk._mechanisms.noise.entropy import Bits


@dataclass(frozen=True)
class Choice:
    """Choice among the points of a measure that costs eps."""

    score: Score
    measure: Measure
    eps: Fraction

    @once
    def weights(self) -> Weights:
        """The weights of the scores."""
        return Weights.of(self.score, self.measure.spread, self.eps)

    def index(self, items: Items) -> IntArray:
        """Index of the items' weights in the table."""
        return self.weights.index(self.score.of(items.less, items.up_to, self.score.target(items.n)[items.group]))

    def drawn(self, cells: Cells, bits: Bits) -> IntArray:
        """A point for each group."""
        return np.concatenate([self._drawn(part, bits) for part in cells.parts()])

    def _drawn(self, cells: Cells, bits: Bits) -> IntArray:
        items = self.losses(cells).items
        return chosen_points(items, self.index(items), self.weights, self.measure, bits)

    def losses(self, cells: Cells) -> Losses:
        """Privacy losses of the records in these cells."""
        key = self, "losses"
        losses: Losses | None = cells.derived.get(key)
        if losses is None:
            items = items_of(cells, self.score, self.weights, self.measure)
            losses = cells.derived[key] = Losses(items, self.score, self.weights, self.measure)
        return losses

    def removed(self, cells: Cells) -> FloatArray:
        """Loss by one record less at each item; see `Losses.removed`."""
        key = self, "removed"
        if key not in cells.derived:
            cells.derived[key] = self.losses(cells).removed()
        losses: FloatArray = cells.derived[key]
        return losses
