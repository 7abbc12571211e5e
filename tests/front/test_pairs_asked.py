"""Covariance, correlation and slope as people ask for them: frames, Datasets, SQL, ledgers, and what is refused."""

import json
import pickle

import duckdb
import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import typed
from pdrisk._answer.answers.answer import Answer
from pdrisk._core.pairs import Corr
from pdrisk._model.query import Line

BOUNDS = {"hours": (0, 80), "income": (0, 1000)}
PARTS = {"corr": 9, "cov": 4, "slope": 6}
SURE = 10**9  # an eps at which no noise is left to see
METHODS = ("corr", pytest.param("cov", marks=pytest.mark.slow), "slope")

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")


def people(n=400):
    at = np.arange(n)
    hours = (at * 37 % 101) * 0.7
    income = np.clip(hours * 9 + (at * 53 % 89) * 5.0, 0, 1000)
    frame = pd.DataFrame(
        {"pid": at, "hours": hours, "income": income, "sex": np.where(at % 3, "f", "m"), "age": at % 90}
    )
    frame.loc[::7, "hours"] = np.nan
    frame.loc[::11, "income"] = np.nan
    frame.loc[3, "hours"], frame.loc[5, "income"] = 95.0, -10.0  # beyond the bounds
    return frame


FRAME = typed(people())


def used(frame=FRAME):
    """The records that count, clamped."""
    both = frame[["hours", "income"]].astype(float).dropna()
    return both.assign(hours=both["hours"].clip(0, 80), income=both["income"].clip(0, 1000))


def exactly(method, frame=FRAME):
    both = used(frame)
    if method == "slope":
        return np.polyfit(both["hours"], both["income"], 1)[0]
    return getattr(both, method)().iloc[0, 1]


def columns_of(method):
    return ("income", "hours") if method == "slope" else ("hours", "income")


def asked(data, method, **options):
    return getattr(data, method)(y="income", x="hours", **({"bounds": BOUNDS} | options))


@pytest.fixture
def sums(monkeypatch):
    """The sums that noise would be added to, of each release; nothing is added."""
    found = []

    def kept(numbers, *_):
        found.append(numbers.tolist())
        return numbers

    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", kept)
    return found


class TestSlope:
    """The columns of a slope are named, since half of the world writes y first and the other half x."""

    def test_names(self):
        release = FRAME.dprisk.slope(x="hours", y="income", eps=1, bounds=BOUNDS)
        assert (release.column, release.other, release.name) == ("income", "hours", "slope of income on hours")
        assert repr(release).startswith("slope of income on hours of values clamped to income 0-1000 and hours 0-80\n")
        table = FRAME.dprisk.slope(x="hours", y="income", eps=1, bounds=BOUNDS, by="sex", keys=["f", "m"])
        assert pdrisk.explain(table, "analyst").startswith("slope of income on hours of values")

    @pytest.mark.parametrize("data", [FRAME.dprisk, pdrisk.Dataset(FRAME)], ids=["frame", "dataset"])
    @pytest.mark.parametrize(("given", "named"), [(("hours", "income"), {}), (("income",), {"x": "hours"})])
    def test_by_position(self, data, given, named):
        with pytest.raises(TypeError, match=r"slope\(y=.*, x=.*\), by how much .* or slope\(y="):
            data.slope(*given, **named, eps=1, bounds=BOUNDS)
        with pytest.raises(TypeError) as said:
            data.slope("hours", "income", eps=1)
        both = ("slope(y='income', x='hours'), by how much 'income' grows with 'hours'", "slope(y='hours', x='income')")
        assert all(each in str(said.value) for each in both)
        for lacking in ({"y": "income"}, {"x": "hours"}):
            with pytest.raises(TypeError, match="missing a required"):
                data.slope(**lacking, eps=1)


@pytest.mark.parametrize("method", METHODS)
class TestAnswers:
    """What pandas computes of the records with both values, clamped, and noise."""

    def test_of_a_frame(self, method):
        release = asked(FRAME.dprisk, method, eps=SURE, curator=True)
        assert release.value == pytest.approx(exactly(method), rel=1e-5)
        assert release.low <= release.value <= release.high and release.noise95 < abs(release.value) / 1000
        assert release.curator.n == len(used()) and release.curator.clamped == 2 / len(used())
        assert np.isnan(release.curator.local_sensitivity)

    def test_of_groups_and_filters(self, method):
        table = asked(FRAME.dprisk, method, eps=SURE, by="sex", keys=["m", "f", "x"], where="age > 20", curator=True)
        for sex in "mf":
            own = FRAME[(FRAME["sex"] == sex) & (FRAME["age"] > 20)]
            assert table["value"][sex] == pytest.approx(exactly(method, own), rel=1e-5)
            assert table["n"][sex] == len(used(own))
        assert table["n"]["x"] == 0 and table["low"]["x"] <= 0 <= table["high"]["x"]

    def test_of_codes_and_derived_columns(self, method):
        coded = FRAME.assign(minutes=(FRAME["hours"] * 60).fillna(-9), income=FRAME["income"].fillna(-1))
        said = {"bounds": {"income": (0, 1000)}, "missing": {"minutes": [-9], "income": [-1]}}
        data = pdrisk.Dataset(coded, **said).assign(hours="minutes / 60")
        release = asked(data, method, eps=SURE, curator=True)
        # The income that lies at -10 is no code.
        assert release.value == pytest.approx(exactly(method), rel=1e-5) and release.curator.n == len(used())

    def test_of_many_kinds_of_numbers(self, method, sums):
        whole = FRAME.round().astype({"hours": "Int16", "income": "Int32"})
        for kinds in (
            {"hours": "Int64", "income": "float64"},
            {"hours": "Float32", "income": "int64[pyarrow]"},
            {"hours": object, "income": object},
        ):
            asked(whole.astype(kinds).dprisk, method, eps=1)
        asked(whole.dprisk, method, eps=1)
        assert len(sums) == 4 and sums[0] == sums[1] == sums[2] == sums[3]
        assert sum(part[0] for part in sums[0]) == len(used(whole)) * 2**30 and len(sums[0]) == PARTS[method]

    def test_frames_and_sql_draw_about_the_same_sums(self, method, sums):
        con = duckdb.connect()
        con.execute("CREATE TABLE people AS SELECT * FROM df", {"df": FRAME}) if False else con.register(
            "people", FRAME
        )
        name = {"corr": "CORR", "cov": "COVAR_SAMP", "slope": "REGR_SLOPE"}[method]
        own = f"{name}({', '.join(columns_of(method))})"
        options, by = {"eps": 1, "bounds": BOUNDS}, {"keys": ["f", "m"]}
        asked(FRAME.dprisk, method, eps=1)
        pdrisk.sql(f"SELECT {own} FROM people", con, **options)
        asked(FRAME.dprisk, method, eps=1, by="sex", **by)
        pdrisk.sql(f"SELECT sex, {own} AS answer FROM people GROUP BY sex ORDER BY answer", con, **options, **by)
        asked(FRAME.dprisk, method, eps=1, where="age < 50")
        pdrisk.sql(f"SELECT {own} FILTER (WHERE age < 50) FROM people", con, **options)
        assert sums[0] == sums[1] and sums[2] == sums[3] and sums[4] == sums[5]
        assert len(sums[0]) == PARTS[method]

    def test_what_is_said_of_it(self, method):
        columns = columns_of(method)
        release = asked(FRAME.dprisk, method, eps=1)
        name = "slope of income on hours" if method == "slope" else f"{method}(hours, income)"
        assert (release.name, release.mechanism) == (name, "bernstein_products")
        assert (release.column, release.other) == columns
        assert release.bounds == {name: BOUNDS[name] for name in columns}
        assert release.curator.two_worlds == release.risk.worst_case == pytest.approx(0.7310586)
        assert 1 / len(used()) < release.curator.identifiability < np.exp(2) / len(used())
        said = json.loads(json.dumps(release.to_dict()))
        assert (said["column"], said["other"]) == columns and set(said["bounds"]) == set(columns)
        assert "local sensitivity   not known" in repr(asked(FRAME.dprisk, method, eps=1, curator=True))
        again = pickle.loads(pickle.dumps(release))
        assert (again.name, again.bounds, again.value) == (release.name, release.bounds, release.value)
        texts = [release.explain(audience) for audience in ("participant", "analyst", "curator", "publication")]
        assert (
            "income 0 to 1000" in texts[3]
            and "hours 0 to 80" in texts[3]
            and "not computed for statistics of two columns" in texts[2]
        )
        assert release.picture_text("two_worlds") and release._repr_html_().count("hours: 0 to 80")
        table = asked(FRAME.dprisk, method, eps=1, by="sex", keys=["f", "m"], curator=True)
        assert "most exposed group" in pdrisk.explain(table, "curator")
        assert list(pdrisk.public(table)) == ["value", "low", "high", "eps", "worst_case"]
        assert Answer.from_attrs(table.attrs).lines[0].other_bounds == BOUNDS[columns[1]]


class TestDeclarations:
    """Bounds of both columns are given by name or declared."""

    def test_who_says_them(self):
        declared = FRAME.dprisk.declare(bounds=BOUNDS)
        assert declared.dprisk.slope(y="income", x="hours", eps=1).bounds == {"income": (0, 1000), "hours": (0, 80)}
        own = declared.dprisk.corr("hours", "income", eps=1, bounds={"hours": (0, 60), "age": (0, 99)})
        assert own.bounds == {"hours": (0, 60), "income": (0, 1000)}
        found = pdrisk.sql("SELECT CORR(hours, income) AS r FROM people", people=declared, eps=SURE)
        assert found["r"][0] == pytest.approx(exactly("corr"), rel=1e-5)
        yes = FRAME.assign(old=FRAME["age"] > 40)
        assert yes.dprisk.cov("old", "age", ddof=0, eps=1, bounds={"age": (0, 90)}).bounds == {
            "old": (0, 1),
            "age": (0, 90),
        }

    @pytest.mark.parametrize(
        ("ask", "words"),
        [
            (lambda d: d.corr("hours", "income", eps=1, bounds=(0, 80)), r"two columns: pass bounds=\{'hours'"),
            (lambda d: d.corr("hours", "income", eps=1), r"bounds of column 'hours'"),
            (lambda d: d.cov("hours", "income", eps=1, bounds={"hours": (0, 80)}), r"bounds of column 'income'"),
            (lambda d: d.corr("hours", "age", eps=1, bounds="column"), "needs the bounds of two columns"),
            (
                lambda d: d.corr("hours", "income", eps=1, bounds=BOUNDS | {"income": "column"}),
                "cannot come from the data",
            ),
            (lambda d: d.corr("hours", "inc", eps=1, bounds=BOUNDS), "Did you mean 'income'"),
            (lambda d: d.corr("hours", None, eps=1, bounds=BOUNDS), "needs two columns"),
            (lambda d: d.corr("hours", "sex", eps=1, bounds=BOUNDS), "needs numbers"),
            (lambda d: d.cov("hours", "income", ddof=2, eps=1, bounds=BOUNDS), "ddof must be"),
            (lambda d: d.corr("hours", "income", eps=1, bounds=BOUNDS, step=1), "leave it out for corr"),
            (
                lambda d: d.corr("hours", "income", eps=1, bounds=BOUNDS, max_noise95=1),
                "look at noise95 of the answer[.]$",
            ),
            (
                lambda d: d.corr("hours", "income", eps=1, bounds=BOUNDS, mechanism="laplace"),
                "available for it: auto, bernstein_products",
            ),
            (lambda d: d.agg({"hours": ["mean", "corr"]}, eps=1, bounds=(0, 80)), "corr is a statistic of two columns"),
            (lambda d: d.assess("hours", ["cov"], bounds=(0, 80)), "cov is a statistic of two columns"),
            (lambda d: d.compare("hours", "slope", eps=1, bounds=(0, 80)), "slope is a statistic of two columns"),
            (lambda d: d.individual_risk("hours", "corr", eps=1, bounds=(0, 80)), "corr is a statistic of two columns"),
            (lambda d: pdrisk.plan("corr(hours)", n=100, eps=1, bounds=(0, 80)), "corr is a statistic of two columns"),
            (lambda d: pdrisk.study.run(FRAME, "hours", statistics=["corr"]), "corr is a statistic of two columns"),
        ],
    )
    def test_what_is_refused(self, ask, words):
        with pytest.raises(pdrisk.PdriskError, match=words):
            ask(FRAME.dprisk)

    @pytest.mark.parametrize(
        ("text", "bounds", "words"),
        [
            ("CORR(hours)", BOUNDS, "corr takes two columns and nothing else"),
            ("CORR(hours, income, 1)", BOUNDS, "corr takes two columns and nothing else"),
            ("CORR(DISTINCT hours, income)", BOUNDS, "DISTINCT"),
            ("COVAR_POP(hours, sex)", BOUNDS, "needs numbers"),
            ("REGR_SLOPE(income, hours)", (0, 80), "needs the bounds of income: pass a dict with both"),
            ("REGR_SLOPE(income, hours)", {"income": (0, 80)}, "needs the bounds of hours"),
            ("CORR(hours / income, income)", BOUNDS, "an expression needs a name in a subquery"),
            ("SUM(CORR(hours, income))", BOUNDS, "aggregate"),
        ],
    )
    def test_what_is_refused_in_sql(self, text, bounds, words):
        with pytest.raises(pdrisk.PdriskError, match=words):
            pdrisk.sql(f"SELECT {text} FROM people", people=FRAME, eps=1, bounds=bounds)

    def test_expressions_with_names(self):
        twice = "(SELECT hours * 2 AS twice, income FROM people)"
        text = f"SELECT COVAR_POP(twice, income) AS c, COVAR_POP(twice, income) FROM {twice}"
        found = pdrisk.sql(
            text, people=FRAME, eps=SURE, bounds={"twice": (0, 160), "income": (0, 1000)}, risk_columns=True
        )
        both = used()
        assert found["c"][0] == pytest.approx(2 * both.cov(ddof=0).iloc[0, 1], rel=1e-5)
        assert found["c_eps"][0] == SURE  # asked for twice, paid once

    def test_two_of_one_column(self):
        rows = "(SELECT income, hours, (80 - hours) * $one AS rest FROM people)"
        text = f"SELECT COVAR_SAMP(income, hours) AS a, COVAR_SAMP(income, rest) AS b FROM {rows}"
        bounds = BOUNDS | {"rest": (0, 80)}
        found = pdrisk.sql(text, people=FRAME, eps=SURE, bounds=bounds, params={"one": 1})
        assert found["a"][0] == pytest.approx(-found["b"][0], rel=1e-6) != 0
        assert Answer.from_attrs(found.attrs).where_trusted  # by the parameter in the second column
        lines = [Line("x", Corr(), None, None, other=other) for other in "yz"]
        assert lines[0].people != lines[1].people

    def test_a_series_has_one_column(self):
        with pytest.raises(AttributeError, match=r"two columns: ask the frame, df.dprisk.corr"):
            _ = FRAME["hours"].dprisk.corr


class TestLedger:
    """Paid, recorded and remembered like every other answer."""

    def test_paid_once_and_remembered(self, book):
        ledger = book(eps=3)
        data = pdrisk.Dataset(FRAME, bounds=BOUNDS, person="pid", per_person="one", ledger=ledger)
        first, again = (data.corr("hours", "income", eps=1) for _ in range(2))
        assert first.value == again.value and (first.low, first.high) == (again.low, again.high)
        assert first.curator is None and ledger.remaining().eps == 2
        other = data.corr("income", "hours", eps=1)  # another question
        assert other.value != first.value and ledger.remaining().eps == 1
        texts = [data.sql("SELECT REGR_SLOPE(income, hours) AS b FROM data", eps=1)["b"][0] for _ in range(2)]
        assert texts[0] == texts[1] and ledger.remaining().eps == 0
        history = ledger.history()
        said = history[history["event"] == "paid"] if (history["event"] == "paid").any() else history
        assert said["query"].str.contains(r"corr\(hours, income\)").any()
        assert said["bounds"].dropna().str.contains("hours: 0.0 to 80.0; income: 0.0 to 1000.0").any()
        ledger.verify()

    def test_who_is_in_it(self, book):
        ledger = book(policy={"curators": ["ann"]})
        data = pdrisk.Dataset(FRAME, bounds=BOUNDS, person="pid", per_person="one", ledger=ledger)
        data.cov("hours", "income", eps=0.5)
        losses = ledger.odometer(FRAME)["loss"]
        present = FRAME[["hours", "income"]].notna().all(axis=1).to_numpy()
        assert losses.to_numpy().tolist() == (0.5 * present).tolist()

    def test_rules(self, book):
        rules = {"least_group": {"size": 100, "eps": 1000}, "round_to": {"cov": 50}, "refuse_statistics": ["slope"]}
        data = pdrisk.Dataset(FRAME, bounds=BOUNDS, ledger=book(policy=rules))
        table = data.cov("hours", "income", eps=1000, by="sex", keys=["f", "x"])
        assert table["value"]["f"] % 50 == 0 and np.isnan(table["value"]["x"]) and np.isnan(table["low"]["x"])
        with pytest.raises(pdrisk.PolicyError, match="does not allow slope"):
            data.slope(y="income", x="hours", eps=1)
