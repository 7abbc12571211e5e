"""A sample finds the order statistics of large columns fast, and never decides what they are."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pdrisk._core.summary import Needs
from pdrisk._core.universe import Universe
from pdrisk.engines.numpy import ranks, small_groups
from pdrisk.engines.numpy.chunks import SIZE
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.looks import GroupedRows
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.engines.numpy.small_groups import OrderedGroups

QUANTILES = (0.0, 0.001, 0.1, 0.5, 0.77, 1.0)
NEEDS = Needs(windows=frozenset(QUANTILES))
UNIVERSE = Universe(0.0, 1000.0)
N = ranks.WORTH_SAMPLING * ranks.SAMPLE + 11
GROUPS = 5
N_OF_GROUPS = ranks.WORTH_SAMPLING * ranks.SAMPLE_OF_MANY * GROUPS + 11


def columns(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    uniform = rng.uniform(-50, 1050, n)
    heaped = rng.gamma(2, 50, n).round(-1)
    return {
        "uniform": uniform,
        "heaped": heaped,
        "constant": np.full(n, 7.0),
        "two values": rng.integers(0, 2, n).astype(float),
        "sorted": np.sort(uniform),
        "reversed": np.sort(uniform)[::-1],
        "99 % missing": np.where(rng.random(n) < 0.99, np.nan, uniform),
        "all missing": np.full(n, np.nan),
        "infinite": np.where(rng.random(n) < 0.5, np.inf, -np.inf),
        "one outlier": np.r_[999.0, np.full(n - 1, 3.0)],
        "whole numbers": rng.integers(0, 300, n, dtype=np.int16),
    }


NAMES = list(columns(1))


def assert_exact(values, windows, group: int = 0) -> None:
    floats = np.asarray(values, dtype=float)
    records = np.sort(np.clip(floats[~np.isnan(floats)], UNIVERSE.lo, UNIVERSE.hi))
    n = len(records)
    for q, window in windows.items():
        start = math.floor(n * Fraction(q)) - (q > 0.5)
        wanted = range(start, start + (3 if q == 0.5 else 4))  # the median's fourth may be any value
        expected = [UNIVERSE.lo if k < 1 else UNIVERSE.hi if k > n else records[k - 1] for k in wanted]
        assert window[: len(wanted), group].tolist() == expected, q


def groups_of(n: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    share = {"even": [0.18] * 5 + [0.1], "uneven": [0.9, 0.09, 0.001, 0.0, 0.0001, 0.0089]}[kind]
    return rng.choice(GROUPS + 1, n, p=share).astype(np.int32)  # the last is no group


class TestOneGroup:
    @pytest.mark.parametrize("name", NAMES)
    def test_any_column(self, name):
        values = columns(N)[name]
        summary = summary_of_one(values, UNIVERSE, NEEDS)
        assert summary.n[0] == np.count_nonzero(values == values)  # NaN is not equal to itself
        assert_exact(values, summary.windows)

    @pytest.mark.parametrize("name", ["uniform", "heaped", "sorted"])
    def test_selected_rows(self, name):
        values = columns(N)[name]
        for selected in (values > 200, np.arange(N) % 1000 == 0, np.arange(N) == 5):
            assert_exact(values[selected], summary_of_one(values, UNIVERSE, NEEDS, selected).windows)

    def test_a_sample_that_misses_the_data(self):
        # The sample's rows are the same every time: here they hold nothing of what the other rows hold.
        values = np.random.default_rng(5).uniform(400, 600, N)
        rows = np.random.default_rng(0).integers(0, N, ranks.SAMPLE)
        values[rows] = np.random.default_rng(6).uniform(0, 1, len(rows))
        lower, upper = ranks._band(GroupedRows(values, UNIVERSE, None, None, 1), 0.5)
        assert upper[0] < 1 < np.median(values)  # the attack works: the band is wrong
        assert lower[0] > 0
        assert_exact(values, summary_of_one(values, UNIVERSE, NEEDS).windows)


class TestManyGroups:
    @pytest.mark.parametrize("kind", ["even", "uneven"])
    @pytest.mark.parametrize("name", NAMES)
    def test_any_column(self, name, kind):
        values, codes = columns(N_OF_GROUPS)[name], groups_of(N_OF_GROUPS, kind)
        summary = summary_of_groups(values, codes, GROUPS, UNIVERSE, NEEDS)
        for group in range(GROUPS):
            assert summary.n[group] == np.count_nonzero((values == values) & (codes == group))
            assert_exact(values[codes == group], summary.windows, group)

    def test_groups_on_either_side_of_one_another(self):
        codes = groups_of(N_OF_GROUPS, "even")
        values = codes * 100.0 + np.random.default_rng(4).uniform(0, 1, N_OF_GROUPS)
        summary = summary_of_groups(values, codes, GROUPS, UNIVERSE, NEEDS)
        for group in range(GROUPS):
            assert_exact(values[codes == group], summary.windows, group)


class TestSmallGroups:
    """Groups of too few rows for a sample are sorted by cells, and where these do not tell the order, by record."""

    MANY = 300

    def codes(self, n: int) -> np.ndarray:
        return np.random.default_rng(8).integers(3, self.MANY + 1, n).astype(np.int32)  # groups 0 to 2 have no rows

    @pytest.mark.parametrize("bits", [small_groups.CELL_BITS, 3, 0])
    @pytest.mark.parametrize("name", NAMES)
    def test_any_column(self, name, bits, monkeypatch):
        monkeypatch.setattr(small_groups, "CELL_BITS", bits)
        n = 25 * self.MANY
        values, codes = columns(n)[name], self.codes(n)
        summary = summary_of_groups(values, codes, self.MANY, UNIVERSE, NEEDS)
        for group in range(self.MANY):
            assert_exact(values[codes == group], summary.windows, group)

    @pytest.mark.parametrize("bounds", [(0.0, 1000.0), (1e6, 1e6 + 1), (-1e-99, 1e-99), (-1e100, 1e100), (-7.3, -7.2)])
    @pytest.mark.parametrize("q", QUANTILES)
    def test_little_is_looked_at(self, q, bounds):
        universe, n = Universe(*bounds), 20 * self.MANY
        values, codes = universe.lo + np.random.default_rng(9).uniform(-0.1, 1.1, n) * universe.width, self.codes(n)
        look = OrderedGroups.of(GroupedRows(values, universe, None, codes, self.MANY), None).look(q)
        assert look.m.sum() < n / 2
        first, last = look.span()
        assert (look.below < np.maximum(first, 1)).all()
        assert ((last <= look.below + look.m) | (first > last)).all()

    def test_where_rows_are_missing(self):
        """A record is found again by its row, wherever others are left out: missing, or of no group."""
        n = 3 * SIZE
        rng = np.random.default_rng(2)
        values, codes = rng.uniform(0, 1000, n), rng.integers(0, self.MANY + 1, n).astype(np.int32)
        values[SIZE + rng.integers(0, SIZE, 999)] = np.nan  # in one piece of three
        codes[2 * SIZE :] %= self.MANY  # and rows of no group in the others
        summary = summary_of_groups(values, codes, self.MANY, UNIVERSE, NEEDS)
        for group in range(self.MANY):
            assert_exact(values[codes == group], summary.windows, group)

    def test_the_clamped_are_counted_once(self):
        values, codes = columns(900)["uniform"], groups_of(900, "even")
        summary = summary_of_groups(values, codes, GROUPS, UNIVERSE, NEEDS)
        outside = (values < UNIVERSE.lo) | (values > UNIVERSE.hi)
        assert summary.clamped.tolist() == np.bincount(codes[outside], minlength=GROUPS + 1)[:GROUPS].tolist()


INF = np.inf
WRONG = {
    "above": (2000.0, 3000.0),
    "below": (-20.0, -10.0),
    "too high": (700.0, 900.0),
    "too low": (1.0, 2.0),
    "empty": (500.0, 400.0),
    "one point": (7.0, 7.0),
    "half open above": (990.0, INF),
    "half open below": (-INF, 0.5),
}


class TestWrongBand:
    """Whatever band the sample suggests, the counts expose it where it misses."""

    @pytest.mark.parametrize("band", WRONG.values(), ids=WRONG)
    @pytest.mark.parametrize("name", ["uniform", "heaped", "constant", "all missing"])
    def test_one_group(self, monkeypatch, name, band):
        monkeypatch.setattr(ranks, "_band", lambda *_: (np.array([band[0]]), np.array([band[1]])))
        values = columns(500)[name]
        assert_exact(values, summary_of_one(values, UNIVERSE, NEEDS).windows)
        assert_exact(values[values > 30], summary_of_one(values, UNIVERSE, NEEDS, values > 30).windows)

    @pytest.mark.parametrize("wrong", [[0], [4], [1, 3], [0, 1, 2, 3, 4]])
    @pytest.mark.parametrize("band", WRONG.values(), ids=WRONG)
    def test_some_of_many_groups(self, monkeypatch, band, wrong):
        lower, upper = np.full(GROUPS, -INF), np.full(GROUPS, INF)
        lower[wrong], upper[wrong] = band
        monkeypatch.setattr(ranks, "_band", lambda *_: (lower, upper))
        monkeypatch.setattr(ranks, "WORTH_SAMPLING", 0)
        values, codes = columns(900)["uniform"], groups_of(900, "even")
        summary = summary_of_groups(values, codes, GROUPS, UNIVERSE, NEEDS)
        for group in range(GROUPS):
            assert_exact(values[codes == group], summary.windows, group)


class TestSpeed:
    """The sample is worth its while: of a large column it leaves little to sort, and the band seldom misses."""

    def test_the_band_is_narrow_and_right(self):
        values = columns(N)["uniform"]
        inside = np.clip(values, UNIVERSE.lo, UNIVERSE.hi)
        lower, upper = ranks._band(GroupedRows(values, UNIVERSE, None, None, 1), 0.5)
        assert lower[0] <= np.median(inside) <= upper[0]
        assert np.mean((inside >= lower[0]) & (inside <= upper[0])) < 0.05  # 3 %, says the module

    def test_small_columns_are_not_sampled(self):
        lower, upper = ranks._band(GroupedRows(np.arange(100.0), UNIVERSE, None, None, 1), 0.5)
        assert (lower[0], upper[0]) == (-INF, INF)
