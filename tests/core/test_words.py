"""Risks in whole numbers: which denominator, rounded up, and never "always"."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._answer.words import common_denominator, counted, probability, reached, times_right
from pdrisk._core.risks.risk import posterior
from pdrisk._digits import rounded_down, rounded_up

EPS = st.floats(1e-6, 30)


def fine_enough(risk: float, out_of: int) -> bool:
    """By its definition, in fractions: rounding up adds at most a fifth of the excess, and does not say "always"."""
    exact = Fraction(repr(risk))  # as it is written: 0.55 is 55 of 100
    times = math.ceil(exact * out_of)
    return times < out_of and Fraction(times, out_of) - exact <= (exact - Fraction(1, 2)) / 5


class TestDenominator:
    """A hundred; a thousand or ten thousand only where rounding up would add over a fifth of the excess."""

    @pytest.mark.parametrize(
        ("eps", "expected"),
        [
            (0.1, (525, 1_000)),  # 53 of 100 would add .0050 to .0250
            (0.11, (53, 100)),  # .52747: adds .00253 to .02747
            (0.5, (63, 100)),
            (1, (74, 100)),
            (1.5, (82, 100)),
            (3, (96, 100)),
            (4.59, (99, 100)),
            (4.6, (991, 1_000)),  # above 99 of 100, which would be "always"
            (9.3, (9_999, 10_000)),
        ],
    )
    def test_known(self, eps: float, expected: tuple[int, int]) -> None:
        assert times_right(float(posterior(eps))) == expected

    @given(st.lists(EPS, min_size=1, max_size=4))
    def test_the_smallest_that_is_fine_enough_for_all(self, several: list[float]) -> None:
        risks = [float(posterior(eps)) for eps in several]
        fine = [out_of for out_of in (100, 1_000, 10_000) if all(fine_enough(risk, out_of) for risk in risks)]
        assert common_denominator(risks) == (fine[0] if fine else 10_000)

    @given(EPS)
    def test_one_alone_is_the_denominator_of_times_right(self, eps: float) -> None:
        risk = float(posterior(eps))
        assert times_right(risk)[1] == common_denominator([risk])


class TestCounted:
    """A whole number never says less than the risk, nor that an attacker is always right."""

    @given(st.floats(0.5, 1), st.sampled_from([100, 1_000, 10_000]))
    def test_rounded_up(self, risk: float, out_of: int) -> None:
        times, at_most = counted(risk, out_of)
        assert out_of / 2 <= times < out_of
        if at_most:
            assert Fraction(times - 1, out_of) < Fraction(repr(risk)) <= Fraction(times, out_of)
        else:
            assert times == out_of - 1
            assert risk > times / out_of

    def test_a_float_just_above_is_not_one_more(self) -> None:
        assert 0.55 * 100 > 55
        assert counted(0.55, 100) == (55, True)
        assert counted(0.5500001, 100) == (56, True)

    @pytest.mark.parametrize("eps", [1e-6, 1e-9, 1e-12, 1e-15, 1e-16, 1e-300])
    def test_the_smallest_eps_is_at_least_one_more(self, eps: float) -> None:
        # 1/2 + eps/4 is above 5,000 of 10,000, also where a float cannot tell
        risk = reached(eps)
        assert risk >= posterior(eps)
        assert times_right(risk) == (5_001, 10_000)
        assert reached(0.0) == 0.5

    @pytest.mark.parametrize("out_of", [100, 1_000, 10_000])
    def test_certainty(self, out_of: int) -> None:
        assert counted(1.0, out_of) == (out_of - 1, False)


class TestProbability:
    """Four digits, the last one up."""

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (0.5, "0.5"),
            (0.50000001, "0.5001"),
            (0.7310585786, "0.7311"),
            (0.99990001, "> 0.9999"),
            (1.0, "> 0.9999"),
            (6.78701e-05, "6.788e-05"),
        ],
    )
    def test_known(self, value: float, shown: str) -> None:
        assert probability(value) == shown

    @given(st.floats(1e-9, 0.9999))
    def test_never_less(self, value: float) -> None:
        assert value <= float(rounded_up(value)) <= value * 1.001001

    @given(st.floats(1e-9, 1e9), st.integers(1, 9))
    def test_advice_holds_as_it_is_written(self, value: float, digits: int) -> None:
        assert float(rounded_down(value, digits)) <= value <= float(rounded_up(value, digits))

    @pytest.mark.parametrize(
        ("value", "down"),
        [(2.2495966, "2.249"), (0.20067069546215122, "0.2006"), (1.25, "1.25"), (0.1, "0.1"), (float("inf"), "inf")],
    )
    def test_down(self, value: float, down: str) -> None:
        assert rounded_down(value) == down
