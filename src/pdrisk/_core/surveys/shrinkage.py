"""Shrinkage of noisy means of small areas towards their common mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdrisk._core.summary import FloatArray

FEWEST = 10  # areas, from which a common mean and spread are estimated
FIT_CONSTANT, FIT_SLOPE = 5**0.5, 0.02  # weights of the fit: Laplace noise has a kurtosis of 6, and squares vary so


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Shrunk places of G areas between the bounds, from 0 to 1."""

    share: FloatArray  # the shrunk means; shape (G,)
    # share of each area's own measurement in its value, B in [0, 1]; the rest is the common mean; shape (G,)
    weight: FloatArray


def shrinkage(above: FloatArray, below: FloatArray, variance: float) -> Shrinkage:
    """Empirical best predictor of means that are ratios of noisy sums (Fay & Herriot 1979, with noise as error).

    With the common mean m, ``r = above - m (above + below)`` is the area's size c times its distance from m, plus noise
    of variance ``v = variance ((1 - m)**2 + m**2)``. Areas differ by ``tau**2 + s**2 / c``: by themselves, and as few
    people differ from each other; so ``r**2 - v`` is fitted by ``tau**2 c**2 + s**2 c``, neither below 0. Sizes are
    noisy, too: their squares have ``2 variance`` too much on average, and the sizes themselves are drawn towards their
    mean. The least variance of areas, ten standard errors of the mean, keeps a weight from being 0 by chance.

    ``above, below``: shape (G,). Noisy sums of the distances from the lower and the upper bound, in units of the
        bounds' width, uncut.
    ``variance``: of the noise of each.
    """
    size = above + below
    groups, mean_size = len(size), max(float(size.mean()), 1.0)
    common = float(np.clip(above.sum() / max(float(size.sum()), 1.0), 0.0, 1.0))
    distance = above - common * size
    noise = variance * ((1 - common) ** 2 + common**2)
    areas, people = _fitted(distance**2 - noise, np.maximum(size**2 - 2 * variance, 0), np.maximum(size, 0), noise)
    spread = float(size.var())
    own_size = mean_size + max(spread - 2 * variance, 0.0) / max(spread, 1e-300) * (size - mean_size)
    own_size = np.maximum(own_size, 1.0)
    between = np.maximum(areas + people / own_size, 10 * noise / (groups * mean_size**2))
    weight = between / (between + noise / own_size**2)
    return Shrinkage(np.clip(common + weight * distance / own_size, 0.0, 1.0), weight)


def _fitted(y: FloatArray, x: FloatArray, z: FloatArray, noise: float) -> tuple[float, float]:
    """Coefficients of x and z, neither below 0, by weighted least squares."""
    weight = 1 / (FIT_CONSTANT * noise + FIT_SLOPE * z**2)
    x, y, z = x * weight, y * weight, z * weight
    xx, xz, zz, xy, zy = (float(a @ b) for a, b in ((x, x), (x, z), (z, z), (x, y), (z, y)))
    determinant = xx * zz - xz**2
    if determinant > 1e-12 * xx * zz:
        both = (xy * zz - zy * xz) / determinant, (zy * xx - xy * xz) / determinant
        if min(both) >= 0:
            return both
    alone = [(max(xy / xx, 0.0) if xx else 0.0, 0.0), (0.0, max(zy / zz, 0.0) if zz else 0.0)]
    return min(alone, key=lambda pair: pair[0] ** 2 * xx + pair[1] ** 2 * zz - 2 * (pair[0] * xy + pair[1] * zy))
