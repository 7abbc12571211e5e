"""What the functions of plain SQL add noise to is the answer by its definition, on the public lattice."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions_on_duckdb import (
    ADDED,
    CHOSEN,
    FUNCTIONS,
    HI,
    LO,
    MEAN,
    Function,
    connection,
    frame,
    one,
    rows,
    table,
    without_noise,
)
from oracle import DEFINITIONS, fractions
from pdrisk._core.lattice import PLACES
from pdrisk._core.spread import Var
from pdrisk._core.statistics import Sum
from pdrisk._core.universe import Universe
from pdrisk._functions.columns import grid, summary_of
from pdrisk._mechanisms.exponential import Exponential
from pdrisk._mechanisms.laplace import Laplace
from pdrisk._model.arguments import statistic

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

UNIVERSE = Universe(LO, HI)
VALUES = st.sampled_from([None, math.nan, math.inf, -math.inf, -3.0, LO, 2.5, HI, 9e99]) | st.floats(0, 8)
OTHERS = [
    *((0.0, 1.0), (-1.0, 1.0), (0.0, 2_700_000.0), (-1e12, 3.0), (1900.0, 2030.0), (1e9, 1e9 + 1000), (0.1, 0.3)),
    *((-1e100, 1e100), (0.0, 1e-100), (1e100 - 1e94, 1e100), (-1e-94 - 1e-99, -1e-94), (0.0, 2.0**53)),
]


@pytest.fixture(scope="module")
def con():
    with connection() as own, pytest.MonkeyPatch.context() as patch:
        without_noise(patch)
        yield own


def records(function: Function, values, universe: Universe) -> tuple[Fraction, ...]:
    """Present and clamped, by the definition."""
    if function.name == "dp_count_star":
        return fractions([universe.lo] * len(values))
    present = [value for value in values if value is not None and not math.isnan(value)]
    return fractions([min(max(value, universe.lo), universe.hi) for value in present])


def assert_is_the_answer(value: float, function: Function, values, universe: Universe = UNIVERSE) -> None:
    own = statistic((function.method, function.options))
    step = own.lattice(universe).step
    used = records(function, values, universe)
    if function.method == "sum":
        assert value == step * sum(round(x / Fraction(step)) for x in used)  # half to even, as rint
        return
    exact = DEFINITIONS[own.label].value(used, Fraction(universe.lo), Fraction(universe.hi))
    if function.method == "mean":  # each record is off by half a place, and the answer by its own roundings
        assert abs(value - exact) <= universe.width / PLACES * 0.50001 + 2.0**-50 * universe.magnitude
        assert universe.lo <= value <= universe.hi
        return
    if function.method in ("var", "std"):  # by places of records, and squares of places
        power = 2 if function.method == "std" else 1
        assert abs(Fraction(value) ** power - Fraction(exact) ** power) <= 8 * Fraction(universe.width) ** 2 / PLACES
        low, high = own.value_range(universe)
        assert low <= value <= high
        return
    assert function.method == "count" and value == exact


@pytest.mark.parametrize("function", ADDED, ids=str)
class TestDefinition:
    """The exact answer of each group, whatever is missing, infinite or out of bounds."""

    @pytest.mark.sampled(99)
    @given(values=st.lists(VALUES, max_size=12))
    def test_of_one_group(self, con, function, values):
        table(con, values)
        assert_is_the_answer(one(con, function.call()), function, values)

    @pytest.mark.sampled(99)
    @given(pairs=st.lists(st.tuples(st.integers(0, 3), VALUES), min_size=1, max_size=20))
    def test_of_groups(self, con, function, pairs):
        table(con, [value for _, value in pairs], [group for group, _ in pairs])
        found = rows(con, f"SELECT g, {function.call()} FROM t GROUP BY g")
        assert {group for group, _ in found} == {group for group, _ in pairs}
        for group, value in found:
            assert_is_the_answer(value, function, [value for own, value in pairs if own == group])

    @pytest.mark.sampled(7)
    @pytest.mark.parametrize(("lo", "hi"), OTHERS)
    def test_of_any_universe(self, con, function, lo, hi):
        """Also where squares are huge or tiny, and where the width is a millionth of the distance from zero."""
        shares = (0.0, 0.1, 0.1, 1 / 3, 0.5, 0.50001, 0.9, 1.0, 1.0)
        values = [lo + share * (hi / 2 - lo / 2) * 2 for share in shares]
        for some in (values, values[1:3], values[:1] * 5, values[-1:] * 7, values[3:4]):
            table(con, some)
            found = one(con, function.call(lo=f"'{lo!r}'::DOUBLE", hi=f"'{hi!r}'::DOUBLE"))
            assert_is_the_answer(found, function, some, Universe(lo, hi))


class TestNothing:
    """A group of nobody, and a table of nobody, have the answer of nothing: never NULL, which would tell."""

    NOTHING = {  # noqa: RUF012 - by method: docs/numbers.md
        **dict.fromkeys(("count", "sum", "var", "std"), 0.0),
        "mean": 4.0,
    }

    @pytest.mark.parametrize("function", ADDED, ids=str)
    def test_no_rows(self, con, function):
        table(con, [])
        assert one(con, function.call()) == self.NOTHING[function.method]

    @pytest.mark.parametrize("function", [f for f in ADDED if f.name != "dp_count_star"], ids=str)
    def test_only_missing(self, con, function):
        table(con, [None, math.nan, 3.0, None, math.nan], [0, 0, 1, 2, 3])
        found = dict(rows(con, f"SELECT g, {function.call()} FROM t GROUP BY g"))
        assert [found[group] for group in (0, 2, 3)] == [self.NOTHING[function.method]] * 3

    def test_a_public_list_of_keys_by_an_outer_join(self, con):
        table(con, [3.0, 5.0], [1, 1])
        listed = "(VALUES (1), (2)) AS keys (g) LEFT JOIN t USING (g)"
        assert rows(con, f"SELECT g, {MEAN.call()} FROM {listed} GROUP BY g ORDER BY g") == [(1, 4.0), (2, 4.0)]


class TestHuge:
    """Sums beyond what noise has room for are clamped, as on a frame; beyond 64 bits nothing breaks."""

    @pytest.mark.parametrize("steps", [2**62 - 1, 2**62, 2**62 + 1, 2**63, 2**100])
    @pytest.mark.parametrize("sign", [1, -1])
    def test_steps(self, steps, sign):
        column = pa.chunked_array([pa.array([Decimal(sign * steps), None], type=pa.decimal128(38))])
        n = pa.chunked_array([pa.array([5, 0])])
        summary = summary_of({"n": n, "steps": column}, Laplace(Sum(), UNIVERSE, Fraction(1)))
        assert summary.steps.tolist() == [sign * min(steps, 2**62), 0]

    def test_squares(self):
        """Of 2**40 people, half at lo and half at hi: the variance is a quarter of the squared width."""
        half, end = 2**39, int(UNIVERSE.width / grid("squares", UNIVERSE))
        high, low = divmod(end, 2**26)
        sums = {"offsets": half * end, "high_squares": half * high * high}
        sums |= {"products": half * high * low, "low_squares": half * low * low}
        columns = {
            name: pa.chunked_array([pa.array([Decimal(value)], pa.decimal128(38))]) for name, value in sums.items()
        }
        n = pa.chunked_array([pa.array([2 * half])])
        summary = summary_of({"n": n, **columns}, Laplace(Var(0), UNIVERSE, Fraction(1)))
        assert Var(0).value(summary, UNIVERSE)[0] == pytest.approx(9.0, rel=1e-15)


class TestAccessor:
    """Means, counts and sums are to the last bit those of the accessor, of every type and at every bound."""

    SAME = [function for function in FUNCTIONS if function.method in ("count", "mean", "sum")]  # noqa: RUF012

    @pytest.mark.parametrize("bounds", [(LO, HI), (0.1, 0.3), (-1.0, 1.0), (1e9, 1e9 + 1000), (-1e100, 3.0)])
    @pytest.mark.parametrize("function", SAME, ids=str)
    def test_floats(self, con, function, bounds):
        lo, hi = bounds
        inside = [lo, hi, np.nextafter(lo, hi), np.nextafter(hi, lo), lo / 2 + hi / 2, 2.5, 0.1 + 0.2]
        half = (hi / 2 - lo / 2) / PLACES  # of a place: ties of the rounding
        ties = [lo + half * odd for odd in (1, 3, 5, 2**20 + 1, 2**31 - 1)]
        outside = [None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, -1e308, np.nextafter(hi, math.inf)]
        values = [*inside, *ties, *outside, None, math.nan]
        groups = [0] * 7 + [1] * 5 + [2] * 9 + [3, 3]
        table(con, values, groups)
        call = function.call(lo=f"'{lo!r}'::DOUBLE", hi=f"'{hi!r}'::DOUBLE")
        found = dict(rows(con, f"SELECT g, {call} FROM t GROUP BY g"))
        data = frame(values, groups)
        twin = function.twin(data, bounds=bounds, by="g", keys=[0, 1, 2, 3])
        assert [found[group] for group in range(4)] == twin["value"].tolist()
        assert one(con, call) == function.twin(data, bounds=bounds).value

    @pytest.mark.parametrize("bounds", [(-128, 127), (0, 3), (-1e12, 1e12)])
    @pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL(4, 1)", "BOOLEAN", "FLOAT"])
    @pytest.mark.parametrize("function", SAME, ids=str)
    def test_types(self, con, function, kind, bounds):
        """No arithmetic overflows a narrow type."""
        held = {
            "BOOLEAN": [True, False, None, True],
            "FLOAT": [0.1, -128, 127, 0.3, None],
            "DECIMAL(4, 1)": [0.1, -99.9, None],
        }
        values = held.get(kind, [-128, 127, 0, None, 3, 100, 100])
        dtypes = {"TINYINT": "Int8", "SMALLINT": "Int16", "INTEGER": "Int32", "BIGINT": "Int64", "BOOLEAN": "boolean"}
        written = ", ".join("(NULL)" if value is None else f"({value})" for value in values)
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE typed AS SELECT CAST(x AS {kind}) AS x FROM (VALUES {written}) v (x)"
        )
        x = pd.Series(values, dtype=dtypes.get(kind, "float32" if kind == "FLOAT" else "float64"))
        lo, hi = bounds
        twin = function.twin(pd.DataFrame({"x": x}), bounds=bounds)
        assert rows(con, f"SELECT {function.call(lo=f'{lo}', hi=f'{hi}')} FROM typed") == [(twin.value,)]


class TestChosen:
    """With the same random bits for every group, the points that the accessor chooses."""

    @pytest.fixture(autouse=True)
    def bits(self, monkeypatch):
        drawing = Exponential.draw

        def draw(self, summary, sampler=None):
            return drawing(self, summary, bits=lambda size: np.full(size, 7**22, dtype=np.uint64))

        monkeypatch.setattr(Exponential, "draw", draw)

    @pytest.mark.parametrize("function", CHOSEN, ids=str)
    @pytest.mark.parametrize("eps", [1, 20])
    def test_are_the_accessors(self, con, function, eps):
        some = np.random.default_rng(3).uniform(0, 8, 60).tolist()
        values = [*some, None, math.nan, math.inf, -math.inf, *[3.0] * 40, None, LO]
        groups = [*[0] * 40, *[1] * 24, *[2] * 40, 3, 4]
        table(con, values, groups)
        call, data = function.call(eps=str(eps)), frame(values, groups)
        twin = function.twin(data, eps, by="g", keys=[0, 1, 2, 3, 4])
        assert dict(rows(con, f"SELECT g, {call} FROM t GROUP BY g")) == twin["value"].to_dict()
        assert one(con, call) == function.twin(data, eps).value
        table(con, [])
        assert one(con, call) == function.twin(frame([]), eps).value


class TestManyGroups:
    """More groups than DuckDB hands over at a time."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("function", ADDED, ids=str)
    def test_each_gets_its_own_answer(self, con, function):
        groups = 5000
        own = [[LO + (group % 7) / 2, LO + 1, HI] if group % 3 else [float(group % 5)] for group in range(groups)]
        table(con, [x for some in own for x in some], [group for group, some in enumerate(own) for _ in some])
        found = dict(rows(con, f"SELECT g, {function.call()} FROM t GROUP BY g"))
        assert len(found) == groups
        for group in range(groups):
            assert_is_the_answer(found[group], function, own[group])
