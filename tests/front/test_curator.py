"""The curator's views: exact, without noise, and equal to the definitions by brute force."""

import math

import numpy as np
import pandas as pd
import pytest

import pdrisk

BOUNDS = (1, 675)
PAPER = [3.0, 1.0, 10.0, 675.0, 17.0]
ASSESSED = ["eps", "n", "global_sensitivity", "local_sensitivity", "noise95"]
ASSESSED += ["worst_case", "two_worlds", "many_worlds", "identifiability"]

# By definition, with the conventions of docs/numbers.md for what is left when nobody is.
ORACLES = {
    "count": len,
    "sum": sum,
    "mean": lambda x: np.mean(x) if x else 338,
    "median": lambda x: np.median(x) if x else 338,
    "min": lambda x: min(x, default=675),
    "max": lambda x: max(x, default=1),
    ("quantile", 0.9): lambda x: np.quantile(x, 0.9) if x else 338,
    ("var", 0): lambda x: np.var(x) if x else 0,
    ("var", 1): lambda x: np.var(x, ddof=1) if len(x) > 1 else 0,
    ("std", 0): lambda x: np.std(x) if x else 0,
    ("std", 1): lambda x: np.std(x, ddof=1) if len(x) > 1 else 0,
}
WHOLE = {"count": 1, "sum": 675, "mean": 337, "median": 337, "min": 674, "max": 674, ("quantile", 0.9): 606.6}
WHOLE |= {("var", 0): 113569, ("var", 1): 227138, ("std", 0): 337, ("std", 1): 674 / math.sqrt(2)}


def spec(name):
    return name if isinstance(name, str) else (name[0], {"q" if name[0] == "quantile" else "ddof": name[1]})


def frame_of(values) -> pd.DataFrame:
    return pd.DataFrame({"distance": values if isinstance(values, pd.Series) else pd.Series(values)})


class TestAssess:
    """A tidy frame of exact sensitivities and risks: no noise, no spending."""

    def test_columns_and_rows_in_order(self):
        frame = frame_of(PAPER).assign(age=[1, 2, 3, 4, 5])
        statistics = ["mean", ("quantile", {"q": 0.9}), ("var", {"ddof": 0}), "var", ("std", {"ddof": 0})]
        table = frame.dprisk.assess(["distance", "age"], statistics, eps=[0.1, 1], bounds=BOUNDS, mechanism="laplace")
        assert table.columns.tolist() == ["column", "statistic", "mechanism", *ASSESSED]
        labels = ["mean", "quantile(0.9)", "var(ddof=0)", "var", "std(ddof=0)"]
        wanted = [(c, label, eps) for c in ("distance", "age") for label in labels for eps in (0.1, 1.0)]
        assert list(zip(table["column"], table["statistic"], table["eps"], strict=True)) == wanted
        assert table.index.equals(pd.RangeIndex(20))
        assert table["n"].dtype == np.int64

    def test_the_numbers_of_the_paper(self):
        # docs/reproducing.md: sample {3, 1, 10, 17}, eps = 1.
        statistics = ["mean", "median", ("var", {"ddof": 0}), "var"]
        table = frame_of([3, 1, 10, 17]).dprisk.assess("distance", statistics, 1, bounds=BOUNDS, mechanism="laplace")
        shares = table["local_sensitivity"] / table["global_sensitivity"]
        assert shares.tolist() == pytest.approx([0.395994, 0.0103858, 0.627175, 0.391970], abs=5e-7)
        assert table["two_worlds"].tolist() == pytest.approx([0.597725, 0.502596, 0.651849, 0.596757], abs=5e-7)
        assert table["many_worlds"].tolist() == pytest.approx([0.331232, 0.251952, 0.384276, 0.330341], abs=5e-7)
        assert table["noise95"].tolist() == pytest.approx([gs * math.log(20) for gs in table["global_sensitivity"]])

    def test_defaults_and_repetition(self):
        frame = frame_of(PAPER)
        table = frame.dprisk.assess("distance", bounds=BOUNDS, mechanism="laplace")
        assert table["statistic"].tolist() == [s for s in ["mean", "median", "min", "max", "var"] for _ in range(2)]
        assert table["eps"].tolist() == [0.1, 1] * 5
        pd.testing.assert_frame_equal(table, frame.dprisk.assess("distance", bounds=BOUNDS, mechanism="laplace"))
        pd.testing.assert_frame_equal(table, frame["distance"].dprisk.assess(bounds=BOUNDS, mechanism="laplace"))

    def test_groups(self):
        frame = frame_of(PAPER).assign(region=["north", "south", "north", "south", "east"], sex=list("fmmmf"))
        options = {"statistics": ["mean", "max"], "eps": [1, 2], "bounds": BOUNDS}
        table = frame.dprisk.assess(
            "distance", by="region", keys=["south", "west", "north"], **options, mechanism="laplace"
        )
        assert table.columns.tolist() == ["column", "statistic", "mechanism", "group", *ASSESSED]
        assert table["group"].tolist() == ["south", "south", "west", "west", "north", "north"] * 2
        assert table["n"].tolist() == [2, 2, 0, 0, 2, 2] * 2
        assert table["local_sensitivity"].tolist()[:2] == [337, 337]  # {1, 675}: remove either
        two = frame.dprisk.assess(
            "distance", by=["region", "sex"], keys=[("north", "f"), ("east", "f")], **options, mechanism="laplace"
        )
        assert two["group"].tolist()[::2] == [("north", "f"), ("east", "f")] * 2
        observed = frame.dprisk.assess(
            "distance", by="sex", keys="observed", where="distance < 5", **options, mechanism="laplace"
        )
        assert observed["n"].tolist()[::2] == [1, 1] * 2

    def test_options(self):
        frame = frame_of(PAPER).assign(age=[1, 2, 3, 4, 5]).dprisk.declare(bounds={"distance": BOUNDS})
        table = frame.dprisk.assess(
            ["distance", "age"], "mean", (1,), bounds={"age": "column"}, where="age > 2", mechanism="laplace"
        )
        assert table["global_sensitivity"].tolist() == [337, 2]
        assert table["n"].tolist() == [3, 3]
        assert frame.dprisk.assess("distance", "mean", np.array([0.5, 1]), mechanism="laplace")["eps"].tolist() == [
            0.5,
            1,
        ]
        assert frame["distance"].dprisk.assess("mean", 1, where=lambda x: x > 5, mechanism="laplace")["n"].tolist() == [
            3
        ]

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("name", ORACLES, ids=str)
    def test_agrees_with_a_release(self, name):
        options = {"eps": 0.5, "bounds": BOUNDS, "curator": True, "mechanism": "laplace"}
        release = frame_of(PAPER).dprisk.agg({"distance": [spec(name)]}, **options).iloc[0]
        row = frame_of(PAPER).dprisk.assess("distance", [spec(name)], 0.5, bounds=BOUNDS, mechanism="laplace").iloc[0]
        same = [column for column in release.index if column in row.index]
        assert len(same) == 7
        assert release[same].tolist() == row[same].tolist()
        assert row["noise95"] == pytest.approx(
            max(release["high"] - release["value"], release["value"] - release["low"])
        )


class TestIndividualRisk:
    """posterior(eps |f(D) - f(D - x)| / GS) for the person of each row, and NaN where a row is not used."""

    @pytest.mark.parametrize(
        "values", [PAPER, [5.0, 5, 5], [1.0, 675], [300.0], [-9.0, 2, 2, 900, np.inf, 44]], ids=str
    )
    @pytest.mark.parametrize("name", ORACLES, ids=str)
    def test_equals_brute_force(self, name, values):
        eps = 1.5
        risk = frame_of(values).dprisk.individual_risk(
            "distance", spec(name), eps=eps, bounds=BOUNDS, mechanism="laplace"
        )
        clamped = np.clip(values, *BOUNDS).tolist()
        answer = ORACLES[name](clamped)
        others = [clamped[:i] + clamped[i + 1 :] for i in range(len(clamped))]
        losses = [eps * abs(ORACLES[name](left) - answer) / WHOLE[name] for left in others]
        assert risk.tolist() == pytest.approx([1 / (1 + math.exp(-loss)) for loss in losses], rel=1e-9)

    @pytest.mark.parametrize("mechanism", ["laplace", "auto"])
    def test_of_groups_it_is_that_of_each(self, mechanism):
        frame = frame_of([3, 1, 10, 675, 17, 2, 9]).assign(g=["a", "b", "a", "a", "b", "c", None])
        asked = {"eps": 1, "bounds": BOUNDS, "mechanism": mechanism}
        risk = frame.dprisk.individual_risk("distance", by="g", keys=["a", "b"], **asked)
        for key in ("a", "b"):
            own = frame[frame["g"] == key]
            assert risk[own.index].tolist() == own.dprisk.individual_risk("distance", **asked).tolist()
        assert risk[5:].isna().all()

    def test_the_numbers_of_the_paper(self):
        # docs/reproducing.md: each person, all five, eps = 1.
        frame = frame_of(PAPER)
        mean = frame.dprisk.individual_risk("distance", eps=1, bounds=BOUNDS, mechanism="laplace")
        assert mean.round(4).tolist() == [0.5256, 0.5260, 0.5243, 0.5977, 0.5230]
        assert frame["distance"].dprisk.individual_risk("max", eps=1, bounds=BOUNDS, mechanism="laplace").round(
            4
        ).tolist() == [*(0.5, 0.5, 0.5, 0.7264, 0.5)]

    @pytest.mark.parametrize("index", [[7, 7, 7, 1, 1, 1], [5, 0, 4, 1, 3, 2], list("zzyyxx")], ids=str)
    def test_is_aligned_by_position(self, index):
        frame = frame_of([3, None, 1, 10, 675, 17]).set_axis(index)
        chosen = [True, True, True, True, False, True]
        risk = frame.dprisk.individual_risk("distance", eps=1, bounds=BOUNDS, where=chosen, mechanism="laplace")
        plain = frame_of([3, 1, 10, 17]).dprisk.individual_risk("distance", eps=1, bounds=BOUNDS, mechanism="laplace")
        assert risk.index.equals(frame.index)
        assert risk.isna().tolist() == [False, True, False, False, True, False]
        assert risk.dropna().tolist() == plain.tolist()
        assert (frame.assign(risk=risk)["risk"].isna() == risk.isna()).all()

    def test_a_callable_is_asked_once(self):
        # Else the risks could be those of other rows than the sensitivities.
        answers = [[True] * 4 + [False], [True] * 5]
        risk = frame_of(PAPER).dprisk.individual_risk(
            "distance", eps=1, bounds=BOUNDS, where=lambda _: np.array(answers.pop(0)), mechanism="laplace"
        )
        assert len(answers) == 1
        assert risk.isna().tolist() == [False] * 4 + [True]

    def test_nobody_and_many(self):
        assert (
            frame_of([])
            .astype(float)
            .dprisk.individual_risk("distance", eps=1, bounds=BOUNDS, mechanism="laplace")
            .tolist()
            == []
        )
        nobody = frame_of([1, 2]).dprisk.individual_risk(
            "distance", eps=1, bounds=BOUNDS, where=[False, False], mechanism="laplace"
        )
        assert nobody.isna().all()
        values = np.random.default_rng(5).uniform(0, 700, 100_001)
        many = frame_of(values).dprisk.individual_risk("distance", "max", eps=1, bounds=(0, 700), mechanism="laplace")
        assert (many > 0.5).sum() == 1
        assert many.idxmax() == values.argmax()

    @pytest.mark.parametrize(
        "values",
        [
            ["SENTINEL", "b"],
            pd.to_datetime(["2020", "2021"]),
            [[1], [2]],
            pd.Categorical(["a", "b"]),
            pd.Series([10**400, 1], dtype=object),
        ],
        ids=["texts", "dates", "lists", "categories", "huge integers"],
    )
    def test_counting_needs_no_numbers(self, values):
        # Each value counts 1 of 1, so each risk is the worst case; in no case may a value be quoted.
        risk = frame_of(values).dprisk.individual_risk("distance", "count", eps=1, mechanism="laplace")
        assert risk.round(4).tolist() == [0.7311, 0.7311]

    def test_counting_leaves_the_missing_out(self):
        risk = frame_of(["a", None]).dprisk.individual_risk("distance", "count", eps=1, mechanism="laplace")
        assert risk.isna().tolist() == [False, True]
        rows = frame_of(["a", None]).dprisk.individual_risk(None, "count", eps=1, mechanism="laplace")
        assert rows.round(4).tolist() == [0.7311, 0.7311]


class TestEpsilonFor:
    """The eps at which a metric reaches a risk: fed back, it gives that risk."""

    @pytest.mark.parametrize("metric", ["worst_case", "two_worlds", "many_worlds", "identifiability"])
    @pytest.mark.parametrize("name", [name for name in ORACLES if name not in ("count", "sum")], ids=str)
    def test_fed_back_it_gives_the_risk(self, name, metric):
        frame = frame_of(PAPER)
        for where in (None, "distance < 600"):
            eps = frame.dprisk.epsilon_for(
                "distance", spec(name), risk=0.6, metric=metric, bounds=BOUNDS, where=where, mechanism="laplace"
            )
            table = frame.dprisk.assess("distance", [spec(name)], eps, bounds=BOUNDS, where=where, mechanism="laplace")
            assert table[metric].tolist() == pytest.approx([0.6], rel=1e-9)

    @pytest.mark.parametrize(
        ("options", "eps"),
        [
            ({"risk": 0.6}, math.log(1.5)),
            ({"risk": 0.6, "metric": "two_worlds"}, math.log(1.5) * 337 / 133.45),
            ({"risk": 0.6, "metric": "many_worlds"}, math.log(6) * 337 / 133.45),
            ({"risk": 0.6, "metric": "many_worlds", "prior": 0.5}, math.log(1.5) * 337 / 133.45),
            ({"risk": 0.6, "metric": "identifiability"}, math.log(6) * 337 / 168.5),
            ({"risk": 0.1, "prior": 1 / 68}, math.log(67 / 9)),
            ({"statistic": "count", "risk": 0.6, "metric": "identifiability"}, math.inf),
            ({"statistic": "max", "risk": 0.6, "metric": "two_worlds"}, math.log(1.5) * 674 / 658),
        ],
        ids=str,
    )
    def test_equals_the_formula(self, options, eps):
        found = frame_of(PAPER).dprisk.epsilon_for("distance", bounds=BOUNDS, **options, mechanism="laplace")
        assert type(found) is float
        assert found == pytest.approx(eps, rel=1e-12)
        assert frame_of(PAPER)["distance"].dprisk.epsilon_for(bounds=BOUNDS, **options, mechanism="laplace") == found

    def test_worst_case_releases_with_that_risk(self):
        eps = frame_of(PAPER).dprisk.epsilon_for(None, "count", risk=0.75, mechanism="laplace")
        assert frame_of(PAPER).dprisk.count(eps=eps).risk.worst_case == pytest.approx(0.75)

    def test_the_refusal_tells_no_number_of_records(self):
        frame = frame_of(np.arange(7919) % 600)
        for risk in (0.0001, 1e-9):
            with pytest.raises(pdrisk.ParameterError) as error:
                frame.dprisk.epsilon_for(
                    "distance", risk=risk, metric="many_worlds", bounds=BOUNDS, mechanism="laplace"
                )
            assert "7919" not in str(error.value)
            assert f"{1 / 7919:g}" not in str(error.value)


class TestLabels:
    def test_close_quantiles_keep_apart(self):
        specs = [("quantile", {"q": 1 / 3}), ("quantile", {"q": 0.333}), ("quantile", {"q": 1})]
        table = pd.DataFrame({"x": [1.0]}).dprisk.assess("x", specs, eps=1, bounds=(0, 9), mechanism="laplace")
        assert table["statistic"].tolist() == ["quantile(0.3333333333333333)", "quantile(0.333)", "quantile(1)"]
