"""Scope of an expression: what names mean in one place of a query."""

from __future__ import annotations

from typing import Protocol

from pdrisk._model.expressions.nodes import Node
from pdrisk._sql.syntax.pieces import Expression


class Scope(Protocol):
    """Meaning of names in one place of a query."""

    @property
    def of_people(self) -> bool:
        """Whether the values are people's, and not noisy."""

    @property
    def untyped(self) -> frozenset[str]:
        """Columns of Python objects, whose type is read off their values."""

    @property
    def numbers(self) -> frozenset[str]:
        """Columns of numbers whose type one more record could change."""

    @property
    def zone(self) -> str:
        """Time zone by which times with a zone are read."""

    def order(self, how: str) -> str:
        """The words after an item of ORDER BY, written out."""

    def windowed(self, expression: Expression) -> Expression:
        """Column that stands for a window."""

    def known(self, node: Node) -> Expression | None:
        """Expression that the scope has for a whole node; for each column one, or an error."""
