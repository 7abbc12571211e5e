"""``max_noise95=`` refuses before anything is paid, where public facts decide how far the noise reaches."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._mechanisms import calibrated
from pdrisk._model.arguments import statistic as asked
from pdrisk._model.query import UNIT
from pdrisk.engines.numpy.grouped import summary_of_groups

FRAME = pd.DataFrame({"x": range(100)})


@pytest.mark.parametrize(
    ("ask", "reach"),
    [
        (lambda **o: FRAME.dprisk.sum("x", eps=1, bounds=(0, 100), **o), 299.5733),  # 100 ln 20
        (lambda **o: FRAME.dprisk.count(eps=1, **o), 3),  # 2 e**-4 / (1 + e**-1) < .05 < 2 e**-3 / (1 + e**-1)
        (lambda **o: FRAME.dprisk.count(eps=1, by="x", keys=[1, 2], **o), 3),
    ],
)
def test_decided_beforehand(ask, reach, tmp_path):
    ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="x", eps=10)
    assert ask(max_noise95=reach + 1e-3, ledger=ledger) is not None
    with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
        ask(max_noise95=reach - 1e-3, ledger=ledger)
    assert ledger.remaining().spent == 1


@pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
@pytest.mark.parametrize("keys", [{"keys": [1, 2]}, {"keys": "private", "delta": 1e-6}])
@pytest.mark.parametrize("ask", ["count", "agg"])
def test_the_eps_that_is_told_is_enough(keys, ask):
    """That of the whole question: of several releases all shares, of private keys what chooses them."""

    def asked(eps):
        if ask == "count":
            return FRAME.dprisk.count(eps=eps, by="x", max_noise95=3, **keys)
        options = {"bounds": (0, 100), "mechanism": "laplace", "max_noise95": 500}
        return FRAME.dprisk.agg({"x": ["sum", "max"]}, eps=eps, by="x", **options, **keys)

    with pytest.raises(pdrisk.ParameterError) as caught:
        asked(0.5)
    told = float(re.search(r"Some eps=(\S+) for the whole question would do", str(caught.value))[1])
    assert asked(told) is not None
    with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
        asked(told * 0.7)


def test_what_depends_on_the_number_of_records_cannot_be_judged():
    with pytest.raises(pdrisk.ParameterError, match="depends on how many records"):
        FRAME.dprisk.mean("x", eps=1, bounds=(0, 100), max_noise95=5)
    assert FRAME.dprisk.mean("x", eps=400, bounds=(0, 100), max_noise95=5, mechanism="laplace") is not None


@pytest.mark.parametrize("most", [0, -1, float("nan"), float("inf"), "1", True, [1]])
def test_refusals(most):
    with pytest.raises(pdrisk.PdriskError, match="max_noise95 must be"):
        FRAME.dprisk.count(eps=1, max_noise95=most)


class TestAtLeastSoManyRecords:
    """The widest interval of any values decides, once their least number is declared."""

    def test_means_and_variances(self):
        rows = pd.DataFrame({"x": range(2000), "g": [0, 1] * 1000})
        for ask, fits in (
            (lambda **o: rows.dprisk.mean("x", eps=1, bounds=(0, 2000), **o), 3.1),  # ln 20 records, and a little more
            (lambda **o: rows.dprisk.mean("x", eps=1, bounds=(0, 2000), by="g", keys=[0, 1], **o), 3.1),
            (lambda **o: rows.dprisk.var("x", eps=1, bounds=(0, 1), **o), 0.00155),
        ):
            ask(max_noise95=fits, n_at_least=2000)
            with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
                ask(max_noise95=fits / 1.2, n_at_least=2000)
            with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
                ask(max_noise95=fits, n_at_least=1500)
            with pytest.raises(pdrisk.ParameterError, match="add n_at_least="):
                ask(max_noise95=fits)

    @pytest.mark.parametrize("statistic", ["mean", "var", "std"])
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.97])
    def test_no_data_have_a_wider_one(self, statistic, share):
        """Values at both ends, or all at one place; by the answers themselves, whose number of records is noisy."""
        groups, n = 60, 500
        known = calibrated({"mean": "two_sums"}.get(statistic, "bernstein"), asked(statistic), UNIT, Fraction(4))
        widest = known.widest_noise95(n)
        for rows in ([1.0] * round(n * share) + [0.0] * (n - round(n * share)), [share] * n):
            x, codes = np.tile(rows, groups), np.repeat(np.arange(groups, dtype=np.int32), n)
            summary = summary_of_groups(x, codes, groups, UNIT, known.needs(known.statistic))
            low, high = known.interval(known.draw(summary), 0.95)
            assert np.median(high - low) / 2 <= widest * 1.02
        assert known.widest_noise95(5 * n) < widest / 2

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("n", [60, 1000])
    @pytest.mark.parametrize(
        ("statistic", "name"),
        [("mean", "two_sums"), ("mean", "bernstein"), ("var", "bernstein"), ("std", "bernstein"), ("mean", "two_stage"),
         ("var", "two_stage")],
    )  # fmt: skip
    def test_answers_keep_it_99_times_in_100(self, statistic, name, n):
        """Their own noise95, over many draws; 6.5 standard errors off would be chance. And it is not far too wide."""
        draws, question = 1500, asked(statistic)
        question = replace(question, n_at_least=n) if name == "two_stage" else question
        known = calibrated(name, question, UNIT, Fraction(1))
        widest, largest = known.widest_noise95(n), 0.0
        bent = [0.5 + width * (np.arange(n) % 2 - 0.5) for width in (0, 0.02, 0.1, 0.2, 1)]
        for rows in (
            *bent,
            np.zeros(n),
            np.full(n, 0.1),
            np.linspace(0, 1, n),
            np.arange(n) == 0,
            np.arange(n) < n / 9,
        ):
            x, codes = np.tile(rows.astype(float), draws), np.repeat(np.arange(draws, dtype=np.int32), n)
            summary = summary_of_groups(x, codes, draws, UNIT, known.needs(question))
            reach = known.noise95_of(known.draw(summary))
            assert (reach > widest).mean() < 0.01 + 6.5 * math.sqrt(0.01 * 0.99 / draws)
            largest = max(largest, float(np.median(reach)))
        assert name == "two_stage" or largest > 0.65 * widest

    def test_the_eps_that_is_told_for_a_standard_deviation_is_enough(self):
        rows, options = pd.DataFrame({"x": np.full(2000, 0.5)}), {"bounds": (0, 1), "n_at_least": 2000}
        with pytest.raises(pdrisk.ParameterError) as caught:
            rows.dprisk.std("x", eps=1, max_noise95=0.005, **options)
        told = float(re.search(r"Some eps=(\S+) for the whole question would do", str(caught.value))[1])
        assert rows.dprisk.std("x", eps=told, max_noise95=0.005, **options).noise95 <= 0.005
        with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
            rows.dprisk.std("x", eps=told * 0.9, max_noise95=0.005, **options)
        with pytest.raises(pdrisk.ParameterError, match="hardly any eps would do"):
            rows.dprisk.std("x", eps=1, max_noise95=1e-12, **options)

    def test_what_does_not_depend_on_them(self):
        assert FRAME.dprisk.count(eps=1, max_noise95=3, n_at_least=5) is not None
        known = {"eps": 1, "bounds": (0, 100), "neighbours": "replace-one"}
        assert FRAME.dprisk.mean("x", max_noise95=2.9958, **known).noise95 < 2.9958  # ln 20, over 100 rows
        with pytest.raises(pdrisk.ParameterError, match="nothing was asked"):
            FRAME.dprisk.mean("x", max_noise95=2.9957, **known)
        with pytest.raises(pdrisk.ParameterError, match="may reach ±300"):
            FRAME.dprisk.sum("x", step=1, max_noise95=200, **known)
        with pytest.raises(pdrisk.ParameterError, match="around its rank"):
            FRAME.dprisk.median("x", eps=1, bounds=(0, 100), max_noise95=9, n_at_least=50)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"n_at_least": 10}, "is for max_noise95="),
            ({"mechanism": "two_stage"}, "needs n_at_least="),
            ({"n_at_least": 0, "max_noise95": 1}, "must be 1 or more"),
            ({"n_at_least": True, "max_noise95": 1}, "whole number"),
            ({"n_at_least": 10.5, "max_noise95": 1}, "whole number"),
        ],
    )
    def test_refusals(self, options, words):
        with pytest.raises(pdrisk.PdriskError, match=words):
            FRAME.dprisk.mean("x", eps=1, bounds=(0, 100), **options)
