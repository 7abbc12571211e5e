"""One fresh draw of noise for each value released, of the scale that the risk functions say."""

import math
from fractions import Fraction

import pytest

from functions_on_duckdb import (
    ADDED,
    FUNCTIONS,
    HI,
    LAPLACE,
    MEAN,
    PLAIN,
    SUM,
    connection,
    count_draws,
    frame,
    one,
    rows,
    table,
)
from noisy_answers import DRAWS, Claim
from pdrisk._core.lattice import PLACES, Lattice
from pdrisk._mechanisms.contract import draws


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        yield own


class TestDraws:
    """As many draws as released values: no more, no fewer."""

    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_one_for_a_table(self, con, function, monkeypatch):
        table(con, [1.0, 2.0, math.nan, None, 5.0])
        drawn = count_draws(monkeypatch)
        one(con, function.call())
        assert drawn == [1]

    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_one_for_each_group(self, con, function, monkeypatch):
        table(con, [3.0] * 500 + [5.0] * 500, [row % 10 for row in range(1000)])
        drawn = count_draws(monkeypatch)
        eps = "1" if function.method in ("var", "std") else "0.1"  # at .1 they may well be 0, all of them
        found = rows(con, f"SELECT g, {function.call(eps=eps)} FROM t GROUP BY g")
        assert sum(drawn) == 10
        # Equal data, ten draws: continuous ones are all different, and whole ones not all equal once in 1e9 runs.
        assert len({value for _, value in found}) > 1
        if function in LAPLACE:
            assert len({value for _, value in found}) == 10  # two are equal once in 1e8 runs

    def test_one_vector_for_each_chunk(self, con, monkeypatch):
        table(con, [3.0] * 10_000, list(range(10_000)))
        drawn = count_draws(monkeypatch)
        values = [value for _, value in rows(con, f"SELECT g, {SUM.call()} FROM t GROUP BY g")]
        assert sum(drawn) == 10_000
        assert max(drawn) <= 2048
        assert len(set(values)) > 9_900  # of 2**31 steps to the scale, a handful of pairs are equal

    def test_every_run_is_fresh(self, con):
        table(con, [3.0] * 400)
        assert len({one(con, MEAN.call()) for _ in range(20)}) == 20

    def test_two_calls_in_one_query_are_two_releases(self, con, monkeypatch):
        table(con, [3.0] * 400)
        drawn = count_draws(monkeypatch)
        ((first, second),) = rows(con, f"SELECT {MEAN.call()}, {MEAN.call()} FROM t")
        assert drawn == [1, 1]
        assert first != second


class TestScale:
    """Laplace around the answer: the scale GS/eps is accepted, 0.9 and 1.1 of it are rejected."""

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("eps", ["0.1", "5"])
    @pytest.mark.parametrize("function", [function for function in PLAIN if function in LAPLACE], ids=str)
    def test_of_many_groups(self, con, function, eps):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE many AS SELECT i // 2 AS g, 5.0 + i % 2 AS x FROM range({2 * DRAWS}) r(i)"
        )
        exact = {"count": 2.0, "sum": 11.0, "mean": 5.5, "median": 5.5, "quantile": 5.9, "min": 5.0, "max": 6.0}
        found = con.execute(f"SELECT {function.call(eps=eps)} AS v FROM many GROUP BY g").fetchnumpy()["v"]
        (risk,) = rows(con, f"SELECT {function.call(eps=eps, risk=True)} FROM many LIMIT 1")[0]
        assert len(found) == DRAWS
        assert Claim(exact[function.method], risk["scale"]).accepts(found)
        assert not Claim(exact[function.method], 0.9 * risk["scale"]).accepts(found)
        assert not Claim(exact[function.method], 1.1 * risk["scale"]).accepts(found)


class TestWhatIsAskedOfTheNoise:
    """What reaches the noise is what the accessor's answer asks of it: the same integers, change and exact eps."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """A list of what the noise is asked for, of which there is none."""
        found = []

        def recorded(exact, change, eps):
            found.append((exact.tolist(), change, eps))
            return exact

        monkeypatch.setattr(draws, "discrete_laplace", recorded)
        return found

    @pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
    @pytest.mark.parametrize("eps", ["0.1", "5"])
    @pytest.mark.parametrize("function", ADDED, ids=str)
    def test_it_is_the_accessors(self, con, asked, function, eps):
        values = [2.0, math.nan, None, 3.5, 3.5, 9.0, -math.inf]
        table(con, values)
        one(con, function.call(eps=eps))
        function.twin(frame(values), float(eps))
        sql, accessor = asked
        assert sql == accessor
        assert sql[2] == Fraction(eps)

    @pytest.mark.parametrize("call", [MEAN, SUM], ids=str)
    @pytest.mark.parametrize(
        ("eps", "exact"),
        [
            *((eps, "0.1") for eps in ("0.1", "1e-1", "CAST(0.1 AS DECIMAL(20, 10))", "0.1::FLOAT", "?")),
            ("0.1234567890123456789012345", "0.1234567890123456789012345"),
            ("3", "3"),
            ("1e-3", "0.001"),
            ("1 / 3", repr(1 / 3)),
        ],
    )
    def test_eps(self, con, asked, call, eps, exact):
        table(con, [3.0])
        one(con, call.call(eps=eps), *([[0.1]] if eps == "?" else []))
        ((_, change, loss),) = asked
        assert loss == Fraction(exact)
        assert change == (PLACES if call is MEAN else Lattice.of_records(HI).sensitivity)
