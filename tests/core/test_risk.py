"""One formula from privacy loss to belief, four metrics of it, and the way back."""

import math
from fractions import Fraction

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
from pdrisk.risk import METRICS, epsilon_for, metrics, posterior, privacy_loss

probabilities = st.floats(1e-12, 1 - 1e-12)
losses = st.floats(0, 50)
STATISTICS = [Count(), Sum(), Mean(), Median(), Quantile(0.9), Min(), Max(), Var(0), Var(1), Std(0), Std(1)]


class TestPosterior:
    """``1 / (1 + (1-p)/p exp(-L))``: prior odds times the largest likelihood ratio."""

    @given(loss=losses, prior=probabilities)
    def test_odds_grow_by_the_likelihood_ratio(self, loss, prior):
        belief = float(posterior(loss, prior))
        assert belief == pytest.approx(prior * math.exp(loss) / (prior * math.exp(loss) + 1 - prior), rel=1e-12)
        assert prior * (1 - 1e-15) <= belief <= 1

    @pytest.mark.parametrize("prior", [1e-300, 1e-9, 0.2, 0.5, 0.75, 1 - 2.0**-53])
    def test_edges(self, prior):
        assert posterior(0.0, prior) == pytest.approx(prior, rel=1e-15)
        assert posterior(2000.0, prior) == 1

    def test_it_attains_what_a_laplace_output_tells(self):
        # Answers 0 and 1, noise of scale 1/eps, output 1 or anything beyond: Bayes' rule.
        for eps in (0.1, 1.0, 3.0):
            for output in (1.0, 1.5, 40.0):
                told = oracle.laplace_posteriors([0.0, 1.0], 1 / eps, output, [0.8, 0.2])[1]
                assert told == pytest.approx(float(posterior(eps, 0.2)), rel=1e-12)

    def test_arrays(self):
        found = posterior(np.array([[0.0], [1.0]]), [0.5, 0.25])
        assert found.shape == (2, 2)
        assert found[1, 0] == posterior(1.0)
        assert found[0].tolist() == [0.5, 0.25]
        assert posterior(1).dtype == np.float64

    @pytest.mark.parametrize("loss", [-1e-9, math.inf, math.nan, [1.0, -1.0]])
    def test_losses_it_refuses(self, loss):
        with pytest.raises(ParameterError, match="loss must be finite and at least 0"):
            posterior(loss)

    @pytest.mark.parametrize("prior", [0.0, 1.0, -0.5, 1.5, math.nan, [0.5, 0.0]])
    def test_priors_it_refuses(self, prior):
        with pytest.raises(ParameterError, match="prior must be a probability above 0 and below 1"):
            posterior(1.0, prior)

    @pytest.mark.parametrize("wrong", ["1", True, None, [None], 1j])
    def test_what_is_no_number(self, wrong):
        with pytest.raises(ColumnTypeError, match="loss must be a number"):
            posterior(wrong)
        with pytest.raises(ColumnTypeError, match="prior must be a number"):
            posterior(1.0, wrong)


class TestPrivacyLoss:
    """The way back: the largest loss that keeps a belief within a risk."""

    @given(prior=probabilities, risk=probabilities)
    def test_it_never_says_too_much_and_comes_close(self, prior, risk):
        assume(risk > prior)
        loss = privacy_loss(risk, prior)
        assert loss >= 0
        assert posterior(loss, prior) <= risk
        assert posterior(loss, prior) == pytest.approx(risk, rel=1e-12)

    @given(prior=probabilities, risk=probabilities)
    def test_it_is_the_difference_of_log_odds(self, prior, risk):
        assume(risk > prior)
        odds = Fraction(risk) / (1 - Fraction(risk)) * (1 - Fraction(prior)) / Fraction(prior)
        assert float(privacy_loss(risk, prior)) == pytest.approx(math.log(odds), rel=1e-12, abs=1e-13)

    @pytest.mark.parametrize("prior", [1e-300, 1e-9, 0.1, 0.5, 1 - 2.0**-52])
    @pytest.mark.parametrize("risk", [math.nextafter(0.5, 1), 0.9, 1 - 2.0**-53])
    def test_edges(self, risk, prior):
        least = max(risk, math.nextafter(prior, 1))
        loss = privacy_loss(least, prior)
        assert 0 <= loss < 800
        assert posterior(loss, prior) <= least

    def test_arrays(self):
        found = privacy_loss([[0.6], [0.9]], [0.5, 0.1, 0.2])
        assert found.shape == (2, 3)
        assert found[1, 2] == privacy_loss(0.9, 0.2)

    @pytest.mark.parametrize("risk", [0.0, 1.0, 1.2, -0.1, math.nan])
    def test_risks_it_refuses(self, risk):
        with pytest.raises(ParameterError, match="risk must be a probability above 0 and below 1"):
            privacy_loss(risk)

    @pytest.mark.parametrize("prior", [0.0, 1.0, math.nan])
    def test_priors_it_refuses(self, prior):
        with pytest.raises(ParameterError, match="prior must be a probability above 0 and below 1"):
            privacy_loss(0.9, prior)

    @pytest.mark.parametrize(("risk", "prior"), [(0.5, 0.5), (0.3, 0.4), ([0.9, 0.3], 0.4)])
    def test_a_risk_that_cannot_be_had_names_the_prior(self, risk, prior):
        with pytest.raises(ParameterError, match=f"is not possible: .* prior of {prior:g}.* above the prior"):
            privacy_loss(risk, prior)


DISTANCES = {
    "worst_case": {},
    "two_worlds": {"local_sensitivity": 2.0, "global_sensitivity": 3.0},
    "many_worlds": {"local_sensitivity": 2.0, "global_sensitivity": 3.0},
    "identifiability": {"world_range": 4.0, "global_sensitivity": 3.0},
}
SHARE = {"worst_case": 1.0, "two_worlds": 2 / 3, "many_worlds": 2 / 3, "identifiability": 4 / 3}
of_distance = pytest.mark.parametrize("metric", [metric for metric in METRICS if metric != "worst_case"])


class TestEpsilonFor:
    """``L(rho, p)`` over the metric's share of GS: releasing with it gives the risk that was asked for."""

    @pytest.mark.parametrize("metric", METRICS)
    @given(risk=probabilities, n=st.integers(2, 10**6))
    def test_the_metric_of_its_epsilon_is_the_risk(self, metric, risk, n):
        prior = 1 / 2 if metric in ("worst_case", "two_worlds") else 1 / n
        assume(risk > prior)
        eps = epsilon_for(risk, metric=metric, n=n, **DISTANCES[metric])
        assert float(eps) == pytest.approx(float(privacy_loss(risk, prior)) / SHARE[metric], rel=1e-14)
        answer = metrics(
            eps,
            np.array([n]),
            global_sensitivity=3.0,
            local_sensitivity=np.array([2.0]),
            world_range=np.array([4.0]),
        )[metric]
        assert answer[0] == pytest.approx(risk, rel=1e-12)
        if metric == "worst_case":  # the one that calibrates releases errs towards the person
            assert answer[0] <= risk

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_declared_prior_takes_the_place_of_one_in_n(self, metric):
        eps = epsilon_for(0.4, 1 / 68, metric=metric, n=3, **DISTANCES[metric])
        assert float(eps) == pytest.approx(math.log(67 * 0.4 / 0.6) / SHARE[metric], rel=1e-14)

    def test_arrays(self):
        found = epsilon_for(
            [0.6, 0.7], metric="two_worlds", global_sensitivity=2.0, local_sensitivity=[[1.0], [0.5], [0.0]]
        )
        assert found.shape == (3, 2)
        np.testing.assert_allclose(found[0], 2 * np.log([1.5, 7 / 3]), rtol=1e-13)
        np.testing.assert_allclose(found[1], 4 * np.log([1.5, 7 / 3]), rtol=1e-13)
        assert (found[2] == math.inf).all()
        by_n = epsilon_for(0.9, metric="many_worlds", n=[2, 10], local_sensitivity=1.0)
        np.testing.assert_allclose(by_n, np.log([9, 81]), rtol=1e-13)

    @of_distance
    def test_what_tells_nothing_may_be_told_at_any_epsilon(self, metric):
        nothing = {name: 0.0 for name in DISTANCES[metric] if name != "global_sensitivity"}
        assert epsilon_for(0.6, metric=metric, n=2, **nothing) == math.inf
        assert epsilon_for(0.5, metric=metric, n=2, **nothing) == math.inf  # the prior itself can be had, then
        with pytest.raises(ParameterError, match=r"prior of 0\.5"):
            epsilon_for(0.4, metric=metric, n=2, **nothing)

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_risk_at_the_prior_cannot_be_had(self, metric):
        with pytest.raises(ParameterError, match=r"risk of 0\.5 is not possible.*prior of 0\.5"):
            epsilon_for(0.5, metric=metric, n=2, **DISTANCES[metric])

    @of_distance
    def test_missing_or_impossible_distances(self, metric):
        name = next(name for name in DISTANCES[metric] if name != "global_sensitivity")
        with pytest.raises(ParameterError, match=f"{metric} needs {name}="):
            epsilon_for(0.9, metric=metric, n=2)
        for wrong in (-1.0, math.inf, math.nan):
            with pytest.raises(ParameterError, match=f"{name} must be finite and at least 0"):
                epsilon_for(0.9, metric=metric, n=2, **{name: wrong})
        for wrong in (0.0, -1.0, math.inf, math.nan):
            with pytest.raises(ParameterError, match="global_sensitivity must be finite and above 0"):
                epsilon_for(0.9, metric=metric, n=2, **{name: 1.0}, global_sensitivity=wrong)
        with pytest.raises(ColumnTypeError, match=f"{name} must be a number"):
            epsilon_for(0.9, metric=metric, n=2, **{name: "wide"})

    @pytest.mark.parametrize("metric", ["many_worlds", "identifiability"])
    def test_missing_or_impossible_numbers_of_records(self, metric):
        with pytest.raises(ParameterError, match="pass n=, the number of records, or prior="):
            epsilon_for(0.9, metric=metric, **DISTANCES[metric])
        for wrong in (1, 0, -3, math.nan, [5, 1]):
            with pytest.raises(ParameterError, match=f"{metric} needs n of at least 2"):
                epsilon_for(0.9, metric=metric, n=wrong, **DISTANCES[metric])

    @pytest.mark.parametrize("risk", [0.0, 1.0, -1.0, 2.0, math.nan])
    @pytest.mark.parametrize("metric", METRICS)
    def test_risks_it_refuses(self, metric, risk):
        with pytest.raises(ParameterError, match="risk must be a probability above 0 and below 1"):
            epsilon_for(risk, metric=metric, n=2, **DISTANCES[metric])

    def test_metrics_it_does_not_know(self):
        with pytest.raises(ParameterError, match="unknown metric 'best_case'; it must be one of worst_case, two_w"):
            epsilon_for(0.9, metric="best_case")


def metrics_of(statistic, records, universe, eps) -> dict[str, float]:
    summary = summary_of_one(np.array(records, dtype=float), universe, statistic.needs)
    found = metrics(
        eps,
        summary.n,
        global_sensitivity=statistic.global_sensitivity(universe),
        local_sensitivity=statistic.local_sensitivity(summary, universe),
        world_range=statistic.world_range(summary, universe),
    )
    assert tuple(found) == METRICS
    return {name: float(value[0]) for name, value in found.items()}


class TestMetrics:
    """The table of docs/numbers.md: priors 1/2 and 1/n, losses eps, eps LS/GS and eps W/GS, and their order."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
    @given(records=st.lists(st.floats(-3, 9), min_size=2, max_size=8), eps=st.floats(1e-6, 20))
    def test_order(self, statistic, records, eps):
        risk, n = metrics_of(statistic, records, Universe(-3.0, 9.0), eps), len(records)
        room = 1 + 1e-12
        assert 1 / n <= risk["many_worlds"] * room
        assert risk["many_worlds"] <= risk["two_worlds"] * room
        assert risk["two_worlds"] <= risk["worst_case"] * room
        assert 1 / n <= risk["identifiability"] * room
        assert risk["identifiability"] <= float(posterior(2 * eps, 1 / n)) * room

    @pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
    def test_nobody_and_a_single_person(self, statistic):
        universe = Universe(-3.0, 9.0)
        nobody = metrics_of(statistic, [], universe, 1.0)
        assert math.isnan(nobody["many_worlds"])
        assert math.isnan(nobody["identifiability"])
        assert nobody["two_worlds"] <= nobody["worst_case"] == posterior(1.0)
        single = metrics_of(statistic, [4.0], universe, 1.0)
        assert single["many_worlds"] == single["identifiability"] == 1

    def test_formulas(self):
        found = metrics(
            np.array([0.5, 2.0]),
            np.array([4, 10]),
            global_sensitivity=8.0,
            local_sensitivity=np.array([2.0, 4.0]),
            world_range=np.array([6.0, 12.0]),
        )
        np.testing.assert_allclose(found["worst_case"], posterior([0.5, 2.0]), rtol=1e-15)
        np.testing.assert_allclose(found["two_worlds"], posterior([0.125, 1.0]), rtol=1e-15)
        np.testing.assert_allclose(found["many_worlds"], posterior([0.125, 1.0], [1 / 4, 1 / 10]), rtol=1e-15)
        np.testing.assert_allclose(found["identifiability"], posterior([0.375, 3.0], [1 / 4, 1 / 10]), rtol=1e-15)

    def test_one_epsilon_for_many_groups_and_many_for_one(self):
        one = np.array([1.0])
        groups = metrics(1.0, np.array([2, 3, 4]), global_sensitivity=1.0, local_sensitivity=one, world_range=one)
        assert groups["worst_case"].shape == groups["many_worlds"].shape == (3,)
        epsilons = metrics(
            np.array([0.1, 1.0]), np.array([2]), global_sensitivity=1.0, local_sensitivity=one, world_range=one
        )
        assert {epsilons[name].shape for name in METRICS} == {(2,)}

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.label)
    @given(
        records=st.lists(st.integers(0, 4), max_size=5),
        eps=st.floats(0.01, 10),
        output=st.floats(-20, 60),
    )
    def test_no_output_convinces_an_attacker_of_two_worlds_further(self, statistic, records, eps, output):
        # Attack: the curator's data or one of its neighbours, decided by a coin, and any output at all.
        universe, definition = Universe(0.0, 4.0), oracle.DEFINITIONS[statistic.label]
        scale = statistic.global_sensitivity(universe) / eps
        risk = metrics_of(statistic, records, universe, eps)
        here, ends = oracle.fractions(records), (Fraction(0), Fraction(4))
        own = definition.value(here, *ends)
        most = 0.0
        for other in oracle.neighbours(here, *ends):
            worlds = [own, definition.value(other, *ends)]
            for at in (output, *worlds):
                most = max(most, *oracle.laplace_posteriors(worlds, scale, at, [0.5, 0.5]))
        assert most <= risk["two_worlds"] + 1e-8
        assert most >= risk["two_worlds"] - 1e-8  # and one of them comes as far
