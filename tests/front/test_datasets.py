"""The sample data: published figures met for every seed, codes that mean something, the same numbers everywhere."""

import zlib

import numpy as np
import pandas as pd
import pytest

from pdrisk.datasets import EDUCATION, EMPLOYMENT, MISSING_CODES, STATES, soep_like
from pdrisk.errors import ColumnTypeError, ParameterError

SEEDS = [0, 1, 2019, 12345]

# Allmann et al. 2024, Table II: n, min, max, mean, median, std.
TABLE_II = {
    "hours": (25_238, 0, 18, 5.35, 7, 4.38),
    "distance": (14_734, 1, 675, 15.07, 10, 19.90),
    "income": (16_594, 0, 2_700_000, 3_432.00, 2_500, 21_669.00),
}
ANSWERS = list(TABLE_II)

# Seed 2019: sums of twice the value times the row's number, and the checksum of the frame as CSV. Printed by this
# module under pandas 2.2.3 and 3.1.1, both with numpy 2.4.6; a numpy that draws differently may change them all.
SUMS = {"age": 42_221_194_964, "hours": 3_446_596_607, "distance": 5_730_611_476, "income": 1_739_598_278_922}
CHECKSUM = 869_733_620


@pytest.fixture(scope="module", params=SEEDS)
def survey(request: pytest.FixtureRequest) -> pd.DataFrame:
    return soep_like(seed=request.param)


def answers(survey: pd.DataFrame, variable: str) -> pd.Series:
    return survey.loc[~survey[variable].isin([-1, -2, -5, -8]), variable]


def rank_correlation(x: pd.Series, y: pd.Series) -> float:
    return float(x.rank().corr(y.rank()))


@pytest.mark.parametrize("variable", ANSWERS)
class TestTableII:
    """For every seed the answers have the figures of Table II."""

    def test_number_extremes_and_median_are_exact(self, survey: pd.DataFrame, variable: str) -> None:
        values = answers(survey, variable)
        n, least, largest, _, median, _ = TABLE_II[variable]
        assert (len(values), values.min(), values.max(), values.median()) == (n, least, largest, median)

    def test_mean_and_standard_deviation(self, survey: pd.DataFrame, variable: str) -> None:
        values = answers(survey, variable)
        *_, mean, _, std = TABLE_II[variable]
        # The docstring promises 0.01 %; 0.5 % was asked for.
        assert values.mean() == pytest.approx(mean, rel=1e-4)
        assert values.std(ddof=1) == pytest.approx(std, rel=1e-4)


class TestShapeOfAnswers:
    """What the table does not show: heaps, zeros, one giant income."""

    def test_one_income_is_most_of_the_variance(self, survey: pd.DataFrame) -> None:
        incomes = answers(survey, "income")
        rest = incomes[incomes < 2_700_000]
        assert len(incomes) - len(rest) == 1
        # Follow from Table II by subtraction: (16594 * 3432 - 2.7e6) / 16593 = 3269.5, likewise 5594.
        assert rest.mean() == pytest.approx(3_269.5, rel=1e-3)
        assert rest.std() == pytest.approx(5_594, rel=5e-3)
        # "94 % of income's variance"; removing it takes 93.3 % of the variance away.
        assert 0.92 < 1 - rest.var() / incomes.var() < 0.95

    def test_some_36_percent_of_the_hours_are_zero(self, survey: pd.DataFrame) -> None:
        assert (answers(survey, "hours") == 0).mean() == pytest.approx(0.36, abs=0.01)

    def test_hours_come_in_half_hours(self, survey: pd.DataFrame) -> None:
        assert (2 * answers(survey, "hours") % 1 == 0).all()

    @pytest.mark.parametrize(("variable", "distinct"), [("distance", 140), ("income", 740)])
    def test_number_of_distinct_answers(self, survey: pd.DataFrame, variable: str, distinct: int) -> None:
        assert answers(survey, variable).nunique() == pytest.approx(distinct, rel=0.15)

    def test_answers_are_heaped_on_round_numbers(self, survey: pd.DataFrame) -> None:
        # Measured over 62 seeds: at least .377 and .279; with every grid point equally attractive .23 and .08.
        assert (answers(survey, "distance") % 5 == 0).mean() > 0.3
        assert (answers(survey, "income") % 500 == 0).mean() > 0.2

    @pytest.mark.parametrize(
        ("other", "correlation"),
        [("sex", -0.35), ("education", 0.31), ("hours", 0.43)],  # Spearman
    )
    def test_rank_correlation_with_income(self, survey: pd.DataFrame, other: str, correlation: float) -> None:
        valid = survey[(survey["income"] >= 0) & (survey["hours"] >= 0 if other == "hours" else True)]
        levels = {"male": 0, "female": 1} | {level: i for i, level in enumerate(["low", "medium", "high"])}
        values = valid["hours"] if other == "hours" else valid[other].map(levels)
        assert rank_correlation(values, valid["income"]) == pytest.approx(correlation, abs=0.01)


class TestMissing:
    """A missing answer is one of four negative numbers, or NaN when asked for; nothing else differs."""

    def test_the_codes(self) -> None:
        assert MISSING_CODES == (-1, -2, -5, -8)

    @pytest.mark.parametrize("variable", ANSWERS)
    def test_every_negative_number_is_a_code_and_every_code_occurs(self, survey: pd.DataFrame, variable: str) -> None:
        values = survey[variable]
        assert set(values[values < 0]) == {-1, -2, -5, -8}

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_nan_stands_exactly_where_codes_stood(self, seed: int) -> None:
        coded, plain = soep_like(seed=seed), soep_like(seed=seed, missing="nan")
        for variable in ANSWERS:
            assert plain[variable].dtype == np.float64
            assert plain[variable].equals(coded[variable].where(coded[variable] >= 0).astype(float))
        assert plain.drop(columns=ANSWERS).equals(coded.drop(columns=ANSWERS))

    def test_distance_and_income_do_not_apply_without_employment(self, survey: pd.DataFrame) -> None:
        idle = survey[survey["employment"] == "not employed"]
        assert (idle[["distance", "income"]] == -2).all(axis=None)
        assert set(idle.loc[idle["hours"] >= 0, "hours"]) == {0}

    def test_most_who_commute_or_earn_work(self, survey: pd.DataFrame) -> None:
        for variable in ("distance", "income"):
            assert (survey.loc[survey[variable] >= 0, "hours"] > 0).mean() > 0.9


class TestPersons:
    """30,000 persons in 15,000 households that could be."""

    def test_columns_and_kinds(self, survey: pd.DataFrame) -> None:
        assert list(survey) == [
            *("person_id", "household_id", "sex", "age", "state", "education", "employment"),
            *("hours", "distance", "income"),
        ]
        assert len(survey) == 30_000
        assert survey.index.equals(pd.RangeIndex(30_000))
        assert all(survey[c].dtype == np.int64 for c in ("person_id", "household_id", "age", "distance", "income"))

    @pytest.mark.sampled(99)
    def test_levels_are_the_public_tuples(self, survey: pd.DataFrame) -> None:
        assert (len(STATES), len(EDUCATION), len(EMPLOYMENT)) == (16, 3, 4)
        assert set(survey["sex"]) == {"female", "male"}
        for column, levels in (("state", STATES), ("education", EDUCATION), ("employment", EMPLOYMENT)):
            assert set(survey[column]) == set(levels)

    def test_households(self, survey: pd.DataFrame) -> None:
        households = survey.groupby("household_id")
        assert survey["person_id"].is_unique
        assert len(households) == 15_000
        assert set(households.size()) == {1, 2, 3, 4, 5, 6}
        assert households["state"].nunique().max() == 1

    def test_ages(self, survey: pd.DataFrame) -> None:
        assert survey["age"].between(17, 100).all()
        place = survey.groupby("household_id").cumcount()
        youngest_adult = survey["age"].where(place < 2).groupby(survey["household_id"]).transform("min")
        assert (survey["age"] <= youngest_adult - 18)[place >= 2].all()

    def test_age_goes_with_work_and_schooling(self, survey: pd.DataFrame) -> None:
        employed, age = survey["employment"] != "not employed", survey["age"]
        assert employed[age.between(30, 55)].mean() > 0.75
        assert employed[age < 20].mean() < 0.4
        assert employed[age >= 75].mean() < 0.05
        assert age[survey["education"] == "high"].min() >= 23

    def test_hours_and_incomes_go_with_employment(self, survey: pd.DataFrame) -> None:
        for variable in ("hours", "income"):
            medians = survey[survey[variable] > 0].groupby("employment")[variable].median()
            assert medians["full-time"] > medians["part-time"] > medians["marginal"]


class TestSeed:
    """A seed is a population: the same one everywhere, another one for another seed."""

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_same_seed_same_frame(self, seed: int) -> None:
        pd.testing.assert_frame_equal(soep_like(seed=seed), soep_like(seed=seed), check_exact=True)

    @pytest.mark.slow
    def test_the_default_seed(self) -> None:
        assert soep_like().equals(soep_like(seed=2019))

    @pytest.mark.slow
    def test_numpy_integers_are_seeds(self) -> None:
        assert soep_like(seed=np.int64(3)).equals(soep_like(seed=3))  # type: ignore[arg-type]

    @pytest.mark.slow
    def test_other_seed_other_persons(self) -> None:
        one, other = soep_like(seed=0), soep_like(seed=1)
        people = ["sex", "age", "state", "education", "employment"]
        assert (one[people] == other[people]).all(axis=1).mean() < 0.05
        for variable in ANSWERS:
            # Not one list of values dealt out anew: the lists differ too.
            counts = (answers(seeded, variable).value_counts() for seeded in (one, other))
            assert not next(counts).sort_index().equals(next(counts).sort_index())

    @pytest.mark.slow
    def test_same_numbers_under_every_pandas(self) -> None:
        survey, row = soep_like(seed=2019), np.arange(1, 30_001)
        sums = {column: int(row @ (2 * survey[column]).to_numpy(dtype=np.int64)) for column in SUMS}
        text = survey.to_csv(index=False, lineterminator="\n")
        assert sums == SUMS
        assert zlib.crc32(text.encode()) == CHECKSUM


class TestRefusals:
    """What is no seed and no way to mark a missing answer is refused before anything is drawn."""

    @pytest.mark.parametrize("seed", [None, 1.0, "2019"])
    def test_a_seed_is_an_integer(self, seed: object) -> None:
        with pytest.raises(ColumnTypeError, match="seed must be an integer, not"):
            soep_like(seed=seed)  # type: ignore[arg-type]

    def test_a_seed_is_not_negative(self) -> None:
        with pytest.raises(ParameterError, match="seed must be 0 or more, not -1"):
            soep_like(seed=-1)

    def test_missing_is_one_of_two_words(self) -> None:
        with pytest.raises(ParameterError, match="'codes' or 'nan', not 'NaN'"):
            soep_like(missing="NaN")  # type: ignore[arg-type]

    def test_everything_is_keyword_only(self) -> None:
        with pytest.raises(TypeError, match="positional"):
            soep_like(2019)  # type: ignore[call-arg]
