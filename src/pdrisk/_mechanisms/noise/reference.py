"""OpenDP's sampler of the discrete Laplace distribution: the reference that tests and `pdrisk.audit` compare ours with.

No answer is drawn by it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from pdrisk._core.summary import IntArray

if TYPE_CHECKING:
    from opendp.mod import Domain, Measurement, Metric


def has_opendp() -> bool:
    """Whether OpenDP, the extra ``opendp``, is installed."""
    return find_spec("opendp") is not None


def opendp_laplace(exact: IntArray, change: int, eps: Fraction) -> IntArray:
    """As `discrete_laplace`, by OpenDP (Canonne, Kamath & Steinke 2020)."""
    noisy = opendp_measurement(change, eps)(exact.ravel().tolist())
    return np.array(noisy, dtype=np.int64).reshape(exact.shape)


def opendp_measurement(change: int, eps: Fraction) -> Measurement:
    """OpenDP's noise of scale ``change / eps``, rounded up until its own privacy map confirms eps."""
    from opendp.measurements import make_laplace

    scale = float(change / eps)
    while True:
        scale = math.nextafter(scale, math.inf)  # the float nearest change / eps may lie below it
        measurement = make_laplace(*_integer_vectors(), scale)
        if Fraction(measurement.map(change)) <= eps:
            return measurement


@cache
def _integer_vectors() -> tuple[Domain, Metric]:
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
