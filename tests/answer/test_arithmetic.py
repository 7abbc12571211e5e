"""Arithmetic with releases: values of what was drawn, and intervals by the law of all noise."""

import copy
import math
import operator
import pickle

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
        assert operate(total, people).value == pytest.approx(operate(total.value, people.value))
        assert operate(total, 3).value == pytest.approx(operate(total.value, 3))
        assert operate(3, people).value == pytest.approx(operate(3, people.value))
        twice = operate(operate(total.value, people.value), total.value)
        assert float(operate(operate(total, people), total)) == pytest.approx(twice)

    @pytest.mark.parametrize("other", ["a", None, True, [1]])
    def test_refusals(self, other, total):
        with pytest.raises(TypeError):
            total + other

    def test_the_interval_of_a_sample_is_that_of_a_single_answer(self, total, people):
        assert (total - people).interval(kind="noise") == (total - people).interval()
        with pytest.raises(pdrisk.ParameterError, match="known for single answers"):
            (total - people).interval(kind="sampling")


class TestUncut:
    """Values are computed from what was drawn, and cut once, to the range of the whole."""

    @pytest.fixture
    def less(self, monkeypatch):
        """All noise is -203 steps."""
        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda exact, *_: exact - 203)

    def test_sums_of_counts_are_not_those_of_cut_counts(self, less, people):
        nobody = FRAME.dprisk.count(eps=1, where="x > 2")  # 100, drawn as -103
        assert (people.value, nobody.value) == (0, 0)
        assert (nobody + people).value == 0  # -106
        assert (nobody - people).value == -100
        assert (people - 2 * nobody).value == 203
        assert (5 - nobody).value == 5  # and not 108, which no count leaves of 5

    def test_a_draw_counts_once(self, total, people):
        mean = FRAME.dprisk.mean("x", eps=1, bounds=BOUNDS)
        assert (mean - mean).interval() == (0, 0) and (mean - mean).value == 0
        for same in (people, copy.deepcopy(people), pickle.loads(pickle.dumps(people))):
            assert (people - same).interval() == (0, 0)
        both = (total + people) - people
        assert both.interval() == pytest.approx(total.interval())
        assert (people / people).interval() == pytest.approx((1, 1), abs=1e-12)

    def test_answers_that_are_chosen_count_once_too(self):
        median = FRAME.dprisk.median("x", eps=5, bounds=BOUNDS, interval=True)
        assert (median - median).interval() == (0, 0)
        assert (median + median).interval() == pytest.approx((2 * median.low, 2 * median.high))

    def test_what_is_withheld_makes_nothing_known(self, tmp_path):
        rule = {"least_group": {"size": 10_000, "eps": 1}}
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=9, policy=rule)
        both = FRAME.dprisk.count(eps=1, ledger=ledger) + FRAME.dprisk.count(eps=1)
        assert math.isnan(both.value) and all(map(math.isnan, both.interval()))


class TestIntervals:
    """By the exact law of all noise for sums and ratios; else each of k releases counts at 1 - .05/k."""

    @pytest.mark.parametrize(("many", "half"), [(2, 8), (10, 18), (50, 39)])
    def test_of_sums_of_counts(self, many, half):
        """RELEASES.md, section 2: at eps .5 Bonferroni had 14, 110, 700."""
        releases = [FRAME.dprisk.count(eps=0.5) for _ in range(many)]
        sums = sum(releases[1:], releases[0])
        assert (sums.value - sums.low, sums.high - sums.value) == (half, half)
        assert sums.interval(0.5)[1] - sums.value < half

    def test_of_two_laplace_sums(self, total):
        """|X + Y| of scale 5 exceeds t with probability (1 + t/10) exp(-t/5): at t = 23.72 that is .0293 + ..."""
        other = FRAME.dprisk.sum("x", eps=1, bounds=BOUNDS)
        for both in (total + other, total - other):
            t = (both.high - both.low) / 2 / 5
            assert (1 + t / 2) * math.exp(-t) == pytest.approx(0.05, rel=0.003)  # equal scales are told apart by .2 %

    def test_of_a_ratio(self, total, people):
        """Fieller: all r with |total - r people| within its noise."""
        quotient = total / people
        for r in (quotient.low, quotient.high):
            # Whole noise of scale 1 reaches as far as continuous noise and ln(2 / (1 + 1/e)).
            t = abs(total.value - r * people.value) - abs(r) * math.log(2 / (1 + math.exp(-1)))
            a, b = 5.0, abs(r)  # scales
            assert (a**2 * math.exp(-t / a) - b**2 * math.exp(-t / b)) / (a**2 - b**2) == pytest.approx(0.05, rel=1e-5)

    def test_of_a_share(self):
        one, other = (FRAME.dprisk.count(eps=1, where=f"x {sign} 2") for sign in ("<=", ">"))
        share = one / (one + other)
        apart = one / FRAME.dprisk.count(eps=1)
        assert 0 < share.low < share.value < share.high < 1
        assert share.high - share.low < 1.1 * (apart.high - apart.low)

    def test_of_what_only_its_ends_are_known(self):
        median, people = FRAME.dprisk.median("x", eps=5, bounds=BOUNDS, interval=True), FRAME.dprisk.count(eps=1)
        (a, b), (c, d) = median.interval(0.975), people.interval(0.975)
        both = median + people
        assert both.interval() == pytest.approx((a + c, b + d))
        # The counts are one sum, however many they are.
        with_three = median + people + FRAME.dprisk.count(eps=1) + FRAME.dprisk.count(eps=1)
        assert with_three.high - with_three.low < (b - a) + 3 * (d - c)

    def test_a_release_counts_once(self, total):
        doubled = total + total
        assert (doubled.low, doubled.high) == (pytest.approx(2 * total.low), pytest.approx(2 * total.high))

    def test_levels(self, people):
        with pytest.raises(pdrisk.ParameterError, match="level"):
            (people + 1).interval(1.5)

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
        assert (5 / nobody).interval() == (0, math.inf)
        assert (-5 / nobody).interval() == (-math.inf, 0)
        assert (nobody / FRAME.dprisk.count(eps=1, where="x > 9")).interval() == (0, math.inf)
        assert (5 / (nobody - 1)).interval() == (-math.inf, math.inf)
        assert (nobody / 0).interval() == (-math.inf, math.inf) and math.isnan((nobody / 0).value)

    @pytest.mark.slow
    def test_it_holds_at_once(self):
        covered = 0
        for _ in range(400):
            total, people = FRAME.dprisk.sum("x", eps=1, bounds=BOUNDS), FRAME.dprisk.count(eps=1)
            mean = total / people
            covered += mean.low <= 2.5 <= mean.high
        assert 362 <= covered <= 397  # 95 % of 400 is 380, give or take 4.4

    def test_repr_says_what_it_is(self, total, people):
        assert "95 % noise interval" in repr(total / people)
        assert "of 2 noisy answers" in repr(total / people)
        assert "of 1 noisy answer)" in repr(people + 1)
        assert isinstance(total / people, type(total + 1))

    def test_of_nothing_divided_by_nothing(self, total):
        """Whatever it is; not a failure, which in SQL would come after the payment."""
        nothing = total - total
        for quotient in (nothing / nothing, 1 / nothing, total / nothing):
            assert quotient.interval() == (-math.inf, math.inf)

    def test_repr_of_a_zero(self):
        assert _shown(math.nextafter(0.0, -1.0)) == _shown(0.0) == "0"  # an exact end is moved by one float
        assert _shown(-1.5) == "-1.5"

    def test_nothing_is_paid(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=5)
        with ledger:
            one, other = FRAME.dprisk.count(eps=1), FRAME.dprisk.count(eps=1)
            assert (one - other).value == one.value - other.value
        assert ledger.remaining().eps == 3


class TestExplained:
    @pytest.mark.parametrize("audience", ["participant", "analyst", "curator", "publication"])
    def test_each_draw_once_and_what_all_cost(self, total, people, audience):
        mean = total / people + 0.5 * total
        text = mean.explain(audience)
        assert text.startswith(f"{mean.value:.6g} (95 % noise interval ")
        assert "computed from the 2 answers below, eps 2 in all" in text
        assert text.split("\n\n", 1)[1] == f"{total.explain(audience)}\n\n{people.explain(audience)}"
        assert pdrisk.explain(mean, audience, prior=0.1) == mean.explain(audience, prior=0.1) != text

    def test_of_one(self, total):
        assert "computed from the answer below" in (2 * total - total).explain()

    def test_refused(self, total, people):
        with pytest.raises(pdrisk.ParameterError, match="unknown audience"):
            (total + people).explain("everybody")
        with pytest.raises(pdrisk.ParameterError, match="so_far"):
            (total + people).explain(so_far=0.5)
