"""Measurements: what was drawn, uncut, with its law and its identity, in every form that an answer takes."""

import copy
import io
import json
import pickle
import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from pdrisk._answer.answers.answer import Answer
from pdrisk._answer.arithmetic.forms import form_of
from pdrisk._answer.arithmetic.measured import Measurements
from pdrisk._answer.tables.measured_tables import measurements_of
from pdrisk._mechanisms.laws.law import Law

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning", "ignore::pdrisk.DoubtfulReleaseWarning")

FRAME = pd.DataFrame({"g": [0, 1, 1, 2] * 50, "x": [1.0, 2, 3, 4] * 50, "y": [4.0, 1, 2, 2] * 50})
S = 2**30
UNIT = Fraction(1, S)
X = {"bounds": (0, 5)}
GROUPS = {"by": "g", "keys": [0, 1, 2, 7]}


@pytest.fixture
def less(monkeypatch):
    """All noise is -300 steps: counts are shown as 0."""
    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda exact, change, eps: exact - 300)


class TestRelease:
    """``release.measured`` has the numbers of section 1 of RELEASES.md."""

    @pytest.mark.parametrize(
        ("ask", "numbers", "unit", "scale"),
        [
            (lambda d: d.count(eps=0.5), [200], Fraction(1), 2),
            (lambda d: d.sum("x", eps=1, step=1, **X), [500], Fraction(1), 5),
            (lambda d: d.nunique("x", eps=1), [4], Fraction(1), 1),
            (lambda d: d.sum("x", eps=0.5, **X), [500], Fraction(1, 2**28), 10),
            (lambda d: d.mean("x", eps=0.5, **X), [100, 100], UNIT, 2),
            (lambda d: d.mean("x", eps=1, mechanism="bernstein", **X), [60, 80, 60], UNIT, 1),
            (lambda d: d.var("x", eps=1, **X), [60, 80, 60], UNIT, 1),
            (lambda d: d.mean("x", eps=1, neighbours="replace-one", **X), [100], UNIT, 1),
        ],
        ids=["count", "whole sum", "nunique", "sum", "mean", "bernstein", "var", "of a public size"],
    )
    def test_by_mechanism(self, ask, numbers, unit, scale, noiseless):
        measured = ask(FRAME.dprisk).measured
        assert [float(number) for number in measured.numbers] == pytest.approx(numbers, abs=1e-5)
        assert all(isinstance(number, Fraction) and (number / unit).denominator == 1 for number in measured.numbers)
        assert (measured.unit, float(measured.scale)) == (unit, pytest.approx(scale, rel=1e-8))

    def test_products_have_four_to_nine(self, noiseless):
        assert len(FRAME.dprisk.cov("x", "y", eps=1, bounds={"x": (0, 5), "y": (0, 5)}).measured.numbers) == 4
        assert len(FRAME.dprisk.corr("x", "y", eps=1, bounds={"x": (0, 5), "y": (0, 5)}).measured.numbers) == 9

    def test_between_clipping_points(self):
        release = FRAME.dprisk.mean("x", eps=20, clip="private", **X)
        assert (len(release.measured.numbers), release.measured.scale) == (2, Fraction(1, 10))
        a, b = release.measured.numbers
        low, high = release.clip
        assert release.value == pytest.approx(float((high * a + low * b) / (a + b)))

    @pytest.mark.parametrize("name", ["median", "min", "max"])
    def test_what_is_chosen_has_none(self, name):
        assert getattr(FRAME.dprisk, name)("x", eps=1, **X).measured is None
        assert FRAME.dprisk.quantile("x", 0.9, eps=1, **X).measured is None
        assert FRAME.dprisk.mean("x", eps=1, mechanism="two_stage", n_at_least=100, **X).measured is None

    def test_it_is_uncut(self, less):
        release = FRAME.dprisk.count(eps=1)
        assert (release.value, release.measured.numbers) == (0, (Fraction(-100),))

    @pytest.mark.parametrize("name", ["count", "sum", "mean"])
    def test_the_value_follows(self, name):
        release = FRAME.dprisk.count(eps=1) if name == "count" else getattr(FRAME.dprisk, name)("x", eps=1, **X)
        numbers = [float(number) for number in release.measured.numbers]
        expected = numbers[0] if len(numbers) == 1 else 5 * numbers[0] / sum(numbers)
        assert release.value == pytest.approx(expected)

    def test_every_form_keeps_it_and_its_identity(self):
        release = FRAME.dprisk.mean("x", eps=1, **X)
        for again in (pickle.loads(pickle.dumps(release)), copy.copy(release), copy.deepcopy(release)):
            assert again.measured == release.measured
            assert (release - again).interval() == (0, 0)
        other = FRAME.dprisk.mean("x", eps=1, **X)
        assert (release - other).low < 0 < (release - other).high or release.value != other.value

    def test_json(self):
        count, mean = FRAME.dprisk.count(eps=0.3), FRAME.dprisk.mean("x", eps=1, **X)
        said = json.loads(json.dumps(count.to_dict()))
        assert said["measured"] == [count.measured.numbers[0].numerator]
        assert (said["measured_unit"], said["measured_scale"]) == (1, "10/3")
        said = json.loads(json.dumps(pdrisk.public(mean)))
        assert tuple(map(Fraction, said["measured"])) == mean.measured.numbers
        assert Fraction(said["measured_unit"]) == UNIT and len(said["draw"]) == 32
        assert said["draw"] != json.loads(json.dumps(count.public()))["draw"]
        assert "measured" not in FRAME.dprisk.median("x", eps=1, **X).to_dict()

    def test_the_identity_never_depends_on_data(self, noiseless, monkeypatch):
        monkeypatch.setattr("pdrisk._answer.releasing.new_draw", lambda: "0f" * 16)
        draws = {frame.dprisk.count(eps=1).to_dict()["draw"] for frame in (FRAME, FRAME.iloc[:3])}
        assert draws == {"0f" * 16}


class TestLedger:
    """A ledger's rules and its memory."""

    @staticmethod
    def data(path, **policy):
        ledger = pdrisk.Ledger(path / "budget.db", dataset="people", eps=50, **({"policy": policy} if policy else {}))
        return pdrisk.Dataset(FRAME, ledger=ledger, name="people", version="1")

    def test_remembered_answers_keep_their_identity(self, tmp_path):
        d = self.data(tmp_path)
        for ask in (lambda: d.count(eps=1), lambda: d.mean("x", eps=1, **X)):
            first, again = ask(), ask()
            assert first is not again and first.measured == again.measured
            assert (first - again).interval() == (0, 0)
        assert (d.count(eps=1) - d.count(eps=1, fresh=True)).high > 0
        tables = [d.count(eps=1, **GROUPS) for _ in range(2)]
        assert len({measurements_of(table)[0].draw for table in tables}) == 1

    def test_answers_from_before_identities(self, tmp_path, monkeypatch):
        """They get one from the ledger and the record, which stays."""
        d = self.data(tmp_path)
        first = d.count(eps=1)
        with closing(sqlite3.connect(tmp_path / "budget.db")) as con, con:
            ((body,),) = con.execute("SELECT body FROM answers").fetchall()
            con.execute("UPDATE answers SET body = ?", (json.dumps(json.loads(body)["values"]),))
        monkeypatch.setattr("pdrisk._ledger.accounts.account.digest", lambda *_: kept)
        with closing(sqlite3.connect(tmp_path / "budget.db")) as con, con:
            ((record,),) = con.execute("SELECT body FROM records WHERE event = 'kept'").fetchall()
        kept = json.loads(record)["answer"]
        again, third = d.count(eps=1), d.count(eps=1)
        assert again.measured == first.measured
        assert len(again.noisy.draw) == 32 != first.noisy.draw
        assert (again - third).interval() == (0, 0)

    def test_rounded_counts_are_let_out_rounded_and_uncut(self, tmp_path, less):
        d = self.data(tmp_path, round_to={"count": 7, "mean": 0.1})
        release = d.count(eps=1)
        assert (release.value, release.measured.numbers) == (0, (Fraction(-98),))  # -100
        assert d.mean("x", eps=1, **X).measured is None
        both = release + d.count(eps=1, fresh=True)
        assert both.value == 0  # of -196
        measured = release.noisy.measurements
        assert measured.law.rounding == 3.5
        assert form_of(measured).reach(0.95)[0] == 3 + 3  # of the noise, and of whole numbers rounded to sevens

    @pytest.mark.parametrize("policy", [{"round_to": {"count": 1000}}, {"refuse_statistics": ["sum"]}])
    def test_means_do_not_tell_what_the_owner_rounds_or_refuses(self, tmp_path, policy):
        """Their counts and sums."""
        ledger = pdrisk.Ledger(tmp_path / "budget.db", dataset="survey", eps=20, policy=policy)
        with ledger:
            mean = FRAME.dprisk.mean("x", eps=5, **X)
            both = FRAME.dprisk.agg({"x": ["count", "mean"]}, eps=5, bounds={"x": (0, 5)}, measured=True)
            with pytest.raises(pdrisk.PolicyError, match="made of counts and sums"):
                FRAME.dprisk.mean("x", eps=5, margins=True, **X, **GROUPS)
        assert mean.measured is None
        assert measurements_of(both) == [None, None]  # of one release
        assert mean.interval()[0] <= mean.value <= mean.interval()[1]

    def test_what_is_withheld_has_none(self, tmp_path):
        d = self.data(tmp_path, least_group={"size": 1000, "eps": 1})
        assert d.count(eps=1).measured is None
        table = d.count(eps=1, measured=True, **GROUPS)
        assert table["measured"].isna().all()
        assert np.isnan(measurements_of(table)[0].numbers).all()


class TestTables:
    """Tables carry measurements in their attrs, and as columns if asked."""

    def test_attrs(self):
        table = FRAME.dprisk.count(eps=1, **GROUPS)
        (measured,) = measurements_of(table)
        assert measured.numbers.shape == (1, 4)
        assert np.maximum(measured.numbers[0], 0).tolist() == table["value"].tolist()
        assert (measured.law.unit, measured.law.scale) == (1, 1)
        assert list(table.columns) == ["value", "low", "high", "eps", "worst_case"]

    def test_every_form_keeps_them(self, tmp_path):
        table = FRAME.dprisk.mean("x", eps=1, **GROUPS, **X)
        table.to_parquet(tmp_path / "table.parquet")
        kept = [pickle.loads(pickle.dumps(table)), table.copy(), pd.read_parquet(tmp_path / "table.parquet")]
        (measured,) = measurements_of(table)
        for again in (*kept, pdrisk.public(table)):
            (found,) = measurements_of(again)
            assert found.draw == measured.draw and (found.numbers == measured.numbers).all()

    def test_each_line_has_its_own_law_of_one_draw(self):
        table = FRAME.dprisk.agg({"x": ["count", "mean", "var", "median"]}, eps=2, **GROUPS, **X)
        count, mean, var, median = measurements_of(table)
        assert median is None
        assert count.draw == mean.draw == var.draw and (count.numbers == var.numbers).all()
        assert (count.law.top, mean.law.bottom, var.law.top) == ((1, 1, 1), (1, 1, 1), ())
        assert len(json.loads(table.attrs["dprisk"])["answer"]["measured"]["draws"]) == 1

    def test_sorted_and_wide_tables(self):
        table = FRAME.dprisk.value_counts("g", eps=1, keys=[2, 0, 1])
        (measured,) = measurements_of(table)
        assert measured.numbers[0].tolist() == table["value"].tolist() and sorted(measured.cells) == [0, 1, 2]
        assert measured.cells.tolist() != [0, 1, 2]
        wide = FRAME.dprisk.crosstab("g", "x", eps=1, keys={"g": [0, 1, 2], "x": [1.0, 2.0, 3.0, 4.0]})
        (measured,) = measurements_of(wide)
        assert np.maximum(measured.numbers[0].reshape(wide.shape), 0).tolist() == wide.to_numpy().tolist()

    @pytest.mark.parametrize("edit", [lambda t: t.iloc[1:], lambda t: t.iloc[::-1], lambda t: t.rename({0: 9})])
    def test_edited_rows_are_refused(self, edit):
        table = edit(FRAME.dprisk.count(eps=1, **GROUPS))
        with pytest.raises(pdrisk.ParameterError, match=r"rows of this table were edited.*measured=True"):
            measurements_of(table)

    def test_with_columns_rows_may_be_edited(self):
        table = FRAME.dprisk.agg({"x": ["count", "sum"]}, eps=2, measured=True, **GROUPS, **X)
        some = table[table.index.get_level_values("g") != 1].iloc[::-1]
        count, sums = measurements_of(some)
        assert count.cells.tolist() == sums.cells.tolist() == [3, 2, 0]
        assert count.numbers[0].tolist() == some["measured_0"].tolist()[3:]

    def test_columns(self, less):
        table = FRAME.dprisk.count(eps=1, measured=True, **GROUPS)
        assert table["measured"].tolist() == [-250, -200, -250, -300] and (table["value"] == 0).all()
        assert table["measured"].dtype == np.int64
        assert set(pdrisk.public(table)) == set(table)
        mean = FRAME.dprisk.mean("x", eps=1, measured=True, **GROUPS, **X)
        assert {"measured_0", "measured_1", "draw"} <= set(mean)

    def test_tables_that_add_up_show_their_estimates(self):
        """Least squares of all draws, which add up, before they are made whole and not negative."""
        keys = {"g": [0, 1, 2, 7], "x": [1.0, 2.0, 3.0, 4.0]}
        table = FRAME.dprisk.count(eps=0.5, by=["g", "x"], keys=keys, margins=True, measured=True)["measured"]
        by_g, total = table.xs(pdrisk.ALL, level="x"), table.loc[(pdrisk.ALL, pdrisk.ALL)]
        cells = table.iloc[:16]
        assert cells.groupby(level="g", sort=False).sum().to_numpy() == pytest.approx(by_g.to_numpy()[:4])
        assert cells.sum() == pytest.approx(total) and (table < 0).any()

    def test_an_identity_that_was_edited_is_refused(self):
        table = FRAME.dprisk.count(eps=1, measured=True, **GROUPS)
        for wrong in ("somebody", table["draw"].iloc[0].replace(":0:0", ":0:99"), "0f" * 16 + ":0:0"):
            edited = table.iloc[::-1].assign(draw=[wrong, *table["draw"].iloc[1:]])
            with pytest.raises(pdrisk.ParameterError, match="column 'draw' of this table was edited"):
                measurements_of(edited)

    def test_a_flag(self):
        with pytest.raises(pdrisk.ColumnTypeError, match="measured"):
            FRAME.dprisk.count(eps=1, measured="yes")


class TestSQL:
    """``<name>_measured`` beside each noisy value."""

    def test_columns(self, less):
        query = "SELECT g, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS q FROM frame GROUP BY g"
        found = pdrisk.sql(query, eps=3, keys=[0, 1, 7], bounds={"x": (0, 5)}, frame=FRAME, measured=True)
        assert found["n_measured"].tolist() == [-250, -200, -300]
        assert {"n_draw", "m_measured_0", "m_measured_1", "m_draw"} <= set(found)
        assert not any(name.startswith("q_") for name in found)
        assert set(pdrisk.public(found)) == set(found)

    def test_not_of_rows_that_combine_several(self):
        query = "SELECT SUM(n) FROM (SELECT g, COUNT(*) AS n FROM frame GROUP BY g)"
        with pytest.raises(pdrisk.ParameterError, match="measured"):
            pdrisk.sql(query, eps=1, keys=[0, 1], frame=FRAME, measured=True)


class TestLaw:
    """The law as JSON values, and the variance of its noise."""

    @pytest.mark.parametrize(
        "law",
        [
            Law(1, Fraction(1), Fraction(10, 3), (1.0,), whole=True),
            Law(2, UNIT, Fraction(2), (5.0, 1.0), (1.0, 1.0), rounding=1e-8),
            Law(1, UNIT, Fraction(1), (0.1,), (), 2.0, -np.inf, 30.0),
            Law(9, UNIT, Fraction(1)),
        ],
    )
    def test_it_comes_back(self, law):
        assert Law.of_said(json.loads(json.dumps(law.said, allow_nan=False))) == law

    @pytest.mark.parametrize("scale", [0.2, 1, 7])
    def test_variance(self, scale):
        k = np.arange(-2000, 2001)
        mass = np.exp(-np.abs(k) / scale)
        law = Law(1, Fraction(1), Fraction(scale), (1.0,))
        expected = (mass * k**2).sum() / mass.sum()
        assert Measurements.of(law, np.array([[1]]), "0" * 32).variance == pytest.approx(expected)


def test_a_printed_table_stays_short():
    """The measurements are in attrs, which nobody prints."""
    table = FRAME.dprisk.count(eps=1, **GROUPS)
    text = io.StringIO()
    table.to_csv(text)
    assert "draw" not in text.getvalue() and "draw" not in repr(table)
    assert Answer.from_attrs(table.attrs).measured["digest"]
