"""A ledger on a PostgreSQL server when its connections are lost, and what a transaction is there."""

import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pandas as pd
import pytest

import pdrisk
from pdrisk._ledger.store.postgres_store import Held
from pdrisk._mechanisms.contract import draws
from postgres_databases import connected, needs_server, run

pytestmark = needs_server
FRAME = pd.DataFrame({"age": [30, 41, 52]})


@pytest.fixture
def drawn(monkeypatch):
    """One entry for each draw."""
    found, real = [], draws.discrete_laplace
    monkeypatch.setattr(draws, "discrete_laplace", lambda *args: (found.append(1), real(*args))[1])
    return found


def opened(url, **limits):
    return pdrisk.Ledger(url, dataset="survey", **limits)


def ask(ledger):
    return FRAME.dprisk.count(eps=0.05, ledger=ledger)


def paid(ledger):
    return int(ledger.history()["event"].eq("paid").sum())


class Cut:
    """A way to the server that, when armed, is cut as soon as a COMMIT has gone through."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.armed = False
        at = f"{parts.username}:{parts.password}@127.0.0.1:{self._door.getsockname()[1]}"
        self.url = parts._replace(netloc=at, query="sslmode=disable").geturl()

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._door.close()

    def serve(self):
        with suppress(OSError):
            while True:
                client, server = self._door.accept()[0], socket.create_connection(self._target)
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, target, asking):
        with suppress(OSError):
            while some := source.recv(2**16):
                last = asking and self.armed and b"COMMIT\0" in some
                if last:  # what the server says to it goes nowhere
                    source.shutdown(socket.SHUT_RDWR)
                target.sendall(some)
                if last:
                    time.sleep(0.5)
                    break
        for each in (source, target):
            each.close()


class TestLost:
    """A lost connection is told, and gives no answer; the next request has a new one."""

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("statement", range(40))
    def test_the_backend_before_every_statement(self, url, drawn, monkeypatch, statement):
        ledger, number, run_ = opened(url, eps=1), [0], Held.run

        def dying(held, sql, values=()):
            if number[0] == statement:
                self.end(url, held)
            number[0] += 1
            return run_(held, sql, values)

        with monkeypatch.context() as killing:
            killing.setattr(Held, "run", dying)
            said = self.told(ledger)
        assert ("nothing was answered" in said, len(drawn), paid(ledger)) in ((True, 0, 0), (False, 1, 1))
        assert ("nothing was answered" in said) == (number[0] > statement)
        ask(ledger)
        assert ledger.verify()[0] == 1 + len(drawn)

    def told(self, ledger):
        try:
            ask(ledger)
        except pdrisk.LedgerError as error:
            return str(error)
        return ""

    def end(self, url, held):
        pid = held._connection.info.backend_pid
        with connected(url) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
                time.sleep(0.005)

    @pytest.mark.slow
    def test_the_backend_before_the_commit(self, url, drawn, monkeypatch):
        ledger, commit = opened(url, eps=1), Held.commit

        def dying(held, place):
            self.end(url, held)
            commit(held, place)

        with monkeypatch.context() as killing:
            killing.setattr(Held, "commit", dying)
            with pytest.raises(pdrisk.LedgerError, match="nothing was answered"):
                ask(ledger)
        assert (drawn, paid(ledger)) == ([], 0)
        ask(ledger)
        assert ledger.verify()[0] == 2

    @pytest.mark.slow
    def test_a_commit_that_nobody_confirms(self, url, drawn):
        """The server has written it, and the connection is lost before it says so: paid, and not answered."""
        with Cut(url) as between:
            ledger = opened(between.url, eps=1)
            between.armed = True
            with pytest.raises(pdrisk.LedgerError, match="nothing was answered"):
                ask(ledger)
            assert drawn == []
            between.armed = False
            assert (paid(ledger), ledger.remaining().eps, ledger.verify()[0]) == (1, 0.95, 2)
            ask(ledger)

    @pytest.mark.slow
    def test_between_requests(self, url, drawn):
        """The request that finds the connection lost says so; the next has a new one."""
        ledger = opened(url, eps=1)
        for look in (lambda: ask(ledger), ledger.remaining, ledger.verify):
            self.end(url, ledger._store._local.held)
            with pytest.raises(pdrisk.LedgerError, match="nothing was answered"):
                look()
            look()
        assert len(drawn) == paid(ledger) == 1


class TestTransactions:
    """What is written is durable and whole, or it is not there and nothing is answered."""

    @pytest.mark.slow
    def test_nothing_is_left_of_what_fails(self, url):
        ledger = opened(url, eps=1)

        def failing(error=None):
            with ledger._store.writing() as asked:
                asked("UPDATE datasets SET limits = ''")
                if error is not None:
                    raise error
                asked("SELECT missing FROM datasets")

        for error, told in ((KeyboardInterrupt,) * 2, (ValueError, ValueError), (None, pdrisk.LedgerError)):
            with pytest.raises(told):
                failing(error)
        ask(ledger)
        assert ledger.verify()[0] == 2

    def test_a_commit_of_what_failed_is_none(self, url):
        """PostgreSQL answers COMMIT with ROLLBACK, and no error, when a statement before it failed."""
        store = opened(url, eps=1)._store

        def failing(context):
            with context as asked, suppress(Exception):
                asked("SELECT 1 / 0")

        for context, words in ((store.reading(), "does not keep what is written"), (store.writing(), "is aborted")):
            with pytest.raises(pdrisk.LedgerError, match=words):
                failing(context)

    @pytest.mark.slow
    def test_a_commit_with_a_warning_is_none(self, url, drawn):
        """A server that gave up waiting for its standby warns, and commits alone."""
        ledger = opened(url, eps=1)
        run(
            url,
            "CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE WARNING ''alone''; RETURN NULL; END'",
            "CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON pdrisk.spending DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION public.warn()",
        )
        with pytest.raises(pdrisk.LedgerError, match="does not keep what is written"):
            ask(ledger)
        assert drawn == []

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("setting", ["on", "off", "local", "remote_write", "remote_apply"])
    def test_what_is_paid_survives_a_power_cut(self, url, setting):
        """As far as a server can be told."""
        run(url, f"ALTER DATABASE {urlsplit(url).path[1:]} SET synchronous_commit = {setting}")
        store = opened(url, eps=1)._store
        wanted = "remote_apply" if setting == "remote_apply" else "on"
        with store.writing() as asked:
            assert asked("SHOW synchronous_commit") == [(wanted,)]
        with connected(url) as other:
            assert other.execute("SHOW synchronous_commit").fetchone() == (setting,)

    @pytest.mark.slow
    def test_one_state_while_it_is_read(self, url):
        ledger = opened(url, eps=1)
        with ledger._store.reading() as asked:
            before = asked("SELECT count(*) FROM records")
            ask(opened(url))
            assert asked("SELECT count(*) FROM records") == before
        with pytest.raises(pdrisk.LedgerError, match="read-only"), ledger._store.reading() as asked:
            asked("DELETE FROM spending")

    @pytest.mark.slow
    def test_nothing_is_asked_afterwards(self, url):
        ledger = opened(url, eps=1)
        with ledger._store.writing() as asked:
            pass
        with pytest.raises(IndexError):
            asked("DELETE FROM spending")
