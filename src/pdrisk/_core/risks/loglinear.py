"""Log-linear Poisson models of a population's classes, estimated from a sample: Skinner & Shlomo 2008."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdrisk._core.summary import FloatArray

Margin: TypeAlias = tuple[int, ...]  # the keys that it is by

MOST_CELLS: Final = 2**21  # combinations of keys' values for which interactions are fitted
SWEEPS: Final = 40
PRECISE: Final = 1e-6  # of everybody: a margin that is fitted as well is fitted
FITS: Final = 1.96  # of a criterion that is standard normal where the model holds


@dataclass(frozen=True, slots=True)
class LogLinear:
    """Log-linear model of classes: how many people of the population each is expected to have."""

    independent: FloatArray  # by main effects alone; shape (C,)
    chosen: FloatArray  # with the interactions that were chosen; shape (C,)
    interactions: tuple[tuple[int, int], ...]  # pairs of keys
    cells: int  # combinations of all values that occur


def log_linear(codes: Sequence[NDArray[np.integer[Any]]], sample: FloatArray, population: FloatArray) -> LogLinear:
    """Log-linear model of the sizes of classes in the population.

    Skinner & Shlomo 2008, "Assessing Identification Risk in Survey Microdata Using Log-Linear Models": the number of
    people in a cell is Poisson, and the logarithm of its mean a sum of effects of keys. Weights are fitted
    (pseudo-likelihood). Main effects alone underfit, and overestimate risks. So pairs of keys are added one by one
    (their forward selection), each time the one with the smallest criterion, until this says that the model fits. Of
    the pairs that remain, each is judged by one sweep of proportional fitting, and the one taken is fitted to the end.

    ``codes``: shape (C,). For each key, the values of classes that are in the sample, as codes.
    ``sample, population``: shape (C,). People of a class in the sample, and their weights' sum.
    """
    places = [np.unique(code, return_inverse=True) for code in codes]
    levels, at = [len(distinct) for distinct, _ in places], [place for _, place in places]
    total = population.sum()
    shares = [np.bincount(place, population, size) / total for place, size in zip(at, levels, strict=True)]
    independent: FloatArray = total * np.prod([share[place] for share, place in zip(shares, at, strict=True)], axis=0)
    cells = math.prod(levels)
    if cells > MOST_CELLS or len(levels) < 3:  # the pair of two keys would fit each class by itself
        return LogLinear(independent, independent, (), cells)
    flat = np.ravel_multi_index(at, levels)
    fraction = np.full(cells, sample.sum() / total)
    fraction[flat] = sample / population
    people, weights = (
        np.bincount(flat, numbers, cells).astype(np.float64, copy=False) for numbers in (sample, population)
    )
    table = CellTable(people, fraction, weights.reshape(levels))
    fit = table.fitted(np.full(levels, total / cells), ())
    pairs: tuple[tuple[int, int], ...] = ()
    misfit = table.misfit(fit)
    left = list(itertools.combinations(range(len(levels)), 2))
    while misfit > FITS and left:
        best = min(left, key=lambda pair: abs(table.misfit(table.scaled(fit, pair))))
        left.remove(best)
        better = table.fitted(fit, (*pairs, best))
        better_misfit = table.misfit(better)
        if abs(better_misfit) < misfit:
            fit, misfit, pairs = better, better_misfit, (*pairs, best)
    return LogLinear(independent, fit.reshape(-1)[flat], pairs, cells)


@dataclass(frozen=True, slots=True)
class CellTable:
    """Contingency table: cells of all combinations, those without anybody included."""

    # `sample`, `fraction`: people in the sample, and the share of the population that they are; shape (cells,)
    sample: FloatArray
    fraction: FloatArray
    population: FloatArray  # weights, with an axis for each key

    def scaled(self, fit: FloatArray, margin: Margin) -> FloatArray:
        """The fit in proportion to what the weights are in a margin."""
        others = tuple(axis for axis in range(fit.ndim) if axis not in margin)
        now, wanted = (table.sum(axis=others, keepdims=True) for table in (fit, self.population))
        ratio: FloatArray = np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
        return fit * ratio

    def fitted(self, fit: FloatArray, pairs: tuple[tuple[int, int], ...]) -> FloatArray:
        """Iterative proportional fitting of main effects and pairs, from a fit of fewer."""
        alone = [(axis,) for axis in range(fit.ndim) if all(axis not in pair for pair in pairs)]
        for _ in range(SWEEPS):
            before = fit
            for margin in (*pairs, *alone):
                fit = self.scaled(fit, margin)
            if float(np.abs(fit - before).sum()) <= PRECISE * float(fit.sum()):
                break
        return fit

    def misfit(self, fit: FloatArray) -> float:
        """The criterion B / sqrt(V): above 0 where too many would be unique, below 0 where too few."""
        size, share, f = fit.reshape(-1), self.fraction, self.sample
        mean = share * size
        first = (1 - share) * size * np.exp(-size)
        second = first * (1 - share) / (2 * share)
        spread = math.sqrt(float((first**2 * mean + 2 * second**2 * mean**2).sum()))
        return float((first * (f - mean) + second * ((f - mean) ** 2 - f)).sum()) / spread if spread > 0 else 0.0
