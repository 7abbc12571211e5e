"""Randomised response: each answer hides the true one by what is said, and shares are estimated without bias."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from pdrisk import attack
from pdrisk._core.summary import Summary
from pdrisk.risk import RandomizedResponse

LN3 = math.log(3)


def drawn(design, codes, bits=None):
    own = np.asarray(codes, dtype=np.int64)
    summary = Summary(np.ones(own.shape, dtype=np.int64), whole=own)
    return design.draw(summary) if bits is None else design.draw(summary, bits=bits)


class TestDesign:
    """How likely each answer is, and what it tells."""

    def test_two_coins(self):
        # Warner 1965 with two fair coins: heads tell the truth, else the second coin answers: 1/2 + 1/4.
        coins = RandomizedResponse(eps=LN3)
        assert coins.p_truth == pytest.approx(0.75, abs=1e-15)
        assert RandomizedResponse(p_truth=0.75).eps == pytest.approx(LN3, rel=1e-15)
        assert coins.posterior(0.5) == pytest.approx(0.75)

    @given(eps=st.floats(1e-6, 40), k=st.integers(2, 10_000))
    def test_the_loss_is_eps_at_most_and_hardly_less(self, eps, k):
        """By exact fractions: no answer is more than exp(eps) times likelier for one truth than for another."""
        design = RandomizedResponse(eps=eps, categories=k)
        truth = Fraction(design.threshold, 2**64)
        other = (1 - truth) / (k - 1)
        assert truth > 0 and other > 0
        ratio = truth / other
        assert ratio >= 1 - Fraction(k, 2**62)
        # exp(eps) from below by its power series, in exact fractions
        x, term, total = Fraction(str(eps)), Fraction(1), Fraction(1)
        for at in range(1, 220):
            term *= x / at
            total += term
        assert ratio <= total * (1 + Fraction(1, 10**30))
        assert float(ratio) == pytest.approx(math.exp(eps), rel=max(1e-9, 4 * math.exp(eps) * k * 2.0**-64))
        assert design.p_truth + (k - 1) * design.p_other == pytest.approx(1)

    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_posterior_by_bayes(self, k):
        design = RandomizedResponse(eps=1.3, categories=k)
        prior = np.arange(1, k + 1) / (k * (k + 1) / 2)
        channel = np.full((k, k), design.p_other)
        np.fill_diagonal(channel, design.p_truth)
        for answer in range(k):
            joint = prior * channel[:, answer]
            assert design.posterior(prior[answer]) == pytest.approx(joint[answer] / joint.sum())
            others = prior * (1 - channel[:, answer])
            assert design.posterior(prior[answer], answered=False) == pytest.approx(others[answer] / others.sum())

    def test_a_draw_by_hand(self):
        """Of given words: those below the threshold tell the truth, others choose among the other answers."""
        design = RandomizedResponse(p_truth=0.5, categories=3)
        words = iter([[0, 2**63 - 1, 2**63, 2**64 - 1], [0, 1, 0, 1]])
        found = drawn(design, [2, 1, 2, 0], lambda size: np.array(next(words), dtype=np.uint64))
        assert found.tolist() == [2, 1, 0, 2]

    @pytest.mark.parametrize(("eps", "k"), [(0.1, 2), (LN3, 2), (2, 5)])
    def test_frequencies(self, eps, k):
        """Each answer comes as often as it should, within 7 standard deviations."""
        design, n = RandomizedResponse(eps=eps, categories=k), 40_000
        for truth in range(k):
            shares = np.bincount(drawn(design, np.full(n, truth)), minlength=k) / n
            for answer, share in enumerate(shares):
                expected = design.p_truth if answer == truth else design.p_other
                assert abs(share - expected) < 7 * math.sqrt(expected * (1 - expected) / n)

    def test_an_unlisted_answer_becomes_any(self):
        shares = np.bincount(drawn(RandomizedResponse(eps=3, categories=4), np.full(40_000, 4)), minlength=4) / 40_000
        assert np.abs(shares - 0.25).max() < 7 * math.sqrt(0.25 * 0.75 / 40_000)

    @pytest.mark.parametrize("given", [{"eps": 1}, {"eps": 2, "categories": 3}])
    def test_an_attacker_finds_eps_and_no_more(self, given):
        design = RandomizedResponse(**given)
        worlds = [drawn(design, np.full(50_000, truth)) for truth in (0, 1)]
        found = attack.epsilon_lower_bound(
            lambda world: worlds[world], 0, 1, eps=given["eps"], at_once=50_000, draws=50_000, level=1 - 1e-6
        )
        assert given["eps"] * 0.85 < found.low <= given["eps"]

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"eps": 1, "p_truth": 0.7},
            {"eps": 0},
            {"eps": 41},
            {"eps": math.nan},
            {"eps": "1"},
            {"eps": True},
            {"p_truth": 0.5},
            {"p_truth": 1},
            {"p_truth": 0.3, "categories": 3},
            {"eps": 1, "categories": 1},
            {"eps": 1, "categories": 10_001},
            {"eps": 1, "categories": 2.0},
        ],
        ids=str,
    )
    def test_refusals(self, given):
        with pytest.raises(pdrisk.ParameterError):
            RandomizedResponse(**given)


class TestEstimate:
    """Unbiased shares, and intervals that hold them."""

    @pytest.mark.parametrize("k", [2, 4])
    def test_unbiased(self, k):
        """The estimate of the expected answers is the truth, whatever it is."""
        design = RandomizedResponse(p_truth=0.5 + 0.25 / k, categories=k)
        for truth in itertools.product(range(0, 900, 450), repeat=k):
            if not (n := sum(truth)):
                continue
            expected = [design.p_truth * own + design.p_other * (n - own) for own in truth]
            shares = np.array([(each / n - design.p_other) / (design.p_truth - design.p_other) for each in expected])
            np.testing.assert_allclose(shares, np.array(truth) / n, atol=1e-12)
            found, low, high = design.estimate(np.rint(expected).astype(int))
            np.testing.assert_allclose(found, np.array(truth) / n, atol=2 * k / n)
            assert ((low <= np.array(truth) / n + 1e-12) & (np.array(truth) / n <= high + 1e-12)).all()

    @pytest.mark.parametrize("eps", [0.5, LN3, 3])
    def test_coverage_of_the_respondents_own_share(self, eps):
        """Exactly, of all numbers of true yes among 60: two binomials, one for those who mean yes, one for the rest."""
        design, n = RandomizedResponse(eps=eps), 60
        ends = [design.estimate([n - yes, yes], 0.9) for yes in range(n + 1)]
        for true in range(0, n + 1, 6):
            own = scipy.stats.binom.pmf(np.arange(true + 1), true, design.p_truth)
            rest = scipy.stats.binom.pmf(np.arange(n - true + 1), n - true, design.p_other)
            likely = np.convolve(own, rest)
            held = [low[1] - 1e-12 <= true / n <= high[1] + 1e-12 for _, low, high in ends]
            assert likely[held].sum() >= 0.9

    def test_nobody(self):
        assert all(np.isnan(part).all() for part in RandomizedResponse(eps=1).estimate([0, 0]))

    @pytest.mark.parametrize("counts", [[1], [1, 2, 3], [1.0, 2.0], [-1, 3], "ab"])
    def test_no_counts(self, counts):
        with pytest.raises(pdrisk.ColumnTypeError, match="2 whole numbers"):
            RandomizedResponse(eps=1).estimate(counts)

    @pytest.mark.parametrize(("eps", "width"), [(LN3, 0.05), (1, 0.1), (4, 0.02)])
    def test_respondents(self, eps, width):
        design = RandomizedResponse(eps=eps)
        n = design.respondents(width)

        def half(size):
            _, low, high = design.estimate([size - size // 2, size // 2])
            return (high[1] - low[1]) / 2

        assert half(n) <= width * 1.001
        assert half(int(n * 0.97)) > width
        # Warner's variance: 1/4 of the answers' over (2p - 1)**2
        assert n == pytest.approx((1.96 * 0.5 / (2 * design.p_truth - 1) / width) ** 2, rel=0.06)

    def test_too_many(self):
        with pytest.raises(pdrisk.ParameterError, match="1,000,000,000"):
            RandomizedResponse(eps=1e-4).respondents(0.01)
        with pytest.raises(pdrisk.ParameterError, match="half_width"):
            RandomizedResponse(eps=1).respondents(0.7)


class TestSeries:
    """The accessor's randomised answers."""

    def test_yes_and_no(self):
        index = pd.Index(range(100, 3100))
        answers = pd.Series([True] * 1000 + [False] * 1990 + [None] * 10, dtype="boolean", index=index, name="drugs")
        found = answers.dprisk.randomized_response(eps=LN3)
        assert found.answers.index.equals(index)
        assert found.answers.name == "drugs"
        assert found.answers.isna().tolist() == answers.isna().tolist()
        assert found.table.index.tolist() == [False, True]
        assert found.table["given"].sum() == 2990
        # standard error sqrt(.25 / 2990) / .5 = .018: 7 of them
        assert found.table.loc[True, "value"] == pytest.approx(1000 / 2990, abs=0.13)
        assert (found.table["low"] <= found.table["high"]).all()
        assert "75 times out of 100" in found.explain()
        assert "local eps 1.099" in repr(found)
        assert (found.interval(0.5)["low"] >= found.table["low"]).all()

    def test_categories_and_collected_answers(self):
        truth = pd.Series(list("aabbbc") * 2000, name="party")
        found = truth.dprisk.randomized_response(p_truth=0.6, keys=list("abcd"))
        for key, share in {"a": 1 / 3, "b": 1 / 2, "c": 1 / 6, "d": 0}.items():
            assert found.table.loc[key, "value"] == pytest.approx(share, abs=0.07)  # 7 standard errors
        again = found.answers.dprisk.randomized_response(p_truth=0.6, keys=list("abcd"), collected=True)
        pd.testing.assert_frame_equal(again.table, found.table)
        assert again.answers.tolist() == found.answers.tolist()

    def test_each_answer_is_drawn_anew(self):
        answers = pd.Series([True] * 200)
        one, other = (answers.dprisk.randomized_response(eps=0.1).answers for _ in range(2))
        assert one.nunique() == 2
        assert not one.equals(other)

    def test_declared(self):
        frame = pd.DataFrame({"vote": [1, 2, 3, -9] * 50})
        known = frame.dprisk.declare(keys={"vote": [1, 2, 3]}, missing={"vote": [-9]})
        found = known["vote"].dprisk.randomized_response(eps=2)
        assert found.table.index.tolist() == [1, 2, 3]
        assert found.answers.isna().sum() == 50

    def test_an_unlisted_answer_is_not_shown(self):
        answers = pd.Series(["a", "b", "secret"] * 20)
        found = answers.dprisk.randomized_response(eps=1, keys=["a", "b"])
        assert set(found.answers) == {"a", "b"}
        collected = answers.dprisk.randomized_response(eps=1, keys=["a", "b"], collected=True)
        assert collected.table["given"].tolist() == [20, 20]
        assert collected.answers.isna().sum() == 20

    def test_nobody(self):
        found = pd.Series([], dtype=bool).dprisk.randomized_response(eps=1)
        assert found.table["given"].tolist() == [0, 0]
        assert found.table["value"].isna().all()

    def test_a_ledger_takes_none(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=9)
        with ledger, pytest.raises(pdrisk.ParameterError, match="outside the ledger's block"):
            pd.Series([True]).dprisk.randomized_response(eps=1)
        assert ledger.remaining().spent == 0

    @pytest.mark.parametrize(
        ("values", "options", "said"),
        [
            (["a"], {"eps": 1}, "public list of possible answers"),
            (["a"], {"eps": 1, "keys": ["a"]}, "two possible answers"),
            (["a"], {"eps": 1, "keys": ["a", None]}, "missing answer is none"),
            (["a"], {"eps": 1, "keys": ["a", "a"]}, "twice"),
            ([True], {"eps": 1, "collected": 1}, "True or False"),
            ([True], {}, "exactly one"),
        ],
        ids=str,
    )
    def test_refusals(self, values, options, said):
        with pytest.raises(pdrisk.ParameterError, match=said):
            pd.Series(values).dprisk.randomized_response(**options)
