"""Allotment of eps to the margins of a table, from their sizes alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from pdrisk._core.margins.components import Axes, product, subsets
from pdrisk._core.summary import FloatArray

STEPS: Final = 100  # shares are whole multiples of one over this
ROUNDS: Final = 300  # of the descent, for each start
RATE: Final = 0.5
TINY: Final = 1e-12


def alloted(sizes: Sequence[int], margins: Collection[Axes]) -> dict[Axes, Fraction]:
    """Shares of eps at which the mean log standard deviation of the published tables is least.

    Noise of scale 1/eps has variance ``2 / eps**2``, and estimates are those of `MeasuredMargins`. The mean is not
    convex in the shares: exponentiated gradient descent (Kivinen & Warmuth 1997) starts from several of them.

    ``sizes``: of the axes of the table.
    ``margins``: the published tables, the cells among them: only these are measured.
    Returns: of those that are measured, hundredths that add up to 1; at least one of the cells'.
    """
    problem = _Problem(tuple(sizes), sorted(margins, key=lambda axes: (len(axes), axes)))
    best = min((_rounded(problem.descended(start)) for start in problem.starts()), key=problem.mean_log)
    return {axes: Fraction(int(steps), STEPS) for axes, steps in zip(problem.margins, best, strict=True) if steps}


def spread(sizes: Sequence[int], shares: Mapping[Axes, Fraction], axes: Axes) -> float:
    """Standard deviation of the cells of a margin, as a multiple of that of noise at the whole eps.

    For Laplace noise; that of whole numbers differs a little.
    """
    problem = _Problem(tuple(sizes), list(shares))
    portions = np.array([float(shares[margin]) for margin in problem.margins])
    return math.sqrt(problem.variances(portions, [axes])[0] / 2)


class _Problem:
    """The published tables, and the numbers from which their variances come."""

    def __init__(self, sizes: tuple[int, ...], margins: list[Axes]) -> None:
        self.sizes, self.margins = sizes, margins
        self.parts = subsets(tuple(range(len(sizes))))
        # Row A, column C: what a share of C adds to the precision of component A.
        self.precision = np.array([[self._per_cell(part, axes) for axes in margins] for part in self.parts]) / 2
        self.use = self._uses(margins)

    def _per_cell(self, part: Axes, axes: Axes) -> float:
        if not set(part) <= set(axes):
            return 0.0
        return 1 / product(self.sizes, (axis for axis in axes if axis not in part))

    def _uses(self, tables: Sequence[Axes]) -> FloatArray:
        """Row B, column A: how much of the variance of component A is in a cell of table B."""
        centred = [math.prod(1 - 1 / self.sizes[axis] for axis in part) for part in self.parts]
        return np.array(
            [
                [share * self._per_cell(part, table) ** 2 for part, share in zip(self.parts, centred, strict=True)]
                for table in tables
            ]
        )

    def variances(self, shares: FloatArray, tables: Sequence[Axes]) -> FloatArray:
        """Variance of each table, in squares of the scale at the whole eps."""
        return self._uses(tables) @ (1 / (self.precision @ shares**2))

    def mean_log(self, shares: FloatArray) -> float:
        """What is minimised: the mean log variance of all published tables."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.use @ (1 / (self.precision @ (shares / shares.sum()) ** 2))).mean())

    def descended(self, shares: FloatArray) -> FloatArray:
        """Shares after the descent from these."""
        rate, value = RATE, self.mean_log(shares)
        for _ in range(ROUNDS):
            component = 1 / (self.precision @ shares**2)
            variance = self.use @ component
            slope = -2 * shares * (((self.use / variance[:, None]).mean(axis=0) * component**2) @ self.precision)
            moved = shares * np.exp(-rate * (slope - shares @ slope) / max(np.abs(slope).max(), TINY))
            moved /= moved.sum()
            new = self.mean_log(moved)
            if new > value:
                rate /= 2
                continue
            if value - new < TINY:
                break
            shares, value = moved, new
        return shares

    def starts(self) -> Iterator[FloatArray]:
        """Cells alone; and half for them, half for all others, the one-way tables, or one table of up to two ways."""
        others = list(range(len(self.margins) - 1))
        one_way = [at for at in others if len(self.margins[at]) == 1]
        few = [[at] for at in others if len(self.margins[at]) <= 2]
        alone = np.zeros(len(self.margins))
        alone[-1] = 1
        yield alone
        for chosen in filter(None, [others, one_way, *few]):
            start = alone / 2
            start[chosen] += 0.5 / len(chosen)
            yield start


def _rounded(shares: FloatArray) -> FloatArray:
    """Shares as whole numbers of steps that add up, by largest remainders; at least one for the cells, the last."""
    exact = shares * (STEPS - 1)
    exact[-1] += 1
    steps = np.floor(exact)
    steps[np.argsort(steps - exact, kind="stable")[: round(STEPS - steps.sum())]] += 1
    return steps
