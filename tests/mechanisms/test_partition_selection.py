"""Partition selection: (eps, delta) in exact fractions, the best rule of all, and drawn as it is computed."""

import math
import re
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from paths import DOCS
from pdrisk._core.risks.binomial import clopper_pearson
from pdrisk._core.risks.risk import success_bound
from pdrisk._core.summary import Summary
from pdrisk._mechanisms.noise.entropy import system_bits
from pdrisk._mechanisms.partition_selection import LONGEST_TABLE, PartitionSelection
from pdrisk.errors import ParameterError

RULES = {
    "usual": (Fraction(1), Fraction(1, 10**6), 1, 1),
    "half": (Fraction(1, 2), Fraction(1, 1000), 1, 1),
    "groups": (Fraction(3), Fraction(1, 10**5), 4, 1),
    "least": (Fraction(1), Fraction(1, 1000), 1, 5),
    "both": (Fraction(2), Fraction(1, 10**9), 3, 20),
    "fine": (Fraction(1, 20), Fraction(1, 10**12), 1, 1),
    "steep": (Fraction(10), Fraction(1, 10**30), 1, 1),
    "odd": (Fraction(7, 9), Fraction(1, 7001), 2, 2),
}
rules = pytest.mark.parametrize("rule", [PartitionSelection(*rule) for rule in RULES.values()], ids=RULES)


def exp_of(x: Fraction) -> Fraction:
    """exp(x) from below, some 100 digits of it."""
    with localcontext(prec=120, rounding=ROUND_FLOOR):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp() * (1 - Decimal("1e-100")))


def people(rule: PartitionSelection) -> range:
    """All numbers of people at which the rule still changes, and some more."""
    return range(1, rule.size_shown(Fraction(1)) + 4)


class TestDefinition:
    """For all data sets that differ by one person: Pr[shown] and Pr[not shown] obey (eps, delta), both ways."""

    @rules
    def test_both_events_both_ways(self, rule):
        e, delta = exp_of(rule.eps / rule.groups), rule.delta / rule.groups
        for n in people(rule):
            more, fewer = rule.probability(n), rule.probability(n - 1)
            for p, q in ((more, fewer), (fewer, more), (1 - more, 1 - fewer), (1 - fewer, 1 - more)):
                assert p <= e * q + delta

    @settings(max_examples=6)
    @given(
        eps=st.fractions(Fraction(1, 50), 12, max_denominator=1000),
        delta=st.fractions(Fraction(1, 10**9), Fraction(1, 1000), max_denominator=10**9),
        groups=st.integers(1, 5),
    )
    def test_at_any_eps_and_delta(self, eps, delta, groups):
        self.test_both_events_both_ways(PartitionSelection(eps, delta, groups))

    @rules
    def test_nobody_is_never_shown_and_many_always(self, rule):
        surely = rule.size_shown(Fraction(1))
        assert rule.probability(0) == rule.probability(rule.least - 1) == 0 < rule.probability(rule.least)
        assert rule.probability(surely) == rule.probability(10**12) == 1 > rule.probability(surely - 1)
        at = np.array([0, rule.least - 1, surely, 10**12, 2**62])
        for _ in range(50):
            assert rule.draw(Summary(at)).tolist() == [False, False, True, True, True]

    def test_a_person_in_several_groups(self):
        """Each of g groups has (eps/g, delta/g): one person alone in all of them is seen with probability delta."""
        rule = PartitionSelection(Fraction(2), Fraction(1, 1000), 4)
        assert 1 - (1 - rule.probability(1)) ** 4 <= Fraction(1, 1000)
        assert rule.probability(7) == PartitionSelection(Fraction(1, 2), Fraction(1, 4000)).probability(7)


class TestOptimality:
    """No other rule shows a group of any size more often."""

    @pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-3), (0.5, 1e-2), (2.0, 1e-5), (0.1, 1e-3)])
    def test_against_a_linear_program(self, eps, delta):
        size, e = 12, math.exp(eps)
        rows, most = [], []
        for n in range(1, size + 1):
            one, other = np.eye(size + 1)[n], np.eye(size + 1)[n - 1]
            for p, q in ((one, other), (other, one)):
                rows += [p - e * q, e * q - p]
                most += [delta, e - 1 + delta]
        best = scipy.optimize.linprog(-np.ones(size + 1), rows, most, bounds=[(0, 0)] + [(0, 1)] * size).x
        rule = PartitionSelection(Fraction(str(eps)), Fraction(str(delta)))
        assert [float(rule.probability(n)) for n in range(size + 1)] == pytest.approx(best, abs=1e-7)

    @pytest.mark.parametrize(("eps", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("0.01", "1e-5"), ("4", "1e-12")])
    def test_against_the_closed_form(self, eps, delta):
        """Desfontaines et al. 2022, theorem 1: n1, n2 and p(n) without a recursion, to some 40 digits."""
        rule = PartitionSelection(Fraction(eps), Fraction(delta))
        with localcontext(prec=120):
            x, d = Decimal(eps), Decimal(delta)
            e = x.exp()
            first = 1 + int(((e + 2 * d - 1) / ((e + 1) * d)).ln() / x)
            at_first = d * ((first * x).exp() - 1) / (e - 1)
            for n in {1, 2, 3, first // 2, first - 1, first, first + 1, first + 5, 2 * first - 2, 3 * first}:
                wanted = d * ((n * x).exp() - 1) / (e - 1)
                if n > first:
                    left = (-(n - first) * x).exp()
                    wanted = min((1 - left) * (1 + d / (e - 1)) + left * at_first, Decimal(1))
                found = rule.probability(n)
                assert abs(Decimal(found.numerator) / Decimal(found.denominator) - wanted) < Decimal("1e-40")

    @rules
    def test_size_shown(self, rule):
        for share in (Fraction(1, 10**9), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100), Fraction(1)):
            n = rule.size_shown(share)
            assert rule.probability(n - 1) < share <= rule.probability(n)


class TestDraw:
    """Exactly as often as computed: a 192-bit number below the probability's."""

    @pytest.mark.parametrize("n", [1, 2, 5, 9, 13])
    def test_the_last_bit_decides(self, n):
        rule = PartitionSelection(Fraction(1), Fraction(1, 1000))
        threshold = rule.probability(n) * 2**192
        assert threshold.denominator == 1
        for number in (
            int(threshold) - 1,
            int(threshold),
            0,
            2**192 - 1,
            int(threshold) ^ 2**64,
            int(threshold) ^ 2**130,
        ):
            words = [number >> 128, (number >> 64) % 2**64, number % 2**64]
            shown = rule.draw(Summary(np.array([n])), bits=lambda size, words=words: np.array(words, dtype=np.uint64))
            assert shown.tolist() == [number < threshold]

    def test_every_group_has_bits_of_its_own(self):
        asked = []

        def bits(size):
            asked.append(size)
            return system_bits(size)

        rule = PartitionSelection(Fraction(1), Fraction(1, 1000))
        shown = rule.draw(Summary(np.full(40_000, 7)), bits=bits)
        assert asked == [120_000]
        runs = np.count_nonzero(shown[1:] & shown[:-1]) / 39_999  # neighbours agree no more often than by chance
        assert runs == pytest.approx(float(rule.probability(7)) ** 2, abs=0.02)

    def test_no_group(self):
        rule = PartitionSelection(Fraction(1), Fraction(1, 1000))
        assert rule.draw(Summary(np.empty(0, dtype=np.int64))).shape == (0,)


def delta_seen(shows, rule: PartitionSelection, draws: int = 400_000) -> float:
    """A lower bound, wrong once in a million, of the delta of a rule that shows groups, from draws of neighbours.

    A group without people does not occur, so it is shown by no rule.
    """
    e, found = math.exp(rule.eps), 0.0
    for n in (1, 5, 7):
        more, fewer = (int(np.count_nonzero(shows(np.full(draws, size)))) if size else 0 for size in (n, n - 1))
        for own, other in ((more, fewer), (draws - fewer, draws - more), (fewer, more), (draws - more, draws - fewer)):
            low, high = clopper_pearson(own, draws, 1 - 1e-7)[0], clopper_pearson(other, draws, 1 - 1e-7)[1]
            found = max(found, low - e * high)
    return found


class TestAuditOfDelta:
    """Simulation bounds the delta of what is really drawn; rules that promise too much are caught."""

    rule = PartitionSelection(Fraction(1), Fraction(1, 1000))

    def test_the_rule_keeps_its_delta(self):
        seen = delta_seen(lambda n: self.rule.draw(Summary(n)), self.rule)
        assert 0.4e-3 < seen <= self.rule.delta  # and nearly uses it: the audit sees something

    @pytest.mark.parametrize(
        "mutant",
        [
            lambda n: PartitionSelection(Fraction(1), Fraction(2, 1000)).draw(Summary(n)),  # twice the delta
            lambda n: TestAuditOfDelta.rule.draw(Summary(n + 1)),  # a person too many counted
            lambda n: PartitionSelection(Fraction(5, 4), Fraction(1, 1000)).draw(Summary(n)),  # another eps
            lambda n: n >= 7,  # no chance at all, as k-anonymity
        ],
        ids=["delta", "one person", "eps", "threshold"],
    )
    def test_mutants_are_caught(self, mutant):
        assert delta_seen(mutant, self.rule) > self.rule.delta


class TestSuccess:
    """How often the best attacker is right: (e^eps + delta) / (1 + e^eps)."""

    def test_printed(self):
        assert success_bound(1.0, 0.0) == pytest.approx(0.7310585786, abs=1e-10)
        assert success_bound(1.0, 0.01) == pytest.approx(0.7310585786 + 0.01 * 0.2689414214, abs=1e-10)
        assert success_bound(1e-9, 0.5) == pytest.approx(0.75, abs=1e-9)

    @rules
    def test_no_attacker_on_the_groups_is_better(self, rule):
        bound = success_bound(float(rule.eps), float(rule.delta))
        for n in people(rule):
            assert (1 + rule.probability(n) - rule.probability(n - 1)) / 2 <= Fraction(bound)

    @given(eps=st.floats(0.01, 5), delta=st.floats(1e-9, 0.1))
    def test_attained(self, eps, delta):
        """By the pair of distributions that dominates all others (Kairouz, Oh & Viswanath 2015, four outcomes)."""
        e = math.exp(eps)
        one = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
        best = sum(map(max, one, reversed(one))) / 2
        assert best == pytest.approx(success_bound(eps, delta), rel=1e-12)


class TestRefusals:
    """An eps at which no group of ordinary size is shown is refused; the words say what to do."""

    def test_the_smallest_eps(self):
        with pytest.raises(ParameterError, match="larger eps, or a smaller groups=") as caught:
            PartitionSelection(Fraction(1, 10**5), Fraction(1, 10**6), groups=2).check()
        assert f"{LONGEST_TABLE:,} people" in str(caught.value)
        PartitionSelection(Fraction(1, 1000), Fraction(1, 10**6)).check()

    @pytest.mark.parametrize("eps", [Fraction(1, 10**12), Fraction(1, 10**300), Fraction(5e-324) / 2])
    def test_delta_alone(self, eps):
        """At hardly any eps, n people are shown with probability n delta; only a small delta is refused then."""
        rule = PartitionSelection(eps, Fraction(1, 1000))
        rule.check()
        assert float(rule.probability(10)) == pytest.approx(0.01)
        assert rule.size_shown(Fraction(1)) in (1000, 1001)  # a thousandth is no multiple of 2**-192
        with pytest.raises(ParameterError, match="larger eps"):
            PartitionSelection(eps, Fraction(1, 10**6)).check()

    @rules
    def test_the_closed_form_is_never_too_small(self, rule):
        """So that no table grows beyond what is checked."""
        assert rule.size_shown(Fraction(1)) - rule.least <= rule._smallest_certain() + 1


def test_the_table_of_the_docs():
    """docs/groups.md, "What is shown": half of eps chooses, of one group a person."""
    page = (DOCS / "groups.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| [\d.]+ \|", line)]
    assert [row[0] for row in rows] == ["0.1", "0.5", "1", "2", "5"]
    for eps, *cells in rows:
        for delta, cell in zip(("1e-5", "1e-6", "1e-8", "1e-10"), cells, strict=True):
            rule = PartitionSelection(Fraction(eps) / 2, Fraction(delta))
            assert cell == f"{rule.size_shown(Fraction(1, 2))} / {rule.size_shown(Fraction(1))}"
