"""Where a ledger is: what may name a server, and hold its password, never becomes a file and is never shown."""

import logging
import os
import traceback
from pathlib import Path

import pytest

import pdrisk
from errors_said import everything_said
from pdrisk._cli import main
from pdrisk._ledger import store_at

SECRET = "s3cret-Word"
KEYWORDS = [
    "host=db.example.org password={}", "password={} host=db", "password={}", "dbname=surveys password = {}",
    "host=db  user=ann PASSWORD={}", "hostaddr=10.0.0.1 dbname=x sslpassword={}", "user=ann password='{}'",
    "service=ours password={}", "dbname=surveys", "service=ours", " host=db", "port=5432 dbname='x' passwd={}",
    "Server=db;Database=x;User Id=ann;Password={}", "Driver=PostgreSQL;UID=ann;PWD={}", "DSN=x;pwd={}",
    "host=db\tpassword={}", "host=db\npassword={}", "budget.db?user=ann&password={}", "sslkey=/x passfile={}",
    "application_name=x options='-c x' password={}",
]  # fmt: skip
SCHEMES = [
    *("postgresql", "postgres", "POSTGRESQL", "Postgres", "postgresql+psycopg", "postgres+psycopg2", "pgsql", "psql"),
    *("mysql", "mariadb+mariadbconnector", "mssql+pyodbc", "oracle", "redshift", "cockroachdb", "duckdb", "http", "s3"),
    *("file", "sqlite+pysqlite", "sqlite3", "jdbc:postgresql", "odbc", "git+ssh", "ftp"),
]
FORMS = [
    "{}://ann:{}@db.example.org/x",
    "{}:ann:{}@db/x",
    "{}:/ann:{}@db/x",
    "{}:password={}",
    "{}:{}",
    " {}://a:{}@h/d",
]
LOGINS = ["ann:{}@db.example.org/surveys", "a:{}@h", "//ann:{}@h/d", "//{}@h/d", "//h:5432@{}/d", ":{}@h/d", "x/a:{}@h"]
PLACES = [
    *KEYWORDS,
    *(form.format(scheme, "{}") for scheme in SCHEMES for form in FORMS),
    *LOGINS,
    *("sqlite:///" + each for each in (KEYWORDS[0], "postgresql://ann:{}@h/d", LOGINS[0])),
]
SERVERS = ("postgresql://", "postgres://")


def server(text):
    """The URL of a server, if it is one that a ledger may be on."""
    return text if text.startswith(SERVERS) else None


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class TestNoFile:
    """Whatever looks like the address of a server makes no file, and no word of it is repeated."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize(
        ("kind", "text"),
        [(kind, text) for kind in (str, Path) for text in PLACES if kind is Path or server(text) is None],
    )
    def test_refused(self, folder, text, kind, capsys, caplog):
        caplog.set_level(logging.DEBUG)
        where = kind(text.format(SECRET))
        for call in (
            lambda: pdrisk.Ledger(where, dataset="x", eps=1),
            lambda: pdrisk.Ledger(where, dataset="x"),
            lambda: pdrisk.Ledger.datasets(where),
            lambda: store_at(where, known=True),
        ):
            with pytest.raises(pdrisk.ParameterError, match="postgresql://user@host/database") as caught:
                call()
            assert SECRET not in everything_said(caught.value)
            lines = "".join(traceback.format_exception_only(caught.value))
            assert SECRET not in lines
        assert main(["ledger", "verify", str(where)]) == 2
        printed = capsys.readouterr()
        assert SECRET not in printed.out + printed.err + caplog.text
        assert os.listdir(folder) == []

    @pytest.mark.parametrize("text", ["a\0b.db", "\0"])
    def test_a_path_that_none_can_be(self, folder, text):
        for call in (lambda: pdrisk.Ledger(text, dataset="x", eps=1), lambda: pdrisk.Ledger.datasets(text)):
            with pytest.raises(pdrisk.ParameterError, match="no path can hold"):
                call()
        assert os.listdir(folder) == []

    def test_a_path_that_is_too_long(self, folder):
        with pytest.raises(pdrisk.PdriskError):
            pdrisk.Ledger("x" * 300 + ".db", dataset="x", eps=1)
        with pytest.raises(pdrisk.PdriskError):
            pdrisk.Ledger.datasets("x" * 300 + ".db")
        assert os.listdir(folder) == []


class TestFiles:
    """Other names are those of files."""

    @pytest.mark.parametrize(
        "name",
        [
            "budget.db", "budget 2019.db", "a=b.db", "user-survey.db", "host.db", "password.db", "e@mail.db", "C.db",
            "x/user=ann/y.db", "ü.db", "eps=1.db", "hostage=1.db", "my host.db", "survey (port).db", "a;b.db", "x&y.db",
        ],
    )  # fmt: skip
    def test_made(self, folder, name):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for where in (name, folder / name, f"sqlite:///{name}", f"sqlite:///{folder / name}"):
            assert pdrisk.Ledger(where, dataset="x", eps=1).remaining().eps == 1
        assert (folder / name).is_file()

    def test_a_drive_of_windows(self, folder):
        """One letter before a colon is no scheme."""
        assert pdrisk.Ledger("C:budget.db", dataset="x", eps=1).remaining().eps == 1
