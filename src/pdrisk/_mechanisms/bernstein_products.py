"""Bernstein mechanism for two columns: noisy sums of products; each record adds 1 to them (Takakura et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.lattice import LARGEST_PLACES, PLACES, PlaceGrid
from pdrisk._core.pairs import VARIES, Corr, CorrAmong, Cov, Moments, PairStatistic
from pdrisk._core.risks.gaussian_dp import mu_of_laplace, on_lattice
from pdrisk._core.statistics import Statistic
from pdrisk._core.summary import FloatArray, Summary
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms.contract.base import Drawn, Mechanism
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk._mechanisms.laws.law import Law
from pdrisk._mechanisms.noise.entropy import Bits, system_bits
from pdrisk._mechanisms.noise.sampler import WIDEST_SCALE, Sampler, discrete_laplace
from pdrisk.errors import ParameterError

ROUNDING = 8 / PLACES  # of a mean, square or product of places
ROUNDED = 32 / PLACES  # of the parts of two records together: six are rounded down, twice at most
FEWER = 1 + 2.0**-10  # a number of records where n / (n - 1) is at its largest, 2
WAYS = np.array([[0, -0.5, -0.5, 0.5, 0.5], [0, -0.5, 0.5, -0.5, 0.5]])  # in which both means may be off
TINY = 1e-12  # of a variance
FEWEST = 8.0  # see `BernsteinProducts.fewest`

Critical = Callable[[FloatArray, float], FloatArray]


@dataclass(frozen=True, slots=True)
class BernsteinProducts(Mechanism):
    """A covariance, correlation or slope from four, nine or six noisy sums; within the range of possible answers.

    Notes
    -----
    A record is divided among the products of the Bernstein polynomials of its two places, of degree 1 for a column of
    which the mean is needed, of degree 2 where the variance is: whole numbers that sum to S = `PLACES` exactly
    (`products_of_places`). So their sums over all records, each with noise ``DLap(S/eps)``, cost eps together, and
    everybody bears the same loss (after Takakura, Liew & Hasegawa 2025, arXiv 2509.04919).

    Between the worlds without one record or another, the sums move by twice the total variation of the two records'
    shares, which are those of two independent binomial variables. Of these, each pair agrees with probability
    ``1 - t`` for its own total variation t, so both do with the product: ``2 eps (1 - (1 - t_x) (1 - t_y))`` is never
    too small. Of degree 1, t is the distance of the places in S; of degree 2, see `Bernstein`.
    """

    statistic: PairStatistic
    universe: Rectangle

    name: ClassVar[str] = "bernstein_products"
    noise: ClassVar[str] = (
        "discrete Laplace noise of scale 1/eps on four to nine sums to which each record adds 1 in all"
    )
    is_even: ClassVar[bool] = True

    @classmethod
    def answers(cls, statistic: Statistic) -> bool:
        return isinstance(statistic, PairStatistic) and not isinstance(statistic, CorrAmong)

    def check(self) -> None:
        super(BernsteinProducts, self).check()
        if PLACES / self.eps > WIDEST_SCALE:
            raise ParameterError(
                f"eps={float(self.eps):g} needs noise beyond 64-bit integers: ask with eps={PLACES / WIDEST_SCALE:.2g} "
                "or more."
            )

    def draw(self, summary: Summary, sampler: Sampler = discrete_laplace, bits: Bits = system_bits) -> Drawn:
        # Each sum is held for itself, which brings no two of them farther apart.
        sums = np.minimum(summary.products[self.statistic.degrees], LARGEST_PLACES)
        return sampler(sums, PLACES, self.eps)

    def value(self, drawn: Drawn) -> NDArray[Any]:
        return self.statistic.of_moments(self._moments(drawn), self.universe)

    def interval(self, drawn: Drawn, level: float) -> tuple[FloatArray, FloatArray]:
        """Ends from the first-order influence of the noises, widened where that is not all.

        The whole range where the noisy number of records is below `fewest` scales of noise, and for a ratio where the
        variance below is not surely there. docs/mechanisms.md has the coverage.
        """
        moments = self._moments(drawn)
        size = moments.n * float(self.eps)
        unknown = size < self.fewest
        bounds = _Reach.of(moments, np.where(unknown, 1.0, size), level, self.critical)
        value = self.value(drawn)
        if isinstance(self.statistic, Cov):
            low, high = self._of_cov(self.statistic, bounds)
        else:
            ratio, reach = bounds.of_corr() if isinstance(self.statistic, Corr) else bounds.of_slope()
            unit = 1.0 if isinstance(self.statistic, Corr) else self.universe.width / self.universe.other.width
            low, high = (ratio - reach) * unit, (ratio + reach) * unit
        least, most = self.statistic.value_range(self.universe)
        low = np.where(unknown, least, np.clip(low, least, value))
        high = np.where(unknown, most, np.clip(high, value, most))
        return low, high

    @property
    def fewest(self) -> float:
        """Records times eps, below which the noisy sums say nothing of their own error."""
        return FEWEST

    def critical(self, influences: FloatArray, level: float) -> FloatArray:
        """Bound that the noise of the sums, weighted by these, keeps with probability ``level``, in units of 1/eps."""
        return critical_of_sum(influences, level)

    def law(self, drawn: Drawn) -> Law | None:
        return Law(len(drawn), Fraction(1, PLACES), 1 / self.eps)

    def _of_cov(self, statistic: Cov, bounds: _Reach) -> tuple[FloatArray, FloatArray]:
        moments = bounds.moments
        reach = bounds.of_cov()
        unsure = critical_of_sum(np.ones((4, 1)), bounds.level)[0] / float(self.eps)
        n = np.stack([np.maximum(moments.n + unsure, 2.0), np.maximum(moments.n - unsure, FEWER)])
        factors = statistic.factor(n)
        low, high = (moments.cov - reach) * factors, (moments.cov + reach) * factors
        return statistic.scaled(low.min(axis=0), self.universe), statistic.scaled(high.max(axis=0), self.universe)

    def _moments(self, drawn: Drawn) -> Moments:
        return Moments.of(drawn.astype(np.float64) / PLACES, self.statistic.degrees)

    def _success(self, eps: float) -> float:
        return 1 - math.exp(-eps / 2) / 2  # of a record in a corner; others move several sums by less

    def _mu(self, eps: float, groups: int) -> float:
        sums = math.prod(degree + 1 for degree in self.statistic.degrees)
        return mu_of_laplace(eps + sums * groups * on_lattice(float(self.eps) / PLACES))

    def worlds(self, records: FloatArray, summary: Summary) -> tuple[FloatArray, float]:
        raise ParameterError(f"the exact identifiability of {self.statistic.label}, of two columns, is not supported.")

    def loss_between_worlds(self, summary: Summary) -> FloatArray:
        assert summary.other is not None
        apart = [
            total_variation(column_summary, interval, degree)
            for column_summary, interval, degree in zip(
                (summary, summary.other), (self.universe, self.universe.other), self.statistic.degrees, strict=True
            )
        ]
        largest = np.minimum(1 - (1 - apart[0]) * (1 - apart[1]) + ROUNDED, 1.0)
        return np.where(summary.n > 0, 2 * float(self.eps) * largest, 0.0)


def total_variation(summary: Summary, universe: Universe, degree: int) -> FloatArray:
    """Largest total variation between the shares of two of these records, by one column, shape (G,)."""
    assert summary.lowest is not None and summary.highest is not None
    grid = PlaceGrid.of(universe)
    low, high = (grid.placed(ends[0]) / PLACES for ends in (summary.lowest, summary.highest))
    return high - low if degree == 1 else np.maximum(high**2 - low**2, (1 - low) ** 2 - (1 - high) ** 2)


@dataclass(frozen=True, slots=True)
class _Reach:
    """Bounds on the error of moments of noisy sums, in their own units."""

    moments: Moments
    size: FloatArray  # number of records times eps; shape (G,)
    level: float
    critical: Critical  # as `BernsteinProducts.critical`
    # `off`, `other_off`: by how much the means may be off; shape (G,)
    off: FloatArray
    other_off: FloatArray

    @classmethod
    def of(cls, moments: Moments, size: FloatArray, level: float, critical: Critical) -> _Reach:
        """The bounds for these noisy moments."""
        mean, other_mean = np.clip(moments.mean, 0.0, 1.0), np.clip(moments.other_mean, 0.0, 1.0)
        within = replace(moments, mean=mean, other_mean=other_mean)
        influences = within.influence_of_mean(), within.influence_of_other_mean()
        return cls(moments, size, level, critical, *(critical(influence, level) / size for influence in influences))

    def of_cov(self) -> FloatArray:
        """Bound for the covariance."""
        return self._worst(Moments.influence_of_cov) + self.off * self.other_off + ROUNDING

    def of_slope(self) -> tuple[FloatArray, FloatArray]:
        """The covariance over the variance of the other column, and a bound on its error."""
        var, sure = self._sure(self.moments.other_var, Moments.influence_of_other_var, self.other_off)
        slope = self.moments.cov / var

        def influence(moments: Moments) -> FloatArray:
            return moments.influence_of_cov() - _tiled(slope) * moments.influence_of_other_var()

        slack = self.off * self.other_off + np.abs(slope) * self.other_off**2 + ROUNDING * (1 + np.abs(slope))
        return slope, _of_ratio(self._worst(influence) + slack, np.where(sure > VARIES, sure, 0.0))

    def of_corr(self) -> tuple[FloatArray, FloatArray]:
        """The covariance over both standard deviations, and a bound on its error.

        The product of these is ``(q v_x + v_y / q) / 2`` with q their ratio, a sum of variances: as long as q is known,
        the noises enter it as they enter those.
        """
        var, sure = self._sure(self.moments.var, Moments.influence_of_var, self.off)
        other_var, other_sure = self._sure(self.moments.other_var, Moments.influence_of_other_var, self.other_off)
        both, q = np.sqrt(var * other_var), np.sqrt(other_var / var)
        ratio = self.moments.cov / both
        corr = np.clip(ratio, -1.0, 1.0)

        def below(moments: Moments) -> FloatArray:
            quotient = _tiled(q)
            return (quotient * moments.influence_of_var() + moments.influence_of_other_var() / quotient) / 2

        def influence(moments: Moments) -> FloatArray:
            return moments.influence_of_cov() - _tiled(corr) * below(moments)

        unlike = (np.log(sure / var) ** 2 + np.log(other_sure / other_var) ** 2) / 8  # of q, in units of both
        slack_below = (q * self.off**2 + self.other_off**2 / q) / 2 + ROUNDING * (q + 1 / q) + both * unlike
        slack = self.off * self.other_off + ROUNDING + np.abs(corr) * slack_below
        vary = (sure > VARIES) & (other_sure > VARIES)
        both_sure = np.where(vary, both - self._worst(below) - slack_below, 0.0)
        return ratio, _of_ratio(self._worst(influence) + slack, both_sure)

    def _sure(
        self, var: FloatArray, influence: Callable[[Moments], FloatArray], off: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A variance, and a lower bound of it; both are at least tiny."""
        var = np.maximum(var, TINY)
        return var, np.maximum(var - self._worst(influence) - off**2 - ROUNDING, TINY)

    def _worst(self, influence: Callable[[Moments], FloatArray]) -> FloatArray:
        """Bound for a number that is linear in the sums: the worst over five pairs of the uncertain means."""
        way, other = WAYS[:, :, None]
        mean = np.clip(self.moments.mean + way * self.off, 0.0, 1.0).ravel()
        other_mean = np.clip(self.moments.other_mean + other * self.other_off, 0.0, 1.0).ravel()
        at = Moments(
            self.moments.degrees,
            _tiled(self.moments.n),
            mean,
            other_mean,
            np.clip(_tiled(self.moments.cov), -0.25, 0.25),
            np.clip(_tiled(self.moments.var), 0.0, mean * (1 - mean)),
            np.clip(_tiled(self.moments.other_var), 0.0, other_mean * (1 - other_mean)),
        )
        reach = self.critical(influence(at), self.level).reshape(WAYS.shape[1], -1).max(axis=0)
        return reach / self.size


def _tiled(values: FloatArray) -> FloatArray:
    """Values of G groups, once for each of `WAYS`."""
    return np.tile(values, WAYS.shape[1])


def _of_ratio(reach: FloatArray, sure: FloatArray) -> FloatArray:
    """Bound on the error of a ratio r, from a bound on the error of ``above - r below``.

    At another ratio that is farther by the difference times what ``below`` may be off: hence by what is sure of it.
    """
    return np.where(sure > TINY, reach / np.maximum(sure, TINY), np.inf)
