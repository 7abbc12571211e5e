"""Means in two stages: what a record changes in each, real coverage, and how much nearer the answers are."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from pdrisk._core.lattice import PLACES
from pdrisk._core.statistics import Mean
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.numpy.grouped import summary_of_groups

UNIT = Universe(0.0, 1.0)


def mechanism_of(n, eps=1, name="two_stage"):
    return calibrated(name, Mean(n_at_least=n), UNIT, Fraction(eps))


def summarised(groups, mechanism):
    x = np.array([x for each in groups for x in each], dtype=float)
    codes = np.repeat(np.arange(len(groups), dtype=np.int32), [len(each) for each in groups])
    return summary_of_groups(x, codes, len(groups), UNIT, mechanism.needs(mechanism.statistic))


class Recorder:
    """A source of noise that adds a fixed number, and notes what it was asked for."""

    def __init__(self, *noise):
        self.noise, self.asked = list(noise), []

    def __call__(self, exact, change, eps):
        self.asked.append((exact.tolist(), change, eps))
        noise = self.noise[0] if len(self.asked) == 1 else 0
        return exact + (np.array([[noise], [-noise]]) if exact.ndim == 2 else 0)


class TestPrivacy:
    @pytest.mark.parametrize("noise", [-4 * PLACES, -PLACES, 0, PLACES // 3, 2 * PLACES])
    def test_each_stage_hides_one_record(self, noise):
        """Whatever the pilot says, one record moves what each stage hides by its change at most; both cost eps."""
        mechanism = mechanism_of(100, 3)
        shares = (0.0, 0.2, 0.5, 1.0)
        for records in itertools.combinations_with_replacement(shares, 3):
            one = Recorder(noise)
            centre = int(mechanism.draw(summarised([records], mechanism), one)[2, 0])
            (pilot, change, first), (rest, second_change, second) = one.asked
            assert first + second == 3 and change == PLACES and 0 <= centre <= PLACES
            assert rest == [self.distance(records, centre)]
            for more in shares:
                other = Recorder(noise)
                mechanism.draw(summarised([(*records, more)], mechanism), other)
                assert np.abs(np.array(other.asked[0][0]) - np.array(pilot)).sum() == PLACES
                # What the second stage of the neighbour would hide, had its pilot come out alike.
                assert abs(self.distance((*records, more), centre) - rest[0]) <= second_change
            assert second_change == max(centre, PLACES - centre) + 1

    def distance(self, records, centre):
        return sum(math.floor(x * PLACES + 0.5) - centre for x in records)

    def test_losses_by_the_worst_centre(self):
        mechanism = mechanism_of(50, 2)
        pilot, rest = mechanism._stages
        assert pilot + rest == 2 and 0.1 < pilot / 2 <= Fraction(3, 20)
        records = np.array([0.0, 0.3, 0.5, 0.9, 1.0])
        summary = summarised([records], mechanism)
        centres = np.arange(0, PLACES + 1, PLACES // 1024) / PLACES
        for record, loss in zip(records, mechanism.loss_of_records(records, summary), strict=True):
            worst = max(abs(record - c) / max(c, 1 - c) for c in centres)
            assert loss == pytest.approx(float(pilot) + float(rest) * worst, abs=1e-8)
        assert mechanism.loss(summary).tolist() == [2.0]
        for i, j in itertools.combinations(records, 2):
            worst = 2 * float(pilot) * abs(i - j) + float(rest) * abs(i - j) * max(1 / max(c, 1 - c) for c in centres)
            places, unit = mechanism.worlds(np.array([i, j]), summary)
            assert worst <= abs(places[0] - places[1]) / unit + 1e-8
        m = math.hypot(*(2 * ndtri(math.exp(-each / 2) / 2) for each in (0.3, 1.7)))  # of both stages
        assert mechanism.success == pytest.approx(ndtr(m / 2))


class TestAnswers:
    @pytest.mark.parametrize(("n", "m", "most"), [(10_000, 0.5, 0.9), (10_000, 0.1, 1.3), (100_000, 0.3, 1.15)])
    def test_error_beside_that_of_two_sums(self, n, m, most):
        """Nearer where values spread around the middle of the bounds; a little farther where they do not."""
        groups = 1500
        errors = []
        for name in ("two_stage", "two_sums"):
            mechanism = mechanism_of(n, name=name)
            one = summarised([[0.0] * round(n * (1 - m)) + [1.0] * round(n * m)], mechanism)
            drawn = mechanism.draw(one.of_rows(np.zeros(groups, dtype=int)))
            errors.append(np.abs(mechanism.value(drawn) - m).mean())
            low, high = mechanism.interval(drawn, 0.95)
            assert ((low <= m) & (m <= high)).mean() > 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / groups)
        assert errors[0] < most * errors[1]

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("n", [1, 12, 200])
    @pytest.mark.parametrize("m", [0.0, 0.4, 1.0])
    def test_coverage_among_fewer_records_than_declared(self, n, m):
        groups, mechanism = 1000, mechanism_of(5000)
        one = summarised([[m] * n], mechanism)
        drawn = mechanism.draw(one.of_rows(np.zeros(groups, dtype=int)))
        low, high = mechanism.interval(drawn, 0.95)
        value = mechanism.value(drawn)
        assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()
        assert ((low <= m) & (m <= high)).mean() > 0.95 - 6.5 * math.sqrt(0.05 * 0.95 / groups)

    def test_front_ends(self, tmp_path):
        frame = pd.DataFrame({"x": np.arange(20_000) % 100, "g": np.arange(20_000) % 2})
        asked = {"eps": 1, "bounds": (0, 100), "mechanism": "two_stage", "n_at_least": 10_000}
        release = frame.dprisk.mean("x", curator=True, **asked)
        assert abs(release.value - 49.5) < 1 and release.low < release.value < release.high
        assert release.curator.loss == 1 and "nan" not in release.explain("curator")
        table = frame.dprisk.mean("x", by="g", keys=[0, 1], **asked)
        assert (table["high"] - table["low"] < 0.2).all()
        shares = frame.dprisk.proportion("x > 49", **(asked | {"bounds": None}))
        assert abs(shares.value - 0.5) < 0.02 and shares.interval(kind="sampling")[0] < shares.low
        pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=9)
        data = pdrisk.Dataset(frame, name="d", ledger=tmp_path / "l.db")
        answers = {data.mean("x", **(asked | {"n_at_least": n})).value for n in (10_000, 10_000, 9000)}
        assert len(answers) == 2 and data.ledger.remaining().spent == 2
        assert frame.dprisk.mean("x", max_noise95=0.08, **asked).noise95 < 0.08

    def test_is_refused_without_the_number_and_for_other_statistics(self):
        frame = pd.DataFrame({"x": range(9)})
        for ask in (
            lambda: frame.dprisk.mean("x", eps=1, bounds=(0, 9), mechanism="two_stage"),
            lambda: frame.dprisk.sum("x", eps=1, bounds=(0, 9), mechanism="two_stage", n_at_least=5),
            lambda: frame.dprisk.mean("x", eps=1e-7, bounds=(0, 9), mechanism="two_stage", n_at_least=5),
            lambda: pdrisk.sql("SELECT AVG(x) FROM t", t=frame, eps=1, bounds=(0, 9), mechanism="two_stage"),
        ):
            with pytest.raises(pdrisk.ParameterError, match=r"needs n_at_least|cannot answer|too small"):
                ask()
