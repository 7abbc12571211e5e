"""Entropy: random bits of the operating system in bulk, for noise."""

from __future__ import annotations

from collections.abc import Callable
from os import urandom

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Bits = Callable[[int], Words]
"""Source of random bits: for n, an array of n words of 64 independent fair bits each that nobody was given before."""


def system_bits(size: int) -> Words:
    """Words of fresh random bits, shape (size,).

    Nothing is kept between calls, so there is nothing that threads, or a process and its fork, could share.
    """
    return np.frombuffer(urandom(8 * size), dtype=np.uint64)
