"""``success=`` in place of ``eps=``: the largest eps by which the best attacker is right no more often."""

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import pdrisk
from ledgers import typed
from pdrisk import Dataset, ParameterError
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.risks.gaussian_dp import limit_of, mu_of_exponential, mu_of_laplace, mu_of_pure, squared
from pdrisk._core.universe import Universe
from pdrisk._model.answering import answered_by
from pdrisk._model.arguments import statistic
from pdrisk._model.query import Line, Query, eps_for
from pdrisk._model.unit import Unit

pytestmark = [
    pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pdrisk.DoubtfulReleaseWarning"),
]

AT = np.arange(3000)
FRAME = pd.DataFrame(
    {"x": AT % 101 / 1.0, "y": AT % 7 / 1.0, "town": np.where(AT % 3, "a", "b"), "pid": AT // 2, "part": AT % 5}
)
BOUNDS = {"bounds": {"x": (0, 100), "y": (0, 6)}}
UNIT = Universe(0.0, 1.0)


def of_pure(eps):
    """Of one count, or any answer."""
    return -2 * ndtri(1 / (1 + math.exp(eps)))


def of_laplace(eps):
    """Of Laplace noise."""
    return -2 * ndtri(math.exp(-eps / 2) / 2)


def mu_of(table):
    """The m of everything that a table tells, from what it says of itself."""
    answer = Answer.from_attrs(table.attrs)
    releases = answer.releases or range(len(answer.lines))
    return math.hypot(*dict(zip(releases, (line.mu for line in answer.lines), strict=True)).values())


QUESTIONS = [
    ("count", {}),
    ("mean", {"column": "x"}),
    ("median", {"column": "x"}),
    ("max", {"column": "x"}),
    ("var", {"column": "x"}),
    ("sum", {"column": "y", "step": 1}),
    ("sum", {"column": "x", "clip": "private"}),
    ("median", {"column": "x", "interval": True}),
    ("mean", {"column": "x", "mechanism": "laplace"}),
    ("mean", {"column": "x", "mechanism": "two_stage", "n_at_least": 1000}),
    ("mean", {"column": "x", "person": "pid", "rows": 3}),
    ("count", {"person": "pid", "rows": 2, "by": "part", "keys": range(5)}),
    ("count", {"person": "pid", "groups": 2, "by": "part", "keys": range(5)}),
    ("mean", {"column": "x", "person": "pid", "per_person": "mean", "groups": 3, "by": "part", "keys": range(5)}),
    ("count", {"by": "town", "keys": "private", "delta": 1e-6}),
    ("hist", {"column": "x", "bins": [0, 50, 100], "person": "pid", "rows": 2}),
]


class TestOneAnswer:
    """The promise holds, and hardly more eps would keep it."""

    @pytest.mark.parametrize("success", [0.501, 0.55, 0.6, 0.75, 0.99])
    @pytest.mark.parametrize(("method", "options"), QUESTIONS, ids=lambda each: str(each))
    def test_promise(self, method, options, success):
        options = dict(options)
        columns = [options.pop("column")] if "column" in options else []
        bounds = {} if method in ("count", "hist") else BOUNDS
        answer = getattr(FRAME.dprisk, method)(*columns, success=success, **bounds, **options)
        said = answer.answer if hasattr(answer, "answer") else Answer.from_attrs(answer.attrs)
        (line,) = said.lines
        delta = said.delta
        reached = delta + (1 - delta) * ndtr(line.mu / 2)
        assert success - 1e-9 < reached <= success + 1e-15
        assert line.success <= success + 1e-15
        # Twice as much eps is more than that, and the same eps written out is the same question.
        if not delta:
            again = getattr(FRAME.dprisk, method)(*columns, eps=Fraction(said.eps), **bounds, **options)
            lines = again.answer if hasattr(again, "answer") else Answer.from_attrs(again.attrs)
            assert lines.lines[0].mu == pytest.approx(line.mu, rel=1e-12)

    def test_known_eps(self):
        """A count: the logit. A mean: 2 ln(1/(2 - 2 success)). A choice: twice the logit."""
        assert FRAME.dprisk.count(success=0.6).eps == pytest.approx(math.log(1.5), rel=1e-10)
        assert FRAME.dprisk.mean("x", success=0.75, **BOUNDS).eps == pytest.approx(2 * math.log(2), rel=1e-10)
        assert FRAME.dprisk.median("x", success=0.6, **BOUNDS).eps == pytest.approx(2 * math.log(1.5), rel=1e-10)

    def test_exactly_as_written(self):
        limit = limit_of(Fraction(3, 4))
        for each in (0.75, Fraction(3, 4), np.float64(0.75)):
            release = FRAME.dprisk.count(success=each)
            assert squared(mu_of_pure(release.eps)) <= limit < squared(mu_of_pure(release.eps * (1 + 1e-11)))

    @pytest.mark.parametrize("value", [0.5, 0.4, 0, -1, 1, 1.0, 2, math.nan, math.inf, True, "0.6", [0.6], 10**400])
    def test_refused(self, value):
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError), match="success"):
            FRAME.dprisk.count(success=value)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"eps": 1, "success": 0.6}, "exactly one of eps=, risk= and success= .not both"),
            ({"risk": 0.6, "success": 0.6}, "exactly one of eps=, risk= and success= .not both"),
            ({"eps": 1, "risk": 0.6, "success": 0.6}, "exactly one of eps=, risk= and success= .not all"),
            ({"prior": 0.1, "success": 0.6}, "prior= belongs to risk="),
            ({"success": 0.5004, "by": "town", "keys": "private", "delta": 0.001}, "by delta=0.001 alone .* 0.5005 "),
        ],
    )
    def test_refused_together(self, options, words):
        with pytest.raises(ParameterError, match=words):
            FRAME.dprisk.count(**options)

    def test_nothing_of_the_data_decides(self):
        fewer = FRAME.iloc[:5]
        assert fewer.dprisk.mean("x", success=0.6, **BOUNDS).eps == FRAME.dprisk.mean("x", success=0.6, **BOUNDS).eps


class TestSeveralAnswers:
    """Success is that of the whole call: squares of m add up over its releases."""

    def test_agg(self):
        table = FRAME.dprisk.agg({"x": ["mean", "median", "sum"], "y": ["var", "count"]}, success=0.6, **BOUNDS)
        assert ndtr(mu_of(table) / 2) == pytest.approx(0.6, rel=1e-10)
        each = Answer.from_attrs(table.attrs)
        assert len(set(each.releases)) == 3 and len({line.eps for line in each.lines}) == 1  # shares of eps are even

    def test_named(self):
        table = FRAME.dprisk.agg(one=("x", "median"), other=("y", "median"), success=0.6, **BOUNDS)
        assert math.sqrt(2) * mu_of_exponential(table["eps"].iloc[0]) == pytest.approx(-2 * ndtri(0.4), rel=1e-10)

    def test_datasets_and_groups(self):
        survey = Dataset(FRAME, person="pid", per_person="mean")
        table = survey.mean("x", by="part", keys=range(5), groups=2, success=0.6, **BOUNDS)
        assert mu_of(table) == pytest.approx(-2 * ndtri(0.4), rel=1e-10)
        assert math.sqrt(2) * of_laplace(table["eps"].iloc[0] / 2) == pytest.approx(-2 * ndtri(0.4), rel=1e-10)

    def test_suggestions(self):
        """Sizes of values are counted with Laplace noise; rows of people are a quantile."""
        assert FRAME.dprisk.suggest_bounds("x", success=0.9).eps == pytest.approx(-2 * math.log(0.2), rel=1e-10)
        assert FRAME["x"].dprisk.suggest_bounds(success=0.9).eps == pytest.approx(-2 * math.log(0.2), rel=1e-10)
        assert FRAME.dprisk.suggest_rows(person="pid", success=0.6).eps == pytest.approx(2 * math.log(1.5), rel=1e-10)
        with pytest.raises(ParameterError, match="exactly one of eps=, risk= and success="):
            FRAME.dprisk.suggest_bounds("x")

    def test_remembered(self, book):
        """The same success is the same question, whose eps is a fraction that only public facts decide."""
        survey = Dataset(typed(FRAME), ledger=book(), **BOUNDS)
        first, again = (survey.mean("x", success=0.6) for _ in range(2))
        assert first.value == again.value and first.eps == again.eps

    def test_statements(self):
        asked = {"dialect": "bigquery", "bounds": (0, 300)}
        one, other = (
            pdrisk.statements("mean(x)", "t.trips", {"x": "FLOAT64"}, **asked, **each)
            for each in ({"success": 0.6}, {"eps": 1})
        )
        assert one == other

    def test_sql(self):
        text = "SELECT town, COUNT(*) AS n, AVG(x) AS x, MEDIAN(y) AS y FROM t GROUP BY town"
        table = pdrisk.sql(text, success=0.75, t=FRAME, keys=["a", "b"], **BOUNDS)
        assert mu_of(table) == pytest.approx(-2 * ndtri(0.25), rel=1e-10)
        table = Dataset(FRAME).sql("SELECT COUNT(*) AS n FROM data", success=0.6)
        assert json.loads(table.attrs["dprisk"])["answer"]["eps"] == pytest.approx(math.log(1.5), rel=1e-10)

    def test_sql_of_several_queries(self):
        text = "SELECT COUNT(*) AS n, AVG(x) AS x FROM t UNION ALL SELECT COUNT(*), MEDIAN(y) FROM t"
        table = pdrisk.sql(text, success=0.75, t=FRAME, **BOUNDS)
        answer = Answer.from_attrs(table.attrs)
        assert math.hypot(*(line.mu for line in answer.lines)) == pytest.approx(-2 * ndtri(0.25), rel=1e-10)

    @pytest.mark.parametrize(
        ("text", "options", "words"),
        [
            ("SELECT dp_count(*, eps := 1) FROM t", {}, "success= finds the eps .* leave out eps :="),
            ("SELECT COUNT(*) FROM t", {"eps": 1}, "exactly one of eps= and success="),
            ("SELECT COUNT(*) FROM t", {"success": 0.5}, "success must be above 0.5"),
        ],
    )
    def test_sql_refused(self, text, options, words):
        with pytest.raises(ParameterError, match=words):
            pdrisk.sql(text, t=FRAME, **({"success": 0.6} | options))

    def test_compare(self):
        table = FRAME.dprisk.compare("x", "mean", success=0.6, **BOUNDS).set_index("mechanism")
        assert table["success"].tolist() == pytest.approx([0.6] * len(table), rel=1e-9)
        assert table["eps"]["two_sums"] == pytest.approx(-2 * math.log(0.8), rel=1e-9)
        with pytest.raises(ParameterError, match="exactly one of eps=, risk=, success= and noise95="):
            FRAME.dprisk.compare("x", "mean", success=0.6, eps=1, **BOUNDS)

    def test_assess(self):
        """Each answer alone, at each success."""
        table = FRAME.dprisk.assess("x", ["mean", "median"], success=[0.6, 0.75], **BOUNDS)
        expected = [-2 * math.log(0.8), 2 * math.log(2), 2 * math.log(1.5), 2 * math.log(3)]
        assert table["eps"].tolist() == pytest.approx(expected, rel=1e-9)
        one = FRAME["x"].dprisk.assess("mean", success=0.6, bounds=(0, 100))
        assert one["eps"].tolist() == pytest.approx(expected[:1], rel=1e-9)
        with pytest.raises(ParameterError, match="exactly one of eps= and success="):
            FRAME.dprisk.assess("x", "mean", 1, success=0.6, **BOUNDS)
        with pytest.raises(ParameterError, match=r"success must be above 0\.5"):
            FRAME.dprisk.assess("x", "mean", success=[0.6, 0.5], **BOUNDS)


class TestQuery:
    """What a filter pays for a whole question."""

    def query(self, *specs, unit=None, eps=1, **more):
        lines = tuple(answered_by(Line("x", statistic(each), UNIT, "given"), "auto") for each in specs)
        return Query(lines, (Fraction(eps),) * len(lines), unit=Unit() if unit is None else unit, **more)

    def test_sum_over_releases(self):
        found = self.query("count", "mean", "median").mu2
        assert found == pytest.approx(of_pure(1) ** 2 + of_laplace(1) ** 2 + of_pure(0.5) ** 2, rel=1e-10)

    def test_paid_several_times(self):
        assert self.query("count", times=3).mu2 == 3 * self.query("count").mu2

    def test_lines_of_one_release_count_once(self):
        query = self.query("mean", "mean")
        assert replace(query, shares=query.shares[:1], releases=(0, 0)).mu2 == self.query("mean").mu2

    def test_groups_of_a_person(self):
        assert self.query("mean", unit=Unit(groups=4)).mu2 == pytest.approx(4 * of_laplace(0.25) ** 2, rel=1e-10)
        assert self.query("mean", unit=Unit(rows=2, groups=2)).mu2 == pytest.approx(2 * of_laplace(0.5) ** 2, rel=1e-10)
        assert self.query("mean", unit=Unit(rows=2, groups=2, overall=True)).mu2 == pytest.approx(
            of_laplace(1) ** 2, rel=1e-10
        )

    def test_bounds_from_the_data_have_no_better_than_any_answer(self):
        query = self.query("mean")
        line = replace(query.lines[0], universe=None, bounds_from="data")
        assert replace(query, lines=(line,)).mu2 == pytest.approx(of_pure(1) ** 2, rel=1e-10)

    def test_at(self):
        query = self.query("count", "mean", times=2)
        assert query.at(Fraction(2)) == query and query.at(Fraction(1)).shares == (Fraction(1, 2),) * 2

    def test_eps_of_a_call(self):
        queries = [self.query("count", eps=Fraction(1, 2)), self.query("mean", eps=Fraction(1, 2))]
        eps = eps_for(0.6, queries)
        assert math.hypot(of_pure(float(eps) / 2), of_laplace(float(eps) / 2)) == pytest.approx(
            -2 * ndtri(0.4), rel=1e-10
        )


class TestRisk:
    """`release.risk.mu` beside `success`, wherever that goes."""

    def test_release(self):
        release = FRAME.dprisk.mean("x", eps=1, **BOUNDS)
        assert release.risk.mu == pytest.approx(1.03006, abs=5e-6) and release.to_dict()["mu"] == release.risk.mu
        assert pickle.loads(pickle.dumps(release)).risk == release.risk

    def test_mended(self):
        """The success of compositions, as it was before and as it can be proved."""
        deciles = [k / 10 for k in range(1, 10)]
        table = FRAME.dprisk.quantile("x", deciles, eps=1, **BOUNDS)
        assert [line.success for line in Answer.from_attrs(table.attrs).lines] == pytest.approx([0.5760] * 9, abs=5e-5)
        two_stage = FRAME.dprisk.mean("x", eps=1, mechanism="two_stage", n_at_least=1000, **BOUNDS)
        assert two_stage.risk.success == pytest.approx(0.6764, abs=5e-5)
        assert FRAME.dprisk.median("x", eps=1, interval=True, **BOUNDS).risk.success == pytest.approx(0.6225, abs=5e-5)
        # What was smaller stays: that of one count, of Laplace noise, and of values clipped privately.
        assert FRAME.dprisk.count(eps=1).risk.success == 1 / (1 + math.exp(-1))
        assert FRAME.dprisk.mean("x", eps=1, **BOUNDS).risk.success == 1 - math.exp(-0.5) / 2

    def test_groups_of_a_person(self):
        asked = {"person": "pid", "groups": 4, "by": "part", "keys": range(5), "eps": 1}
        answer = Answer.from_attrs(FRAME.dprisk.count(**asked).attrs)
        assert answer.lines[0].mu == pytest.approx(2 * of_pure(0.25), rel=1e-10)
        assert answer.lines[0].success == pytest.approx(0.6229, abs=5e-5)

    def test_attrs_of_before(self):
        """What was kept before there was an m has none."""
        table = FRAME.dprisk.count(by="town", keys=["a", "b"], eps=1)
        said = json.loads(table.attrs["dprisk"])
        del said["answer"]["lines"][0]["mu"]
        answer = Answer.from_attrs({"dprisk": json.dumps(said)})
        assert math.isnan(answer.lines[0].mu) and answer.lines[0].success == 1 / (1 + math.exp(-1))

    def test_a_look_at_the_number_of_people_tells_too(self, book):
        """And is as dear as any count."""
        frame = typed(FRAME)
        ledger = book(policy={"least_group": {"size": 5, "eps": 0.5}})
        release = frame.dprisk.mean("x", eps=1, ledger=ledger, **BOUNDS)
        m = math.hypot(of_laplace(1), of_pure(0.5))
        assert release.risk.mu == pytest.approx(m, rel=1e-10)
        assert release.risk.success == pytest.approx(ndtr(m / 2), rel=1e-10) and ndtr(m / 2) < release.risk.worst_case


class TestPublic:
    """`pdrisk.risk.mu` and `pdrisk.risk.success_of`."""

    def test_mu_is_that_of_the_release(self):
        asked = {
            ("mean",): {}, ("median",): {}, ("count",): {}, ("mean", "laplace"): {}, ("sum",): {"step": 1},
            ("median", "auto"): {"interval": True}, ("mean", "two_stage"): {"n_at_least": 1000},
            ("mean", "auto"): {"clip": "private"},
        }  # fmt: skip
        for (name, *mechanism), options in asked.items():
            column = [] if name == "count" else ["y"]
            bounds = {} if name == "count" else {"bounds": (0, 6)}
            own = {"mechanism": mechanism[0]} if mechanism else {}
            release = getattr(FRAME.dprisk, name)(*column, eps=0.7, **bounds, **own, **options)
            assert pdrisk.risk.mu(0.7, statistic=name, **bounds, **own, **options) == release.risk.mu

    def test_several_statistics(self):
        deciles = [f"quantile(0.{k})" for k in range(1, 10)]
        assert pdrisk.risk.mu(1, statistic=deciles) == pytest.approx(0.38343, abs=5e-6)
        assert pdrisk.risk.mu(1, statistic=["mean", "var", "count"]) == pytest.approx(of_laplace(1), rel=1e-10)
        assert pdrisk.risk.mu(1, statistic=["mean", "median"]) == pytest.approx(
            math.hypot(of_laplace(0.5), of_pure(0.25)), rel=1e-10
        )

    def test_people(self):
        assert pdrisk.risk.mu(1, groups=4) == pytest.approx(2 * of_pure(0.25), rel=1e-10)
        assert pdrisk.risk.mu(1, statistic="sum", step=1, bounds=(0, 2)) == pytest.approx(1.05412, abs=5e-6)

    def test_success_of(self):
        """Twenty counts at eps .24, or means at eps .255, leave less than .75 undone; twenty-one do not keep to it."""
        for one in (pdrisk.risk.mu(0.24), pdrisk.risk.mu(0.255, statistic="mean")):
            assert 0.7489 < pdrisk.risk.success_of([one] * 20) <= 0.75 < pdrisk.risk.success_of([one] * 21)
        assert pdrisk.risk.success_of(np.array([3.0, 4.0])) == pytest.approx(ndtr(2.5), rel=1e-12)
        assert pdrisk.risk.success_of([]) == pytest.approx(0.5, abs=1e-15)

    @pytest.mark.parametrize("value", [[-1.0], [math.nan], [math.inf], [1e200], 1e100, ["x"], [True], None])
    def test_success_of_refuses(self, value):
        with pytest.raises((ParameterError, pdrisk.ColumnTypeError), match="mu"):
            pdrisk.risk.success_of(value)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"eps": 0}, "eps must be finite"), ({"eps": 1, "statistic": "mode"}, "mode is no statistic"),
            ({"eps": 1, "mechanism": "gauss"}, "unknown mechanism"),
            ({"eps": 1, "mechanism": "geometric", "statistic": "mean"}, "cannot answer mean"),
            ({"eps": 1, "groups": 0}, "groups must be between"),
        ],
    )  # fmt: skip
    def test_mu_refuses(self, given, words):
        with pytest.raises(ParameterError, match=words):
            pdrisk.risk.mu(**given)

    def test_laplace_is_never_dearer_than_any_answer(self):
        for eps in np.logspace(-6, 2, 30).tolist():
            assert mu_of_exponential(eps) < mu_of_laplace(eps) < mu_of_pure(eps)
