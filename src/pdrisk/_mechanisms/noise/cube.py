"""Noise of the largest norm: one whole vector, uniform within a cube whose size is drawn, sampled exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import IntArray
from pdrisk._mechanisms.noise.entropy import Bits
from pdrisk._mechanisms.noise.sampler import Sampler

LARGEST_SCALE = 2**40  # in steps
LONGEST = 2**51  # each part of a side, of which a thousand fit into 64 bits
MOST_TRIES = 10_000  # where noise is hardly wider than a step, most are rejected; a source of no noise loses all


def cube_noise(numbers: int, size: int, change: int, eps: Fraction, sampler: Sampler, bits: Bits) -> IntArray:
    """Whole vectors with probability proportional to ``exp(-eps |z| / change)``, ``|z|`` their largest component.

    The K-norm mechanism (Hardt & Talwar 2010) of the largest norm: where no number moves by more than ``change``
    between neighbours, all of them together cost eps.

    With ``q = exp(-eps / change)``, a vector that is uniform among the ``(2 R + 1)**d`` of the cube -R to R has the
    wanted law if R has probabilities proportional to ``(2 R + 1)**d q**R``: one with ``|z| = r`` is in all cubes with
    R >= r, which have ``q**r / (1 - q)`` together. The sum of d + 1 geometric variables has ``C(R + d, d) q**R``; it is
    kept with probability ``(2 R + 1) / (2 R + 2 i)`` for each i from 1 to d, which a whole number below ``2 R + 2 i``
    decides. A geometric variable is discrete Laplace noise that is not negative. A part beyond `LONGEST` is held there:
    at the largest scale, that has probability exp(-2048) for each.

    ``numbers``: components d of each vector.
    ``size``: how many independent vectors.
    ``eps``: ``change / eps`` at most `LARGEST_SCALE`.
    ``sampler, bits``: sources of discrete Laplace noise and of random bits.
    Returns: shape (d, size)
    """
    radius = np.empty(size, dtype=np.int64)
    missing = np.arange(size)
    for _ in range(MOST_TRIES):
        tried = _geometric((numbers + 1, len(missing)), change, eps, sampler).sum(axis=0)
        limits = 2 * tried + 2 * np.arange(1, numbers + 1)[:, None]
        kept = (uniform_below(limits, bits) < 2 * tried + 1).all(axis=0)
        radius[missing[kept]] = tried[kept]
        missing = missing[~kept]
        if not len(missing):
            sides = np.broadcast_to(2 * radius + 1, (numbers, size))
            return uniform_below(sides, bits) - radius
    raise RuntimeError("the source of noise gave none")


def uniform_below(limits: NDArray[np.int64], bits: Bits) -> IntArray:
    """Whole numbers from 0 up to, but not including, limits of 1 or more: each uniform, by rejection."""
    below = limits.ravel()
    _, length = np.frexp(below.astype(np.float64))  # limits are at most 2**length, also where floats round them
    spare = (64 - length).astype(np.uint64)
    numbers = np.empty(below.shape, dtype=np.int64)
    missing = np.arange(len(below))
    while len(missing):
        tried = (bits(len(missing)) >> spare[missing]).view(np.int64)
        kept = tried < below[missing]
        numbers[missing[kept]] = tried[kept]
        missing = missing[~kept]
    return numbers.reshape(limits.shape)


def _geometric(shape: tuple[int, int], change: int, eps: Fraction, sampler: Sampler) -> IntArray:
    """Independent numbers k = 0, 1, ... with probabilities proportional to ``exp(-k eps / change)``."""
    numbers = np.empty(shape[0] * shape[1], dtype=np.int64)
    missing = np.arange(len(numbers))
    while len(missing):
        tried = sampler(np.zeros(len(missing), dtype=np.int64), change, eps)
        kept = tried >= 0
        numbers[missing[kept]] = np.minimum(tried[kept], LONGEST)
        missing = missing[~kept]
    return numbers.reshape(shape)
