"""Success of the best attacker in m^2: what a budget in success adds up, and what is left of it.

An answer is m-GDP if whoever tests for a person by it errs at least as often as by one draw of N(0, 1) or N(m, 1).
Answers whose m^2 add up to at most M^2, each free to depend on those before, let the best attacker with a coin's prior
be right at most Phi(M/2) of the time: Smith & Thakurta 2022, arXiv 2210.17520.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from pdrisk._core.risks import gaussian_dp as gaussian
from pdrisk._core.summary import FloatArray

LATE: Final = "The limit was set or raised after {number} of the answers: it holds only if they did not decide it."
HARDLY = "0.5"  # a success that is written like that of guessing, though a little is left


@lru_cache(maxsize=4096)
def mu2_of_pure(eps: Fraction) -> Fraction:
    """The m^2 that no answer of this eps exceeds, whatever its mechanism."""
    return gaussian.squared(gaussian.mu_of_pure(float(eps)))


@lru_cache
def most_of(success: Fraction) -> Fraction:
    """The M^2 of a limit of success."""
    return gaussian.limit_of(success)


def reachable(left: Fraction) -> float:
    """The success that one more answer may reach if so much m^2 is left; a half, that of guessing, if nothing is."""
    if left <= 0:
        return 0.5
    success = min(gaussian.success_of(left), math.nextafter(1.0, 0.0))  # 1 is no limit that can be asked for
    while success > 0.5 and most_of(Fraction(str(success))) > left:  # as it will be asked for
        success = math.nextafter(success, 0)
    return success


@lru_cache(maxsize=1)
def _slopes() -> tuple[FloatArray, FloatArray]:
    """Losses, and the m of an answer of that eps divided by it, which falls."""
    last = math.nextafter(gaussian.LARGEST_EPS, math.inf)  # from where on m is not the least any more
    losses = np.append(np.geomspace(1e-3, gaussian.LARGEST_EPS, 2000, endpoint=False), last)
    slopes = [gaussian.mu_of_pure(float(loss)) / float(loss) for loss in losses]
    return losses, np.array([gaussian.SLOPE, *slopes]) * gaussian.UP**2


def mu_of_losses(losses: FloatArray) -> FloatArray:
    """The m between two neighbours whom no outcome tells apart by more than these losses; up to 1 % above the least."""
    known, slopes = _slopes()
    return losses * slopes[np.searchsorted(known, losses, side="right")]


def success_of(mu2: Fraction) -> float:
    """The success that answers may reach whose m^2 add up to that much, rounded up; a half without any."""
    return gaussian.success_of(mu2) if mu2 > 0 else 0.5
