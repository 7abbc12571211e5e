"""Inequality from noisy income bins: the formulas by definition, what they claim, and the answers people get."""

import itertools
import pickle
import warnings
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pdrisk
from margin_tables import laplace, variance
from pdrisk._answer.arithmetic import income_estimates as estimates
from pdrisk._answer.arithmetic.income_estimates import IncomeBins
from pdrisk._answer.arithmetic.measured import Measurements, new_draw
from pdrisk._answer.tables.measured_tables import measurements_of
from pdrisk._core.surveys import inequality as core
from pdrisk._mechanisms.laws.law import Law
from postgres_databases import connected, needs_server

pytestmark = pytest.mark.filterwarnings("ignore:more than half of the people:pdrisk.NoisyReleaseWarning")

EDGES = np.array([0.0, 10.0, 25.0, 60.0, 100.0])


def made_bins(numbers, edges, scale, line=0.6):
    """Bins as they are answered, of noisy numbers by group."""
    law = Law(1, Fraction(1), Fraction(scale), top=(1.0,), least=0.0, whole=True)
    measured = Measurements.of(law, numbers.astype(np.int64).reshape(1, -1), new_draw())
    return IncomeBins.of(measured, np.asarray(edges, dtype=float), line)


@st.composite
def incomes(draw):
    """Edges of some bins and incomes between them, at edges too; each bin but the last holds its left edge alone."""
    size = draw(st.integers(2, 6))
    gaps = draw(st.lists(st.integers(1, 50), min_size=size, max_size=size))
    edges = np.cumsum([draw(st.integers(0, 30)), *gaps]).astype(float)
    parts = st.tuples(st.integers(0, size - 1), st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.999]))
    placed = draw(st.lists(parts, min_size=1, max_size=30))
    values = np.sort([edges[at] + part * (edges[at + 1] - edges[at]) for at, part in placed])
    return edges, values


def counted(values, edges):
    return np.histogram(values, edges)[0].astype(float)[np.newaxis]


def gini_of(values):
    """Mean distance of all pairs, over twice the mean."""
    return np.abs(values[:, np.newaxis] - values).mean() / (2 * values.mean())


def share_of_poorest(values, part):
    """Income of the poorest part of people, of whom one may count in part."""
    own = np.clip(part * len(values) - np.arange(len(values)), 0, 1)
    return (own * np.sort(values)).sum()


def s80s20_of(values):
    poor = share_of_poorest(values, 0.2)
    return np.inf if poor == 0 else (values.sum() - share_of_poorest(values, 0.8)) / poor


class TestOfPeopleInBins:
    """Whatever the incomes in the bins are, the exact measure lies within the range of the bins."""

    @given(incomes())
    def test_gini(self, both):
        edges, values = both
        low, high = core.gini_range(counted(values, edges), edges)
        if values.sum() > 0:
            assert low[0] - 1e-9 <= gini_of(values) <= high[0] + 1e-9

    @given(incomes())
    def test_s80s20(self, both):
        edges, values = both
        value, low, high = core.quintile_ratio(counted(values, edges), edges)
        if values.sum() > 0:
            assert low[0] * (1 - 1e-9) <= s80s20_of(values) <= high[0] * (1 + 1e-9)
        assert low[0] <= value[0] <= high[0]

    @given(incomes(), st.sampled_from([0.1, 0.25, 0.5, 0.9]))
    def test_quantiles(self, both, q):
        edges, values = both
        low, high = core.quantile_edges(counted(values, edges), edges, q, np.full((1, len(edges)), 1e-9))
        # Every number with at most q of the people below and at least q at or below it is a quantile.
        every = [y for y in values if (values < y).mean() <= q + 1e-12 and (values <= y).mean() >= q - 1e-12]
        assert low[0] <= min(every)
        assert max(every) <= high[0]
        assert low[0] <= core.quantile(counted(values, edges), edges, q)[0] <= high[0]

    @given(incomes())
    def test_lorenz(self, both):
        edges, values = both
        people, income = core.lorenz(counted(values, edges), edges)
        assert people[0] == pytest.approx([(values < edge).mean() for edge in edges[:-1]] + [1])
        middles = np.repeat((edges[:-1] + edges[1:]) / 2, counted(values, edges)[0].astype(int))
        assert income[0] == pytest.approx([middles[middles < edge].sum() / middles.sum() for edge in edges])

    def test_evenly_spread(self):
        """Incomes that are spread evenly in each bin have the measures that are shown, but for their number."""
        numbers = np.array([[3.0, 0.0, 5.0, 2.0]])
        spread = [
            np.linspace(low, high, 2 * 300 * int(n) + 1)[1::2]
            for low, high, n in zip(EDGES, EDGES[1:], numbers[0], strict=False)
        ]
        values = np.concatenate(spread)
        assert core.gini(numbers, EDGES)[0] == pytest.approx(gini_of(values), rel=1e-4)
        assert core.quintile_ratio(numbers, EDGES)[0][0] == pytest.approx(s80s20_of(values), rel=1e-4)
        assert core.quantile(numbers, EDGES, 0.5)[0] == pytest.approx(np.quantile(values, 0.5), rel=1e-3)
        assert core.quantile(numbers, EDGES, 0.65)[0] == pytest.approx(25 + 35 * 3.5 / 5)

    def test_the_range_of_gini_is_attained(self):
        """By the best of all grids of a part of each bin at its lower edge, the others at its upper one."""
        edges, numbers, steps = np.array([1.0, 4.0, 6.0, 12.0]), np.array([[2.0, 3.0, 1.0]]), 12
        found = []
        for parts in itertools.product(np.linspace(0, 1, steps + 1), repeat=3):
            values = np.repeat(np.stack([edges[:-1], edges[1:]]).T.ravel(), 1)
            weight = np.stack([numbers[0] * (1 - np.array(parts)), numbers[0] * parts]).T.ravel()
            apart = (weight[:, np.newaxis] * weight * np.abs(values[:, np.newaxis] - values)).sum()
            found.append(apart / (2 * weight.sum() * (weight * values).sum()))
        low, high = core.gini_range(numbers, edges)
        assert max(found) <= high[0] <= max(found) + 0.002
        middles = [
            gini_of(np.repeat(means, numbers[0].astype(int))) for means in itertools.product([1, 4], [4, 6], [6, 12])
        ]
        assert low[0] == pytest.approx(min(middles))

    def test_nobody(self):
        nobody = np.zeros((1, 4))
        assert np.isnan(core.gini(nobody, EDGES)).all()
        assert [each.tolist() for each in core.gini_range(nobody, EDGES)] == [[0], [1]]
        assert np.isnan(core.quintile_ratio(nobody, EDGES)[0]).all()
        assert np.isnan(core.quantile(nobody, EDGES, 0.5)).all()
        assert np.isnan(core.lorenz(nobody, EDGES)[1]).all()
        assert core.gini_slopes(nobody, EDGES).tolist() == [[0, 0, 0, 0]]

    def test_nearly_all_in_the_first_bin(self):
        """One of them may have everything."""
        assert core.gini_range(np.array([[50.0, 0.0]]), np.array([0.0, 1.0, 2.0]))[1] == pytest.approx(1)

    def test_by_hand(self):
        # Two people with 0 and with 0 to 1: their distance is .5 on average, and two of the upper bin a third apart. So
        # (2 * .5 + 1/3) / (2 * 2 * .5).
        assert core.gini(np.array([[1.0, 1.0]]), np.array([0.0, 1e-12, 1.0]))[0] == pytest.approx(2 / 3)


class TestNoise:
    """What is computed of noisy bins, by the law of the noise."""

    def test_both_parts_of_gini_are_unbiased(self):
        """Expectations over discrete Laplace noise in three bins, summed over all values that it takes."""
        edges, exact, scale = np.array([0.0, 2.0, 5.0, 9.0]), np.array([[3.0, 4.0, 2.0]]), 0.6
        k = np.arange(-24, 25)
        chance = np.exp(-np.abs(k) / scale)
        chance /= chance.sum()
        noise = np.array(list(itertools.product(k, repeat=3)), dtype=float)
        weight = np.prod([*itertools.product(chance, repeat=3)], axis=1)
        parts = core.gini_parts(exact + noise, edges, variance(scale))
        assert [weight @ part for part in parts] == pytest.approx([part[0] for part in core.gini_parts(exact, edges)])
        biased = core.gini_parts(exact + noise, edges)
        assert all(
            abs(weight @ part / own[0] - 1) > 0.005
            for part, own in zip(biased, core.gini_parts(exact, edges), strict=True)
        )

    def test_slopes_are_derivatives(self):
        numbers, step = np.array([[3.0, 1.0, 5.0, 2.0]]), 1e-6
        for at in range(4):
            moved = numbers + step * np.eye(4)[at]
            change = (core.gini(moved, EDGES) - core.gini(numbers, EDGES)) / step
            assert core.gini_slopes(numbers, EDGES)[0, at] == pytest.approx(change[0], rel=1e-4)

    @given(st.lists(st.integers(-9, 20), min_size=2, max_size=5))
    def test_cleaned_is_the_nearest(self, numbers):
        """Of all sets of empty bins the one that leaves the nearest numbers of at least 0."""
        noisy = np.array(numbers, dtype=float)
        found = core.cleaned(noisy)
        if noisy.sum() <= 0:
            assert found.tolist() == [0.0] * len(noisy)
            return
        assert found.sum() == pytest.approx(noisy.sum())
        assert found.min() >= 0
        others = []
        for kept in itertools.product([False, True], repeat=len(noisy)):
            if any(kept):
                own = np.where(kept, noisy - (noisy[list(kept)].sum() - noisy.sum()) / sum(kept), 0)
                others.append(((own - noisy) ** 2).sum() if own.min() >= 0 else np.inf)
        assert ((found - noisy) ** 2).sum() == pytest.approx(min(others))

    def test_edges_of_quantiles_by_definition(self):
        """The hull of all bins that may hold the quantile, edge by edge, of numbers below 0 too."""
        random = np.random.default_rng(5)
        for _ in range(300):
            numbers, q = random.integers(-4, 9, 4).astype(float), random.choice([0.2, 0.5, 0.75])
            reach = random.uniform(0, 6, 5)
            over = [numbers[:k].sum() - q * numbers.sum() for k in range(5)]
            starts = [over[k] <= reach[k] or k == 0 for k in range(5)]
            ends = [over[k] >= -reach[k] or k == 4 for k in range(5)]
            held = [k for k in range(4) if starts[k] and ends[k + 1]]
            low, high = core.quantile_edges(numbers[np.newaxis], EDGES, q, reach[np.newaxis])
            assert (low[0], high[0]) == (EDGES[held[0]], EDGES[held[-1] + 1])

    def test_reach_of_quantiles(self):
        """By simulation: what a bin's edge is off by stays within its reach 95 times out of 100, and not 98."""
        random, number, scale, q = np.random.default_rng(6), 8, 2.0, 0.3
        bins = made_bins(np.full((1, number), 100.0), np.arange(number + 1.0), scale)
        noise = laplace(random, scale, (40_000, number))
        off = np.abs(np.cumsum(noise, axis=1) - q * noise.sum(axis=1, keepdims=True))
        seen = {}
        original = estimates.quantile_edges
        estimates.quantile_edges = lambda *said: seen.update(reach=said[-1]) or original(*said)
        try:
            bins.quantile(q)
        finally:
            estimates.quantile_edges = original
        within = (off <= seen["reach"][0, 1:]).mean(axis=0)
        assert (within >= 0.948).all()
        assert (within <= 0.975).all()

    def test_intervals_come_from_a_public_seed(self):
        """The same bins have the same intervals, and a group's does not depend on other groups."""
        numbers = np.array([[50.0, 80, 40, 20], [20, 30, 20, 9], [9, 9, 9, 9]])
        both, again, alone = (made_bins(numbers[:at], EDGES, 2.0) for at in (3, 3, 1))
        assert np.array_equal(both.s80s20(), again.s80s20())
        assert np.array_equal([each[0] for each in both.s80s20()], [each[0] for each in alone.s80s20()])
        assert [each[0] for each in both.gini()] == pytest.approx([each[0] for each in alone.gini()])

    def test_gini_of_all_together_has_the_noise_of_all(self):
        cells = np.array([[20.0, 40, 30, 10], [30, 30, 9, 1], [-2, 5, 9, 3]])
        value, _, _ = made_bins(cells, EDGES, 3.0).gini()
        noise = variance(3.0)
        assert value[:3] == pytest.approx(core.gini(cells, EDGES, noise))
        assert value[3] == pytest.approx(core.gini(cells.sum(axis=0, keepdims=True), EDGES, 3 * noise)[0])

    @pytest.mark.parametrize("people", [40, 4000])
    def test_gini_reaches_as_far_as_its_noise(self, people):
        """The larger one of two reaches, simulated: by derivatives, and of noisy bins around clean ones."""
        random, scale = np.random.default_rng(8), 2.0
        numbers = people * np.array([[0.2, 0.4, 0.3, 0.1]])
        (value,), (low,), (high,) = made_bins(numbers, EDGES, scale).gini()
        noise = laplace(random, scale, (20_000, 4))
        straight = np.quantile(np.abs(noise @ core.gini_slopes(numbers, EDGES)[0]), 0.95)
        around = core.gini(numbers, EDGES)[0]
        bent = np.abs(np.clip(core.gini(numbers + noise, EDGES, variance(scale)), 0, 1) - around)
        reach = max(straight, np.quantile(np.where(np.isnan(bent), 1, bent), 0.95))
        least, most = (each[0] for each in core.gini_range(numbers, EDGES))
        ends = max(value - reach - (around - least), 0), min(value + reach + most - around, 1)
        assert (low, high) == pytest.approx(ends, abs=0.13 * reach)

    def test_nobody_at_all(self):
        """Where there is more noise than people, no value is shown, and any may be true."""
        bins = made_bins(np.array([[-3.0, 1.0, -2.0, 0.0]]), EDGES, 2.0)
        ends = {"gini": (0, 1), "poverty": (0, 1), "s80s20": (1, np.inf), "median": (0, 100)}
        for name, (low, high) in ends.items():
            value, *found = (float(each[0]) for each in getattr(bins, name)())
            assert np.isnan(value)
            assert found == [low, high]

    @pytest.mark.slow
    @pytest.mark.parametrize("scale", [1.0, 4.0, 12.0])
    def test_coverage(self, scale):
        """Of exact measures of incomes in three groups and all together, by each interval."""
        random = np.random.default_rng(7)
        edges = np.array([0.0, *np.arange(4, 41, 2), 50, 65, 90])
        people = [np.minimum(random.lognormal(2.8 + at / 10, 0.5, n), 90) for at, n in enumerate([300, 600, 1200])]
        people.append(np.concatenate(people))
        line = 0.6 * np.median(people[-1])
        exact = {
            "gini": [gini_of(y) for y in people],
            "poverty": [(y < line).mean() for y in people],
            "s80s20": [s80s20_of(np.sort(y)) for y in people],
            "median": [np.median(y) for y in people],
        }
        cells = np.stack([np.histogram(y, edges)[0] for y in people[:-1]])
        covered = {name: np.zeros(4) for name in exact}
        for _ in range(200):
            bins = made_bins(cells + laplace(random, scale, cells.shape), edges, scale)
            for name, goal in exact.items():
                _, low, high = getattr(bins, name)()
                covered[name] += (low <= goal) & (goal <= high)
        assert {name: (each / 200).min() >= 0.93 for name, each in covered.items()} == dict.fromkeys(exact, True)
        assert {name: (each / 200).mean() >= 0.95 for name, each in covered.items()} == dict.fromkeys(exact, True)


ROWS = pd.DataFrame(
    {
        "hid": np.arange(1200) // 3,
        "region": np.tile(["north", "south", "west"], 400),
        "net pay": np.r_[np.random.default_rng(1).lognormal(3, 0.6, 1190).round(1), [-9, -9, 0, 10, 60, 500]].tolist()
        + [np.nan] * 4,
    }
)
TEXTS = ROWS.astype({"region": "string"})  # under a ledger, objects of pandas 2 may be anything
BY = {"by": "region", "keys": ["north", "south"]}
LISTED = [0, 10, 20.5, 40, 60, 100]


def held(rows, edges):
    """Exact numbers of rows by region and bin, those beyond the edges in the outer bins."""
    pay = rows["net pay"].clip(edges[0], edges[-1])
    return [
        int(each) for region in BY["keys"] for each in np.histogram(pay[rows["region"] == region].dropna(), edges)[0]
    ]


def in_duckdb(rows):
    con = duckdb.connect()
    con.register("given", rows)
    con.execute("CREATE TABLE people AS SELECT * FROM given")
    return con, "people"


class TestBins:
    """One release of numbers of people by group and bin, whatever holds the data."""

    @pytest.mark.parametrize("made", [lambda rows: rows, pl.from_pandas, in_duckdb], ids=["pandas", "Polars", "DuckDB"])
    def test_numbers(self, made, noiseless):
        data = pdrisk.Dataset(made(ROWS))
        found = data.inequality("net pay", LISTED, eps=1, **BY)
        assert found.bins["value"].tolist() == held(ROWS, LISTED)
        some = data.query("`net pay` > 15").inequality("net pay", LISTED, eps=1, where="`net pay` < 70", **BY)
        assert some.bins["value"].tolist() == held(ROWS.query("15 < `net pay` < 70"), LISTED)
        half = data.assign(half="`net pay` / 2").inequality("half", LISTED, eps=1, **BY)
        assert half.bins["value"].tolist() == held(ROWS.assign(**{"net pay": ROWS["net pay"] / 2}), LISTED)

    @needs_server
    def test_on_a_server(self, url, noiseless):
        with connected(url) as connection:
            connection.execute('CREATE TABLE people (hid int, region text, "net pay" double precision)')
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO people VALUES (%s, %s, %s)", ROWS.values.tolist())
            found = pdrisk.Dataset((connection, "people")).inequality("net pay", LISTED, eps=1, **BY)
            assert found.bins["value"].tolist() == held(ROWS, LISTED)
            fine = [0, *np.linspace(1, 100, 400)]
            many = pdrisk.Dataset((connection, "people")).inequality("net pay", fine, eps=1, **BY)
            assert many.bins["value"].tolist() == held(ROWS, fine)

    def test_missing_codes_are_in_no_bin(self, noiseless):
        coded = ROWS.dprisk.declare(missing={"net pay": [-9]})
        found = coded.dprisk.inequality("net pay", LISTED, eps=1, **BY)
        assert found.bins["value"].tolist() == held(ROWS[ROWS["net pay"] != -9], LISTED)

    def test_a_mask(self, noiseless):
        mask = ROWS["net pay"] > 15
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, where=mask, **BY)
        assert found.bins["value"].tolist() == held(ROWS[mask], LISTED)

    def test_labels(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, **BY).bins
        assert found.index.names == ["region", "net pay"]
        assert found.columns.tolist() == ["value", "low", "high", "eps", "worst_case"]
        intervals = found.loc["south"].index
        assert [each.left for each in intervals] + [intervals[-1].right] == LISTED
        assert [each.closed for each in intervals] == ["left"] * 4 + ["both"]
        text = " ".join(pdrisk.explain(found, "publication").split())
        assert "values beyond count in the first and the last" in text
        assert "declared by the publisher" in text

    def test_a_number_of_bins_divides_the_bounds(self, noiseless):
        found = ROWS["net pay"].dprisk.inequality(4, eps=1, bounds=(0, 100))
        assert [each.left for each in found.bins.index] == [0, 25, 50, 75]
        assert found.bins["value"].sum() == 1196

    def test_a_column_that_has_the_name_of_the_bins(self, noiseless):
        found = ROWS.assign(**{"net pay bin": 1}).dprisk.inequality("net pay", LISTED, eps=1, **BY)
        assert found.bins["value"].tolist() == held(ROWS, LISTED)

    def test_bins_are_measured(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=0.5, measured=True, **BY)
        (measured,) = measurements_of(found.bins)
        assert float(measured.law.scale) == 2
        assert found.bins["measured"].tolist() == measured.numbers[0].tolist()

    def test_members_of_a_household(self, noiseless):
        """At most k rows of each in all bins of all groups together, with k times the noise."""
        data = pdrisk.Dataset(ROWS, person="hid", unit_label="household")
        found = data.inequality("net pay", LISTED, eps=1, rows=3, **BY)
        assert found.bins["value"].tolist() == held(ROWS, LISTED)
        (measured,) = measurements_of(found.bins)
        assert float(measured.law.scale) == 3
        one = data.inequality("net pay", LISTED, eps=1, per_person="one", **BY)
        assert one.bins["value"].sum() <= 400


class TestTable:
    """One row for each group and measure, and for all groups together."""

    def test_index_and_columns(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, **BY)
        measures = ["gini", "poverty", "s80s20", "median"]
        assert found.table.index.names == ["region", "measure"]
        assert found.table.index.tolist() == [(g, m) for g in ["north", "south", pdrisk.ALL] for m in measures]
        assert found.table.columns.tolist() == ["value", "low", "high"]
        assert (found.table["low"] <= found.table["value"]).all()
        assert (found.table["value"] <= found.table["high"]).all()
        alone = ROWS.dprisk.inequality("net pay", LISTED, eps=1, of=["median", "gini"])
        assert alone.table.index.tolist() == ["median", "gini"]
        assert alone.table.index.name == "measure"
        two = ROWS.assign(old=ROWS["net pay"] > 20).dprisk.inequality(
            "net pay", LISTED, eps=1, of="gini", by=["old", "region"], keys={"old": [True], "region": ["west"]}
        )
        assert two.table.index.tolist() == [(True, "west", "gini")]  # all together are this group

    def test_values(self, noiseless):
        """Next to no noise at eps 9: exact measures of the rows lie in the intervals, and the line is that of all."""
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=9, **BY)
        pay = ROWS["net pay"].clip(0, 100).dropna()
        groups = {each: pay[ROWS["region"] == each].to_numpy() for each in BY["keys"]}
        groups[pdrisk.ALL] = np.concatenate([*groups.values()])
        line = 0.6 * np.median(groups[pdrisk.ALL])
        for group, values in groups.items():
            exact = [gini_of(values), (values < line).mean(), s80s20_of(np.sort(values)), np.median(values)]
            rows = found.table.loc[group]
            assert (rows["low"] <= exact).all()
            assert (exact <= rows["high"]).all()

    def test_the_line_is_a_share_of_the_median(self, noiseless):
        rows = pd.DataFrame({"pay": [5.0] * 30 + [25.0] * 70})
        half, all_of_it = (rows.dprisk.inequality("pay", [0, 10, 20, 30], eps=9, line=line) for line in (0.6, 1))
        # The median is 20 + 10 * 20 / 70 = 22.86: 60 % of it lie in the empty bin, all of it in the last.
        assert half.table.loc["poverty", "value"] == pytest.approx(0.3)
        assert all_of_it.table.loc["poverty", "value"] == pytest.approx(0.3 + 0.7 * 0.285714, abs=1e-5)
        assert all_of_it.line == 1

    def test_the_bin_of_the_line_is_left_open(self, noiseless):
        rows = pd.DataFrame({"pay": [10.0] * 20 + [25.0] * 80})
        found = rows.dprisk.inequality("pay", [0, 10, 20, 30], eps=9).table.loc["poverty"]
        assert found["low"] <= 0.001  # none, if they had 19
        assert 0.2 <= found["high"] < 0.21  # all of them are below 60 % of 25

    def test_quantiles(self, noiseless):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=9, **BY)
        listed = found.quantile([0.1, 0.5])
        assert listed.index.tolist() == [(g, q) for g in ["north", "south", pdrisk.ALL] for q in (0.1, 0.5)]
        assert (
            listed.xs(0.5, level="q")["value"].tolist() == found.table.xs("median", level="measure")["value"].tolist()
        )
        assert found.quantile(0.1).index.names == ["region", "q"]

    def test_lorenz(self, noiseless):
        rows = pd.DataFrame({"g": ["a"] * 4 + ["b"] * 2, "pay": [2, 2, 7, 7, 3, 3]})
        found = rows.dprisk.inequality("pay", [0, 4, 10], eps=9, by="g", keys=["a", "b"])
        curve = found.lorenz("a")
        assert curve.index.tolist() == [0, 4, 10]
        assert curve["people"].tolist() == [0, 0.5, 1]
        assert curve["income"].tolist() == [0, pytest.approx(4 / 18), 1]
        assert (
            found.lorenz()["people"].tolist()
            == found.lorenz(pdrisk.ALL)["people"].tolist()
            == [0, pytest.approx(4 / 6), 1]
        )

    def test_published_and_kept(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, curator=True, **BY)
        assert "n" in found.bins
        assert "n" not in pdrisk.public(found.bins)
        assert pdrisk.public(found.table).equals(found.table)
        assert set(pdrisk.quality(found.table)) <= {"A", "B", "C"}
        again = pickle.loads(pickle.dumps(found))
        assert again.table.equals(found.table)
        assert again.quantile(0.2).equals(found.quantile(0.2))
        assert "gini" in repr(found)
        assert "<table" in found._repr_html_()

    def test_pictures(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, **BY)
        labels = [text.get_text() for text in found.plot().axes[0].get_legend().get_texts()]
        assert labels == ["north", "south", "(all)"]
        assert len(found.plot(["north"]).axes[0].lines) == 2
        assert ROWS.dprisk.inequality("net pay", LISTED, eps=1).plot().axes[0].get_legend() is None
        many = ROWS.assign(g=np.arange(1200) % 9).dprisk.inequality("net pay", LISTED, eps=1, by="g", keys=range(9))
        assert 2 <= len(many.plot().axes[0].get_legend().get_texts()) <= 3

    def test_a_ledger_remembers(self, book):
        ledger = book(eps=3)
        data = pdrisk.Dataset(TEXTS, ledger=ledger)
        first = data.inequality("net pay", LISTED, eps=1, **BY)
        again = data.inequality("net pay", LISTED, eps=1, **BY)
        assert first.table.equals(again.table)
        poor = data.inequality("net pay", LISTED, eps=1, of="poverty", line=0.5, **BY)
        assert poor.bins["value"].tolist() == first.bins["value"].tolist()
        assert ledger.remaining().eps == 2
        data.inequality("net pay", LISTED[:-1], eps=1, **BY)
        assert ledger.remaining().eps == 1

    def test_risk_and_success(self):
        for asked in ({"risk": 0.7310585786300049}, {"success": 0.7}):
            found = ROWS.dprisk.inequality("net pay", LISTED, **asked, **BY)
            same = ROWS.dprisk.count(**asked, **BY)
            assert found.bins["eps"].iloc[0] == pytest.approx(same["eps"].iloc[0])


class TestEverybodyInOneBin:
    """Values are a convention then, intervals hold all that bins leave open, and a warning says so."""

    EDGES = (0, 500, 1000, 1500, 2000)

    @pytest.mark.parametrize(
        "incomes",
        [
            np.full(300, 100.0), np.append(np.zeros(299), 499.0), np.repeat([0.0, 499.0], 150),
            np.full(300, 1200.0), np.repeat([1000.0, 1499.0], 150), np.linspace(1000, 1499, 300),
            np.append(np.full(299, 1000.0), 1499.0), np.full(300, 9e9),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("eps", [0.3, 2.0])
    def test_the_interval_holds_the_exact_value(self, incomes, eps):
        """By the definition over all pairs, of incomes cut at the edges: in 40 draws at least 35 times."""
        cut, frame = np.clip(incomes, 0, 2000), pd.DataFrame({"x": incomes})
        exact, held = gini_of(cut) if cut.any() else 0.0, 0
        for _ in range(40):
            with pytest.warns(pdrisk.NoisyReleaseWarning, match="half of the people seem to be in one income bin"):
                row = frame.dprisk.inequality("x", self.EDGES, eps=eps, of="gini").table.loc["gini"]
            held += row["low"] - 1e-9 <= exact <= row["high"] + 1e-9
        assert held >= 35

    def test_what_the_first_bin_leaves_open(self, noiseless):
        frame = pd.DataFrame({"x": np.full(500, 100.0)})
        with pytest.warns(pdrisk.NoisyReleaseWarning):
            row = frame.dprisk.inequality("x", self.EDGES, eps=1, of="gini").table.loc["gini"]
        assert row["value"] == pytest.approx(1 / 3, abs=0.01)  # of evenly spread incomes from 0
        assert (row["low"], row["high"]) == (0.0, 1.0)

    def test_some_groups(self):
        even = np.linspace(0, 1999, 2000)
        frame = pd.DataFrame({"x": np.append(even, np.full(500, 700.0)), "g": ["a"] * 2000 + ["b"] * 500})
        with pytest.warns(pdrisk.NoisyReleaseWarning, match="people in 1 of 3 groups"):  # a, b and all together
            found = frame.dprisk.inequality("x", self.EDGES, eps=5, by="g", keys=["a", "b"])
        assert found.is_crowded.tolist() == [False, True, False]

    def test_no_warning_where_people_are_spread_or_only_edges_are_asked_for(self, recwarn):
        frame = pd.DataFrame({"x": np.linspace(0, 1999, 2000)})
        frame.dprisk.inequality("x", self.EDGES, eps=5)
        frame.assign(x=700.0).dprisk.inequality("x", self.EDGES, eps=5, of=["median", "poverty"])
        assert not [each for each in recwarn.list if "income bin" in str(each.message)]

    def test_what_a_ledger_paid_for_is_not_lost(self, book):
        frame = pd.DataFrame({"x": np.full(500, 700.0)})
        with warnings.catch_warnings():
            warnings.simplefilter("error", pdrisk.NoisyReleaseWarning)
            with pytest.raises(pdrisk.NoisyReleaseWarning, match="more than half"):
                frame.dprisk.inequality("x", self.EDGES, eps=1)
            assert frame.dprisk.inequality("x", self.EDGES, eps=1, ledger=book(eps=1)).is_crowded.all()


class TestBadInput:
    """Refused before anything is paid, with what to write instead."""

    @pytest.mark.parametrize(
        ("bins", "options", "said"),
        [
            ([0, 10], {}, "2 to 500 bins, not 1"),
            ([0, *range(1, 502)], {}, "2 to 500 bins, not 501"),
            ([0, 20, 10], {}, "numbers that rise"),
            ([0, 10, 10], {}, "numbers that rise"),
            ([0, 10, float("inf")], {}, "finite"),
            ("auto", {}, "a list of edges"),
            (10, {}, "which are not declared"),
            ([0, 10, 20], {"bounds": (0, 20)}, "leave bounds out"),
            ([-10, 0, 10], {}, r"below 0: begin the edges with 0.*of=\['poverty', 'median'\]"),
            (LISTED, {"of": "ginny"}, "Did you mean 'gini'"),
            (LISTED, {"of": []}, "lists no measure"),
            (LISTED, {"of": 3}, "of lists measures"),
            (LISTED, {"line": 0}, "above 0 and at most 1"),
            (LISTED, {"line": 1.1}, "above 0 and at most 1"),
            (LISTED, {"line": "half"}, "line must be a number"),
            (LISTED, {"eps": None}, "eps="),
            (LISTED, {"by": "region", "keys": "private", "delta": 1e-6}, "public list of its groups"),
            (LISTED, {"by": "region", "keys": "observed"}, "public list of its groups"),
            (LISTED, {"by": "region"}, "needs the public list"),
            (LISTED, {"by": "region", "keys": ["north", "(all)"]}, "which is a key: name that key otherwise"),
            (LISTED, {"person": "hid"}, "one person may have several: pass rows=k"),
            (LISTED, {"person": "hid", "per_person": "mean"}, "makes one number of several: pass rows=k"),
            (LISTED, {"max_noise95": 0.5}, "nothing was asked"),
            (LISTED, {"mechanism": "two_sums"}, "cannot answer count"),
        ],
    )  # fmt: skip
    def test_refused(self, bins, options, said):
        with pytest.raises((pdrisk.ParameterError, pdrisk.ColumnTypeError), match=said):
            ROWS.dprisk.inequality("net pay", bins, **{"eps": 1, **options})

    def test_edges_beyond_the_bounds(self):
        declared = ROWS.dprisk.declare(bounds={"net pay": (0, 80)})
        with pytest.raises(
            pdrisk.ParameterError, match="from 0 to 100, beyond the declared bounds of 'net pay', 0 to 80"
        ):
            declared.dprisk.inequality("net pay", LISTED, eps=1)

    def test_below_0_median_and_poverty_alone(self):
        found = ROWS.dprisk.inequality("net pay", [-10, *LISTED], eps=1, of=["median", "poverty"])
        assert found.table.index.tolist() == ["median", "poverty"]
        with pytest.raises(pdrisk.ParameterError, match="at least 0"):
            found.lorenz()

    def test_columns(self):
        with pytest.raises(pdrisk.UnknownColumnError, match="Did you mean 'net pay'"):
            ROWS.dprisk.inequality("netpay", LISTED, eps=1)
        with pytest.raises(pdrisk.ColumnTypeError, match="inequality needs numbers"):
            ROWS.dprisk.inequality("region", LISTED, eps=1)
        with pytest.raises(pdrisk.ColumnTypeError, match="whose name is a text"):
            ROWS.rename(columns={"net pay": 3}).dprisk.inequality(3, LISTED, eps=1)

    def test_of_the_answer(self):
        found = ROWS.dprisk.inequality("net pay", LISTED, eps=1, **BY)
        with pytest.raises(pdrisk.ParameterError, match=r"unknown group 'nord'.*Did you mean 'north'"):
            found.lorenz("nord")
        with pytest.raises(pdrisk.ParameterError, match="above 0 and below 1"):
            found.quantile(1)
        with pytest.raises(pdrisk.ParameterError, match="list of 1 to"):
            found.quantile([])
        with pytest.raises(pdrisk.ParameterError, match="1 to 6 curves"):
            found.plot([])
        with pytest.raises(pdrisk.ColumnTypeError, match="a list of keys"):
            found.plot("north")

    @pytest.mark.parametrize("policy", [{"least_group": {"size": 9, "eps": "0.1"}}, {"round_to": {"count": 5}}])
    def test_rules_that_hide_bins(self, policy, book):
        ledger = book(eps=3, policy=policy)
        with pytest.raises(pdrisk.PolicyError, match="made of all income bins"):
            pdrisk.Dataset(TEXTS, ledger=ledger).inequality("net pay", LISTED, eps=1, **BY)
        assert ledger.remaining().eps == 3
