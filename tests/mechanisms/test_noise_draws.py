"""Noise is drawn once for each released value, by one module only, and never before a refusal."""

import math
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from noisy_answers import HI, LO, STATISTICS, answers
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Count, Mean, Sum, WholeSum
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated, discrete_laplace
from pdrisk._mechanisms.laplace import noisy_steps as laplace
from pdrisk._mechanisms.noise import sampler
from pdrisk.errors import ParameterError, QueryFailedError

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

TOO_SMALL = (
    "is below 1e-12, where the noise is a trillion times the largest change of one person: ask with a larger eps."
)
TOO_LARGE = "would add no noise at all on the grid that answers are rounded to: ask with a smaller eps"
NOT_POSITIVE = "eps must be finite and above 0, but is"


class TestRefusals:
    """An epsilon that this machine's numbers cannot hold is refused, with a sentence, before anything is drawn."""

    @pytest.fixture
    def draws(self, monkeypatch):
        """What was asked of the only function that draws."""
        calls = []
        monkeypatch.setattr(
            "pdrisk._mechanisms.contract.draws.discrete_laplace",
            lambda exact, change, eps: calls.append((exact.shape, change, eps)) or discrete_laplace(exact, change, eps),
        )
        return calls

    FRAME = pd.DataFrame({"g": [0, 1, 1], "x": [1.0, 2.0, np.nan], "name": ["a", "b", "c"]})
    EPS = (
        (1e-13, f"eps=1e-13 {TOO_SMALL}"),
        (9.99e-13, f"eps=9.99e-13 {TOO_SMALL}"),
        (5e-324, f"eps=4.94066e-324 {TOO_SMALL}"),
        (Fraction(1, 10**12) - Fraction(1, 10**40), f"eps=1e-12 {TOO_SMALL}"),
        (Decimal("1e-400"), NOT_POSITIVE),
        (1e13, f"eps=1e+13 {TOO_LARGE}"),
        (1e300, f"eps=1e+300 {TOO_LARGE}"),
        (0, NOT_POSITIVE),
        (-1, NOT_POSITIVE),
        (math.inf, NOT_POSITIVE),
        (math.nan, NOT_POSITIVE),
        (Decimal("Infinity"), NOT_POSITIVE),
        ("1", "eps must be a number"),
        (True, "eps must be a number"),
        (1j, "eps must be a number"),
    )

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(("eps", "sentence"), EPS)
    @pytest.mark.parametrize("name", STATISTICS)
    def test_of_eps(self, draws, name, eps, sentence):
        with pytest.raises(ParameterError) as refusal:
            answers(name, eps, keys=3)
        assert sentence in str(refusal.value)
        assert draws == []

    @pytest.mark.parametrize("eps", [1e-13, 1e-300, 1e13, 1e300])
    def test_of_eps_with_bounds_from_the_data(self, draws, eps):
        sentence = TOO_SMALL if eps < 1 else TOO_LARGE
        with pytest.raises(ParameterError, match="eps=") as refusal:
            self.FRAME.dprisk.mean("x", eps=eps, bounds="column", mechanism="laplace")
        assert sentence in str(refusal.value)
        assert draws == []

    def test_of_an_eps_beyond_floats(self, draws):
        for eps in (10**400, Fraction(10**400)):
            with pytest.raises(ParameterError, match="eps"):
                answers("mean", eps, keys=3)
        assert draws == []

    def test_each_line_of_several_is_judged(self, draws):
        with pytest.raises(ParameterError, match="is below 1e-12"):
            self.FRAME.dprisk.agg({"x": ["mean", "max"]}, eps=1.9e-12, bounds=(0, 10), mechanism="laplace")
        with pytest.raises(ParameterError, match="beyond 64-bit integers"):
            self.FRAME.dprisk.agg({"x": ["max", "mean"]}, eps=2 * 2.0**-24 * 0.999, bounds=(0, 10))
        assert draws == []
        self.FRAME.dprisk.agg({"x": ["mean", "max"]}, eps=2e-12, bounds=(0, 10), mechanism="laplace")
        assert len(draws) == 2

    @pytest.mark.parametrize(
        "request_",
        [
            {"column": "y"},
            {"column": "name"},
            {"bounds": None},
            {"bounds": (5, 1)},
            {"bounds": (0, math.inf)},
            {"risk": 0.6},
            {"eps": None},
            {"eps": None, "risk": 0.4},
            {"mechanism": "gauss"},
            {"where": "x > x.mean()"},
            {"where": lambda frame: 1 / 0},
            {"by": "g"},
            {"by": "g", "keys": []},
            {"by": "g", "keys": [1, 1]},
            {"by": "g", "keys": ["1"]},
        ],
        ids=lambda request: str(request).partition(" at 0x")[0],
    )
    def test_of_anything_else(self, draws, request_):
        options = {"column": "x", "eps": 1, "bounds": (0, 10)} | request_
        with pytest.raises((ParameterError, QueryFailedError)):
            self.FRAME.dprisk.mean(options.pop("column"), **options)
        assert draws == []

    def test_one_bad_line_stops_the_others(self, draws):
        with pytest.raises(ParameterError):
            self.FRAME.dprisk.agg({"x": "mean", "g": "mean"}, eps=1, bounds={"x": (0, 10)})
        constant = self.FRAME.assign(c=1.0)
        with pytest.raises(QueryFailedError):  # seen only when the data are read, after the first line could be drawn
            constant.dprisk.agg({"x": "mean", "c": "mean"}, eps=1, bounds={"x": (0, 10), "c": "column"})
        assert draws == []

    @pytest.mark.parametrize(
        ("statistic", "universe"), [(Mean(), Universe(LO, HI)), (Sum(), Universe(0.0, 1e-30))], ids=["mean", "sum"]
    )
    def test_the_ends_are_allowed(self, statistic, universe):
        lattice = statistic.lattice(universe)
        largest = lattice.sensitivity  # noise of one step

        def check(eps):
            calibrated("laplace", statistic, universe, Fraction(eps)).check()

        check(Fraction(1, 10**12))
        check(largest)
        with pytest.raises(ParameterError, match="below 1e-12"):
            check(Fraction(1, 10**12 + 1))
        with pytest.raises(ParameterError, match="no noise at all"):
            check(largest + 1)
        assert np.isfinite(laplace(np.array([0, 2**62, -(2**62)]), lattice, Fraction(1, 10**12))).all()
        noise = laplace(np.full(1000, 7), lattice, Fraction(largest)) / lattice.step - 7
        assert 0.2 < np.mean(noise != 0) < 0.9  # of scale 1: 1 - tanh(1/2) = .54 of the draws move

    @pytest.mark.parametrize(
        ("name", "statistic", "hi", "smallest"),
        [
            ("geometric", Count(), 1.0, Fraction(1, 10**12)),
            ("geometric", WholeSum(), 2.0**40, Fraction(1, 2**14)),
            ("two_sums", Mean(), 1.0, Fraction(1, 2**24)),
            ("bernstein", Var(), 1.0, Fraction(1, 2**24)),
        ],
    )
    def test_whole_noise_fits_64_bits(self, draws, name, statistic, hi, smallest):
        """The smallest eps that is allowed draws, and its noise is not cut off; any eps below is refused."""
        allowed = calibrated(name, statistic, Universe(0.0, hi), smallest)
        allowed.check()
        with pytest.raises(ParameterError, match="below 1e-12" if hi == 1 and name == "geometric" else "beyond 64-bit"):
            calibrated(name, statistic, Universe(0.0, hi), smallest * Fraction(999, 1000)).check()
        exact = np.zeros((1, 100), dtype=np.int64)
        nothing = dict.fromkeys(("places", "place_squares", "whole"), exact[0])
        summary = Summary(np.zeros(100, dtype=np.int64), **nothing)
        noise = np.abs(allowed.draw(summary)).astype(float)
        assert noise.max() < 2**62
        assert np.median(noise) > hi / float(smallest) * 0.1  # exp(-70): the median is .69 scales
        calibrated(name, statistic, Universe(0.0, hi), Fraction(10**6)).check()  # a large one only hides nothing


class TestHowOften:
    """Exactly one draw for each released value, and none for what the curator only looks at."""

    draws = TestRefusals.draws
    FRAME = TestRefusals.FRAME

    @pytest.mark.parametrize("name", STATISTICS)
    def test_one_release_one_draw(self, draws, name):
        method, parameters, *_ = STATISTICS[name]
        options = {
            "eps": 1,
            "bounds": (0, 10),
            "mechanism": "laplace" if name in ("median", "quantile", "min", "max") else "auto",
        }
        getattr(self.FRAME.dprisk, method)("x", **parameters, **options)
        getattr(self.FRAME["x"].dprisk, method)(**parameters, **options)
        sums = {"mean": 2, "var": 3, "std": 3}.get(method)
        assert [shape for shape, *_ in draws] == [(1,) if sums is None else (sums, 1)] * 2
        assert [eps for *_, eps in draws] == [1, 1]

    def test_one_call_for_all_groups(self, draws):
        for statistic, mechanism in (("max", "laplace"), ("mean", "two_sums")):
            asked = {"eps": 0.1, "bounds": (0, 10), "by": "g", "keys": [2, 1, 0], "mechanism": mechanism}
            getattr(self.FRAME.dprisk, statistic)("x", **asked)
        assert [(shape, eps) for shape, _, eps in draws] == [((3,), Fraction(1, 10)), ((2, 3), Fraction(1, 10))]

    def test_one_call_for_each_release(self, draws):
        request = {"x": ["mean", "nunique", ("var", {"ddof": 0}), "count"]}
        self.FRAME.dprisk.agg(request, eps=0.1, bounds=(0, 10))
        self.FRAME.dprisk.agg(request, eps=0.1, bounds=(0, 10), by="g", keys=[0, 1])
        assert [shape for shape, *_ in draws] == [(3, 1), (1,), (3, 2), (2,)]
        assert {eps for *_, eps in draws} == {Fraction(1, 20)}

    def test_looking_at_a_release_draws_nothing(self, draws):
        release = self.FRAME.dprisk.mean("x", eps=1, bounds=(0, 10))
        draws.clear()
        value = release.value
        seen = [repr(release), release._repr_html_(), release.interval(), release.to_dict(True), release.to_series()]
        assert len(seen) == 5
        assert release.public()["value"] == float(release) == release.value == value
        assert draws == []

    def test_the_curator_draws_nothing(self, draws, monkeypatch):
        monkeypatch.setattr(sampler, "plus_discrete_laplace", None)
        self.FRAME.dprisk.assess("x", bounds=(0, 10))
        self.FRAME.dprisk.assess("x", bounds=(0, 10), mechanism="laplace")
        self.FRAME.dprisk.assess("x", "mean", [0.5, 2], bounds=(0, 10), by="g", keys=[0, 1])
        self.FRAME.dprisk.individual_risk("x", "var", eps=1, bounds=(0, 10))
        for metric in ("worst_case", "two_worlds", "many_worlds", "identifiability"):
            self.FRAME.dprisk.epsilon_for("x", "mean", risk=0.7, metric=metric, bounds=(0, 10))
        assert draws == []


@pytest.mark.slow
def test_opendp_is_imported_by_the_audit_only():
    program = (
        "import sys, pandas as pd, pdrisk\n"
        "loaded = lambda: any(name.split('.')[0] == 'opendp' for name in sys.modules)\n"
        "series = pd.Series([1.0, 2.0])\n"
        "series.dprisk.assess(bounds=(0, 10)); series.dprisk.individual_risk(eps=1, bounds=(0, 10))\n"
        "try: series.dprisk.mean(eps=1e-13, bounds=(0, 10))\n"
        "except pdrisk.ParameterError: pass\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "series.dprisk.mean(eps=100, bounds=(0, 10))\n"
        "assert not loaded()\n"
        "pdrisk.audit(only=['noise'])\n"
        "assert loaded()\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_opendp_everything_works_and_the_audit_says_what_it_left_out():
    program = (
        "import sys; sys.modules['opendp'] = None\n"
        "import pandas as pd, pdrisk, warnings; warnings.simplefilter('ignore')\n"
        "from pdrisk._audit import findings, noise\n"
        "pd.Series([1.0, 2.0]).dprisk.agg(['mean', 'median', 'max'], eps=1, bounds=(0, 10))\n"
        "noise.SCALES = noise.SCALES[:1]\n"
        "checks = tuple(check() for check in list(noise.noise_checks(2000))[:2])\n"
        "assert [check.name for check in checks] == ['scale 1, a few at a time', 'scale 1, all at once']\n"
        "report = findings.AuditReport(checks, findings.versions(), '', 0.0, 1, False)\n"
        "advice = 'pip install \"pdrisk[opendp]\"'\n"
        "assert advice in repr(report) and 'pdrisk[opendp]' in report.to_html()\n"
        "assert len(list(noise.noise_checks(2000))) == 9\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_noise_may_draw():
    """No other module touches OpenDP or entropy, and random generators only pick what decides speed or examples."""
    source = os.path.dirname(pdrisk.__file__)
    users = {"opendp": set(), "urandom": set(), "random": set()}
    for folder, _, files in os.walk(source):
        for file in files:
            if file.endswith(".py"):
                with open(os.path.join(folder, file), encoding="utf-8") as text:
                    code = text.read()
                name = os.path.relpath(os.path.join(folder, file), source).replace(os.sep, "/")
                users["opendp"] |= {name} if "opendp." in code else set()
                users["urandom"] |= {name} if "urandom" in code else set()
                tries = name.startswith(
                    ("attack/", "_audit/")
                )  # which guess, and make data up: what they draw is judged
                users["random"] |= {name} if not tries and ("np.random" in code or "import random" in code) else set()
    assert users == {
        "opendp": {"_mechanisms/noise/reference.py"},
        "urandom": {"_mechanisms/noise/entropy.py"},
        "random": {
            "engines/numpy/ranks.py",
            "datasets/soep.py",
            "datasets/_multiset.py",
            "study/experiment.py",
            "_answer/arithmetic/income_estimates.py",  # intervals of what was drawn before, from a public seed
        },
    }
