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
from pdrisk._mechanisms.exponential.weights import Score, Weights

__all__ = ["Choice", "Spare"]


@dataclass(frozen=True, slots=True)
class Spare:
    """Candidate beside the points that means one of them, and whose weight no record changes.

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
    """Choice among so many points, and a spare candidate if there is one, that costs eps.

    Notes
    -----
    A record moves the logarithm of the spare one's weight by 0, which lies among the numbers that it may move those of
    the points by: what `Weights` says of ratios holds with it, too.
    """

    score: Score
    points: int
    eps: Fraction
    spare: Spare | None = None

    @property
    def weights(self) -> Weights:
        """The weights of the scores."""
        return Weights.of(self.score, self.points, self.eps)

    def index(self, items: Items) -> IntArray:
        """Index of the items' weights in the table."""
        return self.weights.index(self.score.of(items.less, items.up_to, self.score.target(items.n)[items.group]))

    def drawn(self, cells: Cells, bits: Bits) -> IntArray:
        """A point for each group."""
        items = self.losses(cells).items
        index = self.index(items)
        if self.spare is None:
            return chosen_points(items, index, self.weights, bits)
        at, groups = items.first[:-1], np.arange(len(items.n) + 1)
        parts: dict[str, Any] = {"group": groups[:-1], "start": self.spare.point, "width": 1}
        parts |= {"less": 0, "up_to": 0, "holds": False}
        inserted = {name: np.insert(getattr(items, name), at, value) for name, value in parts.items()}
        with_spare = replace(items, first=items.first + groups, **inserted)
        return chosen_points(with_spare, np.insert(index, at, self.spare.index), self.weights, bits)

    def losses(self, cells: Cells) -> Losses:
        """Privacy losses of the records in these cells."""
        key = self, "losses"
        if key not in cells.derived:
            weights = self.weights
            items = items_of(cells, self.points, self.score, weights)
            spare = 0.0 if self.spare is None else float(weights.shares[self.spare.index])
            cells.derived[key] = Losses(items, self.score, weights, spare)
        found: Losses = cells.derived[key]
        return found

    def removed(self, cells: Cells) -> FloatArray:
        """Loss by one record less at each item; see `Losses.removed`."""
        key = self, "removed"
        if key not in cells.derived:
            cells.derived[key] = self.losses(cells).removed()
        found: FloatArray = cells.derived[key]
        return found
