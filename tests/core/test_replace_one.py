"""Neighbours of the same public size: what one replaced record can do, against its definition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._core.lattice import PLACES
from pdrisk._core.replaced import MeanOfSize, ProportionOfSize, SumOfSize, WholeSumOfSize
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.risk import posterior

EPS = Fraction(2)
NOTHING = math.nan
KINDS = {
    "mean": (MeanOfSize, "one_sum", Universe(-1.0, 3.0), (-1.0, 0.3, 3.0, 7.0, NOTHING)),
    "proportion": (ProportionOfSize, "one_sum", Universe(0.0, 1.0), (0.0, 1.0)),
    "sum": (SumOfSize, "one_sum", Universe(2.0, 3.0), (2.0, 2.25, 3.0, NOTHING)),
    "whole": (lambda n: WholeSumOfSize(n, 3), "geometric", Universe(2.0, 5.0), (2.0, 3.0, 5.0, NOTHING)),
}


def exactly(steps, *_):
    """No noise."""
    return steps


@pytest.fixture(params=KINDS)
def case(request):
    """All data of three records, each a group."""
    kind, name, universe, values = KINDS[request.param]
    mechanism = calibrated(name, kind(3), universe, EPS)
    data = list(itertools.product(values, repeat=3))
    x = np.array(data).ravel()
    codes = np.repeat(np.arange(len(data), dtype=np.int32), 3)
    there = ~np.isnan(x)
    x = np.clip(x, universe.lo, universe.hi)
    needs = mechanism.needs(mechanism.statistic)
    return mechanism, data, summary_of_groups(x[there], codes[there], len(data), universe, needs)


class TestOneRecord:
    def test_moves_what_noise_is_added_to_by_the_change_at_most(self, case):
        """A missing record too, and one that goes missing; and somebody's by no less."""
        mechanism, data, summary = case
        drawn = dict(zip(map(repr, data), mechanism.draw(summary, exactly).tolist(), strict=True))
        change = PLACES if mechanism.name == "one_sum" else 3
        values = {each for records in data for each in records if each == each} | {NOTHING}
        moved = set()
        for records, at in itertools.product(data, range(3)):
            for value in values:
                other = repr((*records[:at], value, *records[at + 1 :]))
                if other in drawn:
                    moved.add(abs(drawn[other] - drawn[repr(records)]))
        assert max(moved) == change

    def test_loses_what_is_told(self, case):
        """The most exposed record, and each one: by the farther end."""
        mechanism, data, summary = case
        drawn = mechanism.draw(summary, exactly)
        change = PLACES if mechanism.name == "one_sum" else 3
        number = {repr(records): value for records, value in zip(data, drawn.tolist(), strict=True)}
        low, high = mechanism.universe.lo, mechanism.universe.hi
        whole = [at for at, records in enumerate(data) if not any(x != x for x in records)]
        told, local = mechanism.loss(summary), mechanism.statistic.local_sensitivity(summary, mechanism.universe)
        for at in whole:
            records, losses = data[at], []
            for place in range(3):
                ends = [number[repr((*records[:place], end, *records[place + 1 :]))] for end in (low, high)]
                losses.append(float(EPS) * max(abs(end - number[repr(records)]) for end in ends) / change)
            assert told[at] == pytest.approx(max(losses), abs=1e-8)
            assert told[at] <= float(EPS)
            assert local[at] == pytest.approx(
                max(losses) / float(EPS) * mechanism.statistic.global_sensitivity(mechanism.universe), abs=1e-8
            )
            clamped = np.clip(np.array(records), low, high)
            alone = summary.of_rows(np.full(3, at))
            assert mechanism.loss_of_records(clamped, alone).tolist() == pytest.approx(losses, abs=1e-8)

    def test_answer_without_noise_is_the_statistic(self, case):
        mechanism, data, summary = case
        low, high = mechanism.universe.lo, mechanism.universe.hi
        middle = 3 if mechanism.name == "geometric" else mechanism.universe.mid
        exact = [sum(middle if x != x else min(max(x, low), high) for x in records) for records in data]
        exact = np.array(exact) / (3 if mechanism.statistic.name != "sum" else 1)
        value = mechanism.value(mechanism.draw(summary, exactly))
        assert np.abs(value - exact).max() < 1e-8
        assert np.abs(mechanism.statistic.value(summary, mechanism.universe) - exact).max() < 1e-8
        below, above = mechanism.interval(mechanism.draw(summary, exactly), 1e-9)
        assert ((below <= exact + 1e-12) & (exact <= above + 1e-12)).all()

    def test_worlds_that_lack_a_record_are_not_defined(self, case):
        mechanism, _, summary = case
        assert np.isnan(mechanism.loss_between_worlds(summary)).all()


def test_noise_is_that_of_a_known_number():
    """As wide as claimed, and the interval holds 19 of 20 answers."""
    n, groups = 10, 20_000
    mechanism = calibrated("one_sum", MeanOfSize(n), Universe(0.0, 50.0), Fraction(1))
    x = np.full(n * groups, 25.0)
    codes = np.repeat(np.arange(groups, dtype=np.int32), n)
    summary = summary_of_groups(x, codes, groups, mechanism.universe, mechanism.needs(mechanism.statistic))
    drawn = mechanism.draw(summary)
    value, (low, high) = mechanism.value(drawn), mechanism.interval(drawn, 0.95)
    assert mechanism.scale == 5.0
    expected = 5 * (1 - math.exp(-5))  # of Laplace noise of scale 5, cut off at 25
    assert abs(np.abs(value - 25).mean() - expected) < 6.5 * 5 / math.sqrt(groups)
    assert abs(((low <= 25) & (high >= 25)).mean() - 0.95) < 6.5 * math.sqrt(0.05 * 0.95 / groups)


N = 1000
FRAME = pd.DataFrame({"x": np.arange(N) % 11.0, "yes": np.arange(N) % 4 == 0, "g": np.arange(N) % 2})
ASKED = {"eps": 5, "bounds": (0, 10), "neighbours": "replace-one"}


class TestAnswers:
    def test_release(self):
        release = FRAME.dprisk.mean("x", curator=True, **ASKED)
        assert release.global_sensitivity == 10 / N and release.scale == 10 / N / 5
        assert abs(release.value - FRAME["x"].clip(0, 10).mean()) < 0.05  # 25 scales
        assert (release.mechanism, release.neighbours) == ("one_sum", "replace-one")
        assert release.public()["neighbours"] == "replace-one"
        assert release.risk.worst_case == pytest.approx(posterior(5.0))
        assert release.risk.success == pytest.approx(1 - math.exp(-2.5) / 2)
        assert release.curator.two_worlds == pytest.approx(posterior(5.0))
        assert math.isnan(release.curator.many_worlds) and math.isnan(release.curator.identifiability)
        assert "not defined" in repr(release) and "how many there are is public" in repr(release)
        usual = FRAME.dprisk.mean("x", eps=5, bounds=(0, 10))
        assert usual.neighbours == "add-or-remove-one" and "neighbours" not in usual.public()
        low, high = release.interval(kind="sampling")
        assert low < release.low < release.high < high

    def test_nobody_is_told_that_presence_is_hidden(self):
        release = FRAME.dprisk.mean("x", curator=True, **ASKED)
        table = FRAME.dprisk.agg({"x": ["mean", "sum"], "yes": "proportion"}, curator=True, **ASKED)
        for audience in ("participant", "analyst", "curator", "publication"):
            for text in (release.explain(audience), pdrisk.explain(table, audience)):
                assert "nan" not in text
                assert not any(
                    said in text for said in ("whether you took part", "one person is in the data", "added or")
                )
        assert "differ in the value of one record" in release.explain("publication")
        for kind in ("icons", "two_worlds", "risk"):
            with pytest.raises(pdrisk.ParameterError, match="pictures show whether"):
                release.picture_text(kind)

    def test_every_front_end(self):
        own = ASKED | {"eps": 15, "bounds": {"x": (0, 10)}}
        table = FRAME.dprisk.agg({"x": ["mean", "sum"], "yes": "proportion"}, **own)
        exact = np.array([FRAME["x"].mean(), FRAME["x"].sum(), 0.25])
        assert (np.abs(table["value"] - exact) < [0.05, 50, 0.005]).all()  # 25 scales
        sums = FRAME.dprisk.sum("x", step=1, **(ASKED | {"bounds": (5, 15)}))
        assert sums.mechanism == "geometric" and sums.global_sensitivity == 10 and type(sums.value) is int
        assert FRAME["x"].dprisk.mean(**ASKED).mechanism == "one_sum"
        assert pdrisk.Dataset(FRAME).assign(z="x * 2").mean("z", **(ASKED | {"bounds": (0, 20)})).value > 5
        assert FRAME.dprisk.proportion("x > 5", eps=5, neighbours="replace-one").mechanism == "one_sum"

    def test_noise_can_be_judged_beforehand(self):
        assert FRAME.dprisk.mean("x", max_noise95=0.006, **ASKED).noise95 < 0.007
        with pytest.raises(pdrisk.ParameterError, match="more than max_noise95"):
            FRAME.dprisk.mean("x", max_noise95=0.005, **ASKED)

    def test_missing_values_count_as_the_middle(self):
        """Nothing but the noisy value depends on whether there are any."""
        gaps = FRAME.assign(x=FRAME["x"].where(FRAME["x"] > 0))
        release = gaps.dprisk.mean("x", **ASKED)
        assert abs(release.value - gaps["x"].fillna(5).mean()) < 0.05 and release.scale == 10 / N / 5


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "options", "words"),
        [
            ("mean", {"where": "x > 5"}, "with where="),
            ("mean", {"where": FRAME["x"] > 5}, "with where="),
            ("mean", {"by": "g", "keys": [0, 1]}, "with by="),
            ("mean", {"bounds": "column"}, "needs declared bounds"),
            ("mean", {"mechanism": "two_sums"}, "available for it: auto, one_sum"),
            ("mean", {"mechanism": "laplace"}, "available for it: auto, one_sum"),
            ("mean", {"neighbours": "replace"}, "neighbours is one of"),
            ("mean", {"neighbours": ["replace-one"]}, "neighbours is one of"),
            ("count", {"bounds": None}, "number of rows is public"),
            ("median", {}, "leave it out for median"),
            ("var", {}, "leave it out for var"),
            ("nunique", {"bounds": None}, "leave it out for nunique"),
            ("hist", {}, "leave it out for hist"),
        ],
    )
    def test_what_the_number_of_rows_does_not_allow(self, monkeypatch, method, options, words):
        monkeypatch.setattr("pdrisk.engines.numpy.frame.FrameEngine.read", lambda *_: pytest.fail("it was read"))
        with pytest.raises(pdrisk.ParameterError, match=words):
            getattr(FRAME.dprisk, method)("x", **(ASKED | options))

    def test_two_columns(self):
        with pytest.raises(pdrisk.ParameterError, match="leave it out for corr"):
            FRAME.dprisk.corr("x", "g", eps=5, bounds={"x": (0, 10), "g": (0, 1)}, neighbours="replace-one")

    def test_other_rows(self):
        with pytest.raises(pdrisk.ParameterError, match="with where="):
            pdrisk.Dataset(FRAME).query("x > 5").mean("x", **ASKED)
        with pytest.raises(pdrisk.ParameterError, match="there are none"):
            FRAME[:0].dprisk.mean("x", **ASKED)
        with pytest.raises(pdrisk.ParameterError, match="missing codes"):
            pdrisk.Dataset(FRAME, missing={"x": [0]}).mean("x", **ASKED)

    def test_ledgers(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=9)
        asks = [
            lambda: FRAME.dprisk.mean("x", ledger=ledger, **ASKED),
            lambda: pdrisk.Dataset(FRAME, ledger=ledger).mean("x", **ASKED),
        ]
        for ask in asks:
            with pytest.raises(pdrisk.ParameterError, match="a ledger adds up"):
                ask()
        with ledger, pytest.raises(pdrisk.ParameterError, match="a ledger adds up"):
            FRAME.dprisk.mean("x", **ASKED)
        assert ledger.remaining().spent == 0
        with pytest.raises(pdrisk.ParameterError, match="no ledger pays"):
            FRAME.dprisk.mean("x", **ASKED).explain(so_far=ledger)
