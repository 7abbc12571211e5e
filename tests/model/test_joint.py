"""Several statistics of one column are answered by one draw: which ones, what it gives, and that it is paid once."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pdrisk
from ledgers import events, people
from noisy_answers import seeded
from pdrisk._core.lattice import PLACES
from pdrisk._core.order import Max
from pdrisk._core.spread import Std, Var
from pdrisk._core.statistics import Count, Distinct, Mean, Proportion, Sum, WholeSum
from pdrisk._core.summary import Summary
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk._mechanisms.bernstein import _critical
from pdrisk._model.answering import answered_by, joined
from pdrisk._model.query import UNIT, Line

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = Universe(-3.0, 17.0)
FRAME = people()


def line(statistic, column="x", within=BOUNDS, mechanism="auto", whole=False, **other):
    if not statistic.bounded:
        within = UNIT
    return answered_by(Line(column, statistic, within, "given", **other), mechanism, whole=whole, joint=True)


class TestWhichShare:
    """Count, sum, mean, var and std of the same records, within the same bounds; nothing else."""

    WAYS = (
        ([Count(), Mean()], ["two_sums"] * 2, (0, 0)),
        ([Sum(), Count()], ["two_sums"] * 2, (0, 0)),
        ([Mean(), Var(), Var(0), Std(), Sum(), Count()], ["bernstein"] * 6, (0,) * 6),
        ([Var(), Std()], ["bernstein"] * 2, (0, 0)),
        ([Mean(), Distinct(), Sum()], ["two_sums", "geometric", "two_sums"], (0, 1, 0)),
        ([Max(), Mean(), Proportion(), Count()], ["exponential", "two_sums", "two_sums", "two_sums"], (0, 1, 2, 1)),
        ([Mean()], ["two_sums"], (0,)),
        ([Count(), Distinct()], ["geometric"] * 2, (0, 1)),
    )

    @pytest.mark.parametrize(("statistics", "mechanisms", "releases"), WAYS)
    def test_of_one_column(self, statistics, mechanisms, releases):
        lines, found = joined([line(each) for each in statistics])
        assert ([each.mechanism for each in lines], found) == (mechanisms, releases)
        assert [each.statistic for each in lines] == statistics

    def test_not_of_other_records_or_bounds(self):
        wide = Universe(-3.0, 18.0)
        own = [line(Mean()), line(Mean(), "y"), line(Mean(), within=wide), line(Mean(), condition="x > 3")]
        sums = [replace(each, statistic=Sum()) for each in own]
        assert joined([*own, *sums])[1] == (0, 1, 2, 3, 0, 1, 2, 3)
        assert joined([line(Count(), None), line(Mean()), line(Count())])[1] == (0, 1, 1)
        assert joined([line(Mean()), line(Sum()), line(Std())], alone=[0])[1] == (0, 1, 1)
        assert joined([line(Mean(), None, indicator=object()), line(Count())])[1] == (0, 1)

    @pytest.mark.parametrize("name", ["laplace", "two_sums", "bernstein"])
    def test_by_the_mechanism_that_was_named(self, name):
        lines, releases = joined([line(each, mechanism=name) for each in (Count(), Mean(), Sum())], name)
        assert {each.mechanism for each in lines} == {name}
        assert releases == ((0, 1, 2) if name == "laplace" else (0, 0, 0))

    def test_a_count_of_noisy_sums_needs_another_statistic(self):
        for name in ("two_sums", "bernstein"):
            with pytest.raises(pdrisk.ParameterError, match=r"answers count\(x\) only beside a sum, mean, var or std"):
                joined([line(Count(), mechanism=name)], name)
            for column in (None, "age"):
                with pytest.raises(pdrisk.ParameterError, match="cannot answer count; available for it: auto, laplace"):
                    FRAME.dprisk.count(column, eps=1, mechanism=name)

    def test_bounds_of_whole_numbers_may_lie_between_them(self):
        """The sum stays whole and alone: values beyond its bounds count as whole numbers, unlike in a mean."""
        within = Universe(0.5, 9.5)
        lines, releases = joined([line(each, within=within, whole=True) for each in (Sum(), Mean(), Count())])
        assert releases == (0, 1, 0) and isinstance(lines[0].statistic, WholeSum)
        assert [each.universe for each in lines] == [Universe(1.0, 9.0), within, UNIT]
        lines, releases = joined([line(each, within=within, whole=True) for each in (Count(), Sum())])
        assert (releases, lines[1].universe) == ((0, 0), Universe(1.0, 9.0))


def of_groups(n, mean, square, groups=1):
    """Groups of n records with this mean and mean square, between 0 and 1."""
    places = round(n * mean * PLACES)
    squares = min(round(n * square * PLACES), places)
    return Summary(
        *(np.full(groups, each) for each in (n,)),
        places=np.full(groups, places),
        place_squares=np.full(groups, squares),
    )


EVERY = list(itertools.product(("two_sums", "bernstein"), (Count(), Sum(), WholeSum(), Mean())))


class TestAnswers:
    """Totals and means of noisy sums, from the definitions."""

    @pytest.mark.parametrize(("name", "statistic"), EVERY, ids=str)
    def test_without_noise_they_are_exact(self, name, statistic):
        mechanism = calibrated(name, statistic, BOUNDS, Fraction(1))
        for n, mean, square in ((0, 0.0, 0.0), (1, 0.5, 0.25), (7, 1.0, 1.0), (10**6, 0.3, 0.2)):
            drawn = mechanism.draw(of_groups(n, mean, square), lambda exact, *_: exact)
            exact = {"count": n, "sum": n * (-3 + 20 * mean), "mean": -3 + 20 * mean if n else 7}[statistic.name]
            (value,) = mechanism.value(drawn)
            assert value == pytest.approx(exact, rel=1e-8, abs=1e-7)
            assert value.dtype.kind == ("i" if isinstance(statistic, Count | WholeSum) else "f")

    @pytest.mark.parametrize(("name", "statistic"), EVERY, ids=str)
    def test_each_noisy_part_counts_what_its_records_do(self, name, statistic):
        """a + b of two sums, hi a + lo b; B0 + B1 + B2 of three, lo B0 + mid B1 + hi B2."""
        parts = [7.25, -2.5] if name == "two_sums" else [-2.5, 4.5, 7.25]
        low_first = parts[::-1] if name == "two_sums" else parts
        points = np.linspace(BOUNDS.lo, BOUNDS.hi, len(parts))
        n, total = sum(parts), float(points @ low_first)
        expected = {"count": max(round(n), 0), "sum": total, "mean": min(max(total / n, BOUNDS.lo), BOUNDS.hi)}[
            statistic.name
        ]
        mechanism = calibrated(name, statistic, BOUNDS, Fraction(1))
        (found,) = mechanism.value((np.array(parts) * PLACES).astype(np.int64)[:, np.newaxis])
        assert found == (round(expected) if isinstance(statistic, WholeSum) else pytest.approx(expected, rel=1e-12))
        low, high = mechanism.interval((np.array(parts) * PLACES).astype(np.int64)[:, np.newaxis], 0.5)
        assert low[0] <= found <= high[0]

    def test_they_stay_in_their_range(self):
        for name, parts in (("two_sums", 2), ("bernstein", 3)):
            drawn = np.array([[-(2**62), 2**62, -(2**62)]] * parts)[:, :3]
            for statistic, low in ((Count(), 0), (Sum(), 0), (WholeSum(), 0), (Mean(), 2)):
                mechanism = calibrated(name, statistic, Universe(2.0, 2.0**31), Fraction(1))
                values, ends = mechanism.value(drawn), mechanism.interval(drawn, 0.95)
                assert values.min() >= low and ends[0].min() >= low and np.isfinite(ends).all()
                assert (ends[0] <= values).all() and (values <= ends[1]).all()

    @pytest.mark.parametrize(("name", "statistic"), EVERY, ids=str)
    def test_the_interval_holds_the_exact_answer(self, name, statistic):
        """In 95 % of cases; of whole numbers and of few records in more. The seed is fixed."""
        mechanism = calibrated(name, statistic, BOUNDS, Fraction(1, 2))
        for at, (n, mean, square) in enumerate(((3, 0.05, 0.03), (40, 0.5, 0.26), (1000, 0.9, 0.85))):
            drawn = mechanism.draw(of_groups(n, mean, square, 40_000), seeded(at))
            low, high = mechanism.interval(drawn, 0.95)
            exact = {"count": n, "sum": n * (-3 + 20 * mean), "mean": -3 + 20 * mean}[statistic.name]
            held = float(((low <= exact + 1e-6) & (exact - 1e-6 <= high)).mean())
            assert 0.943 < held < (0.985 if statistic.name == "mean" else 0.965)
        if statistic.name != "mean":  # the last has no group near the end of the range
            assert mechanism.widest_noise95(None) == pytest.approx(np.median(high - low) / 2, rel=1e-4)

    def test_the_critical_value_of_a_mean_is_convex_and_symmetric(self):
        for level in (0.5, 0.95, 0.999):
            found = _critical(level)
            assert np.diff(found, 2).min() > -1e-9 and np.array_equal(found, found[::-1])


ASKED = {"age": ["count", "mean", "std", "max"], "hours": ["sum", "count"]}


class TestOneRelease:
    """Everything counts a release once."""

    def table(self, **options):
        return FRAME.dprisk.agg(ASKED, eps=3, bounds={"age": (18, 90), "hours": (0, 10)}, **options)

    def test_in_tables(self):
        table = self.table(curator=True)
        assert table["release"].tolist() == [1, 1, 1, 2, 3, 3] and (table["eps"] == 1).all()
        assert pdrisk.public(table).attrs and table["worst_case"].nunique() == 1
        assert table["two_worlds"].iloc[[0, 1, 2, 4, 5]].nunique() == 1
        assert table["local_sensitivity"].iloc[:3].tolist() == pytest.approx(
            [
                FRAME.dprisk.assess("age", name, 1, bounds=(18, 90))["local_sensitivity"].item()
                for name in ("count", "mean", "std")
            ]
        )
        grouped = FRAME.dprisk.agg(ASKED, eps=3, bounds=(0, 90), by="region", keys=["north", "nowhere"])
        assert grouped["release"].tolist() == [1] * 6 + [2] * 2 + [3] * 4

    def test_series_and_single_lines(self):
        said = pdrisk.explain(FRAME["age"].dprisk.describe(eps=2, bounds=(18, 90)), "publication")
        assert "count(age), mean(age), std(age) come from one release" in " ".join(said.split())
        assert "one release and" not in pdrisk.explain(FRAME.dprisk.mean("age", eps=1, bounds=(18, 90)), "publication")

    def test_a_ledger_is_paid_once_and_remembers(self, book):
        policy = {"curators": ["ann"], "curator_facts": True, "least_group": {"size": 5, "eps": 0.25}}
        ledger = book(eps=100, policy=policy)
        data = pdrisk.Dataset(FRAME, ledger=ledger, person="pid", per_person="one")
        ask = lambda **options: data.agg(ASKED, eps=3, bounds=(0, 90), **options)  # noqa: E731
        first = ask()
        assert ledger.remaining().spent == 3.5
        pd.testing.assert_frame_equal(ask(), first)
        assert events(ledger, "paid", "remembered") == ["paid", "remembered"]
        assert ask(fresh=True)["value"].tolist() != first["value"].tolist() and ledger.remaining().spent == 7
        # The maximum's loss depends on the person; both joint releases tell eps, and looking twice .25.
        alone = pdrisk.Dataset(FRAME).individual_risk("age", "max", eps=1, bounds=(0, 90))
        odometer = ledger.odometer(FRAME)["loss"].to_numpy() / 2
        assert (odometer >= 2.5 - 1e-9).all() and (odometer <= 3.5 + 1e-9).all()
        np.testing.assert_allclose(pdrisk.risk.posterior(odometer - 2.5), alone, atol=1e-9)
        facts = ledger.facts()
        assert facts["loss"].max() <= 3.5 and facts["local_sensitivity"].map(len).tolist() == [6, 6]
        ledger.verify()

    def test_whole_sums_stay_whole_in_every_front_end(self):
        pa = pytest.importorskip("pandera.pandas")
        schema = pa.DataFrameSchema({"k": pa.Column(int, pa.Check.in_range(0, 9))})
        frame = pd.DataFrame({"k": [1, 2, 9] * 40}).dprisk.declare(schema)
        table = frame.dprisk.agg({"k": ["sum", "count"]}, eps=50)
        answer = pdrisk.sql("SELECT SUM(k) AS s, COUNT(k) AS n FROM t", eps=50, t=frame)
        assert [each.dtype.kind for each in (table["value"], answer["s"], answer["n"])] == ["i"] * 3
        for total, n in (table["value"], answer.iloc[0]):
            assert abs(n - 120) <= 3 and abs(total - 480) <= 30  # exp(-50) apart

    def test_wide_noise_can_be_refused_before(self):
        asked = {"eps": 1, "bounds": (0, 10), "max_noise95": 30}
        with pytest.raises(pdrisk.ParameterError, match=r"95 % noise of sum\(age\) may reach ±29.95"):
            FRAME.dprisk.agg({"age": ["sum", "count"]}, **asked | {"max_noise95": 29.9})
        FRAME.dprisk.agg({"age": ["sum", "count"]}, **asked)
