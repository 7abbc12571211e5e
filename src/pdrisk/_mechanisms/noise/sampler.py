"""Sampler of the discrete Laplace distribution: the only source of noise. No seed, no off switch."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.noise.exact_laplace import plus_discrete_laplace

WIDEST_SCALE = 2**54  # in steps: noise beyond 2**62 has probability exp(-256)


class Sampler(Protocol):
    """Source of noise: `discrete_laplace`, or what replays its draws."""

    def __call__(self, exact: IntArray, change: int, eps: Fraction) -> IntArray:
        """Noisy integers for exact ones."""


def discrete_laplace(exact: IntArray, change: int, eps: Fraction) -> IntArray:
    """Integers plus independent discrete Laplace noise of scale ``change / eps``.

    Exact sampling with entropy of the operating system, by `exact_laplace`, with a scale that is not rounded. Tests and
    `pdrisk.audit` compare it with OpenDP's, in `reference`.

    ``exact``: shape (...). Within ±2**62.
    ``change``: largest L1 distance of all of ``exact`` between neighbours; ``change / eps`` at most `WIDEST_SCALE`.
    ``eps``: the privacy loss paid for all of them together.
    Returns: shape (...). Sums beyond 64 bits are moved to their end, which costs no privacy.
    """
    scale = _quotient(change, eps.numerator, eps.denominator)
    return plus_discrete_laplace(exact.ravel(), scale).reshape(exact.shape)


@lru_cache(maxsize=64)
def _quotient(change: int, numerator: int, denominator: int) -> Fraction:
    """The scale of noise; fractions of one question are the same ones for the next."""
    return change / Fraction(numerator, denominator)
