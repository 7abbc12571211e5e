"""Least squares over noisy margins, against dense matrices; and what share of eps measures each."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from margin_tables import EVERY, component, laplace, matrix, people, summed, variance
from pdrisk._core.margins.allotment import alloted, spread
from pdrisk._core.margins.components import broadcast_sum, components, means, of_means
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.statistics import Count
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.laws.fieller import CELLS, share_interval
from pdrisk._mechanisms.laws.laplace_sums import critical_of_sum
from pdrisk._mechanisms.margin_estimates import EstimateNoise, estimated_shares
from pdrisk.errors import ParameterError

DESIGNS = {
    "two ways": ((3, 4), [(0, 1), (0,), ()]),
    "cells alone": ((3, 4), [(0, 1)]),
    "three ways": ((2, 3, 4), [(0, 1, 2), (0, 1), (2,)]),
    "overlaps without cells": ((2, 3, 4), [(0, 1), (1, 2)]),
    "a column of one key": ((2, 1, 3), [(0, 1, 2), (1,), (1, 2)]),
    "four ways": ((2, 2, 2, 3), [(0, 1, 2, 3), (1, 3), (0, 2), ()]),
    "one way": ((5,), [(0,), ()]),
}


@pytest.fixture(params=DESIGNS.values(), ids=DESIGNS)
def measured(request):
    """Sizes, variances and noisy numbers of a design."""
    sizes, margins = request.param
    random = np.random.default_rng(31)
    variances = {axes: random.uniform(0.5, 5) for axes in margins}
    shapes = {axes: [size if axis in axes else 1 for axis, size in enumerate(sizes)] for axes in margins}
    return sizes, variances, {axes: random.normal(size=shape) for axes, shape in shapes.items()}


def dense(sizes, variances, numbers, axes):
    """Estimates of a margin, their covariances, and their weights of all measured cells, by the pseudoinverse."""
    rows = np.vstack([matrix(sizes, each) / math.sqrt(v) for each, v in variances.items()])
    wanted = matrix(sizes, axes) @ np.linalg.pinv(rows)
    seen = np.concatenate([numbers[each].ravel() / math.sqrt(v) for each, v in variances.items()])
    scales = np.concatenate([np.full(numbers[each].size, math.sqrt(v)) for each, v in variances.items()])
    return wanted @ seen, wanted @ wanted.T, wanted / scales


def known(sizes, variances):
    return [axes for axes in EVERY[len(sizes)] if any(set(axes) <= set(each) for each in variances)]


class TestEstimates:
    """They are those of generalised least squares over all that was measured."""

    def test_values(self, measured):
        sizes, variances, numbers = measured
        design = MeasuredMargins(sizes, variances)
        found = design.estimated_components(numbers)
        for axes in known(sizes, variances):
            wanted = dense(sizes, variances, numbers, axes)[0]
            assert np.abs(design.estimate(found, axes).ravel() - wanted).max() < 1e-9

    def test_variances(self, measured):
        sizes, variances, numbers = measured
        for axes in known(sizes, variances):
            covariances = dense(sizes, variances, numbers, axes)[1]
            assert np.abs(np.diag(covariances) - MeasuredMargins(sizes, variances).variance(axes)).max() < 1e-9

    def test_weights(self, measured):
        """Each measured cell has its weight, and as many cells have one as is said."""
        sizes, variances, numbers = measured
        for axes in known(sizes, variances):
            wanted = dense(sizes, variances, numbers, axes)[2]
            found = [(each.weight, each.cells) for each in MeasuredMargins(sizes, variances).weights(axes)]
            listed = np.sort(np.repeat(*map(np.array, zip(*found, strict=True))))
            assert np.abs(listed - np.sort(wanted, axis=1)).max() < 1e-9

    def test_weights_in_a_cell_and_in_the_margin_around_it(self, measured):
        """The difference of both, as in a share, has the variance that dense matrices give."""
        sizes, variances, numbers = measured
        for axes in known(sizes, variances):
            for within in (part for part in EVERY[len(sizes)] if set(part) <= set(axes)):
                cell, margin = (dense(sizes, variances, numbers, each)[2] for each in (axes, within))
                labels = np.indices([sizes[axis] if axis in axes else 1 for axis in range(len(sizes))])
                flat = [size if axis in within else 1 for axis, size in enumerate(sizes)]
                places = np.ravel_multi_index([own.ravel() % flat[at] for at, own in enumerate(labels)], flat)
                own = np.concatenate([np.full(numbers[each].size, v) for each, v in variances.items()])
                wanted = ((cell - 0.3 * margin[places]) ** 2 @ own).max()
                found = MeasuredMargins(sizes, variances).weights(axes, within)
                total = sum(w.cells * variances[w.axes] * (w.weight - 0.3 * w.within) ** 2 for w in found)
                assert total == pytest.approx(wanted, abs=1e-9)

    def test_they_add_up(self, measured):
        sizes, variances, numbers = measured
        design, k = MeasuredMargins(sizes, variances), len(sizes)
        found = design.estimated_components(numbers)
        for axes, part in itertools.product(known(sizes, variances), repeat=2):
            if set(part) <= set(axes):
                sums = summed(design.estimate(found, axes), part, k)
                assert np.abs(sums - design.estimate(found, part)).max() < 1e-9

    def test_what_nothing_measured_is_refused(self):
        design = MeasuredMargins((2, 3, 4), {(0, 1): 1.0, (1, 2): 1.0})
        for asked in (design.variance, lambda axes: list(design.weights(axes)), lambda axes: design.estimate({}, axes)):
            with pytest.raises(ParameterError, match="no measured table has together"):
                asked((0, 2))

    def test_a_printed_number(self):
        """Ten cells and their total, all with variance 1: the total is known from both, 10 / 11 of it from itself."""
        design = MeasuredMargins((10,), {(0,): 1.0, (): 1.0})
        assert design.variance(()) == pytest.approx(10 / 11)
        assert sorted((each.weight, each.cells) for each in design.weights(())) == [
            (pytest.approx(1 / 11), 10),
            (pytest.approx(10 / 11), 1),
        ]


class TestComponents:
    """They are orthogonal projections."""

    def test_against_kronecker_products(self):
        table = np.random.default_rng(1).normal(size=(3, 2, 4))
        for axes, found in components(table, 3, (0, 1, 2)).items():
            wanted = (component((3, 2, 4), axes) @ table.ravel()).reshape(3, 2, 4)
            assert np.abs(found - wanted).max() < 1e-12

    def test_weighted_sums_of_means(self):
        table = np.random.default_rng(2).normal(size=(3, 2, 4))
        weights = dict(zip(EVERY[3], np.arange(8.0), strict=True))
        shares = of_means(weights)
        found = broadcast_sum({axes: each * shares[axes] for axes, each in means(table, 3, (0, 1, 2)).items()}, 3)
        wanted = sum(weights[axes] * component((3, 2, 4), axes) for axes in weights) @ table.ravel()
        assert np.abs(found.ravel() - wanted).max() < 1e-12


class TestIntervals:
    """Intervals hold the exact numbers of cells and of all margins, 95 times out of 100."""

    @pytest.mark.parametrize(("sizes", "n"), [((8, 5), 400), ((4, 3, 5), 2000), ((3, 2, 2, 4), 300)])
    @pytest.mark.parametrize("eps", [0.1, 0.6, 2.0])
    def test_coverage(self, sizes, n, eps):
        random, k, tables = np.random.default_rng(int(n * eps)), len(sizes), 400
        table = people(random, sizes, n)
        shares = {axes: float(share) for axes, share in alloted(sizes, EVERY[k]).items()}
        shares = {axes: share / 2 for axes, share in shares.items()} | {(0,): shares.get((0,), 0) / 2 + 0.5}
        scales = {axes: 1 / (eps * share) for axes, share in shares.items()}
        design = MeasuredMargins(sizes, {axes: variance(scale) for axes, scale in scales.items()})
        exact = {axes: summed(table, axes, k) for axes in EVERY[k]}
        noisy = {axes: exact[axes] + laplace(random, s, (tables, *exact[axes].shape)) for axes, s in scales.items()}
        found = design.estimated_components(noisy)
        for axes in EVERY[k]:
            bound = float(EstimateNoise.of(design.weights(axes), scales).bound(np.ones((1, 1)), 0.95)[0])
            error = np.abs(design.estimate(found, axes) - exact[axes])
            doubt = 3 * math.sqrt(0.05 * 0.95 / tables)  # as if all cells of a table were one
            assert 0.945 - doubt * (len(axes) < k) <= (error <= bound).mean() <= 0.97 + doubt


class TestShareInterval:
    """All shares for which the noise of part - share * whole is likely, where it is not the same at both ends."""

    def test_by_trying_all(self):
        m = np.linspace(0, 1, CELLS + 1)
        bounds = 1.0 + 4.0 * (m - 0.3) ** 2  # convex, and not symmetric
        parts, wholes = np.array([3.0, 0.5, 9.0, -1.0, 20.0]), np.array([10.0, 10.0, 12.0, 8.0, 20.0])
        low, high = share_interval(parts, wholes - parts, bounds)
        for part, whole, *found in zip(np.maximum(parts, 0), wholes, low, high, strict=True):
            whole = max(part, 0) + max(whole - part, 0) if part > 0 else whole + 1  # what is below 0 counts as 0
            likely = m[np.abs(part - m * whole) <= bounds + 1e-9]
            assert found == pytest.approx([likely.min(), likely.max()], abs=2 / CELLS)

    def test_of_nobody(self):
        assert share_interval(np.array([-1.0]), np.array([0.5]), np.ones(CELLS + 1)) == (0.0, 1.0)


class TestEstimatedShares:
    """The noise of a part and that of its whole are of the same draws."""

    def test_of_one_of_two_cells(self):
        """part - r whole has the noise (1 - r) of one cell, and -r of the other."""
        line = calibrated("geometric", Count(), Universe(0.0, 1.0), Fraction(1, 2))
        weights = list(MeasuredMargins((2,), {(0,): 8.0}).weights((0,), ()))
        part, whole = np.array([40.0]), np.array([100.0])
        for r in map(float, np.concatenate(estimated_shares(line, part, whole, weights, {(0,): 2.0})(0.95))):
            bound = critical_of_sum(np.array([[1 - r], [r]]), 0.95)[0] * 2
            assert abs(part[0] - r * whole[0]) == pytest.approx(bound, rel=1e-3)


class TestAllotment:
    """Shares of eps follow from the sizes alone."""

    @pytest.mark.parametrize("sizes", [(2, 2), (5, 8), (3, 3, 3)])
    def test_small_tables_measure_their_cells_alone(self, sizes):
        assert alloted(sizes, EVERY[len(sizes)]) == {tuple(range(len(sizes))): 1}

    def test_printed_shares(self):
        """Issue 31: 16 x 10 measures cells and total, 400 x 10 cells and columns, 51 x 6 x 4 cells and 6 x 4."""
        assert alloted((16, 10), EVERY[2]) == {(): Fraction(24, 100), (0, 1): Fraction(76, 100)}
        assert alloted((400, 10), EVERY[2]) == {(1,): Fraction(49, 100), (0, 1): Fraction(51, 100)}
        assert alloted((51, 6, 4), EVERY[3]) == {(1, 2): Fraction(48, 100), (0, 1, 2): Fraction(52, 100)}

    def test_printed_noise(self):
        """The same design: of 16 x 10 cells 1.3, margins 4 and 5 and the total 4 times the noise at the whole eps."""
        shares = alloted((16, 10), EVERY[2])
        assert [round(spread((16, 10), shares, axes), 1) for axes in EVERY[2]] == [4.0, 4.0, 5.0, 1.3]

    @pytest.mark.parametrize("sizes", [(16, 10), (4, 30), (6, 5, 4)])
    def test_no_allotment_in_steps_of_a_tenth_is_better(self, sizes):
        """All of them, by the variances of dense matrices."""
        k = len(sizes)
        tables = EVERY[k] if k == 2 else [(0, 1, 2), (0,), ()]
        own = alloted(sizes, tables)

        def mean_log(shares):
            variances = {axes: 2 / float(share) ** 2 for axes, share in shares.items() if share}
            design = MeasuredMargins(sizes, variances)
            return sum(math.log(design.variance(axes)) for axes in tables) / len(tables)

        grid = (each for each in itertools.product(range(11), repeat=len(tables)) if sum(each) == 10)
        others = (dict(zip(tables, (each / 10 for each in parts), strict=True)) for parts in grid)
        assert mean_log(own) <= min(mean_log(each) for each in others if each[tuple(range(k))]) + 1e-3

    @pytest.mark.parametrize("sizes", [(1,), (1, 1), (7,), (1000,), (2, 1, 3), (2,) * 6])
    def test_shares_are_hundredths_of_one(self, sizes):
        shares = alloted(sizes, [tuple(range(len(sizes))), ()])
        assert sum(shares.values()) == 1
        assert all(share > 0 and (100 * share).denominator == 1 for share in shares.values())
        assert tuple(range(len(sizes))) in shares

    def test_only_what_is_published_is_measured(self):
        assert set(alloted((400, 10), [(0, 1), ()])) <= {(0, 1), ()}
