"""A preview of a query tells what the answer costs and how noisy it is, and touches nobody's data."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer
from pdrisk._sql.select.compiled_query import CompiledQuery

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

N = 4000  # of each group
PEOPLE = pd.DataFrame({"sex": ["f", "m"] * N, "age": np.arange(2 * N) % 100, "km": np.arange(2 * N) % 50 * 1.0})
OPTIONS = {"bounds": {"km": (0, 50), "age": (0, 100)}, "eps": 3}
BY_SEX = "SELECT sex, COUNT(*) AS n, SUM(km) AS total FROM people GROUP BY sex"


def preview(query: str, people: object = PEOPLE, **options: object) -> pd.DataFrame:
    return pdrisk.sql(f"EXPLAIN {query}", people=people, **{**OPTIONS, **options})


@pytest.fixture
def unread(monkeypatch):
    def read(*_):
        raise AssertionError

    monkeypatch.setattr(CompiledQuery, "read", read)
    monkeypatch.setattr(CompiledQuery, "group_sizes", read)


class TestAgreesWithTheAnswer:
    """What a preview tells of public numbers is what the answer says of them."""

    @pytest.mark.parametrize("mechanism", ["auto", "laplace"])
    @pytest.mark.parametrize(
        "query",
        [
            BY_SEX,
            "SELECT COUNT(*) AS n, COUNT(km) AS known, SUM(km) AS total, COUNT(DISTINCT age) AS ages FROM people",
            "SELECT dp_count(*, eps := 2) AS n, dp_sum(km * 2, lo := -10, hi := 200, eps := 0.5) AS s FROM people",
            "SELECT COUNT(*) FROM people UNION ALL SELECT SUM(age) FROM people WHERE km > 3",
        ],
    )
    def test_eps_and_noise_of_counts_and_sums(self, query, mechanism):
        options = {"keys": ["f", "m"]} if "sex" in query else {}
        shown = preview(query, mechanism=mechanism, **options)
        answer = pdrisk.sql(query, people=PEOPLE, mechanism=mechanism, **OPTIONS, **options)
        said = Answer.from_attrs(answer.attrs)
        assert shown["eps"].tolist() == [line.eps for line in said.lines]
        assert shown["mechanism"].tolist() == [line.mechanism for line in said.lines]
        np.testing.assert_allclose(shown["noise95"], [line.noise95 for line in said.lines], rtol=1e-4)
        assert shown.drop_duplicates("query")["query_eps"].sum() == pytest.approx(said.eps)
        ends = shown[["clamped_low", "clamped_high"]]
        wanted = [line.bounds or (np.nan, np.nan) for line in said.lines]
        np.testing.assert_array_equal(ends, wanted)

    def test_noise_of_means_needs_their_number_of_records(self):
        query = "SELECT sex, AVG(km) AS km, COUNT(*) AS n FROM people GROUP BY sex"
        assert np.isnan(preview(query, keys=["f", "m"])["noise95"].tolist()).tolist() == [True, False]
        shown = preview(query, keys=["f", "m"], n=N)
        said = Answer.from_attrs(pdrisk.sql(query, people=PEOPLE, keys=["f", "m"], **OPTIONS).attrs)
        np.testing.assert_allclose(shown["noise95"], [line.noise95 for line in said.lines], rtol=0.05)
        assert preview(query, keys=["f", "m"], n=N // 10)["noise95"][0] > 5 * shown["noise95"][0]

    def test_noise_of_counts_and_sums_needs_none(self):
        query = "SELECT COUNT(km), SUM(km), SUM(age), COUNT(*), SUM(km * 2 - 50) FROM people"
        options = {"mechanism": "auto", "bounds": {"km": (0, 50), "age": (-9, 100), "sum((km * 2) - 50)": (-50, 50)}}
        shown = [preview(query, n=n, **options)["noise95"] for n in (None, 1, 2, 100, N)]
        for each in shown[1:]:
            np.testing.assert_allclose(each, shown[0], rtol=1e-4)

    def test_noise_that_the_data_decide(self):
        shown = preview("SELECT AVG(km), SUM(age) FROM people", n=N, clip="private")
        assert shown["noise95"].isna().all()
        assert preview("SELECT CORR(km, age) FROM people", n=N)["noise95"].isna().all()

    def test_lines_of_one_draw_share_a_release(self):
        shown = preview("SELECT AVG(km), SUM(km), MEDIAN(age) FROM people")
        assert shown["release"].tolist() == [1, 1, 2] and shown["eps"].tolist() == [1.5] * 3

    def test_rows_of_a_person(self):
        shown = preview("SELECT COUNT(*) AS n FROM people", person="age", rows=3)
        assert shown[["unit", "rows", "truncated", "trusted"]].values.tolist() == [["age", 3, "rows", ""]]
        one = preview("SELECT COUNT(*) AS n FROM people")
        assert shown["noise95"].item() > 2 * one["noise95"].item() and one["trusted"].item() == "one record per person"

    def test_private_keys(self):
        shown = preview(BY_SEX, keys="private", delta=1e-6)
        assert shown["query_eps"].tolist() == [3, 3] and shown["delta"].tolist() == [1e-6] * 2
        said = Answer.from_attrs(pdrisk.sql(BY_SEX, people=PEOPLE, keys="private", delta=1e-6, **OPTIONS).attrs)
        assert shown["eps"].tolist() == [line.eps for line in said.lines]

    def test_what_follows_from_a_scalar_subquery_is_not_shown(self):
        shown = preview("SELECT COUNT(*) AS n, AVG(km) AS m FROM people WHERE km > (SELECT AVG(km) FROM people)", n=N)
        assert shown["query"].tolist() == [1, 2, 2] and shown["eps"].tolist() == [1, 1, 1]
        assert np.isnan(shown["noise95"]).tolist() == [False, False, True]
        assert shown["where"].isna().all() and np.isnan(shown["clamped_high"]).tolist() == [False, True, True]

    def test_values_of_parameters_are_not_shown(self):
        shown = preview("SELECT COUNT(*) FROM people WHERE age > ?", params=[41])
        assert "41" not in shown.to_string() and shown["trusted"].item().startswith("values of parameters")


@pytest.mark.usefixtures("unread")
class TestTouchesNobody:
    """Nothing is read or paid, and a ledger records the preview."""

    @pytest.mark.parametrize("keys", [["f", "m"], "observed", "private"], ids=str)
    def test_other_people_give_the_same(self, keys):
        options = {"keys": keys, **({"delta": 1e-6} if keys == "private" else {})}
        others = PEOPLE.assign(sex="x", km=1e9).head(3)
        pd.testing.assert_frame_equal(preview(BY_SEX, **options), preview(BY_SEX, others, **options))

    def test_recorded_and_not_paid(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="people", eps=1)
        preview(BY_SEX, keys=["f", "m"], ledger=ledger)  # more than there is
        history = ledger.history()
        assert history["event"].tolist() == ["opened", "previewed"] and history["eps"].sum() == 0
        assert history["query"].iloc[-1] == "count(), sum(km) from people by sex"
        assert ledger.remaining().eps == 1
        ledger.verify()

    def test_rules_of_the_owner(self, tmp_path):
        policy = {"least_group": {"size": 5, "eps": 0.5}, "round_to": {"sum": 10}}
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="people", eps=9, policy=policy)
        shown = preview("SELECT COUNT(*) AS n, SUM(km) AS s FROM people", ledger=ledger)
        assert shown["query_eps"].gt(3).all() and shown["rounded_to"].tolist()[1] == 10
        ledger.amend(policy={"refuse_columns": ["km"]})
        with pytest.raises(pdrisk.PolicyError, match="km"):
            preview("SELECT SUM(km) FROM people", ledger=ledger)
        assert ledger.history()["event"].tolist() == ["opened", "previewed", "amended", "refused"]

    def test_datasets_and_connections(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "b.db", dataset="people", eps=1)
        d = pdrisk.Dataset(PEOPLE, ledger=ledger)
        assert d.sql("SELECT COUNT(*) AS n FROM data", eps=1, explain=True)["name"].tolist() == ["n"]
        assert d.sql("SELECT COUNT(*) AS n FROM data", eps=1, explain=True)["noise95"].item() == 3
        with duckdb.connect() as con:
            con.execute("CREATE TABLE people AS SELECT 1 AS age")
            assert len(pdrisk.sql("/* x */ explain SELECT COUNT(*) FROM people", con, eps=1)) == 1


class TestRefused:
    @pytest.mark.parametrize("words", ["ANALYZE", "analyse", "(FORMAT JSON)", "/* x */ (ANALYZE)", "-- x\n ANALYZE"])
    def test_what_would_run_it(self, words):
        with pytest.raises(pdrisk.ParameterError, match="EXPLAIN ANALYZE and EXPLAIN with options are refused"):
            preview(f"{words} SELECT COUNT(*) FROM people")

    @pytest.mark.parametrize(
        "query", ["SELECT km FROM people", "SELECT AVG(nothing) FROM people", "DROP TABLE people", ""]
    )
    def test_what_the_query_would_be_refused_for(self, query):
        with pytest.raises(pdrisk.ParameterError) as one:
            preview(query)
        with pytest.raises(pdrisk.ParameterError) as other:
            pdrisk.sql(query, people=PEOPLE, **OPTIONS)
        assert str(one.value) == str(other.value)

    @pytest.mark.parametrize("n", [0, -1, True, 1.5, "1", 10**9])
    def test_sizes(self, n):
        with pytest.raises(pdrisk.ParameterError, match="n must be"):
            preview("SELECT COUNT(*) FROM people", n=n)

    def test_options_of_no_preview(self):
        with pytest.raises(pdrisk.ParameterError, match="n= is the number of records in a preview"):
            pdrisk.sql("SELECT COUNT(*) FROM people", people=PEOPLE, eps=1, n=3)
        with pytest.raises(pdrisk.ParameterError, match="explain is True or False"):
            pdrisk.sql("SELECT COUNT(*) FROM people", people=PEOPLE, eps=1, explain="yes")
