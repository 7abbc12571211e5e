"""Arithmetic with releases: a value, and an interval that holds for all of its parts at once."""

import math
import operator

import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.arithmetic.combined import _shown

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 50})
BOUNDS = (0, 5)


@pytest.fixture
def total():
    return FRAME.dprisk.sum("x", eps=1, bounds=BOUNDS)


@pytest.fixture
def people():
    return FRAME.dprisk.count(eps=1)


class TestValues:
    """A release is a number: its noisy value."""

    def test_conversions(self, total, people):
        assert float(total) == total.value
        assert round(total, 2) == round(total.value, 2)
        assert round(people) == people.value
        assert f"{total:.1f}" == f"{total.value:.1f}"

    @pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
    def test_order_gives_a_bool(self, compare, total, people):
        assert compare(total, people) is compare(total.value, people.value)
        assert compare(people, 100) is compare(people.value, 100)

    def test_equality_is_identity(self, total):
        assert total == total
        assert total != FRAME.dprisk.sum("x", eps=1, bounds=BOUNDS)
        assert total != total.value
        assert len({total, total}) == 1

    @pytest.mark.parametrize("operate", [operator.add, operator.sub, operator.mul, operator.truediv])
    def test_values_are_computed(self, operate, total, people):
        assert operate(total, people).value == operate(total.value, people.value)
        assert operate(total, 3).value == operate(total.value, 3)
        assert operate(3, people).value == operate(3, people.value)
        assert float(operate(operate(total, people), total)) == operate(operate(total.value, people.value), total.value)

    @pytest.mark.parametrize("other", ["a", None, True, [1]])
    def test_refusals(self, other, total):
        with pytest.raises(TypeError):
            total + other


class TestIntervals:
    """Each of k releases counts with its interval at 1 - .05/k, and the ends follow by interval arithmetic."""

    def test_of_two(self, total, people):
        level = 1 - 0.05 / 2
        (a, b), (c, d) = total.interval(level), people.interval(level)
        sums = total + people
        assert (sums.low, sums.high) == (pytest.approx(a + c), pytest.approx(b + d))
        differences = total - people
        assert (differences.low, differences.high) == (pytest.approx(a - d), pytest.approx(b - c))
        quotient = total / people
        assert (quotient.low, quotient.high) == (pytest.approx(a / d), pytest.approx(b / c))

    def test_a_release_counts_once(self, total):
        doubled = total + total
        assert (doubled.low, doubled.high) == (pytest.approx(2 * total.low), pytest.approx(2 * total.high))

    def test_a_negative_factor_turns_it_round(self, total):
        turned = total * -2
        assert (turned.low, turned.high) == (pytest.approx(-2 * total.high), pytest.approx(-2 * total.low))
        assert (-total).value == -total.value

    def test_a_divisor_that_may_be_zero(self, total, noiseless):
        nobody = FRAME.dprisk.count(eps=1, where="x > 9")
        quotient = total / (nobody - 1)
        assert (quotient.low, quotient.high) == (-math.inf, math.inf)

    def test_a_divisor_whose_interval_ends_at_zero(self, noiseless):
        nobody = FRAME.dprisk.count(eps=1, where="x > 9")
        assert nobody.low == 0 < nobody.high
        for quotient in (5 / nobody, nobody / nobody, -5 / nobody):
            assert quotient.interval() == (-math.inf, math.inf)

    @pytest.mark.slow
    def test_it_holds_at_once(self):
        covered = 0
        for _ in range(400):
            total, people = FRAME.dprisk.sum("x", eps=1, bounds=BOUNDS), FRAME.dprisk.count(eps=1)
            mean = total / people
            covered += mean.low <= 2.5 <= mean.high
        assert covered >= 375  # 95 % of 400 is 380; Bonferroni is wider

    def test_repr_says_what_it_is(self, total, people):
        assert "95 % noise interval" in repr(total / people)
        assert "of 2 noisy answers" in repr(total / people)
        assert "of 1 noisy answer)" in repr(people + 1)
        assert isinstance(total / people, type(total + 1))

    def test_repr_of_a_zero(self):
        assert _shown(math.nextafter(0.0, -1.0)) == _shown(0.0) == "0"  # an exact end is moved by one float
        assert _shown(-1.5) == "-1.5"

    def test_nothing_is_paid(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=5)
        with ledger:
            one, other = FRAME.dprisk.count(eps=1), FRAME.dprisk.count(eps=1)
            assert (one - other).value == one.value - other.value
        assert ledger.remaining().eps == 3
