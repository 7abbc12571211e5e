"""Printed numbers: what the papers say of their own examples (docs/numbers.md).

Left out: the standard deviation's rows for Adult in Lee & Clifton 2012, which no formula known to us reproduces.
"""

import math

import numpy as np
import pytest

import oracle
from pdrisk.core.order import Max, Median, Min
from pdrisk.core.spread import Var
from pdrisk.core.statistics import Mean, Statistic
from pdrisk.core.universe import Universe
from pdrisk.engines.single import summary_of_one
from pdrisk.errors import ParameterError
from pdrisk.risk import epsilon_for, exact_identifiability, metrics, posterior, tight_epsilon

# Allmann, Nuñez von Voigt & Tschorsch 2024 (arXiv 2407.04084), Table I: distances to work of five people.
UNIVERSE = Universe(1.0, 675.0)
PEOPLE = (3, 1, 10, 675, 17)
SAMPLE = (3, 1, 10, 17)
LISTED = {Mean(): "mean", Median(): "median", Var(0): "var0", Var(1): "var1"}


def summarised(statistic: Statistic, records):
    return summary_of_one(np.array(records, dtype=float), UNIVERSE, statistic.needs)


def value(statistic: Statistic, records) -> float:
    return float(statistic.value(summarised(statistic, records), UNIVERSE)[0])


def local(statistic: Statistic, records) -> float:
    return float(statistic.local_sensitivity(summarised(statistic, records), UNIVERSE)[0])


class TestTableI:
    """Allmann et al. 2024, Table I, with the variance's local sensitivity corrected (docs/numbers.md)."""

    @pytest.mark.parametrize(
        ("statistic", "expected"),
        [(Mean(), 337.0), (Median(), 337.0), (Min(), 674.0), (Max(), 674.0), (Var(0), 113569.0), (Var(1), 227138.0)],
    )
    def test_global_sensitivities(self, statistic, expected):
        assert statistic.global_sensitivity(UNIVERSE) == expected

    def test_mean(self):
        assert value(Mean(), SAMPLE) == 7.75
        assert value(Mean(), PEOPLE) == pytest.approx(141.2, rel=1e-15)  # the sample and 675
        assert local(Mean(), SAMPLE) == pytest.approx(133.45, rel=1e-14)

    def test_median(self):
        assert value(Median(), PEOPLE) == 10
        assert value(Median(), SAMPLE) == 6.5
        assert value(Median(), (3, 10, 675, 17)) == 13.5
        assert local(Median(), PEOPLE) == 3.5

    @pytest.mark.parametrize(
        ("ddof", "of_all", "of_sample", "sensitivity"),
        [(0, 71267.36, 39.6875, 71227.6725), (1, 89084.2, 52.916667, 89031.283333)],
    )
    def test_variance(self, ddof, of_all, of_sample, sensitivity):
        assert value(Var(ddof), PEOPLE) == pytest.approx(of_all, rel=1e-12)
        assert value(Var(ddof), SAMPLE) == pytest.approx(of_sample, abs=5e-7)
        assert local(Var(ddof), SAMPLE) == pytest.approx(sensitivity, abs=5e-7)

    # docs/numbers.md: sample {3, 1, 10, 17}, eps = 1.
    RISKS = (
        (Mean(), 0.395994, 0.597725, 0.331232),
        (Median(), 0.0103858, 0.502596, 0.251952),
        (Var(0), 0.627175, 0.651849, 0.384276),
        (Var(1), 0.391970, 0.596757, 0.330341),
    )

    @pytest.mark.parametrize(("statistic", "share", "two", "many"), RISKS, ids=LISTED.values())
    def test_risks(self, statistic, share, two, many):
        summary = summarised(statistic, SAMPLE)
        found = metrics(
            1.0,
            summary.n,
            global_sensitivity=statistic.global_sensitivity(UNIVERSE),
            local_sensitivity=statistic.local_sensitivity(summary, UNIVERSE),
            world_range=statistic.world_range(summary, UNIVERSE),
        )
        assert local(statistic, SAMPLE) / statistic.global_sensitivity(UNIVERSE) == pytest.approx(share, abs=5e-7)
        assert found["two_worlds"][0] == pytest.approx(two, abs=5e-7)
        assert found["many_worlds"][0] == pytest.approx(many, abs=5e-7)
        assert found["worst_case"][0] == pytest.approx(0.731059, abs=5e-7)

    @pytest.mark.parametrize(
        ("statistic", "influences", "risks"),
        [
            (Mean(), [34.55, 35.05, 32.8, 133.45, 31.05], [0.5256, 0.5260, 0.5243, 0.5977, 0.5230]),
            (Max(), [0, 0, 0, 658, 0], [0.5, 0.5, 0.5, 0.7264, 0.5]),
        ],
        ids=["mean", "max"],
    )
    def test_risk_of_each_person(self, statistic, influences, risks):
        summary = summarised(statistic, PEOPLE)
        influence = statistic.influence(np.array(PEOPLE, dtype=float), summary, UNIVERSE)
        assert influence.tolist() == pytest.approx(influences, abs=1e-12)
        found = posterior(1.0 * influence / statistic.global_sensitivity(UNIVERSE))
        assert found.round(4).tolist() == risks


class TestWorstCase:
    """Mehner, Nuñez von Voigt & Tschorsch 2021; Allmann et al. 2024, eq. 5."""

    # docs/numbers.md
    BELIEFS = (
        *((0.01, 0.5025), (0.1, 0.524979), (0.5, 0.622459), (math.log(2), 0.666667)),
        *((1, 0.731059), (2, 0.880797), (5, 0.993307), (10, 0.9999546)),
    )

    @pytest.mark.parametrize(("eps", "belief"), BELIEFS)
    def test_belief(self, eps, belief):
        assert float(posterior(eps)) == pytest.approx(belief, abs=5e-7)
        assert float(epsilon_for(posterior(eps))) == pytest.approx(eps, rel=1e-11)


class TestLeeAndClifton2012:
    """ "Differential identifiability", KDD 2012."""

    # Section 4: U = {1..10}, D' = {1, 3}: the unknown third record is any of the other eight.
    MEANS = tuple((1 + 3 + k) / 3 for k in (2, *range(4, 11)))
    MEDIANS = (2, 3, 3, 3, 3, 3, 3, 3)

    def test_mean(self):
        # Section 4: lambda = 2.1286 at rho = 1/3, S = 8/3.
        spread = max(self.MEANS) - min(self.MEANS)
        eps = epsilon_for(1 / 3, 1 / 8, metric="identifiability", global_sensitivity=spread, world_range=spread)
        assert spread == pytest.approx(8 / 3, rel=1e-15)
        assert float(eps) == pytest.approx(1.2527629685, abs=5e-11)  # ln 3.5
        assert float(spread / eps) == pytest.approx(2.1286282671, abs=5e-11)
        assert exact_identifiability(self.MEANS, float(spread / eps)) == pytest.approx(0.2294382695, abs=5e-11)
        assert tight_epsilon(self.MEANS, 1 / 3) == pytest.approx(2.2495966, abs=5e-8)

    def test_median(self):
        # Section 4: S = 1, and the bound is attained: all but one world give the same answer.
        eps = epsilon_for(1 / 3, 1 / 8, metric="identifiability", world_range=1.0)
        assert exact_identifiability(self.MEDIANS, float(1 / eps)) == pytest.approx(1 / 3, rel=1e-12)
        assert tight_epsilon(self.MEDIANS, 1 / 3) == pytest.approx(float(eps), rel=1e-12)

    @pytest.mark.parametrize(
        ("rho", "loose", "tight"),  # docs/numbers.md
        [
            (0.2, 0.559616, 0.939243),
            (0.25, 0.847298, 1.460950),
            (0.5, 1.945910, 3.766763),
            (0.75, 3.044522, 6.664430),
            (0.9, 4.143135, 10.115656),
            (0.99, 6.541029, 18.782325),
        ],
    )
    def test_loose_and_tight(self, rho, loose, tight):
        assert float(epsilon_for(rho, 1 / 8)) == pytest.approx(loose, abs=1e-6)  # two are cut off, not rounded
        assert tight_epsilon(self.MEANS, rho) == pytest.approx(tight, abs=1e-6)

    def test_confidence_after_one_output(self):
        # Section 3.5: D = {1, 2, 3, 10}, U = {1, 2, 3, 4, 5, 10}, sensitivity 9/4, eps = 2, output 5.041:
        # densities .0464, .0580 and .1762 of the fourth record being 4, 5 and 10; confidence .6278.
        worlds, scale = [(1 + 2 + 3 + k) / 4 for k in (4, 5, 10)], 9 / 4 / 2
        densities = [math.exp(-abs(5.041 - world) / scale) / (2 * scale) for world in worlds]
        assert [round(density, 4) for density in densities] == [0.0464, 0.0580, 0.1762]
        believed = oracle.laplace_posteriors(worlds, scale, 5.041, [1 / 3] * 3)
        assert round(believed[2], 4) == 0.6278
        # Beyond the last world outputs say the same as at it, which is the most any output says.
        assert exact_identifiability(worlds, scale) == pytest.approx(believed[2], rel=1e-14)

    ROWS = 48_842
    # column: number of values, their range; lambda at rho = .1 and at .001 (None: infeasible). Section 5, the means.
    ADULT = (
        ("age", 17, 90, 0.0007, None),
        ("education-num", 1, 16, 0.0006, None),
        ("capital-gain", 0, 99_999, 0.2198, 0.4445),
        ("capital-loss", 0, 4_356, 0.0144, 0.0606),
        ("hours-per-week", 1, 99, 0.0008, None),
    )

    @pytest.mark.parametrize(("column", "lo", "hi", "at_tenth", "at_thousandth"), ADULT)
    def test_noise_for_adult(self, column, lo, hi, at_tenth, at_thousandth):
        prior, spread = 1 / (hi - lo + 1), (hi - lo) / self.ROWS
        for rho, printed in ((0.1, at_tenth), (0.001, at_thousandth)):
            given = {"metric": "identifiability", "global_sensitivity": spread, "world_range": spread}
            if printed is None:
                with pytest.raises(ParameterError, match=r"risk of 0\.001 cannot be had"):
                    epsilon_for(rho, prior, **given)
            else:
                assert round(float(spread / epsilon_for(rho, prior, **given)), 4) == printed

    def test_epsilon_for_adult(self):
        # Section 5, capital-gain: eps = ln((m - 1) rho / (1 - rho)), m = 100,000, rho = 2**-1, 2**-4, ..., 2**-16.
        rho = 2.0 ** -np.array([1, 4, 7, 10, 13, 16])
        assert epsilon_for(rho, 1 / 100_000).round(3).tolist() == [11.513, 8.805, 6.669, 4.582, 2.502, 0.423]


class TestLeeAndClifton2011:
    """ "How much is enough? Choosing epsilon for differential privacy", ISC 2011: rho = 1/3, one of four is missing."""

    @pytest.mark.parametrize(
        ("records", "sensitivity", "distance", "loose", "tight"),
        [((1, 2, 3, 10), 17 / 6, 3, 0.3829393, 0.4317201), ((1, 2, 3, 4), 5 / 6, 1, 0.3378876, 0.5251497)],
        ids=["1, 2, 3, 10", "1, 2, 3, 4"],
    )
    def test_upper_bound_of_epsilon(self, records, sensitivity, distance, loose, tight):
        array, universe = np.array(records, dtype=float), Universe(1.0, 10.0)
        summary = summary_of_one(array, universe, Mean().needs)
        worlds = Mean().leave_one_out(array, summary, universe)
        assert Mean().world_range(summary, universe)[0] == pytest.approx(distance, rel=1e-15)
        # Their sensitivity is that of the possible worlds, from which one more record is removed.
        changes = []
        for rest in (np.delete(array, missing) for missing in range(4)):
            changes += Mean().influence(rest, summary_of_one(rest, universe, Mean().needs), universe).tolist()
        assert max(changes) == pytest.approx(sensitivity, rel=1e-14)
        bound = epsilon_for(1 / 3, metric="identifiability", n=4, global_sensitivity=sensitivity, world_range=distance)
        assert float(bound) == pytest.approx(loose, abs=5e-8)
        assert tight_epsilon(worlds, 1 / 3, sensitivity) == pytest.approx(tight, abs=5e-8)
