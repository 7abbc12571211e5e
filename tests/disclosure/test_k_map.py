"""k-map and delta-presence: people who share keys in the population, and how likely they are in the table."""

from datetime import date
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from disclosure_oracle import PATIENTS, RESIDENTS, keys_of, people, ratios, sizes
from pdrisk.errors import ColumnTypeError, ParameterError

BANDS = [10, 20, 30, 40, 50, 120]
seeds = st.integers(0, 10_000)
ON = ["age", "zip", "sex"]


def sample_of(population: pd.DataFrame, seed: int) -> pd.DataFrame:
    n = np.random.default_rng(seed).integers(1, len(population) + 1)
    return population.sample(n, random_state=seed)


class TestTheArticle:
    """The example of the article comes out exactly, and the table made of it in the design notes."""

    @pytest.mark.parametrize(
        ("edges", "k_map", "delta_max", "delta_min"),
        [
            (BANDS, 5, 1.0, 0.0),  # the article: 5/5, and 1/10 of 40-49
            ([10, 40, 50, 120], 10, 0.25, 0.0),  # the article: "the ratio ... becomes 5/(5+5+10) = 0.25"
            ([10, 40, 120], 20, 0.25, 1 / 30),  # 1 of the 30 people of 40 and older
        ],
    )
    def test_patients(self, edges, k_map, delta_max, delta_min):
        how = {"population_counts": RESIDENTS, "generalize": {"age": edges}}
        found = PATIENTS.dprisk.delta_presence(["zip", "age"], **how)
        assert (found.k_map, found.delta_max, found.delta_min, found.k) == (k_map, delta_max, delta_min, 1)
        assert found.delta_min <= 6 / 50 <= found.delta_max and (found.people, found.population) == (6, 50)
        mapped = PATIENTS.dprisk.k_map(["zip", "age"], **how)
        assert (mapped.k_map, mapped.k, mapped.population) == (k_map, 1, 50)

    def test_tables(self):
        how = {"population_counts": RESIDENTS, "generalize": {"age": BANDS}}
        table = PATIENTS.dprisk.delta_presence(["zip", "age"], **how).classes
        assert table["sample"].tolist() == [5, 0, 0, 1, 0]
        assert table["population"].tolist() == [5, 5, 10, 10, 20]
        assert table["ratio"].tolist() == [1, 0, 0, 0.1, 0]
        found = PATIENTS.dprisk.delta_presence(["zip", "age"], **how)
        assert found.per_row().tolist() == [1, 1, 1, 1, 1, 0.1]
        assert found.worst(1).index[0] == ("85535", pd.Interval(10, 20, closed="left"))
        assert PATIENTS.dprisk.k_map(["zip", "age"], **how).classes["population"].tolist() == [5, 10]

    def test_all_ways_to_give_a_population(self, tmp_path):
        rows = RESIDENTS.loc[RESIDENTS.index.repeat(RESIDENTS["people"]), ["zip", "age"]]
        rows.to_parquet(tmp_path / "people.parquet")
        con = duckdb.connect()
        con.register("shown", rows)
        con.execute("CREATE TABLE people AS SELECT * FROM shown")
        series = RESIDENTS.set_index(["zip", "age"])["people"]
        wanted = PATIENTS.dprisk.delta_presence(["zip", "age"], population=rows, generalize={"age": BANDS})
        assert wanted.delta_max == 1
        ways = [
            {"population": tmp_path / "people.parquet"},
            {"population": (con, "people")},
            {"population": con.table("people")},
            {"population_counts": RESIDENTS},
            {"population_counts": series},
            {"population_counts": series.rename_axis([None, None])},
            {"population_counts": series.swaplevel()},
        ]
        for way in ways:
            found = PATIENTS.dprisk.delta_presence(["zip", "age"], generalize={"age": BANDS}, **way)
            assert found.to_dict() == wanted.to_dict()
            pd.testing.assert_frame_equal(found.classes, wanted.classes)


class TestPrintedExample:
    """The example of delta-presence in PETWorks-framework, which asks ARX: 3 of 6 Americans, 2 of 3 Europeans."""

    PEOPLE = pd.DataFrame(
        {
            "zip": ["47906", "47903", "47906", "47630", "47630", "47633", "48973", "48972", "48970"],
            "age": [35, 59, 42, 18, 22, 63, 33, 47, 52],
            "nationality": ["USA", "Canada", "USA", "Brazil", "Brazil", "Peru", "Spain", "Bulgaria", "France"],
        }
    )

    @pytest.mark.parametrize("private", [[0, 1, 2, 6, 7], [1, 3, 5, 7, 8]])
    def test_half_to_two_thirds(self, private):
        continents = dict.fromkeys(["USA", "Canada", "Brazil", "Peru"], "America")
        continents |= dict.fromkeys(["Spain", "Bulgaria", "France"], "Europe")
        how = {"zip": 2, "nationality": continents, "age": [0, 100]}
        table = self.PEOPLE.iloc[private]
        found = table.dprisk.delta_presence(["zip", "age", "nationality"], population=self.PEOPLE, generalize=how)
        assert (found.delta_min, found.delta_max) == (1 / 2, 2 / 3)  # "dMin": 0.5, "dMax": 0.6666666666666666


class TestDefinition:
    """delta are the smallest and largest shares of population classes, k-map the smallest class of a sampled person."""

    @given(seeds, st.integers(1, 60))
    def test_equals_counting(self, seed, n):
        population = people(seed, n)
        sample = sample_of(population, seed)
        inside, outside = sizes(sample, ON), sizes(population, ON)
        found = sample.dprisk.delta_presence(ON, population=population)
        shares = ratios(inside, outside)
        assert (found.delta_min, found.delta_max) == (float(min(shares)), float(max(shares)))
        assert found.k_map == min(outside[key] for key in inside)
        assert found.per_row().tolist() == [inside[key] / outside[key] for key in keys_of(sample, ON)]
        mapped = sample.dprisk.k_map(ON, population=population)
        assert mapped.k_map == found.k_map
        assert mapped.per_row().tolist() == [outside[key] for key in keys_of(sample, ON)]

    @given(seeds, st.integers(1, 60))
    def test_inequalities(self, seed, n):
        """The share of all lies between both, k-map is at least k, and coarser keys are never worse."""
        population = people(seed, n)
        sample = sample_of(population, seed)
        finer = sample.dprisk.delta_presence(ON, population=population)
        share = Fraction(len(sample), len(population))
        assert finer.delta_min <= float(share) <= finer.delta_max
        assert finer.k <= finer.k_map
        for coarser in (
            sample.dprisk.delta_presence(ON, population=population, generalize={"age": [20, 22, 24, 26]}),
            sample.dprisk.delta_presence(ON, population=population, generalize={"zip": 2}),
            sample.dprisk.delta_presence(ON[:2], population=population),
        ):
            assert finer.delta_min <= coarser.delta_min <= float(share) <= coarser.delta_max <= finer.delta_max
            assert finer.k_map <= coarser.k_map and finer.k <= coarser.k

    @given(seeds, st.integers(2, 60))
    def test_people_with_several_rows(self, seed, n):
        population = people(seed, n)
        sample = sample_of(population, seed)
        inside, outside = sizes(sample, ON, "pid"), sizes(population, ON, "pid")
        found = sample.dprisk.delta_presence(ON, population=population, person="pid")
        assert found.delta_max == float(max(ratios(inside, outside)))
        # A population without the column has one row a person.
        rows = sample.dprisk.delta_presence(ON, population=population.drop(columns="pid"), person="pid")
        assert rows.delta_max == float(max(ratios(inside, sizes(population, ON))))

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("values", "dtypes"),
        [
            (["a", "b", None], ["object", "string", "category", "string[pyarrow]", pd.ArrowDtype(pa.string())]),
            ([1, 2, None], ["object", "float64", "float32", "Int64", "UInt8", "category", pd.ArrowDtype(pa.int16())]),
            ([True, False, None], ["object", "boolean", "category", pd.ArrowDtype(pa.bool_())]),
            (
                [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01"), None],
                ["datetime64[ns]", "datetime64[s]", "category", pd.ArrowDtype(pa.timestamp("us"))],
            ),
            ([date(2020, 1, 1), date(2021, 1, 1), None], ["object", pd.ArrowDtype(pa.date32())]),
        ],
        ids=["text", "numbers", "truth", "timestamps", "dates"],
    )
    def test_values_match_whatever_holds_them(self, values, dtypes):
        plain = pd.Series(values, dtype=object)
        for one in dtypes:
            for other in dtypes:
                sample = pd.DataFrame({"key": plain.astype(one)})
                population = pd.DataFrame({"key": pd.concat([plain, plain[[2, 0]]]).astype(other)})
                found = sample.dprisk.k_map("key", population=population)
                assert found.per_row().tolist() == [2, 1, 2], (one, other)

    def test_values_that_the_table_lacks(self):
        sample, population = pd.DataFrame({"zip": ["b", "b"]}), pd.DataFrame({"zip": list("abbbcdd")})
        found = sample.dprisk.delta_presence("zip", population=population)
        assert found.classes["population"].to_dict() == {"a": 1, "b": 3, "c": 1, "d": 2}

    def test_floats_match_whole_numbers_and_categories_match_text(self):
        sample = pd.DataFrame({"age": [20.0, np.nan], "zip": pd.Categorical(["a", "b"])})
        population = pd.DataFrame({"age": pd.array([20, 20, None], dtype="Int64"), "zip": ["a", "a", "b"]})
        found = sample.dprisk.k_map(["age", "zip"], population=population)
        assert found.classes["population"].tolist() == [2, 1]


class TestWhatTheTwoTablesDisagreeOn:
    """More people in the table than there are is an error that names the class, or is taken as all that there are."""

    SAMPLE = pd.DataFrame({"zip": ["a", "a", "b", "c", None]})
    POPULATION = pd.DataFrame({"zip": ["a", "b", "b", "d"]})

    def test_named(self):
        with pytest.raises(ParameterError) as caught:
            self.SAMPLE.dprisk.k_map("zip", population=self.POPULATION)
        said = str(caught.value)
        assert "class a (2 in the table, 1 in the population), c (1 in the table, 0 in the population), nan" in said
        assert "pessimistic" in said

    def test_pessimistic(self):
        found = self.SAMPLE.dprisk.delta_presence("zip", population=self.POPULATION, on_missing="pessimistic")
        assert found.classes["population"].tolist() == [2, 2, 1, 1, 1]
        assert (found.delta_min, found.delta_max, found.k_map, found.population) == (0, 1, 1, 7)

    def test_numbers_against_text(self):
        with pytest.raises(ColumnTypeError, match="'zip' holds text in the table and numbers in the population"):
            PATIENTS.dprisk.k_map("zip", population=pd.DataFrame({"zip": [85535] * 9}))
        with pytest.raises(ColumnTypeError, match="numbers in the table and truth values in the population"):
            pd.DataFrame({"x": [0, 1]}).dprisk.k_map("x", population=pd.DataFrame({"x": [True, False]}))

    def test_whole_numbers_that_floats_confuse(self):
        sample = pd.DataFrame({"id": [2**53 + 1]})
        with pytest.raises(ParameterError, match=r"beyond 2\*\*53"):
            sample.dprisk.k_map("id", population=pd.DataFrame({"id": [2.0**53]}))

    @pytest.mark.whole
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({}, "needs to know the population"),
            ({"population": POPULATION, "weights": 2}, "exactly one of"),
            ({"population": POPULATION, "population_counts": RESIDENTS}, "exactly one of"),
            ({"population": POPULATION, "on_missing": "drop"}, "on_missing is one of"),
            ({"population": 5}, "must be a pandas, Polars or Arrow table"),
            ({"population": "/nowhere/people.parquet"}, "DuckDB cannot open what population names"),
            ({"population": POPULATION.rename(columns={"zip": "plz"})}, "unknown column 'zip'"),
            ({"population_counts": RESIDENTS}, "it has 3 columns"),
            ({"population_counts": [1, 2]}, "of type list"),
            ({"population_counts": pd.Series([1], index=pd.Index(["a"], name="plz"))}, "other index levels"),
            ({"population_counts": pd.Series([1.5], index=["a"])}, "whole numbers"),
            ({"population_counts": pd.Series([-1], index=["a"])}, "whole numbers"),
            ({"population_counts": pd.Series([np.nan], index=["a"])}, "whole numbers"),
            ({"weights": 0.5}, "1 or more"),
            ({"weights": 2, "model": "normal"}, "model is one of"),
            ({"weights": "w"}, "unknown column 'w'"),
            ({"weights": "zip"}, "holds no numbers"),
        ],
    )
    def test_said(self, options, said):
        with pytest.raises(ParameterError, match=said):
            self.SAMPLE.dprisk.k_map("zip", **options)

    def test_delta_presence_needs_the_population(self):
        with pytest.raises(ParameterError, match="exactly one of population="):
            self.SAMPLE.dprisk.delta_presence("zip")


class TestEmptyClasses:
    """A class that nobody belongs to is none."""

    @given(seeds, st.integers(1, 40))
    def test_zero_counts(self, seed, n):
        population = people(seed, n)
        sample = sample_of(population, seed)
        counts = population.groupby(["age", "sex"], observed=False).size()  # with combinations that do not occur
        assume((counts == 0).any())
        found = sample.dprisk.delta_presence(["age", "sex"], population_counts=counts)
        assert found.to_dict() == sample.dprisk.delta_presence(["age", "sex"], population=population).to_dict()
        assert (found.classes["population"] > 0).all()
