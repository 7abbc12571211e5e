"""Plan of a budget: targets are reached and no finer, the price is a ledger's, and what does not fit is said."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._cli import main
from pdrisk._core.risks.gaussian_dp import limit_of, mu_of_laplace, mu_of_pure, squared, success_of
from pdrisk._digits import rounded_up

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

DISTANCE = {"bounds": (1, 675)}
REGION_SEX = {"by": {"region": 16, "sex": 2}}


def of(plan, question, column):
    (row,) = plan.table[plan.table["question"] == question].to_dict("records")
    return row[column]


class TestTargets:
    """The least eps of four digits that has the noise."""

    @pytest.mark.parametrize(
        ("question", "target", "options"),
        [
            ("count()", 5, {}),
            ("mean(distance)", 3.4, DISTANCE),
            ("sum(distance)", 5000, {**DISTANCE, "mechanism": "laplace"}),
            ("median(distance)", 10, DISTANCE),
            ("std(distance)", 8, DISTANCE),
            ("min(distance)", 30, DISTANCE),
        ],
    )
    def test_no_larger_eps_than_needed(self, question, target, options):
        plan = pdrisk.plan({question: {"noise95": target, **options}}, n=1000)
        eps = of(plan, question, "eps")
        less = float(Fraction(str(eps)) * Fraction(999, 1000))
        asked = {"n": 1000, "bounds": options.get("bounds"), "mechanism": options.get("mechanism", "auto")}
        noises = [pdrisk.plan(question, eps=own, **asked)["noise95"][0] for own in (less, eps)]
        assert noises[0] > target >= noises[1] == of(plan, question, "noise95")
        assert len(f"{eps:.9f}".replace(".", "").strip("0")) <= 4 and of(plan, question, "wanted") == target

    def test_of_the_widest_noise(self):
        plan = pdrisk.plan({"std(distance)": {"noise95_widest": 150, **DISTANCE}}, n=1000)
        assert of(plan, "std(distance)", "noise95_widest") <= 150 < 1.1 * of(plan, "std(distance)", "noise95_widest")

    def test_relative_to_evenly_spread_values(self):
        plan = pdrisk.plan({"count()": {"relative": 0.02}, "mean(distance)": {"relative": 0.01, **DISTANCE}}, n=500)
        assert of(plan, "count()", "wanted") == 10 >= of(plan, "count()", "noise95")
        assert of(plan, "mean(distance)", "wanted") == pytest.approx(3.38)

    def test_questions_of_a_table_share_a_release(self):
        asked = {"mean(distance)": {"noise95": 3, **DISTANCE}, "count()": {"noise95": 5}}
        together = pdrisk.plan({"distances": {**asked, "count(distance)": {"noise95": 9}}}, n=1000)
        assert of(together, "mean(distance)", "eps") == of(together, "count(distance)", "eps")
        assert of(together, "count()", "mechanism") == "geometric"
        assert together.eps == Fraction(str(of(together, "mean(distance)", "eps"))) + Fraction(
            str(of(together, "count()", "eps"))
        )
        assert (together.queries, together.table["table"].unique().tolist()) == (2, ["distances"])

    def test_three_quantiles_together(self):
        """They share a release, whose noise depends on the values, which are evenly spread here."""
        asked = {f"quantile({share}) of distance": {"noise95": 20, **DISTANCE} for share in (0.1, 0.2, 0.3, 0.4)}
        plan = pdrisk.plan({"places": asked}, n=1000)
        assert plan.table["eps"].nunique() == plan.queries == 1 and (plan.table["noise95"] <= 20).all()
        limit = pdrisk.plan({"distance": [f"quantile({share})" for share in (0.25, 0.5, 0.75)]}, success=0.75, n=1000,
                            bounds=(0, 9))  # fmt: skip
        assert limit.queries == 1 and limit.table["eps"].nunique() == 1 and limit.fits

    def test_cannot_be_had(self):
        with pytest.raises(pdrisk.ParameterError, match=r"noise95=1e-09 of mean\(distance\) cannot be had: it is"):
            pdrisk.plan({"mean(distance)": {"noise95": 1e-9, **DISTANCE}}, n=100)


class TestPrice:
    """What a ledger with success= counts."""

    def test_is_that_of_the_ledger(self, book):
        frame = pd.DataFrame({"pid": np.arange(900) // 3, "g": np.arange(900) % 4, "x": np.arange(900) % 100})
        plan = pdrisk.plan(
            {
                "count()": {"noise95": 40},
                "by group": {"count()": {"noise95": 60}, "by": {"g": 4}, "person": "pid", "rows": 2, "groups": 2},
                "mean(x)": {"noise95": 4, "bounds": (0, 100), "person": "pid", "rows": 3},
            },
            success=0.9, n=900,
        )  # fmt: skip
        eps = plan.table["eps"]
        ledger = book(success=0.9)
        with ledger:
            frame.dprisk.count(eps=eps[0], person="pid", per_person="one")
            frame.dprisk.count(eps=eps[1], by="g", keys=[0, 1, 2, 3], person="pid", rows=2, groups=2)
            frame.dprisk.mean("x", eps=eps[2], bounds=(0, 100), person="pid", rows=3)
        spent = limit_of(Fraction("0.9")) - ledger.remaining().mu2
        assert float(spent) == pytest.approx(float(plan.mu2), rel=1e-12)
        assert ledger.remaining().spent == pytest.approx(float(plan.eps))

    def test_an_even_share_of_what_is_left(self):
        plan = pdrisk.plan(
            {"count()": {"noise95": 5}, "sum(x)": {"mechanism": "laplace"}, "mean(x)": {}},
            success=0.75, n=1000, bounds=(0, 9),
        )  # fmt: skip
        left = limit_of(Fraction("0.75")) - squared(mu_of_pure(of(plan, "count()", "eps")))
        for question in ("sum(x)", "mean(x)"):
            own = float(squared(mu_of_laplace(of(plan, question, "eps"))) / left)
            assert 0.499 < own <= 0.5 and of(plan, question, "mu") == pytest.approx(math.sqrt(own * left))
        assert plan.fits and 0.749 < plan.success <= 0.75

    def test_twelve_tables(self):
        """SUCCESS.md: at .75 counts of twelve tables are off by at most 10, where a sum of eps makes it 33."""
        tables = {f"table {at}": {"count()": {}, "by": 16} for at in range(12)}
        plans = [pdrisk.plan(tables, n=30_000, **limit) for limit in ({"success": 0.75}, {"eps": math.log(3)})]
        assert [set(plan.table["noise95"]) for plan in plans] == [{10.0}, {33.0}]

    def test_both_limits_hold(self):
        plan = pdrisk.plan({"count()": {}, "sum(x)": {}}, success=0.75, eps=0.5, n=100, bounds=(0, 1))
        assert plan.eps == Fraction(1, 2) and plan.success < 0.65
        mu2 = squared(mu_of_pure(0.25)) + squared(mu_of_laplace(0.25))
        assert plan.success == success_of(mu2)
        assert f"success {rounded_up(plan.success)} of at most 0.75, eps 0.5 of at most 0.5" in repr(plan)

    def test_without_targets_as_before(self):
        plan = pdrisk.plan({"x": ["mean", "std", "median"]}, success=0.75, n=1000, bounds=(0, 1))
        assert plan.table["mechanism"].tolist() == ["bernstein", "bernstein", "exponential"]
        assert plan.table["eps"][0] == plan.table["eps"][1] < plan.table["eps"][2]  # twice the eps for the same m


class TestMargins:
    """Smaller tables: free where sums of the answers are precise enough."""

    def test_sums_of_counts_are_free(self):
        plan = pdrisk.plan({"all": {"count()": {"relative": 0.05}, **REGION_SEX, "margins": True}}, n=32_000)
        assert plan.table["table"].tolist() == ["all by region, sex", "all by region", "all by sex", "all"]
        assert plan.table["n"].tolist() == [1000, 2000, 16_000, 32_000]
        assert plan.table["eps"].tolist()[1:] == [0, 0, 0] and plan.queries == 1
        assert (plan.table["noise95"] <= plan.table["wanted"]).all()

    def test_the_noise_of_sums(self):
        """By simulation: 95 % of sums of 16 discrete Laplace variables lie within it, and few more."""
        plan = pdrisk.plan({"count()": {"relative": 0.05, **REGION_SEX, "margins": True}}, n=32_000)
        a = math.exp(-plan.table["eps"][0])
        drawn = np.subtract(*(np.random.default_rng(1).geometric(1 - a, (2, 100_000, 16)))).sum(axis=1)
        within = np.mean(np.abs(drawn) <= plan.table["noise95"][2])
        assert 0.949 < within < 0.96

    def test_others_are_asked(self):
        plan = pdrisk.plan({"count()": {"noise95": 20, **REGION_SEX, "margins": True}}, n=32_000)
        assert plan.queries == 4 and plan.table["eps"].nunique() == 1
        means = pdrisk.plan({"mean(x)": {"relative": 0.5, "bounds": (0, 1), **REGION_SEX, "margins": True}}, n=32_000)
        assert means.queries == 4


class TestWhatDoesNotFit:
    """It is said, with the noise that would fit."""

    @pytest.fixture
    def plan(self):
        tables = {f"t{at}": {"count()": {"noise95": 10}, "by": 16} for at in range(12)}
        return pdrisk.plan(tables, success=0.6, n=20_000)

    def test_in_the_order_of_the_questions(self, plan):
        assert plan.table["fits"].tolist() == [True] * 2 + [False] * 10 and not plan.fits
        assert plan.missing[0] == "These targets need a success of 0.7313, and 0.6 is allowed."
        assert plan.missing[1] == (
            "count() of t2 needs eps 0.2844, and what is left pays eps 0.0463: noise95 65 instead of 10."
        )

    def test_a_common_scaling_fits(self, plan):
        times = plan.noise_that_fits
        assert 2 < times < 3
        for by, fits in ((times, True), (0.9 * times, False)):
            tables = {f"t{at}": {"count()": {"noise95": 10 * by}, "by": 16} for at in range(12)}
            assert pdrisk.plan(tables, success=0.6, n=20_000).fits == fits
        assert f"It fits with {times:g} times the noise" in repr(plan)

    def test_frontier(self, plan):
        frontier = plan.frontier.set_index("noise")
        assert frontier["success"].is_monotonic_decreasing and frontier["eps"].is_monotonic_decreasing
        assert frontier.loc[1.0, "success"] == plan.success
        double = {f"t{at}": {"count()": {"noise95": 20}, "by": 16} for at in range(12)}
        assert frontier.loc[2.0, "success"] == pdrisk.plan(double, n=20_000).success

    def test_nothing_left(self):
        plan = pdrisk.plan({"count()": {"noise95": 1}, "mean(x)": {"bounds": (0, 1)}}, success=0.6, n=100)
        assert plan.missing[-1] == "Nothing is left for mean(x)." and not plan.table["fits"].any()


@pytest.mark.parametrize(
    ("questions", "options", "error", "words"),
    [
        ({"count()": {"noise": 5}}, {}, pdrisk.ParameterError, "unknown option 'noise' in a plan; available: noise95"),
        ({"count()": {"noise95": 0}}, {}, pdrisk.ParameterError, "noise95 must be finite and above 0"),
        ({"count()": {"noise95": 5, "relative": 1}}, {}, pdrisk.ParameterError, "several targets"),
        ({"count()": {"noise95": 5}, "x": "mean"}, {}, pdrisk.ColumnTypeError, "all have, as in"),
        ({"count()": {}}, {}, pdrisk.ParameterError, r"count\(\) has no target: give it one"),
        ({"mean(x)": {"noise95": 5}}, {}, pdrisk.ParameterError, "needs bounds"),
        ({"count()": {"noise95": 5, "rows": 2}}, {}, pdrisk.ParameterError, "pass person="),
        ({"count()": {"noise95": 5, "by": 10**8}}, {}, pdrisk.ParameterError, "more than 10,000,000 groups"),
        ({"t": {"count()": {"by": 3}}}, {}, pdrisk.ParameterError, "unknown option 'by' of a question in a table"),
        ({"count()": {"noise95": 5, "by": "sex"}}, {}, pdrisk.ColumnTypeError, r'as in {"sex": 2}'),
        ({"count()": {"noise95": 5, "by": ["sex"]}}, {}, pdrisk.ColumnTypeError, r'as in {"sex": 2}'),
        ({"count()": {"noise95": 5, "by": {"g": 2}, "margins": "g"}}, {}, pdrisk.ColumnTypeError, "margins is True or"),
        ("count()", {"success": 0.5}, pdrisk.ParameterError, "success"),
    ],
)
def test_refusals(questions, options, error, words):
    with pytest.raises(error, match=words):
        pdrisk.plan(questions, **({"n": 100} | options))


class TestCommand:
    """``pdrisk plan`` with ± and --success."""

    def test_targets(self, capsys):
        asked = ["count() ± 5", "mean(distance) +- 1%", "median(distance)"]
        assert main(["plan", *asked, "--n", "5000", "--bounds", "distance=1:675", "--success", "0.75"]) == 0
        said = capsys.readouterr().out
        assert "0.5382" in said and "together: success 0.75 of at most 0.75" in said
        assert "what all targets need, for so many times the noise:\n noise" in said

    def test_a_budget_without_targets(self, capsys):
        assert main(["plan", "count()", "--n", "5000", "--success", "0.75"]) == 0
        assert "Empty" not in capsys.readouterr().out

    def test_some_without_a_target_and_no_limit(self, capsys):
        """The advice is what can be written on the command line."""
        assert main(["plan", "count() +- 5", "mean(x)", "--n", "50", "--bounds", "x=0:5"]) == 2
        assert "'mean(x)' has no target: write 'mean(x) +- 5', or add --success 0.75" in capsys.readouterr().err

    def test_no_number(self, capsys):
        assert main(["plan", "count() ± 5e", "--n", "50"]) == 2
        assert "has no number after its ±" in capsys.readouterr().err
