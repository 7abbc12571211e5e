"""Weighted statistics of surveys: the formulas, what a person can lose, intervals, every engine, SQL, wrong input."""

import itertools
import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pandera.pandas as pandera
import polars as pl
import pyarrow as pa
import pytest

import pdrisk
from pdrisk import Design
from pdrisk._core.lattice import PLACES
from pdrisk._core.products import products_of_places
from pdrisk._core.summary import Summary
from pdrisk._core.surveys.weighted import (
    WeightedCount,
    WeightedMean,
    WeightedMedian,
    WeightedQuantile,
    WeightedStd,
    WeightedSum,
    WeightedVar,
)
from pdrisk._core.universe import Rectangle, Universe
from pdrisk._mechanisms import MECHANISMS, mechanism_for
from pdrisk._mechanisms.weighted_exponential import WeightedExponential, WeightedExponentialInterval
from pdrisk._mechanisms.weighted_sums import WeightedBernstein, WeightedTwoSums
from pdrisk.attack._likelihood import log_shares as log_shares_of
from pdrisk.engines.numpy.pairs import summary_of_pairs
from pdrisk.errors import ColumnTypeError, NoisyReleaseWarning, ParameterError, UnknownColumnError
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"y": (10.0, 90.0), "w": (0.0, 8.0)}
KEYS = {"g": ["a", "b", "nobody"]}
STATISTICS = (WeightedMean(), WeightedSum(), WeightedCount(), WeightedVar(), WeightedStd())


def made(n=600, seed=3):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "y": random.gamma(2, 20, n).round(3),
            "w": random.lognormal(0, 0.9, n).round(4),
            "g": pd.Series(random.choice(["a", "b", "c"], n), dtype="string"),
            "b": random.random(n) < 0.3,
        }
    )
    frame.loc[random.random(n) < 0.1, "y"] = np.nan
    frame.loc[random.random(n) < 0.05, "w"] = np.nan
    return frame


FRAME = made()
ROWS = FRAME.astype(object).where(FRAME.notna(), None).to_numpy().tolist()


def exactly(frame, column="y"):
    """What weighted statistics are, by the formulas of any textbook, of trimmed weights and clamped values."""
    known = frame[frame[column].notna() & frame["w"].notna()]
    values = known[column].astype(float).clip(*BOUNDS.get(column, (0, 1)))
    weights = known["w"].clip(*BOUNDS["w"])
    total = weights.sum()
    mean = np.average(values, weights=weights) if total > 0 else sum(BOUNDS["y"]) / 2
    var = np.average((values - mean) ** 2, weights=weights) if total > 0 else 0.0
    return {"mean": mean, "sum": (weights * values).sum(), "count": total, "var": var, "std": math.sqrt(var)}


def quantile(frame, q):
    """Smallest value up to which records have a share q of the weight."""
    known = frame[frame["y"].notna() & frame["w"].notna()].sort_values("y")
    before = known["w"].clip(0, 8).cumsum()
    return float(known["y"].clip(*BOUNDS["y"]).iloc[np.searchsorted(before, q * before.iloc[-1])])


def asked(d, **more):
    """All weighted statistics of a Dataset or an accessor."""
    options = {"eps": 1, "bounds": BOUNDS, "weights": "w", **more}
    return {
        "mean": d.mean("y", **options),
        "sum": d.sum("y", **options),
        "count": d.count("y", **options),
        "var": d.var("y", ddof=0, **options),
        "std": d.std("y", **options),
    }


class TestWithoutNoise:
    """The exact answers are those of survey statistics."""

    def test_all(self, noiseless):
        found, wanted = asked(FRAME.dprisk), exactly(FRAME)
        for name, release in found.items():
            assert release.value == pytest.approx(wanted[name], rel=1e-7), name

    def test_by_groups(self, noiseless):
        found = asked(FRAME.dprisk, by="g", keys=KEYS["g"])
        for key in KEYS["g"]:
            wanted = exactly(FRAME[FRAME["g"] == key])
            for name, table in found.items():
                assert table.loc[key, "value"] == pytest.approx(wanted[name], rel=1e-7), (name, key)

    def test_shares_and_conditions(self, noiseless):
        options = {"eps": 1, "bounds": BOUNDS, "weights": "w"}
        assert FRAME.dprisk.proportion("b", **options).value == pytest.approx(exactly(FRAME, "b")["mean"])
        known = FRAME[FRAME["y"].notna()]
        wanted = exactly(known.assign(b=known["y"] > 40), "b")["mean"]
        assert FRAME.dprisk.proportion("y > 40", **options).value == pytest.approx(wanted)

    def test_all_rows_are_counted_by_their_weights(self, noiseless):
        options = {"eps": 1, "bounds": BOUNDS, "weights": "w"}
        weights = FRAME["w"].clip(0, 8)
        assert FRAME.dprisk.count(**options).value == pytest.approx(weights.sum())
        table = FRAME.dprisk.value_counts("g", sort=False, keys=KEYS["g"], **options)
        assert table["value"].tolist() == pytest.approx([weights[FRAME["g"] == key].sum() for key in KEYS["g"]])
        shares = FRAME.dprisk.count(by="g", keys=["a", "b", "c"], normalize="all", **options)
        assert shares["value"].sum() == pytest.approx(1)

    def test_several_of_one_column_are_one_release(self, noiseless):
        table = FRAME.dprisk.agg({"y": ["count", "mean", "sum", "std(ddof=0)"]}, eps=1, bounds=BOUNDS, weights="w")
        assert table["release"].tolist() == [1, 1, 1, 1]
        wanted = exactly(FRAME)
        assert table["value"].tolist() == pytest.approx([wanted[name] for name in ("count", "mean", "sum", "std")])

    def test_margins_add_up(self):
        table = FRAME.dprisk.sum("y", by="g", keys=["a", "b", "c"], margins=True, eps=1, bounds=BOUNDS, weights="w")
        assert table["value"].iloc[:-1].sum() == pytest.approx(table.loc[pdrisk.ALL, "value"])
        table = FRAME.dprisk.mean("y", by="g", keys=["a", "b", "c"], margins=True, eps=9, bounds=BOUNDS, weights="w")
        assert table["value"].iloc[:-1].min() <= table.loc[pdrisk.ALL, "value"] <= table["value"].iloc[:-1].max()

    @pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
    def test_quantiles(self, q):
        """By the exact value in the curator's table, and by answers at an eps that leaves no noise."""
        frame = made(5000)
        options = {"bounds": BOUNDS, "weights": "w"}
        d = frame.dprisk
        ask = d.median("y", eps=500, **options) if q == 0.5 else d.quantile("y", q, eps=500, **options)
        assert ask.value == pytest.approx(quantile(frame, q), abs=0.3)
        assert ask.rank95 < 1

    def test_quantiles_by_groups(self):
        frame = made(5000)
        found = frame.dprisk.quantile("y", [0.25, 0.75], by="g", keys=["a", "b"], eps=900, bounds=BOUNDS, weights="w")
        for key, q in itertools.product("ab", (0.25, 0.75)):
            assert found.loc[(key, q), "value"] == pytest.approx(quantile(frame[frame["g"] == key], q), abs=0.5)

    def test_nobody(self):
        nobody = FRAME.iloc[:0]
        assert nobody.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w").curator.n == 0

    def test_equal_weights_are_none(self, noiseless):
        frame = FRAME.assign(w=8.0)
        weighted = frame.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w")
        plain = frame.dprisk.mean("y", eps=1, bounds=BOUNDS["y"])
        assert weighted.value == pytest.approx(plain.value)
        assert weighted.noise95 == pytest.approx(plain.noise95, rel=1e-3)


def summary_of(records, universe, degrees):
    """Sums of records, each a value and a weight, by the definition of places."""
    places = [
        [math.floor((value - own.lo) / own.width * PLACES + 0.5) for value in side]
        for side, own in zip(
            zip(*records, strict=True) if records else ((), ()), (universe, universe.other), strict=True
        )
    ]
    k, weights = (np.array(each, dtype=np.int64) for each in places)
    sums = products_of_places(k, weights, degrees).sum(axis=1)[:, np.newaxis]
    ends = [np.array([[f(side)] * 1] * 2) for side in zip(*records, strict=True) for f in (min, max)] if records else []
    n = np.array([len(records)])
    if not records:
        return Summary(n, products={degrees: sums})
    return Summary(
        n, lowest=ends[0], highest=ends[1], products={degrees: sums}, other=Summary(n, lowest=ends[2], highest=ends[3])
    )


PLACED = np.array([30_000, 71_000])  # indices of the values of records between 0 and 1


class TestLoss:
    """A person loses eps times her weight over the largest, whoever else is there."""

    UNIVERSE = Rectangle(10.0, 90.0, Universe(0.0, 8.0))
    RECORDS = tuple(itertools.product((10.0, 10.1, 33.3, 50.0, 90.0), (0.0, 1e-9, 0.7, 4.0, 8.0)))

    @pytest.mark.parametrize("mechanism", [WeightedTwoSums, WeightedBernstein])
    def test_sums_move_by_the_weight(self, mechanism):
        statistic = WeightedMean() if mechanism is WeightedTwoSums else WeightedVar()
        own = mechanism(statistic, self.UNIVERSE, Fraction(1))
        for others in itertools.chain([()], itertools.combinations(self.RECORDS, 1), [self.RECORDS[::3]]):
            before = own.draw(summary_of(list(others), self.UNIVERSE, statistic.degrees), lambda sums, *_: sums)
            for value, weight in self.RECORDS:
                records = [*others, (value, weight)]
                after = own.draw(summary_of(records, self.UNIVERSE, statistic.degrees), lambda sums, *_: sums)
                moved = int(np.abs(after - before).sum())
                assert moved == math.floor(weight / 8 * PLACES + 0.5) <= PLACES
                claimed = own.loss_of_records(np.array([weight]), Summary(np.array([1])))
                assert claimed[0] == pytest.approx(moved / PLACES)

    @pytest.mark.parametrize("mechanism", [WeightedTwoSums, WeightedBernstein])
    def test_between_worlds(self, mechanism):
        """Worlds that lack one record or another are no farther apart than is said."""
        statistic = WeightedMean() if mechanism is WeightedTwoSums else WeightedVar()
        own = mechanism(statistic, self.UNIVERSE, Fraction(1))
        random = np.random.default_rng(0)
        for _ in range(60):
            records = [self.RECORDS[at] for at in random.integers(0, len(self.RECORDS), random.integers(2, 6))]
            said = own.loss_between_worlds(summary_of(records, self.UNIVERSE, statistic.degrees))[0]
            worlds = [
                own.draw(
                    summary_of(records[:at] + records[at + 1 :], self.UNIVERSE, statistic.degrees),
                    lambda sums, *_: sums,
                )
                for at in range(len(records))
            ]
            farthest = max(np.abs(one - other).sum() for one, other in itertools.combinations(worlds, 2)) / PLACES
            assert farthest <= said + 1e-12

    def test_individual_risk(self):
        found = FRAME.dprisk.individual_risk("y", "mean", eps=1.5, bounds=BOUNDS, weights="w")
        loss = 1.5 * FRAME["w"].clip(0, 8) / 8
        wanted = (1 / (1 + np.exp(-loss))).where(FRAME["y"].notna())
        pd.testing.assert_series_equal(found, wanted, check_names=False, rtol=1e-8)

    def test_a_choice_by_weights(self):
        """Exactly, over small universes: probabilities of all points change by a factor of exp(eps w / W) at most."""
        universe, eps = Rectangle(0.0, 1.0, Universe(0.0, 8.0)), 1.3
        own = WeightedExponential(WeightedMedian(), universe, Fraction(13, 10))
        records = list(itertools.product((0.0, 0.3, 0.71, 1.0), (0.01, 0.7, 4.0, 8.0)))
        random = np.random.default_rng(0)

        def log_shares(listed):
            frame = pd.DataFrame(listed, columns=["x", "y"], dtype=float)
            read = summary_of_pairs(frame["x"].to_numpy(), frame["y"].to_numpy(), universe, own.draws)
            cells = own.plain._cells(read)
            points = np.unique(np.concatenate([[0, own.plain.points.size - 1], PLACED, PLACED + 1]))
            return log_shares_of(own.plain._choice, cells, points)[0]

        for _ in range(60):
            others = [records[at] for at in random.integers(0, len(records), random.integers(0, 6))]
            before = log_shares(others)
            for value, weight in records:
                moved = np.abs(log_shares([*others, (value, weight)]) - before).max()
                claimed = own.loss_of_records(np.array([weight]), Summary(np.array([1])))[0]
                assert moved <= claimed + 1e-6
                assert claimed <= eps * weight / 8 + eps / 512

    @pytest.mark.parametrize("statistic", STATISTICS)
    def test_sensitivity_is_never_understated(self, statistic):
        """Over small universes: global, and where it is known the local one, by trying all neighbours."""
        random, name = np.random.default_rng(1), mechanism_for(statistic, "auto").name
        degrees = statistic.degrees
        for _ in range(150):
            records = [self.RECORDS[at] for at in random.integers(0, len(self.RECORDS), random.integers(0, 5))]
            summary = summary_of(records, self.UNIVERSE, degrees)
            if not records:
                continue
            value = statistic.value(summary, self.UNIVERSE)[0]
            neighbours = [[*records, each] for each in self.RECORDS]
            neighbours += [records[:at] + records[at + 1 :] for at in range(len(records)) if len(records) > 1]
            moved = [
                abs(statistic.value(summary_of(each, self.UNIVERSE, degrees), self.UNIVERSE)[0] - value)
                for each in neighbours
            ]
            assert max(moved) <= statistic.global_sensitivity(self.UNIVERSE) * (1 + 1e-6), name
            local = statistic.local_sensitivity(summary, self.UNIVERSE)[0]
            assert math.isnan(local) or max(moved) <= local * (1 + 1e-6) + 1e-6


def draws(statistic, n, lift, times, eps=Fraction(1)):
    """Answers of noise alone about one set of data, with their intervals and the exact answer."""
    random = np.random.default_rng(n)
    frame = pd.DataFrame({"y": random.gamma(2, 20, n).clip(10, 90), "w": np.minimum(random.lognormal(lift, 0.7, n), 8)})
    universe = TestLoss.UNIVERSE
    records = list(zip(frame["y"], frame["w"], strict=True))
    summary = summary_of(records, universe, statistic.degrees)
    own = MECHANISMS[mechanism_for(statistic, "auto").name](statistic, universe, eps)
    drawn = own.draw(summary.of_rows(np.zeros(times, dtype=np.int64)))
    exact = exactly(frame)[statistic.name.removeprefix("weighted ")]
    return own.value(drawn), *own.interval(drawn, 0.95), exact, frame


class TestNoise:
    """Errors and intervals."""

    @pytest.mark.parametrize("statistic", STATISTICS)
    @pytest.mark.parametrize(("n", "lift"), [(200, 0.0), (5000, 0.0), (5000, -1.5)])
    def test_intervals_cover(self, statistic, n, lift):
        value, low, high, exact, _ = draws(statistic, n, lift, 2000)
        covered = ((low <= exact) & (exact <= high)).mean()
        assert covered > 0.935
        assert (low <= value).all() and (value <= high).all()

    def test_error_of_a_mean(self):
        """R W / (N eps) (1 - m (1 - m)), m the place of the mean between the bounds: SURVEYS of the design."""
        value, *_, exact, frame = draws(WeightedMean(), 5000, 0.0, 4000)
        m, total = (exact - 10) / 80, frame["w"].sum()
        assert np.abs(value - exact).mean() == pytest.approx(80 * 8 / total * (1 - m * (1 - m)), rel=0.05)

    @pytest.mark.parametrize(("n", "lift"), [(500, 0.0), (500, -1.0), (20_000, 0.0), (20_000, -1.0)])
    @pytest.mark.parametrize("eps", [Fraction(1, 2), Fraction(2)])
    def test_better_than_a_quotient_of_two_sums(self, n, lift, eps):
        """At most .6 of the error of two releases with half of eps each, of w y and of w."""
        value, *_, exact, frame = draws(WeightedMean(), n, lift, 3000, eps)
        random, half = np.random.default_rng(0), float(eps) / 2
        above = (frame["y"] * frame["w"]).sum() + random.laplace(0, 90 * 8 / half, 3000)
        below = frame["w"].sum() + random.laplace(0, 8 / half, 3000)
        recipe = np.clip(above / np.maximum(below, 1e-9), 10, 90)
        assert np.abs(value - exact).mean() <= 0.6 * np.abs(recipe - exact).mean()


class TestIntervalOfQuantiles:
    """With interval=True a weighted quantile and its ends are one choice, which loses no more and covers."""

    UNIVERSE = Rectangle(0.0, 1.0, Universe(0.0, 8.0))

    def test_loss(self):
        """Exactly, over small universes: of answer and ends together at most eps times the weight over the largest."""
        own = WeightedExponentialInterval(WeightedMedian(), self.UNIVERSE, Fraction(13, 10))
        records = list(itertools.product((0.0, 0.3, 0.71, 1.0), (0.01, 0.7, 4.0, 8.0)))
        random = np.random.default_rng(0)

        def cells(listed):
            frame = pd.DataFrame(listed, columns=["x", "y"], dtype=float)
            return own.plain._cells(
                summary_of_pairs(frame["x"].to_numpy(), frame["y"].to_numpy(), self.UNIVERSE, own.draws)
            )

        highest = 0.0
        for _ in range(15):
            others = [records[at] for at in random.integers(0, len(records), random.integers(0, 6))]
            before = cells(others)
            for value, weight in records[::3]:
                lost = own.plain.joint.loss(before, cells([*others, (value, weight)]))
                claimed = own.loss_of_records(np.array([weight]), Summary(np.array([1])))[0]
                assert lost <= claimed + 1e-9
                highest = max(highest, lost / max(claimed, 1e-9))
        assert highest > 0.5  # what is claimed is not far more than what may be lost

    @pytest.mark.parametrize(("n", "q", "eps"), [(60, 0.5, 3), (800, 0.5, 1), (800, 0.1, 4), (6000, 0.9, 1)])
    def test_covers(self, n, q, eps):
        """The quantile of exact weights, in 200 draws: its proof says 95 % at least, of weights in steps."""
        frame = made(n).dropna()
        statistic = WeightedMedian() if q == 0.5 else WeightedQuantile(q)
        own = WeightedExponentialInterval(statistic, Rectangle(*BOUNDS["y"], Universe(*BOUNDS["w"])), Fraction(eps))
        summary = summary_of_pairs(frame["y"].to_numpy(), frame["w"].to_numpy(), own.universe, own.draws)
        drawn = own.draw(summary.of_rows(np.zeros(200, dtype=int)))
        low, high = own.interval(drawn, 0.95)
        exact, value = quantile(frame, q), own.value(drawn)
        assert ((low - 0.01 <= exact) & (exact <= high + 0.01)).mean() >= 0.93
        assert (low <= value).all() and (value <= high).all()
        assert np.median(high - low) < {60: 81, 800: 45, 6000: 40}[n]

    def test_public_face(self, path):
        ledger = pdrisk.Ledger(path, dataset="people", eps=10)
        d = pdrisk.Dataset(made(5000), bounds=BOUNDS, design=Design("w"), ledger=ledger)
        release = d.median("y", eps=2, interval=True)
        assert release.mechanism == "weighted_exponential_interval" and release.eps == 2
        low, high = release.interval()
        assert BOUNDS["y"][0] <= low < release.value < high <= BOUNDS["y"][1]
        assert d.median("y", eps=2, interval=True).value == release.value and ledger.remaining().eps == 8
        table = d.quantile("y", [0.25, 0.75], by="g", keys=["a", "b"], eps=2, interval=True)
        assert (table["low"] < table["high"]).all()
        found = d.sql("SELECT dp_weighted_median(y) AS m FROM data", eps=1, interval=True, risk_columns=True)
        assert found["m_low"][0] < found["m"][0] < found["m_high"][0]
        outcome = pdrisk.attack.ledger(ledger)
        assert outcome.verdict != "broken"

    def test_individual_risk(self):
        options = {"eps": 1.5, "bounds": BOUNDS, "weights": "w"}
        found = FRAME.dprisk.individual_risk("y", "median", mechanism="weighted_exponential_interval", **options)
        steps = np.floor(FRAME["w"].clip(0, 8) / 8 * 256 + 0.5)
        loss = 1.5 * steps / 256
        wanted = (1 / (1 + np.exp(-loss))).where(FRAME["y"].notna() & FRAME["w"].notna())
        pd.testing.assert_series_equal(found, wanted, check_names=False, rtol=1e-8)


OPENED = {
    "polars": lambda frame, con: pl.from_pandas(frame),
    "arrow": lambda frame, con: pa.Table.from_pandas(frame),
    "DuckDB": lambda frame, con: (con, "people"),
}


class TestEveryEngine:
    """All engines read the same whole numbers."""

    def check(self, data):
        d = pdrisk.Dataset(data)
        for options in ({}, {"by": "g", "keys": KEYS["g"]}):
            found, wanted = asked(d, **options), asked(FRAME.dprisk, **options)
            found |= {"share": d.proportion("b and y > 20", eps=1, bounds=BOUNDS, weights="w", **options)}
            wanted |= {"share": FRAME.dprisk.proportion("b and y > 20", eps=1, bounds=BOUNDS, weights="w", **options)}
            for name, one in found.items():
                other = wanted[name]
                if options:
                    one = one if isinstance(one, pd.DataFrame) else one.to_pandas()
                    assert one["value"].tolist() == other["value"].tolist(), name
                else:
                    assert one.value == other.value, name
                    assert one.curator.n == other.curator.n

    @pytest.mark.parametrize("kind", OPENED)
    def test_here(self, kind, noiseless):
        with duckdb.connect() as con:
            con.execute("CREATE TABLE people (y DOUBLE, w DOUBLE, g VARCHAR, b BOOLEAN)")
            con.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
            self.check(OPENED[kind](FRAME, con))

    @needs_server
    def test_postgres(self, noiseless):
        with database() as url, connected(url) as connection:
            connection.execute("CREATE TABLE people (y double precision, w double precision, g text, b boolean)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s)", ROWS)
            self.check((connection, "people"))
            ask = (
                "SELECT g, CAST(SUM(w * y) AS DOUBLE PRECISION) / SUM(w) AS m, dp_weighted_std(y, w) AS s FROM people "
                "GROUP BY g ORDER BY g"
            )
            here = pdrisk.sql(ask, eps=1, bounds=BOUNDS, keys=KEYS, people=FRAME)
            there = pdrisk.sql(ask, connection, eps=1, bounds=BOUNDS, keys=KEYS)
            pd.testing.assert_frame_equal(here, there)

    @needs_spark
    @pytest.mark.slow
    def test_spark(self, noiseless):
        self.check(session().createDataFrame(ROWS, "y double, w double, g string, b boolean"))


class TestSQL:
    """Weighted means as people write them, and functions for the others."""

    @pytest.mark.parametrize(
        "quotient",
        [
            "SUM(w * y) / SUM(w)",
            "SUM(y * w) / NULLIF(SUM(w), 0)",
            "CAST(SUM(w * CAST(y AS DOUBLE)) AS DOUBLE) / CAST(SUM(w) AS DOUBLE)",
            "SUM(w * y) FILTER (WHERE b) / SUM(w) FILTER (WHERE b)",
        ],
    )
    def test_quotients(self, quotient, noiseless):
        """They are what SQL says, of clamped values: SUM(w) is over records without y, too."""
        frame = FRAME.assign(y=FRAME["y"].clip(0, 90), w=FRAME["w"].clip(0, 8))
        found = pdrisk.sql(f"SELECT {quotient} AS m FROM frame", eps=1, bounds=BOUNDS, frame=frame)
        wanted = duckdb.sql(f"SELECT {quotient} AS m FROM frame").df()
        assert found["m"][0] == pytest.approx(wanted["m"][0], rel=1e-7)
        assert found.attrs["dprisk"].count("weighted_two_sums") == 1

    def test_one_release_with_the_sums_beside_it(self, noiseless):
        ask = "SELECT SUM(w * y) / SUM(w) AS m, SUM(w) AS n, SUM(y * w) AS t FROM frame WHERE y > 12"
        frame = FRAME.assign(y=FRAME["y"].clip(0, 90), w=FRAME["w"].clip(0, 8))
        found = pdrisk.sql(ask, eps=1, bounds=BOUNDS, frame=frame, risk_columns=True)
        wanted = duckdb.sql(ask).df()
        assert found[["m", "n", "t"]].iloc[0].tolist() == pytest.approx(wanted.iloc[0].tolist(), rel=1e-7)
        assert found["m_eps"][0] == 1.0

    def test_functions(self, noiseless):
        ask = (
            "SELECT dp_weighted_mean(y, w), dp_weighted_sum(y, w), dp_weighted_count(y, w), dp_weighted_var(y, w), "
            "dp_weighted_std(y, w) FROM frame"
        )
        found, wanted = pdrisk.sql(ask, eps=1, bounds=BOUNDS, frame=FRAME), exactly(FRAME)
        assert found.iloc[0].tolist() == pytest.approx(
            [wanted[name] for name in ("mean", "sum", "count", "var", "std")], rel=1e-7
        )

    def test_quantiles(self):
        ask = "SELECT dp_weighted_quantile(y, w, 0.9) AS q, dp_weighted_median(y, w) AS m FROM frame"
        frame = made(5000)
        found = pdrisk.sql(ask, eps=900, bounds=BOUNDS, frame=frame)
        assert found.iloc[0].tolist() == pytest.approx([quantile(frame, 0.9), quantile(frame, 0.5)], abs=0.4)

    def test_its_own_eps(self):
        found = pdrisk.sql(
            "SELECT dp_weighted_mean(y, w, eps := 0.25) AS m FROM frame", bounds=BOUNDS, frame=FRAME, risk_columns=True
        )
        assert found["m_eps"][0] == 0.25

    @pytest.mark.parametrize(
        ("ask", "bounds", "said"),
        [
            ("dp_weighted_mean(y)", BOUNDS, "takes a column and its weights"),
            ("dp_weighted_mean(y, w)", {"y": (10, 90)}, "needs the bounds of w"),
            ("dp_weighted_mean(y, w)", {"y": (10, 90), "w": (-1, 8)}, "weights cannot be negative"),
            ("dp_weighted_mean(y, g)", BOUNDS, "needs numbers"),
        ],
    )
    def test_wrong(self, ask, bounds, said):
        with pytest.raises((ParameterError, ColumnTypeError), match=said):
            pdrisk.sql(f"SELECT {ask} FROM frame", eps=1, bounds=bounds, frame=FRAME)


class TestSQLOfADesign:
    """In the SQL of a Dataset with a design weighted functions take its weights; nothing else does."""

    DATASET = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w"))
    SHORT = (
        "dp_weighted_mean(y), dp_weighted_sum(y), dp_weighted_count(y), dp_weighted_var(y), dp_weighted_std(y), "
        "dp_weighted_mean(y) FILTER (WHERE b)"
    )

    def test_they_are_those_with_the_weights(self, noiseless):
        long = self.SHORT.replace("(y)", "(y, w)")
        found, wanted = (self.DATASET.sql(f"SELECT {each} FROM data", eps=1) for each in (self.SHORT, long))
        assert found.columns.tolist() != wanted.columns.tolist()  # headings are what people write
        assert found.iloc[0].tolist() == wanted.iloc[0].tolist()
        exact = exactly(FRAME)
        assert found.iloc[0, :5].tolist() == pytest.approx(
            [exact[name] for name in ("mean", "sum", "count", "var", "std")], rel=1e-7
        )

    def test_groups_having_and_order(self, noiseless):
        ask = (
            "SELECT g, dp_weighted_mean({0}) AS m FROM data GROUP BY g HAVING dp_weighted_count({0}) > 0 "
            "ORDER BY dp_weighted_mean({0}) DESC"
        )
        found, wanted = (self.DATASET.sql(ask.format(each), eps=9, keys=["a", "b"]) for each in ("y", "y, w"))
        pd.testing.assert_frame_equal(found, wanted)
        one = "SELECT MAX(m) AS x FROM (SELECT g, dp_weighted_mean({}) AS m FROM data GROUP BY g)"
        found, wanted = (self.DATASET.sql(one.format(each), eps=9, keys=["a", "b"]) for each in ("y", "y, w"))
        pd.testing.assert_frame_equal(found, wanted)

    def test_quantiles_and_options(self):
        d = pdrisk.Dataset(made(5000), bounds=BOUNDS, design=Design("w"))
        asks = "dp_weighted_quantile(y, 0.9) AS q, dp_weighted_quantile(y, q := 0.5) AS h, dp_weighted_median(y) AS m"
        found = d.sql(f"SELECT {asks} FROM data", eps=900)
        exact = [quantile(made(5000), q) for q in (0.9, 0.5, 0.5)]
        assert found.iloc[0].tolist() == pytest.approx(exact, abs=0.4)
        own = d.sql("SELECT dp_weighted_mean(y, eps := 0.25) AS m FROM data", risk_columns=True)
        assert own["m_eps"][0] == 0.25
        found = d.sql("SELECT dp_weighted_quantile(y, $q) AS q FROM data", eps=900, params={"q": 0.9})
        assert found["q"][0] == pytest.approx(exact[0], abs=0.4)

    def test_a_ledger_knows_it_for_the_same_question(self, path):
        ledger = pdrisk.Ledger(path, dataset="people", eps=10)
        d = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w"), ledger=ledger)
        asks = [f"SELECT dp_weighted_mean({each}) AS m FROM data" for each in ("y", "y, w")]
        first, again = (d.sql(each, eps=1)["m"][0] for each in asks)
        assert first == again and ledger.remaining().eps == 9

    def test_plain_sql_weighs_nobody(self, noiseless):
        found = self.DATASET.sql("SELECT AVG(y) AS m, COUNT(*) AS n, SUM(y) AS s FROM data", eps=1)
        y = FRAME["y"].clip(10, 90)
        assert found.iloc[0].tolist() == pytest.approx([y.mean(), len(FRAME), y.sum()], rel=1e-6)

    @needs_server
    def test_on_a_server(self, noiseless):
        with database() as url, connected(url) as connection:
            connection.execute("CREATE TABLE people (y double precision, w double precision, g text, b boolean)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s)", ROWS)
            d = pdrisk.Dataset((connection, "people"), bounds=BOUNDS, design=Design("w"))
            found = d.sql("SELECT dp_weighted_mean(y) AS m, AVG(y) AS plain FROM data", eps=1)
        assert found["m"][0] == pytest.approx(exactly(FRAME)["mean"], rel=1e-7)
        assert found["plain"][0] == pytest.approx(FRAME["y"].clip(10, 90).mean(), rel=1e-6)

    def test_another_column_of_weights(self, noiseless):
        d = pdrisk.Dataset(FRAME.assign(v=FRAME["w"] / 2), bounds={**BOUNDS, "v": (0, 4)}, design=Design("v"))
        found = d.sql("SELECT dp_weighted_sum(y) AS v, dp_weighted_sum(y, w) AS w FROM data", eps=1)
        assert found["v"][0] * 2 == pytest.approx(found["w"][0], rel=1e-6)

    def test_a_schema_declares_weights_too(self, noiseless):
        frame = FRAME.assign(y=FRAME["y"].clip(10, 90), w=FRAME["w"].clip(0, 8))
        found = pdrisk.Dataset(frame, schema=TestSchema.SCHEMA).sql("SELECT dp_weighted_mean(y) AS m FROM data", eps=1)
        assert found["m"][0] == pytest.approx(exactly(FRAME)["mean"], rel=1e-7)

    def test_without_a_design(self):
        with pytest.raises(ParameterError, match="takes a column and its weights"):
            pdrisk.Dataset(FRAME, bounds=BOUNDS).sql("SELECT dp_weighted_mean(y) AS m FROM data", eps=1)
        with pytest.raises(ParameterError, match="needs the quantile"):
            self.DATASET.sql("SELECT dp_weighted_quantile(y) AS m FROM data", eps=1)
        with pytest.raises(ParameterError, match="takes a column"):
            self.DATASET.sql("SELECT dp_weighted_mean() AS m FROM data", eps=1)


class TestPublicFace:
    """What is said of a weighted answer."""

    def test_labels(self):
        release = FRAME.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w")
        assert "mean(y) weighted by w of values clamped to 10-90, weights trimmed at 8" in repr(release)
        assert "weights             w, trimmed at 8" in repr(release)
        assert release.bounds == {"y": (10.0, 90.0), "w": (0.0, 8.0)}
        words = " ".join(release.explain("publication").split())
        assert "that weights were made without these records is the publisher's word" in words
        counted = FRAME.dprisk.count(eps=1, bounds=BOUNDS, weights="w")
        assert "count() weighted by w, weights trimmed at 8" in repr(counted)
        assert counted.curator.clamped > 0

    def test_measured(self):
        release = FRAME.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w")
        total = FRAME.dprisk.sum("y", eps=1, bounds=BOUNDS, weights="w")
        both = total / FRAME.dprisk.count(eps=1, bounds=BOUNDS, weights="w")
        assert release.measured is not None and len(release.measured.numbers) == 2
        assert both.low < both.value < both.high

    def test_bounds_that_are_declared(self):
        frame = FRAME.dprisk.declare(bounds=BOUNDS)
        assert frame.dprisk.mean("y", eps=1, weights="w").bounds == {"y": (10.0, 90.0), "w": (0.0, 8.0)}

    def test_a_ledger_remembers_and_rounds(self, book):
        ledger = book(policy={"round_to": {"mean": 5}, "least_group": {"size": 3, "eps": 0.1}})
        d = pdrisk.Dataset(FRAME, ledger=ledger, version="1")
        first = d.mean("y", eps=1, bounds=BOUNDS, weights="w")
        assert first.value % 5 == 0
        assert d.mean("y", eps=1, bounds=BOUNDS, weights="w").value == first.value
        assert d.mean("y", eps=1, bounds=BOUNDS, weights="w", where="y > 11") is not first

    def test_people_with_several_rows(self, noiseless):
        frame = FRAME.assign(pid=np.arange(len(FRAME)) // 2)
        d = pdrisk.Dataset(frame, person="pid")
        found = d.mean("y", eps=1, bounds=BOUNDS, weights="w", rows=2)
        assert found.value == pytest.approx(exactly(FRAME)["mean"], rel=1e-6)
        of_means = d.mean("y", eps=1, bounds=BOUNDS, weights="w", per_person="mean")
        known = frame[frame["y"].notna() & frame["w"].notna()]
        wanted = exactly(known.groupby("pid")[["y", "w"]].mean())["mean"]  # means of all that is known, then clamped
        assert of_means.value == pytest.approx(wanted, rel=1e-5)


WRONG = {
    "no column": ({"weights": "v"}, UnknownColumnError, "unknown column 'v'"),
    "no name": ({"weights": ["w"]}, ColumnTypeError, "weights is the name of a column"),
    "text": ({"weights": "g"}, ColumnTypeError, "needs numbers"),
    "no bounds of weights": (
        {"bounds": {"y": (10, 90)}},
        ParameterError,
        r"needs the largest weight W.*bounds=\{'w': \(0, W\)\}",
    ),
    "one pair": ({"bounds": (10, 90)}, ParameterError, "bounds of two columns"),
    "negative weights": ({"bounds": {"y": (10, 90), "w": (-1, 8)}}, ParameterError, "weights cannot be negative"),
    "no largest weight": ({"bounds": {"y": (10, 90), "w": (0, math.inf)}}, ParameterError, "finite"),
    "weights of the data": ({"bounds": {"y": (10, 90), "w": "column"}}, ParameterError, "cannot come from the data"),
    "bounds of the data": ({"bounds": {"y": "column", "w": (0, 8)}}, ParameterError, "declare bounds"),
    "step": ({"step": 1}, ParameterError, "step= is not for weighted"),
    "clip": ({"clip": "private"}, ParameterError, "clip= is not for weighted"),
    "replace": ({"neighbours": "replace-one"}, ParameterError, "leave it out"),
    "mechanism": ({"mechanism": "laplace"}, ParameterError, "cannot answer weighted mean"),
}


class TestWrongInput:
    """Refused before anything is paid, with what to write."""

    @pytest.mark.parametrize("wrong", WRONG)
    def test_options(self, wrong, path):
        options, kind, said = WRONG[wrong]
        ledger = pdrisk.Ledger(path, dataset="people", eps=10)
        with pytest.raises(kind, match=said):
            FRAME.dprisk.mean("y", **{"eps": 1, "bounds": BOUNDS, "weights": "w", "ledger": ledger} | options)
        assert ledger.remaining().eps == 10

    @pytest.mark.parametrize(
        ("ask", "said"),
        [
            (lambda d, **options: d.max("y", **options), "weights do not change max"),
            (lambda d, **options: d.nunique("y", **options), "weights do not change nunique"),
            (lambda d, **options: d.var("y", ddof=1, **options), "ddof=0"),
            (lambda d, **options: d.agg({"y": ["std"]}, **options), "ddof=0"),
            (lambda d, **options: d.corr("y", "w", **options), "takes no weights"),
            (lambda d, **options: d.sum("y", per_person="sum", person="g", **options), "another number of the weights"),
        ],
    )
    def test_statistics(self, ask, said):
        with pytest.raises(ParameterError, match=said):
            ask(FRAME.dprisk, eps=1, bounds=BOUNDS, weights="w")

    def test_few_people_are_warned_about(self):
        with pytest.warns(NoisyReleaseWarning, match="weighted by w"):
            FRAME.head(5).dprisk.mean("y", eps=0.1, bounds=BOUNDS, weights="w")

    def test_sampling_needs_a_design(self):
        release = FRAME.dprisk.mean("y", eps=1, bounds=BOUNDS, weights="w")
        with pytest.raises(ParameterError, match="how the sample was drawn"):
            release.interval(kind="sampling")


class TestSchema:
    """A pandera schema declares the column of weights."""

    SCHEMA = pandera.DataFrameSchema(
        {
            "y": pandera.Column(float, pandera.Check.in_range(10, 90), nullable=True),
            "w": pandera.Column(float, pandera.Check.in_range(0, 8), nullable=True),
        },
        metadata={"dprisk": {"weights": "w"}},
    )

    def check(self, d):
        assert d.mean("y", eps=1).name == "mean(y) weighted by w"
        assert d.mean("y", eps=1, weights=False).name == "mean(y)"
        assert d.count(eps=1).name == "count() weighted by w"
        assert d.max("y", eps=1).name == "max(y)"
        assert d.std("y", eps=1).statistic == "weighted std(ddof=0)"
        assert d.suggest_rows(person="g", eps=1).share > 0

    def test_of_frames_and_datasets(self):
        frame = FRAME.assign(y=FRAME["y"].clip(10, 90), w=FRAME["w"].clip(0, 8))
        validated = self.SCHEMA.validate(frame)
        self.check(validated.dprisk)
        self.check(validated.query("y > 12").dprisk)
        self.check(pdrisk.Dataset(validated))
        self.check(pdrisk.Dataset(FRAME, schema=self.SCHEMA))
        self.check(FRAME.dprisk.declare(self.SCHEMA).dprisk)

    def test_wrong(self):
        for weights, kind in ((["w"], ColumnTypeError), ("v", UnknownColumnError)):
            schema = pandera.DataFrameSchema(self.SCHEMA.columns, metadata={"dprisk": {"weights": weights}})
            with pytest.raises(kind):
                FRAME.dprisk.declare(schema)
