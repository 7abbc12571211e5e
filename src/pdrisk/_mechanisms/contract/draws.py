"""Draws of mechanisms, which nothing else in pdrisk makes."""

from __future__ import annotations

from typing import Protocol

from pdrisk._core.summary import Summary
from pdrisk._mechanisms.contract.base import Drawn
from pdrisk._mechanisms.noise.sampler import Sampler, discrete_laplace


class Drawing(Protocol):
    """A mechanism, or what else is drawn from a summary: randomised response, a choice of private keys."""

    def draw(self, summary: Summary, sampler: Sampler, /) -> Drawn:
        """What is drawn."""


def drawn_once(mechanism: Drawing, summary: Summary) -> Drawn:
    """The draw of a mechanism for a summary. Nothing else in pdrisk draws noise."""
    return mechanism.draw(summary, discrete_laplace)
