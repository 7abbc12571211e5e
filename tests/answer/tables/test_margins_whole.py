"""Whole, non-negative cells whose sums are the margins: against quadratic programs by brute force, and their bias."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margin_tables import EVERY, component, laplace, matrix, nearest, people, summed, variance
from pdrisk._core.margins import nonnegative
from pdrisk._core.margins.allotment import alloted
from pdrisk._core.margins.least_squares import MeasuredMargins
from pdrisk._core.margins.nonnegative import nearest_tables, on_simplex, rounded_sum
from pdrisk._core.margins.whole import rounded, whole_table


def noisy(random, table, eps, shares=None):
    """Design of a table's margins and its estimated components, of noise at these shares of eps."""
    k, sizes = table.ndim, table.shape
    shares = alloted(sizes, EVERY[k]) if shares is None else shares
    scales = {axes: 1 / (eps * float(share)) for axes, share in shares.items()}
    design = MeasuredMargins(sizes, {axes: variance(scale) for axes, scale in scales.items()})
    exact = {axes: summed(table, axes, k) for axes in scales}
    drawn = {axes: exact[axes] + laplace(random, scale, exact[axes].shape) for axes, scale in scales.items()}
    return design, design.estimated_components(drawn)


class TestSimplex:
    """The nearest non-negative numbers with a total, and their rounding."""

    @given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.integers(0, 4))
    def test_against_a_quadratic_program(self, values, total):
        goal = np.array(values)
        wanted = nearest(np.eye(len(goal)), goal, np.ones((1, len(goal))), np.array([float(total)]))
        assert np.abs(on_simplex(goal, total) - wanted).max() < 1e-6

    @given(st.lists(st.floats(0, 50), min_size=1, max_size=9), st.integers(-3, 3))
    def test_rounding_by_largest_remainders(self, values, more):
        numbers = np.array(values)
        total = max(round(numbers.sum()) + (more if len(values) > 6 else 0), 0)
        if not np.floor(numbers).sum() <= total <= np.floor(numbers).sum() + len(values):
            return
        found = rounded_sum(numbers, total)
        assert found.sum() == total
        assert np.abs(found - numbers).max() <= 1
        up = found > np.floor(numbers)  # who is rounded up has no smaller remainder than who is not
        remainders = numbers - np.floor(numbers)
        assert up.all() or not up.any() or remainders[up].min() >= remainders[~up].max()


class TestNearestTable:
    """The real-valued table under the whole one is the nearest in the metric of least squares."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3)])
    def test_two_ways_keep_both_margins(self, sizes, seed):
        random = np.random.default_rng(seed)
        design, found = noisy(random, people(random, sizes, 30), 0.5)
        table, one_way = nearest_tables(sizes, found, design.component_variances)
        goal = design.estimate(found, (0, 1)).ravel()
        fixed = np.vstack([matrix(sizes, axes) for axes in ((0,), (1,))])
        wanted = nearest(np.eye(goal.size), goal, fixed, np.concatenate(one_way).astype(float))
        assert np.abs(table.ravel() - wanted).max() < 0.1

    @pytest.mark.parametrize("fixed", [[(), (0,), (1,), (2,)], [()]])
    def test_three_ways_with_some_components_kept(self, fixed):
        for seed in range(3):
            self.check_three_ways(fixed, np.random.default_rng(seed))

    def check_three_ways(self, fixed, random):
        sizes = (2, 2, 2)
        design, found = noisy(random, people(random, sizes, 40), 0.3, {(0, 1, 2): 0.5, (0, 1): 0.3, (2,): 0.2})
        v = design.component_variances
        total = np.maximum(design.estimate(found, ()), 1.0)
        wanted = found | {(): total} | {(axis,): 0.2 * found[(axis,)] for axis in range(3)}
        table, distance = nonnegative._split(sizes, (0, 1, 2), wanted, v, fixed)
        times = {axes: np.prod([sizes[axis] for axis in range(3) if axis not in axes]) for axes in EVERY[3]}
        form = sum(component(sizes, axes) * times[axes] / v[axes] for axes in EVERY[3])
        goal = sum(np.broadcast_to(wanted[axes] / times[axes], sizes) for axes in EVERY[3]).ravel()
        held = np.vstack([component(sizes, axes) for axes in fixed])
        best = nearest(form, goal, held, held @ goal)
        assert best is not None
        assert distance < 0.05
        assert np.abs(table.ravel() - best).max() < 0.3

    def test_tables_that_contradict_each_other_come_near(self):
        """Each pair of three columns always differs: no three people's answers do that."""
        sizes, pair = (2, 2, 2), np.array([[-10.0, 10.0], [10.0, -10.0]])
        found = {axes: np.zeros([2 if axis in axes else 1 for axis in range(3)]) for axes in EVERY[3]}
        found |= {(): np.full((1, 1, 1), 40.0), (0, 1): pair[:, :, None], (0, 2): pair[:, None], (1, 2): pair[None]}
        table, one_way = nearest_tables(sizes, found, dict.fromkeys(found, 1.0))
        assert table.min() >= 0
        assert [each.tolist() for each in one_way] == [[20, 20]] * 3
        for axis in range(3):
            assert np.abs(summed(table, (axis,), 3) - 20).max() < 0.2


@st.composite
def tables(draw):
    """A non-negative table of few cells, with whole one-way margins near its own."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    cells = draw(st.lists(st.floats(0, 9) | st.just(0.0), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes))))
    table = np.array(cells).reshape(sizes)
    total = int(np.rint(table.sum()))
    return table, [rounded_sum(summed(table, (axis,), len(sizes)).ravel(), total) for axis in range(len(sizes))]


class TestRounding:
    """Whole cells keep one-way margins exactly."""

    @given(tables())
    def test_one_way_margins_are_exact(self, drawn):
        table, one_way = drawn
        cells = rounded(table, one_way)
        assert cells.dtype == np.int64
        assert cells.min() >= 0
        for axis, wanted in enumerate(one_way):
            assert summed(cells, (axis,), table.ndim).ravel().tolist() == wanted.tolist()

    @given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=5), st.data())
    def test_any_one_way_margins_are_reached(self, rows, data):
        """Also those that are far from the table's own."""
        table = np.array(rows, dtype=float)
        one_way = [
            np.bincount(data.draw(st.lists(st.integers(0, size - 1), min_size=7, max_size=7)), minlength=size)
            for size in table.shape
        ]
        cells = rounded(table, one_way)
        assert cells.min() >= 0
        assert [cells.sum(axis=1).tolist(), cells.sum(axis=0).tolist()] == [each.tolist() for each in one_way]

    def test_cells_that_are_whole_stay(self):
        table = people(np.random.default_rng(0), (4, 5, 3), 300)
        one_way = [summed(table, (axis,), 3).ravel().astype(np.int64) for axis in range(3)]
        assert (rounded(table, one_way) == table).all()

    def test_margins_over_more_axes_are_near(self):
        """Moves of single people bring most margins over two axes, of some 20 cells each, within 1."""
        random = np.random.default_rng(3)
        table = random.gamma(0.5, 2, (5, 6, 4, 4))
        total = int(np.rint(table.sum()))
        one_way = [rounded_sum(summed(table, (axis,), 4).ravel(), total) for axis in range(4)]
        cells = rounded(table, one_way)
        off = [np.abs(summed(cells - table, axes, 4)).ravel() for axes in itertools.combinations(range(4), 2)]
        assert np.concatenate(off).max() < 3
        assert np.mean(np.concatenate(off) < 1) > 0.9


class TestWholeTable:
    """Counts as they are published."""

    @pytest.mark.parametrize("sizes", [(7,), (1,), (6, 5), (1, 4), (2, 3, 4), (3, 2, 2, 2), (2, 2, 2, 2, 2)])
    @pytest.mark.parametrize("eps", [0.01, 0.6, 5.0])
    def test_whole_and_never_negative(self, sizes, eps):
        """Also where noise is far larger than everything, and nobody is there."""
        random = np.random.default_rng(len(sizes))
        for n in (0, 3, 500):
            k = len(sizes)
            every = [axes for size in range(k + 1) for axes in itertools.combinations(range(k), size)]
            shares = dict.fromkeys(every, 1 / len(every))
            table = people(random, sizes, n)
            scales = {axes: 1 / (eps * share) for axes, share in shares.items()}
            design = MeasuredMargins(sizes, {axes: variance(scale) for axes, scale in scales.items()})
            exact = {axes: summed(table, axes, k) for axes in every}
            drawn = {axes: exact[axes] + laplace(random, scales[axes], exact[axes].shape) for axes in every}
            found = design.estimated_components(drawn)
            cells = whole_table(design, found)
            assert cells.shape == sizes
            assert cells.min() >= 0
            assert cells.sum() == max(np.rint(found[()]).item(), 0)

    @pytest.mark.parametrize(
        ("sizes", "n"), [((20, 8), 3000), ((6, 5, 4), 800), pytest.param((3, 12, 3, 4), 1500, marks=pytest.mark.slow)]
    )
    @pytest.mark.parametrize("eps", [0.1, 0.6, 2.0])
    def test_bias_of_the_total_and_one_way_margins_is_at_most_two_standard_errors(self, sizes, n, eps):
        random, k, times = np.random.default_rng(n), len(sizes), 40
        table = people(random, sizes, n, sparse=True)
        errors = {axes: [] for axes in EVERY[k] if len(axes) < 2}
        for _ in range(times):
            design, found = noisy(random, table, eps)
            cells = whole_table(design, found)
            for axes, listed in errors.items():
                listed.append(summed(cells - table, axes, k).ravel())
        for axes, listed in errors.items():
            assert np.abs(np.mean(listed, axis=0)).max() < 2 * np.sqrt(design.variance(axes))

    def test_totals_are_not_moved_up_as_cut_cells_are(self):
        """2,726 people in 9,792 cells: cut at 0 cell by cell they would seem to be thousands more."""
        random = np.random.default_rng(5)
        table = people(random, (4, 51, 6, 8), 2726, sparse=True)
        design, found = noisy(random, table, 0.6)
        cells = whole_table(design, found)
        cut = np.maximum(np.rint(design.estimate(found, (0, 1, 2, 3))), 0)
        assert cut.sum() - 2726 > 5000
        assert abs(cells.sum() - 2726) < 4 * np.sqrt(design.variance(()))
        assert np.abs(cells - table).mean() < np.abs(cut - table).mean() / 2

    def test_many_cells_of_one_column(self):
        """Issue 31: most of 1,000 cells are empty; the simplex moves them to 0 without moving the total up."""
        random = np.random.default_rng(7)
        chances = 1 / np.arange(1, 1001) ** 2.0
        table = random.multinomial(2000, chances / chances.sum()).astype(float)
        errors = {"cut": [], "whole": []}
        for _ in range(20):
            design, found = noisy(random, table, 1.0, {(0,): 1.0})
            errors["whole"].append(np.abs(whole_table(design, found) - table).mean())
            cells = table + laplace(random, 1.0, table.shape)  # the cells alone, at the whole eps
            errors["cut"].append(np.abs(np.maximum(cells, 0) - table).mean())
        assert np.mean(errors["whole"]) < 0.7 * np.mean(errors["cut"])
