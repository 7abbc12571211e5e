"""Scope of an expression: what names mean in one place of a query."""

from __future__ import annotations

from typing import Protocol

from pdrisk._model.nodes import Node
from pdrisk._sql.pieces import Expression

__all__ = ["Scope"]


class Scope(Protocol):
    """What names mean in one place of a query."""

    @property
    def of_people(self) -> bool:
        """Whether the values are people's, not noisy ones."""

    @property
    def untyped(self) -> frozenset[str]:
        """Columns of Python objects, whose type is read off their values."""

    @property
    def numbers(self) -> frozenset[str]:
        """Columns of numbers whose type one record more could change."""

    @property
    def zone(self) -> str:
        """The clock that times with a zone are read by."""

    def order(self, how: str) -> str:
        """The words after an item of ORDER BY, written out."""

    def windowed(self, found: Expression) -> Expression:
        """A window as what stands for it."""

    def known(self, node: Node) -> Expression | None:
        """What a node is, if the scope has a meaning for it as a whole; it has one for each column, or an error."""
