"""Released answers of one line, before a front end gives them their form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pdrisk._answer.answers.facts import Facts
from pdrisk._answer.answers.noisy import NoisyAnswers
from pdrisk._model.query import Line


@dataclass(frozen=True, slots=True)
class Released:
    """The noisy answers of one line."""

    line: Line
    noisy: NoisyAnswers
    # gives the curator's numbers, where the caller may see them, and asked for them or for one number alone
    known: Callable[[], Facts] | None

    @property
    def facts(self) -> Facts | None:
        """The curator's numbers, as far as the caller may see them."""
        return None if self.known is None else self.known()
