"""What DuckDB says of the records of each group is true of them, in its own dialect and in any other."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrisk._core.order import Max, Median, Min, Quantile
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Mean
from pdrisk._core.summary import Needs, Summary, window_start
from pdrisk._core.universe import Universe
from pdrisk._mechanisms import calibrated
from pdrisk.engines.numpy.grouped import summary_of_groups
from pdrisk.engines.numpy.single import summary_of_one
from pdrisk.engines.sql.dialects.dialect import Dialect, DuckDBDialect
from pdrisk.engines.sql.servers.duckdb_engine import fetched
from pdrisk.engines.sql.summary import reading
from pdrisk.engines.sql.summary.summary_plan import Counted, Summarised, SummaryPlan, sides_of

QUANTILES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
EVERYTHING = Needs(total=True, steps=True, ends=True, seconds=True, squares=True, windows=frozenset(QUANTILES))
UNIVERSES = [Universe(-1.0, 3.0), Universe(0.5, 0.75), Universe(-1e9, 1e-9), Universe(2.0, 2.0**40)]
DIALECTS = pytest.mark.parametrize("dialect", [DuckDBDialect(), Dialect()], ids=["DuckDB's", "portable"])


@pytest.fixture(scope="module")
def con():
    return duckdb.connect()


def read(con, plan, dialect=None, seen=None):
    """What `reading.read` reads of a connection; ``seen`` gets the statements."""

    def fetch(sql, values):
        if seen is not None:
            seen.append(sql)
        return fetched(con, sql, values)

    return reading.read(fetch, plan, None, dialect or DuckDBDialect())


def clean(values, universe: Universe) -> list[float]:
    """The records by the definition: not missing, clamped, sorted."""
    present = (float(x) for x in values if x is not None and not math.isnan(x))
    return sorted(min(max(x, universe.lo), universe.hi) for x in present)


def assert_summary(summary: Summary, group: int, records: list[float], universe: Universe, needs: Needs) -> None:
    """Every field that was asked for, on exact fractions."""
    n, lo, hi = len(records), universe.lo, universe.hi
    exact = [Fraction(x) for x in records]
    size = Fraction(universe.magnitude)
    assert summary.n[group] == n
    total = sum(exact, Fraction(0))
    mean = total / n if n else Fraction(0)
    if needs.total or needs.squares:
        # Each record is rounded to 2**-52 of the magnitude once.
        assert abs(Fraction(float(summary.total[group])) - total) <= (n * size + abs(total)) / 2**51
    if needs.steps:
        step = Fraction(2) ** (math.floor(math.log2(universe.magnitude)) - 30)
        assert summary.steps[group] == sum(round(x / step) for x in exact)
    if needs.ends or needs.seconds:
        wanted = 2 if needs.seconds else 1
        assert summary.lowest[:wanted, group].tolist() == [*records, hi, hi][:wanted]
        assert summary.highest[:wanted, group].tolist() == [*records[::-1], lo, lo][:wanted]
    if needs.squares:
        squares = sum(((x - mean) ** 2 for x in exact), Fraction(0))
        slack = float(n * (size * size / 2**50 + Fraction(universe.width) ** 2 / 2**50))
        assert summary.squares[group] == pytest.approx(float(squares), rel=1e-9, abs=slack)
        nearest = min((abs(x - mean) for x in exact), default=Fraction(0))
        assert summary.nearest[group] == pytest.approx(float(nearest), rel=1e-9, abs=float(size) * 2.0**-49)
    assert set(summary.windows) == set(needs.windows)
    for q, window in summary.windows.items():
        start = window_start(np.array([n]), q)[0]
        # The median reads two of an even number, three of an odd one; the others may be any value.
        ranks = range(start, start + (4 if q != 0.5 else 3 if n % 2 else 2))
        expected = [lo if k < 1 else hi if k > n else records[k - 1] for k in ranks]
        assert window[: len(ranks), group].tolist() == expected, q


def literal(value: object) -> str:
    return "NULL" if value is None else f"CAST('{value}' AS {'DOUBLE' if isinstance(value, float) else 'VARCHAR'})"


def rows_of(rows) -> str:
    """A relation with the columns x and g."""
    values = ", ".join(f"({literal(x)}, {literal(g)})" for x, g in rows)
    where = "" if rows else " WHERE false"
    return f"(SELECT * FROM (VALUES {values or '(0.0::DOUBLE, NULL::VARCHAR)'}) AS v(x, g){where}) AS people"


KEYS = ("b", "a", None, "nobody")
LISTED = "(SELECT * FROM (VALUES ('b', 0), ('a', 1), (NULL, 2), ('nobody', 3)) AS k(g0, code)) AS keys_listed"
GAPS = [None, math.nan, math.inf, -math.inf]
values = st.sampled_from([*GAPS, 0.0, -0.0, 0.5, 0.5, 0.625, 1.0, 3.0, 7.0, 1e300]) | st.floats(-2, 4, width=32)
tables = st.lists(st.tuples(values, st.sampled_from(["a", "a", "b", "c", None])), max_size=14)
needs_of = st.builds(
    Needs,
    total=st.booleans(), steps=st.booleans(), ends=st.booleans(), seconds=st.booleans(), squares=st.booleans(),
    windows=st.sets(st.sampled_from(QUANTILES), max_size=3).map(frozenset),
)  # fmt: skip


@DIALECTS
class TestTruth:
    """Of any table, for any needs: n, sums, ends, squares and order statistics."""

    @pytest.mark.sampled(2)
    @given(rows=tables, universe=st.sampled_from(UNIVERSES), needs=needs_of)
    def test_listed_groups(self, dialect, con, rows, universe, needs):
        parts = (Summarised("x", universe, needs), Counted("x > 0.5"), Summarised("x", UNIVERSES[0], EVERYTHING))
        plan = SummaryPlan(rows_of(rows), (), (), ("g",), LISTED, parts)
        (found, counted, other), _ = read(con, plan, dialect=dialect)
        for at, key in enumerate(KEYS):
            own = [x for x, g in rows if g == key]
            assert_summary(found, at, clean(own, universe), universe, needs)
            assert_summary(other, at, clean(own, UNIVERSES[0]), UNIVERSES[0], EVERYTHING)
            assert counted.n[at] == sum(x is not None and (math.isnan(x) or x > 0.5) for x in own)  # NaN is the largest

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @given(rows=tables)
    def test_observed_groups_and_conditions(self, dialect, con, rows):
        universe = UNIVERSES[0]
        plan = SummaryPlan(
            rows_of(rows), ("g <> 'c'",), ("x >= 0.5",), ("g",), None, (Summarised("x", universe, EVERYTHING),)
        )
        (found,), (keys,) = read(con, plan, dialect=dialect)
        assert keys == sorted({g for _, g in rows if g in ("a", "b")})
        for at, key in enumerate(keys):
            own = [x for x, g in rows if g == key and x is not None and (math.isnan(x) or x >= 0.5)]
            assert_summary(found, at, clean(own, universe), universe, EVERYTHING)

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @given(rows=tables, universe=st.sampled_from(UNIVERSES))
    def test_the_pandas_engine_says_the_same(self, dialect, con, rows, universe):
        plan = SummaryPlan(rows_of(rows), (), (), ("g",), LISTED, (Summarised("x", universe, EVERYTHING),))
        (found,), _ = read(con, plan, dialect=dialect)
        column = np.array([math.nan if x is None else x for x, _ in rows], dtype=float)
        codes = np.array([KEYS.index(g) if g in KEYS else 4 for _, g in rows], dtype=np.int32)
        expected = summary_of_groups(column, codes, 4, universe, EVERYTHING)
        assert found.n.tolist() == expected.n.tolist()
        assert found.steps.tolist() == expected.steps.tolist()
        assert found.lowest.tolist() == expected.lowest.tolist()
        assert found.highest.tolist() == expected.highest.tolist()
        for statistic in (Mean(), Median(), Quantile(0.9), Var(0), Var(1)):
            off = statistic.value(found, universe) - statistic.value(expected, universe)
            assert (np.abs(off) <= 2 * statistic.rounding(universe)).all(), statistic.label
            local = [statistic.local_sensitivity(it, universe) for it in (found, expected)]
            whole = statistic.global_sensitivity(universe)
            np.testing.assert_allclose(local[0], local[1], rtol=1e-7, atol=1e-7 * min(whole, 1e9))

    def test_nothing_is_asked_of_the_records(self, dialect, con):
        plan = SummaryPlan(
            rows_of([(1.0, "a"), (None, "a")]), (), (), (), None, (Summarised("x", UNIVERSES[0], Needs()),)
        )
        (found,), _ = read(con, plan, dialect=dialect)
        assert found.n.tolist() == [1]

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 10, 11, 100, 101])
    @pytest.mark.parametrize("equal", [1, 3], ids=lambda k: f"{k} alike")
    def test_every_rank(self, dialect, con, n, equal):
        universe = Universe(-1.0, 2000.0)
        records = [float(k // equal) for k in range(n)]
        needs = Needs(windows=frozenset({0.0, 0.1, 1 / 3, 0.5, 0.95, 1.0}))
        source = f"(SELECT (i // {equal})::DOUBLE AS x FROM range({n}) AS r(i)) AS people"
        (found,), _ = read(
            con, SummaryPlan(source, (), (), (), None, (Summarised("x", universe, needs),)), dialect=dialect
        )
        assert_summary(found, 0, records, universe, needs)


class TestLarge:
    """The same records give the same bits, in whatever order and however many threads add them."""

    ROWS = 1_000_000
    UNIVERSE = Universe(-1e3, 1e6)

    @pytest.fixture(scope="class")
    @staticmethod
    def frame():
        rng = np.random.default_rng(7)
        x = rng.normal(0, 1e3, TestLarge.ROWS) * 10.0 ** rng.integers(-9, 4, TestLarge.ROWS)
        x[rng.integers(0, TestLarge.ROWS, 1000)] = np.nan
        return pd.DataFrame({"x": x, "g": rng.integers(0, 30, TestLarge.ROWS)})

    @pytest.fixture(scope="class")
    @staticmethod
    def con(frame):
        con = duckdb.connect(config={"threads": 4})
        con.execute("CREATE TABLE people AS FROM frame")
        con.execute("CREATE TABLE shuffled AS FROM people ORDER BY hash(x, g)")
        return con

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("groups", [(), ("g",)], ids=["one group", "30 groups"])
    def test_same_bits(self, con, groups):
        needs = Needs(total=True, steps=True, seconds=True, squares=True, windows=frozenset({0.5, 0.9}))
        answers = []
        for source, threads in (("people", 4), ("people", 4), ("people", 1), ("shuffled", 4)):
            con.execute(f"SET threads = {threads}")
            plan = SummaryPlan(source, (), (), groups, None, (Summarised("x", self.UNIVERSE, needs),))
            (found,), _ = read(con, plan)
            fields = (found.n, found.total, found.steps, found.lowest, found.highest, found.squares, found.nearest)
            answers.append([field.tobytes() for field in (*fields, *found.windows.values())])
        assert answers[1:] == answers[:1] * 3

    @pytest.mark.slow
    def test_true(self, con, frame):
        needs = Needs(total=True, steps=True, ends=True, seconds=True, squares=True, windows=frozenset({0.5}))
        (found,), _ = read(con, SummaryPlan("people", (), (), (), None, (Summarised("x", self.UNIVERSE, needs),)))
        kept = np.sort(np.clip(frame["x"].dropna().to_numpy(), -1e3, 1e6))
        assert found.n[0] == len(kept)
        assert found.total[0] == pytest.approx(math.fsum(kept), rel=1e-9)
        assert found.squares[0] == pytest.approx(kept.var() * len(kept), rel=1e-9)
        assert found.lowest[:, 0].tolist() == kept[:2].tolist()
        assert found.highest[:, 0].tolist() == kept[:-3:-1].tolist()
        one = summary_of_one(frame["x"].to_numpy(), self.UNIVERSE, needs)
        assert found.steps[0] == one.steps[0]
        assert found.windows[0.5][:3].tolist() == one.windows[0.5][:3].tolist()


class TestSums:
    """Places are added up in the fastest way that is right about the data; the sums themselves say if one is not."""

    UNIT = Universe(0.0, 1.0)

    def summary(self, con, rows, groups=(), universe=UNIT, **needs):
        """What is read of `rows`, and how many statements that took."""
        seen = []
        part = Summarised("x + 0", universe, Needs(places=True, **needs))
        (summary,), _ = read(con, SummaryPlan(f"({rows}) AS t", (), (), groups, None, (part,)), seen=seen)
        return summary, seen

    # A place is 2**-30: 2**24 is 2**54 places from 0, 1 - 2**24 so far from 1; a DOUBLE holds fewer of 2**970.
    @pytest.mark.parametrize(
        ("far", "times"),
        [
            (4.0, 1), (2.0**24 - 1, 1), (2 - 2.0**24, 1), (2.0**24, 2), (1 - 2.0**24, 2), (math.nan, 2), (1e30, 2),
            (-1e30, 2), (math.inf, 2), (-math.inf, 2),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("groups", [(), ("g",)])
    def test_far_records_have_the_same_places(self, con, far, times, groups):
        values = [0.1, 0.3, 1.0, -0.2, 3.0, None, far]
        rows = f"SELECT * FROM {rows_of([(x, 'a') for x in values])}"
        summary, seen = self.summary(con, rows, groups, place_squares=True)
        records = clean(values, self.UNIT)
        places = [math.floor(x * 2**30 + 0.5) for x in records]
        assert (summary.n.tolist(), summary.places.tolist()) == ([len(records)], [sum(places)])
        assert summary.place_squares.tolist() == [sum(k * k >> 30 for k in places)]
        assert summary.clamped.tolist() == [2 + (not math.isnan(far))]
        assert len(seen) == times and ("ABS" in seen[0].upper()) and ("ABS" in seen[-1].upper()) == (times == 1)

    @given(rows=st.lists(st.tuples(values, st.sampled_from(["a", "b"])), max_size=12))
    def test_any_records(self, con, rows):
        summary, _ = self.summary(con, f"SELECT * FROM {rows_of([*rows, (None, 'a'), (None, 'b')])}", ("g",))
        for group, name in enumerate("ab"):
            records = clean((x for x, g in rows if g == name), self.UNIT)
            assert summary.n[group] == len(records)
            assert summary.places[group] == sum(math.floor(x * 2**30 + 0.5) for x in records)

    @pytest.mark.parametrize("lo", [-1.0, -0.0, 0.0, 0.5, 2.0])
    def test_any_lower_bound(self, con, lo):
        values = [lo + k / 8 for k in range(-4, 12)]  # exact, as their places are
        rows = rows_of([(x, "a") for x in values])
        summary, seen = self.summary(con, f"SELECT * FROM {rows}", universe=Universe(lo, lo + 1))
        assert summary.places.tolist() == [sum(min(max(k, 0), 8) * 2**27 for k in range(-4, 12))]
        assert len(seen) == 1 and "ABS" in seen[0].upper()

    @pytest.mark.parametrize(("end", "place"), [("1.0", 2**30), ("0.0", 0), ("0.75", 3 * 2**28)])
    @pytest.mark.parametrize("more", [-1, 0, 1])
    def test_more_records_than_a_double_can_add_up(self, con, end, place, more):
        """Of 2**24 records at an end the sum of terms is 2**54, and is not finite; one record less is exact."""
        n = 2**24 + more
        summary, seen = self.summary(con, f"SELECT CAST('{end}' AS DOUBLE) AS x FROM range({n})")
        assert (summary.n.tolist(), summary.places.tolist()) == ([n], [n * place])
        assert len(seen) == (1 if more < 0 or end == "0.75" else 2)
        assert ("finite_0" in seen[-1]) == (len(seen) == 2)

    def test_a_large_table_is_added_up_in_whole_numbers_at_once(self, con):
        con.execute(f"CREATE OR REPLACE TABLE large AS SELECT 1.0::DOUBLE AS x FROM range({2**24 + 1})")
        seen, part = [], Summarised("x", self.UNIT, Needs(places=True), "x")
        (summary,), _ = read(con, SummaryPlan("large", (), (), (), None, (part,), rows=2**24 + 1), seen=seen)
        assert (summary.places.tolist(), len(seen)) == ([(2**24 + 1) * 2**30], 1)

    def test_many_records_of_which_one_is_none(self, con):
        rows = f"SELECT 1.0::DOUBLE AS x FROM range({2**24}) UNION ALL SELECT 'nan'::DOUBLE"
        summary, seen = self.summary(con, rows)
        assert (summary.n.tolist(), summary.places.tolist()) == ([2**24], [2**54])
        assert len(seen) == 3 and "finite_0" in seen[1] and "ABS" not in seen[2].upper()

    def test_more_records_than_are_counted(self):
        """Beyond `MOST_PLACED` half of a sum of places need not fit into 64 bits: it is held by the engine."""
        seen = []

        def fetch(sql, _):
            seen.append(sql)
            n, places = np.array([2**33]), np.array([2**63 - 1])
            return {"n_0": n, "clamped_0": n} | ({"terms_0": np.zeros(1)} if len(seen) == 1 else {"places_0": places})

        plan = SummaryPlan("t", (), (), (), None, (Summarised("x", self.UNIT, Needs(places=True)),))
        (summary,), _ = reading.read(fetch, plan, None, DuckDBDialect())
        assert summary.places.tolist() == [2**63 - 1] and len(seen) == 2


MANY = (*np.random.default_rng(3).normal(1, 0.6, 150).round(2).tolist(), *GAPS, math.inf)


class TestStoredColumns:
    """The ends of a whole stored column, which are looked up in its order, are those of its records."""

    UNIT = Universe(0.5, 2.0)

    @pytest.mark.parametrize("rows", [[], [1.0], [None, math.nan], [7.0, 7.0, -1.0], MANY], ids=len)
    @pytest.mark.parametrize("statistic", [Max(), Min()], ids=["max", "min"])
    def test_ends_and_what_is_next_to_them(self, con, rows, statistic):
        con.execute("CREATE OR REPLACE TABLE stored (x DOUBLE)")
        con.execute(f"INSERT INTO stored SELECT x FROM {rows_of([(x, 'a') for x in rows])}")
        needs = calibrated("exponential", statistic, self.UNIT, Fraction(20)).reads
        answers = []

        def fetch(sql, parameters):
            answers.append(fetched(con, sql, parameters))
            return answers[-1]

        plan = SummaryPlan("stored", (), (), (), None, (Summarised("x", self.UNIT, needs, "x"),))
        (summary,), _ = reading.read(fetch, plan, None, DuckDBDialect())
        assert_summary(summary, 0, clean(rows, self.UNIT), self.UNIT, Needs(ends=True, seconds=True))
        (ranks,) = plan.parts[0].ranks
        present = sorted((x for x in rows if x is not None and not math.isnan(x)), reverse=isinstance(statistic, Max))
        found = [] if np.ma.getmaskarray(answers[0]["end_0_0"])[0] else answers[0]["end_0_0"][0]
        assert list(found) == present[: sum(sides_of(ranks))] and sum(sides_of(ranks)) < len(MANY)
