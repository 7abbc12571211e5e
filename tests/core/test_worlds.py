"""Differential identifiability: what the likeliest of many worlds can become, exactly (docs/numbers.md)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Mean, Sum
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.errors import ColumnTypeError, ParameterError
from pdrisk.risk import epsilon_for, exact_identifiability, metrics, posterior, tight_epsilon

worlds_of = st.lists(st.floats(-10, 10) | st.sampled_from([0.0, 1.0, 1.5]), min_size=2, max_size=8)
scales = st.floats(0.01, 100)


@st.composite
def believed(draw) -> tuple[list[float], list[float]]:
    """Worlds and unequal priors."""
    worlds = draw(worlds_of)
    weights = [draw(st.floats(0.01, 1)) for _ in worlds]
    return worlds, [weight / math.fsum(weights) for weight in weights]


class TestExactIdentifiability:
    """The largest posterior belief in any world, over all outputs."""

    @given(case=believed(), scale=scales, output=st.floats(-1e3, 1e3))
    def test_no_output_exceeds_it(self, case, scale, output):
        worlds, prior = case
        most = max(oracle.laplace_posteriors(worlds, scale, output, prior))
        assert most <= exact_identifiability(worlds, scale, prior) * (1 + 1e-12)

    @given(case=believed(), scale=scales)
    def test_a_search_over_outputs_finds_nothing_larger_and_finds_it(self, case, scale):
        worlds, prior = case
        outputs = [*np.linspace(-12, 12, 97), *worlds]
        most = max(max(oracle.laplace_posteriors(worlds, scale, output, prior)) for output in outputs)
        assert exact_identifiability(worlds, scale, prior) == pytest.approx(most, rel=1e-12)

    @given(worlds=worlds_of, scale=scales)
    def test_equal_priors_need_not_be_given(self, worlds, scale):
        m = len(worlds)
        exact = exact_identifiability(worlds, scale)
        assert exact == pytest.approx(exact_identifiability(worlds, scale, [1 / m] * m), rel=1e-14)
        assert 1 / m * (1 - 1e-15) <= exact <= 1

    @given(case=believed(), scale=scales)
    def test_worlds_as_far_as_the_farthest_are_an_upper_bound(self, case, scale):
        worlds, prior = case
        # With unequal priors, m = 1 / max(prior) (Lee & Clifton 2012, section 3.4).
        loose = posterior((max(worlds) - min(worlds)) / scale, max(prior))
        assert max(prior) * (1 - 1e-12) <= exact_identifiability(worlds, scale, prior) <= float(loose) * (1 + 1e-12)

    @given(case=believed(), scale=scales, seed=st.randoms())
    def test_the_order_of_worlds_does_not_matter(self, case, scale, seed):
        pairs = list(zip(*case, strict=True))
        seed.shuffle(pairs)
        worlds, prior = zip(*pairs, strict=True)
        assert exact_identifiability(worlds, scale, prior) == pytest.approx(
            exact_identifiability(case[0], scale, case[1]), rel=1e-13
        )

    def test_edges(self):
        assert exact_identifiability([3.0], 1.0) == 1
        assert exact_identifiability([3.0] * 4, 1.0) == pytest.approx(1 / 4, rel=1e-15)
        assert exact_identifiability([0.0, 0.0, 5.0], 1e-300) == 1
        assert exact_identifiability([0.0, 0.0, 5.0, 5.0], 1e-3) == 0.5
        assert exact_identifiability([0, 1], 1e300) == 0.5
        assert exact_identifiability(np.array([0, 2], dtype=np.uint8), 1.0) == exact_identifiability([2.0, 0.0], 1.0)

    def test_many_sparse_worlds(self):
        worlds = np.arange(20_000) * 1e6
        assert exact_identifiability(worlds, 1.0) == 1
        assert exact_identifiability(worlds, 1e15) == pytest.approx(1 / 20_000, rel=1e-4)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("m", [*range(1, 40), 63, 64, 65, 99, 100, 101, 1000, 100_000])
    @pytest.mark.parametrize("scale", [1e-3, 0.3, 50.0])
    def test_any_number_of_worlds(self, m, scale):
        generator = np.random.default_rng(m)
        for worlds, prior in (
            (generator.normal(size=m), None),
            (generator.normal(size=m), generator.pareto(1, m) + 1e-9),
            (generator.integers(0, 5, m), None),
            (generator.integers(0, 5, m), generator.random(m) + 0.1),
            (np.arange(m) * 1e-9, None),  # equal gaps round alike: their errors would add up
            (np.exp(generator.uniform(-200, 200, m)), None),
        ):
            weights = np.full(m, 1 / m) if prior is None else prior / prior.sum()
            found = exact_identifiability(worlds, scale, None if prior is None else weights)
            if m <= 1000:
                near = np.exp(-np.abs(np.subtract.outer(worlds, worlds)) / scale)
                most = max(own / math.fsum((row * weights).tolist()) for own, row in zip(weights, near, strict=True))
                assert found == pytest.approx(most, rel=1e-13)
            else:  # the farthest world is the loneliest, or close to it
                for i in (worlds.argmin(), worlds.argmax(), weights.argmax()):
                    near = np.exp(-np.abs(worlds[i] - worlds) / scale)
                    assert found >= weights[i] / math.fsum((near * weights).tolist()) * (1 - 1e-12)

    def test_to_the_last_digits_of_a_million_additions(self):
        worlds = np.arange(100_000) * 1e-9
        first = math.fsum(np.exp(-worlds).tolist())
        assert exact_identifiability(worlds, 1.0) == pytest.approx(1 / first, rel=1e-13)
        assert exact_identifiability(worlds[::-1] * -1e80, 1e80) == pytest.approx(1 / first, rel=1e-13)

    def test_gaps_beyond_what_floats_can_say(self):
        apart = [-1e100, -1.0, 0.0, 1e-300, 2e-300, 1e100]
        assert exact_identifiability(apart, 5e-324) == 1
        assert exact_identifiability(apart, 1e308) == pytest.approx(1 / 6, rel=1e-15)
        assert exact_identifiability(apart, 1.0) == 1
        assert exact_identifiability(apart[1:5], 1e-3) == 1
        assert exact_identifiability([*apart[2:5]] * 2, 1e-3) == 1 / 6
        # Sums that underflow leave out, so a belief is never said to be smaller than it is.
        tiny = [1e-310, 0.25, 0.75 - 1e-310]
        assert exact_identifiability([0.0, 700.0, 1500.0], 1.0, tiny) == 1
        assert exact_identifiability(np.arange(1000) * 720.0, 1.0) == 1
        assert exact_identifiability([0.0, 1e-320], 1.0, [0.5, 0.5]) == 0.5

    @pytest.mark.parametrize("function", [lambda w, p=None: exact_identifiability(w, 1.0, p), tight_epsilon])
    def test_worlds_it_refuses(self, function):
        prior = () if function is not tight_epsilon else (0.9,)
        for wrong, message in (([], "at least one world"), ([1.0, math.nan], "finite"), ([1.0, math.inf], "finite")):
            with pytest.raises(ParameterError, match=message):
                function(wrong, *prior)
        for wrong in (["a", "b"], [[1.0, 2.0]], [True, False], 3.0):
            with pytest.raises(ColumnTypeError, match="one-dimensional array of numbers"):
                function(wrong, *prior)

    @pytest.mark.parametrize(
        "prior", [[0.5], [0.5, 0.6], [0.0, 1.0], [1.5, -0.5], [math.nan, 0.5], [0.3, 0.3, 0.4], [[0.5, 0.5]]]
    )
    def test_priors_it_refuses(self, prior):
        with pytest.raises(ParameterError, match="one probability above 0 for each world, and add up to 1"):
            exact_identifiability([1.0, 2.0], 1.0, prior)
        with pytest.raises(ParameterError, match="one probability above 0 for each world, and add up to 1"):
            tight_epsilon([1.0, 2.0], 0.9, prior=prior)

    @pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
    def test_scales_it_refuses(self, scale):
        with pytest.raises(ParameterError, match="scale must be finite and above 0"):
            exact_identifiability([1.0, 2.0], scale)


class TestTightEpsilon:
    """The largest epsilon that keeps the exact identifiability within a risk."""

    @given(case=believed(), rho=st.floats(0.02, 0.99), sensitivity=st.none() | st.floats(0.1, 50))
    def test_it_keeps_the_promise_and_no_larger_one_does(self, case, rho, sensitivity):
        worlds, prior = case
        spread = max(worlds) - min(worlds)
        gaps = [b - a for a, b in itertools.pairwise(sorted(worlds)) if b > a]
        assume(spread > 1e-3 and min(gaps) > 1e-6 and rho > max(prior) + 1e-6)
        scaled_by = spread if sensitivity is None else sensitivity
        found = tight_epsilon(worlds, rho, sensitivity, prior)
        if found == math.inf:  # so many equal answers that no noise is needed
            assert exact_identifiability(worlds, 1e-300, prior) <= rho
            return
        assert exact_identifiability(worlds, scaled_by / found, prior) <= rho
        # Strictly more at any larger epsilon; where the curve is flat, rounding needs a larger step to show it.
        further = found * (1 + (1e-9 if rho < 0.9 else 1e-4))
        exact = exact_identifiability(worlds, scaled_by / further, prior)
        flat = exact_identifiability(worlds, 1e-300, prior) - rho < 1e-5
        assert exact > rho or (flat and exact == pytest.approx(rho, abs=1e-12))
        # Lee & Clifton 2012, section 4: the loose epsilon is a lower bound.
        loose = epsilon_for(rho, max(prior), metric="identifiability", global_sensitivity=scaled_by, world_range=spread)
        assert found >= float(loose) * (1 - 1e-12)

    @pytest.mark.parametrize("rho", [0.2, 0.25, 0.5, 0.75, 0.9])
    def test_to_the_last_digits(self, rho):
        worlds = [1.0, 2.0, 3.5, 4.0, 4.0, 9.0]
        found = tight_epsilon(worlds, rho)
        assert exact_identifiability(worlds, 8.0 / found) <= rho
        assert exact_identifiability(worlds, 8.0 / (found * (1 + 1e-9))) > rho

    def test_a_risk_next_to_the_prior(self):
        # From 1/399 the loss that leads to the next float is 0 in floats.
        for worlds, prior in (([1.0, 2.0, 5.0], None), ([1.0, 2.0, 5.0], [0.2, 0.3, 0.5]), (np.arange(399.0), None)):
            above = np.nextafter(1 / len(worlds) if prior is None else 0.5, 1)
            for _ in range(3):
                found = tight_epsilon(worlds, above, prior=prior)
                assert 0 < found < 1e-12
                assert exact_identifiability(worlds, float(np.ptp(worlds)) / found, prior) <= above
                above = np.nextafter(above, 1)

    def test_the_largest_float_that_keeps_the_promise(self):
        generator = np.random.default_rng(6)
        for _ in range(50):
            worlds = generator.normal(size=generator.integers(2, 30)) * 10.0 ** generator.integers(-9, 9)
            rho = 1 / len(worlds) + (1 - 1 / len(worlds)) * generator.uniform(0.01, 0.9)
            found, spread = tight_epsilon(worlds, rho), float(np.ptp(worlds))
            assert exact_identifiability(worlds, spread / found) <= rho
            assert exact_identifiability(worlds, spread / np.nextafter(found, np.inf)) > rho

    def test_an_eps_beyond_floats(self):
        for worlds, sensitivity in (([0.0, 5e-324], 1.0), ([0.0, 1e-320, 2.0], 2.0), ([0.0, 1e-300], 1e100)):
            found = tight_epsilon(worlds, 0.9, sensitivity)
            assert found > 1e300 or exact_identifiability(worlds, sensitivity / found) <= 0.9

    def test_two_worlds_have_no_slack(self):
        for rho in (0.6, 0.9, 0.999):
            assert tight_epsilon([2.0, 5.0], rho) == pytest.approx(math.log(rho / (1 - rho)), rel=1e-12)
            assert tight_epsilon([2.0, 5.0], rho, sensitivity=6.0) == pytest.approx(
                2 * math.log(rho / (1 - rho)), rel=1e-12
            )

    def test_equal_answers_hide_their_worlds(self):
        assert tight_epsilon([1.0, 1.0], 0.6) == math.inf
        assert tight_epsilon([1.0, 1.0, 7.0, 7.0], 0.5) == math.inf
        assert tight_epsilon([1.0, 1.0, 7.0], 0.9) < math.inf
        assert tight_epsilon([1.0, 1.0, 7.0], 0.6, prior=[0.25, 0.25, 0.5]) < math.inf

    @pytest.mark.parametrize("rho", [0.5, 0.3])
    def test_a_risk_at_the_prior_cannot_be_had(self, rho):
        with pytest.raises(ParameterError, match=r"is not possible.*prior of 0\.5"):
            tight_epsilon([1.0, 2.0], rho)

    def test_one_world_is_certain(self):
        with pytest.raises(ParameterError, match=r"risk of 0\.9 is not possible: with one possible world"):
            tight_epsilon([1.0], 0.9)

    @pytest.mark.parametrize("rho", [0.0, 1.0, 1.5, math.nan])
    def test_risks_it_refuses(self, rho):
        with pytest.raises(ParameterError, match="risk must be a probability"):
            tight_epsilon([1.0, 2.0], rho)

    @pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.inf, math.nan])
    def test_sensitivities_it_refuses(self, sensitivity):
        with pytest.raises(ParameterError, match="sensitivity must be finite and above 0"):
            tight_epsilon([1.0, 2.0], 0.9, sensitivity)


class TestIdentifiabilityMetric:
    """One of n people is missing, each as likely: no output points at one of them more than the metric says."""

    STATISTICS = (Count(), Sum(), Mean(), Median(), Quantile(0.9), Min(), Max(), Var(0), Var(1), Std(0), Std(1))

    @staticmethod
    def answers(statistic, records, universe, eps):
        array = np.array(records, dtype=float)
        summary = summary_of_one(array, universe, statistic.needs)
        whole = statistic.global_sensitivity(universe)
        risk = metrics(
            eps,
            summary.n,
            global_sensitivity=whole,
            local_sensitivity=statistic.local_sensitivity(summary, universe),
            world_range=statistic.world_range(summary, universe),
        )
        return statistic.leave_one_out(array, summary, universe).tolist(), whole / eps, risk

    @pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
    @given(
        records=st.lists(st.integers(-2, 2) | st.floats(-2, 2), min_size=2, max_size=6),
        eps=st.floats(0.01, 8),
        output=st.floats(-20, 20),
    )
    def test_no_output_exceeds_it(self, statistic, records, eps, output):
        worlds, scale, risk = self.answers(statistic, records, Universe(-2.0, 2.0), eps)
        n, bound = len(records), float(risk["identifiability"][0]) * (1 + 1e-7)
        for at in (output, *worlds, *np.linspace(-5, 5, 21)):
            assert max(oracle.laplace_posteriors(worlds, scale, at, [1 / n] * n)) <= bound
        assert exact_identifiability(worlds, scale) <= bound

    def test_where_many_worlds_is_exceeded(self):
        # docs/numbers.md: D = {-1, 1} in [-1, 1], mean, eps = 1.
        worlds, scale, risk = self.answers(Mean(), [-1, 1], Universe(-1.0, 1.0), 1.0)
        assert (sorted(worlds), scale) == ([-1.0, 1.0], 1.0)
        most = max(max(oracle.laplace_posteriors(worlds, scale, at, [0.5, 0.5])) for at in np.linspace(-3, 3, 601))
        assert round(float(risk["many_worlds"][0]), 4) == 0.7311
        assert round(most, 4) == round(float(risk["identifiability"][0]), 4) == 0.8808
        assert exact_identifiability(worlds, scale) == pytest.approx(float(posterior(2.0, 0.5)), rel=1e-14)
