"""The same records give the same exact answer, to the last bit, in whatever order and however many threads add them."""

import threading

import pytest

from functions_on_duckdb import ADDED, FUNCTIONS, SUM, connection, count_draws, rows, without_noise
from pdrisk._functions import register

ROWS = 400_000  # four row groups, which threads share
BOUNDS = {"lo": "-3", "hi": "800.7"}


@pytest.fixture(scope="module")
def con():
    with connection() as own:
        own.execute("SELECT setseed(0.25)")
        x = "CASE WHEN i % 50 = 7 THEN NULL WHEN i % 50 = 8 THEN 'nan'::DOUBLE ELSE exp(20 * random() - 13) END"
        own.execute(f"CREATE TABLE straight AS SELECT i, (i * 7919) % 3000 AS g, {x} AS x FROM range({ROWS}) r (i)")
        own.execute("CREATE TABLE shuffled AS SELECT g, x FROM straight ORDER BY hash(i)")
        yield own


class TestDeterminism:
    @pytest.mark.slow
    @pytest.mark.sampled(10)
    @pytest.mark.parametrize("function", FUNCTIONS, ids=str)
    def test_of_risks(self, con, function):
        call = function.call(**BOUNDS, risk=True)
        for query in (f"SELECT {call} FROM {{}}", f"SELECT g, {call} FROM {{}} GROUP BY g ORDER BY g"):
            first = self.answers(con, query.format("straight"), threads=1)
            for name, threads in (("straight", 4), ("straight", 4), ("shuffled", 4), ("shuffled", 1)):
                assert self.answers(con, query.format(name), threads=threads) == first

    @pytest.mark.slow
    @pytest.mark.sampled(10)
    @pytest.mark.parametrize("function", ADDED, ids=str)
    def test_of_what_noise_is_added_to(self, con, function, monkeypatch):
        without_noise(monkeypatch)
        call = function.call(**BOUNDS)
        for query in (f"SELECT {call} FROM {{}}", f"SELECT g, {call} FROM {{}} GROUP BY g ORDER BY g"):
            first = self.answers(con, query.format("straight"), threads=1)
            for name, threads in (("straight", 4), ("shuffled", 4), ("shuffled", 1)):
                assert self.answers(con, query.format(name), threads=threads) == first

    @staticmethod
    def answers(con, query, *, threads):
        con.execute(f"SET threads = {threads}")
        return repr(rows(con, query))  # NaN, of groups of nobody, does not equal itself


class TestThreads:
    """Chunks that come from several threads get as many draws as there are groups."""

    @pytest.mark.slow
    def test_queries_at_once(self, con, monkeypatch):
        drawn = count_draws(monkeypatch)
        found = {}
        con.execute("SET threads = 4")

        def work(number):
            with con.cursor() as cursor:
                register(cursor)
                found[number] = rows(cursor, f"SELECT i % 40_000 AS k, {SUM.call()} FROM straight GROUP BY k")

        threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(drawn) == 3 * 40_000
        assert [len({key for key, _ in found[number]}) for number in range(3)] == [40_000] * 3
        assert len({value for number in range(3) for _, value in found[number]}) > 119_000
