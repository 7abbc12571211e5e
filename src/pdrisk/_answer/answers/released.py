"""Released answers of one line, before a front end gives them their form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdrisk._answer.answers.facts import Facts
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._model.query import Line

__all__ = ["Released"]


@dataclass(frozen=True, slots=True)
class Released:
    """The noisy answers of one line.

    Attributes
    ----------
    known : callable or None
        Gives the curator's numbers, where the caller may see them, and asked for them or for one number alone.
    """

    line: Line
    noisy: NoisyAnswers
    known: Callable[[], Facts] | None

    @property
    def facts(self) -> Facts | None:
        """The curator's numbers, as far as the caller may see them."""
        return None if self.known is None else self.known()
