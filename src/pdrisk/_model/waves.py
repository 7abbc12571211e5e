"""Waves of a panel, between which the number of a person changes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdrisk._core.universe import Universe
from pdrisk._model.expressions.nodes import Node

if TYPE_CHECKING:
    from pdrisk._model.rowwise import RowwiseFilter


@dataclass(frozen=True, slots=True)
class Waves:
    """Two waves of a panel: a person becomes one number, the later one less the earlier, if it is known in both."""

    conditions: tuple[RowwiseFilter, RowwiseFilter]  # which rows are of the earlier and of the later wave
    way: str  # what several rows of a person in one wave become: ``"one"`` of them, or a number of them
    # range of the numbers of rows, by which sums of them are rounded; None where nothing is added up
    universe: Universe | None = None

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The column that says in which wave a row is."""
        return self.conditions[0].columns

    @property
    def rules(self) -> tuple[Node, ...]:
        """The trees of both conditions."""
        return tuple(condition.rule for condition in self.conditions if condition.rule is not None)

    @property
    def canonical(self) -> str:
        """All that decides the numbers of people, in one spelling."""
        return "".join([*(str(condition.canonical) for condition in self.conditions), self.way, repr(self.universe)])
