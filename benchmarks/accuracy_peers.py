"""Other libraries that answer the same questions, prepared as their manuals do it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuracy_data import LEVELS
from cases import imported

__all__ = ["PEERS", "Peer", "opendp_candidates"]

FloatArray = NDArray[np.float64]
Call = Callable[[], float]
Measurement = Callable[[FloatArray], float]
Bounds = tuple[float, float]
CANDIDATES = 1001  # of a quantile by OpenDP: more would take minutes a row


@dataclass(frozen=True)
class Peer:
    """A library, and how it answers a statistic of values within bounds at eps.

    ``prepared(module, statistic, x, bounds, eps)`` is a call that draws one answer, or None where there is no such
    statistic.
    """

    name: str
    module: str
    prepared: Callable[[Any, str, FloatArray, Bounds, float], Call | None]
    private_n: bool = True

    def found(self) -> ModuleType | str:
        """The module, or in words why there is none."""
        return imported(self.module)


def diffprivlib(tools: Any, statistic: str, x: FloatArray, bounds: Bounds, eps: float) -> Call | None:
    """``diffprivlib.tools``; it takes the number of records as public in all but a count."""
    if statistic == "count":
        return lambda: tools.count_nonzero(np.ones(len(x)), epsilon=eps)
    if statistic in ("sum", "mean", "var", "std", "median"):
        return lambda: getattr(tools, statistic)(x, epsilon=eps, bounds=bounds)
    if statistic.startswith("quantile"):
        return lambda: tools.quantile(x, LEVELS[statistic], epsilon=eps, bounds=bounds)
    return None


def _opendp_space(dp: Any) -> tuple[Any, Any]:
    dp.enable_features("contrib")
    return dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()


@cache
def _opendp_sum(dp: Any, limits: Bounds, eps: float) -> Measurement:
    clamped = _opendp_space(dp) >> dp.t.then_clamp(limits) >> dp.t.then_sum()
    return dp.binary_search_chain(lambda scale: clamped >> dp.m.then_laplace(scale), d_in=1, d_out=eps)


@cache
def _opendp_count(dp: Any, eps: float) -> Measurement:
    counted = _opendp_space(dp) >> dp.t.then_count()
    return dp.binary_search_chain(lambda scale: counted >> dp.m.then_laplace(scale), d_in=1, d_out=eps)


def opendp_candidates(bounds: Bounds) -> FloatArray:
    """Those that quantiles are chosen among: whole numbers if these are some hundreds."""
    width = bounds[1] - bounds[0]
    return np.linspace(*bounds, round(width) + 1 if 100 < width < CANDIDATES - 1 else CANDIDATES)


@cache
def _opendp_quantile(dp: Any, bounds: Bounds, level: float, eps: float) -> Measurement:
    candidates = opendp_candidates(bounds).tolist()
    domain, metric = _opendp_space(dp)
    return dp.binary_search_chain(
        lambda scale: dp.m.make_private_quantile(domain, metric, dp.max_divergence(), candidates, level, scale),
        d_in=1, d_out=eps,
    )  # fmt: skip


def opendp(dp: Any, statistic: str, x: FloatArray, bounds: Bounds, eps: float) -> Call | None:
    """A clamped sum, a count and their quotient, eps/2 each; a variance with a third of eps for the sum of squares."""

    def total(limits: Bounds, share: float) -> Measurement:
        return _opendp_sum(dp, limits, share)

    def count(share: float) -> Measurement:
        return _opendp_count(dp, share)

    if statistic in LEVELS:
        chosen = _opendp_quantile(dp, bounds, LEVELS[statistic], eps)
        return lambda: chosen(x)
    if statistic == "count":
        whole = count(eps)
        return lambda: whole(x)
    if statistic == "sum":
        every = total(bounds, eps)
        return lambda: every(x)
    if statistic == "mean":
        every, whole = total(bounds, eps / 2), count(eps / 2)
        return lambda: _within(every(x) / max(whole(x), 1), *bounds)
    if statistic in ("var", "std"):
        lo, hi = bounds
        every, whole = total(bounds, eps / 3), count(eps / 3)
        squares = total((min(lo * lo, hi * hi), max(lo * lo, hi * hi)), eps / 3)

        def spread() -> float:
            n = max(whole(x), 1)
            mean = _within(every(x) / n, lo, hi)
            return _within(squares(x * x) / n - mean**2, 0, (hi - lo) ** 2 / 4)

        return spread if statistic == "var" else lambda: math.sqrt(spread())
    return None


def pydp(algorithms: Any, statistic: str, x: FloatArray, bounds: Bounds, eps: float) -> Call | None:
    """``pydp.algorithms.laplacian``, Google's library."""
    records = x.tolist()
    names = {
        "sum": "BoundedSum", "mean": "BoundedMean", "var": "BoundedVariance", "std": "BoundedStandardDeviation",
        "median": "Median", "min": "Min", "max": "Max",
    }  # fmt: skip
    limits = {"lower_bound": bounds[0], "upper_bound": bounds[1]}
    if statistic == "count":
        algorithm = algorithms.Count(epsilon=eps, dtype="float")
    elif statistic.startswith("quantile"):
        algorithm = algorithms.Percentile(epsilon=eps, percentile=LEVELS[statistic], dtype="float", **limits)
    else:
        algorithm = getattr(algorithms, names[statistic])(epsilon=eps, dtype="float", **limits)
    return lambda: algorithm.quick_result(records)


def pipelinedp(dp: Any, statistic: str, x: FloatArray, bounds: Bounds, eps: float) -> Call | None:
    """``pipeline_dp.dp_computations``, which its engines call with sums made before. Its quantiles are PyDP's."""
    lo, hi = bounds
    middle = dp.compute_middle(lo, hi)
    laplace = dp.LaplaceMechanism.create_from_epsilon
    n, centred, squares = len(x), float((x - middle).sum()), float(((x - middle) ** 2).sum())
    if statistic == "count":
        count = laplace(eps, 1)
        return lambda: count.add_noise(n)
    if statistic == "sum":
        whole, total = laplace(eps, max(abs(lo), abs(hi))), float(x.sum())
        return lambda: whole.add_noise(total)
    if statistic == "mean":
        mean = dp.MeanMechanism(middle, laplace(eps / 2, 1), laplace(eps / 2, (hi - lo) / 2))
        return lambda: _within(mean.compute_mean(n, centred)[2], lo, hi)
    if statistic in ("var", "std"):
        kind = laplace(eps, 1).noise_kind
        rules = dp.ScalarNoiseParams(eps, 0.0, lo, hi, None, None, 1, 1, kind)

        def spread() -> float:
            return _within(dp.compute_dp_var(n, centred, squares, rules)[3], 0, (hi - lo) ** 2 / 4)

        return spread if statistic == "var" else lambda: math.sqrt(spread())
    return None


def _within(value: float, lo: float, hi: float) -> float:
    """A user's last step: nobody reports what is impossible."""
    return min(max(float(value), lo), hi)


PEERS = (
    Peer("diffprivlib", "diffprivlib.tools", diffprivlib, private_n=False),
    Peer("OpenDP", "opendp.prelude", opendp),
    Peer("PyDP", "pydp.algorithms.laplacian", pydp),
    Peer("PipelineDP", "pipeline_dp.dp_computations", pipelinedp),
)
