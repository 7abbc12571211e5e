"""Variances in two stages: what a record changes in each, real coverage, and how much nearer the answers are."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from pdrisk._core.lattice import PLACES
from pdrisk._core.spread import Std, Var
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.numpy.single import summary_of_one

UNIT = Universe(0.0, 1.0)


def mechanism_of(n, eps=1, name="two_stage", statistic=Var):
    return calibrated(name, statistic(n_at_least=n), UNIT, Fraction(eps))


def summarised(records, mechanism):
    return summary_of_one(np.array(records, dtype=float), UNIT, mechanism.needs(mechanism.statistic))


class Recorder:
    """A source of noise that adds fixed numbers to the pilot, and notes what it was asked for."""

    def __init__(self, pilot):
        self.pilot, self.asked = np.array(pilot)[:, np.newaxis], []

    def __call__(self, exact, change, eps):
        self.asked.append((exact.tolist(), change, eps))
        return exact + (self.pilot if exact.ndim == 2 else 0)


class TestPrivacy:
    @pytest.mark.parametrize("moved", [(0, 0, 0), (-9, 4, 9), (7, 1, -6), (40, 9, 40), (-90, -90, 40)])
    def test_each_stage_hides_one_record(self, moved):
        """Whatever the pilot says, one record moves what each stage hides by its change at most; both cost eps."""
        mechanism = mechanism_of(100, 3)
        shares = (0.0, 0.21, 0.5, 0.77, 1.0)
        for records in itertools.combinations_with_replacement(shares, 3):
            one = Recorder([each * PLACES // 7 for each in moved])
            centre, spread = mechanism.draw(summarised(records, mechanism), one)[3:5]
            (pilot, change, first), (_, second_change, second) = one.asked
            assert first + second == 3 and change == PLACES
            before = self.distance(records, mechanism, centre, spread)
            for more in (*shares, 0.3333, 0.9999):
                other = Recorder(one.pilot[:, 0])
                mechanism.draw(summarised([*records, more], mechanism), other)
                assert np.abs(np.array(other.asked[0][0]) - np.array(pilot)).sum() <= PLACES
                # What the second stage of the neighbour would hide, had its pilot come out alike.
                after = self.distance([*records, more], mechanism, centre, spread)
                wanted = (Fraction(more) - Fraction(int(centre[0]), 256)) ** 2 - Fraction(int(spread[0]), 1024)
                assert abs(after - before - wanted * PLACES) <= 6 and abs(after - before) <= second_change

    def distance(self, records, mechanism, centre, spread):
        return mechanism._distance(summarised(records, mechanism), centre, spread)[0]

    def test_change_is_the_largest_over_all_records(self):
        mechanism, k = mechanism_of(100), np.linspace(0, 1, 1025)
        for centre, spread in itertools.product(range(0, 257, 16), range(0, 257, 16)):
            most = np.abs((k - centre / 256) ** 2 - spread / 1024).max()
            steps = int(mechanism._steps(np.array([centre]), np.array([spread]))[0])
            assert most <= steps / 1024 <= most + 2 / 1024 + 1e-12

    @pytest.mark.parametrize("place", [0, PLACES // 3, PLACES])
    def test_one_record_among_billions(self, place):
        """Beyond 2**32 the sum is held back, so slowly that one record still moves it by the change at most."""
        mechanism = mechanism_of(100)
        hidden = []
        for n in (2**32, 2**33 - 3, 2**33 - 2, 2**33 - 1, 2**33, 2**34):
            for more in (0, 1):
                records = np.array([n + more])
                held = min((n + more) * place, 2**63 - 1), min((n + more) * (place * place // PLACES), 2**63 - 1)
                recorder = Recorder([0, 0, 0])
                summary = Summary(records, places=np.array(held[:1]), place_squares=np.array(held[1:]))
                mechanism.draw(summary, recorder)
                hidden.append((recorder.asked[1][0][0], recorder.asked[1][1]))
        for (one, change), (other, _) in zip(hidden[::2], hidden[1::2], strict=True):
            assert abs(one - other) <= change
        assert hidden[-1][0] == 0

    def test_losses_are_bounds(self):
        mechanism, records = mechanism_of(50, 2), np.array([0.0, 0.3, 0.3, 1.0])
        summary = summarised(records, mechanism)
        assert mechanism.loss(summary).tolist() == [2.0] and mechanism.loss_of_records(records, summary).max() == 2
        places, unit = mechanism.worlds(records, summary)
        apart = np.abs(np.subtract.outer(places, places)) / unit
        assert ((apart >= 4) == (records[:, None] != records)).all() and mechanism.loss_between_worlds(summary) == 4
        assert mechanism.loss_between_worlds(summarised([0.3, 0.3], mechanism)) == 0
        m = math.hypot(*(2 * ndtri(math.exp(-each / 2) / 2) for each in (0.3, 1.7)))  # of both stages
        assert mechanism.success == pytest.approx(ndtr(m / 2))


RNG = np.random.default_rng(7)
SHAPES = {
    "even": lambda n: np.linspace(0, 1, n),
    "ends": lambda n: np.arange(n) % 2,
    "near 0": lambda n: np.linspace(0, 1, n) ** 8,
    "one value": lambda n: np.full(n, 0.4),
}


class TestAnswers:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("statistic", [Var, Std])
    @pytest.mark.parametrize(
        ("shape", "n", "most"),
        [("even", 10_000, 0.6), ("ends", 10_000, 0.7), ("near 0", 1000, 1.5), ("even", 1000, 0.8)],
    )
    def test_error_and_coverage_beside_those_of_bernstein(self, statistic, shape, n, most):
        """Half the error where values spread over the bounds, which no other mechanism here reaches."""
        groups, x = 1500, SHAPES[shape](n)
        exact = x.var(ddof=1) if statistic is Var else x.std(ddof=1)
        errors = []
        for name in ("two_stage", "bernstein"):
            mechanism = mechanism_of(n, name=name, statistic=statistic)
            drawn = mechanism.draw(summarised(x, mechanism).of_rows(np.zeros(groups, dtype=int)))
            errors.append(np.abs(mechanism.value(drawn) - exact).mean())
            low, high = mechanism.interval(drawn, 0.95)
            assert ((low - 1e-9 <= exact) & (exact <= high + 1e-9)).mean() > 0.95 - 6.5 * math.sqrt(
                0.05 * 0.95 / groups
            )
        assert errors[0] < most * errors[1]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("n", [1, 2, 12, 200, 1000])
    @pytest.mark.parametrize("shape", ["even", "ends", "one value"])
    def test_coverage_among_fewer_records_than_declared(self, shape, n):
        groups, mechanism, x = 1000, mechanism_of(5000), SHAPES[shape](n)
        exact = x.var(ddof=1) if n > 1 else 0.0
        drawn = mechanism.draw(summarised(x, mechanism).of_rows(np.zeros(groups, dtype=int)))
        low, high = mechanism.interval(drawn, 0.95)
        value = mechanism.value(drawn)
        assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 0.5)).all()
        assert ((low - 1e-9 <= exact) & (exact <= high + 1e-9)).mean() > 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / groups)

    def test_without_noise_it_is_the_variance(self):
        mechanism, x = mechanism_of(1000), RNG.random(1000)
        drawn = mechanism.draw(summarised(x, mechanism), lambda exact, *_: exact)
        assert mechanism.value(drawn)[0] == pytest.approx(x.var(ddof=1), abs=1e-8)

    def test_front_ends(self, tmp_path):
        frame = pd.DataFrame({"x": np.arange(20_000) % 100, "g": np.arange(20_000) % 2})
        asked = {"eps": 1, "bounds": (0, 100), "mechanism": "two_stage", "n_at_least": 10_000}
        release = frame.dprisk.std("x", curator=True, **asked)
        assert abs(release.value - 28.87) < 0.3 and release.low < release.value < release.high
        assert release.curator.loss == 1 and "nan" not in release.explain("curator")
        table = frame.dprisk.agg({"x": ["var", "mean"]}, by="g", keys=[0, 1], **asked)
        assert table["release"].tolist() == [1, 1, 2, 2] and (table["high"] - table["low"] < 10).all()
        pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=9)
        data = pdrisk.Dataset(frame, name="d", ledger=tmp_path / "l.db")
        answers = {data.var("x", **(asked | {"n_at_least": n})).value for n in (10_000, 10_000, 9000)}
        assert len(answers) == 2 and data.ledger.remaining().spent == 2
        assert frame.dprisk.var("x", max_noise95=4, **asked).noise95 < 1
        with pytest.raises(pdrisk.ParameterError, match="more than max_noise95"):
            frame.dprisk.var("x", max_noise95=0.01, **asked)
        with pytest.raises(pdrisk.ParameterError, match="needs n_at_least"):
            frame.dprisk.var("x", **(asked | {"n_at_least": None}))
        with pytest.raises(pdrisk.ParameterError, match="too small for two stages"):
            frame.dprisk.var("x", **(asked | {"eps": 1e-7}))
