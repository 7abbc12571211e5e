"""Sampler of the discrete Laplace distribution: the only source of noise. No seed, no off switch.

OpenDP draws a few numbers, `exact_laplace` many.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import cache, lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.exact_laplace import plus_discrete_laplace

if TYPE_CHECKING:
    from opendp.mod import Domain, Measurement, Metric

__all__ = ["WIDEST_SCALE", "Sampler", "discrete_laplace"]

WIDEST_SCALE = 2**54  # in steps: noise beyond 2**62 has probability exp(-256)
MANY = 128  # OpenDP takes about 1 ms to draw fewer numbers; of more, that would be most of the time of an answer
# DuckDB calls from several threads, and OpenDP does not promise that they may share a measurement. A signal handler
# that asks a question of its own runs in the thread that holds the lock.
_DRAWING = RLock()
if hasattr(os, "register_at_fork"):  # else a process forked during a draw of another thread would wait for its end
    os.register_at_fork(before=_DRAWING.acquire, after_in_parent=_DRAWING.release, after_in_child=_DRAWING.release)


class Sampler(Protocol):
    """Source of noise: `discrete_laplace`, or what replays its draws."""

    def __call__(self, exact: IntArray, change: int, eps: Fraction) -> IntArray:
        """Noisy integers for exact ones."""


def discrete_laplace(exact: IntArray, change: int, eps: Fraction) -> IntArray:
    """Integers plus independent discrete Laplace noise of scale ``change / eps``.

    Parameters
    ----------
    exact : ndarray of int64, shape (...)
        Within ±2**62.
    change : int
        Largest L1 distance of all of ``exact`` between neighbours; ``change / eps`` at most `WIDEST_SCALE`.
    eps : Fraction
        The privacy loss paid for all of them together.

    Returns
    -------
    ndarray of int64, shape (...)
        Sums beyond 64 bits are moved to their end, which costs no privacy.

    Notes
    -----
    Exact sampling with entropy of the operating system, either by OpenDP (Canonne, Kamath & Steinke 2020), with a scale
    that is rounded up until its own privacy map confirms eps; or, for many numbers, by `exact_laplace`, with the scale
    itself. How many there are is public.
    """
    if exact.size >= MANY:
        return plus_discrete_laplace(exact.ravel(), change / eps).reshape(exact.shape)
    with _DRAWING:
        noisy = _measurement(change, eps)(exact.ravel().tolist())
    return np.array(noisy, dtype=np.int64).reshape(exact.shape)


@lru_cache(maxsize=64)
def _measurement(change: int, eps: Fraction) -> Measurement:
    from opendp.measurements import make_laplace

    scale = float(change / eps)
    while True:
        scale = math.nextafter(scale, math.inf)  # the float nearest change / eps may lie below it
        measurement = make_laplace(*_integer_vectors(), scale)
        if Fraction(measurement.map(change)) <= eps:
            return measurement


@cache
def _integer_vectors() -> tuple[Domain, Metric]:
    # opendp takes 0.2 s to import, for which somebody who only looks at pdrisk need not wait.
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
