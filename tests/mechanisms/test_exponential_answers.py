"""Medians and quantiles by the exponential mechanism, as every front end answers them."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk.risk import posterior
from test_exponential import masses, mechanism_of

N = 4000
X = np.random.default_rng(8).integers(1, 676, N)
FRAME = pd.DataFrame({"x": X, "y": X / 1000, "g": np.arange(N) % 2})
SQL = {"mechanism": "exponential", "bounds": {"x": (1, 675)}}
ASKED = {"mechanism": "exponential", "bounds": (1, 675)}


def near(value, values, q, ranks=60):
    """Whether so few records lie between a value and the quantile."""
    target = q * len(values)
    return max((values < value).sum() - target, target - (values <= value).sum()) <= ranks


class TestAnswer:
    def test_is_near_its_rank(self):
        for q in (0.1, 0.5, 0.9):
            release = FRAME.dprisk.quantile("x", q=q, eps=1, **ASKED)
            assert near(release.value, X, q)
            assert release.mechanism == "exponential"

    def test_of_declared_whole_numbers_is_one(self):
        release = FRAME.dprisk.median("x", eps=1, step=1, **ASKED)
        assert type(release.value) is int
        assert FRAME.dprisk.median("x", eps=1, **(ASKED | {"bounds": (0.5, 675.9)}), step=1).bounds == (1, 675)

    def test_a_dtype_declares_nothing(self):
        """One missing value turns int64 into float64, and the digits of the answer would tell."""
        assert isinstance(FRAME.dprisk.median("x", eps=1, **ASKED).value, float)

    def test_lies_on_public_decimals(self):
        values = [FRAME.dprisk.median("y", eps=1, mechanism="exponential", bounds=(0, 1)).value for _ in range(5)]
        assert all(round(value, 5) == value for value in values)

    def test_interval_is_not_known_but_ranks_are(self):
        release = FRAME.dprisk.median("x", eps=1, step=1, **ASKED)
        assert math.isnan(release.low) and math.isnan(release.high) and math.isnan(release.noise95)
        assert release.rank95 == 10
        assert "within 10 records of its rank" in repr(release)
        assert "10 records, rounded to steps of 1, lie between" in release.explain("analyst")
        assert release.to_dict()["rank95"] == 10
        for audience in ("participant", "analyst", "curator", "publication"):
            assert "nan" not in release.explain(audience)
        assert "nan" not in repr(release + 1)

    def test_of_laplace_has_no_ranks(self):
        release = FRAME.dprisk.median("x", eps=500, bounds=(1, 675), mechanism="laplace")
        assert release.rank95 is None and "rank95" not in release.to_dict()

    def test_risk(self):
        release = FRAME.dprisk.median("x", eps=1, step=1, curator=True, **ASKED)
        assert release.risk.worst_case == pytest.approx(posterior(1.0))
        assert release.risk.success == pytest.approx(posterior(0.5))
        assert 0.5 < release.curator.loss <= 1
        assert release.curator.two_worlds == pytest.approx(posterior(release.curator.loss))

    def test_of_nobody_may_be_anything(self):
        nobody = FRAME.dprisk.median("x", eps=1, where="x < 0", **ASKED)
        assert 1 <= nobody.value <= 675
        assert nobody.curator.n == 0

    def test_other_statistics_are_refused(self):
        with pytest.raises(pdrisk.ParameterError, match="cannot answer mean"):
            FRAME.dprisk.mean("x", eps=1, **ASKED)
        with pytest.raises(pdrisk.ParameterError, match="leave it out for mean"):
            FRAME.dprisk.mean("x", eps=1, bounds=(1, 675), step=1)

    def test_noise_in_the_unit_cannot_be_judged_beforehand(self):
        with pytest.raises(pdrisk.ParameterError, match="max_noise95"):
            FRAME.dprisk.median("x", eps=1, max_noise95=3, **ASKED)


class TestExtremes:
    def test_are_some_records_from_the_end(self):
        for method, side in (("min", -1), ("max", 1)):
            release = getattr(FRAME.dprisk, method)("y", eps=1, bounds=(0, 1), mechanism="exponential")
            assert (side * FRAME["y"] > side * release.value).sum() <= 2 * release.rank95
            assert 40 < release.rank95 < 60
            reached = getattr(FRAME.dprisk, method)(
                "x", eps=1, bounds_reached=True, step=1, bounds=(1, 675), mechanism="exponential"
            )
            assert abs(reached.value - (1 if side < 0 else 675)) <= 5
            assert reached.rank95 == 10 and reached.statistic == f"{method}(bounds_reached=True)"
            assert "nan" not in reached.explain("curator") + repr(reached)
            series = FRAME["y"].dprisk
            assert getattr(series, method)(eps=1, bounds=(0, 1), mechanism="exponential").rank95 == release.rank95

    def test_reached_bounds_mean_nothing_to_laplace(self):
        with pytest.raises(pdrisk.ParameterError, match="bounds_reached"):
            FRAME.dprisk.max("y", eps=1, bounds=(0, 1), bounds_reached=True, mechanism="laplace")
        with pytest.raises(pdrisk.PdriskError, match="bounds_reached is True or False"):
            FRAME.dprisk.max("y", eps=1, bounds=(0, 1), bounds_reached=1)

    def test_sql(self):
        table = pdrisk.sql("SELECT MAX(y) AS top FROM t", t=FRAME, eps=1, bounds={"y": (0, 1)}, mechanism="exponential")
        assert 0.5 < table["top"][0] <= 0.675 + 0.01


class TestTables:
    def test_groups(self):
        table = FRAME.dprisk.median("x", eps=1, by="g", keys=[0, 1, 2], step=1, **ASKED)
        assert table["value"].dtype == np.int64
        assert table[["low", "high"]].isna().all(axis=None)
        for key in (0, 1):
            assert near(table.loc[key, "value"], X[FRAME["g"] == key], 0.5)

    def test_several_statistics(self):
        specs = ["mean", "median", ("quantile", {"q": 0.9})]
        with pytest.raises(pdrisk.ParameterError):
            FRAME.dprisk.agg({"x": specs}, eps=3, **ASKED)
        table = FRAME.dprisk.agg({"x": specs[1:]}, eps=2, **ASKED)
        assert [near(value, X, q) for value, q in zip(table["value"], (0.5, 0.9), strict=True)] == [True, True]
        assert "nan" not in pdrisk.explain(table, "analyst")

    def test_sql(self):
        query = "SELECT g, MEDIAN(x) AS m, quantile_cont(y, 0.9) AS q FROM t GROUP BY g"
        bounds = {"x": (1, 675), "y": (0, 1)}
        table = pdrisk.sql(query, t=FRAME, eps=2, bounds=bounds, keys=[0, 1], mechanism="exponential")
        for key, m, q in zip(table["g"], table["m"], table["q"], strict=True):
            own = X[FRAME["g"] == key]
            assert near(m, own, 0.5) and near(1000 * q, own, 0.9)

    def test_withheld_answers(self, tmp_path):
        policy = {"least_group": {"size": 30, "eps": 5}}
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=100, policy=policy)
        few = FRAME.dprisk.median("x", eps=1, by="g", keys=[0, 7], ledger=ledger, **ASKED)
        assert near(few.loc[0, "value"], X[FRAME["g"] == 0], 0.5)
        assert math.isnan(few.loc[7, "value"])
        whole = FRAME.dprisk.median("x", eps=1, by="g", keys=[0, 7], ledger=ledger, step=1, **ASKED)
        assert whole["value"].dtype == "Int64" and whole["value"].isna().tolist() == [False, True]


class TestViews:
    def test_individual_risk_is_that_of_the_curator_at_most(self):
        release = FRAME.dprisk.median("x", eps=1, curator=True, **ASKED)
        risks = FRAME.dprisk.individual_risk("x", "median", eps=1, **ASKED)
        assert risks.min() > 0.5 and risks.max() <= release.curator.two_worlds + 1e-12

    def test_individual_risk_of_groups_and_missing_rows(self):
        frame = FRAME.assign(x=FRAME["x"].where(FRAME.index > 9))
        risks = frame.dprisk.individual_risk("x", "median", eps=1, where="g == 0", **ASKED)
        assert risks.isna().sum() == N // 2 + 5

    def test_planned_eps_keeps_the_risk(self):
        eps = FRAME.dprisk.epsilon_for("x", "median", risk=0.6, metric="two_worlds", **ASKED)
        assert FRAME.dprisk.median("x", eps=eps, curator=True, **ASKED).curator.two_worlds <= 0.6 + 1e-9

    def test_identifiability_is_not_understated(self):
        few = pd.DataFrame({"x": [1.0, 300.0, 600.0]})
        found = few.dprisk.identifiability("x", "median", eps=1, **ASKED)
        told = few.dprisk.median("x", eps=1, curator=True, **ASKED).curator.identifiability
        assert found.exact >= told - 1e-12
        assert found.exact <= posterior(2.0, 1 / 3) + 1e-12

    def test_assess(self):
        table = FRAME.dprisk.assess(["x"], ["median"], eps=[0.5, 1], **ASKED)
        assert (table["noise95"].diff().dropna() < 0).all()  # less at a larger eps
        assert (table["two_worlds"] <= table["worst_case"]).all()


class TestLedger:
    def test_questions_differ_by_what_is_declared(self, tmp_path):
        ledger = pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=100)
        for step in (None, 1):
            FRAME.dprisk.median("x", eps=1, step=step, ledger=ledger, **ASKED)
        assert ledger.remaining().spent == 2
        assert list(ledger.history()["mechanism"])[-1] == "exponential"

    def test_a_dataset_remembers(self, tmp_path):
        pdrisk.Ledger(tmp_path / "l.db", dataset="d", eps=3)
        data = pdrisk.Dataset(FRAME, name="d", ledger=tmp_path / "l.db")
        answers = [data.median("x", eps=1, **ASKED) for _ in range(3)]
        assert len({(each.value, each.rank95) for each in answers}) == 1
        sql = [data.sql("SELECT QUANTILE_CONT(x, 0.9) FROM data", eps=1, **SQL).iloc[0, 0] for _ in range(3)]
        assert len(set(sql)) == 1
        assert pdrisk.Ledger(tmp_path / "l.db", dataset="d").remaining().spent == 2


class TestAttack:
    """Someone who knows everything but whether one record is there, and sees real answers."""

    PEOPLE = (1, 2, 2, 6, 9)
    DRAWS = 10_000

    @pytest.mark.parametrize("record", [0, 2, 5, 10])
    def test_belief_and_success_stay_within_the_claims(self, record):
        worlds, draws, mechanism = [self.PEOPLE, (*self.PEOPLE, record)], self.DRAWS, mechanism_of(0.5, 1, 11)
        size = [len(world) for world in worlds for _ in range(draws)]
        frame = pd.DataFrame({"g": np.repeat(np.arange(len(size)), size)})
        frame["x"] = np.concatenate([np.tile(world, draws) for world in worlds])
        options = {"bounds": (0, 10), "step": 1, "mechanism": "exponential", "by": "g", "keys": range(len(size))}
        values = frame.dprisk.median("x", eps=1, **options)["value"].to_numpy().reshape(2, draws)
        shares = np.array([[mass / sum(own) for mass in own] for own in (masses(mechanism, each) for each in worlds)])
        for own, expected in zip(values, shares, strict=True):
            found = np.bincount(own, minlength=11) / draws
            assert (np.abs(found - expected) <= 6 * np.sqrt(expected / draws)).all()
        odds = np.log(shares[1] / shares[0])[values]
        right = np.where(odds == 0, 0.5, (odds > 0) == np.array([[False], [True]]))
        release = pd.DataFrame({"x": self.PEOPLE}).dprisk.median("x", eps=1, **ASKED)
        assert right.mean() <= release.risk.success + 6 * 0.5 / math.sqrt(right.size)
        assert (1 / (1 + np.exp(-np.abs(odds)))).max() <= release.risk.worst_case + 1e-9


class TestFewRecords:
    """An order statistic of nearly nobody is warned of by a noisy number beside it, and its text says how few."""

    @staticmethod
    def warned(ask):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            answer = ask()
        texts = [str(each.message) for each in seen if each.category is pdrisk.NoisyReleaseWarning]
        return answer, [text for text in texts if "too few records" in text]

    @pytest.mark.parametrize("n", [0, 1, 5])
    @pytest.mark.parametrize("beside", ["count", "mean", "std"])
    def test_beside_a_noisy_number(self, n, beside):
        frame = FRAME.head(n)
        asked = {"y": [beside, "median", "max", ("quantile", {"q": 0.9})]}
        for _ in range(10):
            _, (said,) = self.warned(lambda: frame.dprisk.agg(asked, eps=4, bounds=(0, 1)))
            assert re.search(r"median\(y\), which says nothing of fewer than some \d+ records; max\(y\)", said)
            assert "quantile(0.9)(y)" in said or "quantile" in said

    def test_in_groups_and_in_sql(self):
        rows = pd.DataFrame({"g": ["many"] * 3000 + ["few"] * 3, "y": 0.5})
        ask = {"eps": 4, "bounds": (0, 1), "by": "g", "keys": ["many", "few"]}
        _, (said,) = self.warned(lambda: rows.dprisk.agg({"y": ["count", "min"]}, **ask))
        assert "min(y), which says nothing of the 1 groups of less than" in said
        query = "SELECT COUNT(*), MAX(y) FROM people"
        _, (said,) = self.warned(lambda: pdrisk.sql(query, people=rows.tail(3), eps=4, bounds={"y": (0, 1)}))
        assert "max(y), which says nothing of fewer than" in said

    def test_not_of_many_nor_by_the_number_of_others(self):
        rows = pd.DataFrame({"y": np.linspace(0, 1, 3000), "z": [0.5] + [np.nan] * 2999})
        options = {"eps": 4, "bounds": (0, 1)}
        for asked in (
            {"y": ["count", "max", "median"]},
            {None: ["count"], "y": ["max"]},
            {"z": ["count"], "y": ["max"]},
        ):
            assert self.warned(lambda asked=asked: rows.dprisk.agg(asked, **options))[1] == []
        assert len(self.warned(lambda: rows.dprisk.agg({"z": ["count", "max"]}, **options))[1]) == 1

    def test_texts_say_how_few(self):
        """Of public facts alone: the same of nobody and of many."""
        for frame in (FRAME.head(0), FRAME):
            release = frame.dprisk.max("y", eps=1, bounds=(0, 1))
            few = f"says nothing of fewer than some {math.ceil(2 * release.rank95)}"
            for text in (
                repr(release),
                release._repr_html_(),
                release.explain("analyst"),
                release.explain("publication"),
            ):
                assert few in " ".join(text.split())

    def test_an_interval_of_all_that_is_possible(self):
        for statistic in ("max", "min"):
            with pytest.warns(pdrisk.NoisyReleaseWarning, match=rf"{statistic}\(y\): 1 wide, of 1 possible"):
                getattr(FRAME.head(1).dprisk, statistic)("y", eps=1, bounds=(0, 1), interval=True)
