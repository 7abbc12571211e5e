"""One fresh draw of Laplace noise for each value released, of the scale that the risk functions say."""

import math
from fractions import Fraction

import pytest

from functions_on_duckdb import FUNCTIONS, MEAN, PLAIN, connection, count_draws, one, rows, table
from noisy_answers import DRAWS
from pdrisk._answer import releasing
from pdrisk._core.lattice import Lattice
from test_noise_distribution import Claim


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
        table(con, [3.0] * 30, [row % 10 for row in range(30)])
        drawn = count_draws(monkeypatch)
        found = rows(con, f"SELECT g, {function.call()} FROM t GROUP BY g")
        assert sum(drawn) == 10
        assert len({value for _, value in found}) == 10  # equal data, ten draws; two are equal once in 1e8 runs

    def test_one_vector_for_each_chunk(self, con, monkeypatch):
        table(con, [3.0] * 10_000, list(range(10_000)))
        drawn = count_draws(monkeypatch)
        values = [value for _, value in rows(con, f"SELECT g, {MEAN.call()} FROM t GROUP BY g")]
        assert sum(drawn) == 10_000
        assert max(drawn) <= 2048
        assert len(set(values)) > 9_900  # of 2**31 steps to the scale, a handful of pairs are equal

    def test_every_run_is_fresh(self, con):
        table(con, [3.0] * 4)
        assert len({one(con, MEAN.call()) for _ in range(20)}) == 20

    def test_two_calls_in_one_query_are_two_releases(self, con, monkeypatch):
        table(con, [3.0] * 4)
        drawn = count_draws(monkeypatch)
        ((first, second),) = rows(con, f"SELECT {MEAN.call()}, {MEAN.call()} FROM t")
        assert drawn == [1, 1]
        assert first != second


class TestScale:
    """Laplace around the answer: the scale GS/eps is accepted, 0.9 and 1.1 of it are rejected."""

    @pytest.mark.sampled(11)
    @pytest.mark.parametrize("eps", ["0.1", "5"])
    @pytest.mark.parametrize("function", PLAIN, ids=str)
    def test_of_many_groups(self, con, function, eps):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE many AS SELECT i // 2 AS g, 5.0 + i % 2 AS x FROM range({2 * DRAWS}) r(i)"
        )
        exact = {"count": 2.0, "sum": 11.0, "mean": 5.5, "median": 5.5, "quantile": 5.9, "min": 5.0, "max": 6.0}
        exact |= {"var": 0.5, "std": math.sqrt(0.5)}
        found = con.execute(f"SELECT {function.call(eps=eps)} AS v FROM many GROUP BY g").fetchnumpy()["v"]
        (risk,) = rows(con, f"SELECT {function.call(eps=eps, risk=True)} FROM many LIMIT 1")[0]
        assert len(found) == DRAWS
        assert Claim(exact[function.method], risk["scale"]).accepts(found)
        assert not Claim(exact[function.method], 0.9 * risk["scale"]).accepts(found)
        assert not Claim(exact[function.method], 1.1 * risk["scale"]).accepts(found)


class TestWhatIsAskedOfTheNoise:
    """The lattice and eps that reach the noise are those of the accessor, eps as an exact fraction."""

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
    def test_eps(self, con, monkeypatch, eps, exact):
        table(con, [3.0])
        asked = []

        def recorded(steps, lattice, loss):
            asked.append((lattice, loss))
            return steps * lattice.step

        monkeypatch.setattr(releasing, "discrete_laplace", recorded)
        one(con, MEAN.call(eps=eps), *([[0.1]] if eps == "?" else []))
        ((lattice, loss),) = asked
        assert loss == Fraction(exact)
        assert lattice == Lattice.around(3.0, 2.0**-35 * 7.0)
