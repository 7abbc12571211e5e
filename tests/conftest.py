"""Fixtures of every test: ledgers in a file, or on a server, of the test's own."""

import datetime
import secrets
import sqlite3
from functools import partial
from types import SimpleNamespace

import duckdb
import pytest

from every_engine import ENGINES, of_postgres
from ledgers import opened_by_owner
from pdrisk._model.unit import of_this_process
from postgres_databases import connected, database, needs_server


class Hasty(sqlite3.Connection):
    """Does not wait for the disk: most tests do not ask whether a power cut leaves it."""

    def execute(self, sql, *values):
        return super().execute(sql.replace("synchronous = EXTRA", "synchronous = OFF"), *values)


@pytest.fixture(autouse=True, scope="session")
def rows_chosen_as_ever():
    """Which rows of a person count does not change from run to run: some tests see nothing with other ones."""
    of_this_process.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda n: b"q" * n)
        of_this_process()


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Hasty))


@pytest.fixture(params=[*ENGINES, pytest.param("PostgreSQL", marks=needs_server)], scope="module")
def engine(request):
    """Opens a table with each engine, as `pdrisk.engines.conformance.check` asks for it."""
    if request.param == "PostgreSQL":
        with database() as url, connected(url) as connection:
            yield of_postgres(connection)
        return
    with duckdb.connect() as con:
        yield ENGINES[request.param](con)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def url():
    """A database of this test on the server."""
    with database() as made:
        yield made


@pytest.fixture(params=["path", pytest.param("url", marks=needs_server)], ids=["SQLite", "PostgreSQL"])
def store(request):
    """Where a ledger can be: a file, and a database on a server."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def book(path):
    """Opens the ledger of this test, as ann and with budget enough unless said otherwise; its owner is another."""
    return lambda **said: opened_by_owner(path, **({"analyst": "ann", "eps": 10**9} | said))


@pytest.fixture
def clock(monkeypatch):
    """Time stands still in the middle of a month; the function sets it to another day."""
    moment = {"now": datetime.datetime(2190, 5, 15, 12, tzinfo=datetime.UTC)}
    now = SimpleNamespace(now=lambda tz: moment["now"], fromisoformat=datetime.datetime.fromisoformat)
    monkeypatch.setattr("pdrisk._ledger.accounts.account.datetime", SimpleNamespace(datetime=now, UTC=datetime.UTC))
    return lambda **by: moment.update(now=moment["now"] + datetime.timedelta(**by))


@pytest.fixture
def noiseless(monkeypatch):
    """Answers without noise, but for mechanisms that choose."""
    monkeypatch.setattr("pdrisk._mechanisms.contract.draws.discrete_laplace", lambda exact, change, eps: exact)
