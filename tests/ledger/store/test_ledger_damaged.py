"""What is stored and no ledger wrote is said to be damage; a mistake of pdrisk's own is not."""

import io
import json
import re
import shutil
import sqlite3
import traceback
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest

import pdrisk
from ledgers import people, tables
from pdrisk._cli import main
from pdrisk._ledger.accounts import account, replay
from pdrisk._ledger.accounts.account import Account
from pdrisk._ledger.rules import limits
from pdrisk._ledger.store.store import decoded
from postgres_databases import connected, needs_server

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")
POLICY = {
    "curators": ["ann"],
    "least_group": {"size": 2, "eps": 0.1},
    "round_to": {"count": 5},
    "refuse_columns": ["sex"],
}
FRAME = people()

COLUMNS = {
    "records": ["seq", "time", "dataset", "analyst", "event", "eps", "body", "hash"],
    "spending": ["dataset", "analyst", "period", "eps", "queries", "delta", "mu2"],
    "datasets": ["name", "limits"],
    "answers": ["dataset", "question", "record", "body"],
    "curator_releases": ["dataset", "record", "body"],
    "curator_people": ["dataset", "who", "counted", "people", "losses", "mu2"],
}
WRONG = [
    None, b"\xff\xfe", b"", "", "x", "5", "-1", "1/0", "nan", "1e5", "inf", " 1", "9" * 400, 10**15, -3, 2.5, "null",
    "[]", "{}", "[[", '{"a"', "true", '"x"', "[" * 3000, '{"question": 5}', '{"question": {"lines": [{}]}}',
    '{"limits": {"whole": 5, "each_analyst": {}, "policy": {}}}', '{"limits": {"whole": {"eps": "x"}}}',
    '{"whole": {"eps": "0"}, "each_analyst": {}, "policy": {}}',
    '{"whole": {"eps": 1}, "each_analyst": {}, "policy": {}}',
    '{"whole": {"epsi": "1"}, "each_analyst": {}, "policy": {}}', '{"whole": {"eps": "1"}, "each_analyst": []}',
    '{"whole": {"eps": "1"}, "each_analyst": {}, "policy": {"person": true}}',
    '{"whole": {"eps": "1"}, "each_analyst": {}, "policy": {"least_group": {"size": 0, "eps": "1"}}}',
    '{"whole": {"queries": "many"}, "each_analyst": {}, "policy": {}}', '{"state": 5}', '{"of": "x", "answer": 5}',
    '{"column": true}',
    "[[1, [2]]]", '[["x"]]', "{\"loss\": -1}", '{"loss": "x", "n": 5, "local_sensitivity": [1]}', "2020-13-45",
    "2020-01-01", "10000-01-01T00:00:00+00:00", "\0", "\ud7ff",
]  # fmt: skip
SAID = (
    r"damaged|is broken|was put back|does not keep|cannot be used|something else|has records of dataset|"
    r"restore it from|another question"
)


def opened(where, **said):
    """As ann in a file, as the session's role on a server."""
    analyst = None if isinstance(where, str) else "ann"
    return pdrisk.Ledger(where, **({"dataset": "survey", "analyst": analyst} | said))


PERSON = {"person": "pid", "per_person": "one"}


def dataset(ledger):
    return pdrisk.Dataset(FRAME, ledger=ledger, **PERSON)


METHODS = {
    "open": opened,
    "open with data": lambda path: dataset(opened(path)),
    "open another": lambda path: opened(path, dataset="new", eps=1),
    "datasets": lambda path: pdrisk.Ledger.datasets(path),
    "ask": lambda path: FRAME.dprisk.count(**PERSON, eps=0.1, ledger=opened(path)),
    "ask again": lambda path: dataset(opened(path)).count(eps=0.1, where="age > 30"),
    "ask too much": lambda path: refused(lambda: FRAME.dprisk.count(**PERSON, eps=50, ledger=opened(path))),
    "ask what fails": lambda path: refused(
        lambda: FRAME.dprisk.count(**PERSON, eps=0.1, where=lambda _: {}[0], ledger=opened(path))
    ),
    "remaining": lambda path: opened(path).remaining(),
    "limits": lambda path: opened(path).limits,
    "repr": lambda path: repr(opened(path)),
    "amend": lambda path: opened(path).amend(queries=99),
    "history": lambda path: opened(path).history(),
    "export": lambda path: opened(path).export(io.StringIO()),
    "verify": lambda path: opened(path).verify(),
    "facts": lambda path: opened(path).facts(),
    "odometer": lambda path: opened(path).odometer([101, 102]),
}


def refused(ask):
    try:
        ask()
    except (pdrisk.BudgetExceededError, pdrisk.QueryFailedError, pdrisk.PolicyError):
        pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file with every kind of row."""
    place = tmp_path_factory.mktemp("whole") / "budget.db"
    ledger = opened(place, eps=5, queries_per_day=900, each_analyst={"eps": 4}, policy=POLICY)
    d = dataset(ledger)
    d.count(eps=0.1, where="age > 30")
    d.sum("hours", eps=0.1, bounds=(0, 9))
    d.count(eps=0.1, where="age > 30")
    refused(lambda: FRAME.dprisk.count(**PERSON, eps=50, ledger=ledger))
    refused(lambda: FRAME.dprisk.count(**PERSON, eps=0.1, where=lambda _: {}[0], ledger=ledger))
    ledger.amend(queries=90)
    with closing(sqlite3.connect(place)) as file:
        assert all(file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COLUMNS)
    return place


def without_guards(file):
    """The file as somebody has it who may change its tables: no triggers, and NULL in every column."""
    for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        file.execute(f"DROP TRIGGER {name}")
    for table, columns in COLUMNS.items():
        file.execute(f"CREATE TABLE free AS SELECT * FROM {table}")
        file.execute(f"DROP TABLE {table}")
        file.execute(f"CREATE TABLE {table} ({', '.join(columns)})")  # no type either: what is put there stays as it is
        file.execute(f"INSERT INTO {table} SELECT * FROM free")
        key = {"spending": "dataset, analyst, period", "answers": "dataset, question", "curator_people": "dataset"}
        file.execute(f"CREATE UNIQUE INDEX {table}_key ON {table} ({key.get(table, columns[0] + ', ' + columns[1])})")
        file.execute("DROP TABLE free")


def found_by(call, *arguments):
    """What a call says of damage; an answer says nothing. Any other error is none that it may raise."""
    with suppress(pdrisk.BudgetExceededError, pdrisk.ParameterError):  # of what could be, as another sum or name
        try:
            call(*arguments)
        except pdrisk.LedgerError as error:
            said, causes = str(error), (error.__cause__, error.__context__)
        else:
            return ""
        assert causes == (None, None)
        return said
    return ""


class TestEveryColumn:
    """Whatever stands in a column, a call answers or says that the ledger is damaged; no other error comes out."""

    @pytest.mark.slow
    @pytest.mark.sampled(14)
    @pytest.mark.parametrize(("table", "column"), [(t, c) for t, columns in COLUMNS.items() for c in columns])
    def test_wrong(self, whole, tmp_path, table, column, monkeypatch):
        monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})
        file = tmp_path / "budget.db"
        shutil.copyfile(whole, file)
        with closing(sqlite3.connect(file)) as made, made:
            without_guards(made)
        kept, said = file.read_bytes(), {name: set() for name in METHODS}
        for number, wrong in enumerate(WRONG):
            for name in list(METHODS)[number % 6 :: 6]:
                file.write_bytes(kept)
                with closing(sqlite3.connect(file)) as made, made:
                    made.execute(f"UPDATE OR REPLACE {table} SET {column} = ?", (wrong,))
                monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})
                told = found_by(METHODS[name], file)
                said[name].add(told)
        every = set().union(*said.values()) - {""}
        assert every or column in ("question",), "nothing was found out"
        for told in every:
            assert re.search(SAID, told), told
            assert "\n" not in told


BODIES = {
    ("datasets", "limits"): ["remaining", "ask", "limits", "repr", "amend", "open"],
    ("spending", "eps"): ["remaining", "ask", "repr"],
    ("spending", "queries"): ["remaining", "ask"],
    ("spending", "delta"): ["remaining", "ask"],
    ("spending", "mu2"): ["remaining", "ask"],
    ("records", "body"): ["history", "export", "facts"],
    ("records", "eps"): ["history", "export", "facts"],
    ("records", "time"): ["ask", "amend", "history"],
    ("answers", "body"): ["ask again"],
    ("curator_releases", "body"): ["facts"],
    ("curator_people", "people"): ["odometer"],
    ("curator_people", "losses"): ["odometer"],
    ("curator_people", "counted"): ["odometer"],
    ("curator_people", "mu2"): ["odometer"],
}

# An answer of which nothing is known counts in full; of sums that an older version wrote the delta is 0, and m is that
# of each eps.
MAY_BE_NULL = {("curator_releases", "body"), ("spending", "delta"), ("spending", "mu2"), ("curator_people", "mu2")}


class TestDamage:
    """The calls that read a column say of it that it is damaged, by the same sentence."""

    @pytest.mark.sampled(5)
    @pytest.mark.parametrize("place", BODIES, ids=".".join)
    @pytest.mark.parametrize("wrong", ["{", "[]", None, b"\xff", "x", 5.5, "[" * 3000], ids=repr)
    def test_said(self, whole, path, place, wrong, monkeypatch):
        table, column = place
        shutil.copyfile(whole, path)
        with closing(sqlite3.connect(path)) as made, made:
            without_guards(made)
            made.execute(f"UPDATE {table} SET {column} = ?", (wrong,))
        if place in MAY_BE_NULL and wrong is None:
            return
        kept = path.read_bytes()
        for name in BODIES[place]:
            monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})
            told = found_by(METHODS[name], path)
            assert "is damaged; nothing was answered. See ledger.verify(), and restore it from a copy." in told
            assert tables(path, "SELECT count(*) FROM records") == [(len_of(kept, path),)]

    def test_from_the_shell(self, whole, path, capsys, monkeypatch):
        shutil.copyfile(whole, path)
        tables(path, "UPDATE datasets SET limits = '{'")
        monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})
        assert main(["ledger", "show", str(path)]) == 2
        assert "is damaged" in capsys.readouterr().err

    def test_text_that_is_none(self, whole, path, monkeypatch):
        shutil.copyfile(whole, path)
        monkeypatch.setattr("pdrisk._ledger.store.rollback.SEEN", {})
        tables(path, "UPDATE datasets SET limits = CAST(x'ff' AS TEXT)")
        with pytest.raises(pdrisk.LedgerError, match="is damaged"):
            opened(path)


def len_of(kept, path):
    copy = path.with_name("kept.db")
    copy.write_bytes(kept)
    return tables(copy, "SELECT count(*) FROM records")[0][0]


BUGS = [KeyError, ValueError, TypeError, IndexError, AttributeError, ZeroDivisionError, OverflowError, RecursionError]


def raising(kind):
    def bug(*_, **__):
        raise kind("of ours")

    return bug


PLACES = {
    "chained": (account, "chained"), "check": (account, "check"), "payable": (account, "payable"),
    "name_of": (account, "name_of"), "record": (Account, "record"), "pay": (Account, "pay"),
    "paid": (Account, "paid"), "shown": (limits, "shown"),
}  # fmt: skip


class TestBugs:
    """A mistake of pdrisk's keeps its kind and the way to it, and leaves the ledger as it was."""

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("kind", BUGS)
    @pytest.mark.parametrize("place", PLACES)
    def test_while_paying(self, whole, path, kind, place, monkeypatch):
        shutil.copyfile(whole, path)
        ledger = opened(path)
        before = ledger.verify(), tables(path, "SELECT * FROM spending")
        owner, name = PLACES[place]
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, raising(kind))
            with pytest.raises(kind, match="of ours") as caught:
                FRAME.dprisk.count(**PERSON, eps=50 if place == "shown" else 0.1, ledger=ledger)
        assert "bug" in [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
        assert (ledger.verify(), tables(path, "SELECT * FROM spending")) == before
        FRAME.dprisk.count(**PERSON, eps=0.1, ledger=ledger)

    @pytest.mark.parametrize("kind", BUGS)
    def test_elsewhere(self, whole, path, kind, monkeypatch):
        shutil.copyfile(whole, path)
        ledger = opened(path)
        head = ledger.verify()
        for owner, name, call in (
            (Account, "amend", lambda: ledger.amend(queries=3)),
            (Account, "spent", ledger.remaining),
            (replay, "check", ledger.verify),
            (replay, "period", ledger.verify),
            (Account, "enter", lambda: opened(path, dataset="new", eps=1)),
        ):
            with monkeypatch.context() as broken:
                broken.setattr(owner, name, raising(kind))
                with pytest.raises(kind, match="of ours"):
                    call()
        assert ledger.verify() == head and pdrisk.Ledger.datasets(path) == ["survey"]

    def test_a_file_that_cannot_be_written(self, whole, path):
        """What goes wrong with a file is said of that."""
        shutil.copyfile(whole, path)
        closed = io.StringIO()
        closed.close()
        with pytest.raises(ValueError, match="closed file"):
            opened(path).export(closed)

    def test_errors_of_pdrisk(self):
        def refusing():
            raise pdrisk.LedgerError("of its own")

        with pytest.raises(pdrisk.LedgerError, match="of its own"):
            decoded("x", refusing)
        with pytest.raises(pdrisk.LedgerError, match="x is damaged"):
            decoded("x", lambda: json.loads("{"))


@needs_server
class TestOnAServer:
    """The same on a PostgreSQL server."""

    def made(self, url):
        policy = POLICY | {"curators": [urlsplit(url).username]}
        return pdrisk.Ledger(url, dataset="survey", eps=5, each_analyst={"eps": 4}, policy=policy)

    @pytest.mark.sampled(99)
    @pytest.mark.parametrize("kind", BUGS)
    def test_bugs(self, url, kind, monkeypatch):
        ledger = self.made(url)
        for owner, name in PLACES.values():
            with monkeypatch.context() as broken:
                broken.setattr(owner, name, raising(kind))
                with pytest.raises(kind, match="of ours"):
                    FRAME.dprisk.count(**PERSON, eps=50 if name == "shown" else 0.1, ledger=ledger)
        assert ledger.history()["event"].tolist() == ["opened"]
        dataset(ledger).count(eps=0.1)
        assert ledger.verify()[0] == 5  # with the data, their people and the answer that is kept

    @pytest.mark.slow
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("place", BODIES, ids=".".join)
    def test_damage(self, url, place):
        d = dataset(self.made(url))
        for _ in range(2):
            d.count(eps=0.1, where="age > 30")
        d.sum("hours", eps=0.1, bounds=(0, 9))
        table, column = place
        binary, number = column in ("people", "losses"), column == "queries"
        with connected(url) as other:
            other.execute("SET session_replication_role = replica")
            other.execute(f"ALTER TABLE pdrisk.{table} ALTER {column} DROP NOT NULL")
            nothing = [] if place in MAY_BE_NULL else [None]
            for wrong in [*nothing, *([-1] if number else [b"\xff"] if binary else ["{", "x", "[" * 3000])]:
                other.execute(f"UPDATE pdrisk.{table} SET {column} = %s", (wrong,))
                for name in BODIES[place]:
                    told = found_by(METHODS[name], url)
                    assert "is damaged; nothing was answered" in told, (name, wrong)
