"""A ledger on a PostgreSQL server: the same as in a file, opened by many, and clear words for what goes wrong."""

import logging
import pickle
import re
import sys
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pandas as pd
import pytest

import pdrisk
from errors_said import everything_said
from ledgers import typed
from pdrisk._cli import main
from pdrisk._ledger.store.postgres_store import PostgresStore, parameters
from pdrisk._ledger.store.postgres_tables import VERSION
from pdrisk._mechanisms.contract import draws
from postgres_databases import connected, database, needs_server, role, run

pytestmark = [needs_server, pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")]
SECRET = "s3cret-Word"


def people():
    return typed(pd.DataFrame({"age": [30, 41, 52, 63, 40], "sex": list("fmmmf")}))


def count(ledger, eps=0.1, **options):
    return people().dprisk.count(eps=eps, ledger=ledger, **options)


def opened(url, **said):
    return pdrisk.Ledger(url, **{"dataset": "survey"} | said)


def events(ledger):
    return ledger.history()["event"].tolist()


@pytest.fixture
def drawn(monkeypatch):
    """One entry for each draw."""
    found, real = [], draws.discrete_laplace
    monkeypatch.setattr(draws, "discrete_laplace", lambda *args: (found.append(1), real(*args))[1])
    return found


def life(where, other, names, folder):
    """Everything that happens to a ledger, and all that it says, times and its own name apart.

    ``other`` is where the second analyst opens it; a file is told the ``names`` of both.
    """
    said = []

    def opened(where, number=0, **said):
        return pdrisk.Ledger(where, **{"dataset": "survey", "analyst": names[number]} | said)

    def told(call):
        try:
            found = call()
        except pdrisk.PdriskError as error:
            said.append((type(error).__name__, str(error).replace(ledger._store.place, "PLACE")))
        else:
            said.append(repr(found).replace(ledger._store.place, "PLACE"))

    rules = {"refuse_columns": ["sex"], "round_to": {"count": 5}}
    ledger = opened(where, eps=2, queries_per_day=9, each_analyst={"eps": 1.5}, policy=rules)
    bob = opened(other, 1)
    for call in (
        lambda: count(ledger).eps,
        lambda: people().dprisk.mean("age", eps=0.25, bounds=(0, 99), ledger=bob).eps,
        lambda: count(ledger, where="sex == 'f'"),
        lambda: count(ledger, 5),
        lambda: count(ledger, where=lambda frame: 1 / 0),
        lambda: pdrisk.sql("SELECT COUNT(*) FROM people WHERE age > 40", eps=0.3, ledger=ledger, people=people()).shape,
        lambda: ledger.amend(eps=3, queries=20, policy={}),
        lambda: ledger.amend(queries=-1),
        lambda: ledger.amend(success=0.9),
        lambda: count(ledger.reserve([{"eps": 0.1}] * 2, purpose="planned"), 0.1).eps,
        lambda: [held.close() for held in ledger.reservations()],
        lambda: count(bob, 0.125, by="sex", keys=["f", "ü'\""]).shape,
        lambda: people().dprisk.agg({"age": ["max", "mean"]}, eps=1, bounds=(0, 99), ledger=ledger).shape,
        lambda: count(bob, 1.2),
        lambda: opened(where, eps=7),
        lambda: opened(where, dataset="new"),
        lambda: opened(where, dataset="Zoë's", risk=0.7).limits,
        lambda: [opened(where, dataset=name).remaining() for name in pdrisk.Ledger.datasets(where)],
        lambda: (ledger.limits, ledger.remaining(), bob.remaining(), repr(ledger)),
        lambda: ledger.history().drop(columns="time").to_dict(),
        lambda: ledger.verify()[0],
    ):
        told(call)
    for ending in ("csv", "json"):
        text = ledger.export(folder / f"history.{ending}").read_text("utf-8")
        said.append(re.sub(r"20\d\d-[0-9T:.-]+Z", "TIME", text))
    return said


class TestLikeAFile:
    """The same calls have the same effects and words as in a SQLite file."""

    def test_the_same_life(self, url, tmp_path):
        path = tmp_path / "budget.db"
        with role(url) as (other, name):
            PostgresStore(url)
            run(url, f"GRANT USAGE ON SCHEMA pdrisk TO {name}", f"GRANT ALL ON ALL TABLES IN SCHEMA pdrisk TO {name}")
            names = [urlsplit(url).username, name]
            on_server, in_file = life(url, other, names, tmp_path), life(path, path, names, tmp_path)
        assert len(on_server) == 23 and on_server == in_file

    def test_values_come_back_as_they_were_written(self, url):
        with opened(url, eps=1)._store.writing() as ask:
            ask("CREATE TABLE more (a TEXT, b TEXT, c BYTEA, d BYTEA, e BIGINT)")
            row = ("ü'\"\\", "x%?", b"\0\xff'\\", b"", 2**53)
            ask("INSERT INTO more (a, b, c, d, e) VALUES (?, ?, ?, ?, ?)", row)
            ((*found,),) = ask("SELECT a, b, c, d, e FROM more WHERE a = ? AND e > ?", (row[0], 1))
            assert tuple(found) == row and [type(each) for each in found] == [str, str, bytes, bytes, int]
            ((most, number),) = ask("SELECT max(e), count(*) FROM more")
            assert (most, number) == (2**53, 1) and type(most) is type(number) is int

    def test_blocks_and_the_shell(self, url, capsys):
        ledger = opened(url, eps=1)
        with ledger:
            people().dprisk.count(eps=0.1)
            people()["age"].dprisk.max(eps=0.1, bounds=(0, 99))
        people().dprisk.count(eps=0.5)
        assert (events(ledger), ledger.remaining().eps) == (["opened", "paid", "paid"], 0.8)
        assert main(["ledger", "show", url]) == 0 and ledger._store.place in capsys.readouterr().out
        assert main(["ledger", "verify", url]) == 0
        with database() as other:
            assert main(["ledger", "show", other]) == 2
        assert "is not there; nothing was answered" in capsys.readouterr().err

    def test_pickled(self, url):
        ledger = opened(url, eps=1)
        same = pickle.loads(pickle.dumps(ledger))
        count(same)
        assert (same.dataset, ledger.remaining().eps) == ("survey", 0.9)
        run(url, "DROP SCHEMA pdrisk CASCADE")
        with pytest.raises(pdrisk.LedgerError, match="is not there"):
            pickle.loads(pickle.dumps(ledger))
        assert run(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pdrisk'") == [(0,)]

    def test_asked_while_it_is_written(self, url):
        ledger = opened(url, eps=1)
        with ledger._store.writing(), pytest.raises(pdrisk.LedgerError, match="is asked while it is being written"):
            ledger.remaining()
        count(ledger)
        assert ledger.verify()[0] == 2


OTHERS = {
    "tables": ["CREATE SCHEMA pdrisk", "CREATE TABLE pdrisk.customers (name TEXT)"],
    "a table of the same name": ["CREATE SCHEMA pdrisk", "CREATE TABLE pdrisk.ledger (name TEXT)"],
    "a view": ["CREATE SCHEMA pdrisk", "CREATE VIEW pdrisk.ledger AS SELECT 'x' AS id, 1 AS version"],
    "a function": ["CREATE SCHEMA pdrisk", "CREATE FUNCTION pdrisk.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
}


class TestOpening:
    """Whoever comes first makes the tables; what is something else is left alone."""

    @pytest.mark.parametrize("statements", OTHERS.values(), ids=OTHERS.keys())
    def test_something_else(self, url, statements):
        run(url, *statements)
        with pytest.raises(pdrisk.LedgerError, match="schema 'pdrisk' of something else: name another"):
            opened(url, eps=1)
        assert run(url, "SELECT count(*) FROM pg_class WHERE relname = 'records'") == [(0,)]

    @pytest.mark.slow
    def test_an_empty_schema_is_filled(self, url):
        run(url, "CREATE SCHEMA pdrisk")
        count(opened(url, eps=1))
        assert opened(url).verify()[0] == 2

    @pytest.mark.slow
    def test_newer(self, url):
        ledger = opened(url, eps=1)
        run(url, "UPDATE pdrisk.ledger SET version = 99")
        for look in (lambda: opened(url), ledger.remaining, lambda: count(ledger)):
            with pytest.raises(pdrisk.LedgerError, match=r"newer pdrisk \(version 99 of .*upgrade pdrisk"):
                look()

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("version", range(1, VERSION))
    def test_older(self, url, monkeypatch, version):
        from pdrisk._ledger.store import postgres_store as postgres
        from pdrisk._ledger.store import postgres_tables

        with monkeypatch.context() as old:
            old.setattr(postgres_tables, "VERSION", version)
            old.setattr(postgres, "VERSION", version)
            PostgresStore(url)
        assert run(url, "SELECT version FROM pdrisk.ledger") == [(version,)]
        count(opened(url, eps=1))
        assert run(url, "SELECT version FROM pdrisk.ledger") == [(VERSION,)]
        assert opened(url).verify()[0] == 2

    def test_another_encoding(self):
        other = database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        with other as url, pytest.raises(pdrisk.LedgerError, match="in UTF8, but this one is in LATIN1"):
            opened(url, eps=1)

    @pytest.mark.slow
    def test_replaced(self, url):
        """By another, or by an older copy of itself."""
        ledger = opened(url, eps=1)
        count(ledger)
        with connected(url) as other:
            name = other.execute("SELECT id FROM pdrisk.ledger").fetchone()
            other.execute("DROP SCHEMA pdrisk CASCADE")
            opened(url, eps=1)
            for _ in range(2):
                for look in (lambda: count(ledger), ledger.remaining, ledger.verify):
                    with pytest.raises(pdrisk.LedgerError, match="was moved or replaced; nothing was answered"):
                        look()
                other.execute("UPDATE pdrisk.ledger SET id = %s", name)
        assert events(opened(url)) == ["opened"]

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize(
        "statement", ["DROP SCHEMA pdrisk CASCADE", "DROP TABLE pdrisk.spending", "DELETE FROM pdrisk.ledger"]
    )
    def test_gone(self, url, drawn, statement):
        ledger = opened(url, eps=1)
        run(url, statement)
        for look in (lambda: count(ledger), ledger.remaining):
            with pytest.raises(pdrisk.LedgerError, match=r"restore it from a copy|is damaged"):
                look()
        assert drawn == []

    @pytest.mark.slow
    def test_not_where_the_session_says(self, url):
        """A search path in the URL, and tables of the session with the same names, change nothing."""
        ledger = opened(url, eps=1)
        run(url, "CREATE SCHEMA evil", "CREATE TABLE evil.spending (LIKE pdrisk.spending)")
        same = opened(
            url + "?options=-c%20search_path%3Devil%2Cpg_catalog%20-c%20default_transaction_isolation%3Dserializable"
        )
        for name in ("records", "spending", "datasets", "pg_class", "pg_trigger"):
            schema = "pg_catalog" if name.startswith("pg") else "pdrisk"
            same._store._local.held._connection.execute(f"CREATE TEMP TABLE {name} (LIKE {schema}.{name})")
        count(same)
        assert (same.verify()[0], ledger.remaining().eps) == (2, 0.9)


WRONG = {
    "an empty host and a word as port": "postgresql://ann:{}",
    "an @": "postgresql://ann:x@{}@127.0.0.1/db",
    "a slash": "postgresql://ann:12/{}@127.0.0.1/db",
    "a question mark": "postgresql://ann:12?{}@127.0.0.1/db",
    "a percent sign": "postgresql://ann:%zz{}@127.0.0.1/db",
    "an unknown option": "postgresql://ann@127.0.0.1/db?{}=5",
    "a bracket": "postgresql://ann:{}@[::1/db",
}


class TestWords:
    """What goes wrong is one sentence that says where and what now, and never a password."""

    @pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
    def test_urls(self, text):
        with pytest.raises(pdrisk.ParameterError, match="postgresql://user@host:port/database") as caught:
            opened(text.format(SECRET), eps=1)
        assert SECRET not in everything_said(caught.value)

    @pytest.mark.parametrize(
        ("change", "said", "advice"),
        [
            ({"netloc": "postgres:{}@HOST"}, "password authentication failed", "See that the password is right"),
            ({"netloc": "nobody_here:{}@HOST"}, "password authentication failed", "See that the password is right"),
            ({"netloc": "postgres@HOST"}, "password supplied", "See that the password is right"),
            ({"path": "/no_such_database"}, "does not exist", "See that the database"),
            ({"netloc": "postgres:{}@127.0.0.1:1"}, "refused", "See that the server runs"),
            ({"netloc": "postgres:{}@no-such-host.invalid"}, "no-such-host", "See that the host is right"),
        ],
        ids=str,
    )
    def test_no_connection(self, url, change, said, advice, caplog):
        caplog.set_level(logging.DEBUG)
        host = urlsplit(url).netloc.rpartition("@")[2]
        change = {part: text.format(SECRET).replace("HOST", host) for part, text in change.items()}
        words = rf"^the ledger on \S+ cannot be used \(.*{said}.*\); nothing was answered\. {advice}"
        with pytest.raises(pdrisk.LedgerError, match=words) as caught:
            opened(urlsplit(url)._replace(**change).geturl(), eps=1)
        assert caught.value.__context__ is None and "\n" not in str(caught.value)
        for password in (SECRET, urlsplit(url).password):
            assert password not in everything_said(caught.value) + caplog.text

    @pytest.mark.slow
    def test_no_password_anywhere(self, url, caplog):
        caplog.set_level(logging.DEBUG)
        ledger, password = opened(url, eps=1), urlsplit(url).password
        count(ledger)
        host = urlsplit(url)
        assert ledger._store.place == f"the ledger on {host.hostname}:{host.port}{host.path}"
        assert password not in f"{ledger!r} {ledger._store!r} {ledger._store._local.held!r} {caplog.text}"
        run(url, "DROP TABLE pdrisk.records CASCADE")
        with pytest.raises(pdrisk.LedgerError) as caught:
            count(ledger)
        assert password not in everything_said(caught.value)

    def test_a_password_that_is_a_name_too(self, url):
        host = urlsplit(url).netloc.rpartition("@")[2]
        with pytest.raises(pdrisk.LedgerError, match=r'for user "\*\*\*"') as caught:
            opened(urlsplit(url)._replace(netloc=f"{SECRET}:{SECRET}@{host}").geturl(), eps=1)
        assert SECRET not in everything_said(caught.value)

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("postgresql://a:b@db.example.org/surveys", "db.example.org/surveys"),
            ("postgres://db.example.org:5432/surveys", "db.example.org/surveys"),
            ("postgresql:///surveys?host=/run/x&port=7", "localhost:7/surveys"),
            ("postgresql://ann@[::1]:7", "::1:7/ann"), ("postgresql://?service=ours", "service ours"),
        ],
    )  # fmt: skip
    def test_places(self, text, place, monkeypatch):
        from pdrisk._ledger.store.postgres_store import where

        for name in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER"):
            monkeypatch.delenv(name, raising=False)
        assert where(parameters(text)) == place

    def test_without_psycopg(self, url, monkeypatch):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "psycopg", None)
            with pytest.raises(pdrisk.LedgerError, match=r"pip install 'pdrisk\[postgres\]'"):
                opened(url, eps=1)

    @pytest.mark.slow
    def test_no_rights(self, url, drawn):
        with role(url) as (own, _):
            with pytest.raises(pdrisk.LedgerError, match=r"permission denied.*Have the ledger's owner open it once"):
                opened(own, eps=1)
            opened(url, eps=1)
            for look in (lambda: opened(own), lambda: pdrisk.Ledger.datasets(own)):
                with pytest.raises(pdrisk.LedgerError, match=r"permission denied for schema pdrisk.*grant"):
                    look()

    @pytest.mark.slow
    def test_read_only(self, url, drawn):
        ledger = opened(url, eps=1)
        for settings in ("SET default_transaction_read_only = on", "CONNECTION LIMIT 1"):
            with role(url, settings) as (own, name):
                run(
                    url,
                    f"GRANT USAGE ON SCHEMA pdrisk TO {name}",
                    f"GRANT ALL ON ALL TABLES IN SCHEMA pdrisk TO {name}",
                )
                limited = opened(own)
                assert limited.remaining().eps == 1
                if "LIMIT" in settings:
                    with pytest.raises(pdrisk.LedgerError, match=r"too many.*Ask again when others"):
                        opened(own)
                else:
                    with pytest.raises(
                        pdrisk.LedgerError, match=r"read-only.*nothing was answered\. See that the role"
                    ):
                        count(limited)
                del limited
        assert drawn == [] and events(ledger) == ["opened"]

    @pytest.mark.slow
    def test_held_by_another(self, url, drawn, monkeypatch):
        monkeypatch.setattr("pdrisk._ledger.store.postgres_store.PATIENCE", 0.2)
        ledger, other = opened(url, eps=1), opened(url)._store
        begin = time.monotonic()
        with other.writing(), pytest.raises(pdrisk.LedgerError, match=r"lock timeout.*nothing was answered.*ask again"):
            count(ledger)
        assert time.monotonic() - begin < 4
        with other.writing():
            assert ledger.remaining().eps == 1
        count(ledger)
        assert len(drawn) == 1

    @pytest.mark.slow
    def test_a_stopped_client_holds_nobody_up(self, url, monkeypatch):
        ledger, stopped = opened(url, eps=1), opened(url)._store
        monkeypatch.setattr("pdrisk._ledger.store.postgres_store.STOPPED", 0.2)

        def work():
            with suppress(pdrisk.LedgerError), stopped.writing():
                entered.set()
                done.wait(20)

        entered, done = threading.Event(), threading.Event()
        thread = threading.Thread(target=work)
        thread.start()
        entered.wait(20)
        begin = time.monotonic()
        count(ledger)
        assert time.monotonic() - begin < 10
        done.set()
        thread.join()

    @pytest.mark.slow
    def test_other_words_of_the_server(self, url):
        ledger = opened(url, eps=1)
        with (
            pytest.raises(
                pdrisk.LedgerError, match=r"cannot be used \(division by zero\); nothing was answered\. Ask again"
            ),
            ledger._store.writing() as ask,
        ):
            ask("SELECT 1 / 0")
        count(ledger)
        assert events(ledger) == ["opened", "paid"]
