"""The dp_ functions of a connection, paid by a ledger."""

import contextvars
import gc
import pickle
import threading
import weakref

import duckdb
import pytest

import pdrisk

pytest.importorskip("pyarrow")

MEAN = "SELECT dp_mean(x, eps := {}, lo := 0, hi := 3000) FROM people"


@pytest.fixture
def con():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT range AS x, range % 3 AS g FROM range(5000)")
    yield connection
    connection.close()


@pytest.fixture
def ledger(tmp_path):
    return pdrisk.Ledger(tmp_path / "budget.db", dataset="people", eps=10)


class TestPaying:
    """Every noisy value is paid before it is drawn, each group its own eps."""

    def test_one_value(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        con.execute(MEAN.format(1)).fetchall()
        assert (ledger.remaining().eps, ledger.history()["query"].iloc[-1]) == (9, "mean() from dp_mean")

    def test_each_group(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        assert len(con.execute("SELECT g, dp_count_star(eps := 0.5) FROM people GROUP BY g").fetchall()) == 3
        assert ledger.remaining().eps == 8.5

    def test_more_groups_than_are_asked_at_once(self, con, ledger):
        ledger.amend(eps=500)
        pdrisk.register(con, ledger=ledger)
        assert len(con.execute("SELECT x, dp_count_star(eps := 0.1) FROM people GROUP BY x").fetchall()) == 5000
        assert (ledger.remaining().spent, ledger.verify()[0] > 3) == (500, True)

    def test_over_the_limit(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        for query in (MEAN.format(11), "SELECT g, dp_count_star(eps := 4) FROM people GROUP BY g"):
            with pytest.raises(duckdb.Error, match=r"of 10 is left \(\d short\)"):
                con.execute(query).fetchall()
        assert (ledger.remaining().eps, ledger.history()["event"].tolist()[1:]) == (10, ["refused", "refused"])

    def test_every_execution(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        con.execute(f"PREPARE asked AS {MEAN.format(1)}")
        for spent, ask in enumerate((lambda: con.execute("EXECUTE asked"), lambda: con.sql(MEAN.format(1))) * 2, 1):
            ask().fetchall()
            assert ledger.remaining().spent == spent

    def test_risks_cost_nothing(self, con, ledger):
        pdrisk.register(con, curator=True, ledger=ledger)
        con.execute("SELECT dp_mean_risk(x, 1, 0, 3000) FROM people").fetchall()
        con.execute(f"EXPLAIN {MEAN.format(1)}").fetchall()
        assert ledger.remaining().spent == 0

    def test_rules(self, con, ledger):
        ledger.amend(policy={"refuse_statistics": ["mean"]})
        pdrisk.register(con, ledger=ledger)
        with pytest.raises(duckdb.Error, match="the owner does not allow mean"):
            con.execute(MEAN.format(1)).fetchall()

    def test_rules_about_columns(self, con, ledger):
        """Which column it is about, no function can see."""
        ledger.amend(policy={"refuse_columns": ["income"]})
        pdrisk.register(con, ledger=ledger)
        for query in (MEAN.format(1), "SELECT dp_count_star(eps := 1) FROM people"):
            with pytest.raises(duckdb.Error, match=r"cannot see which columns .* Ask with pdrisk\.sql"):
                con.execute(query).fetchall()
        assert ledger.remaining().spent == 0


class TestWhoPays:
    """The ledger that a connection was registered with, whatever block it is asked in; else that around the query."""

    def test_of_the_block_around(self, con, ledger, tmp_path):
        other = pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=1)
        with ledger:
            pdrisk.register(con)
        with other:
            con.execute(MEAN.format(1)).fetchall()
        assert (ledger.remaining().spent, other.remaining().spent) == (1, 0)

    def test_of_the_block_around_the_query(self, con, ledger, tmp_path):
        other = pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=100)
        pdrisk.register(con)
        con.execute(MEAN.format(1)).fetchall()
        with ledger:
            con.execute(MEAN.format(1)).fetchall()
            con.execute(MEAN.format("?"), [1]).fetchall()
            con.execute("CREATE VIEW seen AS SELECT g, dp_count(x, eps := 1) AS n FROM people GROUP BY g")
        with other:
            con.execute("SELECT * FROM seen").fetchall()
            con.sql(MEAN.format(2)).fetchall()
        con.execute(MEAN.format(1)).fetchall()
        assert (ledger.remaining().spent, other.remaining().spent) == (2, 5)

    @pytest.mark.parametrize("setting", ["PRAGMA disable_optimizer", "SET threads = 8"])
    def test_of_the_block_around_a_query_in_many_threads(self, con, ledger, setting):
        ledger.amend(eps=500)
        pdrisk.register(con)
        con.execute(setting)
        with ledger:
            con.execute("SELECT x, dp_mean(x, eps := 0.1, lo := 0, hi := 9) FROM people GROUP BY x").fetchall()
        assert ledger.remaining().spent == 500

    def test_over_the_limit_of_the_block_around_the_query(self, con, ledger):
        pdrisk.register(con)
        with ledger, pytest.raises(duckdb.Error, match="of 10 is left"):
            con.execute(MEAN.format(11)).fetchall()

    def test_of_the_block_around_what_is_prepared(self, con, ledger):
        pdrisk.register(con)
        with ledger:
            con.execute(f"PREPARE asked AS {MEAN.format(1)}")
            con.execute("EXECUTE asked").fetchall()
        assert ledger.remaining().spent == 1

    def test_of_the_block_around_what_was_prepared_before(self, con, ledger, tmp_path):
        other = pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=1)
        pdrisk.register(con)
        con.execute("SET threads = 1")  # the thread that asks is the one that draws
        con.execute(f"PREPARE outside AS {MEAN.format(1)}")
        with other:
            con.execute(f"PREPARE elsewhere AS {MEAN.format(1)}")
        with ledger:
            con.execute("EXECUTE outside").fetchall()
            con.execute("EXECUTE elsewhere").fetchall()
        assert (ledger.remaining().spent, other.remaining().spent) == (2, 0)

    def test_a_block_that_is_open_elsewhere(self, con, ledger):
        pdrisk.register(con, curator=True)
        with ledger:
            ask = contextvars.Context().run
            with pytest.warns(pdrisk.UnpaidReleaseWarning, match="no ledger pays"):
                ask(lambda: con.execute(MEAN.format(1)).fetchall())
            ask(lambda: con.execute("SELECT dp_mean_risk(x, 1, 0, 3000) FROM people").fetchall())
        assert ledger.remaining().spent == 0

    def test_in_another_thread(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        thread = threading.Thread(target=lambda: con.execute(MEAN.format(1)).fetchall())
        thread.start()
        thread.join()
        assert ledger.remaining().spent == 1

    def test_connections_of_one_database(self, con, ledger, tmp_path):
        other = pdrisk.Ledger(tmp_path / "other.db", dataset="other", eps=1)
        cursor = con.cursor()
        pdrisk.register(con, ledger=ledger)
        pdrisk.register(cursor, ledger=other)
        con.execute(MEAN.format(1)).fetchall()
        cursor.execute(MEAN.format(0.5)).fetchall()
        assert (ledger.remaining().spent, other.remaining().spent) == (1, 0.5)

    def test_registered_anew(self, con, ledger):
        pdrisk.register(con, ledger=ledger)
        pdrisk.register(con)
        con.execute(MEAN.format(1)).fetchall()
        assert ledger.remaining().spent == 0

    def test_nothing_else(self, con, ledger):
        for wrong in ("budget.db", 5, pickle):
            with pytest.raises(pdrisk.ColumnTypeError, match=r"must be a pdrisk\.Ledger"):
                pdrisk.register(con, ledger=wrong)

    def test_ledgers_are_let_go(self, con, tmp_path):
        pdrisk.register(con)
        kept = []
        for _ in range(3):
            with pdrisk.Ledger(tmp_path / "again.db", dataset="people", eps=10) as again:
                con.execute(MEAN.format(1)).fetchall()
            kept.append(weakref.ref(again))
            del again
        gc.collect()
        assert [each() for each in kept] == [None] * 3
