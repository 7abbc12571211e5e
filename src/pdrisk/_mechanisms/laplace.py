"""The only place that draws noise: OpenDP's discrete Laplace on a public lattice. No seed, no off switch."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import Lattice
from pdrisk.errors import ParameterError

if TYPE_CHECKING:
    from opendp.mod import Domain, Measurement, Metric

__all__ = ["SMALLEST_EPS", "check_scale", "laplace"]

WIDEST_SCALE = 2**54  # in steps: noise beyond 2**62 has probability exp(-256)
SMALLEST_EPS = Fraction(1, 10**12)


def check_scale(eps: Fraction, lattice: Lattice) -> None:
    """Refuse an epsilon whose noise this machine's integers and floats cannot hold.

    Raises
    ------
    ParameterError
        If the noise would be narrower than a lattice step, or eps is below 1e-12.
    """
    if eps < SMALLEST_EPS:
        raise ParameterError(
            f"eps={float(eps):g} is below {float(SMALLEST_EPS):g}, where the noise is a trillion "
            "times the largest change of one person: ask with a larger eps."
        )
    if lattice.sensitivity < eps:
        raise ParameterError(
            f"eps={float(eps):g} would add no noise at all on the grid that answers are rounded to: "
            "ask with a smaller eps; at eps=20 an attacker is already right in all but 23 of a million cases."
        )


def laplace(steps: NDArray[np.int64], lattice: Lattice, eps: Fraction) -> NDArray[np.float64]:
    """Answers plus Laplace noise of scale GS/eps.

    Parameters
    ----------
    steps : ndarray of int64, shape (G,)
        Exact answers of disjoint groups in steps of the lattice, within ±2**62. One person is in one group at most.
    lattice : Lattice
    eps : Fraction
        The privacy loss paid for all G answers together.

    Returns
    -------
    ndarray of float64, shape (G,)
        In the unit of the answers.

    Notes
    -----
    Exact sampling of the discrete Laplace (Canonne, Kamath & Steinke 2020) with entropy of the operating
    system. The scale is rounded up until OpenDP's own privacy map confirms eps. A scale too wide for int64
    is brought down by dropping low bits of the answer: ``|a >> s - b >> s| <= (d >> s) + 1``.
    """
    shift = max(0, math.ceil(math.log2(lattice.sensitivity / eps)) - int(math.log2(WIDEST_SCALE)))
    change = lattice.sensitivity if shift == 0 else (lattice.sensitivity >> shift) + 1
    noisy = _measurement(change, eps)((steps >> shift).tolist())
    return np.array(noisy, dtype=np.float64) * (lattice.step * 2.0**shift)


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
    # opendp takes 0.2 s to import; who only looks at pdrisk need not wait for it.
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
