"""Sampling variance of survey estimates by their design: strata, clusters, and finite populations.

The formulas are those of R's survey package (Lumley 2010, section 2), with sums over the units that were drawn, which
are clusters or persons: ``V = sum_h a_h sum_c (z_hc - mean_h z)**2`` with ``a_h = (1 - f_h) n_h / (n_h - 1)``, n_h the
number of units of stratum h and f_h the share of all units that it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pdrisk._core.summary import FloatArray


def factors(units: Sequence[int], populations: Sequence[int | None]) -> FloatArray:
    """``a_h`` of each stratum."""
    n = np.array(units, dtype=np.float64)
    sampled = np.array(
        [0.0 if all_ is None else number / all_ for number, all_ in zip(units, populations, strict=True)]
    )
    coefficients: FloatArray = (1 - sampled) * n / (n - 1)
    return coefficients


def stratified_variance(
    sums: FloatArray, squares: FloatArray, units: Sequence[int], coefficients: FloatArray, scale: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Variance of a total by strata, and the variance of its noise.

    ``sums, squares``: shape (G, H). Of the deviations of the units, for each stratum; noisy or exact.
    ``units``: numbers of units, those without records included.
    ``coefficients``: shape (H,). `factors`.
    ``scale``: of the Laplace noise of the sums of ``(v**2 + v)/2`` and ``(v**2 - v)/2``; 0 for exact numbers.
    Returns: shape (G,). The first is unbiased: the square of a noisy sum is too large by its variance, ``4
        scale**2``.
    """
    n = np.array(units, dtype=np.float64)
    of_strata = squares - (sums**2 - 4 * scale**2) / n
    noise = 4 * scale**2 + 16 * scale**2 * sums**2 / n**2
    return (coefficients * of_strata).sum(axis=-1), (coefficients**2 * noise).sum(axis=-1)


def flat_variance(squares: FloatArray, largest: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Variance without what strata explain, which it overstates, and the variance of its noise.

    ``squares``: shape (G,). Noisy sums of squared deviations, each times its factor over the largest.
    ``largest``: the largest of `factors`.
    ``scale``: of the Laplace noise.
    """
    return largest * squares, np.full(squares.shape, 2 * (largest * scale) ** 2)


def most_of_unit(persons: int) -> float:
    """How many times the largest contribution of a person the deviation of a unit is clamped at.

    That of so many persons can be as many times as large; deviations of different persons mostly cancel.
    """
    return min(float(persons), 3 * math.sqrt(persons))
