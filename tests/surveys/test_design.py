"""Designs of surveys: sampling errors by R survey's formulas, private ones, what a person can change, wrong input."""

import itertools
import math
import pickle
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdrisk
from pdrisk import Design
from pdrisk._core.lattice import PLACES
from pdrisk._core.summary import Summary
from pdrisk._core.surveys.design_variance import stratified_variance
from pdrisk._core.surveys.second_moments import SecondMoments
from pdrisk._core.universe import Universe
from pdrisk._mechanisms.noisy_moments import NoisyMoments
from pdrisk.errors import (
    BudgetExceededError,
    ColumnTypeError,
    NotPublicError,
    ParameterError,
    PolicyError,
    UnknownColumnError,
)
from postgres_databases import connected, database, needs_server
from spark_sessions import needs_spark, session

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

BOUNDS = {"y": (5.0, 90.0), "w": (0.0, 4.0)}
GROUPS = ["a", "b", "nobody"]
STRATA = ("n", "s", "t")


def made(n=900, seed=4):
    """People in villages of strata: each village is of one stratum; some values and weights are missing."""
    random = np.random.default_rng(seed)
    village = random.integers(0, 90, n)
    stratum = np.array(STRATA, dtype=object)[village % 3]
    frame = pd.DataFrame(
        {
            "pid": np.arange(n),
            "y": (random.gamma(2, 15, n) + 10 * (village % 3) + 0.2 * village).round(2),
            "w": random.lognormal(0, 0.6, n).round(3),
            "h": pd.Series(stratum, dtype="string"),
            "v": village,
            "g": pd.Series(random.choice(["a", "b", "c"], n), dtype="string"),
            "b": random.random(n) < 0.3,
        }
    )
    frame.loc[random.random(n) < 0.1, "y"] = np.nan
    frame.loc[random.random(n) < 0.05, "w"] = np.nan
    return frame


FRAME = made()
ROWS = FRAME.astype(object).where(FRAME.notna(), None).to_numpy().tolist()
COLUMNS = "pid bigint, y double precision, w double precision, h text, v bigint, g text, b boolean"
SIZES = FRAME.groupby("h")["pid"].size().add(7).to_dict()  # who did not answer is of the sample, too
VILLAGES = dict.fromkeys(STRATA, 31)
POPULATION = {"n": 900, "s": 1200, "t": 5000}
# name: the design, with R's words for it: the units, their numbers in strata, and in the population
DESIGNS = {
    "random": (Design("w", psus=950), None, {None: 950}, None),
    "random, fpc": (Design("w", psus=950, fpc=2000), None, {None: 950}, {None: 2000}),
    "nobody said": (Design("w"), None, {None: 900}, None),
    "strata": (Design("w", strata="h", psus=SIZES), None, SIZES, None),
    "strata, fpc": (Design("w", strata="h", psus=SIZES, fpc=POPULATION), None, SIZES, POPULATION),
    "clusters": (Design("w", psu="v", psus=95, persons=30), "v", {None: 95}, None),
    "strata of clusters": (Design("w", strata="h", psu="v", psus=VILLAGES, persons=30), "v", VILLAGES, None),
    "few clusters, fpc": (
        Design("w", strata="h", psu="v", psus=VILLAGES, fpc=dict.fromkeys(STRATA, 60), persons=30),
        "v", VILLAGES, dict.fromkeys(STRATA, 60),
    ),
    "no weights": (Design(strata="h", psus=SIZES), None, SIZES, None),
}  # fmt: skip


def of_r(frame, kind, name, inside=None, unit=None, column="y"):
    """Estimate and standard error by the formulas of R's survey 4.1.1: svymean, svytotal and svyby.

    ``z`` is each person's part of the linearised estimate, 0 for who is not asked about (a domain, as `subset` makes
    one), summed over units; ``V = sum_h (1 - n_h/N_h) n_h/(n_h - 1) sum_c (z_hc - mean_h z)**2``.
    """
    design, psu, sizes, population = DESIGNS[name]
    inside = pd.Series(True, index=frame.index) if inside is None else inside
    values = frame[column].astype(float)
    values = values.clip(*BOUNDS["y"]) if column == "y" else values
    weights = frame["w"].clip(*BOUNDS["w"]) if design.weights else pd.Series(1.0, index=frame.index)
    used = inside & values.notna() & weights.notna()
    total = math.fsum(weights[used])
    mean = math.fsum(weights[used] * values[used]) / total if total else math.nan
    part = (weights * values if kind == "sum" else weights * (values - mean) / total).where(used, 0.0)
    stratum = frame["h"] if design.strata else pd.Series([None] * len(frame), index=frame.index)
    units = pd.DataFrame({"z": part, "h": stratum, "c": frame[psu or unit or "pid"]})
    variance = 0.0
    for h, n in sizes.items():
        own = units if h is None else units[units["h"] == h]
        z = own.groupby("c")["z"].sum().to_numpy()
        z = np.append(z, np.zeros(n - len(z)))
        factor = (1 - (n / population[h] if population else 0)) * n / (n - 1)
        variance += factor * ((z - z.mean()) ** 2).sum()
    return (mean if kind != "sum" else math.fsum(weights[used] * values[used])), math.sqrt(variance)


def opened(frame, name, **more):
    return pdrisk.Dataset(frame, bounds=BOUNDS, design=DESIGNS[name][0], **more)


class TestExact:
    """Curators get the standard errors of R's survey package."""

    @pytest.mark.parametrize("name", DESIGNS)
    @pytest.mark.parametrize(("kind", "column"), [("mean", "y"), ("sum", "y"), ("proportion", "b"), ("mean", "b")])
    def test_of_all(self, name, kind, column):
        if kind == "mean" and column == "b":
            kind, column, asked = "proportion", "b", "b and pid >= 0"
        else:
            asked = column
        found = opened(FRAME, name).sampling_errors(asked, kind).iloc[0]
        value, se = of_r(FRAME, kind, name, column=column)
        assert found["value"] == pytest.approx(value, rel=1e-9)
        assert found["se"] == pytest.approx(se, rel=1e-9)

    @pytest.mark.parametrize("name", DESIGNS)
    @pytest.mark.parametrize("kind", ["mean", "sum"])
    def test_of_domains(self, name, kind):
        """By a filter and by groups alike: units without a record of the domain count as 0."""
        if DESIGNS[name][1] is None:
            table = opened(FRAME, name).sampling_errors("y", kind, by="g", keys=GROUPS)
            for key in GROUPS[:2]:
                value, se = of_r(FRAME, kind, name, FRAME["g"] == key)
                assert table.loc[key, ["value", "se"]].tolist() == pytest.approx([value, se], rel=1e-9)
            assert table.loc["nobody", "n"] == 0
        found = opened(FRAME, name).sampling_errors("y", kind, where="g == 'a'").iloc[0]
        assert found[["value", "se"]].tolist() == pytest.approx([*of_r(FRAME, kind, name, FRAME["g"] == "a")], rel=1e-9)

    def test_units_that_nobody_counted(self):
        """They are all that there are, beyond the domain, too: else a total would have the error of a fixed domain."""
        found = opened(FRAME, "nobody said").sampling_errors("y", "sum", where="g == 'a'").iloc[0]
        assert found["se"] == pytest.approx(of_r(FRAME, "sum", "nobody said", FRAME["g"] == "a")[1], rel=1e-9)

    @pytest.mark.parametrize("kind", ["mean", "sum"])
    def test_of_households(self, kind):
        """A person of the package is a household, all of whose members count: they are one unit."""
        frame = FRAME.assign(hid=FRAME["v"] * 100 + FRAME["pid"] // 4 % 20)
        most = int(frame.groupby("hid").size().max())
        d = pdrisk.Dataset(
            frame, bounds=BOUNDS, person="hid", constant=["h", "v"], design=Design("w", strata="h", psus=SIZES)
        )
        found = d.sampling_errors("y", kind, rows=most).iloc[0]
        wanted = of_r(frame, kind, "strata", unit="hid")
        assert found[["value", "se"]].tolist() == pytest.approx([*wanted], rel=1e-9)

    def test_missing_codes(self):
        coded = FRAME.assign(y=FRAME["y"].fillna(-7))
        d = pdrisk.Dataset(coded, bounds=BOUNDS, missing={"y": [-7]}, design=DESIGNS["strata"][0])
        assert d.sampling_errors("y").iloc[0]["se"] == pytest.approx(of_r(FRAME, "mean", "strata")[1], rel=1e-9)

    def test_deff_n_and_weight(self):
        """Against the variance of a random sample of as many: ``sum w (y - m)**2 / sum w / (n - 1)``."""
        found = opened(FRAME, "strata of clusters").sampling_errors("y").iloc[0]
        used = FRAME[FRAME["y"].notna() & FRAME["w"].notna()]
        y, w = used["y"].clip(*BOUNDS["y"]), used["w"].clip(*BOUNDS["w"])
        value, se = of_r(FRAME, "mean", "strata of clusters")
        assert found["deff"] == pytest.approx(se**2 / (np.average((y - value) ** 2, weights=w) / (len(y) - 1)))
        assert found["n"] == len(y)
        assert found["weight"] == pytest.approx(w.sum())

    def test_all_were_asked(self):
        d = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w", psus=950, fpc=950))
        assert d.sampling_errors("y")["se"][0] == 0

    def test_curators_alone(self):
        with pytest.raises(NotPublicError):
            pdrisk.public(opened(FRAME, "random").sampling_errors("y"))


OPENED = {
    "polars": lambda con: pl.from_pandas(FRAME),
    "DuckDB": lambda con: (con, "people"),
}


class TestEveryEngine:
    """All engines read the same whole numbers."""

    def check(self, data):
        for name in ("strata", "strata of clusters", "random, fpc"):
            here, there = opened(FRAME, name), opened(data, name)
            for kind in ("mean", "sum"):
                one, other = (d.sampling_errors("y", kind).iloc[0].tolist() for d in (here, there))
                assert one == pytest.approx(other, rel=1e-9), name
                assert other[1] == pytest.approx(of_r(FRAME, kind, name)[1], rel=1e-9)
                ends = [getattr(d, kind)("y", eps=1, sampling=0.2).interval(kind="sampling") for d in (here, there)]
                assert ends[0] == pytest.approx(ends[1], rel=1e-9)
        tables = [opened(each, "strata").mean("y", eps=1, sampling=0.2, by="g", keys=GROUPS) for each in (FRAME, data)]
        other = tables[1] if isinstance(tables[1], pd.DataFrame) else tables[1].to_pandas()
        assert tables[0]["sampling_se"].tolist() == pytest.approx(other["sampling_se"].tolist(), rel=1e-9)

    @pytest.mark.parametrize("kind", OPENED)
    def test_here(self, kind, noiseless):
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE people ({COLUMNS})")
            con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", ROWS)
            self.check(OPENED[kind](con))

    @needs_server
    def test_postgres(self, noiseless):
        with database() as url, connected(url) as connection:
            connection.execute(f"CREATE TABLE people ({COLUMNS})")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s, %s, %s, %s)", ROWS)
            self.check((connection, "people"))

    @needs_spark
    @pytest.mark.slow
    def test_spark(self, noiseless):
        self.check(
            session().createDataFrame(ROWS, "pid long, y double, w double, h string, v long, g string, b boolean")
        )


class TestLeftOut:
    """What sampling errors leave out, as the docstring of Design says; the answer itself does not."""

    @pytest.mark.parametrize("column", ["y", "w"])
    def test_infinite_numbers(self, column, noiseless):
        frame = FRAME.assign(y=FRAME["y"].astype(float), w=FRAME["w"].astype(float))
        frame.loc[frame.index[5:25], column] = np.inf
        found, without = (
            pdrisk.Dataset(each, bounds=BOUNDS, design=Design("w", psus=900))
            for each in (frame, frame.drop(index=frame.index[5:25]))
        )
        errors = [d.sampling_errors("y") for d in (found, without)]
        pd.testing.assert_frame_equal(*errors)
        known = frame.dropna(subset=["y", "w"])
        mean = np.average(known["y"].clip(*BOUNDS["y"]), weights=known["w"].clip(*BOUNDS["w"]))
        assert found.mean("y", eps=1).value == pytest.approx(mean, rel=1e-6)
        assert abs(without.mean("y", eps=1).value - mean) > 1e-3

    def test_records_of_no_unit_or_stratum(self, noiseless):
        frame = FRAME.assign(v=FRAME["v"].astype(float), h=FRAME["h"].astype(object))
        frame.loc[frame.index[5:25], "v"] = np.nan
        frame.loc[frame.index[40:60], "h"] = None
        d = pdrisk.Dataset(frame, bounds=BOUNDS, design=Design("w", strata="h", psu="v", psus=VILLAGES, persons=30))
        y, w = frame["y"].clip(*BOUNDS["y"]), frame["w"].clip(*BOUNDS["w"]).where(frame["y"].notna())
        assert d.mean("y", eps=1).value == pytest.approx((w * y).sum() / w.sum(), rel=1e-6)  # of everybody
        w = w.where(frame["h"].notna())
        mean = (w * y).sum() / w.sum()
        units = (w * (y - mean)).groupby([frame["h"], frame["v"]]).sum()  # of those who have a unit and a stratum
        sums, squares = units.groupby(level=0).sum(), (units**2).groupby(level=0).sum()
        variance = (31 / 30 * (squares - sums**2 / 31)).sum()
        assert d.sampling_errors("y")["se"].item() == pytest.approx(math.sqrt(variance) / w.sum(), rel=1e-5)


class TestPrivateWithoutNoise:
    """With noise taken away, what is left is the exact standard error, and half of what the noise would be."""

    @pytest.mark.parametrize("name", ["random", "random, fpc", "strata", "strata, fpc", "strata of clusters"])
    @pytest.mark.parametrize("kind", ["mean", "sum"])
    def test_by_stratum(self, name, kind, noiseless):
        """``max(V, 0) + sd/2``; at eps 10**6 the second part is nothing."""
        release = getattr(opened(FRAME, name), kind)("y", eps=10**6, sampling=0.2)
        value, se = of_r(FRAME, kind, name)
        assert release.value == pytest.approx(value, rel=1e-6)
        assert release.answer.lines[0].sampling_se == pytest.approx(se, rel=1e-4)

    def test_flat_ignores_what_strata_explain(self, noiseless):
        d = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w", strata="h", psus={"n": 9, "s": 400, "t": 400}))
        found = d.mean("y", eps=10**6, sampling=0.2).answer.lines[0].sampling_se
        assert found > of_r(FRAME, "mean", "strata")[1] * 1.02

    def test_by_groups(self, noiseless):
        table = opened(FRAME, "strata").mean("y", eps=10**6, sampling=0.2, by="g", keys=GROUPS)
        for key in GROUPS[:2]:
            assert table.loc[key, "sampling_se"] == pytest.approx(
                of_r(FRAME, "mean", "strata", FRAME["g"] == key)[1], rel=1e-4
            )

    def test_half_of_the_noise(self, noiseless):
        """The second moments' noise has scale 1/(eps p); its part of V is read off `stratified_variance`."""
        release = opened(FRAME, "random").mean("y", eps=1, sampling=0.2)
        used = FRAME[FRAME["y"].notna() & FRAME["w"].notna()]
        u = (used["y"].clip(*BOUNDS["y"]) - 5) / 85
        w = used["w"].clip(0, 4)
        m = np.average(u, weights=w)
        c, scale, n, a = 4 * max(m, 1 - m), 5.0, 950, 950 / 949
        v = w * (u - m) / c
        noise = a * math.sqrt(4 * scale**2 + 16 * scale**2 * v.sum() ** 2 / n**2)
        unbiased = a * ((v**2).sum() - (v.sum() ** 2 - 4 * scale**2) / n)
        wanted = 85 * c * math.sqrt(unbiased + noise / 2) / w.sum()
        assert release.answer.lines[0].sampling_se == pytest.approx(wanted, rel=1e-5)

    def test_a_declared_design_effect(self, noiseless):
        """``V = deff s**2 / n``, s**2 the weighted variance: it costs no eps."""
        d = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w", deff=1.7, n=900))
        release = d.mean("y", eps=1)
        used = FRAME[FRAME["y"].notna() & FRAME["w"].notna()]
        y, w = used["y"].clip(*BOUNDS["y"]), used["w"].clip(0, 4)
        mean = np.average(y, weights=w)
        se = math.sqrt(1.7 * np.average((y - mean) ** 2, weights=w) / 900)
        assert release.answer.lines[0].sampling_se == pytest.approx(se, rel=1e-6)
        assert (release.eps, release.mechanism) == (1, "weighted_bernstein")
        assert d.mean("y", eps=1, where="g == 'a'").answer.lines[0].sampling_se is None


def sums_of(mechanism, deviations):
    """Both sums of units with these deviations, by the places of the definition."""
    k = np.floor((np.asarray(deviations, dtype=float) + 1) / 2 * PLACES + 0.5).astype(np.int64)
    squares = [int(each) * int(each) // PLACES for each in k]
    summary = Summary(np.array([len(k)]), places=np.array([k.sum()]), place_squares=np.array([sum(squares)]))
    return mechanism.statistic.sums(summary)[:, 0]


class TestLoss:
    """A person moves both sums together by no more than the noise is made for."""

    FINE = np.unique(np.concatenate([np.linspace(-1, 1, 201), [-1, -1 + 1e-9, -1e-9, 0, 1e-9, 1 - 1e-9, 1]]))

    def moved(self, mechanism, one, other):
        return int(np.abs(sums_of(mechanism, one) - sums_of(mechanism, other)).sum())

    @pytest.mark.parametrize("halves", [True, False])
    def test_a_unit_comes(self, halves):
        """``max(|v|, v**2)`` of it, at most 1."""
        own = NoisyMoments(SecondMoments(halves=halves), Universe(-1.0, 1.0), Fraction(1))
        largest = max(self.moved(own, [0.3, v], [0.3]) for v in self.FINE)
        assert PLACES - 8 <= largest <= own.statistic.change == PLACES + 4

    @pytest.mark.parametrize("halves", [True, False])
    @pytest.mark.parametrize("persons", [2, 3, 9, 20, 200])
    def test_a_person_of_a_unit(self, halves, persons):
        """Whoever moves the sum of a unit by b at most, moves both by ``2 b - b**2`` at most, clamped or not."""
        share = Fraction(math.ceil(2**20 / min(persons, 3 * math.sqrt(persons))) + 1, 2**20)
        own, b = NoisyMoments(SecondMoments(share, halves), Universe(-1.0, 1.0), Fraction(1)), float(share)
        moves = [-b, -b / 2, -1e-9, 0.0, 1e-9, b / 3, b]
        largest = 0
        for v, move in itertools.product([*self.FINE, 1 + b / 2, -1 - b / 2, 1 - b, b - 1], moves):
            before, after = np.clip(v, -1, 1), np.clip(v + move, -1, 1)
            largest = max(largest, self.moved(own, [before], [after]))
        assert largest <= own.statistic.change
        assert largest >= own.statistic.change * 0.999  # and it is attained: at the edge
        alone = max(self.moved(own, [v], []) for v in self.FINE if abs(v) <= b)  # a unit of one person comes or goes
        assert alone <= own.statistic.change

    @pytest.mark.parametrize("name", ["random", "strata", "strata of clusters"])
    def test_of_a_question(self, name, monkeypatch):
        """Frames that differ by any one person, asked in full: what is drawn from, over the scale of its noise."""
        seen = []

        def drawn(exact, change, eps):
            seen.append((np.atleast_2d(exact).copy(), change, eps))
            return exact

        monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", drawn)

        def moments(frame):
            seen.clear()
            d = opened(frame, name)
            # The mean is public by then: it is held still, so that the second question is the same.
            held = property(lambda self: np.full(self.drawn.shape[-1], 40.0))
            monkeypatch.setattr("pdrisk._answer.answers.noisy.NoisyAnswers.values", held)
            d.mean("y", eps=1, sampling=0.2)
            return seen[-1]

        hard = FRAME.assign(
            y=FRAME["y"].where(FRAME["pid"] % 3 > 0, 90.0), w=FRAME["w"].where(FRAME["pid"] % 2 > 0, 4.0)
        )
        whole, change, eps = moments(hard)
        assert eps == Fraction(1, 5)
        largest = 0
        for at in range(0, 900, 45):
            without, *_ = moments(hard.drop(index=at))
            largest = max(largest, int(np.abs(whole - without).sum()))
        extreme = pd.DataFrame([{**hard.iloc[0].to_dict(), "pid": 5000, "y": 90.0, "w": 4.0, "v": 0, "h": "n"}])
        more, *_ = moments(pd.concat([hard, extreme.astype(hard.dtypes.to_dict())], ignore_index=True))
        largest = max(largest, int(np.abs(more - whole).sum()))
        assert 0 < largest <= change


class TestNoise:
    def test_the_stratified_variance_is_unbiased(self):
        """By 400,000 draws of Laplace noise on both sums; its variance is understated nowhere, on average."""
        random, scale, units = np.random.default_rng(0), 2.0, [12, 30]
        above, below = np.array([[1.5], [4.0]]), np.array([[0.7], [6.0]])
        own = np.array([0.9, 0.5])
        noise = random.laplace(0, scale, (2, 2, 400_000))
        high, low = above + noise[0], below + noise[1]
        variance, said = stratified_variance((high - low).T, (high + low).T, units, own, scale)
        n = np.array(units)[:, np.newaxis]
        exact = (own[:, np.newaxis] * (above + below - (above - below) ** 2 / n)).sum()
        assert variance.mean() == pytest.approx(exact, abs=5 * variance.std() / math.sqrt(400_000))
        assert said.mean() >= variance.var() * 0.995

    def test_intervals_hold(self):
        """Of the population's mean and total, .95 of the time: 150 samples of 600, and a clustered one."""
        random, held = np.random.default_rng(1), []
        for at in range(150):
            y = 100 * random.beta(2, 3, 600)
            d = pdrisk.Dataset(pd.DataFrame({"y": y}), bounds={"y": (0, 100)}, design=Design(psus=600))
            release = d.mean("y", eps=1, sampling=0.2) if at % 2 else d.sum("y", eps=1, sampling=0.2)
            low, high = release.interval(kind="sampling")
            held.append(low <= (40 if at % 2 else 24_000) <= high)
            inner = release.interval()
            assert low < inner[0] < inner[1] < high
        assert np.mean(held) >= 0.91

    def test_levels(self):
        release = opened(FRAME, "strata").mean("y", eps=1, sampling=0.2)
        widths = [np.diff(release.interval(level, kind="sampling"))[0] for level in (0.5, 0.9, 0.99)]
        assert sorted(widths) == widths


class TestRelease:
    """What is said, kept and paid of an answer with its sampling error."""

    def test_what_it_costs(self):
        """Both parts: eps, risks and m are those of both answers together."""
        release = opened(FRAME, "strata").mean("y", eps=1, sampling=0.25)
        assert release.eps == 1
        assert release.risk.worst_case == pytest.approx(1 / (1 + math.exp(-1)))
        alone = [pdrisk.Dataset(FRAME, bounds=BOUNDS).mean("y", eps=e, weights="w").risk for e in (0.75, 0.25)]
        assert release.risk.mu >= math.hypot(alone[0].mu, alone[1].mu) * (1 - 1e-9)
        assert alone[0].success < release.risk.success <= release.risk.worst_case
        assert pdrisk.tradeoff(release).success >= release.risk.success * (1 - 1e-9)
        words = " ".join(release.explain("publication").split())
        assert "at most 74 times out of 100" in words
        assert "noisy sums that tell the sampling error, for eps 0.25" in words
        assert "95 % interval" in repr(release)

    def test_pickles_and_dicts(self):
        release = opened(FRAME, "strata").mean("y", eps=1, sampling=0.2)
        again = pickle.loads(pickle.dumps(release))
        assert again.interval(kind="sampling") == release.interval(kind="sampling")
        said = release.to_dict()
        assert (said["sampling_low"], said["sampling_high"]) == release.interval(kind="sampling")
        assert (said["eps"], said["sampling_eps"]) == (1, 0.2)
        assert pdrisk.public(release)["sampling_se"] == said["sampling_se"] > 0

    def test_tables(self):
        table = opened(FRAME, "strata").mean("y", eps=1, sampling=0.2, by="g", keys=GROUPS)
        assert (table["sampling_low"] <= table["low"]).all()
        assert (table["high"] <= table["sampling_high"]).all()
        assert set(table["eps"]) == {1.0}
        assert pdrisk.public(table).equals(table)
        assert "eps 0.2" in " ".join(pdrisk.explain(table, "publication").split())

    @pytest.mark.parametrize("name", ["strata", "strata of clusters"])
    def test_a_ledger_pays_both_and_remembers_both(self, name, book):
        ledger = book(eps=2)
        d = opened(FRAME, name, ledger=ledger, version="1")
        first = d.mean("y", eps=1, sampling=0.2)
        assert ledger.remaining().eps == 1
        second = d.mean("y", eps=1, sampling=0.2)
        assert ledger.remaining().eps == 1
        assert (second.value, second.interval(kind="sampling")) == (first.value, first.interval(kind="sampling"))
        d.mean("y", eps=1, sampling=0.2, fresh=True)
        assert ledger.remaining().eps == 0
        assert d.mean("y", eps=1, sampling=0.2).value is not None  # still free

    @pytest.mark.parametrize("version", [None, "1"])
    def test_both_are_paid_or_none(self, version, book):
        ledger = book(eps=1)
        d = opened(FRAME, "strata", ledger=ledger, version=version)
        with pytest.raises(BudgetExceededError, match=r"0\.1 short"):
            d.mean("y", eps=1.1, sampling=0.2)
        assert ledger.remaining().eps == 1

    def test_other_forms_are_other_questions(self, book, noiseless):
        """The sum of squares alone is not remembered in the place of both sums."""
        ledger = book(eps=4)
        flat = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w"), ledger=ledger, version="1")
        both = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w", psus=900), ledger=ledger, version="1")
        found = [d.mean("y", eps=1, sampling=0.2).answer.lines[0].sampling_se for d in (both, flat)]
        assert ledger.remaining().eps == pytest.approx(4 - 1 - 0.2)
        alone = pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w")).mean("y", eps=1, sampling=0.2)
        assert found[1] == alone.answer.lines[0].sampling_se

    def test_clusters_do_not_become_the_people_of_a_ledger(self, book):
        ledger = book(eps=4)
        d = opened(FRAME, "strata of clusters", ledger=ledger)
        d.mean("y", eps=1, sampling=0.2)
        assert d.mean("y", eps=1).unit == "record (one per person assumed)"

    def test_rules(self, book):
        """Withheld groups have no sampling error; where parts are hidden, nothing is paid."""
        d = opened(FRAME, "strata", ledger=book(policy={"least_group": {"size": 50, "eps": 0.1}}))
        table = d.mean("y", eps=1, sampling=0.2, by="g", keys=GROUPS)
        assert table.loc["nobody", ["value", "sampling_se", "sampling_low"]].isna().all()
        assert table["sampling_se"].notna().sum() == 2

    def test_rounded_answers_have_none(self, book):
        ledger = book(eps=3, policy={"round_to": {"mean": 5}})
        with pytest.raises(PolicyError, match="Leave sampling= out"):
            opened(FRAME, "strata", ledger=ledger).mean("y", eps=1, sampling=0.2)
        assert ledger.remaining().eps == 3


WRONG_DESIGNS = {
    "fpc alone": ({"fpc": 50}, ParameterError, "needs psus="),
    "fpc too small": ({"psus": 50, "fpc": 40}, ParameterError, "fewer than the 50"),
    "other strata": ({"strata": "h", "psus": {"n": 9}, "fpc": {"s": 9}}, ParameterError, "name the same strata"),
    "one unit": ({"psus": 1}, ParameterError, "must be at least 2"),
    "one unit of a stratum": ({"strata": "h", "psus": {"n": 1}}, ParameterError, "merge its stratum"),
    "a number for strata": ({"strata": "h", "psus": 9}, ParameterError, "a dict from each stratum"),
    "a dict without strata": ({"psus": {"n": 9}}, ParameterError, "needs strata="),
    "half a unit": ({"psus": 9.5}, ColumnTypeError, "whole number"),
    "psu without persons": ({"psu": "v"}, ParameterError, "needs persons="),
    "no persons": ({"psu": "v", "persons": 0}, ParameterError, "at least 1"),
    "deff without n": ({"deff": 1.5}, ParameterError, "needs n="),
    "no deff": ({"deff": 0, "n": 9}, ParameterError, "above 0"),
    "endless deff": ({"deff": math.inf, "n": 9}, ParameterError, "finite"),
    "no column": ({"weights": 1.5}, ColumnTypeError, "name of a column"),
}
STRATIFIED = {"design": DESIGNS["strata"][0]}
OF_PEOPLE = {"person": "pid", "per_person": "one"}
CLUSTERED = Design("w", psu="v", psus=95, persons=30)
# how the Dataset is made, what it is asked, and what is said
WRONG_QUESTIONS = {
    "no design": ({}, lambda d: d.mean("y", eps=1, sampling=0.2), "design=pdrisk.Design"),
    "nothing": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=0), "above 0"),
    "nearly all": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=0.95), "at most 0.9"),
    "no eps": (STRATIFIED, lambda d: d.mean("y", risk=0.7, sampling=0.2), "pass eps="),
    "laplace": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=True, weights=False, mechanism="laplace"), "made of"),
    "clip": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=0.2, weights=False, clip="private"), "clip="),
    "margins": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=0.2, by="g", margins=True), "do not go together"),
    "strata are groups": (STRATIFIED, lambda d: d.mean("y", eps=1, sampling=0.2, by="h", keys=["n"]), "its own"),
    "no numbers for a total": (
        {"design": Design("w")}, lambda d: d.sum("y", eps=1, sampling=0.2), "needs psus="),
    "few units for a total": (
        {"design": Design("w", strata="h", psus=dict.fromkeys(STRATA, 9))},
        lambda d: d.sum("y", eps=1, sampling=0.2), "10 or more"),
    "psu of some person": (
        {"design": CLUSTERED, **OF_PEOPLE}, lambda d: d.sampling_errors("y"), r"constant=\['v'\]"),
    "persons in clusters": (
        {"design": CLUSTERED, **OF_PEOPLE, "constant": ["v"]},
        lambda d: d.mean("y", eps=1, sampling=0.2), "person= out"),
    "strata of some person": (
        {**STRATIFIED, **OF_PEOPLE}, lambda d: d.mean("y", eps=1, sampling=0.2), r"constant=\['h'\]"),
    "a number of a person": (
        {**STRATIFIED, **OF_PEOPLE, "constant": ["h"]},
        lambda d: d.mean("y", eps=1, sampling=0.2, per_person="mean"), "pass rows="),
    "people in several groups": (
        {"design": Design("w"), "person": "pid"},
        lambda d: d.mean("y", eps=1, sampling=0.2, by="g", keys=["a", "b"], rows=2), "one group each"),
    "groups of clusters": (
        {"design": CLUSTERED}, lambda d: d.mean("y", eps=1, sampling=0.2, by="g", keys=["a"]), "with where="),
}  # fmt: skip


class TestWrongInput:
    """Refused before anything is paid, with what to write."""

    @pytest.mark.parametrize("wrong", WRONG_DESIGNS)
    def test_designs(self, wrong):
        options, kind, said = WRONG_DESIGNS[wrong]
        with pytest.raises(kind, match=said):
            Design(**options)

    @pytest.mark.parametrize("wrong", WRONG_QUESTIONS)
    def test_questions(self, wrong, book):
        said, ask, words = WRONG_QUESTIONS[wrong]
        ledger = book(eps=3)
        exact = wrong == "psu of some person"  # which no ledger lets an analyst ask for
        d = pdrisk.Dataset(FRAME, bounds=BOUNDS, **({} if exact else {"ledger": ledger}), **said)
        with pytest.raises(ParameterError, match=words):
            ask(d)
        assert ledger.remaining().eps == 3

    def test_columns(self):
        with pytest.raises(UnknownColumnError, match="'nope'"):
            pdrisk.Dataset(FRAME, design=Design("nope"))
        with pytest.raises(ColumnTypeError, match=r"must be a pdrisk\.Design"):
            pdrisk.Dataset(FRAME, design="w")

    def test_exact_ones(self):
        with pytest.raises(ParameterError, match=r"needs? psus="):
            pdrisk.Dataset(FRAME, bounds=BOUNDS, design=Design("w", strata="h")).sampling_errors("y")
        with pytest.raises(ParameterError, match='"mean", "proportion" and "sum"'):
            opened(FRAME, "random").sampling_errors("y", "median")

    @pytest.mark.parametrize("name", ["median", "min", "max", "count"])
    def test_other_statistics(self, name):
        with pytest.raises(TypeError, match="sampling"):
            getattr(opened(FRAME, "random"), name)("y", eps=1, sampling=0.2)

    def test_deviations_of_an_attack(self):
        with pytest.raises(ParameterError, match=r"bounds=\(-c, c\)"):
            pdrisk.attack.two_worlds("second moments", eps=1, bounds=(0, 1))

    def test_a_design_says_what_was_declared(self):
        assert repr(DESIGNS["few clusters, fpc"][0]).startswith(
            "Design(weights='w', strata='h', psu='v', psus={'n': 31"
        )
