"""Ledgers of the first version, which are brought forward when they are opened."""

import shutil
import sqlite3
import threading
from contextlib import closing

import pytest

import ledgers
import pdrisk
from ledgers import events, people, script, tables, values, version_one
from pdrisk._cli import main
from pdrisk._ledger.store.store import VERSION

pytestmark = pytest.mark.filterwarnings("ignore::pdrisk.NoisyReleaseWarning")

OPEN = """
    ledger = pdrisk.Ledger(sys.argv[1], dataset="survey")
    print(ledger.verify()[1], ledger.remaining().spent)
"""
SLOW = """
    import pdrisk._ledger.store.sqlite as store
    real = store.statements
    def stopping(version):
        for number, statement in enumerate(real(version)):
            if number == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement
        if number + 1 == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
    store.statements = stopping
"""
NOBODY = """
    import shutil, tempfile
    held = open(sys.argv[1], "rb").read()
    pdrisk.Ledger.datasets(sys.argv[1])  # imports what nobody else may be allowed to read
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "budget.db")
    open(path, "wb").write(held)
    target = path if sys.argv[2] == "file" else folder
    mode = os.stat(target).st_mode
    os.chmod(target, mode & ~0o222)
"""
RULES = {
    "round_to": {"count": 5}, "refuse_columns": ["income"], "refuse_statistics": ["max"], "bounds_from_data": True,
}  # fmt: skip


def count(ledger, eps=1, **options):
    return people().dprisk.count(eps=eps, ledger=ledger, **options)


@pytest.fixture
def old(book, path):
    """A file of version 1 that holds records of all kinds of its time; and what it said."""
    ledger = book(eps=10, each_analyst={"eps": 5}, policy=RULES)
    count(ledger, 0.3)
    count(ledger, by="region", keys=ledgers.REGIONS, where="age > 30")
    for failing in (
        lambda: count(ledger, 20),
        lambda: people().dprisk.max("age", eps=1, bounds=(0, 100), ledger=ledger),
    ):
        with pytest.raises((pdrisk.BudgetExceededError, pdrisk.PolicyError)):
            failing()
    ledger.amend(eps=9, policy={"keys_from_data": True})
    with pytest.raises(pdrisk.QueryFailedError):
        count(ledger, 0.7, where=lambda frame: 1 / 0)
    count(book(dataset="other", analyst="bob", eps=2), 0.5)
    assert [*dict.fromkeys(events(ledger))] == ["opened", "paid", "refused", "amended", "failed"]
    ledger.verify()
    said = ledger.history(), repr(ledger.remaining())
    return version_one(path), *said


def assert_forward(path, said):
    """Everything is as it was, and the tables are those of today."""
    ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann")
    head, history, remaining = said
    assert ledger.verify(head) == head and repr(ledger.remaining()) == remaining
    assert ledger.history().equals(history)
    assert tables(path, "PRAGMA user_version") == [(VERSION,)]
    made = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    fresh = path.with_name("fresh.db")
    pdrisk.Ledger(fresh, dataset="survey", eps=1)
    assert tables(path, made) == tables(fresh, made)
    return ledger


class TestForward:
    """A file of version 1 is used as any other, and nothing in it is another."""

    def test_same(self, old, path):
        ledger = assert_forward(path, old)
        assert_forward(path, old)
        assert pdrisk.Ledger.datasets(path) == ["other", "survey"]
        assert pdrisk.Ledger(path, dataset="other").remaining().spent == 0.5
        ledger.amend(policy={"curators": ["ann"]})
        assert ledger.facts()["loss"].tolist() == [0.3, 1, 0.7] and not ledger.facts()["known"].any()
        assert ledger.odometer([1, "two"])["loss"].tolist() == [2, 2]

    def test_what_is_new_works(self, old, path):
        assert_forward(path, old)
        frame = people()
        ledger = pdrisk.Ledger(path, dataset="survey", analyst="ann")
        ledger.amend(policy={"curators": ["ann"], "least_group": {"size": 2, "eps": 0.25}})
        d = pdrisk.Dataset(frame, ledger=ledger, person="pid", per_person="one")
        first, second = (values(d.count(eps=0.5, where="age > 30")) for _ in range(2))
        assert first == second and ledger.remaining().spent == 2.75
        losses = ledger.odometer(frame)["loss"].to_numpy()
        assert (losses == 2.25 + 0.5 * (frame["age"] > 30)).all()
        assert ledger.verify()[0] > old[0][0]

    def test_limits_go_on(self, old, path):
        """What was paid before still counts."""
        ledger = assert_forward(path, old)
        with pytest.raises(pdrisk.BudgetExceededError, match="3 of 5 is left"):
            count(ledger, 3.1)
        count(ledger, 3)
        ledger.verify(old[0])

    def test_command_line(self, old, path, capsys):
        (number, last), *_ = old
        assert main(["ledger", "verify", str(path), "--head", f"{number}:{last}"]) == 0
        assert f"{number}:{last}" in capsys.readouterr().out

    @pytest.mark.parametrize("again", [1, 2])
    def test_tables_of_one_of_them(self, old, path, again):
        """Somebody made a table of that name: the file is left as it is."""
        for name in ("answers", "curator_people")[:again]:
            tables(path, f"CREATE TABLE {name} (x)")
        held = path.read_bytes()
        with pytest.raises(pdrisk.LedgerError, match="already exists"):
            pdrisk.Ledger(path, dataset="survey")
        assert path.read_bytes() == held

    @pytest.mark.parametrize("version", [VERSION + 1, 99])
    def test_newer(self, book, path, version):
        book()
        tables(path, f"PRAGMA user_version = {version}")
        held = path.read_bytes()
        with pytest.raises(pdrisk.LedgerError, match=rf"newer pdrisk .version {version}.*upgrade"):
            book()
        assert path.read_bytes() == held

    @pytest.mark.parametrize(
        "damage",
        [
            "DROP TRIGGER records_stay", "UPDATE spending SET eps = '7'", "DELETE FROM spending",
            "UPDATE datasets SET limits = replace(limits, '\"9\"', '\"90\"')",
        ],
    )  # fmt: skip
    def test_what_was_damaged_before(self, old, path, damage):
        tables(path, damage)
        with pytest.raises(pdrisk.LedgerError, match="broken"):
            pdrisk.Ledger(path, dataset="survey", analyst="ann").verify()


class TestHalfWay:
    """Brought forward whole or not at all."""

    @pytest.mark.slow
    def test_killed(self, old, path):
        """Before each statement, and after the last."""
        copies = []
        for place in range(4):
            copy = path.with_name(f"{place}.db")
            shutil.copy(path, copy)
            script([SLOW, OPEN], copy, place, killed=True)
            copies.append(copy)
        for copy in copies:
            with closing(sqlite3.connect(copy)) as left:
                assert left.execute("PRAGMA user_version").fetchone() == (1,)
                assert left.execute("SELECT count(*) FROM sqlite_master WHERE name = 'answers'").fetchone() == (0,)
            assert_forward(copy, old)

    @pytest.mark.slow
    def test_two_at_once(self, old, path):
        found = []
        threads = [threading.Thread(target=lambda: found.append(script(OPEN, path))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[old[0][1], "2.0"]] * 3
        assert_forward(path, old)

    def test_threads(self, old, path):
        """Many, which all find it old."""
        start, found = threading.Barrier(8), []

        def work():
            start.wait()
            found.append(pdrisk.Ledger(path, dataset="survey").verify())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [old[0]] * 8
        assert_forward(path, old)

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_read_only(self, old, path, what):
        """It says so, and changes nothing; when it may be written to, it goes on."""
        text = """
            try:
                pdrisk.Ledger(path, dataset="survey")
            except pdrisk.LedgerError as error:
                print("may be written to" in str(error), open(path, "rb").read() == held)
            os.chmod(target, mode)
            print(pdrisk.Ledger(path, dataset="survey").verify()[1])
        """
        assert script([NOBODY, text], path, what) == ["True", "True", old[0][1]]


class TestLooking:
    """Whoever only looks at a known ledger of today needs no right to write, and waits for nobody who writes."""

    def test_while_somebody_writes(self, book, path, monkeypatch):
        ledger = book()
        count(ledger)
        monkeypatch.setattr("pdrisk._ledger.store.sqlite.PATIENCE", 0.1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            opened = book()
            assert (opened.remaining().spent, opened.verify()) == (1, ledger.verify())
            assert pdrisk.Ledger.datasets(path) == ["survey"] and len(opened.history()) == 2
            with pytest.raises(pdrisk.LedgerError, match="locked"):
                count(opened)
            other.execute("ROLLBACK")

    @pytest.mark.slow
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_read_only(self, book, path, what):
        count(book())
        text = """
            ledger = pdrisk.Ledger(path, dataset="survey")
            print(ledger.remaining().spent, ledger.verify()[0], len(ledger.history()), ledger.datasets(path)[0])
            os.chmod(target, mode)
        """
        assert script([NOBODY, text], path, what) == ["1.0", "2", "2", "survey"]
